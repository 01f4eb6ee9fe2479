//! The requests of one process, and what the leader has to be told of them.
//!
//! A process that remembers for this one may be gone. Everything is therefore kept here until it is over, and
//! how it ended until that is in a stored snapshot. If something may have been lost, a new session says all
//! again.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use autothrottle::{Instant, Span, boundary};

use crate::{
    api::{self, Epoch, Order, Ticket},
    clock::PeerClock,
    codec::Number,
    frame::{self, Act, Ask, Digest, Fact, Flight, GrantId, Open, Said},
    peer::VALID,
    stored,
    vec_map::VecMap,
};

/// How late it is said: where no request waits for the time after it, where one does, and where its quota is
/// strict; and never of what was granted ahead: what follows it is granted, too.
const LATE: [Span; 4] =
    [Span::from_micros(20_000), Span::from_micros(500), Span::ZERO, Span::from_micros(u64::MAX)];
/// The place of the last.
pub const AHEAD: usize = 3;
/// A request of an `Open` takes so long to be told and heard, on a machine that has much to do.
const TELL: Span = Span::from_micros(50);
/// How long an answer that changes little may wait for the next message, where no request waits for its slot.
const LAZY: Span = Span::from_micros(2000);
/// The same where its slot is in use again: so the leader has none to give.
const USED: Span = Span::from_micros(20_000);
/// Where the leader grants ahead, it has no need to hear sooner, at most; and for so long after it said so.
pub const SOON: Span = Span::from_micros(200_000);
pub const LONG: Span = Span::from_micros(400_000);
/// The number of times that slots are used again before the leader has heard of it: it has much to do where
/// all processes are quick, and keeps up so.
const MOST_USED: u32 = 64;
/// Requests of a story, and acts of a batch, at most: the rest follows in the next batches.
const MOST_AT_ONCE: usize = 50_000;
/// Facts that no stored snapshot has, at most: beyond it the oldest are given up.
const MOST_FACTS: usize = 20_000;

#[derive(Clone, Debug)]
pub struct Pending {
    pub what: Arc<frame::Request>,
    since: Instant,
    not_before: Instant,
    pub attempt: u32,
    pub stage: Stage,
    /// Its route, where the leader does not know it: the answer may be the first to name a budget.
    pub route: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stage {
    Waiting,
    /// It may leave between these instants.
    Granted {
        at: Instant,
        until: Instant,
        due: Instant,
        by: GrantId,
        tells: usize,
        free: Option<u32>,
    },
    /// When it left as far as the leader knows, and when it did.
    Flying {
        due: Instant,
        sent: Instant,
        by: GrantId,
        tells: usize,
        alone: bool,
        /// The round in which its slot may be used again.
        free: Option<u32>,
    },
}

/// A request that ended, and is not said yet.
#[derive(Debug)]
struct Ended {
    say_by: Instant,
    sent: Instant,
    late: Span,
    flight: Flight,
    digest: Digest,
    free: Option<u32>,
}

/// The leader's state, as it told it piece by piece: see `stored`.
#[derive(Clone, Debug)]
pub struct Kept {
    pub bytes: Arc<Vec<u8>>,
    pub number: (Epoch, u32),
    pub at: Instant,
}

impl Kept {
    /// A chain that came in.
    pub fn new(bytes: Vec<u8>, at: Instant) -> Self {
        let number = stored::last_number(&bytes).unwrap_or((0, 0));
        Self { bytes: Arc::new(bytes), number, at }
    }
}

#[derive(Debug, Default)]
pub struct Member {
    /// Of the leader that is asked; 0 before there is one.
    pub epoch: Epoch,
    pub session: u32,
    pub watch: u32,
    pub memory: Option<Kept>,
    /// Statistics, all and then some, and when the last ones came.
    pub seen: Option<(Vec<Vec<u8>>, Instant)>,
    pub clock: PeerClock,
    /// Of this process, and of all.
    pub rank: Option<(u32, u32)>,
    pub returned: u64,
    pub in_flight: u32,
    /// A request waits for the time after what was polled last.
    pub is_awaited: bool,
    /// Only this process decides, as one of this many: since when, or when it sent last.
    pub alone: Option<(Instant, u32)>,
    /// The time that the whole limit takes for requests that left alone and that the leader does not know
    /// yet.
    pub debt: Span,
    tickets: u64,
    pub batches: u32,
    seq: u64,
    pub requests: BTreeMap<Ticket, Pending>,
    /// Those that were granted, by the instant from which they may leave.
    pub ready: BTreeSet<(Instant, Ticket)>,
    /// With the instant at which a request left, or an order was given.
    pub log: VecDeque<(Instant, Fact)>,
    acts: Vec<Act>,
    /// When those are said at the latest; `None` where there are none.
    say_by: Option<Instant>,
    /// Some request waited for another one when the leader last replied.
    pub is_busy: bool,
    /// Good ends, in order: until one is reported, the next request like it may have its slot.
    spare: Vec<Ended>,
    /// A reply that forbids this begins a round: slots that were granted before are not used again.
    pub round: u32,
    /// The leader replied not long ago: until then slots are used again.
    pub fresh: Instant,
    /// How often they were since it heard of it, and which batch says the last time.
    pub used: (u32, u32),
    /// The last request, in case the next one is like it.
    last: Option<Arc<frame::Request>>,
    late: VecMap<Ticket>,
    /// Requests like this one are granted ahead, and more wait: they may be said so much later, until then.
    pub long: Option<(Arc<frame::Request>, Span, Instant)>,
    pub wants_open: bool,
    opened: Option<Instant>,
    /// Replies heard in this session: all up to here, and some beyond.
    pub replies: u32,
    pub beyond: VecMap<u32>,
    /// The numbers of both sides' last frames when a reply was last looked at; and when that was.
    pub before: (u32, u32),
    pub looked_at: Instant,
    /// Batches that were said, and grants that were given back, at the last tick.
    talked: (u32, u64),
}

impl Member {
    /// How many have not left.
    pub fn waiting(&self) -> u32 {
        self.requests.len() as u32 - self.in_flight
    }

