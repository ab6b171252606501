//! A queue between a worker and a consumer. A worker that has filled it leaves its source there,
//! *parks*, and the consumer that takes an item gets the source to run it again: no thread waits
//! for room.

use std::collections::VecDeque;

use crate::process::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Items of type `T` that a worker takes from a source of type `S`.
pub(super) struct ParkingQueue<T, S> {
    state: Mutex<QueueState<T, S>>,
    changed: Condvar,
}

struct QueueState<T, S> {
    items: VecDeque<T>,
    /// The source while no worker holds it.
    parked: Option<S>,
    ended: bool,
}

impl<T, S> ParkingQueue<T, S> {
    /// Without items; the source is yet to be run.
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(QueueState {
                items: VecDeque::new(),
                parked: None,
                ended: false,
            }),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState<T, S>> {
        // No thread panics while it holds the lock: sources run outside of it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an item; `is_full` decides by the number of items with it. Returns the source if the
    /// worker shall go on, otherwise the source is parked.
    pub(super) fn push(
        &self,
        item: T,
        source: S,
        is_full: impl FnOnce(usize) -> bool,
    ) -> Option<S> {
        let mut state = self.lock();
        state.items.push_back(item);
        let going_on = if is_full(state.items.len()) {
            state.parked = Some(source);
            None
        } else {
            Some(source)
        };
        self.changed.notify_one();
        going_on
    }

    /// Ends the queue, after a last item if there is one.
    pub(super) fn end(&self, last: Option<T>) {
        let mut state = self.lock();
        state.items.extend(last);
        state.ended = true;
        self.changed.notify_one();
    }

    /// Whether no item waits.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.lock().items.is_empty()
    }

    /// Waits for the next item; `None` at the end. With it comes the source if it was parked: the
    /// caller runs it again.
    pub(super) fn recv(&self) -> Option<(T, Option<S>)> {
        let mut state = self.lock();
        loop {
            if let Some(item) = state.items.pop_front() {
                return Some((item, state.parked.take()));
            }
            if state.ended {
                return None;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}
