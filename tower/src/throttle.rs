//! The driver: one engine behind a lock, and one task with one timer while requests wait.

use std::{
    collections::BTreeMap,
    fmt::{self, Debug},
    hash::{BuildHasher, RandomState},
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use autothrottle::{
    Config, ConfigError, Decision, Diagnostic, Engine, Instant as EngineInstant, Notice, Problem, Request,
    ScopeId, ScopeStats, Snapshot, Span, Stats, SubmitError, Ticket, Value, Watch,
};
use serde::{Deserialize, Serialize, de::Deserializer};
use tokio::{
    runtime::Handle,
    sync::{Notify, oneshot},
    time::Instant,
};

use crate::{Answer, Error, Permit, Target};

/// Says when a request may leave. Cheap to clone: all clones are one throttle.
#[derive(Clone)]
pub struct Throttle(Arc<Shared>);

struct Shared {
    origin: Instant,
    state: Mutex<State>,
    /// Tells the timer's task that it has an earlier instant to wait for.
    earlier: Notify,
}

struct State {
    engine: Engine,
    /// Who waits for a permit, and is told when it was given.
    waiting: BTreeMap<Ticket, oneshot::Sender<EngineInstant>>,
    /// When it is worth asking the engine again.
    wake_at: Option<EngineInstant>,
    /// Whether the timer's task runs.
    is_driven: bool,
}

impl Throttle {
    /// A throttle with these options: anything that serde reads, such as `serde_json::json!({ "rate": 5 })`.
    ///
    /// # Errors
    ///
    /// All problems at once, each with its path, what was wanted and what was got.
    pub fn new<'de>(options: impl Deserializer<'de>) -> Result<Self, ConfigError> {
        Ok(Self::of(Engine::new(Config::parse(value_of(options, "options")?)?)))
    }

    /// A throttle that goes on where [`Throttle::snapshot`] was taken, also in another process.
    ///
    /// # Errors
    ///
    /// All problems of the options, or of the snapshot, at once.
    pub fn restore<'de>(
        options: impl Deserializer<'de>,
        snapshot: impl Deserializer<'de>,
    ) -> Result<Self, ConfigError> {
        let config = Config::parse(value_of(options, "options")?)?;
        let snapshot = Snapshot::parse(value_of(snapshot, "a snapshot")?)?;
        Ok(Self::of(Engine::restore(config, &snapshot, EngineInstant::default(), wall_ms())))
    }

    fn of(mut engine: Engine) -> Self {
        if engine.config().seed.is_none() {
            engine.seed(RandomState::new().hash_one(0));
        }
        engine.watch(Watch::Changes);
        engine.take_notices().iter().for_each(tell);
        let state = State { engine, waiting: BTreeMap::new(), wake_at: None, is_driven: false };
        let shared = Shared { origin: Instant::now(), state: Mutex::new(state), earlier: Notify::new() };
        Self(Arc::new(shared))
    }

    /// Waits until a request to `target` may leave: a URL, or a [`Target`].
    ///
    /// Dropping the future gives its place in the queue back.
    ///
    /// # Errors
    ///
    /// Where the request can never leave: see [`Error`].
    pub async fn acquire<T: TryInto<Target>>(&self, target: T) -> Result<Permit, Error>
    where
        Error: From<T::Error>,
    {
        let target = target.try_into()?;
        let mut waiting = match self.enter(&target)? {
            Entered::Sent(ticket) => return Ok(Permit::new(self.clone(), ticket, Instant::now(), target)),
            Entered::Waits(waiting) => waiting,
        };
        let since = Instant::now();
        // The sender is dropped only with its throttle, which `self` keeps.
        let granted = (&mut waiting.granted).await.expect("a throttle that is alive answers");
        let ticket = waiting.take();
        self.with(|engine, now| {
            // A busy runtime polls late: the next request waits its delay from now.
            if now.since(granted).micros() >= 1000 {
                engine.left(now, ticket);
            }
        });
        tracing::debug!(scope = target.first(), waited_ms = since.elapsed().as_millis() as u64, "leaves");
        Ok(Permit::new(self.clone(), ticket, Instant::now(), target))
    }

    /// Waits until a request to `target` may leave, runs `work`, hears what it gives, and gives it back.
    ///
    /// # Errors
    ///
    /// The outer error says that the request can never leave: `work` did not run.
    pub async fn run<T, F, A>(&self, target: T, work: F) -> Result<A, Error>
    where
        T: TryInto<Target>,
        Error: From<T::Error>,
        F: AsyncFnOnce() -> A,
        A: Answer,
    {
        let permit = self.acquire(target).await?;
        let answer = work().await;
        permit.settle(&answer);
        Ok(answer)
    }

    /// Changes settings of one scope while it runs.
    ///
    /// # Errors
    ///
    /// All problems at once; then nothing has changed.
    pub fn configure<'de>(&self, scope: &str, options: impl Deserializer<'de>) -> Result<(), ConfigError> {
        let options = value_of(options, "options")?;
        self.scoped(scope, |engine, now, scope| engine.configure(now, scope, options))
    }

    /// Sends no request of a scope for `span`. A hold that is longer already stays.
    pub fn hold(&self, scope: &str, span: Duration) {
        let span = Span::from_millis(span.as_secs_f64() * 1000.0);
        self.scoped(scope, |engine, now, scope| engine.hold(now, scope, span));
    }

    /// Sends no request of a scope until [`Throttle::resume`].
    pub fn pause(&self, scope: &str) {
        self.scoped(scope, |engine, now, scope| engine.pause(now, scope));
    }

    /// Ends a pause of a scope.
    pub fn resume(&self, scope: &str) {
        self.scoped(scope, |engine, now, scope| engine.resume(now, scope));
    }

    /// Forgets what a scope learned, and lifts its hold.
    pub fn reset(&self, scope: &str) {
        self.scoped(scope, |engine, now, scope| engine.reset(now, scope));
    }

    /// What was learned, to store: anything that serde writes. See [`Throttle::restore`].
    pub fn snapshot(&self) -> impl Serialize + Debug + Clone + use<> {
        self.with(|engine, now| Value::from(engine.snapshot(now, wall_ms())))
    }

    /// What the whole throttle does now.
    pub fn stats(&self) -> Stats {
        self.with(|engine, now| engine.stats(now))
    }

    /// What one scope does now: its delay, why it waits, what it has learned. `None` for a scope that is not
    /// known.
    pub fn scope_stats(&self, scope: &str) -> Option<ScopeStats> {
        self.with(|engine, now| engine.scope_stats(now, engine.find(scope)?))
    }

    /// Uses the engine for a scope of this name.
    pub(crate) fn scoped<T>(
        &self,
        scope: &str,
        call: impl FnOnce(&mut Engine, EngineInstant, ScopeId) -> T,
    ) -> T {
        self.with(|engine, now| {
            let scope = engine.intern(scope);
            call(engine, now, scope)
        })
    }

    /// Uses the engine, then sends whom that allows to leave.
    pub(crate) fn with<T>(&self, call: impl FnOnce(&mut Engine, EngineInstant) -> T) -> T {
        self.0.change(|state, now| call(&mut state.engine, now))
    }

    fn enter(&self, target: &Target) -> Result<Entered, Error> {
        let shared = &self.0;
        shared.change(|state, now| {
            let engine = &mut state.engine;
            let (scopes, costs): (Vec<ScopeId>, Vec<f64>) =
                target.scopes().map(|(name, cost)| (engine.intern(name), cost)).unzip();
            let request = Request {
                costs: &costs,
                priority: target.priority,
                delay_ms: target.delay.as_secs_f64() * 1000.0,
                ..Request::new(&scopes)
            };
            let refused = |engine: &Engine, error| match error {
                SubmitError::QueueFull => Error::QueueFull,
                SubmitError::CostExceedsQuota { scope, setting } => Error::CostExceedsQuota {
                    scope: engine.name(scope).unwrap_or_default().into(),
                    path: engine.config_path(scope, setting).unwrap_or_default(),
                },
                SubmitError::ScopeDown { scope, .. } => {
                    Error::ScopeDown { scope: engine.name(scope).unwrap_or_default().into() }
                }
                SubmitError::NotANumber | SubmitError::UnknownScope => Error::NotANumber,
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
            let ticket = engine.submit(now, request).map_err(|error| refused(engine, error))?;
            let (tell, granted) = oneshot::channel();
            state.waiting.insert(ticket, tell);
            let throttle = self.clone();
            Ok(Entered::Waits(Waiting { throttle, ticket: Some(ticket), granted }))
        })
    }
}

