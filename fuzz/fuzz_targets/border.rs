//! The fuzzer's way in: any bytes, played as calls at the border. What they mean is told in `tests/native/border.rs`.

#![no_main]

#[path = "../../tests/native/border.rs"]
mod border;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| border::play(bytes));
