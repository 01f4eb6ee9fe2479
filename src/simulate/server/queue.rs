//! Workers behind a queue: it refuses no request at first, and each waits longer. A gateway before it gives
//! up with 504 after its patience while the worker goes on, and a queue that is full is a 503. Source: M/G/k;
//! gunicorn's `backlog`, nginx's `proxy_read_timeout`.
//!
//! Service times are drawn: uniform within ±`spread` of their mean.

use super::{Reply, Server, seconds};
use crate::{
    rng::Rng,
    time::{Instant, Span},
};

/// Its workers and when each is free.
#[derive(Clone, Debug)]
pub struct Queue {
    free: Vec<Instant>,
    service: Span,
    spread: f64,
    patience: Span,
    room: u32,
}

impl Queue {
    /// `workers` with a mean `service`; a queue of `room`, and a gateway with `patience`.
    pub fn new(workers: u32, service: Span, spread: f64, room: u32, patience: Span) -> Self {
        let free = vec![Instant::default(); workers.max(1) as usize];
        Self { free, service, spread, patience, room }
    }
}

impl Server for Queue {
    fn arrive(&mut self, now: Instant, rng: &mut Rng) -> Reply {
        let (index, free) =
            self.free.iter().copied().enumerate().min_by_key(|&(_, at)| at).unwrap_or((0, now));
        let wait = free.since(now);
        let queued = seconds(wait) * self.limit(now);
        if queued >= f64::from(self.room) {
            return Reply { wait: Some(wait), ..Reply::refused(503) };
        }
        let time = self.service.times(1.0 + self.spread * (2.0 * rng.draw().unit() - 1.0));
        self.free[index] = free.max(now) + time;
        let service = self.free[index].since(now);
        if service > self.patience {
            return Reply { status: 504, service: self.patience, ..Reply::default() };
        }
        Reply { service, ..Reply::simple(true) }
    }

    fn limit(&self, _: Instant) -> f64 {
        self.free.len() as f64 / seconds(self.service)
    }
}
