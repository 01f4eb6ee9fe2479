//! Plays what all hosts play: `tests/vectors/driver.jsonl` and `endings.jsonl`, how a call and a request end,
//! as far as tower has what a case needs; and `tests/vectors/hosts.json`, what a server is called.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use autothrottle_tower::{BoxError, Error, Outcome, Retry, Target, Throttle};
use http::{Request, Response, Uri};
use serde_json::{Value, json};
use tokio::time::Instant;
use tower::{ServiceBuilder, ServiceExt, service_fn};

const PAGE: &str = "https://a.example/";
const SAY: &str = "say of a new case why it has no meaning here, or play it";

/// Why a case has no meaning here.
fn why_not(case: &Value) -> Option<&'static str> {
    let has = |key: &str| case.get(key).is_some() || case["options"].get(key).is_some();
    let does = |step: &str| case["does"].to_string().contains(&format!("{{\"{step}\":"));
    if does("run") {
        return Some("a call inside is a request of its own: tower hands no permit on");
    }
    if does("fetch") {
        return Some("a function of `run` has no permit to send with");
    }
    if does("throws") {
        return Some("an error of a service has no status");
    }
    if does("settle") && !case["does"].to_string().contains("cost") {
        return Some("a function of `run` has no permit: what it gives is the outcome");
    }
    if case["run"]["retry"] == true && case["options"]["retry"]["methods"].is_array() {
        return Some("a request has a method, a function none");
    }
    if has("warnings") {
        return Some("warnings are lines of `tracing` and have no codes");
    }
    if has("hookTakes") || has("when") {
        return Some("tower asks no function of the caller's");
    }
    if has("holds") || has("drains") {
        return Some("a permit that is dropped is settled, and so is a throttle");
    }
    if case["run"].get("wait").is_some() {
        return Some("the caller's `timeout` bounds a wait");
    }
    (case["error"] == "RetryAfterTooLongError")
        .then_some("a policy of tower's retry layer gives the answer back")
}

/// Why a case of endings has no meaning here.
fn why_no_ending(case: &Value) -> Option<&'static str> {
    if case["body"] == "stream" {
        return Some("what is sent again is `Clone`: a stream is none, which the compiler says");
    }
    if case["options"].get("release").is_some() {
        return Some("the layer gives the slot back when the headers are here");
    }
    if case["options"].get("requestTimeout").is_some() {
        return Some("the client's own `timeout` ends what never answers");
    }
    if case.get("when").is_some() {
        return Some("tower asks no function of the caller's");
    }
    (case["error"] == "RetryAfterTooLongError")
        .then_some("a policy of tower's retry layer gives the answer back")
}

/// An answer of a case.
fn answer(told: &Value) -> Result<Response<()>, BoxError> {
    let Some(status) = told["status"].as_u64() else { return Err("the connection failed".into()) };
    let mut answer = Response::builder().status(status as u16);
    for (name, value) in told["headers"].as_object().into_iter().flatten() {
        answer = answer.header(name, value.as_str().unwrap());
    }
    Ok(answer.body(()).unwrap())
}

/// Options of a case, and those of its call.
fn options_of(case: &Value) -> Value {
    let mut options = json!({ "jitter": false, "delay": 0 });
    let retry = match &case["run"]["retry"] {
        Value::Object(_) => json!({ "retry": case["run"]["retry"] }),
        _ => json!({}),
    };
    for (key, value) in [&case["options"], &retry].into_iter().flat_map(|of| of.as_object().unwrap()) {
        options[key] = value.clone();
    }
    options
}

