//! A member as the leader knows it.

use std::{collections::BTreeMap, sync::Arc};

use autothrottle::{Instant, Span};

use crate::{
    api::Refusal,
    clock::PeerClock,
    frame::{Act, GrantId, Request, reply},
    vec_map::VecMap,
};

/// A grant may be used for so long after its instant.
pub const VALID: Span = Span::from_micros(250_000);

#[derive(Debug)]
pub struct Peer {
    /// 0 before it told its story, or where it has to tell it anew.
    pub session: u32,
    /// Batches heard in order, and those that came before others.
    pub batches: u32,
    pub early: VecMap<u32, Vec<Act>>,
    /// Replies with grants or refusals that were said in this session.
    pub replies: u32,
    pub heard_at: Instant,
    pub clock: PeerClock,
    pub requests: BTreeMap<u64, Held>,
    /// Its sends are counted up to here.
    pub counted: GrantId,
    /// Its facts came in up to here; and those are in a stored snapshot.
    pub applied: u64,
    pub durable: u64,
    pub watch: u32,
    /// The hash of its options.
    pub options: Option<u64>,
    /// With the engine's instant of each.
    pub granted: Vec<(u64, u32, Instant)>,
    /// Of the next reply.
    pub flags: u32,
    pub refused: Vec<(u64, Refusal)>,
    /// Its last grants, if it was not heard since.
    pub unheard: Vec<(u64, u32)>,
    pub valid: Span,
    /// It has given grants back since it was last looked at.
    pub returns: bool,
}

/// A request of a member. The engine has the parts that are not here.
#[derive(Debug)]
pub struct Held {
    pub attempt: u32,
    pub ticket: u64,
    pub what: Arc<Request>,
    pub is_flying: bool,
    /// The engine's instant at which it was sent, where the engine counted it then.
    pub at: Option<Instant>,
}

impl Peer {
    pub fn new(now: Instant, counted: GrantId, applied: u64) -> Self {
        Self {
            session: 0,
            batches: 0,
            early: VecMap::default(),
            replies: 0,
            heard_at: now,
            clock: PeerClock::default(),
            requests: BTreeMap::new(),
            counted,
            applied,
            durable: 0,
            watch: 0,
            options: None,
            granted: Vec::new(),
            flags: 0,
            refused: Vec::new(),
            unheard: Vec::new(),
            valid: VALID,
            returns: false,
        }
    }

    /// It is in a new session.
    pub fn begin(&mut self, session: u32, options: u64) {
        self.session = session;
        self.options = Some(options);
        (self.batches, self.replies) = (0, 0);
        self.early.clear();
        self.granted.clear();
        self.refused.clear();
        self.unheard.clear();
    }

    /// How long a grant of a reply with these flags may be used. Where requests wait for the time after it,
    /// it is a quarter: what leaves so late, by a message that was slower than those before, shortens a gap.
    pub fn valid(&self, flags: u32) -> Span {
        let is_short = flags & (reply::AWAITED | reply::EXACT) == reply::AWAITED;
        Span::from_micros(self.valid.micros() / if is_short { 4 } else { 1 })
    }

    /// How long its grants may be used: longer for one that is often late, at most a lease.
    pub fn adapt(&mut self, lease: Span) {
        let micros = self.valid.micros();
        self.valid = Span::from_micros(if core::mem::take(&mut self.returns) {
            (2 * micros).min(lease.micros())
        } else {
            (micros / 2).max(VALID.micros().min(lease.micros()))
        });
    }

    /// The requests in flight: how many with the same scopes.
    pub fn flying(&self) -> Vec<(u32, Vec<String>)> {
        let mut counts: VecMap<&[String], u32> = VecMap::default();
        for held in self.requests.values().filter(|held| held.is_flying) {
            *counts.or_default(&held.what.names) += 1;
        }
        counts.into_iter().map(|(names, count)| (count, names.to_vec())).collect()
    }
}
