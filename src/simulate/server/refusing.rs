//! How a server says no: with a status of its own, by silence, by a connection that it closes. Source: nginx
//! (503), gateways (502), firewalls of Cloudflare and Akamai (403), nginx's `return 444`.
//!
//! The trap for a client: one that takes only 429 for a refusal floods the others.

use super::{Reply, Server};
use crate::{
    rng::Rng,
    time::{Instant, Span},
};

/// Longer than any client waits.
const FOR_EVER: Span = Span::from_micros(365 * 86_400_000_000);

/// What a refusal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A response.
    Status(u16),
    /// No answer ever.
    Silence,
    /// The connection is closed.
    Reset,
}

/// A server that refuses so.
pub struct Refusing {
    inside: Box<dyn Server>,
    refusal: Refusal,
}

impl Refusing {
    /// What `inside` refuses is refused so.
    pub fn new(inside: Box<dyn Server>, refusal: Refusal) -> Self {
        Self { inside, refusal }
    }
}

impl Server for Refusing {
    fn arrive(&mut self, now: Instant, rng: &mut Rng) -> Reply {
        let reply = self.inside.arrive(now, rng);
        if !reply.is_refused {
            return reply;
        }
        match self.refusal {
            Refusal::Status(status) => Reply { status, ..reply },
            Refusal::Silence => Reply { service: FOR_EVER, ..Reply::refused(0) },
            Refusal::Reset => Reply::refused(0),
        }
    }

    fn limit(&self, now: Instant) -> f64 {
        self.inside.limit(now)
    }

    fn last_step(&self) -> Option<Instant> {
        self.inside.last_step()
    }
}
