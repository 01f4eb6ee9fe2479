//! States of the engine as the component's types.

use autothrottle::{
    self as at,
    boundary::nanos::{of_mark as mark_of, of_span as duration_of},
};

use crate::bindings::exports::autothrottle::engine::throttling as wit;

/// The reason at a place in [`at::Reason::ALL`].
pub fn reason_at(place: f64) -> Option<wit::Reason> {
    if place < 0.0 {
        return None;
    }
    at::Reason::ALL.get(place as usize).map(|&reason| reason_of(reason))
}

fn reason_of(reason: at::Reason) -> wit::Reason {
    match reason {
        at::Reason::Paused => wit::Reason::Paused,
        at::Reason::Global => wit::Reason::Global,
        at::Reason::Concurrency => wit::Reason::Concurrency,
        at::Reason::Delay => wit::Reason::Delay,
        at::Reason::Backoff => wit::Reason::Backoff,
        at::Reason::CrawlDelay => wit::Reason::CrawlDelay,
        at::Reason::SlotDelay => wit::Reason::SlotDelay,
        at::Reason::Hold => wit::Reason::Hold,
        at::Reason::Quota => wit::Reason::Quota,
        at::Reason::RequestDelay => wit::Reason::RequestDelay,
        at::Reason::Rate => wit::Reason::Rate,
    }
}

/// Everything, with each scope under its name.
pub fn stats(stats: at::Stats) -> wit::Stats {
    wit::Stats {
        waiting: stats.waiting,
        in_flight: stats.in_flight,
        sent: stats.sent,
        settled: stats.settled,
        cancelled: stats.cancelled,
        paused: stats.paused,
        scopes: stats.scopes.into_iter().map(|(name, stats)| scope_stats(name, stats)).collect(),
    }
}

/// One scope.
pub fn scope_stats(name: String, stats: at::ScopeStats) -> wit::ScopeStats {
    let bound_by = stats.effective.bound_by.into_iter();
    wit::ScopeStats {
        name,
        delay: duration_of(stats.delay_ms),
        backoff: duration_of(stats.backoff_ms),
        backoff_step: stats.backoff_step,
        slots: stats.slots,
        in_flight: stats.in_flight,
        waiting: stats.waiting,
        hold_until: stats.hold_until.map(mark_of),
        quota_left: stats.quota_left,
        reason: stats.reason.map(reason_of),
        paused: stats.paused,
        rate: stats.effective.rate,
        concurrency: stats.effective.concurrency,
        bound_by: bound_by
            .map(|(reason, share)| wit::Share { reason: reason.map(reason_of), share })
            .collect(),
        without_effect: stats.without_effect,
        latency: stats.effective.latency_ms.map(duration_of),
        recovers_at: stats.recovers_at.map(mark_of),
        budgets: stats.budgets.into_iter().flatten().map(budget_stats).collect(),
    }
}

fn budget_stats((name, stats): (String, at::BudgetStats)) -> wit::BudgetStats {
    wit::BudgetStats {
        name,
        in_flight: stats.in_flight,
        waiting: stats.waiting,
        quota_left: stats.quota_left,
        recovers_at: stats.recovers_at.map(mark_of),
    }
}

/// What people should know.
pub fn notice(notice: at::Notice) -> wit::Notice {
    match notice {
        at::Notice::Backoff(pace) => wit::Notice::Backoff(pace_of(pace)),
        at::Notice::Recover(pace) => wit::Notice::Recover(pace_of(pace)),
        at::Notice::Delay(pace) => wit::Notice::Delay(pace_of(pace)),
        at::Notice::Hold(at::Held { pace, asked_ms }) => {
            wit::Notice::Hold(wit::Held { pace: pace_of(pace), asked: asked_ms.map(mark_of) })
        }
        at::Notice::Answer(at::Heard { pace, is_bad, delay_before_ms, in_flight, .. }) => {
            let delay_before = duration_of(delay_before_ms);
            wit::Notice::Answer(wit::Heard { pace: pace_of(pace), bad: is_bad, delay_before, in_flight })
        }
        at::Notice::NoEffect(found) => wit::Notice::NoEffect(finding_of(found)),
        at::Notice::RampupBound(found) => wit::Notice::RampupBound(finding_of(found)),
        at::Notice::Budgets(at::Several { scope }) => wit::Notice::Budgets(scope),
        at::Notice::Down(stall) => wit::Notice::Down(stall_of(stall)),
        at::Notice::HoldCut(found) => wit::Notice::HoldCut(finding_of(found)),
        at::Notice::Stalled(stall) => wit::Notice::Stall(stall_of(stall)),
    }
}

fn stall_of(stall: at::Stall) -> wit::Stall {
    wit::Stall { scope: stall.scope, span: mark_of(stall.for_ms) }
}

fn finding_of(found: at::Diagnostic) -> wit::Finding {
    wit::Finding { scope: found.scope, setting: found.setting, path: found.path, why: found.why }
}

fn pace_of(pace: at::Pace) -> wit::Pace {
    wit::Pace {
        scope: pace.scope,
        delay: duration_of(pace.delay_ms),
        step: pace.step,
        hold_until: pace.hold_until.map(mark_of),
    }
}
