//! Two clocks: that of another process, measured by the frames that come and go, and the engine's.
//!
//! Each frame has its sender's stamp. It also has the newest stamp that the sender heard of the other side,
//! with the time that it kept it. Both ends therefore know how long the way there and back took, and how far
//! the other clock is ahead, without any third clock. A way may be slow in one direction: what cannot be
//! known counts as late.

use std::collections::VecDeque;

use autothrottle::{Instant, Span};

use crate::frame::Head;

/// The measurements that are kept.
const MOST: usize = 16;

/// Clocks part by this many microseconds while measurements are kept, at most.
const DRIFT: i64 = 10_000;

/// The clock of another process.
#[derive(Clone, Debug, Default)]
pub struct PeerClock {
    heard: Option<(u64, Instant)>,
    /// There and back, of frames that answered one of ours.
    spans: VecDeque<Span>,
    /// By how much our clock showed more when a frame came in than theirs when it left.
    behind: VecDeque<i64>,
}

impl PeerClock {
    /// A frame came in.
    pub fn heard(&mut self, now: Instant, head: &Head) {
        if self.heard.is_none_or(|(stamp, _)| stamp < head.stamp) {
            self.heard = Some((head.stamp, now));
        }
        let behind = (now.micros() as i64).wrapping_sub(head.stamp as i64);
        if let Some(span) = age(now, head) {
            // One of both clocks stood still, or was set: what was measured before is void.
            let least = behind.saturating_sub(span.micros() as i64 + DRIFT);
            self.behind.retain(|&known| known >= least);
            push_bounded(&mut self.spans, span);
        }
        push_bounded(&mut self.behind, behind);
    }

    /// A frame's echo to the other process of the last one from it.
    pub fn echo(&self, now: Instant) -> Option<(u64, u64)> {
        self.heard.map(|(stamp, at)| (stamp, now.since(at).micros()))
    }

    /// An instant of the other clock by ours: as if the quickest frame had taken half of there and back. An
    /// instant that must not be early (`exact`) is late by [`PeerClock::doubt`] at most, as if it had taken
    /// no time. `None` before there and back was measured.
    pub fn ours(&self, stamp: u64, exact: bool) -> Option<Instant> {
        let half = self.doubt()?.micros() as i64 / 2;
        let behind = self.behind.iter().min()? - if exact { 0 } else { half };
        Some(Instant::from_micros((stamp as i64).wrapping_add(behind).max(0) as u64))
    }

    /// The quickest way there and back.
    pub fn doubt(&self) -> Option<Span> {
        self.spans.iter().min().copied()
    }

    /// There and back: nine of ten are quicker.
    pub fn there_and_back(&self) -> Option<Span> {
        let (mut slowest, mut next) = (Span::ZERO, Span::ZERO);
        for &span in &self.spans {
            (slowest, next) = (slowest.max(span), next.max(slowest.min(span)));
        }
        self.spans.front().map(|_| if self.spans.len() < 10 { slowest } else { next })
    }

    /// A measurement while the way was broken, or while this process stood still, is void.
    pub fn forget(&mut self) {
        self.spans.clear();
        self.behind.clear();
    }
}

/// How long ago what a frame answers left, less the time that it was kept: the frame is no older.
pub fn age(now: Instant, head: &Head) -> Option<Span> {
    let (echoed, kept) = head.echo?;
    Some(Span::from_micros(now.micros().checked_sub(echoed)?.checked_sub(kept)?))
}

fn push_bounded<T>(all: &mut VecDeque<T>, one: T) {
    all.push_back(one);
    if all.len() > MOST {
        all.pop_front();
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
    /// It begins `ahead` of this process's clock, which catches up.
    pub fn new(from: Instant, ahead: Span, share: u32) -> Self {
        Self { from, share: u64::from(share.max(1)), lead: Span::ZERO, last: from + ahead }
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
    fn it_measures_the_way_and_the_other_clock_and_is_never_early() {
        let mut clock = PeerClock::default();
        // It is 1,000,000 ahead; 2,000 there, 5,000 kept, 4,000 back.
        let head =
            |sent: u64, kept| Head { stamp: 1_000_000 + sent, echo: Some((500, kept)), ..Head::default() };
        clock.heard(at(11_500), &head(7500, 5000));
        assert_eq!((clock.doubt(), clock.there_and_back()), (Some(at(6000).since(at(0))), clock.doubt()));
        assert_eq!(clock.ours(1_020_000, true), Some(at(24_000)), "as if the frame had taken no time");
        assert_eq!(clock.ours(1_020_000, false), Some(at(21_000)), "as if both directions were alike");
        clock.heard(at(90_500), &head(7500, 5000));
        assert_eq!(clock.ours(1_020_000, true), Some(at(24_000)), "a slow frame does not move it");
        assert_eq!(clock.echo(at(200_000)), Some((1_007_500, 188_500)));
        // The other clock stood still for a second.
        let late = Head { stamp: 1_100_000, echo: Some((1_100_000, 1000)), ..Head::default() };
        clock.heard(at(1_105_000), &late);
        assert_eq!(clock.ours(1_200_000, true), Some(at(1_205_000)));
        clock.forget();
        assert_eq!((clock.ours(1, true), clock.there_and_back()), (None, None));
        let odd = Head { stamp: u64::MAX, echo: Some((u64::MAX, u64::MAX)), ..Head::default() };
        clock.heard(at(5), &odd);
        assert_eq!(clock.ours(1, true), None);
    }

    #[test]
    fn the_engine_stands_still_where_the_lead_shrinks_and_runs_slower_by_its_share() {
        let mut clock = EngineClock::new(at(1000), Span::ZERO, 1);
        clock.lead = Span::from_micros(500);
        assert_eq!(clock.now(at(2000)), at(2500));
        clock.lead = Span::ZERO;
        assert_eq!((clock.now(at(2100)), clock.when(at(2600))), (at(2500), at(2600)));
        let mut clock = EngineClock::new(at(1000), Span::ZERO, 4);
        assert_eq!((clock.now(at(5000)), clock.when(at(2000))), (at(2000), at(5000)));
    }
}
