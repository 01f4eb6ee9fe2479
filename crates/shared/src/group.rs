//! This process among those that share a limit: who leads, what came in, what becomes of silence.
//!
//! 1. It is idle before the first request. Then it competes: another process leads, or this one does.
//! 2. A leader makes its lease last, and says so in a beat, three times a lease. A process that hears none
//!    for a lease competes.
//! 3. A process that hears no other for long is offline: `Settings::offline` says what happens then.
//!
//! Only spans of this process's own clock are compared, and what it missed while it stood still is not
//! counted as silence. A connection that is open and carries no frame is found out: a leader hears its own
//! beats, a member the answers to its pings.

use std::collections::VecDeque;

use autothrottle::Span;

use crate::{
    api::{Cause, Effect, Input, Op, Refusal, Warning},
    clock::PeerClock,
    collect::Collecting,
    frame::Said,
    leader::{Beginning, Leader, Story},
    machine::{Lease, Renewal, Shared, State, Unheard},
    member::Kept,
    stored,
    vec_map::VecMap,
};

/// To write a whole snapshot of more bytes than this is the work of a turn of its own.
pub(crate) const LONG: usize = 32_768;
/// A process that hears no leader for so long is offline.
pub(crate) const PATIENCE: Span = Span::from_micros(5_000_000);
/// Why the way is broken, where a question was given up.
const NO_ANSWER: &str = "no answer came in time";
/// News is sent within this time.
pub(crate) const SOON: Span = Span::from_micros(20_000);

pub(crate) fn part(span: Span, of: u64) -> Span {
    Span::from_micros(span.micros() / of)
}

impl Shared {
    pub(crate) fn lease_span(&self) -> Span {
        self.settings.lease
    }

    pub(crate) fn op(&mut self) -> Op {
        self.ops += 1;
        self.asked.push_back((self.ops, self.now));
        self.ops
    }

    /// Questions that have waited for a lease have no answer.
    fn give_up(&mut self) {
        let (now, lease) = (self.now, self.lease_span());
        while let Some(&(op, asked)) = self.asked.front()
            && now.since(asked) >= lease
        {
            self.asked.pop_front();
            self.failed(op, Cause::Timeout);
        }
    }

    /// A random part of a span.
    pub(crate) fn chance(&mut self, most: Span) -> Span {
        most.times(self.rng.draw().unit())
    }

    pub(crate) fn warn(&mut self, warning: Warning) {
        self.out.push_back(Effect::Warn(warning));
    }

    /// A request is about to come.
    pub(crate) fn begin(&mut self) {
        self.is_dirty = true;
        if matches!(self.state, State::New) {
            self.state = State::Member;
            self.way.heard_at = self.now;
            self.way.replied_at = self.now;
            self.way.tick_at = Some(self.now + part(self.lease_span(), 3));
            self.compete();
        }
    }

    /// Whether this process leads or will.
    pub(crate) fn lease(&mut self) -> Option<&mut Lease> {
        match &mut self.state {
            State::Collecting(lease, _) | State::Leading(lease, _) => Some(lease),
            _ => None,
        }
    }

    /// Whether the lease is over.
    pub(crate) fn is_over(&mut self) -> bool {
        let now = self.now;
        self.lease().is_some_and(|lease| now >= lease.until)
    }