    pub fn submit(&mut self, now: Instant, what: Arc<frame::Request>, delay: Span) -> Ticket {
        let id = self.tickets;
        self.tickets += 1;
        self.last = Some(what.clone());
        let not_before = now + delay;
        let stage = Stage::Waiting;
        let mut pending = Pending { what, since: now, not_before, attempt: 0, stage, route: None };
        match self.spare(now, &pending.what, delay) {
            Some(ended) => {
                let (by, free) = (ended.flight.by, ended.free);
                pending.stage = Stage::Granted { at: now, until: now + VALID, due: now, by, tells: 0, free };
                self.ready.insert((now, id));
                self.used = (self.used.0 + 1, self.batches + 1);
                self.end(now + USED, ended, Some(id));
            }
            None => self.act(self.soon(now, &pending.what), Act::Ask(ask(id, &pending, now))),
        }
        self.requests.insert(id, pending);
        id
    }

    /// The slot of a request like this one that ended and is not said yet: the leader counts it still.
    fn spare(&mut self, now: Instant, what: &Arc<frame::Request>, delay: Span) -> Option<Ended> {
        let is_like = |ended: &Ended| ended.free == Some(self.round) && ended.flight.ask.what == *what;
        let place = self.spare.iter().position(is_like)?;
        let is_free = delay == Span::ZERO && now < self.fresh && self.used.0 < MOST_USED;
        is_free.then(|| self.spare.remove(place))
    }

    /// Whether the leader hears of this process often enough, and needs no ping, as it grants ahead: its
    /// replies say what was lost. Where grants came back, the next ping says for how long they may be used.
    pub fn talks(&mut self, now: Instant) -> bool {
        let talked = core::mem::replace(&mut self.talked, (self.batches, self.returned));
        let is_long = self.long.as_ref().is_some_and(|&(.., until)| now < until);
        is_long && self.batches > talked.0 && self.returned == talked.1
    }

    /// By when it is said, where the leader has granted ahead and more of the kind wait.
    fn soon(&self, now: Instant, what: &Arc<frame::Request>) -> Instant {
        match &self.long {
            Some((long, soon, until)) if long == what && now < *until => now + *soon,
            _ => now,
        }
    }

