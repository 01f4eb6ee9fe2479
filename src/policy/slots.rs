//! Slots: at most `concurrency` requests in flight, and a rest for each slot between two sends of its own.
//!
//! Rules (Scrapy draft, `CONCURRENT_REQUESTS_PER_DOMAIN` and `DOWNLOAD_DELAY_PER_SLOT`):
//! 1. in flight < concurrency;
//! 2. the slot that has been free longest is used; one never used has been free for ever;
//! 3. that slot's last send is at least the slot delay ago.
//!
//! A slot is its last send and no more, and slots come free in the order in which requests settle. A queue of
//! the send times of settled requests is therefore the whole state.

use std::collections::{BinaryHeap, VecDeque};

use crate::time::{Instant, Span};

/// The requests in flight, and the last sends of the slots that are free, longest free first.
#[derive(Clone, Debug, Default)]
pub struct State {
    in_flight: u32,
    free: VecDeque<Instant>,
}

impl State {
    /// Requests in flight.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Rule 1.
    #[inline]
    pub fn is_full(&self, slots: u32) -> bool {
        self.in_flight >= slots
    }

    /// The first instant at which the slot that is next may be used again (rules 2 and 3); `None` for at
    /// once.
    pub fn next(&self, slots: u32, slot_delay: Span) -> Option<Instant> {
        let never_used = u64::from(slots) > u64::from(self.in_flight) + self.free.len() as u64;
        if never_used {
            return None;
        }
        self.free.front().map(|&last| last + slot_delay)
    }

    /// A request left: it takes the slot that has been free longest.
    pub fn on_send(&mut self, slots: u32) {
        if u64::from(slots) <= u64::from(self.in_flight) + self.free.len() as u64 {
            self.free.pop_front();
        }
        self.in_flight += 1;
    }

    /// The request that was sent at `sent` gave its slot back.
    #[inline]
    pub fn on_settle(&mut self, now: Instant, sent: Instant, slot_delay: Span) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if sent + slot_delay > now {
            self.free.push_back(sent);
        }
        self.forget_rested(now, slot_delay);
    }

    /// Whether no free slot rests.
    #[inline(always)]
    pub fn are_rested(&self) -> bool {
        self.free.is_empty()
    }

    /// [`State::on_send`] where no slot rests.
    #[inline(always)]
    pub fn take(&mut self) {
        self.in_flight += 1;
    }

    /// [`State::on_settle`] where no slot needs a rest.
    #[inline(always)]
    pub fn give_back(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Slots that have rested are as good as new and need no memory.
    #[inline]
    pub fn forget_rested(&mut self, now: Instant, slot_delay: Span) {
        while self.free.front().is_some_and(|&last| last + slot_delay <= now) {
            self.free.pop_front();
        }
        if self.free.is_empty() && self.free.capacity() > 0 {
            self.free = VecDeque::new();
        }
    }

    /// Since the last send of each free slot that still rests.
    pub fn rests(&self, now: Instant, slot_delay: Span) -> impl Iterator<Item = Span> {
        self.free.iter().map(move |&last| now.since(last)).filter(move |&ago| ago < slot_delay)
    }

    /// Slots without a request in flight that still rest; the longest free first.
    pub fn resting(now: Instant, slots: u32, rests: &[Span]) -> Self {
        // A heap sorts as well, and is a tenth of the library's sort.
        let times: BinaryHeap<Instant> = rests.iter().map(|&ago| now - ago).collect();
        let free = times.into_sorted_vec().into();
        let mut state = Self { in_flight: 0, free };
        state.on_configure(slots);
        state
    }

    /// Slots were taken away or the slot delay got shorter: forget what no longer binds.
    pub fn on_configure(&mut self, slots: u32) {
        while self.free.len() as u64 > u64::from(slots) {
            self.free.pop_front();
        }
    }

    /// Whether these slots are as good as new.
    pub fn is_new(&self, now: Instant, slot_delay: Span) -> bool {
        self.in_flight == 0 && self.free.iter().all(|&last| last + slot_delay <= now)
    }
}
