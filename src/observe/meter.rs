//! The real work of a scope: its rate, how much is in flight, and which of its limits binds for how long.
//!
//! Sixteen slots behind a delay of a second are one slot. Time is therefore booked to the limit that keeps
//! the head of the line waiting, and a limit that never does is found out.
//!
//! A window of a minute slides by two halves of a ring: this minute's counts and the last one's, which counts
//! for the part of it that is still in the window. It remembers no request by itself. It only watches; no
//! decision depends on it.

use crate::{
    decision::Reason,
    record::{Plain, record},
    time::{Instant, Span},
    value::Value,
};

/// The window that slides.
const WINDOW: Span = Span::from_micros(60_000_000);

/// A limit that never bound in this much waiting for the scope's pace has no effect: ten requests at the
/// default pace, and soon enough to be connected with what was typed.
const LONG: Span = Span::from_micros(10_000_000);

/// The same where the pace is learned, which begins slowly.
const LONG_LEARNED: Span = Span::from_micros(300_000_000);

/// A reason that hides the settings of the pace while it binds: it ends, and then they count again.
const PASSING: [Reason; 4] = [Reason::Paused, Reason::Hold, Reason::Backoff, Reason::CrawlDelay];

/// A rate of less time than this says more about when the first requests came.
const RATED: Span = Span::from_micros(5_000_000);

const REASONS: usize = Reason::ALL.len();

/// Where a reason is counted; limits elsewhere come last.
fn place(bound: Option<Reason>) -> usize {
    bound.map_or(REASONS, |reason| reason as usize)
}

/// The counts of one window. Times are microseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    sends: u32,
    /// Answers whose latency was measured, and all of it in microseconds.
    answers: u32,
    latency: u64,
    /// In flight × time.
    busy: u64,
    /// By reason; the last is for waiting that none of the scope's own limits asks for.
    bound: [u32; REASONS + 1],
}

/// The activity from one look to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Activity {
    /// Requests in flight.
    pub in_flight: u32,
    /// Whether a request waits.
    pub is_waiting: bool,
    /// Which limit of the scope keeps the head of its line; `None` if none of its own does.
    pub bound: Option<Reason>,
}

/// One scope's counts.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    born: Instant,
    opened: Instant,
    seen: Instant,
    activity: Activity,
    this: Counts,
    last: Counts,
    /// Since the settings last changed: how long requests waited, and which limits ever bound.
    waited: Span,
    /// How much of it was for the scope's own pace.
    paced: Span,
    /// And for its rate.
    rated: Span,
    ever_bound: u32,
    most_in_flight: u32,
    /// The user's limits that a note said to bind, one bit each.
    reported: u32,
    /// A window has turned over since the last note, or a request has now waited for long.
    is_turned: bool,
}

/// The share of the time in which each limit kept the first request waiting; `None` stands for limits
/// elsewhere: of another scope.
pub type Shares = Vec<(Option<Reason>, f64)>;

impl Plain for Shares {
    fn plain(&self) -> Value {
        let shares = self.iter().map(|(by, share)| (by.map_or("elsewhere", Reason::name), (*share).into()));
        Value::object(shares.collect())
    }

    fn of(value: &Value) -> Option<Self> {
        let Value::Map(entries) = value else { return None };
        let share = |(by, share): &(String, Value)| Some((Reason::of_name(by), f64::of(share)?));
        Some(entries.iter().filter_map(share).collect())
    }
}

record! {
    /// The figures of the last minute, or of the time since the first request if that is shorter.
    pub struct Effective {
        /// Requests sent per second over the last minute, or since the first request; `None` for its first
        /// five seconds: two requests at once are no thousand a second.
        rate: Option<f64>,
        /// From send to response headers in milliseconds, on average over the last minute.
        latency_ms: Option<f64>,
        /// Requests in flight on average over the last minute.
        concurrency: f64,
        /// The share of the last minute in which each limit kept the first request waiting. `elsewhere` are
        /// limits of other scopes. The rest is time in which no request waited.
        bound_by: Shares,
    }
}

impl Meter {
    pub fn new(now: Instant) -> Self {
        Self {
            born: now,
            opened: now,
            seen: now,
            activity: Activity::default(),
            this: Counts::default(),
            last: Counts::default(),
            waited: Span::ZERO,
            paced: Span::ZERO,
            rated: Span::ZERO,
            ever_bound: 0,
            most_in_flight: 0,
            reported: 0,
            is_turned: false,
        }
    }

    /// Books the time since the last look. True when a window has turned over.
    #[inline]
    pub fn look(&mut self, now: Instant) -> bool {
        self.pass(now);
        core::mem::take(&mut self.is_turned)
    }

    /// Whether [`Meter::note`] would be true.
    #[inline(always)]
    pub fn turns(&self, now: Instant) -> bool {
        self.is_turned || now.since(self.opened) >= WINDOW
    }

