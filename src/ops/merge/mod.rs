//! MERGE: rows of a source, matched with rows of a table by a condition, update, delete and insert
//! rows.
//!
//! A merge has several steps, since expressions are bound and keys are joined outside of the core:
//! [`MergeCommand::plan`] determines the table's schema and the expressions to bind;
//! [`MergeCommand::read_source`] reads the source once and determines which rows of the table can
//! match; an engine joins [`MergeJoin::source_keys`] with [`MergeJoin::target_keys`];
//! [`MergeJoin::run`] takes the pairs of matching rows, applies the clauses, writes and commits.
//! Either deletion vectors mark the changed rows, whose new values are added in new files, or files
//! are copied.
//!
//! Protocol: "Deletion Vectors", "Change Data Files", "Row Tracking". Metrics and parameters are
//! those of delta-spark. Unlike there, several source rows may match a row of the table as long as
//! clauses apply to only one of them. Cost: reading the source once; the key columns of files that
//! may match; the columns of matched rows that conditions depend on; with deletion vectors all
//! columns of rows that change, otherwise all rows of files that have any. Memory: 12 bytes per
//! matched row, and the part of the source that is not spilled to a temporary file.

mod batch_pool;
pub(super) mod clauses;
pub(super) mod join_keys;
mod pairs;
mod row_pairs;
pub(super) mod source_buffer;
mod write;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{DataType as Arrow, Field, Schema, SchemaRef};
use arrow_select::filter::{filter, filter_record_batch};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::commit::adds::{all_live_adds, matching_live_adds};
use crate::commit::finish::{CommitOptions, CommitResult, json_string_list};
use crate::error::{Error, Result, invariant};
use crate::exec::{CancellationToken, ProgressCounter, memory_limit};
use crate::expr::{BoundExpr, Expr, Function};
use crate::ops::merge::clauses::{ClauseAction, ClausePlan, MergeClause, MergeRowAction};
use crate::ops::merge::join_keys::{JoinEquality, KeyColumn, SourceKeySummary};
use crate::ops::merge::source_buffer::{SourceBuffer, SpillLimits};
use crate::ops::rewrite::conflict_retry::{is_row_conflict, refresh_for_retry};
use crate::ops::rewrite::partition_predicate::combine_exprs;
use crate::ops::rewrite::start_state::SchemaMode;
use crate::ops::rewrite::start_state::{check_changeable, check_writable};
use crate::ops::rewrite::target_table::{DataFileOptions, FileRowSelection, TargetTable};
use crate::ops::write::{WriteOptions, evolved_definition};
use crate::protocol::action::Metadata;
use crate::protocol::commit_line::Add;
use crate::protocol::schema::{DataType, StringLayout, StructField, StructType};
use crate::scan::{self, BatchStream, FileMatcher, MetadataColumn, PositionSelection, ScanRequest};
use crate::snapshot::Snapshot;
use crate::write::bound_constraints::{self, TableConstraints};
use crate::write::cast::ColumnPositions;
use batch_pool::map_on_pool;
use row_pairs::{FILE, ROW, SOURCE_ROW, collect_pairs, row_locations};
pub(super) use write::{MergeCommit, MergeMetrics};

/// Options of a merge.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MergeOptions {
    /// How new files are made.
    pub encoding: DataFileOptions,
    /// How it is committed.
    pub commit_options: CommitOptions,
    /// Bytes of the source to keep in memory.
    pub max_spill_size: Option<u64>,
    /// The maximum size of temporary files in bytes.
    pub max_temp_directory_size: Option<u64>,
    /// The maximum number of retries on the newest version after another writer changed rows that
    /// were read.
    pub max_conflict_retries: u32,
}

/// The bound expressions of a merge.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MergePlan {
    /// The condition, as written by the caller.
    pub on: String,
    /// Its equalities between an expression of the table and one of the source.
    pub equalities: Vec<EqualityPlan>,
    /// Its conjuncts over the table's columns only.
    pub target_only: Option<Value>,
    /// Its conjuncts over the source's columns only.
    pub source_only: Option<Value>,
    /// The remaining conjuncts, over the structs `target` and `source`.
    pub residual: Option<Value>,
    /// Clauses for matched rows, over these structs.
    pub matched: Vec<ClausePlan>,
    /// Clauses for rows of the source that match no row of the table, over the source's columns.
    pub not_matched: Vec<ClausePlan>,
    /// Clauses for rows of the table that no row of the source matches, over the table's columns.
    pub by_source: Vec<ClausePlan>,
    /// The table's constraints.
    pub constraints: TableConstraints,
}

