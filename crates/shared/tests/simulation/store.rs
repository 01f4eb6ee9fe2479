//! The store that elects and carries: a store as Redis is, with its scripts, or sockets of one machine.

use std::rc::Rc;

use autothrottle_shared::is_change;

use crate::world::{Event, Heard, LEASE, Said, World};

impl World {
    /// A message reaches the store.
    pub fn at_store(&mut self, of: usize, said: Said) {
        let home = self.processes[of].home;
        if self.is_socket {
            return self.at_socket(of, said);
        }
        if self.now < self.stores[home].down_until {
            return;
        }
        if self.now < self.stores[home].pauses_until {
            return self.at(self.stores[home].pauses_until, Event::AtStore { of, said });
        }
        let refuses = self.now < self.stores[home].refuses_until;
        if refuses && !matches!(said, Said::ToLeader(_)) {
            if let Some(op) = said.op() {
                self.answer(of, Heard::Failed(op));
            }
            return;
        }
        match said {
            Said::Compete { op, above } => {
                let heard = self.compete(of, home, op, above);
                self.answer(of, heard);
            }
            Said::Renew { op, epoch, store } => {
                let heard = if self.claims(of, home, epoch) {
                    self.put(home, store);
                    Heard::Renewed(op)
                } else {
                    Heard::Refused(op)
                };
                self.answer(of, heard);
            }
            Said::Release { op, epoch, store } => {
                if self.claims(of, home, epoch) {
                    self.put(home, store);
                    self.stores[home].holder = None;
                    self.stores[home].until = 0;
                }
                self.answer(of, Heard::Released(op));
            }
            Said::ToLeader(bytes) => {
                let all: Vec<usize> = (0..self.processes.len())
                    .filter(|&other| self.listens(other, home) && self.processes[other].hears_leader)
                    .collect();
                for &other in &all {
                    self.publish(other, &bytes);
                }
                if all.is_empty() {
                    self.answer(of, Heard::Vacant(false));
                }
            }
            Said::ToMember { epoch, to, bytes } => {
                if !self.claims(of, home, epoch) {
                    self.count("fenced");
                    return self.answer(of, Heard::Fenced(epoch));
                }
                match self.place_of(to).filter(|&other| self.listens(other, home)) {
                    Some(other) => self.publish(other, &bytes),
                    None => {
                        self.count("unheard");
                        self.answer(of, Heard::Unheard(to, epoch));
                    }
                }
            }
            Said::ToAll { epoch, bytes } => {
                if !self.claims(of, home, epoch) {
                    self.count("fenced");
                    return self.answer(of, Heard::Fenced(epoch));
                }
                for other in 0..self.processes.len() {
                    if self.listens(other, home) {
                        self.publish(other, &bytes);
                    }
                }
            }
        }
        if self.dice.one_in(8) {
            let copy = self.stores[home].clone();
            self.replicas.push_back((self.now, copy));
        }
    }

    /// As the script of Redis.
    fn compete(&mut self, of: usize, home: usize, op: u64, above: u64) -> Heard {
        let now = self.now;
        let is_heard = (0..self.processes.len())
            .any(|other| self.listens(other, home) && self.processes[other].hears_leader);
        let store = &mut self.stores[home];
        let is_held = now < store.until;
        if is_held {
            let holder = store.holder;
            let epoch = holder.map_or(store.reserved, |(epoch, _)| epoch);
            if holder.is_none_or(|(_, holder)| holder != of) && epoch >= above {
                return Heard::Refused(op);
            }
        }
        let mut is_lost = store.epoch < above;
        if !is_held && store.epoch + above == 0 {
            is_lost = is_heard;
        }
        if is_lost {
            store.epoch = above;
            store.holder = None;
            store.reserved = above;
            store.until = now + LEASE;
            return Heard::Refused(op);
        }
        store.epoch = store.epoch.max(above) + 1;
        let epoch = store.epoch;
        store.holder = Some((epoch, of));
        store.until = now + LEASE;
        let stored = store.snapshot.clone().map(|(bytes, at)| (bytes, now - at));
        self.processes[of].hears_leader = true;
        self.reign(of, epoch);
        Heard::Elected { op, epoch, stored, first: false }
    }

    fn reign(&mut self, process: usize, epoch: u64) {
        self.note(|| format!("p{process} is elected, epoch {epoch}"));
        self.count("elected");
        self.reigns.push((self.now, process));
    }

    /// Whether the lease is good: the process that had it last has it still.
    fn claims(&mut self, of: usize, home: usize, epoch: u64) -> bool {
        let now = self.now;
        let store = &mut self.stores[home];
        let is_held = now < store.until;
        if is_held && store.holder == Some((epoch, of)) {
            store.until = now + LEASE;
            return true;
        }
        if (is_held && store.holder.is_some()) || store.epoch > epoch {
            return false;
        }
        store.epoch = epoch;
        store.holder = Some((epoch, of));
        store.until = now + LEASE;
        true
    }

