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

pub(super) mod batch_pool;
pub(super) mod clauses;
pub(super) mod join_keys;
pub(super) mod merge_command;
pub(super) mod merge_join;
pub(super) mod merge_plan;
pub(super) mod pairs;
pub(super) mod row_pairs;
pub(super) mod source_buffer;
pub(super) mod write;
