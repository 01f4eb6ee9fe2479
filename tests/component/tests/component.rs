//! The component in wasmtime: what it is, what it answers, and that no input traps it.

use std::fs;

use autothrottle::{Boundary, Value};
use autothrottle_component_tests::{
    Compiled, Host, call,
    calls::{Chance, Fuzzer},
    traces::play,
};

fn open(options: &str) -> Host {
    let host = Compiled::load().instance().unwrap().engine(options, 1).unwrap();
    host.map_err(|problems| problems.len()).expect("options that make sense")
}

#[test]
fn it_imports_nothing_and_exports_two_interfaces() {
    let compiled = Compiled::load();
    assert_eq!(compiled.imports(), [""; 0]);
    let names = ["autothrottle:engine/throttling@0.1.0", "autothrottle:engine/reading@0.1.0"];
    assert_eq!(compiled.exports(), names);
}

#[test]
fn every_trace_is_played_as_natively() {
    let compiled = Compiled::load();
    let mut count = 0;
    for file in fs::read_dir("../traces").unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        for story in text.split("\n== ").skip(1) {
            let (name, story) = story.split_once('\n').unwrap();
            assert_eq!(play(compiled, story).trim_end(), story.trim_end(), "{name}");
            count += 1;
        }
    }
    assert!(count >= 47, "only {count} traces");
}

