//! The budgets of one model and key: what a call is charged before it leaves, and what is corrected after.
//!
//! Each budget is a scope with a rate. Two accounts are kept of it: what the vendor has charged by now, and
//! what open calls are still going to use. The scope holds the difference, so a call leaves only when
//! `level − reserved` has room for it.
//!
//! A reservation refills while its call is open; returning all of it would credit the bucket twice. The level
//! therefore never stands above the whole minus all reservations. A `remaining` of a call that took a minute
//! may be as old as the call: a correction is made only by what is wrong at both ends of it. Other clients
//! may have the same key. And vendors that charge `max_tokens` whatever comes out give back no token by
//! usage.
//!
//! After each verb the host does what is due. It configures scopes by [`Budgets::changes`]. It looks when all
//! of each budget that [`Budgets::asks`] names could leave, and gives those waits to [`Budgets::carry`]. That
//! says what each call costs from now on. All corrections of a verb come at once: no request that waits
//! leaves between two of them.

use alloc::vec::Vec;

use crate::{
    Usage, Vendor,
    bucket::{Bucket, Keeping, Pace},
    call::{Call, Charge, KINDS, Part, Plan, Size},
    ratio::{Ratios, SHARE, follow},
    rules::{DAY, Kind, MINUTE, Reported, Rules},
};

/// Milliseconds within which calls may overtake each other.
const MOMENT: f64 = 100.0;
/// Tokens a second of a model that did not write yet.
const USUAL_SPEED: f64 = 50.0;
/// Of an answer, before one was seen.
const USUAL_OUTPUT: f64 = 1000.0;
/// An answer that is not streamed is charged by its time, a quarter too fast.
const AHEAD: f64 = 1.25;
/// Limits as a user types them: requests a minute and a day; tokens, input and output a minute.
const TYPED: [(Kind, f64); 5] = [
    (Kind::Requests, MINUTE),
    (Kind::Day, DAY),
    (Kind::Tokens, MINUTE),
    (Kind::Input, MINUTE),
    (Kind::Output, MINUTE),
];

/// The settings of a model.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The vendor whose rules hold; `None` for requests that ask no model.
    pub vendor: Option<Vendor>,
    /// Limits that the user typed, or 0: requests a minute and a day; tokens, input and output a minute.
    pub limits: [f64; 5],
    /// Whether no span of a window's length may hold more; `None`: as the vendor has it.
    pub is_sliding: Option<bool>,
    /// Whether input from the vendor's cache is free; `None`: as the vendor has it.
    pub is_cached_free: Option<bool>,
    /// The share of each limit that is used.
    pub headroom: f64,
    /// Whether `max_tokens` is reserved, and not what usually comes out; `None`: as the vendor charges.
    pub is_max: Option<bool>,
    /// A counter of the user's is exact: no ratio is learned.
    pub is_counted: bool,
    /// The slots of each scope.
    pub concurrency: f64,
}

/// Another pace of a budget.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Which one.
    pub kind: Kind,
    /// Its slots.
    pub slots: f64,
    /// `None`: it stays.
    pub pace: Option<Pace>,
}

/// An entry that waits for the rooms of buckets.
#[derive(Clone, Copy, Debug)]
enum Due {
    /// The call costs so much.
    Charge(u32, Kind, f64),
    /// The vendor says that so much is left.
    Correct(u32, Kind, f64),
    /// The call leaves.
    Leave(u32),
}

/// The budgets of one model and key.
#[derive(Clone, Debug)]
pub struct Budgets {
    /// Whether limits are known: typed, or named by an answer.
    pub is_known: bool,
    /// Whether input from the vendor's cache is free.
    pub is_cached_free: bool,
    /// The budgets that its vendor has, and those that were typed.
    pub kinds: Vec<Kind>,
    keeping: Keeping,
    is_max: bool,
    is_counted: bool,
    concurrency: f64,
    /// Typed limits, by the millisecond.
    typed: [f64; KINDS],
    buckets: [Option<Bucket>; KINDS],
    /// Open calls, by their numbers.
    calls: Vec<Call>,
    last: u32,
    due: Vec<Due>,
    changes: Vec<Change>,
    ratios: Ratios,
    is_open: bool,
    usual_output: f64,
    outputs: f64,
    speed: f64,
    /// The share of input that is charged; the rest comes from the vendor's cache.
    uncached: f64,
}

