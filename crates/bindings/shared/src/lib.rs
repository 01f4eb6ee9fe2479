//! The boundary to JavaScript of shared limits: it only converts and forwards.
//!
//! Instants and spans are milliseconds, epochs and questions whole numbers, processes 32 hexadecimal digits.
//! An effect is a list: what is to be done by its place in [`effect`], then what belongs to it.

#![allow(missing_docs, reason = "TypeScript documents what it makes of them")]
#![allow(clippy::too_many_arguments, reason = "numbers cross in tens of nanoseconds, objects in a thousand")]
#![allow(clippy::needless_pass_by_value, reason = "what JavaScript hands over is owned")]

use autothrottle::{
    Boundary, Instant, Robots, Span, Value,
    boundary::{IDLE, Outcome, STRIDE, place},
};
use autothrottle_convert::{Exported, exported, js, list, problems, value};
use autothrottle_shared::{
    Ask, Cause, Effect, Input, MemberId, Names, Offline, Order, Refusal, Settings, Shared, store::is_for_good,
};
use wasm_bindgen::prelude::*;

/// As the engine's module has it.
#[cfg(target_family = "wasm")]
#[global_allocator]
static ALLOCATOR: talc::wasm::WasmDynamicTalc = talc::wasm::new_wasm_dynamic_allocator();

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = Uint8Array)]
    type Bytes;

    /// A copy.
    #[wasm_bindgen(constructor, js_class = "Uint8Array")]
    fn new(bytes: &[u8]) -> Bytes;
}

/// The machine as JavaScript sees it. See [`Shared`] for each method.
#[wasm_bindgen]
pub struct WasmShared {
    machine: Shared,
    names: Names,
    now: Instant,
    asked_ms: f64,
    refused: Option<Refusal>,
    reason: f64,
    reason_scope: Option<String>,
}

#[wasm_bindgen]
impl WasmShared {
    /// `offline`: 0 to divide, 1 to wait, 2 to fail; -1 for what fits the quotas. Throws a list of
    /// `[path, want, got]`.
    #[wasm_bindgen(constructor)]
    pub fn new(
        id: &str,
        options: JsValue,
        lease_ms: f64,
        offline: i32,
        members: f64,
        prompt: bool,
        keep_ms: f64,
        snapshot: JsValue,
        wall_ms: f64,
        seed: f64,
    ) -> Result<WasmShared, JsValue> {
        let snapshot = value(&snapshot);
        let settings = Settings {
            lease: Span::from_millis(lease_ms),
            offline: usize::try_from(offline).ok().and_then(|place| OFFLINE.get(place).copied()),
            members: (members >= 1.0).then_some(members as u32),
            prompt,
            keep_every: Span::from_millis(keep_ms),
            snapshot: (snapshot != Value::Nothing).then_some((snapshot, wall_ms)),
        };
        let machine = Shared::new(member(id), value(&options), settings, seed as u64).map_err(problems)?;
        let (refused, reason_scope) = (None, None);
        let now = Instant::from_micros(0);
        Ok(Self {
            machine,
            names: Names::default(),
            now,
            asked_ms: f64::NAN,
            refused,
            reason: -1.0,
            reason_scope,
        })
    }

    /// Whether a failure of the store will not heal by itself.
    pub fn is_for_good(why: &str) -> bool {
        is_for_good(why)
    }

    pub fn open(&mut self, now: f64) {
        let now = self.at(now);
        self.machine.open(now);
    }

    /// The number of a scope's name.
    pub fn intern(&mut self, name: &str) -> u32 {
        self.names.intern(name)
    }

    /// The same, or -1.
    pub fn find(&self, name: &str) -> i32 {
        self.names.find(name).map_or(-1, |number| number as i32)
    }

    pub fn release(&mut self, scope: u32) {
        self.names.release(scope);
    }

    pub fn keep_alive(&self, scope: u32) -> bool {
        self.names.name(scope).is_some()
    }

    pub fn scopes(&self) -> u32 {
        self.names.count() as u32
    }

