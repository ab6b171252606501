//! A MERGE before its rows are joined: the definition of the table, and the source in memory.

use super::merge_plan::{MergeClauses, MergeOptions};
use crate::commit::adds::{all_live_adds, matching_live_adds};
use crate::error::{Error, ErrorCode, Result};
use crate::exec::{CancellationToken, memory_limit};
use crate::expr::{BoundExpr, Expr, Function};
use crate::file_writer::bound_constraints::{self, TableConstraints};
use crate::file_writer::cast::ColumnPositions;
use crate::ops::merge::clauses::ClauseAction;
use crate::ops::merge::join_keys::{JoinEquality, SourceKeySummary};
use crate::ops::merge::source_buffer::{SourceBuffer, SpillLimits};
use crate::ops::rewrite::partition_predicate::combine_exprs;
use crate::ops::rewrite::start_state::SchemaMode;
use crate::ops::rewrite::start_state::check_writable;
use crate::ops::rewrite::target_table::TargetTable;
use crate::ops::write::table_definition::evolved_definition;
use crate::ops::write::write_options::WriteOptions;
use crate::protocol::action::Metadata;
use crate::protocol::commit_line::Add;
use crate::protocol::schema::{DataType, StringLayout, StructField, StructType};
use crate::scan::FileMatcher;
use crate::snapshot::Snapshot;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{Field, Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use std::sync::Arc;
use std::time::Instant;

/// A merge whose target schema was determined.
#[derive(Debug, Clone)]
pub struct MergeCommand {
    pub(in crate::ops) snapshot: Snapshot,
    pub(super) options: MergeOptions,
    pub(super) source: StructType,
    /// The table after the merge.
    pub(in crate::ops) target: TargetTable,
    pub(super) is_changed: bool,
    pub(super) constraints: TableConstraints,
    pub(in crate::ops) started: Instant,
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

    /// The table's new metadata, if it changes.
    pub(in crate::ops) fn changed_metadata(&self) -> Option<Metadata> {
        self.is_changed.then(|| self.target.metadata.clone())
    }

    /// True for every row of the table that can match.
    pub(in crate::ops) fn target_predicate(
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
    pub(super) fn identities(
        &self,
    ) -> Result<Vec<crate::file_writer::constraints::IdentityColumn>> {
        let mut all = bound_constraints::identities(&self.target.protocol, &self.target.schema)?;
        for identity in &mut all {
            identity.allow_explicit = true;
        }
        Ok(all)
    }

    pub(in crate::ops) fn check_identities(&self, clauses: &MergeClauses) -> Result<()> {
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
                        return Err(Error::invalid("an identity column cannot be updated: its values are the table's to give; leave it out")
                            .with_code(ErrorCode::IdentityColumnUpdated, &[("column", name)])
                            .at_column(name));
                    }
                    Some(identity) if !identity.allow_explicit => {
                        return Err(Error::invalid("new rows give values for an identity column that is GENERATED ALWAYS; leave it out")
                            .with_code(ErrorCode::IdentityColumnInserted, &[("column", name)])
                            .at_column(name));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Bytes of memory for the source.
    pub(super) fn memory(&self) -> Result<u64> {
        self.options
            .max_spill_size
            .map_or_else(|| Ok(memory_limit()? / 2), Ok)
    }

    pub(super) fn buffer_source(
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
        let rule = self.options.encoding.cast_rule()?;
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
                    .cast(&slice, &self.source, rule)?
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
pub(in crate::ops) fn candidate_files(
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
pub(super) fn filter_rows(
    batch: &RecordBatch,
    predicate: Option<&BoundExpr>,
) -> Result<RecordBatch> {
    match predicate {
        None => Ok(batch.clone()),
        Some(predicate) => Ok(filter_record_batch(batch, &predicate.filter_mask(batch)?)?),
    }
}
