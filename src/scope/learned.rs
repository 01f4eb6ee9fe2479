//! The learned state of a scope: what the server made of it, what is worth remembering when the process ends,
//! and when the scope is as good as new.
//!
//! A scope is kept while something is owed: a hold, a window that is used up, a slot that rests.

use super::{Scope, new_quotas};
use crate::{
    policies::Memory,
    policy::{Policy, backoff, delay, denied, quota, quota::Cost, rampup, server, slots, stall},
    snapshot::{BackedOff, Learned, Left, Spent},
    time::{Instant, Span},
};

/// The state learned from the server. Most scopes never hear anything.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ServerState {
    pub backoff: backoff::State,
    /// Rampup's law below a typed pace, since the first bad answer.
    pub law: Option<Box<rampup::State>>,
    pub quota: server::State,
    /// The delay that robots.txt asks for.
    pub crawl: Option<Span>,
    /// Since when there were only bad answers.
    pub stall: stall::State,
    /// Since when no answer came at all.
    pub down: stall::State,
    /// Answers that refused the client, since the last good one.
    pub denied: denied::State,
}

impl ServerState {
    pub const NOTHING: Self = Self {
        backoff: backoff::State::NEW,
        law: None,
        quota: server::State::NEW,
        crawl: None,
        stall: stall::State::NEW,
        down: stall::State::NEW,
        denied: denied::State::NEW,
    };

    /// Whether it said what is left, and no more that counts.
    pub fn says_only_quota(&self) -> bool {
        let is_up = self.down == stall::State::NEW;
        self.backoff.is_new() && self.law.is_none() && self.crawl.is_none() && is_up
    }

    pub fn is_over(&self, now: Instant) -> bool {
        self.backoff.is_new()
            && self.law.is_none()
            && self.quota.is_over(now)
            && !self.quota.is_refuted
            && self.crawl.is_none()
            && self.stall == stall::State::NEW
            && self.down == stall::State::NEW
            && self.denied == denied::State::NEW
    }
}

impl Scope {
    /// The state that is worth a snapshot. `flying` are the send times of what is in flight.
    pub fn learned(&self, now: Instant, flying: &[Instant]) -> Learned {
        let slot_delay = self.slot_delay();
        let server = self.server.as_deref();
        let quotas = self.quotas().map(|(config, state)| Spent {
            window: config.window,
            is_strict: config.strict,
            sends: state.sends(config, now),
            owed: state.owed(config, now),
        });
        let flying = flying.iter().map(|&sent| now.since(sent)).filter(|&ago| ago < slot_delay);
        Learned {
            age: Span::ZERO,
            since_send: self
                .delay
                .last()
                .map(|last| now.since(last))
                .filter(|&ago| ago < self.longest_delay()),
            rests: self.slots.rests(now, slot_delay).chain(flying).collect(),
            policies: self.remembered(now),
            hold: self.hold_until(now).map(|until| until.since(now)),
            is_paused: self.paused,
            quotas: quotas.filter(|spent| !spent.sends.is_empty()).collect(),
            crawl: self.crawl(),
            backoff: server
                .map(|server| server.backoff.at(&self.config.backoff, now, self.base()))
                .filter(|state| !state.is_new())
                .map(|state| BackedOff::of(&state, now)),
            left: server
                .filter(|server| !server.quota.is_over(now))
                .and_then(|server| Left::of(&server.quota, now)),
            routes: Vec::new(),
        }
    }

