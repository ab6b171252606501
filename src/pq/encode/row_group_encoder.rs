//! Parquet files made of row groups: batches -> row groups encoded on any thread -> one file after
//! the other.
//!
//! [`RowGroupEncoderFactory`] holds a schema and the writer properties of its columns, and turns
//! batches into the bytes of a row group; many encoders work at once. [`ParquetSink`] appends row
//! groups to an upload, so a file of any size costs the memory of the row groups in flight.
//!
//! The file has a Parquet schema alone: Arrow's schema would announce string views, which some
//! readers do not support.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_writer::{ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::TypePtr;

use crate::error::{Error, Result};
use crate::pq::decode::checkpoint_file::RawFile;
use crate::pq::input::page_checksum::{ChunkWriter, ChunkWriterFactory, EncodedChunk};
use crate::store::ObjectUpload;

/// The compression of a file's pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SinkCodec {
    /// Supported by every reader.
    #[default]
    Snappy,
    /// Half the size at twice the CPU time; level 1.
    Zstd,
}

/// Approximate bytes of a page: each column holds one while a row group is encoded, and a reader
/// holds the pages of a batch.
const PAGE_BYTES: usize = 64 << 10;

/// Encodes row groups of one schema. Clones share everything.
#[derive(Debug, Clone)]
pub struct RowGroupEncoderFactory {
    schema: SchemaRef,
    root: TypePtr,
    properties: WriterPropertiesPtr,
    factory: Arc<ChunkWriterFactory>,
}

/// The bytes of a row group.
pub struct EncodedRowGroup(Vec<EncodedChunk>);

impl RowGroupEncoderFactory {
    /// An encoder of `schema`. `repeats` returns for a leaf's path (Parquet's: `add`,
    /// `partitionValues`, `key_value`, `key`) whether its values repeat, so that a dictionary pays.
    ///
    /// # Errors
    /// [`Error::Internal`] for a schema that Parquet cannot hold.
    pub fn new(
        schema: SchemaRef,
        codec: SinkCodec,
        repeats: impl Fn(&[String]) -> bool,
    ) -> Result<Self> {
        let descriptor = ArrowSchemaConverter::new()
            .convert(&schema)
            .map_err(internal)?;
        let compression = match codec {
            SinkCodec::Snappy => Compression::SNAPPY,
            SinkCodec::Zstd => Compression::ZSTD(ZstdLevel::try_new(1).map_err(internal)?),
        };
        let mut properties = WriterProperties::builder()
            .set_compression(compression)
            .set_created_by(concat!("deltafast ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .set_data_page_size_limit(PAGE_BYTES)
            .set_dictionary_enabled(false);
        for column in descriptor.columns() {
            if repeats(column.path().parts()) {
                properties = properties.set_column_dictionary_enabled(column.path().clone(), true);
            }
        }
        let (root, properties) = (descriptor.root_schema_ptr(), Arc::new(properties.build()));
        // The factory is only made from a writer, of which nothing else is needed.
        let writer =
            SerializedFileWriter::new(io::sink(), Arc::clone(&root), Arc::clone(&properties))
                .map_err(internal)?;
        let factory = Arc::new(ChunkWriterFactory::new(ArrowRowGroupWriterFactory::new(
            &writer,
            Arc::clone(&schema),
        )));
        Ok(Self {
            schema,
            root,
            properties,
            factory,
        })
    }

    /// The schema of the batches.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Whether a file has exactly the columns that this factory writes.
    #[must_use]
    pub fn has_schema_of(&self, file: &RawFile) -> bool {
        file.has_schema(&self.root)
    }

    /// Begins a row group.
    ///
    /// # Errors
    /// [`Error::Internal`].
    pub fn row_group_encoder(&self) -> Result<RowGroupEncoder<'_>> {
        Ok(RowGroupEncoder {
            schema: &self.schema,
            writers: self.factory.create(0).map_err(internal)?,
        })
    }

    /// Encodes batches of the schema as one row group.
    ///
    /// # Errors
    /// [`Error::Internal`] for batches of another schema.
    pub fn encode(&self, batches: &[RecordBatch]) -> Result<EncodedRowGroup> {
        let mut group = self.row_group_encoder()?;
        batches.iter().try_for_each(|batch| group.write(batch))?;
        group.close()
    }
}

/// A row group that is being encoded.
pub struct RowGroupEncoder<'a> {
    schema: &'a SchemaRef,
    writers: Vec<ChunkWriter>,
}

