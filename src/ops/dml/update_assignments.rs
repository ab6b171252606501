//! The values that an UPDATE assigns, and the generated columns that follow from them.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::{Error, ErrorCode, Result};
use crate::expr::BoundExpr;
use crate::file_writer::bound_constraints::{self};
use crate::file_writer::cast as fit;
use crate::file_writer::cast_values::CastRule;
use crate::file_writer::constraints::{ComputedColumn, WriteRules};
use crate::ops::rewrite::column_values::{ValuePlan, with_field};
use crate::protocol::schema::{StringLayout, StructType};
use crate::snapshot::Snapshot;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, new_null_array};
use arrow_cast::cast;
use arrow_select::zip::zip;
use std::sync::Arc;

/// A new value: the index of the column, the field within it, the expression.
type ColumnAssignment = (usize, Vec<String>, BoundExpr);

/// The assignments of an UPDATE.
pub(in crate::ops) struct UpdateAssignments {
    schema: StructType,
    assignments: Vec<ColumnAssignment>,
    /// Generated columns that depend on assigned columns and are not assigned themselves.
    generated: Vec<(usize, ComputedColumn)>,
    cast_rule: CastRule,
}

impl UpdateAssignments {
    pub(super) fn of(
        snapshot: &Snapshot,
        assignments: &[ValuePlan],
        rules: &WriteRules,
        cast_rule: CastRule,
    ) -> Result<Self> {
        let schema = snapshot.schema().clone();
        let identities = bound_constraints::identities(snapshot.protocol(), &schema)?;
        let place = |name: &str| {
            schema.fields.position(name).ok_or_else(|| {
                Error::invalid(format!("the table has no column `{name}`"))
                    .with_code(ErrorCode::ColumnNotFound, &[("column", &name)])
                    .at_column(name)
            })
        };
        let mut assigned: Vec<ColumnAssignment> = Vec::new();
        // The paths in each column that are assigned.
        let mut assigned_paths: FxHashMap<usize, Vec<&[String]>> = FxHashMap::default();
        for assignment in assignments {
            let Some((name, rest)) = assignment.path.split_first() else {
                return Err(Error::internal("a value is for no column"));
            };
            let place = place(name)?;
            let paths = assigned_paths.entry(place).or_default();
            if paths
                .iter()
                .any(|path| path.starts_with(rest) || rest.starts_with(path))
            {
                return Err(Error::invalid("the column is assigned twice")
                    .at_column(assignment.path.join(".")));
            }
            if identities.iter().any(|identity| identity.column == *name) {
                return Err(Error::invalid(
                    "an identity column cannot be updated: its values are the table's to give",
                )
                .with_code(ErrorCode::IdentityColumnUpdated, &[("column", name)])
                .at_column(name));
            }
            paths.push(rest);
            assigned.push((place, rest.to_vec(), BoundExpr::new(&assignment.tree)?));
        }
        let generated = rules
            .generated
            .iter()
            .map(|rule| Ok((place(&rule.column)?, rule.clone())))
            .collect::<Result<Vec<_>>>()?;
        let generated = generated
            .into_iter()
            .filter(|(place, _)| !assigned_paths.contains_key(place))
            .collect();
        Ok(Self {
            schema,
            assignments: assigned,
            generated,
            cast_rule,
        })
    }

    /// The same for the changed columns only, and their names; `None` if a name is unknown.
    pub(in crate::ops) fn changed_columns_only(&self) -> Option<(Self, Vec<String>)> {
        let name = |place: &usize| {
            self.schema
                .fields
                .get(*place)
                .map(|field| field.name.clone())
        };
        let assigned = self
            .assignments
            .iter()
            .map(|(place, ..)| name(place))
            .collect::<Option<Vec<_>>>()?;
        let names: FxHashSet<&str> = assigned.iter().map(String::as_str).collect();
        let follows = |rule: &ComputedColumn| {
            rule.expr
                .column_names()
                .iter()
                .any(|read| names.contains(read))
        };
        let generated: Vec<(usize, ComputedColumn)> = self
            .generated
            .iter()
            .filter(|(_, rule)| follows(rule))
            .cloned()
            .collect();
        let changed = assigned
            .into_iter()
            .chain(generated.iter().map(|(_, rule)| rule.column.clone()))
            .collect();
        Some((
            Self {
                schema: self.schema.clone(),
                assignments: self.assignments.clone(),
                generated,
                cast_rule: self.cast_rule,
            },
            changed,
        ))
    }

