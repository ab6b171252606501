//! Bytes of column chunks: footer and wanted leaves -> pages for the decoder.
//!
//! A remote row group's chunks are fetched whole in one call (`get_ranges` joins neighbours and
//! runs the rest at once), which can be under way while the previous row group is decoded. On local
//! disks small chunks are read at once and others by windows, as the decoder reaches them: memory
//! is bounded by one window per column however large the row group is, a limit or a skipped page
//! saves the reading, and the buffers are reused while still in the processor's cache.
//!
//! Where a filter selects only parts of a row group, the offset index says which pages hold them:
//! only those are fetched from a remote store, and other pages are skipped unread.
//!
//! Every page header is read here before the decoder sees the page. Decompression allocates what
//! the header announces, so the bytes that a row group holds at once are reserved first: the largest
//! page and the dictionary of each column. The elements of lists are reserved too, for each batch of
//! rows. No ratio of bytes can distinguish honest pages from others (zeros, blanks and repeated values
//! compress without limit), so the memory limit decides, see [`DecodeReservation`]. Pages are
//! decompressed here: the decoder does not stop at the announced size with Gzip and Brotli, and
//! allocates new zeroed memory for every page with the other codecs.

use std::collections::VecDeque;
use std::io::Read;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use parquet::arrow::arrow_reader::RowGroups;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::ColumnDescriptor;
use rustc_hash::FxHashMap;

use super::bounds_check::value_size;
use super::footer::{FileTail, ParquetFooter};
use super::page_check::PageCheck;
use crate::error::{Error, Result};
use crate::exec::{DecodeReservation, decode_limit, filled};
use crate::pq::input::decompress::PageDecompressor;
use crate::pq::input::header_check::{PageHead, PageKind, page_head};
use crate::store::{ObjectReader, PendingResult, StoreObject};

/// A local column chunk up to this size, which fits into the processor's cache, is read at once.
const WHOLE: u64 = 1 << 20;
/// Bytes read at once of a larger chunk with small pages.
const WINDOW: u64 = 128 << 10;
/// Bytes read beyond a larger page, for the next page's header: then each page costs one read and
/// none is read twice.
const LOOK_AHEAD: u64 = 1 << 10;
/// The longest page header that is read. Statistics inside it can make it long: a bound may be a
/// whole string. Its bytes are in the file, so that nothing expands.
const HEADER_LIMIT: usize = 256 << 20;

/// The checked byte range of a column chunk.
pub(in crate::pq) fn chunk_range(column: &ColumnChunkMetaData, size: u64) -> Result<Range<u64>> {
    // As the decoder does: a dictionary page, where there is one, comes first.
    let start = column
        .dictionary_page_offset()
        .unwrap_or_else(|| column.data_page_offset());
    let range = u64::try_from(start)
        .ok()
        .zip(u64::try_from(column.compressed_size()).ok())
        .map(|(start, length)| start..start.saturating_add(length));
    match range {
        Some(range) if range.end <= size => Ok(range),
        _ => Err(Error::corrupt_data(format!(
            "the Parquet footer puts {} bytes of a column at offset {start} of a file of {size} bytes",
            column.compressed_size()
        ))
        .at_column(column.column_path().string())),
    }
}

/// An error that passed through the decoder, which keeps only its message.
type SharedDecodeError = Arc<Mutex<Option<Error>>>;

/// One column chunk.
struct ColumnChunkData {
    range: Range<u64>,
    bytes: ChunkBytes,
    failure: SharedDecodeError,
}

enum ChunkBytes {
    Whole(Bytes),
    /// The pages that are wanted, by offset.
    Pages(Vec<(u64, Bytes)>),
    /// The bytes around the position of the last read.
    Window {
        opened: Arc<dyn ObjectReader>,
        held: Mutex<(u64, Bytes)>,
    },
}

