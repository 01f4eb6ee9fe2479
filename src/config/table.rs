//! Every setting once: where it goes, its range, its default, Scrapy's name, what it means and why its
//! default is what it is. The reader's checks, the code's defaults, `docs/settings.md` and TypeScript's types
//! are written from it. A test fails when one of them is not up to date.
//!
//! One list makes two tables: [`ROWS`] for the engine, and [`TEXTS`] for what is written from it. The engine
//! never names the second, so the WebAssembly module has no documentation in it.
//!
//! Units: options are milliseconds under plain names (`delay`, `window`); what comes out of the engine
//! (results, statistics, snapshots, hints) has the unit in its name (`delayMs`).

/// One setting, as the engine knows it.
#[derive(Debug)]
pub struct Row {
    /// The object it stands in.
    pub section: Section,
    /// Its key there.
    pub key: &'static str,
    /// Type and range.
    pub kind: Kind,
    /// What holds where it was not typed.
    pub default: DefaultValue,
}

/// The same setting for people.
#[derive(Debug)]
pub struct Text {
    /// When another default holds, or what the default is if it is no value.
    pub when: &'static str,
    /// Scrapy's or the draft's name; empty where there is none.
    pub scrapy: &'static str,
    /// What it means.
    pub about: &'static str,
    /// Why its default is what it is.
    pub because: &'static str,
    /// Its type in TypeScript, where the kind does not say it.
    pub typescript: &'static str,
}

/// What holds where a setting was not typed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DefaultValue {
    /// It must be typed.
    Required,
    /// No text, or what [`Text::when`] says.
    Unset,
    /// An empty object.
    Empty,
    /// A number, in the setting's unit.
    Number(f64),
    /// A flag.
    Flag(bool),
    /// A word.
    Word(&'static str),
    /// A list of words.
    Words(&'static [&'static str]),
    /// A list of statuses.
    Codes(&'static [u16]),
}

/// The objects that options are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// The options themselves, as far as the engine reads them.
    Root,
    /// What else `createThrottle` takes: read by the driver, checked here.
    Driver,
    /// `defaults` and each of `scopes`.
    Scope,
    /// An object in `rate`.
    Rate,
    /// An object in `quota`.
    Quota,
    /// `autothrottle`.
    AutoThrottle,
    /// `backoff`.
    Backoff,
    /// `rampup`.
    Rampup,
    /// `retry`.
    Retry,
    /// `robots`.
    Robots,
    /// Each of `hints`.
    HeaderMap,
    /// What `simulate` takes.
    Simulation,
    /// `server` of a simulation.
    Server,
    /// `server.step`.
    Step,
    /// `server.drift`.
    Drift,
    /// `server.adaptive`.
    Adaptive,
    /// `server.allowance`.
    Allowance,
    /// Each of `server.budgets`.
    Budget,
    /// `server.outage`.
    Outage,
    /// `server.others`.
    Others,
    /// `network` of a simulation.
    Network,
    /// `load` of a simulation.
    Load,
}

