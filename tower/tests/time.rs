//! When requests leave, in virtual time.

use std::{
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::Poll,
    time::Duration,
};

use autothrottle_tower::{Error, Outcome, Target, Throttle};
use http::Response;
use serde_json::json;
use tokio::time::{Instant, advance, sleep, timeout};

const PAGE: &str = "https://a.example/";

fn response(status: u16) -> Response<()> {
    Response::builder().status(status).body(()).unwrap()
}

async fn told(status: u16) -> Response<()> {
    sleep(Duration::from_millis(10)).await;
    response(status)
}

#[tokio::test(start_paused = true)]
async fn five_a_second_leave_two_hundred_milliseconds_apart() {
    let throttle = Throttle::new(json!({ "rate": 5 })).unwrap();
    let start = Instant::now();
    let mut sent = Vec::new();
    for _ in 0..5 {
        let permit = throttle.acquire(PAGE).await.unwrap();
        sent.push(permit.sent_at().duration_since(start).as_millis());
        permit.settle(&response(200));
    }
    assert_eq!(sent, [0, 200, 400, 600, 800]);
    assert_eq!((throttle.stats().sent, throttle.stats().settled, throttle.stats().in_flight), (5, 5, 0));
}

#[tokio::test(start_paused = true)]
async fn hosts_do_not_wait_for_each_other() {
    let throttle = Throttle::new(json!({})).unwrap();
    let start = Instant::now();
    for host in ["a", "b", "c"] {
        throttle.run(&format!("https://{host}.example/"), || told(200)).await.unwrap();
    }
    assert_eq!(start.elapsed().as_millis(), 30);
}

#[tokio::test(start_paused = true)]
async fn a_retry_after_holds_the_host() {
    let throttle = Throttle::new(json!({ "delay": 0 })).unwrap();
    let start = Instant::now();
    let answer = throttle
        .run(PAGE, async || Response::builder().status(429).header("Retry-After", "7").body(()).unwrap())
        .await;
    assert_eq!(answer.unwrap().status(), 429);
    let permit = throttle.acquire(PAGE).await.unwrap();
    // A second more, where the server speaks whole seconds.
    assert!(permit.sent_at().duration_since(start) >= Duration::from_secs(7));
}

