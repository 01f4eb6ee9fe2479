//! Each wrong option and its message; some code reads every row of the settings table; which settings win.

use autothrottle::{
    Config, Instant, Value,
    config::{
        driver,
        table::{DefaultValue, Kind, ROWS, Row, Section},
    },
    simulate::{self, Simulation},
};

use crate::helpers::{engine, json};

fn problems(json: &str) -> Vec<String> {
    let value: Value = serde_json::from_str(json).expect("JSON");
    match Config::parse(value) {
        Ok(_) => vec![],
        Err(error) => error.problems.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn all_problems_are_listed_at_once_with_their_paths() {
    let found = problems(
        r#"{ "concurency": 2, "maxInFlight": 0, "defaults": { "delay": "1s", "jitter": [0.3, -0.1] },
             "scopes": { "api.example": { "autothrottle": { "targetConcurrency": 0 }, "quota": [5, {"window": 0}] } } }"#,
    );
    assert_eq!(
        found,
        [
            "maxInFlight: want a whole number from 1 to 1000000; got 0",
            "defaults.delay: want milliseconds from 0 to a year; got \"1s\"",
            "defaults.jitter: want true, false, a number from 0 to 1, or [low, high] with -1 ≤ low ≤ high ≤ 10; \
             got [0.3, -0.1]",
            "scopes.\"api.example\".autothrottle.targetConcurrency: want a number above 0; got 0",
            "scopes.\"api.example\".quota[1].limit: want a number above 0, at most 1000000000000; got nothing",
            "scopes.\"api.example\".quota[1].window: want milliseconds above 0, at most a year; got 0",
            "concurency: want a known setting (did you mean concurrency?); got 2",
        ]
    );
}

#[test]
fn an_item_of_a_list_is_wrong_at_its_place_and_two_numbers_are_said_as_typed() {
    let found = problems(
        r#"{ "retry": { "limit": 1, "statusCodes": [202, 503, "504"], "methods": ["GET", 5, ""] },
             "backoff": { "statusCodes": 429, "errors": ["timeout", "dns"] }, "jitter": [0.1, -2],
             "scopes": { "a": { "backoff": { "statusCodes": [[429]] }, "jitter": [1, 2, 3],
                                "rampup": { "backoffTarget": [6, 3] } } } }"#,
    );
    assert_eq!(
        found,
        [
            "jitter: want true, false, a number from 0 to 1, or [low, high] with -1 ≤ low ≤ high ≤ 10; \
             got [0.1, -2]",
            "backoff.statusCodes: want a list of statuses from 100 to 599; got 429",
            "backoff.errors[1]: want \"timeout\" or \"connection\"; got \"dns\"",
            "scopes.a.jitter: want true, false, a number from 0 to 1, or [low, high] with \
             -1 ≤ low ≤ high ≤ 10; got a list of 3",
            "scopes.a.rampup.backoffTarget: want a number above 0, at most 1000, or [low, high] of those; \
             got [6, 3]",
            "scopes.a.backoff.statusCodes[0]: want a status from 100 to 599; got a list of 1",
            "retry.methods[1]: want a text that is not empty; got 5",
            "retry.methods[2]: want a text that is not empty; got \"\"",
            "retry.statusCodes[0]: want a status from 400 to 599; got 202",
            "retry.statusCodes[2]: want a status from 400 to 599; got \"504\"",
        ]
    );
}

#[test]
fn a_word_of_hosts_among_themselves_is_no_setting() {
    let options = ["{ \"made\": true }", "{ \"scopes\": { \"a\": { \"made\": true } } }"];
    for options in options {
        assert!(problems(options)[0].contains("made: want a known setting"), "{options}");
    }
    let mut engine = engine("{}");
    let scope = engine.intern("a");
    let error = engine.configure(Instant::default(), scope, json("{ \"made\": true }")).unwrap_err();
    assert_eq!(error.to_string(), "made: want a known setting; got true");
}

