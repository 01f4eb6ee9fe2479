//! Rampup: find the rate at which a server begins to refuse, and stay just below it.
//!
//! ```text
//! Start   the rate doubles with each half second of confirmed use, until the first refusal
//! Search  r(x) = e · (1 + m·(x − 1)³),  x = used time / T:  from e(1−m), slowly through e, on to e(1+m)
//! Wall    refused again before anything was served: single probes, each wait twice as long
//! ```
//!
//! A noisy bisection with a trust region: `e` is where the limit is believed to be, `m` how far that belief
//! may be wrong.
//!
//! 1. *One event per flight.* A refusal of what was sent before the last event is old news. An event is
//!    judged when the first success after it tells how long it lasted.
//! 2. *Inside*: refused in the search, with enough served before. Between two refusals a bucket is empty at
//!    both ends and a window used up, so requests served ÷ time is a lower bound of the limit, and the rate
//!    that was refused an upper one: `e` goes halfway, `m` halves.
//! 3. *Surprised*: refused at once, `e` goes down by `m`; nothing refused up to x = 2, up. `m` grows, more if
//!    twice the same way.
//! 4. *T ∝ 1 ÷ m*, so a wide search is short and a settled one costs `backoffTarget` refusals a window. The
//!    longer the last event lasted, the longer T: a wall must be worth its price. `m` is never below one over
//!    the square root of the requests in a window, for that far chance alone moves a count; so small clients
//!    gain on big ones.
//! 5. *Long walls*: the same count before two of them is a window, whose limit is count ÷ time with the wall;
//!    merely bad answers are an outage, which says nothing of the pace; else it was far too fast: half of it.
//! 6. *Merely bad answers* (503, timeouts) count when three come within fifty sends, beyond the background:
//!    the share that fails as well far below a rate that was once borne.
//! 7. *Rate or number at a time?* Refusals at an unusual number in flight vote for a cap on it, if that
//!    number serves as much as the rate does. A refusal that contradicts the cap ends it.
//! 8. *Unused capacity is no evidence*: x grows only while sends follow each other as closely as allowed.
//!
//! All in ratios of the present rate, but for the half second of Start and the lag of timers. Sources: the
//! cube from CUBIC (RFC 9438 §4.2), one event per flight and app-limited growth from RFC 9002 §7; rule 2 is
//! the insight of BBR turned round. The trap is the saw-tooth: a step back that is a guess (÷ 2) wastes
//! capacity for ever; a measured one does not.

use super::{Ended, Policy, Sent};
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

/// T in windows ÷ backoffTarget where `m` is least: a touch comes at x = 1.3 or so.
const DWELL: f64 = 0.8;
/// How fast Start doubles: after so much confirmed use.
const DOUBLING: Span = Span::from_micros(500_000);
/// The least and the most of 1 ÷ √(requests in a window).
const NARROW: [f64; 2] = [0.01, 0.08];
/// `m` after a window was counted, whose wall ends late because of the probing; where a wall left little
/// knowledge; and the most.
const WIDE: [f64; 3] = [0.1, 0.15, 0.5];
/// An event before so much of T is a surprise.
const EARLY: f64 = 0.2;
/// So many served requests make a measurement.
const ENOUGH: f64 = 10.0;
/// T in lengths of the last wall, times `m`: what a step could gain in that time is worth so much of the
/// wall.
const WORTH: f64 = 0.5;
/// In flight at most, in what the rate and the usual latency put there: a queue does not grow for ever.
const ROOM: f64 = 3.0;
/// Timers are late by so much as a rule, and what they lost is made up for. Lateness beyond it is not.
const TIMER: Span = Span::from_micros(2000);
/// Merely bad answers within so many sends are an event when there are three.
const CLUSTER: f64 = 50.0;
/// What fails at a gap so many times one that was borne is background.
const FAR_BELOW: f64 = 1.2;
/// So many votes make a cap.
const VOTES: i32 = 6;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Start,
    Search,
    Wall { pauses: u32 },
}

