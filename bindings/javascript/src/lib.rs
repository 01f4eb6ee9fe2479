//! The boundary to JavaScript: it only converts and forwards. What it forwards to is tested natively.
//!
//! A numeric call costs about 10 ns, one with objects about 1 µs. The traps: a panic poisons the module for
//! good, so the façade checks every number before it means anything; and a thrown Rust string is no `Error`,
//! so problems leave as data and TypeScript throws.

#![allow(missing_docs, reason = "TypeScript documents what it makes of them")]
#![allow(clippy::too_many_arguments, reason = "numbers cross in tens of nanoseconds, objects in a thousand")]
#![allow(clippy::needless_pass_by_value, reason = "what JavaScript hands over is owned")]

mod memory;

use autothrottle::{
    Boundary,
    boundary::{self, Outcome},
};
use autothrottle_convert::{js, problems, value};
use wasm_bindgen::prelude::*;

use self::memory::make_room;

/// Half the size of the library's allocator, and faster.
#[cfg(target_family = "wasm")]
#[global_allocator]
static ALLOCATOR: talc::wasm::WasmDynamicTalc = talc::wasm::new_wasm_dynamic_allocator();

#[wasm_bindgen]
extern "C" {
    /// From 0 up to 1.
    #[wasm_bindgen(js_namespace = Math)]
    fn random() -> f64;
}

/// The engine as JavaScript sees it. See [`Boundary`] for each method.
#[wasm_bindgen]
pub struct WasmEngine(Boundary);

#[wasm_bindgen]
impl WasmEngine {
    /// Throws a list of `[path, want, got]`.
    #[wasm_bindgen(constructor)]
    pub fn new(options: JsValue) -> Result<WasmEngine, JsValue> {
        Boundary::new(value(&options)).map(Self).map_err(problems)
    }

    /// Throws a list of `[path, want, got]`.
    pub fn restore(&mut self, snapshot: JsValue, now: f64, wall_ms: f64) -> Result<(), JsValue> {
        self.0.restore(value(&snapshot), now, wall_ms).map_err(problems)
    }

    pub fn snapshot(&self, now: f64, wall_ms: f64) -> JsValue {
        js(&self.0.snapshot(now, wall_ms))
    }

    pub fn scope(&mut self, name: &str) -> f64 {
        self.0.scope(name)
    }

    pub fn intern(&mut self, name: &str) -> f64 {
        make_room();
        self.0.intern(name)
    }

    pub fn find(&self, name: &str) -> f64 {
        self.0.find(name)
    }

    pub fn keep_alive(&mut self, scope: f64) -> bool {
        self.0.keep_alive(scope)
    }

    pub fn release(&mut self, scope: f64) {
        self.0.release(scope);
    }

    pub fn scopes(&self) -> f64 {
        self.0.scopes()
    }

    pub fn name(&self, scope: f64) -> Option<String> {
        self.0.name(scope).map(str::to_string)
    }

    pub fn submit(&mut self, now: f64, scope: f64, cost: f64, priority: f64, delay_ms: f64) -> f64 {
        make_room();
        self.0.submit(now, scope, cost, priority, delay_ms)
    }

    pub fn submit_many(
        &mut self,
        now: f64,
        scopes: &[f64],
        costs: &[f64],
        priority: f64,
        delay_ms: f64,
    ) -> f64 {
        make_room();
        self.0.submit_many(now, scopes, costs, priority, delay_ms)
    }

    pub fn submit_again(
        &mut self,
        now: f64,
        scopes: &[f64],
        costs: &[f64],
        priority: f64,
        delay_ms: f64,
        waited_ms: f64,
    ) -> f64 {
        make_room();
        self.0.submit_again(now, scopes, costs, priority, delay_ms, waited_ms)
    }

    pub fn adopt(
        &mut self,
        now: f64,
        scopes: &[f64],
        costs: &[f64],
        priority: f64,
        waited_ms: f64,
        sent_ago_ms: f64,
    ) -> f64 {
        self.draw_seed();
        self.0.adopt(now, scopes, costs, priority, waited_ms, sent_ago_ms)
    }

    pub fn send_at_once(&mut self, now: f64, scope: f64, cost: f64, priority: f64) -> f64 {
        self.draw_seed();
        self.0.send_at_once(now, scope, cost, priority)
    }

    pub fn send_many_at_once(&mut self, now: f64, scopes: &[f64], costs: &[f64], priority: f64) -> f64 {
        self.draw_seed();
        self.0.send_many_at_once(now, scopes, costs, priority)
    }

    pub fn poll(&mut self, now: f64) -> f64 {
        self.draw_seed();
        self.0.poll(now)
    }

    #[wasm_bindgen(getter)]
    pub fn wake_at(&self) -> f64 {
        self.0.wake_at()
    }

    #[wasm_bindgen(getter)]
    pub fn reason(&self) -> f64 {
        self.0.reason()
    }

    #[wasm_bindgen(getter)]
    pub fn reason_scope(&self) -> f64 {
        self.0.reason_scope()
    }

    pub fn reasons() -> Vec<String> {
        Boundary::reasons()
    }

