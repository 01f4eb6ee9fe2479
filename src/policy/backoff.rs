//! Backoff: a longer delay after a bad answer, and the way back.
//!
//! ```text
//! bad answer    delay × factor, at least `min`, at most `max`          one step per flight (rule 1)
//!               at `max` already: slots × concurrency factor, at least 1
//! quiet window  one step back: slots first, then delay ÷ factor,       with evidence only (rule 2)
//!               below `min` to the scope's own delay
//! the way back  is tried; a step back may fail: its delay is remembered (rules 3 to 5)
//! ```
//!
//! 1. Several requests are in flight when a server starts to refuse. Their answers are one piece of news: a
//!    bad answer to a request sent until the last step up is no new step (RFC 9002 §7.3.2 has the same
//!    rule). It still makes the quiet window start again.
//! 2. A step back needs a window without a bad answer *and* a good answer to a request sent since the last
//!    step: silence is not evidence. One window, one step, however long no request asked.
//! 3. A step back is *on trial* for a window. If it fails, the delay before it is known to be good, and the
//!    one that failed is remembered as the *failed delay*: back to the good one.
//! 4. With a failed delay, steps back go half of the way to it, so it is approached from the slow side; close
//!    to it (a sixteenth) they stop.
//! 5. It is forgotten slowly: after eight quiet windows there, one step past it is tried. If that holds for a
//!    window, the limit has moved and it is forgotten. Against a constant limit, in the long run, at most one
//!    window in nine therefore has a bad answer. The delay is within some percent of the best.
//!
//! A flight counts once: the draft counts each answer, and eight 429s made 128 s. Time alone brings no step
//! back, or a server that no request asked would be flooded. Between two steps, one too fast and one too
//! slow, a saw-tooth would go on for ever. Source: Scrapy draft, *Backoff* and its open question; the
//! settings `BACKOFF_*`.

use super::jitter;
use crate::time::{Instant, Span};

/// Windows to rest beside the failed delay before it is tried again.
const REST: u8 = 8;

/// How close to the failed delay is close: a sixteenth of it.
const CLOSE: u64 = 16;

/// One scope's settings of backoff.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Above 1; `BACKOFF_DELAY_FACTOR`.
    pub factor: f64,
    /// The delay after the first bad answer at least; `BACKOFF_MIN_DELAY`.
    pub min: Span,
    /// The longest delay; `BACKOFF_MAX_DELAY`.
    pub max: Span,
    /// Quiet time before a step back; `BACKOFF_WINDOW`.
    pub window: Span,
    /// Spread of the delay while backing off; `BACKOFF_JITTER`.
    pub jitter: jitter::Config,
    /// Between 0 and 1; `BACKOFF_CONCURRENCY_FACTOR`.
    pub concurrency_factor: f64,
}

/// The pace without backoff.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Base {
    /// Its delay.
    pub delay: Span,
    /// Its slots.
    pub slots: u32,
}

/// Where one scope stands. A new one asks for no delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    /// The least delay; none at all is no backoff.
    pub pace: Span,
    /// Slots allowed; `u32::MAX` for no bound.
    pub slots: u32,
    /// Steps taken up and not yet back.
    pub steps: u32,
    /// When the last step up was taken: requests sent before it bring old news.
    pub stepped: Option<Instant>,
    /// When the last step was taken, up or back: requests sent since bring evidence.
    pub since: Instant,
    /// Since when no bad answer came and no step was taken.
    pub quiet: Instant,
    /// Whether there is evidence for a step back.
    pub is_good: bool,
    /// On trial: the delay to go back to if the present one fails; none if none is on trial.
    pub good: Span,
    /// The longest delay that failed on trial; none if none did.
    pub failed_delay: Span,
    /// Quiet windows spent beside the failed delay.
    pub rested: u8,
}