impl ColumnChunkData {
    /// At least `least` bytes from `start`, fewer only at the chunk's end.
    fn bytes_from(&self, start: u64, least: usize) -> Result<Bytes> {
        let outside = || {
            Error::corrupt_data(format!(
                "a page is outside of its column's bytes ({start} of {} to {})",
                self.range.start, self.range.end
            ))
        };
        if start < self.range.start || start > self.range.end {
            return Err(outside());
        }
        let within = |from: u64, bytes: &Bytes| -> Option<Bytes> {
            let offset = usize::try_from(start.checked_sub(from)?).ok()?;
            (offset <= bytes.len()).then(|| bytes.slice(offset..))
        };
        match &self.bytes {
            ChunkBytes::Whole(bytes) => within(self.range.start, bytes).ok_or_else(outside),
            ChunkBytes::Pages(pages) => {
                let after = pages.partition_point(|(from, _)| *from <= start);
                after
                    .checked_sub(1)
                    .and_then(|n| pages.get(n))
                    .and_then(|(from, bytes)| within(*from, bytes))
                    .ok_or_else(outside)
            }
            ChunkBytes::Window { opened, held } => {
                let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
                let left = self.range.end - start;
                let enough = usize::try_from(left).map_or(least, |left| least.min(left));
                if let Some(bytes) = within(held.0, &held.1)
                    && bytes.len() >= enough
                {
                    return Ok(bytes);
                }
                let enough = enough as u64;
                let whole = self.range.end - self.range.start <= WHOLE;
                let (from, size) = if whole {
                    (self.range.start, WHOLE)
                } else if start < held.0 {
                    // The decoder reads a page's header again when it reads the page: the bytes
                    // after it are still needed.
                    return opened.range(start..start + left.min(enough.max(LOOK_AHEAD)));
                } else if held.1.is_empty() {
                    // The size of pages is not known yet.
                    (start, enough.max(LOOK_AHEAD))
                } else if enough * 2 < WINDOW {
                    (start, WINDOW)
                } else {
                    (start, enough + LOOK_AHEAD)
                };
                // The old buffer is released before a new one is allocated.
                *held = (from, Bytes::new());
                let bytes = opened.range(from..from.saturating_add(size).min(self.range.end))?;
                *held = (from, bytes.clone());
                within(from, &bytes).ok_or_else(outside)
            }
        }
    }

    /// Keeps `error` for [`FetchedRowGroup::failed`] and gives the decoder its message.
    fn fail(&self, error: Error) -> ParquetError {
        let text = error.to_string();
        self.failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(error);
        ParquetError::General(text)
    }

    fn page_header(&self, start: u64) -> Result<PageHead> {
        let mut wanted = 256;
        loop {
            let bytes = self.bytes_from(start, wanted)?;
            if let Some(head) = page_head(&bytes) {
                return Ok(head);
            }
            if bytes.len() < wanted || wanted >= HEADER_LIMIT {
                return Err(Error::corrupt_data(format!(
                    "the Parquet page header at offset {start} is damaged"
                )));
            }
            wanted = bytes.len().max(wanted) * 4;
        }
    }
}

impl Length for ColumnChunkData {
    fn len(&self) -> u64 {
        self.range.end
    }
}

impl ChunkReader for ColumnChunkData {
    type T = ChunkRead;

    fn get_read(&self, start: u64) -> ParquetResult<ChunkRead> {
        // Only headers are read this way, and the buffer contains each whole, since it was checked
        // just before. (The decoder also asks when it has the header already, and then at the
        // page's body.)
        self.bytes_from(start, 1)
            .map(ChunkRead)
            .map_err(|e| self.fail(e))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let bytes = self.bytes_from(start, length).map_err(|e| self.fail(e))?;
        if length > bytes.len() {
            return Err(self.fail(Error::corrupt_data(
                "a Parquet page is longer than its column's bytes",
            )));
        }
        Ok(bytes.slice(..length))
    }
}

struct ChunkRead(Bytes);

impl Read for ChunkRead {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = buffer.len().min(self.0.len());
        let taken = self.0.split_to(count);
        if let Some(to) = buffer.get_mut(..count) {
            to.copy_from_slice(&taken);
        }
        Ok(count)
    }
}

/// The memory of a row group's columns while they are decoded.
#[derive(Debug, Default)]
pub(in crate::pq) struct DecodeMemoryUse {
    reservation: DecodeReservation,
    stored: u64,
    /// The number of the batch that is being decoded, and its number of rows at most.
    batch: AtomicU64,
    batch_rows: AtomicU64,
    /// Bytes of elements of lists in the pages of this batch.
    elements: AtomicU64,
}

