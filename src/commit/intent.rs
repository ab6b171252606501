//! What a transaction read, and what it wants to commit.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::expr::BoundExpr;
use crate::protocol::action::{DomainMetadata, Metadata, Protocol};
use crate::protocol::commit_line::Action;
use crate::protocol::data_path;

/// The domain of row tracking's high-water mark.
pub(super) const ROW_TRACKING: &str = "delta.rowTracking";

/// How much of other commits a transaction must not have missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsolationLevel {
    /// The history is as if transactions had run one after the other in the order of their
    /// versions.
    Serializable,
    /// The same, but for blind appends, which may come earlier or later than they are written.
    WriteSerializable,
    /// For commits that change no rows: only what they rewrite must still be there.
    Snapshot,
}

impl IsolationLevel {
    /// The name in the log.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Serializable => "Serializable",
            Self::WriteSerializable => "WriteSerializable",
            Self::Snapshot => "SnapshotIsolation",
        }
    }

    /// The level of a name, compared without case.
    ///
    /// # Errors
    /// [`Error::Invalid`] for other names.
    pub fn parse(name: &str) -> Result<Self> {
        [Self::Serializable, Self::WriteSerializable, Self::Snapshot]
            .into_iter()
            .find(|level| level.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| {
                Error::invalid(format!(
                    "`{name}` is no isolation level; known are Serializable and WriteSerializable"
                ))
            })
    }
}

/// What a transaction read of the table.
#[derive(Debug, Clone, Default)]
pub struct ReadSet {
    /// All of it, now and as it grows.
    pub whole_table: bool,
    /// The rows for which one of these is true, now and as they grow.
    pub predicates: Vec<BoundExpr>,
    /// These files, by canonical path. A file alone says nothing of files that are added later:
    /// for that a predicate stands.
    pub files: HashSet<String>,
    /// Versions of these applications.
    pub apps: BTreeSet<String>,
    /// Configurations of these domains.
    pub domains: BTreeSet<String>,
}

impl ReadSet {
    /// Whether anything of the table's rows was read.
    #[must_use]
    pub fn reads_rows(&self) -> bool {
        self.whole_table || !self.predicates.is_empty() || !self.files.is_empty()
    }
}

/// What was done, as `commitInfo` tells it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CommitOperation {
    /// `WRITE`, `DELETE`, ... (delta-spark's names).
    pub name: String,
    /// Its parameters.
    #[serde(default)]
    pub parameters: Map<String, Value>,
    /// What it did, in figures.
    #[serde(default)]
    pub metrics: Map<String, Value>,
    /// Text of the user's (`userMetadata`).
    #[serde(default)]
    pub user_metadata: Option<String>,
    /// Further keys of the user's for `commitInfo`.
    #[serde(default)]
    pub extra: Map<String, Value>,
    /// Whether the metadata only moves identity columns' high-water marks, so that others may go
    /// on beside it.
    #[serde(default)]
    pub identity_only: bool,
    /// Whether stable row ids of all copied rows were kept; if not said, a commit that removes
    /// nothing kept them.
    #[serde(default)]
    pub row_ids_preserved: Option<bool>,
}

impl CommitOperation {
    /// An operation without parameters.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// Reads it from JSON (`name`, `parameters`, `metrics`, `userMetadata`, `extra`,
    /// `identityOnly`, `rowIdsPreserved`).
    ///
    /// # Errors
    /// [`Error::Invalid`] says what is wrong.
    pub fn from_json(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|e| Error::invalid(format!("not an operation: {e}")))
    }

    pub(super) fn is_backfill(&self) -> bool {
        self.name == "ROW TRACKING BACKFILL"
    }

    pub(super) fn is_unbackfill(&self) -> bool {
        self.name == "ROW TRACKING UNBACKFILL"
    }

    pub(super) fn replaces_table(&self) -> bool {
        matches!(
            self.name.as_str(),
            "REPLACE TABLE"
                | "CREATE OR REPLACE TABLE"
                | "REPLACE TABLE AS SELECT"
                | "CREATE OR REPLACE TABLE AS SELECT"
        )
    }
}

/// A transaction that was found sound and is ready to be tried. Never changes: what depends on the
/// version is added when its text is made.
#[derive(Debug, Clone)]
pub struct PreparedTransaction {
    /// Unique; by it the commit is known again.
    pub txn_id: String,
    /// The version that was read; -1 for a table that is to be made.
    pub read_version: i64,
    /// What was read.
    pub reads: ReadSet,
    /// What is wanted, protocol and metadata left out.
    pub actions: Vec<Action>,
    /// The new protocol.
    pub protocol: Option<Protocol>,
    /// The new metadata.
    pub metadata: Option<Metadata>,
    /// What was done.
    pub operation: CommitOperation,
    /// The isolation level in force.
    pub isolation: IsolationLevel,
    /// Whether it only adds and read nothing.
    pub is_blind_append: bool,
    /// Canonical paths of the files that it removes.
    pub removed: HashSet<String>,
    /// Whether somebody looks at the table again before each attempt after the first, so that
    /// dropping a feature can go on.
    pub revalidates: bool,
}

impl PreparedTransaction {
    pub(super) fn domains(&self) -> impl Iterator<Item = &DomainMetadata> {
        self.actions.iter().filter_map(|action| match action {
            Action::DomainMetadata(domain) => Some(domain),
            _ => None,
        })
    }

    /// Whether other commits' files matter to it.
    pub(super) fn depends_on_files(&self) -> bool {
        self.reads.reads_rows()
            || !self.removed.is_empty()
            || self.operation.is_backfill()
            || self.operation.is_unbackfill()
    }
}

/// The canonical form of a path of ours.
pub(super) fn canonical(path: &str) -> Result<String> {
    data_path::canonical(path)
        .map(std::borrow::Cow::into_owned)
        .map_err(|e| Error::invalid(e.to_string()))
}

/// The high-water mark in a configuration of [`ROW_TRACKING`].
pub(super) fn parse_high_water_mark(configuration: &str) -> Option<i64> {
    let values: BTreeMap<String, Value> = serde_json::from_str(configuration).ok()?;
    values
        .get("rowIdHighWaterMark")
        .or_else(|| values.get("highWaterMark"))
        .and_then(Value::as_i64)
}

/// The domain that holds a high-water mark.
pub(super) fn row_id_domain(mark: i64) -> DomainMetadata {
    DomainMetadata {
        domain: ROW_TRACKING.to_owned(),
        configuration: format!("{{\"rowIdHighWaterMark\":{mark}}}"),
        removed: false,
    }
}
