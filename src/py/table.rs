//! Python functions for operations on tables: options, constraints and results are JSON strings.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatchReader;
use arrow_array::ffi_stream::RecordBatchStreamReader;
use pyo3::prelude::*;
use serde_json::json;

use super::arrow::{ArrowStream, engine_batches, import_stream};
use super::catalog::PyCatalog;
use super::error::to_python;
use super::json::{from_json, to_json};
use super::runtime::{cancellation_token, replace_progress, wait, wait_settled};
use super::snapshot::{LogTailSource, PySnapshot, open_log, read_options};
use super::store::PyStore;
use crate::commit::finish::{CommitOptions, CommitResult};
use crate::error::{Error, Result};
use crate::exec::ProgressCounter;
use crate::ops::{
    self, CreateOptions, FileMetrics, FileSizes, OptimizeResult, TableChange, TableOrPath,
    WriteCommand, WriteOptions,
};
use crate::protocol::commit_line::Action;
use crate::protocol::schema::StructType;
use crate::protocol::{evolution, properties};
use crate::store::Store;
use crate::write::bound_constraints::TableConstraints;

/// The table of a command: a version, or a location.
struct CommandTarget {
    place: TargetLocation,
    uri: String,
    python_store: bool,
}

enum TargetLocation {
    Known(crate::snapshot::Snapshot),
    Location(
        Option<Arc<dyn Store>>,
        HashMap<String, String>,
        HashMap<String, String>,
        LogTailSource,
    ),
}

impl CommandTarget {
    fn new(
        uri: String,
        snapshot: Option<&PySnapshot>,
        storage: Option<HashMap<String, String>>,
        store: Option<Py<PyAny>>,
        options: Option<HashMap<String, String>>,
        committer: Option<Py<PyAny>>,
    ) -> Self {
        if let Some(snapshot) = snapshot {
            let (uri, python_store) = snapshot.origin();
            return Self {
                place: TargetLocation::Known(snapshot.core().clone()),
                uri,
                python_store,
            };
        }
        let python_store = store.is_some() || committer.is_some();
        let store = store.map(|object| Arc::new(PyStore::new(object, &uri)) as Arc<dyn Store>);
        let newest = PyCatalog::wrap(committer)
            .map(LogTailSource::Catalog)
            .unwrap_or_default();
        Self {
            place: TargetLocation::Location(
                store,
                storage.unwrap_or_default(),
                options.unwrap_or_default(),
                newest,
            ),
            uri,
            python_store,
        }
    }

    fn open(place: TargetLocation, uri: &str) -> Result<TableOrPath> {
        match place {
            TargetLocation::Known(snapshot) => Ok(TableOrPath::Table(snapshot)),
            TargetLocation::Location(store, storage, options, newest) => TableOrPath::open(
                open_log(uri, store, storage, &options, newest)?,
                read_options(&options)?,
            ),
        }
    }
}

/// (the table after the operation, its result as JSON)
pub(super) type CommandOutput = (Option<PySnapshot>, String);

/// Reports the warnings of a command to Python; returns the table after it.
pub(super) fn report_warnings(
    py: Python<'_>,
    done: Option<CommitResult>,
) -> PyResult<Option<crate::snapshot::Snapshot>> {
    let Some(done) = done else { return Ok(None) };
    for warning in &done.warnings {
        py.import("deltafast.exceptions")?
            .call_method1("warn", (warning,))?;
    }
    Ok(done.snapshot)
}

pub(super) fn answer(
    py: Python<'_>,
    done: CommitResult,
    uri: &str,
    python_store: bool,
) -> PyResult<CommandOutput> {
    let report =
        json!({"version": done.version, "metrics": done.metrics, "attempts": done.attempts})
            .to_string();
    Ok((
        report_warnings(py, Some(done))?
            .map(|core| PySnapshot::new(core, uri.to_owned(), python_store)),
        report,
    ))
}

