//! Writes: append rows to a table, or replace rows by them.
//!
//! A write has two steps, since expressions are bound outside of the core: [`WriteCommand::plan`]
//! determines the table's schema, protocol and metadata and the expressions to bind;
//! [`WriteCommand::run`] writes the files and commits. The rows that a write replaces are
//! determined before its input is read. Files of which all rows match are removed. In the others,
//! the rows that a predicate selects are marked by deletion vectors if the table has them;
//! otherwise the remaining rows are copied, and a table with a change data feed gets change data
//! files, which distinguish the copies from changes.
//!
//! Protocol: "Requirements for Writers", "Append-only Tables", "Change Data Files", "Row Tracking",
//! "Identity Columns". Cost: one pass over the rows; replacing by a predicate reads the files that
//! may match, twice.

pub(super) mod existing_files;
pub(super) mod replaced_rows;
pub(super) mod replacement;
pub(super) mod table_definition;
pub(super) mod write_command;
pub(super) mod write_operation;
pub(super) mod write_options;
