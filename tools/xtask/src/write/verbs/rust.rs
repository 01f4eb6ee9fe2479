//! The forwarding lines of the bindings.

use std::path::Path;

use super::{Gives, Kind, Verb, camel, group_verbs, verbs};

/// Methods of the module whose checks are TypeScript's, and their names there.
pub(super) const CHECKED: [(&str, &str); 2] = [("adjust", "adjust_cost"), ("scope", "scope_of")];

/// A call that makes something that stays: it makes room first.
fn needs_room(verb: &Verb) -> bool {
    verb.changes && verb.arguments.iter().any(|&(_, kind)| kind == Kind::Text)
}

/// Of `forward!` in `crates/bindings/javascript`.
pub fn javascript(root: &Path) -> String {
    forwarded(root, false)
}

/// The same where room is made first.
pub fn javascript_with_room(root: &Path) -> String {
    forwarded(root, true)
}

fn forwarded(root: &Path, with_room: bool) -> String {
    let mut out = String::new();
    for verb in verbs(root).iter().filter(|verb| needs_room(verb) == with_room) {
        let of = |&(ref name, kind): &(String, Kind)| match kind {
            Kind::Flag => format!("{name}: bool"),
            Kind::Text => format!("{name}: &str"),
            _ => format!("{name}: f64"),
        };
        let gives = match verb.gives {
            Gives::Nothing => "",
            Gives::Flag => " -> bool",
            // A borrowed name does not cross, and JavaScript has it already.
            Gives::Name => continue,
            Gives::Handle | Gives::Found | Gives::Count => " -> f64",
        };
        if verb.is_getter() {
            out += "    #[wasm_bindgen(getter)]\n";
        }
        let checked = CHECKED.iter().find(|(name, _)| *name == verb.name);
        let named = checked.map_or_else(|| camel(&verb.name), |(_, named)| (*named).into());
        let arguments = verb.arguments.iter().map(of).collect::<Vec<_>>().join(", ");
        out += &format!("    {named} = fn {}({arguments}){gives};\n", verb.name);
    }
    out
}

/// A method in lines that fit. `start`: attributes, and `fn` with its name.
fn method(name: &str, arguments: &[String], gives: &str, body: &[String]) -> String {
    let mut line = format!("    fn {name}({}){gives} {{", arguments.join(", "));
    if line.len() > 110 {
        line = format!("    fn {name}(\n        {},\n    ){gives} {{", arguments.join(",\n        "));
    }
    let body: String = body.iter().map(|line| format!("        {line}\n")).collect();
    format!("{line}\n{body}    }}\n")
}

/// Methods one below the other.
fn methods(each: impl Iterator<Item = String>) -> String {
    each.collect::<Vec<_>>().join("\n")
}

/// The name of an argument where spans are nanoseconds.
fn plain(name: &str, kind: Kind) -> String {
    match name.strip_suffix("_ms") {
        _ if kind != Kind::Span => name.into(),
        Some(name) => name.into(),
        None => "span".into(),
    }
}

/// Of `impl GuestEngine` in `crates/bindings/component`.
pub fn component(root: &Path) -> String {
    methods(verbs(root).iter().map(|verb| {
        let mut arguments = vec!["&self".to_string()];
        let mut passed = Vec::new();
        for &(ref name, kind) in &verb.arguments {
            let name = plain(name, kind);
            let (of, pass) = match kind {
                Kind::Instant => ("u64", format!("nanos::now({name})")),
                Kind::Span => ("u64", format!("nanos::span({name})")),
                Kind::Scope | Kind::Ticket => ("u64", format!("{name} as f64")),
                Kind::Number => ("f64", name.clone()),
                Kind::Flag => ("bool", name.clone()),
                Kind::Text => ("String", format!("&{name}")),
            };
            arguments.push(format!("{name}: {of}"));
            passed.push(pass);
        }
        let borrow = if verb.changes { "borrow_mut" } else { "borrow" };
        let call = format!("self.boundary.{borrow}().{}({})", verb.name, passed.join(", "));
        let (gives, body) = match verb.gives {
            Gives::Nothing => ("", format!("{call};")),
            Gives::Flag => (" -> bool", call),
            Gives::Handle => (" -> u64", format!("{call} as u64")),
            Gives::Count => (" -> u32", format!("{call} as u32")),
            Gives::Found => (" -> Option<u64>", format!("found({call})")),
            Gives::Name => (" -> Option<String>", format!("{call}.map(Into::into)")),
        };
        method(&verb.name, &arguments, gives, &[body])
    }))
}