/// Creates a table without rows; `bound` are its constraints, each with a bound expression.
#[pyfunction]
#[pyo3(signature = (uri, schema, bound, options, storage_options=None, store=None, open_options=None, committer=None))]
#[allow(clippy::too_many_arguments)]
pub(super) fn create_table(
    py: Python<'_>,
    uri: String,
    schema: String,
    bound: String,
    options: String,
    storage_options: Option<HashMap<String, String>>,
    store: Option<Py<PyAny>>,
    open_options: Option<HashMap<String, String>>,
    committer: Option<Py<PyAny>>,
) -> PyResult<CommandOutput> {
    let CommandTarget {
        place,
        uri,
        python_store,
    } = CommandTarget::new(uri, None, storage_options, store, open_options, committer);
    let name = uri.clone();
    let done = wait_settled(py, move |cancel| {
        let options: CreateOptions = from_json("options", &options)?;
        ops::create(
            &CommandTarget::open(place, &name)?,
            &StructType::parse(&schema)?,
            &from_json("demands", &bound)?,
            &options,
            cancel,
        )
    })?;
    answer(py, done, &uri, python_store)
}

/// The constraints of a table with this schema and these properties, whatever its protocol: JSON of
/// `TableConstraints`.
#[pyfunction]
pub(super) fn demands(py: Python<'_>, schema: &str, configuration: &str) -> PyResult<String> {
    let found = || -> Result<String> {
        let schema = StructType::parse(schema)?;
        to_json(&TableConstraints::for_new_table(
            &schema,
            from_json("configuration", configuration)?,
        )?)
    };
    found().map_err(|e| to_python(py, &e))
}

/// The table's current constraints, as JSON of `TableConstraints`.
#[pyfunction]
pub(super) fn demands_of(py: Python<'_>, snapshot: &PySnapshot) -> PyResult<String> {
    let core = snapshot.core();
    let found = TableConstraints::of(core.protocol(), core.metadata(), core.schema(), |_| false)
        .and_then(|demands| to_json(&demands));
    found.map_err(|e| to_python(py, &e))
}

/// Refuses contradicting properties that an SQL statement sets.
#[pyfunction]
pub(super) fn check_retention(
    py: Python<'_>,
    properties: BTreeMap<String, String>,
) -> PyResult<()> {
    properties::check_retention(&properties).map_err(|e| to_python(py, &e))
}

/// Changes a table's definition; `bound` are its constraints, each with a bound expression.
#[pyfunction]
pub(super) fn alter(
    py: Python<'_>,
    snapshot: &PySnapshot,
    change: String,
    bound: String,
    commit_options: String,
) -> PyResult<CommandOutput> {
    let (uri, python_store) = snapshot.origin();
    let core = snapshot.core().clone();
    let done = wait_settled(py, move |cancel| {
        let change: TableChange = from_json("change", &change)?;
        let commit_options: CommitOptions = from_json("commit_options", &commit_options)?;
        ops::alter(
            &core,
            &change,
            &from_json("demands", &bound)?,
            &commit_options,
            cancel,
        )
    })?;
    answer(py, done, &uri, python_store)
}

/// Drops a table feature.
#[pyfunction]
pub(super) fn drop_feature(
    py: Python<'_>,
    snapshot: &PySnapshot,
    name: String,
    truncate_history: bool,
    commit_options: String,
) -> PyResult<CommandOutput> {
    let (uri, python_store) = snapshot.origin();
    let core = snapshot.core().clone();
    let done = wait_settled(py, move |cancel| {
        ops::drop_feature(
            &core,
            &name,
            truncate_history,
            &from_json("commit_options", &commit_options)?,
            cancel,
        )
    })?;
    answer(py, done, &uri, python_store)
}

