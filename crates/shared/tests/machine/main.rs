//! Single rules of the machine, with a few processes, a store and no chance: what the simulation plays by the
//! thousand is shown here once and by name.

mod budgets;
mod group;
mod health;
mod many;
mod shares;

use autothrottle::{
    Rng, Span,
    boundary::{Outcome, Settled, UNTOLD},
};
use autothrottle_shared::{
    Ask, Cause, Effect, Input, MemberId, Offline, Order, Refusal, Role, Settings, Shared, Ticket, Warning,
};
use group::{Group, LEASE, News, WAY, at, gap, options, settings, value};
use serde_json::json;

#[test]
fn nothing_happens_before_the_first_request() {
    let mut process = Shared::new(MemberId([1; 16]), gap(100.0), settings(), 1).unwrap();
    process.handle(at(5), Input::Timeout);
    process.handle(at(6), Input::Received(&[1, 2, 3]));
    assert_eq!((process.poll_effect(at(7)), process.poll(at(7)), process.wake_at()), (None, None, None));
    process.close(at(8));
    assert_eq!(process.poll_effect(at(9)), None);
}

#[test]
fn one_leads_all_are_served_and_the_gap_holds_between_processes() {
    let mut group = Group::of(3, &gap(100.0), &settings());
    for of in 0..3 {
        group.ask(of, 30);
    }
    group.run(8_000_000, 30_000);
    let leaders = (0..3).filter(|&of| group.role(of) == Role::Leader).count();
    assert_eq!(leaders, 1);
    assert!((60..=81).contains(&group.sent.len()), "{}", group.sent.len());
    for of in 0..3 {
        assert!(group.count(of) >= 20, "{}", group.count(of));
    }
    let gaps = group.sent.windows(2).map(|pair| pair[1].0 - pair[0].0);
    assert!(gaps.min().unwrap() >= 95_000);
    let status = group.processes[0].status(at(group.now));
    assert_eq!((status.epoch, status.members, status.debt, status.bad), (1, Some(3), Span::ZERO, 0));
}

#[test]
fn another_leads_when_the_leader_dies_and_slots_are_neither_lost_nor_doubled() {
    let slots = options(json!({ "concurrency": 2 }));
    let mut group = Group::of(3, &slots, &settings());
    for of in 0..3 {
        group.ask(of, 2);
    }
    group.run(2_000_000, 0);
    assert_eq!(group.sent.len(), 2, "two slots, and no answer");
    let leader = (0..3).find(|&of| group.role(of) == Role::Leader).unwrap();
    let flying = group.sent.iter().filter(|sent| sent.1 == leader).count();
    group.dead.push(leader);
    group.run(2_500_000, 0);
    assert_eq!(group.sent.len(), 2, "what flies keeps its slots");
    group.run(3_000_000, 0);
    assert_eq!(group.sent.len(), 2 + flying, "those of the dead come back");
}

#[test]
fn the_slots_of_a_leader_that_is_known_to_have_ended_come_back_at_once() {
    let slots = options(json!({ "concurrency": 4 }));
    let mut group = Group::of(2, &slots, &settings());
    group.ask(0, 3);
    group.run(500_000, 0);
    group.ask(1, 5);
    group.run(500_000, 0);
    assert_eq!((group.role(0), group.count(0), group.count(1)), (Role::Leader, 3, 1));
    group.dead.push(0);
    group.holder = None;
    let now = at(group.now);
    group.processes[1].handle(now, Input::Vacant { ended: true });
    group.run(500_000, 0);
    assert_eq!(group.count(1), 4, "all four slots");
}

#[test]
fn a_member_that_asks_for_a_hundred_and_twenty_thousand_at_once_is_served_as_the_others_are() {
    let mut group = Group::of(2, &gap(50.0), &settings());
    group.ask(0, 1);
    group.run(500_000, 10_000);
    assert_eq!(group.role(0), Role::Leader);
    group.ask(1, 120_000);
    group.run(4_000_000, 10_000);
    assert!(group.count(1) >= 30, "{} of the member's", group.count(1));
    group.dead.push(0);
    group.run(6_000_000, 10_000);
    let before = group.count(1);
    group.run(2_000_000, 10_000);
    assert!(group.count(1) - before >= 35, "its story is long, and it leads now");
}

