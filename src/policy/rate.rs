//! Rate: `limit` units of cost per span, evenly spaced, and at most `burst` of them at once after an idle
//! time. A request without a stated cost is one unit.
//!
//! The generic cell rate algorithm (ITU-T I.371, annex A; `limit_req` of nginx and Redis' `CELL_THROTTLE` are
//! kin), which is a bucket of `burst` units that refills evenly. One instant is the whole level: the
//! *theoretical arrival time*, when the bucket is full again. With `gap = window / limit`:
//! 1. a request may leave when now ≥ arrival − (burst − cost) × gap;
//! 2. it moves the arrival on by cost × gap, from now if the arrival is over;
//! 3. a send that was late because the driver's timer was late does not move the schedule: it goes on from
//!    when the request was due. It is never more than its own gap and [`LATEST`] behind, less what the
//!    bucket makes up for. Late by more than [`GRACE`], or with no request waiting when it was due, it is
//!    idle time, and rule 2 counts;
//! 4. a true cost above the expected one is a debt: it moves the arrival on, from now if that is over;
//! 5. a true cost below it gives back what the bucket would hold had it been known: no more than was missing
//!    from it when it was fullest since;
//! 6. what left beside the schedule, for another engine sent it and this one adopts it, is owed for one
//!    `window` at most.
//!
//! By 1 and 2 no `window` holds more than limit + burst − 1 units; rule 3 adds a burst, and what [`LATEST`]
//! holds, at most, where a timer was so late and the next ones are not.
//!
//! A gap of 333 333.3… µs that is rounded drifts by a request a day, so the part of a microsecond is carried
//! along. Without rule 3 timers that are always a millisecond late cost a client of 100 a second a tenth of
//! its rate. And what is only reserved refills meanwhile: given back in full, it is there twice.

use super::{Numbers, Policy, Sent, quota::Cost};
use crate::{
    rng::Draw,
    time::{Instant, LONGEST_MS, Span},
};

/// How late a send may be and still be on time: timers of browsers and busy event loops are. It is less than
/// what a person or a slow answer takes.
pub const GRACE: Span = Span::from_micros(50_000);

/// A delay beyond this was no timer: those of Windows are 16 ms late. No more is made up for.
pub const LATEST: Span = Span::from_micros(25_000);

/// The low levels that are remembered for rule 5; of two beyond them, the lower counts for both.
const REMEMBERED: usize = 8;

/// Whole microseconds, and parts of one more: `parts` of [`Config::of`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Exact {
    micros: u64,
    parts: u64,
}

/// One scope's rate, as its options say it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// For one unit.
    gap: Exact,
    /// For a whole bucket: how far the arrival time may lie ahead.
    full: Exact,
    /// The most that one request may cost.
    burst: Cost,
    window: Span,
    /// The parts of a microsecond: the limit, in millionths, so that 0.0055 a second is exact.
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
    /// Since when a request has been waiting, if one is.
    waiting: Instant,
    /// The amounts missing from the bucket when these left, oldest first: each was followed by no fuller one.
    missing: [(Instant, Span); REMEMBERED],
    remembered: u8,
}

impl Config {
    /// `limit` millionths of a unit per span; `None` where that is less than one unit a year.
    pub fn new(limit: u64, window: Span, burst: u32) -> Option<Self> {
        let (burst, zero) = (Cost::whole(burst.max(1)), Exact::default());
        let config = Self { gap: zero, full: zero, burst, window, of: limit.max(1), spread: 0.0 };
        let (gap, full) = (config.divided(Cost::ONE), config.divided(burst));
        let is_sane = limit > 0 && gap.micros <= Span::from_millis(LONGEST_MS).micros();
        is_sane.then_some(Self { gap, full, ..config })
    }

    /// Puts each request off by up to this share of a gap, at most a whole one. The mean stays.
    #[must_use]
    pub fn spread(self, spread: f64) -> Self {
        Self { spread: spread.min(1.0), ..self }
    }

    /// The time between two units, rounded up.
    pub fn gap(&self) -> Span {
        self.gap.up()
    }

    /// The time for which the limit is.
    pub fn window(&self) -> Span {
        self.window
    }

    /// The time for this number of units. One, the usual case, needs no division.
    #[inline(always)]
    fn exactly(&self, cost: Cost) -> Exact {
        if cost == Cost::ONE { self.gap } else { self.divided(cost) }
    }
    fn divided(&self, cost: Cost) -> Exact {
        let (micros, parts) = cost.times_over(self.window.micros(), self.of);
        Exact { micros, parts }
    }

