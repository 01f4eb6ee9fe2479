//! Simulations as JavaScript writes them: checked like every other setting, all problems at once.

use super::{
    Client, EngineClient, Extent, Load, Network, Summary, Trace, run,
    server::{
        Bucket, Change, Concurrency, Failing, Fields as HeaderFields, Fixed, Gcra, Moving, Nginx, Others,
        Outage, PenaltyBox, Queue, Replicas, Server, Sliding, Telling, Upstream,
    },
};
use crate::{
    config::{
        Config,
        reader::{Fields, Problems},
        table::{
            DefaultValue::{Empty, Flag, Number, Required, Unset, Word},
            Kind, Section, settings,
        },
    },
    error::ConfigError,
    time::{Instant, Span},
    value::{Value, number_text},
};

const MILLIS: Kind = Kind::Millis { above_zero: false };
const TIME: Kind = Kind::Millis { above_zero: true };
const COUNT: Kind = Kind::Whole { min: 1, max: 1_000_000 };
const RATE: Kind = Kind::Number { above: 0.0, max: 100_000.0 };
const FACTOR: Kind = Kind::Number { above: 0.0, max: 1000.0 };
/// Requests in one simulation: each is remembered, some hundred bytes until the end.
const MOST: usize = 4_000_000;
const MODELS: &[&str] =
    &["fixed-window", "sliding-window", "token-bucket", "nginx", "gcra", "concurrency", "queue"];
const SAYS: &[&str] = &["nothing", "retry-after", "rate-limit"];

