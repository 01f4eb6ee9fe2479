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
use autothrottle_shared::{Ask, Cause, Effect, Input, MemberId, Offline, Order, Settings};
use pyo3::{
    IntoPyObjectExt,
    exceptions::PyRuntimeError,
    prelude::*,
    types::{PyBytes, PyDict, PyTuple},
};

use crate::{
    answers::problems,
    engine::settled_of,
    outcome::Reported,
    typed::{Costs, Real, Text, Whole},
    value,
};

/// The way may be broken for so long before `offline` counts.
const PATIENCE_MS: f64 = 5000.0;

/// One process of a group.
#[pyclass(frozen, module = "autothrottle._native")]
pub struct Shared(Mutex<autothrottle_shared::Shared>);

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
            patience: Span::from_millis(PATIENCE_MS),
            members,
            prompt: false,
            keep_every: Span::ZERO,
            snapshot: snapshot.map(|snapshot| PyResult::Ok((value::read(snapshot)?, wall_ms))).transpose()?,
        };
        let class = if snapshot.is_some() { "SnapshotError" } else { "ConfigError" };
        autothrottle_shared::Shared::new(member_of(&id.0), value::read(options)?, settings, seed.0)
            .map(|machine| Self(Mutex::new(machine)))
            .map_err(|error| problems(py, class, error))
    }

    fn open(&self, now: Whole) -> PyResult<()> {
        self.with(|machine| machine.open(instant(now)))
    }

    /// A ticket, or why it is refused.
    fn submit<'py>(
        &self,
        py: Python<'py>,
        now: Whole,
        names: Vec<Text>,
        cost: Costs,
        priority: Real,
        delay: Whole,
    ) -> PyResult<Bound<'py, PyAny>> {
        let names: Vec<&str> = names.iter().map(|name| name.0.as_str()).collect();
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

    fn left(&self, now: Whole, ticket: Whole) -> PyResult<()> {
        self.with(|machine| machine.left(instant(now), ticket.0))
    }

    /// Scopes of the outcome are places among the names of the request.
    #[pyo3(signature = (now, ticket, **outcome))]
    fn settle<'py>(
        &self,
        py: Python<'py>,
        now: Whole,
        ticket: Whole,
        outcome: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let reported = Reported::read(outcome)?;
        let settlement = self.with(|machine| machine.settle(instant(now), ticket.0, &reported.outcome()))?;
        settled_of(py, settlement.settled, settlement.asked_ms)
    }

    fn cancel(&self, now: Whole, ticket: Whole) -> PyResult<()> {
        self.with(|machine| machine.cancel(instant(now), ticket.0))
    }

    fn configure(&self, now: Whole, name: Text, options: &Bound<'_, PyAny>) -> PyResult<()> {
        let order = Order::Configure(name.0, value::read(options)?);
        self.with(|machine| machine.order(instant(now), order))?
            .map_err(|error| problems(options.py(), "ConfigError", error))
    }

    #[pyo3(signature = (now, name, delay))]
    fn crawl_delay(&self, now: Whole, name: Text, delay: Option<Whole>) -> PyResult<&'static str> {
        let delay = delay.map(|delay| Span::from_millis(delay.span()));
        let outcome = self.with(|machine| machine.crawl_delay(instant(now), &name.0, delay))?;
        Ok(match outcome {
            Robots::Applied => "applied",
            Robots::Overruled => "overruled",
            Robots::Ignored => "ignored",
        })
    }

    fn hold(&self, now: Whole, name: Text, span: Whole) -> PyResult<()> {
        self.order(now, Order::Hold(name.0, Span::from_millis(span.span())))
    }

    /// `sent`: when the request left.
    fn adjust(&self, now: Whole, name: Text, sent: Whole, charged: Real, cost: Real) -> PyResult<()> {
        let ago = Span::from_millis(nanos::span(now.0.saturating_sub(sent.0)));
        self.order(now, Order::Adjust { name: name.0, ago, charged: charged.0, cost: cost.0 })
    }

    #[pyo3(signature = (now, name))]
    fn pause(&self, now: Whole, name: Option<Text>) -> PyResult<()> {
        self.order(now, Order::Pause(name.map(|name| name.0)))
    }

    #[pyo3(signature = (now, name))]
    fn resume(&self, now: Whole, name: Option<Text>) -> PyResult<()> {
        self.order(now, Order::Resume(name.map(|name| name.0)))
    }

    fn reset(&self, now: Whole, name: Text) -> PyResult<()> {
        self.order(now, Order::Reset(name.0))
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

    #[pyo3(signature = (now, op, epoch, stored, age, first))]
    fn elected(
        &self,
        now: Whole,
        op: u64,
        epoch: u64,
        stored: Option<&[u8]>,
        age: Whole,
        first: bool,
    ) -> PyResult<()> {
        let stored = stored.map(|bytes| (bytes, Span::from_millis(age.span())));
        self.hears(now, Input::Elected { op, epoch, stored, first })
    }

    fn refused(&self, now: Whole, op: u64) -> PyResult<()> {
        self.hears(now, Input::Refused { op })
    }

    fn renewed(&self, now: Whole, op: u64) -> PyResult<()> {
        self.hears(now, Input::Renewed { op })
    }

    fn released(&self, now: Whole, op: u64) -> PyResult<()> {
        self.hears(now, Input::Released { op })
    }

    fn timed_out(&self, now: Whole, op: u64) -> PyResult<()> {
        self.hears(now, Input::Failed { op, cause: Cause::Timeout })
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

    /// What is to be done next.
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

    #[getter]
    fn waiting(&self) -> PyResult<u32> {
        self.with(|machine| machine.waiting())
    }

    #[getter]
    fn in_flight(&self) -> PyResult<u32> {
        self.with(|machine| machine.in_flight())
    }

    fn status<'py>(&self, py: Python<'py>, now: Whole) -> PyResult<Bound<'py, PyAny>> {
        let status = self.with(|machine| machine.status(instant(now)))?;
        value::object(py, &Value::from(&status))
    }

    /// When, why not now, and which scope says so.
    fn peek(
        &self,
        now: Whole,
        names: Vec<Text>,
        cost: Costs,
    ) -> PyResult<(Option<u64>, Option<String>, Option<String>)> {
        let names: Vec<&str> = names.iter().map(|name| name.0.as_str()).collect();
        let (at, reason, scope) = self.with(|machine| machine.peek(instant(now), &names, &cost.numbers()))?;
        let reason = (reason >= 0.0).then(|| Boundary::reasons().into_iter().nth(reason as usize)).flatten();
        Ok((at.is_finite().then(|| nanos::of_mark(at)), reason, scope))
    }

    fn stats<'py>(&self, py: Python<'py>, now: Whole) -> PyResult<Bound<'py, PyAny>> {
        value::object(py, &self.with(|machine| machine.stats(instant(now)))?)
    }

    fn scope_stats<'py>(&self, py: Python<'py>, now: Whole, name: Text) -> PyResult<Bound<'py, PyAny>> {
        value::object(py, &self.with(|machine| machine.scope_stats(instant(now), &name.0))?)
    }

    #[pyo3(signature = (now, wall = None))]
    fn snapshot<'py>(&self, py: Python<'py>, now: Whole, wall: Option<Whole>) -> PyResult<Bound<'py, PyAny>> {
        let wall_ms = nanos::wall(wall.map(|wall| wall.0));
        value::object(py, &self.with(|machine| machine.snapshot(instant(now), wall_ms))?)
    }

    #[getter]
    fn warn_threshold(&self) -> PyResult<u32> {
        self.with(|machine| machine.warn_threshold())
    }
}

