//! DELETE and UPDATE.

pub(super) mod delete_update;
pub(super) mod rewrite_columns;
mod update_assignments;
