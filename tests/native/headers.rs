//! The header vectors and captured responses: what real servers send, read as was written down beforehand.

use std::fs;

use autothrottle::{
    Decision, Feedback, Hint, Hints, Request, Span,
    headers::{AppliesTo, Context},
};
use serde_json::Value;

use crate::helpers::{engine, millis};

/// The engine's value, as the vectors have it.
fn json(value: &autothrottle::Value) -> Value {
    use autothrottle::Value as Plain;
    match value {
        Plain::Nothing => Value::Null,
        Plain::Bool(flag) => (*flag).into(),
        Plain::Number(number) => (*number).into(),
        Plain::Text(text) => text.as_str().into(),
        Plain::List(items) => items.iter().map(json).collect(),
        Plain::Map(entries) => entries.iter().map(|(key, value)| (key.clone(), json(value))).collect(),
        Plain::Other(what) => panic!("{what}"),
    }
}

pub fn described(hints: &Hints) -> Value {
    json(&autothrottle::Value::from(hints))
}

pub fn lines(name: &str) -> Vec<Value> {
    let text = fs::read_to_string(format!("{}/tests/vectors/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// `delay_ms` → `delayMs`.
fn camel(key: &str) -> String {
    let mut words = key.split('_');
    let first = words.next().unwrap().to_string();
    words.fold(first, |text, word| text + &word[..1].to_uppercase() + &word[1..])
}

/// Everything that is expected is there; what is not mentioned may be anything.
fn agrees(got: &Value, want: &Value) -> bool {
    match want {
        Value::Object(want) => want.iter().all(|(key, want)| agrees(&got[camel(key)], want)),
        Value::Array(want) => {
            let got = got.as_array().map_or(&[][..], Vec::as_slice);
            got.len() == want.len() && got.iter().zip(want).all(|(got, want)| agrees(got, want))
        }
        Value::Number(want) => got.as_f64() == want.as_f64(),
        other => got == other,
    }
}

/// The header fields of a vector, with those that come several times.
pub fn fields_of(case: &Value) -> Vec<(&str, &str)> {
    let mut fields: Vec<(&str, &str)> = Vec::new();
    for (name, value) in case["headers"].as_object().unwrap() {
        match value {
            Value::String(value) => fields.push((name, value)),
            many => {
                fields.extend(many.as_array().unwrap().iter().map(|v| (&name[..], v.as_str().unwrap())));
            }
        }
    }
    fields
}

#[test]
fn all_header_vectors() {
    let cases = lines("headers.jsonl");
    assert!(cases.len() >= 177, "vectors are missing: {}", cases.len());
    let mut wrong = Vec::new();
    for case in &cases {
        let fields = fields_of(case);
        let context = Context {
            status: case["status"].as_u64().unwrap() as u16,
            wall_ms: case["now_epoch_ms"].as_i64(),
            ..Context::default()
        };
        let hints = Hints::read(fields, context);
        let got = described(&hints);
        if !agrees(&got, &case["expect"]) {
            wrong.push(format!(
                "{}: {}\n  want {}\n  got  {got}",
                case["name"], case["headers"], case["expect"]
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {} wrong:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// Refusals that no wait would have avoided: what is behind the server is dead, or the configuration always
/// refuses.
const NO_RULE: [&str; 6] = [
    "dead backend", "dead upstream", "dead server", "dead cluster", "always; return 503",
    "no built-in limiter",
];

/// The captured responses as servers: what was sent is sent where the engine would have sent it, and
/// answered as it was. Once a server has said how long to wait, or what is left, the rule that the capture
/// shows must not refuse the engine again: no refusal may lie where the engine would send.
#[test]
fn captured_servers_do_not_refuse_twice() {
    let captures = lines("captures.jsonl");
    assert!(captures.len() >= 407, "captures are missing: {}", captures.len());
    let mut servers: Vec<(String, Vec<&Value>)> = Vec::new();
    for capture in &captures {
        let name = format!("{} {}", capture["version"].as_str().unwrap(), capture["config"]);
        match servers.iter_mut().find(|(known, _)| *known == name) {
            Some((_, answers)) => answers.push(capture),
            None => servers.push((name, vec![capture])),
        }
    }
    let (mut wrong, mut held, mut with_hints) = (Vec::new(), 0, 0);
    for (name, answers) in &servers {
        let options = r#"{ "defaults": { "delay": 0, "slotDelay": 0, "concurrency": 16, "jitter": false } }"#;
        let mut engine = engine(options);
        let scope = [engine.scope("x")];
        let start = answers[0]["send_ms"].as_f64().unwrap();
        let mut has_said = false;
        for capture in answers {
            let at = |key: &str| millis(capture[key].as_f64().unwrap() - start);
            let status = capture["status"].as_u64().unwrap() as u16;
            let ok = answers[0]["status"] == capture["status"] && capture["phase"] == "ok";
            let peek = engine.peek(at("send_ms"), Request::new(&scope)).unwrap();
            if peek.because.is_some() {
                held += 1;
                continue;
            }
            let is_refused = !ok && capture["phase"] != "ok" && status != 200;
            if is_refused && has_said && !NO_RULE.iter().any(|what| name.contains(what)) {
                wrong.push(format!("{name}: refused again at {} ms", at("send_ms").millis()));
            }
            let ticket = engine.submit(at("send_ms"), Request::new(&scope)).unwrap();
            assert_eq!(engine.poll(at("send_ms")), Decision::Send(ticket));
            let fields = capture["headers"].as_array().unwrap().iter();
            let fields = fields.map(|pair| (pair[0].as_str().unwrap(), pair[1].as_str().unwrap()));
            let wall_ms = capture["recv_ms"].as_f64().map(|ms| ms as i64);
            let hints = Hints::read(fields, Context { status, wall_ms, ..Context::default() });
            has_said |= hints.delay_ms.is_some();
            let hint = Hint::of(&hints);
            let answer = if status == 0 {
                Feedback::from_numbers(0.0, f64::NAN, true, f64::NAN, f64::NAN)
            } else {
                Feedback::response(status)
            };
            engine.settle(at("recv_ms"), ticket, &Feedback { hint, ..answer });
        }
        with_hints += usize::from(has_said);
    }
    assert!(wrong.is_empty(), "{} of {} servers:\n{}", wrong.len(), servers.len(), wrong.join("\n"));
    assert!(servers.len() > 60 && with_hints > 40 && held > 100, "{} {with_hints} {held}", servers.len());
}

/// 64 KiB values, thousands of members, control bytes, numbers that overflow: some answer, at once.
#[test]
fn hostile_headers_are_read_in_bounded_time() {
    let long = "9".repeat(65_536);
    let members = "\"q\";r=1;t=1,".repeat(6000);
    let params = format!("\"q\"{}", ";a=1".repeat(20_000));
    let dates = "Fri, ".repeat(13_000);
    let names: Vec<String> = (0..5000).map(|index| format!("x-ratelimit-limit-name{index}")).collect();
    let values = [
        &long[..],
        &members,
        &params,
        &dates,
        "\u{0}\u{7f}\u{1}",
        "-",
        "1,,,,",
        ";;;",
        "\"",
        "é",
        "18446744073709551616",
        "1.7976931348623157e308",
        "::::",
        "=",
        "a=b=c",
    ];
    let fields = [
        "retry-after", "ratelimit", "ratelimit-policy", "x-ratelimit-reset", "x-ratelimit-limit",
        "x-ratelimit-remaining", "date", "age", "retry-after-ms", "x-shopify-shop-api-call-limit",
        "x-amzn-ratelimit-limit", "anthropic-ratelimit-tokens-reset", "zendesk-ratelimit-search-index",
    ];
    for value in values {
        for status in [200, 429] {
            let all =
                fields.iter().map(|&name| (name, value)).chain(names.iter().map(|name| (&name[..], value)));
            let hints =
                Hints::read(all, Context { status, wall_ms: Some(i64::MAX / 4), ..Context::default() });
            assert!(hints.quotas.len() <= 70, "{}", hints.quotas.len());
            assert!(Hint::of(&hints).hold.is_none_or(|span| span <= Span::from_millis(31_536_000_000.0)));
        }
    }
    let doubled: Vec<(&str, &str)> = (0..20_000).map(|_| ("Retry-After", "1")).collect();
    assert_eq!(Hints::read(doubled, Context { status: 429, ..Context::default() }).delay_ms, Some(1000));
}

fn read(status: u16, fields: &[(&str, &str)]) -> Hints {
    let wall_ms = Some(1_795_203_840_000); // 2026-11-20T19:44:00Z
    Hints::read(fields.iter().copied(), Context { status, wall_ms, ..Context::default() })
}

#[test]
fn an_answer_with_an_age_came_from_a_cache() {
    for (age, is_cached) in [("1", true), ("3600, 0", true), ("0", false), ("-1", false), ("old", false)] {
        let hints = read(200, &[("Age", age)]);
        assert_eq!((hints.is_cached, Hint::of(&hints).is_cached), (is_cached, is_cached), "{age}");
        assert_eq!(described(&hints)["cached"] == true, is_cached, "{age}");
    }
}

/// The quotas of a good answer with the field alone, or the fields: `(limit, remaining, reset in ms, window
/// in ms)` each.
fn quotas(hints: &Hints) -> Vec<[Option<u64>; 4]> {
    hints.quotas.iter().map(|quota| [quota.limit, quota.remaining, quota.reset_ms, quota.window_ms]).collect()
}

/// RFC 9110 §10.2.3: on a redirect it is the wait before the next hop. Only these five are followed (§15.4):
/// a 304 answers from what the client has, and a server that sends `Retry-After` on every answer sends it on
/// a 304 too.
#[test]
fn only_redirects_that_are_followed_wait() {
    let fields = [("Retry-After", "7")];
    for status in [301, 302, 303, 307, 308] {
        let hints = read(status, &fields);
        assert_eq!(hints.delay_ms, Some(7000), "{status}");
        assert_eq!(hints.applies_to.map(AppliesTo::name), Some("redirect"), "{status}");
        assert_eq!(hints.hold_ms(), None, "{status}");
    }
    for status in [200, 300, 304, 305, 306, 399] {
        let hints = read(status, &fields);
        assert_eq!((hints.delay_ms, hints.applies_to, hints.source), (None, None, None), "{status}");
    }
    // A quota that is used up holds on whatever status; on a 304 without the second that refusals get.
    let quota = [("RateLimit", "\"q\";r=0;t=9"), ("Retry-After", "5")];
    assert_eq!(read(304, &quota).hold_ms(), Some(9000));
    assert_eq!(read(429, &quota).hold_ms(), Some(6000));
}

/// Not every server reads RFC 9110.
#[test]
fn a_wait_may_have_a_unit_quotes_and_parameters() {
    let wait = |text| read(429, &[("retry-after", text)]).delay_ms;
    for text in ["30 seconds", "30 s", "\"30\"", "30; reason=\"busy\"", "\"30\", 5", "30 sec , 7", "30s"] {
        assert_eq!(wait(text), Some(30_000), "{text}");
    }
    let date = "\"Fri, 20 Nov 2026 19:45:00 GMT\"";
    assert_eq!(wait(date), wait(date.trim_matches('"')), "a date, too");
    for text in ["30 minutes", "seconds", "\"", "\"\"", ";", "a 30"] {
        assert_eq!(wait(text), None, "{text}");
    }
}

/// A reset with a fraction is exact, and a short one in whole seconds gets no second more; nor has a longer
/// one more than its window.
#[test]
fn a_window_of_a_second_loses_no_second() {
    let hold = |wall_ms: i64, fields: &[(&str, &str)]| {
        let context = Context { status: 429, wall_ms: Some(wall_ms), ..Context::default() };
        let date = ("date", "Fri, 20 Nov 2026 19:44:00 GMT");
        let fields = fields.iter().copied().chain([date]);
        Hints::read(fields, context).hold_ms()
    };
    let wall_ms = 1_795_203_840_700;
    let left = ("x-ratelimit-remaining", "0");
    let epoch = ("x-ratelimit-reset", "1795203841.250");
    assert_eq!(hold(wall_ms, &[left, epoch]), Some(550), "Date cuts its fraction off");
    assert_eq!(hold(wall_ms + 60_000, &[left, epoch]), Some(1250), "the wall time is another");
    let whole = |reset| hold(wall_ms, &[left, ("x-ratelimit-reset", reset)]);
    assert_eq!(["1", "2", "3"].map(whole), [Some(1000), Some(2000), Some(4000)]);
    let window = ("ratelimit-policy", "10;w=10");
    let of_ten = |reset| {
        let fields =
            [window, ("ratelimit-limit", "10"), ("ratelimit-remaining", "0"), ("ratelimit-reset", reset)];
        hold(wall_ms, &fields)
    };
    assert_eq!(["8", "10"].map(of_ten), [Some(9000), Some(10_000)]);
    assert_eq!(hold(wall_ms, &[("retry-after", "1")]), Some(2000), "a wait that is named is another matter");
}

#[test]
fn durations_of_go() {
    let cases = [
        ("1h2m3.5s", Some(3_723_500)),
        ("1.5h", Some(5_400_000)),
        ("17ms", Some(17)),
        ("1ns", Some(1)),
        ("300us", Some(1)),
        ("1500µs", Some(2)),  // U+00B5, which Go writes
        ("1500μs", Some(2)),  // U+03BC, which it reads
        ("1500Âµs", Some(2)), // the same as fetch decodes it: header bytes are Latin-1
        ("1500Î¼s", Some(2)),
        ("1ms500µs", Some(2)),
        ("2s1ns", Some(2001)),
        ("3.000000001s", Some(3001)),
        ("0s", Some(0)),
        ("-1s", None),
        ("1x", None),
        ("1és2", None),
        ("µs", None),
        ("1s 2s", None),
        ("9999999999999h", None),
    ];
    for (text, want) in cases {
        let hints = read(429, &[("X-RateLimit-Remaining-Tokens", "0"), ("X-RateLimit-Reset-Tokens", text)]);
        assert_eq!(hints.delay_ms, want, "{text}");
        assert_eq!(read(429, &[("Retry-After", text)]).delay_ms, want, "{text}");
    }
}

#[test]
fn less_than_nothing_is_used_up() {
    let cases: [&[(&str, &str)]; 6] = [
        &[("X-RateLimit-Remaining", "-1"), ("X-RateLimit-Reset", "9")],
        &[("X-RateLimit-Limit", "10"), ("X-RateLimit-Remaining", "-3"), ("X-RateLimit-Reset", "9")],
        &[("anthropic-ratelimit-tokens-remaining", "-1"), ("anthropic-ratelimit-tokens-reset", "9s")],
        &[("RateLimit-Remaining", "-2.5"), ("RateLimit-Reset", "9")],
        &[("RateLimit", "\"q\";r=-1;t=9")],
        &[("RateLimit", "limit=10, remaining=-1, reset=9")],
    ];
    for fields in cases {
        let hints = read(200, fields);
        assert_eq!(hints.quotas.len(), 1, "{fields:?}");
        assert_eq!((hints.quotas[0].remaining, hints.delay_ms), (Some(0), Some(9000)), "{fields:?}");
    }
    // A limit below zero is none (Azure).
    let unlimited = [("x-ratelimit-limit-tokens", "-1"), ("x-ratelimit-remaining-tokens", "-1")];
    assert_eq!(read(200, &unlimited).quotas, []);
}

#[test]
fn dates_of_iso_8601_need_no_seconds() {
    for (text, want) in [
        ("2026-11-20T19:45Z", Some(60_000)),
        ("2026-11-20T20:45+01:00", Some(60_000)),
        ("2026-11-20 19:45", Some(60_000)),
        ("2026-11-20T19:45:00.250Z", Some(60_250)),
        ("2026-11-20T19Z", None),
        ("2026-11-20T19:Z", None),
        ("2026-11-20T19:45:Z", None),
        ("2026-11-20T19:60Z", None),
        ("Fri, 20 Nov 2026 19:45 GMT", None), // RFC 9110 §5.6.7 has seconds
    ] {
        let fields = [("Retry-After", text), ("Date", "Fri, 20 Nov 2026 19:44:00 GMT")];
        assert_eq!(read(503, &fields).delay_ms, want, "{text}");
    }
}

/// A year has four digits and follows the day; a quota has a name, and something is said of it.
#[test]
fn texts_that_only_look_like_a_date_or_a_quota() {
    for text in ["Fri, 20 Nov 026 19:45:00 GMT", "2026 Nov 20 19:45:00 GMT", "Fri, 20 Nov 20261 19:45:00 GMT"]
    {
        assert_eq!(read(503, &[("Retry-After", text)]).delay_ms, None, "{text}");
    }
    for text in ["5;r=0;t=9", r#""a";r=0;t=9, 5"#, r#""a", "b""#, "100"] {
        assert_eq!(read(200, &[("RateLimit", text)]).quotas, [], "{text}");
    }
}

/// Spring Cloud Gateway's `RedisRateLimiter`: a token bucket, a replenish rate per second, a price per
/// request.
#[test]
fn springs_bucket() {
    let spring = |price, remaining| {
        let fields = [
            ("X-RateLimit-Remaining", remaining),
            ("X-RateLimit-Requested-Tokens", price),
            ("X-RateLimit-Burst-Capacity", "20"),
            ("X-RateLimit-Replenish-Rate", "10"),
        ];
        read(200, &fields)
    };
    let hints = spring("1", "19");
    assert_eq!(quotas(&hints), [[Some(20), Some(19), None, None]]);
    assert_eq!(hints.pace_ms(), Some((100.0, false)));
    assert_eq!(described(&hints)["ratePerS"], 10.0);
    // Five tokens a request: the bucket holds four requests, and two come back each second.
    let hints = spring("5", "14");
    assert_eq!(quotas(&hints), [[Some(4), Some(2), None, None]]);
    assert_eq!(hints.pace_ms(), Some((500.0, false)));
    assert_eq!(quotas(&spring("0", "14")), [[Some(20), Some(14), None, None]], "a price of nothing is none");
}

/// Zendesk's limits of single endpoints: the name of the endpoint is in the field's name.
#[test]
fn zendesks_endpoints() {
    let zendesk = |text| read(200, &[("Zendesk-RateLimit-Tickets-Index", text)]);
    let hints = zendesk("total=100; remaining=99; resets=48");
    assert_eq!(quotas(&hints), [[Some(100), Some(99), Some(48_000), None]]);
    assert_eq!(hints.quotas[0].policy.as_deref(), Some("tickets-index"));
    assert_eq!(hints.budget_of(&hints.quotas[0]).as_deref(), Some("tickets-index"));
    for text in ["resets=48;remaining=0;total=100", "total=100; remaining=-1; resets=48"] {
        assert_eq!(quotas(&zendesk(text)), [[Some(100), Some(0), Some(48_000), None]], "{text}");
        assert_eq!(zendesk(text).hold_ms(), Some(48_000), "{text}");
    }
    // A part that is missing or is no number.
    for text in [
        "100",
        "total=100; remaining=99",
        "total=100; remaining=99; resets",
        "total=100; remaining=; resets=48",
        "total=100; remaining=0; resets=soon",
        "total=100, remaining=99, resets=48",
        "total=100; remaining=99; resets=48, total=100; remaining=98; resets=47",
    ] {
        assert_eq!(zendesk(text).quotas, [], "{text}");
    }
}

#[test]
fn amazons_rate_is_never_rounded_up() {
    for (text, per_s, pace_ms) in [
        ("0.0055", 0.0055, 1e9 / 5500.0),
        ("0.5", 0.5, 2000.0),
        ("2", 2.0, 500.0),
        ("0.0166666667", 0.016_666, 1e9 / 16_666.0),
    ] {
        let hints = read(200, &[("x-amzn-RateLimit-Limit", text)]);
        assert_eq!(described(&hints)["ratePerS"], per_s, "{text}");
        assert_eq!(hints.pace_ms(), Some((pace_ms, false)), "{text}");
    }
    assert_eq!(read(200, &[("x-amzn-RateLimit-Limit", "0.0000001")]).pace_ms(), None);
}

/// `X-RateLimit-Remaining` was read twice: as a part of the unnamed quota, and as a quota with no name.
#[test]
fn a_rest_alone_makes_no_second_quota() {
    let ours = [("X-RateLimit-Limit", "60"), ("X-RateLimit-Remaining", "56"), ("X-RateLimit-Reset", "3600")];
    assert_eq!(quotas(&read(200, &ours)), [[Some(60), Some(56), Some(3_600_000), None]]);
    assert_eq!(quotas(&read(200, &ours[1..2])), [[None, Some(56), None, None]]);
    // Told by RateLimit already, in either of its forms.
    let both = [("RateLimit", "\"q\";r=5;t=9"), ("X-RateLimit-Remaining", "5")];
    assert_eq!(quotas(&read(200, &both)), [[None, Some(5), Some(9000), None]]);
    let both = [("RateLimit-Remaining", "5"), ("RateLimit-Reset", "9"), ("X-RateLimit-Remaining", "4")];
    assert_eq!(quotas(&read(200, &both)), [[None, Some(5), Some(9000), None]]);
    // Two spellings of one family.
    let twice = [("X-Rate-Limit-Limit", "9"), ("X-RateLimit-Limit", "9"), ("X-Rate-Limit-Remaining", "3")];
    assert_eq!(quotas(&read(200, &twice)), [[Some(9), Some(3), None, None]]);
    // But named ones stand beside it, and HubSpot's unnamed one is its own.
    let named = [("X-RateLimit-Remaining", "5"), ("X-RateLimit-Remaining-Day", "100")];
    assert_eq!(quotas(&read(200, &named)).len(), 2);
    let hubspot = [("X-HubSpot-RateLimit-Max", "100"), ("X-HubSpot-RateLimit-Remaining", "9")];
    assert_eq!(quotas(&read(200, &hubspot)), [[Some(100), Some(9), None, None]]);
}

/// Escapes belong to the string of a structured field (RFC 9651 §4.2.5), and only there.
#[test]
fn names_are_shown_as_they_are_meant() {
    let hints = read(200, &[("RateLimit", r#""say \"a\\b\"";r=1"#), ("X-RateLimit-Bucket", r"a\b é")]);
    assert_eq!(hints.quotas[0].policy.as_deref(), Some(r#"say "a\b""#));
    assert_eq!(hints.bucket.as_deref(), Some("a\\b \u{fffd}\u{fffd}"));
}

/// Hostile answers leave a bounded result: fields, their length, members, names. (Work grows with the input,
/// for each byte is looked at a fixed number of times; the bounds are what makes that so.)
#[test]
fn hostile_answers_leave_little_behind() {
    let name = "n".repeat(100_000);
    let unnamed = format!("X-RateLimit-Limit-{name}");
    let quoted = format!("\"{name}\";r=1;t=1");
    let many: Vec<String> = (0..100_000).map(|index| format!("X-RateLimit-Limit-{index}")).collect();
    let values = [
        ",".repeat(1_000_000),
        "(".repeat(1_000_000),
        "((\"a\";r=1),".repeat(100_000),
        "\"a\";r=1;t=1,".repeat(100_000),
        ";w=1".repeat(250_000),
        "1h".repeat(500_000),
        "Fri, ".repeat(200_000),
        "\\\"".repeat(500_000),
        quoted,
        "1".into(),
    ];
    let families = [
        "Retry-After", "RateLimit", "RateLimit-Policy", "RateLimit-Limit", "X-RateLimit-Limit",
        "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-RateLimit-Bucket", "X-RateLimit-Scope",
        "X-Shopify-Shop-Api-Call-Limit", "X-Amzn-RateLimit-Limit", "Date", "Age", &unnamed,
    ];
    for value in &values {
        for status in [200, 429] {
            let fields = families.iter().copied().chain(many.iter().map(|name| &name[..]));
            let hints =
                Hints::read(fields.map(|name| (name, &value[..])), Context { status, ..Context::default() });
            let text = described(&hints).to_string();
            assert!(hints.quotas.len() <= 66 && text.len() < 100_000, "{} {}", &value[..3], text.len());
        }
    }
    // Lines of one name are joined, but not for ever.
    let again = (0..100_000).map(|_| ("RateLimit", "\"a\";r=1;t=1"));
    assert!(Hints::read(again, Context::default()).quotas.len() <= 64);
}
