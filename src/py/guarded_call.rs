//! Calls of Python code by threads that may outlive the interpreter.
//!
//! Before Python 3.14 the interpreter, once it ends, ends a thread that needs the GIL again by
//! `pthread_exit`, in the middle of the Python code that the thread runs. That unwinds its stack,
//! and unwinding into Rust aborts the process. Such a thread waits for ever instead, as from 3.14
//! on; where PyO3 itself acquires the GIL, it does the same.

use std::{mem, ptr, thread};

use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyTuple};

/// The functions of PyO3 with these names cannot be unwound.
mod unwinding {
    use pyo3::ffi::PyObject;

    unsafe extern "C-unwind" {
        pub(super) fn PyObject_Call(
            callable: *mut PyObject,
            arguments: *mut PyObject,
            named: *mut PyObject,
        ) -> *mut PyObject;

        pub(super) fn PyIter_Next(iterator: *mut PyObject) -> *mut PyObject;
    }
}

/// Waits for ever if something other than a panic unwinds the stack.
struct HangThread;

impl Drop for HangThread {
    fn drop(&mut self) {
        while !thread::panicking() {
            thread::park();
        }
    }
}

fn guarded<T>(call: impl FnOnce() -> T) -> T {
    let guard = HangThread;
    let result = call();
    mem::forget(guard);
    result
}

/// Calls that wait for ever if the interpreter ends meanwhile.
pub(super) trait GuardedCall<'py> {
    /// Calls the object.
    fn guarded_call<A>(&self, arguments: A) -> PyResult<Bound<'py, PyAny>>
    where
        A: IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>>;

    /// Calls a method of the object.
    fn guarded_method<A>(&self, name: &str, arguments: A) -> PyResult<Bound<'py, PyAny>>
    where
        A: IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>>;
}

impl<'py> GuardedCall<'py> for Bound<'py, PyAny> {
    fn guarded_call<A>(&self, arguments: A) -> PyResult<Bound<'py, PyAny>>
    where
        A: IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>>,
    {
        let py = self.py();
        let arguments = arguments.into_pyobject(py).map_err(Into::<PyErr>::into)?;
        // SAFETY: both are objects that are held for the call; the result is an own reference, or
        // null with an exception.
        unsafe {
            let result = guarded(|| {
                unwinding::PyObject_Call(self.as_ptr(), arguments.as_ptr(), ptr::null_mut())
            });
            Bound::from_owned_ptr_or_err(py, result)
        }
    }

    fn guarded_method<A>(&self, name: &str, arguments: A) -> PyResult<Bound<'py, PyAny>>
    where
        A: IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>>,
    {
        self.getattr(name)?.guarded_call(arguments)
    }
}

/// The next item of an iterator.
pub(super) fn guarded_next<'py>(
    iterator: &Bound<'py, PyIterator>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = iterator.py();
    // SAFETY: the iterator is held for the call; the result is an own reference, or null, at the
    // end without an exception.
    let next = unsafe {
        let next = guarded(|| unwinding::PyIter_Next(iterator.as_ptr()));
        Bound::from_owned_ptr_or_opt(py, next)
    };
    match next {
        Some(next) => Ok(Some(next)),
        None => PyErr::take(py).map_or(Ok(None), Err),
    }
}