/// What became of a request that asked.
enum Entered {
    Sent(Ticket),
    Waits(Waiting),
}

/// A request that waits. Dropped, it gives its place back, or its permit where that was on its way.
struct Waiting {
    throttle: Throttle,
    ticket: Option<Ticket>,
    granted: oneshot::Receiver<EngineInstant>,
}

impl Waiting {
    fn take(&mut self) -> Ticket {
        self.ticket.take().expect("it is taken once")
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.throttle.0.change(|state, now| {
                state.waiting.remove(&ticket);
                state.engine.cancel(now, ticket);
            });
        }
    }
}

impl Shared {
    /// Whole microseconds since the throttle was made, rounded down.
    fn now(&self) -> EngineInstant {
        EngineInstant::from_micros(u64::try_from(self.origin.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    /// Changes something, then sends whom that allows to leave.
    fn change<T>(self: &Arc<Self>, change: impl FnOnce(&mut State, EngineInstant) -> T) -> T {
        // A panic in `change` would be this crate's: the engine never panics, so what it holds is whole.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.now();
        let result = change(&mut state, now);
        self.drain(&mut state, now);
        let notices = state.engine.take_notices();
        drop(state);
        notices.iter().for_each(tell);
        result
    }

    fn drain(self: &Arc<Self>, state: &mut State, now: EngineInstant) {
        let wake_at = loop {
            match state.engine.poll(now) {
                Decision::Send(ticket) => {
                    let is_heard =
                        state.waiting.remove(&ticket).is_some_and(|waiting| waiting.send(now).is_ok());
                    if !is_heard {
                        state.engine.cancel(now, ticket);
                    }
                }
                Decision::Wait { until, .. } => break Some(until),
                Decision::Idle { .. } => break None,
            }
        };
        let is_earlier = wake_at.is_some_and(|at| state.wake_at.is_none_or(|before| at < before));
        state.wake_at = wake_at;
        if is_earlier && state.is_driven {
            self.earlier.notify_one();
        } else if wake_at.is_some()
            && !state.is_driven
            && let Ok(runtime) = Handle::try_current()
        {
            state.is_driven = true;
            runtime.spawn(drive(Driven(Arc::downgrade(self))));
        }
    }
}

/// The timer's task. It ends when nothing waits for a time, or nobody has the throttle any more.
async fn drive(driven: Driven) {
    while let Some(shared) = driven.0.upgrade() {
        let until = {
            let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(until) = state.wake_at else {
                state.is_driven = false;
                return;
            };
            shared.origin + Duration::from_micros(until.micros())
        };
        tokio::select! {
            () = tokio::time::sleep_until(until) => shared.change(|state, _| state.wake_at = None),
            () = shared.earlier.notified() => {}
        }
    }
}

/// Says that the timer's task runs no more, also where its runtime was shut down: the next request that asks
/// starts another one.
struct Driven(Weak<Shared>);

impl Drop for Driven {
    fn drop(&mut self) {
        if let Some(shared) = self.0.upgrade() {
            shared.state.lock().unwrap_or_else(PoisonError::into_inner).is_driven = false;
        }
    }
}

impl fmt::Debug for Throttle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Throttle").finish_non_exhaustive()
    }
}

fn value_of<'de>(given: impl Deserializer<'de>, want: &str) -> Result<Value, ConfigError> {
    Value::deserialize(given).map_err(|error| ConfigError {
        problems: vec![Problem { path: String::new(), want: want.into(), got: error.to_string() }],
    })
}

