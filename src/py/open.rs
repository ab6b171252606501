//! Opening the log of a table with the options of Python.

use std::sync::Arc;

use serde::Deserialize;

use crate::error::Result;
use crate::log::{CatalogClient, DeltaLog, TailCommit};
use crate::protocol::calendar::TimeZoneSpec;
use crate::snapshot::ReadOptions;
use crate::store::{self, ExternalPaths, StorageOptions, Store, TableStores};

/// How a table is opened.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct OpenOptions {
    /// The time zone of timestamps without one, `UTC` or `Europe/Paris`.
    time_zone: Option<String>,
    /// The newest version that the catalog has ratified.
    pub(super) max_table_version: Option<i64>,
    /// Whether paths may lead out of the table's store, or the prefixes that they may have.
    allow_external_paths: Option<ExternalPathsOption>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum ExternalPathsOption {
    Any(bool),
    Prefixes(Vec<String>),
}

impl OpenOptions {
    pub(super) fn read_options(&self) -> Result<ReadOptions> {
        let zone = self.time_zone.as_deref().map(TimeZoneSpec::parse);
        Ok(ReadOptions {
            zone: zone.transpose()?.unwrap_or_default(),
            catalog: self.max_table_version.is_some(),
        })
    }

    fn external_paths(&self) -> ExternalPaths {
        match &self.allow_external_paths {
            None | Some(ExternalPathsOption::Any(false)) => ExternalPaths::Refused,
            Some(ExternalPathsOption::Any(true)) => ExternalPaths::Allowed,
            Some(ExternalPathsOption::Prefixes(prefixes)) => {
                ExternalPaths::Prefixes(prefixes.clone())
            }
        }
    }
}

/// The source of the newest versions of a table in addition to its log.
#[derive(Debug)]
pub(super) enum LogTailSource {
    Tail(Vec<TailCommit>),
    Catalog(Arc<dyn CatalogClient>),
}

impl Default for LogTailSource {
    fn default() -> Self {
        Self::Tail(Vec::new())
    }
}

pub(super) fn open_log(
    uri: &str,
    store: Option<Arc<dyn Store>>,
    storage: StorageOptions,
    options: &OpenOptions,
    newest: LogTailSource,
) -> Result<DeltaLog> {
    let root = match store {
        Some(store) => store,
        None => store::open(uri, &storage)?,
    };
    let stores = Arc::new(TableStores::new(root, storage, options.external_paths()));
    match newest {
        LogTailSource::Tail(tail) => DeltaLog::new(stores, tail),
        LogTailSource::Catalog(catalog) => Ok(DeltaLog::managed(stores, catalog)),
    }
}
