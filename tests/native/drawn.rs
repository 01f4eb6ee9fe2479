//! Servers drawn from a seed, as many as are wanted: a held-out set that nobody has seen.
//!
//! A set that was looked at twice is no longer held out. So there is no fixed one: a seed draws a new one,
//! and the law is judged once on each. Kinds, limits, latencies, noise, and what befalls a server (bans,
//! failures, others, balancers, steps, outages) are drawn each by itself, from wide ranges, so they also come
//! together.

use std::fmt::Write;

use crate::scenarios::Scenario;

struct Draws(u64);

impl Draws {
    /// Evenly from 0 to 1. Source: `SplitMix64`, whose neighbouring seeds have nothing in common.
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn is(&mut self, chance: f64) -> bool {
        self.unit() < chance
    }

    /// Evenly on a logarithmic scale, by repeated square roots: `powf` differs from machine to machine.
    fn between(&mut self, low: f64, high: f64) -> f64 {
        let (mut low, mut high) = (low, high);
        for _ in 0..16 {
            let middle = (low * high).sqrt();
            if self.is(0.5) { high = middle } else { low = middle }
        }
        let scale = if low >= 100.0 { 1.0 } else { 1000.0 };
        (low * scale).round().max(1.0) / scale
    }

    fn whole(&mut self, low: f64, high: f64) -> f64 {
        self.between(low, high).round().max(1.0)
    }

    /// One of these, each with its weight.
    fn one<'a>(&mut self, of: &[(&'a str, f64)]) -> &'a str {
        let mut left = self.unit() * of.iter().map(|(_, weight)| weight).sum::<f64>();
        let found = of.iter().find(|(_, weight)| {
            left -= weight;
            left < 0.0
        });
        found.unwrap_or(&of[0]).0
    }
}

/// So many servers of this seed.
pub fn drawn(count: u64, seed: u64) -> Vec<Scenario> {
    (0..count).map(|index| one(seed.wrapping_mul(1_000_003).wrapping_add(index))).collect()
}

fn one(seed: u64) -> Scenario {
    let d = &mut Draws(seed);
    let (server, rate, window) = model(d);
    let befallen = befalls(d, rate);
    // Long enough for some thousand requests and a dozen windows, and no longer than an hour.
    let minutes = (20_000.0 / rate / 60.0).max(window / 5.0).clamp(6.0, 60.0).round();
    let latency = d.between(2.0, 2500.0);
    let network = format!(
        r#""latency": {latency}, "jitter": {}, "timerLag": {}, "timerJitter": {}, "slow": {}, "slowBy": {}"#,
        d.between(0.1, 50.0).min(latency / 2.0),
        d.between(0.05, 3.0),
        d.between(0.2, 5.0),
        d.between(0.001, 0.01),
        d.between(50.0, 2000.0),
    );
    let server = format!(r#"{server}{befallen}, "jitter": {}"#, d.between(0.1, 5.0));
    let name = server.replace(['"', '{', '}'], "").replace("model: ", "").replace(": ", " ");
    Scenario { name: format!("{name}; {latency} ms away"), server, network, minutes }
}

/// What the server takes, its limit, about so many requests a second, and the seconds of its window.
fn model(d: &mut Draws) -> (String, f64, f64) {
    let kinds = [
        ("token-bucket", 24.0),
        ("nginx", 16.0),
        ("gcra", 8.0),
        ("fixed-window", 16.0),
        ("sliding-window", 14.0),
        ("concurrency", 8.0),
        ("queue", 6.0),
    ];
    let kind = d.one(&kinds);
    let rate = d.between(0.2, 800.0);
    // A depth of one gets along with few requests a second only.
    let deep = d.whole(1.0, 200.0);
    let depth = if d.is(0.25) || rate * 30.0 < deep { 1.0 } else { deep };
    let model = format!(r#""model": "{kind}""#);
    match kind {
        "token-bucket" => (format!(r#"{model}, "rate": {rate}, "depth": {depth}"#), rate, 0.0),
        "nginx" => {
            let delay = if d.is(0.2) { r#", "delay": true"# } else { "" };
            (format!(r#"{model}, "rate": {rate}, "burst": {}{delay}"#, depth - 1.0), rate, 0.0)
        }
        "gcra" => (format!(r#"{model}, "rate": {rate}, "burst": {}"#, depth - 1.0), rate, 0.0),
        "fixed-window" | "sliding-window" => {
            let window = d.whole(1.0, 120.0);
            let limit = (rate * window).round().max(2.0);
            let millis = window * 1000.0;
            (format!(r#"{model}, "limit": {limit}, "window": {millis}"#), limit / window, window)
        }
        "concurrency" => {
            let (slots, service) = (d.whole(1.0, 40.0), d.whole(20.0, 3000.0));
            let spread = (d.unit() * 0.95 * 100.0).round() / 100.0;
            let rate = slots / service * 1000.0;
            (format!(r#"{model}, "slots": {slots}, "service": {service}, "spread": {spread}"#), rate, 0.0)
        }
        _ => {
            let (workers, service) = (d.whole(1.0, 20.0), d.whole(10.0, 800.0));
            let room = d.whole(4.0, 200.0);
            let rate = workers / service * 1000.0;
            let sizes = format!(r#""workers": {workers}, "service": {service}, "room": {room}"#);
            (format!(r#"{model}, {sizes}, "spread": 0.5"#), rate, 0.0)
        }
    }
}

/// What befalls it: most often nothing, rarely several things at once.
fn befalls(d: &mut Draws, rate: f64) -> String {
    let mut all = String::new();
    let says = d.one(&[("", 70.0), ("retry-after", 22.0), ("rate-limit", 8.0)]);
    if !says.is_empty() {
        write!(all, r#", "says": "{says}""#).unwrap();
    }
    if d.is(0.04) {
        write!(all, r#", "ban": {}"#, d.whole(2.0, 120.0) * 1000.0).unwrap();
    }
    if d.is(0.08) {
        write!(all, r#", "failing": {}"#, d.between(0.002, 0.04)).unwrap();
    }
    if d.is(0.05) {
        write!(all, r#", "replicas": {}"#, d.whole(2.0, 8.0)).unwrap();
    }
    if d.is(0.08) {
        let (rate, period) = (rate * d.between(0.05, 0.8), d.whole(10.0, 900.0) * 1000.0);
        let share = d.between(0.1, 0.9);
        write!(all, r#", "others": {{ "rate": {rate:.3}, "period": {period}, "share": {share} }}"#).unwrap();
    }
    if d.is(0.12) {
        write!(all, r#", "upstream": {}, "upstreamSpread": 0.9"#, d.whole(20.0, 6000.0)).unwrap();
    }
    if d.is(0.06) {
        let at = d.whole(60.0, 300.0) * 1000.0;
        write!(all, r#", "step": {{ "at": {at}, "factor": {} }}"#, d.between(0.2, 5.0)).unwrap();
    }
    if d.is(0.03) {
        let period = d.whole(120.0, 1800.0) * 1000.0;
        write!(all, r#", "drift": {{ "period": {period}, "factor": {} }}"#, d.between(1.2, 3.0)).unwrap();
    }
    if d.is(0.03) {
        let length = d.whole(5.0, 120.0) * 1000.0;
        write!(all, r#", "outage": {{ "at": 150000, "length": {length} }}"#).unwrap();
    }
    all
}
