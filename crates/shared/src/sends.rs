//! Frames that go out: what is asked and granted in a turn, beats, and the last words.

use autothrottle::Span;

use crate::{
    api::{Effect, MemberId, Warning},
    collect::Collecting,
    frame::{self, Addressed, Frame, Head, Reply, Said},
    group::{LONG, SOON, part},
    machine::{Renewal, Shared, State},
    member::Kept,
    parts::{MOST_PART, cut},
};

/// Not more bytes of whole snapshots a second than this, on average, and as many of statistics; ten times
/// that where there is news.
const BYTES_A_SECOND: u64 = 65_536;
const HURRY: u64 = 10;
/// Questions about the lease that have no answer, at most.
const MOST_RENEWALS: usize = 64;

/// How long that many bytes count.
fn rest(bytes: usize) -> Span {
    Span::from_micros(bytes as u64 * 1_000_000 / BYTES_A_SECOND)
}

impl Shared {
    /// Says that this process leads; with what changed, and now and then with its whole snapshot.
    pub(crate) fn beat(&mut self) {
        let (now, span, own) = (self.now, self.lease_span(), self.options.1);
        let every = part(span, 3).max(self.settings.keep_every);
        let (mut beat, mut snapshot, mut stored) = (frame::Beat::default(), None, None);
        if let State::Leading(lease, leader) = &mut self.state {
            // Should it go on alone, it is one of as many as there are now.
            self.member.rank = Some(leader.rank(self.id));
            leader.listen(now);
            leader.has_news = false;
            if let Some(options) = leader.agreed() {
                return self.switch(options);
            }
            beat = leader.beat(own);
            // Where each piece takes long to store there is the whole alone.
            let tells_changes = self.settings.keep_every == Span::ZERO;
            let is_long = tells_changes && lease.sizes.0 > LONG;
            // Late already: this comes first.
            lease.is_light |= is_long && now.since(lease.said_at) > part(span, 2);
            let is_due = now >= lease.next_at || lease.is_torn && now >= lease.early_at;
            let is_whole = is_due || lease.sizes.1 > lease.sizes.0;
            if lease.is_light {
                // The rest follows in the next turn.
            } else if is_whole || tells_changes || leader.reserved.is_wanted() {
                lease.snapshots += 1;
                let bytes = if is_whole || !tells_changes {
                    let bytes = leader.whole(now, lease.snapshots);
                    lease.sizes = (bytes.len(), 0);
                    lease.next_at = now + rest(bytes.len()).max(every);
                    lease.early_at = now + part(rest(bytes.len()), HURRY).max(every);
                    lease.is_torn = false;
                    bytes
                } else {
                    let bytes = leader.change(now, lease.snapshots);
                    lease.sizes.1 += bytes.len();
                    bytes
                };
                // With thousands of scopes each of both takes long.
                let are_due = now >= lease.seen_at || lease.seen_sizes.1 > lease.seen_sizes.0;
                let are_all = are_due && !(is_long && is_whole);
                let seen = leader.statistics(now, are_all);
                if are_all {
                    lease.seen_sizes = (seen.len(), 0);
                    lease.seen_at = now + rest(seen.len()).max(every);
                } else {
                    lease.seen_sizes.1 += seen.len();
                }
                beat.seen = Some(seen);
                lease.soon_at = now + part(rest(bytes.len()), HURRY);
                snapshot = Some((bytes.clone(), lease.snapshots, leader.applied()));
                stored = Some(bytes);
            }
        } else {
            beat.options = own;
        }
        let op = self.op();
        let Some(lease) = self.lease() else { return };
        let next = if core::mem::take(&mut lease.is_light) { SOON } else { part(span, 3) };
        (lease.beat_at, lease.said_at) = (now + next, now);
        lease.renewals.push_back(Renewal { op, asked: now, snapshot });
        if lease.renewals.len() > MOST_RENEWALS {
            lease.is_torn |= lease.renewals.pop_front().is_some_and(|given_up| given_up.snapshot.is_some());
        }
        let epoch = lease.epoch;
        self.out.push_back(Effect::Renew { op, epoch, store: stored.clone() });
        beat.memory = stored;
        self.say_to_all(epoch, Said::Beat(beat));
        self.say_to_leader(Said::Probe);
        self.moved();
    }

    /// Every member has the same other options: those count from now on.
    pub(crate) fn switch(&mut self, options: Vec<u8>) {
        let State::Leading(lease, leader) = &mut self.state else { return };
        lease.snapshots += 1;
        leader.options = (options, 0);
        let (epoch, number) = (lease.epoch, lease.snapshots);
        let kept = Kept::new(leader.whole(self.now, number), self.now);
        lease.is_torn = true;
        let span = self.settings.lease;
        let who = (self.id, None, None);
        let collecting = Collecting::new(self.now, (epoch, span), vec![kept], who);
        let State::Leading(lease, _) = core::mem::replace(&mut self.state, State::Member) else { return };
        self.state = State::Collecting(lease, Box::new(collecting));
        self.member.open();
        self.beat();
    }

