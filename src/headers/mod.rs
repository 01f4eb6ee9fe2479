//! What a server says about its limits: header fields → [`Hints`]. Pure, integers only.
//!
//! | what | fields | source |
//! |---|---|---|
//! | an explicit wait | `Retry-After`; `retry-after-ms`, `x-ms-retry-after-ms`, `x-amz-retry-after`, `Retry-After-*`, `X-RateLimit-Retry-After` | RFC 9110 §10.2.3; `OpenAI`, Azure, AWS, `NestJS` |
//! | quotas | `RateLimit`, `RateLimit-Policy` | draft-ietf-httpapi-ratelimit-headers-08 to -11; its -07 as a dictionary |
//! | | `RateLimit-Limit`, `-Remaining`, `-Reset` | the same draft up to -06, draft-polli-ratelimit-headers-02 |
//! | | `X-RateLimit-*`, `X-Rate-Limit-*`, with a name before, behind or glued on | GitHub, Discord, Reddit, `OpenAI`, Kong, Envoy, hapi, … |
//! | | `anthropic-ratelimit-*`, `x-ms-ratelimit-remaining-*`, `X-HubSpot-RateLimit-*`, `X-Shopify-Shop-Api-Call-Limit`, `x-amzn-RateLimit-Limit` | the vendors' manuals |
//!
//! The traps: the local clock, which is wrong by minutes on many machines, so every date is read against the server's
//! own `Date` (and `Age`); a `Retry-After` on a good answer, which several servers send on every one; a `remaining`
//! that is missing, which is unknown and not zero; one quota told in two dialects, which is one quota.

mod date;
mod describe;
mod structured;
mod value;

use serde::ser::{Serialize, SerializeMap, Serializer};

use self::{
    structured::{Bare, Item},
    value::{At, When},
};

/// Quotas beyond so many are hostile.
const MOST: usize = 64;

/// Some instant of this century, for years of two digits when nobody knows the time: 2026.
const THIS_CENTURY_MS: i64 = 1_795_203_840_000;

/// What one response says. Spans are milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// How long not to send, exactly as the server says it; `None` if it does not say.
    pub delay_ms: Option<u64>,
    /// Which field said so.
    pub source: Option<&'static str>,
    /// Whether the delay is in whole seconds, of which many servers cut the rest off.
    pub is_whole: bool,
    /// What the delay is for, if not for the whole scope.
    pub applies_to: Option<AppliesTo>,
    /// On a 202: when to ask again for what is being made.
    pub poll_after_ms: Option<u64>,
    /// Rate limit fields were there, but the response came from a cache.
    pub is_ignored: bool,
    /// The response came from a cache (`Age` above 0, RFC 9111 §5.1): its latency is not the server's.
    pub is_cached: bool,
    /// Every quota that was told of: the exhausted ones first, then those whose rest is known, the next to reset first.
    /// (`Headers` sorts its names, so the order in which they came is lost.)
    pub quotas: Vec<Quota>,
    /// A steady rate in thousandths of a request per second.
    pub rate_per_1000_s: Option<u64>,
    /// Discord: what the limit is shared with (`user`, `global`, `shared`).
    pub scope: Option<String>,
    /// Discord: the bucket that the route belongs to.
    pub bucket: Option<String>,
}

/// What a delay is for.
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
    /// What is counted, if not requests.
    pub unit: Option<String>,
    /// The partition of the quota that we are in.
    pub partition_key: Option<String>,
    /// Whether `reset_ms` is in whole seconds.
    is_whole: bool,
    family: &'static str,
}

/// What the reader has to be told besides the header fields.
#[derive(Clone, Copy, Debug, Default)]
pub struct Context {
    /// The status of the response.
    pub status: u16,
    /// Wall time now in milliseconds since 1970, for responses without a `Date`. Unknown: their dates mean nothing.
    pub wall_ms: Option<i64>,
    /// Resets that are plain numbers mean milliseconds (`hints: { host: { resetUnit: 'ms' } }`).
    pub reset_is_millis: bool,
    /// So does `Retry-After` (`retryAfterUnit: 'ms'`).
    pub retry_after_is_millis: bool,
}

