//! The engine in plain numbers and values: what every host (JavaScript, a component, Python) forwards to.
//!
//! Instants and spans are milliseconds, handles and tickets are whole numbers, NaN is unknown. What makes no
//! sense changes nothing. What a call says beside its number is left in getters until the next call.
//!
//! The trap is a boundary with a memory: a call that prepares another one leaves its word behind when that
//! other one never comes, or comes for a ticket that is none, and the next request pays for it. So each call
//! carries everything, and no getter is ever read by a call.

use crate::{
    Answer, Cause, Config, ConfigError, Cost, Decision, Engine, Feedback, Hint, Hints, Instant, Peek, Reason,
    Request, Robots, ScopeId, Snapshot, Span, SubmitError, Ticket, Value, Watch, crawl_delay_ms,
    headers::Context,
    policy::{
        retry::{AFTER_FAILURE, Verdict},
        server::QuotaReport,
    },
};

/// What [`Boundary::poll`] answers when nothing can be sent before `wake_at`.
pub const WAIT: f64 = -1.0;

/// What [`Boundary::poll`] answers when nothing will change by itself.
pub const IDLE: f64 = -2.0;

/// What [`Boundary::enter`] answers for ticket 0 if that one waits; smaller numbers are larger tickets.
pub const WAITS: f64 = -16.0;

/// A scope that nobody has asked for yet, to [`Boundary::peek`]: it allows everything.
pub const NO_SCOPE: f64 = -1.0;

/// Numbers that one scope takes in [`Outcome::scopes`].
pub const STRIDE: usize = 7;

/// Bits of [`Outcome::flags`].
pub mod flags {
    /// The latency does not move `AutoThrottle`'s delay.
    pub const KEEP_DELAY: u32 = 1;
    /// The request may be sent again: its method and body allow it, and there are attempts left.
    pub const MAY_RETRY: u32 = 1 << 1;
    /// The answer is not bad, whatever its status says.
    pub const GOOD: u32 = 1 << 2;
    /// The answer is bad, whatever its status says.
    pub const BAD: u32 = 1 << 3;
    /// [`super::Outcome::hint`] takes the place of what the header fields say, also where it says nothing.
    pub const HINTED: u32 = 1 << 4;
    /// A plain number in a reset field means milliseconds.
    pub const RESET_IS_MILLIS: u32 = 1 << 5;
    /// A plain number in `Retry-After` means milliseconds.
    pub const RETRY_AFTER_IS_MILLIS: u32 = 1 << 6;
}

/// How a request ended: everything at once.
#[derive(Clone, Copy, Debug)]
pub struct Outcome<'a> {
    /// A status from 100 to 599; 0 is a connection that failed, 1 a timeout; anything else says nothing.
    pub answer: f64,
    /// From send to response headers.
    pub latency_ms: f64,
    /// What it really cost, in units.
    pub cost: f64,
    /// Bits of [`flags`].
    pub flags: u32,
    /// Header fields as `name: value` lines.
    pub lines: &'a str,
    /// Wall time now since 1970, for dates in responses without a `Date`.
    pub wall_ms: f64,
    /// The request is sent again whatever the settings say, not before so long from now.
    pub retry_delay_ms: f64,
    /// Hints that were not in headers: milliseconds to hold, units left, milliseconds until their reset, and
    /// between two sends.
    pub hint: [f64; 4],
    /// What it means for single scopes where that is another thing, [`STRIDE`] numbers each: the scope; 1 if
    /// the answer has nothing to do with it, else 0; 1 if it is bad there, 0 if not; milliseconds to hold,
    /// units left, milliseconds until their reset (with one of the first two the response's own hints are
    /// not for it); its cost.
    pub scopes: &'a [f64],
}

impl<'a> Outcome<'a> {
    /// An outcome without hints, of which no scope knows better.
    pub const fn new(answer: f64, latency_ms: f64, cost: f64, flags: u32) -> Self {
        let (wall_ms, retry_delay_ms, hint) = (f64::NAN, f64::NAN, [f64::NAN; 4]);
        Self { answer, latency_ms, cost, flags, lines: "", wall_ms, retry_delay_ms, hint, scopes: &[] }
    }

