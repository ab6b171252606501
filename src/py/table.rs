//! Python functions for operations on tables.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatchReader;
use arrow_array::ffi_stream::RecordBatchStreamReader;
use pyo3::prelude::*;
use serde::Serialize;

use super::arrow::{ArrowStream, engine_batches, import_stream, unreadable};
use super::catalog::PyCatalog;
use super::error::to_python;
use super::logging::{warn, warn_of_commit};
use super::open::{LogTailSource, OpenOptions, open_log};
use super::runtime::{cancellation_token, replace_progress, wait, wait_settled};
use super::snapshot::PySnapshot;
use super::store::PyStore;
use super::values::{FromPython, IntoPython};
use super::write::WrittenFiles;
use crate::commit::finish::{self, CommitOptions};
use crate::error::{Error, Result};
use crate::exec::ProgressCounter;
use crate::file_writer::bound_constraints::{NamedExpression, TableConstraints};
use crate::file_writer::constraints::IdentityColumn;
use crate::ops::{
    self, ClusteringMetrics, CreateOptions, DmlOptions, FileSizes, MergeOptions, MergePlan,
    MergeRequirements, OptimizeOptions, OptimizeResult, SourceStatistics, TableChange, TableOrPath,
    ValuePlan, WriteCommand, WriteOptions,
};
use crate::protocol::action::{Metadata, Protocol};
use crate::protocol::commit_line::Action;
use crate::protocol::schema::StructType;
use crate::protocol::{evolution, properties};
use crate::snapshot::Snapshot;
use crate::store::{self, Store};

/// The table of a command: a version, or a location.
struct CommandTarget {
    place: TargetLocation,
    uri: String,
    python_store: bool,
}

enum TargetLocation {
    Known(Snapshot),
    Location(
        Option<Arc<dyn Store>>,
        HashMap<String, String>,
        OpenOptions,
        LogTailSource,
    ),
}

impl CommandTarget {
    fn new(
        uri: String,
        snapshot: Option<&PySnapshot>,
        storage: Option<HashMap<String, String>>,
        store: Option<Py<PyAny>>,
        options: Option<FromPython<OpenOptions>>,
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
        let python_store = store.is_some()
            || committer.is_some()
            || storage.as_ref().is_some_and(store::has_source);
        let store = store.map(|object| Arc::new(PyStore::new(object, &uri)) as Arc<dyn Store>);
        let newest = PyCatalog::wrap(committer)
            .map(LogTailSource::Catalog)
            .unwrap_or_default();
        Self {
            place: TargetLocation::Location(
                store,
                storage.unwrap_or_default(),
                options.map(|options| options.0).unwrap_or_default(),
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
                options.read_options()?,
            ),
        }
    }
}

/// The result of a command: the version that it committed, and its metrics.
#[pyclass(frozen, name = "CommitResult", module = "deltafast._core")]
pub(super) struct PyCommitResult {
    /// The version that was committed; `None` if there was nothing to do.
    #[pyo3(get)]
    version: Option<i64>,
    /// The number of attempts to commit.
    #[pyo3(get)]
    attempts: u32,
    #[pyo3(get)]
    metrics: Py<PyAny>,
    snapshot: Option<Py<PySnapshot>>,
}

#[pymethods]
impl PyCommitResult {
    /// The table at that version; `None` if there is none or it could not be opened.
    #[getter]
    fn snapshot(&self, py: Python<'_>) -> Option<Py<PySnapshot>> {
        self.snapshot.as_ref().map(|table| table.clone_ref(py))
    }
}

impl PyCommitResult {
    /// The result of a command whose metrics are not those of its commit, which may be missing.
    pub(super) fn new(
        py: Python<'_>,
        done: Option<finish::CommitResult>,
        metrics: impl Serialize,
        wrap: impl FnOnce(Snapshot) -> PySnapshot,
    ) -> PyResult<Self> {
        let (version, attempts) = done
            .as_ref()
            .map_or((None, 0), |done| (done.version, done.attempts));
        let core = report_warnings(py, done)?;
        Ok(Self {
            version,
            attempts,
            metrics: IntoPython(metrics).into_pyobject(py)?.unbind(),
            snapshot: core.map(|core| Py::new(py, wrap(core))).transpose()?,
        })
    }

