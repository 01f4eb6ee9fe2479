//! Unpacks a module that travels inside JavaScript: a WebAssembly module of its own, small enough to be
//! compiled in no time.
//!
//! A module goes apart (`parts`), and the parts into LZMA: a third less than what browsers can inflate, and
//! none of them unpacks it. In JavaScript that took longer than all the rest up to the first permit, for it
//! is run once and never gets warm. A module is fast from the first byte.

mod lzma;
mod parts;

#[cfg(not(target_family = "wasm"))]
pub use parts::split;

/// Bytes that say how long the parts are, before LZMA's.
pub const HEAD: usize = 3;

/// Unpacks what `cargo xtask pack` wrote to a module. What is damaged gives other bytes.
///
/// `scratch` has place for the parts.
pub fn unpack(packed: &[u8], scratch: &mut [u8], module: &mut [u8]) {
    let (head, stream) = packed.split_at_checked(HEAD).unwrap_or_default();
    let Some(parts) = scratch.get_mut(..parts::little_endian(head)) else { return };
    lzma::unpack(stream, parts);
    parts::join(parts, module);
}

/// Unpacks `packed` bytes at `at` to the `length` bytes behind them. The parts come after these, in twice as
/// many bytes.
///
/// # Safety
///
/// All of these bytes belong to the caller.
#[cfg(target_family = "wasm")]
#[expect(unsafe_code, reason = "JavaScript hands over an address: it has grown the memory for it")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unpack_at(at: *mut u8, packed: usize, length: usize) {
    let source = unsafe { core::slice::from_raw_parts(at, packed) };
    let memory = unsafe { core::slice::from_raw_parts_mut(at.add(packed), 3 * length) };
    if let Some((module, scratch)) = memory.split_at_mut_checked(length) {
        unpack(source, scratch, module);
    }
}
