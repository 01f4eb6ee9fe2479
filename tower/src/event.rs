//! The common settings of both ways between processes, and their events.

use std::time::Duration;

use autothrottle::Span;
use autothrottle_shared::{Cause, Epoch, Input, MemberId, Offline, Op};
#[cfg(all(feature = "local", unix))]
use tokio::net::UnixStream;

pub(crate) const LEASE: Duration = Duration::from_millis(1500);

/// The common settings of both kinds.
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
            /// The rule for this process after five seconds without the others. By default it goes on with
            /// its part of each limit ([`Offline::Divide`]), and requests with a strict quota wait.
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

/// An event outside.
#[derive(Debug)]
pub(crate) enum Event {
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
    Failed(Op, FailureCause),
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
    /// Of a connection of `local`, by its number: what it means, the way knows.
    #[cfg(all(feature = "local", unix))]
    Socket(SocketEvent),
}

/// An event of a connection, with its number.
#[cfg(all(feature = "local", unix))]
#[derive(Debug)]
pub(crate) enum SocketEvent {
    Connected(UnixStream),
    Received(u64, Vec<u8>),
    Closed(u64),
}

#[derive(Debug)]
pub(crate) enum FailureCause {
    #[cfg(feature = "redis")]
    Timeout,
    Broken(String),
    Denied(String),
}

impl Event {
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
                    FailureCause::Timeout => Cause::Timeout,
                    FailureCause::Broken(why) => Cause::Broken(why),
                    FailureCause::Denied(why) => Cause::Denied(why),
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
