//! Which settings of the pace win, where several were typed, and which defaults are left beside them.
//!
//! A setting may be typed in three places: at the top or in `defaults`, in `scopes`, in `configure`. Key by
//! key the nearest place wins, with two rules across keys:
//!
//! 1. A `rate` sets aside `delay`, `slotDelay`, `jitter` and `concurrency` of farther places.
//! 2. A `delay` or a `slotDelay` sets aside the `rate` of farther places.
//!
//! Both in one place are an error. Then the defaults of what was not typed:
//!
//! | typed | delay | slotDelay | jitter | concurrency |
//! |---|---|---|---|---|
//! | nothing, `jitter`, `concurrency` | 1000 | 1000 | 50 % | 1 |
//! | `autothrottle` | 1000 | 0 | 50 % | 1 |
//! | `delay` | | 0 | 50 % | 1 |
//! | `slotDelay` | 1000 | | 50 % | 1 |
//! | `rampup`, `quota` | 0 | 0 | 50 % | 1 |
//! | `rate` | 0 | 0 | none | all of the throttle |
//!
//! If a default stayed in force beside the pace that you type, `delay: 200` would be a request a second: a
//! slot delay of a second would bind. The cases are in `tests/native/config.rs`.

use super::{reader::Fields, scope::ScopeConfig};
use crate::{policy::jitter, time::Span, value::text};
use std::ops::BitOr;

/// Settings of the pace: those that were typed, or those in question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Typed(u8);

/// In the order of the bits.
const KEYS: [&str; 7] = ["delay", "slotDelay", "rate", "concurrency", "jitter", "quota", "rampup"];

impl Typed {
    /// `delay`.
    pub const DELAY: Self = Self(1);
    /// `slotDelay`.
    pub const SLOT_DELAY: Self = Self(1 << 1);
    /// `rate`.
    pub const RATE: Self = Self(1 << 2);
    /// `concurrency`.
    pub const CONCURRENCY: Self = Self(1 << 3);
    /// `jitter`.
    pub const JITTER: Self = Self(1 << 4);
    /// `backoff.maxDelay`, which stands in an object of its own.
    pub(super) const MAX_DELAY: Self = Self(1 << 7);

    /// What stands in one place.
    pub(super) fn read(fields: &mut Fields) -> Self {
        let near = Self::where_key(|key| fields.has(key));
        if near.has(Self::RATE) && near.has(Self::DELAY | Self::SLOT_DELAY) {
            let other = if near.has(Self::DELAY) { "delay" } else { "slotDelay" };
            let path = fields.path_of("rate");
            let want = text(&["rate or ", other, " in one place, not both"]);
            fields.problems().add(&path, want, "both");
        }
        near
    }

    /// The setting of this name; `None` if it is none of the pace.
    pub(super) fn named(setting: &str) -> Self {
        Self::where_key(|key| key == setting)
    }

    fn where_key(is_meant: impl Fn(&str) -> bool) -> Self {
        Self((0..KEYS.len()).filter(|&bit| is_meant(KEYS[bit])).map(|bit| 1 << bit).sum())
    }

    /// Whether one of these is among them.
    pub fn has(self, settings: Self) -> bool {
        self.0 & settings.0 != 0
    }

    /// What counts after a nearer place said `near`.
    pub(super) fn and(self, near: Self) -> Self {
        let mut far = self.0;
        if near.has(Self::RATE) {
            far &= !(Self::DELAY | Self::SLOT_DELAY | Self::JITTER | Self::CONCURRENCY).0;
        }
        if near.has(Self::DELAY | Self::SLOT_DELAY) {
            far &= !Self::RATE.0;
        }
        Self(far | near.0)
    }
}

impl BitOr for Typed {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl ScopeConfig {
    /// Gives each setting of the pace that was not typed the default that fits what was typed.
    pub(super) fn resolve_pace(&mut self, usual: &Self) {
        let typed = |setting| self.typed.has(setting);
        let is_rate = typed(Typed::RATE);
        let is_paced = is_rate || self.rampup.is_some() || !self.quota.is_empty();
        if !is_rate {
            self.rate = None;
        }
        if !typed(Typed::DELAY) {
            self.delay = if is_paced { 0.0 } else { usual.delay };
        }
        if !typed(Typed::SLOT_DELAY) {
            let is_typed = is_paced || typed(Typed::DELAY) || self.autothrottle.is_some();
            self.slot_delay = if is_typed { Span::ZERO } else { usual.slot_delay };
        }
        if !typed(Typed::JITTER) {
            self.jitter = if is_rate { jitter::Config::NONE } else { usual.jitter };
        }
        if !typed(Typed::CONCURRENCY) {
            self.concurrency = if is_rate { self.global } else { usual.concurrency };
        }
        if !typed(Typed::MAX_DELAY) {
            // A pace that is slower than any backoff was meant so: backoff begins with it.
            let gap = self.rate.map_or(Span::ZERO, |rate| rate.gap());
            self.backoff.max = usual.backoff.max.max(self.delay_span()).max(gap);
        }
        self.rate = self.rate.map(|rate| rate.spread(self.jitter.high - self.jitter.low));
    }
}
