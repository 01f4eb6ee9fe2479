//! The limits that a server states, read by [`autothrottle_reading`]; and how it is shown to people.

use crate::Value;

pub(crate) use autothrottle_reading::headers::kept_lines;
pub use autothrottle_reading::headers::{
    AppliesTo, Context, Hints, Parts, Quota, SAYS_SOMETHING, VENDORS, matters, says_something,
};

// [`Hints`] as a tree of plain values, for hosts that show them as data.
//
// The governing quota's fields stand at the top as well. A field that is unknown is left out, but for
// `delayMs` and `source`: those two are [`Value::Nothing`], so that a reader sees that the server did not say
// how long to wait.

impl From<&Hints> for Value {
    fn from(hints: &Hints) -> Self {
        let mut entries = Entries(Vec::new());
        entries.push("delayMs", hints.delay_ms.map_or(Self::Nothing, whole));
        entries.push("source", hints.source.map_or(Self::Nothing, text));
        let quota = |quota: &Quota| {
            let mut entries = Entries(Vec::new());
            entries.quota(quota, hints);
            Self::Map(entries.0)
        };
        if let Some(quota) = hints.quota() {
            entries.quota(quota, hints);
        }
        entries.push("quotas", Self::List(hints.quotas.iter().map(quota).collect()));
        entries.number("pollAfterMs", hints.poll_after_ms);
        if let Some(rate) = hints.rate_per_million_s {
            entries.push("ratePerS", Self::Number(rate as f64 / 1e6));
        }
        entries.text("appliesTo", hints.applies_to.map(AppliesTo::name));
        entries.text("scope", hints.scope.as_deref());
        entries.text("bucket", hints.bucket.as_deref());
        entries.flag("isWhole", hints.is_whole);
        entries.flag("ignored", hints.is_ignored);
        entries.flag("cached", hints.is_cached);
        Self::Map(entries.0)
    }
}

/// The entries of a map so far.
struct Entries(Vec<(String, Value)>);

impl Entries {
    fn push(&mut self, key: &str, value: Value) {
        self.0.push((key.into(), value));
    }

    fn number(&mut self, key: &str, number: Option<u64>) {
        if let Some(number) = number {
            self.push(key, whole(number));
        }
    }

    fn text(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.push(key, text(value));
        }
    }

    fn flag(&mut self, key: &str, is_set: bool) {
        if is_set {
            self.push(key, Value::Bool(true));
        }
    }

    fn quota(&mut self, quota: &Quota, hints: &Hints) {
        self.text(
            "budget",
            hints.budget_of(quota).as_deref().map(|name| name.strip_suffix("/").unwrap_or(name)),
        );
        self.text("policy", quota.policy.as_deref());
        self.number("limit", quota.limit);
        self.number("remaining", quota.remaining);
        self.number("used", quota.used);
        self.number("resetMs", quota.reset_ms);
        self.number("windowMs", quota.window_ms);
        self.text("unit", quota.unit.as_deref());
        self.text("partitionKey", quota.partition_key.as_deref());
    }
}

/// A whole number as hosts have it: exact up to 2⁵³.
fn whole(number: u64) -> Value {
    Value::Number(number as f64)
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}