    /// It is over, and said by then.
    fn end(&mut self, by: Instant, ended: Ended, next: Option<Ticket>) {
        self.seq += 1;
        let Ended { sent, late, flight, digest, .. } = ended;
        let (seq, id, attempt) = (self.seq, flight.ask.id, flight.ask.attempt);
        self.act(by, Act::Done { seq, id, attempt, digest: digest.clone(), late, next });
        let mut digest = digest;
        // A process that hears it later hears of the next attempt as of a request that waits.
        if let Some(delay) = digest.numbers.get_mut(boundary::place::DELAY) {
            *delay = Number(f64::NAN);
        }
        self.note(sent, Fact::Done(seq, flight, digest));
    }

    /// Reports the ends that are due by then.
    fn end_all(&mut self, by: Instant, now: Instant) {
        for ended in core::mem::take(&mut self.spare) {
            if ended.say_by <= by {
                self.end(now, ended, None);
            } else {
                self.spare.push(ended);
            }
        }
    }

    /// The same as the last request, if it asked for the same.
    pub fn as_before(&self, ask: &api::Ask<'_>) -> Option<Arc<frame::Request>> {
        let is_same = |last: &&Arc<frame::Request>| {
            last.names == ask.names
                && last.costs.iter().map(|cost| cost.0).eq(ask.costs.iter().copied())
                && last.priority.0 == ask.priority
        };
        self.last.as_ref().filter(is_same).cloned()
    }

    /// The next that may leave now.
    pub fn poll(&mut self, now: Instant) -> Option<Ticket> {
        while let Some(&(at, id)) = self.ready.first()
            && at <= now
        {
            self.ready.pop_first();
            let Some(pending) = self.requests.get_mut(&id) else { continue };
            let Stage::Granted { until, due, by, tells, free, .. } = pending.stage else { continue };
            if now > until {
                pending.stage = Stage::Waiting;
                let (attempt, waited) = (pending.attempt, now.since(pending.since));
                self.act(now, Act::Returned { id, attempt, waited });
                self.returned += 1;
                continue;
            }
            let alone = self.alone.is_some();
            pending.stage = Stage::Flying { due, sent: now, by, tells, alone, free };
            self.in_flight += 1;
            if let Some((last, of)) = &mut self.alone {
                self.debt = self.debt + Span::from_micros(now.since(*last).micros() / u64::from(*of));
                *last = now;
            }
            self.is_awaited = tells > 0 && tells < AHEAD;
            self.leaves(now, id);
            return Some(id);
        }
        None
    }

    /// When [`Member::poll`] will have something, or there is something to say.
    pub fn wake_at(&self) -> Option<Instant> {
        let ready = self.ready.first().map(|&(at, _)| at);
        [ready, self.say_by()].into_iter().flatten().min()
    }

    /// A request leaves only now: what the leader grants next counts from here.
    pub fn leaves(&mut self, now: Instant, id: Ticket) {
        let Some(pending) = self.requests.get_mut(&id) else { return };
        if let Stage::Flying { due, sent, tells, .. } = &mut pending.stage {
            *sent = now;
            if now.since(*due) >= LATE.get(*tells).copied().unwrap_or_default() {
                self.late.add(id, ());
            }
        }
    }

    /// Whether one is in flight.
    pub fn is_flying(&self, id: Ticket) -> bool {
        self.requests.get(&id).is_some_and(|pending| matches!(pending.stage, Stage::Flying { .. }))
    }

    /// The names of one that is not over.
    pub fn names(&self, id: Ticket) -> Option<&[String]> {
        self.requests.get(&id).map(|pending| &*pending.what.names)
    }

