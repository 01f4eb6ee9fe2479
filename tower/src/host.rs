//! The part that decides: an engine of this process's own, or the machine of a group of processes.

use autothrottle::{
    Boundary, Config, ConfigError, Engine, Failure, Instant, Notice, Peek, Request, ScopeId, ScopeStats,
    Span, Stats, SubmitError, Ticket, Value,
    boundary::{self, WAIT, flags, push_field},
    headers::matters,
    policy::retry::Verdict,
};

#[cfg(feature = "_shared")]
use autothrottle_shared::Order as Orders;

#[cfg(feature = "_shared")]
use crate::group::Group;
use crate::{Error, Outcome, Target, answer::wall_ms};

pub(crate) enum Host {
    Own(Box<Boundary>),
    #[cfg(feature = "_shared")]
    Group(Box<Group>),
}

/// The result for a request that asked.
pub(crate) enum Entered {
    Sent(Ticket),
    Waits(Ticket),
}

/// The next step.
pub(crate) enum Next {
    Send(Ticket),
    /// The request will never leave.
    #[cfg(feature = "_shared")]
    Refuse(Ticket, Error),
    /// Ask again then, or after the next call.
    Wait(Option<Instant>),
}

impl Host {
    pub fn config(&self) -> &Config {
        match self {
            Self::Own(engine) => engine.config(),
            #[cfg(feature = "_shared")]
            Self::Group(group) => &group.config,
        }
    }

    /// Whether the machine of a group decides: its own task has the timer.
    pub fn is_shared(&self) -> bool {
        !matches!(self, Self::Own(_))
    }

    /// Whether there are notices to take.
    pub fn has_notices(&self) -> bool {
        match self {
            Self::Own(engine) => engine.has_notices(),
            #[cfg(feature = "_shared")]
            Self::Group(group) => !group.notices.is_empty(),
        }
    }

    /// Takes a request in: it may leave at once, or it waits.
    pub fn enter(&mut self, now: Instant, target: &Target) -> Result<Entered, Error> {
        let ticket = match self {
            Self::Own(engine) => match enter(engine.engine(), now, target)? {
                Entered::Waits(ticket) => ticket,
                sent => return Ok(sent),
            },
            #[cfg(feature = "_shared")]
            Self::Group(group) => group.enter(now, target)?,
        };
        self.route(now, ticket, target, false);
        Ok(Entered::Waits(ticket))
    }

    /// Names the route of a request, by which its budget is known, where that is wanted. `has_fields`: an
    /// answer with header fields follows, which may be the first to name a budget.
    pub fn route(&mut self, now: Instant, ticket: Ticket, target: &Target, has_fields: bool) {
        let Some(call) = &target.call else { return };
        match self {
            Self::Own(engine) => {
                if engine.wants_route(ticket.to_number(), has_fields) {
                    let (method, url) = (call.0.as_str(), call.1.to_string());
                    engine.route(now.millis(), ticket.to_number(), method, &url);
                }
            }
            #[cfg(feature = "_shared")]
            Self::Group(group) => group.route(now, ticket, call, has_fields),
        }
    }

    pub fn poll(&mut self, now: Instant) -> Next {
        match self {
            Self::Own(engine) => match engine.poll(now.millis()) {
                WAIT => Next::Wait(Instant::from_millis(engine.wake_at())),
                number => Ticket::from_number(number).map_or(Next::Wait(None), Next::Send),
            },
            #[cfg(feature = "_shared")]
            Self::Group(group) => match group.refused.pop_front() {
                Some((ticket, error)) => Next::Refuse(ticket, error),
                None => group.poll(now).map_or(Next::Wait(None), Next::Send),
            },
        }
    }

    /// A request that was let go a while ago leaves only now.
    pub fn sent_at(&mut self, now: Instant, ticket: Ticket) {
        match self {
            Self::Own(engine) => engine.sent_at(now.millis(), ticket.to_number()),
            #[cfg(feature = "_shared")]
            Self::Group(group) => group.sent_at(now, ticket),
        }
    }

