//! Stall: a server has given only bad answers for long, and people should know.
//!
//! Rules:
//! 1. a run of bad answers begins with the first one and ends with a good one;
//! 2. it also ends with a silence of [`Config::silence`]: a server cannot refuse what no request asks for;
//! 3. it has stalled when it has lasted [`Config::after`] and has at least `RUN` answers. The notice comes
//!    once a run.
//!
//! To a host that refuses everything requests become ever rarer: at the longest delay of its backoff that is
//! no silence. The silence of rule 2 is therefore twice that delay (jitter, and the time to answer). It is no
//! shorter than `after`, for programs that ask a host by themselves every ten minutes.

use crate::time::{Instant, Span};

/// Two bad answers are no run, however far apart they are.
const RUN: u8 = 3;

/// The settings of a stall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How long a run must last; `stallAfter`.
    pub after: Span,
    /// A run is over after so long without an answer.
    pub silence: Span,
}

impl Config {
    /// For a scope whose backoff waits at most `max_delay`.
    pub fn new(after: Span, max_delay: Span) -> Self {
        Self { after, silence: after.max(max_delay + max_delay) }
    }
}

/// The run of bad answers that goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The first and the last answer of the run.
    run: Option<(Instant, Instant)>,
    /// Answers in it, as far as that matters.
    bad: u8,
    is_reported: bool,
}

impl State {
    /// No run.
    pub const NEW: Self = Self { run: None, bad: 0, is_reported: false };

    /// Whether the run that goes on has been told.
    pub fn has_stalled(&self, config: &Config, now: Instant) -> bool {
        self.is_reported && self.run.is_some_and(|(_, last)| now.since(last) < config.silence)
    }

    /// How long the run has lasted.
    pub fn span(&self) -> Span {
        self.run.map_or(Span::ZERO, |(since, last)| last.since(since))
    }

    /// The server asked to be left alone until then: that is no silence.
    #[must_use]
    pub fn on_hold(self, until: Instant) -> Self {
        Self { run: self.run.map(|(since, last)| (since, last.max(until))), ..self }
    }

    /// A bad answer came. With it, how long the run has lasted, if that is now to be told.
    #[must_use]
    pub fn on_bad(self, config: &Config, now: Instant) -> (Self, Option<Span>) {
        let state = match self.run {
            Some((since, last)) if now.since(last) < config.silence => {
                Self { run: Some((since, now)), bad: self.bad.saturating_add(1), ..self }
            }
            _ => Self { run: Some((now, now)), bad: 1, is_reported: false }, // 2
        };
        let span = state.run.map_or(Span::ZERO, |(since, _)| now.since(since));
        let is_stall = state.bad >= RUN && span >= config.after && !state.is_reported; // 3
        (Self { is_reported: state.is_reported || is_stall, ..state }, is_stall.then_some(span))
    }
}
