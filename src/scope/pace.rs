//! The pace in force in a scope: the one place where settings, what was learned and what was asked for become
//! slots, a delay, and instants before which no request leaves.
//!
//! Each limit is worked out here alone, or the gate, the statistics and the memory would disagree.

use super::Scope;
use crate::{
    config::Typed,
    decision::{Reason, Verdict},
    observe::{ScopeStats, Seen},
    policy::{
        Policy,
        backoff::{self, Base},
        jitter,
        quota::Cost,
    },
    time::{Instant, Span},
};

/// A gap that slots alone make is not exactly even: it counts as this share of the mean.
const UNEVEN: f64 = 0.9;

/// Limits in force at one instant.
struct InForce {
    slots: u32,
    delay: Span,
    jitter: jitter::Config,
    reason: Reason,
    slot_delay: Span,
}

impl Scope {
    /// The part of the verdict that is the same for every request of the scope.
    pub(super) fn gate(&self, now: Instant) -> Verdict {
        if self.paused {
            return Verdict::Blocked(Reason::Paused);
        }
        let Some(server) = &self.server else {
            // Most scopes, most of the time: only what was configured.
            return if self.policies.finds_pace() {
                self.verdict_with(now, &backoff::State::NEW, None)
            } else {
                self.verdict_of(now, &self.configured())
            };
        };
        let state = server.backoff.at(&self.config.backoff, now, self.base());
        let verdict = self.verdict_with(now, &state, server.crawl);
        match state.recovers(&self.config.backoff) {
            // A step back is coming first: from then on it is what counts.
            Some(due) if verdict > Verdict::NotBefore(due, Reason::Backoff) => {
                let state = state.at(&self.config.backoff, due, self.base());
                let then = self.verdict_with(now, &state, server.crawl);
                then.max(Verdict::NotBefore(due, Reason::Backoff))
            }
            _ => verdict,
        }
    }

    fn verdict_with(&self, now: Instant, backoff: &backoff::State, crawl: Option<Span>) -> Verdict {
        let base = self.base();
        let law = self.law();
        let below = law.map_or(u32::MAX, |(law, _)| law.slots());
        let slots = base.slots.min(backoff.slots).min(below);
        let is_backing_off = backoff.pace > base.delay;
        let (usual, spread) = (Span::from_millis(self.base_ms()), self.jitter());
        // Backoff's jitter takes the place of the scope's, and never makes a gap that the scope's would not.
        let (delay, jitter, reason, least) = if is_backing_off {
            (backoff.pace, self.config.backoff.jitter, Reason::Backoff, usual.times(1.0 + spread.low))
        } else if law.is_some() {
            // The law has the gap and its jitter; only what else holds is here.
            (Span::ZERO, jitter::Config::NONE, Reason::Delay, Span::ZERO)
        } else {
            (usual, spread, Reason::Delay, Span::ZERO)
        };
        let paced = law.as_ref().and_then(|(law, config)| self.law_next(law, config));
        let is_below = law.as_ref().is_some_and(|(law, config)| self.is_below(law, config));
        let paced_by = if is_below { Reason::Backoff } else { Reason::Delay };
        let asked = crawl.and_then(|crawl| self.delay.last().map(|last| last + crawl));
        self.verdict_of(now, &InForce { slots, delay, jitter, reason, slot_delay: self.slot_delay() })
            .and_not_before(now, self.delay.last().map(|last| last + least), Reason::Delay)
            .and_not_before(now, asked, Reason::CrawlDelay)
            .and_not_before(now, paced, paced_by)
    }

    fn verdict_of(&self, now: Instant, in_force: &InForce) -> Verdict {
        if self.slots.is_full(in_force.slots) {
            return Verdict::Blocked(self.full(in_force.slots));
        }
        let slot = self.slots.next(in_force.slots, in_force.slot_delay);
        Verdict::not_before(now, self.delay.next(in_force.delay, in_force.jitter), in_force.reason)
            .and_not_before(now, slot, Reason::SlotDelay)
            .and_not_before(now, self.hold, Reason::Hold)
    }

    /// The reason of a scope that has no slot left: one that has none of its own takes those of all.
    #[cold]
    fn full(&self, slots: u32) -> Reason {
        let is_own = self.config.typed.has(Typed::CONCURRENCY) || slots < self.config.global;
        if is_own { Reason::Concurrency } else { Reason::Global }
    }

    /// The pace in force in a scope that learned only `AutoThrottle`'s delay.
    fn configured(&self) -> InForce {
        let delay = self.policies.delay_ms().unwrap_or(self.config.delay);
        InForce {
            slots: self.config.concurrency,
            delay: Span::from_millis(delay),
            jitter: self.config.jitter,
            reason: Reason::Delay,
            slot_delay: self.config.slot_delay,
        }
    }

