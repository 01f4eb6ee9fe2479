//! An engine that goes on where another one was: how it takes in requests and outcomes of elsewhere, and what
//! was being learned.
//!
//! Where processes share a limit, a writer dies at any instant: before the first refusal, between a refusal
//! and the next success, on the way up. The gap of that instant is not what the server bears: a group with it
//! would stay at a tenth of its limit for minutes.

use std::{cmp::Reverse, collections::BinaryHeap};

use autothrottle::{
    Boundary, Config, Decision, Engine, Feedback, Instant, Request, Snapshot, Span, Ticket, Value,
    boundary::{Outcome, flags},
};

use crate::helpers::{engine, json, millis};

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

/// The members of a group, their engine, and the messages on their way.
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

    /// The share of the server's limit that is served, over a span of seconds that begins after another.
    fn share_of_next(&mut self, after: u64, seconds: u64) -> f64 {
        let from = self.now + after * SECOND;
        self.run(from + seconds * SECOND);
        let served = self.served.iter().filter(|&&at| at >= from).count();
        served as f64 / (seconds as f64 * self.server.rate)
    }
}

fn config() -> Config {
    let options = r#"{ "seed": 1, "maxInFlight": 256, "defaults": { "rampup": true } }"#;
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

/// A boundary reads the same from header lines as from the numbers that another one made of them.
#[test]
fn a_digest_says_to_another_engine_what_the_lines_say() {
    let lines = [
        "retry-after: 7\n",
        "date: Sat, 21 Nov 2026 10:00:00 GMT\nretry-after: Sat, 21 Nov 2026 10:01:00 GMT\n",
        "ratelimit: limit=100, remaining=0, reset=50\n",
        "x-ratelimit-limit: 100\nx-ratelimit-remaining: 40\nx-ratelimit-reset: 30\n",
        "ratelimit-policy: \"a\";q=100;w=60\nratelimit: \"a\";r=3;t=20\n",
        "age: 20\nx-ratelimit-remaining: 0\n",
        "x-ratelimit-remaining: 0\n",
        "",
    ];
    let options =
        r#"{ "defaults": { "followRateLimit": true, "concurrency": 5, "quota": 50, "window": 9000 } }"#;
    let make = || {
        let mut boundary = Boundary::new(json(options)).unwrap();
        boundary.seed(1);
        let scope = boundary.intern("x");
        let ticket = boundary.send_at_once(1000.0, scope, 1.0, 0.0);
        assert!(ticket >= 0.0);
        (boundary, ticket)
    };
    for lines in lines {
        for status in [200.0, 429.0, 503.0, 0.0, 404.0, 403.0] {
            for flags in [
                0,
                flags::MAY_RETRY,
                flags::MAY_RETRY | flags::NOT_REPLAYABLE,
                flags::KEEP_DELAY,
                flags::GOOD,
                flags::BAD | flags::MAY_RETRY,
            ] {
                let outcome = Outcome { lines, wall_ms: 1.8e12, ..Outcome::new(status, 50.0, 2.0, flags) };
                let ((mut read, ticket), (mut told, _)) = (make(), make());
                let (settled, asked, numbers) = told.digest(&outcome);
                assert_eq!(read.settle(1080.0, ticket, &outcome), settled, "{lines} {status}");
                assert_eq!(read.asked_ms().to_bits(), asked.to_bits(), "{lines} {status}");
                told.settle(1080.0, ticket, &Outcome::decode(&numbers));
                let state = |boundary: &Boundary| {
                    format!("{:?} {:?}", boundary.stats(1080.0), boundary.snapshot(1080.0, f64::NAN))
                };
                assert_eq!(state(&read), state(&told), "{lines} {status} {flags}");
            }
        }
    }
}

/// The engine refuses what makes no sense, and stays as it is.
#[test]
fn a_message_of_another_engine_is_checked() {
    let mut boundary = Boundary::new(json("{}")).unwrap();
    let scope = boundary.intern("x");
    assert_eq!(boundary.adopt(0.0, &[], &[], 0.0, 0.0, 0.0), -1.0);
    for wrong in [f64::NAN, -1.0, f64::INFINITY] {
        assert_eq!(boundary.submit_again(0.0, &[scope], &[1.0], 0.0, 0.0, wrong), -4.0, "{wrong}");
        assert_eq!(boundary.adopt(0.0, &[scope], &[1.0], 0.0, wrong, 0.0), -4.0, "{wrong}");
    }
    assert_eq!(boundary.adopt(0.0, &[scope], &[1.0], 0.0, 0.0, f64::NAN), -4.0);
    assert_eq!((boundary.waiting(), boundary.in_flight()), (0.0, 0.0));
    let ticket = boundary.adopt(0.0, &[scope], &[1.0], 0.0, 0.0, f64::INFINITY);
    assert_eq!(boundary.in_flight(), 1.0, "of long ago");
    boundary.cancel(0.0, ticket);
    assert_eq!(boundary.in_flight(), 0.0);
}

/// A request that left before the snapshot was taken is in it: only its slot is missing there.
#[test]
fn sends_that_a_snapshot_remembers_are_not_counted_again() {
    let options =
        r#"{ "defaults": { "jitter": false, "delay": 0, "slotDelay": 0, "concurrency": 9, "quota": 5 } }"#;
    let config = || Config::parse(json(options)).unwrap();
    let mut first = Engine::new(config());
    let scope = first.scope("x");
    for _ in 0..2 {
        first.send_at_once(millis(1000.0), Request::new(&[scope])).unwrap().expect("nothing keeps it");
    }
    let snapshot = first.snapshot(millis(1500.0), Some(1e12));
    let mut next = Engine::restore(config(), &snapshot, millis(70.0), Some(1e12 + 300.0));
    let scope = next.scope("x");
    // One of the two that the snapshot knows, and one that left after it.
    next.adopt(millis(70.0), Request::new(&[scope]), Span::from_millis(800.0)).unwrap();
    next.adopt(millis(70.0), Request::new(&[scope]), Span::from_millis(100.0)).unwrap();
    let stats = next.scope_stats(millis(70.0), scope).unwrap();
    assert_eq!((stats.in_flight, stats.quota_left), (2, Some(2.0)));
}

/// A snapshot's spans are a little off. A send that the snapshot holds is corrected all the same, and no send
/// costs less than zero.
#[test]
fn a_send_that_a_rolling_quota_remembers_is_corrected_where_it_stands() {
    let options = r#"{ "defaults": { "jitter": false, "delay": 0, "slotDelay": 0, "concurrency": 9,
        "quota": { "limit": 5, "window": 60000, "strict": true } } }"#;
    let config = || Config::parse(json(options)).unwrap();
    let mut first = Engine::new(config());
    let scope = first.scope("x");
    for at in [1000.0, 1500.0] {
        first.send_at_once(millis(at), Request::new(&[scope])).unwrap().expect("nothing keeps it");
    }
    let snapshot = first.snapshot(millis(2000.0), Some(1e12));
    for off in [-7.0, 0.0, 7.0] {
        let mut next = Engine::restore(config(), &snapshot, millis(70.0), Some(1e12 + 300.0));
        let scope = next.scope("x");
        let flights = [1300.0, 800.0, 801.0].map(|ago| {
            let ago = Span::from_millis(ago + off);
            next.adopt(millis(70.0), Request::new(&[scope]), ago).unwrap()
        });
        let left = |engine: &Engine| engine.scope_stats(millis(70.0), scope).unwrap().quota_left;
        assert_eq!(left(&next), Some(3.0));
        for (flight, expected) in flights.into_iter().zip([4.0, 5.0, 5.0]) {
            next.cancel(millis(70.0), flight);
            assert_eq!(left(&next), Some(expected), "off by {off} ms");
        }
        let again = next.snapshot(millis(70.0), Some(1e12));
        assert!(autothrottle::Snapshot::parse(again.into()).is_ok());
    }
}

