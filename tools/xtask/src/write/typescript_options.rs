//! `js/options/generated.ts`: TypeScript's types of the options, from the table of settings.

use std::{collections::BTreeSet, fmt::Write};

use autothrottle::{
    Value,
    config::{
        scrapy,
        table::{self, DefaultValue, Kind, OBJECTS, Object, Row, Section, Text},
    },
    simulate,
};

use super::{driver_defaults, object};

/// Each setting with its texts.
pub fn settings() -> impl Iterator<Item = (&'static Row, &'static Text)> {
    let throttle = table::ROWS.iter().zip(table::TEXTS);
    throttle.chain(simulate::ROWS.iter().zip(simulate::TEXTS))
}

/// The default in words.
pub fn default_of(row: &Row, text: &Text) -> String {
    let own = |value| match value {
        DefaultValue::Word(word) => Some(format!("`{word}`")),
        _ => None,
    };
    super::default_of(row, text, own, str::to_string)
}

fn interface(of: Section) -> &'static str {
    object(of).typescript
}

fn typescript(row: &Row, text: &Text) -> String {
    if !text.typescript.is_empty() {
        return text.typescript.into();
    }
    match row.kind {
        Kind::Number { .. } | Kind::Whole { .. } | Kind::Millis { .. } | Kind::Fraction | Kind::Seed => {
            "number".into()
        }
        Kind::MillisOrFalse => "number | false".into(),
        Kind::Flag => "boolean".into(),
        Kind::Target => "number | readonly [low: number, high: number]".into(),
        Kind::Codes { .. } | Kind::Amounts => "readonly number[]".into(),
        Kind::Failures => "readonly ('timeout' | 'connection')[]".into(),
        Kind::Jitter => "Jitter".into(),
        Kind::Quota => "number | QuotaOptions | readonly (number | QuotaOptions)[]".into(),
        Kind::Rate => "Rate".into(),
        Kind::Object(section) => interface(section).into(),
        Kind::Named(section) => format!("Record<string, {}>", interface(section)),
        Kind::FlagOr(section) => format!("boolean | {}", interface(section)),
        Kind::Word(words) => words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" | "),
        Kind::Text(_) => "string".into(),
        Kind::Texts(_) => "readonly string[]".into(),
        Kind::Function | Kind::Driver(_) => unreachable!("{} has a type of its own", row.key),
    }
}

/// A comment, in lines that fit.
pub fn comment(text: &str, indent: &str) -> String {
    if indent.len() + text.len() + 8 <= 108 {
        return format!("{indent}/** {text} */\n");
    }
    let mut out = format!("{indent}/**\n");
    let mut line = format!("{indent} *");
    for word in text.split(' ') {
        if line.chars().count() + 1 + word.chars().count() > 106 {
            writeln!(out, "{line}").unwrap();
            line = format!("{indent} *");
        }
        write!(line, " {word}").unwrap();
    }
    write!(out, "{line}\n{indent} */\n").unwrap();
    out
}

