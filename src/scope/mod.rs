//! One scope: the policies of a group of requests that are throttled together, composed. The strictest
//! verdict wins.
//!
//! | file | concern |
//! |---|---|
//! | here | what a scope is made of, and what happens to it |
//! | [`pace`] | what is in force: slots, delays, instants before which nothing is sent |
//! | [`ceiling`] | what rampup's law makes of bad answers where a pace was typed |
//! | [`answers`] | how a request ended, as each policy is to hear it |
//! | `policies.rs` | those that a scope may have or not |
//! | [`learned`] | what the server made us learn; what is remembered, restored and forgotten |
//! | [`family`] | what is known of the budgets of a scope's server |
//! | [`registry`] | names of scopes, and which of them may go |
//!
//! No policy knows another. They meet only here, and each sees only times and numbers.

mod answers;
mod ceiling;
pub(crate) mod family;
mod learned;
mod pace;
pub(crate) mod registry;

use std::sync::Arc;

use self::learned::ServerState;
use crate::{
    config::ScopeConfig,
    decision::Verdict,
    policies::Policies,
    policy::{
        Policy, Sent, backoff, delay,
        quota::{self, Cost},
        slots,
    },
    rng::Rng,
    time::{Instant, Span},
};

/// The states of one scope's policies.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    pub config: Arc<ScopeConfig>,
    pub slots: slots::State,
    pub paused: bool,
    delay: delay::State,
    hold: Option<Instant>,
    quotas: Box<[quota::State]>,
    server: Option<Box<ServerState>>,
    policies: Policies,
}

impl Scope {
    pub fn new(config: Arc<ScopeConfig>) -> Self {
        Self {
            slots: slots::State::default(),
            paused: false,
            delay: delay::State::NEW,
            hold: None,
            quotas: new_quotas(&config),
            server: None,
            policies: Policies::fresh(&config),
            config,
        }
    }

    /// May a request of this cost leave?
    pub fn verdict(&self, now: Instant, cost: Cost) -> Verdict {
        let mut strictest = self.gate(now);
        if !self.policies.is_empty() {
            strictest = strictest.max(self.policies.verdict(&self.config, now, self.delay, cost));
        }
        if !self.has_no_quota() {
            strictest = strictest.max(self.quota_verdict(now, cost));
        }
        strictest
    }

    /// Whether no quota counts, of the settings or of the server.
    #[inline]
    fn has_no_quota(&self) -> bool {
        self.quotas.is_empty() && self.server.is_none()
    }

    /// Whether no request of this cost is ever refused, nor a share of anything: the usual case.
    #[inline]
    pub fn is_open_to(&self, cost: Cost) -> bool {
        self.has_no_quota() && cost <= Cost::ONE
    }

    /// Whether only slots, a delay and a rate bound it, and no answer but a bad one changes that.
    pub fn is_express(&self) -> bool {
        self.server.is_none() && self.is_simple()
    }

    /// The same but for what its server made us learn.
    #[inline(always)]
    fn is_simple(&self) -> bool {
        let config = &*self.config;
        !self.paused
            && self.hold.is_none()
            && self.quotas.is_empty()
            && !self.policies.learn()
            && !config.is_slow()
            && !config.is_budget
            && self.slots.are_rested()
    }

    /// [`Scope::verdict`] and [`Scope::on_send`] of a request of cost 1 where the scope is express, or its
    /// server says no more than what is left; the caller's timer was so `late`. False where it is not, or may
    /// not leave: then no state has changed. `has_waited`: of one for which there was [`Scope::on_wait`].
    #[inline]
    pub fn send_express(&mut self, now: Instant, late: Span, has_waited: bool, rng: &mut Rng) -> bool {
        if !self.is_simple() || self.slots.is_full(self.config.concurrency) {
            return false;
        }
        if self.config.delay > 0.0 && self.delay_ends() > Some(now) {
            return false;
        }
        if !self.policies.is_empty() {
            return self.send_paced(now, late, has_waited, rng);
        }
        debug_assert!(self.server.is_some() || self.verdict(now, Cost::ONE) == Verdict::Go);
        if self.server.is_some() && !self.is_counted(now) {
            return false;
        }
        self.delay = self.delay.on_send(now, rng.draw());
        self.slots.take();
        true
    }

