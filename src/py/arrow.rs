//! Exchange of Arrow data through the `PyCapsule` interface: streams, schemas and batches,
//! zero-copy in both directions.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, to_ffi};
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{Array, RecordBatch, StructArray};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyIterator, PyTuple};

use super::error::to_python;
use super::shared_batches::{
    ARRAY, BatchSource, ConsumerKind, SCHEMA, SharedBatches, StreamError, as_schema,
};
use crate::error::{Error, Result};
use crate::exec::{ProgressCounter, panic_error};
use crate::scan::BatchStream;

const STREAM: &CStr = c"arrow_array_stream";
/// The numbers of errors, as `errno` has them on all platforms.
const EINVAL: c_int = 22;
/// Consumers raise it as an `OSError`.
const EIO: c_int = 5;

/// A one-shot stream of record batches.
#[pyclass(frozen, module = "deltafast._core")]
pub(super) struct ArrowStream {
    schema: SchemaRef,
    batches: Arc<SharedBatches>,
    progress: ProgressCounter,
    /// Whether the work behind the stream calls Python, as a store implemented in Python does.
    calls_python: bool,
}

impl ArrowStream {
    pub(super) fn new(batches: BatchStream, calls_python: bool) -> Self {
        let source = BatchSource::Core(batches.batches);
        Self {
            schema: batches.schema,
            batches: Arc::new(SharedBatches::new(source, Arc::default())),
            progress: batches.progress,
            calls_python,
        }
    }

    fn export<'py>(
        &self,
        py: Python<'py>,
        schema: SchemaRef,
        batches: Arc<SharedBatches>,
        consumer: ConsumerKind,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let stream = ExportedStream {
            cast: schema.as_ref() != self.schema.as_ref(),
            schema,
            batches,
            consumer,
            messages: Mutex::default(),
        };
        PyCapsule::new_with_value(py, stream.into_ffi(), STREAM)
    }
}

/// A stream behind the C interface, whose callbacks several threads may enter at once; the typed
/// error is kept by the stream.
struct ExportedStream {
    schema: SchemaRef,
    cast: bool,
    batches: Arc<SharedBatches>,
    consumer: ConsumerKind,
    /// Each error that a consumer got, the last one at the end: a thread may still read one while
    /// another thread gets the next.
    messages: Mutex<Vec<CString>>,
}

impl ExportedStream {
    fn into_ffi(self) -> FFI_ArrowArrayStream {
        let private_data = Arc::into_raw(Arc::new(self)).cast_mut().cast();
        Self::ffi(Some(release_stream), private_data)
    }

    fn ffi(
        release: Option<unsafe extern "C" fn(*mut FFI_ArrowArrayStream)>,
        private_data: *mut c_void,
    ) -> FFI_ArrowArrayStream {
        // SAFETY: the callbacks are those of this type; `private_data` is null, which they accept,
        // or an `Arc` of it, which `release_stream` drops once.
        unsafe {
            FFI_ArrowArrayStream::new_unchecked(
                Some(stream_schema),
                Some(next_array),
                Some(last_error),
                release,
                private_data,
            )
        }
    }

    /// The stream behind the structure, which another thread may release from now on; `None` if it
    /// was released.
    ///
    /// # Safety
    /// `stream` must point to a structure of `into_ffi`.
    unsafe fn of(stream: *mut FFI_ArrowArrayStream) -> Option<Arc<Self>> {
        // SAFETY: as the caller promises.
        let private_data = unsafe { (*stream).private_data() }
            .cast_const()
            .cast::<Self>();
        if private_data.is_null() {
            return None;
        }
        // SAFETY: the pointer is from `Arc::into_raw`, and the structure holds one count of it.
        unsafe {
            Arc::increment_strong_count(private_data);
            Some(Arc::from_raw(private_data))
        }
    }

    fn next(&self) -> Result<Option<RecordBatch>, StreamError> {
        match self.batches.next(self.consumer)? {
            Some(batch) if self.cast => {
                let batch = as_schema(&batch, &self.schema);
                batch.map(Some).map_err(|e| self.batches.fail(e))
            }
            next => Ok(next),
        }
    }

