//! One scope: the policies of a group of requests that are throttled together, composed. The strictest
//! verdict wins.
//!
//! | file | concern |
//! |---|---|
//! | here | what a scope is made of, and what happens to it |
//! | [`pace`] | what is in force: slots, delays, instants before which nothing is sent |
//! | [`answers`] | how a request ended, as each policy is to hear it |
//! | [`learned`] | what the server made us learn; what is remembered, restored and forgotten |
//! | [`registry`] | names of scopes, and which of them may go |
//!
//! The trap is a policy that knows another. They meet only here, and each sees nothing but times and numbers.

mod answers;
mod learned;
mod pace;
pub(crate) mod registry;

use std::rc::Rc;

use self::learned::ServerState;
use crate::{
    config::ScopeConfig,
    decision::Verdict,
    policy::{
        autothrottle, delay,
        quota::{self, Cost},
        rampup, rate, slots,
    },
    rng::Rng,
    time::Instant,
};

/// What the policies of one scope know.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    pub config: Rc<ScopeConfig>,
    pub slots: slots::State,
    pub paused: bool,
    delay: delay::State,
    autothrottle: Option<autothrottle::State>,
    hold: Option<Instant>,
    quotas: Box<[quota::State]>,
    server: Option<Box<ServerState>>,
    ramp: Option<Box<rampup::State>>,
    rate: Option<Box<rate::State>>,
}

impl Scope {
    pub fn new(config: Rc<ScopeConfig>) -> Self {
        Self {
            slots: slots::State::default(),
            paused: false,
            delay: delay::State::NEW,
            autothrottle: new_autothrottle(&config),
            hold: None,
            quotas: new_quotas(&config),
            server: None,
            ramp: new_rampup(&config),
            rate: new_rate(&config),
            config,
        }
    }

    /// May a request of this cost leave?
    pub fn verdict(&self, now: Instant, cost: Cost) -> Verdict {
        self.gate(now).max(self.rate_verdict(now)).max(self.quota_verdict(now, cost))
    }

    /// A request waits, and none did.
    pub fn on_wait(&mut self, now: Instant) {
        if let Some(state) = &mut self.rate {
            **state = state.on_wait(now);
        }
    }

    /// A request of this cost leaves now.
    pub fn on_send(&mut self, now: Instant, cost: Cost, rng: &mut Rng) {
        let mut slots = self.base_slots();
        let base = self.server.is_some().then(|| self.base());
        if let (Some(server), Some(base)) = (&mut self.server, base) {
            server.quota = server.quota.on_send(cost);
            server.backoff = server.backoff.at(&self.config.backoff, now, base);
            slots = slots.min(server.backoff.slots);
        }
        if let (Some(ramp), Some(config)) = (&mut self.ramp, self.config.rampup_policy()) {
            **ramp = ramp.on_send(&config, now);
        }
        self.slots.on_send(slots);
        let draw = rng.draw();
        self.delay = self.delay.on_send(now, draw);
        if let (Some(state), Some(config)) = (&mut self.rate, &self.config.rate) {
            **state = state.on_send(config, now, draw);
        }
        for (config, state) in self.config.quotas.iter().zip(&mut self.quotas) {
            state.on_send(config, now, cost);
        }
    }

    /// Takes new settings and keeps what was learned.
    pub fn configure(&mut self, now: Instant, config: Rc<ScopeConfig>) {
        let old = core::mem::replace(&mut self.config, config);
        self.slots.on_configure(self.config.concurrency);
        self.autothrottle = match (self.config.autothrottle_policy(), self.autothrottle) {
            (Some(new), Some(state)) => {
                let old = old.autothrottle_policy().filter(|old| *old != new);
                Some(old.map_or(state, |old| state.on_configure(&old, &new)))
            }
            _ => new_autothrottle(&self.config),
        };
        if self.config.rate != old.rate {
            let (old, last) = (old.rate.as_ref(), self.delay.last());
            let state = self.rate.take().unwrap_or_else(|| Box::new(rate::State::NEW));
            self.rate = self.config.rate.as_ref().map(|new| Box::new(state.on_configure(old, new, last)));
        }
        if self.config.rampup != old.rampup {
            self.ramp = new_rampup(&self.config);
        }
        if old.quotas != self.config.quotas {
            let new = self.config.quotas.iter();
            self.quotas = new.map(|config| self.carried(&old.quotas, config, now)).collect();
        }
    }

    /// What a new quota has consumed. All quotas of a scope count the same sends: the one with the same
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

    /// Nothing is sent before `until`. A hold is only ever made longer.
    pub fn hold(&mut self, until: Instant) {
        self.hold = self.hold.max(Some(until));
    }

    /// The hold, if one is in force.
    pub fn hold_until(&self, now: Instant) -> Option<Instant> {
        self.hold.filter(|&until| until > now)
    }

    /// What is left of the scarcest quota, if there is one.
    pub fn quota_left(&self, now: Instant) -> Option<Cost> {
        let told = self.server.as_ref().and_then(|server| server.quota.left(now));
        self.quotas().map(|(config, state)| state.left(config, now)).chain(told).min()
    }

    /// How large a part of its quotas a request of this cost takes.
    pub fn share(&self, cost: Cost) -> u64 {
        self.config.quotas.iter().map(|quota| cost.share_of(quota.limit)).max().unwrap_or(0)
    }

    /// Whether a request of this cost could ever leave.
    pub fn can_afford(&self, cost: Cost) -> bool {
        self.config.quotas.iter().all(|quota| cost <= quota.limit)
    }

    fn quotas(&self) -> impl Iterator<Item = (&quota::Config, &quota::State)> {
        self.config.quotas.iter().zip(&self.quotas)
    }
}

fn new_autothrottle(config: &ScopeConfig) -> Option<autothrottle::State> {
    config.autothrottle_policy().map(|policy| autothrottle::State::new(&policy))
}

fn new_rampup(config: &ScopeConfig) -> Option<Box<rampup::State>> {
    config.rampup_policy().map(|policy| Box::new(rampup::State::new(&policy)))
}

fn new_rate(config: &ScopeConfig) -> Option<Box<rate::State>> {
    config.rate.map(|_| Box::new(rate::State::NEW))
}

fn new_quotas(config: &ScopeConfig) -> Box<[quota::State]> {
    config.quotas.iter().map(quota::State::new).collect()
}
