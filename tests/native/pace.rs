//! The pace that was typed is the pace: each way to say it, driven in virtual time for minutes or an hour.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    ops::Range,
};

use autothrottle::{
    Cause, Config, Decision, Effective, Engine, Feedback, Instant, Notice, Reason, Request, Snapshot, Span,
    Ticket, Value,
};

use crate::helpers::{engine, json, millis};

/// A driver with enough to send in one scope, timers that are late by so much and a server that always
/// answers.
struct Driver {
    engine: Engine,
    now: u64,
    latency: u64,
    late: Range<u64>,
    status: u16,
    chance: u64,
    answers: BinaryHeap<Reverse<(u64, Ticket)>>,
    sends: Vec<u64>,
}

impl Driver {
    fn new(options: &str, latency_ms: u64) -> Self {
        Self::with(engine(options), latency_ms)
    }

    fn with(engine: Engine, latency_ms: u64) -> Self {
        let latency = latency_ms * 1000;
        let answers = BinaryHeap::new();
        Self { engine, now: 0, latency, late: 0..1, status: 200, chance: 9, answers, sends: Vec::new() }
    }

    fn at(&self) -> Instant {
        Instant::from_micros(self.now)
    }

    /// Lets `seconds` pass, and gives the send times in them.
    fn run(&mut self, seconds: u64) -> Vec<u64> {
        let end = self.now + seconds * 1_000_000;
        let scope = self.engine.scope("a");
        self.sends.clear();
        loop {
            while self.engine.waiting() < 12 {
                self.engine.submit(self.at(), Request::new(&[scope])).unwrap();
            }
            let until = match self.engine.poll(self.at()) {
                Decision::Send(ticket) => {
                    self.sends.push(self.now);
                    self.answers.push(Reverse((self.now + self.latency, ticket)));
                    continue;
                }
                Decision::Wait { until, .. } => until.micros() + self.lateness(),
                Decision::Idle { .. } => end,
            };
            let answer = self.answers.peek().map_or(end, |Reverse((at, _))| *at);
            self.now = until.min(answer).max(self.now);
            if self.now >= end {
                self.now = end;
                return self.sends.clone();
            }
            while let Some(&Reverse((at, ticket))) = self.answers.peek()
                && at <= self.now
            {
                self.answers.pop();
                self.engine.settle(self.at(), ticket, &Feedback::response(self.status));
            }
        }
    }

    fn lateness(&mut self) -> u64 {
        self.chance = self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.late.start + (self.chance >> 33) % (self.late.end - self.late.start)
    }
}

fn per_minute(options: &str, latency_ms: u64) -> usize {
    Driver::new(options, latency_ms).run(60).len()
}

fn most_in(sends: &[u64], per: u64) -> usize {
    let ends = sends.iter().map(|&from| sends.partition_point(|&at| at < from + per));
    ends.enumerate().map(|(index, end)| end - index).max().unwrap_or(0)
}

