//! Rampup: find the rate at which a server begins to refuse, and stay just below it.
//!
//! ```text
//! Start     the rate doubles with each second of confirmed use, until the first refusal; by a third where
//!           more than twelve are in flight, which are refused together
//! Search    rate = estimate · (1 + margin·(climb − 1)³),  climb = used time / period:
//!           from estimate·(1 − margin), slowly through the estimate, on to estimate·(1 + 3·margin)
//! Blackout  refused again before anything was served: single probes, ever farther apart
//! ```
//!
//! A belief: the `estimate` is where the limit is, the `margin` how far that may be wrong. Each refusal
//! measures both.
//!
//! 1. *One event per flight.* A refusal of what was sent before the last event is old news. An event is
//!    judged when the first success after it tells how long it lasted.
//! 2. *Refused*: the rate that was refused bounds the limit from above; what was served since the event
//!    before, ÷ the time with this blackout, from below: a bucket is empty at both refusals, and a window
//!    used up. The estimate is the geometric mean of both, and the margin halves. An event that ends Start
//!    and says when to come again (`Retry-After`) is a plain limit: the estimate is what was served in the
//!    doubling before and since, and nearly sure. A plain refusal before there was a pace proves none: Start
//!    goes on once, at half the rate.
//! 3. *Not refused* to climb = 2: the margin grows threefold, and on from estimate·(1 + margin), in a third
//!    of the period. Two refusals with too little served between them to measure: the margin doubles.
//! 4. *period ∝ 1 ÷ margin*: a wide search is short, and a settled one costs `backoffTarget` refusals a
//!    window, but no more than one in a hundred requests. A touch that cost more, and a long blackout, make
//!    the period longer.
//! 5. *Blackouts* are probed. One of merely bad answers is an outage, and no news of the pace; if it comes
//!    again soon, a window was used up. One that says when it ends (`Retry-After`) is asked then, until that
//!    was too early twice; what we add to that is no blackout.
//! 6. *Merely bad answers*: see `failing`. Of a server that refused plainly once, it takes several. Where
//!    the pace is clearly below what was *accepted* (served ÷ time) they are the server's own, and one too
//!    many widens the search. Plain refusals are treated alike where the estimate is below a third of that,
//!    and the period is a number of requests: others take a share whatever the pace. Refused above the
//!    estimate, what was accepted is less: the limit fell.
//! 7. *Rate or number at a time?* See `in_flight`. *Others who share the limit:* see `others`.
//! 8. *Unused capacity is no evidence*: climb grows only while sends follow each other as closely as allowed.
//!    The time in which no request wanted to leave is no blackout. Below a ceiling it measures no pace. A
//!    delay of the caller's timer is not idle time, and is made up for.
//! 9. *A typed pace is a ceiling*: it starts there, quiet. The first refusal measures no pace, for what was
//!    served before it was not counted: the estimate is the ceiling, nearly sure. The next one is believed,
//!    however far it is; one deep below the estimate doubles the margin. A climb to the end at the ceiling is
//!    quiet again. A server that fails is asked three times a window, and then the pace is what it was.
//!
//! The margin is never below one over the square root of the requests in a window: chance alone moves a
//! count so far, and clients that have little gain on those that have much. Sources: the cube from CUBIC (RFC
//! 9438 §4.2), one event per flight and app-limited growth from RFC 9002 §7, the test from Page (1954). The
//! trap is the saw-tooth: a step back that is a guess (÷ 2) wastes capacity for ever; a measured one does
//! not.
//!
//! Two more: a limit that is asked for twice (`next` has the gap, so that late timers are made up for, and
//! `gap` only tells it); and a memory of the gap alone: in Start it is a guess. Estimate, margin and climb
//! are therefore remembered.

mod event;
mod failing;
mod in_flight;
mod others;

use self::{
    event::{Event, busy_until},
    failing::{Failing, Kind},
    in_flight::InFlight,
    others::Others,
};
use crate::{
    policy::{Ended, Numbers, Policy, Sent, quota::Cost, rate::LATEST},
    time::{Instant, LONGEST_MS, Span},
};

