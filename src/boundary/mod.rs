//! The engine in plain numbers and values: what every host (JavaScript, a component, Python) forwards to.
//!
//! Instants and spans are milliseconds, handles and tickets are whole numbers, NaN is unknown. A value that
//! makes no sense changes no state. Results of a call beside its number are left in getters until the next
//! call.
//!
//! Each call carries everything, and no getter is ever read by a call. A call that prepares another one would
//! leave its word behind for the next request when that other one never comes.

use crate::{
    Cause, Config, ConfigError, Cost, Decision, Engine, Hints, Instant, Notice, Peek, Reason, Request,
    Robots, ScopeId, ScopeStats, Snapshot, Span, Stats, SubmitError, Ticket, Value, Watch, crawl_delay_ms,
    slab::Id,
};

mod elsewhere;
pub mod nanos;
mod outcome;

pub use crate::observe::{UNTOLD, Word};
pub use elsewhere::route_of;
pub use outcome::{Outcome, STRIDE, Settled, flags, place, push_field};

use outcome::context;

/// The answer of [`Boundary::poll`] if no request may leave before `wake_at`.
pub const WAIT: f64 = -1.0;

/// The answer of [`Boundary::poll`] if time alone changes no decision.
pub const IDLE: f64 = -2.0;

/// A scope that was not asked for yet, to [`Boundary::peek`]: it allows everything.
pub const NO_SCOPE: f64 = -1.0;

/// The number of a scope, good for the engine that gave it.
pub type Handle = f64;

/// A handle, or [`NO_SCOPE`].
pub type Found = f64;

/// How many there are.
pub type Count = f64;

/// The engine as hosts see it. `cargo xtask write` reads these methods, and writes those of each host that
/// only forward. The name of an argument says its kind: `now` and `sent` are instants, `ms` is a span. The
/// type of a result says what it is. The documentation is that of every host.
#[derive(Debug)]
pub struct Boundary {
    engine: Engine,
    is_seeded: bool,
    wake_at: f64,
    because: Option<Cause>,
    asked_ms: f64,
    refused: Option<ScopeId>,
    refused_setting: &'static str,
    refused_ms: f64,
}

impl Boundary {
    /// An engine for options as they were typed.
    pub fn new(options: Value) -> Result<Self, ConfigError> {
        Ok(Self::of(Engine::new(Config::parse(options)?)))
    }

    /// Goes on where `snapshot` was taken. If it is wrong no state has changed.
    pub fn restore(&mut self, snapshot: Value, now: f64, wall_ms: f64) -> Result<(), ConfigError> {
        let snapshot = Snapshot::parse(snapshot)?;
        let config = self.engine.config().clone();
        *self = Self::of(Engine::restore(config, &snapshot, self.now(now), wall(wall_ms)));
        Ok(())
    }

    /// The learned state, for [`Boundary::restore`] in another process.
    pub fn snapshot(&self, now: f64, wall_ms: f64) -> Value {
        Value::from(self.engine.snapshot(self.now(now), wall(wall_ms)))
    }

    /// The same of some scopes alone; those that are unknown are left out.
    pub fn snapshot_of(&self, now: f64, wall_ms: f64, scopes: &[f64]) -> Value {
        Value::from(self.engine.snapshot_of(self.now(now), wall(wall_ms), &those_of(scopes)))
    }

    /// Statistics of everything, with these scopes alone.
    pub fn stats_of(&self, now: f64, scopes: &[f64]) -> Value {
        Value::from(&self.engine.stats_of(self.now(now), &those_of(scopes)))
    }

