//! Why a request gets no permit.

use std::fmt;

use autothrottle::SubmitError;

/// Why a request gets no permit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The URL has no host, so there is no scope to count the request in. Give the request a
    /// [`Target`](crate::Target), or a URI with a host.
    NoHost {
        /// The URI that was found.
        uri: String,
    },
    /// `maxWaiting` requests wait already.
    QueueFull,
    /// The request costs more than a scope's whole quota, or its rate's burst: it could never leave.
    CostExceedsQuota {
        /// The scope's name.
        scope: String,
        /// The setting: `defaults.quota`.
        path: String,
    },
    /// No answer has come from a scope for `downAfter`, and another request looks whether it is back.
    ScopeDown {
        /// The scope's name.
        scope: String,
    },
    /// robots.txt does not allow the URL, or could not be had. Feature `robots`.
    Disallowed {
        /// The URL of the request.
        url: String,
        /// The file could not be had: it is asked for again after a minute.
        is_temporary: bool,
    },
    /// The request has no scope of that name.
    NoScope {
        /// Its name.
        scope: String,
    },
    /// A cost, a priority or a delay that is no finite number in its range.
    NotANumber,
    /// The request has to wait, and there is no runtime of tokio, or one without a timer (`enable_time`):
    /// no timer would wake it.
    NoRuntime,
    /// The group does not take the request, or this process has left it. Feature `redis`.
    Invalid {
        /// Why.
        why: String,
    },
    /// The connection to the group is broken, and `offline` says to fail. Feature `redis`.
    Offline {
        /// Why.
        why: String,
    },
    /// The connection to the group can never work: Redis does not allow it. Feature `redis`.
    Denied {
        /// The message of Redis.
        why: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHost { uri } => write!(formatter, "want a URL with a host; got {uri:?}"),
            Self::CostExceedsQuota { scope, path } => {
                write!(formatter, "the request costs more than {path} allows in the scope {scope:?}")
            }
            Self::ScopeDown { scope } => write!(formatter, "no answer has come from {scope:?} for downAfter"),
            Self::Disallowed { url, is_temporary: true } => {
                write!(formatter, "the robots.txt for {url} could not be had")
            }
            Self::Disallowed { url, .. } => write!(formatter, "robots.txt does not allow {url}"),
            Self::NoScope { scope } => write!(formatter, "the request has no scope {scope:?}"),
            Self::QueueFull => SubmitError::QueueFull.fmt(formatter),
            Self::NotANumber => SubmitError::NotANumber.fmt(formatter),
            Self::NoRuntime => {
                formatter.write_str("the request has to wait, and no runtime of tokio with a timer runs here")
            }
            Self::Invalid { why } => write!(formatter, "the group does not take the request: {why}"),
            Self::Offline { why } => write!(formatter, "the connection to the group is broken: {why}"),
            Self::Denied { why } => write!(formatter, "the connection to the group cannot work: {why}"),
        }
    }
}

impl std::error::Error for Error {}