    pub(super) fn of_commit(
        py: Python<'_>,
        done: finish::CommitResult,
        uri: &str,
        python_store: bool,
    ) -> PyResult<Self> {
        let metrics = done.metrics.clone();
        Self::new(py, Some(done), metrics, |core| {
            PySnapshot::new(core, uri.to_owned(), python_store)
        })
    }
}

/// Reports the warnings of a command to Python; returns the table after it.
pub(super) fn report_warnings(
    py: Python<'_>,
    done: Option<finish::CommitResult>,
) -> PyResult<Option<Snapshot>> {
    let Some(done) = done else { return Ok(None) };
    for warning in &done.warnings {
        if done.version.is_some() {
            warn_of_commit(py, warning)?;
        } else {
            warn(py, warning)?;
        }
    }
    Ok(done.snapshot)
}

/// Creates a table without rows; each of its constraints has a bound expression.
#[pyfunction]
#[pyo3(signature = (uri, schema, constraints, options, storage_options=None, store=None, open_options=None, committer=None))]
#[allow(clippy::too_many_arguments)]
pub(super) fn create_table(
    py: Python<'_>,
    uri: String,
    schema: String,
    constraints: FromPython<TableConstraints>,
    options: FromPython<CreateOptions>,
    storage_options: Option<HashMap<String, String>>,
    store: Option<Py<PyAny>>,
    open_options: Option<FromPython<OpenOptions>>,
    committer: Option<Py<PyAny>>,
) -> PyResult<PyCommitResult> {
    let CommandTarget {
        place,
        uri,
        python_store,
    } = CommandTarget::new(uri, None, storage_options, store, open_options, committer);
    let name = uri.clone();
    let done = wait_settled(py, move |cancel| {
        ops::create(
            &CommandTarget::open(place, &name)?,
            &StructType::parse(&schema)?,
            &constraints.0,
            &options.0,
            cancel,
        )
    })?;
    PyCommitResult::of_commit(py, done, &uri, python_store)
}

/// The constraints of a table with this schema and these properties, whatever its protocol.
#[pyfunction]
pub(super) fn new_table_constraints(
    py: Python<'_>,
    schema: &str,
    configuration: BTreeMap<String, String>,
) -> PyResult<IntoPython<TableConstraints>> {
    StructType::parse(schema)
        .and_then(|schema| TableConstraints::for_new_table(&schema, configuration))
        .map(IntoPython)
        .map_err(|e| to_python(py, &e))
}

/// The table's current constraints, without defaults.
#[pyfunction]
pub(super) fn table_constraints(
    py: Python<'_>,
    snapshot: &PySnapshot,
) -> PyResult<IntoPython<TableConstraints>> {
    let core = snapshot.core();
    TableConstraints::of(core.protocol(), core.metadata(), core.schema(), |_| false)
        .map(IntoPython)
        .map_err(|e| to_python(py, &e))
}

/// Refuses contradicting properties that an SQL statement sets.
#[pyfunction]
pub(super) fn check_retention(
    py: Python<'_>,
    properties: BTreeMap<String, String>,
) -> PyResult<()> {
    properties::check_retention(&properties).map_err(|e| to_python(py, &e))
}

/// The effective value of a retention property, in milliseconds.
#[pyfunction]
pub(super) fn retention_ms(
    py: Python<'_>,
    configuration: BTreeMap<String, String>,
    key: &str,
) -> PyResult<i64> {
    properties::retention_ms(&configuration, key).map_err(|e| to_python(py, &e))
}

/// The bytes of a size such as `128m`; `None` for other text.
#[pyfunction]
pub(super) fn parse_byte_size(size: &str) -> Option<u64> {
    properties::bytes(size)
}

