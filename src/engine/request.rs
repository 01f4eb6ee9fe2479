//! A request as it is handed in: which scopes it has, what it costs in each, and whether that makes sense.
//! Scopes are sorted and named once, and where one was named twice the larger cost counts.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::Engine;
use crate::{
    decision::{Cause, ScopeId, Ticket, Verdict},
    error::SubmitError,
    policy::quota::Cost,
    queue::{Costs, Need, Scopes, priority_key},
    time::{Instant, LONGEST_MS},
};

/// A request as the engine sees it: no URL, no body, only what decides when it may leave.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The scopes that must all agree; at least one. Order and repetitions do not matter.
    pub scopes: &'a [ScopeId],
    /// Expected cost in each scope, beside `scopes`; the last one holds for all further scopes, none means
    /// 1.
    pub costs: &'a [f64],
    /// Higher first. Any finite number.
    pub priority: f64,
    /// The request's own delay in milliseconds: not sent before so long after now.
    pub delay_ms: f64,
    /// How long it has waited already, in milliseconds, where another engine had it: its place by age.
    pub waited_ms: f64,
}

impl<'a> Request<'a> {
    /// A request of cost 1 and priority 0.
    pub const fn new(scopes: &'a [ScopeId]) -> Self {
        Self { scopes, costs: &[], priority: 0.0, delay_ms: 0.0, waited_ms: 0.0 }
    }

    /// Whether it says no more than its scopes.
    #[inline(always)]
    pub(super) fn is_plain(&self) -> bool {
        matches!(self.costs, [] | [1.0])
            && self.priority == 0.0
            && self.delay_ms == 0.0
            && self.waited_ms == 0.0
    }
}

/// When a request could be sent as things stand, and why not now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peek {
    /// The instant; `None` if it depends on something that has no time (an answer, a `resume`).
    pub at: Option<Instant>,
    /// The strictest obstacle now; `None` if it could be sent now.
    pub because: Option<Cause>,
}

impl Engine {
    /// When a request of these scopes and costs could be sent as things stand. Changes no state.
    pub fn peek(&self, now: Instant, request: Request) -> Result<Peek, SubmitError> {
        let now = self.to_engine_time(now);
        self.check_scopes(&request)?;
        let (scopes, costs) = Self::scopes_and_costs(&request)?;
        let mut strictest = self.global_block().map_or(Verdict::Go, Verdict::Blocked);
        let mut who = None;
        self.check_costs(&scopes, &costs)?;
        for (position, &index) in scopes.iter().enumerate() {
            let verdict = self.verdict(now, index, costs.of(position), scopes.len() == 1);
            if verdict > strictest {
                strictest = verdict;
                who = Some(self.registry.id(index));
            }
        }
        let at = match strictest {
            Verdict::Go => Some(now),
            Verdict::NotBefore(at, _) => Some(at),
            Verdict::Blocked(_) => None,
        };
        let because = strictest.reason().map(|reason| Cause { scope: who, reason });
        Ok(Peek { at: at.map(|at| at - self.epoch_offset), because })
    }

    /// When a request of a scope that there is not yet could be sent: only limits of the whole throttle
    /// count.
    pub fn peek_new(&self, now: Instant) -> Peek {
        let because = self.global_block().map(|reason| Cause { scope: None, reason });
        Peek { at: because.is_none().then(|| self.to_engine_time(now) - self.epoch_offset), because }
    }

    /// The scopes of a request and what it needs, if it makes sense and there is room.
    pub(super) fn checked(&self, request: &Request) -> Result<(Scopes, Need), SubmitError> {
        let is_full = self.config.max_waiting.is_some_and(|most| self.waiting() >= most);
        if let [id] = *request.scopes
            && let Some(entry) = self.registry.get(id)
            && let Ok(cost) = Self::cost(request, 0)
            && entry.scope.is_open_to(cost)
            && Self::has_numbers(request)
            && !is_full
        {
            // The usual case: no limit can refuse it, and it takes no share of any.
            let costs = Costs::Each(Reverse(cost));
            let priority = priority_key(request.priority);
            return Ok((Scopes::One([id.0.index]), Need { priority, share: !0, costs }));
        }
        let (scopes, need) = self.understood(request)?;
        if is_full {
            return Err(SubmitError::QueueFull);
        }
        self.check_costs(&scopes, &need.costs)?;
        for (position, &index) in scopes.iter().enumerate() {
            self.check_down(index, need.costs.of(position))?;
        }
        Ok((scopes, need))
    }