    /// The engine itself, for hosts with types.
    pub fn engine(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// The options, as they are meant.
    pub fn config(&self) -> &Config {
        self.engine.config()
    }

    /// Whether the host should draw a [seed](Boundary::seed) before the first request leaves.
    pub fn wants_seed(&self) -> bool {
        !self.is_seeded
    }

    /// Gives the seed that the options did not name.
    pub fn seed(&mut self, seed: u64) {
        self.is_seeded = true;
        self.engine.seed(seed);
    }

    /// The handle of a scope, made on first use and good until it is released.
    pub fn scope(&mut self, name: &str) -> Handle {
        self.engine.scope(name).to_number()
    }

    /// A handle that may be forgotten when its scope is idle: use it at once, or [`Boundary::keep_alive`] it
    /// first.
    pub fn intern(&mut self, name: &str) -> Handle {
        self.engine.intern(name).to_number()
    }

    /// The handle of a known scope. Makes none and keeps none.
    pub fn find(&self, name: &str) -> Found {
        self.engine.find(name).map_or(NO_SCOPE, ScopeId::to_number)
    }

    /// Whether the handle still means what it meant; if so, its scope stays at least until the next
    /// [`Boundary::poll`].
    pub fn keep_alive(&mut self, scope: f64) -> bool {
        ScopeId::from_number(scope).is_some_and(|scope| self.engine.keep_alive(scope))
    }

    /// Gives a handle back: its scope is forgotten now if it looks like new, and may be later beyond
    /// `maxScopes`.
    pub fn release(&mut self, scope: f64) {
        if let Some(scope) = ScopeId::from_number(scope) {
            self.engine.release(scope);
        }
    }

    /// How many scopes the engine knows.
    pub fn scopes(&self) -> Count {
        self.engine.scopes() as f64
    }

    /// The name behind a handle.
    pub fn name(&self, scope: f64) -> Option<&str> {
        self.engine.name(ScopeId::from_number(scope)?)
    }

    /// Takes in a request of one scope. A ticket, or the negative number of a
    /// [refusal](Boundary::refused_scope).
    pub fn submit(&mut self, now: f64, scope: f64, cost: f64, priority: f64, delay_ms: f64) -> f64 {
        self.take_in(now, ScopeId::from_number(scope).as_slice(), &[cost], priority, delay_ms)
    }

    /// The same for several scopes, with costs beside them; the last one holds for all further scopes.
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

    /// A ticket to send now; [`WAIT`] if it has to be submitted (then no state has changed); or the negative
    /// number of a refusal less one. See [`Engine::send_at_once`].
    pub fn send_at_once(&mut self, now: f64, scope: f64, cost: f64, priority: f64) -> f64 {
        if cost == 1.0
            && priority == 0.0
            && let (Some(at), Some(id)) = (Instant::from_millis(now), Id::from_number(scope))
            && let Some(ticket) = self.engine.send_express(at, ScopeId(id))
        {
            return ticket.0.to_number();
        }
        self.fuse(now, ScopeId::from_number(scope).as_slice(), &[cost], priority)
    }

    /// The same for several scopes, with costs beside them.
    pub fn send_many_at_once(&mut self, now: f64, scopes: &[f64], costs: &[f64], priority: f64) -> f64 {
        if let ([scope], [cost]) = (scopes, costs) {
            return self.send_at_once(now, *scope, *cost, priority);
        }
        self.fuse(now, &scope_ids(scopes), costs, priority)
    }

    /// A ticket to send now, [`WAIT`] or [`IDLE`]; `wake_at`, `reason` and `reason_scope` say more.
    pub fn poll(&mut self, now: f64) -> f64 {
        match self.engine.poll(self.now(now)) {
            Decision::Send(ticket) => ticket.to_number(),
            Decision::Wait { until, because } => {
                (self.wake_at, self.because) = (until.millis(), Some(because));
                WAIT
            }
            Decision::Idle { because } => {
                (self.wake_at, self.because) = (f64::INFINITY, because);
                IDLE
            }
        }
    }

    /// After [`WAIT`]: when to poll again, strictly in the future. After [`IDLE`]: infinity.
    pub fn wake_at(&self) -> f64 {
        self.wake_at
    }

    /// After [`WAIT`], [`IDLE`] or a peek: the place of the reason in [`Reason::ALL`], or -1.
    pub fn reason(&self) -> f64 {
        self.because.map_or(-1.0, |cause| f64::from(cause.reason as u8))
    }

    /// The scope that says so, or [`NO_SCOPE`] for the whole throttle.
    pub fn reason_scope(&self) -> f64 {
        self.because.and_then(|cause| cause.scope).map_or(NO_SCOPE, ScopeId::to_number)
    }

    /// The word for the reason at this place, as `reason` gives it.
    pub fn reason_at(place: f64) -> Option<&'static str> {
        Reason::ALL.get(place as usize).filter(|_| place >= 0.0).map(|reason| reason.name())
    }

