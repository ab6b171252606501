//! The attempts to commit as a state machine: given the result of the last step, it returns the
//! next step.
//!
//! The state machine does no input or output, so thousands of transactions can be run against each
//! other in arbitrary order (see the tests), and real stores use exactly the logic that was tested.
//!
//! The outcome of an attempt is never guessed. An attempt without a response stays *pending* until
//! the version is read. If the version holds this transaction's commit, the attempt succeeded; if
//! it holds another commit, the attempt can no longer succeed; if it does not exist, the same
//! content is tried again at the same version, which is safe because only one of the two attempts
//! can succeed. While an attempt is pending, any failure is reported as [`Error::CommitUnknown`].
//!
//! A rejected request (no permission) does not prove the opposite either: a client or gateway may
//! have sent the request twice. The version is read, and the commit fails with the store's error
//! only if the version holds another commit, or holds none and no earlier attempt is pending.

use std::time::Duration;

use bytes::Bytes;

use super::committer::BackoffPolicy;
use super::conflict;
use super::intent::PreparedTransaction;
use super::rebase::CommitBaseState;
use super::winning_commit::WinningCommit;
use crate::error::{CallOption, ConflictKind, Error, Result};
use crate::exec::RuntimeEnv;
use crate::scan::FileMatcher;
use crate::store::PutOutcome;

/// The next step.
#[derive(Debug)]
pub enum CommitStep {
    /// Create the commit of `version` with the content `text` if it does not exist.
    Put {
        /// The version.
        version: i64,
        /// Its content.
        text: Bytes,
    },
    /// Read the commit of this version, if it exists.
    Read(i64),
    /// Wait.
    Sleep(Duration),
    /// The transaction is committed.
    Done(CommitOutcome),
}

/// The result of a step.
#[derive(Debug)]
pub enum CommitEvent {
    /// The first event.
    Start,
    /// The result of a put.
    Put(Result<PutOutcome>),
    /// The result of a read: content and time of the commit in milliseconds since the epoch.
    Read(Result<Option<(Bytes, i64)>>),
    /// The end of a wait.
    Slept,
}

/// A commit that was made.
#[derive(Debug, Clone)]
pub struct CommitOutcome {
    /// Its version.
    pub version: i64,
    /// The number of attempts.
    pub attempts: u32,
    /// Its content.
    pub text: Bytes,
    /// Whether the response was lost and the commit was found by reading.
    pub found_by_lookup: bool,
}

/// The state of the machine.
#[derive(Debug)]
enum CommitState {
    /// A put is in progress.
    Putting(CommitAttempt),
    /// The version that was tried is being read: it exists, or the outcome of the put is unknown.
    ReadingAttempt(CommitAttempt),
    /// Waiting before the version is read or tried again.
    Waiting {
        attempt: CommitAttempt,
        then_put: bool,
    },
    /// Looking for the next concurrent commit; no attempt is in progress.
    Probing { again: u32 },
    /// Waiting before looking further.
    WaitingToProbe { again: u32 },
    /// Not started, or finished.
    Idle,
}

/// An attempt to commit a content as a version.
#[derive(Debug, Clone)]
struct CommitAttempt {
    version: i64,
    text: Bytes,
    /// Why the outcome is unknown, if it is: the put may have succeeded, or may still succeed.
    pending: Option<Error>,
    /// Why the store rejected the last put, if it did.
    refusal: Option<Error>,
    /// The number of failed reads.
    failed_reads: u32,
    /// How often the version was missing although it was reported to exist, or its existence was
    /// unknown.
    missing_reads: u32,
}

/// The number of consecutive failed reads that are tolerated.
const READS: u32 = 5;
/// How often one version is tried again because it did not exist.
const AGAIN: u32 = 10;

/// See the module documentation.
#[derive(Debug)]
pub struct CommitStateMachine {
    intent: PreparedTransaction,
    view: CommitBaseState,
    file_matcher: Option<FileMatcher>,
    max_retries: u32,
    backoff: BackoffPolicy,
    attempts: u32,
    losses: u32,
    state: CommitState,
}

impl CommitStateMachine {
    /// A state machine that tries `intent` on the table `view`; at most `max_retries` times after a
    /// lost race. `lens` holds the read predicates.
    #[must_use]
    pub fn new(
        intent: PreparedTransaction,
        view: CommitBaseState,
        lens: Option<FileMatcher>,
        max_retries: u32,
        backoff: BackoffPolicy,
    ) -> Self {
        Self {
            intent,
            view,
            file_matcher: lens,
            max_retries,
            backoff,
            attempts: 0,
            losses: 0,
            state: CommitState::Idle,
        }
    }

    /// Whether it is about to look further after another writer committed first.
    #[must_use]
    pub fn has_lost(&self) -> bool {
        matches!(self.state, CommitState::WaitingToProbe { again: 0 })
    }

