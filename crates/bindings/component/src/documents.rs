//! The documents that cross as JSON: options and snapshots, which every host shares, and what is for people.

use std::mem::take;

use autothrottle::{ConfigError, Value, value::number_text};

use crate::bindings::exports::autothrottle::engine::throttling::Problem;

/// The key of an object that stands for a value that JSON lacks.
const OTHER: &str = "$other";

/// A document, or why it is none.
pub fn read(text: &str) -> Result<Value, Vec<Problem>> {
    match serde_json::from_str(text) {
        Ok(mut value) => {
            find_others(&mut value);
            Ok(value)
        }
        Err(error) => {
            let [line, column] = [error.line(), error.column()].map(|place| number_text(place as f64));
            let got = ["what is none at line ", &line, ", column ", &column].concat();
            Err(vec![Problem { path: String::new(), want: "JSON".into(), got }])
        }
    }
}

/// A document as text.
pub fn write(value: &Value) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Problems as the component's.
pub fn problems(error: ConfigError) -> Vec<Problem> {
    let problems = error.triples().into_iter();
    problems.map(|[path, want, got]| Problem { path, want, got }).collect()
}

/// Puts in what JSON lacks.
fn find_others(value: &mut Value) {
    match value {
        Value::List(items) => items.iter_mut().for_each(find_others),
        Value::Map(entries) => match &mut entries[..] {
            [(key, Value::Text(what))] if key == OTHER => *value = Value::Other(take(what)),
            _ => entries.iter_mut().for_each(|(_, value)| find_others(value)),
        },
        _ => {}
    }
}