    /// A request that left ended. The latency is from its send to the answer.
    pub fn settle(
        &mut self,
        now: Instant,
        ticket: Ticket,
        outcome: Outcome<'_>,
        latency_ms: f64,
        target: &Target,
    ) {
        let told = Told::new(outcome);
        self.route(now, ticket, target, !told.lines.is_empty());
        let repeated = if target.is_repeat { flags::REPEATED } else { 0 };
        let ended = boundary::Outcome { latency_ms, ..told.outcome(repeated) };
        match self {
            Self::Own(engine) => _ = engine.settle(now.millis(), ticket.to_number(), &ended),
            #[cfg(feature = "_shared")]
            Self::Group(group) => group.settle(now, ticket, &ended),
        }
    }

    /// How often a request of this method is sent again at most.
    pub fn retries(&self, method: &str) -> u32 {
        self.config().retry.retries(method)
    }

    /// Whether, and not before when, a request that may be sent again is.
    pub fn verdict(&self, outcome: Outcome<'_>) -> Verdict {
        Told::new(outcome).outcome(flags::MAY_RETRY).verdict(&self.config().retry)
    }

    pub fn cancel(&mut self, now: Instant, ticket: Ticket) {
        match self {
            Self::Own(engine) => engine.cancel(now.millis(), ticket.to_number()),
            #[cfg(feature = "_shared")]
            Self::Group(group) => group.cancel(now, ticket),
        }
    }

    pub fn adjust(&mut self, now: Instant, scope: &str, ago: Span, charged: f64, cost: f64) {
        match self {
            Self::Own(engine) => {
                let scope = engine.intern(scope);
                engine.adjust(now.millis(), scope, (now - ago).millis(), charged, cost);
            }
            #[cfg(feature = "_shared")]
            Self::Group(group) => group.adjust(now, scope, ago, charged, cost),
        }
    }

    pub fn configure(&mut self, now: Instant, scope: &str, options: Value) -> Result<(), ConfigError> {
        match self {
            Self::Own(engine) => {
                let scope = engine.intern(scope);
                engine.configure(now.millis(), scope, options)
            }
            #[cfg(feature = "_shared")]
            Self::Group(group) => group.configure(now, scope, options),
        }
    }

    pub fn order(&mut self, now: Instant, scope: &str, order: Order) {
        match self {
            Self::Own(engine) => {
                let (now, scope) = (now.millis(), engine.intern(scope));
                match order {
                    Order::Hold(span) => engine.hold(now, scope, span.millis()),
                    Order::Pause => engine.pause(now, scope),
                    Order::Resume => engine.resume(now, scope),
                    Order::Reset => engine.reset(now, scope),
                }
            }
            #[cfg(feature = "_shared")]
            Self::Group(group) => group.order(
                now,
                match order {
                    Order::Hold(span) => Orders::Hold(scope.into(), span),
                    Order::Pause => Orders::Pause(Some(scope.into())),
                    Order::Resume => Orders::Resume(Some(scope.into())),
                    Order::Reset => Orders::Reset(scope.into()),
                },
            ),
        }
    }

    #[cfg(feature = "robots")]
    pub fn crawl_delay(&mut self, now: Instant, scope: &str, delay: Option<Span>) -> autothrottle::Robots {
        match self {
            Self::Own(engine) => {
                let scope = engine.intern(scope);
                let outcome = engine.crawl_delay(now.millis(), scope, delay.map_or(f64::NAN, Span::millis));
                autothrottle::Robots::of(outcome)
            }
            #[cfg(feature = "_shared")]
            Self::Group(group) => group.crawl_delay(now, scope, delay),
        }
    }

    pub fn snapshot(&mut self, now: Instant, wall_ms: Option<f64>) -> Value {
        match self {
            Self::Own(engine) => engine.snapshot(now.millis(), wall_ms.unwrap_or(f64::NAN)),
            #[cfg(feature = "_shared")]
            Self::Group(group) => group.snapshot(now, wall_ms),
        }
    }

    pub fn stats(&mut self, now: Instant) -> Stats {
        match self {
            Self::Own(engine) => engine.stats_at(now.millis()),
            #[cfg(feature = "_shared")]
            Self::Group(group) => group.stats(now),
        }
    }

