//! The result of a simulation, in figures that compare across servers: ratios to the limit, counts per
//! minute.
//!
//! *Settled* is the second half. Largest burst: how deep a token bucket at the limit's own rate must be to
//! let one client's sends through (σ in Cruz's calculus, 1991). Fairness: Jain's index, (Σx)² ÷ nΣx² (Jain,
//! Chiu, Hawe 1984).

use std::collections::BinaryHeap;

use super::{
    Client,
    world::{Exchange, Place, World},
};
use crate::{
    time::{Instant, Span},
    value::Value,
};

/// The figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Requests that reached the server, and how they ended.
    pub sent: u64,
    /// Served.
    pub served: u64,
    /// Refused by the limit, whatever it said.
    pub refused: u64,
    /// Any other bad end: by chance, by a gateway, or the client gave up.
    pub failed: u64,
    /// Served ÷ what the limit allows, settled.
    pub utilisation: f64,
    /// Refused ÷ sent, in the whole.
    pub share_refused: f64,
    /// Bad ends per minute, settled.
    pub refusals_per_minute: f64,
    /// Requests that failed by chance: at another pace they would have failed as well.
    pub background: u64,
    /// The same per minute, settled: part of `refusals_per_minute`.
    pub background_per_minute: f64,
    /// Milliseconds until 90 % of the limit were kept up for five seconds or ten requests; `None` for never.
    pub reached_ms: Option<f64>,
    /// The same after the limit last stepped; `None` where it never does, or for never.
    pub regained_ms: Option<f64>,
    /// See above.
    pub burst: f64,
    /// Between clients, settled; 1 is even.
    pub fairness: f64,
    /// The mean of what was served, in milliseconds.
    pub latency_ms: f64,
}

impl<C: Client> World<C> {
    /// The figures up to now.
    pub fn summary(&self) -> Summary {
        let (exchanges, clients, places) = (self.exchanges(), self.clients().len(), self.places());
        let end = self.until();
        let half = Instant::from_micros(end.micros() / 2);
        let seen: Vec<(Instant, &Exchange)> =
            exchanges.iter().filter_map(|exchange| Some((exchange.arrived?, exchange))).collect();
        let count =
            |of: &dyn Fn(&(Instant, &Exchange)) -> bool| seen.iter().filter(|seen| of(seen)).count() as u64;
        let refused = count(&|(_, exchange)| exchange.is_refused);
        let background = count(&|(_, exchange)| exchange.is_chance);
        let late_background = count(&|(at, exchange)| *at >= half && exchange.is_chance);
        let late_bad = count(&|(at, exchange)| *at >= half && !exchange.is_served());
        let seconds = (end.since(half).micros() as f64 / 1e6).max(1e-6);
        let mut good: BinaryHeap<Instant> = BinaryHeap::new();
        let mut shares = vec![0_f64; clients];
        let mut waited = 0.0;
        for (at, exchange) in seen.iter().filter(|(_, exchange)| exchange.is_served()) {
            good.push(*at);
            if *at >= half {
                shares[exchange.client as usize] += 1.0;
            }
            waited += exchange.answered.map_or(0.0, |answered| answered.since(exchange.sent).millis());
        }
        // By a heap: a general sort is kilobytes of code.
        let good = good.into_sorted_vec();
        let served = good.len() as u64;
        let from_start = |from: Instant| reached(&good, from, end, places);
        let step = places.iter().filter_map(Place::last_step).max();
        let total: f64 = shares.iter().sum();
        let squares: f64 = shares.iter().map(|share| share * share).sum();
        Summary {
            sent: seen.len() as u64,
            served,
            refused,
            failed: seen.len() as u64 - served - refused,
            utilisation: total / (mean_limit(places, half, end) * seconds),
            share_refused: refused as f64 / (seen.len() as f64).max(1.0),
            refusals_per_minute: late_bad as f64 / seconds * 60.0,
            background,
            background_per_minute: late_background as f64 / seconds * 60.0,
            reached_ms: from_start(Instant::default()).map(Span::millis),
            regained_ms: step.and_then(from_start).map(Span::millis),
            burst: burst(exchanges, clients, places),
            fairness: if total > 0.0 { total * total / (shares.len() as f64 * squares) } else { 1.0 },
            latency_ms: waited / (served as f64).max(1.0),
        }
    }
}

/// The deepest bucket of any client at any server.
fn burst(exchanges: &[Exchange], clients: usize, places: &[Place]) -> f64 {
    let mut buckets = vec![(0_f64, Instant::default()); clients * places.len()];
    let mut most = 0_f64;
    for exchange in exchanges {
        let server = exchange.server as usize;
        let (fill, last) = &mut buckets[exchange.client as usize * places.len() + server];
        let seconds = exchange.sent.since(*last).micros() as f64 / 1e6;
        let drained = seconds * places[server].limit(exchange.sent);
        (*fill, *last) = ((*fill - drained).max(0.0) + 1.0, exchange.sent);
        most = most.max(*fill);
    }
    most
}

/// Requests per second that the servers bear, all of them together.
fn limit(places: &[Place], at: Instant) -> f64 {
    places.iter().map(|place| place.limit(at)).sum()
}

/// Requests per second that the servers bore on average.
fn mean_limit(places: &[Place], from: Instant, to: Instant) -> f64 {
    const SAMPLES: u64 = 1000;
    let step = to.since(from).micros() as f64 / SAMPLES as f64;
    let at = |index: u64| from + Span::from_micros((step * (index as f64 + 0.5)) as u64);
    (0..SAMPLES).map(|index| limit(places, at(index))).sum::<f64>() / SAMPLES as f64
}

/// From `from` to the first instant after which 90 % of the limit is kept up.
fn reached(good: &[Instant], from: Instant, end: Instant, places: &[Place]) -> Option<Span> {
    let first = good.partition_point(|&at| at < from);
    (first..good.len()).find_map(|index| {
        let start = good[index];
        let limit = limit(places, start);
        let span = (10.0 / limit).max(5.0);
        let until = start + Span::from_micros((span * 1e6) as u64);
        let served = good.partition_point(|&at| at < until) - index;
        (until <= end && served as f64 >= 0.9 * limit * span).then(|| start.since(from))
    })
}

impl From<&Summary> for Value {
    fn from(summary: &Summary) -> Self {
        let entry = |(key, value): (&str, Value)| (key.to_string(), value);
        let entries = [
            ("sent", Value::Number(summary.sent as f64)),
            ("served", Value::Number(summary.served as f64)),
            ("refused", Value::Number(summary.refused as f64)),
            ("failed", Value::Number(summary.failed as f64)),
            ("utilisation", summary.utilisation.into()),
            ("shareRefused", summary.share_refused.into()),
            ("refusalsPerMinute", summary.refusals_per_minute.into()),
            ("background", Value::Number(summary.background as f64)),
            ("backgroundPerMinute", summary.background_per_minute.into()),
            ("reachedMs", summary.reached_ms.into()),
            ("regainedMs", summary.regained_ms.into()),
            ("burst", summary.burst.into()),
            ("fairness", summary.fairness.into()),
            ("latencyMs", summary.latency_ms.into()),
        ];
        Self::Map(entries.into_iter().map(entry).collect())
    }
}
