//! OPTIMIZE and REORG: rewrites files with the same rows: small files are combined into larger
//! ones, partitions are laid out in Z-order, clustered tables along the curve of their columns
//! (`clustering`), files without rows and columns that were deleted (`purge`), or in a form that
//! Iceberg reads (`iceberg`).
//!
//! Files of a partition are packed in the order of their creation, so that rows that were written
//! together stay together. Files that are large enough are kept, unless deletion vectors delete a
//! twentieth of their rows. No row changes: concurrent appends and changes of other files do not
//! conflict, and of two runs over the same files the second one fails.
//!
//! Protocol: "Requirements for Writers" (`dataChange`), "Writer Requirements for Row Tracking".
//! Metrics and parameters are those of delta-spark. Cost: one pass over the files that are packed.

pub(super) mod auto_compact;
pub(super) mod clustering;
pub(super) mod curve_layout;
pub(super) mod purge;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::commit::OptimisticTransaction;
use crate::commit::adds::{all_live_adds, matching_live_adds};
use crate::commit::finish::{self, CommitOptions, CommitResult, json_string_list};
use crate::error::{Error, ErrorCode, Result};
use crate::exec::CancellationToken;
use crate::log::MaintenanceOperation;
use crate::ops::optimize::clustering::{ClusteringMetrics, LiquidClustering};
use crate::ops::optimize::curve_layout::CurveLayout;
use crate::ops::rewrite::file_rewrite::{self, FileRewrite};
use crate::ops::rewrite::iceberg_compatibility;
use crate::ops::rewrite::start_state::check_writable;
use crate::ops::rewrite::target_table::{DataFileOptions, TargetTable};
use crate::protocol::commit_line::{Add, PartitionValues};
use crate::prune;
use crate::scan::FileMatcher;
use crate::snapshot::Snapshot;
use crate::write::bound_constraints::NamedExpression;
use crate::write::constraints::WriteRules;

/// Which files are rewritten, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OptimizeTask {
    /// Clusters the files of a clustered table, packs those of others.
    #[default]
    Optimize,
    /// Clusters the files.
    Cluster,
    /// Clusters the files, including those that were clustered by other columns or providers.
    ClusterFull,
    /// Rewrites files that have deletion vectors or dropped columns.
    Purge,
    /// Rewrites files that are not compatible with the Iceberg compatibility version of the table.
    Upgrade,
}

impl OptimizeTask {
    fn is_reorg(self) -> bool {
        matches!(self, Self::Purge | Self::Upgrade)
    }
}

/// Options of OPTIMIZE.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OptimizeOptions {
    /// How new files are written; files are packed up to its target size.
    pub encoding: DataFileOptions,
    /// Milliseconds after which finished files are committed while others are still rewritten; all
    /// in one commit if `None`.
    pub min_commit_interval_ms: Option<u64>,
    /// How it is committed.
    pub commit_options: CommitOptions,
    /// Columns, with dots before the names of fields, by which all rows of a partition are laid out
    /// in Z-order.
    pub z_order_by: Vec<String>,
    /// The task.
    pub task: OptimizeTask,
    /// The size in bytes from which a group of files that were clustered together is kept; 100 GiB
    /// if `None`.
    pub min_cube_size: Option<u64>,
    /// The size in bytes of the files that are clustered together; 150 GiB if `None`.
    pub cube_size: Option<u64>,
    /// For auto compaction: files below this size are packed.
    #[serde(skip)]
    pub(super) automatic: Option<u64>,
}

/// The sizes of some files in bytes.
#[derive(Debug, Clone, Default)]
pub struct FileSizes(Vec<i64>);

impl FileSizes {
    /// The number of files.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Their total size.
    #[must_use]
    pub fn sum(&self) -> i64 {
        self.0.iter().sum()
    }

    /// The size below which this share of the files is, in hundredths; 0 without files.
    #[must_use]
    pub fn percentile(&self, hundredths: usize) -> i64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        sorted
            .get(sorted.len().saturating_sub(1) * hundredths / 100)
            .copied()
            .unwrap_or(0)
    }
}

/// The result of an OPTIMIZE.
#[derive(Debug, Clone, Default)]
pub struct OptimizeResult {
    /// New files.
    pub added: FileSizes,
    /// Removed files.
    pub removed: FileSizes,
    /// The number of partitions with removed files.
    pub partitions: usize,
    /// The number of files that the predicate selects.
    pub candidate_files: usize,
    /// The maximum number of files that were combined, or laid out along one curve.
    pub largest_bin: usize,
    /// The layout of the rows: `packed`, `zOrder`, `clustered`.
    pub layout: &'static str,
    /// Metrics of clustering; `None` if nothing is clustered.
    pub clustering: Option<ClusteringMetrics>,
    /// The last committed version; `None` if there was nothing to do.
    pub done: Option<CommitResult>,
}

