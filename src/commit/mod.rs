//! COMMIT: what a transaction read and wants -> one new version, or the reason why not.
//!
//! Optimistic: the next version's file is made if it is absent. If somebody else was first, every
//! commit in between is read in order, `conflict` decides by delta-spark's rules whether this
//! transaction may follow it, `rebase` brings its actions up to date (row ids, timestamps, metadata
//! taken over), and the file after the newest is tried. A transaction knows its own commit by
//! `commitInfo.txnId`, so an answer that was lost is looked up and never guessed: it commits once,
//! or says that it cannot know.
//!
//! The protocol of trying is a state machine without input or output (`machine`): it says what to
//! put, read or wait for and is told what came of it. `transaction` drives it against a
//! [`TableCommitter`]; tests drive thousands of them in any order.
//!
//! Protocol: "Delta Log Entries", "Requirements for Writers", "In-Commit Timestamps", "Row
//! Tracking". Cost: one put for a commit without contention; one read for every commit that came
//! between.

pub mod adds;
mod committer;
mod conflict;
pub mod finish;
mod intent;
mod prepare;
mod protocol;
mod rebase;
mod transaction;
mod winning_commit;

pub use committer::{BackoffPolicy, CatalogCommitter, FileCommitter, LoadedCommit, TableCommitter};
pub use conflict::check;
pub use intent::{CommitOperation, IsolationLevel, PreparedTransaction, ReadSet};
pub use protocol::{CommitEvent, CommitOutcome, CommitStateMachine, CommitStep};
pub use rebase::CommitBaseState;
pub use transaction::{CommittedVersion, OptimisticTransaction, TransactionOptions};
pub use winning_commit::{RebasedState, WinningCommit};

#[cfg(test)]
mod tests;
