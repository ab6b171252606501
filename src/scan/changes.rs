//! The change data feed: a range of versions -> inserted, updated and deleted rows.
//!
//! A version with change data files is read from these alone. In any other version adds are inserts
//! and removes are deletes; where both name one data file, the changed rows are the difference of
//! their deletion vectors. The columns are those of the newest schema, or of the range's last
//! version where column mapping is on, as in delta-spark.
//!
//! Protocol: "Add CDC File", "Reader Requirements for AddCDCFile". Cost: the commits of the range,
//! then their files.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
    TimestampMicrosecondArray,
};
use arrow_schema::{DataType as Arrow, Field, SchemaRef, TimeUnit};
use bytes::Bytes;

use super::BatchStream;
use super::columns::LeafColumns;
use super::plan::PlanBatch;
use super::read::{AHEAD, FileTask, LiveRows, ScanContext, ScanRequest, load_vector, read_tasks};
use crate::dv::RoaringBitmapArray;
use crate::error::{Error, NotFoundKind, Result, ResultExt};
use crate::exec::{CancellationToken, map_all};
use crate::expr::BoundExpr;
use crate::history::{self, TimestampSearch};
use crate::log::{CommitFile, LogListing};
use crate::parse::commit::{self, ActionSelection, NonFileAction};
use crate::parse::{FileActionProjection, FileBatch};
use crate::protocol::action::Metadata;
use crate::protocol::features::ColumnMapping;
use crate::protocol::schema::{DataType, StringLayout, StructType};
use crate::reconcile::CommitCache;
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
            format!("invalid table version: {start}, where the newest version is {newest}; `allow_out_of_range` gives an empty feed instead"),
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
    check_recorded(
        &named,
        start,
        end,
        &read_versions(&named, &named.log().list(start)?, start, end)?,
    )?;
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

/// One version's actions.
struct VersionActions {
    commit: CommitFile,
    adds: FileBatch,
    removes: FileBatch,
    cdc: FileBatch,
    metadata: Option<Metadata>,
}

/// Commits that are read by one job: a job costs more than a small commit.
const JOB: usize = 8;

fn read_versions(
    snapshot: &Snapshot,
    listing: &LogListing,
    start: i64,
    end: i64,
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
        partition: snapshot
            .partition_fields()
            .iter()
            .map(|f| snapshot.physical_name(f).to_owned())
            .collect(),
        row_ids: true,
        data_change: true,
        ..FileActionProjection::default()
    };
    let take = ActionSelection {
        adds: Some(wanted.clone()),
        removes: Some(wanted.clone()),
        cdc: Some(wanted),
        protocol_and_metadata: true,
        ..ActionSelection::default()
    };
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

/// Refuses versions whose changes were not recorded, and schemas that cannot be read as the feed's
/// schema.
fn check_recorded(
    snapshot: &Snapshot,
    start: i64,
    end: i64,
    versions: &[VersionActions],
) -> Result<()> {
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
    Ok(())
}

fn compatible(schema: &StructType, snapshot: &Snapshot, version: i64) -> Result<()> {
    for field in &schema.fields {
        let physical = snapshot.physical_name(field);
        let Some(now) = snapshot
            .schema()
            .fields
            .iter()
            .find(|f| snapshot.physical_name(f) == physical)
        else {
            return Err(Error::unsupported(format!(
                "the column `{}` of version {version} is not in the schema of the feed; ask for a range on one side of the schema change",
                field.name
            ))
            .at_version(version));
        };
        if !is_widening(&field.data_type, &now.data_type) {
            return Err(Error::schema_mismatch(
                format!("the type of the column `{}` changed in the range; ask for a range on one side of the change", field.name),
                now.data_type.to_string(),
                field.data_type.to_string(),
            )
            .at_version(version));
        }
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
        (D::Byte, D::Short | D::Integer | D::Long | D::Double | D::Decimal(..))
        | (D::Short, D::Integer | D::Long | D::Double | D::Decimal(..))
        | (D::Integer, D::Long | D::Double | D::Decimal(..))
        | (D::Long, D::Decimal(..))
        | (D::Float, D::Double)
        | (D::Date, D::TimestampNtz)
        | (D::Void, _) => true,
        (D::Decimal(p, s), D::Decimal(q, t)) => {
            t >= s && i16::from(*q) - i16::from(*t) >= i16::from(*p) - i16::from(*s)
        }
        (a, b) => a.to_string() == b.to_string(),
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
    let mut read: Vec<String> = Vec::new();
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
        if !read.contains(&name) {
            read.push(name);
        }
    }
    let scan = ScanRequest {
        columns: Some(read),
        layout: request.layout,
        ..ScanRequest::default()
    };
    let reading = || Ok::<_, Error>(ScanContext::new(&at_end, &scan, &feed)?.in_large_batches());
    let plain = Arc::new(reading()?);
    let only = Arc::new(reading()?.with_row_index());
    let from_files = Arc::new(reading()?.with_raw(0, CHANGE_TYPE, DataType::String));
    let mut tasks: Vec<(Arc<ScanContext>, FileTask)> = Vec::new();
    if let Some((start, end)) = range {
        // The history of the whole log, since the time of a version depends on earlier ones.
        let listing = at_end.log().list(0)?;
        let versions = read_versions(&at_end, &listing, start, end)?;
        check_recorded(&at_end, start, end, &versions)?;
        let times: HashMap<i64, i64> = history::version_timestamps(&at_end, &listing, start, end)?
            .into_iter()
            .collect();
        for version in versions {
            let time = times
                .get(&version.commit.version)
                .copied()
                .unwrap_or(version.commit.modified_ms);
            version_tasks(
                &at_end,
                version,
                time,
                [&plain, &only, &from_files],
                &mut tasks,
            )?;
        }
    }
    let all = read_tasks(Arc::clone(&plain.schema), tasks, AHEAD, &request.cancel);
    projected(all, &wanted, request.predicate.clone())
}

