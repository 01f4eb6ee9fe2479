//! A token bucket: `rate` tokens a second, at most `depth` of them. Source: AWS API Gateway, Stripe's
//! limiter.

use super::{Left, Reply, Server, seconds, time_for};
use crate::{rng::Rng, time::Instant};

/// Its limit and where it stands.
#[derive(Clone, Debug)]
pub struct Bucket {
    rate: f64,
    depth: f64,
    tokens: f64,
    at: Instant,
}

impl Bucket {
    /// `rate` tokens a second, full with `depth` of them.
    pub fn new(rate: f64, depth: f64) -> Self {
        Self { rate, depth, tokens: depth, at: Instant::default() }
    }
}

impl Server for Bucket {
    fn arrive(&mut self, now: Instant, _: &mut Rng) -> Reply {
        self.tokens = (self.tokens + seconds(now.since(self.at)) * self.rate).min(self.depth);
        self.at = now;
        // A microsecond's worth is the rounding of time, not a limit.
        let is_served = self.tokens >= 1.0 - self.rate * 1e-6;
        if is_served {
            self.tokens -= 1.0;
        }
        let wait = time_for(1.0 - self.tokens, self.rate);
        Reply {
            wait: (self.tokens < 1.0).then_some(wait),
            quota: Some(Left {
                limit: self.depth as u64,
                remaining: self.tokens.max(0.0) as u64,
                reset: time_for(self.depth - self.tokens, self.rate),
            }),
            ..Reply::simple(is_served)
        }
    }

    fn limit(&self, _: Instant) -> f64 {
        self.rate
    }
}
