//! MERGE whose rows another engine joins and writes: commits a version from statistics of the
//! source's keys, row bitmaps and folders of files.
//!
//! [`MergeCommand::into_external_job`] takes what the engine knows of the source and determines
//! which files can match; [`EngineMergeJob::find_rows`] takes the positions of the rows that
//! clauses apply to; the engine writes; [`EngineMergeJob::run`] commits. The engine decides which
//! clause applies to a row. Actions, metrics and conflict checks are those of
//! [`crate::ops::merge`].
//!
//! Protocol: as [`crate::ops::merge`]. Cost: as [`crate::ops::engine_jobs::delete_update`].

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use arrow_array::RecordBatch;
use serde::{Deserialize, Serialize};

use crate::commit::finish::{self, CommitResult};
use crate::dv::RoaringBitmapArray;
use crate::error::{Error, Result};
use crate::exec::CancellationToken;
use crate::expr::BoundExpr;
use crate::file_writer::WriteOutput;
use crate::file_writer::bound_constraints;
use crate::file_writer::constraints::{IdentityColumn, advance};
use crate::ops::engine_jobs::delete_update::{RowBitmaps, TableRequirements, live_row_count};
use crate::ops::merge::clauses::MergeClause;
use crate::ops::merge::join_keys::{KeyColumn, SourceKeySummary};
use crate::ops::merge::merge_command::{MergeCommand, candidate_files};
use crate::ops::merge::merge_plan::{MergeClauses, MergePlan};
use crate::ops::merge::write::{MergeCommit, MergeMetrics};
use crate::ops::rewrite::matched_rows::MatchedRows;
use crate::ops::rewrite::row_deletion::{self, DeletionVectorUpdate};
use crate::ops::rewrite::start_state::check_changeable;
use crate::ops::rewrite::target_table::cdc_action;
use crate::ops::rewrite::uncommitted_files::add_action;
use crate::ops::rewrite::uncommitted_files::uncommitted_in_folders;
use crate::parse::mask;
use crate::protocol::commit_line::{Action, Add};

/// Statistics of a source.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceStatistics {
    /// The number of its rows.
    pub rows: u64,
    /// The number of rows that can match any row of the table.
    pub matchable_rows: u64,
    /// For each key, whether the given values are all values, not only their bounds.
    pub complete: Vec<bool>,
    /// An upper bound of the numbers of new rows, from which identity columns are computed.
    #[serde(default)]
    pub max_new_rows: u64,
}

/// What an engine must know of a table that it merges into.
#[derive(Debug, Clone, Serialize)]
pub struct MergeRequirements {
    #[serde(flatten)]
    table: TableRequirements,
    /// Whether the result does not depend on which of several source rows matches a row of the
    /// table.
    pub allows_multiple_matches: bool,
    /// Paths of the files to read.
    pub files: Vec<String>,
    /// Identity columns of new rows; a clause that sets no value for them gives the value of the
    /// row's number.
    pub identities: Vec<IdentityColumn>,
}

/// A merge that another engine runs.
#[derive(Debug)]
pub struct EngineMergeJob {
    merge: MergeCommand,
    plan: MergePlan,
    clauses: MergeClauses,
    /// Identity columns of new rows, and their last values if all row numbers are used.
    identities: Vec<IdentityColumn>,
    last_identities: Vec<(String, i64)>,
    target_predicate: Option<BoundExpr>,
    files: Vec<Add>,
    source_rows: u64,
    read_time: Duration,
    matches: Option<MergeMatches>,
}

/// Rows that clauses apply to.
#[derive(Debug)]
struct MergeMatches {
    touched_files: Vec<Add>,
    changed_rows: HashMap<String, RoaringBitmapArray>,
    metrics: MergeMetrics,
    matched_files: Vec<String>,
    scanned: Duration,
}

/// Kinds of marks: the change of a row, and whether a row of the source matches it.
const UPDATED: i64 = 1;
const DELETED: i64 = 2;
const UPDATED_BY_SOURCE: i64 = 3;
const DELETED_BY_SOURCE: i64 = 4;

