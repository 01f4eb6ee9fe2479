//! The driver: one engine behind a lock, and one task with one timer while requests wait.

use std::{
    collections::BTreeMap,
    fmt::{self, Debug},
    hash::{BuildHasher, RandomState},
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use autothrottle::{
    Boundary, ConfigError, Diagnostic, Instant as EngineInstant, Notice, Problem, ScopeStats, Span, Stall,
    Stats, Ticket, Value,
};
#[cfg(feature = "_shared")]
use autothrottle_shared::{Effect, MemberId, Settings, Status};
use serde::{Deserialize, Serialize, de::Deserializer};
#[cfg(feature = "_shared")]
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::{
    runtime::{Handle, Id},
    sync::{Notify, oneshot},
    time::Instant,
};

use crate::{
    Error, Target,
    answer::wall_ms,
    host::{Host, Next, Order},
};
#[cfg(feature = "_shared")]
use crate::{
    event::{Event, LEASE},
    group::Group,
    transport::{By, Transport},
};

/// Says when a request may leave. Cheap to clone: all clones are one throttle.
///
/// ```
/// use std::time::Duration;
///
/// use autothrottle_tower::{Options, ScopeOptions, Throttle};
///
/// let slow = ScopeOptions { delay: Some(Duration::from_secs(5)), ..ScopeOptions::default() };
/// let throttle = Throttle::new(Options {
///     rate: Some(10.into()), // a second, to each host
///     scopes: Some([("slow.example".into(), slow)].into()),
///     ..Options::default()
/// })?;
/// assert_eq!(throttle.stats().waiting, 0);
/// # Ok::<(), autothrottle_tower::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct Throttle(pub(crate) Arc<Shared>);

/// When a request was let go, or why it never leaves.
pub(crate) type Granted = Result<EngineInstant, Error>;

pub(crate) struct Shared {
    origin: Instant,
    state: Mutex<State>,
    /// Tells the task of a group that there is something to say.
    earlier: Arc<Notify>,
}

pub(crate) struct State {
    pub host: Host,
    /// Requests that wait for a permit, and what wakes each.
    pub waiting: BTreeMap<Ticket, Waits>,
    /// When it is worth asking the engine again.
    wake_at: Option<EngineInstant>,
    /// The timer's task of each runtime in which requests wait, and what tells it of something earlier.
    drivers: Vec<(Id, Arc<Notify>)>,
}

/// A request that waits, and the channel of its answer.
pub(crate) struct Waits {
    pub reply: oneshot::Sender<Granted>,
    pub target: Target,
}

impl State {
    /// Whether no request waits, and there is no word to tell: then to ask the engine changes no state.
    fn is_quiet(&self) -> bool {
        self.waiting.is_empty() && !self.host.is_shared() && !self.host.has_notices()
    }

    /// Tells what was noticed. A request that waits for a server that turned out to have several budgets goes
    /// by its route from here on. A request that waits for a scope that is down is refused.
    fn notice(&mut self, now: EngineInstant, told: &mut Vec<Notice>) {
        for notice in self.host.take_notices() {
            if let Notice::Budgets(_) = &notice {
                for (&ticket, waits) in &self.waiting {
                    self.host.route(now, ticket, &waits.target, false);
                }
            }
            if let Notice::Down(Stall { scope, .. }) = &notice {
                let waits_for = |waits: &Waits| waits.target.scopes().any(|(name, _)| name == scope);
                let all = self.waiting.iter().filter(|(_, waits)| waits_for(waits));
                for ticket in all.map(|(&ticket, _)| ticket).collect::<Vec<_>>() {
                    self.host.cancel(now, ticket);
                    let waits = self.waiting.remove(&ticket);
                    waits.map(|waits| waits.reply.send(Err(Error::ScopeDown { scope: scope.clone() })));
                }
            }
            told.push(notice);
        }
    }
}

impl Throttle {
    /// A throttle with these options: [`Options`](crate::Options), or anything that serde reads, such as
    /// `serde_json::json!({ "rate": 5 })`.
    ///
    /// # Errors
    ///
    /// All problems at once, each with its path, what was wanted and what was got.
    pub fn new<'de>(options: impl Deserializer<'de>) -> Result<Self, ConfigError> {
        Ok(Self::of(Boundary::new(value_of(options, "options")?)?))
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
        let mut engine = Boundary::new(value_of(options, "options")?)?;
        engine.restore(value_of(snapshot, "a snapshot")?, 0.0, wall_ms().unwrap_or(f64::NAN))?;
        Ok(Self::of(engine))
    }

    fn of(mut engine: Boundary) -> Self {
        if engine.wants_seed() {
            engine.seed(RandomState::new().hash_one(0));
        }
        engine.watch(1);
        let throttle = Self::by(Host::Own(Box::new(engine)));
        throttle.with(|_, _| ());
        throttle
    }

    pub(crate) fn by(host: Host) -> Self {
        let state = State { host, waiting: BTreeMap::new(), wake_at: None, drivers: Vec::new() };
        let earlier = Arc::new(Notify::new());
        Self(Arc::new(Shared { origin: Instant::now(), state: Mutex::new(state), earlier }))
    }

    /// Changes settings of one scope while it runs: [`ScopeOptions`](crate::ScopeOptions), or what serde reads.
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

    /// Forgets what a scope learned, and lifts its hold. The spent parts of quotas and budgets stay spent.
    pub fn reset(&self, scope: &str) {
        self.with(|host, now| host.order(now, scope, Order::Reset));
    }

    /// The learned state, to store: anything that serde writes. See [`Throttle::restore`].
    pub fn snapshot(&self) -> impl Serialize + Debug + Clone + use<> {
        self.with(|host, now| host.snapshot(now, wall_ms()))
    }

    /// The state of the whole throttle.
    pub fn stats(&self) -> Stats {
        self.with(|host, now| host.stats(now))
    }

    /// The state of one scope: its delay, why it waits, what it has learned. `None` for a scope that is not
    /// known.
    pub fn scope_stats(&self, scope: &str) -> Option<ScopeStats> {
        self.with(|host, now| host.scope_stats(now, scope))
    }

    /// Uses who decides, then sends whom that allows to leave.
    pub(crate) fn with<T>(&self, call: impl FnOnce(&mut Host, EngineInstant) -> T) -> T {
        self.0.change(|state, now| call(&mut state.host, now))
    }
}

