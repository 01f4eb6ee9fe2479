//! The boundary to components: it only converts and forwards. Native tests cover the code behind it, and a
//! host covers the conversions (`tests/component`). `wit/engine.wit` documents each function.
//!
//! A panic ends the instance, so no number means anything before the façade has looked at it. And a field's
//! value with a line break would forge another field.

mod documents;
mod reader;

use std::cell::RefCell;

use autothrottle::{
    Boundary, Value,
    boundary::{
        self, NO_SCOPE, Outcome, WAIT,
        nanos::{self, now, of_mark as mark_of, span, wall},
        push_field,
    },
};

use crate::{
    bindings::exports::autothrottle::engine::throttling::{self as wit, Guest, GuestEngine},
    documents::{problems, read, write},
};

#[allow(clippy::all, clippy::pedantic, reason = "generated")]
mod bindings {
    wit_bindgen::generate!({ world: "throttle", path: "wit" });
}

/// Half the size of the library's allocator, and faster.
#[cfg(target_family = "wasm")]
#[global_allocator]
static ALLOCATOR: talc::wasm::WasmDynamicTalc = talc::wasm::new_wasm_dynamic_allocator();

struct Component;

bindings::export!(Component with_types_in bindings);

/// One engine. A component is called by one thread at a time and never from within: no borrow fails.
pub struct Engine {
    boundary: RefCell<Boundary>,
    seed: u64,
}

impl Guest for Component {
    type Engine = Engine;

    fn check_driver_options(options: String) -> Result<(), Vec<wit::Problem>> {
        boundary::check_driver_options(read(&options)?).map_err(problems)
    }

    fn nearest(typed: String, known: Vec<String>) -> Option<String> {
        let known: Vec<String> = known.into_iter().map(|name| name.replace('\n', " ")).collect();
        Some(boundary::nearest(&typed, &known.join("\n"))).filter(|name| !name.is_empty())
    }
}

impl GuestEngine for Engine {
    fn new(options: String, seed: u64) -> Result<Self, Vec<wit::Problem>> {
        let boundary = Boundary::new(read(&options)?).map_err(problems)?;
        let engine = Self { boundary: RefCell::new(boundary), seed };
        engine.sow();
        Ok(engine)
    }

    fn restore(&self, snapshot: String, at: u64, wall_ns: Option<u64>) -> Result<(), Vec<wit::Problem>> {
        let snapshot = read(&snapshot)?;
        self.boundary.borrow_mut().restore(snapshot, now(at), wall(wall_ns)).map_err(problems)?;
        self.sow();
        Ok(())
    }

    fn snapshot(&self, at: u64, wall_ns: Option<u64>) -> String {
        write(&self.boundary.borrow().snapshot(now(at), wall(wall_ns)))
    }

    // written by `cargo xtask write`: verbs
    fn scope(&self, name: String) -> u64 {
        self.boundary.borrow_mut().scope(&name) as u64
    }

    fn intern(&self, name: String) -> u64 {
        self.boundary.borrow_mut().intern(&name) as u64
    }

    fn find(&self, name: String) -> Option<u64> {
        found(self.boundary.borrow().find(&name))
    }

    fn keep_alive(&self, scope: u64) -> bool {
        self.boundary.borrow_mut().keep_alive(scope as f64)
    }

    fn release(&self, scope: u64) {
        self.boundary.borrow_mut().release(scope as f64);
    }

    fn scopes(&self) -> u32 {
        self.boundary.borrow().scopes() as u32
    }

    fn name(&self, scope: u64) -> Option<String> {
        self.boundary.borrow().name(scope as f64).map(Into::into)
    }

    fn wants_route(&self, ticket: u64, has_fields: bool) -> bool {
        self.boundary.borrow().wants_route(ticket as f64, has_fields)
    }

    fn route(&self, now: u64, ticket: u64, method: String, url: String) {
        self.boundary.borrow_mut().route(nanos::now(now), ticket as f64, &method, &url);
    }

    fn sent_at(&self, now: u64, ticket: u64) {
        self.boundary.borrow_mut().sent_at(nanos::now(now), ticket as f64);
    }

    fn cancel(&self, now: u64, ticket: u64) {
        self.boundary.borrow_mut().cancel(nanos::now(now), ticket as f64);
    }

    fn prioritize(&self, now: u64, ticket: u64, priority: f64) {
        self.boundary.borrow_mut().prioritize(nanos::now(now), ticket as f64, priority);
    }

    fn hold(&self, now: u64, scope: u64, span: u64) {
        self.boundary.borrow_mut().hold(nanos::now(now), scope as f64, nanos::span(span));
    }

    fn adjust(&self, now: u64, scope: u64, sent: u64, charged: f64, cost: f64) -> bool {
        self.boundary.borrow_mut().adjust(nanos::now(now), scope as f64, nanos::now(sent), charged, cost)
    }

