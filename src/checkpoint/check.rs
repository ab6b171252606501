//! Checks and constants of all files that maintenance writes.

use super::rows::{CheckpointFileKind, CheckpointLayout};
use crate::error::{Result, ResultExt};
use crate::parse::FileActionProjection;
use crate::protocol::features;
use crate::snapshot::Snapshot;

/// Checks that the table's log may be changed by this release.
pub(super) fn check(snapshot: &Snapshot) -> Result<()> {
    features::check_writable(snapshot.protocol())
        .at_file(snapshot.stores().root().url())
        .at_version(snapshot.version())
}

/// All columns of the version's `add` actions; statistics as JSON if the log has them as JSON.
#[must_use]
pub fn add_columns(snapshot: &Snapshot) -> FileActionProjection {
    FileActionProjection {
        stats: true,
        stats_text: true,
        ..CheckpointLayout::new(snapshot, CheckpointFileKind::Sidecar).add_columns()
    }
}

/// A day in milliseconds.
pub(super) const DAY: i64 = 86_400_000;
