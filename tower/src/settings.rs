// The options as structs, written from `src/config/table.rs` by `cargo xtask write`: change them there. A
// part of `options.rs`, which has the types of the fields. Each is `None` by default: the engine's default
// holds.

options! {
    /// All options of a throttle. Settings of scopes may stand at the top.
    Options {
        /// Requests in flight, all scopes together. A whole number from 1 to 1000000. Default 16; at least
        /// the greatest `concurrency` that you type, and 256 where a scope ramps. As in Scrapy; `rampup`
        /// may find that a server bears more.
        max_in_flight "maxInFlight": Option<u32>,
        /// Settings of every scope, unless `scopes` overrides them. They may stand at the top instead:
        /// `rate` is then `defaults.rate`. Both at once are an error. Default none. Each setting's own
        /// default is polite.
        defaults "defaults": Option<ScopeOptions>,
        /// Settings of single scopes, by name. By default a scope is the host of the URL. Default none. No
        /// host is known before the first request.
        scopes "scopes": Option<BTreeMap<String, ScopeOptions>>,
        /// Time of only bad answers after which a scope has stalled: one warning of `tracing`. Default 120
        /// s. A person who waits for a program looks after two minutes.
        stall_after "stallAfter": Option<Duration>,
        /// Makes jitter repeat exactly. Default drawn from the system on first use. Two clients with the
        /// same seed would send in step.
        seed "seed": Option<u64>,
        /// Beyond this many waiting requests, a new one is a [`Error::QueueFull`](crate::Error::QueueFull).
        /// A whole number from 1 to 100000000. Default none. How much memory a program may use is your
        /// choice; `warn_threshold` warns before.
        max_waiting "maxWaiting": Option<u32>,
        /// Beyond this many scopes, the least recently used idle ones are forgotten. Scopes that hold, are
        /// paused, have used quota or wait out a delay stay. A whole number from 1 to 100000000. Default
        /// 100000. A scope takes some hundred bytes; a crawl visits fewer hosts in an hour.
        max_scopes "maxScopes": Option<u32>,
        /// This many waiting requests cause one warning. A whole number from 1 to 100000000. Default 500.
        /// Each keeps its task in memory. The same number as in Scrapy's draft.
        warn_threshold "warnThreshold": Option<u32>,
        /// Whether and how [`Retry`](crate::Retry) repeats requests. Default none. Clients do not by
        /// themselves, and sending twice is your decision.
        retry "retry": Option<RetryOptions>,
        /// Requests a second, evenly spaced: `5.into()`, `"100/min".into()` (`/s`, `/min`, `/h`, `/day`),
        /// or [`RateOptions`]. A request counts as its `cost`, 1 unless you say another. It replaces
        /// `delay` and `slot_delay`. `jitter` is then 0 and `concurrency` that of `max_in_flight`, unless
        /// you set them in the same place. A `jitter` puts each request off by up to that share of a gap;
        /// the mean stays. Default none. The default of `delay` is a pace already.
        rate "rate": Option<Rate>,
        /// Slots: requests in flight in this scope. A whole number from 1 to 1000000. Default 1; with
        /// `rate` as `max_in_flight`. A visitor with a browser tab does one at a time.
        concurrency "concurrency": Option<u32>,
        /// Time between two sends of the scope, from send to send. Default 1 s; 0 beside `concurrency`,
        /// `rate`, `quota` or `rampup`. A second is polite everywhere.
        delay "delay": Option<Duration>,
        /// Time between two sends of one slot, from send to send. Default 1 s; 0 beside `delay`,
        /// `concurrency`, `rate`, `quota`, `rampup` or `autothrottle`. The same second as in Scrapy's
        /// draft. Beside another pace it would make five a second one.
        slot_delay "slotDelay": Option<Duration>,
        /// Spread of the delay, drawn once per send: 0.2 is ±20 %, (-0.1, 0.3) is from -10 % to +30 %, true
        /// is ±50 %. The mean is the delay. After a hold, too: `false` comes back to the millisecond.
        /// Default true; with `rate` 0. As in Scrapy: only programs send like clockwork.
        jitter "jitter": Option<Jitter>,
        /// Let the delay follow the latency: Scrapy's AutoThrottle. The scope's `delay` is then the least
        /// delay. Default false. Scrapy's is off, too.
        autothrottle "autothrottle": Option<Switch<AutoThrottleOptions>>,
        /// Slow down after bad answers. Where you type it as true or an object, or type no pace, the delay
        /// doubles and comes back by steps. Else your pace is a ceiling, to which the rate climbs back. If
        /// false, only waits that the server asks for (`Retry-After`) count. Default true. A refusal means
        /// too fast.
        backoff "backoff": Option<Switch<BackoffOptions>>,
        /// Find the server's limit and stay just below it. `delay`, `slot_delay` and `concurrency` of the
        /// defaults are no bounds then; those of the scope itself are. Default false. To look for a limit
        /// costs refusals.
        rampup "rampup": Option<Switch<RampupOptions>>,
        /// Pace by `RateLimit` headers: the slower of reset / remaining and window / limit. Without it they
        /// only say when to stop. Default false. Clients that share a limit would be paced by each other's
        /// use.
        follow_rate_limit "followRateLimit": Option<bool>,
        /// Time of only failed connections and timeouts after which a scope is down. Waiting requests are
        /// then rejected with a [`Error::ScopeDown`](crate::Error::ScopeDown), and one request at a time
        /// probes the server. Default none. A crawl waits for a server that is away, a page does not.
        down_after "downAfter": Option<Duration>,
        /// Ignore `Crawl-delay` for this scope, without a warning. Default false. If you set `robots`, you
        /// want it obeyed.
        ignore_robots_txt "ignoreRobotsTxt": Option<bool>,
        /// Units that the scope may consume per window: a number, a [`QuotaOptions`], or a list of those.
        /// Default none. Only you know your budget.
        quota "quota": Option<Quotas>,
        /// The window of quotas without one. It starts with the scope's first request. Default 60 s. Most
        /// limits of APIs are per minute; the same number as in Scrapy's draft.
        window "window": Option<Duration>,
        /// Rolling window for quotas that omit `strict`: no span of the window's length holds more. Default
        /// false. Most servers count in fixed windows, and a rolling one remembers each send.
        strict "strict": Option<bool>,
    }
    /// Settings of one scope.
    ScopeOptions {
        /// Requests a second, evenly spaced: `5.into()`, `"100/min".into()` (`/s`, `/min`, `/h`, `/day`),
        /// or [`RateOptions`]. A request counts as its `cost`, 1 unless you say another. It replaces
        /// `delay` and `slot_delay`. `jitter` is then 0 and `concurrency` that of `max_in_flight`, unless
        /// you set them in the same place. A `jitter` puts each request off by up to that share of a gap;
        /// the mean stays. Default none. The default of `delay` is a pace already.
        rate "rate": Option<Rate>,
        /// Slots: requests in flight in this scope. A whole number from 1 to 1000000. Default 1; with
        /// `rate` as `max_in_flight`. A visitor with a browser tab does one at a time.
        concurrency "concurrency": Option<u32>,
        /// Time between two sends of the scope, from send to send. Default 1 s; 0 beside `concurrency`,
        /// `rate`, `quota` or `rampup`. A second is polite everywhere.
        delay "delay": Option<Duration>,
        /// Time between two sends of one slot, from send to send. Default 1 s; 0 beside `delay`,
        /// `concurrency`, `rate`, `quota`, `rampup` or `autothrottle`. The same second as in Scrapy's
        /// draft. Beside another pace it would make five a second one.
        slot_delay "slotDelay": Option<Duration>,
        /// Spread of the delay, drawn once per send: 0.2 is ±20 %, (-0.1, 0.3) is from -10 % to +30 %, true
        /// is ±50 %. The mean is the delay. After a hold, too: `false` comes back to the millisecond.
        /// Default true; with `rate` 0. As in Scrapy: only programs send like clockwork.
        jitter "jitter": Option<Jitter>,
        /// Let the delay follow the latency: Scrapy's AutoThrottle. The scope's `delay` is then the least
        /// delay. Default false. Scrapy's is off, too.
        autothrottle "autothrottle": Option<Switch<AutoThrottleOptions>>,
        /// Slow down after bad answers. Where you type it as true or an object, or type no pace, the delay
        /// doubles and comes back by steps. Else your pace is a ceiling, to which the rate climbs back. If
        /// false, only waits that the server asks for (`Retry-After`) count. Default true. A refusal means
        /// too fast.
        backoff "backoff": Option<Switch<BackoffOptions>>,
        /// Find the server's limit and stay just below it. `delay`, `slot_delay` and `concurrency` of the
        /// defaults are no bounds then; those of the scope itself are. Default false. To look for a limit
        /// costs refusals.
        rampup "rampup": Option<Switch<RampupOptions>>,
        /// Pace by `RateLimit` headers: the slower of reset / remaining and window / limit. Without it they
        /// only say when to stop. Default false. Clients that share a limit would be paced by each other's
        /// use.
        follow_rate_limit "followRateLimit": Option<bool>,
        /// Time of only failed connections and timeouts after which a scope is down. Waiting requests are
        /// then rejected with a [`Error::ScopeDown`](crate::Error::ScopeDown), and one request at a time
        /// probes the server. Default none. A crawl waits for a server that is away, a page does not.
        down_after "downAfter": Option<Duration>,
        /// Ignore `Crawl-delay` for this scope, without a warning. Default false. If you set `robots`, you
        /// want it obeyed.
        ignore_robots_txt "ignoreRobotsTxt": Option<bool>,
        /// Units that the scope may consume per window: a number, a [`QuotaOptions`], or a list of those.
        /// Default none. Only you know your budget.
        quota "quota": Option<Quotas>,
        /// The window of quotas without one. It starts with the scope's first request. Default 60 s. Most
        /// limits of APIs are per minute; the same number as in Scrapy's draft.
        window "window": Option<Duration>,
        /// Rolling window for quotas that omit `strict`: no span of the window's length holds more. Default
        /// false. Most servers count in fixed windows, and a rolling one remembers each send.
        strict "strict": Option<bool>,
    }
    /// A rate with its own span, or with bursts.
    RateOptions {
        /// Units of cost per span (requests, where no other cost is said); fractions welcome. A number
        /// above 0, at most 1000000000.
        limit "limit": f64,
        /// The span. Default 1 s. As for a rate that is a number.
        window "window": Option<Duration>,
        /// How many units of cost may leave at once, at the start and after an idle time, beside `limit` in
        /// one window: for a window type a `quota`. A request that costs more is a
        /// [`Error::CostExceedsQuota`](crate::Error::CostExceedsQuota). For tokens a minute: as many as
        /// `limit`. A whole number from 1 to 1000000000. Default 1. No server refuses even gaps.
        burst "burst": Option<u32>,
    }
    /// A budget per window.
    QuotaOptions {
        /// Units per window. A number above 0, at most 1000000000000.
        limit "limit": f64,
        /// The window. Default the scope's `window`. One for all quotas of the scope.
        window "window": Option<Duration>,
        /// Whether the window rolls: no span of its length holds more. Default the scope's `strict`. One
        /// for all quotas of the scope.
        strict "strict": Option<bool>,
    }
    /// Scrapy's AutoThrottle: the delay follows the latency.
    AutoThrottleOptions {
        /// Time of delay before the first answer, and never less than the scope's `delay`. Default 5 s.
        /// Scrapy's number.
        start_delay "startDelay": Option<Duration>,
        /// The longest delay. It wins over a larger `delay` of the scope, as in Scrapy. Default 60 s.
        /// Scrapy's number.
        max_delay "maxDelay": Option<Duration>,
        /// Requests that the server should work on at a time, on average; fractions are allowed. A number
        /// above 0. Default 1. Scrapy's number.
        target_concurrency "targetConcurrency": Option<f64>,
    }
    /// A longer delay after bad answers, and the way back.
    BackoffOptions {
        /// Statuses that are bad answers. A 403 of a rate limit counts as a 429. Default 429, 430, 502,
        /// 503, 504, 520, 521, 522, 523, 524, 529; without 430 and 529 under Scrapy's names. Refusals, and
        /// servers that cannot cope. A 500 is mostly a bug.
        status_codes "statusCodes": Option<Vec<u16>>,
        /// Failures that are bad answers. Your own aborts never are. Default timeout, connection. A server
        /// under load drops connections and answers late.
        errors "errors": Option<Vec<Failure>>,
        /// The factor by which a bad answer multiplies the delay, once per flight. A number above 1, at
        /// most 1000. Default 2. Ten steps reach any limit; the same number as in Scrapy's draft.
        factor "factor": Option<f64>,
        /// The least delay after a bad answer. Default 1 s. An overloaded server does not feel less; the
        /// same number as in Scrapy's draft.
        min_delay "minDelay": Option<Duration>,
        /// The longest delay. Default 300 s; a longer `delay` or gap of `rate`. A program that waits longer
        /// looks as if it hangs; the same number as in Scrapy's draft.
        max_delay "maxDelay": Option<Duration>,
        /// The longest wait that a server may ask for (`Retry-After`, a reset with none left). A longer one
        /// is cut, with a warning of `tracing`. Default 86400 s; `BACKOFF_MAX_DELAY` under Scrapy's names.
        /// One wrong field must not silence a host for a year.
        max_hold "maxHold": Option<Duration>,
        /// Time without a bad answer, and with a good one, before a step back. Default 60 s. Most limits
        /// are per minute; the same number as in Scrapy's draft.
        window "window": Option<Duration>,
        /// Spread of the delay while backing off, in place of the scope's. No gap is shorter than the
        /// scope's can be. Default 0.1. Clients that were refused together should not come back together.
        jitter "jitter": Option<Jitter>,
        /// The factor of the slots when the delay is at its longest and bad answers go on. A number above 0
        /// and below 1. Default 0.5. As the delay's factor, the other way round; the same number as in
        /// Scrapy's draft.
        concurrency_factor "concurrencyFactor": Option<f64>,
    }
    /// Find the server's limit and stay just below it.
    RampupOptions {
        /// Bad answers per `backoff.window` that the search may cost: a number, or a range (low, high)
        /// whose middle is the aim. Default 1. No operator notices one a minute; the same number as in
        /// Scrapy's draft.
        backoff_target "backoffTarget": Option<BackoffTarget>,
        /// Time of delay before the first answer. Default 1 s; the scope's own delay if that is longer. A
        /// second is polite everywhere, and ten doublings from the fastest server.
        start_delay "startDelay": Option<Duration>,
        /// The least delay. Default 0 ms. The server's limit is the bound.
        min_delay "minDelay": Option<Duration>,
        /// The most slots. A whole number from 1 to 1000000. Default as `max_in_flight`. The limit of all
        /// scopes together.
        max_concurrency "maxConcurrency": Option<u32>,
    }
    /// The requests that [`Retry`](crate::Retry) sends again.
    RetryOptions {
        /// Attempts after the first. A whole number from 1 to 1000000.
        limit "limit": u32,
        /// Statuses to retry. A 403 of a rate limit counts as a 429. Default 408, 413, 429, 430, 500, 502,
        /// 503, 504, 520, 521, 522, 523, 524, 529; 413 only with `Retry-After`. Timeouts, refusals and
        /// servers that cannot cope.
        status_codes "statusCodes": Option<Vec<u16>>,
        /// Methods to retry. Default GET, HEAD, PUT, DELETE, OPTIONS, TRACE. The idempotent ones (RFC 9110
        /// §9.2.2).
        methods "methods": Option<Vec<String>>,
        /// The longest `Retry-After` to wait for. Default 300 s. A program that waits longer looks as if it
        /// hangs.
        max_retry_after "maxRetryAfter": Option<Duration>,
        /// Beyond it: `Fail` gives the answer as it is, `Wait` as long as the server asks, or `Cap` the
        /// wait at `max_retry_after`, earlier than it asked. A hold of the scope lasts up to
        /// `backoff.max_hold`, so cap that, too. Default `Fail`. It neither hangs nor comes too early.
        long_retry_after "longRetryAfter": Option<LongRetryAfter>,
    }
}
