//! How a request ended, from Python's words to the façade's numbers. Numbers are looked at here, before
//! anything has changed.

use autothrottle::{
    Failure,
    boundary::{Outcome, STRIDE, UNTOLD, flags, nanos, place},
};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    intern,
    prelude::*,
    types::{PyDict, PyString},
};

use crate::{
    headers::{HeaderMap, lines},
    typed::{Real, Whole, named},
};

/// An outcome that owns its text and its numbers, which are those that [`Outcome::decode`] takes.
pub struct Reported {
    numbers: Vec<f64>,
    wall_ms: f64,
    lines: String,
}

impl Reported {
    /// Reads what was said by name.
    pub fn read(said: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut read =
            Self { numbers: vec![f64::NAN; place::RECORDS], wall_ms: f64::NAN, lines: String::new() };
        let (mut headers, mut map, mut status, mut bits, mut is_silent) = (None, None, None, 0, false);
        for (key, value) in said.into_iter().flat_map(PyDictMethods::iter) {
            if value.is_none() {
                continue;
            }
            let key = key.cast::<PyString>()?.to_str()?;
            match key {
                "status" => status = Some(whole(key, &value)?.0),
                "failure" => read.numbers[0] = failure(&value)?,
                "latency" => read.numbers[place::LATENCY] = nanos::millis(whole(key, &value)?.0),
                "headers" => headers = Some(value.clone()),
                "header_map" => map = Some(value.extract::<HeaderMap>()?),
                "hints" => {
                    bits |= flags::HINTED;
                    read.numbers[place::HINT..place::RECORDS].copy_from_slice(&hint(&value)?);
                }
                "wall" => read.wall_ms = nanos::wall(Some(whole(key, &value)?.0)),
                "backoff" => bits |= if value.is_truthy()? { flags::BAD } else { flags::GOOD },
                "cost" => read.numbers[2] = real(key, &value)?,
                "adjust_delay" if value.is_truthy()? => {}
                "adjust_delay" => bits |= flags::KEEP_DELAY,
                "scopes" => {
                    for own in value.try_iter()? {
                        read.numbers.extend(scope(&own?)?);
                    }
                }
                "named_only" if value.is_truthy()? => bits |= flags::NAMED_ONLY,
                "retry" if value.is_truthy()? => bits |= flags::MAY_RETRY,
                "replayable" if !value.is_truthy()? => bits |= flags::NOT_REPLAYABLE,
                "silent" => is_silent = value.is_truthy()?,
                "named_only" | "retry" | "replayable" => {}
                "retry_delay" => read.numbers[place::DELAY] = whole(key, &value)?.span(),
                _ => return Err(PyTypeError::new_err(format!("settle: no argument has the name {key}"))),
            }
        }
        if is_silent && read.numbers[0].is_nan() {
            read.numbers[0] = UNTOLD;
        }
        if let Some(status) = status {
            // The façade has other numbers for failures: what is no status has no meaning.
            read.numbers[0] = if (100..=599).contains(&status) { status as f64 } else { f64::NAN };
        }
        if let Some(headers) = headers {
            read.lines = lines(&headers, map.as_ref())?;
            bits |= map.as_ref().map_or(0, HeaderMap::flags);
        }
        read.numbers[3] = f64::from(bits);
        Ok(read)
    }

    /// Names scopes by other numbers.
    pub fn place_scopes(&mut self, place: impl Fn(f64) -> f64) {
        for scope in self.numbers.iter_mut().skip(place::RECORDS).step_by(STRIDE) {
            *scope = place(*scope);
        }
    }

    /// For the façade.
    pub fn outcome(&self) -> Outcome<'_> {
        Outcome { lines: &self.lines, wall_ms: self.wall_ms, ..Outcome::decode(&self.numbers) }
    }
}

fn whole(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Whole> {
    value.extract().map_err(|error| named(value.py(), name, error))
}

fn real(name: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    value.extract::<Real>().map(|real| real.0).map_err(|error| named(value.py(), name, error))
}

fn failure(value: &Bound<'_, PyAny>) -> PyResult<f64> {
    if let Some(failure) = value.extract().ok().and_then(Failure::of_name) {
        return Ok(f64::from(failure as u8));
    }
    let got = value.repr()?;
    Err(PyValueError::new_err(format!("failure: want 'connection' or 'timeout'; got {got}")))
}

/// An attribute that is a time, in milliseconds.
fn time_in(of: &Bound<'_, PyAny>, name: &str) -> PyResult<f64> {
    let value = of.getattr(name)?;
    if value.is_none() { Ok(f64::NAN) } else { whole(name, &value).map(Whole::span) }
}

/// An attribute that is an amount.
fn amount_in(of: &Bound<'_, PyAny>, name: &str) -> PyResult<f64> {
    let value = of.getattr(name)?;
    if value.is_none() { Ok(f64::NAN) } else { real(name, &value) }
}

/// The wait, the units left, their reset, units per window, and the window.
fn hint(hints: &Bound<'_, PyAny>) -> PyResult<[f64; 5]> {
    Ok([
        time_in(hints, "delay")?,
        amount_in(hints, "remaining")?,
        time_in(hints, "reset")?,
        amount_in(hints, "limit")?,
        time_in(hints, "window")?,
    ])
}

fn scope(own: &Bound<'_, PyAny>) -> PyResult<[f64; STRIDE]> {
    let flag = |flag: bool| f64::from(u8::from(flag));
    let bad = own.getattr(intern!(own.py(), "backoff"))?;
    Ok([
        whole("scope", &own.getattr(intern!(own.py(), "scope"))?)?.number(),
        flag(own.getattr(intern!(own.py(), "ignored"))?.is_truthy()?),
        if bad.is_none() { f64::NAN } else { flag(bad.is_truthy()?) },
        time_in(own, "delay")?,
        amount_in(own, "remaining")?,
        time_in(own, "reset")?,
        amount_in(own, "cost")?,
    ])
}
