//! One stream of batches that several threads may read: each batch goes to exactly one of them.
//!
//! A thread takes the source of the batches out of the shared state while it reads, so that no lock
//! is held meanwhile. Threads that want the next batch wait without the GIL. Closing does not wait:
//! it may run in a finalizer, also of the thread that reads. Nothing here waits for a thread of
//! another process.

use std::ffi::CStr;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::{Array, RecordBatch, RecordBatchOptions, StructArray};
use arrow_cast::display::FormatOptions;
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::SchemaRef;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyIterator};

use super::error::to_python;
use super::guarded_call::{GuardedCall, guarded_next};
use super::runtime::{ReadAheadIterator, TICK};
use crate::error::{Error, Result};
use crate::exec::AFTER_FORK;
use crate::process::ProcessMutex;

/// The names of capsules with a schema and with an array.
pub(super) const SCHEMA: &CStr = c"arrow_schema";
pub(super) const ARRAY: &CStr = c"arrow_array";

const REENTERED: &str = "the stream is already being read by this thread: a signal handler, log handler or finalizer cannot read the batch that its thread waits for";
const CONSUMED: &str = "the stream was consumed already; ask the table for a new one";
const INTERRUPTED: &str = "the stream was ended by an interrupt; ask the table for a new one";

type BatchIterator = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// The error that ended a stream.
#[derive(Clone)]
pub(super) enum StreamError {
    Core(Error),
    /// The exception of a signal handler, or of an iterator in Python.
    Python(Arc<PyErr>),
}

impl StreamError {
    fn invalid(message: &str) -> Self {
        Self::Core(Error::invalid(message))
    }

    fn raised(raised: PyErr) -> Self {
        Self::Python(Arc::new(raised))
    }

    /// The message for a consumer of the C interface.
    pub(super) fn message(&self) -> String {
        match self.repeated() {
            Self::Core(error) => error.to_string(),
            Self::Python(raised) => {
                Python::try_attach(|py| raised.value(py).to_string()).unwrap_or_default()
            }
        }
    }

    pub(super) fn to_python(&self, py: Python<'_>) -> PyErr {
        match self {
            Self::Core(error) => to_python(py, error),
            Self::Python(raised) => raised.clone_ref(py),
        }
    }

    /// The error for reads after the one that failed: a `KeyboardInterrupt` and the like are raised
    /// once.
    fn repeated(&self) -> Self {
        let is_exception = match self {
            Self::Core(_) => Some(true),
            Self::Python(raised) => {
                Python::try_attach(|py| raised.is_instance_of::<PyException>(py))
            }
        };
        if is_exception == Some(true) {
            self.clone()
        } else {
            Self::invalid(INTERRUPTED)
        }
    }
}

/// How a thread that reads treats Python.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum ConsumerKind {
    /// Any consumer, which may hold the GIL: it is neither acquired nor released.
    Anybody,
    /// Any consumer, but the batches need the GIL, for a store or an iterator in Python: if the
    /// consumer holds it, it is released while a batch is read.
    CallsPython,
    /// A library that has released the GIL, called by our own code: signals are checked.
    Interruptible,
}

/// Where the batches come from.
pub(super) enum BatchSource {
    Core(BatchIterator),
    /// Batches that a thread reads ahead of Python.
    Ahead(ReadAheadIterator<RecordBatch>),
    /// An iterator of Python over objects with an Arrow C array, whose columns are cast.
    Python {
        batches: Py<PyIterator>,
        schema: SchemaRef,
    },
}

impl BatchSource {
    /// The same source, with a thread that reads ahead where that is possible.
    pub(super) fn started(self, py: Python<'_>) -> PyResult<Self> {
        Ok(match self {
            Self::Core(batches) => Self::Ahead(ReadAheadIterator::start(py, batches)?),
            started => started,
        })
    }

    /// The next batch for a caller in Python.
    fn next_attached(&mut self, py: Python<'_>) -> Result<Option<RecordBatch>, StreamError> {
        match self {
            Self::Core(batches) => py
                .detach(|| batches.next())
                .transpose()
                .map_err(StreamError::Core),
            // A batch that is available is returned without releasing the GIL.
            Self::Ahead(ahead) => ahead.next_item(py).map_err(StreamError::raised),
            Self::Python { batches, schema } => {
                next_of_python(batches.bind(py), schema).map_err(StreamError::raised)
            }
        }
    }