impl MergeCommand {
    /// Continues as a job of another engine. `keys` has a column for each equality of the plan: all
    /// values of the source, or the least and the greatest value, and a null if there is any.
    ///
    /// # Errors
    /// As [`MergeCommand::read_source`]; [`Error::Invalid`] if an identity column has no more
    /// values.
    pub fn into_external_job(
        self,
        plan: &MergePlan,
        facts: &SourceStatistics,
        keys: impl Iterator<Item = Result<RecordBatch>>,
        cancel: &CancellationToken,
    ) -> Result<EngineMergeJob> {
        let clauses = MergeClauses::of(plan)?;
        if clauses.changes_existing_rows() {
            check_changeable(&self.snapshot)?;
        }
        self.check_identities(&clauses)?;
        let gives = |clause: &MergeClause, column: &str| {
            clause
                .values
                .iter()
                .any(|(path, _)| path.first().is_some_and(|name| name == column))
        };
        let mut identities =
            bound_constraints::identities(&self.target.protocol, &self.target.schema)?;
        identities.retain(|identity| {
            clauses
                .not_matched
                .iter()
                .any(|clause| !gives(clause, &identity.column))
        });
        let mut last = Vec::new();
        for mut identity in identities
            .iter()
            .filter(|_| facts.max_new_rows > 0)
            .cloned()
        {
            advance(
                &mut identity,
                usize::try_from(facts.max_new_rows).unwrap_or(usize::MAX),
            )?;
            last.push((identity.column, identity.next.wrapping_sub(identity.step)));
        }
        let equalities = plan.equalities()?;
        let mut known = SourceKeySummary::new(&equalities, 0)?;
        if !equalities.is_empty() {
            let key = KeyColumn::new(&equalities)?;
            for batch in keys {
                let batch = batch?;
                let (columns, key) = key.of(batch.columns())?;
                known.note(&columns, &key, &mask(vec![true; batch.num_rows()]))?;
            }
        }
        known.discard_partial_values(&facts.complete);
        let can_match = facts.rows > 0 && facts.matchable_rows > 0;
        let target_only = plan.target_only.as_ref().map(BoundExpr::new).transpose()?;
        let reads = self.target_predicate(target_only.as_ref(), &known, &equalities, can_match)?;
        let files = candidate_files(&self.snapshot, &clauses, reads.as_ref(), can_match, cancel)?;
        let read_time = self.started.elapsed();
        Ok(EngineMergeJob {
            merge: self,
            plan: plan.clone(),
            clauses,
            identities,
            last_identities: last,
            target_predicate: reads,
            files,
            source_rows: facts.rows,
            read_time,
            matches: None,
        })
    }
}

impl EngineMergeJob {
    /// The requirements for the engine.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for a table with contradicting metadata.
    pub fn requirements(&self, cancel: &CancellationToken) -> Result<MergeRequirements> {
        let table = TableRequirements::of(&self.merge.target, &self.merge.snapshot, cancel)?;
        let files = self.files.iter().map(|add| add.path.clone()).collect();
        Ok(MergeRequirements {
            table,
            allows_multiple_matches: self.clauses.allows_multiple_matches(),
            files,
            identities: self.identities.clone(),
        })
    }

    /// The number of files to read.
    #[must_use]
    pub fn files(&self) -> usize {
        self.files.len()
    }

    /// Sets the rows that clauses apply to, by kind; `files` are the paths of their files, by the
    /// file numbers in the bitmaps, `read` the paths of all files with matching rows. Returns the
    /// files that lose all their rows.
    ///
    /// # Errors
    /// As [`EngineDmlJob::find_rows`](crate::ops::EngineDmlJob::find_rows).
    pub fn find_rows(
        &mut self,
        marks: impl Iterator<Item = Result<RecordBatch>>,
        files: &BTreeMap<i32, String>,
        read: Vec<String>,
        cancel: &CancellationToken,
    ) -> Result<Vec<String>> {
        let marks = RowBitmaps::read(marks, files, cancel)?;
        let gone = marks.of(|_| true)?;
        let deleted = marks.of(|kind| matches!(kind, DELETED | DELETED_BY_SOURCE))?;
        let counts = marks.row_counts_by_kind();
        let count = |kind: i64| counts.get(&kind).copied().unwrap_or(0);
        let figures = MergeMetrics {
            source_rows: self.source_rows,
            updated: count(UPDATED),
            updated_by_source: count(UPDATED_BY_SOURCE),
            deleted: count(DELETED),
            deleted_by_source: count(DELETED_BY_SOURCE),
            inserted: 0,
        };
        let touched =
            MatchedRows::from_external_rows(&self.merge.snapshot, gone.clone(), cancel)?.files;
        let ended = MatchedRows::from_external_rows(&self.merge.snapshot, deleted, cancel)?
            .split_by_coverage()
            .0;
        let known: HashSet<&str> = read.iter().map(String::as_str).collect();
        let more: Vec<String> = touched
            .iter()
            .map(|add| &add.path)
            .filter(|path| !known.contains(path.as_str()))
            .cloned()
            .collect();
        let read = read.into_iter().chain(more).collect();
        self.matches = Some(MergeMatches {
            touched_files: touched,
            changed_rows: gone,
            metrics: figures,
            matched_files: read,
            scanned: self.merge.started.elapsed(),
        });
        Ok(ended.into_iter().map(|add| add.path).collect())
    }

