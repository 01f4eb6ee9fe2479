//! Where a limit keeps requests waiting, each process gets as much as any other: the one that decides, too.
//! And what a rate keeps is granted ahead: many permits are one message.

use std::collections::VecDeque;

use autothrottle::boundary::{Outcome, Settled};
use autothrottle_shared::Role;
use serde_json::{Value, json};

use super::group::{Group, WAY, at, options, settings};

/// Some callers in each process, each of which asks anew when its answer is there. Gives what each got in the
/// last milliseconds, and the commands meanwhile.
fn plays(
    group: &mut Group,
    callers: usize,
    (latency, last): (i32, i32),
    strikes: impl Fn(&mut Group, i32),
) -> (Vec<f64>, f64) {
    let all = 0..group.processes.len();
    for of in all.clone() {
        group.ask(of, callers);
    }
    let mut flying = VecDeque::new();
    let (mut seen, mut before, mut commands) = (0, Vec::new(), 0);
    for ms in 0..2000 + last {
        if ms == 2000 {
            before = all.clone().map(|of| group.count(of)).collect();
            commands = group.commands;
        }
        strikes(group, ms);
        group.run(WAY, 0);
        let sent = group.sent[seen..].iter().map(|&(_, of, ticket)| (ms + latency, of, ticket));
        flying.extend(sent);
        seen = group.sent.len();
        while let Some(&(_, of, ticket)) = flying.front().filter(|flight: &&(i32, _, _)| flight.0 <= ms) {
            flying.pop_front();
            if group.dead.contains(&of) {
                continue;
            }
            let ok = Outcome::new(200.0, 20.0, f64::NAN, 0);
            let now = at(group.now);
            assert_eq!(group.processes[of].settle(now, ticket, &ok).settled, Settled::Over);
            group.ask(of, 1);
        }
    }
    let got = all.map(|of| (group.count(of) - before[of]) as f64).collect();
    (got, (group.commands - commands) as f64)
}

#[test]
fn where_requests_wait_the_leader_gets_as_much_as_each_member() {
    let limits = [json!({ "concurrency": 4 }), json!({ "delay": 5 }), json!({ "rate": 200, "delay": null })];
    for limit in limits {
        let mut group = Group::of(4, &options(limit.clone()), &settings());
        let (got, _) = plays(&mut group, 8, (20, 10_000), |_, _| {});
        let leader = (0..4).find(|&of| group.role(of) == Role::Leader).unwrap();
        let others = (got.iter().sum::<f64>() - got[leader]) / 3.0;
        let share = got[leader] / others;
        assert!((0.8..=1.25).contains(&share), "{limit}: {share:.2} of {got:?}");
    }
}

fn rated(rate: u32) -> Value {
    json!({ "rate": rate, "delay": null, "concurrency": 1000 })
}

#[test]
fn requests_that_a_rate_keeps_are_granted_ahead_by_few_messages_and_keep_to_the_rate() {
    let most = [(2, 8, 0.3), (8, 8, 0.35), (8, 32, 0.3), (4, 8, 0.5), (8, 3, 1.2), (8, 2, 1.7), (8, 1, 2.8)];
    for (processes, callers, most) in most {
        let mut group = Group::of(processes, &options(rated(200)), &settings());
        let (got, commands) = plays(&mut group, callers, (1, 5000), |_, _| {});
        let permits: f64 = got.iter().sum();
        assert!(permits > 990.0, "{processes} processes, {callers} callers: {permits} of 1,000");
        let each = commands / permits;
        assert!(each < most, "{processes} processes, {callers} callers: {each:.2} commands a permit");
        assert!(group.most_within(500_000) <= 101, "{}", group.most_within(500_000));
        assert!(got.iter().all(|&one| one > 0.6 * permits / processes as f64), "{got:?}");
    }
}

/// Its grants ahead are lost but for those that are late by less than a sixteenth of a second, as any grant.
#[test]
fn a_process_that_stands_still_or_dies_with_grants_ahead_sends_no_flight_of_them() {
    type Fault<'a> = &'a dyn Fn(&mut Group, i32);
    let stands = |group: &mut Group, ms: i32| {
        let member = (0..4).find(|&of| group.role(of) != Role::Leader).unwrap();
        group.stands = if ms % 700 > 400 { member } else { usize::MAX };
    };
    let dies = |group: &mut Group, ms: i32| {
        let of = (0..4).find(|&of| group.role(of) != Role::Leader && !group.dead.contains(&of));
        if [3000, 4000].contains(&ms) {
            group.dead.extend(of);
        }
    };
    let leader_dies = |group: &mut Group, ms: i32| {
        let of = (0..4).find(|&of| group.role(of) == Role::Leader && !group.dead.contains(&of));
        if ms == 4000 {
            group.dead.extend(of);
        }
    };
    let faults: [(&str, Fault, f64); 3] =
        [("stands", &stands, 850.0), ("dies", &dies, 950.0), ("the leader dies", &leader_dies, 500.0)];
    for (word, fault, least) in faults {
        let mut group = Group::of(4, &options(rated(200)), &settings());
        let (got, _) = plays(&mut group, 16, (1, 5000), fault);
        let (permits, most) = (got.iter().sum::<f64>(), [200_000, 500_000, 1_000_000]);
        assert!(permits > least, "{word}: {permits} of 1,000");
        for window in most {
            let (most, within) = (window as usize / 5000 + 13, group.most_within(window));
            assert!(within <= most, "{word}: {within} of {most} in {window} µs");
        }
    }
}
