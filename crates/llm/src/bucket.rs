//! One budget in force: its pace, and how much of the vendor's bucket stays untouched.

use crate::rules::{Kind, MINUTE, Rules};

/// After a refusal the margin comes back at this share of the pace; the rest is for calls.
const RETURN: f64 = 0.5;
/// From the refusal on, what refills in this multiple of the wait that the server asked for is untouched.
const PATIENCE: f64 = 2.0;
/// Milliseconds by which the ways of two calls may differ.
const SKEW: f64 = 150.0;

/// One budget in force.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    pub limit: f64,
    pub per: f64,
    /// Of the limit, without the headroom.
    pub capacity: f64,
    /// The most of it at once.
    pub burst: f64,
    /// It is smaller than the vendor's: what is left of theirs never gives back.
    pub is_own: bool,
    pub is_sliding: bool,
    /// The least that stays untouched.
    least: f64,
    /// How much of the vendor's bucket stays untouched: more after a refusal, slowly less after answers.
    margin: f64,
    /// No refusal spoke of it yet.
    is_calm: bool,
    /// When the last refusal spoke of it, and how much stayed untouched from then.
    refused_at: f64,
    base: f64,
}

/// The pace of a scope. Times are in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// The amount of a window.
    pub limit: f64,
    /// Its length.
    pub window: f64,
    /// The most at once, where it refills evenly; `None`: no span of the window's length may hold more.
    pub burst: Option<f64>,
    /// The limit and the length of a window beside it.
    pub sixth: Option<(f64, f64)>,
}

/// How budgets of a model are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keeping {
    pub rules: &'static Rules,
    pub headroom: f64,
    pub is_sliding: bool,
}

impl Bucket {
    /// `before`: the one of another size, in whose place it is.
    pub fn new(
        keeping: &Keeping,
        kind: Kind,
        (limit, per): (f64, f64),
        is_typed: bool,
        before: Option<&Self>,
    ) -> Self {
        let Keeping { rules, headroom, .. } = keeping;
        // Requests of a minute may be counted by the second: evenly spaced they need less headroom. Windows
        // that roll have no level that could drift.
        let is_spread = kind == Kind::Requests && per == MINUTE && rules.is_spread;
        let is_sliding = keeping.is_sliding || kind == Kind::Day && is_typed && !rules.is_even_day;
        let part = if is_sliding {
            4.0
        } else if is_spread {
            2.0
        } else {
            1.0
        };
        let capacity = (limit * (1.0 - (1.0 - headroom) / part)).max(limit.min(1.0));
        Self {
            limit,
            per,
            capacity,
            burst: (if is_spread { capacity / 60.0 } else { capacity }).floor().max(1.0),
            is_own: is_typed || is_spread,
            is_sliding,
            least: (limit * (1.0 - headroom)).max(rules.rounding),
            // Other clients of the key show only in answers: the first flight does not take all that is left.
            margin: before.map_or(limit / 4.0, |it| it.margin),
            is_calm: before.is_none_or(|it| it.is_calm),
            refused_at: before.map_or(f64::NEG_INFINITY, |it| it.refused_at),
            base: before.map_or(0.0, |it| it.base),
        }
    }

    pub fn pace(&self, kind: Kind) -> Pace {
        let &Self { limit, per, capacity, burst, .. } = self;
        if !self.is_sliding {
            return Pace { limit: capacity, window: per, burst: Some(burst), sixth: None };
        }
        let is_minute = kind == Kind::Requests && per == MINUTE;
        let sixth = is_minute.then(|| ((limit / 6.0).floor().max(1.0), per / 6.0 + SKEW));
        // A request that left a moment later may arrive a moment earlier.
        Pace { limit: burst, window: per + SKEW, burst: None, sixth }
    }

    /// The amount in it, where all of it at once would wait for this time.
    pub fn room(&self, wait_ms: f64) -> f64 {
        self.burst - wait_ms * self.capacity / self.per
    }

    /// The amount that refills in this time at the vendor, in milliseconds.
    pub fn refilled(&self, ms: f64) -> f64 {
        ms * self.limit / self.per
    }

    /// The vendor had no room for a call: more of its bucket stays untouched. Refusals of one flight are one
    /// step.
    pub fn refused(&mut self, sent_at: f64, wait_ms: f64, now: f64) {
        let is_same = sent_at <= self.refused_at;
        let asked = PATIENCE * self.refilled(wait_ms);
        self.base = if is_same { self.base.max(asked) } else { asked };
        if !is_same {
            self.is_calm = false;
            self.margin = (self.margin + self.limit / 10.0).min(self.limit / 2.0);
            self.refused_at = now;
        }
    }

    /// An answer was read to its end.
    pub fn answered(&mut self) {
        let less = self.limit / if self.is_calm { 100.0 } else { 8000.0 };
        self.margin = self.least.max(self.margin - less);
    }

    /// The amount that stays untouched now. All of it at once would be silence for longer than the server
    /// asked.
    pub fn untouched(&self, now: f64) -> f64 {
        let back = RETURN * self.refilled(now - self.refused_at);
        self.margin.min(self.least.max(self.base) + back)
    }
}
