//! Conversion between Python's dicts, lists and scalars and the core's serializable types.
//!
//! Rejected: the crate `pythonize`, which recurses without a limit, so that a deeply nested
//! argument would overflow the stack.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value};

use super::error::to_python;
use crate::error::Error;
use crate::expr::{BoundExpr, BoundTree};

/// The depth of nesting: values are walked by recursion. A call in an expression and a struct in the
/// type of a column have three levels each.
const MAX_DEPTH: usize = 640;

/// An argument: dicts, lists and scalars of the shape of `T`.
pub(super) struct FromPython<T>(pub(super) T);

impl<'py, T: DeserializeOwned> FromPyObject<'_, 'py> for FromPython<T> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let value = to_value(&object, 0)?;
        serde_json::from_value(value).map(Self).map_err(|e| {
            let name = std::any::type_name::<T>();
            let name = name.rsplit("::").next().unwrap_or(name);
            to_python(object.py(), &Error::invalid(format!("{name}: {e}")))
        })
    }
}

/// An argument that is a bound expression, checked.
pub(super) struct BoundArgument(pub(super) BoundExpr);

impl<'py> FromPyObject<'_, 'py> for BoundArgument {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let tree = FromPython::<BoundTree>::extract(object)?;
        BoundExpr::new(&tree.0)
            .map(Self)
            .map_err(|e| to_python(object.py(), &e))
    }
}

/// A result: dicts, lists and scalars of the shape of `T`.
pub(super) struct IntoPython<T>(pub(super) T);

impl<'py, T: Serialize> IntoPyObject<'py> for IntoPython<T> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        let value = serde_json::to_value(&self.0).map_err(|e| {
            to_python(
                py,
                &Error::internal(format!("a result cannot be converted: {e}")),
            )
        })?;
        to_object(py, value)
    }
}

/// A value of Python as a JSON value.
fn to_value(object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    if depth > MAX_DEPTH {
        let error = Error::invalid("the expression is nested too deeply; write it flatter");
        return Err(to_python(object.py(), &error));
    }
    if object.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(text) = object.cast::<PyString>() {
        return text_of(text).map(Value::String);
    }
    if let Ok(truth) = object.cast::<PyBool>() {
        return Ok(Value::Bool(truth.is_true()));
    }
    if let Ok(number) = object.cast::<PyInt>() {
        let value = number.extract::<i64>().map(Value::from);
        let value = value.or_else(|_| number.extract::<u64>().map(Value::from));
        // As in a JSON text, a larger number is the nearest floating-point one.
        return value.or_else(|_| number.extract::<f64>().map(Value::from));
    }
    if let Ok(number) = object.cast::<PyFloat>() {
        return Number::from_f64(number.value())
            .map(Value::Number)
            .ok_or_else(|| to_python(object.py(), &Error::invalid("a number must be finite")));
    }
    if let Ok(dict) = object.cast::<PyDict>() {
        let mut map = Map::new();
        for (key, value) in dict {
            let key = match key.cast::<PyString>() {
                Ok(text) => text_of(text)?,
                Err(_) => key.extract::<i64>()?.to_string(),
            };
            map.insert(key, to_value(&value, depth + 1)?);
        }
        return Ok(Value::Object(map));
    }
    if let Ok(list) = object.cast::<PyList>() {
        return list.iter().map(|item| to_value(&item, depth + 1)).collect();
    }
    if let Ok(tuple) = object.cast::<PyTuple>() {
        return tuple
            .iter()
            .map(|item| to_value(&item, depth + 1))
            .collect();
    }
    Err(PyTypeError::new_err(format!(
        "expected None, str, bool, int, float, dict, list or tuple, found {}",
        object.get_type().name()?
    )))
}

/// The text of a string, which may have lone surrogates in Python, but not in UTF-8.
fn text_of(text: &Bound<'_, PyString>) -> PyResult<String> {
    text.extract().map_err(|e| {
        let error = Error::invalid(format!("a string cannot be written as UTF-8: {e}"));
        to_python(text.py(), &error)
    })
}

/// The value in Python; the core serializes no value that nests deeply.
fn to_object(py: Python<'_>, value: Value) -> PyResult<Bound<'_, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(truth) => PyBool::new(py, truth).to_owned().into_any(),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => number.into_pyobject(py)?.into_any(),
            (None, Some(number)) => number.into_pyobject(py)?.into_any(),
            (None, None) => PyFloat::new(py, number.as_f64().unwrap_or(f64::NAN)).into_any(),
        },
        Value::String(text) => PyString::new(py, &text).into_any(),
        Value::Array(items) => {
            let list = PyList::empty(py);
            for item in items {
                list.append(to_object(py, item)?)?;
            }
            list.into_any()
        }
        Value::Object(map) => {
            let dict = PyDict::new(py);
            for (key, value) in map {
                dict.set_item(key, to_object(py, value)?)?;
            }
            dict.into_any()
        }
    })
}
