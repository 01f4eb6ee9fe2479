//! The behaviour of rampup against each kind of server, request by request. The aims (`simulate`) bound what
//! comes of it; here any change of it shows: a sign, a factor, a bound that is one off.
//!
//! A row says how many were sent and refused, and a fingerprint of when each one left and how it ended
//! (FNV-1a). `UPDATE_GOLDEN=1` writes the rows anew: review the counts as a change of behaviour. A
//! fingerprint is the same on each machine: the simulator has neither a clock nor a libm.

use std::fmt::Write;

use autothrottle::{
    Answer, Span,
    simulate::{Client, Exchange, Simulation, Trace},
};

use crate::{
    answers::{Bad, Spoil, Spoiled},
    scenarios::{Scenario, train},
    simulate::golden,
};

/// Requests of each scenario, or so: it is enough for the law to settle, and be surprised.
const REQUESTS: f64 = 2500.0;

fn fingerprint(exchanges: &[Exchange]) -> u64 {
    let bytes = exchanges.iter().flat_map(|one| {
        let [sent, status] = [one.sent.micros(), u64::from(one.status)].map(u64::to_le_bytes);
        sent.into_iter().chain(status)
    });
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The requests of a scenario that were sent, refused and failed.
fn row(scenario: &Scenario, throttle: &str) -> String {
    let minutes = scenario.minutes.min(REQUESTS / scenario.limit() / 60.0);
    let shorter = Scenario { minutes, ..scenario.clone() };
    let (Trace { exchanges, .. }, summary) =
        shorter.simulation(throttle, 3, "").at_most(1_000_000).run().unwrap();
    let print = fingerprint(&exchanges);
    format!(" {} | {} | {} | `{print:016x}` |", exchanges.len(), summary.refused, summary.failed)
}

#[test]
fn each_request_leaves_when_it_left() {
    let mut text = String::from(
        "# What rampup does, request by request\n\n\
         Alone, then with a small target, a short window and bounds.\n\n\
         | server | sent | refused | failed | fingerprint | sent | refused | failed | fingerprint |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    let bounded = r#"{ "defaults": { "rampup": { "startDelay": 2000, "minDelay": 3, "backoffTarget": 3 },
        "backoff": { "maxDelay": 40000 } } }"#;
    for scenario in &train() {
        let [alone, bounded] =
            [r#"{ "defaults": { "rampup": true } }"#, bounded].map(|throttle| row(scenario, throttle));
        writeln!(text, "| {} |{alone}{bounded}", scenario.name).unwrap();
    }
    golden("rampup.md", &text);
}

/// When the sixtieth page was asked for, in seconds, and how many requests were refused until then.
fn sixty(server: &str, latency: u32) -> (f64, usize) {
    let json = format!(
        r#"{{ "server": {{ {server} }}, "network": {{ "latency": {latency} }}, "load": {{ "requests": 66 }},
              "throttle": {{ "defaults": {{ "rampup": true }} }}, "duration": 120000 }}"#
    );
    let simulation = Simulation::parse(serde_json::from_str(&json).unwrap()).unwrap();
    let (Trace { exchanges, .. }, _) = simulation.run().unwrap();
    let last = exchanges.iter().filter(|one| one.is_served()).nth(59).expect("sixty are served").sent;
    let refused = exchanges.iter().filter(|one| one.sent < last && one.is_refused).count();
    (last.millis() / 1000.0, refused)
}

/// Where `Retry-After` says one second, two are held: a window of a second is free long before. The holds are
/// the price, and the pace after them does not pay it again.
#[test]
fn our_own_hold_is_no_wall() {
    for model in ["sliding-window", "fixed-window"] {
        let server = format!(r#""model": "{model}", "limit": 5, "window": 1000"#);
        let (told, refused) = sixty(&format!(r#"{server}, "says": "retry-after""#), 20);
        let (silent, _) = sixty(&server, 20);
        assert!(refused <= 2, "{model}: {refused}");
        assert!(told <= silent + 1.8 * refused as f64, "{model}: {told} s, silent {silent} s");
    }
}

/// In real time, when the second refusal came after eleven seconds, it took 18.9 s in all.
#[test]
fn sixty_pages_of_five_a_second_take_sixteen_seconds() {
    for latency in [20, 40, 80] {
        let server = r#""model": "sliding-window", "limit": 5, "window": 1000, "says": "retry-after""#;
        let (sent, refused) = sixty(server, latency);
        let told = sent + f64::from(latency) / 1000.0;
        // By chance it comes back up to a gap later, twice two tenths of a second.
        assert!(told <= 16.4 && refused <= 2, "{latency} ms away: {told} s, {refused} refused");
    }
}

/// nginx's own 503 names no limit. Its refusals above the new limit were below the rate that was borne
/// before, so they were taken for the server's own failures: 9 a minute with a burst of 20, for minutes.
#[test]
fn a_limit_that_halves_is_found_without_a_word() {
    for burst in [0, 5, 20] {
        let halves = Scenario {
            name: String::new(),
            server: format!(
                r#""model": "nginx", "rate": 20, "burst": {burst}, "step": {{ "at": 300000, "factor": 0.5 }}"#
            ),
            network: r#""latency": 5, "jitter": 0.5"#.into(),
            minutes: 15.0,
        };
        let summary = halves.simulation(r#"{ "defaults": { "rampup": true } }"#, 11, "").run().unwrap().1;
        assert!(summary.refusals_per_minute <= 2.5, "burst {burst}: {}", summary.refusals_per_minute);
        assert!(summary.utilisation >= 0.9, "burst {burst}: {}", summary.utilisation);
    }
}

/// The same by 403, which says even less: half of all was refused for ever without a burst (1,250 a minute),
/// and 139 a minute with one of 20.
#[test]
fn a_limit_that_halves_is_found_by_denials() {
    for (burst, most) in [(0, 30.0), (5, 60.0), (20, 110.0)] {
        let server = format!(
            r#""model": "nginx", "rate": 20, "burst": {burst}, "refusal": "403",
               "step": {{ "at": 300000, "factor": 0.5 }}"#
        );
        let network = r#""latency": 5, "jitter": 0.5"#.into();
        let halves = Scenario { name: String::new(), server, network, minutes: 15.0 };
        let summary = halves.simulation(r#"{ "defaults": { "rampup": true } }"#, 11, "").run().unwrap().1;
        assert!(summary.refusals_per_minute <= most, "burst {burst}: {}", summary.refusals_per_minute);
        assert!(summary.utilisation >= 0.9, "burst {burst}: {}", summary.utilisation);
    }
}

/// A crawl in which three pages of ten are forbidden. A denial too many made the next ones count more: two of
/// six seeds ended at a fiftieth of the limit, one at a third.
#[test]
fn forbidden_pages_do_not_throttle_a_crawl() {
    let forbidden = train().into_iter().find(|each| each.name.contains("30 % are forbidden")).unwrap();
    let mut shares = [11, 12, 13, 14, 15, 16].map(|seed| {
        let (_, summary) =
            forbidden.simulation(r#"{ "defaults": { "rampup": true } }"#, seed, "").run().unwrap();
        summary.utilisation
    });
    shares.sort_by(f64::total_cmp);
    assert!(shares[2] >= 0.8, "{shares:?}");
}

/// A ban that each request makes longer, and that is longer than a window. A probe a window kept it up for
/// ever.
#[test]
fn a_ban_without_a_word_ends() {
    for (refusal, ban) in [("502", 77), ("403", 100), ("silence", 150)] {
        let json = format!(
            r#"{{ "server": {{ "model": "token-bucket", "rate": 10, "depth": 10, "refusal": "{refusal}",
                    "ban": {ban}000 }}, "network": {{ "latency": 100, "timeout": 5000 }}, "duration": 3600000,
                  "throttle": {{ "defaults": {{ "rampup": true }} }} }}"#
        );
        let simulation = Simulation::parse(serde_json::from_str(&json).unwrap()).unwrap();
        let served = simulation.run().unwrap().1.served;
        assert!(served >= 450, "{refusal}, {ban} s: {served} in an hour");
    }
}

/// How many leave in each second, for a server that would take ten thousand.
fn each_second(defaults: &str) -> Vec<usize> {
    let json = format!(
        r#"{{ "server": {{ "model": "token-bucket", "rate": 10000, "depth": 10000 }}, "network": {{ "latency": 20 }},
              "throttle": {{ "defaults": {{ {defaults} }} }}, "duration": 12000 }}"#
    );
    let simulation = Simulation::parse(serde_json::from_str(&json).unwrap()).unwrap();
    let (Trace { exchanges, .. }, _) = simulation.run().unwrap();
    let mut seconds = vec![0; 12];
    for one in exchanges {
        seconds[(one.sent.millis() / 1000.0) as usize] += 1;
    }
    seconds
}

/// The page's promises for the first seconds, and the two ceilings it names.
#[test]
fn the_requests_that_it_may_send_unasked_are_bounded() {
    let mut sent = 0;
    for (second, count) in each_second(r#""rampup": true"#).into_iter().take(10).enumerate() {
        sent += count;
        assert!(sent < 2 << second, "{sent} in {} seconds", second + 1);
    }
    for ceiling in [r#""rampup": true, "rate": 50"#, r#""rampup": { "minDelay": 20 }"#] {
        let seconds = each_second(ceiling);
        assert!(seconds.iter().all(|&count| count <= 51), "{ceiling}: {seconds:?}");
        assert!(seconds[8..].iter().all(|&count| count >= 49), "{ceiling}: {seconds:?}");
    }
}

/// A server without a burst that refuses by 403 refuses half of what is a little too fast. Those denials were
/// taken for the server's own, so the start went on: twice as fast, and twice again.
#[test]
fn a_start_that_is_denied_ends() {
    let json = r#"{ "server": { "model": "nginx", "rate": 10, "refusal": "403", "upstream": 200 },
        "network": { "latency": 1, "jitter": 0.5 }, "duration": 10000, "seed": 11,
        "throttle": { "defaults": { "rampup": true } } }"#;
    let (_, summary) = Simulation::parse(serde_json::from_str(json).unwrap()).unwrap().run().unwrap();
    assert!(summary.refused <= 12, "{} of {}", summary.refused, summary.sent);
    assert!(summary.served >= 50, "{} of {}", summary.served, summary.sent);
}

