//! Parquet bytes: the crate's only user of the `parquet` crate.
//!
//! [`read`] turns one data file into batches of exactly the table's logical schema; [`RawFile`]
//! gives a file (a checkpoint) as it is. [`encode`] makes new files. Both readers share the way
//! from bytes to arrays: [`footer`] (metadata within limits, cached), `chunks` (bytes of column
//! chunks, fetched whole or by windows, every page header checked before it is believed), `shape`
//! (which columns of the file, as a pruned Parquet schema of their own), then `flat` for flat
//! columns and arrow-rs' array readers for others.
//!
//! Rejected: `ParquetRecordBatchReaderBuilder`, because it projects by mask over the file's whole
//! schema (one odd column spoils a file of which it is not even read) and opens pages without a
//! look at their announced sizes. The readers below it take our pages and our schema, and are the
//! same code, so that nothing is slower.
//!
//! Nothing that a file holds may hurt the process: sizes are compared with the bytes that are
//! there, expansion is bounded, and a panic inside the decoder is caught at the boundary of a call
//! and becomes a [`Error::Corrupt`] that names the file.

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing
    )
)]

mod bounds_check;
mod calendar;
mod checksum;
mod chunks;
mod columns;
mod convert;
mod dictionary;
pub mod encode;
mod facts;
mod flat;
pub mod footer;
mod hybrid;
mod inflate;
mod options;
mod page_check;
mod plain;
mod raw;
mod read;
#[cfg(test)]
mod read_tests;
mod select;
mod shape;
mod sink;
mod snappy;
mod splice;
mod survey;
mod text;
mod thrift;
mod unpack;

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use parquet::errors::ParquetError;

pub use columns::Mapping;
pub use encode::{EncodedFile, Encoders, FileEncoder, Format};
pub use facts::{LeafFacts, Wanted};
pub use footer::{Footer, FooterCache};
pub use options::{BloomFilterProperties, Codec, ColumnProperties, WriterProperties};
pub use raw::{LeafBound, LeafStatistics, RawBatches, RawFile, RawGroup, open_raw};
pub use read::{BATCH_ROWS, FileBatches, FileSpec, ROW_INDEX, read};
pub use sink::{EncodedGroup, Encoder, GroupEncoder, Sink, SinkCodec};
pub use splice::Spliceable;
pub use survey::{Survey, names_have_ids, survey};

use crate::error::{Error, Result, ResultExt};
use crate::exec::{panic_error, panic_text};

thread_local! {
    /// Set while a panic will be turned into an error.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`, which calls into the decoder; names the file in its errors and turns its panics
/// into errors.
fn guarded<T>(file: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    // A panic over a damaged file is an error like others and is not to be told on the process's
    // error stream too.
    static HOOKED: AtomicBool = AtomicBool::new(false);
    if !HOOKED.load(Ordering::Relaxed) && !HOOKED.swap(true, Ordering::Relaxed) {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !GUARDED.get() {
                before(panic);
            }
        }));
    }
    let outer = GUARDED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(outer);
    let undecodable = |panic: &(dyn Any + Send)| match panic_error("the decoder", panic) {
        Error::Internal { .. } => Error::corrupt_data(format!(
            "the Parquet file cannot be decoded: {}",
            panic_text(panic)
        )),
        other => other,
    };
    result
        .unwrap_or_else(|panic| Err(undecodable(&*panic)))
        .at_file(file)
}

/// What the decoder says of a file: damage, unless our own error is inside.
fn decode_error(error: ParquetError) -> Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<Error>() {
            Ok(own) => *own,
            Err(other) => {
                Error::corrupt_data(format!("the Parquet file cannot be decoded: {other}"))
            }
        },
        ParquetError::NYI(what) => Error::unsupported(format!(
            "the Parquet file uses something that is not supported: {what}"
        )),
        other => Error::corrupt_data(format!("the Parquet file cannot be decoded: {other}")),
    }
}

/// The same for errors that come out of the batch reader as Arrow's.
fn batch_error(error: arrow_schema::ArrowError) -> Error {
    match error {
        arrow_schema::ArrowError::ExternalError(inner) => match inner.downcast::<Error>() {
            Ok(own) => *own,
            Err(other) => match other.downcast::<ParquetError>() {
                Ok(parquet) => decode_error(*parquet),
                Err(other) => {
                    Error::corrupt_data(format!("the Parquet file cannot be decoded: {other}"))
                }
            },
        },
        arrow_schema::ArrowError::ParquetError(what) => {
            Error::corrupt_data(format!("the Parquet file cannot be decoded: {what}"))
        }
        other => Error::corrupt_data(format!("the Parquet file cannot be decoded: {other}")),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array, RecordBatch};
    use parquet::arrow::ArrowWriter;
    use parquet::file::metadata::{
        ColumnChunkMetaData, ParquetMetaDataOptions, ParquetMetaDataReader, RowGroupMetaData,
    };
    use parquet::file::properties::WriterProperties;

    pub(crate) use crate::dv::tests::{file_in, file_of};

    /// `batch` as a Parquet file.
    pub(crate) fn write(batch: &RecordBatch, properties: Option<WriterProperties>) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut out, batch.schema(), properties).unwrap();
        writer.write(batch).unwrap();
        writer.close().unwrap();
        out
    }

    /// Flips each bit of all pages of a file with checksums, headers included, one after the other:
    /// what `rows` reads stays the same, or it is an error.
    pub(crate) fn flipped_bits(
        bytes: &[u8],
        rows: impl Fn(&[u8]) -> crate::error::Result<Vec<RecordBatch>>,
    ) {
        let whole = rows(bytes).unwrap();
        assert!(whole.iter().any(|batch| batch.num_rows() > 0));
        let footer = u32::from_le_bytes(bytes[bytes.len() - 8..bytes.len() - 4].try_into().unwrap())
            as usize;
        let options = ParquetMetaDataOptions::new();
        let metadata = &bytes[bytes.len() - 8 - footer..bytes.len() - 8];
        let metadata =
            ParquetMetaDataReader::decode_metadata_with_options(metadata, Some(&options)).unwrap();
        let mut bad = bytes.to_vec();
        let (mut bits, mut found) = (0, 0);
        for (start, length) in metadata
            .row_groups()
            .iter()
            .flat_map(RowGroupMetaData::columns)
            .map(ColumnChunkMetaData::byte_range)
        {
            for at in start as usize..(start + length) as usize {
                for bit in 0..8 {
                    bad[at] ^= 1 << bit;
                    bits += 1;
                    match rows(&bad) {
                        Ok(batches) => assert_eq!(batches, whole, "bit {bit} of byte {at}"),
                        Err(error) => {
                            assert!(
                                matches!(
                                    error,
                                    crate::error::Error::Corrupt { .. }
                                        | crate::error::Error::Unsupported { .. }
                                ),
                                "{error}"
                            );
                            found += usize::from(error.to_string().contains("checksum"));
                        }
                    }
                    bad[at] ^= 1 << bit;
                }
            }
        }
        // In small pages the header has a large share of the bytes.
        assert!(found > bits / 3, "{found} of {bits}");
    }

    /// One column `n` that counts from 0.
    pub(crate) fn ints(count: i64) -> RecordBatch {
        RecordBatch::try_from_iter([(
            "n",
            Arc::new((0..count).collect::<Int64Array>()) as ArrayRef,
        )])
        .unwrap()
    }
}
