//! Reads a simulation, which can be run: servers, the network, the load.
//!
//! A server is read into something that makes one as often as it is asked.

use super::{
    Client, EngineClient, Extent, Load, Network, Place, Summary, Trace, World,
    options::ROWS,
    server::{
        Adaptive, Allowance, Bucket, Budgets, Change, Concurrency, Counter, Failing, Fields as HeaderFields,
        Fixed, Gcra, Moving, Nginx, Others, Outage, PenaltyBox, Queue, Refusal, Refusing, Replicas, Server,
        Sliding, Telling, Upstream,
    },
};
use crate::{
    config::{
        Config,
        reader::{Fields, Problems},
        table::Section,
    },
    error::ConfigError,
    time::{Instant, Span},
    value::{Value, join, number_text, text},
};

/// Requests in one simulation: each is remembered, some hundred bytes until the end.
const MOST: usize = 4_000_000;

/// A simulation that can be run.
pub struct Simulation {
    servers: Vec<(String, Made)>,
    network: Network,
    load: Load,
    config: Config,
    clients: u32,
    extent: Extent,
    /// Whether the options say how long it goes on.
    pub(super) has_end: bool,
}

impl Simulation {
    /// Reads options. All problems are reported at once.
    pub fn parse(options: Value) -> Result<Self, ConfigError> {
        let mut problems = Problems::default();
        let mut fields = Fields::of_table(ROWS, options, String::new(), Section::Simulation, &mut problems);
        let clients = fields.whole("clients").unwrap_or(1);
        let duration = fields.millis("duration");
        let seed = fields.number("seed").map_or(1, |seed| seed as u64);
        let throttle = fields.take("throttle").map_or(Value::Nothing, |(value, _)| value);
        let part =
            |fields: &mut Fields, key: &str| fields.object(key).unwrap_or((Value::Nothing, key.into()));
        let server = part(&mut fields, "server");
        let others = part(&mut fields, "servers");
        let network = part(&mut fields, "network");
        let load = part(&mut fields, "load");
        fields.finish();
        let network = read_network(network, &mut problems);
        let load = read_load(load, &mut problems);
        let mut servers: Vec<(String, Option<Made>)> =
            vec![("server".into(), read_server(server, &mut problems))];
        servers.extend(read_servers(others, &mut problems));
        let config = Config::parse(throttle).map_err(|error| {
            for problem in error.problems {
                let dot = if problem.path.is_empty() { "" } else { "." };
                problems.add(&text(&["throttle", dot, &problem.path]), problem.want, problem.got);
            }
        });
        let duration_or = duration.unwrap_or(Span::from_micros(60_000_000));
        let servers: Option<Vec<(String, Made)>> =
            servers.into_iter().map(|(name, made)| Some((name, made?))).collect();
        match (servers, config) {
            (Some(servers), Ok(config)) if problems.0.is_empty() => {
                let simulation = Self {
                    servers,
                    network,
                    load,
                    config,
                    clients,
                    extent: Extent { duration: duration_or, requests: MOST, seed },
                    has_end: duration.is_some(),
                };
                simulation.check_costs()?;
                Ok(simulation)
            }
            _ => Err(ConfigError { problems: problems.0 }),
        }
    }

    /// A cost above a whole quota could never be sent.
    fn check_costs(&self) -> Result<(), ConfigError> {
        let Some((cost, scope)) = self.engine(0).too_costly() else { return Ok(()) };
        let mut problems = Problems::default();
        let want = text(&["at most the whole quota of ", &scope]);
        problems.add("load.costs", want, number_text(cost));
        Err(ConfigError { problems: problems.0 })
    }

    /// Another bound of requests than four million.
    #[must_use]
    pub fn at_most(self, requests: usize) -> Self {
        Self { extent: Extent { requests, ..self.extent }, ..self }
    }

    /// The first server as it was described, untouched.
    pub fn server(&self) -> Box<dyn Server> {
        (self.servers[0].1.make)()
    }

    /// How long it goes on, how many requests it remembers, and its seed.
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// Everything before the first request. `client` makes each of the clients; the engine with the given
    /// options is [`Simulation::engine`].
    pub fn world<C: Client>(&self, client: impl Fn(u64) -> C) -> World<C> {
        let clients = (0..u64::from(self.clients)).map(client).collect();
        let place = |(name, made): &(String, Made)| Place::new(name, (made.make)(), made.jitter);
        World::new(clients, self.servers.iter().map(place).collect(), self.network, self.extent)
    }