    /// Keeps a message until the stream is released.
    fn keep_message(&self, message: &str) {
        let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        match messages.iter().position(|known| *known == message) {
            Some(place) => {
                let known = messages.remove(place);
                messages.push(known);
            }
            None => messages.push(message),
        }
    }

    /// Runs a callback; a panic is an error.
    fn guarded(&self, callback: impl FnOnce() -> Result<(), StreamError>) -> c_int {
        let error = match catch_unwind(AssertUnwindSafe(callback)) {
            Ok(Ok(())) => return 0,
            Ok(Err(error)) => error,
            Err(panic) => StreamError::Core(panic_error("a stream", &*panic)),
        };
        self.keep_message(&error.message());
        match error {
            StreamError::Core(Error::NotFound { .. } | Error::Storage { .. }) => EIO,
            _ => EINVAL,
        }
    }
}

unsafe extern "C" fn stream_schema(
    stream: *mut FFI_ArrowArrayStream,
    out: *mut FFI_ArrowSchema,
) -> c_int {
    // SAFETY: the consumer passes the structure whose callback this is.
    let Some(exported) = (unsafe { ExportedStream::of(stream) }) else {
        return EINVAL;
    };
    exported.guarded(|| {
        let schema = FFI_ArrowSchema::try_from(exported.schema.as_ref());
        let schema = schema.map_err(|e| StreamError::Core(Error::from(e)))?;
        // SAFETY: `out` points to memory of the consumer for a schema, which may not be initialized.
        unsafe { out.write(schema) };
        Ok(())
    })
}

unsafe extern "C" fn next_array(
    stream: *mut FFI_ArrowArrayStream,
    out: *mut FFI_ArrowArray,
) -> c_int {
    // SAFETY: the consumer passes the structure whose callback this is.
    let Some(exported) = (unsafe { ExportedStream::of(stream) }) else {
        return EINVAL;
    };
    exported.guarded(|| {
        let batch = exported.next()?;
        let array = batch.map_or_else(FFI_ArrowArray::empty, |batch| {
            FFI_ArrowArray::new(&StructArray::from(batch).to_data())
        });
        // SAFETY: `out` points to memory of the consumer for an array, which may not be initialized.
        unsafe { out.write(array) };
        Ok(())
    })
}

unsafe extern "C" fn last_error(stream: *mut FFI_ArrowArrayStream) -> *const c_char {
    // SAFETY: the consumer passes the structure whose callback this is.
    let Some(exported) = (unsafe { ExportedStream::of(stream) }) else {
        return c"the stream was closed".as_ptr();
    };
    let messages = exported
        .messages
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    messages
        .last()
        .map_or(ptr::null(), |message| message.as_ptr())
}

unsafe extern "C" fn release_stream(stream: *mut FFI_ArrowArrayStream) {
    // SAFETY: the consumer passes the structure whose callback this is, once.
    let released = unsafe { stream.replace(ExportedStream::ffi(None, ptr::null_mut())) };
    let private_data = released
        .private_data()
        .cast_const()
        .cast::<ExportedStream>();
    // Its `Drop` would release it again.
    mem::forget(released);
    if !private_data.is_null() {
        // SAFETY: the count of the structure, which `into_ffi` gave it. Threads that are inside a
        // callback have their own.
        drop(unsafe { Arc::from_raw(private_data) });
    }
}

/// The schema in a capsule that a consumer passes.
fn requested(capsule: &Bound<'_, PyAny>) -> PyResult<Schema> {
    let pointer = capsule.cast::<PyCapsule>()?.pointer_checked(Some(SCHEMA))?;
    // SAFETY: the interface gives this name only to a capsule with a valid `ArrowSchema`, which the
    // capsule owns and which lives as long as the capsule, that is longer than this borrow.
    let schema = unsafe { pointer.cast::<FFI_ArrowSchema>().as_ref() };
    Schema::try_from(schema).map_err(|e| {
        to_python(
            capsule.py(),
            &Error::invalid(format!("the requested schema cannot be read: {e}")),
        )
    })
}

