//! Reading rows: planned files -> batches of the table's logical columns.
//!
//! Every file (every piece of a large one) is a lane of its own, so decoding uses all cores and
//! memory is bounded by lanes in flight x batch size. Deletions and the predicate are applied where
//! a file is decoded; partition columns and metadata columns are added here.
//!
//! Protocol: "Requirements for Readers", "Reader Requirements for Row Tracking", "Reader
//! Requirements for Deletion Vectors".

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, ByteViewType, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, GenericByteViewArray, Int32Array, Int64Array, PrimitiveArray,
    RecordBatch, RecordBatchOptions, StringArray, UInt32Array, downcast_primitive_array,
    new_null_array,
};
use arrow_buffer::BooleanBuffer;
use arrow_cast::cast;
use arrow_schema::{DataType as Arrow, Field, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use rustc_hash::{FxHashMap, FxHashSet};

use super::BatchStream;
use super::columns::find;
use super::plan::{PlanBatch, ScanPlan, plan};
use crate::dv::{self, DeletionVector, DvPath, RoaringBitmapArray};
use crate::error::{Error, ErrorCode, NotFoundKind, Result};
use crate::exec::{
    CancellationToken, IN_FLIGHT, ItemSource, PooledBuilder, ProgressCounter, ordered_prefetch,
    parallelism,
};
use crate::expr::BoundExpr;
use crate::pq::{self, ColumnMappingMode, FileSpec, FooterCache};
use crate::protocol::features::ColumnMapping;
use crate::protocol::schema::{DataType, StringLayout, StructField};
use crate::protocol::{data_path, evolution};
use crate::snapshot::Snapshot;
use crate::store::TableStores;

/// Columns that are not in the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetadataColumn {
    /// `file_path` utf8: path of the data file as in the log.
    FilePath,
    /// `row_index` int64: position of the row in its file.
    RowIndex,
    /// `row_id` int64: the stable row id.
    RowId,
    /// `row_commit_version` int64: version that last changed the row.
    RowCommitVersion,
    /// `base_row_id` int64: the file's base row id.
    BaseRowId,
    /// `file_number` int32: index of the file in [`ScanRequest::files`], for internal use.
    FileNumber,
}

impl MetadataColumn {
    /// The column's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::FilePath => "file_path",
            Self::RowIndex => "row_index",
            Self::RowId => "row_id",
            Self::RowCommitVersion => "row_commit_version",
            Self::BaseRowId => "base_row_id",
            Self::FileNumber => "file_number",
        }
    }

    /// The column of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        [
            Self::FilePath,
            Self::RowIndex,
            Self::RowId,
            Self::RowCommitVersion,
            Self::BaseRowId,
        ]
        .into_iter()
        .find(|c| c.name() == name)
    }

    fn field(self) -> Field {
        let data_type = match self {
            Self::FilePath => Arrow::Utf8,
            Self::FileNumber => Arrow::Int32,
            _ => Arrow::Int64,
        };
        Field::new(
            self.name(),
            data_type,
            !matches!(self, Self::FilePath | Self::RowIndex | Self::FileNumber),
        )
    }
}

/// Rows selected by position, keyed by the path of their file in the log.
#[derive(Debug, Clone)]
pub enum PositionSelection {
    /// Only these rows, which must be live, of the given files.
    Only(Arc<HashMap<String, RoaringBitmapArray>>),
    /// All rows but these.
    Without(Arc<HashMap<String, RoaringBitmapArray>>),
}

/// The parts of a table to read.
#[derive(Debug, Clone)]
pub struct ScanRequest {
    /// Top-level columns in output order; all if `None`.
    pub columns: Option<Vec<String>>,
    /// Rows for which this is not true are left out.
    pub predicate: Option<BoundExpr>,
    /// Ends after this many rows.
    pub limit: Option<usize>,
    /// Rows of a batch.
    pub batch_rows: Option<usize>,
    /// The layout of strings.
    pub layout: StringLayout,
    /// Further columns, after the table's, to be read by position: a column of the table may have
    /// the same name, and the metadata column then gets another one.
    pub metadata: Vec<MetadataColumn>,
    /// Only these files, by their path in the log, in this order.
    pub files: Option<Vec<String>>,
    /// Only some rows of these files.
    pub chosen: Option<PositionSelection>,
    /// Whether the predicate is applied to rows, or only prunes files and row groups.
    pub filter_rows: bool,
    /// Number of batches of a file that may be queued.
    pub ahead: usize,
    /// Cancels the work.
    pub cancel: CancellationToken,
}

impl ScanRequest {
    /// Checks that the output has one column of each name, for callers that read columns by name.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a metadata column has the name of a requested column.
    pub fn check_metadata_names(&self, snapshot: &Snapshot) -> Result<()> {
        let schema = snapshot.schema();
        let is_requested = |name: &str| match &self.columns {
            Some(columns) => columns
                .iter()
                .any(|column| find(schema, column).is_some_and(|field| field.name == name)),
            None => schema.fields.iter().any(|field| field.name == name),
        };
        for (n, column) in self.metadata.iter().enumerate() {
            if self.metadata.iter().take(n).any(|other| other == column) {
                return Err(Error::invalid(format!(
                    "the metadata column `{}` is asked for twice",
                    column.name()
                )));
            }
        }
        match self
            .metadata
            .iter()
            .find(|column| is_requested(column.name()))
        {
            None => Ok(()),
            Some(column) => Err(Error::invalid(format!(
                "the metadata column `{}` has the name of a column of the table; name the columns \
                 to read, without this one, in `columns`",
                column.name()
            ))),
        }
    }
}

