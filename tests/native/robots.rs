//! The robots.txt vectors: what each file asks of a crawler, in seconds.

use std::fs;

use autothrottle::crawl_delay_ms;
use serde_json::Value;

#[test]
fn all_robots_vectors() {
    let folder = format!("{}/tests/vectors/robots", env!("CARGO_MANIFEST_DIR"));
    let cases: Vec<Value> =
        serde_json::from_slice(&fs::read(format!("{folder}/cases.json")).unwrap()).unwrap();
    assert_eq!(cases.len(), 55);
    let wrong = cases.iter().filter_map(|case| {
        let bytes = fs::read(format!("{folder}/files/{}", case["file"].as_str().unwrap())).unwrap();
        let got = crawl_delay_ms(&bytes, case["ua"].as_str().unwrap());
        let want = case["expect"].as_f64().map(|seconds| seconds * 1000.0);
        (got != want).then(|| format!("{}: got {got:?}, want {want:?}", case["file"]))
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
