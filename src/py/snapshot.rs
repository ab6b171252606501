//! `Snapshot`: the Python object for a version of a table.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use arrow_array::{RecordBatch, StringArray};
use arrow_schema::{DataType as Arrow, Field, Schema, SchemaRef};
use pyo3::prelude::*;
use serde::Serialize;

use super::arrow::{ArrowSchemaExport, ArrowStream};
use super::catalog::PyCatalog;
use super::logging::warn;
use super::open::{LogTailSource, OpenOptions, open_log};
use super::runtime::wait;
use super::store::PyStore;
use super::values::{BoundArgument, FromPython, IntoPython};
use crate::error::{Error, NotFoundKind, Result};
use crate::exec::{CancellationToken, ProgressCounter};
use crate::expr::BoundExpr;
use crate::history::{self, TimestampSearch};
use crate::log::TailCommit;
use crate::protocol::action::{Metadata, Protocol, SetTransaction};
use crate::protocol::schema::StringLayout;
use crate::scan::{
    self, ActionColumns, BatchStream, ChangeRequest, MetadataColumn, ScanExplanation, ScanPlan,
    ScanRequest,
};
use crate::snapshot::Snapshot;
use crate::store::{self, Store};

/// One version of a table.
#[pyclass(frozen, name = "Snapshot", module = "deltafast._core")]
pub(super) struct PySnapshot {
    core: Snapshot,
    uri: String,
    /// Whether the table's store or its committer is implemented in Python.
    python_store: bool,
}

/// From which files of the log a version was read.
#[derive(Debug, Clone, Serialize)]
struct SegmentSummary {
    /// The version of the checkpoint.
    checkpoint_version: Option<i64>,
    /// The number of its files.
    checkpoint_files: usize,
    /// The number of commits after it.
    commits: usize,
    /// The number of files that have them; a compaction has several.
    commit_files: usize,
}

fn layout(string_view: bool) -> StringLayout {
    if string_view {
        StringLayout::View
    } else {
        StringLayout::Plain
    }
}

fn bound(predicate: Option<BoundArgument>) -> Option<BoundExpr> {
    predicate.map(|tree| tree.0)
}

impl PySnapshot {
    /// Runs `work` on an idle thread, then reports warnings about files of the log.
    fn run<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(Snapshot, &CancellationToken) -> Result<T> + Send + 'static,
    ) -> PyResult<T> {
        let core = self.core.clone();
        let done = wait(py, move |cancel| work(core, cancel))?;
        self.warn(py)?;
        Ok(done)
    }

    /// A snapshot of the core as a Python object.
    pub(super) fn new(core: Snapshot, uri: String, python_store: bool) -> Self {
        Self {
            core,
            uri,
            python_store,
        }
    }

    /// The location of the table, for another handle.
    pub(super) fn origin(&self) -> (String, bool) {
        (self.uri.clone(), self.python_store)
    }

    /// The core's snapshot.
    pub(super) fn core(&self) -> &Snapshot {
        &self.core
    }

    /// Another version of the same table.
    pub(super) fn with_core(&self, core: Snapshot) -> Self {
        Self {
            core,
            uri: self.uri.clone(),
            python_store: self.python_store,
        }
    }

    fn warn(&self, py: Python<'_>) -> PyResult<()> {
        for text in self.core.take_warnings() {
            warn(py, &text)?;
        }
        Ok(())
    }

    /// The same for another version, whose warnings are reported.
    fn moved(
        &self,
        py: Python<'_>,
        work: impl FnOnce(Snapshot, &CancellationToken) -> Result<Snapshot> + Send + 'static,
    ) -> PyResult<Self> {
        let other = Self {
            core: self.run(py, work)?,
            uri: self.uri.clone(),
            python_store: self.python_store,
        };
        other.warn(py)?;
        Ok(other)
    }

    /// Creates a stream.
    fn stream(
        &self,
        py: Python<'_>,
        work: impl FnOnce(Snapshot, &CancellationToken) -> Result<BatchStream> + Send + 'static,
    ) -> PyResult<ArrowStream> {
        self.run(py, work)
            .map(|batches| ArrowStream::new(batches, self.python_store))
    }
}