impl Default for ScanRequest {
    fn default() -> Self {
        Self {
            columns: None,
            predicate: None,
            limit: None,
            batch_rows: None,
            layout: StringLayout::View,
            metadata: Vec::new(),
            files: None,
            chosen: None,
            filter_rows: true,
            ahead: AHEAD,
            cancel: CancellationToken::default(),
        }
    }
}

/// The source of an output column.
#[derive(Debug, Clone)]
enum ColumnSource {
    /// Position among the columns read from the file.
    File(usize),
    /// Position among the partition columns.
    Partition(usize),
    /// Created here.
    Metadata(MetadataColumn),
    /// One value for all rows of a file: a column of [`FileTask::constants`].
    Constant(usize),
    /// Position among the columns read by their names in the file.
    Raw(usize),
}

/// The settings shared by all files of a scan.
#[derive(Debug)]
pub(super) struct ScanContext {
    snapshot: Snapshot,
    /// Schema of the output.
    pub(super) schema: SchemaRef,
    columns: Vec<ColumnSource>,
    read: Vec<StructField>,
    /// The partition columns of the files.
    partition_fields: Vec<StructField>,
    /// Partition columns that the filter needs.
    filter_partition: Vec<usize>,
    /// Columns of the files that only the filter needs.
    filter_columns: Vec<StructField>,
    filter: Option<Arc<BoundExpr>>,
    filter_rows: bool,
    row_index: bool,
    raw: Vec<(String, DataType)>,
    batch_rows: usize,
    layout: StringLayout,
    footers: Arc<FooterCache>,
}

/// One file, or a part of one.
#[derive(Debug, Clone)]
pub(super) struct FileTask {
    pub(super) batch: Arc<PlanBatch>,
    pub(super) row: usize,
    pub(super) range: Option<Range<u64>>,
    /// Rows to exclude, or the only rows to read, in addition to the log's deletion vector.
    pub(super) rows: LiveRows,
    /// Values of [`ColumnSource::Constant`] columns.
    pub(super) constants: Arc<Vec<ArrayRef>>,
    /// Index of the file among the requested ones.
    pub(super) place: usize,
}

/// The live rows of a file.
#[derive(Debug, Clone)]
pub(super) enum LiveRows {
    /// The rows that the file's own deletion vector does not delete.
    Live,
    /// These positions; the scan must read row indices.
    Only(Arc<RoaringBitmapArray>),
    /// The rows that neither the file's deletion vector nor these positions delete.
    Without(Arc<RoaringBitmapArray>),
    /// All, whatever the log's deletion vector says: change data files have none.
    All,
}

/// Batches that may be queued: lanes are drained in order, and one that waits for its turn can
/// continue for about a file.
pub(super) const AHEAD: usize = 16;

/// Bytes of footers kept for the pieces of one scan's files.
const FOOTERS: usize = 16 << 20;

/// The rows of a batch by default, at least and at most: large enough to amortise the cost per
/// batch, small enough for the caches.
const BATCH_ROWS: Range<usize> = 32 << 10..128 << 10;
/// The target size of a batch within these limits.
const BATCH_BYTES: usize = 4 << 20;

/// The rows of a batch of these columns.
fn batch_rows(columns: &[StructField], bytes: usize) -> usize {
    let width: usize = columns.iter().map(|field| width(&field.data_type)).sum();
    (bytes / width.max(1)).clamp(BATCH_ROWS.start, BATCH_ROWS.end)
}

/// The bytes of a value, estimated where they vary.
fn width(data_type: &DataType) -> usize {
    match data_type {
        DataType::Boolean | DataType::Void => 1,
        DataType::Struct(fields) => fields
            .fields
            .iter()
            .map(|field| width(&field.data_type))
            .sum(),
        other => other
            .to_arrow(StringLayout::Plain)
            .primitive_width()
            .unwrap_or(32),
    }
}

/// The columns of a scan while they are resolved.
#[derive(Default)]
struct ResolvedColumns {
    /// Fields of the output.
    fields: Vec<Field>,
    /// Their names.
    names: FxHashSet<String>,
    /// The source of each field.
    sources: Vec<ColumnSource>,
    /// Columns to read from the files.
    read: Vec<StructField>,
    /// Their positions.
    read_positions: FxHashMap<String, usize>,
    /// Columns to read by their names in the files.
    raw: Vec<(String, DataType)>,
    row_index: bool,
}

impl ResolvedColumns {
    /// Adds the requested columns of the table; all if the request names none.
    fn add_table_columns(
        &mut self,
        snapshot: &Snapshot,
        request: &ScanRequest,
        partition: &[String],
    ) -> Result<()> {
        let schema = snapshot.schema();
        let names: Vec<String> = match &request.columns {
            Some(names) => names.clone(),
            None => schema.fields.iter().map(|f| f.name.clone()).collect(),
        };
        for name in &names {
            let Some(field) = find(schema, name) else {
                let known: Vec<&str> = schema.fields.iter().map(|f| f.name.as_str()).collect();
                return Err(Error::invalid(format!(
                    "the table has no column `{name}`; it has {}",
                    known.join(", ")
                ))
                .with_code(ErrorCode::ColumnNotFound, &[("column", name)]));
            };
            if self.has_field(&field.name) {
                return Err(Error::invalid(format!(
                    "the column `{}` is asked for twice",
                    field.name
                )));
            }
            let source = match partition.iter().position(|p| *p == field.name) {
                Some(at) => ColumnSource::Partition(at),
                None => ColumnSource::File(self.read_position(field)),
            };
            // A partition value of a NOT NULL column can still be null in the log, and a file can
            // lack a column.
            self.add_field(field.to_arrow(request.layout).with_nullable(true), source);
        }
        Ok(())
    }

