//! Python functions for checkpoints and maintenance of the log: options and results are JSON
//! strings.

use pyo3::prelude::*;

use super::json::{parse_options, to_json};
use super::runtime::wait_settled;
use super::snapshot::PySnapshot;
use crate::checkpoint;

/// Writes the checkpoint of a snapshot's version.
#[pyfunction]
pub(super) fn create_checkpoint(
    py: Python<'_>,
    snapshot: &PySnapshot,
    options_json: String,
) -> PyResult<String> {
    let snapshot = snapshot.core().clone();
    wait_settled(py, move |cancel| {
        to_json(&checkpoint::write(
            &snapshot,
            &parse_options(&options_json)?,
            cancel,
        )?)
    })
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
    options_json: String,
) -> PyResult<String> {
    let snapshot = snapshot.core().clone();
    wait_settled(py, move |cancel| {
        to_json(&checkpoint::cleanup(
            &snapshot,
            &parse_options(&options_json)?,
            cancel,
        )?)
    })
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
