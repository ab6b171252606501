//! RESTORE: makes the files of an older version live again.
//!
//! Commits a version with the files, schema and properties of the older version. State that only
//! increases is kept: the protocol (unless the caller allows a downgrade), row ids, column ids,
//! high-water marks of identity columns, and whether commits have in-commit timestamps.
//!
//! Protocol: "Requirements for Writers", "Row Tracking", "Column Mapping". Cost: the keys of both
//! versions' files, a request for each restored file.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_array::BooleanArray;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::commit::OptimisticTransaction;
use crate::commit::adds::{all_add_columns, batch_to_adds};
use crate::commit::finish::{CommitOptions, CommitResult};
use crate::dv::DvPath;
use crate::error::{CallOption, Error, ErrorCode, Result};
use crate::exec::{CancellationToken, RuntimeEnv, SystemEnv, map_all};
use crate::file_writer::bound_constraints::identity_number;
use crate::history::{self, TimestampSearch};
use crate::ops::maintain::commit_command::commit_command;
use crate::ops::maintain::data_files::deletion_vector_path;
use crate::parse::checkpoint::FileActionKind;
use crate::parse::{FileActionProjection, FileBatch};
use crate::protocol::action::{DomainMetadata, Metadata, Protocol};
use crate::protocol::commit_line::Action;
use crate::protocol::properties::{self, MAX_COLUMN_ID};
use crate::protocol::schema::{StructField, StructType};
use crate::protocol::{data_path, features};
use crate::reconcile::{FileActionState, SeenFileKeys};
use crate::snapshot::Snapshot;

const MARK: &str = "delta.identity.highWaterMark";
const STEP: &str = "delta.identity.step";
/// The only domain that is restored; others are kept.
const CLUSTERING: &str = "delta.clustering";
/// Properties of in-commit timestamps: they describe the log, not a version.
const TIMESTAMPS: [&str; 3] = [
    "delta.enableInCommitTimestamps",
    "delta.inCommitTimestampEnablementVersion",
    "delta.inCommitTimestampEnablementTimestamp",
];

/// Options of a restore: either `version` or `timestamp_ms`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RestoreOptions {
    /// The version to restore.
    pub version: Option<i64>,
    /// Restore the version at this timestamp, milliseconds since the epoch.
    pub timestamp_ms: Option<i64>,
    /// Leave out files that no longer exist.
    pub ignore_missing_files: bool,
    /// Restore the older version's protocol even if it is lower.
    pub protocol_downgrade_allowed: bool,
    /// How it is committed.
    pub commit_options: CommitOptions,
}

/// The result of a restore.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RestoreResult {
    /// The number of restored files.
    pub num_restored_file: u64,
    /// The number of removed files.
    pub num_removed_file: u64,
    /// The size of the restored files in bytes.
    pub restored_files_size: u64,
    /// The size of the removed files in bytes.
    pub removed_files_size: u64,
    /// The number of files of the table after the restore.
    pub num_of_files_after_restore: u64,
    /// The size of the table after the restore in bytes.
    pub table_size_after_restore: u64,
    /// The committed version, if any.
    #[serde(skip)]
    pub done: Option<CommitResult>,
}

