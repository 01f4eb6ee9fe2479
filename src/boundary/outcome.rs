//! How a request ended, as one value, and what becomes of it.
//!
//! The header fields, hints of the caller's own and what single scopes know better come together here: which
//! of them counts is said once, and no host judges again.

use core::array;

use super::{Boundary, UNTOLD, Word, wall};
use crate::{
    Answer, Cost, Feedback, Hint, Hints, Instant, ScopeId, Span, Ticket,
    engine::News,
    headers::Context,
    policy::{
        retry::{self, AFTER_FAILURE, Verdict},
        server::QuotaReport,
    },
    record::words,
    slab::Id,
};

/// Numbers that one scope takes in [`Outcome::scopes`].
pub const STRIDE: usize = 7;

/// Places among the numbers that [`Outcome::decode`] takes.
pub mod place {
    /// The milliseconds from send to answer.
    pub const LATENCY: usize = 1;
    /// The count of numbers of a plain answer.
    pub const PLAIN: usize = 4;
    /// The milliseconds until the next attempt.
    pub const DELAY: usize = 4;
    /// The five of [`Outcome::hint`](super::Outcome::hint).
    pub const HINT: usize = 5;
    /// The first record of a single scope.
    pub const RECORDS: usize = HINT + 5;
    /// The same where it is [digested](super::flags::DIGESTED), and `said_ms` is before it.
    pub const SCOPES: usize = RECORDS + 1;
}

/// Bits of [`Outcome::flags`].
pub mod flags {
    /// The latency does not move `AutoThrottle`'s delay.
    pub const KEEP_DELAY: u32 = 1;
    /// The request may be sent again: its method and body allow it, and there are attempts left.
    pub const MAY_RETRY: u32 = 1 << 1;
    /// The answer is not bad, whatever its status says.
    pub const GOOD: u32 = 1 << 2;
    /// The answer is bad, whatever its status says.
    pub const BAD: u32 = 1 << 3;
    /// [`super::Outcome::hint`] takes the place of what the header fields say, also where it says less.
    pub const HINTED: u32 = 1 << 4;
    /// A plain number in a reset field means milliseconds.
    pub const RESET_IS_MILLIS: u32 = 1 << 5;
    /// A plain number in `Retry-After` means milliseconds.
    pub const RETRY_AFTER_IS_MILLIS: u32 = 1 << 6;
    /// [`super::Outcome::scopes`] names whom it concerns: a scope that it names counts it as bad, unless the
    /// entry has only a cost or units left; the others ignore a refusal.
    pub const NAMED_ONLY: u32 = 1 << 7;
    /// The hints were read by another engine (`Boundary::digest`): [`super::Outcome::hint`] holds
    /// the milliseconds between two sends in place of the units per window, and
    /// [`super::Outcome::said_ms`] counts.
    pub const DIGESTED: u32 = 1 << 8;
    /// Of hints that were read elsewhere: the wait is that of a quota that is used up.
    pub const IS_QUOTA: u32 = 1 << 9;
    /// The pace may be off by half.
    pub const IS_ROUGH: u32 = 1 << 10;
    /// A cache answered.
    pub const IS_CACHED: u32 = 1 << 11;
    /// It is a 403 that refuses the pace.
    pub const IS_LIMIT: u32 = 1 << 12;
    /// It cannot be sent twice: where it would be sent again, it is [over](super::Settled::NotReplayable).
    pub const NOT_REPLAYABLE: u32 = 1 << 13;
    /// It stands in the place of a request that had no answer.
    pub const REPEATED: u32 = 1 << 14;
}

/// How a request ended: everything at once.
#[derive(Clone, Copy, Debug)]
pub struct Outcome<'a> {
    /// A status from 100 to 599; 0 is a connection that failed, 1 a timeout. 2 is none, where a server was
    /// asked and there is no word about its answer: after some of them a notice says it. The engine reads no
    /// meaning into any other.
    pub answer: f64,
    /// From send to response headers.
    pub latency_ms: f64,
    /// The real cost, in units.
    pub cost: f64,
    /// Bits of [`flags`].
    pub flags: u32,
    /// Header fields as `name: value` lines.
    pub lines: &'a str,
    /// Wall time now since 1970, for dates in responses without a `Date`.
    pub wall_ms: f64,
    /// The request is sent again whatever the settings say, not before so long from now.
    pub retry_delay_ms: f64,
    /// Hints that were not in headers: milliseconds to hold, units left, milliseconds until their reset,
    /// units per window, and its milliseconds.
    pub hint: [f64; 5],
    /// Of hints that were read elsewhere: the wait as the server said it, NaN for none.
    pub said_ms: f64,
    /// The outcomes for single scopes where they differ, [`STRIDE`] numbers each: the scope; 1 if the answer
    /// does not concern it, else 0; 1 if it is bad there, 0 if not; milliseconds to hold, units left,
    /// milliseconds until their reset (with one of the first two the response's own hints are not for it);
    /// its cost.
    pub scopes: &'a [f64],
}

