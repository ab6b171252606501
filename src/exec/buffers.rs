//! Reusable buffers: pages are read and decompressed, and arrays are built, by the megabyte, and
//! new memory from the operating system costs more (it is zeroed and mapped page by page) than
//! filling it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::marker::PhantomData;
use std::panic::resume_unwind;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arrow_buffer::{ArrowNativeType, MutableBuffer, ScalarBuffer};
use bytes::Bytes;

use crate::error::{Error, Result};
use crate::process::PerProcess;

/// Smaller buffers are the allocator's.
const LEAST: usize = 16 << 10;
/// Larger ones are not kept.
const MOST: usize = 16 << 20;
/// Bytes that wait for their next use, at most.
const KEPT: usize = 32 << 20;
/// How long they wait: pages of a log that grows are a little larger each time, and would fill all
/// of it for ever.
const PATIENCE: Duration = Duration::from_secs(1);

static IDLE: PerProcess<Mutex<IdleBuffers>> = PerProcess::new();

/// Buffers without a user and since when, the last used ones at the end.
#[derive(Default)]
struct IdleBuffers {
    buffers: VecDeque<(Instant, MutableBuffer)>,
    bytes: usize,
}

fn idle() -> MutexGuard<'static, IdleBuffers> {
    let idle = IDLE
        .get(|| Ok::<_, Infallible>(Mutex::default()))
        .unwrap_or_else(|never| match never {});
    // Nothing panics while the lock is held.
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}

impl IdleBuffers {
    /// A buffer of at least `size` bytes and not many more, since its user may keep it for long.
    fn take(&mut self, size: usize) -> Option<MutableBuffer> {
        let at = self
            .buffers
            .iter()
            .rposition(|(_, buffer)| (size..=size + size / 8 + LEAST).contains(&buffer.len()))?;
        let (_, buffer) = self.buffers.remove(at)?;
        self.bytes -= buffer.len();
        Some(buffer)
    }

    /// Takes a buffer in; gives those back that have waited enough.
    fn put(&mut self, buffer: MutableBuffer, now: Instant) -> Vec<MutableBuffer> {
        self.bytes += buffer.len();
        self.buffers.push_back((now, buffer));
        let mut out = Vec::new();
        while self
            .buffers
            .front()
            .is_some_and(|(since, _)| self.bytes > KEPT || now.duration_since(*since) > PATIENCE)
            && let Some((_, oldest)) = self.buffers.pop_front()
        {
            self.bytes -= oldest.len();
            out.push(oldest);
        }
        out
    }
}

/// A buffer that comes back when it is dropped.
struct PooledBuffer {
    buffer: MutableBuffer,
    size: usize,
}

impl PooledBuffer {
    /// One of at least `size` arbitrary bytes.
    fn new(size: usize) -> Result<Self> {
        /// Numbers of any type fill a buffer without a rest.
        const UNIT: usize = 64;
        let known = if (LEAST..=MOST).contains(&size) {
            idle().take(size)
        } else {
            None
        };
        let buffer = match known {
            Some(buffer) => buffer,
            None => {
                let length = size.checked_next_multiple_of(UNIT);
                let zeroed =
                    length.and_then(|length| MutableBuffer::try_from_len_zeroed(length).ok());
                zeroed.ok_or_else(|| {
                    Error::no_memory("a buffer of a page or an array", size as u64)
                })?
            }
        };
        Ok(Self { buffer, size })
    }

    /// The same for callers that cannot return errors: it panics with the error as payload, which
    /// `panic_error` returns.
    fn or_panic(size: usize) -> Self {
        Self::new(size).unwrap_or_else(|error| resume_unwind(Box::new(error)))
    }
}

impl AsRef<[u8]> for PooledBuffer {
    fn as_ref(&self) -> &[u8] {
        self.buffer.get(..self.size).unwrap_or_default()
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        if (LEAST..=MOST).contains(&buffer.len()) {
            // What has no room is freed after the lock.
            let surplus = idle().put(buffer, Instant::now());
            drop(surplus);
        }
    }
}

