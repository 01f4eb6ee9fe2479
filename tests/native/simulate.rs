//! Servers that do not tell their limit, and what each policy makes of them: the golden tables, the aims, and
//! what must never happen.
//!
//! The usual run takes the scenarios that are quick, with one seed. `UPDATE_GOLDEN=1` (`npm run bless`) takes
//! all of them, with the other policies and the best constant rate; `SOAK=1` a day of each.

use std::{fmt::Write, sync::Mutex, thread};

use autothrottle::{
    Decision, Feedback, Hint, Instant, Request, Span,
    simulate::{Client, Simulation, Summary, Trace},
};

use crate::{
    baselines::{Aimd, Cubic, best_constant},
    scenarios::{Scenario, best_known, shared, train},
};

use crate::helpers::{engine, seeds};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    Told,
    AutoThrottle,
    Backoff,
    Rampup,
    Both,
    Cubic,
    Aimd,
}

impl Policy {
    const ALL: [(Self, &str); 7] = [
        (Self::Rampup, "rampup"),
        (Self::Both, "AutoThrottle + rampup"),
        (Self::Told, "fixed delay, told the limit"),
        (Self::Backoff, "backoff alone"),
        (Self::AutoThrottle, "AutoThrottle"),
        (Self::Cubic, "CUBIC limiter (AWS SDKs)"),
        (Self::Aimd, "AIMD"),
    ];

    fn throttle(self, limit: f64) -> String {
        match self {
            Self::Told => format!(
                r#"{{ "maxInFlight": 200, "defaults": {{ "concurrency": 200, "delay": {}, "slotDelay": 0, "jitter": false, "backoff": false }} }}"#,
                1000.0 / limit
            ),
            Self::AutoThrottle => {
                r#"{ "maxInFlight": 200, "defaults": { "concurrency": 8, "delay": 0, "slotDelay": 0, "backoff": false, "autothrottle": { "targetConcurrency": 8 } } }"#.into()
            }
            Self::Backoff => {
                r#"{ "maxInFlight": 200, "defaults": { "concurrency": 8, "delay": 0, "slotDelay": 0 } }"#.into()
            }
            Self::Rampup | Self::Cubic | Self::Aimd => RAMPUP.into(),
            Self::Both => {
                r#"{ "maxInFlight": 200, "defaults": { "rampup": true, "autothrottle": { "targetConcurrency": 8 } } }"#.into()
            }
        }
    }
}

/// A server that refuses most of the time gets many requests.
const MOST: usize = 20_000_000;

const RAMPUP: &str = r#"{ "defaults": { "rampup": true } }"#;
pub const SEED: u64 = 11;

/// Whether the tables are written anew.
fn is_full() -> bool {
    std::env::var_os("UPDATE_GOLDEN").is_some()
}

/// Those that a usual run takes: no more than this number of requests.
fn quick() -> Vec<Scenario> {
    let is_quick = |each: &Scenario| each.limit() * each.minutes * 60.0 < 40_000.0;
    train().into_iter().filter(|each| is_full() || is_quick(each)).collect()
}

fn find(name: &str) -> Scenario {
    train().into_iter().find(|each| each.name == name).expect(name)
}

pub fn run(scenario: &Scenario, policy: Policy, seed: u64, more: &str) -> (Trace, Summary) {
    let simulation = |throttle: &str| scenario.simulation(throttle, seed, more).at_most(MOST);
    let result = match policy {
        Policy::Cubic => simulation("{}").run_with(|_| Box::new(Cubic::new()) as Box<dyn Client>),
        Policy::Aimd => simulation("{}").run_with(|_| Box::new(Aimd::new()) as Box<dyn Client>),
        _ => simulation(&policy.throttle(scenario.limit())).run(),
    };
    result.unwrap()
}

