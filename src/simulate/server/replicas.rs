//! Several servers behind a balancer, each with a limit of its own: a request goes to one of them by chance.
//! Source: nginx instances without a shared zone, Kong's `local` policy in a cluster.
//!
//! The trap for a client: a refusal by one says little, for the others still serve.

use super::{Reply, Server};
use crate::{rng::Rng, time::Instant};

/// Servers behind a balancer.
pub struct Replicas {
    inside: Vec<Box<dyn Server>>,
}

impl Replicas {
    /// These.
    pub fn new(inside: Vec<Box<dyn Server>>) -> Self {
        Self { inside }
    }
}

impl Server for Replicas {
    fn arrive(&mut self, now: Instant, rng: &mut Rng) -> Reply {
        let index = (rng.draw().unit() * self.inside.len() as f64) as usize;
        self.inside[index].arrive(now, rng)
    }

    fn limit(&self, now: Instant) -> f64 {
        self.inside.iter().map(|each| each.limit(now)).sum()
    }

    fn last_step(&self) -> Option<Instant> {
        self.inside.first()?.last_step()
    }
}
