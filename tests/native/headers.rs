//! The header vectors and captured responses: what real servers send, read as somebody wrote down beforehand.

use std::fs;

use autothrottle::{
    Config, Decision, Engine, Feedback, Hint, Hints, Instant, Request, Span, headers::Context,
};
use serde_json::Value;

/// What the engine describes, as the vectors have it.
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

fn described(hints: &Hints) -> Value {
    json(&autothrottle::Value::from(hints))
}

fn lines(name: &str) -> Vec<Value> {
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

#[test]
fn all_header_vectors() {
    let cases = lines("headers.jsonl");
    assert_eq!(cases.len(), 152);
    let mut wrong = Vec::new();
    for case in &cases {
        let mut fields: Vec<(&str, &str)> = Vec::new();
        for (name, value) in case["headers"].as_object().unwrap() {
            match value {
                Value::String(value) => fields.push((name, value)),
                many => {
                    fields.extend(many.as_array().unwrap().iter().map(|v| (&name[..], v.as_str().unwrap())));
                }
            }
        }
        let context = Context {
            status: case["status"].as_u64().unwrap() as u16,
            wall_ms: case["now_epoch_ms"].as_i64(),
            ..Context::default()
        };
        let hints = Hints::read(fields, context);
        let got = described(&hints);
        assert_eq!(got, serde_json::to_value(&hints).unwrap());
        if !agrees(&got, &case["expect"]) {
            wrong.push(format!(
                "{}: {}\n  want {}\n  got  {got}",
                case["name"], case["headers"], case["expect"]
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of 152 wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Refusals that no wait would have avoided: what is behind the server is dead, or the configuration always refuses.
const NO_RULE: [&str; 6] = [
    "dead backend",
    "dead upstream",
    "dead server",
    "dead cluster",
    "always; return 503",
    "no built-in limiter",
];

/// The 407 captured responses as servers: what was sent is sent where the engine would have sent it, and answered as
/// it was. Once a server has said how long to wait, or what is left, the engine must not be refused again by the rule
/// that the capture shows: no refusal may lie where the engine would send.
#[test]
fn captured_servers_do_not_refuse_twice() {
    let captures = lines("captures.jsonl");
    assert_eq!(captures.len(), 407);
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
        let mut engine = Engine::new(Config::parse(serde_json::from_str(options).unwrap()).unwrap());
        let scope = [engine.scope("x")];
        let start = answers[0]["send_ms"].as_f64().unwrap();
        let mut has_said = false;
        for capture in answers {
            let at = |key: &str| Instant::from_millis(capture[key].as_f64().unwrap() - start).unwrap();
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
        "retry-after",
        "ratelimit",
        "ratelimit-policy",
        "x-ratelimit-reset",
        "x-ratelimit-limit",
        "x-ratelimit-remaining",
        "date",
        "age",
        "retry-after-ms",
        "x-shopify-shop-api-call-limit",
        "x-amzn-ratelimit-limit",
        "anthropic-ratelimit-tokens-reset",
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
