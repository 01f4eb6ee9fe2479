//! Wrappers of a server: how it says no, what is behind it, what befalls it, who else is there.

use super::{Fixed, Reply, Server, seconds};
use crate::{
    rng::Rng,
    time::{Instant, Span},
    value::{number_text, whole_text},
};

/// Which header fields a server writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fields {
    /// None.
    Silent,
    /// `Retry-After` on refusals.
    RetryAfter,
    /// `RateLimit-Limit`, `-Remaining` and `-Reset` on every answer, `Retry-After` on refusals.
    RateLimit,
    /// The same as `X-RateLimit-*`, with `-Reset-After` in milliseconds' precision, as Discord has it.
    XRateLimit,
}

/// The fields in which a server states its limit: no word, `Retry-After` on refusals (whole seconds, rounded
/// up: RFC 9110 §10.2.3), or `RateLimit-*` on every answer as well (draft-ietf-httpapi-ratelimit-headers-06,
/// which most servers speak).
pub struct Telling {
    inside: Box<dyn Server>,
    fields: Fields,
    says: Option<Span>,
}

impl Telling {
    /// Lets `inside` write these fields; `says` is a `Retry-After` that it gives whatever the truth.
    pub fn new(inside: Box<dyn Server>, fields: Fields, says: Option<Span>) -> Self {
        Self { inside, fields, says }
    }
}

impl Server for Telling {
    fn arrive(&mut self, now: Instant, rng: &mut Rng) -> Reply {
        let mut reply = self.inside.arrive(now, rng);
        let lines = &mut reply.headers;
        if let Some(left) = reply.quota {
            let prefix = match self.fields {
                Fields::XRateLimit => "x-ratelimit-",
                Fields::RateLimit => "ratelimit-",
                _ => "",
            };
            if !prefix.is_empty() {
                lines.push_str(&line(&[prefix, "limit"], &whole_text(left.limit)));
                lines.push_str(&line(&[prefix, "remaining"], &whole_text(left.remaining)));
                let ms = left.reset.micros().div_ceil(1000);
                let (name, reset) = match self.fields {
                    Fields::RateLimit => ("reset", whole(left.reset)),
                    _ => ("reset-after", number_text(ms as f64 / 1000.0)),
                };
                lines.push_str(&line(&[prefix, name], &reset));
            }
        }
        if self.fields != Fields::Silent
            && reply.status >= 400
            && let Some(wait) = self.says.or(reply.wait)
        {
            lines.push_str(&line(&["retry-after"], &whole(wait)));
        }
        reply
    }

    fn inside(&self) -> Option<&dyn Server> {
        Some(&*self.inside)
    }
}

/// Seconds, rounded up.
fn whole(span: Span) -> String {
    whole_text(span.micros().div_ceil(1_000_000))
}

/// A header field. Not by `write!`, which is kilobytes of code.
fn line(name: &[&str], value: &str) -> String {
    [&name.concat(), ": ", value, "\n"].concat()
}

/// Several budgets, each with its routes: what is used up refuses its own alone. Source: GitHub's resources,
/// Discord's buckets.
///
/// An answer that says 0 left says so of one budget.
pub struct Budgets {
    inside: Vec<(String, Box<dyn Server>)>,
    /// The place of each route's budget.
    routes: Vec<usize>,
    /// The field that names the budget; empty for none.
    names: String,
    budget: usize,
}

impl Budgets {
    /// These, by name; `routes` has the place of each route's budget, `names` the field that says its name.
    pub fn new(inside: Vec<(String, Box<dyn Server>)>, routes: Vec<usize>, names: String) -> Self {
        Self { inside, routes, names, budget: 0 }
    }
}

impl Server for Budgets {
    fn choose(&mut self, route: u32) {
        self.budget = self.routes.get(route as usize).copied().unwrap_or(0);
    }

    fn arrive(&mut self, now: Instant, rng: &mut Rng) -> Reply {
        let (name, inside) = &mut self.inside[self.budget];
        let mut reply = inside.arrive(now, rng);
        if !self.names.is_empty() {
            reply.headers.push_str(&line(&[&self.names], name));
        }
        reply
    }

    fn limit(&self, now: Instant) -> f64 {
        self.inside.iter().map(|(_, each)| each.limit(now)).sum()
    }

    fn last_step(&self) -> Option<Instant> {
        self.inside.first()?.1.last_step()
    }
}

/// Longer than any client waits.
const FOR_EVER: Span = Span::from_micros(365 * 86_400_000_000);

