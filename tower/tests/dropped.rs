//! A future that is dropped at any of its awaits loses no slot: each kind is dropped after its nth poll, and
//! where it was woken for the next one, for all n. Then the same work goes to its end.
//!
//! The last n is the first where the work was done.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use autothrottle_tower::{Outcome, Retry, Throttle};
use http::{Request, Response};
use serde_json::{Value, json};
use tokio::{
    task::yield_now,
    time::{sleep, timeout},
};
use tower::{ServiceBuilder, ServiceExt, service_fn};

const PAGE: &str = "https://a.example/";

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A future that is left alone after a number of polls.
struct Cut {
    work: Work,
    polls: u32,
    /// Whether it is left where it was woken, not where it began to wait.
    is_woken: bool,
}

impl Future for Cut {
    type Output = bool;

    /// Whether the work was done.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<bool> {
        if self.polls == 0 {
            return Poll::Ready(false);
        }
        self.polls -= 1;
        match self.work.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(true),
            Poll::Pending if self.polls == 0 && !self.is_woken => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Drops the work at each of its awaits. Gives how many there were.
async fn dropped_anywhere(throttle: &Throttle, work: impl Fn() -> Work) -> u32 {
    let mut awaits = 0;
    for is_woken in [false, true] {
        for polls in 1.. {
            // Another request has the only slot for a while.
            let first = throttle.acquire(PAGE).await.unwrap();
            let other = tokio::spawn(async move {
                yield_now().await;
                drop(first);
            });
            let is_done = Cut { work: work(), polls, is_woken }.await;
            other.await.unwrap();
            // The next request gets the slot, and the work goes to its end.
            timeout(Duration::from_secs(3600), work()).await.expect("a slot is lost");
            // A group's are of the writer, as this process heard them last.
            let stats = throttle.group().is_none().then(|| throttle.stats());
            assert!(
                stats.is_none_or(|stats| (stats.waiting, stats.in_flight) == (0, 0)),
                "dropped after {polls} polls"
            );
            if is_done {
                awaits = polls - 1;
                break;
            }
        }
    }
    awaits
}

fn throttle() -> Throttle {
    let retry = json!({ "limit": 3, "statusCodes": [503] });
    let backoff = json!({ "statusCodes": [], "jitter": 0 });
    let options: Value =
        json!({ "rate": 1000, "concurrency": 1, "jitter": false, "retry": retry, "backoff": backoff });
    Throttle::new(options).unwrap()
}

/// A server that answers after a while, every second time with a 503.
async fn answer(asked: &AtomicU32) -> Response<()> {
    yield_now().await;
    sleep(Duration::from_millis(3)).await;
    let is_bad = asked.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
    let response = Response::builder().status(if is_bad { 503 } else { 200 });
    (if is_bad { response.header("Retry-After", "1") } else { response }).body(()).unwrap()
}

fn get() -> Request<()> {
    Request::get(PAGE).body(()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_permit() {
    let throttle = throttle();
    let awaits = dropped_anywhere(&throttle, || {
        let throttle = throttle.clone();
        Box::pin(async move {
            let permit = throttle.acquire(PAGE).await.unwrap();
            yield_now().await;
            permit.settle(&Outcome::Nothing);
            yield_now().await;
        })
    })
    .await;
    assert_eq!(awaits, 3);
}

#[tokio::test(start_paused = true)]
async fn a_call() {
    let throttle = throttle();
    let awaits = dropped_anywhere(&throttle, || {
        let throttle = throttle.clone();
        let call = async || {
            sleep(Duration::from_millis(2)).await;
            Ok::<_, Infallible>(Response::new(()))
        };
        Box::pin(async move { assert_eq!(throttle.run(PAGE, call).await.unwrap().unwrap().status(), 200) })
    })
    .await;
    assert_eq!(awaits, 2);
}

#[tokio::test(start_paused = true)]
async fn a_layer_with_retries() {
    let throttle = throttle();
    let awaits = dropped_anywhere(&throttle, || {
        let asked = Arc::new(AtomicU32::new(0));
        let server = service_fn(move |_: Request<()>| {
            let asked = asked.clone();
            async move { Ok::<_, Infallible>(answer(&asked).await) }
        });
        let client =
            ServiceBuilder::new().retry(Retry::new(&throttle)).layer(throttle.clone()).service(server);
        Box::pin(async move { assert_eq!(client.oneshot(get()).await.unwrap().status(), 200) })
    })
    .await;
    // Its turn, the server's two awaits, what the server asked to wait, and the server's two again.
    assert_eq!(awaits, 6);
}

#[cfg(feature = "robots")]
#[tokio::test(start_paused = true)]
async fn robots_are_asked_again_by_who_comes_next() {
    use autothrottle_tower::Robots;
    use bytes::Bytes;
    use http::StatusCode;
    use http_body_util::Full;

    let throttle = throttle();
    let awaits = dropped_anywhere(&throttle, || {
        let server = service_fn(|_: Request<Full<Bytes>>| async {
            yield_now().await;
            Ok::<_, Infallible>(Response::new(Full::<Bytes>::from("User-agent: *\nAllow: /")))
        });
        let robots = Robots::new(&throttle, "my-bot/1.0");
        let client = ServiceBuilder::new().layer(robots).layer(throttle.clone()).service(server);
        let get = || Request::get(PAGE).body(Full::default()).unwrap();
        Box::pin(async move {
            let (first, second) = tokio::join!(client.clone().oneshot(get()), client.oneshot(get()));
            assert_eq!((first.unwrap().status(), second.unwrap().status()), (StatusCode::OK, StatusCode::OK));
        })
    })
    .await;
    assert!(awaits >= 6, "{awaits}: robots.txt and two requests, each with its turn and its answer");
}

/// In real time, for a socket cannot be played: no instant is asserted.
#[cfg(all(feature = "local", unix))]
#[tokio::test]
async fn a_permit_of_a_group() {
    use autothrottle_tower::Local;

    let folder = std::env::temp_dir().join(format!("at-{}-dropped", std::process::id()));
    let options = json!({ "delay": 0, "concurrency": 1 });
    let join = || Throttle::shared(&options, Local::new("crawl").folder(&folder)).unwrap();
    let (leader, member) = (join(), join());
    drop(leader.acquire(PAGE).await.unwrap());
    drop(member.acquire(PAGE).await.unwrap());
    for throttle in [&leader, &member] {
        let awaits = dropped_anywhere(throttle, || {
            let throttle = throttle.clone();
            Box::pin(async move {
                let permit = throttle.acquire(PAGE).await.unwrap();
                yield_now().await;
                permit.settle(&Outcome::Nothing);
            })
        })
        .await;
        assert_eq!(awaits, 2);
    }
    // All of the group have the slot, in turn, and leave.
    for throttle in [leader, member] {
        drop(throttle.acquire(PAGE).await.unwrap());
        throttle.leave().await;
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
