//! What a server says about its limit: no word, `Retry-After` on refusals (whole seconds, rounded up: RFC
//! 9110 §10.2.3), or `RateLimit-*` on every answer as well (draft-ietf-httpapi-ratelimit-headers-06, which
//! most servers speak).

use std::fmt::Write;

use super::{Reply, Server};
use crate::{
    rng::Rng,
    time::{Instant, Span},
};

/// Which header fields a server writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fields {
    /// None.
    Silent,
    /// `Retry-After` on refusals.
    RetryAfter,
    /// `RateLimit-Limit`, `-Remaining` and `-Reset` on every answer, `Retry-After` on refusals.
    RateLimit,
}

/// A server that speaks.
pub struct Telling {
    inside: Box<dyn Server>,
    fields: Fields,
    says: Option<Span>,
}

impl Telling {
    /// Lets `inside` write these fields; `says` is a `Retry-After` that it gives whatever the truth.
    pub fn new(inside: Box<dyn Server>, fields: Fields, says: Option<Span>) -> Self {
        Self { inside, fields, says }
    }
}

impl Server for Telling {
    fn arrive(&mut self, now: Instant, rng: &mut Rng) -> Reply {
        let mut reply = self.inside.arrive(now, rng);
        if self.fields == Fields::RateLimit
            && let Some(left) = reply.quota
        {
            let (limit, remaining, reset) = (left.limit, left.remaining, whole(left.reset));
            let lines = &mut reply.headers;
            let _ = write!(
                lines,
                "ratelimit-limit: {limit}\nratelimit-remaining: {remaining}\nratelimit-reset: {reset}\n"
            );
        }
        if self.fields != Fields::Silent
            && reply.status >= 400
            && let Some(wait) = self.says.or(reply.wait)
        {
            let _ = writeln!(reply.headers, "retry-after: {}", whole(wait));
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

fn whole(span: Span) -> u64 {
    span.micros().div_ceil(1_000_000)
}