/// Does all of them, on as many threads as there are cores; the results in their own order.
pub fn in_parallel<J: Sync, R: Send>(jobs: &[J], work: impl Fn(&J) -> R + Sync) -> Vec<R> {
    let results: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::new());
    let next = Mutex::new(0..jobs.len());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                loop {
                    let Some(index) = next.lock().unwrap().next() else { break };
                    let result = work(&jobs[index]);
                    results.lock().unwrap().push((index, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap();
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

fn seconds(ms: Option<f64>) -> String {
    ms.map_or("never".into(), |ms| format!("{:.0} s", ms / 1000.0))
}

pub fn rank(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * share).round() as usize]
}

/// Compares with a golden file. `UPDATE_GOLDEN=1` writes it.
pub fn golden(name: &str, text: &str) {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    assert!(
        std::fs::read_to_string(&path).unwrap_or_default() == text,
        "npm run bless writes {name} anew:\n{text}"
    );
}

/// Compares with what stands between two marks in `tools/bench/rampup.md`, as far as it was measured. A full
/// run (`UPDATE_GOLDEN=1`) writes it.
fn in_docs(mark: &str, text: &str) {
    static WRITING: Mutex<()> = Mutex::new(());
    let _guard = WRITING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tools/bench/rampup.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (open, close) = (format!("<!-- {mark} -->\n"), format!("<!-- /{mark} -->"));
    let start = page.find(&open).expect("the mark opens") + open.len();
    let end = page.find(&close).expect("the mark closes");
    if is_full() {
        let wanted = format!("\n{}\n\n", text.trim());
        std::fs::write(path, format!("{}{wanted}{}", &page[..start], &page[end..])).unwrap();
        return;
    }
    for line in text.lines() {
        assert!(page[start..end].contains(&format!("\n{line}")), "npm run bless writes {mark} anew: {line}");
    }
}

/// The result of one scenario, without failures that come whatever the pace.
pub fn refused(summary: &Summary) -> (f64, f64) {
    let share = summary.refused as f64 / (summary.sent as f64).max(1.0);
    (share * 100.0, summary.refusals_per_minute - summary.background_per_minute)
}

/// A line of the table, up to where the best constant rate stands.
pub fn line(scenario: &Scenario, summary: &Summary) -> String {
    let regained = if scenario.has_step() { seconds(summary.regained_ms) } else { "–".into() };
    let (share, per_minute) = refused(summary);
    format!(
        "| {} | {:.3} | {share:.2} % | {per_minute:.2} | {} | {regained} | {:.0} | {:.0} ms |",
        scenario.name,
        summary.utilisation,
        seconds(summary.reached_ms),
        summary.burst,
        summary.latency_ms,
    )
}

/// The figures of several servers in one line: utilisation, its ratio to the best constant rate, refusals.
fn digest(name: &str, all: &[&Summary], best: &[f64]) -> String {
    let figures = |figure: &dyn Fn(&Summary) -> f64| all.iter().map(|each| figure(each)).collect::<Vec<_>>();
    let ratio: Vec<f64> = all.iter().zip(best).map(|(each, best)| each.utilisation / best).collect();
    let utilisation = figures(&|each| each.utilisation);
    let share = figures(&|each| refused(each).0);
    let per_minute = figures(&|each| refused(each).1);
    let reached = rank(figures(&|each| each.reached_ms.unwrap_or(f64::INFINITY) / 1000.0), 0.5);
    let reached = if reached.is_finite() { format!("{reached:.1} s") } else { "never".into() };
    let three = |of: &[f64]| [0.5, 0.1, 0.0].map(|at| format!("{:.3}", rank(of.to_vec(), at))).join(" / ");
    format!(
        "| {name} | {} | {} | {:.2} % / {:.2} % | {:.2} / {:.1} | {reached} |\n",
        three(&ratio),
        three(&utilisation),
        rank(share.clone(), 0.5),
        rank(share, 0.9),
        rank(per_minute.clone(), 0.5),
        rank(per_minute, 0.9),
    )
}

const DIGEST: &str = "| | of the best constant rate: median / p10 / worst | of the limit | share refused, median / p90 | refusals a minute, median / p90 | 90 % after, median |\n|---|---|---|---|---|---|\n";
pub const HEADER: &str = "| server | utilisation | share refused | refusals a minute | 90 % after | after the step | largest burst | latency | best constant rate |\n|---|---|---|---|---|---|---|---|---|\n";

/// The tables of `tools/bench/rampup.md`, from cold, without tuning.
#[test]
fn limits_are_found_and_kept() {
    let scenarios = quick();
    let rampup = in_parallel(&scenarios, |each| run(each, Policy::Rampup, SEED, "").1);
    let utilisation: Vec<f64> = rampup.iter().map(|each| each.utilisation).collect();
    assert!(rank(utilisation, 0.5) >= 0.97);
    if !is_full() {
        let rows: Vec<String> = scenarios.iter().zip(&rampup).map(|(each, of)| line(each, of)).collect();
        in_docs("servers", &rows.join("\n"));
        return;
    }
    let best = in_parallel(&scenarios, |each| best_known(each, SEED));
    let mut summary = DIGEST.to_string();
    for (policy, name) in Policy::ALL {
        let all = in_parallel(&scenarios, |each| run(each, policy, SEED, "").1);
        summary += &digest(name, &all.iter().collect::<Vec<_>>(), &best);
    }
    let mut rows = HEADER.to_string();
    for ((scenario, each), best) in scenarios.iter().zip(&rampup).zip(&best) {
        writeln!(rows, "{} {best:.3} |", line(scenario, each)).unwrap();
    }
    in_docs("servers", &rows);
    in_docs("policies", &summary);
    let ratio: Vec<f64> = rampup.iter().zip(&best).map(|(each, best)| each.utilisation / best).collect();
    assert!(rank(ratio.clone(), 0.5) >= 0.985);
    assert!(rank(ratio, 0.1) >= 0.85);
}

/// Faults that were found once, each with a server that shows it: the least utilisation, the most refusals a
/// minute, and what they were.
#[test]
fn servers_that_once_went_wrong_stay_right() {
    let findings = [
        // Its own refusal, then a freeze; several servers, and others: .420, .579.
        ("three windows of 100 per 10 s behind a balancer", 0.7, 30.0),
        ("bucket 30/s, others take 15/s half of the time", 0.6, 8.0),
        // A cap of one that every later refusal confirmed: .09, for ever.
        ("bucket 5/s, depth 1, Retry-After", 0.85, 2.0),
        // A window that was found again and again, at six probes each: 4.3 a minute.
        ("fixed 600 per minute", 0.85, 2.0),
        // A deep bucket that hid the limit: 5.5 a minute.
        ("bucket 10/s, depth 300", 0.95, 2.0),
        // Answers that were counted when they came: .646 with 8, .556.
        ("bucket 30/s, answers of 0.1 to 3.9 s", 0.95, 2.0),
        ("gcra 10/s, burst 3, answers of 0.4 to 16 s", 0.8, 3.0),
        // Retry-After taken for a window: .206, .001.
        ("bucket 10/s, depth 10, Retry-After: 60", 0.85, 2.0),
        // (One that says 3600 is obeyed: a twentieth of it.)
        // A number at a time: .66 with 6.
        ("2 at a time, 0.1 to 0.3 s each", 0.88, 2.5),
        ("30 at a time, 0.2 to 1.8 s each", 0.9, 3.0),
        // A ratchet under noise: .434, .286.
        ("bucket 20/s, depth 10, 2 % fail with 503", 0.95, 2.0),
        ("nginx 20/s, burst 5, 3 % fail with 503", 0.85, 15.0),
        // An outage taken for a ban: .455, and 90 % never again.
        ("bucket 10/s, depth 5, down for 60 s", 0.88, 2.0),
        // Probes of an outage that waited ever longer: .412.
        ("queue, 6 workers of 100 ms, down for 2 min", 0.8, 3.0),
        // Refused whatever the pace, because of others: .003, each climb below the last.
        ("gcra 3.6/s, others take 2.9/s a sixth of the time", 0.05, 3.0),
        // A bucket's refill in whole seconds, taken for a window: .067.
        ("bucket 116/s, depth 5, RateLimit", 0.95, 2.0),
        // A span that halved although the limit was farther below: 894 a minute.
        ("sliding 3288 per 12 s, 700 ms away", 0.95, 5.0),
        // A concurrency of 16 that bound: .48.
        ("nginx 133/s, 120 ms away", 0.98, 2.0),
        // A limit cycle of timers that are late: 70 refusals a minute.
        ("nginx 500/s, burst 5", 0.98, 2.0),
        // A touch that cost six refusals, and then nine minutes until the next one: .771.
        ("nginx 20/s, burst 5, doubles", 0.85, 4.0),
        // Refused with 503, 502, a closed connection or 403: 59, 172, 34 and 79,578 a minute.
        ("bucket 10/s, depth 20, 503", 0.95, 2.0),
        ("bucket 30/s, depth 50, 502", 0.95, 2.0),
        ("bucket 15/s, depth 10, silence", 0.98, 2.0),
        ("bucket 10/s, depth 20, 403", 0.95, 5.0),
        // Healthy, and one in a hundred fails: .41, .25.
        ("bucket 100/s, depth 20, 1 % fail", 0.9, 5.0),
        ("bucket 300/s, depth 20, 1 % fail", 0.9, 10.0),
        ("bucket 20/s, depth 10, 30 % are forbidden", 0.7, 10.0),
        // Timers that are late: .60, .07.
        ("bucket 90/s, timers 0 to 15 ms late", 0.9, 5.0),
        ("bucket 700/s, timers 0 to 20 ms late", 0.9, 5.0),
    ];
    let found = in_parallel(&findings, |(name, ..)| run(&find(name), Policy::Rampup, SEED, "").1);
    for ((name, least, most), summary) in findings.iter().zip(&found) {
        let (utilisation, per_minute) = (summary.utilisation, refused(summary).1);
        assert!(utilisation >= *least, "{name}: {utilisation}");
        assert!(per_minute <= *most, "{name}: {per_minute} a minute");
    }
}

/// However long a server is down, it serves again within a window: a probe is a refusal, and one a window is
/// the price. Probes that wait ever longer took up to five minutes more.
#[test]
fn an_outage_is_over_within_a_window() {
    for length in [10, 20, 45, 90, 135, 180, 240] {
        let server = format!(
            r#""model": "token-bucket", "rate": 10, "depth": 5, "outage": {{ "at": 120000, "length": {length}000 }}"#
        );
        let down = Scenario { server, minutes: 8.0, ..find("bucket 10/s, depth 21") };
        let (trace, _) = run(&down, Policy::Rampup, SEED, "");
        let end = Instant::default() + Span::from_millis(120_000.0 + 1000.0 * f64::from(length));
        let mut after = trace.exchanges.iter().filter(|each| each.sent >= end && each.is_served());
        let dead = after.next().expect("it is served again").sent.since(end);
        assert!(dead <= Span::from_millis(60_000.0), "down for {length} s, and {dead:?} more");
    }
}

/// A day of each, or two million requests: nowhere less than half of the limit for ten minutes, where the
/// limit is constant. Where no constant rate reaches the limit (a depth of one, and timers that are late),
/// half of the best one counts.
#[test]
fn nothing_freezes_in_a_day() {
    if std::env::var_os("SOAK").is_none() {
        return;
    }
    let days: Vec<Scenario> = train()
        .into_iter()
        .filter(Scenario::is_constant)
        .map(|each| Scenario { minutes: (2e6 / each.limit() / 60.0).min(24.0 * 60.0), ..each })
        .collect();
    let jobs: Vec<(&Scenario, u64)> =
        days.iter().flat_map(|each| [31, 32].map(|seed| (each, seed))).collect();
    let frozen = in_parallel(&jobs, |&(scenario, seed)| {
        let (trace, _) = run(scenario, Policy::Rampup, seed, "");
        let mut served = vec![0_u32; (scenario.minutes / 10.0) as usize];
        for exchange in trace.exchanges.iter().filter(|exchange| exchange.is_served()) {
            if let Some(count) = served.get_mut((exchange.sent.millis() / 600_000.0) as usize) {
                *count += 1;
            }
        }
        let least = served.into_iter().skip(1).min();
        let least = least.map_or(1.0, |least| f64::from(least) / 600.0 / scenario.limit());
        let best = if least < 0.5 { best_constant(&find(&scenario.name), seed).min(1.0) } else { 1.0 };
        (least / best, format!("{}, seed {seed}", scenario.name))
    });
    let frozen: Vec<_> = frozen.into_iter().filter(|(least, _)| *least < 0.5).collect();
    assert!(frozen.is_empty(), "{frozen:?}");
}

/// Whatever a server does, the gap stays within its bounds. Once it answers well, a fifth is off after 1500
/// answers, and all of it after 4000. Spells of each kind of answer, with holds and with failures between.
#[test]
fn the_gap_stays_in_bounds_and_comes_back() {
    const CHAOS: u64 = 400;
    for seed in 0..seeds(50).min(5000) {
        let config = r#"{ "defaults": { "rampup": { "minDelay": 20 }, "backoff": { "maxDelay": 60000 } } }"#;
        let mut engine = engine(config);
        let scope = [engine.scope("x")];
        let (mut now, mut state) = (Instant::default(), u64::wrapping_mul(seed, 0x9e37_79b9_7f4a_7c15) | 1);
        let mut gap_then = 0.0;
        for step in 0..CHAOS + 4000 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let ticket = engine.submit(now, Request::new(&scope)).unwrap();
            while let Decision::Wait { until, .. } = engine.poll(now) {
                now = until;
            }
            let is_well = step >= CHAOS;
            now = now + Span::from_millis((state % if is_well { 15 } else { 3000 }) as f64);
            let spell = (step / (5 + seed % 40) + seed) % 5;
            let feedback = match [200, 429, 503, 200, 0][spell as usize] {
                _ if is_well => Feedback::response(200),
                _ if state.is_multiple_of(5) => Feedback::response(429),
                0 => {
                    let hold = Some(Span::from_millis((state % 200_000) as f64));
                    let hint = Hint { hold, asked: hold, ..Hint::default() };
                    Feedback { hint, ..Feedback::response(429) }
                }
                status => Feedback::response(status),
            };
            engine.settle(now, ticket, &feedback);
            let delay = engine.scope_stats(now, scope[0]).unwrap().delay_ms;
            assert!((20.0..=60_000.1).contains(&delay), "seed {seed}, step {step}: {delay}");
            if step == CHAOS {
                gap_then = delay;
            }
            if step == CHAOS + 1500 {
                assert!(delay <= f64::max(gap_then * 0.8, 20.1), "seed {seed}: {gap_then}, then {delay}");
            }
            if step == CHAOS + 3999 {
                assert!(delay <= 25.0, "seed {seed}: {gap_then}, then still {delay}");
            }
        }
    }
}

