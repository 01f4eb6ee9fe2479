//! The state that a restart keeps: an engine that goes on from a snapshot is the engine that was never
//! stopped. A snapshot that says nonsense is refused with the path of each mistake.

use autothrottle::{
    Config, Decision, Engine, Feedback, Hint, Hints, Instant, Peek, Request, Rng, ScopeId, Snapshot, Span,
    Ticket, Value, headers::Context,
};

use crate::helpers::{json, millis};

const OPTIONS: &str = r#"{ "seed": 1, "maxInFlight": 9, "defaults": { "concurrency": 3, "jitter": false, "backoff": { "jitter": false } },
    "scopes": {
        "plain": { "delay": 100, "slotDelay": 400 },
        "auto": { "delay": 10, "autothrottle": { "startDelay": 50 } },
        "rate": { "rate": 5 },
        "fixed": { "delay": 0, "slotDelay": 0, "quota": { "limit": 9, "window": 60000 } },
        "rolling": { "delay": 0, "slotDelay": 0, "quota": { "limit": 9, "window": 60000, "strict": true } },
        "slots": { "delay": 0, "slotDelay": 0, "backoff": { "maxDelay": 2000, "jitter": false } } } }"#;
const NAMES: [&str; 7] = ["plain", "auto", "rate", "fixed", "rolling", "slots", "not typed"];
const WALL: f64 = 1e12;

fn config() -> Config {
    Config::parse(json(OPTIONS)).unwrap()
}

fn told(lines: &str, status: u16) -> Hint {
    Hint::of(&Hints::from_lines(lines, Context { status, ..Context::default() }))
}

/// An engine that has lived for a while, no request waiting and none in flight.
fn lived(seed: u64) -> (Engine, Vec<ScopeId>, Instant) {
    let mut rng = Rng::new(seed);
    let mut pick = move |below: usize| (rng.draw().unit() * below as f64) as usize;
    let mut engine = Engine::new(config());
    let scopes: Vec<ScopeId> = NAMES.iter().map(|name| engine.scope(name)).collect();
    let mut now = millis(1e6);
    let mut flying: Vec<Ticket> = vec![];
    for _ in 0..150 {
        now = now + Span::from_millis([0.0, 7.0, 300.0, 2000.0][pick(4)]);
        let scope = scopes[pick(scopes.len())];
        match pick(12) {
            0..=5 => drop(engine.submit(now, Request { costs: &[1.0], ..Request::new(&[scope]) })),
            6 => engine.hold(now, scope, Span::from_millis(pick(90_000) as f64)),
            7 if pick(4) == 0 => engine.pause(now, scope),
            7 => engine.resume(now, scope),
            8 if pick(8) == 0 => drop(engine.crawl_delay(now, scope, Some(Span::from_millis(700.0)))),
            _ if !flying.is_empty() => {
                let ticket = flying.remove(pick(flying.len()));
                let (status, lines) =
                    [(200, ""), (200, "date: none"), (429, "retry-after: 20\n"), (503, "")][pick(4)];
                let latency_ms = Some(pick(900) as f64);
                let hint = told(lines, status);
                engine.settle(now, ticket, &Feedback { latency_ms, hint, ..Feedback::response(status) });
            }
            _ => {}
        }
        while let Decision::Send(ticket) = engine.poll(now) {
            flying.push(ticket);
        }
    }
    for &scope in &scopes {
        engine.resume(now, scope);
    }
    for _ in 0..400 {
        for ticket in flying.drain(..) {
            engine.settle(now, ticket, &Feedback { latency_ms: Some(5.0), ..Feedback::response(200) });
        }
        match engine.poll(now) {
            Decision::Send(ticket) => flying.push(ticket),
            Decision::Wait { until, .. } => now = until,
            Decision::Idle { .. } => break,
        }
    }
    (engine, scopes, now)
}

