//! Commands that commit several versions: each step is one commit on top of the previous step.
//!
//! Every step leaves the table valid, so a command that was interrupted can be run again.
//! Application transactions are recorded only by the last step.
//!
//! Protocol: "Requirements for Writers". Cost: a commit per step.

use crate::checkpoint::{self, CheckpointOptions};
use crate::commit::finish::{CommitOptions, CommitResult, commit};
use crate::commit::{CommitOperation, OptimisticTransaction};
use crate::error::{Error, Result};
use crate::exec::CancellationToken;
use crate::ops::rewrite::file_rewrite::{self, FileRewrite};
use crate::ops::rewrite::target_table::TargetTable;
use crate::protocol::commit_line::{Action, Add};
use crate::snapshot::Snapshot;

/// The maximum number of attempts of a step after concurrent commits.
const TRIES: u32 = 10;

/// A command in progress.
pub(in crate::ops) struct MultiCommitCommand<'a> {
    snapshot: Snapshot,
    commit_options: &'a CommitOptions,
    cancel: &'a CancellationToken,
    warnings: Vec<String>,
}

impl<'a> MultiCommitCommand<'a> {
    /// Begins on a version.
    pub(in crate::ops) fn new(
        snapshot: Snapshot,
        commit_options: &'a CommitOptions,
        cancel: &'a CancellationToken,
    ) -> Self {
        Self {
            snapshot,
            commit_options,
            cancel,
            warnings: Vec::new(),
        }
    }

    /// The table after the last step.
    pub(in crate::ops) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    pub(in crate::ops) fn cancel(&self) -> &'a CancellationToken {
        self.cancel
    }

    pub(in crate::ops) fn into_snapshot(self) -> Snapshot {
        self.snapshot
    }

    /// Commits an intermediate version.
    pub(in crate::ops) fn commit_step(
        &mut self,
        transaction: OptimisticTransaction,
        operation: CommitOperation,
    ) -> Result<()> {
        let done = commit(
            transaction,
            operation,
            &self.commit_options.without_transactions(),
            self.cancel,
        )?;
        self.advance_to(done)
    }

    fn advance_to(&mut self, done: CommitResult) -> Result<()> {
        self.snapshot = done.newest(&self.snapshot)?;
        self.warnings.extend(done.warnings);
        Ok(())
    }

    /// Commits the last version; `with_checkpoint` for one that must be readable without the
    /// commits before it.
    pub(in crate::ops) fn commit_last(
        self,
        transaction: OptimisticTransaction,
        operation: CommitOperation,
        with_checkpoint: bool,
    ) -> Result<CommitResult> {
        let mut commit_options = self.commit_options.clone();
        if with_checkpoint {
            commit_options.create_checkpoint = Some(false);
        }
        let mut done = commit(transaction, operation, &commit_options, self.cancel)?;
        if let Some(snapshot) = done.snapshot.as_ref().filter(|_| with_checkpoint)
            && let Err(error) = checkpoint::write(
                snapshot,
                &CheckpointOptions::default(),
                &self.cancel.without_progress(),
            )
        {
            done.warnings.push(format!(
                "version {} is committed, but its checkpoint could not be written: {error}",
                snapshot.version()
            ));
        }
        done.warnings.splice(0..0, self.warnings);
        Ok(done)
    }

    /// Commits an empty version with a checkpoint: readers that start there see no earlier commits.
    pub(in crate::ops) fn commit_barrier(&mut self) -> Result<()> {
        let commit_options = CommitOptions {
            create_checkpoint: Some(false),
            ..self.commit_options.without_transactions()
        };
        let done = commit(
            OptimisticTransaction::new(&self.snapshot),
            CommitOperation::new("Empty Commit"),
            &commit_options,
            self.cancel,
        )?;
        self.advance_to(done)?;
        checkpoint::write(
            &self.snapshot,
            &CheckpointOptions::default(),
            &self.cancel.without_progress(),
        )
        .map(|_| ())
    }

    /// Runs `work`, and again on the newest version if another writer committed first.
    pub(in crate::ops) fn retry_on_conflict<T>(
        &mut self,
        mut work: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let mut tries = 1;
        loop {
            match work(self) {
                Err(Error::CommitFailed { .. }) if tries < TRIES => {
                    tries += 1;
                    self.snapshot = self.snapshot.at(None)?;
                }
                other => return other,
            }
        }
    }

    /// Commits a version in which new files, as `target` has them, hold the rows of `files`.
    /// `actions` are committed with it; if they change how files are read, `files` must be all
    /// files of the table, and no concurrent commit may add any.
    pub(in crate::ops) fn rewrite(
        &mut self,
        files: Vec<Add>,
        target: &TargetTable,
        actions: Vec<Action>,
        operation: CommitOperation,
    ) -> Result<()> {
        let mut transaction = OptimisticTransaction::new(&self.snapshot);
        if !actions.is_empty() {
            transaction.read_whole_table();
        }
        transaction.extend(actions);
        let moved = FileRewrite::of(files, &self.snapshot, target, self.cancel)?;
        let done = file_rewrite::commit(
            transaction,
            operation,
            vec![moved],
            target,
            &self.commit_options.without_transactions(),
            self.cancel,
        )?;
        self.advance_to(done)
    }
}
