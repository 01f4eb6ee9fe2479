//! The verbs of the engine, read from `impl Boundary` (`src/boundary/`): its hosts forward most of them, and
//! those lines are written from here, between two marks in each host's file. A group's are read from `impl
//! Shared` (`crates/shared/src/`) in the same way.

// A line that is put together where it stands reads better than one that is written into a buffer.
#![allow(clippy::format_collect, clippy::format_push_string)]

mod pages;
mod rust;

use std::{fs, path::Path};

pub use pages::{engine_pyi, engine_ts, engine_wit, group_py, group_pyi, group_ts, host_ts};
pub use rust::{component, javascript, javascript_with_room, python, python_group, shared};

/// Verbs that each host has by hand, for its form of them is its own: `tests/native/verbs.rs` names one that
/// a host lacks. Beside each stands the reason.
pub const BY_HAND: &[(&str, &str)] = &[
    ("adopt", "needs of a request, and errors"),
    ("configure", "a document, and errors"),
    ("crawl_delay", "words for its outcome"),
    ("pause", "one scope, or all"),
    ("peek", "a record, and errors"),
    ("poll", "one decision, or one ticket after another"),
    ("restore", "a document, and errors"),
    ("resume", "one scope, or all"),
    ("scope_stats", "a record"),
    ("send_at_once", "needs of a request, and errors"),
    ("settle", "the outcome in each language's words"),
    ("snapshot", "a document"),
    ("stats", "a record"),
    ("submit", "needs of a request, and errors"),
    ("take_notices", "records"),
    ("wake_at", "a part of what `poll` gives, or a getter"),
    ("watch", "words for its levels"),
];

/// Verbs that no host forwards by their name: parts and other forms of those by hand, and what the machine of
/// a group asks.
pub const INSIDE: &str = "adopt_known asked_ms digest_budgets config digest engine has_room \
    may_send_ahead new notices pause_all reason reason_at reason_scope \
    refused_ms refused_path refused_scope route_by scope_stats_at seed \
    send_ahead send_many_at_once settle_plain settle_unrouted snapshot_of stats_at stats_of \
    submit_again submit_many wants_seed";

/// Of an engine alone. In a group each request waits for a word of the leader, whose queue has one order.
/// State and notices come by messages.
pub const ALONE: &str = "adopt has_notices name prioritize restore scope send_at_once take_notices";

/// Those of a group that its hosts write by hand, beside [`BY_HAND`]: names are a table of each process, and
/// orders have a form of their own.
pub const GROUP_BY_HAND: &str = "adjust find hold intern keep_alive release reset scopes";

/// The kind of an argument, by its name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Instant,
    Span,
    Scope,
    Ticket,
    Number,
    Flag,
    Text,
}

/// The result of a verb, by its type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gives {
    Nothing,
    Flag,
    Handle,
    Found,
    Count,
    Name,
}

/// A method that hosts forward.
struct Verb {
    name: String,
    /// Whether it takes `&mut self`.
    changes: bool,
    arguments: Vec<(String, Kind)>,
    gives: Gives,
    about: String,
}

impl Verb {
    /// A property in JavaScript and Python.
    fn is_getter(&self) -> bool {
        self.arguments.is_empty() && !self.changes
    }
}

/// A method as it stands in the source.
pub struct Method {
    pub name: String,
    signature: String,
    about: String,
}

/// The public methods of a type in some files.
pub fn methods(root: &Path, of: &str, files: &[&str]) -> Vec<Method> {
    let mut found = Vec::new();
    for file in files {
        let text = fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        for block in text.split(&format!("\nimpl {of} {{")).skip(1) {
            methods_of(block.split("\n}").next().unwrap_or_default(), &mut found);
        }
    }
    found
}

