//! The lists of events in TypeScript and Python, classes of those whose fields have plain types, and their
//! table in `docs/events.md`, from `src/observe/events.rs`.

use std::{fmt::Write, path::Path};

use autothrottle::{EVENTS, EventForm, EventRow, FieldType, record::camel_case};

use super::{
    exports,
    python_options::{docstring, pythonic},
    python_records::literal,
    typescript_options::comment,
};

/// The table in `docs/events.md`.
pub fn page(_: &Path) -> String {
    let mut page = String::from("\n| event | when | what it carries |\n|---|---|---|\n");
    for EventRow { kind, when, fields, .. } in EVENTS {
        writeln!(page, "| `{kind}` | {when} | {fields} |").unwrap();
    }
    page + "\n"
}

/// A sentence without links.
fn sentence(when: &str) -> String {
    let mut out = String::new();
    let mut rest = when;
    while let Some((before, (word, after))) =
        rest.split_once('[').and_then(|(before, link)| Some((before, link.split_once("](")?)))
    {
        out += before;
        out += word;
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    out += rest;
    format!("{}{}.", out[..1].to_uppercase(), &out[1..])
}

/// Each class that is written, with the form that it has.
fn forms() -> impl Iterator<Item = (&'static EventRow, &'static EventForm)> {
    EVENTS.iter().filter_map(|event| Some((event, event.form.as_ref()?)))
}

/// TypeScript's classes of events.
pub fn interfaces(_: &Path) -> String {
    let mut code = String::new();
    for (EventRow { class, .. }, form) in forms() {
        write!(code, "\n{}export interface {class} extends Event {{\n", comment(form.about, "")).unwrap();
        for (field, of, meaning) in form.fields {
            let of = match of {
                FieldType::Text => "string",
                FieldType::MaybeText => "string | undefined",
                FieldType::Whole | FieldType::Time => "number",
                FieldType::MaybeTime => "number | undefined",
                FieldType::WarningCode => "WarningCode",
                FieldType::SharedStats => "SharedStats",
            };
            writeln!(code, "{}  readonly {}: {of}", comment(meaning, "  "), camel_case(field)).unwrap();
        }
        code += "}\n";
    }
    code + "\n"
}

/// Python's classes of events, as ruff has them.
pub fn dataclasses(_: &Path) -> String {
    let mut code = String::new();
    for (EventRow { python, .. }, form) in forms() {
        let about = docstring(&pythonic(form.about));
        write!(
            code,
            "\n\n@dataclass(frozen=True, slots=True)\nclass {python}:\n{about}\n    kind: EventKind\n"
        )
        .unwrap();
        for (field, of, meaning) in form.fields {
            let of = match of {
                FieldType::Text => "str",
                FieldType::MaybeText => "str | None",
                FieldType::Whole => "int",
                FieldType::Time => "float",
                FieldType::MaybeTime => "float | None",
                FieldType::WarningCode => "WarningCode",
                FieldType::SharedStats => "SharedStats",
            };
            // `for` is a word of Python's, and errors call a span so, too.
            let field = if *field == "for_ms" { "seconds" } else { field.trim_end_matches("_ms") };
            write!(code, "    {field}: {of}\n{}", docstring(&pythonic(meaning))).unwrap();
        }
    }
    code + "\n\n"
}

/// The members of `ThrottleEvents`.
pub fn members(_: &Path) -> String {
    let member = |event: &EventRow| {
        format!("{}  {}: {}\n", comment(&sentence(event.when), "  "), event.kind, event.class)
    };
    EVENTS.iter().map(member).collect()
}

/// All types, as words.
pub fn types(_: &Path) -> String {
    let words = EVENTS.iter().map(|event| event.kind).collect::<Vec<_>>().join(" ");
    let gap = if words.len() + 16 > 110 { "\n  " } else { " " };
    format!("const TYPES ={gap}'{words}'\n")
}

/// The fields of `Topics`.
pub fn topics(_: &Path) -> String {
    let mut code = String::new();
    for event in EVENTS {
        writeln!(code, "  declare readonly {}: Topic", event.kind).unwrap();
    }
    code
}

/// Whether a change of a scope's pace has a listener.
pub fn paces(_: &Path) -> String {
    let each: Vec<_> = EVENTS
        .iter()
        .filter(|event| event.is_pace())
        .map(|event| format!("      this.{}.hasObservers", event.kind))
        .collect();
    format!("    return (\n{}\n    )\n", each.join(" ||\n"))
}

/// Python's classes, in order, with the types that each is for.
fn classes() -> Vec<(&'static str, Vec<&'static str>)> {
    let mut classes: Vec<(&str, Vec<&str>)> = Vec::new();
    for event in EVENTS {
        let found = classes.iter().position(|(class, _)| *class == event.python);
        let at = found.unwrap_or_else(|| {
            classes.push((event.python, Vec::new()));
            classes.len() - 1
        });
        classes[at].1.push(event.kind);
    }
    classes
}

/// `RequestEvent`: `Request`.
fn stem(class: &str) -> &str {
    class.trim_end_matches("Event")
}

/// Python's types of events, all and by class.
pub fn kinds(_: &Path) -> String {
    let all: Vec<_> = EVENTS.iter().map(|event| (event.kind, "")).collect();
    let mut code = literal("EventKind", &all);
    for (class, kinds) in classes() {
        let words: Vec<_> = kinds.iter().map(|kind| format!("\"{kind}\"")).collect();
        writeln!(code, "{}Kind: TypeAlias = Literal[{}]", stem(class), words.join(", ")).unwrap();
    }
    code
}

/// Python's listeners by class.
pub fn listeners(_: &Path) -> String {
    let names: Vec<_> = classes().iter().map(|(class, _)| *class).collect();
    let union = format!("    {}\n", names.join(" | "));
    let union = if union.len() > 111 { format!("    {}\n", names.join("\n    | ")) } else { union };
    let exported = exports::list(&names.iter().copied().chain(["Event"]).collect());
    let mut code = format!("__all__ = {exported}\nEvent: TypeAlias = (\n{union})\n");
    for class in names {
        let of = stem(class);
        writeln!(code, "On{of} = TypeVar(\"On{of}\", bound=Callable[[{class}], object])").unwrap();
    }
    code
}

/// Python's forms of `on`.
pub fn overloads(_: &Path) -> String {
    let mut code = String::new();
    for (class, _) in classes() {
        let of = stem(class);
        let takes = format!("self, kind: {of}Kind, listener: Callable[[{class}], T]");
        let line = format!("    def on({takes}) -> Callable[[{class}], T]: ...\n");
        let lines = format!("    def on(\n        {takes}\n    ) -> Callable[[{class}], T]: ...\n");
        write!(code, "    @overload\n{}", if line.len() > 111 { lines } else { line }).unwrap();
    }
    for (class, _) in classes() {
        let of = stem(class);
        write!(code, "    @overload\n    def on(self, kind: {of}Kind) -> Callable[[On{of}], On{of}]: ...\n")
            .unwrap();
    }
    code
}