    /// Takes up what was learned; `offline` has passed since.
    pub fn restore(&mut self, now: Instant, offline: Span, learned: &Learned) {
        let offline = offline + learned.age;
        let rests: Vec<Span> = learned.rests.iter().map(|&ago| ago + offline).collect();
        self.delay = delay::State::since(now, learned.since_send.map(|ago| ago + offline));
        self.slots = slots::State::resting(now, self.config.concurrency, &rests);
        self.paused = learned.is_paused;
        self.policies.recall(&self.config, now, offline, &learned.policies);
        let law = self.config.is_ceiling().then_some(learned.policies.rampup).and_then(|numbers| {
            let config = self.ceiling_of(Span::ZERO);
            numbers[1]?; // at the ceiling
            Some(Box::new(rampup::State::fresh(&config).recall(&config, now, offline, numbers)))
        });
        self.hold = learned.hold.filter(|&left| left > offline).map(|left| now + (left - offline));
        self.set_server(ServerState {
            crawl: learned.crawl,
            law,
            backoff: learned.backoff.map_or(backoff::State::NEW, |backoff| backoff.state(now, offline)),
            quota: learned.left.map_or(server::State::NEW, |mut left| {
                left.span = left.span.min(self.config.max_hold);
                left.state(now, offline)
            }),
            ..ServerState::NOTHING
        });
        self.quotas = new_quotas(&self.config);
        for (config, state) in self.config.quotas.iter().zip(&mut self.quotas) {
            let same = |spent: &&Spent| spent.window == config.window && spent.is_strict == config.strict;
            if let Some(spent) = learned.quotas.iter().find(same) {
                let sends: Vec<_> = spent.sends.iter().map(|&(ago, cost)| (ago + offline, cost)).collect();
                *state = quota::State::from_sends(config, now, &sends, spent.owed);
            }
        }
    }

    /// The memory of the policies. A scope has rampup, or its law below a ceiling.
    fn remembered(&self, now: Instant) -> Memory {
        let mut memory = self.policies.remember(&self.config, now);
        if let Some((law, config)) = self.law() {
            memory.rampup = law.remember(&config, now);
        }
        memory
    }

    /// Whether this scope is as good as one that was just made.
    pub fn is_new(&self, now: Instant) -> bool {
        self.is_free(now)
            && self.server.as_ref().is_none_or(|server| server.is_over(now))
            && self.policies.are_fresh(&self.config)
    }

    /// Whether it may be forgotten although it learned something: it has no hold and owes no wait.
    pub fn is_free(&self, now: Instant) -> bool {
        self.is_passable(now) && self.server.as_ref().is_none_or(|server| server.quota.is_over(now))
    }

    /// Whether a request could leave now: the same, but that some of what the server said may be left.
    pub fn is_passable(&self, now: Instant) -> bool {
        !self.paused
            && self.reported_next(now, Cost::ONE).is_none()
            && self.server.as_ref().is_none_or(|server| {
                server.backoff.at(&self.config.backoff, now, self.base()).is_over() && self.law_step() == 0
            })
            && self.delay.last().is_none_or(|last| last + self.longest_delay() <= now)
            && self.slots.is_new(now, self.slot_delay())
            && self.policies.are_free(now)
            && self.quotas().all(|(config, state)| state.is_new(config, now))
    }

    /// Idle for a while: gives back what memory it can.
    pub fn sleep(&mut self, now: Instant) {
        self.slots.forget_rested(now, self.slot_delay());
    }

    /// The server's report of its quota is no longer for the whole scope.
    pub fn forget_told(&mut self) {
        if let Some(server) = &mut self.server {
            server.quota = server::State::NEW;
        }
    }

    pub(super) fn set_server(&mut self, server: ServerState) {
        self.server = (server != ServerState::NOTHING).then(|| Box::new(server));
    }

    /// The delay that robots.txt asks for.
    #[inline]
    pub fn crawl(&self) -> Option<Span> {
        self.server.as_ref().and_then(|server| server.crawl)
    }

    /// The delay that robots.txt asks for; `None` if it asks for no delay.
    pub fn set_crawl_delay(&mut self, crawl: Option<Span>) {
        if crawl.is_some() || self.server.is_some() {
            self.server.get_or_insert_with(|| Box::new(ServerState::NOTHING)).crawl = crawl;
        }
    }

    /// Forgets what was learned and lifts the hold. Requests in flight stay in flight; the last send, what is
    /// spent of quotas and budgets, and robots.txt stay.
    pub fn reset(&mut self) {
        self.hold = None;
        let quota = self.server.as_ref().map_or(server::State::NEW, |server| server.quota);
        self.set_server(ServerState { crawl: self.crawl(), quota, ..ServerState::NOTHING });
        self.policies.reset(&self.config);
    }
}