#[test]
fn the_state_of_many_scopes_goes_in_parts_and_another_leader_goes_on_from_it() {
    let used = options(json!({ "quota": 1000, "window": 600_000 }));
    let mut group = Group::of(2, &used, &settings());
    let names: Vec<String> = (0..14_000).map(|index| format!("{index:0>70}")).collect();
    for name in &names {
        group.processes[0].submit(at(group.now), &of_scope(name)).unwrap();
    }
    group.ask(1, 1);
    group.run(4_000_000, 1000);
    let leader = (0..2).find(|&of| group.role(of) == Role::Leader).unwrap();
    assert_eq!(group.sent.len(), names.len() + 1);
    group.run(20_000_000, 1000);
    group.dead.push(leader);
    group.run(4_000_000, 1000);
    assert_eq!(group.role(1 - leader), Role::Leader);
    let status = group.processes[1 - leader].status(at(group.now));
    assert_eq!((status.bad, group.warned.get(&(1 - leader))), (0, None), "nothing was unreadable");
}

fn of_scope(name: &str) -> Ask<'_> {
    Ask { names: Box::leak(Box::new([name])), costs: &[], priority: 0.0, delay_ms: 0.0 }
}

/// Each of these is asked for, leaves, and ends without a word.
fn end_without_a_word<'a>(group: &mut Group, names: impl Iterator<Item = &'a str>) {
    let mut ended = group.sent.len();
    let mut left = 0;
    for name in names {
        group.processes[0].submit(at(group.now), &of_scope(name)).unwrap();
        left += 1;
    }
    while left > 0 {
        group.run(2_000_000, 0);
        assert!(ended < group.sent.len(), "{left} did not leave");
        for &(_, _, ticket) in &group.sent[ended..] {
            let silent = Outcome::new(UNTOLD, f64::NAN, f64::NAN, 0);
            assert_eq!(group.processes[0].settle(at(group.now), ticket, &silent).settled, Settled::Over);
        }
        left -= group.sent.len() - ended;
        ended = group.sent.len();
    }
    group.run(100_000, 0);
}

#[test]
fn twenty_ends_without_a_word_are_noticed_however_many_scopes_had_fewer() {
    let mut group = Group::of(1, &options(json!({})), &settings());
    let names: Vec<String> = (0..12_000).map(|index| format!("{index}.example")).collect();
    end_without_a_word(&mut group, names.iter().map(String::as_str));
    end_without_a_word(&mut group, ["s"; 60].into_iter());
    let noticed: Vec<_> = group.noticed.iter().map(|(_, notice)| format!("{notice:?}")).collect();
    let is_silent = |notice: &&String| notice.contains("no-status") && notice.contains("\"s\"");
    assert_eq!(noticed.iter().filter(is_silent).count(), 1, "{noticed:?}");
}

#[test]
fn a_leader_that_closes_hands_over_at_once() {
    let mut group = Group::of(2, &gap(50.0), &settings());
    group.ask(0, 5);
    group.run(1_000_000, 10_000);
    group.ask(1, 40);
    group.run(500_000, 10_000);
    assert_eq!(group.role(0), Role::Leader);
    let now = at(group.now);
    group.processes[0].close(now);
    while let Some(effect) = group.processes[0].poll_effect(now) {
        group.says(0, effect);
    }
    group.dead.push(0);
    let before = group.sent.len();
    group.run(400_000, 10_000);
    assert_eq!(group.role(1), Role::Leader);
    assert!(group.sent.len() > before, "within 400 ms");
}

