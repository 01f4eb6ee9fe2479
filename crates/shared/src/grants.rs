//! Grants requests that may leave now, and passes the engine's notices on.

use autothrottle::{
    Instant, Span, Value,
    boundary::{IDLE, WAIT},
};

use crate::{
    api::MemberId,
    codec::{Number, Plain},
    frame::{Said, reply},
    leader::{Leader, cost_of},
    member::SOON,
    reservation::strict,
};

/// Scopes whose turn is remembered, at most.
const MOST_PHASES: usize = 10_000;
/// A request that only a rate keeps is granted that far ahead.
const AHEAD: Span = Span::from_micros(250_000);
/// There is more when what was granted lasts no longer than this.
const LEAST: Span = Span::from_micros(40_000);

impl Leader {
    /// Everybody who may leave now.
    pub fn decide(&mut self, now: Instant) {
        self.notice(now, None);
        self.lead();
        let engine_now = self.clock.now(now);
        self.release(engine_now);
        loop {
            let ticket = self.engine.poll(engine_now.millis());
            if ticket == WAIT {
                let wake = Instant::from_millis(self.engine.wake_at());
                let early = wake.and_then(|wake| self.ahead(engine_now, wake));
                if early == Some(engine_now) {
                    continue;
                }
                self.wake = early.or(wake);
                return;
            }
            if ticket == IDLE {
                self.wake = None;
                return;
            }
            let Some(&(from, id)) = self.by_ticket.get(&(ticket as u64)) else {
                self.engine.cancel(engine_now.millis(), ticket);
                continue;
            };
            self.grant(from, id, engine_now);
        }
    }

    /// Grants what is to leave in the next tenths of a second, where only a rate keeps it: one message then
    /// says what else were many. Not more than three of four that wait, so that a request that comes
    /// meanwhile finds some behind it. Gives when it wants to be asked again; `None` where it grants none
    /// ahead.
    fn ahead(&mut self, now: Instant, wake: Instant) -> Option<Instant> {
        while self.sent_ahead.front().is_some_and(|&at| at <= now) {
            self.sent_ahead.pop_front();
        }
        self.soon = Span::ZERO;
        let longest = Span::from_micros(AHEAD.micros() / 8);
        let has_others = self.share.is_none() && self.peers.len() > 1;
        let waiting = self.engine.may_send_ahead(longest).filter(|_| has_others)?;
        if now < self.refill_at && wake > self.refill_at {
            let sent = self.sent_ahead.len() as u64;
            let reach = self.sent_ahead.back().map_or(0, |last| last.since(now).micros());
            let all = reach * (sent + u64::from(waiting)) / sent.max(1);
            self.soon = Span::from_micros(all).min(SOON);
            return Some(self.refill_at);
        }
        let (mut waiting, mut last) = (waiting as usize, None);
        while self.sent_ahead.len() < 3 * waiting
            && self.engine.may_send_ahead(longest).is_some()
            && let Some((ticket, at)) = self.engine.send_ahead(now.millis(), (now + AHEAD).millis())
        {
            (waiting, last) = (waiting - 1, Some(at));
            self.sent_ahead.push_back(at);
            if let Some(&(from, id)) = self.by_ticket.get(&(ticket as u64)) {
                self.grant(from, id, at);
            } else {
                self.engine.cancel(now.millis(), ticket);
            }
        }
        self.is_refilled = last.is_some();
        let reach = last?.since(now).micros();
        self.refill_at = now + Span::from_micros((reach / 2).max(reach.saturating_sub(LEAST.micros())));
        Some(now)
    }

    pub(crate) fn grant(&mut self, from: MemberId, id: u64, at: Instant) {
        let Some(peer) = self.peers.get_mut(&from) else { return };
        let Some(held) = peer.requests.get_mut(&id) else { return };
        (held.is_flying, held.at) = (true, Some(at));
        self.take_and_grant(from, id, at, false);
    }

    /// Requests that waited for a snapshot that is stored may leave, and count from the instant that their
    /// reply names: a message of the same turn may move the lead. It is of what that snapshot set aside, as
    /// any other.
    fn release(&mut self, at: Instant) {
        while let Some((from, id, attempt)) = self.reserved.free() {
            let Some(held) = self.held(from, id, attempt) else { continue };
            let ticket = held.ticket as f64;
            if !self.take_and_grant(from, id, at, true) {
                return;
            }
            self.engine.sent_at(at.millis(), ticket);
            if let Some(held) = self.held(from, id, attempt) {
                held.at = Some(at);
            }
        }
    }

