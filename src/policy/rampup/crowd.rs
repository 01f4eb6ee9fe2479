//! Some servers limit how many they serve at a time, not how many in a second.
//!
//! Refusals that come at an unusual number in flight *vote* for that number less one as the limit, a cap.
//! They vote only if a cap of that size would serve as much as the rate that was borne. The cap is probed
//! once in a while, like the rate. The trap is a cap that explains every refusal: each lowers it, and one
//! that would leave less than the rate that was borne contradicts it. Then the next one needs twice the
//! votes.

use super::WIDE;
use crate::time::Instant;

/// This many votes make a cap.
const VOTES: i32 = 6;

/// What is known of the number in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Crowd {
    /// In flight at the last send, that one included.
    pub now: u32,
    /// The usual time from send to answer, in microseconds.
    usual: f64,
    /// The last ones' mean.
    away: f64,
    votes: i32,
    cap: Option<u32>,
    /// When the cap last changed.
    changed: Instant,
}

impl Crowd {
    pub fn is_capped(&self) -> bool {
        self.cap.is_some()
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
    pub fn on_good(&mut self, now: Instant, away: f64, gap: f64, dwell: f64) {
        if self.usual == 0.0 {
            (self.usual, self.away) = (away, away);
        }
        self.away += (away - self.away) / 32.0;
        // Latency that grows is a queue's, until it has lasted for long; what is less is believed at once.
        if self.away < self.usual {
            self.usual = self.away;
        } else if f64::from(self.now) < 0.7 * self.room(gap) {
            self.usual += (self.away - self.usual) / 1024.0;
        }
        if let Some(cap) = self.cap
            && now.since(self.changed).micros() as f64 > dwell
        {
            (self.cap, self.changed) = (Some(cap + u32::from(self.now >= cap)), now);
        }
    }

    /// What was sent at `sent` was refused at this gap; `borne` is the gap that was borne. Whether the number
    /// is to blame.
    pub fn on_bad(&mut self, now: Instant, sent: Instant, borne: f64, gap: f64) -> bool {
        let fewer = self.cap.unwrap_or(self.now).saturating_sub(1);
        // This many at a time serve as much as the rate that was borne.
        let is_enough = fewer > 0 && self.usual / f64::from(fewer) <= 1.03 * borne;
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
    /// A gap that six at a time bear at a second an answer.
    const BORNE: f64 = 1e6 / 6.0;
    /// One that puts two in flight.
    const GAP: f64 = 5e5;

    /// Its answers take a second. Seven at a time were refused as often as makes a cap.
    fn capped() -> Crowd {
        let mut crowd = Crowd::default();
        crowd.on_good(AT(1), 1e6, GAP, 1e9);
        for vote in 1..=VOTES {
            crowd.now = 7;
            assert_eq!(crowd.on_bad(AT(2), AT(1), BORNE, GAP), vote == VOTES);
        }
        assert_eq!(crowd.cap, Some(6));
        crowd
    }

    #[test]
    fn the_first_cap_is_lowered_whenever_it_is_refused() {
        let mut crowd = capped();
        assert!(crowd.on_bad(AT(9), AT(1), BORNE, GAP), "sent before the cap: old news");
        assert_eq!(crowd.cap, Some(6));
        assert!(crowd.on_bad(AT(9), AT(3), BORNE * 2.0, GAP));
        assert_eq!(crowd.cap, Some(5));
    }

    /// A number that is usual at this gap is not to blame.
    #[test]
    fn a_usual_number_takes_a_vote_back() {
        let mut crowd = Crowd::default();
        crowd.on_good(AT(1), 1e6, GAP, 1e9);
        for (flying, votes) in [(7, 1), (7, 2), (2, 1), (2, 0), (2, 0)] {
            crowd.now = flying;
            assert!(!crowd.on_bad(AT(2), AT(1), BORNE * 6.0, GAP));
            assert_eq!(crowd.votes, votes);
        }
    }

    /// The next one after a wrong one needs twice the votes.
    #[test]
    fn a_wrong_cap_makes_the_next_one_harder() {
        let mut crowd = capped();
        assert!(!crowd.on_bad(AT(4), AT(4), BORNE, GAP));
        assert_eq!((crowd.cap, crowd.votes), (None, -VOTES));
        crowd.now = 7;
        let needed = (1..100).find(|_| crowd.on_bad(AT(5), AT(5), BORNE, GAP));
        assert_eq!(needed, Some(2 * VOTES));
    }

    /// Each refusal lowers it, however soon after the last, while what is left bears the rate.
    #[test]
    fn a_cap_goes_down_until_it_bears_too_little() {
        let mut crowd = capped();
        for cap in [5, 4, 3] {
            assert!(crowd.on_bad(AT(3), AT(3), BORNE * 2.0, GAP));
            assert_eq!(crowd.cap, Some(cap));
        }
        assert!(!crowd.on_bad(AT(3), AT(3), BORNE * 2.0, GAP), "two bear less than three");
        assert!(!crowd.is_capped());
    }

    /// A cap that would serve less than the rate that was borne is none.
    #[test]
    fn a_cap_that_bears_too_little_is_given_up() {
        assert!(!capped().on_bad(AT(3), AT(3), BORNE, GAP), "five bear less than six");
        assert!(capped().on_bad(AT(3), AT(3), 2e5 / 1.029, GAP), "nearly as much");
        let mut crowd = capped();
        crowd.cap = Some(1);
        assert!(!crowd.on_bad(AT(3), AT(3), f64::INFINITY, GAP), "none can serve");
    }

    /// Latency that falls is believed at once, so that a tarpit's room does not stay; what grows hardly is.
    #[test]
    fn room_follows_latency_down_at_once_and_up_slowly() {
        let mut crowd = Crowd::default();
        let mut room = |away: f64| {
            for _ in 0..300 {
                crowd.on_good(AT(1), away, 1e4, 1e9);
            }
            crowd.slots(1e4)
        };
        assert_eq!([room(1e6), room(1e5)], [308, 38]);
        assert!((50..=150).contains(&room(1e6)), "a quarter of the way");
    }

    /// The cap is tried one higher after the dwell, where it is used.
    #[test]
    fn a_cap_is_probed_where_it_is_used() {
        let mut crowd = capped();
        crowd.now = 6;
        crowd.on_good(AT(12), 1e6, BORNE, 1e7);
        assert_eq!(crowd.cap, Some(6), "ten seconds are not over");
        crowd.on_good(AT(13), 1e6, BORNE, 1e7);
        assert_eq!((crowd.cap, crowd.changed), (Some(7), AT(13)));
        crowd.on_good(AT(24), 1e6, BORNE, 1e7);
        assert_eq!((crowd.cap, crowd.changed), (Some(7), AT(24)), "it was not used");
    }

    #[test]
    fn room_is_three_times_what_the_rate_puts_there() {
        let mut crowd = Crowd::default();
        assert_eq!(crowd.slots(1000.0), u32::MAX);
        crowd.on_good(AT(1), 500_000.0, 1e5, 1e9);
        assert_eq!(crowd.slots(100_000.0), 23, "3 × 5 + 8");
        crowd.cap = Some(9);
        assert_eq!((crowd.slots(100_000.0), crowd.slots(4e6)), (9, 8), "a cap paces at half the gap");
    }
}