/// Of `#[pymethods]` of a class. `by_hand`: verbs that raise where they say no.
fn pymethods(verbs: &[Verb], by_hand: &str, asked: &str, pass: fn(&str, Kind) -> String) -> String {
    methods(verbs.iter().filter(|verb| verb.name != by_hand).map(|verb| {
        let mut arguments = vec!["&self".to_string()];
        let mut passed = Vec::new();
        let mut defaults = Vec::new();
        for &(ref name, kind) in &verb.arguments {
            let name = plain(name, kind);
            let of = match kind {
                Kind::Number => "Real",
                Kind::Flag => "bool",
                Kind::Text => "Text",
                Kind::Instant | Kind::Span | Kind::Scope | Kind::Ticket => "Whole",
            };
            arguments.push(format!("{name}: {of}"));
            passed.push(pass(&name, kind));
            defaults.push(if kind == Kind::Flag { format!("{name} = false") } else { name });
        }
        let call = format!("{asked}.{}({})", verb.name, passed.join(", "));
        // A machine counts in whole numbers already.
        let is_whole = asked == "machine";
        let (gives, call) = match verb.gives {
            Gives::Nothing => ("()", call),
            Gives::Flag => ("bool", call),
            Gives::Handle => ("u64", format!("{call} as u64")),
            Gives::Count if is_whole => ("u32", call),
            Gives::Count => ("u32", format!("{call} as u32")),
            Gives::Found => ("Option<u64>", format!("found({call})")),
            Gives::Name => ("Option<String>", format!("{call}.map(Into::into)")),
        };
        let mut attribute = String::new();
        if verb.is_getter() {
            attribute = "    #[getter]\n".into();
        } else if verb.arguments.iter().any(|&(_, kind)| kind == Kind::Flag) {
            attribute = format!("    #[pyo3(signature = ({}))]\n", defaults.join(", "));
        }
        let body = format!("self.with(|{asked}| {call})");
        attribute + &method(&verb.name, &arguments, &format!(" -> PyResult<{gives}>"), &[body])
    }))
}

/// Of `Engine` in `crates/bindings/python`.
pub fn python(root: &Path) -> String {
    pymethods(&verbs(root), "adjust", "boundary", |name, kind| match kind {
        Kind::Instant => format!("{name}.now()"),
        Kind::Span => format!("{name}.span()"),
        Kind::Scope | Kind::Ticket => format!("{name}.number()"),
        Kind::Number => format!("{name}.0"),
        Kind::Flag => name.into(),
        Kind::Text => format!("&{name}.0"),
    })
}

/// Of `Shared` in `crates/bindings/python`.
pub fn python_group(root: &Path) -> String {
    pymethods(&group_verbs(root), "", "machine", |name, kind| match kind {
        Kind::Instant => format!("instant({name})"),
        Kind::Span => format!("Span::from_millis({name}.span())"),
        Kind::Scope | Kind::Ticket | Kind::Number => format!("{name}.0"),
        Kind::Flag => name.into(),
        Kind::Text => format!("&{name}.0"),
    })
}

/// Of `WasmShared` in `crates/bindings/shared`.
pub fn shared(root: &Path) -> String {
    methods(group_verbs(root).iter().map(|verb| {
        let takes_time = verb.arguments.iter().any(|(name, _)| name == "now");
        let this = if verb.changes || takes_time { "&mut self" } else { "&self" };
        let mut arguments = vec![this.to_string()];
        let mut passed = Vec::new();
        for &(ref name, kind) in &verb.arguments {
            let (of, pass) = match kind {
                Kind::Instant | Kind::Number => ("f64", name.clone()),
                Kind::Span => ("f64", format!("Span::from_millis({name})")),
                Kind::Scope | Kind::Ticket => ("f64", format!("{name} as u64")),
                Kind::Flag => ("bool", name.clone()),
                Kind::Text => ("&str", name.clone()),
            };
            arguments.push(format!("{name}: {of}"));
            passed.push(pass);
        }
        let call = format!("self.machine.{}({})", verb.name, passed.join(", "));
        let (gives, call) = match verb.gives {
            Gives::Nothing => ("", format!("{call};")),
            Gives::Flag => (" -> bool", call),
            Gives::Count => (" -> u32", call),
            Gives::Handle | Gives::Found | Gives::Name => unreachable!("names are a table of the process"),
        };
        let start = takes_time.then(|| "let now = self.at(now);".to_string());
        let body: Vec<String> = start.into_iter().chain([call]).collect();
        let attribute = if verb.is_getter() { "    #[wasm_bindgen(getter)]\n    pub" } else { "    pub" };
        let written = method(&verb.name, &arguments, gives, &body);
        format!("{attribute}{}", &written[3..])
    }))
}
