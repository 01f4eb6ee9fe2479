//! `tower/src/settings.rs`: the options as structs of Rust, from the table of settings. Names are in Rust's
//! case, times are `Duration`s, and what only a driver in another language reads is left out.

use std::fmt::Write;

use autothrottle::config::{
    scrapy::snake,
    table::{self, DefaultValue, Kind, OBJECTS, Object, Row, Section, Text},
};

use super::object;

/// Words of JavaScript's, and Rust's for them. The longer ones first.
pub const WORDS: &[(&str, &str)] = &[
    (", in milliseconds", ""),
    (" in milliseconds", ""),
    ("Milliseconds", "Time"),
    (
        "Whether and how `throttle.fetch` repeats requests.",
        "Whether and how [`Retry`](crate::Retry) repeats requests.",
    ),
    (
        "Retries of `throttle.fetch`. Scrapy: RETRY_ENABLED, RETRY_TIMES.",
        "The requests that [`Retry`](crate::Retry) sends again.",
    ),
    ("`fetch` does not, and sending", "Clients do not by themselves, and sending"),
    (
        "Each keeps its promise and context in memory; `throttle.map` pulls work instead.",
        "Each keeps its task in memory.",
    ),
    ("`QueueFullError`", "[`Error::QueueFull`](crate::Error::QueueFull)"),
    ("`CostExceedsQuotaError`", "[`Error::CostExceedsQuota`](crate::Error::CostExceedsQuota)"),
    ("`ScopeDownError`", "[`Error::ScopeDown`](crate::Error::ScopeDown)"),
    ("`fail` with a `RetryAfterTooLongError`", "`Fail` gives the answer as it is"),
    ("`wait` as long as", "`Wait` as long as"),
    ("or `cap` the wait", "or `Cap` the wait"),
    ("one `stall` event, or a `warning` if it has no listener", "one warning of `tracing`"),
    ("with the warning `wait-capped`", "with a warning of `tracing`"),
    ("`{ rate: 5 }` is `{ defaults: { rate: 5 } }`", "`rate` is then `defaults.rate`"),
    (
        "`5`, `'100/min'` (`/s`, `/min`, `/h`, `/day`), or `{ limit, window, burst }`",
        "`5.into()`, `\"100/min\".into()` (`/s`, `/min`, `/h`, `/day`), or [`RateOptions`]",
    ),
    (
        "a number, `{ limit, window, strict }`, or a list of those",
        "a number, a [`QuotaOptions`], or a list of those",
    ),
    ("[-0.1, 0.3] is from", "(-0.1, 0.3) is from"),
    ("a number, or a range [low, high] whose", "a number, or a range (low, high) whose"),
];

/// A text with its names and units as Rust has them.
fn rustic(text: &str) -> String {
    let mut out = text.to_string();
    for (from, to) in WORDS {
        out = out.replace(from, to);
    }
    for row in table::ROWS.iter().filter(|row| snake(row.key) != row.key) {
        out = out.replace(&format!("`{}`", row.key), &format!("`{}`", snake(row.key)));
        out = out.replace(&format!(".{}`", row.key), &format!(".{}`", snake(row.key)));
    }
    out
}

fn struct_of(of: Section) -> Option<&'static str> {
    Some(object(of).tower).filter(|name| !name.is_empty())
}

/// `None` for what only a driver in another language reads.
fn type_of(kind: Kind) -> Option<String> {
    Some(match kind {
        Kind::Number { .. } | Kind::Fraction => "f64".into(),
        Kind::Whole { .. } => "u32".into(),
        Kind::Seed => "u64".into(),
        Kind::Millis { .. } | Kind::MillisOrFalse => "Duration".into(),
        Kind::Flag => "bool".into(),
        Kind::Target => "BackoffTarget".into(),
        Kind::Codes { .. } => "Vec<u16>".into(),
        Kind::Failures => "Vec<Failure>".into(),
        Kind::Jitter => "Jitter".into(),
        Kind::Quota => "Quotas".into(),
        Kind::Rate => "Rate".into(),
        Kind::Word(_) => "LongRetryAfter".into(),
        Kind::Texts(_) => "Vec<String>".into(),
        Kind::Object(section) => struct_of(section)?.into(),
        Kind::Named(section) => format!("BTreeMap<String, {}>", struct_of(section)?),
        Kind::FlagOr(section) => format!("Switch<{}>", struct_of(section)?),
        Kind::Amounts | Kind::Text(_) | Kind::Function | Kind::Driver(_) => return None,
    })
}

/// The default in words.
fn default_of(row: &Row, text: &Text) -> String {
    let is_time = matches!(row.kind, Kind::Millis { .. });
    let own = |value| match value {
        DefaultValue::Empty => Some("none".into()),
        DefaultValue::Flag(false) if row.kind == Kind::MillisOrFalse => Some("none".into()),
        DefaultValue::Number(number) if is_time && number >= 1000.0 => Some(format!("{} s", number / 1000.0)),
        DefaultValue::Number(number) if is_time => Some(format!("{number} ms")),
        DefaultValue::Word(word) => Some(format!("`{}{}`", word[..1].to_uppercase(), &word[1..])),
        _ => None,
    };
    super::default_of(row, text, own, rustic)
}

/// The documentation of a setting, in lines that fit.
fn doc(row: &Row, text: &Text) -> String {
    let doc = super::meaning(row, text, &default_of(row, text), rustic);
    let mut out = String::new();
    let mut line = String::from("        ///");
    for word in doc.split(' ') {
        if line.chars().count() + 1 + word.chars().count() > 108 {
            writeln!(out, "{line}").unwrap();
            line = String::from("        ///");
        }
        write!(line, " {word}").unwrap();
    }
    writeln!(out, "{line}").unwrap();
    out
}

const HEAD: &str = "\
// The options as structs, written from `src/config/table.rs` by `cargo xtask write`: change them there. A
// part of `options.rs`, which has the types of the fields. Each is `None` by default: the engine's default
// holds.

options! {
";

/// `settings.rs`.
pub fn structs() -> String {
    let mut code = String::from(HEAD);
    for &Object { section, tower: name, about, .. } in OBJECTS.iter().filter(|all| !all.tower.is_empty()) {
        writeln!(code, "    /// {}\n    {name} {{", rustic(about)).unwrap();
        let is_here = |of: Section| of == section || section == Section::Root && of == Section::Scope;
        for (row, text) in table::ROWS.iter().zip(table::TEXTS).filter(|(row, _)| is_here(row.section)) {
            let Some(kind) = type_of(row.kind) else { continue };
            let wrapped =
                if row.default == DefaultValue::Required { kind } else { format!("Option<{kind}>") };
            writeln!(code, "{}        {} {:?}: {wrapped},", doc(row, text), snake(row.key), row.key).unwrap();
        }
        code.push_str("    }\n");
    }
    code.push_str("}\n");
    code
}
