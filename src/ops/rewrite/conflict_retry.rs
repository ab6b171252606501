//! Automatic retry: a command that conflicted with another writer's changes of its rows is run
//! again on the newest version.
//!
//! A failed attempt leaves nothing in the table, and DELETE, UPDATE and MERGE are defined for any
//! version, so a retry does what the caller would do. From the second attempt on it holds the lock
//! of this machine's writer queue, so that each of any number of local writers loses at most once;
//! if the lock is not available it waits a random time.
//!
//! Cost: each attempt runs the whole command.

use std::sync::Arc;
use std::time::Duration;

use crate::commit::finish::{CommitOptions, CommitResult};
use crate::error::{ConflictKind, Error, Result};
use crate::exec::{CancellationToken, RuntimeEnv, SystemEnv};
use crate::protocol::log_path::LOG_DIR;
use crate::snapshot::Snapshot;

/// The longest wait before a retry without the lock.
const LONGEST: Duration = Duration::from_secs(2);

/// Runs a command, with at most `reruns` retries after other writers changed the rows that it read.
///
/// # Errors
/// As the command: the conflict once there are no more retries, or if the winner changed the
/// table's definition.
pub(in crate::ops) fn retry(
    snapshot: &Snapshot,
    commit_options: &CommitOptions,
    reruns: u32,
    cancel: &CancellationToken,
    mut command: impl FnMut(&Snapshot, &CommitOptions) -> Result<CommitResult>,
) -> Result<CommitResult> {
    let (mut now, mut commit_options) = (snapshot.clone(), commit_options.clone());
    for tried in 0..reruns {
        let lost = match command(&now, &commit_options) {
            Err(lost) if is_row_conflict(&lost) => lost,
            done => return done,
        };
        now = match refresh_for_retry(&now, &mut commit_options, tried, cancel)? {
            Some(newest) => newest,
            None => return Err(lost),
        };
    }
    command(&now, &commit_options)
}

/// The newest version for a retry, for which `commit_options` hold the lock of the writer queue
/// from now on. `None` if the table's definition changed: the command's expressions were bound to
/// the old one.
///
/// # Errors
/// As [`Snapshot::at`].
pub(in crate::ops) fn refresh_for_retry(
    now: &Snapshot,
    commit_options: &mut CommitOptions,
    tried: u32,
    cancel: &CancellationToken,
) -> Result<Option<Snapshot>> {
    cancel.check()?;
    if commit_options.turn.is_none() {
        commit_options.turn = now
            .stores()
            .root()
            .lock_writer_queue(LOG_DIR, cancel)
            .map(Arc::new);
    }
    if commit_options.turn.is_none() {
        SystemEnv.sleep(backoff_delay(tried, SystemEnv.random()));
    }
    let newest = now.at(None)?;
    Ok(
        (newest.protocol() == now.protocol() && newest.metadata() == now.metadata())
            .then_some(newest),
    )
}

/// Whether the error is a conflict with another writer's changes of rows, and nothing else.
pub(in crate::ops) fn is_row_conflict(error: &Error) -> bool {
    use ConflictKind::{ConcurrentAppend, ConcurrentDeleteDelete, ConcurrentDeleteRead};
    matches!(
        error,
        Error::CommitFailed {
            conflict: ConcurrentAppend | ConcurrentDeleteDelete | ConcurrentDeleteRead,
            ..
        }
    )
}

/// Up to 20 ms for the first retry, doubled for each further one.
fn backoff_delay(tried: u32, random: u64) -> Duration {
    let most = Duration::from_millis(20)
        .saturating_mul(1 << tried.min(10))
        .min(LONGEST);
    most.mul_f64((random % 1000) as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_end() {
        assert_eq!(backoff_delay(0, 1000), Duration::ZERO);
        assert!(
            backoff_delay(0, 999) < Duration::from_millis(20)
                && backoff_delay(3, 999) > Duration::from_millis(150)
        );
        assert!(backoff_delay(60, 999) <= LONGEST);
    }

    #[test]
    fn only_rows_are_tried_again() {
        assert!(is_row_conflict(&Error::commit_failed(
            ConflictKind::ConcurrentAppend,
            ""
        )));
        assert!(!is_row_conflict(&Error::commit_failed(
            ConflictKind::MetadataChanged,
            ""
        )));
        assert!(!is_row_conflict(&Error::invalid("")));
    }
}
