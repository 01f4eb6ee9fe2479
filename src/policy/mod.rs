//! One file a policy: a `Config`, a small `State`, pure transitions. Policies do not know each other; `scope`
//! composes them and the strictest verdict wins.
//!
//! | policy | the question it answers | source |
//! |---|---|---|
//! | [`slots`] | is a place free, and has its slot delay passed? | Scrapy draft, *Concurrency and delay* |
//! | [`delay`] | has the delay since the scope's last send passed? | Scrapy draft; `DOWNLOAD_DELAY` |
//! | [`rate`] | may this much more leave, so that the units per span are evenly spaced? | GCRA, ITU-T I.371 |
//! | [`jitter`] | how far may a delay stray from its mean? | `RANDOMIZE_DOWNLOAD_DELAY` |
//! | [`quota`] | is enough left of what the window allows? | Scrapy draft, *Throttling quotas* |
//! | [`backoff`] | which delay and slots does a server bear that answers badly? | Scrapy draft, *Backoff* |
//! | [`rampup`] | at which rate does a server begin to refuse? | Scrapy draft, *Rampup* |
//! | [`server`] | how much did the server say is left, and until when? | `RateLimit` fields |
//! | [`stall`] | has a server only answered badly for long? | — |
//! | [`denied`] | is it the client that is refused, and not its pace? | Discord, *Invalid Request Limit* |
//! | [`retry`] | is a request sent again, and not before when? | RFC 9110 §10.2.3; Scrapy's `RETRY_*` |
//! | [`autothrottle`] | which delay keeps N requests in the server's hands? | Scrapy's `AutoThrottle` |
//!
//! Those that a scope may have or not ([`Policy`]) stand in one list, `optional_policies`.

pub mod autothrottle;
pub mod backoff;
pub mod delay;
pub mod denied;
pub mod jitter;
pub mod quota;
pub mod rampup;
pub mod rate;
pub mod retry;
pub mod server;
pub mod slots;
pub mod stall;

use core::fmt::Debug;

use self::quota::Cost;
use crate::{
    rng::Draw,
    time::{Instant, Span},
};

/// The policies that a scope may have or not: file, settings that make its `Config`, reason to wait for it.
/// `src/policies.rs` reads them, so names are those that it imports.
macro_rules! optional_policies {
    ($policies:ident) => {
        $policies! {
            autothrottle: ScopeConfig::autothrottle_policy, Reason::Delay;
            rampup: ScopeConfig::rampup_policy, Reason::Delay;
            rate: ScopeConfig::rate_policy, Reason::Rate;
        }
    };
}

pub(crate) use optional_policies;

/// A request that leaves, as policies see it.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// When.
    pub now: Instant,
    /// The draw of chance.
    pub draw: Draw,
    /// How many others of the scope are in flight.
    pub flying: u32,
    /// How late the caller's timer was, if it was asked to wait.
    pub late: Span,
    /// The expected cost.
    pub cost: Cost,
}

/// How a request ended, as policies see it. An answer that is neither bad nor good has no news about limits.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// When.
    pub now: Instant,
    /// When it was sent.
    pub sent: Instant,
    /// Whether it was a bad answer.
    pub is_bad: bool,
    /// Whether it was a good one.
    pub is_good: bool,
    /// Whether it refused the client and not its pace, as far as the status tells.
    pub is_denied: bool,
    /// Whether a bad answer refused the pace, and did not merely fail.
    pub is_refusal: bool,
    /// How long the server asked to wait.
    pub asked: Option<Span>,
    /// How much of the hold it may not need: whole seconds are rounded up, and one is added to them.
    pub unsure: Span,
    /// Seconds from send to answer, and the status; `None` if it was not measured or it is not to be learned
    /// from.
    pub sample: Option<(f64, u16)>,
}

/// The memory of a policy.
pub type Numbers = [Option<f64>; 3];

