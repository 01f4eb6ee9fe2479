//! The server's own report of its quota: at most so much until then.
//!
//! Rules (draft-ietf-httpapi-ratelimit-headers, `r` and `t`; `X-RateLimit-Remaining` and `-Reset` mean the
//! same):
//! 1. with `r` units left for the next `t`, no more than `r` units are sent within them;
//! 2. what is in flight may not be in `r` yet: it is taken off;
//! 3. the answer to the request that was sent last is believed; older ones that come late are not;
//! 4. at zero it is a hold until the reset, on whatever status it came;
//! 5. `t` is in whole seconds, which says little about a window of one. When more is left than before, a
//!    window has opened, at the latest now: with a length of `w` it turns over at the latest `w` later;
//! 6. the caller cuts `t` to the longest wait that is allowed: one wrong header must not silence a host
//!    for a year.
//!
//! 7. what was served within `t` refutes it, if it is more than two windows of that could give, for within
//!    `t` no third one opens: a bucket whose refill is rounded up to a whole second. `is_refuted` is for
//!    policies that find a pace by themselves; no other knows a better one.
//! 8. where each `t` is one second, the window is no longer than that, and each answer of it bounds its end:
//!    the earliest counts. Until a refusal shows otherwise.
//!
//! No rate is made of them: `r / t` is eight times too fast for a client that reads the rest of a day's quota
//! a minute before midnight. Pacing by it is another matter, for those who ask (`followRateLimit`), and then
//! by the slower of r/t and q/w.

use super::quota::Cost;
use crate::time::{Instant, Span};

/// The least `t` above zero that can be said.
const SECOND: Span = Span::from_micros(1_000_000);

/// The report of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QuotaReport {
    /// Units left, and for how long.
    pub left: Option<(Cost, Span)>,
    /// The length of the window, if the server said it.
    pub window: Option<Span>,
    /// The delay that spreads what is left evenly.
    pub pace: Option<Span>,
}

/// The report that is believed now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    /// Units left.
    pub left: Cost,
    /// Units left as they were last told.
    pub reported: Cost,
    /// Until when.
    pub until: Option<Instant>,
    /// When a window was first seen to have opened: at the latest then.
    pub opened: Option<Instant>,
    /// The delay that spreads them; none if the server said none.
    pub pace: Span,
    /// When the request was sent whose answer said so.
    pub sent: Instant,
    /// The most that was ever told to be left.
    pub most: Cost,
    /// Since when units are counted, for one `t` at most, and how many were sent.
    pub counted: (Instant, Cost),
    /// Whether more was served within `t` than two windows can give.
    pub is_refuted: bool,
    /// Whether each `t` was one second, and no request was refused (rule 8).
    pub is_second: bool,
}

impl State {
    /// The server said no quota.
    pub const NEW: Self = Self {
        left: Cost::ZERO,
        reported: Cost::ZERO,
        until: None,
        opened: None,
        pace: Span::ZERO,
        sent: Instant::from_micros(0),
        most: Cost::ZERO,
        counted: (Instant::from_micros(0), Cost::ZERO),
        is_refuted: false,
        is_second: true,
    };

