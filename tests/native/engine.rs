//! Calls of the engine that a trace does not have: handles, paths, and equal ways to one state.

use std::collections::{BTreeMap, VecDeque};

use autothrottle::{
    Answer, Cost, Decision, Engine, Failure, Feedback, Instant, Notice, Request, Rng, ScopeId, Span,
    SubmitError, Ticket, Watch,
};

use crate::helpers::{engine, millis, seeds};

fn request<'a>(scopes: &'a [ScopeId], costs: &'a [f64]) -> Request<'a> {
    Request { costs, ..Request::new(scopes) }
}

/// Drivers with threads (tokio's) share one behind a lock. It is a test of types.
#[test]
fn an_engine_may_move_between_threads() {
    fn moves<T: Send + Sync>(_: &T) {}
    moves(&engine("{}"));
}

#[test]
fn a_cost_above_the_quota_names_the_scope_and_the_setting() {
    let mut engine =
        engine(r#"{ "defaults": { "quota": 5 }, "scopes": { "api": { "quota": 9 }, "a": {} } }"#);
    let [other, api] = ["other", "api"].map(|name| engine.scope(name));
    let now = Instant::default();
    let error = engine.submit(now, request(&[api, other], &[6.0])).unwrap_err();
    assert_eq!(error, SubmitError::CostExceedsQuota { scope: other, setting: "quota" });
    assert_eq!(engine.config_path(other, "quota").unwrap(), "defaults.quota");
    let error = engine.submit(now, request(&[other, api], &[5.0, 10.0])).unwrap_err();
    assert_eq!(error, SubmitError::CostExceedsQuota { scope: api, setting: "quota" });
    assert_eq!(engine.config_path(api, "quota").unwrap(), "scopes.api.quota");
}

#[test]
fn finding_a_scope_makes_none() {
    let mut engine = engine("{}");
    assert_eq!(engine.find("a"), None);
    assert_eq!(engine.scopes(), 0);
    let scope = engine.intern("a");
    assert_eq!(engine.find("a"), Some(scope));
}

/// Plays bad answers at these seconds, each to a request that was sent then; gives when the stall's notice
/// came.
fn stalls(options: &str, seconds: impl IntoIterator<Item = u64>) -> Vec<(u64, f64)> {
    let mut engine = engine(options);
    let scope = engine.scope("a");
    let mut told = Vec::new();
    for second in seconds {
        let submitted = Instant::from_micros(second * 1_000_000);
        let ticket = engine.submit(submitted, Request::new(&[scope])).unwrap();
        let mut now = submitted;
        while let Decision::Wait { until, .. } = engine.poll(now) {
            now = until;
        }
        engine.settle(now, ticket, &Feedback::response(503));
        for notice in engine.take_notices() {
            if let Notice::Stalled(stall) = notice {
                told.push((second, stall.for_ms / 1000.0));
            }
        }
    }
    told
}

#[test]
fn a_stall_is_a_run_of_bad_answers() {
    let none: Vec<(u64, f64)> = vec![];
    assert_eq!(stalls("{}", [0, 2400]), none, "two bad answers, forty minutes apart");
    assert_eq!(stalls("{}", (0..10).map(|time| time * 2400)), none, "and again and again");
    let slowly = r#"{ "defaults": { "backoff": { "maxDelay": 3600000 } } }"#;
    assert_eq!(stalls(slowly, [0, 2400]), none, "two are no run where they may come so seldom");
    assert_eq!(stalls(slowly, [0, 2400, 4800]).len(), 1, "three are one");
}

#[test]
fn a_host_that_refuses_at_the_slowest_pace_stalls() {
    let at_most = r#"{ "defaults": { "backoff": { "minDelay": 300000, "jitter": false } } }"#;
    assert_eq!(stalls(at_most, (0..9).map(|time| time * 300)).len(), 1, "at maxDelay");
    assert_eq!(stalls("{}", (0..200).map(|time| time * 10)).len(), 1, "under load");
    let soon =
        r#"{ "stallAfter": 60000, "defaults": { "backoff": { "minDelay": 300000, "jitter": false } } }"#;
    assert_eq!(stalls(soon, (0..9).map(|time| time * 300)).len(), 1, "at a pace slower than stallAfter");
}

/// Two engines live through the same: one submits and polls, the other sends at once where it can.
#[test]
fn sending_at_once_leaves_the_state_of_submit_and_poll() {
    let options = r#"{ "seed": 1, "maxInFlight": 6, "maxWaiting": 9, "maxScopes": 5,
        "defaults": { "concurrency": 3 },
        "scopes": { "free": { "delay": 0, "slotDelay": 0, "concurrency": 20 },
                    "auto": { "delay": 10, "slotDelay": 40, "autothrottle": { "startDelay": 50 } },
                    "quota": { "delay": 0, "slotDelay": 0,
                               "quota": [9, { "limit": 20, "window": 3000, "strict": true }] },
                    "ramp": { "rampup": { "startDelay": 100 } }, "rate": { "rate": 5 } } }"#;
    let names = ["free", "auto", "quota", "ramp", "rate", "other", "another"];
    let mut at_once: u64 = 0;
    let seeds = seeds(10).min(400);
    for seed in 0..seeds {
        let mut rng = Rng::new(seed);
        let mut pick = move |below: usize| (rng.draw().unit() * below as f64) as usize;
        let (mut slow, mut fast) = (engine(options), engine(options));
        if seed % 2 == 1 {
            slow.watch(Watch::Changes);
            fast.watch(Watch::Changes);
        }
        let mut now = Instant::default();
        let (mut flying, mut waiting): (Vec<Ticket>, Vec<Ticket>) = (vec![], vec![]);
        for event in 0..400 {
            match pick(10) {
                0..=3 => {
                    let chosen: Vec<&str> = (0..[1, 1, 1, 2, 3][pick(5)]).map(|_| names[pick(7)]).collect();
                    let scopes: Vec<ScopeId> = chosen.iter().map(|name| slow.intern(name)).collect();
                    assert_eq!(scopes, chosen.iter().map(|name| fast.intern(name)).collect::<Vec<_>>());
                    let costs = [[1.0, 2.0], [0.0, 1.0], [0.5, 0.5], [30.0, 0.0], [1.0, f64::NAN]][pick(5)];
                    let delay_ms = [0.0, 0.0, 0.0, 5.0, -1.0][pick(5)];
                    let priority = [0.0, 3.0, -1.0][pick(3)];
                    let costs = &costs[..scopes.len().min(2)];
                    let request = Request { costs, delay_ms, priority, ..Request::new(&scopes) };
                    let ticket = slow.submit(now, request);
                    let sent = fast.send_at_once(now, request);
                    if let Ok(Some(sent)) = sent {
                        assert_eq!(ticket, Ok(sent));
                        assert_eq!(slow.poll(now), Decision::Send(sent), "seed {seed}, event {event}");
                        flying.push(sent);
                        at_once += 1;
                    } else {
                        let waits = fast.submit(now, request);
                        waiting.extend(waits);
                        assert_eq!(waits, ticket, "seed {seed}, event {event}");
                        assert!(sent.is_ok() || sent == waits.map(Some), "the same error");
                    }
                }
                4 | 5 if !flying.is_empty() => {
                    let ticket = flying.remove(pick(flying.len()));
                    let latency_ms = Some(pick(300) as f64);
                    let feedback =
                        Feedback { latency_ms, ..Feedback::response([200, 200, 429, 503][pick(4)]) };
                    slow.settle(now, ticket, &feedback);
                    fast.settle(now, ticket, &feedback);
                }
                6 if !flying.is_empty() => {
                    let ticket = flying.remove(pick(flying.len()));
                    slow.cancel(now, ticket);
                    fast.cancel(now, ticket);
                }
                7 => {
                    for ticket in waiting.drain(..) {
                        slow.cancel(now, ticket);
                        fast.cancel(now, ticket);
                    }
                }
                _ => now = now + Span::from_millis([1.0, 20.0, 700.0, 5000.0, 90_000.0][pick(5)]),
            }
            loop {
                let decision = slow.poll(now);
                assert_eq!(decision, fast.poll(now), "seed {seed}, event {event}");
                let Decision::Send(ticket) = decision else { break };
                waiting.retain(|&other| other != ticket);
                flying.push(ticket);
            }
            let state = |engine: &Engine| (engine.stats(now), engine.snapshot(now, None));
            assert_eq!(state(&slow), state(&fast), "seed {seed}, event {event}");
            let told = [&mut slow, &mut fast].map(|engine| format!("{:?}", engine.take_notices()));
            assert_eq!(told[0], told[1], "seed {seed}, event {event}");
        }
    }
    assert!(at_once > 25 * seeds, "only {at_once}");
}

