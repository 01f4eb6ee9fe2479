//! Quotas in the IETF's fields `RateLimit` and `RateLimit-Policy`: draft-ietf-httpapi-ratelimit-headers-08 to
//! -11, and draft -07, where `RateLimit` is a dictionary. (Up to draft -06 there are three fields: see
//! [`super::vendors`].)
//!
//! `remaining` that is missing is unknown, not zero.

use super::{
    Quota,
    dialects::RATE_LIMIT,
    fields::{Fields, MOST_QUOTAS, name},
    structured::{self, Bare, Item, Param},
};

/// The quotas of `RateLimit`; without that field, those that `RateLimit-Policy` names.
pub(super) fn quotas(fields: &Fields, policies: &[Item]) -> Vec<Quota> {
    let Some(text) = fields.get("ratelimit") else {
        let named = policies.iter().filter(|item| item.value.name().is_some());
        return named.take(MOST_QUOTAS).map(of_policy).collect();
    };
    let is_quota = |item: &Item| item.value.name().is_some();
    let is_told = |item: &Item| item.param(Param::R).is_some() || item.param(Param::T).is_some();
    match structured::list(text) {
        Some(items) if items.iter().all(is_quota) && items.iter().any(is_told) => {
            items.iter().take(MOST_QUOTAS).map(|item| of_item(item, policies)).collect()
        }
        _ => of_dictionary(text, policies).into_iter().collect(),
    }
}

/// The window of the old policy (`100;w=10`) whose value is the limit.
pub(super) fn window_of(policies: &[Item], limit: Option<u64>) -> Option<u64> {
    let limit = Bare::Whole(i64::try_from(limit?).ok()?);
    policies.iter().filter(|policy| policy.value == limit).find_map(|policy| policy.seconds(Param::W))
}

/// `"burst";r=0;t=4`, with the policy of that name.
fn of_item(item: &Item, policies: &[Item]) -> Quota {
    let policy = policies.iter().find(|policy| policy.value == item.value);
    let base = policy.map_or(Quota::default(), of_policy);
    Quota {
        policy: base.policy.or_else(|| item.value.name().map(unescaped)),
        remaining: item.param(Param::R).and_then(left),
        reset_ms: item.seconds(Param::T),
        partition_key: partition(item).or(base.partition_key),
        is_whole: true,
        family: RATE_LIMIT,
        ..base
    }
}

/// `"burst";q=100;w=60;qu="requests";pk=:YQ==:`.
fn of_policy(item: &Item) -> Quota {
    Quota {
        policy: item.value.name().map(unescaped),
        limit: item.count(Param::Q),
        window_ms: item.seconds(Param::W),
        unit: item.param(Param::Qu).and_then(Bare::name).map(unescaped),
        partition_key: partition(item),
        family: RATE_LIMIT,
        ..Quota::default()
    }
}

/// `limit=100, remaining=50, reset=5`.
fn of_dictionary(text: &[u8], policies: &[Item]) -> Option<Quota> {
    let members = structured::dictionary(text)?;
    let value = |key: &[u8]| members.iter().rev().find(|member| member.key == key).map(|member| member.value);
    let count = |key: &[u8]| value(key)?.whole().and_then(|number| u64::try_from(number).ok());
    let limit = count(b"limit");
    let quota = Quota {
        limit,
        remaining: value(b"remaining").and_then(left),
        reset_ms: count(b"reset").map(|seconds| seconds * 1000),
        window_ms: window_of(policies, limit),
        is_whole: true,
        family: RATE_LIMIT,
        ..Quota::default()
    };
    (quota.remaining.is_some() || quota.reset_ms.is_some()).then_some(quota)
}

/// The amount that is left; below zero is used up.
fn left(value: Bare) -> Option<u64> {
    value.whole().map(|number| u64::try_from(number).unwrap_or(0))
}

fn partition(item: &Item) -> Option<String> {
    item.param(Param::Pk).and_then(Bare::bytes).map(name)
}

/// A string of a structured field without its escapes (RFC 9651 §4.2.5).
fn unescaped(text: &[u8]) -> String {
    if !text.contains(&b'\\') {
        return name(text);
    }
    let mut is_escape = false;
    let is_shown = |&byte: &u8| {
        is_escape = byte == b'\\' && !is_escape;
        !is_escape
    };
    name(&text.iter().copied().filter(is_shown).collect::<Vec<u8>>())
}
