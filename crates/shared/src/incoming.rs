//! Frames that come in: from the leader, from members, from this process itself. A frame that no process of
//! this version sends is dropped and counted.

use std::sync::Arc;

use autothrottle::{Span, Value};

use crate::{
    api::{Effect, MemberId, Warning},
    clock::PeerClock,
    codec::{hash, plain},
    frame::{Addressed, Frame, Head, Read, Reply, Said, decode, reply},
    group::SOON,
    machine::{Shared, State, Unheard},
    member::Kept,
    split::split_of,
    status::differences,
    stored,
};

/// An epoch farther ahead than this is refused.
const FARTHEST_EPOCH: u64 = 1 << 32;
/// The same warning comes once in this long.
const SELDOM: Span = Span::from_micros(60_000_000);

impl Shared {
    /// A frame from another process, or from this one.
    pub(crate) fn receive(&mut self, bytes: &[u8]) {
        let Some(Frame { from, head, said }) = self.read(bytes) else { return };
        let Said::Part(part) = said else { return self.take(from, &head, said) };
        self.heard_part(from, &head);
        if let Some(bytes) = self.way.parts.take(from, part)
            && let Some(whole) = self.read(&bytes)
        {
            if whole.from != from || matches!(whole.said, Said::Part(_)) {
                return self.is_bad();
            }
            self.take(from, &whole.head, whole.said);
        }
    }

    /// A frame of this version that makes sense.
    fn read(&mut self, bytes: &[u8]) -> Option<Frame> {
        let frame = match decode(bytes) {
            Read::Frame(frame) => frame,
            Read::Foreign(_, theirs) => {
                self.way.others = Some((self.now, Unheard::Foreign(theirs)));
                if self.is_seldom(1) {
                    self.warn(Warning::Version { theirs });
                }
                return None;
            }
            Read::Bad => {
                self.is_bad();
                return None;
            }
        };
        let known = self.lease().map_or(0, |lease| lease.epoch).max(self.member.epoch);
        if frame.head.epoch > known.saturating_add(FARTHEST_EPOCH) {
            self.is_bad();
            return None;
        }
        Some(frame)
    }

    /// A frame that is whole.
    fn take(&mut self, from: MemberId, head: &Head, said: Said) {
        if from == self.id {
            self.heard_itself(head, &said);
        } else if let Said::Replies(replies) = said {
            let ours = replies.into_iter().find(|one| one.to == self.id);
            if let Some(Addressed { session, echo, reply, .. }) = ours {
                self.hear_leader(from, &Head { session, echo, ..*head }, Said::Reply(reply));
            }
        } else if matches!(said, Said::Beat(_) | Said::Reply(_) | Said::Tell { .. }) {
            self.hear_leader(from, head, said);
        } else {
            self.hear_member(from, head, said);
        }
    }

    /// A process that says something long is there.
    fn heard_part(&mut self, from: MemberId, head: &Head) {
        let now = self.now;
        if self.way.leader == Some(from) && head.epoch == self.member.epoch {
            self.way.heard_at = self.way.heard_at.max(now);
        }
        if let State::Leading(_, leader) = &mut self.state
            && let Some(peer) = leader.peers.get_mut(&from)
        {
            peer.heard_at = peer.heard_at.max(now);
        }
    }

    pub(crate) fn is_seldom(&mut self, what: usize) -> bool {
        let now = self.now;
        let Some(told) = self.way.warned_at.get_mut(what) else { return false };
        let is_due = told.is_none_or(|at| now.since(at) >= SELDOM);
        if is_due {
            *told = Some(now);
        }
        is_due
    }

    pub(crate) fn is_bad(&mut self) {
        self.way.bad += 1;
        if self.is_seldom(0) {
            self.warn(Warning::BadMessage { count: self.way.bad });
        }
    }

    pub(crate) fn heard_itself(&mut self, head: &Head, said: &Said) {
        let now = self.now;
        let Some(lease) = self.lease() else { return };
        let place = usize::from(matches!(said, Said::Probe));
        if lease.epoch == head.epoch
            && matches!(said, Said::Probe | Said::Beat(_))
            && let Some(looped) = lease.looped.get_mut(place)
        {
            *looped = (*looped).max(now);
        }
    }

