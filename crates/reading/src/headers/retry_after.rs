//! The explicit wait: `Retry-After` (RFC 9110 §10.2.3) and its relatives, in one table.
//!
//! `Retry-After-short` is `NestJS`'s: a suffix, which `retry-after-ms` has not. Several fields may say the
//! same in other words, one of which is longer. The precise fields come first, and a field that makes no
//! sense is passed over.

use super::{
    fields::Fields,
    value::{Clock, Wait},
};
use crate::scan::strip;

/// The start of a name, whether it is all of it, what its source is called, whether plain numbers are
/// milliseconds.
const FIELDS: [(&str, bool, &str, bool); 7] = [
    ("retry-after-ms", true, "retry-after-ms", true), // OpenAI
    ("x-ms-retry-after-ms", true, "x-ms-retry-after-ms", true), // Azure Cosmos DB
    ("x-amz-retry-after", true, "x-amz-retry-after", true), // AWS
    ("retry-after", true, "retry-after", false),
    ("retry-after-", false, "retry-after-*", false), // NestJS: one for each named throttler
    ("x-ratelimit-retry-after", false, "x-ratelimit-retry-after", false),
    ("x-rate-limit-retry-after", false, "x-ratelimit-retry-after", false),
];

/// The wait of the first precise field that makes sense, else the longest of the others; and its source.
/// `is_millis`: plain numbers are milliseconds in all of them.
pub(super) fn read(fields: &Fields, clock: Clock, is_millis: bool) -> Option<(Wait, &'static str)> {
    let mut longest: Option<(Wait, &'static str)> = None;
    for (start, is_all, source, in_millis) in FIELDS {
        for (name, text) in fields.iter() {
            if strip(name, start).is_some_and(|rest| rest.is_empty() || !is_all)
                && let Some(wait) = clock.latest(text, is_millis || in_millis)
                && longest.is_none_or(|(other, _)| wait.ms > other.ms)
            {
                longest = Some((wait, source));
            }
        }
        if in_millis && longest.is_some() {
            return longest;
        }
    }
    longest
}