/// A refusal that is not judged yet.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Event {
    at: Instant,
    /// The gap that was refused, in microseconds, and where on the curve.
    fast: f64,
    x: f64,
    /// Served since the one before, and in what time.
    served: f64,
    active: f64,
    is_first: bool,
    is_merely_bad: bool,
}

/// What was sent since the last judgement.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Tally {
    from: Instant,
    sends: u32,
    bad: u32,
}

/// What is known of the number in flight.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Crowd {
    /// At the last send, that one included; what it usually is, and how far it strays.
    now: u32,
    mean: f64,
    stray: f64,
    votes: i32,
    cap: Option<u32>,
    /// When the cap last changed, and when it was last contradicted.
    capped: Instant,
    refused: Instant,
}

/// Where one scope stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    phase: Phase,
    /// In Start the gap; else that of `e`, in microseconds.
    gap: f64,
    /// `m`.
    span: f64,
    /// Surprises in a row, above zero upwards.
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
    /// Served before the last event.
    before: f64,
    /// What the last event cost: nothing was served for so long.
    wall: f64,
    /// The gap that was borne.
    borne: f64,
    /// The last time from send to answer, and the usual one.
    away: f64,
    usual: f64,
    crowd: Crowd,
    /// Merely bad answers: a count that leaks, and how many of how many far below what was borne.
    strikes: f64,
    background: f64,
    sampled: f64,
    /// The nominal time of the last send; late timers are made up for by it.
    due: Option<Instant>,
    last: Option<Instant>,
    /// Nothing before this.
    pause: Option<Instant>,
}

impl State {
    /// Before the first request.
    pub fn new(config: &Config) -> Self {
        let start = Instant::from_micros(0);
        Self {
            phase: Phase::Start,
            gap: config.start.max(config.min).micros().max(1) as f64,
            span: 0.0,
            surprises: 0,
            clock: Span::ZERO,
            entered: start,
            is_confirmed: false,
            fresh: start,
            event: None,
            tally: None,
            before: 0.0,
            wall: 0.0,
            borne: f64::INFINITY,
            away: 0.0,
            usual: 0.0,
            crowd: Crowd {
                now: 0,
                mean: 0.0,
                stray: 0.0,
                votes: 0,
                cap: None,
                capped: start,
                refused: start,
            },
            strikes: 0.0,
            background: 0.0,
            sampled: 0.0,
            due: None,
            last: None,
            pause: None,
        }
    }

    /// As after a limit of this gap was found.
    #[must_use]
    pub fn settled_at(self, config: &Config, gap: Span) -> Self {
        let settled = Self { gap: gap.micros().max(1) as f64, phase: Phase::Search, ..self };
        Self { span: settled.narrow(config), ..settled }
    }

    /// The gap in force: twice the one that was refused until something is served again.
    pub fn gap(&self, config: &Config) -> Span {
        let micros = self.event.map_or_else(|| self.pace(config), |event| 2.0 * event.fast);
        Span::from_micros(micros as u64 + 1).max(config.min).min(config.max)
    }

    /// Until when nothing is sent after a refusal.
    pub fn paused(&self) -> Option<Instant> {
        self.pause
    }

    /// The first instant at which the next request may leave; `None` for at once.
    pub fn next(&self, config: &Config) -> Option<Instant> {
        self.due.map(|due| due + self.gap(config)).max(self.pause)
    }

    /// How many may be in flight. Probing a wall takes one request at a time.
    pub fn slots(&self) -> u32 {
        match self.phase {
            Phase::Wall { .. } => 1,
            _ => self.crowd.cap.unwrap_or(u32::MAX).min(self.room() as u32),
        }
    }

    fn room(&self) -> f64 {
        if self.usual > 0.0 { ROOM * self.usual / self.gap + 8.0 } else { f64::MAX }
    }

