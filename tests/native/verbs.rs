//! Each verb of `Boundary` is in every host. `cargo xtask write` writes most of them; one that a host has in
//! a form of its own is looked for here, by its name.

use std::{fs, path::Path};

use crate::settings::write::verbs::{ALONE, BOUNDARY, BY_HAND, GROUP_BY_HAND, INSIDE, camel, methods};

/// The sources in which a host says a verb, and how it stands there. `*`: the verb; `+`: in camel case; `-`:
/// with hyphens.
const ENGINES: [(&str, &[&str]); 5] = [
    ("crates/bindings/javascript/src/lib.rs", &["fn *(", "0.*("]),
    ("crates/bindings/component/src/lib.rs", &[".*("]),
    ("crates/bindings/component/wit/engine.wit", &["    -: func"]),
    ("crates/bindings/python/src/engine.rs", &["fn *(", "fn *<", ".*("]),
    ("python/src/autothrottle/_native.pyi", &["def *("]),
];
const GROUPS: [(&str, &[&str]); 5] = [
    ("crates/bindings/shared/src/lib.rs", &["fn *(", ".*("]),
    ("crates/bindings/python/src/shared.rs", &["fn *(", ".*("]),
    ("python/src/autothrottle/_shared/host.py", &["def *("]),
    ("js/core/host.ts", &[" +(", "'+'", " +:"]),
    ("tower/src/host.rs", &["engine.*("]),
];

/// Where a verb of all hosts has another form: the host, its verbs, why.
const OTHERWISE: [(&str, &str, &str); 6] = [
    ("crates/bindings/component/wit/engine.wit", "wake_at", "an answer has it"),
    ("crates/bindings/component/src/lib.rs", "send_at_once", "the form for many scopes"),
    ("python/src/autothrottle/_shared/host.py", "wake_at", "an answer has it"),
    ("js/core/host.ts", "scope_stats", "`stats` takes a scope"),
    ("crates/bindings/shared/src/lib.rs", "adjust hold pause reset resume", "one verb, `order`"),
    (
        "tower/src/host.rs",
        "keep_alive release scope_stats scopes stats watch",
        "scopes have names there, statistics are a struct, and a request may have many scopes",
    ),
];

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace()
}

/// Whether a source has a verb in one of these forms.
fn says(text: &str, verb: &str, forms: &[&str]) -> bool {
    let form = |form: &&str| {
        let kebab = verb.replace('_', "-");
        // A hyphen stands in no other form.
        form.replace('-', &kebab).replace('*', verb).replace('+', &camel(verb))
    };
    forms.iter().map(form).any(|form| text.contains(&form))
}

#[test]
fn a_verb_that_hosts_write_by_hand_is_in_every_host() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let methods = methods(root, "Boundary", &BOUNDARY);
    let listed = BY_HAND.iter().map(|&(name, _)| name);
    for name in listed.clone().chain([ALONE, INSIDE, GROUP_BY_HAND].into_iter().flat_map(words)) {
        assert!(methods.iter().any(|method| method.name == name), "{name} is no verb of Boundary");
    }
    let alone: Vec<&str> = words(ALONE).collect();
    let in_groups = listed.clone().filter(|name| !alone.contains(name)).chain(words(GROUP_BY_HAND));
    assert_eq!(lacking(&ENGINES, &listed.collect::<Vec<_>>()), []);
    assert_eq!(lacking(&GROUPS, &in_groups.collect::<Vec<_>>()), []);
}

/// The hosts that lack a verb, and those that stand in [`OTHERWISE`] for one that they have.
fn lacking(hosts: &[(&'static str, &[&str])], verbs: &[&'static str]) -> Vec<(&'static str, &'static str)> {
    let mut lacking = Vec::new();
    for &(host, forms) in hosts {
        let text = read(host);
        let is_otherwise = |verb: &str| {
            OTHERWISE.iter().any(|&(of, verbs, _)| of == host && words(verbs).any(|each| each == verb))
        };
        let lacks = |verb: &&&str| says(&text, verb, forms) == is_otherwise(verb);
        lacking.extend(verbs.iter().filter(lacks).map(|&verb| (host, verb)));
    }
    lacking
}
