//! The worker pool and the I/O runtime, each owned by the process that made it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use crossbeam_channel::{Sender, unbounded};
use tokio::runtime::{Builder, Runtime};

use crate::error::{Error, Result};

type Job = Box<dyn FnOnce() + Send>;

/// What belongs to one process id. A forked child finds its parent's threads gone and makes its own.
struct PerProcess<T>(OnceLock<Mutex<Owned<T>>>);

/// A value and the process that made it.
type Owned<T> = Option<(u32, Arc<T>)>;

impl<T> PerProcess<T> {
    const fn new() -> Self {
        Self(OnceLock::new())
    }

    fn get(&self, make: impl FnOnce() -> Result<T>) -> Result<Arc<T>> {
        let pid = std::process::id();
        let slot = self.0.get_or_init(|| Mutex::new(None));
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((owner, value)) = slot.as_ref()
            && *owner == pid
        {
            return Ok(Arc::clone(value));
        }
        let value = Arc::new(make()?);
        if let Some((_, inherited)) = slot.replace((pid, Arc::clone(&value))) {
            // The threads behind an inherited value do not exist here: dropping it would wait for them.
            std::mem::forget(inherited);
        }
        Ok(value)
    }
}

static POOL: PerProcess<Sender<Job>> = PerProcess::new();
static RUNTIME: PerProcess<Runtime> = PerProcess::new();

/// How many jobs run at once: `DELTAFAST_THREADS`, else the processors this process may use.
#[must_use]
pub fn parallelism() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| {
        std::env::var("DELTAFAST_THREADS")
            .ok()
            .and_then(|text| text.parse().ok())
            .filter(|count| *count > 0)
            .unwrap_or_else(|| thread::available_parallelism().map_or(2, std::num::NonZero::get))
    })
}

/// Runs `job` on the pool. A panic inside it ends that job only.
///
/// # Errors
/// [`Error::Internal`] when no thread can be started.
pub fn spawn(job: impl FnOnce() + Send + 'static) -> Result<()> {
    let pool = POOL.get(|| {
        let (sender, receiver) = unbounded::<Job>();
        for n in 0..parallelism() {
            let receiver = receiver.clone();
            thread::Builder::new()
                .name(format!("deltafast-{n}"))
                .spawn(move || {
                    for job in receiver {
                        // A job reports its own failure through its output; here the thread is only kept alive.
                        let _ = catch_unwind(AssertUnwindSafe(job));
                    }
                })
                .map_err(|e| Error::internal(format!("cannot start a worker thread: {e}")))?;
        }
        Ok(sender)
    })?;
    pool.send(Box::new(job)).map_err(|_| Error::internal("the worker pool is gone"))
}

/// The runtime for remote stores. Only awaits run here, no computation.
///
/// # Errors
/// [`Error::Internal`] when its threads cannot be started.
pub fn runtime() -> Result<Arc<Runtime>> {
    RUNTIME.get(|| {
        Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("deltafast-io")
            .enable_all()
            .build()
            .map_err(|e| Error::internal(format!("cannot start the I/O runtime: {e}")))
    })
}
