//! The statistics that pruning evaluates predicates over.
//!
//! Protocol: "Per-file Statistics", "Partition Value Serialization".

use arrow_array::{ArrayRef, Int64Array};

/// Statistics of files (or row groups, or pages): one row each. Null or `None` is unknown.
///
/// Paths are logical. A column whose values compare by a collation must be absent.
pub trait PruningStatistics {
    /// Number of files.
    fn rows(&self) -> usize;
    /// A lower bound of the column's values.
    fn min(&self, path: &[String]) -> Option<ArrayRef>;
    /// An upper bound of the column's values.
    fn max(&self, path: &[String]) -> Option<ArrayRef>;
    /// Number of rows with null in the column.
    fn null_count(&self, path: &[String]) -> Option<Int64Array>;
    /// Number of rows, deleted ones included.
    fn num_records(&self) -> Option<Int64Array>;
    /// The value that every row of the file has in a partition column; null is null.
    fn partition(&self, path: &[String]) -> Option<ArrayRef>;
}
