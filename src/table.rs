//! TABLE: a table's operations end to end: what a caller asks for -> data files, one version, and the upkeep due after it.
//!
//! An operation checks first whatever can be refused, writes files, commits. What it wrote is deleted again when it fails,
//! unless nobody knows whether the version was made. Once a version is made nothing can unmake it: what goes wrong in the
//! upkeep afterwards (checksum, checkpoint, cleanup) is a warning. The snapshot of the version is handed back, so a caller
//! goes on from there without reading the log again.
//!
//! Protocol: "Requirements for Writers" and the sections that the modules name. Cost: that of the files, one commit, and a
//! checkpoint now and then.

mod alter;
mod create;
mod files;
mod predicate;
mod write;

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

pub use alter::{Change, alter};
pub use create::{CreateOptions, create};
pub use write::{Mode, SchemaMode, Write, WriteOptions};

use crate::checkpoint::{self, Upkeep};
use crate::commit::{CommitOptions, Committed, Operation, Transaction};
use crate::error::{Conflict, Error, Missing, Result, ResultExt};
use crate::exec::Cancel;
use crate::log::Log;
use crate::protocol::action::{DomainMetadata, Protocol, Txn};
use crate::protocol::commit_line::Action;
use crate::protocol::features;
use crate::protocol::schema::StructType;
use crate::snapshot::{ReadOptions, Snapshot};
use crate::store::Store;

/// Where an operation works: on a version of a table, or where there is none.
#[derive(Debug, Clone)]
pub enum Place {
    /// A version that was read.
    Table(Snapshot),
    /// A log without commits.
    Nothing(Log, ReadOptions),
}

impl Place {
    /// The newest version of the table, or nothing.
    ///
    /// # Errors
    /// As [`Snapshot::open`], but for a missing table.
    pub fn open(log: Log, options: ReadOptions) -> Result<Self> {
        match Snapshot::open(log.clone(), None, options) {
            Ok(snapshot) => Ok(Self::Table(snapshot)),
            Err(Error::NotFound { kind: Missing::Table, .. }) => Ok(Self::Nothing(log, options)),
            Err(error) => Err(error),
        }
    }

    /// The table's store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        match self {
            Self::Table(snapshot) => snapshot.stores().root(),
            Self::Nothing(log, _) => log.stores().root(),
        }
    }

    fn transaction(&self) -> Result<Transaction> {
        match self {
            Self::Table(snapshot) => Ok(Transaction::new(snapshot)),
            Self::Nothing(log, options) => Transaction::create(log.clone(), *options).map_err(|error| match error {
                // The same as if it had come a moment later, between here and the commit.
                Error::Invalid { .. } => Error::commit_failed(
                    Conflict::ProtocolChanged,
                    format!("another writer made a table at {} meanwhile; nothing was committed, run the operation again", self.store().url()),
                ),
                other => other,
            }),
        }
    }

    /// What it comes to that another writer made the table that an operation wanted to make: what it would have come to a
    /// moment later.
    fn overtaken(&self, error: Error, mode: Mode) -> Result<Done> {
        let (Self::Nothing(log, options), Error::CommitFailed { .. }) = (self, &error) else { return Err(error) };
        match (mode, Self::open(log.clone(), *options)?) {
            (Mode::Ignore, Self::Table(snapshot)) => Ok(Done::unchanged(&snapshot)),
            (Mode::Error, Self::Table(_)) => Err(self.exists()),
            _ => Err(error),
        }
    }

    fn exists(&self) -> Error {
        Error::invalid(format!("there is a table at {} already; use the mode `append`, `overwrite` or `ignore`", self.store().url()))
    }
}

/// Refuses tables that this release cannot write, before anything is written.
fn check_writable(snapshot: &Snapshot) -> Result<()> {
    let protocol: &Protocol = snapshot.protocol();
    features::check_writable(protocol).at_file(snapshot.stores().root().url()).at_version(snapshot.version())?;
    if protocol.has_writer_feature("catalogManaged") {
        return Err(Error::unsupported_feature(
            "catalogManaged",
            "the table's commits are managed by a catalog; commit through it, or nobody else will see the commit",
        ));
    }
    Ok(())
}

/// How an operation is committed, and what follows it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Choices {
    /// Further keys for `commitInfo`; `userMetadata` is a text of the protocol's.
    pub custom_metadata: Map<String, Value>,
    /// How often to try again after another writer was first.
    pub max_commit_retries: Option<u32>,
    /// Versions of applications that are recorded with the commit.
    pub app_transactions: Vec<Txn>,
    /// Whether a checkpoint is made when it is due; yes, unless said otherwise.
    pub create_checkpoint: Option<bool>,
    /// Whether the log is cleaned up after a checkpoint; if not said, the table's `delta.enableExpiredLogCleanup` decides.
    pub cleanup_expired_logs: Option<bool>,
}

