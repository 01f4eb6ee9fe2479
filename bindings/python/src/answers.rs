//! What the engine answers, as the types and the errors of `autothrottle/_state.py` and `errors.py`.

use autothrottle::{
    ConfigError, Diagnostic, Notice, Pace, Reason, ScopeStats, Stats,
    boundary::{Boundary, nanos},
    headers::{AppliesTo, Hints, Quota},
};
use pyo3::{
    IntoPyObjectExt,
    exceptions::PyValueError,
    prelude::*,
    sync::PyOnceLock,
    types::{PyDict, PyList, PyTuple},
};

/// The classes that answers have, each looked up once.
pub struct Classes {
    pub decision: Py<PyAny>,
    pub settled: Py<PyAny>,
    pub peek: Py<PyAny>,
    stats: Py<PyAny>,
    scope_stats: Py<PyAny>,
    budget_stats: Py<PyAny>,
    notice: Py<PyAny>,
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
            let class = |name| state.getattr(name).map(Bound::unbind);
            Ok(Self {
                decision: class("Decision")?,
                settled: class("Settled")?,
                peek: class("Peek")?,
                stats: class("Stats")?,
                scope_stats: class("ScopeStats")?,
                budget_stats: class("BudgetStats")?,
                notice: class("Notice")?,
                hints_read: class("HintsRead")?,
                quota_hint: class("QuotaHint")?,
            })
        })
    }

    /// Everything, with each scope under its name.
    pub fn stats<'py>(&self, py: Python<'py>, stats: Stats) -> PyResult<Bound<'py, PyAny>> {
        let scopes = PyDict::new(py);
        for (name, scope) in stats.scopes {
            scopes.set_item(name, self.scope_stats(py, scope)?)?;
        }
        let Stats { waiting, in_flight, sent, settled, cancelled, paused, .. } = stats;
        self.stats.bind(py).call1((waiting, in_flight, sent, settled, cancelled, paused, scopes))
    }

    /// One scope.
    pub fn scope_stats<'py>(&self, py: Python<'py>, stats: ScopeStats) -> PyResult<Bound<'py, PyAny>> {
        let shares = PyDict::new(py);
        for (reason, share) in stats.effective.bound_by {
            shares.set_item(reason.map_or("elsewhere", Reason::name), share)?;
        }
        let budgets = PyDict::new(py);
        for (name, budget) in stats.budgets {
            let recovers = budget.recovers_at.map(nanos::of_mark);
            let values = tuple!(py; budget.in_flight, budget.waiting, budget.quota_left, recovers);
            budgets.set_item(name, self.budget_stats.bind(py).call1(values)?)?;
        }
        let values = tuple!(py;
            nanos::of_span(stats.delay_ms),
            nanos::of_span(stats.backoff_ms),
            stats.backoff_step,
            stats.slots,
            stats.in_flight,
            stats.waiting,
            stats.hold_until.map(nanos::of_mark),
            stats.quota_left,
            stats.reason.map(Reason::name),
            stats.paused,
            stats.effective.rate,
            stats.effective.concurrency,
            shares,
            stats.without_effect,
            stats.effective.latency_ms.map(nanos::of_span),
            stats.recovers_at.map(nanos::of_mark),
            budgets,
        );
        self.scope_stats.bind(py).call1(values)
    }

    /// What people should know.
    pub fn notices<'py>(&self, py: Python<'py>, notices: Vec<Notice>) -> PyResult<Bound<'py, PyList>> {
        let all: Vec<_> =
            notices.into_iter().map(|notice| self.notice(py, notice)).collect::<PyResult<_>>()?;
        PyList::new(py, all)
    }

    fn notice<'py>(&self, py: Python<'py>, notice: Notice) -> PyResult<Bound<'py, PyAny>> {
        let more = PyDict::new(py);
        let pace_of = |pace: Pace| {
            more.set_item("delay", nanos::of_span(pace.delay_ms))?;
            more.set_item("step", pace.step)?;
            more.set_item("hold_until", pace.hold_until.map(|until| nanos::of_mark(until.millis())))?;
            PyResult::Ok(pace.scope)
        };
        let finding_of = |found: Diagnostic| {
            more.set_item("setting", found.setting)?;
            more.set_item("path", found.path)?;
            more.set_item("why", found.why)?;
            PyResult::Ok(found.scope)
        };
        let (kind, scope) = match notice {
            Notice::Backoff(pace) => ("backoff", pace_of(pace)?),
            Notice::Recover(pace) => ("recover", pace_of(pace)?),
            Notice::Delay(pace) => ("delay", pace_of(pace)?),
            Notice::Hold { pace, asked } => {
                more.set_item("asked", asked.map(|span| nanos::of_mark(span.millis())))?;
                ("hold", pace_of(pace)?)
            }
            Notice::Answer { pace, is_bad, delay_before_ms, in_flight } => {
                more.set_item("is_bad", is_bad)?;
                more.set_item("delay_before", nanos::of_span(delay_before_ms))?;
                more.set_item("in_flight", in_flight)?;
                ("answer", pace_of(pace)?)
            }
            Notice::NoEffect(found) => ("no-effect", finding_of(found)?),
            Notice::RampupBound(found) => ("rampup-bound", finding_of(found)?),
            Notice::HoldCut(found) => ("hold-cut", finding_of(found)?),
            Notice::Stalled { scope, span } => {
                more.set_item("span", nanos::of_mark(span.millis()))?;
                ("stall", scope)
            }
            Notice::Budgets { scope } => ("budgets", scope),
            Notice::Down { scope, span } => {
                more.set_item("span", nanos::of_mark(span.millis()))?;
                ("down", scope)
            }
        };
        self.notice.bind(py).call((kind, scope), Some(&more))
    }

    /// What header fields say.
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
    /// What a negative number of the façade says.
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