/// One scope's settings of rampup.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// The gap before anything is known.
    pub start: Span,
    /// The least gap.
    pub min: Span,
    /// The greatest gap.
    pub max: Span,
    /// The window in which `target` bad answers are accepted.
    pub window: Span,
    /// Bad answers per window.
    pub target: f64,
    /// The least gap is a typed pace: it starts there, and is quiet until something is refused.
    pub is_ceiling: bool,
    /// How much later than its gap a request may leave by chance, as a share.
    pub spread: f64,
}

/// The period where the margin is least, in windows ÷ backoffTarget: a touch comes at climb 1.5 or so. Also
/// the period in lengths of the last blackout, times the margin: what a step could gain in that time.
const DWELL: f64 = 0.75;
/// The period in gaps, at least. This many served requests make a measurement.
const FEW: f64 = 16.0;
/// The period in gaps where the margin is least: a refusal is no more than one in a hundred requests.
const MANY: f64 = 6.0 * FEW;
/// How fast Start doubles: after so much confirmed use.
const DOUBLING: f64 = 1e6;
/// The limit is no further than this below the first rate that is refused: a bucket may have hidden it.
const DEEPEST: f64 = 6.0;
/// The most that the margin can be: a third. Growth by more than a step is threefold.
const WIDE: f64 = 1.0 / 3.0;
/// Rates that differ by no more than this count as the same.
const NEARLY: f64 = 1.03;
/// A request leaves so long after it was let go, as a rule.
const USUAL: Span = Span::from_micros(2000);

/// Where one scope stands.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct State {
    /// Start is over.
    is_search: bool,
    /// In Start the gap; else that of the estimate, in microseconds.
    gap: f64,
    /// How far the estimate may be wrong, as a share.
    margin: f64,
    /// No refusal measured the estimate yet: it is Start's, or a climb was not refused. The period is a
    /// third as long.
    is_new: bool,
    /// Too little was served to measure the last refusal.
    is_vague: bool,
    /// It refused plainly once: this server does not refuse by failing.
    is_plain: bool,
    /// Used time in this phase.
    clock: f64,
    /// When the phase or its gap last changed: what was sent since is evidence.
    entered: Instant,
    is_confirmed: bool,
    /// Only what was sent after this is news.
    sent_after: Instant,
    event: Option<Event>,
    /// Sent, and bad, since the last judgement.
    from: Instant,
    sends: f64,
    bad: f64,
    /// The cost of all refusals of the last event.
    cost: f64,
    /// For how long no request was served after the last event.
    blackout: f64,
    /// When the last long blackout of merely bad answers ended.
    failed_until: Option<Instant>,
    /// The gap at which requests were served.
    accepted: f64,
    /// The last time from send to answer.
    last_latency: f64,
    /// How long the last refusal took to be heard of.
    refusal_latency: f64,
    in_flight: InFlight,
    failing: Failing,
    others: Others,
    /// The nominal time of the last send; late timers are made up for by it.
    due: Option<Instant>,
    /// How late the last timer was, up to `LATEST`.
    late: Span,
    /// No request before this.
    pause: Option<Instant>,
}

fn micros(span: Span) -> f64 {
    span.micros() as f64
}

fn span(micros: f64) -> Span {
    Span::from_micros(micros as u64)
}

impl State {
    /// At its ceiling, with no refusal that would keep it from there.
    pub fn is_quiet(&self) -> bool {
        !self.is_search && self.event.is_none()
    }

    /// Refused, and no request was served since.
    pub fn is_waiting(&self) -> bool {
        self.event.is_some()
    }

    /// At its ceiling, and what fails by chance is as good as forgotten.
    pub fn is_over(&self) -> bool {
        self.is_quiet() && self.failing.is_calm()
    }

    /// The mean time from send to answer; zero before the first.
    pub fn latency(&self) -> Span {
        span(self.in_flight.latency())
    }

    /// How long until the curve ends, in which every gap is used.
    pub fn rest(&self, config: &Config) -> Span {
        span((2.0 * self.period(config) - self.clock).max(0.0))
    }