    /// Adds metadata columns, and the materialized columns of the files that they need.
    fn add_metadata_columns(
        &mut self,
        snapshot: &Snapshot,
        columns: &[MetadataColumn],
    ) -> Result<()> {
        for column in columns {
            self.row_index |= matches!(column, MetadataColumn::RowIndex | MetadataColumn::RowId);
            let property = match column {
                MetadataColumn::RowId => Some("delta.rowTracking.materializedRowIdColumnName"),
                MetadataColumn::RowCommitVersion => {
                    Some("delta.rowTracking.materializedRowCommitVersionColumnName")
                }
                _ => None,
            };
            if let Some(property) = property {
                if !snapshot.protocol().has_writer_feature("rowTracking") {
                    return Err(Error::unsupported_feature(
                        "rowTracking",
                        format!("`{}` needs a table with row tracking", column.name()),
                    ));
                }
                if let Some(name) = snapshot.metadata().configuration.get(property) {
                    self.raw.push((name.clone(), DataType::Long));
                }
            }
            let name = self.unique_name(column.name());
            self.add_field(
                column.field().with_name(name),
                ColumnSource::Metadata(*column),
            );
        }
        Ok(())
    }

    /// Adds columns with one value per file.
    fn add_constants(&mut self, constants: &[Field]) {
        for (n, field) in constants.iter().enumerate() {
            self.add_field(field.clone(), ColumnSource::Constant(n));
        }
    }

    fn add_field(&mut self, field: Field, source: ColumnSource) {
        self.names.insert(field.name().clone());
        self.fields.push(field);
        self.sources.push(source);
    }

    fn has_field(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// The name with as many underscores before it as it takes to be that of no other column.
    /// Expressions find columns by name and must find those of the table.
    fn unique_name(&self, name: &str) -> String {
        let mut unique_name = name.to_owned();
        while self.has_field(&unique_name) {
            unique_name.insert(0, '_');
        }
        unique_name
    }

    /// The position of a column among those read from the files, to which it is added if needed.
    fn read_position(&mut self, field: &StructField) -> usize {
        if let Some(at) = self.read_positions.get(&field.name) {
            return *at;
        }
        let at = self.read.len();
        self.read.push(field.clone());
        self.read_positions.insert(field.name.clone(), at);
        at
    }
}

/// The partition columns of a predicate, by position, and its columns of the files that are not
/// among `read`.
fn predicate_columns(
    snapshot: &Snapshot,
    predicate: Option<&BoundExpr>,
    read: &FxHashMap<String, usize>,
    partition: &[String],
) -> (Vec<usize>, Vec<StructField>) {
    let (mut of_partition, mut of_files) = (Vec::new(), Vec::new());
    for name in predicate.into_iter().flat_map(BoundExpr::column_names) {
        let Some(field) = find(snapshot.schema(), name) else {
            continue;
        };
        match partition.iter().position(|p| *p == field.name) {
            Some(at) => of_partition.push(at),
            None if !read.contains_key(&field.name) => of_files.push(field.clone()),
            None => {}
        }
    }
    of_partition.sort_unstable();
    of_partition.dedup();
    (of_partition, of_files)
}

impl ScanContext {
    /// Resolves the columns of a scan. `constants` come last and have these fields.
    pub(super) fn new(
        snapshot: &Snapshot,
        request: &ScanRequest,
        constants: &[Field],
    ) -> Result<Self> {
        let partition_columns = &snapshot.metadata().partition_columns;
        Self::of_partitioned_files(snapshot, request, constants, partition_columns)
    }

    /// [`ScanContext::new`] for files with these partition columns, by their names in the schema of
    /// the snapshot: those of another version may have others, and hold the snapshot's.
    pub(super) fn of_partitioned_files(
        snapshot: &Snapshot,
        request: &ScanRequest,
        constants: &[Field],
        partition_columns: &[String],
    ) -> Result<Self> {
        evolution::check_changes(snapshot.protocol(), snapshot.schema())?;
        let mut resolved = ResolvedColumns::default();
        resolved.add_table_columns(snapshot, request, partition_columns)?;
        resolved.add_metadata_columns(snapshot, &request.metadata)?;
        resolved.add_constants(constants);
        let (filter_partition, filter_columns) = predicate_columns(
            snapshot,
            request.predicate.as_ref(),
            &resolved.read_positions,
            partition_columns,
        );
        let partition_fields = partition_columns
            .iter()
            .filter_map(|name| snapshot.schema().field(name).cloned())
            .collect();
        let rows = batch_rows(&resolved.read, BATCH_BYTES);
        Ok(Self {
            snapshot: snapshot.clone(),
            schema: Arc::new(Schema::new(resolved.fields)),
            columns: resolved.sources,
            read: resolved.read,
            partition_fields,
            filter_partition,
            filter_columns,
            filter: request.predicate.clone().map(Arc::new),
            filter_rows: request.filter_rows,
            row_index: resolved.row_index,
            raw: resolved.raw,
            batch_rows: request.batch_rows.unwrap_or(rows).max(1),
            layout: request.layout,
            footers: Arc::new(FooterCache::new(FOOTERS)),
        })
    }

