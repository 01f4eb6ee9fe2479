//! Members' reports to a leader that does not know: what flies, who waits, what ended. `leader.rs` has its
//! traps.

use std::collections::BinaryHeap;

use autothrottle::{Instant, Span, boundary::Outcome};

use crate::{
    api::MemberId,
    codec::{Number, hash},
    frame::{Ask, Digest, Fact, Flight, GrantId, Open},
    leader::{Leader, MOST_MEMBERS, Story, cost_of, share_of},
    peer::Peer,
    vec_map::VecMap,
};

impl Leader {
    /// Stories: what flies, the oldest first; who waits, by age; what followed. Then all are asked.
    pub fn take(&mut self, now: Instant, stories: Vec<Story>) {
        let (mut flying, mut waiting, mut orders) = (Vec::new(), Vec::new(), Vec::new());
        for Story { from, head, open, at } in stories {
            let session = head.session;
            let is_full = self.peers.len() >= MOST_MEMBERS && !self.peers.contains_key(&from);
            self.is_crowded |= is_full;
            if is_full || self.peers.get(&from).is_some_and(|peer| peer.session >= session) {
                continue;
            }
            let later = now.since(at);
            let applied = self.welcome(now, from, session, &open);
            if let Some(peer) = self.peers.get_mut(&from) {
                peer.clock.heard(at, &head);
            }
            for mut flight in open.flying {
                flight.ago = flight.ago + later;
                flying.push((from, flight, None));
            }
            for fact in open.log {
                if fact.seq() <= applied {
                    continue;
                }
                match fact {
                    Fact::Done(_, flight, digest) => {
                        let flight = Flight { ago: flight.ago + later, ..flight };
                        flying.push((from, flight, Some(digest)));
                    }
                    Fact::Order(_, ago, order) => orders.push((ago + later, order)),
                }
            }
            for mut ask in open.waiting {
                ask.waited = ask.waited + later;
                ask.delay = ask.delay - later;
                waiting.push((from, ask));
            }
        }
        self.report_split(now);
        let mut taken = VecMap::default();
        for (from, flight, digest) in oldest_first(flying, |(_, flight, _)| flight.ago) {
            taken.add(from, ());
            self.fly(now, from, flight, digest.as_ref());
        }
        for (from, ()) in taken {
            self.counted(from);
        }
        for (from, ask) in oldest_first(waiting, |(_, ask)| ask.waited) {
            if !self.peers.get(&from).is_some_and(|peer| peer.requests.contains_key(&ask.id)) {
                self.ask(now, from, ask);
            }
        }
        for (ago, order) in oldest_first(orders, |(ago, _)| *ago) {
            self.apply(now, &order, ago);
        }
        for ((from, session, number), acts) in core::mem::take(&mut self.ahead) {
            self.batch(now, from, session, number, acts);
        }
    }

    /// All that it sent so far is counted.
    pub(crate) fn counted(&mut self, from: MemberId) {
        let epoch = self.epoch;
        if let Some(peer) = self.peers.get_mut(&from) {
            peer.counted = GrantId { epoch, session: peer.session, number: peer.replies };
        }
    }

    /// A newer story: what it does not know is over, and what it says waits was not granted. Up to which fact
    /// it had come in before.
    pub(crate) fn welcome(&mut self, now: Instant, from: MemberId, session: u32, open: &Open) -> u64 {
        let hash = hash(&open.options);
        if hash != self.options.1 {
            self.offered = Some((open.options.clone(), hash));
        }
        let (counted, applied) = self.former.remove(&from).unwrap_or_default();
        if self.peers.get(&from).is_none_or(|peer| peer.session == 0) {
            self.has_news = true;
            self.changes.is_joined = true;
        }
        self.peers.add(from, Peer::new(now, counted, applied));
        let Some(peer) = self.peers.get_mut(&from) else { return applied };
        peer.begin(session, hash);
        peer.heard_at = now;
        peer.watch = open.watch;
        let applied = peer.applied;
        peer.applied = open.log.last().map_or(applied, |fact| fact.seq().max(applied));
        let name = |ask: &Ask| (ask.id, ask.attempt);
        let (mut waits, mut flies) = (VecMap::default(), VecMap::default());
        open.waiting.iter().for_each(|ask| _ = waits.add(name(ask), ()));
        open.flying.iter().for_each(|flight| _ = flies.add(name(&flight.ask), ()));
        for fact in &open.log {
            if let Fact::Done(_, flight, _) = fact {
                flies.add(name(&flight.ask), ());
            }
        }
        let mut over = Vec::new();
        for (&id, held) in &peer.requests {
            let name = (id, held.attempt);
            let is_known = if held.is_flying { flies.contains_key(&name) } else { waits.contains_key(&name) };
            if !is_known {
                over.push((id, waits.contains_key(&name)));
            }
        }
        for (id, is_unused) in over {
            self.end(now, from, id, is_unused);
        }
        self.watches();
        applied
    }

