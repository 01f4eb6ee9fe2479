//! Fields of single vendors whose names follow no family: which part of which quota each one is
//! ([`FIELDS`]), and those that hold several quotas at once.
//!
//! A window that moves gives a unit back when its oldest request leaves it, a wait that no field says. A
//! quota that is used up without a reset therefore holds no request. A refusal, and its `Retry-After`, do.

use super::{
    Quota,
    dialects::{FIELDS, Part, X},
    fields::{Fields, MOST_QUOTAS, lower},
    value,
};
use crate::scan::{Scan, cut, is, strip, strip_end};

/// Which part of which quota a field is.
pub(super) fn part_and_name(field: &[u8]) -> Option<(Part, &'static [u8])> {
    FIELDS.iter().find(|(known, ..)| is(field, known)).map(|&(_, name, part)| (part, name.as_bytes()))
}

/// Adds quotas that are not a field for each part.
pub(super) fn read(fields: &Fields, quotas: &mut Vec<Quota>) {
    for (field, text) in fields.iter() {
        let counts = if strip_end(field, "-rate-limit").is_some() {
            of_name(fields, field, "-count") // Riot
        } else {
            strip(field, "x-rate-limit-").and_then(|_| of_name(fields, field, "-state")) // Path of Exile
        };
        if let Some(counts) = counts {
            let counts = counts.split(|&byte| byte == b',');
            for (limit, count) in text.split(|&byte| byte == b',').zip(counts) {
                add(pair(limit, count), quotas);
            }
        }
        add(single(field, text), quotas);
    }
}

fn add(quota: Option<Quota>, quotas: &mut Vec<Quota>) {
    if quotas.len() < MOST_QUOTAS {
        quotas.extend(quota);
    }
}

/// The value of the field whose name has this behind it.
fn of_name<'a>(fields: &'a Fields, field: &[u8], behind: &str) -> Option<&'a [u8]> {
    let other = |name: &[u8]| strip_end(name, behind).is_some_and(|name| name.eq_ignore_ascii_case(field));
    fields.iter().find(|(name, _)| other(name)).map(|(_, text)| text)
}

/// One of `20:1,100:120` beside one of `1:1,2:120`: a limit and what is used, each with the seconds of its
/// window. A third number is a refusal's length, and for how long it still lasts.
fn pair(limit: &[u8], count: &[u8]) -> Option<Quota> {
    let (limit, seconds, _) = numbers(limit)?;
    let (used, _, lasts) = numbers(count)?;
    let lasts = lasts.filter(|&seconds| seconds > 0).map(|seconds| seconds * 1000);
    let remaining = if lasts.is_some() { 0 } else { limit.saturating_sub(used) };
    Some(Quota {
        limit: Some(limit),
        used: Some(used),
        remaining: Some(remaining),
        window_ms: Some(seconds * 1000),
        reset_ms: lasts,
        is_whole: true,
        family: X,
        ..Quota::default()
    })
}

/// `45:60`, `45:60:120`.
fn numbers(text: &[u8]) -> Option<(u64, u64, Option<u64>)> {
    let (first, rest) = cut(text, b':');
    let (second, third) = cut(rest?, b':');
    Some((value::count_up(first)?, value::count_up(second)?, third.and_then(value::count_up)))
}

/// A quota in one field.
fn single(field: &[u8], text: &[u8]) -> Option<Quota> {
    let mut quota = Quota { family: X, ..Quota::default() };
    if is(field, "x-shopify-shop-api-call-limit") {
        shopify(text, &mut quota)?;
    } else if let Some(endpoint) = strip(field, "zendesk-ratelimit-") {
        quota.policy = Some(lower(endpoint));
        zendesk(text, &mut quota)?;
    } else {
        binance(field, text, &mut quota)?;
    }
    Some(quota)
}

/// `x-mbx-used-weight-1m: 100`: used in a minute.
fn binance(field: &[u8], text: &[u8], quota: &mut Quota) -> Option<()> {
    let counted = strip(field, "x-mbx-")?;
    let weight = strip(counted, "used-weight-").map(|rest| (rest, "weight"));
    let (rest, unit) = weight.or_else(|| strip(counted, "order-count-").map(|rest| (rest, "orders")))?;
    let mut scan = Scan(rest);
    let count = scan.decimal()?.whole;
    let unit_ms = match scan.take(|_| true) {
        b"s" | b"S" => 1000,
        b"m" | b"M" => 60_000,
        b"h" | b"H" => 3_600_000,
        b"d" | b"D" => 86_400_000,
        _ => return None,
    };
    quota.used = value::count_up(text);
    quota.window_ms = Some(count.saturating_mul(unit_ms));
    quota.unit = Some(unit.into());
    Some(())
}

/// `32/40`: used of limit.
fn shopify(text: &[u8], quota: &mut Quota) -> Option<()> {
    let (used, limit) = cut(text, b'/');
    let (used, limit) = (value::count_up(used)?, value::count_up(limit?)?);
    quota.used = Some(used);
    quota.limit = Some(limit);
    quota.remaining = Some(limit.saturating_sub(used));
    Some(())
}

/// `total=100; remaining=99; resets=48`, in seconds.
fn zendesk(text: &[u8], quota: &mut Quota) -> Option<()> {
    for part in text.split(|&byte| byte == b';') {
        let (word, number) = cut(part.trim_ascii(), b'=');
        let told = match word {
            b"total" => &mut quota.limit,
            b"remaining" => &mut quota.remaining,
            b"resets" => &mut quota.reset_ms,
            _ => return None,
        };
        *told = Some(value::count_up(number?)?);
    }
    quota.reset_ms = Some(quota.reset_ms? * 1000);
    quota.is_whole = true;
    quota.remaining.map(|_| ())
}
