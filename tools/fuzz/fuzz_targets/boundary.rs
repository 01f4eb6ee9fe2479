//! The fuzzer's way in: any bytes, played as calls at the boundary. `tests/native/boundary.rs` says what they
//! mean.

#![no_main]

#[path = "../../../tests/native/boundary.rs"]
mod boundary;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    boundary::play(bytes);
});