    /// One that is in flight ended; `again` is the delay of its next attempt. An end that carries little news
    /// (`is_lazy`) may wait for the next frame.
    pub fn settle(&mut self, now: Instant, id: Ticket, digest: Digest, again: Option<Span>, is_lazy: bool) {
        if digest.fields.is_some() {
            self.say_route(now, id);
        }
        let Some(pending) = self.requests.get_mut(&id) else { return };
        let Some((sent, flight)) = flight(id, pending, now) else { return };
        let (late, free) = match pending.stage {
            Stage::Flying { due, sent, free, .. } => (sent.since(due), free),
            _ => (Span::ZERO, None),
        };
        self.in_flight -= 1;
        match again {
            Some(delay) => {
                pending.attempt += 1;
                pending.stage = Stage::Waiting;
                pending.not_before = now + delay;
            }
            None => {
                self.requests.remove(&id);
            }
        }
        let ended = Ended { say_by: now + LAZY, sent, late, flight, digest, free };
        if is_lazy && (!self.is_busy || free == Some(self.round)) {
            self.spare.push(ended);
        } else {
            let by = if is_lazy { self.soon(now, &ended.flight.ask.what) } else { now };
            self.end(by, ended, None);
        }
    }

    pub fn cancel(&mut self, now: Instant, id: Ticket) {
        if self.forget(id) {
            self.act(now, Act::Cancel(id));
        }
    }

    pub fn order(&mut self, now: Instant, order: Order) {
        self.seq += 1;
        self.act(now, Act::Order(self.seq, order.clone()));
        self.note(now, Fact::Order(self.seq, Span::ZERO, order));
    }

    pub fn watches(&mut self, now: Instant, level: u32) {
        self.watch = level;
        self.act(now, Act::Watch(level));
    }

    /// All that have not left.
    pub fn everybody(&self) -> Vec<Ticket> {
        let waits = |pending: &Pending| !matches!(pending.stage, Stage::Flying { .. });
        self.requests.iter().filter(|(_, pending)| waits(pending)).map(|(&id, _)| id).collect()
    }

    /// It is said by then. Where everything is said anew, this is as well.
    pub fn act(&mut self, by: Instant, act: Act) {
        if !self.wants_open && (self.epoch > 0 || self.alone.is_some()) {
            self.acts.push(act);
            self.say_by = Some(self.say_by.map_or(by, |known| known.min(by)));
        }
    }

    /// Another leader. Everything is said again; what was granted and has not left may leave still.
    pub fn enter(&mut self, epoch: Epoch) {
        self.epoch = epoch;
        self.wants_open = true;
        self.rank = self.rank.filter(|_| self.alone.is_none());
    }

    /// The leader that granted these may have led no longer: what has not left waits again.
    pub fn waits_again(&mut self) {
        for (_, id) in core::mem::take(&mut self.ready) {
            if let Some(pending) = self.requests.get_mut(&id) {
                pending.stage = Stage::Waiting;
            }
        }
    }

    /// Everything is to be said again.
    pub fn open(&mut self) {
        self.wants_open = true;
    }

    /// The same, but not again and again while the answer is on its way: that takes longer where there is
    /// much to tell. A way that once stood still for long is no slow one.
    pub fn open_again(&mut self, now: Instant, lease: Span) {
        let way = self.clock.there_and_back().map_or(0, |span| 2 * span.micros()).min(lease.micros() / 2);
        let soon = (lease.micros() / 20).max(way) + TELL.micros() * self.requests.len() as u64;
        let soon = Span::from_micros(soon);
        if self.opened.is_none_or(|opened| now.since(opened) >= soon) {
            self.wants_open = true;
        }
    }

    /// Whether there is something to say now.
    pub fn has_news(&self, now: Instant) -> bool {
        (self.epoch > 0 || self.alone.is_some())
            && (self.wants_open || self.say_by().is_some_and(|by| by <= now) || !self.late.is_empty())
    }

    /// When there is something to say.
    pub fn say_by(&self) -> Option<Instant> {
        let ended = self.spare.first().map(|ended| ended.say_by);
        [self.say_by, ended].into_iter().flatten().min()
    }

    /// Reports that may wait are sent now.
    pub fn say_all(&mut self, now: Instant) {
        self.end_all(now + LAZY, now);
        self.say_by = self.say_by.map(|_| now);
    }

