//! One process of a group, as its host sees it.

use std::{collections::VecDeque, sync::Arc};

use autothrottle::{
    Boundary, Config, ConfigError, Instant, LONGEST_MS, Named, Notice, Rng, Robots, Silence, Span, Value,
    boundary,
    boundary::{Outcome, Settled},
};

use crate::{
    api::{Ask, Effect, Input, MemberId, Offline, Op, Order, Refusal, Settings, Settlement, Ticket},
    codec::{Number, canonical, hash},
    collect::Collecting,
    frame::{self, LONGEST_NAME, MOST_NAMES},
    leader::Leader,
    member::Member,
    parts::Parts,
    split::Split,
    vec_map::VecMap,
};

/// With more scopes without a word than this their counts begin anew.
const MOST_SILENT: usize = 10_000;

/// One process of a group: member always, leader while it holds the lease.
///
/// No call in here panics, whatever comes in. Same calls, same effects: a run can be replayed.
#[derive(Debug)]
pub struct Shared {
    pub(crate) id: MemberId,
    pub(crate) settings: Settings,
    /// Of the engine's options: their bytes, and their hash.
    pub(crate) options: (Vec<u8>, u64),
    pub(crate) config: Config,
    /// Has the same options and sends no frame: for what needs an answer at once.
    pub(crate) judge: Boundary,
    /// Which snapshot the judge knows.
    pub(crate) judged: Option<(u64, u32)>,
    pub(crate) member: Member,
    /// Of the scopes whose requests ended without a word here.
    silent: VecMap<String, Silence>,
    pub(crate) state: State,
    pub(crate) alone: Option<Box<Leader>>,
    pub(crate) out: VecDeque<Effect>,
    /// Something happened since effects were taken.
    pub(crate) is_dirty: bool,
    /// The latest instant that a call named.
    pub(crate) now: Instant,
    pub(crate) ops: Op,
    /// Questions without an answer, and when they were asked.
    pub(crate) asked: VecDeque<(Op, Instant)>,
    pub(crate) rng: Rng,
    pub(crate) way: Way,
}

/// The role of this process, with its state.
#[derive(Debug)]
pub(crate) enum State {
    New,
    Member,
    Collecting(Lease, Box<Collecting>),
    Leading(Lease, Box<Leader>),
    Closed,
}

/// Permission to decide.
#[derive(Debug)]
pub(crate) struct Lease {
    pub epoch: u64,
    pub until: Instant,
    pub beat_at: Instant,
    pub said_at: Instant,
    /// The next beat says that this process is there, and no more: it is late, or much is to be said.
    pub is_light: bool,
    /// Questions to make it last: when they were asked, and which snapshot went along with which facts.
    pub renewals: VecDeque<Renewal>,
    /// Pieces of snapshots so far, and the last of which all before it are stored, too.
    pub snapshots: u32,
    pub stored: u32,
    /// One was not, or none was taken so far: the next one is a whole.
    pub is_torn: bool,
    /// Bytes of the whole, and of what changed since.
    pub sizes: (usize, usize),
    /// When the next whole may be, and where a process waits for it; and the next piece, where there is news.
    pub next_at: Instant,
    pub early_at: Instant,
    pub soon_at: Instant,
    /// The same of statistics.
    pub seen_sizes: (usize, usize),
    pub seen_at: Instant,
    /// When what it says to all, and to the leader, last came back.
    pub looped: [Instant; 2],
}

/// A piece of a snapshot, its number, and the last fact of each member that is in it.
pub(crate) type Piece = (Vec<u8>, u32, Vec<(MemberId, u64)>);

#[derive(Debug)]
pub(crate) struct Renewal {
    pub op: Op,
    pub asked: Instant,
    pub snapshot: Option<Piece>,
}

/// Why others are not heard.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Unheard {
    /// They speak another version.
    Foreign(u8),
    /// One of them has the lease.
    Leads,
}