    /// The answer to a request that was sent at `sent` said something; `flying` more are on their way.
    #[must_use]
    pub fn on_report(self, now: Instant, sent: Instant, report: QuotaReport, flying: u32) -> Self {
        if sent < self.sent {
            return self; // 3
        }
        let pace = report.pace.unwrap_or(self.pace);
        let Some((left_reported, span)) = report.left else { return Self { pace, sent, ..self } };
        let is_fresh = self.is_over(now) || left_reported > self.reported;
        let opened = if is_fresh { Some(now) } else { self.opened };
        let turns =
            opened.zip(report.window).map(|(opened, window)| opened + window).filter(|&turns| turns > now); // 5
        let is_second = self.is_second && span == SECOND;
        let first = self.until.filter(|_| is_second && !is_fresh); // 8
        let until = turns.into_iter().chain(first).fold(now + span, Instant::min);
        let most = self.most.max(left_reported);
        // A window has one more than the answer to its first request says. One may have been on its way.
        let window = most.plus(Cost::ONE);
        let is_counted = now.since(self.counted.0) <= span;
        let counted = if is_counted { self.counted } else { (now, Cost::ZERO) };
        let is_refuted = self.is_refuted || counted.1.less(flying) > window.plus(window).plus(Cost::ONE); // 7
        let left = left_reported.less(flying); // 1, 2
        let until = Some(until);
        Self {
            left,
            reported: left_reported,
            until,
            opened,
            pace,
            sent,
            most,
            counted,
            is_refuted,
            is_second,
        }
    }

    /// A request was refused: what was sent until now was not all served.
    #[must_use]
    pub fn on_bad(self, now: Instant) -> Self {
        Self { counted: (now, Cost::ZERO), is_second: false, ..self }
    }

    /// A request of this cost left.
    #[must_use]
    pub fn on_send(self, cost: Cost) -> Self {
        let counted = (self.counted.0, self.counted.1.plus(cost));
        Self { left: self.left.minus_at_most(cost), counted, ..self }
    }

    /// The first instant at which `cost` fits; `None` for at once.
    pub fn next(self, now: Instant, cost: Cost) -> Option<Instant> {
        self.until.filter(|&until| until > now && cost > self.left)
    }

    /// The rest, while that is known.
    pub fn left(self, now: Instant) -> Option<Cost> {
        self.until.filter(|&until| until > now).map(|_| self.left)
    }

    /// The amount of a whole window, where the last one is over and the server said no word of the next.
    pub fn turned(self, now: Instant) -> Option<Cost> {
        self.until.filter(|&until| until <= now).map(|_| self.most.plus(Cost::ONE))
    }