impl State {
    /// No bad answer yet.
    pub const NEW: Self = Self {
        pace: Span::ZERO,
        slots: u32::MAX,
        steps: 0,
        stepped: None,
        since: Instant::from_micros(0),
        quiet: Instant::from_micros(0),
        is_good: false,
        good: Span::ZERO,
        failed_delay: Span::ZERO,
        rested: 0,
    };

    /// Whether it asks for no delay and remembers none.
    pub fn is_new(&self) -> bool {
        self.is_over() && self.good == Span::ZERO && self.failed_delay == Span::ZERO
    }

    /// Whether it asks for no delay.
    pub fn is_over(&self) -> bool {
        self.pace == Span::ZERO && self.slots == u32::MAX
    }

    /// When the next step back will be taken if no answer comes until then.
    pub fn recovers(&self, config: &Config) -> Option<Instant> {
        (self.is_good && !self.is_new()).then(|| self.quiet + config.window)
    }

    /// Takes new settings: no delay is longer than the longest.
    #[must_use]
    pub fn on_configure(self, new: &Config) -> Self {
        let [pace, good, failed_delay] =
            [self.pace, self.good, self.failed_delay].map(|delay| delay.min(new.max));
        Self { pace, good, failed_delay, ..self }
    }

    /// The state at `now`: a step back may have come due.
    #[must_use]
    pub fn at(self, config: &Config, now: Instant, base: Base) -> Self {
        match self.recovers(config) {
            Some(due) if due <= now => self.back(config, due, base),
            _ => self,
        }
    }

    /// A bad answer came to a request sent at `sent`.
    #[must_use]
    pub fn on_bad(self, config: &Config, now: Instant, sent: Instant, base: Base) -> Self {
        let state = Self { quiet: now, is_good: false, ..self.at(config, now, base) };
        if state.stepped.is_some_and(|stepped| sent <= stepped) {
            return state; // rule 1
        }
        let failed = base.delay.max(state.pace);
        let state = Self { stepped: Some(now), since: now, steps: state.steps + 1, rested: 0, ..state };
        if state.good > failed {
            let failed_delay = failed.max(state.failed_delay);
            return Self { pace: state.good, good: Span::ZERO, failed_delay, ..state }; // rule 3
        }
        let is_slowest = state.pace >= config.max;
        let fewer = f64::from(state.slots.min(base.slots)) * config.concurrency_factor;
        let pace = failed.times(config.factor).max(config.min).min(config.max);
        let slots = if is_slowest && base.slots > 1 { (fewer as u32).max(1) } else { state.slots };
        Self { pace, slots, good: Span::ZERO, ..state }
    }

    /// A good answer came to a request sent at `sent`.
    #[must_use]
    pub fn on_good(self, config: &Config, now: Instant, sent: Instant, base: Base) -> Self {
        let state = self.at(config, now, base);
        if sent < state.since || state.is_new() {
            return state;
        }
        let state = Self { is_good: true, ..state };
        if state.quiet + config.window <= now { state.back(config, now, base) } else { state }
    }