/// An equality of a [`MergePlan`].
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EqualityPlan {
    /// Expression over the table's columns.
    pub target: Value,
    /// Expression over the source's columns.
    pub source: Value,
    /// Whether null equals null.
    pub null_safe: bool,
}

impl MergePlan {
    pub(super) fn equalities(&self) -> Result<Vec<JoinEquality>> {
        let tree = |value: &Value| BoundExpr::from_value(value);
        let equality = |plan: &EqualityPlan| {
            Ok(JoinEquality {
                target: tree(&plan.target)?,
                source: tree(&plan.source)?,
                null_safe: plan.null_safe,
            })
        };
        self.equalities.iter().map(equality).collect()
    }

    /// The parameters in `commitInfo`.
    pub(super) fn parameters(&self) -> Value {
        let clauses = |plans: &[ClausePlan]| {
            let one = |plan: &ClausePlan| {
                let mut out = Map::new();
                out.extend(plan.condition.as_ref().map(|condition| {
                    ("predicate".to_owned(), Value::from(condition.sql.as_str()))
                }));
                out.insert("actionType".to_owned(), plan.action.name().into());
                Value::Object(out)
            };
            Value::String(Value::Array(plans.iter().map(one).collect()).to_string())
        };
        json!({
            "predicate": json_string_list(std::slice::from_ref(&self.on)),
            "matchedPredicates": clauses(&self.matched),
            "notMatchedPredicates": clauses(&self.not_matched),
            "notMatchedBySourcePredicates": clauses(&self.by_source),
        })
    }
}

/// A merge whose target schema was determined.
#[derive(Debug, Clone)]
pub struct MergeCommand {
    pub(super) snapshot: Snapshot,
    options: MergeOptions,
    source: StructType,
    /// The table after the merge.
    pub(super) target: TargetTable,
    is_changed: bool,
    constraints: TableConstraints,
    pub(super) started: Instant,
}

/// The maximum number of rows in a batch of the source.
const BATCH_ROWS: usize = 64 << 10;

impl MergeCommand {
    /// Determines the table's schema after the merge. `evolving` are the columns of the source, and
    /// fields in them, that may be added to the schema, `lacking` the table's columns that a new
    /// row may lack.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for tables that this release cannot write, [`Error::SchemaMismatch`]
    /// for columns that cannot be added.
    pub fn plan(
        snapshot: &Snapshot,
        source: StructType,
        evolving: &[Vec<String>],
        lacking: &[String],
        options: MergeOptions,
    ) -> Result<Self> {
        check_writable(snapshot)?;
        let asking = project_paths(
            &source,
            &evolving.iter().map(Vec::as_slice).collect::<Vec<_>>(),
        );
        let merging = WriteOptions {
            schema_mode: Some(SchemaMode::Merge),
            ..WriteOptions::default()
        };
        let (protocol, metadata, _) = evolved_definition(snapshot, &asking, &merging)?;
        let is_changed = metadata != *snapshot.metadata() || protocol != *snapshot.protocol();
        let schema = if is_changed {
            StructType::parse(&metadata.schema_string)?
        } else {
            snapshot.schema().clone()
        };
        let lacks = |field: &StructField| {
            lacking.contains(&field.name) || snapshot.schema().field(&field.name).is_none()
        };
        let constraints = TableConstraints::of(&protocol, &metadata, &schema, lacks)?;
        let encoding = options.encoding.clone();
        let target = TargetTable {
            protocol,
            metadata,
            schema,
            encoding,
        };
        Ok(Self {
            snapshot: snapshot.clone(),
            options,
            source,
            target,
            is_changed,
            constraints,
            started: Instant::now(),
        })
    }

