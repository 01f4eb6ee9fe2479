//! Options that only a driver reads (hooks, robots.txt, redirects, how to read headers), checked where all
//! others are: one table, one wording, one list of problems.

use super::{
    host_of,
    reader::{Fields, Problems, join},
    table::{self, Kind, ROWS, Section},
};
use crate::{
    error::Problem,
    value::{Value, quoted, text},
};

/// Problems of the options that a driver reads. Functions come as [`Value::Other`], `a function`; objects of
/// the driver's own come only if they are not what they should be.
pub fn problems(options: Value) -> Vec<Problem> {
    let mut problems = Problems::default();
    check(Fields::of(options, String::new(), Section::Driver, &mut problems), Section::Driver);
    problems.0
}

/// Checks every field of a section that the engine has no use for.
fn check(mut fields: Fields, section: Section) {
    for row in ROWS.iter().filter(|row| row.section == section) {
        if row.default == table::DefaultValue::Required && !fields.has(row.key) {
            fields.require(row.key);
        }
        match row.kind {
            Kind::Flag => drop(fields.flag(row.key)),
            Kind::Word(_) => drop(fields.word(row.key)),
            Kind::Function => fields.function(row.key),
            Kind::Text(_) => drop(fields.text(row.key)),
            Kind::Driver(_) => fields.none(row.key),
            Kind::Object(inner) => {
                if let Some((value, path)) = fields.object(row.key) {
                    check(Fields::of(value, path, inner, fields.problems()), inner);
                }
            }
            Kind::Named(inner) => {
                if let Some((value, path)) = fields.object(row.key) {
                    check_named(value, &path, inner, fields.problems());
                }
            }
            _ => drop(fields.number(row.key)),
        }
    }
    fields.finish();
}

fn check_named(value: Value, path: &str, section: Section, problems: &mut Problems) {
    match value {
        Value::Map(entries) => {
            for (name, value) in entries {
                let path = join(path, &name);
                check_name(&name, &path, problems);
                match value {
                    value @ Value::Map(_) => check(Fields::of(value, path, section, problems), section),
                    other => problems.add(&path, "an object", other.describe()),
                }
            }
        }
        other => problems.add(path, "an object", other.describe()),
    }
}

/// Scopes are called by hosts: no request would ever wait in one that is called by a URL.
pub(super) fn check_name(name: &str, path: &str, problems: &mut Problems) {
    if let Some(host) = host_of(name) {
        problems.add(path, text(&["the host alone, ", &quoted(host)]), quoted(name));
    }
}
