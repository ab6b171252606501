//! Column chunks of one file that become part of another: encoded bytes are copied, nothing is
//! decoded.
//!
//! A chunk can be copied where the new file has exactly its column: path, physical and logical
//! type, levels, field id. The structures that readers use to skip data are copied too: statistics,
//! column index, offset index, bloom filter. The bytes are read in pieces while they are written,
//! some pieces ahead, so memory is bounded by these pieces whatever the size of the chunk.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, Type as Physical};
use parquet::bloom_filter::Sbbf;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::page_index::index_reader::{decode_column_index, decode_offset_index};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::writer::SerializedRowGroupWriter;
use parquet::schema::types::ColumnDescPtr;

use crate::error::{Error, Result, ResultExt};
use crate::pq::decoder_errors::decode_error;
use crate::pq::input::calendar_rebase::CalendarRebase;
use crate::pq::input::column_chunks::chunk_range;
use crate::pq::input::footer::{ParquetFooter, read_footer};
use crate::protocol::calendar::TimeZoneSpec;
use crate::store::{PendingResult, StoreObject};

/// Bytes read at a time.
const PIECE: u64 = 4 << 20;
/// Pieces requested before they are needed.
const AHEAD: usize = 4;
/// The longest index or bloom filter that is copied.
const INDEX_LIMIT: u64 = 64 << 20;

/// A file whose column chunks may be copied.
#[derive(Debug, Clone)]
pub struct SpliceSource {
    file: StoreObject,
    footer: Arc<ParquetFooter>,
}

impl SpliceSource {
    /// Reads the footer of `file`.
    ///
    /// # Errors
    /// As [`read_footer`].
    pub fn open(file: &StoreObject) -> Result<Self> {
        Ok(Self {
            footer: read_footer(file)?,
            file: file.clone(),
        })
    }

    /// Rows in it.
    #[must_use]
    pub fn num_rows(&self) -> u64 {
        self.footer.num_rows()
    }

    /// The size of the file in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.footer.size
    }

    fn groups(&self) -> &[RowGroupMetaData] {
        self.footer.metadata.row_groups()
    }

    /// Row groups in it.
    #[must_use]
    pub fn num_groups(&self) -> usize {
        self.groups().len()
    }

    /// Rows of a row group.
    #[must_use]
    pub fn group_rows(&self, group: usize) -> u64 {
        self.groups()
            .get(group)
            .map_or(0, |group| u64::try_from(group.num_rows()).unwrap_or(0))
    }

    /// Whether `codec` compresses all of it.
    #[must_use]
    pub fn is_compressed_with(&self, codec: crate::pq::ParquetCompression) -> bool {
        let same = |chunk: &ColumnChunkMetaData| {
            let (of_chunk, wanted) = (chunk.compression(), codec.compression);
            // The compression level does not matter.
            std::mem::discriminant(&of_chunk) == std::mem::discriminant(&wanted)
                || of_chunk == Compression::UNCOMPRESSED
        };
        self.groups()
            .iter()
            .all(|group| group.columns().iter().all(same))
    }

    /// Whether its leaves are exactly `leaves` and their values can be copied unchanged: no INT96,
    /// no legacy calendar.
    pub(in crate::pq) fn matches_leaves(&self, leaves: &[ColumnDescPtr]) -> bool {
        let schema = self.footer.metadata.file_metadata().schema_descr();
        let legacy = CalendarRebase::from_footer(&self.footer, TimeZoneSpec::UTC);
        schema.columns() == leaves
            && !legacy.datetime
            && leaves
                .iter()
                .all(|leaf| leaf.physical_type() != Physical::INT96)
            && self.groups().iter().all(|group| group.num_rows() > 0)
    }

    /// A column chunk, ready to be copied.
    pub(in crate::pq) fn chunk(&self, group: usize, leaf: usize) -> Result<CopiedChunk> {
        let lacking = || Error::internal("a chunk is copied that is not there");
        let metadata = self.groups().get(group).ok_or_else(lacking)?;
        let column = metadata.columns().get(leaf).ok_or_else(lacking)?;
        let range = chunk_range(column, self.footer.size).at_file(&self.file.path)?;
        Ok(CopiedChunk {
            file: self.file.clone(),
            size: self.footer.size,
            rows: self.group_rows(group),
            column: column.clone(),
            range,
        })
    }
}

