//! What Python's logger and its warnings get from the core.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::guarded_call::GuardedCall;
use super::values::IntoPython;
use crate::exec::{CallCommits, CommitRecord};
use crate::store::{self, RequestLog};

/// Takes the requests that were recorded.
#[pyfunction]
pub(super) fn take_requests() -> IntoPython<RequestLog> {
    IntoPython(store::take_requests())
}

/// Emits a warning at the program's line.
pub(super) fn warn(py: Python<'_>, message: &str) -> PyResult<()> {
    call(py, "log_warning", (message,)).map(drop)
}

/// Emits a warning about a command that has committed a version, after which none may raise.
pub(super) fn warn_of_commit(py: Python<'_>, message: &str) -> PyResult<()> {
    call(py, "log_commit_warning", (message,)).map(drop)
}

/// Records requests from now on if the logger takes debug messages, else not.
pub(super) fn follow_logger(py: Python<'_>) {
    match call(py, "takes_requests", ()).and_then(|listens| listens.extract()) {
        Ok(listens) => store::record_requests(listens),
        // The work itself does not depend on the logger.
        Err(error) => error.write_unraisable(py, None),
    }
}

/// Passes the recorded requests to the logger.
pub(super) fn log_requests(py: Python<'_>) {
    if store::has_requests()
        && let Err(error) = call(py, "log_requests", ())
    {
        error.write_unraisable(py, None);
    }
}

/// Passes the commits of a call to the logger.
pub(super) fn log_commits(py: Python<'_>, commits: &CallCommits) {
    for record in commits.take() {
        if let Err(error) = log_commit(py, &record) {
            error.write_unraisable(py, None);
        }
    }
}

fn log_commit(py: Python<'_>, record: &CommitRecord) -> PyResult<()> {
    let arguments = (
        record.url.as_str(),
        record.operation.as_str(),
        record.version,
        record.attempts,
        record.commit_ms,
        IntoPython(&record.metrics).into_pyobject(py)?,
    );
    call(py, "log_commit", arguments).map(drop)
}

fn call<'py>(
    py: Python<'py>,
    name: &str,
    arguments: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>>,
) -> PyResult<Bound<'py, PyAny>> {
    py.import("deltafast._logging")?
        .guarded_method(name, arguments)
}
