//! A refusal of one flight: its facts, from the first bad answer until a request is served again.

use crate::{
    policy::Ended,
    time::{Instant, Span},
};

/// A refusal that is not judged yet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Event {
    /// When it began; later by the time in which no request wanted to leave.
    pub at: Instant,
    /// An answer came, or the server asked for no request, as late as this.
    pub busy: Instant,
    /// The gap that was refused, in microseconds.
    pub fast: f64,
    /// Served since the one before, and in what time.
    pub served: f64,
    pub active: f64,
    /// How much of the blackout may be our own hold.
    pub unsure: f64,
    pub is_merely_bad: bool,
    pub is_denied: bool,
    /// All that was bad failed, also where it said until when: no word of the pace.
    pub is_failure: bool,
    /// At a rate below the estimate.
    pub is_below: bool,
    /// It ended Start and said when to come again: so far in the doubling.
    pub step: Option<f64>,
    /// Refused again since: single probes.
    pub is_blackout: bool,
    /// Refused when it was time again, as the server had said.
    pub refused_again: u32,
}

/// The server wants no request until then, with what we add to it.
pub(super) fn busy_until(ended: &Ended) -> Instant {
    ended.now + ended.asked.unwrap_or(Span::ZERO) + ended.unsure
}