impl Shared {
    /// No Python may run in there.
    fn with<T>(&self, ask: impl FnOnce(&mut autothrottle_shared::Shared) -> T) -> PyResult<T> {
        let failed = |_| PyRuntimeError::new_err("the group failed in an earlier call");
        let mut machine = self.0.lock().map_err(failed)?;
        Ok(ask(&mut machine))
    }

    fn hears(&self, now: Whole, input: Input<'_>) -> PyResult<()> {
        self.with(|machine| machine.handle(instant(now), input))
    }

    /// One that cannot be wrong.
    fn order(&self, now: Whole, order: Order) -> PyResult<()> {
        self.with(|machine| machine.order(instant(now), order)).map(drop)
    }
}

fn instant(now: Whole) -> Instant {
    Instant::from_millis(now.now()).unwrap_or_default()
}

/// What is no name is that of no process.
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
        Effect::Reconnect => ("reconnect",).into_pyobject(py),
        Effect::Fail { ticket, why } => {
            ("fail", ticket, value::object(py, &Value::from(&why))?).into_pyobject(py)
        }
        Effect::Notice(notice) => ("notice", value::object(py, &notice)?).into_pyobject(py),
        Effect::Warn(warning) => ("warn", warning.code(), warning.text()).into_pyobject(py),
        Effect::Moved => ("moved",).into_pyobject(py),
    }
}
