//! Rampup: find the rate at which a server begins to refuse, and stay just below it.
//!
//! ```text
//! Start   the rate doubles with each second of confirmed use, until the first refusal
//! Search  r(x) = e · (1 + m·(x − 1)³),  x = used time / T:  from e(1−m), slowly through e, and with 2½m in
//!         place of m on to e(1+2½m)
//! Wall    refused again before anything was served: single probes, each wait three times as long
//! ```
//!
//! A noisy bisection with a trust region: `e` is where the limit is believed to be, `m` how far that belief
//! may be wrong.
//!
//! 1. *One event per flight.* A refusal of what was sent before the last event is old news. An event is
//!    judged when the first success after it tells how long it lasted.
//! 2. *Refused*: the rate that was refused bounds the limit from above; what was served since the event
//!    before, ÷ the time with this wall, from below: a bucket is empty at both refusals, and a window used
//!    up, but no more than 2`m` below. `e` is the geometric mean of both, and `m` halves; it doubles if even
//!    less than `e` was refused and the limit is beyond that bound, or too little was served twice in a row.
//! 3. *Not refused* to x = 2: `m` grows fourfold, and on from e(1+m), each time in a smaller part of T.
//! 4. *T ∝ 1 ÷ m*: a wide search is short, and a settled one costs `backoffTarget` refusals a window, but no
//!    more than one in a hundred requests. What a refusal costs besides (probes of the wall, its flight) and
//!    how long the wall was make T longer.
//! 5. *Long walls*: the same count before two of them is a window, whose limit is that count ÷ time, and
//!    which T is no shorter than, for less says nothing; merely bad answers once are an outage, which says
//!    nothing of the pace, and is probed once a window.
//! 6. *Merely bad answers*: see `background`. With more in flight than usual they are none of it. Plain
//!    refusals are treated alike where *e* is below a third of the rate that was borne, and T is a number of
//!    requests: with a share that is refused whatever the pace, each climb would end below the last.
//! 7. *Rate or number at a time?* See `crowd`.
//! 8. *Unused capacity is no evidence*: x grows only while sends follow each other as closely as allowed.
//!
//! `m` is never below one over the square root of the requests in a window: chance alone moves a count so
//! far, and clients that have little gain on those that have much. All in ratios of the present rate, but for
//! the second of Start and the lag of timers. Sources: the cube from CUBIC (RFC 9438 §4.2), one event
//! per flight and app-limited growth from RFC 9002 §7; rule 2 is the insight of BBR turned round. The trap is
//! the saw-tooth: a step back that is a guess (÷ 2) wastes capacity for ever; a measured one does not.

mod background;
mod crowd;
mod policy;

use self::{
    background::Background,
    crowd::{Crowd, Fault},
};
use crate::time::{Instant, Span};

/// What one scope's rampup was told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// The gap before anything is known.
    pub start: Span,
    /// The least gap.
    pub min: Span,
    /// The greatest gap.
    pub max: Span,
    /// The window in which `target` bad answers are the price.
    pub window: Span,
    /// Bad answers per window.
    pub target: f64,
}

/// T in windows ÷ backoffTarget where `m` is least: a touch comes at x = 1.5 or so.
const DWELL: f64 = 0.75;
/// The most that a refusal can cost, in refusals.
const DEAREST: f64 = 6.0;
/// T in lengths of the last wall, times `m`: what a step could gain in that time, in walls.
const WORTH: f64 = 0.7;
/// T in gaps at least; six times as many where `m` is least. So many served requests make a measurement.
const FEW: f64 = 16.0;
/// How fast Start doubles: after so much confirmed use.
const DOUBLING: Span = Span::from_micros(1_000_000);
/// The least `m`, however many requests are in a window.
const NARROW: f64 = 0.01;
/// The limit is no further than this below the first rate that is refused: a bucket may have hidden it.
const DEEPEST: f64 = 6.0;
/// The most that `m` can be; so wide it is, too, after a window was counted, whose wall ends late because of
/// the probing.
const WIDE: f64 = 1.0 / 3.0;
/// Timers are late by so much as a rule, and what they lost is made up for; beyond twice that nobody asks.
const TIMER: Span = Span::from_micros(2000);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Start,
    Search,
    Wall { probes: u32 },
}

