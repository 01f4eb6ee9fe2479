//! Rampup: find the rate at which a server begins to refuse, and stay just below it.
//!
//! ```text
//! Start   double the rate every half second of confirmed use, until the first refusal
//! Curve   r(x) = e · (1 + m·(x − 1)³),  x = used time / T:  from e(1−m), slowly through e, on to e(1+m)
//! Wall    refused again before anything was accepted: single probes, each wait twice as long
//! ```
//!
//! 1. *One event per flight.* A refusal of what was sent before the last event is old news.
//! 2. *The server tells its limit between two refusals*: requests accepted ÷ time, from the first success after the one
//!    to the other. That is a lower bound, if at least ten were accepted, and the rate that was refused an upper one: the next `e` lies
//!    three quarters up, or one quarter after an early touch (x < 0.7). The rate in between does not matter much, for a bucket is empty at both
//!    ends and a window is used up. With `Retry-After` the wait that it asks for is part of that time.
//! 3. After the first refusal `e` lies between the rate before the last doubling and this one (`m` spans them), or
//!    where `Retry-After` puts it: what was accepted in the last `d` seconds, divided by `d`. Then `m` narrows, to one
//!    over the square root of the requests in a window: that far chance alone moves a count, and small clients gain on big ones.
//! 4. *T* is 0.8 windows ÷ backoffTarget, so a constant limit is touched less than once in that time. Around a measured limit it is twice as long
//!    when the last touch brought more than one refusal; and never less than fifteen times the wall that followed.
//!    What stays accepted up to x = 2 means that the limit has moved: Start again from there, with a wide `m`.
//! 5. *Unused capacity is no evidence*: the curve's clock runs only while sends follow each other as closely as allowed.
//! 6. Answers that are merely bad (503, timeouts) count when the third comes within fifty sends, or when they say
//!    `Retry-After`.
//! 7. *A wall is a window or a ban.* As many accepted as before the last one: a window, and its limit is that count ÷ the time with
//!    the wall. A wall longer than the time before it, and another count: far too fast, so half of it.
//! 8. Refused early (x < 0.7) there are others on the same limit: three times as long before it is said to have moved.
//!
//! All in ratios of the present rate; the only absolute time is the half second of Start. Sources: the cube from CUBIC
//! (RFC 9438 §4.2), one event per flight and app-limited growth from RFC 9002 §7; rule 2 is the insight of BBR turned round.
//! The trap is the saw-tooth: a step back that is a guess (÷ 2) wastes capacity for ever; a measured one does not.

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

/// T in windows ÷ backoffTarget: a little less, for touches that are missed by chance.
const DWELL: f64 = 0.8;
/// How fast Start doubles: after so much confirmed use.
const DOUBLING: Span = Span::from_micros(500_000);
/// Where the curve ends, in T: at e(1 + m).
const END: f64 = 2.0;
/// The same among others.
const CONTESTED_END: f64 = 6.0;
/// An event before so much of T is early.
const EARLY: f64 = 0.7;
/// How far the curve goes to both sides of a limit that was measured: least and most of 1 ÷ √(requests in a window).
const NARROW: [f64; 2] = [0.01, 0.08];
/// How far it goes when a limit seems to have moved.
const WIDE: f64 = 0.15;
/// How far it goes when a wall was measured by probing, which ends late.
const PROBED: f64 = 0.1;
/// An event that brought more bad answers than one makes T longer, up to so many times.
const DEAREST: u32 = 2;
/// A refusal that costs a wall is risked again after so many times its length.
const AFFORDABLE: f64 = 15.0;
/// So many accepted requests make a measurement.
const ENOUGH: u32 = 10;
/// Merely bad answers within so many sends are an event when there are three.
const CLUSTER: u32 = 50;
/// Instants of acceptance that are remembered for rule 3.
const RECENT: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Start,
    Curve { m: f64 },
    Wall { pauses: u32 },
}

/// The last event, and what led to it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Event {
    at: Instant,
    /// Accepted since the one before, and in what time.
    accepted: u32,
    active: Span,
    /// Whether they told the limit exactly (a window), or at least at an even rate.
    is_exact: bool,
    is_even: bool,
    is_early: bool,
    /// Bad answers that the event before brought.
    price: u32,
}

/// What came since the last event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Since {
    /// The first success, and how many more.
    first: Option<Instant>,
    accepted: u32,
    bad: u32,
    /// Events of a wall, without a success in between.
    refused: u32,
    /// The refusal before a wall: a window is measured from there.
    walled: Option<Instant>,
}

