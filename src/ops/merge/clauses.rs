//! The clauses of a MERGE: which clause applies to a row, and the values that it assigns.
//!
//! Conditions are evaluated in the order of the clauses and only for rows to which no earlier
//! clause applies, values only for the rows of their clause: an expression cannot fail for other
//! rows.
//!
//! Cost: one pass over the rows to which clauses may apply.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, RecordBatch, RecordBatchOptions, StructArray, UInt32Array, new_null_array,
};
use arrow_cast::cast;
use arrow_schema::{Field, Fields, Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use arrow_select::interleave::interleave;
use arrow_select::nullif::nullif;
use arrow_select::take::{take, take_record_batch};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Deserialize;

use crate::error::{Error, ErrorCode, Result};
use crate::expr::BoundExpr;
use crate::file_writer::bound_constraints::NamedExpression;
use crate::file_writer::cast::{self as fit, ColumnPositions};
use crate::file_writer::cast_values::CastRule;
use crate::file_writer::constraints::ComputedColumn;
use crate::ops::merge::source_buffer::SourceBuffer;
use crate::ops::rewrite::column_values::{ValuePlan, with_field};
use crate::parse::mask;
use crate::protocol::schema::{StringLayout, StructField, StructType};

/// The action of a clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClauseAction {
    /// Assigns values to columns.
    Update,
    /// Deletes the row.
    Delete,
    /// Inserts a row.
    Insert,
}

impl ClauseAction {
    pub(in crate::ops) fn name(self) -> &'static str {
        match self {
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Insert => "insert",
        }
    }
}

/// A clause as the caller bound it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClausePlan {
    /// Its action.
    pub action: ClauseAction,
    /// The condition; the clause applies to all rows if `None`.
    #[serde(default)]
    pub condition: Option<NamedExpression>,
    /// The assigned values.
    #[serde(default)]
    pub values: Vec<ValuePlan>,
}

/// The struct columns of both sides for clauses of matched rows.
pub(in crate::ops) const TARGET: &str = "target";
pub(in crate::ops) const SOURCE: &str = "source";

/// A clause.
#[derive(Debug, Clone)]
pub(in crate::ops) struct MergeClause {
    pub clause_action: ClauseAction,
    pub condition: Option<BoundExpr>,
    pub values: Vec<(Vec<String>, BoundExpr)>,
}

impl MergeClause {
    pub(in crate::ops) fn of(plans: &[ClausePlan]) -> Result<Vec<Self>> {
        if plans.len() > 100 {
            return Err(Error::invalid(
                "a MERGE takes at most 100 clauses of a kind",
            ));
        }
        let value = |plan: &ValuePlan| Ok((plan.path.clone(), BoundExpr::new(&plan.tree)?));
        let one = |plan: &ClausePlan| {
            let condition = plan
                .condition
                .as_ref()
                .map(NamedExpression::bound)
                .transpose()?;
            Ok(Self {
                clause_action: plan.action,
                condition,
                values: plan.values.iter().map(value).collect::<Result<_>>()?,
            })
        };
        plans.iter().map(one).collect()
    }
}

/// The clause that applies to each row: its number from 1 on, or 0.
pub(in crate::ops) fn assign_clauses(
    clauses: &[MergeClause],
    batch: &RecordBatch,
) -> Result<Vec<u8>> {
    let mut out = vec![0_u8; batch.num_rows()];
    for (number, clause) in (1_u8..).zip(clauses) {
        let open: Vec<usize> = out
            .iter()
            .enumerate()
            .filter(|(_, taken)| **taken == 0)
            .map(|(row, _)| row)
            .collect();
        if open.is_empty() {
            break;
        }
        let held = match &clause.condition {
            None => None,
            Some(condition) if open.len() == out.len() => Some(condition.filter_mask(batch)?),
            Some(condition) => {
                let few = filter_record_batch(
                    batch,
                    &mask(out.iter().map(|taken| *taken == 0).collect()),
                )?;
                Some(condition.filter_mask(&few)?)
            }
        };
        for (n, row) in open.into_iter().enumerate() {
            if held
                .as_ref()
                .is_none_or(|held| held.is_valid(n) && held.value(n))
                && let Some(slot) = out.get_mut(row)
            {
                *slot = number;
            }
        }
    }
    Ok(out)
}

