//! The worker pool and the I/O runtime, each owned by the process that made it.
//!
//! The number of running jobs is at most the number of processors. A job that waits for a remote
//! store ([`blocking`]) releases its slot to another one, on another thread where needed, so that
//! many requests are in flight while no processor is assigned twice.

use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread;

use tokio::runtime::{Builder, Runtime};

use super::stream::panic_error;
use crate::error::{Error, Result};
use crate::process::PerProcess;

type PoolJob = Box<dyn FnOnce() + Send>;

static POOL: PerProcess<ThreadPool> = PerProcess::new();
static RUNTIME: PerProcess<Runtime> = PerProcess::new();

/// The number of concurrent jobs: `DELTAFAST_THREADS`, else the number of processors that this
/// process may use.
#[must_use]
pub fn parallelism() -> usize {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let known = COUNT.load(Ordering::Relaxed);
    if known > 0 {
        return known;
    }
    let count = std::env::var("DELTAFAST_THREADS")
        .ok()
        .and_then(|text| text.parse().ok())
        .filter(|count| *count > 0)
        .unwrap_or_else(|| thread::available_parallelism().map_or(2, std::num::NonZero::get));
    COUNT.store(count, Ordering::Relaxed);
    count
}

/// The number of jobs that may wait for remote stores at once.
pub const IN_FLIGHT: usize = 32;

struct ThreadPool {
    state: Mutex<PoolState>,
    /// Notified when there is a job and a free slot.
    job_ready: Condvar,
    /// Notified when a slot becomes free while a job waits to get its slot back.
    slot_freed: Condvar,
}

#[derive(Default)]
struct PoolState {
    jobs: VecDeque<PoolJob>,
    threads: usize,
    /// Number of idle threads.
    idle: usize,
    /// Of these, threads that were notified of a job and have not taken it yet.
    called: usize,
    /// Number of running jobs.
    running: usize,
    /// Jobs that have waited for a store and want their slot back; they go before new ones.
    returning: usize,
}

impl PoolState {
    fn has_free_slot(&self) -> bool {
        self.running + self.returning < parallelism()
    }
}

thread_local! {
    /// The pool that this thread works for, and the pool's process.
    static EMPLOYER: Cell<Option<(u32, &'static ThreadPool)>> = const { Cell::new(None) };
}

impl ThreadPool {
    fn lock_state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self) {
        let mut crew = self.lock_state();
        crew.returning += 1;
        while crew.running >= parallelism() {
            crew = self
                .slot_freed
                .wait(crew)
                .unwrap_or_else(PoisonError::into_inner);
        }
        crew.returning -= 1;
        crew.running += 1;
    }

    fn leave(&'static self) {
        let mut crew = self.lock_state();
        crew.running -= 1;
        if crew.returning > 0 {
            self.slot_freed.notify_one();
        }
        // Without another thread there is only less parallelism.
        let _ = self.wake_or_spawn(&mut crew);
    }

    /// Wakes or starts a thread if a job could run and no thread will take it by itself: a running
    /// thread takes the next job when it is done, without a thread switch.
    fn wake_or_spawn(&'static self, crew: &mut PoolState) -> std::io::Result<()> {
        if crew.jobs.len() <= crew.called
            || crew.running + crew.returning + crew.called >= parallelism()
        {
            return Ok(());
        }
        if crew.idle > crew.called {
            crew.called += 1;
            self.job_ready.notify_one();
        } else if crew.threads < parallelism() + IN_FLIGHT {
            thread::Builder::new()
                .name(format!("deltafast-{}", crew.threads))
                .spawn(move || self.work())?;
            crew.threads += 1;
        }
        Ok(())
    }

    fn work(&'static self) {
        EMPLOYER.set(Some((std::process::id(), self)));
        let mut crew = self.lock_state();
        loop {
            if let Some(job) = crew
                .has_free_slot()
                .then(|| crew.jobs.pop_front())
                .flatten()
            {
                crew.running += 1;
                drop(crew);
                // A job reports its own failure through its output; here the thread is only kept
                // alive.
                let _ = catch_unwind(AssertUnwindSafe(job));
                crew = self.lock_state();
                crew.running -= 1;
                if crew.returning > 0 {
                    self.slot_freed.notify_one();
                }
            } else {
                crew.idle += 1;
                crew = self
                    .job_ready
                    .wait(crew)
                    .unwrap_or_else(PoisonError::into_inner);
                crew.idle -= 1;
                crew.called = crew.called.saturating_sub(1);
            }
        }
    }
}

