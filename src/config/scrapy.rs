//! Scrapy's names of the settings: where each goes, how its value is read, and what holds where none was
//! typed. `js/options/scrapy.ts` and Python's `scrapy/_options.py` read by these tables, and
//! `tests/vectors/scrapy.jsonl` holds both to the same results.
//!
//! The reading itself is in their languages: here it would be in the module of every page, and classes of
//! exceptions, managers and priorities of settings are their own. The engine must not name this file.

use super::table::{self, Kind, OBJECTS, ROWS, Row, Section, TEXTS};
use crate::value::Value;

/// Scrapy's names of each row. Computed here, so that the rest of the texts is in no native module.
const SCRAPYS: [&str; ROWS.len()] = {
    let mut names = [""; ROWS.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = TEXTS[index].scrapy;
        index += 1;
    }
    names
};

/// The draft's first names of settings: its text changed over time.
const OLDER: [(&str, &str); 4] = [
    ("BACKOFF_CONCURRENCY_DECREASE_FACTOR", "BACKOFF_CONCURRENCY_FACTOR"),
    ("THROTTLING_SCOPE_CONCURRENCY", "CONCURRENT_REQUESTS_PER_DOMAIN"),
    ("THROTTLER", "THROTTLING_MANAGER"),
    ("THROTTLER_DEBUG", "AUTOTHROTTLE_DEBUG"),
];

/// Keys of `DOWNLOAD_SLOTS` that Scrapy named before the draft did.
const OLDER_KEYS: [(&str, &str); 2] = [("throttle", "autothrottle"), ("randomize_delay", "jitter")];

/// How Scrapy's names of each section's settings begin, where the section is a dict of `THROTTLING_SCOPES`.
const PREFIXES: [(Section, Option<&str>); OBJECTS.len()] = {
    let mut prefixes = [(Section::Root, None); OBJECTS.len()];
    let mut index = 0;
    while index < prefixes.len() {
        prefixes[index] = (OBJECTS[index].section, OBJECTS[index].scrapy);
        index += 1;
    }
    prefixes
};

/// Statuses that the engine has and `BACKOFF_HTTP_CODES` of the draft has not.
const NOT_THE_DRAFTS: [u16; 2] = [430, 529];

/// `AutoThrottle` finds the delay; beside it hold Scrapy's own defaults, not the draft's.
const BESIDE_AUTOTHROTTLE: [(&str, Value); 3] =
    [("delay", Value::Number(0.0)), ("slotDelay", Value::Number(0.0)), ("concurrency", Value::Number(8.0))];

/// A crawl ends where a host is away: the draft asks it for hours, one request in five minutes.
const DOWN_AFTER: f64 = 60_000.0;