    /// The gap in force: twice the one that was refused until something is served again.
    fn in_force(&self, config: &Config) -> Span {
        let micros = self.event.map_or_else(|| self.pace(config), |event| 2.0 * event.fast);
        Span::from_micros(micros as u64 + 1).max(config.min).min(config.max)
    }

    /// The gap of the curve, in microseconds; half of it where a cap paces.
    fn pace(&self, config: &Config) -> f64 {
        if !self.is_search {
            return self.gap;
        }
        let past = self.climb(config).min(2.0) - 1.0;
        let far = if past > 0.0 { self.margin / WIDE } else { self.margin };
        let halved = if self.in_flight.is_capped() { 2.0 } else { 1.0 };
        self.gap / (halved * (1.0 + far * past * past * past))
    }

    /// Where on the curve: 1 at the estimate, 2 at its end.
    fn climb(&self, config: &Config) -> f64 {
        self.clock / self.period(config)
    }

    /// How long the curve takes to the estimate; never less than some requests, some round trips and a third
    /// of a second (many windows are one). News of a refusal comes within it.
    fn period(&self, config: &Config) -> f64 {
        let part = if self.is_new { WIDE } else { 1.0 };
        let dwell = (self.dwell(config) * self.narrow(config) * part).max(DWELL * self.blackout);
        let least = (FEW * self.gap)
            .max(4.0 * self.last_latency)
            .max(2.0 * self.refusal_latency)
            .max(WIDE * DOUBLING);
        (dwell / self.margin).max(least)
    }

    /// The period where the margin is least: as many times as long as the last touch cost, up to three.
    fn dwell(&self, config: &Config) -> f64 {
        let gaps = if self.others.are_there() { 0.0 } else { MANY * self.gap };
        self.cost.min(1.0 / WIDE) * (DWELL * refusal_interval(config)).max(gaps)
    }

    /// The least margin: one over the square root of the requests in a window, or in the period if they are
    /// more.
    fn narrow(&self, config: &Config) -> f64 {
        let requests = (micros(config.window) / self.gap).max(MANY);
        (1.0 / requests.sqrt()).min(WIDE)
    }

    /// The request that was sent at `sent` was served.
    fn on_good(mut self, config: &Config, now: Instant, sent: Instant) -> Self {
        self.last_latency = micros(now.since(sent));
        self.in_flight.on_good(now, self.last_latency, self.gap, self.dwell(config));
        self.is_confirmed |= sent >= self.entered;
        if sent < self.sent_after {
            if let Some(event) = &mut self.event {
                event.busy = event.busy.max(now);
            }
            return self;
        }
        if let Some(event) = self.event.take() {
            self.judge(config, now, event);
            return self;
        }
        if !self.is_confirmed {
            return self;
        }
        if !self.is_search && self.clock >= DOUBLING {
            let by = if self.last_latency > 2.0 * DEEPEST * self.gap { 1.0 + WIDE } else { 2.0 };
            self.gap = (self.gap / by).max(least(config));
            self.enter(now);
        } else if self.is_search && self.climb(config) >= 2.0 && !self.in_flight.is_capped() {
            if config.is_ceiling && self.pace(config) <= least(config) {
                let Self { failing, in_flight, last_latency, .. } = self;
                return Self { last_latency, in_flight, failing, ..Self::fresh(config) }; // 9
            }
            self.gap = (self.gap / (1.0 + self.margin)).max(least(config));
            self.margin = (self.margin / WIDE).min(WIDE);
            self.blackout /= 2.0;
            self.others.on_curve(false);
            self.is_new = true;
            self.enter(now);
            self.clock = self.period(config);
        }
        self
    }

