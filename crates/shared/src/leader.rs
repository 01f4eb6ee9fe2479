//! The one process that decides: the very engine, asked by members.
//!
//! The traps: a slot that is given away twice when the leader changes (what flies is adopted before a request
//! is granted); what is counted twice then (each flight names its grant, and the snapshot says up to which
//! grant it counts); and the quickest after that (all are collected for a moment, and age decides).

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use autothrottle::{
    Boundary, Config, ConfigError, Instant, Span, Value,
    boundary::{Outcome, STRIDE, Settled, place},
};

use crate::{
    api::{Epoch, MemberId, Order, Refusal},
    clock::EngineClock,
    codec::{Number, hash, plain},
    frame::{Act, Ask, Digest, GrantId, Head, Memory, Open, Request, Said},
    offline,
    peer::{Held, Peer},
    reservation::{Reservations, Settings},
    split::Split,
    stored::Changes,
    vec_map::VecMap,
};

/// Snapshots count their age from here: no wall clock is believed.
pub const WALL_MS: f64 = 1e12;
/// Without a snapshot, it has none of what is adopted.
const LONG_AGO_MS: f64 = 1e10;
/// Members of a group, at most.
pub const MOST_MEMBERS: usize = 4096;
/// Batches of a member that came before others, at most.
const MOST_EARLY: usize = 64;
/// Members that left and are remembered, at most.
const MOST_FORMER: usize = 1024;

/// A story, as it came in.
#[derive(Debug)]
pub struct Story {
    pub from: MemberId,
    pub head: Head,
    pub open: Open,
    pub at: Instant,
}

/// The state that a leader starts with.
#[derive(Debug, Default)]
pub struct Beginning {
    pub memory: Option<Memory>,
    pub age: Span,
    /// Members that are known to have ended.
    pub gone: Option<MemberId>,
    /// This process has one of this many parts of every limit.
    pub share: Option<(u32, u32)>,
    /// Where no process decided before: what was learned at another time, and the wall time now.
    pub learned: Option<(Value, f64)>,
    /// Whether the state of the leader before cannot be read.
    pub unknown: bool,
}

#[derive(Debug)]
pub struct Leader {
    pub id: MemberId,
    pub epoch: Epoch,
    pub lease: Span,
    pub engine: Boundary,
    pub config: Config,
    pub clock: EngineClock,
    /// Of the options that count: their bytes, and their hash.
    pub options: (Vec<u8>, u64),
    /// Other options that a member has.
    pub offered: Option<(Vec<u8>, u64)>,
    pub peers: VecMap<MemberId, Peer>,
    pub former: VecMap<MemberId, (GrantId, u64)>,
    pub settings: Settings,
    pub is_paused: bool,
    /// Those that are owed a reply.
    pub owed: VecMap<MemberId>,
    pub reserved: Reservations,
    pub changes: Changes,
    /// Something was learned that should not be lost, or a member is new.
    pub has_news: bool,
    /// A member is not served: there are as many as there may be.
    pub is_crowded: bool,
    /// The frames for all members.
    pub tells: Vec<Said>,
    /// By its place among all, where this process has only a part of every limit.
    pub share: Option<(u32, u32)>,
    /// Whether requests with a quota are passed over, as they wait for the way.
    pub skips_quotas: bool,
    pub by_ticket: BTreeMap<u64, (MemberId, u64)>,
    /// Requests that left in a slot that was used again, since the last replies.
    pub again: Vec<(MemberId, u64)>,
    pub ahead: VecMap<(MemberId, u32, u32), Vec<Act>>,
    pub level: u32,
    /// The engine's instant at which it will have something.
    pub wake: Option<Instant>,
    /// The instants that were granted ahead and are to come, and when there are to be more. For so long
    /// members need not say what follows.
    pub sent_ahead: VecDeque<Instant>,
    pub refill_at: Instant,
    pub soon: Span,
    /// Grants of this turn are ahead, so most members have some.
    pub is_refilled: bool,
    /// The leader whose snapshot it goes on from.
    pub before: Epoch,
    /// The units that the leader before granted since then, as far as it is known, by scope.
    pub adopted: VecMap<String, f64>,
    /// Scopes whose servers name several budgets.
    pub split: Split,
    /// Since when what left of strict quotas is known: before, no process could read what a leader knew.
    pub unknown: Option<Instant>,
    /// Alone: from when it sends to a scope.
    pub phases: VecMap<String, Instant>,
}

