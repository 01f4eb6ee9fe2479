//! Rampup as a scope sees it: which events it hears of, and what it asks for.
//!
//! Two traps. A limit that is asked for twice: the gap comes through `next`, so that late timers are made up
//! for, and `gap` only tells it. And a memory of the gap alone, taken for what the server bears: the one of
//! Start is a guess, and after a refusal it doubles until the server serves a request. A process that goes on
//! from that climbs by a percent a minute. So what is remembered is `e`, how far it may be wrong, and where
//! on the curve.

use super::{Config, State, WIDE, micros, span};
use crate::{
    policy::{Ended, Numbers, Policy, Sent, quota::Cost},
    time::{Instant, LONGEST_MS, Span},
};

impl Policy for State {
    type Config = Config;
    const KEYS: &'static [(&'static str, f64)] =
        &[("gap", LONGEST_MS), ("gapMargin", 1.0), ("gapClimb", 2.0)];
    const FINDS_PACE: bool = true;

    fn fresh(config: &Config) -> Self {
        Self::new(config)
    }

    fn on_send(self, config: &Config, sent: &Sent) -> Self {
        Self::on_send(self, config, sent)
    }

    fn on_left(self, left: Instant) -> Self {
        Self::on_left(self, left)
    }

    fn on_end(self, config: &Config, ended: &Ended) -> Self {
        if ended.is_bad || ended.is_denied {
            self.on_bad(config, ended)
        } else if ended.is_good {
            self.on_good(config, ended.now, ended.sent)
        } else {
            self
        }
    }

    fn gap(&self, config: &Config) -> Option<Span> {
        Some(Self::gap(self, config))
    }

    fn next(&self, config: &Config, _: Cost) -> Option<Instant> {
        self.due.map(|due| due + Self::gap(self, config)).max(self.pause)
    }

    fn pause(&self, _: &Config) -> Option<Instant> {
        self.pause
    }

    fn slots(&self) -> u32 {
        if self.event.is_some_and(|event| event.is_wall) { 1 } else { self.crowd.slots(self.gap) }
    }

    /// A refusal that is not judged yet is judged as if something were served now. `m` and `x` are there
    /// once Start is over.
    fn remember(&self, config: &Config, now: Instant) -> Numbers {
        if self.is_fresh(config) {
            return Numbers::default();
        }
        let mut judged = *self;
        if let Some(event) = judged.event.take() {
            judged.judge(config, now, event);
        }
        let is_over = !judged.is_start;
        let climb = is_over.then(|| judged.x(config).min(2.0));
        [Some(span(judged.gap).millis()), is_over.then_some(judged.span), climb]
    }

    /// What was sent before the memory is old news: what it taught may be in it.
    fn recall(self, config: &Config, now: Instant, offline: Span, [gap, margin, climb]: Numbers) -> Self {
        let gap = micros(Span::from_millis(gap.unwrap_or(0.0))).max(1.0);
        let since = now - offline;
        let Some(margin) = margin else { return Self { gap, entered: since, ..self } };
        let mut found = Self { gap, entered: since, fresh: since, is_start: false, ..self };
        found.span = margin.max(found.narrow(config)).min(WIDE);
        found.clock = climb.unwrap_or(0.0) * found.period(config);
        found
    }
}
