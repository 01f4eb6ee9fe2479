//! Which settings there are, as constants of the module: `SECTIONS` and `DRIVER` with Python's names,
//! `SCRAPY_SETTINGS`, `SCRAPY_KEYS` and `SCRAPY_DEFAULTS` with Scrapy's. A new row of `src/config/table.rs`
//! is in them.

use autothrottle::config::{
    scrapy::{self, snake},
    table::{Kind, ROWS, Row, Section},
};
use pyo3::{prelude::*, types::PyDict};

use crate::value;

/// Sections that only JavaScript has: Python's clients come hop by hop.
const NOT_PYTHONS: [&str; 3] = ["fetch", "redirects", "unref"];

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

    let mut tables = scrapy::tables().into_iter();
    tables.try_for_each(|(name, table)| module.add(name, value::object(py, &table)?))
}

fn pythons(of: Section) -> impl Iterator<Item = &'static Row> {
    ROWS.iter().filter(move |row| {
        let is_here = row.section == of || of == Section::Root && row.section == Section::Driver;
        is_here && !NOT_PYTHONS.contains(&row.key)
    })
}

/// The kind of an option, for the conversion.
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
