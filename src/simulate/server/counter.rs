//! A sliding counter: the window before counts by how much of it is still in sight. Source: Cloudflare's
//! *How we built rate limiting*, Kong's `sliding` window type.

use super::{Left, Reply, Server, seconds};
use crate::{
    rng::Rng,
    time::{Instant, Span},
};

/// Its limit and where it stands.
#[derive(Clone, Debug)]
pub struct Counter {
    limit: u32,
    window: Span,
    index: u64,
    before: u32,
    used: u32,
}

impl Counter {
    /// About `limit` per `window`.
    pub fn new(limit: u32, window: Span) -> Self {
        Self { limit, window, index: 0, before: 0, used: 0 }
    }
}

impl Server for Counter {
    fn arrive(&mut self, now: Instant, _: &mut Rng) -> Reply {
        let window = self.window.micros();
        let index = now.micros() / window;
        if index != self.index {
            self.before = if index == self.index + 1 { self.used } else { 0 };
            (self.index, self.used) = (index, 0);
        }
        let left = Span::from_micros(window - now.micros() % window);
        let seen = f64::from(self.before) * left.micros() as f64 / window as f64 + f64::from(self.used);
        let is_served = seen + 1.0 <= f64::from(self.limit);
        self.used += u32::from(is_served);
        let remaining = (f64::from(self.limit) - seen - f64::from(u8::from(is_served))).max(0.0);
        Reply {
            wait: (remaining < 1.0).then_some(left),
            quota: Some(Left { limit: u64::from(self.limit), remaining: remaining as u64, reset: left }),
            ..Reply::simple(is_served)
        }
    }

    fn limit(&self, _: Instant) -> f64 {
        f64::from(self.limit) / seconds(self.window)
    }
}
