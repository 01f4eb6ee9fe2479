//! Servers that do not tell their limit: those that the law was made with. `drawn` has those that it never
//! saw.
//!
//! A law that was tuned in a kind world fails in the real one. So every scenario has timers that fire late, a
//! network and a server that jitter, and lost packets, unless it says otherwise.

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

const SERVERS: &str = include_str!("../vectors/servers.txt");

/// The servers that the law was made with.
pub fn train() -> Vec<Scenario> {
    read(SERVERS.split("\n\n").next())
}

/// Those of one limit for several clients.
pub fn shared() -> Vec<Scenario> {
    read(SERVERS.split("\n\n").nth(1))
}

fn read(part: Option<&str>) -> Vec<Scenario> {
    let row = |line: &str| {
        let [minutes, name, server, network] = *line.split('|').map(str::trim).collect::<Vec<_>>() else {
            panic!("four columns: {line}")
        };
        Scenario::new(name, server, network, minutes.trim_end_matches(" min").parse().unwrap())
    };
    part.unwrap().lines().filter(|line| !line.starts_with('#')).map(row).collect()
}