/// Deletes the rows for which a predicate (JSON of a `NamedExpression`) is true, all rows without
/// one.
#[pyfunction]
#[pyo3(signature = (snapshot, options, predicate=None))]
pub(super) fn delete(
    py: Python<'_>,
    snapshot: &PySnapshot,
    options: String,
    predicate: Option<String>,
) -> PyResult<CommandOutput> {
    let (uri, python_store) = snapshot.origin();
    let core = snapshot.core().clone();
    let done = wait_settled(py, move |cancel| {
        let predicate = predicate
            .map(|json| from_json("predicate", &json))
            .transpose()?;
        ops::delete(
            &core,
            predicate.as_ref(),
            &from_json("options", &options)?,
            cancel,
        )
    })?;
    answer(py, done, &uri, python_store)
}

/// Assigns values to columns in the rows for which a predicate is true. `assignments` is a JSON
/// list of `ValuePlan`s, `bound` are the table's constraints, each with a bound expression.
#[pyfunction]
#[pyo3(signature = (snapshot, options, assignments, bound, predicate=None))]
pub(super) fn update(
    py: Python<'_>,
    snapshot: &PySnapshot,
    options: String,
    assignments: String,
    bound: String,
    predicate: Option<String>,
) -> PyResult<CommandOutput> {
    let (uri, python_store) = snapshot.origin();
    let core = snapshot.core().clone();
    let done = wait_settled(py, move |cancel| {
        let predicate = predicate
            .map(|json| from_json("predicate", &json))
            .transpose()?;
        let assignments: Vec<ops::ValuePlan> = from_json("assignments", &assignments)?;
        ops::update(
            &core,
            predicate.as_ref(),
            &assignments,
            &from_json("demands", &bound)?,
            &from_json("options", &options)?,
            cancel,
        )
    })?;
    answer(py, done, &uri, python_store)
}

/// The progress of the calls that a thread makes within the `with` block: (completed, all). It can
/// be read from another thread.
#[pyclass(frozen, weakref, module = "deltafast._core")]
pub(super) struct Counter {
    progress: ProgressCounter,
    /// The counter before the block.
    before: Mutex<Option<ProgressCounter>>,
}

#[pymethods]
impl Counter {
    #[new]
    fn new() -> Self {
        Self {
            progress: ProgressCounter::default(),
            before: Mutex::new(None),
        }
    }

    fn progress(&self) -> (u64, u64) {
        self.progress.get()
    }

    /// Adds units to the total.
    fn expect(&self, units: u64) {
        self.progress.expect(units);
    }

    fn __enter__(&self) {
        *self.before.lock().unwrap_or_else(PoisonError::into_inner) =
            replace_progress(Some(self.progress.clone()));
    }