#[cfg(feature = "_shared")]
impl Throttle {
    /// A throttle whose limits all processes of a group share. Feature `redis` or `local`.
    ///
    /// It connects with the first request, in the runtime of that one. When its last clone is dropped, the
    /// process leaves the group; [`Throttle::leave`] waits until the others know.
    ///
    /// # Errors
    ///
    /// All problems of the options at once.
    pub fn shared<'de>(options: impl Deserializer<'de>, by: impl Into<By>) -> Result<Self, ConfigError> {
        let random = RandomState::new();
        let (one, two) = (random.hash_one(1).to_be_bytes(), random.hash_one(2).to_be_bytes());
        let id = MemberId(std::array::from_fn(|at| if at < 8 { one[at] } else { two[at - 8] }));
        let (transport, joins) = Transport::new(by.into(), id);
        let span = |duration: Duration| Span::from_millis(duration.as_secs_f64() * 1000.0);
        let settings = Settings {
            lease: span(LEASE),
            offline: joins.offline,
            members: joins.members,
            prompt: false,
            keep_every: Span::ZERO,
            snapshot: None,
        };
        let options = value_of(options, "options")?;
        let group = Group::new(id, options, settings, random.hash_one(3), transport)?;
        Ok(Self::by(Host::Group(Box::new(group))))
    }

    /// The group as this process knows it: who decides, how many there are, since when it is alone. `None`
    /// for a throttle that is not [shared](Throttle::shared).
    pub fn group(&self) -> Option<Status> {
        self.with(|host, now| match host {
            Host::Group(group) => Some(group.status(now)),
            Host::Own(_) => None,
        })
    }

    /// Leaves the group and waits until the others know. Later requests get an [`Error`](crate::Error).
    /// A throttle that is not [shared](Throttle::shared) goes on as before.
    pub async fn leave(&self) {
        let left = self.with(|host, now| match host {
            Host::Group(group) => Some(group.leave(now)),
            Host::Own(_) => None,
        });
        if let Some(mut left) = left {
            // The other end is kept by `self`.
            let _ = left.wait_for(|left| *left).await;
        }
    }
}