impl<'a> Outcome<'a> {
    /// An outcome without hints, of which no scope knows better.
    ///
    /// Not inlined: in code that is compiled for size, as bindings are, it would be there for each caller.
    #[inline(never)]
    pub const fn new(answer: f64, latency_ms: f64, cost: f64, flags: u32) -> Self {
        Self {
            answer,
            latency_ms,
            cost,
            flags,
            lines: "",
            wall_ms: f64::NAN,
            retry_delay_ms: f64::NAN,
            hint: [f64::NAN; 5],
            said_ms: f64::NAN,
            scopes: &[],
        }
    }

    /// The outcome that these numbers tell: the first four, `retry_delay_ms`, the five of `hint`, `said_ms`
    /// only if it is [digested](flags::DIGESTED), then `scopes`. Numbers that are missing at the end are
    /// unknown.
    pub fn decode(numbers: &'a [f64]) -> Self {
        let number = |place: usize| numbers.get(place).copied().unwrap_or(f64::NAN);
        let outcome = Self::new(number(0), number(place::LATENCY), number(2), number(3) as u32);
        let is_digested = outcome.has(flags::DIGESTED);
        let scopes = if is_digested { place::SCOPES } else { place::RECORDS };
        Self {
            retry_delay_ms: number(place::DELAY),
            hint: array::from_fn(|place| number(place::HINT + place)),
            said_ms: if is_digested { number(place::RECORDS) } else { f64::NAN },
            scopes: numbers.get(scopes..).unwrap_or_default(),
            ..outcome
        }
    }

    /// Whether it is a word about the server; `None` where no server was asked, or its answer is unwanted.
    pub fn word(&self) -> Word {
        let says = flags::BAD | flags::GOOD | flags::HINTED | flags::NAMED_ONLY;
        let is_said = self.has(says) || !self.scopes.is_empty();
        (is_said || !self.answer.is_nan()).then_some(is_said || self.answer != UNTOLD)
    }

    /// Whether it says no more than [`Outcome::new`] takes.
    fn is_bare(&self) -> bool {
        let is_hinted = self.has(flags::HINTED | flags::DIGESTED);
        self.lines.is_empty() && self.scopes.is_empty() && self.retry_delay_ms.is_nan() && !is_hinted
    }

    fn has(&self, flag: u32) -> bool {
        self.flags & flag > 0
    }

    /// 1 for bad, 0 for not bad, NaN for as the status says.
    fn bad(&self) -> f64 {
        if self.has(flags::BAD) {
            1.0
        } else if self.has(flags::GOOD) {
            0.0
        } else {
            f64::NAN
        }
    }

    /// The hints that were not in headers. Their pace spreads what is left evenly: the slower of reset ÷ left
    /// and window ÷ limit.
    fn hinted(&self) -> Hint {
        let [hold_ms, left, reset_ms, limit, window_ms] = self.hint;
        if self.has(flags::DIGESTED) {
            let hint = hint_of(hold_ms, left, reset_ms);
            return Hint {
                asked: span(self.said_ms),
                is_quota: self.has(flags::IS_QUOTA),
                is_rough: self.has(flags::IS_ROUGH),
                is_cached: self.has(flags::IS_CACHED),
                is_limit: self.has(flags::IS_LIMIT),
                report: QuotaReport { pace: span(limit), window: span(window_ms), ..hint.report },
                ..hint
            };
        }
        let paces = [reset_ms / left, window_ms / limit].into_iter().filter(|pace| pace.is_finite());
        let mut hint = hint_of(hold_ms, left, reset_ms);
        hint.report.pace = span(paces.fold(f64::NAN, f64::max));
        hint.is_limit = self.answer == 403.0 && (hint.hold.is_some() || left == 0.0);
        hint
    }

