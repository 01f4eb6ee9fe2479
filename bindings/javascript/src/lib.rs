//! The boundary to JavaScript: converts and forwards, nothing else.
//!
//! Numbers only on the hot path (`submit`, `poll`, `settle`): a call costs some 10 ns so, some 1,000 with
//! objects. What `poll` says beside a ticket is left in getters. Options, settings and statistics go through
//! serde. The traps: a panic poisons the module for good, so every number is checked before it means
//! anything; and a thrown Rust string is no `Error`, so problems leave as data and TypeScript throws.

#![allow(missing_docs, reason = "TypeScript documents what it makes of them")]
#![allow(clippy::too_many_arguments, reason = "numbers cross in tens of nanoseconds, objects in a thousand")]
#![allow(clippy::needless_pass_by_value, reason = "what JavaScript hands over is owned")]

use autothrottle::{
    Cause, Config, Cost, Decision, Engine, Feedback, Hint, Hints, Instant, LONGEST_MS, Notice, Peek, Reason,
    Request, Robots, ScopeId, Snapshot, Span, SubmitError, Ticket, config::value::number_text,
    crawl_delay_ms, headers::Context, policy::server::Told,
};
use autothrottle_convert::{object, object_with_null, problems, value};
use wasm_bindgen::prelude::*;

/// What `poll` answers instead of a ticket.
const WAIT: f64 = -1.0;
const IDLE: f64 = -2.0;

/// The engine as JavaScript sees it.
#[wasm_bindgen]
pub struct WasmEngine {
    engine: Engine,
    is_seeded: bool,
    wake_at: f64,
    because: Option<Cause>,
    /// For the next `settle`.
    hint: Option<Hint>,
    own: Vec<(ScopeId, Feedback, bool)>,
    retry: Option<f64>,
}

#[wasm_bindgen]
impl WasmEngine {
    /// Throws a list of `{ path, want, got }`.
    #[wasm_bindgen(constructor)]
    pub fn new(options: JsValue) -> Result<WasmEngine, JsValue> {
        let config = Config::parse(value(&options)).map_err(problems)?;
        let is_seeded = config.seed.is_some();
        let engine = Engine::new(config);
        Ok(Self {
            engine,
            is_seeded,
            wake_at: f64::INFINITY,
            because: None,
            hint: None,
            own: Vec::new(),
            retry: None,
        })
    }

    /// Goes on where `snapshot` was taken. Throws a list of `{ path, want, got }`.
    pub fn restore(&mut self, snapshot: JsValue, now: f64, wall_ms: f64) -> Result<(), JsValue> {
        let snapshot = Snapshot::parse(value(&snapshot)).map_err(problems)?;
        self.engine = Engine::restore(self.engine.config().clone(), &snapshot, self.now(now), wall(wall_ms));
        self.is_seeded = self.engine.config().seed.is_some();
        Ok(())
    }

    pub fn snapshot(&self, now: f64, wall_ms: f64) -> JsValue {
        object(&self.engine.snapshot(self.now(now), wall(wall_ms)))
    }

    pub fn scope(&mut self, name: &str) -> f64 {
        self.engine.scope(name).to_number()
    }

    pub fn intern(&mut self, name: &str) -> f64 {
        self.engine.intern(name).to_number()
    }

    pub fn touch(&mut self, scope: f64) -> bool {
        ScopeId::from_number(scope).is_some_and(|scope| self.engine.keep_alive(scope))
    }

    pub fn release(&mut self, scope: f64) {
        if let Some(scope) = ScopeId::from_number(scope) {
            self.engine.release(scope);
        }
    }

    pub fn scopes(&self) -> f64 {
        self.engine.scopes() as f64
    }

    pub fn name(&self, scope: f64) -> Option<String> {
        self.engine.name(ScopeId::from_number(scope)?).map(str::to_string)
    }

    /// A ticket, or the negative number of an error.
    pub fn submit(&mut self, now: f64, scope: f64, cost: f64, priority: f64, delay_ms: f64) -> f64 {
        let scope = ScopeId::from_number(scope);
        self.take_in(now, scope.as_slice(), &[cost], priority, delay_ms)
    }