    fn __exit__(
        &self,
        _kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) {
        let _ = replace_progress(
            self.before
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
    }
}

/// Packs small files of the partitions for which a predicate (JSON of a `NamedExpression`) is true,
/// of all partitions without one.
#[pyfunction]
#[pyo3(signature = (snapshot, options, predicate=None))]
pub(super) fn optimize(
    py: Python<'_>,
    snapshot: &PySnapshot,
    options: String,
    predicate: Option<String>,
) -> PyResult<CommandOutput> {
    let (uri, python_store) = snapshot.origin();
    let core = snapshot.core().clone();
    let found = wait_settled(py, move |cancel| {
        let predicate = predicate
            .map(|json| from_json("predicate", &json))
            .transpose()?;
        ops::optimize(
            &core,
            predicate.as_ref(),
            &from_json("options", &options)?,
            cancel,
        )
    })?;
    optimized(py, found, uri, python_store)
}

/// The table after an OPTIMIZE, and its metrics.
pub(super) fn optimized(
    py: Python<'_>,
    found: OptimizeResult,
    uri: String,
    python_store: bool,
) -> PyResult<CommandOutput> {
    let files = |sizes: &FileSizes| json!({"count": sizes.count(), "sum": sizes.sum(), "min": sizes.percentile(0), "max": sizes.percentile(100)});
    let figures = |files: FileMetrics| json!({"numFiles": files.count, "size": files.bytes});
    let report = json!({
        "version": found.done.as_ref().and_then(|done| done.version),
        "added": files(&found.added),
        "removed": files(&found.removed),
        "partitions": found.partitions,
        "considered": found.candidate_files,
        "largest_bin": found.largest_bin,
        "layout": found.layout,
        "clustering": found.clustering.map(|clustering| json!({
            "inputZCubeFiles": figures(clustering.input_cube_files),
            "inputOtherFiles": figures(clustering.input_other_files),
            "inputNumZCubes": clustering.input_cubes,
            "mergedFiles": figures(clustering.merged_files),
            "numOutputZCubes": clustering.output_cubes,
        })),
    });
    let moved =
        report_warnings(py, found.done)?.map(|core| PySnapshot::new(core, uri, python_store));
    Ok((moved, report.to_string()))
}

/// Rows, or files that contain them.
enum WriteInput {
    Rows(RecordBatchStreamReader),
    Files(Vec<Action>),
}

/// A write that waits for its bound expressions.
#[pyclass(frozen, module = "deltafast._core")]
pub(super) struct TableWrite {
    parts: Mutex<Option<(WriteCommand, WriteInput)>>,
    demands: String,
    schema: String,
    uri: String,
    python_store: bool,
}

impl TableWrite {
    fn take(&self, py: Python<'_>) -> PyResult<(WriteCommand, WriteInput)> {
        let parts = self
            .parts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        parts.ok_or_else(|| run_once(py))
    }
}

fn run_once(py: Python<'_>) -> PyErr {
    to_python(py, &Error::invalid("a write can be run once"))
}

#[pymethods]
impl TableWrite {
    /// Determines the table after the write; `None` if there is nothing to do.
    #[staticmethod]
    #[pyo3(signature = (uri, options, data=None, actions=None, schema=None, snapshot=None, storage_options=None, store=None, open_options=None, committer=None))]
    #[allow(clippy::too_many_arguments)]
    fn plan(
        py: Python<'_>,
        uri: String,
        options: String,
        data: Option<&Bound<'_, PyAny>>,
        actions: Option<String>,
        schema: Option<String>,
        snapshot: Option<&PySnapshot>,
        storage_options: Option<HashMap<String, String>>,
        store: Option<Py<PyAny>>,
        open_options: Option<HashMap<String, String>>,
        committer: Option<Py<PyAny>>,
    ) -> PyResult<Option<Self>> {
        let CommandTarget {
            place,
            uri,
            python_store,
        } = CommandTarget::new(
            uri,
            snapshot,
            storage_options,
            store,
            open_options,
            committer,
        );
        let stream = data.map(import_stream).transpose()?;
        let arrow = stream.as_ref().map(RecordBatchReader::schema);
        let name = uri.clone();
        let planned = wait(py, move |_| {
            let options: WriteOptions = from_json("options", &options)?;
            let schema = match (&schema, arrow) {
                (Some(schema), _) => StructType::parse(schema)?,
                (None, Some(arrow)) => evolution::from_arrow_schema(&arrow)?,
                (None, None) => return Err(Error::internal("a write needs data or a schema")),
            };
            let write = WriteCommand::plan(CommandTarget::open(place, &name)?, &schema, options)?;
            let actions = actions
                .as_deref()
                .map(Action::from_lines)
                .transpose()?
                .unwrap_or_default();
            write
                .map(|write| {
                    Ok((
                        to_json(write.table_constraints())?,
                        write.schema().to_json().to_string(),
                        write,
                        actions,
                    ))
                })
                .transpose()
        })?;
        Ok(planned.map(|(demands, schema, write, actions)| {
            let input = stream.map_or(WriteInput::Files(actions), WriteInput::Rows);
            Self {
                parts: Mutex::new(Some((write, input))),
                demands,
                schema,
                uri,
                python_store,
            }
        }))
    }

    /// The expressions to bind: JSON of `TableConstraints`.
    #[getter]
    fn demands(&self) -> &str {
        &self.demands
    }

    /// The table's schema after the write, to bind against.
    #[getter]
    fn schema(&self) -> &str {
        &self.schema
    }

