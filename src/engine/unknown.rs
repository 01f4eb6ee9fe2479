//! Requests whose budget is not known, beside the budgets of their server.
//!
//! Rules:
//! 1. while one is on its way, its cost is kept back in each budget. While requests of this kind wait,
//!    [`KEPT`] are kept back in each, too;
//! 2. one leaves once every budget has room for it and for its share of those on their way. [`PATIENCE`]
//!    without news ends that;
//! 3. while a budget is used up, one of them is on its way at a time. If it is refused, and no budget is
//!    there again before, the next waits for [`PATIENCE`];
//! 4. one that says no route waits for all.
//!
//! Of a server that has named more than [`LOOKED_AT`] budgets, those named last are looked at: the budget of
//! a new route is hardly one of the others, and a decision costs no more.

use super::Engine;
use crate::{
    decision::{Reason, ScopeId, Verdict},
    policy::quota::Cost,
    scope::registry::{Entry, Role},
    time::{Instant, Span},
};

/// With one, each route that is learned takes the last of its budget, and the next waits for a window.
const KEPT: u32 = 2;
/// Discord's buckets are there again within seconds. A longer wait for a budget that is likely another's
/// (GitHub's search) is in vain: the first answer will say.
pub(super) const PATIENCE: Span = Span::from_micros(5_000_000);

/// The most budgets that keep a request of this kind.
const LOOKED_AT: usize = 64;

impl Engine {
    /// The verdict of one scope for a request of this cost (rule 2 of `budgets`, and those above).
    /// `is_alone`: the request has no other.
    #[inline]
    pub(super) fn verdict(&self, now: Instant, scope: u32, cost: Cost, is_alone: bool) -> Verdict {
        let entry = &self.registry[scope];
        match entry.role {
            Role::Plain if is_alone && self.has_budgets => self.verdict_alone(now, scope, cost),
            Role::Plain => entry.scope.verdict(now, cost),
            _ => self.verdict_inside(now, entry, cost),
        }
    }

    #[cold]
    fn verdict_alone(&self, now: Instant, scope: u32, cost: Cost) -> Verdict {
        let verdict = self.registry[scope].scope.verdict(now, cost);
        if !self.is_split(scope) {
            return verdict;
        }
        let budgets = self.registry.budgets(scope);
        let used_up = budgets.filter_map(|budget| self.registry[budget].scope.reported_next(now, cost)); // 4
        verdict.and_not_before(now, used_up.max(), Reason::Quota)
    }

    #[cold]
    fn verdict_inside(&self, now: Instant, entry: &Entry, cost: Cost) -> Verdict {
        let (of, verdict) = match entry.role {
            Role::Budget(of, _) => (of, entry.scope.verdict(now, cost)),
            Role::Route(of, None) if entry.scope.slots.in_flight() == 0 => (of, Verdict::Go),
            Role::Route(_, None) => return Verdict::Blocked(Reason::Concurrency),
            // Else its budgets speak for it.
            _ => return Verdict::not_before(now, entry.scope.hold_until(now), Reason::Hold),
        };
        let Some(scope) = self.known(of).filter(|_| cost > Cost::ZERO) else { return verdict };
        let Some(family) = self.registry[scope].family.as_deref() else { return verdict };
        let budgets = || self.registry.latest_budgets(scope).take(LOOKED_AT);
        let is_open = !matches!(entry.role, Role::Budget(..)) && verdict == Verdict::Go;
        if is_open && (family.unknown > 0 || now < family.vain) {
            let used_up = budgets().filter_map(|budget| self.registry[budget].scope.reported_next(now, cost));
            match used_up.max() {
                Some(_) if family.unknown > 0 => return Verdict::Blocked(Reason::Quota), // 3
                Some(at) if at > now + PATIENCE => return Verdict::NotBefore(family.vain, Reason::Quota),
                _ => {}
            }
        }
        let until = family.exploring + PATIENCE;
        let is_patient = family.explorers > 0 && now < until;
        let within = |verdict| match verdict {
            Verdict::Go => Verdict::Go,
            Verdict::NotBefore(at, reason) => Verdict::NotBefore(at.min(until), reason),
            Verdict::Blocked(reason) => Verdict::NotBefore(until, reason),
        };
        let unknown = family.unknown;
        if matches!(entry.role, Role::Budget(..)) {
            let verdict = entry.scope.verdict(now, cost.plus(Cost::whole(unknown)));
            if verdict != Verdict::Go || !is_patient {
                return verdict;
            }
            return within(entry.scope.verdict(now, cost.plus(Cost::whole(unknown + KEPT))));
        }
        if !is_patient {
            return verdict;
        }
        let many = family.many.max(1) as u32;
        let cost = cost.plus(Cost::whole(unknown / many));
        let all = budgets().map(|budget| self.registry[budget].scope.verdict(now, cost));
        // One that takes longer is likely another's.
        let is_near = |verdict: &Verdict| !matches!(verdict, Verdict::NotBefore(at, _) if *at > until);
        within(all.filter(is_near).max().unwrap_or(Verdict::Go))
    }