impl Shared {
    /// Whole microseconds since the throttle was made, rounded down.
    fn now(&self) -> EngineInstant {
        let since = self.origin.elapsed();
        EngineInstant::from_micros(since.as_secs() * 1_000_000 + u64::from(since.subsec_micros()))
    }

    /// That instant as others count.
    pub fn instant(&self, at: EngineInstant) -> Instant {
        self.origin + Duration::from_micros(at.micros())
    }

    /// Changes something, then sends whom that allows to leave.
    pub fn change<T>(self: &Arc<Self>, change: impl FnOnce(&mut State, EngineInstant) -> T) -> T {
        self.quietly(|state, now| {
            let result = change(state, now);
            #[cfg(feature = "_shared")]
            if let Host::Group(group) = &mut state.host {
                if let Ok(runtime) = Handle::try_current()
                    && let Some((transport, last)) = group.start()
                {
                    runtime.spawn(carry(Arc::downgrade(self), transport, last));
                }
                self.earlier.notify_one();
            }
            result
        })
    }

    /// The same for the task itself, which needs no call.
    fn quietly<T>(self: &Arc<Self>, change: impl FnOnce(&mut State, EngineInstant) -> T) -> T {
        // A panic in `change` would be this crate's: the engine never panics, so what it holds is whole.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.now();
        let was_quiet = state.is_quiet();
        let result = change(&mut state, now);
        if was_quiet && state.is_quiet() {
            return result;
        }
        let mut notices = Vec::new();
        state.notice(now, &mut notices);
        let driver = self.drain(&mut state, now);
        state.notice(now, &mut notices);
        drop(state);
        // A runtime that shuts down drops the task here, and its end asks for the lock.
        if let Some((runtime, earlier)) = driver {
            let driven = Driven(Arc::downgrade(self), runtime.id());
            runtime.spawn(drive(driven, earlier));
        }
        notices.iter().for_each(log);
        result
    }

    /// Gives the runtime that needs a timer's task of its own, if there is one.
    fn drain(&self, state: &mut State, now: EngineInstant) -> Option<(Handle, Arc<Notify>)> {
        let wake_at = loop {
            match state.host.poll(now) {
                Next::Send(ticket) => {
                    let waiting = state.waiting.remove(&ticket);
                    if waiting.is_none_or(|waiting| waiting.reply.send(Ok(now)).is_err()) {
                        state.host.cancel(now, ticket);
                    }
                }
                #[cfg(feature = "_shared")]
                Next::Refuse(ticket, error) => {
                    // Its future may have been dropped: then it needs no reason.
                    state.waiting.remove(&ticket).map(|waiting| waiting.reply.send(Err(error)));
                }
                Next::Wait(until) => break until,
            }
        };
        let is_earlier = wake_at.is_some_and(|at| state.wake_at.is_none_or(|before| at < before));
        state.wake_at = wake_at;
        let is_over = state.waiting.is_empty();
        if is_earlier || is_over {
            state.drivers.iter().for_each(|(_, earlier)| earlier.notify_one());
        }
        if !is_over
            && !state.host.is_shared()
            && let Ok(runtime) = Handle::try_current()
            && state.drivers.iter().all(|(of, _)| *of != runtime.id())
        {
            let earlier = Arc::new(Notify::new());
            state.drivers.push((runtime.id(), earlier.clone()));
            return Some((runtime, earlier));
        }
        None
    }
}

