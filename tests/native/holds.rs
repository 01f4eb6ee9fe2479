//! When requests come back after a wait that a server asked for: never before it, and not all together.
//! Everything is drawn at random.

use std::collections::BTreeMap;

use autothrottle::boundary::{Boundary, Outcome};
use proptest::prelude::*;

use crate::{budgets::Rig, helpers::json};

/// Routes of one API, and the budget of each.
const ROUTES: [(&str, &str); 5] = [
    ("/user", "core"),
    ("/repos/a", "core"),
    ("/search/a", "search"),
    ("/search/b", "search"),
    ("/code", "code"),
];
/// How servers tell a wait of some seconds until a budget is there again.
const FAMILIES: [fn(&str, u64) -> String; 6] = [
    |_, wait| format!("retry-after: {wait}\n"),
    |name, wait| format!("retry-after: {wait}\nx-ratelimit-resource: {name}\n"),
    |name, wait| {
        format!("x-ratelimit-remaining: 0\nx-ratelimit-reset: {wait}\nx-ratelimit-resource: {name}\n")
    },
    |name, wait| {
        format!("x-ratelimit-remaining: 0\nx-ratelimit-reset-after: {wait}\nx-ratelimit-bucket: {name}\n")
    },
    |name, wait| format!("ratelimit: \"{name}\";r=0;t={wait}\n"),
    |name, wait| format!("ratelimit: \"{name}\";r=0;t={wait}\nretry-after: {wait}\n"),
];
/// The same where something is left.
const LEFT: [fn(&str) -> String; 3] = [
    |_| String::new(),
    |name| format!("x-ratelimit-remaining: 50\nx-ratelimit-reset: 60\nx-ratelimit-resource: {name}\n"),
    |name| format!("ratelimit: \"{name}\";r=50;t=60\n"),
];

/// One answer: of which request in flight, how, and after how long.
#[derive(Clone, Debug)]
struct Step {
    ask: Vec<usize>,
    place: usize,
    refusal: Option<(usize, u64, usize)>,
    plain: usize,
    pause: u64,
}

fn step() -> impl Strategy<Value = Step> {
    let refusal = prop::option::weighted(0.3, (0..FAMILIES.len(), 1..30_u64, 0..4_usize));
    let ask = prop::collection::vec(0..ROUTES.len(), 0..4);
    (ask, 0..64_usize, refusal, 0..LEFT.len(), 1..4000_u64)
        .prop_map(|(ask, place, refusal, plain, pause)| Step { ask, place, refusal, plain, pause })
}

