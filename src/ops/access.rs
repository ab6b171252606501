//! What an operation may do with what it finds: a table or an empty path, and which mode of writing.

use std::sync::Arc;

use serde::Deserialize;

use crate::commit::OptimisticTransaction;
use crate::commit::finish::CommitResult;
use crate::error::{ConflictKind, Error, NotFoundKind, Result, ResultExt};
use crate::log::DeltaLog;
use crate::protocol::action::Protocol;
use crate::protocol::{evolution, features};
use crate::snapshot::{ReadOptions, Snapshot};
use crate::store::Store;

/// Where an operation works: on a version of a table, or where there is none.
#[derive(Debug, Clone)]
pub enum TableOrPath {
    /// A version that was read.
    Table(Snapshot),
    /// A log without commits.
    EmptyPath(DeltaLog, ReadOptions),
}

impl TableOrPath {
    /// The newest version of the table, or nothing.
    ///
    /// # Errors
    /// As [`Snapshot::open`], but for a missing table.
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
        match self {
            Self::Table(snapshot) => snapshot.stores().root(),
            Self::EmptyPath(log, _) => log.stores().root(),
        }
    }

    pub(super) fn transaction(&self) -> Result<OptimisticTransaction> {
        match self {
            Self::Table(snapshot) => Ok(OptimisticTransaction::new(snapshot)),
            Self::EmptyPath(log, options) => OptimisticTransaction::create(log.clone(), *options).map_err(|error| match error {
                // The same as if it had come a moment later, between here and the commit.
                Error::Invalid { .. } => Error::commit_failed(
                    ConflictKind::ProtocolChanged,
                    format!("another writer made a table at {} meanwhile; nothing was committed, run the operation again", self.store().url()),
                ),
                other => other,
            }),
        }
    }

    /// What it comes to that another writer made the table that an operation wanted to make: what
    /// it would have come to a moment later.
    pub(super) fn resolve_create_race(&self, error: Error, mode: SaveMode) -> Result<CommitResult> {
        let (Self::EmptyPath(log, options), Error::CommitFailed { .. }) = (self, &error) else {
            return Err(error);
        };
        match (mode, Self::open(log.clone(), *options)?) {
            (SaveMode::Ignore, Self::Table(snapshot)) => Ok(CommitResult::unchanged(&snapshot)),
            (SaveMode::Error, Self::Table(_)) => Err(self.table_exists_error()),
            _ => Err(error),
        }
    }

    pub(super) fn table_exists_error(&self) -> Error {
        Error::invalid(format!(
            "there is a table at {} already; use the mode `append`, `overwrite` or `ignore`",
            self.store().url()
        ))
    }
}

/// Refuses tables that this release cannot write, before anything is written.
pub(super) fn check_writable(snapshot: &Snapshot) -> Result<()> {
    let protocol: &Protocol = snapshot.protocol();
    features::check_writable(protocol)
        .at_file(snapshot.stores().root().url())
        .at_version(snapshot.version())?;
    evolution::check_changes(protocol, snapshot.schema())?;
    if protocol.has_writer_feature("catalogManaged") && snapshot.log().catalog().is_none() {
        return Err(Error::unsupported_feature(
            "catalogManaged",
            "the table's commits are managed by a catalog; open it with a `committer` to commit through it, or nobody else will see the commit",
        ));
    }
    Ok(())
}

/// Refuses tables whose rows cannot be changed or deleted.
pub(super) fn check_changeable(snapshot: &Snapshot) -> Result<()> {
    check_writable(snapshot)?;
    if features::supported(snapshot.protocol()).contains("appendOnly")
        && snapshot.metadata().flag("delta.appendOnly")
    {
        return Err(Error::invalid(
            "the table is append-only (`delta.appendOnly`): rows can be added, not changed or deleted",
        ));
    }
    Ok(())
}

/// What to do where there is a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SaveMode {
    /// Refuse.
    #[default]
    Error,
    /// Add to it.
    Append,
    /// Replace its rows, all of them or some.
    Overwrite,
    /// Do nothing.
    Ignore,
}

impl SaveMode {
    /// The name in the log.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Error => "ErrorIfExists",
            Self::Append => "Append",
            Self::Overwrite => "Overwrite",
            Self::Ignore => "Ignore",
        }
    }
}

/// What data may do to the table's schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SchemaMode {
    /// Add columns and fields.
    Merge,
    /// Take its place.
    Overwrite,
}
