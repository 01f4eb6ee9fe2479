//! Servers with a limit that nobody tells, in virtual time, and what rampup makes of them.
//!
//! Each model is a few lines after what it models: a token bucket (GCRA is the same server), nginx's `limit_req`, a fixed and a
//! sliding window, a limit of concurrency. The network adds latency with jitter. The engine is driven through its public
//! calls alone, with a load that never ends.

use std::{cmp::Reverse, collections::BinaryHeap, fmt::Write};

use autothrottle::{
    Config, Decision, Engine, Feedback, Hint, Hints, Instant, Request, Rng, Span, Ticket, hints::Context,
};

/// What a server does with a request that arrives at `now` (seconds).
#[derive(Clone, Debug)]
enum Server {
    /// `rate` tokens a second, at most `depth`.
    Bucket { rate: f64, depth: f64, tokens: f64, at: f64 },
    /// `limit` per window, on a grid.
    Fixed { limit: u32, window: f64, used: u32, index: u64 },
    /// `limit` in any window.
    Sliding { limit: usize, window: f64, accepted: Vec<f64> },
    /// So many at a time, each takes `time`.
    Concurrency { slots: usize, time: f64, busy: Vec<f64> },
}

impl Server {
    fn bucket(rate: f64, depth: f64) -> Self {
        Self::Bucket { rate, depth, tokens: depth, at: 0.0 }
    }

    fn fixed(limit: u32, window: f64) -> Self {
        Self::Fixed { limit, window, used: 0, index: 0 }
    }

    fn sliding(limit: usize, window: f64) -> Self {
        Self::Sliding { limit, window, accepted: Vec::new() }
    }

    /// Requests per second that it bears.
    fn limit(&self) -> f64 {
        match self {
            Self::Bucket { rate, .. } => *rate,
            Self::Fixed { limit, window, .. } => f64::from(*limit) / window,
            Self::Sliding { limit, window, .. } => *limit as f64 / window,
            Self::Concurrency { slots, time, .. } => *slots as f64 / time,
        }
    }

    fn set_rate(&mut self, new: f64) {
        if let Self::Bucket { rate, .. } = self {
            *rate = new;
        }
    }

    /// Whether it is served.
    fn accept(&mut self, now: f64) -> bool {
        match self {
            Self::Bucket { rate, depth, tokens, at } => {
                *tokens = (*tokens + (now - *at) * *rate).min(*depth);
                *at = now;
                let is_served = *tokens >= 1.0;
                *tokens -= f64::from(u8::from(is_served));
                is_served
            }
            Self::Fixed { limit, window, used, index } => {
                let current = (now / *window) as u64;
                if current != *index {
                    (*index, *used) = (current, 0);
                }
                *used += 1;
                *used <= *limit
            }
            Self::Sliding { limit, window, accepted } => {
                accepted.retain(|&at| at > now - *window);
                let is_served = accepted.len() < *limit;
                if is_served {
                    accepted.push(now);
                }
                is_served
            }
            Self::Concurrency { slots, time, busy } => {
                busy.retain(|&until| until > now);
                let is_served = busy.len() < *slots;
                if is_served {
                    busy.push(now + *time);
                }
                is_served
            }
        }
    }
}

struct Scenario {
    name: &'static str,
    server: Server,
    /// Seconds there and back, and how much more at most.
    latency: f64,
    jitter: f64,
    retry_after: Option<u32>,
    /// From when on the limit is another.
    step: Option<(f64, f64)>,
}

impl Scenario {
    fn new(name: &'static str, server: Server, latency: f64, jitter: f64) -> Self {
        Self { name, server, latency, jitter, retry_after: None, step: None }
    }
}

/// What came of it.
#[derive(Debug, Default)]
struct Outcome {
    /// Accepted ÷ limit, in the second half.
    utilisation: f64,
    /// Refused ÷ sent, in the whole.
    refused: f64,
    /// Refusals per 60 s, in the second half.
    per_window: f64,
    /// Seconds until 90 % of the limit was kept up for five seconds or ten requests.
    reached: f64,
    /// The same after the step of the limit.
    regained: f64,
    /// When the client sent, in seconds.
    sends: Vec<f64>,
    most_in_flight: u32,
}

