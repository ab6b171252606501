//! Committers implemented in Python, as described by `deltafast.catalog.Committer`.

use std::sync::Arc;

use bytes::Bytes;
use pyo3::exceptions::{PyNotImplementedError, PyPermissionError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::guarded_call::GuardedCall;
use crate::error::{Error, Result};
use crate::log::{CatalogClient, LogTail, MaintenanceOperation, TailCommit};
use crate::protocol::action::Metadata;
use crate::store::PutOutcome;

/// A Python object with `log_tail`, `ratify` and `published`.
#[derive(Debug)]
pub(super) struct PyCatalog {
    object: Py<PyAny>,
}

impl PyCatalog {
    pub(super) fn wrap(object: Option<Py<PyAny>>) -> Option<Arc<dyn CatalogClient>> {
        object.map(|object| Arc::new(Self { object }) as Arc<dyn CatalogClient>)
    }

    fn call<T>(
        &self,
        method: &str,
        work: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Result<T> {
        // Python may wait for a network.
        let answer = || {
            let answer = Python::try_attach(|py| {
                work(self.object.bind(py)).map_err(|error| {
                    let kind = error
                        .get_type(py)
                        .name()
                        .map_or_else(|_| "an exception".to_owned(), |name| name.to_string());
                    let said = error.value(py).to_string();
                    let what = format!(
                        "`{method}` of the committer failed with {kind}{}{said}",
                        if said.is_empty() { "" } else { ": " }
                    );
                    if error.is_instance_of::<PyNotImplementedError>(py) {
                        Error::unsupported(what)
                    } else {
                        Error::storage(what, !error.is_instance_of::<PyPermissionError>(py))
                    }
                })
            });
            // The interpreter ends.
            answer.unwrap_or(Err(Error::Cancelled))
        };
        crate::exec::blocking(answer)
    }
}

impl CatalogClient for PyCatalog {
    fn tail(&self) -> Result<LogTail> {
        self.call("log_tail", |committer| {
            let (latest, commits): (Option<i64>, Bound<'_, PyAny>) =
                committer.guarded_method("log_tail", ())?.extract()?;
            let mut tail = LogTail {
                latest,
                commits: Vec::new(),
            };
            for commit in commits.try_iter()? {
                let (version, path, size): (i64, String, Option<u64>) = commit?.extract()?;
                tail.commits.push(TailCommit {
                    version,
                    path,
                    size,
                });
            }
            tail.commits.sort_by_key(|commit| commit.version);
            Ok(tail)
        })
    }

    fn ratify(&self, commit: &TailCommit, text: &Bytes) -> Result<PutOutcome> {
        let ratified = self.call("ratify", |committer| {
            let py = committer.py();
            let staged = py
                .import("deltafast.catalog")?
                .getattr("StagedCommit")?
                .guarded_call((commit.version, commit.path.as_str(), commit.size))?;
            committer
                .guarded_method("ratify", (staged, PyBytes::new(py, text)))?
                .extract::<bool>()
        });
        match ratified {
            Ok(true) => Ok(PutOutcome::Created),
            Ok(false) => Ok(PutOutcome::Exists),
            // An exception does not say whether the commit was ratified; after these a retry is
            // useless.
            Err(
                error @ (Error::Unsupported { .. }
                | Error::Storage {
                    retryable: false, ..
                }),
            ) => Ok(PutOutcome::Refused(error)),
            Err(error) => Ok(PutOutcome::Unknown(error)),
        }
    }

    fn published(&self, version: i64) -> Result<()> {
        self.call("published", |committer| {
            committer
                .guarded_method("published", (version,))
                .map(|_| ())
        })
    }

    fn permits(&self, work: MaintenanceOperation) -> Result<bool> {
        self.call("permits", |committer| {
            match committer.getattr_opt("permits")? {
                Some(permitted) => permitted.contains(work.name()),
                None => Ok(false),
            }
        })
    }

    fn check_metadata(&self, metadata: &Metadata) -> Result<()> {
        self.call("check_properties", |committer| {
            match committer.getattr_opt("check_properties")? {
                Some(check) => check.call1((metadata.configuration.clone(),)).map(|_| ()),
                None => Ok(()),
            }
        })
    }
}
