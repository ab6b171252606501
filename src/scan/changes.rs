//! The change data feed: a range of versions -> inserted, updated and deleted rows.
//!
//! The columns are those of the newest schema, or of the range's last version where column mapping
//! is on, as in delta-spark; `changed_files` finds the files.
//!
//! Protocol: "Add CDC File", "Reader Requirements for AddCDCFile". Cost: the commits of the range,
//! then their files.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
    TimestampMicrosecondArray,
};
use arrow_schema::{DataType as Arrow, Field, SchemaRef, TimeUnit};
use rustc_hash::{FxHashMap, FxHashSet};

use super::BatchStream;
use super::changed_files::{
    ActionDetail, ChangeSource, ChangedFile, PartitionColumns, VersionActions, changed_files,
    file_batch, file_schema, read_versions,
};
use super::read::{AHEAD, FileTask, LiveRows, ScanContext, ScanRequest, read_tasks};
use crate::error::{CallOption, Error, ErrorCode, NotFoundKind, Result, ResultExt};
use crate::exec::{CancellationToken, ProgressCounter, map_all};
use crate::expr::BoundExpr;
use crate::history::{self, TimestampSearch};
use crate::protocol::action::Metadata;
use crate::protocol::evolution;
use crate::protocol::features::ColumnMapping;
use crate::protocol::schema::{DataType, StringLayout, StructField, StructType};
use crate::snapshot::Snapshot;

/// The type of change: `insert`, `update_preimage`, `update_postimage`, `delete`.
const CHANGE_TYPE: &str = "_change_type";
/// The version of the change.
const COMMIT_VERSION: &str = "_commit_version";
/// The time of that version.
const COMMIT_TIMESTAMP: &str = "_commit_timestamp";

/// The part of the change data feed to read.
#[derive(Debug, Clone, Default)]
pub struct ChangeRequest {
    /// First version; wins over `starting_timestamp_ms`.
    pub starting_version: Option<i64>,
    /// Last version, included; the newest if neither it nor `ending_timestamp_ms` is given.
    pub ending_version: Option<i64>,
    /// Starts with the first version at or after this time.
    pub starting_timestamp_ms: Option<i64>,
    /// Ends with the last version at or before this time.
    pub ending_timestamp_ms: Option<i64>,
    /// Columns in output order, including those of the change data feed; all if `None`.
    pub columns: Option<Vec<String>>,
    /// Rows for which this is not true are left out; may refer to the columns of the change data
    /// feed.
    pub predicate: Option<BoundExpr>,
    /// A range beyond the newest version is empty instead of an error.
    pub allow_out_of_range: bool,
    /// The columns are those of the snapshot, also if columns are mapped.
    pub as_opened: bool,
    /// The layout of strings.
    pub layout: StringLayout,
    /// Cancels the work.
    pub cancel: CancellationToken,
}

fn change_data_fields(layout: StringLayout) -> Vec<Field> {
    vec![
        Field::new(CHANGE_TYPE, DataType::String.to_arrow(layout), true),
        Field::new(COMMIT_VERSION, Arrow::Int64, true),
        Field::new(
            COMMIT_TIMESTAMP,
            Arrow::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            true,
        ),
    ]
}

/// The versions of a range; `None` if it is empty and the caller allows that.
fn range(snapshot: &Snapshot, request: &ChangeRequest) -> Result<Option<(i64, i64)>> {
    let newest = snapshot.version();
    let out_of_range = |error: Error| {
        if request.allow_out_of_range
            && matches!(
                error,
                Error::NotFound {
                    kind: NotFoundKind::Version,
                    ..
                }
            )
        {
            Ok(None)
        } else {
            Err(error)
        }
    };
    let start = match (request.starting_version, request.starting_timestamp_ms) {
        (Some(version), _) => version,
        (None, Some(time)) => match history::version_at(snapshot, time, TimestampSearch::AtOrAfter)
        {
            Ok(version) => version,
            Err(error) => return out_of_range(error),
        },
        (None, None) => 0,
    };
    let end = match (request.ending_version, request.ending_timestamp_ms) {
        (Some(version), _) => version.min(newest),
        (None, Some(time)) => {
            match history::version_at(snapshot, time, TimestampSearch::AtOrBefore) {
                Ok(version) => version,
                Err(error) => return out_of_range(error),
            }
        }
        (None, None) => newest,
    };
    if start < 0 {
        return Err(Error::invalid(format!(
            "the starting version {start} is negative"
        )));
    }
    if start > newest {
        let error = Error::not_found(
            NotFoundKind::Version,
            format!(
                "invalid table version: {start}, where the newest version is {newest}; {} gives an empty feed instead",
                CallOption::AllowOutOfRange
            ),
        )
        .with_code(
            ErrorCode::ChangeFeedStartTooLate,
            &[("version", &start), ("newest", &newest)],
        )
        .at_version(start);
        return out_of_range(error);
    }
    let asked_end = request.ending_version.unwrap_or(end);
    if start > asked_end.min(end) {
        if request.allow_out_of_range {
            return Ok(None);
        }
        return Err(Error::invalid(format!(
            "the starting version {start} is after the ending version {asked_end}"
        )));
    }
    Ok(Some((start, end)))
}

