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
use std::sync::Arc;

use super::{Snapshot, checksum_warning, fallback_warning, is_damage};
use crate::error::{Error, Result};
use crate::exec::CancellationToken;
use crate::log::{
    CheckpointCounts, CheckpointInstance, DeltaLog, LiveFileTotals, LogSegment, SegmentOptions,
};
use crate::parse::FileActionProjection;
use crate::parse::checkpoint::FileActionKind;
use crate::reconcile::{self, FileCounts, FileStreamRequest};

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
    confirmed: Option<LiveFileTotals>,
    /// Paths of checkpoints that commits contradict.
    refuted: HashSet<String>,
}

/// The parts of a segment that a comparison at the end of a stream needs.
pub(super) struct ComparisonBasis {
    checkpoint: Option<CheckpointInstance>,
    counts: Option<CheckpointCounts>,
    skip: SegmentOptions,
}

fn checkpoint_path(checkpoint: &CheckpointInstance) -> &str {
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

impl Snapshot {
    /// The parts of a segment that [`Snapshot::check_counts`] needs; `None` if there is nothing to
    /// compare with.
    pub(super) fn comparison_basis(&self, segment: &LogSegment) -> Option<ComparisonBasis> {
        let needed = self.0.checksum.is_some() || segment.counts.is_some();
        needed.then(|| ComparisonBasis {
            checkpoint: segment.checkpoint.clone(),
            counts: segment.counts,
            skip: segment.skip,
        })
    }

    fn rulings(&self) -> std::sync::MutexGuard<'_, CheckpointRulings> {
        self.0.rulings.lock()
    }

    /// Refuses a segment whose checkpoint was found to be wrong before.
    pub(super) fn check_not_refuted(&self, segment: &LogSegment) -> Result<()> {
        match &segment.checkpoint {
            Some(checkpoint) if self.rulings().refuted.contains(checkpoint_path(checkpoint)) => {
                Err(contradiction_error(
                    checkpoint,
                    "the commits that it stands for",
                ))
            }
            _ => Ok(()),
        }
    }

    /// Compares the live files of a segment with the version checksum and with the numbers for the
    /// checkpoint in `_last_checkpoint`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for a wrong checkpoint; errors of reading without it.
    pub(super) fn check_counts(
        &self,
        basis: &ComparisonBasis,
        counts: &FileCounts,
        cancel: &CancellationToken,
    ) -> Result<()> {
        let wrong = self
            .0
            .checksum
            .as_ref()
            .map(|checksum| checksum.against_files(&counts.live))
            .unwrap_or_default();
        let Some(checkpoint) = &basis.checkpoint else {
            self.warn_of_checksum(&wrong);
            return Ok(());
        };
        let unlike_hint = basis
            .counts
            .is_some_and(|said| !said.agree(counts.in_checkpoint, counts.actions));
        if wrong.is_empty() && !unlike_hint || self.rulings().confirmed == Some(counts.live) {
            return Ok(());
        }
        let believable = |totals: &LiveFileTotals| {
            self.0
                .checksum
                .as_ref()
                .is_none_or(|checksum| checksum.against_files(totals).is_empty())
        };
        let read = |segment: &LogSegment| self.totals(segment, cancel);
        match arbitrate(
            self.log(),
            self.version(),
            (checkpoint, basis.skip),
            read,
            |totals| *totals == counts.live,
            believable,
        )? {
            ArbitrationResult::Refuted(totals, _) => {
                self.rulings()
                    .refuted
                    .insert(checkpoint_path(checkpoint).to_owned());
                let what = format!(
                    "the commits that it stands for: it leads to {}, they to {}",
                    describe_totals(&counts.live),
                    describe_totals(&totals)
                );
                return Err(contradiction_error(checkpoint, &what));
            }
            ArbitrationResult::Undecided if unlike_hint && !wrong.is_empty() => {
                return Err(contradiction_error(
                    checkpoint,
                    "both the version checksum and `_last_checkpoint`, and the commits that it stands for are gone",
                ));
            }
            ArbitrationResult::Undecided | ArbitrationResult::Confirmed => {}
        }
        self.rulings().confirmed = Some(counts.live);
        self.warn_of_checksum(&wrong);
        Ok(())
    }

    fn totals(&self, segment: &LogSegment, cancel: &CancellationToken) -> Result<LiveFileTotals> {
        let request = FileStreamRequest {
            kind: FileActionKind::Adds,
            wanted: Arc::new(FileActionProjection::default()),
            cancel: cancel.clone(),
        };
        let mut stream =
            reconcile::files(segment, &self.0.commit_cache, self.stores().root(), request)?;
        for batch in stream.by_ref() {
            batch?;
        }
        Ok(stream.counts().live)
    }

    /// Adds the warning for a version checksum in which these fields are wrong.
    fn warn_of_checksum(&self, wrong: &[&str]) {
        if !wrong.is_empty() {
            self.warnings().add(checksum_warning(self.version(), wrong));
        }
    }

    /// Adds the warning that a version was read without its checkpoint.
    pub(super) fn warn_of_checkpoint(&self, error: &Error) {
        self.warnings().add(fallback_warning(error));
    }
}

/// Numbers of files for a message.
fn describe_totals(totals: &LiveFileTotals) -> String {
    let vectors = if totals.vectors > 0 {
        format!(", {} of them with a deletion vector", totals.vectors)
    } else {
        String::new()
    };
    format!(
        "{} live files ({} bytes{vectors})",
        totals.files, totals.bytes
    )
}
