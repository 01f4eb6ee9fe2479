//! One of several processes that share a limit: `group REDIS NAME OPTIONS URL…`. It fetches each URL; all
//! processes of that name together keep to the options. Features `redis` and `reqwest`.
//!
//! ```sh
//! cargo run --example group --features redis,reqwest -- redis://localhost crawl '{"rate": 5}' https://a.example
//! ```

use autothrottle_tower::{Redis, Throttle};
use reqwest_middleware::ClientBuilder;
use serde_json::Value;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("want REDIS NAME OPTIONS URL…");
    let (redis, name, options) = (redis::Client::open(next()?)?, next()?, next()?);
    let options: Value = serde_json::from_str(&options)?;
    let throttle = Throttle::shared(&options, Redis::new(redis, name))?;
    let client = ClientBuilder::new(reqwest::Client::new()).with(throttle.clone()).build();
    for url in arguments {
        println!("{} {url}", client.get(&url).send().await?.status());
    }
    throttle.leave().await;
    Ok(())
}
