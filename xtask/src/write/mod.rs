//! All files that are written from rows of Rust: the table of settings (`src/config/table.rs`) and what comes
//! out of the engine (`src/record.rs`).
//!
//! `cargo xtask write` writes them. The native tests compile this folder too, and compare what is committed.

pub mod python_options;
mod python_records;
mod settings_page;
pub mod tower_options;
pub mod typescript_options;
mod typescript_records;

use std::{fs, path::Path};

/// A file that is written from Rust.
pub struct Written {
    /// Where it stands in the repository.
    pub file: &'static str,
    /// Its text.
    pub text: fn() -> String,
    /// git ignores the others, which `npm run build` writes.
    is_committed: bool,
}

/// Each of them.
pub const FILES: [Written; 7] = [
    Written { file: "docs/settings.md", text: settings_page::page, is_committed: true },
    Written { file: "python/src/autothrottle/options.py", text: python_options::types, is_committed: true },
    Written {
        file: "python/src/autothrottle/_records.py",
        text: python_records::records,
        is_committed: true,
    },
    Written { file: "python/src/autothrottle/_stats.py", text: python_records::stats, is_committed: true },
    Written { file: "tower/src/settings.rs", text: tower_options::structs, is_committed: true },
    Written { file: "js/options/generated.ts", text: typescript_options::types, is_committed: false },
    Written { file: "js/wasm/generated.ts", text: typescript_records::types, is_committed: false },
];

/// The committed files that are not what they would be written as.
pub fn stale(root: &Path) -> Vec<&'static str> {
    let is_stale = |written: &&Written| {
        let found = fs::read_to_string(root.join(written.file)).unwrap_or_default();
        written.is_committed && found != (written.text)()
    };
    FILES.iter().filter(is_stale).map(|written| written.file).collect()
}
