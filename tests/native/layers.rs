//! No circle of imports in `src`: what a room needs, it needs without being needed by it.
//!
//! Each import is harmless; in a circle no room can be read, tested or built without all others. Rooms are
//! the modules of `lib.rs`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

type Graph = BTreeMap<String, BTreeSet<String>>;

/// The names after `crate::` in a source, without comments and tests.
fn imports(source: &str) -> BTreeSet<String> {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = code.lines().map(|line| line.split("//").next().unwrap_or_default());
    let code: String = lines.flat_map(|line| [line, "\n"]).collect();
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            Some(group) => found.extend(first_names(group)),
            None => found.extend(name(rest)),
        }
    }
    found
}

/// The first name of each member of a group, up to its closing brace.
fn first_names(group: &str) -> Vec<String> {
    let (mut names, mut depth, mut is_first) = (Vec::new(), 0, true);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => is_first = true,
            c if is_first && depth == 0 && (c.is_alphanumeric() || c == '_') => {
                names.extend(name(&group[at..]));
                is_first = false;
            }
            _ => {}
        }
    }
    names
}

fn name(text: &str) -> Option<String> {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    (end > 0).then(|| text[..end].to_string())
}

/// Where `lib.rs` takes the names from that it shows to others.
fn homes(lib: &str) -> BTreeMap<String, String> {
    let mut homes = BTreeMap::new();
    for statement in lib.split("pub use ").skip(1) {
        let statement = statement.split(';').next().unwrap_or_default();
        let (home, names) = statement.split_once("::").unwrap_or_default();
        for name in names.split(|c: char| !c.is_alphanumeric() && c != '_') {
            homes.insert(name.to_string(), home.to_string());
        }
    }
    homes
}

fn graph(files: &[(String, String)], lib: &str) -> Graph {
    let homes = homes(lib);
    let mut graph = Graph::new();
    for (room, source) in files {
        let needed = imports(source).into_iter().map(|name| homes.get(&name).cloned().unwrap_or(name));
        let others = needed.filter(|other| other != room);
        graph.entry(room.clone()).or_default().extend(others);
    }
    graph
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

fn sources(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

#[test]
fn no_circle_of_imports() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files: Vec<(String, String)> = sources(&root)
        .iter()
        .filter(|path| !path.ends_with("lib.rs"))
        .map(|path| {
            let inside = path.strip_prefix(&root).unwrap();
            let room = inside.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs");
            (room.to_string(), fs::read_to_string(path).unwrap())
        })
        .collect();
    let graph = graph(&files, &fs::read_to_string(root.join("lib.rs")).unwrap());
    assert!(graph["engine"].contains("scope"), "imports are seen");
    assert_eq!(circle(&graph).map(|way| way.join(" → ")), None);
}

#[test]
fn a_circle_is_seen() {
    let file = |room: &str, source: &str| (room.to_string(), source.to_string());
    let lib = "pub use b::{Bee, Sea};\npub use c::D;";
    let files = [
        file("a", "use crate::{\n    Bee,\n    time::{Instant, Span},\n};"),
        file("b", "// use crate::a;\nfn f() -> crate::c::D { crate::c::new() }"),
        file("c", "use crate::time::Span;"),
    ];
    let mut graph = graph(&files, lib);
    assert_eq!(graph["a"].iter().collect::<Vec<_>>(), ["b", "time"]);
    assert_eq!(circle(&graph), None);
    graph.get_mut("c").unwrap().insert("a".into());
    assert_eq!(circle(&graph).unwrap(), ["a", "b", "c", "a"]);
}

/// What each file imports, by the text of its statements. TypeScript's types are no imports.
fn hosts(folder: &str, extension: &str, imports: fn(&str, &str) -> BTreeSet<String>) -> Graph {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let files =
        sources(&root).into_iter().filter(|path| path.extension().is_some_and(|end| end == extension));
    let named = files.map(|path| {
        let name = path.strip_prefix(&root).unwrap().with_extension("").to_str().unwrap().replace('\\', "/");
        let needed = imports(&name, &fs::read_to_string(&path).unwrap());
        (name, needed)
    });
    named.collect()
}

/// `name` without its last part, and `target` from there.
fn beside(name: &str, target: &str) -> String {
    let mut place: Vec<&str> = name.split('/').collect();
    place.pop();
    for part in target.split('/') {
        match part {
            "." => {}
            ".." => drop(place.pop()),
            part => place.push(part),
        }
    }
    place.join("/")
}

fn of_typescript(name: &str, code: &str) -> BTreeSet<String> {
    named_by(name, code, false)
}

/// The same with types, in the rooms that know each other's types in one direction.
fn with_types(name: &str, code: &str) -> BTreeSet<String> {
    let is_one_way = |file: &str| ["core/", "command/"].iter().any(|room| file.starts_with(room));
    let mut found = if is_one_way(name) { named_by(name, code, true) } else { BTreeSet::new() };
    found.retain(|file| is_one_way(file));
    found
}

fn named_by(name: &str, code: &str, are_types_counted: bool) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut is_value = false;
    for line in code.lines() {
        if line.starts_with("import ") || line.starts_with("export ") {
            is_value = are_types_counted || !line["import ".len()..].starts_with("type ");
        }
        let Some((_, target)) = line.split_once("from '").or(line.split_once("import '")) else { continue };
        let target = target.split('\'').next().unwrap_or_default();
        if let Some(file) = target.strip_suffix(".js").filter(|file| is_value && file.starts_with('.')) {
            found.insert(beside(name, file));
        }
    }
    found
}