    /// Whether it may leave at once. Of a strict quota that is what a stored snapshot set aside; else it
    /// waits for the next.
    fn take_and_grant(&mut self, from: MemberId, id: u64, at: Instant, waited: bool) -> bool {
        let Some(peer) = self.peers.get_mut(&from) else { return false };
        let Some(held) = peer.requests.get(&id) else { return false };
        let (attempt, what) = (held.attempt, held.what.clone());
        let costs = what.names.iter().enumerate().map(|(place, name)| (&**name, cost_of(&what, place)));
        let strict = if self.share.is_some() {
            Some(false)
        } else {
            self.reserved.takes(&self.config, &self.settings, costs, waited)
        };
        if let Some(is_exact) = strict {
            peer.granted.push((id, attempt, at));
            peer.flags |= if is_exact { reply::EXACT } else { 0 };
            self.owed.add(from, ());
        } else {
            self.reserved.push(from, id, attempt, waited);
        }
        self.touch(&what);
        strict.is_some()
    }

    /// How long a request of these scopes waits whatever the limits say: where it is unknown what left of a
    /// strict quota, for its window; alone, for this process's turn among those that are.
    pub(crate) fn put_off(&mut self, now: Instant, from: MemberId, names: &[String]) -> Span {
        let mut until = now;
        for name in names {
            if let Some(since) = self.unknown
                && let Some((_, window)) = strict(&self.config, self.settings.get(name), name)
                && since + window > until
            {
                until = since + window;
                if let Some(peer) = self.peers.get_mut(&from) {
                    peer.flags |= reply::LOST;
                    self.owed.add(from, ());
                }
            }
            if let Some((of, rank)) = self.share {
                until = until.max(self.phase(now, name, of, rank));
            }
        }
        until.since(now)
    }

    /// When this process's turn begins in a scope. All go on alone at once: one gap after the other they
    /// send, and not all in the same instant.
    fn phase(&mut self, now: Instant, name: &str, of: u32, rank: u32) -> Instant {
        if let Some(&known) = self.phases.get(name) {
            return known;
        }
        let scope = self.engine.intern(name);
        let engine_now = self.now(now);
        let gap = self.engine.scope_stats_at(engine_now, scope).map_or(0.0, |stats| stats.delay_ms);
        let place = if rank < of { rank } else { u32::from(self.id.0[15]) % of };
        let at = now + Span::from_millis(gap * f64::from(place));
        if self.phases.len() >= MOST_PHASES {
            self.phases.clear();
        }
        self.phases.insert(name.into(), at);
        at
    }

    /// How far ahead grants are made: so far that nine of ten arrive in time everywhere, at most a fifth of
    /// the lease.
    pub(crate) fn lead(&mut self) {
        let most = self.lease.micros() / 5;
        let slowest = self.peers.values().filter_map(|peer| peer.clock.there_and_back()).max();
        let lead = slowest.map_or(0, |span| span.micros() * 3 / 4);
        self.clock.lead = Span::from_micros(lead.min(most));
    }

    /// When it will have something to grant, by this process's clock.
    pub fn wake_at(&self) -> Option<Instant> {
        self.wake.map(|wake| self.clock.when(wake))
    }

    /// A request waits for the time after what is granted now.
    pub fn is_awaited(&self) -> bool {
        self.wake.is_some()
    }

    /// It tells as much of answers as members listen to; and what is learned, for the next leader.
    pub(crate) fn watches(&mut self) {
        self.level = self.peers.values().map(|peer| peer.watch).max().unwrap_or(0).max(1);
        self.engine.watch(self.level);
    }

    pub(crate) fn notice(&mut self, now: Instant, of: Option<(MemberId, f64)>) {
        if !self.engine.has_notices() {
            return;
        }
        let notices = self.engine.take_notices();
        self.note_split(&notices);
        if let Value::List(notices) = &notices {
            let is = |notice: &Value, kinds: &[&str]| match notice {
                Value::Map(entries) => entries.iter().any(|(key, value)| {
                    key == "kind" && matches!(value, Value::Text(kind) if kinds.contains(&&**kind))
                }),
                _ => false,
            };
            self.has_news |= notices.iter().any(|notice| is(notice, &["hold", "backoff"]));
        }
        let now = Number(self.now(now));
        let (of, latency) = of.map_or((None, f64::NAN), |(of, latency)| (Some(of), latency));
        let notices = Plain(notices);
        self.tells.push(Said::Tell { now, notices, of, latency: Number(latency) });
    }
}
