//! Process-wide values that stay usable after a fork.
//!
//! A forked child has one thread, and a lock that another thread of its parent held stays locked in
//! it for ever. So nothing here waits for another thread: the first thread that needs a value
//! creates it, and where two threads create it at once, one of the two values is dropped.
//! Process-wide state is in one of these types or in an atomic, never in a plain `Mutex`,
//! `OnceLock` or `LazyLock`. Caches of a handle, which a child may use too, are in a
//! [`ProcessMutex`].

mod process_values;
mod slot;
pub(crate) mod sync;

pub use process_values::{PerProcess, ProcessBound, ProcessMutex, RaceOnce};
