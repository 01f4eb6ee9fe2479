//! Every setting once: where it goes, its range, its default, Scrapy's name, what it means and why its
//! default is what it is. The reader's checks, the code's defaults, `docs/settings.md` and TypeScript's types
//! are written from it. A test fails when one of them is not up to date.
//!
//! An entry: section, key, TypeScript's type if the kind does not say it, kind, default; when another
//! default holds, Scrapy's or the draft's name; what it means; why its default is what it is. One by which a
//! send may keep the next one waiting is marked `@pace`, or `@express` if `send_express` of a scope knows it.
//!
//! Units: options are milliseconds under plain names (`delay`, `window`); what comes out of the engine
//! (results, statistics, snapshots, hints) has the unit in its name (`delayMs`).

use self::DefaultValue::{Codes, Empty, Flag, Number, Required, Unset, Word, Words};
pub use super::setting::{DefaultValue, Kind, Object, Row, Section, Text};
use super::{
    field::{Middle, Setting, Settings, Source},
    setting::{self, fields, is_slow, sections, settings},
};
use crate::{
    policy::{jitter, rate},
    time::Span,
};

const ONE_TO_A_MILLION: Kind = Kind::Whole { min: 1, max: 1_000_000 };
const MILLIS: Kind = Kind::Millis { above_zero: false };
const TIME: Kind = Kind::Millis { above_zero: true };

sections! {
    Root "Options", ["EngineOptions", "ThrottleOptions", "Options"],
        "All options of a throttle. Settings of scopes may stand at the top.";
    Driver "", ["ThrottleOptions", "", ""],
        "The options of `createThrottle`.";
    Scope "A scope: `defaults`, each of `scopes`, and the top", ["ScopeOptions", "ScopeOptions", "ScopeOptions"] scrapy "",
        "Settings of one scope.";
    Rate "A rate: an object in `rate`", ["RateOptions", "RateOptions", "RateOptions"] scrapy "",
        "A rate with its own span, or with bursts.";
    Quota "A quota: an object in `quota`", ["QuotaOptions", "QuotaOptions", "QuotaOptions"] scrapy "",
        "A budget per window.";
    AutoThrottle "`autothrottle`", ["AutoThrottleOptions", "AutoThrottleOptions", "AutoThrottleOptions"] scrapy "AUTOTHROTTLE_",
        "Scrapy's AutoThrottle: the delay follows the latency.";
    Backoff "`backoff`", ["BackoffOptions", "BackoffOptions", "BackoffOptions"] scrapy "BACKOFF_",
        "A longer delay after bad answers, and the way back.";
    Rampup "`rampup`", ["RampupOptions", "RampupOptions", "RampupOptions"] scrapy "RAMPUP_",
        "Find the server's limit and stay just below it.";
    Retry "`retry`", ["RetryOptions", "RetryOptions", "RetryOptions"],
        "Retries of `throttle.fetch`. Scrapy: RETRY_ENABLED, RETRY_TIMES.";
    Robots "`robots`", ["RobotsOptions", "RobotsOptions", ""],
        "How `throttle.fetch` asks for robots.txt.";
    HeaderMap "Each of `hints`", ["HeaderMap", "HeaderMapOptions", ""],
        "How one server's headers are to be read. Names are those of header fields, in any case.";
    Simulation "`simulate`: `autothrottle/simulate`", ["SimulationOptions", "", ""],
        "The options of a simulation.";
    Server "`server` of a simulation", ["SimulatedServer", "", ""],
        "A server and its limit. What its model does not know is an error.";
    Step "`server.step`", ["SimulatedStep", "", ""],
        "The limit becomes another.";
    Drift "`server.drift`", ["SimulatedDrift", "", ""],
        "The limit moves up and down, as a triangle.";
    Adaptive "`server.adaptive`", ["SimulatedAdaptive", "", ""],
        "Each refusal lowers the limit for a while.";
    Allowance "`server.allowance`", ["SimulatedAllowance", "", ""],
        "A second limit over a longer time, on a grid from the start.";
    Budget "Each of `server.budgets`", ["SimulatedBudget", "", ""],
        "One of several budgets of a server.";
    Outage "`server.outage`", ["SimulatedOutage", "", ""],
        "For a while everything is a 503.";
    Others "`server.others`", ["SimulatedOthers", "", ""],
        "Traffic of others on the same limit.";
    Network "`network` of a simulation", ["SimulatedNetwork", "", ""],
        "The way there and back.";
    Load "`load` of a simulation", ["SimulatedLoad", "", ""],
        "The requests that each client has to send.";
}

