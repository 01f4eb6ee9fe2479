//! Unpacks a module that travels inside JavaScript: a WebAssembly module of its own, small enough to be
//! compiled in no time.
//!
//! LZMA takes a fifth less than what browsers can inflate, and none of them unpacks it. In JavaScript that
//! took longer than all the rest up to the first permit, for it is run once and never gets warm. A module is
//! fast from the first byte.

mod lzma;

pub use lzma::unpack;

/// Unpacks `packed` bytes at `at` to the `length` bytes behind them.
///
/// # Safety
///
/// All of these bytes belong to the caller.
#[cfg(target_family = "wasm")]
#[expect(unsafe_code, reason = "JavaScript hands over an address: it has grown the memory for it")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unpack_at(at: *mut u8, packed: usize, length: usize) {
    let source = unsafe { core::slice::from_raw_parts(at, packed) };
    let out = unsafe { core::slice::from_raw_parts_mut(at.add(packed), length) };
    unpack(source, out);
}