/// How many of a limit of ten a second are served in each minute, where one answer is bad.
fn each_minute(nth: usize, bad: Bad) -> Vec<usize> {
    let json = r#"{ "server": { "model": "token-bucket", "rate": 10, "depth": 10 }, "network": { "latency": 100 },
        "throttle": { "defaults": { "rampup": true } }, "duration": 360000 }"#;
    let simulation = Simulation::parse(serde_json::from_str(json).unwrap()).unwrap();
    let client = |index| {
        let client = Box::new(simulation.engine(index));
        Box::new(Spoiled::new(client, Spoil::One(nth, bad))) as Box<dyn Client>
    };
    let exchanges = simulation.run_with(client).unwrap().0.exchanges;
    let mut minutes = vec![0; 6];
    for one in exchanges.iter().filter(|one| one.is_served()) {
        minutes[(one.sent.millis() / 60_000.0) as usize] += 1;
    }
    minutes
}

/// One refusal among the first eight proves no pace. It was believed: 71 were served in the first minute, and
/// with `Retry-After` 28 to 90 in each of the first four.
#[test]
fn one_early_refusal_is_no_pace() {
    for fields in ["", "retry-after: 1\n"] {
        for nth in 1..=8 {
            let served = each_minute(nth, (Answer::Response { status: 429 }, fields));
            assert!(served[0] >= 500, "the one with number {nth}, {fields}: {served:?}");
            assert!(served[1..].iter().all(|&served| served >= 590), "number {nth}, {fields}: {served:?}");
        }
    }
}

