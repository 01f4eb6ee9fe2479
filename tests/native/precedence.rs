//! Which settings of the pace win, and which defaults are left beside them: the cases of
//! `src/config/precedence.rs` as a table.

use autothrottle::Config;

use crate::made::json;

/// What scope `a` has: delay, slot delay, requests a second of its rate, jitter, slots.
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
        (r#""concurrency": 5, "jitter": 0.1"#, "", (1000.0, 1000.0, None, 0.1, 5)),
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
fn what_another_scope_or_the_top_says() {
    assert_eq!(pace_of(r#"{ "scopes": { "b": { "delay": 200 } } }"#), pace_of("{}"));
    let options = r#"{ "concurrency": 40, "delay": 9, "scopes": { "a": { "rate": 1 } } }"#;
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