/// A cost is rounded up, never down: a millionth is the least part of a unit.
#[test]
fn a_cost_between_two_millionths_is_the_larger() {
    for millionths in 1..3000_u32 {
        let exact = f64::from(millionths) / 1e6;
        let above = exact.next_up();
        assert_eq!(Cost::from_units(exact).unwrap().units().to_bits(), exact.to_bits(), "{exact}");
        assert!(Cost::from_units(above).unwrap().units() >= above, "{above}");
    }
}

/// However gentle the factor, each step back gives at least one slot.
#[test]
fn slots_come_back_one_by_one_where_the_factor_is_near_one() {
    let options = r#"{ "defaults": { "delay": 0, "slotDelay": 0, "concurrency": 4, "jitter": false, "backoff": {
        "minDelay": 1000, "maxDelay": 1000, "window": 1000, "concurrencyFactor": 0.9, "jitter": false } } }"#;
    let mut engine = engine(options);
    let scope = engine.scope("x");
    let mut now = millis(1000.0);
    let mut slots = vec![];
    for task in 0..40 {
        now = now + Span::from_millis(5000.0);
        engine.submit(now, Request::new(&[scope])).unwrap();
        let Decision::Send(ticket) = engine.poll(now) else { panic!("nothing keeps it") };
        now = now + Span::from_millis(10.0);
        engine.settle(now, ticket, &Feedback::response(if task < 6 { 429 } else { 200 }));
        slots.push(engine.scope_stats(now, scope).unwrap().slots);
    }
    assert_eq!((slots[5], slots[39]), (1, 4), "{slots:?}");
}

