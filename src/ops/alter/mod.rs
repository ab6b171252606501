//! ALTER TABLE: changes of the table's definition: columns, constraints, properties, features.
//!
//! Columns are identified by their path, parts joined with dots; elements of lists and maps are
//! `element`, `key` and `value`. Columns that a constraint or a generated column uses, and
//! partition and clustering columns, cannot be dropped, renamed or changed in type. As everywhere,
//! the expressions are given in bound form.
//!
//! Protocol: "Change Metadata", "Column Mapping", "Type Widening", "CHECK Constraints", "Table
//! Features", "Clustered Table". Cost: a commit; a constraint or NOT NULL reads the rows once, or
//! fewer if statistics suffice.

pub(super) mod alter_command;
mod column_types;
mod column_use;
mod columns;
pub(super) mod drop_feature;
pub(super) mod feature_usage;
pub(super) mod multi_commit;
mod properties;
mod replace_columns;
pub(super) mod row_id_backfill;
mod schema_edit;
pub(super) mod table_change;
mod table_constraints;