/// Changes a table's definition; each of its constraints has a bound expression.
#[pyfunction]
pub(super) fn alter(
    py: Python<'_>,
    snapshot: &PySnapshot,
    change: FromPython<TableChange>,
    constraints: FromPython<TableConstraints>,
    commit_options: FromPython<CommitOptions>,
) -> PyResult<PyCommitResult> {
    let (uri, python_store) = snapshot.origin();
    let core = snapshot.core().clone();
    let done = wait_settled(py, move |cancel| {
        ops::alter(&core, &change.0, &constraints.0, &commit_options.0, cancel)
    })?;
    PyCommitResult::of_commit(py, done, &uri, python_store)
}

/// Drops a table feature.
#[pyfunction]
pub(super) fn drop_feature(
    py: Python<'_>,
    snapshot: &PySnapshot,
    name: String,
    truncate_history: bool,
    commit_options: FromPython<CommitOptions>,
) -> PyResult<PyCommitResult> {
    let (uri, python_store) = snapshot.origin();
    let core = snapshot.core().clone();
    let done = wait_settled(py, move |cancel| {
        ops::drop_feature(&core, &name, truncate_history, &commit_options.0, cancel)
    })?;
    PyCommitResult::of_commit(py, done, &uri, python_store)
}

/// Deletes the rows for which a predicate is true, all rows without one.
#[pyfunction]
#[pyo3(signature = (snapshot, options, predicate=None))]
pub(super) fn delete(
    py: Python<'_>,
    snapshot: &PySnapshot,
    options: FromPython<DmlOptions>,
    predicate: Option<FromPython<NamedExpression>>,
) -> PyResult<PyCommitResult> {
    let (uri, python_store) = snapshot.origin();
    let core = snapshot.core().clone();
    let done = wait_settled(py, move |cancel| {
        ops::delete(&core, predicate.as_ref().map(|p| &p.0), &options.0, cancel)
    })?;
    PyCommitResult::of_commit(py, done, &uri, python_store)
}

