//! One of several that go on alone, since they cannot ask each other: each with its part of every limit.
//!
//! Its clock runs slower by their number, so gaps, rates and what was learned are divided without a word
//! about them. Slots are no span, and a quota is an amount: those are divided by themselves. The trap is what
//! cannot be divided: a slot fewer than processes, which only the first of them use; and a strict quota,
//! which waits for the way.

use autothrottle::{Config, Value};

use crate::aside::strict;

/// A quota that names no window has this one, in milliseconds.
const WINDOW_MS: f64 = 60_000.0;

/// Whether a request of these scopes has no part: `share` is of how many processes it is one, and which.
pub fn waits(config: &Config, names: &[String], (of, rank): (u32, u32)) -> bool {
    let has_no_slot = |slots: u32| slots < of && rank >= slots;
    has_no_slot(config.concurrency)
        || names
            .iter()
            .any(|name| has_no_slot(config.scope(name).concurrency) || strict(config, None, name).is_some())
}

/// Whether any quota is set for these scopes.
pub fn has_quota(config: &Config, names: &[String]) -> bool {
    names.iter().any(|name| !config.scope(name).quotas.is_empty())
}

/// The options of one of so many processes.
pub fn divided(options: Value, of: u32) -> Value {
    let Value::Map(entries) = part(options, of) else { return Value::Nothing };
    let mut entries: Vec<_> = entries
        .into_iter()
        .map(|(key, value)| match (&*key, value) {
            ("defaults", value) => (key, part(value, of)),
            ("scopes", Value::Map(scopes)) => {
                let scopes = scopes.into_iter().map(|(name, scope)| (name, part(scope, of))).collect();
                (key, Value::Map(scopes))
            }
            (_, value) => (key, value),
        })
        .collect();
    // The window that nobody named is shorter as well, since the clock runs slower.
    let has = |entries: &[(String, Value)], key: &str| {
        entries.iter().any(|(name, value)| name == key && *value != Value::Nothing)
    };
    if !has(&entries, "window") {
        let window = ("window".to_string(), Value::Number(WINDOW_MS / f64::from(of)));
        match entries.iter_mut().find(|(key, _)| key == "defaults") {
            Some((_, Value::Map(defaults))) if has(defaults, "window") => {}
            Some((_, Value::Map(defaults))) => defaults.push(window),
            _ => entries.push(("defaults".into(), Value::Map(vec![window]))),
        }
    }
    Value::Map(entries)
}

/// The same of a scope's settings.
pub fn part(limits: Value, of: u32) -> Value {
    let Value::Map(entries) = limits else { return limits };
    let by = f64::from(of);
    let entries = entries.into_iter().map(|(key, value)| {
        let value = match (&*key, value) {
            ("concurrency", Value::Number(slots)) => Value::Number((slots / by).floor().max(1.0)),
            ("window", Value::Number(ms)) => Value::Number(ms / by),
            ("quota", Value::List(quotas)) => {
                Value::List(quotas.into_iter().map(|quota| one(quota, by)).collect())
            }
            ("quota", quota) => one(quota, by),
            (_, value) => value,
        };
        (key, value)
    });
    Value::Map(entries.collect())
}

fn one(quota: Value, by: f64) -> Value {
    match quota {
        Value::Number(limit) => Value::Number(limit / by),
        Value::Map(entries) => {
            let entries = entries.into_iter().map(|(key, value)| match (&*key, value) {
                ("limit" | "window", Value::Number(number)) => (key, Value::Number(number / by)),
                (_, value) => (key, value),
            });
            Value::Map(entries.collect())
        }
        other => other,
    }
}

/// What was known of all, for one of them: its part of what was used, and spans by its slower clock.
pub fn divided_snapshot(snapshot: Value, of: u32) -> Value {
    let by = f64::from(of);
    map(snapshot, |key, value| match (key, value) {
        ("scopes", Value::Map(scopes)) => {
            let scopes = scopes.into_iter().map(|(name, scope)| {
                let scope = map(scope, |key, value| match (key, value) {
                    ("hold", Value::Number(ms)) => Value::Number(ms / by),
                    ("quotas", Value::List(quotas)) => {
                        Value::List(quotas.into_iter().map(|spent| divided_spent(spent, by)).collect())
                    }
                    (_, value) => value,
                });
                (name, scope)
            });
            Value::Map(scopes.collect())
        }
        (_, value) => value,
    })
}

fn divided_spent(spent: Value, by: f64) -> Value {
    map(spent, |key, value| match (key, value) {
        ("window", Value::Number(ms)) => Value::Number(ms / by),
        ("sends", Value::List(sends)) => {
            let sends = sends.into_iter().map(|send| match send {
                Value::List(pair) => Value::List(
                    pair.into_iter()
                        .map(|number| match number {
                            Value::Number(number) => Value::Number(number / by),
                            other => other,
                        })
                        .collect(),
                ),
                other => other,
            });
            Value::List(sends.collect())
        }
        (_, value) => value,
    })
}

/// Each value of an object as another one.
pub fn map(value: Value, with: impl Fn(&str, Value) -> Value) -> Value {
    let Value::Map(entries) = value else { return value };
    Value::Map(
        entries
            .into_iter()
            .map(|(key, value)| {
                let value = with(&key, value);
                (key, value)
            })
            .collect(),
    )
}
