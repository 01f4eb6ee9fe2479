//! What the server said of its own quota: at most so much until then.
//!
//! Rules (draft-ietf-httpapi-ratelimit-headers, `r` and `t`; `X-RateLimit-Remaining` and `-Reset` mean the
//! same):
//! 1. with `r` units left for the next `t`, no more than `r` units are sent within them;
//! 2. what is in flight may not be in `r` yet: it is taken off;
//! 3. the answer to the request that was sent last is believed; older ones that come late are not;
//! 4. at zero it is a hold until the reset, on whatever status it came;
//! 5. `t` is in whole seconds, which says little about a window of one. When more is left than before, a
//!    window has opened, at the latest now: with a length of `w` it turns over at the latest `w` later;
//! 6. whoever calls cuts `t` to the longest wait that is allowed: one wrong header must not silence a host
//!    for a year.
//!
//! The trap is to divide: `r / t` as a rate is eight times too fast for a client that was told the rest of a
//! day's quota a minute before midnight. Pacing by it is another matter, for those who ask
//! (`followRateLimit`), and then by the slower of r/t and q/w.

use super::quota::Cost;
use crate::time::{Instant, Span};

/// What a response said.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QuotaReport {
    /// Units left, and for how long.
    pub left: Option<(Cost, Span)>,
    /// The length of the window, if it was told.
    pub window: Option<Span>,
    /// The delay that spreads what is left evenly.
    pub pace: Option<Span>,
}

/// What is believed now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    /// Units left.
    pub left: Cost,
    /// Units left as they were last told.
    pub told: Cost,
    /// Until when.
    pub until: Option<Instant>,
    /// When a window was first seen to have opened: at the latest then.
    pub opened: Option<Instant>,
    /// The delay that spreads them; none if nobody said.
    pub pace: Span,
    /// When the request was sent whose answer said so.
    pub sent: Instant,
}

impl State {
    /// Nothing was said.
    pub const NEW: Self = Self {
        left: Cost::ZERO,
        told: Cost::ZERO,
        until: None,
        opened: None,
        pace: Span::ZERO,
        sent: Instant::from_micros(0),
    };

    /// The answer to a request that was sent at `sent` said something; `flying` more are on their way.
    #[must_use]
    pub fn on_told(self, now: Instant, sent: Instant, told: QuotaReport, flying: u32) -> Self {
        if sent < self.sent {
            return self; // 3
        }
        let pace = told.pace.unwrap_or(self.pace);
        let Some((left, span)) = told.left else { return Self { pace, sent, ..self } };
        let is_fresh = self.is_over(now) || left > self.told;
        let opened = if is_fresh { Some(now) } else { self.opened };
        let turns =
            opened.zip(told.window).map(|(opened, window)| opened + window).filter(|&turns| turns > now); // 5
        let until = turns.map_or(now + span, |turns| turns.min(now + span));
        Self { left: left.less(flying), told: left, until: Some(until), opened, pace, sent } // 1, 2
    }

    /// A request of this cost left.
    #[must_use]
    pub fn on_send(self, cost: Cost) -> Self {
        Self { left: self.left.minus_at_most(cost), ..self }
    }

    /// The first instant at which `cost` fits; `None` for at once.
    pub fn next(self, now: Instant, cost: Cost) -> Option<Instant> {
        self.until.filter(|&until| until > now && cost > self.left)
    }

    /// What is left, while that is known.
    pub fn left(self, now: Instant) -> Option<Cost> {
        self.until.filter(|&until| until > now).map(|_| self.left)
    }

    /// Whether it no longer holds anybody back.
    pub fn is_over(self, now: Instant) -> bool {
        self.left(now).is_none()
    }
}