/// Where one scope stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    phase: Phase,
    /// In Start the gap; else that of `e`, in microseconds.
    gap: f64,
    /// Used time in this phase.
    clock: Span,
    /// When the phase or its gap last changed: what was sent since is evidence.
    entered: Instant,
    /// Whether there is such evidence.
    is_confirmed: bool,
    event: Option<Event>,
    since: Since,
    /// The latest time from send to answer.
    away: Span,
    /// What the last event cost beyond its pause: nothing was accepted for so long.
    wall: Span,
    recent: [Option<Instant>; RECENT],
    /// The nominal time of the last send; late timers are made up for by it.
    due: Option<Instant>,
    last: Option<Instant>,
    /// Nothing before this.
    pause: Option<Instant>,
    sends: u32,
    strikes: u32,
}

impl State {
    /// Before the first request.
    pub fn new(config: &Config) -> Self {
        Self {
            phase: Phase::Start,
            gap: config.start.max(config.min).micros().max(1) as f64,
            clock: Span::ZERO,
            entered: Instant::from_micros(0),
            is_confirmed: false,
            event: None,
            since: Since::default(),
            away: Span::ZERO,
            wall: Span::ZERO,
            recent: [None; RECENT],
            due: None,
            last: None,
            pause: None,
            sends: 0,
            strikes: 0,
        }
    }

    /// The gap in force.
    pub fn gap(&self, config: &Config) -> Span {
        let micros = match self.phase {
            Phase::Start => self.gap,
            Phase::Wall { .. } => self.gap / (1.0 - self.narrow(config)),
            Phase::Curve { m } => {
                let x = self.x(config, m).min(END) - 1.0;
                self.gap / (1.0 + m * x * x * x)
            }
        };
        Span::from_micros(micros as u64 + 1).max(config.min).min(config.max)
    }

    /// As after a limit of this gap was found.
    #[must_use]
    pub fn settled_at(self, config: &Config, gap: Span) -> Self {
        let settled = Self { gap: gap.micros().max(1) as f64, ..self };
        Self { phase: Phase::Curve { m: settled.narrow(config) }, ..settled }
    }

    /// Until when nothing is sent after a refusal.
    pub fn paused(&self) -> Option<Instant> {
        self.pause
    }

    /// Probing a wall takes one request at a time; and until something was accepted after an event, no more than half of
    /// what is usually on its way.
    pub fn slots(&self) -> u32 {
        match self.phase {
            Phase::Wall { .. } => 1,
            _ if self.is_shut() => (self.away.micros() as f64 / self.gap / 2.0).clamp(2.0, 1e6) as u32,
            _ => u32::MAX,
        }
    }

    /// The first instant at which the next request may leave; `None` for at once. A quarter of the gap that a late
    /// timer lost is made up for.
    pub fn next(&self, config: &Config) -> Option<Instant> {
        self.due.map(|due| due + self.gap(config)).max(self.pause)
    }

    /// Nothing was accepted since the last event.
    fn is_shut(&self) -> bool {
        self.event.is_some() && self.since.first.is_none()
    }

    /// The `m` of a limit that was measured.
    fn narrow(&self, config: &Config) -> f64 {
        let requests = config.window.micros() as f64 / self.gap;
        (1.0 / requests.sqrt()).clamp(NARROW[0], NARROW[1])
    }

    /// Whether the curve is one around a limit that was measured.
    fn is_narrow(&self) -> bool {
        matches!(self.phase, Phase::Curve { m } if m <= NARROW[1])
    }

    fn is_contested(&self) -> bool {
        self.event.is_some_and(|event| event.is_early)
    }

    /// Where on the curve.
    fn x(&self, config: &Config, m: f64) -> f64 {
        self.clock.micros() as f64 / self.period(config, m)
    }

    /// T: the wider the search, the shorter; never less than some requests.
    fn period(&self, config: &Config, m: f64) -> f64 {
        let price = self.event.filter(|_| self.is_narrow()).map_or(1, |event| event.price.clamp(1, DEAREST));
        let is_exact = self.event.is_some_and(|event| event.is_exact);
        let wall = if is_exact { 0.0 } else { AFFORDABLE * self.wall.micros() as f64 };
        let window = (DWELL * f64::from(price) * config.window.micros() as f64 / config.target).max(wall);
        let share = self.narrow(config) / m;
        (window * share * share).max(16.0 * self.gap).max(6.0 * self.away.micros() as f64)
    }

