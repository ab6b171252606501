//! What uses a column, and so prevents a change of it: constraints, generated columns, the layout.

use std::fmt;

use crate::error::{Error, ErrorCode, Result};
use crate::expr::BoundExpr;
use crate::file_writer::bound_constraints::TableConstraints;
use crate::file_writer::constraints::ConditionKind;
use crate::snapshot::Snapshot;

/// A change of a column or field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnChange {
    Drop,
    Rename,
    Retype,
}

impl ColumnChange {
    /// The code of an error about an element, key or value.
    pub(super) fn of_elements_code(self) -> ErrorCode {
        match self {
            Self::Rename => ErrorCode::RenameOfElementsOrKeys,
            Self::Drop | Self::Retype => ErrorCode::DropOfElementsOrKeys,
        }
    }

    /// The code of an error about a table without column mapping.
    pub(super) fn needs_mapping_code(self) -> ErrorCode {
        match self {
            Self::Rename => ErrorCode::RenameColumnNeedsMapping,
            Self::Drop | Self::Retype => ErrorCode::DropColumnNeedsMapping,
        }
    }
}

/// The change as a participle.
impl fmt::Display for ColumnChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Drop => "dropped",
            Self::Rename => "renamed",
            Self::Retype => "given another type",
        })
    }
}

/// What uses a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ColumnUser {
    /// The CHECK constraint of this name.
    Constraint(String),
    /// The generated column of this name.
    GeneratedColumn(String),
    Partitioning,
    Clustering,
}

impl ColumnUser {
    /// The error about a change of a column that it uses.
    pub(super) fn refuse(&self, column: &str, change: ColumnChange) -> Error {
        let error = Error::invalid(format!(
            "the column `{column}` cannot be {change}: {self} uses it"
        ));
        match self {
            Self::Constraint(name) => error.with_code(
                ErrorCode::ColumnUsedByConstraint,
                &[("column", &column), ("constraint", name)],
            ),
            Self::GeneratedColumn(name) => error.with_code(
                ErrorCode::ColumnUsedByGeneratedColumn,
                &[("column", &column), ("generated_column", name)],
            ),
            Self::Partitioning | Self::Clustering => {
                error.with_code(ErrorCode::ColumnUsedByLayout, &[("column", &column)])
            }
        }
        .at_column(column)
    }
}

impl fmt::Display for ColumnUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constraint(name) => write!(f, "the constraint `{name}`"),
            Self::GeneratedColumn(name) => write!(f, "the generated column `{name}`"),
            Self::Partitioning => f.write_str("the table's partitioning"),
            Self::Clustering => f.write_str("the table's clustering"),
        }
    }
}

/// An expression that uses columns, with what it belongs to.
#[derive(Debug, Clone)]
pub(super) struct ColumnReference {
    pub(super) user: ColumnUser,
    pub(super) expr: BoundExpr,
}

/// The expressions of a table that use columns.
pub(super) fn column_references(
    snapshot: &Snapshot,
    bound: &TableConstraints,
) -> Result<Vec<ColumnReference>> {
    let required = TableConstraints::of(
        snapshot.protocol(),
        snapshot.metadata(),
        snapshot.schema(),
        |_| false,
    )?;
    let rules = TableConstraints {
        predicate: None,
        ..bound.clone()
    }
    .rules(&required, Vec::new())?;
    let checks = rules.checks.into_iter().filter_map(|check| {
        let ConditionKind::Check { name } = check.kind else {
            return None;
        };
        Some(ColumnReference {
            user: ColumnUser::Constraint(name),
            expr: check.expr,
        })
    });
    let generated = rules.generated.into_iter().map(|rule| ColumnReference {
        user: ColumnUser::GeneratedColumn(rule.column),
        expr: rule.expr,
    });
    Ok(checks.chain(generated).collect())
}
