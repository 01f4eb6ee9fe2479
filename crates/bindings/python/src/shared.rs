//! The machine of a group as Python sees it: it only converts and forwards. See
//! [`autothrottle_shared::Shared`] for each method.
//!
//! Instants and spans are whole nanoseconds, epochs and questions whole numbers, processes 32 hexadecimal
//! digits. An effect is a tuple: its name, then what belongs to it.

use std::sync::Mutex;

use autothrottle::{
    Instant, Robots, Span, Value,
    boundary::{Boundary, nanos},
};
use autothrottle_shared::{Ask, Cause, Effect, Input, MemberId, Names, Offline, Order, Settings};
use pyo3::{
    IntoPyObjectExt,
    exceptions::{PyRuntimeError, PyValueError},
    prelude::*,
    types::{PyBytes, PyDict, PyTuple},
};

use crate::{
    answers::{Classes, problems},
    engine::settled_of,
    outcome::Reported,
    typed::{Costs, Real, Text, Whole},
    value,
};

/// One process of a group.
#[pyclass(frozen, module = "autothrottle._native")]
pub struct Shared(Mutex<(autothrottle_shared::Shared, Names)>);

#[pymethods]
impl Shared {
    #[expect(clippy::too_many_arguments, reason = "by name in Python")]
    #[new]
    #[pyo3(signature = (id, options, *, lease, offline, members, seed, snapshot = None, wall = None))]
    fn new(
        py: Python<'_>,
        id: Text,
        options: &Bound<'_, PyAny>,
        lease: Whole,
        offline: Option<Text>,
        members: Option<u32>,
        seed: Whole,
        snapshot: Option<&Bound<'_, PyAny>>,
        wall: Option<Whole>,
    ) -> PyResult<Self> {
        let offline = offline.map(|offline| match offline.0.as_str() {
            "divide" => Offline::Divide,
            "fail" => Offline::Fail,
            _ => Offline::Wait,
        });
        let wall_ms = nanos::wall(wall.map(|wall| wall.0));
        let settings = Settings {
            lease: Span::from_millis(lease.span()),
            offline,
            members,
            prompt: false,
            keep_every: Span::ZERO,
            snapshot: snapshot.map(|snapshot| PyResult::Ok((value::read(snapshot)?, wall_ms))).transpose()?,
        };
        let class = if snapshot.is_some() { "SnapshotError" } else { "ConfigError" };
        autothrottle_shared::Shared::new(member_of(&id.0), value::read(options)?, settings, seed.0)
            .map(|machine| Self(Mutex::new((machine, Names::default()))))
            .map_err(|error| problems(py, class, error))
    }

    fn open(&self, now: Whole) -> PyResult<()> {
        self.with(|machine| machine.open(instant(now)))
    }

    #[getter]
    fn scopes(&self) -> PyResult<usize> {
        self.named(|names| names.count())
    }

    fn find(&self, name: Text) -> PyResult<Option<u32>> {
        self.named(|names| names.find(&name.0))
    }

    fn intern(&self, name: Text) -> PyResult<u32> {
        self.named(|names| names.intern(&name.0))
    }

    fn scope(&self, name: Text) -> PyResult<u32> {
        self.named(|names| names.hold(&name.0))
    }

    fn release(&self, scope: Whole) -> PyResult<()> {
        self.named(|names| names.release(scope.0 as u32))
    }

    fn keep_alive(&self, scope: Whole) -> PyResult<bool> {
        self.named(|names| names.name(scope.0 as u32).is_some())
    }

    fn name(&self, scope: Whole) -> PyResult<Option<String>> {
        self.named(|names| names.name(scope.0 as u32).map(Into::into))
    }

    // written by `cargo xtask write`: verbs of a group
    #[pyo3(signature = (ticket, has_fields = false))]
    fn wants_route(&self, ticket: Whole, has_fields: bool) -> PyResult<bool> {
        self.with(|machine| machine.wants_route(ticket.0, has_fields))
    }