#[test]
fn a_strict_quota_is_kept_through_kills() {
    let strict = options(json!({ "quota": 10, "window": 3000, "strict": true }));
    let mut group = Group::of(3, &strict, &settings());
    for of in 0..3 {
        group.ask(of, 40);
    }
    for _ in 0..4 {
        group.run(2_300_000, 20_000);
        if let Some(leader) = (0..group.processes.len()).find(|&of| group.role(of) == Role::Leader) {
            group.dead.push(leader);
        }
        let of = group.join(&strict, &settings());
        group.ask(of, 40);
    }
    group.run(6_000_000, 20_000);
    assert!(group.most_within(2_990_000) <= 10, "{}", group.most_within(2_990_000));
    assert!(group.sent.len() > 25, "{}", group.sent.len());
}

#[test]
fn without_the_others_a_process_waits_goes_on_with_its_part_or_fails() {
    let slots = options(json!({ "delay": 100 }));
    for (offline, least, most) in [(Offline::Wait, 0, 0), (Offline::Divide, 10, 26), (Offline::Fail, 0, 0)] {
        let settings = Settings { offline: Some(offline), ..settings() };
        let mut group = Group::of(2, &slots, &settings);
        group.ask(0, 300);
        group.ask(1, 300);
        group.run(3_000_000, 10_000);
        group.cut = vec![0, 1];
        group.run(7_000_000, 10_000);
        let before = group.sent.len();
        group.run(2_000_000, 10_000);
        let alone = group.sent.len() - before;
        assert!((least..=most).contains(&alone), "{offline:?}: {alone}");
        let failed = group.failed.iter().filter(|(_, why)| matches!(why, Refusal::Offline(_))).count();
        assert_eq!(failed > 0, offline == Offline::Fail);
        let status = group.processes[0].status(at(group.now));
        assert_eq!(status.role == Role::Alone, offline == Offline::Divide);
        assert!(status.offline_since.is_some());
        assert_eq!(status.debt > Span::ZERO, offline == Offline::Divide, "{:?}", status.debt);
        group.cut.clear();
        group.run(6_000_000, 10_000);
        let status = group.processes[0].status(at(group.now));
        assert_eq!((status.offline_since, status.debt), (None, Span::ZERO));
        assert!(group.warned[&0].contains(&Warning::Online));
    }
}

#[test]
fn the_rest_of_a_quota_is_divided_also_where_the_leader_sends_on_until_its_lease_is_over() {
    let quota = options(json!({ "quota": 80, "window": 60_000, "rate": 5, "delay": null }));
    let divide = Settings { offline: Some(Offline::Divide), ..settings() };
    for later in 0..10 {
        let mut group = Group::of(4, &quota, &divide);
        for of in 0..4 {
            group.ask(of, 10);
        }
        group.run(9_000_000 + later * 50_000, 100_000);
        assert_eq!((group.sent.len(), group.role(0)), (40, Role::Leader));
        group.cut = vec![0, 1, 2, 3];
        for of in 0..4 {
            group.ask(of, 50);
        }
        group.run(20_000_000, 100_000);
        group.cut.clear();
        group.run(20_000_000, 100_000);
        assert!((78..=80).contains(&group.sent.len()), "{} of 80", group.sent.len());
    }
}

#[test]
fn a_request_that_costs_more_than_a_part_of_a_quota_waits_for_the_way() {
    let quota = options(json!({ "quota": 8, "window": 1000 }));
    let divide = Settings { offline: Some(Offline::Divide), ..settings() };
    let mut group = Group::of(4, &quota, &divide);
    for of in 0..4 {
        group.ask(of, 1);
    }
    group.run(3_000_000, 10_000);
    group.cut = vec![0, 1, 2, 3];
    // Until its lease is over, the leader has the whole quota. It asked before the others were there.
    group.run(2_000_000, 10_000);
    let dear = Ask { names: &["s"], costs: &[5.0], priority: 0.0, delay_ms: 0.0 };
    for of in 0..4 {
        group.processes[of].submit(at(group.now), &dear).unwrap();
    }
    group.run(12_000_000, 10_000);
    assert_eq!((group.sent.len(), group.failed.len()), (4, 0));
    group.cut.clear();
    group.run(8_000_000, 10_000);
    assert_eq!((group.sent.len(), group.failed.len()), (8, 0));
}

