//! A limit that each refusal lowers, and that comes back slowly. Source: servers that score their clients.
//!
//! The trap for a client: a touch of the limit costs more than the refusal.

use super::{Change, Moving, Reply, Server, seconds};
use crate::{rng::Rng, time::Instant};

/// A server whose limit follows how it is used.
pub struct Adaptive {
    inside: Moving,
    /// What the limit is multiplied by.
    now: f64,
    at: Instant,
    factor: f64,
    recovery: f64,
}

impl Adaptive {
    /// Each refusal multiplies the limit by `factor`; a share of `recovery` of the whole comes back a second.
    pub fn new(inside: Box<dyn Server>, factor: f64, recovery: f64) -> Self {
        let whole = Change::Step { at: Instant::default(), factor: 1.0 };
        Self { inside: Moving::new(inside, whole), now: 1.0, at: Instant::default(), factor, recovery }
    }
}

impl Server for Adaptive {
    fn arrive(&mut self, now: Instant, rng: &mut Rng) -> Reply {
        self.inside.change = Change::Step { at: Instant::default(), factor: self.now };
        let reply = self.inside.arrive(now, rng);
        self.now = (self.now + seconds(now.since(self.at)) * self.recovery).min(1.0);
        self.at = now;
        if reply.is_refused {
            self.now = (self.now * self.factor).max(0.01);
        }
        reply
    }

    fn limit(&self, now: Instant) -> f64 {
        self.inside.inside.limit(now)
    }
}
