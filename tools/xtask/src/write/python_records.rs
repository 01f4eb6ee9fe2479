//! Python's types of the rows of `src/record.rs`: the engine's in whole nanoseconds (`_records.py`) and a
//! throttle's in seconds (`_stats.py`). Names are in Python's case and have no unit. (The native module fills
//! them in: `crates/bindings/python/src/answers.rs`.)

use std::{collections::BTreeSet, fmt::Write};

use autothrottle::{
    Notice, WARNINGS,
    record::{Field, Record},
};

use super::{
    python_options::docstring,
    typescript_records::{STATS, WORDS, fields_of, inside, named, translated, warnings_of},
};

/// `delay_ms` is `delay`; `for` is a word of Python's own.
fn name(field: &str) -> String {
    let name = field.strip_suffix("_ms").unwrap_or(field);
    if name == "for" { "span".into() } else { name.into() }
}

fn is_time(field: &Field) -> bool {
    ["_ms", "_at", "_until", "_since"].iter().any(|end| field.name.ends_with(end))
}

/// The type of a field, of the engine's records or of those in seconds; and its default, if it may miss.
fn type_of(field: &Field, is_engines: bool) -> (String, &'static str) {
    let (kind, may_miss, _) = inside(field.kind);
    let map = if is_engines { "dict" } else { "Mapping" };
    let plain = match kind {
        _ if is_time(field) => if is_engines { "int" } else { "float" }.into(),
        "f64" => "float".into(),
        "u32" | "u64" => "int".into(),
        "bool" => "bool".into(),
        "String" => "str".into(),
        "Shares" => format!("{map}[str, float]"),
        kind => named(kind).map_or(kind.into(), |record| format!("{map}[str, {record}]")),
    };
    match named(kind) {
        _ if !may_miss => (plain, ""),
        Some(_) => (plain, " = field(default_factory=dict)"),
        None => (plain, " | None = None"),
    }
}

/// A text with Python's names and units.
fn pythonic(text: &str, unit: &str) -> String {
    let text = translated(text, name, "None")
        .replace("milliseconds of engine time", "milliseconds of the throttle's clock");
    text.replace("; infinite before", ", and before").replace("milliseconds", unit).replace('`', "``")
}

/// A record as a class. A field with a default stands last.
fn class(record: &Record, is_engines: bool) -> String {
    let mut code = String::new();
    let (mut fields, about) = (fields_of(record), record.about.trim());
    fields.sort_by_key(|field| inside(field.kind).1);
    if is_engines {
        let twin = format!("{about} The fields of ``throttle.stats()``, times in nanoseconds.");
        write!(code, "\n\n@dataclass(frozen=True)\nclass {}:\n{}\n", record.name, docstring(&twin)).unwrap();
    } else {
        let about = format!("{about} Times are seconds.");
        let head = "@dataclass(frozen=True, slots=True)\nclass";
        write!(code, "\n\n{head} {}(InSeconds):\n{}\n", record.name, docstring(&about)).unwrap();
    }
    for field in fields {
        let (kind, default) = type_of(&field, is_engines);
        writeln!(code, "    {}: {kind}{default}", name(field.name)).unwrap();
        if !is_engines {
            code += &docstring(&pythonic(field.about, "seconds"));
        }
    }
    code
}

/// A docstring that says what each word means.
fn meanings(about: &str, words: &[(&str, &str)], indent: &str) -> String {
    let mut out = format!("{indent}\"\"\"{}\n\n", about.trim());
    for (word, about) in words {
        let line = docstring(&format!("* ``{word}``: {}", pythonic(about, "nanoseconds")));
        let line = line.trim().trim_matches('"').trim_end().replace("\n    ", &format!("\n{indent}  "));
        writeln!(out, "{indent}{line}").unwrap();
    }
    out + indent + "\"\"\"\n"
}