impl Leader {
    pub fn new(
        now: Instant,
        (id, epoch, lease): (MemberId, Epoch, Span),
        own_options: &[u8],
        beginning: Beginning,
    ) -> Result<Self, ConfigError> {
        let Beginning { memory, age, gone, share, learned, unknown } = beginning;
        let bytes = memory.as_ref().map_or(own_options, |memory| &memory.options);
        let options = (bytes.to_vec(), hash(bytes));
        let value = plain(bytes).unwrap_or(Value::Nothing);
        let config = Config::parse(value.clone())?;
        let value = match share {
            Some(share) => offline::divided(value, share),
            None => value,
        };
        let mut engine = Boundary::new(value)?;
        let ahead = memory.as_ref().map_or(Span::ZERO, |memory| Span::from_micros(memory.ahead));
        let mut clock = EngineClock::new(now, ahead - age, share.map_or(1, |(of, _)| of));
        let engine_now = clock.now(now).millis();
        engine.seed(id.0.iter().fold(epoch, |seed, &byte| seed.wrapping_mul(257) + u64::from(byte)));
        match (&memory, learned) {
            (None, Some((snapshot, wall_ms))) => engine.restore(snapshot, engine_now, wall_ms)?,
            (memory, _) => {
                let snapshot = memory.as_ref().map_or_else(
                    || Value::object(vec![("version", 1.0.into()), ("scopes", Value::Map(vec![]))]),
                    |memory| memory.snapshot.0.clone(),
                );
                let snapshot = match share {
                    Some((of, _)) => offline::divided_snapshot(snapshot, of),
                    None => snapshot,
                };
                let age =
                    if memory.is_some() { (age - ahead).millis() / share_of(share) } else { LONG_AGO_MS };
                engine.restore(with_wall(snapshot), engine_now, WALL_MS + age)?;
            }
        }
        engine.watch(1);
        // Each process has found the options without effect by itself.
        let notices = engine.take_notices();
        let mut leader = Self {
            id,
            epoch,
            lease,
            engine,
            config,
            clock,
            options,
            offered: None,
            peers: VecMap::default(),
            former: VecMap::default(),
            settings: VecMap::default(),
            is_paused: false,
            owed: VecMap::default(),
            reserved: Reservations::default(),
            changes: Changes::default(),
            has_news: false,
            is_crowded: false,
            tells: Vec::new(),
            share,
            skips_quotas: false,
            by_ticket: BTreeMap::new(),
            again: Vec::new(),
            ahead: VecMap::default(),
            level: 1,
            wake: None,
            sent_ahead: VecDeque::new(),
            refill_at: Instant::default(),
            soon: Span::ZERO,
            is_refilled: false,
            before: 0,
            adopted: VecMap::default(),
            split: Split::default(),
            unknown: unknown.then_some(now),
            phases: VecMap::default(),
        };
        leader.note_split(&notices);
        if let Some(memory) = memory {
            leader.before = memory.epoch;
            leader.remember(now, age, memory, gone);
        }
        Ok(leader)
    }

    pub(crate) fn remember(&mut self, now: Instant, age: Span, memory: Memory, gone: Option<MemberId>) {
        if let Some(micros) = memory.unknown {
            self.unknown = self.unknown.max(Some(now - age - Span::from_micros(micros)));
        }
        for (name, partial) in memory.settings {
            self.apply(now, &Order::Configure(name, partial.0), Span::ZERO);
        }
        if memory.paused {
            self.apply(now, &Order::Pause(None), Span::ZERO);
        }
        for known in memory.members {
            let is_there = known.alive && Some(known.id) != gone && self.share.is_none();
            if !is_there || age.micros() > 2 * self.lease.micros() {
                self.former.insert(known.id, (known.counted, known.applied));
                continue;
            }
            // It keeps its slots until it tells its story, or is forgotten. Its cost is in the snapshot.
            let mut peer = Peer::new(now - age, known.counted, known.applied);
            peer.durable = known.applied;
            self.peers.insert(known.id, peer);
            let mut made = u64::MAX;
            for (count, names) in known.flying {
                let what = Request { names, costs: Vec::new(), priority: Number(0.0), route: None };
                let what = Arc::new(what);
                for _ in 0..count.min(100_000) {
                    let ask = Ask { id: made, attempt: 0, what: what.clone(), delay: age, waited: age };
                    made -= 1;
                    self.adopt(now, known.id, ask, age, true);
                }
            }
        }
    }

    /// The engine's instant.
    pub fn now(&mut self, now: Instant) -> f64 {
        self.clock.now(now).millis()
    }