    /// This outcome with the rest as one list: `wall_ms`, `retry_delay_ms`, the four of `hint`, then
    /// `scopes`.
    #[must_use]
    pub fn with(self, lines: &'a str, more: &'a [f64]) -> Self {
        let [wall_ms, retry_delay_ms, ref rest @ ..] = *more else { return Self { lines, ..self } };
        let (hint, scopes) = match rest.split_first_chunk::<4>() {
            Some((hint, scopes)) => (*hint, scopes),
            None => (self.hint, &[][..]),
        };
        Self { lines, wall_ms, retry_delay_ms, hint, scopes, ..self }
    }

    fn has(&self, flag: u32) -> bool {
        self.flags & flag > 0
    }

    /// 1 for bad, 0 for not bad, NaN for as the status says.
    fn bad(&self) -> f64 {
        if self.has(flags::BAD) {
            1.0
        } else if self.has(flags::GOOD) {
            0.0
        } else {
            f64::NAN
        }
    }

    /// What the header fields say, if there are any.
    fn read(&self) -> Option<Hints> {
        if self.lines.is_empty() {
            return None;
        }
        Some(Hints::from_lines(self.lines, context(self.answer, self.wall_ms, self.flags)))
    }

    /// What one scope is told.
    fn feedback(&self, scope: ScopeId, hint: Hint) -> Feedback {
        let bad = self.bad();
        let adjust = !self.has(flags::KEEP_DELAY);
        let number = scope.to_number();
        let (records, _) = self.scopes.as_chunks::<STRIDE>();
        let Some(&[_, ignored, own_bad, hold, left, reset, cost]) =
            records.iter().find(|record| record[0] == number)
        else {
            return Feedback {
                hint,
                ..Feedback::from_numbers(self.answer, self.latency_ms, adjust, self.cost, bad)
            };
        };
        let cost = if cost.is_nan() { self.cost } else { cost };
        let is_ignored = ignored > 0.0;
        let own_hint = hint_of([hold, left, reset, f64::NAN]);
        if is_ignored {
            let feedback = Feedback::from_numbers(f64::NAN, f64::NAN, true, cost, f64::NAN);
            return Feedback { hint: own_hint, ..feedback };
        }
        let bad = if own_bad.is_nan() { bad } else { own_bad };
        let hint = if hold.is_nan() && left.is_nan() { hint } else { own_hint };
        Feedback { hint, ..Feedback::from_numbers(self.answer, self.latency_ms, adjust, cost, bad) }
    }
}

/// What became of a request that was settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// The ticket was not in flight; nothing has changed.
    Unknown,
    /// It is over.
    Over,
    /// It is to be sent again: the same ticket waits anew and keeps its age.
    Again,
    /// It is over, for the server asks for a longer wait than `retry.maxRetryAfter`.
    TooLong,
}

/// The engine as hosts see it.
#[derive(Debug)]
pub struct Boundary {
    engine: Engine,
    is_seeded: bool,
    wake_at: f64,
    because: Option<Cause>,
    asked_ms: f64,
    refused: Option<ScopeId>,
}

impl Boundary {
    /// An engine for options as they were typed.
    pub fn new(options: Value) -> Result<Self, ConfigError> {
        Ok(Self::of(Engine::new(Config::parse(options)?)))
    }

    /// Goes on where `snapshot` was taken. If it is wrong nothing has changed.
    pub fn restore(&mut self, snapshot: Value, now: f64, wall_ms: f64) -> Result<(), ConfigError> {
        let snapshot = Snapshot::parse(snapshot)?;
        let config = self.engine.config().clone();
        *self = Self::of(Engine::restore(config, &snapshot, self.now(now), wall(wall_ms)));
        Ok(())
    }

