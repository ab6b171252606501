//! Stores implemented in Python, as described by `deltafast.stores.Store` and `WritableStore`; and
//! the check of any store.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use pyo3::exceptions::{PyFileNotFoundError, PyNotImplementedError, PyPermissionError};
use pyo3::prelude::*;

use super::error::to_python;
use super::guarded_call::GuardedCall;
use super::runtime::wait;
use super::values::{FromPython, IntoPython};
use crate::error::{Error, NotFoundKind, Result};
use crate::store::{
    self, CheckOptions, FolderListing, LONGEST_OBJECT, ObjectMeta, ObjectRole, ObjectUpload,
    PendingResult, PutOutcome, Store, StoreCheckReport, TablePath, check_length,
};

/// Checks whether commits to a store are safe; returns the report.
#[pyfunction]
#[pyo3(signature = (uri, options, storage_options=None, store=None))]
pub(super) fn check_store(
    py: Python<'_>,
    uri: String,
    options: FromPython<CheckOptions>,
    storage_options: Option<HashMap<String, String>>,
    store: Option<Py<PyAny>>,
) -> PyResult<IntoPython<StoreCheckReport>> {
    wait(py, move |cancel| {
        let store = match store {
            Some(object) => Arc::new(PyStore::new(object, &uri)) as Arc<dyn Store>,
            None => store::open(&uri, &storage_options.unwrap_or_default())?,
        };
        store::check(&store, &options.0, cancel)
    })
    .map(IntoPython)
}

/// An address; `~` is expanded if it is a local path.
#[pyfunction]
pub(super) fn expand_address(py: Python<'_>, address: &str) -> PyResult<String> {
    store::expand(address).map_err(|error| to_python(py, &error))
}

/// Whether an address is a URL.
#[pyfunction]
pub(super) fn is_url(address: &str) -> bool {
    store::is_url(address)
}

/// The schemes of URLs that the core reads and writes.
#[pyfunction]
pub(super) fn store_schemes() -> Vec<&'static str> {
    store::SCHEMES.to_vec()
}

/// Warnings about storage options.
#[pyfunction]
pub(super) fn option_warnings(options: HashMap<String, String>) -> Vec<String> {
    store::option_warnings(&options)
}

/// A Python object with `list_from`, `get_range` and `size`, and for writing the methods of
/// `WritableStore`.
#[derive(Debug)]
pub(super) struct PyStore {
    object: Py<PyAny>,
    url: String,
}

impl PyStore {
    pub(super) fn new(object: Py<PyAny>, uri: &str) -> Self {
        let mut url = uri.to_owned();
        if !url.ends_with('/') {
            url.push('/');
        }
        Self { object, url }
    }

    fn call<T>(
        &self,
        path: &str,
        work: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Result<T> {
        // Python may wait for a network, too.
        let answer = || {
            let answer = Python::try_attach(|py| {
                work(self.object.bind(py)).map_err(|error| {
                    if error.is_instance_of::<PyFileNotFoundError>(py) {
                        Error::not_found(NotFoundKind::Object, format!("no such object: {path}"))
                    } else if error.is_instance_of::<PyNotImplementedError>(py) {
                        Error::unsupported(format!(
                            "{} cannot be changed here: {}",
                            self.url,
                            error.value(py)
                        ))
                    } else {
                        Error::storage(
                            format!("the Python store failed at {path}: {}", error.value(py)),
                            !error.is_instance_of::<PyPermissionError>(py),
                        )
                    }
                })
            });
            // The interpreter ends.
            answer.unwrap_or(Err(Error::Cancelled))
        };
        crate::exec::blocking(answer)
    }

    fn range(&self, path: &str, range: Range<u64>) -> Result<Bytes> {
        let wanted = range.end.saturating_sub(range.start);
        let bytes: Vec<u8> = self.call(path, |store| {
            store
                .guarded_method("get_range", (path, range.start, range.end))?
                .extract::<Vec<u8>>()
        })?;
        if bytes.len() as u64 != wanted {
            return Err(Error::corrupt_data(format!(
                "the Python store gave {} bytes of {path} where {wanted} were asked for",
                bytes.len()
            )));
        }
        Ok(bytes.into())
    }

    /// Refuses an operation for which the store lacks a method, or which the store itself forbids.
    fn needs(&self, method: &str, what: &str) -> Result<()> {
        let (has, reason) = Python::attach(|py| {
            let object = self.object.bind(py);
            let reason: Option<String> = object
                .getattr("read_only")
                .ok()
                .and_then(|reason| reason.extract().ok());
            (object.hasattr(method).unwrap_or(false), reason)
        });
        match reason {
            Some(reason) => Err(Error::unsupported(format!(
                "{} can only be read through this store, not {what}: {reason}",
                self.url
            ))),
            None if has => Ok(()),
            None => Err(Error::unsupported(format!(
                "the Python store of {} has no method `{method}`, so it can only be read, not {what}",
                self.url
            ))),
        }
    }

    fn clone_ref(&self) -> Self {
        Python::attach(|py| Self {
            object: self.object.clone_ref(py),
            url: self.url.clone(),
        })
    }
}

impl Store for PyStore {
    fn url(&self) -> &str {
        &self.url
    }

