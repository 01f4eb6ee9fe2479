//! Kinds of limits, each after what it models.

use std::collections::VecDeque;

use super::{Left, Reply, Server, seconds, time_for};
use crate::{
    rng::Rng,
    time::{Instant, Span},
};

/// A fixed window: a number of requests in each window of a grid. Source: Kong's `rate-limiting` (local
/// policy), Cloudflare's rules.
#[derive(Clone, Debug)]
pub struct Fixed {
    limit: u32,
    window: Span,
    index: u64,
    used: u32,
}

impl Fixed {
    /// `limit` per `window`, on a grid from the start.
    pub fn new(limit: u32, window: Span) -> Self {
        Self { limit, window, index: 0, used: 0 }
    }

    /// Whether the window is used up.
    pub(super) fn is_used_up(&self, now: Instant) -> bool {
        now.micros() / self.window.micros() == self.index && self.used >= self.limit
    }
}

impl Server for Fixed {
    fn arrive(&mut self, now: Instant, _: &mut Rng) -> Reply {
        let index = now.micros() / self.window.micros();
        if index != self.index {
            (self.index, self.used) = (index, 0);
        }
        let is_served = self.used < self.limit;
        self.used += u32::from(is_served);
        let reset = Span::from_micros(self.window.micros() - now.micros() % self.window.micros());
        Reply {
            wait: (self.used >= self.limit).then_some(reset),
            quota: Some(Left {
                limit: u64::from(self.limit),
                remaining: u64::from(self.limit - self.used),
                reset,
            }),
            ..Reply::simple(is_served)
        }
    }

    fn limit(&self, _: Instant) -> f64 {
        f64::from(self.limit) / seconds(self.window)
    }
}

/// A sliding log: never more than the limit in any window. Source: Redis sorted-set limiters, GitHub's
/// secondary limits.
#[derive(Clone, Debug)]
pub struct Sliding {
    limit: u32,
    window: Span,
    served: VecDeque<Instant>,
}

impl Sliding {
    /// `limit` in any `window`.
    pub fn new(limit: u32, window: Span) -> Self {
        Self { limit, window, served: VecDeque::new() }
    }
}

impl Server for Sliding {
    fn arrive(&mut self, now: Instant, _: &mut Rng) -> Reply {
        while self.served.front().is_some_and(|&at| now.since(at) >= self.window) {
            self.served.pop_front();
        }
        let is_served = self.served.len() < self.limit as usize;
        if is_served {
            self.served.push_back(now);
        }
        let left = u64::from(self.limit) - self.served.len() as u64;
        let reset = self.served.front().map_or(Span::ZERO, |&at| self.window - now.since(at));
        Reply {
            wait: (left == 0).then_some(reset),
            quota: Some(Left { limit: u64::from(self.limit), remaining: left, reset }),
            ..Reply::simple(is_served)
        }
    }

    fn limit(&self, _: Instant) -> f64 {
        f64::from(self.limit) / seconds(self.window)
    }
}

/// A sliding counter: the window before counts by how much of it is still in sight. Source: Cloudflare's
/// *How we built rate limiting*, Kong's `sliding` window type.
#[derive(Clone, Debug)]
pub struct Counter {
    limit: u32,
    window: Span,
    index: u64,
    before: u32,
    used: u32,
}

impl Counter {
    /// About `limit` per `window`.
    pub fn new(limit: u32, window: Span) -> Self {
        Self { limit, window, index: 0, before: 0, used: 0 }
    }
}

impl Server for Counter {
    fn arrive(&mut self, now: Instant, _: &mut Rng) -> Reply {
        let window = self.window.micros();
        let index = now.micros() / window;
        if index != self.index {
            self.before = if index == self.index + 1 { self.used } else { 0 };
            (self.index, self.used) = (index, 0);
        }
        let left = Span::from_micros(window - now.micros() % window);
        let seen = f64::from(self.before) * left.micros() as f64 / window as f64 + f64::from(self.used);
        let is_served = seen + 1.0 <= f64::from(self.limit);
        self.used += u32::from(is_served);
        let remaining = (f64::from(self.limit) - seen - f64::from(u8::from(is_served))).max(0.0);
        Reply {
            wait: (remaining < 1.0).then_some(left),
            quota: Some(Left { limit: u64::from(self.limit), remaining: remaining as u64, reset: left }),
            ..Reply::simple(is_served)
        }
    }

