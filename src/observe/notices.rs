//! Notices for people and drivers, gathered until they are taken.
//!
//! A step back is taken by time alone, so a look right before an answer and one right after it agree. A
//! watched scope therefore keeps its last notice, and each answer is compared with that.

use super::warnings::WARNINGS;
use crate::{
    record::{Rare, kinds, record, words},
    time::{Instant, Span},
};

words! {
    /// How much notices say of answers.
    pub enum Watch {
        /// No word, at no cost.
        Nothing = "nothing",
        /// Changes by answers: a step of backoff, a delay, a hold.
        Changes = "changes",
        /// Every answer as well.
        Answers = "answers",
    }
}

kinds! {
    /// Something that people should know.
    pub enum Notice {
        /// A step of backoff was taken. With rampup, which takes none: there was a refusal.
        Backoff(Pace) = "backoff",
        /// A step back was taken.
        Recover(Pace) = "recover",
        /// The delay is another one.
        Delay(Pace) = "delay",
        /// No request leaves for longer than before.
        Hold(Held) = "hold",
        /// An answer came. Always told of scopes that have a `manager`.
        Answer(Heard) = "answer",
        /// A setting has no effect.
        NoEffect(Diagnostic) = "no-effect",
        /// A limit of the user's is what binds a scope that ramps: without it the scope would be faster. Each
        /// setting of a scope once, until the scope is configured.
        RampupBound(Diagnostic) = "rampup-bound",
        /// A server asked for a longer wait than `backoff.maxHold`. Each scope once.
        WaitCapped(Diagnostic) = "wait-capped",
        /// A scope has only answered badly for `stallAfter`. Once, until it answers well again.
        Stalled(Stall) = "stall",
        /// Answers of the scope name several budgets: the driver names the route of what waits, and of all
        /// that comes. Once.
        Budgets(Named) = "budgets",
        /// The last 20 requests of the scope ended without a word about its server. Until one ends with a
        /// word: once.
        NoStatus(Named) = "no-status",
        /// A scope is down: no answer has come for `downAfter`. Requests that wait for it are to be rejected.
        Down(Stall) = "down",
    }
}

impl Notice {
    /// Of a setting: what it is, and a sentence with its effect and the reason.
    pub fn finding(&self) -> Option<(&Diagnostic, String)> {
        let (Self::NoEffect(found) | Self::RampupBound(found) | Self::WaitCapped(found)) = self else {
            return None;
        };
        let warning = WARNINGS.iter().find(|warning| warning.code == self.kind())?;
        let Diagnostic { scope, path, why, .. } = found;
        let effect = match scope.as_str() {
            "" => warning.does_to_all().into(),
            scope => format!("{} {scope}", warning.does),
        };
        Some((found, format!("{path} {effect}: {why}")))
    }
}

record! {
    /// How fast a scope may go after an answer.
    pub struct Pace {
        /// The scope's name.
        scope: String,
        /// Its delay before jitter, in milliseconds.
        delay_ms: f64,
        /// Steps of backoff in force.
        step: u32,
        /// The end of a hold, in milliseconds of engine time.
        hold_until: Rare<f64>,
    }

    /// A longer hold than before.
    pub struct Held {
        /// The scope, with the hold that is kept.
        pace: Pace,
        /// The wait that the server asked for, in milliseconds, where `backoff.maxHold` cut it.
        asked_ms: Rare<f64>,
    }

    /// An answer, and what it did.
    pub struct Heard {
        /// The scope, after it.
        pace: Pace,
        /// Whether it was bad.
        is_bad: bool,
        /// The delay before it, in milliseconds.
        delay_before_ms: f64,
        /// The requests in flight after it.
        in_flight: u32,
        /// From send to response headers, in milliseconds, of a limit that processes share, if it was
        /// measured.
        latency_ms: Rare<f64>,
    }

    /// A setting, and what it does: no effect beside the others, or more than was meant.
    pub struct Diagnostic {
        /// The scope in which it was noticed; empty if it is about `defaults` and known before the first
        /// request.
        scope: String,
        /// The setting's name.
        setting: String,
        /// Where it is set: `defaults.concurrency`.
        path: String,
        /// The observation, in words.
        why: String,
    }

    /// A scope that answers badly, or not at all.
    pub struct Stall {
        /// The scope's name.
        scope: String,
        /// For how long, in milliseconds.
        for_ms: f64,
    }

    /// A scope, of which the notice says all.
    pub struct Named {
        /// The scope's name.
        scope: String,
    }
}

/// The effect of a request's end beyond its scope.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Settled {
    /// How long there were only bad answers, if that is now to be told.
    pub stall: Option<Span>,
    /// How long no answer came, if that is now to be told.
    pub down: Option<Span>,
    /// The wait that the server asked for.
    pub wait: Option<Wait>,
    /// Whether it was a bad answer; `None` if it was no answer.
    pub is_bad: Option<bool>,
    /// From send to answer in milliseconds, if that was measured.
    pub latency: Option<f64>,
    /// Whether rampup heard a refusal: it takes no steps that could be seen.
    pub is_refusal_to_rampup: bool,
}

/// A wait that a server asked for: by `Retry-After`, or by a quota that is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    /// For how long, as the server said it.
    pub asked: Span,
    /// Until when it is kept: no longer than `backoff.maxHold`.
    pub until: Instant,
}

/// The last notice of a scope.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub delay_ms: f64,
    pub step: u32,
    pub hold_until: Option<Instant>,
}

impl Seen {
    /// The changes by an answer in the scope called `name` since the last notice. `most` is its longest hold;
    /// instants go out `shift` earlier.
    pub fn changes(self, after: Self, name: &str, most: Span, shift: Span, settled: &Settled) -> Vec<Notice> {
        let pace = || after.pace(name, shift);
        let mut notices = Vec::new();
        if after.step > self.step || settled.is_refusal_to_rampup {
            notices.push(Notice::Backoff(pace()));
        } else if after.step < self.step {
            notices.push(Notice::Recover(pace()));
        }
        if after.delay_ms.total_cmp(&self.delay_ms).is_ne() {
            notices.push(Notice::Delay(pace()));
        }
        let cut = settled.wait.filter(|wait| wait.asked > most);
        if after.hold_until > self.hold_until {
            let asked_ms = cut.map(|wait| wait.asked.millis());
            notices.push(Notice::Hold(Held { pace: pace(), asked_ms }));
        } else if let Some(wait) = cut {
            // A quota that is used up holds as well.
            let held = Self { hold_until: Some(wait.until).max(after.hold_until), ..after };
            let (pace, asked_ms) = (held.pace(name, shift), Some(wait.asked.millis()));
            notices.push(Notice::Hold(Held { pace, asked_ms }));
        }
        notices
    }

    /// The answer itself, if it was one.
    pub fn answer(
        self,
        after: Self,
        name: &str,
        in_flight: u32,
        shift: Span,
        settled: &Settled,
    ) -> Option<Notice> {
        Some(Notice::Answer(Heard {
            pace: after.pace(name, shift),
            is_bad: settled.is_bad?,
            delay_before_ms: self.delay_ms,
            in_flight,
            latency_ms: None,
        }))
    }

    fn pace(self, name: &str, shift: Span) -> Pace {
        Pace {
            scope: name.to_string(),
            delay_ms: self.delay_ms,
            step: self.step,
            hold_until: self.hold_until.map(|until| (until - shift).millis()),
        }
    }
}
