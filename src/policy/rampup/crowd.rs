//! Some servers limit how many they serve at a time, not how many in a second.
//!
//! Refusals that come at an unusual number in flight *vote* for that number less one as the limit, a cap.
//! They vote only if a cap of that size would serve as much as the rate that was borne. The cap is probed
//! once in a while, like the rate. The trap is a cap that explains every refusal: each lowers it, and one
//! that would leave less than the rate that was borne contradicts it. Then the next one needs twice the
//! votes.

use crate::time::Instant;

/// This many votes make a cap.
const VOTES: i32 = 6;
/// In flight at most, in what the rate and the usual latency put there: a queue does not grow for ever.
const ROOM: f64 = 3.0;

/// What a refusal says of the number in flight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fault {
    /// It is the rate's.
    Rate,
    /// It is the number's, which is less now.
    Number,
    /// From here on the number is capped.
    Capped,
    /// The cap was wrong.
    Uncapped,
}

/// What is known of the number in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Crowd {
    /// At the last send, that one included; what it usually is, and how far it strays.
    pub now: u32,
    mean: f64,
    stray: f64,
    /// The usual time from send to answer, in microseconds.
    usual: f64,
    /// The last ones' mean.
    away: f64,
    votes: i32,
    cap: Option<u32>,
    /// When the cap last changed.
    changed: Instant,
    /// How many were wrong.
    wrong: u32,
}

impl Crowd {
    pub fn is_capped(&self) -> bool {
        self.cap.is_some()
    }

    /// How many may be in flight at this gap.
    pub fn slots(&self, gap: f64) -> u32 {
        self.cap.unwrap_or(u32::MAX).min(self.room(gap) as u32)
    }

    fn room(&self, gap: f64) -> f64 {
        if self.usual > 0.0 { ROOM * self.usual / gap + 8.0 } else { f64::MAX }
    }

    /// Whether more are in flight than usual.
    fn is_unusual(&self) -> bool {
        f64::from(self.now) > self.mean + self.stray
    }