/// Commits a version with the state of an older one.
///
/// # Errors
/// [`Error::NotFound`] for a version that cannot be read or a file that no longer exists;
/// [`Error::Invalid`] for a version that does not exist yet, and for a timestamp after the newest
/// version's; as [`OptimisticTransaction::commit`].
pub fn restore(
    snapshot: &Snapshot,
    options: &RestoreOptions,
    cancel: &CancellationToken,
) -> Result<RestoreResult> {
    let version = target_version(snapshot, options)?;
    let target = snapshot.at(Some(version))?;
    let live = file_keys(snapshot, &SeenFileKeys::default(), cancel)?;
    let wanted_live = file_keys(&target, &live, cancel)?;

    let mut out = RestoreResult::default();
    let mut tx = OptimisticTransaction::new(snapshot);
    tx.read_whole_table();
    let missing = add_restored_files(&mut tx, &target, &live, &mut out, cancel)?;
    if let Some(first) = missing.first().filter(|_| !options.ignore_missing_files) {
        return Err(Error::not_found(
            crate::error::NotFoundKind::Object,
            format!(
                "version {version} cannot be restored: {} of its files are gone, {first} for one; bring back what is left of it with {}",
                missing.len(),
                CallOption::IgnoreMissingFiles
            ),
        )
        .with_code(
            ErrorCode::RestoredFilesMissing,
            &[
                ("version", &version),
                ("missing", &missing.len()),
                ("file", first),
            ],
        ));
    }
    remove_newer_files(&mut tx, snapshot, &wanted_live, &mut out, cancel)?;
    let metadata = restored_metadata(snapshot, &target)?;
    let protocol = restored_protocol(snapshot, &target, options.protocol_downgrade_allowed)?;
    if protocol != *snapshot.protocol() {
        tx.push(Action::Protocol(protocol));
    }
    if metadata != *snapshot.metadata() {
        tx.push(Action::MetaData(Box::new(metadata)));
    }
    tx.extend(
        clustering_domain_actions(snapshot, &target)?
            .into_iter()
            .map(Action::DomainMetadata),
    );
    let parameters = json!({"version": options.version, "timestamp": options.timestamp_ms.map(format_timestamp)});
    let done = commit_command(
        tx,
        "RESTORE",
        parameters,
        commit_metrics(&out),
        &options.commit_options,
        cancel,
    )?;
    Ok(RestoreResult {
        done: Some(done),
        ..out
    })
}

/// The version that the options select, which is not after the newest one.
fn target_version(snapshot: &Snapshot, options: &RestoreOptions) -> Result<i64> {
    let version = match (options.version, options.timestamp_ms) {
        (Some(version), None) => version,
        (None, Some(time)) => version_at_timestamp(snapshot, time)?,
        _ => {
            return Err(
                Error::invalid("a restore needs a version or a timestamp, not both")
                    .with_code(ErrorCode::VersionAndTimestamp, &[]),
            );
        }
    };
    if version > snapshot.version() {
        let newest = snapshot.version();
        return Err(Error::invalid(format!(
            "version {version} cannot be restored: the newest one is {newest}"
        ))
        .with_code(
            ErrorCode::RestoreVersionTooNew,
            &[("version", &version), ("newest", &newest)],
        ));
    }
    Ok(version)
}

/// The version at a timestamp, which is not after the newest version's.
fn version_at_timestamp(snapshot: &Snapshot, time: i64) -> Result<i64> {
    // The times that time travel uses, which increase with versions even if modification times of
    // files do not.
    let found = history::version_timestamps(
        snapshot,
        &snapshot.log().list(0)?,
        snapshot.version(),
        snapshot.version(),
    )?;
    let newest = found
        .first()
        .map_or_else(|| snapshot.timestamp_ms(), |(_, time)| Ok(*time))?;
    if time > newest {
        return Err(Error::invalid(format!(
            "the table cannot be restored to {}: its newest version {} is of {}; give a timestamp that is not after it, or a version",
            format_timestamp(time),
            snapshot.version(),
            format_timestamp(newest)
        )));
    }
    history::version_at(snapshot, time, TimestampSearch::AtOrBefore)
}

