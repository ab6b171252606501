//! The files of a snapshot as a stream that continues after a damaged checkpoint.
//!
//! Files that a stream has returned cannot be taken back, and need not be: the order of a stream is
//! that of the log's files, so if the stream is read again, the same files come first. Their keys
//! are excluded from the files of the commits that are read instead. There is no cost for an
//! undamaged checkpoint.
//!
//! Cost of a damaged one: reading everything up to the damage once more, and the commits that the
//! checkpoint replaces.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::log_damage::with_fallback;
use super::snapshot_state::Snapshot;
use crate::error::{Error, Result};
use crate::exec::CancellationToken;
use crate::log::LogSegment;
use crate::parse::checkpoint::FileActionKind;
use crate::parse::{FileActionProjection, FileBatch};
use crate::reconcile::{FileActionState, FinishedFiles, SeenFileKeys};

type FileBatchTransform<T> = dyn Fn(FileBatch) -> Result<T> + Send + Sync;

/// The results for a snapshot's files, batch by batch, in the order of the log; see
/// [`Snapshot::finished_files`].
pub struct SnapshotFiles<T> {
    snapshot: Snapshot,
    kind: FileActionKind,
    wanted: FileActionProjection,
    cancel: CancellationToken,
    finish: Arc<FileBatchTransform<T>>,
    max_files: Option<u64>,
    /// The segment that is being read, and the number of files returned from it.
    segment: LogSegment,
    stream: FinishedFiles<(usize, T)>,
    returned_files: usize,
    /// Keys of files that were returned before this segment was begun, and how many of them it
    /// contains.
    returned_before: Option<Arc<SeenFileKeys>>,
    refound_files: Arc<AtomicUsize>,
}

impl Snapshot {
    /// Streams the results of `finish` for batches of live files or tombstones. It runs on the
    /// pool, see [`crate::reconcile::FileStream::finished`]. If a checkpoint or compaction turns
    /// out to be damaged, the stream continues without it.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::NotFound`] name the file.
    pub fn finished_files<T: Send + 'static>(
        &self,
        kind: FileActionKind,
        wanted: FileActionProjection,
        cancel: &CancellationToken,
        finish: impl Fn(FileBatch) -> Result<T> + Send + Sync + 'static,
    ) -> Result<SnapshotFiles<T>> {
        let finish: Arc<FileBatchTransform<T>> = Arc::new(finish);
        self.with_segment(|segment| {
            let stream = self.files_in(segment, kind, wanted.clone(), cancel)?;
            let at_most = stream.max_files();
            let own = Arc::clone(&finish);
            let stream = stream.finished(move |batch| Ok((batch.len(), own(batch)?)));
            Ok(SnapshotFiles {
                snapshot: self.clone(),
                kind,
                wanted: wanted.clone(),
                cancel: cancel.clone(),
                finish: Arc::clone(&finish),
                max_files: at_most,
                segment: segment.clone(),
                stream,
                returned_files: 0,
                returned_before: None,
                refound_files: Arc::default(),
            })
        })
    }
}

impl<T: Send + 'static> SnapshotFiles<T> {
    /// The maximum number of files, as far as known in advance.
    #[must_use]
    pub fn max_files(&self) -> Option<u64> {
        self.max_files
    }

    /// Continues without the damaged file.
    fn resume(&mut self, error: Error) -> Result<()> {
        let first = Cell::new(true);
        let used = with_fallback(self.snapshot.log(), None, self.segment.clone(), |segment| {
            // A damaged segment is not tried again.
            if first.replace(false) {
                return Err(error.clone());
            }
            let before = Arc::new(self.returned_keys()?);
            let (skip, finish, found_again) = (
                Arc::clone(&before),
                Arc::clone(&self.finish),
                Arc::new(AtomicUsize::new(0)),
            );
            let stream =
                self.snapshot
                    .files_in(segment, self.kind, self.wanted.clone(), &self.cancel)?;
            let found = Arc::clone(&found_again);
            let stream = stream.finished(move |batch| {
                let files = batch.len();
                let batch = skip.filter_unseen(batch)?;
                found.fetch_add(files - batch.len(), Ordering::Relaxed);
                Ok((batch.len(), finish(batch)?))
            });
            Ok((stream, before, found_again))
        })?;
        if let Some(damage) = used.damage {
            self.snapshot.warn_of_checkpoint(&damage);
        }
        self.snapshot.replace_segment(&used.segment);
        let (stream, before, found_again) = used.value;
        (
            self.segment,
            self.stream,
            self.returned_files,
            self.returned_before,
            self.refound_files,
        ) = (used.segment, stream, 0, Some(before), found_again);
        Ok(())
    }

    /// Files of a damaged checkpoint that were returned cannot be taken back, so all of them must
    /// be in the table.
    fn check_returned_files(&mut self) -> Option<Error> {
        let before = self
            .returned_before
            .take()
            .filter(|_| self.kind == FileActionKind::Adds)?;
        let wrong = before
            .len()
            .saturating_sub(self.refound_files.load(Ordering::Relaxed));
        (wrong > 0).then(|| {
            Error::corrupt(format!(
                "{wrong} files that a damaged checkpoint named were given out before the damage was found; read the table again, which leaves that checkpoint out"
            ))
            .at_version(self.snapshot.version())
        })
    }

    /// The keys of all files that were returned.
    fn returned_keys(&self) -> Result<SeenFileKeys> {
        let mut seen = self
            .returned_before
            .as_ref()
            .map_or_else(SeenFileKeys::default, |before| before.as_ref().clone());
        let mut left = self.returned_files;
        if left == 0 {
            return Ok(seen);
        }
        // The same columns as before, so that the batches have the same bounds and end before the
        // damage.
        for batch in self.snapshot.uncompared_files(
            &self.segment,
            self.kind,
            self.wanted.clone(),
            &self.cancel,
        )? {
            let batch = batch?;
            let batch = match &self.returned_before {
                Some(before) => before.filter_unseen(batch)?,
                None => batch,
            };
            for row in 0..batch.len().min(left) {
                let key = seen.key(&batch, row)?;
                seen.record(key, 0, FileActionState::Added, true, "")?;
            }
            left = left.saturating_sub(batch.len());
            if left == 0 {
                break;
            }
        }
        Ok(seen)
    }
}

impl<T: Send + 'static> Iterator for SnapshotFiles<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.stream.next() {
                None => return self.check_returned_files().map(Err),
                Some(Ok((files, made))) => {
                    self.returned_files += files;
                    return Some(Ok(made));
                }
                Some(Err(error)) => {
                    if let Err(error) = self.resume(error) {
                        return Some(Err(error));
                    }
                }
            }
        }
    }
}
