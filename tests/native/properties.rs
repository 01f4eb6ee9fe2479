//! Calls that `reference` does not have, under random events: `peek`, a rolling window by itself, quotas of
//! several scopes whose settings change. Failures are committed beside this file.

use autothrottle::{
    Cost, Decision, Engine, Feedback, Instant, Peek, Request, ScopeId, Span, Ticket,
    policy::autothrottle::{Config, State},
};
use proptest::prelude::*;
use serde_json::Value;

use crate::helpers::{engine, json};

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    /// The instant of `peek` is exact when no other request is submitted: not a microsecond before, and
    /// exactly then.
    #[test]
    fn peek_is_exact_when_nothing_else_is_submitted(
        sends in prop::collection::vec((0..3_usize, 0..1_500_000_u64, any::<bool>(), 0..5_usize), 0..16),
        asked in prop::sample::subsequence(vec![0_usize, 1, 2], 1..=3),
        later in 0..2_000_000_u64,
    ) {
        let options = r#"{ "defaults": { "slotDelay": 700, "backoff": { "window": 900, "minDelay": 400, "maxDelay": 3000 } }, "seed": 5, "scopes": {
            "a": { "concurrency": 2, "delay": 300, "slotDelay": 0, "backoff": { "factor": 1.1, "minDelay": 100, "window": 200 } }, "b": { "concurrency": 3, "delay": 0, "quota": 2, "window": 900 },
            "c": { "concurrency": 3, "delay": 10, "quota": [3, { "limit": 2, "window": 500, "strict": true }] } } }"#;
        let mut engine = engine(options);
        let ids = ["a", "b", "c"].map(|name| engine.scope(name));
        let mut now = Instant::default();
        for (scope, pause, is_held, status) in sends {
            let ticket = engine.submit(now, Request::new(&[ids[scope]])).unwrap();
            let Peek { at, .. } = engine.peek(now, Request::new(&[ids[scope]])).unwrap();
            now = at.expect("everything is settled, so only time can be in the way");
            prop_assert_eq!(engine.poll(now), Decision::Send(ticket));
            engine.poll(now);
            if is_held {
                engine.hold(now, ids[scope], Span::from_micros(pause));
            }
            let mut feedback = Feedback::response([200, 200, 404, 429, 503][status]);
            feedback.hint.report.left = Cost::from_units(1.0).zip((status == 2).then(|| Span::from_micros(pause)));
            engine.settle(now + Span::from_micros(pause), ticket, &feedback);
            now = now + Span::from_micros(pause);
        }
        now = now + Span::from_micros(later);
        let scopes: Vec<ScopeId> = asked.iter().map(|&scope| ids[scope]).collect();
        let before = format!("{engine:?}");
        let Peek { at, because } = engine.peek(now, Request::new(&scopes)).unwrap();
        prop_assert_eq!(before, format!("{engine:?}"), "peek changes nothing");
        let at = at.unwrap();
        prop_assert_eq!(at > now, because.is_some());
        let ticket = engine.submit(now, Request::new(&scopes)).unwrap();
        if at > now {
            let mut early = engine.clone();
            let early = early.poll(at - Span::from_micros(1));
            prop_assert!(matches!(early, Decision::Wait { .. }), "sent early");
        }
        prop_assert_eq!(engine.poll(at), Decision::Send(ticket));
    }

    /// A rolling quota: whatever comes, no window-long span holds more than the limit, and no request waits
    /// longer than that takes.
    #[test]
    fn a_rolling_window_never_holds_more_than_its_quota(
        requests in prop::collection::vec((0..500_000_u64, 1..60_u32), 1..120),
    ) {
        const WINDOW: u64 = 1_000_000;
        let options = r#"{ "maxInFlight": 1000, "defaults": { "delay": 0, "slotDelay": 0, "concurrency": 1000,
            "quota": 6, "window": 1000, "strict": true } }"#;
        let mut engine = engine(options);
        let scope = [engine.scope("x")];
        let mut now = Instant::default();
        let mut sends: Vec<(u64, u32)> = Vec::new();
        for (pause, tenths) in requests {
            now = now + Span::from_micros(pause);
            let costs = [f64::from(tenths) / 10.0];
            let ticket = engine.submit(now, Request { costs: &costs, ..Request::new(&scope) }).unwrap();
            let mut decision = engine.poll(now);
            while let Decision::Wait { until, .. } = decision {
                now = until;
                decision = engine.poll(now);
            }
            prop_assert_eq!(decision, Decision::Send(ticket));
            sends.push((now.micros(), tenths));
        }
        for (index, &(start, _)) in sends.iter().enumerate() {
            let span = sends[index..].iter().take_while(|&&(at, _)| at < start + WINDOW);
            prop_assert!(span.map(|&(_, tenths)| tenths).sum::<u32>() <= 60);
        }
    }
}