fn run(scenario: &Scenario, options: &str, seconds: f64) -> Outcome {
    let config = Config::parse(serde_json::from_str(options).unwrap()).unwrap();
    let mut engine = Engine::new(config);
    let scope = [engine.scope("x")];
    let mut server = scenario.server.clone();
    let mut rng = Rng::new(11);
    let mut now = Instant::default();
    // Arrivals at the server and answers at the client, by time.
    let mut events: BinaryHeap<Reverse<(Instant, u8, Ticket, bool)>> = BinaryHeap::new();
    let mut answers: Vec<(f64, bool)> = Vec::new();
    let mut sends: Vec<f64> = Vec::new();
    let mut most_in_flight = 0;
    let span = |seconds: f64| Span::from_millis(seconds * 1000.0);
    let time = |instant: Instant| instant.millis() / 1000.0;
    while time(now) < seconds {
        while engine.waiting() < 50 {
            engine.submit(now, Request::new(&scope)).unwrap();
        }
        let wake = loop {
            match engine.poll(now) {
                Decision::Send(ticket) => {
                    let there = scenario.latency / 2.0 + rng.draw().unit() * scenario.jitter;
                    events.push(Reverse((now + span(there), 0, ticket, false)));
                    sends.push(time(now));
                    most_in_flight = most_in_flight.max(engine.in_flight());
                    engine.submit(now, Request::new(&scope)).unwrap();
                }
                Decision::Wait { until, .. } => break Some(until),
                Decision::Idle { .. } => break None,
            }
        };
        let event = events.peek().map(|Reverse((at, ..))| *at);
        now = wake.into_iter().chain(event).min().expect("something goes on");
        while let Some(&Reverse((at, kind, ticket, is_served))) = events.peek()
            && at <= now
        {
            events.pop();
            if kind == 0 {
                if let Some((from, rate)) = scenario.step
                    && time(at) >= from
                {
                    server.set_rate(rate);
                }
                let is_served = server.accept(time(at));
                answers.push((time(at), is_served));
                let service = match &server {
                    Server::Concurrency { time, .. } if is_served => *time,
                    _ => 0.0,
                };
                events.push(Reverse((at + span(scenario.latency / 2.0 + service), 1, ticket, is_served)));
            } else {
                let status = if is_served { 200 } else { 429 };
                let lines = match scenario.retry_after {
                    Some(after) if !is_served => format!("retry-after: {after}"),
                    _ => String::new(),
                };
                let hint = Hint::of(&Hints::from_lines(&lines, Context { status, ..Context::default() }));
                engine.settle(now, ticket, &Feedback { hint, ..Feedback::response(status) });
            }
        }
    }
    let limit = |at: f64| match scenario.step {
        Some((from, rate)) if at >= from => rate,
        _ => scenario.server.limit(),
    };
    let half = seconds / 2.0;
    let late: Vec<_> = answers.iter().filter(|(at, _)| *at >= half).collect();
    let accepted = late.iter().filter(|(_, ok)| *ok).count() as f64;
    let reached = |from: f64| {
        let good: Vec<f64> =
            answers.iter().filter(|(at, ok)| *ok && *at >= from).map(|(at, _)| *at).collect();
        let span = (10.0 / limit(from)).max(5.0);
        good.iter()
            .enumerate()
            .find(|&(index, &start)| {
                let served = good[index..].iter().take_while(|&&at| at < start + span).count() as f64;
                served >= 0.9 * limit(from) * span
            })
            .map_or(f64::INFINITY, |(_, &at)| at - from)
    };
    Outcome {
        utilisation: accepted / (limit(seconds) * half),
        refused: answers.iter().filter(|(_, ok)| !ok).count() as f64 / answers.len() as f64,
        per_window: late.iter().filter(|(_, ok)| !ok).count() as f64 / half * 60.0,
        reached: reached(0.0),
        regained: scenario.step.map_or(0.0, |(from, _)| reached(from)),
        sends,
        most_in_flight,
    }
}

fn scenarios() -> Vec<Scenario> {
    let plain = Scenario::new;
    let mut all = vec![
        plain("nginx 10/s, burst 0", Server::bucket(10.0, 1.0), 0.2, 0.0),
        plain("nginx 10/s, burst 20", Server::bucket(10.0, 21.0), 0.2, 0.0),
        plain("nginx 10/s, burst 0, 10 ms jitter", Server::bucket(10.0, 1.0), 0.2, 0.01),
        plain("bucket 0.2/s, depth 1", Server::bucket(0.2, 1.0), 0.1, 0.0),
        plain("bucket 0.5/s, depth 5", Server::bucket(0.5, 5.0), 0.1, 0.0),
        plain("bucket 7/s, depth 3", Server::bucket(7.0, 3.0), 0.05, 0.002),
        plain("bucket 50/s, depth 10", Server::bucket(50.0, 10.0), 0.05, 0.002),
        plain("bucket 133/s, depth 20", Server::bucket(133.0, 20.0), 0.05, 0.002),
        plain("bucket 2000/s, depth 100", Server::bucket(2000.0, 100.0), 0.02, 0.001),
        plain("bucket 10/s, depth 300", Server::bucket(10.0, 300.0), 0.1, 0.0),
        plain("fixed 60 per minute", Server::fixed(60, 60.0), 0.1, 0.0),
        plain("fixed 100 per 10 s", Server::fixed(100, 10.0), 0.1, 0.005),
        plain("fixed 10 per second", Server::fixed(10, 1.0), 0.1, 0.005),
        plain("sliding 5 per second", Server::sliding(5, 1.0), 0.08, 0.002),
        plain("sliding 100 per minute", Server::sliding(100, 60.0), 0.1, 0.005),
        plain("sliding 30 per second, 2 s away", Server::sliding(30, 1.0), 2.0, 0.02),
        plain(
            "4 at a time, 300 ms each",
            Server::Concurrency { slots: 4, time: 0.3, busy: vec![] },
            0.02,
            0.002,
        ),
    ];
    let mut told =
        Scenario::new("sliding 5 per second, Retry-After: 1", Server::sliding(5, 1.0), 0.08, 0.002);
    told.retry_after = Some(1);
    all.push(told);
    for (name, rate) in [("10/s doubles", 20.0), ("10/s halves", 5.0)] {
        let mut moving = Scenario::new(name, Server::bucket(10.0, 5.0), 0.1, 0.002);
        moving.step = Some((300.0, rate));
        all.push(moving);
    }
    all
}

