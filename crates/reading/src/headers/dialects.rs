//! The dialects of vendors, as rows: the table of `docs/hints.md`, the words that say that a field matters,
//! fields of single vendors, families of names, and the words of their parts. `vendors` and `single_vendor`
//! read by them.

/// The table of `docs/hints.md`: fields, and the vendors that send them, with the page that describes them.
/// The reader must not name this.
pub const VENDORS: &[(&str, &str)] = &[
    (
        r#"`RateLimit: "name";r=5;t=30`, `RateLimit-Policy: "name";q=10;w=60`"#,
        "IETF draft-ietf-httpapi-ratelimit-headers, -08 to -11",
    ),
    ("`RateLimit: limit=10, remaining=5, reset=30`", "the same draft, -07"),
    (
        "`RateLimit-Limit`, `-Remaining`, `-Reset`",
        "the same draft to -06, draft-polli-ratelimit-headers-02, GitLab, Docker Hub",
    ),
    (
        "`X-RateLimit-Limit`, `-Remaining`, `-Used`, `-Reset`; `X-Rate-Limit-…`",
        "GitHub, Reddit, Twitter, Envoy",
    ),
    ("`X-RateLimit-Reset-After`, `-Bucket`, `-Scope`, `-Global`", "Discord"),
    (
        "`x-ratelimit-limit-requests`, `x-ratelimit-requests-limit`, `X-RateLimit-UserLimit`",
        "OpenAI, Linear, hapi",
    ),
    (
        "`X-RateLimit-Limit-Minute` (also second, hour, day); `X-RateLimit-Minutely-Limit`",
        "Kong; Exact Online",
    ),
    ("`X-Rate-Limit-Limit: 50`, `X-Rate-Limit-Interval: 1s`", "Crossref"),
    // discogs.com/developers, *Rate Limiting*
    ("`X-Discogs-Ratelimit`, `-Used`, `-Remaining`", "Discogs"),
    // developer.etsy.com, *Rate Limits*
    ("`x-limit-per-second`, `x-remaining-this-second`, `x-limit-per-day`, `x-remaining-today`", "Etsy"),
    // developer.riotgames.com, *Rate Limiting*
    ("`X-App-Rate-Limit: 20:1,100:120` and `-Count`, also `X-Method-…`", "Riot"),
    // its developers in forum thread 2079853
    ("`X-Rate-Limit-Ip: 45:60:120` and `-State`, for each rule", "Path of Exile"),
    // sdk.stackoverflowteams.com, *Rate limiting*
    (
        "`x-burst-throttle-calls-left`, `x-token-bucket-calls-left` and their seconds",
        "Stack Overflow for Teams",
    ),
    // developers.binance.com, *Limits*
    ("`X-MBX-USED-WEIGHT-1M`, `X-MBX-ORDER-COUNT-10S`: used, for people", "Binance"),
    ("`X-RateLimit-Burst-Capacity`, `-Replenish-Rate`, `-Requested-Tokens`", "Spring Cloud Gateway"),
    ("`anthropic-ratelimit-requests-limit`, `-remaining`, `-reset`", "Anthropic"),
    ("`x-ms-ratelimit-remaining-*`", "Azure Resource Manager"),
    ("`X-HubSpot-RateLimit-Max`, `-Remaining`, `-Interval-Milliseconds`", "HubSpot"),
    // shopify.dev, *REST Admin API rate limits*
    ("`X-Shopify-Shop-Api-Call-Limit: 32/40`", "Shopify"),
    // developer.zendesk.com, *Rate limits*
    ("`Zendesk-RateLimit-Tickets-Index: total=100; remaining=99; resets=48`", "Zendesk"),
    ("`x-amzn-RateLimit-Limit: 0.0055` (requests per second)", "Amazon Selling Partner API"),
];

