//! Writes the result of a merge: from rows and their clauses to files, deletion vectors and change
//! data, and the commit.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arrow_array::RecordBatch;
use serde_json::{Value, json};

use crate::commit::finish::{self, CommitResult};
use crate::commit::{CommitOperation, OptimisticTransaction};
use crate::dv::RoaringBitmapArray;
use crate::error::Result;
use crate::exec::{CancellationToken, ItemSource, ordered_prefetch, parallelism};
use crate::expr::BoundExpr;
use crate::file_writer::cast_values::CastRule;
use crate::file_writer::{WriteOutput, WriteRequest, write};
use crate::ops::merge::batch_pool::map_on_pool;
use crate::ops::merge::clauses::{
    BY_SOURCE, ClauseAction, MergeInserter, MergeRowAction, MergeUpdater, SOURCE,
    always_assigned_columns, exprs, required_columns,
};
use crate::ops::merge::merge_command::MergeCommand;
use crate::ops::merge::merge_join::MergeJoin;
use crate::ops::merge::merge_plan::MergeClauses;
use crate::ops::optimize::auto_compact;
use crate::ops::rewrite::matched_rows::fully_matched_files;
use crate::ops::rewrite::row_deletion::{self, DeletionVectorUpdate};
use crate::ops::rewrite::target_table::millis;
use crate::ops::rewrite::target_table::{cdc_action, with_change_type};
use crate::ops::rewrite::uncommitted_files::{UncommittedFiles, add_action};
use crate::protocol::action::Metadata;
use crate::protocol::commit_line::{Action, Add};
use crate::scan::{self, PositionSelection, ScanRequest};

/// Positions of rows by path of their file.
type RowPositions = Arc<HashMap<String, RoaringBitmapArray>>;

/// The rows of the table that a merge changes.
struct ChangedRows {
    /// The files with such rows.
    files: Vec<Add>,
    deleted: RowPositions,
    updated: RowPositions,
    /// Deleted and updated rows.
    all: RowPositions,
}

/// The requests that read rows of the table and write them to new files.
struct CopyRequests {
    write: WriteRequest,
    scan: ScanRequest,
    /// Indexes of the table's columns that are not scanned, since all rows get new values for them.
    unread: BTreeSet<usize>,
}

/// The files and deletion vectors that a merge wrote.
struct MergeOutput {
    data: WriteOutput,
    change_data: WriteOutput,
    deletion_vectors: DeletionVectorUpdate,
}

impl MergeOutput {
    /// The actions of all files: replaced files, then new files, then change data.
    fn into_actions(self, metadata: &Metadata) -> Vec<Action> {
        let mut actions = self.deletion_vectors.actions;
        actions.extend(
            self.data
                .files
                .into_iter()
                .map(|file| Action::Add(add_action(file, metadata))),
        );
        actions.extend(
            self.change_data
                .files
                .into_iter()
                .map(|file| Action::Cdc(cdc_action(file))),
        );
        actions
    }
}

