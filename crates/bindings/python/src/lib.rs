//! The native module of the Python package: it only converts and forwards. Native tests cover the code behind
//! it, and `python/tests` covers the conversions. `python/src/autothrottle/_native.pyi` has the types and the
//! documentation.
//!
//! All values are read before a call and made after it: Python that is called while the engine is locked may
//! call the engine again (a finalizer of the garbage collector's). The profile `python` unwinds, for a panic
//! that aborts ends a stranger's interpreter.

mod answers;
mod engine;
mod headers;
mod llm;
mod outcome;
mod shared;
mod tables;
mod typed;
mod value;

use autothrottle::{
    boundary::{self, flags::RETRY_AFTER_IS_MILLIS, nanos},
    headers::{Context, Hints},
    host::Authority,
};
use pyo3::prelude::*;

use self::{
    answers::Classes,
    headers::{HeaderMap, lines},
    typed::{Text, Whole},
};

/// The module that the package imports as `autothrottle._native`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::{
        authority_of, check_driver_options, engine::Engine, host_name, is_for_good, llm::LlmBody,
        llm::LlmBudgets, llm::LlmPlan, llm::llm_asked, llm::llm_refusal, llm::llm_reported, nearest_name,
        parse_hints, parse_robots, robots_allow, robots_rules, shared::Shared,
    };

    /// Which settings there are, and what Redis runs, by name.
    #[pymodule_init]
    fn add_constants(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::tables::add(module)?;
        module.add("MOST_ROBOTS_BYTES", autothrottle::MOST_ROBOTS_BYTES)?;
        [
            ("COMPETE", store::COMPETE),
            ("RENEW", store::RENEW),
            ("SEND", store::SEND),
            ("RELEASE", store::RELEASE),
            ("TELL", store::TELL),
            ("NO_ANSWER", store::NO_ANSWER),
            ("NO_ANSWER_BY_TLS", store::NO_ANSWER_BY_TLS),
        ]
        .into_iter()
        .try_for_each(|(name, script)| module.add(name, script))
    }
    use autothrottle_shared::store;
    use pyo3::prelude::*;
}

/// Whether a failure of the store of a group will not heal by itself.
#[pyfunction]
fn is_for_good(why: &str) -> bool {
    autothrottle_shared::store::is_for_good(why)
}

/// The limits in a response's headers.
#[pyfunction]
#[pyo3(signature = (headers, *, status = Whole(429), wall = None, header_map = None))]
fn parse_hints<'py>(
    headers: &Bound<'py, PyAny>,
    status: Whole,
    wall: Option<Whole>,
    header_map: Option<HeaderMap>,
) -> PyResult<Bound<'py, PyAny>> {
    let units = header_map.as_ref().map_or(0, HeaderMap::flags);
    let context = Context {
        status: status.0.min(u64::from(u16::MAX)) as u16,
        wall_ms: wall.map(|wall| nanos::wall(Some(wall.0)) as i64),
        reset_is_millis: units & boundary::flags::RESET_IS_MILLIS > 0,
        retry_after_is_millis: units & RETRY_AFTER_IS_MILLIS > 0,
    };
    let hints = Hints::from_lines(&lines(headers, header_map.as_ref())?, context);
    Classes::of(headers.py())?.hints(headers.py(), hints)
}

/// The delay that a robots.txt asks of a user agent, in nanoseconds.
#[pyfunction]
fn parse_robots(robots: &Bound<'_, PyAny>, user_agent: Text) -> PyResult<Option<u64>> {
    let ms = match robots.extract::<Text>() {
        Ok(text) => boundary::parse_crawl_delay(text.0.as_bytes(), &user_agent.0),
        Err(_) => boundary::parse_crawl_delay(&robots.extract::<Vec<u8>>()?, &user_agent.0),
    };
    Ok((!ms.is_nan()).then(|| (ms * 1e6).ceil() as u64))
}

/// The rules of a robots.txt for a user agent, for [`robots_allow`].
#[pyfunction]
fn robots_rules(robots: Text, user_agent: Text) -> Vec<u8> {
    autothrottle::robots_rules(robots.0.as_bytes(), &user_agent.0)
}

/// Whether rules allow a URL.
#[pyfunction]
fn robots_allow(rules: &[u8], url: Text) -> bool {
    autothrottle::robots_allow(rules, &url.0)
}

/// The server of a URL: the host as it was typed, and the port where it is not the scheme's own.
#[pyfunction]
fn authority_of(url: Text) -> Option<(String, Option<u16>)> {
    Authority::of(&url.0).map(|Authority { host, port }| (host, port))
}

/// The name of a host in ASCII.
#[pyfunction]
fn host_name(host: Text) -> Option<String> {
    autothrottle::host::name(&host.0)
}

/// Checks the options that only a driver reads.
#[pyfunction]
fn check_driver_options(options: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = options.py();
    boundary::check_driver_options(value::read(options)?)
        .map_err(|error| answers::problems(py, "ConfigError", error))
}

/// The name that was meant by one that is not known.
#[pyfunction]
fn nearest_name(typed: Text, known: Vec<Text>) -> Option<String> {
    let known: Vec<String> = known.into_iter().map(|name| name.0.replace('\n', " ")).collect();
    Some(boundary::nearest(&typed.0, &known.join("\n"))).filter(|name| !name.is_empty())
}

/// The export that an interpreter looks for in a DLL. maturin's list of exports has only the module's whole
/// name, where the linker is not Microsoft's.
#[cfg(all(windows, target_env = "gnu"))]
#[used]
#[unsafe(link_section = ".drectve")]
static EXPORTED: [u8; 24] = *b" -export:PyInit__native ";

/// That name.
#[cfg(all(windows, target_env = "gnu"))]
#[unsafe(export_name = "PyInit_autothrottle._native")]
extern "C" fn by_its_whole_name() -> *mut pyo3::ffi::PyObject {
    unsafe extern "C" {
        fn PyInit__native() -> *mut pyo3::ffi::PyObject;
    }
    // SAFETY: what PyO3 exports for this module; the interpreter calls it as it would call that.
    unsafe { PyInit__native() }
}