    /// Whether its server says no more than what is left, and something is; then one less is.
    #[inline(never)]
    fn is_counted(&mut self, now: Instant) -> bool {
        let Some(server) = &self.server else { return true };
        let is_open = server.says_only_quota() && server.quota.next(now, Cost::ONE).is_none();
        if !is_open || self.config.follow_rate_limit {
            return false;
        }
        debug_assert!(self.verdict(now, Cost::ONE) == Verdict::Go, "express is no other verdict");
        if let Some(server) = &mut self.server {
            server.quota = server.quota.on_send(Cost::ONE);
        }
        true
    }

    fn delay_ends(&self) -> Option<Instant> {
        self.delay.next(self.config.delay_span(), self.config.jitter)
    }

    fn send_paced(&mut self, now: Instant, late: Span, has_waited: bool, rng: &mut Rng) -> bool {
        let verdict = self.policies.verdict(&self.config, now, self.delay, Cost::ONE);
        if verdict != Verdict::Go || !self.is_counted(now) {
            return false;
        }
        let sent = Sent { now, draw: rng.draw(), flying: self.slots.in_flight(), late, cost: Cost::ONE };
        if !has_waited {
            self.policies.on_wait(now);
        }
        self.policies.on_send(&self.config, &sent);
        self.delay = self.delay.on_send(now, sent.draw);
        self.slots.take();
        true
    }

    /// A request waits, and none did.
    pub fn on_wait(&mut self, now: Instant) {
        self.policies.on_wait(now);
    }

    /// A request of this cost leaves now; the caller's timer was so late.
    pub fn on_send(&mut self, now: Instant, late: Span, cost: Cost, rng: &mut Rng) {
        let mut slots = self.base_slots();
        let base = self.server.is_some().then(|| self.base());
        let mut has_law = false;
        if let (Some(server), Some(base)) = (&mut self.server, base) {
            server.quota = server.quota.on_send(cost);
            server.backoff = server.backoff.at(&self.config.backoff, now, base);
            slots = slots.min(server.backoff.slots);
            has_law = server.law.is_some();
        }
        if has_law && let Some((law, _)) = self.law() {
            slots = slots.min(law.slots());
        }
        let sent = Sent { now, draw: rng.draw(), flying: self.slots.in_flight(), late, cost };
        if !self.policies.is_empty() {
            self.policies.on_send(&self.config, &sent);
        }
        if has_law {
            self.on_send_below(&sent);
        }
        self.slots.on_send(slots);
        self.delay = self.delay.on_send(now, sent.draw);
        for (config, state) in self.config.quotas.iter().zip(&mut self.quotas) {
            state.on_send(config, now, cost);
        }
    }

    /// A request of this cost that was granted at `granted` left only at `sent_at`: gaps and rolling windows
    /// count from there. A rate's schedule makes up for what is late and stays as it is; a fixed window took
    /// its cost.
    pub fn on_sent_at(&mut self, now: Instant, (granted, sent_at): (Instant, Instant), cost: Cost) {
        self.delay = self.delay.sent_at(sent_at);
        self.policies.on_sent_at(sent_at);
        if let Some(law) = self.server.as_mut().and_then(|server| server.law.as_mut()) {
            **law = law.on_sent_at(sent_at);
        }
        for (config, state) in self.config.quotas.iter().zip(&mut self.quotas) {
            state.on_sent_at(config, now, (granted, sent_at), cost);
        }
    }

