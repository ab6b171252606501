//! The end of every command: committing one version with the caller's options, and the maintenance
//! that is due after it.
//!
//! A version cannot be undone once it is committed, so failures of maintenance (checksum,
//! checkpoint, cleanup, compaction) are warnings. The snapshot of the version is returned, so that
//! a caller can continue without reading the log again.
//!
//! Protocol: "Requirements for Writers", "Checkpoints", "Version Checksum File". Cost: one commit,
//! and a checkpoint now and then.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::checkpoint::{self, CheckpointOptions, CleanupOptions};
use crate::commit::{CommitOperation, CommittedVersion, OptimisticTransaction, TransactionOptions};
use crate::error::{Error, Result};
use crate::exec::{CancellationToken, CommitRecord};
use crate::manifest;
use crate::protocol::action::SetTransaction;
use crate::protocol::commit_line::{Action, PartitionValues};
use crate::protocol::iceberg;
use crate::protocol::log_path;
use crate::snapshot::Snapshot;
use crate::store::WriterQueueLock;

/// How an operation is committed, and the maintenance after it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CommitOptions {
    /// Additional keys for `commitInfo`; `userMetadata` is a string in the protocol.
    pub custom_metadata: Map<String, Value>,
    /// The maximum number of retries after another writer committed first.
    pub max_commit_retries: Option<u32>,
    /// Application transactions to record with the commit.
    pub app_transactions: Vec<SetTransaction>,
    /// Whether a checkpoint is written when it is due; default: yes.
    pub create_checkpoint: Option<bool>,
    /// Whether the log is cleaned up after a checkpoint; default: the table's
    /// `delta.enableExpiredLogCleanup`.
    pub cleanup_expired_logs: Option<bool>,
    /// The number of versions whose commits are compacted into one file, if no checkpoint was
    /// written; default: never.
    pub log_compaction_interval: Option<u32>,
    /// Auto compaction after the version.
    pub auto_compact: AutoCompactOptions,
    /// The lock of this machine's writer queue, if the command holds it already.
    #[serde(skip)]
    pub turn: Option<Arc<WriterQueueLock>>,
}

/// When and how small files are compacted after a commit.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AutoCompactOptions {
    /// Whether small files are compacted; default: the table's `delta.autoOptimize.autoCompact`.
    pub enabled: Option<bool>,
    /// The number of small files in a partition from which they are compacted; default: 50.
    pub min_files: Option<usize>,
    /// The size of a new file in bytes; default: 128 MiB.
    pub max_file_size: Option<u64>,
    /// The size in bytes below which a file is small; default: half of `max_file_size`.
    pub min_file_size: Option<u64>,
}

/// The result of an operation.
#[derive(Debug, Clone)]
pub struct CommitResult {
    /// The version that was committed; `None` if there was nothing to do.
    pub version: Option<i64>,
    /// The snapshot of that version; `None` if it could not be opened afterwards.
    pub snapshot: Option<Snapshot>,
    /// Failures after the version was committed.
    pub warnings: Vec<String>,
    /// The operation's metrics, as in `commitInfo`.
    pub metrics: Map<String, Value>,
    /// The number of attempts to commit.
    pub attempts: u32,
}

impl CommitResult {
    /// The result of an operation that had nothing to do.
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

    /// The newest version after the commit, for another commit of the same command.
    ///
    /// # Errors
    /// As [`Snapshot::open`], if it could not be opened right after the commit.
    pub fn newest(&self, before: &Snapshot) -> Result<Snapshot> {
        self.snapshot.clone().map_or_else(|| before.at(None), Ok)
    }
}

impl CommitOptions {
    /// The options for another commit of the same command, which does not record application
    /// transactions again.
    #[must_use]
    pub fn without_transactions(&self) -> Self {
        Self {
            app_transactions: Vec::new(),
            ..self.clone()
        }
    }
}

/// Commits a transaction and performs the maintenance that is due.
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
            // Readers that are typed for the values that Spark writes accept no other types.
            ("userMetadata", _)
            | (
                "userId" | "userName",
                Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_),
            ) => {
                return Err(Error::invalid(format!(
                    "`{key}` in the custom commit metadata must be a text"
                )));
            }
            // The operation's own parameters have precedence; all values are strings, as Spark
            // reads them.
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
    let (metrics, name, start) = (
        operation.metrics.clone(),
        operation.name.clone(),
        Instant::now(),
    );
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
    // Warnings about the log of a table that the command opened itself.
    let opening_warnings = transaction
        .snapshot()
        .map(Snapshot::take_warnings)
        .unwrap_or_default();
    let log = transaction.log().clone();
    let changed = transaction.changed_partitions();
    let committed = transaction.commit(&options)?;
    let version = committed.version;
    let mut done = run_maintenance(committed, changed.as_ref(), metrics, commit_options, cancel);
    done.warnings.splice(0..0, opening_warnings);
    if !promised.is_empty() && (log.take_first_warning() || is_changed) {
        done.warnings.push(format!(
            "`{}` is set, but deltafast makes no metadata for {}: an engine that has a converter makes them with its next commit",
            iceberg::FORMATS,
            promised.join(" and ")
        ));
    }
    cancel.commits().add(CommitRecord {
        url: log.stores().root().url().to_owned(),
        operation: name,
        version,
        attempts: done.attempts,
        commit_ms: u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX),
        metrics: done.metrics.clone(),
    });
    Ok(done)
}

/// Checksums of tables whose checkpoint is larger than this are only computed from the previous
/// checksum: reading all files after every commit would cost more than it saves.
const CHECKPOINT_BYTES: u64 = 16 << 20;

/// Performs the maintenance that is due after a commit. No error here fails the commit.
fn run_maintenance(
    committed: CommittedVersion,
    changed: Option<&BTreeSet<PartitionValues>>,
    metrics: Map<String, Value>,
    commit_options: &CommitOptions,
    cancel: &CancellationToken,
) -> CommitResult {
    // The progress of the command is complete.
    let cancel = &cancel.without_progress();
    let mut warnings: Vec<String> = Vec::new();
    let version = committed.version;
    if let Some(snapshot) = committed
        .snapshot
        .as_ref()
        .filter(|s| manifest::is_enabled(s.metadata()))
        && let Err(error) = manifest::update(snapshot, changed, cancel)
    {
        // Reported for an interrupt, too: readers of manifests would continue to read removed
        // files.
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

/// Whether computing the checksum is cheap: the previous version has one, or the table is small.
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

/// A list as a value of a commit's parameters: JSON in a string.
#[must_use]
pub fn json_string_list(names: &[String]) -> Value {
    Value::String(serde_json::json!(names).to_string())
}

/// A metric of a commit: a string, as in delta-spark.
#[must_use]
pub fn metric_value(number: impl ToString) -> Value {
    Value::String(number.to_string())
}

/// A command's entry in `commitInfo`; parameters and metrics that are null are left out.
#[must_use]
pub fn operation(name: &str, parameters: Value, metrics: Value) -> CommitOperation {
    let entries = |value: Value| match value {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    let string = |value: Value| {
        if value.is_string() {
            value
        } else {
            metric_value(value)
        }
    };
    CommitOperation {
        metrics: entries(metrics)
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key, string(value)))
            .collect(),
        ..CommitOperation::with_parameters(name, entries(parameters))
    }
}
