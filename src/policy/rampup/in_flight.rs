//! Some servers limit how many they serve at a time, not how many in a second.
//!
//! Refusals that come at an unusual number in flight *vote* for that number less one as the limit, a cap.
//! They vote only if a cap of that size would serve as much as the rate that was accepted. The cap is probed
//! once in a while, like the rate. The trap is a cap that explains every refusal: each lowers it, and one
//! that would leave less than the rate that was accepted contradicts it. Then the next one needs twice the
//! votes.

use super::{NEARLY, WIDE};
use crate::time::Instant;

/// This many votes make a cap.
const VOTES: i32 = 6;

/// The state of the number in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct InFlight {
    /// In flight at the last send, that one included.
    pub now: u32,
    /// The usual time from send to answer, in microseconds.
    usual: f64,
    /// The mean of the last ones.
    mean_latency: f64,
    votes: i32,
    cap: Option<u32>,
    /// When the cap last changed.
    changed: Instant,
}

impl InFlight {
    pub fn is_capped(&self) -> bool {
        self.cap.is_some()
    }

    /// The mean time from send to answer, in microseconds.
    pub fn latency(&self) -> f64 {
        self.mean_latency
    }

    /// How many may be in flight at this gap.
    pub fn slots(&self, gap: f64) -> u32 {
        let gap = if self.is_capped() { gap / 2.0 } else { gap };
        self.cap.unwrap_or(u32::MAX).min(self.room(gap) as u32)
    }

    fn room(&self, gap: f64) -> f64 {
        if self.usual > 0.0 { self.usual / (WIDE * gap) + 8.0 } else { f64::MAX }
    }

    /// An answer took so long; the cap is probed after `dwell`.
    pub fn on_good(&mut self, now: Instant, latency: f64, gap: f64, dwell: f64) {
        if self.usual == 0.0 {
            (self.usual, self.mean_latency) = (latency, latency);
        }
        self.mean_latency += (latency - self.mean_latency) / 32.0;
        // Latency that grows is a queue's, until it has lasted for long; what is less is believed at once.
        if self.mean_latency < self.usual {
            self.usual = self.mean_latency;
        } else if f64::from(self.now) < 0.7 * self.room(gap) {
            self.usual += (self.mean_latency - self.usual) / 1024.0;
        }
        if let Some(cap) = self.cap
            && now.since(self.changed).micros() as f64 > dwell
        {
            (self.cap, self.changed) = (Some(cap + u32::from(self.now >= cap)), now);
        }
    }

