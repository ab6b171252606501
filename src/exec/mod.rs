//! Threads: one small tokio runtime for remote input and output, one pool for decoding and
//! encoding.
//!
//! Both are created when first needed and belong to a process id, so that a forked child gets its
//! own. No CPU work runs on tokio's threads and nothing on the pool waits for other pool work: a
//! job that waits for a store releases its slot, and one that has filled its output queue is
//! *parked* and queued again when its consumer has taken an item. So any number of streams can be
//! open, pulled in any order, by any threads, without one starving another (blocking senders would
//! deadlock a join that drains one side first).

mod budget;
mod buffer_pool;
mod buffers;
mod call_commits;
mod cancel;
mod decode_reservation;
mod env;
mod parking_queue;
mod pool;
mod random;
mod stream;

pub use budget::memory_limit;
pub use buffers::{PooledBuilder, filled};
pub use call_commits::{CallCommits, CommitRecord};
pub use cancel::{CancellationToken, ProgressCounter};
pub use decode_reservation::{DecodeReservation, decode_limit};
pub use env::{RuntimeEnv, SystemEnv, now_ms};
pub use pool::{IN_FLIGHT, blocking, parallelism, runtime, spawn};
pub use random::{random, uuid};
#[cfg(feature = "python")]
pub(crate) use stream::AFTER_FORK;
pub use stream::{ItemSource, OrderedPrefetch, map_all, ordered_prefetch};
pub(crate) use stream::{panic_error, panic_text};
