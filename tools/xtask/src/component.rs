//! Wraps a core module as a component, and reads a component's WIT back.
//!
//! The core module has its WIT in a section that `wit-bindgen` wrote. It is compiled for
//! `wasm32-unknown-unknown`, not for WASI, which would bring eleven imports along that no code here calls.

use std::{fs, path::Path};

use anyhow::{Context, bail};
use wasm_encoder::{ComponentSection, CustomSection};
use wasm_metadata::{AddMetadata, AddMetadataField};
use wasmparser::{Chunk, Parser, Payload};
use wit_component::{ComponentEncoder, DecodedWasm, OutputToString, WitPrinter};
use wit_parser::Resolve;

/// The metadata that registries show: sections of the names that OCI gives to annotations.
const ABOUT: [(&str, &str); 2] = [
    ("description", "Decides when the next request may be sent. No I/O, no clock, no imports."),
    ("licenses", "MIT"),
];

/// Makes the component of the package in this version.
pub fn make(input: &str, output: &str, version: &str) -> anyhow::Result<()> {
    let module = fs::read(input).with_context(|| format!("reading {input}"))?;
    let component = ComponentEncoder::default().module(&module)?.validate(true).encode()?;
    let mut component = without_names(&component)?;
    for (name, data) in ABOUT.into_iter().chain([("version", version)]) {
        let (name, data) = (name.into(), data.as_bytes().into());
        CustomSection { name, data }.append_to_component(&mut component);
    }
    let mut about = AddMetadata::default();
    about.name = AddMetadataField::Set("autothrottle:engine".into());
    fs::write(output, about.to_wasm(&component)?).with_context(|| format!("writing {output}"))
}

/// The component without the names of its parts: five kilobytes that only a debugger shows.
fn without_names(component: &[u8]) -> anyhow::Result<Vec<u8>> {
    let (mut parser, mut at, mut kept) = (Parser::new(0), 0, Vec::new());
    while at < component.len() {
        let Chunk::Parsed { consumed, payload } = parser.parse(&component[at..], true)? else {
            bail!("the component ends within a section");
        };
        let end = match &payload {
            Payload::ModuleSection { unchecked_range: inner, .. }
            | Payload::ComponentSection { unchecked_range: inner, .. } => usize::try_from(inner.end)?,
            _ => at + consumed,
        };
        if !matches!(&payload, Payload::CustomSection(section) if section.name() == "component-name") {
            kept.extend_from_slice(&component[at..end]);
        }
        at = end;
    }
    Ok(kept)
}

/// The WIT of a component, or of a folder of WIT, without comments: what it imports and exports.
pub fn wit(input: &str) -> anyhow::Result<String> {
    let (resolve, package) = if Path::new(input).is_dir() {
        let mut resolve = Resolve::default();
        let (package, _) = resolve.push_dir(input)?;
        (resolve, package)
    } else {
        let bytes = fs::read(input).with_context(|| format!("reading {input}"))?;
        let DecodedWasm::Component(resolve, world) = wit_component::decode(&bytes)? else {
            bail!("{input} is a package of WIT, not a component");
        };
        let package = resolve.worlds[world].package.context("a world belongs to a package")?;
        (resolve, package)
    };
    let mut printer = WitPrinter::<OutputToString>::default();
    printer.emit_docs(false);
    let others: Vec<_> = resolve.packages.iter().map(|(id, _)| id).filter(|&id| id != package).collect();
    printer.print(&resolve, package, &others)?;
    Ok(printer.output.to_string())
}
