//! One of several that go on alone, since they cannot ask each other: each with its part of every limit.
//!
//! Its clock runs slower by their number, so gaps, rates and what was learned are divided without a word
//! about them. Slots are no span, and a quota is an amount: those are divided by themselves. A rate is
//! divided, too, where the processes never met: if each keeps its gap, at whatever instants, a span holds one
//! request more of each.
//!
//! If there are fewer slots than processes, only the first of them use one, and each where they never met. A
//! strict quota cannot be divided:
//! it waits for the connection.

use autothrottle::{Config, Value};

use crate::reservation::strict;

/// The time that a request may leave before its rate allows it, after one that was late.
const GRACE_MS: f64 = autothrottle::policy::rate::GRACE.micros() as f64 / 1000.0;
/// A quota that names no window has this one, in milliseconds.
const WINDOW_MS: f64 = 60_000.0;

/// Whether a request of these scopes has no part: `share` is of how many processes it is one, and which.
/// Those that never met do not know which of them are the first, so each has one slot.
pub fn waits(config: &Config, names: &[String], (of, rank): (u32, u32)) -> bool {
    let has_no_slot = |slots: u32| (slots..of).contains(&rank);
    has_no_slot(config.max_in_flight)
        || names
            .iter()
            .any(|name| has_no_slot(config.scope(name).concurrency) || strict(config, None, name).is_some())
}

/// Whether any quota is set for these scopes.
pub fn has_quota(config: &Config, names: &[String]) -> bool {
    names.iter().any(|name| !config.scope(name).quotas.is_empty())
}

/// The options of one of this many processes.
pub fn divided(options: Value, share: (u32, u32)) -> Value {
    let Value::Map(entries) = part(options, share) else { return Value::Nothing };
    let mut entries: Vec<_> = entries
        .into_iter()
        .map(|(key, value)| match (&*key, value) {
            ("defaults", value) => (key, part(value, share)),
            ("scopes", Value::Map(scopes)) => {
                let scopes = scopes.into_iter().map(|(name, scope)| (name, part(scope, share))).collect();
                (key, Value::Map(scopes))
            }
            (_, value) => (key, value),
        })
        .collect();
    // The default window is shorter as well, since the clock runs slower.
    let has = |entries: &[(String, Value)], key: &str| {
        entries.iter().any(|(name, value)| name == key && *value != Value::Nothing)
    };
    if !has(&entries, "window") {
        let window = ("window".to_string(), Value::Number(WINDOW_MS / f64::from(share.0)));
        match entries.iter_mut().find(|(key, _)| key == "defaults") {
            Some((_, Value::Map(defaults))) if has(defaults, "window") => {}
            Some((_, Value::Map(defaults))) => defaults.push(window),
            _ => entries.push(("defaults".into(), Value::Map(vec![window]))),
        }
    }
    Value::Map(entries)
}

/// The same of a scope's settings.
pub fn part(limits: Value, (of, rank): (u32, u32)) -> Value {
    let Value::Map(entries) = limits else { return limits };
    let by = f64::from(of);
    // Those that have met take turns: they know who is the first.
    let is_strange = rank >= of;
    let is_rated = is_strange && entries.iter().any(|(key, value)| key == "rate" && *value != Value::Nothing);
    let entries = entries.into_iter().map(|(key, value)| {
        let value = match (&*key, value) {
            ("concurrency" | "maxInFlight", Value::Number(slots)) => {
                Value::Number((slots / by).floor().max(1.0))
            }
            ("window", Value::Number(ms)) => Value::Number(ms / by),
            ("rate", rate) if is_strange => paced(rate, by),
            // A request that is put off by chance comes nearer to the next.
            ("jitter", _) if is_rated => Value::Bool(false),
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

/// A rate of which no span holds more than the whole number that is one part of it, by the slower clock. Less
/// than one request a span is one in a longer span.
fn paced(rate: Value, by: f64) -> Value {
    let options = Value::object(vec![("defaults", Value::object(vec![("rate", rate.clone())]))]);
    let Some(known) = Config::parse(options).ok().and_then(|config| config.scope("").rate) else {
        return rate;
    };
    let gap = known.gap().millis();
    // The gap was rounded up.
    let part = (known.window().millis() / gap / by + 1e-6).floor();
    let (part, window) = if part < 1.0 { (1.0, gap * by) } else { (part, known.window().millis()) };
    let burst = match &rate {
        Value::Map(entries) => entries.iter().find(|(key, _)| key == "burst").map(|(_, burst)| burst),
        _ => None,
    };
    let burst =
        if let Some(Value::Number(burst)) = burst { (burst / by).floor().min(part).max(1.0) } else { 1.0 };
    Value::object(vec![
        ("limit", (part - burst + 1.0).into()),
        ("window", (window / by + GRACE_MS).into()),
        ("burst", burst.into()),
    ])
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

/// The state of all, for one of them: its part of what was used, and spans by its slower clock.
pub fn divided_snapshot(snapshot: Value, of: u32) -> Value {
    let by = f64::from(of);
    map(snapshot, |key, value| match (key, value) {
        ("scopes", Value::Map(scopes)) => {
            let scopes = scopes.into_iter().map(|(name, scope)| {
                let scope = map(scope, |key, value| match (key, value) {
                    ("hold" | "age", Value::Number(ms)) => Value::Number(ms / by),
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