    /// JSON of the table's `protocol` and `metadata` after the write, of the `identities` for which
    /// the data has no values, and of the `version` that is written to.
    #[getter]
    fn target(&self, py: Python<'_>) -> PyResult<String> {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let (write, _) = parts.as_ref().ok_or_else(|| run_once(py))?;
        let (protocol, metadata) = write.target();
        to_json(&json!({"protocol": protocol, "metadata": metadata, "identities": write.generated_identities(), "version": write.version()})).map_err(|e| to_python(py, &e))
    }

    /// Determines the rows to replace, for another engine that writes; returns whether it must
    /// write change data.
    fn settle(&self, py: Python<'_>, bound: String) -> PyResult<bool> {
        let (mut write, input) = self.take(py)?;
        let (write, has_feed) = wait(py, move |cancel| {
            let has_feed = write.plan_replacement(&from_json("demands", &bound)?, cancel)?;
            Ok((write, has_feed))
        })?;
        *self.parts.lock().unwrap_or_else(PoisonError::into_inner) = Some((write, input));
        Ok(has_feed)
    }

    /// Commits the files that another engine wrote into folders of the table.
    #[pyo3(signature = (bound, folder, changes=None))]
    fn run_folder(
        &self,
        py: Python<'_>,
        bound: String,
        folder: String,
        changes: Option<String>,
    ) -> PyResult<CommandOutput> {
        let (write, _) = self.take(py)?;
        let done = wait_settled(py, move |cancel| {
            write.run_folder(
                &from_json("demands", &bound)?,
                &folder,
                changes.as_deref(),
                cancel,
            )
        })?;
        answer(py, done, &self.uri, self.python_store)
    }

    /// Commits files that `write_files` wrote elsewhere; `answers` are its results.
    #[pyo3(signature = (bound, answers, changes=None))]
    fn run_written(
        &self,
        py: Python<'_>,
        bound: String,
        answers: Vec<String>,
        changes: Option<String>,
    ) -> PyResult<CommandOutput> {
        let (write, _) = self.take(py)?;
        let done = wait_settled(py, move |cancel| {
            let (written, inserted) = super::write::together(&answers)?;
            write.run_written(
                &from_json("demands", &bound)?,
                written,
                &inserted,
                changes.as_deref(),
                cancel,
            )
        })?;
        answer(py, done, &self.uri, self.python_store)
    }

    /// Deletes files that another engine wrote into folders of the table, instead of a commit.
    fn abandon(&self, py: Python<'_>, folders: Vec<String>) -> PyResult<()> {
        let (write, _) = self.take(py)?;
        wait(py, move |cancel| write.abandon(&folders, cancel))
    }

    /// Writes and commits. `bound` is `demands` with a tree for each expression.
    fn run(&self, py: Python<'_>, bound: String) -> PyResult<CommandOutput> {
        let (write, input) = self.take(py)?;
        let done = wait_settled(py, move |cancel| {
            let bound: TableConstraints = from_json("demands", &bound)?;
            match input {
                WriteInput::Rows(stream) => write.run(
                    &bound,
                    stream.map(|batch| {
                        batch.map_err(|e| Error::invalid(format!("the data cannot be read: {e}")))
                    }),
                    cancel,
                ),
                WriteInput::Files(actions) => write.run_files(&bound, actions, cancel),
            }
        })?;
        answer(py, done, &self.uri, self.python_store)
    }
}

/// The state of a merge: opened, planned, its source read, its keys joined.
enum MergeState {
    Opened(
        crate::snapshot::Snapshot,
        StructType,
        RecordBatchStreamReader,
    ),
    Settled(Box<ops::MergeCommand>, RecordBatchStreamReader),
    Joining(Box<ops::MergeJoin>),
    Job(Box<ops::ExternalMergeJob>),
}

/// A merge that waits for its bound expressions, then for the pairs of matching rows.
#[pyclass(frozen, module = "deltafast._core")]
pub(super) struct TableMerge {
    state: Mutex<Option<MergeState>>,
    source_schema: String,
    uri: String,
    python_store: bool,
}

impl TableMerge {
    fn take(&self, py: Python<'_>) -> PyResult<MergeState> {
        let state = self
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        state.ok_or_else(|| to_python(py, &Error::invalid("a merge can be run once")))
    }

