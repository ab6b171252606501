//! The target table of an operation: how its new files are written, which rows are copied into
//! them, and its change data.
//!
//! With row tracking, copied rows keep their ids; a row that an edit changes gets the commit's
//! version.
//!
//! Protocol: "Change Data Files", "Writer Requirements for Row Tracking". Cost: one pass over the
//! rows that are copied.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::Schema;
use arrow_select::filter::filter_record_batch;
use serde::Deserialize;

use crate::dv::RoaringBitmapArray;
use crate::error::{Error, Result};
use crate::exec::CancellationToken;
use crate::expr::BoundExpr;
use crate::file_writer::bound_constraints;
use crate::file_writer::cast_values::{CastRule, StoreAssignment};
use crate::file_writer::constraints::WriteRules;
use crate::file_writer::engine_files::{self, EngineFileSet};
use crate::file_writer::external_sort::CurveSort;
pub(in crate::ops) use crate::file_writer::with_change_feed::with_change_type;
use crate::file_writer::{WriteOutput, WriteRequest, WrittenDataFile, write, write_with};
use crate::ops::rewrite::replace_keys::ReplaceKeySet;
use crate::pq::{ColumnMappingMode, WriterProperties};
use crate::protocol::action::{Metadata, Protocol};
use crate::protocol::commit_line::{Add, Cdc};
use crate::protocol::features::{self, ColumnMapping};
use crate::protocol::schema::{DataType, StringLayout, StructField, StructType};
use crate::protocol::{iceberg, properties};
use crate::scan::{self, MetadataColumn, PositionSelection, ScanRequest};
use crate::snapshot::Snapshot;

/// How files are written.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DataFileOptions {
    /// The size in bytes after which the next file is begun.
    pub target_file_size: Option<u64>,
    /// How files are encoded.
    pub writer_properties: WriterProperties,
    /// The maximum number of files that are written at the same time.
    pub max_open_files: Option<usize>,
    /// Bytes of memory for rows that are not written yet.
    pub memory: Option<u64>,
    /// The time zone for timestamps without a zone in columns with a zone; UTC if `None`, refused
    /// if an empty string.
    pub time_zone: Option<String>,
    /// Which values the columns take besides those of their own types.
    pub store_assignment: StoreAssignment,
}

impl DataFileOptions {
    /// How values are cast to the table's types.
    pub(in crate::ops) fn cast_rule(&self) -> Result<CastRule> {
        CastRule::new(self.time_zone.as_deref(), self.store_assignment)
    }
}

/// The state of a table with which it is written.
#[derive(Debug, Clone)]
pub(in crate::ops) struct TargetTable {
    pub protocol: Protocol,
    pub metadata: Metadata,
    pub schema: StructType,
    pub encoding: DataFileOptions,
}

/// Rows of some files of a table.
#[derive(Debug, Clone, Default)]
pub(in crate::ops) struct FileRowSelection {
    /// Paths of the files in the log.
    pub files: Vec<String>,
    /// Only rows for which it is true.
    pub predicate: Option<BoundExpr>,
    /// Only rows at these positions.
    pub positions: Option<PositionSelection>,
}

/// A change of rows before they are written: a batch of the table's columns, which the columns of
/// row tracking may follow.
pub(in crate::ops) type BatchTransform =
    Arc<dyn Fn(RecordBatch) -> Result<RecordBatch> + Send + Sync>;

/// The number of batches of a file that wait to be encoded: encoding takes longer than decoding, so
/// more would only use memory.
const AHEAD: usize = 2;

/// The minimum size of a file in bytes: small files consist mostly of their footer.
const LEAST: u64 = 1 << 20;

/// The columns of row tracking and the properties with their names in files, in the order in which
/// copied batches have them.
pub(in crate::ops) const TRACKED: [(MetadataColumn, &str); 2] = [
    (
        MetadataColumn::RowId,
        "delta.rowTracking.materializedRowIdColumnName",
    ),
    (
        MetadataColumn::RowCommitVersion,
        "delta.rowTracking.materializedRowCommitVersionColumnName",
    ),
];

impl TargetTable {
    /// The current state of a table.
    pub(in crate::ops) fn of(snapshot: &Snapshot, encoding: DataFileOptions) -> Self {
        Self {
            protocol: snapshot.protocol().clone(),
            metadata: snapshot.metadata().clone(),
            schema: snapshot.schema().clone(),
            encoding,
        }
    }

