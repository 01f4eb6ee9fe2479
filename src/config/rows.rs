//! The settings themselves, one entry each: what the table's types (`table.rs`) are filled with.
//!
//! An entry: section, key, TypeScript's type if the kind does not say it, kind, default; when another
//! default holds, Scrapy's or the draft's name; what it means; why its default is what it is.

use super::table::{
    DefaultValue::{Codes, Empty, Flag, Number, Required, Unset, Word, Words},
    Kind, Section, settings,
};

const ONE_TO_A_MILLION: Kind = Kind::Whole { min: 1, max: 1_000_000 };
const MILLIS: Kind = Kind::Millis { above_zero: false };
const TIME: Kind = Kind::Millis { above_zero: true };

settings! {
    Root "concurrency" ONE_TO_A_MILLION => Number(16.0),
        "256 where a scope ramps", "CONCURRENT_REQUESTS",
        "Requests in flight, all scopes together.",
        "Sixteen keep a crawl of many hosts busy and one laptop calm, as in Scrapy; what `rampup` finds \
         may need more.";
    Root "defaults" Kind::Object(Section::Scope) => Empty,
        "", "",
        "Settings of every scope that is not named in `scopes`, and of what those leave out. All but \
         `concurrency` may stand at the top instead: `{ rate: 5 }` is `{ defaults: { rate: 5 } }`. Typed \
         in both places they are an error.",
        "Each setting's own default is polite.";
    Root "scopes" Kind::Named(Section::Scope) => Empty,
        "", "THROTTLING_SCOPES, DOWNLOAD_SLOTS",
        "Settings of single scopes, by name. A scope's name is by default the host of the URL.",
        "No host is known before the first request.";
    Root "stallAfter" TIME => Number(120_000.0),
        "", "",
        "Milliseconds of nothing but bad answers after which a scope has stalled: one `stall` event, or a \
         `warning` where nobody listens to that.",
        "In two minutes somebody who waits for a program looks what it is doing.";
    Root "seed" Kind::Seed => Unset,
        "drawn from the system on first use", "",
        "Makes jitter repeat exactly.",
        "Two clients with the same seed would send in step.";
    Root "maxWaiting" Kind::Whole { min: 1, max: 100_000_000 } => Unset,
        "", "",
        "Beyond so many waiting requests a new one is refused at once with a `QueueFullError`.",
        "How much memory a program may use is not ours to guess; `warnThreshold` tells before it hurts.";
    Root "maxScopes" Kind::Whole { min: 1, max: 100_000_000 } => Number(100_000.0),
        "", "",
        "Beyond so many scopes the least recently used idle ones are forgotten with what they learned, \
         but never one that holds, is paused, has used quota or whose delay lasts.",
        "Some hundred bytes each: tens of megabytes at most, and more hosts than a crawl visits in an \
         hour.";
    Root "warnThreshold" Kind::Whole { min: 1, max: 100_000_000 } => Number(500.0),
        "", "DELAYED_REQUESTS_WARN_THRESHOLD",
        "So many waiting requests cause one warning.",
        "Each keeps its promise and its context in memory; whoever has more should pull them \
         (`throttle.map`). The draft's number.";
    Root "retry" Kind::Object(Section::Retry) => Unset,
        "", "RETRY_TIMES, RETRY_HTTP_CODES",
        "Whether and how `throttle.fetch` tries again.",
        "`fetch` does not, and to send a request twice is its caller's decision.";

    Driver "clock" as "Clock"
        Kind::Driver("an object with now, wallNow, setTimeout and clearTimeout")
        => Unset,
        "the system's", "",
        "Where time and timers come from. `FakeClock` of autothrottle/testing stands in for it in tests.",
        "Programs run in real time.";
    Driver "snapshot" as "Snapshot" Kind::Driver("what throttle.snapshot() gave") => Unset,
        "", "",
        "Learned state to go on with. A bad or newer one is a `SnapshotError`, never a half-restored \
         throttle.",
        "Where to keep it is the program's own matter.";
    Driver "shared" as "Shared" Kind::Driver("what local() of autothrottle/local and its like give") => Unset,
        "", "",
        "One limit for many processes: one of them runs the engine, the others ask it (docs/shared.md). \
         All with the same options.",
        "Most programs are one process.";
    Driver "fetch" as "typeof fetch" Kind::Function => Unset,
        "`globalThis.fetch`, looked up at each call", "",
        "What `throttle.fetch` sends with.",
        "Whoever replaces the global one (a test, an agent) means all of them.";
    Driver "requestTimeout" MILLIS => Unset,
        "", "DOWNLOAD_TIMEOUT",
        "Milliseconds from the send to the headers, after which a request has failed with `timeout`. \
         Waiting for its turn does not count.",
        "A slow server is not a failed one, and `fetch` has no such limit either.";
    Driver "robots" Kind::Object(Section::Robots) => Unset,
        "", "ROBOTSTXT_OBEY",
        "Whether `throttle.fetch` asks each host for its robots.txt first.",
        "A client of an API has no use for it; a crawler says by what name it goes.";
    Driver "hints" Kind::Named(Section::HeaderMap) => Empty,
        "", "",
        "How to read the headers of servers that speak a dialect of their own, by scope name.",
        "The formats of docs/hints.md are read without.";
    Driver "getScopes" as "GetScopes" Kind::Function => Unset,
        "", "THROTTLING_MANAGER",
        "Names the scopes of a request that names none itself: a name, names, or a map of scope to \
         expected cost, perhaps as a promise. What it throws rejects its request as a `ManagerError`. \
         Helpers: `byHost`, `byEndpoint`, `byDomainHierarchy`, `addScope`.",
        "The host of the URL is what servers limit by.";
    Driver "getResponseBackoff" as "GetResponseBackoff" Kind::Function => Unset,
        "", "THROTTLING_MANAGER",
        "Names the scopes that a response makes back off, where its status does not say it: an API that \
         answers 200 for a target that refuses. The slot is kept until it has answered; `undefined` lets \
         the status count.",
        "A status says it for nearly all servers.";
    Driver "getErrorBackoff" as "GetErrorBackoff" Kind::Function => Unset,
        "", "THROTTLING_MANAGER",
        "Names the scopes that a failure makes back off.",
        "A failure is news for all scopes of its request.";
    Driver "getResponseDelay" as "GetResponseDelay" Kind::Function => Unset,
        "", "THROTTLING_MANAGER",
        "How long a response asks not to be sent anything, in milliseconds, in place of its headers.",
        "Headers are read by themselves.";
    Driver "getHints" as "GetHints" Kind::Function => Unset,
        "", "",
        "Finds hints that are not in headers (Shopify's and Discord's are in bodies: read a clone). The \
         slot is kept until it has answered. `undefined`: the headers count. What it throws rejects the \
         request as a `ManagerError`.",
        "Bodies are the caller's.";
    Driver "redirects" Kind::Word(&["native", "throttle"]) => Word("native"),
        "", "",
        "Who follows redirects: `fetch` itself, as one request, or the throttle, hop by hop, where every \
         hop is a request of the scope that it goes to. Browsers hide redirects: there only `native` \
         works.",
        "It works everywhere.";
    Driver "redirectMaxDelay" MILLIS => Number(300_000.0),
        "", "REDIRECT_MAX_DELAY",
        "With `redirects: 'throttle'`: the longest `Retry-After` of a redirect to wait for, in \
         milliseconds. Beyond it the redirect itself is the answer.",
        "As long as `backoff.maxDelay` and `retry.maxRetryAfter`.";
    Driver "release" Kind::Word(&["headers", "body"]) => Word("headers"),
        "", "",
        "When a request gives its slots back: when the headers are there, or when the body was read, \
         cancelled or has failed. A body that nobody reads keeps them until it is collected as garbage.",
        "A body that is forgotten would keep its slot.";
    Driver "debug" Kind::Flag => Flag(false),
        "", "AUTOTHROTTLE_DEBUG",
        "Prints AutoThrottle's line for each response with `console.debug`: slot, in flight, delay and \
         its change, latency.",
        "A library is silent.";
    Driver "warnings" Kind::Flag => Flag(true),
        "", "",
        "Whether a warning that nobody listens to (`addEventListener('warning', …)`) is one line of \
         `console.warn`, once for each code and scope.",
        "A setting without effect, or a throttle that hears nothing, is found out before the ban.";
    Driver "unref" Kind::Flag => Flag(false),
        "", "",
        "Whether the one timer lets a Node, Deno or Bun process end while requests wait.",
        "What was asked for is to be sent.";

    Scope "rate" Kind::Rate => Unset,
        "", "",
        "Requests a second, evenly spaced whatever the latency: `5`, `'100/min'` (`/s`, `/min`, `/h`, \
         `/day`), or `{ limit, per, burst }`. It takes the place of `delay` and `slotDelay`; `jitter` is \
         then 0 and `concurrency` the global limit, unless they are typed in the same place. With a \
         `jitter` each request is put off by up to so much of a gap; the mean stays.",
        "The default of `delay` is a pace already.";
    Scope "concurrency" ONE_TO_A_MILLION => Number(1.0),
        "with `rate` the global limit", "CONCURRENT_REQUESTS_PER_DOMAIN",
        "Slots: requests in flight in this scope.",
        "One is what a visitor with a browser tab does.";
    Scope "delay" MILLIS => Number(1000.0),
        "0 beside `rate`, `quota` or `rampup`", "DOWNLOAD_DELAY",
        "Milliseconds between two sends of the scope, from send to send.",
        "A second is polite everywhere; whoever sets another pace has thought of one.";
    Scope "slotDelay" MILLIS => Number(1000.0),
        "0 beside `delay`, `rate`, `quota`, `rampup` or `autothrottle`", "DOWNLOAD_DELAY_PER_SLOT",
        "Milliseconds between two sends of one slot, from send to send.",
        "The draft's second, but only where nothing else was said of the pace, in this place or a farther \
         one: it would make five a second one.";
    Scope "jitter" Kind::Jitter => Flag(true),
        "with `rate` 0", "RANDOMIZE_DOWNLOAD_DELAY, DOWNLOAD_DELAY_JITTER",
        "Spread of the delay, drawn once per send: 0.2 is ±20 %, [-0.1, 0.3] is from -10 % to +30 %, true \
         is ±50 %. The mean is the delay.",
        "As in Scrapy: requests like clockwork are a sign of a program.";
    Scope "autothrottle" Kind::FlagOr(Section::AutoThrottle) => Flag(false),
        "", "AUTOTHROTTLE_ENABLED",
        "Let the delay follow the latency: Scrapy's AutoThrottle. The scope's `delay` is the least delay \
         then.",
        "A delay that was typed should stay; Scrapy's is off, too.";
    Scope "backoff" Kind::FlagOr(Section::Backoff) => Flag(true),
        "", "",
        "Slow down after bad answers. False: bad answers change nothing; what the server asks for \
         (`Retry-After`) is kept all the same.",
        "A server that says too fast means it.";
    Scope "rampup" Kind::FlagOr(Section::Rampup) => Flag(false),
        "", "",
        "Find the server's limit and stay just below it. `delay`, `slotDelay` and `concurrency` of the \
         defaults are no bounds then; what you set for this very scope is.",
        "To look for a limit costs refusals: somebody must want it.";
    Scope "followRateLimit" Kind::Flag => Flag(false),
        "", "",
        "Pace by what `RateLimit` headers say: the slower of reset / remaining and window / limit. \
         Without it they only say when to stop.",
        "Clients that share a limit would be paced by each other's use.";
    Scope "downAfter" Kind::MillisOrFalse => Flag(false),
        "", "",
        "Milliseconds of nothing but failed connections and timeouts after which a scope is down: what \
         waits is rejected with a `ScopeDownError`, and one request at a time is let through to see whether \
         the server is back.",
        "Whether to wait for a server that is away is the program's own matter: a crawl does, a page does not.";
    Scope "ignoreRobotsTxt" Kind::Flag => Flag(false),
        "", "ignore_robots_txt",
        "Let robots.txt have no say in the pace of this scope, and do not warn about it.",
        "Whoever asks for robots.txt means to keep to it.";
    Scope "quota" Kind::Quota => Unset,
        "", "quota",
        "Units that the scope may consume per window: a number, `{ limit, window, strict }`, or a list of \
         those.",
        "What a budget is, only its owner knows.";
    Scope "window" TIME => Number(60_000.0),
        "", "THROTTLING_WINDOW, window",
        "The window of a quota that names none, in milliseconds. It starts with the scope's first \
         request.",
        "Most limits of APIs are per minute; the draft's number.";
    Scope "strict" Kind::Flag => Flag(false),
        "", "",
        "Rolling window for quotas that omit `strict`: never more than the quota in any window-long span.",
        "Most servers count in fixed windows, and a rolling one remembers each send.";
    Scope "manager" as "ScopeManager | MakeScopeManager"
        Kind::Driver("an object with onSend, onGood, onBad, delay and concurrency, or a function that makes one")
        => Unset,
        "", "THROTTLING_SCOPE_MANAGER, manager",
        "A strategy of your own in place of backoff and rampup. In `defaults` a function that makes one \
         for each scope.",
        "The ones here need nobody to write code.";

    Rate "limit" Kind::Number { above: 0.0, max: 1e9 } => Required,
        "", "",
        "Requests per span; fractions welcome.",
        "";
    Rate "per" TIME => Number(1000.0),
        "", "",
        "The span in milliseconds.",
        "As for a rate that is a plain number.";
    Rate "burst" ONE_TO_A_MILLION => Number(1.0),
        "", "",
        "How many may follow each other at once after an idle time.",
        "Evenly spaced is what no server refuses.";

    Quota "limit" Kind::Number { above: 0.0, max: 1e12 } => Required,
        "", "quota",
        "Units per window.",
        "";
    Quota "window" TIME => Unset,
        "the scope's `window`", "window",
        "The window in milliseconds.",
        "Said once for all quotas of the scope.";
    Quota "strict" Kind::Flag => Unset,
        "the scope's `strict`", "",
        "Whether the window rolls: never more than the limit in any window-long span.",
        "Said once for all quotas of the scope.";

    Backoff "statusCodes"
        Kind::Codes { min: 100 }
        => Codes(&[429, 430, 502, 503, 504, 520, 521, 522, 523, 524, 529]),
        "without 430 and 529 under Scrapy's names", "BACKOFF_HTTP_CODES",
        "Statuses that are bad answers. A 403 of a rate limit (it names a wait, or nothing is left) counts as \
         a 429.",
        "Too many requests, and a server (or the CDN before it) that cannot cope. A 500 is mostly a bug.";
    Backoff "errors" Kind::Failures => Words(&["timeout", "connection"]),
        "", "BACKOFF_EXCEPTIONS",
        "Failures that are bad answers. An abort by the caller never is.",
        "A server under load drops connections and answers late.";
    Backoff "factor" Kind::Number { above: 1.0, max: 1000.0 } => Number(2.0),
        "", "BACKOFF_DELAY_FACTOR",
        "What a bad answer multiplies the delay by, once per flight.",
        "Ten steps reach any limit; the draft's number.";
    Backoff "minDelay" TIME => Number(1000.0),
        "", "BACKOFF_MIN_DELAY",
        "Milliseconds of delay after the first bad answer, at least.",
        "Less is not felt by a server that is overloaded; the draft's number.";
    Backoff "maxDelay" TIME => Number(300_000.0),
        "a longer `delay` or gap of `rate`", "BACKOFF_MAX_DELAY",
        "The longest delay in milliseconds.",
        "A program that waits for longer looks as if it hangs; the draft's number.";
    Backoff "maxHold" TIME => Number(86_400_000.0),
        "`BACKOFF_MAX_DELAY` under Scrapy's names", "",
        "The longest wait in milliseconds that a server may ask for (`Retry-After`, a reset with nothing left). \
         A longer one is cut, with the warning `hold-cut`.",
        "What a server asks for is kept; but one wrong field must not silence a host for a year.";
    Backoff "window" TIME => Number(60_000.0),
        "", "BACKOFF_WINDOW",
        "Milliseconds without a bad answer (and with a good one) before a step back.",
        "Most limits are per minute; the draft's number.";
    Backoff "jitter" Kind::Jitter => Number(0.1),
        "", "BACKOFF_JITTER",
        "Spread of the delay while backing off, instead of the scope's; no gap is shorter than the scope's can \
         be.",
        "Clients that were refused together should not come back together; more would break what a server \
         asked for.";
    Backoff "concurrencyFactor" Kind::Fraction => Number(0.5),
        "", "BACKOFF_CONCURRENCY_FACTOR",
        "What slots are multiplied by when the delay is at its longest and bad answers go on.",
        "As the delay's factor, the other way round; the draft's number.";

    Rampup "backoffTarget" Kind::Target => Number(1.0),
        "", "RAMPUP_BACKOFF_TARGET",
        "Bad answers per `backoff.window` that finding the limit may cost: a number, or a range [low, \
         high], of which the middle is aimed at.",
        "One a minute is heard by no operator; the draft's number.";
    Rampup "startDelay" TIME => Number(1000.0),
        "the scope's own delay if that is longer", "",
        "Milliseconds of delay before anything is known.",
        "A second is polite everywhere, and ten doublings from the fastest server.";
    Rampup "minDelay" MILLIS => Number(0.0),
        "", "",
        "The least delay in milliseconds.",
        "The server's limit is the bound.";
    Rampup "maxConcurrency" ONE_TO_A_MILLION => Unset,
        "the global `concurrency`", "",
        "The most slots.",
        "The limit of all scopes together is one already.";

    AutoThrottle "startDelay" MILLIS => Number(5000.0),
        "", "AUTOTHROTTLE_START_DELAY",
        "Milliseconds of delay before anything is known, and never less than the scope's `delay`.",
        "Scrapy's number.";
    AutoThrottle "maxDelay" MILLIS => Number(60_000.0),
        "", "AUTOTHROTTLE_MAX_DELAY",
        "The greatest delay in milliseconds. It wins where the scope's `delay` is larger, as in Scrapy.",
        "Scrapy's number.";
    AutoThrottle "targetConcurrency" Kind::Number { above: 0.0, max: f64::MAX } => Number(1.0),
        "", "AUTOTHROTTLE_TARGET_CONCURRENCY",
        "How many requests the server should have in its hands on average; fractions welcome.",
        "Scrapy's number: the most careful that is not idle.";

    Retry "limit" Kind::Whole { min: 1, max: 1_000_000 } => Required,
        "", "RETRY_TIMES",
        "Attempts after the first.",
        "";
    Retry "statusCodes"
        Kind::Codes { min: 400 }
        => Codes(&[408, 413, 429, 430, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529]),
        "413 only with `Retry-After`", "RETRY_HTTP_CODES",
        "Statuses to try again. A 403 of a rate limit counts as a 429.",
        "Timeouts, refusals and servers (or the CDN before them) that cannot cope.";
    Retry "methods"
        Kind::Texts("a list of methods")
        => Words(&["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"]),
        "", "",
        "Methods to try again.",
        "The idempotent ones (RFC 9110 §9.2.2): to send them twice does no harm.";
    Retry "maxRetryAfter" MILLIS => Number(300_000.0),
        "", "",
        "The longest `Retry-After` to wait for, in milliseconds.",
        "A program that waits for longer looks as if it hangs.";
    Retry "longRetryAfter" Kind::Word(&["fail", "wait", "cap"]) => Word("fail"),
        "", "",
        "What to do beyond it: fail with a `RetryAfterTooLongError`, wait all the same, or cap the wait \
         at `maxRetryAfter`, which is earlier than the server asked. The scope is held for as long as \
         `backoff.maxHold` allows, so cap that, too.",
        "The only one that neither hangs nor comes too early.";

    Robots "obey" Kind::Flag => Flag(true),
        "", "ROBOTSTXT_OBEY, THROTTLING_ROBOTSTXT_OBEY",
        "Keep to `Crawl-delay` and `Request-rate`, and to `rules` if there are any.",
        "Whoever gives `robots` wants it.";
    Robots "userAgent" Kind::Text("a product token") => Required,
        "", "ROBOTSTXT_USER_AGENT, USER_AGENT",
        "The product token to look for, and the `User-Agent` to ask with.",
        "";
    Robots "maxDelay" MILLIS => Number(60_000.0),
        "", "THROTTLING_ROBOTSTXT_MAX_DELAY",
        "The longest delay to believe, in milliseconds.",
        "Longer ones are mostly meant to keep robots out; the draft's number.";
    Robots "rules" as "RobotsRules" Kind::Function => Unset,
        "only the pace is obeyed", "",
        "Allow and Disallow: `rules` of autothrottle/robots.",
        "Its library is a dependency that not everybody needs.";

    HeaderMap "resetUnit" Kind::Word(&["s", "ms"]) => Word("s"),
        "", "",
        "What a plain number in a reset means.",
        "Seconds are what most servers mean.";
    HeaderMap "retryAfterUnit" Kind::Word(&["s", "ms"]) => Word("s"),
        "", "",
        "What a plain number in `Retry-After` means.",
        "RFC 9110 §10.2.3.";
    HeaderMap "retryAfter" Kind::Text("the name of a header field") => Unset,
        "", "",
        "The field that says how long to wait, read as `Retry-After`.",
        "The usual fields are read without.";
    HeaderMap "limit" Kind::Text("the name of a header field") => Unset,
        "", "",
        "The field that holds a quota's limit, read as `X-RateLimit-Limit`.",
        "The usual fields are read without.";
    HeaderMap "remaining" Kind::Text("the name of a header field") => Unset,
        "", "",
        "The field that holds what is left of it, read as `X-RateLimit-Remaining`.",
        "The usual fields are read without.";
    HeaderMap "reset" Kind::Text("the name of a header field") => Unset,
        "", "",
        "The field that says when it resets, read as `X-RateLimit-Reset`.",
        "The usual fields are read without.";
}
