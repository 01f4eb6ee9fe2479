//! One scope: the policies of a group of requests that are throttled together, composed. The strictest
//! verdict wins.
//!
//! The trap is a policy that knows another. They meet only here, and each sees nothing but times and numbers.

pub(crate) mod registry;

use std::rc::Rc;

use crate::{
    config::ScopeConfig,
    decision::{Reason, Verdict},
    feedback::{Answer, Feedback},
    policy::{
        autothrottle, delay,
        quota::{self, Cost},
        slots,
    },
    rng::Rng,
    snapshot::{Learned, Spent},
    time::{Instant, Span},
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
            config,
        }
    }

    /// May a request of this cost leave?
    pub fn verdict(&self, now: Instant, cost: Cost) -> Verdict {
        self.gate(now).max(self.quota_verdict(now, cost))
    }

    /// The part of the verdict that is the same for every request of the scope.
    fn gate(&self, now: Instant) -> Verdict {
        if self.paused {
            return Verdict::Blocked(Reason::Paused);
        }
        if self.slots.is_full(self.config.concurrency) {
            return Verdict::Blocked(Reason::Concurrency);
        }
        let not_before = |until: Option<Instant>, reason| match until {
            Some(until) if until > now => Verdict::NotBefore(until, reason),
            _ => Verdict::Go,
        };
        not_before(self.delay.next(self.delay_span(), self.config.jitter), Reason::Delay)
            .max(not_before(
                self.slots.next(self.config.concurrency, self.config.slot_delay),
                Reason::SlotDelay,
            ))
            .max(not_before(self.hold, Reason::Hold))
    }

    /// The part that depends on the request's cost. What costs nothing never waits for a quota.
    fn quota_verdict(&self, now: Instant, cost: Cost) -> Verdict {
        if cost == Cost::ZERO {
            return Verdict::Go;
        }
        self.quotas()
            .filter_map(|(config, state)| state.next(config, now, cost))
            .map(|until| Verdict::NotBefore(until, Reason::Quota))
            .max()
            .unwrap_or(Verdict::Go)
    }

    /// A request of this cost leaves now.
    pub fn on_send(&mut self, now: Instant, cost: Cost, rng: &mut Rng) {
        self.slots.on_send(self.config.concurrency);
        self.delay = self.delay.on_send(now, rng.draw());
        for (config, state) in self.config.quotas.iter().zip(&mut self.quotas) {
            state.on_send(config, now, cost);
        }
    }

    /// The request that left at `sent` ended.
    pub fn on_settle(&mut self, now: Instant, sent: Instant, expected: Cost, feedback: &Feedback) {
        self.slots.on_settle(now, sent, self.config.slot_delay);
        if let Some(actual) = feedback.cost {
            self.on_actual(now, sent, expected, actual);
        }
        if let (Some(policy), Some(state)) = (self.config.autothrottle_policy(), self.autothrottle)
            && let Answer::Response { status } = feedback.answer
            && let Some(latency) = feedback.latency_ms
            && feedback.adjust_delay
        {
            self.autothrottle = Some(state.on_response(&policy, latency / 1000.0, status));
        }
    }

    /// The request that was allowed to leave at `sent` never did.
    pub fn on_cancel(&mut self, now: Instant, sent: Instant, expected: Cost) {
        self.slots.on_settle(now, sent, self.config.slot_delay);
        self.on_actual(now, sent, expected, Cost::ZERO);
    }

    /// Takes new settings and keeps what was learned.
    pub fn configure(&mut self, config: Rc<ScopeConfig>) {
        let old = core::mem::replace(&mut self.config, config);
        self.slots.on_configure(self.config.concurrency);
        self.autothrottle = self.config.autothrottle_policy().map(|policy| match self.autothrottle {
            None => autothrottle::State::new(&policy),
            Some(state) if old.delay.total_cmp(&self.config.delay).is_ne() => state.on_configure(&policy),
            Some(state) => state,
        });
        if old.quotas != self.config.quotas {
            self.quotas = new_quotas(&self.config);
        }
    }

    /// Nothing is sent before `until`. A hold is only ever made longer.
    pub fn hold(&mut self, until: Instant) {
        self.hold = self.hold.max(Some(until));
    }

    /// Forgets what was learned and lifts the hold. What is in flight stays in flight, the last send stays.
    pub fn reset(&mut self) {
        self.hold = None;
        self.autothrottle = new_autothrottle(&self.config);
        self.quotas = new_quotas(&self.config);
    }

    /// What is worth remembering when the process ends. `flying` are the send times of what is in flight.
    pub fn learned(&self, now: Instant, flying: &[Instant]) -> Learned {
        let slot_delay = self.config.slot_delay;
        let fresh = new_autothrottle(&self.config);
        let quotas = self.quotas().map(|(config, state)| Spent {
            window: config.window,
            is_strict: config.strict,
            sends: state.sends(config, now),
        });
        let flying = flying.iter().map(|&sent| now.since(sent)).filter(|&ago| ago < slot_delay);
        Learned {
            since_send: self
                .delay
                .last()
                .map(|last| now.since(last))
                .filter(|&ago| ago < self.longest_delay()),
            rests: self.slots.rests(now, slot_delay).chain(flying).collect(),
            delay_s: self.autothrottle.filter(|state| fresh != Some(*state)).map(|state| state.delay),
            hold: self.hold_until(now).map(|until| until.since(now)),
            is_paused: self.paused,
            quotas: quotas.filter(|spent| !spent.sends.is_empty()).collect(),
        }
    }

    /// Takes up what was learned; `offline` has passed since.
    pub fn restore(&mut self, now: Instant, offline: Span, learned: &Learned) {
        let rests: Vec<Span> = learned.rests.iter().map(|&ago| ago + offline).collect();
        self.delay = delay::State::since(now, learned.since_send.map(|ago| ago + offline));
        self.slots = slots::State::resting(now, self.config.concurrency, &rests);
        self.paused = learned.is_paused;
        self.hold = learned.hold.filter(|&left| left > offline).map(|left| now + (left - offline));
        if let (Some(state), Some(delay)) = (&mut self.autothrottle, learned.delay_s) {
            state.delay = delay;
        }
        for (config, state) in self.config.quotas.iter().zip(&mut self.quotas) {
            let same = |spent: &&Spent| spent.window == config.window && spent.is_strict == config.strict;
            if let Some(spent) = learned.quotas.iter().find(same) {
                let sends: Vec<_> = spent.sends.iter().map(|&(ago, cost)| (ago + offline, cost)).collect();
                *state = quota::State::from_sends(config, now, &sends);
            }
        }
    }

    /// The delay in force before jitter, in milliseconds.
    pub fn delay_ms(&self) -> f64 {
        self.autothrottle.map_or(self.config.delay, |state| state.delay * 1000.0)
    }

    /// The hold, if one is in force.
    pub fn hold_until(&self, now: Instant) -> Option<Instant> {
        self.hold.filter(|&until| until > now)
    }

    /// What is left of the scarcest quota, if there is one.
    pub fn quota_left(&self, now: Instant) -> Option<Cost> {
        self.quotas().map(|(config, state)| state.left(config, now)).min()
    }

    /// Whether nothing distinguishes this scope from one that was just made.
    pub fn is_new(&self, now: Instant) -> bool {
        self.is_free(now)
            && self.autothrottle == new_autothrottle(&self.config)
            && self.delay.last().is_none_or(|last| last + self.longest_delay() <= now)
    }

    /// Whether it may be forgotten although it learned something: nothing holds it back and nothing is owed.
    pub fn is_free(&self, now: Instant) -> bool {
        !self.paused
            && self.hold_until(now).is_none()
            && self.slots.is_new(now, self.config.slot_delay)
            && self.quotas().all(|(config, state)| state.is_new(config, now))
    }

    /// Idle for a while: gives back what memory it can.
    pub fn sleep(&mut self, now: Instant) {
        self.slots.forget_rested(now, self.config.slot_delay);
    }

    /// How large a part of its quotas a request of this cost takes.
    pub fn share(&self, cost: Cost) -> u64 {
        self.config.quotas.iter().map(|quota| cost.share_of(quota.limit)).max().unwrap_or(0)
    }

    /// Whether a request of this cost could ever leave.
    pub fn can_afford(&self, cost: Cost) -> bool {
        self.config.quotas.iter().all(|quota| cost <= quota.limit)
    }

    fn on_actual(&mut self, now: Instant, sent: Instant, expected: Cost, actual: Cost) {
        for (config, state) in self.config.quotas.iter().zip(&mut self.quotas) {
            state.on_actual(config, now, sent, expected, actual);
        }
    }

    fn quotas(&self) -> impl Iterator<Item = (&quota::Config, &quota::State)> {
        self.config.quotas.iter().zip(&self.quotas)
    }

    fn delay_span(&self) -> Span {
        Span::from_millis(self.delay_ms())
    }

    /// After so long no draw makes the last send matter any more.
    fn longest_delay(&self) -> Span {
        self.delay_span().times(1.0 + self.config.jitter.high)
    }
}

fn new_autothrottle(config: &ScopeConfig) -> Option<autothrottle::State> {
    config.autothrottle_policy().map(|policy| autothrottle::State::new(&policy))
}

fn new_quotas(config: &ScopeConfig) -> Box<[quota::State]> {
    config.quotas.iter().map(quota::State::new).collect()
}
