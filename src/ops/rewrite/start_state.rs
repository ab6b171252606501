//! The state that an operation starts from, a table or an empty path, and the modes of writing.

use std::sync::Arc;

use serde::Deserialize;

use crate::commit::OptimisticTransaction;
use crate::commit::finish::CommitResult;
use crate::commit::row_id_mark;
use crate::error::{ConflictKind, Error, ErrorCode, NotFoundKind, Result, ResultExt};
use crate::log::DeltaLog;
use crate::protocol::action::{Metadata, Protocol};
use crate::protocol::{evolution, features, properties};
use crate::snapshot::{ReadOptions, Snapshot};
use crate::store::{Store, TableStores};

/// The state that an operation starts from.
#[derive(Debug, Clone)]
pub enum TableOrPath {
    /// A version of a table.
    Table(Snapshot),
    /// A log without commits.
    EmptyPath(DeltaLog, ReadOptions),
}

impl TableOrPath {
    /// The newest version of the table, or an empty path.
    ///
    /// # Errors
    /// As [`Snapshot::open`], except for a missing table.
    pub fn open(log: DeltaLog, options: ReadOptions) -> Result<Self> {
        match Snapshot::open(log.clone(), None, options) {
            Ok(snapshot) => Ok(Self::Table(snapshot)),
            Err(Error::NotFound {
                kind: NotFoundKind::Table,
                ..
            }) => {
                log.check_location()?;
                Ok(Self::EmptyPath(log, options))
            }
            Err(error) => Err(error),
        }
    }

    /// The table's store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        self.stores().root()
    }

    /// The table's store, and those that its log may refer to.
    #[must_use]
    pub fn stores(&self) -> &Arc<TableStores> {
        match self {
            Self::Table(snapshot) => snapshot.stores(),
            Self::EmptyPath(log, _) => log.stores(),
        }
    }

    pub(in crate::ops) fn log(&self) -> &DeltaLog {
        match self {
            Self::Table(snapshot) => snapshot.log(),
            Self::EmptyPath(log, _) => log,
        }
    }

    pub(in crate::ops) fn transaction(&self) -> Result<OptimisticTransaction> {
        match self {
            Self::Table(snapshot) => Ok(OptimisticTransaction::new(snapshot)),
            Self::EmptyPath(log, options) => OptimisticTransaction::create(log.clone(), *options).map_err(|error| match error {
                // The same result as if the table had been created between this check and the
                // commit.
                Error::Invalid { .. } => Error::commit_failed(
                    ConflictKind::ProtocolChanged,
                    format!("another writer made a table at {} meanwhile; nothing was committed, run the operation again", self.store().url()),
                ),
                other => other,
            }),
        }
    }

    /// The result of an operation that would have created a table, if another writer created it
    /// first: the same as if the operation had started later.
    pub(in crate::ops) fn resolve_create_race(
        &self,
        error: Error,
        mode: SaveMode,
    ) -> Result<CommitResult> {
        let (Self::EmptyPath(log, options), Error::CommitFailed { .. }) = (self, &error) else {
            return Err(error);
        };
        match (mode, Self::open(log.clone(), *options)?) {
            (SaveMode::Ignore, Self::Table(snapshot)) => Ok(CommitResult::unchanged(&snapshot)),
            (SaveMode::Error, Self::Table(_)) => Err(self.table_exists_error()),
            _ => Err(error),
        }
    }

    pub(in crate::ops) fn table_exists_error(&self) -> Error {
        let path = self.store().url();
        Error::invalid(format!(
            "there is a table at {path} already; use the mode `append`, `overwrite` or `ignore`, in SQL IF NOT EXISTS or OR REPLACE"
        ))
        .with_code(ErrorCode::TableExists, &[("path", &path)])
    }
}

/// Refuses tables that this release cannot write, before anything is written.
pub(in crate::ops) fn check_writable(snapshot: &Snapshot) -> Result<()> {
    let protocol: &Protocol = snapshot.protocol();
    features::check_writable(protocol)
        .at_file(snapshot.stores().root().url())
        .at_version(snapshot.version())?;
    evolution::check_changes(protocol, snapshot.schema())?;
    snapshot.check_newest_commit()?;
    if protocol.has_writer_feature("rowTracking") {
        row_id_mark::check_row_ids_left(snapshot)?;
    }
    if protocol.has_writer_feature("catalogManaged") && snapshot.log().catalog().is_none() {
        return Err(features::committer_needed_error());
    }
    check_catalog(snapshot.log(), snapshot.metadata())
}

/// Refuses metadata with which the log's catalog takes no commits of this release, before anything
/// is written.
pub(in crate::ops) fn check_catalog(log: &DeltaLog, metadata: &Metadata) -> Result<()> {
    log.catalog()
        .map_or(Ok(()), |catalog| catalog.check_metadata(metadata))
}

/// Refuses tables whose rows cannot be changed or deleted.
pub(in crate::ops) fn check_changeable(snapshot: &Snapshot) -> Result<()> {
    check_writable(snapshot)?;
    properties::check_switches(&snapshot.metadata().configuration)?;
    if features::supported(snapshot.protocol()).contains("appendOnly")
        && snapshot.metadata().flag("delta.appendOnly")
    {
        return Err(properties::append_only_error());
    }
    Ok(())
}

/// What to do if the table exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SaveMode {
    /// Fail.
    #[default]
    Error,
    /// Append rows.
    Append,
    /// Replace all or some rows.
    Overwrite,
    /// Do nothing.
    Ignore,
}

impl SaveMode {
    /// The name in the log.
    pub(in crate::ops) fn name(self) -> &'static str {
        match self {
            Self::Error => "ErrorIfExists",
            Self::Append => "Append",
            Self::Overwrite => "Overwrite",
            Self::Ignore => "Ignore",
        }
    }
}

/// How the data may change the table's schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SchemaMode {
    /// Add columns and fields.
    Merge,
    /// Replace it.
    Overwrite,
}
