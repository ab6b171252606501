//! Values that are made once: by the first thread, by each process, behind a lock.

use super::slot;
use super::sync::{AtomicPtr, Mutex, MutexGuard, PoisonError};
use std::convert::Infallible;
use std::mem;
use std::ptr;
use std::sync::OnceLock;

/// A value that is created once and then stays, also in forked children. It is freed with its owner.
pub struct RaceOnce<T: 'static>(AtomicPtr<T>);

impl<T: Send + Sync> RaceOnce<T> {
    /// Without a value.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// The value; `make` creates it if there is none yet. Several threads may create one at once:
    /// the first one stays.
    pub fn get_or_make(&self, make: impl FnOnce() -> T) -> &T {
        // SAFETY: only this function fills the slot, and its value is freed with its owner.
        unsafe { slot::value_or_make(&self.0, |_| true, || Ok::<_, Infallible>(make())) }
            .unwrap_or_else(|never| match never {})
    }
}

impl<T: 'static> Drop for RaceOnce<T> {
    fn drop(&mut self) {
        let value = *self.0.get_mut();
        if !value.is_null() {
            // SAFETY: from `Box::into_raw`, and with the owner go all references to it.
            drop(unsafe { Box::from_raw(value) });
        }
    }
}

impl<T: Send + Sync> Default for RaceOnce<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// A value that each process creates for itself. A forked child never accesses the value of its
/// parent, whose threads it does not have and whose locks may be held for ever; the memory of that
/// value is not freed.
pub struct PerProcess<T: 'static>(AtomicPtr<ProcessValue<T>>);

struct ProcessValue<T> {
    process: u32,
    value: T,
}

impl<T: Send + Sync> PerProcess<T> {
    /// Without a value.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// This process's value; `make` creates it if there is none yet. Several threads may create one
    /// at once: the first one stays.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn get<E>(&'static self, make: impl FnOnce() -> Result<T, E>) -> Result<&'static T, E> {
        let process = std::process::id();
        let make = || {
            Ok(ProcessValue {
                process,
                value: make()?,
            })
        };
        // SAFETY: only this function fills the slot, and nothing frees its values.
        unsafe { slot::value_or_make(&self.0, |known| known.process == process, make) }
            .map(|own| &own.value)
    }
}

impl<T: Send + Sync> Default for PerProcess<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// A value that depends on threads of the process that created it: only that process may use it,
/// and if another one drops it, it is leaked instead, since dropping it would wait for those
/// threads.
#[derive(Debug)]
pub struct ProcessBound<T> {
    process: u32,
    value: Option<T>,
}

impl<T> ProcessBound<T> {
    /// A value of this process.
    pub fn new(value: T) -> Self {
        Self {
            process: std::process::id(),
            value: Some(value),
        }
    }

    /// The value, unless another process created it.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.value
            .as_mut()
            .filter(|_| self.process == std::process::id())
    }
}

impl<T> Drop for ProcessBound<T> {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            mem::forget(self.value.take());
        }
    }
}

/// A lock of a value that a forked child does not need, such as a cache: the child gets a default
/// value of its own, since a thread of its parent may have held the lock at the fork. (Children of
/// children share that one.)
#[derive(Debug)]
pub struct ProcessMutex<T> {
    process: u32,
    value: Mutex<T>,
    of_child: OnceLock<Mutex<T>>,
}

impl<T: Default> ProcessMutex<T> {
    /// A lock of this process.
    pub fn new(value: T) -> Self {
        Self {
            process: std::process::id(),
            value: Mutex::new(value),
            of_child: OnceLock::new(),
        }
    }

    /// Locks this process's value, even if another thread panicked while it held the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let mutex = if self.process == std::process::id() {
            &self.value
        } else {
            self.of_child.get_or_init(Mutex::default)
        };
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Default> Default for ProcessMutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn threads_that_ask_at_once_get_one_value() {
        static ONCE: RaceOnce<usize> = RaceOnce::new();
        static OWN: PerProcess<usize> = PerProcess::new();
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let together = Barrier::new(8);
        thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        together.wait();
                        let make = || MADE.fetch_add(1, Ordering::SeqCst);
                        (
                            ptr::from_ref(ONCE.get_or_make(make)) as usize,
                            ptr::from_ref(OWN.get(|| Ok::<_, ()>(make())).unwrap()) as usize,
                        )
                    })
                })
                .collect();
            let seen: Vec<_> = threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect();
            assert!(seen.iter().all(|values| *values == seen[0]));
        });
        assert_eq!(ONCE.get_or_make(|| 99), ONCE.get_or_make(|| 98));
    }

    #[test]
    fn an_error_leaves_no_value() {
        static OWN: PerProcess<u8> = PerProcess::new();
        assert_eq!(OWN.get(|| Err("no")), Err("no"));
        assert_eq!(OWN.get(|| Ok::<_, &str>(7)), Ok(&7));
    }

    #[test]
    fn a_lock_that_another_process_held_is_not_waited_for() {
        let own = ProcessMutex::new(7);
        assert_eq!(*own.lock(), 7);
        let other = ProcessMutex {
            process: std::process::id() ^ 1,
            ..ProcessMutex::new(7)
        };
        let _held = other.value.lock().unwrap();
        *other.lock() += 1;
        assert_eq!(*other.lock(), 1);
    }

    #[test]
    fn the_value_of_another_process_is_neither_used_nor_dropped() {
        struct DropCounter<'a>(&'a AtomicUsize);
        impl Drop for DropCounter<'_> {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
        let ended = AtomicUsize::new(0);
        let mut own = ProcessBound::new(DropCounter(&ended));
        assert!(own.get_mut().is_some());
        drop(own);
        assert_eq!(ended.load(Ordering::SeqCst), 1);
        let mut other = ProcessBound {
            process: std::process::id() ^ 1,
            value: Some(DropCounter(&ended)),
        };
        assert!(other.get_mut().is_none());
        drop(other);
        assert_eq!(ended.load(Ordering::SeqCst), 1);
    }
}
