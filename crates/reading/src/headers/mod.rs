//! The limits that a server states: header fields → [`Hints`]. Pure; integers only.
//!
//! | file | fields | source |
//! |---|---|---|
//! | `retry_after` | `Retry-After`, `Retry-After-*`, `X-RateLimit-Retry-After` | RFC 9110 §10.2.3, `NestJS` |
//! | | `retry-after-ms`, `x-ms-retry-after-ms`, `x-amz-retry-after` | `OpenAI`, Azure, AWS |
//! | `rate_limit` | `RateLimit`, `RateLimit-Policy` | draft-ietf-httpapi-ratelimit-headers-07 to -11 |
//! | `vendors` | `RateLimit-Limit`, `-Remaining`, `-Reset` | the same draft to -06, draft-polli-…-02 |
//! | | `X-RateLimit-*`, `X-Rate-Limit-*`, named quotas | GitHub, Discord, `OpenAI`, Kong, Envoy, … |
//! | | `anthropic-…`, `x-ms-…`, `X-HubSpot-…`, `x-amzn-…` | the vendors' manuals |
//! | | `X-RateLimit-Resource`, `X-RateLimit-Bucket` | GitHub, Discord |
//! | here | `x-should-retry` | `OpenAI`, Anthropic |
//! | `single_vendor` | what follows no family: Discogs, Etsy, Riot, Shopify, Zendesk, … | the vendors' manuals |
//! | `date`, `value`, `structured` | what stands in them | RFC 9110 §5.6.7, ISO 8601, Go, RFC 9651 |
//!
//! `dialects` has the rows by which vendors' fields are read. `fields` keeps what matters, `decide` says what
//! it means, `budgets` whom it is for.
//!
//! The local clock is wrong by minutes on many machines, so every date is read against the server's own
//! `Date` (and `Age`). Several servers send `Retry-After` on every good answer. A `remaining` that is missing
//! is unknown, not zero. One quota told in two dialects is one quota.

mod budgets;
mod date;
mod decide;
mod dialects;
mod fields;
mod rate_limit;
mod retry_after;
mod single_vendor;
mod structured;
mod value;
mod vendors;

pub use self::{
    budgets::Parts,
    dialects::{SAYS_SOMETHING, VENDORS},
    fields::{matters, says_something},
};
use self::{
    fields::Fields,
    value::{Clock, Wait},
    vendors::Reading,
};
use crate::scan::{cut, is};

/// Some instant of this century, for years of two digits when the time is unknown: 2026.
const THIS_CENTURY_MS: i64 = 1_795_203_840_000;
/// No cache keeps an answer for longer: 31 years.
const MOST_AGE: u64 = 1_000_000_000;

/// The limits in one response. Spans are milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// How long not to send, exactly as the server says it; `None` if it does not say.
    pub delay_ms: Option<u64>,
    /// Which field said so.
    pub source: Option<&'static str>,
    /// Whether the delay is in whole seconds, of which many servers cut the rest off.
    pub is_whole: bool,
    /// Whether a 403 refuses the pace: it names a wait, or the quota is used up.
    pub is_limit: bool,
    /// By how much a hold is longer than the delay.
    pub applies_to: Option<AppliesTo>,
    /// Whether the same request is refused again: `x-should-retry: false`.
    pub is_final: bool,
    /// On a 202: when to ask again for what is being made.
    pub poll_after_ms: Option<u64>,
    /// Rate limit fields were there, but the response came from a cache.
    pub is_ignored: bool,
    /// The response came from a cache (`Age` above 0, RFC 9111 §5.1): its latency is not the server's.
    pub is_cached: bool,
    /// Every quota that the answer names: the exhausted ones first, then those whose rest is known, the next
    /// to reset first. (`Headers` sorts its names, so the order in which they came is lost.)
    pub quotas: Vec<Quota>,
    /// A steady rate: requests in 1,000,000 seconds, rounded down.
    pub rate_per_million_s: Option<u64>,
    /// Discord: what the limit is shared with (`user`, `global`, `shared`).
    pub scope: Option<String>,
    /// Discord: the bucket that the route belongs to.
    pub bucket: Option<String>,
    /// GitHub: the resource that the route belongs to.
    pub resource: Option<String>,
    /// The status, and the wait that was asked for by itself: what is decided anew for each budget.
    said: (u16, Option<(Wait, &'static str)>),
    /// By how much it is shorter.
    margin_ms: u64,
    /// The excess of the delay over a hold.
    over_ms: u64,
}

/// The target of a delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppliesTo {
    /// The next hop of a redirect.
    Redirect,
    /// This very request (413: its body is too large now).
    Request,
}