/// A request that was sent elsewhere counts from its send, not from the news of it; so does what waited
/// before.
#[test]
fn an_adopted_request_counts_from_its_send() {
    let options = r#"{ "defaults": { "jitter": false, "delay": 1000, "slotDelay": 0, "concurrency": 9 } }"#;
    let mut engine = engine(options);
    let scope = engine.scope("x");
    engine.adopt(millis(5000.0), Request::new(&[scope]), Span::from_millis(700.0)).unwrap();
    engine.submit(millis(5000.0), Request::new(&[scope])).unwrap();
    let Decision::Wait { until, .. } = engine.poll(millis(5000.0)) else { panic!("it waits") };
    assert_eq!(until, millis(5300.0), "a second after 4300");
}

/// A request that was sent elsewhere and is to be sent again keeps its place: by when it was asked for.
#[test]
fn an_adopted_request_keeps_its_age() {
    let options = r#"{ "defaults": { "jitter": false, "delay": 1000, "slotDelay": 0 }, "backoff": false }"#;
    for (waited_ms, is_first) in [(2000.0, true), (0.0, false)] {
        let mut engine = engine(options);
        let scope = engine.scope("x");
        let here = engine.submit(millis(8500.0), Request::new(&[scope])).unwrap();
        let scopes = [scope];
        let adopted = Request { waited_ms, ..Request::new(&scopes) };
        let there = engine.adopt(millis(10_000.0), adopted, Span::from_millis(100.0)).unwrap();
        assert!(engine.retry_each(millis(10_000.0), there, |_| Feedback::response(503), 0.0));
        let first = if is_first { there } else { here };
        assert_eq!(engine.poll(millis(11_000.0)), Decision::Send(first), "waited {waited_ms} ms");
    }
}