    /// Its metadata with new high-water marks of identity columns.
    pub(in crate::ops) fn with_high_water_marks(&self, last: &[(String, i64)]) -> Metadata {
        Metadata {
            schema_string: bound_constraints::with_high_water_marks(&self.schema, last)
                .to_json_string(),
            ..self.metadata.clone()
        }
    }

    pub(in crate::ops) fn has_change_data_feed(&self) -> bool {
        let on = |key: &str| properties::flag(&self.metadata.configuration, key);
        features::supported(&self.protocol).contains("changeDataFeed")
            && (on("delta.enableChangeDataFeed") || on("delta.enableChangeDataCapture"))
    }

    pub(in crate::ops) fn tracks_rows(&self) -> bool {
        features::supported(&self.protocol).contains("rowTracking")
            && self.metadata.flag("delta.enableRowTracking")
    }

    /// Whether rows are deleted by deletion vectors instead of copying the other rows.
    pub(in crate::ops) fn has_deletion_vectors(&self) -> bool {
        features::supported(&self.protocol).contains("deletionVectors")
            && self.metadata.flag("delta.enableDeletionVectors")
    }

    /// Whether data files also hold the partition columns.
    pub(in crate::ops) fn materializes_partition_columns(&self) -> bool {
        features::supported(&self.protocol).contains("materializePartitionColumns")
            || iceberg::enabled_iceberg_compat(&self.metadata).is_some()
            || self.metadata.flag("delta.writePartitionColumnsToParquet")
    }

    /// How files of the table are written.
    pub(in crate::ops) fn write_request(
        &self,
        rules: WriteRules,
        cancel: &CancellationToken,
    ) -> Result<WriteRequest> {
        let usual = WriteRequest::new(self.schema.clone());
        let configuration = &self.metadata.configuration;
        let on = |key: &str| properties::flag(configuration, key);
        let target = configuration
            .get("delta.targetFileSize")
            .and_then(|text| properties::bytes(text));
        Ok(WriteRequest {
            partition_columns: self.metadata.partition_columns.clone(),
            mapping: match features::column_mapping(&self.protocol, &self.metadata)? {
                ColumnMapping::None => ColumnMappingMode::None,
                ColumnMapping::Name => ColumnMappingMode::Name,
                ColumnMapping::Id => ColumnMappingMode::Id,
            },
            properties: configuration.clone(),
            materialize_partition_columns: self.materializes_partition_columns(),
            writer_properties: self.encoding.writer_properties.clone(),
            target_file_size: self
                .encoding
                .target_file_size
                .or(target)
                .unwrap_or(usual.target_file_size)
                .max(1),
            max_open_files: self
                .encoding
                .max_open_files
                .unwrap_or(usual.max_open_files)
                .max(1),
            gather_partitions: on("delta.autoOptimize.optimizeWrite") || on("delta.autoOptimize"),
            memory: self.encoding.memory.unwrap_or(usual.memory),
            cast_rule: self.encoding.cast_rule()?,
            rules,
            cancel: cancel.clone(),
            ..usual
        })
    }

    /// The same for change files.
    pub(in crate::ops) fn change_data_request(
        &self,
        rules: WriteRules,
        cancel: &CancellationToken,
    ) -> Result<WriteRequest> {
        Ok(self.write_request(rules, cancel)?.for_change_data())
    }

    /// Copies rows into new files.
    pub(in crate::ops) fn copy(
        &self,
        snapshot: &Snapshot,
        rows: FileRowSelection,
        rules: WriteRules,
        edit: Option<BatchTransform>,
        cancel: &CancellationToken,
    ) -> Result<WriteOutput> {
        let (request, scanned) = self.copy_requests(snapshot, rows, rules, cancel)?;
        let names = request.hidden.clone();
        let batches = scan::scan(snapshot, &scanned)?.batches;
        let edited = move |batch: Result<RecordBatch>| match &edit {
            Some(edit) => edit(batch?).and_then(|batch| rename_trailing_columns(&batch, &names)),
            None => rename_trailing_columns(&batch?, &names),
        };
        write(snapshot.stores().root(), &request, batches.map(edited))
    }