    pub(crate) fn hear(&mut self, input: Input<'_>) {
        if matches!(self.state, State::Closed) {
            // It was won after all: no process is to wait for one that left.
            if let Input::Elected { epoch, .. } = input {
                self.release(epoch, None);
            }
            return;
        }
        if let Input::Elected { op, .. }
        | Input::Refused { op }
        | Input::Renewed { op }
        | Input::Released { op }
        | Input::Failed { op, .. } = input
        {
            self.asked.retain(|&(asked, _)| asked != op);
        }
        match input {
            Input::Timeout => self.pass(),
            Input::Opened => {
                self.member.clock.forget();
                if !matches!(self.state, State::Leading(..)) && self.member.epoch > 0 {
                    self.member.open();
                }
            }
            Input::Received(bytes) => self.receive(bytes),
            Input::Elected { op, epoch, stored, first } => self.elected(op, epoch, stored, first),
            Input::Refused { op } => self.refused(op),
            Input::Renewed { op } => self.renewed(op),
            Input::Released { .. } => {}
            Input::Failed { op, cause } => self.failed(op, cause),
            Input::Fenced { epoch } => {
                if self.lease().is_some_and(|lease| lease.epoch == epoch) {
                    self.doubts();
                    self.step_down();
                }
            }
            Input::Unheard { to, epoch } => {
                if let State::Leading(lease, leader) = &mut self.state
                    && lease.epoch == epoch
                    && to != self.id
                {
                    leader.suspend(self.now, to, true);
                }
            }
            Input::Vacant { ended } => {
                if ended {
                    self.way.gone = self.way.leader;
                }
                self.compete_within(SOON);
            }
            Input::Gone(id) => match &mut self.state {
                State::Leading(_, leader) if id != self.id => leader.lose(self.now, id),
                State::Collecting(_, collecting) if id != self.id => collecting.lose(id),
                _ => {}
            },
        }
    }

    /// Time passed.
    pub(crate) fn pass(&mut self) {
        self.give_up();
        if self.way.tick_at.is_some_and(|at| at <= self.now) {
            self.tick();
        }
        if self.way.compete_at.is_some_and(|at| at <= self.now) {
            self.way.compete_at = None;
            self.compete();
        }
        if self.is_over() {
            self.step_down();
        }
        if let State::Collecting(_, collecting) = &mut self.state {
            match collecting.is_over(self.now) {
                Some(true) => self.decide(),
                Some(false) => {}
                None => self.beat(),
            }
        }
        let now = self.now;
        if self.lease().is_some_and(|lease| lease.beat_at <= now) {
            self.beat();
        }
    }

    /// Three times a lease: pings, silence, holes.
    pub(crate) fn tick(&mut self) {
        let lease = self.lease_span();
        let due = self.way.tick_at.unwrap_or(self.now);
        self.slept(self.now.since(due));
        let mut next = part(lease, 3);
        if self.lease().is_some() {
            self.check_loop();
        } else {
            let silent = self.now.since(self.way.heard_at);
            if silent >= PATIENCE {
                self.go_offline();
            }
            if silent < lease {
                let is_heard = self.now.since(self.way.replied_at) < next;
                if self.member.epoch > 0 && self.alone.is_none() && !(self.member.talks(self.now) && is_heard)
                {
                    self.say_to_leader(Said::Ping);
                }
                next = next.min(lease - silent);
                if self.now.since(self.way.replied_at) >= lease && self.member.epoch > 0 {
                    // Beats come, so this process hears: what it says does not arrive. If that was not it,
                    // the other connection is next.
                    self.reconnect(!self.way.spoke_anew);
                    self.member.open();
                }
            } else {
                self.compete_within(part(lease, 10));
                next = part(lease, 10);
                // A lease lasts as long after its holder's last word: before that, to be refused is right.
                if self.way.was_refused && silent.micros() >= 2 * lease.micros() && !self.hears_foreign() {
                    self.reconnect(false);
                }
            }
        }
        self.way.tick_at = Some(self.now + next.max(Span::from_micros(1000)));
    }

    /// This process stood still: what it did not hear meanwhile is no silence, and what it measured is void.
    pub(crate) fn slept(&mut self, span: Span) {
        let lease = self.lease_span();
        if span >= part(lease, 30) {
            self.way.doubted = None;
        }
        if span < part(lease, 6) {
            return;
        }
        let is_long = span > part(lease, 3);
        if is_long {
            self.member.clock.forget();
        }
        self.way.heard_at = self.way.heard_at + span;
        self.way.replied_at = self.way.replied_at + span;
        if let Some((at, _)) = &mut self.way.others {
            *at = *at + span;
        }
        if let Some(lease) = self.lease() {
            lease.looped = lease.looped.map(|at| at + span);
        }
        if let State::Leading(_, leader) = &mut self.state {
            leader.slept(span, is_long);
        }
    }