/// The percentage of deleted rows from which a file is rewritten for that reason alone.
const DELETED: i64 = 5;

/// How the rows of a bin are written to new files.
pub(super) enum OptimizeStrategy {
    /// Each bin becomes one file.
    Compaction,
    /// The same for clustered files, which keep their tags.
    Purge,
    /// Z-order.
    ZOrder(CurveLayout),
    /// Each bin becomes a cube.
    Clustering(CurveLayout, LiquidClustering),
}

/// Packs the files of the partitions for which `predicate` is true, of all partitions without one;
/// or lays out their rows along a curve, according to the table or `options`.
///
/// # Errors
/// [`Error::Invalid`] for a predicate on other columns, and for options that contradict the table's
/// clustering; [`Error::Unsupported`] for tables that this release cannot write; as
/// [`OptimisticTransaction::commit`]. New files are deleted after an error, unless the outcome of
/// the commit is unknown.
pub fn optimize(
    snapshot: &Snapshot,
    predicate: Option<&NamedExpression>,
    options: &OptimizeOptions,
    cancel: &CancellationToken,
) -> Result<OptimizeResult> {
    let files = files_to_optimize(snapshot, predicate, options, cancel)?;
    optimize_files(
        snapshot,
        files,
        predicate.map(|demand| demand.sql.clone()),
        options,
        cancel,
    )
}

/// The files of a table that the task may rewrite.
pub(super) fn files_to_optimize(
    snapshot: &Snapshot,
    predicate: Option<&NamedExpression>,
    options: &OptimizeOptions,
    cancel: &CancellationToken,
) -> Result<Vec<Add>> {
    check_writable(snapshot)?;
    snapshot.check_maintenance(MaintenanceOperation::Optimize)?;
    check_layout_options(LiquidClustering::of(snapshot)?.as_ref(), predicate, options)?;
    select_files(snapshot, predicate, cancel)
}

/// The same for the selected files.
pub(super) fn optimize_files(
    snapshot: &Snapshot,
    files: Vec<Add>,
    sql: Option<String>,
    options: &OptimizeOptions,
    cancel: &CancellationToken,
) -> Result<OptimizeResult> {
    let OptimizePlan {
        layout,
        bins,
        size,
        cluster_by,
        result: mut out,
    } = OptimizePlan::of(snapshot, files, options, cancel)?;
    let sized = |size: u64| {
        TargetTable::of(
            snapshot,
            DataFileOptions {
                target_file_size: Some(size),
                ..options.encoding.clone()
            },
        )
    };
    // A bin becomes one file, even if it is a little larger than the target.
    let target = sized(size.saturating_mul(2));
    let mut run = OptimizeRun::new(snapshot, options, sql, cluster_by, &target);
    // Progress counts bins instead of the files in them.
    let (progress, cancel) = (cancel.progress(), &cancel.without_progress());
    progress.expect(bins.len() as u64);
    for bin in bins {
        let bin = match &layout {
            OptimizeStrategy::Compaction => FileRewrite::of(bin, snapshot, &target, cancel)?,
            OptimizeStrategy::Purge => {
                with_inherited_clustering(FileRewrite::of(bin, snapshot, &target, cancel)?)
            }
            OptimizeStrategy::ZOrder(curve) => FileRewrite::new(
                bin.clone(),
                curve.rewrite(bin, None, snapshot, &sized(size), cancel)?,
                snapshot,
            ),
            OptimizeStrategy::Clustering(curve, clustering) => {
                let into = Some(output_file_count(&bin, size));
                let mut bin = FileRewrite::new(
                    bin.clone(),
                    curve.rewrite(bin, into, snapshot, &sized(size), cancel)?,
                    snapshot,
                );
                clustering.tag(&mut bin.added);
                bin
            }
        };
        run.add(bin, &mut out);
        progress.advance(1);
        if options
            .min_commit_interval_ms
            .is_some_and(|ms| run.started.elapsed() >= Duration::from_millis(ms))
        {
            out.done = run.commit(cancel)?.or(out.done);
        }
    }
    out.done = run.commit(cancel)?.or(out.done);
    Ok(out)
}

/// The files to rewrite, and how.
pub(super) struct OptimizePlan {
    pub layout: OptimizeStrategy,
    /// The files that are combined, or laid out along one curve.
    pub bins: Vec<Vec<Add>>,
    /// The size of a new file in bytes.
    pub size: u64,
    /// The clustering columns as in the history.
    pub cluster_by: Vec<String>,
    /// The metrics that are known in advance.
    pub result: OptimizeResult,
}