#[pymethods]
impl ArrowStream {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let mut schema = Arc::clone(&self.schema);
        // A request is best-effort: only one with the same columns can be satisfied.
        if let Some(capsule) = requested_schema.filter(|c| !c.is_none()) {
            let wish = requested(capsule)?;
            let castable = wish.fields().len() == schema.fields().len()
                && wish.fields().iter().zip(schema.fields()).all(|(a, b)| {
                    a.name() == b.name() && arrow_cast::can_cast_types(b.data_type(), a.data_type())
                });
            if castable {
                let fields: Vec<Field> = wish
                    .fields()
                    .iter()
                    .map(|f| f.as_ref().clone().with_nullable(true))
                    .collect();
                schema = Arc::new(Schema::new(fields));
            }
        }
        let source = self.batches.take(py)?;
        let failure = Arc::clone(self.batches.failure());
        let batches = Arc::new(SharedBatches::new(source, failure));
        let consumer = if self.calls_python {
            ConsumerKind::CallsPython
        } else {
            ConsumerKind::Anybody
        };
        self.export(py, schema, batches, consumer)
    }

    /// The stream for a library that releases the GIL while it reads, such as pyarrow: Ctrl-C ends
    /// it, and `check` raises the handler's exception. It may be exported several times, for
    /// several threads: they share the batches.
    fn interruptible<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        self.batches.start(py)?;
        self.export(
            py,
            Arc::clone(&self.schema),
            Arc::clone(&self.batches),
            ConsumerKind::Interruptible,
        )
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        export_schema(py, &self.schema)
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<ArrowBatch>> {
        let next = self.batches.next_attached(py)?;
        Ok(next.map(|batch| ArrowBatch { batch }))
    }

    /// The rest of the stream.
    fn read_all(&self, py: Python<'_>) -> PyResult<ArrowTable> {
        let mut batches = Vec::new();
        while let Some(next) = self.__next__(py)? {
            batches.push(next.batch);
        }
        Ok(ArrowTable {
            schema: Arc::clone(&self.schema),
            batches,
        })
    }

    /// The values of a column of strings in the rest of the stream, without nulls.
    fn strings(&self, py: Python<'_>, column: &str) -> PyResult<Vec<String>> {
        let lacking = |e: ArrowError| to_python(py, &Error::internal(e.to_string()));
        let place = self.schema.index_of(column).map_err(lacking)?;
        let mut values = Vec::new();
        while let Some(next) = self.__next__(py)? {
            let strings = cast(next.batch.column(place), &DataType::Utf8).map_err(lacking)?;
            values.extend(
                strings
                    .as_string::<i32>()
                    .iter()
                    .flatten()
                    .map(str::to_owned),
            );
        }
        Ok(values)
    }

    /// Stops the work behind the stream.
    fn close(&self) {
        self.batches.close();
    }

    /// (completed files, all files)
    fn progress(&self) -> (u64, u64) {
        self.progress.get()
    }

    /// Raises the typed error with which the exported stream ended, if any.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.batches.failure().check(py)
    }
}

fn export_schema<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyCapsule>> {
    let exported = FFI_ArrowSchema::try_from(schema)
        .map_err(|e| to_python(py, &Error::internal(e.to_string())))?;
    PyCapsule::new_with_value(py, exported, SCHEMA)
}

/// One record batch.
#[pyclass(frozen, module = "deltafast._core")]
pub(super) struct ArrowBatch {
    batch: RecordBatch,
}

#[pymethods]
impl ArrowBatch {
    #[getter]
    fn num_rows(&self) -> usize {
        self.batch.num_rows()
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        // A request is best-effort, and only streams cast.
        let _ = requested_schema;
        let data = StructArray::from(self.batch.clone()).to_data();
        let (array, _): (FFI_ArrowArray, FFI_ArrowSchema) =
            to_ffi(&data).map_err(|e| to_python(py, &Error::internal(e.to_string())))?;
        let schema = export_schema(py, &self.batch.schema())?;
        PyTuple::new(py, [schema, PyCapsule::new_with_value(py, array, ARRAY)?])
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        export_schema(py, &self.batch.schema())
    }
}

/// Record batches in memory.
#[pyclass(frozen, module = "deltafast._core")]
pub(super) struct ArrowTable {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

#[pymethods]
impl ArrowTable {
    #[getter]
    fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    #[getter]
    fn column_names(&self) -> Vec<String> {
        let fields = self.schema.fields().iter();
        fields.map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.num_rows()
    }