    /// Sets the delay that the robots.txt of a scope asks for; NaN is none. The place of the outcome in
    /// [`Robots`].
    pub fn crawl_delay(&mut self, now: f64, scope: f64, ms: f64) -> f64 {
        let now = self.now(now);
        let delay = (ms >= 0.0).then(|| Span::from_millis(ms));
        let outcome = ScopeId::from_number(scope).map(|scope| self.engine.crawl_delay(now, scope, delay));
        f64::from(outcome.unwrap_or(Robots::Ignored) as u8)
    }

    /// Whether the [`Boundary::route`] of a request is to be named. Ask after `submit`; of what waits when
    /// the notice `budgets` comes; and before `settle`, where `has_fields` says that header fields follow.
    pub fn wants_route(&self, ticket: f64, has_fields: bool) -> bool {
        Ticket::from_number(ticket).is_some_and(|ticket| self.engine.wants_route(ticket, has_fields))
    }

    /// Names the route of a request, where it is [wanted](Boundary::wants_route), by its method and URL. Poll
    /// afterwards.
    pub fn route(&mut self, now: f64, ticket: f64, method: &str, url: &str) {
        if let Some(ticket) = Ticket::from_number(ticket) {
            self.engine.route(self.now(now), ticket, method, url);
        }
    }

    /// Says that the request that [`Boundary::poll`] gave left only at `now`: the delays of its scopes, and
    /// what rampup found, count from there. For a loop that is busy between the two. It may come later: an
    /// instant that is over counts as it is. Unknown tickets, and those that were not sent, are ignored.
    pub fn sent_at(&mut self, now: f64, ticket: f64) {
        if let Some(ticket) = Ticket::from_number(ticket) {
            self.engine.sent_at(self.now(now), ticket);
        }
    }

    /// Takes a waiting request out; one that was allowed to leave but never did gives everything back.
    pub fn cancel(&mut self, now: f64, ticket: f64) {
        if let Some(ticket) = Ticket::from_number(ticket) {
            self.engine.cancel(self.now(now), ticket);
        }
    }

    /// Gives a waiting request another priority; it keeps its age. Other tickets are ignored. Poll
    /// afterwards.
    pub fn prioritize(&mut self, now: f64, ticket: f64, priority: f64) {
        if let Some(ticket) = Ticket::from_number(ticket) {
            self.engine.prioritize(self.now(now), ticket, priority);
        }
    }

    /// When a request could be sent: milliseconds, infinity if that depends on an event, or the negative
    /// number of a refusal. [`NO_SCOPE`] stands for a scope that there is not yet. `reason` and
    /// `reason_scope` say why not now.
    pub fn peek(&mut self, now: f64, scopes: &[f64], costs: &[f64]) -> f64 {
        let last = costs.last().copied().unwrap_or(1.0);
        let (mut known, mut of_known) = (Vec::new(), Vec::new());
        for (place, &scope) in scopes.iter().enumerate() {
            if scope != NO_SCOPE {
                known.push(scope);
                of_known.push(costs.get(place).copied().unwrap_or(last));
            }
        }
        let now = self.now(now);
        let ids = scope_ids(&known);
        let request = Request { costs: &of_known, ..Request::new(&ids) };
        let peek = if known.is_empty() && !scopes.is_empty() {
            Ok(self.engine.peek_new(now))
        } else {
            self.engine.peek(now, request)
        };
        match peek {
            Ok(Peek { at, because }) => {
                self.because = because;
                at.map_or(f64::INFINITY, Instant::millis)
            }
            Err(error) => self.refuse(error),
        }
    }

    /// Changes settings of one scope. If they are wrong no setting has changed.
    pub fn configure(&mut self, now: f64, scope: f64, partial: Value) -> Result<(), ConfigError> {
        match ScopeId::from_number(scope) {
            Some(scope) => self.engine.configure(self.now(now), scope, partial),
            None => Ok(()),
        }
    }

