//! Who waits, and in which order.
//!
//! Requests with the same set of scopes wait in one *lane* (those that cost nothing in a scope apart from
//! those that do, for no quota blocks them); inside it, requests that also cost the same and have the same
//! priority form a *class*, first come, first served. So all requests of a class are alike but for their age,
//! and a lane is asked by asking its head.
//!
//! Cost: a decision moves a few lanes, whatever waits. The one exception is a lane that two scopes block in
//! turns: each time one opens and the other does not, it moves from line to line. So where k different scope
//! sets share two scopes that are both at their limit, a decision may move up to k lanes.
//!
//! The trap is to ask everything that waits whenever something changes. A lane is always in exactly one
//! place: *ready* to be asked, or in the line of the one scope that blocked it. Nothing else asks it again.
//!
//! Order among lanes ([`Rank`]): priority, then the larger share of a quota, then age. A lane's age counts
//! from when its head became its head: a host with a thousand waiting requests goes to the back of the line
//! after each send, so hosts that share a scope take turns.

mod indexed_heap;

use std::{collections::BTreeMap, rc::Rc};

pub(crate) use indexed_heap::IndexedHeap;

use crate::{decision::Ticket, policy::quota::Cost, slab::Slab, time::Instant};

/// "No index". Tables never grow that large.
pub(crate) const NONE: u32 = u32::MAX;

/// Who is asked first: the smaller rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    priority: u64,
    share: u64,
    age: u64,
}

/// What requests of one class have in common besides their scopes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Need {
    /// Smaller is first, see [`priority_key`].
    pub priority: u64,
    /// Smaller is first: the largest part of a quota that the request takes, inverted.
    pub share: u64,
    pub costs: Costs,
}

/// What a request costs in each of its scopes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Costs {
    Each(Cost),
    Many(Box<[Cost]>),
}

impl Costs {
    pub fn of(&self, position: usize) -> Cost {
        match self {
            Self::Each(cost) => *cost,
            Self::Many(costs) => costs[position],
        }
    }
}

/// The lanes that wait for one scope.
#[derive(Clone, Debug)]
pub(crate) struct WaitQueue {
    /// Requests that name this scope and wait, wherever their lanes are.
    pub waiting: u32,
    /// Lanes that this scope blocked: those that consume of a quota, and those that consume nothing and so
    /// never wait behind a request that the quota blocks.
    pub lanes: [IndexedHeap<Rank>; 2],
    /// The lane that was sent to be asked because the scope opened. One at a time.
    pub candidate: Option<u32>,
    /// Position in the heap of times.
    pub timer: Option<u32>,
    /// The lanes of requests that name only this scope: those that cost something, those that cost nothing.
    pub solo: [Option<u32>; 2],
}

impl WaitQueue {
    /// Whether no lane stands here or is asked because of it, and no time is set.
    pub fn is_quiet(&self) -> bool {
        self.lanes.iter().all(IndexedHeap::is_empty) && self.candidate.is_none() && self.timer.is_none()
    }

    const EMPTY: Self = Self {
        waiting: 0,
        lanes: [IndexedHeap::new(), IndexedHeap::new()],
        candidate: None,
        timer: None,
        solo: [None; 2],
    };
}

/// A line that has no memory of its own until somebody waits: most scopes are idle.
#[derive(Clone, Default)]
pub(crate) struct LazyWaitQueue(Option<Box<WaitQueue>>);

impl core::fmt::Debug for LazyWaitQueue {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        (**self).fmt(formatter)
    }
}

impl LazyWaitQueue {
    /// Gives the memory back. Nobody waits.
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

/// What a ticket is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// In its class, with its neighbours there.
    Waiting { previous: u32, next: u32 },
    /// In its class, but older than others that were there first.
    Early,
    /// Not yet in its class: its own delay runs. Position in the heap of the parked.
    Parked { position: u32 },
    /// Sent at this instant.
    InFlight { sent: Instant },
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub stage: Stage,
    pub class: u32,
    age: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Class {
    pub need: Need,
    pub lane: u32,
    first: u32,
    last: u32,
    /// Requests that joined late (a delay of their own, a retry) and kept their age, by age.
    early: BTreeMap<u64, u32>,
    members: u32,
}

/// Where a lane is. A lane without waiting requests is nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Nowhere,
    /// To be asked; `from` is the scope whose opening sent it, or [`NONE`].
    Ready {
        from: u32,
    },
    /// In line at a scope, in the given one of its two heaps.
    At {
        scope: u32,
        heap: u8,
    },
}

/// The scopes of a lane, sorted, no duplicates. One is the usual case and needs no memory of its own; more
/// are shared with whoever goes through them while the lane changes.
#[derive(Clone, Debug)]
pub(crate) enum Scopes {
    One([u32; 1]),
    Many(Rc<[u32]>),
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
    /// Where it stands in `by_key`: scopes, each with a bit that says whether it costs nothing there. `None`
    /// for the lanes of one scope, which the scope's line knows.
    key: Option<Rc<[u64]>>,
    /// Whether its requests cost nothing in its first scope.
    pub is_free: bool,
    pub place: Place,
    pub position: u32,
    /// The class whose turn it is, or [`NONE`].
    pub head: u32,
    rest: BTreeMap<Need, u32>,
    served: u64,
    members: u32,
}