    /// The same for several scopes, with costs beside them.
    pub fn submit_many(
        &mut self,
        now: f64,
        scopes: &[f64],
        costs: &[f64],
        priority: f64,
        delay_ms: f64,
    ) -> f64 {
        self.take_in(now, &scope_ids(scopes), costs, priority, delay_ms)
    }

    /// A ticket to send now, [`WAIT`] if it has to be submitted, or the negative number of an error less one.
    pub fn send_at_once(&mut self, now: f64, scope: f64, cost: f64, priority: f64) -> f64 {
        let scope = ScopeId::from_number(scope);
        self.fuse(now, scope.as_slice(), &[cost], priority)
    }

    /// The same for several scopes, with costs beside them.
    pub fn send_many_at_once(&mut self, now: f64, scopes: &[f64], costs: &[f64], priority: f64) -> f64 {
        self.fuse(now, &scope_ids(scopes), costs, priority)
    }

    /// A ticket to send now, [`WAIT`] or [`IDLE`]; `wake_at`, `reason` and `reason_scope` say more.
    pub fn poll(&mut self, now: f64) -> f64 {
        self.seed();
        let now = self.now(now);
        match self.engine.poll(now) {
            Decision::Send(ticket) => ticket.to_number(),
            Decision::Wait { until, because } => {
                self.wake_at = until.millis();
                self.because = Some(because);
                WAIT
            }
            Decision::Idle { because } => {
                self.wake_at = f64::INFINITY;
                self.because = because;
                IDLE
            }
        }
    }

    #[wasm_bindgen(getter)]
    pub fn wake_at(&self) -> f64 {
        self.wake_at
    }

    /// The index of the reason in [`WasmEngine::reasons`], or −1.
    #[wasm_bindgen(getter)]
    pub fn reason(&self) -> f64 {
        self.because.map_or(-1.0, |cause| f64::from(cause.reason as u8))
    }

    #[wasm_bindgen(getter)]
    pub fn reason_scope(&self) -> f64 {
        self.because.and_then(|cause| cause.scope).map_or(-1.0, ScopeId::to_number)
    }

    /// The words for reasons, by index.
    pub fn reasons() -> Vec<String> {
        Reason::ALL.iter().map(|reason| reason.name().into()).collect()
    }

    /// See [`Feedback::from_numbers`].
    pub fn settle(
        &mut self,
        now: f64,
        ticket: f64,
        status: f64,
        latency_ms: f64,
        adjust_delay: bool,
        cost: f64,
        bad: f64,
    ) {
        let now = self.now(now);
        let Some(ticket) = Ticket::from_number(ticket) else { return };
        let hint = self.hint.take().unwrap_or_default();
        let feedback =
            Feedback { hint, ..Feedback::from_numbers(status, latency_ms, adjust_delay, cost, bad) };
        let own = core::mem::take(&mut self.own);
        let of = |id| match own.iter().find(|&&(scope, ..)| scope == id) {
            Some(&(_, own, true)) => Feedback { hint, ..own },
            Some(&(_, own, false)) => own,
            None => feedback,
        };
        if let Some(delay_ms) = self.retry.take() {
            self.engine.retry_each(now, ticket, of, delay_ms);
        } else {
            self.engine.settle_each(now, ticket, of);
        }
    }

    /// What the next `settle` means for this scope, if that is not what it means for the others. NaN is unknown; see
    /// [`Feedback::from_numbers`] and `hint_numbers`. `hears`: the response's hints are for it as well.
    #[expect(clippy::too_many_arguments, reason = "numbers only on this path")]
    pub fn own_next(
        &mut self,
        scope: f64,
        status: f64,
        latency_ms: f64,
        cost: f64,
        bad: f64,
        hears: bool,
        hold_ms: f64,
        left: f64,
        reset_ms: f64,
    ) {
        let Some(scope) = ScopeId::from_number(scope) else { return };
        let hint = hint_of(hold_ms, left, reset_ms, f64::NAN);
        let feedback = Feedback::from_numbers(status, latency_ms, true, cost, bad);
        self.own.push((scope, Feedback { hint, ..feedback }, hears));
    }

    /// The next `settle` sends its request again, not before so many milliseconds.
    pub fn retry_next(&mut self, delay_ms: f64) {
        self.retry = Some(delay_ms.clamp(0.0, LONGEST_MS));
    }

