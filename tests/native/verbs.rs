//! Each verb of `Boundary` is in every host, or stands here with why not: a host that lacks one fails here.

use std::{collections::BTreeSet, fs, path::Path};

/// Verbs for the way of a request, and for changes while it goes on: in every host.
const EVERYWHERE: &str = "adjust cancel configure crawl_delay find hold in_flight intern keep_alive \
    peek pause poll release reset resume route scope_stats scopes sent_at settle snapshot stats submit waiting \
    wake_at wants_route warn_threshold watch";

/// Of an engine alone. In a group each request waits for a word of the leader, whose queue has one order.
/// State and notices come by messages.
const ALONE: &str = "adopt has_notices name prioritize restore scope send_at_once take_notices";

/// With a form of its own in each binding, or for Rust alone: what came with the last answer or refusal,
/// other forms of verbs above, and what the machine of a group asks.
const INSIDE: &str = "adopt_known asked_ms budgets_told config digest_told engine has_room may_send_ahead new \
    notices pause_all reason reason_at reason_scope refused_ms refused_path refused_scope route_by \
    scope_stats_at seed send_ahead send_many_at_once settle_plain snapshot_of stats_at stats_of \
    submit_again submit_many wants_seed";

/// The sources in which a host says a verb, and how it stands there. `*`: the verb; `+`: in camel case; `-`:
/// with hyphens.
const ENGINES: [(&str, &[&str]); 5] = [
    ("bindings/javascript/src/lib.rs", &["fn *(", "0.*("]),
    ("bindings/component/src/lib.rs", &[".*("]),
    ("bindings/component/wit/engine.wit", &["    -: func"]),
    ("bindings/python/src/engine.rs", &["fn *(", "fn *<", ".*("]),
    ("python/src/autothrottle/_native.pyi", &["def *("]),
];
const GROUPS: [(&str, &[&str]); 5] = [
    ("bindings/shared/src/lib.rs", &["fn *(", ".*("]),
    ("bindings/python/src/shared.rs", &["fn *(", ".*("]),
    ("python/src/autothrottle/_shared/host.py", &["def *("]),
    ("js/core/host.ts", &[" +(", "'+'", " +:"]),
    ("tower/src/host.rs", &["engine.*("]),
];

/// Where a verb of all hosts has another form: the host, its verbs, why.
const OTHERWISE: [(&str, &str, &str); 6] = [
    ("bindings/component/wit/engine.wit", "wake_at", "a poll's answer has it"),
    ("bindings/component/src/lib.rs", "send_at_once", "the form for many scopes"),
    ("python/src/autothrottle/_shared/host.py", "wake_at", "a poll's answer has it"),
    ("bindings/shared/src/lib.rs", "adjust hold pause reset resume", "one verb, `order`"),
    ("js/core/host.ts", "scope_stats", "`stats` takes a scope"),
    (
        "tower/src/host.rs",
        "in_flight keep_alive release scope_stats scopes stats waiting warn_threshold watch",
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
    let mut parts = verb.split('_');
    let first = parts.next().unwrap_or_default().to_string();
    let upper = |part: &str| part[..1].to_uppercase() + &part[1..];
    let camel = parts.fold(first, |all, part| all + &upper(part));
    let form = |form: &&str| {
        let kebab = verb.replace('_', "-");
        // A hyphen stands in no other form.
        form.replace('-', &kebab).replace('*', verb).replace('+', &camel)
    };
    forms.iter().map(form).any(|form| text.contains(&form))
}

#[test]
fn a_verb_of_the_boundary_is_in_every_host() {
    let files = ["mod", "elsewhere", "outcome"].map(|name| read(&format!("src/boundary/{name}.rs")));
    let all: BTreeSet<&str> = files
        .iter()
        .flat_map(|text| text.split("\nimpl Boundary {").skip(1))
        .filter_map(|block| block.split("\n}").next())
        .flat_map(|block| block.lines())
        .filter_map(|line| line.strip_prefix("    pub fn ").or(line.strip_prefix("    pub const fn ")))
        .filter_map(|line| line.split(['(', '<']).next())
        .collect();
    let known: BTreeSet<&str> = [EVERYWHERE, ALONE, INSIDE].into_iter().flat_map(words).collect();
    assert_eq!(all, known, "say which hosts have a new verb");
    let hosts = |verbs: &'static str, hosts: &[(&'static str, &[&str])]| {
        let mut lacking = Vec::new();
        for &(host, forms) in hosts {
            let text = read(host);
            let has_another = |verb: &str| {
                OTHERWISE.iter().any(|&(of, verbs, _)| of == host && words(verbs).any(|each| each == verb))
            };
            lacking.extend(
                words(verbs)
                    .filter(|verb| says(&text, verb, forms) == has_another(verb))
                    .map(|verb| (host, verb)),
            );
        }
        lacking
    };
    assert_eq!(hosts(EVERYWHERE, &ENGINES), []);
    assert_eq!(hosts(EVERYWHERE, &GROUPS), []);
    assert_eq!(hosts(ALONE, &ENGINES), []);
}
