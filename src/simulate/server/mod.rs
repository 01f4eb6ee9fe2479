//! Servers: what becomes of a request that arrives. `limits` has the kinds of limits, `around` what
//! changes any of them.

mod around;
mod limits;

pub use self::{
    around::{
        Adaptive, Allowance, Budgets, Change, Failing, Fields, Moving, Others, Outage, PenaltyBox, Refusal,
        Refusing, Replicas, Telling, Upstream,
    },
    limits::{Bucket, Concurrency, Counter, Fixed, Gcra, Nginx, Queue, Sliding},
};
use crate::{
    rng::Rng,
    time::{Instant, Span},
};

/// The answer to a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// Its status; 0 where it says none.
    pub status: u16,
    /// How long the server takes to say so.
    pub service: Span,
    /// When another would be served: what `Retry-After` may say.
    pub wait: Option<Span>,
    /// The rest of a quota.
    pub quota: Option<Left>,
    /// `name: value` lines.
    pub headers: String,
    /// It failed by chance, whatever the pace.
    pub is_chance: bool,
    /// The limit refused it, whatever the status says.
    pub is_refused: bool,
}

/// The numbers for `RateLimit` fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// Units per window, or the depth of a bucket.
    pub limit: u64,
    /// Units left.
    pub remaining: u64,
    /// When all of it is there again.
    pub reset: Span,
}

impl Reply {
    /// Served at once, or refused with 429.
    pub fn simple(is_served: bool) -> Self {
        if is_served { Self { status: 200, ..Self::default() } } else { Self::refused(429) }
    }

    /// Refused with this status.
    pub fn refused(status: u16) -> Self {
        Self { status, is_refused: true, ..Self::default() }
    }
}

/// A server and its limit.
pub trait Server {
    /// A request arrives. Never called with an earlier `now` than the last.
    fn arrive(&mut self, now: Instant, rng: &mut Rng) -> Reply;

    /// The place of the route of what arrives next, where routes have budgets of their own.
    fn choose(&mut self, _route: u32) {}

    /// The server that this one changes.
    fn inside(&self) -> Option<&dyn Server> {
        None
    }

    /// Requests per second that it bears.
    fn limit(&self, now: Instant) -> f64 {
        self.inside().map_or(f64::INFINITY, |inside| inside.limit(now))
    }

    /// When the limit last steps.
    fn last_step(&self) -> Option<Instant> {
        self.inside()?.last_step()
    }
}

/// The time in which `units` come back, at `rate` of them a second.
fn time_for(units: f64, rate: f64) -> Span {
    Span::from_micros((units.max(0.0) / rate * 1e6) as u64 + 1)
}

fn seconds(span: Span) -> f64 {
    span.micros() as f64 / 1e6
}
