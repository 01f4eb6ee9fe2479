//! A penalty box: who is refused is out for a while, and each request in that while makes it longer. Source:
//! fail2ban, Cloudflare's `mitigation_timeout`, `blockDuration` of rate-limiter-flexible.

use super::{Reply, Server};
use crate::{
    rng::Rng,
    time::{Instant, Span},
};

/// A limit with a ban.
pub struct PenaltyBox {
    inside: Box<dyn Server>,
    ban: Span,
    until: Option<Instant>,
    /// What it says.
    status: u16,
}

impl PenaltyBox {
    /// Refusals of `inside` are bans.
    pub fn new(inside: Box<dyn Server>, ban: Span) -> Self {
        Self { inside, ban, until: None, status: 429 }
    }
}

impl Server for PenaltyBox {
    fn arrive(&mut self, now: Instant, rng: &mut Rng) -> Reply {
        let is_banned = self.until.is_some_and(|until| now < until);
        let reply = if is_banned { Reply::refused(self.status) } else { self.inside.arrive(now, rng) };
        if !reply.is_refused {
            return reply;
        }
        self.status = reply.status;
        self.until = Some(now + self.ban);
        Reply { wait: Some(self.ban), ..reply }
    }

    fn limit(&self, now: Instant) -> f64 {
        self.inside.limit(now)
    }

    fn last_step(&self) -> Option<Instant> {
        self.inside.last_step()
    }
}
