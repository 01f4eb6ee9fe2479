//! An outage: for a while every request fails, whatever its pace. Source: a deployment, a gateway without its
//! backend.
//!
//! The trap for a client: it looks like a ban. A ban is the price of a pace, so one stays slower; an outage
//! is no news of the limit.

use super::{Reply, Server};
use crate::{
    rng::Rng,
    time::{Instant, Span},
};

/// A server that is down once.
pub struct Outage {
    inside: Box<dyn Server>,
    from: Instant,
    to: Instant,
}

impl Outage {
    /// From `at` on everything is a 503, for `length`.
    pub fn new(inside: Box<dyn Server>, at: Span, length: Span) -> Self {
        let from = Instant::default() + at;
        Self { inside, from, to: from + length }
    }
}

impl Server for Outage {
    fn arrive(&mut self, now: Instant, rng: &mut Rng) -> Reply {
        if (self.from..self.to).contains(&now) {
            // A gateway that is asked to say so gives half a minute at most.
            let wait = Some(self.to.since(now).min(Span::from_micros(30_000_000)));
            return Reply { status: 503, is_chance: true, wait, ..Reply::default() };
        }
        self.inside.arrive(now, rng)
    }

    fn limit(&self, now: Instant) -> f64 {
        if (self.from..self.to).contains(&now) { 0.0 } else { self.inside.limit(now) }
    }

    fn last_step(&self) -> Option<Instant> {
        Some(self.to)
    }
}
