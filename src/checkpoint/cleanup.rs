//! Log cleanup: a plan made from a listing, and its execution. A dry run returns the plan.
//!
//! Kept are the newest readable checkpoint at or before the newest expired commit, and everything
//! after it. Kept files never depend on deleted ones, so after a crash between any two deletions
//! every kept version is still readable; nevertheless commits are deleted before checkpoints, for
//! readers that are still reading old versions.
//!
//! Hidden temporary files that a killed writer left on a local disk are deleted as well once they
//! are a day old.
//!
//! Protocol: "Metadata Cleanup", "Checkpoint Protection". Cost: two listings and the manifests of
//! the checkpoints that are kept.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::check::{DAY, check};
use super::write::classic_copy;
use crate::error::{Error, Result};
use crate::exec::now_ms;
use crate::exec::{CancellationToken, map_all};
use crate::history::{self, TimestampSearch};
use crate::log::{CheckpointInstance, CheckpointKind, MaintenanceOperation};
use crate::parse::checkpoint::{self, CheckpointReader};
use crate::parse::commit::{ActionSelection, NonFileAction};
use crate::protocol::log_path::{self, LOG_DIR, LogFile, SIDECAR_DIR, STAGED_DIR};
use crate::protocol::properties;
use crate::snapshot::Snapshot;

/// The number of deletions between two checks for cancellation.
const CHUNK: usize = 1000;

/// Options of a cleanup.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CleanupOptions {
    /// Only plan, delete nothing.
    pub dry_run: bool,
    /// How long commits are kept, in milliseconds; `delta.logRetentionDuration` (30 days where
    /// unset) if `None`.
    pub retention_ms: Option<i64>,
    /// The current time, in milliseconds since the epoch; the system clock's if `None`.
    pub now_ms: Option<i64>,
    /// Do nothing if the table has `delta.enableExpiredLogCleanup=false`: for cleanups that were
    /// not requested explicitly.
    pub automatic: bool,
    /// Round the end of the retention down to the minute; otherwise to the start of the day (UTC).
    pub to_the_minute: bool,
}

/// What a cleanup deletes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CleanupPlan {
    /// The oldest version that remains readable; `None` if nothing is deleted.
    pub kept_from: Option<i64>,
    /// Paths relative to the table root, in the order of deletion.
    pub files: Vec<String>,
}

/// A minute in milliseconds.
const MINUTE: i64 = 60_000;

/// Midnight (UTC) of the day of a timestamp.
fn midnight(ms: i64) -> i64 {
    ms.div_euclid(DAY).saturating_mul(DAY)
}

/// Plans the cleanup of a table's log, based on its newest version.
///
/// # Errors
/// [`Error::Unsupported`] for a table that this release cannot write or whose catalog does not
/// permit it; [`Error::Invalid`] for a retention that is negative or cannot be read, with which
/// nothing is deleted; [`Error::Storage`].
pub fn plan(
    snapshot: &Snapshot,
    options: &CleanupOptions,
    cancel: &CancellationToken,
) -> Result<CleanupPlan> {
    check(snapshot)?;
    if options.automatic && !snapshot.permits_maintenance(MaintenanceOperation::Cleanup)? {
        return Ok(CleanupPlan::default());
    }
    snapshot.check_maintenance(MaintenanceOperation::Cleanup)?;
    if options.automatic && is_disabled(snapshot) {
        return Ok(CleanupPlan::default());
    }
    let now = options.now_ms.unwrap_or_else(now_ms);
    let end = retention_end(snapshot, options, now)?;
    if options.automatic && has_no_expired_commits(snapshot, end) {
        return Ok(CleanupPlan::default());
    }
    let cutoff = match history::version_at(snapshot, end, TimestampSearch::AtOrBefore) {
        Ok(version) => version,
        Err(error) if error.is_not_found() => return Ok(CleanupPlan::default()),
        Err(error) => return Err(error),
    };
    cancel.check()?;
    let listing = snapshot.log().list(0)?;
    let Some(kept) = kept_checkpoint(snapshot, &listing.checkpoints, cutoff)? else {
        return Ok(CleanupPlan::default());
    };
    // If the log folder is a symbolic link, its target does not belong to the table.
    if is_protected(snapshot, kept)? || !snapshot.stores().root().owns(LOG_DIR) {
        return Ok(CleanupPlan::default());
    }
    let yesterday = midnight(now.saturating_sub(DAY));
    let mut files = expired_log_files(snapshot, kept, yesterday)?;
    if !files.is_empty() || snapshot.protocol().has_writer_feature("v2Checkpoint") {
        let staying: Vec<CheckpointInstance> = listing
            .checkpoints
            .iter()
            .filter(|c| c.version >= kept)
            .cloned()
            .collect();
        files.extend(unreferenced_sidecars(snapshot, staying, yesterday)?);
    }
    if files.is_empty() {
        Ok(CleanupPlan::default())
    } else {
        Ok(CleanupPlan {
            kept_from: Some(kept),
            files,
        })
    }
}

