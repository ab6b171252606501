//! Decides between a checkpoint and a version checksum or `_last_checkpoint` that contradicts it.
//!
//! A checkpoint replaces commits. As long as these exist, they decide: the version is read again
//! without the checkpoint, and the file that agrees with the result is correct. If they were
//! cleaned up, a checkpoint that one file contradicts is used, with a warning, and a checkpoint
//! that both contradict is an error.
//!
//! Cost: none without a contradiction; otherwise the commits that the checkpoint replaces, once per
//! snapshot.

use std::collections::HashSet;

use super::log_damage::is_damage;
use crate::error::{Error, Result};
use crate::log::{CheckpointInstance, DeltaLog, LiveFileTotals, LogSegment, SegmentOptions};

/// The result of reading again without a checkpoint.
pub(super) enum ArbitrationResult<T> {
    /// The same result.
    Confirmed,
    /// A different result, read from this segment.
    Refuted(T, Box<LogSegment>),
    /// No result: the commits were cleaned up.
    Undecided,
}

/// Reads `version` without the doubtful checkpoint, which `skip` selects, then also without older
/// ones, until the result is the `same` as the doubtful one or is `believable`. Newer checkpoints
/// are not used: they may have been written from the doubtful one.
pub(super) fn arbitrate<T>(
    log: &DeltaLog,
    version: i64,
    (doubted, skip): (&CheckpointInstance, SegmentOptions),
    read: impl Fn(&LogSegment) -> Result<T>,
    same: impl Fn(&T) -> bool,
    believable: impl Fn(&T) -> bool,
) -> Result<ArbitrationResult<T>> {
    let listing = log.list(0)?;
    let mut ruling = ArbitrationResult::Undecided;
    for checkpoints in skip.checkpoints + 1..=listing.checkpoints.len() {
        let Ok(weaker) = listing.segment(
            Some(version),
            SegmentOptions {
                checkpoints,
                compactions: true,
            },
        ) else {
            continue;
        };
        if weaker.checkpoint.as_ref().is_some_and(|other| {
            other.version > doubted.version || checkpoint_path(other) == checkpoint_path(doubted)
        }) {
            continue;
        }
        let from_commits = weaker.checkpoint.is_none();
        match read(&weaker) {
            Ok(second) if same(&second) => return Ok(ArbitrationResult::Confirmed),
            Ok(second) => {
                let decides = believable(&second);
                ruling = ArbitrationResult::Refuted(second, Box::new(weaker));
                if decides {
                    break;
                }
            }
            Err(error) if is_damage(&error) => {}
            Err(error) => return Err(error),
        }
        if from_commits {
            break;
        }
    }
    Ok(ruling)
}

/// The results of comparing a snapshot's checkpoints.
#[derive(Debug, Default)]
pub(super) struct CheckpointRulings {
    /// The live files according to the checkpoint, after a comparison found nothing better.
    pub(super) confirmed: Option<LiveFileTotals>,
    /// Paths of checkpoints that commits contradict.
    pub(super) refuted: HashSet<String>,
}

pub(super) fn checkpoint_path(checkpoint: &CheckpointInstance) -> &str {
    checkpoint
        .files
        .first()
        .map_or("", |file| file.path.as_str())
}

/// The error for a checkpoint that contradicts its commits.
pub(super) fn contradiction_error(checkpoint: &CheckpointInstance, what: &str) -> Error {
    Error::corrupt(format!("the checkpoint contradicts {what}"))
        .at_file(checkpoint_path(checkpoint))
        .at_version(checkpoint.version)
}
