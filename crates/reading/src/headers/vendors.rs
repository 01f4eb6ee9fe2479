//! Quotas in the fields of vendors, and of the IETF's drafts up to -06: one table, one reader.
//!
//! A field of that kind is a family's prefix and the name of a part, with the quota's own name behind, before
//! or glued on: `X-RateLimit-Remaining`, `x-ratelimit-limit-requests`, `anthropic-ratelimit-tokens-reset`,
//! `X-RateLimit-UserLimit`. Fields of one family and name make one quota.
//!
//! Two limiters in a chain append one value each (`10, 100`), paired by position, and dates hold commas as
//! well. One quota told in two families is one quota. A limit of −1 means that there is none.

use super::{
    Hints, Quota,
    dialects::{FAMILIES, PARTS, Part, RATE_LIMIT, WINDOWS, X},
    fields::{Fields, MOST_QUOTAS, lower, name},
    rate_limit, single_vendor,
    structured::{self, Item, Param},
    value::{self, Clock},
};
use crate::scan::{cut, is, strip, strip_end};

/// The fields of one quota.
struct Group<'a, 'b> {
    family: &'static str,
    name: &'a [u8],
    /// By [`Part`]; empty where there is none.
    texts: [&'b [u8]; 9],
}

/// How a reader of groups reads.
#[derive(Clone, Copy)]
pub(super) struct Reading<'a> {
    pub clock: Clock,
    /// Plain numbers in resets are milliseconds.
    pub reset_is_millis: bool,
    /// The items of `RateLimit-Policy`.
    pub policies: &'a [Item<'a>],
}

/// Adds what vendors' fields say to what `RateLimit` said.
pub(super) fn read(fields: &Fields, reading: Reading, hints: &mut Hints) {
    let groups = groups(fields);
    let is_old_draft = |group: &&Group| group.family == RATE_LIMIT;
    if hints.quotas.is_empty()
        && let Some(group) = groups.iter().find(is_old_draft)
    {
        group.quotas(reading, hints);
    }
    let standard = hints.quotas.len();
    // A policy alone does not say what is left.
    let is_told = hints.quotas.iter().any(|quota| quota.remaining.is_some() || quota.reset_ms.is_some());
    for group in groups.iter().filter(|group| !is_old_draft(group)) {
        if !is_told || group.family != X || !group.name.is_empty() {
            group.quotas(reading, hints);
            hints.merge(standard);
        }
        hints.rate_per_million_s = hints.rate_per_million_s.or_else(|| group.rate());
    }
    single_vendor::read(fields, &mut hints.quotas);
    let amazon = fields.get("x-amzn-ratelimit-limit").and_then(value::rate);
    hints.rate_per_million_s = amazon.or(hints.rate_per_million_s);
    hints.bucket = fields.get("x-ratelimit-bucket").map(name);
    let is_global = fields.get("x-ratelimit-global").is_some_and(|text| is(text, "true"));
    hints.scope = fields.get("x-ratelimit-scope").map(name).or(is_global.then(|| "global".into()));
}

fn groups<'a, 'b>(fields: &'b Fields<'a>) -> Vec<Group<'a, 'b>> {
    let mut groups: Vec<Group<'a, 'b>> = Vec::new();
    for (field, text) in fields.iter() {
        let of_family = FAMILIES.iter().find_map(|&(prefix, family)| Some((family, strip(field, prefix)?)));
        let of_family = of_family.and_then(|(family, rest)| Some((family, part_and_name(rest)?)));
        let known = of_family.or_else(|| Some((X, single_vendor::part_and_name(field)?)));
        let Some((family, (part, name))) = known else { continue };
        let is_same = |group: &&mut Group| group.family == family && group.name.eq_ignore_ascii_case(name);
        if let Some(group) = groups.iter_mut().find(is_same) {
            let known = &mut group.texts[part as usize];
            *known = if known.is_empty() { text } else { known };
        } else if groups.len() < MOST_QUOTAS {
            let mut texts = [&b""[..]; 9];
            texts[part as usize] = text;
            groups.push(Group { family, name, texts });
        }
    }
    groups
}

/// `limit`, `limit-requests`, `requests-limit`, `userlimit`: which part of which quota.
fn part_and_name(rest: &[u8]) -> Option<(Part, &[u8])> {
    let ends_with_part =
        |name: &[u8]| PARTS.iter().any(|(word, _, has_name)| *has_name && strip_end(name, word).is_some());
    for (word, part, has_name) in PARTS {
        if is(rest, word) {
            return Some((part, b""));
        }
        let behind = strip(rest, word).and_then(|name| name.strip_prefix(b"-"));
        let before = || strip_end(rest, word).map(|name| name.strip_suffix(b"-").unwrap_or(name));
        if has_name
            && let Some(name) = behind.or_else(before)
            && !ends_with_part(name)
        {
            return Some((part, name));
        }
    }
    None
}

