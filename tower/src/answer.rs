//! The part of an answer that a throttle reads.

use std::{
    error::Error as StdError,
    io,
    time::{SystemTime, UNIX_EPOCH},
};

use autothrottle::Failure;
use http::HeaderMap;

/// The end of a request, as a throttle reads it.
#[derive(Clone, Copy, Debug)]
pub enum Outcome<'a> {
    /// A response.
    Response {
        /// Its status.
        status: u16,
        /// Its header fields.
        headers: Option<&'a HeaderMap>,
    },
    /// No response came.
    Failed(Failure),
    /// It is no news of the server.
    Nothing,
}

/// A value that says how a request ended. It is what [`Throttle::run`](crate::Throttle::run) wants back from
/// your function.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say how a request ended",
    note = "give back an `http::Response`, a `Result` of one, or an `Outcome`",
    note = "a function that is no request: `throttle.acquire(…)`, then `permit.settle(&Outcome::Nothing)`"
)]
pub trait Answer {
    /// The outcome for the throttle.
    fn outcome(&self) -> Outcome<'_>;
}

impl<B> Answer for http::Response<B> {
    fn outcome(&self) -> Outcome<'_> {
        Outcome::Response { status: self.status().as_u16(), headers: Some(self.headers()) }
    }
}

impl Answer for Outcome<'_> {
    fn outcome(&self) -> Outcome<'_> {
        *self
    }
}

/// An error is a connection that failed, or a timeout where one of its sources says so.
impl<T: Answer, E: StdError + 'static> Answer for Result<T, E> {
    fn outcome(&self) -> Outcome<'_> {
        match self {
            Ok(answer) => answer.outcome(),
            Err(error) => Outcome::Failed(failure_of(error)),
        }
    }
}

/// Whether an error, or what caused it, is a timeout.
pub(crate) fn failure_of(error: &(dyn StdError + 'static)) -> Failure {
    let mut cause = Some(error);
    while let Some(each) = cause {
        let is_io = each.downcast_ref::<io::Error>().is_some_and(|io| io.kind() == io::ErrorKind::TimedOut);
        // tower's `Elapsed` is not nameable without its feature `timeout`: both say the same.
        let is_elapsed = each.is::<tokio::time::error::Elapsed>() || each.to_string() == "request timed out";
        if is_io || is_elapsed {
            return Failure::Timeout;
        }
        cause = each.source();
    }
    Failure::Connection
}

/// Milliseconds since 1970, if this machine knows them.
pub(crate) fn wall_ms() -> Option<f64> {
    SystemTime::now().duration_since(UNIX_EPOCH).ok().map(|wall| wall.as_secs_f64() * 1000.0)
}
