//! The state of a scope and of the whole, for people. Spans and instants are milliseconds here.

use crate::{decision::Reason, observe::Effective, value::Value};

/// One scope at one instant.
#[derive(Clone, Debug, PartialEq)]
pub struct ScopeStats {
    /// The delay before jitter, in milliseconds: backoff's if that is longer. With `AutoThrottle` its own,
    /// beside backoff's.
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

impl From<&ScopeStats> for Value {
    fn from(stats: &ScopeStats) -> Self {
        let bound_by = stats.effective.bound_by.iter();
        let shares = bound_by.map(|(by, share)| (by.map_or("elsewhere", Reason::name), (*share).into()));
        Self::object(vec![
            ("delayMs", stats.delay_ms.into()),
            ("backoffMs", stats.backoff_ms.into()),
            ("slots", stats.slots.into()),
            ("inFlight", stats.in_flight.into()),
            ("waiting", stats.waiting.into()),
            ("backoffStep", stats.backoff_step.into()),
            ("holdUntil", stats.hold_until.into()),
            ("quotaLeft", stats.quota_left.into()),
            ("reason", stats.reason.map(Reason::name).into()),
            ("paused", stats.paused.into()),
            ("rate", stats.effective.rate.into()),
            ("concurrency", stats.effective.concurrency.into()),
            ("boundBy", Self::object(shares.collect())),
            ("withoutEffect", stats.without_effect.as_deref().into()),
        ])
    }
}

impl From<&Stats> for Value {
    fn from(stats: &Stats) -> Self {
        let scopes = stats.scopes.iter().map(|(name, stats)| (name.clone(), stats.into()));
        Self::object(vec![
            ("waiting", stats.waiting.into()),
            ("inFlight", stats.in_flight.into()),
            ("sent", (stats.sent as f64).into()),
            ("settled", (stats.settled as f64).into()),
            ("cancelled", (stats.cancelled as f64).into()),
            ("paused", stats.paused.into()),
            ("scopes", Self::Map(scopes.collect())),
        ])
    }
}
