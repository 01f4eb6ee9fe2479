//! A permit: the request may leave now.

use autothrottle::{Cost, Feedback, Hint, Hints, Span, Ticket, headers::Context};
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
        let feedback = feedback_of(answer.told(), self.sent_at);
        self.end(&feedback);
        let target = self.target.take();
        Charge { throttle: self.throttle.clone(), sent_at: self.sent_at, target }
    }

    fn end(&mut self, feedback: &Feedback) {
        if let Some(ticket) = self.ticket.take() {
            self.throttle.with(|engine, now| engine.settle(now, ticket, feedback));
        }
    }
}

/// It gives the slot back and teaches nothing.
impl Drop for Permit {
    fn drop(&mut self) {
        self.end(&Feedback::IGNORED);
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
        let actual = Cost::from_units(cost).ok_or(Error::NotANumber)?;
        let charged = self.target.cost_mut(scope).ok_or_else(|| Error::NoScope { scope: scope.into() })?;
        let before = Cost::from_units(core::mem::replace(charged, cost)).unwrap_or_default();
        let ago = Span::from_millis(self.sent_at.elapsed().as_secs_f64() * 1000.0);
        self.throttle
            .scoped(scope, |engine, now, scope| engine.adjust(now, scope, now - ago, before, actual));
        Ok(())
    }
}

fn feedback_of(told: Told<'_>, sent_at: Instant) -> Feedback {
    match told {
        Told::Nothing => Feedback::IGNORED,
        Told::Failed(failure) => {
            Feedback { answer: autothrottle::Answer::Failed(failure), ..Feedback::IGNORED }
        }
        Told::Response { status, headers } => {
            let latency_ms = Some(sent_at.elapsed().as_secs_f64() * 1000.0);
            let hint = headers.map(|headers| Hint::of(&hints_of(status, headers))).unwrap_or_default();
            Feedback { latency_ms, hint, ..Feedback::response(status) }
        }
    }
}

/// What the header fields of a response ask for.
pub(crate) fn hints_of(status: u16, headers: &http::HeaderMap) -> Hints {
    let wall_ms = wall_ms().map(|ms| ms as i64);
    let fields = headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
    Hints::read(fields, Context { status, wall_ms, ..Context::default() })
}