impl Budgets {
    /// Those of one model and key.
    pub fn new(settings: &Settings) -> Self {
        let rules = Rules::of(settings.vendor);
        let mut budgets = Self {
            is_known: false,
            is_cached_free: settings.is_cached_free.unwrap_or(rules.is_cached_free),
            kinds: rules.kinds.to_vec(),
            keeping: Keeping {
                rules,
                headroom: settings.headroom,
                is_sliding: settings.is_sliding.unwrap_or(rules.is_sliding),
            },
            is_max: settings.is_max.unwrap_or(rules.is_max),
            is_counted: settings.is_counted,
            concurrency: settings.concurrency,
            typed: [f64::INFINITY; KINDS],
            buckets: [None; KINDS],
            calls: Vec::new(),
            last: 0,
            due: Vec::new(),
            changes: Vec::new(),
            ratios: Ratios::default(),
            is_open: false,
            usual_output: USUAL_OUTPUT,
            outputs: 0.0,
            speed: USUAL_SPEED,
            uncached: 1.0,
        };
        budgets.is_known = settings.limits.iter().any(|&limit| limit > 0.0);
        budgets.is_open = budgets.is_known;
        for (at, &(kind, per)) in TYPED.iter().enumerate() {
            let limit = settings.limits[at];
            if limit > 0.0 {
                if !budgets.has(kind) {
                    budgets.kinds.push(kind);
                }
                budgets.typed[kind as usize] = limit / per;
                budgets.set(kind, limit, per, true);
            }
        }
        for at in 0..budgets.kinds.len() {
            let kind = budgets.kinds[at];
            if budgets.buckets[kind as usize].is_none() {
                budgets.change(kind, None);
            }
        }
        budgets
    }

    /// Whether true usage counts: the vendor charges it, and a limit of tokens is known.
    pub fn needs_usage(&self) -> bool {
        self.keeping.rules.is_actual
            && Kind::ALL.iter().any(|&kind| !kind.is_count() && self.buckets[kind as usize].is_some())
    }

    /// The changes of scopes, in their order.
    pub fn changes(&mut self) -> Vec<Change> {
        core::mem::take(&mut self.changes)
    }

    /// The cost of a call in each scope, as far as it is known.
    pub fn plan(&self, size: &Size) -> Plan {
        let (ratio, doubt) = if self.is_counted || self.keeping.rules.is_by_characters {
            (1.0, 0.0)
        } else {
            self.ratios.of(size.bytes)
        };
        let input = (self.estimate(size) * ratio + size.tokens).ceil();
        // A margin for errors of the estimate is reserved too, and comes back with the answer.
        let padded = (input * (1.0 + 2.0 * doubt)).ceil();
        let usual = if self.is_max { size.bound.unwrap_or(0.0) } else { self.usual_output.ceil() };
        let output = size.bound.map_or(usual, |bound| usual.min(bound));
        let costs = Kind::ALL.map(|kind| {
            let cost = self.cost(kind, padded, output);
            match &self.buckets[kind as usize] {
                // Where true usage counts, one that is larger than all waits for all, and owes the rest.
                Some(it) if self.keeping.rules.is_actual || cost <= it.limit => cost.min(it.burst),
                _ => cost,
            }
        });
        Plan { input, output, costs }
    }

    /// The call leaves. Gives its number.
    pub fn begin(&mut self, now: f64, size: Size, plan: &Plan) -> u32 {
        for at in 0..self.calls.len() {
            let call = &self.calls[at];
            if !call.is_stream {
                let written = AHEAD * call.written_so_far(now, self.speed);
                self.wrote(call.id, None, written);
            }
        }
        self.last += 1;
        let mut call = Call::new(self.last, size, now, plan);
        // It had to have room for all of its input, and is charged what is usually not from the cache.
        if self.uncached < 0.98 {
            call.input = plan.input * self.uncached;
            for kind in [Kind::Input, Kind::Tokens] {
                let cost = self.cost(kind, call.input * 1.2, plan.output);
                if cost < plan.costs[kind as usize] {
                    self.due.push(Due::Charge(call.id, kind, cost));
                }
            }
        }
        self.due.push(Due::Leave(call.id));
        self.calls.push(call);
        self.last
    }