/// A request that left shortly before a snapshot may be on its way into it: it counts, twice rather than not
/// at all.
#[test]
fn a_request_that_left_a_moment_before_the_snapshot_counts_all_the_same() {
    let options = r#"{ "defaults": { "jitter": false, "delay": 0, "slotDelay": 0, "concurrency": 9,
        "quota": { "limit": 5, "window": 60000 } } }"#;
    let config = || Config::parse(json(options)).unwrap();
    let snapshot = Engine::new(config()).snapshot(millis(2000.0), Some(1e12));
    let mut next = Engine::restore(config(), &snapshot, millis(70.0), Some(1e12 + 300.0));
    let scope = next.scope("x");
    for (ago, left) in [(450.0, 5.0), (350.0, 4.0), (100.0, 3.0)] {
        next.adopt(millis(70.0), Request::new(&[scope]), Span::from_millis(ago)).unwrap();
        let stats = next.scope_stats(millis(70.0), scope).unwrap();
        assert_eq!(stats.quota_left, Some(left), "sent {ago} ms ago, 300 ms after the snapshot");
    }
}

/// A request that only a rate keeps is sent ahead for the instant at which it would have left; in no other
/// scope.
#[test]
fn a_request_granted_ahead_leaves_when_it_would_have_left() {
    let of = |scope: &str| {
        format!(r#"{{ "backoff": false, "scopes": {{ "x": {{ "jitter": false, {scope} }} }} }}"#)
    };
    let waits = |scope: &str| {
        let mut engine = engine(&of(scope));
        let x = engine.scope("x");
        for _ in 0..10 {
            engine.submit(millis(1000.0), Request::new(&[x])).unwrap();
        }
        while let Decision::Send(_) = engine.poll(millis(1000.0)) {}
        engine
    };
    let longest = Span::from_millis(20.0);
    let mut rated = waits(r#""rate": 100, "concurrency": 6"#);
    assert_eq!(rated.may_send_ahead(longest), Some(9));
    let ahead = |engine: &mut Engine| engine.send_ahead(millis(1000.0), millis(1045.0));
    let at: Vec<Instant> = std::iter::from_fn(|| ahead(&mut rated)).map(|(_, at)| at).collect();
    assert_eq!(at, [1010.0, 1020.0, 1030.0, 1040.0].map(millis), "no farther than was asked for");
    let Decision::Wait { until, .. } = rated.poll(millis(1041.0)) else { panic!("the next waits") };
    assert_eq!(until, millis(1050.0));
    assert!(rated.send_ahead(millis(1041.0), millis(1090.0)).is_some());
    assert_eq!(rated.send_ahead(millis(1041.0), millis(1090.0)), None, "six slots are taken");
    for other in
        [r#""rate": 30"#, r#""delay": 10"#, r#""rate": 100, "quota": 50"#, r#""rate": 100, "rampup": true"#]
    {
        assert_eq!(waits(other).may_send_ahead(longest), None, "{other}");
    }
}