    /// Requests and grants leave in frames.
    pub(crate) fn flush(&mut self) {
        if self.is_over() {
            self.step_down();
        }
        let now = self.now;
        let mut is_crowded = false;
        loop {
            if let Some(said) = self.member.flush(now, &self.options.0) {
                self.deliver(said);
            }
            let (mut replies, mut tells, mut is_refilled) = (Vec::new(), Vec::new(), false);
            let decider = match (&mut self.state, &mut self.alone) {
                (State::Leading(_, leader), _) => Some(leader),
                (_, alone) => alone.as_mut(),
            };
            if let Some(leader) = decider {
                leader.decide(now);
                if leader.engine.waiting() > 0.0 {
                    // A request may wait for a slot that only this process could use again.
                    self.member.say_all(now);
                }
                replies = leader.replies(now);
                is_refilled = core::mem::take(&mut leader.is_refilled);
                tells = core::mem::take(&mut leader.tells);
                is_crowded |= core::mem::take(&mut leader.is_crowded);
            }
            let is_one = replies.len() > 2 && is_refilled && !self.settings.prompt && self.lease().is_some();
            let mut together = Vec::new();
            for (to, head, reply) in replies {
                if to == self.id {
                    self.replied(&head, reply, true);
                } else if is_one {
                    together.push(Addressed { to, session: head.session, echo: head.echo, reply });
                } else {
                    self.say_to(to, head, reply);
                }
            }
            if let (Some(epoch), true) = (self.lease().map(|lease| lease.epoch), is_one) {
                self.say_to_all(epoch, Said::Replies(together));
            }
            for said in tells {
                if let Said::Tell { now, notices, of, latency } = &said {
                    self.told(now.0, notices.0.clone(), *of, latency.0);
                }
                if let Some(epoch) = self.lease().map(|lease| lease.epoch) {
                    self.say_to_all(epoch, said);
                }
            }
            if !self.member.has_news(now) {
                break;
            }
        }
        if is_crowded && self.is_seldom(2) {
            self.warn(Warning::GroupFull { here: false });
        }
        self.hurry();
    }

    /// Puts the next frame soon for news; what waits for a snapshot, at once.
    pub(crate) fn hurry(&mut self) {
        let (span, every) = (self.settings.lease, self.settings.keep_every);
        let State::Leading(lease, leader) = &mut self.state else { return };
        if leader.reserved.is_wanted() {
            let is_asked = lease.renewals.iter().any(|renewal| renewal.snapshot.is_some());
            lease.beat_at = lease.beat_at.min(if is_asked { self.now + SOON } else { self.now });
        }
        if leader.changes.is_joined || leader.has_news && every > Span::ZERO {
            lease.next_at = lease.next_at.min(lease.early_at);
        }
        if leader.has_news {
            // A beat leaves even if its state may not be stored yet: a beat finds out who is gone.
            let soon = if every > Span::ZERO { lease.said_at + part(span, 3 * HURRY) } else { lease.soon_at };
            lease.beat_at = lease.beat_at.min(soon.max(self.now + SOON));
        }
    }

    /// To the process that decides: here, if it is this one.
    pub(crate) fn deliver(&mut self, said: Said) {
        let (now, id) = (self.now, self.id);
        let head = Head { epoch: self.member.epoch, session: self.member.session, ..Head::default() };
        match (&mut self.state, &mut self.alone) {
            (State::Leading(_, leader), _) => leader.hear(now, id, &head, said),
            (State::Collecting(_, collecting), _) => match said {
                Said::Open(open) => {
                    collecting.hear(now, id, &head, *open);
                }
                Said::Batch { number, acts } => collecting.batch(id, head.session, number, acts),
                _ => {}
            },
            (_, Some(alone)) => alone.hear(now, id, &head, said),
            _ => self.say_to_leader(said),
        }
    }

    pub(crate) fn say_to_leader(&mut self, said: Said) {
        let (epoch, session) = (self.member.epoch, self.member.session);
        let echo = self.member.clock.echo(self.now);
        self.say(Head { epoch, session, stamp: 0, echo }, said, Effect::ToLeader);
    }

    pub(crate) fn say_to(&mut self, to: MemberId, head: Head, reply: Reply) {
        let epoch = head.epoch;
        self.say(head, Said::Reply(reply), |bytes| Effect::ToMember { epoch, to, bytes });
    }

    pub(crate) fn say_to_all(&mut self, epoch: u64, said: Said) {
        self.say(Head { epoch, ..Head::default() }, said, |bytes| Effect::ToAll { epoch, bytes });
    }

    /// In one frame, or where that is too long in parts.
    fn say(&mut self, head: Head, said: Said, effect: impl Fn(Vec<u8>) -> Effect) {
        let (from, head) = (self.id, Head { stamp: self.now.micros(), ..head });
        let bytes = frame::encode(&Frame { from, head, said });
        if bytes.len() <= MOST_PART {
            return self.out.push_back(effect(bytes));
        }
        self.way.cut += 1;
        for part in cut(self.way.cut, &bytes) {
            let bytes = frame::encode(&Frame { from, head, said: Said::Part(part) });
            self.out.push_back(effect(bytes));
        }
    }

    /// Hands the lease over, or says goodbye.
    pub(crate) fn leave(&mut self) {
        if matches!(self.state, State::New) {
            self.state = State::Closed;
        }
        if matches!(self.state, State::Closed) {
            return;
        }
        self.member.say_all(self.now);
        self.flush();
        match core::mem::replace(&mut self.state, State::Closed) {
            State::Leading(lease, mut leader) => {
                let number = lease.snapshots + 1;
                // Its own requests come back.
                leader.lose(self.now, self.id);
                let bytes = leader.whole(self.now, number);
                let mut beat = leader.beat(self.options.1);
                (beat.resigns, beat.memory) = (true, Some(bytes.clone()));
                self.say_to_all(lease.epoch, Said::Beat(beat));
                self.release(lease.epoch, Some(bytes));
            }
            State::Collecting(lease, _) => self.release(lease.epoch, None),
            _ if self.member.epoch > 0 => self.say_to_leader(Said::Bye),
            _ => {}
        }
        self.alone = None;
    }
}