/// The columns of one side that expressions depend on, by name.
pub(in crate::ops) fn required_columns<'a>(
    exprs: impl Iterator<Item = &'a BoundExpr>,
    side: &str,
) -> BTreeSet<String> {
    let columns = exprs.flat_map(BoundExpr::columns);
    columns
        .filter(|path| path.first().is_some_and(|first| first == side))
        .filter_map(|path| path.get(1).cloned())
        .collect()
}

/// All expressions of clauses.
pub(in crate::ops) fn exprs(
    clauses: &[MergeClause],
    with_values: bool,
) -> impl Iterator<Item = &BoundExpr> {
    clauses.iter().flat_map(move |clause| {
        clause.condition.iter().chain(
            clause
                .values
                .iter()
                .filter(move |_| with_values)
                .map(|(_, expr)| expr),
        )
    })
}

/// Columns as one struct array.
fn to_struct_array(batch: &RecordBatch) -> Result<ArrayRef> {
    if batch.num_columns() == 0 {
        return Ok(Arc::new(StructArray::new_empty_fields(
            batch.num_rows(),
            None,
        )));
    }
    let fields: Fields = batch
        .schema()
        .fields()
        .iter()
        .map(|field| Arc::new(field.as_ref().clone().with_nullable(true)))
        .collect();
    Ok(Arc::new(StructArray::try_new(
        fields,
        batch.columns().to_vec(),
        None,
    )?))
}

/// Rows with the columns of both sides, as two structs.
pub(in crate::ops) fn join_rows(target: &RecordBatch, source: &RecordBatch) -> Result<RecordBatch> {
    let arrays = [to_struct_array(target)?, to_struct_array(source)?];
    let fields: Vec<Field> = [TARGET, SOURCE]
        .iter()
        .zip(&arrays)
        .map(|(name, array)| Field::new(*name, array.data_type().clone(), false))
        .collect();
    Ok(RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        arrays.to_vec(),
    )?)
}

/// The columns of a batch with these names.
pub(in crate::ops) fn project_columns(
    batch: &RecordBatch,
    names: &BTreeSet<String>,
) -> Result<RecordBatch> {
    let schema = batch.schema_ref();
    let mut positions: FxHashMap<&str, usize> = FxHashMap::default();
    for (n, field) in schema.fields().iter().enumerate() {
        positions.entry(field.name()).or_insert(n);
    }
    let places = names
        .iter()
        .map(|name| match positions.get(name.as_str()) {
            Some(n) => Ok(*n),
            None => schema.index_of(name),
        })
        .collect::<std::result::Result<Vec<_>, _>>()?;
    Ok(batch.project(&places)?)
}

/// A row of the table and its change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ops) struct MergeRowAction {
    /// Position in its file.
    pub row: u32,
    /// The matching row of the source, or [`NO_ROW`].
    pub source: u32,
    /// 0 for no clause, from 1 on a clause for matched rows, from [`BY_SOURCE`] on one for rows
    /// that no source row matches.
    pub clause_number: u8,
}

pub(in crate::ops) const NO_ROW: u32 = u32::MAX;
pub(in crate::ops) const BY_SOURCE: u8 = 128;

/// Assigns new values to rows of the table.
pub(in crate::ops) struct MergeUpdater {
    pub source_buffer: Arc<SourceBuffer>,
    /// Columns of the buffered source.
    pub source: StructType,
    /// The table's columns as scanned.
    pub table_schema: StructType,
    /// The table's columns as written.
    pub target_schema: StructType,
    pub matched: Vec<MergeClause>,
    pub by_source: Vec<MergeClause>,
    /// Generated columns, computed from the others unless they are assigned.
    pub generated: Vec<ComputedColumn>,
    pub cast_rule: CastRule,
    /// Rows that change, by file.
    pub updates: Vec<Vec<MergeRowAction>>,
    /// The names in files of the row tracking columns, which follow the table's columns.
    pub row_tracking_names: Vec<String>,
    /// The columns of the source that [`Self::matched`] needs.
    pub source_columns: BTreeSet<String>,
    /// Indexes of the table's columns that are not scanned, since all rows get new values for them.
    pub unread: BTreeSet<usize>,
}

