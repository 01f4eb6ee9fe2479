//! Frames: what processes say to each other, in CBOR, behind a head that every version can read.
//!
//! | frame | from → to | says |
//! |---|---|---|
//! | `Open` | member → leader | all that waits, all that flies, and what the leader may not know yet |
//! | `Batch` | member → leader | what happened in one turn |
//! | `Ping` | member → leader | it is there; answered by a `Reply` |
//! | `Bye` | member → leader | it leaves |
//! | `Lend` | member → leader | the newest snapshot that it has, which the leader asked for |
//! | `Probe` | leader → itself | whether it hears what is said to the leader |
//! | `Part` | any → any | a part of a frame that is too long: see `parts` |
//! | `Beat` | leader → all | it is there; what changed, and now and then its whole snapshot |
//! | `Reply` | leader → member | who may leave, and how much was heard |
//! | `Replies` | leader → all | the replies to several members, where each has grants ahead |
//! | `Tell` | leader → all | what the engine noticed |
//!
//! A member's *session* begins with an `Open`, and its batches and replies are counted from there: whatever
//! is lost, doubled or late is noticed as a gap, and the next `Open` says everything again. A fact that must
//! outlive a request (how it ended, an order) is in the member's *log*, whose numbers never start again.

use std::sync::Arc;

use autothrottle::{LONGEST_MS, Span};

use crate::{
    api::{Epoch, MemberId, Order, Refusal},
    codec::{Number, Plain, Wire, wire, write_to},
};

/// Of the protocol. A frame of another version is dropped.
pub const VERSION: u8 = 8;

/// The most bytes of a frame whose parts are put together. A frame on a transport is shorter:
/// [`MOST_PART`](crate::MOST_PART) and a head.
pub const MOST_BYTES: usize = 32 << 20;

/// Of every frame of every version: then come the version, the sender, and the rest.
const MAGIC: u8 = 0xa7;
const HEAD: usize = 18;

/// Scopes and costs of a request, at most.
pub const MOST_NAMES: usize = 64;
/// Bytes of a scope's name, at most.
pub const LONGEST_NAME: usize = 2048;
/// Bytes of an answer's header fields, at most: more than a reader keeps of them.
const MOST_FIELDS: usize = 32 << 10;
/// No cost is higher.
const MOST_COST: f64 = 1e12;

/// A frame of one process.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    pub from: MemberId,
    pub head: Head,
    pub said: Said,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Head {
    /// Of the leader that says it, or that it is said to.
    pub epoch: Epoch,
    /// Of the member.
    pub session: u32,
    /// The sender's clock in microseconds.
    pub stamp: u64,
    /// The newest stamp that the sender heard of who hears this, and for how many microseconds it kept it.
    pub echo: Option<(u64, u64)>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    Open(Box<Open>),
    Batch {
        /// From 1 in a session.
        number: u32,
        acts: Vec<Act>,
    },
    Ping,
    Bye,
    Lend {
        memory: Vec<u8>,
        age: Span,
    },
    Probe,
    Part(Part),
    Beat(Beat),
    Reply(Reply),
    Replies(Vec<Addressed>),
    Tell {
        /// The engine's instant in milliseconds, for the instants in the notices.
        now: Number,
        notices: Plain,
        /// Of which member's request they are, if they are answers.
        of: Option<MemberId>,
        latency: Number,
    },
}

/// A part of a frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Which frame of this sender it is.
    pub frame: u32,
    pub index: u32,
    pub count: u32,
    pub bytes: Vec<u8>,
}

/// The whole story of a member.
#[derive(Clone, Debug, PartialEq)]
pub struct Open {
    /// The newest snapshot that it has.
    pub seen: (Epoch, u32),
    pub waiting: Vec<Ask>,
    pub flying: Vec<Flight>,
    /// Facts that are in no stored snapshot, in order.
    pub log: Vec<Fact>,
    /// Its engine's options.
    pub options: Vec<u8>,
    pub watch: u32,
}

/// A request that waits.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    pub id: u64,
    /// How often it was sent before.
    pub attempt: u32,
    pub what: Arc<Request>,
    /// The rest of its own delay.
    pub delay: Span,
    /// For how long it has waited.
    pub waited: Span,
}

