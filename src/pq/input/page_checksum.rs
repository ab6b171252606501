//! Page checksums: encoded pages -> the same pages with the CRC-32 of their bytes in their headers.
//!
//! The `parquet` crate verifies checksums but does not write them. Its column writers give each
//! page, header and body, to a page store. The store here adds the checksum to the header (field 4
//! of `PageHeader`; it covers the bytes after the header as they are stored, for pages V2 the
//! levels too) and keeps the pages. [`EncodedChunk`] corrects the sizes and offsets, which the
//! column writer computed without the checksum.
//!
//! Cost: six bytes per page, and one pass over its compressed bytes while they are in the
//! processor's cache.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use parquet::arrow::arrow_writer::{
    ArrowColumnWriter, ArrowLeafColumn, ArrowRowGroupWriterFactory, PageKey, PageStore,
    PageStoreArgs, PageStoreFactory,
};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::writer::SerializedRowGroupWriter;

use crate::pq::input::header_check::{PageKind, with_checksum};

/// The pages of one column chunk.
#[derive(Debug, Default)]
struct ChunkPages {
    /// The header of the page whose body comes next.
    header: Option<Bytes>,
    /// Header and body; at most one.
    dictionary: Option<(Bytes, Bytes)>,
    data: Vec<(Bytes, Bytes)>,
    /// Bytes of all of them.
    length: usize,
    /// Bytes that checksums added.
    added: usize,
    /// Number of blobs added.
    count: u64,
}

type SharedPages = Arc<Mutex<ChunkPages>>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No thread panics while it holds one of these locks.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn defect(what: &str) -> ParquetError {
    ParquetError::General(format!("a page cannot be given its checksum: {what}"))
}

impl ChunkPages {
    /// Adds a header, or the body to the header before it.
    fn push(&mut self, blob: Bytes) -> Result<()> {
        self.count += 1;
        let Some(header) = self.header.take() else {
            self.header = Some(blob);
            return Ok(());
        };
        let (with, kind) = with_checksum(&header, &blob)
            .ok_or_else(|| defect("its header does not fit its body"))?;
        self.added += with.len() - header.len();
        self.length += with.len() + blob.len();
        let page = (Bytes::from(with), blob);
        match kind {
            PageKind::Dictionary if self.dictionary.is_some() => {
                return Err(defect("it is a second dictionary"));
            }
            PageKind::Dictionary => self.dictionary = Some(page),
            _ => self.data.push(page),
        }
        Ok(())
    }
}

/// The page store of a column writer.
struct ChecksumPageStore(SharedPages);

impl PageStore for ChecksumPageStore {
    fn put(&mut self, value: Bytes) -> Result<PageKey> {
        let mut pages = lock(&self.0);
        pages.push(value)?;
        Ok(PageKey::new(pages.count))
    }

    fn take(&mut self, _: PageKey) -> Result<Bytes> {
        Err(defect("pages are written by `EncodedChunk`"))
    }

    fn memory_size(&self) -> usize {
        lock(&self.0).length
    }
}

/// Makes page stores and remembers them until [`ChunkWriterFactory::create`] takes them.
#[derive(Debug, Default)]
struct ChecksumPageStores(Mutex<Vec<SharedPages>>);

impl PageStoreFactory for ChecksumPageStores {
    fn create(&self, _: &PageStoreArgs<'_>) -> Result<Box<dyn PageStore>> {
        let pages = SharedPages::default();
        lock(&self.0).push(Arc::clone(&pages));
        Ok(Box::new(ChecksumPageStore(pages)))
    }
}

/// Makes the writers of a row group's leaf columns.
#[derive(Debug)]
pub(in crate::pq) struct ChunkWriterFactory {
    inner: ArrowRowGroupWriterFactory,
    stores: Arc<ChecksumPageStores>,
    /// Locked while writers are made, so that the stores belong to them.
    creating: Mutex<()>,
}

impl ChunkWriterFactory {
    pub fn new(inner: ArrowRowGroupWriterFactory) -> Self {
        let stores = Arc::new(ChecksumPageStores::default());
        let inner = inner.with_page_store_factory(Arc::clone(&stores) as Arc<dyn PageStoreFactory>);
        Self {
            inner,
            stores,
            creating: Mutex::new(()),
        }
    }

    /// The writers of row group `group`, one for each leaf.
    pub fn create(&self, group: usize) -> Result<Vec<ChunkWriter>> {
        let _creating = lock(&self.creating);
        lock(&self.stores.0).clear();
        let writers = self.inner.create_column_writers(group)?;
        let pages = std::mem::take(&mut *lock(&self.stores.0));
        if pages.len() != writers.len() {
            return Err(defect("a column has no page store"));
        }
        Ok(writers
            .into_iter()
            .zip(pages)
            .map(|(writer, pages)| ChunkWriter { writer, pages })
            .collect())
    }
}

/// Encodes a leaf column.
pub(in crate::pq) struct ChunkWriter {
    writer: ArrowColumnWriter,
    pages: SharedPages,
}

