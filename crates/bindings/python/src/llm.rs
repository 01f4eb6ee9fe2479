//! Requests to language models, their answers and budgets: `crates/llm`. Python's times are in seconds.

use autothrottle_llm::{
    Asking, Body, Budgets, Kind, Pace, Plan, Refused, Reported, Settings, Size, Usage, Vendor,
};
use pyo3::{prelude::*, types::PyTuple};

/// See [`Body`].
#[pyclass(module = "autothrottle._native")]
pub struct LlmBody(Body);

#[pymethods]
impl LlmBody {
    #[new]
    fn new(is_stream: bool, is_cached_free: bool) -> Self {
        Self(Body::new(is_stream, is_cached_free))
    }

    fn hear(&mut self, part: &[u8]) {
        self.0.hear(part);
    }

    fn end(&mut self) {
        self.0.end();
    }

    #[getter]
    fn input(&self) -> Option<f64> {
        self.0.usage.input
    }

    #[getter]
    fn free(&self) -> f64 {
        self.0.usage.free
    }

    #[getter]
    fn output(&self) -> Option<f64> {
        self.0.usage.output
    }

    #[getter]
    fn written(&self) -> f64 {
        self.0.written
    }

    #[getter]
    fn is_broken(&self) -> bool {
        self.0.is_broken
    }

    #[getter]
    fn is_whole(&self) -> bool {
        self.0.is_whole
    }
}

/// Reads a refusal: seconds to wait, whether no wait helps, and its budget.
#[pyfunction]
pub fn llm_refusal(
    status: u16,
    wait: f64,
    has_retry_after: bool,
    is_told_final: bool,
    is_anthropic: bool,
    text: &[u8],
) -> (Option<f64>, bool, Option<&'static str>) {
    let refused = Refused { status, wait_ms: wait * 1000.0, has_retry_after, is_told_final, is_anthropic };
    let read = autothrottle_llm::refusal(&refused, text);
    (read.wait_ms.map(|ms| ms / 1000.0), read.is_final, read.kind.map(Kind::name))
}

/// Reads a request: vendor, model, characters, bytes, tokens, bound, whether it is not counted whole, and
/// texts that the user counts.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "Python gives each by its place")]
pub fn llm_asked<'py>(
    py: Python<'py>,
    host: &str,
    path: &str,
    method: &str,
    body: &[u8],
    form_model: Option<&str>,
    vendor: Option<&str>,
    keeps_texts: bool,
) -> PyResult<Bound<'py, PyTuple>> {
    let vendor = vendor.and_then(Vendor::named);
    let asking = Asking { host, path, method, body, form_model, vendor, keeps_texts };
    let read = autothrottle_llm::asked(&asking);
    (
        read.vendor.name(),
        read.model,
        read.characters,
        read.bytes,
        read.tokens,
        read.bound,
        read.is_uncounted,
        read.texts,
    )
        .into_pyobject(py)
}

/// Reads a quota of the headers: the budget that it is, its limit, what is left, and its seconds.
#[pyfunction]
#[pyo3(signature = (vendor, policy, limit, remaining, reset))]
pub fn llm_reported(
    vendor: &str,
    policy: &str,
    limit: f64,
    remaining: Option<f64>,
    reset: f64,
) -> Option<(&'static str, f64, Option<f64>, f64)> {
    let remaining = remaining.unwrap_or(f64::NAN);
    let own = autothrottle_llm::reported(Vendor::named(vendor), policy, limit, remaining, reset * 1000.0)?;
    Some((own.kind.name(), own.limit, own.left, own.per / 1000.0))
}

/// See [`Plan`].
#[pyclass(module = "autothrottle._native", frozen)]
pub struct LlmPlan {
    plan: Plan,
    size: Size,
    kinds: Vec<Kind>,
}

#[pymethods]
impl LlmPlan {
    #[getter]
    fn costs(&self) -> Vec<(&'static str, f64)> {
        self.kinds.iter().map(|&kind| (kind.name(), self.plan.costs[kind as usize])).collect()
    }
}

