//! A number at a time, each takes its time; one more is a 503 at once. Source: nginx's `limit_conn`,
//! `maxconn` of a proxy without a queue.
//!
//! Service times are drawn: uniform within ±`spread` of their mean.

use super::{Reply, Server, seconds};
use crate::{
    rng::Rng,
    time::{Instant, Span},
};

/// Its slots.
#[derive(Clone, Debug)]
pub struct Concurrency {
    slots: usize,
    service: Span,
    spread: f64,
    busy: Vec<Instant>,
}

impl Concurrency {
    /// `slots` at a time, a mean of `service` each.
    pub fn new(slots: u32, service: Span, spread: f64) -> Self {
        Self { slots: slots as usize, service, spread, busy: Vec::new() }
    }
}

impl Server for Concurrency {
    fn arrive(&mut self, now: Instant, rng: &mut Rng) -> Reply {
        self.busy.retain(|&until| until > now);
        if self.busy.len() >= self.slots {
            let wait = self.busy.iter().min().map(|&until| until.since(now));
            return Reply { wait, ..Reply::refused(503) };
        }
        let service = self.service.times(1.0 + self.spread * (2.0 * rng.draw().unit() - 1.0));
        self.busy.push(now + service);
        Reply { service, ..Reply::simple(true) }
    }

    fn limit(&self, _: Instant) -> f64 {
        self.slots as f64 / seconds(self.service)
    }
}
