//! The constraints that a table places on its rows: NOT NULL at every depth, CHECK constraints,
//! generated columns, defaults, identity columns.
//!
//! They are checked batch by batch on the pool, before encoding; the first row that violates a rule
//! ends the write with an error that names it. A CHECK constraint is violated if it is null or
//! false; a value given for a generated column must be `<=>` its expression.
//!
//! Protocol: "Column Invariants", "CHECK Constraints", "Generated Columns", "Default Columns",
//! "Identity Columns".

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions, Scalar,
    StringArray, new_null_array,
};
use arrow_buffer::NullBuffer;
use arrow_cast::cast;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_ord::cmp::eq;
use arrow_schema::{Field, Schema};
use arrow_select::nullif::nullif;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use super::cast::ColumnPositions;
use super::length_limits::{ColumnLengths, elements};
use crate::error::{Error, ErrorCode, Result};
use crate::expr::{BoundExpr, Expr, Function};
use crate::protocol::schema::{DataType, StringLayout, StructType};

/// What a condition on rows is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConditionKind {
    /// A CHECK constraint of the table, or an invariant of a column.
    Check {
        /// Its name.
        name: String,
    },
    /// New rows must be among those that they replace.
    Replacement,
}

/// A condition that every written row must satisfy.
#[derive(Debug, Clone)]
pub struct RowCondition {
    /// What it is for.
    pub kind: ConditionKind,
    /// The expression as in the table's metadata.
    pub sql: String,
    /// The expression.
    pub expr: BoundExpr,
}

/// A column whose missing values are computed.
#[derive(Debug, Clone)]
pub struct ComputedColumn {
    /// The column.
    pub column: String,
    /// Its values, of exactly the column's type.
    pub expr: BoundExpr,
}

/// An identity column.
#[derive(Debug, Clone, Serialize)]
pub struct IdentityColumn {
    /// The column, of type long.
    pub column: String,
    /// The next value to generate.
    pub next: i64,
    /// The distance between values, not 0.
    pub step: i64,
    /// Whether the data may have values for the column.
    pub allow_explicit: bool,
}

impl IdentityColumn {
    /// Checks that the data may have values for the column.
    ///
    /// # Errors
    /// [`Error::Invalid`] if only the table may generate them.
    pub fn check_given(&self) -> Result<()> {
        if self.allow_explicit {
            return Ok(());
        }
        Err(Error::invalid("the data gives values for an identity column that is GENERATED ALWAYS; leave the column out")
            .with_code(ErrorCode::IdentityColumnInserted, &[("column", &self.column)])
            .at_column(&self.column))
    }
}

/// The rules of one write.
#[derive(Debug, Clone, Default)]
pub struct WriteRules {
    /// Constraints, checked last.
    pub checks: Vec<RowCondition>,
    /// Values of columns that the data lacks.
    pub defaults: Vec<ComputedColumn>,
    /// Generated columns: computed where the data lacks them, compared where it has them.
    pub generated: Vec<ComputedColumn>,
    /// Identity columns.
    pub identities: Vec<IdentityColumn>,
    /// Limits of `char(n)` and `varchar(n)`.
    pub lengths: Vec<ColumnLengths>,
}

