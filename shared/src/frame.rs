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
//! | `Beat` | leader → all | it is there; now and then its snapshot |
//! | `Reply` | leader → member | who may leave, and how much was heard |
//! | `Tell` | leader → all | what the engine noticed |
//!
//! A member's *session* begins with an `Open`, and its batches and replies are counted from there: whatever
//! is lost, doubled or late is noticed as a gap, and the next `Open` says everything again. What must outlive
//! a request (how it ended, an order) is a *fact* of the member's *log*, whose numbers never start again.

use std::sync::Arc;

use autothrottle::{LONGEST_MS, Span};
use minicbor::{Decode, Encode};

use crate::{
    api::{Epoch, MemberId, Order, Refusal},
    codec::{Number, Plain, arc, span},
};

/// Of the protocol. A frame of another version is dropped.
pub const VERSION: u8 = 4;

/// The most bytes of a frame. A transport that reads a length may close what announces more.
pub const MOST_BYTES: usize = 32 << 20;

/// Of every frame of every version: then come the version, the sender, and the rest.
const MAGIC: u8 = 0xa7;
const HEAD: usize = 18;

/// Scopes and costs of a request, at most.
pub const MOST_NAMES: usize = 64;
/// Bytes of a scope's name, at most.
pub const LONGEST_NAME: usize = 2048;
/// No cost is higher.
const MOST_COST: f64 = 1e12;

/// What one process says.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    pub from: MemberId,
    pub head: Head,
    pub said: Said,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Encode, Decode)]
