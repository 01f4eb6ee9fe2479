//! The model and size of a call, the usage in its answer, and the wait in a refusal: read once for every
//! host.
//!
//! A host parses the URL, sends, and moves bytes. This crate reads them:
//!
//! * [`asked`]: which model a request asks, and how much text goes in;
//! * [`Body`]: the usage in a body, or in the events of a stream;
//! * [`refusal`]: how long a refusal asks to wait, and whether a wait helps.
//!
//! All of it comes from strangers. Each reader takes time in proportion to its input and keeps at most
//! [`MOST`] bytes. Numbers that make no sense are left out: a number below 0, above [`LARGEST`], or none.

extern crate alloc;

mod body;
mod json;
mod picture;
mod refusal;
mod request;
mod usage;

pub use body::Body;
pub use refusal::{Kind, Refusal, Refused, refusal};
pub use request::{Asked, Asking, Vendor, asked};
pub use usage::Usage;

/// The most bytes of a body, or of an event of a stream, that are kept. Beyond it usage is not known.
pub const MOST: usize = 4_000_000;
/// The most tokens that a vendor may tell.
pub const LARGEST: f64 = 1e9;
