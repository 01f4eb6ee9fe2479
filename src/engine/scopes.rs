//! Scopes from outside: their handles, their settings, holds, pauses, and what robots.txt asks of them.
//!
//! A handle of [`Engine::scope`] is kept until it is released; one of [`Engine::intern`] only while a request
//! is put together. A handle that is not valid any more changes no state.

use super::Engine;
use crate::{
    decision::{ScopeId, Ticket},
    error::ConfigError,
    policy::quota::Cost,
    record::words,
    scope::{Scope, registry::Role},
    time::{Instant, Span},
    value::Value,
};

words! {
    /// The effect of a robots.txt.
    pub enum Robots {
        /// The scope keeps to it.
        Applied = "applied",
        /// The user gave this very scope another pace, which it keeps.
        Overruled = "overruled",
        /// The settings ignore robots.txt, or it asked for no pace and no setting changed.
        Ignored = "ignored",
    }
}

impl Robots {
    /// The outcome of this number.
    pub fn of(number: f64) -> Self {
        let known = [Self::Applied, Self::Overruled];
        known.into_iter().find(|&known| f64::from(known as u8) == number).unwrap_or(Self::Ignored)
    }
}

impl Engine {
    /// The handle of a scope, which is made on first use and kept until it is [released](Engine::release).
    pub fn scope(&mut self, name: &str) -> ScopeId {
        let scope = self.intern(name);
        self.registry.pin(scope.0.index);
        scope
    }

    /// The handle of a scope, which is made on first use and may be forgotten when the scope is idle: use it
    /// at once, or [`Engine::keep_alive`] it before using it again.
    pub fn intern(&mut self, name: &str) -> ScopeId {
        if let Some(id) = self.registry.find(name) {
            self.registry.meet(id);
            return id;
        }
        // Scopes make room for a new one: no lane may outlive its scope.
        let inner = self.inner(name);
        if let Some(spare) = self.queue.take_spare() {
            self.part(&spare);
        }
        let of = inner.unwrap_or_else(|| (Role::Plain, self.config.scope(name).clone()));
        let id = self.registry.make(name, of, &self.config, self.now);
        self.enrol(id);
        id
    }

    /// The handle of a scope that the engine knows. Makes none and keeps none.
    pub fn find(&self, name: &str) -> Option<ScopeId> {
        self.registry.find(name)
    }

    /// Where a setting of this scope is set: `defaults.quota`, or `scopes."api.example".quota` for a scope
    /// with settings of its own.
    pub fn config_path(&self, scope: ScopeId, setting: &str) -> Option<String> {
        let entry = &self.registry[self.known(scope)?];
        Some(self.config.path_of(&entry.name, &entry.scope.config, setting))
    }

    /// Whether a request like this one, which is in flight, could have its slots next: no time and no quota
    /// bounds their scopes, no server has said a limit of them, and no request waits for one.
    pub fn has_room(&self, ticket: Ticket) -> bool {
        let Some(entry) = self.queue.get(ticket) else { return false };
        let scopes = self.queue.scopes_of(entry);
        let mut entries = scopes.iter().map(|&scope| &self.registry[scope]);
        self.global_block().is_none()
            && entries.all(|entry| {
                entry.waiters.waiting == 0
                    && entry.family.is_none()
                    && entry.scope.is_bound_by_slots(self.now)
            })
    }

    /// Whether the handle still means what it meant.
    pub fn knows(&self, scope: ScopeId) -> bool {
        self.registry.knows(scope)
    }

    /// Whether the handle still means what it meant; if so, the scope stays at least until the next poll.
    pub fn keep_alive(&mut self, scope: ScopeId) -> bool {
        let is_known = self.registry.knows(scope);
        if is_known {
            self.registry.keep_alive(scope.0.index);
        }
        is_known
    }

    /// Gives a handle back: the scope may be forgotten when it is idle, and is forgotten now if it looks like
    /// new.
    pub fn release(&mut self, scope: ScopeId) {
        if let Some(index) = self.known(scope) {
            self.registry.unpin(index, &self.config, self.now);
        }
    }

    /// How many scopes the engine knows.
    pub fn scopes(&self) -> usize {
        self.registry.len()
    }

    /// The name behind a handle.
    pub fn name(&self, scope: ScopeId) -> Option<&str> {
        self.registry.knows(scope).then(|| &*self.registry[scope.0.index].name)
    }

    /// Changes settings of one scope. Waiting requests feel it at once, in both directions.
    pub fn configure(&mut self, now: Instant, scope: ScopeId, partial: Value) -> Result<(), ConfigError> {
        let mut changed = match self.known(scope) {
            Some(index) => self.registry[index].scope.config.changed(partial)?,
            None => return Ok(()),
        };
        self.config.follow(&mut changed);
        self.change(now, scope, |scope, now| scope.configure(now, changed.into()));
        if let Some(index) = self.known(scope) {
            self.report_configured(index);
            if let Some(meter) = &mut self.registry[index].meter {
                meter.on_configure();
            }
        }
        Ok(())
    }

    /// Sets the pace that the robots.txt of this scope asks for: one slot and this delay, in place of what
    /// the defaults say.
    pub fn crawl_delay(&mut self, now: Instant, scope: ScopeId, delay: Option<Span>) -> Robots {
        let Some(index) = self.known(scope) else { return Robots::Ignored };
        let state = &self.registry[index].scope;
        let config = &state.config;
        let is_same = delay.is_none_or(|delay| config.concurrency == 1 && config.delay_span() == delay);
        if config.ignore_robots_txt || delay == state.crawl() || config.has_own_pace() && is_same {
            return Robots::Ignored;
        }
        if config.has_own_pace() {
            return Robots::Overruled;
        }
        self.change(now, scope, |scope, _| scope.set_crawl_delay(delay));
        Robots::Applied
    }

    /// Sends no request of this scope for `span`. A hold that is longer already stays.
    pub fn hold(&mut self, now: Instant, scope: ScopeId, span: Span) {
        self.change(now, scope, |scope, now| scope.hold(now + span));
    }

    /// Corrects the cost in this scope of a request that left at `sent` to `actual`, where `charged` has been
    /// taken for it so far. It may have been settled.
    pub fn adjust(&mut self, now: Instant, scope: ScopeId, sent: Instant, charged: Cost, actual: Cost) {
        let sent = sent + self.epoch_offset;
        self.change(now, scope, |scope, now| scope.on_actual(now, sent, charged, actual));
    }

    /// Sends no request of this scope until [`Engine::resume`].
    pub fn pause(&mut self, now: Instant, scope: ScopeId) {
        self.change(now, scope, |scope, _| scope.paused = true);
    }

    /// Ends a pause of this scope.
    pub fn resume(&mut self, now: Instant, scope: ScopeId) {
        self.change(now, scope, |scope, _| scope.paused = false);
    }

    /// Forgets what this scope learned and lifts its hold. The spent parts of quotas and budgets, its
    /// settings and requests in flight stay.
    pub fn reset(&mut self, now: Instant, scope: ScopeId) {
        self.change(now, scope, |scope, _| scope.reset());
    }

    pub(super) fn change(&mut self, now: Instant, id: ScopeId, with: impl FnOnce(&mut Scope, Instant)) {
        self.advance(now);
        if let Some(index) = self.known(id) {
            with(&mut self.registry[index].scope, self.now);
            self.refresh(index);
        }
    }

    #[inline]
    pub(super) fn known(&self, id: ScopeId) -> Option<u32> {
        self.registry.knows(id).then_some(id.0.index)
    }
}
