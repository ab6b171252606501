//! The file list as Arrow: all forms of `get_add_actions`, distinct partitions, tombstones.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, RecordBatchOptions,
    StringArray, StringViewArray, StructArray, TimestampMillisecondArray,
};
use arrow_buffer::NullBuffer;
use arrow_cast::cast;
use arrow_schema::{DataType as Arrow, Field, Fields, Schema, SchemaRef, TimeUnit};
use rustc_hash::FxHashSet;

use super::BatchStream;
use super::columns::{LeafColumns, with_null_counts};
use super::plan::{PlanBatch, plan, projected_columns};
use crate::error::{Error, Result};
use crate::exec::{CancellationToken, ProgressCounter};
use crate::expr::BoundExpr;
use crate::parse::checkpoint::FileActionKind;
use crate::parse::{DvColumns, FileActionProjection, FileBatch};
use crate::protocol::schema::StringLayout;
use crate::snapshot::Snapshot;

/// The requested columns of the file list.
#[derive(Debug, Clone, Default)]
pub struct ActionColumns {
    /// Names of columns (`min`) or of parts of them (`min.x`); the usual ones if `None`.
    pub names: Option<Vec<String>>,
    /// Whether structs become columns of dotted names.
    pub flatten: bool,
    /// Only the files at these paths of the log.
    pub paths: Option<Arc<HashSet<String>>>,
}

const USUAL: &[&str] = &[
    "path",
    "size_bytes",
    "modification_time",
    "num_records",
    "null_count",
    "min",
    "max",
    "partition",
    "deletion_vector",
];
const ALL: &[&str] = &[
    "path",
    "size_bytes",
    "modification_time",
    "num_records",
    "null_count",
    "min",
    "max",
    "partition",
    "deletion_vector",
    "tags",
    "base_row_id",
    "default_row_commit_version",
    "clustering_provider",
    "data_change",
    "tight_bounds",
];

/// One output column, resolved once for all batches.
#[derive(Debug, Clone)]
enum ActionColumn {
    Path,
    Size,
    Time,
    NumRecords,
    TightBounds,
    NullCount(Vec<StatsColumnNode>),
    Min(Vec<StatsColumnNode>),
    Max(Vec<StatsColumnNode>),
    Partition(Vec<(String, usize)>),
    DeletionVector,
    Tags,
    BaseRowId,
    CommitVersion,
    Clustering,
    DataChange,
}

/// A tree of statistics leaves, nested as in the schema.
#[derive(Debug, Clone)]
enum StatsColumnNode {
    Leaf(String, usize),
    Parent(String, Vec<StatsColumnNode>),
}

fn tree(leaves: &[(Vec<String>, usize)], depth: usize) -> Vec<StatsColumnNode> {
    type Group = Vec<(Vec<String>, usize)>;
    let mut out: Vec<(String, Group)> = Vec::new();
    for (path, index) in leaves {
        let Some(name) = path.get(depth) else {
            continue;
        };
        match out.last_mut() {
            Some((last, group)) if last == name => group.push((path.clone(), *index)),
            _ => out.push((name.clone(), vec![(path.clone(), *index)])),
        }
    }
    out.into_iter()
        .map(|(name, group)| match group.as_slice() {
            [(path, index)] if path.len() == depth + 1 => StatsColumnNode::Leaf(name, *index),
            _ => StatsColumnNode::Parent(name, tree(&group, depth + 1)),
        })
        .collect()
}