    /// A request was refused, or merely failed.
    fn on_bad(mut self, config: &Config, ended: &Ended) -> Self {
        let Ended { now, sent, asked, is_denied, .. } = *ended;
        if let Some(event) = &mut self.event {
            event.busy = event.busy.max(busy_until(ended));
        }
        if sent < self.sent_after {
            self.cost += 1.0;
            return self; // 1
        }
        let is_merely_bad = asked.is_none() && (is_denied || !ended.is_refusal);
        if let Some(event) = &mut self.event {
            event.is_merely_bad &= is_merely_bad;
            event.is_failure &= !ended.is_refusal;
            event.is_blackout = true;
            event.unsure = micros(ended.unsure);
            event.refused_again += u32::from(asked.is_some());
            // A ban may begin anew with each probe; an outage does not, so that one a window will do, but
            // not for ever. One that says when it ends is asked then, until that was too early twice.
            let lasted = micros(now.since(event.at));
            let is_believed = asked.is_some() && event.refused_again < 2;
            let mut wait = (2.0 * event.fast).max(if is_believed { lasted / 4.0 } else { 2.0 * lasted });
            if config.is_ceiling && event.is_failure {
                wait = wait.min((WIDE * micros(config.window)).max(lasted / MANY)); // 9
            } else if event.is_merely_bad || event.is_failure {
                wait = wait.min(refusal_interval(config).max(lasted / FEW));
            }
            self.sent_after = now;
            self.cost += 1.0;
            self.pause = Some(now + span(wait).min(config.max));
            return self;
        }
        self.bad += 1.0;
        if self.is_search && self.in_flight.on_bad(now, sent, self.accepted, self.gap) {
            return self; // 7
        }
        let fast = self.pace(config).max(micros(config.min)).min(micros(config.max));
        let is_low = self.is_low(config);
        let is_quiet = config.is_ceiling && !self.is_search;
        let kind = match (is_denied, (self.is_plain || is_quiet) && is_merely_bad) {
            (true, _) => Kind::Denial,
            (false, true) => Kind::Stray,
            (false, false) => Kind::Failure,
        };
        if (is_merely_bad || self.is_far_below(config))
            && !self.failing.is_event(kind, is_low, !self.is_search, micros(config.window) / fast)
        {
            return self; // 6
        }
        self.sent_after = now;
        self.cost = if is_merely_bad { self.bad.max(1.0) } else { 1.0 };
        self.refusal_latency = micros(now.since(sent));
        // By the time of sending: what was sent after the refused one is taken off.
        let later = self.sends * self.refusal_latency / micros(now.since(self.from)).max(1.0);
        // Requests that fail at any pace count as accepted; where a third of many fails, none of them does.
        let is_chance = is_merely_bad && (self.sends < FEW || self.bad < WIDE * self.sends);
        let lost = if is_chance { self.failing.strikes } else { self.bad };
        self.failing.on_event(!self.is_search);
        let step = micros(sent.since(self.entered)) / DOUBLING;
        self.event = Some(Event {
            at: now,
            busy: busy_until(ended),
            fast,
            served: (self.sends - later - lost).max(0.0),
            active: micros(sent.since(self.from)),
            unsure: micros(ended.unsure),
            is_merely_bad,
            is_denied,
            is_failure: !ended.is_refusal,
            is_below: self.is_search && self.climb(config) < 1.0,
            step: (!self.is_search && asked.is_some()).then_some(step),
            is_blackout: false,
            refused_again: 0,
        });
        let wait = if config.is_ceiling && asked.is_some() { 0.0 } else { self.blackout / 2.0 };
        self.pause = Some(now + span((2.0 * fast).max(wait)).min(config.max));
        self
    }