impl MergeJoin {
    pub(super) fn write(
        self,
        mut entries: Vec<Vec<MergeRowAction>>,
        matched: Vec<bool>,
        mut read: BTreeSet<usize>,
        cancel: &CancellationToken,
    ) -> Result<CommitResult> {
        let scanned = self.merge.started.elapsed();
        let mut counts = self.count_changed_rows(&entries);
        read.extend(
            entries
                .iter()
                .enumerate()
                .filter(|(_, entries)| !entries.is_empty())
                .map(|(file, _)| file),
        );
        let rows = self.changed_rows(&entries)?;
        if !rows.deleted.is_empty() {
            for entries in &mut entries {
                entries.retain(|entry| self.is_update(entry));
            }
        }
        let target = &self.merge.target;
        let mut orphans = UncommittedFiles::new(self.merge.snapshot.stores().root());
        let inserter = Arc::new(MergeInserter::new(
            Arc::clone(&self.source_buffer),
            self.clauses.not_matched.clone(),
            matched,
        ));
        let mut requests = self.copy_requests(cancel)?;
        let rule = requests.write.cast_rule;
        let with_feed = target.has_change_data_feed() && !rows.files.is_empty();
        // Without updates an updater only drops the columns with a row's position, and adds new
        // columns.
        let feed_updaters = with_feed.then(|| {
            (
                self.updater(rule, Vec::new(), Vec::new(), BTreeSet::new()),
                self.updater(rule, entries.clone(), Vec::new(), BTreeSet::new()),
            )
        });
        let (deletion_vectors, updates) =
            self.replace_rows(&rows, entries, &mut requests.scan, &mut orphans, cancel)?;
        let hidden = requests.write.hidden.clone();
        let unread = std::mem::take(&mut requests.unread);
        let updater = (!rows.files.is_empty()).then(|| self.updater(rule, updates, hidden, unread));
        let (data, inserted) = self.write_rows(&requests, updater, &inserter, cancel)?;
        orphans.add(&data.files);
        let change_data = match feed_updaters {
            Some((same, updater)) => {
                let changed = [&rows.deleted, &rows.updated];
                self.write_change_data(changed, same, updater, &inserter, cancel)?
            }
            None => WriteOutput::default(),
        };
        orphans.add(&change_data.files);
        counts.inserted = inserted;
        counts.source_rows = self.source_buffer.len().into();
        let times = [self.merge.started.elapsed(), scanned, self.read_time];
        let metrics = counts.metrics(&data, change_data.files.len(), &deletion_vectors, times);
        let output = MergeOutput {
            data,
            change_data,
            deletion_vectors,
        };
        self.commit_output(
            output,
            metrics,
            &read,
            !rows.files.is_empty(),
            orphans,
            cancel,
        )
    }

    /// Commits the written files.
    fn commit_output(
        &self,
        output: MergeOutput,
        metrics: Value,
        read: &BTreeSet<usize>,
        changes_rows: bool,
        orphans: UncommittedFiles,
        cancel: &CancellationToken,
    ) -> Result<CommitResult> {
        let target = &self.merge.target;
        let mut operation = finish::operation("MERGE", self.plan.parameters(), metrics);
        let mut metadata = self.merge.changed_metadata();
        if !output.data.identities.is_empty() {
            operation.identity_only = metadata.is_none();
            metadata = Some(target.with_high_water_marks(&output.data.identities));
        }
        let ending = MergeCommit {
            merge: &self.merge,
            clauses: &self.clauses,
            reads: self.target_predicate.as_ref(),
            read: read
                .iter()
                .filter_map(|file| self.files.get(*file))
                .map(|add| add.path.as_str())
                .collect(),
            changes_rows,
            operation,
            metadata,
            actions: output.into_actions(&target.metadata),
        };
        ending.commit(orphans, cancel)
    }

    /// Whether the clause of an entry updates the row; otherwise it deletes the row.
    fn is_update(&self, entry: &MergeRowAction) -> bool {
        self.clause(entry.clause_number)
            .is_some_and(|clause| clause.clause_action == ClauseAction::Update)
    }

    /// Counts updated and deleted rows.
    fn count_changed_rows(&self, entries: &[Vec<MergeRowAction>]) -> MergeMetrics {
        let mut counts = MergeMetrics::default();
        for entry in entries.iter().flatten() {
            *match (self.is_update(entry), entry.clause_number >= BY_SOURCE) {
                (true, false) => &mut counts.updated,
                (true, true) => &mut counts.updated_by_source,
                (false, false) => &mut counts.deleted,
                (false, true) => &mut counts.deleted_by_source,
            } += 1;
        }
        counts
    }

    /// Collects the positions of updated and deleted rows.
    fn changed_rows(&self, entries: &[Vec<MergeRowAction>]) -> Result<ChangedRows> {
        let files = self
            .files
            .iter()
            .zip(entries)
            .filter(|(_, entries)| !entries.is_empty())
            .map(|(add, _)| add.clone())
            .collect();
        let deleted = Arc::new(self.positions(entries, |entry| !self.is_update(entry))?);
        let updated = Arc::new(self.positions(entries, |entry| self.is_update(entry))?);
        let all = match (deleted.is_empty(), updated.is_empty()) {
            (true, _) => Arc::clone(&updated),
            (_, true) => Arc::clone(&deleted),
            _ => Arc::new(self.positions(entries, |_| true)?),
        };
        Ok(ChangedRows {
            files,
            deleted,
            updated,
            all,
        })
    }

