//! A limit that moves: the server inside lives in a time that runs faster or slower, so any kind of limit can
//! step or drift. Source: autoscaling, deployments, plans that change, other people's load.

use super::{Reply, Server};
use crate::{
    rng::Rng,
    time::{Instant, Span},
};

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

/// A server in another time.
pub struct Moving {
    pub(super) inside: Box<dyn Server>,
    pub(super) change: Change,
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