/// The kind of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A response.
    Status(u16),
    /// No answer ever.
    Silence,
    /// The connection is closed.
    Reset,
}

/// How a server says no: with a status of its own, by silence, by a connection that it closes. Source: nginx
/// (503), gateways (502), firewalls of Cloudflare and Akamai (403), nginx's `return 444`.
///
/// A client that takes only 429 for a refusal floods the others.
pub struct Refusing {
    inside: Box<dyn Server>,
    refusal: Refusal,
}

impl Refusing {
    /// A refusal of `inside` takes this form.
    pub fn new(inside: Box<dyn Server>, refusal: Refusal) -> Self {
        Self { inside, refusal }
    }
}

impl Server for Refusing {
    fn arrive(&mut self, now: Instant, rng: &mut Rng) -> Reply {
        let reply = self.inside.arrive(now, rng);
        if !reply.is_refused {
            return reply;
        }
        match self.refusal {
            Refusal::Status(status) => Reply { status, ..reply },
            Refusal::Silence => Reply { service: FOR_EVER, ..Reply::refused(0) },
            Refusal::Reset => Reply::refused(0),
        }
    }

    fn inside(&self) -> Option<&dyn Server> {
        Some(&*self.inside)
    }
}

/// The upstream behind the limit takes its time, and not always the same: served requests are answered later
/// than refused ones, and overtake each other. Source: any application behind nginx.
///
/// A client that counts answers as they come counts requests that were sent at another
/// pace.
pub struct Upstream {
    inside: Box<dyn Server>,
    time: Span,
    spread: f64,
}

impl Upstream {
    /// `time` more for each that is served, uniform within ±`spread` of it.
    pub fn new(inside: Box<dyn Server>, time: Span, spread: f64) -> Self {
        Self { inside, time, spread }
    }
}

impl Server for Upstream {
    fn arrive(&mut self, now: Instant, rng: &mut Rng) -> Reply {
        let mut reply = self.inside.arrive(now, rng);
        if reply.status < 400 {
            let factor = 1.0 + self.spread * (2.0 * rng.draw().unit() - 1.0);
            reply.service = reply.service + self.time.times(factor);
        }
        reply
    }

    fn inside(&self) -> Option<&dyn Server> {
        Some(&*self.inside)
    }
}

/// Some requests fail whatever their pace, and faster than others succeed: a deployment, a broken backend
/// behind a balancer.
///
/// Failures are fast, so a controller that looks at latency speeds up (Scrapy's
/// `AutoThrottle` never lets them lower the delay).
pub struct Failing {
    inside: Box<dyn Server>,
    share: f64,
    status: u16,
}

impl Failing {
    /// A `share` of requests ends with `status` at once.
    pub fn new(inside: Box<dyn Server>, share: f64, status: u16) -> Self {
        Self { inside, share, status }
    }
}

impl Server for Failing {
    fn arrive(&mut self, now: Instant, rng: &mut Rng) -> Reply {
        if rng.draw().unit() < self.share {
            return Reply { status: self.status, is_chance: true, ..Reply::default() };
        }
        self.inside.arrive(now, rng)
    }

    fn inside(&self) -> Option<&dyn Server> {
        Some(&*self.inside)
    }
}

/// An outage: for a while every request fails, whatever its pace. Source: a deployment, a gateway without its
/// backend.
///
/// To a client it looks like a ban. A ban is the price of a pace, so one stays slower; an outage
/// is no news of the limit.
pub struct Outage {
    inside: Box<dyn Server>,
    from: Instant,
    to: Instant,
}

impl Outage {
    /// From `at` on everything is a 503, for `length`.
    pub fn new(inside: Box<dyn Server>, at: Span, length: Span) -> Self {
        let from = Instant::default() + at;
        Self { inside, from, to: from + length }
    }
}

impl Server for Outage {
    fn arrive(&mut self, now: Instant, rng: &mut Rng) -> Reply {
        if (self.from..self.to).contains(&now) {
            // A gateway that is asked to say so gives half a minute at most.
            let wait = Some(self.to.since(now).min(Span::from_micros(30_000_000)));
            return Reply { status: 503, is_chance: true, wait, ..Reply::default() };
        }
        self.inside.arrive(now, rng)
    }

    fn limit(&self, now: Instant) -> f64 {
        if (self.from..self.to).contains(&now) { 0.0 } else { self.inside.limit(now) }
    }

    fn last_step(&self) -> Option<Instant> {
        Some(self.to)
    }
}