fn outputs(
    snapshot: &Snapshot,
    columns: &ActionColumns,
    leaves: &LeafColumns,
) -> Result<Vec<ActionColumn>> {
    let names: Vec<String> = match &columns.names {
        Some(names) => names.clone(),
        None => USUAL.iter().map(ToString::to_string).collect(),
    };
    let partition = &snapshot.metadata().partition_columns;
    let mut parts: Vec<(&str, Vec<&str>)> = Vec::new();
    for name in &names {
        let (head, rest) = name
            .split_once('.')
            .map_or((name.as_str(), None), |(head, rest)| (head, Some(rest)));
        if !ALL.contains(&head) {
            return Err(Error::invalid(format!(
                "the file list has no column `{name}`; it has {}",
                ALL.join(", ")
            )));
        }
        match parts.iter_mut().find(|(known, _)| *known == head) {
            Some((_, rests)) => rests.extend(rest),
            None => parts.push((head, rest.into_iter().collect())),
        }
    }
    parts
        .into_iter()
        .map(|(head, rests)| {
            let chosen = |path: &str| {
                rests.is_empty()
                    || rests.iter().any(|rest| {
                        path == *rest
                            || path
                                .strip_prefix(rest)
                                .is_some_and(|tail| tail.starts_with('.'))
                    })
            };
            let stats = |bounds: bool| {
                let chosen: Vec<(Vec<String>, usize)> = leaves
                    .logical
                    .iter()
                    .zip(&leaves.physical)
                    .enumerate()
                    .filter(|(_, (path, leaf))| (!bounds || leaf.bounds) && chosen(&path.join(".")))
                    .map(|(n, (path, _))| (path.clone(), n))
                    .collect();
                tree(&chosen, 0)
            };
            Ok(match head {
                "path" => ActionColumn::Path,
                "size_bytes" => ActionColumn::Size,
                "modification_time" => ActionColumn::Time,
                "num_records" => ActionColumn::NumRecords,
                "tight_bounds" => ActionColumn::TightBounds,
                "null_count" => ActionColumn::NullCount(stats(false)),
                "min" => ActionColumn::Min(stats(true)),
                "max" => ActionColumn::Max(stats(true)),
                "partition" => ActionColumn::Partition(
                    partition
                        .iter()
                        .enumerate()
                        .filter(|(_, name)| chosen(name))
                        .map(|(n, name)| (name.clone(), n))
                        .collect(),
                ),
                "deletion_vector" => ActionColumn::DeletionVector,
                "tags" => ActionColumn::Tags,
                "base_row_id" => ActionColumn::BaseRowId,
                "default_row_commit_version" => ActionColumn::CommitVersion,
                "clustering_provider" => ActionColumn::Clustering,
                _ => ActionColumn::DataChange,
            })
        })
        .collect()
}

/// The leaves that any output needs.
fn used(nodes: &[StatsColumnNode], out: &mut Vec<usize>) {
    for node in nodes {
        match node {
            StatsColumnNode::Leaf(_, index) => out.push(*index),
            StatsColumnNode::Parent(_, children) => used(children, out),
        }
    }
}

/// The parts of file actions that the output columns need.
#[derive(Default)]
struct RequiredFields {
    /// Which of the optional fields.
    optional: FileActionProjection,
    with_stats: bool,
    /// The leaves with statistics, as positions among all leaves.
    leaves: Vec<usize>,
}

impl RequiredFields {
    /// Collects the requirements of all output columns.
    fn of(outputs: &[ActionColumn]) -> Self {
        let mut out = Self::default();
        for output in outputs {
            match output {
                ActionColumn::NullCount(nodes)
                | ActionColumn::Min(nodes)
                | ActionColumn::Max(nodes) => {
                    out.with_stats = true;
                    used(nodes, &mut out.leaves);
                }
                ActionColumn::NumRecords | ActionColumn::TightBounds => out.with_stats = true,
                ActionColumn::Tags => out.optional.tags = true,
                ActionColumn::Time => out.optional.time = true,
                ActionColumn::DataChange => out.optional.data_change = true,
                ActionColumn::Clustering => out.optional.clustering = true,
                _ => {}
            }
        }
        out
    }

