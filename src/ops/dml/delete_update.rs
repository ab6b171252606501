//! DELETE and UPDATE: rows for which a predicate is true are deleted or get new values.
//!
//! Statistics and partition values are evaluated first: files whose rows all match are removed
//! without being read. In the other files the rows are found by reading the predicate's columns.
//! Then either deletion vectors mark the rows, and an UPDATE adds their new values in new files, or
//! the files are copied with the change.
//!
//! Protocol: "Deletion Vectors", "Change Data Files", "Row Tracking". Metrics and parameters are
//! those of delta-spark. Cost: one pass over the predicate's columns of the files that may match;
//! with deletion vectors one over the rows that change, otherwise one over the files that have any.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::json;

use crate::commit::OptimisticTransaction;
use crate::commit::finish::{self, CommitOptions, CommitResult, json_string_list};
use crate::error::Result;
use crate::exec::CancellationToken;
use crate::exec::now_ms;
use crate::expr::BoundExpr;
use crate::file_writer::WriteOutput;
use crate::file_writer::bound_constraints::{NamedExpression, TableConstraints};
use crate::file_writer::constraints::WriteRules;
use crate::ops::dml::rewrite_columns;
use crate::ops::dml::update_assignments::UpdateAssignments;
use crate::ops::optimize::auto_compact;
use crate::ops::rewrite::column_values::ValuePlan;
use crate::ops::rewrite::conflict_retry::retry;
use crate::ops::rewrite::matched_rows::MatchedRows;
use crate::ops::rewrite::row_deletion::{self, DeletionVectorUpdate};
use crate::ops::rewrite::start_state::check_changeable;
use crate::ops::rewrite::target_table::{
    BatchTransform, DataFileOptions, FileRowSelection, TargetTable, cdc_action, millis,
};
use crate::ops::rewrite::uncommitted_files::{UncommittedFiles, add_action};
use crate::protocol::action::Metadata;
use crate::protocol::commit_line::{Action, Add};
use crate::snapshot::Snapshot;

/// Options of DELETE and UPDATE.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DmlOptions {
    /// How new files are made.
    pub encoding: DataFileOptions,
    /// How it is committed.
    pub commit_options: CommitOptions,
    /// The maximum number of retries on the newest version after another writer changed rows that
    /// were read.
    pub max_conflict_retries: u32,
}

/// Deletes the rows for which `predicate` is true, all rows without one.
///
/// # Errors
/// [`Error::Invalid`] for an append-only table, [`Error::Unsupported`] for one that this release
/// cannot write; as [`OptimisticTransaction::commit`]. New files are deleted after an error, unless
/// the outcome of the commit is unknown.
pub fn delete(
    snapshot: &Snapshot,
    predicate: Option<&NamedExpression>,
    options: &DmlOptions,
    cancel: &CancellationToken,
) -> Result<CommitResult> {
    retry_dml(snapshot, predicate, options, cancel, delete_once)
}

