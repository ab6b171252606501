//! COMMAND: how every command ends: one version, made as the caller chose, and the upkeep due after
//! it.
//!
//! Once a version is made nothing can unmake it: what goes wrong in the upkeep (checksum,
//! checkpoint, cleanup, compaction) is a warning. The snapshot of the version is handed back, so a
//! caller goes on from there without reading the log again.
//!
//! Protocol: "Requirements for Writers", "Checkpoints", "Version Checksum File". Cost: one commit,
//! and a checkpoint now and then.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::checkpoint::{self, CheckpointOptions, CleanupOptions};
use crate::commit::{CommitOperation, CommittedVersion, OptimisticTransaction, TransactionOptions};
use crate::error::{Error, Result};
use crate::exec::CancellationToken;
use crate::manifest;
use crate::protocol::action::SetTransaction;
use crate::protocol::commit_line::{Action, PartitionValues};
use crate::protocol::iceberg;
use crate::protocol::log_path;
use crate::snapshot::Snapshot;
use crate::store::WriterQueueLock;

/// How an operation is committed, and what follows it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CommitOptions {
    /// Further keys for `commitInfo`; `userMetadata` is a text of the protocol's.
    pub custom_metadata: Map<String, Value>,
    /// How often to try again after another writer was first.
    pub max_commit_retries: Option<u32>,
    /// Versions of applications that are recorded with the commit.
    pub app_transactions: Vec<SetTransaction>,
    /// Whether a checkpoint is made when it is due; yes, unless said otherwise.
    pub create_checkpoint: Option<bool>,
    /// Whether the log is cleaned up after a checkpoint; if not said, the table's
    /// `delta.enableExpiredLogCleanup` decides.
    pub cleanup_expired_logs: Option<bool>,
    /// After how many versions the commits since are compacted into one file, where no checkpoint
    /// was made; never, unless said.
    pub log_compaction_interval: Option<u32>,
    /// The turn among this machine's writers, where the command has it already.
    #[serde(skip)]
    pub turn: Option<Arc<WriterQueueLock>>,
}

/// An operation that is done.
#[derive(Debug, Clone)]
pub struct CommitResult {
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

impl CommitResult {
    /// Nothing was to be done to this version.
    #[must_use]
    pub fn unchanged(snapshot: &Snapshot) -> Self {
        Self {
            version: None,
            snapshot: Some(snapshot.clone()),
            warnings: Vec::new(),
            metrics: Map::new(),
            attempts: 0,
        }
    }

    /// The newest version after it, for a further commit of the same command.
    ///
    /// # Errors
    /// What opening it meets, where it could not be opened right after it was made.
    pub fn newest(&self, before: &Snapshot) -> Result<Snapshot> {
        self.snapshot.clone().map_or_else(|| before.at(None), Ok)
    }
}

impl CommitOptions {
    /// The same for a further commit of the same command, which records no application a second
    /// time.
    #[must_use]
    pub fn without_transactions(&self) -> Self {
        Self {
            app_transactions: Vec::new(),
            ..self.clone()
        }
    }
}

/// Commits a transaction and does the upkeep that is due.
///
/// # Errors
/// As [`OptimisticTransaction::commit`].
pub fn commit(
    mut transaction: OptimisticTransaction,
    mut operation: CommitOperation,
    commit_options: &CommitOptions,
    cancel: &CancellationToken,
) -> Result<CommitResult> {
    for (key, value) in &commit_options.custom_metadata {
        match (key.as_str(), value) {
            ("userMetadata", Value::String(text)) => operation.user_metadata = Some(text.clone()),
            // Readers with types for what Spark writes read no others.
            ("userMetadata", _)
            | (
                "userId" | "userName",
                Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_),
            ) => {
                return Err(Error::invalid(format!(
                    "`{key}` in the custom commit metadata must be a text"
                )));
            }
            // The operation's own parameters stay what they are; all are strings, as Spark reads
            // them.
            ("operationParameters", Value::Object(given)) => {
                for (name, value) in given {
                    let string = value
                        .as_str()
                        .map_or_else(|| value.to_string(), str::to_owned);
                    operation
                        .parameters
                        .entry(name.clone())
                        .or_insert(Value::String(string));
                }
            }
            _ => _ = operation.extra.insert(key.clone(), value.clone()),
        }
    }
    let metrics = operation.metrics.clone();
    transaction.extend(
        commit_options
            .app_transactions
            .iter()
            .cloned()
            .map(Action::Txn),
    );
    transaction.set_operation(operation);
    let usual = TransactionOptions::default();
    let options = TransactionOptions {
        max_retries: commit_options
            .max_commit_retries
            .unwrap_or(usual.max_retries),
        cancel: cancel.clone(),
        writer_queue_lock: commit_options.turn.clone(),
        ..usual
    };
    let old = transaction
        .snapshot()
        .map(|snapshot| iceberg::formats(snapshot.metadata()))
        .unwrap_or_default();
    let promised = transaction
        .metadata()
        .map_or_else(|| old.clone(), iceberg::formats);
    let is_changed = transaction.metadata().is_some() && promised != old;
    let log = transaction.log().clone();
    let changed = transaction.changed_partitions();
    let committed = transaction.commit(&options)?;
    let mut done = run_maintenance(committed, changed.as_ref(), metrics, commit_options, cancel);
    if !promised.is_empty() && (log.take_first_warning() || is_changed) {
        done.warnings.push(format!(
            "`{}` is set, but deltafast makes no metadata for {}: an engine that has a converter makes them with its next commit",
            iceberg::FORMATS,
            promised.join(" and ")
        ));
    }
    Ok(done)
}

