//! Makes what is shipped from compiled modules, with tools that are libraries pinned in `Cargo.lock`, so that
//! a fresh machine needs no `cargo install`:
//!
//! - `cargo xtask bind INPUT.wasm OUT_DIR NAME`: the JavaScript bindings, by exactly the generator that
//!   `wasm-bindgen` itself is locked to;
//! - `cargo xtask deflate INPUT OUTPUT`: a file deflated, a twentieth smaller than zlib's best;
//! - `cargo xtask options OUTPUT`: the types of the options, from the table of settings;
//! - `cargo xtask records OUTPUT`: the types of what comes out of the engine;
//! - `cargo xtask-component component INPUT.wasm OUTPUT.wasm VERSION`: a module as a component;
//! - `cargo xtask-component wit COMPONENT.wasm`: a component's WIT, read back from its bytes; also of a folder
//!   of WIT.

#[cfg(feature = "component")]
mod component;
mod options;
mod records;

use std::{
    fs::{self, File},
    process::ExitCode,
};

use zopfli::{Format, Options};

const USAGE: &str = "usage: cargo xtask bind INPUT.wasm OUT_DIR NAME
       cargo xtask deflate INPUT OUTPUT
       cargo xtask options OUTPUT
       cargo xtask records OUTPUT
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
        ["options", output] => fs::write(output, options::types()).map_err(Into::into),
        ["records", output] => fs::write(output, records::types()).map_err(Into::into),
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
