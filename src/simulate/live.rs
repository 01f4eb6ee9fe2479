//! A world that is stepped, looked at, and changed while it goes on.
//!
//! Here is only what stands around a [`World`]: what was typed, so that a part of it can be typed anew, and
//! what people see.

use super::{
    EngineClient, Happening, Simulation, Summary, World,
    read::{read_network, read_server},
    server::Server,
};
use crate::{
    error::{ConfigError, Problems},
    rng::Rng,
    time::{Instant, Span},
    value::Value,
};

/// A simulation under way.
pub struct Live {
    world: World<EngineClient>,
    end: Option<Instant>,
    /// As typed, by place.
    servers: Vec<Value>,
    network: Value,
}

impl Live {
    /// Before the first request. Without a `duration` it has no end.
    pub fn new(options: Value) -> Result<Self, ConfigError> {
        let part = |of: &Value, key: &str| match of {
            Value::Map(entries) => {
                entries.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone())
            }
            _ => None,
        };
        let mut servers = vec![part(&options, "server").unwrap_or(Value::Nothing)];
        if let Some(Value::Map(others)) = part(&options, "servers") {
            servers.extend(others.into_iter().map(|(_, server)| server));
        }
        let network = part(&options, "network").unwrap_or(Value::Nothing);
        let simulation = Simulation::parse(options)?;
        let mut world = simulation.world(|index| {
            let mut client = simulation.engine(index);
            client.watch();
            client
        });
        world.watch();
        let end = simulation.has_end.then(|| Instant::default() + simulation.extent().duration);
        Ok(Self { world, end, servers, network })
    }

    /// Lets milliseconds pass, up to the end at most. The events of the last step are forgotten.
    pub fn advance(&mut self, ms: f64) -> Result<(), ConfigError> {
        if !(ms >= 0.0 && ms.is_finite()) {
            return Err(wrong("ms", "milliseconds from 0 on", &Value::Number(ms)));
        }
        self.world.take_happenings();
        let until = self.world.until() + Span::from_millis(ms);
        self.world.advance(self.end.map_or(until, |end| until.min(end)))
    }

    /// Up to when it was advanced, in milliseconds.
    pub fn now(&self) -> f64 {
        self.world.until().millis()
    }

    /// Whether the end is reached.
    pub fn is_done(&self) -> bool {
        self.end.is_some_and(|end| self.world.until() >= end)
    }

    /// Changes settings of a scope, in every client's engine. If they are wrong, the engines are as they
    /// were.
    pub fn configure(&mut self, scope: &str, partial: &Value) -> Result<(), ConfigError> {
        let place = self.place(scope)?;
        self.world.change(|client, now| client.configure(now, place, partial.clone()))
    }

    /// From now on a server is another one, untouched. Fields that are left out stay as they were typed; with
    /// another `model` all of it is typed anew.
    pub fn configure_server(&mut self, scope: &str, partial: Value) -> Result<(), ConfigError> {
        let place = self.place(scope)?;
        let server = merged(&self.servers[place], partial);
        let mut problems = Problems::default();
        let made = read_server((server.clone(), "server".into()), &mut problems);
        let Some(made) = made.filter(|_| problems.0.is_empty()) else {
            return Err(ConfigError { problems: problems.0 });
        };
        self.servers[place] = server;
        self.world.change_place(place, (made.make)(), made.jitter);
        Ok(())
    }

    /// From now on requests travel in another way. Fields that are left out stay as they were typed.
    pub fn configure_network(&mut self, partial: Value) -> Result<(), ConfigError> {
        let network = merged(&self.network, partial);
        let mut problems = Problems::default();
        let read = read_network((network.clone(), "network".into()), &mut problems);
        if !problems.0.is_empty() {
            return Err(ConfigError { problems: problems.0 });
        }
        self.network = network;
        self.world.change_network(read);
        Ok(())
    }

    /// The events of the last step, in order.
    pub fn take_events(&mut self) -> Value {
        let happenings = self.world.take_happenings();
        Value::List(happenings.iter().map(|(at, happening)| self.event(*at, happening)).collect())
    }

    /// The state of one client and of the servers.
    pub fn state(&self, client: usize) -> Value {
        let Some(client) = self.world.clients().get(client) else { return Value::Nothing };
        let now = self.world.until();
        let stats = client.engine().stats(now);
        let scopes = self.world.places().iter().map(|place| {
            let found = stats.scopes.iter().find(|(name, _)| *name == place.name);
            let mut scope = found.map_or_else(|| Value::Map(Vec::new()), |(_, stats)| Value::from(stats));
            if let Value::Map(entries) = &mut scope {
                entries.push(("limit".into(), place.limit(now).into()));
            }
            (place.name.clone(), scope)
        });
        let next = client.waits().map(|(at, because)| {
            let scope = because.scope.and_then(|scope| client.engine().name(scope));
            Value::object(vec![
                ("at", at.map(Instant::millis).into()),
                ("reason", because.reason.name().into()),
                ("scope", scope.into()),
            ])
        });
        Value::object(vec![
            ("now", now.millis().into()),
            ("waiting", stats.waiting.into()),
            ("inFlight", stats.in_flight.into()),
            ("sent", (stats.sent as f64).into()),
            ("settled", (stats.settled as f64).into()),
            ("scopes", Value::Map(scopes.collect())),
            ("next", next.unwrap_or(Value::Nothing)),
        ])
    }

    /// The figures up to now.
    pub fn summary(&self) -> Summary {
        self.world.summary()
    }

    /// The requests so far, and where they went to.
    pub fn world(&self) -> &World<EngineClient> {
        &self.world
    }

    fn place(&self, scope: &str) -> Result<usize, ConfigError> {
        let found = self.world.places().iter().position(|place| place.name == scope);
        found.ok_or_else(|| wrong("scope", "the name of a server", &Value::Text(scope.into())))
    }

    fn event(&self, at: Instant, happening: &Happening) -> Value {
        let exchange = |index: usize| {
            let exchange = &self.world.exchanges()[index];
            let name = &self.world.places()[exchange.server as usize].name;
            (exchange, name.as_str())
        };
        let of = |kind: &str, index: usize, more: Vec<(&str, Value)>| {
            let (exchange, scope) = exchange(index);
            let mut entries = vec![
                ("kind", kind.into()),
                ("at", at.millis().into()),
                ("request", (index as f64).into()),
                ("client", exchange.client.into()),
                ("scope", scope.into()),
            ];
            entries.extend(more);
            Value::object(entries)
        };
        match happening {
            Happening::Sent { index, departure } => of(
                "send",
                *index,
                vec![
                    ("queuedAt", departure.queued.map(Instant::millis).into()),
                    ("reason", departure.reason.map(crate::Reason::name).into()),
                    ("cost", departure.cost.into()),
                ],
            ),
            Happening::Arrived { index } => of("arrive", *index, vec![]),
            Happening::Answered { index, headers } => {
                let (exchange, _) = exchange(*index);
                let latency = at.since(exchange.sent).millis();
                of(
                    "answer",
                    *index,
                    vec![
                        ("status", f64::from(exchange.status).into()),
                        ("latencyMs", latency.into()),
                        ("headers", headers.as_str().into()),
                    ],
                )
            }
            Happening::Noticed { client, notice } => {
                let mut written = Value::from(notice);
                if let Value::Map(entries) = &mut written {
                    entries.push(("at".into(), at.millis().into()));
                    entries.push(("client".into(), (*client as f64).into()));
                }
                written
            }
        }
    }
}

