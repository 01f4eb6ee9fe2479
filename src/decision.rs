//! The engine's three answers, and the verdicts of scopes that they are made of.

use crate::{record::words, slab::handle, time::Instant};

/// The driver's next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Send this request now. Ask again: there may be more.
    Send(Ticket),
    /// No request may leave before `until`, which is strictly in the future. A hint: asking earlier does no
    /// harm.
    Wait {
        /// When it is worth asking again.
        until: Instant,
        /// The scope that makes us wait, and the reason.
        because: Cause,
    },
    /// Time alone changes no decision: no request waits, or all that wait need an answer, a `resume`, a
    /// setting.
    Idle {
        /// The scope that makes the waiting requests wait; `None` when no request waits.
        because: Option<Cause>,
    },
}

/// A scope that makes a request wait, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The scope's handle; `None` for limits of the whole throttle and of the request itself.
    pub scope: Option<ScopeId>,
    /// Why.
    pub reason: Reason,
}

handle!(
    /// Handle of a scope. It stays the same for as long as the engine knows the scope.
    ScopeId
);

handle!(
    /// A request that was submitted, as a number. Only this engine knows it.
    Ticket
);

words! {
    /// Why a request waits.
    pub enum Reason {
        /// The scope or the throttle is paused.
        Paused = "paused",
        /// `maxInFlight` requests are in flight, all scopes together.
        Global = "max-in-flight",
        /// All slots of the scope are taken.
        Concurrency = "concurrency",
        /// The scope's delay since its last send.
        Delay = "delay",
        /// The longer delay after bad answers.
        Backoff = "backoff",
        /// A delay by robots.txt.
        CrawlDelay = "crawl-delay",
        /// The delay of the slot that is next.
        SlotDelay = "slot-delay",
        /// A hold: `scope.hold`, or the server's `Retry-After`.
        Hold = "hold",
        /// Not enough of a quota is left, of ours or of the server's.
        Quota = "quota",
        /// The request's own delay.
        RequestDelay = "request-delay",
        /// The scope's rate: the next of its evenly spaced sends.
        Rate = "rate",
    }
}

/// One scope's answer to one request. The larger one is the stricter one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// Now.
    Go,
    /// Not before this instant, which is in the future.
    NotBefore(Instant, Reason),
    /// Not before something happens.
    Blocked(Reason),
}

impl Verdict {
    /// Now, or not before `until` if that is in the future.
    #[inline]
    pub fn not_before(now: Instant, until: Option<Instant>, reason: Reason) -> Self {
        match until {
            Some(until) if until > now => Self::NotBefore(until, reason),
            _ => Self::Go,
        }
    }

    /// This, and not before `until` if that is in the future.
    #[inline]
    pub fn and_not_before(self, now: Instant, until: Option<Instant>, reason: Reason) -> Self {
        match until {
            Some(until) if until > now => self.max(Self::NotBefore(until, reason)),
            _ => self,
        }
    }

    /// The instant that is waited for, if it is one.
    pub fn until(self) -> Option<Instant> {
        match self {
            Self::NotBefore(until, _) => Some(until),
            Self::Go | Self::Blocked(_) => None,
        }
    }

    pub fn reason(self) -> Option<Reason> {
        match self {
            Self::Go => None,
            Self::NotBefore(_, reason) | Self::Blocked(reason) => Some(reason),
        }
    }
}
