//! From batches to new Parquet files.

pub(super) mod chunk_copy;
pub(super) mod dictionary_policy;
pub(crate) mod file_encoder;
pub(super) mod row_group_encoder;
pub(super) mod writer_properties;
