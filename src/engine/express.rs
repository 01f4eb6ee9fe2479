//! Requests that no limit keeps: one scope, no cost, no priority, and no request waits.
//!
//! Most requests are of this kind. They leave and end in one piece, without a class, a lane and a feedback:
//! an *express* ticket knows its scope alone. Every verb that needs more makes it a ticket like all others
//! first ([`Engine::enrol_express`]). Decisions are the same as without: `tests/native/reference.rs` and
//! `sending_at_once_leaves_the_state_of_submit_and_poll` compare.

use super::Engine;
use crate::{
    decision::{ScopeId, Ticket},
    observe::Watch,
    queue::{Need, Scopes},
    time::{Instant, Span},
};

impl Engine {
    /// [`Engine::send_at_once`] of a request that says no more than this scope, where only slots, a delay and
    /// a rate bound it. `None` where anything else is the case, or it may not leave: then no state has
    /// changed.
    #[inline(always)]
    pub(crate) fn send_express(&mut self, now: Instant, id: ScopeId) -> Option<Ticket> {
        let now = self.to_engine_time(now);
        if self.waiting() > 0 || self.global_block().is_some() {
            return None;
        }
        let late = self.alarm.map_or(Span::ZERO, |at| now.since(at));
        let entry = self.registry.get_mut(id)?;
        if !entry.is_undivided() {
            return None;
        }
        // A scope's first request makes its meter.
        let meter = entry.meter.as_deref_mut()?;
        if meter.turns(now) || !entry.scope.send_express(now, late, &mut self.rng) {
            return None;
        }
        meter.note_express_send(now, entry.scope.slots.in_flight());
        let (ticket, served) = self.queue.send_express(id.0.index, now);
        entry.served = served;
        self.now = now;
        self.in_flight += 1;
        self.totals.sent += 1;
        self.registry.mark_used(id.0.index);
        self.registry.next_turn();
        Some(ticket)
    }

    /// [`Engine::settle`] of an express ticket where no more than its slot comes back: a good answer with
    /// this status, or none (0). False where anything else is the case: then no state has changed.
    #[inline(always)]
    pub(crate) fn settle_express(
        &mut self,
        now: Instant,
        ticket: Ticket,
        status: u16,
        latency_ms: f64,
    ) -> bool {
        let Some(scope) = self.queue.express(ticket) else { return false };
        let now = self.to_engine_time(now);
        let (_, entry) = self.registry.entry(scope);
        let config = &entry.scope.config;
        let is_watched = self.watch != Watch::Nothing || config.is_managed;
        if is_watched || !entry.scope.is_express() || config.is_bad_status(status) {
            return false;
        }
        let Some(meter) = entry.meter.as_deref_mut().filter(|meter| !meter.turns(now)) else { return false };
        if latency_ms >= 0.0 {
            meter.on_latency(latency_ms);
        }
        entry.scope.slots.give_back();
        let in_flight = entry.scope.slots.in_flight();
        self.now = now;
        self.in_flight -= 1;
        self.totals.settled += 1;
        self.queue.forget_express(ticket.0.index);
        if entry.waiters.is_quiet() && entry.waiters.waiting == 0 {
            meter.note_express(now, in_flight);
        } else {
            self.refresh(scope);
        }
        if in_flight == 0 {
            self.registry.mark_idle(scope);
        }
        true
    }

    /// Makes a ticket that leaves its lane an express one, if it says no more than its scope.
    pub(super) fn leave_express(&mut self, ticket: Ticket, scope: u32) {
        let entry = &mut self.registry[scope];
        if entry.is_undivided()
            && entry.scope.is_express()
            && let Some((served, old)) = self.queue.leave_express(ticket.0.index, scope)
        {
            entry.served = served;
            if let Some(lane) = old {
                self.part(&lane);
            }
        }
    }

    /// Makes an express ticket one like all others.
    #[inline]
    pub(super) fn enrol_express(&mut self, ticket: Ticket) {
        if let Some(scope) = self.queue.express(ticket) {
            self.enrol_in_lane(ticket.0.index, scope);
        }
    }

    #[cold]
    fn enrol_in_lane(&mut self, index: u32, scope: u32) {
        self.registry.mark_used(scope);
        let entry = &mut self.registry[scope];
        let lane = self.queue.lane(&Scopes::One([scope]), &Need::PLAIN.costs, &mut entry.waiters);
        self.queue.enrol_express(index, lane, entry.served);
    }
}
