//! The files that hold the changes of each version.
//!
//! A version with change data files is read from these alone. In any other version adds are inserts
//! and removes are deletes; where both name one data file, the changed rows are the difference of
//! their deletion vectors.
//!
//! Protocol: "Add CDC File", "Reader Requirements for AddCDCFile". Cost: the commits of the
//! versions and their deletion vectors.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, Int64Array, ListArray, RecordBatch, StringArray, StructArray,
    TimestampMicrosecondArray, new_null_array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType as Arrow, Field, Fields, Schema, SchemaRef, TimeUnit};
use arrow_select::interleave::interleave;
use bytes::Bytes;

use super::columns::LeafColumns;
use super::deletion_vectors::{checked, push_bitmap, push_inverted_bitmap};
use super::plan::PlanBatch;
use super::read::{LiveRows, load_vector};
use crate::dv::RoaringBitmapArray;
use crate::error::{Error, NotFoundKind, Result, ResultExt};
use crate::exec::map_all;
use crate::log::{CommitFile, LogListing};
use crate::parse::commit::{self, ActionSelection, NonFileAction};
use crate::parse::{FileActionProjection, FileBatch};
use crate::pq::read_footer;
use crate::protocol::action::Metadata;
use crate::protocol::data_path::canonical;
use crate::protocol::schema::{StringLayout, StructField};
use crate::reconcile::CommitCache;
use crate::snapshot::Snapshot;

/// Names of partition columns in the schema of the feed.
pub(super) type PartitionColumns = Arc<Vec<String>>;

/// One version's actions.
pub(super) struct VersionActions {
    pub(super) commit: CommitFile,
    adds: FileBatch,
    removes: FileBatch,
    cdc: FileBatch,
    pub(super) metadata: Option<Metadata>,
    /// The columns whose partition values were parsed, in the order of the batches.
    pub(super) parsed_columns: PartitionColumns,
    /// The partition columns of the files that the version adds, change data files among them.
    pub(super) added_by: PartitionColumns,
    /// Those of the files that it removes: an overwrite may change the partition columns, and the
    /// files before it keep theirs.
    pub(super) removed_by: PartitionColumns,
}

impl VersionActions {
    /// Whether rows of removed files may be changes.
    pub(super) fn has_removes(&self) -> bool {
        !self.removes.is_empty()
    }
}

/// Which parts of the actions are parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ActionDetail {
    /// Those that reading the rows needs.
    Rows,
    /// Statistics and times as well, which the list of files contains.
    Files,
}

/// Commits that are read by one job: a job costs more than a small commit.
const JOB: usize = 8;

/// Reads the commits of some versions, with the partition values of these columns, which are taken
/// for the partition columns of all files.
///
/// # Errors
/// [`Error::NotFound`] for a commit that was cleaned up.
pub(super) fn read_versions(
    snapshot: &Snapshot,
    listing: &LogListing,
    start: i64,
    end: i64,
    columns: &PartitionColumns,
    detail: ActionDetail,
) -> Result<Vec<VersionActions>> {
    let mut commits = Vec::new();
    for version in start..=end {
        let commit = listing.commits.get(&version).cloned().ok_or_else(|| {
            Error::not_found(
                NotFoundKind::Version,
                format!("the commit of version {version} was cleaned up, so its changes are lost"),
            )
            .at_version(version)
        })?;
        commits.push(commit);
    }
    let wanted = FileActionProjection {
        partition: columns
            .iter()
            .filter_map(|name| snapshot.schema().field(name))
            .map(|field| snapshot.physical_name(field).to_owned())
            .collect(),
        row_ids: true,
        data_change: true,
        stats: detail == ActionDetail::Files,
        time: detail == ActionDetail::Files,
        ..FileActionProjection::default()
    };
    let take = ActionSelection::of_changes(&wanted);
    let columns = Arc::clone(columns);
    let versions = map_all(commits.chunks(JOB).map(<[_]>::to_vec), move |commits| {
        let parse = |(commit, text): (&CommitFile, Result<Bytes>)| {
            let text = text?;
            let parsed = commit::parse(&text, 0..text.len(), &take, &[])
                .at_file(&commit.file.path)
                .at_version(commit.version)?;
            let metadata = parsed
                .non_file_actions
                .into_iter()
                .find_map(|single| match single {
                    NonFileAction::Metadata(metadata) => Some(*metadata),
                    _ => None,
                });
            Ok(VersionActions {
                commit: commit.clone(),
                adds: parsed.adds,
                removes: parsed.removes,
                cdc: parsed.cdc,
                metadata,
                parsed_columns: Arc::clone(&columns),
                added_by: Arc::clone(&columns),
                removed_by: Arc::clone(&columns),
            })
        };
        commits
            .iter()
            .zip(CommitCache::default().get_all(&commits))
            .map(parse)
            .collect::<Result<Vec<_>>>()
    })?;
    Ok(versions.into_iter().flatten().collect())
}

