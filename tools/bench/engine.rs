//! The cost of a decision: `npm run bench:engine`.
//!
//! Two tables. One has the simple cycle (submit, poll, settle in one scope). The other has the cost per
//! dispatch while N requests wait over N/10 hosts, with and without one more scope that all share. Read the
//! ratios: machines differ. Each figure is the best of several rounds, so what else the machine does counts
//! little. With the name of a workload and a number it only runs that many: `npm run bench:instructions`
//! counts what they take.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the real clock")]

use std::{collections::VecDeque, env, hint::black_box, time};

use autothrottle::{
    Boundary, Config, Decision, Engine, Feedback, Instant, Request, ScopeId, Span, Ticket,
    boundary::{Outcome, Settled},
};

fn main() {
    let words: Vec<String> = env::args().filter(|word| word != "--bench").skip(1).collect();
    if let [workload, waiting, dispatches] = &words[..] {
        let (waiting, dispatches) =
            (waiting.parse().expect("how many wait"), dispatches.parse().expect("how many"));
        match &workload[..] {
            "simple" => simple_cycle(dispatches as u64, SLOTS, false),
            "once" => simple_cycle(dispatches as u64, SLOTS, true),
            "rate" => simple_cycle(dispatches as u64, RATE, true),
            "delay" => simple_cycle(dispatches as u64, DELAY, true),
            "line" => line(dispatches as u64),
            "limits" => answers_with_limits(dispatches as u64),
            "known" => answers_of_budgets(waiting, dispatches as u64, false),
            "unknown" => answers_of_budgets(waiting, dispatches as u64, true),
            "own" => crowd(waiting, false, dispatches),
            "shared" => crowd(waiting, true, dispatches),
            other => panic!("no workload {other}"),
        };
        return;
    }
    println!("simple cycle: {:.0} ns", best(5, || simple_cycle(300_000, SLOTS, false)));
    for (name, options) in [("at once", SLOTS), ("with a rate", RATE), ("with a delay", DELAY)] {
        println!("{name:<13} {:.0} ns", best(5, || simple_cycle(300_000, options, true)));
    }
    println!("in line:      {:.0} ns", best(5, || line(300_000)));
    println!("with limits:  {:.0} ns", best(5, || answers_with_limits(30_000)));
    println!("\nwaiting      own hosts  ratio   shared scope  ratio");
    let mut base = [0.0; 2];
    for waiting in [1000, 10_000, 100_000, 1_000_000] {
        let rounds = if waiting < 1_000_000 { 5 } else { 2 };
        let costs = [false, true].map(|shared| best(rounds, || crowd(waiting, shared, waiting.min(200_000))));
        if waiting == 1000 {
            base = costs;
        }
        let [own, shared] = costs;
        println!(
            "{waiting:>9} {own:>9.0} ns {:>6.2} {shared:>11.0} ns {:>6.2}",
            own / base[0],
            shared / base[1]
        );
    }
}

fn best(rounds: usize, measure: impl Fn() -> f64) -> f64 {
    (0..rounds).map(|_| measure()).fold(f64::MAX, f64::min)
}

fn engine(options: &str) -> Engine {
    Engine::new(Config::parse(serde_json::from_str(options).expect("JSON")).expect("options"))
}

/// A scope that only slots bound.
const SLOTS: &str = r#"{ "defaults": { "delay": 0, "slotDelay": 0, "jitter": false } }"#;
/// The same with a pace that never keeps a request a millisecond after another.
const RATE: &str = r#"{ "defaults": { "rate": 10000 } }"#;
const DELAY: &str = r#"{ "defaults": { "delay": 1, "slotDelay": 0, "jitter": false } }"#;

fn simple_cycle(cycles: u64, options: &str, is_at_once: bool) -> f64 {
    let mut engine = engine(options);
    let scope = [engine.scope("example.com")];
    let start = time::Instant::now();
    for cycle in 0..cycles {
        let now = Instant::from_micros(cycle * 1000);
        let ticket = if is_at_once {
            engine.send_at_once(now, Request::new(&scope)).expect("taken in").expect("no request waits")
        } else {
            let ticket = engine.submit(now, Request::new(&scope)).expect("taken in");
            assert_eq!(engine.poll(now), Decision::Send(ticket));
            black_box(engine.poll(now));
            ticket
        };
        engine.settle(now, ticket, &Feedback { latency_ms: Some(1.0), ..Feedback::response(200) });
    }
    start.elapsed().as_nanos() as f64 / cycles as f64
}