#[test]
fn a_process_that_never_heard_of_the_others_waits_unless_it_knows_how_many_there_are() {
    for (members, most) in [(None, 0), (Some(4), 12)] {
        let settings = Settings { offline: Some(Offline::Divide), members, ..settings() };
        let mut group = Group::of(4, &gap(100.0), &settings);
        group.cut = vec![0, 1, 2, 3];
        for of in 0..4 {
            group.ask(of, 50);
        }
        group.run(5_900_000, 10_000);
        assert!(group.sent.len() <= most.max(4), "{}", group.sent.len());
        assert_eq!(group.sent.is_empty(), members.is_none());
    }
}

#[test]
fn processes_that_never_met_send_together_at_most_the_rate_in_any_of_its_spans() {
    let rates = [
        (json!(20), 1_000_000, 20),
        (json!("600/min"), 60_000_000, 600),
        // Less than one each: the span is longer.
        (json!(3), 2_666_667, 8),
        (json!({ "limit": 100, "burst": 40 }), 1_000_000, 100),
    ];
    for (rate, span, most) in rates {
        let options = options(json!({ "rate": rate, "delay": null }));
        let settings = Settings { offline: Some(Offline::Divide), members: Some(8), ..settings() };
        let mut group = Group::of(8, &options, &settings);
        group.cut = (0..8).collect();
        let mut rng = Rng::new(1);
        for of in 0..8 {
            group.ask(of, 400);
            // None begins when another one does, and each stands still now and then.
            group.run((rng.draw().unit() * 130_000.0) as u64, 10_000);
        }
        while group.now < 20_000_000 + span {
            group.stands = (rng.draw().unit() * 8.0) as usize;
            group.run((rng.draw().unit() * 600_000.0) as u64, 10_000);
        }
        let sent = group.most_within(span);
        assert!(sent <= most, "{sent} of {most} within {span} µs: {rate:?}");
        assert!(3 * sent >= most, "{sent} of {most}: {rate:?}");
    }
}

#[test]
fn a_good_end_is_said_with_the_next_request_or_soon_and_at_once_where_a_request_waits() {
    let mut group = Group::of(2, &options(json!({ "concurrency": 2 })), &settings());
    group.ask(0, 1);
    group.run(500_000, 10_000);
    group.ask(1, 2);
    group.run(20_000, 0);
    let leave = |group: &Group| -> Vec<Ticket> {
        group.sent.iter().filter(|sent| sent.1 == 1).map(|sent| sent.2).collect()
    };
    let ends = |group: &mut Group, ticket: Ticket, status: f64| {
        let outcome = Outcome::new(status, 10.0, f64::NAN, 0);
        group.processes[1].settle(at(group.now), ticket, &outcome);
        (group.turn(1), group.processes[1].has_unsaid())
    };
    let tickets = leave(&group);
    assert_eq!(ends(&mut group, tickets[0], 200.0), (0, true));
    assert!(group.processes[1].wake_at().is_some_and(|wake| wake <= at(group.now + 2000)));
    group.ask(1, 1);
    assert_eq!((group.turn(1), group.processes[1].has_unsaid()), (0, true), "its slot is used again");
    assert_eq!(group.processes[1].poll(at(group.now)), Some(tickets[1] + 1), "without a message");
    group.sent.push((group.now, 1, tickets[1] + 1));
    assert!(group.processes[1].wake_at().is_some_and(|wake| wake <= at(group.now + 20_000)));
    // Now all slots are taken, and the other process waits.
    group.run(20_000, 0);
    group.ask(0, 1);
    group.run(20_000, 0);
    group.ask(1, 1);
    group.run(20_000, 0);
    assert_eq!(group.sent.len(), 4);
    let last = ends(&mut group, tickets[1], 200.0);
    assert_eq!(last, (1, false), "the member was told that another request waits");
    group.run(20_000, 0);
    // The first one has it, and the member heard that its own request waits behind.
    let last = leave(&group).len();
    let tickets = leave(&group);
    assert_eq!(ends(&mut group, tickets[last - 1], 429.0), (1, false), "a refusal is said at once");
}

