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
//!    to the other. That is the next `e`, if at least ten were accepted; the rate in between does not matter much,
//!    for a bucket is empty at both ends and a window is used up.
//! 3. After the first refusal `e` lies between the rate before the last doubling and this one (`m` spans them), or
//!    where `Retry-After` puts it: what was accepted in the last `d` seconds, divided by `d`. Then `m` narrows.
//! 4. *T* is the window ÷ backoffTarget: a constant limit is touched once in a window, and the cube makes the time spent
//!    above `e` short. What stays accepted up to e(1+m) means that the limit has moved: Start again from there.
//! 5. *Unused capacity is no evidence*: the curve's clock runs only while sends follow each other as closely as allowed.
//! 6. Answers that are merely bad (503, timeouts) count when the third comes within fifty sends, or when they say
//!    `Retry-After`.
//!
//! All in ratios of the present rate; the only absolute time is the half second of Start. Sources: the cube from CUBIC
//! (RFC 9438 §4.2), one event per flight and app-limited growth from RFC 9002 §7; rule 2 is the insight of BBR turned round.
//! The trap is the saw-tooth: a step back that is a guess (÷ 2) wastes capacity for ever; a measured one does not.

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

/// How fast Start doubles: after so much confirmed use.
const DOUBLING: Span = Span::from_micros(500_000);
/// How far the curve goes to both sides of a limit that was measured.
const NARROW: f64 = 0.04;
/// Where the curve ends, in T: at e(1 + 3.4m).
const END: f64 = 2.5;
/// T in windows ÷ backoffTarget.
const DWELL: f64 = 0.65;
/// A refusal that costs a wall is risked again after so many times its length.
const AFFORDABLE: f64 = 15.0;
/// How far it goes when a limit seems to have moved.
const WIDE: f64 = 0.15;
/// An event that brought more bad answers than one makes T longer, up to so many times.
const DEAREST: u32 = 4;
const SPREAD: f64 = 1.0;
const MOST_NARROW: f64 = 0.08;
const EARLY: f64 = 0.7;
/// How far it goes when a wall was measured by probing, which ends late.
const PROBED: f64 = 0.1;
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