/// The way to the others, as far as this process knows.
#[derive(Debug)]
pub(crate) struct Way {
    /// The leader that was last heard, and when it, and its answer to this process, were.
    pub leader: Option<MemberId>,
    pub heard_at: Instant,
    pub replied_at: Instant,
    /// It is known to have ended.
    pub gone: Option<MemberId>,
    pub tick_at: Option<Instant>,
    pub compete_at: Option<Instant>,
    pub competing: Option<(Op, Instant)>,
    pub was_refused: bool,
    /// When this process last learned that others decide which it does not hear, and why.
    pub others: Option<(Instant, Unheard)>,
    pub reconnected_at: Option<Instant>,
    /// The connection that was made anew last is the one that speaks.
    pub spoke_anew: bool,
    /// The connection that hears seems to carry no frame: the first and the last look that said so.
    pub doubted: Option<(Instant, Instant)>,
    /// This process hears no frame, so it does not compete before.
    pub deaf_until: Option<Instant>,
    pub cause: String,
    pub denied: Option<String>,
    pub offline_since: Option<Instant>,
    /// It would go on alone, did others not live.
    pub waits_for_others: bool,
    pub bad: u64,
    /// Frames that were cut, and those of others of which parts are missing.
    pub cut: u32,
    pub parts: Parts,
    pub warned_at: [Option<Instant>; 5],
    /// Scopes whose servers name several budgets.
    pub split: Split,
    /// Settings of which a process has said that they have no effect, or what they bound.
    pub found: VecMap<String>,
    /// The options that a notice was about.
    pub told_options: u64,
    pub counted_options: u64,
    pub moved: Option<(Option<MemberId>, Option<u32>, bool)>,
}

impl Shared {
    /// A process without a request so far. `options` are those of the engine, as they were typed; `seed`
    /// decides what it draws.
    pub fn new(id: MemberId, options: Value, settings: Settings, seed: u64) -> Result<Self, ConfigError> {
        let bytes = canonical(&options);
        let config = Config::parse(options.clone())?;
        let mut judge = Boundary::new(options)?;
        let start = Instant::default();
        if let Some((snapshot, wall_ms)) = &settings.snapshot {
            judge.restore(snapshot.clone(), 0.0, *wall_ms)?;
        }
        judge.seed(seed);
        Ok(Self {
            id,
            settings,
            options: (bytes.clone(), hash(&bytes)),
            config,
            judge,
            judged: None,
            member: Member::default(),
            silent: VecMap::default(),
            state: State::New,
            alone: None,
            out: VecDeque::new(),
            is_dirty: false,
            now: start,
            ops: 0,
            asked: VecDeque::new(),
            rng: Rng::new(seed),
            way: Way {
                leader: None,
                heard_at: start,
                replied_at: start,
                gone: None,
                tick_at: None,
                compete_at: None,
                competing: None,
                was_refused: false,
                others: None,
                reconnected_at: None,
                spoke_anew: false,
                doubted: None,
                deaf_until: None,
                cause: String::new(),
                denied: None,
                offline_since: None,
                waits_for_others: false,
                bad: 0,
                cut: 0,
                parts: Parts::default(),
                warned_at: [None; 5],
                split: Split::default(),
                found: VecMap::default(),
                told_options: 0,
                counted_options: hash(&bytes),
                moved: None,
            },
        })
    }

    /// Begins, though it has no request to send: an object that decides for others has no requests of its
    /// own.
    pub fn open(&mut self, now: Instant) {
        self.at(now);
        self.begin();
    }

    /// Takes a request in. It waits, also if it could leave at once: [`poll`](Self::poll) says when.
    pub fn submit(&mut self, now: Instant, ask: &Ask<'_>) -> Result<Ticket, Refusal> {
        self.at(now);
        let what = self.member.as_before(ask).unwrap_or_else(|| {
            Arc::new(frame::Request {
                names: ask.names.iter().map(|&name| name.into()).collect(),
                costs: ask.costs.iter().map(|&cost| Number(cost)).collect(),
                priority: Number(ask.priority),
                route: None,
            })
        });
        if !what.is_sound() || !(0.0..=LONGEST_MS).contains(&ask.delay_ms) {
            return Err(Refusal::Wrong(wrong(ask)));
        }
        if matches!(self.state, State::Closed) {
            return Err(Refusal::Wrong("the process has left the group".into()));
        }
        if let Some(why) = &self.way.denied {
            return Err(Refusal::Denied(why.clone()));
        }
        if self.way.offline_since.is_some() && self.settings.offline == Some(Offline::Fail) {
            return Err(Refusal::Offline(self.way.cause.clone()));
        }
        self.begin();
        Ok(self.member.submit(self.now, what, Span::from_millis(ask.delay_ms)))
    }

