//! Row id backfill: assigns row ids to existing files before row tracking is enabled, and removes
//! them before the feature is dropped.
//!
//! A file is added again unchanged, except that it has row ids or lacks them. Concurrent appends do
//! not conflict; they assign row ids themselves once the feature is supported. Files that another
//! writer removes in the meantime are left out.
//!
//! Protocol: "Row Tracking", "Writer Requirements for Row Tracking". Operations and parameters are
//! those of delta-spark. Cost: one pass over the live files' actions per batch of files; a footer
//! for each file whose statistics lack the number of rows.

use std::cell::Cell;

use arrow_array::{Array, BooleanArray};
use serde_json::json;

use crate::commit::adds::matching_live_adds;
use crate::commit::finish::CommitOptions;
use crate::commit::{CommitOperation, OptimisticTransaction};
use crate::error::{Error, Result};
use crate::exec::CancellationToken;
use crate::ops::alter::feature_usage;
use crate::ops::alter::multi_commit::MultiCommitCommand;
use crate::ops::rewrite::row_deletion;
use crate::parse::{FileBatch, mask};
use crate::protocol::action::Protocol;
use crate::protocol::commit_line::{Action, Add};
use crate::snapshot::Snapshot;

const FEATURE: &str = "rowTracking";
const SUSPENDED: &str = "delta.rowTrackingSuspended";
/// The maximum number of files per commit.
const BATCH: usize = 100_000;

/// Commits row ids for every file of the table, and the protocol with the feature supported, so
/// that new files get row ids. Commits nothing if that is the case already.
pub(in crate::ops) fn backfill(
    snapshot: &Snapshot,
    protocol: &Protocol,
    commit_options: &CommitOptions,
    cancel: &CancellationToken,
) -> Result<Snapshot> {
    let lacks = |batch: &FileBatch| {
        let there = |row: usize| {
            batch
                .base_row_id
                .as_ref()
                .is_some_and(|ids| ids.is_valid(row))
        };
        mask((0..batch.len()).map(|row| !there(row)).collect())
    };
    let mut steps = MultiCommitCommand::new(snapshot.clone(), commit_options, cancel);
    if next_file_batch(snapshot, cancel, &lacks)?.is_empty() {
        return Ok(steps.into_snapshot());
    }
    if snapshot.metadata().flag(SUSPENDED) {
        return Err(Error::invalid(format!(
            "`{SUSPENDED}` is true, so files get no row ids; unset it, then set `delta.enableRowTracking`"
        )));
    }
    if !snapshot.protocol().has_writer_feature(FEATURE) {
        let mut transaction = OptimisticTransaction::new(snapshot);
        transaction.push(Action::Protocol(protocol.clone()));
        steps.commit_step(
            transaction,
            CommitOperation::with_parameters(
                "UPGRADE PROTOCOL",
                [("newProtocol", json!(json!(protocol).to_string()))],
            ),
        )?;
    }
    let mut batch = 0;
    loop {
        let more = steps.retry_on_conflict(|steps| {
            let files = next_file_batch(steps.snapshot(), cancel, &lacks)?;
            let files = files
                .into_iter()
                .map(|add| with_row_count(steps.snapshot(), add))
                .collect::<Result<Vec<_>>>()?;
            readd_files(steps, files, "ROW TRACKING BACKFILL", batch)
        })?;
        if !more {
            return Ok(steps.into_snapshot());
        }
        batch += 1;
    }
}

/// Removes all row ids. The table must not assign new ones.
pub(in crate::ops) fn unbackfill(steps: &mut MultiCommitCommand<'_>) -> Result<()> {
    let mut batch = 0;
    loop {
        let more = steps.retry_on_conflict(|steps| {
            let mut files = next_file_batch(steps.snapshot(), steps.cancel(), &|batch| {
                feature_usage::files_using_feature(FEATURE, batch)
            })?;
            for add in &mut files {
                (add.base_row_id, add.default_row_commit_version) = (None, None);
            }
            readd_files(steps, files, "ROW TRACKING UNBACKFILL", batch)
        })?;
        if !more {
            return Ok(());
        }
        batch += 1;
    }
}

/// The files of the next batch.
fn next_file_batch(
    snapshot: &Snapshot,
    cancel: &CancellationToken,
    choose: &dyn Fn(&FileBatch) -> BooleanArray,
) -> Result<Vec<Add>> {
    let left = Cell::new(BATCH);
    matching_live_adds(snapshot, cancel, |batch| {
        let mut taken = vec![false; batch.len()];
        for row in choose(batch).values().set_indices().take(left.get()) {
            if let Some(taken) = taken.get_mut(row) {
                *taken = true;
                left.set(left.get() - 1);
            }
        }
        Ok(mask(taken))
    })
}

/// Adds files again; returns whether there were any.
fn readd_files(
    steps: &mut MultiCommitCommand<'_>,
    files: Vec<Add>,
    name: &str,
    batch: u32,
) -> Result<bool> {
    if files.is_empty() {
        return Ok(false);
    }
    let mut transaction = OptimisticTransaction::new(steps.snapshot());
    transaction.read_files(files.iter().map(|add| add.path.as_str()))?;
    transaction.extend(files.into_iter().map(|add| {
        Action::Add(Add {
            data_change: false,
            ..add
        })
    }));
    steps.commit_step(
        transaction,
        CommitOperation::with_parameters(name, [("batchId", batch.to_string().into())]),
    )?;
    Ok(true)
}

/// The file with its number of rows, from which its row ids are counted.
fn with_row_count(snapshot: &Snapshot, add: Add) -> Result<Add> {
    if add.num_records().is_some() {
        return Ok(add);
    }
    let rows = row_deletion::physical_row_count(snapshot, &add)?;
    let stats =
        row_deletion::with_json_members(add.stats.as_deref(), &[("numRecords", rows.to_string())])?;
    Ok(Add {
        stats: Some(stats),
        ..add
    })
}
