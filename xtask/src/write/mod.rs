//! All files that are written from rows of Rust: the table of settings (`src/config/table.rs`) and what comes
//! out of the engine (`src/record.rs`).
//!
//! `cargo xtask write` writes them. The native tests compile this folder too, and compare what is committed.

pub mod python_options;
mod python_records;
mod settings_page;
pub mod tower_options;
pub mod typescript_options;
mod typescript_records;

use std::{fs, path::Path};

use autothrottle::config::table::{self, DefaultValue, Kind, Row, Section, Text};

/// A file that is written from Rust.
pub struct Written {
    /// Where it stands in the repository.
    pub file: &'static str,
    /// Its text.
    pub text: fn() -> String,
    /// git ignores the others, which `npm run build` writes.
    is_committed: bool,
}

/// Each of them.
pub const FILES: [Written; 8] = [
    Written { file: "docs/settings.md", text: settings_page::page, is_committed: true },
    Written { file: "python/src/autothrottle/options.py", text: python_options::types, is_committed: true },
    Written {
        file: "python/src/autothrottle/_records.py",
        text: python_records::records,
        is_committed: true,
    },
    Written { file: "python/src/autothrottle/_stats.py", text: python_records::stats, is_committed: true },
    Written { file: "tower/src/settings.rs", text: tower_options::structs, is_committed: true },
    Written { file: "js/answers/generated.ts", text: typescript_records::field_words, is_committed: true },
    Written { file: "js/options/generated.ts", text: typescript_options::types, is_committed: false },
    Written { file: "js/wasm/generated.ts", text: typescript_records::types, is_committed: false },
];

/// The committed files that are not what they would be written as.
pub fn stale(root: &Path) -> Vec<&'static str> {
    let is_stale = |written: &&Written| {
        let found = fs::read_to_string(root.join(written.file)).unwrap_or_default();
        written.is_committed && found != (written.text)()
    };
    FILES.iter().filter(is_stale).map(|written| written.file).collect()
}

/// The defaults that drivers read, with the names of their constants.
fn driver_defaults() -> impl Iterator<Item = (&'static str, DefaultValue)> {
    let rows = [
        (Section::Driver, "redirectMaxDelay", "REDIRECT_MAX_DELAY"),
        (Section::Retry, "methods", "RETRY_METHODS"),
        (Section::Retry, "maxRetryAfter", "RETRY_MAX_RETRY_AFTER"),
        (Section::Robots, "maxDelay", "ROBOTS_MAX_DELAY"),
    ];
    rows.into_iter()
        .map(|(section, key, name)| (name, table::row(table::ROWS, section, key).unwrap().default))
}

/// A default in words, with when another one holds. `own`: what a language writes otherwise; `tongue`: a
/// text in its words.
fn default_of(
    row: &Row,
    text: &Text,
    own: impl Fn(DefaultValue) -> Option<String>,
    tongue: impl Fn(&str) -> String,
) -> String {
    if row.default == DefaultValue::Unset && !text.when.is_empty() {
        return tongue(text.when);
    }
    let value = own(row.default).unwrap_or_else(|| match row.default {
        DefaultValue::Required => "required".into(),
        DefaultValue::Unset => "none".into(),
        DefaultValue::Empty => "{}".into(),
        DefaultValue::Number(number) => number.to_string(),
        DefaultValue::Flag(flag) => flag.to_string(),
        DefaultValue::Word(word) => word.into(),
        DefaultValue::Words(words) => words.join(", "),
        DefaultValue::Codes(codes) => codes.iter().map(u16::to_string).collect::<Vec<_>>().join(", "),
    });
    if text.when.is_empty() { value } else { format!("{value}; {}", tongue(text.when)) }
}

/// The documentation of a setting: its meaning, its type, its default and the reason for that, in a
/// language's words.
fn meaning(row: &Row, text: &Text, default: &str, tongue: impl Fn(&str) -> String) -> String {
    let mut parts = vec![tongue(text.about)];
    if matches!(row.kind, Kind::Number { .. } | Kind::Whole { .. } | Kind::Fraction) {
        let wants = row.kind.wants();
        parts.push(format!("{}{}.", wants[..1].to_uppercase(), &wants[1..]));
    }
    if row.default != DefaultValue::Required {
        parts.push(format!("Default {default}."));
    }
    if !text.because.is_empty() {
        parts.push(tongue(text.because));
    }
    parts.join(" ")
}
