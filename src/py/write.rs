//! Writing data files from any object with `__arrow_c_stream__`.
//!
//! The stream is read by the thread of the call and never with the GIL held, so that it may be
//! implemented in Python.

use std::collections::{BTreeMap, HashMap};

use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

use super::arrow::{import_stream, unreadable};
use super::error::to_python;
use super::runtime::wait;
use super::values::{FromPython, IntoPython};
use crate::error::{Error, Result};
use crate::expr::{BoundExpr, BoundTree};
use crate::file_writer::cast_values::{CastRule, StoreAssignment};
use crate::file_writer::constraints::{
    ComputedColumn, ConditionKind, IdentityColumn, RowCondition, WriteRules,
};
use crate::file_writer::with_change_feed::write_with_change_data;
use crate::file_writer::{WriteOutput, WriteRequest, WrittenDataFile, write};
use crate::pq::{ColumnMappingMode, WriterProperties};
use crate::protocol::schema::StructType;
use crate::store;

/// Options of `write_files`, all optional. Expressions are bound trees.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[derive(Default)]
pub(super) struct FileWriteOptions {
    partition_by: Vec<String>,
    /// `none`, `name` or `id`.
    column_mapping: Option<String>,
    properties: BTreeMap<String, String>,
    materialize_partition_columns: bool,
    writer_properties: WriterProperties,
    target_file_size: Option<u64>,
    max_open_files: Option<usize>,
    /// The maximum number of rows in a file.
    most_rows: Option<usize>,
    memory: Option<u64>,
    /// The time zone for timestamps without a zone; an empty string refuses them.
    time_zone: Option<String>,
    change_data: bool,
    /// Whether the rows are also written as change data for inserts.
    has_change_data: bool,
    checks: Vec<CheckOption>,
    defaults: Vec<(String, BoundTree)>,
    generated: Vec<(String, BoundTree)>,
    identities: Vec<IdentityOption>,
}

/// A CHECK constraint with its bound expression.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckOption {
    name: String,
    sql: String,
    tree: BoundTree,
}

/// An identity column whose values the write generates.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct IdentityOption {
    column: String,
    next: i64,
    step: i64,
    #[serde(default)]
    allow_explicit: bool,
}

impl FileWriteOptions {
    fn request(self, schema: StructType) -> Result<WriteRequest> {
        let computed = |list: Vec<(String, BoundTree)>| {
            list.into_iter()
                .map(|(column, tree)| {
                    Ok(ComputedColumn {
                        column,
                        expr: BoundExpr::new(&tree)?,
                    })
                })
                .collect::<Result<Vec<_>>>()
        };
        let checks = self.checks.into_iter().map(|check| {
            Ok(RowCondition {
                expr: BoundExpr::new(&check.tree)?,
                kind: ConditionKind::Check { name: check.name },
                sql: check.sql,
            })
        });
        let identities = self.identities.into_iter().map(|i| IdentityColumn {
            column: i.column,
            next: i.next,
            step: i.step,
            allow_explicit: i.allow_explicit,
        });
        let rules = WriteRules {
            checks: checks.collect::<Result<_>>()?,
            defaults: computed(self.defaults)?,
            generated: computed(self.generated)?,
            identities: identities.collect(),
            lengths: Vec::new(),
        };
        let usual = WriteRequest::new(schema);
        Ok(WriteRequest {
            partition_columns: self.partition_by,
            mapping: match self.column_mapping.as_deref() {
                None | Some("none") => ColumnMappingMode::None,
                Some("name") => ColumnMappingMode::Name,
                Some("id") => ColumnMappingMode::Id,
                Some(other) => {
                    return Err(Error::invalid(format!(
                        "`column_mapping` is `{other}`; it can be none, name or id"
                    )));
                }
            },
            properties: self.properties,
            materialize_partition_columns: self.materialize_partition_columns,
            writer_properties: self.writer_properties,
            target_file_size: self.target_file_size.unwrap_or(usual.target_file_size),
            max_open_files: self.max_open_files.unwrap_or(usual.max_open_files),
            most_rows: self.most_rows,
            memory: self.memory.unwrap_or(usual.memory),
            cast_rule: CastRule::new(self.time_zone.as_deref(), StoreAssignment::Exact)?,
            change_data: self.change_data,
            rules,
            ..usual
        })
    }
}

