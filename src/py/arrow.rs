//! Exchange of Arrow data through the `PyCapsule` interface: streams, schemas and batches,
//! zero-copy in both directions.

use std::ffi::CStr;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, to_ffi};
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{Array, RecordBatch, RecordBatchOptions, RecordBatchReader, StructArray};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use super::error::to_python;
use super::runtime::ReadAheadIterator;
use super::values::BoundTree;
use crate::error::{Error, Result};
use crate::exec::ProgressCounter;
use crate::scan::BatchStream;

const STREAM: &CStr = c"arrow_array_stream";
const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";

type BatchIterator = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// A one-shot stream of record batches.
#[pyclass(frozen, module = "deltafast._core")]
pub(super) struct ArrowStream {
    schema: SchemaRef,
    batches: Mutex<Option<BatchIterator>>,
    /// The batches that are read ahead for a consumer in Python.
    ahead: Mutex<Option<ReadAheadIterator<RecordBatch>>>,
    progress: ProgressCounter,
    /// Whether the work behind the stream calls Python, as a store implemented in Python does.
    calls_python: bool,
    /// The error that ended the stream, for consumers of the C interface, which only get a string.
    failure: Arc<Mutex<Option<StreamError>>>,
}

/// The error that ended a stream.
enum StreamError {
    Core(Error),
    /// A signal handler's exception.
    Python(PyErr),
}

impl ArrowStream {
    pub(super) fn new(batches: BatchStream, calls_python: bool) -> Self {
        Self {
            schema: batches.schema,
            batches: Mutex::new(Some(batches.batches)),
            ahead: Mutex::default(),
            progress: batches.progress,
            calls_python,
            failure: Arc::default(),
        }
    }

    fn take(&self) -> Option<BatchIterator> {
        if let Some(ahead) = self.take_ahead() {
            return Some(Box::new(ahead));
        }
        self.batches
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    fn export<'py>(
        &self,
        py: Python<'py>,
        schema: SchemaRef,
        batches: GilAwareBatches,
        cast: bool,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let reader = ExportedBatchReader {
            schema,
            batches,
            cast,
            failure: Arc::clone(&self.failure),
        };
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), STREAM)
    }

    fn take_ahead(&self) -> Option<ReadAheadIterator<RecordBatch>> {
        self.ahead
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

/// Batches for a consumer of the C interface; the typed error is kept by the stream.
struct ExportedBatchReader {
    schema: SchemaRef,
    batches: GilAwareBatches,
    cast: bool,
    failure: Arc<Mutex<Option<StreamError>>>,
}

/// The consumer of the batches, which determines whether Python can be called.
enum GilAwareBatches {
    /// Any consumer, which may hold the GIL: it is neither acquired nor released.
    Anybody(BatchIterator),
    /// Any consumer, but a store implemented in Python needs the GIL: if the consumer holds it, it
    /// is released while a batch is read.
    CallsPython(BatchIterator),
    /// A library that has released the GIL, called by our own code: signals are checked.
    Interruptible(ReadAheadIterator<RecordBatch>),
    Ended,
}

impl GilAwareBatches {
    fn next(&mut self) -> Result<Option<RecordBatch>, StreamError> {
        let next = match self {
            Self::Anybody(batches) => batches.next(),
            Self::CallsPython(batches) => Python::attach(|py| py.detach(|| batches.next())),
            Self::Interruptible(ahead) => ahead.next_detached().map_err(StreamError::Python)?,
            Self::Ended => None,
        };
        next.transpose().map_err(StreamError::Core)
    }
}

impl Iterator for ExportedBatchReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = match self.batches.next() {
            Ok(Some(batch)) if self.cast => as_schema(&batch, &self.schema)
                .map(Some)
                .map_err(StreamError::Core),
            other => other,
        };
        if !matches!(next, Ok(Some(_))) {
            self.batches = GilAwareBatches::Ended;
        }
        next.transpose().map(|batch| {
            batch.map_err(|failure| {
                let text = match &failure {
                    StreamError::Core(error) => error.to_string(),
                    StreamError::Python(_) => "interrupted".to_owned(),
                };
                self.failure
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .get_or_insert(failure);
                ArrowError::ExternalError(text.into())
            })
        })
    }
}

impl RecordBatchReader for ExportedBatchReader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

fn as_schema(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let arrays = batch
        .columns()
        .iter()
        .zip(schema.fields())
        .map(|(array, field)| {
            if array.data_type() == field.data_type() {
                Ok(Arc::clone(array))
            } else {
                cast(array, field.data_type())
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
        let cast = schema.as_ref() != self.schema.as_ref();
        let batches = self.take().ok_or_else(|| consumed(py))?;
        let batches = if self.calls_python {
            GilAwareBatches::CallsPython(batches)
        } else {
            GilAwareBatches::Anybody(batches)
        };
        self.export(py, schema, batches, cast)
    }

    /// The stream for a library that releases the GIL while it reads, such as pyarrow: Ctrl-C ends
    /// it, and `check` raises the handler's exception.
    fn interruptible<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let ahead = match self.take_ahead() {
            Some(ahead) => ahead,
            None => ReadAheadIterator::start(py, self.take().ok_or_else(|| consumed(py))?)?,
        };
        self.export(
            py,
            Arc::clone(&self.schema),
            GilAwareBatches::Interruptible(ahead),
            false,
        )
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        export_schema(py, &self.schema)
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<ArrowBatch>> {
        let mut ahead = match self.take_ahead() {
            Some(ahead) => ahead,
            None => match self.take() {
                Some(batches) => ReadAheadIterator::start(py, batches)?,
                None => return Ok(None),
            },
        };
        // An error or an interrupt ends the stream: `ahead` is dropped.
        let next = ahead.next_item(py)?;
        if next.is_some() {
            *self.ahead.lock().unwrap_or_else(PoisonError::into_inner) = Some(ahead);
        }
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
        drop(self.take());
    }

    /// (completed files, all files)
    fn progress(&self) -> (u64, u64) {
        self.progress.get()
    }

    /// Raises the typed error with which the exported stream ended, if any.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        match self
            .failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
        {
            Some(StreamError::Core(error)) => Err(to_python(py, error)),
            Some(StreamError::Python(raised)) => Err(raised.clone_ref(py)),
            None => Ok(()),
        }
    }
}

fn consumed(py: Python<'_>) -> PyErr {
    to_python(
        py,
        &Error::invalid("the stream was consumed already; ask the table for a new one"),
    )
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

/// Evaluates a typed expression tree over every batch of a stream: one column, `value`.
#[pyfunction]
pub(super) fn evaluate(tree: BoundTree, stream: &Bound<'_, PyAny>) -> PyResult<ArrowStream> {
    let bound = tree.0;
    let reader = import_stream(stream)?;
    let nullable = Field::new(
        "value",
        bound
            .data_type()
            .to_arrow(crate::protocol::schema::StringLayout::Plain),
        true,
    );
    let schema: SchemaRef = Arc::new(Schema::new(vec![nullable]));
    let out = Arc::clone(&schema);
    let batches = reader.map(move |batch| {
        let value = bound.evaluate(&batch?)?;
        let value = if value.data_type() == out.field(0).data_type() {
            value
        } else {
            cast(&value, out.field(0).data_type())?
        };
        Ok(RecordBatch::try_new(Arc::clone(&out), vec![value])?)
    });
    Ok(ArrowStream::new(
        BatchStream {
            schema,
            batches: Box::new(batches),
            progress: ProgressCounter::default(),
        },
        false,
    ))
}
