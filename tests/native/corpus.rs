//! What fuzzers found, one file a target: each input behind its length in four bytes. `fuzz/corpus.mjs`
//! packs it.

use std::{fs, path::Path};

/// The inputs of a target.
pub fn corpus(target: &str) -> Vec<Vec<u8>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fuzz/corpus/{target}.bin"));
    let bytes = fs::read(file).unwrap();
    let (mut rest, mut inputs) = (&bytes[..], Vec::new());
    while let Some((length, behind)) = rest.split_first_chunk() {
        let (input, others) = behind.split_at(u32::from_le_bytes(*length) as usize);
        inputs.push(input.to_vec());
        rest = others;
    }
    assert!(rest.is_empty() && inputs.len() > 100, "{} inputs", inputs.len());
    inputs
}
