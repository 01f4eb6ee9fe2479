//! This process among those that share a limit: who leads, what was heard, what becomes of silence.
//!
//! 1. Nothing happens before the first request. Then it competes: somebody leads, or this process does.
//! 2. A leader makes its lease last, and says so in a beat, three times a lease. A process that hears none
//!    for a lease competes.
//! 3. Whoever hears nobody for long is offline: `Settings::offline` says what happens then.
//!
//! The traps are clocks and connections. Only spans of this process's own clock are compared, and what it
//! missed while it stood still is not counted as silence. A connection that is open and carries nothing is
//! found out: a leader hears its own beats, a member the answers to its pings.

use std::{collections::VecDeque, sync::Arc};

use autothrottle::{Span, Value};

use crate::{
    api::{Cause, Effect, Input, MemberId, Offline, Op, Refusal, Warning},
    codec::plain,
    collect::Collecting,
    frame::{self, Frame, Head, Read, Reply, Said, decode, memory_number},
    leader::{Beginning, Leader, Story},
    machine::{Lease, Renewal, Shared, State},
    member::Kept,
};

/// Not more bytes of snapshots a second than this, on average; ten times that where there is news.
const BYTES_A_SECOND: u64 = 65_536;
const HURRY: u64 = 10;
/// So soon what is new is said.
const SOON: Span = Span::from_micros(20_000);
/// Questions about the lease that have no answer, at most.
const MOST_RENEWALS: usize = 64;
/// An epoch that is so much farther is a lie.
const FARTHEST_EPOCH: u64 = 1 << 32;
/// The same warning is told once in so long.
const SELDOM: Span = Span::from_micros(60_000_000);

fn part(span: Span, of: u64) -> Span {
    Span::from_micros(span.micros() / of)
}

impl Shared {
    fn lease_span(&self) -> Span {
        self.settings.lease
    }

    fn op(&mut self) -> Op {
        self.ops += 1;
        self.ops
    }

