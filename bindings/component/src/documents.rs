//! The two documents that cross as JSON: options and snapshots. They have versions and schemas of their own,
//! and every host shares them: Node writes a snapshot, Python goes on with it.

use autothrottle::{ConfigError, Value, value::number_text};

use crate::bindings::exports::autothrottle::engine::throttling::Problem;
use crate::json;

/// The key of an object that stands for a value that JSON lacks.
const OTHER: &str = "$other";

/// A document, or why it is none.
pub fn read(text: &str) -> Result<Value, Vec<Problem>> {
    json::parse(text).map(with_others).map_err(|(line, column)| {
        let [line, column] = [line, column].map(|place| number_text(place as f64));
        let got = ["what is none from line ", &line, ", column ", &column].concat();
        vec![Problem { path: String::new(), want: "JSON".into(), got }]
    })
}

/// Problems as the component's.
pub fn problems(error: ConfigError) -> Vec<Problem> {
    let problems = error.triples().into_iter();
    problems.map(|[path, want, got]| Problem { path, want, got }).collect()
}

/// The value with what stands for things that JSON lacks.
fn with_others(value: Value) -> Value {
    match value {
        Value::List(items) => Value::List(items.into_iter().map(with_others).collect()),
        Value::Map(entries) => match &entries[..] {
            [(key, Value::Text(what))] if key == OTHER => Value::Other(what.clone()),
            _ => {
                let each = entries.into_iter().map(|(key, value)| (key, with_others(value)));
                Value::Map(each.collect())
            }
        },
        other => other,
    }
}