impl WriteRules {
    /// Whether there are no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.checks.is_empty()
            && self.defaults.is_empty()
            && self.generated.is_empty()
            && self.identities.is_empty()
            && self.lengths.is_empty()
    }

    /// Checks that the rules fit the table, and that data with `columns` can be written as its
    /// rows.
    ///
    /// # Errors
    /// [`Error::SchemaMismatch`] for a missing NOT NULL column, [`Error::Invalid`] for values of an
    /// identity column that only the table may generate and for rules that name an unknown column
    /// or have another type.
    pub fn prepare(&self, table: &StructType, columns: &ColumnPositions) -> Result<()> {
        let of = |name: &str| {
            table.fields.named(name).ok_or_else(|| {
                Error::invalid("a rule names a column that the table does not have").at_column(name)
            })
        };
        for rule in self.defaults.iter().chain(&self.generated) {
            let field = of(&rule.column)?;
            if field.data_type != *rule.expr.data_type()
                && !matches!(rule.expr.data_type(), DataType::Void)
            {
                return Err(Error::schema_mismatch(
                    "an expression does not have its column's type",
                    field.data_type.to_string(),
                    rule.expr.data_type().to_string(),
                )
                .at_column(&rule.column));
            }
        }
        for identity in &self.identities {
            if of(&identity.column)?.data_type != DataType::Long || identity.step == 0 {
                return Err(Error::invalid(
                    "an identity column must be a long with a step other than 0",
                )
                .at_column(&identity.column));
            }
        }
        let mut identities: FxHashMap<&str, &IdentityColumn> = FxHashMap::default();
        for identity in &self.identities {
            identities.entry(&identity.column).or_insert(identity);
        }
        let computed: FxHashSet<&str> = self
            .defaults
            .iter()
            .chain(&self.generated)
            .map(|rule| rule.column.as_str())
            .collect();
        for (field, place) in table.fields.iter().zip(&columns.positions) {
            let name = &field.name;
            let identity = identities.get(name.as_str());
            if let (Some(_), Some(identity)) = (place, identity) {
                identity.check_given()?;
            }
            let filled = identity.is_some() || computed.contains(name.as_str());
            if place.is_none() && !filled && !field.nullable {
                return Err(
                    super::cast::missing_not_null_error("column", &field.data_type).at_column(name),
                );
            }
        }
        Ok(())
    }

    /// Adds missing columns and checks all rules. An empty string in the column at one of
    /// `partition_places` becomes null before, as it is null in the log. `starts` are the first values of the identity
    /// columns for these rows, if the data lacks them; `first_row` is the position of the first row
    /// in the data, for messages.
    ///
    /// # Errors
    /// [`Error::ConstraintViolated`] names the rule and the row; errors of evaluating an
    /// expression.
    pub fn apply(
        &self,
        table: &StructType,
        partition_places: &[usize],
        columns: Vec<Option<ArrayRef>>,
        rows: usize,
        starts: &[Option<i64>],
        first_row: u64,
    ) -> Result<Vec<ArrayRef>> {
        let mut columns = columns;
        fill(table, &mut columns, &self.defaults, rows)?;
        empty_to_null(&mut columns, partition_places)?;
        self.fill_identities(table, &mut columns, rows, starts);
        self.fill_dependencies(table, &mut columns, rows);
        let given: Vec<bool> = self
            .generated
            .iter()
            .map(|rule| slot(table, &mut columns, &rule.column).is_some_and(|slot| slot.is_some()))
            .collect();
        fill(table, &mut columns, &self.generated, rows)?;
        empty_to_null(&mut columns, partition_places)?;
        let columns: Vec<ArrayRef> = table
            .fields
            .iter()
            .zip(columns)
            .map(|(field, array)| {
                array.unwrap_or_else(|| {
                    new_null_array(&field.data_type.to_arrow(StringLayout::Plain), rows)
                })
            })
            .collect();
        for (field, array) in table.fields.iter().zip(&columns) {
            let at = |row: usize| row;
            not_null(
                array,
                &field.data_type,
                field.nullable,
                &field.name,
                None,
                &at,
                first_row,
            )?;
            self.check_lengths(&field.name, array, first_row)?;
        }
        if !self.checks.is_empty() || given.contains(&true) {
            let batch = batch_of(table, columns.iter().map(Some), rows)?;
            for (rule, _) in self
                .generated
                .iter()
                .zip(&given)
                .filter(|(_, given)| **given)
            {
                check_generated(rule, &batch, first_row)?;
            }
            for check in &self.checks {
                check_condition(check, &batch, first_row)?;
            }
        }
        Ok(columns)
    }

    /// Generates the values of identity columns that have a start.
    fn fill_identities(
        &self,
        table: &StructType,
        columns: &mut [Option<ArrayRef>],
        rows: usize,
        starts: &[Option<i64>],
    ) {
        for (identity, start) in self.identities.iter().zip(starts) {
            if let (Some(start), Some(slot)) = (start, slot(table, columns, &identity.column)) {
                *slot = Some(Arc::new(
                    (0..rows)
                        .map(|n| start.wrapping_add(identity.step.wrapping_mul(n as i64)))
                        .collect::<Int64Array>(),
                ));
            }
        }
    }

    /// Fills columns that generated columns depend on and that have no value with nulls.
    fn fill_dependencies(&self, table: &StructType, columns: &mut [Option<ArrayRef>], rows: usize) {
        let generated: FxHashSet<&str> = self
            .generated
            .iter()
            .map(|rule| rule.column.as_str())
            .collect();
        for name in self
            .generated
            .iter()
            .flat_map(|rule| rule.expr.column_names())
        {
            if let (Some(slot), false) = (slot(table, columns, name), generated.contains(name))
                && slot.is_none()
                && let Some(field) = table.field(name)
            {
                *slot = Some(new_null_array(
                    &field.data_type.to_arrow(StringLayout::Plain),
                    rows,
                ));
            }
        }
    }

    /// Checks the limits of the strings in a column.
    fn check_lengths(&self, column: &str, array: &ArrayRef, first_row: u64) -> Result<()> {
        for lengths in self
            .lengths
            .iter()
            .filter(|lengths| lengths.column == column)
        {
            if let Some(long) = lengths.first_too_long(array) {
                let (name, row) = (
                    format!("length of {}", long.path),
                    first_row + long.row as u64 + 1,
                );
                let what = format!(
                    "the {name} is limited by its type {}, the string in row {row} has {} characters",
                    long.limit, long.found
                );
                return Err(violated(&name, long.rows, &what)
                    .with_code(ErrorCode::LengthExceeded, &[("limit", &long.limit)])
                    .at_column(&long.path));
            }
        }
        Ok(())
    }
}