/// Where the type of a file's changes is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeSource {
    /// In the column `_change_type` of a change data file.
    ChangeFile,
    /// All rows were inserted.
    Insert,
    /// All rows were deleted.
    Delete,
}

impl ChangeSource {
    /// The change type that all rows have.
    pub(super) fn change_type(self) -> Option<&'static str> {
        match self {
            Self::ChangeFile => None,
            Self::Insert => Some("insert"),
            Self::Delete => Some("delete"),
        }
    }
}

/// A file, and which of its rows a version changed.
pub(super) struct ChangedFile {
    pub(super) batch: Arc<PlanBatch>,
    /// The partition columns of the file, and of the batch.
    pub(super) partitioned_by: PartitionColumns,
    pub(super) row: usize,
    pub(super) source: ChangeSource,
    pub(super) rows: LiveRows,
}

/// The files that hold a version's changes, in the order of the commit.
///
/// # Errors
/// [`Error::Corrupt`] for a damaged deletion vector.
pub(super) fn changed_files(
    snapshot: &Snapshot,
    version: VersionActions,
) -> Result<Vec<ChangedFile>> {
    let number = version.commit.version;
    let (added_by, removed_by) = (version.added_by, version.removed_by);
    let batch = |files: FileBatch, columns: &PartitionColumns| {
        partitioned_batch(snapshot, files, &version.parsed_columns, columns).at_version(number)
    };
    if !version.cdc.is_empty() {
        let files = batch(version.cdc, &added_by)?;
        let file = |row| ChangedFile {
            batch: Arc::clone(&files),
            partitioned_by: Arc::clone(&added_by),
            row,
            source: ChangeSource::ChangeFile,
            rows: LiveRows::All,
        };
        return Ok((0..files.files.len()).map(file).collect());
    }
    let (adds, removes) = (
        batch(version.adds, &added_by)?,
        batch(version.removes, &removed_by)?,
    );
    let changes = |files: &FileBatch, row: usize| {
        files
            .data_change
            .as_ref()
            .is_none_or(|flags| flags.is_null(row) || flags.value(row))
    };
    let removed: HashMap<&str, usize> = (0..removes.files.len())
        .filter(|row| changes(&removes.files, *row))
        .map(|row| (removes.files.path.value(row), row))
        .collect();
    let mut paired = vec![false; removes.files.len()];
    let mut out = Vec::new();
    let file = |batch: &Arc<PlanBatch>, row, source, rows| ChangedFile {
        batch: Arc::clone(batch),
        partitioned_by: Arc::clone(if Arc::ptr_eq(batch, &removes) {
            &removed_by
        } else {
            &added_by
        }),
        row,
        source,
        rows,
    };
    for row in (0..adds.files.len()).filter(|row| changes(&adds.files, *row)) {
        let Some(other) = removed.get(adds.files.path.value(row)) else {
            out.push(file(&adds, row, ChangeSource::Insert, LiveRows::Live));
            continue;
        };
        if let Some(slot) = paired.get_mut(*other) {
            *slot = true;
        }
        let positions = |batch: &Arc<PlanBatch>, row: usize| -> Result<RoaringBitmapArray> {
            Ok(load_vector(snapshot.stores(), batch, row)
                .at_version(number)?
                .map(|vector| vector.positions().clone())
                .unwrap_or_default())
        };
        let (now, before) = (positions(&adds, row)?, positions(&removes, *other)?);
        for (more, less, source) in [
            (&now, &before, ChangeSource::Delete),
            (&before, &now, ChangeSource::Insert),
        ] {
            let difference =
                RoaringBitmapArray::from_ascending(more.iter().filter(|at| !less.contains(*at)))?;
            if !difference.is_empty() {
                let rows = LiveRows::Only(Arc::new(difference));
                out.push(file(&adds, row, source, rows));
            }
        }
    }
    for (row, paired) in paired.iter().enumerate() {
        if !paired && changes(&removes.files, row) {
            out.push(file(&removes, row, ChangeSource::Delete, LiveRows::Live));
        }
    }
    Ok(out)
}

