//! A permit: the request may leave now.

use autothrottle::{Feedback, Hint, Hints, Ticket, headers::Context};
use tokio::time::Instant;

use crate::{
    Answer, Told,
    throttle::{Throttle, wall_ms},
};

/// The request may leave now. It holds its slots until it is settled or dropped.
#[derive(Debug)]
#[must_use = "a permit that is dropped gives its slot back at once"]
pub struct Permit {
    throttle: Throttle,
    ticket: Option<Ticket>,
    sent_at: Instant,
}

impl Permit {
    pub(crate) fn new(throttle: Throttle, ticket: Ticket, sent_at: Instant) -> Self {
        Self { throttle, ticket: Some(ticket), sent_at }
    }

    /// When the request was allowed to leave.
    pub fn sent_at(&self) -> Instant {
        self.sent_at
    }

    /// Tells the throttle how the request ended: a response, an error, or [`Told`].
    pub fn settle(mut self, answer: &impl Answer) {
        let feedback = feedback_of(answer.told(), self.sent_at);
        self.end(&feedback);
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
