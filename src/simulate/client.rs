//! Clients: the engine with a load, behind a trait that other strategies can stand behind as well.

use crate::{
    config::Config,
    decision::{Cause, Decision, Reason, ScopeId, Ticket},
    engine::{Engine, Request},
    error::{ConfigError, SubmitError},
    feedback::{Answer, Feedback, Hint},
    headers::{Context, Hints},
    observe::{Notice, Watch},
    time::{Instant, Span},
    value::Value,
};

/// The next step of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Sends the request that it calls so.
    Send(u64),
    /// Wants to be asked again then.
    At(Instant),
    /// Waits for an answer, or is done.
    Never,
}

/// Facts of a request when it leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Departure {
    /// The server that it goes to, by its place.
    pub server: usize,
    /// The route there, by its place.
    pub route: u32,
    /// Since when it waited, if the client knows.
    pub queued: Option<Instant>,
    /// The reason why the head of the line waited.
    pub reason: Option<Reason>,
    /// The cost in a quota.
    pub cost: f64,
}

impl Default for Departure {
    fn default() -> Self {
        Self { server: 0, route: 0, queued: None, reason: None, cost: 1.0 }
    }
}

/// Something that decides when it sends.
pub trait Client {
    /// Asked until it gives something else than `Send`.
    fn next(&mut self, now: Instant) -> Next;

    /// How the request ended that was sent at `sent`; `headers` are `name: value` lines.
    fn answered(&mut self, now: Instant, request: u64, sent: Instant, answer: Answer, headers: &str);

    /// Where the request goes that it has just sent, and what is known of it.
    fn departure(&self, _request: u64) -> Departure {
        Departure::default()
    }

    /// The notices since the last call.
    fn take_notices(&mut self) -> Vec<Notice> {
        Vec::new()
    }
}

impl<C: Client + ?Sized> Client for Box<C> {
    fn next(&mut self, now: Instant) -> Next {
        (**self).next(now)
    }

    fn answered(&mut self, now: Instant, request: u64, sent: Instant, answer: Answer, headers: &str) {
        (**self).answered(now, request, sent, answer, headers);
    }

    fn departure(&self, request: u64) -> Departure {
        (**self).departure(request)
    }

    fn take_notices(&mut self) -> Vec<Notice> {
        (**self).take_notices()
    }
}

/// The requests that a client has to send.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// The gap between two new requests; none keeps a backlog at all times.
    pub gap: Option<Span>,
    /// This many in all.
    pub requests: u64,
    /// Their costs, in turn; empty: 1 each.
    pub costs: Vec<f64>,
}

/// Requests that wait for each server where the load has no gap.
const BACKLOG: u32 = 50;

/// One server as a client sees it, or one of its routes.
struct Target {
    scope: ScopeId,
    server: usize,
    route: u32,
    /// Its URL, where routes have budgets.
    url: Option<String>,
    name: String,
    waiting: u32,
    /// Why the head of its line waits.
    reason: Option<Reason>,
}

/// The engine, driven as any driver drives it: submit, poll, settle.
pub struct EngineClient {
    engine: Engine,
    targets: Vec<Target>,
    load: Load,
    submitted: u64,
    /// Of each ticket in use, by its index: its number, its target, and what is known of it.
    departures: Vec<(f64, usize, Departure)>,
    is_watched: bool,
    notices: Vec<Notice>,
    next: Option<(Option<Instant>, Cause)>,
}