/// `backoffTarget` is what finding the limit may cost: more for those who want to follow a limit faster.
#[test]
fn the_target_is_what_is_paid() {
    let names = [
        "bucket 7/s, depth 3", "nginx 10/s", "sliding 5 per second", "gcra 3/s, burst 2",
        "bucket 50/s, depth 10",
    ];
    for (target, least, most) in [("1", 0.3, 1.4), ("[1, 3]", 0.7, 3.0), ("5", 2.0, 6.0)] {
        let throttle = format!(r#"{{ "defaults": {{ "rampup": {{ "backoffTarget": {target} }} }} }}"#);
        for name in names {
            let scenario = find(name);
            let paid = scenario.simulation(&throttle, SEED, "").run().unwrap().1.refusals_per_minute;
            // Never more than about one in a hundred and fifty requests.
            let least = f64::min(least, 0.35 * scenario.limit());
            assert!((least..=most).contains(&paid), "{name}, backoffTarget {target}: {paid} a minute");
        }
    }
}

/// Jain's index between two and between ten clients of one limit.
#[test]
fn clients_of_one_limit_share_it() {
    let scenarios = shared();
    let policies =
        if is_full() { &[Policy::Rampup, Policy::Cubic, Policy::Aimd][..] } else { &[Policy::Rampup] };
    let mut jobs = Vec::new();
    for &policy in policies {
        jobs.extend(scenarios.iter().flat_map(|each| [2, 4, 8, 10].map(|clients| (each, policy, clients))));
    }
    let results = in_parallel(&jobs, |(scenario, policy, clients)| {
        run(scenario, *policy, SEED, &format!(r#", "clients": {clients}"#)).1
    });
    let mut table = String::from(
        "| policy | server | clients | fairness | utilisation | bad ends a minute and client |\n|---|---|---|---|---|---|\n",
    );
    for ((scenario, policy, clients), summary) in jobs.iter().zip(&results) {
        let name = Policy::ALL.iter().find(|(each, _)| each == policy).unwrap().1;
        writeln!(
            table,
            "| {name} | {} | {clients} | {:.3} | {:.3} | {:.1} |",
            scenario.name,
            summary.fairness,
            summary.utilisation,
            summary.refusals_per_minute / f64::from(*clients)
        )
        .unwrap();
    }
    in_docs("fairness", &table);
}

/// The settings for the very scope, its quota, and the bound for a server that asks for more.
#[test]
fn no_bound_is_overstepped_by_a_scope_that_ramps() {
    let throttle = r#"{ "scopes": { "server": { "rampup": { "backoffTarget": [1, 3] }, "delay": 150, "concurrency": 3,
        "quota": { "limit": 50, "window": 10000, "strict": true } } } }"#;
    let bounded = |each: &Scenario| Scenario { minutes: each.minutes.min(10.0), ..each.clone() };
    for scenario in train().iter().map(bounded) {
        let (trace, _) = scenario.simulation(throttle, SEED, "").run().unwrap();
        let sends: Vec<Instant> = trace.exchanges.iter().map(|exchange| exchange.sent).collect();
        for pair in sends.windows(2) {
            let gap = pair[1].since(pair[0]);
            assert!(gap >= Span::from_millis(150.0), "{}: {gap:?}", scenario.name);
        }
        for all in sends.windows(51) {
            let span = all[50].since(all[0]);
            assert!(span >= Span::from_millis(10_000.0), "{}: 51 in {span:?}", scenario.name);
        }
        let mut flying: Vec<Option<Instant>> = Vec::new();
        for exchange in &trace.exchanges {
            flying.retain(|answered| answered.is_none_or(|at| at > exchange.sent));
            flying.push(exchange.answered);
            assert!(flying.len() <= 3, "{}: {} in flight", scenario.name, flying.len());
        }
    }
}

