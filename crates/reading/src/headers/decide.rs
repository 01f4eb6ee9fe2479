//! From what was read to what it means: which quota governs, how long to hold, at what pace to go.
//!
//! Rules:
//! 1. an explicit wait holds on 4xx and 5xx; on a redirect that is followed it is for the next hop, on a 413
//!    for this request, on a 202 for the next look; anywhere else it has no meaning;
//! 2. without one, what is used up holds until its reset, on whatever status; of several the last reset
//!    counts;
//! 3. on a 429 and a 503 a quota that does not say what is left is used up;
//! 4. a wait of zero gives way to a reset: several servers round down to `Retry-After: 0`;
//! 5. a 403 with a wait, or with none left, is a rate limit's refusal;
//! 6. whole seconds get one more on a refusal, since many servers cut the rest off: a reset only if it is
//!    longer than [`SHORT_MS`], and never beyond the length of its window;
//! 7. GitHub's secondary limit may name no wait: a 429 or 403 of it is held for a minute then. A 403 of its
//!    other resources may be a permission that is missing.
//!
//! Several servers send `Retry-After` on every answer, also on a 304. Only 301, 302, 303, 307 and 308 are
//! redirects that a client follows by itself (RFC 9110 §15.4).

use super::{AppliesTo, Hints, Quota, value::Wait};
use crate::scan::is;

/// Many servers cut a wait in whole seconds.
const SECOND_MS: u64 = 1000;
/// A second more is half of a reset of two seconds, or a whole window of one second.
const SHORT_MS: u64 = 2000;
/// Below this a reset in whole seconds may be off by half.
const ROUGH_MS: u64 = 10_000;
/// GitHub's wait where its answer does not say one (*Best practices for using the REST API*).
const SECONDARY_MS: u64 = 60_000;
/// Resources of GitHub's that answer 403 only for its secondary limit.
const OPEN_RESOURCES: [&str; 3] = ["search", "code_search", "graphql"];

impl Hints {
    /// Orders the quotas and finds the delay.
    pub(super) fn decide(&mut self) {
        let (status, explicit) = self.said;
        self.order();
        if status == 202 {
            self.poll_after_ms = explicit.map(|(wait, _)| wait.ms);
        }
        let is_redirect = matches!(status, 301 | 302 | 303 | 307 | 308);
        let is_bad = is_redirect || status >= 400;
        let reset = self.reset(status == 429 || status == 503);
        let explicit = explicit.filter(|_| is_bad);
        let gives_way =
            explicit.is_some_and(|(wait, _)| wait.ms == 0) && reset.is_some_and(|(wait, _)| wait.ms > 0);
        let explicit = explicit.filter(|_| !gives_way);
        if explicit.is_some() {
            self.applies_to = match status {
                413 => Some(AppliesTo::Request),
                _ => is_redirect.then_some(AppliesTo::Redirect),
            };
        }
        if let Some((wait, source)) = explicit.or(reset) {
            (self.delay_ms, self.source) = (Some(wait.ms), Some(source));
            self.is_whole = wait.is_whole && is_bad && (explicit.is_some() || wait.ms > SHORT_MS);
            // A window is over after its own length.
            let window_ms = self.quotas.first().and_then(|quota| quota.window_ms);
            let room = window_ms.filter(|_| explicit.is_none()).map(|window| window.saturating_sub(wait.ms));
            self.margin_ms = if self.is_whole { room.unwrap_or(SECOND_MS).min(SECOND_MS) } else { 0 };
            self.is_whole = self.margin_ms == SECOND_MS;
            self.over_ms = wait.over_ms;
        } else if self.resource.as_ref().is_some_and(|resource| is_secondary(status, resource)) {
            (self.delay_ms, self.source) = (Some(SECONDARY_MS), Some("x-ratelimit-resource"));
        }
        self.is_limit =
            status == 403 && (self.delay_ms.is_some() || self.quotas.iter().any(Quota::is_exhausted));
    }

    /// By insertion: there are few, and a general sort is kilobytes of code.
    fn order(&mut self) {
        for end in 1..self.quotas.len() {
            let mut at = end;
            while at > 0 && self.quotas[at].rank() < self.quotas[at - 1].rank() {
                self.quotas.swap(at, at - 1);
                at -= 1;
            }
        }
    }