    fn route(&self, now: Whole, ticket: Whole, method: Text, url: Text) -> PyResult<()> {
        self.with(|machine| machine.route(instant(now), ticket.0, &method.0, &url.0))
    }

    fn sent_at(&self, now: Whole, ticket: Whole) -> PyResult<()> {
        self.with(|machine| machine.sent_at(instant(now), ticket.0))
    }

    fn cancel(&self, now: Whole, ticket: Whole) -> PyResult<()> {
        self.with(|machine| machine.cancel(instant(now), ticket.0))
    }

    #[getter]
    fn waiting(&self) -> PyResult<u32> {
        self.with(|machine| machine.waiting())
    }

    #[getter]
    fn in_flight(&self) -> PyResult<u32> {
        self.with(|machine| machine.in_flight())
    }

    #[getter]
    fn warn_threshold(&self) -> PyResult<u32> {
        self.with(|machine| machine.warn_threshold())
    }

    fn retries(&self, method: Text) -> PyResult<u32> {
        self.with(|machine| machine.retries(&method.0))
    }
    // end of what is written

    /// A ticket, or why it is refused.
    fn submit<'py>(
        &self,
        py: Python<'py>,
        now: Whole,
        scopes: Vec<Whole>,
        cost: Costs,
        priority: Real,
        delay: Whole,
    ) -> PyResult<Bound<'py, PyAny>> {
        let names = scopes.into_iter().map(|scope| self.name_of(scope)).collect::<PyResult<Vec<_>>>()?;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (costs, delay_ms) = (cost.numbers(), delay.span());
        let ask = Ask { names: &names, costs: &costs, priority: priority.0, delay_ms };
        match self.with(|machine| machine.submit(instant(now), &ask))? {
            Ok(ticket) => ticket.into_bound_py_any(py),
            Err(refusal) => value::object(py, &Value::from(&refusal)),
        }
    }

    fn poll(&self, now: Whole) -> PyResult<Option<u64>> {
        self.with(|machine| machine.poll(instant(now)))
    }

    #[getter]
    fn is_awaited(&self) -> PyResult<bool> {
        self.with(|machine| machine.is_awaited())
    }

    #[pyo3(signature = (now, ticket, **outcome))]
    fn settle<'py>(
        &self,
        py: Python<'py>,
        now: Whole,
        ticket: Whole,
        outcome: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut reported = Reported::read(outcome)?;
        {
            let known = self.0.lock().map_err(|_| failed())?;
            reported.place_scopes(|scope| known.0.place_of(ticket.0, known.1.name(scope as u32)));
        }
        let settlement = self.with(|machine| machine.settle(instant(now), ticket.0, &reported.outcome()))?;
        settled_of(py, settlement.settled, settlement.asked_ms)
    }

    fn configure(&self, now: Whole, scope: Whole, options: &Bound<'_, PyAny>) -> PyResult<()> {
        let order = Order::Configure(self.name_of(scope)?, value::read(options)?);
        self.with(|machine| machine.order(instant(now), order))?
            .map_err(|error| problems(options.py(), "ConfigError", error))
    }

    #[pyo3(signature = (now, scope, delay))]
    fn crawl_delay(&self, now: Whole, scope: Whole, delay: Option<Whole>) -> PyResult<&'static str> {
        let delay = delay.map(|delay| Span::from_millis(delay.span()));
        let name = self.name_of(scope)?;
        self.with(|machine| machine.crawl_delay(instant(now), &name, delay)).map(Robots::name)
    }

    fn hold(&self, now: Whole, scope: Whole, span: Whole) -> PyResult<()> {
        self.order(now, Order::Hold(self.name_of(scope)?, Span::from_millis(span.span())))
    }

    /// `sent`: when the request left.
    fn adjust(&self, now: Whole, scope: Whole, sent: Whole, charged: Real, cost: Real) -> PyResult<()> {
        let ago = Span::from_millis(nanos::span(now.0.saturating_sub(sent.0)));
        let name = self.name_of(scope)?;
        self.order(now, Order::Adjust { name, ago, charged: charged.0, cost: cost.0 })
    }

    #[pyo3(signature = (now, scope))]
    fn pause(&self, now: Whole, scope: Option<Whole>) -> PyResult<()> {
        self.order(now, Order::Pause(scope.map(|scope| self.name_of(scope)).transpose()?))
    }

    #[pyo3(signature = (now, scope))]
    fn resume(&self, now: Whole, scope: Option<Whole>) -> PyResult<()> {
        self.order(now, Order::Resume(scope.map(|scope| self.name_of(scope)).transpose()?))
    }

    fn reset(&self, now: Whole, scope: Whole) -> PyResult<()> {
        self.order(now, Order::Reset(self.name_of(scope)?))
    }

    fn watch(&self, now: Whole, level: u8) -> PyResult<()> {
        self.with(|machine| machine.watch(instant(now), level))
    }

    fn timeout(&self, now: Whole) -> PyResult<()> {
        self.hears(now, Input::Timeout)
    }

    fn opened(&self, now: Whole) -> PyResult<()> {
        self.hears(now, Input::Opened)
    }

    fn received(&self, now: Whole, frame: &[u8]) -> PyResult<()> {
        self.hears(now, Input::Received(frame))
    }

    fn elected(&self, now: Whole, op: u64, epoch: u64, stored: Option<&[u8]>, age: Whole) -> PyResult<()> {
        let stored = stored.map(|bytes| (bytes, Span::from_millis(age.span())));
        self.hears(now, Input::Elected { op, epoch, stored, first: false })
    }

    /// The lease is ours, or that of another.
    fn answered(&self, now: Whole, op: u64, is_ours: bool) -> PyResult<()> {
        self.hears(now, if is_ours { Input::Renewed { op } } else { Input::Refused { op } })
    }

    fn failed(&self, now: Whole, op: u64, why: Text, is_denied: bool) -> PyResult<()> {
        let cause = if is_denied { Cause::Denied(&why.0) } else { Cause::Broken(&why.0) };
        self.hears(now, Input::Failed { op, cause })
    }

    fn fenced(&self, now: Whole, epoch: u64) -> PyResult<()> {
        self.hears(now, Input::Fenced { epoch })
    }

    fn unheard(&self, now: Whole, member: Text, epoch: u64) -> PyResult<()> {
        self.hears(now, Input::Unheard { to: member_of(&member.0), epoch })
    }

    fn vacant(&self, now: Whole, ended: bool) -> PyResult<()> {
        self.hears(now, Input::Vacant { ended })
    }

    /// The next effect to perform.
    fn poll_effect<'py>(&self, py: Python<'py>, now: Whole) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let effect = self.with(|machine| machine.poll_effect(instant(now)))?;
        effect.map(|effect| written(py, effect)).transpose()
    }

    #[getter]
    fn wake_at(&self) -> PyResult<Option<u64>> {
        Ok(self.with(|machine| machine.wake_at())?.map(|at| nanos::of_mark(at.millis())))
    }

    fn close(&self, now: Whole) -> PyResult<()> {
        self.with(|machine| machine.close(instant(now)))
    }

    /// When, why not now, and which scope says so.
    fn peek(
        &self,
        now: Whole,
        scopes: Vec<Option<Whole>>,
        cost: Costs,
    ) -> PyResult<(Option<u64>, Option<String>, Option<u32>)> {
        let name = |scope: Option<Whole>| scope.map_or(Ok(String::new()), |scope| self.name_of(scope));
        let names = scopes.into_iter().map(name).collect::<PyResult<Vec<_>>>()?;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (at, reason, scope) = self.with(|machine| machine.peek(instant(now), &names, &cost.numbers()))?;
        let reason = Boundary::reason_at(reason).map(str::to_string);
        let scope = scope.map(|scope| self.named(|names| names.intern(&scope))).transpose()?;
        Ok((at.is_finite().then(|| nanos::of_mark(at)), reason, scope))
    }

    fn stats<'py>(&self, py: Python<'py>, now: Whole) -> PyResult<Bound<'py, PyAny>> {
        let mut stats = self.with(|machine| machine.stats(instant(now)))?;
        if let Value::Map(entries) = &mut stats {
            let group = self.with(|machine| machine.status(instant(now)))?;
            entries.push(("shared".into(), Value::from(&group)));
        }
        Classes::of(py)?.record(py, "stats", &stats)
    }

    fn scope_stats<'py>(&self, py: Python<'py>, now: Whole, scope: Whole) -> PyResult<Bound<'py, PyAny>> {
        let name = self.name_of(scope)?;
        let stats = self.with(|machine| machine.scope_stats(instant(now), &name))?;
        Classes::of(py)?.record(py, "scopes", &stats)
    }

    #[pyo3(signature = (now, wall = None))]
    fn snapshot<'py>(&self, py: Python<'py>, now: Whole, wall: Option<Whole>) -> PyResult<Bound<'py, PyAny>> {
        let wall_ms = nanos::wall(wall.map(|wall| wall.0));
        value::object(py, &self.with(|machine| machine.snapshot(instant(now), wall_ms))?)
    }
}

