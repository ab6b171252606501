//! Pruning: the live files that may hold rows for which a predicate is true.
//!
//! Partition values and statistics become typed Arrow columns on the pool, batch by batch, and one
//! vectorised evaluation decides about a batch. The parsed columns of a plan are kept with the
//! snapshot (up to a limit), so the next plan only evaluates. Since the JSON of statistics is
//! walked whole for any of its columns, a plan that needs one of them parses the others too, as far
//! as they fit, for later plans. Beyond the limit only the remaining files are kept.
//!
//! Cost: the wanted columns of the file list, once; then a few nanoseconds per file and comparison.

use std::sync::Arc;

use arrow_array::builder::BooleanBufferBuilder;
use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, StringViewArray};
use arrow_buffer::BooleanBuffer;
use hashbrown::HashMap;
use rustc_hash::FxHashSet;
use serde::Serialize;

use super::columns::{LeafColumns, leaves};
use crate::error::{Result, ResultExt};
use crate::exec::{CancellationToken, map_all};
use crate::expr::BoundExpr;
use crate::log::LogSegment;
use crate::parse::checkpoint::FileActionKind;
use crate::parse::stats::{self, FileStatsBatch};
use crate::parse::{DvColumns, FileActionProjection, FileBatch};
use crate::protocol::schema::StructField;
use crate::protocol::{evolution, partition_value};
use crate::prune::{self, PruningStatistics};
use crate::reconcile::SeenFileKeys;
use crate::snapshot::Snapshot;

/// The most files whose columns a snapshot keeps.
const KEPT_FILES: usize = 2_000_000;
/// The most bytes of statistics that it keeps beyond those that a plan needs.
const KEPT_BYTES: u64 = 256 << 20;
/// The most leaves whose statistics it keeps: writers gather statistics of the first 32 by default.
const KEPT_LEAVES: usize = 32;

/// Files of one batch, with typed partition values and the requested statistics.
#[derive(Debug, Clone)]
pub struct PlanBatch {
    /// Paths, sizes, deletion vectors, row ids.
    pub files: FileBatch,
    /// Partition values, in the order of the files' partition columns.
    pub partition: Vec<ArrayRef>,
    /// Statistics of the plan's leaves, if any were requested.
    pub stats: Option<FileStatsBatch>,
}

/// The outcome of planning.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ScanPlan {
    /// Batches with the rows that were not pruned.
    #[serde(skip)]
    pub batches: Vec<(Arc<PlanBatch>, BooleanArray)>,
    /// Number of live files.
    pub files_total: u64,
    /// Number of files that remain after pruning by partition values alone.
    pub files_after_partition: u64,
    /// Number of files that remain.
    pub files: u64,
}

/// The part of a plan that a snapshot caches, and passes on to newer snapshots.
#[derive(Clone)]
struct CachedPlan {
    /// The version of the batches.
    version: i64,
    logical: Vec<Vec<String>>,
    with_stats: bool,
    /// Batches, each with the rows that are still live (all if `None`).
    batches: Vec<(Arc<PlanBatch>, Option<BooleanArray>)>,
    /// The number of batches, from the front, that are in the index.
    indexed: usize,
    /// The position of each file's key: (batch, row). Built when the first file is removed.
    index: Option<Arc<FileKeyIndex>>,
}

struct FileKeyIndex {
    file_keys: SeenFileKeys,
    rows: HashMap<u128, (u32, u32)>,
}

/// Small batches of newer commits are joined when there are this many.
const MOST_TAIL: usize = 16;