    /// The verdict on the event, now that requests are served again.
    fn judge(&mut self, config: &Config, now: Instant, event: Event) {
        let Event { at, fast, served, active, unsure, is_merely_bad, is_denied, is_below, step, .. } = event;
        let (believed, is_first) = (self.gap, !self.is_search);
        let is_guess = config.is_ceiling && self.accepted.is_infinite();
        self.is_plain |= !is_merely_bad;
        let is_early = is_first && served < FEW / 2.0 && !event.is_blackout && !is_merely_bad;
        if is_early && !config.is_ceiling && !self.is_vague {
            (self.gap, self.is_vague) = ((2.0 * fast).min(micros(config.max)), true); // 2
            (self.from, self.sends, self.bad) = (now, 0.0, 0.0);
            return self.enter(now);
        }
        self.is_search = true;
        self.is_new = false;
        self.blackout = (micros(now.since(at)) - self.last_latency - 4.0 * fast).max(0.0);
        let is_enough = served >= FEW;
        let blackout = (self.blackout - unsure).max(0.0);
        let was_vague = core::mem::replace(&mut self.is_vague, !is_enough);
        let is_long = is_enough && blackout > active / 2.0;
        let measured = ((active + blackout) / served).max(fast);
        if is_enough && !is_first {
            // The first was served from a full bucket. A limit that fell is refused above the estimate; what
            // fails by chance fails below it, too.
            self.accepted = measured.min(if is_below { 1.0 } else { 1.25 } * self.accepted);
        }
        let mut is_at_once = false;
        let is_plain_below = is_below && !is_first && !is_merely_bad && is_enough && blackout < FEW * fast;
        self.others.on_curve(is_plain_below);
        let is_rare = self.failed_until.is_none_or(|last| micros(at.since(last)) > FEW * self.blackout);
        let is_outage = is_long && is_merely_bad;
        self.failed_until = if is_outage { Some(now) } else { self.failed_until };
        if is_outage && is_rare && !is_first {
            self.blackout = 0.0; // 5
        } else if config.is_ceiling && is_first {
            (self.gap, self.margin, self.is_new) = (fast, 1.0 / FEW, true); // 9
            is_at_once = event.is_failure && self.blackout > FEW * fast;
            if is_at_once {
                self.blackout = 0.0;
            }
        } else {
            let deepest = match (is_first, is_long) {
                (true, true) => f64::INFINITY,
                (true, false) => DEEPEST,
                (false, _) => 1.0 / (1.0 - 2.0 * self.margin),
            };
            self.gap = (fast * (measured / fast).min(deepest).sqrt()).min(micros(config.max));
            let is_too_sure = config.is_ceiling && fast > believed * (1.0 + self.margin / 2.0);
            if is_guess && served >= 1.0 && measured > fast / (1.0 - 2.0 * self.margin) {
                self.margin = (1.0 - (fast / measured).sqrt()).min(WIDE); // 9
                self.gap = (measured * (1.0 - self.margin)).min(micros(config.max));
                self.is_new = true;
            } else if is_too_sure {
                self.margin = (2.0 * self.margin).min(WIDE);
            } else if let Some(step) = step.filter(|_| !is_long) {
                // Half as fast for a doubling, then as fast: what was served in both.
                self.gap = fast * (1.0 + step) / (0.5 + step);
                self.margin = 1.0 / FEW;
            } else if is_first {
                self.margin = WIDE;
                self.is_new = true;
            } else if is_enough {
                let is_surprise = is_merely_bad && is_below && fast > NEARLY * self.accepted; // 6
                let factor = if is_surprise { 4.0 } else { 0.5 };
                self.margin = (factor * self.margin).max(self.narrow(config)).min(WIDE);
            } else if was_vague {
                self.margin = (2.0 * self.margin).min(WIDE);
            }
        }
        if self.others.are_there() && is_plain_below {
            self.gap = (NEARLY * fast).min(micros(config.max));
            (self.margin, self.is_new) = (self.narrow(config), false);
        }
        if is_merely_bad && !is_denied && self.gap > 1.1 * believed {
            self.failing.forget();
        }
        (self.from, self.sends, self.bad) = (now, 0.0, 0.0);
        self.enter(now);
        if is_at_once {
            self.clock = self.period(config);
        }
    }

    /// Whether the pace is clearly below the limit, as it is believed to be and as it was accepted. In Start
    /// all counts, and half of it in the end.
    fn is_low(&self, config: &Config) -> bool {
        let pace = self.pace(config);
        !self.is_search || self.event.is_none() && pace > 1.1 * self.gap.max(self.accepted)
    }

    /// Whether the rate is beyond one step below what was accepted, and so low that the period is a number of
    /// requests.
    fn is_far_below(&self, config: &Config) -> bool {
        WIDE * self.gap > self.accepted && MANY * self.gap > DWELL * refusal_interval(config)
    }

    fn enter(&mut self, now: Instant) {
        self.entered = now;
        self.is_confirmed = false;
        self.clock = 0.0;
    }
}

/// The time in which one refusal is accepted, in microseconds.
fn refusal_interval(config: &Config) -> f64 {
    micros(config.window) / config.target
}

/// The least gap, in microseconds.
fn least(config: &Config) -> f64 {
    micros(config.min).max(1.0)
}