    /// A request that left: adopted if it is not known, and heard if it is over.
    pub(crate) fn fly(&mut self, now: Instant, from: MemberId, flight: Flight, digest: Option<&Digest>) {
        let Some(peer) = self.peers.get(&from) else { return };
        let (id, attempt) = (flight.ask.id, flight.ask.attempt);
        let is_counted = flight.by <= peer.counted;
        if let Some(held) = peer.requests.get(&id) {
            let (ticket, at) = (held.ticket, held.at);
            let sent = self.clock.now(now) - flight.ago;
            if held.is_flying && at.is_some_and(|at| sent > at) {
                self.engine.sent_at(sent.millis(), ticket as f64);
            }
        } else {
            let ago = flight.ago;
            let mut ask = flight.ask;
            if !is_counted && flight.by.epoch == self.before {
                for (place, name) in ask.what.names.iter().enumerate() {
                    *self.adopted.or_default(name.clone()) += cost_of(&ask.what, place);
                }
            }
            ask.waited = ask.waited - ago;
            self.adopt(now, from, ask, ago, is_counted);
        }
        if let Some(digest) = digest {
            self.over(now, from, id, attempt, digest);
        }
    }

    pub(crate) fn adopt(&mut self, now: Instant, from: MemberId, ask: Ask, ago: Span, is_counted: bool) {
        let engine_now = self.clock.now(now);
        let share = share_of(self.share) as u64;
        let ago = Span::from_micros(ago.micros() / share);
        let (scopes, costs) = self.scopes(&ask.what);
        let rest = (&*costs, ask.what.priority.0, ask.waited.millis());
        let ticket = self.engine.adopt_known(engine_now.millis(), &scopes, rest, ago, is_counted);
        // A ticket that makes no sense does no harm.
        if ticket < 0.0 {
            return;
        }
        self.touch(&ask.what);
        self.route(now, ticket as u64, &ask.what);
        let at = (!is_counted).then(|| engine_now - ago);
        self.hold(from, ask, ticket as u64, true, at);
    }

    /// Spends the units that were reserved of strict quotas, and not used by known requests: others may have
    /// used them. They count as spent now.
    pub fn spend(&mut self, now: Instant, reserved: &[(String, Number)]) {
        let engine_now = self.now(now);
        for (name, units) in reserved {
            let rest = units.0 - self.adopted.get(name).copied().unwrap_or(0.0);
            if rest <= 0.0 {
                continue;
            }
            let scope = [self.engine.intern(name)];
            let cost = [rest];
            let ticket = self.engine.adopt_known(engine_now, &scope, (&cost, 0.0, 0.0), Span::ZERO, false);
            self.touch_scope(name);
            self.engine.settle(engine_now, ticket, &Outcome::new(f64::NAN, f64::NAN, f64::NAN, 0));
        }
        self.adopted.clear();
    }
}

/// By age; of the same age, the first comes first. The heap sorts numbers: a sort of each kind of story would
/// be a tenth of the module.
fn oldest_first<T>(items: Vec<T>, age: impl Fn(&T) -> Span) -> impl Iterator<Item = T> {
    let ages = items.iter().enumerate();
    let order: BinaryHeap<_> = ages.map(|(place, item)| (!age(item).micros(), place)).collect();
    let mut items: Vec<Option<T>> = items.into_iter().map(Some).collect();
    order.into_sorted_vec().into_iter().filter_map(move |(_, place)| items.get_mut(place)?.take())
}
