//! The engine's answers, as the types and the errors of `autothrottle/_records.py`, `_state.py` and
//! `errors.py`.

use std::{collections::BTreeSet, sync::LazyLock};

use autothrottle::{
    BudgetStats, ConfigError, Effective, Reason, ScopeStats, Value,
    boundary::{self, Boundary, nanos},
    config::scrapy::snake,
    headers::{AppliesTo, Hints, Quota},
    record::camel_case,
};
use pyo3::{
    IntoPyObjectExt,
    exceptions::PyValueError,
    prelude::*,
    sync::PyOnceLock,
    types::{PyDict, PyList, PyTuple},
};

use crate::value;

/// The classes that answers have, each looked up once.
pub struct Classes {
    pub decision: Py<PyAny>,
    pub settled: Py<PyAny>,
    /// The usual one: over, and the server asked for no wait.
    pub over: Py<PyAny>,
    pub peek: Py<PyAny>,
    records: [(&'static str, Py<PyAny>); 5],
    hints_read: Py<PyAny>,
    quota_hint: Py<PyAny>,
}

static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();

/// A tuple of what Python can have of each.
macro_rules! tuple {
    ($py:expr; $($each:expr),* $(,)?) => {
        PyTuple::new($py, [$($each.into_bound_py_any($py)?),*])?
    };
}

impl Classes {
    /// Those of this interpreter.
    pub fn of(py: Python<'_>) -> PyResult<&'static Self> {
        CLASSES.get_or_try_init(py, || {
            let state = py.import("autothrottle._state")?;
            let records = py.import("autothrottle._records")?;
            let class = |name| state.getattr(name).map(Bound::unbind);
            let record = |name| records.getattr(name).map(Bound::unbind);
            let settled = class("Settled")?;
            Ok(Self {
                decision: class("Decision")?,
                over: settled.call1(py, (boundary::Settled::Over.name(), None::<u64>))?,
                settled,
                peek: class("Peek")?,
                records: [
                    ("", record("Notice")?),
                    ("stats", record("Stats")?),
                    ("scopes", record("ScopeStats")?),
                    ("budgets", record("BudgetStats")?),
                    ("shared", record("SharedStats")?),
                ],
                hints_read: class("HintsRead")?,
                quota_hint: class("QuotaHint")?,
            })
        })
    }

    /// A record as its class, which `name` says as it stands in another record. Python's names have no unit:
    /// times are whole nanoseconds.
    pub fn record<'py>(&self, py: Python<'py>, name: &str, record: &Value) -> PyResult<Bound<'py, PyAny>> {
        let members = PyDict::new(py);
        for (key, value) in entries(record) {
            members.set_item(python_name(key), self.member(py, key, value)?)?;
        }
        let class = self.records.iter().find(|(known, _)| *known == name);
        class.map_or(&self.records[0].1, |(_, class)| class).bind(py).call((), Some(&members))
    }

    fn member<'py>(&self, py: Python<'py>, key: &str, value: &Value) -> PyResult<Bound<'py, PyAny>> {
        match *value {
            Value::Number(ms) if is_time(key) && !ms.is_finite() => Ok(py.None().into_bound(py)),
            Value::Number(ms) if key.ends_with("Ms") => nanos::of_span(ms).into_bound_py_any(py),
            Value::Number(ms) if is_time(key) => nanos::of_mark(ms).into_bound_py_any(py),
            Value::Number(number) if FLOATS.contains(key) => number.into_bound_py_any(py),
            Value::Map(_) if key == "shared" => self.record(py, key, value),
            Value::Map(_) => {
                let dict = PyDict::new(py);
                for (name, one) in entries(value) {
                    let one = match *one {
                        Value::Number(share) => share.into_bound_py_any(py)?,
                        _ => self.record(py, key, one)?,
                    };
                    dict.set_item(name, one)?;
                }
                Ok(dict.into_any())
            }
            _ => value::object(py, value),
        }
    }

    /// The hints of header fields.
    pub fn hints<'py>(&self, py: Python<'py>, hints: Hints) -> PyResult<Bound<'py, PyAny>> {
        let budget = |quota| hints.budget_of(quota).map(|name| name.trim_end_matches('/').to_string());
        let named: Vec<_> = hints.quotas.iter().map(|quota| (quota.clone(), budget(quota))).collect();
        let quotas = named.into_iter().map(|(quota, budget)| self.quota(py, quota, budget));
        let values = tuple!(py;
            hints.delay_ms.map(nanos_of),
            hints.source,
            PyList::new(py, quotas.collect::<PyResult<Vec<_>>>()?)?,
            hints.poll_after_ms.map(nanos_of),
            hints.rate_per_million_s.map(|rate| rate as f64 / 1e6),
            hints.applies_to.map(|to| match to {
                AppliesTo::Redirect => "redirect",
                AppliesTo::Request => "request",
            }),
            hints.scope,
            hints.bucket,
            hints.is_whole,
            hints.is_ignored,
            hints.is_cached,
        );
        self.hints_read.bind(py).call1(values)
    }

    fn quota<'py>(
        &self,
        py: Python<'py>,
        told: Quota,
        budget: Option<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.quota_hint.bind(py).call1((
            told.policy,
            told.limit,
            told.remaining,
            told.used,
            told.reset_ms.map(nanos_of),
            told.window_ms.map(nanos_of),
            told.unit,
            told.partition_key,
            budget,
        ))
    }
}