    /// The columns to parse of adds; of the statistics those of `leaves`.
    fn projection(self, snapshot: &Snapshot, leaves: &LeafColumns) -> FileActionProjection {
        FileActionProjection {
            tags: self.optional.tags,
            time: self.optional.time,
            data_change: self.optional.data_change,
            clustering: self.optional.clustering,
            ..projected_columns(snapshot, leaves, self.with_stats)
        }
    }
}

/// The path of a live file and the unique id of its deletion vector.
type FileKey = (String, Option<String>);

/// Finds the files that may hold a row that matches the predicate.
fn matching_files(
    snapshot: &Snapshot,
    predicate: &BoundExpr,
    cancel: &CancellationToken,
) -> Result<HashSet<FileKey>> {
    let plan = plan(snapshot, Some(predicate), cancel)?;
    let mut keys = HashSet::new();
    for (batch, keep) in &plan.batches {
        for row in (0..keep.len()).filter(|row| keep.value(*row)) {
            keys.insert((
                batch.files.path.value(row).to_owned(),
                batch.files.dv_unique_id(row),
            ));
        }
    }
    Ok(keys)
}

/// The files to list; all if both are `None`.
struct FileSelection {
    paths: Option<Arc<HashSet<String>>>,
    keys: Option<HashSet<FileKey>>,
}

impl FileSelection {
    /// Removes the files that are not selected.
    fn filter(&self, mut files: FileBatch) -> Result<FileBatch> {
        if let Some(paths) = &self.paths {
            let keep: Vec<bool> = (0..files.len())
                .map(|row| paths.contains(files.path.value(row)))
                .collect();
            files = files.filter(&BooleanArray::from(keep))?;
        }
        if let Some(keys) = &self.keys {
            let keep: Vec<bool> = (0..files.len())
                .map(|row| {
                    keys.contains(&(files.path.value(row).to_owned(), files.dv_unique_id(row)))
                })
                .collect();
            files = files.filter(&BooleanArray::from(keep))?;
        }
        Ok(files)
    }
}

/// Streams the live files. Columns: `path` utf8 (as in the log), `size_bytes` int64,
/// `modification_time` int64 (milliseconds since the epoch), `num_records` int64, `null_count`,
/// `min`, `max`, `partition` structs by logical column, `deletion_vector` struct, and by name
/// `tags` (JSON text), `base_row_id`, `default_row_commit_version`, `clustering_provider`,
/// `data_change`, `tight_bounds`.
///
/// # Errors
/// [`Error::Invalid`] for an unknown column, [`Error::Corrupt`] for damage in the log.
pub fn actions(
    snapshot: &Snapshot,
    columns: &ActionColumns,
    predicate: Option<&BoundExpr>,
    cancel: &CancellationToken,
) -> Result<BatchStream> {
    let every = with_null_counts(snapshot);
    let outputs = outputs(snapshot, columns, &every)?;
    let required = RequiredFields::of(&outputs);
    let with_stats = required.with_stats;
    // Leaves that are not needed are not parsed; positions stay those among all leaves.
    let required_paths: FxHashSet<&[String]> = required
        .leaves
        .iter()
        .filter_map(|n| every.logical.get(*n).map(Vec::as_slice))
        .collect();
    let wanted_leaves = Arc::new(every.filter(|path| required_paths.contains(path)));
    let positions: Vec<Option<usize>> = every
        .logical
        .iter()
        .map(|path| wanted_leaves.position(path))
        .collect();
    let layout = Arc::new(ActionBatchLayout {
        outputs: Arc::new(outputs),
        positions: Arc::new(positions),
        flatten: columns.flatten,
        no_vectors: vector_parts(None, SHARED_ROWS)?,
    });
    let empty = PlanBatch::new(
        snapshot,
        empty_files(snapshot, &required.optional),
        &wanted_leaves,
        with_stats,
    )?;
    let schema = layout.batch(&empty)?.schema();
    let selection = FileSelection {
        paths: columns.paths.clone(),
        keys: predicate
            .map(|predicate| matching_files(snapshot, predicate, cancel))
            .transpose()?,
    };
    let wanted = required.projection(snapshot, &wanted_leaves);
    let progress = ProgressCounter::default();
    let (context, done, expected) = (snapshot.clone(), progress.clone(), schema.clone());
    let batches = snapshot.finished_files(FileActionKind::Adds, wanted, cancel, move |files| {
        done.advance(files.len() as u64);
        let files = selection.filter(files)?;
        let batch = PlanBatch::new(&context, files, &wanted_leaves, with_stats)?;
        with_schema(layout.batch(&batch)?, &expected)
    })?;
    progress.expect(batches.max_files().unwrap_or(0));
    let batches = batches.filter(|batch| !matches!(batch, Ok(batch) if batch.num_rows() == 0));
    Ok(BatchStream {
        schema,
        batches: Box::new(coalesced(batches)),
        progress,
    })
}

