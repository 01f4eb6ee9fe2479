//! Waiting requests, in order.
//!
//! Requests with the same set of scopes wait in one *lane*. Those that are free in a scope have a lane apart,
//! for no quota blocks them. Inside a lane, requests with the same cost and priority form a *class*, first
//! come, first served. All requests of a class are therefore alike but for their age, and a lane is asked by
//! asking its head.
//!
//! Cost: a decision moves a few lanes, whatever waits. The one exception is a lane that two scopes block in
//! turns: each time one opens and the other does not, it moves from one queue to the other. A decision may
//! therefore move up to k lanes, where k different scope sets share two scopes that are both at their limit.
//!
//! A change never asks everything that waits. A lane is always in exactly one place: *ready* to be asked, or
//! in the queue of the one scope that blocked it. Only that scope asks it again.
//!
//! Order among lanes ([`Rank`]): priority, then the larger share of a quota, then age. A lane's age counts
//! from when its head became its head: a host with a thousand waiting requests goes to the back
//! after each send, so hosts that share a scope take turns.

mod class;
mod indexed_heap;
mod lane;
mod wait_queue;

use self::class::Class;
pub(crate) use self::{
    class::{Costs, Need, priority_key},
    indexed_heap::IndexedHeap,
    lane::{Lane, Place, Scopes},
    wait_queue::{LazyWaitQueue, Rank, WaitQueue},
};
use crate::{decision::Ticket, slab::Slab, sorted::SortedIndex, time::Instant};

/// "No index". Tables never grow that large.
pub(crate) const NONE: u32 = u32::MAX;

/// Bits of an age that tell apart what happens within one microsecond.
const AGES: u32 = 8;

/// The stage of a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// In its class, with its neighbours there.
    Waiting { previous: u32, next: u32 },
    /// In its class, but older than others that were there first. Position in the heap of those.
    Early { position: u32 },
    /// Not yet in its class: its own delay runs. Position in the heap of the parked.
    Parked { position: u32 },
    /// Sent at this instant.
    InFlight { sent: Instant },
    /// The same of a request that [left alone](Queue::send_express).
    Express { sent: Instant },
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub stage: Stage,
    /// The class; of an express ticket the scope.
    pub class: u32,
    /// It was sent before, and no response came.
    pub has_failed: bool,
    age: u64,
}

/// A lane of one scope whose last request has ended, and the class of that one. The next request is most
/// often like it: then no lane has to be made. One at a time, so that a million hosts keep one.
#[derive(Clone, Copy, Debug)]
struct Spare {
    lane: u32,
    class: u32,
}

/// Where a request stands that [joined](Queue::join).
pub(crate) enum Joined {
    /// Behind another of its lane, which stays where it is.
    Behind,
    /// It is the first that waits in this lane.
    First(u32),
    /// Before others of this lane, which moves up.
    Before(u32),
}

/// A request that left a plain lane, and what that changed.
pub(crate) struct SentPlain {
    pub ticket: Ticket,
    /// When it left, as an age.
    pub served: u64,
    /// Where the lane stands from now on, if a request waits in it.
    pub rank: Option<Rank>,
    /// The lane that was the spare one, if that is forgotten.
    pub spare: Option<Lane>,
}

/// All tickets, classes and lanes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    tickets: Slab<Entry>,
    classes: Slab<Class>,
    lanes: Slab<Lane>,
    by_key: SortedIndex,
    spare: Option<Spare>,
    /// The last age that was given out: an instant, and a number for what happens within it.
    stamp: u64,
    pub waiting: u32,
}

impl Queue {
    /// Takes a request in at `now` that has waited since. It does not wait yet: see [`Queue::join`].
    pub fn admit(&mut self, lane: u32, need: Need, now: Instant, since: Instant) -> Ticket {
        let age = if since < now { since.micros() << AGES } else { self.next_age(now) };
        let class = self.enrol(lane, need);
        self.lanes[lane].members += 1;
        let stage = Stage::Parked { position: NONE };
        Ticket(self.tickets.insert(Entry { stage, class, has_failed: false, age }))
    }

    /// The age of what happens now: later than all before. A request that waited elsewhere before has its
    /// place among them by time.
    fn next_age(&mut self, now: Instant) -> u64 {
        self.stamp = (self.stamp + 1).max(now.micros() << AGES);
        self.stamp
    }

    /// Moves a ticket that is in no class's list to the class of another need in the same lane.
    pub fn reclass(&mut self, index: u32, need: Need) {
        let old = self.tickets[index].class;
        let class = self.enrol(self.classes[old].lane, need);
        self.tickets[index].class = class;
        self.withdraw(old);
    }

    /// Puts an admitted ticket in the list of its class, by age.
    pub fn join(&mut self, index: u32) -> Joined {
        let Entry { class: class_index, age, .. } = self.tickets[index];
        let Class { last, lane: lane_index, .. } = self.classes[class_index];
        let lane = &mut self.lanes[lane_index];
        let joined = if last != NONE && self.tickets[last].age <= age {
            Joined::Behind
        } else if last == NONE && lane.head == NONE {
            lane.head = class_index;
            Joined::First(lane_index)
        } else {
            return self.join_among(index, lane_index);
        };
        self.append(class_index, index);
        joined
    }