    /// A random part of a span.
    fn chance(&mut self, most: Span) -> Span {
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
    fn lease(&mut self) -> Option<&mut Lease> {
        match &mut self.state {
            State::Collecting(lease, _) | State::Leading(lease, _) => Some(lease),
            _ => None,
        }
    }

    /// Whether the lease is over.
    fn is_over(&mut self) -> bool {
        let now = self.now;
        self.lease().is_some_and(|lease| now >= lease.until)
    }

    pub(crate) fn hear(&mut self, input: Input<'_>) {
        if matches!(self.state, State::Closed) {
            // It was won after all: nobody is to wait for a process that left.
            if let Input::Elected { epoch, .. } = input {
                self.release(epoch, None);
            }
            return;
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
                    self.step_down();
                }
            }
            Input::Unheard { to, epoch } => {
                if let State::Leading(lease, leader) = &mut self.state
                    && lease.epoch == epoch
                    && to != self.id
                {
                    leader.set_aside(self.now, to, true);
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
    fn pass(&mut self) {
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
    fn tick(&mut self) {
        let lease = self.lease_span();
        let due = self.way.tick_at.unwrap_or(self.now);
        self.slept(self.now.since(due));
        let mut next = part(lease, 3);
        if self.lease().is_some() {
            self.check_loop();
        } else {
            let silent = self.now.since(self.way.heard_at);
            if silent >= self.settings.patience {
                self.go_offline();
            }
            if silent < lease {
                if self.member.epoch > 0 && self.alone.is_none() {
                    self.say_to_leader(Said::Ping);
                }
                next = next.min(lease - silent);
                if self.now.since(self.way.replied_at) >= lease && self.member.epoch > 0 {
                    self.reconnect();
                    self.member.open();
                }
            } else {
                self.compete_within(part(lease, 10));
                next = part(lease, 10);
                if self.way.was_refused {
                    self.reconnect();
                }
            }
        }
        self.way.tick_at = Some(self.now + next.max(Span::from_micros(1000)));
    }

    /// This process stood still: what it did not hear meanwhile is no silence, and what it measured says
    /// nothing.
    fn slept(&mut self, span: Span) {
        let lease = self.lease_span();
        if span < part(lease, 6) {
            return;
        }
        let is_long = span > part(lease, 3);
        if is_long {
            self.member.clock.forget();
        }
        self.way.heard_at = self.way.heard_at + span;
        self.way.replied_at = self.way.replied_at + span;
        if let Some(lease) = self.lease() {
            lease.looped = lease.looped.map(|at| at + span);
        }
        if let State::Leading(_, leader) = &mut self.state {
            leader.slept(span, is_long);
        }
    }

    /// Once in a lease at most.
    fn reconnect(&mut self) {
        let lease = self.lease_span();
        if self.way.reconnected_at.is_none_or(|at| self.now.since(at) >= lease) {
            self.way.reconnected_at = Some(self.now);
            self.member.clock.forget();
            self.out.push_back(Effect::Reconnect);
            self.warn(Warning::Deaf);
        }
    }

    /// Whether what this process says comes back to it.
    fn check_loop(&mut self) {
        let (now, span) = (self.now, self.lease_span());
        let Some(lease) = self.lease() else { return };
        let epoch = lease.epoch;
        let silent = lease.looped.map(|at| now.since(at));
        let silent = silent[0].max(silent[1]);
        if silent.micros() >= 2 * span.micros() {
            // Somebody else may hear more.
            self.release(epoch, None);
            self.way.deaf_until = Some(now + span + span);
            self.step_down();
        } else if silent >= span {
            self.reconnect();
        }
    }

    fn compete_within(&mut self, most: Span) {
        if self.way.compete_at.is_none() && self.lease().is_none() {
            self.way.compete_at = Some(self.now + self.chance(most));
        }
    }

    fn compete(&mut self) {
        let is_deaf = self.way.deaf_until.is_some_and(|until| until > self.now);
        let late = part(self.lease_span(), 1);
        let is_asked = self.way.competing.is_some_and(|(_, at)| self.now.since(at) < late + late);
        if is_deaf || is_asked || self.lease().is_some() {
            return;
        }
        let op = self.op();
        self.way.competing = Some((op, self.now));
        self.out.push_back(Effect::Compete { op, above: self.member.epoch });
    }

    fn release(&mut self, epoch: u64, store: Option<Vec<u8>>) {
        let op = self.op();
        self.out.push_back(Effect::Release { op, epoch, store });
    }

    fn elected(&mut self, op: Op, epoch: u64, stored: Option<(&[u8], Span)>, first: bool) {
        let asked = match self.way.competing {
            Some((asked_op, at)) if asked_op == op => at,
            // Too late: nobody is to wait for it.
            _ => return self.release(epoch, None),
        };
        self.way.competing = None;
        if self.lease().is_some() || epoch <= self.member.epoch {
            return self.release(epoch, None);
        }
        self.answered();
        let known = stored.and_then(|(bytes, age)| {
            let number = memory_number(bytes).unwrap_or((0, 0));
            Some(Kept { bytes: bytes.into(), number, at: self.now - age })
        });
        let known: Vec<Kept> = known.into_iter().chain(self.member.memory.clone()).collect();
        let is_first = first && self.member.epoch == 0 && known.is_empty();
        let span = self.lease_span();
        let who = (self.id, self.way.leader, self.way.gone);
        let collecting = Collecting::new(self.now, (epoch, span), known, who);
        let lease = Lease {
            epoch,
            until: asked + span,
            beat_at: self.now + part(span, 3),
            renewals: VecDeque::new(),
            snapshots: 0,
            taken_at: self.now,
            next_at: self.now,
            looped: [self.now; 2],
        };
        self.state = State::Collecting(lease, Box::new(collecting));
        self.connected();
        self.member.enter(epoch);
        self.member.clock = Default::default();
        // Said first: to read a snapshot of many scopes takes a while, and meanwhile the others tell.
        self.beat();
        if is_first {
            self.decide();
        }
        self.moved();
    }

    /// It listened long enough: from now on it decides.
    pub(crate) fn decide(&mut self) {
        let State::Collecting(lease, collecting) = core::mem::replace(&mut self.state, State::Member) else {
            return;
        };
        let (newest, wrong) = collecting.memory(self.now);
        let mut is_wrong = wrong > 0;
        let who = (self.id, lease.epoch, self.lease_span());
        let learned = if newest.is_none() { self.settings.snapshot.clone() } else { None };
        let aside = newest.as_ref().map_or(Vec::new(), |(memory, _)| memory.aside.clone());
        let (memory, age) = newest.map_or((None, Span::ZERO), |(memory, age)| (Some(memory), age));
        let beginning = Beginning { memory, age, gone: self.way.gone, share: None, learned };
        let leader = Leader::new(self.now, who, &self.options.0, beginning).or_else(|_| {
            is_wrong = true;
            Leader::new(self.now, who, &self.options.0, Beginning::default())
        });
        if is_wrong {
            self.warn(Warning::Unreadable);
        }
        // Its own options are known to be right.
        let Ok(mut leader) = leader else { return };
        if self.settings.prompt {
            for &id in collecting.missing.iter().flatten() {
                leader.lose(self.now, id);
            }
        }
        let Collecting { stories, batches, .. } = *collecting;
        let stories: Vec<Story> = stories.into_values().collect();
        leader.take(self.now, stories);
        leader.spend(self.now, &aside);
        for (from, session, number, acts) in batches {
            leader.batch(self.now, from, session, number, acts);
        }
        leader.has_news = true;
        self.note_options(leader.options.1, None);
        self.state = State::Leading(lease, Box::new(leader));
        self.is_dirty = true;
    }

    fn refused(&mut self, op: Op) {
        if self.take_renewal(op).is_some() {
            return self.step_down();
        }
        if self.way.competing.is_none_or(|(asked, _)| asked != op) {
            return;
        }
        self.way.competing = None;
        self.answered();
        self.way.was_refused = true;
        // Whoever leads is to say so at once: a new process need not wait for the next beat.
        if self.member.epoch == 0 {
            self.say_to_leader(Said::Ping);
        }
    }

    /// The transport answers.
    fn answered(&mut self) {
        self.way.denied = None;
        self.way.was_refused = false;
    }

    fn take_renewal(&mut self, op: Op) -> Option<Renewal> {
        let lease = self.lease()?;
        let place = lease.renewals.iter().position(|renewal| renewal.op == op)?;
        lease.renewals.remove(place)
    }

    fn renewed(&mut self, op: Op) {
        let Some(renewal) = self.take_renewal(op) else { return };
        let (now, span) = (self.now, self.lease_span());
        if let Some(lease) = self.lease() {
            lease.until = lease.until.max(renewal.asked + span);
        }
        if let (State::Leading(_, leader), Some((number, applied))) = (&mut self.state, renewal.snapshot) {
            leader.is_stored(now, number, applied);
        }
    }

    fn failed(&mut self, op: Op, cause: Cause<'_>) {
        let is_ours = self.way.competing.is_some_and(|(asked, _)| asked == op);
        if is_ours {
            self.way.competing = None;
        }
        if !is_ours && self.take_renewal(op).is_none() {
            return;
        }
        // What was measured meanwhile is of a broken way.
        self.member.clock.forget();
        self.way.cause = match cause {
            Cause::Timeout => "no answer came in time".into(),
            Cause::Broken(why) | Cause::Denied(why) => why.into(),
        };
        if let Cause::Denied(why) = cause {
            // It will not heal by itself, so nothing waits for that.
            self.way.denied = Some(why.into());
            self.fail_all(&Refusal::Denied(why.into()));
        }
    }

    fn fail_all(&mut self, why: &Refusal) {
        for ticket in self.member.everybody() {
            self.member.cancel(ticket);
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
        self.member.open();
        self.compete_within(part(self.lease_span(), 10));
    }

    /// A frame from another process, or from this one.
    fn receive(&mut self, bytes: &[u8]) {
        let frame = match decode(bytes) {
            Read::Frame(frame) => frame,
            Read::Foreign(_, theirs) => {
                if self.is_seldom(1) {
                    self.warn(Warning::Version { theirs });
                }
                return;
            }
            Read::Bad => return self.is_bad(),
        };
        let known = self.lease().map_or(0, |lease| lease.epoch).max(self.member.epoch);
        if frame.head.epoch > known.saturating_add(FARTHEST_EPOCH) {
            return self.is_bad();
        }
        let Frame { from, head, said } = frame;
        if from == self.id {
            self.heard_itself(&head, &said);
        } else if matches!(said, Said::Beat(_) | Said::Reply(_) | Said::Tell { .. }) {
            self.hear_leader(from, &head, said);
        } else {
            self.hear_member(from, &head, said);
        }
    }

    fn is_seldom(&mut self, what: usize) -> bool {
        let now = self.now;
        let Some(told) = self.way.warned_at.get_mut(what) else { return false };
        let is_due = told.is_none_or(|at| now.since(at) >= SELDOM);
        if is_due {
            *told = Some(now);
        }
        is_due
    }

    fn is_bad(&mut self) {
        self.way.bad += 1;
        if self.is_seldom(0) {
            self.warn(Warning::Bad { count: self.way.bad });
        }
    }

    fn heard_itself(&mut self, head: &Head, said: &Said) {
        let now = self.now;
        let Some(lease) = self.lease() else { return };
        let place = usize::from(*said == Said::Probe);
        if lease.epoch == head.epoch
            && matches!(said, Said::Probe | Said::Beat(_))
            && let Some(looped) = lease.looped.get_mut(place)
        {
            *looped = (*looped).max(now);
        }
    }

    /// Who leads hears members.
    fn hear_member(&mut self, from: MemberId, head: &Head, said: Said) {
        let now = self.now;
        let Some(lease) = self.lease() else { return };
        let epoch = lease.epoch;
        if head.epoch > epoch {
            // It obeys a later leader.
            return self.step_down();
        }
        let is_ours = head.epoch == epoch;
        match &mut self.state {
            State::Collecting(_, collecting) => match said {
                Said::Open(open) if is_ours => {
                    if collecting.hear(now, from, head, *open) {
                        let reply = Reply { wants: true, ..Reply::default() };
                        self.say_to(from, Head { epoch, session: head.session, ..Head::default() }, reply);
                    }
                }
                Said::Batch { number, acts } if is_ours => {
                    collecting.batch(from, head.session, number, acts);
                }
                Said::Lend { memory, age } => {
                    let number = memory_number(&memory).unwrap_or((0, 0));
                    collecting.lent(Kept { bytes: memory.into(), number, at: now - age });
                }
                Said::Bye => collecting.lose(from),
                Said::Ping if !collecting.stories.contains_key(&from) => self.greet(from, head),
                _ => {}
            },
            State::Leading(_, leader) => {
                let is_known = leader.peers.get(&from).is_some_and(|peer| peer.session == head.session);
                if !is_ours || said == Said::Ping && !is_known {
                    return self.greet(from, head);
                }
                let is_ping = said == Said::Ping;
                leader.hear(now, from, head, said);
                if is_ping && let Some((to, head, reply)) = leader.reply(now, from, true) {
                    self.say_to(to, head, reply);
                }
            }
            _ => {}
        }
    }

    /// A member that is not known is to tell its story.
    fn greet(&mut self, to: MemberId, heard: &Head) {
        let Some(lease) = self.lease() else { return };
        let epoch = lease.epoch;
        let echo = Some((heard.stamp, 0));
        self.say_to(to, Head { epoch, session: 0, stamp: 0, echo }, Reply::default());
    }

    /// Members hear who leads.
    fn hear_leader(&mut self, from: MemberId, head: &Head, said: Said) {
        if head.epoch < self.member.epoch || head.epoch == 0 {
            return;
        }
        if self.lease().is_some() {
            if self.lease().is_some_and(|lease| lease.epoch >= head.epoch) {
                return;
            }
            self.step_down();
        }
        self.way.heard_at = self.way.heard_at.max(self.now);
        self.way.leader = Some(from);
        self.way.compete_at = None;
        self.connected();
        if head.epoch > self.member.epoch {
            self.member.enter(head.epoch);
            self.member.clock = Default::default();
            self.way.replied_at = self.now;
        }
        self.member.clock.heard(self.now, head);
        match said {
            Said::Beat(beat) => {
                if let Some(bytes) = beat.memory
                    && let Some(number) = memory_number(&bytes)
                {
                    self.remember(bytes.into(), number);
                }
                if let Some(seen) = beat.seen {
                    self.member.seen = Some((seen.into(), self.now));
                }
                self.note_options(beat.options, Some((beat.agree, beat.members)));
                if beat.resigns {
                    self.way.gone = Some(from);
                    self.compete_within(SOON);
                }
            }
            Said::Reply(reply) => {
                self.way.replied_at = self.way.replied_at.max(self.now);
                if reply.wants {
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

    /// What was heard of the leader's snapshot.
    fn remember(&mut self, bytes: Arc<[u8]>, number: (u64, u32)) {
        if self.member.memory.as_ref().is_none_or(|kept| kept.number < number) {
            self.member.memory = Some(Kept { bytes, number, at: self.now });
        }
    }

    pub(crate) fn replied(&mut self, head: &Head, reply: Reply, is_local: bool) {
        let mut gone = Vec::new();
        let lease = self.lease_span();
        self.member.on_reply(self.now, lease, head, reply, is_local, &mut gone);
        self.out.extend(gone.into_iter().map(|(ticket, why)| Effect::Fail { ticket, why }));
    }

    /// What the engine noticed. Of an answer only its own process hears; of what changed, all.
    pub(crate) fn told(&mut self, then: f64, notices: Value, of: Option<MemberId>, latency: f64) {
        let Value::List(notices) = notices else { return };
        let now = self.now.millis();
        for notice in notices {
            let Value::Map(mut entries) = notice else { continue };
            let is_answer = entries.iter().any(|(key, value)| key == "kind" && *value == "answer".into());
            let is_ours = of.is_none_or(|id| id == self.id);
            if is_answer && !(self.member.watch == 2 && is_ours) {
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
    fn note_options(&mut self, counted: u64, agree: Option<(u32, u32)>) {
        self.way.counted_options = counted;
        if counted == self.options.1 {
            self.way.told_options = 0;
        }
        if counted == self.options.1 || self.way.told_options == counted {
            return;
        }
        let theirs = match &self.state {
            State::Leading(_, leader) => Some(leader.options.0.clone()),
            _ => self.member.memory.as_ref().and_then(|kept| frame::memory(&kept.bytes)).map(|it| it.options),
        };
        let Some(theirs) = theirs.filter(|bytes| crate::codec::hash(bytes) == counted) else { return };
        self.way.told_options = counted;
        let values = [&theirs, &self.options.0].map(|bytes| plain(bytes).unwrap_or(Value::Nothing));
        let mut differ = Vec::new();
        crate::shown::differences("", &values[0], &values[1], &mut differ);
        let agree = agree.unwrap_or((0, self.member.rank.map_or(1, |rank| rank.1)));
        self.warn(Warning::Options { differ, agree });
    }

    /// Somebody leads.
    fn connected(&mut self) {
        self.way.was_refused = false;
        self.way.gone = self.way.gone.filter(|&gone| Some(gone) != self.way.leader);
        if self.way.offline_since.take().is_none() {
            return;
        }
        self.warn(Warning::Online);
        self.member.is_alone = false;
        if self.alone.take().is_some() {
            self.member.open();
        }
    }

    fn go_offline(&mut self) {
        if self.way.offline_since.is_some() {
            return;
        }
        self.way.offline_since = Some(self.now);
        if self.way.cause.is_empty() {
            self.way.cause = "nobody who decides can be heard".into();
        }
        let share = self.member.rank.map(|(rank, of)| (of.max(1), rank));
        let share = share.or(self.settings.members.map(|of| (of.max(1), u32::MAX)));
        let does = match (self.settings.offline, share) {
            (Some(Offline::Fail), _) => Offline::Fail,
            (Some(Offline::Wait), _) | (_, None) => Offline::Wait,
            (Some(Offline::Divide) | None, Some(_)) => Offline::Divide,
        };
        let why = self.way.cause.clone();
        self.warn(Warning::Offline { does, members: share.map(|(of, _)| of), why: why.clone() });
        if does == Offline::Fail {
            self.fail_all(&Refusal::Offline(why));
        }
        if let (Offline::Divide, Some(share)) = (does, share) {
            self.go_alone(share);
        }
        self.moved();
    }

    fn go_alone(&mut self, share: (u32, u32)) {
        let kept = self.member.memory.clone();
        let memory = kept.as_ref().and_then(|kept| frame::memory(&kept.bytes));
        let age = kept.map_or(Span::ZERO, |kept| self.now.since(kept.at));
        let who = (self.id, self.member.epoch, self.lease_span());
        let beginning = Beginning { memory, age, share: Some(share), ..Beginning::default() };
        if let Ok(mut alone) = Leader::new(self.now, who, &self.options.0, beginning) {
            alone.skips_quotas = self.settings.offline.is_none();
            self.alone = Some(Box::new(alone));
            self.member.is_alone = true;
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

    /// Says that this process leads; now and then with its snapshot.
    pub(crate) fn beat(&mut self) {
        let (now, span, own) = (self.now, self.lease_span(), self.options.1);
        let (mut beat, mut snapshot, mut stored) = (frame::Beat::default(), None, None);
        if let State::Leading(lease, leader) = &mut self.state {
            leader.listen(now);
            leader.has_news = false;
            if let Some(options) = leader.agreed() {
                return self.switch(options);
            }
            beat = leader.beat(own);
            if now >= lease.next_at || leader.aside.is_wanted() {
                lease.snapshots += 1;
                let (bytes, applied) = leader.memory(now, lease.snapshots);
                beat.seen = leader.statistics(now);
                let size = bytes.len() + beat.seen.as_ref().map_or(0, Vec::len);
                let rest = Span::from_micros(size as u64 * 1_000_000 / BYTES_A_SECOND);
                lease.taken_at = now;
                lease.next_at = now + rest.max(part(span, 3));
                snapshot = Some((lease.snapshots, applied));
                stored = Some(bytes);
            }
        } else {
            beat.options = own;
        }
        let op = self.op();
        let Some(lease) = self.lease() else { return };
        lease.beat_at = now + part(span, 3);
        lease.renewals.push_back(Renewal { op, asked: now, snapshot });
        if lease.renewals.len() > MOST_RENEWALS {
            lease.renewals.pop_front();
        }
        let (epoch, number) = (lease.epoch, lease.snapshots);
        self.out.push_back(Effect::Renew { op, epoch, store: stored.clone() });
        if let Some(bytes) = &stored {
            self.remember(bytes.as_slice().into(), (epoch, number));
        }
        beat.memory = stored;
        self.say_to_all(epoch, Said::Beat(beat));
        self.say_to_leader(Said::Probe);
        self.moved();
    }

    /// Every member has the same other options: those count from now on.
    fn switch(&mut self, options: Vec<u8>) {
        let State::Leading(lease, leader) = &mut self.state else { return };
        lease.snapshots += 1;
        leader.options = (options, 0);
        let (epoch, number) = (lease.epoch, lease.snapshots);
        let (bytes, _) = leader.memory(self.now, number);
        let kept = Kept { bytes: bytes.into(), number: (epoch, number), at: self.now };
        let span = self.settings.lease;
        let who = (self.id, None, None);
        let collecting = Collecting::new(self.now, (epoch, span), vec![kept], who);
        let State::Leading(lease, _) = core::mem::replace(&mut self.state, State::Member) else { return };
        self.state = State::Collecting(lease, Box::new(collecting));
        self.member.open();
        self.beat();
    }

    /// What is asked and granted goes out.
    pub(crate) fn flush(&mut self) {
        if self.is_over() {
            self.step_down();
        }
        let now = self.now;
        loop {
            if let Some(said) = self.member.flush(now, &self.options.0) {
                self.deliver(said);
            }
            let (mut replies, mut tells) = (Vec::new(), Vec::new());
            let decider = match (&mut self.state, &mut self.alone) {
                (State::Leading(_, leader), _) => Some(leader),
                (_, alone) => alone.as_mut(),
            };
            if let Some(leader) = decider {
                leader.decide(now);
                replies = leader.replies(now);
                tells = core::mem::take(&mut leader.tells);
            }
            for (to, head, reply) in replies {
                if to == self.id {
                    self.replied(&head, reply, true);
                } else {
                    self.say_to(to, head, reply);
                }
            }
            for said in tells {
                if let Said::Tell { now, notices, of, latency } = &said {
                    self.told(now.0, notices.0.clone(), *of, latency.0);
                }
                if let Some(epoch) = self.lease().map(|lease| lease.epoch) {
                    self.say_to_all(epoch, said);
                }
            }
            if !self.member.has_news() {
                break;
            }
        }
        self.hurry();
    }

    /// What is new is said soon; what waits for a snapshot, at once.
    fn hurry(&mut self) {
        let State::Leading(lease, leader) = &mut self.state else { return };
        if leader.aside.is_wanted() {
            let is_asked = lease.renewals.iter().any(|renewal| renewal.snapshot.is_some());
            lease.beat_at = lease.beat_at.min(if is_asked { self.now + SOON } else { self.now });
        }
        if leader.has_news {
            let early = part(lease.next_at.since(lease.taken_at), HURRY);
            lease.next_at = lease.next_at.min(lease.taken_at + early);
            lease.beat_at = lease.beat_at.min(lease.next_at.max(self.now + SOON));
        }
    }

    /// To whoever decides: here, if it is this process.
    fn deliver(&mut self, said: Said) {
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

    fn say_to_leader(&mut self, said: Said) {
        let bytes =
            self.frame(self.member.epoch, self.member.session, self.member.clock.echo(self.now), said);
        self.out.push_back(Effect::ToLeader(bytes));
    }

    fn say_to(&mut self, to: MemberId, head: Head, reply: Reply) {
        let bytes = self.frame(head.epoch, head.session, head.echo, Said::Reply(reply));
        self.out.push_back(Effect::ToMember { epoch: head.epoch, to, bytes });
    }

    fn say_to_all(&mut self, epoch: u64, said: Said) {
        let bytes = self.frame(epoch, 0, None, said);
        self.out.push_back(Effect::ToAll { epoch, bytes });
    }

    fn frame(&self, epoch: u64, session: u32, echo: Option<(u64, u64)>, said: Said) -> Vec<u8> {
        let head = Head { epoch, session, stamp: self.now.micros(), echo };
        frame::encode(&Frame { from: self.id, head, said })
    }

    /// Hands the lease over, or says goodbye.
    pub(crate) fn leave(&mut self) {
        if matches!(self.state, State::New) {
            self.state = State::Closed;
        }
        if matches!(self.state, State::Closed) {
            return;
        }
        self.flush();
        match core::mem::replace(&mut self.state, State::Closed) {
            State::Leading(lease, mut leader) => {
                let number = lease.snapshots + 1;
                // What it had itself comes back.
                leader.lose(self.now, self.id);
                let (bytes, _) = leader.memory(self.now, number);
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
