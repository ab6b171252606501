//! What follows a commit: a checksum, a checkpoint when one is due, a cleanup after it. None of it can fail the commit.

use super::{CheckpointOptions, CleanupOptions, cleanup, due, write, write_checksum};
use crate::error::{Error, Result};
use crate::exec::Cancel;
use crate::protocol::log_path;
use crate::snapshot::Snapshot;

/// Checksums of tables whose checkpoint is larger than this are only made from the one before: reading all files after every
/// commit would cost more than it gives.
const CHECKPOINT_BYTES: u64 = 16 << 20;

/// What a caller decides of it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Upkeep {
    /// Whether a checkpoint is made when it is due; yes, unless said otherwise.
    pub create_checkpoint: Option<bool>,
    /// Whether the log is cleaned up after a checkpoint; if not said, the table's `delta.enableExpiredLogCleanup` decides.
    pub cleanup_expired_logs: Option<bool>,
}

/// Does what is due after a version was made; gives what went wrong.
#[must_use]
pub fn keep_up(snapshot: &Snapshot, upkeep: Upkeep, cancel: &Cancel) -> Vec<String> {
    let mut warnings = Vec::new();
    let version = snapshot.version();
    let mut note = |what: &str, error: &Error| {
        if !matches!(error, Error::Cancelled) {
            warnings.push(format!("version {version} is committed, but {what}: {error}"));
        }
    };
    let due = upkeep.create_checkpoint.unwrap_or(true) && due(snapshot).map_err(|e| note("whether a checkpoint is due is unknown", &e)).unwrap_or(false);
    if due || has_short_checksum(snapshot) {
        _ = write_checksum(snapshot, cancel).map_err(|e| note("its checksum could not be written", &e));
    }
    if due {
        match write(snapshot, &CheckpointOptions::default(), cancel) {
            Ok(_) => _ = clean(snapshot, upkeep, cancel).map_err(|e| note("its log could not be cleaned up", &e)),
            Err(error) => note("its checkpoint could not be written", &error),
        }
    }
    warnings
}

/// Whether making the checksum costs little: there is one of the version before, or not much of a table.
fn has_short_checksum(snapshot: &Snapshot) -> bool {
    let segment = snapshot.segment();
    let bytes: u64 = segment.checkpoint.iter().flat_map(|checkpoint| &checkpoint.files).map(|file| file.size.unwrap_or(0)).sum();
    bytes <= CHECKPOINT_BYTES || snapshot.stores().root().head(&log_path::checksum(snapshot.version() - 1)).is_ok()
}

fn clean(snapshot: &Snapshot, upkeep: Upkeep, cancel: &Cancel) -> Result<()> {
    if upkeep.cleanup_expired_logs != Some(false) {
        let options = CleanupOptions { automatic: upkeep.cleanup_expired_logs.is_none(), ..CleanupOptions::default() };
        cleanup(snapshot, &options, cancel)?;
    }
    Ok(())
}
