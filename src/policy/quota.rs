//! Quota: an amount that a scope may consume per window, in units of cost.
//!
//! Rules (Scrapy draft, *Throttling quotas* and its open points; the IETF's `RateLimit` draft for the words):
//! 1. a request is sent when its expected cost fits in what is left; the cost is taken then;
//! 2. the actual cost corrects it by the difference, in the window it was taken from, if that still is;
//! 3. a fixed window starts with the first request and turns over by division, however long nobody looked;
//! 4. a strict one rolls: no window-long span holds more than the limit, wherever it starts;
//! 5. what was spent stays spent when the limit or the window changes. Where it is not known when it was
//!    spent, the last send is when: the latest that is possible.
//!
//! The trap of rule 3 is its edge: a full quota at the end of one window and another at the start of the next
//! lie close together. That is what most servers do themselves, and what `strict` is for. Amounts are whole
//! millionths: sums of doubles would drift over weeks.

use std::collections::VecDeque;

use crate::time::{Instant, Span, double, whole};

/// So many sends of a rolling window are remembered one by one. Beyond it, sends that are closer together
/// than a part of the window this small are remembered as one, at the later time: never too much, hardly
/// late.
const REMEMBERED: usize = 4096;

/// An amount in millionths of a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost(u64);

/// One quota of one scope.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Units per window.
    pub limit: Cost,
    /// Its length.
    pub window: Span,
    /// Whether the window rolls (rule 4).
    pub strict: bool,
}

/// What was consumed.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// A fixed window.
    Fixed {
        /// When it started; `None` before the first request.
        opened: Option<Instant>,
        /// Consumed since; may be above the limit after a correction.
        used: Cost,
    },
    /// A rolling window: send times with the total consumed up to and with each, oldest first.
    Rolling {
        /// The sends.
        sends: VecDeque<(Instant, Cost)>,
        /// The total before the first of them.
        before: Cost,
    },
}

impl Cost {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// The cost of a request about which nobody said anything.
    pub const ONE: Self = Self(1_000_000);
    /// The most that a quota or a request may name.
    pub const MOST_UNITS: f64 = 1e12;

    /// `units` rounded up; `None` for what is no amount (NaN, below 0, above a million million).
    pub fn from_units(units: f64) -> Option<Self> {
        if !(0.0..=Self::MOST_UNITS).contains(&units) {
            return None;
        }
        let near = whole(units * 1e6);
        Some(Self(if double(near) / 1e6 < units { near + 1 } else { near }))
    }

    /// The amount in units.
    pub fn units(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// This amount as a part of `limit`, in 2³²ths: an order among costs.
    pub fn share_of(self, limit: Self) -> u64 {
        ((u128::from(self.0) << 32) / u128::from(limit.0.max(1))).min(u128::from(u64::MAX)) as u64
    }

    /// Without the cost of so many usual requests; nothing at least.
    pub(crate) fn less(self, requests: u32) -> Self {
        self.minus_at_most(Self(Self::ONE.0 * u64::from(requests)))
    }

    /// The difference; nothing at least.
    pub(crate) fn minus_at_most(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self(self.0.wrapping_add(other.0))
    }

    fn minus(self, other: Self) -> Self {
        Self(self.0.wrapping_sub(other.0))
    }
}

impl State {
    /// Nothing consumed yet.
    pub fn new(config: &Config) -> Self {
        if config.strict {
            Self::Rolling { sends: VecDeque::new(), before: Cost::ZERO }
        } else {
            Self::Fixed { opened: None, used: Cost::ZERO }
        }
    }

    /// What is consumed of the window that `now` is in.
    pub fn used(&self, config: &Config, now: Instant) -> Cost {
        match self {
            Self::Fixed { opened: Some(opened), used } if now < *opened + config.window => *used,
            Self::Fixed { .. } => Cost::ZERO,
            Self::Rolling { sends, before } => {
                let over = sends.partition_point(|&(at, _)| at + config.window <= now);
                let gone = if over == 0 { *before } else { sends[over - 1].1 };
                sends.back().map_or(Cost::ZERO, |&(_, total)| total.minus(gone))
            }
        }
    }