/// Milliseconds since 1970, if this machine knows them.
pub(crate) fn wall_ms() -> Option<f64> {
    SystemTime::now().duration_since(UNIX_EPOCH).ok().map(|wall| wall.as_secs_f64() * 1000.0)
}

/// What people should know goes to `tracing`.
fn tell(notice: &Notice) {
    match notice {
        Notice::NoEffect(found) => warn(found, "it has no effect"),
        Notice::RampupBound(found) => warn(found, "it slows rampup down"),
        Notice::HoldCut(found) => warn(found, "it cuts a wait"),
        Notice::Stalled { scope, span } => {
            tracing::warn!(scope, for_ms = span.millis(), "the server only answers badly");
        }
        Notice::Down { scope, span } => tracing::warn!(scope, for_ms = span.millis(), "no answer comes"),
        Notice::Backoff(pace) => tracing::debug!(scope = pace.scope, delay_ms = pace.delay_ms, "backs off"),
        Notice::Recover(pace) => tracing::debug!(scope = pace.scope, delay_ms = pace.delay_ms, "recovers"),
        other => tracing::trace!(?other),
    }
}

/// A setting, and what it does.
fn warn(found: &Diagnostic, what: &str) {
    tracing::warn!(scope = found.scope, path = found.path, "{}: {what}: {}", found.setting, found.why);
}