    /// Runs it with other clients, unless that takes too many requests.
    pub fn run_with(&self, client: impl Fn(u64) -> Box<dyn Client>) -> Result<(Trace, Summary), ConfigError> {
        self.finish(self.world(client))
    }

    /// Runs it.
    pub fn run(&self) -> Result<(Trace, Summary), ConfigError> {
        self.finish(self.world(|index| self.engine(index)))
    }

    fn finish<C: Client>(&self, mut world: World<C>) -> Result<(Trace, Summary), ConfigError> {
        world.advance(Instant::default() + self.extent.duration)?;
        let summary = world.summary();
        Ok((world.into_trace(), summary))
    }

    /// The engine as client number `index`.
    pub fn engine(&self, index: u64) -> EngineClient {
        let mut config = self.config.clone();
        config.seed = Some(config.seed.unwrap_or(self.extent.seed).wrapping_add(index));
        let servers = self.servers.iter().map(|(name, made)| (name.as_str(), &made.routes[..]));
        EngineClient::new(config, self.load.clone(), servers)
    }
}

pub(super) fn read_network((value, path): (Value, String), problems: &mut Problems) -> Network {
    let mut fields = Fields::of_table(ROWS, value, path, Section::Network, problems);
    let network = Network {
        latency: fields.millis("latency").unwrap_or(Span::from_micros(100_000)),
        jitter: fields.millis("jitter").unwrap_or(Span::ZERO),
        slow: fields.number("slow").unwrap_or(0.0),
        slow_by: fields.millis("slowBy").unwrap_or(Span::from_micros(200_000)),
        timer_lag: fields.millis("timerLag").unwrap_or(Span::ZERO),
        timer_jitter: fields.millis("timerJitter").unwrap_or(Span::ZERO),
        timeout: fields.millis("timeout").unwrap_or(Span::from_micros(60_000_000)),
    };
    fields.finish();
    network
}

fn read_load((value, path): (Value, String), problems: &mut Problems) -> Load {
    let mut fields = Fields::of_table(ROWS, value, path, Section::Load, problems);
    let load = Load {
        costs: fields.amounts("costs").unwrap_or_default(),
        gap: fields.number("rate").map(|rate| Span::from_micros((1e6 / rate) as u64)),
        requests: fields.number("requests").map_or(u64::MAX, |requests| requests as u64),
    };
    fields.finish();
    load
}

type Make = Box<dyn Fn() -> Box<dyn Server>>;

/// A description of a server that can be made any number of times.
pub(super) struct Made {
    /// Makes one, untouched.
    pub make: Make,
    /// How late it looks at requests, at most.
    pub jitter: Span,
    /// The paths of routes that have budgets.
    pub routes: Vec<String>,
}

/// Servers by name.
fn read_servers((value, path): (Value, String), problems: &mut Problems) -> Vec<(String, Option<Made>)> {
    match value {
        Value::Nothing => Vec::new(),
        Value::Map(entries) => entries
            .into_iter()
            .map(|(name, value)| {
                let path = join(&path, &name);
                if name == "server" {
                    problems.add(&path, "another name than that of the first server", "the same");
                }
                let made = read_server((value, path), problems);
                (name, made)
            })
            .collect(),
        other => {
            problems.add(&path, "an object", other.describe());
            Vec::new()
        }
    }
}

