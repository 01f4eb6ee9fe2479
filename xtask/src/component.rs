//! Wraps a core module as a component, and reads a component's WIT back.
//!
//! The core module has its WIT in a section that `wit-bindgen` wrote. It is compiled for
//! `wasm32-unknown-unknown`, not for WASI, which would bring eleven imports along that nobody here calls.

use std::fs;

use anyhow::{Context, bail};
use wasm_metadata::AddMetadata;
use wit_component::{ComponentEncoder, DecodedWasm, OutputToString, WitPrinter};

/// Makes the component, with the metadata that registries show.
pub fn make(input: &str, output: &str) -> anyhow::Result<()> {
    let module = fs::read(input).with_context(|| format!("reading {input}"))?;
    let component = ComponentEncoder::default().module(&module)?.validate(true).encode()?;
    let mut about = AddMetadata::default();
    about.name = wasm_metadata::AddMetadataField::Set("autothrottle:engine".into());
    fs::write(output, about.to_wasm(&component)?).with_context(|| format!("writing {output}"))
}

/// The WIT of a component: what it imports and exports.
pub fn wit(input: &str) -> anyhow::Result<String> {
    let bytes = fs::read(input).with_context(|| format!("reading {input}"))?;
    let DecodedWasm::Component(resolve, world) = wit_component::decode(&bytes)? else {
        bail!("{input} is a package of WIT, not a component");
    };
    let mut printer = WitPrinter::<OutputToString>::default();
    let package = resolve.worlds[world].package.context("a world belongs to a package")?;
    let nested: Vec<_> = resolve.packages.iter().map(|(id, _)| id).filter(|&id| id != package).collect();
    printer.print(&resolve, package, &nested)?;
    Ok(printer.output.to_string())
}
