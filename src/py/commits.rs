//! Reading of single commits, for a stream that follows a table (`deltafast._ops.change_stream`).

use pyo3::prelude::*;

use super::runtime::wait;
use super::snapshot::PySnapshot;
use crate::scan;

/// The commits of a table from a version on.
#[pyclass(frozen, module = "deltafast._core")]
pub(super) struct Commits {
    core: scan::CommitRange,
}

/// The files that one commit added and removed.
#[pyclass(frozen, get_all, module = "deltafast._core")]
pub(super) struct CommitFiles {
    adds: Vec<(String, i64)>,
    removes: bool,
    table_id: Option<String>,
    feed_files: u64,
    feed_bytes: i64,
}

#[pymethods]
impl Commits {
    /// Lists the commits from a version on, as far as the snapshot's log has them.
    #[staticmethod]
    fn list(py: Python<'_>, snapshot: &PySnapshot, start: i64) -> PyResult<Self> {
        let snapshot = snapshot.core().clone();
        let core = wait(py, move |_| scan::CommitRange::list(&snapshot, start))?;
        Ok(Self { core })
    }

    /// Reads one commit.
    fn read(&self, py: Python<'_>, version: i64) -> PyResult<CommitFiles> {
        let core = self.core.clone();
        let scan::CommitFileChanges {
            adds,
            removes,
            table_id,
            change_data_files: feed_files,
            change_data_bytes: feed_bytes,
        } = wait(py, move |_| core.read(version))?;
        Ok(CommitFiles {
            adds,
            removes,
            table_id,
            feed_files,
            feed_bytes,
        })
    }
}
