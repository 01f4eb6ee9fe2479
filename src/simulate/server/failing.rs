//! Some requests fail whatever their pace, and faster than others succeed: a deployment, a broken backend
//! behind a balancer.
//!
//! The trap for a client: failures are fast, so a controller that looks at latency speeds up (Scrapy's
//! `AutoThrottle` never lets them lower the delay).

use super::{Reply, Server};
use crate::{rng::Rng, time::Instant};

/// A server of which a share of requests fails.
pub struct Failing {
    inside: Box<dyn Server>,
    share: f64,
    status: u16,
}

impl Failing {
    /// A `share` of requests ends with `status` at once.
    pub fn new(inside: Box<dyn Server>, share: f64, status: u16) -> Self {
        Self { inside, share, status }
    }
}

impl Server for Failing {
    fn arrive(&mut self, now: Instant, rng: &mut Rng) -> Reply {
        if rng.draw().unit() < self.share {
            return Reply { status: self.status, is_chance: true, ..Reply::default() };
        }
        self.inside.arrive(now, rng)
    }

    fn limit(&self, now: Instant) -> f64 {
        self.inside.limit(now) // what fails never gets there
    }

    fn last_step(&self) -> Option<Instant> {
        self.inside.last_step()
    }
}