impl EngineClient {
    /// One scope for each server, with these settings; servers by name, each with its routes if these have
    /// budgets.
    pub fn new<'a>(
        config: Config,
        load: Load,
        servers: impl Iterator<Item = (&'a str, &'a [String])>,
    ) -> Self {
        let mut engine = Engine::new(config);
        let mut targets = Vec::new();
        for (server, (name, routes)) in servers.enumerate() {
            for route in 0..routes.len().max(1) {
                targets.push(Target {
                    scope: engine.scope(name),
                    server,
                    route: route as u32,
                    url: routes.get(route).map(|path| ["https://", name, path].concat()),
                    name: name.into(),
                    waiting: 0,
                    reason: None,
                });
            }
        }
        Self {
            engine,
            targets,
            load,
            submitted: 0,
            departures: Vec::new(),
            is_watched: false,
            notices: Vec::new(),
            next: None,
        }
    }

    /// From now on it knows why requests wait, and tells what answers change.
    pub fn watch(&mut self) {
        self.is_watched = true;
        self.engine.watch(Watch::Changes);
    }

    /// A cost that could never be sent, and the scope whose quota it exceeds.
    pub fn too_costly(mut self) -> Option<(f64, String)> {
        let costs = if self.load.costs.is_empty() { vec![1.0] } else { self.load.costs.clone() };
        for target in &self.targets {
            for &cost in &costs {
                let scopes = [target.scope];
                let request = Request { costs: &[cost], ..Request::new(&scopes) };
                if let Err(SubmitError::CostExceedsQuota { .. }) =
                    self.engine.submit(Instant::default(), request)
                {
                    return Some((cost, target.name.clone()));
                }
            }
        }
        None
    }

    /// Changes settings of the scope of one server, by its place.
    pub fn configure(&mut self, now: Instant, server: usize, partial: Value) -> Result<(), ConfigError> {
        let place = self.targets.iter().position(|target| target.server == server).unwrap_or(0);
        self.engine.configure(now, self.targets[place].scope, partial)
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// After the last `next`: when the next request could leave, if that depends on time alone, and who says
    /// so.
    pub fn waits(&self) -> Option<(Option<Instant>, Cause)> {
        self.next
    }

    /// Submits what is due; gives the time of what is not.
    fn fill(&mut self, now: Instant) -> Option<Instant> {
        if let Some(gap) = self.load.gap {
            while self.submitted < self.load.requests {
                let due = Instant::default() + Span::from_micros(gap.micros().saturating_mul(self.submitted));
                if due > now {
                    return Some(due);
                }
                self.submit(now, (self.submitted % self.targets.len() as u64) as usize)?;
            }
            return None;
        }
        loop {
            let before = self.submitted;
            for target in 0..self.targets.len() {
                if self.targets[target].waiting < BACKLOG && self.submitted < self.load.requests {
                    self.submit(now, target)?;
                }
            }
            if self.submitted == before {
                return None;
            }
        }
    }

    fn submit(&mut self, now: Instant, target: usize) -> Option<()> {
        let costs = &self.load.costs;
        let turn = self.submitted % costs.len().max(1) as u64;
        let cost = costs.get(turn as usize).copied().unwrap_or(1.0);
        let scopes = [self.targets[target].scope];
        let request = Request { costs: &[cost], ..Request::new(&scopes) };
        let ticket = self.engine.submit(now, request).ok()?;
        let index = ticket.0.index as usize;
        if self.departures.len() <= index {
            self.departures.resize(index + 1, (0.0, 0, Departure::default()));
        }
        let &mut Target { server, route, ref mut waiting, .. } = &mut self.targets[target];
        *waiting += 1;
        let departure = Departure { server, route, queued: Some(now), reason: None, cost };
        self.departures[index] = (ticket.to_number(), target, departure);
        self.route(now, index);
        self.submitted += 1;
        Some(())
    }

    /// Names the route of a request, if its server has budgets.
    fn route(&mut self, now: Instant, index: usize) {
        let (number, target, _) = self.departures[index];
        if let (Some(ticket), Some(url)) = (Ticket::from_number(number), &self.targets[target].url) {
            self.engine.route(now, ticket, "GET", url);
        }
    }

    /// Notes why the head of each line waits.
    fn note(&mut self, now: Instant) {
        for target in &mut self.targets {
            let stats = self.engine.scope_stats(now, target.scope);
            target.reason = stats.and_then(|stats| stats.reason);
        }
    }
}

impl Client for EngineClient {
    fn next(&mut self, now: Instant) -> Next {
        let due = self.fill(now);
        let decision = self.engine.poll(now);
        self.next = match decision {
            Decision::Send(ticket) => {
                let (_, target, departure) = &mut self.departures[ticket.0.index as usize];
                let target = &mut self.targets[*target];
                let has_waited = departure.queued.is_some_and(|queued| queued < now);
                departure.reason = target.reason.filter(|_| has_waited);
                target.waiting -= 1;
                return Next::Send(ticket.to_number() as u64);
            }
            Decision::Wait { until, because } => Some((Some(until), because)),
            Decision::Idle { because } => because.map(|because| (None, because)),
        };
        if self.is_watched {
            self.note(now);
        }
        match decision {
            Decision::Wait { until, .. } => Next::At(due.map_or(until, |due| due.min(until))),
            _ => due.map_or(Next::Never, Next::At),
        }
    }

    fn answered(&mut self, now: Instant, request: u64, sent: Instant, answer: Answer, headers: &str) {
        let Some(ticket) = Ticket::from_number(request as f64) else { return };
        let (read, status) = match answer {
            Answer::Response { status } if !headers.is_empty() => {
                (Hints::from_lines(headers, Context { status, ..Context::default() }), status)
            }
            _ => (Hints::default(), 0),
        };
        let latency_ms = matches!(answer, Answer::Response { .. }).then(|| now.since(sent).millis());
        let (names, is_one_of_several) = read.names();
        self.route(now, ticket.0.index as usize);
        let addressed = self.engine.hear(now, ticket, &names, is_one_of_several, status < 400 && status > 0);
        let parts = addressed.as_ref().and_then(|_| read.parts());
        let whole = Hint::of(&read);
        let rest = addressed.as_ref().zip(parts.as_ref());
        let (hint, is_of_one) =
            rest.map_or((whole, false), |(addressed, parts)| addressed.rest(&whole, parts));
        let answer = if is_of_one { Answer::Ignored } else { answer };
        let latency_ms = latency_ms.filter(|_| !is_of_one);
        self.engine.settle(now, ticket, &Feedback { answer, latency_ms, hint, ..Feedback::IGNORED });
        if let Some((addressed, parts)) = addressed.as_ref().zip(parts.as_ref()) {
            self.engine.report_budgets(now, addressed, parts, status >= 400);
        }
        let notices = self.engine.take_notices();
        if notices.iter().any(|notice| matches!(notice, Notice::Budgets(_))) {
            for index in 0..self.departures.len() {
                self.route(now, index);
            }
        }
        if self.is_watched {
            self.notices.extend(notices);
        }
    }

    fn departure(&self, request: u64) -> Departure {
        let ticket = Ticket::from_number(request as f64);
        ticket.map_or_else(Departure::default, |ticket| self.departures[ticket.0.index as usize].2)
    }

    fn take_notices(&mut self) -> Vec<Notice> {
        let mut notices = core::mem::take(&mut self.notices);
        notices.extend(self.engine.take_notices());
        notices
    }
}
