//! What a trace cannot say of the engine: handles, paths, and equal ways to one state.

use autothrottle::{Config, Engine, Instant, Request, ScopeId, SubmitError};

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
