//! What several operations share: the state of the table at the start, the files that are rewritten
//! or marked, and the files to delete if the commit fails.

pub(super) mod clustering_domain;
pub(super) mod column_path;
pub(super) mod column_values;
pub(super) mod conflict_retry;
pub(super) mod file_rewrite;
pub(super) mod iceberg_compatibility;
pub(super) mod matched_rows;
pub(super) mod partition_predicate;
pub(super) mod replace_keys;
pub(super) mod row_deletion;
pub(super) mod start_state;
pub(super) mod table_paths;
pub(super) mod target_table;
pub(super) mod uncommitted_files;
