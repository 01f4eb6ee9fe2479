//! The frames of a leader: who may leave, and that it is there.

use autothrottle::{Instant, Span};

use crate::{
    api::MemberId,
    frame::{Beat, Grant, GrantId, Head, Reply, reply},
    leader::Leader,
};

impl Leader {
    /// The replies that are due to members, with the head of each.
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
        // A process that is alone has a slower clock for its engine, and this one for the rest.
        let at = if self.share.is_some() { now } else { self.clock.peek(now) };
        let (epoch, lease) = (self.epoch, self.lease);
        let granted = self.peers.get(&id).filter(|peer| !is_ping && !peer.granted.is_empty());
        let is_free =
            granted.is_some_and(|peer| peer.granted.iter().all(|&(grant, ..)| self.has_room(id, grant)));
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
            let granted = core::mem::take(&mut peer.granted).into_iter();
            let grants = granted.map(|(id, attempt, due)| Grant { id, attempt, later: due.since(at) });
            let grants: Vec<_> = grants.collect();
            // The grants of other members follow it.
            flags |= u32::from(grants.iter().any(|grant| grant.later > Span::ZERO)) * reply::AWAITED;
            (grants, core::mem::take(&mut peer.refused))
        };
        let mut number = 0;
        if !is_ping {
            flags |= core::mem::take(&mut peer.flags);
        }
        if !grants.is_empty() || !refused.is_empty() {
            peer.replies += 1;
            number = peer.replies;
            peer.counted = GrantId { epoch, session: peer.session, number };
            peer.unheard = grants.iter().map(|grant| (grant.id, grant.attempt)).collect();
        }
        let head = Head { epoch, session: peer.session, stamp: now.micros(), echo: peer.clock.echo(now) };
        let reply = Reply {
            number,
            replies: peer.replies,
            batches: peer.batches,
            durable: peer.durable,
            rank,
            grants,
            at: at.micros(),
            valid: peer.valid(flags),
            soon: self.soon,
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
}
