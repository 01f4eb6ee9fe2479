//! Any bytes as header fields and robots.txt. `tests/native/hostile.rs` says what must hold.

#![no_main]

#[path = "../../../tests/native/hostile.rs"]
mod hostile;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hostile::read(bytes));
