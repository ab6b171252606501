//! Transactions: commit the actions of a transaction as one new version, or fail with the reason of
//! the conflict.
//!
//! Concurrency control is optimistic: the file of the next version is created if it is absent. If
//! another writer committed first, every commit in between is read in order, `conflict` decides by
//! delta-spark's rules whether this transaction may follow it, `rebase` updates its actions (row
//! ids, timestamps, adopted metadata), and the next version is tried. A transaction recognizes its
//! own commit by `commitInfo.txnId`, so after a lost response the outcome is looked up instead of
//! guessed: a transaction commits once, or reports that the outcome is unknown.
//!
//! The attempts to commit are driven by a state machine without input or output (`protocol`): it
//! returns the next step (put, read or wait) and is given the result of the step. `transaction`
//! runs it against a [`TableCommitter`]; tests run thousands of them in arbitrary order.
//!
//! Protocol: "Delta Log Entries", "Requirements for Writers", "In-Commit Timestamps", "Row
//! Tracking". Cost: one put for a commit without contention, and one read for every concurrent
//! commit.

pub(crate) mod adds;
mod committer;
mod conflict;
pub mod finish;
mod intent;
mod prepare;
mod rebase;
pub(crate) mod row_id_mark;
mod state_machine;
mod transaction;
mod winning_commit;

pub use committer::{BackoffPolicy, CatalogCommitter, FileCommitter, LoadedCommit, TableCommitter};
pub use conflict::check;
pub use intent::{CommitOperation, IsolationLevel, PreparedTransaction, ReadSet};
pub use rebase::CommitBaseState;
pub use state_machine::{CommitEvent, CommitOutcome, CommitStateMachine, CommitStep};
pub use transaction::{CommittedVersion, OptimisticTransaction, TransactionOptions};
pub use winning_commit::{RebasedState, WinningCommit};

#[cfg(test)]
mod tests;