/// Assigns values to columns in the rows for which a predicate is true; each of the table's
/// constraints has a bound expression.
#[pyfunction]
#[pyo3(signature = (snapshot, options, assignments, constraints, predicate=None))]
pub(super) fn update(
    py: Python<'_>,
    snapshot: &PySnapshot,
    options: FromPython<DmlOptions>,
    assignments: FromPython<Vec<ValuePlan>>,
    constraints: FromPython<TableConstraints>,
    predicate: Option<FromPython<NamedExpression>>,
) -> PyResult<PyCommitResult> {
    let (uri, python_store) = snapshot.origin();
    let core = snapshot.core().clone();
    let done = wait_settled(py, move |cancel| {
        ops::update(
            &core,
            predicate.as_ref().map(|p| &p.0),
            &assignments.0,
            &constraints.0,
            &options.0,
            cancel,
        )
    })?;
    PyCommitResult::of_commit(py, done, &uri, python_store)
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

/// Packs small files of the partitions for which a predicate is true, of all partitions without
/// one.
#[pyfunction]
#[pyo3(signature = (snapshot, options, predicate=None))]
pub(super) fn optimize(
    py: Python<'_>,
    snapshot: &PySnapshot,
    options: FromPython<OptimizeOptions>,
    predicate: Option<FromPython<NamedExpression>>,
) -> PyResult<PyCommitResult> {
    let (uri, python_store) = snapshot.origin();
    let core = snapshot.core().clone();
    let found = wait_settled(py, move |cancel| {
        ops::optimize(&core, predicate.as_ref().map(|p| &p.0), &options.0, cancel)
    })?;
    optimize_result(py, found, uri, python_store)
}

/// The number and the sizes in bytes of files that an OPTIMIZE added or removed.
#[derive(Serialize)]
struct FileSizeStatistics {
    count: usize,
    sum: i64,
    min: i64,
    max: i64,
}

impl FileSizeStatistics {
    fn of(sizes: &FileSizes) -> Self {
        Self {
            count: sizes.count(),
            sum: sizes.sum(),
            min: sizes.percentile(0),
            max: sizes.percentile(100),
        }
    }
}

/// What an OPTIMIZE considered and rewrote.
#[derive(Serialize)]
struct OptimizeMetrics {
    added: FileSizeStatistics,
    removed: FileSizeStatistics,
    /// The number of partitions with rewritten files.
    partitions: usize,
    /// The number of files that the predicate selects.
    considered: usize,
    /// The maximum number of files that were combined, or laid out along one curve.
    largest_bin: usize,
    /// The layout of the rows: `packed`, `zOrder`, `clustered`.
    layout: &'static str,
    clustering: Option<ClusteringMetrics>,
}

/// The table after an OPTIMIZE, and its metrics.
pub(super) fn optimize_result(
    py: Python<'_>,
    found: OptimizeResult,
    uri: String,
    python_store: bool,
) -> PyResult<PyCommitResult> {
    let metrics = OptimizeMetrics {
        added: FileSizeStatistics::of(&found.added),
        removed: FileSizeStatistics::of(&found.removed),
        partitions: found.partitions,
        considered: found.candidate_files,
        largest_bin: found.largest_bin,
        layout: found.layout,
        clustering: found.clustering,
    };
    PyCommitResult::new(py, found.done, metrics, |core| {
        PySnapshot::new(core, uri, python_store)
    })
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
    constraints: TableConstraints,
    schema: String,
    uri: String,
    python_store: bool,
}

/// The table after a write.
#[derive(Serialize)]
struct WriteTarget<'a> {
    protocol: &'a Protocol,
    metadata: &'a Metadata,
    /// Whether data files also hold the partition columns.
    materializes_partition_columns: bool,
    /// The identity columns for which the data has no values.
    identities: &'a [IdentityColumn],
    /// The version that is written to; `None` for a new table.
    version: Option<i64>,
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
        options: FromPython<WriteOptions>,
        data: Option<&Bound<'_, PyAny>>,
        actions: Option<FromPython<Vec<Action>>>,
        schema: Option<String>,
        snapshot: Option<&PySnapshot>,
        storage_options: Option<HashMap<String, String>>,
        store: Option<Py<PyAny>>,
        open_options: Option<FromPython<OpenOptions>>,
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
            let schema = match (&schema, arrow) {
                (Some(schema), _) => StructType::parse(schema)?,
                (None, Some(arrow)) => evolution::from_arrow_schema(&arrow)?,
                (None, None) => return Err(Error::internal("a write needs data or a schema")),
            };
            let table = CommandTarget::open(place, &name)?;
            let write = WriteCommand::plan(table, &schema, options.0)?;
            let actions = actions.map(|actions| actions.0).unwrap_or_default();
            Ok(write.map(|write| (write, actions)))
        })?;
        Ok(planned.map(|(write, actions)| {
            let input = stream.map_or(WriteInput::Files(actions), WriteInput::Rows);
            Self {
                constraints: write.table_constraints().clone(),
                schema: write.schema().to_json().to_string(),
                parts: Mutex::new(Some((write, input))),
                uri,
                python_store,
            }
        }))
    }

    /// The expressions to bind.
    #[getter]
    fn constraints(&self) -> IntoPython<&TableConstraints> {
        IntoPython(&self.constraints)
    }

    /// The table's schema after the write, to bind against.
    #[getter]
    fn schema(&self) -> &str {
        &self.schema
    }

    /// The table after the write.
    #[getter]
    fn target<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let (write, _) = parts.as_ref().ok_or_else(|| run_once(py))?;
        let (protocol, metadata) = write.target();
        let target = WriteTarget {
            protocol,
            metadata,
            materializes_partition_columns: write.materializes_partition_columns(),
            identities: write.generated_identities(),
            version: write.version(),
        };
        IntoPython(target).into_pyobject(py)
    }

    /// Determines the rows to replace, for another engine that writes; returns whether it must
    /// write change data.
    fn plan_replacement(
        &self,
        py: Python<'_>,
        constraints: FromPython<TableConstraints>,
    ) -> PyResult<bool> {
        let (mut write, input) = self.take(py)?;
        let (write, writes_changes) = wait(py, move |cancel| {
            let writes_changes = write.plan_replacement(&constraints.0, cancel)?;
            Ok((write, writes_changes))
        })?;
        *self.parts.lock().unwrap_or_else(PoisonError::into_inner) = Some((write, input));
        Ok(writes_changes)
    }

    /// Commits the files that another engine wrote into folders of the table.
    #[pyo3(signature = (constraints, folder, changes=None))]
    fn run_folder(
        &self,
        py: Python<'_>,
        constraints: FromPython<TableConstraints>,
        folder: String,
        changes: Option<String>,
    ) -> PyResult<PyCommitResult> {
        let (write, _) = self.take(py)?;
        let done = wait_settled(py, move |cancel| {
            write.run_folder(&constraints.0, &folder, changes.as_deref(), cancel)
        })?;
        PyCommitResult::of_commit(py, done, &self.uri, self.python_store)
    }

    /// Commits files that `write_files` wrote elsewhere.
    #[pyo3(signature = (constraints, written, changes=None))]
    fn run_written(
        &self,
        py: Python<'_>,
        constraints: FromPython<TableConstraints>,
        written: FromPython<Vec<WrittenFiles>>,
        changes: Option<String>,
    ) -> PyResult<PyCommitResult> {
        let (write, _) = self.take(py)?;
        let done = wait_settled(py, move |cancel| {
            let (written, inserted) = super::write::together(written.0);
            write.run_written(
                &constraints.0,
                written,
                &inserted,
                changes.as_deref(),
                cancel,
            )
        })?;
        PyCommitResult::of_commit(py, done, &self.uri, self.python_store)
    }

    /// Deletes files that another engine wrote into folders of the table, instead of a commit.
    fn abandon(&self, py: Python<'_>, folders: Vec<String>) -> PyResult<()> {
        let (write, _) = self.take(py)?;
        wait(py, move |cancel| write.abandon(&folders, cancel))
    }

    /// Writes and commits; each of the constraints has a bound expression.
    fn run(
        &self,
        py: Python<'_>,
        constraints: FromPython<TableConstraints>,
    ) -> PyResult<PyCommitResult> {
        let (write, input) = self.take(py)?;
        let done = wait_settled(py, move |cancel| match input {
            WriteInput::Rows(stream) => write.run(
                &constraints.0,
                stream.map(|batch| batch.map_err(|e| unreadable("the data", &e))),
                cancel,
            ),
            WriteInput::Files(actions) => write.run_files(&constraints.0, actions, cancel),
        })?;
        PyCommitResult::of_commit(py, done, &self.uri, self.python_store)
    }
}

