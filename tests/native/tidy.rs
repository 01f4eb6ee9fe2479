//! House rules that no linter knows, as a test that reads the sources.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

fn sources(folder: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut left = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    while let Some(path) = left.pop() {
        let is_source = |extension| ["rs", "ts", "mjs"].iter().any(|of| extension == *of);
        if path.is_dir() && !path.ends_with("node_modules") {
            left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(is_source) {
            let name = path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap().display().to_string();
            found.push((name, fs::read_to_string(&path).unwrap()));
        }
    }
    found.sort();
    assert!(!found.is_empty(), "{folder} holds sources");
    found
}

#[test]
fn policies_know_nothing_but_time_and_chance() {
    for (name, text) in sources("src/policy") {
        let own = ["crate::time", "crate::rng", "crate::{"];
        for line in
            text.lines().filter(|line| line.contains("crate::") && !line.trim_start().starts_with("//"))
        {
            assert!(own.iter().any(|allowed| line.contains(allowed)), "{name}: {line}");
        }
        for other in ["engine", "queue", "scope", "config::", "decision"] {
            assert!(!text.contains(&format!("    {other}::")), "{name} must not know {other}");
        }
    }
}

#[test]
fn the_core_knows_no_host() {
    for (name, text) in ["src", "crates/reading", "crates/llm"].into_iter().flat_map(sources) {
        for word in ["wasm_bindgen", "js_sys", "getrandom", "target_arch"] {
            assert!(!text.contains(word), "{name} names {word}");
        }
    }
}

#[test]
fn in_typescript_only_the_clock_names_a_clock_and_only_the_loader_the_module() {
    // The command is a program for Node, not a part of the package that others load.
    for (name, text) in sources("js").into_iter().filter(|(name, _)| !name.starts_with("js/command/")) {
        let code: String = text.lines().filter(|line| !line.trim_start().starts_with('*')).collect();
        if name != "js/base/clock.ts" {
            for word in ["performance.now", "Date.now", "globalThis.setTimeout", " setTimeout(wake, ms)"] {
                let is_fake = name == "js/testing.ts" && word.contains("setTimeout");
                assert!(is_fake || !code.contains(word), "{name} names {word}");
            }
        }
        let is_loader = name.starts_with("js/wasm/load/");
        assert!(is_loader || !code.contains("/pkg/"), "{name} imports pkg/");
        assert!(!code.contains("'node:"), "{name} names a module of Node's");
    }
}

/// `URL.canParse`, once it was called often, is wrong in Node 20.20 and 22.23.
#[test]
fn only_the_constructor_says_what_a_url_is() {
    let folders = ["js", "examples", "tests/js", "tools/scripts", "tools/bench", "site"];
    for (name, text) in folders.into_iter().flat_map(sources) {
        assert!(!text.contains("canParse("), "{name}: toUrl of js/scopes/names.ts, or try {{ new URL }}");
    }
}

#[test]
fn every_file_opens_with_its_idea() {
    for (name, text) in ["src", "crates", "js"].into_iter().flat_map(sources) {
        let opens = text.starts_with("//!") || text.starts_with("/**") || name == "js/index.ts";
        assert!(opens, "{name} must say what it is for");
    }
}

/// The exceptions are files that are still to be cut: one that was cut leaves the list.
#[test]
fn no_source_file_is_longer_than_600_lines() {
    let too_long: [&str; 0] = [];
    let all = ["src", "crates", "tools/xtask", "js"].into_iter().flat_map(sources);
    for (name, text) in all.filter(|(name, _)| !name.contains("/tests/")) {
        let lines = text.lines().count();
        if too_long.contains(&name.as_str()) {
            assert!(lines > 600, "{name} has {lines} lines: it is no exception any more");
        } else {
            assert!(lines <= 600 || name.ends_with("/generated.ts"), "{name} has {lines} lines");
        }
    }
}

/// Comments and prose are written for 110 columns; rustfmt and Biome see to the code.
#[test]
fn comments_and_pages_fit_in_110_columns() {
    let pages = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"]
        .map(String::from)
        .into_iter()
        .chain(
            fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs"))
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
                .map(|path| format!("docs/{}", path.file_name().unwrap().display())),
        );
    for name in pages {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(&name)).unwrap();
        for line in text.lines().filter(|line| !line.trim_start().starts_with('|')) {
            assert!(line.chars().count() <= 110, "{name}: {line}");
        }
    }
    let tests = ["native", "js", "clients", "package", "shared"].map(|of| format!("tests/{of}"));
    let folders = ["src", "crates", "js", "tools/scripts", "tools/bench", "tools/xtask", "site/test"];
    let folders = folders.map(String::from);
    for (name, text) in folders.iter().chain(&tests).flat_map(|of| sources(of)) {
        for line in text.lines().filter(|line| !line.contains("| ")) {
            let is_comment = ["//", "* ", "/*"].iter().any(|mark| line.trim_start().starts_with(mark));
            let is_written = name.ends_with("/generated.ts");
            assert!(is_written || !is_comment || line.chars().count() <= 110, "{name}: {line}");
        }
    }
}

/// The code in `docs/component.md` is the example, which the component's own tests compile.
#[test]
fn the_page_of_the_component_shows_its_example() {
    let page = include_str!("../../docs/component.md");
    let example = include_str!("../component/examples/loop.rs");
    assert!(page.contains(&format!("```rust\n{example}```\n")));
}

// No circle of imports: what a file or a room needs, it needs without being needed by it.
//
// Each import is harmless; in a circle no file can be read, tested or built without all others. Rooms are
// the modules of `lib.rs`. A module and what stands in it are one: what a file takes from the `mod.rs` above
// it is no import.

