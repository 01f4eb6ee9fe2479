//! Controllers to compare with: two well-known controllers of a sending rate (the AWS SDKs' adaptive retry
//! limiter and AIMD), and the best constant rate, unknown beforehand. Our own code, after their descriptions;
//! none of it ships.

use autothrottle::{
    Answer, Instant, Span,
    simulate::{Client, Next},
};

use crate::scenarios::Scenario;

/// Requests in flight at most.
const SLOTS: u32 = 200;

/// Sends evenly at a rate that something else sets.
struct Pacer {
    due: Instant,
    in_flight: u32,
    sent: u64,
}

impl Pacer {
    fn new() -> Self {
        Self { due: Instant::default(), in_flight: 0, sent: 0 }
    }

    fn next(&mut self, now: Instant, rate: f64) -> Next {
        if self.in_flight >= SLOTS {
            return Next::Never;
        }
        if self.due > now {
            return Next::At(self.due);
        }
        let gap = Span::from_micros((1e6 / rate) as u64 + 1);
        self.due = (self.due + gap).max(now);
        self.in_flight += 1;
        self.sent += 1;
        Next::Send(self.sent)
    }
}

fn is_refused(answer: Answer) -> bool {
    matches!(answer, Answer::Response { status } if status >= 429) || matches!(answer, Answer::Failed(_))
}

/// The adaptive mode of the AWS SDKs' retries: after the first refusal a token bucket whose rate follows
/// CUBIC in time since the last one, capped at twice the measured rate. Source: the SDK reference's *retry
/// behavior*, RFC 9438 §4.2.
pub struct Cubic {
    pacer: Pacer,
    is_limited: bool,
    rate: f64,
    last_max: f64,
    last_refusal: f64,
    window: f64,
    measured: f64,
    bucket: (u64, u32),
    most: f64,
}

impl Cubic {
    const BETA: f64 = 0.7;
    const SCALE: f64 = 0.4;

    pub fn new() -> Self {
        Self {
            pacer: Pacer::new(),
            is_limited: false,
            rate: 0.5,
            last_max: 0.0,
            last_refusal: 0.0,
            window: 0.0,
            measured: 0.0,
            bucket: (0, 0),
            most: 1e6,
        }
    }

    /// Never faster than this.
    pub fn below(most: f64) -> Self {
        Self { most, ..Self::new() }
    }

    /// The rate in half-second buckets, smoothed.
    fn measure(&mut self, now: Instant) {
        let index = now.micros() / 500_000;
        self.bucket.1 += 1;
        if index > self.bucket.0 {
            let rate = f64::from(self.bucket.1) / ((index - self.bucket.0) as f64 / 2.0);
            self.measured = rate * 0.8 + self.measured * 0.2;
            self.bucket = (index, 0);
        }
    }
}

/// Newton's method: a library's differs from machine to machine.
fn cube_root(of: f64) -> f64 {
    let mut root = 1.0 + of / 3.0;
    for _ in 0..60 {
        root -= (root * root * root - of) / (3.0 * root * root);
    }
    root
}

impl Client for Cubic {
    fn next(&mut self, now: Instant) -> Next {
        let rate = if self.is_limited { self.rate.max(0.5) } else { 1e6 };
        self.pacer.next(now, rate.min(self.most))
    }

    fn answered(&mut self, now: Instant, _: u64, _: Instant, answer: Answer, _: &str) {
        self.pacer.in_flight -= 1;
        self.measure(now);
        let time = now.micros() as f64 / 1e6;
        let wanted = if is_refused(answer) {
            let rate = if self.is_limited { self.rate.min(self.measured) } else { self.measured };
            self.is_limited = true;
            (self.last_max, self.last_refusal) = (rate, time);
            self.window = cube_root(rate * (1.0 - Self::BETA) / Self::SCALE);
            rate * Self::BETA
        } else {
            let x = time - self.last_refusal - self.window;
            Self::SCALE * x * x * x + self.last_max
        };
        self.rate = wanted.min(2.0 * self.measured).max(0.5);
    }
}

/// Additive increase, multiplicative decrease: doubling each second until the first refusal, then up by a
/// hundredth of the rate that failed each second, and × 0.85 once per flight. Source: Chiu and Jain 1989.
pub struct Aimd {
    pacer: Pacer,
    rate: f64,
    failed_at: Option<f64>,
    event: Instant,
    last: Instant,
    most: f64,
}

impl Aimd {
    pub fn new() -> Self {
        Self {
            pacer: Pacer::new(),
            rate: 1.0,
            failed_at: None,
            event: Instant::default(),
            last: Instant::default(),
            most: f64::INFINITY,
        }
    }

    /// From this rate on, and never faster.
    pub fn below(most: f64) -> Self {
        Self { rate: most, most, ..Self::new() }
    }
}

impl Client for Aimd {
    fn next(&mut self, now: Instant) -> Next {
        self.pacer.next(now, self.rate)
    }

    fn answered(&mut self, now: Instant, _: u64, sent: Instant, answer: Answer, _: &str) {
        self.pacer.in_flight -= 1;
        if is_refused(answer) {
            if sent >= self.event {
                self.failed_at = Some(self.rate);
                self.rate *= 0.85;
                self.event = now;
            }
            return;
        }
        let elapsed = now.since(self.last).micros() as f64 / 1e6;
        self.last = now;
        self.rate += match self.failed_at {
            None => self.rate * elapsed.min(1.0),
            Some(rate) => rate * 0.01 * elapsed.min(1.0),
        };
        self.rate = self.rate.min(self.most);
    }
}

/// A constant number a second, whatever comes back.
pub struct Constant {
    gap: f64,
    due: f64,
    is_made_up: bool,
    in_flight: u32,
    sent: u64,
}

impl Constant {
    /// `is_made_up`: what a late timer lost is caught up with by the next.
    pub fn new(rate: f64, is_made_up: bool) -> Self {
        Self { gap: 1e6 / rate, due: 0.0, is_made_up, in_flight: 0, sent: 0 }
    }
}

impl Client for Constant {
    fn next(&mut self, now: Instant) -> Next {
        let micros = now.micros() as f64;
        if self.in_flight >= 256 {
            return Next::Never;
        }
        if self.due > micros {
            return Next::At(Instant::from_micros(self.due as u64 + 1));
        }
        self.due = if self.is_made_up { (self.due + self.gap).max(micros) } else { micros + self.gap };
        self.in_flight += 1;
        self.sent += 1;
        Next::Send(self.sent)
    }

    fn answered(&mut self, _: Instant, _: u64, _: Instant, _: Answer, _: &str) {
        self.in_flight -= 1;
    }
}

/// The share of the limit that the best constant rate serves, found in hindsight: the highest with at most
/// one and a half refusals a minute, settled, beside those that come at any pace.
pub fn best_constant(scenario: &Scenario, seed: u64) -> f64 {
    let limit = scenario.limit();
    let mut best = 0.0_f64;
    for is_made_up in [false, true] {
        let (mut low, mut high) = (0.0, 1.25);
        for _ in 0..9 {
            let middle = (low + high) / 2.0;
            let client = |_| Box::new(Constant::new(middle * limit, is_made_up)) as Box<dyn Client>;
            let (_, summary) =
                scenario.simulation("{}", seed, "").at_most(20_000_000).run_with(client).unwrap();
            if summary.refusals_per_minute - summary.background_per_minute <= 1.5 {
                best = best.max(summary.utilisation);
                low = middle;
            } else {
                high = middle;
            }
        }
    }
    best
}
