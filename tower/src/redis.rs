//! The way between processes through Redis or Valkey: a lease in a key, frames by publish and subscribe.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use autothrottle::Span;
use autothrottle_shared::{
    Effect, Epoch, MemberId, Offline, Op,
    store::{COMPETE, RELEASE, RENEW, SEND, is_for_good},
};
use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use futures_util::StreamExt;
use redis::{
    AsyncConnectionConfig, Client, RedisError, RedisResult, Value,
    aio::{MultiplexedConnection, PubSubSink},
};
use tokio::{
    sync::{Mutex, mpsc::UnboundedSender},
    task::{AbortHandle, JoinSet},
    time::timeout,
};

use crate::event::{Event, FailureCause, Joins, LEASE, joins};

/// Processes that share their limits through Redis or Valkey: those of the same name, in Rust, Node and Python.
///
/// ```no_run
/// use autothrottle_tower::{Options, Redis, Throttle};
///
/// # fn made() -> Result<Throttle, Box<dyn std::error::Error>> {
/// let client = redis::Client::open("redis://localhost:6379/0")?;
/// let options = Options { rate: Some(5.into()), ..Options::default() };
/// let throttle = Throttle::shared(options, Redis::new(client, "crawl"))?;
/// # Ok(throttle)
/// # }
/// ```
///
/// One server, not a cluster. Give all processes the same options.
#[derive(Clone, Debug)]
pub struct Redis {
    pub(crate) client: Client,
    pub(crate) joins: Joins,
}

impl Redis {
    /// The group of this name, by this client.
    pub fn new(client: Client, name: impl Into<String>) -> Self {
        Self { client, joins: Joins::new(name.into()) }
    }
}

joins!(Redis);

impl From<RedisError> for FailureCause {
    fn from(error: RedisError) -> Self {
        if is_for_good(&error.to_string()) {
            Self::Denied(error.to_string())
        } else {
            Self::Broken(error.to_string())
        }
    }
}

/// How this process speaks to the others.
pub(crate) struct Transport {
    store: Arc<Store>,
    /// Questions and frames that are on their way.
    flying: JoinSet<()>,
    is_open: bool,
}

impl Transport {
    pub fn new(client: Client, name: &str, id: MemberId) -> Self {
        // The braces keep the keys in one slot of a cluster, as the other languages write them.
        let prefix = format!("autothrottle:{{{name}}}:");
        let keys = ["lease", "epoch", "snapshot"].map(|key| format!("{prefix}{key}"));
        let (connection, ear) = (Mutex::new(None), Mutex::new(None));
        let leads = AtomicBool::new(false);
        let store = Arc::new(Store { client, prefix, keys, id: id.to_string(), connection, ear, leads });
        Self { store, flying: JoinSet::new(), is_open: false }
    }

    /// Does what the machine wants done. Frames of one turn are one script.
    pub fn say(&mut self, says: Vec<Effect>, events: &UnboundedSender<Event>) {
        while self.flying.try_join_next().is_some() {}
        if says.is_empty() {
            return;
        }
        if !std::mem::replace(&mut self.is_open, true) {
            let _ = events.send(Event::Opened);
        }
        let mut frames: Vec<(Epoch, String, Vec<u8>)> = Vec::new();
        for effect in says {
            match effect {
                Effect::ToMember { epoch, to, bytes } => frames.push((epoch, format!("to:{to}"), bytes)),
                Effect::ToAll { epoch, bytes } => frames.push((epoch, "all".into(), bytes)),
                Effect::ToLeader(bytes) => {
                    self.spawn(events, |store, events| store.send_to_leader(bytes, events))
                }
                Effect::Compete { op, above } => {
                    self.ask(
                        events,
                        op,
                        |store, events| async move { store.compete(op, above, events).await },
                    );
                }
                Effect::Renew { op, epoch, store: kept } => self.ask(events, op, |store, _| async move {
                    let is_ours = store.renew(epoch, kept).await?;
                    Ok(if is_ours { Event::Renewed(op) } else { Event::Refused(op) })
                }),
                Effect::Release { op, epoch, store: kept } => {
                    // After what is said in the same turn: it is the last.
                    let frames = std::mem::take(&mut frames);
                    self.ask(events, op, |store, events| async move {
                        store.send(frames, &events).await;
                        if kept.is_some() {
                            store.renew(epoch, kept).await?;
                        }
                        store.run(RELEASE, vec![store.id.clone().into_bytes()]).await?;
                        Ok(Event::Released(op))
                    });
                }
                // The next command makes another one.
                Effect::Reconnect { speaks: true } => self.spawn(events, |store, _| async move {
                    store.connection.lock().await.take();
                }),
                Effect::Reconnect { speaks: false } => self.spawn(events, Store::reconnect),
                _ => {}
            }
        }
        if !frames.is_empty() {
            self.spawn(events, |store, events| async move { store.send(frames, &events).await });
        }
    }