/// Checks that a condition holds for all rows of a batch.
fn check_condition(check: &RowCondition, batch: &RecordBatch, first_row: u64) -> Result<()> {
    let held = check.expr.filter_mask(batch)?;
    let Some(row) = first_false(&held) else {
        return Ok(());
    };
    let (number, values) = (first_row + row as u64 + 1, values(&check.expr, batch, row));
    let sql = &check.sql;
    let (code, name, what) = match &check.kind {
        ConditionKind::Replacement => (
            ErrorCode::ReplacementViolated,
            "predicate",
            format!(
                "row {number} of the data does not match the predicate whose rows it replaces ({sql}): {values}"
            ),
        ),
        ConditionKind::Check { name } => (
            ErrorCode::CheckViolated,
            name.as_str(),
            format!(
                "the CHECK constraint `{name}` ({sql}) does not hold for row {number}: {values}"
            ),
        ),
    };
    Err(violated(name, held.len() - held.true_count(), &what)
        .with_code(code, &[("expression", sql)]))
}

/// Replaces empty strings by null in the columns at these places.
fn empty_to_null(columns: &mut [Option<ArrayRef>], places: &[usize]) -> Result<()> {
    for place in places {
        let Some(Some(column)) = columns.get_mut(*place) else {
            continue;
        };
        let data_type = column.data_type();
        if !(data_type.is_string() || data_type.is_binary()) {
            continue;
        }
        let empty = Scalar::new(cast(&StringArray::from_iter_values([""]), data_type)?);
        let is_empty = eq(&*column, &empty)?;
        if is_empty.true_count() > 0 {
            *column = nullif(&*column, &is_empty)?;
        }
    }
    Ok(())
}

/// Computes the missing columns of `computed`, in order.
fn fill(
    table: &StructType,
    columns: &mut [Option<ArrayRef>],
    computed: &[ComputedColumn],
    rows: usize,
) -> Result<()> {
    for rule in computed {
        if slot(table, columns, &rule.column).is_none_or(|slot| slot.is_some()) {
            continue;
        }
        let batch = batch_of(table, columns.iter().map(Option::as_ref), rows)?;
        let value = rule
            .expr
            .evaluate(&batch)
            .map_err(|e| e.at_column(&rule.column))?;
        if let Some(slot) = slot(table, columns, &rule.column) {
            // A NULL literal takes the type of the column.
            let void = matches!(rule.expr.data_type(), DataType::Void);
            *slot = (!void).then_some(value);
        }
    }
    Ok(())
}

