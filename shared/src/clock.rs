//! Two clocks: that of another process, measured by the frames that come and go, and the engine's.
//!
//! Each frame has its sender's stamp, and the newest stamp that the sender had heard of the other side with
//! the time that it kept it. So both ends know how long the way there and back took, and how far the other
//! clock is ahead, without any third clock. The trap is a way that is slow in one direction: the offset is
//! then off by half the difference of both.

use std::collections::VecDeque;

use autothrottle::{Instant, Span};

use crate::frame::Head;

/// So many measurements are kept.
const MOST: usize = 16;

/// Clocks part by so many microseconds while measurements are kept, at most.
const DRIFT: i64 = 10_000;

/// The clock of another process.
#[derive(Clone, Debug, Default)]
pub struct PeerClock {
    heard: Option<(u64, Instant)>,
    /// There and back, and by how much the other clock is ahead.
    samples: VecDeque<(Span, i64)>,
}

impl PeerClock {
    /// A frame came in. How long ago the frame that it answers left, less the time that it was kept: the
    /// frame cannot be older.
    pub fn heard(&mut self, now: Instant, head: &Head) -> Option<Span> {
        if self.heard.is_none_or(|(stamp, _)| stamp < head.stamp) {
            self.heard = Some((head.stamp, now));
        }
        let (echoed, kept) = head.echo?;
        let there_and_back = now.micros().checked_sub(echoed)?.checked_sub(kept)?;
        let ahead =
            (head.stamp as i64).wrapping_add(there_and_back as i64 / 2).wrapping_sub(now.micros() as i64);
        // One of both clocks stood still, or was set: what was measured before says nothing.
        let slack = (there_and_back / 2) as i64 + DRIFT;
        self.samples.retain(|(span, known)| known.abs_diff(ahead) as i64 <= span.micros() as i64 / 2 + slack);
        self.samples.push_back((Span::from_micros(there_and_back), ahead));
        if self.samples.len() > MOST {
            self.samples.pop_front();
        }
        Some(Span::from_micros(there_and_back))
    }

    /// What a frame to the other process says of the last one from it.
    pub fn echo(&self, now: Instant) -> Option<(u64, u64)> {
        self.heard.map(|(stamp, at)| (stamp, now.since(at).micros()))
    }

    /// An instant of the other clock by ours.
    pub fn ours(&self, stamp: u64) -> Option<Instant> {
        let (_, ahead) = self.samples.iter().min_by_key(|(there_and_back, _)| *there_and_back)?;
        Some(Instant::from_micros((stamp as i64).wrapping_sub(*ahead).max(0) as u64))
    }

    /// There and back: nine of ten are quicker.
    pub fn there_and_back(&self) -> Option<Span> {
        let mut spans: Vec<_> = self.samples.iter().map(|(span, _)| *span).collect();
        spans.sort_unstable();
        spans.get((spans.len() * 9).div_ceil(10).saturating_sub(1)).copied()
    }

    /// What was measured while the way was broken, or while this process stood still, says nothing.
    pub fn forget(&mut self) {
        self.samples.clear();
    }
}

/// The clock of an engine: ahead of this process's by the time that a grant takes to arrive, or slower where
/// this process has only its part of every limit. It never goes back.
#[derive(Clone, Debug)]
pub struct EngineClock {
    from: Instant,
    share: u64,
    pub lead: Span,
    last: Instant,
}

impl EngineClock {
    pub fn new(from: Instant, share: u32) -> Self {
        Self { from, share: u64::from(share.max(1)), lead: Span::ZERO, last: from }
    }

    /// The engine's instant.
    pub fn now(&mut self, now: Instant) -> Instant {
        self.last = self.last.max(self.at(now));
        self.last
    }

    /// The same without moving the clock.
    pub fn peek(&self, now: Instant) -> Instant {
        self.last.max(self.at(now))
    }

    fn at(&self, now: Instant) -> Instant {
        self.from + Span::from_micros(now.since(self.from).micros() / self.share) + self.lead
    }

    /// When it will be that instant.
    pub fn when(&self, instant: Instant) -> Instant {
        let span = instant.since(self.from + self.lead).micros();
        self.from + Span::from_micros(span.saturating_mul(self.share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::from_micros(micros)
    }

    #[test]
    fn it_measures_the_way_and_the_other_clock_and_keeps_the_quickest() {
        let mut clock = PeerClock::default();
        // It is 1,000,000 ahead; 3,000 there, 5,000 kept, 3,000 back.
        let head =
            |sent: u64, kept| Head { stamp: 1_000_000 + sent, echo: Some((500, kept)), ..Head::default() };
        assert_eq!(clock.heard(at(500 + 11_000), &head(500 + 8000, 5000)), Some(Span::from_micros(6000)));
        assert_eq!(clock.ours(1_000_000 + 20_000), Some(at(20_000)));
        assert_eq!(clock.heard(at(500 + 90_000), &head(500 + 8000, 5000)), Some(Span::from_micros(85_000)));
        assert_eq!(clock.ours(1_000_000 + 20_000), Some(at(20_000)), "a slow frame does not move it");
        assert_eq!(clock.echo(at(200_000)), Some((1_008_500, 188_500)));
        clock.forget();
        assert_eq!((clock.ours(1), clock.there_and_back()), (None, None));
        let odd = Head { stamp: u64::MAX, echo: Some((u64::MAX, u64::MAX)), ..Head::default() };
        assert_eq!(clock.heard(at(5), &odd), None);
    }

    #[test]
    fn the_engine_stands_still_where_the_lead_shrinks_and_runs_slower_by_its_share() {
        let mut clock = EngineClock::new(at(1000), 1);
        clock.lead = Span::from_micros(500);
        assert_eq!(clock.now(at(2000)), at(2500));
        clock.lead = Span::ZERO;
        assert_eq!((clock.now(at(2100)), clock.when(at(2600))), (at(2500), at(2600)));
        let mut clock = EngineClock::new(at(1000), 4);
        assert_eq!((clock.now(at(5000)), clock.when(at(2000))), (at(2000), at(5000)));
    }
}
