//! The schedule: who is asked next, who waits where, and when the next one wakes.
//!
//! No decision here scans what waits. A lane is in one place ([`crate::queue`]): *ready*, or in the queue of
//! the scope that blocked it. A scope with a queue has at most one entry in the heap of times, for when the
//! first of the queue could go; when the scope opens, that one becomes its *candidate* and is asked. When the
//! candidate was sent or was blocked elsewhere, the scope is looked at again ([`Engine::refresh`]). A
//! decision therefore costs a few heap operations, whatever waits.

use super::Engine;
use crate::{
    decision::{Cause, Decision, Reason, Ticket, Verdict},
    policy::quota::Cost,
    queue::{Costs, Joined, Lane, NONE, Place, Queue, Rank, Stage},
    scope::registry::{Entry, Registry},
    time::{Instant, Span},
};

/// The first of one kind in a scope's queue.
pub(super) struct Head {
    verdict: Verdict,
    rank: Rank,
    lane: u32,
}

/// The first of each kind in a scope's queue.
pub(super) struct Heads([Option<Head>; 2]);

impl Heads {
    fn iter(&self) -> impl Iterator<Item = &Head> {
        self.0.iter().flatten()
    }

    /// The reason that keeps the first of all.
    pub fn bound(&self) -> Option<Reason> {
        self.iter().min_by_key(|head| head.rank)?.verdict.reason()
    }
}

impl Engine {
    /// The answer when no request can be sent: wait for the earliest time there is, or for an event.
    pub(super) fn answer(&self) -> Decision {
        let timer = self.timers.first().map(|(at, index)| {
            let strictest = self.heads(index).iter().map(|head| head.verdict).min();
            let reason = strictest.and_then(Verdict::reason).unwrap_or(Reason::Delay);
            (at, Cause { scope: Some(self.registry.id(index)), reason })
        });
        let parked =
            self.parked.first().map(|(at, _)| (at, Cause { scope: None, reason: Reason::RequestDelay }));
        let earliest = match (timer, parked) {
            (Some(timer), Some(parked)) => Some(if parked.0 < timer.0 { parked } else { timer }),
            (timer, parked) => timer.or(parked),
        };
        match earliest {
            Some((until, because)) => Decision::Wait { until: until - self.epoch_offset, because },
            None => Decision::Idle { because: self.last_block.filter(|_| self.waiting() > 0) },
        }
    }

    /// Asks all scopes of a lane's head; the strictest verdict wins, and its scope.
    pub(super) fn ask(&self, lane: u32, rank: Rank) -> (Verdict, u32) {
        let mut strictest = (Verdict::Go, NONE);
        let scopes = &self.queue.lane_at(lane).scopes;
        for (position, &scope) in scopes.iter().enumerate() {
            let cost = self.reserved(scope, rank, self.queue.head_cost(lane, position));
            let verdict = self.verdict(self.now, scope, cost, scopes.len() == 1);
            if verdict > strictest.0 {
                strictest = (verdict, scope);
            }
        }
        strictest
    }

    /// The cost that must fit before a lane of this rank may consume `cost`: no smaller than that of the
    /// request before it. Otherwise the cheap would keep the expensive waiting for ever.
    fn reserved(&self, scope: u32, rank: Rank, cost: Cost) -> Cost {
        match self.registry[scope].waiters.lanes[0].first() {
            Some((before, lane)) if cost > Cost::ZERO && before < rank => {
                cost.max(self.queue.head_cost_at(lane, scope))
            }
            _ => cost,
        }
    }

    pub(super) fn send(&mut self, lane: u32) -> Ticket {
        let from = self.lift(lane);
        let scopes = self.queue.lane_at(lane).scopes.clone();
        self.count_unknown(&scopes, true);
        for (position, &scope) in scopes.iter().enumerate() {
            let cost = self.queue.head_cost(lane, position);
            self.depart(scope, cost);
            self.stop_waiting(scope);
        }
        let ticket = self.queue.send_head(lane, self.now);
        self.in_flight += 1;
        self.totals.sent += 1;
        self.put_back(lane, from);
        for &scope in &*scopes {
            if scope != from {
                self.observe(scope);
            }
        }
        if let [scope] = *scopes {
            self.leave_express(ticket, scope);
        }
        ticket
    }

    /// All scopes of a request let it go, or every scope is as it was.
    pub(super) fn leave_at_once(&mut self, scopes: &[u32], costs: &Costs) -> bool {
        let now = self.now;
        let costs_of = scopes.iter().enumerate().map(|(position, &scope)| (scope, costs.of(position)));
        if !costs_of
            .clone()
            .all(|(scope, cost)| self.verdict(now, scope, cost, scopes.len() == 1) == Verdict::Go)
        {
            return false;
        }
        self.registry.next_turn();
        for (scope, cost) in costs_of {
            self.depart_at_once(scope, cost);
        }
        true
    }