    /// What was learned, for [`Boundary::restore`] in another process.
    pub fn snapshot(&self, now: f64, wall_ms: f64) -> Value {
        Value::from(self.engine.snapshot(self.now(now), wall(wall_ms)))
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

    /// The handle of a scope, which is made on first use and good until it is released.
    pub fn scope(&mut self, name: &str) -> f64 {
        self.engine.scope(name).to_number()
    }

    /// A handle that may be forgotten when its scope is idle: see [`Engine::intern`].
    pub fn intern(&mut self, name: &str) -> f64 {
        self.engine.intern(name).to_number()
    }

    /// The handle of a scope, or [`NO_SCOPE`]. Makes none.
    pub fn find(&self, name: &str) -> f64 {
        self.engine.find(name).map_or(NO_SCOPE, ScopeId::to_number)
    }

    /// Whether the handle still means what it meant; if so, its scope stays at least until the next poll.
    pub fn keep_alive(&mut self, scope: f64) -> bool {
        ScopeId::from_number(scope).is_some_and(|scope| self.engine.keep_alive(scope))
    }

    /// Gives a handle of [`Boundary::scope`] back.
    pub fn release(&mut self, scope: f64) {
        if let Some(scope) = ScopeId::from_number(scope) {
            self.engine.release(scope);
        }
    }

    /// How many scopes the engine knows.
    pub fn scopes(&self) -> f64 {
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

    /// A ticket to send now, [`WAIT`] if it has to be submitted (then nothing has changed), or the negative
    /// number of a refusal less one. See [`Engine::send_at_once`].
    pub fn send_at_once(&mut self, now: f64, scope: f64, cost: f64, priority: f64) -> f64 {
        self.fuse(now, ScopeId::from_number(scope).as_slice(), &[cost], priority)
    }

    /// The same for several scopes, with costs beside them.
    pub fn send_many_at_once(&mut self, now: f64, scopes: &[f64], costs: &[f64], priority: f64) -> f64 {
        self.fuse(now, &scope_ids(scopes), costs, priority)
    }

    /// Takes in a request of one scope, and sends it if nothing waits and nothing keeps it: a ticket to send
    /// now, [`WAITS`] less a ticket that waits, or the negative number of a refusal.
    pub fn enter(&mut self, now: f64, scope: f64, cost: f64, priority: f64) -> f64 {
        let at_once = self.send_at_once(now, scope, cost, priority);
        if at_once != WAIT {
            return if at_once < WAIT { at_once + 1.0 } else { at_once };
        }
        let ticket = self.submit(now, scope, cost, priority, 0.0);
        if ticket < 0.0 { ticket } else { WAITS - ticket }
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

    /// The words for reasons.
    pub fn reasons() -> Vec<String> {
        Reason::ALL.iter().map(|reason| reason.name().into()).collect()
    }

    /// Tells how a request ended, and whether it is sent again.
    pub fn settle(&mut self, now: f64, ticket: f64, outcome: &Outcome) -> Settled {
        self.asked_ms = f64::NAN;
        let Some(ticket) = Ticket::from_number(ticket) else { return Settled::Unknown };
        let read = outcome.read();
        let hint = match &read {
            _ if outcome.has(flags::HINTED) => hint_of(outcome.hint),
            Some(hints) => Hint::of(hints),
            None => Hint::default(),
        };
        // Hints take the place of what the headers say, and where they name no wait the headers may.
        let asked = match &read {
            _ if outcome.hint[0] >= 0.0 && outcome.has(flags::HINTED) => {
                hint.asked.map(|asked| (asked, false))
            }
            Some(hints) => hints.delay_ms.map(|ms| (Span::from_millis(ms as f64), hints.is_whole)),
            None => None,
        };
        let verdict = self.verdict(outcome, asked);
        let now = self.now(now);
        let of = |scope| outcome.feedback(scope, hint);
        let is_known = match verdict {
            Verdict::Again(delay) => self.engine.retry_each(now, ticket, of, delay.millis()),
            Verdict::Over | Verdict::TooLong => self.engine.settle_each(now, ticket, of),
        };
        if !is_known {
            return Settled::Unknown;
        }
        self.asked_ms = asked.map_or(f64::NAN, |(asked, _)| asked.millis());
        match verdict {
            Verdict::Over => Settled::Over,
            Verdict::Again(_) => Settled::Again,
            Verdict::TooLong => Settled::TooLong,
        }
    }

    /// After `settle`: the milliseconds that the server asked to wait, as it said them; NaN if it did not.
    pub fn asked_ms(&self) -> f64 {
        self.asked_ms
    }

    /// What the robots.txt of a scope asks for; NaN is nothing. The place of the outcome in [`Robots`].
    pub fn crawl_delay(&mut self, now: f64, scope: f64, ms: f64) -> f64 {
        let now = self.now(now);
        let delay = (ms >= 0.0).then(|| Span::from_millis(ms));
        let outcome = ScopeId::from_number(scope).map(|scope| self.engine.crawl_delay(now, scope, delay));
        f64::from(outcome.unwrap_or(Robots::Ignored) as u8)
    }

    /// Takes a waiting request out; one that was allowed to leave but never did gives everything back.
    pub fn cancel(&mut self, now: f64, ticket: f64) {
        if let Some(ticket) = Ticket::from_number(ticket) {
            self.engine.cancel(self.now(now), ticket);
        }
    }

    /// Gives a waiting request another priority; it keeps its age.
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
        let cost = |place: usize| costs.get(place).copied().unwrap_or(last);
        let places = scopes.iter().enumerate().filter(|&(_, &scope)| scope != NO_SCOPE);
        let (known, costs): (Vec<f64>, Vec<f64>) = places.map(|(place, &scope)| (scope, cost(place))).unzip();
        let now = self.now(now);
        let ids = scope_ids(&known);
        let request = Request { costs: &costs, ..Request::new(&ids) };
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

    /// Changes settings of one scope. If they are wrong nothing has changed.
    pub fn configure(&mut self, now: f64, scope: f64, partial: Value) -> Result<(), ConfigError> {
        match ScopeId::from_number(scope) {
            Some(scope) => self.engine.configure(self.now(now), scope, partial),
            None => Ok(()),
        }
    }

    /// Sends nothing of this scope for so long. A hold that is longer already stays.
    pub fn hold(&mut self, now: f64, scope: f64, ms: f64) {
        self.change(now, scope, |engine, now, scope| engine.hold(now, scope, Span::from_millis(ms)));
    }

    /// Sends nothing of this scope until [`Boundary::resume`].
    pub fn pause(&mut self, now: f64, scope: f64) {
        self.change(now, scope, Engine::pause);
    }

    /// Ends a pause of this scope.
    pub fn resume(&mut self, now: f64, scope: f64) {
        self.change(now, scope, Engine::resume);
    }

    /// Forgets what this scope learned and lifts its hold.
    pub fn reset(&mut self, now: f64, scope: f64) {
        self.change(now, scope, Engine::reset);
    }

    /// Pauses everything, or ends that pause.
    pub fn pause_all(&mut self, paused: bool) {
        self.engine.pause_all(paused);
    }

    /// Requests that wait.
    pub fn waiting(&self) -> f64 {
        f64::from(self.engine.waiting())
    }

    /// Requests in flight.
    pub fn in_flight(&self) -> f64 {
        f64::from(self.engine.in_flight())
    }

    /// Waiting requests that are worth a warning.
    pub fn warn_threshold(&self) -> f64 {
        f64::from(self.engine.config().warn_threshold)
    }

    /// How much is told of answers: 0 nothing, 1 what they changed, 2 every answer as well.
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

    /// What people and drivers should know, since the last call.
    pub fn take_notices(&mut self) -> Value {
        Value::List(self.engine.take_notices().iter().map(Value::from).collect())
    }

    /// The state of everything.
    pub fn stats(&self, now: f64) -> Value {
        Value::from(&self.engine.stats(self.now(now)))
    }

    /// The state of one scope; nothing for an unknown handle.
    pub fn scope_stats(&self, now: f64, scope: f64) -> Value {
        let stats = ScopeId::from_number(scope).and_then(|id| self.engine.scope_stats(self.now(now), id));
        stats.map_or(Value::Nothing, |stats| Value::from(&stats))
    }

    /// After a cost that exceeds a quota: the scope's name.
    pub fn refused_scope(&self) -> Option<&str> {
        self.engine.name(self.refused?)
    }

    /// After a cost that exceeds a quota: where that quota is set.
    pub fn refused_path(&self) -> Option<String> {
        self.engine.config_path(self.refused?, "quota")
    }

    fn of(engine: Engine) -> Self {
        let is_seeded = engine.config().seed.is_some();
        let (wake_at, asked_ms) = (f64::INFINITY, f64::NAN);
        Self { engine, is_seeded, wake_at, because: None, asked_ms, refused: None }
    }

    /// Whether, and not before when, the request is sent again.
    fn verdict(&self, outcome: &Outcome, asked: Option<(Span, bool)>) -> Verdict {
        if !outcome.retry_delay_ms.is_nan() {
            return Verdict::Again(Span::from_millis(outcome.retry_delay_ms));
        }
        if !outcome.has(flags::MAY_RETRY) {
            return Verdict::Over;
        }
        let answer = Feedback::from_numbers(outcome.answer, f64::NAN, true, f64::NAN, f64::NAN).answer;
        let (asked, is_whole) = asked.map_or((None, false), |(asked, is_whole)| (Some(asked), is_whole));
        match answer {
            Answer::Response { status } => self.engine.config().retry.after_response(status, asked, is_whole),
            Answer::Failed(_) => AFTER_FAILURE,
            Answer::Ignored => Verdict::Over,
        }
    }

    fn take_in(&mut self, now: f64, scopes: &[ScopeId], costs: &[f64], priority: f64, delay_ms: f64) -> f64 {
        let request = Request { scopes, costs, priority, delay_ms };
        match self.engine.submit(self.now(now), request) {
            Ok(ticket) => ticket.to_number(),
            Err(error) => self.refuse(error),
        }
    }

    fn fuse(&mut self, now: f64, scopes: &[ScopeId], costs: &[f64], priority: f64) -> f64 {
        let request = Request { scopes, costs, priority, delay_ms: 0.0 };
        match self.engine.send_at_once(self.now(now), request) {
            Ok(ticket) => ticket.map_or(WAIT, Ticket::to_number),
            Err(error) => self.refuse(error) - 1.0,
        }
    }

    /// The negative number of an error. Which scope it is about is left in a getter.
    fn refuse(&mut self, error: SubmitError) -> f64 {
        self.refused = match error {
            SubmitError::CostExceedsQuota { scope } => Some(scope),
            _ => None,
        };
        match error {
            SubmitError::UnknownScope => -1.0,
            SubmitError::QueueFull => -2.0,
            SubmitError::CostExceedsQuota { .. } => -3.0,
            SubmitError::NotANumber => -4.0,
        }
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
pub fn parse_hints(lines: &str, status: f64, wall_ms: f64, flags: u32) -> Value {
    Value::from(&Hints::from_lines(lines, context(status, wall_ms, flags)))
}

/// Of the names in `known`, one a line, the one that is nearest to `typed`; empty if none is near enough to
/// be meant.
pub fn nearest(typed: &str, known: &str) -> String {
    crate::config::table::nearest_of(typed, known.lines()).unwrap_or_default().into()
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

fn hint_of([hold_ms, left, reset_ms, pace_ms]: [f64; 4]) -> Hint {
    let span = |ms: f64| (ms >= 0.0).then(|| Span::from_millis(ms));
    let left = Cost::from_units(left).zip(span(reset_ms));
    let told = QuotaReport { left, window: None, pace: span(pace_ms) };
    Hint { hold: span(hold_ms), asked: span(hold_ms), told, ..Hint::default() }
}

fn context(status: f64, wall_ms: f64, flags: u32) -> Context {
    Context {
        status: status as u16,
        wall_ms: wall(wall_ms).map(|ms| ms as i64),
        reset_is_millis: flags & flags::RESET_IS_MILLIS > 0,
        retry_after_is_millis: flags & flags::RETRY_AFTER_IS_MILLIS > 0,
    }
}

/// The handles behind numbers; none at all if one never was a handle, which the engine refuses.
fn scope_ids(numbers: &[f64]) -> Vec<ScopeId> {
    numbers.iter().map(|&number| ScopeId::from_number(number)).collect::<Option<_>>().unwrap_or_default()
}

fn wall(wall_ms: f64) -> Option<f64> {
    (wall_ms > 0.0 && wall_ms.is_finite()).then_some(wall_ms)
}