settings! {
    Simulation "server" Kind::Object(Section::Server) => Required,
        "", "",
        "The server: its `model` and what that takes.",
        "";
    Simulation "network" Kind::Object(Section::Network) => Empty,
        "", "",
        "The way there and back.",
        "A path across a continent.";
    Simulation "load" Kind::Object(Section::Load) => Empty,
        "", "",
        "What each client has to send.",
        "Something always waits: what a throttle is for.";
    Simulation "throttle" as "EngineOptions" Kind::Driver("an object") => Empty,
        "", "",
        "Options of the throttle, as for `createThrottle`. The one scope is called `server`.",
        "A throttle's own defaults.";
    Simulation "clients" Kind::Whole { min: 1, max: 1000 } => Number(1.0),
        "", "",
        "Clients, each with a throttle of its own.",
        "Others make it harder to read.";
    Simulation "duration" TIME => Number(60_000.0),
        "", "",
        "Milliseconds of simulated time.",
        "A window of most limits.";
    Simulation "seed" Kind::Seed => Number(1.0),
        "", "",
        "Makes the network's jitter repeat exactly, and that of throttles without a seed.",
        "A run that cannot be repeated proves nothing.";

    Server "model" Kind::Word(MODELS) => Required,
        "", "",
        "What kind of limit it has.",
        "";
    Server "rate" RATE => Required,
        "", "",
        "`token-bucket`, `nginx`, `gcra`: requests per second.",
        "";
    Server "depth" Kind::Number { above: 0.0, max: 1e6 } => Number(1.0),
        "", "",
        "`token-bucket`: the most tokens.",
        "A bucket without burst is the strictest.";
    Server "burst" Kind::Whole { min: 0, max: 1_000_000 } => Number(0.0),
        "", "",
        "`nginx`, `gcra`: requests at once beyond the first.",
        "nginx's own default.";
    Server "delay" Kind::Flag => Flag(false),
        "", "",
        "`nginx`: whether what is above the rate is delayed; else it is `nodelay`.",
        "Most set `nodelay`.";
    Server "limit" COUNT => Required,
        "", "",
        "`fixed-window`, `sliding-window`: requests per window.",
        "";
    Server "window" TIME => Number(60_000.0),
        "", "",
        "`fixed-window`, `sliding-window`: milliseconds.",
        "Most limits of APIs are per minute.";
    Server "slots" COUNT => Required,
        "", "",
        "`concurrency`: requests at a time; one more is a 503.",
        "";
    Server "workers" COUNT => Required,
        "", "",
        "`queue`: requests at a time; more wait.",
        "";
    Server "service" TIME => Required,
        "", "",
        "`concurrency`, `queue`: milliseconds a request takes.",
        "";
    Server "spread" Kind::Fraction => Unset,
        "", "",
        "`concurrency`, `queue`: how far that strays, as a share to both sides.",
        "Exact times are easier to follow.";
    Server "room" COUNT => Number(1_000_000.0),
        "", "",
        "`queue`: places in it; beyond them 503.",
        "No bound in practice.";
    Server "patience" TIME => Number(30_000.0),
        "", "",
        "`queue`: milliseconds after which the gateway before it answers 504.",
        "Gateways' usual half minute.";
    Server "ban" TIME => Unset,
        "", "",
        "Milliseconds for which a client that was refused is refused, anew with every request.",
        "Most servers do not ban.";
    Server "failing" Kind::Fraction => Unset,
        "", "",
        "The share of requests that fail at once whatever their pace.",
        "A server that works.";
    Server "failingStatus" Kind::Whole { min: 400, max: 599 } => Number(503.0),
        "", "",
        "With what status they do.",
        "What an overloaded server says.";
    Server "step" Kind::Object(Section::Step) => Unset,
        "", "",
        "The limit becomes another.",
        "Limits stay as a rule.";
    Server "drift" Kind::Object(Section::Drift) => Unset,
        "", "",
        "The limit moves up and down.",
        "Limits stay as a rule.";
    Server "outage" Kind::Object(Section::Outage) => Unset,
        "", "",
        "For a while everything is a 503.",
        "A server that works.";
    Server "others" Kind::Object(Section::Others) => Unset,
        "", "",
        "Traffic of others on the same limit.",
        "Alone, a limit is easiest to find.";
    Server "replicas" Kind::Whole { min: 1, max: 1000 } => Number(1.0),
        "", "",
        "So many behind a balancer, each with this limit; a request goes to one of them by chance.",
        "One server.";
    Server "upstream" MILLIS => Number(0.0),
        "", "",
        "Milliseconds that a served request takes behind the limit; a refused one does not.",
        "The limit alone is looked at.";
    Server "upstreamSpread" Kind::Fraction => Unset,
        "", "",
        "How far that strays, as a share to both sides.",
        "Exact times are easier to follow.";
    Server "jitter" MILLIS => Number(0.0),
        "", "",
        "At most so many milliseconds before the server looks at a request, drawn for each.",
        "Exact times are easier to follow.";
    Server "retryAfter" TIME => Unset,
        "the truth", "",
        "Milliseconds that `Retry-After` says on every refusal, whatever the truth.",
        "Most servers say what is true.";
    Server "says" Kind::Word(SAYS) => Word("nothing"),
        "", "",
        "Header fields: none, `Retry-After` on refusals, or `RateLimit-*` on every answer as well.",
        "The hardest case: a limit that nobody tells.";

    Step "at" MILLIS => Required,
        "", "",
        "When, in milliseconds.",
        "";
    Step "factor" FACTOR => Required,
        "", "",
        "What the limit is multiplied by.",
        "";
    Drift "period" TIME => Required,
        "", "",
        "There and back, in milliseconds.",
        "";
    Drift "factor" FACTOR => Required,
        "", "",
        "What the limit is multiplied by at the far end.",
        "";

    Outage "at" MILLIS => Required,
        "", "",
        "When it begins, in milliseconds.",
        "";
    Outage "length" TIME => Required,
        "", "",
        "How long it lasts, in milliseconds.",
        "";
    Others "rate" RATE => Required,
        "", "",
        "Their requests per second while they are there, at times by chance (Poisson).",
        "";
    Others "period" TIME => Number(60_000.0),
        "", "",
        "They come once in so many milliseconds.",
        "A window of most limits.";
    Others "share" Kind::Fraction => Number(0.5),
        "", "",
        "The share of the period for which they stay, at its end.",
        "As long there as away.";

    Network "latency" MILLIS => Number(100.0),
        "", "",
        "Milliseconds there and back, without the server's own time.",
        "A path across a continent.";
    Network "jitter" MILLIS => Number(0.0),
        "", "",
        "At most so many more, each way, drawn for each request: they may overtake each other.",
        "Exact times are easier to follow.";
    Network "slow" Kind::Fraction => Unset,
        "", "",
        "The share of requests that are late by `slowBy` more: a packet was lost.",
        "Nothing is lost.";
    Network "slowBy" MILLIS => Number(200.0),
        "", "",
        "How late those are, in milliseconds.",
        "TCP's least retransmission time, RFC 6298 as Linux has it.";
    Network "timerLag" MILLIS => Number(0.0),
        "", "",
        "Milliseconds by which a client's timers fire late.",
        "Exact timers are easier to follow.";
    Network "timerJitter" MILLIS => Number(0.0),
        "", "",
        "At most so many more, drawn for each timer.",
        "Exact timers are easier to follow.";
    Network "timeout" TIME => Number(60_000.0),
        "", "",
        "Milliseconds after which a client gives up.",
        "A minute is many clients' own.";

    Load "rate" RATE => Unset,
        "", "",
        "New requests per second, evenly. Without it something always waits.",
        "Something always waits.";
    Load "requests" Kind::Whole { min: 1, max: u32::MAX } => Unset,
        "", "",
        "So many in all; without it there is no end.",
        "As many as there is time for.";
}

