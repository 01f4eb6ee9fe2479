//! Servers that do not tell their limit: those that the law was made with. `drawn` has those that it never
//! saw.
//!
//! A law that was tuned in a kind world fails in the real one. Every scenario therefore has timers that fire
//! late, a network and a server that jitter, and lost packets, unless it says otherwise.

use std::{
    fmt::Write,
    hash::{DefaultHasher, Hash, Hasher},
};

use autothrottle::{
    Instant, Span,
    simulate::{Simulation, Summary, Trace},
};

use crate::{
    baselines::best_constant,
    simulate::{HEADER, Policy, SEED, in_parallel, line, rank, refused, run},
};

/// A server, the way to it, and for how long.
#[derive(Clone)]
pub struct Scenario {
    pub name: String,
    /// The options of a simulated server, without braces.
    pub server: String,
    /// The same of `network`.
    pub network: String,
    pub minutes: f64,
}

/// The faults of every client and every way: a timer late by 0.3 to 1.3 ms, two milliseconds of jitter each
/// way, one packet in a thousand lost.
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

// Servers drawn from a seed, as many as are wanted: a held-out set, never looked at. `DRAWN="60 7"` judges
// sixty that seed 7 draws, class by class; `DRAWN="public 11 12"` those that the law was made with, twice.
//
// A set that was looked at twice is no longer held out. There is therefore no fixed one: a seed draws a new
// one, and the law is judged once on each. It draws kinds, limits, latencies, noise, how a server says no,
// and what befalls it (bans, failures, others, balancers, steps, outages). Each comes by itself, from a wide
// range, so they also come together.

struct Draws(u64);