impl OptimizePlan {
    /// A plan for the selected files.
    pub(super) fn of(
        snapshot: &Snapshot,
        files: Vec<Add>,
        options: &OptimizeOptions,
        cancel: &CancellationToken,
    ) -> Result<Self> {
        let clustering =
            LiquidClustering::of(snapshot)?.filter(|clustering| !clustering.paths.is_empty());
        let size = TargetTable::of(snapshot, options.encoding.clone())
            .write_request(WriteRules::default(), cancel)?
            .target_file_size;
        let mut out = OptimizeResult {
            candidate_files: files.len(),
            layout: "packed",
            ..OptimizeResult::default()
        };
        let bytes = |size: u64| i64::try_from(size).unwrap_or(i64::MAX);
        let mut cluster_by = Vec::new();
        let (layout, bins) = match clustering {
            _ if options.task == OptimizeTask::Purge => (
                OptimizeStrategy::Purge,
                purge_bins(purge::files_to_purge(snapshot, files, cancel)?, bytes(size)),
            ),
            _ if options.task == OptimizeTask::Upgrade => (
                OptimizeStrategy::Purge,
                purge_bins(
                    iceberg_compatibility::files_to_upgrade(snapshot, files),
                    bytes(size),
                ),
            ),
            Some(clustering) => {
                let large = options.min_cube_size.map_or(clustering::LARGE_CUBE, bytes);
                let cube = options.cube_size.map_or(clustering::CUBE, bytes);
                let plan = clustering.plan(
                    files,
                    options.task == OptimizeTask::ClusterFull,
                    large,
                    cube,
                );
                (out.layout, out.clustering) = ("clustered", Some(plan.metrics));
                cluster_by.clone_from(&clustering.names);
                (
                    OptimizeStrategy::Clustering(
                        CurveLayout::hilbert(snapshot, &clustering.paths)?,
                        clustering,
                    ),
                    plan.cubes,
                )
            }
            None if !options.z_order_by.is_empty() => {
                out.layout = "zOrder";
                (
                    OptimizeStrategy::ZOrder(CurveLayout::z_order(snapshot, &options.z_order_by)?),
                    by_partition(files).into_values().collect(),
                )
            }
            None => (
                OptimizeStrategy::Compaction,
                compaction_bins(
                    files,
                    options.automatic.map_or(bytes(size), bytes),
                    bytes(size),
                ),
            ),
        };
        let mut partitions: Vec<&PartitionValues> = Vec::new();
        for bin in &bins {
            out.largest_bin = out.largest_bin.max(bin.len());
            if let Some(first) = bin
                .first()
                .filter(|first| partitions.last() != Some(&&first.partition_values))
            {
                partitions.push(&first.partition_values);
            }
        }
        out.partitions = partitions.len();
        Ok(Self {
            layout,
            bins,
            size,
            cluster_by,
            result: out,
        })
    }
}

/// Refuses options that delta-spark refuses for clustered tables, and for tables that are not
/// clustered.
fn check_layout_options(
    clustering: Option<&LiquidClustering>,
    predicate: Option<&NamedExpression>,
    options: &OptimizeOptions,
) -> Result<()> {
    match (clustering, options.task) {
        (_, OptimizeTask::Purge | OptimizeTask::Upgrade) => Ok(()),
        (Some(_), _) if predicate.is_some() => Err(Error::invalid(
            "a clustered table has no partitions to choose from: leave the predicate out, it is optimized as a whole",
        )),
        (Some(_), _) if !options.z_order_by.is_empty() => Err(Error::invalid(
            "a clustered table cannot be optimized in Z-order: its clustering columns determine the order of rows; optimize it without columns, or change them with `alter.cluster_by`",
        )),
        (found, OptimizeTask::Cluster | OptimizeTask::ClusterFull)
            if found.is_none_or(|clustering| clustering.paths.is_empty()) =>
        {
            Err(Error::invalid(
                "only a table with clustering columns can be clustered, also with FULL; set some with `alter.cluster_by` first",
            ))
        }
        _ => Ok(()),
    }
}

