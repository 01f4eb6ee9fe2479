//! Running for weeks: scopes come and go, and memory has a bound.

use allocation_counter::measure;
use autothrottle::{Decision, Engine, Feedback, Instant, Request, ScopeId, Span, Ticket};

use crate::helpers::{engine, json, millis};

/// Sends one request of `name` and settles it `latency` ms later.
fn visit(engine: &mut Engine, now: Instant, name: &str, latency: f64) -> ScopeId {
    let scope = engine.intern(name);
    let ticket = engine.submit(now, Request::new(&[scope])).unwrap();
    assert_eq!(engine.poll(now), Decision::Send(ticket));
    let feedback = Feedback { latency_ms: Some(latency), ..Feedback::response(200) };
    engine.settle(now + Span::from_millis(latency), ticket, &feedback);
    engine.poll(now + Span::from_millis(latency));
    scope
}

#[test]
fn a_million_hosts_seen_once_are_forgotten_when_they_look_like_new() {
    let mut engine = engine(r#"{ "defaults": { "delay": 1000 } }"#);
    let mut now = Instant::default();
    let mut most = 0;
    for host in 0..1_000_000 {
        visit(&mut engine, now, &format!("h{host}.example"), 1.0);
        now = now + Span::from_millis(2.0);
        most = most.max(engine.scopes());
    }
    assert!(most <= 1000, "{most} scopes: as many as the last 1.5 s brought, and a few");
}

#[test]
fn learned_state_stays_up_to_the_bound_least_recently_used_first() {
    let options = r#"{ "maxScopes": 100,
        "defaults": { "delay": 10, "slotDelay": 0, "jitter": false, "autothrottle": true } }"#;
    let mut engine = engine(options);
    let mut now = Instant::default();
    for host in 0..500 {
        visit(&mut engine, now, &format!("h{host}"), 50.0);
        now = now + Span::from_millis(10_000.0);
        visit(&mut engine, now, "favourite", 50.0);
        now = now + Span::from_millis(10_000.0);
        assert!(engine.scopes() <= 101);
    }
    let learned = engine.intern("favourite");
    assert!((engine.scope_stats(now, learned).unwrap().delay_ms - 50.0).abs() < 1.0, "used often, kept");
    let recent = engine.intern("h499");
    assert!(engine.scope_stats(now, recent).unwrap().delay_ms < 3000.0, "used lately, kept");
    let old = engine.intern("h1");
    assert!(engine.scope_stats(now, old).unwrap().delay_ms >= 5000.0, "forgotten");
}

