//! Arrow across the boundary by the `PyCapsule` interface: streams, schemas and batches, zero-copy
//! both ways.

use std::ffi::CStr;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, to_ffi};
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{Array, RecordBatch, RecordBatchOptions, RecordBatchReader, StructArray};
use arrow_cast::cast;
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use super::error::to_python;
use super::runtime::ReadAheadIterator;
use crate::error::{Error, Result};
use crate::exec::ProgressCounter;
use crate::expr::BoundExpr;
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
    /// What is pulled ahead of a consumer in Python.
    ahead: Mutex<Option<ReadAheadIterator<RecordBatch>>>,
    progress: ProgressCounter,
    /// Whether the work behind the stream calls Python, as a store made there does.
    calls_python: bool,
    /// What ended the stream, for whoever pulls it through C and sees only text.
    failure: Arc<Mutex<Option<StreamError>>>,
}

/// What ended a stream.
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

/// Batches for a consumer behind the C interface; the typed error stays with the stream.
struct ExportedBatchReader {
    schema: SchemaRef,
    batches: GilAwareBatches,
    cast: bool,
    failure: Arc<Mutex<Option<StreamError>>>,
}

/// Who pulls the batches, which decides what may happen meanwhile.
enum GilAwareBatches {
    /// Anybody, perhaps with the GIL held: it is not touched.
    Anybody(BatchIterator),
    /// Anybody, but a store made in Python needs the GIL: it is taken from the consumer for as
    /// long.
    CallsPython(BatchIterator),
    /// A library that has let go of the GIL, called by our own code: signals are looked for.
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

/// The schema inside of a capsule that a consumer hands over.
fn requested(capsule: &Bound<'_, PyAny>) -> PyResult<Schema> {
    let pointer = capsule.cast::<PyCapsule>()?.pointer_checked(Some(SCHEMA))?;
    // SAFETY: the capsule has the name that the interface gives to a valid `ArrowSchema`, which it
    // owns and which lives as long as the capsule, that is longer than this borrow.
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
        // A request is a wish: only one of the same columns can be met.
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

    /// The stream for a library that lets go of the GIL while it pulls, as pyarrow does: Ctrl-C
    /// ends it, and `check` raises the handler's exception.
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

    /// Stops the work behind the stream.
    fn close(&self) {
        drop(self.take());
    }

    /// (files done, files in all)
    fn progress(&self) -> (u64, u64) {
        self.progress.get()
    }

    /// Raises the typed error with which the exported stream ended, if it did.
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
        // A request is a wish, and casting belongs to the stream.
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

/// A schema to be taken over by an Arrow library.
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
    stream.map(|batch| {
        batch.map_err(|e| Error::invalid(format!("the rows of the engine cannot be read: {e}")))
    })
}

/// Takes over the stream of anything that has `__arrow_c_stream__`.
pub(super) fn import_stream(object: &Bound<'_, PyAny>) -> PyResult<RecordBatchStreamReader> {
    let capsule = object.call_method0("__arrow_c_stream__")?;
    let pointer = capsule.cast::<PyCapsule>()?.pointer_checked(Some(STREAM))?;
    // SAFETY: the capsule has the name that the interface gives to a valid `ArrowArrayStream`;
    // `from_raw` moves it out and leaves a released one behind, which the capsule's destructor
    // then skips.
    let reader = unsafe {
        RecordBatchStreamReader::from_raw(pointer.cast::<FFI_ArrowArrayStream>().as_ptr())
    };
    reader.map_err(|e| {
        to_python(
            object.py(),
            &Error::invalid(format!("the stream cannot be read: {e}")),
        )
    })
}

/// Evaluates a typed expression tree over every batch of a stream: one column, `value`.
#[pyfunction]
pub(super) fn evaluate(
    py: Python<'_>,
    tree: &str,
    stream: &Bound<'_, PyAny>,
) -> PyResult<ArrowStream> {
    let bound = BoundExpr::from_json(tree).map_err(|e| to_python(py, &e))?;
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
