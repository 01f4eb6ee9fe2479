//! Options and snapshots: Python's objects as the engine's values, and back.
//!
//! A value that no setting wants, a function or a circle, is described, so that it is reported with its path
//! beside all other problems.

use autothrottle::{Value, value::DEEPEST};
use pyo3::{
    IntoPyObjectExt,
    exceptions::PyOverflowError,
    prelude::*,
    types::{
        PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PyMapping, PySequence,
        PySet, PyString,
    },
};

use crate::typed::Text;

/// Converts any value of Python.
pub fn read(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    nested(object, 0)
}

fn nested(object: &Bound<'_, PyAny>, depth: u8) -> PyResult<Value> {
    if object.is_none() {
        return Ok(Value::Nothing);
    }
    if object.is_instance_of::<PyBool>() {
        return Ok(Value::Bool(object.extract()?));
    }
    if object.is_instance_of::<PyString>() {
        return Ok(Value::Text(object.extract::<Text>()?.0));
    }
    if object.is_instance_of::<PyFloat>() || object.is_instance_of::<PyInt>() {
        return match object.extract() {
            Ok(number) => Ok(Value::Number(number)),
            Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => {
                Ok(Value::Number(if object.lt(0)? { f64::NEG_INFINITY } else { f64::INFINITY }))
            }
            Err(error) => Err(error),
        };
    }
    if depth > DEEPEST {
        return Ok(Value::Other("something nested too deep".into()));
    }
    if let Ok(mapping) = object.cast::<PyMapping>() {
        let pair = |pair: Bound<'_, PyAny>| {
            let (key, value) = pair.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
            let key = key.extract::<Text>().or_else(|_| key.str()?.extract())?;
            Ok((key.0, nested(&value, depth + 1)?))
        };
        return Ok(Value::Map(mapping.items()?.iter().map(pair).collect::<PyResult<_>>()?));
    }
    let is_set = object.is_instance_of::<PySet>() || object.is_instance_of::<PyFrozenSet>();
    let is_bytes = object.is_instance_of::<PyBytes>() || object.is_instance_of::<PyByteArray>();
    if is_set || !is_bytes && object.cast::<PySequence>().is_ok() {
        let mut items = object.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        if is_set {
            // In the same order each time, whatever is in it.
            items.sort_by_cached_key(|item| {
                item.repr().map_or_else(|_| String::new(), |text| text.to_string())
            });
        }
        return Ok(Value::List(items.iter().map(|item| nested(item, depth + 1)).collect::<PyResult<_>>()?));
    }
    let what = if object.is_callable() { "a function" } else { "something that is no plain value" };
    Ok(Value::Other(what.into()))
}

/// A value as Python has it: what is missing is `None`, a whole number an `int`.
pub fn object<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Nothing => Ok(py.None().into_bound(py)),
        Value::Bool(flag) => flag.into_bound_py_any(py),
        Value::Number(number) if number.trunc() == *number && number.abs() < 1e15 => {
            (*number as i64).into_bound_py_any(py)
        }
        Value::Number(number) => number.into_bound_py_any(py),
        Value::Text(text) | Value::Other(text) => text.into_bound_py_any(py),
        Value::List(items) => {
            let items: Vec<_> = items.iter().map(|item| object(py, item)).collect::<PyResult<_>>()?;
            Ok(PyList::new(py, items)?.into_any())
        }
        Value::Map(entries) => {
            let dict = PyDict::new(py);
            for (key, value) in entries {
                dict.set_item(key, object(py, value)?)?;
            }
            Ok(dict.into_any())
        }
    }
}