    fn put(&self, state: MergeState) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = Some(state);
    }

    fn keys(&self, py: Python<'_>, of_target: bool) -> PyResult<ArrowStream> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let found = match &*state {
            Some(MergeState::Joining(joining)) if of_target => {
                joining.target_keys(&cancellation_token())
            }
            Some(MergeState::Joining(joining)) => joining.source_keys(),
            _ => Err(Error::internal(
                "a merge has no keys before its source is read",
            )),
        };
        let batches = found.map_err(|e| to_python(py, &e))?;
        Ok(ArrowStream::new(batches, of_target && self.python_store))
    }
}

#[pymethods]
impl TableMerge {
    /// Takes the source without reading it.
    #[new]
    fn new(py: Python<'_>, snapshot: &PySnapshot, source: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (uri, python_store) = snapshot.origin();
        let stream = import_stream(source)?;
        let schema = evolution::from_arrow_schema(&RecordBatchReader::schema(&stream))
            .map_err(|e| to_python(py, &e))?;
        let source_schema = schema.to_json().to_string();
        Ok(Self {
            state: Mutex::new(Some(MergeState::Opened(
                snapshot.core().clone(),
                schema,
                stream,
            ))),
            source_schema,
            uri,
            python_store,
        })
    }

    /// The source's schema in Delta's types.
    #[getter]
    fn source_schema(&self) -> &str {
        &self.source_schema
    }

    /// Determines the table after the merge: JSON of its schema, and of the `TableConstraints` to
    /// bind. `evolving` are columns of the source, and fields in them, that may be added to the
    /// schema, `lacking` columns of the table that new rows may lack.
    fn settle(
        &self,
        py: Python<'_>,
        evolving: Vec<Vec<String>>,
        lacking: Vec<String>,
        options: String,
    ) -> PyResult<(String, String)> {
        let MergeState::Opened(core, source, stream) = self.take(py)? else {
            return Err(to_python(py, &Error::internal("a merge is settled twice")));
        };
        let (merge, demands) = wait(py, move |_| {
            let merge = ops::MergeCommand::plan(
                &core,
                source,
                &evolving,
                &lacking,
                from_json("options", &options)?,
            )?;
            let demands = to_json(merge.table_constraints())?;
            Ok((merge, demands))
        })?;
        let schema = merge.schema().to_json().to_string();
        self.put(MergeState::Settled(Box::new(merge), stream));
        Ok((schema, demands))
    }

    /// Reads the source. `plan` is JSON of `MergePlan`.
    fn read(&self, py: Python<'_>, plan: String) -> PyResult<()> {
        let MergeState::Settled(merge, stream) = self.take(py)? else {
            return Err(to_python(
                py,
                &Error::invalid("the source of a merge can be read once"),
            ));
        };
        let joining = wait(py, move |cancel| {
            let rows = stream.map(|batch| {
                batch.map_err(|e| Error::invalid(format!("the source cannot be read: {e}")))
            });
            merge.read_source(&from_json("plan", &plan)?, rows, cancel)
        })?;
        self.put(MergeState::Joining(Box::new(joining)));
        Ok(())
    }

    /// Continues as a job of another engine, which reads the source itself: `facts` is JSON of
    /// `SourceStatistics`, `keys` are the known values of its keys. Returns JSON of
    /// `MergeRequirements`.
    fn job(
        &self,
        py: Python<'_>,
        plan: String,
        facts: String,
        keys: &Bound<'_, PyAny>,
    ) -> PyResult<String> {
        let keys = import_stream(keys)?;
        let MergeState::Settled(merge, _) = self.take(py)? else {
            return Err(to_python(py, &Error::invalid("a merge can be run once")));
        };
        let (job, outlook) = wait(py, move |cancel| {
            let job = merge.into_external_job(
                &from_json("plan", &plan)?,
                &from_json("facts", &facts)?,
                engine_batches(keys),
                cancel,
            )?;
            let outlook = to_json(&job.requirements(cancel)?)?;
            Ok((job, outlook))
        })?;
        self.put(MergeState::Job(Box::new(job)));
        Ok(outlook)
    }

