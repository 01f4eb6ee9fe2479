//! What a trace cannot say of the engine: handles, paths, and equal ways to one state.

use autothrottle::{Config, Decision, Engine, Feedback, Instant, Notice, Request, ScopeId, SubmitError};

fn engine(options: &str) -> Engine {
    Engine::new(Config::parse(serde_json::from_str(options).unwrap()).unwrap())
}

fn request<'a>(scopes: &'a [ScopeId], costs: &'a [f64]) -> Request<'a> {
    Request { costs, ..Request::new(scopes) }
}

#[test]
fn a_cost_above_the_quota_names_the_scope_and_the_setting() {
    let mut engine =
        engine(r#"{ "defaults": { "quota": 5 }, "scopes": { "api": { "quota": 9 }, "a": {} } }"#);
    let [other, api] = ["other", "api"].map(|name| engine.scope(name));
    let now = Instant::default();
    let error = engine.submit(now, request(&[api, other], &[6.0])).unwrap_err();
    assert_eq!(error, SubmitError::CostExceedsQuota { scope: other });
    assert_eq!(engine.config_path(other, "quota").unwrap(), "defaults.quota");
    let error = engine.submit(now, request(&[other, api], &[5.0, 10.0])).unwrap_err();
    assert_eq!(error, SubmitError::CostExceedsQuota { scope: api });
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

/// Plays bad answers at these seconds, each to a request that was sent then; gives when the stall was told.
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
            if let Notice::Stalled { span, .. } = notice {
                told.push((second, span.millis() / 1000.0));
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