    /// The hints of the header fields, if there are any. An answer that a host calls bad says it as a refusal
    /// does: on a good one a wait has no meaning.
    pub(super) fn read(&self) -> Option<Hints> {
        if self.lines.is_empty() {
            return None;
        }
        let is_refused = (200.0..300.0).contains(&self.answer) && self.is_called_bad();
        let status = if is_refused { 429.0 } else { self.answer };
        Some(Hints::from_lines(self.lines, context(status, self.wall_ms, self.flags)))
    }

    /// The server's limits, if there are fields or hints that could state them: most outcomes have none, and
    /// then make and copy no text.
    pub(super) fn heard(&self) -> Option<Heard> {
        if self.lines.is_empty() && !self.has(flags::HINTED) {
            return None;
        }
        let read = self.read();
        let hint = match &read {
            _ if self.has(flags::HINTED) => self.hinted(),
            Some(hints) => Hint::of(hints),
            None => Hint::default(),
        };
        // Hints take the place of what the headers say, and where they name no wait the headers may.
        let asked = match &read {
            _ if self.hint[0] >= 0.0 && self.has(flags::HINTED) => hint.asked.map(|asked| (asked, false)),
            Some(hints) => hints.delay_ms.map(|ms| (Span::from_millis(ms as f64), hints.is_whole)),
            None => None,
        };
        let is_final = read.as_ref().is_some_and(|hints| hints.is_final);
        let read = if self.has(flags::HINTED) { None } else { read };
        Some(Heard { hint, asked, is_final, read })
    }

    /// No answer, or one that says no: a status from 400.
    fn is_refusal(&self) -> bool {
        [0.0, 1.0].contains(&self.answer) || self.answer >= 400.0
    }

    /// A host calls it bad, whatever its status: for all of its scopes, or for one.
    fn is_called_bad(&self) -> bool {
        let is_named_only = self.has(flags::NAMED_ONLY);
        let is_bad = |&[_, is_ignored, bad, _, left, _, cost]: &[f64; STRIDE]| {
            let is_named = is_named_only && bad.is_nan() && cost.is_nan() && left.is_nan();
            bad > 0.0 || (is_named && (is_ignored <= 0.0 || is_ignored.is_nan()))
        };
        self.has(flags::BAD) || self.scopes.as_chunks().0.iter().any(is_bad)
    }

    /// The feedback for one scope, with its record if it has one. `is_of_one`: it is the refusal of one of
    /// its budgets.
    fn feedback(&self, record: Option<&[f64; STRIDE]>, hint: Option<&Hint>, is_of_one: bool) -> Feedback {
        let (mut cost, mut bad, mut hint) = (self.cost, self.bad(), hint);
        let own_hint;
        let is_named_only = self.has(flags::NAMED_ONLY);
        let is_ignored = if let Some(&[_, is_ignored, own_bad, hold, left, reset, own_cost]) = record {
            if is_ignored > 0.0 || !hold.is_nan() || !left.is_nan() {
                own_hint = hint_of(hold, left, reset);
                hint = Some(&own_hint);
            }
            if !own_cost.is_nan() {
                cost = own_cost;
            }
            if !own_bad.is_nan() {
                bad = own_bad;
            } else if is_named_only && own_cost.is_nan() && left.is_nan() {
                bad = 1.0;
            }
            is_ignored > 0.0
        } else {
            let is_others = is_named_only && self.is_refusal();
            hint = hint.filter(|_| !is_others);
            is_others || is_of_one
        };
        let mut feedback = if is_ignored {
            Feedback::from_numbers(f64::NAN, f64::NAN, true, cost, f64::NAN)
        } else {
            Feedback::from_numbers(self.answer, self.latency_ms, !self.has(flags::KEEP_DELAY), cost, bad)
        };
        if let Some(hint) = hint {
            feedback.hint = *hint;
        }
        feedback
    }

    /// Whether, and not before when, the request is sent again by these settings.
    pub fn verdict(&self, retry: &retry::Config) -> Verdict {
        self.verdict_by(retry, self.heard().as_ref())
    }

    /// The same with what was read already.
    pub(super) fn verdict_by(&self, retry: &retry::Config, heard: Option<&Heard>) -> Verdict {
        if !self.retry_delay_ms.is_nan() {
            return Verdict::Again(Span::from_millis(self.retry_delay_ms));
        }
        let is_final = heard.is_some_and(|heard| heard.is_final);
        if is_final || !self.has(flags::MAY_RETRY) {
            return Verdict::Over;
        }
        let answer = Feedback::from_numbers(self.answer, f64::NAN, true, f64::NAN, f64::NAN).answer;
        let is_limit = heard.is_some_and(|heard| heard.hint.is_limit);
        let asked = heard.and_then(|heard| heard.asked);
        match answer {
            Answer::Response { .. } if (is_limit || self.is_called_bad()) && retry.repeats(429) => {
                retry.after_response(429, asked)
            }
            Answer::Response { status } => retry.after_response(status, asked),
            Answer::Failed(_) => AFTER_FAILURE,
            Answer::Ignored => Verdict::Over,
        }
    }