    /// What the response of the next `settle` asks for: its header fields as `name: value` lines. `units` has bit 0 set
    /// where resets mean milliseconds, bit 1 where `Retry-After` does.
    pub fn hint_lines(&mut self, lines: &str, status: f64, wall_ms: f64, units: u32) {
        self.hint = Some(Hint::of(&Hints::from_lines(lines, context(status, wall_ms, units))));
    }

    /// The same in numbers, for hints that were not in headers: NaN is unknown.
    pub fn hint_numbers(&mut self, hold_ms: f64, left: f64, reset_ms: f64, pace_ms: f64) {
        self.hint = Some(hint_of(hold_ms, left, reset_ms, pace_ms));
    }

    /// 0: kept to, 1: overruled by settings, 2: ignored. NaN is no delay.
    pub fn crawl_delay(&mut self, now: f64, scope: f64, ms: f64) -> f64 {
        let now = self.now(now);
        let delay = (ms >= 0.0).then(|| Span::from_millis(ms));
        let outcome = ScopeId::from_number(scope).map(|scope| self.engine.crawl_delay(now, scope, delay));
        f64::from(outcome.unwrap_or(Robots::Ignored) as u8)
    }

    pub fn cancel(&mut self, now: f64, ticket: f64) {
        let now = self.now(now);
        if let Some(ticket) = Ticket::from_number(ticket) {
            self.engine.cancel(now, ticket);
        }
    }

    pub fn prioritize(&mut self, now: f64, ticket: f64, priority: f64) {
        let now = self.now(now);
        if let Some(ticket) = Ticket::from_number(ticket) {
            self.engine.prioritize(now, ticket, priority);
        }
    }

    /// When it could be sent: milliseconds, `Infinity` if that depends on an event, or the negative number of
    /// an error. `reason` and `reason_scope` say why not now.
    pub fn peek(&mut self, now: f64, scopes: &[f64], costs: &[f64]) -> f64 {
        let now = self.now(now);
        let scopes = scope_ids(scopes);
        let request = Request { costs, ..Request::new(&scopes) };
        match self.engine.peek(now, request) {
            Ok(Peek { at, because }) => {
                self.because = because;
                at.map_or(f64::INFINITY, Instant::millis)
            }
            Err(error) => code(error),
        }
    }

    /// Throws a list of `{ path, want, got }`.
    pub fn configure(&mut self, now: f64, scope: f64, partial: JsValue) -> Result<(), JsValue> {
        let now = self.now(now);
        let Some(scope) = ScopeId::from_number(scope) else { return Ok(()) };
        self.engine.configure(now, scope, value(&partial)).map_err(problems)
    }

    pub fn hold(&mut self, now: f64, scope: f64, ms: f64) {
        self.change(now, scope, |engine, now, scope| engine.hold(now, scope, Span::from_millis(ms)));
    }

    pub fn pause(&mut self, now: f64, scope: f64) {
        self.change(now, scope, Engine::pause);
    }

    pub fn resume(&mut self, now: f64, scope: f64) {
        self.change(now, scope, Engine::resume);
    }

    pub fn reset(&mut self, now: f64, scope: f64) {
        self.change(now, scope, Engine::reset);
    }

    pub fn pause_all(&mut self, paused: bool) {
        self.engine.pause_all(paused);
    }

    pub fn waiting(&self) -> f64 {
        f64::from(self.engine.waiting())
    }

    pub fn in_flight(&self) -> f64 {
        f64::from(self.engine.in_flight())
    }

    pub fn warn_threshold(&self) -> f64 {
        f64::from(self.engine.config().warn_threshold)
    }

    /// Whether there is something for [`WasmEngine::take_notices`].
    #[wasm_bindgen(getter)]
    pub fn has_notices(&self) -> bool {
        self.engine.has_notices()
    }

    /// A list of `["no-effect", scope, setting, path, why]` and `["stall", scope, milliseconds]`.
    pub fn take_notices(&mut self) -> JsValue {
        let words = |notice: Notice| match notice {
            Notice::NoEffect(found) => {
                Some(vec!["no-effect".into(), found.scope, found.setting.into(), found.path, found.why])
            }
            Notice::Stalled { scope, span } => Some(vec!["stall".into(), scope, number_text(span.millis())]),
            _ => None, // nobody can ask for them here
        };
        object(&self.engine.take_notices().into_iter().filter_map(words).collect::<Vec<_>>())
    }

