//! Quota: an amount that a scope may consume per window, in units of cost.
//!
//! Rules (Scrapy draft, *Throttling quotas* and its open points; the IETF's `RateLimit` draft for the words):
//! 1. a request is sent when its expected cost fits in what is left; the cost is taken then;
//! 2. the actual cost corrects it by the difference, in the window it was taken from, if that still is; what
//!    is more than expected counts now where that is over;
//! 3. a fixed window starts with the first request and turns over by division, after any time without a
//!    request;
//! 4. a strict one rolls: no window-long span holds more than the limit, wherever it starts;
//! 5. what a correction spends above the limit is owed: the windows that follow have less, until it is paid.
//!    The mean therefore keeps the limit;
//! 6. what was spent stays spent when the limit or the window changes. Where it is not known when it was
//!    spent, the last send is when: the latest that is possible.
//!
//! Rule 3 has an edge: a full quota at the end of one window and another at the start of the next lie close
//! together. That is what most servers do themselves, and what `strict` is for. Amounts are whole millionths:
//! sums of doubles would drift over weeks.

use std::collections::VecDeque;

use crate::time::{Instant, Span, double, whole};

/// The sends of a rolling window that are remembered one by one. Beyond them, sends that are closer together
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

/// The consumed amounts.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// A fixed window.
    Fixed {
        /// When it started; `None` before the first request.
        opened: Option<Instant>,
        /// Consumed since; may be above the limit after a correction.
        used: Cost,
        /// The most of it that is owed where it is above the limit (rule 5).
        owed: Cost,
    },
    /// A rolling window: send times with the total consumed up to and with each, oldest first.
    Rolling {
        /// The sends; in times to come, what is owed (rule 5).
        sends: VecDeque<(Instant, Cost)>,
        /// The total before the first of them.
        before: Cost,
    },
}

impl Cost {
    /// No cost.
    pub const ZERO: Self = Self(0);
    /// The cost of a request without a stated one.
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

    /// This number of units.
    pub(crate) const fn whole(units: u32) -> Self {
        Self(Self::ONE.0 * units as u64)
    }

    /// `self × span ÷ of` millionths, and what remains.
    pub(crate) fn times_over(self, span: u64, of: u64) -> (u64, u64) {
        let total = u128::from(self.0) * u128::from(span);
        let of = u128::from(of);
        (u64::try_from(total / of).unwrap_or(u64::MAX), (total % of) as u64)
    }

    /// Without the cost of this many usual requests; zero at least.
    pub(crate) fn less(self, requests: u32) -> Self {
        self.minus_at_most(Self::whole(requests))
    }

    /// The difference; zero at least.
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
    /// No unit consumed yet.
    pub fn new(config: &Config) -> Self {
        if config.strict {
            Self::Rolling { sends: VecDeque::new(), before: Cost::ZERO }
        } else {
            Self::Fixed { opened: None, used: Cost::ZERO, owed: Cost::ZERO }
        }
    }

    /// The consumed part of the window that `now` is in.
    pub fn used(&self, config: &Config, now: Instant) -> Cost {
        match self {
            Self::Fixed { .. } => self.turned(config, now).map_or(Cost::ZERO, |(_, used, _)| used),
            Self::Rolling { sends, before } => {
                let over = sends.partition_point(|&(at, _)| at + config.window <= now);
                let gone = if over == 0 { *before } else { sends[over - 1].1 };
                sends.back().map_or(Cost::ZERO, |&(_, total)| total.minus(gone))
            }
        }
    }

    /// The rest of it.
    pub fn left(&self, config: &Config, now: Instant) -> Cost {
        Cost(config.limit.0.saturating_sub(self.used(config, now).0))
    }

    /// The first instant at which `cost` fits (rule 1); `None` for at once. A cost above the limit, which
    /// only a limit lowered later leaves waiting, fits when no unit is consumed.
    pub fn next(&self, config: &Config, now: Instant, cost: Cost) -> Option<Instant> {
        let cost = cost.min(config.limit);
        if cost <= self.left(config, now) {
            return None;
        }
        match self {
            Self::Fixed { .. } => {
                let (opened, used, owed) = self.turned(config, now)?;
                let over = used.minus_at_most(config.limit).min(owed).plus(cost).minus_at_most(config.limit);
                let windows = 1 + over.0.div_ceil(config.limit.0.max(1)); // 5
                Some(opened + Span::from_micros(config.window.micros().saturating_mul(windows)))
            }
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
            Self::Fixed { opened, used, .. } => {
                opened.get_or_insert(now);
                *used = used.plus(cost);
            }
            Self::Rolling { sends, .. } => {
                let grain = config.window.micros() / REMEMBERED as u64;
                let before = sends.partition_point(|&(at, _)| at <= now).checked_sub(1);
                if sends.len() >= REMEMBERED
                    && let Some((last, _)) = before.and_then(|before| sends.get_mut(before))
                    && now.since(*last).micros() < grain
                {
                    *last = now;
                }
                self.add(now, cost);
            }
        }
    }