fn updates(clauses: &[MergeClause]) -> impl Iterator<Item = &MergeClause> {
    clauses
        .iter()
        .filter(|clause| clause.clause_action == ClauseAction::Update)
}

/// Indexes of columns that are assigned in each updated row, and that no assigned value depends on.
pub(in crate::ops) fn always_assigned_columns(
    columns: &StructType,
    matched: &[MergeClause],
    by_source: &[MergeClause],
    generated: &[ComputedColumn],
) -> BTreeSet<usize> {
    fn values(clauses: &[MergeClause]) -> impl Iterator<Item = &BoundExpr> {
        updates(clauses).flat_map(|clause| clause.values.iter().map(|(_, expr)| expr))
    }
    let mut used = required_columns(values(matched), TARGET);
    used.extend(
        values(by_source)
            .flat_map(BoundExpr::column_names)
            .map(str::to_owned),
    );
    let generated: FxHashSet<&str> = generated.iter().map(|rule| rule.column.as_str()).collect();
    // The columns that each clause assigns, and whether as a whole.
    let assigned: Vec<FxHashMap<&str, bool>> = updates(matched)
        .chain(updates(by_source))
        .map(|clause| {
            let mut columns = FxHashMap::default();
            for (path, _) in &clause.values {
                if let Some((first, rest)) = path.split_first() {
                    *columns.entry(first.as_str()).or_default() |= rest.is_empty();
                }
            }
            columns
        })
        .collect();
    let is_replaced = |name: &str| {
        !used.contains(name)
            && assigned.iter().all(|columns| match columns.get(name) {
                Some(is_whole) => *is_whole,
                None => generated.contains(name),
            })
    };
    (0..)
        .zip(&columns.fields)
        .filter(|(_, field)| is_replaced(&field.name))
        .map(|(n, _)| n)
        .collect()
}

/// New values of some rows: the rows, and the columns that change.
type ColumnPatch = (Vec<u32>, Vec<Option<ArrayRef>>);

impl MergeUpdater {
    /// A scanned batch with nulls for the columns that were not scanned.
    fn with_unread_columns(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        if self.unread.is_empty() {
            return Ok(batch.clone());
        }
        let (schema, mut scanned) = (batch.schema(), (0..).zip(batch.columns()));
        let mut fields: Vec<Arc<Field>> = Vec::new();
        let mut arrays: Vec<ArrayRef> = Vec::new();
        for (n, field) in self.table_schema.fields.iter().enumerate() {
            if self.unread.contains(&n) {
                let field = field.to_arrow(StringLayout::Plain).with_nullable(true);
                arrays.push(new_null_array(field.data_type(), batch.num_rows()));
                fields.push(Arc::new(field));
            } else if let Some((n, array)) = scanned.next() {
                fields.push(Arc::new(schema.field(n).clone()));
                arrays.push(Arc::clone(array));
            }
        }
        for (n, array) in scanned {
            fields.push(Arc::new(schema.field(n).clone()));
            arrays.push(Arc::clone(array));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(
            Arc::new(Schema::new(fields)),
            arrays,
            &options,
        )?)
    }