/// A process has one request after the other, each over in a millisecond: how many leave in this span.
fn quick(group: &mut Group, of: usize, span: u64) -> usize {
    let before = group.count(of);
    let end = group.now + span;
    while group.now < end {
        if let Some(&(_, _, ticket)) = group.sent.iter().rfind(|sent| sent.1 == of) {
            let ok = Outcome::new(200.0, 1.0, f64::NAN, 0);
            let now = at(group.now);
            if group.processes[of].settle(now, ticket, &ok).settled == Settled::Over {
                group.ask(of, 1);
            }
        }
        group.run(WAY, 0);
    }
    group.count(of) - before
}

/// Else the one that has most to do would serve itself last.
#[test]
fn the_leader_uses_its_own_slots_again_as_members_do_and_gives_them_where_another_waits() {
    let mut group = Group::of(2, &options(json!({ "concurrency": 2 })), &settings());
    group.ask(0, 1);
    group.run(500_000, 0);
    group.ask(1, 1);
    group.run(100_000, 0);
    let ok = Outcome::new(200.0, 1.0, f64::NAN, 0);
    let (_, _, ticket) = *group.sent.iter().rfind(|sent| sent.1 == 0).unwrap();
    group.processes[0].settle(at(group.now), ticket, &ok);
    group.ask(0, 1);
    let now = at(group.now);
    assert_eq!(group.processes[0].poll(now), Some(ticket + 1), "in the same turn");
    group.sent.push((group.now, 0, ticket + 1));
    assert!(quick(&mut group, 0, 100_000) > 60);
    // Both slots are in use, and another process waits: it has the next.
    let before = group.count(1);
    group.ask(1, 1);
    group.run(10_000, 0);
    assert_eq!(group.count(1), before);
    let (_, _, ticket) = *group.sent.iter().rfind(|sent| sent.1 == 0).unwrap();
    group.processes[0].settle(at(group.now), ticket, &ok);
    group.run(10_000, 0);
    assert_eq!(group.count(1), before + 1);
}

#[test]
fn a_setting_that_the_leader_hears_ends_the_leave_to_use_a_slot_again() {
    let set = |settings| Order::Configure("s".into(), value(settings));
    let orders = [
        (Order::Hold("s".into(), Span::from_millis(10_000.0)), 0),
        (Order::Pause(Some("s".into())), 0),
        (Order::Pause(None), 0),
        (set(json!({ "concurrency": 1 })), 0),
        (set(json!({ "delay": 100 })), 3),
        (set(json!({ "quota": 1 })), 0),
    ];
    for (order, most) in orders {
        let mut group = Group::of(2, &options(json!({ "concurrency": 2 })), &settings());
        group.ask(0, 1);
        group.run(500_000, 0);
        group.ask(1, 1);
        assert!(quick(&mut group, 1, 100_000) > 60, "without a message: that takes four milliseconds");
        group.processes[0].order(at(group.now), order.clone()).unwrap();
        // It says within 20 ms that it used its slot, and then hears.
        assert!(quick(&mut group, 1, 30_000) > 0, "{order:?}");
        let later = quick(&mut group, 1, 300_000);
        assert!(later <= most, "{later}: {order:?}");
    }
}

#[test]
fn a_question_that_nobody_answers_is_given_up_after_a_lease() {
    let mut process = Shared::new(MemberId([1; 16]), gap(100.0), settings(), 1).unwrap();
    process.open(at(1));
    let competes = |process: &mut Shared, now: u64| {
        let effects = core::iter::from_fn(|| process.poll_effect(at(now)));
        effects.filter(|effect| matches!(effect, Effect::Compete { .. })).count()
    };
    assert_eq!(competes(&mut process, 1), 1);
    process.handle(at(LEASE), Input::Timeout);
    assert_eq!(competes(&mut process, LEASE), 0, "it was asked");
    let mut now = LEASE + 2;
    let mut asked = 0;
    for _ in 0..50 {
        process.handle(at(now), Input::Timeout);
        asked += competes(&mut process, now);
        now = process.wake_at().unwrap().micros().max(now + 1000);
        if now > 2 * LEASE {
            break;
        }
    }
    assert!(asked > 0, "and again, though no host said that it failed");
}

