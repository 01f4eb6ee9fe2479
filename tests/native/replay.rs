//! Every trace against its golden file. `UPDATE_GOLDEN=1` writes the golden files: review them as behaviour.

use std::{fs, path::Path};

use crate::player::play;

#[test]
fn every_trace_has_the_transcript_of_its_golden() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces");
    let mut traces: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "trace"))
        .collect();
    traces.sort();
    assert!(traces.len() >= 13, "only {} traces", traces.len());
    let mut wrong = Vec::new();
    for path in traces {
        let transcript = play(&fs::read_to_string(&path).unwrap());
        let golden = path.with_extension("golden");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&golden, &transcript).unwrap();
        }
        if fs::read_to_string(&golden).unwrap_or_default() != transcript {
            wrong.push(format!("--- {}\n{transcript}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
