//! Conversion of errors to the exceptions of `deltafast.exceptions`.

use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{ConflictKind, CorruptionKind, Error, NotFoundKind};

fn class(error: &Error) -> &'static str {
    match error {
        Error::NotFound {
            kind: NotFoundKind::Table,
            ..
        } => "TableNotFoundError",
        Error::NotFound {
            kind: NotFoundKind::Version,
            ..
        } => "VersionNotFoundError",
        Error::NotFound { .. } => "DataFileNotFoundError",
        Error::Corrupt {
            kind: CorruptionKind::Log,
            ..
        } => "CorruptLogError",
        Error::Corrupt {
            kind: CorruptionKind::Data,
            ..
        } => "CorruptDataError",
        Error::Unsupported { .. } => "DeltaProtocolError",
        Error::Invalid { .. } => "InvalidArgumentError",
        Error::SchemaMismatch { .. } => "SchemaMismatchError",
        Error::ConstraintViolated { .. } => "ConstraintViolatedError",
        Error::NotRecorded { .. } => "ChangeDataNotRecordedError",
        Error::CommitFailed { conflict, .. } => match conflict {
            ConflictKind::ConcurrentAppend => "ConcurrentAppendError",
            ConflictKind::ConcurrentDeleteRead => "ConcurrentDeleteReadError",
            ConflictKind::ConcurrentDeleteDelete => "ConcurrentDeleteDeleteError",
            ConflictKind::ConcurrentTransaction => "ConcurrentTransactionError",
            ConflictKind::MetadataChanged => "MetadataChangedError",
            ConflictKind::ProtocolChanged => "ProtocolChangedError",
            ConflictKind::ConcurrentWrite => "ConcurrentWriteError",
        },
        Error::CommitUnknown { .. } => "CommitUnknownError",
        Error::Storage { .. } => "StorageError",
        Error::Resource { .. } => "ResourceError",
        Error::Cancelled | Error::Internal { .. } => "InternalError",
    }
}

/// The exception for an error, with its location as attributes.
pub(super) fn to_python(py: Python<'_>, error: &Error) -> PyErr {
    if matches!(error, Error::Cancelled) {
        return PyKeyboardInterrupt::new_err("cancelled");
    }
    let make = || -> PyResult<PyErr> {
        let attributes = PyDict::new(py);
        if let Some(place) = error.context() {
            attributes.set_item("file", place.file.as_deref().map(crate::error::shown))?;
            attributes.set_item("version", place.version)?;
            attributes.set_item("line", place.line)?;
            attributes.set_item("column", place.column.as_deref())?;
        }
        attributes.set_item("code", error.code().name())?;
        let parameters = PyDict::new(py);
        for (name, value) in error.parameters() {
            parameters.set_item(name, value.as_ref())?;
        }
        attributes.set_item("parameters", parameters)?;
        if let Error::Unsupported { feature, .. } = error {
            attributes.set_item("feature", feature.as_deref())?;
        }
        if let Error::ConstraintViolated { constraint, .. } = error {
            attributes.set_item("constraint", constraint)?;
        }
        if let Error::Resource { resource, .. } = error {
            attributes.set_item("resource", resource.name())?;
        }
        let class = py.import("deltafast.exceptions")?.getattr(class(error))?;
        Ok(PyErr::from_value(
            class.call((error.marked_message(),), Some(&attributes))?,
        ))
    };
    make().unwrap_or_else(|failure| {
        PyRuntimeError::new_err(format!(
            "{error} (and its exception could not be made: {failure})"
        ))
    })
}