/// The state of a merge: opened, planned, its source read, its keys joined.
enum MergeState {
    Opened(Snapshot, StructType, RecordBatchStreamReader),
    Planned(Box<ops::MergeCommand>, RecordBatchStreamReader),
    Joining(Box<ops::MergeJoin>),
    Job(Box<ops::EngineMergeJob>),
}

/// The table after a merge.
#[derive(Serialize)]
pub(super) struct MergeTarget {
    /// The schema, as in the log.
    schema: String,
    /// The expressions to bind.
    constraints: TableConstraints,
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

    /// Determines the table after the merge: its schema, and the constraints to bind. `evolving`
    /// are columns of the source, and fields in them, that may be added to the schema, `lacking`
    /// columns of the table that new rows may lack.
    fn plan(
        &self,
        py: Python<'_>,
        evolving: Vec<Vec<String>>,
        lacking: Vec<String>,
        options: FromPython<MergeOptions>,
    ) -> PyResult<IntoPython<MergeTarget>> {
        let MergeState::Opened(core, source, stream) = self.take(py)? else {
            return Err(to_python(py, &Error::internal("a merge is planned twice")));
        };
        let merge = wait(py, move |_| {
            ops::MergeCommand::plan(&core, source, &evolving, &lacking, options.0)
        })?;
        let target = MergeTarget {
            schema: merge.schema().to_json().to_string(),
            constraints: merge.table_constraints().clone(),
        };
        self.put(MergeState::Planned(Box::new(merge), stream));
        Ok(IntoPython(target))
    }