/// Whether the table disables cleanups that were not requested explicitly. A value that is not a
/// boolean disables them, too.
fn is_disabled(snapshot: &Snapshot) -> bool {
    snapshot
        .metadata()
        .configuration
        .get("delta.enableExpiredLogCleanup")
        .is_some_and(|value| !value.eq_ignore_ascii_case("true"))
}

/// The timestamp before which commits have expired.
fn retention_end(snapshot: &Snapshot, options: &CleanupOptions, now: i64) -> Result<i64> {
    let retention = match options.retention_ms {
        Some(retention) if retention < 0 => {
            return Err(Error::invalid(
                "the retention of a log cleanup cannot be negative",
            ));
        }
        Some(retention) => retention,
        None => properties::retention_ms(
            &snapshot.metadata().configuration,
            "delta.logRetentionDuration",
        )?,
    };
    let end = now.saturating_sub(retention);
    Ok(if options.to_the_minute {
        end.div_euclid(MINUTE).saturating_mul(MINUTE)
    } else {
        midnight(end)
    })
}

/// The version of the newest readable checkpoint at or before `cutoff` and the checkpoint that the
/// hint names.
fn kept_checkpoint(
    snapshot: &Snapshot,
    checkpoints: &[CheckpointInstance],
    cutoff: i64,
) -> Result<Option<i64>> {
    // Readers start from the hint, so the files that it names are kept.
    let hinted = snapshot
        .log()
        .needed_hint()?
        .map(|hint| hint.version)
        .filter(|version| checkpoints.iter().any(|c| c.version == *version));
    let newest = cutoff.min(hinted.unwrap_or(cutoff));
    Ok(checkpoints
        .iter()
        .rev()
        .filter(|c| c.version <= newest)
        .find(|c| is_readable(snapshot, c))
        .map(|c| c.version))
}

/// Whether checkpoint protection forbids a cleanup of the versions before `kept`.
fn is_protected(snapshot: &Snapshot, kept: i64) -> Result<bool> {
    let has_protection = snapshot
        .protocol()
        .has_writer_feature("checkpointProtection");
    Ok(has_protection
        && kept < properties::protected_before_version(&snapshot.metadata().configuration)?)
}

/// The files of the log that `kept` makes superfluous, and temporary files and staged commits older
/// than `before`, in the order of deletion.
fn expired_log_files(snapshot: &Snapshot, kept: i64, before: i64) -> Result<Vec<String>> {
    let mut files: [Vec<String>; 5] = Default::default();
    let [compactions, commits, checksums, checkpoints, unfinished] = &mut files;
    for object in snapshot.stores().root().list_from(LOG_DIR, "")? {
        let name = object.path.rsplit('/').next().unwrap_or_default();
        let Some(file) = LogFile::parse(name) else {
            if name.starts_with('.')
                && name.ends_with(".tmp")
                && is_before(object.modified_ms, before)
            {
                unfinished.push(object.path);
            }
            continue;
        };
        let is_older = file.version() < kept;
        match file {
            LogFile::Compacted(first, _) if first <= kept => compactions.push(object.path),
            LogFile::Commit(_) if is_older => commits.push(object.path),
            LogFile::Checksum(_) if is_older => checksums.push(object.path),
            LogFile::Classic(_) | LogFile::Part(..) | LogFile::Uuid(..) if is_older => {
                checkpoints.push(object.path);
            }
            _ => {}
        }
    }
    unfinished.extend(expired_staged_commits(snapshot, kept, before)?);
    Ok(files.into_iter().flatten().collect())
}