#[test]
fn an_engine_from_a_snapshot_is_as_one_that_never_stopped() {
    for seed in 0..60 {
        let (engine, scopes, now) = lived(seed);
        for offline in [0.0, 150.0, 3000.0, 30_000.0, 400_000.0] {
            let text = serde_json::to_string(&Value::from(engine.snapshot(now, Some(WALL)))).unwrap();
            let snapshot = Snapshot::parse(serde_json::from_str(&text).unwrap()).unwrap();
            let later = now + Span::from_millis(offline);
            let start = millis(50.0);
            let next = Engine::restore(config(), &snapshot, start, Some(WALL + offline));
            let what = format!("seed {seed}, {offline} ms later");
            for (&scope, name) in scopes.iter().zip(NAMES) {
                let Some(found) = next.find(name) else { continue };
                let here = engine.peek(later, Request::new(&[scope])).unwrap();
                let there = next.peek(start, Request::new(&[found])).unwrap();
                let wait = |at: Option<Instant>, from: Instant| at.map(|at| at.since(from));
                assert_eq!(wait(here.at, later), wait(there.at, start), "{what}: {name}, {here:?} {there:?}");
                let why = |peek: Peek| peek.because.map(|cause| cause.reason);
                assert_eq!(why(here), why(there), "{what}: {name}");
            }
        }
    }
}

/// The server's report of its quota counts after a restart, for as long as it said.
#[test]
fn a_rest_that_a_server_said_survives() {
    let mut first = Engine::new(config());
    let scope = first.scope("rolling");
    let ticket = first.send_at_once(millis(0.0), Request::new(&[scope])).unwrap().expect("nothing keeps it");
    let hint = told("x-ratelimit-limit: 50\nx-ratelimit-remaining: 2\nx-ratelimit-reset: 45\n", 200);
    first.settle(millis(100.0), ticket, &Feedback { hint, ..Feedback::response(200) });
    let snapshot = first.snapshot(millis(5100.0), Some(WALL));
    for (offline, left_ms) in [(0.0, Some(40_000.0)), (10_000.0, Some(30_000.0)), (40_000.0, None)] {
        let mut next = Engine::restore(config(), &snapshot, millis(70.0), Some(WALL + offline));
        let scope = next.scope("rolling");
        for _ in 0..2 {
            let ticket = next.send_at_once(millis(70.0), Request::new(&[scope])).unwrap();
            next.settle(millis(70.0), ticket.expect("two are left"), &Feedback::response(200));
        }
        let third = next.peek(millis(70.0), Request::new(&[scope])).unwrap();
        let wait = third.because.map(|_| third.at.expect("it ends").since(millis(70.0)));
        assert_eq!(wait, left_ms.map(Span::from_millis), "{offline} ms later");
    }
}

/// The engine that goes on counts time from elsewhere; what it tells is in the caller's time. A wall clock
/// that goes on ends a hold, and one that went back adds no time.
#[test]
fn a_hold_that_goes_on_is_told_in_the_time_of_its_caller() {
    let at = millis;
    let mut first = Engine::new(config());
    let scope = first.scope("plain");
    first.hold(at(10.0), scope, Span::from_millis(500.0));
    assert_eq!(first.scope_stats(at(20.0), scope).unwrap().hold_until, Some(510.0));
    for (wall, told) in [
        (None, Some(7400.0)),
        (Some(1e12 + 150.0), Some(7250.0)),
        (Some(1e12 + 400.0), None),
        (Some(1e12 - 150.0), Some(7400.0)),
    ] {
        let snapshot = first.snapshot(at(110.0), Some(1e12));
        let mut next = Engine::restore(config(), &snapshot, at(7000.0), wall);
        let scope = next.scope("plain");
        assert_eq!(next.scope_stats(at(7000.0), scope).unwrap().hold_until, told, "{wall:?}");
    }
}

