//! Times of hosts that count whole nanoseconds, and the façade's milliseconds.
//!
//! A wake-up one nanosecond too early makes a host spin. Marks are therefore cut to whole microseconds, which
//! the engine's milliseconds carry exactly both ways (`src/time.rs`), and spans are rounded up.

/// A mark as milliseconds, rounded down to whole microseconds.
pub fn now(ns: u64) -> f64 {
    (ns / 1000) as f64 / 1000.0
}

/// A span as milliseconds, rounded up to whole microseconds; a year is the most.
pub fn span(ns: u64) -> f64 {
    (ns.div_ceil(1000) as f64 / 1000.0).min(crate::LONGEST_MS)
}

/// A span that was measured, as milliseconds.
pub fn millis(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// Wall time as milliseconds; NaN is unknown.
pub fn wall(ns: Option<u64>) -> f64 {
    ns.map_or(f64::NAN, |ns| (ns / 1_000_000) as f64)
}

/// Milliseconds of the engine's, an instant or a span of whole microseconds, as nanoseconds.
pub fn of_mark(ms: f64) -> u64 {
    ((ms * 1000.0).round() as u64).saturating_mul(1000)
}

/// Any milliseconds as nanoseconds, rounded to the nearest.
pub fn of_span(ms: f64) -> u64 {
    (ms * 1e6).round() as u64
}
