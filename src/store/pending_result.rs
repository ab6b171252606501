//! The result of a request that another thread makes.

use crate::error::{Error, Result};
use crate::exec::{self};

/// A result that is being fetched, or will be when waited for.
pub struct PendingResult<T>(PendingState<T>);

enum PendingState<T> {
    Lazy(Box<dyn FnOnce() -> Result<T> + Send>),
    Task(tokio::task::JoinHandle<Result<T>>),
}

impl<T> PendingResult<T> {
    /// Work that the waiting thread does itself.
    pub fn lazy(work: impl FnOnce() -> Result<T> + Send + 'static) -> Self {
        Self(PendingState::Lazy(Box::new(work)))
    }

    pub(crate) fn task(task: tokio::task::JoinHandle<Result<T>>) -> Self {
        Self(PendingState::Task(task))
    }

    /// The result with `then` applied to it by the waiting thread.
    pub(crate) fn map<U>(
        self,
        then: impl FnOnce(T) -> Result<U> + Send + 'static,
    ) -> PendingResult<U>
    where
        T: Send + 'static,
    {
        PendingResult::lazy(move || then(self.wait()?))
    }

    /// Waits for the result. Never called on a thread of the I/O runtime.
    ///
    /// # Errors
    /// The error of the fetch.
    pub fn wait(self) -> Result<T> {
        match self.0 {
            PendingState::Lazy(work) => work(),
            PendingState::Task(task) => exec::blocking(|| futures::executor::block_on(task))
                .map_err(|e| Error::internal(format!("an I/O task ended early: {e}")))?,
        }
    }
}
