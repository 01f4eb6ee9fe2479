//! `cargo run --features reqwest --example reqwest -- URL…`: asks for each URL, five a second to each host.

use autothrottle_tower::{Options, Throttle};
use reqwest_middleware::ClientBuilder;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let throttle = Throttle::new(Options { rate: Some(5.into()), ..Options::default() })?;
    let client = ClientBuilder::new(reqwest::Client::new()).with(throttle).build();
    for url in std::env::args().skip(1) {
        println!("{} {url}", client.get(&url).send().await?.status());
    }
    Ok(())
}