/// The time in which one refusal is the price, in microseconds.
fn budget(config: &Config) -> f64 {
    config.window.micros() as f64 / config.target
}

/// A refusal that is not judged yet.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Event {
    at: Instant,
    /// The gap that was refused, in microseconds.
    fast: f64,
    /// Served since the one before, and in what time.
    served: f64,
    active: f64,
    is_first: bool,
    is_merely_bad: bool,
    /// At a rate below `e`.
    is_below: bool,
}

/// What was sent since the last judgement.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Tally {
    from: Instant,
    sends: u32,
    bad: u32,
    /// Bad ones at a rate below `e`.
    below: u32,
}

/// Where one scope stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    phase: Phase,
    /// In Start the gap; else that of `e`, in microseconds.
    gap: f64,
    /// `m`.
    span: f64,
    /// How often in a row nothing was refused, or below zero how often too little was served to measure.
    surprises: i32,
    /// Used time in this phase.
    clock: Span,
    /// When the phase or its gap last changed: what was sent since is evidence.
    entered: Instant,
    is_confirmed: bool,
    /// What was sent before this is old news.
    fresh: Instant,
    event: Option<Event>,
    tally: Option<Tally>,
    /// Served before the last event, and what that was refused in all.
    before: f64,
    cost: f64,
    /// For how long nothing was served after it, and how much of that is its price.
    wall: f64,
    price: f64,
    /// How long the last window was that was counted.
    full: f64,
    was_outage: bool,
    /// The gap that was borne.
    borne: f64,
    /// The last time from send to answer.
    away: f64,
    crowd: Crowd,
    background: Background,
    /// The nominal time of the last send; late timers are made up for by it.
    due: Option<Instant>,
    last: Option<Instant>,
    /// Nothing before this.
    pause: Option<Instant>,
}

impl State {
    /// Before the first request.
    pub fn new(config: &Config) -> Self {
        Self {
            phase: Phase::Start,
            gap: config.start.max(config.min).micros().max(1) as f64,
            span: WIDE,
            surprises: 0,
            clock: Span::ZERO,
            entered: Instant::default(),
            is_confirmed: false,
            fresh: Instant::default(),
            event: None,
            tally: None,
            before: 0.0,
            cost: 1.0,
            wall: 0.0,
            price: 0.0,
            full: 0.0,
            was_outage: false,
            borne: f64::INFINITY,
            away: 0.0,
            crowd: Crowd::NEW,
            background: Background::NEW,
            due: None,
            last: None,
            pause: None,
        }
    }

    /// The gap in force: twice the one that was refused until something is served again.
    pub fn gap(&self, config: &Config) -> Span {
        let micros = self.event.map_or_else(|| self.pace(config), |event| 2.0 * event.fast);
        Span::from_micros(micros as u64 + 1).max(config.min).min(config.max)
    }

    /// The gap of the curve, in microseconds.
    fn pace(&self, config: &Config) -> f64 {
        if self.phase != Phase::Search {
            return self.gap;
        }
        let x = self.x(config).min(2.0) - 1.0;
        let far = if x > 0.0 { 2.5 * self.span } else { self.span };
        self.gap / (1.0 + far * x * x * x)
    }

    /// Where on the curve.
    fn x(&self, config: &Config) -> f64 {
        self.clock.micros() as f64 / self.period(config)
    }

    /// T; never less than some requests, some round trips and a window.
    fn period(&self, config: &Config) -> f64 {
        let dwell =
            self.dwell(config) * self.narrow(config) / f64::from(2 * self.surprises.clamp(0, 1000) + 1);
        let least = (FEW * self.gap).max(4.0 * self.away).max(self.full);
        (dwell.max(WORTH * self.price) / self.span).max(least)
    }

    /// T where `m` is least.
    fn dwell(&self, config: &Config) -> f64 {
        let is_settled = self.span <= 1.5 * self.narrow(config);
        let cost = if is_settled { self.cost.clamp(1.0, DEAREST) } else { 1.0 };
        (DWELL * cost * budget(config)).max(6.0 * FEW * self.gap)
    }

    /// The least `m`.
    fn narrow(&self, config: &Config) -> f64 {
        let requests = config.window.micros() as f64 / self.gap;
        (1.0 / requests.sqrt()).clamp(NARROW, WIDE)
    }

