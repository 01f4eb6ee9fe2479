//! The driver: one engine behind a lock, and one task with one timer while requests wait.

use std::{
    collections::BTreeMap,
    fmt::{self, Debug},
    hash::{BuildHasher, RandomState},
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use autothrottle::{
    Config, ConfigError, Diagnostic, Engine, Instant as EngineInstant, Notice, Problem, ScopeStats, Snapshot,
    Span, Stats, Ticket, Value, Watch,
};
use serde::{Deserialize, Serialize, de::Deserializer};
use tokio::{
    runtime::Handle,
    sync::{Notify, oneshot},
    time::Instant,
};

use crate::{
    Answer, Error, Permit, Target,
    host::{Entered, Host, Next, Order},
};

/// Says when a request may leave. Cheap to clone: all clones are one throttle.
#[derive(Clone)]
pub struct Throttle(Arc<Shared>);

/// When a request was let go, or why it never leaves.
type Granted = Result<EngineInstant, Error>;

pub(crate) struct Shared {
    pub origin: Instant,
    state: Mutex<State>,
    /// Tells the task that there is something earlier to wait for.
    pub earlier: Arc<Notify>,
}

pub(crate) struct State {
    pub host: Host,
    /// Requests that wait for a permit, and what wakes each.
    waiting: BTreeMap<Ticket, oneshot::Sender<Granted>>,
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
        Self::by(Host::own(engine))
    }

    pub(crate) fn by(host: Host) -> Self {
        let state = State { host, waiting: BTreeMap::new(), wake_at: None, is_driven: false };
        let earlier = Arc::new(Notify::new());
        Self(Arc::new(Shared { origin: Instant::now(), state: Mutex::new(state), earlier }))
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
            Asked::Sent(ticket) => return Ok(Permit::new(self.clone(), ticket, Instant::now(), target)),
            Asked::Waits(waiting) => waiting,
        };
        let since = Instant::now();
        // The sender is dropped only with its throttle, which `self` keeps.
        let granted = (&mut waiting.granted).await.expect("a throttle that is alive answers");
        let ticket = waiting.take();
        let granted = granted?;
        self.with(|host, now| {
            // A busy runtime polls late: the next request waits its delay from now.
            if now.since(granted).micros() >= 1000 {
                host.left(now, ticket);
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
    /// All problems at once; then no setting has changed.
    pub fn configure<'de>(&self, scope: &str, options: impl Deserializer<'de>) -> Result<(), ConfigError> {
        let options = value_of(options, "options")?;
        self.with(|host, now| host.configure(now, scope, options))
    }

    /// Sends no request of a scope for `span`. A hold that is longer already stays.
    pub fn hold(&self, scope: &str, span: Duration) {
        let span = Span::from_millis(span.as_secs_f64() * 1000.0);
        self.with(|host, now| host.order(now, scope, Order::Hold(span)));
    }

    /// Sends no request of a scope until [`Throttle::resume`].
    pub fn pause(&self, scope: &str) {
        self.with(|host, now| host.order(now, scope, Order::Pause));
    }

    /// Ends a pause of a scope.
    pub fn resume(&self, scope: &str) {
        self.with(|host, now| host.order(now, scope, Order::Resume));
    }

    /// Forgets what a scope learned, and lifts its hold.
    pub fn reset(&self, scope: &str) {
        self.with(|host, now| host.order(now, scope, Order::Reset));
    }

    /// What was learned, to store: anything that serde writes. See [`Throttle::restore`].
    pub fn snapshot(&self) -> impl Serialize + Debug + Clone + use<> {
        self.with(|host, now| host.snapshot(now, wall_ms()))
    }

    /// What the whole throttle does now.
    pub fn stats(&self) -> Stats {
        self.with(|host, now| host.stats(now))
    }

    /// What one scope does now: its delay, why it waits, what it has learned. `None` for a scope that is not
    /// known.
    pub fn scope_stats(&self, scope: &str) -> Option<ScopeStats> {
        self.with(|host, now| host.scope_stats(now, scope))
    }

    /// Uses who decides, then sends whom that allows to leave.
    pub(crate) fn with<T>(&self, call: impl FnOnce(&mut Host, EngineInstant) -> T) -> T {
        self.0.change(|state, now| call(&mut state.host, now))
    }

    fn enter(&self, target: &Target) -> Result<Asked, Error> {
        let shared = &self.0;
        shared.change(|state, now| {
            let ticket = match state.host.enter(now, target)? {
                Entered::Sent(ticket) => return Ok(Asked::Sent(ticket)),
                Entered::Waits(ticket) => ticket,
            };
            let (tell, granted) = oneshot::channel();
            state.waiting.insert(ticket, tell);
            Ok(Asked::Waits(Waiting { throttle: self.clone(), ticket: Some(ticket), granted }))
        })
    }
}

/// What became of a request that asked.
enum Asked {
    Sent(Ticket),
    Waits(Waiting),
}

/// A request that waits. Dropped, it gives its place back, or its permit where that was on its way.
struct Waiting {
    throttle: Throttle,
    ticket: Option<Ticket>,
    granted: oneshot::Receiver<Granted>,
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
                state.host.cancel(now, ticket);
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
        self.quietly(|state, now| {
            let result = change(state, now);
            #[cfg(feature = "_shared")]
            if let Host::Group(group) = &mut state.host {
                group.changed(self);
            }
            result
        })
    }

    /// The same for the task itself, which needs no call.
    pub(crate) fn quietly<T>(self: &Arc<Self>, change: impl FnOnce(&mut State, EngineInstant) -> T) -> T {
        // A panic in `change` would be this crate's: the engine never panics, so what it holds is whole.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.now();
        let result = change(&mut state, now);
        self.drain(&mut state, now);
        let notices = state.host.take_notices();
        drop(state);
        notices.iter().for_each(tell);
        result
    }

    fn drain(self: &Arc<Self>, state: &mut State, now: EngineInstant) {
        let wake_at = loop {
            match state.host.poll(now) {
                Next::Send(ticket) => {
                    let waiting = state.waiting.remove(&ticket);
                    if waiting.is_none_or(|waiting| waiting.send(Ok(now)).is_err()) {
                        state.host.cancel(now, ticket);
                    }
                }
                #[cfg(feature = "_shared")]
                Next::Refuse(ticket, error) => {
                    // Its future may have been dropped: then it needs no reason.
                    state.waiting.remove(&ticket).map(|waiting| waiting.send(Err(error)));
                }
                Next::Wait(until) => break until,
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

/// The timer's task. It ends when no request waits for a time, or when the throttle is dropped.
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

/// The task, if there is one, ends.
impl Drop for Shared {
    fn drop(&mut self) {
        #[cfg(feature = "_shared")]
        {
            let now = self.now();
            let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
            if let Host::Group(group) = &mut state.host {
                group.bye(now);
            }
        }
        self.earlier.notify_one();
    }
}

impl fmt::Debug for Throttle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Throttle").finish_non_exhaustive()
    }
}

pub(crate) fn value_of<'de>(given: impl Deserializer<'de>, want: &str) -> Result<Value, ConfigError> {
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
