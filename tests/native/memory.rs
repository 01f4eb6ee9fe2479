//! What requests and scopes cost in memory, counted by an allocator that counts.
//!
//! Times differ from machine to machine; allocations and bytes do not. The bounds are what was measured, and
//! a little more: who raises one says why.

use allocation_counter::measure;
use autothrottle::{Decision, Engine, Feedback, Instant, Request, ScopeId, Ticket};

use crate::made;

fn engine() -> Engine {
    let options = r#"{ "defaults": { "delay": 0, "slotDelay": 0, "jitter": false } }"#;
    made::engine(options)
}

fn submit_and_poll(engine: &mut Engine, now: Instant, scopes: &[ScopeId]) -> Ticket {
    let ticket = engine.submit(now, Request::new(scopes)).unwrap();
    assert_eq!(engine.poll(now), Decision::Send(ticket));
    assert!(matches!(engine.poll(now), Decision::Idle { .. }));
    ticket
}

fn send_at_once(engine: &mut Engine, now: Instant, scopes: &[ScopeId]) -> Ticket {
    engine.send_at_once(now, Request::new(scopes)).unwrap().expect("nobody waits")
}

/// Allocations of one request from submit to settle, in an engine that has sent some before.
fn allocations(scopes: &[&str], send: impl Fn(&mut Engine, Instant, &[ScopeId]) -> Ticket) -> u64 {
    let mut engine = engine();
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
        let mut engine = engine();
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
    assert!(idle <= 300 && alone <= 600 && together <= 48, "{idle}, {alone}, {together}");
}

/// Requests that left or were cancelled leave no memory behind, however they differ in cost and priority.
#[test]
fn what_waited_is_given_back() {
    let mut engine = engine();
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
    let mut engine = made::engine(options);
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
