//! SCAN: a snapshot -> its files as Arrow, the files that a predicate leaves, their rows, its
//! changes.
//!
//! `actions` exports the file list, `plan` prunes it, `read` reads the rows of what is left,
//! `changes` the change data feed; `commits` tells followers what single commits added.

mod actions;
mod changes;
mod columns;
mod commits;
mod file_matcher;
mod plan;
mod read;
mod vectors;

pub use actions::{ActionColumns, actions, partitions, tombstones};
pub use changes::{ChangeRequest, change_range, changes};
pub use columns::{Leaves, leaves};
pub use commits::{CommitFiles, Commits};
pub use file_matcher::Lens;
pub use plan::{Plan, PlanBatch, plan};
pub use read::{Chosen, MetadataColumn, ScanRequest, at_positions, count, scan, vector_file};
pub use vectors::{checked, deletion_bitmaps, deletion_vectors, ids_agree, uri};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::error::Result;

/// A stream of batches of one schema.
pub struct Batches {
    /// Schema of every batch.
    pub schema: SchemaRef,
    /// The batches.
    pub batches: Box<dyn Iterator<Item = Result<RecordBatch>> + Send>,
    /// Files done and in all, for whoever watches.
    pub progress: crate::exec::Progress,
}

impl std::fmt::Debug for Batches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batches")
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}
