//! Errors as classes: those of TypeScript and Python whose message has one form, and the table in
//! `docs/errors.md`, from `src/observe/errors.rs`.

use std::{fmt::Write, path::Path};

use autothrottle::{ERRORS, ErrorForm, record::camel_case};

use super::{
    python_options::{docstring, pythonic},
    typescript_options::comment,
};

/// A message in a language: `alternative` is which of `{this|that}`, `field` what stands for a field.
fn message(text: &str, alternative: usize, field: impl Fn(&str) -> String) -> String {
    let mut out = String::new();
    for (index, part) in text.split(['{', '}']).enumerate() {
        out += &match part.split_once('|') {
            _ if index % 2 == 0 => part.into(),
            Some((this, that)) => [this, that][alternative].into(),
            None => field(part),
        };
    }
    out
}

/// The table in `docs/errors.md`.
pub fn page(_: &Path) -> String {
    let mut page = String::from("\n| code | class | what happened | what to do |\n|---|---|---|---|\n");
    for error in ERRORS {
        let text = error.form.as_ref().map_or("", |form| form.message);
        let happened = error.happened.replace("{}", &message(text, 0, |_| "…".into()));
        writeln!(page, "| `{}` | `{}` | {happened} | {} |", error.code, error.class, error.cure).unwrap();
    }
    page + "\n"
}

fn is_span(field: &str) -> bool {
    field.ends_with("_ms")
}

/// Classes in `js/base/errors.ts`, as Biome has them.
pub fn typescript(_: &Path) -> String {
    let written = ERRORS.iter().filter(|error| !error.class.is_empty());
    let class = |(code, name, form): (&str, &str, &ErrorForm)| {
        let of = |field: &str| if is_span(field) { "number" } else { "string" };
        let kept = || form.fields.iter().filter(|(_, about)| !about.is_empty());
        let about = comment(&message(form.about, 0, str::to_string), "");
        let mut out = format!("\n{about}export class {name} extends ThrottleError {{\n");
        writeln!(out, "  declare readonly code: '{code}'").unwrap();
        for (field, about) in kept() {
            writeln!(out, "{}  readonly {}: {}", comment(about, "  "), camel_case(field), of(field)).unwrap();
        }
        let arguments = form.fields.iter().map(|(field, _)| format!("{}: {}", camel_case(field), of(field)));
        let cause = form.has_cause.then(|| "options?: ErrorOptions".into());
        let arguments = arguments.chain(cause).collect::<Vec<_>>().join(", ");
        let text = message(form.message, 0, |field| {
            if is_span(field) {
                format!("${{Math.round({} / 1000)}}", camel_case(field))
            } else {
                format!("${{{}}}", camel_case(field))
            }
        });
        let quote = if text.contains("${") { '`' } else { ['\'', '"'][usize::from(text.contains('\''))] };
        let mut given = vec![format!("'{code}'"), format!("{quote}{text}{quote}")];
        given.extend(form.has_cause.then(|| "options".into()));
        let line = format!("    super({})", given.join(", "));
        let lines = format!("    super(\n      {},\n    )", given.join(",\n      "));
        let call = if line.chars().count() <= 110 { line } else { lines };
        write!(out, "\n  constructor({arguments}) {{\n{call}\n").unwrap();
        for (field, _) in kept() {
            writeln!(out, "    this.{0} = {0}", camel_case(field)).unwrap();
        }
        out + "  }\n}\n"
    };
    written
        .filter_map(|error| Some((error.code, error.class, error.form.as_ref()?)))
        .map(class)
        .collect::<String>()
        + "\n"
}

/// Classes in `python/src/autothrottle/errors.py`, as ruff has them.
pub fn python(_: &Path) -> String {
    let written = ERRORS.iter().filter(|error| !error.python.is_empty());
    let class = |(code, name, form): (&str, &str, &ErrorForm)| {
        let named = |field: &str| if is_span(field) { "seconds".into() } else { field.to_string() };
        let of = |field: &str| if is_span(field) { "float" } else { "str" };
        let kept = || form.fields.iter().filter(|(_, about)| !about.is_empty());
        let also = if form.also.is_empty() { String::new() } else { format!(", {}", form.also) };
        let about = docstring(&pythonic(&message(form.about, 1, str::to_string)));
        let mut out = format!("\n\nclass {name}(ThrottleError{also}):\n{about}\n    code = \"{code}\"\n\n");
        let arguments = form.fields.iter().map(|(field, _)| format!(", {}: {}", named(field), of(field)));
        writeln!(out, "    def __init__(self{}) -> None:", arguments.collect::<String>()).unwrap();
        for (field, about) in kept() {
            let about = docstring(&pythonic(about)).replace("    ", "        ");
            write!(out, "        self.{0} = {0}\n{about}", named(field)).unwrap();
        }
        let text = message(form.message, 1, |field| {
            if is_span(field) { format!("{{round({})}}", named(field)) } else { format!("{{{field}}}") }
        });
        let mark = if text.contains('{') { "f" } else { "" };
        let line = format!("        super().__init__({mark}\"{text}\")\n");
        let lines = format!("        super().__init__(\n            {mark}\"{text}\"\n        )\n");
        out += if line.chars().count() <= 111 { &line } else { &lines };
        if kept().count() > 0 && kept().count() == form.fields.len() {
            let types: Vec<_> = kept().map(|(field, _)| of(field)).collect();
            let values: Vec<_> = kept().map(|(field, _)| format!("self.{}", named(field))).collect();
            write!(
                out,
                "\n    def __reduce__(self) -> tuple[type[{name}], tuple[{}]]:\n        \
                 return type(self), ({})\n",
                types.join(", "),
                if let [one] = &values[..] { format!("{one},") } else { values.join(", ") }
            )
            .unwrap();
        }
        out
    };
    written
        .filter_map(|error| Some((error.code, error.python, error.form.as_ref()?)))
        .map(class)
        .collect::<String>()
        + "\n\n"
}
