//! How a request ended, as the driver saw it.

use crate::policy::quota::Cost;

/// What became of a request that was sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Feedback {
    /// The answer itself.
    pub answer: Answer,
    /// From send to response headers in milliseconds; `None` if nobody measured it.
    pub latency_ms: Option<f64>,
    /// Whether the latency may move `AutoThrottle`'s delay; Scrapy's `autothrottle_dont_adjust_delay` is the opposite.
    pub adjust_delay: bool,
    /// What the request really cost; `None` if it cost what was expected.
    pub cost: Option<Cost>,
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
    Failed,
    /// Nothing can be learned: the caller gave up, the response came from a cache.
    Ignored,
}

impl Feedback {
    /// A response with this status, and nothing else known.
    pub const fn response(status: u16) -> Self {
        Self { answer: Answer::Response { status }, ..Self::IGNORED }
    }

    /// What a border of plain numbers says: a status from 100 to 599 is a response, 0 a failure, anything else says nothing.
    /// What is no latency or no cost is unknown.
    pub fn from_numbers(status: f64, latency_ms: f64, adjust_delay: bool, cost: f64) -> Self {
        let answer = if (100.0..600.0).contains(&status) {
            Answer::Response { status: status as u16 }
        } else if status == 0.0 {
            Answer::Failed
        } else {
            Answer::Ignored
        };
        let latency_ms = (latency_ms >= 0.0 && latency_ms.is_finite()).then_some(latency_ms);
        Self { answer, latency_ms, adjust_delay, cost: Cost::from_units(cost) }
    }

    /// Nothing can be learned.
    pub const IGNORED: Self =
        Self { answer: Answer::Ignored, latency_ms: None, adjust_delay: true, cost: None };
}
