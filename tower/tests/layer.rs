//! As a layer of tower: each request waits, each answer counts, retries keep to it.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};

use autothrottle_tower::{Error, Retry, Target, Throttle};
use http::{Request, Response};
use serde_json::json;
use tokio::time::Instant;
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};

fn get(uri: &str) -> Request<()> {
    Request::get(uri).body(()).unwrap()
}

/// A service that answers by a list, and says when it was asked.
#[derive(Clone)]
struct Server {
    start: Instant,
    asked: Arc<Mutex<Vec<u128>>>,
}

impl Server {
    fn new() -> Self {
        Self { start: Instant::now(), asked: Arc::default() }
    }

    fn answer(&self, answers: &[(u16, &str)]) -> Response<()> {
        let mut asked = self.asked.lock().unwrap();
        let (status, retry_after) = answers[asked.len().min(answers.len() - 1)];
        asked.push(self.start.elapsed().as_millis());
        let response = Response::builder().status(status);
        match retry_after {
            "" => response.body(()),
            seconds => response.header("Retry-After", seconds).body(()),
        }
        .unwrap()
    }

    fn asked(&self) -> Vec<u128> {
        self.asked.lock().unwrap().clone()
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_for_its_host() {
    let throttle = Throttle::new(json!({ "rate": 2 })).unwrap();
    let server = Server::new();
    let inner = server.clone();
    let service = service_fn(move |_: Request<()>| {
        let answer = inner.answer(&[(200, "")]);
        async { Ok::<_, Infallible>(answer) }
    });
    let mut client = ServiceBuilder::new().layer(throttle.clone()).service(service);
    for uri in ["https://a.example/1", "https://b.example/1", "https://a.example/2", "https://a.example/3"] {
        client.ready().await.unwrap().call(get(uri)).await.unwrap();
    }
    assert_eq!(server.asked(), [0, 0, 500, 1000]);
    let mut named = get("/relative");
    named.headers_mut().insert("host", "A.example:80".parse().unwrap());
    client.ready().await.unwrap().call(named).await.unwrap();
    assert_eq!(server.asked().last(), Some(&1500), "the host of the field is the same scope");
    let mut targeted = get("https://a.example/");
    targeted.extensions_mut().insert(Target::scope("else"));
    client.ready().await.unwrap().call(targeted).await.unwrap();
    assert_eq!(server.asked().last(), Some(&1500), "another scope does not wait");
    let error = client.ready().await.unwrap().call(get("/relative")).await.unwrap_err();
    assert_eq!(error.downcast_ref(), Some(&Error::NoHost { uri: "/relative".into() }));
    assert_eq!(throttle.stats().in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn a_refused_request_is_sent_again_when_the_server_said() {
    let throttle = Throttle::new(json!({ "delay": 0, "retry": { "limit": 3 } })).unwrap();
    let server = Server::new();
    let inner = server.clone();
    let service = service_fn(move |_: Request<()>| {
        let answer = inner.answer(&[(429, "3"), (503, ""), (200, "")]);
        async { Ok::<_, Infallible>(answer) }
    });
    let mut client =
        ServiceBuilder::new().retry(Retry::new(&throttle)).layer(throttle.clone()).service(service);
    let response = client.ready().await.unwrap().call(get("https://a.example/")).await.unwrap();
    assert_eq!(response.status(), 200);
    let asked = server.asked();
    assert_eq!(asked.len(), 3);
    assert!(asked[1] >= 3000 && asked[2] > asked[1], "{asked:?}");

    let post = Request::post("https://b.example/").body(()).unwrap();
    server.asked.lock().unwrap().clear();
    assert_eq!(client.ready().await.unwrap().call(post).await.unwrap().status(), 429, "a POST is sent once");
    assert_eq!(server.asked().len(), 1);
}

/// How often a request of this method is sent to a server that refuses it.
async fn sends(retry: serde_json::Value, method: &str) -> usize {
    let options = if retry.is_null() { json!({ "delay": 0 }) } else { json!({ "delay": 0, "retry": retry }) };
    let throttle = Throttle::new(options).unwrap();
    let server = Server::new();
    let inner = server.clone();
    let service = service_fn(move |_: Request<()>| {
        let answer = inner.answer(&[(503, "")]);
        async { Ok::<_, Infallible>(answer) }
    });
    let client = ServiceBuilder::new().retry(Retry::new(&throttle)).layer(throttle.clone()).service(service);
    let request = Request::builder().method(method).uri("https://a.example/").body(()).unwrap();
    assert_eq!(client.oneshot(request).await.unwrap().status(), 503);
    server.asked().len()
}

#[tokio::test(start_paused = true)]
async fn how_often_and_which_methods_are_options() {
    assert_eq!(sends(json!(null), "GET").await, 1, "no retry is typed");
    assert_eq!(sends(json!({ "limit": 1 }), "GET").await, 2);
    assert_eq!(sends(json!({ "limit": 4 }), "PUT").await, 5);
    assert_eq!(sends(json!({ "limit": 4 }), "POST").await, 1);
    let typed = || json!({ "limit": 2, "methods": ["post"] });
    assert_eq!((sends(typed(), "POST").await, sends(typed(), "GET").await), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_is_final_is_not_sent_again() {
    let throttle = Throttle::new(json!({ "delay": 0, "retry": { "limit": 3 } })).unwrap();
    for (says, wanted) in [("false", 1), ("true", 4)] {
        let sent = Arc::new(Mutex::new(0));
        let inner = sent.clone();
        let service = service_fn(move |_: Request<()>| {
            *inner.lock().unwrap() += 1;
            let answer = Response::builder().status(429).header("x-should-retry", says).body(()).unwrap();
            async { Ok::<_, Infallible>(answer) }
        });
        let client =
            ServiceBuilder::new().retry(Retry::new(&throttle)).layer(throttle.clone()).service(service);
        assert_eq!(client.oneshot(get("https://a.example/")).await.unwrap().status(), 429);
        assert_eq!(*sent.lock().unwrap(), wanted, "x-should-retry: {says}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_timeout_below_is_heard_and_gives_its_slot_back() {
    let throttle = Throttle::new(json!({ "delay": 0, "backoff": { "jitter": 0 } })).unwrap();
    let service = service_fn(|_: Request<()>| async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        Ok::<_, Infallible>(Response::new(()))
    });
    let below =
        ServiceBuilder::new().layer(throttle.clone()).timeout(Duration::from_secs(5)).service(service);
    below.oneshot(get("https://a.example/")).await.unwrap_err();
    let stats = throttle.scope_stats("a.example").unwrap();
    assert_eq!((stats.in_flight, stats.backoff_step), (0, 1));
}

// The code in the README is the example, which is compiled.

#[test]
fn the_readme_shows_the_example() {
    let page = include_str!("../README.md");
    let example = include_str!("../examples/reqwest.rs");
    let (_, code) = example.split_once("\n\n").expect("a line about it, then the code");
    assert!(page.contains(&format!("```rust\n{code}```\n")));
}
