//! Servers that do not tell their limit: those that the law was made with. `drawn` has those that it never
//! saw.
//!
//! The trap is a world that is too kind: a law that was tuned in one fails in the real one. So every scenario
//! has timers that fire late, a network and a server that jitter, and lost packets, unless it says otherwise.

use std::fmt::Write;

use autothrottle::{Instant, Span, simulate::Simulation};

/// A server, the way to it, and for how long.
#[derive(Clone)]
pub struct Scenario {
    pub name: String,
    /// What `server` of a simulation takes, without braces.
    pub server: String,
    /// The same of `network`.
    pub network: String,
    pub minutes: f64,
}

/// What every client and every way has: a timer late by 0.3 to 1.3 ms, two milliseconds of jitter each way,
/// one packet in a thousand lost.
const WORLD: &[(&str, &str)] =
    &[("timerLag", "0.3"), ("timerJitter", "1"), ("jitter", "2"), ("slow", "0.001"), ("slowBy", "250")];
/// The same of every server.
const LIMITER: (&str, &str) = ("jitter", "0.5");

impl Scenario {
    fn new(name: &str, server: &str, network: &str, minutes: f64) -> Self {
        Self { name: name.into(), server: server.into(), network: network.into(), minutes }
    }

    /// The simulation of it; `more` goes beside `server`.
    pub fn simulation(&self, throttle: &str, seed: u64, more: &str) -> Simulation {
        let mut network = self.network.clone();
        for (key, value) in WORLD.iter().filter(|(key, _)| !self.network.contains(&format!("\"{key}\""))) {
            let comma = if network.is_empty() { "" } else { ", " };
            write!(network, "{comma}\"{key}\": {value}").unwrap();
        }
        let mut server = self.server.clone();
        if !server.contains("\"jitter\"") {
            write!(server, ", \"{}\": {}", LIMITER.0, LIMITER.1).unwrap();
        }
        let duration = self.minutes * 60_000.0;
        let json = format!(
            r#"{{ "server": {{ {server} }}, "network": {{ {network} }}, "duration": {duration}, "seed": {seed}, "throttle": {throttle}{more} }}"#
        );
        Simulation::parse(serde_json::from_str(&json).expect(&json))
            .unwrap_or_else(|error| panic!("{error}: {json}"))
    }

    /// Requests per second that the server bears on average, settled.
    pub fn limit(&self) -> f64 {
        let server = self.simulation("{}", 1, "").server();
        let at = |index: u32| {
            Instant::default() + Span::from_millis(self.minutes * 60_000.0 * (0.5 + f64::from(index) / 400.0))
        };
        (0..200).map(|index| server.limit(at(index))).sum::<f64>() / 200.0
    }

    /// Whether the limit steps on the way.
    pub fn has_step(&self) -> bool {
        self.server.contains("\"step\"")
    }

    /// Whether the limit is the same at all times and only the pace decides who is refused. (A refusal that
    /// costs minutes halves the ten minutes that it is in, at any pace.)
    pub fn is_constant(&self) -> bool {
        !["step", "drift", "outage", "others", "failing", "ban", "retryAfter"]
            .iter()
            .any(|word| self.server.contains(&format!("\"{word}\"")))
    }
}

/// The servers that the law was made with.
pub fn train() -> Vec<Scenario> {
    TRAIN
        .iter()
        .map(|&(name, server, network, minutes)| Scenario::new(name, server, network, minutes))
        .collect()
}

/// Those of one limit for several clients.
pub fn shared() -> Vec<Scenario> {
    SHARED.iter().map(|&(name, server, network)| Scenario::new(name, server, network, 15.0)).collect()
}

