//! A second engine that is slow and obvious, and random events that must be answered alike.
//!
//! It scans everything: no lanes, no heap, no lines. At each poll it looks at the head of every group of
//! requests with the same scopes. It sends the first, by rank, that all scopes allow. It shares with the
//! engine the specification alone.
//!
//! Some requests are sent at once where that is possible (`send_at_once`), which the reference does not know:
//! to it, they are submitted and sent.
//!
//! Wake-ups are compared by what they are for: the engine may wake early, but never after the instant at
//! which the reference could send.

use std::collections::BTreeMap;

use autothrottle::{Answer, Cost, Decision, Feedback, Instant, Request, Rng, ScopeId, Span, Ticket};

use crate::helpers::{engine, seeds};

const SECOND: u64 = 1_000_000;

struct Slot {
    is_busy: bool,
    last: Option<u64>,
    freed: u64,
}

struct Scope {
    slots: Vec<Slot>,
    delay: u64,
    slot_delay: u64,
    autothrottle: Option<f64>,
    last: Option<u64>,
    hold: u64,
    is_paused: bool,
    /// Limit, window, whether it rolls; and every send, with its cost. A debt is a send in times to come, or
    /// carried into the fixed window that began `first`.
    quota: Option<(u64, u64, bool)>,
    spent: Vec<(u64, u64)>,
    first: Option<u64>,
    carried: u64,
    /// The gap for a unit, the burst; and everything that was ever taken from the bucket.
    rate: Option<(u64, u64)>,
    taken: Vec<(u64, u64)>,
    /// When the bucket is full again, and no news can change that.
    full: u64,
}

#[derive(Clone)]
struct Waiting {
    id: u32,
    scopes: Vec<usize>,
    priority: i32,
    cost: u64,
    age: u64,
    due: u64,
}

struct Flying {
    request: Waiting,
    sent: u64,
    slots: Vec<usize>,
}

struct Reference {
    scopes: Vec<Scope>,
    concurrency: usize,
    waiting: Vec<Waiting>,
    flying: Vec<Flying>,
    /// The last that ended and cost what was expected, with when they were sent.
    ended: Vec<(Waiting, u64)>,
    served: BTreeMap<(Vec<usize>, bool), u64>,
    stamp: u64,
    freed: u64,
    now: u64,
}

impl Scope {
    fn new(slots: usize, delay_ms: u64, slot_delay_ms: u64) -> Self {
        Self {
            slots: (0..slots).map(|_| Slot { is_busy: false, last: None, freed: 0 }).collect(),
            delay: delay_ms * 1000,
            slot_delay: slot_delay_ms * 1000,
            autothrottle: None,
            last: None,
            hold: 0,
            is_paused: false,
            quota: None,
            spent: Vec::new(),
            first: None,
            carried: 0,
            rate: None,
            taken: Vec::new(),
            full: 0,
        }
    }

    /// The consumed part of the window that began at `start`.
    fn used(&self, start: u64) -> u64 {
        self.carried + self.spent.iter().filter(|&&(at, _)| at >= start).map(|&(_, cost)| cost).sum::<u64>()
    }

    /// A fixed window turns over: what is above the limit goes into the next.
    fn turn(&mut self, now: u64) {
        let Some((limit, window, false)) = self.quota else { return };
        while let Some(first) = self.first.filter(|first| first + window <= now) {
            self.carried = self.used(first).saturating_sub(limit);
            self.first = Some(first + window);
        }
    }

    /// Corrects the cost of a request that left at `sent` from `cost` to `actual`.
    fn correct(&mut self, sent: u64, now: u64, cost: u64, actual: u64) {
        if actual > cost {
            self.charge(sent, now, actual - cost);
        } else {
            self.refund(sent, now, cost, cost - actual);
        }
    }