/// The requested versions, the last included; `None` if the range is empty and the caller allows
/// that.
///
/// # Errors
/// As [`changes`].
pub fn change_range(snapshot: &Snapshot, request: &ChangeRequest) -> Result<Option<(i64, i64)>> {
    let Some((start, end)) = range(snapshot, request)? else {
        return Ok(None);
    };
    let named = names_of(snapshot, Some((start, end)), request)?;
    let listing = named.log().list(start)?;
    let columns = current_partition_columns(&named);
    let versions = read_versions(&named, &listing, start, end, &columns, ActionDetail::Rows)?;
    check_recorded(&named, start, end, &versions)?;
    Ok(Some((start, end)))
}

/// The version whose schema the change data feed has.
fn names_of(
    snapshot: &Snapshot,
    range: Option<(i64, i64)>,
    request: &ChangeRequest,
) -> Result<Snapshot> {
    match range {
        Some((_, end)) if !request.as_opened && snapshot.mapping() != ColumnMapping::None => {
            snapshot.at(Some(end))
        }
        _ => Ok(snapshot.clone()),
    }
}

/// The versions of a range, whose changes were recorded, with their times (milliseconds since the
/// epoch).
fn timed_versions(
    snapshot: &Snapshot,
    start: i64,
    end: i64,
    detail: ActionDetail,
) -> Result<Vec<(VersionActions, i64)>> {
    // The history of the whole log, since the time of a version depends on earlier ones.
    let listing = snapshot.log().list(0)?;
    let current = current_partition_columns(snapshot);
    let mut versions = read_versions(snapshot, &listing, start, end, &current, detail)?;
    let at_start = check_recorded(snapshot, start, end, &versions)?;
    let columns = partition_columns(snapshot, &at_start, &versions)?;
    let all = union(&current, &columns);
    if all.len() > current.len() {
        versions = read_versions(snapshot, &listing, start, end, &Arc::new(all), detail)?;
    }
    for (version, columns) in versions.iter_mut().zip(columns) {
        (version.added_by, version.removed_by) = (columns.added_by, columns.removed_by);
    }
    let times: HashMap<i64, i64> = history::version_timestamps(snapshot, &listing, start, end)?
        .into_iter()
        .collect();
    let timed = |version: VersionActions| {
        let time = times.get(&version.commit.version).copied();
        let time = time.unwrap_or(version.commit.modified_ms);
        (version, time)
    };
    Ok(versions.into_iter().map(timed).collect())
}

fn current_partition_columns(snapshot: &Snapshot) -> PartitionColumns {
    Arc::new(snapshot.metadata().partition_columns.clone())
}

/// The partition columns of the files that a version adds and removes.
struct VersionPartitioning {
    added_by: PartitionColumns,
    removed_by: PartitionColumns,
}

/// For each version the partition columns of its files. Only an overwrite of the whole table changes
/// them, so files have those of the version that they belong to: added ones those after the commit,
/// removed ones those before it.
fn partition_columns(
    snapshot: &Snapshot,
    at_start: &Snapshot,
    versions: &[VersionActions],
) -> Result<Vec<VersionPartitioning>> {
    let mut current = partition_columns_of(snapshot, at_start.metadata())?;
    let mut partitionings = Vec::with_capacity(versions.len());
    for (n, version) in versions.iter().enumerate() {
        let number = version.commit.version;
        let mut removed_by = Arc::clone(&current);
        if let Some(metadata) = &version.metadata {
            current = partition_columns_of(snapshot, metadata).at_version(number)?;
            if n == 0 && number > 0 && version.has_removes() {
                let before = snapshot.at(Some(number - 1))?;
                removed_by = partition_columns_of(snapshot, before.metadata())
                    .at_version(before.version())?;
            }
        }
        partitionings.push(VersionPartitioning {
            added_by: Arc::clone(&current),
            removed_by,
        });
    }
    Ok(partitionings)
}

