//! The order of events: clients are asked, requests travel, servers answer, up to an instant.
//!
//! A world that advances in small steps draws the same chances in the same order as one that advances at
//! once. Both results are therefore equal to the last bit.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::{Client, Departure, Extent, Network, Next, server::Server};
use crate::{
    error::{ConfigError, Problems},
    feedback::{Answer, Failure},
    observe::Notice,
    rng::Rng,
    time::{Instant, Span},
    value::{number_text, text, whole_text},
};

/// A server in its place, and those that stood there before it.
pub struct Place {
    /// The scope of its requests.
    pub name: String,
    server: Box<dyn Server>,
    /// How late it looks at requests, at most.
    jitter: Span,
    /// Until when each stood there.
    past: Vec<(Instant, Box<dyn Server>)>,
}

impl Place {
    /// A server that has always stood there.
    pub fn new(name: &str, server: Box<dyn Server>, jitter: Span) -> Self {
        Self { name: name.into(), server, jitter, past: Vec::new() }
    }

    /// From `at` on it is another one, untouched.
    pub fn replace(&mut self, at: Instant, server: Box<dyn Server>, jitter: Span) {
        self.jitter = jitter;
        self.past.push((at, core::mem::replace(&mut self.server, server)));
    }

    /// Requests per second that it bears, or bore.
    pub fn limit(&self, at: Instant) -> f64 {
        let then = self.past.partition_point(|(until, _)| *until <= at);
        self.past.get(then).map_or(&self.server, |(_, server)| server).limit(at)
    }

    /// When its limit last became another.
    pub fn last_step(&self) -> Option<Instant> {
        self.server.last_step().max(self.past.last().map(|(until, _)| *until))
    }
}

/// One request's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The client that sent it.
    pub client: u32,
    /// Where it went.
    pub server: u32,
    /// Its route there, by its place; 0 where the server knows none.
    pub route: u32,
    /// When it left.
    pub sent: Instant,
    /// When the server saw it.
    pub arrived: Option<Instant>,
    /// When the client knew.
    pub answered: Option<Instant>,
    /// 0: the client gave up, or the server closed the connection.
    pub status: u16,
    /// It failed by chance: at another pace it would have failed as well.
    pub is_chance: bool,
    /// The limit refused it.
    pub is_refused: bool,
}

impl Exchange {
    fn sent(client: u32, server: u32, route: u32, sent: Instant) -> Self {
        Self {
            client,
            server,
            route,
            sent,
            arrived: None,
            answered: None,
            status: 0,
            is_chance: false,
            is_refused: false,
        }
    }

    /// Whether the server served it.
    pub fn is_served(&self) -> bool {
        (200..400).contains(&self.status)
    }
}

/// All requests, in the order in which they were sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// One a request.
    pub exchanges: Vec<Exchange>,
    /// How many clients there were.
    pub clients: u32,
    /// How long it went on.
    pub duration: Span,
}

/// Something that will happen. Ordered by time, then by when it was known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrival { index: usize },
    Answer { index: usize, status: u16, headers: String },
}

/// Something that happened, for people. `index` is the exchange's.
#[derive(Clone, Debug, PartialEq)]
pub enum Happening {
    /// A request left.
    Sent {
        /// Which.
        index: usize,
        /// The reason why it waited, its cost and its target.
        departure: Departure,
    },
    /// A server saw it.
    Arrived {
        /// Which.
        index: usize,
    },
    /// Its client knows.
    Answered {
        /// Which.
        index: usize,
        /// `name: value` lines.
        headers: String,
    },
    /// An engine tells what an answer changed.
    Noticed {
        /// The client.
        client: usize,
        /// The notice.
        notice: Notice,
    },
}

/// Clients, servers, and what is under way between them.
pub struct World<C> {
    clients: Vec<C>,
    places: Vec<Place>,
    network: Network,
    extent: Extent,
    rng: Rng,
    /// When something last happened.
    now: Instant,
    /// How far it was advanced.
    until: Instant,
    known: u64,
    events: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    exchanges: Vec<Exchange>,
    tickets: Vec<u64>,
    wakes: Vec<Option<Instant>>,
    happenings: Option<Vec<(Instant, Happening)>>,
}

impl<C: Client> World<C> {
    /// Before the first request.
    pub fn new(clients: Vec<C>, places: Vec<Place>, network: Network, extent: Extent) -> Self {
        let start = Instant::default();
        Self {
            wakes: vec![Some(start); clients.len()],
            clients,
            places,
            network,
            extent,
            rng: Rng::new(extent.seed),
            now: start,
            until: start,
            known: 0,
            events: BinaryHeap::new(),
            exchanges: Vec::new(),
            tickets: Vec::new(),
            happenings: None,
        }
    }

    /// From now on [`World::take_happenings`] gives something.
    pub fn watch(&mut self) {
        self.happenings = Some(Vec::new());
    }

    /// The events since the last call, in order.
    pub fn take_happenings(&mut self) -> Vec<(Instant, Happening)> {
        self.happenings.as_mut().map(core::mem::take).unwrap_or_default()
    }

    /// Lets time pass up to `until`, which itself is not part of it. An error if that takes more requests
    /// than are remembered. Without jitter and with equal latencies everything keeps its order.
    pub fn advance(&mut self, until: Instant) -> Result<(), ConfigError> {
        while self.now < until {
            self.ask()?;
            let event = self.events.peek().map(|Reverse((at, ..))| *at);
            let Some(next) = self.wakes.iter().flatten().copied().chain(event).min().filter(|&at| at < until)
            else {
                break;
            };
            self.now = next.max(self.now);
            while self.events.peek().is_some_and(|Reverse((at, ..))| *at <= self.now) {
                let Some(Reverse((_, _, event))) = self.events.pop() else { break };
                match event {
                    Event::Arrival { index } => self.arrive(index),
                    Event::Answer { index, status, headers } => self.answer(index, status, headers),
                }
            }
        }
        self.until = self.until.max(until);
        Ok(())
    }