/// Checksums of tables whose checkpoint is larger than this are only made from the one before:
/// reading all files after every commit would cost more than it gives.
const CHECKPOINT_BYTES: u64 = 16 << 20;

/// What is due after a version was made. Nothing here can fail it.
fn run_maintenance(
    committed: CommittedVersion,
    changed: Option<&BTreeSet<PartitionValues>>,
    metrics: Map<String, Value>,
    commit_options: &CommitOptions,
    cancel: &CancellationToken,
) -> CommitResult {
    // What the command counts is done.
    let cancel = &cancel.without_progress();
    let mut warnings: Vec<String> = Vec::new();
    let version = committed.version;
    if let Some(snapshot) = committed
        .snapshot
        .as_ref()
        .filter(|s| manifest::is_enabled(s.metadata()))
        && let Err(error) = manifest::update(snapshot, changed, cancel)
    {
        // Reported for an interrupt, too: readers of manifests would keep reading removed files.
        warnings.push(format!(
            "version {version} is committed, but its symlink manifests are out of date; write them by \
             `generate()`: {error}"
        ));
    }
    let mut note = |what: &str, error: &Error| {
        if !matches!(error, Error::Cancelled) {
            warnings.push(format!(
                "version {version} is committed, but {what}: {error}"
            ));
        }
    };
    for error in &committed.warnings {
        note(
            "its table could not be read or published right after",
            error,
        );
    }
    if let Some(snapshot) = &committed.snapshot {
        let due = commit_options.create_checkpoint.unwrap_or(true)
            && checkpoint::is_due(snapshot)
                .map_err(|e| note("whether a checkpoint is due is unknown", &e))
                .unwrap_or(false);
        if due || has_short_checksum(snapshot) {
            _ = checkpoint::write_checksum_after_commit(snapshot, cancel)
                .map_err(|e| note("its checksum could not be written", &e));
        }
        if due {
            match checkpoint::write(snapshot, &CheckpointOptions::default(), cancel) {
                Ok(_) => {
                    _ = clean_up_log(snapshot, commit_options, cancel)
                        .map_err(|e| note("its log could not be cleaned up", &e));
                }
                Err(error) => note("its checkpoint could not be written", &error),
            }
        } else if let Some(first) = commit_options
            .log_compaction_interval
            .and_then(|interval| compacted_from(version, interval))
        {
            _ = checkpoint::compact(snapshot, first, version, cancel)
                .map_err(|e| note("its log could not be compacted", &e));
        }
    }
    CommitResult {
        version: Some(version),
        snapshot: committed.snapshot,
        warnings,
        metrics,
        attempts: committed.attempts,
    }
}

/// The first version of the compaction that is due after `version`.
fn compacted_from(version: i64, interval: u32) -> Option<i64> {
    let interval = i64::from(interval);
    (interval > 1 && (version + 1) % interval == 0).then(|| version + 1 - interval)
}

/// Whether making the checksum costs little: there is one of the version before, or not much of a
/// table.
fn has_short_checksum(snapshot: &Snapshot) -> bool {
    let segment = snapshot.segment();
    let bytes: u64 = segment
        .checkpoint
        .iter()
        .flat_map(|checkpoint| &checkpoint.files)
        .map(|file| file.size.unwrap_or(0))
        .sum();
    bytes <= CHECKPOINT_BYTES
        || snapshot
            .stores()
            .root()
            .head(&log_path::checksum(snapshot.version() - 1))
            .is_ok()
}

fn clean_up_log(
    snapshot: &Snapshot,
    commit_options: &CommitOptions,
    cancel: &CancellationToken,
) -> Result<()> {
    let options = CleanupOptions {
        automatic: commit_options.cleanup_expired_logs.is_none(),
        ..CleanupOptions::default()
    };
    if commit_options.cleanup_expired_logs != Some(false) {
        checkpoint::cleanup(snapshot, &options, cancel)?;
    }
    Ok(())
}

/// A list as it stands in a commit's parameters: JSON in a text.
#[must_use]
pub fn json_string_list(names: &[String]) -> Value {
    Value::String(serde_json::json!(names).to_string())
}

/// A figure of a commit: a text, as delta-spark has them.
#[must_use]
pub fn metric_value(number: impl ToString) -> Value {
    Value::String(number.to_string())
}

/// A command's entry in `commitInfo`: parameters and figures that are null are left out.
#[must_use]
pub fn operation(name: &str, parameters: Value, metrics: Value) -> CommitOperation {
    let present = |value: Value| match value {
        Value::Object(map) => map
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .collect(),
        _ => Map::new(),
    };
    let text = |value: Value| {
        if value.is_string() {
            value
        } else {
            metric_value(value)
        }
    };
    CommitOperation {
        parameters: present(parameters),
        metrics: present(metrics)
            .into_iter()
            .map(|(key, value)| (key, text(value)))
            .collect(),
        ..CommitOperation::new(name)
    }
}