#[pymethods]
impl PySnapshot {
    #[staticmethod]
    #[pyo3(signature = (uri, version=None, timestamp_ms=None, storage_options=None, log_tail=None, store=None, options=None, committer=None))]
    #[allow(clippy::too_many_arguments)]
    fn open(
        py: Python<'_>,
        uri: String,
        version: Option<i64>,
        timestamp_ms: Option<i64>,
        storage_options: Option<HashMap<String, String>>,
        log_tail: Option<Vec<(String, i64, i64)>>,
        store: Option<Py<PyAny>>,
        options: Option<FromPython<OpenOptions>>,
        committer: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let python_store = store.is_some()
            || committer.is_some()
            || storage_options.as_ref().is_some_and(store::has_source);
        let store = store.map(|object| Arc::new(PyStore::new(object, &uri)) as Arc<dyn Store>);
        let tail: Vec<TailCommit> = log_tail
            .unwrap_or_default()
            .into_iter()
            .map(|(path, version, size)| TailCommit {
                version,
                path,
                size: u64::try_from(size).ok().filter(|s| *s > 0),
            })
            .collect();
        let catalog = PyCatalog::wrap(committer);
        let name = uri.clone();
        let core = wait(py, move |_| {
            let options = options.map(|options| options.0).unwrap_or_default();
            let mut read = options.read_options()?;
            read.catalog |= !tail.is_empty();
            let newest = options.max_table_version;
            let log = open_log(
                &name,
                store,
                storage_options.unwrap_or_default(),
                &options,
                catalog.map_or(LogTailSource::Tail(tail), LogTailSource::Catalog),
            )?;
            let snapshot = Snapshot::open(log.clone(), version.or(newest), read)
                .map_err(|error| log.with_table_diagnosis(error))?;
            match timestamp_ms {
                Some(time) => snapshot.at(Some(history::version_at(
                    &snapshot,
                    time,
                    TimestampSearch::AtOrBefore,
                )?)),
                None => Ok(snapshot),
            }
        })?;
        let opened = Self {
            core,
            uri,
            python_store,
        };
        opened.warn(py)?;
        Ok(opened)
    }

    #[getter]
    fn uri(&self) -> &str {
        &self.uri
    }

    #[getter]
    fn version(&self) -> i64 {
        self.core.version()
    }

    #[getter]
    fn timestamp_ms(&self, py: Python<'_>) -> PyResult<i64> {
        self.run(py, |core, _| core.timestamp_ms())
    }

    fn segment_summary(&self) -> IntoPython<SegmentSummary> {
        let segment = self.core.segment();
        let checkpoint = segment.checkpoint.as_ref();
        IntoPython(SegmentSummary {
            checkpoint_version: checkpoint.map(|checkpoint| checkpoint.version),
            checkpoint_files: checkpoint.map_or(0, |checkpoint| checkpoint.files.len()),
            commits: segment.commits.len(),
            commit_files: segment.replay.len(),
        })
    }

    fn protocol(&self) -> IntoPython<&Protocol> {
        IntoPython(self.core.protocol())
    }

    fn metadata(&self) -> IntoPython<&Metadata> {
        IntoPython(self.core.metadata())
    }

    #[pyo3(signature = (string_view=false))]
    fn arrow_schema(&self, string_view: bool) -> ArrowSchemaExport {
        ArrowSchemaExport {
            schema: self.core.schema().to_arrow(layout(string_view)),
        }
    }

    #[pyo3(signature = (version=None))]
    fn update(&self, py: Python<'_>, version: Option<i64>) -> PyResult<Self> {
        self.moved(py, move |core, _| core.at(version))
    }

    fn at_version(&self, py: Python<'_>, version: i64) -> PyResult<Self> {
        self.moved(py, move |core, _| core.at(Some(version)))
    }

