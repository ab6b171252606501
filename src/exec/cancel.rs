//! Cancellation and progress of long work, shared by caller and worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::call_commits::CallCommits;
use crate::error::{Error, Result};

/// A cancellation flag that long work checks between steps, its progress and its commits. Clones
/// share them; children are also cancelled with their parent, and add to its progress and commits.
#[derive(Debug, Clone, Default)]
pub struct CancellationToken(Arc<CancellationState>);

#[derive(Debug, Default)]
struct CancellationState {
    set: AtomicBool,
    parent: Option<CancellationToken>,
    progress: ProgressCounter,
    commits: CallCommits,
}

impl CancellationToken {
    /// A token for work with observed progress.
    #[must_use]
    pub fn with_progress(progress: ProgressCounter) -> Self {
        Self(Arc::new(CancellationState {
            progress,
            ..CancellationState::default()
        }))
    }

    /// A token for a part of the work: cancelled with this one, or alone.
    #[must_use]
    pub fn child(&self) -> Self {
        self.child_with_progress(self.0.progress.clone())
    }

    /// The same for a part whose units are not counted in this token's progress.
    #[must_use]
    pub fn without_progress(&self) -> Self {
        self.child_with_progress(ProgressCounter::default())
    }

    fn child_with_progress(&self, progress: ProgressCounter) -> Self {
        Self(Arc::new(CancellationState {
            set: AtomicBool::new(false),
            parent: Some(self.clone()),
            progress,
            commits: self.0.commits.clone(),
        }))
    }

    /// A token for work that must be completed even if this one is cancelled.
    #[must_use]
    pub fn uncancelled(&self) -> Self {
        Self(Arc::new(CancellationState {
            commits: self.0.commits.clone(),
            ..CancellationState::default()
        }))
    }

    /// The progress of the work.
    #[must_use]
    pub fn progress(&self) -> &ProgressCounter {
        &self.0.progress
    }

    /// The commits of the work.
    #[must_use]
    pub fn commits(&self) -> &CallCommits {
        &self.0.commits
    }

    /// Requests the work to stop.
    pub fn cancel(&self) {
        self.0.set.store(true, Ordering::Relaxed);
    }

    /// Whether the work was requested to stop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.set.load(Ordering::Relaxed) || self.0.parent.as_ref().is_some_and(Self::is_cancelled)
    }

    /// # Errors
    /// [`Error::Cancelled`] once [`CancellationToken::cancel`] was called.
    pub fn check(&self) -> Result<()> {
        if self.is_cancelled() {
            Err(Error::Cancelled)
        } else {
            Ok(())
        }
    }
}

/// Done and total units of a piece of work (files by default). Clones share it; Python polls it.
#[derive(Debug, Clone, Default)]
pub struct ProgressCounter(Arc<(AtomicU64, AtomicU64)>);

impl ProgressCounter {
    /// Announces more units.
    pub fn expect(&self, units: u64) {
        self.0.1.fetch_add(units, Ordering::Relaxed);
    }

    /// Reports finished units.
    pub fn advance(&self, units: u64) {
        self.0.0.fetch_add(units, Ordering::Relaxed);
    }

    /// (done, total)
    #[must_use]
    pub fn get(&self) -> (u64, u64) {
        (
            self.0.0.load(Ordering::Relaxed),
            self.0.1.load(Ordering::Relaxed),
        )
    }
}