#[cbor(array)]
pub struct Head {
    /// Of the leader that says it, or that it is said to.
    #[n(0)]
    pub epoch: Epoch,
    /// Of the member.
    #[n(1)]
    pub session: u32,
    /// The sender's clock in microseconds.
    #[n(2)]
    pub stamp: u64,
    /// The newest stamp that the sender heard of who hears this, and for how many microseconds it kept it.
    #[n(3)]
    pub echo: Option<(u64, u64)>,
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub enum Said {
    #[n(0)]
    Open(#[n(0)] Box<Open>),
    #[n(1)]
    Batch {
        /// From 1 in a session.
        #[n(0)]
        number: u32,
        #[n(1)]
        acts: Vec<Act>,
    },
    #[n(2)]
    Ping,
    #[n(3)]
    Bye,
    #[n(4)]
    Lend {
        #[cbor(n(0), with = "minicbor::bytes")]
        memory: Vec<u8>,
        #[cbor(n(1), with = "span")]
        age: Span,
    },
    #[n(5)]
    Probe,
    #[n(16)]
    Beat(#[n(0)] Beat),
    #[n(17)]
    Reply(#[n(0)] Reply),
    #[n(18)]
    Tell {
        /// The engine's instant in milliseconds, for the instants in the notices.
        #[n(0)]
        now: Number,
        #[n(1)]
        notices: Plain,
        /// Of which member's request they are, if they are answers.
        #[n(2)]
        of: Option<MemberId>,
        #[n(3)]
        latency: Number,
    },
}

/// The whole story of a member.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
#[cbor(array)]
pub struct Open {
    /// The newest snapshot that it has.
    #[n(0)]
    pub seen: (Epoch, u32),
    #[n(1)]
    pub waiting: Vec<Ask>,
    #[n(2)]
    pub flying: Vec<Flight>,
    /// Facts that are in no stored snapshot, in order.
    #[n(3)]
    pub log: Vec<Fact>,
    /// Its engine's options.
    #[cbor(n(4), with = "minicbor::bytes")]
    pub options: Vec<u8>,
    #[n(5)]
    pub watch: u8,
}

/// A request that waits.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
#[cbor(array)]
pub struct Ask {
    #[n(0)]
    pub id: u64,
    /// How often it was sent before.
    #[n(1)]
    pub attempt: u32,
    #[cbor(n(2), with = "arc")]
    pub what: Arc<Request>,
    /// What is left of its own delay.
    #[cbor(n(3), with = "span")]
    pub delay: Span,
    /// For how long it has waited.
    #[cbor(n(4), with = "span")]
    pub waited: Span,
}

/// What of a request never changes.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
#[cbor(array)]
pub struct Request {
    #[n(0)]
    pub names: Vec<String>,
    #[n(1)]
    pub costs: Vec<Number>,
    #[n(2)]
    pub priority: Number,
}

/// Which permission let a request go: of which leader, in which session, in which reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(array)]
pub struct GrantId {
    #[n(0)]
    pub epoch: Epoch,
    #[n(1)]
    pub session: u32,
    #[n(2)]
    pub number: u32,
}

/// A request that left.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
#[cbor(array)]
pub struct Flight {
    #[n(0)]
    pub ask: Ask,
    #[cbor(n(1), with = "span")]
    pub ago: Span,
    #[n(2)]
    pub by: GrantId,
    /// It left while its process was alone.
    #[n(3)]
    pub alone: bool,
}

/// What must outlive a request.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub enum Fact {
    /// It ended. What the engine hears: see [`crate::told`].
    #[n(0)]
    Done(#[n(0)] u64, #[n(1)] Flight, #[n(2)] Vec<Number>),
    #[n(1)]
    Order(#[n(0)] u64, #[cbor(n(1), with = "span")] Span, #[n(2)] Order),
}

impl Fact {
    pub fn seq(&self) -> u64 {
        match self {
            Self::Done(seq, ..) | Self::Order(seq, ..) => *seq,
        }
    }
}

/// What a member did in one turn.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub enum Act {
    #[n(0)]
    Ask(#[n(0)] Ask),
    /// A fact: the request and its attempt ended so.
    #[n(1)]
    Done {
        #[n(0)]
        seq: u64,
        #[n(1)]
        id: u64,
        #[n(2)]
        attempt: u32,
        #[n(3)]
        told: Vec<Number>,
        /// It left so much later than it was to, where that was not said.
        #[cbor(n(4), with = "span")]
        late: Span,
        /// A request like it has left in its slot.
        #[n(5)]
        next: Option<u64>,
    },
    /// A fact.
    #[n(2)]
    Order(#[n(0)] u64, #[n(1)] Order),
    /// It left so much later than it was to.
    #[n(3)]
    Left {
        #[n(0)]
        id: u64,
        #[n(1)]
        attempt: u32,
        #[cbor(n(2), with = "span")]
        late: Span,
    },
    #[n(4)]
    Cancel(#[n(0)] u64),
    /// It was granted too late to be used: it waits.
    #[n(5)]
    Returned {
        #[n(0)]
        id: u64,
        #[n(1)]
        attempt: u32,
        #[cbor(n(2), with = "span")]
        waited: Span,
    },
    #[n(6)]
    Watch(#[n(0)] u8),
}

#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
#[cbor(array)]
pub struct Beat {
    /// The hash of the options that count.
    #[n(0)]
    pub options: u64,
    #[n(1)]
    pub members: u32,
    /// How many of them have these options.
    #[n(2)]
    pub agree: u32,
    /// What the next leader needs.
    #[cbor(n(3), with = "minicbor::bytes")]
    pub memory: Option<Vec<u8>>,
    /// Statistics, with the engine's instant: `[now in milliseconds, stats]`.
    #[cbor(n(4), with = "minicbor::bytes")]
    pub seen: Option<Vec<u8>>,
    /// It leaves.
    #[n(5)]
    pub resigns: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
#[cbor(array)]
pub struct Reply {
    /// Which of the session's replies with grants or refusals it is, from 1; 0 if it has none.
    #[n(0)]
    pub number: u32,
    /// How many of them there were so far.
    #[n(1)]
    pub replies: u32,
    /// How many batches came in order.
    #[n(2)]
    pub batches: u32,
    /// The last fact that is in a stored snapshot.
    #[n(3)]
    pub durable: u64,
    /// The place of the member among all, and how many there are.
    #[n(4)]
    pub rank: (u32, u32),
    #[n(5)]
    pub grants: Vec<(u64, u32)>,
    /// When to send them, by the leader's clock in microseconds.
    #[n(6)]
    pub at: u64,
    /// For so long after that they may be used.
    #[cbor(n(7), with = "span")]
    pub valid: Span,
    /// See [`reply`].
    #[n(8)]
    pub flags: u8,
    #[n(9)]
    pub refused: Vec<(u64, Refusal)>,
}

impl Reply {
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// What holds of a reply.
pub mod reply {
    /// A request waits for the time after its grants: so it is to be said if they leave late.
    pub const AWAITED: u8 = 1;
    /// The leader wants the member's snapshot.
    pub const WANTS: u8 = 2;
    /// A strict quota counts its grants: it is always to be said when they left, and what cannot be known of
    /// that counts as late.
    pub const EXACT: u8 = 4;
    /// A request waits, so what ends is to be said at once.
    pub const BUSY: u8 = 8;
    /// The slots of its grants may be used again: their scopes have no other limit, and no request waits for
    /// them.
    pub const FREE: u8 = 16;
    /// No slot that was granted before may be used again.
    pub const ENDS: u8 = 32;
}

/// What the next leader needs.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
#[cbor(array)]
pub struct Memory {
    /// The newer one of two is that of the later leader, and of one leader that with the higher number.
    #[n(0)]
    pub epoch: Epoch,
    #[n(1)]
    pub number: u32,
    /// The engine's snapshot.
    #[n(2)]
    pub snapshot: Plain,
    /// What was set while it ran.
    #[n(3)]
    pub settings: Vec<(String, Plain)>,
    #[n(4)]
    pub paused: bool,
    /// The options that count.
    #[cbor(n(5), with = "minicbor::bytes")]
    pub options: Vec<u8>,
    #[n(6)]
    pub members: Vec<Known>,
    /// What may be spent of strict quotas without another snapshot, by scope.
    #[n(7)]
    pub aside: Vec<(String, Number)>,
    /// For how many microseconds it was unknown what left of strict quotas before.
    #[n(8)]
    pub unknown: Option<u64>,
    /// The engine's instant was later than the leader's, by this many microseconds.
    #[n(9)]
    pub ahead: u64,
}

/// What a snapshot knows of a member.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
#[cbor(array)]
pub struct Known {
    #[n(0)]
    pub id: MemberId,
    /// Requests that were let go up to here are counted.
    #[n(1)]
    pub counted: GrantId,
    /// Facts up to here came in.
    #[n(2)]
    pub applied: u64,
    /// What it had in flight: how many with the same scopes.
    #[n(3)]
    pub flying: Vec<(u32, Vec<String>)>,
    /// It is there, as far as is known.
    #[n(4)]
    pub alive: bool,
}

/// What became of bytes.
#[derive(Debug, PartialEq)]
pub enum Read {
    Frame(Frame),
    /// Of another version: its sender is alive.
    Foreign(MemberId, u8),
    Bad,
}

/// Written down.
pub fn encode(frame: &Frame) -> Vec<u8> {
    let mut bytes = vec![MAGIC, VERSION];
    bytes.extend(frame.from.0);
    write_to(&mut bytes, &frame.head);
    write_to(&mut bytes, &frame.said);
    bytes
}

/// Written down, for what is stored.
pub fn write<T: Encode<()>>(what: &T) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    write_to(&mut bytes, what);
    bytes
}

fn write_to<T: Encode<()>>(bytes: &mut Vec<u8>, what: &T) {
    // A `Vec` takes everything.
    let _ = minicbor::encode(what, bytes);
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
    match (decoder.decode(), decoder.decode()) {
        (Ok(head), Ok(said)) if decoder.position() == rest.len() && is_sound(&said) => {
            Read::Frame(Frame { from, head, said })
        }
        _ => Read::Bad,
    }
}

/// What was stored, or given by a frame.
pub fn memory(bytes: &[u8]) -> Option<Memory> {
    let (&version, rest) = bytes.split_first()?;
    let mut decoder = minicbor::Decoder::new(rest);
    let memory: Memory = decoder.decode().ok()?;
    let is_whole = version == VERSION && decoder.position() == rest.len();
    let names = memory.members.iter().flat_map(|known| known.flying.iter().map(|(_, names)| names));
    let is_sound = is_whole
        && { names }.all(|names| are_names(names))
        && memory.aside.iter().all(|(_, cost)| (0.0..=MOST_COST).contains(&cost.0));
    is_sound.then_some(memory)
}

/// Which snapshot it is, without reading the rest.
pub fn memory_number(bytes: &[u8]) -> Option<(Epoch, u32)> {
    let (&version, rest) = bytes.split_first()?;
    let mut decoder = minicbor::Decoder::new(rest);
    decoder.array().ok()?;
    let number = (decoder.u64().ok()?, decoder.u32().ok()?);
    (version == VERSION).then_some(number)
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
        Said::Ping | Said::Bye | Said::Lend { .. } | Said::Probe | Said::Beat(_) | Said::Reply(_) => true,
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
            Self::Done(_, flight, told) => flight.ask.is_sound() && is_told(told),
            Self::Order(_, _, order) => order.is_sound(),
        }
    }
}

impl Act {
    fn is_sound(&self) -> bool {
        match self {
            Self::Ask(ask) => ask.is_sound(),
            Self::Done { told, .. } => is_told(told),
            Self::Order(_, order) => order.is_sound(),
            Self::Watch(level) => *level <= 2,
            Self::Left { .. } | Self::Cancel(_) | Self::Returned { .. } => true,
        }
    }
}

impl Order {
    fn is_sound(&self) -> bool {
        let name = match self {
            Self::Pause(name) | Self::Resume(name) => name.as_deref().unwrap_or_default(),
            Self::Configure(name, _)
            | Self::Crawl(name, _)
            | Self::Hold(name, _)
            | Self::Reset(name)
            | Self::Adjust { name, .. } => name,
        };
        name.len() <= LONGEST_NAME
    }
}

/// Four numbers at least, and not more than all scopes need.
fn is_told(told: &[Number]) -> bool {
    (4..=11 + 7 * MOST_NAMES).contains(&told.len())
        && told.iter().all(|number| number.0.is_nan() || number.0.abs() <= 10.0 * LONGEST_MS.max(MOST_COST))
}
