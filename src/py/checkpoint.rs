//! Python functions for checkpoints and maintenance of the log.

use pyo3::prelude::*;

use super::runtime::wait_settled;
use super::snapshot::PySnapshot;
use super::values::{FromPython, IntoPython};
use crate::checkpoint::{self, CheckpointInfo, CheckpointOptions, CleanupOptions, CleanupPlan};

/// Writes the checkpoint of a snapshot's version.
#[pyfunction]
pub(super) fn create_checkpoint(
    py: Python<'_>,
    snapshot: &PySnapshot,
    options: FromPython<CheckpointOptions>,
) -> PyResult<IntoPython<CheckpointInfo>> {
    let snapshot = snapshot.core().clone();
    wait_settled(py, move |cancel| {
        checkpoint::write(&snapshot, &options.0, cancel)
    })
    .map(IntoPython)
}

/// Writes the checksum of a snapshot's version; false if it exists.
#[pyfunction]
pub(super) fn write_checksum(py: Python<'_>, snapshot: &PySnapshot) -> PyResult<bool> {
    let snapshot = snapshot.core().clone();
    wait_settled(py, move |cancel| {
        checkpoint::write_checksum(&snapshot, cancel)
    })
}

/// Deletes expired files of the log, or lists them.
#[pyfunction]
pub(super) fn cleanup_metadata(
    py: Python<'_>,
    snapshot: &PySnapshot,
    options: FromPython<CleanupOptions>,
) -> PyResult<IntoPython<CleanupPlan>> {
    let snapshot = snapshot.core().clone();
    wait_settled(py, move |cancel| {
        checkpoint::cleanup(&snapshot, &options.0, cancel)
    })
    .map(IntoPython)
}

/// Compacts a range of commits; returns the file's path.
#[pyfunction]
pub(super) fn compact_logs(
    py: Python<'_>,
    snapshot: &PySnapshot,
    starting_version: i64,
    ending_version: i64,
) -> PyResult<String> {
    let snapshot = snapshot.core().clone();
    wait_settled(py, move |cancel| {
        checkpoint::compact(&snapshot, starting_version, ending_version, cancel)
    })
}