impl Quota {
    /// Whether nothing is left until the reset. What completions free is not a matter of time.
    pub fn is_exhausted(&self) -> bool {
        self.remaining == Some(0) && self.unit.as_deref() != Some("concurrent-requests")
    }

    /// Whether it counts requests.
    pub fn counts_requests(&self) -> bool {
        self.unit.as_deref().is_none_or(|unit| unit == "requests")
    }
}

impl Hints {
    /// Reads `name: value` lines, as a driver sends them across the border.
    pub fn from_lines(lines: &str, context: Context) -> Self {
        Self::read(lines.lines().filter_map(|line| line.split_once(':')), context)
    }

    /// Reads header fields in any order, names in any case, repeated ones as often as they come.
    pub fn read<'a>(fields: impl IntoIterator<Item = (&'a str, &'a str)>, context: Context) -> Self {
        let mut reader = Reader::default();
        for (name, value) in fields {
            reader.keep(&name.trim().to_ascii_lowercase(), value.trim_matches([' ', '\t', '\r']));
        }
        reader.hints(context)
    }

    /// The governing quota: the exhausted one that resets last, else the next to reset whose rest is known.
    pub fn quota(&self) -> Option<&Quota> {
        self.quotas.first()
    }

    /// How long to hold, with a second more where the server speaks whole seconds. `None` if nothing holds the scope.
    pub fn hold_ms(&self) -> Option<u64> {
        let delay = self.delay_ms.filter(|_| self.applies_to.is_none())?;
        Some(delay.saturating_add(if self.is_whole { 1000 } else { 0 }))
    }

    /// The pace that spreads what is left evenly: the slower of reset ÷ remaining and window ÷ limit. And whether it is
    /// rough: from a short reset in whole seconds, which may be off by half.
    pub fn pace_ms(&self) -> Option<(f64, bool)> {
        let quota = self.quotas.iter().filter(|quota| quota.counts_requests());
        let per_unit = |ms: Option<u64>, units: Option<u64>| match (ms, units) {
            (Some(ms), Some(units)) if units > 0 => Some(ms as f64 / units as f64),
            _ => None,
        };
        let paces = quota.flat_map(|quota| {
            let per_window = per_unit(quota.window_ms, quota.limit);
            let is_rough = quota.is_whole && quota.reset_ms.is_some_and(|ms| ms < 10_000);
            let per_rest = per_unit(quota.reset_ms, quota.remaining);
            let per_rest = per_rest.filter(|_| !is_rough || per_window.is_none());
            [per_rest.map(|ms| (ms, is_rough)), per_window.map(|ms| (ms, false))]
        });
        let rate = self.rate_per_1000_s.filter(|&rate| rate > 0).map(|rate| (1e6 / rate as f64, false));
        paces.chain([rate]).flatten().reduce(|slow, pace| if pace.0 > slow.0 { pace } else { slow })
    }
}

/// The fields that matter, repeated ones joined with commas as `Headers` does it.
#[derive(Default)]
struct Reader {
    fields: Vec<(String, String)>,
}

