//! Commands that make several versions: each step is one commit on what the step before left.
//!
//! Every step leaves a table that is right, so a command that stops on its way can be run again.
//! Applications' transactions are recorded by the last step alone.
//!
//! Protocol: "Requirements for Writers". Cost: a commit a step.

use crate::checkpoint::{self, CheckpointOptions};
use crate::commit::finish::{CommitOptions, CommitResult, commit};
use crate::commit::{CommitOperation, OptimisticTransaction};
use crate::error::{Error, Result};
use crate::exec::CancellationToken;
use crate::ops::optimize::rewrite::{self, FileRewrite};
use crate::ops::target::TargetTable;
use crate::protocol::commit_line::{Action, Add};
use crate::snapshot::Snapshot;

/// How often work that others' commits came in between is done again.
const TRIES: u32 = 10;

/// A command under way.
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

    /// The table as the last step left it.
    pub(in crate::ops) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    pub(in crate::ops) fn cancel(&self) -> &'a CancellationToken {
        self.cancel
    }

    pub(in crate::ops) fn into_snapshot(self) -> Snapshot {
        self.snapshot
    }

    /// Makes a version on the way.
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

    /// Makes the last version; `with_checkpoint` one that must be read without the commits before
    /// it.
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

    /// An empty version with a checkpoint: who reads from there on sees nothing of what came
    /// before.
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

    /// Does `work`, again on the newest version where another writer was first.
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

    /// Makes a version in which new files, as `target` has them, hold the rows of `files`.
    /// `actions` are committed with it; where they change how files are read, `files` are all
    /// there are, and none may come in between.
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
        let done = rewrite::commit(
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