/// Where one scope stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    phase: Phase,
    /// In Start the gap; else that of `e`, in microseconds.
    gap: f64,
    /// Used time in this phase.
    clock: Span,
    /// When the phase or its gap last changed: what was sent since is evidence.
    since: Instant,
    /// Whether there is such evidence.
    is_confirmed: bool,
    /// When the last event was: what was sent before is old news.
    event: Option<Instant>,
    /// The first success since the last event, and how many since.
    first: Option<Instant>,
    accepted: u32,
    /// How many there were before it, in what time, and whether they told the limit exactly.
    before: u32,
    active: Span,
    is_exact: bool,
    is_contested: bool,
    bad: u32,
    price: u32,
    is_steady: bool,
    /// The refusal before a wall: what is measured next counts from there.
    walled: Option<Instant>,
    /// The latest time from send to answer.
    away: Span,
    /// What the last refusal cost beyond its pause: nothing was accepted for so long.
    wall: Span,
    /// Refusals since the last event, with no success yet.
    refused: u32,
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
            since: Instant::from_micros(0),
            is_confirmed: false,
            event: None,
            first: None,
            accepted: 0,
            before: 0,
            active: Span::ZERO,
            is_exact: false,
            is_contested: false,
            bad: 0,
            price: 1,
            is_steady: false,
            walled: None,
            away: Span::ZERO,
            wall: Span::ZERO,
            refused: 0,
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
                let x = (self.clock.micros() as f64 / self.period(config, m)).min(END) - 1.0;
                self.gap / (1.0 + m * x * x * x)
            }
        };
        Span::from_micros(micros as u64 + 1).max(config.min).min(config.max)
    }

    /// As after a limit of this gap was found.
    #[must_use]
    pub fn settled_at(self, gap: Span) -> Self {
        Self { gap: gap.micros().max(1) as f64, phase: Phase::Curve { m: NARROW }, ..self }
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
            _ if self.event.is_some() && self.first.is_none() => {
                (self.away.micros() as f64 / self.gap / 2.0).clamp(2.0, 1e6) as u32
            }
            _ => u32::MAX,
        }
    }

    /// The first instant at which the next request may leave; `None` for at once. A quarter of the gap that a late
    /// timer lost is made up for.
    pub fn next(&self, config: &Config) -> Option<Instant> {
        self.due.map(|due| due + self.gap(config)).max(self.pause)
    }

    fn narrow(&self, config: &Config) -> f64 {
        let requests = config.window.micros() as f64 / self.gap;
        (SPREAD / requests.sqrt()).clamp(0.01, MOST_NARROW)
    }

    /// T: the wider the search, the shorter; never less than some requests.
    fn period(&self, config: &Config, m: f64) -> f64 {
        let price = f64::from(self.price.clamp(1, DEAREST));
        let window = (DWELL * price * config.window.micros() as f64 / config.target)
            .max(if self.is_exact { 0.0 } else { AFFORDABLE * self.wall.micros() as f64 });
        (window * (self.narrow(config) / m) * (self.narrow(config) / m)).max(16.0 * self.gap).max(6.0 * self.away.micros() as f64)
    }

    /// A request leaves.
    #[must_use]
    pub fn on_send(mut self, config: &Config, now: Instant) -> Self {
        let gap = self.gap(config);
        if let Some(last) = self.last
            && (self.event.is_none() || self.first.is_some())
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
        self.is_confirmed |= sent >= self.since;
        if self.event.is_some_and(|event| sent < event) {
            return self;
        }
        match self.first {
            None => {
                let usual = self.away + Span::from_micros(4 * self.gap as u64);
                self.wall = self.event.map_or(Span::ZERO, |event| now.since(event) - usual);
                self.first = Some(now);
            }
            Some(_) => self.accepted = self.accepted.saturating_add(1),
        }
        self.recent.rotate_right(1);
        self.recent[0] = Some(now);
        match self.phase {
            Phase::Wall { .. } => self.on_open(config, now),
            Phase::Start if self.is_confirmed && self.clock >= DOUBLING => {
                self.gap = (self.gap / 2.0).max(1.0).max(config.min.micros() as f64);
                self.enter(Phase::Start, now);
            }
            Phase::Curve { m }
                if self.is_confirmed && self.clock.micros() as f64 >= END * self.period(config, m) * if self.is_contested { 2.0 } else { 1.0 } =>
            {
                self.gap = self.gap(config).micros() as f64 * (1.0 - WIDE); // 4
                self.enter(Phase::Curve { m: WIDE.max(m) }, now);
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
        self.bad += 1;
        if self.event.is_some_and(|event| sent < event) {
            return self; // 1
        }
        if !is_refusal && asked.is_none() {
            self.strikes += 1;
            if self.strikes < 3 {
                return self; // 6
            }
        }
        self.strikes = 0;
        if self.first.is_none() && self.event.is_some() {
            return self.on_wall(config, now, sent);
        }
        let fast = self.gap(config).micros() as f64;
        // A window that was used up for most of the time is measured with that time, anything else without.
        let walled = self
            .walled
            .zip(self.first)
            .filter(|(wall, first)| now.since(*first) < first.since(*wall).times(3.0));
        // As many as before the last wall: a window.
        let is_same = self.accepted.abs_diff(self.before) <= self.before / 16 + 1;
        let walled = walled.filter(|_| is_same);
        let was_walled = walled.is_some() && self.accepted >= ENOUGH;
        let from = walled.map(|(wall, _)| wall).or(self.first).filter(|_| self.accepted >= ENOUGH);
        // What the server asks for is cut to seconds: at least so long, then, nothing more was to be had.
        let rest = asked.map_or(Span::ZERO, |asked| asked - Span::from_micros(1_000_000));
        let is_told = from.is_some() && rest.micros() as f64 > 3.0 * fast;
        let rest = if is_told { rest } else { Span::ZERO };
        let measured =
            from.map(|from| (now.since(from) + rest).micros() as f64 / f64::from(self.accepted)); // 2
        let was_walled = was_walled || is_told;
        let guess = self.guess(now, asked).filter(|guess| (fast..=2.02 * fast).contains(guess));
        let slow = match (self.phase, measured) {
            (_, Some(measured)) if was_walled => measured.max(fast),
            (Phase::Start, _) => guess.unwrap_or(2.0 * fast),
            (_, Some(measured)) => measured.max(fast),
            (Phase::Curve { m }, None) if m <= MOST_NARROW && self.is_contested => 1.15 * fast,
            (Phase::Curve { m }, None) if m <= MOST_NARROW => {
                let rough = self.first.map_or(Span::ZERO, |first| now.since(first)).micros() as f64;
                (rough / f64::from(self.accepted.max(1))).clamp(1.15 * fast, 3.0 * fast)
            }
            (_, None) => fast / 0.7,
        };
        // The limit lies between both rates; an exhausted window says it exactly.
        let is_narrow = measured.is_none() && matches!(self.phase, Phase::Curve { m } if m <= MOST_NARROW);
        let is_known = was_walled || is_narrow || guess.is_some() && self.phase == Phase::Start;
        let (slow_rate, fast_rate) = (1.0 / slow, 1.0 / fast);
        let rate = if is_known { slow_rate } else { (slow_rate + fast_rate) / 2.0 };
        let m =
            if is_known { self.narrow(config) } else { ((fast_rate - slow_rate) / (fast_rate + slow_rate)).max(self.narrow(config)) };
        self.is_contested = matches!(self.phase, Phase::Curve { m } if m <= MOST_NARROW && (self.clock.micros() as f64) < EARLY * self.period(config, m));
        self.gap = (1.0 / rate).min(config.max.micros() as f64);
        self.pause = Some(now + Span::from_micros(2 * fast as u64));
        (self.price, self.bad) = (self.bad, 0);
        self.before = self.accepted;
        self.active = self.first.map_or(Span::ZERO, |first| now.since(first));
        self.is_exact = was_walled;
        self.is_steady = measured.is_some_and(|measured| measured < 1.25 * fast);
        (self.event, self.first, self.accepted, self.refused, self.walled) = (Some(now), None, 0, 0, None);
        self.enter(Phase::Curve { m }, now);
        self
    }

    /// The wall is over. One that was longer than the time before it says that this was far too fast.
    fn on_open(&mut self, config: &Config, now: Instant) {
        let m = if self.is_exact {
            PROBED
        } else if self.wall >= self.active {
            self.gap *= 2.0;
            WIDE
        } else {
            if self.is_steady && self.wall.times(8.0) < self.active {
                let both = (self.wall + self.active).micros() as f64;
                self.gap = self.gap.max(both / f64::from(self.before));
            }
            self.narrow(config)
        };
        self.enter(Phase::Curve { m }, now);
    }

    /// Refused again, and nothing was accepted in between.
    fn on_wall(mut self, config: &Config, now: Instant, sent: Instant) -> Self {
        self.refused += 1;
        let gap = self.gap(config).micros() as f64;
        let is_far = now.since(sent).micros() as f64 > 3.0 * gap;
        let pauses = match self.phase {
            Phase::Wall { pauses } => pauses,
            _ if is_far && self.refused < 3 => return self,
            _ => 1,
        };
        self.walled = self.walled.or(self.event);
        let span = gap * f64::from(1_u32 << pauses.min(20));
        self.pause = Some(now + Span::from_micros(span as u64).min(config.max));
        self.event = Some(now);
        self.enter(Phase::Wall { pauses: pauses + 1 }, now);
        self
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
        self.since = now;
        self.is_confirmed = false;
        self.clock = Span::ZERO;
    }
}