    /// More was written: what is beyond the estimate is charged as the vendor charges it, at once. Says
    /// whether something is due.
    pub fn wrote(&mut self, call: u32, input: Option<f64>, written: f64) -> bool {
        let before = self.due.len();
        let rules = self.keeping.rules;
        let Some(at) = self.at(call) else { return false };
        let it = &mut self.calls[at];
        if it.is_stream {
            it.written = it.written.max(written);
        }
        if !rules.is_actual {
            return false;
        }
        if let Some(input) = input.filter(|&input| input != it.input) {
            it.input = input;
            self.due.push(Due::Charge(call, Kind::Input, input));
        }
        for kind in [Kind::Output, Kind::Tokens] {
            let it = &self.calls[at];
            let cost = self.cost(kind, it.input, written);
            // In steps, not with each word.
            if self.has(kind) && cost > it.parts[kind as usize].charged * 1.05 + 20.0 {
                self.due.push(Due::Charge(call, kind, cost));
            }
        }
        self.due.len() > before
    }

    /// A budget as the headers of an answer tell it. `wait`: of a refusal, milliseconds.
    pub fn report(&mut self, now: f64, call: u32, reported: &Reported, wait: Option<f64>) {
        let Reported { kind, limit, left, per } = *reported;
        let Some(at) = self.at(call).filter(|_| self.has(kind)) else { return };
        let is_lower = limit / per < self.typed[kind as usize] * 0.999;
        if is_lower {
            self.set(kind, limit, per, false);
        }
        self.is_known = true;
        let Some(left) = left else { return };
        if let Some(wait) = wait.filter(|_| left < self.calls[at].parts[kind as usize].charged) {
            self.step(now, at, kind, wait);
        }
        self.due.push(Due::Correct(call, kind, left));
    }

    /// A good answer came: others need not wait for it to tell limits.
    pub fn answered(&mut self, call: u32, is_stream: bool) {
        if let Some(at) = self.at(call) {
            self.calls[at].is_stream = is_stream;
        }
        if !self.is_open {
            self.is_open = true;
            self.change(Kind::Requests, None);
        }
    }

    /// No answer will come. It keeps what it was to take, unless the server never had it.
    pub fn gone(&mut self, call: u32, was_sent: bool) {
        self.close(call);
        if !was_sent {
            self.charge_all(call, 0.0, 0.0, true);
        }
    }

    /// It was not run: no token was spent. `wait`: milliseconds until it would have room in the budget that
    /// has none.
    pub fn refused(&mut self, now: f64, call: u32, kind: Option<Kind>, wait: f64) {
        self.close(call);
        let Some(at) = self.at(call) else { return };
        if let Some(kind) = kind.filter(|kind| !kind.is_count())
            && let Some(bucket) = &self.buckets[kind as usize]
        {
            let room = self.calls[at].parts[kind as usize].charged - bucket.refilled(wait);
            self.step(now, at, kind, wait);
            self.due.push(Due::Correct(call, kind, room));
        }
        self.charge_all(call, 0.0, 0.0, false);
    }

    /// The body is over. Whether what it took had to be estimated.
    pub fn ended(&mut self, now: f64, call: u32, usage: &Usage, written: f64, is_whole: bool) -> bool {
        self.close(call);
        let Some(at) = self.at(call) else { return false };
        let Call { size, sent_at, .. } = self.calls[at];
        let it = &self.calls[at];
        let input = usage.input.unwrap_or(it.input);
        let output = usage.output.unwrap_or(if it.is_stream { written } else { it.output });
        if usage.input.is_some() {
            let all = input + usage.free;
            self.ratios.learn(size.bytes, self.estimate(&size), all - size.tokens);
            if all > 0.0 {
                self.uncached += (input / all - self.uncached) * SHARE;
            }
        }
        if usage.output.is_some() && is_whole {
            let took = (now - sent_at).max(1.0);
            self.outputs += 1.0;
            self.usual_output += (output - self.usual_output) / self.outputs.min(50.0);
            self.usual_output = self.usual_output.max(1.0);
            if output > 20.0 {
                self.speed = follow(self.speed, output / took * 1000.0, self.outputs);
            }
        }
        if self.keeping.rules.is_actual {
            self.charge_all(call, input, output, false);
        }
        self.buckets.iter_mut().flatten().for_each(Bucket::answered);
        size.bound != Some(0.0) && usage.output.is_none()
    }

