//! The layer: each request of a service waits for its permit, and the throttle reads each answer.

use std::{
    future::Future,
    mem,
    pin::Pin,
    task::{Context, Poll},
};

use http::{Request, Response, header::HOST};
use tower::{Layer, Service, ServiceExt};

use crate::{Error, Outcome, Target, Throttle, answer::failure_of, target::Repeated};

/// The error of a service below, or [`Error`] where the request could never leave.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A service behind a [`Throttle`].
///
/// ```
/// # use autothrottle_tower::{BoxError, Options, Throttle};
/// # async fn send(_: http::Request<()>) -> Result<http::Response<()>, BoxError> { Ok(http::Response::new(())) }
/// # fn made() -> Result<(), Box<dyn std::error::Error>> {
/// let throttle = Throttle::new(Options { rate: Some(5.into()), ..Options::default() })?;
/// let client = tower::ServiceBuilder::new().layer(throttle).service_fn(send);
/// # Ok(())
/// # }
/// ```
///
/// A request is counted in its host (of its URI, else of its `Host` field), or in the [`Target`] of its
/// extensions. It waits in `call`: `poll_ready` is always ready, for readiness is not by host.
#[derive(Clone, Debug)]
pub struct Throttled<S> {
    inner: S,
    throttle: Throttle,
}

impl<S> Layer<S> for Throttle {
    type Service = Throttled<S>;

    fn layer(&self, inner: S) -> Throttled<S> {
        Throttled { inner, throttle: self.clone() }
    }
}

impl<S, B, R> Service<Request<B>> for Throttled<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    B: Send + 'static,
    R: Send + 'static,
{
    type Response = Response<R>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<R>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let clone = self.inner.clone();
        let inner = mem::replace(&mut self.inner, clone);
        let throttle = self.throttle.clone();
        Box::pin(async move {
            let permit = throttle.acquire(target_of(&request)?).await?;
            let answer = inner.oneshot(request).await.map_err(Into::into);
            match &answer {
                Ok(response) => permit.settle(response),
                Err(error) => permit.settle(&Outcome::Failed(failure_of(&**error))),
            };
            answer
        })
    }
}

/// The target in which a request is counted.
fn target_of<B>(request: &Request<B>) -> Result<Target, Error> {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let target = match (request.extensions().get::<Target>(), host) {
        (Some(target), _) => target.clone(),
        (None, Some(host)) if request.uri().authority().is_none() => {
            Target::of_authority(host, "http").ok_or_else(|| Error::NoHost { uri: host.into() })?
        }
        _ => request.uri().try_into()?,
    };
    let mut target = target.by(request.method(), request.uri().clone());
    target.is_repeat = request.extensions().get::<Repeated>().is_some();
    Ok(target)
}