    /// Whether an earlier attempt without a confirmed outcome may still succeed, so that it must
    /// not stop.
    #[must_use]
    pub fn was_pending(&self) -> bool {
        match &self.state {
            CommitState::Putting(attempt)
            | CommitState::ReadingAttempt(attempt)
            | CommitState::Waiting { attempt, .. } => attempt.pending.is_some(),
            _ => false,
        }
    }

    /// The number of concurrent commits that were read.
    #[must_use]
    pub fn losses(&self) -> u32 {
        self.losses
    }

    /// The next step after `event`.
    ///
    /// # Errors
    /// End the transaction: [`Error::CommitFailed`] for a conflict, [`Error::CommitUnknown`] if it
    /// cannot be determined whether the version was committed; after any other error nothing was
    /// committed.
    pub fn next(&mut self, event: CommitEvent, env: &dyn RuntimeEnv) -> Result<CommitStep> {
        match (std::mem::replace(&mut self.state, CommitState::Idle), event) {
            (CommitState::Idle, CommitEvent::Start) => self.put(env),
            (CommitState::Putting(attempt), CommitEvent::Put(result)) => {
                self.after_put(attempt, result, env)
            }
            (CommitState::ReadingAttempt(attempt), CommitEvent::Read(result)) => {
                self.after_attempt_read(attempt, result, env)
            }
            (CommitState::Waiting { attempt, then_put }, CommitEvent::Slept) => Ok(if then_put {
                self.put_again(attempt)
            } else {
                self.read_attempted_version(attempt)
            }),
            (CommitState::Probing { again }, CommitEvent::Read(result)) => {
                self.after_probe(again, result, env)
            }
            (CommitState::WaitingToProbe { again }, CommitEvent::Slept) => Ok(self.probe(again)),
            (state, event) => Err(Error::internal(format!(
                "the commit received {event:?} in the state {state:?}"
            ))),
        }
    }

    /// Tries the next version.
    fn put(&mut self, env: &dyn RuntimeEnv) -> Result<CommitStep> {
        let version = self.view.version + 1;
        let text = self.view.commit_bytes(&self.intent, env.now_ms())?;
        Ok(self.put_again(CommitAttempt {
            version,
            text,
            pending: None,
            refusal: None,
            failed_reads: 0,
            missing_reads: 0,
        }))
    }

    fn put_again(&mut self, mut attempt: CommitAttempt) -> CommitStep {
        self.attempts += 1;
        attempt.refusal = None;
        let step = CommitStep::Put {
            version: attempt.version,
            text: attempt.text.clone(),
        };
        self.state = CommitState::Putting(attempt);
        step
    }

    fn read_attempted_version(&mut self, attempt: CommitAttempt) -> CommitStep {
        let step = CommitStep::Read(attempt.version);
        self.state = CommitState::ReadingAttempt(attempt);
        step
    }

    fn probe(&mut self, again: u32) -> CommitStep {
        self.state = CommitState::Probing { again };
        CommitStep::Read(self.view.version + 1)
    }

    fn wait(&mut self, attempt: CommitAttempt, then_put: bool, env: &dyn RuntimeEnv) -> CommitStep {
        let in_trouble = attempt.pending.is_some() || attempt.failed_reads > 0;
        let backoff = if in_trouble {
            self.backoff.for_store_errors()
        } else {
            self.backoff
        };
        let time = backoff.delay(
            attempt.failed_reads.max(attempt.missing_reads).max(1),
            env.random(),
        );
        self.state = CommitState::Waiting { attempt, then_put };
        CommitStep::Sleep(time)
    }

    fn after_put(
        &mut self,
        mut attempt: CommitAttempt,
        result: Result<PutOutcome>,
        env: &dyn RuntimeEnv,
    ) -> Result<CommitStep> {
        match result {
            Ok(PutOutcome::Created) => Ok(self.done(attempt, false)),
            Ok(PutOutcome::Exists) => Ok(self.read_attempted_version(attempt)),
            Ok(PutOutcome::Unknown(error)) => {
                attempt.pending = Some(error);
                Ok(self.read_attempted_version(attempt))
            }
            Ok(PutOutcome::Refused(error)) => {
                attempt.refusal = Some(error);
                Ok(self.read_attempted_version(attempt))
            }
            Ok(PutOutcome::Unsynced(error)) => Err(Error::commit_unknown(format!(
                "version {} is written and visible, but the disk did not confirm that it would survive a loss of power: {error}",
                attempt.version
            ))
            .at_version(attempt.version)),
            Err(error) if attempt.pending.is_none() => Err(error),
            Err(error) => {
                attempt.failed_reads += 1;
                self.retry_read_or_fail(attempt, &error, env)
            }
        }
    }

    /// Reads again after a wait, up to a maximum number of times.
    fn retry_read_or_fail(
        &mut self,
        attempt: CommitAttempt,
        error: &Error,
        env: &dyn RuntimeEnv,
    ) -> Result<CommitStep> {
        if attempt.failed_reads < READS {
            Ok(self.wait(attempt, false, env))
        } else {
            Err(commit_unknown_error(&attempt, error))
        }
    }

