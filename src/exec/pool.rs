//! The worker pool and the I/O runtime, each owned by the process that made it.
//!
//! As many jobs compute at once as there are processors. A job that waits for a remote store ([`blocking`]) lends its place
//! to another one, on another thread where needed, so that many requests are under way while no processor is promised twice.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use crossbeam_channel::{Receiver, Sender, unbounded};
use tokio::runtime::{Builder, Runtime};

use crate::error::{Error, Result};

type Job = Box<dyn FnOnce() + Send>;

/// What belongs to one process id. A forked child finds its parent's threads gone and makes its own.
pub(super) struct PerProcess<T>(OnceLock<Mutex<Owned<T>>>);

/// A value and the process that made it.
type Owned<T> = Option<(u32, Arc<T>)>;

impl<T> PerProcess<T> {
    pub(super) const fn new() -> Self {
        Self(OnceLock::new())
    }

    pub(super) fn get(&self, make: impl FnOnce() -> Result<T>) -> Result<Arc<T>> {
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

static POOL: PerProcess<Pool> = PerProcess::new();
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

/// How many jobs may wait for remote stores at once.
pub const IN_FLIGHT: usize = 32;

struct Pool {
    jobs: Sender<Job>,
    queue: Receiver<Job>,
    crew: Mutex<Crew>,
    /// A place to compute was left.
    left: Condvar,
}

#[derive(Default)]
struct Crew {
    threads: usize,
    /// Threads that wait for a job.
    idle: usize,
    /// Jobs that compute.
    running: usize,
}

thread_local! {
    /// The pool that this thread works for.
    static EMPLOYER: RefCell<Option<Arc<Pool>>> = const { RefCell::new(None) };
}

impl Pool {
    fn crew(&self) -> MutexGuard<'_, Crew> {
        self.crew.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self) {
        let mut crew = self.crew();
        while crew.running >= parallelism() {
            crew = self.left.wait(crew).unwrap_or_else(PoisonError::into_inner);
        }
        crew.running += 1;
    }

    fn leave(&self) {
        self.crew().running -= 1;
        self.left.notify_one();
    }

    /// Starts another thread where a job could compute and no thread is there to take it.
    fn staff(self: &Arc<Self>) -> std::io::Result<()> {
        let mut crew = self.crew();
        if crew.threads >= parallelism() && (self.queue.len() <= crew.idle || crew.running >= parallelism() || crew.threads >= parallelism() + IN_FLIGHT) {
            return Ok(());
        }
        let pool = Arc::clone(self);
        thread::Builder::new().name(format!("deltafast-{}", crew.threads)).spawn(move || pool.work())?;
        crew.threads += 1;
        crew.idle += 1;
        Ok(())
    }

    fn work(self: Arc<Self>) {
        EMPLOYER.set(Some(Arc::clone(&self)));
        for job in &self.queue {
            self.crew().idle -= 1;
            self.enter();
            // A job reports its own failure through its output; here the thread is only kept alive.
            let _ = catch_unwind(AssertUnwindSafe(job));
            self.leave();
            self.crew().idle += 1;
        }
    }
}

/// Runs `job` on the pool. A panic inside it ends that job only.
///
/// # Errors
/// [`Error::Internal`] when no thread can be started.
pub fn spawn(job: impl FnOnce() + Send + 'static) -> Result<()> {
    let pool = POOL.get(|| {
        let (jobs, queue) = unbounded::<Job>();
        Ok(Pool { jobs, queue, crew: Mutex::default(), left: Condvar::new() })
    })?;
    pool.jobs.send(Box::new(job)).map_err(|_| Error::internal("the worker pool is gone"))?;
    pool.staff().map_err(|e| Error::internal(format!("cannot start a worker thread: {e}")))
}

/// Runs `wait`, which computes nothing; where the calling thread is one of the pool's, another job computes in its place.
pub fn blocking<T>(wait: impl FnOnce() -> T) -> T {
    struct Away(Arc<Pool>);
    impl Drop for Away {
        fn drop(&mut self) {
            self.0.enter();
        }
    }
    let Some(pool) = EMPLOYER.with_borrow(Clone::clone) else { return wait() };
    pool.leave();
    // Without another thread there is only less at once.
    let _ = pool.staff();
    let _away = Away(pool);
    wait()
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

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn jobs_that_wait_lend_their_place_and_no_more_compute_than_there_are_processors() {
        static RUNNING: AtomicUsize = AtomicUsize::new(0);
        static MOST: AtomicUsize = AtomicUsize::new(0);
        let compute = || {
            MOST.fetch_max(RUNNING.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            thread::sleep(std::time::Duration::from_millis(2));
            RUNNING.fetch_sub(1, Ordering::SeqCst);
        };
        // Nobody passes before all of them wait at once.
        let together = Arc::new(Barrier::new(IN_FLIGHT));
        let (done, all) = unbounded();
        for _ in 0..IN_FLIGHT {
            let (together, done) = (Arc::clone(&together), done.clone());
            spawn(move || {
                compute();
                blocking(|| together.wait());
                compute();
                done.send(()).unwrap();
            })
            .unwrap();
        }
        for _ in 0..IN_FLIGHT {
            all.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
        }
        assert!(MOST.load(Ordering::SeqCst) <= parallelism());
    }
}