/// A batch with the partition values of some of the parsed columns.
fn partitioned_batch(
    snapshot: &Snapshot,
    mut files: FileBatch,
    parsed_columns: &[String],
    columns: &[String],
) -> Result<Arc<PlanBatch>> {
    let fields: Vec<&StructField> = columns
        .iter()
        .filter_map(|name| snapshot.schema().field(name))
        .collect();
    let position = |name: &String| parsed_columns.iter().position(|parsed| parsed == name);
    files.partition = columns
        .iter()
        .filter_map(|name| files.partition.get(position(name)?).cloned())
        .collect();
    let leaves = LeafColumns::default();
    PlanBatch::with_partition_fields(snapshot, &fields, files, &leaves, false).map(Arc::new)
}

/// The schema of [`file_batch`] for files with some of these partition columns.
pub(super) fn file_schema(snapshot: &Snapshot, columns: &[String]) -> SchemaRef {
    let partition: Fields = columns
        .iter()
        .filter_map(|name| snapshot.schema().field(name))
        .map(|f| Field::new(&f.name, f.data_type.to_arrow(StringLayout::Plain), true))
        .collect();
    let time = Arrow::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    Arc::new(Schema::new(vec![
        Field::new("path", Arrow::Utf8, false),
        Field::new("size_bytes", Arrow::Int64, false),
        Field::new("modification_time", Arrow::Int64, false),
        Field::new("num_rows", Arrow::Int64, true),
        Field::new("excluded", Arrow::List(word_field()), true),
        Field::new("change_type", Arrow::Utf8, true),
        Field::new("commit_version", Arrow::Int64, false),
        Field::new("commit_timestamp", time, false),
        Field::new("partition", Arrow::Struct(partition), false),
        Field::new("partition_columns", Arrow::List(name_field()), false),
    ]))
}

fn name_field() -> Arc<Field> {
    Arc::new(Field::new("item", Arrow::Utf8, false))
}

fn word_field() -> Arc<Field> {
    Arc::new(Field::new("item", Arrow::Int64, false))
}

/// The files that hold the changes of a version at `time_ms`, in the schema of [`file_schema`].
///
/// # Errors
/// As [`changed_files`]; errors of opening a file whose size or row count the log lacks.
pub(super) fn file_batch(
    snapshot: &Snapshot,
    version: VersionActions,
    time_ms: i64,
    schema: &SchemaRef,
) -> Result<RecordBatch> {
    let number = version.commit.version;
    let files = changed_files(snapshot, version)?;
    let mut excluded = ExcludedRows::default();
    let (mut paths, mut sizes, mut times, mut rows) = (vec![], vec![], vec![], vec![]);
    for file in &files {
        let log = &file.batch.files;
        paths.push(checked(snapshot, log.path.value(file.row)).at_version(number)?);
        sizes.push(size_of(snapshot, log, file.row)?);
        let time = log.time.as_ref().filter(|times| times.is_valid(file.row));
        times.push(time.map_or(0, |times| times.value(file.row)));
        rows.push(excluded.push(snapshot, file).at_version(number)?);
    }
    let commit_times = TimestampMicrosecondArray::from(vec![time_ms * 1000; files.len()]);
    Ok(RecordBatch::try_new(
        Arc::clone(schema),
        vec![
            Arc::new(StringArray::from(paths)),
            Arc::new(Int64Array::from(sizes)),
            Arc::new(Int64Array::from(times)),
            Arc::new(Int64Array::from(rows)),
            excluded.finish()?,
            Arc::new(StringArray::from_iter(
                files.iter().map(|file| file.source.change_type()),
            )),
            Arc::new(Int64Array::from(vec![number; files.len()])),
            Arc::new(commit_times.with_timezone("UTC")),
            partition_values(schema, &files)?,
            partition_columns(&files)?,
        ],
    )?)
}

/// The size of a file; a remove need not contain it.
fn size_of(snapshot: &Snapshot, files: &FileBatch, row: usize) -> Result<i64> {
    if files.size.is_valid(row) {
        return Ok(files.size.value(row));
    }
    let file = snapshot
        .stores()
        .file(&canonical(files.path.value(row))?, None)?;
    Ok(i64::try_from(file.size()?).unwrap_or(i64::MAX))
}

/// The names of the partition columns of each file.
fn partition_columns(files: &[ChangedFile]) -> Result<ArrayRef> {
    let lengths = files.iter().map(|file| file.partitioned_by.len());
    let names: StringArray = files
        .iter()
        .flat_map(|file| file.partitioned_by.iter())
        .map(Some)
        .collect();
    Ok(Arc::new(ListArray::try_new(
        name_field(),
        OffsetBuffer::from_lengths(lengths),
        Arc::new(names),
        None,
    )?))
}

