//! All files that are written from rows of Rust: the table of settings (`src/config/table.rs`), what comes
//! out of the engine (`src/record.rs`), errors and events (`src/observe/`), and its verbs (`src/boundary/`).
//!
//! `cargo xtask write` writes them. The native tests compile this folder too, and compare what is committed.

mod errors;
mod events;
mod exports;
pub mod python_options;
mod python_records;
mod settings_page;
pub mod tower_options;
pub mod typescript_options;
mod typescript_records;
pub mod verbs;

use std::{fs, path::Path};

use autothrottle::config::table::{self, DefaultValue, Kind, Object, Row, Section, Text as Texts};

/// A file that is written from Rust.
pub struct Written {
    /// Where it stands in the repository.
    pub file: &'static str,
    text: Text,
    /// git ignores the others, which `npm run build` writes.
    is_committed: bool,
}

enum Text {
    Whole(fn() -> String),
    /// Lines between two marks, for each mark: [`BEGINS`] with its word, and [`ENDS`].
    Parts(&'static [Part]),
}

/// A mark's word, and the lines below it.
type Part = (&'static str, fn(&Path) -> String);

const BEGINS: &str = "written by `cargo xtask write`: ";
const ENDS: &str = "end of what is written";

const fn whole(file: &'static str, text: fn() -> String) -> Written {
    Written { file, text: Text::Whole(text), is_committed: true }
}

const fn parts(file: &'static str, parts: &'static [Part]) -> Written {
    Written { file, text: Text::Parts(parts), is_committed: true }
}

const fn built(file: &'static str, text: fn() -> String) -> Written {
    Written { file, text: Text::Whole(text), is_committed: false }
}

/// Each of them.
pub const FILES: &[Written] = &[
    whole("docs/settings.md", settings_page::page),
    parts("docs/events.md", &[("events", events::page), ("warnings", settings_page::warnings)]),
    parts("docs/hints.md", &[("fields of vendors", settings_page::vendors)]),
    parts("docs/errors.md", &[("errors", errors::page)]),
    parts("js/base/errors.ts", &[("errors", errors::typescript)]),
    parts(
        "python/src/autothrottle/errors.py",
        &[("names of errors", exports::python_errors), ("errors", errors::python)],
    ),
    parts(
        "js/core/events.ts",
        &[
            ("classes of events", events::interfaces),
            ("events", events::members),
            ("types of events", events::types),
            ("topics", events::topics),
            ("topics of a pace", events::paces),
        ],
    ),
    parts(
        "python/src/autothrottle/_events.py",
        &[
            ("kinds of events", events::kinds),
            ("classes of events", events::dataclasses),
            ("listeners", events::listeners),
            ("forms of a listener", events::overloads),
        ],
    ),
    parts("js/options/options.ts", &[("objects of settings", exports::typescript_objects)]),
    parts(
        "js/throttle/everywhere.ts",
        &[
            ("errors of one form", exports::typescript_errors),
            ("classes of events", exports::typescript_events),
        ],
    ),
    whole("python/src/autothrottle/options.py", python_options::types),
    parts("python/src/autothrottle/__init__.py", &[("exports", exports::python)]),
    whole("python/src/autothrottle/_records.py", python_records::records),
    whole("python/src/autothrottle/_stats.py", python_records::stats),
    whole("tower/src/settings.rs", tower_options::structs),
    whole("js/answers/generated.ts", typescript_records::field_words),
    parts(
        "crates/bindings/javascript/src/lib.rs",
        &[("verbs", verbs::javascript), ("verbs that make room", verbs::javascript_with_room)],
    ),
    parts("crates/bindings/component/src/lib.rs", &[("verbs", verbs::component)]),
    parts("crates/bindings/component/wit/engine.wit", &[("verbs", verbs::engine_wit)]),
    parts("crates/bindings/python/src/engine.rs", &[("verbs", verbs::python)]),
    parts("crates/bindings/python/src/shared.rs", &[("verbs of a group", verbs::python_group)]),
    parts("crates/bindings/shared/src/lib.rs", &[("verbs of a group", verbs::shared)]),
    parts(
        "python/src/autothrottle/_native.pyi",
        &[("verbs", verbs::engine_pyi), ("verbs of a group", verbs::group_pyi)],
    ),
    parts("python/src/autothrottle/_shared/host.py", &[("verbs of a group", verbs::group_py)]),
    parts("js/wasm/engine.ts", &[("verbs", verbs::engine_ts)]),
    parts("js/core/host.ts", &[("verbs", verbs::host_ts)]),
    parts("js/shared/host.ts", &[("verbs of a group", verbs::group_ts)]),
    built("js/options/generated.ts", typescript_options::types),
    built("js/wasm/generated.ts", typescript_records::types),
];

impl Written {
    /// The whole text of the file, as it is to be.
    pub fn text(&self, root: &Path) -> String {
        match self.text {
            Text::Whole(text) => text(),
            Text::Parts(parts) => {
                let found = fs::read_to_string(root.join(self.file)).unwrap_or_default();
                parts.iter().fold(found, |text, (mark, part)| self.placed(&text, mark, &part(root)))
            }
        }
    }

    fn placed(&self, text: &str, mark: &str, part: &str) -> String {
        let lacks = || -> ! { panic!("{} has no place for {mark}", self.file) };
        let begin = format!("{BEGINS}{mark}");
        // A page ends its comment.
        let mut begins = ["\n", " -->\n"].into_iter().map(|end| begin.clone() + end);
        let Some(begin) = begins.find(|begin| text.contains(begin.as_str())) else { lacks() };
        let Some((before, rest)) = text.split_once(&begin) else { lacks() };
        let Some(end) = rest.find(ENDS) else { lacks() };
        let end = rest[..end].rfind('\n').map_or(0, |end| end + 1);
        format!("{before}{begin}{part}{}", &rest[end..])
    }
}

/// The committed files that are not what they would be written as.
pub fn stale(root: &Path) -> Vec<&'static str> {
    let is_stale = |written: &&Written| {
        let found = fs::read_to_string(root.join(written.file)).unwrap_or_default();
        written.is_committed && found != written.text(root)
    };
    FILES.iter().filter(is_stale).map(|written| written.file).collect()
}

/// The object of a section.
fn object(section: Section) -> &'static Object {
    table::OBJECTS.iter().find(|object| object.section == section).expect("each section has one")
}

/// The defaults that drivers read, with the names of their constants.
fn driver_defaults() -> impl Iterator<Item = (&'static str, DefaultValue)> {
    let rows = [
        (Section::Driver, "redirectMaxDelay", "REDIRECT_MAX_DELAY"),
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
    text: &Texts,
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
fn meaning(row: &Row, text: &Texts, default: &str, tongue: impl Fn(&str) -> String) -> String {
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
