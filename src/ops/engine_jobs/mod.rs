//! Jobs of another engine, such as Spark: it reads and writes the rows, the core plans and commits.

pub(super) mod delete_update;
pub(super) mod merge;
pub(super) mod optimize;
