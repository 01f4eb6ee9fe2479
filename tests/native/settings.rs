//! Files that are written from the rows of Rust are up to date, and each row has its text in the pages.

use autothrottle::config::table::{DefaultValue, TEXTS};

#[path = "../../tools/xtask/src/write/mod.rs"]
pub mod write;

use write::{objects, python_options, tower_options, typescript_options::settings};

#[test]
fn what_is_written_from_rust_is_up_to_date() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let stale = write::stale(root);
    assert!(stale.is_empty(), "`cargo xtask write` writes {} anew", stale.join(", "));
}

#[test]
fn each_translation_of_words_has_its_text() {
    let texts = TEXTS.iter().flat_map(|text| [text.about, text.when, text.because]);
    let objects = objects::OBJECTS.iter().map(|object| object.about);
    let all = texts.chain(objects).collect::<String>() + "{ defaults: rate=5 }";
    for (from, _) in python_options::WORDS.iter().chain(tower_options::WORDS) {
        assert!(all.contains(from), "no text says {from:?}");
    }
}

#[test]
fn every_default_has_its_reason() {
    for (row, text) in settings() {
        let is_required = row.default == DefaultValue::Required;
        assert_eq!(text.because.is_empty(), is_required, "{:?} {}", row.section, row.key);
        assert!(!text.about.is_empty() && text.about.ends_with('.'), "{:?} {}", row.section, row.key);
    }
}
