//! The exports of what is written: names of types that a package gives its users, in `options.ts`,
//! `everywhere.ts` and `__init__.py`.

use std::{collections::BTreeSet, fmt::Write, path::Path};

use autothrottle::{
    ERRORS, EVENTS,
    config::table::{self, OBJECTS},
};

/// `export type { A, B } from 'file'`, as Biome has it. Between empty lines it sorts no other export into it.
fn export(kind: &str, names: &BTreeSet<&str>, file: &str) -> String {
    let names: Vec<_> = names.iter().copied().collect();
    format!("\n{kind} {{\n  {},\n}} from '{file}'\n\n", names.join(",\n  "))
}

/// Python's list of names, as ruff has it.
pub fn list(names: &BTreeSet<&str>) -> String {
    let mut code = String::from("[\n");
    for name in names {
        writeln!(code, "    \"{name}\",").unwrap();
    }
    code + "]\n"
}

/// Python's types of options.
pub fn python_objects() -> String {
    list(&objects().collect())
}

fn objects() -> impl Iterator<Item = &'static str> {
    OBJECTS.iter().map(|object| object.python).filter(|name| !name.is_empty())
}

/// TypeScript's interfaces of a throttle's options. Those of a simulation have an entry of their own.
pub fn typescript_objects(_: &Path) -> String {
    let is_throttles = |of| table::ROWS.iter().any(|row| row.section == of);
    let objects = OBJECTS.iter().filter(|object| is_throttles(object.section));
    export("export type", &objects.map(|object| object.typescript).collect(), "./generated.js")
}

/// TypeScript's classes of errors that are written.
pub fn typescript_errors(_: &Path) -> String {
    let written = ERRORS.iter().filter(|error| error.form.is_some());
    export("export", &written.map(|error| error.class).collect(), "../base/errors.js")
}

/// TypeScript's classes of events.
pub fn typescript_events(_: &Path) -> String {
    export("export type", &EVENTS.iter().map(|event| event.class).collect(), "../core/events.js")
}

/// Python's classes of errors.
pub fn python_errors(_: &Path) -> String {
    format!("__all__ += {}", list(&errors().collect()))
}

fn errors() -> impl Iterator<Item = &'static str> {
    ERRORS.iter().map(|error| error.python).filter(|class| !class.is_empty())
}

/// Python's names in the package itself, beside those that are there by hand.
pub fn python(_: &Path) -> String {
    let events = EVENTS.iter().map(|event| event.python).chain(["Event"]);
    format!("__all__ += {}", list(&objects().chain(errors()).chain(events).collect()))
}
