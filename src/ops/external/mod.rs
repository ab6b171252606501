//! Operations whose rows an external engine, such as Spark, reads and writes.

pub(super) mod delete_update;
pub(super) mod merge;
pub(super) mod optimize;
