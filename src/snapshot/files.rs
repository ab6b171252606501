//! A snapshot's files as a stream that survives a damaged checkpoint.
//!
//! What was given out of a stream cannot be taken back, and it need not be: the order of a stream is that of the log's
//! files, so the files that were given out are the first ones of the same stream read again. Their keys are left out of
//! what the commits give instead. An undamaged checkpoint pays nothing for this.
//!
//! Cost of a damaged one: what was read up to the damage, once more, and the commits that the checkpoint stood for.

use std::cell::Cell;
use std::sync::Arc;

use super::{Snapshot, read_without, with_fallback};
use crate::error::{Error, Result};
use crate::exec::{Cancel, Lanes};
use crate::log::Segment;
use crate::parse::checkpoint::FileKind;
use crate::parse::{FileBatch, Wanted};
use crate::reconcile::{Seen, Verdict};

type Finish<T> = dyn Fn(FileBatch) -> Result<T> + Send + Sync;

/// What a snapshot's files were made into, batch by batch, in the order of the log; see [`Snapshot::finished_files`].
pub struct Files<T> {
    snapshot: Snapshot,
    kind: FileKind,
    wanted: Wanted,
    cancel: Cancel,
    finish: Arc<Finish<T>>,
    at_most: Option<u64>,
    /// What is being read, and how many files of it were given out.
    segment: Segment,
    stream: Lanes<(usize, T)>,
    given: usize,
    /// Keys of files that were given out before it was begun.
    before: Option<Arc<Seen>>,
}

impl Snapshot {
    /// Streams what `finish` makes of batches of live files or tombstones. It runs on the pool, see
    /// [`crate::reconcile::FileStream::finished`]. When a checkpoint or compaction turns out damaged on the way, the stream
    /// goes on without it.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::NotFound`] name the file.
    pub fn finished_files<T: Send + 'static>(
        &self,
        kind: FileKind,
        wanted: Wanted,
        cancel: &Cancel,
        finish: impl Fn(FileBatch) -> Result<T> + Send + Sync + 'static,
    ) -> Result<Files<T>> {
        let finish: Arc<Finish<T>> = Arc::new(finish);
        self.with_segment(|segment| {
            let stream = self.files_in(segment, kind, wanted.clone(), cancel)?;
            let at_most = stream.at_most();
            let own = Arc::clone(&finish);
            let stream = stream.finished(move |batch| Ok((batch.len(), own(batch)?)));
            Ok(Files {
                snapshot: self.clone(),
                kind,
                wanted: wanted.clone(),
                cancel: cancel.clone(),
                finish: Arc::clone(&finish),
                at_most,
                segment: segment.clone(),
                stream,
                given: 0,
                before: None,
            })
        })
    }
}

impl<T: Send + 'static> Files<T> {
    /// At most this many files will come, as far as known before they do.
    #[must_use]
    pub fn at_most(&self) -> Option<u64> {
        self.at_most
    }

    /// Goes on without what is damaged.
    fn resume(&mut self, error: Error) -> Result<()> {
        let first = Cell::new(true);
        let used = with_fallback(self.snapshot.log(), None, self.segment.clone(), |segment| {
            // What is damaged needs no second trial.
            if first.replace(false) {
                return Err(error.clone());
            }
            let before = Arc::new(self.keys_given()?);
            let (skip, finish) = (Arc::clone(&before), Arc::clone(&self.finish));
            let stream = self.snapshot.files_in(segment, self.kind, self.wanted.clone(), &self.cancel)?;
            let stream = stream.finished(move |batch| {
                let batch = skip.unseen(batch)?;
                Ok((batch.len(), finish(batch)?))
            });
            Ok((stream, before))
        })?;
        if let Some(damage) = used.damage {
            self.snapshot.warnings().add(read_without(&damage));
        }
        self.snapshot.settle(&used.segment);
        let (stream, before) = used.done;
        (self.segment, self.stream, self.given, self.before) = (used.segment, stream, 0, Some(before));
        Ok(())
    }

    /// The keys of all files that were given out.
    fn keys_given(&self) -> Result<Seen> {
        let mut seen = self.before.as_ref().map_or_else(Seen::default, |before| before.as_ref().clone());
        let mut left = self.given;
        if left == 0 {
            return Ok(seen);
        }
        // The same columns as before, so that the batches are cut in the same places and end before the damage.
        for batch in self.snapshot.files_in(&self.segment, self.kind, self.wanted.clone(), &self.cancel)? {
            let batch = batch?;
            let batch = match &self.before {
                Some(before) => before.unseen(batch)?,
                None => batch,
            };
            for row in 0..batch.len().min(left) {
                let key = seen.key(&batch, row)?;
                seen.note(key, 0, Verdict::Added, true, "")?;
            }
            left = left.saturating_sub(batch.len());
            if left == 0 {
                break;
            }
        }
        Ok(seen)
    }
}

impl<T: Send + 'static> Iterator for Files<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.stream.next()? {
                Ok((files, made)) => {
                    self.given += files;
                    return Some(Ok(made));
                }
                Err(error) => {
                    if let Err(error) = self.resume(error) {
                        return Some(Err(error));
                    }
                }
            }
        }
    }
}