    fn list_from(&self, dir: &str, after: &str) -> Result<Vec<ObjectMeta>> {
        let offset = (!after.is_empty()).then(|| {
            if dir.is_empty() {
                after.to_owned()
            } else {
                format!("{dir}/{after}")
            }
        });
        let listed = self.call(dir, |store| {
            let mut out = Vec::new();
            for item in store
                .guarded_method("list_from", (dir, offset.as_deref()))?
                .try_iter()?
            {
                let (path, size, modified_ms): (String, u64, i64) = item?.extract()?;
                out.push(ObjectMeta {
                    path,
                    size,
                    modified_ms,
                });
            }
            Ok(out)
        });
        let mut listed = match listed {
            Ok(listed) => listed,
            Err(error) if error.is_not_found() => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        // Entries that a store returns outside of the folder, or before the offset, are ignored.
        let folder = if dir.is_empty() {
            String::new()
        } else {
            format!("{dir}/")
        };
        listed.retain(|meta| {
            meta.path
                .strip_prefix(&folder)
                .is_some_and(|name| !name.is_empty() && !name.contains('/'))
        });
        listed.retain(|meta| offset.as_ref().is_none_or(|offset| meta.path > *offset));
        listed.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        listed.dedup_by(|a, b| a.path == b.path);
        Ok(listed)
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn head(&self, path: &str) -> Result<ObjectMeta> {
        let size = self.call(path, |store| {
            store.guarded_method("size", (path,))?.extract::<u64>()
        })?;
        Ok(ObjectMeta {
            path: path.to_owned(),
            size,
            modified_ms: 0,
        })
    }

    fn get(&self, path: &str) -> PendingResult<(Bytes, ObjectMeta)> {
        let (this, path) = (self.clone_ref(), path.to_owned());
        PendingResult::lazy(move || this.get_within(&path, LONGEST_OBJECT))
    }

    fn get_within(&self, path: &str, limit: u64) -> Result<(Bytes, ObjectMeta)> {
        let meta = self.head(path)?;
        check_length(path, meta.size, limit)?;
        Ok((self.range(path, 0..meta.size)?, meta))
    }

    fn list_folder(&self, dir: &str, take: &dyn Fn(&str) -> bool) -> Result<FolderListing> {
        self.needs("list_folder", "searched for files")?;
        let below = if dir.is_empty() {
            String::new()
        } else {
            format!("{dir}/")
        };
        let inside = |path: &str| {
            path.strip_prefix(&below)
                .filter(|name| !name.is_empty() && !name.contains('/'))
                .map(str::to_owned)
        };
        let listed = self.call(dir, |store| {
            let mut out = FolderListing::default();
            let (objects, folders): (Bound<'_, PyAny>, Bound<'_, PyAny>) =
                store.guarded_method("list_folder", (dir,))?.extract()?;
            for item in objects.try_iter()? {
                let (path, size, modified_ms): (String, u64, i64) = item?.extract()?;
                out.objects.push(ObjectMeta {
                    path,
                    size,
                    modified_ms,
                });
            }
            for item in folders.try_iter()? {
                out.folders.push(item?.extract()?);
            }
            Ok(out)
        });
        let mut listed = match listed {
            Ok(listed) => listed,
            Err(error) if error.is_not_found() => return Ok(FolderListing::default()),
            Err(error) => return Err(error),
        };
        listed
            .objects
            .retain(|meta| inside(&meta.path).is_some_and(|name| take(&name)));
        listed.folders.retain(|path| inside(path).is_some());
        Ok(listed)
    }

    fn put_if_absent(&self, path: &str, bytes: Bytes, _: ObjectRole) -> Result<PutOutcome> {
        self.needs("put_if_absent", "committed to")?;
        match self.call(path, |store| {
            store
                .guarded_method("put_if_absent", (path, bytes.as_ref()))?
                .extract::<bool>()
        }) {
            Ok(true) => Ok(PutOutcome::Created),
            Ok(false) => Ok(PutOutcome::Exists),
            // An exception does not say whether the object was created; after these a retry is
            // useless.
            Err(
                error @ (Error::Unsupported { .. }
                | Error::Storage {
                    retryable: false, ..
                }),
            ) => Ok(PutOutcome::Refused(error)),
            Err(error) if error.is_not_found() => Ok(PutOutcome::Refused(Error::storage(
                format!(
                    "cannot write {}{path}: the Python store says that there is no such folder or bucket",
                    self.url
                ),
                false,
            ))),
            Err(error) => Ok(PutOutcome::Unknown(error)),
        }
    }

    fn upload(&self, path: &str, role: ObjectRole) -> Result<Box<dyn ObjectUpload>> {
        if role == ObjectRole::Essential {
            // Checked before anything is written for a commit that will be refused.
            self.needs("put_if_absent", "written")?;
        }
        self.needs("create", "written")?;
        let file = self.call(path, |store| {
            Ok(store.guarded_method("create", (path,))?.unbind())
        })?;
        Ok(Box::new(PyUpload {
            store: self.clone_ref(),
            path: path.to_owned(),
            file: Some(file),
            buffer: Vec::new(),
            size: 0,
        }))
    }

    fn remove_folder(&self, dir: &str) -> Result<()> {
        if TablePath::new(dir).is_none() || self.needs("remove_folder", "tidied").is_err() {
            return Ok(());
        }
        match self.call(dir, |store| {
            store.guarded_method("remove_folder", (dir,)).map(|_| ())
        }) {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }

    fn delete_inside(&self, paths: &[TablePath]) -> Result<Vec<(String, Error)>> {
        self.needs("delete", "deleted from")?;
        let delete = |path: &str| match self.call(path, |store| {
            store.guarded_method("delete", (path,)).map(|_| ())
        }) {
            Err(error) if !error.is_not_found() => Some((path.to_owned(), error)),
            _ => None,
        };
        Ok(paths
            .iter()
            .map(TablePath::as_str)
            .filter_map(delete)
            .collect())
    }

    fn owns(&self, dir: &str) -> bool {
        let of_python = || {
            self.call(dir, |store| match store.getattr_opt("owns")? {
                Some(owns) => owns.guarded_call((dir,))?.extract::<bool>(),
                None => Ok(true),
            })
        };
        dir.is_empty() || TablePath::is_inside(dir) && of_python().unwrap_or(false)
    }

    fn get_ranges(&self, path: &str, ranges: Vec<Range<u64>>) -> PendingResult<Vec<Bytes>> {
        let (this, path) = (self.clone_ref(), path.to_owned());
        PendingResult::lazy(move || {
            ranges
                .into_iter()
                .map(|range| this.range(&path, range))
                .collect()
        })
    }
}

/// The maximum number of bytes that are passed to Python at once.
const PIECE: usize = 8 << 20;

/// An upload to a Python store.
struct PyUpload {
    store: PyStore,
    path: String,
    /// Present until the upload is finished.
    file: Option<Py<PyAny>>,
    buffer: Vec<u8>,
    size: u64,
}

impl PyUpload {
    fn send(&mut self) -> Result<()> {
        let Some(file) = self.file.as_ref() else {
            return Err(Error::internal("a file was written after its end"));
        };
        let bytes = std::mem::take(&mut self.buffer);
        self.store.call(&self.path, |store| {
            file.bind(store.py())
                .guarded_method("write", (bytes.as_slice(),))
                .map(|_| ())
        })
    }
}

impl ObjectUpload for PyUpload {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.size += bytes.len() as u64;
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= PIECE {
            self.send()
        } else {
            Ok(())
        }
    }

    fn finish(mut self: Box<Self>) -> PendingResult<ObjectMeta> {
        PendingResult::lazy(move || {
            if !self.buffer.is_empty() {
                self.send()?;
            }
            if let Some(file) = self.file.as_ref() {
                self.store.call(&self.path, |store| {
                    file.bind(store.py())
                        .guarded_method("close", ())
                        .map(|_| ())
                })?;
            }
            self.file = None;
            let now = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| since.as_millis());
            Ok(ObjectMeta {
                path: self.path.clone(),
                size: self.size,
                modified_ms: i64::try_from(now).unwrap_or(0),
            })
        })
    }
}

impl Drop for PyUpload {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            // A file that cannot be removed belongs to no table. During the shutdown of the process
            // Python is not available.
            Python::try_attach(|py| drop(file.bind(py).guarded_method("discard", ())));
        }
    }
}
