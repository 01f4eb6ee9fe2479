//! `python/src/autothrottle/options.py`: Python's types of the options, from the table of settings. Names are
//! in Python's case, times are seconds, and what only JavaScript has is left out. (The native module has the
//! table itself: `crates/bindings/python/src/tables.rs`.)

use std::fmt::Write;

use autothrottle::config::{
    scrapy::snake,
    table::{self, DefaultValue, Kind, OBJECTS, Object, Row, Section, Text},
};

use super::{driver_defaults, exports, object};

/// Types that the kind does not say.
const TYPES: &[(&str, &str)] = &[
    ("clock", "Clock"),
    ("snapshot", "Snapshot"),
    ("shared", "Shared"),
    ("rules", "RobotsRules"),
    ("getScopes", "GetScopes"),
    ("getResponseBackoff", "GetResponseBackoff"),
    ("getErrorBackoff", "GetErrorBackoff"),
    ("getResponseDelay", "GetResponseDelay"),
    ("getHints", "GetHints"),
    ("when", "RetryWhen"),
    ("manager", "ScopeManager | MakeScopeManager"),
];

/// Words of JavaScript's, and Python's for them. The longer ones first.
pub const WORDS: &[(&str, &str)] = &[
    ("in milliseconds", "in seconds"),
    ("Milliseconds", "Seconds"),
    ("milliseconds", "seconds"),
    ("Whether and how `throttle.fetch` repeats requests.", "Whether and how the transports repeat requests."),
    ("Retries of `throttle.fetch`", "Retries of the transports"),
    ("How `throttle.fetch` asks", "How the transports ask"),
    ("`fetch` does not, and sending", "Clients do not by themselves, and sending"),
    ("`fetch` has no limit either", "Clients have limits of their own"),
    ("Whether `throttle.fetch` asks each host", "Whether the transports ask each host"),
    ("`rules` of autothrottle/robots", "`rules` of `autothrottle.robots`"),
    ("also as a promise", "also awaitable"),
    ("Each keeps its promise and context in memory", "Each keeps its task and context in memory"),
    ("`FakeClock` of autothrottle/testing", "`FakeClock` of `autothrottle.testing`"),
    ("Helpers: `byHost`, `byEndpoint`", "Helpers: `by_host`, `by_endpoint`"),
    ("`byDomainHierarchy`, `addScope`", "`by_domain_hierarchy`, `add_scope`"),
    ("as of Shopify and Discord: read a clone.", "as of Shopify and Discord."),
    ("It gets a clone of the response", "It gets the response"),
    ("`undefined`", "`None`"),
    ("`console.debug`", "the logger `autothrottle`"),
    ("`console.warn`", "`warnings.warn`"),
    ("With `redirects: 'throttle'`: the longest", "The longest"),
    ("Beyond it the redirect itself is the answer.", "Beyond it the next hop fails at once."),
    ("{ rate: 5 }", "rate=5"),
    ("{ defaults: rate=5 }", "defaults={\"rate\": 5}"),
    ("`'100/min'`", "`\"100/min\"`"),
    (
        "In `defaults` a function that makes one for each scope.",
        "In `defaults` a function of the scope's name.",
    ),
];

/// A text with its names and units as Python has them.
pub fn pythonic(text: &str) -> String {
    let mut out = text.to_string();
    for (from, to) in WORDS {
        out = out.replace(from, to);
    }
    for row in table::ROWS.iter().filter(|row| snake(row.key) != row.key) {
        out = out.replace(&format!("`{}`", row.key), &format!("`{}`", snake(row.key)));
        out = out.replace(&format!(".{}`", row.key), &format!(".{}`", snake(row.key)));
    }
    out.replace('`', "``")
}

fn class_of(of: Section) -> &'static str {
    object(of).python
}

fn type_of(row: &Row) -> String {
    if let Some((_, name)) = TYPES.iter().find(|(key, _)| *key == row.key) {
        return (*name).into();
    }
    match row.kind {
        Kind::Number { .. } | Kind::Fraction => "float".into(),
        Kind::Whole { .. } | Kind::Seed => "int".into(),
        Kind::Millis { .. } => "Seconds".into(),
        Kind::MillisOrFalse => "Seconds | Literal[False]".into(),
        Kind::Flag => "bool".into(),
        Kind::Target => "float | tuple[float, float]".into(),
        Kind::Codes { .. } => "Collection[int]".into(),
        Kind::Amounts => "Collection[float]".into(),
        Kind::Failures => "Collection[Literal[\"timeout\", \"connection\"]]".into(),
        Kind::Jitter => "Jitter".into(),
        Kind::Quota => "float | QuotaOptions | Sequence[float | QuotaOptions]".into(),
        Kind::Rate => "float | str | RateOptions".into(),
        Kind::Object(section) => class_of(section).into(),
        Kind::Named(section) => format!("Mapping[str, {}]", class_of(section)),
        Kind::FlagOr(section) => format!("bool | {}", class_of(section)),
        Kind::Word(words) => {
            let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
            format!("Literal[{}]", quoted.join(", "))
        }
        Kind::Text(_) => "str".into(),
        Kind::Texts(_) => "Collection[str]".into(),
        Kind::Function | Kind::Driver(_) => unreachable!("{} has a type of its own", row.key),
    }
}