/// A second limit over a longer time: a number of requests a day, whatever the pace. Source: the daily and
/// monthly quotas of most paid APIs, beside their limits a second.
pub struct Allowance {
    inside: Box<dyn Server>,
    quota: Fixed,
}

impl Allowance {
    /// At most `limit` of those that `inside` would serve per `window`.
    pub fn new(inside: Box<dyn Server>, limit: u32, window: Span) -> Self {
        Self { inside, quota: Fixed::new(limit, window) }
    }
}

impl Server for Allowance {
    fn arrive(&mut self, now: Instant, rng: &mut Rng) -> Reply {
        if self.quota.is_used_up(now) {
            return self.quota.arrive(now, rng);
        }
        let reply = self.inside.arrive(now, rng);
        if reply.status < 400 {
            self.quota.arrive(now, rng);
        }
        reply
    }

    fn limit(&self, now: Instant) -> f64 {
        self.inside.limit(now).min(self.quota.limit(now))
    }

    fn inside(&self) -> Option<&dyn Server> {
        Some(&*self.inside)
    }
}

/// A penalty box: who is refused is out for a while, and each request in that while makes it longer. Source:
/// fail2ban, Cloudflare's `mitigation_timeout`, `blockDuration` of rate-limiter-flexible.
pub struct PenaltyBox {
    inside: Box<dyn Server>,
    ban: Span,
    until: Option<Instant>,
    /// The status.
    status: u16,
}

impl PenaltyBox {
    /// Refusals of `inside` are bans.
    pub fn new(inside: Box<dyn Server>, ban: Span) -> Self {
        Self { inside, ban, until: None, status: 429 }
    }
}

impl Server for PenaltyBox {
    fn arrive(&mut self, now: Instant, rng: &mut Rng) -> Reply {
        let is_banned = self.until.is_some_and(|until| now < until);
        let reply = if is_banned { Reply::refused(self.status) } else { self.inside.arrive(now, rng) };
        if !reply.is_refused {
            return reply;
        }
        self.status = reply.status;
        self.until = Some(now + self.ban);
        Reply { wait: Some(self.ban), ..reply }
    }

    fn inside(&self) -> Option<&dyn Server> {
        Some(&*self.inside)
    }
}

/// How the limit moves, as a factor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// From `at` on it is `factor` times what it was.
    Step {
        /// When.
        at: Instant,
        /// By how much.
        factor: f64,
    },
    /// Up to `factor` times and back, evenly, once in a `period`.
    Drift {
        /// There and back.
        period: Span,
        /// At the far end.
        factor: f64,
    },
}

impl Change {
    fn factor(self, now: Instant) -> f64 {
        match self {
            Self::Step { at, factor } if now >= at => factor,
            Self::Step { .. } => 1.0,
            Self::Drift { period, factor } => {
                let phase = (now.micros() % period.micros()) as f64 / period.micros() as f64;
                1.0 + (factor - 1.0) * (1.0 - (2.0 * phase - 1.0).abs())
            }
        }
    }
}

/// A limit that moves: the server inside lives in a time that runs faster or slower, so any kind of limit can
/// step or drift. Source: autoscaling, deployments, plans that change, other people's load.
pub struct Moving {
    inside: Box<dyn Server>,
    change: Change,
    last: Instant,
    /// The time inside, in microseconds.
    time: f64,
}

impl Moving {
    /// `inside` with its limit changed so.
    pub fn new(inside: Box<dyn Server>, change: Change) -> Self {
        Self { inside, change, last: Instant::default(), time: 0.0 }
    }
}

impl Server for Moving {
    fn arrive(&mut self, now: Instant, rng: &mut Rng) -> Reply {
        let factor = self.change.factor(now);
        let before = match self.change {
            Change::Step { at, .. } if self.last < at && at < now => {
                self.time += at.since(self.last).micros() as f64;
                at
            }
            _ => self.last,
        };
        self.time += now.since(before).micros() as f64 * factor;
        self.last = now;
        let mut reply = self.inside.arrive(Instant::from_micros(self.time as u64), rng);
        reply.service = reply.service.times(1.0 / factor);
        reply.wait = reply.wait.map(|wait| wait.times(1.0 / factor));
        reply
    }

    fn limit(&self, now: Instant) -> f64 {
        self.inside.limit(now) * self.change.factor(now)
    }

    fn last_step(&self) -> Option<Instant> {
        match self.change {
            Change::Step { at, .. } => Some(at),
            Change::Drift { .. } => self.inside.last_step(),
        }
    }
}