/// The delay of robots.txt holds in the next process, too. A random part of a refusal's wait makes no hold
/// longer than a snapshot can say.
#[test]
fn the_longest_hold_goes_on() {
    for options in [
        r#"{ "backoff": { "maxHold": 31536000000 } }"#,
        r#"{ "rampup": true, "backoff": { "maxHold": 31536000000 } }"#,
    ] {
        for seed in 0..20 {
            let options = options.replacen('{', &format!(r#"{{ "seed": {seed},"#), 1);
            let config = Config::parse(json(&options)).unwrap();
            let mut engine = Engine::new(config.clone());
            let scope = engine.scope("a");
            let now = millis(1000.0);
            let ticket = engine.send_at_once(now, Request::new(&[scope])).unwrap().expect("no request waits");
            let hint = Hint { hold: Some(Span::from_millis(31_536_000_000.0)), ..Hint::default() };
            engine.settle(now, ticket, &Feedback { hint, ..Feedback::response(429) });
            let snapshot = Value::from(engine.snapshot(now, Some(WALL)));
            let read = Snapshot::parse(snapshot).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            let next = Engine::restore(config, &read, now, Some(WALL));
            let [held, before] = [&next, &engine]
                .map(|engine| engine.scope_stats(now, engine.find("a").unwrap()).unwrap().hold_until);
            assert_eq!(held, before, "seed {seed}");
        }
    }
}

#[test]
fn a_crawl_delay_goes_on() {
    let at = millis;
    let mut first = Engine::new(config());
    let scope = first.scope("not typed");
    first.crawl_delay(at(0.0), scope, Some(Span::from_millis(7000.0)));
    let snapshot = first.snapshot(at(1.0), None);
    let mut next = Engine::restore(config(), &snapshot, at(0.0), None);
    let scope = next.scope("not typed");
    let ticket = next.send_at_once(at(0.0), Request::new(&[scope])).unwrap().expect("nothing waits");
    next.settle(at(0.0), ticket, &Feedback::response(200));
    assert_eq!(next.peek(at(0.0), Request::new(&[scope])).unwrap().at, Some(at(7000.0)));
}

/// Every mistake has its path, and a snapshot that has one restores no part.
#[test]
fn a_broken_snapshot_is_refused() {
    let cases = [
        (r#"{ "scopes": {} }"#, "version"),
        (r#"{ "version": 2, "scopes": {} }"#, "version"),
        (r#"{ "version": 1 }"#, "scopes"),
        (r#"{ "version": 1, "wallMs": 5 }"#, "scopes"),
        (r#"{ "version": 1, "scopes": null, "wallMs": 5 }"#, "scopes"),
        (r#"{ "version": 1, "scopes": 5 }"#, "scopes"),
        (r#"{ "version": 1, "wallMs": "now", "scopes": {} }"#, "wallMs"),
        (r#"{ "version": 1, "wallMs": 2e15, "scopes": {} }"#, "wallMs"),
        (r#"{ "version": 1, "wallMs": -1, "scopes": {} }"#, "wallMs"),
        (r#"{ "version": 1, "scopes": {}, "more": 1 }"#, "more"),
    ];
    let learned = [
        (r"5", ""),
        (r#"{ "sinceSend": -1 }"#, "sinceSend"),
        (r#"{ "sinceSend": true }"#, "sinceSend"),
        (r#"{ "sinceSend": 1e13 }"#, "sinceSend"),
        (r#"{ "rests": 5 }"#, "rests"),
        (r#"{ "rests": [1, -1] }"#, "rests[1]"),
        (r#"{ "hold": "long" }"#, "hold"),
        (r#"{ "isPaused": 1 }"#, "isPaused"),
        (r#"{ "quotas": [5] }"#, "quotas[0]"),
        (r#"{ "quotas": [{ "window": "x", "sends": [] }] }"#, "quotas[0].window"),
        (r#"{ "quotas": [{ "window": 9, "sends": [[1, 1], [2, 1]] }] }"#, "quotas[0].sends"),
        (r#"{ "quotas": [{ "window": 9, "sends": [[1]] }] }"#, "quotas[0].sends[0]"),
        (r#"{ "quotas": [{ "window": 9, "sends": [[1, 1, 1]] }] }"#, "quotas[0].sends[0]"),
        (r#"{ "backoff": 5 }"#, "backoff"),
        (r#"{ "backoff": { "steps": 1000001 } }"#, "backoff.steps"),
        (r#"{ "backoff": { "rested": 256 } }"#, "backoff.rested"),
        (r#"{ "left": { "units": -1 } }"#, "left.units"),
        (r#"{ "left": { "span": [] } }"#, "left.span"),
        (r#"{ "nonsense": 1 }"#, "nonsense"),
        (r#"{ "delaySeconds": 1e13 }"#, "delaySeconds"),
    ];
    let of_scope = learned.map(|(json, path)| {
        let whole = format!(r#"{{ "version": 1, "scopes": {{ "a": {json} }} }}"#);
        (whole, format!("scopes.a{}{path}", if path.is_empty() { "" } else { "." }))
    });
    let whole = cases.map(|(json, path)| (json.to_owned(), path.to_owned()));
    for (json, path) in whole.into_iter().chain(of_scope) {
        let error = Snapshot::parse(serde_json::from_str(&json).unwrap()).expect_err(&json);
        let paths: Vec<_> = error.problems.iter().map(|problem| &problem.path[..]).collect();
        assert_eq!(paths, [path], "{json}");
    }
    // At the bounds it is taken.
    let most = r#"{ "version": 1, "wallMs": 1e15, "scopes": { "a": {
        "backoff": { "slots": 1000000, "steps": 1000000, "rested": 255 },
        "quotas": [{ "window": 9, "sends": [[2, 1], [2, 1], [1, 1]] }] } } }"#;
    assert!(Snapshot::parse(serde_json::from_str(most).unwrap()).is_ok());
}

/// After a restart less than was said before is the same window, so it ends when the server says; more would
/// be a new one.
#[test]
fn a_reset_told_before_a_restart_still_says_which_window_it_is() {
    let at = millis;
    let answer = |left: u32| {
        let lines = format!("ratelimit-policy: \"p\";q=9;w=10\nratelimit: \"p\";r={left};t=60\n");
        Feedback { hint: told(&lines, 200), ..Feedback::response(200) }
    };
    let mut first = Engine::new(config());
    let scope = first.scope("rolling");
    let ticket = first.send_at_once(at(0.0), Request::new(&[scope])).unwrap().expect("nothing keeps it");
    first.settle(at(1.0), ticket, &answer(5));
    let snapshot = first.snapshot(at(2.0), Some(WALL));
    for (left, ends) in [(1, 60_000.0..62_000.0), (6, 10_000.0..12_000.0)] {
        let mut next = Engine::restore(config(), &snapshot, at(2.0), Some(WALL));
        let scope = next.scope("rolling");
        let ticket = next.send_at_once(at(2.0), Request::new(&[scope])).unwrap().expect("five are left");
        next.settle(at(3.0), ticket, &answer(left));
        let costs = [f64::from(left) + 1.0];
        let peek = next.peek(at(3.0), Request { costs: &costs, ..Request::new(&[scope]) }).unwrap();
        assert!(peek.at.is_some_and(|at| ends.contains(&at.millis())), "{left} left: {peek:?}");
    }
}

/// The policies' memory counts from the first request on.
#[test]
fn the_found_gap_is_the_gap_of_the_next_process() {
    let options = r#"{ "defaults": { "rampup": true, "jitter": false } }"#;
    let config = Config::parse(json(options)).unwrap();
    let at = millis;
    for (learned, gap) in [
        (r#""gap": 2500"#, 2500.0),
        (r#""gap": 100, "gapMargin": 0.2"#, 125.0),
        (r#""gap": 100, "gapMargin": 0.2, "gapClimb": 1"#, 100.0),
        (r#""gap": 100, "gapMargin": 0.2, "gapClimb": 2"#, 100.0 / 1.6),
        // No belief is closer than chance allows, and none is wider than a third.
        (r#""gap": 100, "gapMargin": 0"#, 104.3),
        (r#""gap": 100, "gapMargin": 1"#, 150.0),
        (r#""gapMargin": 0.2, "gapClimb": 1"#, 0.0),
    ] {
        let text = format!(r#"{{ "version": 1, "scopes": {{ "a": {{ {learned} }} }} }}"#);
        let snapshot = Snapshot::parse(serde_json::from_str(&text).unwrap()).unwrap();
        let mut engine = Engine::restore(config.clone(), &snapshot, at(0.0), None);
        let scope = engine.scope("a");
        engine.send_at_once(at(0.0), Request::new(&[scope])).unwrap().expect("nothing waits");
        let next = engine.peek(at(0.0), Request::new(&[scope])).unwrap().at.expect("it comes").millis();
        assert!((next - gap).abs() < 0.1, "{learned}: {next} ms");
    }
}

/// A slot rests after its request was sent, also where that was on its way when the process ended.
#[test]
fn a_request_on_its_way_keeps_its_slot_for_as_long_as_it_would_have_rested() {
    let options = r#"{ "jitter": false, "defaults": { "delay": 0, "slotDelay": 10000, "concurrency": 1 } }"#;
    let config = || Config::parse(json(options)).unwrap();
    let at = millis;
    let mut engine = Engine::new(config());
    let scope = engine.scope("a");
    engine.send_at_once(at(0.0), Request::new(&[scope])).unwrap().expect("nothing waits");
    let snapshot = engine.snapshot(at(3000.0), Some(WALL));
    let next = Engine::restore(config(), &snapshot, at(0.0), Some(WALL + 2000.0));
    let found = next.find("a").expect("it is remembered");
    assert_eq!(next.peek(at(0.0), Request::new(&[found])).unwrap().at, Some(at(5000.0)));
    assert_eq!(next.peek_new(at(7.0)), Peek { at: Some(at(7.0)), because: None }, "a scope of no past");
}