    /// A request leaves; `flying` others are on their way.
    #[must_use]
    pub fn on_send(mut self, config: &Config, now: Instant, flying: u32) -> Self {
        let gap = self.gap(config);
        let due = self.due.map_or(now, |due| (due + gap).min(now));
        self.due = Some(now);
        if self.event.is_none() {
            let is_used = now.since(due) <= (TIMER + TIMER).max(Span::from_micros(gap.micros() / 3));
            let elapsed = self.last.map_or(Span::ZERO, |last| now.since(last));
            self.clock = if is_used { self.clock + elapsed } else { self.clock - gap }; // 8
            self.due = Some(due.max(now - TIMER));
        }
        self.last = Some(now);
        if let Some(tally) = &mut self.tally {
            tally.sends = tally.sends.saturating_add(1);
        }
        self.crowd.on_send(flying.saturating_add(1));
        self.background.on_send(self.is_below(config));
        self
    }

    /// It left only at `left`: no more of that is made up for than of a late timer.
    #[must_use]
    pub fn on_left(self, left: Instant) -> Self {
        Self { due: self.due.map(|due| due.max(left - TIMER)), ..self }
    }

    /// The request that was sent at `sent` was served.
    #[must_use]
    pub fn on_good(mut self, config: &Config, now: Instant, sent: Instant) -> Self {
        self.away = now.since(sent).micros() as f64;
        self.crowd.on_good(now, self.away, self.gap, self.dwell(config));
        self.is_confirmed |= sent >= self.entered;
        if sent < self.fresh {
            return self;
        }
        if let Some(event) = self.event.take() {
            self.judge(config, now, event);
            return self;
        }
        self.tally = self.tally.or(Some(Tally { from: now, sends: 0, bad: 0, below: 0 }));
        let least = config.min.micros().max(1) as f64;
        match self.phase {
            Phase::Start if self.is_confirmed && self.clock >= DOUBLING => {
                self.gap = (self.gap / 2.0).max(least);
                self.enter(Phase::Start, now);
            }
            Phase::Search if self.is_confirmed && self.x(config) >= 2.0 && !self.crowd.is_capped() => {
                self.surprises = self.surprises.max(0).saturating_add(1); // 3
                self.gap = (self.gap / (1.0 + self.span)).max(least);
                self.span = (4.0 * self.span).min(WIDE);
                self.price /= 2.0;
                self.full /= 2.0;
                self.enter(Phase::Search, now);
                self.clock = Span::from_micros(self.period(config) as u64);
            }
            _ => {}
        }
        self
    }

    /// The request that was sent at `sent` was refused; `asked` is how long the server wants to be left
    /// alone. `is_refusal`: it said so plainly (429), and is not merely failing.
    #[must_use]
    pub fn on_bad(
        mut self,
        config: &Config,
        now: Instant,
        sent: Instant,
        is_refusal: bool,
        asked: Option<Span>,
    ) -> Self {
        if sent < self.fresh {
            self.cost += 1.0;
            return self; // 1
        }
        let is_below = self.is_below(config);
        if let Some(tally) = &mut self.tally {
            tally.bad += u32::from(sent >= tally.from);
            tally.below += u32::from(is_below);
        }
        let is_merely_bad = !is_refusal && asked.is_none();
        if self.event.is_none() {
            if self.phase == Phase::Search {
                match self.crowd.on_bad(now, sent, self.borne) {
                    Fault::Rate => {}
                    Fault::Number => return self,
                    Fault::Capped => {
                        // From here on the cap paces.
                        self.gap = (self.gap / 2.0).max(config.min.micros().max(1) as f64);
                        return self;
                    }
                    Fault::Uncapped => self.gap *= 2.0,
                }
            }
            let is_noise = is_below && !self.crowd.is_unusual();
            let is_event = if is_merely_bad {
                self.background.is_event(is_noise)
            } else {
                !self.is_far_below(config) || self.background.is_event_far_below(is_noise)
            };
            if !is_event {
                return self; // 6
            }
        }
        self.background.on_event();
        self.fresh = now;
        if let Some(event) = &mut self.event {
            event.is_merely_bad &= is_merely_bad;
            self.cost += 1.0;
            let probes = if let Phase::Wall { probes } = self.phase { probes + 1 } else { 1 };
            let wait = (2.0 * event.fast).max(self.wall / 16.0) * f64::from(3_u32.pow(probes.min(18)));
            // A ban may begin anew with each probe; an outage does not.
            let most = if event.is_merely_bad { budget(config).max(2.0 * event.fast) } else { wait };
            self.pause = Some(now + Span::from_micros(wait.min(most) as u64).min(config.max));
            self.phase = Phase::Wall { probes };
            return self;
        }
        let fast = self.pace(config).max(config.min.micros() as f64).min(config.max.micros() as f64);
        let Tally { from, sends, bad, below } =
            self.tally.unwrap_or(Tally { from: sent, sends: 0, bad: 0, below: 0 });
        // By the time of sending: what was sent after the refused one is taken off.
        let later = (now.since(sent).micros() as f64 / fast).min(f64::from(self.crowd.now));
        let served = (f64::from(sends) - later - f64::from(bad)).max(0.0);
        let active = sent.since(from).micros() as f64;
        // What failed nowhere below `e` was refused, whatever it was called.
        self.cost = if is_merely_bad && below == 0 { f64::from(bad) } else { 1.0 };
        let is_first = self.phase == Phase::Start;
        self.event = Some(Event { at: now, fast, served, active, is_first, is_merely_bad, is_below });
        let wait = (2.0 * fast).max(self.wall / 2.0);
        self.pause = Some(now + Span::from_micros(wait as u64).min(config.max));
        self.phase = Phase::Search;
        self
    }

