//! Which settings there are, as constants of the module: `SECTIONS` and `DRIVER` with Python's names,
//! `SCRAPY_SETTINGS` and `SCRAPY_KEYS` with Scrapy's. A new row of `src/config/table.rs` is in them.

use autothrottle::config::table::{Kind, ROWS, Row, Section, TEXTS};
use pyo3::{prelude::*, types::PyDict};

/// What only JavaScript has: Python's clients come hop by hop.
const NOT_PYTHONS: [&str; 3] = ["fetch", "redirects", "unref"];

/// Scrapy's names of each row. Computed here, so that the rest of the texts is not in the module.
const SCRAPYS: [&str; ROWS.len()] = {
    let mut names = [""; ROWS.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = TEXTS[index].scrapy;
        index += 1;
    }
    names
};

/// The sections of Python's options: an option of `Driver` stands at the top, too.
const PYTHONS: [Section; 10] = [
    Section::Rate,
    Section::Quota,
    Section::AutoThrottle,
    Section::Backoff,
    Section::Rampup,
    Section::Retry,
    Section::HeaderMap,
    Section::Robots,
    Section::Scope,
    Section::Root,
];

/// The sections of dicts in `THROTTLING_SCOPES`, and how the names of their settings begin elsewhere.
const DICTS: [(Section, &str); 6] = [
    (Section::Scope, ""),
    (Section::Rate, ""),
    (Section::Quota, ""),
    (Section::AutoThrottle, "AUTOTHROTTLE_"),
    (Section::Backoff, "BACKOFF_"),
    (Section::Rampup, "RAMPUP_"),
];

/// Adds them.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let sections = PyDict::new(py);
    for section in PYTHONS {
        let keys = PyDict::new(py);
        for row in pythons(section) {
            keys.set_item(snake(row.key), (row.key, python_kind(row.kind)))?;
        }
        sections.set_item(format!("{section:?}"), keys)?;
    }
    module.add("SECTIONS", sections)?;
    let driver = pythons(Section::Root).filter(|row| row.section == Section::Driver);
    module.add("DRIVER", driver.map(|row| snake(row.key)).collect::<Vec<_>>())?;

    let settings = PyDict::new(py);
    for (row, names) in ROWS.iter().zip(SCRAPYS) {
        for name in names.split(", ").filter(|name| name.contains('_') && name.to_ascii_uppercase() == *name)
        {
            if !settings.contains(name)? {
                settings.set_item(name, (section_name(row.section), row.key, scrapy_kind(row.kind)))?;
            }
        }
    }
    module.add("SCRAPY_SETTINGS", settings)?;
    let dicts = PyDict::new(py);
    for (section, prefix) in DICTS {
        let keys = PyDict::new(py);
        for (row, names) in ROWS.iter().zip(SCRAPYS).filter(|(row, _)| row.section == section) {
            let stripped = names.split(", ").filter(|_| !prefix.is_empty());
            let others = stripped.filter_map(|name| name.strip_prefix(prefix)).map(str::to_ascii_lowercase);
            for name in [snake(row.key)].into_iter().chain(others) {
                keys.set_item(name, (row.key, scrapy_kind(row.kind)))?;
            }
        }
        dicts.set_item(section_name(section), keys)?;
    }
    module.add("SCRAPY_KEYS", dicts)
}

fn pythons(of: Section) -> impl Iterator<Item = &'static Row> {
    ROWS.iter().filter(move |row| {
        let is_here = row.section == of || of == Section::Root && row.section == Section::Driver;
        is_here && !NOT_PYTHONS.contains(&row.key)
    })
}

/// What is in an option, for the conversion.
fn python_kind(kind: Kind) -> String {
    match kind {
        Kind::Millis { .. } | Kind::MillisOrFalse => "time".into(),
        Kind::Object(of) | Kind::FlagOr(of) => format!("object {of:?}"),
        Kind::Named(of) => format!("named {of:?}"),
        Kind::Quota => "list Quota".into(),
        Kind::Rate => "object Rate".into(),
        _ => "plain".into(),
    }
}

/// What a value of Scrapy's is turned into on its way.
fn scrapy_kind(kind: Kind) -> String {
    match kind {
        Kind::Millis { .. } | Kind::MillisOrFalse => "seconds".into(),
        Kind::Flag => "flag".into(),
        Kind::Jitter => "jitter".into(),
        Kind::Codes { .. } => "codes".into(),
        Kind::Failures => "exceptions".into(),
        Kind::Quota => "quotas".into(),
        Kind::Rate => "pace".into(),
        Kind::Target => "target".into(),
        Kind::Object(section) | Kind::FlagOr(section) => section_name(section),
        Kind::Driver(_) | Kind::Function | Kind::Named(_) => "python".into(),
        _ => "number".into(),
    }
}

fn section_name(section: Section) -> String {
    format!("{section:?}").to_ascii_lowercase()
}

/// `slotDelay` as Python has it.
pub fn snake(key: &str) -> String {
    let parts = key.chars().map(|c| if c.is_ascii_uppercase() { format!("_{c}") } else { c.into() });
    parts.collect::<String>().to_ascii_lowercase()
}