impl Draws {
    /// Evenly from 0 to 1. Source: `SplitMix64`, whose neighbouring seeds are unrelated.
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

/// This many servers of this seed.
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
        if d.is(0.2) { d.between(5.0, 20.0) } else { d.between(0.2, 5.0) },
        d.between(0.001, 0.01),
        d.between(50.0, 2000.0),
    );
    let network = format!(r#"{network}, "timeout": {}"#, d.whole(5.0, 60.0) * 1000.0);
    let server = format!(r#"{server}{befallen}, "jitter": {}"#, d.between(0.1, 5.0));
    let name = server.replace(['"', '{', '}'], "").replace("model: ", "").replace(": ", " ");
    Scenario { name: format!("{name}; {latency} ms away"), server, network, minutes }
}

/// The model of a server, its limit, about how many requests a second that is, and the seconds of its window.
fn model(d: &mut Draws) -> (String, f64, f64) {
    let kinds = [
        ("token-bucket", 24.0),
        ("nginx", 16.0),
        ("gcra", 8.0),
        ("fixed-window", 16.0),
        ("sliding-window", 14.0),
        ("sliding-counter", 6.0),
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
        "fixed-window" | "sliding-window" | "sliding-counter" => {
            // Some are an hour long.
            let window = if d.is(0.15) { d.whole(300.0, 3600.0) } else { d.whole(1.0, 120.0) };
            let rate = rate.min(20_000.0 / window);
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

/// The troubles of a server: most often no trouble, rarely several at once.
fn befalls(d: &mut Draws, rate: f64) -> String {
    let mut all = String::new();
    let refusal = d.one(&[
        ("", 45.0),
        ("429", 15.0),
        ("503", 12.0),
        ("502", 6.0),
        ("403", 12.0),
        ("silence", 5.0),
        ("reset", 5.0),
    ]);
    if !refusal.is_empty() {
        write!(all, r#", "refusal": "{refusal}""#).unwrap();
    }
    let says = d.one(&[("", 70.0), ("retry-after", 22.0), ("rate-limit", 8.0)]);
    if !says.is_empty() {
        write!(all, r#", "says": "{says}""#).unwrap();
    }
    if d.is(0.04) {
        write!(all, r#", "ban": {}"#, d.whole(2.0, 120.0) * 1000.0).unwrap();
    }
    if d.is(0.15) {
        let status = d.one(&[("503", 6.0), ("502", 2.0), ("500", 2.0)]);
        write!(all, r#", "failing": {}, "failingStatus": {status}"#, d.between(0.0005, 0.03)).unwrap();
    }
    if d.is(0.04) {
        let (factor, recovery) = (d.between(0.3, 0.9), d.between(0.001, 0.05));
        write!(all, r#", "adaptive": {{ "factor": {factor}, "recovery": {recovery} }}"#).unwrap();
    }
    if d.is(0.03) {
        // A tenth to nine tenths of what the other limit would serve.
        let window = d.whole(300.0, 3600.0);
        let limit = (rate * window * d.between(0.1, 0.9)).round().max(5.0);
        write!(all, r#", "allowance": {{ "limit": {limit}, "window": {} }}"#, window * 1000.0).unwrap();
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

/// Whether a server is of a class.
type Class = fn(&Judged) -> bool;

/// The result for one server.
struct Judged {
    scenario: Scenario,
    /// Of its chance.
    seed: u64,
    summary: Summary,
    /// Of the best constant rate; no more than 1.05, so that no lucky one outweighs another.
    ratio: f64,
    best: f64,
    /// Refusals in the first minute.
    first: f64,
    /// How long 200 served requests would have to take, ÷ how long they took.
    job: f64,
}

impl Judged {
    fn new((scenario, seed): &(Scenario, u64), is_report: bool) -> Self {
        let best = if is_report { best_known(scenario, *seed) } else { 1.0 };
        let (Trace { exchanges, .. }, summary) = run(scenario, Policy::Rampup, *seed, "");
        let minute = Instant::default() + Span::from_millis(60_000.0);
        let first = exchanges.iter().filter(|each| each.is_refused && each.sent < minute).count();
        let mut served: Vec<Instant> =
            exchanges.iter().filter(|each| each.is_served()).filter_map(|each| each.answered).collect();
        served.sort_unstable();
        let least = 200.0 / scenario.limit() + summary.latency_ms / 1000.0;
        let job = served.get(199).map_or(0.0, |end| (least / end.millis() * 1000.0).min(1.05));
        let ratio = (summary.utilisation / best.max(0.01)).min(1.05);
        Self { scenario: scenario.clone(), seed: *seed, summary, ratio, best, first: first as f64, job }
    }

    fn says(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.scenario.server.contains(word))
    }

    fn is_merely_failing(&self) -> bool {
        let fails = ["nginx", "concurrency", "queue"].map(|model| format!("\"model\": \"{model}\""));
        let is_own = fails.iter().any(|model| self.scenario.server.contains(model));
        self.says(&[r#""refusal": "50"#, r#""refusal": "silence"#, r#""refusal": "reset"#])
            || is_own && !self.says(&["\"refusal\""])
    }

    fn is_late(&self) -> bool {
        let Some((_, rest)) = self.scenario.network.split_once("\"timerJitter\": ") else { return false };
        rest.split(',').next().unwrap().parse::<f64>().unwrap() >= 5.0
    }
}

/// With `DRAWN_CACHE`, a folder, it is searched once for each server: nine tenths of the time is that search.
pub fn best_known(scenario: &Scenario, seed: u64) -> f64 {
    let Some(folder) = std::env::var_os("DRAWN_CACHE") else { return best_constant(scenario, seed) };
    let mut hasher = DefaultHasher::new();
    (&scenario.server, &scenario.network, scenario.minutes.to_bits(), seed).hash(&mut hasher);
    let file = std::path::Path::new(&folder).join(format!("{:016x}", hasher.finish()));
    if let Some(known) = std::fs::read_to_string(&file).ok().and_then(|text| text.parse().ok()) {
        return known;
    }
    let best = best_constant(scenario, seed);
    std::fs::write(&file, best.to_string()).unwrap();
    best
}

fn class(name: &str, all: &[&Judged]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let of = |figure: &dyn Fn(&Judged) -> f64| all.iter().map(|each| figure(each)).collect::<Vec<f64>>();
    let at = |figure: &dyn Fn(&Judged) -> f64, share: f64| rank(of(figure), share);
    let mean = of(&|each| each.ratio).iter().sum::<f64>() / all.len() as f64;
    let (share, minute) =
        (&|each: &Judged| refused(&each.summary).0, &|each: &Judged| refused(&each.summary).1);
    format!(
        "| {name} | {} | {:.3} / {:.2} / {:.2}, {mean:.3} | {:.2} % / {:.1} % | {:.2} / {:.1} | {:.0} / {:.0} | {:.2} / {:.2} |\n",
        all.len(),
        at(&|each| each.ratio, 0.5),
        at(&|each| each.ratio, 0.1),
        at(&|each| each.ratio, 0.0),
        at(share, 0.5),
        at(share, 0.9),
        at(minute, 0.5),
        at(minute, 0.9),
        at(&|each| each.first, 0.5),
        at(&|each| each.first, 0.9),
        at(&|each| each.job, 0.5),
        at(&|each| each.job, 0.1),
    )
}

const CLASSES: &str = "| | servers | of the best constant rate: median / p10 / worst, mean | refused, median / p90 | a minute, median / p90 | in the first minute, median / p90 | 200 requests at the limit ÷ in fact, median / p10 |\n|---|---|---|---|---|---|---|\n";

/// Servers drawn from a seed without a look at them: `DRAWN="COUNT SEED …"`.
#[test]
fn servers_that_were_drawn() {
    let wanted = std::env::var("DRAWN").unwrap_or_else(|_| "2 1".into());
    let (count, seeds) = wanted.split_once(' ').expect("DRAWN: want a count and seeds");
    let seeds = seeds.split(' ').map(|seed| seed.parse().unwrap());
    let scenarios: Vec<(Scenario, u64)> = if count == "public" {
        seeds.flat_map(|seed| train().into_iter().map(move |each| (each, seed))).collect()
    } else {
        let count = count.parse().unwrap();
        seeds.flat_map(|seed| drawn(count, seed)).map(|each| (each, SEED)).collect()
    };
    let is_report = std::env::var_os("DRAWN").is_some();
    let mut all = in_parallel(&scenarios, |each| Judged::new(each, is_report));
    assert!(all.iter().all(|each| each.summary.served > 0));
    if !is_report {
        return;
    }
    all.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    println!("{HEADER}");
    for Judged { scenario, seed, summary, best, first, .. } in &all {
        println!("{} {best:.3} | {first} in the first minute, seed {seed} |", line(scenario, summary));
    }
    let classes: [(&str, Class); 8] = [
        ("all", |_| true),
        ("says 429", |each| !each.is_merely_failing() && !each.says(&["\"403\""])),
        ("says 503, 502 or nothing", Judged::is_merely_failing),
        ("says 403", |each| each.says(&["\"403\""])),
        ("fails by itself", |each| each.says(&["failing"])),
        ("late timers", Judged::is_late),
        ("punishes (bans, adaptive)", |each| each.says(&["\"ban\"", "adaptive"])),
        ("a second limit", |each| each.says(&["allowance"])),
    ];
    print!("\n{CLASSES}");
    for (name, is) in classes {
        print!("{}", class(name, &all.iter().filter(|each| is(each)).collect::<Vec<_>>()));
    }
}