    fn at_timestamp(&self, py: Python<'_>, timestamp_ms: i64) -> PyResult<Self> {
        self.moved(py, move |core, _| {
            let newest = core.at(None)?;
            newest.at(Some(history::version_at(
                &newest,
                timestamp_ms,
                TimestampSearch::AtOrBefore,
            )?))
        })
    }

    fn num_files(&self, py: Python<'_>) -> PyResult<u64> {
        self.run(py, |core, cancel| {
            scan::plan(&core, None, cancel).map(|plan| plan.files)
        })
    }

    fn size_in_bytes(&self, py: Python<'_>) -> PyResult<i64> {
        self.run(py, |core, cancel| {
            let plan = scan::plan(&core, None, cancel)?;
            Ok(plan
                .batches
                .iter()
                .map(|(batch, _)| batch.files.size.iter().flatten().sum::<i64>())
                .sum())
        })
    }

    #[pyo3(signature = (columns=None, predicate=None, flatten=false, partition_filter_only=false, paths=None))]
    fn files(
        &self,
        py: Python<'_>,
        columns: Option<Vec<String>>,
        predicate: Option<BoundArgument>,
        flatten: bool,
        partition_filter_only: bool,
        paths: Option<HashSet<String>>,
    ) -> PyResult<ArrowStream> {
        self.stream(py, move |core, cancel| {
            let mut predicate = bound(predicate);
            if partition_filter_only {
                predicate = predicate.and_then(|p| {
                    crate::prune::partition_only(&p, &core.metadata().partition_columns).0
                });
            }
            scan::actions(
                &core,
                &ActionColumns {
                    names: columns,
                    flatten,
                    paths: paths.map(Arc::new),
                },
                predicate.as_ref(),
                cancel,
            )
        })
    }

    #[pyo3(signature = (predicate=None, as_in_log=false, paths=None))]
    fn file_uris(
        &self,
        py: Python<'_>,
        predicate: Option<BoundArgument>,
        as_in_log: bool,
        paths: Option<HashSet<String>>,
    ) -> PyResult<ArrowStream> {
        self.stream(py, move |core, cancel| {
            let plan = scan::plan(&core, bound(predicate).as_ref(), cancel)?;
            let schema: SchemaRef =
                Arc::new(Schema::new(vec![Field::new("uri", Arrow::Utf8, false)]));
            let root = core.stores().root().url().to_owned();
            let mut batches = Vec::with_capacity(plan.batches.len());
            for (batch, keep) in &plan.batches {
                let path = |row| batch.files.path.value(row);
                let rows = (0..keep.len()).filter(|row| {
                    keep.value(*row)
                        && paths
                            .as_ref()
                            .is_none_or(|paths| paths.contains(path(*row)))
                });
                let uri = |row| {
                    let checked_path = scan::checked(&core, path(row))?;
                    if as_in_log {
                        Ok(checked_path.to_owned())
                    } else {
                        scan::uri(&root, checked_path)
                    }
                };
                let uris = rows
                    .map(|row| uri(row).map(Some))
                    .collect::<Result<StringArray>>()?;
                batches.push(RecordBatch::try_new(
                    Arc::clone(&schema),
                    vec![Arc::new(uris)],
                )?);
            }
            Ok(BatchStream {
                schema,
                batches: Box::new(batches.into_iter().map(Ok)),
                progress: ProgressCounter::default(),
            })
        })
    }

    #[pyo3(signature = (predicate=None))]
    fn partitions(
        &self,
        py: Python<'_>,
        predicate: Option<BoundArgument>,
    ) -> PyResult<ArrowStream> {
        self.stream(py, move |core, cancel| {
            scan::partitions(&core, bound(predicate).as_ref(), cancel)
        })
    }