    /// A connection that broke is made anew, until there is one.
    pub fn hear(&mut self, heard: Event, events: &UnboundedSender<Event>) -> Option<Event> {
        let Event::Ended = heard else { return Some(heard) };
        let (store, events) = (self.store.clone(), events.clone());
        self.flying.spawn(async move {
            tokio::time::sleep(LEASE / 5).await;
            store.reconnect(events).await;
        });
        None
    }

    /// Commands on their way arrive, or are late.
    pub async fn close(mut self) {
        while self.flying.join_next().await.is_some() {}
        let _ = timeout(LEASE, self.store.run(RELEASE, vec![self.store.id.clone().into_bytes()])).await;
        self.store.ear.lock().await.take();
    }

    fn spawn<F>(
        &mut self,
        events: &UnboundedSender<Event>,
        work: impl FnOnce(Arc<Store>, UnboundedSender<Event>) -> F,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let work = work(self.store.clone(), events.clone());
        self.flying.spawn(async move {
            let _ = timeout(LEASE, work).await;
        });
    }

    /// Each question is answered once, at the latest after a lease.
    fn ask<F>(
        &mut self,
        events: &UnboundedSender<Event>,
        op: Op,
        work: impl FnOnce(Arc<Store>, UnboundedSender<Event>) -> F,
    ) where
        F: Future<Output = RedisResult<Event>> + Send + 'static,
    {
        let (work, events) = (work(self.store.clone(), events.clone()), events.clone());
        self.flying.spawn(async move {
            let heard = match timeout(LEASE, work).await {
                Ok(Ok(heard)) => heard,
                Ok(Err(error)) => Event::Failed(op, error.into()),
                Err(_) => Event::Failed(op, FailureCause::Timeout),
            };
            let _ = events.send(heard);
        });
    }
}

struct Store {
    client: Client,
    prefix: String,
    keys: [String; 3],
    id: String,
    /// For commands; made anew after it broke.
    connection: Mutex<Option<MultiplexedConnection>>,
    /// For what is said by others.
    ear: Mutex<Option<Ear>>,
    /// Whether this process listens as the leader.
    leads: AtomicBool,
}