    /// A member says something.
    pub fn hear(&mut self, now: Instant, from: MemberId, head: &Head, said: Said) {
        if let Some(peer) = self.peers.get_mut(&from) {
            peer.heard_at = now;
            peer.unheard.clear();
            peer.clock.heard(now, head);
        }
        match said {
            Said::Open(open) => {
                self.take(now, vec![Story { from, head: *head, open: *open, at: now }]);
            }
            Said::Batch { number, acts } => self.batch(now, from, head.session, number, acts),
            Said::Bye => self.lose(now, from),
            _ => {}
        }
    }

    pub fn batch(&mut self, now: Instant, from: MemberId, session: u32, number: u32, acts: Vec<Act>) {
        let known = self.peers.get(&from).map_or(0, |peer| peer.session);
        if session > known {
            let is_its = |(other, ..): &&(MemberId, u32, u32)| *other == from;
            if self.ahead.keys().filter(is_its).count() < MOST_EARLY && self.ahead.len() < MOST_EARLY * 64 {
                self.ahead.insert((from, session, number), acts);
            }
            return;
        }
        let Some(peer) = self.peers.get_mut(&from) else { return };
        if session < known || number <= peer.batches || peer.early.len() >= MOST_EARLY {
            return;
        }
        peer.early.insert(number, acts);
        while let Some(peer) = self.peers.get_mut(&from)
            && let Some(acts) = peer.early.remove(&(peer.batches + 1))
        {
            peer.batches += 1;
            for act in acts {
                self.act(now, from, act);
            }
        }
    }

    pub(crate) fn act(&mut self, now: Instant, from: MemberId, act: Act) {
        match act {
            Act::Ask(ask) => self.ask(now, from, ask),
            Act::Done { seq, id, attempt, digest, late, next } => {
                if self.applies(from, seq) {
                    self.sent_at(now, from, id, attempt, late);
                    let what = self.held(from, id, attempt).map(|held| held.what.clone());
                    self.over(now, from, id, attempt, &digest);
                    if let (Some(next), Some(what)) = (next, what) {
                        self.again(now, from, next, what);
                    }
                }
            }
            Act::Order(seq, order) => {
                if self.applies(from, seq) {
                    self.apply(now, &order, Span::ZERO);
                }
            }
            Act::SentAt { id, attempt, late } => self.sent_at(now, from, id, attempt, late),
            Act::Cancel(id) => self.end(now, from, id, true),
            Act::Returned { id, attempt, waited } => {
                let Some(held) = self.held(from, id, attempt) else { return };
                let what = held.what.clone();
                self.end(now, from, id, true);
                self.ask(now, from, Ask { id, attempt, what, delay: Span::ZERO, waited });
                if let Some(peer) = self.peers.get_mut(&from) {
                    peer.returns = true;
                }
            }
            Act::Route(id, route) => self.names_route(now, from, id, route),
            Act::Watch(level) => {
                if let Some(peer) = self.peers.get_mut(&from) {
                    peer.watch = level;
                }
                self.watches();
            }
        }
    }

    /// A request left in the slot of one that is over now. Whether it should have, is seen when all that came
    /// in is decided.
    fn again(&mut self, now: Instant, from: MemberId, id: u64, what: Arc<Request>) {
        let ask = Ask { id, attempt: 0, what, delay: Span::ZERO, waited: Span::ZERO };
        self.adopt(now, from, ask, Span::ZERO, false);
        self.again.push((from, id));
    }

    /// It left later than it was granted: gaps and rolling windows count from there, though not from later
    /// than now.
    pub(crate) fn sent_at(&mut self, now: Instant, from: MemberId, id: u64, attempt: u32, late: Span) {
        let late = Span::from_micros(late.micros() / share_of(self.share) as u64);
        let most = self.clock.now(now);
        if late > Span::ZERO
            && let Some(held) = self.held(from, id, attempt)
            && let Some(at) = held.at
        {
            let (ticket, sent_at) = (held.ticket, (at + late).min(most.max(at)));
            held.at = Some(sent_at);
            let what = held.what.clone();
            self.engine.sent_at(sent_at.millis(), ticket as f64);
            self.touch(&what);
        }
    }

    /// Whether a fact is news.
    pub(crate) fn applies(&mut self, from: MemberId, seq: u64) -> bool {
        let Some(peer) = self.peers.get_mut(&from) else { return false };
        let is_new = seq > peer.applied;
        peer.applied = peer.applied.max(seq);
        is_new
    }

    /// One that flies.
    pub(crate) fn held(&mut self, from: MemberId, id: u64, attempt: u32) -> Option<&mut Held> {
        let held = self.peers.get_mut(&from)?.requests.get_mut(&id)?;
        (held.is_flying && held.attempt == attempt).then_some(held)
    }