impl CachedPlan {
    /// Applies the commits up to `snapshot`'s version; `None` if some are missing or they change
    /// too much.
    fn advance(
        &self,
        snapshot: &Snapshot,
        leaves: &Arc<LeafColumns>,
        cancel: &CancellationToken,
    ) -> Result<Option<Self>> {
        if self.version == snapshot.version() {
            return Ok(Some(self.clone()));
        }
        if self.version > snapshot.version() || !snapshot.has_commits_since(self.version) {
            return Ok(None);
        }
        let mut next = self.clone();
        next.version = snapshot.version();
        let like = match &self.index {
            Some(index) => SeenFileKeys::with_same_seeds(&index.file_keys),
            None => SeenFileKeys::default(),
        };
        let (added, touched) = snapshot.files_since(
            self.version,
            &like,
            projected_columns(snapshot, leaves, self.with_stats),
            cancel,
        )?;
        next.remove_dead_rows(&touched)?;
        for files in added {
            next.batches.push((
                Arc::new(PlanBatch::new(snapshot, files, leaves, self.with_stats)?.compacted()),
                None,
            ));
        }
        next.fold()?;
        Ok(Some(next))
    }

    /// Marks rows as dead whose keys newer commits touched: an add of the same key replaces them, a
    /// remove ends them.
    fn remove_dead_rows(&mut self, touched: &SeenFileKeys) -> Result<()> {
        if touched.is_empty() {
            return Ok(());
        }
        let index = match &self.index {
            Some(index) => Arc::clone(index),
            None => {
                let mut rows = HashMap::default();
                let seen = SeenFileKeys::with_same_seeds(touched);
                for (n, (batch, _)) in self.batches.iter().enumerate() {
                    for row in 0..batch.files.len() {
                        rows.insert(
                            seen.key(&batch.files, row)?,
                            (
                                u32::try_from(n).unwrap_or(u32::MAX),
                                u32::try_from(row).unwrap_or(u32::MAX),
                            ),
                        );
                    }
                }
                let index = Arc::new(FileKeyIndex {
                    file_keys: seen,
                    rows,
                });
                self.indexed = self.batches.len();
                self.index = Some(Arc::clone(&index));
                index
            }
        };
        let mut dead: Vec<(usize, usize)> = touched
            .keys()
            .filter_map(|key| index.rows.get(&key))
            .map(|(batch, row)| (*batch as usize, *row as usize))
            .collect();
        // Batches that came after the index was made are few and small.
        for (n, (batch, _)) in self.batches.iter().enumerate().skip(self.indexed) {
            for row in 0..batch.files.len() {
                if touched.contains(index.file_keys.key(&batch.files, row)?) {
                    dead.push((n, row));
                }
            }
        }
        dead.sort_unstable();
        for group in dead.chunk_by(|a, b| a.0 == b.0) {
            let Some((n, _)) = group.first() else {
                continue;
            };
            let Some((batch, live)) = self.batches.get_mut(*n) else {
                continue;
            };
            let mut bits = BooleanBufferBuilder::new(batch.files.len());
            match live {
                Some(live) => bits.append_buffer(live.values()),
                None => bits.append_n(batch.files.len(), true),
            }
            for (_, row) in group {
                bits.set_bit(*row, false);
            }
            *live = Some(BooleanArray::new(bits.finish(), None));
        }
        Ok(())
    }

    /// Joins the batches that came after the index was made, without dead rows.
    fn fold(&mut self) -> Result<()> {
        let base = if self.index.is_some() {
            self.indexed
        } else {
            self.batches
                .iter()
                .take_while(|(batch, _)| batch.files.len() > 4096)
                .count()
        };
        if self.batches.len() < base + MOST_TAIL {
            return Ok(());
        }
        let tail: Vec<_> = self.batches.drain(base..).collect();
        let live = tail
            .into_iter()
            .map(|(batch, live)| match live {
                Some(live) => batch.rows(&live).map(Arc::new),
                None => Ok(batch),
            })
            .collect::<Result<Vec<_>>>()?;
        if let Some(joined) = PlanBatch::concat(&live)? {
            self.batches.push((Arc::new(joined), None));
        }
        Ok(())
    }
}

struct PlanFileStatistics<'a> {
    batch: &'a PlanBatch,
    leaves: &'a LeafColumns,
    partition_names: &'a [String],
}