/// An operation that is done.
#[derive(Debug, Clone)]
pub struct Done {
    /// The version that was made; `None` where there was nothing to do.
    pub version: Option<i64>,
    /// The table as of that version; `None` when it could not be opened right after.
    pub snapshot: Option<Snapshot>,
    /// Whatever went wrong after the version was made.
    pub warnings: Vec<String>,
    /// The operation's figures, as in `commitInfo`.
    pub metrics: Map<String, Value>,
    /// How often the commit was tried.
    pub attempts: u32,
}

impl Done {
    /// Nothing was to be done to this version.
    #[must_use]
    pub fn unchanged(snapshot: &Snapshot) -> Self {
        Self { version: None, snapshot: Some(snapshot.clone()), warnings: Vec::new(), metrics: Map::new(), attempts: 0 }
    }
}

/// Commits a transaction and does the upkeep that is due.
///
/// # Errors
/// As [`Transaction::commit`].
pub fn commit(mut transaction: Transaction, mut operation: Operation, choices: &Choices, cancel: &Cancel) -> Result<Done> {
    for (key, value) in &choices.custom_metadata {
        match (key.as_str(), value) {
            ("userMetadata", Value::String(text)) => operation.user_metadata = Some(text.clone()),
            ("userMetadata", _) => return Err(Error::invalid("`userMetadata` in the custom commit metadata must be a text")),
            _ => _ = operation.extra.insert(key.clone(), value.clone()),
        }
    }
    let metrics = operation.metrics.clone();
    transaction.extend(choices.app_transactions.iter().cloned().map(Action::Txn));
    transaction.set_operation(operation);
    let usual = CommitOptions::default();
    let options = CommitOptions { max_retries: choices.max_commit_retries.unwrap_or(usual.max_retries), cancel: cancel.clone(), ..usual };
    let committed = transaction.commit(&options)?;
    Ok(upkeep(committed, metrics, choices, cancel))
}

/// What is due after a version was made. Nothing here can fail it.
fn upkeep(committed: Committed, metrics: Map<String, Value>, choices: &Choices, cancel: &Cancel) -> Done {
    let version = committed.version;
    let unread = |error: &Error| format!("version {version} is committed, but its table could not be read or published right after: {error}");
    let mut warnings: Vec<String> = committed.warnings.iter().map(unread).collect();
    if let Some(snapshot) = &committed.snapshot {
        let upkeep = Upkeep { create_checkpoint: choices.create_checkpoint, cleanup_expired_logs: choices.cleanup_expired_logs };
        warnings.extend(checkpoint::keep_up(snapshot, upkeep, cancel));
    }
    Done { version: Some(version), snapshot: committed.snapshot, warnings, metrics, attempts: committed.attempts }
}

/// The domain of clustering columns.
const CLUSTERING: &str = "delta.clustering";

/// The domain that names the columns by which a table is clustered.
fn clustering_domain(schema: &StructType, columns: &[String]) -> Result<DomainMetadata> {
    let path = |name: &String| {
        let mut fields = schema;
        let mut out = Vec::new();
        for part in name.split('.') {
            let field = fields.field(part).filter(|field| field.name == part);
            let field = field.ok_or_else(|| Error::invalid(format!("the clustering column `{name}` is not in the schema")).at_column(name))?;
            out.push(field.physical_name().to_owned());
            static EMPTY: StructType = StructType { fields: Vec::new() };
            fields = if let crate::protocol::schema::DataType::Struct(inner) = &field.data_type { inner } else { &EMPTY };
        }
        Ok(out)
    };
    let paths = columns.iter().map(path).collect::<Result<Vec<_>>>()?;
    let configuration = serde_json::json!({"clusteringColumns": paths, "domainName": CLUSTERING}).to_string();
    Ok(DomainMetadata { domain: CLUSTERING.to_owned(), configuration, removed: false })
}

/// A list as it stands in a commit's parameters: JSON in a text.
fn listed(names: &[String]) -> Value {
    Value::String(serde_json::json!(names).to_string())
}

/// A figure of a commit: a text, as delta-spark has them.
fn figure(number: impl ToString) -> Value {
    Value::String(number.to_string())
}

/// A random id.
fn unique() -> String {
    crate::exec::uuid()
}

fn now_ms() -> i64 {
    use crate::exec::{Env, SystemEnv};
    SystemEnv.now_ms()
}
