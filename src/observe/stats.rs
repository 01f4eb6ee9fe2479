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
    /// Until when no request leaves because of a hold: milliseconds of engine time.
    pub hold_until: Option<f64>,
    /// What is left of the scarcest quota, in units.
    pub quota_left: Option<f64>,
    /// When what holds the scope back ends or eases: a hold, a used-up quota, the next step back of backoff.
    /// The last of them, in milliseconds of engine time.
    pub recovers_at: Option<f64>,
    /// The budgets of its server, where those are several, by name.
    pub budgets: Vec<(String, BudgetStats)>,
    /// Why the head of the line waits; `None` when no request waits or the head could go.
    pub reason: Option<Reason>,
    /// Whether the scope is paused.
    pub paused: bool,
    /// What it really does.
    pub effective: Effective,
    /// A setting that has no effect, and why.
    pub without_effect: Option<String>,
}

/// One budget of a server's at one instant.
#[derive(Clone, Debug, PartialEq)]
pub struct BudgetStats {
    /// Requests in flight that spend from it.
    pub in_flight: u32,
    /// Requests that wait and will.
    pub waiting: u32,
    /// What is left of it, in units, while that is known.
    pub quota_left: Option<f64>,
    /// When it is there again, if it is used up: milliseconds of engine time.
    pub recovers_at: Option<f64>,
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
            ("recoversAt", stats.recovers_at.into()),
            ("budgets", budgets(&stats.budgets)),
            ("rate", stats.effective.rate.into()),
            ("latencyMs", stats.effective.latency_ms.into()),
            ("concurrency", stats.effective.concurrency.into()),
            ("boundBy", Self::object(shares.collect())),
            ("withoutEffect", stats.without_effect.as_deref().into()),
        ])
    }
}

/// None where a scope has one budget, as most have.
fn budgets(budgets: &[(String, BudgetStats)]) -> Value {
    if budgets.is_empty() {
        return Value::Nothing;
    }
    let each = budgets.iter().map(|(name, budget)| {
        let entries = vec![
            ("inFlight", budget.in_flight.into()),
            ("waiting", budget.waiting.into()),
            ("quotaLeft", budget.quota_left.into()),
            ("recoversAt", budget.recovers_at.into()),
        ];
        (name.clone(), Value::object(entries))
    });
    Value::Map(each.collect())
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
