//! The boundary to JavaScript: it only converts and forwards. Native tests cover the code behind it.
//!
//! A numeric call costs about 10 ns, one with objects about 1 µs. A panic poisons the module for good, so the
//! façade checks every number before it means anything. A thrown Rust string is no `Error`, so problems leave
//! as data and TypeScript throws.

#![allow(missing_docs, reason = "TypeScript documents what it makes of them")]
#![allow(clippy::too_many_arguments, reason = "numbers cross in tens of nanoseconds, objects in a thousand")]
#![allow(clippy::needless_pass_by_value, reason = "what JavaScript hands over is owned")]

mod memory;

use autothrottle::{
    Boundary,
    boundary::{self, Outcome},
};
use autothrottle_convert::{Exported, exported, problems, value};
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

/// The engine as JavaScript sees it. See [`Boundary`] for each method. `Engine` of TypeScript extends it:
/// names in camel case are its own methods, the others are what those with checks call.
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
    pub fn restore_from(&mut self, snapshot: JsValue, now: f64, wall_ms: f64) -> Result<(), JsValue> {
        self.0.restore(value(&snapshot), now, wall_ms).map_err(problems)
    }

    pub fn snapshot(&self, now: f64, wall_ms: f64) -> Exported {
        exported(&self.0.snapshot(now, wall_ms))
    }

    #[wasm_bindgen(getter)]
    pub fn reason(&self) -> Option<String> {
        Boundary::reason_at(self.0.reason()).map(str::to_string)
    }

    #[wasm_bindgen(getter, js_name = reasonScope)]
    pub fn reason_scope(&self) -> Option<String> {
        self.0.name(self.0.reason_scope()).map(str::to_string)
    }

    /// The place of the outcome in [`boundary::Settled`], and 8 more if there are notices.
    pub fn settle_plain(
        &mut self,
        now: f64,
        ticket: f64,
        answer: f64,
        latency_ms: f64,
        cost: f64,
        flags: u32,
    ) -> u32 {
        let settled = self.0.settle_plain(now, ticket, answer, latency_ms, cost, flags) as u32;
        settled | u32::from(self.0.has_notices()) << 3
    }

    /// The same of a good answer with header lines: 1 if there are notices, else 0; 2, and no state has
    /// changed, if the route of the request has to be named first.
    pub fn settle_lines(
        &mut self,
        now: f64,
        ticket: f64,
        answer: f64,
        latency_ms: f64,
        lines: &str,
        wall_ms: f64,
    ) -> u32 {
        let outcome = Outcome { lines, wall_ms, ..Outcome::new(answer, latency_ms, f64::NAN, 0) };
        match self.0.settle_unrouted(now, ticket, &outcome) {
            Some(_) => u32::from(self.0.has_notices()),
            None => 2,
        }
    }

    /// The same with header lines, and with all that [`Outcome::decode`] takes.
    pub fn settle_with(&mut self, now: f64, ticket: f64, numbers: &[f64], lines: &str, wall_ms: f64) -> u32 {
        let outcome = Outcome { lines, wall_ms, ..Outcome::decode(numbers) };
        self.0.settle(now, ticket, &outcome) as u32
    }

    /// Throws a list of `[path, want, got]`.
    pub fn configure_scope(&mut self, now: f64, scope: f64, partial: JsValue) -> Result<(), JsValue> {
        self.0.configure(now, scope, value(&partial)).map_err(problems)
    }

    pub fn take_notices(&mut self) -> Exported {
        exported(&self.0.take_notices())
    }

    /// Of all scopes without one.
    pub fn stats_of(&self, now: f64, scope: Option<f64>) -> Exported {
        match scope {
            Some(scope) => exported(&self.0.scope_stats(now, scope)),
            None => exported(&self.0.stats(now)),
        }
    }

    /// All scopes without one.
    pub fn pause(&mut self, now: f64, scope: Option<f64>) {
        match scope {
            Some(scope) => self.0.pause(now, scope),
            None => self.0.pause_all(true),
        }
    }

    /// All scopes without one.
    pub fn resume(&mut self, now: f64, scope: Option<f64>) {
        match scope {
            Some(scope) => self.0.resume(now, scope),
            None => self.0.pause_all(false),
        }
    }

    #[wasm_bindgen(getter)]
    pub fn refused_scope(&self) -> Option<String> {
        self.0.refused_scope().map(str::to_string)
    }
}

