//! Rate limits, backoff and `Retry-After` for clients of [tower](https://docs.rs/tower) and reqwest: a request
//! leaves when your limits and its server allow it.
//!
//! ```
//! use autothrottle_tower::{Options, Throttle};
//! # async fn fetch() -> Result<http::Response<()>, std::io::Error> { Ok(http::Response::new(())) }
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let options = Options { rate: Some(5.into()), ..Options::default() };       // five a second to each host
//! let throttle = Throttle::new(options)?;
//! for _ in 0..10 {
//!     let response = throttle.run("https://api.example/items", fetch).await?;
//!     assert_eq!(response?.status(), 200);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! * [`Throttle`] is a [`tower::Layer`] for each service that takes an [`http::Request`].
//! * [`Retry`] is a [`tower::retry::Policy`]: it sends again what may be sent again, not before the server asked.
//! * `Robots` (feature `robots`) keeps to each host's robots.txt: what it allows, and its `Crawl-delay`.
//! * `Local` and `Redis` (features of those names) share limits with other processes, of Node and Python, too.
//! * With the feature `reqwest` it is a middleware of `reqwest-middleware`.
//!
//! [`Options`] has each setting with its meaning, range and default; with none, each host gets one request a
//! second. A file that serde reads will do, too: names are then those of [the table of
//! settings](https://github.com/autothrottle/autothrottle/blob/main/docs/settings.md), and times are
//! milliseconds.
//!
//! # The answers that it reads
//!
//! A throttle learns from answers: 429 and 503 make it back off, `Retry-After` and `RateLimit` fields hold it.
//! [`Throttle::run`] and the layer hear each [`http::Response`]; [`Permit::settle`] tells it by hand. A permit
//! that is dropped gives its slot back and changes no pace.
//!
//! # How it runs
//!
//! One task with one timer for each runtime in which requests of a throttle wait, and only while they do: so a
//! throttle may be a static of many runtimes. A shared one lives in the runtime of its first request. Without a
//! runtime a request that has to wait is refused. `tokio::time::pause` works. A dropped future gives its place back.

mod answer;
mod error;
#[cfg(feature = "_shared")]
mod event;
#[cfg(feature = "_shared")]
mod group;
mod host;
mod layer;
#[cfg(all(feature = "local", unix))]
mod local;
mod options;
mod permit;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "reqwest")]
mod reqwest;
mod retry;
#[cfg(feature = "robots")]
mod robots;
mod target;
mod throttle;
#[cfg(feature = "_shared")]
mod transport;

pub use answer::{Answer, Outcome};
pub use autothrottle::{ConfigError, Failure, Reason, ScopeStats, Stats};
#[cfg(feature = "_shared")]
pub use autothrottle_shared::{Offline, Role, Status};
pub use error::Error;
pub use layer::{BoxError, Throttled};
#[cfg(all(feature = "local", unix))]
pub use local::Local;
pub use options::*;
pub use permit::{Charge, Permit};
#[cfg(feature = "redis")]
pub use redis::Redis;
pub use retry::Retry;
#[cfg(feature = "robots")]
pub use robots::{Allowed, Robots};
pub use target::Target;
pub use throttle::Throttle;
#[cfg(feature = "_shared")]
pub use transport::By;