    /// A request of this process to send now. Ask again until there is none; what is next is in
    /// [`wake_at`](Self::wake_at).
    pub fn poll(&mut self, now: Instant) -> Option<Ticket> {
        self.at(now);
        let ticket = self.member.poll(self.now);
        self.is_dirty |= self.member.has_news(self.now);
        ticket
    }

    /// Whether a request waits for the time after what `poll` gave last: then the host says when it really
    /// [left](Self::sent_at).
    pub fn is_awaited(&self) -> bool {
        self.member.is_awaited
    }

    /// A request that `poll` gave leaves only now.
    pub fn sent_at(&mut self, now: Instant, ticket: Ticket) {
        self.at(now);
        self.member.leaves(self.now, ticket);
        self.is_dirty |= self.member.has_news(self.now);
    }

    /// Whether the route of a request is to be named, as with an engine
    /// ([`autothrottle::Boundary::wants_route`]).
    pub fn wants_route(&self, ticket: Ticket, has_fields: bool) -> bool {
        self.member.wants_route(ticket, has_fields, &self.way.split)
    }

    /// Names the route of a request that waits or is in flight: its method and URL. As with an engine
    /// ([`autothrottle::Boundary::route`]).
    pub fn route(&mut self, now: Instant, ticket: Ticket, method: &str, url: &str) {
        self.at(now);
        let route = boundary::route_of(method, url);
        if route.len() <= LONGEST_NAME {
            self.member.route(self.now, ticket, route, &self.way.split);
            self.is_dirty |= self.member.has_news(self.now);
        }
    }

    /// How a request that `poll` gave ended. `outcome.scopes` name scopes by their place among the request's
    /// names. If it waits again, it does so under the same ticket. [`Settled::Unknown`] if it is not in
    /// flight.
    pub fn settle(&mut self, now: Instant, ticket: Ticket, outcome: &Outcome<'_>) -> Settlement {
        self.at(now);
        if !self.member.is_flying(ticket) {
            return Settlement { settled: Settled::Unknown, asked_ms: f64::NAN };
        }
        self.is_dirty = true;
        if let Some(has_word) = outcome.word() {
            self.hear_word(ticket, has_word);
        }
        let (settled, asked_ms, mut digest) = self.judge.digest(outcome);
        let mut fields = None;
        if let Some(is_split) = self.member.routed(ticket, &self.way.split) {
            let lines = self.judge.digest_budgets(outcome, is_split, &mut digest);
            fields = (!lines.is_empty()).then(|| (lines, Number(finite(outcome.wall_ms))));
        }
        let is_lazy = digest.len() == boundary::place::PLAIN && fields.is_none();
        let again = digest
            .get(boundary::place::DELAY)
            .filter(|delay| !delay.is_nan())
            .map(|&delay| Span::from_millis(delay));
        let numbers = digest.into_iter().map(|number| Number(finite(number))).collect();
        let digest = frame::Digest { numbers, fields };
        // A good end carries little news; a slot that a request waits for is another thing.
        let may_wait = self.alone.is_none() && !self.settings.prompt;
        let is_well = outcome.answer.is_nan() || (100.0..400.0).contains(&outcome.answer);
        self.member.settle(self.now, ticket, digest, again, is_lazy && may_wait && is_well);
        Settlement { settled, asked_ms }
    }

    /// As an engine hears it. The process that has no word is the one to tell.
    fn hear_word(&mut self, ticket: Ticket, has_word: bool) {
        if has_word && self.silent.is_empty() {
            return; // nearly always
        }
        for name in self.member.names(ticket).unwrap_or_default() {
            if has_word {
                self.silent.remove(name);
            } else if self.silent.or_default(name.clone()).hear(false) {
                let notice = Notice::NoStatus(Named { scope: name.clone() });
                self.out.push_back(Effect::Notice(Value::from(&notice)));
            }
        }
        if self.silent.len() > MOST_SILENT {
            self.silent.clear();
        }
    }

    /// The caller gave up: the request is forgotten, whether it waits or is in flight.
    pub fn cancel(&mut self, now: Instant, ticket: Ticket) {
        self.at(now);
        self.member.cancel(self.now, ticket);
        self.is_dirty = true;
    }

