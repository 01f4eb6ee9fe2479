//! A permit: the request may leave now.

use autothrottle::{Cost, Hints, Span, Ticket, headers::Context};
use tokio::time::Instant;

use crate::{
    Answer, Error, Target, Told,
    throttle::{Throttle, wall_ms},
};

/// The request may leave now. It holds its slots until it is settled or dropped.
#[derive(Debug)]
#[must_use = "a permit that is dropped gives its slot back at once"]
pub struct Permit {
    throttle: Throttle,
    ticket: Option<Ticket>,
    sent_at: Instant,
    target: Target,
}

/// What was taken for a request that was settled, in each of its scopes. Keep it where the true cost is known
/// later: tokens, of which the last part of an answer tells.
#[derive(Debug)]
pub struct Charge {
    throttle: Throttle,
    sent_at: Instant,
    target: Target,
}

impl Permit {
    pub(crate) fn new(throttle: Throttle, ticket: Ticket, sent_at: Instant, target: Target) -> Self {
        Self { throttle, ticket: Some(ticket), sent_at, target }
    }

    /// When the request was allowed to leave.
    pub fn sent_at(&self) -> Instant {
        self.sent_at
    }

    /// Tells the throttle how the request ended: a response, an error, or [`Told`]. What it gives corrects the
    /// cost.
    pub fn settle(mut self, answer: &impl Answer) -> Charge {
        self.end(answer.told());
        let target = self.target.take();
        Charge { throttle: self.throttle.clone(), sent_at: self.sent_at, target }
    }

    fn end(&mut self, told: Told<'_>) {
        if let Some(ticket) = self.ticket.take() {
            let latency_ms = self.sent_at.elapsed().as_secs_f64() * 1000.0;
            self.throttle.with(|host, now| host.settle(now, ticket, told, latency_ms));
        }
    }
}

/// It gives the slot back and changes no pace.
impl Drop for Permit {
    fn drop(&mut self) {
        self.end(Told::Nothing);
    }
}

impl Charge {
    /// Corrects what the request costs in a scope, as often as more is known. What is more than was taken is
    /// owed by those that come; what is less comes back.
    ///
    /// # Errors
    ///
    /// [`Error::NotANumber`] for what is no cost, [`Error::NoScope`] for a scope that is not the request's.
    pub fn adjust(&mut self, scope: &str, cost: f64) -> Result<(), Error> {
        Cost::from_units(cost).ok_or(Error::NotANumber)?;
        let charged = self.target.cost_mut(scope).ok_or_else(|| Error::NoScope { scope: scope.into() })?;
        let before = core::mem::replace(charged, cost);
        let ago = Span::from_millis(self.sent_at.elapsed().as_secs_f64() * 1000.0);
        self.throttle.with(|host, now| host.adjust(now, scope, ago, before, cost));
        Ok(())
    }
}

/// What the header fields of a response ask for.
pub(crate) fn hints_of(status: u16, headers: &http::HeaderMap) -> Hints {
    let wall_ms = wall_ms().map(|ms| ms as i64);
    let fields = headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
    Hints::read(fields, Context { status, wall_ms, ..Context::default() })
}