/// The partition columns of a version's metadata that the feed has, by their names in the feed.
fn partition_columns_of(snapshot: &Snapshot, metadata: &Metadata) -> Result<PartitionColumns> {
    if metadata.partition_columns.is_empty()
        || metadata.schema_string == snapshot.metadata().schema_string
    {
        return Ok(Arc::new(metadata.partition_columns.clone()));
    }
    let schema = StructType::parse(&metadata.schema_string)?;
    let columns = physical_columns(snapshot);
    let mut names = Vec::with_capacity(metadata.partition_columns.len());
    for field in metadata
        .partition_columns
        .iter()
        .filter_map(|name| schema.field(name))
    {
        let Some(now) = same_column(&columns, field) else {
            continue;
        };
        check_widening(field, now)?;
        names.push(now.name.clone());
    }
    Ok(Arc::new(names))
}

/// All partition columns, the current ones first.
fn union(current: &[String], partitionings: &[VersionPartitioning]) -> Vec<String> {
    let mut all = current.to_vec();
    for name in partitionings
        .iter()
        .flat_map(|columns| columns.added_by.iter().chain(columns.removed_by.iter()))
    {
        if !all.contains(name) {
            all.push(name.clone());
        }
    }
    all
}

/// Refuses versions whose changes were not recorded, and schemas that cannot be read as the feed's
/// schema; returns the snapshot of the first version.
fn check_recorded(
    snapshot: &Snapshot,
    start: i64,
    end: i64,
    versions: &[VersionActions],
) -> Result<Snapshot> {
    // If no later commit changed the metadata, it was the same at the start as now.
    let changed = snapshot.version() > end
        || versions
            .iter()
            .any(|version| version.commit.version > start && version.metadata.is_some());
    let at_start = if changed {
        snapshot.at(Some(start))?
    } else {
        snapshot.clone()
    };
    let not_recorded = |version: i64| {
        Error::not_recorded(format!(
            "the change data of version {version} was not recorded (asked for: {start} to {end}); the table property `delta.enableChangeDataFeed` was not true then"
        ))
        .with_code(
            ErrorCode::ChangeDataNotRecorded,
            &[("version", &version), ("start", &start), ("end", &end)],
        )
        .at_version(version)
    };
    let enabled = |metadata: &Metadata| metadata.flag("delta.enableChangeDataFeed");
    if !enabled(at_start.metadata()) {
        return Err(not_recorded(start));
    }
    compatible(at_start.schema(), snapshot, start)?;
    for version in versions {
        if let Some(metadata) = &version.metadata {
            if !enabled(metadata) {
                return Err(not_recorded(version.commit.version));
            }
            compatible(
                &StructType::parse(&metadata.schema_string).at_version(version.commit.version)?,
                snapshot,
                version.commit.version,
            )?;
        }
    }
    Ok(at_start)
}

/// The column of the feed that a column of another version is.
fn same_column<'a>(columns: &PhysicalColumns<'a>, field: &StructField) -> Option<&'a StructField> {
    let (snapshot, by_physical_name) = columns;
    by_physical_name.get(snapshot.physical_name(field)).copied()
}

/// The columns of a snapshot by physical name.
type PhysicalColumns<'a> = (&'a Snapshot, FxHashMap<&'a str, &'a StructField>);

fn physical_columns(snapshot: &Snapshot) -> PhysicalColumns<'_> {
    let mut by_physical_name: FxHashMap<&str, &StructField> = FxHashMap::default();
    for field in &snapshot.schema().fields {
        by_physical_name
            .entry(snapshot.physical_name(field))
            .or_insert(field);
    }
    (snapshot, by_physical_name)
}

fn check_widening(field: &StructField, now: &StructField) -> Result<()> {
    if is_widening(&field.data_type, &now.data_type) {
        return Ok(());
    }
    Err(Error::schema_mismatch(
        format!(
            "the type of the column `{}` changed in the range; ask for a range on one side of the change",
            field.name
        ),
        now.data_type.to_string(),
        field.data_type.to_string(),
    ))
}

fn compatible(schema: &StructType, snapshot: &Snapshot, version: i64) -> Result<()> {
    let columns = physical_columns(snapshot);
    for field in &schema.fields {
        let Some(now) = same_column(&columns, field) else {
            return Err(Error::unsupported(format!(
                "the column `{}` of version {version} is not in the schema of the feed; ask for a range on one side of the schema change",
                field.name
            ))
            .at_version(version));
        };
        check_widening(field, now).at_version(version)?;
    }
    Ok(())
}