    /// The same for one scope, the usual case.
    #[inline]
    pub(super) fn leave_one_at_once(&mut self, scope: u32, cost: Cost) -> bool {
        let is_open = matches!(self.verdict(self.now, scope, cost, true), Verdict::Go);
        if is_open {
            self.registry.next_turn();
            self.depart_at_once(scope, cost);
        }
        is_open
    }

    fn depart_at_once(&mut self, scope: u32, cost: Cost) {
        let now = self.now;
        self.registry.mark_used(scope);
        let (_, entry) = self.registry.entry(scope);
        entry.scope.on_wait(now);
        if entry.meter(now).look(now) {
            self.find_without_effect(scope);
        }
        if self.depart(scope, cost).note(now, None) {
            self.find_without_effect(scope);
        }
    }

    /// A request leaves one of its scopes; gives that one.
    pub(super) fn depart(&mut self, scope: u32, cost: Cost) -> &mut Entry {
        let late = self.late(self.now);
        let (_, entry) = self.registry.entry(scope);
        entry.scope.on_send(self.now, late, cost, &mut self.rng);
        if let Some(meter) = &mut entry.meter {
            meter.on_send(self.now);
        }
        entry
    }

    /// One more request of this scope waits.
    pub(super) fn begin_waiting(&mut self, scope: u32) {
        let waiters = &mut self.registry[scope].waiters;
        waiters.waiting += 1;
        if waiters.waiting == 1 {
            self.registry.mark_used(scope);
            self.count_explorers(scope, 1);
            self.registry[scope].scope.on_wait(self.now);
            self.observe(scope);
        }
    }

    /// One request of this scope less waits.
    pub(super) fn stop_waiting(&mut self, scope: u32) {
        self.registry[scope].waiters.waiting -= 1;
        if self.registry[scope].waiters.waiting == 0 {
            self.count_explorers(scope, -1);
        }
    }

    /// Lets an admitted request wait with the others, at once or when its own delay is over.
    pub(super) fn enter(&mut self, index: u32, delay_ms: f64) {
        if delay_ms > 0.0 {
            self.park(index, self.now + Span::from_millis(delay_ms));
        } else {
            self.join(index);
        }
    }

    /// Lets an admitted request wait with the others, and its lane be asked.
    pub(super) fn join(&mut self, index: u32) {
        match self.queue.join(index) {
            Joined::Behind => {}
            Joined::First(lane) => self.make_ready(lane, NONE, self.queue.rank(lane)),
            Joined::Before(lane) => {
                let from = self.lift(lane);
                self.put_back(lane, from);
            }
        }
    }

    /// Takes a lane out of wherever it is. Gives the scope whose candidate it was, or in whose queue it
    /// stood.
    pub(super) fn lift(&mut self, lane: u32) -> u32 {
        let (place, position) = self.queue.unplace(lane);
        let lanes = self.queue.lanes_mut();
        match place {
            Place::Nowhere => NONE,
            Place::Ready { from } => {
                self.ready.remove(position, &mut Queue::place_lane(lanes));
                if from != NONE {
                    self.registry[from].waiters.candidate = None;
                }
                from
            }
            Place::At { scope, heap } => {
                let heap = &mut self.registry[scope].waiters.lanes[heap as usize];
                heap.remove(position, &mut Queue::place_lane(lanes));
                scope
            }
        }
    }

    /// Makes a lane ready to be asked if a request waits in it, and looks again at the scope it came from.
    pub(super) fn put_back(&mut self, lane: u32, from: u32) {
        if self.queue.lane_at(lane).head != NONE {
            self.make_ready(lane, NONE, self.queue.rank(lane));
        }
        if from != NONE {
            self.refresh(from);
        }
    }

    /// Puts a lane that was asked in vain in the queue of the scope that blocked it.
    pub(super) fn block(&mut self, lane: u32, rank: Rank, scope: u32, verdict: Verdict) {
        let who = Some(self.registry.id(scope));
        self.last_block = verdict.reason().map(|reason| Cause { scope: who, reason });
        let from = self.lift(lane);
        self.wait_at(lane, scope, rank);
        if self.registry[scope].waiters.has_one() {
            // It is the only one, and was asked right now.
            self.set_timer(scope, verdict.until());
            self.note(scope, verdict.reason());
        } else {
            self.refresh(scope);
        }
        if from != NONE && from != scope {
            self.refresh(from);
        }
    }

    /// Puts a lane that is nowhere among those to be asked; `from` is the scope whose candidate it is.
    fn make_ready(&mut self, lane: u32, from: u32, rank: Rank) {
        self.queue.lane_mut(lane).place = Place::Ready { from };
        self.ready.push(rank, lane, &mut Queue::place_lane(self.queue.lanes_mut()));
    }