impl DecodeMemoryUse {
    /// Pages are read for the next batch of at most this many rows.
    pub fn begin_batch(&self, rows: usize) {
        self.batch.fetch_add(1, Ordering::Relaxed);
        self.batch_rows.store(rows as u64, Ordering::Relaxed);
        self.elements.store(0, Ordering::Relaxed);
    }

    fn reserve(&self, more: u64) -> Result<()> {
        self.reservation.grow(more, self.stored)
    }
}

/// The elements of lists in a column's pages.
struct ListElements {
    /// Bytes that an element takes while it is decoded: its levels and its value, twice, since
    /// arrays double when they grow.
    element_bytes: u64,
    /// The batch whose elements are counted.
    batch: u64,
    /// Elements of the page that was read last that one batch can contain.
    page_elements: u64,
}

impl ListElements {
    fn new(column: &ColumnDescriptor) -> Option<Self> {
        const LEVELS: u64 = 4;
        (column.max_rep_level() > 0).then(|| Self {
            element_bytes: 2 * (LEVELS + decoded_value_bytes(column)),
            batch: 0,
            page_elements: 0,
        })
    }

    /// Counts the elements of a page before they are decoded.
    fn add_page(&mut self, page: &Page, check: &PageCheck, memory: &DecodeMemoryUse) -> Result<()> {
        if !page.is_data_page() {
            return Ok(());
        }
        let batch = memory.batch.load(Ordering::Relaxed);
        let mut more = u64::from(page.num_values());
        if self.batch != batch {
            self.batch = batch;
            // The batch begins within the page before.
            more = more.saturating_add(self.page_elements);
        }
        let bytes = |elements: u64| elements.saturating_mul(self.element_bytes);
        let so_far = memory.elements.load(Ordering::Relaxed);
        let limit = decode_limit()?.max(memory.stored);
        self.page_elements = page.num_values().into();
        if so_far.saturating_add(bytes(more)) > limit {
            // A page may hold the lists of more rows than the batch has.
            let rows = memory.batch_rows.load(Ordering::Relaxed).max(1);
            let of_batch = check.most_elements(page, rows)?;
            more = more.saturating_sub(self.page_elements.saturating_sub(of_batch));
            self.page_elements = of_batch;
            let needed = so_far.saturating_add(bytes(more));
            if needed > limit {
                return Err(Error::over_memory_limit(
                    "decoding the lists of a Parquet column",
                    needed,
                    limit,
                ));
            }
        }
        memory.elements.fetch_add(bytes(more), Ordering::Relaxed);
        Ok(())
    }
}

/// Bytes of a decoded value.
pub(in crate::pq) fn decoded_value_bytes(column: &ColumnDescriptor) -> u64 {
    /// Bytes of a view, or of a number of as many.
    const VIEW: u64 = 16;
    value_size(column.physical_type()).unwrap_or(VIEW)
}

/// The page at `start`, decompressed to exactly the size that it announces.
fn decompress_page(
    chunk: &ColumnChunkData,
    start: u64,
    head: &PageHead,
    how: PageDecompressor,
) -> Result<Page> {
    let too_long = || Error::corrupt_data("a Parquet page is longer than its column's bytes");
    let stored = usize::try_from(head.compressed).map_err(|_| too_long())?;
    let body = chunk.bytes_from(start + head.length as u64, stored)?;
    let body = body
        .get(..stored)
        .map(|_| body.slice(..stored))
        .ok_or_else(too_long)?;
    if head
        .checksum
        .is_some_and(|checksum| checksum != crc32fast::hash(&body))
    {
        return Err(Error::corrupt_data("Page CRC checksum mismatch"));
    }
    let details = head.details;
    // The levels of a page V2 precede its values and are never compressed.
    let levels = match head.kind {
        PageKind::DataV2 => details.definition_length as usize + details.repetition_length as usize,
        _ => 0,
    };
    let (levels, values) = body.split_at_checked(levels).ok_or_else(too_long)?;
    let wanted = usize::try_from(head.uncompressed)
        .ok()
        .and_then(|size| size.checked_sub(levels.len()))
        .ok_or_else(too_long)?;
    let bytes = if details.is_plain {
        body.clone()
    } else {
        filled(levels.len() + wanted, |out| {
            let (head, rest) = out
                .split_at_mut_checked(levels.len())
                .ok_or_else(too_long)?;
            head.copy_from_slice(levels);
            how.decompress_into(values, rest)
        })?
    };
    Ok(match head.kind {
        PageKind::Dictionary => Page::DictionaryPage {
            buf: bytes,
            num_values: details.values,
            encoding: encoding(details.encoding)?,
            is_sorted: false,
        },
        PageKind::DataV2 => Page::DataPageV2 {
            buf: bytes,
            num_values: details.values,
            encoding: encoding(details.encoding)?,
            num_nulls: details.nulls,
            num_rows: details.rows,
            def_levels_byte_len: details.definition_length,
            rep_levels_byte_len: details.repetition_length,
            is_compressed: !details.is_plain,
            statistics: None,
        },
        PageKind::Data | PageKind::Other => Page::DataPage {
            buf: bytes,
            num_values: details.values,
            encoding: encoding(details.encoding)?,
            def_level_encoding: encoding(details.definition_encoding)?,
            rep_level_encoding: encoding(details.repetition_encoding)?,
            statistics: None,
        },
    })
}