    /// A leader hears members.
    pub(crate) fn hear_member(&mut self, from: MemberId, head: &Head, said: Said) {
        let now = self.now;
        let Some(lease) = self.lease() else { return };
        let epoch = lease.epoch;
        if head.epoch > epoch {
            // It obeys a later leader.
            self.doubts();
            return self.step_down();
        }
        let is_ours = head.epoch == epoch;
        match &mut self.state {
            State::Collecting(_, collecting) => match said {
                Said::Open(open) if is_ours => {
                    let is_newer = collecting.hear(now, from, head, *open);
                    if is_newer {
                        let reply = Reply { flags: reply::WANTS, ..Reply::default() };
                        self.say_to(from, Head { epoch, session: head.session, ..Head::default() }, reply);
                    }
                }
                Said::Batch { number, acts } if is_ours => {
                    collecting.batch(from, head.session, number, acts);
                }
                Said::Lend { memory, age } => {
                    collecting.lent(Kept::new(memory, now - age));
                }
                Said::Bye => collecting.lose(from),
                Said::Ping if !collecting.stories.contains_key(&from) => self.greet(from, head),
                _ => {}
            },
            State::Leading(_, leader) => {
                let is_known = leader.peers.get(&from).is_some_and(|peer| peer.session == head.session);
                if !is_ours || matches!(said, Said::Ping) && !is_known {
                    return self.greet(from, head);
                }
                let is_ping = matches!(said, Said::Ping);
                let is_story = matches!(said, Said::Open(_));
                leader.hear(now, from, head, said);
                if is_story && !leader.peers.contains_key(&from) {
                    let reply = Reply { flags: reply::FULL, ..Reply::default() };
                    return self.say_to(
                        from,
                        Head { epoch, session: head.session, ..Head::default() },
                        reply,
                    );
                }
                if is_ping && let Some((to, head, reply)) = leader.reply(now, from, true) {
                    self.say_to(to, head, reply);
                }
            }
            _ => {}
        }
    }

    /// A member that is not known is to tell its story.
    pub(crate) fn greet(&mut self, to: MemberId, heard: &Head) {
        let Some(lease) = self.lease() else { return };
        let epoch = lease.epoch;
        let echo = Some((heard.stamp, 0));
        self.say_to(to, Head { epoch, session: 0, stamp: 0, echo }, Reply::default());
    }

    /// Members hear who leads.
    pub(crate) fn hear_leader(&mut self, from: MemberId, head: &Head, said: Said) {
        if head.epoch < self.member.epoch || head.epoch == 0 {
            return;
        }
        if self.lease().is_some() {
            if self.lease().is_some_and(|lease| lease.epoch >= head.epoch) {
                return;
            }
            self.doubts();
            self.step_down();
        }
        self.way.heard_at = self.way.heard_at.max(self.now);
        self.way.leader = Some(from);
        self.way.gone = self.way.gone.filter(|&gone| gone != from);
        self.way.compete_at = None;
        self.connected();
        if head.epoch > self.member.epoch {
            self.member.enter(head.epoch);
            self.member.clock = PeerClock::default();
            self.way.replied_at = self.now;
        }
        self.member.clock.heard(self.now, head);
        match said {
            Said::Beat(beat) => {
                if let Some(bytes) = beat.memory {
                    self.remember(bytes);
                }
                if let Some(seen) = beat.seen {
                    self.sees(seen);
                }
                self.note_options(beat.options, Some((beat.agree, beat.members)));
                if beat.resigns {
                    self.way.gone = Some(from);
                    self.compete_within(SOON);
                }
            }
            Said::Reply(reply) => {
                self.way.replied_at = self.way.replied_at.max(self.now);
                if reply.has(reply::WANTS) {
                    if let Some(kept) = self.member.memory.clone() {
                        let memory = kept.bytes.to_vec();
                        self.say_to_leader(Said::Lend { memory, age: self.now.since(kept.at) });
                    }
                } else {
                    self.replied(head, reply, false);
                }
            }
            Said::Tell { now, notices, of, latency } => self.told(now.0, notices.0, of, latency.0),
            _ => {}
        }
        self.moved();
    }

