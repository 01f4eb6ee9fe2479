//! Which mutant runs. `npm run mutants` puts this file into the copy of the engine that holds all mutants.
extern crate std;

use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

static REACHED: [AtomicBool; FUNCTIONS] = [const { AtomicBool::new(false) }; FUNCTIONS];

/// The mutant's number; 0 is the engine as it is. Where `MUTANT_REACHED` names a file, the functions that run
/// are written there.
#[inline]
pub fn chosen(function: usize) -> u32 {
    static CHOSEN: OnceLock<(u32, Option<std::string::String>)> = OnceLock::new();
    let (mutant, reached) = CHOSEN.get_or_init(|| {
        let mutant = std::env::var("MUTANT").map_or(0, |number| number.parse().expect("a number"));
        (mutant, std::env::var("MUTANT_REACHED").ok())
    });
    if let Some(path) = reached
        && !REACHED[function].swap(true, Ordering::Relaxed)
    {
        let mut file = std::fs::File::options().append(true).create(true).open(path).expect("a path");
        file.write_all(std::format!("{function}\n").as_bytes()).expect("room");
    }
    *mutant
}