/// The default in words; times in seconds.
fn default_of(row: &Row, text: &Text) -> String {
    let is_time = matches!(row.kind, Kind::Millis { .. });
    let own = |value| match value {
        DefaultValue::Number(number) if is_time => Some((number / 1000.0).to_string()),
        DefaultValue::Flag(flag) => Some((if flag { "True" } else { "False" }).into()),
        _ => None,
    };
    super::default_of(row, text, own, pythonic)
}

/// The documentation of a setting, in lines that fit.
fn doc(row: &Row, text: &Text) -> String {
    let mut doc = super::meaning(row, text, &default_of(row, text), pythonic);
    let scrapys = scrapys(text);
    if !scrapys.is_empty() {
        write!(doc, " {scrapys}").unwrap();
    }
    docstring(&doc)
}

fn scrapys(text: &Text) -> String {
    if text.scrapy.is_empty() { String::new() } else { format!("Scrapy: {}.", text.scrapy) }
}

pub fn docstring(text: &str) -> String {
    let one = format!("    \"\"\"{text}\"\"\"\n");
    if one.chars().count() <= 110 && !text.ends_with('"') {
        return one;
    }
    let mut out = String::new();
    let mut line = String::from("    \"\"\"");
    for word in text.split(' ') {
        if line.chars().count() + 1 + word.chars().count() > 109 {
            writeln!(out, "{line}").unwrap();
            line = String::from("   ");
        }
        if !line.ends_with('"') || line.trim() != "\"\"\"" {
            line.push(' ');
        }
        line.push_str(word);
    }
    write!(out, "{line}\n    \"\"\"\n").unwrap();
    out
}

/// The rows of a section as Python knows it: what its driver reads stands beside the rest.
fn rows_of(of: Section) -> impl Iterator<Item = (&'static Row, &'static Text)> {
    table::ROWS.iter().zip(table::TEXTS).filter(move |(row, _)| {
        let is_here = row.section == of || of == Section::Root && row.section == Section::Driver;
        is_here && table::is_pythons(row)
    })
}

fn field(row: &Row, text: &Text) -> String {
    format!("    {}: {}\n{}", snake(row.key), type_of(row), doc(row, text))
}

const HEAD: &str = r#""""The options' types, written from ``src/config/table.rs`` by ``cargo xtask write``: change them there.

Times are seconds: a number or a ``timedelta``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

if TYPE_CHECKING:
    from ._clock import Clock
    from ._hooks import (
        GetErrorBackoff,
        GetHints,
        GetResponseBackoff,
        GetResponseDelay,
        GetScopes,
        RetryWhen,
        RobotsRules,
    )
    from ._managers import MakeScopeManager, ScopeManager
    from .redis import Shared

Seconds: TypeAlias = float | timedelta
"""A time: seconds as a number, or a ``timedelta``."""

Jitter: TypeAlias = bool | float | tuple[float, float]
"""How far a delay may stray from its mean: ``True`` is ±50 %, ``0.2`` ±20 %, a pair its own ends."""

Snapshot: TypeAlias = Mapping[str, Any]
"""The result of ``throttle.snapshot()``."""
"#;

/// `options.py`.
pub fn types() -> String {
    let mut code = format!("{HEAD}\n__all__ = {}", exports::python_objects());
    // The class of an object stands before those that name it.
    for &Object { section, python: class, about, .. } in
        OBJECTS.iter().rev().filter(|all| !all.python.is_empty())
    {
        let mut base = "TypedDict, total=False".to_string();
        let is_required = |row: &Row| row.default == DefaultValue::Required;
        let required: String = rows_of(section)
            .filter(|(row, _)| is_required(row))
            .map(|(row, text)| field(row, text))
            .collect();
        if !required.is_empty() {
            write!(code, "\n\nclass _{class}Required(TypedDict):\n{required}").unwrap();
            base = format!("_{class}Required, total=False");
        }
        if section == Section::Root {
            base = "ScopeOptions, total=False".into();
        }
        write!(code, "\n\nclass {class}({base}):\n    \"\"\"{}\"\"\"\n", pythonic(about)).unwrap();
        for (row, text) in rows_of(section).filter(|(row, _)| !is_required(row)) {
            write!(code, "\n{}", field(row, text)).unwrap();
        }
    }
    code.push_str("\n\n# Defaults of settings that the engine does not read, in seconds.\n");
    for (name, default) in driver_defaults() {
        let default = match default {
            DefaultValue::Number(ms) => format!("{:?}", ms / 1000.0),
            DefaultValue::Words(words) => format!("({})", format!("{words:?}").trim_matches(['[', ']'])),
            _ => unreachable!("{name}"),
        };
        writeln!(code, "{name} = {default}").unwrap();
    }
    code
}