    fn after_attempt_read(
        &mut self,
        mut attempt: CommitAttempt,
        result: Result<Option<(Bytes, i64)>>,
        env: &dyn RuntimeEnv,
    ) -> Result<CommitStep> {
        let found = match result {
            Ok(Some((text, modified_ms))) => self
                .winner(attempt.version, &text, modified_ms)
                .map(|winner| Some((winner, text))),
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        };
        match found {
            Ok(Some((winner, text)))
                if winner.txn_id.as_deref() == Some(self.intent.txn_id.as_str()) =>
            {
                attempt.text = text;
                Ok(self.done(attempt, true))
            }
            // Another writer's commit: this one can no longer succeed at this version.
            Ok(Some((winner, _))) => match attempt.refusal {
                Some(refusal) => Err(refusal),
                None => self.after_loss(&winner, env),
            },
            Ok(None) => {
                attempt.failed_reads = 0;
                attempt.missing_reads += 1;
                match (&attempt.refusal, &attempt.pending) {
                    // No other request was sent for this version.
                    (Some(refusal), None) => return Err(refusal.clone()),
                    (Some(reason), Some(_)) | (None, Some(reason))
                        if attempt.missing_reads >= AGAIN =>
                    {
                        return Err(commit_unknown_error(&attempt, reason));
                    }
                    (_, Some(_)) => {}
                    // The existing object may be this commit, which a later read finds.
                    (None, None) => {
                        attempt.pending = Some(Error::storage(
                            "the store says that the version exists, and does not find it",
                            true,
                        ));
                    }
                }
                Ok(self.wait(attempt, true, env))
            }
            // A commit that cannot be parsed may have been read partially.
            Err(error) => {
                attempt.failed_reads += 1;
                // The existing object may be this commit, sent twice.
                self.retry_read_or_fail(attempt, &error, env)
            }
        }
    }

    fn winner(&self, version: i64, text: &Bytes, modified_ms: i64) -> Result<WinningCommit> {
        let wanted = self.intent.depends_on_files().then(|| {
            self.file_matcher
                .as_ref()
                .map(FileMatcher::required_columns)
                .unwrap_or_default()
        });
        WinningCommit::parse(version, text, modified_ms, wanted)
    }

    /// Rebases on a concurrent commit, or fails with a conflict.
    fn rebase_onto(&mut self, winner: &WinningCommit) -> Result<()> {
        let adopted =
            conflict::check(&self.intent, &self.view, winner, self.file_matcher.as_ref())?;
        self.view = self.view.clone().rebased_onto(winner, adopted)?;
        self.losses += 1;
        Ok(())
    }

    fn after_loss(&mut self, winner: &WinningCommit, env: &dyn RuntimeEnv) -> Result<CommitStep> {
        self.rebase_onto(winner)?;
        if self.attempts > self.max_retries {
            return Err(Error::commit_failed(
                ConflictKind::ConcurrentWrite,
                format!(
                    "other writers were first {} times in a row, and {} is {}; nothing was committed, run the operation again or allow more retries",
                    self.attempts,
                    CallOption::MaxCommitRetries,
                    self.max_retries
                ),
            )
            .at_version(winner.version));
        }
        let time = self.backoff.delay(self.attempts, env.random());
        self.state = CommitState::WaitingToProbe { again: 0 };
        Ok(CommitStep::Sleep(time))
    }

    fn after_probe(
        &mut self,
        again: u32,
        result: Result<Option<(Bytes, i64)>>,
        env: &dyn RuntimeEnv,
    ) -> Result<CommitStep> {
        let version = self.view.version + 1;
        let winner = match result {
            Ok(None) => return self.put(env),
            Ok(Some((text, modified_ms))) => self.winner(version, &text, modified_ms),
            Err(error) => Err(error),
        };
        match winner {
            Ok(winner) => {
                self.rebase_onto(&winner)?;
                Ok(self.probe(0))
            }
            Err(error) if again + 1 >= READS => Err(error),
            Err(_) => {
                self.state = CommitState::WaitingToProbe { again: again + 1 };
                Ok(CommitStep::Sleep(
                    self.backoff.delay(again + 1, env.random()),
                ))
            }
        }
    }

    fn done(&mut self, attempt: CommitAttempt, was_looked_up: bool) -> CommitStep {
        CommitStep::Done(CommitOutcome {
            version: attempt.version,
            attempts: self.attempts,
            text: attempt.text,
            found_by_lookup: was_looked_up,
        })
    }
}

fn commit_unknown_error(attempt: &CommitAttempt, error: &Error) -> Error {
    let error = error.to_string();
    let first = attempt
        .pending
        .as_ref()
        .or(attempt.refusal.as_ref())
        .map(ToString::to_string)
        .filter(|first| *first != error);
    let pending = first
        .map(|first| format!(" (first: {first})"))
        .unwrap_or_default();
    Error::commit_unknown(format!(
        "whether version {} was committed cannot be found out: {error}{pending}; look whether that version is yours before running the operation again",
        attempt.version
    ))
    .at_version(attempt.version)
}