/// A maker of servers, so that one description can be run many times.
pub(super) fn read_server((mut value, path): (Value, String), problems: &mut Problems) -> Option<Made> {
    if let Value::Map(entries) = &mut value
        && let Some(place) =
            entries.iter().position(|(key, value)| key == "budgets" && *value != Value::Nothing)
    {
        let (key, budgets) = entries.remove(place);
        let budgets = (budgets, join(&path, &key));
        return read_budgets(budgets, core::mem::take(entries), &path, problems);
    }
    let mut fields = Fields::of_table(ROWS, value, path, Section::Server, problems);
    let model = fields.word("model");
    let inside = model.and_then(|model| read_model(model, &mut fields));
    if model.is_none() {
        fields.require("model");
    }
    let ban = fields.millis("ban");
    let failing = fields.number("failing");
    let failing_status = fields.whole("failingStatus").unwrap_or(503) as u16;
    let says = match fields.word("says") {
        Some("retry-after") => HeaderFields::RetryAfter,
        Some("rate-limit") => HeaderFields::RateLimit,
        Some("x-ratelimit") => HeaderFields::XRateLimit,
        _ => HeaderFields::Silent,
    };
    let retry_after = fields.millis("retryAfter");
    let says =
        if says == HeaderFields::Silent && retry_after.is_some() { HeaderFields::RetryAfter } else { says };
    let replicas = fields.whole("replicas").unwrap_or(1);
    let upstream = fields.millis("upstream").unwrap_or(Span::ZERO);
    let spread = fields.number("upstreamSpread").unwrap_or(0.0);
    let jitter = fields.millis("jitter").unwrap_or(Span::ZERO);
    let step = fields.object("step");
    let drift = fields.object("drift");
    let refusal = fields.word("refusal").map(|word| match word {
        "silence" => Refusal::Silence,
        "reset" => Refusal::Reset,
        status => Refusal::Status(status.parse().unwrap_or(429)),
    });
    let adaptive = fields.object("adaptive");
    let allowance = fields.object("allowance");
    let outage = fields.object("outage");
    let others = fields.object("others");
    if model.is_some() {
        fields.finish();
    }
    let mut changes = Vec::new();
    changes.extend(
        step.and_then(|step| read_change(step, Section::Step, "at", problems))
            .map(|(at, factor)| Change::Step { at: Instant::default() + at, factor }),
    );
    changes.extend(
        drift
            .and_then(|drift| read_change(drift, Section::Drift, "period", problems))
            .map(|(period, factor)| Change::Drift { period, factor }),
    );
    let outage = outage.and_then(|outage| read_outage(outage, problems));
    let others = others.and_then(|others| read_others(others, problems));
    let adaptive = adaptive.and_then(|adaptive| read_adaptive(adaptive, problems));
    let allowance = allowance.and_then(|allowance| read_allowance(allowance, problems));
    let inside = inside?;
    let make: Make = Box::new(move || {
        let mut server = match replicas {
            1 => inside(),
            many => Box::new(Replicas::new((0..many).map(|_| inside()).collect())),
        };
        for &change in &changes {
            server = Box::new(Moving::new(server, change));
        }
        if let Some((factor, recovery)) = adaptive {
            server = Box::new(Adaptive::new(server, factor, recovery));
        }
        if let Some((rate, period, share)) = others {
            server = Box::new(Others::new(server, rate, period, share));
        }
        if upstream > Span::ZERO {
            server = Box::new(Upstream::new(server, upstream, spread));
        }
        if let Some((limit, window)) = allowance {
            server = Box::new(Allowance::new(server, limit, window));
        }
        if let Some(ban) = ban {
            server = Box::new(PenaltyBox::new(server, ban));
        }
        if let Some(share) = failing {
            server = Box::new(Failing::new(server, share, failing_status));
        }
        if let Some((at, length)) = outage {
            server = Box::new(Outage::new(server, at, length));
        }
        if let Some(refusal) = refusal {
            server = Box::new(Refusing::new(server, refusal));
        }
        match says {
            HeaderFields::Silent => server,
            says => Box::new(Telling::new(server, says, retry_after)),
        }
    });
    Some(Made { make, jitter, routes: Vec::new() })
}

/// Servers of one budget each, which are as `rest` says.
fn read_budgets(
    (value, path): (Value, String),
    mut rest: Vec<(String, Value)>,
    of: &str,
    problems: &mut Problems,
) -> Option<Made> {
    let names = rest.extract_if(.., |(key, _)| key == "names").next().map(|(_, value)| value);
    let names = match names {
        None | Some(Value::Nothing) => String::new(),
        Some(Value::Text(text)) => text,
        Some(other) => {
            problems.add(&join(of, "names"), "the name of a header field", other.describe());
            return None;
        }
    };
    let entries = match value {
        Value::Map(entries) if !entries.is_empty() => entries,
        other => {
            problems.add(&path, "an object", other.describe());
            return None;
        }
    };
    let (mut inside, mut places, mut routes) = (Vec::new(), Vec::new(), Vec::new());
    for (name, value) in entries {
        let mut fields = Fields::of_table(ROWS, value, join(&path, &name), Section::Budget, problems);
        let limit = fields.number_required("limit");
        let window = fields.number_or_default("window");
        if !fields.has("routes") {
            fields.require("routes");
        }
        let paths = fields.texts("routes");
        fields.finish();
        let own =
            [("limit", limit?.into()), ("window", window.into())].map(|(key, value)| (key.into(), value));
        let server = Value::Map(rest.iter().cloned().chain(own).collect());
        let made = read_server((server, of.into()), problems)?;
        places.resize(places.len() + paths.as_ref()?.len(), inside.len());
        routes.extend(paths?);
        inside.push((name, made));
    }
    let jitter = inside.first()?.1.jitter;
    let make: Make = Box::new(move || {
        let inside = inside.iter().map(|(name, made)| (name.clone(), (made.make)())).collect();
        Box::new(Budgets::new(inside, places.clone(), names.clone()))
    });
    Some(Made { make, jitter, routes })
}

