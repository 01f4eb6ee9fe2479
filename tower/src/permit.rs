//! A request asks, waits for its permit, leaves, and is settled.

use std::{panic, time::Duration};

use autothrottle::{Cost, Instant as EngineInstant, Ticket};
use tokio::{
    runtime::Handle,
    sync::oneshot,
    time::{Instant, sleep},
};

use crate::{
    Answer, Error, Outcome, Target,
    host::Entered,
    throttle::{Granted, Throttle, Waits},
};

impl Throttle {
    /// Waits until a request to `target` may leave: a URL, or a [`Target`].
    ///
    /// Dropping the future gives its place in the queue back.
    ///
    /// ```
    /// # use autothrottle_tower::{Options, Outcome, Throttle};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let throttle = Throttle::new(Options::default())?;
    /// let permit = throttle.acquire("https://api.example/items").await?;
    /// let status = 200; // of the request that a client of yours sends here
    /// permit.settle(&Outcome::Response { status, headers: None });
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Where the request can never leave: see [`Error`]. One that has to wait outside of a runtime of tokio is
    /// refused ([`Error::NoRuntime`]), for no timer would wake it.
    pub async fn acquire<T: TryInto<Target>>(&self, target: T) -> Result<Permit, Error>
    where
        Error: From<T::Error>,
    {
        let target = target.try_into()?;
        let mut waiting = match self.enter(&target)? {
            Asked::Sent(ticket, sent) => return Ok(Permit::new(self.clone(), ticket, sent, target)),
            Asked::Waits(waiting) => waiting,
        };
        let since = Instant::now();
        // The sender is dropped only with its throttle, which `self` keeps.
        let granted = (&mut waiting.granted).await.expect("a throttle that is alive answers");
        let ticket = waiting.take();
        let granted = granted?;
        let sent = self.with(|host, now| {
            // A busy runtime polls late: the next request waits its delay from now.
            if now.since(granted).micros() >= 1000 {
                host.sent_at(now, ticket);
            }
            now
        });
        tracing::debug!(scope = target.first(), waited_ms = since.elapsed().as_millis() as u64, "leaves");
        Ok(Permit::new(self.clone(), ticket, sent, target))
    }

    /// Waits until a request to `target` may leave, runs `work`, hears what it gives, and gives it back.
    ///
    /// ```
    /// # use autothrottle_tower::{Options, Throttle};
    /// # async fn send() -> Result<http::Response<&'static str>, std::io::Error> { Ok(http::Response::new("ok")) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let throttle = Throttle::new(Options { rate: Some(5.into()), ..Options::default() })?;
    /// let response = throttle.run("https://api.example/items", send).await??;
    /// assert_eq!(response.into_body(), "ok");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The outer error says that the request can never leave: `work` did not run.
    pub async fn run<T, F, A>(&self, target: T, work: F) -> Result<A, Error>
    where
        T: TryInto<Target>,
        Error: From<T::Error>,
        F: AsyncFnOnce() -> A,
        A: Answer,
    {
        let permit = self.acquire(target).await?;
        let answer = work().await;
        permit.settle(&answer);
        Ok(answer)
    }

    fn enter(&self, target: &Target) -> Result<Asked, Error> {
        let shared = &self.0;
        shared.change(|state, now| {
            let ticket = match state.host.enter(now, target)? {
                Entered::Sent(ticket) => return Ok(Asked::Sent(ticket, now)),
                Entered::Waits(ticket) => ticket,
            };
            if !has_timer() {
                state.host.cancel(now, ticket);
                return Err(Error::NoRuntime);
            }
            let (reply, granted) = oneshot::channel();
            state.waiting.insert(ticket, Waits { reply, target: target.clone() });
            Ok(Asked::Waits(Waiting { throttle: self.clone(), ticket: Some(ticket), granted }))
        })
    }
}

/// Whether a task of this runtime could wait for a time. Only a panic of tokio's says that it has no timer.
fn has_timer() -> bool {
    Handle::try_current().is_ok() && panic::catch_unwind(|| drop(sleep(Duration::ZERO))).is_ok()
}

/// The result for a request that asked.
enum Asked {
    Sent(Ticket, EngineInstant),
    Waits(Waiting),
}

/// A request that waits. Dropped, it gives its place back, or its permit where that was on its way.
struct Waiting {
    throttle: Throttle,
    ticket: Option<Ticket>,
    granted: oneshot::Receiver<Granted>,
}

impl Waiting {
    fn take(&mut self) -> Ticket {
        self.ticket.take().expect("it is taken once")
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.throttle.0.change(|state, now| {
                state.waiting.remove(&ticket);
                state.host.cancel(now, ticket);
            });
        }
    }
}

/// The request may leave now. It holds its slots until it is settled or dropped.
///
/// ```
/// # use autothrottle_tower::{Options, Outcome, Target, Throttle};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let throttle = Throttle::new(Options { concurrency: Some(4), ..Options::default() })?;
/// let permit = throttle.acquire(Target::scope("requests").and("tokens", 800.0)).await?;
/// let mut charge = permit.settle(&Outcome::Response { status: 200, headers: None });
/// charge.adjust("tokens", 650.0)?; // as the end of the answer says
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a permit that is dropped gives its slot back at once"]
pub struct Permit {
    ticket: Ticket,
    /// Until it is settled.
    charge: Option<Charge>,
}

/// The charge of a request that was settled, in each of its scopes. Keep it where the true cost is known
/// later: tokens, of which the last part of an answer tells.
#[derive(Debug)]
pub struct Charge {
    throttle: Throttle,
    sent: EngineInstant,
    target: Target,
}

impl Permit {
    pub(crate) fn new(throttle: Throttle, ticket: Ticket, sent: EngineInstant, target: Target) -> Self {
        Self { ticket, charge: Some(Charge { throttle, sent, target }) }
    }

    /// When the request was allowed to leave.
    pub fn sent_at(&self) -> Instant {
        let Charge { throttle, sent, .. } = self.charge.as_ref().expect("it is not settled yet");
        throttle.0.instant(*sent)
    }

    /// Tells the throttle how the request ended: a response, an error, or [`Outcome`]. The charge that it
    /// gives corrects the cost.
    pub fn settle(mut self, answer: &impl Answer) -> Charge {
        self.end(answer.outcome()).expect("it is settled once")
    }

    fn end(&mut self, outcome: Outcome<'_>) -> Option<Charge> {
        let charge = self.charge.take()?;
        charge.throttle.with(|host, now| {
            let latency_ms = now.since(charge.sent).millis();
            host.settle(now, self.ticket, outcome, latency_ms, &charge.target);
        });
        Some(charge)
    }
}

/// It gives the slot back and changes no pace.
impl Drop for Permit {
    fn drop(&mut self) {
        self.end(Outcome::Nothing);
    }
}

impl Charge {
    /// Corrects what the request costs in a scope, as often as more is known. Requests that come later pay
    /// for a higher cost; what is less comes back.
    ///
    /// # Errors
    ///
    /// [`Error::NotANumber`] for what is no cost, [`Error::NoScope`] for a scope that is not the request's.
    pub fn adjust(&mut self, scope: &str, cost: f64) -> Result<(), Error> {
        Cost::from_units(cost).ok_or(Error::NotANumber)?;
        let charged = self.target.cost_mut(scope).ok_or_else(|| Error::NoScope { scope: scope.into() })?;
        let before = core::mem::replace(charged, cost);
        let sent = self.sent;
        self.throttle.with(|host, now| host.adjust(now, scope, now.since(sent), before, cost));
        Ok(())
    }
}
