//! SCAN: a snapshot -> its files as Arrow, the files that may match a predicate, their rows, its
//! changes.
//!
//! `actions` exports the file list, `plan` prunes it, `read` reads the rows of the remaining files,
//! `changes` the change data feed, whose files `changed_files` finds; `commits` lists what single
//! commits added, for followers; `explain` counts what a scan reads.

mod actions;
mod batch_stream;
mod changed_files;
mod changes;
mod columns;
mod commits;
mod deletion_vectors;
mod explain;
mod file_matcher;
mod overlap;
mod plan;
mod read;

pub use actions::{ActionColumns, actions, partitions, tombstones};
pub use batch_stream::BatchStream;
pub use changes::{ChangeRequest, change_files, change_range, changes};
pub use columns::{LeafColumns, leaves};
pub use commits::{CommitFileChanges, CommitRange};
pub use deletion_vectors::{checked, deletion_bitmaps, deletion_vectors, ids_agree, uri};
pub use explain::{ScanExplanation, explain};
pub use file_matcher::FileMatcher;
pub use overlap::ColumnOverlap;
pub use plan::{PlanBatch, ScanPlan, plan};
pub use read::{
    MetadataColumn, PositionSelection, ScanRequest, at_positions, count, scan, vector_file,
};