/// A host gives up a question a moment after the machine does, and knows what it waited for.
#[test]
fn a_failure_that_a_host_tells_late_says_why_the_connection_is_broken() {
    let mut process = Shared::new(MemberId([1; 16]), gap(100.0), settings(), 1).unwrap();
    let ask = Ask { names: &["s"], costs: &[], priority: 0.0, delay_ms: 0.0 };
    process.submit(at(1), &ask).unwrap();
    let late = "no answer by TLS";
    let (mut now, mut asked, mut warned) = (1, Vec::new(), Vec::new());
    while now < 9_000_000 {
        while let Some(effect) = process.poll_effect(at(now)) {
            match effect {
                Effect::Compete { op, .. } => asked.push((now + LEASE + 1000, op)),
                Effect::Warn(warning) => warned.push(warning),
                _ => {}
            }
        }
        now += 1000;
        process.handle(at(now), Input::Timeout);
        for &(_, op) in asked.iter().filter(|(due, _)| *due == now) {
            process.handle(at(now), Input::Failed { op, cause: Cause::Broken(late) });
        }
    }
    assert!(matches!(&warned[..], [Warning::Offline { why, .. }] if why == late), "{warned:?}");
}

#[test]
fn an_error_that_is_for_good_fails_the_requests_with_the_reason() {
    let mut process = Shared::new(MemberId([1; 16]), gap(100.0), settings(), 1).unwrap();
    let ask = Ask { names: &["s"], costs: &[], priority: 0.0, delay_ms: 0.0 };
    let ticket = process.submit(at(1), &ask).unwrap();
    let competes = core::iter::from_fn(|| process.poll_effect(at(2)))
        .find_map(|effect| if let Effect::Compete { op, .. } = effect { Some(op) } else { None });
    let op = competes.expect("it competes");
    process.handle(at(3), Input::Failed { op, cause: Cause::Denied("the folder is another user's") });
    let why = Refusal::Denied("the folder is another user's".into());
    assert_eq!(process.poll_effect(at(4)), Some(Effect::Fail { ticket, why: why.clone() }));
    assert_eq!(process.submit(at(5), &ask), Err(why));
}

#[test]
fn frames_of_random_bytes_are_dropped_counted_and_told_once_a_minute() {
    let mut group = Group::of(2, &gap(20.0), &settings());
    group.ask(0, 20);
    group.ask(1, 20);
    group.run(1_000_000, 10_000);
    // Real frames, with some bytes changed; and bytes that never were a frame.
    let mut frames = Vec::new();
    group.ask(1, 3);
    for of in 0..2 {
        while let Some(effect) = group.processes[of].poll_effect(at(group.now)) {
            if let Effect::ToLeader(bytes) | Effect::ToAll { bytes, .. } | Effect::ToMember { bytes, .. } =
                &effect
            {
                frames.push(bytes.clone());
            }
            group.says(of, effect);
        }
    }
    assert!(!frames.is_empty());
    let mut rng = Rng::new(7);
    let mut below = |most: usize| (rng.draw().unit() * most as f64) as usize;
    for round in 0..20_000 {
        let mut bytes = frames[round % frames.len()].clone();
        for _ in 0..=below(3) {
            let place = below(bytes.len());
            bytes[place] = below(256) as u8;
        }
        if round % 3 == 0 {
            bytes.truncate(below(bytes.len()));
        } else if round % 7 == 0 {
            bytes = (0..below(80)).map(|_| below(256) as u8).collect();
        }
        for process in &mut group.processes {
            process.handle(at(group.now), Input::Received(&bytes));
            while process.poll_effect(at(group.now)).is_some() {}
            while process.poll(at(group.now)).is_some() {}
        }
    }
    let status = group.processes[0].status(at(group.now));
    assert!(status.bad > 5000, "{}", status.bad);
}

