//! The types of the machine's input and output.

use core::{fmt, str::FromStr};

use autothrottle::{ConfigError, Instant, Span, Value, boundary::Settled};

/// A process of the group, unlike any other: sixteen bytes that its host draws once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemberId(pub [u8; 16]);

/// Which leader it is, counted over all processes: the fencing token of a lease. 0 is before the first.
pub type Epoch = u64;

/// A question to the transport. The host gives it back with the answer.
pub type Op = u64;

/// A request of this process. Its number never comes again.
pub type Ticket = u64;

/// How a group is set up. Every process of it should be given the same, but for its own share of chance.
#[derive(Clone, Debug)]
pub struct Settings {
    /// For how long a lease lasts: who is silent for longer has lost it.
    pub lease: Span,
    /// The rule while no deciding process can be heard. `None`: [`Offline::Divide`] for requests whose scopes
    /// have no quota, [`Offline::Wait`] for the others.
    pub offline: Option<Offline>,
    /// How many processes there are, for one that starts alone and never heard of the others.
    pub members: Option<u32>,
    /// Each process that lives hears at once that another one leads (a socket): one that tells no story then
    /// has ended. Where it is false its places are kept for two leases. And a process may end with its turn,
    /// so it puts off no word.
    pub prompt: bool,
    /// The least time between two snapshots, but where a strict quota waits for one: for a store that is paid
    /// by the write. At zero there are three a lease, and more when something is learned.
    pub keep_every: Span,
    /// The state that was learned before this process began (`Shared::snapshot` of another time), and the
    /// wall time now. Only the very first leader of a group goes on from it.
    pub snapshot: Option<(Value, f64)>,
}

/// The rule for a process while it hears no deciding process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offline {
    /// Goes on alone with one part of every limit, by the number of processes that there were. A request with
    /// a strict quota waits, and so does a process that never heard of the others.
    Divide,
    /// Waits.
    Wait,
    /// Refuses what waits.
    Fail,
}

/// A request, as [`Shared::submit`](crate::Shared::submit) takes it.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// Its scopes by name; at least one, at most 64.
    pub names: &'a [&'a str],
    /// Expected cost in each scope, beside `names`; the last one holds for all further scopes, none means 1.
    pub costs: &'a [f64],
    /// Higher first. Any finite number.
    pub priority: f64,
    /// The request's own delay in milliseconds: not sent before so long after now.
    pub delay_ms: f64,
}

/// How a request that ended goes on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settlement {
    /// Whether it is over, or waits again under the same ticket.
    pub settled: Settled,
    /// The milliseconds that the server asked to wait, as it said them; NaN if it did not.
    pub asked_ms: f64,
}

/// A change that concerns every process of the group.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// Changes settings of one scope.
    Configure(String, Value),
    /// The robots.txt of a scope asks for a delay; `None` is no delay. Given by
    /// [`Shared::crawl_delay`](crate::Shared::crawl_delay), which says whether it counts.
    Crawl(String, Option<Span>),
    /// Sends no request of this scope for this long.
    Hold(String, Span),
    /// Sends no request of this scope, or none at all, until it is resumed.
    Pause(Option<String>),
    /// Ends that pause.
    Resume(Option<String>),
    /// Forgets what this scope learned and lifts its hold.
    Reset(String),
    /// A request that left that long ago turned out to have another cost in this scope.
    Adjust {
        /// The scope.
        name: String,
        /// How long ago it left.
        ago: Span,
        /// The amount that has been taken for it so far.
        charged: f64,
        /// The real cost.
        cost: f64,
    },
}