/// The tables by their names in Python and TypeScript.
///
/// - Settings: a name → section, key and kind of the option. Of several names the first counts.
/// - Keys: a section → a key of its dicts → key and kind of the option.
/// - Defaults: what holds under Scrapy's names, as options: where the engine's own default is another.
pub fn tables() -> [(&'static str, Value); 3] {
    let mut settings: Vec<(&str, &Row)> = Vec::new();
    for (row, names) in ROWS.iter().zip(SCRAPYS) {
        let is_setting = |name: &&str| name.contains('_') && name.to_ascii_uppercase() == **name;
        for name in names.split(", ").filter(is_setting) {
            if settings.iter().all(|(other, _)| *other != name) {
                settings.push((name, row));
            }
        }
    }
    for (older, newer) in OLDER {
        settings.extend(settings.iter().find(|(name, _)| *name == newer).map(|(_, row)| (older, *row)));
    }
    let settings = settings.into_iter().map(|(name, row)| (name.into(), way(Some(row.section), name, row)));
    let dicts = PREFIXES.into_iter().filter_map(|(section, prefix)| Some((section, prefix?)));
    let keys = dicts.map(|(section, prefix)| (name_of(section), Value::Map(keys_of(section, prefix))));
    [
        ("SCRAPY_SETTINGS", Value::Map(settings.collect())),
        ("SCRAPY_KEYS", Value::Map(keys.collect())),
        ("SCRAPY_DEFAULTS", defaults()),
    ]
}

fn keys_of(section: Section, prefix: &str) -> Vec<(String, Value)> {
    let mut keys = Vec::new();
    for (row, names) in ROWS.iter().zip(SCRAPYS).filter(|(row, _)| row.section == section) {
        let stripped = names.split(", ").filter(|_| !prefix.is_empty());
        let scrapys = stripped.filter_map(|name| name.strip_prefix(prefix)).map(str::to_ascii_lowercase);
        let is_here = |(_, newer): &(&str, &str)| section == Section::Scope && *newer == row.key;
        let older = OLDER_KEYS.into_iter().filter(is_here).map(|(older, _)| older.into());
        let mut names: Vec<String> = [snake(row.key)].into_iter().chain(scrapys).chain(older).collect();
        names.dedup();
        keys.extend(names.into_iter().map(|name| {
            let way = way(None, &name, row);
            (name, way)
        }));
    }
    keys
}

/// Where a setting goes, and how its value is read.
fn way(section: Option<Section>, name: &str, row: &Row) -> Value {
    let parts = [section.map(name_of), Some(row.key.into()), Some(kind(name, row))];
    Value::List(parts.into_iter().flatten().map(Value::Text).collect())
}

fn defaults() -> Value {
    let number = |section, key| Value::Number(table::number(section, key));
    let codes = table::codes(Section::Backoff, "statusCodes").iter();
    let codes = codes.filter(|code| !NOT_THE_DRAFTS.contains(code)).map(|&code| Value::Number(code.into()));
    let longest = number(Section::Backoff, "maxDelay");
    let backoff = vec![("statusCodes", Value::List(codes.collect())), ("maxHold", longest)];
    Value::object(vec![
        ("backoff", Value::object(backoff)),
        ("besideAutothrottle", Value::object(BESIDE_AUTOTHROTTLE.into())),
        ("slotDelay", number(Section::Scope, "slotDelay")),
        ("downAfter", Value::Number(DOWN_AFTER)),
        // Zero is Scrapy's way of having no limit of all requests.
        ("noLimit", Value::Number(1e6)),
    ])
}

/// How a value is read.
fn kind(name: &str, row: &Row) -> String {
    let kind = match (name, row.kind) {
        ("CONCURRENT_REQUESTS", _) => "total",
        ("CONCURRENT_REQUESTS_PER_IP", _) => "count",
        ("THROTTLING_SCOPE_MANAGER", _) => "managers",
        // Scrapy's flags, where 1 is true; under the newer names it is ±100 %.
        ("RANDOMIZE_DOWNLOAD_DELAY" | "randomize_delay", _) => "randomize",
        (_, Kind::Millis { .. }) => "seconds",
        (_, Kind::MillisOrFalse) => "seconds or false",
        (_, Kind::Flag) => "flag",
        (_, Kind::Jitter) => "jitter",
        (_, Kind::Codes { .. }) => "codes",
        (_, Kind::Failures) => "exceptions",
        (_, Kind::Quota) => "quota",
        (_, Kind::Rate) => "rate",
        (_, Kind::Target) => "target",
        (_, Kind::Text(_)) => "text",
        (_, Kind::Function) => "hooks",
        (_, Kind::Driver(_)) => "manager",
        (_, Kind::Named(_)) => "scopes",
        (_, Kind::Object(section) | Kind::FlagOr(section)) => return name_of(section),
        _ => "number",
    };
    kind.into()
}

fn name_of(section: Section) -> String {
    format!("{section:?}").to_ascii_lowercase()
}

/// `slotDelay` as Python has it.
pub fn snake(key: &str) -> String {
    let parts = key.chars().map(|c| if c.is_ascii_uppercase() { format!("_{c}") } else { c.into() });
    parts.collect::<String>().to_ascii_lowercase()
}
