//! The middleware for clients of reqwest.

use autothrottle::Failure;
use http::Extensions;
use reqwest::{Request, Response};
use reqwest_middleware::{Error, Middleware, Next, Result};

use crate::{Answer, Target, Throttle, Told};

impl Answer for Response {
    fn told(&self) -> Told<'_> {
        Told::Response { status: self.status().as_u16(), headers: Some(self.headers()) }
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
        let permit = match extensions.get::<Target>() {
            Some(target) => self.acquire(target).await,
            None => self.acquire(request.url().as_str()).await,
        };
        let permit = permit.map_err(Error::middleware)?;
        let answer = next.run(request, extensions).await;
        match &answer {
            Ok(response) => drop(permit.settle(response)),
            Err(Error::Reqwest(error)) => drop(permit.settle(&told(error))),
            // Another middleware's error is no news of the server.
            Err(Error::Middleware(_)) => drop(permit),
        }
        answer
    }
}

fn told(error: &reqwest::Error) -> Told<'static> {
    if error.is_timeout() {
        Told::Failed(Failure::Timeout)
    } else if error.is_connect() || error.is_request() {
        Told::Failed(Failure::Connection)
    } else {
        Told::Nothing
    }
}