/// The live files of the partitions for which `predicate` is true, of all partitions without one.
fn select_files(
    snapshot: &Snapshot,
    predicate: Option<&NamedExpression>,
    cancel: &CancellationToken,
) -> Result<Vec<Add>> {
    let Some(demand) = predicate else {
        return all_live_adds(snapshot, cancel);
    };
    let bound = demand.bound()?;
    if prune::partition_only(&bound, &snapshot.metadata().partition_columns)
        .1
        .is_some()
    {
        let partition = &snapshot.metadata().partition_columns;
        let other = bound.column_names().into_iter().find(|name| {
            !partition
                .iter()
                .any(|column| column.eq_ignore_ascii_case(name))
        });
        // delta-spark's message, which programs match.
        return Err(other.map_or_else(
            || Error::invalid(format!("files are optimized by whole partitions, which `{}` does not choose", demand.sql)),
            |name| {
                let known = partition.join(", ");
                Error::invalid(format!("Predicate references non-partition column '{name}'. Only the partition columns may be referenced: [{known}]"))
                    .with_code(ErrorCode::NonPartitionColumnInPredicate, &[("column", &name)])
            },
        ));
    }
    let lens = FileMatcher::new(snapshot, vec![bound]);
    matching_live_adds(snapshot, cancel, |batch| lens.matching(batch))
}

/// The number of files of a cube, as in delta-spark.
pub(super) fn output_file_count(files: &[Add], size: u64) -> usize {
    let bytes = files
        .iter()
        .map(|add| u64::try_from(add.size).unwrap_or(0))
        .sum::<u64>();
    usize::try_from(bytes / size.max(1))
        .unwrap_or(usize::MAX)
        .max(1)
}

/// A new file with the rows of an old one in their order keeps the clustering tags.
pub(super) fn with_inherited_clustering(mut bin: FileRewrite) -> FileRewrite {
    if let [old] = bin.removed.as_slice() {
        clustering::inherit_clustering(old, &mut bin.added);
    }
    bin
}

/// The state of a run: rewritten files that are not committed yet.
pub(super) struct OptimizeRun<'a> {
    options: &'a OptimizeOptions,
    sql: Option<String>,
    cluster_by: Vec<String>,
    /// The newest version, except for `last_commit`.
    current_snapshot: Snapshot,
    /// The last commit. Its version is opened when the next commit begins, so that an error of
    /// opening does not fail this commit.
    last_commit: Option<CommitResult>,
    target: &'a TargetTable,
    bins: Vec<FileRewrite>,
    started: Instant,
}

impl<'a> OptimizeRun<'a> {
    pub(super) fn new(
        snapshot: &Snapshot,
        options: &'a OptimizeOptions,
        sql: Option<String>,
        cluster_by: Vec<String>,
        target: &'a TargetTable,
    ) -> Self {
        Self {
            options,
            sql,
            cluster_by,
            current_snapshot: snapshot.clone(),
            last_commit: None,
            target,
            bins: Vec::new(),
            started: Instant::now(),
        }
    }

    /// Adds a rewritten bin.
    pub(super) fn add(&mut self, bin: FileRewrite, out: &mut OptimizeResult) {
        out.added.0.extend(bin.added.iter().map(|add| add.size));
        out.removed.0.extend(bin.removed.iter().map(|add| add.size));
        self.bins.push(bin);
    }

    pub(super) fn commit(&mut self, cancel: &CancellationToken) -> Result<Option<CommitResult>> {
        let bins = std::mem::take(&mut self.bins);
        self.started = Instant::now();
        if bins.is_empty() {
            return Ok(None);
        }
        if let Some(last) = self.last_commit.take() {
            self.current_snapshot = last.newest(&self.current_snapshot)?;
        }
        let added = FileSizes(
            bins.iter()
                .flat_map(|bin| &bin.added)
                .map(|add| add.size)
                .collect(),
        );
        let metrics = json!({
            "minFileSize": added.percentile(0),
            "p25FileSize": added.percentile(25),
            "p50FileSize": added.percentile(50),
            "p75FileSize": added.percentile(75),
            "maxFileSize": added.percentile(100),
        });
        let operation = finish::operation(
            if self.options.task.is_reorg() {
                "REORG"
            } else {
                "OPTIMIZE"
            },
            self.parameters(),
            metrics,
        );
        let done = file_rewrite::commit(
            OptimisticTransaction::new(&self.current_snapshot),
            operation,
            bins,
            self.target,
            &self.options.commit_options,
            cancel,
        )?;
        self.last_commit = Some(done.clone());
        Ok(Some(done))
    }

    fn parameters(&self) -> Value {
        let predicate = json_string_list(self.sql.as_slice());
        if self.options.task.is_reorg() {
            return json!({"predicate": predicate, "applyPurge": true});
        }
        let full =
            (!self.cluster_by.is_empty()).then_some(self.options.task == OptimizeTask::ClusterFull);
        json!({
            "predicate": predicate,
            "auto": self.options.automatic.is_some(),
            "clusterBy": json_string_list(&self.cluster_by),
            "zOrderBy": json_string_list(&self.options.z_order_by),
            "isFull": full,
        })
    }
}