impl Shared {
    /// No Python may run in there.
    fn with<T>(&self, ask: impl FnOnce(&mut autothrottle_shared::Shared) -> T) -> PyResult<T> {
        let mut known = self.0.lock().map_err(|_| failed())?;
        Ok(ask(&mut known.0))
    }

    fn named<T>(&self, ask: impl FnOnce(&mut Names) -> T) -> PyResult<T> {
        let mut known = self.0.lock().map_err(|_| failed())?;
        Ok(ask(&mut known.1))
    }

    fn name_of(&self, scope: Whole) -> PyResult<String> {
        let unknown = || PyValueError::new_err("the request names no scope that is known");
        self.named(|names| names.name(scope.0 as u32).map(Into::into))?.ok_or_else(unknown)
    }

    fn hears(&self, now: Whole, input: Input<'_>) -> PyResult<()> {
        self.with(|machine| machine.handle(instant(now), input))
    }

    /// One that cannot be wrong.
    fn order(&self, now: Whole, order: Order) -> PyResult<()> {
        self.with(|machine| machine.order(instant(now), order)).map(drop)
    }
}

fn failed() -> PyErr {
    PyRuntimeError::new_err("the group failed in an earlier call")
}

fn instant(now: Whole) -> Instant {
    Instant::from_millis(now.now()).unwrap_or_default()
}