    /// Reads the source.
    fn read_source(&self, py: Python<'_>, plan: FromPython<MergePlan>) -> PyResult<()> {
        let MergeState::Planned(merge, stream) = self.take(py)? else {
            return Err(to_python(
                py,
                &Error::invalid("the source of a merge can be read once"),
            ));
        };
        let joining = wait(py, move |cancel| {
            let rows = stream.map(|batch| batch.map_err(|e| unreadable("the source", &e)));
            merge.read_source(&plan.0, rows, cancel)
        })?;
        self.put(MergeState::Joining(Box::new(joining)));
        Ok(())
    }

    /// Continues as a job of another engine, which reads the source itself; `keys` are the known
    /// values of its keys. Returns the input of the engine.
    fn plan_job(
        &self,
        py: Python<'_>,
        plan: FromPython<MergePlan>,
        statistics: FromPython<SourceStatistics>,
        keys: &Bound<'_, PyAny>,
    ) -> PyResult<IntoPython<MergeRequirements>> {
        let keys = import_stream(keys)?;
        let MergeState::Planned(merge, _) = self.take(py)? else {
            return Err(to_python(py, &Error::invalid("a merge can be run once")));
        };
        let (job, requirements) = wait(py, move |cancel| {
            let keys = engine_batches(keys);
            let job = merge.into_external_job(&plan.0, &statistics.0, keys, cancel)?;
            let requirements = job.requirements(cancel)?;
            Ok((job, requirements))
        })?;
        self.put(MergeState::Job(Box::new(job)));
        Ok(IntoPython(requirements))
    }

    /// Sets the positions of the rows that clauses apply to, `file`, `word`, `bits` and `kind`;
    /// `files` are paths by their numbers, `read` paths of files with matching rows. Returns the
    /// paths of files that lose all their rows.
    fn find_rows(
        &self,
        py: Python<'_>,
        files: BTreeMap<i32, String>,
        read: Vec<String>,
        marks: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<String>> {
        let marks = import_stream(marks)?;
        let MergeState::Job(mut job) = self.take(py)? else {
            return Err(to_python(
                py,
                &Error::internal("a merge that is not a job has no marks"),
            ));
        };
        let (job, whole) = wait(py, move |cancel| {
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
    ) -> PyResult<PyCommitResult> {
        let MergeState::Job(job) = self.take(py)? else {
            return Err(to_python(
                py,
                &Error::internal("a merge that is not a job has no folders"),
            ));
        };
        let done = wait_settled(py, move |cancel| {
            job.run(rows.as_deref(), changes.as_deref(), cancel)
        })?;
        PyCommitResult::of_commit(py, done, &self.uri, self.python_store)
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
    fn join_requirements(&self, py: Python<'_>) -> PyResult<(bool, usize, u64)> {
        match &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(MergeState::Joining(joining)) => {
                let memory = joining.memory().map_err(|e| to_python(py, &e))?;
                Ok((joining.needs_join(), joining.files(), memory))
            }
            _ => Err(to_python(
                py,
                &Error::internal("a merge has no keys to join before its source is read"),
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
    ) -> PyResult<Option<PyCommitResult>> {
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
                PyCommitResult::of_commit(py, *done, &self.uri, self.python_store).map(Some)
            }
            ops::MergeAttempt::Conflict(again) => {
                self.put(MergeState::Joining(again));
                Ok(None)
            }
        }
    }
}
