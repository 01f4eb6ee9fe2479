//! Jitter: a random spread around a delay, so that requests do not arrive like clockwork.
//!
//! One draw belongs to one send and is kept until the next, so the mean is exactly the delay's. Drawing again
//! at each timer makes short gaps likelier (Scrapy's mean gap is 1.218 × the delay). Source: Scrapy
//! `RANDOMIZE_DOWNLOAD_DELAY`, and the draft's two-number form.

use crate::{rng::Draw, time::Span};

/// How far a delay may stray, as two factors added to 1: `low` ≥ −1, `high` ≥ `low`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Added to 1 for the shortest delay: −0.5 halves it.
    pub low: f64,
    /// Added to 1 for the longest delay.
    pub high: f64,
}

impl Config {
    /// No spread at all.
    pub const NONE: Self = Self { low: 0.0, high: 0.0 };

    /// The same spread to both sides.
    pub const fn around(spread: f64) -> Self {
        Self { low: -spread, high: spread }
    }

    /// `delay` with this draw's deviation.
    pub fn spread(self, delay: Span, draw: Draw) -> Span {
        if self == Self::NONE {
            return delay;
        }
        delay.times(1.0 + self.low + (self.high - self.low) * draw.unit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn the_mean_is_the_middle_of_the_range_and_no_draw_leaves_it() {
        let delay = Span::from_millis(1000.0);
        for (low, high) in [(-0.5, 0.5), (-0.1, 0.3), (0.0, 1.0), (-1.0, -0.5)] {
            let config = Config { low, high };
            let mut rng = Rng::new(7);
            let mut sum = 0.0;
            for _ in 0..100_000 {
                let ms = config.spread(delay, rng.draw()).millis();
                assert!(ms >= 1000.0 * (1.0 + low) && ms <= 1000.0 * (1.0 + high) + 0.001);
                sum += ms / 100_000.0;
            }
            let mean = 1000.0 * (1.0 + f64::midpoint(low, high));
            assert!((sum - mean).abs() < 4.0, "{low}..{high}: mean {sum}, want {mean}");
        }
    }
}
