//! Checks the types of arguments before anything else reads them.
//!
//! To Python `True` is 1, and text may hold half a character.

use autothrottle::boundary::nanos;
use pyo3::{
    Borrowed,
    exceptions::{PyOverflowError, PyTypeError, PyValueError},
    prelude::*,
    types::{PyBool, PySequence, PyString},
};

/// A whole number from 0 of 64 bits.
#[derive(Clone, Copy)]
pub struct Whole(pub u64);

impl<'py> FromPyObject<'_, 'py> for Whole {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if object.is_instance_of::<PyBool>() {
            return Err(wanted("a whole number", &object));
        }
        object.extract().map(Self).map_err(|error| {
            if error.is_instance_of::<PyOverflowError>(object.py()) {
                PyValueError::new_err(format!("want a whole number from 0; got {}", *object))
            } else {
                wanted("a whole number", &object)
            }
        })
    }
}

impl Whole {
    /// A mark for the façade.
    pub fn now(self) -> f64 {
        nanos::now(self.0)
    }

    /// A handle or a ticket for the façade.
    pub fn number(self) -> f64 {
        self.0 as f64
    }

    /// A span for the façade.
    pub fn span(self) -> f64 {
        nanos::span(self.0)
    }
}

/// A number. The engine says whether it makes sense.
#[derive(Clone, Copy)]
pub struct Real(pub f64);

impl<'py> FromPyObject<'_, 'py> for Real {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if object.is_instance_of::<PyBool>() {
            return Err(wanted("a number", &object));
        }
        match object.extract() {
            Ok(number) => Ok(Self(number)),
            Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => Ok(Self(f64::INFINITY)),
            Err(_) => Err(wanted("a number", &object)),
        }
    }
}

/// One cost for all scopes, or one each.
pub enum Costs {
    /// For all.
    One(Real),
    /// The last one holds for all further scopes.
    Each(Vec<Real>),
}

impl<'py> FromPyObject<'_, 'py> for Costs {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if object.is_instance_of::<PyString>() || object.cast::<PySequence>().is_err() {
            return object.extract().map(Self::One).map_err(|error| named(object.py(), "cost", error));
        }
        object.extract().map(Self::Each).map_err(|error| named(object.py(), "cost", error))
    }
}

impl Costs {
    /// For the façade.
    pub fn numbers(&self) -> Vec<f64> {
        match self {
            Self::One(cost) => vec![cost.0],
            Self::Each(costs) => costs.iter().map(|cost| cost.0).collect(),
        }
    }
}

/// Text, with a question mark for what is half a character.
pub struct Text(pub String);

impl<'py> FromPyObject<'_, 'py> for Text {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let Ok(text) = object.cast::<PyString>() else { return Err(wanted("text", &object)) };
        if let Ok(text) = text.to_str() {
            return Ok(Self(text.into()));
        }
        let bytes: Vec<u8> = text.call_method1("encode", ("utf-8", "replace"))?.extract()?;
        Ok(Self(String::from_utf8_lossy(&bytes).into_owned()))
    }
}

/// The error for something else than was wanted.
pub fn wanted(want: &str, object: &Bound<'_, PyAny>) -> PyErr {
    let got = object.repr().map_or_else(|_| "something".into(), |text| text.to_string());
    PyTypeError::new_err(format!("want {want}; got {got}"))
}

/// Adds the name of the option to an error's message.
pub fn named(py: Python<'_>, name: &str, error: PyErr) -> PyErr {
    let text = format!("{name}: {}", error.value(py));
    if error.is_instance_of::<PyTypeError>(py) {
        PyTypeError::new_err(text)
    } else if error.is_instance_of::<PyValueError>(py) {
        PyValueError::new_err(text)
    } else {
        error
    }
}
