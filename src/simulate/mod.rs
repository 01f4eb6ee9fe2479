//! Servers with limits, networks with latency, in virtual time: what would these settings do to that server?
//!
//! ```text
//! client ──poll──► send ──latency──► server.arrive ──service, latency──► client.answered ──poll──► …
//! ```
//!
//! The client is the engine, driven through its public calls alone, or any other [`Client`] (a yardstick).
//! Everything is a function of the options and the seed. The trap is a simulator that is kinder than the
//! world: here timers fire late, requests overtake each other when the network jitters, a lost packet costs
//! its request a while, a client gives up after its timeout while the server goes on working, and headers are
//! text that the engine reads like any other.

mod client;
mod options;
pub mod server;
mod summary;

use std::{cmp::Reverse, collections::BinaryHeap};

use self::server::Server;
pub use self::{
    client::{Client, EngineClient, Load, Next},
    options::{ROWS, Simulation, TEXTS},
    summary::{Exchange, Summary, Trace},
};
use crate::{
    feedback::{Answer, Failure},
    rng::Rng,
    time::{Instant, Span},
};

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
    /// At most so much passes before the server looks at a request, drawn for each.
    pub server_jitter: Span,
    /// After which a client gives up.
    pub timeout: Span,
}

/// Something that happens. Ordered by time, then by when it was known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrival { index: usize },
    Answer { index: usize, status: u16, headers: String },
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

/// Lets `clients` loose on `server`. Without jitter and with equal latencies everything keeps its order.
/// `None` if it would take more requests than that.
pub fn run(
    clients: &mut [Box<dyn Client>],
    server: &mut dyn Server,
    network: Network,
    extent: Extent,
) -> Option<Trace> {
    let end = Instant::default() + extent.duration;
    let mut rng = Rng::new(extent.seed);
    let mut now = Instant::default();
    let mut known = 0_u64;
    let mut events: BinaryHeap<Reverse<(Instant, u64, Event)>> = BinaryHeap::new();
    let mut exchanges: Vec<Exchange> = Vec::new();
    let mut tickets: Vec<u64> = Vec::new();
    let mut wakes: Vec<Option<Instant>> = vec![Some(now); clients.len()];
    let half = Span::from_micros(network.latency.micros() / 2);
    let stray = |most: Span, rng: &mut Rng| match most {
        Span::ZERO => Span::ZERO,
        most => most.times(rng.draw().unit()),
    };
    let is_slow = |rng: &mut Rng| network.slow > 0.0 && rng.draw().unit() < network.slow;
    loop {
        for (who, client) in clients.iter_mut().enumerate() {
            if wakes[who].is_none_or(|at| at > now) {
                continue;
            }
            wakes[who] = loop {
                match client.next(now) {
                    Next::Send(_) if exchanges.len() >= extent.requests => return None,
                    Next::Send(ticket) => {
                        let index = exchanges.len();
                        exchanges.push(Exchange::sent(who as u32, now));
                        tickets.push(ticket);
                        known += 1;
                        let lost = if is_slow(&mut rng) { network.slow_by } else { Span::ZERO };
                        let at = now + half + lost + stray(network.jitter, &mut rng);
                        let at = at + stray(network.server_jitter, &mut rng);
                        events.push(Reverse((at, known, Event::Arrival { index })));
                    }
                    Next::At(at) => {
                        break Some(at + network.timer_lag + stray(network.timer_jitter, &mut rng));
                    }
                    Next::Never => break None,
                }
            };
        }
        let event = events.peek().map(|Reverse((at, ..))| *at);
        let Some(next) = wakes.iter().flatten().copied().chain(event).min().filter(|&at| at < end) else {
            break;
        };
        now = next.max(now);
        while events.peek().is_some_and(|Reverse((at, ..))| *at <= now) {
            let Some(Reverse((_, _, event))) = events.pop() else { break };
            match event {
                Event::Arrival { index } => {
                    let reply = server.arrive(now, &mut rng);
                    let exchange = &mut exchanges[index];
                    exchange.arrived = Some(now);
                    exchange.status = reply.status;
                    exchange.is_chance = reply.is_chance;
                    let back = now + reply.service + half + stray(network.jitter, &mut rng);
                    let given_up = exchange.sent + network.timeout;
                    let (at, status) = if back > given_up { (given_up, 0) } else { (back, reply.status) };
                    known += 1;
                    let answer = Event::Answer { index, status, headers: reply.headers };
                    events.push(Reverse((at.max(now), known, answer)));
                }
                Event::Answer { index, status, headers } => {
                    let exchange = &mut exchanges[index];
                    exchange.answered = Some(now);
                    exchange.status = status;
                    let who = exchange.client as usize;
                    let answer = match status {
                        0 => Answer::Failed(Failure::Timeout),
                        status => Answer::Response { status },
                    };
                    clients[who].answered(now, tickets[index], exchange.sent, answer, &headers);
                    wakes[who] = Some(now);
                }
            }
        }
    }
    Some(Trace { exchanges, clients: clients.len() as u32, duration: extent.duration })
}