/// One server alone, for a test or a page that has clients of its own.
pub struct PlayedServer {
    server: Box<dyn Server>,
    rng: Rng,
    last: Instant,
}

impl PlayedServer {
    /// A server as a simulation has it.
    pub fn new(description: Value, seed: u64) -> Result<Self, ConfigError> {
        let mut problems = Problems::default();
        let made = read_server((description, String::new()), &mut problems);
        match made.filter(|_| problems.0.is_empty()) {
            Some(made) => Ok(Self { server: (made.make)(), rng: Rng::new(seed), last: Instant::default() }),
            None => Err(ConfigError { problems: problems.0 }),
        }
    }

    /// A request arrives. A clock that goes back stands still.
    pub fn answer(&mut self, now: f64) -> Value {
        self.last = Instant::from_millis(now).unwrap_or(self.last).max(self.last);
        let reply = self.server.arrive(self.last, &mut self.rng);
        Value::object(vec![
            ("status", f64::from(reply.status).into()),
            ("afterMs", reply.service.millis().into()),
            ("headers", reply.headers.into()),
        ])
    }

    /// Requests per second that it bears.
    pub fn limit(&self, now: f64) -> f64 {
        self.server.limit(Instant::from_millis(now).unwrap_or(self.last))
    }
}

/// The typed options, with some of them typed anew.
fn merged(old: &Value, partial: Value) -> Value {
    let (Value::Map(old), Value::Map(new)) = (old, &partial) else { return partial };
    let model =
        |of: &[(String, Value)]| of.iter().find(|(key, _)| key == "model").map(|(_, model)| model.clone());
    if model(new).is_some_and(|new| Some(new) != model(old)) {
        return partial;
    }
    let kept = old.iter().filter(|(key, _)| new.iter().all(|(other, _)| other != key));
    Value::Map(kept.chain(new).cloned().collect())
}

fn wrong(path: &str, want: &str, got: &Value) -> ConfigError {
    let mut problems = Problems::default();
    problems.add(path, want, got.describe());
    ConfigError { problems: problems.0 }
}