    /// The same where others of the lane wait, or an older one comes late.
    fn join_among(&mut self, index: u32, lane: u32) -> Joined {
        let before = self.rank(lane);
        let Entry { class, age, .. } = self.tickets[index];
        let class = self.merged(index, class);
        let last = self.classes[class].last;
        if last != NONE && self.tickets[last].age > age {
            self.classes[class].early.push(age, index, &mut place_early(&mut self.tickets));
            self.waiting += 1;
        } else {
            self.append(class, index);
        }
        self.rank_class(class);
        if before == self.rank(lane) { Joined::Behind } else { Joined::Before(lane) }
    }

    /// Puts a ticket last in the list of a class.
    #[inline(always)]
    fn append(&mut self, class: u32, index: u32) {
        let class = &mut self.classes[class];
        let previous = core::mem::replace(&mut class.last, index);
        if previous == NONE {
            class.first = index;
        } else {
            self.tickets[previous].stage.set_next(index);
        }
        self.tickets[index].stage = Stage::Waiting { previous, next: NONE };
        self.waiting += 1;
    }

    /// Takes a waiting ticket out of its class; it stays admitted.
    pub fn remove(&mut self, index: u32) {
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
            Stage::Early { position } => {
                class.early.remove(position, &mut place_early(&mut self.tickets));
            }
            Stage::Parked { .. } | Stage::InFlight { .. } | Stage::Express { .. } => return,
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
        self.remove(index);
        self.lanes[lane].served = self.next_age(now);
        self.tickets[index].stage = Stage::InFlight { sent: now };
        Ticket(self.tickets.id(index))
    }

    /// A request leaves at `now` without having waited: its lane is empty. The same as [`Queue::admit`],
    /// [`Queue::join`] and [`Queue::send_head`].
    pub fn send_at_once(&mut self, lane: u32, need: Need, now: Instant) -> Ticket {
        let age = self.next_age(now);
        let class = self.enrol(lane, need);
        let served = self.next_age(now);
        let lane = &mut self.lanes[lane];
        (lane.served, lane.members) = (served, lane.members + 1);
        let stage = Stage::InFlight { sent: now };
        Ticket(self.tickets.insert(Entry { stage, class, has_failed: false, age }))
    }

    /// A request of this one scope, of cost 1 and priority 0, leaves at once. It has neither class nor lane
    /// until a verb needs them ([`Queue::enrol_express`]). Gives its age, too.
    #[inline(always)]
    pub fn send_express(&mut self, scope: u32, now: Instant) -> (Ticket, u64) {
        let age = self.next_age(now);
        self.stamp = age + 1;
        let stage = Stage::Express { sent: now };
        (Ticket(self.tickets.insert(Entry { stage, class: scope, has_failed: false, age })), age + 1)
    }

    /// A ticket that was sent by the lane of this one scope needs it no more, if it is plain. Gives when it
    /// left, as an age, and the lane that was the spare one, if that is forgotten.
    pub fn leave_express(&mut self, index: u32, scope: u32) -> Option<(u64, Option<Lane>)> {
        let Entry { stage: Stage::InFlight { sent }, class, .. } = self.tickets[index] else { return None };
        if self.classes[class].need != Need::PLAIN {
            return None;
        }
        let entry = &mut self.tickets[index];
        (entry.stage, entry.class) = (Stage::Express { sent }, scope);
        let served = self.lanes[self.classes[class].lane].served;
        Some((served, self.vacate(class)))
    }

    /// The scope of a lane that has no other, where all that waits says no more than that.
    #[inline(always)]
    pub fn plain_lane(&self, lane: u32) -> Option<u32> {
        let lane = &self.lanes[lane];
        let class = &self.classes[lane.head];
        let is_plain = class.need == Need::PLAIN && class.early.is_empty() && lane.others.is_empty();
        match lane.scopes {
            Scopes::One([scope]) if is_plain => Some(scope),
            _ => None,
        }
    }

    /// [`Queue::send_head`] and [`Queue::leave_express`] of a [plain lane](Queue::plain_lane) of this scope.
    pub fn send_plain(&mut self, lane: u32, scope: u32, now: Instant) -> SentPlain {
        let served = self.next_age(now);
        let lane = &mut self.lanes[lane];
        lane.served = served;
        let class_index = lane.head;
        let class = &mut self.classes[class_index];
        let index = class.first;
        let (id, entry) = self.tickets.item_mut(index);
        let next = if let Stage::Waiting { next, .. } = entry.stage { next } else { NONE };
        (entry.stage, entry.class) = (Stage::Express { sent: now }, scope);
        class.first = next;
        let rank = if next == NONE {
            (class.last, lane.head) = (NONE, NONE);
            None
        } else {
            let entry = &mut self.tickets[next];
            entry.stage.set_previous(NONE);
            let Need { priority, share, .. } = Need::PLAIN;
            Some(Rank { priority, share, age: entry.age.max(served) })
        };
        self.waiting -= 1;
        SentPlain { ticket: Ticket(id), served, rank, spare: self.vacate(class_index) }
    }