type Graph = BTreeMap<String, BTreeSet<String>>;

/// The sources of a crate by module: `config/scope`, `config`, and the empty one of `lib.rs`.
type Sources = BTreeMap<String, String>;

/// The paths that a source names in statements of `use` and after `crate::`, `self::` and `super::`, without
/// comments and tests.
fn paths(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = code.lines().map(|line| line.split("//").next().unwrap_or_default());
    let code: String = lines.flat_map(|line| [line, "\n"]).collect();
    let starts = ["crate::", "self::", "super::", "use "].iter().flat_map(|start| code.match_indices(start));
    let is_start = |at: usize| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
    let mut found = Vec::new();
    for (at, start) in starts.filter(|&(at, _)| is_start(at)) {
        let (mut path, mut groups) = (String::new(), Vec::new());
        for c in code[at + if start == "use " { start.len() } else { 0 }..].chars() {
            match c {
                c if c.is_alphanumeric() || c == '_' || c == ':' => path.push(c),
                '{' if path.ends_with("::") || path.is_empty() => groups.push(path.clone()),
                c if c.is_whitespace() && !groups.is_empty() => {}
                c => {
                    found.push(std::mem::take(&mut path));
                    if c == '}' {
                        groups.pop();
                    }
                    let Some(group) = groups.last() else { break };
                    path.clone_from(group);
                }
            }
        }
    }
    found
}

/// The module where `path`, as `module` writes it, is defined. `None` if that is another crate.
fn home(sources: &Sources, module: &str, path: &str) -> Option<String> {
    let above = |module: &str| module.rsplit_once('/').map_or(String::new(), |(above, _)| above.into());
    let mut place = module.to_string();
    for (index, name) in path.split("::").enumerate() {
        let inside = if place.is_empty() { name.into() } else { format!("{place}/{name}") };
        match name {
            "crate" => place.clear(),
            "self" => {}
            "super" => place = above(&place),
            _ if sources.contains_key(&inside) => place = inside,
            _ if index == 0 => return None,
            _ if place == module => break,
            name => {
                let shown =
                    paths(&sources[&place]).into_iter().find(|path| path.ends_with(&format!("::{name}")));
                return shown.and_then(|path| home(sources, &place, &path)).or(Some(place));
            }
        }
    }
    Some(place)
}

fn graph(sources: &Sources) -> Graph {
    let needed = |(module, source): (&String, &String)| {
        let homes = paths(source).into_iter().filter_map(|path| home(sources, module, &path));
        let others = homes.filter(|home| !Path::new(module).starts_with(home));
        (module.clone(), others.collect())
    };
    sources.iter().map(needed).collect()
}

/// A circle, if there is one, as the rooms on its way.
fn circle(graph: &Graph) -> Option<Vec<String>> {
    fn walk(graph: &Graph, way: &mut Vec<String>, done: &mut BTreeSet<String>) -> Option<Vec<String>> {
        let room = way.last()?.clone();
        for next in graph.get(&room).into_iter().flatten() {
            if let Some(start) = way.iter().position(|before| before == next) {
                let circle = way[start..].iter().chain([next]);
                return Some(circle.cloned().collect());
            }
            if !done.contains(next) {
                way.push(next.clone());
                if let Some(circle) = walk(graph, way, done) {
                    return Some(circle);
                }
                way.pop();
            }
        }
        done.insert(room);
        None
    }
    let mut done = BTreeSet::new();
    graph.keys().find_map(|room| walk(graph, &mut vec![room.clone()], &mut done))
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files_in(&path) } else { vec![path] }).collect()
}

fn read(folder: &str) -> Sources {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let module = |path: &Path| {
        let inside = path.strip_prefix(&root).unwrap().with_extension("");
        let is_folder = inside.ends_with("mod") || inside.ends_with("lib");
        if is_folder { inside.parent().unwrap().into() } else { inside }
    };
    let files = files_in(&root).into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs"));
    files.map(|path| (module(&path).display().to_string(), fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn no_circle_of_imports() {
    let circles = ["src", "tower/src", "crates/shared/src", "crates/reading/src", "crates/llm/src"]
        .map(|folder| circle(&graph(&read(folder))));
    assert_eq!(circles.map(|way| way.map(|way| way.join(" → "))), [const { None }; 5]);
    let room = |module: &String| module.split('/').next().unwrap().to_string();
    let mut rooms = Graph::new();
    for (module, others) in graph(&read("src")) {
        let others = others.iter().map(room).filter(|other| *other != room(&module));
        rooms.entry(room(&module)).or_default().extend(others);
    }
    rooms.remove("");
    assert!(rooms["engine"].contains("scope"), "imports are seen");
    assert_eq!(circle(&rooms).map(|way| way.join(" → ")), None);
}

#[test]
fn a_circle_is_seen() {
    let files = [
        ("", "mod a; pub use b::{Bee, Sea}; pub use c::{D, e::E};"),
        ("a", "use crate::{\n    Bee,\n    time::{Instant, Span},\n};"),
        ("b", "// use crate::a;\nfn f() -> crate::c::D { crate::c::new() }"),
        ("c", "use std::fmt; use super::time::Span;"),
        ("c/e", "use super::{super::D, new}; use crate::time;"),
        ("time", ""),
    ];
    let mut sources: Sources = files.map(|(module, source)| (module.into(), source.into())).into();
    let found = graph(&sources);
    let of = |module: &str| found[module].iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(
        [of("a"), of("b"), of("c"), of("c/e")],
        [vec!["b", "time"], vec!["c"], vec!["time"], vec!["time"]]
    );
    sources.insert("time".into(), "use crate::E as Of;".into());
    assert_eq!(circle(&graph(&sources)).unwrap(), ["time", "c/e", "time"]);
}