    /// What the event says, now that something is served again.
    fn judge(&mut self, config: &Config, now: Instant, event: Event) {
        let Event { at, fast, served, active, is_first, is_merely_bad, is_below } = event;
        self.wall = (now.since(at).micros() as f64 - self.away - 4.0 * fast).max(0.0);
        self.price = self.wall;
        let is_enough = served >= FEW;
        let is_long = is_enough && self.wall > active / 2.0;
        let is_same = (served - self.before).max(self.before - served) <= served / 16.0 + 1.0;
        self.before = served;
        if is_enough && !is_first {
            // The first was served from a full bucket.
            self.borne = (active / served).max(fast).min(1.005 * self.borne);
        }
        let whole = active + self.wall;
        let measured = (whole / served).max(fast);
        let is_outage = is_long && is_merely_bad && !is_first && !self.was_outage;
        if is_outage {
            (self.wall, self.price) = (0.0, 0.0); // 5
        } else if is_long && is_same {
            self.gap = measured; // 5
            self.span = WIDE;
            self.full = whole; // less says nothing
        } else {
            // How many times longer the gap is at the lower bound.
            let measured = measured / fast;
            let least = if is_first { DEEPEST } else { 1.0 / (1.0 - 2.0 * self.span) };
            let longer = if is_first && is_long { measured } else { measured.min(least) }; // 2
            self.gap = fast * longer.sqrt();
            if is_first {
                self.background.sample(served / 2.0);
                self.span = WIDE;
                self.surprises = 1; // its limit is not what it was believed to be
            } else if is_enough {
                let is_farther = is_below && !is_long && measured > least * least;
                let factor = if is_farther { 2.0 } else { 0.5 };
                self.span = (factor * self.span).max(self.narrow(config)).min(WIDE);
                self.surprises = 0;
            } else {
                let factor = if self.surprises < 0 { 2.0 } else { 1.0 };
                self.surprises = self.surprises.min(0).saturating_sub(1);
                self.span = (factor * self.span).min(WIDE);
            }
        }
        self.was_outage = is_outage;
        self.gap = self.gap.min(config.max.micros() as f64);
        self.tally = Some(Tally { from: now, sends: 0, bad: 0, below: 0 });
        self.enter(Phase::Search, now);
    }

    /// Whether the rate is below the one at which the limit is believed to be.
    fn is_below(&self, config: &Config) -> bool {
        self.phase == Phase::Search && self.event.is_none() && self.x(config) < 1.0
    }

    /// Whether the rate is beyond one step below what was borne, and so low that T is a number of requests.
    fn is_far_below(&self, config: &Config) -> bool {
        WIDE * self.gap > self.borne && 6.0 * FEW * self.gap > DWELL * budget(config)
    }

    fn enter(&mut self, phase: Phase, now: Instant) {
        self.phase = phase;
        self.entered = now;
        self.is_confirmed = false;
        self.clock = Span::ZERO;
    }
}