    #[pyo3(signature = (columns=None, predicate=None, limit=None, batch_size=None, string_view=true, metadata_columns=None, files=None, filter_rows=true))]
    #[allow(clippy::too_many_arguments)]
    fn scan(
        &self,
        py: Python<'_>,
        columns: Option<Vec<String>>,
        predicate: Option<BoundArgument>,
        limit: Option<usize>,
        batch_size: Option<usize>,
        string_view: bool,
        metadata_columns: Option<Vec<String>>,
        files: Option<Vec<String>>,
        filter_rows: bool,
    ) -> PyResult<ArrowStream> {
        self.stream(py, move |core, cancel| {
            let metadata = metadata_columns
                .unwrap_or_default()
                .iter()
                .map(|name| {
                    MetadataColumn::parse(name).ok_or_else(|| {
                        Error::invalid(format!("there is no metadata column `{name}`; known are file_path, row_index, row_id, row_commit_version, base_row_id"))
                    })
                })
                .collect::<Result<_>>()?;
            let request = ScanRequest {
                columns,
                predicate: bound(predicate),
                limit,
                batch_rows: batch_size,
                layout: layout(string_view),
                metadata,
                files,
                chosen: None,
                filter_rows,
                cancel: cancel.clone(),
                ..ScanRequest::default()
            };
            request.check_metadata_names(&core)?;
            scan::scan(&core, &request)
        })
    }

    #[pyo3(signature = (predicate=None))]
    fn count(&self, py: Python<'_>, predicate: Option<BoundArgument>) -> PyResult<u64> {
        self.run(py, move |core, cancel| {
            scan::count(&core, bound(predicate).as_ref(), cancel)
        })
    }

    #[pyo3(signature = (limit=None, writers_time=false))]
    fn history(
        &self,
        py: Python<'_>,
        limit: Option<usize>,
        writers_time: bool,
    ) -> PyResult<IntoPython<Vec<serde_json::Map<String, serde_json::Value>>>> {
        let entries = self.run(py, move |core, _| {
            Ok(history::history(&core, limit)?
                .into_iter()
                .map(|entry| {
                    let mut info = match entry.info {
                        serde_json::Value::Object(info) => info,
                        _ => serde_json::Map::new(),
                    };
                    info.insert("version".to_owned(), entry.version.into());
                    if !(writers_time
                        && info.contains_key("timestamp")
                        && !info.contains_key("inCommitTimestamp"))
                    {
                        info.insert("timestamp".to_owned(), entry.timestamp_ms.into());
                    }
                    info
                })
                .collect())
        })?;
        Ok(IntoPython(entries))
    }

    fn transactions(
        &self,
        py: Python<'_>,
    ) -> PyResult<IntoPython<BTreeMap<String, SetTransaction>>> {
        let sets = self.run(py, |core, _| {
            core.non_file_actions()
                .map(|sets| sets.transactions.clone())
        })?;
        Ok(IntoPython(sets))
    }

    fn domain_metadata(&self, py: Python<'_>) -> PyResult<HashMap<String, String>> {
        self.run(py, |core, _| {
            core.non_file_actions().map(|sets| {
                sets.domains
                    .iter()
                    .map(|(name, domain)| (name.clone(), domain.configuration.clone()))
                    .collect()
            })
        })
    }

    fn tombstones(&self, py: Python<'_>) -> PyResult<ArrowStream> {
        self.stream(py, |core, cancel| scan::tombstones(&core, cancel))
    }

    #[pyo3(signature = (as_bitmaps=false, paths=None))]
    fn deletion_vectors(
        &self,
        py: Python<'_>,
        as_bitmaps: bool,
        paths: Option<BTreeSet<String>>,
    ) -> PyResult<ArrowStream> {
        self.stream(py, move |core, cancel| {
            if as_bitmaps {
                scan::deletion_bitmaps(&core, paths, cancel)
            } else {
                scan::deletion_vectors(&core, cancel)
            }
        })
    }

    fn ids_agree(&self, py: Python<'_>) -> PyResult<bool> {
        self.run(py, |core, cancel| scan::ids_agree(&core, cancel))
    }