    /// Reads row indices as well, for [`LiveRows::Only`].
    pub(super) fn with_row_index(mut self) -> Self {
        self.row_index = true;
        self
    }

    /// Allows batches of up to twice the bytes, so that most files of a few megabytes are one
    /// batch; for use where no encoder holds batches.
    pub(super) fn in_large_batches(mut self) -> Self {
        self.batch_rows = batch_rows(&self.read, 2 * BATCH_BYTES);
        self
    }

    /// Reads the `n`th constant column from the file instead, by its name there.
    pub(super) fn with_raw(mut self, n: usize, name: &str, data_type: DataType) -> Self {
        for column in &mut self.columns {
            match column {
                ColumnSource::Constant(at) if *at == n => {
                    *column = ColumnSource::Raw(self.raw.len());
                }
                ColumnSource::Constant(at) if *at > n => *at -= 1,
                _ => {}
            }
        }
        self.raw.push((name.to_owned(), data_type));
        self
    }

    /// How many rows of small files may be one batch; `None` where a column identifies a batch's
    /// file.
    fn joined_rows(&self) -> Option<usize> {
        const ROWS: usize = 8 << 10;
        self.columns
            .iter()
            .all(|column| matches!(column, ColumnSource::File(_) | ColumnSource::Partition(_)))
            .then(|| self.batch_rows.min(ROWS))
    }

    fn deletion_vector(&self, task: &FileTask) -> Result<Option<Arc<DeletionVector>>> {
        match &task.rows {
            LiveRows::Only(_) | LiveRows::All => Ok(None),
            LiveRows::Live => load_vector(self.snapshot.stores(), &task.batch, task.row),
            LiveRows::Without(positions) => Ok(Some(
                match load_vector(self.snapshot.stores(), &task.batch, task.row)? {
                    Some(vector) => Arc::new(vector.positions().union(positions).into()),
                    None => Arc::new(positions.as_ref().clone().into()),
                },
            )),
        }
    }

    /// The file of a task and what is read of it.
    fn file_spec(&self, task: &FileTask, constants: &FileConstants) -> Result<FileSpec> {
        let files = &task.batch.files;
        let canonical = data_path::canonical(&constants.path)?;
        let size = (files.size.is_valid(task.row))
            .then(|| u64::try_from(files.size.value(task.row)).unwrap_or(0))
            .filter(|size| *size > 0);
        let file = self.snapshot.stores().file(&canonical, size)?;
        let filter_constants = self
            .filter_partition
            .iter()
            .filter_map(|at| {
                Some((
                    self.partition_fields.get(*at)?.name.clone(),
                    constants.partition.get(*at)?.clone(),
                ))
            })
            .collect();
        Ok(FileSpec {
            file,
            columns: self.read.clone(),
            mapping: match self.snapshot.mapping() {
                ColumnMapping::None => ColumnMappingMode::None,
                ColumnMapping::Name => ColumnMappingMode::Name,
                ColumnMapping::Id => ColumnMappingMode::Id,
            },
            layout: self.layout,
            deleted: self.deletion_vector(task)?,
            row_index: self.row_index,
            raw_columns: self.raw.clone(),
            batch_rows: self.batch_rows,
            range: task.range.clone(),
            zone: self.snapshot.options().zone,
            filter: self.filter.clone(),
            filter_rows: self.filter_rows,
            filter_columns: self.filter_columns.clone(),
            constants: filter_constants,
        })
    }

    /// The row groups of one file that are read, all of its byte range.
    pub(super) fn row_groups(&self, task: &FileTask) -> Result<pq::RowGroupPlan> {
        let constants = FileConstants::new(self, task)?;
        let spec = self.file_spec(task, &constants)?;
        pq::plan_row_groups(&spec, &self.footers)
            .map_err(|e| missing_file(e, &constants.path, self.snapshot.version()))
    }

    /// The rows of one file.
    pub(super) fn file(
        self: &Arc<Self>,
        task: &FileTask,
    ) -> Result<impl Iterator<Item = Result<RecordBatch>> + Send + use<>> {
        let constants = FileConstants::new(self, task)?;
        let version = self.snapshot.version();
        let batches = pq::read(self.file_spec(task, &constants)?, &self.footers);
        let this = Arc::clone(self);
        Ok(batches
            .map(move |batch| {
                this.shape(
                    &batch.map_err(|e| missing_file(e, &constants.path, version))?,
                    &constants,
                )
            })
            .filter(|batch| !matches!(batch, Ok(batch) if batch.num_rows() == 0)))
    }

