//! Simulations that are stepped: the same as those that are run at once, and changed while they go on.

use autothrottle::{
    Instant, Value,
    simulate::{Live, PlayedServer, Simulation, Trace},
};

fn value(json: &str) -> Value {
    serde_json::from_str(json).expect(json)
}

/// The value as JavaScript would see it.
fn seen(value: Value) -> serde_json::Value {
    serde_json::to_value(value).unwrap()
}

/// Servers, networks and throttles in which chance has a say.
const WORLDS: &[&str] = &[
    r#"{ "server": { "model": "nginx", "rate": 10, "jitter": 0.5 }, "duration": 90000, "seed": 3,
         "network": { "latency": 40, "jitter": 30, "timerLag": 0.3, "timerJitter": 1, "slow": 0.01 },
         "throttle": { "defaults": { "rampup": true } } }"#,
    r#"{ "server": { "model": "queue", "workers": 2, "service": 300, "spread": 0.5 }, "clients": 3,
         "duration": 60000, "throttle": { "autothrottle": { "startDelay": 500 } } }"#,
    r#"{ "server": { "model": "sliding-window", "limit": 20, "window": 10000, "says": "rate-limit" },
         "servers": { "bad": { "model": "token-bucket", "rate": 0.5, "failing": 0.5 },
                      "good": { "model": "gcra", "rate": 3, "burst": 2, "ban": 5000 } },
         "load": { "rate": 12, "costs": [1, 2, 5] }, "duration": 60000,
         "throttle": { "rate": { "limit": 4, "burst": 5 }, "quota": { "limit": 400, "window": 30000 } } }"#,
];

fn at_once(options: &str) -> (Trace, Value) {
    let (trace, summary) = Simulation::parse(value(options)).expect(options).run().unwrap();
    (trace, Value::from(&summary))
}

#[test]
fn in_any_steps_it_is_the_run_at_once() {
    for world in WORLDS {
        let (trace, summary) = at_once(world);
        assert!(trace.exchanges.len() > 30, "{}", trace.exchanges.len());
        for steps in [&[100_000.0][..], &[9.0], &[0.0, 16.7, 33.3, 1000.0, 0.004]] {
            let mut live = Live::new(value(world)).unwrap();
            let mut told = 0;
            for step in steps.iter().cycle() {
                live.advance(*step).unwrap();
                let Value::List(events) = live.take_events() else { unreachable!() };
                told += events.iter().filter(|event| seen((*event).clone())["kind"] == "send").count();
                live.state(0);
                if live.is_done() {
                    break;
                }
            }
            assert_eq!(live.world().exchanges(), trace.exchanges);
            assert_eq!(Value::from(&live.summary()), summary);
            assert_eq!(told, trace.exchanges.len(), "each request is told once");
        }
    }
}

