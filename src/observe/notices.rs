//! What people and drivers should know, gathered until it is taken.
//!
//! A step back is taken by time alone, so a look right before an answer and one right after it agree. So a
//! scope that is watched keeps what its last notice said, and each answer is compared with that.

use crate::{
    time::{Instant, Span},
    value::Value,
};

/// How much notices say of answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Watch {
    /// No word, at no cost.
    #[default]
    Nothing,
    /// What answers changed: [`Notice::Backoff`], [`Notice::Recover`], [`Notice::Delay`], [`Notice::Hold`].
    Changes,
    /// Every answer as well: [`Notice::Answer`].
    Answers,
}

/// Something that people should know.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// A step of backoff was taken. With rampup, which takes none: there was a refusal.
    Backoff(Pace),
    /// A step back was taken.
    Recover(Pace),
    /// The delay is another one.
    Delay(Pace),
    /// No request leaves for longer than before.
    Hold {
        /// The scope, with the hold that is kept.
        pace: Pace,
        /// What the server asked for, as it said it, if `backoff.maxHold` cut it.
        asked: Option<Span>,
    },
    /// An answer came. Always told of scopes that have a `manager`.
    Answer {
        /// The scope, after it.
        pace: Pace,
        /// Whether it was bad.
        is_bad: bool,
        /// The delay before it, in milliseconds.
        delay_before_ms: f64,
        /// What is in flight after it.
        in_flight: u32,
    },
    /// A setting has no effect.
    NoEffect(Diagnostic),
    /// A limit of the user's is what binds a scope that ramps: without it the scope would be faster. Each
    /// setting of a scope once, until the scope is configured.
    RampupBound(Diagnostic),
    /// A server asked for a longer wait than `backoff.maxHold`. Each scope once.
    HoldCut(Diagnostic),
    /// A scope has only answered badly for `stallAfter`. Once, until it answers well again.
    Stalled {
        /// Its name.
        scope: String,
        /// For how long.
        span: Span,
    },
    /// The answers of a scope name budgets that are several: the driver is to tell the
    /// [routes](crate::Engine::route) of what waits, and of all that comes. Once.
    Budgets {
        /// Its name.
        scope: String,
    },
    /// A scope is down: no answer has come for `downAfter`. What waits for it is to be told so.
    Down {
        /// Its name.
        scope: String,
        /// For how long.
        span: Span,
    },
}

/// How fast a scope may go at one instant.
#[derive(Clone, Debug, PartialEq)]
pub struct Pace {
    /// Its name.
    pub scope: String,
    /// Its delay before jitter, in milliseconds.
    pub delay_ms: f64,
    /// Steps of backoff in force.
    pub step: u32,
    /// Until when no request leaves because of a hold.
    pub hold_until: Option<Instant>,
}

/// A setting, and what it does: no effect beside the others, or more than was meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The scope in which it was noticed; empty if it is about `defaults` and known before the first
    /// request.
    pub scope: String,
    /// The setting's name.
    pub setting: &'static str,
    /// Where it is set: `defaults.concurrency`.
    pub path: String,
    /// What was seen.
    pub why: String,
}

impl From<&Notice> for Value {
    fn from(notice: &Notice) -> Self {
        match notice {
            Notice::Backoff(pace) => pace.with("backoff", vec![]),
            Notice::Recover(pace) => pace.with("recover", vec![]),
            Notice::Delay(pace) => pace.with("delay", vec![]),
            Notice::Hold { pace, asked } => {
                pace.with("hold", vec![("askedMs", asked.map(Span::millis).into())])
            }
            Notice::Answer { pace, is_bad, delay_before_ms, in_flight } => pace.with(
                "answer",
                vec![
                    ("isBad", (*is_bad).into()),
                    ("delayBeforeMs", (*delay_before_ms).into()),
                    ("inFlight", (*in_flight).into()),
                ],
            ),
            Notice::NoEffect(diagnostic) => diagnostic.with("no-effect"),
            Notice::RampupBound(diagnostic) => diagnostic.with("rampup-bound"),
            Notice::HoldCut(diagnostic) => diagnostic.with("hold-cut"),
            Notice::Stalled { scope, span } => of_span("stall", scope, *span),
            Notice::Budgets { scope } => {
                Value::object(vec![("kind", "budgets".into()), ("scope", scope.as_str().into())])
            }
            Notice::Down { scope, span } => of_span("down", scope, *span),
        }
    }
}

fn of_span(kind: &str, scope: &str, span: Span) -> Value {
    Value::object(vec![("kind", kind.into()), ("scope", scope.into()), ("forMs", span.millis().into())])
}

impl Diagnostic {
    fn with(&self, kind: &str) -> Value {
        Value::object(vec![
            ("kind", kind.into()),
            ("scope", self.scope.as_str().into()),
            ("setting", self.setting.into()),
            ("path", self.path.as_str().into()),
            ("why", self.why.as_str().into()),
        ])
    }
}

impl Pace {
    fn with(&self, kind: &str, more: Vec<(&str, Value)>) -> Value {
        let mut entries = vec![
            ("kind", kind.into()),
            ("scope", self.scope.as_str().into()),
            ("delayMs", self.delay_ms.into()),
            ("step", self.step.into()),
            ("holdUntil", self.hold_until.map(Instant::millis).into()),
        ];
        entries.extend(more);
        Value::object(entries)
    }
}

/// What the end of a request means beyond its scope.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Settled {
    /// How long there were only bad answers, if that is now to be told.
    pub stall: Option<Span>,
    /// How long no answer came, if that is now to be told.
    pub down: Option<Span>,
    /// What the server asked to wait.
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

/// What was last told of a scope.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub delay_ms: f64,
    pub step: u32,
    pub hold_until: Option<Instant>,
}

impl Seen {
    /// What an answer changed in the scope called `name` since the last notice. `most` is its longest hold;
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
            notices.push(Notice::Hold { pace: pace(), asked: cut.map(|wait| wait.asked) });
        } else if let Some(wait) = cut {
            // A quota that is used up holds as well.
            let hold_until = Some(wait.until - shift).max(pace().hold_until);
            notices.push(Notice::Hold { pace: Pace { hold_until, ..pace() }, asked: Some(wait.asked) });
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
        Some(Notice::Answer {
            pace: after.pace(name, shift),
            is_bad: settled.is_bad?,
            delay_before_ms: self.delay_ms,
            in_flight,
        })
    }

    fn pace(self, name: &str, shift: Span) -> Pace {
        Pace {
            scope: name.to_string(),
            delay_ms: self.delay_ms,
            step: self.step,
            hold_until: self.hold_until.map(|until| until - shift),
        }
    }
}