    /// Sends no request of this scope for that long. A hold that is longer already stays.
    pub fn hold(&mut self, now: f64, scope: f64, ms: f64) {
        self.change(now, scope, |engine, now, scope| engine.hold(now, scope, Span::from_millis(ms)));
    }

    /// Corrects the cost in this scope of a request that left at `sent` to `cost`, where `charged` has been
    /// taken for it so far. It may have been settled. False where one of them is no cost. Poll afterwards.
    pub fn adjust(&mut self, now: f64, scope: f64, sent: f64, charged: f64, cost: f64) -> bool {
        let (Some(charged), Some(cost)) = (Cost::from_units(charged), Cost::from_units(cost)) else {
            return false;
        };
        let sent = self.now(sent);
        self.change(now, scope, |engine, now, scope| engine.adjust(now, scope, sent, charged, cost));
        true
    }

    /// Sends no request of this scope until [`Boundary::resume`].
    pub fn pause(&mut self, now: f64, scope: f64) {
        self.change(now, scope, Engine::pause);
    }

    /// Ends a pause of this scope.
    pub fn resume(&mut self, now: f64, scope: f64) {
        self.change(now, scope, Engine::resume);
    }

    /// Forgets what this scope learned and lifts its hold. The spent parts of quotas and budgets, settings
    /// and requests in flight stay. Poll afterwards.
    pub fn reset(&mut self, now: f64, scope: f64) {
        self.change(now, scope, Engine::reset);
    }

    /// Pauses everything, or ends that pause.
    pub fn pause_all(&mut self, paused: bool) {
        self.engine.pause_all(paused);
    }

    /// Requests that wait.
    pub fn waiting(&self) -> Count {
        f64::from(self.engine.waiting())
    }

    /// Requests in flight.
    pub fn in_flight(&self) -> Count {
        f64::from(self.engine.in_flight())
    }

    /// The setting `warnThreshold`: more waiting requests than that cause a warning.
    pub fn warn_threshold(&self) -> Count {
        f64::from(self.engine.config().warn_threshold)
    }

    /// How often a request of this method is sent again at most, by the setting `retry`.
    pub fn retries(&self, method: &str) -> Count {
        f64::from(self.engine.config().retry.retries(method))
    }

    /// How much notices say of answers: 0 no word, 1 what they changed, 2 every answer as well.
    pub fn watch(&mut self, level: u32) {
        self.engine.watch(match level {
            0 => Watch::Nothing,
            1 => Watch::Changes,
            _ => Watch::Answers,
        });
    }

    /// Whether there is something for [`Boundary::take_notices`].
    pub fn has_notices(&self) -> bool {
        self.engine.has_notices()
    }

    /// The notices for people and drivers since the last call.
    pub fn take_notices(&mut self) -> Value {
        Value::List(self.engine.take_notices().iter().map(Value::from).collect())
    }

    /// The same for hosts with types.
    pub fn notices(&mut self) -> Vec<Notice> {
        self.engine.take_notices()
    }

    /// The state of everything.
    pub fn stats(&self, now: f64) -> Value {
        Value::from(&self.stats_at(now))
    }

    /// The same for hosts with types.
    pub fn stats_at(&self, now: f64) -> Stats {
        self.engine.stats(self.now(now))
    }

    /// The state of one scope; `Value::Nothing` for an unknown handle.
    pub fn scope_stats(&self, now: f64, scope: f64) -> Value {
        self.scope_stats_at(now, scope).map_or(Value::Nothing, |stats| Value::from(&stats))
    }

    /// The same for hosts with types.
    pub fn scope_stats_at(&self, now: f64, scope: f64) -> Option<ScopeStats> {
        self.engine.scope_stats(self.now(now), ScopeId::from_number(scope)?)
    }

    /// After a cost that exceeds a quota, and of a scope that is down: the scope's name.
    pub fn refused_scope(&self) -> Option<&str> {
        self.engine.name(self.refused?)
    }

    /// After a cost that exceeds a quota, or the burst of a rate: where that is set.
    pub fn refused_path(&self) -> Option<String> {
        self.engine.config_path(self.refused?, self.refused_setting)
    }

    /// Of a scope that is down: for how long no answer has come.
    pub fn refused_ms(&self) -> f64 {
        self.refused_ms
    }

