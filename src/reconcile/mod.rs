//! RECONCILE: columns of actions, newest first -> the live files and the tombstones of a version.
//!
//! A logical file is a path and the unique id of its deletion vector; its newest action decides.
//! Only keys that commits newer than the checkpoint touched are remembered: the checkpoint is
//! reconciled already and streams past them, so its size costs no memory. Keys are kept as 128-bit
//! fingerprints with random seeds, not as text.
//!
//! Protocol: "Action Reconciliation". Cost: one hash of the path per action after the checkpoint,
//! one look-up per action of the checkpoint (none when nothing came after it).

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