    /// The gap of the curve, in microseconds.
    fn pace(&self, config: &Config) -> f64 {
        if self.phase != Phase::Search {
            return self.gap;
        }
        let x = self.x(config).min(2.0) - 1.0;
        self.gap / (1.0 + self.span * x * x * x)
    }

    /// Where on the curve.
    fn x(&self, config: &Config) -> f64 {
        self.clock.micros() as f64 / self.period(config)
    }

    /// T; never less than some requests and some round trips.
    fn period(&self, config: &Config) -> f64 {
        let price = dwell(config) * self.narrow(config);
        (price.max(WORTH * self.wall) / self.span).max(16.0 * self.gap).max(4.0 * self.away)
    }

    /// The least `m`.
    fn narrow(&self, config: &Config) -> f64 {
        let requests = config.window.micros() as f64 / self.gap;
        (1.0 / requests.sqrt()).clamp(NARROW[0], NARROW[1])
    }

    /// A request leaves; `flying` others are on their way.
    #[must_use]
    pub fn on_send(mut self, config: &Config, now: Instant, flying: u32) -> Self {
        let gap = self.gap(config);
        let due = self.due.map_or(now, |due| (due + gap).min(now));
        self.due = Some(now);
        if self.event.is_none() {
            let is_used = now.since(due) <= TIMER.max(Span::from_micros(gap.micros() / 3));
            let elapsed = self.last.map_or(Span::ZERO, |last| now.since(last));
            self.clock = if is_used { self.clock + elapsed } else { self.clock - gap }; // 8
            self.due = Some(due.max(now - TIMER));
        }
        self.last = Some(now);
        if let Some(tally) = &mut self.tally {
            tally.sends = tally.sends.saturating_add(1);
        }
        let crowd = &mut self.crowd;
        crowd.now = flying.saturating_add(1);
        if crowd.mean == 0.0 {
            crowd.mean = f64::from(crowd.now);
        }
        let off = f64::from(crowd.now) - crowd.mean;
        crowd.stray += (off.max(-off) - crowd.stray) / 32.0;
        crowd.mean += off / 32.0;
        if self.is_far_below(config) {
            self.background -= self.background / (10.0 * CLUSTER);
            self.sampled = (self.sampled + 1.0).min(10.0 * CLUSTER);
        }
        self.strikes = (self.strikes - (2.0 * self.noise()).max(1.0 / CLUSTER)).max(0.0);
        self
    }