    fn reset(&self, now: u64, scope: u64) {
        self.boundary.borrow_mut().reset(nanos::now(now), scope as f64);
    }

    fn waiting(&self) -> u32 {
        self.boundary.borrow().waiting() as u32
    }

    fn in_flight(&self) -> u32 {
        self.boundary.borrow().in_flight() as u32
    }

    fn warn_threshold(&self) -> u32 {
        self.boundary.borrow().warn_threshold() as u32
    }

    fn retries(&self, method: String) -> u32 {
        self.boundary.borrow().retries(&method) as u32
    }

    fn has_notices(&self) -> bool {
        self.boundary.borrow().has_notices()
    }
    // end of what is written

    fn submit(&self, at: u64, scopes: Vec<u64>, needs: Option<wit::Needs>) -> Result<u64, wit::SubmitError> {
        let mut boundary = self.boundary.borrow_mut();
        let ticket = match (&scopes[..], needs) {
            (&[scope], None) => boundary.submit(now(at), scope as f64, 1.0, 0.0, 0.0),
            (_, needs) => {
                let (scopes, Need { costs, priority, delay_ms, waited_ms }) =
                    (numbers(&scopes), need_of(needs));
                boundary.submit_again(now(at), &scopes, &costs, priority, delay_ms, waited_ms)
            }
        };
        ticket_of(&boundary, ticket)
    }

    fn adopt(
        &self,
        at: u64,
        scopes: Vec<u64>,
        needs: Option<wit::Needs>,
        ago: u64,
    ) -> Result<u64, wit::SubmitError> {
        let mut boundary = self.boundary.borrow_mut();
        let (scopes, Need { costs, priority, waited_ms, .. }) = (numbers(&scopes), need_of(needs));
        let ticket = boundary.adopt(now(at), &scopes, &costs, priority, waited_ms, span(ago));
        ticket_of(&boundary, ticket)
    }

    fn send_at_once(
        &self,
        at: u64,
        scopes: Vec<u64>,
        needs: Option<wit::Needs>,
    ) -> Result<Option<u64>, wit::SubmitError> {
        let Need { costs, priority, delay_ms, waited_ms } = need_of(needs);
        if delay_ms > 0.0 || waited_ms > 0.0 {
            return Ok(None);
        }
        let mut boundary = self.boundary.borrow_mut();
        let ticket = boundary.send_many_at_once(now(at), &numbers(&scopes), &costs, priority);
        if ticket < WAIT {
            return Err(refused(&boundary, ticket + 1.0));
        }
        Ok((ticket >= 0.0).then_some(ticket as u64))
    }

    fn poll(&self, at: u64) -> wit::Decision {
        let mut boundary = self.boundary.borrow_mut();
        let at = now(at);
        let mut send = Vec::new();
        loop {
            let ticket = boundary.poll(at);
            if ticket < 0.0 {
                let wake = boundary.wake_at();
                let wake = wake.is_finite().then(|| mark_of(wake));
                return wit::Decision { send, wake, because: because(&boundary) };
            }
            send.push(ticket as u64);
        }
    }

    fn settle(
        &self,
        at: u64,
        ticket: u64,
        numbers: Vec<f64>,
        fields: Vec<(String, String)>,
        wall_ns: Option<u64>,
    ) -> wit::Settled {
        let lines = lines(&fields);
        let mut boundary = self.boundary.borrow_mut();
        let settled = boundary.settle(now(at), ticket as f64, &outcome(&numbers, &lines, wall_ns));
        settled_of(settled, boundary.asked_ms())
    }

    fn digest(
        &self,
        numbers: Vec<f64>,
        fields: Vec<(String, String)>,
        wall_ns: Option<u64>,
    ) -> wit::Digested {
        let lines = lines(&fields);
        let outcome = outcome(&numbers, &lines, wall_ns);
        let (settled, asked, numbers) = self.boundary.borrow().digest(&outcome);
        wit::Digested { settled: settled_of(settled, asked), numbers }
    }

    fn peek(&self, at: u64, scopes: Vec<u64>, costs: Vec<f64>) -> Result<wit::Forecast, wit::SubmitError> {
        let mut boundary = self.boundary.borrow_mut();
        let scopes = if scopes.is_empty() { vec![NO_SCOPE] } else { numbers(&scopes) };
        let at = boundary.peek(now(at), &scopes, &costs);
        if at < 0.0 {
            return Err(refused(&boundary, at));
        }
        Ok(wit::Forecast { at: at.is_finite().then(|| mark_of(at)), because: because(&boundary) })
    }

    fn configure(&self, at: u64, scope: u64, options: String) -> Result<(), Vec<wit::Problem>> {
        let options = read(&options)?;
        self.boundary.borrow_mut().configure(now(at), scope as f64, options).map_err(problems)
    }