impl ChunkWriter {
    pub fn write(&mut self, leaf: &ArrowLeafColumn) -> Result<()> {
        self.writer.write(leaf)
    }

    /// Bytes that it takes in memory.
    pub fn memory_size(&self) -> usize {
        self.writer.memory_size()
    }

    /// Bytes that the values given so far will take in the file.
    pub fn estimated_bytes(&self) -> usize {
        self.writer.get_estimated_total_bytes()
    }

    /// Ends the chunk.
    pub fn close(self) -> Result<EncodedChunk> {
        let mut chunk = self.writer.close()?;
        let pages = std::mem::take(&mut *lock(&self.pages));
        if pages.header.is_some() {
            return Err(defect("it has no body"));
        }
        let close = chunk.close_mut();
        let size = |(header, body): &(Bytes, Bytes)| (header.len() + body.len()) as i64;
        let mut metadata = close
            .metadata
            .clone()
            .into_builder()
            .set_total_compressed_size(pages.length as i64)
            .set_total_uncompressed_size(close.metadata.uncompressed_size() + pages.added as i64);
        let mut offset = 0;
        if let Some(dictionary) = &pages.dictionary {
            offset = size(dictionary);
            metadata = metadata
                .set_dictionary_page_offset(Some(0))
                .set_data_page_offset(offset);
        }
        let mut offset_index = close.offset_index.take();
        if let Some(index) = &mut offset_index {
            if index.page_locations.len() != pages.data.len() {
                return Err(defect("the offset index has other pages"));
            }
            for (location, page) in index.page_locations.iter_mut().zip(&pages.data) {
                location.offset = offset;
                location.compressed_page_size =
                    i32::try_from(size(page)).map_err(|_| defect("it is too large"))?;
                offset += size(page);
            }
        }
        let close = ColumnCloseResult {
            bytes_written: pages.length as u64,
            rows_written: close.rows_written,
            metadata: metadata.build()?,
            bloom_filter: close.bloom_filter.take(),
            column_index: close.column_index.take(),
            offset_index,
        };
        Ok(EncodedChunk { pages, close })
    }
}

/// A column chunk that is ready to be written.
pub(in crate::pq) struct EncodedChunk {
    pages: ChunkPages,
    close: ColumnCloseResult,
}

impl EncodedChunk {
    /// Its metadata for the footer.
    pub fn close(&self) -> &ColumnCloseResult {
        &self.close
    }

    pub fn close_mut(&mut self) -> &mut ColumnCloseResult {
        &mut self.close
    }

    /// Writes it as the row group's next column.
    pub fn append<W: Write + Send>(
        self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<()> {
        let length = self.pages.length as u64;
        let pages = self.pages.dictionary.into_iter().chain(self.pages.data);
        let pieces = pages.flat_map(|(header, body)| [header, body]).collect();
        group.append_column(
            &PageSource {
                length,
                pieces: Mutex::new(pieces),
            },
            self.close,
        )
    }
}

/// The bytes of a chunk, which are read once.
struct PageSource {
    length: u64,
    pieces: Mutex<VecDeque<Bytes>>,
}

impl Length for PageSource {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for PageSource {
    type T = PageRead;

    fn get_read(&self, _: u64) -> Result<PageRead> {
        Ok(PageRead(std::mem::take(&mut *lock(&self.pieces))))
    }

    fn get_bytes(&self, _: u64, _: usize) -> Result<Bytes> {
        Err(defect("a chunk is read in one go"))
    }
}

/// Pages are freed as they are read.
struct PageRead(VecDeque<Bytes>);

impl Read for PageRead {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while let Some(piece) = self.0.front_mut() {
            let some = piece.split_to((out.len() - done).min(piece.len()));
            if let Some(to) = out.get_mut(done..done + some.len()) {
                to.copy_from_slice(&some);
            }
            done += some.len();
            if !piece.is_empty() {
                break;
            }
            self.0.pop_front();
        }
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    use arrow_schema::{DataType, Field};
    use parquet::arrow::ArrowSchemaConverter;
    use parquet::arrow::arrow_reader::{
        ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
    };
    use parquet::arrow::arrow_writer::compute_leaves;
    use parquet::basic::Compression;
    use parquet::file::metadata::PageIndexPolicy;
    use parquet::file::properties::{WriterProperties, WriterVersion};
    use parquet::file::writer::SerializedFileWriter;

    use super::*;
    use crate::pq::input::header_check::page_head;

    /// A column without dictionary, one with, and one whose dictionary grows too large on the way.
    fn batch() -> RecordBatch {
        let ids: ArrayRef = Arc::new((0..5000).collect::<Int64Array>());
        let names: ArrayRef = Arc::new(
            (0..5000)
                .map(|n| (n % 9 != 0).then(|| format!("name {}", n % 7)))
                .collect::<StringArray>(),
        );
        let mixed: ArrayRef = Arc::new(
            (0..5000)
                .map(|n| Some(format!("value {}", if n < 100 { n % 3 } else { n })))
                .collect::<StringArray>(),
        );
        RecordBatch::try_from_iter_with_nullable([
            ("id", ids, false),
            ("name", names, true),
            ("mixed", mixed, true),
        ])
        .unwrap()
    }

