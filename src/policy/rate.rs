//! Rate: so many requests per span, evenly spaced, and at most `burst` of them at once after an idle time.
//!
//! The generic cell rate algorithm (ITU-T I.371, annex A; `limit_req` of nginx and Redis' `CELL_THROTTLE` are
//! kin). One instant is the whole state: the *theoretical arrival time*, when the next request would come if
//! all came evenly. With `gap = per / limit`:
//! 1. a request may leave when now ≥ arrival − (burst − 1) × gap;
//! 2. it moves the arrival on by one gap, from now if the arrival is over;
//! 3. a send that was late because the driver's timer was late does not move the schedule: it goes on from
//!    when the request was due, though never more than one gap behind. Late by more than [`GRACE`], or with
//!    nobody waiting when it was due, it is idle time, and rule 2 counts.
//!
//! By 1 and 2 no span of `per` holds more than limit + burst − 1 requests; rule 3 adds one at most.
//!
//! The traps: a gap of 333 333.3… µs that is rounded drifts by a request a day, so the part of a microsecond
//! is carried along. And without rule 3 timers that are always a millisecond late cost a client of 100 a
//! second a tenth of its rate.

use super::{Numbers, Policy, Sent};
use crate::{
    rng::Draw,
    time::{Instant, LONGEST_MS, Span},
};

/// How late a send may be and still be on time: timers of browsers and busy event loops are. It is less than
/// what a person or a slow answer takes.
pub const GRACE: Span = Span::from_micros(50_000);

/// Limits are kept in millionths, so that 0.0055 a second is exact.
const MILLION: u64 = 1_000_000;

/// Whole microseconds, and parts of one more: `parts` of [`Config::of`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Exact {
    micros: u64,
    parts: u64,
}

/// What one scope's rate was told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    gap: Exact,
    /// How far the arrival time may lie ahead: burst − 1 gaps.
    tolerance: Exact,
    /// The parts of a microsecond.
    of: u64,
    /// How much of a gap a request may be put off by chance.
    spread: f64,
}

/// The schedule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    /// The theoretical arrival time of the next request.
    arrival: Exact,
    /// Puts the next request off, where a jitter is wanted.
    draw: Draw,
    /// Since when somebody has been waiting, if anybody is.
    waiting: Instant,
}

impl Config {
    /// `limit` millionths of a request per span; `None` where that is less than one request a year.
    pub fn new(limit: u64, per: Span, burst: u32) -> Option<Self> {
        let total = u128::from(per.micros()) * u128::from(MILLION);
        let of = limit.max(1);
        let gaps = |count: u32| {
            let total = total * u128::from(count);
            let micros = u64::try_from(total / u128::from(of)).ok()?;
            Some(Exact { micros, parts: (total % u128::from(of)) as u64 })
        };
        let gap = gaps(1)?;
        let is_sane = limit > 0 && gap.micros <= Span::from_millis(LONGEST_MS).micros();
        is_sane.then_some(Self { gap, tolerance: gaps(burst.max(1) - 1)?, of, spread: 0.0 })
    }

    /// Puts each request off by up to this share of a gap, at most a whole one. The mean stays.
    #[must_use]
    pub fn spread(self, spread: f64) -> Self {
        Self { spread: spread.min(1.0), ..self }
    }

    /// The time between two requests, rounded up.
    pub fn gap(&self) -> Span {
        Span::from_micros(self.gap.micros + u64::from(self.gap.parts > 0))
    }

    /// How far ahead the schedule may be: what a burst uses up.
    fn longest(&self) -> Span {
        self.gap() + Span::from_micros(self.tolerance.micros + 1)
    }

    fn later(&self, time: Exact, by: Exact) -> Exact {
        let parts = time.parts + by.parts;
        let carry = u64::from(parts >= self.of);
        Exact {
            micros: time.micros.saturating_add(by.micros).saturating_add(carry),
            parts: parts - carry * self.of,
        }
    }

    fn earlier(&self, time: Exact, by: Exact) -> Exact {
        if time < by {
            return Exact::default();
        }
        let borrow = u64::from(time.parts < by.parts);
        Exact { micros: time.micros - by.micros - borrow, parts: time.parts + borrow * self.of - by.parts }
    }
}

impl State {
    /// Nothing sent yet.
    pub const NEW: Self =
        Self { arrival: Exact { micros: 0, parts: 0 }, draw: Draw::MIDDLE, waiting: Instant::from_micros(0) };

    /// The first instant at which a request may leave (rule 1).
    pub fn next(&self, config: &Config) -> Instant {
        let due = config.earlier(self.arrival, config.tolerance);
        let due = Instant::from_micros(due.micros + u64::from(due.parts > 0));
        if config.spread == 0.0 || self.arrival == Exact::default() {
            return due;
        }
        due + config.gap().times(config.spread * self.draw.unit())
    }

    /// Somebody waits from now on, and nobody did.
    #[must_use]
    pub fn on_wait(self, now: Instant) -> Self {
        Self { waiting: now, ..self }
    }