    fn crawl_delay(&self, at: u64, scope: u64, delay: Option<u64>) -> wit::Robots {
        let delay_ms = delay.map_or(f64::NAN, span);
        match self.boundary.borrow_mut().crawl_delay(now(at), scope as f64, delay_ms) {
            0.0 => wit::Robots::Applied,
            1.0 => wit::Robots::Overruled,
            _ => wit::Robots::Ignored,
        }
    }

    fn pause(&self, at: u64, scope: Option<u64>) {
        let mut boundary = self.boundary.borrow_mut();
        match scope {
            None => boundary.pause_all(true),
            Some(scope) => boundary.pause(now(at), scope as f64),
        }
    }

    fn resume(&self, at: u64, scope: Option<u64>) {
        let mut boundary = self.boundary.borrow_mut();
        match scope {
            None => boundary.pause_all(false),
            Some(scope) => boundary.resume(now(at), scope as f64),
        }
    }

    fn stats(&self, at: u64) -> String {
        write(&self.boundary.borrow().stats(now(at)))
    }

    fn scope_stats(&self, at: u64, scope: u64) -> Option<String> {
        let stats = self.boundary.borrow().scope_stats(now(at), scope as f64);
        (stats != Value::Nothing).then(|| write(&stats))
    }

    fn watch(&self, level: wit::Watching) {
        self.boundary.borrow_mut().watch(level as u32);
    }

    fn take_notices(&self) -> String {
        write(&self.boundary.borrow_mut().take_notices())
    }
}

impl Engine {
    /// Gives the engine its seed where the options named none.
    fn sow(&self) {
        let mut boundary = self.boundary.borrow_mut();
        if boundary.wants_seed() {
            boundary.seed(self.seed);
        }
    }
}

/// Reads the end of a request, as a host reports it. `lines` are its fields.
fn outcome<'a>(numbers: &'a [f64], lines: &'a str, wall_ns: Option<u64>) -> Outcome<'a> {
    Outcome { lines, wall_ms: wall(wall_ns), ..Outcome::decode(numbers) }
}

/// Fields as `name: value` lines.
fn lines(fields: &[(String, String)]) -> String {
    let mut lines = String::new();
    for (name, value) in fields {
        push_field(&mut lines, name, value);
    }
    lines
}

fn settled_of(settled: boundary::Settled, asked_ms: f64) -> wit::Settled {
    let asked = (!asked_ms.is_nan()).then(|| mark_of(asked_ms));
    wit::Settled { outcome: outcome_of(settled), asked }
}

fn outcome_of(settled: boundary::Settled) -> wit::Outcome {
    match settled {
        boundary::Settled::Unknown => wit::Outcome::Unknown,
        boundary::Settled::Over => wit::Outcome::Over,
        boundary::Settled::Again => wit::Outcome::Again,
        boundary::Settled::TooLong => wit::Outcome::TooLong,
        boundary::Settled::NotReplayable => wit::Outcome::NotReplayable,
    }
}

/// The needs of a request, in the façade's numbers. (No cost is one of 1.)
#[derive(Default)]
struct Need {
    costs: Vec<f64>,
    priority: f64,
    delay_ms: f64,
    waited_ms: f64,
}

fn need_of(needs: Option<wit::Needs>) -> Need {
    needs.map_or_else(Need::default, |wit::Needs { costs, priority, delay, waited }| Need {
        costs,
        priority,
        delay_ms: span(delay),
        waited_ms: span(waited),
    })
}

fn ticket_of(boundary: &Boundary, ticket: f64) -> Result<u64, wit::SubmitError> {
    if ticket < 0.0 { Err(refused(boundary, ticket)) } else { Ok(ticket as u64) }
}

fn found(scope: f64) -> Option<u64> {
    (scope >= 0.0).then_some(scope as u64)
}

fn numbers(of: &[u64]) -> Vec<f64> {
    of.iter().map(|&number| number as f64).collect()
}

/// After a poll or a peek: who makes the next request wait.
fn because(boundary: &Boundary) -> Option<wit::Cause> {
    let reason = Boundary::reason_at(boundary.reason())?.into();
    let scope = boundary.reason_scope();
    Some(wit::Cause { scope: (scope >= 0.0).then_some(scope as u64), reason })
}

/// The error that the negative number of a refusal stands for.
fn refused(boundary: &Boundary, code: f64) -> wit::SubmitError {
    match code {
        -2.0 => wit::SubmitError::QueueFull,
        -3.0 => wit::SubmitError::CostExceedsQuota(wit::QuotaPlace {
            scope: boundary.refused_scope().unwrap_or_default().into(),
            path: boundary.refused_path().unwrap_or_default(),
        }),
        -4.0 => wit::SubmitError::NotANumber,
        -5.0 => wit::SubmitError::ScopeDown(wit::Stall {
            scope: boundary.refused_scope().unwrap_or_default().into(),
            span: mark_of(boundary.refused_ms()),
        }),
        _ => wit::SubmitError::UnknownScope,
    }
}