    /// The expressions to bind, against [`MergeCommand::schema`].
    #[must_use]
    pub fn table_constraints(&self) -> &TableConstraints {
        &self.constraints
    }

    /// The table's schema after the merge.
    #[must_use]
    pub fn schema(&self) -> &StructType {
        &self.target.schema
    }

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
        let bound = |value: &Option<Value>| value.as_ref().map(BoundExpr::from_value).transpose();
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

    /// The table's new metadata, if it changes.
    pub(super) fn changed_metadata(&self) -> Option<Metadata> {
        self.is_changed.then(|| self.target.metadata.clone())
    }

    /// True for every row of the table that can match.
    pub(super) fn target_predicate(
        &self,
        target_only: Option<&BoundExpr>,
        known: &SourceKeySummary,
        equalities: &[JoinEquality],
        can_match: bool,
    ) -> Result<Option<BoundExpr>> {
        let bounds = if can_match {
            known.predicate(equalities)?
        } else {
            Some(Expr::boolean(Some(false)))
        };
        let parts: Vec<Expr> = target_only
            .filter(|_| can_match)
            .map(|bound| bound.expr.clone())
            .into_iter()
            .chain(bounds)
            .collect();
        let zone = self.snapshot.options().zone;
        Ok(if parts.is_empty() {
            None
        } else {
            Some(BoundExpr {
                expr: combine_exprs(Function::And, parts)?,
                ansi: true,
                zone,
            })
        })
    }

    /// Identity columns. Remaining rows have values already, so whether the source may set values
    /// was checked before.
    fn identities(&self) -> Result<Vec<crate::write::constraints::IdentityColumn>> {
        let mut all = bound_constraints::identities(&self.target.protocol, &self.target.schema)?;
        for identity in &mut all {
            identity.allow_explicit = true;
        }
        Ok(all)
    }

