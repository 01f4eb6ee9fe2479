//! Classes: requests of one lane that are alike but for their age.
//!
//! A class is found by what its requests need, while a request waits in it; the one whose turn it is, is the
//! lane's head, and the others are sorted beside it.

use core::cmp::Reverse;

use super::{IndexedHeap, NONE, Queue};
use crate::policy::quota::Cost;

/// The needs of a class's requests besides their scopes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Need {
    /// Smaller is first, see [`priority_key`].
    pub priority: u64,
    /// Smaller is first: the largest part of a quota that the request takes, inverted.
    pub share: u64,
    pub costs: Costs,
}

impl Need {
    /// Of a request that says neither a cost nor a priority, where no quota counts.
    pub const PLAIN: Self =
        Self { priority: PLAIN_PRIORITY, share: !0, costs: Costs::Each(Reverse(Cost::ONE)) };
}

/// [`priority_key`] of 0.
const PLAIN_PRIORITY: u64 = !(1 << 63);

/// The cost of a request in each of its scopes. Where shares are equal the larger comes first: the small
/// would keep it waiting.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Costs {
    Each(Reverse<Cost>),
    Many(Box<[Reverse<Cost>]>),
}

impl Costs {
    #[inline]
    pub fn of(&self, position: usize) -> Cost {
        match self {
            Self::Each(cost) => cost.0,
            Self::Many(costs) => costs[position].0,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Class {
    pub need: Need,
    pub lane: u32,
    pub(super) first: u32,
    pub(super) last: u32,
    /// Requests that joined late (a delay of their own, a retry) and kept their age, by age.
    pub(super) early: IndexedHeap<u64>,
    pub(super) members: u32,
}

/// A priority as an order in which the higher one comes first.
pub(crate) fn priority_key(priority: f64) -> u64 {
    let bits = (priority + 0.0).to_bits();
    let ascending = if bits >> 63 == 0 { bits | 1 << 63 } else { !bits };
    !ascending
}

impl Queue {
    /// The class of this need, with one more member.
    pub(super) fn enrol(&mut self, lane: u32, need: Need) -> u32 {
        if let Some(spare) = self.spare
            && spare.lane == lane
        {
            self.spare = None;
            let class = &mut self.classes[spare.class];
            (class.need, class.members) = (need, 1);
            return spare.class;
        }
        let class = self.class_of(lane, &need).unwrap_or_else(|| {
            let early = IndexedHeap::new();
            self.classes.insert(Class { need, lane, first: NONE, last: NONE, early, members: 0 }).index
        });
        self.classes[class].members += 1;
        class
    }

    /// One member less; a class without members is forgotten.
    pub(super) fn withdraw(&mut self, class: u32) {
        let members = &mut self.classes[class].members;
        *members -= 1;
        if *members == 0 {
            self.classes.remove(class);
        }
    }

    #[inline]
    pub fn class(&self, index: u32) -> &Class {
        &self.classes[index]
    }

    /// The oldest of a class that is not empty.
    pub(super) fn oldest(&self, class: u32) -> u32 {
        let class = &self.classes[class];
        match class.early.first() {
            Some((age, early)) if class.first == NONE || age < self.tickets[class.first].age => early,
            _ => class.first,
        }
    }

    /// The class with this need that is not empty.
    #[inline]
    pub(super) fn class_of(&self, lane: u32, need: &Need) -> Option<u32> {
        let lane = &self.lanes[lane];
        if lane.head != NONE && self.classes[lane.head].need == *need {
            return Some(lane.head);
        }
        lane.others.get(&|other| self.classes[other].need.cmp(need))
    }

    /// The class to join. Only classes with waiting requests are indexed, so an empty one may have the need
    /// of an indexed one: it merges into that.
    pub(super) fn merged(&mut self, index: u32, class_index: u32) -> u32 {
        let class = &self.classes[class_index];
        match self.class_of(class.lane, &class.need) {
            Some(ranked) if ranked != class_index => {
                self.withdraw(class_index);
                self.classes[ranked].members += 1;
                self.tickets[index].class = ranked;
                ranked
            }
            _ => class_index,
        }
    }

    pub(super) fn rank_class(&mut self, class_index: u32) {
        let classes = &self.classes;
        let need = &classes[class_index].need;
        let lane = &mut self.lanes[classes[class_index].lane];
        if lane.head == class_index {
            return;
        }
        if lane.head == NONE {
            lane.head = class_index;
        } else if *need < classes[lane.head].need {
            let old = core::mem::replace(&mut lane.head, class_index);
            lane.others.insert(old, &|other| classes[other].need.cmp(&classes[old].need));
        } else {
            lane.others.insert(class_index, &|other| classes[other].need.cmp(need));
        }
    }

    pub(super) fn unrank_class(&mut self, class_index: u32) {
        let need = &self.classes[class_index].need;
        let lane = &mut self.lanes[self.classes[class_index].lane];
        if lane.head == class_index {
            lane.head = lane.others.pop_first().unwrap_or(NONE);
        } else {
            lane.others.remove(&|other| self.classes[other].need.cmp(need));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn higher_priorities_have_smaller_keys() {
        let descending = [f64::MAX, 10.5, 1.0, 0.0, -0.5, -1.0, f64::MIN];
        for pair in descending.windows(2) {
            assert!(priority_key(pair[0]) < priority_key(pair[1]), "{pair:?}");
        }
        assert_eq!(priority_key(0.0), priority_key(-0.0));
        assert_eq!(priority_key(0.0), Need::PLAIN.priority);
    }
}