/// The part of a request that never changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    pub names: Vec<String>,
    pub costs: Vec<Number>,
    pub priority: Number,
    /// By which its server's budget is known, where that is to be known: see [`crate::Shared::route`].
    pub route: Option<String>,
}

/// The outcome of an answer, as the engine reads it: see `Outcome::decode`.
#[derive(Clone, Debug, PartialEq)]
pub struct Digest {
    pub numbers: Vec<Number>,
    /// Where it names budgets: its header fields, and the wall time when they came.
    pub fields: Option<(String, Number)>,
}

/// Which permission let a request go: of which leader, in which session, in which reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct GrantId {
    pub epoch: Epoch,
    pub session: u32,
    pub number: u32,
}

/// A request that left.
#[derive(Clone, Debug, PartialEq)]
pub struct Flight {
    pub ask: Ask,
    pub ago: Span,
    pub by: GrantId,
    /// It left while its process was alone.
    pub alone: bool,
}

/// A fact that must outlive a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// It ended.
    Done(u64, Flight, Digest),
    Order(u64, Span, Order),
}

impl Fact {
    pub fn seq(&self) -> u64 {
        match self {
            Self::Done(seq, ..) | Self::Order(seq, ..) => *seq,
        }
    }
}

/// An act of a member in one turn.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    Ask(Ask),
    /// A fact: the request and its attempt ended so.
    Done {
        seq: u64,
        id: u64,
        attempt: u32,
        digest: Digest,
        /// It left so much later than it was to, where that was not said.
        late: Span,
        /// A request like it has left in its slot.
        next: Option<u64>,
    },
    /// A fact.
    Order(u64, Order),
    /// It left so much later than it was to.
    SentAt {
        id: u64,
        attempt: u32,
        late: Span,
    },
    Cancel(u64),
    /// It was granted too late to be used: it waits.
    Returned {
        id: u64,
        attempt: u32,
        waited: Span,
    },
    Watch(u32),
    /// The route of one that waits or is in flight.
    Route(u64, String),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Beat {
    /// The hash of the options that count.
    pub options: u64,
    pub members: u32,
    /// How many of them have these options.
    pub agree: u32,
    /// The state for the next leader: all of it, or what changed. See `stored`.
    pub memory: Option<Vec<u8>>,
    /// Statistics, all or some, with the engine's instant: `[now in milliseconds, stats]`.
    pub seen: Option<Vec<u8>>,
    /// It leaves.
    pub resigns: bool,
}

/// A reply among others.
#[derive(Clone, Debug, PartialEq)]
pub struct Addressed {
    pub to: MemberId,
    /// Of its own head: the rest is that of the frame.
    pub session: u32,
    pub echo: Option<(u64, u64)>,
    pub reply: Reply,
}

/// A permission to leave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grant {
    pub id: u64,
    pub attempt: u32,
    /// The time after the reply's instant.
    pub later: Span,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// Which of the session's replies with grants or refusals it is, from 1; 0 if it has none.
    pub number: u32,
    /// How many of them there were so far.
    pub replies: u32,
    /// How many batches came in order.
    pub batches: u32,
    /// The last fact that is in a stored snapshot.
    pub durable: u64,
    /// The place of the member among all, and how many there are.
    pub rank: (u32, u32),
    pub grants: Vec<Grant>,
    /// When to send them, by the leader's clock in microseconds.
    pub at: u64,
    /// For so long after that they may be used.
    pub valid: Span,
    /// The most time until the ends of requests that were granted ahead are reported.
    pub soon: Span,
    /// See [`reply`].
    pub flags: u32,
    pub refused: Vec<(u64, Refusal)>,
}

impl Reply {
    pub fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }
}

/// The flags of a reply.
pub mod reply {
    /// A request waits for the time after its grants: so it is to be said if they leave late.
    pub const AWAITED: u32 = 1;
    /// The leader wants the member's snapshot.
    pub const WANTS: u32 = 2;
    /// A strict quota counts its grants: it is always to be said when they left, and what cannot be known of
    /// that counts as late.
    pub const EXACT: u32 = 4;
    /// A request waits, so what ends is to be said at once.
    pub const BUSY: u32 = 8;
    /// The slots of its grants may be used again: their scopes have no other limit, and no request waits for
    /// them.
    pub const FREE: u32 = 16;
    /// No slot that was granted before may be used again.
    pub const ENDS: u32 = 32;
    /// The group has no room for this process.
    pub const FULL: u32 = 64;
    /// A request waits for the window of its strict quota, since it is not known what left before.
    pub const LOST: u32 = 128;
}

