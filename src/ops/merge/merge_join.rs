//! The join of source and table, and its result: a version, or another attempt.

use super::batch_pool::map_on_pool;
use super::merge_command::{MergeCommand, candidate_files, filter_rows};
use super::merge_plan::{MergeClauses, MergePlan};
use super::row_pairs::{FILE, ROW, SOURCE_ROW, collect_pairs, row_locations};
use crate::commit::finish::CommitResult;
use crate::error::{Error, Result, invariant};
use crate::exec::{CancellationToken, ProgressCounter};
use crate::expr::{BoundExpr, BoundTree};
use crate::ops::merge::clauses::MergeRowAction;
use crate::ops::merge::join_keys::{JoinEquality, KeyColumn, SourceKeySummary};
use crate::ops::merge::source_buffer::SourceBuffer;
use crate::ops::rewrite::conflict_retry::{is_row_conflict, refresh_for_retry};
use crate::ops::rewrite::start_state::check_changeable;
use crate::ops::rewrite::target_table::FileRowSelection;
use crate::protocol::commit_line::Add;
use crate::scan::{self, BatchStream, MetadataColumn, PositionSelection, ScanRequest};
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType as Arrow, Field, Schema, SchemaRef};
use arrow_select::filter::{filter, filter_record_batch};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The outcome of an attempt to merge.
#[derive(Debug)]
pub enum MergeAttempt {
    /// It is committed.
    Done(Box<CommitResult>),
    /// Another writer changed rows that it read: the merge on the newest version, whose keys must
    /// be joined again.
    Conflict(Box<MergeJoin>),
}

/// A merge that waits for the pairs of matching rows.
#[derive(Debug, Clone)]
pub struct MergeJoin {
    pub(super) merge: MergeCommand,
    pub(super) plan: MergePlan,
    pub(super) clauses: MergeClauses,
    pub(super) rules: crate::file_writer::constraints::WriteRules,
    pub(super) source_buffer: Arc<SourceBuffer>,
    equalities: Vec<JoinEquality>,
    pub(super) key: Option<KeyColumn>,
    source_keys: Arc<SourceKeySummary>,
    pub(super) source_only: Option<BoundExpr>,
    pub(super) residual: Option<BoundExpr>,
    /// True for every row of the table that can match.
    pub(super) target_predicate: Option<BoundExpr>,
    can_match: bool,
    /// Files to read.
    pub(super) files: Vec<Add>,
    pub(super) read_time: Duration,
    /// The number of previous attempts.
    attempt: u32,
}

/// Names of the columns of keys and pairs.
const KEY: &str = "key";

impl MergeJoin {
    /// The number of files to read.
    #[must_use]
    pub fn files(&self) -> usize {
        self.files.len()
    }

    /// Bytes of memory that an engine may use for the join.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the budget is not a number of bytes.
    pub fn memory(&self) -> Result<u64> {
        self.merge.memory()
    }

    /// Whether an engine must join keys; otherwise [`MergeJoin::run`] needs no pairs.
    #[must_use]
    pub fn needs_join(&self) -> bool {
        self.key.is_some() && self.can_match && !self.files.is_empty()
    }

