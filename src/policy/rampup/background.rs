//! Merely bad answers (503, timeouts) say nothing by themselves: some servers fail at any pace.
//!
//! A count that leaks at twice the *background*, the share that fails as well below the rate at which the
//! limit is believed to be. What fails more often than that fills it: the third beyond it is an event where
//! one in fifty fails or nothing is known yet, the first where next to nothing does. The trap is a ratchet:
//! if each failure were a refusal, two in a hundred would halve the pace within the hour. And its opposites:
//! a background that is never measured, so that one in fifty is refused for ever; three refusals for each
//! touch of a server that fails only because it has too much to do.
//!
//! Plain refusals (429) are the pace's, until the pace is far below what was borne, and they still come:
//! others take what there is, or one of several servers is full. Then they count in the same way.

/// What is assumed of the background before anything is known: one in so many. Forty times as many
/// are remembered.
const CLUSTER: f64 = 50.0;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Background {
    /// Bad answers beyond the background.
    strikes: f64,
    /// So many failed, of so many sent below the limit.
    bad: f64,
    sampled: f64,
}

impl Background {
    pub const NEW: Self = Self { strikes: 0.0, bad: 0.0, sampled: 0.0 };

    /// The share that fails whatever the pace; no more than one in twenty is taken for that.
    fn share(&self) -> f64 {
        ((self.bad + 1.0) / (self.sampled + CLUSTER)).min(0.05)
    }

    pub fn on_send(&mut self, is_below: bool) {
        if is_below {
            self.bad -= self.bad / (40.0 * CLUSTER);
            self.sample(1.0);
        }
        self.strikes = (self.strikes - 2.0 * self.share()).max(0.0);
    }

    /// Whether a merely bad answer is one too many.
    pub fn is_event(&mut self, is_below: bool) -> bool {
        self.is_beyond(is_below, 0.0)
    }

    /// The same of a plain refusal far below what was borne. What was seen at other paces is forgotten, and
    /// the first counts until more than one in fifty are refused.
    pub fn is_event_far_below(&mut self, is_below: bool) -> bool {
        self.sampled = self.sampled.min(CLUSTER);
        self.is_beyond(is_below, 1.0)
    }

    fn is_beyond(&mut self, is_below: bool, usual: f64) -> bool {
        self.strikes += 1.0;
        self.bad += f64::from(u8::from(is_below));
        self.strikes >= 0.9 + 2.0 * (self.share() * CLUSTER - usual).clamp(0.0, 1.0)
    }

    /// So many more were sent below the limit.
    pub fn sample(&mut self, sends: f64) {
        self.sampled = (self.sampled + sends).min(40.0 * CLUSTER);
    }

    pub fn on_event(&mut self) {
        self.strikes = 0.0;
    }
}
