//! How quotas are typed: a number of units, an object, or a list of those.

use super::{
    reader::{Fields, Problems},
    table::{self, Section},
};
use crate::{
    policy::quota::Cost,
    time::Span,
    value::{Value, item_path},
};

/// One of `quota` as typed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Quota {
    pub limit: Cost,
    pub window: Option<Span>,
    pub strict: Option<bool>,
}

pub(super) fn read_quotas(value: Value, path: &str, problems: &mut Problems) -> Vec<Quota> {
    match value {
        Value::List(items) => {
            let one = |(index, item)| read_quota(item, &item_path(path, index), problems);
            items.into_iter().enumerate().filter_map(one).collect()
        }
        one => read_quota(one, path, problems).into_iter().collect(),
    }
}

fn read_quota(value: Value, path: &str, problems: &mut Problems) -> Option<Quota> {
    let limit_row = table::row(table::ROWS, Section::Quota, "limit").expect("the table has it");
    match value {
        Value::Number(units) if limit_row.kind.holds(units) => {
            Some(Quota { limit: Cost::from_units(units)?, window: None, strict: None })
        }
        Value::Map(_) => {
            let mut fields = Fields::of(value, path.into(), Section::Quota, problems);
            if !fields.has("limit") {
                let path = fields.path_of("limit");
                fields.problems().add(&path, limit_row.kind.wants(), "nothing");
            }
            let limit = fields.number("limit");
            let window = fields.number("window").map(Span::from_millis);
            let strict = fields.flag("strict");
            fields.finish();
            Some(Quota { limit: Cost::from_units(limit?)?, window, strict })
        }
        other => {
            problems.add(path, table::Kind::Quota.wants(), other.describe());
            None
        }
    }
}