/// One quota of the server's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// Its name.
    pub policy: Option<String>,
    /// Units per window.
    pub limit: Option<u64>,
    /// Units left; `None` is unknown, not 0.
    pub remaining: Option<u64>,
    /// Units used.
    pub used: Option<u64>,
    /// When more will be there.
    pub reset_ms: Option<u64>,
    /// The length of the window.
    pub window_ms: Option<u64>,
    /// The unit that is counted, if not requests.
    pub unit: Option<String>,
    /// The partition of the quota that we are in.
    pub partition_key: Option<String>,
    /// Whether `reset_ms` is in whole seconds.
    is_whole: bool,
    /// By how much it is too long.
    over_ms: u64,
    family: &'static str,
}

/// The reader's needs besides the header fields.
#[derive(Clone, Copy, Debug, Default)]
pub struct Context {
    /// The status of the response.
    pub status: u16,
    /// Wall time now in milliseconds since 1970, for responses without a `Date`. If it is unknown, their
    /// dates have no meaning.
    pub wall_ms: Option<i64>,
    /// Resets that are plain numbers mean milliseconds (`hints: { host: { resetUnit: 'ms' } }`).
    pub reset_is_millis: bool,
    /// `Retry-After` means milliseconds, too (`retryAfterUnit: 'ms'`).
    pub retry_after_is_millis: bool,
}

/// Of `name: value` lines, those that a reader keeps: they say as much, and no more than that travels.
pub fn kept_lines(lines: &str) -> String {
    let mut kept = String::new();
    for (name, value) in Fields::from_lines(lines).iter() {
        for part in [name, b": ", value, b"\n"] {
            kept.push_str(&String::from_utf8_lossy(part));
        }
    }
    kept
}

impl Hints {
    /// Reads `name: value` lines, as a driver sends them across the border.
    pub fn from_lines(lines: &str, context: Context) -> Self {
        Self::of(&Fields::from_lines(lines), context)
    }

    /// Reads header fields in any order, names in any case, repeated ones as often as they come.
    pub fn read<'a>(fields: impl IntoIterator<Item = (&'a str, &'a str)>, context: Context) -> Self {
        let mut kept = Fields::default();
        for (name, value) in fields {
            kept.add(name.as_bytes(), value.as_bytes());
        }
        Self::of(&kept, context)
    }

    fn of(fields: &Fields, context: Context) -> Self {
        // Of several the first one counts (RFC 9111 §5.1).
        let age = fields.get("age").and_then(|age| value::count_up(cut(age, b',').0)).unwrap_or(0);
        let mut hints = Self { is_cached: age > 0, ..Self::default() };
        let clock = server_clock(fields, context.wall_ms, age);
        if hints.is_cached {
            hints.is_ignored = fields.tell_of_quotas();
        } else {
            let policies = fields.get("ratelimit-policy").and_then(structured::list).unwrap_or_default();
            hints.quotas = rate_limit::quotas(fields, &policies);
            if fields.have_others() {
                let reset_is_millis = context.reset_is_millis;
                vendors::read(fields, Reading { clock, reset_is_millis, policies: &policies }, &mut hints);
            }
        }
        let mut explicit = None;
        if fields.have_others() {
            explicit = retry_after::read(fields, clock, context.retry_after_is_millis);
            hints.is_final = fields.get("x-should-retry").is_some_and(|text| is(text, "false"));
            hints.resource = fields.get("x-ratelimit-resource").map(fields::name);
        }
        hints.said = (context.status, explicit);
        hints.decide();
        hints
    }
}

/// The server's now: its `Date` and the `Age` of the answer (RFC 9111 §4.2.3), else the wall time.
fn server_clock(fields: &Fields, wall_ms: Option<i64>, age: u64) -> Clock {
    let century_ms = wall_ms.unwrap_or(THIS_CENTURY_MS);
    let date = fields.get("date").and_then(|date| date::parse(date, century_ms));
    let date = date.map(|date| date + age.min(MOST_AGE) as i64 * 1000);
    // `Date` has no fraction. The wall time has, where it agrees with it.
    let exact_ms = date.zip(wall_ms).filter(|&(date, wall)| (date..date + 1000).contains(&wall));
    Clock { century_ms, server_ms: date.or(wall_ms), exact_ms: exact_ms.map(|(_, wall)| wall) }
}

impl AppliesTo {
    /// The word that users see.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Redirect => "redirect",
            Self::Request => "request",
        }
    }
}
