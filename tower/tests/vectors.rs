//! Plays what all hosts play: `tests/vectors/driver.jsonl`, how a call ends, as far as tower has what a case
//! needs; and `tests/vectors/hosts.json`, what a server is called.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use autothrottle_tower::{BoxError, Error, Outcome, Retry, Target, Throttle};
use http::{Request, Response, Uri};
use serde_json::{Value, json};
use tower::{ServiceBuilder, ServiceExt, service_fn};

const PAGE: &str = "https://a.example/";

/// Why a case has no meaning here.
fn why_not(case: &Value) -> Option<&'static str> {
    let has = |key: &str| case.get(key).is_some() || case["options"].get(key).is_some();
    let does = |step: &str| case["does"].to_string().contains(&format!("{{\"{step}\":"));
    if does("run") {
        return Some("a call inside is a request of its own: tower hands no permit on");
    }
    if does("settle") && !case["does"].to_string().contains("cost") {
        return Some("a function of `run` has no permit: what it gives is the outcome");
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

/// An answer of a case.
fn answer(told: &Value) -> Response<()> {
    let mut answer = Response::builder().status(told["status"].as_u64().unwrap() as u16);
    for (name, value) in told["headers"].as_object().into_iter().flatten() {
        answer = answer.header(name, value.as_str().unwrap());
    }
    answer.body(()).unwrap()
}

async fn play(case: &Value) {
    let name = &case["name"];
    let mut options = json!({ "jitter": false, "delay": 0 });
    let retry = match &case["run"]["retry"] {
        Value::Object(_) => json!({ "retry": case["run"]["retry"] }),
        _ => json!({}),
    };
    for (key, value) in [&case["options"], &retry].into_iter().flat_map(|of| of.as_object().unwrap()) {
        options[key] = value.clone();
    }
    let throttle = Throttle::new(&options).unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let steps = case["does"].as_array().unwrap();
    if let Some(cost) = steps[0][0]["settle"]["cost"].as_f64() {
        let permit = throttle.acquire(PAGE).await.unwrap();
        let mut charge = permit.settle(&Outcome::Response { status: 200, headers: None });
        assert_eq!(charge.adjust("a.example", cost), Err(Error::NotANumber), "{name}");
    } else {
        let (log, steps) = (calls.clone(), steps.clone());
        let server = service_fn(move |_: Request<()>| {
            let call = log.fetch_add(1, Ordering::SeqCst);
            let step = &steps[call.min(steps.len() - 1)][0];
            let answer = answer(&step["gives"]);
            async { Ok::<_, BoxError>(answer) }
        });
        let client =
            ServiceBuilder::new().retry(Retry::new(&throttle)).layer(throttle.clone()).service(server);
        let answer = client.oneshot(Request::get(PAGE).body(()).unwrap()).await.unwrap();
        assert_eq!(Some(u64::from(answer.status().as_u16())), case["status"].as_u64(), "{name}");
        assert_eq!(Some(calls.load(Ordering::SeqCst) as u64), case["calls"].as_u64(), "{name}");
    }
    assert_eq!(u64::from(throttle.stats().in_flight), case["inFlight"].as_u64().unwrap_or(0), "{name}");
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_as_in_every_host() {
    let (mut played, mut left_out) = (0, 0);
    for line in include_str!("../../tests/vectors/driver.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        if why_not(&case).is_some() {
            left_out += 1;
        } else {
            played += 1;
            play(&case).await;
        }
    }
    assert_eq!((played, left_out), (6, 22), "say of a new case why it has no meaning here, or play it");
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