    /// The rows to write for a scanned batch, whose last columns are the file number and the row's
    /// position.
    pub(in crate::ops) fn update_batch(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let batch = &self.with_unread_columns(batch)?;
        let rows = batch.num_rows();
        let table = self.table_schema.fields.len();
        let lacking = || Error::internal("a scan lacks a column of the table");
        let place = |n: usize| batch.columns().get(n).ok_or_else(lacking);
        let tracked: Vec<ArrayRef> = batch
            .columns()
            .get(table..table + self.row_tracking_names.len())
            .ok_or_else(lacking)?
            .to_vec();
        let file = place(table + self.row_tracking_names.len())?
            .as_primitive_opt::<Int32Type>()
            .ok_or_else(lacking)?
            .values()
            .first()
            .copied();
        let index = place(table + self.row_tracking_names.len() + 1)?
            .as_primitive_opt::<Int64Type>()
            .ok_or_else(lacking)?
            .values();
        let columns: Vec<usize> = (0..table).collect();
        let old = batch.project(&columns)?;
        let base = if self.table_schema == self.target_schema {
            old.columns().to_vec()
        } else {
            self.cast_to_target(
                ColumnPositions::find(old.schema_ref(), &self.target_schema)?.cast(
                    &old,
                    &self.target_schema,
                    self.cast_rule,
                )?,
                rows,
            )?
        };
        let entries = file
            .and_then(|file| self.updates.get(usize::try_from(file).ok()?))
            .map_or(&[][..], Vec::as_slice);
        let mut by_action: BTreeMap<u8, (Vec<u32>, Vec<u32>)> = BTreeMap::new();
        let first = index.first().map_or(0, |first| {
            entries.partition_point(|entry| i64::from(entry.row) < *first)
        });
        let mut at = 0;
        for entry in entries.get(first..).unwrap_or_default() {
            while index
                .get(at)
                .is_some_and(|index| *index < i64::from(entry.row))
            {
                at += 1;
            }
            match index.get(at) {
                None => break,
                Some(index) if *index == i64::from(entry.row) => {
                    let (positions, sources) = by_action.entry(entry.clause_number).or_default();
                    positions.push(at as u32);
                    sources.push(entry.source);
                }
                Some(_) => {}
            }
        }
        let parts = by_action.into_iter().map(|(action, (positions, sources))| {
            self.evaluate_clause(&old, &base, action, positions, &sources)
        });
        let parts = parts.collect::<Result<Vec<ColumnPatch>>>()?;
        let mut arrays = Vec::with_capacity(base.len() + tracked.len());
        for (n, column) in base.iter().enumerate() {
            arrays.push(apply_patches(column, &parts, n)?);
        }
        for (n, column) in tracked.into_iter().enumerate() {
            // A row that changes loses its commit version and thereby gets that of the commit.
            arrays.push(if n == 1 && !parts.is_empty() {
                let mut changed = vec![false; rows];
                for position in parts.iter().flat_map(|(positions, _)| positions) {
                    if let Some(slot) = changed.get_mut(*position as usize) {
                        *slot = true;
                    }
                }
                nullif(&column, &mask(changed))?
            } else {
                column
            });
        }
        let names = self
            .target_schema
            .fields
            .iter()
            .map(|field| field.name.as_str())
            .chain(self.row_tracking_names.iter().map(String::as_str));
        let fields: Vec<Field> = names
            .zip(&arrays)
            .map(|(name, array)| Field::new(name, array.data_type().clone(), true))
            .collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(
            Arc::new(Schema::new(fields)),
            arrays,
            &options,
        )?)
    }

    /// Columns cast to exactly the table's types; nulls for missing ones.
    fn cast_to_target(&self, columns: Vec<Option<ArrayRef>>, rows: usize) -> Result<Vec<ArrayRef>> {
        let one = |(column, field): (Option<ArrayRef>, &StructField)| {
            let plain = field.data_type.to_arrow(StringLayout::Plain);
            Ok(match column {
                None => new_null_array(&plain, rows),
                Some(column) if *column.data_type() == plain => column,
                Some(column) => cast(&column, &plain)?,
            })
        };
        columns
            .into_iter()
            .zip(&self.target_schema.fields)
            .map(one)
            .collect()
    }

    /// Computes the new values of the rows of a clause.
    fn evaluate_clause(
        &self,
        old: &RecordBatch,
        base: &[ArrayRef],
        action: u8,
        positions: Vec<u32>,
        sources: &[u32],
    ) -> Result<ColumnPatch> {
        let indices = UInt32Array::from(positions.clone());
        let (clause, rows) = if action >= BY_SOURCE {
            (
                self.by_source.get(usize::from(action - BY_SOURCE)),
                take_record_batch(old, &indices)?,
            )
        } else {
            let clause = self.matched.get(usize::from(action).wrapping_sub(1));
            (clause, self.joined_rows(clause, old, &indices, sources)?)
        };
        let clause =
            clause.ok_or_else(|| Error::internal("a row is for a clause that there is not"))?;
        let mut columns = ClauseColumns {
            base,
            indices,
            values: vec![None; base.len()],
        };
        for (path, expr) in &clause.values {
            self.assign_value(path, expr, &rows, &mut columns)?;
        }
        self.compute_generated_columns(clause, &mut columns)?;
        Ok((positions, columns.values))
    }

    /// Joins rows of the table with their rows of the source, with the columns that the clause
    /// needs.
    fn joined_rows(
        &self,
        clause: Option<&MergeClause>,
        old: &RecordBatch,
        indices: &UInt32Array,
        sources: &[u32],
    ) -> Result<RecordBatch> {
        let places = self
            .source_columns
            .iter()
            .filter_map(|name| self.source.fields.position(name))
            .collect::<Vec<_>>();
        let of_target = required_columns(
            exprs(clause.map_or(&[][..], std::slice::from_ref), true),
            TARGET,
        );
        let target = if of_target.is_empty() {
            let options = RecordBatchOptions::new().with_row_count(Some(indices.len()));
            RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options)?
        } else {
            take_record_batch(&project_columns(old, &of_target)?, indices)?
        };
        join_rows(&target, &self.source_buffer.take(sources, &places)?)
    }

    /// Assigns the value of an expression to a column or a field in it.
    fn assign_value(
        &self,
        path: &[String],
        expr: &BoundExpr,
        rows: &RecordBatch,
        columns: &mut ClauseColumns<'_>,
    ) -> Result<()> {
        let (name, rest) = path
            .split_first()
            .ok_or_else(|| Error::internal("a value is for no column"))?;
        let (n, field) = self.target_column(name).ok_or_else(|| {
            Error::invalid(format!("the table has no column `{name}`"))
                .with_code(ErrorCode::ColumnNotFound, &[("column", name)])
        })?;
        let value = expr
            .evaluate(rows)
            .map_err(|e| e.at_column(path.join(".")))?;
        let value = if rest.is_empty() {
            value
        } else {
            with_field(
                &columns.current(n)?,
                &field.data_type,
                rest,
                &value,
                self.cast_rule,
            )?
        };
        let value = fit::value(&value, &field.data_type, name, self.cast_rule)?;
        let plain = field.data_type.to_arrow(StringLayout::Plain);
        let value = if *value.data_type() == plain {
            value
        } else {
            cast(&value, &plain)?
        };
        if let Some(slot) = columns.values.get_mut(n) {
            *slot = Some(value);
        }
        Ok(())
    }

    /// Computes the generated columns that the clause does not assign.
    fn compute_generated_columns(
        &self,
        clause: &MergeClause,
        columns: &mut ClauseColumns<'_>,
    ) -> Result<()> {
        let is_assigned = |name: &str| {
            clause
                .values
                .iter()
                .any(|(path, _)| path.first().is_some_and(|first| first == name))
        };
        let open: Vec<&ComputedColumn> = self
            .generated
            .iter()
            .filter(|rule| !is_assigned(&rule.column))
            .collect();
        if open.is_empty() {
            return Ok(());
        }
        let names: BTreeSet<&str> = open
            .iter()
            .flat_map(|rule| rule.expr.column_names())
            .collect();
        let (mut fields, mut arrays) = (Vec::<Field>::new(), Vec::<ArrayRef>::new());
        for (n, field) in self.target_schema.fields.iter().enumerate() {
            if names.contains(field.name.as_str()) {
                let array = columns.current(n)?;
                fields.push(Field::new(&field.name, array.data_type().clone(), true));
                arrays.push(array);
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(columns.indices.len()));
        let batch =
            RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)?;
        for rule in open {
            let value = rule
                .expr
                .evaluate(&batch)
                .map_err(|e| e.at_column(&rule.column))?;
            if let Some((n, field)) = self.target_column(&rule.column)
                && let Some(slot) = columns.values.get_mut(n)
            {
                *slot = Some(cast(
                    &value,
                    &field.data_type.to_arrow(StringLayout::Plain),
                )?);
            }
        }
        Ok(())
    }

    /// The index of a column of the target schema, and its field.
    fn target_column(&self, name: &str) -> Option<(usize, &StructField)> {
        let fields = &self.target_schema.fields;
        let n = fields.position(name)?;
        Some((n, fields.get(n)?))
    }
}

