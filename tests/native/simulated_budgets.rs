//! Servers with several budgets in the simulator: GitHub's resources, Discord's routes and buckets. None is
//! refused, and what is left of one budget is sent whatever is used up beside it.

use std::collections::BTreeMap;

use autothrottle::simulate::{Exchange, Simulation};

/// There and back, in milliseconds; and the time in which sixteen slots send all that windows which begin at
/// once may hold.
const WAY: u64 = 20;
const BURST: f64 = 5.0 * WAY as f64;

/// A budget: its name, its limit, its window in milliseconds, and the paths of its routes.
type Budget = (String, u64, u64, Vec<String>);

fn simulate(budgets: &[Budget], options: &str, minutes: u64) -> Vec<Exchange> {
    let budgets: Vec<String> = budgets
        .iter()
        .map(|(name, limit, window, routes)| {
            format!(r#""{name}": {{ "limit": {limit}, "window": {window}, "routes": {routes:?} }}"#)
        })
        .collect();
    let json = format!(
        r#"{{ "server": {{ "model": "fixed-window", "says": "x-ratelimit", "budgets": {{ {} }}, {options} }},
            "network": {{ "latency": {WAY} }}, "duration": {},
            "throttle": {{ "concurrency": 16, "defaults": {{ "concurrency": 16, "delay": 0 }} }} }}"#,
        budgets.join(", "),
        minutes * 60_000,
    );
    let simulation = Simulation::parse(serde_json::from_str(&json).unwrap()).expect(&json);
    let (trace, _) = simulation.run().unwrap();
    trace.exchanges
}

/// By budget and window: how many were served, and how late in it the last one left, in milliseconds.
fn windows(budgets: &[Budget], exchanges: &[Exchange]) -> BTreeMap<(usize, u64), (u64, f64)> {
    let of: Vec<usize> =
        budgets.iter().enumerate().flat_map(|(place, budget)| vec![place; budget.3.len()]).collect();
    let mut windows = BTreeMap::new();
    for exchange in exchanges.iter().filter(|exchange| exchange.is_served()) {
        let budget = of[exchange.route as usize];
        let window = budgets[budget].2;
        let index = exchange.arrived.unwrap().micros() / 1000 / window;
        let late = exchange.sent.millis() - (index * window) as f64;
        let (served, latest) = windows.entry((budget, index)).or_insert((0, f64::MIN));
        *served += 1;
        *latest = late.max(*latest);
    }
    windows
}

/// Milliseconds of each window from `from` on in which something of it was left, beyond a burst.
fn needless(budgets: &[Budget], exchanges: &[Exchange], from: u64, minutes: u64, skip: usize) -> f64 {
    let windows = windows(budgets, exchanges);
    let mut needless = 0.0;
    for (place, (name, limit, window, _)) in budgets.iter().enumerate().skip(skip) {
        for index in from.div_ceil(*window)..minutes * 60_000 / window {
            let &(served, late) = windows.get(&(place, index)).unwrap_or(&(0, *window as f64));
            if served < *limit || late > BURST {
                println!("{name}, window {index}: {served} of {limit}, the last after {late} ms");
            }
            needless += if served < *limit { *window as f64 } else { (late - BURST).max(0.0) };
        }
    }
    needless
}

fn refused(exchanges: &[Exchange]) -> usize {
    exchanges.iter().filter(|exchange| exchange.is_refused).count()
}

#[test]
fn github_has_three_resources() {
    let budget = |name: &str, limit, window, routes: &[&str]| {
        (name.into(), limit, window, routes.iter().map(|&route| route.into()).collect())
    };
    let budgets = [
        budget("core", 5000, 3_600_000, &["/user", "/repos/octocat/hello/issues", "/repos/rust-lang/rust"]),
        budget("search", 30, 60_000, &["/search/issues", "/search/users"]),
        budget("code_search", 10, 60_000, &["/search/code"]),
    ];
    let options = r#""names": "x-ratelimit-resource", "refusal": "403""#;
    let exchanges = simulate(&budgets, options, 60);
    assert_eq!((refused(&exchanges), exchanges.len()), (0, 5000 + 60 * 40));
    // The first minute's slots are full of what `core` has.
    assert_eq!(needless(&budgets, &exchanges, 60_000, 60, 1), 0.0);
}

/// The first sixteen leave before an answer names a bucket: none has more than four of them.
#[test]
fn discord_has_forty_routes_in_twelve_buckets() {
    let budgets: Vec<Budget> = (0..12)
        .map(|bucket| {
            let routes = (bucket..40).step_by(12).map(|route| format!("/api/v10/channels/100001/r{route}"));
            (format!("b{bucket}"), 4 + bucket % 5, 1000 + 500 * (bucket % 4), routes.collect())
        })
        .collect();
    let exchanges = simulate(&budgets, r#""names": "x-ratelimit-bucket""#, 10);
    for e in exchanges.iter().filter(|e| e.is_refused) {
        println!("{e:?}");
    }
    println!("{}", needless(&budgets, &exchanges, 5000, 10, 0));
    assert_eq!(refused(&exchanges), 0);
    assert_eq!(needless(&budgets, &exchanges, 5000, 10, 0), 0.0);
}