impl Reader {
    fn keep(&mut self, name: &str, value: &str) {
        let matters = ["date", "age"].contains(&name)
            || name.contains("retry-after")
            || name.contains("ratelimit")
            || name.contains("rate-limit")
            || name == "x-shopify-shop-api-call-limit";
        if !matters || value.is_empty() || self.fields.len() >= 4 * MOST {
            return;
        }
        match self.fields.iter_mut().find(|(other, _)| other == name) {
            Some((_, joined)) => {
                joined.push_str(", ");
                joined.push_str(value);
            }
            None => self.fields.push((name.to_string(), value.to_string())),
        }
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(other, _)| other == name).map(|(_, value)| &value[..])
    }

    fn hints(&self, context: Context) -> Hints {
        // Of several the first one counts (RFC 9111 §5.1).
        let age = self.get("age").and_then(|age| value::count(age.split(',').next()?));
        let age = age.filter(|&age| age > 0);
        let century_ms = context.wall_ms.unwrap_or(THIS_CENTURY_MS);
        let date = self.get("date").and_then(|date| date::parse(date, century_ms));
        let date = date.map(|date| date + age.unwrap_or(0).min(1_000_000_000) * 1000);
        let server_ms = date.or(context.wall_ms);
        let clock = Clock { century_ms, server_ms, reset_is_millis: context.reset_is_millis };
        let mut hints = Hints { is_cached: age.is_some(), ..Hints::default() };
        if age.is_some() {
            hints.is_ignored = self.fields.iter().any(|(name, _)| is_quota_field(name));
        } else {
            hints.quotas = self.quotas(clock);
            self.read_rest(&mut hints);
        }
        let explicit = self.explicit(clock, context.retry_after_is_millis);
        hints.decide(context.status, explicit);
        hints
    }

    /// The explicit wait: the first field of these that makes sense. The precise ones come first.
    fn explicit(&self, clock: Clock, is_millis: bool) -> Option<(u64, bool, &'static str)> {
        let millis = [
            ("retry-after-ms", "retry-after-ms"),
            ("x-ms-retry-after-ms", "x-ms-retry-after-ms"),
            ("x-amz-retry-after", "x-amz-retry-after"),
        ];
        let wait = |text: &str, is_millis| {
            let when = value::latest(text, is_millis, clock.century_ms, clock.server_ms)?;
            Some((clock.after(when), when.is_whole))
        };
        for (name, source) in millis {
            if let Some((ms, is_whole)) = self.get(name).and_then(|text| wait(text, true)) {
                return Some((ms, is_whole, source));
            }
        }
        let named = |prefix: &'static str| {
            self.fields.iter().filter(move |(name, _)| name.starts_with(prefix)).map(|(_, text)| &text[..])
        };
        let plain = self.get("retry-after").map(|text| (text, "retry-after")).into_iter();
        let suffixed = named("retry-after-").map(|text| (text, "retry-after-*"));
        let family = named("x-ratelimit-retry-after").chain(named("x-rate-limit-retry-after"));
        plain
            .chain(suffixed)
            .chain(family.map(|text| (text, "x-ratelimit-retry-after")))
            .find_map(|(text, source)| wait(text, is_millis).map(|(ms, is_whole)| (ms, is_whole, source)))
    }

    /// Everything that is a quota, one quota told in two dialects once.
    fn quotas(&self, clock: Clock) -> Vec<Quota> {
        let policies = self.get("ratelimit-policy").and_then(structured::list).unwrap_or_default();
        let mut quotas = self.structured(&policies);
        if quotas.is_empty() {
            quotas = self.trio("ratelimit", "ratelimit", &policies, clock);
        }
        let is_told = !quotas.is_empty();
        for name in ["x-ratelimit", "x-rate-limit"] {
            if !is_told {
                quotas.extend(self.trio(name, "x-ratelimit", &policies, clock));
            }
        }
        for quota in self.named(clock) {
            let is_same = |told: &Quota| is_told && quota.window_ms.is_some() && told.limit == quota.limit;
            if let Some(told) = quotas.iter_mut().find(|told| is_same(told)) {
                told.window_ms = told.window_ms.or(quota.window_ms);
            } else if quotas.len() < MOST {
                quotas.push(quota);
            }
        }
        if let Some((used, limit)) =
            self.get("x-shopify-shop-api-call-limit").and_then(|text| text.split_once('/'))
            && let (Some(used), Some(limit)) = (value::count(used), value::count(limit))
        {
            let (used, limit) = (used.max(0) as u64, limit.max(0) as u64);
            let remaining = Some(limit.saturating_sub(used));
            quotas.push(Quota {
                used: Some(used),
                limit: Some(limit),
                remaining,
                ..Quota::of("x-ratelimit")
            });
        }
        quotas
    }

    /// `RateLimit` and `RateLimit-Policy` as structured fields: drafts 08 to 11, and draft 07's dictionary.
    fn structured(&self, policies: &[Item]) -> Vec<Quota> {
        let Some(text) = self.get("ratelimit") else {
            let is_named = |item: &&Item| name_of(item).is_some();
            return policies
                .iter()
                .filter(is_named)
                .take(MOST)
                .map(|item| of_policy(item, name_of(item)))
                .collect();
        };
        let items = structured::list(text).filter(|items| items.iter().all(|item| name_of(item).is_some()));
        if let Some(items) = items
            .filter(|items| items.iter().any(|item| item.param("r").is_some() || item.param("t").is_some()))
        {
            let quota = |item: &Item| {
                let name = name_of(item);
                let policy = policies.iter().find(|policy| name_of(policy) == name);
                let base = policy.map_or(Quota::of("ratelimit"), |policy| of_policy(policy, None));
                Quota {
                    policy: name,
                    remaining: item.count("r"),
                    reset_ms: item.count("t").map(|seconds| seconds * 1000),
                    partition_key: bytes(item.param("pk")).or(base.partition_key.clone()),
                    is_whole: true,
                    ..base
                }
            };
            return items.iter().take(MOST).map(quota).collect();
        }
        let Some(members) = structured::dictionary(text) else { return Vec::new() };
        let number = |key: &str| {
            let item = members.iter().rev().find(|(name, _)| name == key).map(|(_, item)| &item.value);
            match item {
                Some(Bare::Whole(number)) => u64::try_from(*number).ok(),
                _ => None,
            }
        };
        let limit = number("limit");
        let quota = Quota {
            limit,
            remaining: number("remaining"),
            reset_ms: number("reset").map(|seconds| seconds * 1000),
            window_ms: window_of(policies, limit),
            is_whole: true,
            ..Quota::of("ratelimit")
        };
        if quota.remaining.is_some() || quota.reset_ms.is_some() { vec![quota] } else { Vec::new() }
    }

    /// `-Limit`, `-Remaining`, `-Reset`. Two limiters in a chain append one of each: paired by position.
    fn trio(&self, prefix: &str, family: &'static str, policies: &[Item], clock: Clock) -> Vec<Quota> {
        let field = |suffix: &str| self.get(&format!("{prefix}-{suffix}"));
        let limits: Vec<Item> = field("limit").map(lenient_list).unwrap_or_default();
        let is_chain = limits.len() > 1 && limits.iter().all(|item| item.param("w").is_none());
        let at = |text: Option<&str>, index: usize| -> Option<String> {
            let mut members = text?.split(',');
            let member = if is_chain { members.nth(index) } else { members.next() };
            member.map(|member| member.split(';').next().unwrap_or("").to_string())
        };
        // Dates hold commas, so a reset is taken whole unless there are several.
        let reset_at = |index: usize| {
            let text = field("reset")?;
            let member = if is_chain { text.split(',').nth(index)? } else { text };
            clock.reset(member.split(';').next()?)
        };
        let mut quotas = Vec::new();
        for index in 0..if is_chain { limits.len().min(MOST) } else { 1 } {
            let limit = limits.get(index).and_then(|item| match item.value {
                Bare::Whole(number) => Some(number),
                _ => None,
            });
            let used = at(field("used"), index).and_then(|text| value::count(&text));
            let after = field("reset-after").and_then(|text| value::when(text, false, clock.century_ms));
            let window = limits.get(index).filter(|_| limits.len() == 1).and_then(|item| item.count("w"));
            quotas.extend(
                Parts {
                    limit,
                    remaining: at(field("remaining"), index).and_then(|text| value::count(&text)),
                    used,
                    reset: after.or_else(|| reset_at(index)),
                    window_ms: window
                        .map(|seconds| seconds * 1000)
                        .or_else(|| window_of(limits.get(1..).unwrap_or(&[]), limit?.try_into().ok()))
                        .or_else(|| window_of(policies, limit?.try_into().ok())),
                    name: None,
                }
                .quota(family, clock),
            );
        }
        quotas
    }

    /// Quotas with a name of their own: `x-ratelimit-limit-requests`, `x-ratelimit-requests-limit`,
    /// `x-ratelimit-userlimit`, `anthropic-ratelimit-tokens-remaining`.
    fn named(&self, clock: Clock) -> Vec<Quota> {
        let mut found: Vec<(&'static str, String, Parts)> = Vec::new();
        for (name, text) in &self.fields {
            let Some((family, rest)) = FAMILIES
                .iter()
                .find_map(|&(prefix, family)| name.strip_prefix(prefix).map(|rest| (family, rest)))
            else {
                continue;
            };
            let Some((part, name)) = part_and_name(rest) else { continue };
            let at = found.iter().position(|(other, known, _)| *other == family && *known == name);
            if at.is_none() && found.len() >= MOST {
                continue;
            }
            let at = at.unwrap_or_else(|| {
                found.push((family, name.clone(), Parts::default()));
                found.len() - 1
            });
            let parts = &mut found[at].2;
            match part {
                "limit" | "max" => parts.limit = value::count(text),
                "remaining" => parts.remaining = value::count(text),
                "used" => parts.used = value::count(text),
                "reset" => parts.reset = clock.reset(text),
                _ => parts.window_ms = value::count(text).and_then(|ms| ms.try_into().ok()),
            }
        }
        let quotas = found.into_iter().map(|(family, name, parts)| {
            let window_ms = parts.window_ms.or_else(|| {
                let units = [("second", 1), ("minute", 60), ("hour", 3600), ("day", 86_400)];
                units.iter().find(|(unit, _)| *unit == name).map(|(_, seconds)| seconds * 1000)
            });
            let name = Some(name).filter(|name| !name.is_empty());
            Parts { name, window_ms, ..parts }.quota(family, clock)
        });
        quotas.flatten().collect()
    }

    fn read_rest(&self, hints: &mut Hints) {
        hints.rate_per_1000_s = self.get("x-amzn-ratelimit-limit").and_then(value::thousandths);
        hints.bucket = self.get("x-ratelimit-bucket").map(short);
        let is_global = self.get("x-ratelimit-global").is_some_and(|text| text.eq_ignore_ascii_case("true"));
        hints.scope = self.get("x-ratelimit-scope").map(short).or(is_global.then(|| "global".into()));
    }
}