/// The columns of the rows of a clause, with the values that are assigned so far.
struct ClauseColumns<'a> {
    /// The columns of all rows of the batch.
    base: &'a [ArrayRef],
    /// The rows of the clause in the batch.
    indices: UInt32Array,
    /// New values by column.
    values: Vec<Option<ArrayRef>>,
}

impl ClauseColumns<'_> {
    /// The new values of a column if it is assigned, its old values otherwise.
    fn current(&self, n: usize) -> Result<ArrayRef> {
        match self.values.get(n) {
            Some(Some(column)) => Ok(Arc::clone(column)),
            _ => Ok(take(
                self.base
                    .get(n)
                    .ok_or_else(|| Error::internal("a column is missing"))?,
                &self.indices,
                None,
            )?),
        }
    }
}

/// The column with the new values of some rows.
fn apply_patches(column: &ArrayRef, parts: &[ColumnPatch], n: usize) -> Result<ArrayRef> {
    let new: Vec<(&Vec<u32>, &ArrayRef)> = parts
        .iter()
        .filter_map(|(positions, columns)| Some((positions, columns.get(n)?.as_ref()?)))
        .collect();
    match new.as_slice() {
        [] => return Ok(Arc::clone(column)),
        // All rows of the batch, in order.
        [(positions, values)] if positions.len() == column.len() => return Ok(Arc::clone(values)),
        _ => {}
    }
    let mut indices: Vec<(usize, usize)> = (0..column.len()).map(|row| (0, row)).collect();
    let mut arrays: Vec<&dyn Array> = vec![column.as_ref()];
    for (positions, values) in new {
        for (n, position) in positions.iter().enumerate() {
            if let Some(slot) = indices.get_mut(*position as usize) {
                *slot = (arrays.len(), n);
            }
        }
        arrays.push(values.as_ref());
    }
    Ok(interleave(&arrays, &indices)?)
}

