//! Decoding of pages to batches: of a data file in the table's types, of a checkpoint in its own
//! types.

pub(super) mod batch_budget;
pub(super) mod checkpoint_file;
pub(super) mod column_mapping;
pub(super) mod data_file;
pub(super) mod flat_column;
pub(super) mod inferred_schema;
pub(super) mod projection;
pub(super) mod row_group_plan;
pub(super) mod row_selection;
pub(super) mod to_table_types;
pub(super) mod view_to_offset;