    fn file(properties: WriterProperties) -> Bytes {
        let batch = batch();
        let (schema, properties) = (batch.schema(), Arc::new(properties));
        let root = ArrowSchemaConverter::new()
            .convert(&schema)
            .unwrap()
            .root_schema_ptr();
        let mut writer = SerializedFileWriter::new(Vec::new(), root, properties).unwrap();
        let factory = ChunkWriterFactory::new(ArrowRowGroupWriterFactory::new(
            &writer,
            Arc::clone(&schema),
        ));
        for part in [batch.slice(0, 3000), batch.slice(3000, 2000)] {
            let mut writers = factory.create(0).unwrap();
            for ((field, column), writer) in
                schema.fields().iter().zip(part.columns()).zip(&mut writers)
            {
                writer
                    .write(&compute_leaves(field, column).unwrap()[0])
                    .unwrap();
            }
            let mut group = writer.next_row_group().unwrap();
            for writer in writers {
                writer.close().unwrap().append(&mut group).unwrap();
            }
            group.close().unwrap();
        }
        writer.into_inner().unwrap().into()
    }

    #[test]
    fn every_page_has_the_checksum_of_its_bytes_and_the_footer_finds_it() {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            for codec in [
                Compression::UNCOMPRESSED,
                Compression::SNAPPY,
                Compression::ZSTD(Default::default()),
            ] {
                let properties = WriterProperties::builder()
                    .set_writer_version(version)
                    .set_compression(codec)
                    .set_write_batch_size(64)
                    .set_dictionary_page_size_limit(2000)
                    .set_column_dictionary_enabled("id".into(), false)
                    .set_data_page_row_count_limit(700);
                let bytes = file(properties.build());
                let options =
                    ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
                let metadata = ArrowReaderMetadata::load(&bytes, options).unwrap();
                for (n, group) in metadata.metadata().row_groups().iter().enumerate() {
                    for (leaf, column) in group.columns().iter().enumerate() {
                        let (mut at, length) = column.byte_range();
                        let (end, mut data) = (at + length, Vec::new());
                        while at < end {
                            let head = page_head(&bytes[at as usize..]).unwrap();
                            let body = at as usize + head.length;
                            let next = body + head.compressed as usize;
                            assert_eq!(head.checksum, Some(crc32fast::hash(&bytes[body..next])));
                            match head.kind {
                                PageKind::Dictionary => {
                                    assert_eq!(column.dictionary_page_offset(), Some(at as i64));
                                }
                                _ => data.push((at as i64, (next as u64 - at) as i32)),
                            }
                            at = next as u64;
                        }
                        assert_eq!(at, end);
                        assert_eq!(column.data_page_offset(), data[0].0);
                        assert_eq!(column.dictionary_page_offset().is_some(), leaf > 0);
                        let pages = metadata.metadata().page_index_for_row_group(n);
                        let index = pages.offset_index(leaf).unwrap().page_locations();
                        assert_eq!(
                            index
                                .iter()
                                .map(|page| (page.offset, page.compressed_page_size))
                                .collect::<Vec<_>>(),
                            data
                        );
                        assert!(data.len() > 1);
                    }
                }
                let read = ParquetRecordBatchReaderBuilder::try_new(bytes)
                    .unwrap()
                    .with_batch_size(10_000)
                    .build()
                    .unwrap();
                let read: Vec<RecordBatch> = read.map(Result::unwrap).collect();
                assert_eq!(read.iter().map(RecordBatch::num_rows).sum::<usize>(), 5000);
                assert_eq!(read[0], batch().slice(0, read[0].num_rows()));
            }
        }
    }

    #[test]
    fn writers_made_on_several_threads_keep_their_own_pages() {
        let schema = Arc::new(arrow_schema::Schema::new(vec![Field::new(
            "n",
            DataType::Int64,
            false,
        )]));
        let root = ArrowSchemaConverter::new()
            .convert(&schema)
            .unwrap()
            .root_schema_ptr();
        let writer = SerializedFileWriter::new(io::sink(), root, Arc::default()).unwrap();
        let factory = ChunkWriterFactory::new(ArrowRowGroupWriterFactory::new(
            &writer,
            Arc::clone(&schema),
        ));
        std::thread::scope(|scope| {
            for rows in [10, 200, 3000] {
                let (factory, schema) = (&factory, &schema);
                scope.spawn(move || {
                    for _ in 0..20 {
                        let mut writer = factory.create(0).unwrap().remove(0);
                        let array: ArrayRef = Arc::new((0..rows).collect::<Int64Array>());
                        writer
                            .write(&compute_leaves(schema.field(0), &array).unwrap()[0])
                            .unwrap();
                        assert_eq!(writer.close().unwrap().close().rows_written, rows as u64);
                    }
                });
            }
        });
    }
}
