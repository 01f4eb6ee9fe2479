//! Names and what they stand for.
//!
//! The trap is a name that comes from a page somebody crawls: a hash table with a fixed seed can be flooded,
//! and one with a random seed has no fixed order. A sorted map has neither fault and is asked once per host.

use std::{collections::BTreeMap, rc::Rc};

/// One kind of map for all names: each kind is eight kilobytes of WebAssembly.
pub(crate) type ByName = BTreeMap<Rc<str>, u32>;