    /// The scope of an express ticket.
    #[inline(always)]
    pub fn express(&self, ticket: Ticket) -> Option<u32> {
        let entry = self.tickets.get(ticket.0)?;
        matches!(entry.stage, Stage::Express { .. }).then_some(entry.class)
    }

    /// An express ticket is over.
    #[inline(always)]
    pub fn forget_express(&mut self, index: u32) {
        self.tickets.remove(index);
    }

    /// Makes an express ticket one like all others: as if [`Queue::send_at_once`] had given it, and the last
    /// of its lane had left at `served`.
    pub fn enrol_express(&mut self, index: u32, lane: u32, served: u64) {
        let Stage::Express { sent } = self.tickets[index].stage else { return };
        let class = self.enrol(lane, Need::PLAIN);
        let lane = &mut self.lanes[lane];
        (lane.served, lane.members) = (lane.served.max(served), lane.members + 1);
        let entry = &mut self.tickets[index];
        (entry.stage, entry.class) = (Stage::InFlight { sent }, class);
    }

    /// The scopes of a ticket.
    pub fn scopes_of<'a>(&'a self, entry: &'a Entry) -> &'a [u32] {
        match entry.stage {
            Stage::Express { .. } => core::slice::from_ref(&entry.class),
            _ => &self.lane_at(self.class(entry.class).lane).scopes,
        }
    }

    /// An admitted ticket left at `sent`, from somewhere else.
    pub fn adopt(&mut self, index: u32, sent: Instant) {
        self.tickets[index].stage = Stage::InFlight { sent };
    }

    /// Forgets a ticket that does not wait, and its class and lane with the last of their tickets. A lane of
    /// one scope becomes the spare one; gives the one that was, and is forgotten.
    pub fn forget(&mut self, index: u32) -> Option<Lane> {
        let class = self.tickets.remove(index).class;
        self.vacate(class)
    }

    /// Moves a ticket that is in no class's list to another lane, with all that it needs there. Gives the
    /// lane that was the spare one, if that is forgotten.
    pub fn change_lane(&mut self, index: u32, lane: u32) -> Option<Lane> {
        let old = self.tickets[index].class;
        let class = self.enrol(lane, self.classes[old].need.clone());
        self.lanes[lane].members += 1;
        self.tickets[index].class = class;
        self.vacate(old)
    }

    /// The requests that wait in a lane.
    pub fn waiting_in(&self, lane: u32) -> Vec<u32> {
        let lane = &self.lanes[lane];
        let head = (lane.head != NONE).then_some(lane.head);
        let mut found = Vec::new();
        for class in head.into_iter().chain(lane.others.iter().copied()) {
            let class = &self.classes[class];
            found.extend(class.early.items());
            let mut at = class.first;
            while at != NONE {
                found.push(at);
                at = match self.tickets[at].stage {
                    Stage::Waiting { next, .. } => next,
                    _ => NONE,
                };
            }
        }
        found
    }

    /// One ticket of a class less.
    fn vacate(&mut self, class: u32) -> Option<Lane> {
        let lane_index = self.classes[class].lane;
        let lane = &mut self.lanes[lane_index];
        lane.members -= 1;
        if lane.members > 0 {
            self.withdraw(class);
            return None;
        }
        if lane.key.is_none() {
            lane.served = 0;
            self.classes[class].members = 0;
            let old = if self.spare.is_none() { None } else { self.take_spare() };
            self.spare = Some(Spare { lane: lane_index, class });
            return old;
        }
        self.withdraw(class);
        let key = self.lanes[lane_index].key.as_deref();
        self.by_key.remove(&|other| self.lanes[other].key.as_deref().cmp(&key));
        self.lanes.remove(lane_index);
        None
    }

    /// Forgets the spare lane, if there is one, and gives it.
    pub fn take_spare(&mut self) -> Option<Lane> {
        let Spare { lane, class } = self.spare.take()?;
        self.classes.remove(class);
        Some(self.lanes.remove(lane))
    }

    /// The requests in flight: send times with the scopes of each.
    pub fn flying(&self) -> impl Iterator<Item = (Instant, &[u32])> {
        self.tickets.iter().filter_map(|entry| match entry.stage {
            Stage::InFlight { sent } | Stage::Express { sent } => Some((sent, self.scopes_of(entry))),
            _ => None,
        })
    }

    #[inline(always)]
    pub fn get(&self, ticket: Ticket) -> Option<&Entry> {
        self.tickets.get(ticket.0)
    }

    #[inline]
    pub fn entry(&mut self, index: u32) -> &mut Entry {
        &mut self.tickets[index]
    }
}

/// Notes where a ticket stands among those that are older than their class's last.
fn place_early(tickets: &mut Slab<Entry>) -> impl FnMut(u32, u32) {
    |index, position| tickets[index].stage = Stage::Early { position }
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
