//! Buffers that are used again: pages are read and decompressed by the megabyte, and memory fresh from the system costs
//! more (it is zeroed and mapped page by page) than what is put into it.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::error::Result;

/// Smaller buffers are the allocator's.
const LEAST: usize = 16 << 10;
/// Larger ones are not kept.
const MOST: usize = 16 << 20;
/// Bytes that wait for their next use, at most.
const KEPT: usize = 32 << 20;
/// How long they wait: pages of a log that grows are a little larger each time, and would fill all of it for ever.
const PATIENCE: Duration = Duration::from_secs(1);

static IDLE: Mutex<Idle> = Mutex::new(Idle { buffers: VecDeque::new(), bytes: 0 });

/// Buffers without a user and since when, the last used ones at the end. All of their bytes are initialised.
struct Idle {
    buffers: VecDeque<(Instant, Vec<u8>)>,
    bytes: usize,
}

fn idle() -> std::sync::MutexGuard<'static, Idle> {
    // Nothing panics while the lock is held.
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Idle {
    /// A buffer of at least `size` bytes and not many more, since its user may keep it for long.
    fn take(&mut self, size: usize) -> Option<Vec<u8>> {
        let at = self.buffers.iter().rposition(|(_, buffer)| (size..=size + size / 8 + LEAST).contains(&buffer.len()))?;
        let (_, buffer) = self.buffers.remove(at)?;
        self.bytes -= buffer.len();
        Some(buffer)
    }

    /// Takes a buffer in; gives those back that have waited enough.
    fn put(&mut self, buffer: Vec<u8>, now: Instant) -> Vec<Vec<u8>> {
        self.bytes += buffer.len();
        self.buffers.push_back((now, buffer));
        let mut out = Vec::new();
        while self.buffers.front().is_some_and(|(since, _)| self.bytes > KEPT || now.duration_since(*since) > PATIENCE)
            && let Some((_, oldest)) = self.buffers.pop_front()
        {
            self.bytes -= oldest.len();
            out.push(oldest);
        }
        out
    }
}

/// A buffer that comes back when it is dropped.
struct Lent {
    buffer: Vec<u8>,
    size: usize,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        self.buffer.get(..self.size).unwrap_or_default()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        if (LEAST..=MOST).contains(&buffer.len()) {
            // What has no room is freed after the lock.
            let _surplus = idle().put(buffer, Instant::now());
        }
    }
}

/// `size` bytes as `fill` leaves them; it finds arbitrary ones.
///
/// # Errors
/// Those of `fill`.
pub fn filled(size: usize, fill: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<Bytes> {
    let known = if (LEAST..=MOST).contains(&size) { idle().take(size) } else { None };
    let mut lent = Lent { buffer: known.unwrap_or_else(|| vec![0; size]), size };
    if let Some(bytes) = lent.buffer.get_mut(..size) {
        fill(bytes)?;
    }
    Ok(Bytes::from_owner(lent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again_and_shows_only_what_was_asked_for() {
        let size = 3 << 20;
        let first = filled(size, |bytes| {
            bytes.fill(7);
            Ok(())
        })
        .unwrap();
        let address = first.as_ptr();
        let part = first.slice(..10);
        drop(first);
        assert_eq!(part.as_ref(), [7; 10]);
        let other = filled(size, |_| Ok(())).unwrap();
        assert_ne!(other.as_ptr(), address, "a slice still holds the first");
        drop(part);
        let again = filled(size - 100, |bytes| {
            bytes.fill(9);
            Ok(())
        })
        .unwrap();
        assert_eq!((again.as_ptr(), again.len()), (address, size - 100));
        assert!(again.iter().all(|b| *b == 9));
    }

    #[test]
    fn what_waits_is_bounded() {
        let all: Vec<Bytes> = (0..20).map(|_| filled(4 << 20, |_| Ok(())).unwrap()).collect();
        drop(all);
        assert!(idle().bytes <= KEPT);
    }

    #[test]
    fn nothing_waits_for_ever() {
        let (mut idle, now) = (Idle { buffers: VecDeque::new(), bytes: 0 }, Instant::now());
        assert!(idle.put(vec![0; 100], now).is_empty());
        assert!(idle.put(vec![0; 200], now + PATIENCE).is_empty());
        let gone = idle.put(vec![0; 300], now + PATIENCE * 3 / 2);
        assert_eq!(gone.iter().map(Vec::len).collect::<Vec<_>>(), [100]);
        assert_eq!((idle.buffers.len(), idle.bytes), (2, 500));
    }
}