    pub(super) fn check_identities(&self, clauses: &MergeClauses) -> Result<()> {
        let identities = bound_constraints::identities(&self.target.protocol, &self.target.schema)?;
        for clause in clauses
            .matched
            .iter()
            .chain(&clauses.not_matched)
            .chain(&clauses.by_source)
        {
            for name in clause.values.iter().filter_map(|(path, _)| path.first()) {
                match identities.iter().find(|identity| identity.column == *name) {
                    Some(_) if clause.clause_action == ClauseAction::Update => {
                        return Err(Error::invalid("an identity column cannot be updated: its values are the table's to give; leave it out").at_column(name));
                    }
                    Some(identity) if !identity.allow_explicit => {
                        return Err(Error::invalid("new rows give values for an identity column that is GENERATED ALWAYS; leave it out").at_column(name));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Bytes of memory for the source.
    fn memory(&self) -> Result<u64> {
        self.options
            .max_spill_size
            .map_or_else(|| Ok(memory_limit()? / 2), Ok)
    }

    fn buffer_source(
        &self,
        rows: impl Iterator<Item = Result<RecordBatch>>,
        cancel: &CancellationToken,
    ) -> Result<SourceBuffer> {
        let fields: Vec<Field> = self
            .source
            .fields
            .iter()
            .map(|field| field.to_arrow(StringLayout::Plain).with_nullable(true))
            .collect();
        let schema: SchemaRef = Arc::new(Schema::new(fields));
        let limits = SpillLimits {
            memory: self.memory()?,
            file: self.options.max_temp_directory_size,
        };
        let mut spool = SourceBuffer::new(Arc::clone(&schema), limits);
        let zone = self.options.encoding.zone()?;
        for batch in rows {
            cancel.check()?;
            let batch = batch?;
            let columns = ColumnPositions::find(batch.schema_ref(), &self.source)?;
            let mut start = 0;
            while start < batch.num_rows() {
                let slice = batch.slice(start, BATCH_ROWS.min(batch.num_rows() - start));
                start += slice.num_rows();
                let plain = |(array, field): (Option<ArrayRef>, &Arc<Field>)| -> Result<ArrayRef> {
                    let array = array.ok_or_else(|| {
                        Error::invalid("a batch of the source lacks a column")
                            .at_column(field.name())
                    })?;
                    Ok(if array.data_type() == field.data_type() {
                        array
                    } else {
                        cast(&array, field.data_type())?
                    })
                };
                let arrays = columns
                    .cast(&slice, &self.source, zone)?
                    .into_iter()
                    .zip(schema.fields())
                    .map(plain)
                    .collect::<Result<Vec<_>>>()?;
                spool.push(RecordBatch::try_new(Arc::clone(&schema), arrays)?)?;
            }
        }
        Ok(spool)
    }
}

/// The columns at some paths; for paths into structs, their fields.
fn project_paths(whole: &StructType, paths: &[&[String]]) -> StructType {
    let part = |field: &StructField| {
        let rests: Vec<&[String]> = paths
            .iter()
            .filter_map(|path| path.split_first())
            .filter(|(name, _)| **name == field.name)
            .map(|(_, rest)| rest)
            .collect();
        match &field.data_type {
            _ if rests.is_empty() => None,
            DataType::Struct(fields) if rests.iter().all(|rest| !rest.is_empty()) => {
                Some(StructField {
                    data_type: DataType::Struct(Arc::new(project_paths(fields, &rests))),
                    ..field.clone()
                })
            }
            _ => Some(field.clone()),
        }
    };
    StructType {
        fields: whole.fields.iter().filter_map(part).collect(),
    }
}

/// The files of the table that a merge reads.
pub(super) fn candidate_files(
    snapshot: &Snapshot,
    clauses: &MergeClauses,
    reads: Option<&BoundExpr>,
    can_match: bool,
    cancel: &CancellationToken,
) -> Result<Vec<Add>> {
    match (reads, clauses.by_source.is_empty()) {
        (Some(_), true) if !can_match => Ok(Vec::new()),
        (Some(predicate), true) => {
            let lens = FileMatcher::new(snapshot, vec![predicate.clone()]);
            matching_live_adds(snapshot, cancel, |batch| lens.matching(batch))
        }
        _ => all_live_adds(snapshot, cancel),
    }
}

/// The rows for which a predicate is true, all without one.
fn filter_rows(batch: &RecordBatch, predicate: Option<&BoundExpr>) -> Result<RecordBatch> {
    match predicate {
        None => Ok(batch.clone()),
        Some(predicate) => Ok(filter_record_batch(batch, &predicate.filter_mask(batch)?)?),
    }
}

#[derive(Debug, Clone)]
pub(super) struct MergeClauses {
    pub matched: Vec<MergeClause>,
    pub not_matched: Vec<MergeClause>,
    pub by_source: Vec<MergeClause>,
}

impl MergeClauses {
    pub(super) fn of(plan: &MergePlan) -> Result<Self> {
        let out = Self {
            matched: MergeClause::of(&plan.matched)?,
            not_matched: MergeClause::of(&plan.not_matched)?,
            by_source: MergeClause::of(&plan.by_source)?,
        };
        if out.matched.is_empty() && out.not_matched.is_empty() && out.by_source.is_empty() {
            return Err(Error::invalid("a MERGE needs at least one WHEN clause"));
        }
        Ok(out)
    }

    /// Whether existing rows may change.
    pub(super) fn changes_existing_rows(&self) -> bool {
        !self.matched.is_empty() || !self.by_source.is_empty()
    }

    /// Whether the result does not depend on which of several source rows matches a row of the
    /// table.
    pub(super) fn allows_multiple_matches(&self) -> bool {
        matches!(
            self.matched.as_slice(),
            [MergeClause {
                clause_action: ClauseAction::Delete,
                condition: None,
                ..
            }]
        ) || self.matched.is_empty()
    }
}

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
    merge: MergeCommand,
    plan: MergePlan,
    clauses: MergeClauses,
    rules: crate::write::constraints::WriteRules,
    source_buffer: Arc<SourceBuffer>,
    equalities: Vec<JoinEquality>,
    key: Option<KeyColumn>,
    source_keys: Arc<SourceKeySummary>,
    source_only: Option<BoundExpr>,
    residual: Option<BoundExpr>,
    /// True for every row of the table that can match.
    target_predicate: Option<BoundExpr>,
    can_match: bool,
    /// Files to read.
    files: Vec<Add>,
    read_time: Duration,
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
    fn scan(
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