    /// The frame for the leader.
    pub fn flush(&mut self, now: Instant, options: &[u8]) -> Option<Said> {
        if !self.has_news(now) {
            return None;
        }
        if core::mem::take(&mut self.wants_open) {
            return Some(Said::Open(Box::new(self.story(now, options))));
        }
        self.end_all(now, now);
        let mut acts = Vec::with_capacity(self.acts.len() + self.late.len());
        for (id, ()) in core::mem::take(&mut self.late) {
            let Some(pending) = self.requests.get_mut(&id) else { continue };
            if let Stage::Flying { due, sent, .. } = &mut pending.stage {
                let late = sent.since(*due);
                *due = *sent;
                acts.push(Act::SentAt { id, attempt: pending.attempt, late });
            }
        }
        for mut act in core::mem::take(&mut self.acts) {
            if let Act::Ask(asked) = &mut act
                && let Some(pending) = self.requests.get(&asked.id)
            {
                *asked = ask(asked.id, pending, now);
            }
            acts.push(act);
        }
        self.say_by = None;
        if acts.len() > MOST_AT_ONCE {
            self.acts = acts.split_off(MOST_AT_ONCE);
            self.say_by = Some(now);
        }
        self.batches += 1;
        Some(Said::Batch { number: self.batches, acts })
    }

    fn story(&mut self, now: Instant, options: &[u8]) -> Open {
        self.end_all(now + LAZY, now);
        self.session += 1;
        self.opened = Some(now);
        (self.batches, self.replies, self.before, self.used) = (0, 0, (0, 0), (0, 0));
        self.beyond.clear();
        self.acts.clear();
        self.say_by = None;
        self.late.clear();
        let mut open = Open {
            seen: self.memory.as_ref().map_or((0, 0), |memory| memory.number),
            waiting: Vec::new(),
            flying: Vec::new(),
            log: self.log.iter().map(|(at, fact)| aged(fact, now.since(*at))).collect(),
            options: options.to_vec(),
            watch: self.watch,
        };
        for (&id, pending) in &mut self.requests {
            match &mut pending.stage {
                Stage::Flying { due, sent, .. } => *due = *sent,
                // Said to have left, it would leave before its time for who decides, so it waits again.
                Stage::Granted { at, .. } if *at > now => {
                    self.ready.remove(&(*at, id));
                    pending.stage = Stage::Waiting;
                }
                _ => {}
            }
            match flight(id, pending, now) {
                Some((_, flight)) => open.flying.push(flight),
                None if open.waiting.len() < MOST_AT_ONCE => open.waiting.push(ask(id, pending, now)),
                None => {
                    self.acts.push(Act::Ask(ask(id, pending, now)));
                    self.say_by = Some(now);
                }
            }
        }
        open
    }

    /// Takes a request out. False if there is none.
    pub fn forget(&mut self, id: Ticket) -> bool {
        let Some(pending) = self.requests.remove(&id) else { return false };
        match pending.stage {
            Stage::Waiting => {}
            Stage::Granted { at, .. } => {
                self.ready.remove(&(at, id));
            }
            Stage::Flying { .. } => self.in_flight -= 1,
        }
        true
    }

    fn note(&mut self, at: Instant, fact: Fact) {
        self.log.push_back((at, fact));
        if self.log.len() > MOST_FACTS {
            self.log.pop_front();
        }
    }
}

/// A fact with its age.
fn aged(fact: &Fact, age: Span) -> Fact {
    match fact {
        Fact::Done(seq, flight, digest) => {
            Fact::Done(*seq, Flight { ago: age, ..flight.clone() }, digest.clone())
        }
        Fact::Order(seq, _, order) => Fact::Order(*seq, age, order.clone()),
    }
}

fn ask(id: Ticket, pending: &Pending, now: Instant) -> Ask {
    Ask {
        id,
        attempt: pending.attempt,
        what: pending.what.clone(),
        delay: pending.not_before.since(now),
        waited: now.since(pending.since),
    }
}

/// A request that left, or is about to: a permission of another leader's is used all the same.
fn flight(id: Ticket, pending: &Pending, now: Instant) -> Option<(Instant, Flight)> {
    let (sent, by, alone) = match pending.stage {
        Stage::Waiting => return None,
        Stage::Granted { by, .. } => (now, by, false),
        Stage::Flying { sent, by, alone, .. } => (sent, by, alone),
    };
    let ask = Ask { delay: Span::ZERO, ..ask(id, pending, now) };
    Some((sent, Flight { ask, ago: now.since(sent), by, alone }))
}