    /// Puts a lane that is nowhere in the queue of a scope.
    fn wait_at(&mut self, lane: u32, scope: u32, rank: Rank) {
        let heap = u8::from(self.queue.is_free_at(lane, scope));
        self.queue.lane_mut(lane).place = Place::At { scope, heap };
        let waiters = &mut self.registry[scope].waiters;
        waiters.lanes[heap as usize].push(rank, lane, &mut Queue::place_lane(self.queue.lanes_mut()));
    }

    /// Looks at a scope after anything about it changed: sends the best in its queue to be asked if the scope
    /// is open for it, and sets its time for who must wait.
    ///
    /// A candidate may not be asked for long (while the gate is closed). Until then it must stay the best: it
    /// goes back to the queue when the scope closes or a better one could go, now or in time.
    pub(super) fn refresh(&mut self, scope: u32) {
        if self.registry[scope].waiters.is_quiet() {
            return self.note(scope, None);
        }
        let mut heads = self.heads(scope);
        if let Some(candidate) = self.registry[scope].waiters.candidate {
            let rank = self.queue.rank(candidate);
            let is_best = heads.iter().all(|head| head.verdict != Verdict::Go || rank < head.rank);
            if !is_best || self.verdict_at(scope, candidate) != Verdict::Go {
                self.lift(candidate);
                self.wait_at(candidate, scope, rank);
                heads = self.heads(scope);
            }
        }
        if self.registry[scope].waiters.candidate.is_none() {
            let open = heads.iter().filter(|head| head.verdict == Verdict::Go);
            if let Some((lane, rank)) = open.map(|head| (head.lane, head.rank)).min_by_key(|&(_, rank)| rank)
            {
                self.lift(lane);
                self.registry[scope].waiters.candidate = Some(lane);
                self.make_ready(lane, scope, rank);
                heads = self.heads(scope);
            }
        }
        let candidate = self.registry[scope].waiters.candidate.map(|lane| self.queue.rank(lane));
        let times = heads.iter().filter_map(|head| match head.verdict {
            Verdict::NotBefore(at, _) if candidate.is_none_or(|candidate| head.rank < candidate) => Some(at),
            _ => None,
        });
        let earliest = times.min();
        self.set_timer(scope, earliest);
        self.note(scope, heads.bound());
    }

    /// The first of each kind in a scope's queue, with this scope's verdict on it.
    pub(super) fn heads(&self, scope: u32) -> Heads {
        let waiters = &self.registry[scope].waiters;
        let head = |kind: usize| {
            let (rank, lane) = waiters.lanes[kind].first()?;
            Some(Head { verdict: self.verdict_at(scope, lane), rank, lane })
        };
        Heads([head(0), head(1)])
    }

    /// One scope's verdict on a lane's head.
    fn verdict_at(&self, scope: u32, lane: u32) -> Verdict {
        let is_alone = self.queue.lane_at(lane).scopes.len() == 1;
        let cost =
            if is_alone { self.queue.head_cost(lane, 0) } else { self.queue.head_cost_at(lane, scope) };
        self.verdict(self.now, scope, cost, is_alone)
    }

    fn set_timer(&mut self, scope: u32, at: Option<Instant>) {
        debug_assert!(at.is_none_or(|at| at > self.now), "a time that is over would be asked for ever");
        let old = self.registry[scope].waiters.timer;
        if let (Some(position), Some(at)) = (old, at)
            && self.timers.key(position) == at
        {
            return;
        }
        if let Some(position) = old {
            self.registry[scope].waiters.timer = None;
            self.timers.remove(position, &mut place_timer(&mut self.registry));
        }
        if let Some(at) = at {
            self.timers.push(at, scope, &mut place_timer(&mut self.registry));
        }
    }

    fn park(&mut self, index: u32, until: Instant) {
        self.parked.push(until, index, &mut place_parked(&mut self.queue));
    }

    pub(super) fn unpark(&mut self, index: u32) {
        let Stage::Parked { position } = self.queue.entry(index).stage else { return };
        self.parked.remove(position, &mut place_parked(&mut self.queue));
    }

    pub(super) fn forget(&mut self, index: u32) {
        if let Some(lane) = self.queue.forget(index) {
            self.part(&lane);
        }
    }

    /// Its scope no longer knows a lane that is forgotten.
    pub(super) fn part(&mut self, lane: &Lane) {
        if let [scope] = lane.scopes[..] {
            self.registry[scope].waiters.solo[usize::from(lane.is_free)] = None;
        }
    }
}

/// Notes where a scope stands in the heap of times.
fn place_timer(registry: &mut Registry) -> impl FnMut(u32, u32) {
    |scope, position| registry[scope].waiters.timer = Some(position)
}

/// Notes where a request stands among those that wait for their own delay.
fn place_parked(queue: &mut Queue) -> impl FnMut(u32, u32) {
    |index, position| queue.entry(index).stage = Stage::Parked { position }
}