/// An event outside.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// It is time ([`Shared::wake_at`](crate::Shared::wake_at)). Too early does no harm.
    Timeout,
    /// The connection that hears was made, or made anew: what was said meanwhile is lost. A transport without
    /// connections never says so.
    Opened,
    /// A frame came in, from any process.
    Received(&'a [u8]),
    /// [`Effect::Compete`] was won.
    Elected {
        /// The question.
        op: Op,
        /// Above that of every leader before.
        epoch: Epoch,
        /// The state that was stored last, if any was, and how long ago.
        stored: Option<(&'a [u8], Span)>,
        /// No process led before: there is none to wait for.
        first: bool,
    },
    /// Another process has the lease.
    Refused {
        /// The question.
        op: Op,
    },
    /// The lease lasts from when it was asked for, and what went along is stored.
    Renewed {
        /// The question.
        op: Op,
    },
    /// The lease is given back.
    Released {
        /// The question.
        op: Op,
    },
    /// No answer: what was asked may have happened or not.
    Failed {
        /// The question.
        op: Op,
        /// Why.
        cause: Cause<'a>,
    },
    /// Frames under this epoch did not leave: the lease is another's.
    Fenced {
        /// The epoch.
        epoch: Epoch,
    },
    /// A frame to this member under this epoch was lost: no process listens there.
    Unheard {
        /// The member.
        to: MemberId,
        /// The epoch.
        epoch: Epoch,
    },
    /// No process listens as the leader. `ended`: its process is known to be dead.
    Vacant {
        /// Whether its process ended, not only its connection.
        ended: bool,
    },
    /// A process is known to have ended.
    Gone(MemberId),
}

/// Why a question has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause<'a> {
    /// None came in time.
    Timeout,
    /// The way is broken, and may heal: the reason in words.
    Broken(&'a str),
    /// It can never work (another user's folder, no permission): the reason in words. Requests are refused
    /// with it until a question is answered.
    Denied(&'a str),
}

/// An effect for the host to perform.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Try to become the leader, with an epoch above `above`. Answers: `Elected`, `Refused`, `Failed`.
    Compete {
        /// Of the answer.
        op: Op,
        /// The least that the new epoch exceeds.
        above: Epoch,
    },
    /// Make the lease last for `Settings::lease` from now, and store `store` if there is something. Answers:
    /// `Renewed`, `Refused`, `Failed`.
    Renew {
        /// Of the answer.
        op: Op,
        /// The epoch of the lease.
        epoch: Epoch,
        /// The state for the next leader.
        store: Option<Vec<u8>>,
    },
    /// Give the lease back, and store `store`. Any answer ends the question.
    Release {
        /// Of the answer.
        op: Op,
        /// The epoch of the lease.
        epoch: Epoch,
        /// The state for the next leader.
        store: Option<Vec<u8>>,
    },
    /// Say this to the leader, whichever process it is, this one too.
    ToLeader(Vec<u8>),
    /// Say this to one process, if the lease of `epoch` is still ours.
    ToMember {
        /// Of the lease.
        epoch: Epoch,
        /// The process.
        to: MemberId,
        /// The frame.
        bytes: Vec<u8>,
    },
    /// Say this to every process, this one too, if the lease of `epoch` is still ours.
    ToAll {
        /// Of the lease.
        epoch: Epoch,
        /// The frame.
        bytes: Vec<u8>,
    },
    /// Make a connection anew: it is open and carries no frame.
    Reconnect {
        /// The one that carries what this process says and asks, not the one by which it hears.
        speaks: bool,
    },
    /// This request is over: it will never be sent.
    Fail {
        /// The request, which is forgotten.
        ticket: Ticket,
        /// Why.
        why: Refusal,
    },
    /// A notice of the engine, as a host takes it from `Boundary::take_notices`; `holdUntil` is by this
    /// process's clock.
    Notice(Value),
    /// Something that people should know: once for each time that it begins.
    Warn(Warning),
    /// The leader, the members or the state of the way changed: [`Shared::status`](crate::Shared::status).
    Moved,
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// `maxWaiting` requests wait already.
    Full,
    /// It costs more than the whole quota of a scope, which is set at `path`.
    Cost {
        /// The scope.
        scope: String,
        /// Where its quota is set.
        path: String,
    },
    /// A scope is down: no answer has come for so long.
    Down {
        /// The scope.
        scope: String,
        /// For how long.
        span: Span,
    },
    /// It makes no sense: no scope, a number out of its range, names that are too long.
    Wrong(String),
    /// The way is broken, and `offline` is [`Offline::Fail`]: the reason in words.
    Offline(String),
    /// The way can never work ([`Cause::Denied`]): the reason in words.
    Denied(String),
}

/// Something that people should know.
#[derive(Clone, Debug, PartialEq)]
pub enum Warning {
    /// A frame was no frame, or said what makes no sense. At most once a minute.
    BadMessage {
        /// Frames like it so far.
        count: u64,
    },
    /// A process speaks another version of the protocol. At most once a minute.
    Version {
        /// Its version.
        theirs: u8,
    },
    /// A leader's state or frame cannot be read: the group goes on without it, and what has a strict quota
    /// waits for a window.
    StateLost,
    /// Another process has other options: where they differ, what counts, and what this process was given.
    Options {
        /// `[path, the value that counts, the value that this process has]`.
        differ: Vec<[String; 3]>,
        /// Processes that have the options that count, and all processes.
        agree: (u32, u32),
    },
    /// The way to those that share the limit is broken.
    Offline {
        /// The rule that this process follows now.
        does: Offline,
        /// Of how many processes it is one, if it knows.
        members: Option<u32>,
        /// Why, in words.
        why: String,
    },
    /// The way is open again.
    Online,
    /// A connection is open and carries no frame: it is made anew.
    SilentConnection {
        /// The one that carries what this process says and asks, not the one by which it hears.
        speaks: bool,
    },
    /// Another process has or had the right to decide that this one has: the store lost data. At most once a
    /// minute.
    TwoWriters {
        /// Of this process.
        ours: Epoch,
    },
    /// A group has as many members as there may be: another one is not served. At most once a minute.
    GroupFull {
        /// It is this process.
        here: bool,
    },
}

/// The role of a process in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// No request asked yet.
    New,
    /// Another process decides, or none.
    Member,
    /// This process decides for all.
    Leader,
    /// This process goes on alone with its part.
    Alone,
    /// It has left.
    Closed,
}