    /// Copies rows into new files in a sorted order; into this number of files with about the same
    /// number of rows, if given.
    pub(in crate::ops) fn copy_sorted(
        &self,
        snapshot: &Snapshot,
        rows: FileRowSelection,
        sorting: CurveSort,
        files: Option<usize>,
        cancel: &CancellationToken,
    ) -> Result<WriteOutput> {
        let (mut request, scanned) =
            self.copy_requests(snapshot, rows, WriteRules::default(), cancel)?;
        let names = request.hidden.clone();
        let (sorted, counts) = sorting.sort(scan::scan(snapshot, &scanned)?.batches, cancel)?;
        if let Some(files) = files {
            request.file_rows = CurveSort::shares(&counts, files);
            // The size of rows says little if rows are counted: it differs between files.
            request.target_file_size = request.target_file_size.saturating_mul(8).max(LEAST);
        }
        write(
            snapshot.stores().root(),
            &request,
            sorted.map(move |batch| rename_trailing_columns(&batch?, &names)),
        )
    }

    /// Reads the files, rows or change data, that another engine wrote into a folder of the table.
    pub(in crate::ops) fn inspect_external_folder(
        &self,
        folder: &str,
        is_feed: bool,
        snapshot: &Snapshot,
        cancel: &CancellationToken,
    ) -> Result<EngineFileSet> {
        let request = if is_feed {
            self.change_data_request(WriteRules::default(), cancel)?
        } else {
            let mut request = self.write_request(WriteRules::default(), cancel)?;
            self.preserve_row_ids(snapshot, &mut request, &mut ScanRequest::default())?;
            request
        };
        engine_files::inspect_external_files(snapshot.stores().root(), &request, folder, cancel)
    }

    /// How rows are copied: the write request, and the scan request.
    fn copy_requests(
        &self,
        snapshot: &Snapshot,
        rows: FileRowSelection,
        rules: WriteRules,
        cancel: &CancellationToken,
    ) -> Result<(WriteRequest, ScanRequest)> {
        let mut request = self.write_request(rules, cancel)?;
        let mut scanned = rows.scan(cancel);
        self.preserve_row_ids(snapshot, &mut request, &mut scanned)?;
        Ok((request, scanned))
    }

    /// Lets copied rows keep their ids if the table tracks rows: adds the columns of [`TRACKED`]
    /// after those of the table.
    pub(in crate::ops) fn preserve_row_ids(
        &self,
        snapshot: &Snapshot,
        request: &mut WriteRequest,
        scanned: &mut ScanRequest,
    ) -> Result<()> {
        if self.tracks_rows() && snapshot.protocol().has_writer_feature("rowTracking") {
            for (column, property) in TRACKED {
                let name = self.metadata.configuration.get(property);
                let name = name.ok_or_else(|| {
                    Error::corrupt(format!("the table tracks rows and has no `{property}`"))
                })?;
                request
                    .schema
                    .fields
                    .push(StructField::new(name, DataType::Long, true));
                request.hidden.push(name.clone());
                scanned.metadata.push(column);
            }
        }
        Ok(())
    }

    /// Combines files: row groups that are large enough are copied as encoded, other files row by
    /// row.
    pub(in crate::ops) fn combine_files(
        &self,
        snapshot: &Snapshot,
        files: Vec<Add>,
        cancel: &CancellationToken,
    ) -> Result<WriteOutput> {
        let request = self.write_request(WriteRules::default(), cancel)?;
        // With row tracking each row needs its id, which a file without such a column does not
        // store.
        let (splices, others) = if self.tracks_rows() {
            (Vec::new(), files)
        } else {
            request.spliceable(files, snapshot.stores())?
        };
        let rows = FileRowSelection {
            files: others.into_iter().map(|add| add.path).collect(),
            ..FileRowSelection::default()
        };
        if splices.is_empty() {
            return self.copy(snapshot, rows, WriteRules::default(), None, cancel);
        }
        let batches = scan::scan(snapshot, &rows.scan(cancel))?.batches;
        write_with(snapshot.stores().root(), &request, splices, batches)
    }

