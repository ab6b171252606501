//! Python classes for commands whose rows another engine finds and writes.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use arrow_array::{RecordBatch, RecordBatchReader};
use pyo3::prelude::*;

use super::arrow::{ArrowStream, engine_batches, import_stream};
use super::error::to_python;
use super::runtime::{wait, wait_settled};
use super::snapshot::PySnapshot;
use super::table::{PyCommitResult, optimize_result};
use super::values::{FromPython, IntoPython};
use crate::commit::finish::CommitOptions;
use crate::error::{Error, Result};
use crate::exec::{CancellationToken, ProgressCounter};
use crate::file_writer::bound_constraints::NamedExpression;
use crate::ops::{
    self, DmlKind, MatchedRowsSummary, OptimizeOptions, OptimizeRequirements, TableRequirements,
};
use crate::scan::BatchStream;

/// A job that was not run yet, and the table that it changes.
struct PendingJob<J> {
    job: Mutex<Option<J>>,
    uri: String,
    python_store: bool,
}

impl<J: Send + 'static> PendingJob<J> {
    fn new(job: J, (uri, python_store): (String, bool)) -> Self {
        Self {
            job: Mutex::new(Some(job)),
            uri,
            python_store,
        }
    }

    fn take(&self, py: Python<'_>) -> PyResult<J> {
        let job = self
            .job
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        job.ok_or_else(|| to_python(py, &Error::invalid("a job can be run once")))
    }

    /// Runs a step of the job; after a failed step the job cannot be used.
    fn step<T: Send + 'static>(
        &self,
        py: Python<'_>,
        step: impl FnOnce(&mut J, &CancellationToken) -> Result<T> + Send + 'static,
    ) -> PyResult<T> {
        let mut job = self.take(py)?;
        let (job, found) = wait(py, move |cancel| {
            let found = step(&mut job, cancel)?;
            Ok((job, found))
        })?;
        *self.job.lock().unwrap_or_else(PoisonError::into_inner) = Some(job);
        Ok(found)
    }

    /// Runs the job.
    fn run<T: Send + 'static>(
        &self,
        py: Python<'_>,
        run: impl FnOnce(J, &CancellationToken) -> Result<T> + Send + 'static,
    ) -> PyResult<T> {
        let job = self.take(py)?;
        wait_settled(py, move |cancel| run(job, cancel))
    }
}

/// A DELETE or an UPDATE that another engine runs.
#[pyclass(frozen, module = "deltafast._core")]
pub(super) struct ChangeJob(PendingJob<ops::EngineDmlJob>);

#[pymethods]
impl ChangeJob {
    #[new]
    #[pyo3(signature = (snapshot, kind, commit_options, predicate=None))]
    fn new(
        py: Python<'_>,
        snapshot: &PySnapshot,
        kind: FromPython<DmlKind>,
        commit_options: FromPython<CommitOptions>,
        predicate: Option<FromPython<NamedExpression>>,
    ) -> PyResult<Self> {
        let job = ops::EngineDmlJob::new(
            snapshot.core(),
            kind.0,
            predicate.map(|predicate| predicate.0),
            commit_options.0,
        );
        let job = job.map_err(|e| to_python(py, &e))?;
        Ok(Self(PendingJob::new(job, snapshot.origin())))
    }

    /// The input of the engine.
    fn requirements(&self, py: Python<'_>) -> PyResult<IntoPython<TableRequirements>> {
        self.0
            .step(py, |job, cancel| job.requirements(cancel))
            .map(IntoPython)
    }

    /// Sets the positions of matching rows, `file`, `word` and `bits`; `files` are paths by
    /// their numbers.
    #[pyo3(signature = (files, marks=None))]
    fn find_rows(
        &self,
        py: Python<'_>,
        files: BTreeMap<i32, String>,
        marks: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<IntoPython<MatchedRowsSummary>> {
        let marks = marks.map(import_stream).transpose()?;
        let found = self.0.step(py, move |job, cancel| {
            job.find_rows(marks.map(engine_batches), &files, cancel)
        })?;
        Ok(IntoPython(found))
    }

    /// Commits the files in the folders.
    #[pyo3(signature = (rows=None, changes=None))]
    fn run(
        &self,
        py: Python<'_>,
        rows: Option<String>,
        changes: Option<String>,
    ) -> PyResult<PyCommitResult> {
        let done = self.0.run(py, move |job, cancel| {
            job.run(rows.as_deref(), changes.as_deref(), cancel)
        })?;
        PyCommitResult::of_commit(py, done, &self.0.uri, self.0.python_store)
    }
}

/// An OPTIMIZE or a REORG that another engine runs.
#[pyclass(frozen, module = "deltafast._core")]
pub(super) struct OptimizeJob(PendingJob<ops::EngineOptimizeJob>);

#[pymethods]
impl OptimizeJob {
    #[new]
    #[pyo3(signature = (snapshot, options, predicate=None))]
    fn new(
        py: Python<'_>,
        snapshot: &PySnapshot,
        options: FromPython<OptimizeOptions>,
        predicate: Option<FromPython<NamedExpression>>,
    ) -> PyResult<Self> {
        let core = snapshot.core().clone();
        let job = wait(py, move |cancel| {
            let predicate = predicate.as_ref().map(|predicate| &predicate.0);
            ops::EngineOptimizeJob::new(&core, predicate, options.0, cancel)
        })?;
        Ok(Self(PendingJob::new(job, snapshot.origin())))
    }

    /// The input of the engine.
    fn requirements(&self, py: Python<'_>) -> PyResult<IntoPython<OptimizeRequirements>> {
        self.0
            .step(py, |job, cancel| job.requirements(cancel))
            .map(IntoPython)
    }

    /// The bins whose row groups the engine must copy.
    fn bins_to_copy(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        self.0.step(py, ops::EngineOptimizeJob::bins_to_copy)
    }

    /// The number of bits of a rank for these numbers of ranges of the bins.
    fn rank_bits(&self, py: Python<'_>, ranges: Vec<usize>) -> PyResult<u32> {
        self.0.step(py, move |job, _| Ok(job.rank_bits(&ranges)))
    }

    /// The bounds of the curve for a sample of its columns.
    fn curve(
        &self,
        py: Python<'_>,
        sample: &Bound<'_, PyAny>,
        ranges: Vec<usize>,
    ) -> PyResult<ArrowStream> {
        let sample = import_stream(sample)?;
        let found = self.0.step(py, move |job, cancel| {
            let empty = RecordBatch::new_empty(sample.schema());
            job.curve_bounds(
                std::iter::once(Ok(empty)).chain(engine_batches(sample)),
                &ranges,
                cancel,
            )
        })?;
        let batches = BatchStream {
            schema: found.schema(),
            batches: Box::new(std::iter::once(Ok(found))),
            progress: ProgressCounter::default(),
        };
        Ok(ArrowStream::new(batches, false))
    }

    /// Commits the files in the folder.
    #[pyo3(signature = (folder=None))]
    fn run(&self, py: Python<'_>, folder: Option<String>) -> PyResult<PyCommitResult> {
        let done = self
            .0
            .run(py, move |job, cancel| job.run(folder.as_deref(), cancel))?;
        optimize_result(py, done, self.0.uri.clone(), self.0.python_store)
    }
}

/// Deletes files in folders of another engine that no version references.
#[pyfunction]
pub(super) fn abandon_folders(
    py: Python<'_>,
    snapshot: &PySnapshot,
    folders: Vec<String>,
) -> PyResult<()> {
    let core = snapshot.core().clone();
    wait(py, move |cancel| {
        ops::delete_uncommitted(&core, &folders, cancel)
    })
}
