//! Writing data files from any object with `__arrow_c_stream__`.
//!
//! The stream is read by the thread of the call and never with the GIL held, so that it may be
//! implemented in Python.

use std::collections::{BTreeMap, HashMap};

use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::arrow::import_stream;
use super::error::to_python;
use super::runtime::wait;
use crate::error::{Error, Result};
use crate::expr::BoundExpr;
use crate::pq::{ColumnMappingMode, WriterProperties};
use crate::protocol::schema::StructType;
use crate::store;
use crate::write::constraints::{CheckConstraint, ComputedColumn, IdentityColumn, WriteRules};
use crate::write::with_change_feed::write_with_change_data;
use crate::write::{WriteOutput, WriteRequest, WrittenDataFile, write};

/// Options of `write_files`, all optional. Expressions are bound trees.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[derive(Default)]
struct FileWriteOptions {
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
    defaults: Vec<(String, Value)>,
    generated: Vec<(String, Value)>,
    identities: Vec<IdentityOption>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckOption {
    name: String,
    sql: String,
    tree: Value,
}

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
        let computed = |list: Vec<(String, Value)>| {
            list.into_iter()
                .map(|(column, tree)| {
                    Ok(ComputedColumn {
                        column,
                        expr: BoundExpr::from_json(&tree.to_string())?,
                    })
                })
                .collect::<Result<Vec<_>>>()
        };
        let checks = self.checks.into_iter().map(|check| {
            Ok(CheckConstraint {
                expr: BoundExpr::from_json(&check.tree.to_string())?,
                name: check.name,
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
            zone: match self.time_zone.as_deref() {
                None => usual.zone,
                Some("") => None,
                Some(name) => Some(crate::protocol::calendar::TimeZoneSpec::parse(name)?),
            },
            change_data: self.change_data,
            rules,
            ..usual
        })
    }
}

fn file_json(file: WrittenDataFile) -> Value {
    let values: Map<String, Value> = file
        .partition_values
        .into_iter()
        .map(|(name, value)| (name, value.map_or(Value::Null, Value::from)))
        .collect();
    json!({
        "path": file.path, "partitionValues": values, "size": file.size, "modificationTime": file.modified_ms, "numRecords": file.num_records, "stats": file.stats,
    })
}

fn written_files_json(written: WriteOutput, change_files: WriteOutput) -> String {
    let listed = |files: Vec<WrittenDataFile>| files.into_iter().map(file_json).collect::<Vec<_>>();
    let (files, changes) = (listed(written.files), listed(change_files.files));
    let identities: Map<String, Value> = written
        .identities
        .into_iter()
        .map(|(column, last)| (column, last.into()))
        .collect();
    json!({"files": files, "changes": changes, "rows": written.rows, "identities": identities})
        .to_string()
}

/// A file in the result of `write_files`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WrittenFileJson {
    path: String,
    partition_values: BTreeMap<String, Option<String>>,
    size: u64,
    modification_time: i64,
    num_records: u64,
    stats: Option<String>,
}

/// The result of `write_files`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFilesJson {
    files: Vec<WrittenFileJson>,
    changes: Vec<WrittenFileJson>,
    rows: u64,
    identities: BTreeMap<String, i64>,
    /// The steps of the identity columns, whose sign determines the last value of several.
    #[serde(default)]
    steps: BTreeMap<String, i64>,
}

impl From<WrittenFileJson> for WrittenDataFile {
    fn from(file: WrittenFileJson) -> Self {
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
pub(super) fn together(answers: &[String]) -> Result<(WriteOutput, Vec<WrittenDataFile>)> {
    let (mut out, mut change_files) = (WriteOutput::default(), Vec::new());
    let mut last: BTreeMap<String, i64> = BTreeMap::new();
    for text in answers {
        let answer: WrittenFilesJson = serde_json::from_str(text)
            .map_err(|e| Error::invalid(format!("what a task answered: {e}")))?;
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
    Ok((out, change_files))
}

/// Writes batches as data files of a table.
#[pyfunction]
#[pyo3(signature = (uri, schema, data, options="{}", storage_options=None))]
pub(super) fn write_files(
    py: Python<'_>,
    uri: &str,
    schema: &str,
    data: &Bound<'_, PyAny>,
    options: &str,
    storage_options: Option<HashMap<String, String>>,
) -> PyResult<String> {
    let prepare = || -> Result<_> {
        let options: FileWriteOptions =
            serde_json::from_str(options).map_err(|e| Error::invalid(format!("`options`: {e}")))?;
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
        let batches = stream.map(|batch| {
            batch.map_err(|e| Error::invalid(format!("the data cannot be read: {e}")))
        });
        if has_change_data {
            let [written, inserted] = write_with_change_data(&store, &request, batches)?;
            return Ok(written_files_json(written?, inserted?));
        }
        write(&store, &request, batches)
            .map(|written| written_files_json(written, WriteOutput::default()))
    })
}
