//! What OPTIMIZE does, its options and its result.

use super::clustering;
use crate::commit::finish::{CommitOptions, CommitResult};
use crate::error::{Error, ErrorCode, Result};
use crate::file_writer::bound_constraints::NamedExpression;
use crate::ops::optimize::clustering::{ClusteringMetrics, LiquidClustering};
use crate::ops::optimize::curve_layout::CurveLayout;
use crate::ops::rewrite::file_rewrite::FileRewrite;
use crate::ops::rewrite::target_table::DataFileOptions;
use serde::Deserialize;

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
    pub(super) fn is_reorg(self) -> bool {
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
    pub(in crate::ops) automatic: Option<u64>,
}

/// The sizes of some files in bytes.
#[derive(Debug, Clone, Default)]
pub struct FileSizes(pub(super) Vec<i64>);

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

/// How the rows of a bin are written to new files.
pub(in crate::ops) enum OptimizeStrategy {
    /// Each bin becomes one file.
    Compaction,
    /// The same for clustered files, which keep their tags.
    Purge,
    /// Z-order.
    ZOrder(CurveLayout),
    /// Each bin becomes a cube.
    Clustering(CurveLayout, LiquidClustering),
}

/// Refuses options that delta-spark refuses for clustered tables, and for tables that are not
/// clustered.
pub(super) fn check_layout_options(
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
            )
            .with_code(ErrorCode::OptimizeFullWithoutClustering, &[]))
        }
        _ => Ok(()),
    }
}

/// A new file with the rows of an old one in their order keeps the clustering tags.
pub(in crate::ops) fn with_inherited_clustering(mut bin: FileRewrite) -> FileRewrite {
    if let [old] = bin.removed.as_slice() {
        clustering::inherit_clustering(old, &mut bin.added);
    }
    bin
}