    /// Adds partition, metadata and constant columns to a file's own columns.
    fn shape(&self, batch: &RecordBatch, constants: &FileConstants) -> Result<RecordBatch> {
        let chosen;
        let batch = match &constants.only {
            None => batch,
            Some(only) => {
                let index = batch
                    .columns()
                    .get(self.read.len())
                    .and_then(|c| c.as_primitive_opt::<Int64Type>())
                    .ok_or_else(|| Error::internal("row indices are missing"))?;
                let mask = BooleanArray::new(at_positions(index.values(), only), None);
                chosen = arrow_select::filter::filter_record_batch(batch, &mask)?;
                &chosen
            }
        };
        let rows = batch.num_rows();
        let mut arrays = Vec::with_capacity(self.columns.len());
        for (column, field) in self.columns.iter().zip(self.schema.fields()) {
            let array = match column {
                ColumnSource::File(at) => nth(batch, *at)?,
                ColumnSource::Partition(at) => repeat(
                    constants
                        .partition
                        .get(*at)
                        .ok_or_else(|| Error::internal("a partition column is missing"))?,
                    field,
                    rows,
                )?,
                ColumnSource::Raw(at) => required(
                    field.name(),
                    nth(batch, self.read.len() + usize::from(self.row_index) + at)?,
                )?,
                ColumnSource::Constant(at) => repeat(
                    constants
                        .task
                        .get(*at)
                        .ok_or_else(|| Error::internal("a constant column is missing"))?,
                    field,
                    rows,
                )?,
                ColumnSource::Metadata(column) => self.metadata(*column, batch, constants)?,
            };
            arrays.push(if array.data_type() == field.data_type() {
                array
            } else {
                cast(&array, field.data_type())?
            });
        }
        Ok(RecordBatch::try_new_with_options(
            Arc::clone(&self.schema),
            arrays,
            &RecordBatchOptions::new().with_row_count(Some(rows)),
        )?)
    }