/// The fields that may be no whole numbers, though they often are.
static FLOATS: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let records = [ScopeStats::RECORD, BudgetStats::RECORD, Effective::RECORD];
    let fields = records.iter().flat_map(|record| record.fields);
    fields.filter(|field| field.kind.contains("f64")).map(|field| camel_case(field.name)).collect()
});

/// Instants and spans say so.
fn is_time(key: &str) -> bool {
    ["Ms", "At", "Until", "Since"].iter().any(|end| key.ends_with(end))
}

/// `delayMs` is `delay`; `for` is a word of Python's own.
fn python_name(key: &str) -> String {
    let name = snake(key.strip_suffix("Ms").unwrap_or(key));
    if name == "for" { "span".into() } else { name }
}

fn entries(value: &Value) -> &[(String, Value)] {
    if let Value::Map(entries) = value { entries } else { &[] }
}

fn nanos_of(ms: u64) -> u64 {
    ms.saturating_mul(1_000_000)
}

/// An error that lists every problem.
pub fn problems(py: Python<'_>, class: &str, error: ConfigError) -> PyErr {
    let problems: Vec<_> = error.triples().into_iter().map(<(String, String, String)>::from).collect();
    raised(py, class, (problems,))
}

/// An error of `autothrottle/errors.py`.
fn raised<'py>(py: Python<'py>, class: &str, arguments: impl pyo3::call::PyCallArgs<'py>) -> PyErr {
    let class = py.import("autothrottle.errors").and_then(|errors| errors.getattr(class));
    class.and_then(|class| class.call1(arguments)).map_or_else(|error| error, PyErr::from_value)
}

/// Why a request was not taken in.
pub enum Refusal {
    UnknownScope,
    QueueFull,
    CostExceedsQuota(Option<String>, Option<String>),
    NotANumber,
    ScopeDown(String, f64),
}

impl Refusal {
    /// The error that a negative number of the façade stands for.
    pub fn of(boundary: &Boundary, code: f64) -> Self {
        let scope = boundary.refused_scope().map(String::from);
        match code {
            -2.0 => Self::QueueFull,
            -3.0 => Self::CostExceedsQuota(scope, boundary.refused_path()),
            -4.0 => Self::NotANumber,
            -5.0 => Self::ScopeDown(scope.unwrap_or_default(), boundary.refused_ms() / 1e3),
            _ => Self::UnknownScope,
        }
    }

    /// In npm's words.
    pub fn error(self, py: Python<'_>) -> PyErr {
        match self {
            Self::QueueFull => raised(py, "QueueFullError", ()),
            Self::CostExceedsQuota(scope, path) => raised(py, "CostExceedsQuotaError", (scope, path)),
            Self::ScopeDown(scope, seconds) => raised(py, "ScopeDownError", (scope, seconds)),
            Self::NotANumber => {
                PyValueError::new_err("cost and delay must be finite and not below 0, priority finite")
            }
            Self::UnknownScope => PyValueError::new_err("the request names no scope that this engine knows"),
        }
    }
}

/// After a poll or a peek: who makes the next request wait, and why.
pub fn because(boundary: &Boundary) -> (Option<&'static str>, Option<u64>) {
    let place = boundary.reason();
    let reason = (place >= 0.0).then(|| Reason::ALL.get(place as usize)).flatten();
    let scope = boundary.reason_scope();
    (reason.map(|reason| reason.name()), (scope >= 0.0).then_some(scope as u64))
}