/// All tickets, classes and lanes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    tickets: Slab<Entry>,
    classes: Slab<Class>,
    lanes: Slab<Lane>,
    by_key: BTreeMap<Rc<[u64]>, u32>,
    stamp: u64,
    pub waiting: u32,
}

/// A priority as an order in which the higher one comes first.
pub(crate) fn priority_key(priority: f64) -> u64 {
    let bits = (priority + 0.0).to_bits();
    let ascending = if bits >> 63 == 0 { bits | 1 << 63 } else { !bits };
    !ascending
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
        let key: Rc<[u64]> = scopes.iter().enumerate().map(bits).collect();
        if let Some(&lane) = self.by_key.get(&key) {
            return lane;
        }
        let lane = self.lanes.insert(Lane::new(scopes.clone(), Some(key.clone()), is_free)).index;
        self.by_key.insert(key, lane);
        lane
    }

    /// Takes a request in, without putting it in line: see [`Queue::join`].
    pub fn admit(&mut self, lane: u32, need: Need) -> Ticket {
        self.stamp += 1;
        let class = self.enrol(lane, need);
        self.lanes[lane].members += 1;
        let stage = Stage::Parked { position: NONE };
        Ticket(self.tickets.insert(Entry { stage, class, age: self.stamp }))
    }

    /// Moves a ticket that is in no line to the class of another need in the same lane.
    pub fn reclass(&mut self, index: u32, need: Need) {
        let old = self.tickets[index].class;
        let class = self.enrol(self.classes[old].lane, need);
        self.tickets[index].class = class;
        self.withdraw(old);
    }

    /// The class of this need, with one more member.
    fn enrol(&mut self, lane: u32, need: Need) -> u32 {
        let class = self.class_of(lane, &need).unwrap_or_else(|| {
            let early = BTreeMap::new();
            self.classes.insert(Class { need, lane, first: NONE, last: NONE, early, members: 0 }).index
        });
        self.classes[class].members += 1;
        class
    }

    /// One member less; a class without members is forgotten.
    fn withdraw(&mut self, class: u32) {
        let members = &mut self.classes[class].members;
        *members -= 1;
        if *members == 0 {
            self.classes.remove(class);
        }
    }

    /// Puts an admitted ticket in line, by age.
    pub fn join(&mut self, index: u32) {
        let (class_index, age) = (self.tickets[index].class, self.tickets[index].age);
        let class_index = self.merged(index, class_index);
        let class = &mut self.classes[class_index];
        let previous = class.last;
        if previous != NONE && self.tickets[previous].age > age {
            class.early.insert(age, index);
            self.tickets[index].stage = Stage::Early;
        } else {
            class.last = index;
            if previous == NONE {
                class.first = index;
            } else {
                self.tickets[previous].stage.set_next(index);
            }
            self.tickets[index].stage = Stage::Waiting { previous, next: NONE };
        }
        self.waiting += 1;
        self.rank_class(class_index);
    }

    /// Takes a waiting ticket out of its class; it stays admitted.
    pub fn leave(&mut self, index: u32) {
        let entry = &self.tickets[index];
        let class_index = entry.class;
        let class = &mut self.classes[class_index];
        match entry.stage {
            Stage::Waiting { previous, next } => {
                if previous == NONE {
                    class.first = next;
                } else {
                    self.tickets[previous].stage.set_next(next);
                }
                if next == NONE {
                    class.last = previous;
                } else {
                    self.tickets[next].stage.set_previous(previous);
                }
            }
            Stage::Early => {
                class.early.remove(&entry.age);
            }
            Stage::Parked { .. } | Stage::InFlight { .. } => return,
        }
        self.waiting -= 1;
        let class = &self.classes[class_index];
        if class.first == NONE && class.early.is_empty() {
            self.unrank_class(class_index);
        }
    }

    /// The head of a lane leaves to be sent at `now`.
    pub fn send_head(&mut self, lane: u32, now: Instant) -> Ticket {
        let class = self.lanes[lane].head;
        let index = self.oldest(class);
        self.leave(index);
        self.stamp += 1;
        self.lanes[lane].served = self.stamp;
        self.tickets[index].stage = Stage::InFlight { sent: now };
        Ticket(self.tickets.id(index))
    }

    /// An admitted ticket leaves at `now` without having been in line: nobody waits in its lane. The same as
    /// [`Queue::join`] and [`Queue::send_head`].
    pub fn send_at_once(&mut self, index: u32, lane: u32, now: Instant) {
        self.stamp += 1;
        self.lanes[lane].served = self.stamp;
        self.tickets[index].stage = Stage::InFlight { sent: now };
    }

    /// Forgets a ticket that is in no line, and its class and lane with the last of their tickets. Gives the
    /// lane if it is forgotten.
    pub fn forget(&mut self, index: u32) -> Option<Lane> {
        let class_index = self.tickets.remove(index).class;
        let lane_index = self.classes[class_index].lane;
        self.withdraw(class_index);
        let lane = &mut self.lanes[lane_index];
        lane.members -= 1;
        if lane.members > 0 {
            return None;
        }
        let lane = self.lanes.remove(lane_index);
        if let Some(key) = &lane.key {
            self.by_key.remove(key);
        }
        Some(lane)
    }

    /// What is in flight: send times with the scopes of each.
    pub fn flying(&self) -> impl Iterator<Item = (Instant, &[u32])> {
        self.tickets.iter().filter_map(|entry| match entry.stage {
            Stage::InFlight { sent } => Some((sent, &*self.lane_at(self.class(entry.class).lane).scopes)),
            _ => None,
        })
    }

    pub fn get(&self, ticket: Ticket) -> Option<&Entry> {
        self.tickets.get(ticket.0)
    }

    pub fn entry(&mut self, index: u32) -> &mut Entry {
        &mut self.tickets[index]
    }

    pub fn class(&self, index: u32) -> &Class {
        &self.classes[index]
    }

    pub fn lane_at(&self, lane: u32) -> &Lane {
        &self.lanes[lane]
    }

    pub fn lane_mut(&mut self, lane: u32) -> &mut Lane {
        &mut self.lanes[lane]
    }

    /// Marks a lane as being nowhere; gives where it was.
    pub fn unplace(&mut self, lane: u32) -> (Place, u32) {
        let lane = &mut self.lanes[lane];
        (core::mem::replace(&mut lane.place, Place::Nowhere), lane.position)
    }

    /// Told by heaps of lanes where a lane now stands.
    pub fn place_lane(lanes: &mut Slab<Lane>) -> impl FnMut(u32, u32) + '_ {
        |lane, position| lanes[lane].position = position
    }

    pub fn lanes_mut(&mut self) -> &mut Slab<Lane> {
        &mut self.lanes
    }

    /// What the head of a lane costs in its scope number `position`.
    pub fn head_cost(&self, lane: u32, position: usize) -> Cost {
        self.classes[self.lanes[lane].head].need.costs.of(position)
    }

    /// What the head of a lane costs in `scope`.
    pub fn head_cost_at(&self, lane: u32, scope: u32) -> Cost {
        let position = self.lanes[lane].scopes.iter().position(|&other| other == scope);
        position.map_or(Cost::ZERO, |position| self.head_cost(lane, position))
    }

    /// The rank of a lane that has a head.
    pub fn rank(&self, lane: u32) -> Rank {
        let lane = &self.lanes[lane];
        let class = &self.classes[lane.head];
        let age = self.tickets[self.oldest(lane.head)].age.max(lane.served);
        Rank { priority: class.need.priority, share: class.need.share, age }
    }

    /// The oldest of a class in which somebody waits.
    fn oldest(&self, class: u32) -> u32 {
        let class = &self.classes[class];
        match class.early.first_key_value() {
            Some((&age, &early)) if class.first == NONE || age < self.tickets[class.first].age => early,
            _ => class.first,
        }
    }

    /// The class with this need in which somebody waits.
    fn class_of(&self, lane: u32, need: &Need) -> Option<u32> {
        let lane = &self.lanes[lane];
        if lane.head != NONE && self.classes[lane.head].need == *need {
            return Some(lane.head);
        }
        lane.rest.get(need).copied()
    }

    /// Two classes with the same need can exist when neither had anybody waiting. Whoever joins then joins
    /// the one that is ranked.
    fn merged(&mut self, index: u32, class_index: u32) -> u32 {
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

    fn rank_class(&mut self, class_index: u32) {
        let class = &self.classes[class_index];
        let lane = &mut self.lanes[class.lane];
        if lane.head == class_index {
            return;
        }
        if lane.head == NONE {
            lane.head = class_index;
        } else if class.need < self.classes[lane.head].need {
            let old = core::mem::replace(&mut lane.head, class_index);
            lane.rest.insert(self.classes[old].need.clone(), old);
        } else {
            lane.rest.insert(class.need.clone(), class_index);
        }
    }

    fn unrank_class(&mut self, class_index: u32) {
        let class = &self.classes[class_index];
        let lane = &mut self.lanes[class.lane];
        if lane.head == class_index {
            lane.head = lane.rest.pop_first().map_or(NONE, |(_, next)| next);
        } else {
            lane.rest.remove(&class.need);
        }
    }
}

impl Lane {
    fn new(scopes: Scopes, key: Option<Rc<[u64]>>, is_free: bool) -> Self {
        Self {
            scopes,
            key,
            is_free,
            place: Place::Nowhere,
            position: 0,
            head: NONE,
            rest: BTreeMap::new(),
            served: 0,
            members: 0,
        }
    }
}

impl Stage {
    fn set_next(&mut self, index: u32) {
        if let Self::Waiting { next, .. } = self {
            *next = index;
        }
    }

    fn set_previous(&mut self, index: u32) {
        if let Self::Waiting { previous, .. } = self {
            *previous = index;
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
    }
}