/// Also what is for checkers of types, and what is imported in a function.
fn of_python(name: &str, code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in code.lines() {
        let Some((target, names)) =
            line.trim_start().strip_prefix("from .").and_then(|rest| rest.split_once(" import "))
        else {
            continue;
        };
        let up = target.len() - target.trim_start_matches('.').len();
        let path = "../".repeat(up) + &target[up..].replace('.', "/");
        if path.is_empty() || path.ends_with('/') {
            found.extend(names.split(", ").map(|part| beside(name, &format!("{path}{part}"))));
        } else {
            found.insert(beside(name, &path));
        }
    }
    found
}

#[test]
fn no_circle_of_files_in_typescript_and_python() {
    let graph = hosts("js", "ts", of_typescript);
    assert!(graph["throttle/throttle"].contains("core/desk"), "imports are seen");
    assert_eq!(circle(&graph).map(|way| way.join(" → ")), None);
    let graph = hosts("js", "ts", with_types);
    assert!(
        graph["core/permit"].is_empty() && graph["core/waiting"].contains("core/permit"),
        "types are seen"
    );
    assert_eq!(circle(&graph).map(|way| way.join(" → ")), None);
    let graph = hosts("python/src/autothrottle", "py", of_python);
    assert!(graph["_throttle"].contains("_desk"), "imports are seen: {:?}", graph["_throttle"]);
    assert_eq!(circle(&graph).map(|way| way.join(" → ")), None);
}

/// The rooms of `js/`, each by itself: an import leads to the left. What stands in one string is level, and
/// does not know the others there. The command may read what the package's entries show.
const ROOMS: [&str; 10] = [
    "pkg", "base", "answers", "wasm", "scopes", "options", "core", "fetch", "throttle",
    "clients llm shared simulate entry command",
];

#[test]
fn in_typescript_nothing_imports_upwards() {
    let room = |file: &str| file.split_once('/').map_or("entry", |(room, _)| room).to_string();
    let level = |room: &str| {
        let found = ROOMS.iter().position(|level| level.split(' ').any(|each| each == room));
        found.unwrap_or_else(|| panic!("{room} has no place among the rooms of js"))
    };
    for (file, needed) in &hosts("js", "ts", of_typescript) {
        for other in needed {
            let (from, to) = (room(file), room(other));
            let is_front = matches!(from.as_str(), "entry" | "command") && level(&to) == ROOMS.len() - 1;
            let is_down = from == to || level(&to) < level(&from) || is_front;
            assert!(is_down, "{file} imports {other}");
        }
    }
}
