//! The parts of `retry` that the engine reads: after what a request is sent again, and how long a wait it
//! takes.
//!
//! `when` is a function of the driver's.

use super::{
    reader::{Fields, Problems},
    table::{self, Section},
};
use crate::{
    policy::retry::{Config, Long, Methods},
    time::Span,
    value::Value,
};

/// The settings without any options.
pub(super) fn usual() -> Config {
    Config {
        status_codes: const { table::codes(Section::Retry, "statusCodes") }.into(),
        max_retry_after: Span::from_millis(const { table::number(Section::Retry, "maxRetryAfter") }),
        long_retry_after: long(const { table::word(Section::Retry, "longRetryAfter") }),
        limit: 0,
        methods: Methods::Usual(const { table::words(Section::Retry, "methods") }),
    }
}

/// Reads `retry`.
pub(super) fn read(value: Value, path: &str, problems: &mut Problems) -> Config {
    let usual = usual();
    let mut fields = Fields::of(value, path.into(), Section::Retry, problems);
    let limit = fields.number_required("limit").unwrap_or(0.0);
    let methods = fields.texts("methods");
    fields.function("when");
    let config = Config {
        status_codes: fields.codes("statusCodes").unwrap_or(usual.status_codes),
        max_retry_after: fields.millis("maxRetryAfter").unwrap_or(usual.max_retry_after),
        long_retry_after: fields.word("longRetryAfter").map_or(usual.long_retry_after, long),
        limit: limit as u32,
        methods: methods.map_or(usual.methods, Methods::Typed),
    };
    fields.finish();
    config
}

fn long(word: &str) -> Long {
    Long::ALL.iter().find(|(_, name)| *name == word).map_or(Long::Fail, |(long, _)| *long)
}
