//! The target in which a request is counted: its scopes, what it costs there, and how urgent it is.

use std::{sync::Arc, time::Duration};

use autothrottle::host;
use http::{Method, Uri};

use crate::Error;

/// The target in which a request is counted. A URL is counted in its host:
///
/// ```
/// use autothrottle_tower::Target;
///
/// let page: Target = "https://api.example:8080/items".try_into()?;
/// assert_eq!(page.scopes().collect::<Vec<_>>(), [("api.example:8080", 1.0)]);
/// let call = Target::scope("requests").and("tokens", 800.0).priority(1.0);
/// # Ok::<(), autothrottle_tower::Error>(())
/// ```
///
/// Where a server has several budgets, as GitHub's `search` and `core`, the method and the URL say from which of
/// them the request spends: the layer knows both, and [`Target::method`] says the first by hand (else `GET`).
///
/// In the extensions of an [`http::Request`], it takes the place of the request's host.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Its scopes. The first is apart, and names are shared: a permit takes no memory for them.
    first: (Arc<str>, f64),
    more: Vec<(Arc<str>, f64)>,
    /// The call, where that is known: its budget is found by it.
    pub(crate) call: Option<Arc<Call>>,
    pub(crate) priority: f64,
    pub(crate) delay: Duration,
    /// Whether an attempt before it had no answer.
    pub(crate) is_repeat: bool,
}

/// In the extensions of a request: an attempt before it had no answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repeated;

/// A method and a URL.
pub(crate) type Call = (Method, Uri);

impl Target {
    /// A scope of this name, at cost 1.
    pub fn scope(name: impl Into<String>) -> Self {
        let (first, more) = ((name.into().into(), 1.0), Vec::new());
        Self { first, more, call: None, priority: 0.0, delay: Duration::ZERO, is_repeat: false }
    }

    /// One more scope, and what the request costs there, in units of its `quota` or `rate`.
    #[must_use]
    pub fn and(mut self, name: impl Into<String>, cost: f64) -> Self {
        self.more.push((name.into().into(), cost));
        self
    }

    /// Higher leaves first. Any finite number; the default is 0.
    #[must_use]
    pub fn priority(self, priority: f64) -> Self {
        Self { priority, ..self }
    }

    /// The request does not leave before so long from now.
    #[must_use]
    pub fn delay(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// The method of the request; `GET` without.
    #[must_use]
    pub fn method(mut self, method: Method) -> Self {
        if let Some(call) = &mut self.call {
            Arc::make_mut(call).0 = method;
        }
        self
    }

    /// Adds the method and the URI, where they are known.
    pub(crate) fn by(self, method: &Method, uri: Uri) -> Self {
        Self { call: Some(Arc::new((method.clone(), uri))), ..self }
    }

    /// The cost in a scope.
    pub(crate) fn cost_mut(&mut self, scope: &str) -> Option<&mut f64> {
        let mut all = core::iter::once(&mut self.first).chain(&mut self.more);
        all.find(|(name, _)| **name == *scope).map(|(_, cost)| cost)
    }

    /// Each scope with its cost.
    pub fn scopes(&self) -> impl Iterator<Item = (&str, f64)> {
        core::iter::once(&self.first).chain(&self.more).map(|(name, cost)| (&**name, *cost))
    }

    /// The first scope's name, for people.
    pub(crate) fn first(&self) -> &str {
        &self.first.0
    }

    /// Its scope with its cost, if it has one alone.
    pub(crate) fn only(&self) -> Option<(&str, f64)> {
        self.more.is_empty().then_some((&*self.first.0, self.first.1))
    }

    /// The host, by the name that all hosts have for it.
    pub(crate) fn of_authority(authority: &str, scheme: &str) -> Option<Self> {
        host::scope_of(&[scheme, "://", authority].concat()).map(Self::scope)
    }
}

impl TryFrom<&Uri> for Target {
    type Error = Error;

    fn try_from(uri: &Uri) -> Result<Self, Error> {
        let scheme = uri.scheme_str().unwrap_or("http");
        let target = uri.authority().and_then(|authority| Self::of_authority(authority.as_str(), scheme));
        let target = target.ok_or_else(|| Error::NoHost { uri: uri.to_string() })?;
        Ok(target.by(&Method::GET, uri.clone()))
    }
}

impl TryFrom<&str> for Target {
    type Error = Error;

    fn try_from(url: &str) -> Result<Self, Error> {
        let no_host = |_| Error::NoHost { uri: url.into() };
        let uri: Uri = url.parse().map_err(no_host)?;
        // `api.example` alone would be read as an authority: a scope is named by `Target::scope`.
        if uri.scheme().is_none() { Err(Error::NoHost { uri: url.into() }) } else { (&uri).try_into() }
    }
}

impl TryFrom<&String> for Target {
    type Error = Error;

    fn try_from(url: &String) -> Result<Self, Error> {
        url.as_str().try_into()
    }
}

impl From<&Target> for Target {
    fn from(target: &Target) -> Self {
        target.clone()
    }
}

impl From<std::convert::Infallible> for Error {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}