    /// The same verdict, unless it says to send again what cannot be sent twice.
    pub(super) fn replayed(&self, verdict: Verdict) -> Verdict {
        match verdict {
            Verdict::Again(delay) if self.has(flags::NOT_REPLAYABLE) => Verdict::NotReplayable(delay),
            verdict => verdict,
        }
    }

    /// The record of one scope, if it has one.
    fn record(&self, scope: f64) -> Option<&[f64; STRIDE]> {
        self.scopes.as_chunks().0.iter().find(|record| record[0] == scope)
    }
}

/// The limits in header fields and hints.
#[derive(Default)]
pub(super) struct Heard {
    /// The hint for scopes.
    pub hint: Hint,
    /// The wait by which a retry is judged, and whether it is in whole seconds.
    pub asked: Option<(Span, bool)>,
    /// Whether the server says that it is not to be sent again.
    is_final: bool,
    /// The hints that may be for budgets. Few scopes have several, so they are taken apart for these alone.
    read: Option<Hints>,
}

words! {
    /// The end of a request that was settled.
    pub enum Settled {
        /// The ticket was unknown or not in flight; no state has changed.
        Unknown = "unknown",
        /// It is over.
        Over = "over",
        /// It is to be sent again: the same ticket waits anew and keeps its age.
        Again = "again",
        /// It is over, for the server asks for a longer wait than `retry.maxRetryAfter`.
        TooLong = "too-long",
        /// It is over although it should be sent again, for it cannot be sent twice.
        NotReplayable = "not-replayable",
    }
}

impl From<Verdict> for Settled {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Over => Self::Over,
            Verdict::Again(_) => Self::Again,
            Verdict::TooLong => Self::TooLong,
            Verdict::NotReplayable(_) => Self::NotReplayable,
        }
    }
}

/// The number of [`Boundary::asked_ms`].
pub(super) fn asked_ms(verdict: Verdict, asked: Option<(Span, bool)>) -> f64 {
    match verdict {
        Verdict::NotReplayable(delay) => delay.millis(),
        _ => asked.map_or(f64::NAN, |(asked, _)| asked.millis()),
    }
}

impl Boundary {
    /// [`Boundary::settle`] of [`Outcome::new`], which is made only where more than a slot comes back.
    #[inline(never)]
    pub fn settle_plain(
        &mut self,
        now: f64,
        ticket: f64,
        answer: f64,
        latency_ms: f64,
        cost: f64,
        flags: u32,
    ) -> Settled {
        const HARMLESS: u32 = flags::KEEP_DELAY
            | flags::MAY_RETRY
            | flags::NOT_REPLAYABLE
            | flags::RESET_IS_MILLIS
            | flags::RETRY_AFTER_IS_MILLIS;
        let is_good = (200.0..400.0).contains(&answer); // `retry.statusCodes` begins at 400.
        if (is_good || answer.is_nan() || answer == UNTOLD)
            && cost.is_nan()
            && flags & !HARMLESS == 0
            && let (Some(at), Some(id)) = (Instant::from_millis(now), Id::from_number(ticket))
            && self.engine.settle_at_once(at, Ticket(id), answer as u16, latency_ms)
        {
            self.asked_ms = f64::NAN;
            return Settled::Over;
        }
        self.settle_in_full(now, ticket, &Outcome::new(answer, latency_ms, cost, flags))
    }

    /// Tells how a request ended, and whether it is sent again.
    pub fn settle(&mut self, now: f64, ticket: f64, outcome: &Outcome) -> Settled {
        if outcome.is_bare() {
            let &Outcome { answer, latency_ms, cost, flags, .. } = outcome;
            return self.settle_plain(now, ticket, answer, latency_ms, cost, flags);
        }
        self.settle_in_full(now, ticket, outcome)
    }

    /// The same where the [route](Boundary::route) of the request was not named. `None`, and no state has
    /// changed, where that is wanted: the answer tells of several budgets.
    pub fn settle_unrouted(&mut self, now: f64, ticket: f64, outcome: &Outcome) -> Option<Settled> {
        self.settle_routed(now, ticket, outcome, false)
    }

