//! Who sends: the engine with a load, behind a trait that other strategies can stand behind as well.

use crate::{
    config::Config,
    decision::{Decision, ScopeId, Ticket},
    engine::{Engine, Request},
    feedback::{Answer, Feedback, Hint},
    headers::{Context, Hints},
    time::{Instant, Span},
};

/// What a client does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Sends the request that it calls so.
    Send(u64),
    /// Wants to be asked again then.
    At(Instant),
    /// Waits for an answer, or is done.
    Never,
}

/// Something that decides when it sends.
pub trait Client {
    /// Asked until it gives something else than `Send`.
    fn next(&mut self, now: Instant) -> Next;

    /// How the request ended that was sent at `sent`; `headers` are `name: value` lines.
    fn answered(&mut self, now: Instant, request: u64, sent: Instant, answer: Answer, headers: &str);
}

/// What a client has to send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// The gap between two new requests; none keeps a backlog at all times.
    pub gap: Option<Span>,
    /// So many in all.
    pub requests: u64,
}

/// Requests that wait where the load has no gap.
const BACKLOG: u32 = 50;

/// The engine, driven as any driver drives it: submit, poll, settle.
pub struct EngineClient {
    engine: Engine,
    scope: [ScopeId; 1],
    load: Load,
    submitted: u64,
}

impl EngineClient {
    /// One scope, called `server`, with these settings.
    pub fn new(config: Config, load: Load) -> Self {
        let mut engine = Engine::new(config);
        let scope = [engine.scope("server")];
        Self { engine, scope, load, submitted: 0 }
    }

    /// Submits what is due; gives the time of what is not.
    fn fill(&mut self, now: Instant) -> Option<Instant> {
        while self.submitted < self.load.requests {
            match self.load.gap {
                None if self.engine.waiting() >= BACKLOG => return None,
                Some(gap) => {
                    let due =
                        Instant::default() + Span::from_micros(gap.micros().saturating_mul(self.submitted));
                    if due > now {
                        return Some(due);
                    }
                }
                None => {}
            }
            self.engine.submit(now, Request::new(&self.scope)).ok()?;
            self.submitted += 1;
        }
        None
    }
}

impl Client for EngineClient {
    fn next(&mut self, now: Instant) -> Next {
        let due = self.fill(now);
        match self.engine.poll(now) {
            Decision::Send(ticket) => Next::Send(ticket.to_number() as u64),
            Decision::Wait { until, .. } => Next::At(due.map_or(until, |due| due.min(until))),
            Decision::Idle { .. } => due.map_or(Next::Never, Next::At),
        }
    }

    fn answered(&mut self, now: Instant, request: u64, sent: Instant, answer: Answer, headers: &str) {
        let Some(ticket) = Ticket::from_number(request as f64) else { return };
        let hint = match answer {
            Answer::Response { status } if !headers.is_empty() => {
                Hint::of(&Hints::from_lines(headers, Context { status, ..Context::default() }))
            }
            _ => Hint::default(),
        };
        let latency_ms = matches!(answer, Answer::Response { .. }).then(|| now.since(sent).millis());
        self.engine.settle(now, ticket, &Feedback { answer, latency_ms, hint, ..Feedback::IGNORED });
    }
}
