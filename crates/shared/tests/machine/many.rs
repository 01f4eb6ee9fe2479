//! A group with thousands of scopes: what a leader knows of all is long, and what it did in the last half
//! second is short.

use autothrottle::Value;
use autothrottle_shared::{Ask, Role};
use serde_json::json;

use super::group::{Group, at, settings, value};

const SCOPES: usize = 3000;

fn ask(group: &mut Group, of: usize, name: &str) {
    let ask = Ask { names: &[name], costs: &[], priority: 0.0, delay_ms: 0.0 };
    group.processes[of].submit(at(group.now), &ask).unwrap();
}

fn crowd() -> Value {
    value(json!({
        "seed": 1,
        "maxInFlight": 100_000,
        "defaults": { "rampup": true, "jitter": false },
        "scopes": { "quota": { "delay": 0, "rampup": false, "concurrency": 1000, "quota": 600, "window": 60_000 } },
    }))
}

/// Each scope was used once, by the leader: from then on it says the whole only now and then.
fn learned(group: &mut Group) -> usize {
    for of in 0..group.processes.len() {
        ask(group, of, "one.example");
    }
    group.run(3_000_000, 10_000);
    let leader = (0..group.processes.len()).find(|&of| group.role(of) == Role::Leader).unwrap();
    for scope in 0..SCOPES {
        ask(group, leader, &format!("a-host-of-this-crawl-{scope}.example"));
    }
    group.run(12_000_000, 10_000);
    leader
}

/// A number in the statistics that a process has.
fn seen(group: &mut Group, of: usize, key: &str) -> f64 {
    let now = at(group.now);
    let Value::Map(entries) = group.processes[of].stats(now) else { panic!("no statistics") };
    let found = entries.into_iter().find(|(known, _)| known == key).map(|(_, value)| value);
    let Some(Value::Number(number)) = found else { panic!("{key}: {found:?}") };
    number
}

#[test]
fn requests_of_a_killed_leader_count_but_for_half_a_second_with_thousands_of_scopes_too() {
    for lives_on in [true, false] {
        let mut group = Group::of(3, &crowd(), &settings());
        let leader = learned(&mut group);
        let before = group.sent.len();
        for _ in 0..160 {
            for _ in 0..3 {
                ask(&mut group, leader, "quota");
            }
            group.run(50_000, 10_000);
        }
        let by_it = group.sent.len() - before;
        assert_eq!(by_it, 480);
        group.dead.push(leader);
        let other = (leader + 1) % 3;
        let mut next = other;
        if !lives_on {
            // It goes on from what is stored.
            group.dead = vec![0, 1, 2];
            next = group.join(&crowd(), &settings());
        }
        for _ in 0..300 {
            ask(&mut group, next, "quota");
        }
        group.run(20_000_000, 10_000);
        let in_all = group.sent.len() - before;
        assert!((600..=630).contains(&in_all), "{in_all} of 600 in a minute");
    }
}

#[test]
fn statistics_are_half_a_second_old_with_thousands_of_scopes_too() {
    let mut group = Group::of(2, &crowd(), &settings());
    let leader = learned(&mut group);
    let member = 1 - leader;
    for _ in 0..40 {
        ask(&mut group, leader, "quota");
        group.run(200_000, 10_000);
        let age = seen(&mut group, member, "ageMs");
        assert!(age <= 600.0, "{age}");
    }
    group.run(600_000, 10_000);
    assert_eq!(seen(&mut group, member, "sent"), group.sent.len() as f64);
    let now = at(group.now);
    let scope = |of: &mut autothrottle_shared::Shared| match of.scope_stats(now, "quota") {
        Value::Map(entries) => entries.into_iter().find(|(key, _)| key == "quotaLeft").unwrap().1,
        other => panic!("{other:?}"),
    };
    let [one, other] = [leader, member].map(|of| scope(&mut group.processes[of]));
    assert_eq!(one, other);
    assert_eq!(one, Value::Number(560.0));
}

/// On a busy machine one of these takes as long as a lease may, where a leader knows thousands of scopes. It
/// says that it is there before it begins with the next.
#[test]
fn a_new_leader_writes_what_it_knows_and_statistics_in_turns_of_their_own_and_says_between_that_it_leads() {
    let mut group = Group::of(2, &crowd(), &settings());
    let leader = learned(&mut group);
    group.dead.push(leader);
    let from = group.told.len();
    group.run(12_000_000, 10_000);
    assert_eq!(group.role(1 - leader), Role::Leader);
    let told: Vec<usize> = group.told[from..].iter().map(|&(_, _, bytes)| bytes).collect();
    let long: Vec<usize> = (0..told.len()).filter(|&at| told[at] > 60_000).collect();
    let whole = group.stored.as_ref().map_or(0, |(bytes, _)| bytes.len());
    let most = long.iter().map(|&at| told[at]).max().unwrap();
    let statistics: Vec<usize> = long.iter().map(|&at| told[at]).filter(|&bytes| bytes > 2 * whole).collect();
    assert!(long.len() >= 4 && !statistics.is_empty(), "{told:?}");
    assert!(most < statistics.iter().min().unwrap() + whole / 2, "{most}: both in one turn; {told:?}");
    assert!(long[0] >= 2, "it says that it leads when it was elected, and when it decides: {told:?}");
}
