//! Files that are written from the rows of Rust are up to date, and each row has its text in the pages.

use autothrottle::{
    ERRORS, ErrorRow,
    config::table::{DefaultValue, OBJECTS, TEXTS},
};

#[path = "../../tools/xtask/src/write/mod.rs"]
pub mod write;

use write::{python_options, tower_options, typescript_options::settings};

#[test]
fn files_written_from_rust_are_up_to_date() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let stale = write::stale(root);
    assert!(stale.is_empty(), "`cargo xtask write` writes {} anew", stale.join(", "));
}

#[test]
fn each_translation_of_words_has_its_text() {
    let texts = TEXTS.iter().flat_map(|text| [text.about, text.when, text.because]);
    let objects = OBJECTS.iter().map(|object| object.about);
    let all = texts.chain(objects).collect::<String>() + "{ defaults: rate=5 }";
    for (from, _) in python_options::WORDS.iter().chain(tower_options::WORDS) {
        assert!(all.contains(from), "no text says {from:?}");
    }
}

/// The classes of a source with their codes: those that say one, without the base of all.
fn classes(source: &str, mark: &str) -> Vec<(String, String)> {
    let text =
        std::fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(source)).unwrap();
    let of = |class: &str| {
        let name: String = class.chars().take_while(|at| at.is_alphanumeric()).collect();
        let code = class.split(['\'', '"']).find(|word| word.starts_with("ERR_"))?;
        (name != "ThrottleError").then(|| (name, code.to_string()))
    };
    text.split(mark).skip(1).filter_map(of).collect()
}

#[test]
fn every_class_of_an_error_is_in_its_row_in_typescript_and_python() {
    let typescript = ["js/base/errors.ts", "js/durable-object.ts", "js/shared/transport.ts"];
    let typescript = typescript.map(|source| classes(source, "\nexport class ")).concat();
    let python = classes("python/src/autothrottle/errors.py", "\nclass ");
    let sorted = |mut all: Vec<(String, String)>| {
        all.sort_unstable();
        all
    };
    let rows = |name: fn(&ErrorRow) -> &str| {
        let named = ERRORS.iter().filter(|row| !name(row).is_empty());
        named.map(|row| (name(row).into(), row.code.into())).collect()
    };
    assert_eq!(sorted(typescript), sorted(rows(|row| row.class)));
    assert_eq!(sorted(python), sorted(rows(|row| row.python)));
}

#[test]
fn every_default_has_its_reason() {
    for (row, text) in settings() {
        let is_required = row.default == DefaultValue::Required;
        assert_eq!(text.because.is_empty(), is_required, "{:?} {}", row.section, row.key);
        assert!(!text.about.is_empty() && text.about.ends_with('.'), "{:?} {}", row.section, row.key);
    }
}