/// Runs `job` on the pool. A panic inside it ends that job only.
///
/// # Errors
/// [`Error::Resource`] when no thread can be started.
pub fn spawn(job: impl FnOnce() + Send + 'static) -> Result<()> {
    let pool = POOL.get(|| {
        Ok::<_, Error>(ThreadPool {
            state: Mutex::default(),
            job_ready: Condvar::new(),
            slot_freed: Condvar::new(),
        })
    })?;
    let mut crew = pool.lock_state();
    crew.jobs.push_back(Box::new(job));
    match pool.wake_or_spawn(&mut crew) {
        Err(error) if crew.threads == 0 => {
            crew.jobs.pop_back();
            Err(Error::no_thread(&error))
        }
        // Otherwise a running thread takes it later.
        _ => Ok(()),
    }
}

/// Runs `wait`, which must not compute; if the calling thread belongs to the pool, another job runs
/// in its slot.
pub fn blocking<T>(wait: impl FnOnce() -> T) -> T {
    struct BlockingGuard(&'static ThreadPool);
    impl Drop for BlockingGuard {
        fn drop(&mut self) {
            self.0.enter();
        }
    }
    // The only thread of a forked child does not belong to a pool.
    let Some((_, pool)) = EMPLOYER
        .get()
        .filter(|(process, _)| *process == std::process::id())
    else {
        return wait();
    };
    pool.leave();
    let _guard = BlockingGuard(pool);
    wait()
}

/// Threads of the I/O runtime.
const IO_THREADS: usize = 2;

/// Checks that this many threads can be started, by starting all of them at once. Their stacks are
/// kept for the next threads.
fn check_threads(count: usize) -> Result<()> {
    let gate = RwLock::new(());
    thread::scope(|scope| {
        let closed = gate.write();
        let wait = || drop(gate.read());
        let mut threads = Vec::with_capacity(count);
        let start = |_| {
            thread::Builder::new()
                .spawn_scoped(scope, wait)
                .map(|thread| threads.push(thread))
        };
        let started = (0..count).try_for_each(start);
        drop(closed);
        // The scope waits for their work alone; a stack is kept once its thread has ended.
        for thread in threads {
            _ = thread.join();
        }
        started.map_err(|error| Error::no_thread(&error))
    })
}

/// The runtime for remote stores. Only awaits run here, no computation.
///
/// # Errors
/// [`Error::Resource`] if its threads or file descriptors cannot be created.
pub fn runtime() -> Result<&'static Runtime> {
    RUNTIME.get(|| {
        // The runtime panics if the system refuses a thread, and then waits for ever for the
        // threads that it has already started.
        check_threads(IO_THREADS)?;
        let build = || {
            Builder::new_multi_thread()
                .worker_threads(IO_THREADS)
                .thread_name("deltafast-io")
                .enable_all()
                .build()
        };
        let built = catch_unwind(AssertUnwindSafe(build))
            .map_err(|panic| panic_error("the I/O runtime", &*panic))?;
        built.map_err(|error| {
            Error::exhausted("the I/O runtime", &error).unwrap_or_else(|| {
                Error::internal(format!("cannot start the I/O runtime: {error}"))
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Barrier};

    use crossbeam_channel::unbounded;

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
        // No thread passes before all of them wait at once.
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
            all.recv_timeout(std::time::Duration::from_secs(60))
                .unwrap();
        }
        assert!(MOST.load(Ordering::SeqCst) <= parallelism());
    }
}
