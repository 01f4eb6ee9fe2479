//! `cargo bench --bench permits`: what one permit costs where no request has to wait, beside a semaphore of
//! tokio, other limiters and tower's own limits. Nanoseconds, the least of many rounds. `-- scope` measures
//! only what has this word in its name.
//!
//! A semaphore and a limiter hear no answer, and each has one key.

use std::{convert::Infallible, hint::black_box, num::NonZeroU32, time::Duration};

use autothrottle_tower::{Outcome, Target, Throttle};
use governor::{Quota, RateLimiter};
use http::{Request, Response};
use serde_json::json;
use tokio::{runtime, sync::Semaphore, time::Instant};
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};

/// The number is small, so that a round fits between two turns of other processes, also on a busy machine.
const CALLS: u32 = 500;
const ROUNDS: u32 = 400;

async fn measure<T>(name: &str, mut call: impl AsyncFnMut() -> T) {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with("--")).peekable();
    if words.peek().is_some() && !words.any(|word| name.contains(&word)) {
        return;
    }
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..CALLS {
            black_box(call().await);
        }
        least = least.min(start.elapsed().as_nanos() as f64 / f64::from(CALLS));
    }
    println!("{name:<42} {least:>7.0} ns");
}

async fn run() {
    let semaphore = Semaphore::new(1);
    measure("tokio::sync::Semaphore", async || semaphore.acquire().await.unwrap()).await;
    let most = NonZeroU32::MAX;
    let limiter = RateLimiter::direct(Quota::per_second(most).allow_burst(most));
    measure("governor, until_ready", async || limiter.until_ready().await).await;
    let bucket = leaky_bucket::RateLimiter::builder().initial(usize::MAX >> 1).max(usize::MAX >> 1).build();
    measure("leaky-bucket, acquire_one", async || bucket.acquire_one().await).await;
    let answer = |_: Request<()>| async { Ok::<_, Infallible>(Response::new(())) };
    let mut limited = ServiceBuilder::new().concurrency_limit(1).service(service_fn(answer));
    measure("tower, ConcurrencyLimit", async || limited.ready().await.unwrap().call(get()).await).await;
    let mut limited =
        ServiceBuilder::new().rate_limit(1 << 40, Duration::from_secs(1)).service(service_fn(answer));
    measure("tower, RateLimit", async || limited.ready().await.unwrap().call(get()).await).await;
    let open = Throttle::new(json!({ "delay": 0 })).unwrap();
    let mut layered = ServiceBuilder::new().layer(open.clone()).service(service_fn(answer));
    measure("Throttle, a layer", async || layered.ready().await.unwrap().call(get()).await).await;
    let scope = Target::scope("a.example");
    let ok = Outcome::Response { status: 200, headers: None };
    measure("Throttle, a scope", async || open.acquire(&scope).await.unwrap().settle(&ok)).await;
    let url = "https://a.example/items";
    measure("Throttle, a URL", async || open.acquire(url).await.unwrap().settle(&ok)).await;
    let rate = Throttle::new(json!({ "rate": { "limit": 1e6, "window": 1000, "burst": 1e6 } })).unwrap();
    measure("Throttle, a URL, with a rate", async || rate.acquire(url).await.unwrap().settle(&ok)).await;
}

fn get() -> Request<()> {
    Request::get("https://a.example/items").body(()).unwrap()
}

fn main() {
    let runtime = runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(300), run()).await }).unwrap();
}
