//! How a request ended, as each policy of its scope is to hear it.
//!
//! A refusal with `Retry-After` is a step of backoff and a hold. Each is worked out from the state before the
//! other, so one answer does not count twice.

use super::{Scope, learned::ServerState};
use crate::{
    config::Typed,
    decision::Verdict,
    feedback::{Answer, Feedback, Hint},
    observe::{Settled, Wait},
    policy::{Ended, denied, jitter, quota::Cost, stall},
    rng::Rng,
    time::{Instant, LONGEST_MS, Span},
};

/// A 403 that refuses the pace counts as this status.
const TOO_MANY: u16 = 429;
const TOO_MANY_SHOPIFY: u16 = 430;

impl Scope {
    /// The request that left at `sent` ended. After `stall_after` of only bad answers the scope has stalled.
    /// `is_repeat`: it was sent before, and no response came.
    ///
    /// Not inlined: a loop over scopes would load all of the feedback before it looks at any of it.
    #[inline(never)]
    pub fn on_settle(
        &mut self,
        now: Instant,
        (sent, expected): (Instant, Cost),
        feedback: &Feedback,
        is_repeat: bool,
        stall_after: Span,
        rng: &mut Rng,
    ) -> Settled {
        self.slots.on_settle(now, sent, self.slot_delay());
        self.hold = self.hold.filter(|&until| until > now);
        if let Some(actual) = feedback.cost {
            self.on_actual(now, sent, expected, actual);
        }
        if self.config.is_budget {
            return Settled::default();
        }
        let latency = feedback.latency_ms;
        // A function that gave no response: no policy learns from it, and no server said a word.
        if feedback.says_nothing() && self.policies.is_empty() {
            return Settled { latency, ..Settled::default() };
        }
        let settled = self.on_answer(now, sent, feedback, is_repeat, stall_after);
        let hint = &feedback.hint;
        let is_bad = settled.is_bad == Some(true);
        let wait = if hint.is_empty() { None } else { self.on_hint(now, sent, hint, is_bad, rng) };
        let down = self.down_config().and_then(|config| self.on_connection(now, feedback.answer, &config));
        Settled { down, wait, latency, ..settled }
    }

    /// A scope is down after a run of requests without any answer: what a stall is to bad answers.
    fn down_config(&self) -> Option<stall::Config> {
        Some(stall::Config::new(self.config.down_after?, self.config.backoff.max))
    }

    fn on_connection(&mut self, now: Instant, answer: Answer, config: &stall::Config) -> Option<Span> {
        match (answer, &mut self.server) {
            (Answer::Failed(_), server) => {
                let server = server.get_or_insert_with(|| Box::new(ServerState::NOTHING));
                let (down, span) = server.down.on_bad(config, now);
                server.down = down;
                span
            }
            (Answer::Response { .. }, Some(server)) => {
                server.down = stall::State::NEW;
                None
            }
            _ => None,
        }
    }

    /// For how long no answer came back, if the scope is down.
    pub fn down(&self, now: Instant) -> Option<Span> {
        let down = self.server.as_ref()?.down;
        down.has_stalled(&self.down_config()?, now).then(|| down.span())
    }

