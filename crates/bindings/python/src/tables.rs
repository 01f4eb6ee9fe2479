//! Which settings there are, as constants of the module: `SECTIONS` and `DRIVER` with Python's names,
//! `SCRAPY_SETTINGS`, `SCRAPY_KEYS` and `SCRAPY_DEFAULTS` with Scrapy's. A new row of `src/config/table.rs`
//! is in them.

use std::collections::BTreeMap;

use autothrottle::config::{
    scrapy::{self, snake},
    table::{Kind, ROWS, Section, is_pythons},
};
use pyo3::{prelude::*, types::PyDict};

use crate::value;

/// Adds them. An option of `Driver` stands at the top, too.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let (mut sections, mut driver) = (BTreeMap::new(), Vec::new());
    for row in ROWS.iter().filter(|row| is_pythons(row)) {
        let is_drivers = row.section == Section::Driver;
        let section = if is_drivers { Section::Root } else { row.section };
        let keys = sections.entry(format!("{section:?}")).or_insert_with(|| PyDict::new(py));
        keys.set_item(snake(row.key), (row.key, python_kind(row.kind)))?;
        driver.extend(is_drivers.then(|| snake(row.key)));
    }
    module.add("SECTIONS", sections)?;
    module.add("DRIVER", driver)?;

    let mut tables = scrapy::tables().into_iter();
    tables.try_for_each(|(name, table)| module.add(name, value::object(py, &table)?))
}

/// The kind of an option, for the conversion.
fn python_kind(kind: Kind) -> String {
    match kind {
        Kind::Millis { .. } | Kind::MillisOrFalse => "time".into(),
        Kind::Object(of) | Kind::FlagOr(of) => format!("object {of:?}"),
        Kind::Named(of) => format!("named {of:?}"),
        Kind::Quota => "list Quota".into(),
        Kind::Rate => "object Rate".into(),
        _ => "plain".into(),
    }
}