    /// What is left of it.
    pub fn left(&self, config: &Config, now: Instant) -> Cost {
        Cost(config.limit.0.saturating_sub(self.used(config, now).0))
    }

    /// The first instant at which `cost` fits (rule 1); `None` for at once. A cost above the limit, which
    /// only a limit lowered later leaves waiting, fits when nothing is consumed.
    pub fn next(&self, config: &Config, now: Instant, cost: Cost) -> Option<Instant> {
        let cost = cost.min(config.limit);
        if cost <= self.left(config, now) {
            return None;
        }
        match self {
            Self::Fixed { opened, .. } => opened.map(|opened| opened + config.window),
            Self::Rolling { sends, .. } => {
                let (_, total) = *sends.back()?;
                let bearable = config.limit.minus(cost);
                let at = sends.partition_point(|&(_, sum)| total.minus(sum) > bearable);
                sends.get(at).map(|&(at, _)| at + config.window)
            }
        }
    }

    /// A request of this cost left.
    pub fn on_send(&mut self, config: &Config, now: Instant, cost: Cost) {
        self.turn(config, now);
        match self {
            Self::Fixed { opened, used } => {
                opened.get_or_insert(now);
                *used = used.plus(cost);
            }
            Self::Rolling { .. } if cost == Cost::ZERO => {}
            Self::Rolling { sends, before } => {
                let grain = config.window.micros() / REMEMBERED as u64;
                let total = sends.back().map_or(*before, |&(_, total)| total).plus(cost);
                let full = sends.len() >= REMEMBERED;
                match sends.back_mut() {
                    Some(last) if full && now.since(last.0).micros() < grain => *last = (now, total),
                    _ => sends.push_back((now, total)),
                }
            }
        }
    }

    /// A request of this cost left at `sent`, from somewhere else. Where a fixed window began later than
    /// that, it counts all the same if it is less than a window ago: nobody here saw when the window began.
    pub fn adopt(&mut self, config: &Config, now: Instant, sent: Instant, cost: Cost) {
        if sent + config.window <= now {
            return;
        }
        match self {
            Self::Fixed { opened: None, .. } => self.on_send(config, sent, cost),
            Self::Fixed { .. } => {
                self.turn(config, now);
                if let Self::Fixed { used, .. } = self {
                    *used = used.plus(cost);
                }
            }
            Self::Rolling { .. } => self.on_actual(config, now, sent, Cost::ZERO, cost),
        }
    }

    /// A request of this cost was permitted at `sent` and left only at `left`: a rolling window counts it
    /// from there. A fixed one has it where it was given.
    pub fn on_left(&mut self, config: &Config, now: Instant, sent: Instant, left: Instant, cost: Cost) {
        let Self::Rolling { sends, before } = self else { return };
        if left <= sent || cost == Cost::ZERO {
            return;
        }
        let mut at = sends.partition_point(|&(at, _)| at < sent);
        let mut rest = cost;
        // Several may have been given leave at the same instant.
        while rest > Cost::ZERO && sends.get(at).is_some_and(|&(at, _)| at == sent) {
            let own = sends[at].1.minus(if at == 0 { *before } else { sends[at - 1].1 });
            let taken = own.min(rest);
            rest = rest.minus(taken);
            for (_, total) in sends.range_mut(at..) {
                *total = total.minus(taken);
            }
            at += 1;
        }
        self.on_actual(config, now, left, Cost::ZERO, cost);
    }