    /// Once in a lease at most, and not by the first look: what a busy machine has not read yet is no
    /// silence.
    pub(crate) fn reconnect(&mut self, speaks: bool) {
        let (now, lease) = (self.now, self.lease_span());
        let doubted = self.way.doubted.filter(|(_, last)| now.since(*last) <= part(lease, 2));
        let (first, _) = doubted.unwrap_or((now, now));
        self.way.doubted = Some((first, now));
        if now.since(first) < part(lease, 3) {
            return;
        }
        if self.way.reconnected_at.is_none_or(|at| self.now.since(at) >= lease) {
            self.way.reconnected_at = Some(self.now);
            self.member.clock.forget();
            self.way.spoke_anew = speaks;
            self.out.push_back(Effect::Reconnect { speaks });
            self.warn(Warning::SilentConnection { speaks });
        }
    }

    /// Whether what this process says comes back to it.
    pub(crate) fn check_loop(&mut self) {
        let (now, span) = (self.now, self.lease_span());
        let Some(lease) = self.lease() else { return };
        let epoch = lease.epoch;
        let silent = lease.looped.map(|at| now.since(at));
        let silent = silent[0].max(silent[1]);
        if silent.micros() >= 2 * span.micros() {
            // Another process may hear more.
            self.release(epoch, None);
            self.way.deaf_until = Some(now + span + span);
            self.step_down();
        } else if silent >= span {
            self.reconnect(false);
        }
    }

    pub(crate) fn compete_within(&mut self, most: Span) {
        if self.way.compete_at.is_none() && self.lease().is_none() {
            self.way.compete_at = Some(self.now + self.chance(most));
        }
    }

    pub(crate) fn compete(&mut self) {
        let is_deaf = self.way.deaf_until.is_some_and(|until| until > self.now);
        let late = self.lease_span();
        let is_asked = self.way.competing.is_some_and(|(_, at)| self.now.since(at) < late + late);
        // An older version does not know that a process which it cannot read may decide: it is let lead while
        // it lives.
        if is_deaf || is_asked || self.hears_foreign() || self.lease().is_some() {
            return;
        }
        let op = self.op();
        self.way.competing = Some((op, self.now));
        self.out.push_back(Effect::Compete { op, above: self.member.epoch });
    }

    pub(crate) fn release(&mut self, epoch: u64, store: Option<Vec<u8>>) {
        let op = self.op();
        self.out.push_back(Effect::Release { op, epoch, store });
    }

    pub(crate) fn elected(&mut self, op: Op, epoch: u64, stored: Option<(&[u8], Span)>, first: bool) {
        let asked = match self.way.competing {
            Some((asked_op, at)) if asked_op == op => at,
            // Too late: no process is to wait for it.
            _ => return self.release(epoch, None),
        };
        self.way.competing = None;
        if self.lease().is_some() || epoch <= self.member.epoch {
            return self.release(epoch, None);
        }
        self.answered();
        let known = stored.map(|(bytes, age)| Kept::new(bytes.into(), self.now - age));
        let known: Vec<Kept> = known.into_iter().chain(self.member.memory.clone()).collect();
        let before = known.iter().map(|kept| kept.number.0).max();
        let is_first = first && self.member.epoch == 0 && known.is_empty();
        let span = self.lease_span();
        let who = (self.id, self.way.leader, self.way.gone);
        let collecting = Collecting::new(self.now, (epoch, span), known, who);
        let lease = Lease {
            epoch,
            until: asked + span,
            beat_at: self.now + part(span, 3),
            said_at: self.now,
            is_light: false,
            renewals: VecDeque::new(),
            snapshots: 0,
            stored: 0,
            is_torn: true,
            sizes: (0, 0),
            next_at: self.now,
            early_at: self.now,
            soon_at: self.now,
            seen_sizes: (0, 0),
            seen_at: self.now,
            looped: [self.now; 2],
        };
        self.state = State::Collecting(lease, Box::new(collecting));
        if before >= Some(epoch) {
            self.doubts();
        }
        self.connected();
        self.member.enter(epoch);
        self.member.clock = PeerClock::default();
        // Said first: to read a snapshot of many scopes takes a while, and meanwhile the others tell.
        self.beat();
        if is_first {
            self.decide();
        }
        self.moved();
    }