#[test]
fn a_change_counts_from_its_instant_on() {
    let options = r#"{ "server": { "model": "token-bucket", "rate": 100, "depth": 5 },
                       "throttle": { "rate": 2 }, "network": { "latency": 20 } }"#;
    let mut live = Live::new(value(options)).unwrap();
    live.advance(10_000.0).unwrap();
    assert_eq!(live.world().exchanges().len(), 20);
    live.configure("server", &value(r#"{ "rate": 10 }"#)).unwrap();
    live.advance(10_000.0).unwrap();
    let fast = live.world().exchanges().len();
    assert!((118..=121).contains(&fast), "{fast}");
    live.configure_server("server", value(r#"{ "rate": 4 }"#)).unwrap();
    live.advance(30_000.0).unwrap();
    assert!(live.summary().refused > 0);
    assert_eq!(live.world().places()[0].limit(Instant::from_micros(19_999_999)), 100.0, "as it was");
    assert_eq!(live.world().places()[0].limit(Instant::from_micros(20_000_000)), 4.0);
    assert_eq!(seen(live.state(0))["scopes"]["server"]["limit"], 4.0);
    live.configure_network(value(r#"{ "latency": 800 }"#)).unwrap();
    live.advance(60_000.0).unwrap();
    let last = live.world().exchanges().iter().rev().find_map(|each| Some(each.answered?.since(each.sent)));
    assert_eq!(last.unwrap().millis(), 800.0);
    assert!(!live.is_done(), "without a duration it has no end");
}

#[test]
fn another_model_is_typed_anew_and_what_is_wrong_changes_nothing() {
    let mut live = Live::new(value(WORLDS[2])).unwrap();
    live.advance(1000.0).unwrap();
    let errors = |result: Result<(), autothrottle::ConfigError>| result.unwrap_err().to_string();
    let partial = r#"{ "model": "concurrency", "slots": 2 }"#;
    let wants = "milliseconds above 0, at most a year";
    assert_eq!(
        errors(live.configure_server("server", value(partial))),
        format!("server.service: want {wants}; got nothing")
    );
    live.configure_server("server", value(r#"{ "model": "concurrency", "slots": 2, "service": 50 }"#))
        .unwrap();
    assert_eq!(live.world().places()[0].limit(Instant::from_micros(2_000_000)), 40.0);
    live.configure_server("good", value(r#"{ "rate": 7 }"#)).unwrap();
    assert_eq!(live.world().places()[2].limit(Instant::from_micros(2_000_000)), 7.0);
    assert_eq!(
        errors(live.configure("goood", &value("{}"))),
        "scope: want the name of a server; got \"goood\""
    );
    assert!(errors(live.configure("good", &value(r#"{ "delay": -1 }"#))).starts_with("delay: want "));
    assert!(errors(live.configure_network(value(r#"{ "latency": -1 }"#))).starts_with("network.latency: "));
    assert!(errors(live.advance(f64::NAN)).starts_with("ms: want "));
    live.advance(1e9).unwrap();
    assert!(live.is_done());
}

#[test]
fn events_tell_a_requests_life_and_the_state_why_the_next_one_waits() {
    let options = r#"{ "server": { "model": "token-bucket", "rate": 1, "says": "retry-after" },
                       "throttle": { "rate": 2 }, "network": { "latency": 100 } }"#;
    let mut live = Live::new(value(options)).unwrap();
    live.advance(100.0).unwrap();
    let state = seen(live.state(0));
    assert_eq!(state["next"], serde_json::json!({ "at": 500, "reason": "rate", "scope": "server" }));
    assert_eq!(state["waiting"], 50.0);
    live.advance(600.0).unwrap();
    let events = seen(live.take_events());
    let kinds: Vec<&str> =
        events.as_array().unwrap().iter().map(|event| event["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["answer", "send", "arrive", "answer", "backoff", "delay", "hold"]);
    assert_eq!(events[1]["reason"], "rate");
    assert_eq!(events[1]["queuedAt"], 0.0);
    assert_eq!(events[3]["status"], 429.0);
    assert!(events[3]["headers"].as_str().unwrap().to_lowercase().starts_with("retry-after: "));
    assert_eq!(seen(live.state(0))["next"]["reason"], "hold");
}

#[test]
fn servers_alone_answer_and_costs_are_checked() {
    let mut server = PlayedServer::new(value(r#"{ "model": "token-bucket", "rate": 2 }"#), 1).unwrap();
    let mut status = |now: f64| seen(server.answer(now))["status"].as_f64().unwrap();
    assert_eq!([0.0, 100.0, 600.0, f64::NAN, 1200.0].map(&mut status), [200.0, 429.0, 200.0, 429.0, 200.0]);
    assert_eq!(server.limit(5.0), 2.0);
    let wrong = PlayedServer::new(value(r#"{ "model": "token-bucket" }"#), 1).err().unwrap();
    assert!(wrong.to_string().starts_with("rate: want "));
    let costly = r#"{ "server": { "model": "nginx", "rate": 5 }, "load": { "costs": [1, 20] },
                      "throttle": { "quota": 10 } }"#;
    let wrong = Simulation::parse(value(costly)).err().unwrap().to_string();
    assert_eq!(wrong, "load.costs: want at most the whole quota of server; got 20");
}