    /// A request leaves.
    #[must_use]
    pub fn on_send(mut self, config: &Config, now: Instant) -> Self {
        let gap = self.gap(config);
        if let Some(last) = self.last
            && !self.is_shut()
        {
            let elapsed = now.since(last);
            let is_used = elapsed.micros() <= gap.micros() + gap.micros() / 3; // 5
            self.clock = self.clock + if is_used { elapsed } else { Span::ZERO };
        }
        let carry = Span::from_micros(gap.micros() / 4);
        let nominal = self.due.map(|due| due + gap).filter(|&due| due <= now && due + carry >= now);
        self.due = nominal.or(Some(now));
        self.last = Some(now);
        self.sends = self.sends.wrapping_add(1);
        if self.sends.is_multiple_of(CLUSTER) {
            self.strikes = 0;
        }
        self
    }

    /// The request that was sent at `sent` was served.
    #[must_use]
    pub fn on_good(mut self, config: &Config, now: Instant, sent: Instant) -> Self {
        self.away = now.since(sent);
        self.is_confirmed |= sent >= self.entered;
        if self.event.is_some_and(|event| sent < event.at) {
            return self;
        }
        if self.since.first.is_some() {
            self.since.accepted = self.since.accepted.saturating_add(1);
        } else {
            let usual = self.away + Span::from_micros(4 * self.gap as u64);
            self.wall = self.event.map_or(Span::ZERO, |event| now.since(event.at) - usual);
            self.since.first = Some(now);
        }
        self.recent.rotate_right(1);
        self.recent[0] = Some(now);
        match self.phase {
            Phase::Wall { .. } => self.on_open(config, now),
            Phase::Start if self.is_confirmed && self.clock >= DOUBLING => {
                self.gap = (self.gap / 2.0).max(1.0).max(config.min.micros() as f64);
                self.enter(Phase::Start, now);
            }
            Phase::Curve { m } if self.is_confirmed => {
                let end = if self.is_contested() { CONTESTED_END } else { END };
                if self.x(config, m) >= end {
                    self.gap = self.gap(config).micros() as f64 * (1.0 - WIDE); // 4
                    self.enter(Phase::Curve { m: WIDE.max(m) }, now);
                }
            }
            Phase::Start | Phase::Curve { .. } => {}
        }
        self
    }

    /// The request that was sent at `sent` was refused; `asked` is how long the server wants to be left alone.
    /// `is_refusal`: it said so plainly (429), and is not merely failing.
    #[must_use]
    pub fn on_bad(
        mut self,
        config: &Config,
        now: Instant,
        sent: Instant,
        is_refusal: bool,
        asked: Option<Span>,
    ) -> Self {
        self.since.bad += 1;
        if self.event.is_some_and(|event| sent < event.at) {
            return self; // 1
        }
        if !is_refusal && asked.is_none() {
            self.strikes += 1;
            if self.strikes < 3 {
                return self; // 6
            }
        }
        self.strikes = 0;
        if self.is_shut() {
            return self.on_wall(config, now, sent);
        }
        self.on_event(config, now, asked);
        self
    }

    /// Refused, and something was accepted before: a measurement.
    fn on_event(&mut self, config: &Config, now: Instant, asked: Option<Span>) {
        let Since { first, accepted, bad, .. } = self.since;
        let fast = self.gap(config).micros() as f64;
        let active = first.map_or(Span::ZERO, |first| now.since(first));
        let window = self.window_from(now);
        // What the server asks for is cut to seconds: at least so long, then, nothing more was to be had.
        let rest = asked.map_or(Span::ZERO, |asked| asked - Span::from_micros(1_000_000));
        let is_told = accepted >= ENOUGH && rest.micros() as f64 > 3.0 * fast;
        let time = window.map_or(active, |from| now.since(from)) + if is_told { rest } else { Span::ZERO };
        let measured = (accepted >= ENOUGH).then(|| time.micros() as f64 / f64::from(accepted)); // 2
        let is_exact = window.is_some() || is_told;
        let guess = self.guess(now, asked).filter(|guess| (fast..=2.02 * fast).contains(guess)); // 3
        let guess = guess.filter(|_| self.phase == Phase::Start);
        let slow = match (self.phase, measured) {
            (Phase::Start, _) if !is_exact => guess.unwrap_or(2.0 * fast),
            (_, Some(measured)) => measured.max(fast),
            (_, None) if self.is_narrow() && self.is_contested() => 1.15 * fast,
            (_, None) if self.is_narrow() => {
                // Not `clamp`: its panic prints floats, which is eighteen kilobytes of WebAssembly.
                (active.micros() as f64 / f64::from(accepted.max(1))).max(1.15 * fast).min(3.0 * fast)
            }
            (_, None) => fast / 0.7,
        };
        // The limit lies between both rates, unless one of them is it.
        let is_known = is_exact || guess.is_some() || measured.is_none() && self.is_narrow();
        let (slow_rate, fast_rate) = (1.0 / slow, 1.0 / fast);
        // A touch that comes late is near the limit; an early one says that the last `e` was too high.
        let is_early = matches!(self.phase, Phase::Curve { m } if self.x(config, m) < EARLY);
        let place = if is_early { 0.25 } else { 0.75 };
        let rate = if is_known { slow_rate } else { slow_rate + (fast_rate - slow_rate) * place };
        let spread = if is_known { 0.0 } else { (fast_rate - slow_rate) / (fast_rate + slow_rate) };
        let narrow = if is_told && rest > active { PROBED } else { self.narrow(config) };
        self.event = Some(Event {
            at: now,
            accepted,
            active,
            is_exact,
            is_even: measured.is_some_and(|measured| measured < 1.25 * fast),
            is_early: is_early && self.is_narrow(),
            price: bad,
        });
        self.since = Since::default();
        self.gap = (1.0 / rate).min(config.max.micros() as f64);
        self.pause = Some(now + Span::from_micros(2 * fast as u64));
        self.enter(Phase::Curve { m: spread.max(narrow) }, now);
    }