/// Gives a batch the schema of the stream.
fn with_schema(batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    if batch.schema() == *schema {
        return Ok(batch);
    }
    Ok(RecordBatch::try_new(
        Arc::clone(schema),
        batch.columns().to_vec(),
    )?)
}

/// Small commits give small batches; each batch has a cost for consumers, so they are joined.
fn coalesced(
    batches: impl Iterator<Item = Result<RecordBatch>> + Send,
) -> impl Iterator<Item = Result<RecordBatch>> + Send {
    const ROWS: usize = 4096;
    let mut batches = batches.fuse();
    let mut held: Option<RecordBatch> = None;
    std::iter::from_fn(move || {
        if let Some(batch) = held.take() {
            return Some(Ok(batch));
        }
        let mut small: Vec<RecordBatch> = Vec::new();
        let mut rows = 0;
        loop {
            match batches.next() {
                Some(Ok(batch)) if batch.num_rows() >= ROWS => {
                    if small.is_empty() {
                        return Some(Ok(batch));
                    }
                    held = Some(batch);
                    break;
                }
                Some(Ok(batch)) => {
                    rows += batch.num_rows();
                    small.push(batch);
                    if rows >= ROWS {
                        break;
                    }
                }
                Some(Err(error)) => return Some(Err(error)),
                None => break,
            }
        }
        let schema = small.first()?.schema();
        Some(arrow_select::concat::concat_batches(&schema, &small).map_err(Error::from))
    })
}

fn empty_files(snapshot: &Snapshot, needs: &FileActionProjection) -> FileBatch {
    let text = || StringViewArray::new_null(0);
    FileBatch {
        path: text(),
        dv: None,
        partition: snapshot.partition_fields().iter().map(|_| text()).collect(),
        size: Int64Array::new_null(0),
        time: needs.time.then(|| Int64Array::new_null(0)),
        stats: None,
        tags: needs.tags.then(text),
        base_row_id: Some(Int64Array::new_null(0)),
        default_row_commit_version: Some(Int64Array::new_null(0)),
        data_change: needs.data_change.then(|| BooleanArray::new_null(0)),
        clustering: needs.clustering.then(text),
        order: Vec::new(),
    }
}

struct ActionBatchLayout {
    outputs: Arc<Vec<ActionColumn>>,
    positions: Arc<Vec<Option<usize>>>,
    flatten: bool,
    /// The parts of absent deletion vectors, which all batches share.
    no_vectors: Vec<NamedArray>,
}

/// Rows of [`ActionBatchLayout::no_vectors`]: more than most batches have.
const SHARED_ROWS: usize = 64 << 10;

type NamedArray = (String, ArrayRef);