    /// Whether a request has a scope that is down: it looked whether that is back.
    pub fn is_down(&self, ticket: Ticket) -> bool {
        self.queue.get(ticket).is_some_and(|entry| {
            let scopes = self.queue.scopes_of(entry);
            scopes.iter().any(|&scope| self.registry[scope].scope.down(self.now).is_some())
        })
    }

    /// Of a scope that is down only one request at a time is let through, and only at once.
    fn check_down(&self, index: u32, cost: Cost) -> Result<(), SubmitError> {
        let entry = &self.registry[index];
        let Some(span) = entry.scope.down(self.now) else { return Ok(()) };
        let is_alone = entry.waiters.waiting == 0 && entry.scope.slots.in_flight() == 0;
        if is_alone && entry.scope.verdict(self.now, cost) == Verdict::Go {
            return Ok(());
        }
        Err(SubmitError::ScopeDown { scope: self.registry.id(index), span })
    }

    /// Whether a request of these costs could ever leave.
    fn check_costs(&self, scopes: &[u32], costs: &Costs) -> Result<(), SubmitError> {
        for (position, &index) in scopes.iter().enumerate() {
            if let Some(setting) = self.registry[index].scope.forbids(costs.of(position)) {
                return Err(SubmitError::CostExceedsQuota { scope: self.registry.id(index), setting });
            }
        }
        Ok(())
    }

    /// The scopes of a request and what it needs, if it makes sense.
    pub(super) fn understood(&self, request: &Request) -> Result<(Scopes, Need), SubmitError> {
        if !Self::has_numbers(request) {
            return Err(SubmitError::NotANumber);
        }
        let priority = priority_key(request.priority);
        self.check_scopes(request)?;
        let (scopes, costs) = Self::scopes_and_costs(request)?;
        let shares = scopes.iter().enumerate();
        let share = shares.map(|(position, &index)| self.registry[index].scope.share(costs.of(position)));
        let share = !share.max().unwrap_or(0);
        Ok((scopes, Need { priority, share, costs }))
    }

    /// Whether its spans and its priority are some.
    #[inline]
    fn has_numbers(request: &Request) -> bool {
        let is_span = |ms: f64| (0.0..=LONGEST_MS).contains(&ms);
        is_span(request.delay_ms) && is_span(request.waited_ms) && request.priority.is_finite()
    }

    /// The cost of a request in the scope that it names in this place.
    #[inline(always)]
    fn cost(request: &Request, position: usize) -> Result<Cost, SubmitError> {
        match request.costs.get(position).or(request.costs.last()) {
            None | Some(1.0) => Ok(Cost::ONE),
            Some(&units) => Cost::from_units(units).ok_or(SubmitError::NotANumber),
        }
    }

    fn check_scopes(&self, request: &Request) -> Result<(), SubmitError> {
        let are_known = !request.scopes.is_empty() && request.scopes.iter().all(|&id| self.knows(id));
        if are_known { Ok(()) } else { Err(SubmitError::UnknownScope) }
    }

    /// Sorted scopes without repetitions, and what the request costs in each.
    pub(super) fn scopes_and_costs(request: &Request) -> Result<(Scopes, Costs), SubmitError> {
        if let [scope] = request.scopes {
            return Ok((Scopes::One([scope.0.index]), Costs::Each(Reverse(Self::cost(request, 0)?))));
        }
        // A heap sorts as well, and is a tenth of the library's sort. Of a scope's costs the highest comes
        // first.
        let mut pairs = BinaryHeap::with_capacity(request.scopes.len());
        for (position, scope) in request.scopes.iter().enumerate() {
            pairs.push((scope.0.index, Reverse(Self::cost(request, position)?)));
        }
        let mut pairs: Vec<_> = pairs.into_sorted_vec();
        pairs.dedup_by_key(|pair| pair.0);
        let costs = if pairs.iter().all(|pair| pair.1 == pairs[0].1) {
            Costs::Each(pairs[0].1)
        } else {
            Costs::Many(pairs.iter().map(|pair| pair.1).collect())
        };
        let scopes = match &pairs[..] {
            [(scope, _)] => Scopes::One([*scope]),
            _ => Scopes::Many(pairs.iter().map(|pair| pair.0).collect()),
        };
        Ok((scopes, costs))
    }
}