#[test]
fn nothing_typed_is_a_request_a_second_at_most() {
    assert!((50..=61).contains(&per_minute("{}", 50)));
    assert!((50..=61).contains(&per_minute(r#"{ "delay": 1000, "concurrency": 5 }"#, 50)));
    // Slots are a pace: the second that was not typed is none.
    assert_eq!(per_minute(r#"{ "concurrency": 5 }"#, 1000), 5 * 60);
    assert_eq!(per_minute(r#"{ "defaults": { "concurrency": 5 } }"#, 1000), 5 * 60);
}

#[test]
fn each_way_to_type_a_pace_in_defaults_is_that_pace() {
    let cases = [
        (r#""delay": 200, "jitter": false"#, 300),
        (r#""delay": 0"#, 1200),
        (r#""quota": { "limit": 5, "window": 1000 }"#, 300),
        (r#""quota": 100"#, 100),
        (r#""rate": 5"#, 300),
        (r#""rate": "300/min""#, 300),
        (r#""rate": { "limit": 5 }"#, 300),
        (r#""rate": " 5 / s ""#, 300),
        (r#""rate": 0.5"#, 30),
    ];
    for (typed, want) in cases {
        for options in [
            format!(r#"{{ "defaults": {{ {typed} }} }}"#),
            format!("{{ {typed} }}"),
            format!(r#"{{ "scopes": {{ "a": {{ {typed} }} }} }}"#),
        ] {
            let sent = per_minute(&options, 50);
            assert!((want..=want + 1).contains(&sent), "{options}: {sent}");
        }
    }
}

#[test]
fn a_rate_is_exact_over_an_hour_whatever_the_latency_and_however_late_the_timers() {
    for (rate, limit, per) in [(r"5", 5, 1000), (r#""100/min""#, 100, 60_000), ("3", 3, 1000)] {
        for burst in [1, 10] {
            for latency in [5, 900, 4000] {
                for late in [1, 15_000] {
                    let typed = match burst {
                        1 => rate.to_string(),
                        _ => format!(r#"{{ "limit": {limit}, "window": {per}, "burst": {burst} }}"#),
                    };
                    let mut driver =
                        Driver::new(&format!(r#"{{ "maxInFlight": 50, "rate": {typed} }}"#), latency);
                    driver.late = 0..late;
                    let sends = driver.run(3600);
                    let exact = 3_600_000 / per as usize * limit;
                    let span = exact..=exact + burst;
                    assert!(span.contains(&sends.len()), "{typed} {latency} {late}: {}", sends.len());
                    assert!(most_in(&sends, per * 1000) <= limit + burst, "{typed} {latency} {late}");
                    if burst == 1 && late == 1 {
                        let gap = per * 1000 / limit as u64;
                        let is_even = |pair: &[u64]| (gap..=gap + 1).contains(&(pair[1] - pair[0]));
                        assert!(sends.windows(2).all(is_even), "{typed} {latency}");
                    }
                }
            }
        }
    }
}

/// The mean of the gaps that were really sent, not of the draws.
/// Timers of busy event loops, of Windows and of browsers. Where one is early after one that was late, what
/// is made up for is 25 ms and a gap.
#[test]
fn a_pace_faster_than_the_timers_is_kept() {
    for (rate, late) in [(2000, 1000..2000), (300, 5000..15_000), (300, 15_000..30_000)] {
        for burst in [1, 2, 5] {
            let options = format!(r#"{{ "rate": {{ "limit": {rate}, "burst": {burst} }} }}"#);
            let mut driver = Driver::new(&options, 5);
            driver.late = late.clone();
            let sends = driver.run(60);
            let (part, most) = (sends.len() as f64 / f64::from(60 * rate), most_in(&sends, 1_000_000));
            assert!((0.98..1.01).contains(&part), "{rate}/s, {late:?}, {burst}: {part}");
            assert!(most as f64 <= 1.025 * f64::from(rate) + 9.0, "{rate}/s, {late:?}, {burst}: {most}");
        }
    }
}

#[test]
fn jitter_strays_by_half_around_the_delay_that_was_typed() {
    for typed in [r#""delay": 200"#, r#""delay": 200, "jitter": true"#, r#""rate": 5, "jitter": true"#] {
        let sends = Driver::new(&format!("{{ {typed} }}"), 20).run(3600);
        let gaps: Vec<u64> = sends.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
        assert!((mean - 200_000.0).abs() < 1500.0, "{typed}: mean {mean}");
        let (least, most) = (gaps.iter().min().unwrap(), gaps.iter().max().unwrap());
        let spread = if typed.contains("rate") { 0..=400_001 } else { 100_000..=300_001 };
        assert!(spread.contains(least) && spread.contains(most), "{typed}: {least} to {most}");
        assert!(*least < 110_000 && *most > 290_000, "{typed}: {least} to {most}");
    }
}

#[test]
fn a_rate_while_running_is_felt_at_once_and_said_so() {
    let mut driver = Driver::new(r#"{ "defaults": { "delay": 60000 } }"#, 10);
    driver.run(10);
    let scope = driver.engine.scope("a");
    let set = |driver: &mut Driver, json: &str| {
        let now = driver.at();
        driver.engine.configure(now, scope, serde_json::from_str(json).unwrap()).unwrap();
    };
    set(&mut driver, r#"{ "rate": 5 }"#);
    assert_eq!(driver.run(60).len(), 300);
    let peek = driver.engine.peek(driver.at(), Request::new(&[scope])).unwrap();
    assert!(peek.because.is_none_or(|cause| cause.reason == Reason::Rate));
    let now = driver.at();
    if let Decision::Send(ticket) = driver.engine.poll(now) {
        driver.engine.settle(now, ticket, &Feedback::response(200));
    }
    let stats = driver.engine.scope_stats(driver.at(), scope).unwrap();
    assert_eq!((stats.delay_ms, stats.reason, Reason::Rate.name()), (200.0, Some(Reason::Rate), "rate"));
    set(&mut driver, r#"{ "rate": "1/min" }"#);
    assert!((9..=10).contains(&driver.run(600).len()), "the next is a minute after the last");
    set(&mut driver, r#"{ "rate": { "limit": 5, "burst": 3 } }"#);
    assert!((300..=303).contains(&driver.run(60).len()));
    set(&mut driver, r#"{ "delay": 1000, "jitter": 0 }"#);
    let sent = driver.run(60).len();
    assert!((59..=61).contains(&sent), "{sent}");
}

#[test]
fn the_slower_of_a_rate_and_what_is_learned_counts() {
    let mut driver = Driver::new(r#"{ "rate": 5, "autothrottle": { "startDelay": 2000 } }"#, 2000);
    assert!(driver.run(60).len() <= 31, "AutoThrottle wants two seconds");
    let mut driver = Driver::new(r#"{ "rate": 1, "backoff": { "minDelay": 1 } }"#, 20);
    driver.run(10);
    driver.status = 429;
    driver.run(2);
    driver.status = 200;
    let sent = driver.run(40).len();
    assert!((5..=25).contains(&sent), "backoff doubles the rate's gap: {sent}");
    let mut driver = Driver::new(r#"{ "rate": 5, "rampup": true }"#, 20);
    driver.run(60);
    assert!(most_in(&driver.run(60), 1_000_000) <= 6, "what rampup finds is no faster than the rate");
    let mut driver = Driver::new(r#"{ "rate": 5, "quota": 60 }"#, 20);
    assert_eq!(driver.run(60).len(), 60);
}

#[test]
fn a_restart_gives_no_burst() {
    let options = r#"{ "rate": { "limit": 1, "window": 1000, "burst": 10 } }"#;
    let mut driver = Driver::new(options, 10);
    assert_eq!(driver.run(5).len(), 14);
    let snapshot = driver.engine.snapshot(driver.at(), Some(0.0));
    let text = serde_json::to_string(&Value::from(snapshot)).unwrap();
    let snapshot = Snapshot::parse(serde_json::from_str(&text).unwrap()).unwrap();
    let config = Config::parse(json(options)).unwrap();
    let later = Engine::restore(config, &snapshot, Instant::default(), Some(2000.0));
    let sends = Driver::with(later, 10).run(5);
    assert!((6..=7).contains(&sends.len()), "two of ten came back while it was away: {sends:?}");
}

#[test]
fn a_scope_that_ramps_lifts_the_limit_of_all_that_nobody_typed() {
    let global = |options: &str| Config::parse(json(options)).unwrap().max_in_flight;
    assert_eq!(global("{}"), 16);
    assert_eq!(global(r#"{ "rampup": true }"#), 256);
    assert_eq!(global(r#"{ "scopes": { "a": { "rampup": true } } }"#), 256);
    assert_eq!(global(r#"{ "rampup": true, "maxInFlight": 16 }"#), 16);
    let mut engine = engine("{}");
    let scope = engine.scope("a");
    let ramp = serde_json::from_str(r#"{ "rampup": true }"#).unwrap();
    engine.configure(Instant::default(), scope, ramp).unwrap();
    assert_eq!(engine.config().max_in_flight, 256);
}

#[test]
fn a_scope_that_is_configured_has_the_limit_of_all_that_it_raises() {
    let mut engine = engine(r#"{ "rate": 50 }"#);
    let now = Instant::default();
    let [many, paced, kept] = ["many", "paced", "kept"].map(|name| engine.scope(name));
    engine.configure(now, many, json(r#"{ "concurrency": 200 }"#)).unwrap();
    assert_eq!(engine.config().max_in_flight, 200);
    assert_eq!(without_effect(&mut engine), [""; 0], "two hundred slots are no more than the limit is now");
    engine.configure(now, paced, json(r#"{ "rate": 40 }"#)).unwrap();
    let mut at = 0;
    let mut flies = |scope| {
        for _ in 0..300 {
            engine.submit(Instant::from_micros(at * 1000), Request::new(&[scope])).unwrap();
        }
        let mut sent = 0;
        for _ in 0..3000 {
            at += 20;
            while let Decision::Send(_) = engine.poll(Instant::from_micros(at * 1000)) {
                sent += 1;
            }
        }
        sent
    };
    assert_eq!(flies(kept), 16, "a scope that was not configured keeps its slots");
    assert_eq!(flies(paced), 184, "beside a rate they are the limit of all: 200, of which 16 are taken");
    // Another scope's limit is not the one that keeps it.
    let mut driver = Driver::new(r#"{ "rate": 50 }"#, 2000);
    let many = driver.engine.scope("many");
    driver.engine.configure(now, many, json(r#"{ "concurrency": 200 }"#)).unwrap();
    driver.run(11);
    let want = "rate [a] requests hardly ever wait for it, but for maxInFlight (16)";
    assert_eq!(without_effect(&mut driver.engine), [want]);
}

#[test]
fn the_limit_of_all_scopes_has_one_name_wherever_it_binds() {
    // Sixteen slots by default, an answer every two seconds: eight a second, and 50 were typed.
    for scopes in [&["a"][..], &["a", "b"]] {
        let mut engine = engine(r#"{ "rate": 50 }"#);
        let at = |ms: u64| Instant::from_micros(ms * 1000);
        let ids: Vec<_> = scopes.iter().map(|name| engine.scope(name)).collect();
        for count in 0..200 {
            let priority = f64::from(count % 3);
            engine.submit(at(0), Request { priority, ..Request::new(&ids) }).unwrap();
        }
        let mut flying = VecDeque::new();
        for ms in 0..13_000 {
            while flying.front().is_some_and(|&(_, until)| until <= ms) {
                let (ticket, _) = flying.pop_front().unwrap();
                engine.settle(at(ms), ticket, &Feedback::response(200));
            }
            while let Decision::Send(ticket) = engine.poll(at(ms)) {
                flying.push_back((ticket, ms + 2000));
            }
        }
        let now = at(13_000);
        assert_eq!(flying.len(), 16);
        let peek = engine.peek(now, Request::new(&ids)).unwrap();
        assert_eq!(peek.because, Some(Cause { scope: None, reason: Reason::Global }));
        let stats = engine.stats(now);
        assert_eq!(stats.max_in_flight, 16);
        for (_, scope) in &stats.scopes {
            assert_eq!(scope.reason, Some(Reason::Global), "{scopes:?}");
            let bound = &scope.effective.bound_by;
            let share = |reason| bound.iter().find(|(by, _)| *by == reason).map_or(0.0, |(_, share)| *share);
            assert!(share(Some(Reason::Global)) > 0.9, "{scopes:?} {bound:?}");
            assert_eq!(share(Some(Reason::Concurrency)), 0.0, "{scopes:?} {bound:?}");
        }
        let told = without_effect(&mut engine);
        assert!(told.iter().all(|line| line.contains("maxInFlight (16)")), "{told:?}");
        assert!(!told.is_empty());
    }
}

fn without_effect(engine: &mut Engine) -> Vec<String> {
    let line = |notice| match notice {
        Notice::NoEffect(found) => format!("{} [{}] {}", found.path, found.scope, found.why),
        other => format!("{other:?}"),
    };
    engine.take_notices().into_iter().map(line).collect()
}

#[test]
fn a_setting_without_effect_is_told_at_construction() {
    let slots =
        "5 slots; with 1000 ms between sends they are all in use only while answers take longer than 4000 ms";
    let cases = [
        (r#"{ "delay": 1000, "concurrency": 5 }"#, vec![format!("concurrency [] {slots}")]),
        (
            r#"{ "scopes": { "a b": { "concurrency": 5, "delay": 1000 } } }"#,
            vec![format!("scopes.\"a b\".concurrency [a b] {slots}")],
        ),
        (
            r#"{ "maxInFlight": 16, "scopes": { "a": { "concurrency": 20 } } }"#,
            vec![
                "scopes.a.concurrency [a] 20 slots; `maxInFlight`, the limit of all scopes together, is 16"
                    .into(),
            ],
        ),
        (
            r#"{ "delay": 1000, "slotDelay": 400 }"#,
            vec!["slotDelay [] the scope's delay of 1000 ms is longer".into()],
        ),
        (
            r#"{ "defaults": { "delay": 1000, "slotDelay": 900 } }"#,
            vec!["defaults.slotDelay [] the scope's delay of 1000 ms is longer".into()],
        ),
    ];
    for (options, want) in cases {
        let mut engine = engine(options);
        assert_eq!(without_effect(&mut engine), want, "{options}");
        assert_eq!(without_effect(&mut engine), [""; 0], "once");
    }
    let fine = [
        "{}",
        r#"{ "delay": 1000, "slotDelay": 0 }"#,
        r#"{ "delay": 5000 }"#,
        r#"{ "concurrency": 1 }"#,
        r#"{ "concurrency": 40 }"#,
        r#"{ "rate": 5, "concurrency": 2 }"#,
        r#"{ "defaults": { "concurrency": 5, "delay": 0 }, "scopes": { "a": { "delay": 9000 } } }"#,
        r#"{ "defaults": { "concurrency": 2, "delay": 300, "slotDelay": 1000 } }"#,
        r#"{ "autothrottle": true }"#,
    ];
    for options in fine {
        assert_eq!(without_effect(&mut engine(options)), [""; 0], "{options}");
    }
}

#[test]
fn a_pace_that_is_typed_beside_rampup_and_is_no_bound_is_told() {
    let slots = "concurrency [] rampup finds it; for a bound type rampup.maxConcurrency";
    let delay = "delay [] rampup finds it; for a bound type rampup.minDelay";
    let slot_delay = "defaults.slotDelay [] rampup finds the pace; for a bound type it in scopes";
    let cases = [
        (r#"{ "rampup": true, "delay": 5000 }"#, vec![delay]),
        (r#"{ "rampup": true, "concurrency": 2, "delay": 1 }"#, vec![delay, slots]),
        (r#"{ "defaults": { "rampup": {}, "slotDelay": 100 } }"#, vec![slot_delay]),
        (r#"{ "rampup": true, "delay": 0, "maxInFlight": 4 }"#, vec![]),
        // Of another place it bounds, or is for scopes that do not ramp.
        (r#"{ "rampup": true, "scopes": { "a": { "delay": 5000 } } }"#, vec![]),
        (r#"{ "delay": 5000, "scopes": { "a": { "rampup": true } } }"#, vec![]),
        (r#"{ "rampup": { "minDelay": 5000, "maxConcurrency": 1 } }"#, vec![]),
    ];
    for (options, want) in cases {
        assert_eq!(without_effect(&mut engine(options)), want, "{options}");
    }
}

#[test]
fn a_setting_without_effect_is_told_when_it_is_made() {
    let mut engine = engine(r#"{ "maxInFlight": 16 }"#);
    let scope = engine.scope("a");
    let set = |engine: &mut Engine, json: &str| {
        engine.configure(Instant::default(), scope, serde_json::from_str(json).unwrap()).unwrap();
    };
    set(&mut engine, r#"{ "concurrency": 99 }"#);
    let want = "scopes.a.concurrency [a] 99 slots; `maxInFlight`, the limit of all scopes together, is 16";
    assert_eq!(without_effect(&mut engine), [want]);
    set(&mut engine, r#"{ "concurrency": 99, "delay": 0 }"#);
    assert_eq!(without_effect(&mut engine), [""; 0], "once");
}

#[test]
fn a_limit_that_only_shows_while_requests_wait_is_told_within_ten_seconds() {
    let mut driver = Driver::new(r#"{ "defaults": { "concurrency": 5, "delay": 500 } }"#, 50);
    driver.run(9);
    assert_eq!(without_effect(&mut driver.engine), [""; 0]);
    driver.run(2);
    let want = "defaults.concurrency [a] 5 slots; 1 were ever in use while requests waited";
    assert_eq!(without_effect(&mut driver.engine), [want]);
    driver.run(600);
    assert_eq!(without_effect(&mut driver.engine), [""; 0], "once");

    let mut driver = Driver::new(r#"{ "rate": 50 }"#, 2000);
    driver.run(11);
    let want = "rate [a] requests hardly ever wait for it, but for maxInFlight (16)";
    assert_eq!(without_effect(&mut driver.engine), [want], "sixteen at a time are eight a second");

    for options in [
        r#"{ "maxInFlight": 10, "delay": 0 }"#, r#"{ "concurrency": 10 }"#,
        r#"{ "concurrency": 10, "maxInFlight": 10 }"#, r#"{ "maxInFlight": 10, "rate": 1 }"#,
        r#"{ "maxInFlight": 10, "rampup": true }"#, "{}", r#"{ "rate": 5, "concurrency": 2 }"#,
    ] {
        let mut driver = Driver::new(options, 300);
        driver.run(30);
        assert_eq!(without_effect(&mut driver.engine), [""; 0], "{options}");
    }

    // A hold is no news of slots, and AutoThrottle begins slowly.
    let mut driver = Driver::new(r#"{ "defaults": { "concurrency": 5, "delay": 0 } }"#, 50);
    let scope = driver.engine.scope("a");
    driver.engine.hold(driver.at(), scope, Span::from_millis(60_000.0));
    driver.run(60);
    assert_eq!(without_effect(&mut driver.engine), [""; 0]);
    let mut driver =
        Driver::new(r#"{ "autothrottle": true, "defaults": { "concurrency": 5, "delay": 0 } }"#, 50);
    driver.run(30);
    assert_eq!(without_effect(&mut driver.engine), [""; 0]);
    // One slot was never meant to be more.
    let mut driver = Driver::new(r#"{ "defaults": { "concurrency": 1, "delay": 500 } }"#, 50);
    driver.run(30);
    assert_eq!(without_effect(&mut driver.engine), [""; 0]);
    // A slot delay of zero was never meant to do anything.
    let mut driver = Driver::new(r#"{ "delay": 100, "slotDelay": 0 }"#, 50);
    driver.run(600);
    assert_eq!(without_effect(&mut driver.engine), [""; 0]);
}

/// The delay in the statistics is backoff's beside a policy that keeps a gap but learns no delay.
#[test]
fn backoffs_delay_is_told_beside_a_rate() {
    let mut engine =
        engine(r#"{ "rate": 5, "jitter": false, "backoff": { "minDelay": 3000, "jitter": 0 } }"#);
    let scope = engine.scope("a");
    let at = millis;
    let told = |engine: &Engine, ms: f64| engine.scope_stats(at(ms), scope).unwrap().delay_ms;
    assert_eq!(told(&engine, 0.0), 200.0);
    let ticket = engine.send_at_once(at(0.0), Request::new(&[scope])).unwrap().expect("nothing waits");
    engine.settle(at(50.0), ticket, &Feedback::response(429));
    assert_eq!(told(&engine, 51.0), 3000.0);
}

/// The state shows `AutoThrottle`'s delay as it is, also where backoff asks for more; backoff's stands beside
/// it.
#[test]
fn autothrottles_delay_is_told_beside_backoff() {
    let mut engine = engine(
        r#"{ "autothrottle": { "startDelay": 2000 }, "jitter": false, "backoff": { "minDelay": 3000, "jitter": 0 } }"#,
    );
    let scope = engine.scope("a");
    let at = millis;
    let ticket = engine.send_at_once(at(0.0), Request::new(&[scope])).unwrap().expect("nothing waits");
    let feedback = Feedback { latency_ms: None, ..Feedback::response(429) };
    engine.settle(at(50.0), ticket, &feedback);
    let stats = engine.scope_stats(at(51.0), scope).unwrap();
    assert_eq!((stats.delay_ms, stats.backoff_ms), (2000.0, 4000.0));
}

/// Backoff's jitter takes the place of the scope's. Just above the delay that was typed a gap is as short as
/// the scope's own jitter may make it, and no shorter.
#[test]
fn backoffs_jitter_goes_as_low_as_the_scopes() {
    for (jitter, of_backoff, expected) in [("false", 0.5, 1_000_000), ("0.5", 0.9, 500_000)] {
        let mut least = u64::MAX;
        for seed in 0..40 {
            let mut driver = Driver::new(
                &format!(
                    r#"{{ "seed": {seed}, "defaults": {{ "delay": 1000, "slotDelay": 0, "jitter": {jitter},
                    "backoff": {{ "minDelay": 1001, "maxDelay": 1001, "jitter": {of_backoff} }} }} }}"#
                ),
                20,
            );
            driver.status = 429;
            let sends = driver.run(60);
            least = sends.windows(2).skip(1).map(|pair| pair[1] - pair[0]).fold(least, u64::min);
        }
        assert_eq!(least, expected, "{jitter}");
    }
}

/// The statistics of a scope have its own latency from the first answer on, and a rate only once a whole
/// minute was seen.
#[test]
fn each_scope_has_its_latency_and_after_five_seconds_its_rate() {
    let mut engine = engine(r#"{ "defaults": { "delay": 1000, "slotDelay": 0, "jitter": false } }"#);
    let scopes = [("fast", 20.0), ("slow", 400.0)].map(|(name, latency)| (engine.scope(name), latency));
    let seen = |engine: &Engine, scope, ms: f64| {
        let Effective { rate, latency_ms, .. } = engine.scope_stats(millis(ms), scope).unwrap().effective;
        (rate, latency_ms)
    };
    for (scope, _) in scopes {
        assert_eq!(seen(&engine, scope, 0.0), (None, None));
    }
    for second in 0..60 {
        let sent = f64::from(second) * 1000.0;
        let send = |(scope, latency)| {
            let ticket = engine.send_at_once(millis(sent), Request::new(&[scope])).unwrap();
            (latency, ticket.expect("alone"))
        };
        for (latency, ticket) in scopes.map(send) {
            let answer = Feedback { latency_ms: Some(latency), ..Feedback::response(200) };
            engine.settle(millis(sent + latency), ticket, &answer);
        }
        for (scope, latency) in scopes {
            let (rate, seen) = seen(&engine, scope, sent + 999.0);
            assert_eq!((rate.is_some(), seen), (second > 4, Some(latency)), "at {second} s");
            assert!(rate.is_none_or(|rate| (rate - 1.0).abs() < 0.01), "{rate:?}");
        }
    }
    for (scope, latency) in scopes {
        assert_eq!(seen(&engine, scope, 60_000.0), (Some(1.0), Some(latency)));
        assert_eq!(seen(&engine, scope, 90_000.0), (Some(0.5), Some(latency)), "half of it is gone");
        assert_eq!(seen(&engine, scope, 120_000.0), (Some(0.0), None), "all of it is");
    }
}
