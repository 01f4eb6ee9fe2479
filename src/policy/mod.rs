//! One file a policy: a `Config`, a small `State`, pure transitions. Policies do not know each other; `scope`
//! composes them and the strictest verdict wins.
//!
//! | policy | the question it answers | source |
//! |---|---|---|
//! | [`slots`] | is a place free, and has its slot delay passed? | Scrapy draft, *Concurrency and delay* |
//! | [`delay`] | has the delay since the scope's last send passed? | Scrapy draft; `DOWNLOAD_DELAY` |
//! | [`rate`] | may one more leave, so that so many per span are evenly spaced? | GCRA, ITU-T I.371 |
//! | [`jitter`] | how far may a delay stray from its mean? | `RANDOMIZE_DOWNLOAD_DELAY` |
//! | [`quota`] | is enough left of what the window allows? | Scrapy draft, *Throttling quotas* |
//! | [`backoff`] | which delay and how many slots does a server bear that answers badly? | Scrapy draft, *Backoff* |
//! | [`rampup`] | at which rate does a server begin to refuse? | Scrapy draft, *Rampup* |
//! | [`server`] | how much did the server say is left, and until when? | `RateLimit` fields |
//! | [`stall`] | has a server only answered badly for long? | — |
//! | [`retry`] | is a request sent again, and not before when? | RFC 9110 §10.2.3; Scrapy's `RETRY_*` |
//! | [`autothrottle`] | which delay keeps N requests in the server's hands? | Scrapy's `AutoThrottle` extension |

pub mod autothrottle;
pub mod backoff;
pub mod delay;
pub mod jitter;
pub mod quota;
pub mod rampup;
pub mod rate;
pub mod retry;
pub mod server;
pub mod slots;
pub mod stall;
