//! Sending ahead: who decides for many processes says in one message who may leave in the next tenths of a
//! second, one by one.
//!
//! Only a scope that its rate alone keeps may be asked so: its slots, its delay and its rate bound it, and no
//! good answer changes that. A request that comes meanwhile, with a higher priority or to another scope,
//! finds the engine at its usual time: only this scope has given away its next sends.

use super::Engine;
use crate::{
    decision::{Reason, Ticket, Verdict},
    time::{Instant, Span},
};

impl Engine {
    /// After [`Decision::Wait`](crate::Decision::Wait): whether the next scope that has a time is one whose
    /// requests may be [sent ahead](Self::send_ahead), and how many of it wait. `most` is the longest gap of
    /// its rate.
    pub fn may_send_ahead(&self, most: Span) -> Option<u32> {
        let (_, index) = self.timers.first()?;
        let entry = &self.registry[index];
        let gap = entry.scope.gap()?;
        let lane = entry.waiters.lanes[0].first().map(|(_, lane)| lane)?;
        let is_plain = gap <= most
            && entry.family.is_none()
            && entry.scope.is_express()
            && self.global_block().is_none()
            && self.queue.lane_at(lane).scopes.len() == 1;
        let reason = self.heads(index).bound();
        (is_plain && reason == Some(Reason::Rate)).then_some(entry.waiters.waiting)
    }

    /// Sends the next one of that scope at its instant to come, if that is no later than `until`. Slots are
    /// taken at once.
    pub fn send_ahead(&mut self, now: Instant, until: Instant) -> Option<(Ticket, Instant)> {
        self.advance(now);
        let (at, index) = self.timers.first()?;
        if at > until + self.epoch_offset {
            return None;
        }
        let before = self.now;
        self.now = at.max(before);
        self.refresh(index);
        let candidate = self.registry[index].waiters.candidate;
        let lane = candidate.filter(|&lane| self.ask(lane, self.queue.rank(lane)).0 == Verdict::Go);
        let sent = lane.map(|lane| self.send(lane));
        self.now = before;
        self.refresh(index);
        // The next of them is not open yet.
        if let Some(lane) = lane
            && sent.is_some()
            && let Some((rank, first)) = self.ready.first()
            && first == lane
        {
            let (verdict, scope) = self.ask(lane, rank);
            if verdict != Verdict::Go {
                self.block(lane, rank, scope, verdict);
            }
        }
        Some((sent?, at - self.epoch_offset))
    }
}
