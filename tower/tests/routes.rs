//! Plays `tests/vectors/routes.jsonl`: requests at their instants, what their servers answer, and when each
//! leaves. JavaScript and Python play the same cases (`tests/js/routes.test.ts`,
//! `python/tests/test_routes.py`).

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use autothrottle_tower::{Target, Throttle};
use http::{Method, Response};
use serde_json::Value;
use tokio::time::{Instant, sleep, sleep_until};

type Left = Arc<Mutex<Option<u64>>>;

/// One request: its URL (`{n}` is its place among `count`), method, status, header fields and how long it takes.
async fn send(throttle: Throttle, ask: Value, number: u64, start: Instant, left: Left) {
    let url = ask["url"].as_str().unwrap().replace("{n}", &number.to_string());
    let mut target = Target::try_from(&*url).unwrap();
    if let Some(method) = ask["method"].as_str() {
        target = target.method(Method::from_bytes(method.as_bytes()).unwrap());
    }
    let permit = throttle.acquire(target).await.unwrap();
    *left.lock().unwrap() = Some(start.elapsed().as_millis() as u64);
    sleep(Duration::from_millis(ask["takes"].as_u64().unwrap_or(10))).await;
    let mut answer = Response::builder().status(ask["status"].as_u64().unwrap_or(200) as u16);
    for (name, value) in ask["fields"].as_object().into_iter().flatten() {
        answer = answer.header(name, value.as_str().unwrap());
    }
    permit.settle(&answer.body(()).unwrap());
}

async fn play(case: Value, wrong: &mut Vec<String>) {
    let start = Instant::now();
    let options = &case["options"];
    let mut throttle = Throttle::new(options).unwrap();
    let mut restarts = case["restarts"].as_u64();
    let mut tasks = Vec::new();
    for ask in case["asks"].as_array().unwrap() {
        let at = ask["at"].as_u64().unwrap();
        sleep_until(start + Duration::from_millis(at)).await;
        if restarts.take_if(|restarts| at >= *restarts).is_some() {
            let snapshot = serde_json::to_value(throttle.snapshot()).unwrap();
            throttle = Throttle::restore(options, &snapshot).unwrap();
        }
        for number in 0..ask["count"].as_u64().unwrap_or(1) {
            let left = Left::default();
            let asked = send(throttle.clone(), ask.clone(), number, start, left.clone());
            tasks.push((ask, tokio::spawn(asked), left));
        }
    }
    sleep(Duration::from_secs(30)).await;
    for (ask, task, left) in tasks {
        task.abort();
        let left = *left.lock().unwrap();
        if left != ask["leaves"].as_u64() {
            wrong.push(format!("{}: {} at {} left at {left:?}", case["name"], ask["url"], ask["at"]));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn requests_leave_by_their_routes() {
    let mut wrong = Vec::new();
    for line in include_str!("../../tests/vectors/routes.jsonl").lines() {
        play(serde_json::from_str(line).unwrap(), &mut wrong).await;
    }
    assert_eq!(wrong, Vec::<String>::new());
}
