//! Writing data files: from batches to Parquet files, and the values for their `add` actions. The
//! log is not written here.
//!
//! The input is never collected. Batches are cut into slices; each slice is cast to the table's
//! types ([`cast`]), completed and checked ([`constraints`]) and split by partition ([`partition`])
//! on the pool; the calling thread takes the results in order and passes them to one encoder per
//! partition (`files`), whose columns are encoded in parallel (`pq::encode`). Files end at the
//! target size, which is measured on encoded bytes; if too many files are open, the one that was
//! idle longest is completed, and if they use too much memory, the largest row group is. Statistics
//! ([`stats`]) are collected while encoding.
//!
//! A write that fails or is cancelled deletes its files; a process that is killed leaves files that
//! no log references.
//!
//! Protocol: "Add File and Remove File", "Data Files", "Per-file Statistics", "Partition Value
//! Serialization". Cost: one pass; memory is [`WriteRequest::memory`] plus that of the slices in
//! progress.

pub mod bound_constraints;
pub(crate) mod cast;
pub(crate) mod cast_values;
pub(crate) mod constraints;
mod data_files;
pub(crate) mod engine_files;
pub(crate) mod external_sort;
mod file_schema;
mod files;
pub(crate) mod length_limits;
pub(crate) mod partition;
mod partition_buffer;
mod prepared_rows;
pub(crate) mod space_filling_curve;
pub(crate) mod spill;
mod splice;
pub(crate) mod stats;
#[cfg(test)]
mod tests;
pub(crate) mod with_change_feed;
mod write_request;

pub use data_files::{write, write_with};
pub use prepared_rows::SplicedFile;
pub use splice::{ColumnRewrite, write_columns};
pub use write_request::{TARGET_FILE_SIZE, WriteOutput, WriteRequest, WrittenDataFile};
