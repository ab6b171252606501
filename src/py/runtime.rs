//! The one way in which Python waits for the core: GIL released, Ctrl-C looked for twenty times a second.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, bounded};
use pyo3::prelude::*;

use super::error::to_python;
use crate::error::{Error, Result};
use crate::exec::{Cancel, panic_text};

/// How long a signal may wait.
const TICK: Duration = Duration::from_millis(50);

/// Runs `work` on a thread of its own and waits for it. When a signal handler raises (Ctrl-C), the work is cancelled and
/// left behind, so that a silent socket cannot hold the interpreter.
pub(super) fn wait<T: Send + 'static>(py: Python<'_>, work: impl FnOnce(&Cancel) -> Result<T> + Send + 'static) -> PyResult<T> {
    let cancel = Cancel::default();
    let inner = cancel.clone();
    let (sender, receiver) = bounded(1);
    thread::Builder::new()
        .name("deltafast-call".to_owned())
        .spawn(move || {
            let result = catch_unwind(AssertUnwindSafe(|| work(&inner)))
                .unwrap_or_else(|panic| Err(Error::internal(format!("a call panicked: {}", panic_text(&*panic)))));
            // The receiver is gone only when the caller was interrupted.
            let _ = sender.send(result);
        })
        .map_err(|e| to_python(py, &Error::internal(format!("cannot start a thread: {e}"))))?;
    loop {
        match py.detach(|| receiver.recv_timeout(TICK)) {
            Ok(result) => return result.map_err(|error| to_python(py, &error)),
            Err(RecvTimeoutError::Timeout) => {
                if let Err(interrupt) = py.check_signals() {
                    cancel.cancel();
                    return Err(interrupt);
                }
            }
            Err(RecvTimeoutError::Disconnected) => return Err(to_python(py, &Error::internal("a call ended without a result"))),
        }
    }
}
