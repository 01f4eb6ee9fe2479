//! One scope: the policies of a group of requests that are throttled together, composed. The strictest
//! verdict wins.
//!
//! The trap is a policy that knows another. They meet only here, and each sees nothing but times and numbers.

pub(crate) mod registry;

use std::rc::Rc;

use crate::{
    config::ScopeConfig,
    decision::{Reason, Verdict},
    feedback::{Answer, Feedback, Hint},
    policy::{
        autothrottle,
        backoff::{self, Plain},
        delay, jitter,
        quota::{self, Cost},
        rampup, rate, server, slots, stall,
    },
    rng::Rng,
    snapshot::{BackedOff, Learned, Left, Spent},
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
    heard: Option<Box<Heard>>,
    ramp: Option<Box<rampup::State>>,
    rate: Option<Box<rate::State>>,
}

/// What a scope goes by at one instant.
struct Terms {
    slots: u32,
    delay: Span,
    jitter: jitter::Config,
    reason: Reason,
    slot_delay: Span,
}

/// What the server made us learn. Most scopes never hear anything.
#[derive(Clone, Debug, PartialEq)]
struct Heard {
    backoff: backoff::State,
    server: server::State,
    /// What robots.txt asks for.
    crawl: Option<Span>,
    /// Since when there were only bad answers.
    stall: stall::State,
}

/// What the end of a request means beyond its scope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settled {
    /// How long there were only bad answers, if that is now to be told.
    pub stall: Option<Span>,
    /// What the server asked to wait.
    pub wait: Option<Wait>,
    /// Whether it was a bad answer; `None` if it was no answer.
    pub is_bad: Option<bool>,
    /// Whether rampup heard a refusal: it takes no steps that could be seen.
    pub is_refusal_to_rampup: bool,
}

/// A wait that a server asked for: by `Retry-After`, or by a quota of which nothing is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    /// For how long, a second more where it speaks whole seconds.
    pub asked: Span,
    /// How much of it is kept: no more than `backoff.maxDelay`.
    pub kept: Span,
}

impl Heard {
    const NOTHING: Self = Self {
        backoff: backoff::State::NEW,
        server: server::State::NEW,
        crawl: None,
        stall: stall::State::NEW,
    };