    /// Writes change data files: the edited rows of each source, as changes of this kind.
    pub(in crate::ops) fn write_change_data(
        &self,
        snapshot: &Snapshot,
        sources: [(FileRowSelection, &'static str, Option<BatchTransform>); 2],
        cancel: &CancellationToken,
    ) -> Result<WriteOutput> {
        let mut streams = Vec::with_capacity(sources.len());
        for (rows, kind, edit) in sources {
            let batches = scan::scan(snapshot, &rows.scan(cancel))?.batches;
            streams.push(batches.map(move |batch| {
                let batch = batch?;
                with_change_type(
                    &if let Some(edit) = &edit {
                        edit(batch)?
                    } else {
                        batch
                    },
                    kind,
                )
            }));
        }
        write(
            snapshot.stores().root(),
            &self.change_data_request(WriteRules::default(), cancel)?,
            streams.into_iter().flatten(),
        )
    }
}

impl FileRowSelection {
    pub(in crate::ops) fn scan(self, cancel: &CancellationToken) -> ScanRequest {
        ScanRequest {
            predicate: self.predicate,
            files: Some(self.files),
            chosen: self.positions,
            layout: StringLayout::Plain,
            ahead: AHEAD,
            cancel: cancel.clone(),
            ..ScanRequest::default()
        }
    }

    /// The positions of rows, by path of the files that have any.
    pub(in crate::ops) fn positions(
        self,
        snapshot: &Snapshot,
        keys: Option<&ReplaceKeySet>,
        cancel: &CancellationToken,
    ) -> Result<HashMap<String, RoaringBitmapArray>> {
        let metadata = vec![MetadataColumn::FilePath, MetadataColumn::RowIndex];
        let request = ScanRequest {
            columns: Some(keys.map(ReplaceKeySet::columns).unwrap_or_default()),
            metadata,
            ..self.scan(cancel)
        };
        let mut out = HashMap::new();
        for batch in scan::scan(snapshot, &request)?.batches {
            let batch = batch?;
            match keys {
                None => note_positions(&batch, &mut out)?,
                Some(keys) => {
                    note_positions(
                        &filter_record_batch(&batch, &keys.matching_rows(&batch)?)?,
                        &mut out,
                    )?;
                }
            }
        }
        Ok(out)
    }
}

/// Records the rows of a batch whose last columns are the file's path and the row's position.
pub(in crate::ops) fn note_positions(
    batch: &RecordBatch,
    out: &mut HashMap<String, RoaringBitmapArray>,
) -> Result<()> {
    let [.., paths, index] = batch.columns() else {
        return Err(Error::internal("a scan gave no positions"));
    };
    let (Some(paths), Some(index)) = (
        paths.as_string_opt::<i32>(),
        index.as_primitive_opt::<Int64Type>(),
    ) else {
        return Err(Error::internal("a scan gave no positions"));
    };
    // All rows of a batch are of one file.
    let Some(path) = paths.iter().flatten().next() else {
        return Ok(());
    };
    let new = RoaringBitmapArray::from_ascending(
        index
            .values()
            .iter()
            .map(|row| u64::try_from(*row).unwrap_or(0)),
    )?;
    match out.get_mut(path) {
        Some(known) => *known = known.union(&new),
        None => _ = out.insert(path.to_owned(), new),
    }
    Ok(())
}

/// The batch with these names for its last columns.
fn rename_trailing_columns(batch: &RecordBatch, names: &[String]) -> Result<RecordBatch> {
    let first = batch.num_columns().saturating_sub(names.len());
    let schema = batch.schema();
    let fields = schema.fields().iter().enumerate().map(|(n, field)| {
        match n.checked_sub(first).and_then(|n| names.get(n)) {
            Some(name) => field.as_ref().clone().with_name(name),
            None => field.as_ref().clone(),
        }
    });
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(
        Arc::new(Schema::new(fields.collect::<Vec<_>>())),
        batch.columns().to_vec(),
        &options,
    )?)
}

/// The action of a change file.
pub(in crate::ops) fn cdc_action(file: WrittenDataFile) -> Cdc {
    Cdc {
        path: file.path,
        partition_values: file.partition_values.into_iter().collect(),
        size: i64::try_from(file.size).unwrap_or(i64::MAX),
        ..Cdc::default()
    }
}

/// Whole milliseconds of a duration, for the metrics of an operation.
pub(in crate::ops) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Int64Array;

    #[test]
    fn columns_are_named_from_the_end() {
        let batch = RecordBatch::try_from_iter(vec![(
            "id",
            Arc::new(Int64Array::from(vec![1, 2])) as arrow_array::ArrayRef,
        )])
        .unwrap();
        let renamed = rename_trailing_columns(
            &with_change_type(&batch, "insert").unwrap(),
            &["kind".to_owned()],
        )
        .unwrap();
        assert_eq!(
            renamed
                .schema()
                .fields()
                .iter()
                .map(|f| f.name().as_str())
                .collect::<Vec<_>>(),
            ["id", "kind"]
        );
    }
}