/// A limit that each refusal lowers, and that comes back slowly. Source: servers that score their clients.
///
/// A touch of the limit costs more than the refusal.
pub struct Adaptive {
    inside: Moving,
    /// The factor of the limit.
    now: f64,
    at: Instant,
    factor: f64,
    recovery: f64,
}

impl Adaptive {
    /// Each refusal multiplies the limit by `factor`; a share of `recovery` of the whole comes back a second.
    pub fn new(inside: Box<dyn Server>, factor: f64, recovery: f64) -> Self {
        let whole = Change::Step { at: Instant::default(), factor: 1.0 };
        Self { inside: Moving::new(inside, whole), now: 1.0, at: Instant::default(), factor, recovery }
    }
}

impl Server for Adaptive {
    fn arrive(&mut self, now: Instant, rng: &mut Rng) -> Reply {
        self.inside.change = Change::Step { at: Instant::default(), factor: self.now };
        let reply = self.inside.arrive(now, rng);
        self.now = (self.now + seconds(now.since(self.at)) * self.recovery).min(1.0);
        self.at = now;
        if reply.is_refused {
            self.now = (self.now * self.factor).max(0.01);
        }
        reply
    }

    fn limit(&self, now: Instant) -> f64 {
        self.inside.inside.limit(now)
    }
}

/// Traffic of others on the same limit, which comes and goes: Poisson arrivals for a part of each period.
/// Source: an API key that several jobs share, an address behind which several people sit.
///
/// Others take what they get and never slow down, so `limit` is what they leave on average. The best constant
/// rate is less: it must be what is left while they are there.
pub struct Others {
    inside: Box<dyn Server>,
    rate: f64,
    period: Span,
    share: f64,
    next: Instant,
}

impl Others {
    /// `rate` requests a second in the last `share` of each `period`.
    pub fn new(inside: Box<dyn Server>, rate: f64, period: Span, share: f64) -> Self {
        Self { inside, rate, period, share, next: Instant::default() }
    }

    fn is_there(&self, at: Instant) -> bool {
        let phase = (at.micros() % self.period.micros()) as f64 / self.period.micros() as f64;
        phase >= 1.0 - self.share
    }

    /// Minus the logarithm of a draw, by its series: a library's differs from machine to machine.
    fn exponential(rng: &mut Rng) -> f64 {
        let (mut left, mut sum) = (1.0 - rng.draw().unit(), 0.0);
        while left < 0.5 {
            left *= 2.0;
            sum += core::f64::consts::LN_2;
        }
        let base = (1.0 - left) / (1.0 + left);
        let (mut term, mut series) = (base, 0.0);
        for power in 0..20 {
            series += term / f64::from(2 * power + 1);
            term *= base * base;
        }
        sum + 2.0 * series
    }
}

impl Server for Others {
    fn arrive(&mut self, now: Instant, rng: &mut Rng) -> Reply {
        while self.next <= now {
            let at = self.next;
            if self.is_there(at) {
                self.inside.arrive(at, rng);
            }
            self.next = at + Span::from_micros((Self::exponential(rng) / self.rate * 1e6) as u64 + 1);
        }
        self.inside.arrive(now, rng)
    }

    fn limit(&self, now: Instant) -> f64 {
        let others = if self.is_there(now) { self.rate } else { 0.0 };
        // No less than one in the period: a limit of zero has no ratio.
        (self.inside.limit(now) - others).max(1.0 / seconds(self.period))
    }

    fn inside(&self) -> Option<&dyn Server> {
        Some(&*self.inside)
    }
}

/// Several servers behind a balancer, each with a limit of its own: a request goes to one of them by chance.
/// Source: nginx instances without a shared zone, Kong's `local` policy in a cluster.
///
/// A refusal by one says little, for the others still serve.
pub struct Replicas {
    inside: Vec<Box<dyn Server>>,
}

impl Replicas {
    /// These.
    pub fn new(inside: Vec<Box<dyn Server>>) -> Self {
        Self { inside }
    }
}

impl Server for Replicas {
    fn arrive(&mut self, now: Instant, rng: &mut Rng) -> Reply {
        let index = (rng.draw().unit() * self.inside.len() as f64) as usize;
        self.inside[index].arrive(now, rng)
    }

    fn limit(&self, now: Instant) -> f64 {
        self.inside.iter().map(|each| each.limit(now)).sum()
    }

    fn last_step(&self) -> Option<Instant> {
        self.inside.first()?.last_step()
    }
}