/// The partition values of the files, as a struct by logical column; null in columns that do not
/// partition a file.
fn partition_values(schema: &SchemaRef, files: &[ChangedFile]) -> Result<ArrayRef> {
    let Arrow::Struct(fields) = schema.field_with_name("partition")?.data_type() else {
        return Err(Error::internal("partition is not a struct"));
    };
    if fields.is_empty() {
        return Ok(Arc::new(StructArray::new_empty_fields(files.len(), None)));
    }
    let mut batches: Vec<&ChangedFile> = Vec::new();
    let mut indices = Vec::with_capacity(files.len());
    for file in files {
        let known = batches
            .iter()
            .position(|first| Arc::ptr_eq(&first.batch, &file.batch));
        indices.push((known.unwrap_or(batches.len()), file.row));
        if known.is_none() {
            batches.push(file);
        }
    }
    let column = |field: &Arc<Field>| -> Result<ArrayRef> {
        let values_of = |file: &&ChangedFile| {
            let columns = &file.partitioned_by;
            let at = columns.iter().position(|name| name == field.name());
            match at.and_then(|at| file.batch.partition.get(at)) {
                Some(values) => Ok(arrow_cast::cast(values, field.data_type())?),
                None => Ok(new_null_array(field.data_type(), file.batch.files.len())),
            }
        };
        let arrays = batches
            .iter()
            .map(values_of)
            .collect::<Result<Vec<ArrayRef>>>()?;
        if arrays.is_empty() {
            return Ok(arrow_array::new_empty_array(field.data_type()));
        }
        let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
        Ok(interleave(&arrays, &indices)?)
    };
    let columns = fields.iter().map(column).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(StructArray::try_new(
        fields.clone(),
        columns,
        None,
    )?))
}

/// The rows of each file that are not changes, as bitmaps.
#[derive(Default)]
struct ExcludedRows {
    words: Vec<i64>,
    ends: Vec<usize>,
    is_given: Vec<bool>,
}

impl ExcludedRows {
    /// Adds a file; returns the number of its changes if the log has it.
    fn push(&mut self, snapshot: &Snapshot, file: &ChangedFile) -> Result<Option<i64>> {
        let log = &file.batch.files;
        let path = log.path.value(file.row);
        let records = file
            .batch
            .stats
            .as_ref()
            .filter(|stats| stats.num_records.is_valid(file.row))
            .map(|stats| stats.num_records.value(file.row));
        let (is_given, changes) = match &file.rows {
            LiveRows::All => (false, records),
            LiveRows::Live | LiveRows::Without(_) => {
                let vector = load_vector(snapshot.stores(), &file.batch, file.row)?;
                let deleted = vector.as_ref().map_or(0, |vector| vector.cardinality());
                if let Some(vector) = &vector {
                    push_bitmap(&mut self.words, vector.positions(), path)?;
                }
                let deleted = i64::try_from(deleted).unwrap_or(i64::MAX);
                let live = records.and_then(|records| records.checked_sub(deleted));
                (vector.is_some(), live.filter(|live| *live >= 0))
            }
            LiveRows::Only(changed) => {
                let records = match records.and_then(|records| u64::try_from(records).ok()) {
                    Some(records) => records,
                    None => {
                        let size = u64::try_from(size_of(snapshot, log, file.row)?).ok();
                        let object = snapshot.stores().file(&canonical(path)?, size)?;
                        read_footer(&object)?.num_rows()
                    }
                };
                push_inverted_bitmap(&mut self.words, changed, records, path)?;
                (true, i64::try_from(changed.len()).ok())
            }
        };
        self.is_given.push(is_given);
        self.ends.push(self.words.len());
        Ok(changes)
    }

    /// The list column of all files.
    fn finish(self) -> Result<ArrayRef> {
        let mut offsets: Vec<i32> = vec![0];
        for end in self.ends {
            offsets.push(i32::try_from(end).map_err(|_| {
                Error::unsupported("the deletion vectors of one version are too large to list")
            })?);
        }
        Ok(Arc::new(ListArray::try_new(
            word_field(),
            OffsetBuffer::new(ScalarBuffer::from(offsets)),
            Arc::new(Int64Array::from(self.words)),
            Some(NullBuffer::from(self.is_given)),
        )?))
    }
}
