//! Reads what servers say of their limits: header fields ([`headers`]) and robots.txt ([`robots`]); and their
//! names in URLs ([`host`]).
//!
//! Text goes in, plain data comes out; what it means for a throttle is the business of the crate
//! `autothrottle`. It is a crate of its own because it runs once per answer and not in the engine's loop: in
//! WebAssembly it is compiled for size, the engine for speed.

pub mod headers;
pub mod host;
pub mod robots;
pub mod route;
mod scan;
