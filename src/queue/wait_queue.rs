//! The lanes that a scope blocked, in order, and the one that it sent to be asked.
//!
//! Most scopes have no waiting request: the queue is made when it is needed.

use super::IndexedHeap;

/// The order in which lanes are asked: the smaller rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    pub(super) priority: u64,
    pub(super) share: u64,
    pub(super) age: u64,
}

/// The lanes that wait for one scope.
#[derive(Clone, Debug)]
pub(crate) struct WaitQueue {
    /// Requests that name this scope and wait, wherever their lanes are.
    pub waiting: u32,
    /// Lanes that this scope blocked: those that consume of a quota, and those that are free and so never
    /// wait behind a request that the quota blocks.
    pub lanes: [IndexedHeap<Rank>; 2],
    /// The lane that was sent to be asked because the scope opened. One at a time.
    pub candidate: Option<u32>,
    /// Position in the heap of times.
    pub timer: Option<u32>,
    /// The lanes of requests that name only this scope: those with a cost, those that are free.
    pub solo: [Option<u32>; 2],
}

impl WaitQueue {
    /// Whether no lane stands here or is asked because of it, and no time is set.
    #[inline(always)]
    pub fn is_quiet(&self) -> bool {
        self.lanes.iter().all(IndexedHeap::is_empty) && self.candidate.is_none() && self.timer.is_none()
    }

    /// Whether no other lane than this one, which is ready, stands here or is asked because of this scope.
    #[inline(always)]
    pub fn is_clear_for(&self, lane: u32) -> bool {
        self.lanes.iter().all(IndexedHeap::is_empty) && self.candidate.is_none_or(|other| other == lane)
    }

    /// Whether one lane stands here, and none is asked because of this scope.
    pub fn has_one(&self) -> bool {
        self.lanes[0].len() + self.lanes[1].len() == 1 && self.candidate.is_none()
    }

    const EMPTY: Self = Self {
        waiting: 0,
        lanes: [IndexedHeap::new(), IndexedHeap::new()],
        candidate: None,
        timer: None,
        solo: [None; 2],
    };
}

/// A queue that has no memory of its own until a request waits: most scopes are idle.
#[derive(Clone, Default)]
pub(crate) struct LazyWaitQueue(Option<Box<WaitQueue>>);

impl core::fmt::Debug for LazyWaitQueue {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        (**self).fmt(formatter)
    }
}

impl LazyWaitQueue {
    /// Gives the memory back. No request waits.
    pub fn sleep(&mut self) {
        debug_assert!(self.waiting == 0 && self.solo == [None; 2]);
        self.0 = None;
    }
}

impl core::ops::Deref for LazyWaitQueue {
    type Target = WaitQueue;
    fn deref(&self) -> &WaitQueue {
        static EMPTY: WaitQueue = WaitQueue::EMPTY;
        self.0.as_deref().unwrap_or(&EMPTY)
    }
}

impl core::ops::DerefMut for LazyWaitQueue {
    fn deref_mut(&mut self) -> &mut WaitQueue {
        self.0.get_or_insert_with(|| Box::new(WaitQueue::EMPTY))
    }
}
