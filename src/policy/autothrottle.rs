//! `AutoThrottle`: a server that needs `latency` to answer should get a request every `latency / N`, so that
//! N requests are in its hands on average.
//!
//! ```text
//! 1. target = latency / N                    4. new = min(max(min_delay, new), max_delay)
//! 2. new = (old + target) / 2                5. if status ≠ 200 and new ≤ old: keep old
//! 3. new = max(target, new)                     else: take new
//! ```
//!
//! Bit for bit Scrapy's (`scrapy/extensions/throttle.py`, `_adjust_delay`): in `f64` seconds and in this
//! order, because another order of the same sums differs in the last bit. Rule 3 is in the code and not on
//! the manual's page; in rule 4 the maximum wins over a larger minimum. Errors often come back faster than
//! pages: rule 5 is why they never make us faster.

use super::{Ended, Numbers, Policy};
use crate::time::{Instant, LONGEST_MS, Span};

/// One scope's `AutoThrottle` settings. Seconds, as in Scrapy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// The delay before anything is known; `AUTOTHROTTLE_START_DELAY`.
    pub start: f64,
    /// The least delay: the scope's own; `DOWNLOAD_DELAY`.
    pub min: f64,
    /// The greatest delay; `AUTOTHROTTLE_MAX_DELAY`.
    pub max: f64,
    /// How many requests the server should have in its hands; `AUTOTHROTTLE_TARGET_CONCURRENCY`.
    pub target_concurrency: f64,
}

/// The delay in force, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    /// Seconds.
    pub delay: f64,
}

impl State {
    /// Before the first response.
    pub fn new(config: &Config) -> Self {
        Self { delay: larger(config.min, config.start) }
    }

    /// A response with `status` arrived `latency` seconds after its request was sent.
    #[must_use]
    pub fn on_response(self, config: &Config, latency: f64, status: u16) -> Self {
        let old = self.delay;
        let target = latency / config.target_concurrency; // 1
        let mut new = (old + target) / 2.0; // 2
        new = larger(target, new); // 3
        new = smaller(larger(config.min, new), config.max); // 4
        if status != 200 && new <= old { self } else { Self { delay: new } } // 5
    }
}

impl Policy for State {
    type Config = Config;
    const LEARNS: bool = true;
    const KEYS: &'static [(&'static str, f64)] = &[("delaySeconds", LONGEST_MS / 1000.0)];

    fn fresh(config: &Config) -> Self {
        Self::new(config)
    }

    /// Takes effect at once: the same latency, divided by another target, in new bounds. Without a latency so
    /// far, the start delay is the new one.
    fn on_configure(self, old: &Config, new: &Config, _: Option<Instant>) -> Self {
        if self == Self::new(old) {
            return Self::new(new);
        }
        let delay = self.delay * (old.target_concurrency / new.target_concurrency);
        Self { delay: smaller(larger(new.min, delay), new.max) }
    }

    fn on_end(self, config: &Config, ended: &Ended) -> Self {
        ended.sample.map_or(self, |(latency, status)| self.on_response(config, latency, status))
    }

    fn delay_ms(&self) -> Option<f64> {
        Some(self.delay * 1000.0)
    }

    fn remember(&self, config: &Config, _: Instant) -> Numbers {
        [(!self.is_fresh(config)).then_some(self.delay), None, None]
    }

    fn recall(self, _: &Config, _: Instant, _: Span, [seconds, ..]: Numbers) -> Self {
        Self { delay: seconds.unwrap_or(self.delay) }
    }
}

fn larger(a: f64, b: f64) -> f64 {
    if b > a { b } else { a }
}

fn smaller(a: f64, b: f64) -> f64 {
    if b < a { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: Config = Config { start: 5.0, min: 0.0, max: 60.0, target_concurrency: 1.0 };

    #[test]
    fn it_halves_the_way_to_a_lower_target_and_jumps_to_a_higher_one() {
        let delays: Vec<f64> = [1.0, 1.0, 8.0]
            .iter()
            .scan(State::new(&CONFIG), |state, &latency| {
                *state = state.on_response(&CONFIG, latency, 200);
                Some(state.delay)
            })
            .collect();
        assert_eq!(delays, [3.0, 2.0, 8.0]);
    }

    #[test]
    fn only_exactly_200_lowers_the_delay() {
        let start = State::new(&CONFIG);
        for status in [201, 204, 304, 404, 429, 500] {
            assert_eq!(start.on_response(&CONFIG, 0.1, status), start);
            assert_eq!(start.on_response(&CONFIG, 9.0, status).delay, 9.0);
        }
    }
}
