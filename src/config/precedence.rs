//! Which settings of the pace win, where several were typed.
//!
//! A setting may be typed in three places: at the top or in `defaults`, in `scopes`, in `configure`. Key by
//! key the nearest place wins, with two rules across keys:
//!
//! 1. A `rate` sets aside `delay`, `slotDelay`, `jitter` and `concurrency` of farther places.
//! 2. A `delay` or a `slotDelay` sets aside the `rate` of farther places.
//!
//! Both in one place are an error. A setting that was not typed gets its default in [`ScopeConfig::resolve`].
//! The cases are in `tests/native/config.rs`.
//!
//! [`ScopeConfig::resolve`]: super::ScopeConfig::resolve

use super::reader::Fields;
use crate::value::text;
use std::ops::BitOr;

/// Settings of the pace: those that were typed, or those in question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Typed(u8);

/// In the order of the bits.
const KEYS: [&str; 7] = ["delay", "slotDelay", "rate", "concurrency", "jitter", "quota", "rampup"];

const _: () = assert!(1_u32 << KEYS.len() <= Typed::MAX_DELAY.0 as u32, "a bit of its own for each key");

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
    /// `quota`.
    const QUOTA: Self = Self(1 << 5);
    /// Those that bound the pace.
    pub(super) const PACE: Self =
        Self(Self::DELAY.0 | Self::SLOT_DELAY.0 | Self::RATE.0 | Self::CONCURRENCY.0 | Self::QUOTA.0);
    /// `backoff.maxDelay`, which stands in an object of its own.
    pub(super) const MAX_DELAY: Self = Self(1 << 7);

    /// The pace in one place.
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

    /// The setting of this name; empty if the name is no setting of the pace.
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

    /// The pace that holds after a nearer place said `near`.
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
