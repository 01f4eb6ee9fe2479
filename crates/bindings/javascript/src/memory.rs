//! Room before it is needed: the memory grows by an eighth of itself, not by the page.
//!
//! Each growth makes a new `ArrayBuffer`, and V8 counts all of it as new. Beyond 64 MiB every page is a
//! reason to collect all garbage, and in a backlog none of it is: a request of 100,000 scopes took five times
//! as long to be put in line.

/// Called before what may need more memory, and finds what was needed since.
#[cfg(target_family = "wasm")]
pub fn make_room() {
    use core::{
        arch::wasm32::memory_size,
        hint::black_box,
        sync::atomic::{AtomicUsize, Ordering::Relaxed},
    };

    const PAGE: usize = 65_536;
    /// Four megabytes: most programs stay below, and need no spare.
    const SMALL: usize = 64;
    /// Pages when room was made last. A module has one memory, however many engines share it.
    static PAGES: AtomicUsize = AtomicUsize::new(SMALL);

    #[cold]
    #[inline(never)]
    fn grow(pages: usize) {
        // The allocator extends what it has, and keeps it when this is freed. Without room it stays as it is.
        let mut room: Vec<u8> = Vec::new();
        let _ = room.try_reserve_exact(pages / 8 * PAGE);
        black_box(&room);
        drop(room);
        PAGES.store(memory_size::<0>(), Relaxed);
    }

    let pages = memory_size::<0>();
    if pages > PAGES.load(Relaxed) {
        grow(pages);
    }
}

/// Elsewhere the system's allocator does as it does.
#[cfg(not(target_family = "wasm"))]
pub fn make_room() {}