    /// [`Meter::note`] where no request waits and no window turns over.
    #[inline(always)]
    pub fn note_express(&mut self, now: Instant, in_flight: u32) {
        if now > self.seen {
            self.this.busy += u64::from(self.activity.in_flight) * now.since(self.seen).micros();
            self.seen = now;
        }
        self.activity = Activity { in_flight, is_waiting: false, bound: None };
    }

    /// The same as a request leaves.
    #[inline(always)]
    pub fn note_express_send(&mut self, now: Instant, in_flight: u32) {
        self.note_express(now, in_flight);
        self.most_in_flight = self.most_in_flight.max(in_flight);
        self.this.sends = self.this.sends.saturating_add(1);
    }

    /// A request leaves; [`Meter::note`] follows.
    #[inline]
    pub fn on_send(&mut self, now: Instant) {
        self.pass(now);
        self.this.sends = self.this.sends.saturating_add(1);
    }

    /// An answer came so long after its request left.
    pub fn on_latency(&mut self, ms: f64) {
        self.this.answers = self.this.answers.saturating_add(1);
        self.this.latency = self.this.latency.saturating_add(Span::from_millis(ms).micros());
    }

    /// Books the time since the last look to what was going on, and notes what is going on now. True when a
    /// window has turned over: time to look for settings without effect.
    pub fn note(&mut self, now: Instant, activity: Activity) -> bool {
        self.pass(now);
        self.activity = activity;
        self.most_in_flight = self.most_in_flight.max(activity.in_flight);
        if activity.is_waiting
            && let Some(reason) = activity.bound
        {
            self.ever_bound |= 1 << reason as u32;
        }
        core::mem::take(&mut self.is_turned)
    }

    /// The settings changed: what had no effect may have one now.
    pub fn on_configure(&mut self) {
        (self.waited, self.paced, self.rated) = (Span::ZERO, Span::ZERO, Span::ZERO);
        (self.ever_bound, self.most_in_flight, self.reported) = (0, self.activity.in_flight, 0);
    }

    /// Whether people waited for long and this limit was never why. `is_learning` is a pace that begins
    /// slowly.
    pub fn never_bound(&self, bound: Reason, is_learning: bool) -> bool {
        let long = if is_learning { LONG_LEARNED } else { LONG };
        self.paced >= long && self.ever_bound >> bound as u32 & 1 == 0
    }

    /// Whether people waited for long, and for the scope's rate in less than a tenth of the time.
    pub fn hardly_rated(&self) -> bool {
        self.waited >= LONG && self.rated.micros() < self.waited.micros() / 10
    }

    /// The limit that kept people waiting longest, in two windows; `None` where one elsewhere did.
    pub fn slowest(&self) -> Option<Reason> {
        let booked = |place: usize| u64::from(self.this.bound[place]) + u64::from(self.last.bound[place]);
        let reasons = Reason::ALL.into_iter().filter(|&reason| booked(reason as usize) > booked(REASONS));
        reasons.max_by_key(|&reason| booked(reason as usize))
    }

    /// Requests sent in the last window that is over.
    pub fn sends(&self) -> u32 {
        self.last.sends
    }

    /// For which share of the last window that is over this limit kept the head of the line waiting.
    pub fn share(&self, bound: Reason) -> f64 {
        f64::from(self.last.bound[bound as usize]) / WINDOW.micros() as f64
    }

    /// True once for each reason, until the settings change.
    pub fn is_first_report(&mut self, reason: Reason) -> bool {
        let bit = 1 << reason as u32;
        let is_new = self.reported & bit == 0;
        self.reported |= bit;
        is_new
    }

    /// The most that was in flight since the settings last changed.
    pub fn most_in_flight(&self) -> u32 {
        self.most_in_flight
    }

    /// Whether the window has no part of it any more.
    pub fn is_stale(&self, now: Instant) -> bool {
        self.activity == Activity::default() && now.since(self.seen) >= WINDOW + WINDOW
    }

    pub fn effective(&self, now: Instant) -> Effective {
        let mut meter = self.clone();
        meter.pass(now);
        let span = now.since(self.born).micros().min(WINDOW.micros());
        if span == 0 {
            return Effective::default();
        }
        let left = 1.0 - now.since(meter.opened).millis() / WINDOW.millis();
        let slide = |this: f64, last: f64| (this + last * left) / span as f64;
        let (this, last) = (&meter.this, &meter.last);
        let answers = f64::from(this.answers) + f64::from(last.answers) * left;
        let mut bound_by = Vec::new();
        for (place, (&this, &last)) in this.bound.iter().zip(&last.bound).enumerate() {
            let share = slide(f64::from(this), f64::from(last));
            if share > 0.0 {
                bound_by.push((Reason::ALL.get(place).copied(), share));
            }
        }
        Effective {
            rate: (span >= RATED.micros()).then(|| slide(f64::from(this.sends), f64::from(last.sends)) * 1e6),
            latency_ms: (answers > 0.0)
                .then(|| (this.latency as f64 + last.latency as f64 * left) / answers / 1000.0),
            concurrency: slide(this.busy as f64, last.busy as f64),
            bound_by,
        }
    }

