//! Which files OPTIMIZE rewrites, and into how many.

use super::clustering;
use super::optimize_options::{
    OptimizeOptions, OptimizeResult, OptimizeStrategy, OptimizeTask, check_layout_options,
};
use super::purge;
use crate::commit::adds::{all_live_adds, matching_live_adds};
use crate::error::{Error, ErrorCode, Result};
use crate::exec::CancellationToken;
use crate::file_writer::bound_constraints::NamedExpression;
use crate::file_writer::constraints::WriteRules;
use crate::log::MaintenanceOperation;
use crate::ops::optimize::clustering::LiquidClustering;
use crate::ops::optimize::curve_layout::CurveLayout;
use crate::ops::rewrite::file_rewrite::{self};
use crate::ops::rewrite::iceberg_compatibility;
use crate::ops::rewrite::start_state::check_writable;
use crate::ops::rewrite::target_table::TargetTable;
use crate::protocol::commit_line::{Add, PartitionValues};
use crate::prune;
use crate::scan::FileMatcher;
use crate::snapshot::Snapshot;
use std::collections::BTreeMap;

/// The percentage of deleted rows from which a file is rewritten for that reason alone.
const DELETED: i64 = 5;

/// The files of a table that the task may rewrite.
pub(in crate::ops) fn files_to_optimize(
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

/// The files to rewrite, and how.
pub(in crate::ops) struct OptimizePlan {
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
    pub(in crate::ops) fn of(
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
pub(in crate::ops) fn output_file_count(files: &[Add], size: u64) -> usize {
    let bytes = files
        .iter()
        .map(|add| u64::try_from(add.size).unwrap_or(0))
        .sum::<u64>();
    usize::try_from(bytes / size.max(1))
        .unwrap_or(usize::MAX)
        .max(1)
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
    use crate::ops::optimize::optimize_options::FileSizes;

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
