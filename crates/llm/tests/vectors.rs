//! The cases that every host plays: `tests/vectors/llm.jsonl`, and that no reader takes more than its input's
//! share of time.

use autothrottle_llm::{Asking, Body, Kind, Refused, Vendor, asked, refusal};
use serde_json::{Value, json};

fn cases() -> Vec<Value> {
    let text = include_str!("../../../tests/vectors/llm.jsonl");
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// A text, or parts of one and how often each comes.
fn text_of(value: &Value) -> Vec<u8> {
    match value {
        Value::Array(parts) => parts
            .iter()
            .flat_map(|part| {
                part[0].as_str().unwrap().repeat(part[1].as_u64().unwrap() as usize).into_bytes()
            })
            .collect(),
        text => text.as_str().unwrap().as_bytes().to_vec(),
    }
}

fn number(number: Option<f64>) -> Value {
    number.map_or(Value::Null, Value::from)
}

/// The values that the readers find in a case.
fn read(case: &Value, piece: usize) -> Value {
    let flag = |key: &str| case[key].as_bool().unwrap_or(false);
    if !case["body"].is_null() {
        let mut body = Body::new(flag("stream"), flag("cachedFree"));
        text_of(&case["body"]).chunks(piece).for_each(|part| body.hear(part));
        body.end();
        let usage = body.usage;
        return json!({
            "input": number(usage.input), "free": usage.free, "output": number(usage.output),
            "written": body.written, "broken": body.is_broken, "whole": body.is_whole,
        });
    }
    if !case["refusal"].is_null() {
        let refused = Refused {
            status: case["status"].as_u64().unwrap() as u16,
            wait_ms: case["waitMs"].as_f64().unwrap(),
            has_retry_after: flag("retryAfter"),
            is_told_final: flag("toldFinal"),
            is_anthropic: flag("anthropic"),
        };
        let read = refusal(&refused, &text_of(&case["refusal"]));
        let kind = read.kind.map(Kind::name);
        return json!({ "waitMs": number(read.wait_ms), "final": read.is_final, "kind": kind });
    }
    let text = |key: &str| case[key].as_str();
    let read = asked(&Asking {
        host: text("host").unwrap(),
        path: text("path").unwrap(),
        method: text("method").unwrap(),
        body: &text_of(&case["request"]),
        form_model: text("formModel"),
        vendor: text("vendor").and_then(Vendor::named),
        keeps_texts: !case["is"]["texts"].is_null(),
    });
    let mut made = json!({
        "vendor": read.vendor.name(), "model": read.model, "characters": read.characters, "bytes": read.bytes,
        "tokens": read.tokens, "bound": number(read.bound), "uncounted": read.is_uncounted,
    });
    if !case["is"]["texts"].is_null() {
        made["texts"] = json!(read.texts);
    }
    made
}

/// Whole and broken numbers are one kind in JSON.
fn floats(value: &Value) -> Value {
    match value {
        Value::Number(number) => Value::from(number.as_f64().unwrap()),
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), floats(value))).collect(),
        other => other.clone(),
    }
}

#[test]
fn each_case_is_read_as_it_says_wherever_it_is_cut() {
    let mut wrong = Vec::new();
    for case in cases() {
        for piece in [usize::MAX, 7, 1] {
            let read = floats(&read(&case, piece));
            if read != floats(&case["is"]) {
                wrong.push(format!("{} ({piece}): {read}, not {}", case["name"], case["is"]));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn names_are_unique() {
    let mut names: Vec<String> = cases().iter().map(|case| case["name"].to_string()).collect();
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all);
}
