//! The engine as Python sees it. See [`Boundary`] for each method, and `_native.pyi` for what it promises.
//!
//! A lock costs a tenth of a microsecond and makes the engine safe on any number of threads, with the
//! interpreter's own lock and without. Calls are too short to give that one back meanwhile.

use std::sync::Mutex;

use autothrottle::{
    Boundary, Robots, Value, Watch,
    boundary::{self, NO_SCOPE, Outcome, WAIT, nanos},
};
use pyo3::{
    exceptions::{PyRuntimeError, PyValueError},
    prelude::*,
    types::{PyDict, PyList, PyString, PyTuple},
};

use crate::{
    answers::{Classes, Refusal, because, problems},
    outcome::Reported,
    typed::{Costs, Real, Text, Whole},
    value,
};

/// Decides when requests may be sent.
#[pyclass(frozen, weakref, module = "autothrottle.engine")]
pub struct Engine {
    boundary: Mutex<Option<Boundary>>,
    seed: u64,
}

/// The needs of a request, for the façade.
struct Need {
    scopes: Vec<f64>,
    costs: Vec<f64>,
    priority: f64,
}

impl Need {
    fn new(scopes: Vec<Whole>, cost: Costs, priority: Real) -> Self {
        let scopes = scopes.into_iter().map(Whole::number).collect();
        Self { scopes, costs: cost.numbers(), priority: priority.0 }
    }
}

#[pymethods]
impl Engine {
    #[new]
    #[pyo3(signature = (options = None, *, seed = None))]
    fn new(py: Python<'_>, options: Option<&Bound<'_, PyAny>>, seed: Option<Whole>) -> PyResult<Self> {
        let options = options.map_or_else(|| Ok(autothrottle::Value::Map(Vec::new())), value::read)?;
        let mut boundary = Boundary::new(options).map_err(|error| problems(py, "ConfigError", error))?;
        let seed = match seed {
            Some(seed) => seed.0,
            None => u64::from_le_bytes(py.import("os")?.call_method1("urandom", (8,))?.extract()?),
        };
        if boundary.wants_seed() {
            boundary.seed(seed);
        }
        Ok(Self { boundary: Mutex::new(Some(boundary)), seed })
    }

    // written by `cargo xtask write`: verbs
    fn scope(&self, name: Text) -> PyResult<u64> {
        self.with(|boundary| boundary.scope(&name.0) as u64)
    }

    fn intern(&self, name: Text) -> PyResult<u64> {
        self.with(|boundary| boundary.intern(&name.0) as u64)
    }

    fn find(&self, name: Text) -> PyResult<Option<u64>> {
        self.with(|boundary| found(boundary.find(&name.0)))
    }

    fn keep_alive(&self, scope: Whole) -> PyResult<bool> {
        self.with(|boundary| boundary.keep_alive(scope.number()))
    }

    fn release(&self, scope: Whole) -> PyResult<()> {
        self.with(|boundary| boundary.release(scope.number()))
    }

    #[getter]
    fn scopes(&self) -> PyResult<u32> {
        self.with(|boundary| boundary.scopes() as u32)
    }

    fn name(&self, scope: Whole) -> PyResult<Option<String>> {
        self.with(|boundary| boundary.name(scope.number()).map(Into::into))
    }

    #[pyo3(signature = (ticket, has_fields = false))]
    fn wants_route(&self, ticket: Whole, has_fields: bool) -> PyResult<bool> {
        self.with(|boundary| boundary.wants_route(ticket.number(), has_fields))
    }

    fn route(&self, now: Whole, ticket: Whole, method: Text, url: Text) -> PyResult<()> {
        self.with(|boundary| boundary.route(now.now(), ticket.number(), &method.0, &url.0))
    }

    fn sent_at(&self, now: Whole, ticket: Whole) -> PyResult<()> {
        self.with(|boundary| boundary.sent_at(now.now(), ticket.number()))
    }

    fn cancel(&self, now: Whole, ticket: Whole) -> PyResult<()> {
        self.with(|boundary| boundary.cancel(now.now(), ticket.number()))
    }

