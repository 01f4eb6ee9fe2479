//! The interface `reading`: what servers say, for hosts that decide for themselves.

use autothrottle::{
    boundary::{flags, nanos::wall, parse_crawl_delay},
    headers::{AppliesTo, Context, Hints, Quota as QuotaHint},
};

use crate::{
    Component,
    bindings::exports::autothrottle::engine::reading::{Guest, Limits, Quota, Units, Waiter},
    report::{lines, units_of},
};

impl Guest for Component {
    fn limits_of(status: u16, fields: Vec<(String, String)>, units: Units, wall_ns: Option<u64>) -> Limits {
        let units = units_of(units);
        let context = Context {
            status,
            wall_ms: wall_ns.map(|_| wall(wall_ns) as i64),
            reset_is_millis: units & flags::RESET_IS_MILLIS > 0,
            retry_after_is_millis: units & flags::RETRY_AFTER_IS_MILLIS > 0,
        };
        let hints = Hints::from_lines(&lines(&fields), context);
        Limits {
            delay: hints.delay_ms.map(nanos),
            source: hints.source.map(Into::into),
            quotas: hints.quotas.into_iter().map(quota).collect(),
            poll_after: hints.poll_after_ms.map(nanos),
            rate: hints.rate_per_million_s.map(|rate| rate as f64 / 1e6),
            applies_to: hints.applies_to.map(|to| match to {
                AppliesTo::Redirect => Waiter::Redirect,
                AppliesTo::Request => Waiter::Request,
            }),
            scope: hints.scope,
            bucket: hints.bucket,
            whole: hints.is_whole,
            ignored: hints.is_ignored,
            cached: hints.is_cached,
        }
    }

    fn crawl_delay(robots: Vec<u8>, user_agent: String) -> Option<u64> {
        let ms = parse_crawl_delay(&robots, &user_agent);
        (!ms.is_nan()).then(|| (ms * 1e6).ceil() as u64)
    }
}

fn quota(told: QuotaHint) -> Quota {
    Quota {
        policy: told.policy,
        limit: told.limit,
        remaining: told.remaining,
        used: told.used,
        reset: told.reset_ms.map(nanos),
        window: told.window_ms.map(nanos),
        unit: told.unit,
        partition_key: told.partition_key,
    }
}

fn nanos(ms: u64) -> u64 {
    ms.saturating_mul(1_000_000)
}