    /// `flying` are in flight now.
    pub fn on_send(&mut self, flying: u32) {
        self.now = flying;
        if self.mean == 0.0 {
            self.mean = f64::from(flying);
        }
        let off = f64::from(flying) - self.mean;
        self.stray += (off.max(-off) - self.stray) / 32.0;
        self.mean += off / 32.0;
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
            let more = if self.now >= cap { 1 + cap / 32 } else { 0 };
            (self.cap, self.changed) = (Some(cap.saturating_add(more)), now);
        }
    }

    /// What was sent at `sent` was refused; `borne` is the gap that was borne.
    pub fn on_bad(&mut self, now: Instant, sent: Instant, borne: f64) -> Fault {
        let fewer = self.cap.unwrap_or(self.now).saturating_sub(1);
        // This many at a time serve as much as the rate that was borne.
        let is_enough = fewer > 0 && self.usual / f64::from(fewer) <= 1.03 * borne;
        if self.is_capped() {
            if sent < self.changed {
                return Fault::Number; // old news
            }
            if !is_enough {
                (self.cap, self.votes) = (None, -(VOTES << self.wrong.min(5)));
                self.wrong += 1;
                return Fault::Uncapped;
            }
            (self.cap, self.changed) = (Some(fewer), now);
            return Fault::Number;
        }
        // A doubt that stands is not made worse by more of the same.
        if self.is_unusual() && is_enough {
            self.votes += 1;
        } else if self.votes > 0 {
            self.votes -= 1;
        }
        if self.votes < VOTES {
            return Fault::Rate;
        }
        self.votes = 0;
        (self.cap, self.changed) = (Some(fewer), now);
        Fault::Capped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> Instant = |seconds| Instant::from_micros(seconds * 1_000_000);
    /// A gap that six at a time bear at a second an answer.
    const BORNE: f64 = 1e6 / 6.0;

    /// One that usually has two in flight, whose answers take a second. Seven at a time were refused as often
    /// as makes a cap.
    fn capped() -> Crowd {
        let mut crowd = Crowd::default();
        crowd.on_good(AT(1), 1e6, BORNE, 1e9);
        for _ in 0..100 {
            crowd.on_send(2);
        }
        for vote in 1..=VOTES {
            crowd.now = 7;
            let expected = if vote == VOTES { Fault::Capped } else { Fault::Rate };
            assert_eq!(crowd.on_bad(AT(2), AT(1), BORNE), expected);
        }
        assert_eq!(crowd.cap, Some(6));
        crowd
    }

    #[test]
    fn the_first_cap_is_lowered_whenever_it_is_refused() {
        let mut crowd = capped();
        assert_eq!(crowd.on_bad(AT(9), AT(1), BORNE), Fault::Number, "sent before the cap: old news");
        assert_eq!(crowd.cap, Some(6));
        assert_eq!(crowd.on_bad(AT(9), AT(3), BORNE * 2.0), Fault::Number);
        assert_eq!(crowd.cap, Some(5));
    }

    /// The next one after a wrong one needs twice the votes more.
    #[test]
    fn a_wrong_cap_makes_the_next_one_harder() {
        let mut crowd = capped();
        for wrong in 1..=7 {
            crowd.cap = Some(6);
            assert_eq!(crowd.on_bad(AT(4), AT(4), BORNE), Fault::Uncapped);
            assert_eq!((crowd.cap, crowd.wrong), (None, wrong));
            assert_eq!(crowd.votes, -(VOTES << (wrong - 1).min(5)));
        }
    }

    /// Each refusal lowers it, however soon after the last, while what is left bears the rate.
    #[test]
    fn a_cap_goes_down_until_it_bears_too_little() {
        let mut crowd = capped();
        for cap in [5, 4, 3] {
            assert_eq!(crowd.on_bad(AT(3), AT(3), BORNE * 2.0), Fault::Number);
            assert_eq!(crowd.cap, Some(cap));
        }
        assert_eq!(crowd.on_bad(AT(3), AT(3), BORNE * 2.0), Fault::Uncapped, "two bear less than three");
    }

    /// A cap that would serve less than the rate that was borne is none.
    #[test]
    fn a_cap_that_bears_too_little_is_given_up() {
        let mut crowd = capped();
        assert_eq!(crowd.on_bad(AT(3), AT(3), BORNE), Fault::Uncapped, "five bear less than six");
        let mut crowd = capped();
        assert_eq!(crowd.on_bad(AT(3), AT(3), 2e5 / 1.029), Fault::Number, "nearly as much");
        let mut crowd = capped();
        crowd.cap = Some(1);
        assert_eq!(crowd.on_bad(AT(3), AT(3), f64::INFINITY), Fault::Uncapped, "none can serve");
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

    /// The cap is tried one higher after the dwell, where it is used; by a thirty-second where it is large.
    #[test]
    fn a_cap_is_probed_where_it_is_used() {
        let mut crowd = capped();
        crowd.now = 6;
        crowd.on_good(AT(12), 1e6, BORNE, 1e7);
        assert_eq!(crowd.cap, Some(6), "ten seconds are not over");
        crowd.on_good(AT(13), 1e6, BORNE, 1e7);
        assert_eq!((crowd.cap, crowd.changed), (Some(7), AT(13)));
        crowd.now = 6;
        crowd.on_good(AT(24), 1e6, BORNE, 1e7);
        assert_eq!((crowd.cap, crowd.changed), (Some(7), AT(24)), "it was not used");
        (crowd.cap, crowd.now) = (Some(96), 96);
        crowd.on_good(AT(35), 1e6, BORNE, 1e7);
        assert_eq!(crowd.cap, Some(100));
    }

    #[test]
    fn room_is_three_times_what_the_rate_puts_there() {
        let mut crowd = Crowd::default();
        assert_eq!(crowd.slots(1000.0), u32::MAX);
        crowd.on_good(AT(1), 500_000.0, 1e5, 1e9);
        assert_eq!(crowd.slots(100_000.0), 23, "3 × 5 + 8");
        crowd.cap = Some(9);
        assert_eq!((crowd.slots(100_000.0), crowd.slots(2e6)), (9, 8));
    }
}