    /// Builds the requests that copy rows of the table.
    fn copy_requests(&self, cancel: &CancellationToken) -> Result<CopyRequests> {
        let (snapshot, target) = (&self.merge.snapshot, &self.merge.target);
        let mut write = target.write_request(self.rules.clone(), cancel)?;
        // With deletion vectors all rows that are read change; copied files have other rows as
        // well.
        let unread = if target.has_deletion_vectors() {
            always_assigned_columns(
                snapshot.schema(),
                &self.clauses.matched,
                &self.clauses.by_source,
                &self.rules.generated,
            )
        } else {
            BTreeSet::new()
        };
        let read_columns = snapshot
            .schema()
            .fields
            .iter()
            .enumerate()
            .filter(|(n, _)| !unread.contains(n))
            .map(|(_, field)| field.name.clone());
        let mut scan = self.scan(read_columns.collect(), None, cancel);
        let row_location = std::mem::take(&mut scan.metadata);
        target.preserve_row_ids(snapshot, &mut write, &mut scan)?;
        scan.metadata.extend(row_location);
        Ok(CopyRequests {
            write,
            scan,
            unread,
        })
    }

    /// Builds the updater that applies these updates to scanned rows.
    fn updater(
        &self,
        cast_rule: CastRule,
        updates: Vec<Vec<MergeRowAction>>,
        row_tracking_names: Vec<String>,
        unread: BTreeSet<usize>,
    ) -> MergeUpdater {
        MergeUpdater {
            source_buffer: Arc::clone(&self.source_buffer),
            source: self.merge.source.clone(),
            table_schema: self.merge.snapshot.schema().clone(),
            target_schema: self.merge.target.schema.clone(),
            matched: self.clauses.matched.clone(),
            by_source: self.clauses.by_source.clone(),
            generated: self.rules.generated.clone(),
            cast_rule,
            updates,
            row_tracking_names,
            source_columns: required_columns(exprs(&self.clauses.matched, true), SOURCE),
            unread,
        }
    }

    /// Removes the old rows by deletion vectors or with their files, and lets `scan` select the rows
    /// to write: all remaining rows of copied files, otherwise the rows that change. Returns the
    /// updates of the selected files.
    fn replace_rows(
        &self,
        rows: &ChangedRows,
        updates: Vec<Vec<MergeRowAction>>,
        scan: &mut ScanRequest,
        orphans: &mut UncommittedFiles,
        cancel: &CancellationToken,
    ) -> Result<(DeletionVectorUpdate, Vec<Vec<MergeRowAction>>)> {
        if self.merge.target.has_deletion_vectors() {
            scan.chosen = Some(PositionSelection::Only(Arc::clone(&rows.updated)));
            let marked = row_deletion::write_deletion_vectors(
                &self.merge.snapshot,
                rows.files.clone(),
                &rows.all,
                orphans,
                cancel,
            )?;
            return Ok((marked, updates));
        }
        let ended = fully_matched_files(&self.merge.snapshot, &rows.files, &rows.deleted)?;
        let copied = self
            .files
            .iter()
            .zip(updates)
            .filter(|(add, _)| rows.all.contains_key(&add.path) && !ended.contains(&add.path));
        let (files, updates): (Vec<String>, Vec<Vec<MergeRowAction>>) = copied
            .map(|(add, updates)| (add.path.clone(), updates))
            .unzip();
        scan.files = Some(files);
        scan.chosen = Some(PositionSelection::Without(Arc::clone(&rows.deleted)));
        Ok((DeletionVectorUpdate::of_removed_files(&rows.files), updates))
    }

