//! The folder of a table as a file system, for libraries that write Parquet files themselves
//! (`deltafast.filesystem`).

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::error::to_python;
use super::runtime::wait;
use crate::error::{Error, Result};
use crate::store::{self, ObjectRole, ObjectUpload, Store};

/// The files below a table's root.
#[pyclass(frozen, module = "deltafast._core")]
pub(super) struct Files {
    store: Arc<dyn Store>,
}

/// Objects with size and time (ms), and folders.
type FolderEntries = (Vec<(String, u64, i64)>, Vec<String>);

#[pymethods]
impl Files {
    /// The files below a path or URL.
    #[staticmethod]
    #[pyo3(signature = (uri, storage_options=None))]
    fn open(
        py: Python<'_>,
        uri: String,
        storage_options: Option<HashMap<String, String>>,
    ) -> PyResult<Self> {
        let store = wait(py, move |_| {
            store::open(&uri, &storage_options.unwrap_or_default())
        })?;
        Ok(Self { store })
    }

    /// Size and time (ms) of a file.
    fn head(&self, py: Python<'_>, path: String) -> PyResult<(u64, i64)> {
        let store = Arc::clone(&self.store);
        wait(py, move |_| {
            store.head(&path).map(|meta| (meta.size, meta.modified_ms))
        })
    }

    /// The entries of a folder.
    fn list(&self, py: Python<'_>, folder: String) -> PyResult<FolderEntries> {
        let store = Arc::clone(&self.store);
        wait(py, move |_| {
            let found = store.list_folder(&folder, &|_| true)?;
            Ok((
                found
                    .objects
                    .into_iter()
                    .map(|meta| (meta.path, meta.size, meta.modified_ms))
                    .collect(),
                found.folders,
            ))
        })
    }

    /// The bytes of a range, which must not exceed the file.
    fn read<'py>(
        &self,
        py: Python<'py>,
        path: String,
        start: u64,
        end: u64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let store = Arc::clone(&self.store);
        let bytes = wait(py, move |_| {
            let found = store
                .get_ranges(&path, Vec::from([Range { start, end }]))
                .wait()?;
            found
                .into_iter()
                .next()
                .ok_or_else(|| Error::internal("a read of one range gave none"))
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Begins a file, which replaces an existing one.
    fn begin(&self, py: Python<'_>, path: String) -> PyResult<FileUpload> {
        let store = Arc::clone(&self.store);
        let upload = wait(py, move |_| store.upload(&path, ObjectRole::Derived))?;
        Ok(FileUpload {
            upload: Mutex::new(Some(upload)),
        })
    }

    /// Deletes files; missing files count as deleted.
    fn delete(&self, py: Python<'_>, paths: Vec<String>) -> PyResult<()> {
        let store = Arc::clone(&self.store);
        wait(py, move |_| {
            store
                .delete_batch(&paths)?
                .into_iter()
                .next()
                .map_or(Ok(()), |(_, error)| Err(error))
        })
    }
}

/// A file that is being written; nothing remains if it is dropped before it is finished.
#[pyclass(frozen, module = "deltafast._core")]
pub(super) struct FileUpload {
    upload: Mutex<Option<Box<dyn ObjectUpload>>>,
}

impl FileUpload {
    fn take(&self, py: Python<'_>) -> PyResult<Box<dyn ObjectUpload>> {
        let taken = self
            .upload
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        taken.ok_or_else(|| {
            to_python(
                py,
                &Error::invalid("the file is closed, or another thread writes to it"),
            )
        })
    }
}

#[pymethods]
impl FileUpload {
    /// Appends bytes; after an error the file is discarded.
    fn write(&self, py: Python<'_>, data: Vec<u8>) -> PyResult<()> {
        let mut upload = self.take(py)?;
        let upload = wait(py, move |_| -> Result<_> {
            upload.write(&data)?;
            Ok(upload)
        })?;
        *self.upload.lock().unwrap_or_else(PoisonError::into_inner) = Some(upload);
        Ok(())
    }

    /// Makes the file visible.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        let upload = self.take(py)?;
        wait(py, move |_| upload.finish().wait().map(|_| ()))
    }
}