    /// Sets the positions of the rows that clauses apply to, `file`, `word`, `bits` and `kind`;
    /// `files` is a JSON object of paths by their numbers, `read` are paths of files with matching
    /// rows. Returns the paths of files that lose all their rows.
    fn find(
        &self,
        py: Python<'_>,
        files: String,
        read: Vec<String>,
        marks: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<String>> {
        let marks = import_stream(marks)?;
        let MergeState::Job(mut job) = self.take(py)? else {
            return Err(to_python(
                py,
                &Error::internal("a merge that is no job has no marks"),
            ));
        };
        let (job, whole) = wait(py, move |cancel| {
            let files: BTreeMap<i32, String> = from_json("files", &files)?;
            let whole = job.find_rows(engine_batches(marks), &files, read, cancel)?;
            Ok((job, whole))
        })?;
        self.put(MergeState::Job(job));
        Ok(whole)
    }

    /// Commits the files that another engine wrote into these folders.
    #[pyo3(signature = (rows=None, changes=None))]
    fn run_folders(
        &self,
        py: Python<'_>,
        rows: Option<String>,
        changes: Option<String>,
    ) -> PyResult<CommandOutput> {
        let MergeState::Job(job) = self.take(py)? else {
            return Err(to_python(
                py,
                &Error::internal("a merge that is no job has no folders"),
            ));
        };
        let done = wait_settled(py, move |cancel| {
            job.run(rows.as_deref(), changes.as_deref(), cancel)
        })?;
        answer(py, done, &self.uri, self.python_store)
    }

    /// The source's keys: `key` and `source_row`.
    fn source_keys(&self, py: Python<'_>) -> PyResult<ArrowStream> {
        self.keys(py, false)
    }

    /// The keys of the table's rows that may match: `key`, `file` and `row`.
    fn target_keys(&self, py: Python<'_>) -> PyResult<ArrowStream> {
        self.keys(py, true)
    }

    /// Whether the keys must be joined, the number of files to read, and the bytes of memory that a
    /// join may use.
    fn outlook(&self, py: Python<'_>) -> PyResult<(bool, usize, u64)> {
        match &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(MergeState::Joining(joining)) => {
                let memory = joining.memory().map_err(|e| to_python(py, &e))?;
                Ok((joining.needs_join(), joining.files(), memory))
            }
            _ => Err(to_python(
                py,
                &Error::internal("a merge has no outlook before its source is read"),
            )),
        }
    }

    /// Writes and commits. `pairs` are rows of the join of both keys, if it was needed. `None` if
    /// another writer changed rows that it read, and the merge must be run again with its keys
    /// joined again.
    #[pyo3(signature = (pairs=None))]
    fn run(
        &self,
        py: Python<'_>,
        pairs: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<CommandOutput>> {
        let pairs = pairs.map(import_stream).transpose()?;
        let MergeState::Joining(joining) = self.take(py)? else {
            return Err(to_python(
                py,
                &Error::internal("a merge is run before its source is read"),
            ));
        };
        let tried = wait_settled(py, move |cancel| {
            let pairs = pairs.map(|pairs| {
                pairs.map(|batch| {
                    batch.map_err(|e| Error::invalid(format!("the keys cannot be joined: {e}")))
                })
            });
            joining.run(pairs, cancel)
        })?;
        match tried {
            ops::MergeAttempt::Done(done) => {
                answer(py, *done, &self.uri, self.python_store).map(Some)
            }
            ops::MergeAttempt::Conflict(again) => {
                self.put(MergeState::Joining(again));
                Ok(None)
            }
        }
    }
}