/// A column chunk of another file.
pub(in crate::pq) struct CopiedChunk {
    file: StoreObject,
    /// The file's size.
    size: u64,
    rows: u64,
    column: ColumnChunkMetaData,
    range: Range<u64>,
}

impl CopiedChunk {
    /// Bytes of it in a file.
    pub fn bytes(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Writes it as the row group's next column.
    pub fn append<W: Write + Send>(
        self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<()> {
        let path = self.file.path.clone();
        let close = self.close().at_file(&path)?;
        let source = CopiedChunkReader {
            file: &self.file,
            range: self.range.clone(),
        };
        group
            .append_column(&source, close)
            .map_err(decode_error)
            .at_file(&path)
    }

    /// The chunk's metadata in the footer, and its column index, offset index and bloom filter.
    fn close(&self) -> Result<ColumnCloseResult> {
        let column = &self.column;
        let part = |offset: Option<i64>, length: Option<i32>| -> Result<Option<Bytes>> {
            let start = offset.and_then(|offset| u64::try_from(offset).ok());
            let Some((start, length)) =
                start.zip(length.and_then(|length| u64::try_from(length).ok()))
            else {
                return Ok(None);
            };
            let range = start..start.saturating_add(length);
            if length == 0 || length > INDEX_LIMIT || range.end > self.size {
                return Ok(None);
            }
            Ok(self
                .file
                .store
                .get_ranges(&self.file.path, vec![range])
                .wait()?
                .pop()
                .filter(|bytes| bytes.len() as u64 == length))
        };
        // Both are hints; one that cannot be read is not copied.
        let bounds = part(column.column_index_offset(), column.column_index_length())?;
        let places = part(column.offset_index_offset(), column.offset_index_length())?;
        let bloom = part(column.bloom_filter_offset(), column.bloom_filter_length())?;
        Ok(ColumnCloseResult {
            bytes_written: self.bytes(),
            rows_written: self.rows,
            metadata: column.clone(),
            bloom_filter: bloom.and_then(|bytes| Sbbf::from_bytes(&bytes).ok()),
            column_index: bounds
                .and_then(|bytes| decode_column_index(&bytes, column.column_type()).ok()),
            offset_index: places.and_then(|bytes| decode_offset_index(&bytes).ok()),
        })
    }
}

/// The bytes of a chunk, as the writer requests them.
struct CopiedChunkReader<'a> {
    file: &'a StoreObject,
    range: Range<u64>,
}

impl Length for CopiedChunkReader<'_> {
    fn len(&self) -> u64 {
        self.range.end
    }
}

impl ChunkReader for CopiedChunkReader<'_> {
    type T = ReadAheadBytes;

    fn get_read(&self, start: u64) -> std::result::Result<Self::T, ParquetError> {
        Ok(ReadAheadBytes {
            file: self.file.clone(),
            next: start,
            end: self.range.end,
            read_ahead: VecDeque::new(),
            current: Bytes::new(),
        })
    }

    fn get_bytes(&self, _: u64, _: usize) -> std::result::Result<Bytes, ParquetError> {
        Err(ParquetError::General(
            "a chunk is read in one go".to_owned(),
        ))
    }
}

/// Bytes of a file one after the other.
struct ReadAheadBytes {
    file: StoreObject,
    /// The first byte that was not requested yet.
    next: u64,
    end: u64,
    read_ahead: VecDeque<PendingResult<Vec<Bytes>>>,
    current: Bytes,
}

impl Read for ReadAheadBytes {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            while self.read_ahead.len() < AHEAD && self.next < self.end {
                let to = self.end.min(self.next.saturating_add(PIECE));
                let range = self.next..to;
                self.read_ahead
                    .push_back(self.file.store.get_ranges(&self.file.path, vec![range]));
                self.next = to;
            }
            let Some(pending) = self.read_ahead.pop_front() else {
                return Ok(0);
            };
            self.current = pending
                .wait()
                .map_err(io::Error::other)?
                .pop()
                .unwrap_or_default();
            if self.current.is_empty() {
                return Err(io::Error::other(Error::corrupt_data(
                    "the file is shorter than its footer says",
                )));
            }
        }
        let some = self.current.split_to(out.len().min(self.current.len()));
        let Some(out) = out.get_mut(..some.len()) else {
            return Ok(0);
        };
        out.copy_from_slice(&some);
        Ok(some.len())
    }
}