    pub(crate) fn ask(&mut self, now: Instant, from: MemberId, ask: Ask) {
        if self.share.is_some_and(|share| offline::waits(&self.config, &ask.what.names, share))
            || self.skips_quotas && offline::has_quota(&self.config, &ask.what.names)
        {
            return;
        }
        let engine_now = self.now(now);
        let share = share_of(self.share);
        let (scopes, costs) = self.scopes(&ask.what);
        let delay = ask.delay.max(self.put_off(now, from, &ask.what.names));
        let (delay, waited) = (delay.millis() / share, ask.waited.millis());
        let priority = ask.what.priority.0;
        let ticket = self.engine.submit_again(engine_now, &scopes, &costs, priority, delay, waited);
        if ticket >= 0.0 {
            self.route(now, ticket as u64, &ask.what);
            return self.hold(from, ask, ticket as u64, false, None);
        }
        let scope = || self.engine.refused_scope().unwrap_or_default().to_string();
        let why = match ticket {
            -2.0 => Refusal::Full,
            // More than this process's part of a quota: it waits for the way.
            -3.0 if self.share.is_some() => return,
            -3.0 => Refusal::Cost { scope: scope(), path: self.engine.refused_path().unwrap_or_default() },
            -5.0 => Refusal::Down { scope: scope(), span: Span::from_millis(self.engine.refused_ms()) },
            _ => Refusal::Wrong("the request makes no sense".into()),
        };
        if let Some(peer) = self.peers.get_mut(&from) {
            peer.refused.push((ask.id, why));
            self.owed.add(from, ());
        }
    }

    pub(crate) fn hold(
        &mut self,
        from: MemberId,
        ask: Ask,
        ticket: u64,
        is_flying: bool,
        at: Option<Instant>,
    ) {
        let held = Held { attempt: ask.attempt, ticket, what: ask.what, is_flying, at };
        self.by_ticket.insert(ticket, (from, ask.id));
        if let Some(peer) = self.peers.get_mut(&from)
            && let Some(old) = peer.requests.insert(ask.id, held)
        {
            // A number that came twice: of a process that restored itself from a copy.
            self.by_ticket.remove(&old.ticket);
        }
    }

    /// The engine hears how it ended; if it says so, the request waits anew.
    pub(crate) fn over(&mut self, now: Instant, from: MemberId, id: u64, attempt: u32, digest: &Digest) {
        let engine_now = self.now(now);
        let Some(held) = self.held(from, id, attempt) else { return };
        let (ticket, what) = (held.ticket, held.what.clone());
        let mut numbers: Vec<f64> = digest.numbers.iter().map(|number| number.0).collect();
        let latency = numbers.get(place::LATENCY).copied().unwrap_or(f64::NAN);
        for record in numbers.iter_mut().skip(place::SCOPES).step_by(STRIDE) {
            let name = what.names.get(*record as usize).map_or("", String::as_str);
            *record = self.engine.intern(name);
        }
        if digest.fields.is_some() {
            self.route(now, ticket, &what);
        }
        let outcome = digest.outcome(&numbers);
        let settled = self.engine.settle(engine_now, ticket as f64, &outcome);
        self.touch(&what);
        if self.level == 2 {
            self.notice(now, Some((from, latency)));
        }
        let Some(peer) = self.peers.get_mut(&from) else { return };
        if settled == Settled::Again {
            if let Some(held) = peer.requests.get_mut(&id) {
                (held.is_flying, held.at, held.attempt) = (false, None, attempt + 1);
            }
        } else {
            peer.requests.remove(&id);
            self.by_ticket.remove(&ticket);
        }
    }

    /// It is over. A granted request has left and costs, unless its process says that it was not used.
    pub fn end(&mut self, now: Instant, from: MemberId, id: u64, is_unused: bool) {
        let engine_now = self.now(now);
        let Some(peer) = self.peers.get_mut(&from) else { return };
        let Some(held) = peer.requests.remove(&id) else { return };
        let ticket = held.ticket as f64;
        self.by_ticket.remove(&held.ticket);
        if held.is_flying && !is_unused {
            // Its time is lost: it counts as the latest that it may have.
            if let Some(at) = held.at {
                let latest = (at + self.lease).millis().min(engine_now.max(at.millis()));
                self.engine.sent_at(latest, ticket);
            }
            self.engine.settle(engine_now, ticket, &Outcome::new(f64::NAN, f64::NAN, f64::NAN, 0));
        } else {
            self.engine.cancel(engine_now, ticket);
        }
        if held.is_flying {
            self.touch(&held.what);
        }
    }