    #[pyo3(signature = (starting_version=None, ending_version=None, starting_timestamp_ms=None, ending_timestamp_ms=None, columns=None, predicate=None, allow_out_of_range=false, string_view=false, as_opened=false))]
    #[allow(clippy::too_many_arguments)]
    fn cdf(
        &self,
        py: Python<'_>,
        starting_version: Option<i64>,
        ending_version: Option<i64>,
        starting_timestamp_ms: Option<i64>,
        ending_timestamp_ms: Option<i64>,
        columns: Option<Vec<String>>,
        predicate: Option<BoundArgument>,
        allow_out_of_range: bool,
        string_view: bool,
        as_opened: bool,
    ) -> PyResult<ArrowStream> {
        self.stream(py, move |core, cancel| {
            let request = ChangeRequest {
                starting_version,
                ending_version,
                starting_timestamp_ms,
                ending_timestamp_ms,
                columns,
                predicate: bound(predicate),
                allow_out_of_range,
                as_opened,
                layout: layout(string_view),
                cancel: cancel.clone(),
            };
            scan::changes(&core, &request)
        })
    }

    fn change_files(
        &self,
        py: Python<'_>,
        starting_version: i64,
        ending_version: i64,
    ) -> PyResult<ArrowStream> {
        self.stream(py, move |core, cancel| {
            let request = ChangeRequest {
                starting_version: Some(starting_version),
                ending_version: Some(ending_version),
                as_opened: true,
                cancel: cancel.clone(),
                ..ChangeRequest::default()
            };
            scan::change_files(&core, &request)
        })
    }

    #[pyo3(signature = (starting_version=None, ending_version=None, starting_timestamp_ms=None, ending_timestamp_ms=None, as_opened=false))]
    fn cdf_range(
        &self,
        py: Python<'_>,
        starting_version: Option<i64>,
        ending_version: Option<i64>,
        starting_timestamp_ms: Option<i64>,
        ending_timestamp_ms: Option<i64>,
        as_opened: bool,
    ) -> PyResult<Option<(i64, i64)>> {
        self.run(py, move |core, _| {
            let request = ChangeRequest {
                starting_version,
                ending_version,
                starting_timestamp_ms,
                ending_timestamp_ms,
                as_opened,
                ..ChangeRequest::default()
            };
            scan::change_range(&core, &request)
        })
    }

    #[pyo3(signature = (predicate=None))]
    fn plan(
        &self,
        py: Python<'_>,
        predicate: Option<BoundArgument>,
    ) -> PyResult<IntoPython<ScanPlan>> {
        self.run(py, move |core, cancel| {
            scan::plan(&core, bound(predicate).as_ref(), cancel)
        })
        .map(IntoPython)
    }

    #[pyo3(signature = (predicate=None, columns=None, row_groups=true))]
    fn explain(
        &self,
        py: Python<'_>,
        predicate: Option<BoundArgument>,
        columns: Option<Vec<String>>,
        row_groups: bool,
    ) -> PyResult<IntoPython<ScanExplanation>> {
        self.run(py, move |core, cancel| {
            let request = ScanRequest {
                columns,
                predicate: bound(predicate),
                cancel: cancel.clone(),
                ..ScanRequest::default()
            };
            scan::explain(&core, &request, row_groups)
        })
        .map(IntoPython)
    }
}

/// Whether there is a Delta table at `uri`.
#[pyfunction]
#[pyo3(signature = (uri, storage_options=None, store=None))]
pub(super) fn is_deltatable(
    py: Python<'_>,
    uri: String,
    storage_options: Option<HashMap<String, String>>,
    store: Option<Py<PyAny>>,
) -> PyResult<bool> {
    wait(py, move |_| {
        let store = store.map(|object| Arc::new(PyStore::new(object, &uri)) as Arc<dyn Store>);
        let log = open_log(
            &uri,
            store,
            storage_options.unwrap_or_default(),
            &OpenOptions::default(),
            LogTailSource::default(),
        )?;
        match log.segment(None) {
            Ok(_) => Ok(true),
            Err(Error::NotFound {
                kind: NotFoundKind::Table,
                ..
            }) => Ok(false),
            Err(error) if error.is_corrupt() => Ok(true),
            Err(error) => Err(error),
        }
    })
}
