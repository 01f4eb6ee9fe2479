//! Strict quotas: the leader grants of one only what a stored snapshot reserves.
//!
//! A leader that dies takes what it granted since its last snapshot into its grave. Each snapshot therefore
//! reserves units of every strict quota in use, and the leader grants these only when the snapshot is stored.
//! A request beyond them waits for the next one. A new leader counts the whole reservation as spent.
//! Snapshots overlap: the reservation of one is never smaller than what may still be granted of any before
//! it.

use std::collections::VecDeque;

use autothrottle::{Config, Span, Value};

use crate::{api::MemberId, codec::Number, vec_map::VecMap};

/// A reservation is at least the limit divided by this.
const PARTS: f64 = 20.0;
/// After this many snapshots without a request no part is set aside any more.
const IDLE: u8 = 10;
/// Scopes whose limit is remembered, at most.
const MOST_LIMITS: usize = 10_000;

#[derive(Debug, Default)]
struct Reservation {
    limit: f64,
    /// May still be granted.
    left: f64,
    /// Granted or wanted since the last snapshot.
    used: f64,
    /// Granted ever.
    total: f64,
    idle: u8,
}

/// By scope the units that a snapshot sets aside, and what was granted ever then.
type Amounts = VecMap<String, (f64, f64)>;

#[derive(Debug, Default)]
pub struct Reservations {
    scopes: VecMap<String, Reservation>,
    /// The limit of strict quotas by scope, as they were looked up.
    limits: VecMap<String, Option<f64>>,
    /// Snapshots that are not known to be stored.
    taken: VecDeque<(u32, Amounts)>,
    /// The last snapshot.
    last: u32,
    /// Requests that wait until a snapshot is stored: which one.
    kept: VecDeque<(u32, MemberId, u64, u32)>,
    /// The last that is.
    stored: u32,
}

/// The settings that were changed while it ran, by scope.
pub type Settings = VecMap<String, Vec<(String, Value)>>;

impl Reservations {
    /// Whether a request of these costs has a strict quota, if it may leave at once; then they are taken. A
    /// request that waits came before these.
    pub fn takes<'a>(
        &mut self,
        config: &Config,
        settings: &Settings,
        costs: impl Iterator<Item = (&'a str, f64)> + Clone,
        waited: bool,
    ) -> Option<bool> {
        let (mut is_there, mut is_strict) = (true, false);
        for (name, cost) in costs.clone() {
            let Some(limit) = self.limit(config, settings, name) else { continue };
            let reservation = self.scopes.or_default(name.into());
            is_strict = true;
            reservation.limit = limit;
            is_there &= reservation.left >= cost;
        }
        for (name, cost) in costs.filter(|_| is_strict) {
            let Some(reservation) = self.scopes.get_mut(name) else { continue };
            if is_there {
                reservation.left -= cost;
                reservation.total += cost;
            }
            // One that waits in vain is wanted of the next snapshot as well.
            if !(waited && is_there) {
                reservation.used += cost;
            }
        }
        is_there.then_some(is_strict)
    }

    /// It waits for the next snapshot; the first of all, where it waited before.
    pub fn push(&mut self, from: MemberId, id: u64, attempt: u32, waited: bool) {
        let kept = (self.last + 1, from, id, attempt);
        if waited {
            self.kept.push_front(kept);
        } else {
            self.kept.push_back(kept);
        }
    }

    /// Whether a request waits for a snapshot that was not taken yet.
    pub fn is_wanted(&self) -> bool {
        [self.kept.front(), self.kept.back()].iter().flatten().any(|kept| kept.0 > self.last)
    }

    /// Whether anything of a strict quota left lately.
    pub fn is_used(&self) -> bool {
        !self.scopes.is_empty()
    }

    /// A snapshot is taken: what it sets aside.
    pub fn take(&mut self, number: u32) -> Vec<(String, Number)> {
        self.last = number;
        let mut all = VecMap::default();
        for (name, reservation) in self.scopes.iter_mut() {
            reservation.idle = if reservation.used > 0.0 { 0 } else { reservation.idle.saturating_add(1) };
            if reservation.idle > IDLE {
                reservation.left = 0.0;
                continue;
            }
            let pending = self.taken.iter().filter_map(|(_, amounts)| amounts.get(name)).map(|pair| pair.0);
            let most = pending.fold(reservation.left, f64::max);
            let units =
                (reservation.limit / PARTS).max(reservation.used.min(reservation.limit)).max(1.0).max(most);
            reservation.used = 0.0;
            all.insert(name.clone(), (units, reservation.total));
        }
        self.scopes.retain(|_, reservation| reservation.idle <= IDLE);
        let amounts = all.iter().map(|(name, &(units, _))| (name.clone(), Number(units))).collect();
        self.taken.push_back((number, all));
        amounts
    }

    /// A snapshot is stored: its units may be granted.
    pub fn stored(&mut self, number: u32) {
        self.stored = self.stored.max(number);
        while self.taken.front().is_some_and(|(taken, _)| *taken <= number) {
            let Some((taken, amounts)) = self.taken.pop_front() else { break };
            if taken < number {
                continue;
            }
            for (name, (units, total)) in amounts {
                if let Some(reservation) = self.scopes.get_mut(&name) {
                    reservation.left = units - (reservation.total - total);
                }
            }
        }
    }

    /// One that waited for a snapshot that is stored.
    pub fn free(&mut self) -> Option<(MemberId, u64, u32)> {
        let (wanted, from, id, attempt) = *self.kept.front()?;
        (wanted <= self.stored).then(|| {
            self.kept.pop_front();
            (from, id, attempt)
        })
    }

    /// The settings of a scope are others.
    pub fn forget(&mut self, name: &str) {
        self.limits.remove(name);
    }

    fn limit(&mut self, config: &Config, settings: &Settings, name: &str) -> Option<f64> {
        if let Some(known) = self.limits.get(name) {
            return *known;
        }
        let limit = strict(config, settings.get(name), name).map(|(limit, _)| limit);
        if self.limits.len() >= MOST_LIMITS {
            self.limits.clear();
        }
        self.limits.insert(name.into(), limit);
        limit
    }
}

/// The smallest strict quota of a scope, in units, and the longest window of one.
pub fn strict(config: &Config, set: Option<&Vec<(String, Value)>>, name: &str) -> Option<(f64, Span)> {
    let known = config.scope(name);
    let changed = set.and_then(|entries| known.changed(Value::Map(entries.clone())).ok());
    let quotas = changed.as_ref().map_or(&known.quotas, |changed| &changed.quotas);
    let strict = quotas.iter().filter(|quota| quota.strict);
    strict
        .map(|quota| (quota.limit.units(), quota.window))
        .reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
}