/// `size` bytes as `fill` leaves them; it finds arbitrary ones.
///
/// # Errors
/// Those of `fill`; [`Error::Resource`] where the process cannot have so much memory.
pub fn filled(size: usize, fill: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<Bytes> {
    let mut lent = PooledBuffer::new(size)?;
    if let Some(bytes) = lent.buffer.get_mut(..size) {
        fill(bytes)?;
    }
    Ok(Bytes::from_owner(lent))
}

/// Numbers that become a buffer of an array.
pub struct PooledBuilder<T> {
    pooled_buffer: PooledBuffer,
    length: usize,
    of: PhantomData<T>,
}

impl<T: ArrowNativeType> PooledBuilder<T> {
    /// None yet, with room for `room` of them.
    ///
    /// # Panics
    /// With an [`Error::Resource`] as payload where the process cannot have so much memory, here
    /// and when it grows.
    #[must_use]
    pub fn new(room: usize) -> Self {
        Self {
            pooled_buffer: PooledBuffer::or_panic(room.saturating_mul(size_of::<T>())),
            length: 0,
            of: PhantomData,
        }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Those from `from` on.
    pub fn tail(&mut self, from: usize) -> &mut [T] {
        let length = self.length;
        self.pooled_buffer
            .buffer
            .typed_data_mut()
            .get_mut(from..length)
            .unwrap_or_default()
    }

    /// `count` more, arbitrary ones as yet.
    pub fn more(&mut self, count: usize) -> &mut [T] {
        let from = self.length;
        self.length += count;
        if self.pooled_buffer.buffer.len() < self.length * size_of::<T>() {
            self.grow(from);
        }
        self.tail(from)
    }

    /// Appends numbers.
    pub fn extend(&mut self, numbers: impl ExactSizeIterator<Item = T>) {
        let slots = self.more(numbers.len());
        for (slot, number) in slots.iter_mut().zip(numbers) {
            *slot = number;
        }
    }

    #[cold]
    fn grow(&mut self, filled: usize) {
        let mut larger =
            PooledBuffer::or_panic(self.length.max(2 * filled).saturating_mul(size_of::<T>()));
        let bytes = filled * size_of::<T>();
        if let (Some(to), Some(from)) = (
            larger.buffer.get_mut(..bytes),
            self.pooled_buffer.buffer.get(..bytes),
        ) {
            to.copy_from_slice(from);
        }
        self.pooled_buffer = larger;
    }
}

impl<T: ArrowNativeType> From<PooledBuilder<T>> for ScalarBuffer<T> {
    fn from(filling: PooledBuilder<T>) -> Self {
        let PooledBuilder {
            pooled_buffer: mut lent,
            length,
            ..
        } = filling;
        lent.size = length * size_of::<T>();
        Self::new(Bytes::from_owner(lent).into(), 0, length)
    }
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
    fn numbers_are_those_that_were_appended() {
        for room in [0, 10, 5000, 100_000] {
            let mut numbers = PooledBuilder::<i128>::new(room);
            assert!(numbers.is_empty());
            numbers.extend((0..7000).map(i128::from));
            numbers.extend(std::iter::repeat_n(-1, 3));
            numbers
                .tail(6999)
                .iter_mut()
                .for_each(|number| *number -= 1);
            assert_eq!(numbers.len(), 7003);
            let expected: Vec<i128> = (0..6999).chain([6998, -2, -2, -2]).collect();
            assert_eq!(
                ScalarBuffer::from(numbers).as_ref(),
                expected,
                "with room for {room}"
            );
        }
    }

    #[test]
    fn what_waits_is_bounded() {
        let all: Vec<Bytes> = (0..20)
            .map(|_| filled(4 << 20, |_| Ok(())).unwrap())
            .collect();
        drop(all);
        assert!(idle().bytes <= KEPT);
    }

    #[test]
    fn a_buffer_that_cannot_be_had_is_an_error() {
        for size in [1 << 60, usize::MAX - 7, usize::MAX] {
            let error = filled(size, |_| Ok(())).unwrap_err();
            assert!(
                matches!(
                    error,
                    Error::Resource {
                        resource: crate::error::ExhaustedResource::Memory,
                        ..
                    }
                ),
                "{error}"
            );
        }
        let panic = std::panic::catch_unwind(|| PooledBuilder::<i128>::new(1 << 60))
            .err()
            .unwrap();
        assert!(
            panic
                .downcast_ref::<Error>()
                .is_some_and(|error| error.to_string().contains("DELTAFAST_MEMORY_LIMIT"))
        );
        assert!(filled(0, |_| Ok(())).unwrap().is_empty());
    }

    #[test]
    fn nothing_waits_for_ever() {
        let (mut idle, now) = (
            IdleBuffers {
                buffers: VecDeque::new(),
                bytes: 0,
            },
            Instant::now(),
        );
        let buffer = MutableBuffer::from_len_zeroed;
        assert!(idle.put(buffer(100), now).is_empty());
        assert!(idle.put(buffer(200), now + PATIENCE).is_empty());
        let gone = idle.put(buffer(300), now + PATIENCE * 3 / 2);
        assert_eq!(
            gone.iter()
                .map(std::ops::Deref::deref)
                .map(<[u8]>::len)
                .collect::<Vec<_>>(),
            [100]
        );
        assert_eq!((idle.buffers.len(), idle.bytes), (2, 500));
    }
}
