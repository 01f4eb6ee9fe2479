//! Jitter: a random spread around a delay, so that requests do not arrive like clockwork.
//!
//! One draw belongs to one send and is kept until the next, so the mean is exactly the delay's. Drawing again
//! at each timer makes short gaps likelier (Scrapy's mean gap is 1.218 × the delay). Source: Scrapy
//! `RANDOMIZE_DOWNLOAD_DELAY`, and the draft's two-number form.

use crate::{rng::Draw, time::Span};

/// Chance adds no more than this to a wait.
const MOST: Span = Span::from_micros(5_000_000);

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

    /// `jitter: true`: half the delay to both sides, as in Scrapy.
    pub const WIDE: Self = Self::around(0.5);

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

/// How much later than the server asked the first request comes back after this `wait`: by chance, up to the
/// gap in force, or a hundredth of the wait if that is longer. Clients that were refused together would come
/// back together.
pub fn after(wait: Span, gap: Span, draw: Draw) -> Span {
    gap.max(wait.times(0.01)).min(MOST).times(draw.unit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn clients_come_back_spread_over_a_gap_or_a_hundredth_of_the_wait() {
        let ms = |ms| Span::from_millis(f64::from(ms));
        let mut rng = Rng::new(7);
        for (wait, gap, most) in [(5000, 1000, 1000), (5000, 0, 50), (1000, 20, 20), (3_600_000, 10, 5000)] {
            let draws: Vec<Span> = (0..200).map(|_| after(ms(wait), ms(gap), rng.draw())).collect();
            let (least, latest) = (draws.iter().min().unwrap(), draws.iter().max().unwrap());
            assert!(*latest <= ms(most) && *latest > ms(most).times(0.9) && *least < ms(most).times(0.1));
        }
    }

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