impl PruningStatistics for PlanFileStatistics<'_> {
    fn rows(&self) -> usize {
        self.batch.files.len()
    }

    fn min(&self, path: &[String]) -> Option<ArrayRef> {
        let stats = self.batch.stats.as_ref()?;
        stats.leaves.get(self.leaves.position(path)?)?.min.clone()
    }

    fn max(&self, path: &[String]) -> Option<ArrayRef> {
        let stats = self.batch.stats.as_ref()?;
        stats.leaves.get(self.leaves.position(path)?)?.max.clone()
    }

    fn null_count(&self, path: &[String]) -> Option<Int64Array> {
        let stats = self.batch.stats.as_ref()?;
        Some(
            stats
                .leaves
                .get(self.leaves.position(path)?)?
                .null_count
                .clone(),
        )
    }

    fn num_records(&self) -> Option<Int64Array> {
        Some(self.batch.stats.as_ref()?.num_records.clone())
    }

    fn partition(&self, path: &[String]) -> Option<ArrayRef> {
        let [name] = path else { return None };
        let at = self.partition_names.iter().position(|p| p == name)?;
        self.batch.partition.get(at).cloned()
    }
}

/// Copies views whose buffers are much larger than the viewed bytes, so that a file list does not
/// keep whole commits in memory.
fn compact(array: &StringViewArray) -> StringViewArray {
    let held: usize = array
        .data_buffers()
        .iter()
        .map(arrow_buffer::Buffer::len)
        .sum();
    let shown: usize = array
        .views()
        .iter()
        .map(|view| (*view & 0xffff_ffff) as usize)
        .sum();
    if held > shown + shown / 2 + 4096 {
        array.gc()
    } else {
        array.clone()
    }
}

fn compact_files(files: FileBatch) -> FileBatch {
    FileBatch {
        path: compact(&files.path),
        dv: files.dv.map(|dv| DvColumns {
            storage_type: compact(&dv.storage_type),
            path_or_inline: compact(&dv.path_or_inline),
            ..dv
        }),
        partition: files.partition.iter().map(compact).collect(),
        tags: files.tags.as_ref().map(compact),
        clustering: files.clustering.as_ref().map(compact),
        order: Vec::new(),
        ..files
    }
}

impl PlanBatch {
    /// Types partition values and parses the statistics of `leaves`; their JSON is dropped.
    pub(super) fn new(
        snapshot: &Snapshot,
        files: FileBatch,
        leaves: &LeafColumns,
        with_stats: bool,
    ) -> Result<Self> {
        let fields = snapshot.partition_fields();
        Self::with_partition_fields(snapshot, &fields, files, leaves, with_stats)
    }

    /// [`PlanBatch::new`] for files with these partition columns, which those of other versions may
    /// have.
    pub(super) fn with_partition_fields(
        snapshot: &Snapshot,
        partition_fields: &[&StructField],
        mut files: FileBatch,
        leaves: &LeafColumns,
        with_stats: bool,
    ) -> Result<Self> {
        let zone = snapshot.options().zone;
        let partition = partition_fields
            .iter()
            .zip(&files.partition)
            .map(|(field, values)| {
                partition_value::parse(values, &field.data_type, zone).at_column(&field.name)
            })
            .collect::<Result<_>>()
            .at_version(snapshot.version())?;
        let stats = match files.stats.take() {
            Some(column) => Some(stats::parse(&column, &leaves.physical, zone)?),
            None if with_stats => Some(stats::unknown_stats(files.len(), &leaves.physical)),
            None => None,
        };
        Ok(Self {
            files,
            partition,
            stats,
        })
    }

    /// The same without references to the log's memory.
    fn compacted(self) -> Self {
        Self {
            files: compact_files(self.files),
            ..self
        }
    }