impl ActionBatchLayout {
    fn batch(&self, batch: &PlanBatch) -> Result<RecordBatch> {
        let rows = batch.files.len();
        let files = &batch.files;
        let mut columns: Vec<NamedArray> = Vec::new();
        let text = |array: &StringViewArray| -> Result<ArrayRef> { Ok(cast(array, &Arrow::Utf8)?) };
        let optional = |array: Option<&StringViewArray>| {
            array.map_or_else(
                || Ok(Arc::new(StringArray::new_null(rows)) as ArrayRef),
                text,
            )
        };
        let int = |array: Option<&Int64Array>| {
            Arc::new(array.cloned().unwrap_or_else(|| Int64Array::new_null(rows))) as ArrayRef
        };
        for output in self.outputs.iter() {
            match output {
                ActionColumn::Path => columns.push(("path".into(), text(&files.path)?)),
                ActionColumn::Size => columns.push(("size_bytes".into(), int(Some(&files.size)))),
                ActionColumn::Time => {
                    columns.push(("modification_time".into(), int(files.time.as_ref())));
                }
                ActionColumn::NumRecords => columns.push((
                    "num_records".into(),
                    int(batch.stats.as_ref().map(|s| &s.num_records)),
                )),
                ActionColumn::TightBounds => {
                    let tight = batch
                        .stats
                        .as_ref()
                        .map_or_else(|| BooleanArray::new_null(rows), |s| s.tight_bounds.clone());
                    columns.push(("tight_bounds".into(), Arc::new(tight)));
                }
                ActionColumn::NullCount(nodes) => {
                    self.stats("null_count", nodes, batch, &mut columns, |s| {
                        Some(Arc::new(s.null_count.clone()) as ArrayRef)
                    })?;
                }
                ActionColumn::Min(nodes) => {
                    self.stats("min", nodes, batch, &mut columns, |s| s.min.clone())?;
                }
                ActionColumn::Max(nodes) => {
                    self.stats("max", nodes, batch, &mut columns, |s| s.max.clone())?;
                }
                ActionColumn::Partition(parts) => {
                    let parts: Vec<NamedArray> = parts
                        .iter()
                        .filter_map(|(name, n)| {
                            Some((name.clone(), batch.partition.get(*n)?.clone()))
                        })
                        .collect();
                    self.group("partition", parts, rows, &mut columns)?;
                }
                ActionColumn::DeletionVector => {
                    self.deletion_vector(files.dv.as_ref(), rows, &mut columns)?;
                }
                ActionColumn::Tags => columns.push(("tags".into(), optional(files.tags.as_ref())?)),
                ActionColumn::BaseRowId => {
                    columns.push(("base_row_id".into(), int(files.base_row_id.as_ref())));
                }
                ActionColumn::CommitVersion => columns.push((
                    "default_row_commit_version".into(),
                    int(files.default_row_commit_version.as_ref()),
                )),
                ActionColumn::Clustering => columns.push((
                    "clustering_provider".into(),
                    optional(files.clustering.as_ref())?,
                )),
                ActionColumn::DataChange => {
                    let flags = files
                        .data_change
                        .clone()
                        .unwrap_or_else(|| BooleanArray::new_null(rows));
                    columns.push(("data_change".into(), Arc::new(flags)));
                }
            }
        }
        let fields: Vec<Field> = columns
            .iter()
            .map(|(name, array)| {
                Field::new(
                    name,
                    array.data_type().clone(),
                    name != "path" && name != "size_bytes",
                )
            })
            .collect();
        let arrays = columns.into_iter().map(|(_, array)| array).collect();
        Ok(RecordBatch::try_new_with_options(
            Arc::new(Schema::new(fields)),
            arrays,
            &RecordBatchOptions::new().with_row_count(Some(rows)),
        )?)
    }

    fn stats(
        &self,
        name: &str,
        nodes: &[StatsColumnNode],
        batch: &PlanBatch,
        columns: &mut Vec<NamedArray>,
        pick: impl Fn(&crate::parse::stats::LeafStats) -> Option<ArrayRef> + Copy,
    ) -> Result<()> {
        let rows = batch.files.len();
        let mut flat = Vec::new();
        let nested = self.build(nodes, batch, name, pick, &mut flat)?;
        if self.flatten {
            columns.extend(flat);
        } else {
            columns.push((name.to_owned(), struct_of(nested, rows)?));
        }
        Ok(())
    }