    fn prioritize(&self, now: Whole, ticket: Whole, priority: Real) -> PyResult<()> {
        self.with(|boundary| boundary.prioritize(now.now(), ticket.number(), priority.0))
    }

    fn hold(&self, now: Whole, scope: Whole, span: Whole) -> PyResult<()> {
        self.with(|boundary| boundary.hold(now.now(), scope.number(), span.span()))
    }

    fn reset(&self, now: Whole, scope: Whole) -> PyResult<()> {
        self.with(|boundary| boundary.reset(now.now(), scope.number()))
    }

    #[getter]
    fn waiting(&self) -> PyResult<u32> {
        self.with(|boundary| boundary.waiting() as u32)
    }

    #[getter]
    fn in_flight(&self) -> PyResult<u32> {
        self.with(|boundary| boundary.in_flight() as u32)
    }

    #[getter]
    fn warn_threshold(&self) -> PyResult<u32> {
        self.with(|boundary| boundary.warn_threshold() as u32)
    }

    fn retries(&self, method: Text) -> PyResult<u32> {
        self.with(|boundary| boundary.retries(&method.0) as u32)
    }

    #[getter]
    fn has_notices(&self) -> PyResult<bool> {
        self.with(|boundary| boundary.has_notices())
    }
    // end of what is written

