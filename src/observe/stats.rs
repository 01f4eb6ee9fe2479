//! The state of a scope and of the whole, for people. Spans and instants are milliseconds here.

use crate::{
    decision::Reason,
    observe::Effective,
    record::{Rare, record},
};

record! {
    /// One budget of a server's at one instant.
    pub struct BudgetStats {
        /// Requests in flight that spend from it.
        in_flight: u32,
        /// Requests that wait and will.
        waiting: u32,
        /// The amount left in it, in units, while that is known.
        quota_left: Option<f64>,
        /// When it is there again, if it is used up: milliseconds of engine time.
        recovers_at: Option<f64>,
    }

    /// One scope at one instant.
    pub struct ScopeStats {
        /// The delay in force before jitter, in milliseconds: backoff's if that is longer. With AutoThrottle
        /// it is AutoThrottle's own; see `backoff_ms` for the other.
        delay_ms: f64,
        /// The delay that backoff asks for, in milliseconds; 0 without backoff. The longer delay counts.
        backoff_ms: f64,
        /// Slots allowed.
        slots: u32,
        /// Requests in flight.
        in_flight: u32,
        /// Requests that wait.
        waiting: u32,
        /// Steps of backoff in force; 0 without.
        backoff_step: u32,
        /// When the hold ends, if there is one: milliseconds of engine time.
        hold_until: Option<f64>,
        /// The amount left in the scarcest quota, in units.
        quota_left: Option<f64>,
        /// Why the first of the waiting requests waits.
        reason: Option<Reason>,
        /// Whether the scope is paused.
        paused: bool,
        /// When a hold ends, a used-up quota is there again and backoff goes a step back: the last of them,
        /// in milliseconds of engine time. `None` where none of them is in the way.
        recovers_at: Option<f64>,
        /// The budgets of its server by name, where answers name several: GitHub's resources.
        budgets: Rare<Vec<(String, BudgetStats)>>,
        /// Its real work.
        effective: Effective,
        /// A setting that has had no effect while requests waited, and why; `None` if there is none.
        without_effect: Option<String>,
    }

    /// Everything at one instant.
    pub struct Stats {
        /// Requests that wait.
        waiting: u32,
        /// Requests in flight.
        in_flight: u32,
        /// The most requests in flight, all scopes together: the limit that the reason `max-in-flight` names.
        max_in_flight: u32,
        /// Requests sent since the beginning.
        sent: u64,
        /// Requests settled since the beginning.
        settled: u64,
        /// Requests cancelled since the beginning.
        cancelled: u64,
        /// Whether everything is paused.
        paused: bool,
        /// Every scope that the engine knows, by name.
        scopes: Vec<(String, ScopeStats)>,
        /// Of a throttle that processes share: how old this is, in milliseconds. 0 in the process that
        /// decides; `None` for a throttle of one process; infinite before the first message.
        age_ms: Rare<f64>,
    }

    /// A group of processes that share a limit, as one of them sees it.
    pub struct SharedStats {
        /// The process that decides, by its 32 hexadecimal digits; `None` before its first message.
        writer: Option<String>,
        /// Whether it is this process.
        is_writer: bool,
        /// A number that grows with each process that comes to decide. 0 before the first message.
        epoch: u64,
        /// How many processes there were when a beat was last heard or said; `None` before that.
        members: Option<u32>,
        /// How far ahead this process makes grants, in milliseconds, at most a fifth of a lease: it costs
        /// slots that time. 0 where another process decides.
        lead_ms: f64,
        /// From here to the process that decides and back, in milliseconds; there, to the slowest of the
        /// others. `None` before it was measured.
        round_trip_ms: Option<f64>,
        /// When the writer last answered this process, in milliseconds of the throttle's clock; now in the
        /// writer itself. A beat alone does not count.
        last_heard_at: Option<f64>,
        /// Since when the way to the others is broken, where that counts as offline: milliseconds of the
        /// throttle's clock.
        offline_since: Option<f64>,
        /// The time, in milliseconds, that the whole limit takes for what this process sent alone and the
        /// writer has not counted yet. At most the longest window of your limits: what is older is free.
        debt_ms: f64,
    }
}
