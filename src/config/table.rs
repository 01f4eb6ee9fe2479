//! Every setting once: where it goes, its range, its default, Scrapy's name, what it means and why its
//! default is what it is. The reader checks against these rows, unknown keys are compared with them, and
//! `docs/settings.md` is written from them (a test fails when it is not up to date).

/// One setting.
#[derive(Debug)]
pub struct Row {
    /// The object it stands in.
    pub section: Section,
    /// Its key there.
    pub key: &'static str,
    /// Type and range.
    pub kind: Kind,
    /// The default as text.
    pub default: &'static str,
    /// Scrapy's or the draft's name; empty where there is none.
    pub scrapy: &'static str,
    /// What it means, and the reason for the default.
    pub about: &'static str,
}

/// The objects that options are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// The options themselves.
    Root,
    /// `defaults` and each of `scopes`.
    Scope,
    /// An object in `rate`.
    Rate,
    /// An object in `quota`.
    Quota,
    /// `autothrottle`.
    AutoThrottle,
    /// `backoff`.
    Backoff,
    /// `rampup`.
    Rampup,
    /// What `simulate` takes.
    Simulation,
    /// `server` of a simulation.
    Server,
    /// `server.step`.
    Step,
    /// `server.drift`.
    Drift,
    /// `server.outage`.
    Outage,
    /// `server.others`.
    Others,
    /// `network` of a simulation.
    Network,
    /// `load` of a simulation.
    Load,
}

/// Type and range of a setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A finite number above `above`, at most `max`.
    Number {
        /// Not itself allowed.
        above: f64,
        /// The largest; `f64::MAX` for no bound.
        max: f64,
    },
    /// A whole number.
    Whole {
        /// The smallest.
        min: u32,
        /// The largest.
        max: u32,
    },
    /// Milliseconds, at most a year.
    Millis {
        /// Whether 0 makes no sense.
        above_zero: bool,
    },
    /// True or false.
    Flag,
    /// A number above 0 and below 1.
    Fraction,
    /// A number, or a range of two.
    Target,
    /// A list of HTTP status codes.
    Codes,
    /// A list of kinds of failure.
    Failures,
    /// A flag, a number or a pair of numbers.
    Jitter,
    /// A number, an object of the section `Quota`, or a list of those.
    Quota,
    /// A number, a text like `100/min`, or an object of the section `Rate`.
    Rate,
    /// A whole number that a double carries exactly.
    Seed,
    /// An object.
    Object(Section),
    /// An object whose keys are the user's own names.
    Named(Section),
    /// True, false, or an object.
    FlagOr(Section),
    /// One of these words.
    Word(&'static [&'static str]),
    /// Read by the TypeScript layer and never seen by the engine.
    Driver(&'static str),
}

const ONE_TO_A_MILLION: Kind = Kind::Whole { min: 1, max: 1_000_000 };
const MILLIS: Kind = Kind::Millis { above_zero: false };

macro_rules! rows {
    ($($section:ident $key:literal $kind:expr, $default:literal, $scrapy:literal, $about:literal;)*) => {
        &[$($crate::config::table::Row {
            section: $crate::config::table::Section::$section, key: $key, kind: $kind, default: $default, scrapy: $scrapy, about: $about,
        }),*]
    };
}

pub(crate) use rows;