/// Builds the rows to insert from rows of the source.
pub(in crate::ops) struct MergeInserter {
    pub source_buffer: Arc<SourceBuffer>,
    pub clauses: Vec<MergeClause>,
    /// Whether each row of the source matches a row of the table.
    pub matched: Vec<bool>,
    /// The columns of the rows of each clause.
    pub schemas: Vec<SchemaRef>,
}

impl MergeInserter {
    pub(in crate::ops) fn new(
        spool: Arc<SourceBuffer>,
        clauses: Vec<MergeClause>,
        matched: Vec<bool>,
    ) -> Self {
        let schema = |clause: &MergeClause| {
            let fields = clause.values.iter().filter_map(|(path, expr)| {
                let data_type = expr.data_type().to_arrow(StringLayout::Plain);
                Some(Field::new(path.first()?, data_type, true))
            });
            Arc::new(Schema::new(fields.collect::<Vec<_>>()))
        };
        let schemas = clauses.iter().map(schema).collect();
        Self {
            source_buffer: spool,
            clauses,
            matched,
            schemas,
        }
    }

    /// The new rows of a batch of the source, by clause.
    pub(in crate::ops) fn inserted_rows(&self, n: usize) -> Result<Vec<RecordBatch>> {
        let start = self.source_buffer.start(n) as usize;
        let batch = self.source_buffer.batch(n, None)?;
        let open: Vec<bool> = (0..batch.num_rows())
            .map(|row| self.matched.get(start + row) != Some(&true))
            .collect();
        if !open.contains(&true) {
            return Ok(Vec::new());
        }
        let batch = if open.contains(&false) {
            filter_record_batch(&batch, &mask(open))?
        } else {
            batch
        };
        let taken = assign_clauses(&self.clauses, &batch)?;
        let mut out = Vec::new();
        for ((number, clause), schema) in (1_u8..).zip(&self.clauses).zip(&self.schemas) {
            let chosen: Vec<bool> = taken.iter().map(|taken| *taken == number).collect();
            if !chosen.contains(&true) {
                continue;
            }
            let rows = if chosen.contains(&false) {
                filter_record_batch(&batch, &mask(chosen))?
            } else {
                batch.clone()
            };
            let value =
                |((path, expr), field): (&(Vec<String>, BoundExpr), &Arc<Field>)| -> Result<ArrayRef> {
                    let value = expr
                        .evaluate(&rows)
                        .map_err(|e| e.at_column(path.join(".")))?;
                    Ok(if value.data_type() == field.data_type() {
                        value
                    } else {
                        cast(&value, field.data_type())?
                    })
                };
            let arrays = clause
                .values
                .iter()
                .zip(schema.fields())
                .map(value)
                .collect::<Result<Vec<_>>>()?;
            let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
            out.push(RecordBatch::try_new_with_options(
                Arc::clone(schema),
                arrays,
                &options,
            )?);
        }
        Ok(out)
    }
}