fn read_outage((value, path): (Value, String), problems: &mut Problems) -> Option<(Span, Span)> {
    let mut fields = Fields::of_table(ROWS, value, path, Section::Outage, problems);
    let (at, length) = (fields.number_required("at"), fields.number_required("length"));
    fields.finish();
    at.map(Span::from_millis).zip(length.map(Span::from_millis))
}

fn read_adaptive((value, path): (Value, String), problems: &mut Problems) -> Option<(f64, f64)> {
    let mut fields = Fields::of_table(ROWS, value, path, Section::Adaptive, problems);
    let factor = fields.number_required("factor");
    let recovery = fields.number("recovery").unwrap_or(0.01);
    fields.finish();
    factor.map(|factor| (factor, recovery))
}

fn read_allowance((value, path): (Value, String), problems: &mut Problems) -> Option<(u32, Span)> {
    let mut fields = Fields::of_table(ROWS, value, path, Section::Allowance, problems);
    let limit = fields.number_required("limit");
    let window = fields.millis("window").unwrap_or(Span::from_micros(86_400_000_000));
    fields.finish();
    limit.map(|limit| (limit as u32, window))
}

fn read_others((value, path): (Value, String), problems: &mut Problems) -> Option<(f64, Span, f64)> {
    let mut fields = Fields::of_table(ROWS, value, path, Section::Others, problems);
    let rate = fields.number_required("rate");
    let period = fields.millis("period").unwrap_or(Span::from_micros(60_000_000));
    let share = fields.number("share").unwrap_or(0.5);
    fields.finish();
    rate.map(|rate| (rate, period, share))
}

/// A time by this name, and a factor.
fn read_change(
    (value, path): (Value, String),
    section: Section,
    time: &str,
    problems: &mut Problems,
) -> Option<(Span, f64)> {
    let mut fields = Fields::of_table(ROWS, value, path, section, problems);
    let (time, factor) = (fields.number_required(time), fields.number_required("factor"));
    fields.finish();
    time.map(Span::from_millis).zip(factor)
}

fn read_model(model: &str, fields: &mut Fields) -> Option<Make> {
    match model {
        "fixed-window" | "sliding-window" | "sliding-counter" => {
            let limit = fields.number_required("limit");
            let window = fields.millis("window").unwrap_or(Span::from_micros(60_000_000));
            let limit = limit? as u32;
            match model {
                "fixed-window" => Some(Box::new(move || Box::new(Fixed::new(limit, window)))),
                "sliding-window" => Some(Box::new(move || Box::new(Sliding::new(limit, window)))),
                _ => Some(Box::new(move || Box::new(Counter::new(limit, window)))),
            }
        }
        "token-bucket" => {
            let rate = fields.number_required("rate");
            let depth = fields.number("depth").unwrap_or(1.0).max(1.0);
            let rate = rate?;
            Some(Box::new(move || Box::new(Bucket::new(rate, depth))))
        }
        "nginx" => {
            let rate = fields.number_required("rate");
            let burst = f64::from(fields.whole("burst").unwrap_or(0));
            let is_delaying = fields.flag("delay").unwrap_or(false);
            let rate = rate?;
            Some(Box::new(move || Box::new(Nginx::new(rate, burst, is_delaying))))
        }
        "gcra" => {
            let rate = fields.number_required("rate");
            let burst = fields.whole("burst").unwrap_or(0);
            let rate = rate?;
            Some(Box::new(move || Box::new(Gcra::new(rate, burst))))
        }
        "concurrency" => {
            let (slots, service) = (fields.number_required("slots"), fields.number_required("service"));
            let spread = fields.number("spread").unwrap_or(0.0);
            let (slots, service) = (slots? as u32, Span::from_millis(service?));
            Some(Box::new(move || Box::new(Concurrency::new(slots, service, spread))))
        }
        _ => {
            let (workers, service) = (fields.number_required("workers"), fields.number_required("service"));
            let spread = fields.number("spread").unwrap_or(0.0);
            let room = fields.whole("room").unwrap_or(1_000_000);
            let patience = fields.millis("patience").unwrap_or(Span::from_micros(30_000_000));
            let (workers, service) = (workers? as u32, Span::from_millis(service?));
            Some(Box::new(move || Box::new(Queue::new(workers, service, spread, room, patience))))
        }
    }
}