    /// A process has ended, or was silent for long: what it had comes back.
    pub fn lose(&mut self, now: Instant, id: MemberId) {
        let Some(peer) = self.peers.get(&id) else { return };
        let known = (peer.counted, peer.applied);
        for request in peer.requests.keys().copied().collect::<Vec<_>>() {
            self.end(now, id, request, false);
        }
        self.peers.remove(&id);
        self.owed.remove(&id);
        self.former.insert(id, known);
        self.touch_member(id);
        if self.former.len() > MOST_FORMER {
            let first = self.former.keys().next().copied();
            first.and_then(|first| self.former.remove(&first));
        }
        self.has_news = true;
        self.watches();
    }

    /// It is silent: it gets no grant until it says everything again. Its requests in flight stay, but where
    /// it is known that the last grants were lost.
    pub fn suspend(&mut self, now: Instant, id: MemberId, is_unheard: bool) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        peer.session = 0;
        let unheard = if is_unheard { core::mem::take(&mut peer.unheard) } else { Vec::new() };
        let waits = |(_, held): &(&u64, &Held)| !held.is_flying;
        let mut back: Vec<u64> = peer.requests.iter().filter(waits).map(|(&id, _)| id).collect();
        let granted = core::mem::take(&mut peer.granted).into_iter().map(|(id, attempt, _)| (id, attempt));
        for (id, attempt) in unheard.into_iter().chain(granted) {
            if peer.requests.get(&id).is_some_and(|held| held.is_flying && held.attempt == attempt) {
                back.push(id);
            }
        }
        for request in back {
            self.end(now, id, request, true);
        }
    }

    pub(crate) fn scopes(&mut self, what: &Request) -> (Vec<f64>, Vec<f64>) {
        let scopes = what.names.iter().map(|name| self.engine.intern(name)).collect();
        (scopes, what.costs.iter().map(|cost| cost.0).collect())
    }

    /// An order that was given so long ago.
    pub(crate) fn apply(&mut self, now: Instant, order: &Order, ago: Span) {
        let engine_now = self.now(now);
        let share = share_of(self.share);
        self.has_news = true;
        match order {
            Order::Configure(name, partial) => {
                if let Value::Map(entries) = partial {
                    let known = self.settings.or_default(name.clone());
                    known.retain(|(key, _)| entries.iter().all(|(other, _)| other != key));
                    known.extend(entries.iter().cloned());
                }
                let partial = match self.share {
                    Some(share) => offline::part(partial.clone(), share),
                    None => partial.clone(),
                };
                self.reserved.forget(name);
                self.touch_settings(name);
                // Kept: what was set while it ran is not in the options. Where it is wrong, its process was
                // told: the same settings are checked there.
                let scope = self.engine.scope(name);
                let _ = self.engine.configure(engine_now, scope, partial);
            }
            Order::Crawl(name, delay) => {
                let scope = self.engine.intern(name);
                let delay = delay.map_or(f64::NAN, |delay| delay.millis() / share);
                self.engine.crawl_delay(engine_now, scope, delay);
            }
            Order::Hold(name, span) => {
                let scope = self.engine.intern(name);
                self.engine.hold(engine_now, scope, (*span - ago).millis() / share);
            }
            Order::Adjust { name, ago: sent, charged, cost } => {
                let scope = self.engine.intern(name);
                let sent = engine_now - (*sent + ago).millis() / share;
                self.engine.adjust(engine_now, scope, sent.max(0.0), *charged, *cost);
            }
            Order::Pause(None) | Order::Resume(None) => {
                self.is_paused = matches!(order, Order::Pause(_));
                self.engine.pause_all(self.is_paused);
            }
            Order::Pause(Some(name)) => {
                let scope = self.engine.intern(name);
                self.engine.pause(engine_now, scope);
            }
            Order::Resume(Some(name)) => {
                let scope = self.engine.intern(name);
                self.engine.resume(engine_now, scope);
            }
            Order::Reset(name) => {
                let scope = self.engine.intern(name);
                self.engine.reset(engine_now, scope);
            }
        }
        self.touch_scope(order.scope());
    }
}

/// The cost of a request in the scope that it names in this place.
pub fn cost_of(what: &Request, place: usize) -> f64 {
    what.costs.get(place).or(what.costs.last()).map_or(1.0, |cost| cost.0)
}

pub fn share_of(share: Option<(u32, u32)>) -> f64 {
    share.map_or(1.0, |(of, _)| f64::from(of.max(1)))
}

fn with_wall(snapshot: Value) -> Value {
    let Value::Map(mut entries) = snapshot else { return snapshot };
    entries.retain(|(key, _)| key != "wallMs");
    entries.push(("wallMs".into(), WALL_MS.into()));
    Value::Map(entries)
}
