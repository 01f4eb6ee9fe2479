//! The parts of a table of settings: sections, kinds, defaults.
//!
//! One list makes two tables: `ROWS` for the engine, and `TEXTS` for what is written from it. The engine
//! never names the second, so the WebAssembly module has no documentation in it.

/// One setting, as the engine knows it.
#[derive(Debug)]
pub struct Row {
    /// The object it stands in.
    pub section: Section,
    /// Its key there.
    pub key: &'static str,
    /// Type and range.
    pub kind: Kind,
    /// The value if the setting was not typed.
    pub default: DefaultValue,
}

/// The same setting for people.
#[derive(Debug)]
pub struct Text {
    /// When another default holds, or what the default is if it is no value.
    pub when: &'static str,
    /// Scrapy's or the draft's names, the one that counts first; empty where there is none.
    pub scrapy: &'static str,
    /// The meaning.
    pub about: &'static str,
    /// Why its default is what it is.
    pub because: &'static str,
    /// Its type in TypeScript, where the kind does not say it.
    pub typescript: &'static str,
}

/// The value of a setting that was not typed.
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
    /// The other options of `createThrottle`: read by the driver, checked here.
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
    /// The options of `simulate`.
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
        /// The engine's rows of all settings.
        pub const ROWS: &[$crate::config::setting::Row] = &[$($crate::config::setting::Row {
            section: $crate::config::setting::Section::$section,
            key: $key,
            kind: $kind,
            default: $default,
        }),*];

        /// The same settings for people, in the same order. The engine must not name this.
        pub const TEXTS: &[$crate::config::setting::Text] = &[$($crate::config::setting::Text {
            when: $when,
            scrapy: $scrapy,
            about: $about,
            because: $because,
            typescript: concat!($($typescript)?),
        }),*];
    };
}

pub(crate) use settings;
