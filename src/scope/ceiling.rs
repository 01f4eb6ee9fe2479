//! A typed pace is a ceiling of rampup's law: which ceiling, and what holds below it.
//!
//! The law is made with the first bad answer, and goes once it is quiet at the ceiling and what failed is
//! forgotten. While it is quiet, bursts and jitter are as they were typed.

use super::{Scope, learned::ServerState};
use crate::{
    config::Typed,
    policy::{Ended, Policy, Sent, jitter, rampup},
    time::{Instant, Span},
};

impl Scope {
    /// The law's settings, where a typed pace is a ceiling.
    pub(super) fn ceiling(&self) -> Option<rampup::Config> {
        if !self.config.is_ceiling() {
            return None;
        }
        let law = self.server.as_ref().and_then(|server| server.law.as_deref());
        let latency = law.map_or(Span::ZERO, rampup::State::latency);
        Some(self.ceiling_of(latency))
    }

    /// The longest gap of those that were typed, where answers take so long.
    pub(super) fn ceiling_of(&self, latency: Span) -> rampup::Config {
        self.config.ceiling_policy(self.longest_gap(latency), self.ceiling_jitter().high.max(0.0))
    }

    /// The law where it holds the pace below the ceiling, or keeps it there after a refusal.
    pub(super) fn law(&self) -> Option<(rampup::State, rampup::Config)> {
        let law = **self.server.as_ref()?.law.as_ref()?;
        let config = self.ceiling()?;
        (!law.is_quiet()).then_some((law, config))
    }

    /// Below the ceiling the gap is exact, unless people typed how much it varies: a strict server refuses
    /// half of what varies around the right gap.
    pub(super) fn ceiling_jitter(&self) -> jitter::Config {
        if self.config.typed.has(Typed::JITTER) { self.jitter() } else { jitter::Config::NONE }
    }

    /// The first instant at which the law lets a request leave, but for the gap where that has a jitter.
    pub(super) fn law_next(&self, law: &rampup::State, config: &rampup::Config) -> Option<Instant> {
        let spread = self.ceiling_jitter();
        if spread == jitter::Config::NONE {
            return law.next(config, crate::policy::quota::Cost::ONE);
        }
        law.gap(config).and_then(|gap| self.delay.next(gap, spread)).max(law.pause(config))
    }

    /// Whether the law's gap is longer than the ceiling's.
    pub(super) fn is_below(&self, law: &rampup::State, config: &rampup::Config) -> bool {
        law.gap(config) > Some(config.min.max(self.base().delay) + Span::from_micros(1))
    }

    /// Steps below the ceiling: one, or none.
    pub(super) fn law_step(&self) -> u32 {
        u32::from(self.law().is_some_and(|(law, config)| self.is_below(&law, &config)))
    }

    /// When the law will be at the end of its curve if no request is refused and each gap is used.
    pub(super) fn law_recovers(&self, now: Instant) -> Option<Instant> {
        let (law, config) = self.law()?;
        (self.law_step() > 0).then(|| law.pause(&config).unwrap_or_default().max(now) + law.rest(&config))
    }

    /// A bad answer came to a request that left at `ended.sent`. Whether it was a refusal to the law.
    pub(super) fn on_bad_below(&mut self, ended: &Ended) -> bool {
        let law = self.server.as_ref().and_then(|server| server.law.as_deref());
        let config = self.ceiling_of(law.map_or(ended.now.since(ended.sent), rampup::State::latency));
        let server = self.server.get_or_insert_with(|| Box::new(ServerState::NOTHING));
        let law = server.law.get_or_insert_with(|| Box::new(rampup::State::fresh(&config)));
        let was_waiting = law.is_waiting();
        **law = law.on_end(&config, ended);
        law.is_waiting() && !was_waiting
    }

    /// Another answer came, which is good or no news.
    pub(super) fn on_other_below(&mut self, ended: &Ended) {
        let Some(config) = self.ceiling() else { return };
        let Some(server) = &mut self.server else { return };
        let Some(law) = &mut server.law else { return };
        **law = law.on_end(&config, ended);
        if law.is_over() {
            server.law = None;
        }
    }

    /// A request leaves.
    pub(super) fn on_send_below(&mut self, sent: &Sent) {
        let Some(config) = self.ceiling() else { return };
        if let Some(law) = self.server.as_mut().and_then(|server| server.law.as_mut()) {
            **law = law.on_send(&config, sent);
        }
    }
}