    /// It listened long enough: from now on it decides.
    pub(crate) fn decide(&mut self) {
        let State::Collecting(mut lease, mut collecting) = core::mem::replace(&mut self.state, State::Member)
        else {
            return;
        };
        let longest = collecting.longest();
        let (newest, mut is_wrong) = collecting.memory(self.now);
        let who = (self.id, lease.epoch, self.lease_span());
        let is_new = newest.as_ref().is_none_or(|(memory, _)| memory.options != self.options.0);
        let learned = if newest.is_none() { self.settings.snapshot.clone() } else { None };
        let reserved = newest.as_ref().map_or(Vec::new(), |(memory, _)| memory.reserved.clone());
        let (memory, age) = newest.map_or((None, Span::ZERO), |(memory, age)| (Some(memory), age));
        let unknown = is_wrong;
        let beginning = Beginning { memory, age, gone: self.way.gone, share: None, learned, unknown };
        let leader = Leader::new(self.now, who, &self.options.0, beginning).or_else(|_| {
            is_wrong = true;
            Leader::new(self.now, who, &self.options.0, Beginning { unknown: true, ..Beginning::default() })
        });
        if is_wrong {
            self.warn(Warning::StateLost);
        }
        // Its own options are known to be right.
        let Ok(mut leader) = leader else { return };
        if self.settings.prompt {
            for &id in collecting.missing.iter().flat_map(VecMap::keys) {
                leader.lose(self.now, id);
            }
        }
        let Collecting { stories, batches, .. } = *collecting;
        let stories: Vec<Story> = stories.into_iter().map(|(_, story)| story).collect();
        leader.take(self.now, stories);
        leader.spend(self.now, &reserved);
        for (from, session, number, acts) in batches {
            leader.batch(self.now, from, session, number, acts);
        }
        leader.has_news = true;
        self.note_options(leader.options.1, None);
        lease.sizes = (longest, 0);
        if longest > LONG {
            // To read it took a while, and to write it does again: between both it says that it is there.
            (lease.beat_at, lease.is_light) = (self.now, true);
        }
        self.state = State::Leading(lease, Box::new(leader));
        self.is_dirty = true;
        if is_new {
            // Options without effect: once a group.
            let notices = self.judge.take_notices();
            self.told(self.now.millis(), notices, None, f64::NAN);
        }
    }

    pub(crate) fn refused(&mut self, op: Op) {
        if self.take_renewal(op).is_some() {
            self.doubts();
            return self.step_down();
        }
        if self.way.competing.is_none_or(|(asked, _)| asked != op) {
            return;
        }
        self.way.competing = None;
        self.answered();
        self.way.was_refused = true;
        if !self.others_live() {
            self.way.others = Some((self.now, Unheard::Leads));
        } else if let Some((at, _)) = &mut self.way.others {
            *at = self.now;
        }
        // The leader is to say so at once: who does not know it need not wait for the next beat.
        self.say_to_leader(Said::Ping);
    }

    /// The transport answers.
    pub(crate) fn answered(&mut self) {
        self.way.denied = None;
        self.way.was_refused = false;
    }

    pub(crate) fn take_renewal(&mut self, op: Op) -> Option<Renewal> {
        let lease = self.lease()?;
        let place = lease.renewals.iter().position(|renewal| renewal.op == op)?;
        lease.renewals.remove(place)
    }