    /// A request of this cost left at `sent`, from somewhere else, and is in flight. Only if it is new does
    /// it count as a send: else that was remembered.
    pub fn adopt(&mut self, now: Instant, sent: Instant, cost: Cost, is_new: bool, rng: &mut Rng) {
        let slots = self.slots_allowed(now);
        let flying = self.slots.in_flight();
        self.slots.on_send(slots);
        if !is_new {
            return;
        }
        if let Some(server) = &mut self.server {
            server.quota = server.quota.on_send(cost);
        }
        let last = self.delay.last().map_or(sent, |last| last.max(sent));
        let sent_last = Sent { now: last, draw: rng.draw(), flying, late: Span::ZERO, cost };
        self.policies.on_send(&self.config, &sent_last);
        self.on_send_below(&sent_last);
        self.delay = self.delay.on_send(last, sent_last.draw);
        for (config, state) in self.config.quotas.iter().zip(&mut self.quotas) {
            state.adopt(config, now, sent, cost);
        }
    }

    /// Takes new settings and keeps what was learned.
    pub fn configure(&mut self, now: Instant, config: Arc<ScopeConfig>) {
        let old = core::mem::replace(&mut self.config, config);
        self.slots.on_configure(self.config.concurrency);
        self.policies.on_configure(&old, &self.config, self.delay.last());
        if let Some(server) = &mut self.server {
            let backoff = &self.config.backoff;
            let hears = self.config.hears_answers();
            server.backoff = if hears { server.backoff.on_configure(backoff) } else { backoff::State::NEW };
            server.law = server.law.take().filter(|law| self.config.is_ceiling() && !law.is_quiet());
        }
        if old.quotas != self.config.quotas {
            let new = self.config.quotas.iter();
            self.quotas = new.map(|config| self.carried(&old.quotas, config, now)).collect();
        }
    }

    /// The consumed part of a new quota. All quotas of a scope count the same sends: the one with the same
    /// window knows best, else the one that remembers most.
    fn carried(&self, old: &[quota::Config], new: &quota::Config, now: Instant) -> quota::State {
        let last = self.delay.last();
        let carried = old.iter().zip(&self.quotas).map(|(old, state)| {
            let is_same = (old.window, old.strict) == (new.window, new.strict);
            (is_same, state.on_configure(old, new, now, last))
        });
        let best = carried.max_by_key(|(is_same, state)| (*is_same, state.used(new, now)));
        best.map_or_else(|| quota::State::new(new), |(_, state)| state)
    }

    /// No request leaves before `until`. A hold is only ever made longer.
    pub fn hold(&mut self, until: Instant) {
        self.hold = self.hold.max(Some(until));
    }

    /// The hold, if one is in force.
    pub fn hold_until(&self, now: Instant) -> Option<Instant> {
        self.hold.filter(|&until| until > now)
    }

    /// The rest of the scarcest quota, if there is one.
    pub fn quota_left(&self, now: Instant) -> Option<Cost> {
        let reported = self.server.as_ref().and_then(|server| server.quota.left(now));
        self.quotas().map(|(config, state)| state.left(config, now)).chain(reported).min()
    }

    /// How large a part of its limits a request of this cost takes. Where a policy bounds the cost, one of a
    /// unit or less takes none, so requests without a cost keep their order.
    pub fn share(&self, cost: Cost) -> u64 {
        let quotas = self.config.quotas.iter().map(|quota| cost.share_of(quota.limit));
        let beyond = Some(cost.less(1)).filter(|&beyond| beyond > Cost::ZERO);
        let policy = beyond.and_then(|beyond| Some(beyond.share_of(Policies::most(&self.config)?)));
        quotas.chain(policy).max().unwrap_or(0)
    }

    /// The setting by which a request of this cost could never leave.
    pub fn forbids(&self, cost: Cost) -> Option<&'static str> {
        if self.config.quotas.iter().any(|quota| cost > quota.limit) {
            return Some("quota");
        }
        (cost > Cost::ONE && Policies::most(&self.config).is_some_and(|most| cost > most)).then_some("rate")
    }

    fn quotas(&self) -> impl Iterator<Item = (&quota::Config, &quota::State)> {
        self.config.quotas.iter().zip(&self.quotas)
    }
}

fn new_quotas(config: &ScopeConfig) -> Box<[quota::State]> {
    config.quotas.iter().map(quota::State::new).collect()
}
