//! A throttle of a group: the machine of `autothrottle-shared` decides, and one task carries what it says.
//!
//! The messages of one turn of the runtime leave as one: the task takes it, and no call does.

use std::collections::VecDeque;

use autothrottle::{Config, ConfigError, Instant, Notice, Span, Stats, Ticket, Value, boundary};
use autothrottle_shared::{Ask, Effect, MemberId, Order, Refusal, Settings, Shared, Status};
use tokio::sync::{mpsc, watch};

use crate::{Error, Target, event::Event, target::Call, transport::Transport};

pub(crate) struct Group {
    machine: Shared,
    pub config: Config,
    /// Requests that will never leave, with the reason for each.
    pub refused: VecDeque<(Ticket, Error)>,
    /// The notices of its engine.
    pub notices: Vec<Notice>,
    /// How this process speaks to the others, until its task has it.
    transport: Option<Transport>,
    /// The last effects of this process.
    last: Option<mpsc::UnboundedSender<Effect>>,
    /// Whether the task has said it.
    left: watch::Sender<bool>,
}

impl Group {
    pub fn new(
        id: MemberId,
        options: Value,
        settings: Settings,
        seed: u64,
        transport: Transport,
    ) -> Result<Self, ConfigError> {
        let config = Config::parse(options.clone())?;
        let machine = Shared::new(id, options, settings, seed)?;
        let (refused, left) = (VecDeque::new(), watch::Sender::new(false));
        Ok(Self {
            machine,
            config,
            refused,
            notices: Vec::new(),
            transport: Some(transport),
            last: None,
            left,
        })
    }

    pub fn enter(&mut self, now: Instant, target: &Target) -> Result<Ticket, Error> {
        let (names, costs): (Vec<&str>, Vec<f64>) = target.scopes().unzip();
        let delay_ms = target.delay.as_secs_f64() * 1000.0;
        let ask = Ask { names: &names, costs: &costs, priority: target.priority, delay_ms };
        self.machine.submit(now, &ask).map(ticket).map_err(error)
    }

    /// The next request that may leave. The task has the timer.
    pub fn poll(&mut self, now: Instant) -> Option<Ticket> {
        self.machine.poll(now).map(ticket)
    }

    pub fn sent_at(&mut self, now: Instant, ticket: Ticket) {
        self.machine.sent_at(now, number(ticket));
    }

    pub fn route(&mut self, now: Instant, ticket: Ticket, (method, uri): &Call, has_fields: bool) {
        if self.machine.wants_route(number(ticket), has_fields) {
            self.machine.route(now, number(ticket), method.as_str(), &uri.to_string());
        }
    }

    pub fn settle(&mut self, now: Instant, ticket: Ticket, outcome: &boundary::Outcome<'_>) {
        self.machine.settle(now, number(ticket), outcome);
    }

    pub fn cancel(&mut self, now: Instant, ticket: Ticket) {
        self.machine.cancel(now, number(ticket));
    }

    pub fn adjust(&mut self, now: Instant, scope: &str, ago: Span, charged: f64, cost: f64) {
        self.order(now, Order::Adjust { name: scope.into(), ago, charged, cost });
    }

    pub fn configure(&mut self, now: Instant, scope: &str, options: Value) -> Result<(), ConfigError> {
        self.machine.order(now, Order::Configure(scope.into(), options))
    }

    #[cfg(feature = "robots")]
    pub fn crawl_delay(&mut self, now: Instant, scope: &str, delay: Option<Span>) -> autothrottle::Robots {
        self.machine.crawl_delay(now, scope, delay)
    }

    pub fn snapshot(&mut self, now: Instant, wall_ms: Option<f64>) -> Value {
        self.machine.snapshot(now, wall_ms.unwrap_or(f64::NAN))
    }

    pub fn stats(&mut self, now: Instant) -> Stats {
        Stats::from(&self.machine.stats(now))
    }

    pub fn status(&self, now: Instant) -> Status {
        self.machine.status(now)
    }

    /// Leaves the group. The receiver gets `true` when the others know.
    pub fn leave(&mut self, now: Instant) -> watch::Receiver<bool> {
        self.machine.close(now);
        // A process that never said anything has no task that would say so.
        self.left.send_if_modified(|left| self.transport.is_some() && !std::mem::replace(left, true));
        self.left.subscribe()
    }

    /// The throttle is gone: what there is to say last is said.
    pub fn bye(&mut self, now: Instant) {
        self.machine.close(now);
        let says = self.turn(now);
        if let Some(last) = &self.last {
            says.into_iter().for_each(|said| _ = last.send(said));
        }
    }

    /// One that is not wrong: only settings can be.
    pub fn order(&mut self, now: Instant, order: Order) {
        let _ = self.machine.order(now, order);
    }

    /// The task's needs, once: the way, and what comes over it last. The first request within a runtime
    /// starts that task.
    pub fn start(&mut self) -> Option<(Transport, mpsc::UnboundedReceiver<Effect>)> {
        self.machine.wake_at()?;
        let (last, receiver) = mpsc::unbounded_channel();
        let transport = self.transport.take()?;
        self.last = Some(last);
        Some((transport, receiver))
    }

    /// One turn of that task: it takes in what others said, and gives what to say, when to come again, and
    /// the channel that says that the last was sent.
    pub fn carried(
        &mut self,
        now: Instant,
        heard: impl Iterator<Item = Event>,
    ) -> (Vec<Effect>, Option<Instant>, watch::Sender<bool>) {
        for input in heard {
            self.machine.handle(now, input.as_input());
        }
        (self.turn(now), self.machine.wake_at(), self.left.clone())
    }

    /// The effects for the others.
    fn turn(&mut self, now: Instant) -> Vec<Effect> {
        let mut says = Vec::new();
        while let Some(effect) = self.machine.poll_effect(now) {
            match effect {
                Effect::Fail { ticket: number, why } => self.refused.push_back((ticket(number), error(why))),
                Effect::Notice(notice) => self.notices.extend(Notice::read(&notice)),
                Effect::Warn(warning) => tracing::warn!(code = warning.code(), "{}", warning.text()),
                Effect::Moved => {
                    let Status { role, epoch, members, .. } = self.machine.status(now);
                    tracing::info!(?role, epoch, members, "the group changed");
                }
                said => says.push(said),
            }
        }
        says
    }
}

/// The group's tickets are whole numbers below 2⁵³, as the engine's.
fn ticket(number: u64) -> Ticket {
    Ticket::from_number(number as f64).expect("a process sends fewer than 2⁵³ requests")
}

fn number(ticket: Ticket) -> u64 {
    ticket.to_number() as u64
}

fn error(why: Refusal) -> Error {
    match why {
        Refusal::Full => Error::QueueFull,
        Refusal::Cost { scope, path } => Error::CostExceedsQuota { scope, path },
        Refusal::Down { scope, .. } => Error::ScopeDown { scope },
        Refusal::Wrong(why) => Error::Invalid { why },
        Refusal::Offline(why) => Error::Offline { why },
        Refusal::Denied(why) => Error::Denied { why },
    }
}