    /// The refusal before a wall, if what has been accepted since was a window's: as much as before that wall, and used up
    /// in less than three times its length.
    fn window_from(&self, now: Instant) -> Option<Instant> {
        let Since { first, accepted, walled, .. } = self.since;
        let (walled, first) = walled.zip(first)?;
        let is_brief = now.since(first) < first.since(walled).times(3.0);
        let before = self.event.map_or(0, |event| event.accepted);
        let is_same = accepted.abs_diff(before) <= before / 16 + 1;
        (is_brief && is_same && accepted >= ENOUGH).then_some(walled)
    }

    /// Refused again, and nothing was accepted in between.
    fn on_wall(mut self, config: &Config, now: Instant, sent: Instant) -> Self {
        self.since.refused += 1;
        let gap = self.gap(config).micros() as f64;
        let is_far = now.since(sent).micros() as f64 > 3.0 * gap;
        let pauses = match self.phase {
            Phase::Wall { pauses } => pauses,
            _ if is_far && self.since.refused < 3 => return self,
            _ => 1,
        };
        let Some(event) = &mut self.event else { return self };
        self.since.walled = self.since.walled.or(Some(event.at));
        event.at = now;
        let span = gap * f64::from(1_u32 << pauses.min(20));
        self.pause = Some(now + Span::from_micros(span as u64).min(config.max));
        self.enter(Phase::Wall { pauses: pauses + 1 }, now);
        self
    }

    /// The wall is over: 7.
    fn on_open(&mut self, config: &Config, now: Instant) {
        let Some(event) = self.event else { return };
        let m = if event.is_exact {
            PROBED
        } else if self.wall >= event.active {
            self.gap *= 2.0;
            WIDE
        } else {
            if event.is_even && self.wall.times(8.0) < event.active {
                let both = (self.wall + event.active).micros() as f64;
                self.gap = self.gap.max(both / f64::from(event.accepted));
            }
            self.narrow(config)
        };
        self.enter(Phase::Curve { m }, now);
    }

    /// Rule 3: what was accepted in the last `asked`, as a gap; if all of it is remembered.
    fn guess(&self, now: Instant, asked: Option<Span>) -> Option<f64> {
        let asked = asked.filter(|&asked| asked > Span::ZERO)?;
        let most = asked + Span::from_micros(asked.micros() / 32); // the network is not that even
        let count = self.recent.iter().flatten().filter(|&&at| now.since(at) <= most).count();
        (3..RECENT).contains(&count).then(|| asked.micros() as f64 / count as f64)
    }

    fn enter(&mut self, phase: Phase, now: Instant) {
        self.phase = phase;
        self.entered = now;
        self.is_confirmed = false;
        self.clock = Span::ZERO;
    }
}

impl Policy for State {
    type Config = Config;
    const KEY: &'static str = "gap";
    const FINDS_PACE: bool = true;

    fn fresh(config: &Config) -> Self {
        Self::new(config)
    }

    fn on_send(self, config: &Config, sent: &Sent) -> Self {
        Self::on_send(self, config, sent.now)
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