/// A simulation that can be run.
pub struct Simulation {
    server: Box<dyn Fn() -> Box<dyn Server>>,
    network: Network,
    load: Load,
    config: Config,
    clients: u32,
    extent: Extent,
}

impl Simulation {
    /// Reads options. All problems are reported at once.
    pub fn parse(options: Value) -> Result<Self, ConfigError> {
        let mut problems = Problems::default();
        let mut fields = Fields::of_table(ROWS, options, String::new(), Section::Simulation, &mut problems);
        let clients = fields.whole("clients").unwrap_or(1);
        let duration = fields.millis("duration").unwrap_or(Span::from_micros(60_000_000));
        let seed = fields.number("seed").map_or(1, |seed| seed as u64);
        let throttle = fields.take("throttle").map_or(Value::Nothing, |(value, _)| value);
        let part =
            |fields: &mut Fields, key: &str| fields.object(key).unwrap_or((Value::Nothing, key.into()));
        let server = part(&mut fields, "server");
        let network = part(&mut fields, "network");
        let load = part(&mut fields, "load");
        fields.finish();
        let network = read_network(network, &mut problems);
        let load = read_load(load, &mut problems);
        let (server, server_jitter) = read_server(server, &mut problems);
        let network = Network { server_jitter, ..network };
        let config = Config::parse(throttle).map_err(|error| {
            for problem in error.problems {
                let dot = if problem.path.is_empty() { "" } else { "." };
                problems.add(&format!("throttle{dot}{}", problem.path), problem.want, problem.got);
            }
        });
        match (server, config) {
            (Some(server), Ok(config)) if problems.0.is_empty() => Ok(Self {
                server,
                network,
                load,
                config,
                clients,
                extent: Extent { duration, requests: MOST, seed },
            }),
            _ => Err(ConfigError { problems: problems.0 }),
        }
    }

    /// Another bound of requests than four million.
    #[must_use]
    pub fn at_most(self, requests: usize) -> Self {
        Self { extent: Extent { requests, ..self.extent }, ..self }
    }

    /// A server like the one that was described, untouched.
    pub fn server(&self) -> Box<dyn Server> {
        (self.server)()
    }

