//! A second limit over a longer time: a number of requests a day, whatever the pace. Source: the daily and
//! monthly quotas of most paid APIs, beside their limits a second.

use super::{Fixed, Reply, Server};
use crate::{
    rng::Rng,
    time::{Instant, Span},
};

/// A server with a quota.
pub struct Allowance {
    inside: Box<dyn Server>,
    quota: Fixed,
}

impl Allowance {
    /// At most `limit` of those that `inside` would serve per `window`.
    pub fn new(inside: Box<dyn Server>, limit: u32, window: Span) -> Self {
        Self { inside, quota: Fixed::new(limit, window) }
    }
}

impl Server for Allowance {
    fn arrive(&mut self, now: Instant, rng: &mut Rng) -> Reply {
        if self.quota.is_used_up(now) {
            return self.quota.arrive(now, rng);
        }
        let reply = self.inside.arrive(now, rng);
        if reply.status < 400 {
            self.quota.arrive(now, rng);
        }
        reply
    }

    fn limit(&self, now: Instant) -> f64 {
        self.inside.limit(now).min(self.quota.limit(now))
    }

    fn last_step(&self) -> Option<Instant> {
        self.inside.last_step()
    }
}