    /// A request left (rules 2 and 3).
    #[must_use]
    pub fn on_send(self, config: &Config, now: Instant, draw: Draw) -> Self {
        let due = self.next(config);
        let time = Exact { micros: now.micros(), parts: 0 };
        let is_late = self.arrival != Exact::default() && self.waiting <= due && now.since(due) <= GRACE;
        let from = if self.arrival >= time {
            self.arrival
        } else if is_late && config.tolerance == Exact::default() {
            self.arrival.max(config.earlier(time, config.gap)) // 3
        } else {
            time
        };
        Self { arrival: config.later(from, config.gap), draw, ..self }
    }

    /// Another rate, felt at once: what was sent counts as many gaps as before, now of the new length.
    /// `last` is the last send.
    #[must_use]
    pub fn on_configure(self, old: Option<&Config>, new: &Config, last: Option<Instant>) -> Self {
        let Some(last) = last else { return self };
        let ahead = match old {
            Some(old) => {
                let ahead = self.arrival.micros.saturating_sub(last.micros());
                let scaled = u128::from(ahead) * u128::from(new.gap().micros())
                    / u128::from(old.gap().micros().max(1));
                Span::from_micros(u64::try_from(scaled).unwrap_or(u64::MAX))
            }
            None => new.gap(),
        };
        Self { arrival: Exact { micros: (last + ahead.min(new.longest())).micros(), parts: 0 }, ..self }
    }

    /// How far ahead of now the schedule is; nothing where a whole burst may leave.
    pub fn ahead(&self, now: Instant) -> Span {
        let arrival = self.arrival.micros + u64::from(self.arrival.parts > 0);
        Instant::from_micros(arrival).since(now)
    }

    /// The schedule that was so far ahead of now.
    #[must_use]
    pub fn restored(config: &Config, now: Instant, ahead: Span) -> Self {
        let arrival = now + ahead.min(config.longest());
        Self { arrival: Exact { micros: arrival.micros(), parts: 0 }, ..Self::NEW }
    }
}