    /// Gives an order to the whole group. Wrong settings leave it as it is.
    pub fn order(&mut self, now: Instant, order: Order) -> Result<(), ConfigError> {
        self.at(now);
        if let Order::Configure(name, partial) = &order {
            let scope = self.judge.scope(name);
            self.judge.configure(self.now.millis(), scope, partial.clone())?;
        }
        self.begin();
        self.member.order(self.now, order);
        Ok(())
    }

    /// Sets the pace that the robots.txt of a scope asks for. Only [`Robots::Applied`] is an order to the
    /// group.
    pub fn crawl_delay(&mut self, now: Instant, name: &str, delay: Option<Span>) -> Robots {
        self.at(now);
        let scope = self.judge.intern(name);
        let ms = delay.map_or(f64::NAN, Span::millis);
        let outcome = Robots::of(self.judge.crawl_delay(self.now.millis(), scope, ms));
        if outcome == Robots::Applied {
            self.begin();
            self.member.order(self.now, Order::Crawl(name.into(), delay));
        }
        outcome
    }

    /// How much this process wants to hear of answers: 0 none, 1 what they changed, 2 every answer.
    pub fn watch(&mut self, now: Instant, level: u8) {
        self.at(now);
        self.member.watches(self.now, level.min(2).into());
        self.is_dirty = true;
    }

    /// Something happened outside.
    pub fn handle(&mut self, now: Instant, input: Input<'_>) {
        self.at(now);
        self.is_dirty = true;
        if !matches!(self.state, State::New) {
            self.hear(input);
        }
    }

    /// The next effect to perform. Take them at the end of a turn until there is none: what was asked and
    /// granted in the turn is put into frames here.
    pub fn poll_effect(&mut self, now: Instant) -> Option<Effect> {
        self.at(now);
        if self.out.is_empty() && core::mem::take(&mut self.is_dirty) {
            self.flush();
        }
        self.out.pop_front()
    }

    /// When to come back with [`Input::Timeout`] and [`poll`](Self::poll). `None` before anything was asked,
    /// and after the end.
    pub fn wake_at(&self) -> Option<Instant> {
        if self.is_dirty || !self.out.is_empty() {
            return Some(self.now);
        }
        let leader = match &self.state {
            State::New | State::Closed => return None,
            State::Member => None,
            State::Collecting(lease, collecting) => Some(collecting.wake_at().min(lease.beat_at)),
            State::Leading(lease, leader) => {
                let beat = lease.beat_at.min(lease.until);
                Some(leader.wake_at().map_or(beat, |wake| wake.min(beat)))
            }
        };
        let alone = self.alone.as_ref().and_then(|alone| alone.wake_at());
        let late = self.asked.front().map(|&(_, asked)| asked + self.settings.lease);
        let all = [self.way.tick_at, self.way.compete_at, leader, alone, self.member.wake_at(), late];
        all.into_iter().flatten().min()
    }

    /// Leaves the group: hands the lease over, or says goodbye. Take the effects afterwards; a last
    /// `Release` needs its answer no more.
    pub fn close(&mut self, now: Instant) {
        self.at(now);
        self.leave();
        self.is_dirty = false;
    }

    /// Requests of this process that have not left.
    pub fn waiting(&self) -> u32 {
        self.member.waiting()
    }

    /// Whether something is to be said that was put off: a process should not end before.
    pub fn has_unsaid(&self) -> bool {
        self.member.say_by().is_some()
    }

    /// The place of a name among those of a request that is not over, as an outcome names it; one that no
    /// request has, where it is none of them.
    pub fn place_of(&self, ticket: Ticket, name: Option<&str>) -> f64 {
        let place = |name| self.member.names(ticket)?.iter().position(|known| known == name);
        name.and_then(place).map_or(1e9, |place| place as f64)
    }

    /// Requests of this process in flight.
    pub fn in_flight(&self) -> u32 {
        self.member.in_flight
    }

    /// A clock that goes back stands still.
    pub(crate) fn at(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }
}

/// The message about a request that makes no sense.
fn wrong(ask: &Ask<'_>) -> String {
    if ask.names.is_empty() || ask.names.len() > MOST_NAMES {
        return "a request has 1 to 64 scopes".into();
    }
    if ask.names.iter().any(|name| name.len() > LONGEST_NAME) {
        return "the name of a scope has at most 2048 bytes".into();
    }
    "cost and delay must be finite and not below 0, priority finite".into()
}

/// A value that no number can say is not known.
fn finite(number: f64) -> f64 {
    if number.is_finite() { number } else { f64::NAN }
}
