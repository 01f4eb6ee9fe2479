//! The seeded generator behind jitter: `SplitMix64` (Steele, Lea, Flood 2014), one word of state.
//!
//! A run with hidden chance cannot be replayed. The seed is an input; the driver draws one from the system
//! where the options have none, on first use.

/// A generator of uniform draws.
#[derive(Clone, Debug)]
pub struct Rng(u64);

/// One uniform draw from [0, 1), kept in 32 bits because every scope remembers its last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw(u32);

impl Rng {
    /// The generator that always gives the same draws for `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next draw.
    #[inline(always)]
    pub fn draw(&mut self) -> Draw {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Draw(((z ^ (z >> 31)) >> 32) as u32)
    }
}

impl Draw {
    /// The draw in the middle: no deviation from a symmetric jitter's delay.
    pub const MIDDLE: Self = Self(1 << 31);

    /// The draw as a number in [0, 1).
    pub fn unit(self) -> f64 {
        f64::from(self.0) / 4_294_967_296.0
    }
}
