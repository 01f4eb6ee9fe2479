//! What is behind the limit takes its time, and not always the same: served requests are answered later than
//! refused ones, and overtake each other. Source: any application behind nginx.
//!
//! The trap for a client: one that counts answers as they come counts requests that were sent at another
//! pace.

use super::{Reply, Server};
use crate::{
    rng::Rng,
    time::{Instant, Span},
};

/// A server whose good answers take longer.
pub struct Upstream {
    inside: Box<dyn Server>,
    time: Span,
    spread: f64,
}

impl Upstream {
    /// `time` more for each that is served, uniform within ±`spread` of it.
    pub fn new(inside: Box<dyn Server>, time: Span, spread: f64) -> Self {
        Self { inside, time, spread }
    }
}

impl Server for Upstream {
    fn arrive(&mut self, now: Instant, rng: &mut Rng) -> Reply {
        let mut reply = self.inside.arrive(now, rng);
        if reply.status < 400 {
            let factor = 1.0 + self.spread * (2.0 * rng.draw().unit() - 1.0);
            reply.service = reply.service + self.time.times(factor);
        }
        reply
    }

    fn limit(&self, now: Instant) -> f64 {
        self.inside.limit(now)
    }

    fn last_step(&self) -> Option<Instant> {
        self.inside.last_step()
    }
}
