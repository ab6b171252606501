//! Parquet files: the crate's only user of the `parquet` crate.
//!
//! [`read`] turns one data file into batches of exactly the table's logical schema; [`RawFile`]
//! reads a file (a checkpoint) with its own schema. [`encode`] makes new files. Both readers share
//! the path from bytes to arrays. In [`input`]: `footer` (metadata within limits, cached) and
//! `column_chunks` (bytes of column chunks, fetched whole or by windows; every page header is
//! checked before it is used). In [`decode`]: `projection` (the columns to decode, as a pruned
//! Parquet schema), then `flat_column` for flat columns and arrow-rs' array readers for others.
//! `encoding` has what decoders and encoders share.
//!
//! Rejected: `ParquetRecordBatchReaderBuilder`, because it projects by mask over the file's whole
//! schema (one unsupported column makes the file unreadable even where that column is not read) and
//! opens pages without a check of their announced sizes. The array readers below it take our pages
//! and our schema, and are the same code, so nothing is slower.
//!
//! No file can harm the process: sizes are compared with the bytes that are there, expansion is
//! bounded, and a panic inside the decoder is caught at the boundary of a call and becomes an
//! [`Error::Corrupt`] that names the file.

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing
    )
)]

pub(crate) mod decode;
mod decoder_errors;
pub(crate) mod encode;
mod encoding;
pub(crate) mod input;
mod leaf_count;
#[cfg(test)]
mod read_tests;
#[cfg(test)]
pub(crate) mod tests;

pub use decode::checkpoint_file::{
    LeafBound, LeafStatistics, RawBatches, RawFile, RawGroup, open_raw,
};
pub use decode::column_mapping::ColumnMappingMode;
pub use decode::data_file::{BATCH_ROWS, FileBatches, FileSpec, ROW_INDEX, read};
pub use decode::inferred_schema::{FooterSchema, infer_schema, names_have_ids};
pub use decode::row_group_plan::{RowGroupPlan, plan_row_groups};
pub use encode::chunk_copy::SpliceSource;
pub use encode::file_encoder::{DataFileFormat, EncodedFile, FileEncoder, ParallelFileWriter};
pub use encode::row_group_encoder::{
    EncodedRowGroup, ParquetSink, RowGroupEncoder, RowGroupEncoderFactory, SinkCodec,
};
pub use encode::writer_properties::{
    BloomFilterProperties, ColumnProperties, ParquetCompression, WriterProperties,
};
pub use encoding::column_statistics::{ColumnStatistics, StatisticsLevel};
pub use input::footer::{FooterCache, ParquetFooter, read_footer};