    // written by `cargo xtask write`: verbs of a group
    pub fn wants_route(&self, ticket: f64, has_fields: bool) -> bool {
        self.machine.wants_route(ticket as u64, has_fields)
    }

    pub fn route(&mut self, now: f64, ticket: f64, method: &str, url: &str) {
        let now = self.at(now);
        self.machine.route(now, ticket as u64, method, url);
    }

    pub fn sent_at(&mut self, now: f64, ticket: f64) {
        let now = self.at(now);
        self.machine.sent_at(now, ticket as u64);
    }

    pub fn cancel(&mut self, now: f64, ticket: f64) {
        let now = self.at(now);
        self.machine.cancel(now, ticket as u64);
    }

    #[wasm_bindgen(getter)]
    pub fn waiting(&self) -> u32 {
        self.machine.waiting()
    }

    #[wasm_bindgen(getter)]
    pub fn in_flight(&self) -> u32 {
        self.machine.in_flight()
    }

    #[wasm_bindgen(getter)]
    pub fn warn_threshold(&self) -> u32 {
        self.machine.warn_threshold()
    }

    pub fn retries(&self, method: &str) -> u32 {
        self.machine.retries(method)
    }
    // end of what is written

    /// A ticket, or -1 for a [refusal](Self::take_refusal).
    pub fn submit(&mut self, now: f64, scopes: &[f64], costs: &[f64], priority: f64, delay_ms: f64) -> f64 {
        let now = self.at(now);
        let names: Option<Vec<&str>> = scopes.iter().map(|&scope| self.names.name(scope as u32)).collect();
        let submitted = match &names {
            Some(names) => self.machine.submit(now, &Ask { names, costs, priority, delay_ms }),
            None => Err(Refusal::Wrong(UNKNOWN.into())),
        };
        match submitted {
            Ok(ticket) => ticket as f64,
            Err(refusal) => {
                self.refused = Some(refusal);
                -1.0
            }
        }
    }

    /// After -1 of `submit`.
    pub fn take_refusal(&mut self) -> Exported {
        self.refused.take().map_or(Ok(JsValue::UNDEFINED), |refusal| exported(&Value::from(&refusal)))
    }

    /// A ticket, or [`IDLE`].
    pub fn poll(&mut self, now: f64) -> f64 {
        let now = self.at(now);
        self.machine.poll(now).map_or(IDLE, |ticket| ticket as f64)
    }

    #[wasm_bindgen(getter)]
    pub fn is_awaited(&self) -> bool {
        self.machine.is_awaited()
    }

    /// The place of the outcome in [`autothrottle::boundary::Settled`].
    pub fn settle(&mut self, now: f64, ticket: f64, mut numbers: Vec<f64>, lines: &str, wall_ms: f64) -> u32 {
        let (now, ticket) = (self.at(now), ticket as u64);
        for scope in numbers.iter_mut().skip(place::RECORDS).step_by(STRIDE) {
            *scope = self.machine.place_of(ticket, self.names.name(*scope as u32));
        }
        let outcome = Outcome { lines, wall_ms, ..Outcome::decode(&numbers) };
        let settlement = self.machine.settle(now, ticket, &outcome);
        self.asked_ms = settlement.asked_ms;
        settlement.settled as u32
    }

    /// After `settle`.
    #[wasm_bindgen(getter)]
    pub fn asked_ms(&self) -> f64 {
        self.asked_ms
    }

    /// Throws a list of `[path, want, got]`.
    pub fn configure(&mut self, now: f64, scope: f64, partial: JsValue) -> Result<(), JsValue> {
        let now = self.at(now);
        let order = Order::Configure(self.name(scope), value(&partial));
        self.machine.order(now, order).map_err(problems)
    }

    /// The place of the outcome in [`Robots`]. NaN is none.
    pub fn crawl_delay(&mut self, now: f64, scope: f64, ms: f64) -> u32 {
        let (now, name) = (self.at(now), self.name(scope));
        let delay = (ms >= 0.0).then(|| Span::from_millis(ms));
        let robots: Robots = self.machine.crawl_delay(now, &name, delay);
        robots as u32
    }