    /// A request of this cost left at `sent`, from somewhere else. Where a fixed window began later than
    /// that, it counts all the same if it is less than a window ago: this process did not see the window
    /// begin.
    pub fn adopt(&mut self, config: &Config, now: Instant, sent: Instant, cost: Cost) {
        if sent + config.window <= now {
            return;
        }
        if let Self::Fixed { opened: None, .. } = self {
            self.on_send(config, sent, cost);
        } else {
            self.on_actual(config, now, sent, Cost::ZERO, cost);
        }
    }

    /// A request of this cost was granted at `granted` and left only at `sent_at`: a rolling window counts it
    /// from there. A fixed one has it where it was given. A send that was permitted longer ago than the
    /// window is forgotten there: another's is not taken in its place.
    pub fn on_sent_at(
        &mut self,
        config: &Config,
        now: Instant,
        (granted, sent_at): (Instant, Instant),
        cost: Cost,
    ) {
        if let Self::Rolling { .. } = self
            && sent_at > granted
        {
            let is_over = granted + config.window <= now;
            let taken = if is_over { cost } else { self.take(granted, cost) };
            self.add(sent_at, taken);
        }
    }

    /// The request that left at `sent` for `expected` turned out to cost `actual` (rule 2).
    pub fn on_actual(&mut self, config: &Config, now: Instant, sent: Instant, expected: Cost, actual: Cost) {
        self.turn(config, now);
        let (more, less) = (actual.minus_at_most(expected), expected.minus_at_most(actual));
        let over = self.used(config, now).plus(more).minus_at_most(config.limit).min(more);
        match self {
            Self::Fixed { opened: Some(opened), used, owed } => {
                let back = if *opened <= sent { less } else { Cost::ZERO };
                *used = used.plus(more).minus_at_most(back);
                *owed = owed.plus(more).minus_at_most(back);
            }
            Self::Fixed { .. } => {}
            Self::Rolling { .. } => {
                let is_over = sent + config.window <= now;
                let at = if is_over { now } else { sent };
                self.add(at, more.minus(over));
                self.owe(config, at, over);
                if !is_over {
                    self.give_back(now, sent, less);
                }
            }
        }
    }

    /// Puts what is above the limit where it will fit: after `at`, no more than the limit in each window
    /// (rule 5).
    fn owe(&mut self, config: &Config, at: Instant, over: Cost) {
        if over == Cost::ZERO {
            return;
        }
        let windows = (over.0 - 1) / config.limit.0.max(1);
        let whole = Cost(windows * config.limit.0);
        let after = |windows: u64| at + Span::from_micros(config.window.micros().saturating_mul(windows));
        self.add(after(windows), whole);
        self.add(after(windows + 1), over.minus(whole));
    }

    /// A debt is forgiven first.
    fn give_back(&mut self, now: Instant, sent: Instant, mut less: Cost) {
        while less > Cost::ZERO
            && let Self::Rolling { sends, .. } = self
            && let Some((at, _)) = sends.back().copied().filter(|&(at, _)| at > now)
        {
            less = less.minus(self.take(at, less));
            if let Self::Rolling { sends, .. } = self
                && less > Cost::ZERO
            {
                sends.pop_back();
            }
        }
        self.take(sent, less);
    }

    /// Counts a cost in a rolling window.
    fn add(&mut self, at: Instant, cost: Cost) {
        let Self::Rolling { sends, before } = self else { return };
        if cost == Cost::ZERO {
            return;
        }
        let place = sends.partition_point(|&(other, _)| other < at);
        if sends.get(place).is_none_or(|&(other, _)| other != at) {
            let total = if place == 0 { *before } else { sends[place - 1].1 };
            sends.insert(place, (at, total));
        }
        for (_, total) in sends.range_mut(place..) {
            *total = total.plus(cost);
        }
    }