    /// The request that was sent at `sent` was served.
    #[must_use]
    pub fn on_good(mut self, config: &Config, now: Instant, sent: Instant) -> Self {
        self.away = now.since(sent).micros() as f64;
        if self.usual == 0.0 {
            self.usual = self.away;
        }
        // Latency that grows while the room is used up is a queue's.
        if self.away < self.usual || f64::from(self.crowd.now) < 0.7 * self.room() {
            self.usual += (self.away - self.usual) / 16.0;
        }
        self.is_confirmed |= sent >= self.entered;
        if sent < self.fresh {
            return self;
        }
        if let Some(event) = self.event.take() {
            self.judge(config, now, event);
            return self;
        }
        self.tally = self.tally.or(Some(Tally { from: now, sends: 0, bad: 0 }));
        if let Some(cap) = self.crowd.cap
            && now.since(self.crowd.capped).micros() as f64 > dwell(config)
        {
            let more = if self.crowd.now >= cap { 1 + cap / 32 } else { 0 };
            (self.crowd.cap, self.crowd.capped) = (Some(cap.saturating_add(more)), now);
        }
        let least = config.min.micros().max(1) as f64;
        match self.phase {
            Phase::Start if self.is_confirmed && self.clock >= DOUBLING => {
                self.gap = (self.gap / 2.0).max(least);
                self.enter(Phase::Start, now);
            }
            Phase::Search if self.is_confirmed && self.x(config) >= 2.0 => {
                let factor = if self.surprises > 0 { 4.0 } else { 2.0 }; // 3
                self.surprises = self.surprises.max(0).saturating_add(1);
                self.span = (factor * self.span).min(WIDE[2]);
                self.gap = (self.gap * (1.0 - self.span)).max(least);
                self.wall /= 2.0;
                self.enter(Phase::Search, now);
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
            return self; // 1
        }
        if let Some(tally) = &mut self.tally {
            tally.bad += u32::from(sent >= tally.from);
        }
        let is_merely_bad = !is_refusal && asked.is_none();
        if self.event.is_none() {
            if self.phase == Phase::Search && self.is_crowd(config, now) {
                return self; // 7
            }
            if is_merely_bad {
                self.strikes += 1.0;
                self.background += f64::from(u8::from(self.is_far_below(config)));
                if self.strikes < 2.9 + 2.0 * CLUSTER * self.noise() {
                    return self; // 6
                }
            }
        }
        self.strikes = 0.0;
        self.fresh = now;
        if let Some(event) = &mut self.event {
            event.is_merely_bad &= is_merely_bad;
            let pauses = if let Phase::Wall { pauses } = self.phase { pauses } else { 2 };
            let wait = event.fast * f64::from(1_u32 << pauses.min(20));
            self.pause = Some(now + Span::from_micros(wait as u64).min(config.max));
            self.phase = Phase::Wall { pauses: pauses + 1 };
            return self;
        }
        let fast = self.pace(config).max(config.min.micros() as f64).min(config.max.micros() as f64);
        // By the time of sending: what was sent after the refused one is taken off at the present rate.
        let (served, active) = self.tally.map_or((0.0, 0.0), |tally| {
            let later = now.since(sent).micros() as f64 / fast;
            let served = f64::from(tally.sends) - later - f64::from(tally.bad);
            (served.max(0.0), sent.since(tally.from).micros() as f64)
        });
        let is_first = self.phase == Phase::Start;
        let x = if is_first { 1.0 } else { self.x(config) };
        self.event = Some(Event { at: now, fast, x, served, active, is_first, is_merely_bad });
        self.pause = Some(now + Span::from_micros(2 * fast as u64));
        self.phase = Phase::Search;
        self
    }

    /// What the event says, now that something is served again.
    fn judge(&mut self, config: &Config, now: Instant, event: Event) {
        let Event { at, fast, x, served, active, is_first, is_merely_bad } = event;
        self.wall = (now.since(at).micros() as f64 - self.away - 4.0 * fast).max(0.0);
        let narrow = self.narrow(config);
        let is_enough = served >= ENOUGH;
        let is_long = self.wall > active / 2.0;
        let is_same = (served - self.before).max(self.before - served) <= served / 16.0 + 1.0;
        let mean = (active + self.wall) / served.max(1.0);
        if is_enough {
            self.borne = (active / served).max(fast).min(1.02 * self.borne);
        }
        if is_long && is_enough && is_same {
            (self.gap, self.span, self.wall) = (mean, WIDE[0], 0.0); // 5
        } else if is_long && is_enough && is_merely_bad && !is_first {
            self.wall = 0.0;
        } else if is_long && (is_first || self.span > 2.0 * narrow) {
            (self.gap, self.span) = (2.0 * fast, WIDE[1]);
        } else if is_long {
            self.span = (2.0 * self.span).min(WIDE[2]);
        } else if is_first {
            // The limit lies between the rate before the last doubling and this one, which a burst may have
            // hidden.
            (self.gap, self.span) = (1.15 * fast, 1.0 / 3.0);
        } else if x < EARLY || !is_enough {
            self.gap = fast / (1.0 - self.span); // 3
            let factor = if self.surprises < 0 { 2.0 } else { 1.0 };
            self.surprises = self.surprises.min(0).saturating_sub(1);
            self.span = (factor * self.span).min(WIDE[2]);
        } else {
            self.gap = 2.0 / (1.0 / fast + 1.0 / mean.max(fast)); // 2
            self.span = (self.span / 2.0).max(narrow);
            self.surprises = 0;
        }
        self.before = served;
        self.gap = self.gap.min(config.max.micros() as f64);
        self.tally = Some(Tally { from: now, sends: 0, bad: 0 });
        self.enter(Phase::Search, now);
    }

    /// Whether a refusal is the fault of the number in flight rather than of the rate: 7.
    fn is_crowd(&mut self, config: &Config, now: Instant) -> bool {
        let (usual, borne) = (self.usual, self.borne);
        // So many at a time serve as much as the rate that was borne.
        let serves = |slots: u32| usual / f64::from(slots.max(1)) <= 1.03 * borne;
        let crowd = &mut self.crowd;
        let fewer = crowd.cap.unwrap_or(crowd.now).saturating_sub(1).max(1);
        let is_capped = crowd.cap.is_some();
        if is_capped {
            let is_again = (now.since(crowd.refused).micros() as f64) < 8.0 * usual;
            crowd.refused = now;
            if is_again || !serves(fewer) {
                (crowd.cap, crowd.votes) = (None, -VOTES);
                self.gap *= 2.0;
                return false;
            }
        } else {
            let is_unusual = f64::from(crowd.now) > crowd.mean + 1.5 * crowd.stray;
            let vote = if is_unusual && crowd.now > 1 && serves(fewer) { 1 } else { -1 };
            // A doubt that stands is not made worse by more of the same.
            crowd.votes = if vote < 0 && crowd.votes <= 0 { crowd.votes } else { crowd.votes + vote };
            if crowd.votes < VOTES {
                return false;
            }
            crowd.votes = 0;
            // From here on the cap paces.
            self.gap = (self.gap / 2.0).max(config.min.micros() as f64);
        }
        (crowd.cap, crowd.capped) = (Some(fewer), now);
        true
    }

    /// Whether the rate is far below one that was borne.
    fn is_far_below(&self, config: &Config) -> bool {
        self.phase == Phase::Search && self.event.is_none() && self.pace(config) > FAR_BELOW * self.borne
    }

    /// The share that fails whatever the pace; no more than one in twenty is taken for that.
    fn noise(&self) -> f64 {
        (self.background / self.sampled.max(CLUSTER)).min(0.05)
    }

    fn enter(&mut self, phase: Phase, now: Instant) {
        self.phase = phase;
        self.entered = now;
        self.is_confirmed = false;
        self.clock = Span::ZERO;
    }
}

/// T where `m` is least.
fn dwell(config: &Config) -> f64 {
    DWELL * config.window.micros() as f64 / config.target
}

impl Policy for State {
    type Config = Config;
    const KEY: &'static str = "gap";
    const FINDS_PACE: bool = true;

    fn fresh(config: &Config) -> Self {
        Self::new(config)
    }

    fn on_send(self, config: &Config, sent: &Sent) -> Self {
        Self::on_send(self, config, sent.now, sent.flying)
    }

    fn on_end(self, config: &Config, ended: &Ended) -> Self {
        if ended.is_bad {
            self.on_bad(config, ended.now, ended.sent, ended.is_refusal, ended.asked)
        } else if ended.is_good {
            self.on_good(config, ended.now, ended.sent)
        } else {
            self
        }
    }

    fn gap(&self, config: &Config) -> Option<Span> {
        Some(Self::gap(self, config))
    }

    fn next(&self, config: &Config) -> Option<Instant> {
        Self::next(self, config)
    }

    fn pause(&self, _: &Config) -> Option<Instant> {
        self.paused()
    }

    fn slots(&self) -> u32 {
        Self::slots(self)
    }

    fn remember(&self, config: &Config, _: Instant) -> Option<f64> {
        (!self.is_fresh(config)).then(|| Self::gap(self, config).millis())
    }

    fn recall(self, config: &Config, _: Instant, _: Span, gap: f64) -> Self {
        self.settled_at(config, Span::from_millis(gap))
    }
}