/// A file that `write_files` wrote.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WrittenFile {
    path: String,
    partition_values: BTreeMap<String, Option<String>>,
    /// Bytes.
    size: u64,
    /// Milliseconds since the epoch.
    modification_time: i64,
    num_records: u64,
    /// The statistics of the `add` action, as in the log.
    stats: Option<String>,
}

/// The result of `write_files`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenFiles {
    files: Vec<WrittenFile>,
    /// Files with change data.
    changes: Vec<WrittenFile>,
    rows: u64,
    /// The last value that was assigned to each identity column.
    identities: BTreeMap<String, i64>,
    /// The steps of the identity columns, whose sign determines the last value of several.
    #[serde(default)]
    steps: BTreeMap<String, i64>,
}

impl WrittenFiles {
    fn new(written: WriteOutput, change_files: WriteOutput) -> Self {
        let files = |output: Vec<WrittenDataFile>| output.into_iter().map(WrittenFile::from);
        Self {
            files: files(written.files).collect(),
            changes: files(change_files.files).collect(),
            rows: written.rows,
            identities: written.identities.into_iter().collect(),
            steps: BTreeMap::new(),
        }
    }
}

impl From<WrittenDataFile> for WrittenFile {
    fn from(file: WrittenDataFile) -> Self {
        Self {
            path: file.path,
            partition_values: file.partition_values.into_iter().collect(),
            size: file.size,
            modification_time: file.modified_ms,
            num_records: file.num_records,
            stats: file.stats,
        }
    }
}

impl From<WrittenFile> for WrittenDataFile {
    fn from(file: WrittenFile) -> Self {
        Self {
            path: file.path,
            partition_values: file.partition_values.into_iter().collect(),
            size: file.size,
            modified_ms: file.modification_time,
            num_records: file.num_records,
            stats: file.stats,
        }
    }
}

/// The combined result of several writes; and the files with change data.
pub(super) fn together(results: Vec<WrittenFiles>) -> (WriteOutput, Vec<WrittenDataFile>) {
    let (mut out, mut change_files) = (WriteOutput::default(), Vec::new());
    let mut last: BTreeMap<String, i64> = BTreeMap::new();
    for answer in results {
        out.rows += answer.rows;
        out.files
            .extend(answer.files.into_iter().map(WrittenDataFile::from));
        change_files.extend(answer.changes.into_iter().map(WrittenDataFile::from));
        for (column, value) in answer.identities {
            let falls = answer.steps.get(&column).is_some_and(|step| *step < 0);
            let known = last.entry(column).or_insert(value);
            *known = if falls {
                (*known).min(value)
            } else {
                (*known).max(value)
            };
        }
    }
    out.identities = last.into_iter().collect();
    (out, change_files)
}

/// Writes batches as data files of a table.
#[pyfunction]
#[pyo3(signature = (uri, schema, data, options=None, storage_options=None))]
pub(super) fn write_files(
    py: Python<'_>,
    uri: &str,
    schema: &str,
    data: &Bound<'_, PyAny>,
    options: Option<FromPython<FileWriteOptions>>,
    storage_options: Option<HashMap<String, String>>,
) -> PyResult<IntoPython<WrittenFiles>> {
    let options = options.map(|options| options.0).unwrap_or_default();
    let prepare = || -> Result<_> {
        let has_change_data = options.has_change_data;
        let request = options.request(StructType::parse(schema)?)?;
        Ok((
            store::open(uri, &storage_options.unwrap_or_default())?,
            request,
            has_change_data,
        ))
    };
    let (store, mut request, has_change_data) = prepare().map_err(|e| to_python(py, &e))?;
    let stream = import_stream(data)?;
    wait(py, move |cancel| {
        request.cancel = cancel.clone();
        let batches = stream.map(|batch| batch.map_err(|e| unreadable("the data", &e)));
        if has_change_data {
            let [written, inserted] = write_with_change_data(&store, &request, batches)?;
            return Ok(WrittenFiles::new(written?, inserted?));
        }
        write(&store, &request, batches)
            .map(|written| WrittenFiles::new(written, WriteOutput::default()))
    })
    .map(IntoPython)
}
