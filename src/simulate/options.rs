//! Simulations as JavaScript writes them: checked like every other setting, all problems at once.

use crate::config::setting::{
    DefaultValue::{Empty, Flag, Number, Required, Unset, Word},
    Kind, Section, settings,
};

const MILLIS: Kind = Kind::Millis { above_zero: false };
const TIME: Kind = Kind::Millis { above_zero: true };
const COUNT: Kind = Kind::Whole { min: 1, max: 1_000_000 };
const RATE: Kind = Kind::Number { above: 0.0, max: 100_000.0 };
const FACTOR: Kind = Kind::Number { above: 0.0, max: 1000.0 };
const MODELS: &[&str] = &[
    "fixed-window", "sliding-window", "sliding-counter", "token-bucket", "nginx", "gcra", "concurrency",
    "queue",
];
const REFUSALS: &[&str] = &["429", "503", "502", "403", "401", "silence", "reset"];
const SAYS: &[&str] = &["nothing", "retry-after", "rate-limit", "x-ratelimit"];

settings! {
    Simulation "server" Kind::Object(Section::Server) => Required,
        "", "",
        "The server: its `model` and options. Its scope is called `server`.",
        "";
    Simulation "servers" Kind::Named(Section::Server) => Empty,
        "", "",
        "Further servers, by the names of their scopes. Each client sends to all of them in turn.",
        "One limit is easier to follow.";
    Simulation "network" Kind::Object(Section::Network) => Empty,
        "", "",
        "The network between client and server.",
        "A path across a continent.";
    Simulation "load" Kind::Object(Section::Load) => Empty,
        "", "",
        "The requests that each client has to send.",
        "Some request always waits.";
    Simulation "throttle" as "EngineOptions" Kind::Driver("an object") => Empty,
        "", "",
        "Options of the throttle, as for `createThrottle`.",
        "A throttle's own defaults.";
    Simulation "clients" Kind::Whole { min: 1, max: 1000 } => Number(1.0),
        "", "",
        "Clients, each with a throttle of its own.",
        "More are harder to read.";
    Simulation "duration" TIME => Number(60_000.0),
        "", "",
        "Milliseconds of simulated time.",
        "The window of most limits.";
    Simulation "seed" Kind::Seed => Number(1.0),
        "", "",
        "Makes the network's jitter repeat exactly, and that of throttles without a seed.",
        "A run that cannot be repeated proves no claim.";

    Server "model" Kind::Word(MODELS) => Required,
        "", "",
        "The kind of its limit.",
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
        "`nginx`: whether requests above the rate are delayed; else it is `nodelay`.",
        "Most set `nodelay`.";
    Server "limit" COUNT => Required,
        "", "",
        "`fixed-window`, `sliding-window`, `sliding-counter`: requests per window.",
        "";
    Server "window" TIME => Number(60_000.0),
        "", "",
        "`fixed-window`, `sliding-window`, `sliding-counter`: milliseconds.",
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
        "`concurrency`, `queue`: how far the time strays, as a share to both sides.",
        "Exact times are easier to follow.";
    Server "room" COUNT => Number(1_000_000.0),
        "", "",
        "`queue`: places in it; one more is a 503.",
        "No bound in practice.";
    Server "patience" TIME => Number(30_000.0),
        "", "",
        "`queue`: milliseconds after which the gateway answers 504.",
        "Gateways' usual half minute.";
    Server "ban" TIME => Unset,
        "", "",
        "Milliseconds for which a refused client stays refused, anew with each request.",
        "Most servers do not ban.";
    Server "refusal" Kind::Word(REFUSALS) => Unset,
        "429; of `nginx`, `concurrency` and `queue` 503", "",
        "How it refuses: with this status, by silence, or by closing the connection.",
        "Each server's usual refusal.";
    Server "adaptive" Kind::Object(Section::Adaptive) => Unset,
        "", "",
        "Each refusal lowers the limit for a while.",
        "Limits stay as a rule.";
    Server "allowance" Kind::Object(Section::Allowance) => Unset,
        "", "",
        "A second limit over a longer time.",
        "One limit is easier to follow.";
    Server "budgets" Kind::Named(Section::Budget) => Empty,
        "", "",
        "Several budgets by name, in place of `limit` and `window`; all else holds for each.",
        "One limit is easier to follow.";
    Server "names" Kind::Text("the name of a header field") => Unset,
        "no field", "",
        "The field that names the budget: `x-ratelimit-resource` (GitHub), `x-ratelimit-bucket` (Discord).",
        "Most servers have one budget.";
    Server "failing" Kind::Fraction => Unset,
        "", "",
        "The share of requests that fail at once, whatever the pace.",
        "A server that works.";
    Server "failingStatus" Kind::Whole { min: 400, max: 599 } => Number(503.0),
        "", "",
        "The status of these failures.",
        "An overloaded server answers 503.";
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
        "Traffic of other clients on the same limit.",
        "Alone, a limit is easiest to find.";
    Server "replicas" Kind::Whole { min: 1, max: 1000 } => Number(1.0),
        "", "",
        "Servers behind a balancer, each with this limit; a request goes to a random one.",
        "One server.";
    Server "upstream" MILLIS => Number(0.0),
        "", "",
        "Milliseconds that a served request takes behind the limit; a refused one takes none.",
        "Only the limit matters.";
    Server "upstreamSpread" Kind::Fraction => Unset,
        "", "",
        "How far that time strays, as a share to both sides.",
        "Exact times are easier to follow.";
    Server "jitter" MILLIS => Number(0.0),
        "", "",
        "The most milliseconds before the server looks at a request, drawn for each.",
        "Exact times are easier to follow.";
    Server "retryAfter" TIME => Unset,
        "the truth", "",
        "Milliseconds that `Retry-After` says on every refusal, true or not.",
        "Most servers say the truth.";
    Server "says" Kind::Word(SAYS) => Word("nothing"),
        "", "",
        "Header fields: none, `Retry-After` on refusals, or on every answer as well `RateLimit-*`, or `X-RateLimit-*` with `-Reset-After` in fractions of a second.",
        "The hardest case: an unknown limit.";

    Step "at" MILLIS => Required,
        "", "",
        "When, in milliseconds.",
        "";
    Step "factor" FACTOR => Required,
        "", "",
        "The factor of the limit.",
        "";
    Drift "period" TIME => Required,
        "", "",
        "There and back, in milliseconds.",
        "";
    Drift "factor" FACTOR => Required,
        "", "",
        "The factor of the limit at the far end.",
        "";

    Adaptive "factor" Kind::Fraction => Required,
        "", "",
        "The factor of the limit at a refusal.",
        "";
    Adaptive "recovery" Kind::Fraction => Number(0.01),
        "", "",
        "The share of the whole limit that comes back a second.",
        "It is forgiven after some two minutes.";
    Allowance "limit" COUNT => Required,
        "", "",
        "Requests per window.",
        "";
    Allowance "window" TIME => Number(86_400_000.0),
        "", "",
        "Milliseconds.",
        "Most quotas are per day.";

    Budget "limit" COUNT => Required,
        "", "",
        "Requests per window.",
        "";
    Budget "window" TIME => Number(60_000.0),
        "", "",
        "Milliseconds.",
        "Most limits of APIs are per minute.";
    Budget "routes" Kind::Texts("a list of paths") => Required,
        "", "",
        "Paths of URLs that spend from it: `['/search/code']`. Each has a load of its own.",
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
        "Their requests per second while they are there, at random times (Poisson).",
        "";
    Others "period" TIME => Number(60_000.0),
        "", "",
        "How often they come, in milliseconds.",
        "The window of most limits.";
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
        "The most milliseconds more, each way, drawn for each request: requests may overtake each other.",
        "Exact times are easier to follow.";
    Network "slow" Kind::Fraction => Unset,
        "", "",
        "The share of requests that are late by `slowBy` more, as after a lost packet.",
        "No packet is lost.";
    Network "slowBy" MILLIS => Number(200.0),
        "", "",
        "How late those are, in milliseconds.",
        "TCP's least retransmission time (RFC 6298, Linux).";
    Network "timerLag" MILLIS => Number(0.0),
        "", "",
        "Milliseconds by which a client's timers fire late.",
        "Exact timers are easier to follow.";
    Network "timerJitter" MILLIS => Number(0.0),
        "", "",
        "The most milliseconds more, drawn for each timer.",
        "Exact timers are easier to follow.";
    Network "timeout" TIME => Number(60_000.0),
        "", "",
        "Milliseconds after which a client gives up.",
        "Many clients give up after a minute.";

    Load "rate" RATE => Unset,
        "", "",
        "New requests per second, evenly.",
        "Some request always waits.";
    Load "requests" Kind::Whole { min: 1, max: u32::MAX } => Unset,
        "", "",
        "Requests in all.",
        "As many as the time allows.";
    Load "costs" Kind::Amounts => Unset,
        "all 1", "",
        "The costs of requests in a quota, in turn: `[1, 1, 10]`. Servers count requests.",
        "Most quotas count requests.";
}
