//! Makes `pkg/` from the compiled module: `cargo xtask bind INPUT.wasm OUT_DIR NAME`, then
//! `cargo xtask pack INPUT.wasm OUTPUT`.
//!
//! The bindings generator is a library pinned in `Cargo.lock` beside `wasm-bindgen` itself, so the two can
//! never disagree, and a fresh machine needs no `cargo install`.

use std::{error::Error, fs, io::Write, process::ExitCode};

use lzma_rust2::{LzmaOptions, LzmaWriter};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let made = match words[..] {
        ["bind", input, out_dir, name] => bind(input, out_dir, name),
        ["pack", input, output] => pack(input, output),
        _ => {
            eprintln!(
                "usage: cargo xtask bind INPUT.wasm OUT_DIR NAME\n       cargo xtask pack INPUT OUTPUT"
            );
            return ExitCode::from(2);
        }
    };
    match made {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cargo xtask {}: {error}", words.join(" "));
            ExitCode::FAILURE
        }
    }
}

fn bind(input: &str, out_dir: &str, name: &str) -> Result<(), Box<dyn Error>> {
    let made = wasm_bindgen_cli_support::Bindgen::new()
        .input_path(input)
        .out_name(name)
        .typescript(true)
        .remove_producers_section(true)
        .omit_default_module_path(true)
        .web(true)
        .and_then(|bindgen| bindgen.generate(out_dir));
    made.map_err(|error| format!("{error:#}").into())
}

/// LZMA without a header, for `bindings/unpack`, which knows `lc`, `lp` and `pb`. Bytes of WebAssembly are
/// not aligned, so their place says nothing.
fn pack(input: &str, output: &str) -> Result<(), Box<dyn Error>> {
    let options = LzmaOptions {
        lc: 3,
        lp: 0,
        pb: 0,
        nice_len: LzmaOptions::NICE_LEN_MAX,
        depth_limit: 1000,
        ..LzmaOptions::with_preset(9)
    };
    let mut writer = LzmaWriter::new_no_header(Vec::new(), &options, false)?;
    writer.write_all(&fs::read(input)?)?;
    Ok(fs::write(output, writer.finish()?)?)
}
