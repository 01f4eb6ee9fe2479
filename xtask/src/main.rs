//! Makes `pkg/` from the compiled module: `cargo xtask INPUT.wasm OUT_DIR NAME`.
//!
//! The bindings generator is a library pinned in `Cargo.lock` beside `wasm-bindgen` itself, so the two can
//! never disagree, and a fresh machine needs no `cargo install`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [input, out_dir, name] = arguments.as_slice() else {
        eprintln!("usage: cargo xtask INPUT.wasm OUT_DIR NAME");
        return ExitCode::from(2);
    };
    let made = wasm_bindgen_cli_support::Bindgen::new()
        .input_path(input)
        .out_name(name)
        .typescript(true)
        .remove_producers_section(true)
        .omit_default_module_path(true)
        .web(true)
        .and_then(|bindgen| bindgen.generate(out_dir));
    match made {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot make bindings of {input}: {error:#}");
            ExitCode::FAILURE
        }
    }
}