/// The state for the next leader.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    /// The newer one of two is that of the later leader, and of one leader that with the higher number.
    pub epoch: Epoch,
    pub number: u32,
    /// The engine's snapshot.
    pub snapshot: Plain,
    /// The settings that were changed while it ran.
    pub settings: Vec<(String, Plain)>,
    pub paused: bool,
    /// The options that count.
    pub options: Vec<u8>,
    pub members: Vec<Known>,
    /// The amounts of strict quotas that may be spent without another snapshot, by scope.
    pub reserved: Vec<(String, Number)>,
    /// For how many microseconds it was unknown what left of strict quotas before.
    pub unknown: Option<u64>,
    /// The engine's instant was later than the leader's, by this many microseconds.
    pub ahead: u64,
}

/// The part of a snapshot about one member.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    pub id: MemberId,
    /// Requests that were let go up to here are counted.
    pub counted: GrantId,
    /// Facts up to here came in.
    pub applied: u64,
    /// The requests in flight: how many with the same scopes.
    pub flying: Vec<(u32, Vec<String>)>,
    /// It is there, as far as is known.
    pub alive: bool,
}

/// The result of reading bytes.
#[derive(Debug, PartialEq)]
pub enum Read {
    Frame(Frame),
    /// Of another version: its sender is alive.
    Foreign(MemberId, u8),
    Bad,
}

wire! {
    struct Head { epoch, session, stamp, echo }
    struct Part { frame, index, count, bytes }
    struct Open { seen, waiting, flying, log, options, watch }
    struct Ask { id, attempt, what, delay, waited }
    struct Request { names, costs, priority, route }
    struct Digest { numbers, fields }
    struct GrantId { epoch, session, number }
    struct Flight { ask, ago, by, alone }
    struct Beat { options, members, agree, memory, seen, resigns }
    struct Grant { id, attempt, later }
    struct Addressed { to, session, echo, reply }
    struct Reply { number, replies, batches, durable, rank, grants, at, valid, soon, flags, refused }
    struct Memory { epoch, number, snapshot, settings, paused, options, members, reserved, unknown, ahead }
    struct Known { id, counted, applied, flying, alive }
}
wire! {
    enum Said {
        0 Open(open),
        1 Batch { number, acts },
        2 Ping,
        3 Bye,
        4 Lend { memory, age },
        5 Probe,
        6 Part(part),
        16 Beat(beat),
        17 Reply(reply),
        18 Tell { now, notices, of, latency },
        19 Replies(replies),
    }
}
wire! {
    enum Fact {
        0 Done(seq, flight, digest),
        1 Order(seq, ago, order),
    }
}
wire! {
    enum Act {
        0 Ask(ask),
        1 Done { seq, id, attempt, digest, late, next },
        2 Order(seq, order),
        3 SentAt { id, attempt, late },
        4 Cancel(id),
        5 Returned { id, attempt, waited },
        6 Watch(level),
        7 Route(id, route),
    }
}

/// Written down.
pub fn encode(frame: &Frame) -> Vec<u8> {
    let mut bytes = vec![MAGIC, VERSION];
    bytes.extend(frame.from.0);
    write_to(write_to(bytes, &frame.head), &frame.said)
}

/// Read and checked.
pub fn decode(bytes: &[u8]) -> Read {
    let Some((&[MAGIC, version, ref from @ ..], rest)) = bytes.split_first_chunk::<HEAD>() else {
        return Read::Bad;
    };
    let from = MemberId(*from);
    if version != VERSION {
        return Read::Foreign(from, version);
    }
    if bytes.len() > MOST_BYTES {
        return Read::Bad;
    }
    let mut decoder = minicbor::Decoder::new(rest);
    match (Head::read(&mut decoder), Said::read(&mut decoder)) {
        (Some(head), Some(said)) if decoder.position() == rest.len() && is_sound(&said) => {
            Read::Frame(Frame { from, head, said })
        }
        _ => Read::Bad,
    }
}

