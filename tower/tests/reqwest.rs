//! reqwest's client against axum's server, over a real connection: the tests assert that no request is early.
#![cfg(feature = "reqwest")]

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use autothrottle_tower::Throttle;
use axum::{Router, http::StatusCode, routing::get};
use reqwest_middleware::ClientBuilder;
use serde_json::json;

#[tokio::test]
async fn a_limit_that_only_the_server_knows_is_kept() {
    let sent = Arc::new(Mutex::new(Vec::<Instant>::new()));
    let seen = sent.clone();
    let page = get(async move || {
        let mut sent = seen.lock().unwrap();
        let is_first = sent.is_empty();
        sent.push(Instant::now());
        let status = if is_first { StatusCode::TOO_MANY_REQUESTS } else { StatusCode::OK };
        (status, [("Retry-After", "1")], "page")
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/", page)).await });

    let throttle = Throttle::new(json!({ "delay": 0, "backoff": {} })).unwrap();
    let client = ClientBuilder::new(reqwest::Client::new()).with(throttle.clone()).build();
    assert_eq!(client.get(&url).send().await.unwrap().status(), 429);
    assert_eq!(client.get(&url).send().await.unwrap().text().await.unwrap(), "page");
    let sent = sent.lock().unwrap().clone();
    assert!(sent[1] - sent[0] >= Duration::from_secs(1));
    assert_eq!((throttle.stats().settled, throttle.stats().in_flight), (2, 0));
    assert!(client.get("http://127.0.0.1:1/").send().await.is_err());
    assert_eq!(throttle.scope_stats("127.0.0.1:1").unwrap().backoff_step, 1);
}

#[cfg(feature = "robots")]
#[tokio::test]
async fn robots_txt_is_kept_and_asked_once() {
    let asked = Arc::new(Mutex::new(0));
    let counter = asked.clone();
    let file = get(async move || {
        *counter.lock().unwrap() += 1;
        "User-agent: my-bot\nDisallow: /private\n"
    });
    let page = get(async || "page");
    let app = Router::new().route("/robots.txt", file).route("/", page.clone()).route("/private", page);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });

    let throttle = Throttle::new(json!({ "delay": 0 })).unwrap();
    let robots = autothrottle_tower::Robots::new(&throttle, "my-bot/1.0");
    let client = ClientBuilder::new(reqwest::Client::new()).with(robots).with(throttle).build();
    for _ in 0..2 {
        assert_eq!(client.get(&url).send().await.unwrap().text().await.unwrap(), "page");
    }
    let error = client.get(format!("{url}private")).send().await.unwrap_err();
    assert!(format!("{error:?}").contains("robots.txt does not allow"), "{error:?}");
    assert_eq!(*asked.lock().unwrap(), 1);
}