    fn limit(&self, _: Instant) -> f64 {
        f64::from(self.limit) / seconds(self.window)
    }
}

/// A token bucket: `rate` tokens a second, at most `depth` of them. Source: AWS API Gateway, Stripe's
/// limiter.
#[derive(Clone, Debug)]
pub struct Bucket {
    rate: f64,
    depth: f64,
    tokens: f64,
    at: Instant,
}

impl Bucket {
    /// `rate` tokens a second, full with `depth` of them.
    pub fn new(rate: f64, depth: f64) -> Self {
        Self { rate, depth, tokens: depth, at: Instant::default() }
    }
}

impl Server for Bucket {
    fn arrive(&mut self, now: Instant, _: &mut Rng) -> Reply {
        self.tokens = (self.tokens + seconds(now.since(self.at)) * self.rate).min(self.depth);
        self.at = now;
        // A microsecond's worth is the rounding of time, not a limit.
        let is_served = self.tokens >= 1.0 - self.rate * 1e-6;
        if is_served {
            self.tokens -= 1.0;
        }
        let wait = time_for(1.0 - self.tokens, self.rate);
        Reply {
            wait: (self.tokens < 1.0).then_some(wait),
            quota: Some(Left {
                limit: self.depth as u64,
                remaining: self.tokens.max(0.0) as u64,
                reset: time_for(self.depth - self.tokens, self.rate),
            }),
            ..Reply::simple(is_served)
        }
    }

    fn limit(&self, _: Instant) -> f64 {
        self.rate
    }
}

/// GCRA: a theoretical arrival time that may run `burst` ahead. Source: ITU-T I.371; redis-cell, throttled.
#[derive(Clone, Debug)]
pub struct Gcra {
    rate: f64,
    burst: u32,
    due: Instant,
}

impl Gcra {
    /// `rate` a second, `burst` beyond the first at once.
    pub fn new(rate: f64, burst: u32) -> Self {
        Self { rate, burst, due: Instant::default() }
    }

    fn emission(&self) -> Span {
        Span::from_micros((1e6 / self.rate) as u64)
    }
}

impl Server for Gcra {
    fn arrive(&mut self, now: Instant, _: &mut Rng) -> Reply {
        let tolerance = Span::from_micros(self.emission().micros() * u64::from(self.burst));
        let due = self.due.max(now);
        let ahead = due.since(now);
        let is_served = ahead <= tolerance;
        if is_served {
            self.due = due + self.emission();
        }
        let ahead = self.due.since(now);
        let left = (tolerance + self.emission() - ahead).micros() / self.emission().micros().max(1);
        Reply {
            wait: (ahead > tolerance).then(|| ahead - tolerance),
            quota: Some(Left {
                limit: u64::from(self.burst) + 1,
                remaining: left,
                reset: time_for(ahead.micros() as f64 / 1e6 * self.rate, self.rate),
            }),
            ..Reply::simple(is_served)
        }
    }

    fn limit(&self, _: Instant) -> f64 {
        self.rate
    }
}

/// nginx's `limit_req`: a leaky bucket in thousandths of a request, told in whole milliseconds. A request
/// above the rate and below `burst` is delayed (or let through with `nodelay`), one above is refused with
/// 503, its own default. Source: `ngx_http_limit_req_module.c` and its manual.
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

/// A number at a time, each takes its time; one more is a 503 at once. Source: nginx's `limit_conn`,
/// `maxconn` of a proxy without a queue.
///
/// Service times are drawn: uniform within ±`spread` of their mean.
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

/// Workers behind a queue: it refuses no request at first, and each waits longer. A gateway before it gives
/// up with 504 after its patience while the worker goes on, and a queue that is full is a 503. Source: M/G/k;
/// gunicorn's `backlog`, nginx's `proxy_read_timeout`.
///
/// Service times are drawn: uniform within ±`spread` of their mean.
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
