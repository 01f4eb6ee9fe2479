//! How the processes of a group speak to each other: through Redis, or by a socket of this machine.

use autothrottle_shared::{Effect, MemberId};
use tokio::sync::mpsc::UnboundedSender;

use crate::event::{Event, Joins};
#[cfg(all(feature = "local", unix))]
use crate::local::{self, Local};
#[cfg(feature = "redis")]
use crate::redis::{self, Redis};

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

/// How this process speaks to the others.
pub(crate) enum Transport {
    #[cfg(feature = "redis")]
    Redis(redis::Transport),
    #[cfg(all(feature = "local", unix))]
    Local(Box<local::Transport>),
}

impl Transport {
    /// The way of a process that is called `id`, and what both kinds take.
    pub fn new(by: By, id: MemberId) -> (Self, Joins) {
        match by {
            #[cfg(feature = "redis")]
            By::Redis(Redis { client, joins }) => {
                (Self::Redis(redis::Transport::new(client, &joins.name, id)), joins)
            }
            #[cfg(all(feature = "local", unix))]
            By::Local(Local { folder, joins }) => {
                (Self::Local(Box::new(local::Transport::new(&joins.name, folder, id))), joins)
            }
        }
    }

    /// Does what the machine wants done.
    pub async fn say(&mut self, says: Vec<Effect>, events: &UnboundedSender<Event>) {
        match self {
            #[cfg(feature = "redis")]
            Self::Redis(transport) => transport.say(says, events),
            #[cfg(all(feature = "local", unix))]
            Self::Local(transport) => transport.say(says, events).await,
        }
    }

    /// The event for the machine.
    pub fn hear(&mut self, heard: Event, events: &UnboundedSender<Event>) -> Option<Event> {
        match self {
            #[cfg(feature = "redis")]
            Self::Redis(transport) => transport.hear(heard, events),
            #[cfg(all(feature = "local", unix))]
            Self::Local(transport) => transport.hear(heard, events),
        }
    }

    /// Frames on their way arrive, or are late.
    pub async fn close(self) {
        match self {
            #[cfg(feature = "redis")]
            Self::Redis(transport) => transport.close().await,
            #[cfg(all(feature = "local", unix))]
            Self::Local(transport) => transport.close().await,
        }
    }
}