/// The request chosen while none could go gives way to a more urgent one that comes later. That one may have
/// other scopes, or no cost.
#[test]
fn the_more_urgent_goes_first_though_it_came_while_nobody_could_go() {
    for (first, second, is_free) in [(0.0, 5.0, false), (5.0, 0.0, false), (0.0, 5.0, true), (5.0, 0.0, true)]
    {
        let mut engine = engine(
            r#"{ "maxInFlight": 1, "defaults": { "delay": 0, "slotDelay": 0, "concurrency": 5, "jitter": false } }"#,
        );
        let [a, b, busy] = ["a", "b", "busy"].map(|name| engine.scope(name));
        let now = Instant::default();
        let flying = engine.send_at_once(now, Request::new(&[busy])).unwrap().expect("it is the first");
        let of = |engine: &mut Engine, scopes: &[ScopeId], costs: &[f64], priority: f64| {
            let ticket = engine.submit(now, Request { priority, ..request(scopes, costs) }).unwrap();
            assert!(matches!(engine.poll(now), Decision::Idle { .. }));
            ticket
        };
        let one = of(&mut engine, &[a], &[], first);
        let other = if is_free {
            of(&mut engine, &[a], &[0.0], second)
        } else {
            of(&mut engine, &[a, b], &[], second)
        };
        let again = of(&mut engine, &[a], &[], first);
        engine.settle(now, flying, &Feedback::response(200));
        let mut order = Vec::new();
        while let Decision::Send(ticket) = engine.poll(now) {
            order.push(ticket);
            engine.settle(now, ticket, &Feedback::response(200));
        }
        let expected = if first > second { [one, again, other] } else { [other, one, again] };
        assert_eq!(order, expected);
    }
}