#[test]
fn the_former_name_of_bad_statuses_is_answered_with_the_one_of_today() {
    let found = problems(r#"{ "backoff": { "httpCodes": [429] } }"#);
    assert_eq!(
        found,
        ["backoff.httpCodes: want a known setting (did you mean statusCodes?); got a list of 1"]
    );
}

#[test]
fn names_are_quoted_where_they_would_not_stand_as_they_are() {
    let found = problems(r#"{ "scopes": { "a\"b\\c\n\u0001é": { "delay": "x\"y" } } }"#);
    let path = r#"scopes."a\"b\\c\n\u0001é".delay"#;
    assert_eq!(found, [format!(r#"{path}: want milliseconds from 0 to a year; got "x\"y""#)]);
}

#[test]
fn a_value_that_is_no_object_is_said_to_be_none() {
    assert_eq!(problems("7"), ["options: want an object; got 7"]);
    assert_eq!(problems(r#"{ "scopes": [] }"#), ["scopes: want an object; got a list of 0"]);
    assert_eq!(problems(r#"{ "defaults": true }"#), ["defaults: want an object; got true"]);
}

#[test]
fn numbers_that_json_does_not_know_are_refused_too() {
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.5, 1e18] {
        for key in ["concurrency", "delay", "slotDelay", "window", "quota", "jitter"] {
            let scope = Value::Map(vec![(key.into(), Value::Number(number))]);
            let options = Value::Map(vec![("defaults".into(), scope)]);
            let error = Config::parse(options).expect_err("no setting takes it");
            assert_eq!(error.problems.len(), 1, "{key} {number}");
            assert_eq!(error.problems[0].path, format!("defaults.{key}"));
        }
    }
}

/// An object that has `value` for a setting, beside what its section requires.
fn holding(rows: &[Row], row: &Row, value: &str) -> String {
    let must = |other: &&Row| {
        other.section == row.section && other.default == DefaultValue::Required && other.key != row.key
    };
    let right = |other: &Row| match other.kind {
        Kind::Fraction => "0.5",
        Kind::Texts(_) => r#"["/"]"#,
        _ => "1",
    };
    let beside = rows.iter().filter(must).map(|other| format!(r#""{}": {}, "#, other.key, right(other)));
    format!(r#"{{ {}"{}": {value} }}"#, beside.collect::<String>(), row.key)
}

/// The setting whose value is this section's object.
fn parent(rows: &'static [Row], section: Section) -> Option<&'static Row> {
    rows.iter().find(|row| match row.kind {
        Kind::Object(of) | Kind::FlagOr(of) => of == section,
        Kind::Rate => section == Section::Rate,
        Kind::Quota => section == Section::Quota,
        _ => false,
    })
}

#[test]
fn every_row_of_the_table_is_read() {
    let is_read = |row: &&Row| !matches!(row.section, Section::Driver | Section::Robots | Section::HeaderMap);
    for row in ROWS.iter().filter(is_read).filter(|row| !matches!(row.kind, Kind::Driver(_))) {
        let (mut json, mut path) = (holding(ROWS, row, r#""wrong""#), row.key.to_string());
        let mut section = row.section;
        while let Some(parent) = parent(ROWS, section) {
            (json, path) = (holding(ROWS, parent, &json), format!("{}.{path}", parent.key));
            section = parent.section;
        }
        let found = problems(&json);
        assert_eq!(found.len(), 1, "{json}: {found:?}");
        assert!(found[0].starts_with(&format!("{path}: want ")), "{json}: {found:?}");
    }
}

#[test]
fn a_setting_at_the_top_is_short_for_defaults_and_said_once() {
    let short = r#"{ "delay": -1, "slotDelay": -1, "rate": -1, "jitter": 2, "quota": 0, "rampup": 1, "window": 0,
        "strict": 1, "followRateLimit": 1, "ignoreRobotsTxt": 1, "autothrottle": 1, "backoff": 1 }"#;
    let mut paths: Vec<String> =
        problems(short).iter().map(|each| each.split(':').next().unwrap().to_string()).collect();
    paths.sort_unstable();
    let all = "autothrottle backoff delay followRateLimit ignoreRobotsTxt jitter quota rampup rate rate slotDelay strict window";
    assert_eq!(paths.join(" "), all);
    let both = [
        (r#""delay": 5"#, "delay: want delay here or in defaults, not in both; got 5"),
        (
            r#""autothrottle": true"#,
            "autothrottle: want autothrottle here or in defaults, not in both; got true",
        ),
        (r#""backoff": {}"#, "backoff: want backoff here or in defaults, not in both; got an object"),
        (r#""quota": 3"#, "quota: want quota here or in defaults, not in both; got 3"),
    ];
    for (typed, want) in both {
        assert_eq!(problems(&format!(r#"{{ {typed}, "defaults": {{ {typed} }} }}"#)), [want]);
    }
    assert_eq!(problems(r#"{ "delay": 5, "defaults": { "jitter": 0.2 } }"#), [""; 0]);
}

#[test]
fn a_scope_that_is_called_by_a_url_is_told_its_host() {
    assert_eq!(
        problems(
            r#"{ "scopes": { "https://a.example": {}, "http://u:p@b.example:81/x?y#z": { "delay": -1 } } }"#
        ),
        [
            "scopes.\"https://a.example\": want the host alone, \"a.example\"; got \"https://a.example\"",
            "scopes.\"http://u:p@b.example:81/x?y#z\": want the host alone, \"b.example:81\"; \
             got \"http://u:p@b.example:81/x?y#z\"",
            "scopes.\"http://u:p@b.example:81/x?y#z\".delay: want milliseconds from 0 to a year; got -1",
        ]
    );
    assert_eq!(problems(r#"{ "scopes": { "a.example/path": {}, "ip:10.0.0.1": {} } }"#), [""; 0]);
}

#[test]
fn a_pace_slower_than_any_backoff_raises_the_longest_delay_unless_that_was_typed() {
    let longest = |options: &str| Config::parse(json(options)).unwrap().scope("a").backoff.max.millis();
    assert_eq!(longest("{}"), 300_000.0);
    assert_eq!(longest(r#"{ "delay": 600000 }"#), 600_000.0);
    assert_eq!(longest(r#"{ "delay": 600000, "backoff": { "factor": 3 } }"#), 600_000.0);
    assert_eq!(longest(r#"{ "rate": "1/h" }"#), 3_600_000.0);
    assert_eq!(longest(r#"{ "delay": 600000, "scopes": { "a": { "delay": 5 } } }"#), 300_000.0);
    assert_eq!(
        problems(r#"{ "delay": 600000, "backoff": { "maxDelay": 300000 } }"#),
        ["defaults.delay: want at most backoff.maxDelay, 300000; got 600000"]
    );
}

#[test]
fn a_rate_that_is_none_says_what_it_wants() {
    let want =
        "requests a second from 0.000001; \"100/min\" (/s, /min, /h, /day); or { limit, window, burst }";
    for rate in [
        "0", "-1", "1e10", "1e-9", "true", "[]", r#""5""#, r#""5/m""#, r#""/min""#, r#""5/""#, r#""1e3/s""#,
        r#""-1/s""#, r#""0/s""#, r#""5 per min""#, r#""1.1234567/s""#, r#""∞/s""#,
    ] {
        let found = problems(&format!(r#"{{ "rate": {rate} }}"#));
        assert_eq!(found.len(), 1, "{rate}: {found:?}");
        assert!(found[0].starts_with(&format!("rate: want {want}; got ")), "{found:?}");
    }
    assert_eq!(
        problems(r#"{ "rate": { "window": 0, "burst": 0.5, "limits": 1 } }"#),
        [
            "rate.limit: want a number above 0, at most 1000000000; got nothing",
            "rate.window: want milliseconds above 0, at most a year; got 0",
            "rate.burst: want a whole number from 1 to 1000000000; got 0.5",
            "rate.limits: want a known setting (did you mean limit?); got 1",
        ]
    );
    for rate in ["5", "0.0055", r#""1/day""#, r#"" 2.5 / h ""#, r#""100 /min""#] {
        assert_eq!(problems(&format!(r#"{{ "rate": {rate} }}"#)), [""; 0], "{rate}");
    }
}

/// Each setting of a simulation is read where it says, and nowhere else.
#[test]
fn every_row_of_simulations_is_read() {
    let found = |json: &str| match Simulation::parse(serde_json::from_str(json).expect(json)) {
        Ok(_) => vec![],
        Err(error) => error.problems.iter().map(ToString::to_string).collect::<Vec<_>>(),
    };
    let bucket = r#""model": "token-bucket", "rate": 1"#;
    let rows = simulate::ROWS.iter().zip(simulate::TEXTS);
    for (row, text) in rows.filter(|(row, _)| !matches!(row.kind, Kind::Driver(_))) {
        let (key, wrong) = (row.key, r#"[["wrong"]]"#);
        let about = text.about.split('`').nth(1).unwrap_or_default();
        let model = match (about, key) {
            ("fixed-window", _) => r#""model": "sliding-window", "limit": 1"#,
            ("concurrency", _) | (_, "slots") => r#""model": "concurrency", "slots": 1, "service": 5"#,
            ("nginx", _) => r#""model": "nginx", "rate": 5"#,
            ("queue", _) => r#""model": "queue", "workers": 1, "service": 5"#,
            _ => bucket,
        };
        let own: Vec<&str> =
            model.split(", ").filter(|part| !part.starts_with(&format!("\"{key}\""))).collect();
        let own = own.join(", ");
        let comma = if own.is_empty() { "" } else { ", " };
        let (server, rest, path) = match row.section {
            Section::Server => {
                (format!(r#"{own}{comma}"{key}": {wrong}"#), String::new(), format!("server.{key}"))
            }
            Section::Simulation if key == "server" => continue,
            Section::Simulation => (bucket.into(), format!(r#", "{key}": {wrong}"#), key.into()),
            Section::Budget => (
                format!(r#"{bucket}, "budgets": {{ "a": {} }}"#, holding(simulate::ROWS, row, wrong)),
                String::new(),
                format!("server.budgets.a.{key}"),
            ),
            section => {
                let parent = parent(simulate::ROWS, section).expect("an object stands somewhere");
                let field = format!(r#", "{}": {}"#, parent.key, holding(simulate::ROWS, row, wrong));
                let path = format!("{}.{key}", parent.key);
                if parent.section == Section::Server {
                    (bucket.to_string() + &field, String::new(), format!("server.{path}"))
                } else {
                    (bucket.into(), field, path)
                }
            }
        };
        let json = format!(r#"{{ "server": {{ {server} }}{rest} }}"#);
        let found = found(&json);
        let path =
            if matches!(row.kind, Kind::Amounts | Kind::Texts(_)) { format!("{path}[0]") } else { path };
        assert!(found.iter().any(|each| each.starts_with(&format!("{path}: want "))), "{json}: {found:?}");
    }
    assert_eq!(
        found(
            r#"{ "server": { "model": "nginx", "limit": 5 }, "throttle": { "defaults": { "delay": -1 } } }"#
        ),
        [
            "server.rate: want a number above 0, at most 100000; got nothing",
            "server.limit: want no such setting here; got 5",
            "throttle.defaults.delay: want milliseconds from 0 to a year; got -1",
        ]
    );
    let strange = r#"{ "server": { "model": "nginx", "rate": 5 }, "throttle": { "a b": 1 } }"#;
    assert_eq!(found(strange), ["throttle.\"a b\": want a known setting; got 1"]);
    let none = r#"{ "server": { "model": "nginx", "rate": 5 }, "throttle": 7 }"#;
    assert_eq!(found(none), ["throttle: want an object; got 7"]);
    assert_eq!(
        found("{}")[0],
        "server.model: want one of \"fixed-window\", \"sliding-window\", \"sliding-counter\", \"token-bucket\", \"nginx\", \"gcra\", \"concurrency\", \"queue\"; got nothing"
    );
}

#[test]
fn layers_lie_on_each_other_key_by_key() {
    let json = r#"{ "autothrottle": { "startDelay": 700, "maxDelay": 900 }, "defaults": { "delay": 250 },
                    "scopes": { "a": { "concurrency": 3, "autothrottle": { "targetConcurrency": 2 } }, "b": { "autothrottle": false } } }"#;
    let config = Config::parse(serde_json::from_str(json).unwrap()).unwrap();
    let a = config.scope("a");
    assert_eq!((a.concurrency, a.delay), (3, 250.0));
    let policy = a.autothrottle_policy().unwrap();
    assert_eq!((policy.start, policy.min, policy.max, policy.target_concurrency), (0.7, 0.25, 0.9, 2.0));
    assert!(config.scope("b").autothrottle_policy().is_none());
    assert_eq!(config.scope("other").concurrency, 1);
}

/// Options of the driver: functions come as `a function`, its own objects only if they are wrong.
#[test]
fn options_that_only_a_driver_reads_are_checked_by_the_same_table() {
    let function = || Value::Other("a function".into());
    let check = |entries: Vec<(&str, Value)>| -> Vec<String> {
        let entries = entries.into_iter().map(|(key, value)| (key.into(), value)).collect();
        driver::problems(Value::Map(entries)).iter().map(ToString::to_string).collect()
    };
    for row in ROWS.iter().filter(|row| row.section == Section::Driver) {
        let found = check(vec![(row.key, Value::Number(-1.0))]);
        assert_eq!(found.len(), 1, "{}: {found:?}", row.key);
        assert!(found[0].starts_with(&format!("{}: want ", row.key)), "{found:?}");
        if row.kind == Kind::Function {
            assert_eq!(check(vec![(row.key, function())]), [""; 0]);
        }
    }
    let json = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
    let robots = r#"{ "obey": 1, "userAgent": "", "maxDelay": -1, "rules": {}, "agent": 1 }"#;
    let hints = r#"{ "a": { "resetUnit": "h", "limit": 5, "rest": 1 }, "https://b": 7 }"#;
    assert_eq!(
        check(vec![
            ("robots", json(robots)),
            ("hints", json(hints)),
            ("redirects", json(r#""curl""#)),
            ("release", json("7")),
            ("relaese", json("7")),
        ]),
        [
            "robots.obey: want true or false; got 1",
            "robots.userAgent: want a product token; got \"\"",
            "robots.maxDelay: want milliseconds from 0 to a year; got -1",
            "robots.rules: want a function; got an object",
            "robots.agent: want a known setting (did you mean userAgent?); got 1",
            "hints.a.resetUnit: want \"s\" or \"ms\"; got \"h\"",
            "hints.a.limit: want the name of a header field; got 5",
            "hints.a.rest: want a known setting (did you mean reset?); got 1",
            "hints.\"https://b\": want the host alone, \"b\"; got \"https://b\"",
            "hints.\"https://b\": want an object; got 7",
            "redirects: want \"native\" or \"throttle\"; got \"curl\"",
            "release: want \"headers\" or \"body\"; got 7",
            "relaese: want a known setting (did you mean release?); got 7",
        ]
    );
    assert_eq!(check(vec![("robots", json("{}"))]), ["robots.userAgent: want a product token; got nothing"]);
    // At the top the engine's reader knows these names, too.
    assert_eq!(
        problems(r#"{ "redirect": 1 }"#),
        ["redirect: want a known setting (did you mean redirects?); got 1"]
    );
    assert_eq!(problems(r#"{ "unref": true }"#), ["unref: want no such setting here; got true"]);
}

#[test]
fn an_undefined_value_is_left_out() {
    let parse = |json: &str| Config::parse(serde_json::from_str(json).unwrap());
    let typed = parse(
        r#"{ "backoff": null, "delay": null, "rate": null,
             "defaults": { "backoff": { "factor": 3 }, "delay": 10, "rate": null },
             "scopes": { "a": { "delay": null, "quota": null, "rate": 5 } } }"#,
    );
    let plain = parse(
        r#"{ "defaults": { "backoff": { "factor": 3 }, "delay": 10 }, "scopes": { "a": { "rate": 5 } } }"#,
    );
    let problems = |error: autothrottle::ConfigError| error.to_string();
    assert_eq!(
        typed.map(|config| config.scope("a").clone()).map_err(problems),
        plain.map(|config| config.scope("a").clone()).map_err(problems),
    );
}

// Which settings of the pace win, and which defaults are left beside them: the cases of
// `src/config/precedence.rs` as a table.

/// The pace of scope `a`: delay, slot delay, requests a second of its rate, jitter, slots.
type Pace = (f64, f64, Option<f64>, f64, u32);

fn pace_of(options: &str) -> Pace {
    let config = Config::parse(json(options)).expect(options);
    let a = config.scope("a");
    let rate = a.rate.map(|rate| (1e6 / rate.gap().micros() as f64).round());
    (a.delay, a.slot_delay.millis(), rate, a.jitter.high, a.concurrency)
}

const HALF: f64 = 0.5;

#[test]
fn each_case_of_the_table() {
    // `farther` stands in `defaults`, `nearer` in `scopes.a`.
    let cases: [(&str, &str, Pace); 27] = [
        // The defaults that are left.
        ("", "", (1000.0, 1000.0, None, HALF, 1)),
        (r#""concurrency": 5, "jitter": 0.1"#, "", (0.0, 0.0, None, 0.1, 5)),
        (r#""autothrottle": true"#, "", (1000.0, 0.0, None, HALF, 1)),
        (r#""autothrottle": false"#, "", (1000.0, 1000.0, None, HALF, 1)),
        (r#""delay": 200"#, "", (200.0, 0.0, None, HALF, 1)),
        (r#""slotDelay": 500"#, "", (1000.0, 500.0, None, HALF, 1)),
        (r#""rampup": true"#, "", (0.0, 0.0, None, HALF, 1)),
        (r#""quota": 7"#, "", (0.0, 0.0, None, HALF, 1)),
        (r#""quota": 7, "slotDelay": 500"#, "", (0.0, 500.0, None, HALF, 1)),
        (r#""rate": 5"#, "", (0.0, 0.0, Some(5.0), 0.0, 16)),
        (r#""rate": 5, "jitter": 0.2, "concurrency": 3"#, "", (0.0, 0.0, Some(5.0), 0.2, 3)),
        // The same typed at the scope itself.
        ("", r#""delay": 200"#, (200.0, 0.0, None, HALF, 1)),
        ("", r#""rate": 5"#, (0.0, 0.0, Some(5.0), 0.0, 16)),
        // Key by key the nearest place wins.
        (r#""delay": 200"#, r#""delay": 50"#, (50.0, 0.0, None, HALF, 1)),
        (r#""delay": 200"#, r#""concurrency": 3"#, (200.0, 0.0, None, HALF, 3)),
        (r#""slotDelay": 500"#, r#""delay": 50"#, (50.0, 500.0, None, HALF, 1)),
        (r#""jitter": 0.1"#, r#""jitter": false"#, (1000.0, 1000.0, None, 0.0, 1)),
        (r#""rate": 5"#, r#""rate": 2"#, (0.0, 0.0, Some(2.0), 0.0, 16)),
        (r#""rate": 5"#, r#""concurrency": 2"#, (0.0, 0.0, Some(5.0), 0.0, 2)),
        (r#""rate": 5"#, r#""rampup": true"#, (0.0, 0.0, Some(5.0), 0.0, 256)),
        (r#""rampup": true"#, r#""rampup": false"#, (1000.0, 1000.0, None, HALF, 1)),
        (r#""quota": 7"#, r#""quota": []"#, (1000.0, 1000.0, None, HALF, 1)),
        // Rule 1: a nearer rate.
        (r#""delay": 20, "slotDelay": 500"#, r#""rate": 5"#, (0.0, 0.0, Some(5.0), 0.0, 16)),
        (r#""concurrency": 2, "jitter": 0.2"#, r#""rate": 5"#, (0.0, 0.0, Some(5.0), 0.0, 16)),
        // Rule 2: a nearer delay.
        (r#""rate": 5, "jitter": 0.2"#, r#""delay": 100"#, (100.0, 0.0, None, 0.2, 1)),
        (r#""rate": 5"#, r#""slotDelay": 100"#, (1000.0, 100.0, None, HALF, 1)),
        (r#""rate": 5, "quota": 7"#, r#""delay": 100"#, (100.0, 0.0, None, HALF, 1)),
    ];
    for (farther, nearer, want) in cases {
        let options = format!(r#"{{ "defaults": {{ {farther} }}, "scopes": {{ "a": {{ {nearer} }} }} }}"#);
        assert_eq!(pace_of(&options), want, "{options}");
    }
}

#[test]
fn a_pace_beside_settings_of_another_scope_or_of_the_top() {
    assert_eq!(pace_of(r#"{ "scopes": { "b": { "delay": 200 } } }"#), pace_of("{}"));
    let options = r#"{ "maxInFlight": 40, "delay": 9, "scopes": { "a": { "rate": 1 } } }"#;
    assert_eq!(pace_of(options), (0.0, 0.0, Some(1.0), 0.0, 40), "a rate takes the slots of all");
}

#[test]
fn a_rate_and_a_delay_in_one_place_are_an_error() {
    let cases = [
        (r#"{ "rate": 5, "delay": 100 }"#, "rate: want rate or delay in one place, not both; got both"),
        (
            r#"{ "defaults": { "rate": 5 }, "slotDelay": 100 }"#,
            "defaults.rate: want rate or slotDelay in one place, not both; got both",
        ),
        (
            r#"{ "scopes": { "a": { "rate": 5, "delay": 100 } } }"#,
            "scopes.a.rate: want rate or delay in one place, not both; got both",
        ),
    ];
    for (json, want) in cases {
        let error = Config::parse(serde_json::from_str(json).unwrap()).unwrap_err();
        assert_eq!(error.problems.iter().map(ToString::to_string).collect::<Vec<_>>(), [want]);
    }
}
