//! Makes what is shipped from compiled modules, with tools that are libraries pinned in `Cargo.lock`, so that
//! a fresh machine needs no `cargo install`:
//!
//! - `cargo xtask bind INPUT.wasm OUT_DIR NAME`: the JavaScript bindings, by exactly the generator that
//!   `wasm-bindgen` itself is locked to;
//! - `cargo xtask deflate INPUT OUTPUT`: a file deflated, a twentieth smaller than zlib's best;
//! - `cargo xtask write [FILE …]`: the pages and types that come from rows of Rust, all or some;
//! - `cargo xtask write --check`: fails where one that is committed is stale;
//! - `cargo xtask-component component INPUT.wasm OUTPUT.wasm VERSION`: a module as a component;
//! - `cargo xtask-component wit COMPONENT.wasm`: a component's WIT, read back from its bytes; also of a
//!   folder of WIT.

#[cfg(feature = "component")]
mod component;
mod write;

use std::{
    fs::{self, File},
    path::Path,
    process::ExitCode,
};

use zopfli::{Format, Options};

const USAGE: &str = "usage: cargo xtask bind INPUT.wasm OUT_DIR NAME
       cargo xtask deflate INPUT OUTPUT
       cargo xtask write [--check | FILE …]
       cargo xtask-component component INPUT.wasm OUTPUT.wasm VERSION
       cargo xtask-component wit COMPONENT.wasm|FOLDER";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let made = match words[..] {
        ["bind", input, out_dir, name] => bind(input, out_dir, name),
        ["deflate", input, output] => deflate(input, output),
        #[cfg(feature = "component")]
        ["component", input, output, version] => component::make(input, output, version),
        ["write", "--check"] => check(),
        ["write", ref files @ ..] => write(files),
        #[cfg(feature = "component")]
        ["wit", input] => component::wit(input).map(|text| print!("{text}")),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match made {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cargo xtask {}: {error:#}", words.join(" "));
            ExitCode::FAILURE
        }
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("tools/xtask/ is in the repository")
}

/// Writes these files, or all.
fn write(files: &[&str]) -> anyhow::Result<()> {
    for file in files {
        let is_known = write::FILES.iter().any(|written| written.file == *file);
        anyhow::ensure!(is_known, "{file} is not written from Rust");
    }
    for written in write::FILES {
        if files.is_empty() || files.contains(&written.file) {
            fs::write(root().join(written.file), written.text(root()))?;
        }
    }
    Ok(())
}

fn check() -> anyhow::Result<()> {
    let stale = write::stale(root());
    anyhow::ensure!(stale.is_empty(), "`cargo xtask write` writes {} anew", stale.join(", "));
    Ok(())
}

/// Several results come in the memory, not as values. For each signature with several values V8 compiles
/// code of its own, half a millisecond each.
fn bind(input: &str, out_dir: &str, name: &str) -> anyhow::Result<()> {
    let mut module = fs::read(input)?;
    let feature = b"+\x0amultivalue";
    if let Some(at) = module.windows(feature.len()).rposition(|bytes| bytes == feature) {
        module[at] = b'-';
    }
    wasm_bindgen_cli_support::Bindgen::new()
        .input_bytes(name, module)
        .out_name(name)
        .typescript(true)
        .remove_producers_section(true)
        .omit_default_module_path(true)
        .web(true)
        .and_then(|bindgen| bindgen.generate(out_dir))
}

fn deflate(input: &str, output: &str) -> anyhow::Result<()> {
    let mut deflated = Vec::new();
    zopfli::compress(Options::default(), Format::Deflate, File::open(input)?, &mut deflated)?;
    Ok(fs::write(output, deflated)?)
}