/// A policy that a scope may have or not: from its settings to what it asks for, and what it remembers.
///
/// States are values: each transition gives the next one. A policy does not ask for the transitions that it
/// leaves out.
pub trait Policy: Copy + Debug + PartialEq {
    /// The policy's settings.
    type Config: PartialEq;

    /// Whether it finds the pace by itself. Then the pace of the defaults does not bound it, and backoff
    /// takes no steps beside it. It follows what a server says of its quota.
    const FINDS_PACE: bool = false;

    /// Whether it learns from answers.
    const LEARNS: bool = false;

    /// The names of its numbers in a snapshot, and the largest of each that makes sense.
    const KEYS: &'static [(&'static str, f64)];

    /// Before anything is known.
    fn fresh(config: &Self::Config) -> Self;

    /// Turned on while the scope is in use; `last` is its last send.
    #[must_use]
    fn turned_on(config: &Self::Config, _last: Option<Instant>) -> Self {
        Self::fresh(config)
    }

    /// The settings changed. The learned state stays.
    #[must_use]
    fn on_configure(self, old: &Self::Config, new: &Self::Config, _last: Option<Instant>) -> Self {
        if self == Self::fresh(old) { Self::fresh(new) } else { self }
    }

    /// A request waits, and none did.
    #[must_use]
    fn on_wait(self, _now: Instant) -> Self {
        self
    }

    /// A request leaves.
    #[must_use]
    fn on_send(self, _config: &Self::Config, _sent: &Sent) -> Self {
        self
    }

    /// The same in its place: a policy with its own is too large to be copied for each request.
    fn sends(&mut self, config: &Self::Config, sent: &Sent) {
        *self = self.on_send(config, sent);
    }

    /// The request that leaves was late: it left at `at`.
    #[must_use]
    fn on_sent_at(self, _at: Instant) -> Self {
        self
    }

    /// The request that left at `sent` for `expected` turned out to cost `actual`.
    #[must_use]
    fn on_actual(
        self,
        _config: &Self::Config,
        _now: Instant,
        _sent: Instant,
        _expected: Cost,
        _actual: Cost,
    ) -> Self {
        self
    }

    /// A request ended.
    #[must_use]
    fn on_end(self, _config: &Self::Config, _ended: &Ended) -> Self {
        self
    }

    /// Forgets what was learned.
    #[must_use]
    fn reset(self, config: &Self::Config) -> Self {
        Self::fresh(config)
    }

    /// The delay in milliseconds that takes the place of the one in the settings.
    fn delay_ms(&self) -> Option<f64> {
        None
    }

    /// The gap between two sends that it keeps by itself, through [`Policy::next`].
    fn gap(&self, _config: &Self::Config) -> Option<Span> {
        None
    }

    /// The first instant at which a request of this cost may leave.
    fn next(&self, _config: &Self::Config, _cost: Cost) -> Option<Instant> {
        None
    }

    /// The most that one request may cost.
    fn most(_config: &Self::Config) -> Option<Cost> {
        None
    }

    /// The pause that is left to a policy that finds the pace where the scope's own jitter spreads its gap.
    fn pause(&self, _config: &Self::Config) -> Option<Instant> {
        None
    }

    /// The most requests in flight.
    fn slots(&self) -> u32 {
        u32::MAX
    }

    /// Whether it learned no more than a new one knows, so the scope need not be kept for it.
    fn is_fresh(&self, config: &Self::Config) -> bool {
        *self == Self::fresh(config)
    }

    /// Whether it owes no wait: the scope could be forgotten and made anew without a request that leaves too
    /// early.
    fn is_free(&self, _now: Instant) -> bool {
        true
    }

    /// The numbers that are worth a snapshot, as [`Policy::KEYS`] calls them.
    fn remember(&self, config: &Self::Config, now: Instant) -> Numbers;

    /// The state of a new process, from those numbers, if there are any; `offline` has passed since.
    #[must_use]
    fn recall(self, config: &Self::Config, now: Instant, offline: Span, numbers: Numbers) -> Self;
}
