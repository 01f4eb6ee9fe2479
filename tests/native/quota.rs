//! Quotas whose settings change while they are used: what was spent stays spent, and no more than that.

use autothrottle::{
    Config, Decision, Engine, Feedback, Hint, Hints, Request, ScopeId, Snapshot, headers::Context,
};

use crate::helpers::{engine, json, millis};

/// An engine with this quota, of which requests were sent at these milliseconds.
fn make(quota: &str, sent: &[f64]) -> (Engine, ScopeId) {
    let options = format!(
        r#"{{ "defaults": {{ "delay": 0, "slotDelay": 0, "jitter": false, "concurrency": 50, "quota": {quota} }} }}"#
    );
    let mut engine = engine(&options);
    let scope = engine.scope("a");
    for &at in sent {
        send(&mut engine, scope, at);
    }
    (engine, scope)
}

fn send(engine: &mut Engine, scope: ScopeId, at: f64) {
    engine.send_at_once(millis(at), Request::new(&[scope])).unwrap().expect("the quota has room");
}

fn change(engine: &mut Engine, scope: ScopeId, at: f64, quota: &str) {
    let partial = format!(r#"{{ "quota": {quota} }}"#);
    engine.configure(millis(at), scope, json(&partial)).unwrap();
}

fn left(engine: &Engine, scope: ScopeId, at: f64) -> f64 {
    engine.scope_stats(millis(at), scope).unwrap().quota_left.unwrap()
}

const ROLLING: &str = r#"{ "limit": 10, "window": 10000, "strict": true }"#;
const FIXED: &str = r#"{ "limit": 10, "window": 10000 }"#;

/// A rolling window that becomes a fixed one begins with the oldest send that still counts: one that is as
/// old as the window does not.
#[test]
fn a_rolling_quota_becomes_a_fixed_one_without_what_is_too_old() {
    let (mut engine, scope) = make(ROLLING, &[0.0, 3000.0, 8000.0]);
    change(&mut engine, scope, 8000.0, r#"{ "limit": 10, "window": 5000 }"#);
    // 3000 is exactly five seconds old; 0 is older.
    assert_eq!(left(&engine, scope, 8000.0), 9.0);
    assert_eq!(left(&engine, scope, 12_999.0), 9.0);
    assert_eq!(left(&engine, scope, 13_000.0), 10.0, "its window began with the send at 8000");
}

/// A send that is as old as the old window is spent no longer, though a longer one takes its place.
#[test]
fn a_longer_window_does_not_bring_back_what_is_over() {
    let (mut engine, scope) = make(ROLLING, &[0.0, 5000.0]);
    change(&mut engine, scope, 10_000.0, r#"{ "limit": 10, "window": 20000, "strict": true }"#);
    assert_eq!([10_000.0, 24_999.0, 25_000.0].map(|at| left(&engine, scope, at)), [9.0, 9.0, 10.0]);
}

/// Beyond some thousands of sends a rolling window counts those together that are near each other, and only
/// those: what left long ago is free again.
#[test]
fn thousands_in_a_rolling_window_come_back_as_they_went() {
    let (mut engine, scope) = make(r#"{ "limit": 5000, "window": 10000, "strict": true }"#, &[]);
    let first = (0..4096).map(|index| f64::from(index) * 0.1);
    let then = (0..100).map(|index| 2000.0 + 10.0 * f64::from(index));
    for at in first.chain(then).map(millis) {
        let ticket = engine.send_at_once(at, Request::new(&[scope])).unwrap().expect("the quota has room");
        engine.settle(at, ticket, &Feedback::response(200));
    }
    assert_eq!([2990.0, 10_100.0].map(|at| left(&engine, scope, at)), [804.0, 1805.0], "one by one");
    assert_eq!(left(&engine, scope, 11_999.0), 4900.0);
    assert_eq!([12_495.0, 13_000.0].map(|at| left(&engine, scope, at)), [4950.0, 5000.0]);
}

/// A fixed window that is over no longer counts, whatever takes its place.
#[test]
fn a_window_that_is_over_is_not_brought_back() {
    for quota in
        [r#"{ "limit": 10, "window": 60000, "strict": true }"#, r#"{ "limit": 10, "window": 60000 }"#]
    {
        let (mut engine, scope) = make(FIXED, &[0.0]);
        change(&mut engine, scope, 12_000.0, quota);
        assert_eq!(left(&engine, scope, 12_000.0), 10.0, "{quota}");
    }
}

/// A fixed window does not know when it was spent: the last send is when, for a rolling window and where the
/// new window is over already; else it stays where it began.
#[test]
fn a_fixed_quota_keeps_what_was_spent() {
    let (mut engine, scope) = make(FIXED, &[0.0, 4000.0]);
    change(&mut engine, scope, 5000.0, ROLLING);
    assert_eq!(left(&engine, scope, 13_999.0), 8.0);
    assert_eq!(left(&engine, scope, 14_000.0), 10.0, "ten seconds after the last send");

    let (mut engine, scope) = make(FIXED, &[0.0, 4000.0]);
    change(&mut engine, scope, 5000.0, r#"{ "limit": 10, "window": 5000 }"#);
    assert_eq!(left(&engine, scope, 8999.0), 8.0, "the window of five seconds from 0 is over");
    assert_eq!(left(&engine, scope, 9000.0), 10.0, "five seconds after the last send");

    let (mut engine, scope) = make(FIXED, &[0.0, 4000.0]);
    change(&mut engine, scope, 5000.0, r#"{ "limit": 10, "window": 6000 }"#);
    assert_eq!((left(&engine, scope, 5999.0), left(&engine, scope, 6000.0)), (8.0, 10.0), "where it began");
}

/// Only the limit changes: no window moves.
#[test]
fn another_limit_leaves_the_window_where_it_is() {
    for (strict, free) in [(false, [8.0, 10.0]), (true, [8.0, 9.0])] {
        let quota = |limit: u32| format!(r#"{{ "limit": {limit}, "window": 10000, "strict": {strict} }}"#);
        let (mut engine, scope) = make(&quota(5), &[0.0, 4000.0]);
        change(&mut engine, scope, 5000.0, &quota(10));
        assert_eq!([9999.0, 10_000.0].map(|at| left(&engine, scope, at)), free, "strict: {strict}");
    }
}

/// At one microsecond before a fixed window ends it is full; at its end it is empty, however often it turned
/// over meanwhile.
#[test]
fn a_fixed_window_turns_over_by_division() {
    let (mut engine, scope) = make(FIXED, &[1000.0]);
    for (at, expected) in [(10_999.999, 9.0), (11_000.0, 10.0), (57_000.0, 10.0)] {
        assert_eq!(left(&engine, scope, at), expected, "{at}");
    }
    // The window that is open at 57,000 began at 51,000.
    send(&mut engine, scope, 57_000.0);
    assert_eq!([60_999.0, 61_000.0].map(|at| left(&engine, scope, at)), [9.0, 10.0]);
}

/// The server's report of its quota survives a restart: what is left of it, for how long, and the pace.
#[test]
fn a_rest_that_a_server_told_is_remembered() {
    let options = r#"{ "defaults": { "delay": 0, "slotDelay": 0, "jitter": false, "concurrency": 50,
        "followRateLimit": true } }"#;
    let config = || Config::parse(json(options)).unwrap();
    let mut first = Engine::new(config());
    let scope = first.scope("a");
    let ticket = first.send_at_once(millis(0.0), Request::new(&[scope])).unwrap().expect("nothing waits");
    let fields = [("ratelimit-policy", r#""p";q=10;w=40"#), ("ratelimit", r#""p";r=2;t=30"#)];
    let hints = Hints::read(fields, Context { status: 200, wall_ms: Some(0), ..Context::default() });
    let feedback = Feedback { hint: Hint::of(&hints), ..Feedback::response(200) };
    first.settle(millis(10.0), ticket, &feedback);
    assert_eq!(left(&first, scope, 10.0), 2.0);
    let text =
        serde_json::to_string(&autothrottle::Value::from(first.snapshot(millis(10.0), Some(1e12)))).unwrap();
    let snapshot = Snapshot::parse(serde_json::from_str(&text).unwrap()).unwrap();
    let mut next = Engine::restore(config(), &snapshot, millis(500.0), Some(1e12 + 5000.0));
    let scope = next.scope("a");
    let stats = |engine: &Engine, at: f64| engine.scope_stats(millis(at), scope).unwrap();
    assert_eq!(stats(&next, 500.0).quota_left, Some(2.0));
    assert_eq!(stats(&next, 500.0).delay_ms, stats(&first, 10.0).delay_ms);
    assert!(stats(&next, 500.0).delay_ms >= 4000.0, "forty seconds for ten");
    // Thirty seconds from 10, of which five were over.
    assert_eq!(stats(&next, 25_499.0).quota_left, Some(2.0));
    assert_eq!(stats(&next, 25_500.0).quota_left, None);
}

/// A request that needs much and came first does not wait for those that need little, in another queue, too.
#[test]
fn the_cheap_of_another_queue_do_not_overtake_the_expensive() {
    let (mut engine, shared) = make(r#"{ "limit": 5, "window": 10000, "strict": true }"#, &[0.0, 0.0, 0.0]);
    let own = engine.scope("own");
    let submit = |engine: &mut Engine, scopes: &[ScopeId], costs: &[f64], at| {
        engine.submit(millis(at), Request { costs, ..Request::new(scopes) }).unwrap()
    };
    let dear = submit(&mut engine, &[shared], &[4.0], 1.0);
    assert!(!matches!(engine.poll(millis(1.0)), Decision::Send(_)));
    let cheap = submit(&mut engine, &[own, shared], &[1.0, 1.0], 2.0);
    let free = submit(&mut engine, &[own, shared], &[1.0, 0.0], 2.0);
    assert_eq!(engine.poll(millis(2.0)), Decision::Send(free), "who consumes nothing takes nothing away");
    assert!(!matches!(engine.poll(millis(9_999.0)), Decision::Send(_)));
    assert_eq!(engine.poll(millis(10_000.0)), Decision::Send(dear));
    assert_eq!(engine.poll(millis(10_000.0)), Decision::Send(cheap));
}

/// Only a server that counts in milliseconds says when its quota is whole again to the point.
#[test]
fn a_quota_is_told_by_its_own_fields() {
    let is_quota = |lines: &str| {
        let context = Context { status: 429, wall_ms: Some(1_700_000_000_000), ..Context::default() };
        Hint::of(&Hints::from_lines(lines, context)).is_quota
    };
    assert!(!is_quota("retry-after: 7"));
    assert!(!is_quota("retry-after: 1.5"));
    assert!(!is_quota("x-ratelimit-remaining: 0\nx-ratelimit-reset: 7"));
    assert!(is_quota("x-ratelimit-remaining: 0\nx-ratelimit-reset: 1.5"));
}

/// A fraction of the smallest unit is rounded up: never earlier than the server said.
#[test]
fn fractions_are_rounded_up() {
    let context = Context { status: 429, wall_ms: Some(1_700_000_000_000), ..Context::default() };
    let asked = |lines: &str| Hints::from_lines(lines, context).delay_ms;
    assert_eq!(asked("retry-after-ms: 250.5"), Some(251));
    assert_eq!(asked("retry-after-ms: 250"), Some(250));
    assert_eq!(asked("retry-after: 1.25"), Some(1250));
    assert_eq!(asked("retry-after: 1700000002.5"), Some(2500));
}

/// Fields have room for a bounded number of bytes together; what goes beyond is not read.
#[test]
fn fields_beyond_their_room_are_not_read() {
    let context = Context { status: 429, ..Context::default() };
    let asked = |zeros: usize| {
        let value = format!("{}7", "0".repeat(zeros));
        Hints::read([("x-ratelimit-remaining", &value[..]), ("retry-after", "9")], context).delay_ms
    };
    assert_eq!(asked(10), Some(9000));
    assert_eq!([16_350, 16_351].map(asked), [Some(9000), None], "the room is 16 kB");
    assert_eq!(asked(20_000), Some(9000), "what was not read takes no room");
    let names: Vec<String> = (0..300).map(|index| format!("x-ratelimit-limit-{index}")).collect();
    let after = |count: usize| {
        let fields = names.iter().take(count).map(|name| (&name[..], "9")).chain([("retry-after", "9")]);
        Hints::read(fields, context).delay_ms
    };
    assert_eq!([255, 256].map(after), [Some(9000), None], "the 256th field is the last one");
    let long = format!("{}9", "0".repeat(2000));
    assert_eq!(Hints::read([("retry-after", &long[..])], context).delay_ms, Some(9000));
}

/// The rest of one quota is known, and that of the other only when it is whole again: the first one governs.
#[test]
fn the_quota_that_is_known_stands_before_one_that_is_not() {
    let context = Context { status: 200, ..Context::default() };
    let hints = Hints::read([("ratelimit", r#""a";t=5, "b";r=3;t=60"#)], context);
    let names: Vec<_> = hints.quotas.iter().map(|quota| quota.policy.as_deref()).collect();
    assert_eq!(names, [Some("b"), Some("a")]);
}

/// Two quotas of one scope have windows of their own, also after a restart.
#[test]
fn each_quota_of_a_scope_remembers_what_was_spent_of_it() {
    let options = r#"{ "defaults": { "delay": 0, "slotDelay": 0, "jitter": false,
        "quota": [{ "limit": 9, "window": 1000 }, { "limit": 9, "window": 60000 }] } }"#;
    let config = || Config::parse(json(options)).unwrap();
    let mut first = Engine::new(config());
    let scope = first.scope("a");
    for at in [0.0, 5000.0, 10_000.0].map(millis) {
        let ticket = first.send_at_once(at, Request::new(&[scope])).unwrap().expect("nothing waits");
        first.settle(at, ticket, &Feedback::response(200));
    }
    let snapshot = first.snapshot(millis(10_500.0), Some(1e12));
    let mut next = Engine::restore(config(), &snapshot, millis(0.0), Some(1e12));
    let scope = next.scope("a");
    assert_eq!(
        [first.scope_stats(millis(10_500.0), scope), next.scope_stats(millis(0.0), scope)]
            .map(|stats| { stats.unwrap().quota_left }),
        [Some(6.0); 2]
    );
}

/// A date may be wide, but not without end.
#[test]
fn a_date_has_eighty_letters_at_most() {
    let context = Context { status: 503, wall_ms: Some(1_795_203_840_000), ..Context::default() };
    let asked = |blanks: usize| {
        let text = format!("Fri, 20 Nov 2026 19:45:00{}GMT", " ".repeat(blanks));
        Hints::read([("retry-after", &text[..])], context).delay_ms
    };
    assert_eq!([1, 52, 53].map(asked), [Some(60_000), Some(60_000), None]);
}

/// A request that left late counts from then: else a busy caller fits one more window into the same span. The
/// window tells apart those that were given leave at once, and a cost that turns out to be another counts
/// once.
#[test]
fn a_rolling_window_counts_what_left_late_from_when_it_left() {
    for several in [1, 3] {
        let (mut engine, scope) = make(ROLLING, &[]);
        let sent: Vec<_> = (0..several)
            .map(|_| engine.send_at_once(millis(0.0), Request::new(&[scope])).unwrap().unwrap())
            .collect();
        for (place, &ticket) in sent.iter().enumerate() {
            engine.sent_at(millis(4000.0 + place as f64), ticket);
        }
        let all = f64::from(several);
        assert_eq!(left(&engine, scope, 4010.0), 10.0 - all, "counted once");
        assert_eq!(left(&engine, scope, 13_999.0), 10.0 - all);
        assert_eq!(left(&engine, scope, 14_000.0), 10.0 - all + 1.0);
        // Earlier than what is known: no change.
        engine.sent_at(millis(3000.0), sent[0]);
        assert_eq!(left(&engine, scope, 13_999.0), 10.0 - all);
        let cost = Feedback { cost: autothrottle::Cost::from_units(4.0), ..Feedback::response(200) };
        engine.settle(millis(13_000.0), sent[0], &cost);
        assert_eq!(left(&engine, scope, 13_999.0), 10.0 - all - 3.0);
        assert_eq!(left(&engine, scope, 14_100.0), 10.0);
    }
}

/// Of a request that was given leave longer ago than the window, a leader may hear only then that it left a
/// little later: that frees no place of another one.
#[test]
fn a_request_that_left_late_and_is_over_takes_no_other_out_of_the_window() {
    let (mut engine, scope) = make(ROLLING, &[]);
    let first = engine.send_at_once(millis(0.0), Request::new(&[scope])).unwrap().unwrap();
    send(&mut engine, scope, 12_000.0);
    engine.sent_at(millis(1000.0), first);
    assert_eq!(left(&engine, scope, 12_000.0), 9.0);
    // A request that left within the window counts in it.
    engine.sent_at(millis(5000.0), first);
    assert_eq!([12_000.0, 14_999.0, 15_000.0].map(|at| left(&engine, scope, at)), [8.0, 8.0, 9.0]);
}

/// A fixed window keeps what was given leave in it.
#[test]
fn a_fixed_window_counts_what_left_late_from_its_leave() {
    let (mut engine, scope) = make(FIXED, &[]);
    let ticket = engine.send_at_once(millis(0.0), Request::new(&[scope])).unwrap().unwrap();
    engine.sent_at(millis(4000.0), ticket);
    assert_eq!([9999.0, 10_000.0].map(|at| left(&engine, scope, at)), [9.0, 10.0]);
}

/// Five in each two seconds, told in whole seconds and without the length of a window: fifteen requests,
/// evenly spread, take 5.6 seconds. The reset as it stands, divided by the rest, made that nearly nine.
#[test]
fn a_short_reset_in_whole_seconds_is_followed_in_time() {
    for offset in [0.0, 300.0, 700.0, 1100.0, 1500.0, 1900.0] {
        let options = r#"{ "defaults": { "delay": 0, "slotDelay": 0, "jitter": false, "concurrency": 4,
            "followRateLimit": true } }"#;
        let mut engine = engine(options);
        let scope = engine.scope("a");
        for _ in 0..15 {
            engine.submit(millis(0.0), Request::new(&[scope])).unwrap();
        }
        let (mut window, mut used, mut last, mut flying) = (0.0, 0, 0.0, Vec::new());
        for at in (0..20_000).step_by(5).map(f64::from) {
            let now = at + offset;
            if (now / 2000.0).floor() != window {
                (window, used) = ((now / 2000.0).floor(), 0);
            }
            while let Some(&(left, ticket)) = flying.first().filter(|(left, _)| left + 20.0 <= at) {
                let reset = (2.0 * (window + 1.0) - now / 1000.0).ceil();
                let fields = [
                    ("x-ratelimit-limit", "5".to_owned()),
                    ("x-ratelimit-remaining", (5 - used).to_string()),
                    ("x-ratelimit-reset", reset.to_string()),
                ];
                let fields = fields.iter().map(|(name, value)| (*name, value.as_str()));
                let hints = Hints::read(fields, Context { status: 200, ..Context::default() });
                let feedback = Feedback { hint: Hint::of(&hints), ..Feedback::response(200) };
                engine.settle(millis(left + 20.0), ticket, &feedback);
                flying.remove(0);
            }
            while let Decision::Send(ticket) = engine.poll(millis(at)) {
                used += 1;
                assert!(used <= 5, "at {at}, {offset}: none is refused");
                last = at;
                flying.push((at, ticket));
            }
        }
        assert!(engine.stats(millis(20_000.0)).waiting == 0, "{offset}: all were sent");
        assert!(last <= 7000.0, "offset {offset}: {last} ms in place of 5600");
    }
}