    /// The next batch for a thread that holds no GIL which the source needs.
    fn next(&mut self, consumer: ConsumerKind) -> Result<Option<RecordBatch>, StreamError> {
        let next = match self {
            Self::Core(batches) => batches.next(),
            Self::Ahead(ahead) if consumer == ConsumerKind::Interruptible => {
                ahead.next_detached().map_err(StreamError::raised)?
            }
            Self::Ahead(ahead) => ahead.next(),
            Self::Python { batches, schema } => {
                return Python::try_attach(|py| next_of_python(batches.bind(py), schema))
                    .unwrap_or_else(|| Err(PyException::new_err(INTERRUPTED)))
                    .map_err(StreamError::raised);
            }
        };
        next.transpose().map_err(StreamError::Core)
    }
}

/// The next batch of an iterator of Python.
fn next_of_python(
    batches: &Bound<'_, PyIterator>,
    schema: &SchemaRef,
) -> PyResult<Option<RecordBatch>> {
    let Some(batch) = guarded_next(batches)? else {
        return Ok(None);
    };
    let capsules = batch.guarded_method("__arrow_c_array__", ())?;
    let (type_capsule, array_capsule): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) =
        capsules.extract()?;
    let array_type = type_capsule.pointer_checked(Some(SCHEMA))?;
    let array = array_capsule.pointer_checked(Some(ARRAY))?;
    // SAFETY: the interface gives these names only to capsules with a valid schema and a valid
    // array of that schema, which live as long as the capsules; `from_raw` moves the array out and
    // leaves a released one behind, which the destructor of the capsule skips.
    let data = unsafe {
        from_ffi(
            FFI_ArrowArray::from_raw(array.cast::<FFI_ArrowArray>().as_ptr()),
            array_type.cast::<FFI_ArrowSchema>().as_ref(),
        )
    };
    let cast = data.map_err(Error::from).and_then(|data| {
        let rows = RecordBatch::from(StructArray::from(data));
        let columns = rows.schema();
        let names = columns.fields().iter().map(|field| field.name());
        if !names.eq(schema.fields().iter().map(|field| field.name())) {
            return Err(Error::invalid("a batch has other columns than its stream"));
        }
        as_schema(&rows, schema)
    });
    cast.map(Some).map_err(|e| to_python(batch.py(), &e))
}

/// A value that does not fit is an error, not null.
const CHECKED: CastOptions<'static> = CastOptions {
    safe: false,
    format_options: FormatOptions::new(),
};

/// The batch with its columns cast to the types of a schema.
pub(super) fn as_schema(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let arrays = batch
        .columns()
        .iter()
        .zip(schema.fields())
        .map(|(array, field)| {
            if array.data_type() == field.data_type() {
                Ok(Arc::clone(array))
            } else {
                cast_with_options(array, field.data_type(), &CHECKED)
            }
        })
        .collect::<Result<Vec<_>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(
        Arc::clone(schema),
        arrays,
        &options,
    )?)
}

enum SourceState {
    Idle(BatchSource),
    /// A thread reads a batch.
    Busy(ThreadId),
    /// The same; the source is dropped afterwards.
    Closing(ThreadId),
    /// Every batch was read.
    Ended,
    /// Closed, or passed on to a consumer.
    Closed,
    Failed,
}

/// The source of a stream, which one thread at a time uses.
pub(super) struct SharedBatches {
    process: u32,
    state: Mutex<SourceState>,
    changed: Condvar,
    failure: Arc<FailureSlot>,
}

/// The errors of a stream. No thread waits for the GIL while it holds a lock of it.
#[derive(Default)]
pub(super) struct FailureSlot {
    ended: ProcessMutex<Option<StreamEnd>>,
    /// The error of the last read that did not end the stream, and the thread that read.
    refused: ProcessMutex<Option<(ThreadId, StreamError)>>,
}

/// How a stream failed.
#[derive(Clone)]
struct StreamEnd {
    error: StreamError,
    /// The error for later reads.
    repeated: StreamError,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FailureSlot {
    /// Raises the error of this thread's last read, or that with which the stream ended, if any.
    pub(super) fn check(&self, py: Python<'_>) -> PyResult<()> {
        let own = thread::current().id();
        let refused = self.refused.lock().take_if(|(reader, _)| *reader == own);
        let ended = self.ended.lock().clone();
        let error = refused
            .map(|(_, error)| error)
            .or_else(|| ended.map(|end| end.error));
        error.map_or(Ok(()), |error| Err(error.to_python(py)))
    }

    /// Keeps the first error that ends the stream.
    fn end(&self, error: &StreamError) {
        let end = StreamEnd {
            error: error.clone(),
            repeated: error.repeated(),
        };
        let mut ended = self.ended.lock();
        if ended.is_none() {
            *ended = Some(end);
        }
    }

    /// Keeps the error of a read that leaves the stream as it is.
    fn refuse(&self, error: StreamError) -> StreamError {
        let refused = Some((thread::current().id(), error.clone()));
        let before = mem::replace(&mut *self.refused.lock(), refused);
        // The lock is free again: dropping an exception may run Python.
        drop(before);
        error
    }

    /// The error for a read after the one that failed.
    fn repeated(&self) -> StreamError {
        let ended = self.ended.lock().clone();
        ended.map_or_else(|| StreamError::invalid(INTERRUPTED), |end| end.repeated)
    }
}

/// The right to read the next batch, with the source.
struct Turn<'a> {
    batches: &'a SharedBatches,
    source: Option<BatchSource>,
    is_over: bool,
}