fn slot<'a>(
    table: &StructType,
    columns: &'a mut [Option<ArrayRef>],
    name: &str,
) -> Option<&'a mut Option<ArrayRef>> {
    let place = table.fields.position(name)?;
    columns.get_mut(place)
}

/// The existing columns, by their logical names.
fn batch_of<'a>(
    table: &StructType,
    columns: impl Iterator<Item = Option<&'a ArrayRef>>,
    rows: usize,
) -> Result<RecordBatch> {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = table
        .fields
        .iter()
        .zip(columns)
        .filter_map(|(field, array)| {
            array.map(|array| {
                (
                    Field::new(&field.name, array.data_type().clone(), true),
                    Arc::clone(array),
                )
            })
        })
        .unzip();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(
        Arc::new(Schema::new(fields)),
        arrays,
        &options,
    )?)
}

fn check_generated(rule: &ComputedColumn, batch: &RecordBatch, first_row: u64) -> Result<()> {
    let column = Expr::Column {
        path: vec![rule.column.clone()],
        data_type: rule.expr.data_type().clone(),
    };
    let equal = Expr::call(
        Function::EqualNullSafe,
        vec![column, rule.expr.expr.clone()],
        DataType::Boolean,
    )?;
    let held = rule.expr.with(equal).filter_mask(batch)?;
    let Some(row) = first_false(&held) else {
        return Ok(());
    };
    let given = batch
        .column_by_name(&rule.column)
        .map_or_else(String::new, |array| shown_value(array, row));
    let what = format!(
        "the generated column `{}` is {given} in row {} where `{}` gives another value",
        rule.column,
        first_row + row as u64 + 1,
        rule.expr
    );
    let values = values(&rule.expr, batch, row);
    let what = if values.is_empty() {
        what
    } else {
        format!("{what}: {values}")
    };
    Err(
        violated(&rule.column, held.len() - held.true_count(), &what)
            .with_code(
                ErrorCode::GeneratedColumnViolated,
                &[("expression", &rule.expr)],
            )
            .at_column(&rule.column),
    )
}

/// The error for rows of a batch that violate a rule; it begins like that of `deltalake`, which
/// programs match.
fn violated(constraint: &str, rows: usize, what: &str) -> Error {
    Error::constraint_violated(
        constraint,
        format!("Invalid data found: {rows} rows failed validation check. {what}"),
    )
}

fn first_false(held: &BooleanArray) -> Option<usize> {
    (held.true_count() < held.len())
        .then(|| held.values().iter().position(|held| !held))
        .flatten()
}

/// The row's values of the columns that an expression reads.
fn values(expr: &BoundExpr, batch: &RecordBatch, row: usize) -> String {
    let shown: Vec<String> = expr
        .column_names()
        .into_iter()
        .filter_map(|name| {
            batch
                .column_by_name(name)
                .map(|array| format!("{name} = {}", shown_value(array, row)))
        })
        .collect();
    shown.join(", ")
}

/// A row's values, for messages.
#[must_use]
pub fn row_text(batch: &RecordBatch, row: usize) -> String {
    let schema = batch.schema();
    let shown: Vec<String> = schema
        .fields()
        .iter()
        .zip(batch.columns())
        .map(|(field, array)| format!("{} = {}", field.name(), shown_value(array, row)))
        .collect();
    shown.join(", ")
}

fn shown_value(array: &ArrayRef, row: usize) -> String {
    let options = FormatOptions::new()
        .with_null("NULL")
        .with_display_error(true);
    ArrayFormatter::try_new(array.as_ref(), &options).map_or_else(
        |_| "a value".to_owned(),
        |formatter| formatter.value(row).to_string(),
    )
}