settings! {
    Root "maxInFlight" ONE_TO_A_MILLION => Number(16.0),
        "at least the greatest `concurrency` that you type, and 256 where a scope ramps", "CONCURRENT_REQUESTS",
        "Requests in flight, all scopes together.",
        "As in Scrapy; `rampup` may find that a server bears more.";
    Root "defaults" Kind::Object(Section::Scope) => Empty,
        "", "THROTTLING_DEFAULTS",
        "Settings of every scope, unless `scopes` overrides them. They may stand at the top instead: \
         `{ rate: 5 }` is `{ defaults: { rate: 5 } }`. Both at once are an error.",
        "Each setting's own default is polite.";
    Root "scopes" Kind::Named(Section::Scope) => Empty,
        "", "THROTTLING_SCOPES, DOWNLOAD_SLOTS",
        "Settings of single scopes, by name. By default a scope is the host of the URL.",
        "No host is known before the first request.";
    Root "stallAfter" TIME => Number(120_000.0),
        "", "",
        "Milliseconds of only bad answers after which a scope has stalled: one `stall` event, or a \
         `warning` if it has no listener.",
        "A person who waits for a program looks after two minutes.";
    Root "seed" Kind::Seed => Unset,
        "drawn from the system on first use", "",
        "Makes jitter repeat exactly.",
        "Two clients with the same seed would send in step.";
    Root "maxWaiting" Kind::Whole { min: 1, max: 100_000_000 } => Unset,
        "", "",
        "Beyond this many waiting requests, a new one is a `QueueFullError`.",
        "How much memory a program may use is your choice; `warnThreshold` warns before.";
    Root "maxScopes" Kind::Whole { min: 1, max: 100_000_000 } => Number(100_000.0),
        "", "",
        "Beyond this many scopes, the least recently used idle ones are forgotten. Scopes that hold, are \
         paused, have used quota or wait out a delay stay.",
        "A scope takes some hundred bytes; a crawl visits fewer hosts in an hour.";
    Root "warnThreshold" Kind::Whole { min: 1, max: 100_000_000 } => Number(500.0),
        "", "DELAYED_REQUESTS_WARN_THRESHOLD",
        "This many waiting requests cause one warning.",
        "Each keeps its promise and context in memory; `throttle.map` pulls work instead. The same \
         number as in Scrapy's draft.";
    Root "retry" Kind::Object(Section::Retry) => Unset,
        "", "RETRY_ENABLED",
        "Whether and how `throttle.fetch` repeats requests.",
        "`fetch` does not, and sending twice is your decision.";

    Driver "clock" as "Clock"
        Kind::Driver("an object with now, wallNow, setTimeout and clearTimeout")
        => Unset,
        "the system's", "",
        "Where time and timers come from. Tests use `FakeClock` of autothrottle/testing.",
        "Programs run in real time.";
    Driver "snapshot" as "Snapshot" Kind::Driver("what throttle.snapshot() gave") => Unset,
        "", "",
        "Learned state to go on with. A damaged or newer one is a `SnapshotError`.",
        "Where to keep it is your choice.";
    Driver "shared" as "Shared" Kind::Driver("what local() of autothrottle/local and its like give") => Unset,
        "", "",
        "One limit for many processes (docs/shared.md). Give all of them the same options.",
        "Most programs are one process.";
    Driver "fetch" as "typeof fetch" Kind::Function => Unset,
        "`globalThis.fetch`, looked up at each call", "",
        "The function that `throttle.fetch` sends with.",
        "If a test or an agent replaces the global one, it means all calls.";
    Driver "requestTimeout" MILLIS => Unset,
        "", "DOWNLOAD_TIMEOUT",
        "Milliseconds from the send to the headers, after which a request has failed with `timeout`. The \
         wait before the send does not count.",
        "`fetch` has no limit either.";
    Driver "robots" Kind::Object(Section::Robots) => Unset,
        "", "ROBOTSTXT_OBEY",
        "Whether `throttle.fetch` asks each host for its robots.txt first.",
        "A client of an API has no use for it; a crawler needs a name.";
    Driver "hints" Kind::Named(Section::HeaderMap) => Empty,
        "", "",
        "How to read the headers of servers with a dialect of their own, by scope name.",
        "The formats of docs/hints.md need no setting.";
    Driver "getScopes" as "GetScopes" Kind::Function => Unset,
        "", "THROTTLING_MANAGER, CONCURRENT_REQUESTS_PER_IP",
        "Names the scopes of a request: a name, names, or a map of scope to expected cost, also as a \
         promise. An exception rejects the request with a `ManagerError`. Helpers: `byHost`, `byEndpoint`, \
         `byDomainHierarchy`, `addScope`.",
        "Servers limit by host.";
    Driver "getResponseBackoff" as "GetResponseBackoff" Kind::Function => Unset,
        "", "THROTTLING_MANAGER",
        "Names the scopes that a response makes back off, if its status does not say it. The slot is kept \
         until it has answered; `undefined` lets the status count.",
        "A status says it for nearly all servers.";
    Driver "getErrorBackoff" as "GetErrorBackoff" Kind::Function => Unset,
        "", "THROTTLING_MANAGER",
        "Names the scopes that a failure makes back off.",
        "A failure concerns all scopes of its request.";
    Driver "getResponseDelay" as "GetResponseDelay" Kind::Function => Unset,
        "", "THROTTLING_MANAGER",
        "How many milliseconds a response asks to wait, in place of its headers.",
        "Headers are read without it.";
    Driver "getHints" as "GetHints" Kind::Function => Unset,
        "", "",
        "Finds hints in bodies, as of Shopify and Discord: read a clone. The slot is kept until it has \
         answered. `undefined`: the headers count. An exception rejects the request with a `ManagerError`.",
        "Bodies are yours.";
    Driver "redirects" Kind::Word(&["native", "throttle"]) => Word("native"),
        "", "",
        "Redirects are followed by `fetch` itself, as one request, or by the throttle, where each hop is a \
         request of its own scope. Browsers hide redirects, so there only `native` works.",
        "It works everywhere.";
    Driver "redirectMaxDelay" MILLIS => Number(300_000.0),
        "", "REDIRECT_MAX_DELAY",
        "With `redirects: 'throttle'`: the longest `Retry-After` of a redirect to wait for, in \
         milliseconds. Beyond it the redirect itself is the answer.",
        "As long as `backoff.maxDelay` and `retry.maxRetryAfter`.";
    Driver "release" Kind::Word(&["headers", "body"]) => Word("headers"),
        "", "",
        "When a request gives its slots back: at the headers, or when the body was read, cancelled or has \
         failed. An unread body keeps them until it is garbage-collected.",
        "A forgotten body would keep its slot.";
    Driver "debug" Kind::Flag => Flag(false),
        "", "AUTOTHROTTLE_DEBUG",
        "Prints AutoThrottle's line for each response with `console.debug`.",
        "A library is silent.";
    Driver "warnings" Kind::Flag => Flag(true),
        "", "",
        "Whether a warning without a listener is a line of `console.warn`, once per code and scope.",
        "You should learn of a setting without effect before the ban.";
    Driver "unref" Kind::Flag => Flag(false),
        "", "",
        "Whether a Node, Deno or Bun process may end while requests wait.",
        "You asked for these requests.";

    Scope "rate" @express Kind::Rate => Unset,
        "", "",
        "Requests a second, evenly spaced: `5`, `'100/min'` (`/s`, `/min`, `/h`, `/day`), or `{ limit, \
         window, burst }`. A request counts as its `cost`, 1 unless you say another. It replaces `delay` and `slotDelay`. `jitter` is then 0 and `concurrency` that of \
         `maxInFlight`, unless you set them in the same place. A `jitter` puts each request off by up to \
         that share of a gap; the mean stays.",
        "The default of `delay` is a pace already.";
    Scope "concurrency" ONE_TO_A_MILLION => Number(1.0),
        "with `rate` as `maxInFlight`", "CONCURRENT_REQUESTS_PER_DOMAIN",
        "Slots: requests in flight in this scope.",
        "A visitor with a browser tab does one at a time.";
    Scope "delay" @express MILLIS => Number(1000.0),
        "0 beside `concurrency`, `rate`, `quota` or `rampup`", "DOWNLOAD_DELAY",
        "Milliseconds between two sends of the scope, from send to send.",
        "A second is polite everywhere.";
    Scope "slotDelay" @pace MILLIS => Number(1000.0),
        "0 beside `delay`, `concurrency`, `rate`, `quota`, `rampup` or `autothrottle`", "DOWNLOAD_DELAY_PER_SLOT",
        "Milliseconds between two sends of one slot, from send to send.",
        "The same second as in Scrapy's draft. Beside another pace it would make five a second one.";
    Scope "jitter" Kind::Jitter => Flag(true),
        "with `rate` 0", "DOWNLOAD_DELAY_JITTER, RANDOMIZE_DOWNLOAD_DELAY",
        "Spread of the delay, drawn once per send: 0.2 is ±20 %, [-0.1, 0.3] is from -10 % to +30 %, true \
         is ±50 %. The mean is the delay. After a hold, too: `false` comes back to the millisecond.",
        "As in Scrapy: only programs send like clockwork.";
    Scope "autothrottle" @express Kind::FlagOr(Section::AutoThrottle) => Flag(false),
        "", "AUTOTHROTTLE_ENABLED",
        "Let the delay follow the latency: Scrapy's AutoThrottle. The scope's `delay` is then the least \
         delay.",
        "Scrapy's is off, too.";
    Scope "backoff" Kind::FlagOr(Section::Backoff) => Flag(true),
        "", "",
        "Slow down after bad answers. Where you type it as true or an object, or type no pace, the delay \
         doubles and comes back by steps. Else your pace is a ceiling, to which the rate climbs back. If \
         false, only waits that the server asks for (`Retry-After`) count.",
        "A refusal means too fast.";
    Scope "rampup" @express Kind::FlagOr(Section::Rampup) => Flag(false),
        "", "",
        "Find the server's limit and stay just below it. `delay`, `slotDelay` and `concurrency` of the \
         defaults are no bounds then; those of the scope itself are.",
        "To look for a limit costs refusals.";
    Scope "followRateLimit" @express Kind::Flag => Flag(false),
        "", "",
        "Pace by `RateLimit` headers: the slower of reset / remaining and window / limit. Without it they \
         only say when to stop.",
        "Clients that share a limit would be paced by each other's use.";
    Scope "downAfter" Kind::MillisOrFalse => Flag(false),
        "", "",
        "Milliseconds of only failed connections and timeouts after which a scope is down. Waiting \
         requests are then rejected with a `ScopeDownError`, and one request at a time probes the server.",
        "A crawl waits for a server that is away, a page does not.";
    Scope "ignoreRobotsTxt" Kind::Flag => Flag(false),
        "", "ignore_robots_txt",
        "Ignore `Crawl-delay` for this scope, without a warning.",
        "If you set `robots`, you want it obeyed.";
    Scope "quota" @pace Kind::Quota => Unset,
        "", "quota",
        "Units that the scope may consume per window: a number, `{ limit, window, strict }`, or a list of \
         those.",
        "Only you know your budget.";
    Scope "window" TIME => Number(60_000.0),
        "", "THROTTLING_WINDOW, window",
        "The window of quotas without one, in milliseconds. It starts with the scope's first request.",
        "Most limits of APIs are per minute; the same number as in Scrapy's draft.";
    Scope "strict" Kind::Flag => Flag(false),
        "", "",
        "Rolling window for quotas that omit `strict`: no span of the window's length holds more.",
        "Most servers count in fixed windows, and a rolling one remembers each send.";
    Scope "manager" @pace as "ScopeManager | MakeScopeManager"
        Kind::Driver("an object with onSend, onGood, onBad, delay and concurrency, or a function that makes one")
        => Unset,
        "", "THROTTLING_SCOPE_MANAGER, manager",
        "A strategy of your own in place of backoff and rampup. In `defaults` a function that makes one \
         for each scope.",
        "The built-in ones need no code.";

    Rate "limit" Kind::Number { above: 0.0, max: 1e9 } => Required,
        "", "",
        "Units of cost per span (requests, where no other cost is said); fractions welcome.",
        "";
    Rate "window" TIME => Number(1000.0),
        "", "",
        "The span in milliseconds.",
        "As for a rate that is a number.";
    Rate "burst" Kind::Whole { min: 1, max: 1_000_000_000 } => Number(1.0),
        "", "",
        "How many units of cost may leave at once, at the start and after an idle time, beside `limit` in one \
         window: for a window type a `quota`. A request that costs more is a `CostExceedsQuotaError`. For \
         tokens a minute: as many as `limit`.",
        "No server refuses even gaps.";

    Quota "limit" Kind::Number { above: 0.0, max: 1e12 } => Required,
        "", "quota",
        "Units per window.",
        "";
    Quota "window" TIME => Unset,
        "the scope's `window`", "window",
        "The window in milliseconds.",
        "One for all quotas of the scope.";
    Quota "strict" Kind::Flag => Unset,
        "the scope's `strict`", "",
        "Whether the window rolls: no span of its length holds more.",
        "One for all quotas of the scope.";

    Backoff "statusCodes"
        Kind::Codes { min: 100 }
        => Codes(&[429, 430, 502, 503, 504, 520, 521, 522, 523, 524, 529]),
        "without 430 and 529 under Scrapy's names", "BACKOFF_HTTP_CODES",
        "Statuses that are bad answers. A 403 of a rate limit counts as a 429.",
        "Refusals, and servers that cannot cope. A 500 is mostly a bug.";
    Backoff "errors" Kind::Failures => Words(&["timeout", "connection"]),
        "", "BACKOFF_EXCEPTIONS",
        "Failures that are bad answers. Your own aborts never are.",
        "A server under load drops connections and answers late.";
    Backoff "factor" Kind::Number { above: 1.0, max: 1000.0 } => Number(2.0),
        "", "BACKOFF_DELAY_FACTOR",
        "The factor by which a bad answer multiplies the delay, once per flight.",
        "Ten steps reach any limit; the same number as in Scrapy's draft.";
    Backoff "minDelay" TIME => Number(1000.0),
        "", "BACKOFF_MIN_DELAY",
        "The least delay after a bad answer, in milliseconds.",
        "An overloaded server does not feel less; the same number as in Scrapy's draft.";
    Backoff "maxDelay" TIME => Number(300_000.0),
        "a longer `delay` or gap of `rate`", "BACKOFF_MAX_DELAY",
        "The longest delay in milliseconds.",
        "A program that waits longer looks as if it hangs; the same number as in Scrapy's draft.";
    Backoff "maxHold" TIME => Number(86_400_000.0),
        "`BACKOFF_MAX_DELAY` under Scrapy's names", "",
        "The longest wait in milliseconds that a server may ask for (`Retry-After`, a reset with none \
         left). A longer one is cut, with the warning `wait-capped`.",
        "One wrong field must not silence a host for a year.";
    Backoff "window" TIME => Number(60_000.0),
        "", "BACKOFF_WINDOW",
        "Milliseconds without a bad answer, and with a good one, before a step back.",
        "Most limits are per minute; the same number as in Scrapy's draft.";
    Backoff "jitter" Kind::Jitter => Number(0.1),
        "", "BACKOFF_JITTER",
        "Spread of the delay while backing off, in place of the scope's. No gap is shorter than the \
         scope's can be.",
        "Clients that were refused together should not come back together.";
    Backoff "concurrencyFactor" Kind::Fraction => Number(0.5),
        "", "BACKOFF_CONCURRENCY_FACTOR",
        "The factor of the slots when the delay is at its longest and bad answers go on.",
        "As the delay's factor, the other way round; the same number as in Scrapy's draft.";

    Rampup "backoffTarget" Kind::Target => Number(1.0),
        "", "RAMPUP_BACKOFF_TARGET",
        "Bad answers per `backoff.window` that the search may cost: a number, or a range [low, high] whose \
         middle is the aim.",
        "No operator notices one a minute; the same number as in Scrapy's draft.";
    Rampup "startDelay" TIME => Number(1000.0),
        "the scope's own delay if that is longer", "",
        "Milliseconds of delay before the first answer.",
        "A second is polite everywhere, and ten doublings from the fastest server.";
    Rampup "minDelay" MILLIS => Number(0.0),
        "", "",
        "The least delay in milliseconds.",
        "The server's limit is the bound.";
    Rampup "maxConcurrency" ONE_TO_A_MILLION => Unset,
        "as `maxInFlight`", "",
        "The most slots.",
        "The limit of all scopes together.";

    AutoThrottle "startDelay" MILLIS => Number(5000.0),
        "", "AUTOTHROTTLE_START_DELAY",
        "Milliseconds of delay before the first answer, and never less than the scope's `delay`.",
        "Scrapy's number.";
    AutoThrottle "maxDelay" MILLIS => Number(60_000.0),
        "", "AUTOTHROTTLE_MAX_DELAY",
        "The longest delay in milliseconds. It wins over a larger `delay` of the scope, as in Scrapy.",
        "Scrapy's number.";
    AutoThrottle "targetConcurrency" Kind::Number { above: 0.0, max: f64::MAX } => Number(1.0),
        "", "AUTOTHROTTLE_TARGET_CONCURRENCY",
        "Requests that the server should work on at a time, on average; fractions are allowed.",
        "Scrapy's number.";

    Retry "limit" Kind::Whole { min: 1, max: 1_000_000 } => Required,
        "", "RETRY_TIMES",
        "Attempts after the first.",
        "";
    Retry "statusCodes"
        Kind::Codes { min: 400 }
        => Codes(&[408, 413, 429, 430, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529]),
        "413 only with `Retry-After`", "RETRY_HTTP_CODES",
        "Statuses to retry. A 403 of a rate limit counts as a 429.",
        "Timeouts, refusals and servers that cannot cope.";
    Retry "methods"
        Kind::Texts("a list of methods")
        => Words(&["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"]),
        "", "",
        "Methods to retry.",
        "The idempotent ones (RFC 9110 §9.2.2).";
    Retry "maxRetryAfter" MILLIS => Number(300_000.0),
        "", "",
        "The longest `Retry-After` to wait for, in milliseconds.",
        "A program that waits longer looks as if it hangs.";
    Retry "longRetryAfter" Kind::Word(&["fail", "wait", "cap"]) => Word("fail"),
        "", "",
        "Beyond it: `fail` with a `RetryAfterTooLongError`, `wait` as long as the server asks, or `cap` \
         the wait at `maxRetryAfter`, earlier than it asked. A hold of the scope lasts up to \
         `backoff.maxHold`, so cap that, too.",
        "It neither hangs nor comes too early.";

    Retry "when" as "RetryWhen" Kind::Function => Unset,
        "", "",
        "Whether a response is a refusal whatever its status says, as GraphQL's `THROTTLED` in a 200: it \
         backs off and is retried as a 429 is. It gets a clone of the response, and may be async.",
        "A status says it for nearly all servers.";

    Robots "obey" Kind::Flag => Flag(true),
        "", "ROBOTSTXT_OBEY, THROTTLING_ROBOTSTXT_OBEY",
        "Obey `Crawl-delay` and `Request-rate`, and `rules` if you give them.",
        "If you set `robots`, you want it obeyed.";
    Robots "userAgent" Kind::Text("a product token") => Required,
        "", "ROBOTSTXT_USER_AGENT, USER_AGENT",
        "The product token to look for, and the `User-Agent` to ask with.",
        "";
    Robots "maxDelay" MILLIS => Number(60_000.0),
        "", "THROTTLING_ROBOTSTXT_MAX_DELAY",
        "The longest delay to believe, in milliseconds.",
        "Longer ones are mostly meant to keep robots out; the same number as in Scrapy's draft.";
    Robots "rules" as "RobotsRules" Kind::Function => Unset,
        "only the pace is obeyed", "",
        "Allow and Disallow: `rules` of autothrottle/robots.",
        "It needs a library.";

    HeaderMap "resetUnit" Kind::Word(&["s", "ms"]) => Word("s"),
        "", "",
        "The unit of a plain number in a reset.",
        "Most servers mean seconds.";
    HeaderMap "retryAfterUnit" Kind::Word(&["s", "ms"]) => Word("s"),
        "", "",
        "The unit of a plain number in `Retry-After`.",
        "RFC 9110 §10.2.3.";
    HeaderMap "retryAfter" Kind::Text("the name of a header field") => Unset,
        "", "",
        "The field with the wait, read as `Retry-After`.",
        "Usual fields need no name.";
    HeaderMap "limit" Kind::Text("the name of a header field") => Unset,
        "", "",
        "The field with a quota's limit, read as `X-RateLimit-Limit`.",
        "Usual fields need no name.";
    HeaderMap "remaining" Kind::Text("the name of a header field") => Unset,
        "", "",
        "The field with what is left, read as `X-RateLimit-Remaining`.",
        "Usual fields need no name.";
    HeaderMap "reset" Kind::Text("the name of a header field") => Unset,
        "", "",
        "The field with the reset, read as `X-RateLimit-Reset`.",
        "Usual fields need no name.";
}