type Row = (&'static str, &'static str, &'static str, f64);

const TRAIN: &[Row] = &[
    // Token buckets.
    ("bucket 0.2/s, depth 1", r#""model": "token-bucket", "rate": 0.2"#, "", 60.0),
    ("bucket 0.5/s, depth 5", r#""model": "token-bucket", "rate": 0.5, "depth": 5"#, "", 30.0),
    (
        "bucket 1/s, depth 10, 2 s away",
        r#""model": "token-bucket", "rate": 1, "depth": 10"#,
        r#""latency": 2000, "jitter": 20"#,
        15.0,
    ),
    (
        "bucket 5/s, depth 1, Retry-After",
        r#""model": "token-bucket", "rate": 5, "says": "retry-after""#,
        "",
        15.0,
    ),
    ("bucket 7/s, depth 3", r#""model": "token-bucket", "rate": 7, "depth": 3"#, r#""latency": 50"#, 15.0),
    (
        "bucket 10/s, depth 5, RateLimit",
        r#""model": "token-bucket", "rate": 10, "depth": 5, "says": "rate-limit""#,
        "",
        15.0,
    ),
    // `remaining: 0, reset: 1` asks for a second of silence, in which it would serve 116.
    (
        "bucket 116/s, depth 5, RateLimit",
        r#""model": "token-bucket", "rate": 116, "depth": 5, "says": "rate-limit""#,
        r#""latency": 4"#,
        10.0,
    ),
    ("bucket 10/s, depth 21", r#""model": "token-bucket", "rate": 10, "depth": 21"#, "", 15.0),
    ("bucket 10/s, depth 300", r#""model": "token-bucket", "rate": 10, "depth": 300"#, "", 15.0),
    (
        "bucket 20/s, depth 40, 500 ms away",
        r#""model": "token-bucket", "rate": 20, "depth": 40"#,
        r#""latency": 500, "jitter": 20"#,
        15.0,
    ),
    (
        "bucket 50/s, depth 10",
        r#""model": "token-bucket", "rate": 50, "depth": 10"#,
        r#""latency": 50"#,
        15.0,
    ),
    (
        "bucket 133/s, depth 20",
        r#""model": "token-bucket", "rate": 133, "depth": 20"#,
        r#""latency": 50"#,
        10.0,
    ),
    (
        "bucket 500/s, depth 50, 5 ms away",
        r#""model": "token-bucket", "rate": 500, "depth": 50"#,
        r#""latency": 5, "jitter": 1"#,
        5.0,
    ),
    (
        "bucket 2000/s, depth 100",
        r#""model": "token-bucket", "rate": 2000, "depth": 100"#,
        r#""latency": 20"#,
        5.0,
    ),
    // nginx and GCRA.
    ("nginx 10/s", r#""model": "nginx", "rate": 10"#, r#""latency": 5, "jitter": 0.5"#, 15.0),
    (
        "nginx 10/s, 200 ms upstream",
        r#""model": "nginx", "rate": 10, "upstream": 200"#,
        r#""latency": 5"#,
        15.0,
    ),
    ("nginx 10/s, 10 ms jitter", r#""model": "nginx", "rate": 10"#, r#""latency": 200, "jitter": 10"#, 15.0),
    (
        "nginx 7/s, burst 5",
        r#""model": "nginx", "rate": 7, "burst": 5"#,
        r#""latency": 200, "jitter": 5"#,
        15.0,
    ),
    (
        "nginx 10/s, burst 20",
        r#""model": "nginx", "rate": 10, "burst": 20"#,
        r#""latency": 200, "jitter": 5"#,
        15.0,
    ),
    (
        "nginx 10/s, burst 20, delay",
        r#""model": "nginx", "rate": 10, "burst": 20, "delay": true"#,
        r#""latency": 200, "jitter": 5"#,
        15.0,
    ),
    (
        "nginx 100/s, burst 50, delay",
        r#""model": "nginx", "rate": 100, "burst": 50, "delay": true"#,
        r#""latency": 30, "jitter": 5"#,
        10.0,
    ),
    // Finding 10: with 16 in flight this one stays at .48.
    ("nginx 133/s, 120 ms away", r#""model": "nginx", "rate": 133, "burst": 5"#, r#""latency": 120"#, 10.0),
    // Finding 2: a timer that is late by a millisecond.
    ("nginx 250/s", r#""model": "nginx", "rate": 250"#, r#""latency": 5, "jitter": 0.5"#, 5.0),
    ("nginx 500/s", r#""model": "nginx", "rate": 500"#, r#""latency": 5, "jitter": 0.5"#, 5.0),
    (
        "nginx 500/s, burst 5",
        r#""model": "nginx", "rate": 500, "burst": 5"#,
        r#""latency": 5, "timerLag": 1"#,
        5.0,
    ),
    ("gcra 3/s, burst 2", r#""model": "gcra", "rate": 3, "burst": 2"#, r#""latency": 80, "jitter": 5"#, 15.0),
    (
        "gcra 30/s, burst 10, Retry-After",
        r#""model": "gcra", "rate": 30, "burst": 10, "says": "retry-after""#,
        r#""latency": 80, "jitter": 5"#,
        15.0,
    ),
    ("gcra 1000/s, burst 100", r#""model": "gcra", "rate": 1000, "burst": 100"#, r#""latency": 10"#, 5.0),
    // Finding 3: latency that varies.
    (
        "bucket 30/s, answers of 0.1 to 3.9 s",
        r#""model": "token-bucket", "rate": 30, "depth": 5, "upstream": 2000, "upstreamSpread": 0.95"#,
        "",
        15.0,
    ),
    (
        "gcra 10/s, burst 3, answers of 0.4 to 16 s",
        r#""model": "gcra", "rate": 10, "burst": 3, "upstream": 8000, "upstreamSpread": 0.95"#,
        "",
        15.0,
    ),
    // Windows.
    ("fixed 20 per minute", r#""model": "fixed-window", "limit": 20"#, "", 30.0),
    ("fixed 60 per minute", r#""model": "fixed-window", "limit": 60"#, "", 30.0),
    (
        "fixed 60 per minute, Retry-After",
        r#""model": "fixed-window", "limit": 60, "says": "retry-after""#,
        "",
        30.0,
    ),
    (
        "fixed 60 per minute, RateLimit",
        r#""model": "fixed-window", "limit": 60, "says": "rate-limit""#,
        "",
        30.0,
    ),
    ("fixed 600 per minute", r#""model": "fixed-window", "limit": 600"#, r#""jitter": 5"#, 15.0),
    (
        "fixed 100 per 10 s",
        r#""model": "fixed-window", "limit": 100, "window": 10000"#,
        r#""jitter": 5"#,
        15.0,
    ),
    (
        "fixed 10 per second",
        r#""model": "fixed-window", "limit": 10, "window": 1000"#,
        r#""jitter": 5"#,
        15.0,
    ),
    (
        "fixed 100 per second, 2 s away",
        r#""model": "fixed-window", "limit": 100, "window": 1000"#,
        r#""latency": 2000, "jitter": 50"#,
        10.0,
    ),
    (
        "fixed 1000 per second",
        r#""model": "fixed-window", "limit": 1000, "window": 1000"#,
        r#""latency": 20"#,
        5.0,
    ),
    (
        "sliding 5 per second",
        r#""model": "sliding-window", "limit": 5, "window": 1000"#,
        r#""latency": 80"#,
        15.0,
    ),
    (
        "sliding 5 per second, RateLimit",
        r#""model": "sliding-window", "limit": 5, "window": 1000, "says": "rate-limit""#,
        r#""latency": 80"#,
        15.0,
    ),
    (
        "sliding 30 per second, 2 s away",
        r#""model": "sliding-window", "limit": 30, "window": 1000"#,
        r#""latency": 2000, "jitter": 20"#,
        15.0,
    ),
    // Each touch costs a whole flight: the span has to be as wide as what each of them says.
    (
        "sliding 3288 per 12 s, 700 ms away",
        r#""model": "sliding-window", "limit": 3288, "window": 12000"#,
        r#""latency": 700, "jitter": 40"#,
        6.0,
    ),
    ("sliding 100 per minute", r#""model": "sliding-window", "limit": 100"#, r#""jitter": 5"#, 30.0),
    (
        "sliding 300 per second",
        r#""model": "sliding-window", "limit": 300, "window": 1000"#,
        r#""latency": 30"#,
        5.0,
    ),
    // Finding 6: a number at a time is the limit.
    (
        "1 at a time, 2 s each",
        r#""model": "concurrency", "slots": 1, "service": 2000"#,
        r#""latency": 50"#,
        15.0,
    ),
    (
        "4 at a time, 300 ms each",
        r#""model": "concurrency", "slots": 4, "service": 300"#,
        r#""latency": 20"#,
        15.0,
    ),
    (
        "20 at a time, 100 ms each",
        r#""model": "concurrency", "slots": 20, "service": 100"#,
        r#""latency": 20"#,
        15.0,
    ),
    (
        "6 at a time, 800 ms each",
        r#""model": "concurrency", "slots": 6, "service": 800"#,
        r#""latency": 30"#,
        15.0,
    ),
    (
        "8 at a time, 0.05 to 0.95 s each",
        r#""model": "concurrency", "slots": 8, "service": 500, "spread": 0.9"#,
        "",
        15.0,
    ),
    (
        "2 at a time, 0.1 to 0.3 s each",
        r#""model": "concurrency", "slots": 2, "service": 200, "spread": 0.5"#,
        r#""latency": 5"#,
        15.0,
    ),
    (
        "30 at a time, 0.2 to 1.8 s each",
        r#""model": "concurrency", "slots": 30, "service": 1000, "spread": 0.8"#,
        r#""latency": 40"#,
        15.0,
    ),
    // Finding 1: 10 per second with one slot.
    (
        "1 at a time, 100 ms each",
        r#""model": "concurrency", "slots": 1, "service": 100"#,
        r#""latency": 5"#,
        15.0,
    ),
    (
        "queue, 4 workers of 200 ms, gateway 5 s",
        r#""model": "queue", "workers": 4, "service": 200, "spread": 0.5, "patience": 5000"#,
        r#""latency": 50, "jitter": 5"#,
        15.0,
    ),
    (
        "queue, 8 workers of 50 ms, room for 16",
        r#""model": "queue", "workers": 8, "service": 50, "spread": 0.5, "room": 16"#,
        r#""latency": 50, "jitter": 5"#,
        15.0,
    ),
    // Finding 4: bans, and a Retry-After that is a penalty.
    (
        "bucket 10/s, depth 10, ban 30 s",
        r#""model": "token-bucket", "rate": 10, "depth": 10, "ban": 30000"#,
        "",
        30.0,
    ),
    (
        "sliding 100 per 10 s, ban 60 s, Retry-After",
        r#""model": "sliding-window", "limit": 100, "window": 10000, "ban": 60000, "says": "retry-after""#,
        "",
        30.0,
    ),
    (
        "bucket 10/s, depth 10, Retry-After: 60",
        r#""model": "token-bucket", "rate": 10, "depth": 10, "retryAfter": 60000"#,
        "",
        60.0,
    ),
    (
        "bucket 10/s, depth 10, Retry-After: 3600",
        r#""model": "token-bucket", "rate": 10, "depth": 10, "retryAfter": 3600000"#,
        "",
        120.0,
    ),
    // Finding 7: requests that fail whatever the pace.
    (
        "bucket 20/s, depth 10, 1 % fail with 503",
        r#""model": "token-bucket", "rate": 20, "depth": 10, "failing": 0.01"#,
        "",
        60.0,
    ),
    (
        "bucket 20/s, depth 10, 2 % fail with 503",
        r#""model": "token-bucket", "rate": 20, "depth": 10, "failing": 0.02"#,
        "",
        60.0,
    ),
    (
        "nginx 20/s, burst 5, 3 % fail with 503",
        r#""model": "nginx", "rate": 20, "burst": 5, "failing": 0.03"#,
        "",
        60.0,
    ),
    (
        "bucket 20/s, depth 10, 5 % fail with 500",
        r#""model": "token-bucket", "rate": 20, "depth": 10, "failing": 0.05, "failingStatus": 500"#,
        "",
        15.0,
    ),
    // Finding 8: an outage.
    (
        "bucket 10/s, depth 5, down for 60 s",
        r#""model": "token-bucket", "rate": 10, "depth": 5, "outage": { "at": 480000, "length": 60000 }"#,
        "",
        16.0,
    ),
    (
        "queue, 6 workers of 100 ms, down for 2 min",
        r#""model": "queue", "workers": 6, "service": 100, "spread": 0.5, "room": 40, "outage": { "at": 481000, "length": 120000 }"#,
        r#""latency": 30"#,
        16.0,
    ),
    // Finding 1: several servers, and others.
    (
        "three of 10/s, burst 5, behind a balancer",
        r#""model": "nginx", "rate": 10, "burst": 5, "replicas": 3"#,
        "",
        30.0,
    ),
    (
        "three windows of 100 per 10 s behind a balancer",
        r#""model": "fixed-window", "limit": 100, "window": 10000, "replicas": 3"#,
        "",
        30.0,
    ),
    (
        "bucket 30/s, others take 15/s half of the time",
        r#""model": "token-bucket", "rate": 30, "depth": 10, "others": { "rate": 15, "period": 240000 }"#,
        "",
        40.0,
    ),
    // Others refuse one in ten, whatever the pace: each climb ended below the last.
    (
        "gcra 3.6/s, others take 2.9/s a sixth of the time",
        r#""model": "gcra", "rate": 3.6, "burst": 0, "others": { "rate": 2.9, "period": 85000, "share": 0.17 }"#,
        r#""latency": 5"#,
        60.0,
    ),
    (
        "sliding 20 per second, others take 5/s",
        r#""model": "sliding-window", "limit": 20, "window": 1000, "others": { "rate": 5, "period": 60000, "share": 0.9 }"#,
        "",
        30.0,
    ),
    // How a server says no: the pace is refused, whatever it is called.
    (
        "bucket 10/s, depth 20, 503",
        r#""model": "token-bucket", "rate": 10, "depth": 20, "refusal": "503""#,
        "",
        15.0,
    ),
    (
        "bucket 30/s, depth 50, 502",
        r#""model": "token-bucket", "rate": 30, "depth": 50, "refusal": "502""#,
        "",
        15.0,
    ),
    (
        "bucket 10/s, depth 20, 403",
        r#""model": "token-bucket", "rate": 10, "depth": 20, "refusal": "403""#,
        "",
        15.0,
    ),
    (
        "bucket 10/s, depth 20, 403, ban 60 s",
        r#""model": "token-bucket", "rate": 10, "depth": 20, "refusal": "403", "ban": 60000"#,
        "",
        60.0,
    ),
    (
        "bucket 15/s, depth 10, silence",
        r#""model": "token-bucket", "rate": 15, "depth": 10, "refusal": "silence""#,
        r#""timeout": 10000"#,
        15.0,
    ),
    (
        "bucket 5/s, depth 2, reset",
        r#""model": "token-bucket", "rate": 5, "depth": 2, "refusal": "reset""#,
        "",
        15.0,
    ),
    // Healthy ones that fail by themselves: a ratchet to .41, .25, .85 of the limit.
    (
        "bucket 100/s, depth 20, 1 % fail",
        r#""model": "token-bucket", "rate": 100, "depth": 20, "failing": 0.01"#,
        "",
        15.0,
    ),
    (
        "bucket 300/s, depth 20, 1 % fail",
        r#""model": "token-bucket", "rate": 300, "depth": 20, "failing": 0.01"#,
        "",
        6.0,
    ),
    (
        "bucket 30/s, depth 20, 3 % fail with 502",
        r#""model": "token-bucket", "rate": 30, "depth": 20, "failing": 0.03, "failingStatus": 502"#,
        "",
        15.0,
    ),
    (
        "bucket 20/s, depth 10, 503, 2 % fail",
        r#""model": "token-bucket", "rate": 20, "depth": 10, "refusal": "503", "failing": 0.02"#,
        "",
        20.0,
    ),
    (
        "bucket 20/s, depth 10, 30 % are forbidden",
        r#""model": "token-bucket", "rate": 20, "depth": 10, "failing": 0.3, "failingStatus": 403"#,
        "",
        15.0,
    ),
    // Late timers, as of Windows or of an event loop that works.
    (
        "bucket 90/s, timers 0 to 15 ms late",
        r#""model": "token-bucket", "rate": 90, "depth": 20"#,
        r#""timerLag": 0.1, "timerJitter": 15"#,
        10.0,
    ),
    (
        "bucket 700/s, timers 0 to 20 ms late",
        r#""model": "token-bucket", "rate": 700, "depth": 50"#,
        r#""timerLag": 0.1, "timerJitter": 20"#,
        5.0,
    ),
    // Long windows, low rates, quotas, punishment.
    ("counter 2000 per hour", r#""model": "sliding-counter", "limit": 2000, "window": 3600000"#, "", 240.0),
    ("1 at a time, 10 s each", r#""model": "concurrency", "slots": 1, "service": 10000"#, "", 60.0),
    (
        "bucket 10/s, depth 10, 3600 per hour",
        r#""model": "token-bucket", "rate": 10, "depth": 10, "allowance": { "limit": 3600, "window": 3600000 }"#,
        "",
        120.0,
    ),
    (
        "bucket 10/s, depth 10, adaptive",
        r#""model": "token-bucket", "rate": 10, "depth": 10, "adaptive": { "factor": 0.8, "recovery": 0.01 }"#,
        "",
        30.0,
    ),
    (
        "bucket 10/s, depth 10, down for 5 min with Retry-After",
        r#""model": "token-bucket", "rate": 10, "depth": 10, "says": "retry-after", "outage": { "at": 400000, "length": 300000 }"#,
        "",
        20.0,
    ),
    // Limits that move.
    (
        "bucket 10/s doubles",
        r#""model": "token-bucket", "rate": 10, "depth": 5, "step": { "at": 300000, "factor": 2 }"#,
        "",
        15.0,
    ),
    (
        "bucket 10/s halves",
        r#""model": "token-bucket", "rate": 10, "depth": 5, "step": { "at": 300000, "factor": 0.5 }"#,
        "",
        15.0,
    ),
    (
        "bucket 100/s, tenfold",
        r#""model": "token-bucket", "rate": 100, "depth": 20, "step": { "at": 180000, "factor": 10 }"#,
        r#""latency": 30"#,
        6.0,
    ),
    (
        "nginx 20/s, burst 5, doubles",
        r#""model": "nginx", "rate": 20, "burst": 5, "step": { "at": 300000, "factor": 2 }"#,
        r#""latency": 200"#,
        15.0,
    ),
    (
        "fixed 100 per 10 s doubles",
        r#""model": "fixed-window", "limit": 100, "window": 10000, "step": { "at": 300000, "factor": 2 }"#,
        r#""jitter": 5"#,
        15.0,
    ),
    (
        "sliding 10 per second halves",
        r#""model": "sliding-window", "limit": 10, "window": 1000, "step": { "at": 300000, "factor": 0.5 }"#,
        r#""jitter": 5"#,
        15.0,
    ),
    (
        "bucket 10/s drifts to 20 and back in 10 min",
        r#""model": "token-bucket", "rate": 10, "depth": 10, "drift": { "period": 600000, "factor": 2 }"#,
        r#""jitter": 5"#,
        30.0,
    ),
];

/// Finding 9: one limit for several, on every kind of window.
const SHARED: &[(&str, &str, &str)] = &[
    ("bucket 20/s, depth 10", r#""model": "token-bucket", "rate": 20, "depth": 10"#, r#""jitter": 5"#),
    ("nginx 50/s, burst 10", r#""model": "nginx", "rate": 50, "burst": 10"#, r#""latency": 50, "jitter": 5"#),
    (
        "sliding 100 per second",
        r#""model": "sliding-window", "limit": 100, "window": 1000"#,
        r#""latency": 50, "jitter": 5"#,
    ),
    ("fixed 300 per 10 s", r#""model": "fixed-window", "limit": 300, "window": 10000"#, r#""jitter": 5"#),
    ("fixed 600 per minute", r#""model": "fixed-window", "limit": 600"#, r#""jitter": 5"#),
];