/// An encoding by its number in the format.
fn encoding(number: i32) -> Result<Encoding> {
    #[allow(deprecated, reason = "old writers used it for levels")]
    let bit_packed = Encoding::BIT_PACKED;
    Ok(match number {
        0 => Encoding::PLAIN,
        2 => Encoding::PLAIN_DICTIONARY,
        3 => Encoding::RLE,
        4 => bit_packed,
        5 => Encoding::DELTA_BINARY_PACKED,
        6 => Encoding::DELTA_LENGTH_BYTE_ARRAY,
        7 => Encoding::DELTA_BYTE_ARRAY,
        8 => Encoding::RLE_DICTIONARY,
        9 => Encoding::BYTE_STREAM_SPLIT,
        other => {
            return Err(Error::corrupt_data(format!(
                "a Parquet page has an unknown encoding: {other}"
            )));
        }
    })
}

/// A page reader for the decoder that checks every page header first.
struct CheckedPages {
    inner: SerializedPageReader<ColumnChunkData>,
    chunk: Arc<ColumnChunkData>,
    /// Set where this reader decompresses pages itself.
    inflates: Option<PageDecompressor>,
    /// Offset of the next page, as the inner reader will find it.
    next: u64,
    /// Offsets of the pages after it, from the offset index if there is one.
    listed_offsets: Option<VecDeque<u64>>,
    /// Whether the next of these is a dictionary, which no offset index lists.
    dictionary_next: bool,
    /// Whether a dictionary was seen.
    has_dictionary: bool,
    /// Its header, once read.
    next_header: Option<PageHead>,
    held: Arc<DecodeMemoryUse>,
    largest_page: u64,
    dictionary: u64,
    /// `None` for columns without lists.
    list_elements: Option<ListElements>,
    values: u64,
    /// Values of the chunk as its footer says; `None` once they were compared.
    footer_value_count: Option<u64>,
    /// The checks of each page.
    page_check: PageCheck,
}

impl CheckedPages {
    /// Checks that the next page, if any, may be decoded.
    fn check(&mut self) -> ParquetResult<()> {
        self.check_next_header().map_err(|e| self.chunk.fail(e))
    }

    fn check_next_header(&mut self) -> Result<()> {
        while self.next_header.is_none() && self.next < self.chunk.range.end {
            let head = self.chunk.page_header(self.next)?;
            let body = self.next + head.length as u64;
            if head.kind == PageKind::Other && self.listed_offsets.is_some() {
                return Err(Error::corrupt_data(
                    "a Parquet offset index lists a page that holds no data",
                ));
            }
            if head.compressed > self.chunk.range.end.saturating_sub(body) {
                return Err(Error::corrupt_data(
                    "a Parquet page is longer than its column's bytes",
                ));
            }
            match head.kind {
                PageKind::Other => {
                    self.next = body + head.compressed;
                    continue;
                }
                PageKind::Dictionary => {
                    if std::mem::replace(&mut self.has_dictionary, true) {
                        return Err(Error::corrupt_data(
                            "a Parquet column has more than one dictionary page",
                        ));
                    }
                    self.held
                        .reserve(head.uncompressed.saturating_sub(self.dictionary))?;
                    self.dictionary = self.dictionary.max(head.uncompressed);
                }
                PageKind::Data | PageKind::DataV2 => {
                    self.held
                        .reserve(head.uncompressed.saturating_sub(self.largest_page))?;
                    self.largest_page = self.largest_page.max(head.uncompressed);
                    self.values = self.values.saturating_add(head.details.values.into());
                }
            }
            self.next_header = Some(head);
        }
        // The counts can be compared only if all pages were seen.
        if self.next_header.is_none()
            && self.listed_offsets.is_none()
            && let Some(announced) = self.footer_value_count.take()
            && announced != self.values
        {
            return Err(Error::corrupt_data(format!(
                "the pages of a Parquet column hold {} values and its footer says {announced}",
                self.values
            )));
        }
        Ok(())
    }

