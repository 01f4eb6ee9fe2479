//! A fixed window: a number of requests in each window of a grid. Source: Kong's `rate-limiting` (local
//! policy), Cloudflare's rules.

use super::{Left, Reply, Server, seconds};
use crate::{
    rng::Rng,
    time::{Instant, Span},
};

/// Its limit and where it stands.
#[derive(Clone, Debug)]
pub struct Fixed {
    limit: u32,
    window: Span,
    index: u64,
    used: u32,
}

impl Fixed {
    /// `limit` per `window`, on a grid from the start.
    pub fn new(limit: u32, window: Span) -> Self {
        Self { limit, window, index: 0, used: 0 }
    }

    /// Whether the window is used up.
    pub(super) fn is_used_up(&self, now: Instant) -> bool {
        now.micros() / self.window.micros() == self.index && self.used >= self.limit
    }
}

impl Server for Fixed {
    fn arrive(&mut self, now: Instant, _: &mut Rng) -> Reply {
        let index = now.micros() / self.window.micros();
        if index != self.index {
            (self.index, self.used) = (index, 0);
        }
        let is_served = self.used < self.limit;
        self.used += u32::from(is_served);
        let reset = Span::from_micros(self.window.micros() - now.micros() % self.window.micros());
        Reply {
            wait: (self.used >= self.limit).then_some(reset),
            quota: Some(Left {
                limit: u64::from(self.limit),
                remaining: u64::from(self.limit - self.used),
                reset,
            }),
            ..Reply::simple(is_served)
        }
    }

    fn limit(&self, _: Instant) -> f64 {
        f64::from(self.limit) / seconds(self.window)
    }
}