    fn put(&mut self, home: usize, snapshot: Option<Rc<[u8]>>) {
        let Some(bytes) = snapshot.filter(|_| self.keeps) else { return };
        let stored = &mut self.stores[home].snapshot;
        if !is_change(&bytes) {
            *stored = Some((bytes, self.now));
        } else if let Some((kept, _)) = stored {
            *stored = Some(([&**kept, &*bytes].concat().into(), self.now));
            self.count("change stored");
        }
    }

    /// As sockets of one machine: a stream to each, and a file that says who listens.
    fn at_socket(&mut self, of: usize, said: Said) {
        let now = self.now;
        let holder = self.stores[0].holder;
        match said {
            Said::Compete { op, above } => {
                let lives = holder.is_some_and(|(_, other)| other != of && !self.processes[other].is_dead);
                let process = &mut self.processes[of];
                // It connects to a socket that it did not know, whose silence counts from then.
                if lives && !process.is_joined {
                    (process.is_joined, process.joined_at) = (true, now);
                }
                let heard_at = process.heard_at.max(process.joined_at);
                if lives && now.saturating_sub(heard_at) < LEASE {
                    return self.answer(of, Heard::Refused(op));
                }
                let store = &mut self.stores[0];
                let first = store.epoch == 0;
                store.epoch = store.epoch.max(above) + 1;
                let epoch = store.epoch;
                store.holder = Some((epoch, of));
                let stored = store.snapshot.clone().map(|(bytes, at)| (bytes, now - at));
                // It closes its connection to the one that led, which may live.
                if let Some((_, before)) = holder.filter(|&(_, before)| lives && self.listens(before, 0)) {
                    self.answer(before, Heard::Gone(self.processes[of].id));
                }
                // All connect to it anew.
                for process in &mut self.processes {
                    process.is_joined = false;
                    process.hears.is_hollow = false;
                }
                self.processes[of].is_joined = true;
                self.reign(of, epoch);
                for other in 0..self.processes.len() {
                    if other != of && self.listens(other, 0) {
                        self.answer(other, Heard::Vacant(false));
                    }
                }
                self.answer(of, Heard::Elected { op, epoch, stored, first });
            }
            Said::Renew { op, epoch, store } => {
                let is_ours = holder == Some((epoch, of));
                if is_ours {
                    self.put(0, store);
                }
                self.answer(of, if is_ours { Heard::Renewed(op) } else { Heard::Refused(op) });
            }
            Said::Release { op, epoch, store } => {
                if holder == Some((epoch, of)) {
                    self.put(0, store);
                    self.stores[0].holder = None;
                    for other in 0..self.processes.len() {
                        if other != of && self.listens(other, 0) {
                            self.answer(other, Heard::Vacant(true));
                        }
                    }
                }
                self.answer(of, Heard::Released(op));
            }
            Said::ToLeader(bytes) => match holder {
                Some((_, leader)) if self.processes[of].is_joined && !self.processes[leader].is_dead => {
                    self.publish(leader, &bytes);
                }
                _ => self.answer(of, Heard::Vacant(true)),
            },
            Said::ToMember { epoch, to, bytes } => {
                if holder != Some((epoch, of)) {
                    return self.answer(of, Heard::Fenced(epoch));
                }
                match self
                    .place_of(to)
                    .filter(|&other| self.listens(other, 0) && self.processes[other].is_joined)
                {
                    Some(other) => self.publish(other, &bytes),
                    None => self.answer(of, Heard::Unheard(to, epoch)),
                }
            }
            Said::ToAll { epoch, bytes } => {
                if holder != Some((epoch, of)) {
                    return self.answer(of, Heard::Fenced(epoch));
                }
                for other in 0..self.processes.len() {
                    if self.listens(other, 0) && self.processes[other].is_joined {
                        self.publish(other, &bytes);
                    }
                }
            }
        }
    }

    /// As `kill -9`.
    pub fn kill(&mut self, of: usize) {
        self.note(|| format!("p{of} is killed"));
        let id = self.processes[of].id;
        self.processes[of].is_dead = true;
        self.processes[of].died_at = self.now;
        if self.living().is_empty() {
            self.count("all dead");
        }
        if !self.is_socket {
            return;
        }
        if let Some((_, leader)) = self.stores[0].holder {
            if leader == of {
                for other in 0..self.processes.len() {
                    if other != of && self.listens(other, 0) && self.processes[other].is_joined {
                        self.processes[other].is_joined = false;
                        self.answer(other, Heard::Vacant(true));
                    }
                }
            } else if self.processes[of].is_joined {
                self.answer(leader, Heard::Gone(id));
            }
        }
    }
}