    /// Advances past a page that the inner reader has read or skipped.
    fn advance_page(&mut self) {
        let looked = self.next_header.take();
        self.dictionary_next = false;
        match (&mut self.listed_offsets, looked) {
            (Some(listed), _) => self.next = listed.pop_front().unwrap_or(self.chunk.range.end),
            (None, Some(head)) => self.next += head.length as u64 + head.compressed,
            (None, None) => {}
        }
    }

    /// Whether the inner reader can skip the next page without reading it. A dictionary is always
    /// checked, since it may be decoded after it was skipped.
    fn can_skip_unread(&self) -> bool {
        self.listed_offsets.is_some() && !self.dictionary_next
    }
}

impl Drop for CheckedPages {
    fn drop(&mut self) {
        self.held
            .reservation
            .shrink(self.largest_page.saturating_add(self.dictionary));
    }
}

impl Iterator for CheckedPages {
    type Item = ParquetResult<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> ParquetResult<Option<Page>> {
        self.check()?;
        let page = match (self.inflates, self.next_header) {
            (Some(how), Some(head)) => {
                let page = decompress_page(&self.chunk, self.next, &head, how)
                    .map_err(|e| self.chunk.fail(e))?;
                self.inner.skip_next_page()?;
                Some(page)
            }
            _ => self.inner.get_next_page()?,
        };
        if let Some(page) = &page {
            self.page_check
                .check(page)
                .map_err(|e| self.chunk.fail(e))?;
            if let Some(elements) = &mut self.list_elements {
                elements
                    .add_page(page, &self.page_check, &self.held)
                    .map_err(|e| self.chunk.fail(e))?;
            }
        }
        self.advance_page();
        Ok(page)
    }

    fn peek_next_page(&mut self) -> ParquetResult<Option<PageMetadata>> {
        if !self.can_skip_unread() {
            self.check()?;
        }
        self.inner.peek_next_page()
    }

    fn skip_next_page(&mut self) -> ParquetResult<()> {
        if !self.can_skip_unread() {
            self.check()?;
        }
        self.inner.skip_next_page()?;
        self.advance_page();
        Ok(())
    }

    fn supports_deferred_dictionary(&self) -> bool {
        // A dictionary that must be decompressed here cannot be left to the inner reader.
        self.inflates.is_none() && self.inner.supports_deferred_dictionary()
    }

    fn take_deferred_dictionary(&mut self) -> ParquetResult<Option<Page>> {
        match self.inflates {
            // The inner reader skipped it, but it has been returned.
            Some(_) => Ok(None),
            None => self.inner.take_deferred_dictionary(),
        }
    }

    fn at_record_boundary(&mut self) -> ParquetResult<bool> {
        if !self.can_skip_unread() {
            self.check()?;
        }
        self.inner.at_record_boundary()
    }
}

/// The part of a row group that is wanted.
#[derive(Debug, Clone, Default)]
pub(in crate::pq) struct SelectedPageLocations {
    /// The page locations of a leaf, checked by [`SelectedPageLocations::add`]. Leaves without
    /// locations are read whole.
    locations: FxHashMap<usize, Vec<PageLocation>>,
}