impl Group<'_, '_> {
    /// Adds one quota; more where limiters in a chain appended a value each.
    fn quotas(&self, reading: Reading, hints: &mut Hints) {
        let limits = structured::list(self.text(Part::Limit)).unwrap_or_default();
        // `10, 10;w=1` is no chain, but a limit and its policies.
        let is_chain = limits.len() > 1 && limits.iter().all(|item| item.param(Param::W).is_none());
        for index in 0..if is_chain { limits.len().min(MOST_QUOTAS) } else { 1 } {
            if hints.quotas.len() < MOST_QUOTAS {
                hints.quotas.extend(self.quota(reading, &limits, is_chain.then_some(index)));
            }
        }
    }

    /// `None` if no useful value is known. A limit of −1 means that there is none.
    fn quota(&self, reading: Reading, limits: &[Item], index: Option<usize>) -> Option<Quota> {
        let count = |part| value::count(member(self.text(part), index.unwrap_or(0)));
        let price = self.price();
        let used = count(Part::Used).and_then(|used| u64::try_from(used).ok());
        let remaining = count(Part::Remaining).map(|left| u64::try_from(left).unwrap_or(0) / price);
        let limit = match count(Part::Limit) {
            Some(limit) => Some(u64::try_from(limit).ok()? / price),
            None => used.zip(remaining).map(|(used, left)| used + left),
        };
        let reset = reading.clock.wait(self.text(Part::ResetAfter), false).or_else(|| {
            // Dates hold commas, so a reset is taken whole unless there are several.
            let text = self.text(Part::Reset);
            let text = index.map_or(text, |index| member(text, index));
            reading.clock.wait(cut(text, b';').0, reading.reset_is_millis)
        });
        if limit.is_none() && remaining.is_none() && reset.is_none() {
            return None;
        }
        let policy = Some(self.name).filter(|name| !name.is_empty()).map(lower);
        let is_unit = is(self.name, "requests") || strip_end(self.name, "tokens").is_some();
        Some(Quota {
            unit: policy.clone().filter(|_| is_unit),
            policy,
            limit,
            remaining,
            used,
            reset_ms: reset.map(|wait| wait.ms),
            window_ms: self.window(limit, limits, reading),
            partition_key: None,
            is_whole: reset.is_some_and(|wait| wait.is_whole),
            over_ms: reset.map_or(0, |wait| wait.over_ms),
            family: self.family,
        })
    }

    fn window(&self, limit: Option<u64>, limits: &[Item], reading: Reading) -> Option<u64> {
        let span = || reading.clock.wait(self.text(Part::Interval), false).map(|wait| wait.ms);
        let told = value::count(self.text(Part::Window)).and_then(|ms| u64::try_from(ms).ok()).or_else(span);
        let named = || WINDOWS.iter().find(|(word, _)| is(self.name, word)).map(|&(_, ms)| ms);
        let unnamed = || {
            rate_limit::window_of(limits, limit).or_else(|| rate_limit::window_of(reading.policies, limit))
        };
        told.or_else(named).or_else(|| if self.name.is_empty() { unnamed() } else { None })
    }

    /// Requests in 1,000,000 seconds.
    fn rate(&self) -> Option<u64> {
        value::rate(self.text(Part::Rate)).map(|rate| rate / self.price())
    }

    /// Units that one request costs.
    fn price(&self) -> u64 {
        value::count_up(self.text(Part::Price)).unwrap_or(1).max(1)
    }

    fn text(&self, part: Part) -> &[u8] {
        self.texts[part as usize]
    }
}

impl Hints {
    /// A quota that the first `standard` ones tell already lends its window and goes: Kong sends the limit of
    /// its window as `RateLimit-Limit: 3` and as `X-RateLimit-Limit-Minute: 3`.
    fn merge(&mut self, standard: usize) {
        if standard == 0 || self.quotas.len() <= standard {
            return;
        }
        let Some(last) = self.quotas.last() else { return };
        let (limit, window_ms) = (last.limit, last.window_ms);
        let is_same = |told: &&mut Quota| window_ms.is_some() && told.limit == limit;
        if let Some(told) = self.quotas.iter_mut().take(standard).find(is_same) {
            told.window_ms = told.window_ms.or(window_ms);
            self.quotas.pop();
        }
    }
}

/// A member of a list, without its parameters.
fn member(text: &[u8], index: usize) -> &[u8] {
    let mut left = Some(text);
    for _ in 0..index {
        left = left.and_then(|text| cut(text, b',').1);
    }
    cut(cut(left.unwrap_or_default(), b',').0, b';').0
}
