//! Servers with limits, networks with latency, in virtual time: what would these settings do to that server?
//!
//! ```text
//! client ──poll──► send ──latency──► server.arrive ──service, latency──► client.answered ──poll──► …
//! ```
//!
//! The client is the engine, driven through its public calls alone, or any other [`Client`].
//! Everything is a function of the options and the seed. Timers fire late, requests overtake each other when
//! the network jitters, and a lost packet costs its request a while. A client gives up after its timeout
//! while the server goes on working, and headers are text that the engine reads like any other.
//!
//! | file | concern |
//! |---|---|
//! | `world` | what happens when, up to an instant |
//! | `live` | a world that is stepped, looked at and changed while it goes on |
//! | `client` | who sends |
//! | [`server`] | what becomes of a request that arrives |
//! | `options`, `read` | what may be typed; what was |
//! | `summary` | the figures |

mod client;
mod live;
mod options;
mod read;
pub mod server;
mod summary;
mod world;

pub use self::{
    client::{Client, Departure, EngineClient, Load, Next},
    live::{Live, PlayedServer},
    options::{ROWS, TEXTS},
    read::Simulation,
    summary::Summary,
    world::{Exchange, Happening, Place, Trace, World},
};
use crate::time::Span;

/// The way between clients and server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Network {
    /// There and back, without the server's own time.
    pub latency: Span,
    /// At most so much more, each way, drawn anew for each request.
    pub jitter: Span,
    /// The share of requests that are late by `slow_by` more: a packet was lost.
    pub slow: f64,
    /// How late those are.
    pub slow_by: Span,
    /// How late a client's timers fire at least.
    pub timer_lag: Span,
    /// At most so much more, drawn for each timer.
    pub timer_jitter: Span,
    /// After which a client gives up.
    pub timeout: Span,
}

/// How long a simulation goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// In simulated time.
    pub duration: Span,
    /// Requests at most: each is remembered.
    pub requests: usize,
    /// Of the network's chance.
    pub seed: u64,
}
