//! How Python waits for the core: with the GIL released, and checking for Ctrl-C twenty times per
//! second.

use std::cell::RefCell;
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, bounded};
use pyo3::prelude::*;

use super::error::to_python;
use super::logging;
use crate::error::{Error, Result};
use crate::exec::{AFTER_FORK, CancellationToken, ProgressCounter, panic_error};
use crate::process::{PerProcess, ProcessBound};

/// The interval between two checks for signals.
pub(super) const TICK: Duration = Duration::from_millis(50);

type RuntimeJob = Box<dyn FnOnce() + Send>;

/// Idle threads that wait for a call.
static IDLE: PerProcess<Mutex<Vec<Sender<RuntimeJob>>>> = PerProcess::new();

/// The maximum number of idle threads.
const MOST_IDLE: usize = 4;

/// Locks the list of idle threads.
fn idle<T>(act: impl FnOnce(&mut Vec<Sender<RuntimeJob>>) -> T) -> T {
    let idle = IDLE
        .get(|| Ok::<_, Infallible>(Mutex::default()))
        .unwrap_or_else(|never| match never {});
    act(&mut idle.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Runs `job` on an idle thread, else on a new one. It must not panic.
fn on_thread(job: RuntimeJob) -> std::io::Result<()> {
    let known = idle(Vec::pop);
    let Some(thread) = known else {
        return start(job);
    };
    // If the thread ended in the meantime the job is returned.
    thread.send(job).or_else(|unsent| start(unsent.0))
}

fn start(job: RuntimeJob) -> std::io::Result<()> {
    let (sender, receiver) = bounded::<RuntimeJob>(1);
    thread::Builder::new()
        .name("deltafast-call".to_owned())
        .spawn(move || {
            let mut next = Some(job);
            while let Some(job) = next.take() {
                job();
                let waits = idle(|threads| {
                    let waits = threads.len() < MOST_IDLE;
                    if waits {
                        threads.push(sender.clone());
                    }
                    waits
                });
                next = if waits { receiver.recv().ok() } else { None };
            }
        })?;
    Ok(())
}

thread_local! {
    /// The counter of the calls of this thread; see `Counter`.
    static WATCHED: RefCell<Option<ProgressCounter>> = const { RefCell::new(None) };
}

/// Sets or removes the counter of the calls of this thread; returns the previous one.
pub(super) fn replace_progress(progress: Option<ProgressCounter>) -> Option<ProgressCounter> {
    WATCHED.with(|watched| watched.replace(progress))
}

/// A cancellation token with this thread's counter, if any.
pub(super) fn cancellation_token() -> CancellationToken {
    WATCHED
        .with(|watched| watched.borrow().clone())
        .map_or_else(CancellationToken::default, CancellationToken::with_progress)
}

/// Runs `work` on another thread and waits for it. If a signal handler raises (Ctrl-C), the work is
/// cancelled and abandoned, so that an unresponsive socket cannot block the interpreter.
pub(super) fn wait<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&CancellationToken) -> Result<T> + Send + 'static,
) -> PyResult<T> {
    run(py, false, work)
}

/// The same for work that changes something: after Ctrl-C it waits until the work has stopped, so
/// that it is known whether a version was committed, and no file is left half written. A second
/// Ctrl-C abandons the work.
pub(super) fn wait_settled<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&CancellationToken) -> Result<T> + Send + 'static,
) -> PyResult<T> {
    run(py, true, work)
}

