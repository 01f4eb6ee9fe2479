//! `js/wasm/generated.ts`: TypeScript's types of what comes out of the engine, from the rows of
//! `src/record.rs`. Names are in TypeScript's case, and what is missing is `undefined`.

use std::fmt::Write;

use autothrottle::{
    BudgetStats, Diagnostic, Effective, Failure, Heard, Held, Named, Notice, Pace, Reason, Robots,
    ScopeStats, SharedStats, Stall, Stats, WARNINGS, Warning, Watch,
    boundary::Settled,
    record::{Field, Record, Words, camel_case},
};

use super::typescript_options::comment;

/// Words with their names in TypeScript and Python; empty where a language has none.
pub const WORDS: [(Words, &str, &str); 5] = [
    (Reason::WORDS, "Reason", "Reason"),
    (Settled::WORDS, "Settled", "SettledKind"),
    (Robots::WORDS, "RobotsOutcome", "Robots"),
    (Watch::WORDS, "", "Watching"),
    (Failure::WORDS, "", "Failure"),
];

/// The records of statistics.
pub const STATS: [Record; 4] = [BudgetStats::RECORD, ScopeStats::RECORD, SharedStats::RECORD, Stats::RECORD];

/// The records of notices. Only the first has a name for users.
const NOTICES: [Record; 6] =
    [Pace::RECORD, Held::RECORD, Heard::RECORD, Diagnostic::RECORD, Stall::RECORD, Named::RECORD];

/// The fields that a host adds to the engine's.
const ADDED: [(&str, Field); 1] = [(
    "Stats",
    Field {
        name: "shared",
        kind: "Rare<SharedStats>",
        about: " The group of a throttle that processes share; `None` for a throttle of one process.",
    },
)];

/// The fields of a record. Those of a record in it stand among them.
pub fn fields_of(record: &Record) -> Vec<Field> {
    let flat = [Effective::RECORD, Pace::RECORD];
    let of = |field: &Field| match flat.iter().find(|flat| flat.name == field.kind) {
        Some(flat) => flat.fields.to_vec(),
        None => vec![*field],
    };
    let added = ADDED.iter().filter(|(name, _)| *name == record.name).map(|(_, field)| *field);
    record.fields.iter().flat_map(of).chain(added).collect()
}

/// A text in another language's words: `name` gives a field's name, `none` is what is missing.
pub fn translated(text: &str, name: impl Fn(&str) -> String, none: &str) -> String {
    let mut out = text.trim().replace("`None`", &format!("`{none}`"));
    for field in STATS.iter().flat_map(fields_of).filter(|field| name(field.name) != field.name) {
        out = out.replace(&format!("`{}`", field.name), &format!("`{}`", name(field.name)));
    }
    out
}

/// The type inside `Option<` and `>`, and whether it may be missing, or its key.
pub fn inside(kind: &str) -> (&str, bool, bool) {
    let within = |of| kind.strip_prefix(of).and_then(|rest| rest.strip_suffix('>'));
    match (within("Option<"), within("Rare<")) {
        (Some(kind), _) => (kind, true, false),
        (_, Some(kind)) => (kind, true, true),
        _ => (kind, false, false),
    }
}

/// Of records by name: which.
pub fn named(kind: &str) -> Option<&str> {
    kind.strip_prefix("Vec<(String, ")?.strip_suffix(")>")
}

fn type_of(kind: &str) -> String {
    match kind {
        "f64" | "u32" | "u64" => "number".into(),
        "bool" => "boolean".into(),
        "String" => "string".into(),
        "Shares" => "Partial<Record<Reason | 'elsewhere', number>>".into(),
        kind => named(kind).map_or(kind.into(), |record| format!("Record<string, {record}>")),
    }
}

