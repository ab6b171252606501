//! Counts of the files of a stream, updated while it is read, so that a comparison at its end is
//! free.

use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Result;
use crate::log::LiveFileTotals;
use crate::parse::FileBatch;

/// Counts of the files of a stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileCounts {
    /// Totals of the live files.
    pub live: LiveFileTotals,
    /// Files in the checkpoint, including those that later commits changed.
    pub in_checkpoint: u64,
    /// Actions in the checkpoint, see [`crate::parse::checkpoint::OpenCheckpoint::num_actions`].
    pub actions: Option<u64>,
}

/// A check that runs when a stream has ended without an error.
pub(super) type EndCheck = Box<dyn FnOnce(FileCounts) -> Result<()> + Send>;

/// Counts that are shared by all jobs of a stream.
#[derive(Debug, Clone)]
pub(super) struct SharedCounts(Arc<Mutex<FileCounts>>);

impl SharedCounts {
    pub(super) fn new(actions: Option<u64>) -> Self {
        Self(Arc::new(Mutex::new(FileCounts {
            actions,
            ..FileCounts::default()
        })))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, FileCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self) -> FileCounts {
        *self.lock()
    }

    /// Adds a batch of live files, made from a batch with `held` files of the checkpoint.
    pub(super) fn add(&self, batch: &FileBatch, held: u64) {
        let totals = totals(batch);
        let mut counts = self.lock();
        counts.live.add(&totals);
        counts.in_checkpoint = counts.in_checkpoint.saturating_add(held);
    }

    /// Returns the items unchanged; after the last one `check` is called, whose error becomes the
    /// last item.
    pub(super) fn at_end<T>(
        &self,
        check: &mut Option<EndCheck>,
        next: Option<Result<T>>,
    ) -> Option<Result<T>> {
        match next {
            Some(Ok(item)) => Some(Ok(item)),
            Some(Err(error)) => {
                *check = None;
                Some(Err(error))
            }
            None => {
                let check = check.take()?;
                check(self.get()).err().map(Err)
            }
        }
    }
}

fn totals(files: &FileBatch) -> LiveFileTotals {
    let mut totals = LiveFileTotals {
        files: i64::try_from(files.len()).unwrap_or(i64::MAX),
        bytes: files.size.iter().flatten().fold(0, i64::saturating_add),
        ..LiveFileTotals::default()
    };
    if let Some(dv) = &files.dv {
        totals.vectors = i64::try_from(dv.present.count_set_bits()).unwrap_or(i64::MAX);
        totals.deleted = dv.cardinality.iter().flatten().fold(0, i64::saturating_add);
    }
    totals
}
