//! Health is the truth: what a process that gets no permit says of itself names the reason.

use autothrottle_shared::{Effect, Input, Offline, Role, Settings, Warning};
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
fn a_process_that_hears_beats_and_gets_no_answer_has_heard_nothing_for_as_long() {
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
    assert_eq!(group.warned[&member], [Warning::SilentConnection { speaks: true }]);
    let others = (0..3).filter(|&of| of != member);
    assert!(others.clone().all(|of| !group.warned.contains_key(&of)), "only the one that starves says so");
}

/// A process of an older version does not know that one which it cannot read may decide, and would go on
/// alone beside it.
#[test]
fn a_process_that_hears_another_version_leaves_the_lease_to_it_while_it_lives() {
    let mut group = Group::of(2, &gap(50.0), &settings());
    group.ask(0, 500);
    group.ask(1, 500);
    group.run(1_000_000, 10_000);
    let leader = (0..2).find(|&of| group.role(of) == Role::Leader).unwrap();
    let other = 1 - leader;
    group.dead.push(leader);
    for _ in 0..5 {
        hears(&mut group, other, &foreign());
        group.run(1_000_000, 10_000);
    }
    let before = group.count(other);
    assert_eq!(group.role(other), Role::Member, "another version may have it");
    // It stands still, as the others may: that is no silence.
    group.now += 8_000_000;
    group.run(4_000_000, 10_000);
    assert_eq!(group.role(other), Role::Member, "one of them may be about to take over");
    group.run(6_000_000, 10_000);
    assert_eq!(group.role(other), Role::Leader, "it is gone");
    assert!(group.count(other) > before + 20);
}