    pub(crate) fn renewed(&mut self, op: Op) {
        let Some(renewal) = self.take_renewal(op) else { return };
        let span = self.lease_span();
        if let Some(lease) = self.lease() {
            lease.until = lease.until.max(renewal.asked + span);
        }
        // The others may not have heard of a snapshot that is not stored. A part of what is left is by what
        // all know.
        let Some((bytes, number, applied)) = renewal.snapshot else { return };
        let State::Leading(lease, leader) = &mut self.state else { return };
        match stored::number(&bytes) {
            Some((Some(after), _)) if after != lease.stored => return lease.is_torn = true,
            _ => lease.stored = number,
        }
        leader.is_stored(number, applied);
        self.remember(bytes);
    }

    pub(crate) fn failed(&mut self, op: Op, cause: Cause<'_>) {
        let is_ours = self.way.competing.is_some_and(|(asked, _)| asked == op);
        if is_ours {
            self.way.competing = None;
        }
        let renewal = self.take_renewal(op);
        if !is_ours && renewal.is_none() {
            // This question was given up meanwhile, and the host says more of why.
            if let (Cause::Broken(why), NO_ANSWER) = (cause, &*self.way.cause) {
                self.way.cause = why.into();
            }
            return;
        }
        if renewal.is_some_and(|renewal| renewal.snapshot.is_some())
            && let Some(lease) = self.lease()
        {
            lease.is_torn = true;
        }
        let (now, lease) = (self.now, self.lease_span());
        if is_ours
            && matches!(cause, Cause::Timeout)
            && self.way.reconnected_at.is_none_or(|at| now.since(at) >= lease)
        {
            // The store is away, or this connection to it is open and carries no message. No sign tells
            // which.
            self.way.reconnected_at = Some(now);
            self.out.push_back(Effect::Reconnect { speaks: true });
        }
        // A measurement of the meantime is of a broken way.
        self.member.clock.forget();
        self.way.cause = match cause {
            Cause::Timeout => NO_ANSWER.into(),
            Cause::Broken(why) | Cause::Denied(why) => why.into(),
        };
        if let Cause::Denied(why) = cause {
            // It will not heal by itself, so no request waits for that.
            self.way.denied = Some(why.into());
            self.fail_all(&Refusal::Denied(why.into()));
        }
    }

    /// Another process decides, or did, though this one's lease lasts: no store gives that while it keeps its
    /// data.
    pub(crate) fn doubts(&mut self) {
        let now = self.now;
        let lease = self.lease().filter(|lease| now < lease.until);
        if let Some(ours) = lease.map(|lease| lease.epoch)
            && self.is_seldom(3)
        {
            self.warn(Warning::TwoWriters { ours });
        }
    }

    pub(crate) fn fail_all(&mut self, why: &Refusal) {
        for ticket in self.member.everybody() {
            self.member.cancel(self.now, ticket);
            self.out.push_back(Effect::Fail { ticket, why: why.clone() });
        }
    }

    /// Decides no longer: another does, or will.
    pub(crate) fn step_down(&mut self) {
        if self.lease().is_none() {
            return;
        }
        self.state = State::Member;
        self.way.heard_at = self.now;
        self.way.replied_at = self.now;
        self.way.leader = None;
        self.member.waits_again();
        self.member.open();
        self.compete_within(part(self.lease_span(), 10));
    }

    /// A process leads.
    pub(crate) fn connected(&mut self) {
        self.way.was_refused = false;
        if self.way.offline_since.take().is_none() {
            return;
        }
        self.warn(Warning::Online);
        self.member.alone = None;
        if self.alone.take().is_some() {
            self.member.open();
        }
    }

    /// Says that something is another than it was.
    pub(crate) fn moved(&mut self) {
        let status = self.status(self.now);
        let moved = (status.leader, status.members, status.offline_since.is_none());
        if self.way.moved != Some(moved) {
            self.way.moved = Some(moved);
            self.out.push_back(Effect::Moved);
        }
    }
}