fields! {
    /// A scope's settings that stand in no object, as typed.
    pub struct ScopeSettings of Scope {
        /// Slots.
        pub concurrency: u32 = "concurrency",
        /// Between two sends, in milliseconds.
        pub delay: f64 = "delay",
        /// Between two sends of one slot.
        pub slot_delay: Span = "slotDelay",
        /// Spread of the delay.
        pub jitter: jitter::Config = "jitter",
        /// Requests per span, evenly spaced; complete.
        pub rate: Option<rate::Config> = "rate",
        /// Whether the delay follows the latency.
        pub autothrottle: Option<AutoThrottle> = "autothrottle",
        /// How the scope finds its server's limit.
        pub rampup: Option<Rampup> = "rampup",
        /// Whether the pace follows what the server says is left.
        pub follow_rate_limit: bool = "followRateLimit",
        /// After so long without an answer the scope is down.
        pub down_after: Option<Span> = "downAfter",
        /// Whether robots.txt has no say.
        pub ignore_robots_txt: bool = "ignoreRobotsTxt",
        /// The window of quotas without one.
        pub window: Span = "window",
        /// Whether the window of quotas that do not say it rolls.
        pub strict: bool = "strict",
    }
}

fields! {
    /// `rampup` as typed.
    pub struct Rampup of Rampup {
        /// Bad answers per window that the search may cost.
        pub target: Middle = "backoffTarget",
        /// The delay before the first answer.
        pub start: Span = "startDelay",
        /// The least delay.
        pub min: Span = "minDelay",
        /// The most slots; `None` for the global limit.
        pub max_concurrency: Option<u32> = "maxConcurrency",
    }
}