/// A value as TypeScript has it, in Biome's form.
fn literal(value: &Value, indent: &str) -> String {
    match value {
        Value::List(items) => {
            let items: Vec<_> = items.iter().map(|item| literal(item, "")).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Map(entries) => {
            let inner = format!("{indent}  ");
            let line =
                |(key, value): &(String, Value)| format!("{inner}{key}: {},\n", literal(value, &inner));
            let lines: String = entries.iter().map(line).collect();
            format!("{{\n{lines}{indent}}}")
        }
        other => other.describe().replace('"', "'"),
    }
}

/// `js/options/generated.ts`.
pub fn types() -> String {
    let mut code = String::from(
        "/** The options' types, which `npm run build` writes from `src/config/table.rs`: change them there. */\n\n\
         import type { Shared } from '../core/host.js'\n\
         import type { RobotsRules } from '../fetch/robots.js'\n\
         import type {\n  GetErrorBackoff,\n  GetHints,\n  GetResponseBackoff,\n  GetResponseDelay,\n  GetScopes,\n  RetryWhen,\n\
         } from '../scopes/hooks.js'\n\
         import type { MakeScopeManager, ScopeManager } from '../scopes/strategy.js'\n\
         import type { Snapshot } from '../wasm/engine.js'\n\
         import type { Clock, Jitter, Rate } from './options.js'\n",
    );
    for &Object { section, typescript: name, about, .. } in OBJECTS {
        let (above, extends) = match section {
            Section::Root => (
                "The options of the engine. Settings of scopes may stand at the top: `{ rate: 5 }` is short \
                 for `{ defaults: { rate: 5 } }`.",
                " extends ScopeOptions",
            ),
            Section::Driver => (about, " extends EngineOptions"),
            _ => (about, ""),
        };
        write!(code, "\n{}export interface {name}{extends} {{\n", comment(above, "")).unwrap();
        for (row, text) in settings().filter(|(row, _)| row.section == section) {
            let is_required = row.default == DefaultValue::Required;
            let mut doc = text.about.to_string();
            let wants = row.kind.wants();
            let is_range = matches!(row.kind, Kind::Number { .. } | Kind::Whole { .. } | Kind::Fraction);
            if is_range {
                write!(doc, " {}{}.", wants[..1].to_uppercase(), &wants[1..]).unwrap();
            }
            if !is_required {
                write!(doc, " Default {}.", default_of(row, text).replace("*/", "")).unwrap();
            }
            if !text.because.is_empty() {
                write!(doc, " {}", text.because).unwrap();
            }
            // The settings of a simulated server depend on its model.
            let optional =
                if is_required && (section != Section::Server || row.key == "model") { "" } else { "?" };
            let mut wanted = format!(" {}", typescript(row, text));
            if row.key.len() + optional.len() + wanted.len() > 97 {
                wanted = format!(" |{wanted}").replace(" | ", "\n    | "); // as Biome has it
            }
            writeln!(code, "{}  {}{optional}:{wanted}", comment(&doc, "  "), row.key).unwrap();
        }
        code.push_str("}\n");
    }
    let keys_of = |sections: &[Section]| {
        let rows = table::ROWS.iter().filter(|row| sections.contains(&row.section));
        rows.map(|row| row.key).collect::<BTreeSet<_>>()
    };
    for (about, name, keys) in [
        ("Options that only a driver reads.", "DRIVER_KEYS", keys_of(&[Section::Driver])),
        (
            "Options that the engine reads, of all scopes or of one.",
            "ENGINE_KEYS",
            keys_of(&[Section::Root, Section::Scope]),
        ),
        (
            "Settings of a scope by which a send may keep the next one waiting.",
            "PACE_KEYS",
            table::PACES.iter().map(|(_, key, _)| *key).collect(),
        ),
    ] {
        let list = keys.into_iter().collect::<Vec<_>>().join("',\n  '");
        write!(code, "\n/** {about} */\nexport const {name}: readonly string[] = [\n  '{list}',\n]\n")
            .unwrap();
    }
    code.push_str("\n// Defaults of settings that the engine does not read.\n");
    for (name, default) in driver_defaults() {
        let default = match default {
            DefaultValue::Number(number) => number.to_string(),
            DefaultValue::Words(words) => format!("{words:?}").replace('"', "'"),
            _ => unreachable!("{name}"),
        };
        writeln!(code, "export const {name} = {default}").unwrap();
    }
    let bytes = autothrottle::MOST_ROBOTS_BYTES;
    write!(
        code,
        "\n/** The bytes of a robots.txt that count (RFC 9309 §2.5). */\nexport const MOST_ROBOTS_BYTES = {bytes}\n"
    )
    .unwrap();
    code.push_str(
        "\n// Scrapy's names of settings, keys of its dicts, and defaults: `src/config/scrapy.rs`.\n",
    );
    let types = [
        ": Record<string, readonly [section: string, key: string, kind: string]>",
        ": Record<string, Record<string, readonly [key: string, kind: string]>>",
        "",
    ];
    for ((name, table), of) in scrapy::tables().into_iter().zip(types) {
        writeln!(code, "export const {name}{of} = {}", literal(&table, "")).unwrap();
    }
    code
}
