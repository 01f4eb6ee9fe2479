//! The needs of an engine that is one of several in turn: for requests that another one had, and for outcomes
//! that another one will hear.
//!
//! A date is read where the response is, and travels as a span. Requests in flight are adopted when the
//! engine of a group changes, so no limit is given away twice.

use super::{
    Boundary,
    outcome::{Heard, Outcome, Settled, asked_ms, flags},
    scope_ids,
};
use crate::{
    Request, Span, SubmitError, Ticket, headers::kept_lines, observe::UNTOLD, policy::retry::Verdict,
};

/// The route of a request, for [`Boundary::route_by`] of the engine that has it.
pub fn route_of(method: &str, url: &str) -> String {
    autothrottle_reading::route::of(method, url)
}

impl Boundary {
    /// `submit_many` for a request that has waited for `waited_ms` where another engine had it: its place is
    /// by age.
    pub fn submit_again(
        &mut self,
        now: f64,
        scopes: &[f64],
        costs: &[f64],
        priority: f64,
        delay_ms: f64,
        waited_ms: f64,
    ) -> f64 {
        let scopes = scope_ids(scopes);
        let request = Request { costs, priority, delay_ms, waited_ms, ..Request::new(&scopes) };
        let ticket = self.engine.submit(self.now(now), request);
        self.ticket_or_refusal(ticket)
    }

    /// Takes in a request that another engine sent `sent_ago_ms` before now, when it had waited for
    /// `waited_ms`. A ticket, or the negative number of a refusal. See
    /// [`Engine::adopt`](crate::Engine::adopt).
    pub fn adopt(
        &mut self,
        now: f64,
        scopes: &[f64],
        costs: &[f64],
        priority: f64,
        waited_ms: f64,
        sent_ago_ms: f64,
    ) -> f64 {
        let scopes = scope_ids(scopes);
        let request = Request { costs, priority, waited_ms, ..Request::new(&scopes) };
        let ticket = if sent_ago_ms >= 0.0 {
            self.engine.adopt(self.now(now), request, Span::from_millis(sent_ago_ms))
        } else {
            Err(SubmitError::NotANumber)
        };
        self.ticket_or_refusal(ticket)
    }

    /// The same where it is known whether the snapshot that this engine goes on from has it.
    pub fn adopt_known(
        &mut self,
        now: f64,
        scopes: &[f64],
        (costs, priority, waited_ms): (&[f64], f64, f64),
        sent_ago: Span,
        is_counted: bool,
    ) -> f64 {
        let scopes = scope_ids(scopes);
        let request = Request { costs, priority, waited_ms, ..Request::new(&scopes) };
        let ticket = self.engine.adopt_known(self.now(now), request, sent_ago, is_counted);
        self.ticket_or_refusal(ticket)
    }

    /// How many wait in the scope that may be asked ahead, if one may: see
    /// [`Engine::may_send_ahead`](crate::Engine::may_send_ahead).
    pub fn may_send_ahead(&self, most: Span) -> Option<u32> {
        self.engine.may_send_ahead(most)
    }

    /// See [`Engine::send_ahead`](crate::Engine::send_ahead).
    pub fn send_ahead(&mut self, now: f64, until: f64) -> Option<(f64, crate::Instant)> {
        let (ticket, at) = self.engine.send_ahead(self.now(now), crate::Instant::from_millis(until)?)?;
        Some((ticket.to_number(), at))
    }

    /// See [`Engine::has_room`](crate::Engine::has_room).
    pub fn has_room(&self, ticket: f64) -> bool {
        Ticket::from_number(ticket).is_some_and(|ticket| self.engine.has_room(ticket))
    }

    /// The answer that [`Boundary::settle`] would give for a request that is in flight in another engine with
    /// the same settings; the milliseconds that the server asked to wait, NaN for none; and the outcome in
    /// numbers for [`Outcome::decode`] and [`Boundary::settle`] of that engine. This engine stays as it is.
    ///
    /// A record of a scope begins with its handle here.
    pub fn digest(&self, outcome: &Outcome) -> (Settled, f64, Vec<f64>) {
        let heard = outcome.heard().unwrap_or_default();
        let verdict = outcome.replayed(outcome.verdict_by(&self.engine.config().retry, Some(&heard)));
        let Heard { hint, asked, .. } = heard;
        let delay = if let Verdict::Again(delay) = verdict { delay.millis() } else { f64::NAN };
        let ms = |span: Option<Span>| span.map_or(f64::NAN, Span::millis);
        let kept = flags::KEEP_DELAY | flags::GOOD | flags::BAD | flags::NAMED_ONLY | flags::REPEATED;
        let kept = outcome.flags & kept;
        let said = [
            (hint.is_quota, flags::IS_QUOTA),
            (hint.is_rough, flags::IS_ROUGH),
            (hint.is_cached, flags::IS_CACHED),
            (hint.is_limit, flags::IS_LIMIT),
        ];
        let bits = said.iter().filter(|(is_said, _)| *is_said).fold(kept, |all, (_, flag)| all | flag);
        let bits = f64::from(bits | flags::HINTED | flags::DIGESTED);
        let left = hint.report.left;
        let (left, reset) = (left.map_or(f64::NAN, |(left, _)| left.units()), ms(left.map(|left| left.1)));
        let (pace, window) = (ms(hint.report.pace), ms(hint.report.window));
        let more = [delay, ms(hint.hold), left, reset, pace, window, ms(hint.asked)];
        // The process that heard it counts it.
        let answer = if outcome.answer == UNTOLD { f64::NAN } else { outcome.answer };
        let mut numbers = vec![answer, outcome.latency_ms, outcome.cost, bits];
        if !outcome.scopes.is_empty() || more.iter().any(|number| !number.is_nan()) {
            numbers.extend(more);
            numbers.extend(outcome.scopes);
        }
        (verdict.into(), asked_ms(verdict, asked), numbers)
    }

    /// The header fields of an answer that names budgets, for the engine that knows to which of them its
    /// request's route leads: there they take the place of what [`Boundary::digest`] read in them, and
    /// `numbers` say it. Empty where they name none. `is_split`: the scope is known to have several.
    pub fn digest_budgets(&self, outcome: &Outcome, is_split: bool, numbers: &mut [f64]) -> String {
        let is_read = !outcome.lines.is_empty() && outcome.flags & flags::HINTED == 0;
        let names_some = || outcome.read().is_some_and(|hints| !hints.names().0.is_empty());
        if !is_read || !(is_split || names_some()) {
            return String::new();
        }
        if let Some(bits) = numbers.get_mut(3) {
            let kept = outcome.flags & (flags::RESET_IS_MILLIS | flags::RETRY_AFTER_IS_MILLIS);
            *bits = f64::from(*bits as u32 & !flags::HINTED | kept);
        }
        kept_lines(outcome.lines)
    }

    /// [`Boundary::route`] by a route that was read elsewhere.
    pub fn route_by(&mut self, now: f64, ticket: f64, route: &str) {
        if let Some(ticket) = Ticket::from_number(ticket) {
            self.engine.route_by(self.now(now), ticket, route);
        }
    }

    fn ticket_or_refusal(&mut self, ticket: Result<Ticket, SubmitError>) -> f64 {
        ticket.map_or_else(|error| self.refuse(error), Ticket::to_number)
    }
}