/// Whether values of an older type can be read as the newer one: equal, or wider, nested fields by
/// name.
fn is_widening(older: &DataType, newer: &DataType) -> bool {
    use DataType as D;
    match (older, newer) {
        (D::Struct(a), D::Struct(b)) => a.fields.iter().all(|f| {
            b.field(&f.name)
                .is_some_and(|g| is_widening(&f.data_type, &g.data_type))
        }),
        (D::Array(a), D::Array(b)) => is_widening(&a.element, &b.element),
        (D::Map(a), D::Map(b)) => is_widening(&a.key, &b.key) && is_widening(&a.value, &b.value),
        (D::Void, _) => true,
        (a, b) => a.to_string() == b.to_string() || evolution::can_widen(a, b),
    }
}

/// Streams the change data feed: the table's columns, then `_change_type` utf8, `_commit_version`
/// int64, `_commit_timestamp` timestamp\[us, UTC\].
///
/// # Errors
/// [`Error::NotRecorded`] for versions at which the change data feed was off, [`Error::NotFound`]
/// for versions that do not exist (any more), [`Error::Invalid`] for an impossible range.
pub fn changes(snapshot: &Snapshot, request: &ChangeRequest) -> Result<BatchStream> {
    let range = range(snapshot, request)?;
    let at_end = names_of(snapshot, range, request)?;
    let feed = change_data_fields(request.layout);
    let own: Vec<String> = at_end
        .schema()
        .fields
        .iter()
        .map(|f| f.name.clone())
        .filter(|name| !feed.iter().any(|f| f.name() == name))
        .collect();
    let wanted: Vec<String> = match &request.columns {
        Some(columns) => columns.clone(),
        None => own
            .iter()
            .cloned()
            .chain(feed.iter().map(|f| f.name().clone()))
            .collect(),
    };
    let is_feed = |name: &str| feed.iter().any(|f| f.name() == name);
    let (mut read, mut read_names) = (Vec::new(), FxHashSet::default());
    let filter_columns = request.predicate.iter().flat_map(|p| {
        p.column_names()
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    });
    for name in wanted
        .iter()
        .cloned()
        .chain(filter_columns)
        .filter(|name| !is_feed(name))
    {
        let name = at_end
            .schema()
            .field(&name)
            .map_or(name, |f| f.name.clone());
        if read_names.insert(name.clone()) {
            read.push(name);
        }
    }
    let scan = ScanRequest {
        columns: Some(read),
        layout: request.layout,
        ..ScanRequest::default()
    };
    let schema = ScanContext::new(&at_end, &scan, &feed)?.schema;
    let mut contexts = ChangeContexts {
        snapshot: &at_end,
        scan: &scan,
        feed: &feed,
        known: HashMap::new(),
    };
    let mut tasks: Vec<(Arc<ScanContext>, FileTask)> = Vec::new();
    if let Some((start, end)) = range {
        for (version, time) in timed_versions(&at_end, start, end, ActionDetail::Rows)? {
            let number = version.commit.version;
            for file in changed_files(&at_end, version)? {
                let context = contexts.of_file(&file)?;
                let task = FileTask {
                    batch: file.batch,
                    row: file.row,
                    range: None,
                    rows: file.rows,
                    constants: change_constants(file.source, number, time),
                    place: 0,
                };
                tasks.push((context, task));
            }
        }
    }
    let all = read_tasks(schema, tasks, AHEAD, &request.cancel);
    projected(all, &wanted, request.predicate.clone())
}

/// The contexts in which the feed's files are read, one for each way of reading them.
struct ChangeContexts<'a> {
    snapshot: &'a Snapshot,
    scan: &'a ScanRequest,
    feed: &'a [Field],
    known: HashMap<(PartitionColumns, ChangeReading), Arc<ScanContext>>,
}

/// How the changes of a file are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ChangeReading {
    /// All live rows changed.
    LiveRows,
    /// Rows at some positions changed.
    Positions,
    /// The file has the types of changes.
    ChangeFile,
}

impl ChangeContexts<'_> {
    fn of_file(&mut self, file: &ChangedFile) -> Result<Arc<ScanContext>> {
        let reading = match (file.source, &file.rows) {
            (ChangeSource::ChangeFile, _) => ChangeReading::ChangeFile,
            (_, LiveRows::Only(_)) => ChangeReading::Positions,
            _ => ChangeReading::LiveRows,
        };
        let key = (Arc::clone(&file.partitioned_by), reading);
        if let Some(context) = self.known.get(&key) {
            return Ok(Arc::clone(context));
        }
        let context = ScanContext::of_partitioned_files(
            self.snapshot,
            self.scan,
            self.feed,
            &file.partitioned_by,
        )?
        .in_large_batches();
        let context = Arc::new(match reading {
            ChangeReading::LiveRows => context,
            ChangeReading::Positions => context.with_row_index(),
            ChangeReading::ChangeFile => context.with_raw(0, CHANGE_TYPE, DataType::String),
        });
        self.known.insert(key, Arc::clone(&context));
        Ok(context)
    }
}

