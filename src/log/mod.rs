//! LIST: a table's location -> the files that make up a version.
//!
//! A listing starts at the version that `_last_checkpoint` names, so opening costs a handful of
//! requests however long the log is. The hint is only a hint: when it is wrong, damaged or stale,
//! everything is listed. Checkpoints and compactions are hints as well, as long as the commits
//! exist: [`LogListing::segment`] takes the number of those to skip, and the snapshot calls it
//! again with more of them skipped whenever one proves damaged.
//!
//! The newest versions of a catalog-managed table are those that its catalog names, see
//! [`CatalogClient`].
//!
//! Protocol: "Delta Log Entries", "Checkpoints", "Log Compaction Files", "Last Checkpoint File".
//! Cost: two requests (hint, list) for a table with a checkpoint; the listing's length otherwise.

mod catalog;
mod checksum_file;
mod last_checkpoint;
mod listing;
mod segment;

pub use catalog::{CatalogClient, LogTail, MaintenanceOperation, TailCommit};
pub use checksum_file::{ChecksumFileContents, LiveFileTotals};
pub use last_checkpoint::LastCheckpointHint;
pub use listing::{DeltaLog, LogListing};
pub use segment::{
    CheckpointCounts, CheckpointInstance, CheckpointKind, CommitFile, LogSegment, SegmentOptions,
};

#[cfg(test)]
mod tests;