    /// Steps up after a bad answer; notes the evidence of a good one. Neutral ones (a 500 that is no bad
    /// answer, a 401) are neither.
    pub(super) fn on_answer(
        &mut self,
        now: Instant,
        sent: Instant,
        feedback: &Feedback,
        is_repeat: bool,
        stall_after: Span,
    ) -> Settled {
        let is_bad = feedback.is_bad.unwrap_or(match feedback.answer {
            Answer::Response { status } => {
                self.config.is_bad_status(status)
                    || feedback.hint.is_limit && self.config.is_bad_status(TOO_MANY)
            }
            Answer::Failed(failure) => self.config.is_bad_failure(failure),
            Answer::Ignored => false,
        });
        let status = if let Answer::Response { status } = feedback.answer { status } else { 0 };
        let is_denial = denied::State::is_denial(status);
        let is_denied = is_denial && !is_bad && feedback.is_bad.is_none();
        let is_bad = is_bad || is_denied && self.on_denied();
        let is_answer = feedback.answer != Answer::Ignored || feedback.is_bad.is_some();
        let mut settled = Settled { is_bad: is_answer.then_some(is_bad), ..Settled::default() };
        let is_good = !is_bad && !is_denied && (1..500).contains(&status);
        let base = (is_bad || self.server.is_some()).then(|| self.base());
        let finds_pace = self.policies.finds_pace();
        if base.is_none() && self.policies.is_empty() {
            return settled;
        }
        let ended = {
            let is_refusal =
                feedback.is_bad.is_some() || is_denial || matches!(status, TOO_MANY | TOO_MANY_SHOPIFY);
            let is_sample = feedback.adjust_delay && !feedback.hint.is_cached;
            let sample = match (feedback.answer, feedback.latency_ms) {
                (Answer::Response { status }, Some(ms)) if is_sample => Some((ms / 1000.0, status)),
                _ => None,
            };
            let Hint { asked, hold, .. } = feedback.hint;
            let added = hold.zip(asked).map_or(Span::ZERO, |(hold, asked)| hold - asked);
            settled.is_refusal_to_rampup = finds_pace && is_bad && (is_refusal || asked.is_some());
            let unsure = added + added;
            Ended { now, sent, is_bad, is_good, is_denied, is_refusal, asked, unsure, sample }
        };
        if !self.policies.is_empty() {
            self.policies.on_end(&self.config, &ended);
        }
        let Some(base) = base else { return settled }; // there is no trouble to recover from
        let has_law = self.server.as_ref().is_some_and(|server| server.law.is_some());
        let is_ceiling = (is_bad || has_law) && self.config.is_ceiling();
        // One URL that always breaks off is no news of its host: its attempts are one flight.
        let is_old = is_repeat && matches!(feedback.answer, Answer::Failed(_));
        if is_ceiling && !is_old {
            if is_bad {
                settled.is_refusal_to_rampup = self.on_bad_below(&ended);
            } else {
                self.on_other_below(&ended);
            }
        }
        let config = &self.config.backoff;
        if is_bad {
            let server = self.server.get_or_insert_with(|| Box::new(ServerState::NOTHING));
            if !finds_pace && !self.config.is_managed && !is_ceiling {
                let sent = if is_old { Instant::from_micros(0) } else { sent };
                server.backoff = server.backoff.on_bad(config, now, sent, base);
            }
            server.quota = server.quota.on_bad(now);
            (server.stall, settled.stall) =
                server.stall.on_bad(&stall::Config::new(stall_after, config.max), now);
            return settled;
        }
        if let Some(server) = &mut self.server
            && is_good
        {
            server.backoff = server.backoff.on_good(config, now, sent, base);
            server.stall = stall::State::NEW;
            server.denied = denied::State::NEW;
            if server.is_over(now) {
                self.server = None;
            }
        }
        settled
    }

    /// An answer refused the client and not its pace. Whether it is a bad one.
    #[inline(never)]
    fn on_denied(&mut self) -> bool {
        if !self.config.hears_answers() {
            return false;
        }
        let server = self.server.get_or_insert_with(|| Box::new(ServerState::NOTHING));
        let (denied, is_bad) = server.denied.on_denied();
        server.denied = denied;
        is_bad
    }

    /// A hold is only ever made longer. No wait that a server asks for is longer than `backoff.maxHold`:
    /// gives what was asked, and what is kept of it. `is_bad`: it came with a bad answer.
    #[inline(never)]
    pub fn on_hint(
        &mut self,
        now: Instant,
        sent: Instant,
        hint: &Hint,
        is_bad: bool,
        rng: &mut Rng,
    ) -> Option<Wait> {
        let most = self.config.max_hold;
        let mut report = hint.report;
        let (mut left, mut refuted) = (report.left, None);
        // A rough pace is for those who asked for it: rampup finds a better one.
        let follows = self.config.follow_rate_limit || self.policies.finds_pace() && !hint.is_rough;
        report.pace = report.pace.filter(|_| follows).map(|pace| pace.min(self.config.backoff.max));
        report.left = report.left.map(|(left, span)| (left, span.min(most)));
        let mut turns = None;
        if report.left.is_some() || report.pace.is_some() {
            let flying = self.slots.in_flight();
            let server = self.server.get_or_insert_with(|| Box::new(ServerState::NOTHING));
            server.quota = server.quota.on_report(now, sent, report, flying);
            // An older answer that comes late is no news of the quota, and its own wait counts.
            let is_believed = hint.is_quota && report.left.is_some() && server.quota.sent == sent;
            turns = server.quota.until.filter(|_| is_believed);
            // A served request refutes it, and rampup finds the pace: it binds no request, and makes no hold.
            if server.quota.is_refuted && self.policies.finds_pace() && !is_bad {
                server.quota.until = None;
                refuted = left.take().map(|(_, span)| span);
            }
        }
        let spent = left.filter(|&(left, _)| left == Cost::ZERO).map(|(_, span)| span);
        // Another quota's hold stays.
        let hold = hint.hold.filter(|&span| span > Span::ZERO && Some(span) != refuted);
        if let Some(span) = hold {
            let until = now + span.min(most);
            let until = turns.map_or(until, |turns| turns.min(until));
            // Where it is held for longer already, it comes back by chance, too: one flight is one wait.
            let until =
                if is_bad && Some(until) > self.hold { self.staggered(now, until, rng) } else { until };
            self.hold(until);
            if let (true, Some(server), Some(until)) = (is_bad, &mut self.server, self.hold) {
                server.stall = server.stall.on_hold(until);
            }
        }
        // As the server said it: the second that is added to whole seconds is ours.
        let asked = hold.map(|hold| hint.asked.unwrap_or(hold)).max(spent)?;
        let kept = hold.map(|_| self.hold).max(spent.map(|_| self.server.as_ref()?.quota.until)).flatten();
        Some(Wait { asked, until: kept? })
    }