/// Adds the files of the older version that the newest one lacks; returns the paths of those that
/// no longer exist, which are left out.
fn add_restored_files(
    tx: &mut OptimisticTransaction,
    target: &Snapshot,
    live: &SeenFileKeys,
    out: &mut RestoreResult,
    cancel: &CancellationToken,
) -> Result<Vec<String>> {
    let wanted = all_add_columns(target);
    let partition = wanted.partition.clone();
    let mut missing = Vec::new();
    for batch in target.files(FileActionKind::Adds, wanted, cancel)? {
        let batch = batch?;
        out.num_of_files_after_restore += batch.len() as u64;
        out.table_size_after_restore += total_size(&batch);
        let mut back = exclude_files(&batch, live)?;
        if back.is_empty() {
            continue;
        }
        let absent = absent_files(target, &back, cancel)?;
        if absent.contains(&true) {
            let gone = back.filter(&absent.iter().map(|gone| Some(*gone)).collect())?;
            missing.extend((0..gone.len()).map(|row| gone.path.value(row).to_owned()));
            out.num_of_files_after_restore -= gone.len() as u64;
            out.table_size_after_restore -= total_size(&gone);
            back = back.filter(&absent.iter().map(|gone| Some(!*gone)).collect())?;
        }
        out.num_restored_file += back.len() as u64;
        out.restored_files_size += total_size(&back);
        tx.extend(
            batch_to_adds(&back, &partition)?
                .into_iter()
                .map(Action::Add),
        );
    }
    Ok(missing)
}

/// Removes the files of the newest version that the older one lacks.
fn remove_newer_files(
    tx: &mut OptimisticTransaction,
    snapshot: &Snapshot,
    wanted_live: &SeenFileKeys,
    out: &mut RestoreResult,
    cancel: &CancellationToken,
) -> Result<()> {
    let now = SystemEnv.now_ms();
    let wanted = all_add_columns(snapshot);
    let partition = wanted.partition.clone();
    for batch in snapshot.files(FileActionKind::Adds, wanted, cancel)? {
        let going = exclude_files(&batch?, wanted_live)?;
        out.num_removed_file += going.len() as u64;
        out.removed_files_size += total_size(&going);
        tx.extend(
            batch_to_adds(&going, &partition)?
                .iter()
                .map(|add| Action::Remove(add.to_remove(now, true))),
        );
    }
    Ok(())
}

/// The older version's protocol if a downgrade is allowed, otherwise one that supports both
/// versions.
fn restored_protocol(
    now: &Snapshot,
    target: &Snapshot,
    downgrade_allowed: bool,
) -> Result<Protocol> {
    if downgrade_allowed {
        return Ok(target.protocol().clone());
    }
    let raised = features::with_features(now.protocol(), &features::supported(target.protocol()));
    features::with_versions(
        &raised,
        Some(target.protocol().min_reader_version),
        Some(target.protocol().min_writer_version),
    )
}

/// The metrics of the commit.
fn commit_metrics(out: &RestoreResult) -> Value {
    json!({
        "numRestoredFiles": out.num_restored_file,
        "restoredFilesSize": out.restored_files_size,
        "numRemovedFiles": out.num_removed_file,
        "removedFilesSize": out.removed_files_size,
        "numOfFilesAfterRestore": out.num_of_files_after_restore,
        "tableSizeAfterRestore": out.table_size_after_restore,
    })
}

fn format_timestamp(ms: i64) -> String {
    chrono::DateTime::from_timestamp_millis(ms).map_or_else(
        || ms.to_string(),
        |time| time.format("%Y-%m-%d %H:%M:%S%.3f").to_string(),
    )
}

/// The keys of a version's files, comparable with those of `like`.
fn file_keys(
    snapshot: &Snapshot,
    like: &SeenFileKeys,
    cancel: &CancellationToken,
) -> Result<SeenFileKeys> {
    let mut seen = SeenFileKeys::with_same_seeds(like);
    for batch in snapshot.files(
        FileActionKind::Adds,
        FileActionProjection::default(),
        cancel,
    )? {
        let batch = batch?;
        for row in 0..batch.len() {
            let key = seen.key(&batch, row)?;
            seen.record(key, 0, FileActionState::Added, true, batch.path.value(row))?;
        }
    }
    Ok(seen)
}

fn exclude_files(batch: &FileBatch, keys: &SeenFileKeys) -> Result<FileBatch> {
    let keep = (0..batch.len())
        .map(|row| keys.key(batch, row).map(|key| Some(!keys.contains(key))))
        .collect::<Result<BooleanArray>>()?;
    batch.filter(&keep)
}

fn total_size(batch: &FileBatch) -> u64 {
    batch
        .size
        .iter()
        .flatten()
        .filter_map(|size| u64::try_from(size).ok())
        .sum()
}

