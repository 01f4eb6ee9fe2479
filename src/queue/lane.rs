//! Lanes: requests with the same scopes, and their place among all that wait.
//!
//! A lane of one scope, the usual case, is found through that scope and has no boxes. One of several is found
//! by its key, and a loop over its scopes shares them while the lane changes.

use std::sync::Arc;

use super::{Costs, NONE, Queue, Rank, WaitQueue};
use crate::{policy::quota::Cost, slab::Slab, sorted::SortedIndex};

/// Where a lane is. A lane without waiting requests is nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Nowhere,
    /// To be asked; `from` is the scope whose opening sent it, or [`NONE`].
    Ready {
        from: u32,
    },
    /// In the queue of a scope, in the given one of its two heaps.
    At {
        scope: u32,
        heap: u8,
    },
}

/// The scopes of a lane, sorted, no duplicates. One is the usual case and needs no memory of its own; more
/// are shared with the loop that goes through them while the lane changes.
#[derive(Clone, Debug)]
pub(crate) enum Scopes {
    One([u32; 1]),
    Many(Arc<[u32]>),
}

impl core::ops::Deref for Scopes {
    type Target = [u32];
    fn deref(&self) -> &[u32] {
        match self {
            Self::One(one) => one,
            Self::Many(many) => many,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Lane {
    pub scopes: Scopes,
    /// Where it stands in `by_key`: scopes, each with a bit that says whether it is free there. `None` for
    /// the lanes of one scope, which the scope's queue knows.
    pub(super) key: Option<Arc<[u64]>>,
    /// Whether its requests are free in its first scope.
    pub is_free: bool,
    pub place: Place,
    pub position: u32,
    /// The class whose turn it is, or [`NONE`].
    pub head: u32,
    /// The classes behind the head that are not empty, by need.
    pub(super) others: SortedIndex,
    pub(super) served: u64,
    pub(super) members: u32,
}

impl Queue {
    /// The lane of these scopes and costs, made if there is none. `waiters` are the first scope's.
    pub fn lane(&mut self, scopes: &Scopes, costs: &Costs, waiters: &mut WaitQueue) -> u32 {
        let is_free = costs.of(0) == Cost::ZERO;
        if let Scopes::One(_) = scopes {
            let new = || self.lanes.insert(Lane::new(scopes.clone(), None, is_free)).index;
            return *waiters.solo[usize::from(is_free)].get_or_insert_with(new);
        }
        let bits = |(position, &scope): (usize, &u32)| {
            u64::from(scope) << 1 | u64::from(costs.of(position) == Cost::ZERO)
        };
        let key: Arc<[u64]> = scopes.iter().enumerate().map(bits).collect();
        let order = |lanes: &Slab<Lane>, other: u32| lanes[other].key.as_deref().cmp(&Some(&key));
        if let Some(lane) = self.by_key.get(&|other| order(&self.lanes, other)) {
            return lane;
        }
        let lane = self.lanes.insert(Lane::new(scopes.clone(), Some(key.clone()), is_free)).index;
        self.by_key.insert(lane, &|other| order(&self.lanes, other));
        lane
    }

    /// The lane of several scopes, if there is one: of requests that cost the same in each.
    pub fn find_lane(&self, scopes: &[u32], is_free: bool) -> Option<u32> {
        let key: Vec<u64> = scopes.iter().map(|&scope| u64::from(scope) << 1 | u64::from(is_free)).collect();
        self.by_key.get(&|other| self.lanes[other].key.as_deref().cmp(&Some(&key[..])))
    }

    #[inline]
    pub fn lane_at(&self, lane: u32) -> &Lane {
        &self.lanes[lane]
    }

    pub fn lane_mut(&mut self, lane: u32) -> &mut Lane {
        &mut self.lanes[lane]
    }

    /// Marks a lane as being nowhere; gives where it was.
    pub fn unplace(&mut self, lane: u32) -> (Place, u32) {
        let lane = &mut self.lanes[lane];
        // Nowhere has one position, so that equal states are equal to the last bit.
        (core::mem::replace(&mut lane.place, Place::Nowhere), core::mem::take(&mut lane.position))
    }

    /// Marks a lane from which a request left as ready, or as being nowhere.
    pub fn lane_left(&mut self, lane: u32, is_ready: bool) {
        let lane = &mut self.lanes[lane];
        if is_ready {
            lane.place = Place::Ready { from: NONE };
        } else {
            (lane.place, lane.position) = (Place::Nowhere, 0);
        }
    }

    /// Told by heaps of lanes where a lane now stands.
    pub fn place_lane(lanes: &mut Slab<Lane>) -> impl FnMut(u32, u32) + '_ {
        |lane, position| lanes[lane].position = position
    }

    pub fn lanes_mut(&mut self) -> &mut Slab<Lane> {
        &mut self.lanes
    }

    /// The cost of a lane's head in its scope number `position`.
    #[inline]
    pub fn head_cost(&self, lane: u32, position: usize) -> Cost {
        self.classes[self.lanes[lane].head].need.costs.of(position)
    }

    /// The cost of a lane's head in `scope`.
    pub fn head_cost_at(&self, lane: u32, scope: u32) -> Cost {
        let position = self.lanes[lane].scopes.iter().position(|&other| other == scope);
        position.map_or(Cost::ZERO, |position| self.head_cost(lane, position))
    }

    /// Whether the head of a lane is free in `scope`. All that waits in a lane of one scope is, or is not.
    pub fn is_free_at(&self, lane: u32, scope: u32) -> bool {
        match &self.lanes[lane] {
            Lane { scopes: Scopes::One(_), is_free, .. } => *is_free,
            _ => self.head_cost_at(lane, scope) == Cost::ZERO,
        }
    }

    /// The rank of a lane that has a head.
    #[inline]
    pub fn rank(&self, lane: u32) -> Rank {
        let lane = &self.lanes[lane];
        let class = &self.classes[lane.head];
        let age = self.tickets[self.oldest(lane.head)].age.max(lane.served);
        Rank { priority: class.need.priority, share: class.need.share, age }
    }
}

impl Lane {
    fn new(scopes: Scopes, key: Option<Arc<[u64]>>, is_free: bool) -> Self {
        Self {
            scopes,
            key,
            is_free,
            place: Place::Nowhere,
            position: 0,
            head: NONE,
            others: SortedIndex::default(),
            served: 0,
            members: 0,
        }
    }
}
