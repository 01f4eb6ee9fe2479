//! Requests that no limit keeps: one scope, no cost, no priority, and no request waits.
//!
//! Most requests are of this kind. They leave and end in one piece, without a class, a lane and a feedback:
//! an *express* ticket knows its scope alone. Every verb that needs more makes it a ticket like all others
//! first ([`Engine::enrol_express`]). Decisions are the same as without: `tests/native/reference.rs` and
//! `sending_at_once_leaves_the_state_of_submit_and_poll` compare.

use super::Engine;
use crate::{
    decision::{ScopeId, Ticket},
    observe::{UNTOLD, Watch},
    queue::{Need, Queue, Scopes},
    time::Instant,
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
        let late = self.late(now);
        let entry = self.registry.get_mut(id)?;
        if !entry.is_undivided() {
            return None;
        }
        // A scope's first request makes its meter.
        let meter = entry.meter.as_deref_mut()?;
        if meter.turns(now) || !entry.scope.send_express(now, late, false, &mut self.rng) {
            return None;
        }
        meter.note_express_send(now, entry.scope.slots.in_flight());
        let (ticket, served) = self.queue.send_express(id.0.index, now);
        entry.served = served;
        self.now = now;
        self.in_flight += 1;
        self.totals.sent += 1;
        self.registry.mark_used_in_passing(id.0.index);
        self.registry.next_turn();
        Some(ticket)
    }

    /// The same of a request that waits: the next one of this lane, which is the first to be asked, leaves
    /// its only scope. `None` where it may not, or says more than its scope: then no state has changed.
    pub(super) fn send_next(&mut self, lane: u32) -> Option<Ticket> {
        let scope = self.queue.plain_lane(lane)?;
        let now = self.now;
        let late = self.late(now);
        let (_, entry) = self.registry.entry(scope);
        let is_clear = entry.is_undivided() && entry.waiters.is_clear_for(lane) && entry.meter.is_some();
        if !is_clear || !entry.scope.send_express(now, late, true, &mut self.rng) {
            return None;
        }
        let waiters = &mut *entry.waiters;
        (waiters.waiting, waiters.candidate) = (waiters.waiting - 1, None);
        let is_waiting = waiters.waiting > 0;
        let sent = self.queue.send_plain(lane, scope, now);
        entry.served = sent.served;
        self.in_flight += 1;
        self.totals.sent += 1;
        let place = Queue::place_lane(self.queue.lanes_mut());
        self.ready.replace_first(sent.rank, place);
        self.queue.lane_left(lane, sent.rank.is_some());
        if let Some(lane) = sent.spare {
            self.part(&lane);
        }
        let bound = self.global_block().filter(|_| is_waiting);
        let (_, entry) = self.registry.entry(scope);
        entry.meter(now).on_send(now);
        if entry.note(now, bound) {
            self.find_without_effect(scope);
        }
        Some(sent.ticket)
    }

    /// [`Engine::settle`] of a request where no more than its slot comes back: after a good answer with this
    /// status, none (0) or [`UNTOLD`], to a request that no limit kept. The latency is NaN if it was not
    /// measured. False where anything else is the case: then no state has changed, and `settle` is the way.
    #[inline(always)]
    pub(crate) fn settle_at_once(
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
        let is_watched = self.watch == Watch::Answers || config.is_managed;
        if is_watched || !entry.scope.is_express() || config.is_bad_status(status) {
            return false;
        }
        if self.has_budgets && !entry.is_undivided() {
            return false; // whose budget is not known is counted
        }
        // The first answer that is watched tells what there is to change.
        if self.watch != Watch::Nothing
            && !entry.seen.as_ref().is_some_and(|seen| entry.scope.is_as(seen, now))
        {
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
        let is_silent = status > 0 && entry.silence.hear(status != UNTOLD as u16);
        if entry.waiters.is_quiet() && entry.waiters.waiting == 0 {
            meter.note_express(now, in_flight);
        } else {
            self.refresh(scope);
        }
        if in_flight == 0 {
            self.registry.mark_idle_in_passing(scope);
        }
        if is_silent {
            self.tell_silence(scope);
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
    #[cold]
    pub(super) fn enrol_express(&mut self, ticket: Ticket) {
        let Some(scope) = self.queue.express(ticket) else { return };
        self.registry.mark_used(scope);
        let entry = &mut self.registry[scope];
        let lane = self.queue.lane(&Scopes::One([scope]), &Need::PLAIN.costs, &mut entry.waiters);
        self.queue.enrol_express(ticket.0.index, lane, entry.served);
    }
}