impl Policy for State {
    type Config = Config;
    const KEYS: &'static [(&'static str, f64)] = &[("rateAhead", LONGEST_MS)];

    fn fresh(_: &Config) -> Self {
        Self::NEW
    }

    fn turned_on(config: &Config, last: Option<Instant>) -> Self {
        Self::NEW.on_configure(None, config, last)
    }

    fn on_configure(self, old: &Config, new: &Config, last: Option<Instant>) -> Self {
        Self::on_configure(self, Some(old), new, last)
    }

    fn on_wait(self, now: Instant) -> Self {
        Self::on_wait(self, now)
    }

    fn on_send(self, config: &Config, sent: &Sent) -> Self {
        Self::on_send(self, config, sent.now, sent.draw)
    }

    /// What was sent is no knowledge that could be forgotten.
    fn reset(self, _: &Config) -> Self {
        self
    }

    fn gap(&self, config: &Config) -> Option<Span> {
        Some(config.gap())
    }

    fn next(&self, config: &Config) -> Option<Instant> {
        Some(Self::next(self, config))
    }

    fn is_fresh(&self, _: &Config) -> bool {
        true
    }

    fn is_free(&self, now: Instant) -> bool {
        self.ahead(now) == Span::ZERO
    }

    fn remember(&self, _: &Config, now: Instant) -> Numbers {
        [Some(self.ahead(now).millis()).filter(|&ahead| ahead > 0.0), None, None]
    }

    fn recall(self, config: &Config, now: Instant, offline: Span, [ahead, ..]: Numbers) -> Self {
        Self::restored(config, now, Span::from_millis(ahead.unwrap_or(0.0)) - offline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    const HOUR: u64 = 3_600_000_000;

    fn rate(limit: u64, per_ms: f64, burst: u32) -> Config {
        Config::new(limit * MILLION, Span::from_millis(per_ms), burst).expect("a rate")
    }

    /// Something always waits; each timer is late by up to `late` microseconds. Instants of all sends.
    fn busy(config: &Config, late: u64, until: u64) -> Vec<u64> {
        let (mut state, mut rng) = (State::NEW, Rng::new(1));
        let (mut sends, mut now) = (Vec::new(), 0);
        loop {
            let due = state.next(config).micros();
            if due > now {
                now = due + (rng.draw().unit() * late as f64) as u64;
            }
            if now >= until {
                return sends;
            }
            state = state.on_send(config, Instant::from_micros(now), rng.draw());
            sends.push(now);
        }
    }

    fn most_in(sends: &[u64], per: u64) -> usize {
        let ends = sends.iter().map(|&from| sends.partition_point(|&at| at < from + per));
        ends.enumerate().map(|(index, end)| end - index).max().unwrap_or(0)
    }

    #[test]
    fn an_hour_is_exact_also_where_the_gap_is_no_whole_microsecond_and_timers_are_late() {
        for limit in [1, 3, 5, 7, 13, 60, 97, 300] {
            for late in [0, 1000, 4000, 30_000] {
                for burst in [1, 2, 10] {
                    let config = rate(limit, 1000.0, burst);
                    let sends = busy(&config, late, HOUR);
                    let exact = limit * 3600;
                    let most = most_in(&sends, 1_000_000) as u64;
                    assert!(most <= limit + u64::from(burst), "{limit}/s, {late} late, {burst}: {most}");
                    let bearable = 1_000_000 / limit * u64::from(burst - 1).max(1);
                    if late <= bearable {
                        let span = exact..=exact + u64::from(burst);
                        assert!(span.contains(&(sends.len() as u64)), "{limit}/s, {late}: {}", sends.len());
                    }
                }
            }
        }
    }

    #[test]
    fn no_two_sends_are_closer_than_the_gap_where_timers_are_exact() {
        let config = rate(100, 60_000.0, 1);
        for pair in busy(&config, 0, HOUR).windows(2) {
            assert_eq!(pair[1] - pair[0], 600_000);
        }
        let config = rate(3, 1000.0, 1);
        for pair in busy(&config, 0, HOUR).windows(2) {
            assert!((333_333..=333_334).contains(&(pair[1] - pair[0])));
        }
    }

    #[test]
    fn a_burst_follows_idle_time_and_nothing_else() {
        let config = rate(2, 1000.0, 4);
        let sends = busy(&config, 0, 3_000_000);
        assert_eq!(sends, [0, 0, 0, 0, 500_000, 1_000_000, 1_500_000, 2_000_000, 2_500_000]);
    }

    #[test]
    fn idle_time_is_no_lateness() {
        let config = rate(1, 1000.0, 1);
        let at = Instant::from_micros;
        let sent = State::NEW.on_send(&config, at(0), Draw::MIDDLE);
        // Nobody waited at 1 s: the request of 1.02 s starts the schedule anew.
        let idle = sent.on_wait(at(1_020_000)).on_send(&config, at(1_020_000), Draw::MIDDLE);
        assert_eq!(idle.next(&config), at(2_020_000));
        let late = sent.on_wait(at(10)).on_send(&config, at(1_020_000), Draw::MIDDLE);
        assert_eq!(late.next(&config), at(2_000_000));
        let very = sent.on_wait(at(10)).on_send(&config, at(1_060_000), Draw::MIDDLE);
        assert_eq!(very.next(&config), at(2_060_000));
    }

    #[test]
    fn a_spread_is_behind_the_schedule_never_ahead_of_it() {
        let config = rate(5, 1000.0, 1);
        let spread = config.spread(0.5);
        let mut rng = Rng::new(1);
        for _ in 0..100 {
            let sent = State::NEW.on_send(&spread, Instant::from_micros(7), rng.draw());
            let strays = sent.next(&spread).since(sent.next(&config));
            assert!(sent.next(&spread) >= sent.next(&config) && strays.micros() <= 100_000, "{strays:?}");
        }
    }

    #[test]
    fn a_spread_keeps_the_mean_and_the_bound() {
        for spread in [0.4, 1.0, 2.0] {
            let config = rate(5, 1000.0, 1).spread(spread);
            let sends = busy(&config, 2000, HOUR);
            assert!((17_998..=18_001).contains(&sends.len()), "{spread}: {}", sends.len());
            assert!(most_in(&sends, 1_000_000) <= 6);
            let gaps: Vec<u64> = sends.windows(2).map(|pair| pair[1] - pair[0]).collect();
            assert!(gaps.iter().any(|&gap| gap < 150_000) && gaps.iter().any(|&gap| gap > 250_000));
        }
    }

    #[test]
    fn another_rate_is_felt_at_once_and_what_was_sent_stays_sent() {
        let (slow, fast) = (rate(1, 60_000.0, 1), rate(10, 1000.0, 1));
        let at = Instant::from_micros;
        let sent = State::NEW.on_send(&slow, at(7), Draw::MIDDLE);
        assert_eq!(sent.next(&slow), at(60_000_007));
        let quicker = sent.on_configure(Some(&slow), &fast, Some(at(7)));
        assert_eq!(quicker.next(&fast), at(100_007));
        let none = State::NEW.on_configure(None, &slow, Some(at(7)));
        assert_eq!(none.next(&slow), at(60_000_007));
    }

    #[test]
    fn a_restart_gives_no_burst() {
        let config = rate(1, 1000.0, 3);
        let at = Instant::from_micros;
        let mut state = State::NEW;
        for _ in 0..3 {
            state = state.on_send(&config, at(0), Draw::MIDDLE);
        }
        let ahead = state.ahead(at(500_000));
        assert_eq!(ahead, Span::from_micros(2_500_000));
        assert_eq!(State::restored(&config, at(0), ahead).next(&config), at(500_000));
        let most = State::restored(&config, at(0), Span::from_millis(LONGEST_MS));
        assert!(most.next(&config) <= at(1_000_001), "a snapshot of another rate holds nobody for a year");
    }

    #[test]
    fn a_rate_below_one_a_year_is_none() {
        assert!(Config::new(0, Span::from_millis(1000.0), 1).is_none());
        assert!(Config::new(1, Span::from_millis(60_000.0), 1).is_none());
        assert!(Config::new(5500, Span::from_millis(1000.0), u32::MAX).is_some());
    }
}