    /// An order that cannot be wrong; of all scopes where `scope` is -1.
    ///
    /// | `what` | order | `of` |
    /// |---|---|---|
    /// | 0 | hold | for this many milliseconds |
    /// | 1, 2, 3 | pause, resume, reset | |
    /// | 4 | adjust | when it left, what was charged, and what it cost |
    pub fn order(&mut self, now: f64, what: u32, scope: f64, of: &[f64]) {
        let instant = self.at(now);
        let name = (scope >= 0.0).then(|| self.name(scope));
        let order = match (what, name, of) {
            (0, Some(name), &[ms]) => Order::Hold(name, Span::from_millis(ms)),
            (1, name, _) => Order::Pause(name),
            (2, name, _) => Order::Resume(name),
            (3, Some(name), _) => Order::Reset(name),
            (4, Some(name), &[sent, charged, cost]) => {
                Order::Adjust { name, ago: Span::from_millis((now - sent).max(0.0)), charged, cost }
            }
            _ => return,
        };
        let _ = self.machine.order(instant, order);
    }

    pub fn watch(&mut self, now: f64, level: u8) {
        let now = self.at(now);
        self.machine.watch(now, level);
    }

    pub fn timeout(&mut self, now: f64) {
        self.hears(now, Input::Timeout);
    }

    pub fn opened(&mut self, now: f64) {
        self.hears(now, Input::Opened);
    }

    pub fn received(&mut self, now: f64, frame: &[u8]) {
        self.hears(now, Input::Received(frame));
    }

    pub fn elected(
        &mut self,
        now: f64,
        op: f64,
        epoch: f64,
        stored: Option<Vec<u8>>,
        age_ms: f64,
        first: bool,
    ) {
        let stored = stored.as_deref().map(|bytes| (bytes, Span::from_millis(age_ms)));
        self.hears(now, Input::Elected { op: op as u64, epoch: epoch as u64, stored, first });
    }

    /// The lease is ours, or that of another.
    pub fn answered(&mut self, now: f64, op: f64, is_ours: bool) {
        let op = op as u64;
        self.hears(now, if is_ours { Input::Renewed { op } } else { Input::Refused { op } });
    }

    /// `is_denied`: it can never work.
    pub fn failed(&mut self, now: f64, op: f64, why: &str, is_denied: bool) {
        let cause = if is_denied { Cause::Denied(why) } else { Cause::Broken(why) };
        self.hears(now, Input::Failed { op: op as u64, cause });
    }

    pub fn fenced(&mut self, now: f64, epoch: f64) {
        self.hears(now, Input::Fenced { epoch: epoch as u64 });
    }

    pub fn unheard(&mut self, now: f64, id: &str, epoch: f64) {
        self.hears(now, Input::Unheard { to: member(id), epoch: epoch as u64 });
    }

    pub fn vacant(&mut self, now: f64, ended: bool) {
        self.hears(now, Input::Vacant { ended });
    }

    pub fn gone(&mut self, now: f64, id: &str) {
        self.hears(now, Input::Gone(member(id)));
    }

    /// The next effect to perform, if there is one: its place in [`effect`], then what belongs to it.
    pub fn poll_effect(&mut self, now: f64) -> Exported {
        let now = self.at(now);
        Ok(self.machine.poll_effect(now).map_or(JsValue::UNDEFINED, effect))
    }

    /// Infinity for never.
    #[wasm_bindgen(getter)]
    pub fn wake_at(&self) -> f64 {
        self.machine.wake_at().map_or(f64::INFINITY, Instant::millis)
    }

    pub fn close(&mut self, now: f64) {
        let now = self.at(now);
        self.machine.close(now);
    }

    #[wasm_bindgen(getter)]
    pub fn has_unsaid(&self) -> bool {
        self.machine.has_unsaid()
    }