/// Prefixes of named quotas, and what their family is called.
const FAMILIES: [(&str, &str); 5] = [
    ("x-ratelimit-", "x-ratelimit"),
    ("x-rate-limit-", "x-ratelimit"),
    ("anthropic-ratelimit-", "anthropic-ratelimit"),
    ("x-ms-ratelimit-", "x-ms-ratelimit"),
    ("x-hubspot-ratelimit-", "x-hubspot-ratelimit"),
];

fn is_quota_field(name: &str) -> bool {
    name.contains("ratelimit") || name.contains("rate-limit") || name.contains("call-limit")
}

/// `limit-requests`, `requests-limit`, `userlimit`: which part of which quota. Unnamed ones are [`Reader::trio`]'s,
/// but for vendors who have no trio.
fn part_and_name(rest: &str) -> Option<(&'static str, String)> {
    const PARTS: [&str; 4] = ["limit", "remaining", "reset", "used"];
    match rest {
        "max" => return Some(("max", String::new())),
        "interval-milliseconds" => return Some(("window", String::new())),
        "reset-after" | "retry-after" | "limit" | "reset" | "used" => return None,
        _ => {}
    }
    for part in PARTS {
        let behind = rest.strip_prefix(part).and_then(|name| name.strip_prefix('-'));
        let before = rest.strip_suffix(part).map(|name| name.strip_suffix('-').unwrap_or(name));
        if let Some(name) = behind.or(before)
            && !PARTS.iter().any(|part| name.ends_with(part))
        {
            return Some((part, name.to_string()));
        }
    }
    None
}