/// A rolling upgrade: those that others cannot read are there, so the limit is not this process's alone.
#[test]
fn a_process_that_hears_others_of_another_version_waits_and_does_not_divide() {
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
fn a_process_alone_that_hears_of_another_version_waits_from_then_on() {
    let divides = Settings { offline: Some(Offline::Divide), ..settings() };
    let mut group = Group::of(2, &gap(50.0), &divides);
    group.ask(0, 2000);
    group.ask(1, 200);
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
fn a_process_that_never_met_the_others_has_one_slot_where_there_are_fewer_than_processes() {
    let alone = Settings { offline: Some(Offline::Divide), members: Some(8), ..settings() };
    let mut group = Group::of(8, &options(json!({ "concurrency": 4 })), &alone);
    group.cut = (0..8).collect();
    for of in 0..8 {
        group.ask(of, 3);
    }
    group.run(9_000_000, 0);
    assert_eq!((0..8).map(|of| group.count(of)).collect::<Vec<_>>(), [1; 8]);
}

/// Three processes that ask without end, and a member of them.
fn busy(settings: &Settings) -> (Group, usize) {
    let mut group = Group::of(3, &gap(50.0), settings);
    for of in 0..3 {
        group.ask(of, 2000);
    }
    group.run(3_000_000, 10_000);
    let member = (0..3).find(|&of| group.role(of) == Role::Member).unwrap();
    assert!(group.warned.is_empty(), "{:?}", group.warned);
    (group, member)
}

/// Of a process that gets no permit, while the fault lasts: what it says of itself.
#[test]
fn each_fault_is_named_by_the_process_that_gets_no_permit() {
    type Fault = (&'static str, fn(&mut Group, usize), fn(&[Warning]) -> bool);
    let faults: [Fault; 8] = [
        (
            "the leader stands still, and with it the others",
            |group, member| {
                group.dead.extend((0..3).filter(|&of| of != member));
                group.cut.push(member);
            },
            |warned| matches!(warned, [Warning::Offline { does: Offline::Wait, .. }]),
        ),
        (
            "the store is away",
            |group, _| group.cut = vec![0, 1, 2],
            |warned| matches!(warned, [Warning::Offline { why, .. }] if why == "it is away"),
        ),
        (
            "the store stands still",
            |group, _| group.stands_still = true,
            |warned| matches!(warned, [Warning::Offline { why, .. }] if why == "no answer came in time"),
        ),
        (
            "the store refuses what it is asked: it has no room, or may only be read",
            |group, _| group.refuses = true,
            |warned| matches!(warned, [Warning::Offline { why, .. }] if why == "it is away"),
        ),
        (
            "this process is cut off",
            |group, member| group.cut.push(member),
            |warned| matches!(warned, [Warning::Offline { why, .. }] if why == "it is away"),
        ),
        (
            "it does not hear",
            |group, member| group.deaf.push(member),
            |warned| {
                matches!(warned, [Warning::SilentConnection { speaks: false }, Warning::Offline { why, .. }, ..]
                    if why.contains("another process decides"))
            },
        ),
        (
            "it is not heard",
            |group, member| group.mute.push(member),
            |warned| matches!(warned, [Warning::SilentConnection { speaks: true }, ..]),
        ),
        (
            "the leader does not hear",
            |group, member| {
                let leader = (0..3).find(|&of| of != member && group.role(of) == Role::Leader);
                group.deaf.push(leader.unwrap());
            },
            |warned| warned.iter().all(|it| matches!(it, Warning::SilentConnection { .. })),
        ),
    ];
    for (word, begins, names) in faults {
        let (mut group, member) = busy(&settings());
        begins(&mut group, member);
        let before = group.count(member);
        group.run(2_400_000, 10_000);
        let silent = silence(&group, member);
        if word != "the leader does not hear" {
            assert!(silent > 1900.0, "{word}: {silent}");
            group.run(4_000_000, 10_000);
            let more = group.count(member) - before;
            assert!(more < 12, "{word}: {more} sent");
            let status = group.processes[member].status(at(group.now));
            let is_offline = status.offline_since.is_some();
            assert!(is_offline || word == "it is not heard", "{word}: {status:?}");
        }
        let warned = group.warned.get(&member).cloned().unwrap_or_default();
        assert!(names(&warned), "{word}: {warned:?}");
    }
}

/// A process's own frame, under another's name.
fn as_another(frame: &[u8], name: u32) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[2..6].copy_from_slice(&name.to_be_bytes());
    frame
}

#[test]
fn a_process_for_which_the_group_has_no_room_says_so() {
    let mut group = Group::of(2, &gap(50.0), &settings());
    group.ask(0, 1);
    group.ask(1, 1);
    group.run(1_000_000, 10_000);
    let leader = (0..2).find(|&of| group.role(of) == Role::Leader).unwrap();
    let member = 1 - leader;
    // Its story, told by as many processes as a group may have.
    group.processes[member].handle(at(group.now), Input::Opened);
    let mut story = Vec::new();
    while let Some(effect) = group.processes[member].poll_effect(at(group.now)) {
        if let (Effect::ToLeader(bytes), true) = (&effect, story.is_empty()) {
            story.clone_from(bytes);
        }
        group.says(member, effect);
    }
    for name in 0..4200 {
        hears(&mut group, leader, &as_another(&story, 0xaa00_0000 + name));
    }
    let young = group.join(&gap(50.0), &settings());
    group.ask(young, 10);
    group.run(2_000_000, 10_000);
    assert_eq!(group.warned[&young], [Warning::GroupFull { here: true }]);
    assert_eq!(group.warned[&leader], [Warning::GroupFull { here: false }]);
    assert_eq!((group.count(young), group.warned.len()), (0, 2));
    // The others are silent, and their places are free again.
    group.run(3_000_000, 10_000);
    assert_eq!(group.count(young), 10);
}

#[test]
fn a_process_that_waits_because_the_rest_of_its_quota_is_unknown_says_so() {
    let strict = options(json!({ "quota": 10, "window": 3000, "strict": true }));
    let mut group = Group::of(3, &strict, &settings());
    group.stored = Some((b"garbage".to_vec(), 1_000_000));
    group.epoch = 4;
    for of in 0..3 {
        group.ask(of, 20);
    }
    group.run(2_000_000, 10_000);
    assert!(group.sent.is_empty());
    for of in 0..3 {
        assert_eq!(group.warned[&of], [Warning::StateLost], "{of}");
    }
    group.run(20_000_000, 10_000);
    assert!(group.warned.values().all(|warned| warned.len() == 1), "{:?}", group.warned);
}

#[test]
fn a_way_that_is_slow_is_told_by_how_long_an_answer_takes() {
    let (mut group, member) = busy(&settings());
    group.far = 400_000;
    group.run(10_000_000, 10_000);
    let leader = (0..3).find(|&of| group.role(of) == Role::Leader).unwrap();
    let status = |of: usize| group.processes[of].status(at(group.now));
    let there_and_back = status(member).round_trip.unwrap().millis();
    assert!((800.0..1000.0).contains(&there_and_back), "{there_and_back}");
    assert_eq!(status(leader).lead.millis(), 300.0);
    assert!(silence(&group, member) < 1500.0);
}

/// A laptop that was closed, a debugger: what it did not hear meanwhile is no silence.
#[test]
fn a_process_that_stood_still_for_a_minute_raises_no_alarm_and_is_served() {
    let mut group = Group::of(3, &gap(50.0), &settings());
    for of in 0..3 {
        group.ask(of, 200);
    }
    group.run(3_000_000, 10_000);
    let member = (0..3).find(|&of| group.role(of) == Role::Member).unwrap();
    group.stands = member;
    group.run(60_000_000, 10_000);
    let before = group.count(member);
    group.stands = usize::MAX;
    group.run(2_000_000, 10_000);
    assert!(group.count(member) > before + 3);
    let status = group.processes[member].status(at(group.now));
    assert_eq!((status.offline_since, status.members), (None, Some(3)));
    assert!(silence(&group, member) < 700.0);
    assert!(group.warned.is_empty(), "{:?}", group.warned);
}

#[test]
fn an_idle_group_raises_no_alarm_and_has_heard_of_itself() {
    for idle in [Settings { prompt: true, ..settings() }, settings()] {
        let mut group = Group::of(4, &gap(50.0), &idle);
        for of in 0..4 {
            group.ask(of, 3);
        }
        group.run(3_000_000, 10_000);
        for _ in 0..60 {
            group.run(1_000_000, 10_000);
            for of in 0..4 {
                let silent = silence(&group, of);
                let status = group.processes[of].status(at(group.now));
                assert!(silent < 700.0, "{silent}");
                assert_eq!((status.offline_since, status.members), (None, Some(4)));
            }
        }
        assert!(group.warned.is_empty(), "{:?}", group.warned);
    }
}

/// A store that forgot its keys, one that failed over, a process that lies: a lease is another's while it
/// lasts.
#[test]
fn an_epoch_that_begins_anew_is_told_once() {
    let (mut group, member) = busy(&settings());
    let leader = (0..3).find(|&of| group.role(of) == Role::Leader).unwrap();
    let epochs = |group: &Group, of: usize| {
        let warned = group.warned.get(&of).into_iter().flatten();
        warned.filter(|it| matches!(it, Warning::TwoWriters { .. })).cloned().collect::<Vec<_>>()
    };
    // The store gives the lease to a process that knows of no other.
    let young = group.join(&gap(50.0), &settings());
    (group.holder, group.epoch, group.stored) = (None, 0, None);
    group.ask(young, 100);
    group.run(3_000_000, 10_000);
    assert_eq!(epochs(&group, leader), [Warning::TwoWriters { ours: 1 }]);
    assert!(epochs(&group, member).is_empty(), "who only asks knows of no lease");
    // The stored state is of a later leader than the store counts.
    let mut group = Group::of(1, &gap(50.0), &settings());
    group.ask(0, 5);
    group.run(2_000_000, 10_000);
    let stored = group.stored.clone();
    let mut group = Group::of(1, &gap(50.0), &settings());
    group.stored = stored.map(|(bytes, _)| (bytes, 0));
    group.ask(0, 5);
    group.run(2_000_000, 10_000);
    assert_eq!(epochs(&group, 0), [Warning::TwoWriters { ours: 1 }]);
    // A usual change of leaders is no alarm.
    let (mut group, _) = busy(&settings());
    let leader = (0..3).find(|&of| group.role(of) == Role::Leader).unwrap();
    group.stands = leader;
    group.run(4_000_000, 10_000);
    group.stands = usize::MAX;
    group.run(4_000_000, 10_000);
    assert!((0..3).all(|of| epochs(&group, of).is_empty()), "{:?}", group.warned);
}

#[test]
fn a_setting_without_effect_is_told_once_a_group() {
    let slots = options(json!({ "delay": 1000, "concurrency": 4 }));
    let gaps = options(json!({ "delay": 50, "slotDelay": 10 }));
    for options in [slots, gaps] {
        let mut group = Group::of(4, &options, &settings());
        for _ in 0..3 {
            for of in 0..group.processes.len() {
                if !group.dead.contains(&of) {
                    group.ask(of, 2000);
                }
            }
            group.run(5_000_000, 10_000);
            let leader = (0..group.processes.len())
                .find(|of| !group.dead.contains(of) && group.role(*of) == Role::Leader);
            group.dead.push(leader.unwrap());
            group.join(&options, &settings());
        }
        let told = group.noticed.iter().map(|(of, notice)| format!("{of}: {notice:?}"));
        let told: Vec<_> = told.filter(|it| it.contains("no-effect")).collect();
        assert_eq!(told.len(), 1, "{told:#?}");
    }
}
