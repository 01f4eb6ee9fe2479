//! Who decides: an engine of this process's own, or the machine of a group of processes.

use autothrottle::{
    Answer, Config, ConfigError, Cost, Decision, Engine, Feedback, Hint, Instant, Notice, Request, ScopeId,
    ScopeStats, Span, Stats, SubmitError, Ticket, Value,
};

#[cfg(feature = "_shared")]
use autothrottle_shared::Order as Orders;

#[cfg(feature = "_shared")]
use crate::group::Group;
use crate::{Error, Outcome, Target, answer::hints_of};

pub(crate) enum Host {
    Own(Box<Engine>),
    #[cfg(feature = "_shared")]
    Group(Box<Group>),
}

/// What became of a request that asked.
pub(crate) enum Entered {
    Sent(Ticket),
    Waits(Ticket),
}

/// What to do next.
pub(crate) enum Next {
    Send(Ticket),
    /// The request will never leave.
    #[cfg(feature = "_shared")]
    Refuse(Ticket, Error),
    /// Ask again then, or after the next call.
    Wait(Option<Instant>),
}

impl Host {
    pub fn own(engine: Engine) -> Self {
        Self::Own(Box::new(engine))
    }

    pub fn config(&self) -> &Config {
        match self {
            Self::Own(engine) => engine.config(),
            #[cfg(feature = "_shared")]
            Self::Group(group) => &group.config,
        }
    }

    /// Takes a request in: it may leave at once, or it waits.
    pub fn enter(&mut self, now: Instant, target: &Target) -> Result<Entered, Error> {
        let engine = match self {
            Self::Own(engine) => engine,
            #[cfg(feature = "_shared")]
            Self::Group(group) => return group.enter(now, target).map(Entered::Waits),
        };
        let (scopes, costs): (Vec<ScopeId>, Vec<f64>) =
            target.scopes().map(|(name, cost)| (engine.intern(name), cost)).unzip();
        let request = Request {
            costs: &costs,
            priority: target.priority,
            delay_ms: target.delay.as_secs_f64() * 1000.0,
            ..Request::new(&scopes)
        };
        match engine.send_at_once(now, request) {
            Ok(Some(ticket)) => return Ok(Entered::Sent(ticket)),
            Ok(None) => {}
            Err(error) => return Err(refused(engine, error)),
        }
        if tracing::enabled!(tracing::Level::DEBUG)
            && let Some(because) = engine.peek(now, request).ok().and_then(|peek| peek.because)
        {
            tracing::debug!(scope = target.first(), reason = because.reason.name(), "waits");
        }
        engine.submit(now, request).map(Entered::Waits).map_err(|error| refused(engine, error))
    }

    pub fn poll(&mut self, now: Instant) -> Next {
        match self {
            Self::Own(engine) => match engine.poll(now) {
                Decision::Send(ticket) => Next::Send(ticket),
                Decision::Wait { until, .. } => Next::Wait(Some(until)),
                Decision::Idle { .. } => Next::Wait(None),
            },
            #[cfg(feature = "_shared")]
            Self::Group(group) => match group.refused.pop_front() {
                Some((ticket, error)) => Next::Refuse(ticket, error),
                None => group.poll(now).map_or(Next::Wait(None), Next::Send),
            },
        }
    }

    /// A request that was let go a while ago leaves only now.
    pub fn left(&mut self, now: Instant, ticket: Ticket) {
        match self {
            Self::Own(engine) => engine.left(now, ticket),
            #[cfg(feature = "_shared")]
            Self::Group(group) => group.left(now, ticket),
        }
    }

    /// A request that left ended. The latency is from its send to the answer.
    pub fn settle(&mut self, now: Instant, ticket: Ticket, outcome: Outcome<'_>, latency_ms: f64) {
        match self {
            Self::Own(engine) => engine.settle(now, ticket, &feedback_of(outcome, latency_ms)),
            #[cfg(feature = "_shared")]
            Self::Group(group) => group.settle(now, ticket, outcome, latency_ms),
        }
    }