    /// Whether it no longer holds requests back.
    pub fn is_over(self, now: Instant) -> bool {
        self.left(now).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> Instant = |seconds| Instant::from_micros(seconds * 1_000_000);
    const FOR: fn(u64) -> Span = |seconds| Span::from_micros(seconds * 1_000_000);

    fn units(units: u32) -> Cost {
        Cost::from_units(f64::from(units)).unwrap()
    }

    /// Units left for this number of seconds, of a window of ten.
    fn report(left: u32, seconds: u64) -> QuotaReport {
        QuotaReport { left: Some((units(left), FOR(seconds))), window: Some(FOR(10)), pace: None }
    }

    /// Windows of four that last a second: more than nine served in it were never two of them.
    #[test]
    fn served_requests_refute_the_rest_that_was_told() {
        let at = |millis: u64| Instant::from_micros(millis * 1000);
        let report = QuotaReport { left: Some((units(3), FOR(1))), ..QuotaReport::default() };
        let serve = |state: State, millis: u64| {
            state.on_send(Cost::ONE).on_report(at(millis + 5), at(millis), report, 0)
        };
        let first = State::NEW.on_report(at(0), at(0), report, 0);
        let nine = (1..=9).fold(first, |state, step| serve(state, 50 * step));
        assert!(!nine.is_refuted, "two windows of four, and one");
        assert!(serve(nine, 700).is_refuted);
        assert!(!serve(nine, 1100).is_refuted, "the second is over");
        assert!(!serve(nine.on_bad(at(690)), 700).is_refuted, "one of them was refused");
        let late = nine.on_send(Cost::ONE).on_report(at(705), at(700), report, 1);
        assert!(!late.is_refuted, "one of them is on its way");
        assert!(serve(serve(nine, 700), 5000).is_refuted, "for good");
    }

    /// A pace counts without a rest, and what came before it no longer does.
    #[test]
    fn a_pace_alone_is_believed() {
        let pace = QuotaReport { pace: Some(FOR(3)), ..QuotaReport::default() };
        let state = State::NEW.on_report(AT(6), AT(5), pace, 0);
        assert_eq!((state.pace, state.sent, state.until), (FOR(3), AT(5), None));
        let late = state.on_report(AT(7), AT(4), report(1, 9), 0);
        assert_eq!(late, state);
        assert_eq!(state.on_report(AT(8), AT(7), report(1, 9), 0).pace, FOR(3), "no answer said another one");
    }

    /// A window turns over its own length after it was first seen, even if the server says later.
    #[test]
    fn nobody_is_held_for_longer_than_a_window() {
        let state = State::NEW.on_report(AT(1), AT(0), report(0, 60), 0);
        assert_eq!((state.opened, state.until), (Some(AT(1)), Some(AT(11))));
        assert_eq!(state.next(AT(5), Cost::ONE), Some(AT(11)));
        assert_eq!(state.next(AT(11), Cost::ONE), None);
        // It was seen before: the next report does not put it off.
        let state =
            State::NEW.on_report(AT(1), AT(0), report(5, 60), 0).on_report(AT(4), AT(3), report(2, 60), 0);
        assert_eq!((state.opened, state.until), (Some(AT(1)), Some(AT(11))));
        // The server's instant is sooner.
        let state = State::NEW.on_report(AT(1), AT(0), report(0, 3), 0);
        assert_eq!(state.until, Some(AT(4)));
    }

    /// A window is another one when the last is over, or when there is more left than the server said.
    #[test]
    fn a_new_window_is_seen_by_the_time_or_by_what_is_left() {
        let first = State::NEW.on_report(AT(1), AT(0), report(5, 60), 0);
        assert_eq!(first.on_report(AT(9), AT(8), report(5, 60), 0).opened, Some(AT(1)), "as much: the same");
        assert_eq!(first.on_report(AT(9), AT(8), report(6, 60), 0).opened, Some(AT(9)), "more");
        assert_eq!(first.on_report(AT(11), AT(8), report(5, 60), 0).opened, Some(AT(11)), "over");
    }

    /// A window of one second whose resets are whole: each answer of it says one. A refusal shows that the
    /// window is another one.
    #[test]
    fn each_answer_of_a_window_of_a_second_bounds_its_end() {
        let at = |millis: u64| Instant::from_micros(millis * 1000);
        let one = |left| QuotaReport { left: Some((units(left), FOR(1))), ..QuotaReport::default() };
        let first = State::NEW.on_report(at(100), at(50), one(9), 0);
        let last = first.on_report(at(990), at(940), one(0), 0);
        assert_eq!(last.until, Some(at(1100)), "the first answer said so");
        assert_eq!(last.on_report(at(1150), at(1100), one(9), 0).until, Some(at(2150)), "the next window");
        assert_eq!(first.on_bad(at(900)).on_report(at(990), at(940), one(0), 0).until, Some(at(1990)));
        let two = QuotaReport { left: Some((units(0), FOR(2))), ..QuotaReport::default() };
        assert_eq!(first.on_report(at(990), at(940), two, 0).until, Some(at(2990)), "a longer one");
    }

    /// A request from before the last report is old news: requests on their way are taken off what is left.
    #[test]
    fn reports_count_by_when_they_were_asked_for() {
        let state = State::NEW.on_report(AT(3), AT(2), report(9, 5), 2);
        assert_eq!((state.left(AT(3)), state.reported), (Some(units(7)), units(9)));
        assert_eq!(state.on_report(AT(4), AT(1), report(0, 5), 0), state);
        assert_eq!(state.on_send(units(7)).next(AT(4), Cost::ONE), Some(AT(8)));
        assert_eq!(state.on_send(units(6)).next(AT(4), Cost::ONE), None);
        assert_eq!((state.left(AT(8)), state.is_over(AT(8)), state.is_over(AT(7))), (None, true, false));
    }
}