impl SelectedPageLocations {
    /// Adds the pages of a leaf, unless the locations are invalid.
    pub fn add(&mut self, leaf: usize, chunk: &Range<u64>, rows: u64, locations: &[PageLocation]) {
        let offset = |page: &PageLocation| u64::try_from(page.offset).unwrap_or(u64::MAX);
        let row = |page: &PageLocation| u64::try_from(page.first_row_index).unwrap_or(u64::MAX);
        let ends = |page: &PageLocation| {
            offset(page)
                .saturating_add(u64::try_from(page.compressed_page_size).unwrap_or(u64::MAX))
        };
        let fits = locations
            .first()
            .is_some_and(|first| row(first) == 0 && offset(first) >= chunk.start)
            && locations
                .last()
                .is_some_and(|last| row(last) < rows && ends(last) <= chunk.end)
            && locations
                .windows(2)
                .all(|pair| matches!(pair, [a, b] if row(a) < row(b) && ends(a) <= offset(b)));
        if fits {
            self.locations.insert(leaf, locations.to_vec());
        }
    }

    /// The first rows of a leaf's pages.
    pub fn first_rows(&self, leaf: usize) -> Option<impl Iterator<Item = u64>> {
        Some(
            self.locations
                .get(&leaf)?
                .iter()
                .map(|page| u64::try_from(page.first_row_index).unwrap_or(0)),
        )
    }

    /// The byte ranges of a leaf's dictionary and of its pages that hold some of `wanted`.
    pub fn ranges(
        &self,
        leaf: usize,
        chunk: &Range<u64>,
        wanted: &[Range<u64>],
    ) -> Option<Vec<Range<u64>>> {
        let locations = self.locations.get(&leaf)?;
        let number = |n: i64| u64::try_from(n).unwrap_or(0);
        let mut out: Vec<Range<u64>> = Vec::new();
        let mut push = |range: Range<u64>| match out.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => out.push(range),
        };
        let first = locations
            .first()
            .map_or(chunk.end, |first| number(first.offset));
        if first > chunk.start {
            push(chunk.start..first);
        }
        let ends = locations
            .iter()
            .skip(1)
            .map(|next| number(next.first_row_index))
            .chain([u64::MAX]);
        for (page, end) in locations.iter().zip(ends) {
            let from = number(page.first_row_index);
            let after = wanted.partition_point(|range| range.end <= from);
            if wanted.get(after).is_some_and(|range| range.start < end) {
                let start = number(page.offset);
                push(start..start + number(page.compressed_page_size.into()));
            }
        }
        Some(out)
    }
}

/// A row group whose bytes are being fetched.
pub(in crate::pq) struct RowGroupFetch {
    footer: Arc<ParquetFooter>,
    group: usize,
    leaves: Vec<usize>,
    ranges: Vec<Range<u64>>,
    bytes: FetchBytes,
    pages: SelectedPageLocations,
}

enum FetchBytes {
    /// The bytes are in the end of the file, which was read already.
    Known(Vec<Bytes>),
    Remote(PendingResult<Vec<Bytes>>),
    /// The ranges that are fetched, in order, for each leaf.
    Parts(Vec<Vec<Range<u64>>>, PendingResult<Vec<Bytes>>),
    Windows(Arc<dyn ObjectReader>),
}

/// The leaves (column indexes of the file) of a row group to fetch.
pub(in crate::pq) struct ChunkRequest<'a> {
    pub group: usize,
    pub leaves: &'a [usize],
    /// Rows of the group, ascending, and the locations of their pages; `None` for all.
    pub part: Option<(&'a [Range<u64>], &'a SelectedPageLocations)>,
}