/// What a thread that wants a batch finds.
enum Beginning<'a> {
    Turn(Turn<'a>),
    /// Another thread reads.
    Later,
    End,
}

impl Turn<'_> {
    /// Lets a thread read ahead, where that is possible.
    fn start(&mut self, py: Python<'_>) -> Result<&mut BatchSource, StreamError> {
        let source = self.source.take();
        let source = source.map(|source| source.started(py)).transpose();
        let empty = || BatchSource::Core(Box::new(std::iter::empty()));
        let source = source.map_err(StreamError::raised)?;
        Ok(self.source.insert(source.unwrap_or_else(empty)))
    }

    fn over(&mut self, after: SourceState) {
        self.is_over = true;
        self.batches.end_turn(after);
    }

    /// Ends the turn without a batch.
    fn put_back(mut self) {
        if let Some(source) = self.source.take() {
            self.over(SourceState::Idle(source));
        }
    }

    /// Ends the turn and the stream; returns the source.
    fn leave(mut self) -> Option<BatchSource> {
        self.over(SourceState::Closed);
        self.source.take()
    }

    /// Ends the turn with its result.
    fn finish(
        mut self,
        next: Result<Option<RecordBatch>, StreamError>,
    ) -> Result<Option<RecordBatch>, StreamError> {
        let source = self.source.take();
        let state = match (&next, source) {
            (Ok(Some(_)), Some(source)) => SourceState::Idle(source),
            (Ok(_), _) => SourceState::Ended,
            (Err(error), _) => {
                self.batches.failure.end(error);
                SourceState::Failed
            }
        };
        self.over(state);
        next
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // An error or a panic ended the turn.
        if !self.is_over {
            self.over(SourceState::Failed);
        }
    }
}

impl SharedBatches {
    pub(super) fn new(source: BatchSource, failure: Arc<FailureSlot>) -> Self {
        Self {
            process: std::process::id(),
            state: Mutex::new(SourceState::Idle(source)),
            changed: Condvar::new(),
            failure,
        }
    }

    pub(super) fn failure(&self) -> &Arc<FailureSlot> {
        &self.failure
    }