impl RowGroupEncoder<'_> {
    /// Adds rows.
    ///
    /// # Errors
    /// [`Error::Internal`] for a batch of another schema.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut next = self.writers.iter_mut();
        for (field, column) in self.schema.fields().iter().zip(batch.columns()) {
            for leaf in compute_leaves(field, column).map_err(internal)? {
                let Some(writer) = next.next() else {
                    return Err(Error::internal("a batch has more leaves than its schema"));
                };
                writer.write(&leaf).map_err(internal)?;
            }
        }
        Ok(())
    }

    /// Ends the row group.
    ///
    /// # Errors
    /// [`Error::Internal`].
    pub fn close(self) -> Result<EncodedRowGroup> {
        self.writers
            .into_iter()
            .map(|writer| writer.close().map_err(internal))
            .collect::<Result<_>>()
            .map(EncodedRowGroup)
    }
}

fn internal(error: ParquetError) -> Error {
    Error::internal(format!("a Parquet file cannot be encoded: {error}"))
}

/// A Parquet file that is being uploaded.
pub struct ParquetSink {
    writer: SerializedFileWriter<SinkUploadWriter>,
}

impl ParquetSink {
    /// Begins a file.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub fn new(encoder: &RowGroupEncoderFactory, upload: Box<dyn ObjectUpload>) -> Result<Self> {
        let out = SinkUploadWriter {
            upload: Some(upload),
            buffered: Vec::new(),
            failure: None,
        };
        let writer = SerializedFileWriter::new(
            out,
            Arc::clone(&encoder.root),
            Arc::clone(&encoder.properties),
        )
        .map_err(internal)?;
        Ok(Self { writer })
    }

    /// Adds a row group.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub fn append(&mut self, group: EncodedRowGroup) -> Result<()> {
        let append = || -> Result<(), ParquetError> {
            let mut writer = self.writer.next_row_group()?;
            for chunk in group.0 {
                chunk.append(&mut writer)?;
            }
            writer.close().map(|_| ())
        };
        append().map_err(|error| self.failure(error))
    }

    /// Ends the file and makes it visible; returns its size in bytes.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub fn finish(mut self) -> Result<u64> {
        if let Err(error) = self.writer.finish() {
            return Err(self.failure(error));
        }
        let out = self.writer.inner_mut();
        out.send()?;
        let upload = out
            .upload
            .take()
            .ok_or_else(|| Error::internal("a file was finished twice"))?;
        upload.finish().wait().map(|meta| meta.size)
    }

    /// The store's error, if the store failed.
    fn failure(&mut self, error: ParquetError) -> Error {
        self.writer
            .inner_mut()
            .failure
            .take()
            .unwrap_or_else(|| internal(error))
    }
}

/// Buffers the writer's small writes and sends them in larger pieces.
struct SinkUploadWriter {
    /// Present until the file is finished.
    upload: Option<Box<dyn ObjectUpload>>,
    buffered: Vec<u8>,
    failure: Option<Error>,
}

impl SinkUploadWriter {
    const PIECE: usize = 1 << 20;

    fn send(&mut self) -> Result<()> {
        let sent = self
            .upload
            .as_mut()
            .map_or(Ok(()), |upload| upload.write(&self.buffered));
        self.buffered.clear();
        sent
    }
}