    fn of(engine: Engine) -> Self {
        let is_seeded = engine.config().seed.is_some();
        Self {
            engine,
            is_seeded,
            wake_at: f64::INFINITY,
            because: None,
            asked_ms: f64::NAN,
            refused: None,
            refused_setting: "",
            refused_ms: f64::NAN,
        }
    }

    fn take_in(&mut self, now: f64, scopes: &[ScopeId], costs: &[f64], priority: f64, delay_ms: f64) -> f64 {
        let request = Request { costs, priority, delay_ms, ..Request::new(scopes) };
        match self.engine.submit(self.now(now), request) {
            Ok(ticket) => ticket.to_number(),
            Err(error) => self.refuse(error),
        }
    }

    fn fuse(&mut self, now: f64, scopes: &[ScopeId], costs: &[f64], priority: f64) -> f64 {
        let request = Request { costs, priority, ..Request::new(scopes) };
        match self.engine.send_in_full(self.now(now), request) {
            Ok(ticket) => ticket.map_or(WAIT, Ticket::to_number),
            Err(error) => self.refuse(error) - 1.0,
        }
    }

    /// The negative number of an error. Which scope it is about is left in a getter.
    fn refuse(&mut self, error: SubmitError) -> f64 {
        self.refused = match error {
            SubmitError::CostExceedsQuota { scope, setting } => {
                self.refused_setting = setting;
                Some(scope)
            }
            SubmitError::ScopeDown { scope, span } => {
                self.refused_ms = span.millis();
                Some(scope)
            }
            _ => None,
        };
        match error {
            SubmitError::UnknownScope => -1.0,
            SubmitError::QueueFull => -2.0,
            SubmitError::CostExceedsQuota { .. } => -3.0,
            SubmitError::NotANumber => -4.0,
            SubmitError::ScopeDown { .. } => -5.0,
        }
    }

    fn change(&mut self, now: f64, scope: f64, with: impl FnOnce(&mut Engine, Instant, ScopeId)) {
        let now = self.now(now);
        if let Some(scope) = ScopeId::from_number(scope) {
            with(&mut self.engine, now, scope);
        }
    }

    /// A time that is not a number, or below zero, is ignored: time stands still.
    #[inline(never)]
    fn now(&self, ms: f64) -> Instant {
        Instant::from_millis(ms).unwrap_or_else(|| self.engine.now())
    }
}

/// The limits in header fields, given as `name: value` lines.
pub fn parse_hints(lines: &str, status: f64, wall_ms: f64, flags: u32) -> Value {
    Value::from(&Hints::from_lines(lines, context(status, wall_ms, flags)))
}

/// Of the names in `known`, one a line, the one that is nearest to `typed`; empty if none is near enough to
/// be meant.
pub fn nearest(typed: &str, known: &str) -> String {
    crate::config::suggestions::nearest_of(typed, known.lines()).unwrap_or_default().into()
}

/// Checks the options that only a driver reads: see [`crate::config::driver`].
pub fn check_driver_options(options: Value) -> Result<(), ConfigError> {
    let problems = crate::config::driver::problems(options);
    if problems.is_empty() { Ok(()) } else { Err(ConfigError { problems }) }
}

/// The delay in milliseconds that a robots.txt asks for, or NaN.
pub fn parse_crawl_delay(bytes: &[u8], user_agent: &str) -> f64 {
    crawl_delay_ms(bytes, user_agent).unwrap_or(f64::NAN)
}

/// The handles behind numbers; none at all if one never was a handle, which the engine refuses.
fn scope_ids(numbers: &[f64]) -> Vec<ScopeId> {
    numbers.iter().map(|&number| ScopeId::from_number(number)).collect::<Option<_>>().unwrap_or_default()
}

/// The handles behind those numbers that are of one.
fn those_of(numbers: &[f64]) -> Vec<ScopeId> {
    numbers.iter().filter_map(|&number| ScopeId::from_number(number)).collect()
}

fn wall(wall_ms: f64) -> Option<f64> {
    (wall_ms > 0.0 && wall_ms.is_finite()).then_some(wall_ms)
}
