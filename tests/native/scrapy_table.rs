//! Scrapy's settings for `autothrottle.scrapy`, written from the table: which name is which option, and the
//! keys of the dicts of `THROTTLING_SCOPES`. `UPDATE_GOLDEN=1` writes the file anew; otherwise it must be
//! what it would be.
//!
//! A new row reaches the list of settings by itself.

use std::fmt::Write;

use autothrottle::config::table::{Kind, ROWS, Section, TEXTS};

/// The sections that Scrapy's settings reach, by the names that the Python side gives them.
const SECTIONS: &[(Section, &str, &str)] = &[
    (Section::Root, "root", ""),
    (Section::Driver, "driver", ""),
    (Section::Scope, "scope", ""),
    (Section::Rate, "rate", ""),
    (Section::Quota, "quota", ""),
    (Section::AutoThrottle, "autothrottle", "AUTOTHROTTLE_"),
    (Section::Backoff, "backoff", "BACKOFF_"),
    (Section::Rampup, "rampup", "RAMPUP_"),
    (Section::Retry, "retry", "RETRY_"),
    (Section::Robots, "robots", "THROTTLING_ROBOTSTXT_"),
];

fn name(section: Section) -> &'static str {
    SECTIONS.iter().find(|(each, ..)| *each == section).expect("Scrapy's settings reach it").1
}

/// What a value is turned into on its way.
fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Millis { .. } | Kind::MillisOrFalse => "seconds",
        Kind::Flag => "flag",
        Kind::Jitter => "jitter",
        Kind::Codes { .. } => "codes",
        Kind::Failures => "exceptions",
        Kind::Quota => "quotas",
        Kind::Rate => "pace",
        Kind::Target => "target",
        Kind::Object(section) | Kind::FlagOr(section) => name(section),
        Kind::Driver(_) | Kind::Function | Kind::Named(_) => "python",
        _ => "number",
    }
}

fn snake(key: &str) -> String {
    let mut out = String::new();
    for letter in key.chars() {
        if letter.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}

#[test]
fn scrapys_names_are_the_table() {
    let mut code = String::from(
        "\"\"\"Scrapy's settings and the keys of THROTTLING_SCOPES as the engine's options.\n\n\
         Written from `src/config/rows.rs` by `npm run bless`: change them there.\n\"\"\"\n\n\
         from __future__ import annotations\n\n\
         from typing import Final\n\n\
         SETTINGS: Final[dict[str, tuple[str, str, str]]] = {\n",
    );
    let mut known = Vec::new();
    for (row, text) in ROWS.iter().zip(TEXTS) {
        for setting in text.scrapy.split(", ").filter(|each| each.contains('_')) {
            if setting.to_ascii_uppercase() == setting && !known.contains(&setting) {
                known.push(setting);
                let (section, kind) = (name(row.section), kind(row.kind));
                writeln!(code, "    \"{setting}\": (\"{section}\", \"{}\", \"{kind}\"),", row.key).unwrap();
            }
        }
    }
    code.push_str(
        "}\n\"\"\"A setting's name → section, key and kind of the option.\"\"\"\n\n\
         KEYS: Final[dict[str, dict[str, tuple[str, str]]]] = {\n",
    );
    for &(section, title, prefix) in SECTIONS {
        if matches!(section, Section::Root | Section::Driver | Section::Retry | Section::Robots) {
            continue;
        }
        writeln!(code, "    \"{title}\": {{").unwrap();
        for (row, text) in ROWS.iter().zip(TEXTS).filter(|(row, _)| row.section == section) {
            let mut names = vec![snake(row.key)];
            for setting in text.scrapy.split(", ") {
                if !prefix.is_empty() {
                    names.extend(setting.strip_prefix(prefix).map(str::to_ascii_lowercase));
                }
            }
            names.dedup();
            for each in names {
                writeln!(code, "        \"{each}\": (\"{}\", \"{}\"),", row.key, kind(row.kind)).unwrap();
            }
        }
        code.push_str("    },\n");
    }
    code.push_str(
        "}\n\"\"\"Section → key in a dict of THROTTLING_SCOPES → key and kind of the option.\"\"\"\n",
    );
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/python/src/autothrottle/scrapy/_table.py");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(file, &code).unwrap();
    }
    let found = std::fs::read_to_string(file).unwrap_or_default();
    assert!(found == code, "npm run bless writes {file} anew");
}