    /// The amount of a budget whose wait [`Budgets::carry`] wants to know; `None` where it does not matter.
    pub fn asks(&self, kind: Kind) -> Option<f64> {
        let concerns = |due: &Due| match *due {
            Due::Charge(_, of, _) | Due::Correct(_, of, _) => of == kind,
            Due::Leave(_) => true,
        };
        let bucket = self.buckets[kind as usize].filter(|it| !it.is_sliding)?;
        self.due.iter().any(concerns).then_some(bucket.burst)
    }

    /// Carries out what is due. `waits`: the milliseconds until the amount that [`Budgets::asks`] says could
    /// leave, by the number of its kind; NaN where another limit hides it.
    pub fn carry(&mut self, now: f64, waits: &[f64; KINDS]) -> Vec<Charge> {
        let mut rooms = Kind::ALL.map(|kind| {
            let wait = waits[kind as usize];
            let bucket = self.buckets[kind as usize].filter(|it| !it.is_sliding && wait.is_finite());
            bucket.map_or(f64::NAN, |it| it.room(wait))
        });
        for due in core::mem::take(&mut self.due) {
            match due {
                Due::Charge(call, kind, cost) => {
                    let Some(at) = self.at(call) else { continue };
                    self.charge(now, at, kind, cost, &mut rooms[kind as usize]);
                }
                Due::Correct(call, kind, left) => {
                    let Some(at) = self.at(call) else { continue };
                    self.correct(now, at, kind, left, &mut rooms[kind as usize]);
                }
                Due::Leave(call) => self.leaves(now, call, &rooms),
            }
        }
        let mut charges = Vec::new();
        for call in &mut self.calls {
            for &kind in &self.kinds {
                let part = &mut call.parts[kind as usize];
                if part.cost != part.reported {
                    part.reported = part.cost;
                    charges.push(Charge { call: call.id, kind, cost: part.cost });
                }
            }
        }
        self.calls.retain(|call| call.is_open);
        charges
    }

    fn at(&self, call: u32) -> Option<usize> {
        self.calls.binary_search_by_key(&call, |call| call.id).ok()
    }

    fn close(&mut self, call: u32) {
        if let Some(at) = self.at(call) {
            self.calls[at].is_open = false;
        }
    }

    /// All tokens that it took are known; with `all` it is not counted either.
    fn charge_all(&mut self, call: u32, input: f64, output: f64, all: bool) {
        for at in 0..self.kinds.len() {
            let kind = self.kinds[at];
            if !kind.is_count() {
                self.due.push(Due::Charge(call, kind, self.cost(kind, input, output)));
            } else if all {
                self.due.push(Due::Charge(call, kind, 0.0));
            }
        }
    }

    fn has(&self, kind: Kind) -> bool {
        self.kinds.contains(&kind)
    }

    /// Another pace has all slots, unless it says them, too.
    fn change(&mut self, kind: Kind, pace: Option<Pace>) {
        let slots = if kind == Kind::Requests && !self.is_open { 1.0 } else { self.concurrency };
        self.changes.push(Change { kind, slots, pace });
    }

    fn cost(&self, kind: Kind, input: f64, output: f64) -> f64 {
        match kind {
            Kind::Other | Kind::Requests | Kind::Day => 1.0,
            Kind::Input => input,
            Kind::Output => output,
            Kind::Tokens | Kind::Project if self.keeping.rules.is_larger => input.max(output),
            Kind::Tokens | Kind::Project => input + output,
        }
    }

    fn estimate(&self, size: &Size) -> f64 {
        (if self.keeping.rules.is_by_characters { size.characters } else { size.bytes }) / 4.0
    }