/// Sends a request of a case through a retry layer and the throttle, and checks what became of it.
async fn check(throttle: &Throttle, case: &Value, answers: Vec<Value>) {
    let name = &case["name"];
    let (calls, start) = (Arc::new(AtomicUsize::new(0)), Instant::now());
    let log = calls.clone();
    let server = service_fn(move |_: Request<()>| {
        let call = log.fetch_add(1, Ordering::SeqCst);
        let answer = answer(&answers[call.min(answers.len() - 1)]);
        async { answer }
    });
    let client = ServiceBuilder::new().retry(Retry::new(throttle)).layer(throttle.clone()).service(server);
    let method = case["method"].as_str().unwrap_or("GET");
    let request = Request::builder().method(method).uri(PAGE).body(()).unwrap();
    let answer = client.oneshot(request).await;
    let status = answer.as_ref().ok().map(|answer| u64::from(answer.status().as_u16()));
    assert_eq!(status, case["status"].as_u64(), "{name}");
    let error = answer.as_ref().err();
    assert_eq!(error.is_some_and(|error| !error.is::<Error>()), case["fails"] == true, "{name}");
    assert_eq!(error.is_some_and(|error| error.is::<Error>()), case["error"].is_string(), "{name}");
    assert_eq!(Some(calls.load(Ordering::SeqCst) as u64), case["calls"].as_u64(), "{name}");
    if let Some(ends) = case["ends"].as_u64() {
        assert_eq!(start.elapsed().as_millis(), u128::from(ends), "{name}");
    }
}

async fn play(case: &Value) {
    let name = &case["name"];
    let throttle = Throttle::new(options_of(case)).unwrap();
    let steps = case["does"].as_array().unwrap();
    if let Some(cost) = steps[0][0]["settle"]["cost"].as_f64() {
        let permit = throttle.acquire(PAGE).await.unwrap();
        let mut charge = permit.settle(&Outcome::Response { status: 200, headers: None });
        assert_eq!(charge.adjust("a.example", cost), Err(Error::NotANumber), "{name}");
    } else {
        let answers = steps.iter().map(|step| step[0]["gives"].clone()).collect();
        check(&throttle, case, answers).await;
    }
    assert_eq!(u64::from(throttle.stats().in_flight), case["inFlight"].as_u64().unwrap_or(0), "{name}");
}

/// The cases that have a meaning here, and how many have none.
fn cases(lines: &str, why_not: impl Fn(&Value) -> Option<&'static str>) -> (Vec<Value>, usize) {
    let all: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let count = all.len();
    let played: Vec<Value> = all.into_iter().filter(|case| why_not(case).is_none()).collect();
    let left_out = count - played.len();
    (played, left_out)
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_as_in_every_host() {
    let (played, left_out) = cases(include_str!("../../tests/vectors/driver.jsonl"), why_not);
    assert_eq!((played.len(), left_out), (6, 69), "{SAY}");
    for case in &played {
        play(case).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_ends_as_in_every_host() {
    let (played, left_out) = cases(include_str!("../../tests/vectors/endings.jsonl"), why_no_ending);
    assert_eq!((played.len(), left_out), (44, 36), "{SAY}");
    for case in &played {
        let throttle = Throttle::new(options_of(case)).unwrap();
        check(&throttle, case, case["answers"].as_array().unwrap().clone()).await;
    }
}

/// `http` refuses what is no URI; what it takes has the one name.
#[test]
fn a_server_has_the_name_that_it_has_in_every_host() {
    let hosts: Value = serde_json::from_str(include_str!("../../tests/vectors/hosts.json")).unwrap();
    for pair in hosts["urls"].as_array().unwrap() {
        let (url, name) = (pair[0].as_str().unwrap(), pair[1].as_str());
        let target: Result<Target, Error> = url.try_into();
        match target {
            Ok(target) => assert_eq!(target.scopes().next().map(|(name, _)| name), name, "{url}"),
            Err(error) => {
                assert_eq!(error, Error::NoHost { uri: url.into() });
                let is_beyond =
                    !url.parse::<Uri>().is_ok_and(|uri| uri.scheme().is_some()) || url.contains('%');
                assert!(name.is_none() || is_beyond, "{url}");
            }
        }
    }
}
