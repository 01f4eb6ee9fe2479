//! Reports for people: statistics, notices of what changed, settings without effect. No decision depends on
//! it. A scope's meter learns whenever something about the scope changes, and works out the time between by
//! itself.

use super::Engine;
use crate::{
    config::Typed,
    decision::{Reason, ScopeId},
    observe::{Diagnostic, Effective, Named, Notice, ScopeStats, Seen, Settled, Stall, Stats, Watch},
    policy::quota::Cost,
    queue::IndexedHeap,
    time::{Instant, Span},
    value::{join, text, whole_text},
};

/// A limit that keeps requests waiting for so much of a minute is what binds.
const MOSTLY: f64 = 0.5;

impl Engine {
    /// The state of one scope, for people.
    pub fn scope_stats(&self, now: Instant, id: ScopeId) -> Option<ScopeStats> {
        let now = self.to_engine_time(now);
        let index = self.known(id)?;
        let entry = &self.registry[index];
        let head = entry.waiters.lanes.iter().filter_map(IndexedHeap::first).min().map(|(_, lane)| lane);
        let cost = head.map_or(Cost::ONE, |lane| self.queue.head_cost_at(lane, index));
        let reason = self.global_block().or(entry.scope.verdict(now, cost).reason());
        let waiting = entry.waiters.waiting;
        Some(ScopeStats {
            budgets: self.budget_stats(now, index),
            reason: reason.or_else(|| self.reason_inside(index)).filter(|_| waiting > 0),
            waiting,
            effective: entry.meter.as_ref().map_or_else(Effective::default, |meter| meter.effective(now)),
            without_effect: self
                .diagnostic(index)
                .map(|diagnostic| text(&[&diagnostic.setting, ": ", &diagnostic.why])),
            ..entry.scope.stats(now, self.epoch_offset)
        })
    }

    /// The state of everything, for people.
    pub fn stats(&self, now: Instant) -> Stats {
        let all: Vec<ScopeId> = self.registry.iter().map(|(_, id)| id).collect();
        self.stats_of(now, &all)
    }

    /// The same with these scopes alone.
    pub fn stats_of(&self, now: Instant, scopes: &[ScopeId]) -> Stats {
        let plain =
            scopes.iter().copied().filter(|&id| self.known(id).is_some_and(|index| self.is_plain(index)));
        let scopes = plain.filter_map(|id| {
            let name = &self.registry[id.0.index].name;
            Some((String::from(&**name), self.scope_stats(now, id)?))
        });
        Stats {
            waiting: self.waiting(),
            in_flight: self.in_flight,
            max_in_flight: self.config.max_in_flight,
            sent: self.totals.sent,
            settled: self.totals.settled,
            cancelled: self.totals.cancelled,
            paused: self.paused,
            scopes: scopes.collect(),
            age_ms: None,
        }
    }

