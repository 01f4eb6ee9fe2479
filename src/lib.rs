//! **autothrottle** decides when the next HTTP request may be sent.
//!
//! The engine has no I/O, no clock, no threads, no hidden chance. Time comes in with every call, the seed at
//! construction; out comes a [`Decision`]: send this ticket, wait until then because of that, or idle. It
//! owns tickets (numbers), never URLs or callbacks. A *driver* (the TypeScript layer in `js/`, a test, a
//! simulator) owns the clock, the timer and the network.
//!
//! # The loop
//!
//! > **Every mutation (`submit`, `settle`, `cancel`, `configure`, …, and the passing of time) is followed by
//! > `poll` until it answers something else than `Send`.**
//!
//! ```
//! use autothrottle::{Config, Decision, Engine, Feedback, Instant, Request, Value};
//!
//! let config = Config::parse(Value::Map(vec![]))?;              // the defaults: 1 slot, 1 s ± 50 %
//! let mut engine = Engine::new(config);
//! let scope = engine.scope("example.com");                      // a handle, made once
//! let now = Instant::from_micros(0);
//! let first = engine.submit(now, Request::new(&[scope])).unwrap();
//! let second = engine.submit(now, Request::new(&[scope])).unwrap();
//!
//! assert_eq!(engine.poll(now), Decision::Send(first));          // 1. send what it says,
//! assert!(matches!(engine.poll(now), Decision::Idle { .. }));   // 2. until it gives no ticket;
//! let now = Instant::from_micros(80_000);
//! engine.settle(now, first, &Feedback::response(200));          // 3. tell how it ended,
//! let Decision::Wait { until, .. } = engine.poll(now) else { panic!() };
//! assert!(until > now);                                         // 4. and sleep until then: it is a hint.
//! assert_eq!(engine.poll(until), Decision::Send(second));
//! # Ok::<(), autothrottle::ConfigError>(())
//! ```
//!
//! Where no request waits, [`Engine::send_at_once`] is `submit` and the first `poll` in one.
//!
//! # Three kinds of time
//!
//! *Engine time* ([`Instant`]) is whole microseconds from the driver's own origin, which may be 0 or 1970; a
//! clock that stands still is harmless, one that goes back stands still. *Spans* ([`Span`]) are what settings
//! and answers speak. *Wall time* serves only to read dates in headers, outside the engine, and is a span at
//! once. `now` is rounded down and wake-ups are rounded up, so rounding never sends early.
//!
//! # Invariants
//!
//! 1. *Safe*: at every send, for every scope of the request: in flight ≤ slots, gaps ≥ the delays in force,
//!    the quota is not exceeded, no hold is broken.
//! 2. *Live*: if a request waits, another is in flight or paused, or the answer is `Wait`. None starves.
//! 3. `Wait.until > now`, strictly.
//! 4. *Hint*: polling early or twice changes no decision; polling late only sends later.
//! 5. *Deterministic*: same events, same answers, natively and in WebAssembly.
//! 6. *Conserved*: each send is settled at most once; cancel is allowed at any time; slots come back.
//! 7. *Bounded*: no decision scans what waits.
//! 8. *Total*: no input panics. Late, early, repeated and unknown are no-ops.

pub mod boundary;
pub mod config;
mod decision;
mod engine;
mod error;
mod feedback;
pub mod headers;
mod observe;
mod policies;
pub mod policy;
mod queue;
pub mod record;
mod rng;
mod scope;
pub mod simulate;
mod slab;
mod snapshot;
mod sorted;
mod time;
pub mod value;

pub use autothrottle_reading::host;
pub use autothrottle_reading::robots::{
    MOST_BYTES as MOST_ROBOTS_BYTES, crawl_delay_ms,
    rules::{allows as robots_allow, rules as robots_rules},
};
pub use boundary::Boundary;
pub use config::{Config, ScopeConfig};
pub use decision::{Cause, Decision, Reason, ScopeId, Ticket};
pub use engine::{Engine, Peek, Request, Robots};
pub use error::{ConfigError, Problem, SubmitError};
pub use feedback::{Answer, Failure, Feedback, Hint};
pub use headers::Hints;
pub use observe::{
    BudgetStats, Diagnostic, ERRORS, EVENTS, Effective, ErrorForm, ErrorRow, EventForm, EventRow, FieldType,
    Heard, Held, Named, Notice, Pace, ScopeStats, SharedStats, Shares, Silence, Stall, Stats, WARNINGS,
    Warning, Watch,
};
pub use policies::Memory;
pub use policy::quota::Cost;
pub use rng::{Draw, Rng};
pub use snapshot::{BackedOff, Known, Learned, Left, Snapshot, Spent};
pub use time::{Instant, LONGEST_MS, Span};
pub use value::Value;