    #[expect(clippy::too_many_arguments, reason = "by name in Python")]
    #[pyo3(signature = (
        now, scopes, *, cost = ONE, priority = Real(0.0), delay = Whole(0), waited = Whole(0)
    ))]
    fn submit(
        &self,
        py: Python<'_>,
        now: Whole,
        scopes: Vec<Whole>,
        cost: Costs,
        priority: Real,
        delay: Whole,
        waited: Whole,
    ) -> PyResult<u64> {
        let Need { scopes, costs, priority } = Need::new(scopes, cost, priority);
        self.ticket(py, |boundary| {
            boundary.submit_again(now.now(), &scopes, &costs, priority, delay.span(), waited.span())
        })
    }

    #[expect(clippy::too_many_arguments, reason = "by name in Python")]
    #[pyo3(signature = (now, scopes, ago, *, cost = ONE, priority = Real(0.0), waited = Whole(0)))]
    fn adopt(
        &self,
        py: Python<'_>,
        now: Whole,
        scopes: Vec<Whole>,
        ago: Whole,
        cost: Costs,
        priority: Real,
        waited: Whole,
    ) -> PyResult<u64> {
        let Need { scopes, costs, priority } = Need::new(scopes, cost, priority);
        self.ticket(py, |boundary| {
            boundary.adopt(now.now(), &scopes, &costs, priority, waited.span(), ago.span())
        })
    }

    #[pyo3(signature = (now, scopes, *, cost = ONE, priority = Real(0.0)))]
    fn send_at_once(
        &self,
        py: Python<'_>,
        now: Whole,
        scopes: Vec<Whole>,
        cost: Costs,
        priority: Real,
    ) -> PyResult<Option<u64>> {
        let Need { scopes, costs, priority } = Need::new(scopes, cost, priority);
        let ticket = self.with(|boundary| {
            let ticket = boundary.send_many_at_once(now.now(), &scopes, &costs, priority);
            if ticket < WAIT { Err(Refusal::of(boundary, ticket + 1.0)) } else { Ok(ticket) }
        })?;
        let ticket = ticket.map_err(|refusal| refusal.error(py))?;
        Ok((ticket >= 0.0).then_some(ticket as u64))
    }

    fn poll<'py>(&self, py: Python<'py>, now: Whole) -> PyResult<Bound<'py, PyAny>> {
        let (send, wake, (reason, scope)) = self.with(|boundary| {
            let now = now.now();
            let mut send = Vec::new();
            loop {
                let ticket = boundary.poll(now);
                if ticket < 0.0 {
                    let wake = boundary.wake_at();
                    return (send, wake.is_finite().then(|| nanos::of_mark(wake)), because(boundary));
                }
                send.push(ticket as u64);
            }
        })?;
        Classes::of(py)?.decision.bind(py).call1((send, wake, reason, scope))
    }

    #[pyo3(signature = (now, ticket, **outcome))]
    fn settle<'py>(
        &self,
        py: Python<'py>,
        now: Whole,
        ticket: Whole,
        outcome: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let reported = Reported::read(outcome)?;
        let (settled, asked_ms) = self.with(|boundary| {
            let settled = boundary.settle(now.now(), ticket.number(), &reported.outcome());
            (settled, boundary.asked_ms())
        })?;
        settled_of(py, settled, asked_ms)
    }

    #[pyo3(signature = (**outcome))]
    fn digest<'py>(
        &self,
        py: Python<'py>,
        outcome: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<(Bound<'py, PyAny>, Vec<f64>)> {
        let reported = Reported::read(outcome)?;
        let (settled, asked_ms, numbers) = self.with(|boundary| boundary.digest(&reported.outcome()))?;
        Ok((settled_of(py, settled, asked_ms)?, numbers))
    }

    fn settle_digest<'py>(
        &self,
        py: Python<'py>,
        now: Whole,
        ticket: Whole,
        numbers: Vec<f64>,
    ) -> PyResult<Bound<'py, PyString>> {
        let settled =
            self.with(|boundary| boundary.settle(now.now(), ticket.number(), &Outcome::decode(&numbers)))?;
        Ok(PyString::intern(py, settled.name()))
    }

    #[pyo3(signature = (now, scopes, *, cost = ONE))]
    fn peek<'py>(
        &self,
        py: Python<'py>,
        now: Whole,
        scopes: Vec<Option<Whole>>,
        cost: Costs,
    ) -> PyResult<Bound<'py, PyAny>> {
        let scopes: Vec<f64> =
            scopes.into_iter().map(|scope| scope.map_or(NO_SCOPE, Whole::number)).collect();
        let peek = self.with(|boundary| {
            let at = boundary.peek(now.now(), &scopes, &cost.numbers());
            if at < 0.0 { Err(Refusal::of(boundary, at)) } else { Ok((at, because(boundary))) }
        })?;
        let (at, (reason, scope)) = peek.map_err(|refusal| refusal.error(py))?;
        let at = at.is_finite().then(|| nanos::of_mark(at));
        Classes::of(py)?.peek.bind(py).call1((at, reason, scope))
    }

    fn configure(&self, now: Whole, scope: Whole, options: &Bound<'_, PyAny>) -> PyResult<()> {
        let (py, options) = (options.py(), value::read(options)?);
        self.with(|boundary| boundary.configure(now.now(), scope.number(), options))?
            .map_err(|error| problems(py, "ConfigError", error))
    }

    #[pyo3(signature = (now, scope, delay))]
    fn crawl_delay(&self, now: Whole, scope: Whole, delay: Option<Whole>) -> PyResult<&'static str> {
        let delay_ms = delay.map_or(f64::NAN, Whole::span);
        let robots = self.with(|boundary| boundary.crawl_delay(now.now(), scope.number(), delay_ms))?;
        Ok(Robots::ALL[robots as usize].name())
    }

    fn adjust(&self, now: Whole, scope: Whole, sent: Whole, charged: Real, cost: Real) -> PyResult<()> {
        let is_cost =
            self.with(|boundary| boundary.adjust(now.now(), scope.number(), sent.now(), charged.0, cost.0))?;
        let wrong = || PyValueError::new_err("charged and cost must be finite and not below 0");
        if is_cost { Ok(()) } else { Err(wrong()) }
    }

    #[pyo3(signature = (now, scope = None))]
    fn pause(&self, now: Whole, scope: Option<Whole>) -> PyResult<()> {
        self.with(|boundary| match scope {
            None => boundary.pause_all(true),
            Some(scope) => boundary.pause(now.now(), scope.number()),
        })
    }

    #[pyo3(signature = (now, scope = None))]
    fn resume(&self, now: Whole, scope: Option<Whole>) -> PyResult<()> {
        self.with(|boundary| match scope {
            None => boundary.pause_all(false),
            Some(scope) => boundary.resume(now.now(), scope.number()),
        })
    }

    fn stats<'py>(&self, py: Python<'py>, now: Whole) -> PyResult<Bound<'py, PyAny>> {
        Classes::of(py)?.record(py, "stats", &self.with(|boundary| boundary.stats(now.now()))?)
    }

    fn scope_stats<'py>(&self, py: Python<'py>, now: Whole, scope: Whole) -> PyResult<Bound<'py, PyAny>> {
        match self.with(|boundary| boundary.scope_stats(now.now(), scope.number()))? {
            Value::Nothing => Err(Refusal::UnknownScope.error(py)),
            stats => Classes::of(py)?.record(py, "scopes", &stats),
        }
    }

    #[pyo3(signature = (now, wall = None))]
    fn snapshot<'py>(&self, py: Python<'py>, now: Whole, wall: Option<Whole>) -> PyResult<Bound<'py, PyAny>> {
        let wall_ms = nanos::wall(wall.map(|wall| wall.0));
        value::object(py, &self.with(|boundary| boundary.snapshot(now.now(), wall_ms))?)
    }

    #[pyo3(signature = (snapshot, now, wall = None))]
    fn restore(&self, snapshot: &Bound<'_, PyAny>, now: Whole, wall: Option<Whole>) -> PyResult<()> {
        let (py, snapshot) = (snapshot.py(), value::read(snapshot)?);
        let wall_ms = nanos::wall(wall.map(|wall| wall.0));
        self.with(|boundary| {
            boundary.restore(snapshot, now.now(), wall_ms)?;
            if boundary.wants_seed() {
                boundary.seed(self.seed);
            }
            Ok(())
        })?
        .map_err(|error| problems(py, "SnapshotError", error))
    }

    fn watch(&self, level: &Bound<'_, PyAny>) -> PyResult<()> {
        let Some(watch) = level.extract().ok().and_then(Watch::of_name) else {
            let want = "'nothing', 'changes' or 'answers'";
            return Err(PyValueError::new_err(format!("level: want {want}; got {}", level.repr()?)));
        };
        self.with(|boundary| boundary.watch(watch as u32))
    }

    fn take_notices<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let notices = self.with(Boundary::notices)?;
        let classes = Classes::of(py)?;
        let notices = notices.iter().map(|notice| classes.record(py, "", &notice.into()));
        Ok(PyList::new(py, notices.collect::<PyResult<Vec<_>>>()?)?.into_any())
    }

    fn close(&self) -> PyResult<()> {
        self.boundary.lock().map_err(poisoned)?.take();
        Ok(())
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, _error: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close()
    }
}