/// Checks that columns without null in the schema have no nulls. `parent` is the validity of the
/// parent values; `row_of` gives the row of an element.
fn not_null(
    array: &ArrayRef,
    data_type: &DataType,
    nullable: bool,
    path: &str,
    parent: Option<&NullBuffer>,
    row_of: &dyn Fn(usize) -> usize,
    first_row: u64,
) -> Result<()> {
    if !nullable && array.logical_null_count() > 0 {
        let nulls = array.logical_nulls();
        let is_broken = |n: &usize| {
            nulls.as_ref().is_some_and(|nulls| nulls.is_null(*n))
                && parent.is_none_or(|parent| parent.is_valid(*n))
        };
        if let Some(element) = (0..array.len()).find(is_broken) {
            let row = first_row + row_of(element) as u64 + 1;
            let mut rows: Vec<usize> = (element..array.len())
                .filter(is_broken)
                .map(row_of)
                .collect();
            rows.dedup();
            return Err(violated(
                "NOT NULL",
                rows.len(),
                &format!("the column `{path}` is NOT NULL and null in row {row}"),
            )
            .with_code(ErrorCode::NotNullViolated, &[("column", &path)])
            .at_column(path));
        }
    }
    match data_type {
        DataType::Struct(fields) if has_non_nullable_field(data_type) => {
            let Some(array) = array.as_struct_opt() else {
                return Ok(());
            };
            let valid = NullBuffer::union(parent, array.nulls());
            for (field, child) in fields.fields.iter().zip(array.columns()) {
                not_null(
                    child,
                    &field.data_type,
                    field.nullable,
                    &format!("{path}.{}", field.name),
                    valid.as_ref(),
                    row_of,
                    first_row,
                )?;
            }
            Ok(())
        }
        DataType::Array(of) if has_non_nullable_field(data_type) => {
            let Some(array) = array.as_list_opt::<i32>() else {
                return Ok(());
            };
            let valid = NullBuffer::union(parent, array.nulls());
            let (above, owner) = elements(array.offsets(), array.values().len(), valid.as_ref());
            let row = |element: usize| row_of(owner(element));
            not_null(
                array.values(),
                &of.element,
                of.contains_null,
                &format!("{path}.element"),
                above.as_ref(),
                &row,
                first_row,
            )
        }
        DataType::Map(of) if has_non_nullable_field(data_type) => {
            let Some(array) = array.as_map_opt() else {
                return Ok(());
            };
            let valid = NullBuffer::union(parent, array.nulls());
            let (above, owner) = elements(array.offsets(), array.keys().len(), valid.as_ref());
            let row = |element: usize| row_of(owner(element));
            not_null(
                array.keys(),
                &of.key,
                false,
                &format!("{path}.key"),
                above.as_ref(),
                &row,
                first_row,
            )?;
            not_null(
                array.values(),
                &of.value,
                of.value_contains_null,
                &format!("{path}.value"),
                above.as_ref(),
                &row,
                first_row,
            )
        }
        _ => Ok(()),
    }
}

/// Whether a field within a type is not nullable.
fn has_non_nullable_field(data_type: &DataType) -> bool {
    match data_type {
        DataType::Struct(fields) => fields
            .fields
            .iter()
            .any(|field| !field.nullable || has_non_nullable_field(&field.data_type)),
        DataType::Array(of) => !of.contains_null || has_non_nullable_field(&of.element),
        DataType::Map(of) => {
            !of.value_contains_null
                || has_non_nullable_field(&of.key)
                || has_non_nullable_field(&of.value)
        }
        _ => false,
    }
}

/// The last value of each identity column for which `rows` values were generated, starting with
/// `next`.
///
/// # Errors
/// [`Error::Invalid`] if the values exceed the range of a long.
pub fn advance(identity: &mut IdentityColumn, rows: usize) -> Result<i64> {
    let start = identity.next;
    let next = i64::try_from(rows)
        .ok()
        .and_then(|rows| identity.step.checked_mul(rows))
        .and_then(|way| start.checked_add(way));
    identity.next = next.ok_or_else(|| {
        Error::invalid("the identity column has come to the end of its numbers")
            .at_column(&identity.column)
    })?;
    Ok(start)
}
