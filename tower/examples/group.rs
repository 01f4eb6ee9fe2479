//! One of several processes that share a limit: `group WAY NAME OPTIONS URL…`, where the way is a Redis or a
//! folder of this machine. It fetches each URL; all processes of that name together keep to the options.
//! Features `local`, `redis` and `reqwest`, on Unix.
//!
//! ```sh
//! cargo run --example group --all-features -- redis://localhost crawl '{"rate": 5}' https://a.example
//! cargo run --example group --all-features -- /run/user/1000/mine crawl '{"rate": 5}' https://a.example
//! ```

#[cfg(unix)]
#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    use autothrottle_tower::{Local, Redis, Throttle};
    use reqwest_middleware::ClientBuilder;
    use serde_json::Value;

    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("want WAY NAME OPTIONS URL…");
    let (way, name, options) = (next()?, next()?, next()?);
    let options: Value = serde_json::from_str(&options)?;
    let throttle = if way.starts_with("redis") {
        Throttle::shared(&options, Redis::new(redis::Client::open(way)?, name))?
    } else {
        Throttle::shared(&options, Local::new(name).folder(way))?
    };
    let client = ClientBuilder::new(reqwest::Client::new()).with(throttle.clone()).build();
    for url in arguments {
        println!("{} {url}", client.get(&url).send().await?.status());
    }
    throttle.leave().await;
    Ok(())
}

#[cfg(not(unix))]
fn main() {}