/// Filters and projects the feed's batches.
fn projected(
    all: BatchStream,
    wanted: &[String],
    predicate: Option<BoundExpr>,
) -> Result<BatchStream> {
    let positions = wanted
        .iter()
        .map(|name| {
            let exact = all.schema.fields().iter().position(|f| f.name() == name);
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

/// The files that hold a version's changes.
fn version_tasks(
    snapshot: &Snapshot,
    version: VersionActions,
    time_ms: i64,
    [plain, only, from_files]: [&Arc<ScanContext>; 3],
    tasks: &mut Vec<(Arc<ScanContext>, FileTask)>,
) -> Result<()> {
    let number = version.commit.version;
    let batch = |files: FileBatch| -> Result<Arc<PlanBatch>> {
        Ok(Arc::new(PlanBatch::new(
            snapshot,
            files,
            &LeafColumns::default(),
            false,
        )?))
    };
    let commit_version = || Arc::new(Int64Array::from(vec![number])) as ArrayRef;
    let commit_time = || {
        Arc::new(
            TimestampMicrosecondArray::from(vec![time_ms.saturating_mul(1000)])
                .with_timezone("UTC"),
        ) as ArrayRef
    };
    if !version.cdc.is_empty() {
        let files = batch(version.cdc)?;
        let constants = Arc::new(vec![commit_version(), commit_time()]);
        for row in 0..files.files.len() {
            let task = FileTask {
                batch: Arc::clone(&files),
                row,
                range: None,
                rows: LiveRows::All,
                constants: Arc::clone(&constants),
                place: 0,
            };
            tasks.push((Arc::clone(from_files), task));
        }
        return Ok(());
    }
    let kind = |name: &str| {
        Arc::new(vec![
            Arc::new(StringArray::from(vec![name])) as ArrayRef,
            commit_version(),
            commit_time(),
        ])
    };
    let (insert, delete) = (kind("insert"), kind("delete"));
    let (adds, removes) = (batch(version.adds)?, batch(version.removes)?);
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
    let task = |batch: &Arc<PlanBatch>,
                row: usize,
                rows: LiveRows,
                constants: &Arc<Vec<ArrayRef>>| FileTask {
        batch: Arc::clone(batch),
        row,
        range: None,
        rows,
        constants: Arc::clone(constants),
        place: 0,
    };
    for row in (0..adds.files.len()).filter(|row| changes(&adds.files, *row)) {
        let Some(other) = removed.get(adds.files.path.value(row)) else {
            tasks.push((Arc::clone(plain), task(&adds, row, LiveRows::Live, &insert)));
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
        for (more, less, constants) in [(&now, &before, &delete), (&before, &now, &insert)] {
            let difference =
                RoaringBitmapArray::from_ascending(more.iter().filter(|at| !less.contains(*at)))?;
            if !difference.is_empty() {
                tasks.push((
                    Arc::clone(only),
                    task(&adds, row, LiveRows::Only(Arc::new(difference)), constants),
                ));
            }
        }
    }
    for (row, paired) in paired.iter().enumerate() {
        if !paired && changes(&removes.files, row) {
            tasks.push((
                Arc::clone(plain),
                task(&removes, row, LiveRows::Live, &delete),
            ));
        }
    }
    Ok(())
}