/// Runs a DELETE or UPDATE; after a conflict with other writers' changes of rows, runs it again on the
/// newest version.
fn retry_dml(
    snapshot: &Snapshot,
    predicate: Option<&NamedExpression>,
    options: &DmlOptions,
    cancel: &CancellationToken,
    mut command: impl FnMut(DmlContext<'_>) -> Result<CommitResult>,
) -> Result<CommitResult> {
    retry(
        snapshot,
        &options.commit_options,
        options.max_conflict_retries,
        cancel,
        |snapshot, commit_options| {
            check_changeable(snapshot)?;
            command(DmlContext::new(
                snapshot,
                predicate,
                &options.encoding,
                commit_options,
                cancel,
            )?)
        },
    )
}

fn delete_once(work: DmlContext<'_>) -> Result<CommitResult> {
    let (snapshot, cancel) = (work.snapshot, work.cancel);
    let mut orphans = UncommittedFiles::new(snapshot.stores().root());
    let found = work.find()?;
    let scanned = work.started.elapsed();
    let mut outcome = DmlActions {
        rows: found.rows,
        counts_deletion_vectors: true,
        ..DmlActions::default()
    };
    let (whole, partial) = found.split_by_coverage();
    outcome.remove_files(&whole);
    if work.target.has_deletion_vectors() {
        outcome.add_deletion_vectors(row_deletion::write_deletion_vectors(
            snapshot,
            partial,
            &found.partial,
            &mut orphans,
            cancel,
        )?);
    } else if !partial.is_empty() {
        if work.target.has_change_data_feed() {
            // Files that are removed as a whole are included with all rows: readers of a version
            // with change files read no other changes.
            let gone = found.selected_rows().map(|rows| (rows, "delete", None));
            outcome.add_change_data(
                work.target.write_change_data(snapshot, gone, cancel)?,
                &mut orphans,
            );
        }
        let kept = work.target.copy(
            snapshot,
            found.remaining_rows(),
            WriteRules::default(),
            None,
            cancel,
        )?;
        outcome.copied = kept.rows;
        outcome.add_files(kept, &work.target.metadata, &mut orphans);
        outcome.remove_files(&partial);
    }
    work.commit("DELETE", "numDeletedRows", outcome, scanned, orphans)
}

/// Assigns new values to columns, or fields within them, in the rows for which `predicate` is true,
/// in all rows without one. `bound` are the table's constraints, bound.
///
/// # Errors
/// As [`delete`]; [`Error::ConstraintViolated`] for new values that violate a constraint.
pub fn update(
    snapshot: &Snapshot,
    predicate: Option<&NamedExpression>,
    assignments: &[ValuePlan],
    bound: &TableConstraints,
    options: &DmlOptions,
    cancel: &CancellationToken,
) -> Result<CommitResult> {
    retry_dml(snapshot, predicate, options, cancel, |work| {
        update_once(work, assignments, bound)
    })
}

fn update_once(
    work: DmlContext<'_>,
    assignments: &[ValuePlan],
    bound: &TableConstraints,
) -> Result<CommitResult> {
    let (snapshot, cancel) = (work.snapshot, work.cancel);
    let rules = update_rules(snapshot, bound)?;
    let values = Arc::new(UpdateAssignments::of(
        snapshot,
        assignments,
        &rules,
        work.target.encoding.cast_rule()?,
    )?);
    let mut orphans = UncommittedFiles::new(snapshot.stores().root());
    let found = work.find()?;
    let scanned = work.started.elapsed();
    let mut outcome = DmlActions {
        rows: found.rows,
        counts_deletion_vectors: found.rows_scanned,
        ..DmlActions::default()
    };
    if !found.files.is_empty() {
        let update = RowUpdate {
            snapshot,
            work: &work,
            found: &found,
            values,
            rules,
            cancel,
        };
        if work.target.has_change_data_feed() {
            update.write_change_data(&mut outcome, &mut orphans)?;
        }
        if work.target.has_deletion_vectors() {
            update.mark_and_add(&mut outcome, &mut orphans)?;
        } else {
            update.rewrite_files(&mut outcome, &mut orphans)?;
        }
    }
    work.commit("UPDATE", "numUpdatedRows", outcome, scanned, orphans)
}

/// The rules of a table for rows that an UPDATE writes; `bound` are the table's constraints, bound.
fn update_rules(snapshot: &Snapshot, bound: &TableConstraints) -> Result<WriteRules> {
    let asked = TableConstraints::of(
        snapshot.protocol(),
        snapshot.metadata(),
        snapshot.schema(),
        |_| false,
    )?;
    TableConstraints {
        predicate: None,
        ..bound.clone()
    }
    .rules(&asked, Vec::new())
}

/// An UPDATE of rows that were found.
struct RowUpdate<'a> {
    snapshot: &'a Snapshot,
    work: &'a DmlContext<'a>,
    found: &'a MatchedRows,
    values: Arc<UpdateAssignments>,
    /// All rules of the table.
    rules: WriteRules,
    cancel: &'a CancellationToken,
}