impl Memory {
    /// Whether it makes sense.
    pub fn is_sound(&self) -> bool {
        let names = self.members.iter().flat_map(|known| known.flying.iter().map(|(_, names)| names));
        { names }.all(|names| are_names(names))
            && self.reserved.iter().all(|(_, cost)| (0.0..=MOST_COST).contains(&cost.0))
    }
}

fn is_sound(said: &Said) -> bool {
    match said {
        Said::Open(open) => {
            open.waiting.iter().all(Ask::is_sound)
                && open.flying.iter().all(|flight| flight.ask.is_sound())
                && open.log.iter().all(Fact::is_sound)
                && open.log.is_sorted_by_key(Fact::seq)
                && open.watch <= 2
        }
        Said::Batch { number, acts } => *number > 0 && acts.iter().all(Act::is_sound),
        Said::Tell { now, .. } => now.0.is_finite(),
        Said::Ping
        | Said::Bye
        | Said::Lend { .. }
        | Said::Probe
        | Said::Part(_)
        | Said::Beat(_)
        | Said::Reply(_)
        | Said::Replies(_) => true,
    }
}

fn are_names(names: &[String]) -> bool {
    (1..=MOST_NAMES).contains(&names.len()) && names.iter().all(|name| name.len() <= LONGEST_NAME)
}

impl Request {
    /// Whether it makes sense.
    pub fn is_sound(&self) -> bool {
        are_names(&self.names)
            && self.costs.len() <= MOST_NAMES
            && self.costs.iter().all(|cost| (0.0..=MOST_COST).contains(&cost.0))
            && self.priority.0.is_finite()
            && self.route.as_ref().is_none_or(|route| route.len() <= LONGEST_NAME)
    }
}

impl Ask {
    fn is_sound(&self) -> bool {
        self.what.is_sound()
    }
}

impl Fact {
    fn is_sound(&self) -> bool {
        match self {
            Self::Done(_, flight, digest) => flight.ask.is_sound() && digest.is_sound(),
            Self::Order(_, _, order) => order.is_sound(),
        }
    }
}

impl Act {
    fn is_sound(&self) -> bool {
        match self {
            Self::Ask(ask) => ask.is_sound(),
            Self::Done { digest, .. } => digest.is_sound(),
            Self::Order(_, order) => order.is_sound(),
            Self::Watch(level) => *level <= 2,
            Self::Route(_, route) => route.len() <= LONGEST_NAME,
            Self::SentAt { .. } | Self::Cancel(_) | Self::Returned { .. } => true,
        }
    }
}

impl Order {
    fn is_sound(&self) -> bool {
        self.scope().len() <= LONGEST_NAME
    }

    /// The name of its scope; none for an order to all.
    pub fn scope(&self) -> &str {
        match self {
            Self::Pause(name) | Self::Resume(name) => name.as_deref().unwrap_or_default(),
            Self::Configure(name, _)
            | Self::Crawl(name, _)
            | Self::Hold(name, _)
            | Self::Reset(name)
            | Self::Adjust { name, .. } => name,
        }
    }
}

impl Digest {
    /// Four numbers at least, and not more than all scopes need.
    fn is_sound(&self) -> bool {
        let most = 10.0 * LONGEST_MS.max(MOST_COST);
        (4..=11 + 7 * MOST_NAMES).contains(&self.numbers.len())
            && self.numbers.iter().all(|number| number.0.is_nan() || number.0.abs() <= most)
            && self.fields.as_ref().is_none_or(|(lines, _)| lines.len() <= MOST_FIELDS)
    }
}

#[cfg(test)]
mod tests {
    use super::VERSION;
    use crate::codec::hash;

    /// Builds of one version whose frames differ take each other's for nonsense, and none says why.
    #[test]
    fn frames_that_are_not_as_they_were_have_another_version() {
        let lists = |source: &'static str| {
            source.split("\nwire! {").skip(1).filter_map(|list| list.split("\n}").next())
        };
        let all: String = lists(include_str!("frame.rs")).chain(lists(include_str!("stored.rs"))).collect();
        assert_eq!(
            (VERSION, hash(all.as_bytes())),
            (8, 4_653_691_113_797_350_181),
            "raise VERSION, and note the new hash here"
        );
    }
}
