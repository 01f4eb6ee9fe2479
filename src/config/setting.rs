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

impl DefaultValue {
    /// The number; anything else is an error of the table's, as for the others.
    #[inline(always)]
    pub(crate) const fn number(self) -> f64 {
        match self {
            Self::Number(number) => number,
            _ => panic!("the default is no number"),
        }
    }

    /// The flag.
    #[inline(always)]
    pub(crate) const fn flag(self) -> bool {
        match self {
            Self::Flag(flag) => flag,
            _ => panic!("the default is no flag"),
        }
    }

    /// The list of statuses.
    pub(crate) const fn codes(self) -> &'static [u16] {
        match self {
            Self::Codes(codes) => codes,
            _ => panic!("the default is no codes"),
        }
    }

    /// The list of words.
    pub(crate) const fn words(self) -> &'static [&'static str] {
        match self {
            Self::Words(words) => words,
            _ => panic!("the default is no words"),
        }
    }

    /// The word.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Word(word) => word,
            _ => panic!("the default is no word"),
        }
    }
}

/// The default of a row that must be there.
pub(crate) const fn default_of(rows: &[Row], section: Section, key: &str) -> DefaultValue {
    let mut index = 0;
    while index < rows.len() {
        let row = &rows[index];
        if row.section.0 == section.0 && is_same(row.key.as_bytes(), key.as_bytes()) {
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

/// One of the objects that options are made of: a row of `sections` in `table.rs`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Section(pub(super) u8);

/// An object of settings for people. A name is empty where a language has none.
#[derive(Debug)]
pub struct Object {
    /// The object.
    pub section: Section,
    /// The heading in `docs/settings.md`.
    pub title: &'static str,
    /// TypeScript's interface.
    pub typescript: &'static str,
    /// Python's `TypedDict`.
    pub python: &'static str,
    /// tower's struct.
    pub tower: &'static str,
    /// How Scrapy's names of its settings begin; `None` where it is no dict of `THROTTLING_SCOPES`.
    pub scrapy: Option<&'static str>,
    /// In TypeScript's words.
    pub about: &'static str,
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

/// Whether a row is marked as one of the pace that the quick path of a scope does not know.
pub(crate) const fn is_slow(paces: &[(Section, &str, &str)], section: Section, key: &str) -> bool {
    let mut index = 0;
    while index < paces.len() {
        let (of, named, mark) = paces[index];
        if of.0 == section.0 && is_same(named.as_bytes(), key.as_bytes()) {
            return !is_same(mark.as_bytes(), b"express");
        }
        index += 1;
    }
    false
}

/// Makes both tables from one list: section, key, the mark of one of the pace, TypeScript's type if the kind
/// does not say it, kind, default. Then when another default holds, Scrapy's name, meaning, reason for the
/// default.
macro_rules! settings {
    ($(
        $section:ident $key:literal $(@$pace:ident)? $(as $typescript:literal)? $kind:expr => $default:expr,
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

        /// Settings by which a send may keep the next one waiting, with their marks. The module has none.
        #[allow(dead_code, reason = "a simulation has none")]
        pub const PACES: &[($crate::config::setting::Section, &str, &str)] = &[
            $($(($crate::config::setting::Section::$section, $key, stringify!($pace)),)?)*
        ];

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

/// Makes the sections from one list: name, heading in `docs/settings.md`, types in TypeScript, Python and
/// tower, the beginning of Scrapy's names, meaning.
macro_rules! sections {
    ($(
        $section:ident $title:literal, [$typescript:literal, $python:literal, $tower:literal]
        $(scrapy $scrapy:literal)?,
        $about:literal;
    )*) => {
        enum Order {
            $($section),*
        }

        #[allow(missing_docs, non_upper_case_globals, reason = "called as the types that `OBJECTS` describes")]
        impl Section {
            $(pub const $section: Self = Self(Order::$section as u8);)*
        }

        impl core::fmt::Debug for Section {
            fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
                f.write_str([$(stringify!($section)),*][usize::from(self.0)])
            }
        }

        /// All sections for people, those that name others first. The engine must not name this.
        pub const OBJECTS: &[Object] = &[$(Object {
            section: Section::$section,
            title: $title,
            typescript: $typescript,
            python: $python,
            tower: $tower,
            scrapy: [None, $(Some($scrapy),)?][[$($scrapy,)? ""].len() - 1],
            about: $about,
        }),*];
    };
}

/// Makes the struct of a section: each field with its key. Its default and its reader come from the rows.
macro_rules! fields {
    (
        $(#[$about:meta])*
        $vis:vis struct $name:ident of $section:ident {
            $($(#[$meaning:meta])* $part:vis $field:ident: $kind:ty = $key:literal,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        $vis struct $name {
            $($(#[$meaning])* $part $field: $kind,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: Setting::usual(const { default_of(Section::$section, $key) }),)* }
            }
        }

        impl Settings for $name {
            fn read(from: &mut impl Source, so_far: &Self) -> Self {
                Self { $($field: Setting::take(from, $key, &so_far.$field),)* }
            }

            #[inline(always)]
            fn is_slow(&self) -> bool {
                false $(|| const { is_slow(PACES, Section::$section, $key) } && Setting::is_on(&self.$field))*
            }
        }
    };
}

pub(crate) use {fields, sections, settings};
