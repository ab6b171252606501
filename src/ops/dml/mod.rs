//! DELETE and UPDATE, and what MERGE shares with them: matched rows, deletion vectors, rewrites.

pub(super) mod delete_update;
pub(super) mod deletion_vectors;
pub(super) mod matched_rows;
pub(super) mod retry;
pub(super) mod rewrite_columns;
mod update_assignments;
