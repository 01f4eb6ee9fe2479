//! Header fields on their way to the engine, which reads them. Fields that are not about limits are left here
//! after one look at their names.

use autothrottle::{
    boundary::{flags, push_field},
    headers::says_something,
};
use pyo3::{
    Borrowed,
    exceptions::PyTypeError,
    intern,
    prelude::*,
    types::{PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyMapping, PySequence, PyString},
};

use crate::typed::{Text, named, wanted};

/// How to read the fields of a server with a dialect of its own.
pub struct HeaderMap {
    renamed: Vec<(String, &'static str)>,
    flags: u32,
}

impl HeaderMap {
    /// How plain numbers are meant, for the façade.
    pub fn flags(&self) -> u32 {
        self.flags
    }

    fn known(&self, name: &str) -> Option<&'static str> {
        self.renamed.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|&(_, known)| known)
    }
}

impl<'py> FromPyObject<'_, 'py> for HeaderMap {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let map = object.cast::<PyMapping>()?;
        let said = |key: &str| -> PyResult<Option<String>> {
            let value = map.call_method1(intern!(map.py(), "get"), (key,))?;
            Ok(if value.is_none() { None } else { Some(value.str()?.extract::<Text>()?.0) })
        };
        let mut renamed = Vec::new();
        for (key, known) in [
            ("limit", "x-ratelimit-limit"),
            ("remaining", "x-ratelimit-remaining"),
            ("reset", "x-ratelimit-reset"),
            ("retryAfter", "retry-after"),
        ] {
            renamed.extend(said(key)?.map(|own| (own, known)));
        }
        let bit = |key, flag| Ok(if said(key)?.as_deref() == Some("ms") { flag } else { 0 });
        let flags: PyResult<u32> = bit("resetUnit", flags::RESET_IS_MILLIS);
        let flags = flags? | bit("retryAfterUnit", flags::RETRY_AFTER_IS_MILLIS)?;
        Ok(Self { renamed, flags })
    }
}

/// The fields that matter as `name: value` lines; none if no field tells of limits or of a cache.
pub fn lines(headers: &Bound<'_, PyAny>, map: Option<&HeaderMap>) -> PyResult<String> {
    let mut read = Lines { text: String::new(), says: false };
    if let Ok(dict) = headers.cast_exact::<PyDict>() {
        for (name, value) in dict {
            read.add(&name, &value, map)?;
        }
    } else {
        // httpx: repeated fields stay apart.
        let multi = headers.getattr_opt(intern!(headers.py(), "multi_items"))?;
        let pairs = match multi {
            Some(multi) => multi.call0()?,
            None if headers.cast::<PyMapping>().is_ok() => {
                headers.call_method0(intern!(headers.py(), "items"))?
            }
            None => headers.clone(),
        };
        for pair in pairs.try_iter()? {
            let (name, value) = pair_of(&pair?)?;
            read.add(&name, &value, map)?;
        }
    }
    Ok(if read.says { read.text } else { String::new() })
}

fn pair_of<'py>(pair: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let is_text = pair.is_instance_of::<PyString>() || pair.is_instance_of::<PyBytes>();
    match pair.cast::<PySequence>() {
        Ok(both) if !is_text && both.len()? == 2 => Ok((both.get_item(0)?, both.get_item(1)?)),
        _ => Err(PyTypeError::new_err(format!("headers: want (name, value); got {}", pair.repr()?))),
    }
}

struct Lines {
    text: String,
    says: bool,
}

impl Lines {
    fn add(
        &mut self,
        name: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        map: Option<&HeaderMap>,
    ) -> PyResult<()> {
        let read;
        let name = if let Ok(Ok(name)) = name.cast::<PyString>().map(|name| name.to_str()) {
            name
        } else {
            read = text(name)?;
            &read
        };
        let known = map.and_then(|map| map.known(name));
        let kind = if known.is_some() { Kind::Limits } else { Kind::of(name) };
        if kind == Kind::Nothing || value.is_none() {
            return Ok(());
        }
        let name = known.unwrap_or(name);
        if is_single(value) {
            return self.push(name, value, kind);
        }
        for each in value.try_iter().map_err(|_| no_text(value))? {
            self.push(name, &each?, kind)?;
        }
        Ok(())
    }

    fn push(&mut self, name: &str, value: &Bound<'_, PyAny>, kind: Kind) -> PyResult<()> {
        let value = text(value)?;
        let is_aged = || value.trim_start().trim_start_matches('0').starts_with(|c: char| c.is_ascii_digit());
        self.says |= kind == Kind::Limits || kind == Kind::Age && is_aged();
        push_field(&mut self.text, name, &value);
        Ok(())
    }
}

fn is_single(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyString>()
        || value.is_instance_of::<PyBytes>()
        || value.is_instance_of::<PyInt>()
        || value.is_instance_of::<PyFloat>()
}

/// Bytes are latin-1.
fn text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = value.extract::<Text>() {
        return Ok(text.0);
    }
    if value.is_instance_of::<PyBytes>() || value.is_instance_of::<PyByteArray>() {
        return Ok(value.extract::<Vec<u8>>()?.into_iter().map(char::from).collect());
    }
    if is_single(value) {
        return Ok(value.str()?.extract::<Text>()?.0);
    }
    Err(no_text(value))
}

fn no_text(value: &Bound<'_, PyAny>) -> PyErr {
    named(value.py(), "headers", wanted("text", value))
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Limits,
    Age,
    Time,
    Nothing,
}

impl Kind {
    fn of(name: &str) -> Self {
        if says_something(name.as_bytes()) {
            Self::Limits
        } else if name.eq_ignore_ascii_case("age") {
            Self::Age
        } else if name.eq_ignore_ascii_case("date") {
            Self::Time
        } else {
            Self::Nothing
        }
    }
}
