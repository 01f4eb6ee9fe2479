//! How a request ended, as far as the engine wants to know.

use crate::{
    headers::Hints,
    policy::{quota::Cost, server::QuotaReport},
    record::words,
    time::Span,
};

/// The argument of `settle`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Feedback {
    /// The answer, if any.
    pub answer: Answer,
    /// From send to response headers in milliseconds; `None` if it was not measured.
    pub latency_ms: Option<f64>,
    /// Whether the latency may move `AutoThrottle`'s delay; Scrapy's `autothrottle_dont_adjust_delay` is the
    /// opposite.
    pub adjust_delay: bool,
    /// The real cost of the request; `None` if it cost what was expected.
    pub cost: Option<Cost>,
    /// Whether the answer is bad, if the caller knows better than the status and the settings.
    pub is_bad: Option<bool>,
    /// The wait and the quota that the server stated.
    pub hint: Hint,
}

/// The answer of the server, or why there was none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A response came.
    Response {
        /// Its status.
        status: u16,
    },
    /// No response came. Never a sample of latency.
    Failed(Failure),
    /// It teaches no pace: the caller gave up, the response came from a cache.
    Ignored,
}

words! {
    /// Why no response came.
    pub enum Failure {
        /// The connection failed.
        Connection = "connection",
        /// It took too long.
        Timeout = "timeout",
    }
}

/// A server's hints, in spans.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Hint {
    /// Not to send for so long, with a second more where the server speaks whole seconds.
    pub hold: Option<Span>,
    /// The same as the server said it.
    pub asked: Option<Span>,
    /// Whether it said so by a quota that is used up, on an answer that was no refusal.
    pub is_quota: bool,
    /// Whether a 403 refuses the pace: it counts as a 429.
    pub is_limit: bool,
    /// The rest of its quota.
    pub report: QuotaReport,
    /// Whether the pace in it may be off by half.
    pub is_rough: bool,
    /// Whether a cache answered (`Age` above 0): the latency is not the server's.
    pub is_cached: bool,
}

impl Hint {
    /// Whether the server asked for no wait, no pace and no quota.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.hold.is_none() && self.report.left.is_none() && self.report.pace.is_none()
    }

    /// The meaning of hints for a scope. A second is added where the server speaks whole seconds.
    pub fn of(hints: &Hints) -> Self {
        let span = |ms: u64| Span::from_millis(ms as f64);
        let quota = hints.quotas.iter().find(|quota| quota.counts_requests() && quota.remaining.is_some());
        let left = quota.and_then(|quota| {
            Some((Cost::from_units(quota.remaining? as f64)?, span(quota.resets_in_ms()?)))
        });
        let window = quota.and_then(|quota| quota.window_ms).map(span);
        let is_quota = !hints.is_whole && hints.source.is_some_and(|source| source.ends_with("ratelimit"));
        let (pace, is_rough) =
            hints.pace_ms().map_or((None, false), |(ms, is_rough)| (Some(Span::from_millis(ms)), is_rough));
        let asked = hints.delay_ms.filter(|_| hints.applies_to.is_none()).map(span);
        Self {
            hold: hints.hold_ms().map(span),
            asked,
            is_quota,
            is_limit: hints.is_limit,
            report: QuotaReport { left, window, pace },
            is_rough,
            is_cached: hints.is_cached,
        }
    }
}

impl Feedback {
    /// A response with this status; the rest is unknown.
    pub const fn response(status: u16) -> Self {
        Self { answer: Answer::Response { status }, ..Self::IGNORED }
    }

    /// Reads a boundary of plain numbers: a status from 100 to 599 is a response, 0 a connection that failed,
    /// 1 a timeout, anything else teaches no pace. A number that is no latency or no cost is unknown. `bad`
    /// above 0 is a bad answer whatever its status, 0 is none, NaN is unknown.
    #[inline]
    pub fn from_numbers(status: f64, latency_ms: f64, adjust_delay: bool, cost: f64, bad: f64) -> Self {
        let answer = if (100.0..600.0).contains(&status) {
            Answer::Response { status: status as u16 }
        } else if status == 0.0 {
            Answer::Failed(Failure::Connection)
        } else if status == 1.0 {
            Answer::Failed(Failure::Timeout)
        } else {
            Answer::Ignored
        };
        let latency_ms = (latency_ms >= 0.0 && latency_ms.is_finite()).then_some(latency_ms);
        let is_bad = (!bad.is_nan()).then_some(bad > 0.0);
        let hint = Hint::default(); // a copy of all that is unknown would be a call into WebAssembly's runtime
        let cost = if cost.is_nan() { None } else { Cost::from_units(cost) };
        Self { answer, latency_ms, adjust_delay, cost, is_bad, hint }
    }

    /// Whether it is no word about the server, bad or good.
    #[inline]
    pub fn says_nothing(&self) -> bool {
        self.answer == Answer::Ignored && self.is_bad.is_none() && self.hint.is_empty()
    }

    /// The status of an answer that says no more than that it came, 0 of none; `None` where it may be bad, or
    /// says a cost or a hint.
    #[inline]
    pub fn plain(&self) -> Option<u16> {
        let status = match self.answer {
            Answer::Response { status } if (200..400).contains(&status) => status,
            Answer::Ignored => 0,
            _ => return None,
        };
        (self.cost.is_none() && self.is_bad.is_none() && self.hint.is_empty()).then_some(status)
    }

    /// It teaches no pace.
    pub const IGNORED: Self = Self {
        answer: Answer::Ignored,
        latency_ms: None,
        adjust_delay: true,
        cost: None,
        is_bad: None,
        hint: Hint {
            hold: None,
            asked: None,
            is_quota: false,
            is_limit: false,
            report: QuotaReport { left: None, window: None, pace: None },
            is_rough: false,
            is_cached: false,
        },
    };
}
