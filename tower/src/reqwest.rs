//! The middleware for clients of reqwest.

use autothrottle::Failure;
use http::Extensions;
use reqwest::{Request, Response};
use reqwest_middleware::{Error, Middleware, Next, Result};

use crate::{Answer, Outcome, Target, Throttle};

impl Answer for Response {
    fn outcome(&self) -> Outcome<'_> {
        Outcome::Response { status: self.status().as_u16(), headers: Some(self.headers()) }
    }
}

/// A [`Target`] in the request's extensions takes the place of its host.
#[async_trait::async_trait]
impl Middleware for Throttle {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let target = match extensions.get::<Target>() {
            Some(target) => target.clone(),
            None => request.url().as_str().try_into().map_err(Error::middleware)?,
        };
        let target = match request.url().as_str().parse() {
            Ok(uri) => target.by(request.method(), uri),
            Err(_) => target,
        };
        let permit = self.acquire(target).await.map_err(Error::middleware)?;
        let answer = next.run(request, extensions).await;
        match &answer {
            Ok(response) => drop(permit.settle(response)),
            Err(Error::Reqwest(error)) => drop(permit.settle(&outcome_of(error))),
            // Another middleware's error is no news of the server.
            Err(Error::Middleware(_)) => drop(permit),
        }
        answer
    }
}

fn outcome_of(error: &reqwest::Error) -> Outcome<'static> {
    if error.is_timeout() {
        Outcome::Failed(Failure::Timeout)
    } else if error.is_connect() || error.is_request() {
        Outcome::Failed(Failure::Connection)
    } else {
        Outcome::Nothing
    }
}