#[tokio::test(start_paused = true)]
async fn an_error_is_a_connection_that_failed_and_steps_back() {
    let throttle = Throttle::new(json!({ "delay": 0, "backoff": { "jitter": 0 } })).unwrap();
    let failed = async || Err::<Response<()>, _>(std::io::Error::from(std::io::ErrorKind::ConnectionRefused));
    assert!(throttle.run(PAGE, failed).await.unwrap().is_err());
    let start = Instant::now();
    throttle.acquire(PAGE).await.unwrap().settle(&Outcome::Nothing);
    assert_eq!(start.elapsed().as_millis(), 1000);
    assert_eq!(throttle.scope_stats("a.example").unwrap().backoff_step, 1);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_permit_gives_its_slot_back() {
    let throttle = Throttle::new(json!({ "delay": 0, "maxInFlight": 1 })).unwrap();
    let first = throttle.acquire(PAGE).await.unwrap();
    assert!(timeout(Duration::from_secs(3), throttle.acquire(PAGE)).await.is_err());
    assert_eq!(throttle.stats().waiting, 0, "who gives up waits no longer");
    drop(first);
    drop(throttle.acquire(PAGE).await.unwrap());
    assert_eq!(throttle.stats().in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn a_future_that_is_dropped_at_any_instant_loses_nothing() {
    let throttle =
        Throttle::new(json!({ "rate": 100, "maxInFlight": 4, "defaults": { "concurrency": 2 } })).unwrap();
    let mut tasks = Vec::new();
    for each in 0..400_u64 {
        let throttle = throttle.clone();
        let work = async move {
            let host = each % 3;
            throttle.run(&format!("https://{host}.example/"), || told(200)).await.unwrap();
        };
        // Each gives up at another instant: waiting, in the turn of its permit, in flight.
        tasks.push(tokio::spawn(timeout(Duration::from_millis(each * 7 % 2000), work)));
    }
    let mut done = 0;
    for task in tasks {
        done += u32::from(task.await.unwrap().is_ok());
    }
    let stats = throttle.stats();
    assert_eq!((stats.waiting, stats.in_flight), (0, 0));
    assert!((50..400).contains(&done), "{done} were served, the others gave up");
    throttle.run(PAGE, || told(200)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_wait() {
    let throttle = Throttle::new(json!({ "rate": 10_000, "maxInFlight": 100 })).unwrap();
    let served = Arc::new(AtomicU32::new(0));
    let start = Instant::now();
    let tasks: Vec<_> = (0..100_000)
        .map(|_| {
            let (throttle, served) = (throttle.clone(), served.clone());
            tokio::spawn(async move {
                drop(throttle.acquire(PAGE).await.unwrap());
                served.fetch_add(1, Ordering::Relaxed);
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(served.load(Ordering::Relaxed), 100_000);
    assert!(start.elapsed() >= Duration::from_millis(9_999));
}

#[tokio::test(start_paused = true)]
async fn tokens_are_corrected_after_the_answer() {
    let tokens = json!({ "rate": { "limit": 6000, "window": 60000, "burst": 6000 } });
    let throttle = Throttle::new(json!({ "delay": 0, "scopes": { "tokens": tokens } })).unwrap();
    let call = |cost| Target::scope("calls").and("tokens", cost);
    let start = Instant::now();
    let mut first = throttle.acquire(call(1000.0)).await.unwrap().settle(&Outcome::Nothing);
    // It cost 7000: of a bucket of 6000 a thousand is owed.
    first.adjust("tokens", 7000.0).unwrap();
    let second = throttle.acquire(call(500.0)).await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(15), "1500 of 100 a second");
    let mut second = second.settle(&Outcome::Nothing);
    second.adjust("tokens", 0.0).unwrap();
    drop(throttle.acquire(call(500.0)).await.unwrap());
    assert_eq!(start.elapsed(), Duration::from_secs(15), "what was not spent came back");
    assert_eq!(second.adjust("calls", f64::NAN), Err(Error::NotANumber));
    assert_eq!(second.adjust("other", 1.0), Err(Error::NoScope { scope: "other".into() }));
    let error = throttle.acquire(call(6001.0)).await.unwrap_err();
    assert_eq!(error, Error::CostExceedsQuota { scope: "tokens".into(), path: "scopes.tokens.rate".into() });
}

#[tokio::test(start_paused = true)]
async fn scopes_costs_and_priorities() {
    let throttle = Throttle::new(json!({ "delay": 0, "scopes": { "tokens": { "quota": 100 } } })).unwrap();
    let call = |cost| Target::scope("calls").and("tokens", cost);
    drop(throttle.acquire(call(60.0)).await.unwrap());
    assert!(timeout(Duration::from_secs(30), throttle.acquire(call(60.0))).await.is_err());
    let error = throttle.acquire(call(101.0)).await.unwrap_err();
    assert_eq!(error, Error::CostExceedsQuota { scope: "tokens".into(), path: "scopes.tokens.quota".into() });
    assert_eq!(
        error.to_string(),
        r#"the request costs more than scopes.tokens.quota allows in the scope "tokens""#
    );

    let order = Cell::new(0);
    let taken = throttle.acquire(Target::scope("one")).await.unwrap();
    let wait = async |priority| {
        let permit = throttle.acquire(Target::scope("one").priority(priority)).await.unwrap();
        let turn = order.replace(order.get() + 1);
        drop(permit);
        turn
    };
    let (low, high, ()) = tokio::join!(wait(0.0), wait(1.0), async { drop(taken) });
    assert_eq!((low, high), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_cost_that_cannot_be_counted_is_refused() {
    let throttle = Throttle::new(json!({})).unwrap();
    for url in ["/items", "api.example", "", "data:text/plain,x", "https://", "no url"] {
        let error = throttle.acquire(url).await.unwrap_err();
        assert_eq!(error, Error::NoHost { uri: url.into() });
    }
    let error = throttle.acquire(Target::scope("a").and("b", f64::NAN)).await.unwrap_err();
    assert_eq!(error, Error::NotANumber);
    let wrong = Throttle::new(json!({ "ratee": 5, "delay": -1 })).unwrap_err().to_string();
    assert!(wrong.contains("ratee") && wrong.contains("delay: want"), "{wrong}");
}

#[tokio::test(start_paused = true)]
async fn settings_may_change_while_requests_wait() {
    let throttle = Throttle::new(json!({ "delay": 60_000, "jitter": false })).unwrap();
    drop(throttle.acquire(PAGE).await.unwrap());
    let start = Instant::now();
    let waits = throttle.acquire(PAGE);
    let changes = async {
        advance(Duration::from_secs(1)).await;
        throttle.configure("a.example", json!({ "delay": 2000 })).unwrap();
    };
    let (permit, ()) = tokio::join!(waits, changes);
    assert_eq!(permit.unwrap().sent_at().duration_since(start).as_millis(), 2000);
}

/// A runtime that ends takes the timer's task with it: the next one starts another.
#[test]
fn a_throttle_outlives_its_runtime() {
    let throttle = Throttle::new(json!({ "rate": 100 })).unwrap();
    for _ in 0..2 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            for _ in 0..3 {
                drop(throttle.acquire(PAGE).await.unwrap());
            }
            let waits = tokio::spawn({
                let throttle = throttle.clone();
                // An hour: however busy the machine is, it waits when its runtime ends.
                let late = Target::scope("late").delay(Duration::from_secs(3600));
                async move { drop(throttle.acquire(late).await) }
            });
            tokio::task::yield_now().await;
            assert!(!waits.is_finished());
        });
    }
    assert_eq!((throttle.stats().waiting, throttle.stats().sent), (0, 6));
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

/// A static in parallel tests: one runtime stands still or ends, and requests of the other go on.
#[test]
fn runtimes_that_share_a_throttle_do_not_wait_for_each_other() {
    let throttle = Throttle::new(json!({ "rate": 100, "concurrency": 8 })).unwrap();
    let waits = |target: Target| {
        let throttle = throttle.clone();
        async move { drop(throttle.acquire(target).await) }
    };
    let late = || Target::scope("late").delay(Duration::from_secs(3600));
    let page = || Target::scope("page");
    let first = runtime();
    first.block_on(async {
        tokio::spawn(waits(late()));
        tokio::task::yield_now().await;
    });
    assert_eq!(throttle.stats().waiting, 1, "the timer's task of the first runtime stands still");
    let second = runtime();
    let minute = Duration::from_secs(60);
    let all = || async {
        timeout(minute, async {
            for _ in 0..3 {
                waits(page()).await
            }
        })
        .await
    };
    second.block_on(all()).expect("the second has its own");
    let blocked = second.spawn(waits(Target::scope("page").delay(Duration::from_millis(50))));
    second.block_on(tokio::task::yield_now());
    drop(first);
    second
        .block_on(async { timeout(minute, blocked).await })
        .expect("the end of the first is nothing to it")
        .unwrap();
    drop(second);
    runtime().block_on(all()).expect("nor that of both");
    assert_eq!(throttle.stats().waiting, 0);
}

#[test]
fn a_request_that_has_to_wait_without_a_runtime_is_refused() {
    let throttle = Throttle::new(json!({ "rate": 5 })).unwrap();
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let mut asks = || std::pin::pin!(throttle.acquire(PAGE)).poll(&mut context);
    let Poll::Ready(Ok(permit)) = asks() else { panic!("the first leaves at once") };
    let Poll::Ready(Err(error)) = asks() else { panic!("it would hang") };
    assert_eq!(error, Error::NoRuntime);
    let timeless = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(timeless.block_on(throttle.acquire(PAGE)).unwrap_err(), Error::NoRuntime);
    drop(permit);
    assert_eq!((throttle.stats().waiting, throttle.stats().in_flight), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_goes_on_where_it_was_taken() {
    let options = json!({ "backoff": { "jitter": 0 } });
    let first = Throttle::new(options.clone()).unwrap();
    first.acquire(PAGE).await.unwrap().settle(&response(503));
    let stored = serde_json::to_string(&first.snapshot()).unwrap();
    let stored: serde_json::Value = serde_json::from_str(&stored).unwrap();
    let second = Throttle::restore(options.clone(), stored).unwrap();
    assert_eq!(second.scope_stats("a.example").unwrap().backoff_step, 1);
    let wrong = Throttle::restore(options, json!({ "version": 1, "scopes": 5 })).unwrap_err();
    assert_eq!(wrong.problems[0].path, "scopes");
}

#[tokio::test(start_paused = true)]
async fn a_scope_is_paused_held_and_reset_by_hand() {
    let throttle = Throttle::new(json!({ "delay": 0 })).unwrap();
    let start = Instant::now();
    throttle.pause("a.example");
    assert!(timeout(Duration::from_secs(3), throttle.acquire(PAGE)).await.is_err());
    throttle.resume("a.example");
    throttle.hold("a.example", Duration::from_secs(2));
    throttle.acquire(PAGE).await.unwrap().settle(&response(200));
    assert_eq!(start.elapsed().as_millis(), 5000);
    throttle.hold("a.example", Duration::from_secs(2));
    throttle.reset("a.example");
    throttle.acquire(PAGE).await.unwrap().settle(&response(200));
    assert_eq!(start.elapsed().as_millis(), 5000);
}