    /// Takes what was not foreseen: above the limit it is owed.
    fn charge(&mut self, sent: u64, now: u64, more: u64) {
        if self.rate.is_some() {
            self.taken.push((now, more));
        }
        let Some((limit, window, is_strict)) = self.quota else { return };
        if !is_strict {
            let is_open = self.first.is_some_and(|first| first <= sent);
            self.spent.push((if is_open { sent } else { now }, more));
            return;
        }
        let at = if sent + window <= now { now } else { sent };
        let used: u64 = self.spent.iter().filter(|&&(at, _)| at + window > now).map(|&(_, cost)| cost).sum();
        let mut over = (used + more).saturating_sub(limit).min(more);
        self.spent.push((at, more - over));
        let mut due = at + window;
        while over > 0 {
            self.spent.push((due, over.min(limit)));
            over -= over.min(limit);
            due += window;
        }
    }

    /// Gives back what was taken at `sent` and not needed: of a quota what is owed first.
    fn refund(&mut self, sent: u64, now: u64, cost: u64, mut less: u64) {
        if let Some(entry) = self.taken.iter_mut().find(|entry| **entry == (sent, cost)) {
            entry.1 -= less;
        }
        match self.quota {
            Some((_, window, true)) if sent + window > now => {
                self.spent.sort_unstable();
                let owed = self.spent.iter_mut().rev().filter(|entry| entry.0 > now);
                for entry in owed {
                    let back = entry.1.min(less);
                    (entry.1, less) = (entry.1 - back, less - back);
                }
                for entry in self.spent.iter_mut().filter(|entry| entry.0 == sent) {
                    let back = entry.1.min(less);
                    (entry.1, less) = (entry.1 - back, less - back);
                }
            }
            Some((_, _, false)) if self.first.is_some_and(|first| first <= sent) => {
                for entry in self.spent.iter_mut().filter(|entry| entry.0 == sent) {
                    let back = entry.1.min(less);
                    (entry.1, less) = (entry.1 - back, less - back);
                }
            }
            _ => {}
        }
    }

    fn delay(&self) -> u64 {
        self.autothrottle.map_or(self.delay, |seconds| Span::from_millis(seconds * 1000.0).micros())
    }

    /// The slot that has been free longest.
    fn next_slot(&self) -> Option<usize> {
        let free = (0..self.slots.len()).filter(|&slot| !self.slots[slot].is_busy);
        free.min_by_key(|&slot| (self.slots[slot].last.is_some(), self.slots[slot].freed))
    }

    /// When a request of this cost may go, if only time has to pass.
    fn opens(&self, cost: u64, now: u64) -> Option<u64> {
        let slot = self.next_slot().filter(|_| !self.is_paused)?;
        let mut at = self.hold;
        at = at.max(self.last.map_or(0, |last| last + self.delay()));
        at = at.max(self.slots[slot].last.map_or(0, |last| last + self.slot_delay));
        if cost == 0 {
            return Some(at);
        }
        if let Some((gap, burst)) = self.rate {
            let full = self
                .taken
                .iter()
                .fold(self.full, |full: u64, &(sent, cost)| full.max(sent) + cost * gap / SECOND);
            at = at.max((full + cost * gap / SECOND).saturating_sub(burst * gap / SECOND));
        }
        match (self.quota, self.first) {
            (Some((limit, window, false)), Some(mut start)) => {
                let mut used = self.used(start);
                while used + cost > limit {
                    used = used.saturating_sub(limit);
                    start += window;
                    at = at.max(start);
                }
            }
            (Some((limit, window, true)), _) => {
                let alive = |at: u64| self.spent.iter().filter(move |&&(sent, _)| sent + window > at);
                let fits = |&at: &u64| alive(at).map(|&(_, cost)| cost).sum::<u64>() + cost <= limit;
                let ends = alive(now).map(|&(sent, _)| sent + window);
                let earliest = std::iter::once(now).chain(ends).filter(fits).min();
                at = at.max(earliest.expect("an empty window fits every cost that was taken in"));
            }
            _ => {}
        }
        Some(at)
    }
}

