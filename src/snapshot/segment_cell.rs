//! The segment that a snapshot reads, which can be replaced by another one of the same version: one
//! without a damaged checkpoint, or with a checkpoint that was just written.
//!
//! After a fork, a thread of the parent process may have held the lock, so a child process uses the
//! segment with which the snapshot was opened. It has the same version; its damage is detected
//! again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::log::LogSegment;

/// See the module documentation.
#[derive(Debug)]
pub(super) struct SegmentCell {
    first: Arc<LogSegment>,
    process: u32,
    is_replaced: AtomicBool,
    newest: Mutex<Arc<LogSegment>>,
}

impl SegmentCell {
    pub(super) fn new(segment: LogSegment) -> Self {
        let first = Arc::new(segment);
        let newest = Mutex::new(Arc::clone(&first));
        Self {
            first,
            process: std::process::id(),
            is_replaced: AtomicBool::new(false),
            newest,
        }
    }

    pub(super) fn get(&self) -> Arc<LogSegment> {
        if !self.is_replaced.load(Ordering::Acquire) || self.process != std::process::id() {
            return Arc::clone(&self.first);
        }
        Arc::clone(&self.newest.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn replace(&self, segment: LogSegment) {
        if self.process == std::process::id() {
            *self.newest.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(segment);
            self.is_replaced.store(true, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::SegmentOptions;

    fn segment(checkpoints: usize) -> LogSegment {
        LogSegment {
            version: 7,
            checkpoint: None,
            commits: Vec::new(),
            replay: Vec::new(),
            earlier: Vec::new(),
            last_commit: None,
            checksum: None,
            counts: None,
            skip: SegmentOptions {
                checkpoints,
                ..SegmentOptions::default()
            },
        }
    }

    #[test]
    fn a_segment_is_replaced_in_its_own_process() {
        let cell = SegmentCell::new(segment(0));
        assert_eq!(cell.get().skip.checkpoints, 0);
        cell.replace(segment(1));
        assert_eq!(cell.get().skip.checkpoints, 1);
    }

    #[test]
    fn a_forked_child_takes_no_lock() {
        let cell = SegmentCell {
            process: std::process::id() ^ 1,
            is_replaced: AtomicBool::new(true),
            ..SegmentCell::new(segment(0))
        };
        let _held = cell.newest.lock().unwrap();
        cell.replace(segment(1));
        assert_eq!(cell.get().skip.checkpoints, 0);
    }
}
