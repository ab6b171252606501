//! Checkpoints and the upkeep of the log, as Python calls them: options and answers are JSON text.

use pyo3::prelude::*;

use super::json::{parse_options, to_json};
use super::runtime::wait_settled;
use super::snapshot::Snapshot;
use crate::checkpoint;

/// Writes the checkpoint of a snapshot's version.
#[pyfunction]
pub(super) fn create_checkpoint(
    py: Python<'_>,
    snapshot: &Snapshot,
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

/// Writes the checksum of a snapshot's version; false where there is one.
#[pyfunction]
pub(super) fn write_checksum(py: Python<'_>, snapshot: &Snapshot) -> PyResult<bool> {
    let snapshot = snapshot.core().clone();
    wait_settled(py, move |cancel| {
        checkpoint::write_checksum(&snapshot, cancel)
    })
}

/// Deletes what has expired of the log, or says what that would be.
#[pyfunction]
pub(super) fn cleanup_metadata(
    py: Python<'_>,
    snapshot: &Snapshot,
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

/// Compacts a range of commits; gives the file's path.
#[pyfunction]
pub(super) fn compact_logs(
    py: Python<'_>,
    snapshot: &Snapshot,
    starting_version: i64,
    ending_version: i64,
) -> PyResult<String> {
    let snapshot = snapshot.core().clone();
    wait_settled(py, move |cancel| {
        checkpoint::compact(&snapshot, starting_version, ending_version, cancel)
    })
}