fields! {
    /// `autothrottle` as typed, in milliseconds.
    pub struct AutoThrottle of AutoThrottle {
        /// The delay before the first answer.
        pub start_delay: f64 = "startDelay",
        /// The longest delay.
        pub max_delay: f64 = "maxDelay",
        /// Requests that the server should work on at a time.
        pub target_concurrency: f64 = "targetConcurrency",
    }
}

/// The options that only JavaScript has: Python's clients come hop by hop.
const NOT_PYTHONS: [&str; 3] = ["fetch", "redirects", "unref"];

/// Whether Python has this option.
pub fn is_pythons(row: &Row) -> bool {
    !NOT_PYTHONS.contains(&row.key)
}

/// The row of `key` in `section`, among `rows`.
pub fn row(rows: &'static [Row], section: Section, key: &str) -> Option<&'static Row> {
    rows.iter().find(|row| row.section == section && row.key == key)
}

/// A default that is a number. A row that is missing is an error of the compiler's.
pub(crate) const fn number(section: Section, key: &str) -> f64 {
    default_of(section, key).number()
}

/// A default that is a flag.
pub(crate) const fn flag(section: Section, key: &str) -> bool {
    default_of(section, key).flag()
}

/// A default that is a list of statuses.
pub(crate) const fn codes(section: Section, key: &str) -> &'static [u16] {
    default_of(section, key).codes()
}

/// A default that is a list of words.
pub(crate) const fn words(section: Section, key: &str) -> &'static [&'static str] {
    default_of(section, key).words()
}

/// A default that is a word.
pub(crate) const fn word(section: Section, key: &str) -> &'static str {
    default_of(section, key).word()
}

const fn default_of(section: Section, key: &str) -> DefaultValue {
    setting::default_of(ROWS, section, key)
}