/// Whether the first commit exists and has not expired, so that no commit has. For cleanups that
/// were not requested explicitly this single request replaces a listing, whose cost grows with the
/// log.
fn has_no_expired_commits(snapshot: &Snapshot, end: i64) -> bool {
    !snapshot.metadata().flag("delta.enableInCommitTimestamps")
        && snapshot
            .stores()
            .root()
            .head(&log_path::commit(0))
            .is_ok_and(|first| first.modified_ms > end)
}

/// Whether a checkpoint contains what a version requires: protocol, metadata, and files whose ends
/// can be read.
fn is_readable(snapshot: &Snapshot, checkpoint: &CheckpointInstance) -> bool {
    let Ok(open) = CheckpointReader::open(checkpoint, snapshot.stores().root(), true) else {
        return false;
    };
    let Ok(singles) = open.non_file_actions(&ActionSelection {
        protocol_and_metadata: true,
        ..ActionSelection::default()
    }) else {
        return false;
    };
    singles
        .iter()
        .any(|single| matches!(single, NonFileAction::Protocol(_)))
        && singles
            .iter()
            .any(|single| matches!(single, NonFileAction::Metadata(_)))
}

/// Whether a file is older than `time`; false for a store that does not report modification times
/// (0).
fn is_before(modified: i64, time: i64) -> bool {
    modified > 0 && modified < time
}

/// Staged commits older than `before` for versions before `kept`, including those that were never
/// ratified.
fn expired_staged_commits(snapshot: &Snapshot, kept: i64, before: i64) -> Result<Vec<String>> {
    if !snapshot.protocol().has_writer_feature("catalogManaged")
        || !snapshot.stores().root().owns(STAGED_DIR)
    {
        return Ok(Vec::new());
    }
    let name = |path: &str| path.rsplit('/').next().and_then(log_path::staged_version);
    let mut staged = snapshot.stores().root().list_from(STAGED_DIR, "")?;
    staged.retain(|object| {
        name(&object.path).is_some_and(|version| version < kept)
            && is_before(object.modified_ms, before)
    });
    Ok(staged.into_iter().map(|object| object.path).collect())
}

/// Sidecars older than `before` that no checkpoint references; empty if one of the checkpoints
/// cannot be read.
fn unreferenced_sidecars(
    snapshot: &Snapshot,
    staying: Vec<CheckpointInstance>,
    before: i64,
) -> Result<Vec<String>> {
    let root = snapshot.stores().root();
    if !root.owns(SIDECAR_DIR) {
        return Ok(Vec::new());
    }
    let mut sidecars = root.list_from(SIDECAR_DIR, "")?;
    sidecars.retain(|object| {
        (object.path.ends_with(".parquet") || object.path.ends_with(".tmp"))
            && is_before(object.modified_ms, before)
    });
    if sidecars.is_empty() {
        return Ok(Vec::new());
    }
    let with_sidecars = staying
        .into_iter()
        .filter(|c| c.kind != CheckpointKind::MultiPart);
    let Ok(named) = map_all(with_sidecars, |checkpoint| {
        checkpoint::sidecar_names(&checkpoint)
    }) else {
        return Ok(Vec::new());
    };
    let named: HashSet<String> = named.into_iter().flatten().collect();
    Ok(sidecars
        .into_iter()
        .map(|object| object.path)
        .filter(|path| {
            path.rsplit('/')
                .next()
                .is_some_and(|name| !named.contains(name))
        })
        .collect())
}

/// Cleans up the log according to [`plan`]; returns the plan.
///
/// # Errors
/// As [`plan`]. Files that were deleted before an error remain deleted; no kept version depends on
/// them.
pub fn cleanup(
    snapshot: &Snapshot,
    options: &CleanupOptions,
    cancel: &CancellationToken,
) -> Result<CleanupPlan> {
    let plan = plan(snapshot, options, cancel)?;
    let Some(kept) = plan.kept_from.filter(|_| !options.dry_run) else {
        return Ok(plan);
    };
    snapshot.check_in_log()?;
    if snapshot.protocol().has_writer_feature("v2Checkpoint") {
        classic_copy(snapshot, kept, cancel)?;
    }
    for chunk in plan.files.chunks(CHUNK) {
        cancel.check()?;
        if let Some((_, error)) = snapshot
            .stores()
            .root()
            .delete_batch(chunk)?
            .into_iter()
            .next()
        {
            return Err(error);
        }
    }
    Ok(plan)
}