/// Five hundred good answers, and none of them to a request that had to wait.
#[test]
fn unused_capacity_is_no_evidence() {
    let config = r#"{ "defaults": { "rampup": true } }"#;
    let mut engine = engine(config);
    let scope = [engine.scope("x")];
    let mut now = Instant::default();
    for _ in 0..500 {
        let ticket = engine.submit(now, Request::new(&scope)).unwrap();
        assert_eq!(engine.poll(now), Decision::Send(ticket), "the load is one in five seconds");
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

/// The world is not kind: each of these is seen in the trace.
#[test]
fn the_world_is_as_unkind_as_it_was_asked_to_be() {
    let told = r#"{ "defaults": { "delay": 100, "slotDelay": 0, "concurrency": 50, "jitter": false, "backoff": false }, "maxInFlight": 50 }"#;
    let run = |server: &str, network: &str| {
        let json = format!(
            r#"{{ "server": {{ "model": "token-bucket", "rate": 1000, "depth": 100{server} }},
                "network": {{ "latency": 20{network} }}, "duration": 60000, "throttle": {told} }}"#
        );
        let simulation = Simulation::parse(serde_json::from_str(&json).unwrap()).expect(&json);
        simulation.run().unwrap()
    };
    let (kind, _) = run("", "");
    assert_eq!(kind.exchanges.len(), 600);
    let (late, _) = run("", r#", "timerLag": 3, "timerJitter": 4"#);
    let gaps: Vec<f64> =
        late.exchanges.windows(2).map(|pair| pair[1].sent.since(pair[0].sent).millis()).collect();
    assert!(gaps.iter().all(|gap| (103.0..=107.1).contains(gap)), "{gaps:?}");
    assert!(gaps.iter().any(|&gap| gap > 106.0), "drawn for each timer");
    let latencies = |trace: &Trace| -> Vec<f64> {
        let known = trace.exchanges.iter().filter_map(|each| Some(each.answered?.since(each.sent).millis()));
        known.collect()
    };
    let (slow, _) = run("", r#", "slow": 0.1, "slowBy": 300"#);
    let lost = latencies(&slow).iter().filter(|&&ms| ms >= 320.0).count();
    assert!((30..=90).contains(&lost), "{lost} of 600");
    let (server, _) = run(r#", "jitter": 9"#, "");
    assert!(latencies(&server).iter().all(|ms| (20.0..=29.1).contains(ms)));
    assert!(latencies(&server).iter().any(|&ms| ms > 27.0));
    let (behind, _) = run(r#", "upstream": 200, "upstreamSpread": 0.5"#, "");
    assert!(latencies(&behind).iter().all(|ms| (119.9..=320.1).contains(ms)));
    let (_, down) = run(r#", "outage": { "at": 30000, "length": 6000 }"#, "");
    assert_eq!((down.failed, down.background), (60, 60), "all of them, and by chance");
    let (_, failing) = run(r#", "failing": 0.1"#, "");
    assert_eq!((failing.refused, failing.failed), (0, failing.background));
    let shares = |server: &str| {
        let json = format!(
            r#"{{ "server": {{ "model": "token-bucket", "rate": 5{server} }}, "network": {{ "jitter": 50 }}, "duration": 60000, "throttle": {told} }}"#
        );
        Simulation::parse(serde_json::from_str(&json).unwrap()).expect(&json).run().unwrap().1
    };
    let (one, two) = (shares("").served, shares(r#", "replicas": 2"#).served);
    assert!((220..=305).contains(&one), "at most half of ten a second: {one}");
    assert!((one + 50..=480).contains(&two), "by chance two follow each other: {two}");
    let others = shares(r#", "others": { "rate": 900, "period": 20000, "share": 0.5 }"#).served;
    assert!((one * 4 / 10..=one * 7 / 10).contains(&others), "half of it for half of the time: {others}");
}

/// Each request is remembered: a simulation that would take all of the memory is an error that says so.
#[test]
fn a_simulation_of_too_many_requests_is_an_error() {
    let error = find("bucket 50/s, depth 10").simulation(RAMPUP, SEED, "").at_most(100).run().unwrap_err();
    assert_eq!(
        error.to_string(),
        "duration: want a time in which no more than 100 requests are sent, all clients together; got 900000"
    );
}
