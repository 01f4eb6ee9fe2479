//! How a request ended, from the component's words to the façade's numbers.

use autothrottle::boundary::{
    Outcome, STRIDE, flags,
    nanos::{millis, span, wall},
    push_field,
};

use crate::bindings::exports::autothrottle::engine::throttling::{
    Answer, Failure, Hints, Report, ScopeOutcome, Units,
};

/// An outcome that owns its text and its lists.
pub struct Reported {
    answer: f64,
    latency_ms: f64,
    flags: u32,
    cost: f64,
    wall_ms: f64,
    lines: String,
    hint: [f64; 5],
    scopes: Vec<f64>,
}

impl Reported {
    pub fn new(answer: Answer, latency: Option<u64>, how: u32, report: Option<Report>) -> Self {
        let plain = Self {
            answer: number_of(answer),
            latency_ms: latency.map_or(f64::NAN, millis),
            flags: how,
            cost: f64::NAN,
            wall_ms: f64::NAN,
            lines: String::new(),
            hint: [f64::NAN; 5],
            scopes: Vec::new(),
        };
        let Some(report) = report else { return plain };
        let verdict = report.bad.map_or(0, |bad| if bad { flags::BAD } else { flags::GOOD });
        let keep = if report.adjust_delay { 0 } else { flags::KEEP_DELAY };
        let named = if report.named_only { flags::NAMED_ONLY } else { 0 };
        let hinted = if report.hints.is_some() { flags::HINTED } else { 0 };
        Self {
            flags: how | verdict | keep | hinted | named | units_of(report.units),
            cost: number(report.cost),
            wall_ms: wall(report.wall),
            lines: lines(&report.fields),
            hint: report.hints.map_or([f64::NAN; 5], hint_of),
            scopes: report.scopes.iter().flat_map(scope_of).collect(),
            ..plain
        }
    }

    pub fn outcome(&self) -> Outcome<'_> {
        Outcome {
            lines: &self.lines,
            wall_ms: self.wall_ms,
            hint: &self.hint,
            scopes: &self.scopes,
            ..Outcome::new(self.answer, self.latency_ms, self.cost, self.flags)
        }
    }
}

/// Fields as `name: value` lines.
pub fn lines(fields: &[(String, String)]) -> String {
    let mut lines = String::new();
    for (name, value) in fields {
        push_field(&mut lines, name, value);
    }
    lines
}

/// The units as bits of the façade's.
pub fn units_of(units: Units) -> u32 {
    let bit = |unit, flag| if units.contains(unit) { flag } else { 0 };
    bit(Units::RESET_IS_MILLIS, flags::RESET_IS_MILLIS)
        | bit(Units::RETRY_AFTER_IS_MILLIS, flags::RETRY_AFTER_IS_MILLIS)
}

/// A status below 100 is none: the façade uses those numbers for failures.
fn number_of(answer: Answer) -> f64 {
    match answer {
        Answer::Response(status) if status >= 100 => f64::from(status),
        Answer::Failed(Failure::Connection) => 0.0,
        Answer::Failed(Failure::Timeout) => 1.0,
        Answer::Response(_) | Answer::Ignored => f64::NAN,
    }
}

/// The wait, the units left, their reset, units per window, and the window.
fn hint_of(hints: Hints) -> [f64; 5] {
    let [delay, reset, window] = [hints.delay, hints.reset, hints.window].map(|of| of.map_or(f64::NAN, span));
    let [remaining, limit] = [hints.remaining, hints.limit].map(number);
    [delay, remaining, reset, limit, window]
}

fn scope_of(own: &ScopeOutcome) -> [f64; STRIDE] {
    let flag = |flag: bool| f64::from(u8::from(flag));
    let [hold, reset] = [own.delay, own.reset].map(|of| of.map_or(f64::NAN, span));
    let bad = own.bad.map_or(f64::NAN, flag);
    let [left, cost] = [own.remaining, own.cost].map(number);
    [own.scope as f64, flag(own.ignored), bad, hold, left, reset, cost]
}

fn number(of: Option<f64>) -> f64 {
    of.unwrap_or(f64::NAN)
}