/// How instants are read.
#[derive(Clone, Copy)]
struct Clock {
    century_ms: i64,
    /// The server's now; `None` if nobody knows it.
    server_ms: Option<i64>,
    reset_is_millis: bool,
}

impl Clock {
    /// Instants mean nothing to those who do not know the time.
    fn known(self, when: When) -> Option<When> {
        (self.server_ms.is_some() || matches!(when.at, At::In(_))).then_some(when)
    }

    fn after(self, when: When) -> u64 {
        when.after(self.server_ms.unwrap_or(0))
    }

    fn reset(self, text: &str) -> Option<When> {
        self.known(value::when(text, self.reset_is_millis, self.century_ms)?)
    }
}

/// A quota as its fields say it.
#[derive(Default)]
struct Parts {
    name: Option<String>,
    limit: Option<i64>,
    remaining: Option<i64>,
    used: Option<i64>,
    reset: Option<When>,
    window_ms: Option<u64>,
}

impl Parts {
    /// `None` if nothing useful is known. A limit of −1 means that there is none.
    fn quota(self, family: &'static str, clock: Clock) -> Option<Quota> {
        if self.limit.is_some_and(|limit| limit < 0) {
            return None;
        }
        let used = self.used.and_then(|used| u64::try_from(used).ok());
        let remaining = match self.remaining {
            Some(left) if left < 0 => self.limit.map(|_| 0),
            left => left.map(|left| left as u64),
        };
        let limit =
            self.limit.map(|limit| limit as u64).or(used.zip(remaining).map(|(used, left)| used + left));
        if limit.is_none() && remaining.is_none() && self.reset.is_none() {
            return None;
        }
        let unit = self.name.clone().filter(|name| name == "requests" || name.ends_with("tokens"));
        Some(Quota {
            policy: self.name.as_deref().map(short),
            limit,
            remaining,
            used,
            reset_ms: self.reset.map(|when| clock.after(when)),
            window_ms: self.window_ms,
            unit,
            partition_key: None,
            is_whole: self.reset.is_some_and(|when| when.is_whole),
            family,
        })
    }
}

