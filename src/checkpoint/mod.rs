//! Checkpoints and the upkeep of the log: a version -> files that spare readers its commits.
//!
//! Writing streams: the version's files come reconciled, batch by batch; some of them make a job
//! that turns them into the checkpoint's columns and encodes them as a row group; row groups are
//! put behind each other into uploads. So a table of any size costs the memory of a few row groups,
//! beside the keys that commits after the last checkpoint touched.
//!
//! Nothing here is needed for a table to be right, so nothing here is synced to disk, and all of it
//! may fail without harm: checkpoints come into being whole or not at all, the hint is written last
//! and never goes back, and [`cleanup`] deletes in an order in which every version that is kept can
//! be read at every moment.
//!
//! Protocol: "Checkpoints", "Last Checkpoint File", "Version Checksum File", "Log Compaction
//! Files", "Metadata Cleanup". Cost: one pass over the version's files.

mod checksum;
mod cleanup;
mod compaction;
mod hint;
mod parts;
mod reuse;
mod rows;
mod stats;
mod write;

pub use checksum::{
    DeletedRecordCountsHistogram, FileSizeHistogram, VersionChecksum, compute as compute_checksum,
    next as next_checksum, write as write_checksum,
    write_after_commit as write_checksum_after_commit,
};
pub use cleanup::{CleanupOptions, CleanupPlan, cleanup, plan as plan_cleanup};
pub use compaction::compact;
pub use hint::CheckpointInfo;
pub use stats::stats_json as stats_text;
pub use write::{CheckpointOptions, CheckpointSpec, is_due, write};

use crate::error::{Result, ResultExt};
use crate::parse::FileActionProjection;
use crate::protocol::features;
use crate::protocol::properties;
use crate::snapshot::Snapshot;
use rows::{CheckpointFileKind, CheckpointLayout};

/// Checks that the table's log may be changed by this release.
fn check(snapshot: &Snapshot) -> Result<()> {
    features::check_writable(snapshot.protocol())
        .at_file(snapshot.stores().root().url())
        .at_version(snapshot.version())
}

/// A property that is a duration, in milliseconds; `default` where it is not set or is no duration.
fn duration_property_ms(snapshot: &Snapshot, property: &str, default: i64) -> i64 {
    snapshot
        .metadata()
        .configuration
        .get(property)
        .and_then(|text| properties::duration_ms(text))
        .unwrap_or(default)
}

/// Everything that an `add` of the version says, statistics as text where there is text.
#[must_use]
pub fn add_columns(snapshot: &Snapshot) -> FileActionProjection {
    FileActionProjection {
        stats: true,
        stats_text: true,
        ..CheckpointLayout::new(snapshot, CheckpointFileKind::Sidecar).add_columns()
    }
}

/// A day in milliseconds.
const DAY: i64 = 86_400_000;

#[cfg(test)]
mod tests;