fn methods_of(block: &str, found: &mut Vec<Method>) {
    let mut about = String::new();
    let mut lines = block.lines();
    while let Some(line) = lines.next() {
        if let Some(words) = line.strip_prefix("    /// ") {
            about = if about.is_empty() { words.into() } else { format!("{about} {words}") };
            continue;
        }
        let code = line.strip_prefix("    pub fn ").or(line.strip_prefix("    pub const fn "));
        if let Some(code) = code {
            let mut signature = code.to_string();
            while !signature.contains('{') {
                signature += lines.next().unwrap_or("{").trim_start();
            }
            let name = signature.split(['(', '<']).next().unwrap_or_default().to_string();
            let signature = signature[name.len()..].split('{').next().unwrap_or_default().to_string();
            found.push(Method { name, signature, about: std::mem::take(&mut about) });
        }
        about.clear();
    }
}

/// The files of `impl Boundary` and `impl Shared`.
pub const BOUNDARY: [&str; 3] =
    ["src/boundary/mod.rs", "src/boundary/elsewhere.rs", "src/boundary/outcome.rs"];
const MACHINE: [&str; 2] = ["crates/shared/src/machine.rs", "crates/shared/src/status.rs"];

fn has(list: &str, name: &str) -> bool {
    list.split_whitespace().any(|each| each == name)
}

/// The verbs that hosts of an engine forward.
fn verbs(root: &Path) -> Vec<Verb> {
    let is_written =
        |method: &Method| !has(INSIDE, &method.name) && BY_HAND.iter().all(|&(name, _)| name != method.name);
    methods(root, "Boundary", &BOUNDARY).iter().filter(|method| is_written(method)).map(verb_of).collect()
}

/// Those of them that the machine of a group has, too. One that it lacks stands in a list.
fn group_verbs(root: &Path) -> Vec<Verb> {
    let machine = methods(root, "Shared", &MACHINE);
    let is_there = |verb: &Verb| {
        let is_listed = has(ALONE, &verb.name) || has(GROUP_BY_HAND, &verb.name);
        let is_there = machine.iter().any(|method| method.name == verb.name);
        let why = "the machine of a group lacks it, or it is in ALONE or GROUP_BY_HAND for nothing";
        assert!(is_listed != is_there, "{}: {why}", verb.name);
        is_there
    };
    verbs(root).into_iter().filter(is_there).collect()
}

fn verb_of(method: &Method) -> Verb {
    let unknown = |what: &str| -> ! {
        panic!("{}: no host can be written for {what}; it belongs to BY_HAND or INSIDE", method.name)
    };
    let (inside, gives) = method.signature.trim().rsplit_once(')').unwrap_or_default();
    let mut arguments = Vec::new();
    for argument in inside.trim_start_matches('(').split(',').map(str::trim).filter(|each| !each.is_empty()) {
        let Some((name, of)) = argument.split_once(": ") else { continue };
        let kind = match (name, of) {
            ("now" | "sent", "f64") => Kind::Instant,
            ("scope", "f64") => Kind::Scope,
            ("ticket", "f64") => Kind::Ticket,
            (name, "f64") if name == "ms" || name.ends_with("_ms") => Kind::Span,
            ("charged" | "cost" | "priority", "f64") => Kind::Number,
            (_, "bool") => Kind::Flag,
            (_, "&str") => Kind::Text,
            _ => unknown(argument),
        };
        arguments.push((name.to_string(), kind));
    }
    let gives = match gives.trim().trim_start_matches("-> ") {
        "" => Gives::Nothing,
        "bool" => Gives::Flag,
        "Handle" => Gives::Handle,
        "Found" => Gives::Found,
        "Count" => Gives::Count,
        "Option<&str>" => Gives::Name,
        gives => unknown(gives),
    };
    let changes = inside.trim_start_matches('(').starts_with("&mut self");
    Verb { name: method.name.clone(), changes, arguments, gives, about: method.about.clone() }
}

/// `send_at` as `sendAt`.
pub fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |all, part| all + &part[..1].to_uppercase() + &part[1..])
}
