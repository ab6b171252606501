//! The reads of a transaction, and the changes that it commits.

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

/// The isolation level of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsolationLevel {
    /// The history is equivalent to running the transactions one after the other in the order of
    /// their versions.
    Serializable,
    /// As `Serializable`, but blind appends may be ordered before or after their version.
    WriteSerializable,
    /// For commits that change no rows: only the files that they rewrite must still exist.
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

    /// Parses the name of a level, case-insensitively.
    ///
    /// # Errors
    /// [`Error::Invalid`] for other names.
    pub fn parse(name: &str) -> Result<Self> {
        [Self::Serializable, Self::WriteSerializable, Self::Snapshot]
            .into_iter()
            .find(|level| level.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| {
                Error::invalid(format!(
                    "`{name}` is not an isolation level; known are Serializable and WriteSerializable"
                ))
            })
    }
}

/// What a transaction read of the table.
#[derive(Debug, Clone, Default)]
pub struct ReadSet {
    /// All rows, including those added by concurrent commits.
    pub whole_table: bool,
    /// The rows for which one of these predicates is true, including those added by concurrent
    /// commits.
    pub predicates: Vec<BoundExpr>,
    /// These files, by canonical path. Files added by concurrent commits are only covered by
    /// predicates.
    pub files: HashSet<String>,
    /// The versions of these applications.
    pub apps: BTreeSet<String>,
    /// The configurations of these domains.
    pub domains: BTreeSet<String>,
}

impl ReadSet {
    /// Whether any rows of the table were read.
    #[must_use]
    pub fn reads_rows(&self) -> bool {
        self.whole_table || !self.predicates.is_empty() || !self.files.is_empty()
    }
}

/// The operation of a commit, as recorded in `commitInfo`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CommitOperation {
    /// `WRITE`, `DELETE`, ... (delta-spark's names).
    pub name: String,
    /// Its parameters.
    #[serde(default)]
    pub parameters: Map<String, Value>,
    /// Its metrics.
    #[serde(default)]
    pub metrics: Map<String, Value>,
    /// The user's `userMetadata`.
    #[serde(default)]
    pub user_metadata: Option<String>,
    /// Additional keys of the user for `commitInfo`.
    #[serde(default)]
    pub extra: Map<String, Value>,
    /// Whether the metadata only moves identity columns' high-water marks, which does not conflict
    /// with concurrent transactions.
    #[serde(default)]
    pub identity_only: bool,
    /// Whether the stable row ids of all copied rows were kept; if `None`, they were kept by a
    /// commit that removes nothing.
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

    /// An operation with parameters; those that are null are left out.
    pub fn with_parameters<K: Into<String>>(
        name: impl Into<String>,
        parameters: impl IntoIterator<Item = (K, Value)>,
    ) -> Self {
        Self {
            parameters: parameters
                .into_iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| (key.into(), value))
                .collect(),
            ..Self::new(name)
        }
    }

    /// Parses an operation from JSON (`name`, `parameters`, `metrics`, `userMetadata`, `extra`,
    /// `identityOnly`, `rowIdsPreserved`).
    ///
    /// # Errors
    /// [`Error::Invalid`] describes the error.
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

/// A transaction that was validated and can be tried. It is immutable: values that depend on the
/// version are added when the content of the commit is made.
#[derive(Debug, Clone)]
pub struct PreparedTransaction {
    /// A unique id that identifies the commit.
    pub txn_id: String,
    /// The version that was read; -1 for a new table.
    pub read_version: i64,
    /// What was read.
    pub reads: ReadSet,
    /// The actions to commit, without protocol and metadata.
    pub actions: Vec<Action>,
    /// The new protocol.
    pub protocol: Option<Protocol>,
    /// The new metadata.
    pub metadata: Option<Metadata>,
    /// The operation.
    pub operation: CommitOperation,
    /// The isolation level in force.
    pub isolation: IsolationLevel,
    /// Whether it only adds files and read nothing.
    pub is_blind_append: bool,
    /// Canonical paths of the files that it removes.
    pub removed: HashSet<String>,
    /// Whether its caller checks the table again before each attempt after the first, so that a
    /// feature can be dropped.
    pub revalidates: bool,
}

impl PreparedTransaction {
    pub(super) fn domains(&self) -> impl Iterator<Item = &DomainMetadata> {
        self.actions.iter().filter_map(|action| match action {
            Action::DomainMetadata(domain) => Some(domain),
            _ => None,
        })
    }

    /// Whether it can conflict with other commits' files.
    pub(super) fn depends_on_files(&self) -> bool {
        self.reads.reads_rows()
            || !self.removed.is_empty()
            || self.operation.is_backfill()
            || self.operation.is_unbackfill()
    }
}

/// The canonical form of a path of this transaction.
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