    /// A request of these scopes leaves, or has ended: whether it counts as one whose budget is not known.
    #[inline]
    pub(super) fn count_unknown(&mut self, scopes: &[u32], leaves: bool) {
        if self.has_budgets {
            self.count_unknown_of_each(scopes, leaves);
        }
    }

    #[cold]
    fn count_unknown_of_each(&mut self, scopes: &[u32], leaves: bool) {
        for &scope in scopes {
            if self.is_split(scope) {
                self.count_unknown_of(scope, scopes, leaves);
            }
        }
    }

    fn count_unknown_of(&mut self, scope: u32, scopes: &[u32], leaves: bool) {
        if scopes.iter().any(|&other| matches!(self.registry[other].role, Role::Budget(..))) {
            return;
        }
        let Some(family) = &mut self.registry[scope].family else { return };
        family.unknown = if leaves { family.unknown + 1 } else { family.unknown.saturating_sub(1) };
        if !leaves {
            self.refresh_inside(scope);
        }
    }

    /// A route more waits, or less: whether its budget is not known.
    #[inline]
    pub(super) fn count_explorers(&mut self, scope: u32, more: i32) {
        if let Role::Route(of, None) = self.registry[scope].role {
            self.count_explorers_of(of, more);
        }
    }

    #[cold]
    pub(super) fn count_explorers_of(&mut self, of: ScopeId, more: i32) {
        let Some(scope) = self.known(of) else { return };
        let now = self.now;
        let Some(family) = &mut self.registry[scope].family else { return };
        if family.explorers == 0 {
            family.exploring = now;
        }
        family.explorers = family.explorers.saturating_add_signed(more);
        if family.explorers == 0 {
            self.refresh_inside(scope);
        }
    }

    /// A route was learned: the others are patient for as long again.
    pub(super) fn progress(&mut self, of: ScopeId) {
        let now = self.now;
        let Some(scope) = self.known(of) else { return };
        if let Some(family) = &mut self.registry[scope].family
            && now < family.exploring + PATIENCE
        {
            family.exploring = now;
        }
    }

    /// Less is kept back, or more is there.
    pub(super) fn refresh_inside(&mut self, scope: u32) {
        if self.waiting() == 0 {
            return;
        }
        let mut next = self.registry.budgets(scope).next();
        while let Some(index) = next {
            next = self.registry.budget_after(index);
            self.refresh_waiting(index);
        }
        for place in 0_usize.. {
            let Some(family) = self.registry[scope].family.as_deref() else { return };
            let Some(&id) = family.open.get(place).filter(|_| family.explorers > 0) else { return };
            if let Some(index) = self.known(id) {
                self.refresh_waiting(index);
            }
        }
    }

    fn refresh_waiting(&mut self, index: u32) {
        if !self.registry[index].waiters.is_quiet() {
            self.refresh(index);
        }
    }
}
