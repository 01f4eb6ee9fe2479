//! A new leader listens before it grants: then it knows the age of each request and who is in flight.
//!
//! It goes on from the newest snapshot that there is: the stored one, its own, or that of a member.

use autothrottle::{Instant, Span};

use crate::{
    api::{Epoch, MemberId},
    frame::{Act, Head, Memory, Open},
    leader::Story,
    member::Kept,
    stored::{last_number, memory},
    vec_map::VecMap,
};

/// How long it listens for processes that it does not know; those that it knows may take a fifth of a lease
/// longer, since they repeat a lost story then. Where it does not know who lived it is twice that: each may
/// have slots of which only its story tells, and that has the way there and back.
pub const COLLECT: Span = Span::from_micros(100_000);
/// Batches that follow a story, at most.
const MOST_BATCHES: usize = 4096;

#[derive(Debug)]
pub struct Collecting {
    pub epoch: Epoch,
    /// It is over at the latest then.
    pub until: Instant,
    /// When all are asked again.
    pub ask_at: Instant,
    pub stories: VecMap<MemberId, Story>,
    pub batches: Vec<(MemberId, u32, u32, Vec<Act>)>,
    /// The members whose reports it waits for, if that is known.
    pub missing: Option<VecMap<MemberId>>,
    /// Snapshots that it may go on from; and the newest of the beginning, which took a while to read.
    known: Vec<Kept>,
    read: Option<((Epoch, u32), Memory)>,
    /// It asked for a newer one.
    wants: Option<(Epoch, u32)>,
    /// The leader before: it was silent for a lease, so it is waited for only as long as an unknown process.
    former: Option<MemberId>,
    started: Instant,
    lease: Span,
}

impl Collecting {
    /// `gone` has ended, and `own` is this process.
    pub fn new(
        now: Instant,
        (epoch, lease): (Epoch, Span),
        known: Vec<Kept>,
        (own, former, gone): (MemberId, Option<MemberId>, Option<MemberId>),
    ) -> Self {
        let mut collecting = Self {
            epoch,
            until: now + COLLECT,
            ask_at: now + COLLECT,
            stories: VecMap::default(),
            batches: Vec::new(),
            missing: None,
            known: Vec::new(),
            read: None,
            wants: None,
            former,
            started: now,
            lease,
        };
        for kept in known {
            collecting.insert(kept);
        }
        let longer = Span::from_micros(lease.micros() / 5);
        if epoch > 1 {
            collecting.until = now + COLLECT + longer + longer;
        }
        let first = collecting.known.first();
        let read = first.and_then(|kept| Some((kept.number, now.since(kept.at), memory(&kept.bytes)?)));
        if let Some((number, age, memory)) = read {
            let there = memory.members.iter().filter(|known| known.alive && Some(known.id) != gone);
            let mut missing = VecMap::default();
            for id in there.map(|known| known.id).chain([own]) {
                missing.add(id, ());
            }
            collecting.read = Some((number, memory));
            // An old one tells of others than those that live, but where no other process was left.
            if age.micros() <= 2 * lease.micros() || missing.len() == 1 && number.0 + 1 == epoch {
                collecting.missing = Some(missing);
                collecting.until = now + COLLECT + longer;
            }
        }
        collecting
    }

    /// A story came in; true if the snapshot of its member is wanted.
    pub fn hear(&mut self, now: Instant, from: MemberId, head: &Head, open: Open) -> bool {
        let seen = open.seen;
        if self.stories.get(&from).is_none_or(|story| story.head.session < head.session) {
            self.stories.insert(from, Story { from, head: *head, open, at: now });
        }
        if let Some(missing) = &mut self.missing {
            missing.remove(&from);
        }
        let newest =
            self.known.first().map_or((0, 0), |kept| kept.number).max(self.wants.unwrap_or_default());
        let is_newer = seen > newest && seen.0 < self.epoch;
        if is_newer {
            self.wants = Some(seen);
            self.until = self.until.max(self.started + Span::from_micros(self.lease.micros() / 3));
        }
        is_newer
    }

    pub fn batch(&mut self, from: MemberId, session: u32, number: u32, acts: Vec<Act>) {
        if self.batches.len() < MOST_BATCHES {
            self.batches.push((from, session, number, acts));
        }
    }

    /// A member gives its snapshot.
    pub fn lent(&mut self, kept: Kept) {
        if self.wants.is_some_and(|wants| kept.number >= wants) {
            self.wants = None;
        }
        self.insert(kept);
    }

    /// The newest first.
    fn insert(&mut self, kept: Kept) {
        let place = self.known.partition_point(|known| known.number >= kept.number);
        self.known.insert(place, kept);
    }

    /// A process has ended: its story will not come.
    pub fn lose(&mut self, id: MemberId) {
        self.stories.remove(&id);
        if let Some(missing) = &mut self.missing {
            missing.remove(&id);
        }
    }

    /// How many bytes the longest snapshot has.
    pub fn longest(&self) -> usize {
        self.known.iter().map(|kept| kept.bytes.len()).max().unwrap_or(0)
    }

    /// Whether it is over. `None`: all are to be asked again.
    pub fn is_over(&mut self, now: Instant) -> Option<bool> {
        if now >= self.started + COLLECT
            && let (Some(missing), Some(former)) = (&mut self.missing, self.former)
        {
            missing.remove(&former);
        }
        let is_complete = self.wants.is_none() && self.missing.as_ref().is_some_and(VecMap::is_empty);
        if is_complete || now >= self.until {
            return Some(true);
        }
        if now < self.ask_at {
            return Some(false);
        }
        self.ask_at = now + COLLECT;
        None
    }

    pub fn wake_at(&self) -> Instant {
        self.ask_at.min(self.until)
    }

    /// The newest snapshot that can be read, with its age; and whether there is one that cannot and may be
    /// newer.
    pub fn memory(&mut self, now: Instant) -> (Option<(Memory, Span)>, bool) {
        let (mut newest, mut is_wrong) = (None, false);
        for kept in &self.known {
            let read = self.read.take_if(|(number, _)| *number == kept.number);
            if let (None, Some((_, memory))) = (&newest, read) {
                newest = Some((memory, now.since(kept.at)));
            } else if newest.is_some() {
                is_wrong |= last_number(&kept.bytes).is_none();
            } else if let Some(memory) = memory(&kept.bytes) {
                newest = Some((memory, now.since(kept.at)));
            } else {
                is_wrong = true;
            }
        }
        (newest, is_wrong)
    }
}
