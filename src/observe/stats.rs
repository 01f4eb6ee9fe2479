//! The state of a scope and of the whole, for people. Spans and instants are milliseconds here.

use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::{
    decision::Reason,
    observe::Effective,
    policy::quota::Cost,
    scope::Scope,
    time::{Instant, Span},
};

/// One scope at one instant.
#[derive(Clone, Debug, PartialEq)]
pub struct ScopeStats {
    /// The delay before jitter, in milliseconds: backoff's if that is longer. With `AutoThrottle` its own, beside backoff's.
    pub delay_ms: f64,
    /// The delay that backoff asks for, in milliseconds; 0 without.
    pub backoff_ms: f64,
    /// Slots allowed.
    pub slots: u32,
    /// Requests in flight.
    pub in_flight: u32,
    /// Requests submitted and not sent.
    pub waiting: u32,
    /// Steps of backoff in force; 0 without.
    pub backoff_step: u32,
    /// Until when nothing is sent because of a hold: milliseconds of engine time.
    pub hold_until: Option<f64>,
    /// What is left of the scarcest quota, in units.
    pub quota_left: Option<f64>,
    /// Why the head of the line waits; `None` when nothing waits or the head could go.
    pub reason: Option<Reason>,
    /// Whether the scope is paused.
    pub paused: bool,
    /// What it really does.
    pub effective: Effective,
    /// A setting that has no effect, and why.
    pub without_effect: Option<String>,
}

/// Everything at one instant.
#[derive(Clone, Debug, PartialEq)]
pub struct Stats {
    /// Requests submitted and not sent.
    pub waiting: u32,
    /// Requests sent and not settled.
    pub in_flight: u32,
    /// Requests sent since the beginning.
    pub sent: u64,
    /// Requests settled since the beginning.
    pub settled: u64,
    /// Requests cancelled since the beginning.
    pub cancelled: u64,
    /// Whether everything is paused.
    pub paused: bool,
    /// Every scope that the engine knows, by name.
    pub scopes: Vec<(String, ScopeStats)>,
}

impl ScopeStats {
    /// What the scope itself knows.
    pub(crate) fn of(now: Instant, shift: Span, scope: &Scope) -> Self {
        Self {
            delay_ms: scope.delay_ms(now),
            backoff_ms: scope.backoff_ms(now),
            slots: scope.slots_allowed(now),
            in_flight: scope.slots.in_flight(),
            waiting: 0,
            backoff_step: scope.backoff_step(now),
            hold_until: scope.hold_until(now).map(|until| (until - shift).millis()),
            quota_left: scope.quota_left(now).map(Cost::units),
            reason: None,
            paused: scope.paused,
            effective: Effective::default(),
            without_effect: None,
        }
    }
}

impl Serialize for ScopeStats {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("ScopeStats", 14)?;
        fields.serialize_field("delayMs", &self.delay_ms)?;
        fields.serialize_field("backoffMs", &self.backoff_ms)?;
        fields.serialize_field("slots", &self.slots)?;
        fields.serialize_field("inFlight", &self.in_flight)?;
        fields.serialize_field("waiting", &self.waiting)?;
        fields.serialize_field("backoffStep", &self.backoff_step)?;
        fields.serialize_field("holdUntil", &self.hold_until)?;
        fields.serialize_field("quotaLeft", &self.quota_left)?;
        fields.serialize_field("reason", &self.reason.map(Reason::name))?;
        fields.serialize_field("paused", &self.paused)?;
        fields.serialize_field("rate", &self.effective.rate)?;
        fields.serialize_field("concurrency", &self.effective.concurrency)?;
        fields.serialize_field("boundBy", &Shares(&self.effective.bound_by))?;
        fields.serialize_field("withoutEffect", &self.without_effect)?;
        fields.end()
    }
}

/// Shares of time by reason, as a map.
struct Shares<'a>(&'a [(Option<Reason>, f64)]);

impl Serialize for Shares<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(by, share)| (by.map_or("elsewhere", Reason::name), share)))
    }
}

impl Serialize for Stats {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Stats", 7)?;
        fields.serialize_field("waiting", &self.waiting)?;
        fields.serialize_field("inFlight", &self.in_flight)?;
        fields.serialize_field("sent", &self.sent)?;
        fields.serialize_field("settled", &self.settled)?;
        fields.serialize_field("cancelled", &self.cancelled)?;
        fields.serialize_field("paused", &self.paused)?;
        fields.serialize_field("scopes", &ByName(&self.scopes))?;
        fields.end()
    }
}

/// Pairs as a map: in JavaScript an object with the names as keys.
pub(crate) struct ByName<'a, T>(pub &'a [(String, T)]);

impl<T: Serialize> Serialize for ByName<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}