    /// Commits. `rows` is the folder with new rows, and with remaining rows of copied files;
    /// `changes` is the folder with change data. After an error both are deleted, unless the
    /// outcome of the commit is unknown.
    ///
    /// # Errors
    /// As [`MergeJoin::run`](crate::ops::MergeJoin::run) and
    /// [`inspect_external_files`](crate::file_writer::engine_files::inspect_external_files).
    pub fn run(
        mut self,
        rows: Option<&str>,
        changes: Option<&str>,
        cancel: &CancellationToken,
    ) -> Result<CommitResult> {
        let snapshot = self.merge.snapshot.clone();
        let mut orphans = uncommitted_in_folders(
            snapshot.stores().root(),
            rows.into_iter().chain(changes),
            cancel,
        )?;
        let MergeMatches {
            touched_files: touched,
            changed_rows: gone,
            metrics: mut figures,
            matched_files: read,
            scanned,
        } = self
            .matches
            .take()
            .ok_or_else(|| Error::internal("a job is committed before its rows are found"))?;
        let target = &self.merge.target;
        let mut rest = Vec::new();
        let mut adopted = |folder: Option<&str>, is_feed: bool| -> Result<WriteOutput> {
            let Some(folder) = folder else {
                return Ok(WriteOutput::default());
            };
            let found = target.inspect_external_folder(folder, is_feed, &snapshot, cancel)?;
            rest.extend(found.non_data_files);
            Ok(WriteOutput {
                rows: found.files.iter().map(|file| file.num_records).sum(),
                files: found.files,
                identities: Vec::new(),
            })
        };
        let (written, told) = (adopted(rows, false)?, adopted(changes, true)?);
        let touches = !touched.is_empty();
        let (mut marked, copied) = if target.has_deletion_vectors() {
            (
                row_deletion::write_deletion_vectors(
                    &snapshot,
                    touched,
                    &gone,
                    &mut orphans,
                    cancel,
                )?,
                0,
            )
        } else {
            let mut stay = 0;
            for add in &touched {
                let gone = gone.get(&add.path).map_or(0, RoaringBitmapArray::len);
                stay += live_row_count(&snapshot, add)?.saturating_sub(gone);
            }
            (DeletionVectorUpdate::of_removed_files(&touched), stay)
        };
        figures.inserted = written
            .rows
            .saturating_sub(copied + figures.updated + figures.updated_by_source);
        let mut actions = std::mem::take(&mut marked.actions);
        let times = [self.merge.started.elapsed(), scanned, self.read_time];
        let mut operation = finish::operation(
            "MERGE",
            self.plan.parameters(),
            figures.metrics(&written, told.files.len(), &marked, times),
        );
        let mut metadata = self.merge.changed_metadata();
        if figures.inserted > 0 && !self.last_identities.is_empty() {
            operation.identity_only = metadata.is_none();
            metadata = Some(
                self.merge
                    .target
                    .with_high_water_marks(&self.last_identities),
            );
        }
        actions.extend(
            written
                .files
                .into_iter()
                .map(|file| Action::Add(add_action(file, &self.merge.target.metadata))),
        );
        actions.extend(
            told.files
                .into_iter()
                .map(|file| Action::Cdc(cdc_action(file))),
        );
        let ending = MergeCommit {
            merge: &self.merge,
            clauses: &self.clauses,
            reads: self.target_predicate.as_ref(),
            read: read.iter().map(String::as_str).collect(),
            changes_rows: touches,
            operation,
            metadata,
            actions,
        };
        let done = ending.commit(orphans, cancel)?;
        // Files that cannot be deleted are left to vacuum.
        let _ = snapshot.stores().root().delete_batch(&rest);
        Ok(done)
    }
}