/// Type and range of a setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A finite number above `above`, at most `max`.
    Number {
        /// Not itself allowed.
        above: f64,
        /// The largest; `f64::MAX` for no bound.
        max: f64,
    },
    /// A whole number.
    Whole {
        /// The smallest.
        min: u32,
        /// The largest.
        max: u32,
    },
    /// Milliseconds, at most a year.
    Millis {
        /// Whether 0 makes no sense.
        above_zero: bool,
    },
    /// Milliseconds above 0, at most a year; or false.
    MillisOrFalse,
    /// True or false.
    Flag,
    /// A number above 0 and below 1.
    Fraction,
    /// A number, or a range of two.
    Target,
    /// A list of HTTP status codes, up to 599.
    Codes {
        /// The least.
        min: u16,
    },
    /// A list of kinds of failure.
    Failures,
    /// A list of numbers from 0.
    Amounts,
    /// A flag, a number or a pair of numbers.
    Jitter,
    /// A number, an object of the section `Quota`, or a list of those.
    Quota,
    /// A number, a text like `100/min`, or an object of the section `Rate`.
    Rate,
    /// A whole number that a double carries exactly.
    Seed,
    /// An object.
    Object(Section),
    /// An object whose keys are the user's own names.
    Named(Section),
    /// True, false, or an object.
    FlagOr(Section),
    /// One of these words.
    Word(&'static [&'static str]),
    /// A text that is not empty, in words.
    Text(&'static str),
    /// A list of texts of this kind, in words.
    Texts(&'static str),
    /// A function of the driver's language.
    Function,
    /// An object of the driver's, in words. The driver takes it out; what is left of it is wrong.
    Driver(&'static str),
}

/// Makes both tables from one list: section, key, TypeScript's type if the kind does not say it, kind,
/// default, when another default holds, Scrapy's name, meaning, reason for the default.
macro_rules! settings {
    ($(
        $section:ident $key:literal $(as $typescript:literal)? $kind:expr => $default:expr,
        $when:literal, $scrapy:literal,
        $about:literal,
        $because:literal;
    )*) => {
        /// What the engine knows of each setting.
        pub const ROWS: &[$crate::config::table::Row] = &[$($crate::config::table::Row {
            section: $crate::config::table::Section::$section,
            key: $key,
            kind: $kind,
            default: $default,
        }),*];

        /// The same settings for people, in the same order. The engine must not name this.
        pub const TEXTS: &[$crate::config::table::Text] = &[$($crate::config::table::Text {
            when: $when,
            scrapy: $scrapy,
            about: $about,
            because: $because,
            typescript: concat!($($typescript)?),
        }),*];
    };
}

pub(crate) use settings;

pub use super::rows::{ROWS, TEXTS};

use super::rivals;

/// The row of `key` in `section`, among `rows`.
pub fn row(rows: &'static [Row], section: Section, key: &str) -> Option<&'static Row> {
    rows.iter().find(|row| row.section == section && row.key == key)
}

/// A default that is a number. A row that is missing is an error of the compiler's.
pub(crate) const fn number(section: Section, key: &str) -> f64 {
    match default_of(section, key) {
        DefaultValue::Number(number) => number,
        _ => panic!("the default is no number"),
    }
}

/// A default that is a flag.
pub(crate) const fn flag(section: Section, key: &str) -> bool {
    match default_of(section, key) {
        DefaultValue::Flag(flag) => flag,
        _ => panic!("the default is no flag"),
    }
}

/// A default that is a list of statuses.
pub(crate) const fn codes(section: Section, key: &str) -> &'static [u16] {
    match default_of(section, key) {
        DefaultValue::Codes(codes) => codes,
        _ => panic!("the default is no list of statuses"),
    }
}

/// A default that is a word.
pub(crate) const fn word(section: Section, key: &str) -> &'static str {
    match default_of(section, key) {
        DefaultValue::Word(word) => word,
        _ => panic!("the default is no word"),
    }
}

const fn default_of(section: Section, key: &str) -> DefaultValue {
    let mut index = 0;
    while index < ROWS.len() {
        let row = &ROWS[index];
        if row.section as u8 == section as u8 && is_same(row.key.as_bytes(), key.as_bytes()) {
            return row.default;
        }
        index += 1;
    }
    panic!("no such setting")
}

const fn is_same(a: &[u8], b: &[u8]) -> bool {
    let mut index = 0;
    while index < a.len() && index < b.len() && a[index] == b[index] {
        index += 1;
    }
    index == a.len() && index == b.len()
}

/// The known key of `section` that is meant by `key`: what is ours for another library's word, else the
/// nearest name if one is near enough. At the top the settings of scopes are known, too, and what only a
/// driver takes.
pub fn nearest(rows: &'static [Row], section: Section, key: &str) -> Option<&'static str> {
    if let Some(answer) = rivals::answer(section, key) {
        return Some(answer);
    }
    let is_near = |other: Section| {
        other == section || section == Section::Root && matches!(other, Section::Scope | Section::Driver)
    };
    // Scrapy's name for it, and ours until 0.1.
    let key = if matches!(key, "httpCodes" | "http_codes") { "statusCodes" } else { key };
    nearest_of(key, rows.iter().filter(|row| is_near(row.section)).map(|row| row.key))
}

/// The name that is nearest to `typed`, if one is near enough to be meant.
pub fn nearest_of<'a>(typed: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if typed.len() > 64 {
        return None;
    }
    known
        .map(|name| (distance(typed, name), name))
        .min()
        .filter(|&(edits, name)| edits * 3 <= name.len().max(3))
        .map(|(_, name)| name)
}

/// A name without regard to case, underscores and hyphens: `DOWNLOAD_delay` and `downloadDelay` are one.
pub(super) fn fold(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter(|&c| c != '_' && c != '-').map(|c| c.to_ascii_lowercase())
}

/// Edits between two names: a letter more, less or another one, or two neighbours that are swapped.
fn distance(typed: &str, known: &str) -> usize {
    let (typed, known): (Vec<char>, Vec<char>) = (fold(typed).collect(), fold(known).collect());
    let mut before = Vec::new();
    let mut row: Vec<usize> = (0..=known.len()).collect();
    for (i, &a) in typed.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, &b) in known.iter().enumerate() {
            let mut edits = (row[j] + usize::from(a != b)).min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && a == known[j - 1] && b == typed[i - 1] {
                edits = edits.min(before[j - 1] + 1);
            }
            next.push(edits);
        }
        before = core::mem::replace(&mut row, next);
    }
    row[known.len()]
}