    /// Writes the selected rows of the table, if there is an updater, and then inserted rows; also
    /// returns the number of inserted rows.
    fn write_rows(
        &self,
        requests: &CopyRequests,
        updater: Option<MergeUpdater>,
        inserter: &Arc<MergeInserter>,
        cancel: &CancellationToken,
    ) -> Result<(WriteOutput, u64)> {
        let snapshot = &self.merge.snapshot;
        let inserted = Arc::new(AtomicU64::new(0));
        let kept = match updater {
            None => None,
            Some(updater) => Some(map_on_pool(
                scan::scan(snapshot, &requests.scan)?.batches,
                move |batch| updater.update_batch(&batch),
                cancel,
            )),
        };
        let rows = kept.into_iter().flatten().chain(inserted_batches(
            inserter,
            Some(Arc::clone(&inserted)),
            cancel,
        ));
        let written = write(snapshot.stores().root(), &requests.write, rows)?;
        Ok((written, inserted.load(Ordering::Relaxed)))
    }

    /// Writes the change data, row by row.
    fn write_change_data(
        &self,
        [deleted, updated]: [&RowPositions; 2],
        same: MergeUpdater,
        editor: MergeUpdater,
        inserter: &Arc<MergeInserter>,
        cancel: &CancellationToken,
    ) -> Result<WriteOutput> {
        let (snapshot, target) = (&self.merge.snapshot, &self.merge.target);
        let columns: Vec<String> = snapshot
            .schema()
            .fields
            .iter()
            .map(|field| field.name.clone())
            .collect();
        let scanned = |rows: &RowPositions| {
            let request = self.scan(
                columns.clone(),
                Some(PositionSelection::Only(Arc::clone(rows))),
                cancel,
            );
            scan::scan(snapshot, &request).map(|scanned| scanned.batches)
        };
        let same = Arc::new(same);
        let untouched = |kind: &'static str| {
            let same = Arc::clone(&same);
            move |batch: RecordBatch| with_change_type(&same.update_batch(&batch)?, kind)
        };
        let of_deleted = map_on_pool(scanned(deleted)?, untouched("delete"), cancel);
        let before = map_on_pool(scanned(updated)?, untouched("update_preimage"), cancel);
        let after = map_on_pool(
            scanned(updated)?,
            move |batch| with_change_type(&editor.update_batch(&batch)?, "update_postimage"),
            cancel,
        );
        let added = inserted_batches(inserter, None, cancel)
            .map(|batch| with_change_type(&batch?, "insert"));
        // Identity columns get values in the same order as for the rows themselves.
        let request = target.change_data_request(self.rules.clone(), cancel)?;
        write(
            snapshot.stores().root(),
            &request,
            of_deleted.chain(before).chain(after).chain(added),
        )
    }
}

/// Counts of rows by their change.
#[derive(Debug, Default)]
pub(in crate::ops) struct MergeMetrics {
    /// Rows of the source.
    pub source_rows: u64,
    pub updated: u64,
    pub updated_by_source: u64,
    pub deleted: u64,
    pub deleted_by_source: u64,
    pub inserted: u64,
}

