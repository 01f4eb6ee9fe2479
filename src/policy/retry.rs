//! Whether a request is sent again, and not before when.
//!
//! Rules:
//! 1. A failure (no response came) is sent again at once: the scope's pace is what it waits for.
//! 2. A response is sent again if its status is in `statusCodes`; 413 only where the server says when (RFC
//!    9110 §15.5.14: the condition is temporary if there is a `Retry-After`). A 403 of a rate limit counts as
//!    a 429 (the reader of the header fields says which). An answer that a host calls bad by its body does,
//!    too.
//! 3. It is never sent earlier than the server asked. One second is added where the server speaks whole
//!    seconds, of which many cut the rest off.
//! 4. Beyond `maxRetryAfter` it is not waited for (`fail`), waited for all the same (`wait`), or only so long
//!    (`cap`).
//!
//! How often it is sent again at most depends on its method, which a driver asks once a request. How often
//! it was sent, and whether it can be sent twice, the driver says with the outcome.

use crate::time::{LONGEST_MS, Span};

/// How long a wait may be, and after what.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Statuses to try again, in order.
    pub status_codes: Box<[u16]>,
    /// The longest wait that the server may ask for.
    pub max_retry_after: Span,
    /// The action beyond it.
    pub long_retry_after: Long,
    /// How often a request is sent again at most.
    pub limit: u32,
    /// The methods of what may be sent again.
    pub methods: Methods,
}

/// Methods of requests.
#[derive(Clone, Debug, PartialEq)]
pub enum Methods {
    /// Those of the table of settings.
    Usual(&'static [&'static str]),
    /// Those that were typed.
    Typed(Vec<String>),
}

impl Methods {
    /// Whether it is one of them. `get` means `GET`.
    fn have(&self, method: &str) -> bool {
        let is_it = |each: &str| each.eq_ignore_ascii_case(method);
        match self {
            Self::Usual(methods) => methods.iter().any(|each| is_it(each)),
            Self::Typed(methods) => methods.iter().any(|each| is_it(each)),
        }
    }
}

/// The action where the server asks for a longer wait than is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Long {
    /// Give up.
    Fail,
    /// Wait all the same.
    Wait,
    /// Wait only for `maxRetryAfter`, which is earlier than the server asked.
    Cap,
}

impl Long {
    /// Every choice, with the word that settings use.
    pub const ALL: [(Self, &'static str); 3] =
        [(Self::Fail, "fail"), (Self::Wait, "wait"), (Self::Cap, "cap")];
}

/// The action for a request that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is over.
    Over,
    /// Send it again, not before so long from now.
    Again(Span),
    /// Send it never: the server asks for a longer wait than is wanted.
    TooLong,
    /// It cannot be sent twice. One in its place is not sent before so long from now.
    NotReplayable(Span),
}

// The table of settings says what holds outside these tests.
#[cfg(test)]
impl Default for Config {
    fn default() -> Self {
        Self {
            status_codes: [408, 413, 429, 430, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529].into(),
            max_retry_after: Span::from_millis(300_000.0),
            long_retry_after: Long::Fail,
            limit: 0,
            methods: Methods::Usual(&[]),
        }
    }
}

/// The action after a failure.
pub const AFTER_FAILURE: Verdict = Verdict::Again(Span::ZERO);

impl Config {
    /// How often a request of this method is sent again at most.
    pub fn retries(&self, method: &str) -> u32 {
        if self.methods.have(method) { self.limit } else { 0 }
    }

    /// Whether a request is sent again after this status.
    pub fn repeats(&self, status: u16) -> bool {
        self.status_codes.binary_search(&status).is_ok()
    }

    /// The action after a response. `asked` is the wait that the server named, and whether it is in whole
    /// seconds.
    pub fn after_response(&self, status: u16, asked: Option<(Span, bool)>) -> Verdict {
        if !self.repeats(status) || status == 413 && asked.is_none() {
            return Verdict::Over;
        }
        let Some((asked, is_whole)) = asked else { return Verdict::Again(Span::ZERO) };
        let margin = if is_whole { Span::from_millis(1000.0) } else { Span::ZERO };
        let wait = (asked + margin).min(Span::from_millis(LONGEST_MS));
        match self.long_retry_after {
            Long::Fail if asked > self.max_retry_after => Verdict::TooLong,
            Long::Cap => Verdict::Again(wait.min(self.max_retry_after)),
            Long::Fail | Long::Wait => Verdict::Again(wait),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Span {
        Span::from_micros(ms * 1000)
    }

    fn after(status: u16, asked: Option<u64>, long_retry_after: Long) -> Verdict {
        let config = Config { long_retry_after, ..Config::default() };
        config.after_response(status, asked.map(|asked| (ms(asked), true)))
    }

    #[test]
    fn never_earlier_than_asked_and_a_413_only_where_the_server_says_when() {
        let fail = |status, asked| after(status, asked, Long::Fail);
        assert_eq!(fail(503, None), Verdict::Again(Span::ZERO));
        assert_eq!(fail(503, Some(2000)), Verdict::Again(ms(3000)));
        assert_eq!((fail(413, None), fail(413, Some(2000))), (Verdict::Over, Verdict::Again(ms(3000))));
        assert_eq!((fail(404, Some(2000)), fail(200, None)), (Verdict::Over, Verdict::Over));
        let exact = Config::default().after_response(429, Some((ms(70), false)));
        assert_eq!(exact, Verdict::Again(ms(70)));
    }

    #[test]
    fn a_wait_beyond_the_longest_fails_is_waited_for_or_cut() {
        let long = Some(400_000);
        assert_eq!(after(429, long, Long::Fail), Verdict::TooLong);
        assert_eq!(after(429, long, Long::Wait), Verdict::Again(ms(401_000)));
        assert_eq!(after(429, long, Long::Cap), Verdict::Again(ms(300_000)));
        // At the very bound no wait is too long, and only the cap takes the second back.
        assert_eq!(after(429, Some(300_000), Long::Fail), Verdict::Again(ms(301_000)));
        assert_eq!(after(429, Some(300_000), Long::Cap), Verdict::Again(ms(300_000)));
    }
}