/// The timer's task. It ends when no request waits, or when the throttle is dropped. Each runtime with requests
/// that wait has one: a runtime may end, or stand still, while those of another wait.
async fn drive(driven: Driven, earlier: Arc<Notify>) {
    while let Some(shared) = driven.0.upgrade() {
        let until = {
            let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
            if state.waiting.is_empty() {
                state.drivers.retain(|(of, _)| *of != driven.1);
                return;
            }
            state.wake_at.map(|until| shared.instant(until))
        };
        let time = async {
            match until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        drop(shared);
        tokio::select! {
            () = time => driven.wake(),
            () = earlier.notified() => {}
        }
    }
}

/// Carries what the machine says, and what others say, as long as the throttle exists.
#[cfg(feature = "_shared")]
async fn carry(inner: Weak<Shared>, mut transport: Transport, mut last: UnboundedReceiver<Effect>) {
    let (events, mut heard) = unbounded_channel();
    let mut inputs: Vec<Event> = Vec::new();
    loop {
        // Other calls of this turn go along.
        tokio::task::yield_now().await;
        let Some(inner) = inner.upgrade() else { break };
        let (says, wake_at, left) = inner.quietly(|state, now| {
            let Host::Group(group) = &mut state.host else { unreachable!("its task alone carries") };
            group.carried(now, inputs.drain(..))
        });
        let (until, changed) = (wake_at.map(|at| inner.instant(at)), inner.earlier.clone());
        drop(inner);
        transport.say(says, &events).await;
        let Some(until) = until else {
            transport.close().await;
            left.send_replace(true);
            return;
        };
        tokio::select! {
            () = tokio::time::sleep_until(until) => inputs.push(Event::Time),
            () = changed.notified() => {}
            Some(first) = heard.recv() => inputs.push(first),
        }
        while let Ok(more) = heard.try_recv() {
            inputs.push(more);
        }
        inputs = inputs.into_iter().filter_map(|input| transport.hear(input, &events)).collect();
    }
    transport.say(std::iter::from_fn(|| last.try_recv().ok()).collect(), &events).await;
    transport.close().await;
}

/// Says that the timer's task of a runtime runs no more, also where that was shut down.
struct Driven(Weak<Shared>, Id);

impl Driven {
    /// It is time.
    fn wake(&self) {
        if let Some(shared) = self.0.upgrade() {
            shared.change(|state, _| state.wake_at = None);
        }
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        if let Some(shared) = self.0.upgrade() {
            let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.drivers.retain(|(of, _)| *of != self.1);
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
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        state.drivers.iter().for_each(|(_, earlier)| earlier.notify_one());
        self.earlier.notify_one();
    }
}

impl fmt::Debug for Throttle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Throttle").finish_non_exhaustive()
    }
}

pub(crate) fn value_of<'de>(typed: impl Deserializer<'de>, want: &str) -> Result<Value, ConfigError> {
    Value::deserialize(typed).map_err(|error| ConfigError {
        problems: vec![Problem { path: String::new(), want: want.into(), got: error.to_string() }],
    })
}

/// Writes a notice to `tracing`.
fn log(notice: &Notice) {
    if let Some((Diagnostic { scope, path, .. }, sentence)) = notice.finding() {
        return tracing::warn!(scope, path, "{sentence}");
    }
    match notice {
        Notice::Stalled(Stall { scope, for_ms }) => {
            tracing::warn!(scope, for_ms, "the server only answers badly");
        }
        Notice::Down(Stall { scope, for_ms }) => tracing::warn!(scope, for_ms, "no answer comes"),
        Notice::Backoff(pace) => tracing::debug!(scope = pace.scope, delay_ms = pace.delay_ms, "backs off"),
        Notice::Recover(pace) => tracing::debug!(scope = pace.scope, delay_ms = pace.delay_ms, "recovers"),
        other => tracing::trace!(?other),
    }
}