    /// A piece of a leader's snapshot, of a beat or stored. A change since one that is not here is not taken
    /// in: the next whole is.
    pub(crate) fn remember(&mut self, bytes: Vec<u8>) {
        let (now, known) = (self.now, &mut self.member.memory);
        match (stored::number(&bytes), known) {
            (Some((Some(after), number)), Some(kept)) if kept.number == (number.0, after) => {
                Arc::make_mut(&mut kept.bytes).extend(bytes);
                (kept.number, kept.at) = (number, now);
            }
            (Some((None, number)), known) if known.as_ref().is_none_or(|known| known.number < number) => {
                *known = Some(Kept { bytes: Arc::new(bytes), number, at: now });
            }
            _ => {}
        }
    }

    /// Statistics, all or some.
    fn sees(&mut self, bytes: Vec<u8>) {
        match &mut self.member.seen {
            Some((pieces, at)) if stored::is_change(&bytes) => {
                pieces.push(bytes);
                *at = self.now;
            }
            _ if stored::is_change(&bytes) => {}
            seen => *seen = Some((vec![bytes], self.now)),
        }
    }

    pub(crate) fn replied(&mut self, head: &Head, reply: Reply, is_local: bool) {
        if reply.has(reply::LOST) && !is_local && self.is_seldom(4) {
            self.warn(Warning::StateLost);
        }
        if reply.has(reply::FULL) {
            if self.is_seldom(2) {
                self.warn(Warning::GroupFull { here: true });
            }
            return;
        }
        let mut gone = Vec::new();
        let lease = self.lease_span();
        self.member.on_reply(self.now, lease, head, reply, is_local, &mut gone);
        self.out.extend(gone.into_iter().map(|(ticket, why)| Effect::Fail { ticket, why }));
    }

    /// The engine noticed something. Notices of an answer go to the answer's own process, changes to all, and
    /// a setting without effect to the process that found it.
    pub(crate) fn told(&mut self, then: f64, notices: Value, of: Option<MemberId>, latency: f64) {
        let Value::List(notices) = notices else { return };
        let now = self.now.millis();
        let decides = self.lease().is_some() || self.alone.is_some();
        for notice in notices {
            let split = split_of(&notice);
            let Value::Map(mut entries) = notice else { continue };
            let is_answer = entries.iter().any(|(key, value)| key == "kind" && *value == "answer".into());
            let is_ours = of.is_none_or(|id| id == self.id);
            if is_answer && !(self.member.watch == 2 && is_ours) {
                continue;
            }
            let is_known = entries.iter().any(|(key, value)| match value {
                Value::Text(path) if key == "path" => !self.way.found.add(path.clone(), ()) || !decides,
                _ => false,
            });
            if is_known || split.is_some_and(|scope| !self.way.split.add(scope)) {
                continue;
            }
            for (key, value) in &mut entries {
                if key == "holdUntil"
                    && let Value::Number(at) = value
                {
                    *at += now - then;
                }
            }
            if is_answer && !latency.is_nan() {
                entries.push(("latencyMs".into(), latency.into()));
            }
            self.out.push_back(Effect::Notice(Value::Map(entries)));
        }
    }

    /// Which options count.
    pub(crate) fn note_options(&mut self, counted: u64, agree: Option<(u32, u32)>) {
        self.way.counted_options = counted;
        if counted == self.options.1 {
            self.way.told_options = 0;
        }
        if counted == self.options.1 || self.way.told_options == counted {
            return;
        }
        let theirs = match &self.state {
            State::Leading(_, leader) => Some(leader.options.0.clone()),
            _ => {
                self.member.memory.as_ref().and_then(|kept| stored::memory(&kept.bytes)).map(|it| it.options)
            }
        };
        let Some(theirs) = theirs.filter(|bytes| hash(bytes) == counted) else { return };
        self.way.told_options = counted;
        let values = [&theirs, &self.options.0].map(|bytes| plain(bytes).unwrap_or(Value::Nothing));
        let mut differ = Vec::new();
        differences("", &values[0], &values[1], &mut differ);
        let agree = agree.unwrap_or((0, self.member.rank.map_or(1, |rank| rank.1)));
        self.warn(Warning::Options { differ, agree });
    }
}