    pub fn scope_stats(&mut self, now: Instant, scope: &str) -> Option<ScopeStats> {
        match self {
            Self::Own(engine) => engine.scope_stats_at(now.millis(), engine.find(scope)),
            #[cfg(feature = "_shared")]
            Self::Group(group) => {
                group.stats(now).scopes.into_iter().find(|(name, _)| name == scope).map(|(_, stats)| stats)
            }
        }
    }

    pub fn take_notices(&mut self) -> Vec<Notice> {
        match self {
            Self::Own(engine) => engine.notices(),
            #[cfg(feature = "_shared")]
            Self::Group(group) => std::mem::take(&mut group.notices),
        }
    }
}

/// A change of one scope that cannot be wrong.
pub(crate) enum Order {
    Hold(Span),
    Pause,
    Resume,
    Reset,
}

fn enter(engine: &mut Engine, now: Instant, target: &Target) -> Result<Entered, Error> {
    if let Some((name, cost)) = target.only() {
        let scope = engine.intern(name);
        return take_in(engine, now, target, &[scope], &[cost]);
    }
    let (scopes, costs): (Vec<ScopeId>, Vec<f64>) =
        target.scopes().map(|(name, cost)| (engine.intern(name), cost)).unzip();
    take_in(engine, now, target, &scopes, &costs)
}

fn take_in(
    engine: &mut Engine,
    now: Instant,
    target: &Target,
    scopes: &[ScopeId],
    costs: &[f64],
) -> Result<Entered, Error> {
    let delay_ms = target.delay.as_secs_f64() * 1000.0;
    let request = Request { costs, priority: target.priority, delay_ms, ..Request::new(scopes) };
    match engine.send_at_once(now, request) {
        Ok(None) => {}
        Ok(Some(ticket)) => return Ok(Entered::Sent(ticket)),
        Err(error) => return Err(refused(engine, error)),
    }
    if tracing::enabled!(tracing::Level::DEBUG)
        && let Ok(Peek { because: Some(cause), .. }) = engine.peek(now, request)
    {
        tracing::debug!(scope = target.first(), reason = cause.reason.name(), "waits");
    }
    engine.submit(now, request).map(Entered::Waits).map_err(|error| refused(engine, error))
}

/// Why, with the names of what is in the way.
#[cold]
fn refused(engine: &Engine, error: SubmitError) -> Error {
    let name = |scope| engine.name(scope).unwrap_or_default().to_owned();
    match error {
        SubmitError::QueueFull => Error::QueueFull,
        SubmitError::CostExceedsQuota { scope, setting } => Error::CostExceedsQuota {
            scope: name(scope),
            path: engine.config_path(scope, setting).unwrap_or_default(),
        },
        SubmitError::ScopeDown { scope, .. } => Error::ScopeDown { scope: name(scope) },
        SubmitError::UnknownScope | SubmitError::NotANumber => Error::NotANumber,
    }
}

/// An answer in the engine's form.
struct Told {
    /// Its number.
    answer: f64,
    /// Those of its header fields that may say something of limits.
    lines: String,
    wall_ms: f64,
}

impl Told {
    fn new(outcome: Outcome<'_>) -> Self {
        let mut lines = String::new();
        let answer = match outcome {
            Outcome::Nothing => f64::NAN,
            Outcome::Failed(Failure::Connection) => 0.0,
            Outcome::Failed(Failure::Timeout) => 1.0,
            Outcome::Response { status, headers } => {
                let fields = headers.into_iter().flatten().filter(|(name, _)| matters(name.as_str()));
                for (name, value) in fields.filter_map(|(name, value)| Some((name, value.to_str().ok()?))) {
                    push_field(&mut lines, name.as_str(), value);
                }
                f64::from(status)
            }
        };
        let wall_ms = if lines.is_empty() { f64::NAN } else { wall_ms().unwrap_or(f64::NAN) };
        Self { answer, lines, wall_ms }
    }

    fn outcome(&self, flags: u32) -> boundary::Outcome<'_> {
        let bare = boundary::Outcome::new(self.answer, f64::NAN, f64::NAN, flags);
        boundary::Outcome { lines: &self.lines, wall_ms: self.wall_ms, ..bare }
    }
}