struct Ear {
    sink: PubSubSink,
    task: AbortHandle,
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Store {
    async fn compete(
        self: Arc<Self>,
        op: Op,
        above: Epoch,
        events: UnboundedSender<Event>,
    ) -> RedisResult<Event> {
        // First it makes sure that it hears.
        self.listen(&events).await?;
        let leader = self.channel("leader");
        let asked = [self.id.clone(), above.to_string(), LEASE.as_millis().to_string(), leader];
        let answer = self.run(COMPETE, asked.map(String::into_bytes).to_vec()).await?;
        let answer: Vec<String> = redis::from_redis_value(answer)?;
        let [epoch, stored, age] = answer.as_slice() else {
            if self.leads.swap(false, Ordering::Relaxed)
                && let Some(ear) = self.ear.lock().await.as_mut()
            {
                ear.sink.unsubscribe(self.channel("leader")).await?;
            }
            return Ok(Event::Refused(op));
        };
        if !self.leads.swap(true, Ordering::Relaxed)
            && let Some(ear) = self.ear.lock().await.as_mut()
        {
            ear.sink.subscribe(self.channel("leader")).await?;
        }
        let stored = BASE64.decode(stored).ok().filter(|bytes| !bytes.is_empty());
        let age = Span::from_millis(age.parse().unwrap_or(0.0));
        let (epoch, stored) = (epoch.parse().unwrap_or(0), stored.map(|bytes| (bytes, age)));
        Ok(Event::Elected { op, epoch, stored, is_first: false })
    }

    async fn renew(&self, epoch: Epoch, kept: Option<Vec<u8>>) -> RedisResult<bool> {
        let kept = kept.map(|bytes| BASE64.encode(bytes)).unwrap_or_default();
        let mut asked = self.claim(epoch);
        asked.extend([kept.into_bytes(), Vec::new()]);
        Ok(self.run(RENEW, asked).await? == Value::Int(1))
    }

    async fn send_to_leader(self: Arc<Self>, bytes: Vec<u8>, events: UnboundedSender<Event>) {
        let mut command = redis::cmd("PUBLISH");
        command.arg(self.channel("leader")).arg(bytes);
        if let Ok(Value::Int(0)) = self.command(&command).await {
            let _ = events.send(Event::Vacant { has_ended: false });
        }
    }

    /// The frames of a leader in one turn are one script, which first compares the lease.
    async fn send(&self, frames: Vec<(Epoch, String, Vec<u8>)>, events: &UnboundedSender<Event>) {
        for frames in frames.chunk_by(|one, other| one.0 == other.0) {
            let epoch = frames[0].0;
            let mut asked = self.claim(epoch);
            for (_, channel, bytes) in frames {
                asked.extend([self.channel(channel).into_bytes(), bytes.clone()]);
            }
            let heard = match self.run(SEND, asked).await {
                Ok(Value::Int(0)) => vec![Event::Fenced(epoch)],
                Ok(Value::Array(places)) => {
                    let unheard = places.into_iter().filter_map(|place| {
                        let Value::Int(place) = place else { return None };
                        let (_, channel, _) = frames.get(usize::try_from(place).ok()?)?;
                        Some(Event::Unheard(channel.strip_prefix("to:")?.parse().ok()?, epoch))
                    });
                    unheard.collect()
                }
                // A lost message is sent again.
                _ => Vec::new(),
            };
            heard.into_iter().for_each(|heard| _ = events.send(heard));
        }
    }

    /// Another connection that hears, in place of one that is dead.
    async fn reconnect(self: Arc<Self>, events: UnboundedSender<Event>) {
        self.ear.lock().await.take();
        let listens = timeout(LEASE, self.listen(&events)).await;
        let _ = events.send(if let Ok(Ok(())) = listens { Event::Opened } else { Event::Ended });
    }

    /// Hears what is said to all and to this process, and as the leader.
    async fn listen(&self, events: &UnboundedSender<Event>) -> RedisResult<()> {
        let mut ear = self.ear.lock().await;
        if ear.as_ref().is_some_and(|ear| !ear.task.is_finished()) {
            return Ok(());
        }
        let (mut sink, mut stream) = self.client.get_async_pubsub().await?.split();
        sink.subscribe(self.channel("all")).await?;
        sink.subscribe(self.channel(&format!("to:{}", self.id))).await?;
        if self.leads.load(Ordering::Relaxed) {
            sink.subscribe(self.channel("leader")).await?;
        }
        let events = events.clone();
        let task = tokio::spawn(async move {
            while let Some(message) = stream.next().await {
                // The store publishes an empty message to find out who listens.
                if !message.get_payload_bytes().is_empty() {
                    let _ = events.send(Event::Frame(message.get_payload_bytes().to_vec()));
                }
            }
            let _ = events.send(Event::Ended);
        });
        *ear = Some(Ear { sink, task: task.abort_handle() });
        Ok(())
    }

    fn channel(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    fn claim(&self, epoch: Epoch) -> Vec<Vec<u8>> {
        let claim = [format!("{epoch}:{}", self.id), epoch.to_string(), LEASE.as_millis().to_string()];
        claim.map(String::into_bytes).to_vec()
    }

    async fn run(&self, script: &str, arguments: Vec<Vec<u8>>) -> RedisResult<Value> {
        let mut command = redis::cmd("EVAL");
        command.arg(script).arg(self.keys.len()).arg(&self.keys[..]).arg(arguments);
        self.command(&command).await
    }

    async fn command(&self, command: &redis::Cmd) -> RedisResult<Value> {
        let mut connection = {
            let mut known = self.connection.lock().await;
            match &*known {
                Some(connection) => connection.clone(),
                None => {
                    let limits = AsyncConnectionConfig::new()
                        .set_connection_timeout(Some(LEASE))
                        .set_response_timeout(Some(LEASE));
                    let made = self.client.get_multiplexed_async_connection_with_config(&limits).await?;
                    known.insert(made).clone()
                }
            }
        };
        let answer = command.query_async(&mut connection).await;
        if answer
            .as_ref()
            .is_err_and(|error: &RedisError| error.is_io_error() || error.is_connection_dropped())
        {
            self.connection.lock().await.take();
        }
        answer
    }
}