/// The table.
pub const ROWS: &[Row] = rows! {
    Root "concurrency" ONE_TO_A_MILLION, "16, with `rampup` 256", "CONCURRENT_REQUESTS",
        "Requests in flight, all scopes together. Sixteen keep a crawl of many hosts busy and one laptop calm; what `rampup` finds may need more.";
    Root "defaults" Kind::Object(Section::Scope), "{}", "",
        "Settings of every scope that is not named in `scopes`, and of what those leave out. All but `concurrency` may stand at the top instead: `{ rate: 5 }` is `{ defaults: { rate: 5 } }`.";
    Root "scopes" Kind::Named(Section::Scope), "{}", "THROTTLING_SCOPES, DOWNLOAD_SLOTS",
        "Settings of single scopes, by name. A scope's name is by default the host of the URL.";
    Root "stallAfter" Kind::Millis { above_zero: true }, "900000", "",
        "Milliseconds of nothing but bad answers after which a scope has stalled: one `stall` event. A quarter of an hour is longer than most deployments and most bans that end by themselves.";
    Root "seed" Kind::Seed, "drawn from the system on first use", "",
        "Makes jitter repeat exactly.";
    Root "maxWaiting" Kind::Whole { min: 1, max: 100_000_000 }, "none", "",
        "Beyond so many waiting requests a new one is refused at once with a QueueFullError.";
    Root "maxScopes" Kind::Whole { min: 1, max: 100_000_000 }, "100000", "",
        "Beyond so many scopes the least recently used idle ones are forgotten with what they learned, but never one that holds, is paused or has used quota.";
    Root "warnThreshold" Kind::Whole { min: 1, max: 100_000_000 }, "500", "DELAYED_REQUESTS_WARN_THRESHOLD",
        "So many waiting requests cause one warning: each keeps its promise and its context in memory.";
    Root "clock" Kind::Driver("an object with now, wallNow, setTimeout and clearTimeout"), "the system's", "",
        "Where time and timers come from. `FakeClock` of autothrottle/testing stands in for it in tests.";
    Root "snapshot" Kind::Driver("what throttle.snapshot() gave"), "none", "",
        "Learned state to go on with. A bad or newer one is a SnapshotError, never a half-restored throttle.";
    Root "fetch" Kind::Driver("a function"), "globalThis.fetch", "",
        "What `throttle.fetch` sends with.";
    Root "retry" Kind::Driver("an object with limit, statusCodes, methods, maxRetryAfter and longRetryAfter"), "none", "RETRY_TIMES, RETRY_HTTP_CODES",
        "Whether and how `throttle.fetch` tries again: see RetryOptions in the types.";
    Root "robots" Kind::Driver("an object with obey, userAgent, maxDelay and rules"), "none", "ROBOTSTXT_OBEY, THROTTLING_ROBOTSTXT_OBEY, THROTTLING_ROBOTSTXT_MAX_DELAY",
        "Whether `throttle.fetch` asks each host for its robots.txt first: see RobotsOptions in the types.";
    Root "hints" Kind::Driver("an object of header maps by scope name"), "{}", "",
        "How to read the headers of servers that speak a dialect of their own: see HeaderMap in the types.";
    Root "getScopes" Kind::Driver("a function"), "none", "THROTTLING_MANAGER",
        "Names the scopes of a request that names none itself: a name, names, or a map of scope to expected cost, perhaps as a promise.";
    Root "getResponseBackoff" Kind::Driver("a function"), "none", "THROTTLING_MANAGER",
        "Names the scopes that a response makes back off, where its status does not say it: `(response, request) => scopes`, perhaps as a promise.";
    Root "getErrorBackoff" Kind::Driver("a function"), "none", "THROTTLING_MANAGER",
        "The same for failures: `(error, request) => scopes`.";
    Root "getResponseDelay" Kind::Driver("a function"), "none", "THROTTLING_MANAGER",
        "How long a response asks not to be sent anything, in milliseconds, in place of its headers: `(response) => ms`.";
    Root "redirects" Kind::Driver("\"native\" or \"throttle\""), "native", "",
        "Who follows redirects: fetch, as one request, or the throttle, hop by hop. Browsers hide redirects: there only `native` works.";
    Root "redirectMaxDelay" Kind::Driver("milliseconds from 0 to a year"), "300000", "REDIRECT_MAX_DELAY",
        "The longest `Retry-After` of a redirect to wait for. Beyond it the redirect itself is the answer.";
    Root "release" Kind::Driver("\"headers\" or \"body\""), "headers", "",
        "When a request gives its slots back: when the headers are there, or when the body was read, cancelled or has failed.";
    Root "getHints" Kind::Driver("a function"), "none", "",
        "Finds hints that are not in headers: `(response) => hints`, perhaps as a promise. The slot is kept until it has answered.";
    Root "debug" Kind::Driver("true or false"), "false", "AUTOTHROTTLE_DEBUG",
        "Prints AutoThrottle's line for each response with console.debug: slot, in flight, delay and its change, latency.";
    Root "unref" Kind::Driver("true or false"), "false", "",
        "Whether the one timer lets a Node, Deno or Bun process end while requests wait.";

    Scope "rate" Kind::Rate, "none", "",
        "Requests a second, evenly spaced whatever the latency: `5`, `'100/min'` (`/s`, `/min`, `/h`, `/day`), or `{ limit, per, burst }`. It takes the place of `delay` and `slotDelay`; `jitter` is then 0 and `concurrency` the global limit, unless they are typed in the same place. With a `jitter` each request is put off by up to so much of a gap; the mean stays.";
    Scope "concurrency" ONE_TO_A_MILLION, "1, with `rate` the global limit", "CONCURRENT_REQUESTS_PER_DOMAIN",
        "Slots: requests in flight in this scope. One is what a visitor with a browser tab does.";
    Scope "delay" MILLIS, "1000; 0 beside `rate`, `quota` or `rampup`", "DOWNLOAD_DELAY",
        "Milliseconds between two sends of the scope, from send to send. A second is polite everywhere; whoever sets another pace has thought of one.";
    Scope "slotDelay" MILLIS, "1000; 0 beside `delay`, `rate`, `quota`, `rampup` or `autothrottle`", "DOWNLOAD_DELAY_PER_SLOT",
        "Milliseconds between two sends of one slot, from send to send. The default holds only where nothing else was said of the pace, in this place or a farther one: a slot that rests for a second makes five a second one.";
    Scope "jitter" Kind::Jitter, "true, with `rate` 0", "RANDOMIZE_DOWNLOAD_DELAY, DOWNLOAD_DELAY_JITTER",
        "Spread of the delay, drawn once per send: 0.2 is ±20 %, [-0.1, 0.3] is from -10 % to +30 %, true is ±50 %.";
    Scope "autothrottle" Kind::FlagOr(Section::AutoThrottle), "false", "AUTOTHROTTLE_ENABLED",
        "Let the delay follow the latency: Scrapy's AutoThrottle. The scope's `delay` is the least delay then.";

    Scope "backoff" Kind::FlagOr(Section::Backoff), "true", "",
        "Slow down after bad answers. False: bad answers change nothing; what the server asks for (Retry-After) is kept all the same.";
    Scope "rampup" Kind::FlagOr(Section::Rampup), "false", "",
        "Find the server's limit and stay just below it. `delay`, `slotDelay` and `concurrency` of the defaults are no bounds then; what you set for this very scope is.";
    Scope "followRateLimit" Kind::Flag, "false", "",
        "Pace by what RateLimit headers say: the slower of reset / remaining and window / limit. Without it they only say when to stop.";
    Scope "ignoreRobotsTxt" Kind::Flag, "false", "ignore_robots_txt",
        "Let robots.txt have no say in the pace of this scope, and do not warn about it.";

    Scope "quota" Kind::Quota, "none", "quota",
        "Units that the scope may consume per window: a number, { limit, window, strict }, or a list of those.";
    Scope "window" Kind::Millis { above_zero: true }, "60000", "THROTTLING_WINDOW, window",
        "The window of a quota that names none, in milliseconds. It starts with the scope's first request.";
    Scope "strict" Kind::Flag, "false", "",
        "Let the window of a quota that does not say roll: never more than the quota in any window-long span.";

    Scope "manager" Kind::Driver("an object with onSend, onGood, onBad, delay and concurrency, or a function that makes one"), "none", "THROTTLING_SCOPE_MANAGER, manager",
        "A strategy of your own in place of backoff and rampup. In `defaults` a function that makes one for each scope.";

    Rate "limit" Kind::Number { above: 0.0, max: 1e9 }, "required", "",
        "Requests per span; fractions welcome.";
    Rate "per" Kind::Millis { above_zero: true }, "1000", "",
        "The span in milliseconds.";
    Rate "burst" ONE_TO_A_MILLION, "1", "",
        "How many may follow each other at once after an idle time.";

    Quota "limit" Kind::Number { above: 0.0, max: 1e12 }, "required", "quota",
        "Units per window.";
    Quota "window" Kind::Millis { above_zero: true }, "the scope's `window`", "window",
        "The window in milliseconds.";
    Quota "strict" Kind::Flag, "the scope's `strict`", "",
        "Whether the window rolls.";

    Backoff "httpCodes" Kind::Codes, "429, 502, 503, 504, 520, 521, 522, 523, 524", "BACKOFF_HTTP_CODES",
        "Statuses that are bad answers: too many requests, and a server (or the CDN before it) that cannot cope.";
    Backoff "errors" Kind::Failures, "timeout, connection", "BACKOFF_EXCEPTIONS",
        "Failures that are bad answers. An abort by the caller never is.";
    Backoff "factor" Kind::Number { above: 1.0, max: 1000.0 }, "2", "BACKOFF_DELAY_FACTOR",
        "What a bad answer multiplies the delay by, once per flight.";
    Backoff "minDelay" Kind::Millis { above_zero: true }, "1000", "BACKOFF_MIN_DELAY",
        "Milliseconds of delay after the first bad answer, at least.";
    Backoff "maxDelay" Kind::Millis { above_zero: true }, "300000", "BACKOFF_MAX_DELAY",
        "The longest delay in milliseconds, and the longest hold that a server may ask for.";
    Backoff "window" Kind::Millis { above_zero: true }, "60000", "BACKOFF_WINDOW",
        "Milliseconds without a bad answer (and with a good one) before a step back.";
    Backoff "jitter" Kind::Jitter, "0.1", "BACKOFF_JITTER",
        "Spread of the delay while backing off, instead of the scope's.";
    Backoff "concurrencyFactor" Kind::Fraction, "0.5", "BACKOFF_CONCURRENCY_FACTOR",
        "What slots are multiplied by when the delay is at its longest and bad answers go on.";

    Rampup "backoffTarget" Kind::Target, "1", "RAMPUP_BACKOFF_TARGET",
        "Bad answers per `backoff.window` that finding the limit may cost: a number, or a range [low, high], of which the middle is aimed at.";
    Rampup "startDelay" Kind::Millis { above_zero: true }, "1000", "",
        "Milliseconds of delay before anything is known; the scope's own delay if that is longer.";
    Rampup "minDelay" MILLIS, "0", "",
        "The least delay in milliseconds.";
    Rampup "maxConcurrency" ONE_TO_A_MILLION, "the global `concurrency`", "",
        "The most slots.";

    AutoThrottle "startDelay" MILLIS, "5000", "AUTOTHROTTLE_START_DELAY",
        "Milliseconds of delay before anything is known, and never less than the scope's `delay`.";
    AutoThrottle "maxDelay" MILLIS, "60000", "AUTOTHROTTLE_MAX_DELAY",
        "The greatest delay in milliseconds. It wins where the scope's `delay` is larger, as in Scrapy.";
    AutoThrottle "targetConcurrency" Kind::Number { above: 0.0, max: f64::MAX }, "1", "AUTOTHROTTLE_TARGET_CONCURRENCY",
        "How many requests the server should have in its hands on average; fractions welcome.";
};

/// The row of `key` in a section of this table.
pub fn row(rows: &'static [Row], section: Section, key: &str) -> Option<&'static Row> {
    rows.iter().find(|row| row.section == section && row.key == key)
}

/// The known key of a section of this table that is nearest to `key`, if one is near enough to be meant.
pub fn nearest(rows: &[Row], section: Section, key: &str) -> Option<&'static str> {
    if key.len() > 64 {
        return None;
    }
    rows.iter()
        .filter(|row| row.section == section)
        .map(|row| (distance(key, row.key), row.key))
        .min()
        .filter(|&(edits, name)| edits * 3 <= name.len().max(3))
        .map(|(_, name)| name)
}

/// Levenshtein's distance without regard to case or underscores: `DOWNLOAD_delay` and `downloadDelay` are one.
fn distance(typed: &str, known: &str) -> usize {
    let fold = |text: &str| -> Vec<char> {
        text.chars().filter(|&c| c != '_' && c != '-').map(|c| c.to_ascii_lowercase()).collect()
    };
    let (typed, known) = (fold(typed), fold(known));
    let mut row: Vec<usize> = (0..=known.len()).collect();
    for (i, a) in typed.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in known.iter().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[known.len()]
}