/// An invalid name is that of no process.
fn member_of(id: &str) -> MemberId {
    id.parse().unwrap_or(MemberId([0; 16]))
}

fn written(py: Python<'_>, effect: Effect) -> PyResult<Bound<'_, PyTuple>> {
    let bytes = |bytes: Vec<u8>| PyBytes::new(py, &bytes);
    match effect {
        Effect::Compete { op, above } => ("compete", op, above).into_pyobject(py),
        Effect::Renew { op, epoch, store } => ("renew", op, epoch, store.map(bytes)).into_pyobject(py),
        Effect::Release { op, epoch, store } => ("release", op, epoch, store.map(bytes)).into_pyobject(py),
        Effect::ToLeader(frame) => ("leader", bytes(frame)).into_pyobject(py),
        Effect::ToMember { epoch, to, bytes: frame } => {
            ("member", epoch, to.to_string(), bytes(frame)).into_pyobject(py)
        }
        Effect::ToAll { epoch, bytes: frame } => ("all", epoch, bytes(frame)).into_pyobject(py),
        Effect::Reconnect { speaks } => ("reconnect", speaks).into_pyobject(py),
        Effect::Fail { ticket, why } => {
            ("fail", ticket, value::object(py, &Value::from(&why))?).into_pyobject(py)
        }
        Effect::Notice(notice) => ("notice", Classes::of(py)?.record(py, "", &notice)?).into_pyobject(py),
        Effect::Warn(warning) => ("warn", warning.code(), warning.text()).into_pyobject(py),
        Effect::Moved => ("moved",).into_pyobject(py),
    }
}