    /// When the first request leaves after a refusal that asks to wait `until` then: by chance somewhat after
    /// that and after its gap. Not where people typed that gaps are exact.
    fn staggered(&mut self, now: Instant, until: Instant, rng: &mut Rng) -> Instant {
        if self.config.typed.has(Typed::JITTER) && self.config.jitter == jitter::Config::NONE {
            return until;
        }
        let gap = Span::from_millis(self.delay_ms(now));
        let instant = |verdict| if let Verdict::NotBefore(at, _) = verdict { at } else { until };
        let hold = self.hold.take();
        let gate = instant(self.gate(until));
        self.hold = hold;
        let paced = gate.max(instant(self.policies.verdict(&self.config, until, self.delay, Cost::ONE)));
        // No hold is longer than a snapshot can say.
        (paced + jitter::after(until.since(now), gap, rng.draw())).min(now + Span::from_millis(LONGEST_MS))
    }

    /// The request that was allowed to leave at `sent` never did.
    pub fn on_cancel(&mut self, now: Instant, sent: Instant, expected: Cost) {
        self.slots.on_settle(now, sent, self.slot_delay());
        self.on_actual(now, sent, expected, Cost::ZERO);
    }

    /// The request that left at `sent` for `expected` turned out to cost `actual`.
    pub fn on_actual(&mut self, now: Instant, sent: Instant, expected: Cost, actual: Cost) {
        for (config, state) in self.config.quotas.iter().zip(&mut self.quotas) {
            state.on_actual(config, now, sent, expected, actual);
        }
        self.policies.on_actual(&self.config, now, sent, expected, actual);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::policy::server::QuotaReport;

    #[test]
    fn a_wait_that_is_cut_says_what_was_asked() {
        let seconds = |seconds: f64| Span::from_millis(1000.0 * seconds);
        let mut scope = Scope::new(Arc::default());
        let config = Arc::make_mut(&mut scope.config);
        (config.typed, config.jitter) = (Typed::JITTER, jitter::Config::NONE);
        let now = Instant::from_micros(0);
        let mut wait = |hint| {
            let feedback = Feedback { hint, ..Feedback::response(200) };
            let rng = &mut Rng::new(1);
            scope.on_settle(now, (now, Cost::ONE), &feedback, false, seconds(900.0), rng).wait
        };
        let report = |left| QuotaReport { left: Some((left, seconds(1e6))), ..QuotaReport::default() };
        assert_eq!(wait(Hint::default()), None);
        assert_eq!(wait(Hint { report: report(Cost::ONE), ..Hint::default() }), None, "something is left");
        let cut = Some(Wait { asked: seconds(1e6), until: now + seconds(86_400.0) });
        assert_eq!(wait(Hint { report: report(Cost::ZERO), ..Hint::default() }), cut);
        let held =
            Hint { hold: Some(seconds(100_001.0)), asked: Some(seconds(100_000.0)), ..Hint::default() };
        assert_eq!(wait(held), Some(Wait { asked: seconds(100_000.0), until: now + seconds(86_400.0) }));
        let short = Hint { hold: Some(seconds(5.0)), ..Hint::default() };
        assert_eq!(
            wait(short),
            Some(Wait { asked: seconds(5.0), until: now + seconds(86_400.0) }),
            "it is held already"
        );
    }
}