    fn __repr__(&self) -> String {
        let rows = self.num_rows();
        format!(
            "<deltafast.ArrowTable, {rows} rows of {}>",
            self.column_names().join(", ")
        )
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let batches = BatchStream {
            schema: Arc::clone(&self.schema),
            batches: Box::new(self.batches.clone().into_iter().map(Ok)),
            progress: ProgressCounter::default(),
        };
        ArrowStream::new(batches, false).__arrow_c_stream__(py, requested_schema)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        export_schema(py, &self.schema)
    }
}

/// A schema to be imported by an Arrow library.
#[pyclass(frozen, module = "deltafast._core")]
pub(super) struct ArrowSchemaExport {
    pub(super) schema: SchemaRef,
}

#[pymethods]
impl ArrowSchemaExport {
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        export_schema(py, &self.schema)
    }
}

/// The rows that an engine returns, batch by batch.
pub(super) fn engine_batches(
    stream: RecordBatchStreamReader,
) -> impl Iterator<Item = Result<RecordBatch>> {
    stream.map(|batch| batch.map_err(|e| unreadable("the rows of the engine", &e)))
}

/// The error of a stream whose next batch cannot be read, with the producer's own message alone:
/// Arrow puts the name of the interface in front of it, and pyarrow a traceback behind it.
pub(super) fn unreadable(what: &str, error: &ArrowError) -> Error {
    let text = error.to_string();
    let message = text
        .split_once("Producer error: ")
        .map_or(text.as_str(), |(_, message)| message);
    let message = message
        .split(". Detail: Python exception")
        .next()
        .unwrap_or(message);
    Error::invalid(format!("{what} cannot be read: {message}"))
}

/// Imports the stream of any object with `__arrow_c_stream__`.
pub(super) fn import_stream(object: &Bound<'_, PyAny>) -> PyResult<RecordBatchStreamReader> {
    let capsule = object.call_method0("__arrow_c_stream__")?;
    let pointer = capsule.cast::<PyCapsule>()?.pointer_checked(Some(STREAM))?;
    // SAFETY: the interface gives this name only to a capsule with a valid `ArrowArrayStream`;
    // `from_raw` moves it out and leaves a released one behind, which the capsule's destructor then
    // skips.
    let reader = unsafe {
        RecordBatchStreamReader::from_raw(pointer.cast::<FFI_ArrowArrayStream>().as_ptr())
    };
    reader.map_err(|e| to_python(object.py(), &unreadable("the stream", &e)))
}

/// Batches of an iterator of Python, cast to the types of a schema, as a stream. The iterator runs
/// in the thread that reads. Unlike a reader of pyarrow over a generator, it does not abort the
/// process if the interpreter ends meanwhile.
#[pyfunction]
#[pyo3(signature = (batches, schema, progress_of=None))]
pub(super) fn python_batches(
    batches: &Bound<'_, PyIterator>,
    schema: &Bound<'_, PyAny>,
    progress_of: Option<&Bound<'_, ArrowStream>>,
) -> PyResult<ArrowStream> {
    let schema = Arc::new(requested(&schema.call_method0("__arrow_c_schema__")?)?);
    let source = BatchSource::Python {
        batches: batches.clone().unbind(),
        schema: Arc::clone(&schema),
    };
    Ok(ArrowStream {
        schema,
        batches: Arc::new(SharedBatches::new(source, Arc::default())),
        progress: progress_of.map_or_else(ProgressCounter::default, |stream| {
            stream.get().progress.clone()
        }),
        calls_python: true,
    })
}

/// A stream with its columns cast to the types of a schema.
#[pyfunction]
pub(super) fn cast_stream(
    stream: &Bound<'_, PyAny>,
    schema: &Bound<'_, PyAny>,
) -> PyResult<ArrowStream> {
    let schema = Arc::new(requested(&schema.call_method0("__arrow_c_schema__")?)?);
    let out = Arc::clone(&schema);
    let batches = import_stream(stream)?.map(move |batch| {
        let batch = batch.map_err(|e| unreadable("the rows", &e))?;
        as_schema(&batch, &out)
    });
    let batches = BatchStream {
        schema,
        batches: Box::new(batches),
        progress: ProgressCounter::default(),
    };
    Ok(ArrowStream::new(batches, true))
}