impl Reference {
    fn heads(&self) -> Vec<(Waiting, u64)> {
        let mut heads: BTreeMap<(Vec<usize>, bool), Waiting> = BTreeMap::new();
        let key = |each: &Waiting| (each.scopes.clone(), each.cost == 0);
        let first = |each: &Waiting| (-each.priority, u64::MAX - self.share(each));
        // Where shares are equal the larger cost comes first.
        let rank = |each: &Waiting| (first(each), u64::MAX - each.cost, each.age);
        for each in self.waiting.iter().filter(|each| each.due <= self.now) {
            let head = heads.entry(key(each)).or_insert_with(|| each.clone());
            if rank(each) < rank(head) {
                *head = each.clone();
            }
        }
        let served = |lane: &(Vec<usize>, bool)| self.served.get(lane).copied().unwrap_or(0);
        let mut heads: Vec<(Waiting, u64)> =
            heads.into_iter().map(|(lane, head)| (head.clone(), head.age.max(served(&lane)))).collect();
        heads.sort_by_key(|(head, age)| (-head.priority, u64::MAX - self.share(head), *age));
        heads
    }

    fn share(&self, request: &Waiting) -> u64 {
        let share = |scope: &Scope| match (scope.quota, scope.rate) {
            (Some((limit, ..)), _) => (request.cost << 32) / limit,
            (_, Some((_, burst))) => (request.cost.saturating_sub(SECOND) << 32) / burst,
            _ => 0,
        };
        request.scopes.iter().map(|&scope| share(&self.scopes[scope])).max().unwrap_or(0)
    }

    fn opens(&self, request: &Waiting) -> Option<u64> {
        request
            .scopes
            .iter()
            .map(|&scope| self.scopes[scope].opens(request.cost, self.now))
            .try_fold(0, |latest, at| Some(latest.max(at?)))
    }

    /// Ages are instants, with a number for what happens within a microsecond.
    fn next_age(&mut self) -> u64 {
        self.stamp = (self.stamp + 1).max(self.now << 8);
        self.stamp
    }

    fn age(&mut self, waited: u64) -> u64 {
        if waited > 0 { (self.now - waited) << 8 } else { self.next_age() }
    }

    fn poll(&mut self) -> Option<u32> {
        if self.flying.len() >= self.concurrency {
            return None;
        }
        let (head, _) =
            self.heads().into_iter().find(|(head, _)| self.opens(head).is_some_and(|at| at <= self.now))?;
        self.waiting.retain(|each| each.id != head.id);
        let age = self.next_age();
        self.served.insert((head.scopes.clone(), head.cost == 0), age);
        let now = self.now;
        let slots = head.scopes.iter().map(|&index| {
            let scope = &mut self.scopes[index];
            let slot = scope.next_slot().unwrap();
            scope.slots[slot] = Slot { is_busy: true, last: Some(now), freed: 0 };
            scope.last = Some(now);
            scope.first.get_or_insert(now);
            scope.spent.push((now, head.cost));
            scope.taken.push((now, head.cost));
            slot
        });
        let slots = slots.collect();
        let id = head.id;
        self.flying.push(Flying { request: head, sent: now, slots });
        Some(id)
    }

    /// The next instant at which something could be sent by time alone.
    fn next(&self) -> Option<u64> {
        if self.flying.len() >= self.concurrency {
            return None;
        }
        let parked = self.waiting.iter().filter(|each| each.due > self.now).map(|each| each.due);
        self.heads().iter().filter_map(|(head, _)| self.opens(head)).chain(parked).min()
    }

    /// That a group was served is remembered while any of its requests is there.
    fn forget_lanes(&mut self) {
        let requests = self.waiting.iter().chain(self.flying.iter().map(|flying| &flying.request));
        let keys: Vec<_> = requests.map(|each| (each.scopes.clone(), each.cost == 0)).collect();
        self.served.retain(|key, _| keys.contains(key));
    }

    /// The sum of all sends before the first that may yet be corrected is one number.
    fn forget_old(&mut self) {
        let ended = self.ended.len().saturating_sub(6);
        self.ended.drain(..ended);
        let flying = self.flying.iter().map(|flying| flying.sent);
        let oldest = flying.chain(self.ended.iter().map(|&(_, sent)| sent)).chain([self.now]).min().unwrap();
        for scope in &mut self.scopes {
            scope.spent.retain(|&(sent, _)| sent + 2 * SECOND > self.now);
            let Some((gap, _)) = scope.rate else {
                scope.taken.clear();
                continue;
            };
            scope.taken.sort_by_key(|&(sent, _)| sent);
            let old = scope.taken.partition_point(|&(sent, _)| sent < oldest);
            let full = |full: u64, (sent, cost): (u64, u64)| full.max(sent) + cost * gap / SECOND;
            scope.full = scope.taken.drain(..old).fold(scope.full, full);
        }
    }