    /// The rows of `mask`.
    fn rows(&self, mask: &BooleanArray) -> Result<Self> {
        let filter = |array: &ArrayRef| arrow_select::filter::filter(array, mask);
        let partition = self
            .partition
            .iter()
            .map(filter)
            .collect::<Result<_, _>>()?;
        let stats = self
            .stats
            .as_ref()
            .map(|stats| stats.filter(mask))
            .transpose()?;
        Ok(Self {
            files: self.files.filter(mask)?,
            partition,
            stats,
        })
    }

    /// Joins batches with the same columns.
    fn concat(batches: &[Arc<Self>]) -> Result<Option<Self>> {
        let Some(first) = batches.first() else {
            return Ok(None);
        };
        let partition = (0..first.partition.len())
            .map(|n| {
                let arrays: Vec<&dyn Array> = batches
                    .iter()
                    .filter_map(|b| b.partition.get(n))
                    .map(AsRef::as_ref)
                    .collect();
                arrow_select::concat::concat(&arrays)
            })
            .collect::<Result<_, _>>()?;
        let stats: Vec<&FileStatsBatch> = batches.iter().filter_map(|b| b.stats.as_ref()).collect();
        let files: Vec<&FileBatch> = batches.iter().map(|b| &b.files).collect();
        Ok(Some(Self {
            files: compact_files(FileBatch::concat(&files)?),
            partition,
            stats: FileStatsBatch::concat(&stats)?,
        }))
    }

    /// The rows of `mask`, in memory of their own.
    fn filter(&self, mask: &BooleanArray) -> Result<Self> {
        let filter = |array: &ArrayRef| arrow_select::filter::filter(array, mask);
        let partition = self
            .partition
            .iter()
            .map(filter)
            .collect::<Result<_, _>>()?;
        Ok(Self {
            files: compact_files(self.files.filter(mask)?),
            partition,
            stats: None,
        })
    }
}

pub(super) fn projected_columns(
    snapshot: &Snapshot,
    leaves: &LeafColumns,
    with_stats: bool,
) -> FileActionProjection {
    FileActionProjection {
        partition: snapshot
            .partition_fields()
            .iter()
            .map(|field| snapshot.physical_name(field).to_owned())
            .collect(),
        stats: with_stats,
        leaves: leaves
            .physical
            .iter()
            .map(|leaf| leaf.path.clone())
            .collect(),
        row_ids: true,
        ..FileActionProjection::default()
    }
}

fn all(rows: usize) -> BooleanArray {
    BooleanArray::new(BooleanBuffer::new_set(rows), None)
}

/// The rows of a batch that remain: (after pruning by partition values, after all pruning).
fn prune_batch(
    snapshot: &Snapshot,
    predicate: Option<&(Option<BoundExpr>, BoundExpr)>,
    leaves: &LeafColumns,
    batch: &PlanBatch,
) -> Result<(u64, BooleanArray)> {
    let rows = batch.files.len();
    let Some((on_partitions, whole)) = predicate else {
        return Ok((rows as u64, all(rows)));
    };
    let facts = PlanFileStatistics {
        batch,
        leaves,
        partition_names: &snapshot.metadata().partition_columns,
    };
    let by_partition = match on_partitions {
        Some(predicate) => prune::may_match(predicate, &facts)?.true_count(),
        None => rows,
    };
    if by_partition == 0 {
        return Ok((0, BooleanArray::new(BooleanBuffer::new_unset(rows), None)));
    }
    Ok((by_partition as u64, prune::may_match(whole, &facts)?))
}

/// The rows of a batch that may hold rows for which the predicate is true.
pub(super) fn keep(
    snapshot: &Snapshot,
    predicate: &BoundExpr,
    leaves: &LeafColumns,
    batch: &PlanBatch,
) -> Result<BooleanArray> {
    prune::may_match(
        predicate,
        &PlanFileStatistics {
            batch,
            leaves,
            partition_names: &snapshot.metadata().partition_columns,
        },
    )
}

