//! GCRA: a theoretical arrival time that may run `burst` ahead. Source: ITU-T I.371; redis-cell, throttled.

use super::{Left, Reply, Server, time_for};
use crate::{
    rng::Rng,
    time::{Instant, Span},
};

/// Its limit and the theoretical arrival time.
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
