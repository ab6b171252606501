//! Stores made in Python, as `deltafast.stores.Store` describes them.

use std::ops::Range;

use bytes::Bytes;
use pyo3::exceptions::{PyFileNotFoundError, PyPermissionError};
use pyo3::prelude::*;

use crate::error::{Error, Missing, Result};
use crate::store::{ObjectMeta, Pending, Put, Role, Store};

/// A Python object with `list_from`, `get_range` and `size`, and for writing `put_if_absent` and `delete`.
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

    fn call<T>(&self, path: &str, work: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> Result<T> {
        // Python may wait for a network, too.
        let answer = || {
            Python::attach(|py| {
                work(self.object.bind(py)).map_err(|error| {
                    if error.is_instance_of::<PyFileNotFoundError>(py) {
                        Error::not_found(Missing::Object, format!("no such object: {path}"))
                    } else {
                        Error::storage(format!("the Python store failed at {path}: {}", error.value(py)), !error.is_instance_of::<PyPermissionError>(py))
                    }
                })
            })
        };
        crate::exec::blocking(answer)
    }

    fn range(&self, path: &str, range: Range<u64>) -> Result<Bytes> {
        let wanted = range.end.saturating_sub(range.start);
        let bytes: Vec<u8> = self.call(path, |store| store.call_method1("get_range", (path, range.start, range.end))?.extract::<Vec<u8>>())?;
        if bytes.len() as u64 != wanted {
            return Err(Error::corrupt_data(format!("the Python store gave {} bytes of {path} where {wanted} were asked for", bytes.len())));
        }
        Ok(bytes.into())
    }

    fn needs(&self, method: &str, what: &str) -> Result<()> {
        let has = Python::attach(|py| self.object.bind(py).hasattr(method).unwrap_or(false));
        if has { Ok(()) } else { Err(Error::unsupported(format!("the Python store of {} has no method `{method}`, so it cannot be {what}", self.url))) }
    }

    fn clone_ref(&self) -> Self {
        Python::attach(|py| Self { object: self.object.clone_ref(py), url: self.url.clone() })
    }
}

impl Store for PyStore {
    fn url(&self) -> &str {
        &self.url
    }

    fn list_from(&self, dir: &str, after: &str) -> Result<Vec<ObjectMeta>> {
        let offset = (!after.is_empty()).then(|| if dir.is_empty() { after.to_owned() } else { format!("{dir}/{after}") });
        let listed = self.call(dir, |store| {
            let mut out = Vec::new();
            for item in store.call_method1("list_from", (dir, offset.as_deref()))?.try_iter()? {
                let (path, size, modified_ms): (String, u64, i64) = item?.extract()?;
                out.push(ObjectMeta { path, size, modified_ms });
            }
            Ok(out)
        });
        let mut listed = match listed {
            Ok(listed) => listed,
            Err(error) if error.is_not_found() => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        // What a store gives beyond the folder, or before the offset, is not relied upon.
        let folder = if dir.is_empty() { String::new() } else { format!("{dir}/") };
        listed.retain(|meta| meta.path.strip_prefix(&folder).is_some_and(|name| !name.is_empty() && !name.contains('/')));
        listed.retain(|meta| offset.as_ref().is_none_or(|offset| meta.path > *offset));
        listed.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        listed.dedup_by(|a, b| a.path == b.path);
        Ok(listed)
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn head(&self, path: &str) -> Result<ObjectMeta> {
        let size = self.call(path, |store| store.call_method1("size", (path,))?.extract::<u64>())?;
        Ok(ObjectMeta { path: path.to_owned(), size, modified_ms: 0 })
    }

    fn get(&self, path: &str) -> Pending<(Bytes, ObjectMeta)> {
        let (this, path) = (self.clone_ref(), path.to_owned());
        Pending::lazy(move || {
            let meta = this.head(&path)?;
            Ok((this.range(&path, 0..meta.size)?, meta))
        })
    }

    fn put_if_absent(&self, path: &str, bytes: Bytes, _: Role) -> Result<Put> {
        self.needs("put_if_absent", "committed to")?;
        // Whether anything was made before an exception, nobody knows.
        Ok(match self.call(path, |store| store.call_method1("put_if_absent", (path, bytes.as_ref()))?.extract::<bool>()) {
            Ok(true) => Put::Created,
            Ok(false) => Put::Exists,
            Err(error) => Put::Unknown(error),
        })
    }

    fn delete_batch(&self, paths: &[String]) -> Result<Vec<(String, Error)>> {
        self.needs("delete", "deleted from")?;
        let delete = |path: &String| match self.call(path, |store| store.call_method1("delete", (path,)).map(|_| ())) {
            Err(error) if !error.is_not_found() => Some((path.clone(), error)),
            _ => None,
        };
        Ok(paths.iter().filter_map(delete).collect())
    }

    fn get_ranges(&self, path: &str, ranges: Vec<Range<u64>>) -> Pending<Vec<Bytes>> {
        let (this, path) = (self.clone_ref(), path.to_owned());
        Pending::lazy(move || ranges.into_iter().map(|range| this.range(&path, range)).collect())
    }
}
