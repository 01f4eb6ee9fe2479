//! Delay: the least time between two sends of a scope, from send to send.
//!
//! The state is the last send and its draw. The next instant is worked out from the delay in force. A delay
//! that changes meanwhile (`AutoThrottle`, a new setting) therefore takes effect at once. Source:
//! `DOWNLOAD_DELAY`.

use super::jitter;
use crate::{
    rng::Draw,
    time::{Instant, Span},
};

/// When the scope last sent, and that send's draw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    last: Option<Instant>,
    draw: Draw,
}

impl State {
    /// No send yet.
    pub const NEW: Self = Self { last: None, draw: Draw::MIDDLE };

    /// A request left.
    #[must_use]
    pub fn on_send(self, now: Instant, draw: Draw) -> Self {
        Self { last: Some(now), draw }
    }

    /// The last send left only now.
    #[must_use]
    pub fn sent_at(self, now: Instant) -> Self {
        Self { last: self.last.map(|last| last.max(now)), ..self }
    }

    /// The last send was so long ago.
    pub fn since(now: Instant, ago: Option<Span>) -> Self {
        Self { last: ago.map(|ago| now - ago), draw: Draw::MIDDLE }
    }

    /// The last send, if there was one.
    pub fn last(self) -> Option<Instant> {
        self.last
    }

    /// The first instant at which `delay` allows a send; `None` before the first send.
    #[inline]
    pub fn next(self, delay: Span, jitter: jitter::Config) -> Option<Instant> {
        self.last.map(|last| last + jitter.spread(delay, self.draw))
    }
}