const ONE: Costs = Costs::One(Real(1.0));

impl Engine {
    /// Asks the engine. No Python may run in there.
    fn with<T>(&self, ask: impl FnOnce(&mut Boundary) -> T) -> PyResult<T> {
        match self.boundary.lock().map_err(poisoned)?.as_mut() {
            Some(boundary) => Ok(ask(boundary)),
            None => Err(PyValueError::new_err("the engine is closed")),
        }
    }

    /// A ticket, or the error for the refusal that its negative number is.
    fn ticket(&self, py: Python<'_>, ask: impl FnOnce(&mut Boundary) -> f64) -> PyResult<u64> {
        let ticket = self.with(|boundary| {
            let ticket = ask(boundary);
            if ticket < 0.0 { Err(Refusal::of(boundary, ticket)) } else { Ok(ticket as u64) }
        })?;
        ticket.map_err(|refusal| refusal.error(py))
    }
}

fn found(scope: f64) -> Option<u64> {
    (scope >= 0.0).then_some(scope as u64)
}

fn poisoned<T>(_: T) -> PyErr {
    PyRuntimeError::new_err("the engine failed in an earlier call")
}

pub fn settled_of(py: Python<'_>, settled: boundary::Settled, asked_ms: f64) -> PyResult<Bound<'_, PyAny>> {
    let classes = Classes::of(py)?;
    if settled == boundary::Settled::Over && asked_ms.is_nan() {
        return Ok(classes.over.bind(py).clone());
    }
    let asked = (!asked_ms.is_nan()).then(|| nanos::of_mark(asked_ms));
    classes.settled.bind(py).call1((PyString::intern(py, settled.name()), asked))
}