    /// Whether every scope of a request has a slot for it.
    fn has_slots(&self, scopes: &[usize]) -> bool {
        scopes.iter().all(|&scope| self.scopes[scope].next_slot().is_some())
    }

    /// A request that left elsewhere, some time ago.
    fn adopt(&mut self, request: Waiting, sent: u64) {
        let now = self.now;
        let slots = request.scopes.iter().map(|&index| {
            let scope = &mut self.scopes[index];
            let slot = scope.next_slot().expect("a slot is free");
            scope.slots[slot] = Slot { is_busy: true, last: Some(sent), freed: 0 };
            scope.last = scope.last.max(Some(sent));
            let is_first = scope.first.is_none();
            if let Some((_, window, is_strict)) = scope.quota
                && sent + window > now
            {
                scope.first.get_or_insert(sent);
                if is_first && !is_strict {
                    scope.spent.push((sent, request.cost));
                } else {
                    scope.charge(sent, now, request.cost);
                }
            }
            slot
        });
        let slots = slots.collect();
        self.flying.push(Flying { request, sent, slots });
    }

    fn end(&mut self, id: u32, latency: Option<f64>, actual: Option<u64>) {
        let at = self.flying.iter().position(|flying| flying.request.id == id).unwrap();
        let Flying { request, sent, slots } = self.flying.remove(at);
        for (&index, slot) in request.scopes.iter().zip(slots) {
            self.freed += 1;
            let scope = &mut self.scopes[index];
            let is_rested = sent + scope.slot_delay <= self.now;
            let last = if is_rested { None } else { Some(sent) };
            scope.slots[slot] = Slot { is_busy: false, last, freed: self.freed };
            if let (Some(delay), Some(latency)) = (&mut scope.autothrottle, latency) {
                *delay = f64::max(latency, (*delay + latency) / 2.0).clamp(0.0, 2.0);
            }
            if let Some(actual) = actual {
                scope.correct(sent, self.now, request.cost, actual);
            }
        }
        if actual.is_none() {
            self.ended.push((request, sent));
        }
    }
}

const OPTIONS: &str = r#"{ "maxInFlight": 5, "defaults": { "jitter": false, "slotDelay": 0 }, "scopes": {
    "a": { "concurrency": 2, "delay": 300, "slotDelay": 1000 },
    "b": { "delay": 0 },
    "c": { "concurrency": 3, "delay": 50, "slotDelay": 200 },
    "auto": { "concurrency": 4, "delay": 0, "autothrottle": { "startDelay": 500, "maxDelay": 2000 } },
    "fixed": { "concurrency": 9, "delay": 0, "quota": 5, "window": 1000 },
    "strict": { "concurrency": 9, "delay": 10, "quota": 5, "window": 1000, "strict": true },
    "shared": { "concurrency": 3, "delay": 20 },
    "rated": { "rate": { "limit": 4, "window": 1000, "burst": 6 } } } }"#;
const NAMES: [&str; 8] = ["a", "b", "c", "auto", "fixed", "strict", "shared", "rated"];

fn reference() -> Reference {
    let mut scopes: Vec<Scope> =
        [(2, 300, 1000), (1, 0, 0), (3, 50, 200), (4, 0, 0), (9, 0, 0), (9, 10, 0), (3, 20, 0), (5, 0, 0)]
            .map(|(slots, delay, slot_delay)| Scope::new(slots, delay, slot_delay))
            .into();
    scopes[3].autothrottle = Some(0.5);
    scopes[4].quota = Some((5 * SECOND, SECOND, false));
    scopes[5].quota = Some((5 * SECOND, SECOND, true));
    scopes[7].rate = Some((SECOND / 4, 6 * SECOND));
    Reference {
        scopes,
        concurrency: 5,
        waiting: vec![],
        flying: vec![],
        ended: vec![],
        served: BTreeMap::new(),
        stamp: 0,
        freed: 0,
        now: 0,
    }
}