    /// The part that depends on the request's cost. A request that is free never waits for a quota.
    pub(super) fn quota_verdict(&self, now: Instant, cost: Cost) -> Verdict {
        if cost == Cost::ZERO {
            return Verdict::Go;
        }
        let server = self.server.as_deref();
        let flying = Cost::whole(self.slots.in_flight());
        // A budget's window has turned: no more than a whole window is in flight until one answer is back.
        let is_unsure = self.config.is_budget && flying > Cost::ZERO;
        let turned = server.filter(|_| is_unsure).and_then(|server| server.quota.turned(now));
        if turned.is_some_and(|window| flying.plus(cost) > window) {
            return Verdict::Blocked(Reason::Quota);
        }
        let reported = server.and_then(|server| server.quota.next(now, cost));
        self.quotas()
            .filter_map(|(config, state)| state.next(config, now, cost))
            .chain(reported)
            .map(|until| Verdict::NotBefore(until, Reason::Quota))
            .max()
            .unwrap_or(Verdict::Go)
    }

    /// The scope's own part of its statistics. Instants go out `epoch_offset` earlier.
    pub fn stats(&self, now: Instant, shift: Span) -> ScopeStats {
        ScopeStats {
            delay_ms: self.delay_ms(now),
            backoff_ms: self.backoff_ms(now),
            slots: self.slots_allowed(now),
            in_flight: self.slots.in_flight(),
            backoff_step: self.backoff_step(now),
            hold_until: self.hold_until(now).map(|until| (until - shift).millis()),
            quota_left: self.quota_left(now).map(Cost::units),
            recovers_at: self.recovers(now).map(|at| (at - shift).millis()),
            paused: self.paused,
            ..ScopeStats::default()
        }
    }

    /// Before when the server lets no request of this cost leave.
    pub fn reported_next(&self, now: Instant, cost: Cost) -> Option<Instant> {
        let reported = self.server.as_ref().and_then(|server| server.quota.next(now, cost));
        self.hold_until(now).max(reported)
    }

    /// When a hold ends, a used-up quota is there again, and backoff goes a step back: the last of them.
    pub fn recovers(&self, now: Instant) -> Option<Instant> {
        let step = self.backoff(now).and_then(|state| state.recovers(&self.config.backoff));
        let step = step.max(self.law_recovers(now));
        let reported = self.reported_next(now, Cost::ONE);
        let own = self.quotas().filter_map(|(config, state)| state.next(config, now, Cost::ONE)).max();
        [step, reported, own].into_iter().max()?.filter(|&at| at > now)
    }

    /// The state that its watchers see.
    pub fn seen(&self, now: Instant) -> Seen {
        Seen { delay_ms: self.delay_ms(now), step: self.backoff_step(now), hold_until: self.hold_until(now) }
    }

    /// Whether watchers of it, where it is express, have heard all.
    #[inline]
    pub fn is_as(&self, seen: &Seen, now: Instant) -> bool {
        let config = &self.config;
        let delay_ms = if self.policies.is_empty() { config.delay } else { self.delay_ms(now) };
        seen.step == 0 && seen.hold_until.is_none() && seen.delay_ms.total_cmp(&delay_ms).is_eq()
    }

    /// The delay before jitter, in milliseconds: backoff's or a policy's gap if that is longer.
    /// `AutoThrottle`'s is given as it is.
    pub fn delay_ms(&self, now: Instant) -> f64 {
        let base = self.base_ms().max(self.policies.gap(&self.config).unwrap_or_default().millis());
        let is_told = self.policies.delay_ms().is_some() || self.policies.finds_pace();
        if is_told { base } else { base.max(self.backoff_ms(now)) }
    }

    /// The delay that backoff asks for, in milliseconds; 0 without.
    pub fn backoff_ms(&self, now: Instant) -> f64 {
        let law = self.law().filter(|_| self.law_step() > 0);
        let below = law.and_then(|(law, config)| law.gap(&config)).unwrap_or_default().millis();
        self.backoff(now).map_or(0.0, |state| state.pace.millis()).max(below)
    }

    /// Whether slots are its only limit: no time, no quota, and no limit that a server said. Slots that were
    /// taken away are not in use any more.
    pub fn is_bound_by_slots(&self, now: Instant) -> bool {
        let config = &self.config;
        let is_free = config.delay == 0.0 && !config.is_slow() && self.quotas.is_empty();
        let is_open = !self.paused && self.hold_until(now).is_none();
        let fits = self.slots.in_flight() <= config.concurrency;
        is_free && is_open && fits && self.server.is_none() && self.policies.is_empty()
    }

    /// Slots allowed now.
    pub fn slots_allowed(&self, now: Instant) -> u32 {
        let below = self.law().map_or(u32::MAX, |(law, _)| law.slots());
        self.backoff(now).map_or(u32::MAX, |state| state.slots).min(self.base().slots).min(below)
    }

    /// Steps of backoff in force.
    pub fn backoff_step(&self, now: Instant) -> u32 {
        self.backoff(now).map_or(0, |state| state.steps).max(self.law_step())
    }

    pub(super) fn backoff(&self, now: Instant) -> Option<backoff::State> {
        self.server.as_ref().map(|server| server.backoff.at(&self.config.backoff, now, self.base()))
    }

