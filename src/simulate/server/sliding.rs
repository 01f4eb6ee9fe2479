//! A sliding log: never more than the limit in any window. Source: Redis sorted-set limiters, GitHub's
//! secondary limits.

use std::collections::VecDeque;

use super::{Left, Reply, Server, seconds};
use crate::{
    rng::Rng,
    time::{Instant, Span},
};

/// Its limit and what it remembers.
#[derive(Clone, Debug)]
pub struct Sliding {
    limit: u32,
    window: Span,
    served: VecDeque<Instant>,
}

impl Sliding {
    /// `limit` in any `window`.
    pub fn new(limit: u32, window: Span) -> Self {
        Self { limit, window, served: VecDeque::new() }
    }
}

impl Server for Sliding {
    fn arrive(&mut self, now: Instant, _: &mut Rng) -> Reply {
        while self.served.front().is_some_and(|&at| now.since(at) >= self.window) {
            self.served.pop_front();
        }
        let is_served = self.served.len() < self.limit as usize;
        if is_served {
            self.served.push_back(now);
        }
        let left = u64::from(self.limit) - self.served.len() as u64;
        let reset = self.served.front().map_or(Span::ZERO, |&at| self.window - now.since(at));
        Reply {
            wait: (left == 0).then_some(reset),
            quota: Some(Left { limit: u64::from(self.limit), remaining: left, reset }),
            ..Reply::simple(is_served)
        }
    }

    fn limit(&self, _: Instant) -> f64 {
        f64::from(self.limit) / seconds(self.window)
    }
}