    fn is_over(&self, now: Instant) -> bool {
        self.backoff.is_new()
            && self.server.is_over(now)
            && self.crawl.is_none()
            && self.stall == stall::State::NEW
    }
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
            heard: None,
            ramp: new_rampup(&config),
            rate: new_rate(&config),
            config,
        }
    }

    /// May a request of this cost leave?
    pub fn verdict(&self, now: Instant, cost: Cost) -> Verdict {
        self.gate(now).max(self.rate_verdict(now)).max(self.quota_verdict(now, cost))
    }

    fn rate_verdict(&self, now: Instant) -> Verdict {
        let (Some(state), Some(config)) = (&self.rate, &self.config.rate) else { return Verdict::Go };
        Verdict::not_before(now, Some(state.next(config)), Reason::Rate)
    }

    /// A request waits, and none did.
    pub fn on_wait(&mut self, now: Instant) {
        if let Some(state) = &mut self.rate {
            **state = state.on_wait(now);
        }
    }

    /// The part of the verdict that is the same for every request of the scope.
    fn gate(&self, now: Instant) -> Verdict {
        if self.paused {
            return Verdict::Blocked(Reason::Paused);
        }
        let Some(heard) = &self.heard else {
            // Most scopes, most of the time: nothing but what was configured.
            return match self.ramp {
                None => self.gate_at(now, &self.configured()),
                Some(_) => self.gate_in(now, &backoff::State::NEW, None),
            };
        };
        let state = heard.backoff.at(&self.config.backoff, now, self.plain());
        let verdict = self.gate_in(now, &state, heard.crawl);
        match state.recovers(&self.config.backoff) {
            // A step back is coming first: from then on it is what counts.
            Some(due) if verdict > Verdict::NotBefore(due, Reason::Backoff) => {
                let state = state.at(&self.config.backoff, due, self.plain());
                let then = self.gate_in(now, &state, heard.crawl);
                then.max(Verdict::NotBefore(due, Reason::Backoff))
            }
            _ => verdict,
        }
    }

    fn gate_in(&self, now: Instant, backoff: &backoff::State, crawl: Option<Span>) -> Verdict {
        let plain = self.plain();
        let slots = plain.slots.min(backoff.slots);
        let is_backing_off = backoff.pace > plain.delay;
        let (delay, jitter, reason) = if is_backing_off {
            (backoff.pace, self.config.backoff.jitter, Reason::Backoff)
        } else {
            (Span::from_millis(self.plain_ms()), self.jitter(), Reason::Delay)
        };
        let ramped = match (&self.ramp, self.config.rampup_policy()) {
            (Some(ramp), Some(config)) if self.config.typed.jitter => {
                self.delay.next(ramp.gap(&config), self.config.jitter).max(ramp.paused())
            }
            (Some(ramp), Some(config)) => ramp.next(&config),
            _ => None,
        };
        let asked = crawl.and_then(|crawl| self.delay.last().map(|last| last + crawl));
        self.gate_at(now, &Terms { slots, delay, jitter, reason, slot_delay: self.slot_delay() })
            .max(Verdict::not_before(now, ramped, Reason::Delay))
            .max(Verdict::not_before(now, asked, Reason::CrawlDelay))
    }

    fn gate_at(&self, now: Instant, terms: &Terms) -> Verdict {
        if self.slots.is_full(terms.slots) {
            return Verdict::Blocked(Reason::Concurrency);
        }
        let slot = self.slots.next(terms.slots, terms.slot_delay);
        Verdict::not_before(now, self.delay.next(terms.delay, terms.jitter), terms.reason)
            .max(Verdict::not_before(now, slot, Reason::SlotDelay))
            .max(Verdict::not_before(now, self.hold, Reason::Hold))
    }

    /// The terms of a scope that learned nothing but `AutoThrottle`'s delay.
    fn configured(&self) -> Terms {
        let delay = self.autothrottle.map_or(self.config.delay, |state| state.delay * 1000.0);
        Terms {
            slots: self.config.concurrency,
            delay: Span::from_millis(delay),
            jitter: self.config.jitter,
            reason: Reason::Delay,
            slot_delay: self.config.slot_delay,
        }
    }

    /// The part that depends on the request's cost. What costs nothing never waits for a quota.
    fn quota_verdict(&self, now: Instant, cost: Cost) -> Verdict {
        if cost == Cost::ZERO || self.quotas.is_empty() && self.heard.is_none() {
            return Verdict::Go;
        }
        let told = self.heard.as_ref().and_then(|heard| heard.server.next(now, cost));
        self.quotas()
            .filter_map(|(config, state)| state.next(config, now, cost))
            .chain(told)
            .map(|until| Verdict::NotBefore(until, Reason::Quota))
            .max()
            .unwrap_or(Verdict::Go)
    }

    /// A request of this cost leaves now.
    pub fn on_send(&mut self, now: Instant, cost: Cost, rng: &mut Rng) {
        let mut slots = self.plain_slots();
        let plain = self.heard.is_some().then(|| self.plain());
        if let (Some(heard), Some(plain)) = (&mut self.heard, plain) {
            heard.server = heard.server.on_send(cost);
            heard.backoff = heard.backoff.at(&self.config.backoff, now, plain);
            slots = slots.min(heard.backoff.slots);
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

    /// The request that left at `sent` ended. After `stall_after` of only bad answers the scope has stalled.
    pub fn on_settle(
        &mut self,
        now: Instant,
        sent: Instant,
        expected: Cost,
        feedback: &Feedback,
        stall_after: Span,
    ) -> Settled {
        self.slots.on_settle(now, sent, self.slot_delay());
        if let Some(actual) = feedback.cost {
            self.on_actual(now, sent, expected, actual);
        }
        let settled = self.on_answer(now, sent, feedback, stall_after);
        let wait = self.on_hint(now, sent, &feedback.hint);
        if let (Some(policy), Some(state)) = (self.config.autothrottle_policy(), self.autothrottle)
            && let Answer::Response { status } = feedback.answer
            && let Some(latency) = feedback.latency_ms
            && feedback.adjust_delay
            && !feedback.hint.is_cached
        {
            self.autothrottle = Some(state.on_response(&policy, latency / 1000.0, status));
        }
        Settled { wait, ..settled }
    }

    /// Steps up after a bad answer; notes the evidence of a good one. Neutral ones (a 500 that is no bad
    /// answer) are neither.
    fn on_answer(&mut self, now: Instant, sent: Instant, feedback: &Feedback, stall_after: Span) -> Settled {
        let is_bad = feedback.is_bad.unwrap_or(match feedback.answer {
            Answer::Response { status } => self.config.is_bad_status(status),
            Answer::Failed(failure) => self.config.is_bad_failure(failure),
            Answer::Ignored => false,
        });
        let is_answer = feedback.answer != Answer::Ignored || feedback.is_bad.is_some();
        let mut settled = Settled { is_bad: is_answer.then_some(is_bad), ..Settled::default() };
        if !is_bad && self.heard.is_none() && self.ramp.is_none() {
            return settled; // nothing to recover from
        }
        let is_good = !is_bad && matches!(feedback.answer, Answer::Response { status } if status < 500);
        let plain = self.plain();
        let config = &self.config.backoff;
        if let (Some(ramp), Some(config)) = (&mut self.ramp, self.config.rampup_policy()) {
            if is_bad {
                let is_refusal =
                    feedback.is_bad.is_some() || feedback.answer == Answer::Response { status: 429 };
                settled.is_refusal_to_rampup = is_refusal || feedback.hint.asked.is_some();
                **ramp = ramp.on_bad(&config, now, sent, is_refusal, feedback.hint.asked);
            } else if is_good {
                **ramp = ramp.on_good(&config, now, sent);
            }
        }
        if is_bad {
            let heard = self.heard.get_or_insert_with(|| Box::new(Heard::NOTHING));
            if self.ramp.is_none() && !self.config.is_managed {
                heard.backoff = heard.backoff.on_bad(config, now, sent, plain);
            }
            (heard.stall, settled.stall) =
                heard.stall.on_bad(&stall::Config::new(stall_after, config.max), now);
            return settled;
        }
        if let Some(heard) = &mut self.heard
            && is_good
        {
            heard.backoff = heard.backoff.on_good(config, now, sent, plain);
            heard.stall = stall::State::NEW;
            if heard.is_over(now) {
                self.heard = None;
            }
        }
        settled
    }

    /// A hold is only ever made longer. No wait that a server asks for is longer than `backoff.maxDelay`:
    /// gives what was asked, and what is kept of it.
    fn on_hint(&mut self, now: Instant, sent: Instant, hint: &Hint) -> Option<Wait> {
        let most = self.config.backoff.max;
        let mut told = hint.told;
        // A rough pace is for those who asked for it: rampup finds a better one.
        let follows = self.config.follow_rate_limit || self.ramp.is_some() && !hint.is_rough;
        told.pace = told.pace.filter(|_| follows).map(|pace| pace.min(most));
        told.left = told.left.map(|(left, span)| (left, span.min(most)));
        let mut turns = None;
        if told.left.is_some() || told.pace.is_some() {
            let flying = self.slots.in_flight();
            let heard = self.heard.get_or_insert_with(|| Box::new(Heard::NOTHING));
            heard.server = heard.server.on_told(now, sent, told, flying);
            turns = heard.server.until.filter(|_| hint.is_quota && told.left.is_some());
        }
        let spent = hint.told.left.filter(|&(left, _)| left == Cost::ZERO).map(|(_, span)| span);
        let hold = hint.hold.filter(|&span| span > Span::ZERO);
        if let Some(span) = hold {
            let until = now + span.min(most);
            self.hold(turns.map_or(until, |turns| turns.min(until)));
        }
        let asked = hold.max(spent)?;
        let kept = hold.map(|_| self.hold).max(spent.map(|_| self.heard.as_ref()?.server.until)).flatten();
        Some(Wait { asked, kept: kept?.since(now) })
    }

    /// What robots.txt asks for; `None` if it asks for nothing.
    pub fn set_crawl_delay(&mut self, crawl: Option<Span>) {
        if crawl.is_some() || self.heard.is_some() {
            self.heard.get_or_insert_with(|| Box::new(Heard::NOTHING)).crawl = crawl;
        }
    }

    /// The request that was allowed to leave at `sent` never did.
    pub fn on_cancel(&mut self, now: Instant, sent: Instant, expected: Cost) {
        self.slots.on_settle(now, sent, self.slot_delay());
        self.on_actual(now, sent, expected, Cost::ZERO);
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

    /// Forgets what was learned and lifts the hold. What is in flight stays in flight, the last send and
    /// robots.txt stay.
    pub fn reset(&mut self) {
        self.hold = None;
        self.set_heard(Heard { crawl: self.crawl(), ..Heard::NOTHING });
        self.autothrottle = new_autothrottle(&self.config);
        self.ramp = new_rampup(&self.config);
        self.quotas = new_quotas(&self.config);
    }

    /// What is worth remembering when the process ends. `flying` are the send times of what is in flight.
    pub fn learned(&self, now: Instant, flying: &[Instant]) -> Learned {
        let slot_delay = self.slot_delay();
        let heard = self.heard.as_deref();
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
            rate: self.rate.as_ref().map(|state| state.ahead(now)).filter(|&ahead| ahead > Span::ZERO),
            gap: self.gap().filter(|_| self.ramp != new_rampup(&self.config)),
            crawl: self.crawl(),
            backoff: heard
                .map(|heard| heard.backoff.at(&self.config.backoff, now, self.plain()))
                .filter(|state| !state.is_new())
                .map(|state| BackedOff::of(&state, now)),
            left: heard
                .filter(|heard| !heard.server.is_over(now))
                .and_then(|heard| Left::of(&heard.server, now)),
        }
    }

    /// Takes up what was learned; `offline` has passed since.
    pub fn restore(&mut self, now: Instant, offline: Span, learned: &Learned) {
        let rests: Vec<Span> = learned.rests.iter().map(|&ago| ago + offline).collect();
        self.delay = delay::State::since(now, learned.since_send.map(|ago| ago + offline));
        self.slots = slots::State::resting(now, self.config.concurrency, &rests);
        self.paused = learned.is_paused;
        let config = self.config.rampup_policy();
        if let (Some(ramp), Some(config), Some(gap)) = (&mut self.ramp, config, learned.gap) {
            **ramp = ramp.settled_at(&config, gap);
        }
        if let (Some(config), Some(ahead)) = (&self.config.rate, learned.rate) {
            self.rate = Some(Box::new(rate::State::restored(config, now, ahead - offline)));
        }
        self.hold = learned.hold.filter(|&left| left > offline).map(|left| now + (left - offline));
        self.set_heard(Heard {
            crawl: learned.crawl,
            backoff: learned.backoff.map_or(backoff::State::NEW, |backoff| backoff.state(now, offline)),
            server: learned.left.map_or(server::State::NEW, |mut left| {
                left.span = left.span.min(self.config.backoff.max);
                left.state(now, offline)
            }),
            ..Heard::NOTHING
        });
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

    /// The delay before jitter, in milliseconds: backoff's or the rate's gap if that is longer.
    /// `AutoThrottle`'s is told as it is.
    pub fn delay_ms(&self, now: Instant) -> f64 {
        let plain = self.config.rate.map_or(0.0, |rate| rate.gap().millis()).max(self.plain_ms());
        match (self.autothrottle, self.gap()) {
            (Some(_), None) => plain,
            (_, Some(gap)) => plain.max(gap.millis()),
            (None, None) => plain.max(self.backoff_ms(now)),
        }
    }

    /// The delay that backoff asks for, in milliseconds; 0 without.
    pub fn backoff_ms(&self, now: Instant) -> f64 {
        self.backoff(now).map_or(0.0, |state| state.pace.millis())
    }

    /// The gap that rampup has come to.
    fn gap(&self) -> Option<Span> {
        Some(self.ramp.as_ref()?.gap(&self.config.rampup_policy()?))
    }

    /// Slots allowed now.
    pub fn slots_allowed(&self, now: Instant) -> u32 {
        self.backoff(now).map_or(u32::MAX, |state| state.slots).min(self.plain().slots)
    }

    /// Steps of backoff in force.
    pub fn backoff_step(&self, now: Instant) -> u32 {
        self.backoff(now).map_or(0, |state| state.steps)
    }

    fn backoff(&self, now: Instant) -> Option<backoff::State> {
        self.heard.as_ref().map(|heard| heard.backoff.at(&self.config.backoff, now, self.plain()))
    }

    /// The delay without backoff in milliseconds: the scope's own or robots.txt's, `AutoThrottle`'s, the
    /// server's pace.
    fn plain_ms(&self) -> f64 {
        let crawl = self.crawl().map(Span::millis);
        let learned = self.autothrottle.map(|state| state.delay * 1000.0);
        let delay = match (learned, crawl) {
            (Some(learned), Some(crawl)) => learned.max(crawl),
            (Some(delay), None) | (None, Some(delay)) => delay,
            (None, None) if self.ramp.is_some() && !self.config.own.delay => 0.0,
            (None, None) => self.config.delay,
        };
        match &self.heard {
            Some(heard) if self.follows_rate_limit() => delay.max(heard.server.pace.millis()),
            _ => delay,
        }
    }

    /// What holds without backoff. A rate's gap is a delay that backoff begins with.
    fn plain(&self) -> Plain {
        let gap = self.config.rate.map_or(Span::ZERO, |rate| rate.gap());
        Plain { delay: Span::from_millis(self.plain_ms()).max(gap), slots: self.plain_slots() }
    }

    /// Slots without backoff. robots.txt's delay is for one request at a time.
    fn plain_slots(&self) -> u32 {
        match &self.ramp {
            _ if self.crawl().is_some() => 1,
            Some(ramp) => self.most_slots().min(ramp.slots()),
            None => self.config.concurrency,
        }
    }

    /// Where a scope ramps, only what was set for this very scope bounds it.
    fn most_slots(&self) -> u32 {
        let ramped = self.config.rampup.and_then(|rampup| rampup.max_concurrency).unwrap_or(u32::MAX);
        if self.config.own.concurrency { ramped.min(self.config.concurrency) } else { ramped }
    }

    /// robots.txt's delay is exact, and so is the gap that was found; unless the user wants a spread.
    fn jitter(&self) -> jitter::Config {
        let is_exact = self.crawl().is_some() || self.ramp.is_some() && !self.config.typed.jitter;
        if is_exact { jitter::Config::NONE } else { self.config.jitter }
    }

    fn follows_rate_limit(&self) -> bool {
        self.config.follow_rate_limit || self.ramp.is_some()
    }

    /// One slot with a crawl-delay needs no slot delay beside it.
    fn slot_delay(&self) -> Span {
        let is_bound = self.ramp.is_none() || self.config.own.slot_delay;
        if self.crawl().is_some() || !is_bound { Span::ZERO } else { self.config.slot_delay }
    }

    /// What robots.txt asks for.
    pub fn crawl(&self) -> Option<Span> {
        self.heard.as_ref().and_then(|heard| heard.crawl)
    }

    fn set_heard(&mut self, heard: Heard) {
        self.heard = (heard != Heard::NOTHING).then(|| Box::new(heard));
    }

    /// The hold, if one is in force.
    pub fn hold_until(&self, now: Instant) -> Option<Instant> {
        self.hold.filter(|&until| until > now)
    }

    /// What is left of the scarcest quota, if there is one.
    pub fn quota_left(&self, now: Instant) -> Option<Cost> {
        let told = self.heard.as_ref().and_then(|heard| heard.server.left(now));
        self.quotas().map(|(config, state)| state.left(config, now)).chain(told).min()
    }

    /// Whether nothing distinguishes this scope from one that was just made.
    pub fn is_new(&self, now: Instant) -> bool {
        self.is_free(now)
            && self.heard.as_ref().is_none_or(|heard| heard.is_over(now))
            && self.autothrottle == new_autothrottle(&self.config)
            && self.ramp == new_rampup(&self.config)
            && self.delay.last().is_none_or(|last| last + self.longest_delay() <= now)
    }

    /// Whether it may be forgotten although it learned something: nothing holds it back and nothing is owed.
    pub fn is_free(&self, now: Instant) -> bool {
        !self.paused
            && self.hold_until(now).is_none()
            && self.heard.as_ref().is_none_or(|heard| {
                heard.backoff.at(&self.config.backoff, now, self.plain()).is_over()
                    && heard.server.is_over(now)
            })
            && self.slots.is_new(now, self.slot_delay())
            && self.rate.as_ref().is_none_or(|state| state.ahead(now) == Span::ZERO)
            && self.quotas().all(|(config, state)| state.is_new(config, now))
    }

    /// Idle for a while: gives back what memory it can.
    pub fn sleep(&mut self, now: Instant) {
        self.slots.forget_rested(now, self.slot_delay());
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

    /// After so long no draw makes the last send matter any more.
    fn longest_delay(&self) -> Span {
        let pace = self.heard.as_ref().map_or(Span::ZERO, |heard| heard.backoff.pace);
        let delay = self.plain().delay.max(pace).max(self.gap().unwrap_or_default());
        delay.times(1.0 + self.config.jitter.high.max(self.config.backoff.jitter.high))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::server::Told;

    #[test]
    fn a_wait_that_is_cut_says_what_was_asked() {
        let seconds = |seconds: f64| Span::from_millis(1000.0 * seconds);
        let mut scope = Scope::new(Rc::default());
        let now = Instant::from_micros(0);
        let mut wait = |hint| {
            let feedback = Feedback { hint, ..Feedback::response(200) };
            scope.on_settle(now, now, Cost::ONE, &feedback, seconds(900.0)).wait
        };
        let told = |left| Told { left: Some((left, seconds(1e6))), ..Told::default() };
        assert_eq!(wait(Hint::default()), None);
        assert_eq!(wait(Hint { told: told(Cost::ONE), ..Hint::default() }), None, "something is left");
        let cut = Some(Wait { asked: seconds(1e6), kept: seconds(300.0) });
        assert_eq!(wait(Hint { told: told(Cost::ZERO), ..Hint::default() }), cut);
        let held = Hint { hold: Some(seconds(3600.0)), ..Hint::default() };
        assert_eq!(wait(held), Some(Wait { asked: seconds(3600.0), kept: seconds(300.0) }));
        let short = Hint { hold: Some(seconds(5.0)), ..Hint::default() };
        assert_eq!(
            wait(short),
            Some(Wait { asked: seconds(5.0), kept: seconds(300.0) }),
            "it is held already"
        );
    }
}