    fn build(
        &self,
        nodes: &[StatsColumnNode],
        batch: &PlanBatch,
        prefix: &str,
        pick: impl Fn(&crate::parse::stats::LeafStats) -> Option<ArrayRef> + Copy,
        flat: &mut Vec<NamedArray>,
    ) -> Result<Vec<NamedArray>> {
        let mut out = Vec::new();
        for node in nodes {
            match node {
                StatsColumnNode::Leaf(name, index) => {
                    let leaf = self
                        .positions
                        .get(*index)
                        .copied()
                        .flatten()
                        .and_then(|n| batch.stats.as_ref()?.leaves.get(n));
                    let Some(array) = leaf.and_then(pick) else {
                        continue;
                    };
                    flat.push((format!("{prefix}.{name}"), Arc::clone(&array)));
                    out.push((name.clone(), array));
                }
                StatsColumnNode::Parent(name, children) => {
                    let children =
                        self.build(children, batch, &format!("{prefix}.{name}"), pick, flat)?;
                    out.push((name.clone(), struct_of(children, batch.files.len())?));
                }
            }
        }
        Ok(out)
    }

    fn group(
        &self,
        name: &str,
        parts: Vec<NamedArray>,
        rows: usize,
        columns: &mut Vec<NamedArray>,
    ) -> Result<()> {
        if self.flatten {
            columns.extend(
                parts
                    .into_iter()
                    .map(|(part, array)| (format!("{name}.{part}"), array)),
            );
        } else {
            columns.push((name.to_owned(), struct_of(parts, rows)?));
        }
        Ok(())
    }

    fn deletion_vector(
        &self,
        dv: Option<&DvColumns>,
        rows: usize,
        columns: &mut Vec<NamedArray>,
    ) -> Result<()> {
        let parts: Vec<NamedArray> = match dv {
            None if rows <= SHARED_ROWS => self
                .no_vectors
                .iter()
                .map(|(name, array)| (name.clone(), array.slice(0, rows)))
                .collect(),
            _ => vector_parts(dv, rows)?,
        };
        if self.flatten {
            columns.extend(
                parts
                    .into_iter()
                    .map(|(part, array)| (format!("deletion_vector.{part}"), array)),
            );
            return Ok(());
        }
        let nulls = dv.map_or_else(
            || NullBuffer::new_null(rows),
            |dv| NullBuffer::new(dv.present.clone()),
        );
        let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = parts
            .into_iter()
            .map(|(name, array)| (Field::new(name, array.data_type().clone(), true), array))
            .unzip();
        columns.push((
            "deletion_vector".into(),
            Arc::new(StructArray::try_new(fields.into(), arrays, Some(nulls))?),
        ));
        Ok(())
    }
}

/// The columns of deletion vectors.
fn vector_parts(dv: Option<&DvColumns>, rows: usize) -> Result<Vec<NamedArray>> {
    let text = |array: Option<&StringViewArray>| -> Result<ArrayRef> {
        Ok(match array {
            Some(array) => cast(array, &Arrow::Utf8)?,
            None => Arc::new(StringArray::new_null(rows)),
        })
    };
    let int32 = |pick: fn(&DvColumns) -> &Int32Array| {
        Arc::new(dv.map_or_else(|| Int32Array::new_null(rows), |dv| pick(dv).clone())) as ArrayRef
    };
    Ok(vec![
        ("storageType".into(), text(dv.map(|dv| &dv.storage_type))?),
        (
            "pathOrInlineDv".into(),
            text(dv.map(|dv| &dv.path_or_inline))?,
        ),
        ("offset".into(), int32(|dv| &dv.offset)),
        ("sizeInBytes".into(), int32(|dv| &dv.size_in_bytes)),
        (
            "cardinality".into(),
            Arc::new(dv.map_or_else(|| Int64Array::new_null(rows), |dv| dv.cardinality.clone())),
        ),
    ])
}

