//! Writer queue: writers of one machine queue for the next version instead of racing for it again
//! and again.
//!
//! The queue is advisory. A writer that does not queue, on this machine or another, does no harm,
//! since a commit is a put-if-absent; a queue lock only saves others a lost attempt. It is a lock
//! on the folder itself (`flock`), so it leaves no file behind and ends with its process. The
//! longer a writer waits, the more often it tries, so that no writer starves; a writer that does
//! not get the lock (its owner is stopped, the file system has no locks) continues without it.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::exec::{self, CancellationToken};

/// The longest wait: a writer that was stopped while it held the lock must not block the others.
const LONGEST: Duration = Duration::from_secs(3);

/// A queue lock; released when dropped.
#[derive(Debug)]
pub struct WriterQueueLock(File);

impl WriterQueueLock {
    /// Waits for the queue lock of a local folder.
    pub(super) fn wait(folder: &Path, cancel: &CancellationToken) -> Option<Self> {
        if !cfg!(unix) {
            // Elsewhere folders cannot be opened.
            return None;
        }
        let folder = File::open(folder).ok()?;
        let begun = Instant::now();
        loop {
            let waited = begun.elapsed();
            match folder.try_lock() {
                Ok(()) => return Some(Self(folder)),
                Err(TryLockError::WouldBlock) if waited < LONGEST && !cancel.is_cancelled() => {
                    std::thread::sleep(backoff_delay(waited, exec::random()));
                }
                Err(_) => return None,
            }
        }
    }
}

/// Between 2 and 4 ms at first, a tenth of that after a second.
fn backoff_delay(waited: Duration, random: u64) -> Duration {
    let waited = u64::try_from(waited.as_millis())
        .unwrap_or(u64::MAX)
        .min(10_000);
    Duration::from_micros((2000 + random % 2000) * 100 / (100 + waited))
}

impl Drop for WriterQueueLock {
    fn drop(&mut self) {
        // Unlocked explicitly, not by closing: a process that was forked meanwhile has the file
        // open, too.
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("deltafast-{name}-{}", exec::uuid()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn one_after_the_other() {
        let folder = folder("turns");
        let inside = std::sync::atomic::AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..5 {
                        let turn =
                            WriterQueueLock::wait(&folder, &CancellationToken::default()).unwrap();
                        assert_eq!(inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                        std::thread::sleep(Duration::from_micros(200));
                        inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                        drop(turn);
                    }
                });
            }
        });
        assert_eq!(
            std::fs::read_dir(&folder).unwrap().count(),
            0,
            "nothing is left behind"
        );
        std::fs::remove_dir(&folder).unwrap();
    }

    #[test]
    fn a_turn_that_does_not_come_is_done_without() {
        let folder = folder("no-turn");
        let _held = WriterQueueLock::wait(&folder, &CancellationToken::default()).unwrap();
        let begun = Instant::now();
        assert!(WriterQueueLock::wait(&folder, &CancellationToken::default()).is_none());
        assert!(begun.elapsed() >= LONGEST);
        let stopped = CancellationToken::default();
        stopped.cancel();
        assert!(WriterQueueLock::wait(&folder, &stopped).is_none());
        assert!(
            WriterQueueLock::wait(&folder.join("nothing"), &CancellationToken::default()).is_none()
        );
        std::fs::remove_dir(&folder).unwrap();
    }

    #[test]
    fn whoever_waits_looks_more_often() {
        assert!(
            backoff_delay(Duration::ZERO, 0) == Duration::from_millis(2)
                && backoff_delay(Duration::ZERO, 1999) < Duration::from_millis(4)
        );
        assert!(backoff_delay(Duration::from_secs(1), 1999) < Duration::from_micros(400));
    }
}