    pub fn cancel(&mut self, now: Instant, ticket: Ticket) {
        match self {
            Self::Own(engine) => engine.cancel(now, ticket),
            #[cfg(feature = "_shared")]
            Self::Group(group) => group.cancel(now, ticket),
        }
    }

    pub fn adjust(&mut self, now: Instant, scope: &str, ago: Span, charged: f64, cost: f64) {
        match self {
            Self::Own(engine) => {
                let units = |cost| Cost::from_units(cost).unwrap_or_default();
                let scope = engine.intern(scope);
                engine.adjust(now, scope, now - ago, units(charged), units(cost));
            }
            #[cfg(feature = "_shared")]
            Self::Group(group) => group.adjust(now, scope, ago, charged, cost),
        }
    }

    pub fn configure(&mut self, now: Instant, scope: &str, options: Value) -> Result<(), ConfigError> {
        match self {
            Self::Own(engine) => {
                let scope = engine.intern(scope);
                engine.configure(now, scope, options)
            }
            #[cfg(feature = "_shared")]
            Self::Group(group) => group.configure(now, scope, options),
        }
    }

    pub fn order(&mut self, now: Instant, scope: &str, order: Order) {
        match self {
            Self::Own(engine) => {
                let scope = engine.intern(scope);
                match order {
                    Order::Hold(span) => engine.hold(now, scope, span),
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
                engine.crawl_delay(now, scope, delay)
            }
            #[cfg(feature = "_shared")]
            Self::Group(group) => group.crawl_delay(now, scope, delay),
        }
    }

    pub fn snapshot(&mut self, now: Instant, wall_ms: Option<f64>) -> Value {
        match self {
            Self::Own(engine) => engine.snapshot(now, wall_ms).into(),
            #[cfg(feature = "_shared")]
            Self::Group(group) => group.snapshot(now, wall_ms),
        }
    }

    pub fn stats(&mut self, now: Instant) -> Stats {
        match self {
            Self::Own(engine) => engine.stats(now),
            #[cfg(feature = "_shared")]
            Self::Group(group) => group.stats(now),
        }
    }

    pub fn scope_stats(&mut self, now: Instant, scope: &str) -> Option<ScopeStats> {
        match self {
            Self::Own(engine) => engine.find(scope).and_then(|scope| engine.scope_stats(now, scope)),
            #[cfg(feature = "_shared")]
            Self::Group(group) => {
                group.stats(now).scopes.into_iter().find(|(name, _)| name == scope).map(|(_, stats)| stats)
            }
        }
    }

    pub fn take_notices(&mut self) -> Vec<Notice> {
        match self {
            Self::Own(engine) => engine.take_notices(),
            #[cfg(feature = "_shared")]
            Self::Group(_) => Vec::new(),
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

fn refused(engine: &Engine, error: SubmitError) -> Error {
    let name = |scope| engine.name(scope).unwrap_or_default().to_owned();
    match error {
        SubmitError::QueueFull => Error::QueueFull,
        SubmitError::CostExceedsQuota { scope, setting } => Error::CostExceedsQuota {
            scope: name(scope),
            path: engine.config_path(scope, setting).unwrap_or_default(),
        },
        SubmitError::ScopeDown { scope, .. } => Error::ScopeDown { scope: name(scope) },
        SubmitError::NotANumber | SubmitError::UnknownScope => Error::NotANumber,
    }
}

fn feedback_of(outcome: Outcome<'_>, latency_ms: f64) -> Feedback {
    match outcome {
        Outcome::Nothing => Feedback::IGNORED,
        Outcome::Failed(failure) => Feedback { answer: Answer::Failed(failure), ..Feedback::IGNORED },
        Outcome::Response { status, headers } => {
            let hint = headers.map(|headers| Hint::of(&hints_of(status, headers))).unwrap_or_default();
            Feedback { latency_ms: Some(latency_ms), hint, ..Feedback::response(status) }
        }
    }
}