    pub fn stats(&mut self, now: f64) -> JsValue {
        let now = self.now(now);
        object(&self.engine.stats(now))
    }

    /// `undefined` for an unknown handle.
    pub fn scope_stats(&mut self, now: f64, scope: f64) -> JsValue {
        let now = self.now(now);
        let stats = ScopeId::from_number(scope).and_then(|scope| self.engine.scope_stats(now, scope));
        stats.map_or(JsValue::UNDEFINED, |stats| object(&stats))
    }
}

impl WasmEngine {
    fn seed(&mut self) {
        if !self.is_seeded {
            self.is_seeded = true;
            self.engine.seed(getrandom::u64().unwrap_or(0));
        }
    }

    fn fuse(&mut self, now: f64, scopes: &[ScopeId], costs: &[f64], priority: f64) -> f64 {
        self.seed();
        let now = self.now(now);
        match self.engine.send_at_once(now, Request { scopes, costs, priority, delay_ms: 0.0 }) {
            Ok(ticket) => ticket.map_or(WAIT, Ticket::to_number),
            Err(error) => code(error) - 1.0,
        }
    }

    fn take_in(&mut self, now: f64, scopes: &[ScopeId], costs: &[f64], priority: f64, delay_ms: f64) -> f64 {
        let now = self.now(now);
        let request = Request { scopes, costs, priority, delay_ms };
        self.engine.submit(now, request).map_or_else(code, Ticket::to_number)
    }

    fn change(&mut self, now: f64, scope: f64, with: impl FnOnce(&mut Engine, Instant, ScopeId)) {
        let now = self.now(now);
        if let Some(scope) = ScopeId::from_number(scope) {
            with(&mut self.engine, now, scope);
        }
    }

    /// What no clock says is no news: time stands still.
    fn now(&self, ms: f64) -> Instant {
        Instant::from_millis(ms).unwrap_or(self.engine.now())
    }
}

/// What header fields say, given as `name: value` lines.
#[wasm_bindgen]
pub fn parse_hints(lines: &str, status: f64, wall_ms: f64, units: u32) -> JsValue {
    let hints = Hints::from_lines(lines, context(status, wall_ms, units));
    object_with_null(&hints)
}

/// The delay in milliseconds that a robots.txt asks for, or NaN.
#[wasm_bindgen]
pub fn parse_crawl_delay(bytes: &[u8], user_agent: &str) -> f64 {
    crawl_delay_ms(bytes, user_agent).unwrap_or(f64::NAN)
}

fn hint_of(hold_ms: f64, left: f64, reset_ms: f64, pace_ms: f64) -> Hint {
    let span = |ms: f64| (ms >= 0.0).then(|| Span::from_millis(ms));
    let left = Cost::from_units(left).zip(span(reset_ms));
    let told = Told { left, window: None, pace: span(pace_ms) };
    Hint { hold: span(hold_ms), asked: span(hold_ms), told, ..Hint::default() }
}

fn context(status: f64, wall_ms: f64, units: u32) -> Context {
    Context {
        status: status as u16,
        wall_ms: wall(wall_ms).map(|ms| ms as i64),
        reset_is_millis: units & 1 > 0,
        retry_after_is_millis: units & 2 > 0,
    }
}

/// The handles behind numbers; none at all if one never was a handle, which the engine refuses.
fn scope_ids(numbers: &[f64]) -> Vec<ScopeId> {
    numbers.iter().map(|&number| ScopeId::from_number(number)).collect::<Option<_>>().unwrap_or_default()
}

fn wall(wall_ms: f64) -> Option<f64> {
    (wall_ms > 0.0 && wall_ms.is_finite()).then_some(wall_ms)
}

fn code(error: SubmitError) -> f64 {
    match error {
        SubmitError::UnknownScope => -1.0,
        SubmitError::QueueFull => -2.0,
        SubmitError::CostExceedsQuota { .. } => -3.0,
        SubmitError::NotANumber => -4.0,
    }
}
