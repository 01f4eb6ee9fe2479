//! The declarations of verbs in other languages, with their documentation, and what their shared hosts
//! forward.

use std::path::Path;

use super::{ALONE, Gives, Kind, Verb, camel, group_verbs, has, rust::CHECKED, verbs};

/// Verbs of TypeScript's drivers alone: no user needs them.
const INTERNAL: [&str; 3] = ["intern", "keep_alive", "warn_threshold"];

/// How a language writes a name in a text, and what `find` gives for a name that is not known.
struct Tongue {
    name: fn(&str) -> String,
    quote: &'static str,
    none: &'static str,
}

const TYPESCRIPT: Tongue = Tongue {
    name: |name| if name == "now" || name == "sent" { format!("{name}Ms") } else { camel(name) },
    quote: "`",
    none: "-1",
};
const PYTHON: Tongue = Tongue { name: |name| name.into(), quote: "``", none: "``None``" };
const WIT: Tongue = Tongue { name: |name| name.replace('_', "-"), quote: "`", none: "None" };

/// The documentation of a verb in a language's words.
fn about(verb: &Verb, tongue: &Tongue) -> String {
    let mut words = String::new();
    let mut rest = verb.about.as_str();
    // `[wanted](Boundary::wants_route)` is `wanted`; "[`Boundary::poll`]" is `poll`.
    while let Some((before, link)) = rest.split_once('[') {
        let (text, after) = link.split_once(']').unwrap_or((link, ""));
        words += before;
        words += &text.replace("`Boundary::", "`");
        rest = after
            .strip_prefix('(')
            .and_then(|target| target.split_once(')'))
            .map_or(after, |(_, after)| after);
    }
    words += rest;
    let mut out = String::new();
    for (place, part) in words.split('`').enumerate() {
        let is_name = place % 2 == 1;
        let named = if is_name && part.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_') {
            (tongue.name)(part)
        } else {
            part.into()
        };
        out += &if is_name { format!("{0}{named}{0}", tongue.quote) } else { named };
    }
    if verb.gives == Gives::Found {
        out += &format!(" {} for another name.", tongue.none);
    }
    out
}

/// A text in lines of this width.
fn lines(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().unwrap();
        if line.is_empty() {
            *line = word.into();
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            *line += &format!(" {word}");
        } else {
            lines.push(word.into());
        }
    }
    lines
}

/// Of the resource in `engine.wit`.
pub fn engine_wit(root: &Path) -> String {
    let mut out = Vec::new();
    for verb in verbs(root) {
        let of = |&(ref name, kind): &(String, Kind)| {
            let (name, of) = match kind {
                Kind::Instant => (name.as_str(), "mark"),
                Kind::Span => (name.strip_suffix("_ms").unwrap_or("span"), "duration"),
                Kind::Scope => (name.as_str(), "scope-id"),
                Kind::Ticket => (name.as_str(), "ticket"),
                Kind::Number => (name.as_str(), "f64"),
                Kind::Flag => (name.as_str(), "bool"),
                Kind::Text => (name.as_str(), "string"),
            };
            format!("{}: {of}", (WIT.name)(name))
        };
        let arguments = verb.arguments.iter().map(of).collect::<Vec<_>>().join(", ");
        let gives = match verb.gives {
            Gives::Nothing => "",
            Gives::Flag => " -> bool",
            Gives::Handle => " -> scope-id",
            Gives::Found => " -> option<scope-id>",
            Gives::Count => " -> u32",
            Gives::Name => " -> option<string>",
        };
        let told: String =
            lines(&about(&verb, &WIT), 98).iter().map(|line| format!("        /// {line}\n")).collect();
        out.push(format!("{told}        {}: func({arguments}){gives};\n", (WIT.name)(&verb.name)));
    }
    out.join("\n")
}

fn typescript_arguments(verb: &Verb) -> String {
    let of = |&(ref name, kind): &(String, Kind)| {
        let of = match kind {
            Kind::Instant | Kind::Span | Kind::Number => "number",
            Kind::Scope => "ScopeHandle",
            Kind::Ticket => "Ticket",
            Kind::Flag => "boolean",
            Kind::Text => "string",
        };
        format!("{}: {of}", (TYPESCRIPT.name)(name))
    };
    verb.arguments.iter().map(of).collect::<Vec<_>>().join(", ")
}

fn typescript_gives(verb: &Verb) -> &'static str {
    match verb.gives {
        Gives::Nothing => "void",
        Gives::Flag => "boolean",
        Gives::Handle | Gives::Found => "ScopeHandle",
        Gives::Count => "number",
        Gives::Name => "string | undefined",
    }
}

fn declared(verb: &Verb) -> String {
    let (name, gives) = ((TYPESCRIPT.name)(&verb.name), typescript_gives(verb));
    if verb.is_getter() {
        format!("  readonly {name}: {gives}\n")
    } else {
        format!("  {name}({}): {gives}\n", typescript_arguments(verb))
    }
}

/// Whether TypeScript's engine has the method of the module itself.
fn is_bare(verb: &Verb) -> bool {
    verb.gives != Gives::Name && CHECKED.iter().all(|(name, _)| *name != verb.name)
}

