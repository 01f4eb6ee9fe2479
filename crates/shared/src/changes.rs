//! The state for the next leader, and for people: all of it now and then, and in each beat what changed.
//!
//! A scope has changed when one of its requests left or came back, or an order named it. It is noted by its
//! handle: what is long forgotten has no state to tell.

use autothrottle::{Instant, Span, Value};

use crate::{
    api::MemberId,
    codec::{Number, Plain},
    frame::{GrantId, Known, Memory, Request},
    leader::{Leader, WALL_MS},
    peer::VALID,
    stored::{self, Change, Changes},
};

/// Scopes whose statistics go along with one beat: the others follow with the next.
const MOST_SEEN: usize = 128;

impl Leader {
    /// The scopes of this request are not as they were.
    pub fn touch(&mut self, what: &Request) {
        for name in &what.names {
            self.touch_scope(name);
        }
    }

    pub fn touch_scope(&mut self, name: &str) {
        let scope = self.engine.find(name);
        if scope >= 0.0 {
            self.changes.scopes.add(scope as u64, ());
            self.changes.unseen.add(scope as u64, ());
        }
    }

    pub fn touch_settings(&mut self, name: &str) {
        self.changes.settings.add(name.into(), ());
    }

    pub fn touch_member(&mut self, id: MemberId) {
        self.changes.gone.add(id, ());
    }

    /// The whole state for the next leader.
    pub fn whole(&mut self, now: Instant, number: u32) -> Vec<u8> {
        let engine_now = self.now(now);
        let Changes { unseen, seen_to, .. } = core::mem::take(&mut self.changes);
        self.changes = Changes { unseen, seen_to, whole_at: engine_now, ..Changes::default() };
        let snapshot = self.engine.snapshot(engine_now, WALL_MS);
        let settings = self.settings.iter().map(written).collect();
        let former = self.former.iter().map(|(&id, known)| former(id, known)).collect();
        stored::whole(&self.memory(now, number, snapshot, settings, former))
    }

    /// The changes since the piece before.
    pub fn change(&mut self, now: Instant, number: u32) -> Vec<u8> {
        let engine_now = self.now(now);
        let after = number - 1;
        let Changes { scopes, settings, gone, whole_at, .. } = &mut self.changes;
        let scopes: Vec<f64> = core::mem::take(scopes).into_iter().map(|(scope, ())| scope as f64).collect();
        let (settings, gone) = (core::mem::take(settings), core::mem::take(gone));
        let since = ((engine_now - *whole_at).max(0.0) * 1000.0) as u64;
        let snapshot = self.engine.snapshot_of(engine_now, WALL_MS, &scopes);
        let set =
            self.settings.iter().filter(|(name, _)| settings.contains_key(*name)).map(written).collect();
        let left = self.former.iter().filter(|(id, _)| gone.contains_key(*id));
        let left = left.map(|(&id, known)| former(id, known)).collect();
        let mut memory = self.memory(now, number, snapshot, set, left);
        memory.options.clear();
        stored::change(&Change { after, since, memory })
    }

    fn memory(
        &mut self,
        now: Instant,
        number: u32,
        snapshot: Value,
        settings: Vec<(String, Plain)>,
        former: Vec<Known>,
    ) -> Memory {
        let valid = self.peers.values().map(|peer| peer.valid).max().unwrap_or(VALID);
        // Grants are made ahead; and of a strict quota each counts as if it left as late as it may.
        let valid = if self.reserved.is_used() { valid } else { Span::ZERO };
        let ahead = self.clock.peek(now).since(now) + valid;
        let alive = self.peers.iter().map(|(&id, peer)| Known {
            id,
            counted: peer.counted,
            applied: peer.applied,
            flying: peer.flying(),
            alive: true,
        });
        Memory {
            epoch: self.epoch,
            number,
            snapshot: Plain(snapshot),
            ahead: ahead.micros(),
            settings,
            paused: self.is_paused,
            options: self.options.0.clone(),
            members: alive.chain(former).collect(),
            reserved: self.reserved.take(number),
            unknown: self.unknown.map(|since| now.since(since).micros()),
        }
    }

    /// The last fact of each member that came in.
    pub fn applied(&self) -> Vec<(MemberId, u64)> {
        self.peers.iter().map(|(&id, peer)| (id, peer.applied)).collect()
    }

    /// A snapshot with these facts is stored.
    pub fn is_stored(&mut self, number: u32, applied: Vec<(MemberId, u64)>) {
        for (id, seq) in applied {
            if let Some(peer) = self.peers.get_mut(&id) {
                peer.durable = peer.durable.max(seq);
            }
        }
        self.reserved.stored(number);
    }

    /// Statistics for all: `[now in milliseconds, stats]`, of every scope or of some that changed.
    pub fn statistics(&mut self, now: Instant, are_all: bool) -> Vec<u8> {
        let engine_now = self.now(now);
        if are_all {
            self.changes.unseen.clear();
            return stored::whole(&(Number(engine_now), Plain(self.engine.stats(engine_now))));
        }
        // Those that have waited longest: behind those of the last time.
        let Changes { unseen, seen_to, .. } = &mut self.changes;
        let all: Vec<u64> = unseen.keys().copied().collect();
        let (before, behind) = all.split_at(unseen.place(&(*seen_to + 1)));
        let scopes: Vec<u64> = behind.iter().chain(before).take(MOST_SEEN).copied().collect();
        for scope in &scopes {
            unseen.remove(scope);
            *seen_to = *scope;
        }
        let scopes: Vec<f64> = scopes.into_iter().map(|scope| scope as f64).collect();
        stored::change(&(Number(engine_now), Plain(self.engine.stats_of(engine_now, &scopes))))
    }
}

fn written((name, entries): (&String, &Vec<(String, Value)>)) -> (String, Plain) {
    (name.clone(), Plain(Value::Map(entries.clone())))
}

fn former(id: MemberId, &(counted, applied): &(GrantId, u64)) -> Known {
    Known { id, counted, applied, flying: Vec::new(), alive: false }
}
