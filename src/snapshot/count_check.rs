//! The comparison of a stream's file counts with the checksum and the checkpoint hint.

use super::Snapshot;
use super::arbitration::{
    ArbitrationResult, CheckpointRulings, arbitrate, checkpoint_path, contradiction_error,
};
use super::log_damage::{checksum_warning, fallback_warning};
use crate::error::{Error, Result};
use crate::exec::CancellationToken;
use crate::log::{
    CheckpointCounts, CheckpointInstance, LiveFileTotals, LogSegment, SegmentOptions,
};
use crate::parse::FileActionProjection;
use crate::parse::checkpoint::FileActionKind;
use crate::reconcile::{self, FileCounts, FileStreamRequest};
use std::sync::Arc;

/// The parts of a segment that a comparison at the end of a stream needs.
pub(super) struct ComparisonBasis {
    checkpoint: Option<CheckpointInstance>,
    counts: Option<CheckpointCounts>,
    skip: SegmentOptions,
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
