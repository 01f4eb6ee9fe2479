//! Sending again, by tower's conventions.

use std::{future::Future, pin::Pin, time::Duration};

use autothrottle::policy::retry::Verdict;
use http::{Request, Response};
use tower::retry::Policy;

use crate::{Answer, BoxError, Outcome, Throttle, answer::failure_of, target::Repeated};

/// A [`Policy`] for tower's `RetryLayer`, above the throttle: an attempt waits for its permit like any request.
///
/// ```
/// # use autothrottle_tower::{BoxError, Options, Retry, RetryOptions, Throttle};
/// # async fn send(_: http::Request<()>) -> Result<http::Response<()>, BoxError> { Ok(http::Response::new(())) }
/// # fn made() -> Result<(), Box<dyn std::error::Error>> {
/// let retry = Some(RetryOptions { limit: 3, ..RetryOptions::default() });
/// let throttle = Throttle::new(Options { rate: Some(5.into()), retry, ..Options::default() })?;
/// let client = tower::ServiceBuilder::new()
///     .retry(Retry::new(&throttle))
///     .layer(throttle)
///     .service_fn(send);
/// # Ok(())
/// # }
/// ```
///
/// A response is sent again if its status is in `retry.statusCodes`: never earlier than the server asked, and
/// only if that is at most `retry.maxRetryAfter`. A connection that failed is sent again. Methods
/// that are not in `retry.methods` are not: by default others than GET, HEAD, PUT, DELETE, OPTIONS and TRACE.
#[derive(Clone, Debug)]
pub struct Retry {
    throttle: Throttle,
    /// How often it is sent again; unknown before its first answer.
    left: Option<u32>,
}

impl Retry {
    /// Sends again as often as `retry.limit` of the throttle's options says; never where they have no `retry`.
    pub fn new(throttle: &Throttle) -> Self {
        Self { throttle: throttle.clone(), left: None }
    }

    /// How long to wait before the request is sent again; `None` if it is over.
    fn wait<R>(&self, answer: &Result<Response<R>, BoxError>) -> Option<Duration> {
        let outcome = match answer {
            // A request that the throttle refused is refused again.
            Err(error) if error.is::<crate::Error>() => return None,
            Err(error) => Outcome::Failed(failure_of(&**error)),
            Ok(response) => response.outcome(),
        };
        match self.throttle.with(|host, _| host.verdict(outcome)) {
            Verdict::Again(span) => Some(Duration::from_micros(span.micros())),
            _ => None,
        }
    }
}

impl<B: Clone, R> Policy<Request<B>, Response<R>, BoxError> for Retry {
    type Future = Pin<Box<dyn Future<Output = ()> + Send>>;

    fn retry(
        &mut self,
        request: &mut Request<B>,
        answer: &mut Result<Response<R>, BoxError>,
    ) -> Option<Self::Future> {
        let retries = || self.throttle.with(|host, _| host.retries(request.method().as_str()));
        let left = self.left.unwrap_or_else(retries).checked_sub(1)?;
        let wait = self.wait(answer)?;
        if answer.is_err() {
            request.extensions_mut().insert(Repeated);
        }
        self.left = Some(left);
        Some(Box::pin(async move {
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
        }))
    }

    fn clone_request(&mut self, request: &Request<B>) -> Option<Request<B>> {
        Some(request.clone())
    }
}