    /// Up to when it was advanced.
    pub fn until(&self) -> Instant {
        self.until
    }

    /// The clients.
    pub fn clients(&self) -> &[C] {
        &self.clients
    }

    /// Where it is sent to.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// All requests so far, in the order in which they were sent.
    pub fn exchanges(&self) -> &[Exchange] {
        &self.exchanges
    }

    /// Changes clients at the instant up to which it was advanced; they are asked anew then.
    pub fn change<E>(&mut self, with: impl Fn(&mut C, Instant) -> Result<(), E>) -> Result<(), E> {
        for client in &mut self.clients {
            with(client, self.until)?;
        }
        self.now = self.until;
        self.wakes.fill(Some(self.now));
        Ok(())
    }

    /// From now on a server is another one.
    pub fn change_place(&mut self, index: usize, server: Box<dyn Server>, jitter: Span) {
        let at = self.until;
        self.places[index].replace(at, server, jitter);
    }

    /// From now on requests travel in another way; what is under way is not affected.
    pub fn change_network(&mut self, network: Network) {
        self.network = network;
    }

    /// All requests.
    pub fn into_trace(self) -> Trace {
        let duration = self.until.since(Instant::default());
        Trace { exchanges: self.exchanges, clients: self.clients.len() as u32, duration }
    }

    /// Asks the clients whose time has come.
    fn ask(&mut self) -> Result<(), ConfigError> {
        for who in 0..self.clients.len() {
            if self.wakes[who].is_none_or(|at| at > self.now) {
                continue;
            }
            self.wakes[who] = loop {
                match self.clients[who].next(self.now) {
                    Next::Send(_) if self.exchanges.len() >= self.extent.requests => {
                        return Err(self.too_many());
                    }
                    Next::Send(ticket) => self.send(who, ticket),
                    Next::At(at) => {
                        let late = self.stray(self.network.timer_jitter);
                        break Some(at + self.network.timer_lag + late);
                    }
                    Next::Never => break None,
                }
            };
            self.record_notices(who);
        }
        Ok(())
    }

    fn send(&mut self, who: usize, ticket: u64) {
        let (now, network) = (self.now, self.network);
        let index = self.exchanges.len();
        let departure = self.clients[who].departure(ticket);
        let place = departure.server;
        self.exchanges.push(Exchange::sent(who as u32, place as u32, departure.route, now));
        self.tickets.push(ticket);
        let is_slow = network.slow > 0.0 && self.rng.draw().unit() < network.slow;
        let lost = if is_slow { network.slow_by } else { Span::ZERO };
        let at = now + self.half() + lost + self.stray(network.jitter);
        let at = at + self.stray(self.places[place].jitter);
        self.known += 1;
        self.events.push(Reverse((at, self.known, Event::Arrival { index })));
        self.note(|| Happening::Sent { index, departure });
    }

    fn arrive(&mut self, index: usize) {
        let now = self.now;
        let place = self.exchanges[index].server as usize;
        let server = &mut self.places[place].server;
        server.choose(self.exchanges[index].route);
        let reply = server.arrive(now, &mut self.rng);
        let back = now + reply.service + self.half() + self.stray(self.network.jitter);
        let exchange = &mut self.exchanges[index];
        exchange.arrived = Some(now);
        exchange.status = reply.status;
        exchange.is_chance = reply.is_chance;
        exchange.is_refused = reply.is_refused;
        let given_up = exchange.sent + self.network.timeout;
        let (at, status) = if back > given_up { (given_up, 0) } else { (back, reply.status) };
        self.known += 1;
        let answer = Event::Answer { index, status, headers: reply.headers };
        self.events.push(Reverse((at.max(now), self.known, answer)));
        self.note(|| Happening::Arrived { index });
    }

    fn answer(&mut self, index: usize, status: u16, headers: String) {
        let exchange = &mut self.exchanges[index];
        exchange.answered = Some(self.now);
        exchange.status = status;
        let (who, sent) = (exchange.client as usize, exchange.sent);
        let answer = match status {
            0 if self.now < sent + self.network.timeout => Answer::Failed(Failure::Connection),
            0 => Answer::Failed(Failure::Timeout),
            status => Answer::Response { status },
        };
        self.clients[who].answered(self.now, self.tickets[index], sent, answer, &headers);
        self.wakes[who] = Some(self.now);
        self.note(|| Happening::Answered { index, headers });
        self.record_notices(who);
    }

    fn half(&self) -> Span {
        Span::from_micros(self.network.latency.micros() / 2)
    }

    fn stray(&mut self, most: Span) -> Span {
        match most {
            Span::ZERO => Span::ZERO,
            most => most.times(self.rng.draw().unit()),
        }
    }

    fn note(&mut self, what: impl FnOnce() -> Happening) {
        if let Some(happenings) = &mut self.happenings {
            happenings.push((self.now, what()));
        }
    }

    fn record_notices(&mut self, client: usize) {
        if let Some(happenings) = &mut self.happenings {
            let notices = self.clients[client].take_notices();
            happenings
                .extend(notices.into_iter().map(|notice| (self.now, Happening::Noticed { client, notice })));
        }
    }

    fn too_many(&self) -> ConfigError {
        let mut problems = Problems::default();
        let most = self.extent.requests;
        let most = whole_text(most as u64);
        let want =
            text(&["a time in which no more than ", &most, " requests are sent, all clients together"]);
        problems.add("duration", want, number_text(self.extent.duration.millis()));
        ConfigError { problems: problems.0 }
    }
}