    /// The source's keys: `key`, and `source_row` int64.
    ///
    /// # Errors
    /// [`Error::Internal`] if no join is needed.
    pub fn source_keys(&self) -> Result<BatchStream> {
        let key = self
            .key
            .clone()
            .ok_or_else(|| Error::internal("there is nothing to join"))?;
        let fields = vec![
            Field::new(KEY, key.data_type(), false),
            Field::new(SOURCE_ROW, Arrow::Int64, false),
        ];
        let schema: SchemaRef = Arc::new(Schema::new(fields));
        let (spool, equalities, source_only, out) = (
            Arc::clone(&self.source_buffer),
            self.equalities.clone(),
            self.source_only.clone(),
            Arc::clone(&schema),
        );
        let batches = (0..self.source_buffer.batches()).map(move |n| {
            let batch = spool.batch(n, None)?;
            let start = i64::from(spool.start(n));
            let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(
                start..start + batch.num_rows() as i64,
            ));
            let (batch, numbers) = match &source_only {
                None => (batch, numbers),
                Some(predicate) => {
                    let held = predicate.filter_mask(&batch)?;
                    (
                        filter_record_batch(&batch, &held)?,
                        filter(&numbers, &held)?,
                    )
                }
            };
            let (_, key, usable) =
                key.encode_keys(equalities.iter().map(|equality| &equality.source), &batch)?;
            Ok(RecordBatch::try_new(
                Arc::clone(&out),
                vec![filter(&key, &usable)?, filter(&numbers, &usable)?],
            )?)
        });
        Ok(BatchStream {
            schema,
            batches: Box::new(batches),
            progress: ProgressCounter::default(),
        })
    }

    /// The keys of rows of the table that may match: `key`, `file` int32, `row` int64.
    ///
    /// # Errors
    /// As [`scan::scan`].
    pub fn target_keys(&self, cancel: &CancellationToken) -> Result<BatchStream> {
        let key = self
            .key
            .clone()
            .ok_or_else(|| Error::internal("there is nothing to join"))?;
        let fields = vec![
            Field::new(KEY, key.data_type(), false),
            Field::new(FILE, Arrow::Int32, false),
            Field::new(ROW, Arrow::Int64, false),
        ];
        let schema: SchemaRef = Arc::new(Schema::new(fields));
        let names: BTreeSet<&str> = self
            .equalities
            .iter()
            .flat_map(|equality| equality.target.column_names())
            .collect();
        // The bounds of the keys prune files and pages; single rows are filtered below.
        let request = ScanRequest {
            predicate: self.target_predicate.clone(),
            filter_rows: self.plan.target_only.is_some(),
            ..self.scan(names.into_iter().map(str::to_owned).collect(), None, cancel)
        };
        let scanned = scan::scan(&self.merge.snapshot, &request)?;
        let (equalities, known, out) = (
            self.equalities.clone(),
            Arc::clone(&self.source_keys),
            Arc::clone(&schema),
        );
        let keys = move |batch: RecordBatch| -> Result<RecordBatch> {
            let (_, key, usable) =
                key.encode_keys(equalities.iter().map(|equality| &equality.target), &batch)?;
            let usable = known.may_match(&key, &usable)?;
            let (file, row) = row_locations(&batch)?;
            Ok(RecordBatch::try_new(
                Arc::clone(&out),
                vec![
                    filter(&key, &usable)?,
                    filter(&file, &usable)?,
                    filter(&row, &usable)?,
                ],
            )?)
        };
        Ok(BatchStream {
            schema,
            batches: Box::new(map_on_pool(scanned.batches, keys, cancel)),
            progress: scanned.progress,
        })
    }

    /// A scan of the files, whose last columns are the number of the file and the position in it.
    pub(super) fn scan(
        &self,
        columns: Vec<String>,
        chosen: Option<PositionSelection>,
        cancel: &CancellationToken,
    ) -> ScanRequest {
        let files = self.files.iter().map(|add| add.path.clone()).collect();
        let metadata = vec![MetadataColumn::FileNumber, MetadataColumn::RowIndex];
        ScanRequest {
            columns: Some(columns),
            metadata,
            ..FileRowSelection {
                files,
                predicate: None,
                positions: chosen,
            }
            .scan(cancel)
        }
    }

    /// Applies the clauses, writes and commits. `pairs` are the rows of the join of both keys:
    /// `file`, `row` and `source_row`.
    ///
    /// # Errors
    /// [`Error::Invalid`] if several rows of the source would change one row of the table; as
    /// [`OptimisticTransaction::commit`](crate::commit::OptimisticTransaction::commit). New files
    /// are deleted after an error, unless the outcome of the commit is unknown.
    pub fn run(
        self,
        pairs: Option<impl Iterator<Item = Result<RecordBatch>>>,
        cancel: &CancellationToken,
    ) -> Result<MergeAttempt> {
        let again = (self.attempt < self.merge.options.max_conflict_retries).then(|| self.clone());
        match (self.run_once(pairs, cancel), again) {
            (Err(lost), Some(again)) if is_row_conflict(&lost) => {
                match again.rebase_on_newest(cancel)? {
                    Some(again) => Ok(MergeAttempt::Conflict(Box::new(again))),
                    None => Err(lost),
                }
            }
            (done, _) => Ok(MergeAttempt::Done(Box::new(done?))),
        }
    }

    /// The merge on the newest version; `None` if the table's definition changed.
    fn rebase_on_newest(mut self, cancel: &CancellationToken) -> Result<Option<Self>> {
        let Some(snapshot) = refresh_for_retry(
            &self.merge.snapshot,
            &mut self.merge.options.commit_options,
            self.attempt,
            cancel,
        )?
        else {
            return Ok(None);
        };
        self.files = candidate_files(
            &snapshot,
            &self.clauses,
            self.target_predicate.as_ref(),
            self.can_match,
            cancel,
        )?;
        self.merge.snapshot = snapshot;
        self.attempt += 1;
        Ok(Some(self))
    }

    fn run_once(
        self,
        pairs: Option<impl Iterator<Item = Result<RecordBatch>>>,
        cancel: &CancellationToken,
    ) -> Result<CommitResult> {
        invariant!(
            pairs.is_some() || !self.needs_join(),
            "the pairs of a join are missing"
        );
        let mut entries: Vec<Vec<MergeRowAction>> = vec![Vec::new(); self.files.len()];
        match pairs {
            Some(pairs) => collect_pairs(pairs, &mut entries, cancel)?,
            None if self.key.is_none() && self.can_match => {
                self.nested_loop_join(&mut entries, cancel)?;
            }
            None => {}
        }
        self.assign_matched_clauses(&mut entries, cancel)?;
        let mut read: BTreeSet<usize> = BTreeSet::new();
        let mut matched = vec![
            false;
            if self.clauses.not_matched.is_empty() {
                0
            } else {
                self.source_buffer.len() as usize
            }
        ];
        for (file, entries) in entries.iter().enumerate() {
            if !entries.is_empty() {
                read.insert(file);
            }
            for entry in entries {
                if let Some(slot) = matched.get_mut(entry.source as usize) {
                    *slot = true;
                }
            }
        }
        self.resolve_multiple_matches(&mut entries)?;
        self.assign_by_source_clauses(&mut entries, cancel)?;
        for entries in &mut entries {
            entries.retain(|entry| entry.clause_number != 0);
        }
        self.write(entries, matched, read, cancel)
    }
}