    /// The request that left at `sent` for `expected` turned out to cost `actual` (rule 2).
    pub fn on_actual(&mut self, config: &Config, now: Instant, sent: Instant, expected: Cost, actual: Cost) {
        self.turn(config, now);
        match self {
            Self::Fixed { opened: Some(opened), used } if *opened <= sent => {
                used.0 = used.0.saturating_sub(expected.0).saturating_add(actual.0);
            }
            Self::Fixed { .. } => {}
            Self::Rolling { sends, before } => {
                if sent + config.window <= now {
                    return;
                }
                let mut at = sends.partition_point(|&(at, _)| at < sent);
                if expected == Cost::ZERO && sends.get(at).is_none_or(|&(at, _)| at != sent) {
                    let total = if at == 0 { *before } else { sends[at - 1].1 };
                    sends.insert(at, (sent, total));
                }
                // Restored from a snapshot of elsewhere, it may stand a little off. No send costs less than
                // nothing.
                if sends.get(at).is_none_or(|&(after, _)| {
                    after != sent && at > 0 && { sent.since(sends[at - 1].0) < after.since(sent) }
                }) {
                    at = at.saturating_sub(1);
                }
                let Some(&(_, total)) = sends.get(at) else { return };
                let own = total.minus(if at == 0 { *before } else { sends[at - 1].1 });
                let less = expected.minus_at_most(actual).min(own);
                let more = actual.minus_at_most(expected);
                for (_, total) in sends.range_mut(at..) {
                    *total = total.plus(more).minus(less);
                }
            }
        }
    }

    /// Whether nothing of the window that `now` is in is consumed.
    pub fn is_new(&self, config: &Config, now: Instant) -> bool {
        match self {
            Self::Fixed { opened, .. } => opened.is_none_or(|opened| opened + config.window <= now),
            Self::Rolling { .. } => self.used(config, now) == Cost::ZERO,
        }
    }

    /// What is consumed of the windows that matter at `now`: how long ago, and how much, oldest first.
    pub fn sends(&self, config: &Config, now: Instant) -> Vec<(Span, Cost)> {
        match self {
            _ if self.is_new(config, now) => Vec::new(),
            Self::Fixed { opened, used } => opened.iter().map(|&at| (now.since(at), *used)).collect(),
            Self::Rolling { sends, before } => {
                let mut before = *before;
                let costs = sends
                    .iter()
                    .map(|&(at, total)| (now.since(at), total.minus(core::mem::replace(&mut before, total))));
                costs.filter(|&(ago, _)| ago < config.window).collect()
            }
        }
    }

    /// The state that [`State::sends`] described.
    pub fn from_sends(config: &Config, now: Instant, sends: &[(Span, Cost)]) -> Self {
        if !config.strict {
            let first = sends.first();
            return Self::Fixed {
                opened: first.map(|&(ago, _)| now - ago),
                used: first.map_or(Cost::ZERO, |&(_, used)| used),
            };
        }
        let mut total = Cost::ZERO;
        let sums = sends.iter().map(|&(ago, cost)| {
            total = total.plus(cost);
            (now - ago, total)
        });
        Self::Rolling { sends: sums.collect(), before: Cost::ZERO }
    }

    /// What the quota `new` has consumed of its window when it takes the place of this one (rule 5); `last`
    /// is the scope's last send.
    #[must_use]
    pub fn on_configure(&self, old: &Config, new: &Config, now: Instant, last: Option<Instant>) -> Self {
        if (old.window, old.strict) == (new.window, new.strict) {
            return self.clone();
        }
        let mut sends = self.sends(old, now);
        match self {
            Self::Fixed { opened, .. } if new.strict || opened.is_some_and(|at| at + new.window <= now) => {
                for (ago, _) in &mut sends {
                    *ago = last.map_or(*ago, |last| now.since(last));
                }
            }
            Self::Fixed { .. } => {}
            Self::Rolling { .. } => sends.retain(|&(ago, _)| ago < new.window),
        }
        if !new.strict
            && let Some(&(first, _)) = sends.first()
        {
            sends = vec![(first, sends.iter().fold(Cost::ZERO, |sum, &(_, cost)| sum.plus(cost)))];
        }
        Self::from_sends(new, now, &sends)
    }

    fn turn(&mut self, config: &Config, now: Instant) {
        match self {
            Self::Fixed { opened: Some(opened), used } => {
                let windows = now.since(*opened).micros() / config.window.micros().max(1); // 3
                if windows > 0 {
                    *opened = *opened + Span::from_micros(windows * config.window.micros());
                    *used = Cost::ZERO;
                }
            }
            Self::Fixed { .. } => {}
            Self::Rolling { sends, before } => {
                while let Some(&(at, total)) = sends.front()
                    && at + config.window <= now
                {
                    *before = total;
                    sends.pop_front();
                }
            }
        }
    }
}