    /// Runs it, unless that takes too many requests. `client` makes each of the clients; the engine with the
    /// given options is [`Simulation::engine`].
    pub fn run_with(&self, client: impl Fn(u64) -> Box<dyn Client>) -> Result<(Trace, Summary), ConfigError> {
        let mut server = self.server();
        let mut clients: Vec<Box<dyn Client>> = (0..u64::from(self.clients)).map(client).collect();
        let trace = run(&mut clients, &mut *server, self.network, self.extent).ok_or_else(|| {
            let mut problems = Problems::default();
            let most = self.extent.requests;
            let want = format!("a time in which no more than {most} requests are sent, all clients together");
            problems.add("duration", want, number_text(self.extent.duration.millis()));
            ConfigError { problems: problems.0 }
        })?;
        let summary = trace.summary(&*server);
        Ok((trace, summary))
    }

    /// Runs it.
    pub fn run(&self) -> Result<(Trace, Summary), ConfigError> {
        self.run_with(|index| Box::new(self.engine(index)))
    }

    /// The engine as client number `index`.
    pub fn engine(&self, index: u64) -> EngineClient {
        let mut config = self.config.clone();
        config.seed = Some(config.seed.unwrap_or(self.extent.seed).wrapping_add(index));
        EngineClient::new(config, self.load)
    }
}

fn read_network((value, path): (Value, String), problems: &mut Problems) -> Network {
    let mut fields = Fields::of_table(ROWS, value, path, Section::Network, problems);
    let network = Network {
        latency: fields.millis("latency").unwrap_or(Span::from_micros(100_000)),
        jitter: fields.millis("jitter").unwrap_or(Span::ZERO),
        slow: fields.number("slow").unwrap_or(0.0),
        slow_by: fields.millis("slowBy").unwrap_or(Span::from_micros(200_000)),
        timer_lag: fields.millis("timerLag").unwrap_or(Span::ZERO),
        timer_jitter: fields.millis("timerJitter").unwrap_or(Span::ZERO),
        server_jitter: Span::ZERO,
        timeout: fields.millis("timeout").unwrap_or(Span::from_micros(60_000_000)),
    };
    fields.finish();
    network
}

fn read_load((value, path): (Value, String), problems: &mut Problems) -> Load {
    let mut fields = Fields::of_table(ROWS, value, path, Section::Load, problems);
    let load = Load {
        gap: fields.number("rate").map(|rate| Span::from_micros((1e6 / rate) as u64)),
        requests: fields.number("requests").map_or(u64::MAX, |requests| requests as u64),
    };
    fields.finish();
    load
}

type Make = Box<dyn Fn() -> Box<dyn Server>>;

/// A maker of servers, so that one description can be run many times; and how late it looks at requests.
fn read_server((value, path): (Value, String), problems: &mut Problems) -> (Option<Make>, Span) {
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
    let Some(inside) = inside else { return (None, jitter) };
    let make: Make = Box::new(move || {
        let mut server = match replicas {
            1 => inside(),
            many => Box::new(Replicas::new((0..many).map(|_| inside()).collect())),
        };
        for &change in &changes {
            server = Box::new(Moving::new(server, change));
        }
        if let Some((rate, period, share)) = others {
            server = Box::new(Others::new(server, rate, period, share));
        }
        if upstream > Span::ZERO {
            server = Box::new(Upstream::new(server, upstream, spread));
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
        match says {
            HeaderFields::Silent => server,
            says => Box::new(Telling::new(server, says, retry_after)),
        }
    });
    (Some(make), jitter)
}

fn read_outage((value, path): (Value, String), problems: &mut Problems) -> Option<(Span, Span)> {
    let mut fields = Fields::of_table(ROWS, value, path, Section::Outage, problems);
    let (at, length) = (fields.number_required("at"), fields.number_required("length"));
    fields.finish();
    at.map(Span::from_millis).zip(length.map(Span::from_millis))
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
        "fixed-window" | "sliding-window" => {
            let limit = fields.number_required("limit");
            let window = fields.millis("window").unwrap_or(Span::from_micros(60_000_000));
            let is_fixed = model == "fixed-window";
            let limit = limit? as u32;
            Some(Box::new(move || -> Box<dyn Server> {
                if is_fixed {
                    Box::new(Fixed::new(limit, window))
                } else {
                    Box::new(Sliding::new(limit, window))
                }
            }))
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
