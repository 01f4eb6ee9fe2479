//! What of `retry` the engine reads: after what a request is sent again, and how long a wait it takes.
//!
//! `limit` and `methods` are left to the driver, which knows the request's method and body.

use super::reader::{Problems, join};
use crate::{
    policy::retry::{Config, Long},
    time::{LONGEST_MS, Span},
    value::{Value, number_text},
};

/// Reads `retry`.
pub(super) fn read(value: Value, path: &str, problems: &mut Problems) -> Config {
    let mut config = Config::default();
    let Value::Map(entries) = value else {
        problems.add(path, "an object with limit", value.describe());
        return config;
    };
    for (key, value) in entries {
        let path = join(path, &key);
        match (key.as_str(), &value) {
            (_, Value::Nothing) | ("limit" | "methods", _) => {}
            ("statusCodes", value) => match codes(value) {
                Some(codes) => config.status_codes = codes,
                None => problems.add(&path, "a list of statuses from 400 to 599", value.describe()),
            },
            ("maxRetryAfter", Value::Number(ms)) if (0.0..=LONGEST_MS).contains(ms) => {
                config.max_retry_after = Span::from_millis(*ms);
            }
            ("maxRetryAfter", value) => {
                let want = format!("milliseconds from 0 to {}", number_text(LONGEST_MS));
                problems.add(&path, want, value.describe());
            }
            ("longRetryAfter", value) => match Long::ALL.iter().find(|(_, word)| is_word(value, word)) {
                Some((long, _)) => config.long_retry_after = *long,
                None => problems.add(&path, r#"one of "fail", "wait", "cap""#, value.describe()),
            },
            (_, value) => problems.add(&path, "a known setting", value.describe()),
        }
    }
    config
}

fn is_word(value: &Value, word: &str) -> bool {
    matches!(value, Value::Text(text) if text == word)
}

/// A list of statuses, sorted.
fn codes(value: &Value) -> Option<Box<[u16]>> {
    let Value::List(items) = value else { return None };
    let mut codes: Vec<u16> = Vec::new();
    for item in items {
        let Value::Number(code) = item else { return None };
        if !(400.0..600.0).contains(code) || code.trunc() != *code {
            return None;
        }
        if let Err(place) = codes.binary_search(&(*code as u16)) {
            codes.insert(place, *code as u16);
        }
    }
    Some(codes.into())
}