    /// How far ahead the schedule may be: what a burst uses up.
    fn longest(&self) -> Span {
        Span::from_micros(self.full.micros + 1)
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

impl Exact {
    fn at(instant: Instant) -> Self {
        Self { micros: instant.micros(), parts: 0 }
    }

    fn up(self) -> Span {
        Span::from_micros(self.micros.saturating_add(u64::from(self.parts > 0)))
    }

    fn span(span: Span) -> Self {
        Self { micros: span.micros(), parts: 0 }
    }
}

impl State {
    /// No send yet.
    pub const NEW: Self = Self {
        arrival: Exact { micros: 0, parts: 0 },
        draw: Draw::MIDDLE,
        waiting: Instant::from_micros(0),
        missing: [(Instant::from_micros(0), Span::ZERO); REMEMBERED],
        remembered: 0,
    };

    /// The first instant at which a request of this cost may leave (rule 1). A cost above the burst, which
    /// only a burst lowered later leaves waiting, may leave when the bucket is full.
    pub fn next(&self, config: &Config, cost: Cost) -> Instant {
        if cost == Cost::ZERO {
            return Instant::default();
        }
        let gap = config.exactly(cost.min(config.burst));
        let due = config.earlier(config.later(self.arrival, gap), config.full);
        let due = Instant::default() + due.up();
        if config.spread == 0.0 || self.arrival == Exact::default() {
            return due;
        }
        due + gap.up().times(config.spread * self.draw.unit())
    }

    /// Whether the request that leaves is on time, and only its timer was late (rule 3).
    fn is_late(&self, config: &Config, now: Instant, cost: Cost) -> bool {
        // Without a spread it was due no later than the arrival: mostly one look.
        let is_due = self.waiting <= Instant::default() + self.arrival.up() || config.spread > 0.0;
        self.arrival != Exact::default() && is_due && {
            let due = self.next(config, cost);
            self.waiting <= due && now.since(due) <= GRACE
        }
    }

    /// The request that left at `sent` for `expected` turned out to cost `actual` (rules 4 and 5).
    #[must_use]
    pub fn on_actual(
        mut self,
        config: &Config,
        now: Instant,
        sent: Instant,
        expected: Cost,
        actual: Cost,
    ) -> Self {
        if actual > expected {
            let more = config.exactly(actual.minus_at_most(expected));
            self.remember_missing(now);
            self.arrival = config.later(self.arrival.max(Exact::at(now)), more);
            return self;
        }
        let known = &mut self.missing[..self.remembered.into()];
        let since = known.partition_point(|&(at, _)| at <= sent);
        let less = config.exactly(expected.minus_at_most(actual));
        let known = &mut known[since..];
        let less = known.iter().fold(less, |less, (_, missing)| less.min(Exact::span(*missing)));
        for (_, missing) in known {
            *missing = *missing - less.up();
        }
        Self { arrival: config.earlier(self.arrival, less), ..self }
    }

    /// Something is taken from the bucket. An amount that was missing before counts only where it was less
    /// than now: the bucket was fuller then than at all that followed.
    fn remember_missing(&mut self, now: Instant) {
        let missing = self.ahead(now);
        let mut kept = usize::from(self.remembered);
        while kept > 0 && self.missing[kept - 1].1 >= missing {
            kept -= 1;
        }
        if kept == REMEMBERED {
            let [.., (_, least), newest] = &self.missing;
            let both = (newest.0, newest.1.min(*least));
            kept -= 1;
            self.missing[kept - 1] = both;
        }
        self.missing[kept] = (now, missing);
        self.remembered = kept as u8 + 1;
    }

    /// Another rate, felt at once: what was sent counts as many gaps as before, now of the new length.
    /// `last` is the last send.
    #[must_use]
    pub fn on_configure(self, old: Option<&Config>, new: &Config, last: Option<Instant>) -> Self {
        let Some(last) = last else { return self };
        let scaled = |span: Span, old: &Config| {
            let scaled = u128::from(span.micros()) * u128::from(new.gap().micros())
                / u128::from(old.gap().micros().max(1));
            Span::from_micros(u64::try_from(scaled).unwrap_or(u64::MAX))
        };
        let mut next = self;
        let ahead = match old {
            Some(old) => {
                for (_, missing) in &mut next.missing {
                    *missing = scaled(*missing, old);
                }
                scaled(self.ahead(last), old)
            }
            None => new.gap(),
        };
        Self { arrival: Exact::at(last + ahead.min(new.longest())), ..next }
    }

    /// How far ahead of now the schedule is; zero where a whole burst may leave.
    pub fn ahead(&self, now: Instant) -> Span {
        (Instant::default() + self.arrival.up()).since(now)
    }

    /// The schedule that was so far ahead of now.
    #[must_use]
    pub fn restored(now: Instant, ahead: Span) -> Self {
        let mut restored = Self { arrival: Exact::at(now + ahead), ..Self::NEW };
        restored.remember_missing(now);
        restored
    }
}

impl Policy for State {
    type Config = Config;
    const KEYS: &'static [(&'static str, f64)] = &[("rateAhead", LONGEST_MS), ("rateDebt", Cost::MOST_UNITS)];

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
        Self { waiting: now, ..self }
    }

    /// Rules 2 and 3.
    fn sends(&mut self, config: &Config, &Sent { now, draw, late, cost, .. }: &Sent) {
        if cost == Cost::ZERO {
            return;
        }
        let (gap, time) = (config.exactly(cost), Exact::at(now));
        let from = if self.arrival >= time {
            self.arrival
        } else if self.is_late(config, now, cost) {
            let most = config.later(config.later(Exact::span(late.min(LATEST)), gap), gap);
            self.arrival.max(config.earlier(time, config.earlier(most, config.full))) // 3
        } else {
            time
        };
        let mut arrival = config.later(from, gap);
        if from.micros > time.micros + config.full.micros {
            let most = Exact { micros: time.micros + config.full.micros + config.window.micros(), parts: 0 };
            arrival = arrival.min(most).max(from); // 6
        }
        self.remember_missing(now);
        (self.arrival, self.draw) = (arrival, draw);
    }

    fn on_actual(self, config: &Config, now: Instant, sent: Instant, expected: Cost, actual: Cost) -> Self {
        Self::on_actual(self, config, now, sent, expected, actual)
    }

    /// A reset forgets what was learned; sends stay.
    fn reset(self, _: &Config) -> Self {
        self
    }

    fn gap(&self, config: &Config) -> Option<Span> {
        Some(config.gap())
    }

    fn next(&self, config: &Config, cost: Cost) -> Option<Instant> {
        Some(Self::next(self, config, cost))
    }

    fn most(config: &Config) -> Option<Cost> {
        Some(config.burst)
    }

    fn is_fresh(&self, _: &Config) -> bool {
        true
    }

    fn is_free(&self, now: Instant) -> bool {
        self.ahead(now) == Span::ZERO
    }

    /// A debt below an empty bucket is in units: another rate is no reason to wait for a year.
    fn remember(&self, config: &Config, now: Instant) -> Numbers {
        let ahead = self.ahead(now);
        let debt = (ahead - config.longest()).millis() * config.of as f64 / 1e6 / config.window.millis();
        let kept =
            [ahead.min(config.longest()).millis(), debt].map(|number| Some(number).filter(|&n| n > 0.0));
        [kept[0], kept[1], None]
    }

    fn recall(self, config: &Config, now: Instant, offline: Span, [ahead, debt, _]: Numbers) -> Self {
        let ahead = Span::from_millis(ahead.unwrap_or(0.0)).min(config.longest());
        let debt = debt.and_then(Cost::from_units).map(|debt| config.exactly(debt).up());
        Self::restored(now, ahead + debt.unwrap_or_default() - offline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    const HOUR: u64 = 3_600_000_000;

    fn rate(limit: u64, per_ms: f64, burst: u32) -> Config {
        Config::new(limit * 1_000_000, Span::from_millis(per_ms), burst).expect("a rate")
    }

    impl State {
        fn on_send(mut self, config: &Config, now: Instant, cost: Cost, draw: Draw) -> Self {
            self.sends(config, &Sent { now, draw, flying: 0, late: Span::ZERO, cost });
            self
        }
    }

    /// Something always waits; each timer is late by up to `late` microseconds. Instants of all sends.
    fn busy(config: &Config, late: u64, until: u64) -> Vec<u64> {
        let (mut state, mut rng) = (State::NEW, Rng::new(1));
        let (mut sends, mut now) = (Vec::new(), 0);
        loop {
            let due = state.next(config, Cost::ONE).micros();
            if due > now {
                now = due + (rng.draw().unit() * late as f64) as u64;
            }
            if now >= until {
                return sends;
            }
            state = state.on_send(config, Instant::from_micros(now), Cost::ONE, rng.draw());
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
        for (limit, per, gap) in [(100, 60_000.0, 600_000..=600_000), (3, 1000.0, 333_333..=333_334)] {
            for pair in busy(&rate(limit, per, 1), 0, HOUR).windows(2) {
                assert!(gap.contains(&(pair[1] - pair[0])));
            }
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
        let sent = State::NEW.on_send(&config, at(0), Cost::ONE, Draw::MIDDLE);
        // No request waited at 1 s: the request of 1.02 s starts the schedule anew.
        let idle = sent.on_wait(at(1_020_000)).on_send(&config, at(1_020_000), Cost::ONE, Draw::MIDDLE);
        assert_eq!(idle.next(&config, Cost::ONE), at(2_020_000));
        let late = sent.on_wait(at(10)).on_send(&config, at(1_020_000), Cost::ONE, Draw::MIDDLE);
        assert_eq!(late.next(&config, Cost::ONE), at(2_000_000));
        let very = sent.on_wait(at(10)).on_send(&config, at(1_060_000), Cost::ONE, Draw::MIDDLE);
        assert_eq!(very.next(&config, Cost::ONE), at(2_060_000));
    }

    #[test]
    fn a_spread_is_behind_the_schedule_never_ahead_of_it() {
        let config = rate(5, 1000.0, 1);
        let spread = config.spread(0.5);
        let mut rng = Rng::new(1);
        for _ in 0..100 {
            let sent = State::NEW.on_send(&spread, Instant::from_micros(7), Cost::ONE, rng.draw());
            let (even, strays) = (sent.next(&config, Cost::ONE), sent.next(&spread, Cost::ONE));
            assert!(strays >= even && strays.since(even).micros() <= 100_000, "{strays:?}");
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
        let sent = State::NEW.on_send(&slow, at(7), Cost::ONE, Draw::MIDDLE);
        assert_eq!(sent.next(&slow, Cost::ONE), at(60_000_007));
        let quicker = sent.on_configure(Some(&slow), &fast, Some(at(7)));
        assert_eq!(quicker.next(&fast, Cost::ONE), at(100_007));
        let none = State::NEW.on_configure(None, &slow, Some(at(7)));
        assert_eq!(none.next(&slow, Cost::ONE), at(60_000_007));
    }

    #[test]
    fn a_restart_gives_no_burst() {
        let config = rate(1, 1000.0, 3);
        let at = Instant::from_micros;
        let mut state = State::NEW;
        for _ in 0..3 {
            state = state.on_send(&config, at(0), Cost::ONE, Draw::MIDDLE);
        }
        let numbers = Policy::remember(&state, &config, at(500_000));
        assert_eq!(numbers, [Some(2500.0), None, None]);
        let recalled =
            |numbers| State::NEW.recall(&config, at(0), Span::ZERO, numbers).next(&config, Cost::ONE);
        assert_eq!(recalled(numbers), at(500_000));
        let most = recalled([Some(LONGEST_MS), None, None]);
        assert!(most <= at(1_000_001), "a snapshot of another rate holds no request for a year");
        // Four units of debt, of which one second has paid one.
        let owes = state.on_actual(&config, at(0), at(0), Cost::ONE, Cost::whole(5));
        let numbers = Policy::remember(&owes, &config, at(1_000_000));
        assert!((numbers[1].unwrap() - 3.0).abs() < 1e-5, "{numbers:?}");
        let offline = Span::from_millis(2000.0);
        let later = State::NEW.recall(&config, at(0), offline, numbers).next(&config, Cost::ONE);
        assert_eq!(later, at(2_000_000), "three and three, less two, less the two that may follow at once");
    }

    #[test]
    fn sends_of_another_engine_beside_the_schedule_are_owed_for_one_span() {
        let config = rate(10, 1000.0, 3);
        let mut state = State::NEW;
        let mut ahead = Vec::new();
        for turn in 0..400_u64 {
            // This engine kept its rate, and another one had the same: twice what may leave.
            let at = Instant::from_micros(10_000_000 + turn / 2 * 100_000);
            state = state.on_send(&config, at, Cost::ONE, Draw::MIDDLE);
            ahead.push(state.ahead(at).millis());
        }
        assert_eq!((ahead[0], ahead[3], ahead[23]), (100.0, 300.0, 1300.0));
        assert_eq!(ahead.last(), Some(&1300.0), "a burst and a second");
    }

    #[test]
    fn a_rate_below_one_a_year_is_none() {
        assert!(Config::new(0, Span::from_millis(1000.0), 1).is_none());
        assert!(Config::new(1, Span::from_millis(60_000.0), 1).is_none());
        assert!(Config::new(5500, Span::from_millis(1000.0), u32::MAX).is_some());
    }

    fn units(units: f64) -> Cost {
        Cost::from_units(units).unwrap()
    }

    #[test]
    fn a_bucket_of_tokens_refills_evenly_in_units_of_cost() {
        let config = rate(30_000, 60_000.0, 30_000);
        let at = |seconds: u64| Instant::from_micros(seconds * 1_000_000);
        let sent = State::NEW.on_send(&config, at(0), units(20_000.0), Draw::MIDDLE);
        assert_eq!(sent.next(&config, units(10_000.0)), at(0), "10,000 are left");
        assert_eq!(sent.next(&config, units(15_000.0)), at(10), "500 a second");
        assert_eq!(sent.next(&config, units(30_000.0)), at(40), "when it is full again");
        assert_eq!(sent.next(&config, units(90_000.0)), at(40), "what is too much, then too");
        assert_eq!(sent.next(&config, Cost::ZERO), at(0), "what costs nothing never waits");
        let owes = sent.on_actual(&config, at(5), at(0), units(20_000.0), units(50_000.0));
        assert_eq!(owes.next(&config, units(1.0)), Instant::from_micros(40_002_000), "20,001 of debt ÷ 500");
        assert_eq!(owes.next(&config, Cost::ZERO), at(0));
        let less = sent.on_actual(&config, at(5), at(0), units(20_000.0), units(1000.0));
        assert_eq!(less.next(&config, units(30_000.0)), at(5).max(at(2)).min(at(2)), "full since 2 s");
    }

    /// The amount given back was never more than a bucket would hold that had known the true costs. It is
    /// played beside ours, with all that it knew then.
    #[test]
    fn units_that_are_given_back_were_missing() {
        let mut rng = Rng::new(7);
        let mut pick = move |below: u64| (rng.draw().unit() * below as f64) as u64;
        for seed in 0..300 {
            let burst = 1 + pick(100) as u32;
            let config = rate(1 + pick(50), 1000.0, burst);
            let (mut state, mut now) = (State::NEW, 0);
            let mut sends: Vec<(u64, u64, u64)> = Vec::new(); // when, expected, so far true
            for step in 0..400 {
                now += pick(200_000);
                let at = Instant::from_micros(now);
                let cost = 1 + pick(u64::from(burst));
                if state.next(&config, units(cost as f64)) <= at {
                    let waits = state.on_wait(at); // so that none is late by rule 3
                    state = waits.on_send(&config, at, units(cost as f64), Draw::MIDDLE);
                    sends.push((now, cost, cost));
                }
                let recent = sends.len().saturating_sub(6);
                if recent < sends.len() && pick(2) == 0 {
                    let one = recent + pick((sends.len() - recent) as u64) as usize;
                    let (sent, expected, told) = sends[one];
                    let actual = pick(expected + 1).min(told);
                    let at_now = Instant::from_micros(now);
                    if pick(4) == 0 {
                        let debt = pick(20);
                        state = state.on_actual(&config, at_now, at_now, Cost::ZERO, units(debt as f64));
                        sends.push((now, 0, debt));
                        continue;
                    }
                    state = state.on_actual(
                        &config,
                        at,
                        Instant::from_micros(sent),
                        units(told as f64),
                        units(actual as f64),
                    );
                    sends[one].2 = actual;
                }
                let gap = config.gap.micros as f64 + config.gap.parts as f64 / config.of as f64;
                let exact = sends
                    .iter()
                    .fold(0.0, |arrival: f64, &(sent, _, cost)| arrival.max(sent as f64) + cost as f64 * gap);
                let ours = state.arrival.micros as f64;
                assert!(ours.max(now as f64) + 10.0 >= exact, "seed {seed}, step {step}: {ours} < {exact}");
            }
        }
    }
}
