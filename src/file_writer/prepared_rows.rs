//! The input of the encoders: rows in the layout of the files, and files that are copied.

use super::partition::{PartitionRun, PartitionTuple};
use crate::pq::{ColumnStatistics, SpliceSource};
use arrow_array::ArrayRef;

/// Rows ready to be encoded.
pub(super) struct PreparedRows {
    /// The columns of the file, with the rows in the order of the runs.
    pub(super) columns: Vec<ArrayRef>,
    pub(super) runs: Vec<PartitionRun>,
    pub(super) rows: usize,
}

/// A file that is copied.
#[derive(Debug, Clone)]
pub struct SplicedFile {
    pub(super) path: String,
    pub(super) source: SpliceSource,
    pub(super) statistics: Vec<ColumnStatistics>,
    /// The values of the partition columns, in order.
    pub(super) partition: PartitionTuple,
}
