//! Frames: what processes say to each other, in CBOR, with a head that every version can read.

/// Of the protocol. A frame of another version is dropped, and its sender counts as alive.
pub const VERSION: u8 = 2;

/// The most bytes of a frame. A transport that reads a length may close what announces more.
pub const MOST_BYTES: usize = 32 << 20;
