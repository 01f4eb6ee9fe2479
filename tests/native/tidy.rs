//! House rules that no linter knows, as a test that reads the sources.

use std::{fs, path::Path};

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
    for (name, text) in sources("src").into_iter().chain(sources("reading")) {
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
    let folders = ["js", "examples", "tests/js", "scripts", "benches", "site"];
    for (name, text) in folders.into_iter().flat_map(sources) {
        assert!(!text.contains("canParse("), "{name}: toUrl of js/scopes/names.ts, or try {{ new URL }}");
    }
}

#[test]
fn every_file_opens_with_its_idea() {
    for (name, text) in ["src", "reading", "js"].into_iter().flat_map(sources) {
        let opens = text.starts_with("//!") || text.starts_with("/**") || name == "js/index.ts";
        assert!(opens, "{name} must say what it is for");
    }
}

/// The exceptions are files that are still to be cut: one that was cut leaves the list.
#[test]
fn no_source_file_is_longer_than_600_lines() {
    let too_long: [&str; 0] = [];
    for (name, text) in ["src", "reading", "bindings", "xtask", "js"].into_iter().flat_map(sources) {
        let lines = text.lines().count();
        if too_long.contains(&name.as_str()) {
            assert!(lines > 600, "{name} has {lines} lines: it is no exception any more");
        } else {
            assert!(lines <= 600 || name == "js/options/generated.ts", "{name} has {lines} lines");
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
    let folders = ["src", "reading", "bindings", "js", "scripts", "benches", "site/test"].map(String::from);
    for (name, text) in folders.iter().chain(&tests).flat_map(|of| sources(of)) {
        for line in text.lines().filter(|line| !line.contains("| ")) {
            let is_comment = ["//", "* ", "/*"].iter().any(|mark| line.trim_start().starts_with(mark));
            let is_written = name == "js/options/generated.ts";
            assert!(is_written || !is_comment || line.chars().count() <= 110, "{name}: {line}");
        }
    }
}