/// With fewer slots those count that were free last, as if there never had been more.
#[test]
fn a_slot_that_is_taken_away_is_the_one_that_rested_longest() {
    let mut engine = engine(
        r#"{ "defaults": { "delay": 0, "slotDelay": 1000, "jitter": false },
            "scopes": { "a": { "concurrency": 3 } } }"#,
    );
    let scope = engine.scope("a");
    let at = millis;
    for ms in [0.0, 100.0, 200.0] {
        let ticket = engine.send_at_once(at(ms), Request::new(&[scope])).unwrap().expect("a slot is free");
        engine.settle(at(ms), ticket, &Feedback::response(200));
    }
    let next = |engine: &Engine| engine.peek(at(300.0), Request::new(&[scope])).unwrap().at;
    assert_eq!(next(&engine), Some(at(1000.0)));
    let less = |slots: u32| serde_json::from_str(&format!(r#"{{ "concurrency": {slots} }}"#)).unwrap();
    engine.configure(at(300.0), scope, less(2)).unwrap();
    assert_eq!(next(&engine), Some(at(1100.0)));
    engine.configure(at(300.0), scope, less(1)).unwrap();
    assert_eq!(next(&engine), Some(at(1200.0)));
}

/// Of scopes that are equally strict the answer names the one known for longest, whatever the order.
#[test]
fn of_equal_obstacles_the_first_is_named() {
    let mut engine = engine(r#"{ "defaults": { "delay": 1000, "slotDelay": 0, "jitter": false } }"#);
    let [a, b] = ["a", "b"].map(|name| engine.scope(name));
    let now = Instant::default();
    let ticket = engine.send_at_once(now, Request::new(&[a, b])).unwrap().expect("nothing waits");
    engine.settle(now, ticket, &Feedback::response(200));
    for scopes in [[a, b], [b, a]] {
        let peek = engine.peek(now, Request::new(&scopes)).unwrap();
        assert_eq!(peek.because.unwrap().scope, Some(a));
        let ticket = engine.submit(now, Request::new(&scopes)).unwrap();
        let Decision::Wait { because, .. } = engine.poll(now) else { panic!("it waits") };
        assert_eq!(because.scope, Some(a));
        engine.cancel(now, ticket);
    }
}

/// Numbers of a boundary: each says what it says, and no more.
#[test]
fn feedback_of_plain_numbers() {
    let known = Feedback { latency_ms: Some(5.0), cost: Cost::from_units(3.0), ..Feedback::response(200) };
    for adjust_delay in [true, false] {
        let read = Feedback::from_numbers(200.0, 5.0, adjust_delay, 3.0, f64::NAN);
        assert_eq!(read, Feedback { adjust_delay, ..known });
    }
    let unknown = Feedback::from_numbers(f64::NAN, f64::INFINITY, true, -1.0, f64::NAN);
    assert_eq!(unknown, Feedback::IGNORED);
}

/// Idle time is no lateness: a request that did not wait when the schedule was due takes no time from the
/// next one.
#[test]
fn a_rate_makes_up_for_late_timers_only_where_somebody_waited() {
    let at = millis;
    for (asked, next) in [(500.0, 2000.0), (1020.0, 2020.0)] {
        let mut engine = engine(r#"{ "rate": { "limit": 1, "window": 1000 }, "jitter": false }"#);
        let scope = engine.scope("a");
        let ticket = engine.send_at_once(at(0.0), Request::new(&[scope])).unwrap().expect("the first");
        engine.settle(at(10.0), ticket, &Feedback::response(200));
        let ticket = engine.submit(at(asked), Request::new(&[scope])).unwrap();
        // The timer of a second comes twenty milliseconds late.
        assert_eq!(engine.poll(at(1020.0)), Decision::Send(ticket));
        assert_eq!(engine.peek(at(1020.0), Request::new(&[scope])).unwrap().at, Some(at(next)), "{asked}");
    }
}

/// Another start counts until a latency is learned; what was learned stays.
#[test]
fn settings_of_rampup_change_what_it_begins_with() {
    let at = millis;
    let mut engine = engine(r#"{ "defaults": { "rampup": { "startDelay": 1000 } } }"#);
    let scope = engine.scope("a");
    let gap = |engine: &Engine, now| engine.scope_stats(at(now), scope).unwrap().delay_ms;
    let set = |engine: &mut Engine, now, json: &str| {
        engine.configure(at(now), scope, serde_json::from_str(json).unwrap()).unwrap();
    };
    set(&mut engine, 0.0, r#"{ "rampup": { "startDelay": 3000 } }"#);
    assert_eq!(gap(&engine, 0.0).round(), 3000.0);
    for second in 0..60 {
        let now = f64::from(second) * 3001.0;
        let ticket = engine.submit(at(now), Request::new(&[scope])).unwrap();
        assert_eq!(engine.poll(at(now)), Decision::Send(ticket));
        engine.settle(at(now + 50.0), ticket, &Feedback::response(200));
    }
    let learned = gap(&engine, 181_000.0);
    assert!(learned < 2000.0, "{learned}");
    set(&mut engine, 181_000.0, r#"{ "rampup": { "startDelay": 5000 } }"#);
    assert_eq!(gap(&engine, 181_000.0), learned);
}

/// A busy caller sends later than the engine said. The next one waits for the whole delay, and only it.
#[test]
fn the_delay_counts_from_when_a_request_really_left() {
    let mut engine = engine(
        r#"{ "defaults": { "delay": 10, "slotDelay": 0, "jitter": false, "concurrency": 9 },
            "scopes": { "api": { "rate": 100 } } }"#,
    );
    let [a, b, api] = ["a", "b", "api"].map(|name| engine.scope(name));
    let at = millis;
    let [first, other, even] = [a, b, api]
        .map(|scope| engine.send_at_once(at(0.0), Request::new(&[scope])).unwrap().expect("nothing waits"));
    let waiting = engine.submit(at(0.0), Request::new(&[a])).unwrap();
    let until = |engine: &mut Engine, now: f64| match engine.poll(at(now)) {
        Decision::Wait { until, .. } => until.millis(),
        said => panic!("{said:?}"),
    };
    assert_eq!(until(&mut engine, 0.0), 10.0);
    engine.sent_at(at(4.0), first);
    assert_eq!(until(&mut engine, 4.0), 14.0);
    // Earlier than what is known, not in flight, or unknown: the engine stays as it is.
    engine.sent_at(at(3.0), first);
    engine.sent_at(at(4.0), waiting);
    engine.settle(at(4.0), other, &Feedback::response(200));
    engine.sent_at(at(5.0), other);
    assert_eq!(until(&mut engine, 12.0), 14.0);
    let next = |engine: &Engine, scope: ScopeId| engine.peek(at(12.0), Request::new(&[scope])).unwrap().at;
    assert_eq!(next(&engine, b), Some(at(12.0)));
    // A rate is a schedule: it makes up for what is late.
    let due = next(&engine, api);
    engine.sent_at(at(8.0), even);
    assert_eq!(next(&engine, api), due);
    assert_eq!(engine.poll(at(14.0)), Decision::Send(waiting));
}

/// The next process of a group is on time, the one before it was late: a server without burst refuses, and
/// rampup would take that for its limit. Two milliseconds, as late as timers are, make no news; and the news
/// may come when the engine has heard of a later time.
#[test]
fn a_found_pace_counts_from_when_a_request_really_left() {
    let mut engine = engine(r#"{ "defaults": { "rampup": true } }"#);
    let scope = engine.scope("site");
    let at = millis;
    let sent = engine.send_at_once(at(100.0), Request::new(&[scope])).unwrap().expect("nothing waits");
    let due = |engine: &Engine| engine.peek(at(100.0), Request::new(&[scope])).unwrap().at.unwrap();
    let on_time = due(&engine);
    engine.sent_at(at(101.5), sent);
    assert_eq!(due(&engine), on_time);
    engine.poll(at(500.0));
    engine.sent_at(at(140.0), sent);
    assert_eq!(due(&engine), on_time + Span::from_millis(38.0));
    engine.sent_at(at(120.0), sent);
    assert_eq!(due(&engine), on_time + Span::from_millis(38.0));
}

/// A configuration without a seed is given one: the same one draws the same, another one something else.
#[test]
fn a_seed_that_is_given_later_decides_what_is_drawn() {
    let gaps = |seed: u64| {
        let mut engine = engine(r#"{ "defaults": { "delay": 1000, "jitter": true } }"#);
        engine.seed(seed);
        let scope = engine.scope("a");
        let mut now = Instant::default();
        let mut gaps = Vec::new();
        for _ in 0..5 {
            let ticket = engine.submit(now, Request::new(&[scope])).unwrap();
            while let Decision::Wait { until, .. } = engine.poll(now) {
                gaps.push(until.since(now));
                now = until;
            }
            engine.settle(now, ticket, &Feedback::response(200));
        }
        gaps
    };
    assert_eq!(gaps(5), gaps(5));
    assert_ne!(gaps(5), gaps(6));
}

/// A request that may leave while a more urgent one must wait gives way as soon as that one may leave, too.
#[test]
fn the_more_urgent_goes_first_though_its_quota_came_back_while_nobody_could_go() {
    let mut engine = engine(
        r#"{ "maxInFlight": 1, "defaults": { "delay": 0, "slotDelay": 0, "concurrency": 5, "jitter": false,
            "quota": { "limit": 1, "window": 1000 } } }"#,
    );
    let at = millis;
    let [a, busy] = ["a", "busy"].map(|name| engine.scope(name));
    let spent = engine.send_at_once(at(0.0), Request::new(&[a])).unwrap().expect("it is the first");
    engine.settle(at(0.0), spent, &Feedback::response(200));
    engine.pause(at(1.0), a);
    let urgent = engine.submit(at(1.0), Request { priority: 5.0, ..Request::new(&[a]) }).unwrap();
    let free = engine.submit(at(1.0), request(&[a], &[0.0])).unwrap();
    assert!(!matches!(engine.poll(at(1.0)), Decision::Send(_)));
    let flying = engine.submit(at(1.0), Request::new(&[busy])).unwrap();
    assert_eq!(engine.poll(at(1.0)), Decision::Send(flying));
    engine.resume(at(2.0), a);
    for now in [2.0, 1000.0] {
        assert!(!matches!(engine.poll(at(now)), Decision::Send(_)), "one at a time");
    }
    engine.settle(at(1001.0), flying, &Feedback::response(200));
    assert_eq!(engine.poll(at(1001.0)), Decision::Send(urgent));
    engine.settle(at(1001.0), urgent, &Feedback::response(200));
    assert_eq!(engine.poll(at(1001.0)), Decision::Send(free));
}

/// A crowd: 100,000 requests for 10,000 hosts that also share one scope, in virtual time.
#[test]
fn a_hundred_thousand_requests_over_ten_thousand_hosts_that_share_one_scope() {
    const HOSTS: usize = 10_000;
    const EACH: usize = 10;
    let options = r#"{ "maxInFlight": 1000000, "defaults": { "delay": 1000, "slotDelay": 0, "jitter": false },
                       "scopes": { "shared": { "delay": 1, "concurrency": 50 } } }"#;
    let mut engine = engine(options);
    let shared = engine.scope("shared");
    let hosts: Vec<ScopeId> = (0..HOSTS).map(|host| engine.scope(&format!("h{host}.example"))).collect();
    let mut now = Instant::default();
    let mut owner = BTreeMap::new();
    for round in 0..EACH {
        for (host, &scope) in hosts.iter().enumerate() {
            let ticket = engine.submit(now, Request::new(&[scope, shared])).unwrap();
            owner.insert(ticket, (host, round));
        }
    }
    let mut flying: VecDeque<(Instant, Ticket)> = [].into();
    let mut last_of_host = vec![None; HOSTS];
    let mut next_of_host = vec![0; HOSTS];
    let mut last_send = None;
    let mut sent = 0;
    loop {
        let wake = loop {
            match engine.poll(now) {
                Decision::Send(ticket) => {
                    let (host, round) = owner[&ticket];
                    assert_eq!(next_of_host[host], round, "first come, first served within a host");
                    next_of_host[host] += 1;
                    if let Some(last) = last_of_host[host].replace(now) {
                        assert!(now.since(last).micros() >= 1_000_000, "the host's delay");
                    }
                    if let Some(last) = last_send.replace(now) {
                        assert!(now.since(last).micros() >= 1000, "the shared scope's delay");
                    }
                    assert_eq!(sent / HOSTS, round, "hosts take turns");
                    sent += 1;
                    flying.push_back((now + Span::from_millis(20.0), ticket));
                    assert!(flying.len() <= 50, "the shared scope's slots");
                }
                Decision::Wait { until, .. } => {
                    assert!(until > now);
                    break Some(until);
                }
                Decision::Idle { .. } => break None,
            }
        };
        let answer = flying.front().map(|&(at, _)| at);
        let Some(next) = wake.into_iter().chain(answer).min() else { break };
        now = next;
        if answer == Some(next) {
            let (_, ticket) = flying.pop_front().unwrap();
            engine.settle(now, ticket, &Feedback::response(200));
        }
    }
    assert_eq!(sent, HOSTS * EACH);
    assert_eq!((engine.waiting(), engine.in_flight()), (0, 0));
    assert_eq!(now.micros(), 99_999 * 1000 + 20_000, "as fast as the shared scope allows");
}

// `downAfter`: a scope from which no answer comes refuses what waits, and lets one request at a time
// through.

const FAILED: Feedback = Feedback { answer: Answer::Failed(Failure::Connection), ..Feedback::IGNORED };

fn with_a(options: &str) -> (Engine, ScopeId) {
    let mut engine = engine(options);
    let scope = engine.scope("a");
    (engine, scope)
}

fn at(seconds: u64) -> Instant {
    Instant::from_micros(seconds * 1_000_000)
}

/// Sends a request at this second, which ends like this; gives for how many seconds the scope is then said
/// to be down.
fn play(engine: &mut Engine, scope: ScopeId, second: u64, feedback: &Feedback) -> Option<u64> {
    let ticket = engine.submit(at(second), Request::new(&[scope])).unwrap();
    assert_eq!(engine.poll(at(second)), Decision::Send(ticket));
    engine.settle(at(second), ticket, feedback);
    engine.take_notices().into_iter().find_map(|notice| match notice {
        Notice::Down(stall) => Some((stall.for_ms / 1000.0) as u64),
        _ => None,
    })
}

const FREE: &str = r#"{ "downAfter": 60000, "delay": 0, "jitter": false, "backoff": false }"#;

#[test]
fn a_scope_is_down_after_a_run_of_failures_and_says_so_once() {
    let (mut engine, scope) = with_a(FREE);
    assert_eq!(play(&mut engine, scope, 0, &FAILED), None);
    assert_eq!(play(&mut engine, scope, 61, &FAILED), None, "two are no run");
    assert_eq!(play(&mut engine, scope, 62, &FAILED), Some(62));
    assert_eq!(play(&mut engine, scope, 63, &FAILED), None);
}

#[test]
fn any_answer_ends_it_and_nothing_learned_does_not() {
    let (mut engine, scope) = with_a(FREE);
    for (second, feedback) in [(0, FAILED), (30, FAILED), (50, Feedback::IGNORED)] {
        assert_eq!(play(&mut engine, scope, second, &feedback), None);
    }
    assert_eq!(play(&mut engine, scope, 61, &FAILED), Some(61));
    assert_eq!(play(&mut engine, scope, 62, &Feedback::response(503)), None);
    let all: Vec<_> = (0..5).map(|_| engine.submit(at(63), Request::new(&[scope]))).collect();
    assert!(all.iter().all(Result::is_ok), "{all:?}");
}

#[test]
fn while_it_is_down_one_request_at_a_time_is_let_through() {
    let (mut engine, scope) = with_a(r#"{ "downAfter": 60000, "delay": 10000, "jitter": false }"#);
    let scopes = [scope];
    let request = Request::new(&scopes);
    let mut now = at(0);
    let mut is_down = false;
    while !is_down {
        let ticket = engine.submit(now, request).unwrap();
        while let Decision::Wait { until, .. } = engine.poll(now) {
            now = until;
        }
        engine.settle(now, ticket, &FAILED);
        is_down = engine.take_notices().iter().any(|notice| matches!(notice, Notice::Down(_)));
    }
    assert!(now < at(120), "{now:?}");
    let is_refused = |answer| matches!(answer, Err(SubmitError::ScopeDown { scope: of, .. }) if of == scope);
    assert!(is_refused(engine.submit(now, request).map(drop)), "it could not leave at once");
    assert!(is_refused(engine.send_at_once(now, request).map(drop)) || engine.waiting() == 0);
    let later = now + autothrottle::Span::from_millis(299_000.0);
    let probe = engine.send_at_once(later, request).unwrap().expect("the pace lets it go");
    assert!(is_refused(engine.send_at_once(later, request).map(drop)), "one is on its way");
    engine.settle(later, probe, &FAILED);
    assert!(is_refused(engine.submit(later, request).map(drop)));
    let is_down = |notice: &Notice| matches!(notice, Notice::Down(_));
    assert!(!engine.take_notices().iter().any(is_down), "it is told once");
}

#[test]
fn without_the_setting_nothing_is_refused() {
    let (mut engine, scope) =
        with_a(r#"{ "downAfter": false, "delay": 0, "jitter": false, "backoff": false }"#);
    for second in 0..1000 {
        assert_eq!(play(&mut engine, scope, second, &FAILED), None);
    }
}
