//! So many at a time, each takes its time; one more is a 503 at once. Source: nginx's `limit_conn`, `maxconn` of a proxy without a queue.

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
    busy: Vec<Instant>,
}

impl Concurrency {
    /// `slots` at a time, `service` each.
    pub fn new(slots: u32, service: Span) -> Self {
        Self { slots: slots as usize, service, busy: Vec::new() }
    }
}

impl Server for Concurrency {
    fn arrive(&mut self, now: Instant, _: &mut Rng) -> Reply {
        self.busy.retain(|&until| until > now);
        if self.busy.len() >= self.slots {
            let wait = self.busy.iter().min().map(|&until| until.since(now));
            return Reply { status: 503, wait, ..Reply::default() };
        }
        self.busy.push(now + self.service);
        Reply { service: self.service, ..Reply::simple(true) }
    }

    fn limit(&self, _: Instant) -> f64 {
        self.slots as f64 / seconds(self.service)
    }
}