/// Plans a scan. Without a predicate every live file remains.
///
/// # Errors
/// [`crate::error::Error::Corrupt`] names the file of the log; a predicate that cannot be decided
/// keeps its files.
pub fn plan(
    snapshot: &Snapshot,
    predicate: Option<&BoundExpr>,
    cancel: &CancellationToken,
) -> Result<ScanPlan> {
    evolution::check_changes(snapshot.protocol(), snapshot.schema())?;
    let names = &snapshot.metadata().partition_columns;
    let split = predicate.map(|p| (prune::partition_only(p, names).0, p.clone()));
    let columns: Vec<Vec<String>> = predicate
        .map(|p| p.columns().into_iter().map(<[String]>::to_vec).collect())
        .unwrap_or_default();
    let mut wanted_leaves = leaves(snapshot).below(columns.iter().map(Vec::as_slice));
    let mut with_stats = !wanted_leaves.logical.is_empty();
    let known = snapshot
        .plan_cache()
        .as_ref()
        .and_then(|kept| Arc::clone(kept).downcast::<CachedPlan>().ok());
    if let Some(known) = known {
        let known_leaves: FxHashSet<&[String]> = known.logical.iter().map(Vec::as_slice).collect();
        if (known.with_stats || !with_stats)
            && wanted_leaves
                .logical
                .iter()
                .all(|leaf| known_leaves.contains(leaf.as_slice()))
        {
            let leaves = Arc::new(leaves(snapshot).filter(|leaf| known_leaves.contains(leaf)));
            if let Some(current) = known.advance(snapshot, &leaves, cancel)? {
                let plan =
                    plan_from_cache(snapshot, split.map(Arc::new), &leaves, &current.batches);
                if current.version != known.version {
                    *snapshot.plan_cache() = Some(Arc::new(current));
                }
                return plan;
            }
        }
        // The next plan should find the columns of both.
        wanted_leaves = leaves(snapshot)
            .filter(|leaf| known_leaves.contains(leaf) || wanted_leaves.position(leaf).is_some());
        with_stats |= known.with_stats;
    }
    let leaves = Arc::new(wanted_leaves);
    let split = split.map(Arc::new);
    // If a checkpoint proves damaged, planning starts again without it.
    let (plan, kept) = snapshot.with_segment(|segment| {
        from_log(
            snapshot,
            segment,
            split.clone(),
            (&leaves, with_stats),
            cancel,
        )
    })?;
    if let Some(kept) = kept {
        *snapshot.plan_cache() = Some(Arc::new(kept));
    }
    Ok(plan)
}

type SplitPredicate = Option<Arc<(Option<BoundExpr>, BoundExpr)>>;

fn plan_from_cache(
    snapshot: &Snapshot,
    predicate: SplitPredicate,
    leaves: &Arc<LeafColumns>,
    batches: &[(Arc<PlanBatch>, Option<BooleanArray>)],
) -> Result<ScanPlan> {
    let (snapshot, leaves) = (snapshot.clone(), Arc::clone(leaves));
    let verdicts = map_all(batches.to_vec(), move |(batch, live)| {
        let (mut by_partition, mut keep) =
            prune_batch(&snapshot, predicate.as_deref(), &leaves, &batch)?;
        let mut rows = batch.files.len() as u64;
        if let Some(live) = live {
            keep = BooleanArray::new(keep.values() & live.values(), None);
            rows = live.true_count() as u64;
            by_partition = by_partition.min(rows);
        }
        Ok((batch, rows, by_partition, keep))
    })?;
    let mut out = ScanPlan::default();
    for (batch, rows, by_partition, keep) in verdicts {
        out.push(batch, rows, by_partition, keep);
    }
    Ok(out)
}

