//! Limits that processes share through a real Redis: real time, for a server and its leases cannot be played.
//! The assertions are about counts and orders, no times that a busy machine could miss.
//!
//! Needs `redis-server` or `valkey-server`; without one it is skipped by name, with `TEST_ALL` it fails.
#![cfg(feature = "redis")]

use std::{
    io::{BufRead, BufReader},
    net::TcpListener,
    process::{Child, Command, Stdio},
    slice,
    time::Duration,
};

use autothrottle_tower::{Error, Offline, Redis, Role, Throttle};
use group::{OK, PAGE, role, take};
use http::Response;
use redis::Client;
use serde_json::{Value, json};

mod group;

/// A server of the test's own, which keeps no data.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start() -> Option<Self> {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = ["redis-server", "valkey-server"].into_iter().find_map(|name| Self::at(name, free));
        let must = std::env::var_os("TEST_ALL").is_some();
        assert!(server.is_some() || !must, "redis-server is missing");
        if server.is_none() {
            eprintln!("skipped: redis-server is missing");
        }
        server
    }

    fn at(name: &str, port: u16) -> Option<Self> {
        let quiet = ["--save", "", "--appendonly", "no", "--bind", "127.0.0.1", "--port", &port.to_string()];
        let mut child = Command::new(name).args(quiet).stdout(Stdio::piped()).spawn().ok()?;
        let lines = BufReader::new(child.stdout.take()?).lines();
        let is_ready = lines.map_while(Result::ok).any(|line| line.contains("Ready to accept"));
        assert!(is_ready, "{name} has ended");
        Some(Self { child, port })
    }

    fn client(&self) -> Client {
        Client::open(format!("redis://127.0.0.1:{}/", self.port)).unwrap()
    }

    fn throttle(&self, name: &str, options: &Value) -> Throttle {
        Throttle::shared(options, Redis::new(self.client(), name)).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn a_rate_and_a_quota_hold_for_all_of_a_group() {
    let Some(server) = Server::start() else { return };
    let (throttles, leader) = group::a_rate_holds(|options| server.throttle("rate", options)).await;
    assert_eq!(throttles[0].group().unwrap().members, Some(3));
    // The report of one process about all: its leader knows it, or it has heard.
    let leader = &throttles[leader];
    assert_eq!(leader.stats().sent, 30);
    assert!((leader.scope_stats("a.example").unwrap().delay_ms - 50.0).abs() < 0.1);

    group::a_quota_holds(|options| server.throttle("quota", options)).await;
}

/// GitHub's budgets: one that is used up keeps no request of another back, in whichever process an answer says so.
#[tokio::test]
async fn budgets_of_a_server_are_known_to_all_of_a_group() {
    let Some(server) = Server::start() else { return };
    let options = json!({ "defaults": { "delay": 0, "concurrency": 4 } });
    let [one, two] = [(); 2].map(|()| server.throttle("budgets", &options));
    let (user, search) = ("https://api.github.com/user", "https://api.github.com/search/code?q=1");
    for (url, status, resource, left) in [(user, 200, "core", 4000), (search, 403, "search", 0)] {
        let answer = Response::builder()
            .status(status)
            .header("x-ratelimit-remaining", left)
            .header("x-ratelimit-reset", 600)
            .header("x-ratelimit-resource", resource)
            .body(())
            .unwrap();
        one.acquire(url).await.unwrap().settle(&answer);
    }
    for throttle in [&one, &two, &one, &two] {
        let asked = tokio::time::timeout(Duration::from_secs(60), throttle.acquire(user));
        asked.await.expect("`core` is not used up").unwrap().settle(&OK);
    }
    for throttle in [&one, &two] {
        let asked = tokio::time::timeout(Duration::from_millis(500), throttle.acquire(search)).await;
        assert!(asked.is_err(), "a search would be refused");
    }
}

/// The one that decides leaves, or its throttle is dropped: another one decides.
#[tokio::test]
async fn a_leader_that_leaves_is_replaced() {
    let Some(server) = Server::start() else { return };
    let options = json!({ "rate": 50 });
    let first = server.throttle("leaves", &options);
    take(slice::from_ref(&first), 3).await;
    assert_eq!(role(&first), Role::Leader);
    let second = server.throttle("leaves", &options);
    take(slice::from_ref(&second), 3).await;
    assert_eq!(role(&second), Role::Member);
    first.leave().await;
    assert_eq!(role(&first), Role::Closed);
    assert!(matches!(first.acquire(PAGE).await, Err(Error::Invalid { .. })));
    take(slice::from_ref(&second), 3).await;
    assert_eq!(role(&second), Role::Leader);
    let third = server.throttle("leaves", &options);
    drop(second);
    take(&[third], 3).await;
}

/// A group's error for an operation that it does not allow has the reason.
#[tokio::test]
async fn a_store_that_does_not_allow_it_is_an_error() {
    let Some(server) = Server::start() else { return };
    let mut connection = server.client().get_multiplexed_async_connection().await.unwrap();
    let key = "autothrottle:{denied}:lease";
    let _: () = redis::cmd("LPUSH").arg(key).arg("x").query_async(&mut connection).await.unwrap();
    let denied = server.throttle("denied", &json!({})).acquire(PAGE).await;
    assert!(matches!(&denied, Err(Error::Denied { why }) if why.contains("WRONGTYPE")), "{denied:?}");

    let dear = autothrottle_tower::Target::scope("a").and("b", 20.0);
    let throttle = server.throttle("dear", &json!({ "quota": 10 }));
    let refused = throttle.acquire(&dear).await;
    let path = "quota".into();
    assert_eq!(refused.err(), Some(Error::CostExceedsQuota { scope: "b".into(), path }));
}

/// With `offline: fail` a process whose store is gone says so, and goes on when it is back.
#[tokio::test]
async fn a_store_that_is_gone_is_told_and_comes_back() {
    let Some(mut server) = Server::start() else { return };
    let redis = Redis::new(server.client(), "gone").offline(Offline::Fail);
    let throttle = Throttle::shared(json!({ "rate": 50 }), redis).unwrap();
    take(slice::from_ref(&throttle), 3).await;
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    let refused = loop {
        match throttle.acquire(PAGE).await {
            Ok(permit) => _ = permit.settle(&OK),
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, Error::Offline { .. }), "{refused:?}");
    let back = ["redis-server", "valkey-server"].into_iter().find_map(|name| Server::at(name, server.port));
    loop {
        match throttle.acquire(PAGE).await {
            Ok(permit) => break drop(permit),
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
    assert!(throttle.group().unwrap().offline_since.is_none());
    drop(back);
}