/// Starts to fetch chunks of a row group.
pub(in crate::pq) fn fetch(
    file: &StoreObject,
    footer: &Arc<ParquetFooter>,
    end: Option<&FileTail>,
    wish: &ChunkRequest<'_>,
) -> Result<RowGroupFetch> {
    let ChunkRequest {
        group,
        leaves,
        part,
    } = wish;
    let metadata = footer
        .metadata
        .row_groups()
        .get(*group)
        .ok_or_else(|| Error::internal(format!("there is no row group {group}")))?;
    let ranges = leaves
        .iter()
        .map(|leaf| {
            let column = metadata
                .columns()
                .get(*leaf)
                .ok_or_else(|| Error::internal(format!("there is no column {leaf}")))?;
            if column.file_path().is_some_and(|path| !path.is_empty()) {
                return Err(Error::unsupported(
                    "the Parquet file keeps its columns in another file, which is not supported",
                ));
            }
            chunk_range(column, footer.size)
        })
        .collect::<Result<Vec<_>>>()?;
    let known = end.and_then(|end| {
        ranges
            .iter()
            .map(|range| end.get(range))
            .collect::<Option<Vec<_>>>()
    });
    let opened = if known.is_none() {
        file.store.open_reader(&file.path)?
    } else {
        None
    };
    let bytes = match (known, opened, part) {
        (Some(bytes), ..) => FetchBytes::Known(bytes),
        (None, Some(opened), _) => FetchBytes::Windows(opened),
        (None, None, Some((rows, pages))) => {
            let parts: Vec<Vec<Range<u64>>> = leaves
                .iter()
                .zip(&ranges)
                .map(|(leaf, chunk)| {
                    pages
                        .ranges(*leaf, chunk, rows)
                        .unwrap_or_else(|| vec![chunk.clone()])
                })
                .collect();
            let all = parts.iter().flatten().cloned().collect();
            FetchBytes::Parts(parts, file.store.get_ranges(&file.path, all))
        }
        (None, None, None) => FetchBytes::Remote(file.store.get_ranges(&file.path, ranges.clone())),
    };
    let pages = part.map(|(_, pages)| pages.clone()).unwrap_or_default();
    Ok(RowGroupFetch {
        footer: Arc::clone(footer),
        group: *group,
        leaves: leaves.to_vec(),
        ranges,
        bytes,
        pages,
    })
}

impl RowGroupFetch {
    /// Waits for the bytes.
    pub fn wait(self) -> Result<FetchedRowGroup> {
        let failure = SharedDecodeError::default();
        let whole =
            |bytes: Vec<Bytes>| bytes.into_iter().map(ChunkBytes::Whole).collect::<Vec<_>>();
        let bytes = match self.bytes {
            FetchBytes::Known(bytes) => whole(bytes),
            FetchBytes::Remote(pending) => {
                let bytes = pending.wait()?;
                if !bytes
                    .iter()
                    .map(|b| b.len() as u64)
                    .eq(self.ranges.iter().map(|r| r.end - r.start))
                {
                    return Err(Error::corrupt_data(
                        "the file is shorter than its Parquet footer says",
                    ));
                }
                whole(bytes)
            }
            FetchBytes::Parts(parts, pending) => {
                let mut bytes = pending.wait()?.into_iter();
                let mut take = |range: Range<u64>| match bytes.next() {
                    Some(bytes) if bytes.len() as u64 == range.end - range.start => {
                        Ok((range.start, bytes))
                    }
                    _ => Err(Error::corrupt_data(
                        "the file is shorter than its Parquet footer says",
                    )),
                };
                parts
                    .into_iter()
                    .map(|ranges| {
                        Ok(ChunkBytes::Pages(
                            ranges.into_iter().map(&mut take).collect::<Result<_>>()?,
                        ))
                    })
                    .collect::<Result<_>>()?
            }
            FetchBytes::Windows(opened) => self
                .ranges
                .iter()
                .map(|_| ChunkBytes::Window {
                    opened: Arc::clone(&opened),
                    held: Mutex::default(),
                })
                .collect(),
        };
        let stored = self
            .ranges
            .iter()
            .map(|range| range.end - range.start)
            .sum();
        let chunks = self
            .ranges
            .into_iter()
            .zip(bytes)
            .map(|(range, bytes)| {
                Arc::new(ColumnChunkData {
                    range,
                    bytes,
                    failure: Arc::clone(&failure),
                })
            })
            .collect();
        Ok(FetchedRowGroup {
            footer: self.footer,
            group: self.group,
            leaves: self.leaves,
            chunks,
            pages: self.pages,
            held: Arc::new(DecodeMemoryUse {
                stored,
                ..DecodeMemoryUse::default()
            }),
            failure,
        })
    }
}

/// A row group whose bytes can be read: the source of pages for arrow-rs' readers. Column `i` is
/// leaf `leaves[i]` of the file.
pub(in crate::pq) struct FetchedRowGroup {
    footer: Arc<ParquetFooter>,
    group: usize,
    leaves: Vec<usize>,
    chunks: Vec<Arc<ColumnChunkData>>,
    pages: SelectedPageLocations,
    held: Arc<DecodeMemoryUse>,
    failure: SharedDecodeError,
}