/// Of the interface `Engine` in `js/wasm/engine.ts`.
pub fn engine_ts(root: &Path) -> String {
    let mut out = String::new();
    for verb in verbs(root).iter().filter(|verb| is_bare(verb)) {
        let internal = if INTERNAL.contains(&verb.name.as_str()) { "@internal " } else { "" };
        let told = format!("{internal}{}", about(verb, &TYPESCRIPT));
        if told.chars().count() <= 101 {
            out += &format!("  /** {told} */\n");
        } else {
            let told: String = lines(&told, 105).iter().map(|line| format!("   * {line}\n")).collect();
            out += &format!("  /**\n{told}   */\n");
        }
        out += &declared(verb);
    }
    out
}

/// Of the interface `Host` in `js/core/host.ts`: what an engine and a group have, too.
pub fn host_ts(root: &Path) -> String {
    verbs(root).iter().filter(|verb| is_bare(verb) && !has(ALONE, &verb.name)).map(declared).collect()
}

/// Of `SharedHost` in `js/shared/host.ts`.
pub fn group_ts(root: &Path) -> String {
    let mut out = Vec::new();
    for verb in group_verbs(root) {
        let (name, gives) = ((TYPESCRIPT.name)(&verb.name), typescript_gives(&verb));
        if verb.is_getter() {
            out.push(format!("  get {name}(): {gives} {{\n    return this.#machine.{}\n  }}\n", verb.name));
            continue;
        }
        let passed = verb.arguments.iter().map(|(name, _)| (TYPESCRIPT.name)(name)).collect::<Vec<_>>();
        let call = format!("this.#machine.{}({})", verb.name, passed.join(", "));
        let body = match (verb.changes, verb.gives) {
            (true, Gives::Nothing) => format!("    {call}\n    this.#soon()\n"),
            (true, _) => format!("    const given = {call}\n    this.#soon()\n    return given\n"),
            (false, _) => format!("    return {call}\n"),
        };
        out.push(format!("  {name}({}): {gives} {{\n{body}  }}\n", typescript_arguments(&verb)));
    }
    out.join("\n")
}

fn python_arguments(verb: &Verb) -> String {
    let mut out = String::from("self");
    for &(ref name, kind) in &verb.arguments {
        let plain = if kind == Kind::Span { name.strip_suffix("_ms").unwrap_or("span") } else { name };
        out += &match kind {
            Kind::Flag => format!(", {plain}: bool = False"),
            Kind::Number => format!(", {plain}: float"),
            Kind::Text => format!(", {plain}: str"),
            Kind::Instant | Kind::Span | Kind::Scope | Kind::Ticket => format!(", {plain}: int"),
        };
    }
    out
}

fn python_gives(verb: &Verb) -> &'static str {
    match verb.gives {
        Gives::Nothing => "None",
        Gives::Flag => "bool",
        Gives::Handle | Gives::Count => "int",
        Gives::Found => "int | None",
        Gives::Name => "str | None",
    }
}

/// A method of Python with its documentation, and a body where there is one.
fn python_method(verb: &Verb, body: &str) -> String {
    let property = if verb.is_getter() { "    @property\n" } else { "" };
    let head = format!("    def {}({}) -> {}:\n", verb.name, python_arguments(verb), python_gives(verb));
    let told = about(verb, &PYTHON);
    let told = if told.chars().count() <= 96 {
        format!("        \"\"\"{told}\"\"\"\n")
    } else {
        // A text that fits without its closing quotes alone would be joined with them again.
        let width = if told.chars().count() <= 99 { 90 } else { 102 };
        let told = lines(&format!("\"\"\"{told}"), width).join("\n        ");
        format!("        {told}\n        \"\"\"\n")
    };
    format!("{property}{head}{told}{body}")
}

/// Of `Engine` in `_native.pyi`. Without one that raises where it says no.
pub fn engine_pyi(root: &Path) -> String {
    let written = verbs(root);
    let each = written.iter().filter(|verb| verb.name != "adjust").map(|verb| python_method(verb, ""));
    each.collect::<Vec<_>>().join("\n") + "\n"
}

/// Of `Shared` in `_native.pyi`.
pub fn group_pyi(root: &Path) -> String {
    let of = |verb: &Verb| {
        let property = if verb.is_getter() { "    @property\n" } else { "" };
        let (arguments, gives) = (python_arguments(verb), python_gives(verb));
        format!("{property}    def {}({arguments}) -> {gives}: ...\n", verb.name)
    };
    group_verbs(root).iter().map(of).collect()
}

/// Of `SharedHost` in `_shared/host.py`.
pub fn group_py(root: &Path) -> String {
    let of = |verb: &Verb| {
        let passed = verb.arguments.iter().map(|(name, kind)| match name.strip_suffix("_ms") {
            _ if *kind != Kind::Span => name.as_str(),
            stem => stem.unwrap_or("span"),
        });
        let call = format!("self._machine.{}({})", verb.name, passed.collect::<Vec<_>>().join(", "));
        let body = match (verb.changes, verb.gives) {
            _ if verb.is_getter() => format!("        return self._machine.{}\n", verb.name),
            (true, Gives::Nothing) => format!("        {call}\n        self._soon()\n"),
            (true, _) => format!("        given = {call}\n        self._soon()\n        return given\n"),
            (false, _) => format!("        return {call}\n"),
        };
        python_method(verb, &body)
    };
    group_verbs(root).iter().map(of).collect::<Vec<_>>().join("\n") + "\n"
}
