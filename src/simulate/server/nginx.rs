//! nginx's `limit_req`: a leaky bucket in thousandths of a request, told in whole milliseconds. What is above
//! the rate and below `burst` is delayed (or let through with `nodelay`), what is above is refused with 503,
//! its own default. Source: `ngx_http_limit_req_module.c` and its manual.

use super::{Reply, Server};
use crate::{
    rng::Rng,
    time::{Instant, Span},
};

/// Its settings and its excess.
#[derive(Clone, Debug)]
pub struct Nginx {
    rate: f64,
    burst: f64,
    is_delaying: bool,
    excess: f64,
    last_ms: Option<u64>,
}

impl Nginx {
    /// `limit_req_zone … rate=…r/s` and `limit_req burst=… [nodelay]`.
    pub fn new(rate: f64, burst: f64, is_delaying: bool) -> Self {
        Self { rate, burst, is_delaying, excess: 0.0, last_ms: None }
    }
}

impl Server for Nginx {
    fn arrive(&mut self, now: Instant, _: &mut Rng) -> Reply {
        let now_ms = now.micros() / 1000;
        // In thousandths: a first request has no excess, each later one adds a whole.
        let excess = match self.last_ms {
            None => 0.0,
            Some(last) => (self.excess - self.rate * (now_ms - last) as f64 + 1000.0).max(0.0),
        };
        if excess > self.burst * 1000.0 {
            let above = (excess - self.burst * 1000.0) / self.rate;
            return Reply { wait: Some(Span::from_millis(above)), ..Reply::refused(503) };
        }
        (self.excess, self.last_ms) = (excess, Some(now_ms));
        let service =
            if self.is_delaying { Span::from_millis((excess / self.rate).trunc()) } else { Span::ZERO };
        Reply { service, ..Reply::simple(true) }
    }

    fn limit(&self, _: Instant) -> f64 {
        self.rate
    }
}
