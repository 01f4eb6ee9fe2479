//! Requests to language models and their answers: read by `crates/llm`.

use autothrottle_llm::{Asking, Body, Kind, Refused, Vendor};
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
    let kind = read.kind.map(|kind| match kind {
        Kind::Requests => "requests",
        Kind::Tokens => "tokens",
        Kind::Input => "input",
        Kind::Output => "output",
    });
    (read.wait_ms.map(|ms| ms / 1000.0), read.is_final, kind)
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