impl RowUpdate<'_> {
    /// The rows that change.
    fn matched_rows(&self) -> FileRowSelection {
        FileRowSelection {
            files: self
                .found
                .files
                .iter()
                .map(|add| add.path.clone())
                .collect(),
            predicate: self.work.predicate.clone(),
            positions: None,
        }
    }

    /// Assigns the values in all rows of a batch.
    fn unconditional_update(&self) -> BatchTransform {
        let values = Arc::clone(&self.values);
        Arc::new(move |batch| values.apply(&batch, None))
    }

    /// Assigns the values in the rows of a batch for which the predicate is true.
    fn conditional_update(&self) -> BatchTransform {
        let (values, predicate) = (Arc::clone(&self.values), self.work.predicate.clone());
        Arc::new(move |batch| {
            let mask = predicate
                .as_ref()
                .map(|predicate| predicate.filter_mask(&batch))
                .transpose()?;
            values.apply(&batch, mask.as_ref())
        })
    }

    /// Writes the rows before and after the change as change data.
    fn write_change_data(
        &self,
        outcome: &mut DmlActions,
        orphans: &mut UncommittedFiles,
    ) -> Result<()> {
        let matched = self.matched_rows();
        let sources = [
            (matched.clone(), "update_preimage", None),
            (
                matched,
                "update_postimage",
                Some(self.unconditional_update()),
            ),
        ];
        outcome.add_change_data(
            self.work
                .target
                .write_change_data(self.snapshot, sources, self.cancel)?,
            orphans,
        );
        Ok(())
    }

    /// Adds the new rows in new files and deletes the old ones, by deletion vectors if their file
    /// has other rows.
    fn mark_and_add(self, outcome: &mut DmlActions, orphans: &mut UncommittedFiles) -> Result<()> {
        let target = &self.work.target;
        let (whole, partial) = self.found.split_by_coverage();
        let (matched, edit) = (self.matched_rows(), self.unconditional_update());
        let written = target.copy(self.snapshot, matched, self.rules, Some(edit), self.cancel)?;
        outcome.add_files(written, &target.metadata, orphans);
        outcome.remove_files(&whole);
        let (files, bytes) = (
            partial.len() as u64,
            partial.iter().map(|add| add.size).sum::<i64>(),
        );
        let marked = row_deletion::write_deletion_vectors(
            self.snapshot,
            partial,
            &self.found.partial,
            orphans,
            self.cancel,
        )?;
        // An UPDATE counts every file that it changes, a DELETE those that are removed.
        outcome.add_deletion_vectors(DeletionVectorUpdate {
            removed_files: files,
            removed_bytes: bytes,
            ..marked
        });
        Ok(())
    }

    /// Replaces the files: encodes only the changed columns where possible, copies other files row
    /// by row.
    fn rewrite_files(self, outcome: &mut DmlActions, orphans: &mut UncommittedFiles) -> Result<()> {
        let target = &self.work.target;
        let update = rewrite_columns::ColumnUpdate {
            snapshot: self.snapshot,
            target,
            values: &self.values,
            rules: &self.rules,
            rows: Arc::clone(&self.found.partial),
        };
        let (spliced, others) = update.run(self.found.files.clone(), self.cancel)?;
        let mut rewritten = spliced.rows;
        outcome.add_files(spliced, &target.metadata, orphans);
        let files: Vec<String> = others.into_iter().map(|add| add.path).collect();
        if !files.is_empty() {
            let rows = FileRowSelection {
                files,
                ..FileRowSelection::default()
            };
            let edit = self.conditional_update();
            let written = target.copy(self.snapshot, rows, self.rules, Some(edit), self.cancel)?;
            rewritten += written.rows;
            outcome.add_files(written, &target.metadata, orphans);
        }
        outcome.copied = self
            .found
            .rows
            .map_or(0, |rows| rewritten.saturating_sub(rows));
        outcome.remove_files(&self.found.files);
        Ok(())
    }
}

/// The common part of both commands, whether deltafast or another engine moves the rows.
pub(in crate::ops) struct DmlContext<'a> {
    snapshot: &'a Snapshot,
    predicate: Option<BoundExpr>,
    sql: Option<&'a str>,
    pub target: TargetTable,
    commit_options: &'a CommitOptions,
    cancel: &'a CancellationToken,
    pub started: Instant,
}

impl<'a> DmlContext<'a> {
    pub(in crate::ops) fn new(
        snapshot: &'a Snapshot,
        predicate: Option<&'a NamedExpression>,
        encoding: &DataFileOptions,
        commit_options: &'a CommitOptions,
        cancel: &'a CancellationToken,
    ) -> Result<Self> {
        let target = TargetTable::of(snapshot, encoding.clone());
        let bound = predicate.map(NamedExpression::bound).transpose()?;
        Ok(Self {
            snapshot,
            predicate: bound,
            sql: predicate.map(|demand| demand.sql.as_str()),
            target,
            commit_options,
            cancel,
            started: Instant::now(),
        })
    }

    pub(in crate::ops) fn find(&self) -> Result<MatchedRows> {
        MatchedRows::find_rows(self.snapshot, self.predicate.as_ref(), None, self.cancel)
    }

