//! The objects of settings: where each is documented, its type in each language, and a word about it. One of
//! a new kind is a row here, and a `Section` of its settings.

use autothrottle::config::table::Section;

/// An object of settings. A name is empty where a language has none.
pub struct Object {
    pub section: Section,
    /// The heading in `docs/settings.md`.
    pub title: &'static str,
    /// TypeScript's interface.
    pub typescript: &'static str,
    /// Python's `TypedDict`.
    pub python: &'static str,
    /// tower's struct.
    pub tower: &'static str,
    /// In TypeScript's words.
    pub about: &'static str,
}

/// The object of a section.
pub fn object(section: Section) -> &'static Object {
    OBJECTS.iter().find(|object| object.section == section).expect("each section has one")
}

const fn row(
    section: Section,
    title: &'static str,
    [typescript, python, tower]: [&'static str; 3],
    about: &'static str,
) -> Object {
    Object { section, title, typescript, python, tower, about }
}

/// All, those that name others first.
pub const OBJECTS: &[Object] = &[
    row(
        Section::Root,
        "Options",
        ["EngineOptions", "ThrottleOptions", "Options"],
        "All options of a throttle. Settings of scopes may stand at the top.",
    ),
    row(Section::Driver, "", ["ThrottleOptions", "", ""], "The options of `createThrottle`."),
    row(
        Section::Scope,
        "A scope: `defaults`, each of `scopes`, and the top",
        ["ScopeOptions", "ScopeOptions", "ScopeOptions"],
        "Settings of one scope.",
    ),
    row(
        Section::Rate,
        "A rate: an object in `rate`",
        ["RateOptions", "RateOptions", "RateOptions"],
        "A rate with its own span, or with bursts.",
    ),
    row(
        Section::Quota,
        "A quota: an object in `quota`",
        ["QuotaOptions", "QuotaOptions", "QuotaOptions"],
        "A budget per window.",
    ),
    row(
        Section::AutoThrottle,
        "`autothrottle`",
        ["AutoThrottleOptions", "AutoThrottleOptions", "AutoThrottleOptions"],
        "Scrapy's AutoThrottle: the delay follows the latency.",
    ),
    row(
        Section::Backoff,
        "`backoff`",
        ["BackoffOptions", "BackoffOptions", "BackoffOptions"],
        "A longer delay after bad answers, and the way back.",
    ),
    row(
        Section::Rampup,
        "`rampup`",
        ["RampupOptions", "RampupOptions", "RampupOptions"],
        "Find the server's limit and stay just below it.",
    ),
    row(
        Section::Retry,
        "`retry`",
        ["RetryOptions", "RetryOptions", "RetryOptions"],
        "Retries of `throttle.fetch`. Scrapy: RETRY_ENABLED, RETRY_TIMES.",
    ),
    row(
        Section::Robots,
        "`robots`",
        ["RobotsOptions", "RobotsOptions", ""],
        "How `throttle.fetch` asks for robots.txt.",
    ),
    row(
        Section::HeaderMap,
        "Each of `hints`",
        ["HeaderMap", "HeaderMapOptions", ""],
        "How one server's headers are to be read. Names are those of header fields, in any case.",
    ),
    row(
        Section::Simulation,
        "`simulate`: `autothrottle/simulate`",
        ["SimulationOptions", "", ""],
        "The options of a simulation.",
    ),
    row(
        Section::Server,
        "`server` of a simulation",
        ["SimulatedServer", "", ""],
        "A server and its limit. What its model does not know is an error.",
    ),
    row(Section::Step, "`server.step`", ["SimulatedStep", "", ""], "The limit becomes another."),
    row(
        Section::Drift,
        "`server.drift`",
        ["SimulatedDrift", "", ""],
        "The limit moves up and down, as a triangle.",
    ),
    row(
        Section::Adaptive,
        "`server.adaptive`",
        ["SimulatedAdaptive", "", ""],
        "Each refusal lowers the limit for a while.",
    ),
    row(
        Section::Allowance,
        "`server.allowance`",
        ["SimulatedAllowance", "", ""],
        "A second limit over a longer time, on a grid from the start.",
    ),
    row(
        Section::Budget,
        "Each of `server.budgets`",
        ["SimulatedBudget", "", ""],
        "One of several budgets of a server.",
    ),
    row(Section::Outage, "`server.outage`", ["SimulatedOutage", "", ""], "For a while everything is a 503."),
    row(
        Section::Others,
        "`server.others`",
        ["SimulatedOthers", "", ""],
        "Traffic of others on the same limit.",
    ),
    row(
        Section::Network,
        "`network` of a simulation",
        ["SimulatedNetwork", "", ""],
        "The way there and back.",
    ),
    row(
        Section::Load,
        "`load` of a simulation",
        ["SimulatedLoad", "", ""],
        "The requests that each client has to send.",
    ),
];
