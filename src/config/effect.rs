//! Settings that have no effect beside the others: what is known before the first request.
//!
//! Five slots behind a delay of a second are one slot, unless an answer takes seconds. The meter (`observe`)
//! finds limits that only show while requests wait.
//!
//! A notice names only what you typed: a default that another setting makes useless is no mistake of yours.

use super::{Config, ScopeConfig, Typed};
use crate::{
    time::Span,
    value::{number_text, text, whole_text},
};

/// Answers take less than this as a rule, so slots that only longer ones need have no effect.
const SLOW: Span = Span::from_micros(3_000_000);

impl Config {
    /// Settings without effect by the scope's name (none for `defaults`): setting, path and reason.
    pub(crate) fn without_effect(&self) -> Vec<(&str, &'static str, String, String)> {
        let mut found = Vec::new();
        for (setting, why) in self.defaults.no_bounds() {
            found.push(("", setting, self.path_of("", &self.defaults, setting), why.into()));
        }
        if let Some((setting, why)) = self.defaults.without_effect(self.defaults.typed) {
            found.push(("", setting, self.path_of("", &self.defaults, setting), why));
        }
        for &index in self.by_name.iter() {
            let (name, scope) = &self.scopes[index as usize];
            if let Some((setting, why)) = scope.without_effect(scope.own) {
                found.push((name, setting, self.path_of(name, scope, setting), why));
            }
        }
        found
    }
}

impl ScopeConfig {
    /// Settings of defaults that ramp which a person takes for bounds: one that types `delay: 5000` beside
    /// `rampup` asks for five seconds. Scrapy's names have both in every project, and say it in their log.
    fn no_bounds(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let is_told = self.rampup.is_some() && !self.is_managed && !self.is_ladder;
        let settings = [
            (self.delay > 0.0, Typed::DELAY, "delay", "rampup finds it; for a bound type rampup.minDelay"),
            (
                self.slot_delay > Span::ZERO,
                Typed::SLOT_DELAY,
                "slotDelay",
                "rampup finds the pace; for a bound type it in scopes",
            ),
            (
                true,
                Typed::CONCURRENCY,
                "concurrency",
                "rampup finds it; for a bound type rampup.maxConcurrency",
            ),
        ];
        let typed = self.typed;
        settings
            .into_iter()
            .filter(move |&(is_some, of, ..)| is_told && is_some && typed.has(of))
            .map(|(_, _, setting, why)| (setting, why))
    }

    /// The first of the settings named in `typed` that can have no effect, and why.
    pub(crate) fn without_effect(&self, typed: Typed) -> Option<(&'static str, String)> {
        let slots = self.concurrency;
        if typed.has(Typed::CONCURRENCY) && slots > self.global {
            let all = &whole_text(self.global.into());
            let why = [
                &whole_text(slots.into()),
                " slots; `maxInFlight`, the limit of all scopes together, is ",
                all,
            ];
            return Some(("concurrency", text(&why)));
        }
        // A manager says another delay while it runs, and rampup finds one.
        if self.is_managed || self.rampup.is_some() && !self.own.has(Typed::DELAY) {
            return None;
        }
        let delay = number_text(self.delay);
        let slow = Span::from_millis(self.delay * f64::from(slots - 1));
        // With AutoThrottle the delay is only the least, and slots are a bound on what it finds.
        if typed.has(Typed::CONCURRENCY) && slow >= SLOW && self.autothrottle.is_none() {
            let why = [
                &whole_text(slots.into()),
                " slots; with ",
                &delay,
                " ms between sends they are all in use only while answers take longer than ",
                &number_text(slow.millis()),
                " ms",
            ];
            return Some(("concurrency", text(&why)));
        }
        let slot_delay = self.slot_delay.millis();
        let least = if slots == 1 { self.delay } else { self.delay * (1.0 + self.jitter.low) };
        if typed.has(Typed::SLOT_DELAY) && slot_delay > 0.0 && slot_delay < least {
            return Some(("slotDelay", text(&["the scope's delay of ", &delay, " ms is longer"])));
        }
        None
    }
}
