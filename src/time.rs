//! Whole microseconds inside, milliseconds in plain numbers outside.
//!
//! A float that is rounded the wrong way sends a request early, or makes a driver spin on a wake-up that
//! never comes. The two directions are therefore exact inverses: `Instant::from_millis` gives the *largest*
//! instant whose millisecond value is not above the number given, and every span that we wait is rounded up.
//! The origin is the driver's own: it may be 0, it may be 1970 (Workers); no code here assumes either.

use core::{
    num::NonZeroU64,
    ops::{Add, Sub},
};

/// A year. No setting may ask for a longer span, so sums of a few can never overflow.
pub const LONGEST_MS: f64 = 31_536_000_000.0;

/// From here on (the year 2248, in Workers' clock) a double of milliseconds cannot tell microseconds apart.
const END_MS: f64 = 8_796_093_022_208.0;

/// The whole part of a number from 0 to 2⁶³. Processors and WebAssembly's compilers convert signed numbers in
/// one step, unsigned ones in ten.
pub(crate) fn whole(number: f64) -> u64 {
    number as i64 as u64
}

/// A whole number below 2⁶³ as the nearest double: see [`whole`].
pub(crate) fn double(whole: u64) -> f64 {
    whole as i64 as f64
}

/// A point in engine time: whole microseconds from the driver's own origin. (One more is kept, so that an
/// `Option` of it takes no more memory: each scope has several.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(NonZeroU64);

/// A span of engine time in whole microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(u64);

impl Instant {
    /// The instant that is `micros` microseconds after the origin.
    pub const fn from_micros(micros: u64) -> Self {
        Self(NonZeroU64::MIN.saturating_add(micros))
    }

    /// The largest instant that is not later than `ms`; `None` for what no clock says (NaN, below 0, 2⁴³ or
    /// more milliseconds).
    #[inline(always)]
    pub fn from_millis(ms: f64) -> Option<Self> {
        if !(0.0..END_MS).contains(&ms) {
            return None;
        }
        let micros = ms * 1000.0;
        let near = whole(micros);
        // The product is off by half a microsecond at most, so a second division is seldom needed.
        let floor = if double(near) / 1000.0 > ms {
            near - 1
        } else if micros - double(near) > 0.5 && double(near + 1) / 1000.0 <= ms {
            near + 1
        } else {
            near
        };
        Some(Self::from_micros(floor))
    }

    /// Microseconds since the origin.
    pub const fn micros(self) -> u64 {
        self.0.get() - 1
    }

    /// Milliseconds since the origin; `from_millis` turns the number back into this very instant.
    pub fn millis(self) -> f64 {
        self.micros() as f64 / 1000.0
    }

    /// The span since `earlier`; zero if that is in the future.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.get().saturating_sub(earlier.0.get()))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// The span of `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// The smallest span that is not shorter than `ms`. A number that is no span (NaN, below 0) is none; a
    /// year is the most.
    pub fn from_millis(ms: f64) -> Self {
        if ms == 0.0 {
            return Self::ZERO;
        }
        let ms = ms.clamp(0.0, LONGEST_MS);
        let near = whole(ms * 1000.0);
        Self(if double(near) / 1000.0 < ms { near + 1 } else { near })
    }

    /// Microseconds.
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// Milliseconds.
    pub fn millis(self) -> f64 {
        self.0 as f64 / 1000.0
    }

    /// This span times `factor`, rounded up.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self::from_millis(self.millis() * factor)
    }
}

impl Default for Instant {
    fn default() -> Self {
        Self::from_micros(0)
    }
}

impl Add<Span> for Instant {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Span {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Sub<Span> for Instant {
    type Output = Self;
    fn sub(self, span: Span) -> Self {
        Self::from_micros(self.micros().saturating_sub(span.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_survives_the_way_out_and_back() {
        for start in [0, 1, 1001, 1_795_203_840_000_000, END_MS as u64 * 1000 - 2000] {
            for micros in start..start + 1000 {
                let instant = Instant::from_micros(micros);
                assert_eq!(Instant::from_millis(instant.millis()), Some(instant));
            }
        }
    }

    #[test]
    fn now_is_the_largest_instant_that_is_not_later() {
        for start in [0, 999, 123_456_789, 1_795_203_840_000_000, END_MS as u64 * 1000 - 3000] {
            for micros in start..start + 2000 {
                let ms = Instant::from_micros(micros).millis();
                for ms in [ms.next_down(), ms, ms.next_up(), ms + 0.000_5, ms + 0.000_9].map(f64::abs) {
                    let Some(now) = Instant::from_millis(ms) else { continue };
                    let next = Instant::from_micros(now.micros() + 1);
                    assert!(now.millis() <= ms && ms < next.millis(), "{ms}: {now:?}");
                }
            }
        }
    }

    #[test]
    fn now_rounds_down_and_spans_round_up() {
        assert_eq!(Instant::from_millis(0.999_9), Some(Instant::from_micros(999)));
        for micros in 1..2000_u32 {
            let just_before = (f64::from(micros) / 1000.0).next_down();
            let earlier = Instant::from_micros(u64::from(micros) - 1);
            assert_eq!(Instant::from_millis(just_before), Some(earlier), "{just_before}");
        }
        assert_eq!(Span::from_millis(0.000_1), Span(1));
        assert_eq!(Span::from_millis(300.0), Span(300_000));
        assert_eq!(Span::from_millis(0.1), Span(100));
    }

    #[test]
    fn a_number_that_no_clock_says_is_no_instant() {
        for ms in [f64::NAN, -1.0, f64::INFINITY, 1e18] {
            assert_eq!(Instant::from_millis(ms), None, "{ms}");
        }
        assert_eq!(Span::from_millis(f64::NAN), Span::ZERO);
        assert_eq!(Span::from_millis(1e18), Span::from_millis(LONGEST_MS));
    }
}
