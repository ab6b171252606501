//! The memory that a file may expand to while it is decoded, reserved before it is allocated: a file
//! of a few kilobytes can hold gigabytes of zeros, honestly or not. The limit is that of the byte
//! budget, [`memory_limit`].

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::budget::memory_limit;
use super::pool::blocking;
use crate::error::{Error, Result};
use crate::process::PerProcess;

/// What one reader may decode at once however low the limit is.
const LEAST_DECODED: u64 = if cfg!(test) { 1 << 20 } else { 64 << 20 };
/// How long a reader waits for others to release their memory. It then goes on, since the program
/// may take no more rows of theirs before it has some of its own.
const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 30 });

/// Bytes that one reader may decode at once: the memory limit.
///
/// # Errors
/// As [`memory_limit`].
pub fn decode_limit() -> Result<u64> {
    if cfg!(test) {
        return Ok(8 << 20);
    }
    Ok(memory_limit()?.max(LEAST_DECODED))
}

/// The readers of the process that decode much more than they read, oldest first: id and bytes.
#[derive(Default)]
struct LargeReaders {
    readers: Mutex<VecDeque<(u64, u64)>>,
    changed: Condvar,
}

static LARGE_READERS: PerProcess<LargeReaders> = PerProcess::new();

fn large_readers() -> &'static LargeReaders {
    LARGE_READERS
        .get(|| Ok::<_, Infallible>(LargeReaders::default()))
        .unwrap_or_else(|never| match never {})
}

impl LargeReaders {
    fn lock(&self) -> MutexGuard<'_, VecDeque<(u64, u64)>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The memory that one reader of a file needs at once, as the file announces it.
///
/// No reader may take more than the limit. Several together may not either: the oldest one gets
/// what it asks for, so that it ends, and the others wait. So all take at most twice the limit.
#[derive(Debug, Default)]
pub struct DecodeReservation {
    bytes: AtomicU64,
    /// Its id among the large readers; 0 while it is small.
    large: AtomicU64,
}

impl DecodeReservation {
    /// Reserves `more` bytes for a reader of `stored` bytes, before they are allocated.
    ///
    /// # Errors
    /// [`Error::Resource`] if the reader would take more than the limit.
    pub fn grow(&self, more: u64, stored: u64) -> Result<()> {
        /// Bytes that may be decoded of a stored byte whatever the limit: a file that large takes
        /// as much memory wherever it is read.
        const RATIO: u64 = 64;
        let bytes = self
            .bytes
            .fetch_add(more, Ordering::Relaxed)
            .saturating_add(more);
        if bytes <= stored.saturating_mul(RATIO).max(LEAST_DECODED) {
            return Ok(());
        }
        let limit = decode_limit()?;
        if bytes > limit {
            return Err(Error::over_memory_limit(
                "decoding a row group of a Parquet file",
                bytes,
                limit,
            ));
        }
        self.wait_for_others(bytes, limit);
        Ok(())
    }

    fn wait_for_others(&self, bytes: u64, limit: u64) {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let large = large_readers();
        let mut readers = large.lock();
        let id = match self.large.load(Ordering::Relaxed) {
            0 => {
                let id = NEXT.fetch_add(1, Ordering::Relaxed);
                self.large.store(id, Ordering::Relaxed);
                readers.push_back((id, 0));
                id
            }
            id => id,
        };
        let may_go = |readers: &VecDeque<(u64, u64)>| {
            let others = readers.iter().filter(|(other, _)| *other != id);
            let others: u64 = others.map(|(_, bytes)| *bytes).sum();
            readers.front().is_none_or(|(oldest, _)| *oldest == id)
                || others.saturating_add(bytes) <= limit
        };
        if !may_go(&readers) {
            drop(readers);
            blocking(|| {
                let mut readers = large.lock();
                let end = Instant::now() + PATIENCE;
                while !may_go(&readers)
                    && let Some(left) = end.checked_duration_since(Instant::now())
                {
                    (readers, _) = large
                        .changed
                        .wait_timeout(readers, left)
                        .unwrap_or_else(PoisonError::into_inner);
                }
            });
            readers = large.lock();
        }
        if let Some((_, held)) = readers.iter_mut().find(|(other, _)| *other == id) {
            *held = bytes;
        }
    }

    /// Releases some of the bytes.
    pub fn shrink(&self, less: u64) {
        let bytes = self.bytes.fetch_sub(less, Ordering::Relaxed);
        self.set_large(Some(bytes.saturating_sub(less)));
    }

    fn set_large(&self, bytes: Option<u64>) {
        let id = self.large.load(Ordering::Relaxed);
        if id == 0 {
            return;
        }
        let large = large_readers();
        let mut readers = large.lock();
        match bytes {
            Some(bytes) => {
                if let Some((_, held)) = readers.iter_mut().find(|(other, _)| *other == id) {
                    *held = bytes;
                }
            }
            None => readers.retain(|(other, _)| *other != id),
        }
        drop(readers);
        large.changed.notify_all();
    }
}

impl Drop for DecodeReservation {
    fn drop(&mut self) {
        self.set_large(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_takes_no_more_than_the_limit() {
        let limit = decode_limit().unwrap();
        let reader = DecodeReservation::default();
        reader.grow(limit, 0).unwrap();
        let error = reader.grow(1, 0).unwrap_err();
        assert!(
            error.to_string().contains("DELTAFAST_MEMORY_LIMIT"),
            "{error}"
        );
        // Stored bytes are in the file, and may be decoded.
        DecodeReservation::default().grow(limit * 2, limit).unwrap();
    }

    #[test]
    fn readers_together_wait_for_the_oldest() {
        let limit = decode_limit().unwrap();
        let started = Instant::now();
        let first = DecodeReservation::default();
        first.grow(limit / 2, 0).unwrap();
        let (sender, done) = std::sync::mpsc::channel();
        let second = std::thread::spawn(move || {
            let second = DecodeReservation::default();
            second.grow(limit / 4, 0).unwrap();
            second.grow(limit / 2, 0).unwrap();
            sender.send(Instant::now()).unwrap();
        });
        std::thread::sleep(PATIENCE / 4);
        assert!(done.try_recv().is_err(), "the second waits");
        first.grow(limit / 2, 0).unwrap();
        drop(first);
        let waited = done.recv().unwrap() - started;
        second.join().unwrap();
        assert!(waited >= PATIENCE / 4, "{waited:?}");
    }
}