/// The files of a batch, or their deletion vectors, that do not exist.
fn absent_files(
    snapshot: &Snapshot,
    batch: &FileBatch,
    cancel: &CancellationToken,
) -> Result<Vec<bool>> {
    let rows: Vec<(String, Option<DvPath>)> = (0..batch.len())
        .map(|row| {
            Ok((
                batch.path.value(row).to_owned(),
                deletion_vector_path(batch, row)?,
            ))
        })
        .collect::<Result<_>>()?;
    let (stores, stop) = (Arc::clone(snapshot.stores()), cancel.clone());
    cancel.progress().expect(rows.len() as u64);
    map_all(rows, move |(path, vector)| {
        stop.check()?;
        stop.progress().advance(1);
        let is_absent = |path: &str| {
            let file = stores.file(path, None)?;
            match file.store.head(&file.path) {
                Ok(_) => Ok(false),
                Err(error) if error.is_not_found() => Ok(true),
                Err(error) => Err(error),
            }
        };
        Ok(is_absent(&data_path::canonical(&path)?)?
            || match vector {
                None => false,
                Some(DvPath::InTable(path)) => is_absent(&path)?,
                Some(DvPath::Given(path)) => is_absent(&data_path::canonical(&path)?)?,
            })
    })
}

/// The older version's metadata, with the state that only increases.
fn restored_metadata(now: &Snapshot, target: &Snapshot) -> Result<Metadata> {
    let (current, mut out) = (now.metadata(), target.metadata().clone());
    for key in TIMESTAMPS {
        match current.configuration.get(key) {
            Some(value) => _ = out.configuration.insert(key.to_owned(), value.clone()),
            None => _ = out.configuration.remove(key),
        }
    }
    let highest_id = properties::max_column_id(&current.configuration)?;
    if highest_id > properties::max_column_id(&out.configuration)? {
        out.configuration
            .insert(MAX_COLUMN_ID.to_owned(), highest_id.to_string());
    }
    let mut schema = StructType::parse(&out.schema_string)?;
    let mut changed = false;
    for field in &mut schema.fields {
        if let Some(mark) = now
            .schema()
            .field(&field.name)
            .map(|current| later_high_water_mark(field, current))
            .transpose()?
            .flatten()
        {
            field.metadata.insert(MARK.to_owned(), mark);
            changed = true;
        }
    }
    if changed {
        out.schema_string = schema.to_json().to_string();
    }
    Ok(out)
}

/// The current high-water mark of an identity column, if it is after the restored one.
fn later_high_water_mark(back: &StructField, now: &StructField) -> Result<Option<Value>> {
    let (Some(step), Some(mark)) = (identity_number(back, STEP)?, identity_number(now, MARK)?)
    else {
        return Ok(None);
    };
    let is_farther = match identity_number(back, MARK)? {
        None => true,
        Some(old) if step > 0 => mark > old,
        Some(old) => mark < old,
    };
    Ok(is_farther.then(|| mark.into()))
}

/// The actions for the domain of clustering columns.
fn clustering_domain_actions(now: &Snapshot, target: &Snapshot) -> Result<Vec<DomainMetadata>> {
    let of = |snapshot: &Snapshot| -> Result<BTreeMap<String, DomainMetadata>> {
        Ok(snapshot
            .non_file_actions()?
            .domains
            .iter()
            .filter(|(name, _)| name.as_str() == CLUSTERING)
            .map(|(name, domain)| (name.clone(), domain.clone()))
            .collect())
    };
    let (current, back) = (of(now)?, of(target)?);
    let names: BTreeSet<&String> = current.keys().chain(back.keys()).collect();
    Ok(names
        .into_iter()
        .filter_map(|name| match (current.get(name), back.get(name)) {
            (current, Some(back)) if current != Some(back) => Some(back.clone()),
            (Some(current), None) => Some(DomainMetadata {
                removed: true,
                ..current.clone()
            }),
            _ => None,
        })
        .collect())
}