impl Write for SinkUploadWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffered.extend_from_slice(bytes);
        if self.buffered.len() >= Self::PIECE
            && let Err(error) = self.send()
        {
            self.failure = Some(error);
            return Err(io::Error::other("the store failed"));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};

    use bytes::Bytes;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use parquet::file::metadata::RowGroupMetaData;

    use super::*;
    use crate::pq::tests::ints;
    use crate::store::{ObjectMeta, PendingResult};

    #[derive(Clone, Default)]
    struct Memory {
        bytes: Arc<Mutex<(Vec<u8>, bool)>>,
        full_at: Option<usize>,
    }

    impl ObjectUpload for Memory {
        fn write(&mut self, bytes: &[u8]) -> Result<()> {
            let mut held = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
            if self
                .full_at
                .is_some_and(|full| held.0.len() + bytes.len() > full)
            {
                return Err(Error::storage("the disk is full", false));
            }
            held.0.extend_from_slice(bytes);
            Ok(())
        }

        fn finish(self: Box<Self>) -> PendingResult<ObjectMeta> {
            let mut held = self.bytes.lock().unwrap();
            held.1 = true;
            let size = held.0.len() as u64;
            PendingResult::lazy(move || {
                Ok(ObjectMeta {
                    path: String::new(),
                    size,
                    modified_ms: 0,
                })
            })
        }
    }

    #[test]
    fn row_groups_encoded_apart_make_one_file() {
        let encoder =
            RowGroupEncoderFactory::new(ints(0).schema(), SinkCodec::Zstd, |_| false).unwrap();
        let memory = Memory::default();
        let mut sink = ParquetSink::new(&encoder, Box::new(memory.clone())).unwrap();
        let groups: Vec<EncodedRowGroup> = (0..3)
            .map(|n| encoder.encode(&[ints(1000 * n), ints(10)]).unwrap())
            .collect();
        for group in groups {
            sink.append(group).unwrap();
        }
        let size = sink.finish().unwrap();
        let (bytes, finished) = memory.bytes.lock().unwrap().clone();
        assert!(finished && bytes.len() as u64 == size);
        let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes)).unwrap();
        let groups: Vec<i64> = reader
            .metadata()
            .row_groups()
            .iter()
            .map(RowGroupMetaData::num_rows)
            .collect();
        assert_eq!(groups, [10, 1010, 2010]);
        let rows: usize = reader
            .build()
            .unwrap()
            .map(|batch| batch.unwrap().num_rows())
            .sum();
        assert_eq!(rows, 3030);
    }

    #[test]
    fn every_flipped_bit_of_a_page_is_an_error_or_changes_nothing() {
        use arrow_array::{ArrayRef, Int64Array, StringArray, StructArray};
        use arrow_schema::{DataType, Field};

        // Actions as a checkpoint has them: one of a few kinds in each row.
        let is_add = |n: &usize| !n.is_multiple_of(5);
        let paths: StringArray = (0..40)
            .map(|n| is_add(&n).then(|| format!("part-{n}.parquet")))
            .collect();
        let sizes: Int64Array = (0..40)
            .map(|n| is_add(&(n as usize)).then_some(n * 100))
            .collect();
        let stats: StringArray = (0..40)
            .map(|n| (is_add(&n) && n % 3 == 0).then(|| format!(r#"{{"numRecords":{n}}}"#)))
            .collect();
        let fields = [
            ("path", DataType::Utf8),
            ("size", DataType::Int64),
            ("stats", DataType::Utf8),
        ];
        let fields = fields
            .into_iter()
            .map(|(name, of)| Field::new(name, of, true))
            .collect();
        let valid: Vec<bool> = (0..40).map(|n| is_add(&n)).collect();
        let add = StructArray::new(
            fields,
            vec![Arc::new(paths), Arc::new(sizes), Arc::new(stats)],
            Some(valid.into()),
        );
        let apps: StringArray = (0..40).map(|n| (n == 5).then_some("app")).collect();
        let batch = RecordBatch::try_from_iter_with_nullable([
            ("add", Arc::new(add) as ArrayRef, true),
            ("app", Arc::new(apps), true),
        ])
        .unwrap();
        for codec in [SinkCodec::Snappy, SinkCodec::Zstd] {
            let encoder = RowGroupEncoderFactory::new(batch.schema(), codec, |path| {
                path.ends_with(&["size".to_owned()])
            })
            .unwrap();
            let memory = Memory::default();
            let mut sink = ParquetSink::new(&encoder, Box::new(memory.clone())).unwrap();
            sink.append(
                encoder
                    .encode(&[batch.slice(0, 30), batch.slice(30, 5)])
                    .unwrap(),
            )
            .unwrap();
            sink.append(encoder.encode(&[batch.slice(35, 5)]).unwrap())
                .unwrap();
            sink.finish().unwrap();
            let bytes = memory.bytes.lock().unwrap().0.clone();
            crate::pq::tests::flipped_bits(&bytes, |bytes| {
                let raw = crate::pq::open_raw(&crate::pq::tests::file_of(bytes))?;
                let groups: Vec<usize> = (0..raw.row_groups().len()).collect();
                raw.read(
                    &groups,
                    |_| true,
                    crate::protocol::schema::StringLayout::View,
                    1000,
                    1 << 20,
                )?
                .collect()
            });
        }
    }

    #[test]
    fn what_the_store_says_is_the_error() {
        let encoder =
            RowGroupEncoderFactory::new(ints(0).schema(), SinkCodec::Snappy, |_| false).unwrap();
        let memory = Memory {
            full_at: Some(1 << 20),
            ..Memory::default()
        };
        let mut sink = ParquetSink::new(&encoder, Box::new(memory.clone())).unwrap();
        let error = (0..100)
            .find_map(|_| sink.append(encoder.encode(&[ints(100_000)]).unwrap()).err())
            .unwrap();
        assert!(error.to_string().contains("the disk is full"), "{error}");
        assert!(!memory.bytes.lock().unwrap().1);
    }
}