/// The group as one process knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// The role of this process.
    pub role: Role,
    /// The process that decides, as far as it is known.
    pub leader: Option<MemberId>,
    /// Of the leader.
    pub epoch: Epoch,
    /// How many processes there are, if it is known.
    pub members: Option<u32>,
    /// When the leader last answered; `None` before that. Of the leader itself: now.
    pub heard: Option<Instant>,
    /// From here to the leader and back, or to the slowest member and back.
    pub round_trip: Option<Span>,
    /// How far ahead grants are made.
    pub lead: Span,
    /// Since when no process decides, and `offline` counts.
    pub offline_since: Option<Instant>,
    /// The time that the whole limit takes for what this process sent alone and the leader has not counted
    /// yet. At most the longest window: what is older is free.
    pub debt: Span,
    /// How old the newest snapshot is that this process has, and its bytes.
    pub snapshot: Option<(Span, u32)>,
    /// Frames that could not be read.
    pub bad: u64,
    /// Grants that came too late and were given back.
    pub returned: u64,
    /// The hash of the options that count, and of those of this process.
    pub options: (u64, u64),
}

impl fmt::Display for MemberId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl FromStr for MemberId {
    type Err = ();

    /// Thirty-two hexadecimal digits.
    fn from_str(text: &str) -> Result<Self, ()> {
        let mut id = [0; 16];
        if text.len() != 32 || !text.is_ascii() {
            return Err(());
        }
        for (place, byte) in id.iter_mut().enumerate() {
            let digits = text.get(2 * place..2 * place + 2).ok_or(())?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| ())?;
        }
        Ok(Self(id))
    }
}

impl From<ConfigError> for Refusal {
    fn from(error: ConfigError) -> Self {
        Self::Wrong(error.to_string())
    }
}
