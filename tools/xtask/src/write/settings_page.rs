//! `docs/settings.md`, every option with its range, its default and the reason for it; and the tables
//! of warnings and of vendors' fields.

use std::{fmt::Write, path::Path};

use autothrottle::{
    WARNINGS, Warning,
    config::table::{OBJECTS, Object},
    headers::VENDORS,
};

use super::typescript_options::{default_of, settings};

/// The type of a setting, in as few words as a table has room for.
fn in_short(wants: &str) -> String {
    let range = wants.strip_prefix("a whole number from ").and_then(|range| range.split_once(" to "));
    if let Some((least, most)) = range {
        return format!("{least} … {most}");
    }
    wants
        .replace("milliseconds from 0 to a year", "ms")
        .replace("milliseconds above 0, at most a year", "ms above 0")
        .replace("a number above 0 and below 1", "0 < x < 1")
        .replace("a number above 0, at most ", "0 < x ≤ ")
        .replace("true or false", "boolean")
}

/// `docs/settings.md`.
pub fn page() -> String {
    let mut page = String::from(
        "# Settings\n\n\
         Every option with its range, its default and, in italics, the reason for the default. An unknown key or a\n\
         wrong value is an error that lists all of them. `undefined` and `null` count as left out.\n\n\
         *ms* are milliseconds up to a year. A field of the output has the unit in its name (`delayMs`).\n\
         [Who wins](which-setting.md#who-wins) says which of several settings counts. A setting without effect\n\
         raises a `warning`.\n",
    );
    for &Object { section, title, .. } in OBJECTS {
        if !title.is_empty() {
            write!(page, "\n## {title}\n\n| option | wants | default | |\n|---|---|---|---|\n").unwrap();
        }
        for (row, text) in settings().filter(|(row, _)| row.section == section) {
            let because =
                if text.because.is_empty() { String::new() } else { format!(" *{}*", text.because) };
            let (wants, default) = (in_short(&row.kind.wants()), default_of(row, text));
            writeln!(page, "| `{}` | {wants} | {default} | {}{because} |", row.key, text.about).unwrap();
        }
    }
    page.push_str("\n## Scrapy's names\n\n| option | of | Scrapy |\n|---|---|---|\n");
    for &Object { section, typescript: interface, .. } in OBJECTS {
        let here = settings().filter(|(row, text)| row.section == section && !text.scrapy.is_empty());
        for (row, text) in here {
            writeln!(page, "| `{}` | `{interface}` | {} |", row.key, text.scrapy).unwrap();
        }
    }
    page
}

/// The table of warnings in `docs/events.md`.
pub fn warnings(_: &Path) -> String {
    let mut page = String::from("\n| code | meaning | what to do |\n|---|---|---|\n");
    for Warning { code, only, about, cure, .. } in WARNINGS {
        let only = if only.is_empty() { String::new() } else { format!(" ({only})") };
        let cure = if cure.is_empty() { String::new() } else { format!("{cure} ") };
        writeln!(page, "| `{code}`{only} | {about} | {cure}|").unwrap();
    }
    page + "\n"
}

/// The table of vendors' fields in `docs/hints.md`.
pub fn vendors(_: &Path) -> String {
    let mut page = String::from("\n| fields | source |\n|---|---|\n");
    for (fields, source) in VENDORS {
        writeln!(page, "| {fields} | {source} |").unwrap();
    }
    page + "\n"
}
