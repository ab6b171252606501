//! Python classes for commands whose rows another engine finds and writes: options, constraints and
//! results are JSON strings.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use arrow_array::{RecordBatch, RecordBatchReader};
use pyo3::prelude::*;
use serde_json::json;

use super::arrow::{ArrowStream, engine_batches, import_stream};
use super::error::to_python;
use super::json::{from_json, to_json};
use super::runtime::{wait, wait_settled};
use super::snapshot::PySnapshot;
use super::table::{CommandOutput, answer, optimized};
use crate::error::{Error, Result};
use crate::exec::{CancellationToken, ProgressCounter};
use crate::ops;
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
pub(super) struct ChangeJob(PendingJob<ops::ExternalDmlJob>);

#[pymethods]
impl ChangeJob {
    /// `verb` is `delete` or `update`, `predicate` JSON of a `NamedExpression`.
    #[new]
    #[pyo3(signature = (snapshot, verb, commit_options, predicate=None))]
    fn new(
        py: Python<'_>,
        snapshot: &PySnapshot,
        verb: &str,
        commit_options: &str,
        predicate: Option<&str>,
    ) -> PyResult<Self> {
        let made = || {
            let verb = from_json("verb", &json!(verb).to_string())?;
            let predicate = predicate
                .map(|json| from_json("predicate", json))
                .transpose()?;
            ops::ExternalDmlJob::new(
                snapshot.core(),
                verb,
                predicate,
                from_json("commit_options", commit_options)?,
            )
        };
        let job = made().map_err(|e| to_python(py, &e))?;
        Ok(Self(PendingJob::new(job, snapshot.origin())))
    }

    /// JSON of `TableRequirements`.
    fn outlook(&self, py: Python<'_>) -> PyResult<String> {
        self.0
            .step(py, |job, cancel| to_json(&job.requirements(cancel)?))
    }

    /// Sets the positions of matching rows, `file`, `word` and `bits`; `files` is a JSON object of
    /// paths by their numbers. Returns JSON of `MatchedRowsSummary`.
    #[pyo3(signature = (files, marks=None))]
    fn find(
        &self,
        py: Python<'_>,
        files: String,
        marks: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<String> {
        let marks = marks.map(import_stream).transpose()?;
        self.0.step(py, move |job, cancel| {
            let files: BTreeMap<i32, String> = from_json("files", &files)?;
            to_json(&job.find_rows(marks.map(engine_batches), &files, cancel)?)
        })
    }

    /// Commits the files in the folders.
    #[pyo3(signature = (rows=None, changes=None))]
    fn run(
        &self,
        py: Python<'_>,
        rows: Option<String>,
        changes: Option<String>,
    ) -> PyResult<CommandOutput> {
        let done = self.0.run(py, move |job, cancel| {
            job.run(rows.as_deref(), changes.as_deref(), cancel)
        })?;
        answer(py, done, &self.0.uri, self.0.python_store)
    }
}

/// An OPTIMIZE or a REORG that another engine runs.
#[pyclass(frozen, module = "deltafast._core")]
pub(super) struct OptimizeJob(PendingJob<ops::ExternalOptimizeJob>);

#[pymethods]
impl OptimizeJob {
    /// `options` is JSON of `OptimizeOptions`, `predicate` of a `NamedExpression`.
    #[new]
    #[pyo3(signature = (snapshot, options, predicate=None))]
    fn new(
        py: Python<'_>,
        snapshot: &PySnapshot,
        options: String,
        predicate: Option<String>,
    ) -> PyResult<Self> {
        let core = snapshot.core().clone();
        let job = wait(py, move |cancel| {
            let predicate = predicate
                .map(|json| from_json("predicate", &json))
                .transpose()?;
            ops::ExternalOptimizeJob::new(
                &core,
                predicate.as_ref(),
                from_json("options", &options)?,
                cancel,
            )
        })?;
        Ok(Self(PendingJob::new(job, snapshot.origin())))
    }

    /// JSON of `OptimizeRequirements`.
    fn outlook(&self, py: Python<'_>) -> PyResult<String> {
        self.0
            .step(py, |job, cancel| to_json(&job.requirements(cancel)?))
    }

    /// The bounds of the curve for a sample of its columns.
    fn curve(&self, py: Python<'_>, sample: &Bound<'_, PyAny>) -> PyResult<ArrowStream> {
        let sample = import_stream(sample)?;
        let found = self.0.step(py, move |job, cancel| {
            let empty = RecordBatch::new_empty(sample.schema());
            job.curve_bounds(
                std::iter::once(Ok(empty)).chain(engine_batches(sample)),
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
    fn run(&self, py: Python<'_>, folder: Option<String>) -> PyResult<CommandOutput> {
        let done = self
            .0
            .run(py, move |job, cancel| job.run(folder.as_deref(), cancel))?;
        optimized(py, done, self.0.uri.clone(), self.0.python_store)
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