/// Parts of the names of fields that tell of a limit; all but the first two tell of a quota. TypeScript looks
/// for the same words (`js/answers/generated.ts`), so that no other field is handed over.
pub const SAYS_SOMETHING: [&str; 10] = [
    "retry-after", "should-retry", "ratelimit", "rate-limit", "call-limit", "x-mbx-", "limit-per-",
    "remaining-t", "burst-throttle", "token-bucket",
];

/// The family of the drafts of the IETF, which is the source of a delay that follows from it.
pub(super) const RATE_LIMIT: &str = "ratelimit";

/// The family of no one vendor.
pub(super) const X: &str = "x-ratelimit";

/// The part of a quota that a field states.
#[derive(Clone, Copy)]
pub(super) enum Part {
    Limit,
    Remaining,
    Used,
    Reset,
    /// Seconds until the reset, which are more precise than its instant.
    ResetAfter,
    /// Milliseconds.
    Window,
    /// The window, as a span: `1s`.
    Interval,
    /// The amount that comes back each second.
    Rate,
    /// The cost of one request.
    Price,
}

/// A field, the name of its quota, and which part it is.
pub(super) const FIELDS: [(&str, &str, Part); 11] = [
    ("x-discogs-ratelimit", "minute", Part::Limit),
    ("x-discogs-ratelimit-used", "minute", Part::Used),
    ("x-discogs-ratelimit-remaining", "minute", Part::Remaining),
    ("x-limit-per-second", "second", Part::Limit),
    ("x-remaining-this-second", "second", Part::Remaining),
    ("x-limit-per-day", "day", Part::Limit),
    ("x-remaining-today", "day", Part::Remaining),
    ("x-burst-throttle-calls-left", "burst", Part::Remaining),
    ("x-burst-throttle-seconds-until-full", "burst", Part::Reset),
    ("x-token-bucket-calls-left", "bucket", Part::Remaining),
    ("x-token-bucket-seconds-until-next-refill", "bucket", Part::Reset),
];

/// A family's prefix, and what it is called.
pub(super) const FAMILIES: [(&str, &str); 6] = [
    ("ratelimit-", RATE_LIMIT), // draft-polli-ratelimit-headers-02, drafts of the IETF to -06
    ("x-ratelimit-", X),        /* GitHub, GitLab, Discord, Reddit, OpenAI, Kong, Envoy, hapi,
                                 * NestJS, Spring, … */
    ("x-rate-limit-", X),                            // Twitter, Moleculer, Nuvemshop
    ("anthropic-ratelimit-", "anthropic-ratelimit"), // dates of RFC 3339
    ("x-ms-ratelimit-", "x-ms-ratelimit"),           // Azure Resource Manager
    ("x-hubspot-ratelimit-", "x-hubspot-ratelimit"),
];

/// The word of a part, and whether a name may stand beside it. Words that others begin with come first.
pub(super) const PARTS: [(&str, Part, bool); 11] = [
    ("max", Part::Limit, false),                    // HubSpot
    ("interval-milliseconds", Part::Window, false), // HubSpot
    ("interval", Part::Interval, false),            // Crossref, Elastic Cloud
    ("reset-after", Part::ResetAfter, false),       // Discord
    ("burst-capacity", Part::Limit, false),         // Spring Cloud Gateway
    ("replenish-rate", Part::Rate, false),          // Spring Cloud Gateway
    ("requested-tokens", Part::Price, false),       // Spring Cloud Gateway
    ("limit", Part::Limit, true),
    ("remaining", Part::Remaining, true),
    ("reset", Part::Reset, true),
    ("used", Part::Used, true),
];

/// Names that are a window in milliseconds (Kong: `X-RateLimit-Limit-Minute`). Exact Online's are those of
/// its page *API limits*, which picqer/exact-php-client#363 reads and forums.invantive.com/t/3102 cites.
pub(super) const WINDOWS: [(&str, u64); 5] = [
    ("second", 1000),
    ("minute", 60_000),
    ("minutely", 60_000), // Exact Online
    ("hour", 3_600_000),
    ("day", 86_400_000),
];