/// The pace of a throttle, and whether gaps are exact; none where they are but for the ladder's jitter.
fn pace() -> impl Strategy<Value = (String, Option<bool>)> {
    let pace = prop_oneof![
        Just(String::new()),
        (1..200_u32).prop_map(|rate| format!(r#""rate": {rate}"#)),
        (1..5000_u32).prop_map(|delay| format!(r#""delay": {delay}"#)),
        (1..20_u32).prop_map(|slots| format!(r#""delay": 0, "concurrency": {slots}"#)),
        Just(r#""quota": 100, "window": 60000"#.to_string()),
        Just(r#""rampup": true"#.to_string()),
        Just(r#""delay": 20, "backoff": {}"#.to_string()),
    ];
    (pace, any::<bool>()).prop_map(|(pace, is_exact)| {
        let has_ladder = pace.is_empty() || pace.contains("backoff");
        let jitter = if is_exact { r#""jitter": false"# } else { "" };
        let both: Vec<&str> = [pace.as_str(), jitter].into_iter().filter(|part| !part.is_empty()).collect();
        (both.join(", "), Some(is_exact).filter(|_| !(is_exact && has_ladder)))
    })
}

/// When a throttle of this seed sends again, after a refusal that came at a second, in milliseconds.
fn comes_back(pace: &str, seed: u64, status: f64, wait: u64) -> f64 {
    let options = format!(r#"{{ "seed": {seed}, "defaults": {{ {pace} }} }}"#);
    let mut boundary = Boundary::new(json(&options)).expect(&options);
    let scope = boundary.scope("api.example");
    let ticket = boundary.submit(900.0, scope, 1.0, 0.0, 0.0);
    assert_eq!(boundary.poll(900.0), ticket);
    let lines = format!("retry-after-ms: {wait}\n");
    boundary.settle(
        1000.0,
        ticket,
        &Outcome { lines: &lines, wall_ms: 1.8e12, ..Outcome::new(status, 100.0, f64::NAN, 0) },
    );
    let mut now = 1000.0;
    let ticket = boundary.submit(now, scope, 1.0, 0.0, 0.0);
    while boundary.poll(now) != ticket {
        let next = boundary.wake_at();
        assert!(next > now, "{next}");
        now = next;
    }
    now
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// Whatever field says it, under whatever status: no request leaves before an instant that an answer of
    /// its own route named.
    #[test]
    fn no_route_comes_back_before_its_own_answer_said(steps in prop::collection::vec(step(), 1..60)) {
        let mut rig = Rig::new();
        let (mut now, mut earliest) = (0.0, BTreeMap::<String, f64>::new());
        let check = |now: f64, left: Vec<String>, earliest: &BTreeMap<String, f64>| {
            for path in left {
                let at = earliest.get(&path).copied().unwrap_or(0.0);
                assert!(now >= at, "{path} left at {now}, {at} was said");
            }
        };
        let mut sent: Vec<String> = Vec::new();
        for step in steps {
            let paths: Vec<&str> = step.ask.iter().map(|&route| ROUTES[route].0).collect();
            let left = rig.ask(now, &paths);
            sent.extend(left.iter().cloned());
            check(now, left, &earliest);
            if !sent.is_empty() {
                let path = sent.remove(step.place % sent.len());
                let name = ROUTES.iter().find(|(route, _)| *route == path).unwrap().1;
                if let Some((family, wait, status)) = step.refusal {
                    let status = [429.0, 403.0, 503.0, 429.0][status];
                    rig.answer(now, &path, status, &FAMILIES[family](name, wait));
                    let until = earliest.entry(path).or_default();
                    *until = until.max(now + 1000.0 * wait as f64);
                } else {
                    rig.answer(now, &path, 200.0, &LEFT[step.plain](name));
                }
            }
            let left = rig.poll(now);
            sent.extend(left.iter().cloned());
            check(now, left, &earliest);
            now += step.pause as f64;
            let left = rig.poll(now);
            sent.extend(left.iter().cloned());
            check(now, left, &earliest);
        }
    }

    /// Twenty throttles that were refused in the same instant do not come back in the same instant, and none
    /// before it was asked to; with `jitter: false` each comes back as soon as it may.
    #[test]
    fn clients_that_were_refused_together_come_back_spread(
        (pace, is_exact) in pace(),
        wait in 200..600_000_u64,
        status in prop::sample::select(vec![429.0, 503.0]),
    ) {
        let mut back: Vec<f64> = (1..=20).map(|seed| comes_back(&pace, seed, status, wait)).collect();
        back.sort_by(f64::total_cmp);
        let asked = 1000.0 + wait as f64;
        prop_assert!(back[0] >= asked, "{} before {asked}", back[0]);
        let spread = back[19] - back[0];
        if is_exact == Some(true) {
            prop_assert!(spread == 0.0, "{pace}: {spread}");
        } else if is_exact == Some(false) {
            back.dedup();
            let hundredth = (wait as f64 / 100.0).min(5000.0);
            prop_assert!(back.len() > 15 && spread > 0.6 * hundredth, "{pace}: {spread} of {hundredth}");
        }
    }
}

/// Sixteen answers of one flight refuse it, each five milliseconds after the other: it is one wait, and
/// chance adds to it once.
#[test]
fn a_flight_that_is_refused_waits_once() {
    let rate = r#""rate": { "limit": 20, "burst": 16 }"#;
    for (pace, chance) in [(r#""concurrency": 16"#, 600.0), (rate, 600.0), (r#""rampup": true"#, 2000.0)] {
        let options = format!(r#"{{ "seed": 3, "defaults": {{ {pace} }} }}"#);
        let mut boundary = Boundary::new(json(&options)).expect(&options);
        let scope = boundary.scope("api.example");
        let mut tickets = Vec::new();
        let mut now = 0.0;
        while tickets.len() < 16 {
            boundary.submit(now, scope, 1.0, 0.0, 0.0);
            let mut ticket = boundary.poll(now);
            while ticket < 0.0 {
                now = boundary.wake_at();
                ticket = boundary.poll(now);
            }
            tickets.push(ticket);
        }
        let lines = "retry-after-ms: 60000\n";
        for ticket in tickets {
            now += 5.0;
            let outcome = Outcome { lines, wall_ms: 1.8e12 + now, ..Outcome::new(429.0, 100.0, f64::NAN, 0) };
            boundary.settle(now, ticket, &outcome);
        }
        let held = boundary.scope_stats_at(now, scope).unwrap().hold_until.unwrap();
        let most = now + 60_000.0 + chance;
        assert!((now + 60_000.0..=most).contains(&held), "{pace}: held until {held}, of {most} at most");
    }
}
