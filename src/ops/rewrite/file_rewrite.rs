//! Moving rows to other files without changing them: the new files, their actions, the metrics.
//!
//! Protocol: "Requirements for Writers" (`dataChange` is false), "Writer Requirements for Row
//! Tracking". Metrics are those of delta-spark. Cost: one pass over the rows.

use crate::commit::finish::{self, CommitOptions, CommitResult, metric_value};
use crate::commit::{CommitOperation, OptimisticTransaction};
use crate::error::Result;
use crate::exec::CancellationToken;
use crate::exec::now_ms;
use crate::file_writer::WriteOutput;
use crate::ops::rewrite::target_table::TargetTable;
use crate::ops::rewrite::uncommitted_files::{UncommittedFiles, add_action};
use crate::protocol::commit_line::{Action, Add};
use crate::snapshot::Snapshot;

/// Files whose rows were copied to new ones; the new files are deleted again unless a version
/// references them.
pub(in crate::ops) struct FileRewrite {
    pub removed: Vec<Add>,
    pub added: Vec<Add>,
    orphans: UncommittedFiles,
}

impl FileRewrite {
    /// Copies the rows of files into new ones, as `target` has them.
    pub(in crate::ops) fn of(
        removed: Vec<Add>,
        snapshot: &Snapshot,
        target: &TargetTable,
        cancel: &CancellationToken,
    ) -> Result<Self> {
        let written = if removed.is_empty() {
            WriteOutput::default()
        } else {
            target.combine_files(snapshot, removed.clone(), cancel)?
        };
        Ok(Self::new(removed, written, snapshot))
    }

    /// Files that were written to replace others.
    pub(in crate::ops) fn new(
        removed: Vec<Add>,
        written: WriteOutput,
        snapshot: &Snapshot,
    ) -> Self {
        let mut orphans = UncommittedFiles::new(snapshot.stores().root());
        orphans.add(&written.files);
        let added = written
            .files
            .into_iter()
            .map(|file| Add {
                data_change: false,
                ..add_action(file, snapshot.metadata())
            })
            .collect();
        Self {
            removed,
            added,
            orphans,
        }
    }
}

/// Files in order, up to `size` bytes per bin.
pub(in crate::ops) fn split_by_size(files: Vec<Add>, size: i64) -> Vec<Vec<Add>> {
    let mut out: Vec<Vec<Add>> = Vec::new();
    let mut bytes = 0_i64;
    for add in files {
        bytes = bytes.saturating_add(add.size);
        match out.last_mut().filter(|_| bytes <= size) {
            Some(last) => last.push(add),
            None => {
                bytes = add.size;
                out.push(vec![add]);
            }
        }
    }
    out
}

/// Commits a version in which the new files replace the old ones.
pub(in crate::ops) fn commit(
    mut transaction: OptimisticTransaction,
    mut operation: CommitOperation,
    all: Vec<FileRewrite>,
    target: &TargetTable,
    commit_options: &CommitOptions,
    cancel: &CancellationToken,
) -> Result<CommitResult> {
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    let mut orphans: Option<UncommittedFiles> = None;
    for one in all {
        removed.extend(one.removed);
        added.extend(one.added);
        match &mut orphans {
            Some(orphans) => orphans.append(one.orphans),
            None => orphans = Some(one.orphans),
        }
    }
    let bytes = |adds: &[Add]| adds.iter().map(|add| add.size).sum::<i64>();
    let figures = [
        ("numRemovedFiles", metric_value(removed.len())),
        ("numRemovedBytes", metric_value(bytes(&removed))),
        (
            "numDeletionVectorsRemoved",
            metric_value(
                removed
                    .iter()
                    .filter(|add| add.deletion_vector.is_some())
                    .count(),
            ),
        ),
        ("numAddedFiles", metric_value(added.len())),
        ("numAddedBytes", metric_value(bytes(&added))),
    ];
    operation
        .metrics
        .extend(figures.map(|(name, value)| (name.to_owned(), value)));
    operation.row_ids_preserved = Some(target.tracks_rows());
    transaction.read_files(removed.iter().map(|add| add.path.as_str()))?;
    let now = now_ms();
    transaction.extend(
        removed
            .iter()
            .map(|add| Action::Remove(add.to_remove(now, false))),
    );
    transaction.extend(added.into_iter().map(Action::Add));
    let commit = || finish::commit(transaction, operation, commit_options, cancel);
    match orphans {
        Some(orphans) => orphans.commit(commit),
        None => commit(),
    }
}
