//! Health is the truth: what a process that gets no permit says of itself names the reason.

use autothrottle_shared::{Input, Offline, Role, Settings, Warning};
use serde_json::json;

use super::group::{Group, at, gap, options, settings};

/// How old what this process last heard is, in milliseconds.
fn silence(group: &Group, of: usize) -> f64 {
    let now = at(group.now);
    let heard = group.processes[of].status(now).heard;
    now.since(heard.expect("it has heard a leader")).millis()
}

/// A frame of another version.
fn foreign() -> Vec<u8> {
    let mut bytes = vec![0xa7, 99];
    bytes.extend([3; 40]);
    bytes
}

fn hears(group: &mut Group, of: usize, bytes: &[u8]) {
    group.processes[of].handle(at(group.now), Input::Received(bytes));
    group.turn(of);
}

#[test]
fn what_hears_beats_and_gets_no_answer_has_heard_nothing_for_as_long() {
    let mut group = Group::of(3, &gap(50.0), &settings());
    for of in 0..3 {
        group.ask(of, 200);
    }
    group.run(3_000_000, 10_000);
    let member = (0..3).find(|&of| group.role(of) == Role::Member).unwrap();
    assert!(silence(&group, member) < 700.0);
    group.mute.push(member);
    let before = group.count(member);
    group.run(3_500_000, 10_000);
    let after = group.count(member);
    assert!(after - before < 10, "it starves: {}", after - before);
    let silent = silence(&group, member);
    assert!((2900.0..=3600.0).contains(&silent), "{silent}");
    assert_eq!(group.warned[&member], [Warning::Deaf { speaks: true }]);
    let others = (0..3).filter(|&of| of != member);
    assert!(others.clone().all(|of| !group.warned.contains_key(&of)), "only the one that starves says so");
}

/// A rolling upgrade: those that others cannot read are there, so the limit is not this process's alone.
#[test]
fn who_hears_processes_of_another_version_waits_and_does_not_divide() {
    for members in [None, Some(3)] {
        let divides = Settings { offline: Some(Offline::Divide), members, ..settings() };
        let mut group = Group::of(3, &gap(50.0), &divides);
        for of in 0..3 {
            group.ask(of, 500);
        }
        group.run(3_000_000, 10_000);
        group.cut = vec![0, 1, 2];
        let before = group.sent.len();
        for _ in 0..20 {
            for of in 0..3 {
                hears(&mut group, of, &foreign());
            }
            group.run(1_000_000, 10_000);
        }
        let sent = group.sent.len() - before;
        assert!(sent < 40, "{sent} within 20 s: the rest of a lease");
        for of in 0..3 {
            let Some(Warning::Offline { does, why, .. }) = group.warned[&of].last() else {
                panic!("{:?}", group.warned[&of]);
            };
            assert_eq!(*does, Offline::Wait);
            assert!(why.contains("version 99"), "{why}");
            assert_eq!(group.warned[&of][0], Warning::Version { theirs: 99 });
            assert!(group.processes[of].status(at(group.now)).offline_since.is_some());
        }
        // The others are gone: now it is cut off as any.
        group.run(10_000_000, 10_000);
        assert!((0..3).all(|of| group.role(of) == Role::Alone));
    }
}

#[test]
fn who_goes_alone_and_hears_of_another_version_waits_from_then_on() {
    let divides = Settings { offline: Some(Offline::Divide), ..settings() };
    let mut group = Group::of(2, &gap(50.0), &divides);
    group.ask(0, 2000);
    group.ask(1, 2000);
    group.run(3_000_000, 10_000);
    group.cut = vec![0, 1];
    group.run(10_000_000, 10_000);
    assert_eq!(group.role(0), Role::Alone);
    hears(&mut group, 0, &foreign());
    group.run(1_000_000, 10_000);
    assert_eq!(group.role(0), Role::Member);
    let before = group.count(0);
    hears(&mut group, 0, &foreign());
    group.run(1_500_000, 10_000);
    assert_eq!(group.count(0), before);
    group.cut.clear();
    group.run(10_000_000, 10_000);
    assert!(group.count(0) > before + 50, "the others are back, and so is what it asked");
}

#[test]
fn who_never_met_has_one_slot_where_there_are_fewer_than_processes() {
    let alone = Settings { offline: Some(Offline::Divide), members: Some(8), ..settings() };
    let mut group = Group::of(8, &options(json!({ "concurrency": 4 })), &alone);
    group.cut = (0..8).collect();
    for of in 0..8 {
        group.ask(of, 3);
    }
    group.run(9_000_000, 0);
    assert_eq!((0..8).map(|of| group.count(of)).collect::<Vec<_>>(), [1; 8]);
}