impl MergeMetrics {
    /// The metrics for `commitInfo`, with the total time, the time until rows were found, and the
    /// time until the source was read.
    pub(in crate::ops) fn metrics(
        &self,
        written: &WriteOutput,
        changes: usize,
        marked: &DeletionVectorUpdate,
        [whole, scanned, read]: [Duration; 3],
    ) -> Value {
        let (updated, deleted) = (
            self.updated + self.updated_by_source,
            self.deleted + self.deleted_by_source,
        );
        json!({
            "numSourceRows": self.source_rows,
            "numTargetRowsInserted": self.inserted,
            "numTargetRowsUpdated": updated,
            "numTargetRowsDeleted": deleted,
            "numTargetRowsMatchedUpdated": self.updated,
            "numTargetRowsMatchedDeleted": self.deleted,
            "numTargetRowsNotMatchedBySourceUpdated": self.updated_by_source,
            "numTargetRowsNotMatchedBySourceDeleted": self.deleted_by_source,
            "numTargetRowsCopied": written.rows.saturating_sub(self.inserted + updated),
            "numOutputRows": written.rows,
            "numTargetFilesAdded": written.files.len(),
            "numTargetFilesRemoved": marked.removed_files,
            "numTargetBytesAdded": written.files.iter().map(|file| file.size).sum::<u64>(),
            "numTargetBytesRemoved": marked.removed_bytes,
            "numTargetChangeFilesAdded": changes,
            "numTargetDeletionVectorsAdded": marked.added,
            "numTargetDeletionVectorsRemoved": marked.removed,
            "numTargetDeletionVectorsUpdated": marked.updated,
            "executionTimeMs": millis(whole),
            "materializeSourceTimeMs": millis(read),
            "scanTimeMs": millis(scanned.saturating_sub(read)),
            "rewriteTimeMs": millis(whole.saturating_sub(scanned)),
        })
    }
}

/// A merge that is complete except for its commit.
pub(in crate::ops) struct MergeCommit<'a> {
    pub merge: &'a MergeCommand,
    pub clauses: &'a MergeClauses,
    pub reads: Option<&'a BoundExpr>,
    /// Paths of the files with matching rows.
    pub read: Vec<&'a str>,
    /// Whether existing rows changed.
    pub changes_rows: bool,
    pub operation: CommitOperation,
    pub metadata: Option<Metadata>,
    pub actions: Vec<Action>,
}

impl MergeCommit<'_> {
    /// Commits; if nothing changes there is nothing to do.
    pub(in crate::ops) fn commit(
        mut self,
        orphans: UncommittedFiles,
        cancel: &CancellationToken,
    ) -> Result<CommitResult> {
        let (merge, commit_options) = (self.merge, &self.merge.options.commit_options);
        if self.actions.is_empty() && self.metadata.is_none() {
            return Ok(CommitResult {
                metrics: self.operation.metrics,
                ..CommitResult::unchanged(&merge.snapshot)
            });
        }
        self.operation.row_ids_preserved = self.changes_rows.then(|| merge.target.tracks_rows());
        let mut transaction = OptimisticTransaction::new(&merge.snapshot);
        match self.reads {
            Some(predicate) if self.clauses.by_source.is_empty() => {
                transaction.read_rows(predicate.clone());
            }
            _ => transaction.read_whole_table(),
        }
        transaction.read_files(self.read)?;
        if merge.is_changed {
            transaction.push(Action::Protocol(merge.target.protocol.clone()));
        }
        transaction.extend(
            self.metadata
                .map(|metadata| Action::MetaData(Box::new(metadata))),
        );
        transaction.extend(self.actions);
        let grown = transaction.partitions();
        let operation = self.operation;
        let done =
            orphans.commit(|| finish::commit(transaction, operation, commit_options, cancel));
        done.map(|done| auto_compact::compact_after_commit(done, &grown, commit_options, cancel))
    }
}

/// The inserted rows, counted.
fn inserted_batches(
    inserter: &Arc<MergeInserter>,
    count: Option<Arc<AtomicU64>>,
    cancel: &CancellationToken,
) -> impl Iterator<Item = Result<RecordBatch>> + Send + 'static {
    let batches = if inserter.clauses.is_empty() {
        0
    } else {
        inserter.source_buffer.batches()
    };
    let inserter = Arc::clone(inserter);
    let jobs = (0..batches).map(move |n| {
        let inserter = Arc::clone(&inserter);
        Box::new(std::iter::once_with(move || inserter.inserted_rows(n)))
            as ItemSource<Vec<RecordBatch>>
    });
    let flat = ordered_prefetch(jobs, parallelism() + 1, 1, cancel).flat_map(|found| match found {
        Ok(batches) => batches.into_iter().map(Ok).collect::<Vec<_>>(),
        Err(error) => vec![Err(error)],
    });
    flat.inspect(move |batch| {
        if let (Some(count), Ok(batch)) = (&count, batch) {
            count.fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
        }
    })
}