#[test]
fn a_frame_of_another_version_is_told_of_and_does_nothing() {
    let mut group = Group::of(2, &gap(20.0), &settings());
    group.ask(0, 1);
    group.run(1_000_000, 10_000);
    let mut foreign = vec![0xa7, 9];
    foreign.extend([3; 40]);
    for _ in 0..3 {
        group.processes[0].handle(at(group.now), Input::Received(&foreign));
        while let Some(effect) = group.processes[0].poll_effect(at(group.now)) {
            group.says(0, effect);
        }
    }
    assert_eq!(group.warned[&0], [Warning::Version { theirs: 9 }]);
    assert_eq!(group.processes[0].status(at(group.now)).bad, 0);
}

#[test]
fn a_stored_snapshot_that_cannot_be_read_is_as_none_with_a_warning() {
    let mut group = Group::of(1, &gap(50.0), &settings());
    group.stored = Some((b"garbage".to_vec(), 1_000_000));
    group.epoch = 4;
    group.ask(0, 20);
    group.run(3_000_000, 10_000);
    assert_eq!(group.warned[&0], [Warning::StateLost]);
    assert_eq!(group.sent.len(), 20);
}

#[test]
fn a_strict_quota_waits_for_its_window_where_nobody_knows_what_was_spent() {
    let strict = json!({ "quota": 10, "window": 3000, "strict": true });
    let mut group = Group::of(2, &options(strict), &settings());
    group.stored = Some((b"garbage".to_vec(), 1_000_000));
    group.epoch = 4;
    group.ask(0, 20);
    let started = group.now;
    group.run(2_000_000, 10_000);
    // The next leader knows it from the snapshot, which can be read.
    let leader = (0..2).find(|&of| group.role(of) == Role::Leader).unwrap();
    group.dead.push(leader);
    group.ask(1 - leader, 20);
    group.run(6_000_000, 10_000);
    let first = group.sent.first().unwrap().0 - started;
    assert!((3_000_000..4_500_000).contains(&first), "{first}");
    assert!(group.most_within(2_990_000) <= 10);
}

#[test]
fn those_that_go_on_alone_take_turns_and_owe_one_window_at_most() {
    let rate = options(json!({ "rate": 10, "delay": null }));
    let divide = Settings { offline: Some(Offline::Divide), ..settings() };
    let mut group = Group::of(5, &rate, &divide);
    for of in 0..5 {
        group.ask(of, 400);
    }
    group.run(3_000_000, 10_000);
    group.cut = vec![0, 1, 2, 3, 4];
    group.run(7_000_000, 10_000);
    let from = group.sent.len();
    group.run(5_000_000, 10_000);
    let alone = &group.sent[from..];
    assert!((45..=55).contains(&alone.len()), "{}", alone.len());
    // The leader noticed later that it is alone, so its turn may meet another's.
    let spans = alone.windows(3).map(|some| some[2].0 - some[0].0);
    assert!(spans.min().unwrap() > 50_000, "they take turns");
    // Only one of them stays away: the others have the whole limit beside its part, for a minute.
    let debt = group.processes[0].status(at(group.now)).debt;
    assert!(debt > Span::from_micros(500_000) && debt <= Span::from_micros(1_000_000), "{debt:?}");
    group.cut = vec![4];
    group.run(60_000_000, 10_000);
    group.cut.clear();
    let before = group.sent.len();
    group.run(6_000_000, 10_000);
    assert!(
        group.sent.len() - before >= 40,
        "{}: a second of silence, not twelve",
        group.sent.len() - before
    );
}