    /// Takes the source out of the shared state if no thread has it.
    fn try_begin(&self, state: &mut SourceState) -> Result<Beginning<'_>, StreamError> {
        let own = thread::current().id();
        let refused = |text: &str| Err(self.failure.refuse(StreamError::invalid(text)));
        match mem::replace(state, SourceState::Busy(own)) {
            SourceState::Idle(source) => {
                return Ok(Beginning::Turn(Turn {
                    batches: self,
                    source: Some(source),
                    is_over: false,
                }));
            }
            before => *state = before,
        }
        match &*state {
            SourceState::Busy(reader) | SourceState::Closing(reader) if *reader == own => {
                refused(REENTERED)
            }
            SourceState::Idle(_) | SourceState::Busy(_) => Ok(Beginning::Later),
            SourceState::Ended => Ok(Beginning::End),
            SourceState::Closing(_) | SourceState::Closed => refused(CONSUMED),
            SourceState::Failed => Err(self.failure.repeated()),
        }
    }

    /// Takes the source as soon as no other thread has it; `None` at the end of the batches.
    #[allow(
        clippy::redundant_closure_for_method_calls,
        reason = "the method alone is not general enough in its lifetime"
    )]
    fn begin(&self, consumer: ConsumerKind) -> Result<Option<Turn<'_>>, StreamError> {
        if self.process != std::process::id() {
            return Err(self.failure.refuse(StreamError::invalid(AFTER_FORK)));
        }
        let mut state = lock(&self.state);
        loop {
            match self.try_begin(&mut state)? {
                Beginning::Turn(turn) => return Ok(Some(turn)),
                Beginning::End => return Ok(None),
                Beginning::Later => {}
            }
            let waited = self.changed.wait_timeout(state, TICK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if consumer == ConsumerKind::Interruptible {
                drop(state);
                Python::try_attach(|py| py.check_signals())
                    .unwrap_or(Ok(()))
                    .map_err(|raised| self.failure.refuse(StreamError::raised(raised)))?;
                state = lock(&self.state);
            }
        }
    }

    /// The same for a caller in Python, which releases the GIL only to wait.
    fn begin_attached(&self, py: Python<'_>) -> Result<Option<Turn<'_>>, StreamError> {
        if self.process == std::process::id() {
            match self.try_begin(&mut lock(&self.state))? {
                Beginning::Turn(turn) => return Ok(Some(turn)),
                Beginning::End => return Ok(None),
                Beginning::Later => {}
            }
        }
        py.detach(|| self.begin(ConsumerKind::Interruptible))
    }

    /// Ends the stream with an error in what follows the source.
    pub(super) fn fail(&self, error: Error) -> StreamError {
        let error = StreamError::Core(error);
        self.failure.end(&error);
        self.end_turn(SourceState::Failed);
        error
    }

    fn end_turn(&self, after: SourceState) {
        let mut state = lock(&self.state);
        let before = mem::replace(&mut *state, after);
        // What another thread did meanwhile stays.
        let dropped = match before {
            SourceState::Closing(_) if matches!(*state, SourceState::Idle(_)) => {
                mem::replace(&mut *state, SourceState::Closed)
            }
            SourceState::Failed => mem::replace(&mut *state, SourceState::Failed),
            before => before,
        };
        self.changed.notify_all();
        drop(state);
        // A source is dropped without the lock: it may call Python.
        drop(dropped);
    }

    /// The next batch for a thread that holds no GIL which the source needs.
    fn next_detached(&self, consumer: ConsumerKind) -> Result<Option<RecordBatch>, StreamError> {
        let Some(mut turn) = self.begin(consumer)? else {
            return Ok(None);
        };
        let next = turn
            .source
            .as_mut()
            .map_or(Ok(None), |source| source.next(consumer));
        turn.finish(next)
    }

    /// The next batch for a consumer of the C interface.
    pub(super) fn next(&self, consumer: ConsumerKind) -> Result<Option<RecordBatch>, StreamError> {
        if consumer != ConsumerKind::CallsPython {
            return self.next_detached(consumer);
        }
        Python::try_attach(|py| py.detach(|| self.next_detached(consumer)))
            .unwrap_or_else(|| Err(StreamError::invalid(INTERRUPTED)))
    }

    /// The next batch for a caller in Python.
    pub(super) fn next_attached(&self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        let next = self.begin_attached(py).and_then(|turn| match turn {
            Some(mut turn) => {
                let next = turn.start(py).and_then(|source| source.next_attached(py));
                turn.finish(next)
            }
            None => Ok(None),
        });
        next.map_err(|error| error.to_python(py))
    }

    /// Takes the source for a consumer that reads the rest.
    pub(super) fn take(&self, py: Python<'_>) -> PyResult<BatchSource> {
        let turn = self
            .begin_attached(py)
            .map_err(|error| error.to_python(py))?;
        let source = turn.and_then(Turn::leave);
        source.ok_or_else(|| to_python(py, &Error::invalid(CONSUMED)))
    }

    /// Lets a thread read ahead from now on.
    pub(super) fn start(&self, py: Python<'_>) -> PyResult<()> {
        let started = self.begin_attached(py).and_then(|turn| {
            // Another thread may have read every batch meanwhile.
            let Some(mut turn) = turn else {
                return Ok(());
            };
            if let Err(error) = turn.start(py) {
                return turn.finish(Err(error)).map(drop);
            }
            turn.put_back();
            Ok(())
        });
        started.map_err(|error| error.to_python(py))
    }

    /// Drops the source; if a thread reads a batch, as soon as it has it.
    pub(super) fn close(&self) {
        if self.process != std::process::id() {
            return;
        }
        let mut state = lock(&self.state);
        let after = match &*state {
            SourceState::Busy(reader) | SourceState::Closing(reader) => {
                SourceState::Closing(*reader)
            }
            SourceState::Idle(_) | SourceState::Closed => SourceState::Closed,
            SourceState::Ended => SourceState::Ended,
            SourceState::Failed => SourceState::Failed,
        };
        let before = mem::replace(&mut *state, after);
        self.changed.notify_all();
        drop(state);
        drop(before);
    }
}
