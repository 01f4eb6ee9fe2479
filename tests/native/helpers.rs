//! Helpers of most of these tests; and what fuzzers found, one file a target. Each input stands behind its
//! length in four bytes. `tools/fuzz/corpus.mjs` packs it.

use std::{fs, path::Path};

use autothrottle::{Config, Engine, Instant, Value};

/// JSON as a value of the engine's.
pub fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// An engine with these options.
pub fn engine(options: &str) -> Engine {
    Engine::new(Config::parse(json(options)).expect("options"))
}

/// How many seeds to play: `SEEDS`, as each night sets it, or as many as a usual run has time for.
pub fn seeds(usual: u64) -> u64 {
    std::env::var("SEEDS").map_or(usual, |seeds| seeds.parse().expect("a number of seeds"))
}

/// An instant, in milliseconds from the first one.
pub fn millis(ms: f64) -> Instant {
    Instant::from_millis(ms).expect("an instant")
}

/// The inputs of a target.
pub fn corpus(target: &str) -> Vec<Vec<u8>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tools/fuzz/corpus/{target}.bin"));
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