#[allow(clippy::too_many_lines, reason = "one event after the other reads best in one place")]
/// Plays one seed.
fn play(seed: u64) {
    let mut rng = Rng::new(seed);
    let mut pick = move |below: usize| (rng.draw().unit() * below as f64) as usize;
    let mut engine = engine(OPTIONS);
    let ids: Vec<ScopeId> = NAMES.iter().map(|name| engine.scope(name)).collect();
    let mut reference = reference();
    let mut tickets: BTreeMap<u32, Ticket> = BTreeMap::new();
    let mut next_id = 0;
    for event in 0..2000 {
        let now = Instant::from_micros(reference.now);
        match pick(20) {
            0..=6 if reference.waiting.len() < 40 => {
                let scopes = match pick(10) {
                    0..=4 => vec![pick(8)],
                    5 | 6 => vec![pick(3), 6],
                    7 => vec![3, 6],
                    8 => vec![0, 1, 2],
                    _ => vec![1, 3],
                };
                let has_quota = matches!(scopes[..], [4 | 5 | 7]);
                let cost =
                    if has_quota { [0, 500_000, SECOND, 2 * SECOND, 5 * SECOND][pick(5)] } else { SECOND };
                let priority = [-1, 0, 1][pick(3)];
                let delay = if pick(6) == 0 { pick(700) as u64 } else { 0 };
                // Now and then another engine had it before: it waited there, or was sent from there.
                let most = reference.now.min(3 * SECOND) as usize;
                let waited = if pick(8) == 0 { pick(most + 1) as u64 } else { 0 };
                let sent_ago = (pick(12) == 0).then(|| pick(most + 1) as u64);
                // A bucket takes what was sent elsewhere as if it left last.
                let sent_ago = sent_ago.filter(|_| !scopes.contains(&7));
                let handles: Vec<ScopeId> = scopes.iter().map(|&scope| ids[scope]).collect();
                let request = Request {
                    scopes: &handles,
                    costs: &[cost as f64 / 1e6],
                    priority: f64::from(priority),
                    delay_ms: delay as f64,
                    waited_ms: waited as f64 / 1000.0,
                };
                if let Some(sent_ago) = sent_ago {
                    if reference.has_slots(&scopes) {
                        let ticket = engine.adopt(now, request, Span::from_micros(sent_ago)).unwrap();
                        tickets.insert(next_id, ticket);
                        let request = Waiting { id: next_id, scopes, priority, cost, age: 0, due: 0 };
                        reference.adopt(request, reference.now - sent_ago);
                        next_id += 1;
                    }
                } else {
                    let is_new = waited == 0 && pick(3) == 0;
                    let at_once = if is_new { engine.send_at_once(now, request).unwrap() } else { None };
                    let is_sent = at_once.is_some();
                    tickets.insert(next_id, at_once.unwrap_or_else(|| engine.submit(now, request).unwrap()));
                    let was_waiting = !reference.waiting.is_empty();
                    let age = reference.age(waited);
                    let (id, due) = (next_id, reference.now + delay * 1000);
                    reference.waiting.push(Waiting { id, scopes, priority, cost, age, due });
                    if is_sent {
                        assert!(!was_waiting, "seed {seed}, event {event}: before others that wait");
                        assert_eq!(reference.poll(), Some(id), "seed {seed}, event {event}: sent at once");
                    }
                    next_id += 1;
                }
            }
            7..=10 if !reference.flying.is_empty() => {
                let request = reference.flying[pick(reference.flying.len())].request.clone();
                let latency = pick(1_500_000) as f64 / 1e6;
                let actual = matches!(request.scopes[..], [4 | 5 | 7]).then(|| pick(4) as u64 * SECOND);
                let actual = actual.filter(|_| request.cost > 0 && pick(2) == 0);
                let feedback = Feedback {
                    answer: Answer::Response { status: 200 },
                    latency_ms: Some(latency * 1000.0),
                    cost: actual.and_then(|actual| Cost::from_units(actual as f64 / 1e6)),
                    ..Feedback::IGNORED
                };
                engine.settle(now, tickets[&request.id], &feedback);
                // A second end of it changes no state.
                engine.settle(now, tickets[&request.id], &Feedback::response(503));
                reference.end(request.id, Some(latency * 1000.0 / 1000.0), actual);
            }
            11 if !reference.waiting.is_empty() => {
                let at = pick(reference.waiting.len());
                let ticket = tickets[&reference.waiting.remove(at).id];
                engine.cancel(now, ticket);
                engine.cancel(now, ticket);
            }
            12 if !reference.flying.is_empty() => {
                let id = reference.flying[pick(reference.flying.len())].request.id;
                engine.cancel(now, tickets[&id]);
                reference.end(id, None, Some(0));
            }
            13 => {
                let (scope, ms) = (pick(7), pick(1500) as u64);
                engine.hold(now, ids[scope], Span::from_millis(ms as f64));
                let held = &mut reference.scopes[scope].hold;
                *held = (*held).max(reference.now + ms * 1000);
            }
            14 => {
                let scope = pick(7);
                let is_paused = !reference.scopes[scope].is_paused && pick(3) == 0;
                reference.scopes[scope].is_paused = is_paused;
                if is_paused { engine.pause(now, ids[scope]) } else { engine.resume(now, ids[scope]) }
            }
            15 => {
                let (scope, ms) = (pick(3), pick(400) as u64);
                let partial = serde_json::from_str(&format!(r#"{{ "delay": {ms} }}"#)).unwrap();
                engine.configure(now, ids[scope], partial).unwrap();
                reference.scopes[scope].delay = ms * 1000;
            }
            16 if !reference.waiting.is_empty() => {
                let at = pick(reference.waiting.len());
                let priority = [-1, 0, 1][pick(3)];
                reference.waiting[at].priority = priority;
                engine.prioritize(now, tickets[&reference.waiting[at].id], f64::from(priority));
            }
            17 if !reference.ended.is_empty() => {
                let (request, sent) = reference.ended.swap_remove(pick(reference.ended.len()));
                let (cost, actual) = (request.cost, pick(8) as u64 * SECOND / 2);
                for &scope in &request.scopes {
                    let units = |cost: u64| Cost::from_units(cost as f64 / 1e6).unwrap();
                    let sent_at = Instant::from_micros(sent);
                    engine.adjust(now, ids[scope], sent_at, units(cost), units(actual));
                    reference.scopes[scope].correct(sent, reference.now, cost, actual);
                }
            }
            16 | 17 => reference.now += pick(400_000) as u64,
            _ => {
                if let Some(next) = reference.next() {
                    reference.now = reference.now.max(next);
                }
            }
        }
        let now = Instant::from_micros(reference.now);
        for scope in &mut reference.scopes {
            scope.turn(reference.now);
        }
        loop {
            let expected = reference.poll();
            match (engine.poll(now), expected) {
                (Decision::Send(ticket), Some(id)) => {
                    assert_eq!(
                        ticket, tickets[&id],
                        "seed {seed}, event {event}: another ticket was due at {now:?}"
                    );
                }
                (Decision::Wait { until, because }, None) => {
                    assert!(until > now, "seed {seed}, event {event}: a wait that is over");
                    let latest = reference.next().map(Instant::from_micros);
                    assert!(
                        latest.is_none_or(|latest| until <= latest),
                        "seed {seed}, event {event}, {now:?}: woken at {until:?} by {because:?}, \
                         not at {latest:?}"
                    );
                    break;
                }
                (Decision::Idle { .. }, None) => {
                    assert_eq!(reference.next(), None, "seed {seed}, event {event}: asleep");
                    break;
                }
                (decision, expected) => {
                    panic!(
                        "seed {seed}, event {event}, {now:?}: {decision:?}, \
                         but the reference says {expected:?}"
                    )
                }
            }
        }
        assert_eq!(engine.waiting() as usize, reference.waiting.len(), "seed {seed}, event {event}");
        assert_eq!(engine.in_flight() as usize, reference.flying.len(), "seed {seed}, event {event}");
        reference.forget_lanes();
        reference.forget_old();
    }
}

#[test]
fn random_events_are_answered_as_by_the_reference() {
    (0..seeds(100)).for_each(play);
}
