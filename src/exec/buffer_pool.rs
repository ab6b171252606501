//! The idle buffers of a process.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use arrow_buffer::MutableBuffer;

use crate::process::sync::{Mutex, MutexGuard, PoisonError};

/// Smaller buffers are not pooled.
pub(super) const LEAST: usize = 16 << 10;
/// The most bytes of idle buffers.
pub(super) const KEPT: usize = 32 << 20;
/// The time after which an idle buffer is freed: pages of a growing log are slightly larger each
/// time, and their old buffers would otherwise fill the pool for ever.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// Buffers that wait for their next use.
#[derive(Default)]
pub(super) struct BufferPool(Mutex<IdleBuffers>);

/// Idle buffers with the time of their release, the most recent at the end.
#[derive(Default)]
struct IdleBuffers {
    buffers: VecDeque<(Instant, MutableBuffer)>,
    bytes: usize,
}

impl BufferPool {
    fn lock(&self) -> MutexGuard<'_, IdleBuffers> {
        // No thread panics while it holds the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A buffer of at least `size` bytes and not many more, since its user may keep it for long.
    pub(super) fn take(&self, size: usize) -> Option<MutableBuffer> {
        let mut idle = self.lock();
        let at = idle
            .buffers
            .iter()
            .rposition(|(_, buffer)| (size..=size + size / 8 + LEAST).contains(&buffer.len()))?;
        let (_, buffer) = idle.buffers.remove(at)?;
        idle.bytes -= buffer.len();
        Some(buffer)
    }

    /// Adds a buffer; returns those that are one too many or have been idle for too long, so that
    /// they are freed after the lock is released.
    pub(super) fn put(&self, buffer: MutableBuffer, now: Instant) -> Vec<MutableBuffer> {
        let mut idle = self.lock();
        idle.bytes += buffer.len();
        idle.buffers.push_back((now, buffer));
        let mut surplus = Vec::new();
        while idle
            .buffers
            .front()
            .is_some_and(|(since, _)| idle.bytes > KEPT || now.duration_since(*since) > PATIENCE)
            && let Some((_, oldest)) = idle.buffers.pop_front()
        {
            idle.bytes -= oldest.len();
            surplus.push(oldest);
        }
        surplus
    }

    /// The number of idle buffers and their bytes.
    #[cfg(test)]
    pub(super) fn held(&self) -> (usize, usize) {
        let idle = self.lock();
        assert_eq!(
            idle.bytes,
            idle.buffers
                .iter()
                .map(|(_, buffer)| buffer.len())
                .sum::<usize>()
        );
        (idle.buffers.len(), idle.bytes)
    }
}