    /// The last reset of what is used up, else of what may be.
    fn reset(&self, is_refused: bool) -> Option<(Wait, &'static str)> {
        let mut last: Option<(&Quota, u64)> = None;
        for quota in &self.quotas {
            let Some(ms) = quota.reset_ms else { continue };
            let counts = quota.is_exhausted() || is_refused && quota.remaining.is_none();
            // A quota that is used up stands before one that may be.
            let is_later =
                last.is_none_or(|(other, most)| ms > most && quota.is_exhausted() == other.is_exhausted());
            if counts && is_later {
                last = Some((quota, ms));
            }
        }
        last.map(|(quota, ms)| (Wait { ms, is_whole: quota.is_whole, over_ms: quota.over_ms }, quota.family))
    }

    /// The governing quota: the exhausted one that resets last, else the next to reset whose rest is known.
    pub fn quota(&self) -> Option<&Quota> {
        self.quotas.first()
    }

    /// How long to hold, with a second more where the server speaks whole seconds. `None` if no field holds
    /// the scope.
    pub fn hold_ms(&self) -> Option<u64> {
        let delay = self.delay_ms.filter(|_| self.applies_to.is_none())?;
        Some(delay.saturating_add(self.margin_ms) - self.over_ms.min(delay))
    }

    /// The pace that spreads what is left evenly: the slower of reset ÷ remaining and window ÷ limit. And
    /// whether it is rough: from a short reset in whole seconds, which may be off by half.
    pub fn pace_ms(&self) -> Option<(f64, bool)> {
        let rate = self.rate_per_million_s.filter(|&rate| rate > 0);
        let mut slowest = rate.map(|rate| (1e9 / rate as f64, false));
        let mut add = |pace: Option<f64>, is_rough: bool| {
            slowest = match (slowest, pace) {
                (Some((known, _)), Some(pace)) if pace <= known => slowest,
                (_, Some(pace)) => Some((pace, is_rough)),
                _ => slowest,
            };
        };
        for quota in self.quotas.iter().filter(|quota| quota.counts_requests()) {
            let per_window = per_unit(quota.window_ms, quota.limit);
            let is_rough = quota.is_whole && quota.reset_ms.is_some_and(|ms| ms < ROUGH_MS);
            add(per_window, false);
            if !is_rough || per_window.is_none() {
                // Whole seconds are rounded up: a short span is half of one shorter, in the mean.
                let left = quota.reset_ms.map(|ms| if is_rough { ms.saturating_sub(500) } else { ms });
                add(per_unit(left, quota.remaining), is_rough);
            }
        }
        slowest
    }
}

impl Quota {
    /// When more will be there, by the best clock: `reset_ms` is by the server's, which may have no fraction.
    pub fn resets_in_ms(&self) -> Option<u64> {
        self.reset_ms.map(|ms| ms.saturating_sub(self.over_ms))
    }

    /// Whether it is used up until the reset. Completions free slots, and no time is known for that.
    pub fn is_exhausted(&self) -> bool {
        self.remaining == Some(0) && self.unit.as_deref() != Some("concurrent-requests")
    }

    /// Whether it counts requests.
    pub fn counts_requests(&self) -> bool {
        self.unit.as_deref().is_none_or(|unit| unit == "requests")
    }

    /// An exhausted quota comes first, the last to reset foremost; then what is known, the next to reset
    /// foremost.
    fn rank(&self) -> (u8, u64) {
        match self.reset_ms {
            reset if self.is_exhausted() => (0, u64::MAX - reset.unwrap_or(0)),
            reset => (1 + u8::from(self.remaining.is_none()), reset.unwrap_or(u64::MAX)),
        }
    }
}

fn is_secondary(status: u16, resource: &str) -> bool {
    status == 429 || status == 403 && OPEN_RESOURCES.iter().any(|open| is(resource.as_bytes(), open))
}

fn per_unit(ms: Option<u64>, units: Option<u64>) -> Option<f64> {
    units.filter(|&units| units > 0).and_then(|units| Some(ms? as f64 / units as f64))
}