#[derive(Clone, Debug)]
enum Change {
    Submit { scopes: Vec<usize>, costs: Vec<u8>, priority: i8 },
    Settle(usize, Option<u8>),
    Cancel(usize),
    Pass(u32),
    Configure(usize, &'static str),
    Reset(usize),
}

fn change() -> impl Strategy<Value = Change> {
    let partial = prop::sample::select(vec![
        r#"{ "concurrency": 1 }"#,
        r#"{ "concurrency": 4, "slotDelay": 100 }"#,
        r#"{ "quota": 2 }"#,
        r#"{ "quota": [5, { "limit": 9, "window": 3000, "strict": true }] }"#,
        r#"{ "quota": [] }"#,
        r#"{ "delay": 0, "window": 50 }"#,
        r#"{ "delay": 120, "autothrottle": { "startDelay": 90 } }"#,
    ]);
    prop_oneof![
        6 => (prop::sample::subsequence(vec![0, 1, 2], 1..=3), prop::collection::vec(0..9_u8, 3), -1..2_i8)
            .prop_map(|(scopes, costs, priority)| Change::Submit { scopes, costs, priority }),
        4 => (0..64_usize, prop::option::of(0..9_u8)).prop_map(|(index, cost)| Change::Settle(index, cost)),
        2 => (0..64_usize).prop_map(Change::Cancel),
        4 => (0..900_000_u32).prop_map(Change::Pass),
        2 => (0..3_usize, partial).prop_map(|(scope, partial)| Change::Configure(scope, partial)),
        1 => (0..3_usize).prop_map(Change::Reset),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    /// Costs over several scopes with quotas, settings that change under what waits: polling always ends, no
    /// request is sent twice, and with answers and time each is sent.
    #[test]
    fn quotas_over_several_scopes_never_strand_a_request(changes in prop::collection::vec(change(), 1..200)) {
        let options = r#"{ "maxInFlight": 4, "defaults": { "jitter": false, "slotDelay": 0, "delay": 30, "concurrency": 3 },
            "scopes": { "fixed": { "quota": 8, "window": 700 }, "strict": { "quota": 8, "window": 900, "strict": true } } }"#;
        let mut engine = engine(options);
        let ids = ["fixed", "strict", "host"].map(|name| engine.scope(name));
        let mut now = Instant::default();
        let (mut waiting, mut flying): (Vec<Ticket>, Vec<Ticket>) = (vec![], vec![]);
        let drain = |engine: &mut Engine, now, waiting: &mut Vec<Ticket>, flying: &mut Vec<Ticket>| {
            for _ in 0..1000 {
                match engine.poll(now) {
                    Decision::Send(ticket) => {
                        let at = waiting.iter().position(|&other| other == ticket).expect("sent once");
                        flying.push(waiting.remove(at));
                    }
                    Decision::Wait { until, .. } => {
                        assert!(until > now);
                        return Some(until);
                    }
                    Decision::Idle { .. } => return None,
                }
            }
            panic!("polling does not end");
        };
        for change in changes {
            match change {
                Change::Submit { scopes, costs, priority } => {
                    let handles: Vec<ScopeId> = scopes.iter().map(|&scope| ids[scope]).collect();
                    let costs: Vec<f64> = costs.iter().map(|&cost| f64::from(cost)).collect();
                    let request = Request { costs: &costs, priority: f64::from(priority), ..Request::new(&handles) };
                    waiting.extend(engine.submit(now, request).ok());
                }
                Change::Settle(index, cost) if !flying.is_empty() => {
                    let ticket = flying.remove(index % flying.len());
                    let cost = cost.and_then(|cost| autothrottle::Cost::from_units(f64::from(cost)));
                    let feedback = Feedback { cost, latency_ms: Some(40.0), ..Feedback::response(200) };
                    engine.settle(now, ticket, &feedback);
                }
                Change::Cancel(index) if !waiting.is_empty() => {
                    engine.cancel(now, waiting.remove(index % waiting.len()));
                }
                Change::Settle(..) | Change::Cancel(_) => {}
                Change::Pass(micros) => now = now + Span::from_micros(u64::from(micros)),
                Change::Configure(scope, partial) => {
                    engine.configure(now, ids[scope], json(partial)).unwrap();
                }
                Change::Reset(scope) => engine.reset(now, ids[scope]),
            }
            drain(&mut engine, now, &mut waiting, &mut flying);
            prop_assert_eq!(engine.waiting() as usize, waiting.len());
            prop_assert_eq!(engine.in_flight() as usize, flying.len());
        }
        for _ in 0..10_000 {
            let wake = drain(&mut engine, now, &mut waiting, &mut flying);
            match (flying.pop(), wake) {
                (Some(ticket), _) => engine.settle(now, ticket, &Feedback::response(200)),
                (None, Some(until)) => now = until,
                (None, None) => break,
            }
        }
        prop_assert!(waiting.is_empty(), "stranded: {:?}", waiting);
    }
}

// 20,000 steps of `AutoThrottle` as Scrapy 2.19's own code took them: every delay must be the same bits.

#[test]
fn every_step_is_bit_for_bit_scrapys() {
    let mut steps_taken = 0;
    for line in include_str!("../vectors/autothrottle_vectors.jsonl").lines().skip(1) {
        let vector: Value = serde_json::from_str(line).unwrap();
        let setting = |name: &str, default: f64| vector["settings"][name].as_f64().unwrap_or(default);
        let config = Config {
            start: setting("AUTOTHROTTLE_START_DELAY", 5.0),
            min: setting("DOWNLOAD_DELAY", 0.0),
            max: setting("AUTOTHROTTLE_MAX_DELAY", 60.0),
            target_concurrency: setting("AUTOTHROTTLE_TARGET_CONCURRENCY", 1.0),
        };
        let slot_delay = vector["slot"]["delay"].as_f64();
        let mut state = slot_delay.map_or_else(|| State::new(&config), |delay| State { delay });
        assert_eq!(state.delay.to_bits(), vector["start"].as_f64().unwrap().to_bits(), "{}", vector["id"]);
        let (steps, delays) = (vector["steps"].as_array().unwrap(), vector["delays"].as_array().unwrap());
        assert_eq!(steps.len(), delays.len());
        for (step, delay) in steps.iter().zip(delays) {
            let is_asked_not_to = step[2] == Value::Bool(true);
            if let (Some(latency), false) = (step[0].as_f64(), is_asked_not_to) {
                state = state.on_response(&config, latency, step[1].as_u64().unwrap() as u16);
            }
            assert_eq!(state.delay.to_bits(), delay.as_f64().unwrap().to_bits(), "{} {step}", vector["id"]);
            steps_taken += 1;
        }
    }
    assert_eq!(steps_taken, 20_000);
}