    /// The columns that the new values depend on.
    pub(in crate::ops) fn referenced_columns(&self) -> Vec<&str> {
        self.assignments
            .iter()
            .map(|(.., expr)| expr)
            .chain(self.generated.iter().map(|(_, rule)| &rule.expr))
            .flat_map(BoundExpr::column_names)
            .collect()
    }

    /// The same for batches of some of the table's columns.
    pub(in crate::ops) fn for_columns(&self, schema: &StructType) -> Result<Self> {
        let place = |place: &usize| {
            let field = self.schema.fields.get(*place);
            field
                .and_then(|field| schema.fields.position(&field.name))
                .ok_or_else(|| Error::internal("a changed column is not read"))
        };
        let assigned = self
            .assignments
            .iter()
            .map(|(n, rest, expr)| Ok((place(n)?, rest.clone(), expr.clone())))
            .collect::<Result<_>>()?;
        let generated = self
            .generated
            .iter()
            .map(|(n, rule)| Ok((place(n)?, rule.clone())))
            .collect::<Result<_>>()?;
        Ok(Self {
            schema: schema.clone(),
            assignments: assigned,
            generated,
            cast_rule: self.cast_rule,
        })
    }

    /// The batch with new values where `mask` is set. Columns after those of the table belong to
    /// row tracking: a row that changes loses its commit version and thereby gets that of the
    /// commit.
    pub(in crate::ops) fn apply(
        &self,
        batch: &RecordBatch,
        mask: Option<&BooleanArray>,
    ) -> Result<RecordBatch> {
        let (schema, rows) = (batch.schema(), batch.num_rows());
        let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
        let set = |columns: &mut Vec<ArrayRef>, place: usize, value: ArrayRef| -> Result<()> {
            let Some(slot) = columns.get_mut(place) else {
                return Err(Error::internal("a scan lacks a column of the table"));
            };
            let value = if value.data_type() == slot.data_type() {
                value
            } else {
                cast(&value, slot.data_type())?
            };
            *slot = match mask {
                Some(mask) => zip(mask, &value, slot)?,
                None => value,
            };
            Ok(())
        };
        for (place, rest, expr) in &self.assignments {
            let Some((field, now)) = self.schema.fields.get(*place).zip(columns.get(*place)) else {
                return Err(Error::internal("a scan lacks a column of the table"));
            };
            let value = evaluate_masked(expr, batch, mask).map_err(|e| e.at_column(&field.name))?;
            let value = if !rest.is_empty() {
                with_field(now, &field.data_type, rest, &value, self.cast_rule)?
            } else if value.data_type() == now.data_type() {
                value
            } else {
                fit::value(&value, &field.data_type, &field.name, self.cast_rule)?
            };
            set(&mut columns, *place, value)?;
        }
        if !self.generated.is_empty() {
            let changed = RecordBatch::try_new(Arc::clone(&schema), columns.clone())?;
            for (place, rule) in &self.generated {
                set(
                    &mut columns,
                    *place,
                    evaluate_masked(&rule.expr, &changed, mask)
                        .map_err(|e| e.at_column(&rule.column))?,
                )?;
            }
        }
        let versions = self.schema.fields.len() + 1;
        if let Some(version) = columns.get(versions) {
            let nothing = new_null_array(version.data_type(), rows);
            set(&mut columns, versions, nothing)?;
        }
        Ok(RecordBatch::try_new(schema, columns)?)
    }
}

/// The values of an expression in the rows of the mask: it must not fail for other rows.
fn evaluate_masked(
    expr: &BoundExpr,
    batch: &RecordBatch,
    mask: Option<&BooleanArray>,
) -> Result<ArrayRef> {
    let plain = expr.data_type().to_arrow(StringLayout::Plain);
    let Some(mask) =
        mask.filter(|mask| mask.true_count() < mask.len() && expr.expr.can_fail(expr.ansi))
    else {
        return Ok(cast(&expr.evaluate(batch)?, &plain)?);
    };
    let few = arrow_select::filter::filter_record_batch(batch, mask)?;
    let values = cast(&expr.evaluate(&few)?, &plain)?;
    // Moves values to the positions of their rows; values in between are never read.
    let mut next = 0_u32;
    let places: arrow_array::UInt32Array = mask
        .iter()
        .map(|set| {
            (set == Some(true)).then(|| {
                next += 1;
                next - 1
            })
        })
        .collect();
    Ok(arrow_select::take::take(&values, &places, None)?)
}
