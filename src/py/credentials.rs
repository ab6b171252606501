//! Sources of credentials implemented in Python, as described by `deltafast.credentials`.

use std::collections::HashMap;

use pyo3::exceptions::PyPermissionError;
use pyo3::prelude::*;

use super::guarded_call::GuardedCall;
use crate::error::{Error, Result};
use crate::store::{self, RegisteredSource, TemporaryCredentials};

/// A source of credentials that storage options refer to.
#[pyclass(frozen, name = "CredentialSource", module = "deltafast._core")]
pub(super) struct PyCredentialSource(RegisteredSource);

#[pymethods]
impl PyCredentialSource {
    /// `ask` returns the credentials by name, and when they expire (milliseconds since the epoch).
    #[new]
    fn new(ask: Py<PyAny>) -> Self {
        Self(RegisteredSource::new(Box::new(PythonSource(ask))))
    }

    /// The storage option that refers to the source while it exists.
    fn option(&self) -> (String, String) {
        self.0.option()
    }
}

#[derive(Debug)]
struct PythonSource(Py<PyAny>);

impl store::CredentialSource for PythonSource {
    fn credentials(&self) -> Result<TemporaryCredentials> {
        let answer = Python::try_attach(|py| {
            let answer = self
                .0
                .bind(py)
                .guarded_call(())
                .and_then(|answer| answer.extract::<(HashMap<String, String>, Option<i64>)>());
            match answer {
                Ok((values, expires_at_ms)) => Ok(TemporaryCredentials {
                    values,
                    expires_at_ms,
                }),
                Err(error) => {
                    let refused = error.is_instance_of::<PyPermissionError>(py);
                    Err(Error::storage(error.value(py).to_string(), !refused))
                }
            }
        });
        // The interpreter ends.
        answer.unwrap_or(Err(Error::Cancelled))
    }
}