impl Quota {
    fn of(family: &'static str) -> Self {
        Self { family, ..Self::default() }
    }
}

impl Hints {
    /// Orders the quotas and finds the delay: an explicit wait, else the last reset of what is exhausted.
    fn decide(&mut self, status: u16, explicit: Option<(u64, bool, &'static str)>) {
        let rank = |quota: &Quota| match quota.reset_ms {
            reset if quota.is_exhausted() => (0, u64::MAX - reset.unwrap_or(0)),
            reset => (1 + u8::from(quota.remaining.is_none()), reset.unwrap_or(u64::MAX)),
        };
        // By insertion: there are few, and a general sort is kilobytes of code.
        for end in 1..self.quotas.len() {
            let place = self.quotas[..end].partition_point(|quota| rank(quota) <= rank(&self.quotas[end]));
            self.quotas[place..=end].rotate_right(1);
        }
        let counts = status >= 400 || (300..400).contains(&status);
        if status == 202 {
            self.poll_after_ms = explicit.map(|(ms, ..)| ms);
        }
        let waiting = self.quotas.iter().filter(|quota| quota.reset_ms.is_some());
        let exhausted =
            waiting.clone().filter(|quota| quota.is_exhausted()).max_by_key(|quota| quota.reset_ms);
        let is_refused = status == 429 || status == 503;
        let unknown = || {
            waiting.filter(|quota| is_refused && quota.remaining.is_none()).max_by_key(|quota| quota.reset_ms)
        };
        let reset = exhausted
            .or_else(unknown)
            .map(|quota| (quota.reset_ms.unwrap_or(0), quota.is_whole, quota.family));
        let chosen = match explicit.filter(|_| counts) {
            Some((0, ..)) if reset.is_some_and(|(ms, ..)| ms > 0) => reset,
            Some(explicit) => {
                self.applies_to = match status {
                    300..400 => Some(AppliesTo::Redirect),
                    413 => Some(AppliesTo::Request),
                    _ => None,
                };
                Some(explicit)
            }
            None => reset,
        };
        if let Some((ms, is_whole, source)) = chosen {
            (self.delay_ms, self.source) = (Some(ms), Some(source));
            self.is_whole = is_whole && status >= 300;
        }
    }
}

/// The name of a quota: a string, or leniently a token.
fn name_of(item: &Item) -> Option<String> {
    match &item.value {
        Bare::Text(name) | Bare::Token(name) => Some(short(name)),
        _ => None,
    }
}

fn bytes(bare: Option<&Bare>) -> Option<String> {
    match bare {
        Some(Bare::Bytes(bytes)) => Some(short(bytes)),
        _ => None,
    }
}

fn of_policy(item: &Item, policy: Option<String>) -> Quota {
    let unit = match item.param("qu") {
        Some(Bare::Text(unit) | Bare::Token(unit)) => Some(short(unit)),
        _ => None,
    };
    Quota {
        policy,
        limit: item.count("q"),
        window_ms: item.count("w").map(|seconds| seconds * 1000),
        unit,
        partition_key: bytes(item.param("pk")),
        ..Quota::of("ratelimit")
    }
}

/// The window of the old policy (`100;w=10`) whose value is the limit.
fn window_of(policies: &[Item], limit: Option<u64>) -> Option<u64> {
    let limit = limit?;
    let policy = policies.iter().find(|item| item.value == Bare::Whole(limit as i64))?;
    policy.count("w").map(|seconds| seconds * 1000)
}

/// A list as [`structured::list`] reads it; what is no structured field may still begin with a number.
fn lenient_list(text: &str) -> Vec<Item> {
    structured::list(text).unwrap_or_else(|| {
        let first = text.split([',', ';']).next().and_then(value::count);
        first.map(|number| Item::plain(Bare::Whole(number))).into_iter().collect()
    })
}

/// Names are for people: a hostile one is cut.
fn short(text: &str) -> String {
    text.chars().take(200).collect()
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

impl Serialize for Hints {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("delayMs", &Number(self.delay_ms))?;
        map.serialize_entry("source", &self.source)?;
        if let Some(quota) = self.quota() {
            quota.entries(&mut map)?;
        }
        map.serialize_entry("quotas", &self.quotas)?;
        number(&mut map, "pollAfterMs", self.poll_after_ms)?;
        if let Some(rate) = self.rate_per_1000_s {
            map.serialize_entry("ratePerS", &(rate as f64 / 1000.0))?;
        }
        text(&mut map, "appliesTo", self.applies_to.map(AppliesTo::name))?;
        text(&mut map, "scope", self.scope.as_deref())?;
        text(&mut map, "bucket", self.bucket.as_deref())?;
        if self.is_whole {
            map.serialize_entry("isWhole", &true)?;
        }
        if self.is_ignored {
            map.serialize_entry("ignored", &true)?;
        }
        if self.is_cached {
            map.serialize_entry("cached", &true)?;
        }
        map.end()
    }
}

impl Serialize for Quota {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.entries(&mut map)?;
        map.end()
    }
}

impl Quota {
    fn entries<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        text(map, "policy", self.policy.as_deref())?;
        number(map, "limit", self.limit)?;
        number(map, "remaining", self.remaining)?;
        number(map, "used", self.used)?;
        number(map, "resetMs", self.reset_ms)?;
        number(map, "windowMs", self.window_ms)?;
        text(map, "unit", self.unit.as_deref())?;
        text(map, "partitionKey", self.partition_key.as_deref())
    }
}

/// A whole number as JavaScript has it.
struct Number(Option<u64>);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.map(|number| number as f64).serialize(serializer)
    }
}

fn number<M: SerializeMap>(map: &mut M, key: &'static str, number: Option<u64>) -> Result<(), M::Error> {
    if number.is_some() { map.serialize_entry(key, &Number(number)) } else { Ok(()) }
}

fn text<M: SerializeMap>(map: &mut M, key: &'static str, text: Option<&str>) -> Result<(), M::Error> {
    if text.is_some() { map.serialize_entry(key, &text) } else { Ok(()) }
}