/// Methods of [`Boundary`], each with its name in JavaScript, in three kinds by what comes first.
macro_rules! forward {
    ($first:ident:
        $($(#[$meta:meta])* $js:ident = fn $name:ident($($arg:ident: $type:ty),*) $(-> $out:ty)?;)*) => {
        #[wasm_bindgen]
        impl WasmEngine {
            $(#[wasm_bindgen(js_name = $js)] $(#[$meta])*
            pub fn $name(&mut self, $($arg: $type),*) $(-> $out)? {
                $first(self);
                self.0.$name($($arg),*)
            })*
        }
    };
}

forward! { at_once:
    // written by `cargo xtask write`: verbs
    find = fn find(name: &str) -> f64;
    keepAlive = fn keep_alive(scope: f64) -> bool;
    release = fn release(scope: f64);
    #[wasm_bindgen(getter)]
    scopes = fn scopes() -> f64;
    wantsRoute = fn wants_route(ticket: f64, has_fields: bool) -> bool;
    sentAt = fn sent_at(now: f64, ticket: f64);
    cancel = fn cancel(now: f64, ticket: f64);
    prioritize = fn prioritize(now: f64, ticket: f64, priority: f64);
    hold = fn hold(now: f64, scope: f64, ms: f64);
    adjust_cost = fn adjust(now: f64, scope: f64, sent: f64, charged: f64, cost: f64) -> bool;
    reset = fn reset(now: f64, scope: f64);
    #[wasm_bindgen(getter)]
    waiting = fn waiting() -> f64;
    #[wasm_bindgen(getter)]
    inFlight = fn in_flight() -> f64;
    #[wasm_bindgen(getter)]
    warnThreshold = fn warn_threshold() -> f64;
    retries = fn retries(method: &str) -> f64;
    #[wasm_bindgen(getter)]
    hasNotices = fn has_notices() -> bool;
    // end of what is written
    #[wasm_bindgen(getter)]
    wakeAt = fn wake_at() -> f64;
    #[wasm_bindgen(getter)]
    askedMs = fn asked_ms() -> f64;
    crawl_delay = fn crawl_delay(now: f64, scope: f64, ms: f64) -> f64;
    peek_at = fn peek(now: f64, scopes: &[f64], costs: &[f64]) -> f64;
    watch = fn watch(level: u32);
    #[wasm_bindgen(getter)]
    refused_ms = fn refused_ms() -> f64;
    #[wasm_bindgen(getter)]
    refused_path = fn refused_path() -> Option<String>;
}

forward! { with_room:
    // written by `cargo xtask write`: verbs that make room
    scope_of = fn scope(name: &str) -> f64;
    intern = fn intern(name: &str) -> f64;
    route = fn route(now: f64, ticket: f64, method: &str, url: &str);
    // end of what is written
    submit_one = fn submit(now: f64, scope: f64, cost: f64, priority: f64, delay_ms: f64) -> f64;
    submit_again = fn submit_again(
        now: f64, scopes: &[f64], costs: &[f64], priority: f64, delay_ms: f64, waited_ms: f64) -> f64;
}

forward! { with_seed:
    adopt_sent = fn adopt(
        now: f64, scopes: &[f64], costs: &[f64], priority: f64, waited_ms: f64, sent_ago_ms: f64) -> f64;
    send_at_once = fn send_at_once(now: f64, scope: f64, cost: f64, priority: f64) -> f64;
    send_many_at_once = fn send_many_at_once(now: f64, scopes: &[f64], costs: &[f64], priority: f64) -> f64;
    poll = fn poll(now: f64) -> f64;
}

fn at_once(_: &mut WasmEngine) {}

fn with_room(_: &mut WasmEngine) {
    make_room();
}

/// Randomness is drawn with the first request: some runtimes have none before. It spreads delays and keeps no
/// secret, so the cheap kind will do. The crate getrandom asks Web Crypto, and to load that takes Node 20
/// five to eight milliseconds of CPU, as long as to compile us.
fn with_seed(engine: &mut WasmEngine) {
    if engine.0.wants_seed() {
        let half = || (random() * 4_294_967_296.0) as u64;
        engine.0.seed(half() << 32 | half());
    }
}

#[wasm_bindgen]
pub fn parse_hints(lines: &str, status: f64, wall_ms: f64, flags: u32) -> Exported {
    exported(&boundary::parse_hints(lines, status, wall_ms, flags))
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