    /// A request that was sent at `sent` was refused at this gap; `accepted` is the gap at which requests
    /// were served. Whether the number is to blame.
    pub fn on_bad(&mut self, now: Instant, sent: Instant, accepted: f64, gap: f64) -> bool {
        let fewer = self.cap.unwrap_or(self.now).saturating_sub(1);
        // This many at a time serve as much as the rate that was accepted.
        let is_enough = fewer > 0 && self.usual / f64::from(fewer) <= NEARLY * accepted;
        if self.cap.is_none() {
            // Half as many again as the rate puts there.
            let is_unusual = f64::from(self.now) > 1.5 * self.usual / gap;
            self.votes += if is_unusual && is_enough { 1 } else { -i32::from(self.votes > 0) };
            if self.votes < VOTES {
                return false;
            }
        } else if sent < self.changed {
            return true; // old news
        } else if !is_enough {
            (self.cap, self.votes) = (None, -VOTES);
            return false;
        }
        (self.cap, self.changed, self.votes) = (Some(fewer), now, 0);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> Instant = |seconds| Instant::from_micros(seconds * 1_000_000);
    /// A gap that six at a time allow at a second an answer.
    const ACCEPTED: f64 = 1e6 / 6.0;
    /// One that puts two in flight.
    const GAP: f64 = 5e5;

    /// Its answers take a second. Seven at a time were refused as often as makes a cap.
    fn capped() -> InFlight {
        let mut in_flight = InFlight::default();
        in_flight.on_good(AT(1), 1e6, GAP, 1e9);
        for vote in 1..=VOTES {
            in_flight.now = 7;
            assert_eq!(in_flight.on_bad(AT(2), AT(1), ACCEPTED, GAP), vote == VOTES);
        }
        assert_eq!(in_flight.cap, Some(6));
        in_flight
    }

    #[test]
    fn the_first_cap_is_lowered_whenever_it_is_refused() {
        let mut in_flight = capped();
        assert!(in_flight.on_bad(AT(9), AT(1), ACCEPTED, GAP), "sent before the cap: old news");
        assert_eq!(in_flight.cap, Some(6));
        assert!(in_flight.on_bad(AT(9), AT(3), ACCEPTED * 2.0, GAP));
        assert_eq!(in_flight.cap, Some(5));
    }

    /// A number that is usual at this gap is not to blame.
    #[test]
    fn a_usual_number_takes_a_vote_back() {
        let mut in_flight = InFlight::default();
        in_flight.on_good(AT(1), 1e6, GAP, 1e9);
        for (flying, votes) in [(7, 1), (7, 2), (2, 1), (2, 0), (2, 0)] {
            in_flight.now = flying;
            assert!(!in_flight.on_bad(AT(2), AT(1), ACCEPTED * 6.0, GAP));
            assert_eq!(in_flight.votes, votes);
        }
    }

    /// The next one after a wrong one needs twice the votes.
    #[test]
    fn a_wrong_cap_makes_the_next_one_harder() {
        let mut in_flight = capped();
        assert!(!in_flight.on_bad(AT(4), AT(4), ACCEPTED, GAP));
        assert_eq!((in_flight.cap, in_flight.votes), (None, -VOTES));
        in_flight.now = 7;
        let needed = (1..100).find(|_| in_flight.on_bad(AT(5), AT(5), ACCEPTED, GAP));
        assert_eq!(needed, Some(2 * VOTES));
    }

    /// Each refusal lowers it, however soon after the last, while what is left allows the rate.
    #[test]
    fn a_cap_goes_down_until_it_allows_too_little() {
        let mut in_flight = capped();
        for cap in [5, 4, 3] {
            assert!(in_flight.on_bad(AT(3), AT(3), ACCEPTED * 2.0, GAP));
            assert_eq!(in_flight.cap, Some(cap));
        }
        assert!(!in_flight.on_bad(AT(3), AT(3), ACCEPTED * 2.0, GAP), "two allow less than three");
        assert!(!in_flight.is_capped());
    }

    /// A cap that would serve less than the rate that was accepted is none.
    #[test]
    fn a_cap_that_allows_too_little_is_given_up() {
        assert!(!capped().on_bad(AT(3), AT(3), ACCEPTED, GAP), "five allow less than six");
        assert!(capped().on_bad(AT(3), AT(3), 2e5 / 1.029, GAP), "nearly as much");
        let mut in_flight = capped();
        in_flight.cap = Some(1);
        assert!(!in_flight.on_bad(AT(3), AT(3), f64::INFINITY, GAP), "none can serve");
    }

    /// Latency that falls is believed at once, so that a tarpit's room does not stay; what grows hardly is.
    #[test]
    fn room_follows_latency_down_at_once_and_up_slowly() {
        let mut in_flight = InFlight::default();
        let mut room = |latency: f64| {
            for _ in 0..300 {
                in_flight.on_good(AT(1), latency, 1e4, 1e9);
            }
            in_flight.slots(1e4)
        };
        assert_eq!([room(1e6), room(1e5)], [308, 38]);
        assert!((50..=150).contains(&room(1e6)), "a quarter of the way");
    }

    /// The cap is tried one higher after the dwell, where it is used.
    #[test]
    fn a_cap_is_probed_where_it_is_used() {
        let mut in_flight = capped();
        in_flight.now = 6;
        in_flight.on_good(AT(12), 1e6, ACCEPTED, 1e7);
        assert_eq!(in_flight.cap, Some(6), "ten seconds are not over");
        in_flight.on_good(AT(13), 1e6, ACCEPTED, 1e7);
        assert_eq!((in_flight.cap, in_flight.changed), (Some(7), AT(13)));
        in_flight.on_good(AT(24), 1e6, ACCEPTED, 1e7);
        assert_eq!((in_flight.cap, in_flight.changed), (Some(7), AT(24)), "it was not used");
    }

    #[test]
    fn room_is_three_times_what_the_rate_puts_there() {
        let mut in_flight = InFlight::default();
        assert_eq!(in_flight.slots(1000.0), u32::MAX);
        in_flight.on_good(AT(1), 500_000.0, 1e5, 1e9);
        assert_eq!(in_flight.slots(100_000.0), 23, "3 × 5 + 8");
        in_flight.cap = Some(9);
        assert_eq!((in_flight.slots(100_000.0), in_flight.slots(4e6)), (9, 8), "a cap paces at half the gap");
    }
}
