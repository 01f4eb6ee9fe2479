//! What a leader says: who may leave, that it is there, and what the next leader needs.

use autothrottle::{Instant, Span, Value};

use crate::{
    api::MemberId,
    codec::{Number, Plain},
    frame::{self, Beat, GrantId, Head, Known, Memory, Reply, reply},
    leader::{Leader, WALL_MS},
    peer::VALID,
};

/// Statistics of more scopes do not go along: they take longer than a lease.
const MOST_SEEN: f64 = 5000.0;

impl Leader {
    /// What is owed to members, with the head of each.
    pub fn replies(&mut self, now: Instant) -> Vec<(MemberId, Head, Reply)> {
        for (from, id) in core::mem::take(&mut self.again) {
            let has_room = self.has_room(from, id);
            if let Some(peer) = self.peers.get_mut(&from)
                && !has_room
            {
                peer.flags |= reply::ENDS;
                self.owed.add(from, ());
            }
        }
        let owed = core::mem::take(&mut self.owed);
        owed.into_iter().filter_map(|(id, ())| self.reply(now, id, false)).collect()
    }

    /// The answer to a ping, or all that is owed to one member.
    pub fn reply(&mut self, now: Instant, id: MemberId, is_ping: bool) -> Option<(MemberId, Head, Reply)> {
        // Who is alone has a slower clock for its engine, and this one for the rest.
        let at = if self.share.is_some() { now } else { self.clock.peek(now) }.micros();
        let (epoch, lease) = (self.epoch, self.lease);
        let granted = self.peers.get(&id).filter(|peer| !is_ping && !peer.granted.is_empty());
        let is_free =
            granted.is_some_and(|peer| peer.granted.iter().all(|&(grant, _)| self.has_room(id, grant)));
        let mut flags = u32::from(self.is_awaited()) * reply::AWAITED
            + u32::from(self.engine.waiting() > 0.0) * reply::BUSY
            + u32::from(is_free) * reply::FREE;
        let rank = self.rank(id);
        let peer = self.peers.get_mut(&id)?;
        if is_ping {
            peer.adapt(lease);
        }
        let (grants, refused) = if is_ping {
            (Vec::new(), Vec::new())
        } else {
            (core::mem::take(&mut peer.granted), core::mem::take(&mut peer.refused))
        };
        let mut number = 0;
        if !is_ping {
            flags |= core::mem::take(&mut peer.flags);
        }
        if !grants.is_empty() || !refused.is_empty() {
            peer.replies += 1;
            number = peer.replies;
            peer.counted = GrantId { epoch, session: peer.session, number };
            peer.unheard.clone_from(&grants);
        }
        let head = Head { epoch, session: peer.session, stamp: now.micros(), echo: peer.clock.echo(now) };
        let reply = Reply {
            number,
            replies: peer.replies,
            batches: peer.batches,
            durable: peer.durable,
            rank,
            grants,
            at,
            valid: peer.valid(flags),
            flags,
            refused,
        };
        Some((id, head, reply))
    }

    /// The place of a member among how many.
    pub fn rank(&self, id: MemberId) -> (u32, u32) {
        (self.peers.place(&id) as u32, self.peers.len() as u32)
    }

    /// Whether the next request like this one could have its slots.
    fn has_room(&self, from: MemberId, id: u64) -> bool {
        let held = self.peers.get(&from).and_then(|peer| peer.requests.get(&id));
        held.is_none_or(|held| self.engine.has_room(held.ticket as f64))
    }

    /// Forgets members that were silent for long, and grants none to those that were silent for a lease.
    pub fn listen(&mut self, now: Instant) {
        let lease = self.lease;
        for (id, heard_at) in self.peers.iter().map(|(&id, peer)| (id, peer.heard_at)).collect::<Vec<_>>() {
            let silent = now.since(heard_at);
            if id == self.id {
                continue;
            }
            if silent.micros() > 2 * lease.micros() {
                self.lose(now, id);
            } else if silent > lease {
                self.suspend(now, id, false);
            }
        }
    }

    /// This process stood still for this long: it could not hear the others meanwhile.
    pub fn slept(&mut self, span: Span, is_long: bool) {
        for peer in self.peers.values_mut() {
            peer.heard_at = peer.heard_at + span;
            if is_long {
                peer.clock.forget();
            }
        }
    }

    pub fn beat(&mut self, own: u64) -> Beat {
        let options = self.options.1;
        let agree = self.peers.values().filter(|peer| peer.options.unwrap_or(own) == options).count();
        Beat { options, members: self.peers.len() as u32, agree: agree as u32, ..Beat::default() }
    }

    /// Other options, if every member has those.
    pub fn agreed(&self) -> Option<Vec<u8>> {
        let (bytes, hash) = self.offered.as_ref()?;
        let is_agreed = !self.peers.is_empty() && self.peers.values().all(|peer| peer.options == Some(*hash));
        is_agreed.then(|| bytes.clone())
    }

    /// What the next leader needs, and for each member the last fact that it knows.
    pub fn memory(&mut self, now: Instant, number: u32) -> (Vec<u8>, Vec<(MemberId, u64)>) {
        let engine_now = self.now(now);
        let snapshot = self.engine.snapshot(engine_now, WALL_MS);
        let valid = self.peers.values().map(|peer| peer.valid).max().unwrap_or(VALID);
        // Grants are made ahead; and of a strict quota each counts as if it left as late as it may.
        let valid = if self.aside.is_used() { valid } else { Span::ZERO };
        let ahead = self.clock.peek(now).since(now) + valid;
        let alive = self.peers.iter().map(|(&id, peer)| Known {
            id,
            counted: peer.counted,
            applied: peer.applied,
            flying: peer.flying(),
            alive: true,
        });
        let former = self.former.iter().map(|(&id, &(counted, applied))| Known {
            id,
            counted,
            applied,
            flying: Vec::new(),
            alive: false,
        });
        let memory = Memory {
            epoch: self.epoch,
            number,
            snapshot: Plain(snapshot),
            ahead: ahead.micros(),
            settings: (self.settings.iter())
                .map(|(name, entries)| (name.clone(), Plain(Value::Map(entries.clone()))))
                .collect(),
            paused: self.is_paused,
            options: self.options.0.clone(),
            members: alive.chain(former).collect(),
            aside: self.aside.take(number),
            unknown: self.unknown.map(|since| now.since(since).micros()),
        };
        let applied = self.peers.iter().map(|(&id, peer)| (id, peer.applied)).collect();
        (frame::write(&memory), applied)
    }

    /// A snapshot with these facts is stored.
    pub fn is_stored(&mut self, number: u32, applied: Vec<(MemberId, u64)>) {
        for (id, seq) in applied {
            if let Some(peer) = self.peers.get_mut(&id) {
                peer.durable = peer.durable.max(seq);
            }
        }
        self.aside.stored(number);
    }

    /// Statistics for all, where there are not too many: `[now in milliseconds, stats]`.
    pub fn statistics(&mut self, now: Instant) -> Option<Vec<u8>> {
        if self.engine.scopes() > MOST_SEEN {
            return None;
        }
        let engine_now = self.now(now);
        Some(frame::write(&(Number(engine_now), Plain(self.engine.stats(engine_now)))))
    }
}
