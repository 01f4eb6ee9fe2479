//! An engine goes on from another one's memory in the middle of its work: what was being learned goes on.
//!
//! Where processes share a limit, a writer dies at any instant: before the first refusal, between a refusal
//! and the next success, on the way up. The gap of that instant is not what the server bears: a group with it
//! would stay at a tenth of its limit for minutes.

use std::{cmp::Reverse, collections::BinaryHeap};

use autothrottle::{Config, Decision, Engine, Feedback, Instant, Request, Snapshot, Span, Ticket, Value};

use crate::made::json;

/// This many loops ask, each when it has its answer.
const LOOPS: usize = 32;
/// A second, in microseconds.
const SECOND: u64 = 1_000_000;

/// As nginx's `limit_req`: a number a second, and a number at once.
struct Server {
    rate: f64,
    burst: f64,
    excess: f64,
    last: u64,
}

impl Server {
    fn is_served(&mut self, at: u64) -> bool {
        let excess = (self.excess - (at - self.last) as f64 * self.rate / SECOND as f64).max(0.0);
        self.last = at;
        let is_served = excess <= self.burst;
        self.excess = if is_served { excess + 1.0 } else { excess };
        is_served
    }
}

/// Who asks, who answers, and what is on its way.
struct Group {
    engine: Engine,
    server: Server,
    now: u64,
    /// When each is answered, with which status, when it was sent.
    answers: BinaryHeap<Reverse<(u64, u16, u64, Ticket)>>,
    served: Vec<u64>,
    refused: usize,
}

impl Group {
    fn new(rate: f64) -> Self {
        let server = Server { rate, burst: 20.0, excess: 0.0, last: 0 };
        let engine = Engine::new(config());
        Self { engine, server, now: 0, answers: BinaryHeap::new(), served: Vec::new(), refused: 0 }
    }

    fn at(&self) -> Instant {
        Instant::from_micros(self.now)
    }

    fn run(&mut self, until: u64) {
        let scope = self.engine.scope("a");
        while self.now < until {
            while self.engine.waiting() as usize + self.answers.len() < LOOPS {
                self.engine.submit(self.at(), Request::new(&[scope])).unwrap();
            }
            let next = match self.engine.poll(self.at()) {
                Decision::Send(ticket) => {
                    let is_served = self.server.is_served(self.now);
                    let (latency, status) = if is_served { (200_000, 200) } else { (3000, 429) };
                    self.answers.push(Reverse((self.now + latency, status, self.now, ticket)));
                    continue;
                }
                // Timers are late.
                Decision::Wait { until, .. } => until.micros() + 700,
                Decision::Idle { .. } => until,
            };
            let answer = self.answers.peek().map_or(until, |Reverse((at, ..))| *at);
            self.now = next.min(answer).max(self.now).min(until);
            self.settle();
        }
    }

    fn settle(&mut self) {
        while let Some(&Reverse((at, status, _, ticket))) = self.answers.peek()
            && at <= self.now
        {
            self.answers.pop();
            if status == 200 {
                self.served.push(at);
            } else {
                self.refused += 1;
            }
            self.engine.settle(self.at(), ticket, &Feedback::response(status));
        }
    }

    /// The engine is gone with who waited; another one knows its memory and what is in flight, and begins
    /// after a silence.
    fn take_over(&mut self, silence: u64) {
        let snapshot = self.engine.snapshot(self.at(), Some(0.0));
        let text = serde_json::to_string(&Value::from(snapshot)).unwrap();
        let snapshot = Snapshot::parse(serde_json::from_str(&text).unwrap()).unwrap();
        self.now += silence;
        self.engine = Engine::restore(config(), &snapshot, self.at(), Some(silence as f64 / 1000.0));
        let scope = self.engine.scope("a");
        let flying = core::mem::take(&mut self.answers);
        for Reverse((at, status, sent, _)) in flying.into_sorted_vec().into_iter().rev() {
            let ago = Span::from_micros(self.now - sent);
            let ticket = self.engine.adopt(self.at(), Request::new(&[scope]), ago).unwrap();
            self.answers.push(Reverse((at, status, sent, ticket)));
        }
        self.settle();
    }

    /// What is served of what the server bears, over a span of seconds that begins after another.
    fn share_of_next(&mut self, after: u64, seconds: u64) -> f64 {
        let from = self.now + after * SECOND;
        self.run(from + seconds * SECOND);
        let served = self.served.iter().filter(|&&at| at >= from).count();
        served as f64 / (seconds as f64 * self.server.rate)
    }
}

fn config() -> Config {
    let options = r#"{ "seed": 1, "concurrency": 256, "defaults": { "rampup": true } }"#;
    Config::parse(json(options)).unwrap()
}

/// Whenever it happens: what is served in the minute after it is what it is without.
#[test]
fn rampup_goes_on_where_the_former_writer_was() {
    for rate in [2.0, 10.0, 100.0] {
        for tenth in (0..60).chain((60..400).step_by(17)) {
            let mut group = Group::new(rate);
            group.run(tenth * SECOND / 10 + SECOND / 20);
            group.take_over(1_800_000);
            let share = group.share_of_next(15, 60);
            assert!(share > 0.95, "{rate} a second, taken over after {tenth}/10 s: {share}");
            assert!(group.refused <= 20, "{rate} a second, {tenth}/10 s: {} refused", group.refused);
        }
    }
}

/// A machine with too much to do changes its writer again and again: it costs what the silence takes.
#[test]
fn rampup_climbs_from_one_writer_to_the_next() {
    for rate in [2.0, 10.0, 100.0] {
        for seconds in [2, 3, 5, 8] {
            let mut group = Group::new(rate);
            for _ in 0..60 / seconds {
                let from = group.now;
                group.run(from + seconds * SECOND);
                group.take_over(100_000);
            }
            // 240 requests at least: of fewer, one wait after a refusal is a fifth.
            let share = group.share_of_next(0, if rate < 8.0 { 120 } else { 30 });
            assert!(share > 0.95, "{rate} a second, every {seconds} s: {share}");
            assert!(group.refused <= 16, "{rate} a second, every {seconds} s: {} refused", group.refused);
        }
    }
}