fn run<T: Send + 'static>(
    py: Python<'_>,
    settles: bool,
    work: impl FnOnce(&CancellationToken) -> Result<T> + Send + 'static,
) -> PyResult<T> {
    logging::follow_logger(py);
    let cancel = cancellation_token();
    let inner = cancel.clone();
    let (sender, receiver) = bounded(1);
    on_thread(Box::new(move || {
        let result = catch_unwind(AssertUnwindSafe(|| work(&inner)))
            .unwrap_or_else(|panic| Err(panic_error("a call", &*panic)));
        // The receiver is dropped only when the caller was interrupted.
        let _ = sender.send(result);
    }))
    .map_err(|e| to_python(py, &Error::no_thread(&e)))?;
    let mut interrupted: Option<PyErr> = None;
    loop {
        let received = py.detach(|| receiver.recv_timeout(TICK));
        logging::log_requests(py);
        logging::log_commits(py, cancel.commits());
        match received {
            Ok(result) => {
                // A signal that arrived last would raise right after this call, and its result
                // would be lost.
                let interrupted = interrupted.or_else(|| {
                    if settles {
                        py.check_signals().err()
                    } else {
                        None
                    }
                });
                return match (result, interrupted) {
                    (result, None) => result.map_err(|error| to_python(py, &error)),
                    (Err(Error::Cancelled), Some(interrupt)) => Err(interrupt),
                    // A caller that retries after errors must be interrupted nevertheless.
                    (Err(error), Some(interrupt)) => {
                        interrupt.set_cause(py, Some(to_python(py, &error)));
                        Err(interrupt)
                    }
                    (Ok(_), Some(interrupt)) => {
                        let note = "the operation could not be stopped any more: it is done, and what it committed stays";
                        interrupt.value(py).call_method1("add_note", (note,))?;
                        Err(interrupt)
                    }
                };
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(interrupt) = py.check_signals() {
                    cancel.cancel();
                    if !settles || interrupted.is_some() {
                        return Err(interrupt);
                    }
                    interrupted = Some(interrupt);
                }
                if interrupted.is_some() {
                    // Between two of its queries an engine has nothing to interrupt, so it is tried
                    // at each tick.
                    stop_engines(py);
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(to_python(
                    py,
                    &Error::internal("a call ended without a result"),
                ));
            }
        }
    }
}

/// Interrupts the engines whose rows a call of this thread reads: the core cannot cancel them.
fn stop_engines(py: Python<'_>) {
    let stopped = py
        .import("deltafast._util.engine_interrupts")
        .and_then(|module| module.call_method0("stop_engines"));
    if let Err(error) = stopped {
        error.write_unraisable(py, None);
    }
}

/// Items of an iterator, which a thread of its own reads ahead of Python: the next item is usually
/// available, and no item requires a change of threads.
pub(super) struct ReadAheadIterator<T>(ProcessBound<Receiver<Result<T>>>);

/// The number of items that are read ahead.
const AHEAD: usize = 4;

impl<T: Send + 'static> ReadAheadIterator<T> {
    /// Starts the thread.
    pub(super) fn start(
        py: Python<'_>,
        items: impl Iterator<Item = Result<T>> + Send + 'static,
    ) -> PyResult<Self> {
        let (sender, receiver) = bounded(AHEAD);
        on_thread(Box::new(move || {
            let mut items = items;
            let pulled = catch_unwind(AssertUnwindSafe(|| {
                // The receiver is dropped when no more items are needed.
                let _ = items.by_ref().try_for_each(|item| sender.send(item));
                drop(items);
            }));
            if let Err(panic) = pulled {
                let _ = sender.send(Err(panic_error("a stream", &*panic)));
            }
        }))
        .map_err(|e| to_python(py, &Error::no_thread(&e)))?;
        Ok(Self(ProcessBound::new(receiver)))
    }

    /// The next item, or the exception of a signal handler that raised in the meantime.
    pub(super) fn next_item(&mut self, py: Python<'_>) -> PyResult<Option<T>> {
        // An item that is available can be returned without releasing the GIL.
        let Some(receiver) = self.0.get_mut() else {
            return Err(to_python(py, &Error::invalid(AFTER_FORK)));
        };
        let next = match receiver.try_recv() {
            Ok(item) => Some(item),
            Err(TryRecvError::Disconnected) => None,
            Err(TryRecvError::Empty) => py.detach(|| self.next_detached())?,
        };
        logging::log_requests(py);
        next.transpose().map_err(|error| to_python(py, &error))
    }

    /// The same for a thread that has released the GIL.
    #[allow(
        clippy::redundant_closure_for_method_calls,
        reason = "the method alone is not general enough in its lifetime"
    )]
    pub(super) fn next_detached(&mut self) -> PyResult<Option<Result<T>>> {
        let Some(receiver) = self.0.get_mut() else {
            return Ok(Some(Err(Error::invalid(AFTER_FORK))));
        };
        loop {
            match receiver.recv_timeout(TICK) {
                Ok(item) => return Ok(Some(item)),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                // Nothing is to be called if the interpreter ends.
                Err(RecvTimeoutError::Timeout) => Python::try_attach(|py| {
                    logging::log_requests(py);
                    py.check_signals()
                })
                .unwrap_or(Ok(()))?,
            }
        }
    }
}

impl<T> Iterator for ReadAheadIterator<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.0.get_mut() {
            Some(receiver) => receiver.recv().ok(),
            None => Some(Err(Error::invalid(AFTER_FORK))),
        }
    }
}
