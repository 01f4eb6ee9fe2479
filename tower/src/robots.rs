//! robots.txt: asked once for each host, through the throttle, by RFC 9309 §2.3.1.
//!
//! | answer | what it means |
//! |---|---|
//! | 2xx | what it says, for a day; `Crawl-delay` and `Request-rate` go to the throttle |
//! | 4xx | no rules |
//! | 429, 5xx, no answer, a body that breaks off | the file before, else no URL; asked again after a minute |

use std::{
    collections::BTreeMap,
    fmt,
    future::Future,
    mem,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use autothrottle::{MOST_ROBOTS_BYTES, Span, robots_allow, robots_rules};
use bytes::Buf;
use http::{
    Request, Response, StatusCode, Uri,
    header::{LOCATION, USER_AGENT},
};
use http_body::Body;
use http_body_util::BodyExt;
use tokio::{
    sync::OnceCell,
    time::{Instant, timeout},
};
use tower::{Layer, Service, ServiceExt};
use url::Url;

use crate::{BoxError, Error, Target, Throttle};

/// RFC 9309 §2.4.
const A_DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a host whose file could not be had is left alone.
const A_MINUTE: Duration = Duration::from_secs(60);
/// How long the body of the file may take. The wait for a turn has no limit, nor has the client's own wait.
const TIMEOUT: Duration = Duration::from_secs(60);
/// RFC 9309 §2.3.1.2.
const MOST_REDIRECTS: usize = 5;
/// Hosts whose rules are kept.
const MOST_HOSTS: usize = 10_000;

/// Keeps to the robots.txt of each host: a layer above a [`Throttle`], or a middleware of reqwest before it.
///
/// ```
/// # use autothrottle_tower::{BoxError, Options, Robots, Throttle};
/// # type Body = http_body_util::Empty<&'static [u8]>;
/// # async fn send(_: http::Request<Body>) -> Result<http::Response<Body>, BoxError> {
/// #     Ok(http::Response::new(Body::new()))
/// # }
/// # fn made() -> Result<(), Box<dyn std::error::Error>> {
/// let throttle = Throttle::new(Options::default())?;
/// let client = tower::ServiceBuilder::new()
///     .layer(Robots::new(&throttle, "my-bot/1.0"))
///     .layer(throttle)
///     .service_fn(send);
/// # Ok(())
/// # }
/// ```
///
/// A request that robots.txt does not allow fails with [`Error::Disallowed`] and is not sent. All clones share
/// what they know: each host is asked once a day.
#[derive(Clone)]
pub struct Robots {
    throttle: Throttle,
    user_agent: Arc<str>,
    hosts: Arc<Mutex<BTreeMap<String, Arc<OnceCell<Known>>>>>,
}

/// The robots.txt of a host.
struct Known {
    /// The rules of its file; without one that could be had, no URL is allowed.
    rules: Option<Arc<[u8]>>,
    /// Whether it names a pace: then each request to the host is in the host's scope, too.
    has_pace: bool,
    until: Instant,
}

/// The result of asking for a file.
enum Asked {
    File(Vec<u8>),
    /// Its body broke off.
    Broken,
    Nothing,
}

/// The rules of the file before, and whether it names a pace.
type Before = Option<(Arc<[u8]>, bool)>;

impl Robots {
    /// Keeps to the groups of this `User-Agent`'s products: `my-bot` of `my-bot/1.0 (+https://…)`. The
    /// request for the file carries the whole text.
    pub fn new(throttle: &Throttle, user_agent: &str) -> Self {
        Self { throttle: throttle.clone(), user_agent: user_agent.into(), hosts: Arc::default() }
    }

    /// Asks the host with `send`, unless it is known. Whether its file names a pace.
    async fn admit<F, R>(&self, url: &Url, send: impl Fn(Url) -> F) -> Result<bool, Error>
    where
        F: Future<Output = Result<Response<R>, BoxError>>,
        R: Body,
    {
        if !is_http(url) || url.path() == "/robots.txt" {
            return Ok(false);
        }
        let (host, before) = self.host(url.origin().ascii_serialization());
        let known = host.get_or_init(|| self.ask(url, before, send)).await;
        match &known.rules {
            Some(rules) if robots_allow(rules, url.as_str()) => Ok(known.has_pace),
            found => Err(Error::Disallowed { url: url.to_string(), is_temporary: found.is_none() }),
        }
    }

    /// The robots.txt of a host, now or once it is asked; then also what the file before says.
    fn host(&self, origin: String) -> (Arc<OnceCell<Known>>, Before) {
        let now = Instant::now();
        let is_fresh = |host: &OnceCell<Known>| host.get().is_none_or(|known| known.until > now);
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let known = hosts.get(&origin);
        if let Some(host) = known.filter(|host| is_fresh(host)) {
            return (host.clone(), None);
        }
        let before = known.and_then(|host| {
            let known = host.get()?;
            Some((known.rules.clone()?, known.has_pace))
        });
        if known.is_none() && hosts.len() >= MOST_HOSTS {
            hosts.retain(|_, host| is_fresh(host));
            if hosts.len() >= MOST_HOSTS {
                hosts.pop_first();
            }
        }
        let host = Arc::default();
        hosts.insert(origin, Arc::clone(&host));
        (host, before)
    }

    async fn ask<F, R>(&self, url: &Url, before: Before, send: impl Fn(Url) -> F) -> Known
    where
        F: Future<Output = Result<Response<R>, BoxError>>,
        R: Body,
    {
        // A body that breaks off is asked for again, as a request that fails is.
        let mut left = self.throttle.with(|host, _| host.retries("GET"));
        let found = loop {
            match file(url, &send).await {
                Asked::Broken if left > 0 => left -= 1,
                Asked::File(bytes) => break Some(bytes),
                Asked::Broken | Asked::Nothing => break None,
            }
        };
        let Some(bytes) = found else {
            if before.is_none() {
                tracing::warn!(host = url.host_str(), "robots.txt could not be had: no request to this host");
            }
            let (rules, has_pace) = before.unzip();
            let has_pace = has_pace.unwrap_or_default();
            return Known { rules, has_pace, until: Instant::now() + A_MINUTE };
        };
        let has_pace = self.slow_down(url, &bytes);
        let rules = robots_rules(&bytes, &self.user_agent);
        Known { rules: Some(rules.into()), has_pace, until: Instant::now() + A_DAY }
    }

    /// Tells the throttle what pace the file asks for; whether it does.
    fn slow_down(&self, url: &Url, bytes: &[u8]) -> bool {
        let delay = autothrottle::crawl_delay_ms(bytes, &self.user_agent).map(Span::from_millis);
        let Ok(target) = Target::try_from(url.as_str()) else { return false };
        let host = target.first();
        let outcome = self.throttle.with(|own, now| own.crawl_delay(now, host, delay));
        if outcome == autothrottle::Robots::Overruled {
            tracing::warn!(host, "robots.txt asks for another pace than the options of this host set");
        }
        delay.is_some()
    }

    fn request<B: Default>(&self, url: &Url) -> Result<Request<B>, BoxError> {
        Ok(Request::get(url.as_str()).header(USER_AGENT, &*self.user_agent).body(B::default())?)
    }
}

/// The file of a host, wherever redirects lead.
async fn file<F, R>(url: &Url, send: &impl Fn(Url) -> F) -> Asked
where
    F: Future<Output = Result<Response<R>, BoxError>>,
    R: Body,
{
    let Ok(mut from) = url.join("/robots.txt") else { return Asked::Nothing };
    for hops in 0.. {
        let Ok(response) = send(from.clone()).await else { return Asked::Nothing };
        let place = response.headers().get(LOCATION).and_then(|place| place.to_str().ok());
        let is_redirect = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
        match place.and_then(|place| from.join(place).ok()).filter(is_http) {
            Some(to) if is_redirect && hops < MOST_REDIRECTS => from = to,
            _ if response.status().is_server_error() => break,
            _ if response.status() == StatusCode::TOO_MANY_REQUESTS => break,
            _ if response.status().is_success() => {
                let bytes = timeout(TIMEOUT, beginning(response.into_body())).await;
                return bytes.ok().flatten().map_or(Asked::Broken, Asked::File);
            }
            _ => return Asked::File(Vec::new()),
        }
    }
    Asked::Nothing
}

fn is_http(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

/// A request to a host whose file names a pace is in the host's scope, whatever scopes it has.
fn with_host(extensions: &mut http::Extensions, url: &Url) {
    if let Some(target) = extensions.get_mut::<Target>()
        && let Ok(host) = Target::try_from(url.as_str())
        && target.scopes().all(|(name, _)| name != host.first())
    {
        *target = target.clone().and(host.first(), 1.0);
    }
}

/// As much of a file as RFC 9309 wants read.
async fn beginning(body: impl Body) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut body = Box::pin(body);
    while let Some(frame) = body.frame().await {
        let Ok(mut data) = frame.ok()?.into_data() else { continue };
        let length = data.remaining().min(MOST_ROBOTS_BYTES - bytes.len());
        bytes.extend_from_slice(&data.copy_to_bytes(length));
        if bytes.len() == MOST_ROBOTS_BYTES {
            break;
        }
    }
    Some(bytes)
}

impl<S> Layer<S> for Robots {
    type Service = Allowed<S>;

    fn layer(&self, inner: S) -> Allowed<S> {
        Allowed { inner, robots: self.clone() }
    }
}

/// A service behind [`Robots`].
#[derive(Clone, Debug)]
pub struct Allowed<S> {
    inner: S,
    robots: Robots,
}

impl<S, B, R> Service<Request<B>> for Allowed<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    B: Default + Send + 'static,
    R: Body + Send + 'static,
    R::Data: Send,
    R::Error: Send,
{
    type Response = Response<R>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<R>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let clone = self.inner.clone();
        let inner = mem::replace(&mut self.inner, clone);
        let robots = self.robots.clone();
        Box::pin(async move {
            let url = url_of(request.uri())?;
            let ask = |url: Url| {
                let (inner, request) = (inner.clone(), robots.request(&url));
                async move { inner.oneshot(request?).await.map_err(Into::into) }
            };
            if robots.admit(&url, ask).await? {
                with_host(request.extensions_mut(), &url);
            }
            inner.oneshot(request).await.map_err(Into::into)
        })
    }
}

fn url_of(uri: &Uri) -> Result<Url, Error> {
    Url::parse(&uri.to_string()).map_err(|_| Error::NoHost { uri: uri.to_string() })
}

#[cfg(feature = "reqwest")]
#[async_trait::async_trait]
impl reqwest_middleware::Middleware for Robots {
    async fn handle(
        &self,
        request: reqwest::Request,
        extensions: &mut http::Extensions,
        next: reqwest_middleware::Next<'_>,
    ) -> reqwest_middleware::Result<reqwest::Response> {
        let ask = |url: Url| {
            let next = next.clone();
            async move {
                let request: Request<reqwest::Body> = self.request(&url)?;
                let response = next.run(request.try_into()?, &mut http::Extensions::new()).await?;
                Ok(Response::<reqwest::Body>::from(response))
            }
        };
        if self.admit(request.url(), ask).await.map_err(reqwest_middleware::Error::middleware)? {
            with_host(extensions, request.url());
        }
        next.run(request, extensions).await
    }
}

impl fmt::Debug for Robots {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Robots").field("user_agent", &self.user_agent).finish_non_exhaustive()
    }
}
