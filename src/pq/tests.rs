//! Parquet files for tests of this module.

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

/// Flips each bit of all pages of a file with checksums, headers included, one at a time: the
/// result of `rows` stays the same, or is an error.
pub(crate) fn flipped_bits(
    bytes: &[u8],
    rows: impl Fn(&[u8]) -> crate::error::Result<Vec<RecordBatch>>,
) {
    let whole = rows(bytes).unwrap();
    assert!(whole.iter().any(|batch| batch.num_rows() > 0));
    let footer =
        u32::from_le_bytes(bytes[bytes.len() - 8..bytes.len() - 4].try_into().unwrap()) as usize;
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