    fn settle_in_full(&mut self, now: f64, ticket: f64, outcome: &Outcome) -> Settled {
        self.settle_routed(now, ticket, outcome, true).unwrap_or(Settled::Unknown)
    }

    /// `is_routed`: the route was named, or never will be.
    #[inline(never)]
    fn settle_routed(
        &mut self,
        now: f64,
        ticket: f64,
        outcome: &Outcome,
        is_routed: bool,
    ) -> Option<Settled> {
        self.asked_ms = f64::NAN;
        let Some(ticket) = Ticket::from_number(ticket) else { return Some(Settled::Unknown) };
        let heard = outcome.heard();
        let heard = heard.as_ref();
        let read = heard.and_then(|heard| heard.read.as_ref());
        let (named, is_one_of_several) = read.map(Hints::names).unwrap_or_default();
        if !is_routed && self.engine.lacks_route(ticket, &named, is_one_of_several) {
            return None;
        }
        let asked = heard.and_then(|heard| heard.asked);
        let mut verdict = outcome.verdict_by(&self.engine.config().retry, heard);
        if verdict == AFTER_FAILURE && self.engine.is_down(ticket) {
            verdict = Verdict::Over;
        }
        let verdict = outcome.replayed(verdict);
        let now = self.now(now);
        let is_good = (200.0..400.0).contains(&outcome.answer);
        let addressed = self.engine.hear(now, ticket, &named, is_one_of_several, is_good);
        let parts = addressed.as_ref().and_then(|_| read?.parts());
        let whole = heard.map(|heard| &heard.hint);
        let rest = addressed.as_ref().zip(parts.as_ref()).zip(whole);
        let rest = rest.map(|((addressed, parts), whole)| addressed.rest(whole, parts));
        let hint = rest.as_ref().map(|(hint, _)| hint).or(whole);
        let is_of_one = rest.as_ref().is_some_and(|&(_, is_of_one)| is_of_one);
        if outcome.has(flags::REPEATED) {
            self.engine.mark_repeated(ticket);
        }
        let same = outcome.feedback(None, hint, is_of_one);
        let of = |scope: ScopeId| outcome.feedback(outcome.record(scope.to_number()), hint, is_of_one);
        let news = if outcome.scopes.is_empty() { News::Same(&same) } else { News::Each(&of) };
        let is_known = match verdict {
            Verdict::Again(delay) => self.engine.retry_with(now, ticket, news, delay.millis()),
            _ => self.engine.settle_with(now, ticket, news, outcome.word()),
        };
        if !is_known {
            return Some(Settled::Unknown);
        }
        self.asked_ms = asked_ms(verdict, asked);
        if let Some((addressed, parts)) = addressed.as_ref().zip(parts.as_ref()) {
            self.engine.report_budgets(now, addressed, parts, outcome.is_refusal());
        }
        Some(verdict.into())
    }

    /// After `settle`: the milliseconds that the server asked to wait, as it said them; NaN if it did not.
    /// Of what is [not replayable](Settled::NotReplayable): how long one in its place has to wait.
    pub fn asked_ms(&self) -> f64 {
        self.asked_ms
    }
}

/// Adds a header field to [`Outcome::lines`]. A line break in its value cannot forge another field. No server
/// can send a name with a colon or a space: a field with one of these is none.
pub fn push_field(lines: &mut String, name: &str, value: &str) {
    if name.contains(|c: char| c == ':' || c <= ' ') {
        return;
    }
    lines.extend([name, ": "]);
    lines.extend(value.chars().map(|c| if c == '\n' || c == '\r' { ' ' } else { c }));
    lines.push('\n');
}

fn hint_of(hold_ms: f64, left: f64, reset_ms: f64) -> Hint {
    let report = QuotaReport { left: Cost::from_units(left).zip(span(reset_ms)), ..QuotaReport::default() };
    Hint { hold: span(hold_ms), asked: span(hold_ms), report, ..Hint::default() }
}

fn span(ms: f64) -> Option<Span> {
    (ms >= 0.0).then(|| Span::from_millis(ms))
}

pub(super) fn context(status: f64, wall_ms: f64, flags: u32) -> Context {
    Context {
        status: status as u16,
        wall_ms: wall(wall_ms).map(|ms| ms as i64),
        reset_is_millis: flags & flags::RESET_IS_MILLIS > 0,
        retry_after_is_millis: flags & flags::RETRY_AFTER_IS_MILLIS > 0,
    }
}