    /// A budget of another size is in force.
    fn set(&mut self, kind: Kind, limit: f64, per: f64, is_typed: bool) {
        let before = &self.buckets[kind as usize];
        if before.is_some_and(|before| before.limit == limit && before.per == per) {
            return;
        }
        let bucket = Bucket::new(&self.keeping, kind, (limit, per), is_typed, before.as_ref());
        self.change(kind, Some(bucket.pace(kind)));
        self.buckets[kind as usize] = Some(bucket);
    }

    fn step(&mut self, now: f64, at: usize, kind: Kind, wait: f64) {
        if let Some(bucket) = self.buckets[kind as usize].as_mut().filter(|_| !kind.is_count()) {
            bucket.refused(self.calls[at].sent_at, wait, now);
        }
    }

    /// The tokens that a vendor has not charged yet, if it charges as it writes.
    fn reserved(&self, kind: Kind, now: f64) -> f64 {
        if !self.keeping.rules.is_actual || kind.is_count() {
            return 0.0;
        }
        let open = self.calls.iter().filter(|call| call.is_open);
        open.map(|call| {
            let written = if call.is_stream { call.written } else { call.written_so_far(now, self.speed) };
            (call.parts[kind as usize].charged - self.cost(kind, call.input, written)).max(0.0)
        })
        .sum()
    }

    /// Takes so much more from a budget than the call costs; negative gives back.
    fn take(&mut self, at: usize, kind: Kind, more: f64, room: &mut f64) {
        let burst = self.buckets[kind as usize].map_or(f64::NAN, |it| it.burst);
        let part = &mut self.calls[at].parts[kind as usize];
        part.corrected += more;
        let cost = (part.charged + part.corrected).max(0.0);
        let left = *room - (cost - part.cost);
        // A bucket that is full takes no more back.
        let lost = (left - burst).max(0.0);
        part.corrected += lost;
        part.cost = cost + lost;
        *room = left - lost;
    }

    fn charge(&mut self, now: f64, at: usize, kind: Kind, cost: f64, room: &mut f64) {
        if !self.has(kind) {
            return;
        }
        self.calls[at].parts[kind as usize].charged = cost;
        self.take(at, kind, 0.0, room);
        // The vendor's bucket does not rise above the whole while a call is only reserved.
        let reserved = self.reserved(kind, now);
        let over = *room + reserved - self.buckets[kind as usize].map_or(0.0, |it| it.capacity);
        if reserved > 0.0 && over > 1.0 {
            self.take(at, kind, over, room);
        }
    }

    /// Notes the levels by our own accounts, without the headroom; and the calls of this moment.
    fn leaves(&mut self, now: f64, call: u32, rooms: &[f64; KINDS]) {
        let Some(own) = self.at(call) else { return };
        for at in 0..self.kinds.len() {
            let kind = self.kinds[at];
            let level = rooms[kind as usize] + self.reserved(kind, now);
            let (before, rest) = self.calls.split_at_mut(own);
            let part = &mut rest[0].parts[kind as usize];
            part.level = level;
            for mate in before.iter_mut().filter(|mate| mate.is_open && mate.sent_at > now - MOMENT) {
                let theirs = &mut mate.parts[kind as usize];
                part.mates += theirs.charged;
                theirs.mates += part.charged;
            }
        }
    }

    /// Follows what the vendor says is left, by what is wrong both when the call left and now.
    fn correct(&mut self, now: f64, at: usize, kind: Kind, left: f64, room: &mut f64) {
        let Some(bucket) = self.buckets[kind as usize] else { return };
        let Part { level: then, mates, .. } = self.calls[at].parts[kind as usize];
        let level = *room + self.reserved(kind, now);
        if level.is_nan() {
            return;
        }
        let before = if then.is_nan() { level } else { then };
        let is_own = f64::from(u8::from(bucket.is_own));
        let (rounding, kept) = if kind.is_count() {
            (is_own, 1.0 - is_own)
        } else {
            (self.keeping.rules.rounding, bucket.untouched(now))
        };
        let real = left - kept;
        let over = level.min(before) - real - rounding;
        let under = real - level.max(before + mates) - rounding;
        if over > 0.0 {
            self.take(at, kind, over, room);
        } else if under > 0.0 && !bucket.is_own {
            self.take(at, kind, -under, room);
        }
    }
}