    /// The delay without backoff in milliseconds: the scope's own or robots.txt's, `AutoThrottle`'s, the
    /// server's pace.
    pub(super) fn base_ms(&self) -> f64 {
        let crawl = self.crawl().map(Span::millis);
        let learned = self.policies.delay_ms();
        let delay = match (learned, crawl) {
            (Some(learned), Some(crawl)) => learned.max(crawl),
            (Some(delay), None) | (None, Some(delay)) => delay,
            (None, None) if self.policies.finds_pace() && !self.config.own.has(Typed::DELAY) => 0.0,
            (None, None) => self.config.delay,
        };
        match &self.server {
            Some(server) if self.follows_rate_limit() => delay.max(server.quota.pace.millis()),
            _ => delay,
        }
    }

    /// The pace without backoff. A policy's gap is a delay that backoff begins with.
    pub(super) fn base(&self) -> Base {
        let gap = self.policies.gap(&self.config).unwrap_or_default();
        Base { delay: Span::from_millis(self.base_ms()).max(gap), slots: self.base_slots() }
    }

    /// Slots without backoff. robots.txt's delay is for one request at a time.
    pub(super) fn base_slots(&self) -> u32 {
        if self.crawl().is_some() {
            return 1;
        }
        let typed = if self.policies.finds_pace() { self.most_slots() } else { self.config.concurrency };
        typed.min(self.policies.slots())
    }

    /// Where a policy finds the pace, only what was set for this very scope bounds it.
    fn most_slots(&self) -> u32 {
        let ramped = self.config.rampup.and_then(|rampup| rampup.max_concurrency).unwrap_or(u32::MAX);
        if self.config.own.has(Typed::CONCURRENCY) { ramped.min(self.config.concurrency) } else { ramped }
    }

    /// The gap that a policy keeps.
    pub fn gap(&self) -> Option<Span> {
        self.policies.gap(&self.config)
    }

    /// Which setting of the user's is behind a reason to wait, where a policy finds the pace and would go
    /// faster without it; and the gap that was found.
    pub fn typed_limit(&self, now: Instant, reason: Reason) -> Option<(&'static str, Span)> {
        let rampup = self.config.rampup_policy()?;
        let gap = self.gap()?;
        let own = self.config.own;
        let setting = match reason {
            Reason::Concurrency if self.crawl().is_none() && self.most_slots() <= self.policies.slots() => {
                let is_own = own.has(Typed::CONCURRENCY) && self.config.concurrency == self.most_slots();
                if is_own { "concurrency" } else { "rampup.maxConcurrency" }
            }
            // The found gap has stopped at the least.
            Reason::Delay if gap.micros() <= rampup.min.micros() + rampup.min.micros() / 16 => {
                if own.has(Typed::DELAY) && self.config.delay >= rampup.min.millis() {
                    "delay"
                } else {
                    "rampup.minDelay"
                }
            }
            Reason::SlotDelay => "slotDelay",
            Reason::Rate => "rate",
            Reason::Quota
                if self.server.as_ref().is_none_or(|of| of.quota.next(now, Cost::ONE).is_none()) =>
            {
                "quota"
            }
            _ => return None,
        };
        Some((setting, gap))
    }

    /// robots.txt's delay is exact, and so is the gap that was found; unless the user wants a spread.
    pub(super) fn jitter(&self) -> jitter::Config {
        let is_exact =
            self.crawl().is_some() || self.policies.finds_pace() && !self.config.typed.has(Typed::JITTER);
        if is_exact { jitter::Config::NONE } else { self.config.jitter }
    }

    pub(super) fn follows_rate_limit(&self) -> bool {
        self.config.follow_rate_limit || self.policies.finds_pace()
    }

    /// One slot with a crawl-delay needs no slot delay beside it.
    #[inline]
    pub(super) fn slot_delay(&self) -> Span {
        let is_bound = !self.policies.finds_pace() || self.config.own.has(Typed::SLOT_DELAY);
        if self.crawl().is_some() || !is_bound { Span::ZERO } else { self.config.slot_delay }
    }

    /// The longest gap of the settings without backoff, where answers take so long: the mean one of a quota,
    /// of slots, of slots that rest.
    pub(super) fn longest_gap(&self, latency: Span) -> Span {
        let each = 1.0 / f64::from(self.base_slots().max(1));
        let quotas = self.config.quotas.iter();
        let quota = quotas.map(|quota| quota.window.times(1.0 / quota.limit.units().max(1.0))).max();
        let by_slots = self.slot_delay().max(latency.times(UNEVEN)).times(each);
        self.base().delay.max(by_slots).max(quota.unwrap_or_default())
    }

    /// After so long no draw makes the last send matter any more.
    pub(super) fn longest_delay(&self) -> Span {
        let pace = self.server.as_ref().map_or(Span::ZERO, |server| server.backoff.pace);
        let below = self.law().and_then(|(law, config)| law.gap(&config)).unwrap_or_default();
        let delay = self.base().delay.max(pace).max(below);
        delay.times(1.0 + self.config.jitter.high.max(self.config.backoff.jitter.high))
    }
}