/// A list of words as a type.
pub fn literal(name: &str, words: &[(&str, &str)]) -> String {
    let each: Vec<_> = words.iter().map(|(word, _)| format!("    \"{word}\",")).collect();
    format!("\n{name}: TypeAlias = Literal[\n{}\n]\n", each.join("\n"))
}

/// The notices as one class: what a kind does not tell is `None`.
fn notice() -> String {
    let kinds: Vec<_> = Notice::KINDS.iter().map(|(kind, about, _)| (*kind, *about)).collect();
    let mut code = literal("NoticeKind", &kinds);
    code += &meanings("The kinds of a notice.", &kinds, "");
    code += "\n\n@dataclass(frozen=True)\nclass Notice:\n";
    code += &docstring(&format!("{} A field that a kind does not have is ``None``.", Notice::ABOUT.trim()));
    code += "\n    kind: NoticeKind\n    \"\"\"The kind.\"\"\"\n";
    let mut told: Vec<(Field, Vec<String>)> = Vec::new();
    for (kind, _, record) in Notice::KINDS {
        for field in fields_of(record) {
            match told.iter_mut().find(|(known, _)| known.name == field.name) {
                Some((_, kinds)) => kinds.push(format!("``{kind}``")),
                None => told.push((field, vec![format!("``{kind}``")])),
            }
        }
    }
    for (field, kinds) in told {
        let is_always = kinds.len() == Notice::KINDS.len();
        let (default, of) =
            if is_always { ("", String::new()) } else { (" | None = None", kinds.join(", ") + ": ") };
        let about = pythonic(field.about, "nanoseconds");
        writeln!(code, "    {}: {}{default}", name(field.name), type_of(&field, true).0).unwrap();
        code += &docstring(&format!("{of}{about}"));
    }
    code
}

fn warnings() -> String {
    let codes: Vec<_> = warnings_of("Python").map(|warning| (warning.code, warning.about)).collect();
    let of_groups: Vec<_> = codes.iter().copied().filter(|(code, _)| code.starts_with("group-")).collect();
    let mut code = format!("\n{}", literal("WarningCode", &codes));
    code += "\"\"\"Which warning: events.md says what each means and what to do.\"\"\"\n";
    code += &literal("SharedCode", &of_groups);
    code += "\"\"\"Warnings of a limit that processes share.\"\"\"\n";
    code += "\nFINDINGS = {\n";
    for warning in WARNINGS.iter().filter(|warning| !warning.does.is_empty()) {
        writeln!(code, "    {:?}: ({:?}, {:?}),", warning.code, warning.does, warning.does_to_all()).unwrap();
    }
    code + "}\n\"\"\"The effects of settings: on a scope, in words before its name, and on all.\"\"\"\n"
}

const HEAD: &str = r#""""The engine's output. ``cargo xtask write`` writes it from ``src/record.rs``: change it there.

Instants and spans are whole nanoseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias
"#;

const HEAD_IN_SECONDS: &str = r#""""The state of a throttle. ``cargo xtask write`` writes it from ``src/record.rs``: change it there.

Times are seconds; instants are those of the throttle's clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ._records import Reason
from ._seconds import InSeconds
"#;

/// `_records.py`.
pub fn records() -> String {
    let mut code = String::from(HEAD);
    let times: BTreeSet<_> = STATS
        .iter()
        .flat_map(fields_of)
        .filter(is_time)
        .map(|field| format!("    \"{}\",\n", name(field.name)))
        .collect();
    write!(
        code,
        "\nTIMES = {{\n{}}}\n\"\"\"The fields that are instants or spans.\"\"\"\n",
        String::from_iter(times)
    )
    .unwrap();
    for (words, _, alias) in WORDS {
        code += &literal(alias, words.words);
        code += &meanings(words.about, words.words, "");
    }
    for record in &STATS {
        code += &class(record, true);
    }
    code += "\n";
    code += &notice();
    code += &warnings();
    code
}

/// `_stats.py`.
pub fn stats() -> String {
    let mut code = String::from(HEAD_IN_SECONDS);
    for record in &STATS {
        code += &class(record, false);
    }
    code
}