#[test]
fn the_newest_options_count_once_every_process_has_them() {
    let (old, new) = (gap(100.0), gap(20.0));
    let mut group = Group::of(2, &old, &settings());
    group.ask(0, 300);
    group.ask(1, 300);
    group.run(2_000_000, 5000);
    let young = group.join(&new, &settings());
    group.ask(young, 300);
    group.run(3_000_000, 5000);
    let differ = [["scopes.s.delay".to_string(), "100".into(), "20".into()]].to_vec();
    let told = &group.warned[&young];
    assert!(
        told.iter().any(|it| matches!(it, Warning::Options { differ: theirs, .. } if *theirs == differ)),
        "{told:?}"
    );
    let before = group.sent.len();
    group.run(2_000_000, 5000);
    assert!((17..=21).contains(&(group.sent.len() - before)), "the old ones count");
    // The old processes end, and with them the leader.
    group.dead.extend([0, 1]);
    group.run(6_000_000, 5000);
    let before = group.sent.len();
    group.run(1_000_000, 5000);
    assert!(group.sent.len() - before > 40, "{}", group.sent.len() - before);
    let status = group.processes[young].status(at(group.now));
    assert_eq!(status.options.0, status.options.1);
}

#[test]
fn an_order_counts_for_all_and_for_the_next_leader() {
    let mut group = Group::of(3, &gap(20.0), &settings());
    group.ask(0, 1);
    group.ask(1, 400);
    group.ask(2, 400);
    group.run(1_000_000, 5000);
    let now = at(group.now);
    let faster = value(json!({ "delay": 200 }));
    group.processes[2].order(now, Order::Configure("s".into(), faster)).unwrap();
    let wrong = value(json!({ "delay": "x" }));
    assert!(group.processes[2].order(now, Order::Configure("s".into(), wrong)).is_err());
    group.run(1_000_000, 5000);
    let before = group.sent.len();
    group.run(2_000_000, 5000);
    assert!((8..=11).contains(&(group.sent.len() - before)), "{}", group.sent.len() - before);
    let leader = (0..3).find(|&of| group.role(of) == Role::Leader).unwrap();
    group.dead.push(leader);
    group.run(3_000_000, 5000);
    let before = group.sent.len();
    group.run(2_000_000, 5000);
    assert!((8..=11).contains(&(group.sent.len() - before)), "{}", group.sent.len() - before);
}

#[test]
fn a_request_that_makes_no_sense_or_costs_too_much_is_refused() {
    let quota = options(json!({ "quota": 5, "window": 1000 }));
    let mut group = Group::of(1, &quota, &settings());
    let now = at(group.now);
    let ask = Ask { names: &[], costs: &[], priority: 0.0, delay_ms: 0.0 };
    assert!(matches!(group.processes[0].submit(now, &ask), Err(Refusal::Wrong(_))));
    let odd = Ask { names: &["s"], costs: &[f64::NAN], ..ask };
    assert!(matches!(group.processes[0].submit(now, &odd), Err(Refusal::Wrong(_))));
    let dear = Ask { names: &["s"], costs: &[6.0], ..ask };
    group.processes[0].submit(now, &dear).unwrap();
    group.run(1_000_000, 5000);
    let scope = "s".to_string();
    assert_eq!(group.failed, [(0, Refusal::Cost { scope, path: "scopes.s.quota".into() })]);
    assert_eq!(group.processes[0].waiting(), 0);
}

#[test]
fn a_leader_that_does_not_hear_itself_asks_for_another_connection_and_then_steps_down() {
    let mut group = Group::of(1, &gap(20.0), &settings());
    group.ask(0, 1);
    group.run(1_000_000, 5000);
    let status = group.processes[0].status(at(group.now));
    assert_eq!((status.role, status.members), (Role::Leader, Some(1)));
    let end = group.now + 2_400_000;
    while group.now < end {
        group.run(WAY, 0);
        group.news.retain(|(_, _, news)| !matches!(news, News::Frame(_)));
    }
    assert!(group.reconnected > 0);
    assert!(group.warned[&0].contains(&Warning::SilentConnection { speaks: false }));
    let end = group.now + 1_500_000;
    while group.now < end {
        group.run(WAY, 0);
        group.news.retain(|(_, _, news)| !matches!(news, News::Frame(_)));
    }
    assert_eq!(group.holder, None, "another process may hear more");
    group.run(6_000_000, 0);
    assert_eq!(group.role(0), Role::Leader, "it hears again");
}
