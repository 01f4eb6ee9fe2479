//! The model and size of a call, the usage in its answer, the wait in a refusal, and the budgets of a model:
//! written once for every host.
//!
//! A host parses the URL, sends, and moves bytes. This crate reads them:
//!
//! * [`asked`]: which model a request asks, and how much text goes in;
//! * [`Body`]: the usage in a body, or in the events of a stream;
//! * [`refusal`]: how long a refusal asks to wait, and whether a wait helps;
//! * [`reported`]: the budget that a quota of the headers is.
//!
//! [`Budgets`] keeps the accounts of a model: time is an argument there, and the host asks the throttle.
//!
//! All that is read comes from strangers. Each reader takes time in proportion to its input and keeps at most
//! [`MOST`] bytes. Numbers that make no sense are left out: a number below 0, above [`LARGEST`], or none.

extern crate alloc;

mod body;
mod bucket;
mod budgets;
mod call;
mod json;
mod picture;
mod ratio;
mod refusal;
mod request;
mod rules;
mod usage;

pub use body::Body;
pub use bucket::Pace;
pub use budgets::{Budgets, Change, Settings};
pub use call::{Charge, Plan, Size};
pub use refusal::{Refusal, Refused, refusal};
pub use request::{Asked, Asking, Vendor, asked};
pub use rules::{Kind, Reported, reported};
pub use usage::Usage;

/// The most bytes of a body, or of an event of a stream, that are kept. Beyond it usage is not known.
pub const MOST: usize = 4_000_000;
/// The most tokens that a vendor may tell, and the largest limit.
pub const LARGEST: f64 = 1e9;