/// The values of the feed's columns that are the same in all rows of a file.
fn change_constants(source: ChangeSource, version: i64, time_ms: i64) -> Arc<Vec<ArrayRef>> {
    let time = TimestampMicrosecondArray::from(vec![time_ms.saturating_mul(1000)]);
    let change_type = source
        .change_type()
        .map(|name| Arc::new(StringArray::from(vec![name])) as ArrayRef);
    let own: [ArrayRef; 2] = [
        Arc::new(Int64Array::from(vec![version])),
        Arc::new(time.with_timezone("UTC")),
    ];
    Arc::new(change_type.into_iter().chain(own).collect())
}

/// Lists the files that hold the changes of some versions, for readers that open them themselves:
/// `path` utf8 as in the log, `size_bytes` int64, `modification_time` int64 (milliseconds since the
/// epoch), `num_rows` int64 (of changes; null if the log lacks it), `excluded` list<int64> (a bit
/// for each row that is not a change, the lowest first; null if all rows are), `change_type` utf8
/// (null if the file has the column `_change_type`), `commit_version` int64, `commit_timestamp`
/// timestamp\[us, UTC\], `partition` struct by logical column, `partition_columns` list<utf8> (the
/// columns that partition the file: a range may have files with different ones).
///
/// # Errors
/// As [`changes`].
pub fn change_files(snapshot: &Snapshot, request: &ChangeRequest) -> Result<BatchStream> {
    let range = range(snapshot, request)?;
    let at_end = names_of(snapshot, range, request)?;
    let mut schema = file_schema(&at_end, &at_end.metadata().partition_columns);
    let mut batches = Vec::new();
    if let Some((start, end)) = range {
        let versions = timed_versions(&at_end, start, end, ActionDetail::Files)?;
        if let Some((first, _)) = versions.first() {
            schema = file_schema(&at_end, &first.parsed_columns);
        }
        let (snapshot, out) = (at_end.clone(), Arc::clone(&schema));
        let cancel = request.cancel.clone();
        batches = map_all(versions, move |(version, time)| {
            cancel.check()?;
            file_batch(&snapshot, version, time, &out)
        })?;
    }
    Ok(BatchStream {
        schema,
        batches: Box::new(batches.into_iter().map(Ok)),
        progress: ProgressCounter::default(),
    })
}

/// Filters and projects the feed's batches.
fn projected(
    all: BatchStream,
    wanted: &[String],
    predicate: Option<BoundExpr>,
) -> Result<BatchStream> {
    let mut by_name: FxHashMap<&str, usize> = FxHashMap::default();
    for (n, field) in all.schema.fields().iter().enumerate() {
        by_name.entry(field.name()).or_insert(n);
    }
    let positions = wanted
        .iter()
        .map(|name| {
            let exact = by_name.get(name.as_str()).copied();
            exact
                .or_else(|| {
                    all.schema
                        .fields()
                        .iter()
                        .position(|f| f.name().eq_ignore_ascii_case(name))
                })
                .ok_or_else(|| Error::invalid(format!("the feed has no column `{name}`")))
        })
        .collect::<Result<Vec<usize>>>()?;
    let schema: SchemaRef = Arc::new(all.schema.project(&positions)?);
    let out = Arc::clone(&schema);
    let batches = all.batches.map(move |batch| {
        let mut batch = batch?;
        if let Some(predicate) = &predicate {
            let mask: BooleanArray = predicate.filter_mask(&batch)?;
            batch = arrow_select::filter::filter_record_batch(&batch, &mask)?;
        }
        let arrays = positions
            .iter()
            .filter_map(|at| batch.columns().get(*at).cloned())
            .collect();
        Ok(RecordBatch::try_new_with_options(
            Arc::clone(&out),
            arrays,
            &RecordBatchOptions::new().with_row_count(Some(batch.num_rows())),
        )?)
    });
    let batches = batches.filter(|batch| !matches!(batch, Ok(batch) if batch.num_rows() == 0));
    Ok(BatchStream {
        schema,
        batches: Box::new(batches),
        progress: all.progress,
    })
}
