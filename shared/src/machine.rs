//! One process of a group.

use autothrottle::{
    ConfigError, Instant, Robots, Span, Value,
    boundary::{Outcome, Settled},
};

use crate::api::{Ask, Effect, Input, MemberId, Order, Refusal, Settings, Settlement, Status, Ticket};

/// One process of a group: member always, leader while it holds the lease.
///
/// Nothing in here panics, whatever comes in. Same calls, same effects: a run can be replayed.
#[derive(Debug)]
pub struct Shared {}

impl Shared {
    /// A process that has asked for nothing yet. `options` are those of the engine, as they were typed;
    /// `seed` decides what it draws.
    pub fn new(id: MemberId, options: Value, settings: Settings, seed: u64) -> Result<Self, ConfigError> {
        todo!()
    }

    /// Takes a request in. It waits, also if it could leave at once: [`poll`](Self::poll) says when.
    pub fn submit(&mut self, now: Instant, ask: &Ask<'_>) -> Result<Ticket, Refusal> {
        todo!()
    }

    /// A request of this process to send now. Ask again until there is none; what is next is in
    /// [`wake_at`](Self::wake_at).
    pub fn poll(&mut self, now: Instant) -> Option<Ticket> {
        todo!()
    }

    /// Whether somebody waits for the time after what `poll` gave last: then the host says when it really
    /// [left](Self::left).
    pub fn is_awaited(&self) -> bool {
        todo!()
    }

    /// A request that `poll` gave leaves only now.
    pub fn left(&mut self, now: Instant, ticket: Ticket) {
        todo!()
    }

    /// How a request that `poll` gave ended. `outcome.scopes` name scopes by their place among the request's
    /// names. If it waits again, it does so under the same ticket. [`Settled::Unknown`] if it is not in
    /// flight.
    pub fn settle(&mut self, now: Instant, ticket: Ticket, outcome: &Outcome<'_>) -> Settlement {
        todo!()
    }

    /// The caller gave up: the request is forgotten, whether it waits or is in flight.
    pub fn cancel(&mut self, now: Instant, ticket: Ticket) {
        todo!()
    }

    /// Gives an order to the whole group. Settings that are wrong change nothing.
    pub fn order(&mut self, now: Instant, order: Order) -> Result<(), ConfigError> {
        todo!()
    }

    /// What the robots.txt of a scope asks for. Only [`Robots::Applied`] is an order to the group.
    pub fn crawl_delay(&mut self, now: Instant, name: &str, delay: Option<Span>) -> Robots {
        todo!()
    }

    /// How much this process wants to hear of answers: 0 nothing, 1 what they changed, 2 every answer.
    pub fn watch(&mut self, now: Instant, level: u8) {
        todo!()
    }

    /// Something happened outside.
    pub fn handle(&mut self, now: Instant, input: Input<'_>) {
        todo!()
    }

    /// What is to be done next. Take them at the end of a turn until there is none: what was asked and
    /// granted in the turn is put into frames here.
    pub fn poll_effect(&mut self, now: Instant) -> Option<Effect> {
        todo!()
    }

    /// When to come back with [`Input::Timeout`] and [`poll`](Self::poll). `None` before anything was asked,
    /// and after the end.
    pub fn wake_at(&self) -> Option<Instant> {
        todo!()
    }

    /// Leaves the group: hands the lease over, or says goodbye. Take the effects afterwards; a last
    /// `Release` needs its answer no more.
    pub fn close(&mut self, now: Instant) {
        todo!()
    }

    /// Requests of this process that have not left.
    pub fn waiting(&self) -> u32 {
        todo!()
    }

    /// Requests of this process in flight.
    pub fn in_flight(&self) -> u32 {
        todo!()
    }

    /// The group as this process knows it.
    pub fn status(&self, now: Instant) -> Status {
        todo!()
    }

    /// When a request could be sent as far as is known here: milliseconds of this process's clock, infinity
    /// if that depends on an event. And why not now: the place in `Reason::ALL`, or -1, and the scope.
    pub fn peek(&mut self, now: Instant, names: &[&str], costs: &[f64]) -> (f64, f64, Option<String>) {
        todo!()
    }

    /// The state of everything as far as is known here, as of `Boundary::stats`; `ageMs` says how old it is.
    pub fn stats(&mut self, now: Instant) -> Value {
        todo!()
    }

    /// The state of one scope, as of `Boundary::scope_stats`: that of a new one, where it is not known.
    pub fn scope_stats(&mut self, now: Instant, name: &str) -> Value {
        todo!()
    }

    /// What was learned, as of `Boundary::snapshot`.
    pub fn snapshot(&mut self, now: Instant, wall_ms: f64) -> Value {
        todo!()
    }

    /// `warnThreshold` of this process's options.
    pub fn warn_threshold(&self) -> u32 {
        todo!()
    }
}
