//! Servers with several budgets: what an answer says of one is for the requests that spend from it. And a
//! server that does not answer is down, as in every host: tower settles through the boundary as they do.

use std::time::Duration;

use autothrottle_tower::{Error, Failure, Outcome, Permit, Target, Throttle};
use http::{Method, Response};
use serde_json::json;
use tokio::time::timeout;

const SEARCH: &str = "https://api.github.com/search/code?q=1";
const USER: &str = "https://api.github.com/user";

/// An answer of GitHub's.
fn told(status: u16, resource: &str, left: u32) -> Response<()> {
    Response::builder()
        .status(status)
        .header("x-ratelimit-remaining", left)
        .header("x-ratelimit-reset", 60)
        .header("x-ratelimit-resource", resource)
        .body(())
        .unwrap()
}

async fn soon(throttle: &Throttle, url: &str) -> Permit {
    timeout(Duration::from_secs(30), throttle.acquire(url))
        .await
        .expect("none of its budget is used up")
        .unwrap()
}

async fn waits(throttle: &Throttle, url: &str) {
    let asked = timeout(Duration::from_secs(1), throttle.acquire(url)).await;
    assert!(asked.is_err(), "it would be refused");
}

async fn keeps_others(throttle: &Throttle) {
    soon(throttle, USER).await.settle(&told(200, "core", 4000));
    soon(throttle, SEARCH).await.settle(&told(403, "search", 0));
    for _ in 0..3 {
        soon(throttle, USER).await.settle(&told(200, "core", 3000));
    }
    waits(throttle, SEARCH).await;
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_is_used_up_keeps_no_other_back() {
    let throttle = Throttle::new(json!({ "seed": 1, "defaults": { "delay": 0, "concurrency": 4 } })).unwrap();
    keeps_others(&throttle).await;
    let before = tokio::time::Instant::now();
    drop(throttle.acquire(SEARCH).await.unwrap());
    assert!((50.0..65.0).contains(&before.elapsed().as_secs_f64()), "until its reset and no longer");
}

#[cfg(all(feature = "local", unix))]
#[tokio::test]
async fn a_group_does_it_as_well() {
    let folder = std::env::temp_dir().join(format!("autothrottle-budgets-{}", std::process::id()));
    let local = autothrottle_tower::Local::new("budgets").folder(&folder);
    let options = json!({ "defaults": { "delay": 0, "concurrency": 4 } });
    let [one, two] = [0; 2].map(|_| Throttle::shared(&options, local.clone()).unwrap());
    keeps_others(&one).await;
    drop(soon(&two, USER).await);
    waits(&two, SEARCH).await;
    one.leave().await;
    two.leave().await;
    let _ = std::fs::remove_dir_all(folder);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_request_goes_by_its_route_once_budgets_are_known() {
    let throttle = Throttle::new(json!({ "seed": 1, "defaults": { "delay": 0, "concurrency": 1 } })).unwrap();
    let first = throttle.acquire(SEARCH).await.unwrap();
    let waits = [SEARCH, USER].map(|url| {
        let throttle = throttle.clone();
        tokio::spawn(async move { throttle.acquire(url).await.unwrap().settle(&told(200, "core", 4000)) })
    });
    tokio::task::yield_now().await;
    first.settle(&told(200, "search", 0));
    tokio::time::sleep(Duration::from_secs(10)).await;
    let [search, user] = waits;
    assert_eq!((search.is_finished(), user.is_finished()), (false, true));
    search.abort();
}

#[tokio::test(start_paused = true)]
async fn methods_of_one_url_have_routes_of_their_own() {
    let throttle = Throttle::new(json!({ "seed": 1, "defaults": { "delay": 0, "concurrency": 4 } })).unwrap();
    let url = "https://discord.com/api/v10/channels/123/messages";
    let by = |method| Target::try_from(url).unwrap().method(method);
    for (method, name, left) in
        [(Method::GET, "reads", 4), (Method::POST, "writes", 0), (Method::GET, "reads", 4)]
    {
        let answer = Response::builder()
            .header("x-ratelimit-bucket", name)
            .header("x-ratelimit-remaining", left)
            .header("x-ratelimit-reset-after", 9)
            .body(())
            .unwrap();
        let permit = timeout(Duration::from_secs(6), throttle.acquire(by(method))).await.unwrap();
        permit.unwrap().settle(&answer);
    }
    let second = Duration::from_secs(1);
    assert!(timeout(second, throttle.acquire(by(Method::POST))).await.is_err());
    assert!(timeout(second, throttle.acquire(by(Method::GET))).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_is_down_and_what_waits_is_refused() {
    let options = json!({ "seed": 1, "defaults": { "downAfter": 2000, "concurrency": 1 } });
    let throttle = Throttle::new(options).unwrap();
    let mut waits = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let throttle = throttle.clone();
        waits.spawn(async move {
            throttle.acquire(USER).await?.settle(&Outcome::Failed(Failure::Connection));
            Ok(())
        });
    }
    let ended: Vec<Result<(), Error>> = waits.join_all().await;
    let is_down = |ended: &&Result<(), Error>| matches!(ended, Err(Error::ScopeDown { .. }));
    let down = ended.iter().filter(is_down).count();
    assert!((50..100).contains(&down), "{down}");
    assert!(ended.iter().all(|ended| ended.is_ok() || is_down(&ended)));
}