/// A thousand requests wait for ten slots of one scope: for each that ends, one leaves and one comes.
fn line(cycles: u64) -> f64 {
    let mut engine =
        engine(r#"{ "defaults": { "delay": 0, "slotDelay": 0, "jitter": false, "concurrency": 10 } }"#);
    let scope = [engine.scope("example.com")];
    let mut flying = VecDeque::new();
    for _ in 0..1000 {
        engine.submit(Instant::default(), Request::new(&scope)).expect("taken in");
    }
    let start = time::Instant::now();
    for cycle in 0..cycles {
        let now = Instant::from_micros(cycle * 1000);
        while let Decision::Send(ticket) = engine.poll(now) {
            flying.push_back(ticket);
        }
        let ticket = flying.pop_front().expect("ten are in flight");
        engine.settle(now, ticket, &Feedback { latency_ms: Some(1.0), ..Feedback::response(200) });
        engine.submit(now, Request::new(&scope)).expect("taken in");
    }
    start.elapsed().as_nanos() as f64 / cycles as f64
}

/// The same as hosts call it, with answers that have `RateLimit` fields.
fn answers_with_limits(cycles: u64) -> f64 {
    const LINES: &str = "ratelimit: \"default\";r=50;t=30\nratelimit-policy: \"default\";q=100;w=60\n";
    let mut boundary = Boundary::new(serde_json::from_str(SLOTS).expect("JSON")).expect("options");
    let scope = boundary.scope("example.com");
    let start = time::Instant::now();
    for cycle in 0..cycles {
        let now = cycle as f64;
        let ticket = boundary.send_at_once(now, scope, 1.0, 0.0);
        let outcome = Outcome { lines: LINES, wall_ms: 1.8e12, ..Outcome::new(200.0, 1.0, f64::NAN, 0) };
        assert_eq!(boundary.settle(now, ticket, &outcome), Settled::Over);
    }
    start.elapsed().as_nanos() as f64 / cycles as f64
}

/// Requests to a server with `budgets` budgets: to a route that is known, or to a new one each time.
fn answers_of_budgets(budgets: usize, cycles: u64, is_new: bool) -> f64 {
    let mut boundary = Boundary::new(serde_json::from_str(SLOTS).expect("JSON")).expect("options");
    let scope = boundary.scope("api.example");
    let mut now = 0.0;
    let mut cycle = |route: String, budget: usize| {
        now += 10.0;
        let ticket = boundary.submit(now, scope, 1.0, 0.0, 0.0);
        let url = format!("https://api.example/{route}");
        boundary.route(now, ticket, "GET", &url);
        assert_eq!(boundary.poll(now), ticket, "none is used up");
        boundary.route(now, ticket, "GET", &url);
        let lines =
            format!("x-ratelimit-resource: r{budget}\nx-ratelimit-remaining: 900\nx-ratelimit-reset: 30\n");
        let outcome =
            Outcome { lines: &lines, wall_ms: 1.8e12 + now, ..Outcome::new(200.0, 1.0, f64::NAN, 0) };
        assert_eq!(boundary.settle(now, ticket, &outcome), Settled::Over);
        boundary.take_notices();
    };
    let word = |mut number: u64| {
        let mut word = String::from("w");
        for _ in 0..6 {
            word.push(char::from(b'a' + (number % 26) as u8));
            number /= 26;
        }
        word
    };
    for budget in 0..budgets {
        cycle(word(budget as u64), budget);
    }
    let start = time::Instant::now();
    for number in 0..cycles {
        let budget = (number * 7 % budgets as u64) as usize;
        let route = if is_new { word(1_000_000 + number) } else { word(budget as u64) };
        cycle(route, budget);
    }
    start.elapsed().as_nanos() as f64 / cycles as f64
}

/// Nanoseconds per dispatch (poll, settle, and what they move) while `waiting` requests wait.
fn crowd(waiting: usize, is_shared: bool, dispatches: usize) -> f64 {
    let mut engine = engine(
        r#"{ "maxInFlight": 1000000, "defaults": { "delay": 1000, "slotDelay": 0, "concurrency": 2, "jitter": false },
             "scopes": { "shared": { "delay": 0, "concurrency": 64 } } }"#,
    );
    let shared = engine.scope("shared");
    let hosts: Vec<ScopeId> =
        (0..waiting / 10).map(|host| engine.scope(&format!("host-{host}.example"))).collect();
    let mut now = Instant::default();
    for index in 0..waiting {
        let host = hosts[index % hosts.len()];
        let scopes: &[ScopeId] = if is_shared { &[shared, host] } else { &[host] };
        engine.submit(now, Request::new(scopes)).expect("taken in");
    }
    let mut flying: VecDeque<(Instant, Ticket)> = VecDeque::new();
    let mut sent = 0;
    let start = time::Instant::now();
    while sent < dispatches {
        let wake = loop {
            match engine.poll(now) {
                Decision::Send(ticket) => {
                    sent += 1;
                    flying.push_back((now + Span::from_micros(100), ticket));
                }
                Decision::Wait { until, .. } => break Some(until),
                Decision::Idle { .. } => break None,
            }
        };
        let answer = flying.front().map(|&(at, _)| at);
        now = wake.into_iter().chain(answer).min().expect("something is going on");
        while let Some(&(at, ticket)) = flying.front()
            && at <= now
        {
            flying.pop_front();
            engine.settle(now, ticket, &Feedback { latency_ms: Some(0.1), ..Feedback::response(200) });
        }
    }
    start.elapsed().as_nanos() as f64 / sent as f64
}