impl Policy for State {
    type Config = Config;
    const LEARNS: bool = true;
    const KEYS: &'static [(&'static str, f64)] =
        &[("gap", LONGEST_MS), ("gapMargin", 1.0), ("gapClimb", 2.0)];
    const FINDS_PACE: bool = true;

    fn fresh(config: &Config) -> Self {
        let gap = micros(config.start.max(config.min)).max(1.0);
        Self { gap, margin: WIDE, cost: 1.0, accepted: f64::INFINITY, ..Self::default() }
    }

    fn on_send(mut self, config: &Config, sent: &Sent) -> Self {
        let Sent { now, flying, .. } = *sent;
        let gap = self.in_force(config);
        let last = self.due.unwrap_or(now);
        let due = (last + gap).min(now);
        let late = now.since(due).min(sent.late).min(LATEST);
        let mut nominal = now;
        if let Some(event) = &mut self.event {
            let from = self.due.map(|due| due + gap).max(self.pause).unwrap_or_default();
            let idle = now.since(event.busy.max(from));
            if idle > LATEST {
                event.at = event.at + idle; // 8
            }
        } else {
            nominal = due.max(now - late);
            let is_used = micros(nominal.since(due)) <= micros(gap) / 3.0 + micros(gap) * config.spread; // 8
            let used = if is_used { micros(nominal.since(last)) } else { -micros(gap) };
            if config.is_ceiling && !is_used && flying < self.slots() {
                self.from = (self.from + nominal.since(due)).min(now); // 8
            }
            self.clock = (self.clock + used).max(0.0);
            self.late = late;
        }
        self.due = Some(nominal);
        if self.sends == 0.0 && !self.is_search {
            self.from = now;
        }
        self.sends += 1.0;
        self.in_flight.now = flying.saturating_add(1);
        self.failing.on_send(self.is_low(config));
        self
    }

    /// It left only at `at`: no more of that is made up for than of a late timer.
    fn on_sent_at(self, at: Instant) -> Self {
        Self { due: self.due.map(|due| due.max(at - self.late.max(USUAL))), ..self }
    }

    fn on_end(self, config: &Config, ended: &Ended) -> Self {
        if ended.is_bad || ended.is_denied {
            self.on_bad(config, ended)
        } else if ended.is_good {
            self.on_good(config, ended.now, ended.sent)
        } else {
            self
        }
    }

    fn gap(&self, config: &Config) -> Option<Span> {
        Some(self.in_force(config))
    }

    fn next(&self, config: &Config, _: Cost) -> Option<Instant> {
        self.due.map(|due| due + self.in_force(config)).max(self.pause)
    }

    fn pause(&self, _: &Config) -> Option<Instant> {
        self.pause
    }

    fn slots(&self) -> u32 {
        if self.event.is_some_and(|event| event.is_blackout) { 1 } else { self.in_flight.slots(self.gap) }
    }

    /// A refusal that is not judged yet is judged as if something were served now. The margin and the climb
    /// are there once Start is over.
    fn remember(&self, config: &Config, now: Instant) -> Numbers {
        if self.is_fresh(config) {
            return Numbers::default();
        }
        let mut judged = *self;
        if let Some(event) = judged.event.take() {
            judged.judge(config, now, event);
        }
        let is_over = judged.is_search;
        let climb = is_over.then(|| judged.climb(config).min(2.0));
        [Some(span(judged.gap).millis()), is_over.then_some(judged.margin), climb]
    }

    /// A request from before the memory is old news: what it taught may be in it.
    fn recall(self, config: &Config, now: Instant, offline: Span, [gap, margin, climb]: Numbers) -> Self {
        let gap = micros(Span::from_millis(gap.unwrap_or(0.0))).max(1.0);
        let since = now - offline;
        let Some(margin) = margin else { return Self { gap, entered: since, ..self } };
        let mut found = Self { gap, from: now, entered: since, sent_after: since, is_search: true, ..self };
        found.margin = margin.max(found.narrow(config)).min(WIDE);
        found.clock = climb.unwrap_or(0.0) * found.period(config);
        found
    }
}
