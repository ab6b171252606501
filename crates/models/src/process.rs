//! The parts of the core's module of this name that have models.

#[path = "../../../src/process/slot.rs"]
pub mod slot;

/// The locks and atomics of the checker.
pub mod sync {
    pub use std::sync::PoisonError;

    pub use loom::sync::atomic::{AtomicPtr, Ordering};
    pub use loom::sync::{Condvar, Mutex, MutexGuard};
}