#[test]
fn a_scope_that_is_owed_something_is_never_forgotten() {
    let options = r#"{ "maxScopes": 4, "defaults": { "delay": 0, "slotDelay": 0 },
        "scopes": { "quota": { "quota": 9 } } }"#;
    let mut engine = engine(options);
    let now = Instant::default();
    let kept = engine.scope("kept");
    let held = engine.intern("held");
    engine.hold(now, held, Span::from_millis(50_000.0));
    let paused = engine.intern("paused");
    engine.pause(now, paused);
    let configured = engine.intern("configured");
    engine.configure(now, configured, json(r#"{ "delay": 7 }"#)).unwrap();
    let quota = visit(&mut engine, now, "quota", 1.0);
    let busy = engine.intern("busy");
    let flying = engine.submit(now, Request::new(&[busy])).unwrap();
    assert_eq!(engine.poll(now), Decision::Send(flying));
    for host in 0..1000 {
        visit(&mut engine, now, &format!("h{host}"), 1.0);
    }
    for scope in [kept, held, paused, configured, quota, busy] {
        assert!(engine.knows(scope), "{scope:?}");
    }
    assert!(engine.scopes() <= 12, "{}", engine.scopes());
    engine.release(kept);
    for host in 0..100 {
        visit(&mut engine, now, &format!("g{host}"), 1.0);
    }
    assert!(!engine.knows(kept), "released, and looks like new");
    assert!(engine.submit(now, Request::new(&[kept])).is_err());
}

#[test]
fn scopes_of_a_request_that_is_being_put_together_stay() {
    let mut engine = engine(r#"{ "maxScopes": 1 }"#);
    let now = Instant::default();
    for round in 0..50 {
        let scopes: Vec<ScopeId> = (0..5).map(|scope| engine.intern(&format!("s{scope}-{round}"))).collect();
        let ticket = engine.submit(now, Request::new(&scopes)).unwrap();
        engine.cancel(now, ticket);
        engine.poll(now);
    }
    assert!(engine.scopes() <= 12, "{}", engine.scopes());
}

#[test]
fn a_scope_that_a_host_configures_by_itself_is_forgotten_beyond_the_bound_unless_it_holds() {
    let mut engine = engine(r#"{ "maxScopes": 100, "defaults": { "slotDelay": 0 } }"#);
    let now = Instant::default();
    let mut make = |name: &str, is_spent: bool| {
        let scope = engine.intern(name);
        let own = json("{ \"delay\": 0, \"quota\": 1, \"\u{a0}passing\": true }");
        engine.configure(now, scope, own).unwrap();
        if is_spent {
            engine.submit(now, Request::new(&[scope])).unwrap();
        }
        if let Decision::Send(ticket) = engine.poll(now) {
            engine.settle(now, ticket, &Feedback::response(200));
        }
        (scope, engine.scopes())
    };
    let (spent, _) = make("spent", true);
    let (first, _) = make("first", false);
    for model in 0..90 {
        make(&format!("m{model}"), false);
    }
    assert_eq!(make("below the bound", false).1, 93, "none goes because it looks like new");
    for model in 0..1000 {
        assert!(make(&format!("n{model}"), false).1 <= 101);
    }
    assert!(engine.knows(spent), "its quota is used up");
    assert!(!engine.knows(first));
}

/// A delay, a slot that rests and a rate are owed as well, with and without other scopes that want room.
#[test]
fn a_scope_whose_gap_is_not_over_is_never_forgotten() {
    for gap in [
        r#""delay": 1000, "slotDelay": 0"#,
        r#""delay": 0, "slotDelay": 1000"#,
        r#""rate": 1"#,
        r#""delay": 0, "slotDelay": 0, "backoff": { "minDelay": 1000, "jitter": 0 }"#,
    ] {
        for most in [2, 100_000] {
            let options = format!(r#"{{ "maxScopes": {most}, "defaults": {{ "jitter": false, {gap} }} }}"#);
            let mut engine = engine(&options);
            let at = millis;
            let a = engine.intern("a");
            let ticket = engine.send_at_once(at(0.0), Request::new(&[a])).unwrap().expect("no request waits");
            let status = if gap.contains("backoff") { 429 } else { 200 };
            engine.settle(at(0.0), ticket, &Feedback::response(status));
            for host in 0..200 {
                visit(&mut engine, at(1.0 + f64::from(host)), &format!("h{host}"), 0.5);
            }
            let a = engine.intern("a");
            let peek = engine.peek(at(300.0), Request::new(&[a])).unwrap();
            assert!(peek.at.is_some_and(|free| free >= at(1000.0)), "{gap}, {most}: {peek:?}");
        }
    }
}

/// Room is made for one, not for many.
#[test]
fn no_more_are_forgotten_than_there_has_to_be_room_for() {
    let mut engine = engine(r#"{ "maxScopes": 10, "defaults": { "slotDelay": 0, "autothrottle": true } }"#);
    for host in 0..30 {
        let now = Instant::default() + Span::from_millis(60_000.0 * host as f64);
        visit(&mut engine, now, &format!("h{host}"), 50.0);
        assert_eq!(engine.scopes(), (host + 1).min(10), "host {host}");
    }
}

/// A scope that learned no more than a new one knows is not kept, also where a policy might have learned
/// something.
#[test]
fn scopes_that_taught_nothing_are_forgotten() {
    let mut engine = engine(r#"{ "defaults": { "autothrottle": { "startDelay": 10 }, "slotDelay": 0 } }"#);
    let mut now = Instant::default();
    for host in 0..2000 {
        let scope = engine.intern(&format!("h{host}"));
        let ticket = engine.submit(now, Request::new(&[scope])).unwrap();
        assert_eq!(engine.poll(now), Decision::Send(ticket));
        engine.cancel(now, ticket);
        now = now + Span::from_millis(100.0);
    }
    assert!(engine.scopes() < 100, "{}", engine.scopes());
}

/// A host with a handle asks before it uses it; then the scope stays until the next poll.
#[test]
fn a_handle_is_kept_alive_until_the_next_poll() {
    let mut engine = engine(r#"{ "maxScopes": 1, "defaults": { "delay": 0, "slotDelay": 0 } }"#);
    let now = Instant::default();
    let first = visit(&mut engine, now, "first", 1.0);
    assert!(engine.keep_alive(first));
    for other in 0..20 {
        engine.intern(&format!("o{other}"));
    }
    assert!(engine.knows(first) && engine.keep_alive(first));
    engine.poll(now);
    for other in 0..40 {
        visit(&mut engine, now, &format!("p{other}"), 1.0);
    }
    assert!(!engine.knows(first) && !engine.keep_alive(first));
}

/// A request that waits only for others to end keeps its scope, though another of its requests was cancelled.
#[test]
fn a_scope_in_which_somebody_waits_is_never_forgotten() {
    let mut engine =
        engine(r#"{ "maxScopes": 2, "maxInFlight": 1, "defaults": { "delay": 0, "slotDelay": 0 } }"#);
    let now = Instant::default();
    let busy = engine.scope("busy");
    let flying = engine.send_at_once(now, Request::new(&[busy])).unwrap().expect("it is the first");
    let waits = engine.intern("waits");
    let [gone, stays] = [(); 2].map(|()| engine.submit(now, Request::new(&[waits])).unwrap());
    engine.cancel(now, gone);
    for other in 0..200 {
        let other = engine.intern(&format!("o{other}"));
        let ticket = engine.submit(now, Request::new(&[other])).unwrap();
        engine.cancel(now, ticket);
        assert!(matches!(engine.poll(now), Decision::Idle { .. }));
    }
    assert!(engine.knows(waits));
    engine.settle(now, flying, &Feedback::response(200));
    assert_eq!(engine.poll(now), Decision::Send(stays));
}

/// A burst is owed for longer than a gap.
#[test]
fn a_scope_whose_burst_is_not_over_is_never_forgotten() {
    let mut engine = engine(
        r#"{ "maxScopes": 2, "defaults": { "jitter": false, "concurrency": 9,
            "rate": { "limit": 1, "window": 1000, "burst": 5 } } }"#,
    );
    let at = millis;
    let a = engine.intern("a");
    for _ in 0..5 {
        let ticket = engine.send_at_once(at(0.0), Request::new(&[a])).unwrap().expect("a burst of five");
        engine.settle(at(0.0), ticket, &Feedback::response(200));
    }
    for host in 0..100 {
        visit(&mut engine, at(1500.0 + f64::from(host)), &format!("h{host}"), 0.5);
    }
    let a = engine.intern("a");
    let mut burst = 0;
    while let Some(ticket) = engine.send_at_once(at(1700.0), Request::new(&[a])).unwrap() {
        engine.settle(at(1700.0), ticket, &Feedback::response(200));
        burst += 1;
    }
    assert_eq!(burst, 1, "a second and a half has passed");
}

// The memory of requests and scopes, measured by an allocator that counts.
//
// Times differ from machine to machine; allocations and bytes do not. The bounds are what was measured, and
// a little more: who raises one says why.

fn free() -> Engine {
    let options = r#"{ "defaults": { "delay": 0, "slotDelay": 0, "jitter": false } }"#;
    engine(options)
}

fn submit_and_poll(engine: &mut Engine, now: Instant, scopes: &[ScopeId]) -> Ticket {
    let ticket = engine.submit(now, Request::new(scopes)).unwrap();
    assert_eq!(engine.poll(now), Decision::Send(ticket));
    assert!(matches!(engine.poll(now), Decision::Idle { .. }));
    ticket
}

fn send_at_once(engine: &mut Engine, now: Instant, scopes: &[ScopeId]) -> Ticket {
    engine.send_at_once(now, Request::new(scopes)).unwrap().expect("no request waits")
}

/// Allocations of one request from submit to settle, in an engine that has sent some before.
fn allocations(scopes: &[&str], send: impl Fn(&mut Engine, Instant, &[ScopeId]) -> Ticket) -> u64 {
    let mut engine = free();
    let scopes: Vec<ScopeId> = scopes.iter().map(|name| engine.scope(name)).collect();
    let mut cycle = |millisecond: u64| {
        let now = Instant::from_micros(millisecond * 1000);
        let ticket = send(&mut engine, now, &scopes);
        engine.settle(now, ticket, &Feedback { latency_ms: Some(1.0), ..Feedback::response(200) });
    };
    (0..10).for_each(&mut cycle);
    measure(|| (10..20).for_each(&mut cycle)).count_total / 10
}

#[test]
fn a_request_of_one_scope_allocates_nothing() {
    assert_eq!(allocations(&["a"], send_at_once), 0);
    assert_eq!(allocations(&["a"], submit_and_poll), 0);
}

#[test]
fn a_request_of_several_scopes_allocates_a_few_times() {
    for send in [send_at_once, submit_and_poll] {
        let count = allocations(&["a", "b", "c"], send);
        assert!(count <= 4, "{count}: the pairs, the scopes, the key and its place");
    }
}

#[test]
fn waiting_requests_and_idle_scopes_cost_so_many_bytes() {
    const MANY: i64 = 20_000;
    let bytes = |hosts: usize| {
        let mut engine = free();
        let names: Vec<String> = (0..hosts).map(|host| format!("host-{host:06}.example")).collect();
        let mut scopes = Vec::with_capacity(hosts);
        let idle = measure(|| scopes.extend(names.iter().map(|name| engine.scope(name)))).bytes_current;
        let wait =
            |index: i64| engine.submit(Instant::default(), Request::new(&[scopes[index as usize % hosts]]));
        let waiting = measure(|| assert!((0..MANY).map(wait).all(|ticket| ticket.is_ok()))).bytes_current;
        (idle / hosts as i64, waiting / MANY)
    };
    let (idle, alone) = bytes(MANY as usize);
    let (_, together) = bytes(1);
    println!("{idle} bytes an idle scope, {alone} a request that waits alone, {together} behind others");
    assert!(idle <= 304 && alone <= 600 && together <= 48, "{idle}, {alone}, {together}");
}

/// Requests that left or were cancelled leave no memory behind, however they differ in cost and priority.
#[test]
fn the_memory_of_waiting_requests_is_given_back() {
    let mut engine = free();
    let scope = engine.scope("a");
    let scopes = [scope];
    let round = |engine: &mut Engine| {
        engine.pause(Instant::default(), scope);
        let tickets: Vec<Ticket> = (0..500)
            .map(|index| {
                let (costs, priority) = ([1.0 + f64::from(index % 50)], f64::from(index % 7));
                let request = Request { costs: &costs, priority, ..Request::new(&scopes) };
                engine.submit(Instant::default(), request).unwrap()
            })
            .collect();
        for ticket in tickets {
            engine.cancel(Instant::default(), ticket);
        }
        engine.resume(Instant::default(), scope);
        assert!(matches!(engine.poll(Instant::default()), Decision::Idle { .. }));
    };
    round(&mut engine);
    let more = measure(|| (0..20).for_each(|_| round(&mut engine))).bytes_current;
    assert!(more < 1000, "{more} bytes more after 10,000 requests");
}

/// A rolling window remembers a bounded number of sends; what comes closer together than that counts as one.
#[test]
fn a_rolling_quota_has_a_bound_in_memory() {
    let options = r#"{ "defaults": { "delay": 0, "slotDelay": 0, "jitter": false,
        "quota": { "limit": 1000000, "window": 60000, "strict": true } } }"#;
    let mut engine = engine(options);
    let scope = engine.scope("a");
    let bytes = measure(|| {
        for ms in 0..20_000 {
            let now = Instant::from_micros(ms * 1000);
            let ticket = send_at_once(&mut engine, now, &[scope]);
            engine.settle(now, ticket, &Feedback::response(200));
        }
    })
    .bytes_current;
    assert!(bytes < 200_000, "{bytes} bytes for 20,000 sends");
}