    #[inline]
    fn pass(&mut self, now: Instant) {
        if now > self.seen {
            self.pass_to(now);
        }
    }

    fn pass_to(&mut self, now: Instant) {
        if now.since(self.opened) >= WINDOW {
            self.turn_over(now);
        }
        self.book(now);
    }

    #[cold]
    fn turn_over(&mut self, now: Instant) {
        self.is_turned = true;
        let over = now.since(self.opened).micros() / WINDOW.micros();
        self.book(self.opened + WINDOW);
        self.last = core::mem::take(&mut self.this);
        self.opened = self.opened + WINDOW;
        if over > 1 {
            // Whole windows without a change: all alike, the last of them is enough.
            let skipped = Span::from_micros((over - 1) * WINDOW.micros());
            self.seen = self.opened + skipped - WINDOW;
            self.book(self.opened + skipped);
            self.last = core::mem::take(&mut self.this);
            self.opened = self.opened + skipped;
            self.wait(skipped - WINDOW);
        }
    }

    /// Books the time up to `until`, which is in the open window.
    #[inline]
    fn book(&mut self, until: Instant) {
        let span = until.since(self.seen).micros();
        if span == 0 {
            return;
        }
        self.seen = until;
        let Activity { in_flight, is_waiting, .. } = self.activity;
        self.this.busy += u64::from(in_flight) * span;
        if is_waiting {
            self.book_wait(Span::from_micros(span));
        }
    }

    #[inline(never)]
    fn book_wait(&mut self, span: Span) {
        let bound = self.activity.bound;
        self.this.bound[place(bound)] += span.micros() as u32;
        // Also limits elsewhere, which are seen for no time at all whenever a request leaves.
        self.ever_bound |= 1 << place(bound);
        self.wait(span);
    }

    /// Counts a time of waiting; the moment at which it was long is one to look for settings without effect.
    fn wait(&mut self, span: Span) {
        let Activity { is_waiting, bound, .. } = self.activity;
        if !is_waiting || bound.is_some_and(|reason| PASSING.contains(&reason)) {
            return;
        }
        let before = self.waited;
        self.waited = before + span;
        self.is_turned |= before < LONG && self.waited >= LONG;
        if bound.is_some_and(|reason| reason != Reason::Global) {
            let before = self.paced;
            self.paced = before + span;
            self.is_turned |= before < LONG && self.paced >= LONG;
        }
        if bound == Some(Reason::Rate) {
            self.rated = self.rated + span;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_micros(seconds * 1_000_000)
    }

    fn waiting(bound: Option<Reason>) -> Activity {
        Activity { in_flight: 1, is_waiting: true, bound }
    }

    #[test]
    fn a_rate_is_there_after_five_seconds() {
        let mut meter = Meter::new(at(0));
        for second in 0..20 {
            meter.on_send(at(second));
            let rate = meter.effective(at(second)).rate;
            let off = |rate: f64| (rate - (second + 1) as f64 / second as f64).abs();
            assert_eq!(rate.map(|rate| off(rate) < 1e-9), (second >= 5).then_some(true), "{second}");
        }
    }

    #[test]
    fn a_minute_slides() {
        let mut meter = Meter::new(at(0));
        for second in 0..300 {
            meter.on_send(at(second));
            meter.note(at(second), waiting(Some(Reason::Delay)));
        }
        let effective = meter.effective(at(300));
        assert_eq!((effective.rate, effective.concurrency), (Some(1.0), 1.0));
        assert_eq!(effective.bound_by, [(Some(Reason::Delay), 1.0)]);
        meter.note(at(300), Activity::default());
        let effective = meter.effective(at(330));
        assert_eq!(
            (effective.rate, effective.concurrency),
            (Some(0.5), 0.5),
            "half of it has left the window"
        );
        assert_eq!(meter.effective(at(1000)), Effective { rate: Some(0.0), ..Effective::default() });
        assert!(!meter.is_stale(at(419)) && meter.is_stale(at(420)));
    }

    #[test]
    fn nobody_looked_for_an_hour() {
        let mut meter = Meter::new(at(0));
        meter.note(at(30), waiting(None));
        assert!(meter.note(at(3630), waiting(Some(Reason::Quota))));
        assert_eq!(meter.waited, Span::from_micros(3_600_000_000));
        assert_eq!(meter.effective(at(3630)).bound_by, [(None, 1.0)]);
        assert!(!meter.never_bound(Reason::Concurrency, false), "no limit of its own");
        assert!(meter.hardly_rated() && !meter.never_bound(Reason::Quota, false));
    }
}