fn members(fields: &[Field]) -> String {
    let member = |field: &Field| {
        let (kind, may_miss, has_no_key) = inside(field.kind);
        let (mark, or) = match (may_miss, has_no_key) {
            (_, true) => ("?", ""),
            (true, _) => ("", " | undefined"),
            _ => ("", ""),
        };
        let about = comment(&translated(field.about, camel_case, "undefined"), "  ");
        format!("{about}  {}{mark}: {}{or}\n", camel_case(field.name), type_of(kind))
    };
    fields.iter().map(member).collect()
}

fn interface(record: &Record, is_public: bool) -> String {
    let export = if is_public { "export " } else { "" };
    let (extends, fields) = match record.fields {
        [first, rest @ ..] if first.kind == "Pace" => (" extends Pace", rest.to_vec()),
        _ => ("", fields_of(record)),
    };
    let about = comment(record.about.trim(), "");
    format!("\n{about}{export}interface {}{extends} {{\n{}}}\n", record.name, members(&fields))
}

/// A text, and what each word of a list says.
fn list(about: &str, words: impl Iterator<Item = (&'static str, &'static str)>) -> String {
    let mut out = format!("\n/**\n * {}\n *\n", about.trim());
    for (word, about) in words {
        writeln!(out, " * - `{word}`: {}", about.trim()).unwrap();
    }
    out + " */\n"
}

/// The words in the names of fields that tell of limits.
pub fn field_words() -> String {
    let words = autothrottle::headers::SAYS_SOMETHING.join("|");
    format!(
        "/** Words in the names of fields that tell of limits: `crates/reading/src/headers/dialects.rs`, by `cargo xtask write`. */\n\
         export const SAYS_SOMETHING =\n  /{words}/i\n"
    )
}

/// The warnings of a language's hosts.
pub fn warnings_of(language: &str) -> impl Iterator<Item = &'static Warning> {
    WARNINGS.iter().filter(move |warning| warning.only.is_empty() || warning.only == language)
}

fn warnings() -> String {
    let mut code =
        String::from("\n/** Which warning. `docs/events.md` says what each means and what to do. */\n");
    code += "export type WarningCode =\n";
    for warning in warnings_of("JavaScript") {
        writeln!(code, "  | '{}'", warning.code).unwrap();
    }
    code += "\n/** @internal The effects of settings: on a scope, in words before its name, and on all. */\n";
    code += "export const FINDINGS = {\n";
    for warning in WARNINGS.iter().filter(|warning| !warning.does.is_empty()) {
        writeln!(code, "  '{}': ['{}', '{}'],", warning.code, warning.does, warning.does_to_all()).unwrap();
    }
    code + "}\n"
}

/// `js/wasm/generated.ts`.
pub fn types() -> String {
    let mut code = String::from(
        "/** The engine's output. `npm run build` writes it as `src/record.rs` says: change it in Rust. */\n",
    );
    for (words, name, _) in WORDS.iter().filter(|(_, name, _)| !name.is_empty()) {
        code += &list(words.about, words.words.iter().copied());
        let each: Vec<_> = words.words.iter().map(|(word, _)| format!("'{word}'")).collect();
        let mut choice = format!(" {}", each.join(" | "));
        if choice.len() > 80 {
            choice = format!(" |{choice}").replace(" | ", "\n  | "); // as Biome has it
        }
        writeln!(code, "export type {name} ={choice}").unwrap();
        if *name != "Reason" {
            let all = words.name.to_uppercase();
            write!(code, "\n/** @internal By their numbers at the boundary. */\n").unwrap();
            writeln!(code, "export const {all}: readonly {name}[] = [{}]", each.join(", ")).unwrap();
        }
    }
    for record in &STATS {
        code += &interface(record, true);
    }
    for record in &NOTICES {
        code += &interface(record, record.name == "Pace");
    }
    code += &warnings();
    code += &list(Notice::ABOUT, Notice::KINDS.iter().map(|(kind, about, _)| (*kind, *about)));
    code += "export type Notice =\n";
    for (kind, _, record) in Notice::KINDS {
        writeln!(code, "  | ({{ kind: '{kind}' }} & {})", record.name).unwrap();
    }
    code
}