/// The slots of a budget's scope; limit, window and burst of its rate; limit and window of each quota.
type Change = (&'static str, f64, Option<(f64, f64, f64)>, Vec<(f64, f64)>);

/// See [`Budgets`].
#[pyclass(module = "autothrottle._native")]
pub struct LlmBudgets(Budgets);

#[pymethods]
impl LlmBudgets {
    #[new]
    #[allow(clippy::too_many_arguments, reason = "Python gives each by its place")]
    fn new(
        vendor: Option<&str>,
        limits: [f64; 5],
        is_sliding: Option<bool>,
        is_cached_free: Option<bool>,
        headroom: f64,
        is_max: Option<bool>,
        is_counted: bool,
        concurrency: f64,
    ) -> Self {
        let vendor = vendor.and_then(Vendor::named);
        Self(Budgets::new(&Settings {
            vendor,
            limits,
            is_sliding,
            is_cached_free,
            headroom,
            is_max,
            is_counted,
            concurrency,
        }))
    }

    #[getter]
    fn is_known(&self) -> bool {
        self.0.is_known
    }

    #[getter]
    fn is_cached_free(&self) -> bool {
        self.0.is_cached_free
    }

    #[getter]
    fn needs_usage(&self) -> bool {
        self.0.needs_usage()
    }

    #[getter]
    fn kinds(&self) -> Vec<&'static str> {
        self.0.kinds.iter().map(|kind| kind.name()).collect()
    }

    fn changes(&mut self) -> Vec<Change> {
        let changes = self.0.changes().into_iter();
        changes
            .map(|change| {
                let (mut rate, mut quota) = (None, Vec::new());
                if let Some(Pace { limit, window, burst, sixth }) = change.pace {
                    rate = burst.map(|burst| (limit, window / 1000.0, burst));
                    let windows = burst.is_none().then_some((limit, window)).into_iter().chain(sixth);
                    quota.extend(windows.map(|(limit, window)| (limit, window / 1000.0)));
                }
                (change.kind.name(), change.slots, rate, quota)
            })
            .collect()
    }

    fn plan(&self, characters: f64, bytes: f64, tokens: f64, bound: Option<f64>) -> LlmPlan {
        let size = Size { characters, bytes, tokens, bound };
        LlmPlan { plan: self.0.plan(&size), size, kinds: self.0.kinds.clone() }
    }

    fn begin(&mut self, now: f64, plan: &LlmPlan) -> u32 {
        self.0.begin(now * 1000.0, plan.size, &plan.plan)
    }

    fn wrote(&mut self, call: u32, input: Option<f64>, written: f64) -> bool {
        self.0.wrote(call, input, written)
    }

    #[allow(clippy::too_many_arguments, reason = "Python gives each by its place")]
    fn report(
        &mut self,
        now: f64,
        call: u32,
        kind: &str,
        limit: f64,
        left: Option<f64>,
        per: f64,
        wait: Option<f64>,
    ) {
        if let Some(kind) = Kind::named(kind) {
            let reported = Reported { kind, limit, left, per: per * 1000.0 };
            self.0.report(now * 1000.0, call, &reported, wait.map(|wait| wait * 1000.0));
        }
    }

    fn answered(&mut self, call: u32, is_stream: bool) {
        self.0.answered(call, is_stream);
    }

    fn gone(&mut self, call: u32, was_sent: bool) {
        self.0.gone(call, was_sent);
    }

    fn refused(&mut self, now: f64, call: u32, kind: Option<&str>, wait: f64) {
        self.0.refused(now * 1000.0, call, kind.and_then(Kind::named), wait * 1000.0);
    }

    #[allow(clippy::too_many_arguments, reason = "Python gives each by its place")]
    fn ended(
        &mut self,
        now: f64,
        call: u32,
        input: Option<f64>,
        free: f64,
        output: Option<f64>,
        written: f64,
        is_whole: bool,
    ) -> bool {
        self.0.ended(now * 1000.0, call, &Usage { input, free, output }, written, is_whole)
    }

    fn asks(&self) -> Vec<(&'static str, f64)> {
        let asked = |&kind: &Kind| self.0.asks(kind).map(|cost| (kind.name(), cost));
        Kind::ALL.iter().filter_map(asked).collect()
    }

    /// `waits`: the seconds of those that [`LlmBudgets::asks`] names.
    fn carry(&mut self, now: f64, waits: Vec<(String, f64)>) -> Vec<(u32, &'static str, f64)> {
        let mut row = [f64::NAN; Kind::ALL.len()];
        for (name, wait) in waits {
            if let Some(kind) = Kind::named(&name) {
                row[kind as usize] = wait * 1000.0;
            }
        }
        let charges = self.0.carry(now * 1000.0, &row).into_iter();
        charges.map(|it| (it.call, it.kind.name(), it.cost)).collect()
    }
}