    /// The place of the outcome in [`boundary::Settled`].
    pub fn settle(
        &mut self,
        now: f64,
        ticket: f64,
        answer: f64,
        latency_ms: f64,
        cost: f64,
        flags: u32,
    ) -> u32 {
        self.0.settle(now, ticket, &Outcome::new(answer, latency_ms, cost, flags)) as u32
    }

    /// The same with header lines, and with all that [`Outcome::with`] takes.
    pub fn settle_with(
        &mut self,
        now: f64,
        ticket: f64,
        answer: f64,
        latency_ms: f64,
        cost: f64,
        flags: u32,
        lines: &str,
        more: &[f64],
    ) -> u32 {
        let outcome = Outcome::new(answer, latency_ms, cost, flags).with(lines, more);
        self.0.settle(now, ticket, &outcome) as u32
    }

    #[wasm_bindgen(getter)]
    pub fn asked_ms(&self) -> f64 {
        self.0.asked_ms()
    }

    pub fn crawl_delay(&mut self, now: f64, scope: f64, ms: f64) -> f64 {
        self.0.crawl_delay(now, scope, ms)
    }

    pub fn left(&mut self, now: f64, ticket: f64) {
        self.0.left(now, ticket);
    }

    pub fn route(&mut self, now: f64, ticket: f64, method: &str, url: &str) {
        make_room();
        self.0.route(now, ticket, method, url);
    }

    pub fn cancel(&mut self, now: f64, ticket: f64) {
        self.0.cancel(now, ticket);
    }

    pub fn prioritize(&mut self, now: f64, ticket: f64, priority: f64) {
        self.0.prioritize(now, ticket, priority);
    }

    pub fn peek(&mut self, now: f64, scopes: &[f64], costs: &[f64]) -> f64 {
        self.0.peek(now, scopes, costs)
    }

    /// Throws a list of `[path, want, got]`.
    pub fn configure(&mut self, now: f64, scope: f64, partial: JsValue) -> Result<(), JsValue> {
        self.0.configure(now, scope, value(&partial)).map_err(problems)
    }

    pub fn hold(&mut self, now: f64, scope: f64, ms: f64) {
        self.0.hold(now, scope, ms);
    }

    pub fn adjust(&mut self, now: f64, scope: f64, sent: f64, charged: f64, cost: f64) -> bool {
        self.0.adjust(now, scope, sent, charged, cost)
    }

    pub fn pause(&mut self, now: f64, scope: f64) {
        self.0.pause(now, scope);
    }

    pub fn resume(&mut self, now: f64, scope: f64) {
        self.0.resume(now, scope);
    }

    pub fn reset(&mut self, now: f64, scope: f64) {
        self.0.reset(now, scope);
    }

    pub fn pause_all(&mut self, paused: bool) {
        self.0.pause_all(paused);
    }

    pub fn waiting(&self) -> f64 {
        self.0.waiting()
    }

    pub fn in_flight(&self) -> f64 {
        self.0.in_flight()
    }

    pub fn warn_threshold(&self) -> f64 {
        self.0.warn_threshold()
    }

    pub fn watch(&mut self, level: u32) {
        self.0.watch(level);
    }

    #[wasm_bindgen(getter)]
    pub fn has_notices(&self) -> bool {
        self.0.has_notices()
    }

    pub fn take_notices(&mut self) -> JsValue {
        js(&self.0.take_notices())
    }

    pub fn stats(&self, now: f64) -> JsValue {
        js(&self.0.stats(now))
    }

    pub fn scope_stats(&self, now: f64, scope: f64) -> JsValue {
        js(&self.0.scope_stats(now, scope))
    }

    #[wasm_bindgen(getter)]
    pub fn refused_scope(&self) -> Option<String> {
        self.0.refused_scope().map(str::to_string)
    }

    #[wasm_bindgen(getter)]
    pub fn refused_ms(&self) -> f64 {
        self.0.refused_ms()
    }

    #[wasm_bindgen(getter)]
    pub fn refused_path(&self) -> Option<String> {
        self.0.refused_path()
    }
}

impl WasmEngine {
    /// Randomness is drawn with the first request: some runtimes have none before. It spreads delays and
    /// keeps no secret, so that the cheap kind will do: to load Node's Web Crypto takes as long as to
    /// compile us.
    fn draw_seed(&mut self) {
        if self.0.wants_seed() {
            let half = || (random() * 4_294_967_296.0) as u64;
            self.0.seed(half() << 32 | half());
        }
    }
}

#[wasm_bindgen]
pub fn parse_hints(lines: &str, status: f64, wall_ms: f64, flags: u32) -> JsValue {
    js(&boundary::parse_hints(lines, status, wall_ms, flags))
}

/// The name that was meant, if one of `known` (one a line) is near enough; else an empty text.
#[wasm_bindgen]
pub fn nearest(typed: &str, known: &str) -> String {
    boundary::nearest(typed, known)
}

/// Checks the options that only a driver reads. Throws a list of `[path, want, got]`.
#[wasm_bindgen]
pub fn check_driver_options(options: JsValue) -> Result<(), JsValue> {
    boundary::check_driver_options(value(&options)).map_err(problems)
}

#[wasm_bindgen]
pub fn parse_crawl_delay(bytes: &[u8], user_agent: &str) -> f64 {
    boundary::parse_crawl_delay(bytes, user_agent)
}