impl MergeCommand {
    /// Reads the source.
    ///
    /// # Errors
    /// [`Error::Invalid`] for rows that cannot be buffered, an append-only table, and invalid
    /// clauses; errors of the source.
    pub fn read_source(
        self,
        plan: &MergePlan,
        rows: impl Iterator<Item = Result<RecordBatch>>,
        cancel: &CancellationToken,
    ) -> Result<MergeJoin> {
        let clauses = MergeClauses::of(plan)?;
        if clauses.changes_existing_rows() {
            check_changeable(&self.snapshot)?;
        }
        let bound = |tree: &Option<BoundTree>| tree.as_ref().map(BoundExpr::new).transpose();
        let equalities = plan.equalities()?;
        let (target_only, source_only, residual) = (
            bound(&plan.target_only)?,
            bound(&plan.source_only)?,
            bound(&plan.residual)?,
        );
        self.check_identities(&clauses)?;
        let rules = plan
            .constraints
            .rules(&self.constraints, self.identities()?)?;
        let spool = Arc::new(self.buffer_source(rows, cancel)?);
        let key = if equalities.is_empty() {
            None
        } else {
            Some(KeyColumn::new(&equalities)?)
        };
        let mut known = SourceKeySummary::new(&equalities, spool.len().into())?;
        if let Some(key) = &key {
            for n in 0..spool.batches() {
                cancel.check()?;
                let batch = filter_rows(&spool.batch(n, None)?, source_only.as_ref())?;
                let (columns, key, usable) =
                    key.encode_keys(equalities.iter().map(|equality| &equality.source), &batch)?;
                known.note(&columns, &key, &usable)?;
            }
        }
        let can_match = spool.len() > 0 && (key.is_none() || known.rows > 0);
        let reads = self.target_predicate(target_only.as_ref(), &known, &equalities, can_match)?;
        let files = candidate_files(&self.snapshot, &clauses, reads.as_ref(), can_match, cancel)?;
        let read_time = self.started.elapsed();
        let known = Arc::new(known);
        Ok(MergeJoin {
            merge: self,
            plan: plan.clone(),
            clauses,
            rules,
            source_buffer: spool,
            equalities,
            key,
            source_keys: known,
            source_only,
            residual,
            target_predicate: reads,
            can_match,
            files,
            read_time,
            attempt: 0,
        })
    }
}