    pub fn status(&self, now: f64) -> Exported {
        let now = Instant::from_millis(now).unwrap_or(self.now);
        exported(&Value::from(&self.machine.status(now)))
    }

    /// `reason` and `reason_scope` say more.
    pub fn peek(&mut self, now: f64, scopes: &[f64], costs: &[f64]) -> f64 {
        let now = self.at(now);
        let name = |&scope: &f64| self.names.name(scope as u32).unwrap_or_default();
        let names: Vec<&str> = scopes.iter().map(name).collect();
        let (at, reason, scope) = self.machine.peek(now, &names, costs);
        (self.reason, self.reason_scope) = (reason, scope);
        at
    }

    #[wasm_bindgen(getter)]
    pub fn reason(&self) -> Option<String> {
        Boundary::reason_at(self.reason).map(str::to_string)
    }

    #[wasm_bindgen(getter)]
    pub fn reason_scope(&self) -> Option<String> {
        self.reason_scope.clone()
    }

    pub fn stats(&mut self, now: f64) -> Exported {
        let now = self.at(now);
        exported(&self.machine.stats(now))
    }

    pub fn scope_stats(&mut self, now: f64, scope: f64) -> Exported {
        let (now, name) = (self.at(now), self.name(scope));
        exported(&self.machine.scope_stats(now, &name))
    }

    pub fn snapshot(&mut self, now: f64, wall_ms: f64) -> Exported {
        let now = self.at(now);
        exported(&self.machine.snapshot(now, wall_ms))
    }
}

/// In the order of the numbers that JavaScript gives.
const OFFLINE: [Offline; 3] = [Offline::Divide, Offline::Wait, Offline::Fail];
/// Why a request is refused whose scope was forgotten.
const UNKNOWN: &str = "the request names no scope that is known";

impl WasmShared {
    /// A time that is not a number, or below zero, is ignored: time stands still.
    fn at(&mut self, ms: f64) -> Instant {
        self.now = Instant::from_millis(ms).unwrap_or(self.now);
        self.now
    }

    fn hears(&mut self, now: f64, input: Input<'_>) {
        let now = self.at(now);
        self.machine.handle(now, input);
    }

    /// The empty name for a number that means none.
    fn name(&self, scope: f64) -> String {
        self.names.name(scope as u32).unwrap_or_default().into()
    }
}

/// An invalid name is that of no process.
fn member(id: &str) -> MemberId {
    id.parse().unwrap_or(MemberId([0; 16]))
}

/// An effect as a list; the first is its kind.
fn effect(effect: Effect) -> JsValue {
    let number = |number: u64| JsValue::from_f64(number as f64);
    let bytes = |bytes: &[u8]| JsValue::from(Bytes::new(bytes));
    let stored = |store: Option<Vec<u8>>| store.map_or(JsValue::UNDEFINED, |store| bytes(&store));
    let items: Vec<JsValue> = match effect {
        Effect::Compete { op, above } => vec![number(0), number(op), number(above)],
        Effect::Renew { op, epoch, store } => vec![number(1), number(op), number(epoch), stored(store)],
        Effect::Release { op, epoch, store } => vec![number(2), number(op), number(epoch), stored(store)],
        Effect::ToLeader(frame) => vec![number(3), bytes(&frame)],
        Effect::ToMember { epoch, to, bytes: frame } => {
            vec![number(4), number(epoch), JsValue::from_str(&to.to_string()), bytes(&frame)]
        }
        Effect::ToAll { epoch, bytes: frame } => vec![number(5), number(epoch), bytes(&frame)],
        Effect::Reconnect { speaks } => vec![number(6), JsValue::from_bool(speaks)],
        Effect::Fail { ticket, why } => vec![number(7), number(ticket), js(&Value::from(&why))],
        Effect::Notice(notice) => vec![number(8), js(&notice)],
        Effect::Warn(warning) => {
            vec![number(9), JsValue::from_str(warning.code()), JsValue::from_str(&warning.text())]
        }
        Effect::Moved => vec![number(10)],
    };
    list(items)
}
