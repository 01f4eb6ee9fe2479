//! Any bytes as header fields and robots.txt. What must hold is told in `tests/native/hostile.rs`.

#![no_main]

#[path = "../../tests/native/hostile.rs"]
mod hostile;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hostile::read(bytes));
