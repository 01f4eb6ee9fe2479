//! A crowd: 100,000 requests for 10,000 hosts that also share one scope, in virtual time.

use std::collections::BTreeMap;

use autothrottle::{Decision, Feedback, Instant, Request, ScopeId};

use crate::made::engine;

#[test]
fn a_hundred_thousand_requests_over_ten_thousand_hosts_that_share_one_scope() {
    const HOSTS: usize = 10_000;
    const EACH: usize = 10;
    let options = r#"{ "concurrency": 1000000, "defaults": { "delay": 1000, "slotDelay": 0, "jitter": false },
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
    let mut flying: std::collections::VecDeque<(Instant, autothrottle::Ticket)> = [].into();
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
                    flying.push_back((now + autothrottle::Span::from_millis(20.0), ticket));
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