/// Bins of files to purge: unclustered files are packed, clustered ones are rewritten one by one.
fn purge_bins(files: Vec<Add>, size: i64) -> Vec<Vec<Add>> {
    let (loose, clustered): (Vec<Add>, Vec<Add>) = files
        .into_iter()
        .partition(|add| !clustering::is_clustered(add));
    let packed = by_partition(loose)
        .into_values()
        .flat_map(|files| pack_by_size(files, size));
    packed
        .chain(clustered.into_iter().map(|add| vec![add]))
        .collect()
}

/// The files to combine, partition by partition: files below `small` bytes, up to `size` bytes
/// together.
fn compaction_bins(files: Vec<Add>, small: i64, size: i64) -> Vec<Vec<Add>> {
    let mut out: Vec<Vec<Add>> = Vec::new();
    for (_, mut files) in by_partition(files) {
        files.retain(|add| add.size < small || has_many_deleted_rows(add));
        out.extend(pack_by_size(files, size));
    }
    out.retain(|bin| bin.len() > 1 || bin.iter().any(has_many_deleted_rows));
    out
}

/// Files in the order of their creation, up to `size` bytes per bin.
fn pack_by_size(mut files: Vec<Add>, size: i64) -> Vec<Vec<Add>> {
    files.sort_by(|a, b| (a.modification_time, &a.path).cmp(&(b.modification_time, &b.path)));
    file_rewrite::split_by_size(files, size)
}

fn by_partition(files: Vec<Add>) -> BTreeMap<PartitionValues, Vec<Add>> {
    let mut out: BTreeMap<PartitionValues, Vec<Add>> = BTreeMap::new();
    for add in files {
        out.entry(add.partition_values.clone())
            .or_default()
            .push(add);
    }
    out
}

/// Whether many rows of a file are deleted.
fn has_many_deleted_rows(add: &Add) -> bool {
    let deleted = add
        .deletion_vector
        .as_ref()
        .map_or(0, |vector| vector.cardinality);
    deleted > 0
        && add
            .num_records()
            .is_none_or(|rows| deleted.saturating_mul(100) > rows.saturating_mul(DELETED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dv::DeletionVectorDescriptor;

    fn file(path: &str, partition: &str, size: i64, time: i64) -> Add {
        let partition_values = [("p".to_owned(), Some(partition.to_owned()))].into();
        Add {
            path: path.to_owned(),
            partition_values,
            size,
            modification_time: time,
            stats: Some(r#"{"numRecords":100}"#.to_owned()),
            ..Add::default()
        }
    }

    fn worn(add: Add, cardinality: i64) -> Add {
        let vector = DeletionVectorDescriptor {
            storage_type: "u".to_owned(),
            path_or_inline_dv: "x".to_owned(),
            offset: Some(1),
            size_in_bytes: 1,
            cardinality,
        };
        Add {
            deletion_vector: Some(vector),
            ..add
        }
    }

    fn packed(files: Vec<Add>) -> Vec<Vec<String>> {
        compaction_bins(files, 100, 100)
            .into_iter()
            .map(|bin| bin.into_iter().map(|add| add.path).collect())
            .collect()
    }

    #[test]
    fn files_are_packed_by_partition_in_the_order_of_their_making() {
        let files = vec![
            file("c", "1", 50, 3),
            file("a", "1", 60, 1),
            file("b", "1", 40, 2),
            file("d", "1", 50, 4),
            file("x", "2", 10, 1),
            file("y", "1", 100, 0),
        ];
        assert_eq!(packed(files), [["a", "b"], ["c", "d"]]);
    }

    #[test]
    fn a_file_alone_is_copied_only_where_many_of_its_rows_are_deleted() {
        let files = vec![
            worn(file("few", "1", 200, 1), 5),
            worn(file("many", "2", 200, 1), 6),
            worn(file("lone", "3", 1, 1), 50),
            file("small", "4", 1, 1),
        ];
        assert_eq!(packed(files), [["many"], ["lone"]]);
    }

    #[test]
    fn sizes_are_told_by_rank() {
        let sizes = FileSizes(vec![50, 10, 30, 20, 40]);
        assert_eq!(
            [0, 25, 50, 75, 100].map(|p| sizes.percentile(p)),
            [10, 20, 30, 40, 50]
        );
        assert_eq!(
            (
                sizes.count(),
                sizes.sum(),
                FileSizes::default().percentile(50)
            ),
            (5, 150, 0)
        );
    }
}
