//! Row ids of files that are there: given to them before rows are promised to have ids, taken away
//! before the feature goes.
//!
//! A file is added again as it is, with or without its ids. Appends beside it go on as if nothing
//! was; they give ids themselves since the feature is supported. A file that another writer ends in
//! between is left out.
//!
//! Protocol: "Row Tracking", "Writer Requirements for Row Tracking". Operations and parameters are
//! delta-spark's. Cost: the live files' actions once a batch of them; a footer for each file whose
//! statistics do not count its rows.

use std::cell::Cell;

use arrow_array::{Array, BooleanArray};
use serde_json::json;

use crate::commit::OptimisticTransaction;
use crate::commit::adds::matching_live_adds;
use crate::commit::finish::CommitOptions;
use crate::error::{Error, Result};
use crate::exec::CancellationToken;
use crate::ops::alter::feature_usage;
use crate::ops::alter::multi_commit::MultiCommitCommand;
use crate::ops::alter::operation;
use crate::ops::dml::deletion_vectors;
use crate::parse::{FileBatch, mask};
use crate::protocol::action::Protocol;
use crate::protocol::commit_line::{Action, Add};
use crate::snapshot::Snapshot;

const FEATURE: &str = "rowTracking";
const SUSPENDED: &str = "delta.rowTrackingSuspended";
/// Files of one commit.
const BATCH: usize = 100_000;

/// The table with row ids for every file, and with the feature supported as `protocol` does, so
/// that new files get theirs. Where all of this is so already nothing is committed.
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
            operation(
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

/// Takes all row ids away. The table must not give new ones.
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

/// Files of the next batch.
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

/// Adds files again; whether there were any.
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
        operation(name, [("batchId", batch.to_string().into())]),
    )?;
    Ok(true)
}

/// The file with the number of its rows, which its ids are counted by.
fn with_row_count(snapshot: &Snapshot, add: Add) -> Result<Add> {
    if add.num_records().is_some() {
        return Ok(add);
    }
    let rows = deletion_vectors::physical_row_count(snapshot, &add)?;
    let stats = deletion_vectors::with_json_members(
        add.stats.as_deref(),
        &[("numRecords", rows.to_string())],
    )?;
    Ok(Add {
        stats: Some(stats),
        ..add
    })
}
