//! Merely failing answers (503, timeouts, 403) are no news by themselves: some servers fail at any pace.
//!
//! Page's test: a count that leaks at twice the *background*, the share that fails well below what was
//! accepted. It is an event where chance alone would bring it less than once in three windows. The trap is a
//! ratchet: if each failure were a refusal, one in a hundred would throttle a healthy server to a standstill.
//! And its opposite: a background that is guessed, or measured above the limit, explains every refusal. Only
//! failures at a pace that is clearly lower than one that was accepted are therefore background.

use super::{FEW, WIDE};

/// This many sends tell a background; twenty times as many are remembered.
const CLUSTER: f64 = 3.0 * FEW;
/// Each further failure is this many times rarer by chance: e^λ, where 1 + 2λ = e^λ.
const RARER: f64 = 3.51;
/// Less than six denials, each half a failure, are no event.
const DENIALS: f64 = 2.9;
/// Less than five strays are no event.
const STRAYS: f64 = 4.9;

/// An answer that is merely bad.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// A page is forbidden.
    Denial,
    /// It failed, of a server that says so plainly when it refuses.
    Stray,
    /// It failed, of a server that may refuse so.
    Failure,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Failing {
    /// Failures beyond the background.
    pub strikes: f64,
    /// How many failed, of how many sent clearly below the limit.
    failed: f64,
    sent: f64,
}

impl Failing {
    /// The share that fails whatever the pace: none until one did.
    fn share(&self) -> f64 {
        // A few more are taken to have gone well, since one of two that failed is no share. A leak of twice
        // that share detects failures of more than a third.
        (self.failed / (self.sent + FEW)).min(WIDE / 2.0)
    }

    /// `is_low`: clearly below the limit.
    pub fn on_send(&mut self, is_low: bool) {
        if is_low {
            self.failed -= self.failed / (20.0 * CLUSTER);
            self.sent = (self.sent + 1.0).min(20.0 * CLUSTER);
        }
        self.strikes = (self.strikes - 2.0 * self.share()).max(0.0);
    }

    /// Whether one more failed than chance explains, of `requests` in a window. A denial is half a failure. A
    /// denial during Start may be for its rate: it is no background.
    pub fn is_event(&mut self, kind: Kind, is_low: bool, is_start: bool, requests: f64) -> bool {
        let (weight, least) = match kind {
            Kind::Denial => (0.5, DENIALS),
            Kind::Stray => (1.0, STRAYS),
            Kind::Failure => (1.0, 0.9),
        };
        self.strikes += weight;
        if is_low && !(kind == Kind::Denial && is_start) {
            self.failed += weight;
        }
        let mut expected = if self.sent > CLUSTER { self.share() * requests } else { 0.0 };
        let mut chance: f64 = 0.0;
        while expected > 0.3 {
            expected /= RARER;
            chance += 1.0;
        }
        self.strikes >= chance.max(0.9 + 2.0 * (self.share() * CLUSTER).min(1.0)).max(least)
    }

    /// Hardly a request fails, as far as is remembered.
    pub fn is_calm(&self) -> bool {
        self.strikes == 0.0 && self.failed < 0.002 * (self.sent + FEW)
    }

    /// It was a refusal. Of what Start sent, half was clearly below the pace that is refused.
    pub fn on_event(&mut self, is_start: bool) {
        if is_start {
            self.failed = (self.failed - self.strikes).max(0.0) / 2.0;
            self.sent /= 2.0;
        }
        self.strikes = 0.0;
    }

    /// The limit is lower than was believed, so it was measured above it.
    pub fn forget(&mut self) {
        let kept = self.sent.min(CLUSTER);
        self.failed *= 0.5 * kept / self.sent.max(1.0);
        self.sent = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of a thousand sends bring an event, where one in `every` fails.
    fn events(failing: &mut Failing, every: u32, is_low: bool, kind: Kind) -> u32 {
        let mut events = 0;
        for index in 1..=1000 {
            failing.on_send(is_low);
            if index % every == 0 && failing.is_event(kind, is_low, false, 6000.0) {
                failing.strikes = 0.0;
                events += 1;
            }
        }
        events
    }

    #[test]
    fn a_failure_at_any_pace_is_no_event() {
        let mut failing = Failing::default();
        events(&mut failing, 50, true, Kind::Failure);
        assert_eq!(events(&mut failing, 50, true, Kind::Failure), 0, "two in a hundred, and always were");
        assert!(events(&mut failing, 5, false, Kind::Failure) > 10, "one in five, at a higher pace");
    }

    #[test]
    fn next_to_nothing_fails_below_the_limit_so_each_failure_above_it_counts() {
        let mut failing = Failing::default();
        for _ in 0..2000 {
            failing.on_send(true);
        }
        assert!(failing.is_event(Kind::Failure, false, false, 60.0));
    }

    #[test]
    fn a_flood_of_denials_is_heard_however_many_were_usual() {
        let mut failing = Failing::default();
        events(&mut failing, 3, true, Kind::Denial);
        assert_eq!(events(&mut failing, 3, true, Kind::Denial), 0, "a third is forbidden");
        assert!(events(&mut failing, 1, false, Kind::Denial) > 1, "now all of it");
    }

    #[test]
    fn less_than_five_strays_are_no_event() {
        let mut failing = Failing::default();
        let is_event = [(); 5].map(|()| failing.is_event(Kind::Stray, false, false, 60.0));
        assert_eq!(is_event, [false, false, false, false, true]);
    }

    #[test]
    fn of_what_failed_in_start_half_is_background() {
        let mut failing = Failing::default();
        events(&mut failing, 10, true, Kind::Failure);
        failing.strikes = 0.0;
        let (failed, sent) = (failing.failed, failing.sent);
        failing.on_event(true);
        assert_eq!((failing.failed, failing.sent), (failed / 2.0, sent / 2.0));
        failing.on_event(false);
        assert_eq!((failing.failed, failing.sent), (failed / 2.0, sent / 2.0), "later all of it");
    }

    #[test]
    fn a_refusal_in_start_is_no_background() {
        let mut failing = Failing::default();
        for _ in 0..4 {
            failing.on_send(true);
            failing.is_event(Kind::Denial, true, true, 60.0);
        }
        assert_eq!(failing.share(), 0.0);
        failing.is_event(Kind::Denial, true, false, 60.0);
        assert!(failing.share() > 0.0);
    }

    #[test]
    fn a_measure_above_the_limit_is_forgotten() {
        let mut failing = Failing::default();
        events(&mut failing, 10, true, Kind::Failure);
        let before = failing.share();
        failing.forget();
        assert!(failing.share() < before && failing.sent == CLUSTER);
    }
}
