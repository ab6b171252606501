//! Checkpoints and maintenance of the log: files from which readers load a version without
//! replaying its commits.
//!
//! A checkpoint is written as a stream: batches of the version's reconciled files are grouped into
//! jobs, which convert them to the columns of the checkpoint and encode them as a row group; the
//! row groups are appended to uploads. Therefore a table of any size needs memory for a few row
//! groups, plus the keys of the commits after the last checkpoint.
//!
//! Tables are correct without these files, so nothing here is synced to disk, and all of it may
//! fail without harm: a checkpoint is created atomically, the hint is written last and never moves
//! to an older version, and [`cleanup`] deletes files in an order in which every kept version is
//! readable at any time.
//!
//! Protocol: "Checkpoints", "Last Checkpoint File", "Version Checksum File", "Log Compaction
//! Files", "Metadata Cleanup". Cost: one pass over the version's files.

mod check;
mod checksum_writer;
mod cleanup;
mod compaction;
mod hint;
mod parts;
mod reuse;
mod rows;
mod stats;
#[cfg(test)]
mod tests;
mod write;

pub use check::add_columns;
pub use checksum_writer::{
    DeletedRecordCountsHistogram, FileSizeHistogram, VersionChecksum, compute as compute_checksum,
    next as next_checksum, write as write_checksum,
    write_after_commit as write_checksum_after_commit,
};
pub use cleanup::{CleanupOptions, CleanupPlan, cleanup, plan as plan_cleanup};
pub use compaction::compact;
pub use hint::CheckpointInfo;
pub use stats::stats_json;
pub use write::{CheckpointOptions, CheckpointSpec, is_due, write};