#[test]
fn a_snapshot_goes_from_native_to_the_component_and_back() {
    let options = r#"{"defaults":{"delay":250,"jitter":false,"quota":{"limit":10,"window":60000}}}"#;
    let mut native = Boundary::new(serde_json::from_str(options).unwrap()).unwrap();
    let scope = native.scope("example.com");
    for now in [0.0, 250.0, 500.0] {
        let ticket = native.submit(now, scope, 1.5, 0.0, 0.0);
        assert_eq!(native.poll(now), ticket);
        let outcome = autothrottle::boundary::Outcome::new(200.0, 80.5, f64::NAN, 0);
        native.settle(now, ticket, &outcome);
    }
    let taken = native.snapshot(600.0, 1000.0);
    let text = serde_json::to_string(&taken).unwrap();

    let mut host = open(options);
    let wall = Some(1_000_000_000);
    call!(host, call_restore, &text, 600_000_000, wall).unwrap().unwrap();
    assert_eq!(call!(host, call_snapshot, 600_000_000, wall).unwrap(), text);
    let scope = call!(host, call_find, "example.com").unwrap().expect("what was learned");
    let stats = call!(host, call_scope_stats, 600_000_000, scope).unwrap().unwrap();
    assert!(stats.contains(r#""quotaLeft":5.5"#), "{stats}");

    let back: Value = serde_json::from_str(&text).unwrap();
    native.restore(back, 600.0, 1000.0).unwrap();
    assert_eq!(native.snapshot(600.0, 1000.0), taken);
}

#[test]
fn documents_that_are_none_are_problems() {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let objects = format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    let compiled = Compiled::load();
    let wrong = [
        deep.as_str(),
        &objects,
        &deep[..100_000],
        "",
        "[",
        "nul",
        "{\"a\":1e999}",
        "\u{0}",
        "[]",
        "7",
        r#"{"delay":{"$other":"a function"}}"#,
    ];
    for options in wrong {
        let made = compiled.instance().unwrap().engine(options, 0).unwrap();
        let problems = made.err().unwrap_or_else(|| panic!("{:.40} makes no sense", options));
        assert!(!problems.is_empty());
    }
    let mut host = open("{}");
    for snapshot in wrong {
        assert!(call!(host, call_restore, snapshot, 0, None).unwrap().is_err(), "{snapshot:.40}");
    }
    let made = compiled.instance().unwrap().engine(wrong[10], 0).unwrap();
    assert_eq!(made.err().unwrap()[0].got, "a function");
}

#[test]
fn a_text_that_is_no_json_says_where() {
    let mut host = open("{}");
    let scope = call!(host, call_scope, "a").unwrap();
    let wrong = [
        "", "[", "[1,]", "{\"a\"}", "{\"a\":}", "{a:1}", "nul", "01", "1.", ".5", "-", "1e", "1e+", "+1",
        "\"\n\"", "\"\\x\"", "\"\\u12\"", "[1 2]", "1 1", "1e999", "\u{0}", "[1}", "\"",
    ];
    for text in wrong {
        let problems = call!(host, call_configure, 0, scope, text).unwrap().unwrap_err();
        assert_eq!(problems[0].want, "JSON", "{text}");
    }
    let problems = call!(host, call_configure, 0, scope, "{\n  \"a\": trx\n}").unwrap().unwrap_err();
    assert_eq!(problems[0].got, "what is none at line 2, column 10");
}

#[test]
fn numbers_cross_to_the_last_digit() {
    let mut host = open(r#"{"defaults":{"autothrottle":{"maxDelay":3000000000}}}"#);
    let mut chance = Chance(1);
    for round in 0..10_000 {
        let size = [1e-5, 1e-3, 1.0, 1e3, 1e6][round % 5];
        let number = chance.next() as f64 / 2_f64.powi(64) * size;
        let text = format!(r#"{{"version":1,"wallMs":0,"scopes":{{"a":{{"delaySeconds":{number}}}}}}}"#);
        call!(host, call_restore, &text, 0, Some(0)).unwrap().unwrap();
        let back: serde_json::Value =
            serde_json::from_str(&call!(host, call_snapshot, 0, Some(0)).unwrap()).unwrap();
        assert_eq!(back["scopes"]["a"]["delaySeconds"].as_f64(), Some(number), "{text}");
    }
}

#[test]
fn a_fields_value_forges_no_other_field() {
    let mut instance = Compiled::load().instance().unwrap();
    let reading = instance.world.autothrottle_engine_reading();
    let forged = [
        ("x-any".to_string(), "1\r\nretry-after: 900".to_string()),
        ("x-any\nretry-after".into(), "900".into()),
        ("retry-after: 900".into(), String::new()),
    ];
    let limits = reading.call_limits_of(&mut instance.store, 429, &forged, 0, None).unwrap();
    assert!(limits.contains(r#""delayMs":null"#), "{limits}");
    let plain = [("retry-after".to_string(), "3".to_string())];
    let limits = reading.call_limits_of(&mut instance.store, 429, &plain, 0, None).unwrap();
    assert!(limits.contains(r#""delayMs":3000"#), "{limits}");
    let asked = reading.call_crawl_delay(&mut instance.store, b"user-agent: *\ncrawl-delay: 1.5", "me");
    assert_eq!(asked.unwrap(), Some(1_500_000_000));
}

/// `CALLS=10000000 cargo test --release` plays more.
#[test]
fn random_calls_never_trap() {
    let calls = std::env::var("CALLS").map_or(200_000, |calls| calls.parse().expect("a number"));
    let seed = std::env::var("SEED").map_or(1, |seed| seed.parse().expect("a number"));
    let compiled = Compiled::load();
    let open = |options: &str, seed| {
        let made = compiled.instance()?.engine(options, seed)?;
        Ok(made.map_err(|problems| problems.len()).expect("options that make sense"))
    };
    let mut fuzzer = Fuzzer::new(open, seed).unwrap();
    for call in 0..calls {
        fuzzer.step().unwrap_or_else(|trap| panic!("call {call}: {trap:?}"));
    }
}

#[test]
fn a_million_scopes_fit() {
    let mut host = open(r#"{"maxScopes":10000000}"#);
    for number in 0..1_000_000 {
        call!(host, call_scope, &format!("host-{number}.example")).unwrap();
    }
    assert_eq!(call!(host, call_scopes).unwrap(), 1_000_000);
    let scope = call!(host, call_find, "host-999999.example").unwrap().unwrap();
    let ticket = call!(host, call_submit, 0, &[scope], None).unwrap().unwrap();
    assert_eq!(call!(host, call_poll, 0).unwrap().send, [ticket]);
}