    /// One step back toward the configuration.
    fn back(self, config: &Config, at: Instant, base: Base) -> Self {
        let mut state = Self { since: at, quiet: at, is_good: false, ..self };
        if state.slots < u32::MAX {
            let more = (f64::from(state.slots) / config.concurrency_factor) as u32;
            let slots = more.max(state.slots + 1);
            let slots = if slots < base.slots { slots } else { u32::MAX };
            return Self { slots, steps: state.steps.saturating_sub(1), ..state };
        }
        let base = base.delay;
        let from = base.max(state.pace);
        if state.good > Span::ZERO {
            state.good = Span::ZERO; // the trial is over: it held
            if from < state.failed_delay {
                state.failed_delay = Span::ZERO; // 5
            }
        }
        if state.pace == Span::ZERO {
            return Self { failed_delay: Span::ZERO, ..state };
        }
        let step = Span::from_micros((from.micros() as f64 / config.factor) as u64);
        let step = if step < config.min { base } else { step.max(base) };
        let failed = state.failed_delay;
        let close = Span::from_micros(failed.micros() / CLOSE);
        let to = if failed == Span::ZERO || step > failed + close {
            step
        } else if from > failed + close {
            Span::from_micros(u64::midpoint(failed.micros(), from.micros())) // 4
        } else if state.rested < REST {
            return Self { rested: state.rested + 1, ..state };
        } else {
            (failed - close).max(base) // 5
        };
        let is_over = to <= base;
        let steps = if is_over { 0 } else { state.steps.saturating_sub(1).max(1) };
        Self { pace: if is_over { Span::ZERO } else { to }, steps, good: from, rested: 0, ..state }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: Config = Config {
        factor: 2.0,
        min: Span::from_micros(1_000_000),
        max: Span::from_micros(300_000_000),
        window: Span::from_micros(60_000_000),
        jitter: jitter::Config::NONE,
        concurrency_factor: 0.5,
    };
    const BASE: Base = Base { delay: Span::from_micros(100_000), slots: 1 };

    fn at(seconds: f64) -> Instant {
        Instant::from_micros((seconds * 1e6) as u64)
    }

    fn seconds(span: Span) -> f64 {
        span.micros() as f64 / 1e6
    }

    #[test]
    fn it_doubles_from_the_least_to_the_greatest_and_then_takes_slots_away() {
        let mut state = State::NEW;
        let mut seen = Vec::new();
        for second in 0..13 {
            let now = at(f64::from(second));
            state = state.on_bad(&CONFIG, now, now, Base { slots: 4, ..BASE });
            seen.push((seconds(state.pace), state.slots));
        }
        let paces: Vec<f64> = seen.iter().map(|&(pace, _)| pace).collect();
        assert_eq!(paces[..10], [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 300.0]);
        let slots: Vec<u32> = seen[9..].iter().map(|&(_, slots)| slots).collect();
        assert_eq!(slots, [u32::MAX, 2, 1, 1]);
    }

    #[test]
    fn silence_is_not_evidence_and_a_window_is_one_step() {
        let bad = State::NEW.on_bad(&CONFIG, at(0.0), at(0.0), BASE).on_bad(&CONFIG, at(1.0), at(1.0), BASE);
        assert_eq!(seconds(bad.pace), 2.0);
        assert_eq!(bad.at(&CONFIG, at(9999.0), BASE).pace, bad.pace, "silence");
        let old = bad.on_good(&CONFIG, at(2.0), at(0.5), BASE);
        assert_eq!(
            old.at(&CONFIG, at(9999.0), BASE).pace,
            bad.pace,
            "an answer to what was sent before the step"
        );
        let good = bad.on_good(&CONFIG, at(4.0), at(3.0), BASE);
        assert_eq!(seconds(good.at(&CONFIG, at(60.9), BASE).pace), 2.0);
        assert_eq!(seconds(good.at(&CONFIG, at(61.0), BASE).pace), 1.0);
        assert_eq!(
            seconds(good.at(&CONFIG, at(9999.0), BASE).pace),
            1.0,
            "one step for one piece of evidence"
        );
    }

    /// A server that refuses whatever comes faster than every `limit`. Gives the bad answers and the mean
    /// delay of each of many windows of constant traffic.
    fn run(limit: f64, base: Base, windows: u32) -> Vec<(u32, f64)> {
        let mut state = State::NEW;
        let mut now = 0.0;
        let mut seen = vec![(0, 0.0, 0); windows as usize];
        while now < f64::from(windows) * 60.0 {
            let current = state.at(&CONFIG, at(now), base);
            let gap = seconds(current.pace.max(base.delay));
            let bad = gap < limit;
            state = if bad {
                current.on_bad(&CONFIG, at(now), at(now), base)
            } else {
                current.on_good(&CONFIG, at(now), at(now), base)
            };
            let (refusals, sum, count) = &mut seen[(now / 60.0) as usize];
            *refusals += u32::from(bad);
            *sum += gap;
            *count += 1;
            now += gap;
        }
        seen.into_iter().map(|(bad, sum, count)| (bad, sum / f64::from(count.max(1)))).collect()
    }

    #[test]
    fn against_a_constant_limit_it_settles() {
        for limit in [0.13, 0.3, 0.77, 1.5, 2.0, 3.3, 9.1] {
            let seen = run(limit, BASE, 400);
            let late = &seen[100..];
            let most = late.iter().map(|&(bad, _)| bad).max().unwrap();
            let bad: u32 = late.iter().map(|&(bad, _)| bad).sum();
            let mean = late.iter().map(|&(_, gap)| gap).sum::<f64>() / late.len() as f64;
            assert!(most <= 1, "limit {limit}: {most} bad answers in one window");
            assert!(
                f64::from(bad) <= late.len() as f64 / 8.0,
                "limit {limit}: {bad} bad answers in 300 windows"
            );
            assert!(mean < 1.09 * limit, "limit {limit}: a mean delay of {mean}");
        }
    }

    /// On the way back the least delay of backoff's own is a step, and what lies below it is the scope's.
    #[test]
    fn the_least_delay_is_a_step_on_the_way_back() {
        let paces = |pace: u64| {
            let mut state = State { pace: Span::from_micros(pace), steps: 3, ..State::NEW };
            let mut paces = vec![];
            for round in 1..=3 {
                state = state.back(&CONFIG, at(60.0 * f64::from(round)), BASE);
                paces.push(seconds(state.pace));
            }
            paces
        };
        assert_eq!(paces(4_000_000), [2.0, 1.0, 0.0]);
        assert_eq!(paces(3_999_998), [1.999_999, 0.0, 0.0]);
    }

    /// Only what is near the delay that failed is gone about in smaller steps.
    #[test]
    fn far_above_the_delay_that_failed_a_step_is_a_whole_one() {
        let mut state = State {
            pace: Span::from_micros(64_000_000),
            failed_delay: Span::from_micros(1_000_000),
            steps: 9,
            ..State::NEW
        };
        let paces = [1, 2, 3, 4, 5, 6].map(|minute| {
            state = state.back(&CONFIG, at(60.0 * f64::from(minute)), BASE);
            seconds(state.pace)
        });
        assert_eq!(paces, [32.0, 16.0, 8.0, 4.0, 2.0, 1.5]);
    }

    /// A sixteenth beside the delay that failed is near enough: it rests there before it tries again.
    #[test]
    fn beside_the_delay_that_failed_it_rests() {
        let [pace, failed_delay] = [1_040_000, 1_000_000].map(Span::from_micros);
        let state = State { pace, failed_delay, steps: 2, ..State::NEW }.back(&CONFIG, at(60.0), BASE);
        assert_eq!((state.pace, state.rested), (pace, 1));
    }

    #[test]
    fn a_scope_that_is_back_and_stays_forgets_the_delay_that_failed() {
        let state = State { failed_delay: Span::from_micros(1_000_000), ..State::NEW };
        assert!(!state.is_new() && state.back(&CONFIG, at(60.0), BASE).is_new());
    }

    #[test]
    fn a_limit_that_is_lifted_is_found_out() {
        let mut state = State::NEW;
        let mut now = 0.0;
        let mut gap = 0.0;
        while now < 60.0 * 400.0 {
            let limit = if now < 60.0 * 200.0 { 3.0 } else { 0.0 };
            let current = state.at(&CONFIG, at(now), BASE);
            gap = seconds(current.pace.max(BASE.delay));
            let hear = if gap < limit { State::on_bad } else { State::on_good };
            state = hear(current, &CONFIG, at(now), at(now), BASE);
            now += gap;
        }
        assert_eq!(gap, seconds(BASE.delay));
        assert!(state.at(&CONFIG, at(now), BASE).is_new());
    }
}
