//! Traffic of others on the same limit, which comes and goes: Poisson arrivals for a part of each period.
//! Source: an API key that several jobs share, an address behind which several people sit.
//!
//! Others take what they get and never slow down, so `limit` is what they leave on average. What a constant
//! rate can reach at best is less: it must be what is left while they are there.

use super::{Reply, Server, seconds};
use crate::{
    rng::Rng,
    time::{Instant, Span},
};

/// A server that others use as well.
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

    fn last_step(&self) -> Option<Instant> {
        self.inside.last_step()
    }
}