impl FetchedRowGroup {
    fn metadata(&self) -> Option<&RowGroupMetaData> {
        self.footer.metadata.row_groups().get(self.group)
    }

    /// The footer's metadata of column `i`.
    pub fn column(&self, i: usize) -> Option<&ColumnChunkMetaData> {
        self.metadata()?.columns().get(*self.leaves.get(i)?)
    }

    /// Pages of column `i` for [`crate::pq::decode::flat_column`], which checks levels itself.
    pub fn flat_pages(&self, i: usize) -> ParquetResult<Box<dyn PageReader>> {
        Ok(Box::new(self.checked_pages(i, false)?))
    }

    fn checked_pages(&self, i: usize, checks_levels: bool) -> ParquetResult<CheckedPages> {
        let missing = || ParquetError::General(format!("there is no column {i}"));
        let chunk = self.chunks.get(i).ok_or_else(missing)?;
        let metadata = self.metadata().ok_or_else(missing)?;
        let leaf = self.leaves.get(i).ok_or_else(missing)?;
        let column = metadata.columns().get(*leaf).ok_or_else(missing)?;
        let locations = self.pages.locations.get(leaf).cloned();
        let mut listed: Option<VecDeque<u64>> = locations.as_ref().map(|pages| {
            pages
                .iter()
                .map(|page| u64::try_from(page.offset).unwrap_or(u64::MAX))
                .collect()
        });
        // The bytes before the first listed page are a dictionary.
        let dictionary_next = listed
            .as_ref()
            .is_some_and(|listed| listed.front() != Some(&chunk.range.start));
        if !dictionary_next && let Some(listed) = &mut listed {
            listed.pop_front();
        }
        let inner =
            SerializedPageReader::new(Arc::clone(chunk), column, self.num_rows(), locations)?;
        Ok(CheckedPages {
            inner,
            chunk: Arc::clone(chunk),
            inflates: PageDecompressor::from_codec(column.compression_codec()),
            next: chunk.range.start,
            listed_offsets: listed,
            dictionary_next,
            has_dictionary: false,
            next_header: None,
            held: Arc::clone(&self.held),
            largest_page: 0,
            dictionary: 0,
            list_elements: ListElements::new(column.column_descr()),
            values: 0,
            footer_value_count: u64::try_from(column.num_values()).ok(),
            page_check: PageCheck::new(column.column_descr(), checks_levels),
        })
    }

    /// The group with only these of its columns.
    pub fn project(&self, columns: &[usize]) -> Self {
        Self {
            footer: Arc::clone(&self.footer),
            group: self.group,
            leaves: columns
                .iter()
                .filter_map(|i| self.leaves.get(*i).copied())
                .collect(),
            chunks: columns
                .iter()
                .filter_map(|i| self.chunks.get(*i).cloned())
                .collect(),
            pages: self.pages.clone(),
            held: Arc::clone(&self.held),
            failure: Arc::clone(&self.failure),
        }
    }

    /// The memory that its columns take.
    pub fn memory(&self) -> Arc<DecodeMemoryUse> {
        Arc::clone(&self.held)
    }

    /// The error of this crate that made the decoder fail, if there is one.
    pub fn failure(&self) -> GroupFailure {
        GroupFailure(Arc::clone(&self.failure))
    }
}

/// See [`FetchedRowGroup::failure`].
#[derive(Clone)]
pub(in crate::pq) struct GroupFailure(SharedDecodeError);

impl GroupFailure {
    /// `error`, or the error of this crate that caused it.
    pub fn or(&self, error: Error) -> Error {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
            .unwrap_or(error)
    }
}

impl RowGroups for FetchedRowGroup {
    fn num_rows(&self) -> usize {
        self.metadata()
            .and_then(|m| usize::try_from(m.num_rows()).ok())
            .unwrap_or(0)
    }

    fn column_chunks(&self, i: usize) -> ParquetResult<Box<dyn PageIterator>> {
        Ok(Box::new(OneChunk(Some(self.checked_pages(i, true)?))))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(self.metadata().into_iter())
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.footer.metadata
    }
}

struct OneChunk(Option<CheckedPages>);

impl Iterator for OneChunk {
    type Item = ParquetResult<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0
            .take()
            .map(|pages| Ok(Box::new(pages) as Box<dyn PageReader>))
    }
}

impl PageIterator for OneChunk {}