fn struct_of(parts: Vec<NamedArray>, rows: usize) -> Result<ArrayRef> {
    if parts.is_empty() {
        return Ok(Arc::new(StructArray::new_empty_fields(rows, None)));
    }
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = parts
        .into_iter()
        .map(|(name, array)| (Field::new(name, array.data_type().clone(), true), array))
        .unzip();
    Ok(Arc::new(StructArray::try_new(fields.into(), arrays, None)?))
}

/// The distinct partition values of the files that may match a predicate: one typed column for each
/// partition column.
///
/// # Errors
/// As [`actions`].
pub fn partitions(
    snapshot: &Snapshot,
    predicate: Option<&BoundExpr>,
    cancel: &CancellationToken,
) -> Result<BatchStream> {
    let plan = plan(snapshot, predicate, cancel)?;
    let fields: Fields = snapshot
        .partition_fields()
        .iter()
        .map(|f| Field::new(&f.name, f.data_type.to_arrow(StringLayout::Plain), true))
        .collect();
    let schema: SchemaRef = Arc::new(Schema::new(fields));
    let mut seen = std::collections::HashSet::new();
    let mut batches = Vec::new();
    for (batch, keep) in &plan.batches {
        let texts = &batch.files.partition;
        let first: Vec<bool> = (0..keep.len())
            .map(|row| {
                keep.value(row)
                    && seen.insert(
                        texts
                            .iter()
                            .map(|t| t.is_valid(row).then(|| t.value(row).to_owned()))
                            .collect::<Vec<_>>(),
                    )
            })
            .collect();
        let mask = BooleanArray::from(first);
        let arrays = batch
            .partition
            .iter()
            .map(|array| arrow_select::filter::filter(array, &mask))
            .collect::<Result<Vec<_>, _>>()?;
        batches.push(RecordBatch::try_new_with_options(
            Arc::clone(&schema),
            arrays,
            &RecordBatchOptions::new().with_row_count(Some(mask.true_count())),
        )?);
    }
    Ok(BatchStream {
        schema,
        batches: Box::new(batches.into_iter().map(Ok)),
        progress: ProgressCounter::default(),
    })
}

/// Streams the tombstones: `path` utf8, `deletion_timestamp` timestamp\[ms, UTC\], `size_bytes`
/// int64.
///
/// # Errors
/// As [`actions`].
pub fn tombstones(snapshot: &Snapshot, cancel: &CancellationToken) -> Result<BatchStream> {
    let time = Arrow::Timestamp(TimeUnit::Millisecond, Some("UTC".into()));
    let schema: SchemaRef = Arc::new(Schema::new(vec![
        Field::new("path", Arrow::Utf8, false),
        Field::new("deletion_timestamp", time, true),
        Field::new("size_bytes", Arrow::Int64, true),
    ]));
    let out = Arc::clone(&schema);
    let wanted = FileActionProjection {
        time: true,
        ..FileActionProjection::default()
    };
    let batches =
        snapshot.finished_files(FileActionKind::Removes, wanted, cancel, move |files| {
            let (_, values, nulls) = files
                .time
                .unwrap_or_else(|| Int64Array::new_null(files.path.len()))
                .into_parts();
            let times = TimestampMillisecondArray::new(values, nulls).with_timezone("UTC");
            Ok(RecordBatch::try_new(
                Arc::clone(&out),
                vec![
                    cast(&files.path, &Arrow::Utf8)?,
                    Arc::new(times),
                    Arc::new(files.size),
                ],
            )?)
        })?;
    Ok(BatchStream {
        schema,
        batches: Box::new(batches),
        progress: ProgressCounter::default(),
    })
}