impl ScanPlan {
    fn push(&mut self, batch: Arc<PlanBatch>, rows: u64, by_partition: u64, keep: BooleanArray) {
        self.files_total += rows;
        self.files_after_partition += by_partition;
        let left = keep.true_count() as u64;
        self.files += left;
        if left > 0 {
            self.batches.push((batch, keep));
        }
    }
}

/// `asked` and the other leaves that fit into the cache for about `files` files.
fn with_others(snapshot: &Snapshot, asked: &LeafColumns, files: u64) -> LeafColumns {
    let every = leaves(snapshot);
    let mut left = KEPT_BYTES;
    let mut fits = true;
    let chosen: FxHashSet<&[String]> = every
        .logical
        .iter()
        .zip(&every.physical)
        .enumerate()
        .filter(|(n, (path, leaf))| {
            if asked.position(path).is_some() {
                return true;
            }
            let bytes = files.saturating_mul(stats::width(leaf));
            fits &= bytes <= left && *n < KEPT_LEAVES;
            left = left.saturating_sub(bytes);
            fits
        })
        .map(|(_, (path, _))| path.as_slice())
        .collect();
    every.filter(|path| chosen.contains(path))
}

/// A batch with the result of pruning.
struct PrunedBatch {
    batch: Arc<PlanBatch>,
    /// Number of files of the batch before pruning.
    rows: u64,
    by_partition: u64,
    keep: BooleanArray,
}

impl PrunedBatch {
    /// Only the remaining rows, in memory of their own.
    fn compact_rows(self) -> Result<Self> {
        let batch = self.batch.filter(&self.keep)?;
        let keep = all(batch.files.len());
        Ok(Self {
            batch: Arc::new(batch),
            keep,
            ..self
        })
    }
}

fn from_log(
    snapshot: &Snapshot,
    segment: &LogSegment,
    predicate: SplitPredicate,
    (asked, with_stats): (&LeafColumns, bool),
    cancel: &CancellationToken,
) -> Result<(ScanPlan, Option<CachedPlan>)> {
    let stream = snapshot.files_in(
        segment,
        FileActionKind::Adds,
        projected_columns(snapshot, asked, with_stats),
        cancel,
    )?;
    let keeping = stream.max_checkpoint_files() <= KEPT_FILES as u64;
    let leaves = Arc::new(if with_stats && keeping && stream.has_text_only() {
        with_others(snapshot, asked, stream.estimated_files())
    } else {
        asked.clone()
    });
    let (context, parsed) = (snapshot.clone(), Arc::clone(&leaves));
    let verdicts = stream.finished(move |files| {
        let batch = PlanBatch::new(&context, files, &parsed, with_stats)?;
        let (by_partition, keep) = prune_batch(&context, predicate.as_deref(), &parsed, &batch)?;
        let rows = batch.files.len() as u64;
        let judged = |batch| PrunedBatch {
            batch: Arc::new(batch),
            rows,
            by_partition,
            keep,
        };
        if keeping {
            Ok(judged(batch.compacted()))
        } else {
            judged(batch).compact_rows()
        }
    });
    let mut out = ScanPlan::default();
    let mut kept = keeping.then(Vec::new);
    for judged in verdicts {
        let mut judged = judged?;
        if let Some(batches) = &mut kept {
            batches.push((Arc::clone(&judged.batch), None));
            if out.files_total as usize + judged.batch.files.len() > KEPT_FILES {
                kept = None;
                // From here on only remaining rows stay in memory.
                for (batch, keep) in &mut out.batches {
                    *batch = Arc::new(batch.filter(keep)?);
                    *keep = all(batch.files.len());
                }
            }
        }
        if kept.is_none() {
            judged = judged.compact_rows()?;
        }
        out.push(judged.batch, judged.rows, judged.by_partition, judged.keep);
    }
    let kept = kept.map(|batches| CachedPlan {
        version: snapshot.version(),
        logical: leaves.logical.clone(),
        with_stats,
        batches,
        indexed: 0,
        index: None,
    });
    Ok((out, kept))
}
