//! Action reconciliation: from columns of actions, newest first, to the live files and the
//! tombstones of a version.
//!
//! A logical file is a path and the unique id of its deletion vector; its newest action determines
//! its state. Only the keys of commits after the checkpoint are kept in memory: the checkpoint is
//! reconciled already and is streamed, so its size costs no memory. Keys are stored as 128-bit
//! fingerprints with random seeds, not as strings.
//!
//! Protocol: "Action Reconciliation". Cost: one hash of the path per action after the checkpoint,
//! one look-up per action of the checkpoint (none without commits after it).

mod counts;
mod replay;
mod seen_keys;
mod singletons;

pub use counts::FileCounts;
pub use replay::{CommitCache, FileStream, FileStreamRequest, FinishedFiles, files, files_after};
pub use seen_keys::{FileActionState, SeenFileKeys};
pub use singletons::{NonFileActions, TableActions, read_non_file_actions, read_table_actions};

#[cfg(test)]
mod tests;
