//! Rules of one group of throttles, whichever way its processes share a limit.

use std::time::Duration;

use autothrottle_tower::{Outcome, Role, Throttle};
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::Instant};

pub const PAGE: &str = "https://a.example/";
pub const OK: Outcome<'_> = Outcome::Response { status: 200, headers: None };

pub fn role(throttle: &Throttle) -> Role {
    throttle.group().unwrap().role
}

/// Each of them takes this many permits; gives when they left, in order.
pub async fn take(throttles: &[Throttle], each: usize) -> Vec<Instant> {
    let mut tasks = JoinSet::new();
    for throttle in throttles.iter().cycle().take(throttles.len() * each) {
        let throttle = throttle.clone();
        tasks.spawn(async move {
            let permit = throttle.acquire(PAGE).await.unwrap();
            let sent = permit.sent_at();
            permit.settle(&OK);
            sent
        });
    }
    let mut sent = tasks.join_all().await;
    sent.sort();
    sent
}

/// Three of a group keep to one rate, and one of them decides. Gives them, and the one that decides.
pub async fn a_rate_holds(throttle: impl Fn(&Value) -> Throttle) -> ([Throttle; 3], usize) {
    let throttles = [(); 3].map(|()| throttle(&json!({ "rate": 20 })));
    let sent = take(&throttles, 10).await;
    let all = sent[29].duration_since(sent[0]);
    assert!(all > Duration::from_millis(29 * 50 - 100), "thirty left within {all:?}");
    let roles = throttles.each_ref().map(role);
    assert_eq!(roles.iter().filter(|role| **role == Role::Leader).count(), 1, "{roles:?}");
    let leader = roles.iter().position(|role| *role == Role::Leader).unwrap();
    (throttles, leader)
}

/// Three of a group spend one quota.
pub async fn a_quota_holds(throttle: impl Fn(&Value) -> Throttle) {
    let options = json!({ "delay": 0, "concurrency": 30, "quota": { "limit": 10, "window": 600_000 } });
    let throttles = [(); 3].map(|()| throttle(&options));
    let mut tasks = JoinSet::new();
    for throttle in throttles.iter().cycle().take(30) {
        let throttle = throttle.clone();
        tasks.spawn(async move { throttle.acquire(PAGE).await.unwrap().settle(&OK) });
    }
    for _ in 0..10 {
        tasks.join_next().await.unwrap().unwrap();
    }
    let eleventh = tokio::time::timeout(Duration::from_millis(500), tasks.join_next()).await;
    assert!(eleventh.is_err(), "an eleventh");
}