/// The table of `docs/rampup.md`, from cold, fifteen minutes each, nothing tuned. `UPDATE_GOLDEN=1` writes it.
#[test]
fn limits_are_found_and_kept() {
    let options = r#"{ "concurrency": 200, "defaults": { "rampup": true } }"#;
    let outcomes: Vec<(Scenario, Outcome)> = scenarios()
        .into_iter()
        .map(|scenario| {
            let outcome = run(&scenario, options, 900.0);
            (scenario, outcome)
        })
        .collect();
    let mut table = String::from(
        "| server | utilisation | refused | refused per minute, settled | 90 % after | 90 % after the step |\n|---|---|---|---|---|---|\n",
    );
    for (scenario, outcome) in &outcomes {
        let Outcome { utilisation, refused, per_window, reached, regained, .. } = outcome;
        let again = if scenario.step.is_some() { format!("{regained:.0} s") } else { "–".into() };
        writeln!(
            table,
            "| {} | {utilisation:.3} | {:.2} % | {per_window:.2} | {reached:.1} s | {again} |",
            scenario.name,
            refused * 100.0
        )
        .unwrap();
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/rampup.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden")).unwrap();
        std::fs::write(path, &table).unwrap();
    }
    assert!(
        std::fs::read_to_string(path).unwrap_or_default() == table,
        "npm run bless writes it anew:\n{table}"
    );
    let docs = include_str!("../../docs/rampup.md");
    assert!(docs.contains(table.trim()), "docs/rampup.md shows another table than tests/golden/rampup.md");
    let median = |of: fn(&Outcome) -> f64| {
        let mut all: Vec<f64> = outcomes.iter().map(|(_, outcome)| of(outcome)).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    assert!(median(|outcome| outcome.utilisation) >= 0.985);
    assert!(median(|outcome| outcome.per_window) <= 1.1);
    assert!(outcomes.iter().all(|(_, outcome)| outcome.utilisation >= 0.89 && outcome.per_window <= 3.0));
    assert!(outcomes.iter().all(|(_, outcome)| outcome.regained <= 120.0), "two windows after the step");
}

/// What the user set for the very scope, its quota, and what a server that asks for more is held to.
#[test]
fn no_bound_is_overstepped_by_a_scope_that_ramps() {
    let options = r#"{ "concurrency": 200, "scopes": { "x": { "rampup": { "backoffTarget": [1, 3] }, "delay": 150, "concurrency": 3,
        "quota": { "limit": 50, "window": 10000, "strict": true } } } }"#;
    for scenario in scenarios() {
        let Outcome { sends, most_in_flight, .. } = run(&scenario, options, 200.0);
        assert!(most_in_flight <= 3, "{}: {most_in_flight} in flight", scenario.name);
        for pair in sends.windows(2) {
            assert!(pair[1] - pair[0] >= 0.15 - 1e-9, "{}: {} after {}", scenario.name, pair[1], pair[0]);
        }
        for all in sends.windows(51) {
            assert!(all[50] - all[0] >= 10.0 - 1e-9, "{}: 51 in less than the window", scenario.name);
        }
    }
}

/// Five hundred good answers, and none of them to a request that had to wait.
#[test]
fn unused_capacity_is_no_evidence() {
    let config = r#"{ "defaults": { "rampup": true } }"#;
    let mut engine = Engine::new(Config::parse(serde_json::from_str(config).unwrap()).unwrap());
    let scope = [engine.scope("x")];
    let mut now = Instant::default();
    for _ in 0..500 {
        let ticket = engine.submit(now, Request::new(&scope)).unwrap();
        assert_eq!(engine.poll(now), Decision::Send(ticket), "nobody asks for more than one in five seconds");
        now = now + Span::from_millis(50.0);
        engine.settle(now, ticket, &Feedback::response(200));
        now = now + Span::from_millis(5000.0);
    }
    let delay = engine.scope_stats(now, scope[0]).unwrap().delay_ms;
    assert!(
        delay >= 1.0,
        "five hundred requests in forty minutes prove nothing about a thousand a second: {delay}"
    );
}