    /// The notices since the last call.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        core::mem::take(&mut self.notices)
    }

    /// How much notices say of answers from now on.
    pub fn watch(&mut self, watch: Watch) {
        self.watch = watch;
    }

    /// Whether there are notices to take.
    pub fn has_notices(&self) -> bool {
        !self.notices.is_empty()
    }

    /// Tells what an answer changed in a scope, and remembers what it said.
    pub(super) fn notify(&mut self, scope: u32, before: Seen, settled: &Settled) {
        let entry = &mut self.registry[scope];
        let after = entry.scope.seen(self.now);
        let most = entry.scope.config.max_hold;
        if self.watch >= Watch::Changes {
            self.notices.extend(before.changes(after, &entry.name, most, self.epoch_offset, settled));
        }
        if self.watch >= Watch::Answers || entry.scope.config.is_managed {
            let in_flight = entry.scope.slots.in_flight();
            let notice = before.answer(after, &entry.name, in_flight, self.epoch_offset, settled);
            self.notices.extend(notice);
        }
        entry.seen = Some(Box::new(after));
    }

    /// Tells what people should know, also without a listener.
    #[inline(always)]
    pub(super) fn notify_always(&mut self, scope: u32, settled: &Settled, is_silent: bool) {
        let name = || String::from(&*self.registry[scope].name);
        if let Some(span) = settled.stall {
            self.notices.push(Notice::Stalled(Stall { scope: name(), for_ms: span.millis() }));
        }
        if let Some(span) = settled.down {
            self.notices.push(Notice::Down(Stall { scope: name(), for_ms: span.millis() }));
        }
        if is_silent {
            self.tell_silence(scope);
        }
        if let Some(wait) = settled.wait {
            self.notify_if_cut(scope, wait.asked);
        }
    }

    /// Tells of a scope whose requests end without a word about its server.
    #[cold]
    #[inline(never)]
    pub(super) fn tell_silence(&mut self, scope: u32) {
        let scope = String::from(&*self.registry[scope].name);
        self.notices.push(Notice::NoStatus(Named { scope }));
    }

    /// Tells once of a scope whose server asked for a longer wait than is kept.
    fn notify_if_cut(&mut self, scope: u32, asked: Span) {
        let entry = &mut self.registry[scope];
        let most = entry.scope.config.max_hold;
        if asked <= most || core::mem::replace(&mut entry.is_cut_reported, true) {
            return;
        }
        let [asked, kept] = [asked, most].map(|span| whole_text(span.micros() / 1_000_000));
        let why = text(&["the server asked for ", &asked, " s, and ", &kept, " s are kept"]);
        let (scope, setting) = (String::from(&*entry.name), String::from("backoff.maxHold"));
        self.notices.push(Notice::WaitCapped(Diagnostic { scope, path: setting.clone(), setting, why }));
    }

    /// Lets a scope's meter see what is going on now.
    pub(super) fn observe(&mut self, scope: u32) {
        let is_empty = self.registry[scope].waiters.lanes.iter().all(IndexedHeap::is_empty);
        let bound = if is_empty { None } else { self.heads(scope).bound() };
        self.note(scope, bound);
    }

    /// The same, for a caller that knows which limit of the scope keeps the head of its queue.
    pub(super) fn note(&mut self, scope: u32, bound: Option<Reason>) {
        let is_waiting = self.registry[scope].waiters.waiting > 0;
        let bound = bound.or_else(|| self.global_block().filter(|_| is_waiting));
        if self.registry[scope].note(self.now, bound) {
            self.find_without_effect(scope);
        }
    }

    #[cold]
    pub(super) fn find_without_effect(&mut self, scope: u32) {
        if let Some(diagnostic) = self.diagnostic(scope) {
            self.report(diagnostic);
        }
        if let Some((reason, diagnostic)) = self.binding(scope)
            && self.registry[scope].meter.as_mut().is_some_and(|meter| meter.is_first_report(reason))
        {
            self.notices.push(Notice::RampupBound(diagnostic));
        }
    }

    /// The user's limit for which a scope that ramps waited most of the last minute, if it sent less than the
    /// pace that was found; or where that pace is the limit.
    fn binding(&self, scope: u32) -> Option<(Reason, Diagnostic)> {
        let entry = &self.registry[scope];
        let (config, meter) = (&entry.scope.config, entry.meter.as_deref()?);
        config.rampup.as_ref()?;
        let mut reasons = Reason::ALL.into_iter().filter(|&reason| meter.share(reason) >= MOSTLY);
        let reason = reasons.next()?;
        let (setting, gap) = match reason {
            Reason::Global => ("maxInFlight", entry.scope.gap()?),
            _ => entry.scope.typed_limit(self.now, reason)?,
        };
        let is_slower = f64::from(meter.sends()) * gap.millis() < 0.9 * 60_000.0;
        if is_slower == (reason == Reason::Delay) {
            return None;
        }
        let path = match setting.split_once('.') {
            _ if reason == Reason::Global => setting.into(),
            Some((section, name)) => join(&self.config.path_of(&entry.name, config, section), name),
            None => self.config.path_of(&entry.name, config, setting),
        };
        let percent = whole_text((100.0 * meter.share(reason)) as u64);
        let why = text(&["requests waited for it ", &percent, " % of the last minute"]);
        Some((reason, Diagnostic { scope: String::from(&*entry.name), setting: setting.into(), path, why }))
    }

    /// The scope's setting that can have no effect, or has had none for long, if there is one.
    fn diagnostic(&self, scope: u32) -> Option<Diagnostic> {
        let entry = &self.registry[scope];
        let (config, meter) = (&entry.scope.config, entry.meter.as_deref()?);
        if config.is_made {
            return None;
        }
        // A policy that learns takes time: its delay is long at first.
        let is_learning = config.rampup.is_some() || config.autothrottle.is_some();
        let never_bound = |reason| meter.never_bound(reason, is_learning);
        let typed = config.typed;
        let (setting, why) = if let Some(known) = config.without_effect(typed) {
            known
        } else if typed.has(Typed::CONCURRENCY)
            && config.concurrency > 1
            && config.autothrottle.is_none()
            // Beside a rate they are for a server that becomes slow.
            && !typed.has(Typed::RATE)
            && never_bound(Reason::Concurrency)
        {
            let [slots, used] =
                [config.concurrency, meter.most_in_flight()].map(|many| whole_text(many.into()));
            ("concurrency", text(&[&slots, " slots; ", &used, " were ever in use while requests waited"]))
        } else if typed.has(Typed::SLOT_DELAY)
            && config.slot_delay > Span::ZERO
            && !is_learning
            && never_bound(Reason::SlotDelay)
        {
            ("slotDelay", "no request ever waited for it while requests waited".into())
        } else if typed.has(Typed::RATE) && meter.hardly_rated() {
            let slower = match meter.slowest()? {
                Reason::Global => {
                    // Its own copy: a limit that was raised for another scope is not its own.
                    let most = config.global.min(self.config.max_in_flight);
                    text(&["maxInFlight (", &whole_text(most.into()), ")"])
                }
                reason @ Reason::Concurrency if typed.has(Typed::CONCURRENCY) => reason.name().into(),
                reason @ Reason::Quota if !config.quotas.is_empty() => reason.name().into(),
                // Not the server's wait, a pause or another scope: the rate is for the time without it.
                _ => return None,
            };
            ("rate", text(&["requests hardly ever wait for it, but for ", &slower]))
        } else {
            return None;
        };
        let path = self.config.path_of(&entry.name, config, setting);
        Some(Diagnostic { scope: String::from(&*entry.name), setting: setting.into(), path, why })
    }

    /// Reports what is known to have no effect before the first request.
    pub(super) fn report_known(&mut self) {
        let known = self.config.without_effect().into_iter().map(|(scope, setting, path, why)| Diagnostic {
            scope: scope.into(),
            setting: setting.into(),
            path,
            why,
        });
        for diagnostic in known.collect::<Vec<_>>() {
            self.report(diagnostic);
        }
    }

    /// The same of a scope that was configured at run time.
    pub(super) fn report_configured(&mut self, scope: u32) {
        let entry = &self.registry[scope];
        let config = &entry.scope.config;
        if let Some((setting, why)) = config.without_effect(config.own) {
            let path = self.config.path_of(&entry.name, config, setting);
            self.report(Diagnostic { scope: String::from(&*entry.name), setting: setting.into(), path, why });
        }
    }

    /// Keeps a diagnostic until it is taken; each path once.
    fn report(&mut self, diagnostic: Diagnostic) {
        let order = |other: u32| self.found[other as usize].cmp(&diagnostic.path);
        if self.found_by_path.get(&order).is_none() {
            self.found_by_path.insert(self.found.len() as u32, &order);
            self.found.push(diagnostic.path.clone());
            self.notices.push(Notice::NoEffect(diagnostic));
        }
    }
}