    /// Takes at most a cost out of a rolling window, from what left at `sent`; gives what it was.
    fn take(&mut self, sent: Instant, cost: Cost) -> Cost {
        let Self::Rolling { sends, before } = self else { return Cost::ZERO };
        let mut at = sends.partition_point(|&(at, _)| at < sent);
        // Restored from a snapshot of elsewhere, it may stand a little off.
        if sends.get(at).is_none_or(|&(after, _)| {
            after != sent && at > 0 && { sent.since(sends[at - 1].0) < after.since(sent) }
        }) {
            at = at.saturating_sub(1);
        }
        let Some(&(_, total)) = sends.get(at) else { return Cost::ZERO };
        // No send costs less than zero.
        let taken = cost.min(total.minus(if at == 0 { *before } else { sends[at - 1].1 }));
        for (_, total) in sends.range_mut(at..) {
            *total = total.minus(taken);
        }
        taken
    }

    /// A fixed window as it is at `now`: when it opened, what is consumed of it, and what of that is owed at
    /// most (rules 3 and 5).
    fn turned(&self, config: &Config, now: Instant) -> Option<(Instant, Cost, Cost)> {
        let Self::Fixed { opened: Some(opened), used, owed } = *self else { return None };
        let window = config.window.micros().max(1);
        let windows = now.since(opened).micros() / window;
        if windows == 0 {
            return Some((opened, used, owed));
        }
        let paid = Cost(config.limit.0.saturating_mul(windows));
        let owed = used.minus_at_most(config.limit).min(owed).plus(config.limit).minus_at_most(paid);
        Some((opened + Span::from_micros(windows * window), owed, owed))
    }

    /// Whether the window that `now` is in is unused.
    pub fn is_new(&self, config: &Config, now: Instant) -> bool {
        match self {
            Self::Fixed { opened, .. } => {
                self.turned(config, now).is_none_or(|(at, used, _)| Some(at) != *opened && used == Cost::ZERO)
            }
            Self::Rolling { .. } => self.used(config, now) == Cost::ZERO,
        }
    }

    /// The consumed amounts of the windows that matter at `now`: how long ago, and how much, oldest first.
    /// Without what is owed.
    pub fn sends(&self, config: &Config, now: Instant) -> Vec<(Span, Cost)> {
        match self {
            _ if self.is_new(config, now) => Vec::new(),
            Self::Fixed { .. } => {
                let one = |(at, used, _): (_, Cost, _)| (now.since(at), used.minus(self.owed(config, now)));
                self.turned(config, now).map(one).into_iter().collect()
            }
            Self::Rolling { sends, before } => {
                let mut before = *before;
                let costs = sends
                    .iter()
                    .map(|&(at, total)| (at, total.minus(core::mem::replace(&mut before, total))));
                let known = costs.filter(|&(at, _)| at <= now && now < at + config.window);
                known.map(|(at, cost)| (now.since(at), cost)).collect()
            }
        }
    }

    /// The amount by which the windows after this one are reduced (rule 5).
    pub fn owed(&self, config: &Config, now: Instant) -> Cost {
        match self {
            Self::Fixed { .. } => self
                .turned(config, now)
                .map_or(Cost::ZERO, |(_, used, owed)| used.minus_at_most(config.limit).min(owed)),
            Self::Rolling { sends, before } => {
                let known = sends.partition_point(|&(at, _)| at <= now);
                let known = if known == 0 { *before } else { sends[known - 1].1 };
                sends.back().map_or(Cost::ZERO, |&(_, total)| total.minus(known))
            }
        }
    }

    /// The state that [`State::sends`] and [`State::owed`] described.
    pub fn from_sends(config: &Config, now: Instant, sends: &[(Span, Cost)], owed: Cost) -> Self {
        if !config.strict {
            let first = sends.first();
            let used = first.map_or(Cost::ZERO, |&(_, used)| used.plus(owed));
            return Self::Fixed { opened: first.map(|&(ago, _)| now - ago), used, owed };
        }
        let mut state = Self::new(config);
        for &(ago, cost) in sends {
            state.add(now - ago, cost);
        }
        state.owe(config, sends.last().map_or(now, |&(ago, _)| now - ago), owed);
        state
    }

    /// The quota `new`, with the consumed part of its window, when it takes the place of this one (rule 6);
    /// `last` is the scope's last send.
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
        Self::from_sends(new, now, &sends, self.owed(old, now))
    }

    fn turn(&mut self, config: &Config, now: Instant) {
        if let Some((at, now_used, now_owed)) = self.turned(config, now)
            && let Self::Fixed { opened, used, owed } = self
        {
            (*opened, *used, *owed) = (Some(at), now_used, now_owed);
        }
        if let Self::Rolling { sends, before } = self {
            while let Some(&(at, total)) = sends.front()
                && at + config.window <= now
            {
                *before = total;
                sends.pop_front();
            }
        }
    }
}
