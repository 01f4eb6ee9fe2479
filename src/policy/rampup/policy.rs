//! Rampup as a scope sees it: which events it is told, and what it asks for.
//!
//! The trap is a limit that is asked for twice: the gap comes through `next`, so that late timers are made up
//! for, and `gap` only tells it.

use super::{Config, Phase, State};
use crate::{
    policy::{Ended, Policy, Sent},
    time::{Instant, Span},
};

impl Policy for State {
    type Config = Config;
    const KEY: &'static str = "gap";
    const FINDS_PACE: bool = true;

    fn fresh(config: &Config) -> Self {
        Self::new(config)
    }

    fn on_send(self, config: &Config, sent: &Sent) -> Self {
        Self::on_send(self, config, sent.now, sent.flying)
    }

    fn on_end(self, config: &Config, ended: &Ended) -> Self {
        if ended.is_bad {
            self.on_bad(config, ended.now, ended.sent, ended.is_refusal, ended.asked)
        } else if ended.is_good {
            self.on_good(config, ended.now, ended.sent)
        } else {
            self
        }
    }

    fn gap(&self, config: &Config) -> Option<Span> {
        Some(Self::gap(self, config))
    }

    fn next(&self, config: &Config) -> Option<Instant> {
        self.due.map(|due| due + Self::gap(self, config)).max(self.pause)
    }

    fn pause(&self, _: &Config) -> Option<Instant> {
        self.pause
    }

    fn slots(&self) -> u32 {
        match self.phase {
            Phase::Wall { .. } => 1, // probes
            _ => self.crowd.slots(self.gap),
        }
    }

    fn remember(&self, config: &Config, _: Instant) -> Option<f64> {
        (!self.is_fresh(config)).then(|| Self::gap(self, config).millis())
    }

    fn recall(self, config: &Config, _: Instant, _: Span, gap: f64) -> Self {
        let gap = Span::from_millis(gap).micros().max(1) as f64;
        let settled = Self { gap, phase: Phase::Search, ..self };
        Self { span: settled.narrow(config), ..settled }
    }
}