/// A ban of a minute that each probe begins anew, and that says "five seconds" whatever the truth. It was
/// probed at once after that time, ever again: 300 s.
#[test]
fn a_wait_that_was_too_short_twice_is_no_longer_believed() {
    for (refusal, says) in [("429", 5), ("429", 20), ("503", 5), ("403", 5)] {
        let json = format!(
            r#"{{ "server": {{ "model": "token-bucket", "rate": 10, "depth": 10, "refusal": "{refusal}",
                    "ban": 60000, "says": "retry-after", "retryAfter": {says}000 }}, "network": {{ "latency": 100 }},
                  "duration": 1200000, "throttle": {{ "defaults": {{ "rampup": true }} }} }}"#
        );
        let simulation = Simulation::parse(serde_json::from_str(&json).unwrap()).unwrap();
        let (Trace { exchanges, .. }, summary) = simulation.run().unwrap();
        let ban = exchanges.iter().find(|one| one.is_refused).unwrap().sent;
        let end = exchanges.iter().find(|one| one.sent > ban && one.is_served()).unwrap().sent;
        let banned = end.since(ban);
        assert!(banned <= Span::from_millis(150_000.0), "{refusal}, says {says} s: {banned:?}");
        assert!(summary.served >= 4000, "{refusal}, says {says} s: {}", summary.served);
    }
}

/// A window of a minute that is used up before it ends, and says no with a denial or a failure. It was taken
/// for an outage: 3300 a minute that say 403 refused 2,400 in each.
#[test]
fn a_wall_of_denials_is_a_used_up_window() {
    for (limit, refusal, most) in
        [(60, "403", 3.0), (600, "403", 3.0), (3300, "403", 20.0), (3300, "401", 20.0), (3300, "503", 20.0)]
    {
        let window = Scenario {
            name: String::new(),
            server: format!(r#""model": "fixed-window", "limit": {limit}, "refusal": "{refusal}""#),
            network: r#""latency": 50"#.into(),
            minutes: 30.0,
        };
        let summary = window.simulation(r#"{ "defaults": { "rampup": true } }"#, 11, "").run().unwrap().1;
        let (utilisation, per_minute) = (summary.utilisation, summary.refusals_per_minute);
        assert!(utilisation >= 0.95, "{limit} a minute, {refusal}: {utilisation}");
        assert!(per_minute <= most, "{limit} a minute, {refusal}: {per_minute}");
    }
}