    pub(in crate::ops) fn commit(
        self,
        name: &str,
        rows: &str,
        outcome: DmlActions,
        scanned: Duration,
        orphans: UncommittedFiles,
    ) -> Result<CommitResult> {
        let whole = self.started.elapsed();
        let metrics = json!({
            "numRemovedFiles": outcome.removed_files,
            "numRemovedBytes": outcome.removed_bytes,
            "numAddedFiles": outcome.added_files,
            "numAddedBytes": outcome.added_bytes,
            rows: outcome.rows,
            "numCopiedRows": outcome.copied,
            "numAddedChangeFiles": outcome.change_files,
            "numDeletionVectorsAdded": outcome.deletion_vectors.added,
            "numDeletionVectorsRemoved": outcome.deletion_vectors.removed,
            "numDeletionVectorsUpdated": outcome.deletion_vectors.updated,
            "scanTimeMs": millis(scanned),
            "rewriteTimeMs": millis(whole.saturating_sub(scanned)),
            "executionTimeMs": millis(whole),
        });
        // As in delta-spark, a DELETE without a condition has the condition `true`.
        let said: Vec<String> = self
            .sql
            .or((name == "DELETE").then_some("true"))
            .into_iter()
            .map(str::to_owned)
            .collect();
        let mut operation =
            finish::operation(name, json!({"predicate": json_string_list(&said)}), metrics);
        if outcome.actions.is_empty() {
            return Ok(CommitResult {
                metrics: operation.metrics,
                ..CommitResult::unchanged(self.snapshot)
            });
        }
        operation.row_ids_preserved =
            Some(self.target.tracks_rows() || outcome.copied == 0 && name == "DELETE");
        let mut transaction = OptimisticTransaction::new(self.snapshot);
        match self.predicate {
            Some(predicate) => transaction.read_rows(predicate),
            None => transaction.read_whole_table(),
        }
        transaction.replace(outcome.actions)?;
        let touched = transaction.partitions();
        let done = orphans
            .commit(|| finish::commit(transaction, operation, self.commit_options, self.cancel));
        done.map(|done| {
            auto_compact::compact_after_commit(done, &touched, self.commit_options, self.cancel)
        })
    }
}

/// The actions of a command.
#[derive(Default)]
pub(in crate::ops) struct DmlActions {
    actions: Vec<Action>,
    pub rows: Option<u64>,
    pub copied: u64,
    added_files: u64,
    added_bytes: u64,
    removed_files: u64,
    removed_bytes: i64,
    change_files: u64,
    deletion_vectors: DeletionVectorUpdate,
    /// Whether deletion vectors of files that are removed as a whole are counted: not in an UPDATE
    /// that reads no rows, as in delta-spark.
    pub counts_deletion_vectors: bool,
}

impl DmlActions {
    pub(in crate::ops) fn remove_files(&mut self, files: &[Add]) {
        let now = now_ms();
        self.removed_files += files.len() as u64;
        self.removed_bytes += files.iter().map(|add| add.size).sum::<i64>();
        if self.counts_deletion_vectors {
            self.deletion_vectors.removed += files
                .iter()
                .filter(|add| add.deletion_vector.is_some())
                .count() as u64;
        }
        self.actions.extend(
            files
                .iter()
                .map(|add| Action::Remove(add.to_remove(now, true))),
        );
    }

    pub(in crate::ops) fn add_files(
        &mut self,
        written: WriteOutput,
        metadata: &Metadata,
        orphans: &mut UncommittedFiles,
    ) {
        orphans.add(&written.files);
        self.added_files += written.files.len() as u64;
        self.added_bytes += written.files.iter().map(|file| file.size).sum::<u64>();
        self.actions.extend(
            written
                .files
                .into_iter()
                .map(|file| Action::Add(add_action(file, metadata))),
        );
    }

    pub(in crate::ops) fn add_change_data(
        &mut self,
        written: WriteOutput,
        orphans: &mut UncommittedFiles,
    ) {
        orphans.add(&written.files);
        self.change_files += written.files.len() as u64;
        self.actions.extend(
            written
                .files
                .into_iter()
                .map(|file| Action::Cdc(cdc_action(file))),
        );
    }

    pub(in crate::ops) fn add_deletion_vectors(&mut self, marked: DeletionVectorUpdate) {
        self.removed_files += marked.removed_files;
        self.removed_bytes += marked.removed_bytes;
        self.deletion_vectors.added += marked.added;
        self.deletion_vectors.removed += marked.removed;
        self.deletion_vectors.updated += marked.updated;
        self.actions.extend(marked.actions);
    }
}
