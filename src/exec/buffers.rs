//! Reusable buffers: pages are read and decompressed, and arrays are built, by the megabyte, and
//! new memory from the operating system costs more (it is zeroed and mapped page by page) than
//! filling it.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::panic::resume_unwind;
use std::time::Instant;

use arrow_buffer::{ArrowNativeType, MutableBuffer, ScalarBuffer};
use bytes::Bytes;

use super::buffer_pool::{BufferPool, LEAST};
use crate::error::{Error, Result};
use crate::process::PerProcess;

/// Larger buffers are not pooled.
const MOST: usize = 16 << 20;
static POOL: PerProcess<BufferPool> = PerProcess::new();

fn pool() -> &'static BufferPool {
    POOL.get(|| Ok::<_, Infallible>(BufferPool::default()))
        .unwrap_or_else(|never| match never {})
}

/// A buffer that returns to the pool when it is dropped.
struct PooledBuffer {
    buffer: MutableBuffer,
    size: usize,
}

impl PooledBuffer {
    /// A buffer of at least `size` arbitrary bytes.
    fn new(size: usize) -> Result<Self> {
        /// Buffer sizes are multiples of this, so that numbers of any type fill a buffer without a
        /// remainder.
        const UNIT: usize = 64;
        let known = if (LEAST..=MOST).contains(&size) {
            pool().take(size)
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
            drop(pool().put(buffer, Instant::now()));
        }
    }
}

/// `size` bytes written by `fill`, which receives arbitrary bytes.
///
/// # Errors
/// Those of `fill`; [`Error::Resource`] if the process cannot allocate the memory.
pub fn filled(size: usize, fill: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<Bytes> {
    let mut lent = PooledBuffer::new(size)?;
    if let Some(bytes) = lent.buffer.get_mut(..size) {
        fill(bytes)?;
    }
    Ok(Bytes::from_owner(lent))
}

/// A builder of numbers that become a buffer of an array.
pub struct PooledBuilder<T> {
    pooled_buffer: PooledBuffer,
    length: usize,
    of: PhantomData<T>,
}

impl<T: ArrowNativeType> PooledBuilder<T> {
    /// An empty builder with capacity for `room` numbers.
    ///
    /// # Panics
    /// With an [`Error::Resource`] as payload if the process cannot allocate the memory, here and
    /// when the builder grows.
    #[must_use]
    pub fn new(room: usize) -> Self {
        Self {
            pooled_buffer: PooledBuffer::or_panic(room.saturating_mul(size_of::<T>())),
            length: 0,
            of: PhantomData,
        }
    }

    /// Number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether the builder is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The values from `from` on.
    pub fn tail(&mut self, from: usize) -> &mut [T] {
        let length = self.length;
        self.pooled_buffer
            .buffer
            .typed_data_mut()
            .get_mut(from..length)
            .unwrap_or_default()
    }

    /// Appends `count` values with arbitrary content.
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
    use super::super::buffer_pool::{KEPT, PATIENCE};
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
        assert!(pool().held().1 <= KEPT);
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
        let (idle, now) = (BufferPool::default(), Instant::now());
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
        assert_eq!(idle.held(), (2, 500));
    }
}