    fn metadata(
        &self,
        column: MetadataColumn,
        batch: &RecordBatch,
        constants: &FileConstants,
    ) -> Result<ArrayRef> {
        let rows = batch.num_rows();
        // The row index follows the table's columns, raw columns follow it.
        let index = || nth(batch, self.read.len());
        let materialised = |property: &str| -> Result<Option<Int64Array>> {
            let Some(name) = self.snapshot.metadata().configuration.get(property) else {
                return Ok(None);
            };
            let Some(at) = self.raw.iter().position(|(raw, _)| raw == name) else {
                return Ok(None);
            };
            Ok(
                nth(batch, self.read.len() + usize::from(self.row_index) + at)?
                    .as_primitive_opt::<Int64Type>()
                    .cloned(),
            )
        };
        Ok(match column {
            MetadataColumn::FilePath => Arc::new(StringArray::from_iter_values(
                std::iter::repeat_n(constants.path.as_str(), rows),
            )),
            MetadataColumn::RowIndex => index()?,
            MetadataColumn::FileNumber => Arc::new(Int32Array::from_value(constants.place, rows)),
            MetadataColumn::BaseRowId => Arc::new(Int64Array::from_iter(std::iter::repeat_n(
                constants.base_row_id,
                rows,
            ))),
            MetadataColumn::RowId => {
                let index = index()?;
                let index = index
                    .as_primitive_opt::<Int64Type>()
                    .ok_or_else(|| Error::internal("row indices are missing"))?;
                let stable = materialised("delta.rowTracking.materializedRowIdColumnName")?;
                let base = constants.base_row_id;
                Arc::new(Int64Array::from_iter((0..rows).map(|n| match &stable {
                    Some(stable) if stable.is_valid(n) => Some(stable.value(n)),
                    _ => base.map(|base| base.wrapping_add(index.value(n))),
                })))
            }
            MetadataColumn::RowCommitVersion => {
                let stable =
                    materialised("delta.rowTracking.materializedRowCommitVersionColumnName")?;
                Arc::new(Int64Array::from_iter((0..rows).map(|n| match &stable {
                    Some(stable) if stable.is_valid(n) => Some(stable.value(n)),
                    _ => constants.commit_version,
                })))
            }
        })
    }
}

/// Which of these rows of a file are at the positions; rows are in ascending order.
#[must_use]
pub fn at_positions(rows: &[i64], positions: &RoaringBitmapArray) -> BooleanBuffer {
    let ends = rows
        .first()
        .zip(rows.last())
        .and_then(|(first, last)| Some((u64::try_from(*first).ok()?, u64::try_from(*last).ok()?)));
    let Some((first, last)) = ends else {
        return BooleanBuffer::new_unset(rows.len());
    };
    match positions.live_row_mask(first..last + 1) {
        None => BooleanBuffer::new_unset(rows.len()),
        Some(others) if others.len() == rows.len() => !&others,
        Some(others) => BooleanBuffer::collect_bool(rows.len(), |n| {
            let at = rows
                .get(n)
                .and_then(|row| usize::try_from(*row - first.cast_signed()).ok());
            at.is_some_and(|at| at < others.len() && !others.value(at))
        }),
    }
}

fn nth(batch: &RecordBatch, at: usize) -> Result<ArrayRef> {
    batch
        .columns()
        .get(at)
        .cloned()
        .ok_or_else(|| Error::internal("a column is missing from a file's batch"))
}

/// The values that all rows of a file share.
struct FileConstants {
    path: String,
    /// One value of each partition column.
    partition: Vec<ArrayRef>,
    base_row_id: Option<i64>,
    commit_version: Option<i64>,
    place: i32,
    task: Arc<Vec<ArrayRef>>,
    only: Option<Arc<RoaringBitmapArray>>,
}

impl FileConstants {
    fn new(reading: &ScanContext, task: &FileTask) -> Result<Self> {
        let partition = task
            .batch
            .partition
            .iter()
            .zip(&reading.partition_fields)
            .map(|(array, field)| {
                let value = array.slice(task.row, 1);
                let wanted = field.data_type.to_arrow(reading.layout);
                Ok(if value.data_type() == &wanted {
                    value
                } else {
                    cast(&value, &wanted)?
                })
            })
            .collect::<Result<_>>()?;
        let int = |array: &Option<Int64Array>| {
            array
                .as_ref()
                .filter(|a| a.is_valid(task.row))
                .map(|a| a.value(task.row))
        };
        let files = &task.batch.files;
        Ok(Self {
            path: files.path.value(task.row).to_owned(),
            partition,
            base_row_id: int(&files.base_row_id),
            commit_version: int(&files.default_row_commit_version),
            place: i32::try_from(task.place)
                .map_err(|_| Error::internal("too many files for one scan"))?,
            task: Arc::clone(&task.constants),
            only: match &task.rows {
                LiveRows::Only(positions) => Some(Arc::clone(positions)),
                LiveRows::Live | LiveRows::Without(_) | LiveRows::All => None,
            },
        })
    }
}

/// A column that a change data file must have.
fn required(name: &str, array: ArrayRef) -> Result<ArrayRef> {
    if array.null_count() > 0 {
        return Err(Error::corrupt_data(format!(
            "a change data file has rows without `{name}`"
        )));
    }
    Ok(array)
}

/// `value` (of length one), `rows` times, as values of a field.
fn repeat(value: &ArrayRef, field: &Field, rows: usize) -> Result<ArrayRef> {
    let value = if value.data_type() == field.data_type() {
        Arc::clone(value)
    } else {
        cast(value, field.data_type())?
    };
    if value.is_null(0) {
        return Ok(new_null_array(field.data_type(), rows));
    }
    let value = value.as_ref();
    Ok(downcast_primitive_array!(
        value => repeated(value, rows),
        Arrow::Utf8View => repeated_view(value.as_string_view(), rows),
        Arrow::BinaryView => repeated_view(value.as_binary_view(), rows),
        _ => arrow_select::take::take(value, &UInt32Array::from_value(0, rows), None)?
    ))
}

fn repeated<T: ArrowPrimitiveType>(value: &PrimitiveArray<T>, rows: usize) -> ArrayRef {
    let mut values = PooledBuilder::new(rows);
    values.extend(std::iter::repeat_n(value.value(0), rows));
    Arc::new(
        PrimitiveArray::<T>::new(values.into(), None).with_data_type(value.data_type().clone()),
    )
}

fn repeated_view<T: ByteViewType>(value: &GenericByteViewArray<T>, rows: usize) -> ArrayRef {
    let mut views = PooledBuilder::new(rows);
    views.extend(std::iter::repeat_n(
        value.views().first().copied().unwrap_or_default(),
        rows,
    ));
    // SAFETY: all views are that of `value`, whose buffers these are.
    Arc::new(unsafe {
        GenericByteViewArray::<T>::new_unchecked(
            views.into(),
            Arc::clone(value.data_buffers()),
            None,
        )
    })
}

fn missing_file(error: Error, path: &str, version: i64) -> Error {
    match error {
        Error::NotFound { kind: NotFoundKind::Object, context: place, .. } => Error::NotFound {
            kind: NotFoundKind::DataFile,
            what: format!("the data file `{path}` that the log names is missing; it may have been removed by a vacuum"),
            context: place,
        }
        .at_file(path)
        .at_version(version),
        other => other.at_file(path),
    }
}

/// The deletion vector of a planned file.
pub(super) fn load_vector(
    stores: &TableStores,
    batch: &PlanBatch,
    row: usize,
) -> Result<Option<Arc<DeletionVector>>> {
    let Some(descriptor) = batch.files.deletion_vector(row) else {
        return Ok(None);
    };
    dv::load(&descriptor, |path| vector_file(stores, path)).map(Some)
}

/// The file of a deletion vector.
///
/// # Errors
/// [`Error::Corrupt`] for a path that does not decode, [`Error::Invalid`] for one that leaves the
/// table's store.
pub fn vector_file(stores: &TableStores, path: &DvPath) -> Result<crate::store::StoreObject> {
    match path {
        DvPath::InTable(path) => stores.file(path, None),
        DvPath::Given(path) => stores.file(&data_path::canonical(path)?, None),
    }
}

/// Larger files are read in pieces of about this size, in whole row groups.
const PIECE: u64 = 64 << 20;

/// The most pieces of a file, however large it is in the log.
const MOST_PIECES: u64 = 256;

/// The files of a plan, large ones in pieces.
pub(super) fn tasks(plan: &ScanPlan, request: &ScanRequest) -> Vec<FileTask> {
    let only: Option<HashMap<&str, usize>> = request.files.as_ref().map(|only| {
        only.iter()
            .enumerate()
            .map(|(n, path)| (path.as_str(), n))
            .collect()
    });
    let none = Arc::new(Vec::new());
    let mut out = Vec::new();
    for (batch, keep) in &plan.batches {
        for row in (0..keep.len()).filter(|row| keep.value(*row)) {
            let place = match &only {
                None => 0,
                Some(only) => match only.get(batch.files.path.value(row)) {
                    Some(place) => *place,
                    None => continue,
                },
            };
            let positions = |of: &HashMap<String, RoaringBitmapArray>| {
                of.get(batch.files.path.value(row)).cloned().map(Arc::new)
            };
            let rows = match &request.chosen {
                None => LiveRows::Live,
                Some(PositionSelection::Without(of)) => {
                    positions(of).map_or(LiveRows::Live, LiveRows::Without)
                }
                Some(PositionSelection::Only(of)) => match positions(of) {
                    Some(positions) => LiveRows::Only(positions),
                    None => continue,
                },
            };
            let size = if batch.files.size.is_valid(row) {
                u64::try_from(batch.files.size.value(row)).unwrap_or(0)
            } else {
                0
            };
            let task = FileTask {
                batch: Arc::clone(batch),
                row,
                range: None,
                rows,
                constants: Arc::clone(&none),
                place,
            };
            if size <= PIECE + PIECE / 2 {
                out.push((place, task));
                continue;
            }
            let piece = PIECE.max(size / MOST_PIECES);
            let mut start: u64 = 0;
            while start < size {
                // The last piece is open-ended, in case the log's size is too small.
                let end = if size - start <= piece {
                    u64::MAX
                } else {
                    start + piece
                };
                out.push((
                    place,
                    FileTask {
                        range: Some(start..end),
                        ..task.clone()
                    },
                ));
                start = end;
            }
        }
    }
    out.sort_by_key(|(place, _)| *place);
    out.into_iter().map(|(_, task)| task).collect()
}

/// Reads the files of tasks, in order. All batches have `schema`.
pub(super) fn read_tasks(
    schema: SchemaRef,
    tasks: Vec<(Arc<ScanContext>, FileTask)>,
    ahead: usize,
    cancel: &CancellationToken,
) -> BatchStream {
    // A consumer of the batches may watch the progress of this scan; a caller that waits for the
    // whole operation watches all of its files.
    let progress = ProgressCounter::default();
    let done = [progress.clone(), cancel.progress().clone()];
    for progress in &done {
        progress.expect(tasks.len() as u64);
    }
    let window = window(&tasks);
    let sources = runs(tasks).into_iter().map(move |run| {
        let joined = run
            .first()
            .filter(|_| run.len() > 1)
            .and_then(|(reading, _)| reading.joined_rows());
        let batches = one_after_the_other(run, done.clone());
        match joined {
            Some(rows) => Box::new(join(batches, rows)) as ItemSource<RecordBatch>,
            None => Box::new(batches),
        }
    });
    let batches = ordered_prefetch(sources, window, ahead, cancel)
        .with_byte_budget(RecordBatch::get_array_memory_size);
    BatchStream {
        schema,
        batches: Box::new(batches),
        progress,
    }
}

/// Tasks, with small local files grouped into runs: a lane costs more than such a file.
fn runs(tasks: Vec<(Arc<ScanContext>, FileTask)>) -> Vec<Vec<(Arc<ScanContext>, FileTask)>> {
    const BYTES: u64 = 2 << 20;
    const FILES: usize = 64;
    // Every thread gets some runs, however few files there are.
    let most = (tasks.len() / (8 * parallelism())).min(FILES);
    if most < 2
        || tasks
            .iter()
            .any(|(reading, _)| reading.snapshot.stores().root().is_remote())
    {
        return tasks.into_iter().map(|task| vec![task]).collect();
    }
    let mut out: Vec<Vec<_>> = Vec::new();
    let mut bytes = u64::MAX;
    for task in tasks {
        let size = size(&task.1);
        bytes = bytes.saturating_add(size);
        match out
            .last_mut()
            .filter(|run| bytes <= BYTES && run.len() < most)
        {
            Some(run) => run.push(task),
            None => {
                bytes = size;
                out.push(vec![task]);
            }
        }
    }
    out
}

/// The approximate bytes of a task; `u64::MAX` if unknown.
fn size(task: &FileTask) -> u64 {
    let of_file = || {
        task.batch
            .files
            .size
            .values()
            .get(task.row)
            .and_then(|size| u64::try_from(*size).ok())
            .filter(|size| *size > 0)
    };
    if task.range.is_some() {
        PIECE
    } else {
        of_file().unwrap_or(u64::MAX)
    }
}

/// The rows of some files, read in turn.
fn one_after_the_other(
    run: Vec<(Arc<ScanContext>, FileTask)>,
    done: [ProgressCounter; 2],
) -> impl Iterator<Item = Result<RecordBatch>> + Send {
    let mut files = run.into_iter();
    let mut open: Option<Box<dyn Iterator<Item = Result<RecordBatch>> + Send>> = None;
    std::iter::from_fn(move || {
        loop {
            if let Some(batches) = &mut open {
                match batches.next() {
                    Some(batch) => return Some(batch),
                    None => {
                        open = None;
                        for progress in &done {
                            progress.advance(1);
                        }
                    }
                }
            }
            let (reading, task) = files.next()?;
            match reading.file(&task) {
                Ok(batches) => open = Some(Box::new(batches)),
                Err(error) => return Some(Err(error)),
            }
        }
    })
}

/// The same rows, with small batches joined up to `rows` rows and a few bytes.
fn join(
    mut batches: impl Iterator<Item = Result<RecordBatch>> + Send,
    rows: usize,
) -> impl Iterator<Item = Result<RecordBatch>> + Send {
    const BYTES: usize = 16 << 20;
    let mut next: Option<RecordBatch> = None;
    std::iter::from_fn(move || {
        let (mut held, mut count, mut bytes) = (Vec::new(), 0, 0);
        loop {
            let batch = match next.take().map(Ok).or_else(|| batches.next()) {
                Some(Ok(batch)) => batch,
                Some(Err(error)) => return Some(Err(error)),
                None => break,
            };
            (count, bytes) = (
                count + batch.num_rows(),
                bytes + batch.get_array_memory_size(),
            );
            if (count > rows || bytes > BYTES) && !held.is_empty() {
                next = Some(batch);
                break;
            }
            held.push(batch);
        }
        match held.as_slice() {
            [] => None,
            [only] => Some(Ok(only.clone())),
            [first, ..] => Some(concat_batches(first.schema_ref(), &held).map_err(Error::from)),
        }
    })
}

/// How many files are read at once. For local files this is somewhat more than the number of
/// processors: reading a small file takes as long as waking a thread, so files should wait for
/// threads, not threads for files. For remote stores it is larger, to hide their latency, as long
/// as the bytes in flight fit into memory.
fn window(tasks: &[(Arc<ScanContext>, FileTask)]) -> usize {
    const BYTES: u64 = 256 << 20;
    const SMALL: u64 = 8 << 20;
    let busy = parallelism() + 1;
    if tasks.len() <= busy {
        return busy;
    }
    let bytes = tasks.iter().fold(0_u64, |sum, (_, task)| {
        sum.saturating_add(
            Some(size(task))
                .filter(|size| *size < u64::MAX)
                .unwrap_or(0),
        )
    });
    if !tasks
        .iter()
        .any(|(reading, _)| reading.snapshot.stores().root().is_remote())
    {
        return if bytes / tasks.len() as u64 <= SMALL {
            2 * parallelism() + 1
        } else {
            busy
        };
    }
    let fit = BYTES.saturating_mul(tasks.len() as u64) / bytes.max(1);
    usize::try_from(fit)
        .unwrap_or(IN_FLIGHT)
        .clamp(busy, IN_FLIGHT.max(busy))
}

/// Scans a table.
///
/// # Errors
/// [`Error::Invalid`] for columns that do not exist; the stream returns errors of reading.
pub fn scan(snapshot: &Snapshot, request: &ScanRequest) -> Result<BatchStream> {
    let reading = ScanContext::new(snapshot, request, &[])?;
    let reading = Arc::new(
        if matches!(request.chosen, Some(PositionSelection::Only(_))) {
            reading.with_row_index()
        } else {
            reading
        },
    );
    let plan = plan(snapshot, request.predicate.as_ref(), &request.cancel)?;
    let tasks = tasks(&plan, request)
        .into_iter()
        .map(|task| (Arc::clone(&reading), task))
        .collect();
    let out = read_tasks(
        Arc::clone(&reading.schema),
        tasks,
        request.ahead,
        &request.cancel,
    );
    Ok(match request.limit {
        None => out,
        Some(limit) => BatchStream {
            batches: Box::new(limited(out.batches, limit)),
            ..out
        },
    })
}

/// At most `limit` rows.
fn limited(
    mut batches: Box<dyn Iterator<Item = Result<RecordBatch>> + Send>,
    limit: usize,
) -> impl Iterator<Item = Result<RecordBatch>> + Send {
    let mut left = limit;
    std::iter::from_fn(move || {
        if left == 0 {
            // No more rows are wanted: running work is cancelled.
            batches = Box::new(std::iter::empty());
            return None;
        }
        Some(batches.next()?.map(|batch| {
            let batch = if batch.num_rows() > left {
                batch.slice(0, left)
            } else {
                batch
            };
            left -= batch.num_rows();
            batch
        }))
    })
}

/// Counts rows, from statistics where every file has them.
///
/// # Errors
/// As [`scan`].
pub fn count(
    snapshot: &Snapshot,
    predicate: Option<&BoundExpr>,
    cancel: &CancellationToken,
) -> Result<u64> {
    if predicate.is_none()
        && let Some(known) = count_from_statistics(snapshot, cancel)?
    {
        return Ok(known);
    }
    let request = ScanRequest {
        columns: Some(Vec::new()),
        predicate: predicate.cloned(),
        cancel: cancel.clone(),
        ..ScanRequest::default()
    };
    scan(snapshot, &request)?
        .batches
        .map(|batch| batch.map(|b| b.num_rows() as u64))
        .sum()
}

fn count_from_statistics(snapshot: &Snapshot, cancel: &CancellationToken) -> Result<Option<u64>> {
    let columns = super::ActionColumns {
        names: Some(vec![
            "num_records".into(),
            "deletion_vector.cardinality".into(),
        ]),
        flatten: true,
        paths: None,
    };
    let mut total = 0i64;
    for batch in super::actions(snapshot, &columns, None, cancel)?.batches {
        let batch = batch?;
        let column = |name: &str| {
            batch
                .column_by_name(name)
                .and_then(|c| c.as_primitive_opt::<Int64Type>())
                .cloned()
        };
        let Some(records) = column("num_records") else {
            return Ok(None);
        };
        if records.null_count() > 0 {
            return Ok(None);
        }
        let deleted = column("deletion_vector.cardinality");
        // Deletion vectors with more rows than their files are damage: the scan of the files names
        // the file.
        if deleted.as_ref().is_some_and(|deleted| {
            deleted
                .iter()
                .zip(records.values())
                .any(|(deleted, records)| deleted > Some(*records))
        }) {
            return Ok(None);
        }
        let deleted: i64 = deleted.map_or(0, |c| c.iter().flatten().sum());
        total += records.values().iter().sum::<i64>() - deleted;
    }
    Ok(u64::try_from(total).ok())
}
