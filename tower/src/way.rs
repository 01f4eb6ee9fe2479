//! How the processes of a group speak to each other, and how a throttle joins them.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use autothrottle::{ConfigError, Span};
use autothrottle_shared::{Cause, Effect, Epoch, Input, MemberId, Offline, Op, Settings, Status};
use serde::Deserializer;
use tokio::sync::mpsc::UnboundedSender;

#[cfg(all(feature = "local", unix))]
use crate::local::{self, Local};
#[cfg(feature = "redis")]
use crate::redis::{self, Redis};
use crate::{Throttle, group::Group, host::Host, throttle::value_of};

pub(crate) const LEASE: Duration = Duration::from_millis(1500);
/// The connection may be broken for so long before `offline` counts.
const PATIENCE: Duration = Duration::from_secs(5);

/// The group that a throttle joins: a [`Redis`], or a [`Local`] of this machine.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum By {
    /// Through Redis or Valkey.
    #[cfg(feature = "redis")]
    Redis(Redis),
    /// By a socket of this machine.
    #[cfg(all(feature = "local", unix))]
    Local(Local),
}

#[cfg(feature = "redis")]
impl From<Redis> for By {
    fn from(redis: Redis) -> Self {
        Self::Redis(redis)
    }
}

#[cfg(all(feature = "local", unix))]
impl From<Local> for By {
    fn from(local: Local) -> Self {
        Self::Local(local)
    }
}

/// What both kinds take.
#[derive(Clone, Debug)]
pub(crate) struct Joins {
    pub name: String,
    pub offline: Option<Offline>,
    pub members: Option<u32>,
}

impl Joins {
    pub fn new(name: String) -> Self {
        Self { name, offline: None, members: None }
    }
}

/// The settings that both kinds take.
macro_rules! joins {
    ($kind:ty) => {
        impl $kind {
            /// What this process does after five seconds without the others. By default it goes on with its
            /// part of each limit ([`Offline::Divide`]), and requests with a strict quota wait.
            #[must_use]
            pub fn offline(mut self, offline: Offline) -> Self {
                self.joins.offline = Some(offline);
                self
            }

            /// How many processes the group has, for one that starts where it cannot reach the others.
            /// Without it that one waits.
            #[must_use]
            pub fn members(mut self, members: u32) -> Self {
                self.joins.members = Some(members);
                self
            }
        }
    };
}
pub(crate) use joins;

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
        let (joins, way) = match by.into() {
            #[cfg(feature = "redis")]
            By::Redis(Redis { client, joins }) => {
                let way = redis::Way::new(client, &joins.name, id);
                (joins, Way::Redis(way))
            }
            #[cfg(all(feature = "local", unix))]
            By::Local(Local { folder, joins }) => {
                let way = local::Way::new(&joins.name, folder, id);
                (joins, Way::Local(Box::new(way)))
            }
        };
        let span = |duration: Duration| Span::from_millis(duration.as_secs_f64() * 1000.0);
        let settings = Settings {
            lease: span(LEASE),
            offline: joins.offline,
            patience: span(PATIENCE),
            members: joins.members,
            prompt: false,
            keep_every: Span::ZERO,
            snapshot: None,
        };
        let options = value_of(options, "options")?;
        let group = Group::new(id, options, settings, random.hash_one(3), way)?;
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

/// How this process speaks to the others.
pub(crate) enum Way {
    #[cfg(feature = "redis")]
    Redis(redis::Way),
    #[cfg(all(feature = "local", unix))]
    Local(Box<local::Way>),
}

impl Way {
    /// Does what the machine wants done.
    pub async fn say(&mut self, says: Vec<Effect>, tell: &UnboundedSender<Heard>) {
        match self {
            #[cfg(feature = "redis")]
            Self::Redis(way) => way.say(says, tell),
            #[cfg(all(feature = "local", unix))]
            Self::Local(way) => way.say(says, tell).await,
        }
    }

    /// What the machine is to know of what happened.
    pub fn hear(&mut self, heard: Heard, tell: &UnboundedSender<Heard>) -> Option<Heard> {
        match self {
            #[cfg(feature = "redis")]
            Self::Redis(way) => way.hear(heard, tell),
            #[cfg(all(feature = "local", unix))]
            Self::Local(way) => way.hear(heard, tell),
        }
    }

    /// What is on its way arrives, or is late.
    pub async fn close(self) {
        match self {
            #[cfg(feature = "redis")]
            Self::Redis(way) => way.close().await,
            #[cfg(all(feature = "local", unix))]
            Self::Local(way) => way.close().await,
        }
    }
}

/// What happened outside.
#[derive(Debug)]
pub(crate) enum Heard {
    Time,
    Opened,
    Frame(Vec<u8>),
    Elected {
        op: Op,
        epoch: Epoch,
        stored: Option<(Vec<u8>, Span)>,
        is_first: bool,
    },
    Refused(Op),
    Renewed(Op),
    Released(Op),
    Failed(Op, Why),
    Fenced(Epoch),
    Unheard(MemberId, Epoch),
    Vacant {
        has_ended: bool,
    },
    #[cfg(all(feature = "local", unix))]
    Gone(MemberId),
    /// The connection that hears Redis broke: the machine notices the silence.
    #[cfg(feature = "redis")]
    Ended,
    /// Of a socket: what it means, the way knows.
    #[cfg(all(feature = "local", unix))]
    Socket(local::Happened),
}

#[derive(Debug)]
pub(crate) enum Why {
    #[cfg(feature = "redis")]
    Late,
    Broken(String),
    Denied(String),
}

impl Heard {
    pub fn as_input(&self) -> Input<'_> {
        match self {
            Self::Time => Input::Timeout,
            Self::Opened => Input::Opened,
            Self::Frame(bytes) => Input::Received(bytes),
            Self::Elected { op, epoch, stored, is_first } => {
                let stored = stored.as_ref().map(|(bytes, age)| (bytes.as_slice(), *age));
                Input::Elected { op: *op, epoch: *epoch, stored, first: *is_first }
            }
            Self::Refused(op) => Input::Refused { op: *op },
            Self::Renewed(op) => Input::Renewed { op: *op },
            Self::Released(op) => Input::Released { op: *op },
            Self::Failed(op, why) => {
                let cause = match why {
                    #[cfg(feature = "redis")]
                    Why::Late => Cause::Timeout,
                    Why::Broken(why) => Cause::Broken(why),
                    Why::Denied(why) => Cause::Denied(why),
                };
                Input::Failed { op: *op, cause }
            }
            Self::Fenced(epoch) => Input::Fenced { epoch: *epoch },
            Self::Unheard(to, epoch) => Input::Unheard { to: *to, epoch: *epoch },
            Self::Vacant { has_ended } => Input::Vacant { ended: *has_ended },
            #[cfg(all(feature = "local", unix))]
            Self::Gone(member) => Input::Gone(*member),
            #[cfg(feature = "redis")]
            Self::Ended => Input::Timeout,
            #[cfg(all(feature = "local", unix))]
            Self::Socket(_) => Input::Timeout,
        }
    }
}
