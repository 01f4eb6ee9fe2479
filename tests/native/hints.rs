//! The header vectors and captured responses: what real servers send, read as somebody wrote down beforehand.

use std::fs;

use autothrottle::{Hints, hints::Context};
use serde_json::Value;

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
        let got = serde_json::to_value(Hints::read(fields, context)).unwrap();
        if !agrees(&got, &case["expect"]) {
            wrong.push(format!(
                "{}: {}\n  want {}\n  got  {got}",
                case["name"], case["headers"], case["expect"]
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of 152 wrong:\n{}", wrong.len(), wrong.join("\n"));
}
