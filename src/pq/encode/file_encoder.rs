//! Arrays -> new Parquet files, on all cores.
//!
//! A file's columns are encoded in parallel: each column of a row group is a *lane*, a queue of
//! arrays that one pool job at a time works off, so one file alone keeps all cores busy and nothing
//! on the pool waits. The thread that pushes arrays waits instead when too much is queued. A row
//! group that is complete goes to one thread that writes files; the next one is encoded meanwhile.
//!
//! Memory holds what is queued and what is encoded but not written; [`ParallelFileWriter::memory`]
//! returns its size, so that the caller can end row groups early. The size of a file is known while
//! it grows ([`FileEncoder::bytes`]).
//!
//! Rejected: one job per file or row group, which leaves cores idle when there is one file, or
//! holds whole row groups as plain arrays; `ArrowWriter`, which encodes on the thread that writes.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use arrow_array::ArrayRef;
use arrow_schema::{DataType, FieldRef, Fields, Schema, SchemaRef};
use arrow_select::concat::concat;
use crossbeam_channel::{Receiver, Sender, unbounded};
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_writer::{ArrowRowGroupWriterFactory, compute_leaves};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::statistics::{Statistics, ValueStatistics};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, SchemaDescriptor, TypePtr};

use crate::error::{Error, Result, ResultExt, invariant};
use crate::exec::{CancellationToken, ProgressCounter, panic_error, spawn};
use crate::pq::encode::chunk_copy::{CopiedChunk, SpliceSource};
use crate::pq::encode::dictionary_policy;
use crate::pq::encode::writer_properties::{ParquetCompression, WriterProperties};
use crate::pq::encoding::column_statistics::{
    ColumnStatistics, StatisticsCollector, StatisticsLevel,
};
use crate::pq::input::page_checksum::{ChunkWriter, ChunkWriterFactory, EncodedChunk};
use crate::store::{ObjectMeta, ObjectRole, ObjectUpload, PendingResult, Store};

/// The format of all files of a write: columns, encodings, statistics to gather.
pub struct DataFileFormat {
    schema: SchemaRef,
    root: TypePtr,
    properties: WriterPropertiesPtr,
    factory: ChunkWriterFactory,
    observers: Vec<StatisticsCollector>,
    group_rows: usize,
}

impl DataFileFormat {
    /// Files with the columns of `schema`, whose types are those of `DataType::to_arrow` in the
    /// plain layout; field ids are in the fields' metadata under `PARQUET:field_id`.
    ///
    /// `wanted` has the statistics to gather for each stop (a column or a field of a struct column
    /// that is not itself a struct), in order; `named` finds the path in the file for a name in
    /// `properties.column_properties`; `text_bytes` is the number of bytes that bounds must keep of
    /// a long string. `sample` are the first rows, from which the columns with a dictionary are
    /// chosen.
    ///
    /// # Errors
    /// [`Error::Invalid`] for invalid properties.
    pub fn new(
        schema: SchemaRef,
        properties: &WriterProperties,
        codec: ParquetCompression,
        wanted: &[StatisticsLevel],
        named: impl Fn(&str) -> Option<Vec<String>>,
        text_bytes: usize,
        sample: &[ArrayRef],
    ) -> Result<Self> {
        let unmarked = without_extension_types(&schema);
        let descriptor = ArrowSchemaConverter::new()
            .schema_root("table")
            .convert(&unmarked)
            .map_err(|e| encode_error(&e))?;
        let mut wanted = wanted.iter().copied();
        let observers: Vec<StatisticsCollector> = schema
            .fields()
            .iter()
            .map(|field| StatisticsCollector::new(field, &mut wanted))
            .collect();
        let paths: Vec<ColumnPath> = descriptor
            .columns()
            .iter()
            .map(|column| column.path().clone())
            .collect();
        let needs: Vec<bool> = observers
            .iter()
            .flat_map(|observer| (0..observer.leaves).map(|leaf| observer.needs_bounds(leaf)))
            .collect();
        let named = |name: &str| match named(name) {
            Some(path) => (0..paths.len())
                .filter(|n| paths.get(*n).is_some_and(|p| p.parts().starts_with(&path)))
                .collect(),
            None => Vec::new(),
        };
        let mut repeats = Vec::new();
        for column in sample {
            dictionary_policy::leaf_dictionary_choices(column, &mut repeats);
        }
        let repeats = |n: usize| repeats.get(n).is_none_or(|repeats| *repeats);
        let built = properties.build(
            codec.compression,
            &paths,
            named,
            |n| needs.get(n) == Some(&true),
            text_bytes,
            repeats,
        )?;
        let properties_ptr = Arc::new(built);
        let root = descriptor.root_schema_ptr();
        // The factory only takes schema and properties from the writer.
        let model =
            SerializedFileWriter::new(io::sink(), Arc::clone(&root), Arc::clone(&properties_ptr))
                .map_err(|e| encode_error(&e))?;
        let factory =
            ChunkWriterFactory::new(ArrowRowGroupWriterFactory::new(&model, Arc::clone(&schema)));
        Ok(Self {
            schema,
            root,
            properties: properties_ptr,
            factory,
            observers,
            group_rows: properties.group_rows(),
        })
    }

    /// Whether the row groups of a file can be copied into files of this format.
    #[must_use]
    pub fn can_splice(&self, source: &SpliceSource) -> bool {
        source.matches_leaves(SchemaDescriptor::new(Arc::clone(&self.root)).columns())
    }

    /// Rows of a row group at most.
    #[must_use]
    pub fn group_rows(&self) -> usize {
        self.group_rows
    }
}

/// The schema without the extensions of its fields, at any depth: Spark does not know Parquet's
/// annotation of variants.
fn without_extension_types(schema: &Schema) -> Schema {
    fn field(of: &FieldRef) -> FieldRef {
        let inner = match of.data_type() {
            DataType::Struct(fields) => DataType::Struct(fields.iter().map(field).collect()),
            DataType::List(element) => DataType::List(field(element)),
            DataType::Map(entries, sorted) => DataType::Map(field(entries), *sorted),
            other => other.clone(),
        };
        let metadata = of
            .metadata()
            .iter()
            .filter(|(key, _)| !key.starts_with("ARROW:extension:"))
            .map(|(key, value)| (key.clone(), value.clone()));
        Arc::new(
            of.as_ref()
                .clone()
                .with_data_type(inner)
                .with_metadata(metadata.collect::<std::collections::HashMap<String, String>>()),
        )
    }
    Schema::new(schema.fields().iter().map(field).collect::<Fields>())
}

/// The error for an encoder's failure: an error of this crate if it is the cause, else a defect,
/// since the input has been checked.
fn encode_error(error: &ParquetError) -> Error {
    if let ParquetError::External(inner) = error {
        if let Some(own) = inner.downcast_ref::<Error>() {
            return own.clone();
        }
        if let Some(own) = inner
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref)
            .and_then(|inner| inner.downcast_ref::<Error>())
        {
            return own.clone();
        }
    }
    let text = error.to_string();
    Error::library_without_memory(&text)
        .unwrap_or_else(|| Error::internal(format!("the Parquet encoder failed: {text}")))
}

/// A file that was written.
#[derive(Debug)]
pub struct EncodedFile {
    /// The number returned by [`ParallelFileWriter::open`].
    pub id: u64,
    /// Path, size and time.
    pub meta: ObjectMeta,
    /// Rows.
    pub rows: u64,
    /// The wanted statistics, in order.
    pub facts: Vec<ColumnStatistics>,
}

/// The interval at which a waiting caller checks for cancellation.
const TICK: Duration = Duration::from_millis(50);

/// Bytes in memory, and the first failure.
#[derive(Default)]
struct MemoryGauge {
    /// All bytes.
    bytes: AtomicU64,
    /// Bytes of arrays in queues.
    queued: AtomicU64,
    failed: AtomicBool,
    failure: Mutex<Option<Error>>,
    /// Guards only the waiting.
    waiting: Mutex<()>,
    changed: Condvar,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No thread panics while it holds one of these locks.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MemoryGauge {
    /// Replaces `from` bytes by `to`.
    fn replace_bytes(&self, from: u64, to: u64) {
        if to >= from {
            self.bytes.fetch_add(to - from, Ordering::Relaxed);
        } else {
            self.bytes.fetch_sub(from - to, Ordering::Relaxed);
            self.notify_waiters();
        }
    }

    fn notify_waiters(&self) {
        drop(lock(&self.waiting));
        self.changed.notify_all();
    }

    fn fail(&self, error: Error) {
        lock(&self.failure).get_or_insert(error);
        self.failed.store(true, Ordering::Release);
        self.notify_waiters();
    }

    fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    fn check(&self) -> Result<()> {
        if !self.has_failed() {
            return Ok(());
        }
        Err(lock(&self.failure).clone().unwrap_or(Error::Cancelled))
    }
}

/// State shared by lanes and files.
struct EncoderContext {
    format: DataFileFormat,
    memory_gauge: MemoryGauge,
    done: Sender<FileWriterEvent>,
    /// Whether the writing thread has ended.
    ended: AtomicBool,
}

impl EncoderContext {
    /// Stops the write with an error; the first one is kept.
    fn fail(&self, error: Error) {
        self.memory_gauge.fail(error);
        // The receiver is gone when the thread has ended already.
        let _ = self.done.send(FileWriterEvent::Stop);
    }
}

/// A message to the thread that writes files.
enum FileWriterEvent {
    /// A file begins.
    File { id: u64, path: String },
    /// A row group is complete.
    Group { file: u64, group: FinishedRowGroup },
    /// A file has this many row groups.
    End { file: u64, groups: usize },
    /// No further message follows.
    Stop,
}

struct FinishedRowGroup {
    index: usize,
    rows: u64,
    chunks: Vec<OutputChunk>,
    facts: Vec<ColumnStatistics>,
    memory: u64,
}

/// Sizes of a file, kept up to date by its lanes.
#[derive(Default)]
struct FileSizeCounters {
    /// Bytes of arrays in queues.
    queued: AtomicU64,
    /// Bytes of arrays that were encoded.
    done: AtomicU64,
    /// Their encoded bytes, partly estimated.
    encoded: AtomicU64,
}

/// A column chunk that is ready to be written.
enum OutputChunk {
    Encoded(Box<EncodedChunk>),
    Copied(Box<CopiedChunk>),
}

/// The chunks of a column, and the statistics of its leaves.
type EncodedColumn = (Vec<OutputChunk>, Vec<ColumnStatistics>);

/// A row group that is being encoded.
struct OpenRowGroup {
    file: u64,
    index: usize,
    rows: AtomicU64,
    memory: AtomicU64,
    sizes: Arc<FileSizeCounters>,
    column_queues: Vec<Mutex<ColumnEncodeQueue>>,
    /// Number of open lanes.
    open: AtomicUsize,
    shared: Arc<EncoderContext>,
}

/// Arrays to encode, one after the other, and their size in memory.
type QueuedArrays = (Vec<ArrayRef>, u64);

struct ColumnEncodeQueue {
    queue: VecDeque<QueuedArrays>,
    closing: bool,
    /// Absent while a job has it, and after the end.
    encoder: Option<ColumnEncoder>,
    /// Its result.
    closed: Option<EncodedColumn>,
}

struct ColumnEncoder {
    writers: Vec<ChunkWriter>,
    facts: Vec<ColumnStatistics>,
    memory: u64,
    encoded: u64,
}

impl OpenRowGroup {
    /// A row group whose columns are encoded except for those in `copied`, which is indexed by
    /// column and has `None` or no entry for the others.
    fn new(
        shared: &Arc<EncoderContext>,
        file: u64,
        index: usize,
        sizes: &Arc<FileSizeCounters>,
        mut copied: Vec<Option<EncodedColumn>>,
    ) -> Result<Arc<Self>> {
        let mut writers = shared
            .format
            .factory
            .create(index)
            .map_err(|e| encode_error(&e))?
            .into_iter();
        let lanes: Vec<Mutex<ColumnEncodeQueue>> = shared
            .format
            .observers
            .iter()
            .enumerate()
            .map(|(n, observer)| {
                let writers = writers.by_ref().take(observer.leaves).collect();
                let closed = copied.get_mut(n).and_then(Option::take);
                let encoder = closed.is_none().then(|| ColumnEncoder {
                    writers,
                    facts: observer.empty_statistics(),
                    memory: 0,
                    encoded: 0,
                });
                Mutex::new(ColumnEncodeQueue {
                    queue: VecDeque::new(),
                    closing: false,
                    encoder,
                    closed,
                })
            })
            .collect();
        let open = AtomicUsize::new(
            lanes
                .iter()
                .filter(|lane| lock(lane).closed.is_none())
                .count(),
        );
        Ok(Arc::new(Self {
            file,
            index,
            rows: AtomicU64::new(0),
            memory: AtomicU64::new(0),
            sizes: Arc::clone(sizes),
            column_queues: lanes,
            open,
            shared: Arc::clone(shared),
        }))
    }

    /// Queues arrays for the lane, or its end.
    fn enqueue(self: &Arc<Self>, lane: usize, pieces: Option<QueuedArrays>) -> Result<()> {
        let Some(slot) = self.column_queues.get(lane) else {
            return Err(Error::internal("a file has fewer columns than its data"));
        };
        let mut state = lock(slot);
        match pieces {
            Some(pieces) => state.queue.push_back(pieces),
            None => state.closing = true,
        }
        // If the encoder is absent, a running job has it and will process the queue.
        let Some(encoder) = state.encoder.take() else {
            return Ok(());
        };
        drop(state);
        let group = Arc::clone(self);
        spawn(move || group.run(lane, encoder))
    }

    /// Works off a lane's queue.
    fn run(self: &Arc<Self>, lane: usize, mut encoder: ColumnEncoder) {
        let gauge = &self.shared.memory_gauge;
        let Some(slot) = self.column_queues.get(lane) else {
            return;
        };
        loop {
            let mut state = lock(slot);
            let Some((pieces, bytes)) = state.queue.pop_front() else {
                if !state.closing {
                    state.encoder = Some(encoder);
                    return;
                }
                break;
            };
            drop(state);
            if !gauge.has_failed() {
                let done = catch_unwind(AssertUnwindSafe(|| {
                    self.encode(lane, &mut encoder, &pieces)
                }));
                if let Err(error) =
                    done.unwrap_or_else(|panic| Err(panic_error("the encoder", &*panic)))
                {
                    self.shared.fail(error);
                }
            }
            drop(pieces);
            self.sizes.queued.fetch_sub(bytes, Ordering::Relaxed);
            self.sizes.done.fetch_add(bytes, Ordering::Relaxed);
            gauge.queued.fetch_sub(bytes, Ordering::Relaxed);
            gauge.replace_bytes(bytes, 0);
        }
        if gauge.has_failed() {
            return;
        }
        let closed = catch_unwind(AssertUnwindSafe(|| self.close(lane, encoder)));
        match closed.unwrap_or_else(|panic| Err(panic_error("the encoder", &*panic))) {
            Ok(closed) => {
                lock(slot).closed = Some(closed);
                if self.open.fetch_sub(1, Ordering::AcqRel) == 1 {
                    self.complete();
                }
            }
            Err(error) => self.shared.fail(error),
        }
    }

    fn encode(&self, lane: usize, encoder: &mut ColumnEncoder, pieces: &[ArrayRef]) -> Result<()> {
        let format = &self.shared.format;
        let (field, observer): (&FieldRef, _) =
            match (format.schema.fields().get(lane), format.observers.get(lane)) {
                (Some(field), Some(observer)) => (field, observer),
                _ => return Err(Error::internal("a file has fewer columns than its data")),
            };
        // Encoding small pieces costs more than concatenating them.
        let rows: usize = pieces.iter().map(|array| array.len()).sum();
        let joined = if pieces.len() > 1 && rows / pieces.len() < SMALL {
            concat_arrays(pieces)?
        } else {
            None
        };
        for array in joined.as_ref().map_or(pieces, std::slice::from_ref) {
            observer.observe(array, &mut encoder.facts);
            let leaves = compute_leaves(field, array)
                .map_err(|e| encode_error(&e))
                .at_column(field.name())?;
            for (leaf, writer) in leaves.iter().zip(&mut encoder.writers) {
                writer
                    .write(leaf)
                    .map_err(|e| encode_error(&e))
                    .at_column(field.name())?;
            }
        }
        let memory: u64 = encoder
            .writers
            .iter()
            .map(|writer| writer.memory_size() as u64)
            .sum();
        let encoded: u64 = encoder
            .writers
            .iter()
            .map(|writer| writer.estimated_bytes() as u64)
            .sum();
        self.update_memory(encoder, memory, encoded);
        Ok(())
    }

    /// Records the present size of a lane.
    fn update_memory(&self, encoder: &mut ColumnEncoder, memory: u64, encoded: u64) {
        // Wrapping sums of differences: each lane only ever takes back what it gave.
        self.memory
            .fetch_add(memory.wrapping_sub(encoder.memory), Ordering::Relaxed);
        self.sizes
            .encoded
            .fetch_add(encoded.wrapping_sub(encoder.encoded), Ordering::Relaxed);
        self.shared
            .memory_gauge
            .replace_bytes(encoder.memory, memory);
        (encoder.memory, encoder.encoded) = (memory, encoded);
    }

    fn close(&self, lane: usize, mut encoder: ColumnEncoder) -> Result<EncodedColumn> {
        let Some(observer) = self.shared.format.observers.get(lane) else {
            return Err(Error::internal("a file has fewer columns than its data"));
        };
        let writers = std::mem::take(&mut encoder.writers);
        let mut chunks = writers
            .into_iter()
            .map(ChunkWriter::close)
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(|e| encode_error(&e))?;
        let statistics: Vec<_> = chunks
            .iter()
            .map(|chunk| chunk.close().metadata.statistics())
            .collect();
        observer.add_chunk_statistics(
            &statistics,
            self.rows.load(Ordering::Acquire),
            &mut encoder.facts,
        );
        for leaf in observer.leaves_with_nan(&encoder.facts) {
            if let Some(chunk) = chunks.get_mut(leaf) {
                without_bounds(chunk.close_mut()).map_err(|e| encode_error(&e))?;
            }
        }
        let bytes: u64 = chunks.iter().map(|chunk| chunk.close().bytes_written).sum();
        self.update_memory(&mut encoder, bytes, bytes);
        Ok((
            chunks
                .into_iter()
                .map(|chunk| OutputChunk::Encoded(Box::new(chunk)))
                .collect(),
            encoder.facts,
        ))
    }

    /// Hands the row group to the writing thread.
    fn complete(&self) {
        let mut done = FinishedRowGroup {
            index: self.index,
            rows: self.rows.load(Ordering::Acquire),
            chunks: Vec::new(),
            facts: Vec::new(),
            memory: self.memory.load(Ordering::Acquire),
        };
        for lane in &self.column_queues {
            let Some((chunks, facts)) = lock(lane).closed.take() else {
                return;
            };
            done.chunks.extend(chunks);
            done.facts.extend(facts);
        }
        // The receiver is gone only after a failure.
        let _ = self.shared.done.send(FileWriterEvent::Group {
            file: self.file,
            group: done,
        });
    }
}

/// Rows below which pieces are concatenated.
const SMALL: usize = 4096;

/// Pieces as one array, where they have one type.
fn concat_arrays(pieces: &[ArrayRef]) -> Result<Option<ArrayRef>> {
    let Some((first, rest)) = pieces.split_first() else {
        return Ok(None);
    };
    if rest
        .iter()
        .any(|piece| piece.data_type() != first.data_type())
    {
        return Ok(None);
    }
    Ok(Some(concat(
        &pieces.iter().map(AsRef::as_ref).collect::<Vec<_>>(),
    )?))
}

/// Removes the bounds of floating point numbers from a chunk.
fn without_bounds(chunk: &mut ColumnCloseResult) -> std::result::Result<(), ParquetError> {
    let nulls = chunk
        .metadata
        .statistics()
        .and_then(Statistics::null_count_opt);
    let bare: Statistics = match chunk.metadata.statistics() {
        Some(Statistics::Float(_)) => {
            ValueStatistics::<f32>::new(None, None, None, nulls, false).into()
        }
        Some(Statistics::Double(_)) => {
            ValueStatistics::<f64>::new(None, None, None, nulls, false).into()
        }
        _ => return Ok(()),
    };
    chunk.metadata = chunk
        .metadata
        .clone()
        .into_builder()
        .set_statistics(bare)
        .build()?;
    chunk.column_index = None;
    Ok(())
}

/// A file that is being written.
pub struct FileEncoder {
    id: u64,
    shared: Arc<EncoderContext>,
    sizes: Arc<FileSizeCounters>,
    group: Option<Arc<OpenRowGroup>>,
    groups: usize,
    closed: bool,
}

impl FileEncoder {
    /// Appends rows: each piece has one array for every column. Strings and binary values may have
    /// any layout, other types are those of the format's schema.
    ///
    /// # Errors
    /// [`Error::Internal`] for columns that do not fit.
    pub fn push(&mut self, pieces: &[Vec<ArrayRef>]) -> Result<()> {
        // Pieces that fit into the row group are queued together; one that does not is cut.
        let mut rest: VecDeque<Vec<ArrayRef>> = pieces
            .iter()
            .filter(|piece| row_count(piece) > 0)
            .cloned()
            .collect();
        while !rest.is_empty() {
            let group = match &self.group {
                Some(group) => Arc::clone(group),
                None => {
                    let group = OpenRowGroup::new(
                        &self.shared,
                        self.id,
                        self.groups,
                        &self.sizes,
                        Vec::new(),
                    )?;
                    self.group = Some(Arc::clone(&group));
                    self.groups += 1;
                    group
                }
            };
            let mut room = self.shared.format.group_rows.saturating_sub(
                usize::try_from(group.rows.load(Ordering::Relaxed)).unwrap_or(usize::MAX),
            );
            let mut taken: Vec<Vec<ArrayRef>> = Vec::new();
            let mut rows = 0;
            while room > 0
                && let Some(piece) = rest.pop_front()
            {
                let size = row_count(&piece);
                if size > room {
                    taken.push(piece.iter().map(|array| array.slice(0, room)).collect());
                    rest.push_front(
                        piece
                            .iter()
                            .map(|array| array.slice(room, size - room))
                            .collect(),
                    );
                    rows += room;
                    room = 0;
                } else {
                    taken.push(piece);
                    rows += size;
                    room -= size;
                }
            }
            group.rows.fetch_add(rows as u64, Ordering::AcqRel);
            for lane in 0..group.column_queues.len() {
                let arrays: Vec<ArrayRef> = taken
                    .iter()
                    .filter_map(|piece| piece.get(lane).cloned())
                    .collect();
                invariant!(
                    arrays.len() == taken.len(),
                    "rows do not have the columns of their file"
                );
                self.queue(&group, lane, arrays)?;
            }
            if room == 0 {
                self.end_group()?;
            }
        }
        self.shared.memory_gauge.check()
    }

    /// Queues arrays for a lane; their bytes count until they are encoded.
    fn queue(&self, group: &Arc<OpenRowGroup>, lane: usize, arrays: Vec<ArrayRef>) -> Result<()> {
        let bytes: u64 = arrays.iter().map(array_bytes).sum();
        self.sizes.queued.fetch_add(bytes, Ordering::Relaxed);
        self.shared
            .memory_gauge
            .queued
            .fetch_add(bytes, Ordering::Relaxed);
        self.shared.memory_gauge.replace_bytes(0, bytes);
        group.enqueue(lane, Some((arrays, bytes)))
    }

    /// Appends a row group of another file: columns whose bytes are copied, and the statistics of
    /// each column's stops. `columns` are new arrays of some columns, by index, which are encoded
    /// instead.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for a file whose chunks are not where its footer says,
    /// [`Error::Internal`] for one that does not fit.
    pub fn splice(
        &mut self,
        source: &SpliceSource,
        group: usize,
        facts: &[ColumnStatistics],
        mut columns: BTreeMap<usize, Vec<ArrayRef>>,
    ) -> Result<()> {
        self.end_group()?;
        let mut copied = Vec::new();
        let (mut leaf, mut facts) = (0, facts.iter());
        for (lane, observer) in self.shared.format.observers.iter().enumerate() {
            let leaves = leaf..leaf + observer.leaves;
            leaf = leaves.end;
            let known: Vec<ColumnStatistics> = observer
                .empty_statistics()
                .iter()
                .filter_map(|_| facts.next().cloned())
                .collect();
            if columns.contains_key(&lane) {
                copied.push(None);
                continue;
            }
            let chunks = leaves
                .map(|leaf| source.chunk(group, leaf))
                .collect::<Result<Vec<_>>>()?;
            self.sizes.encoded.fetch_add(
                chunks.iter().map(CopiedChunk::bytes).sum(),
                Ordering::Relaxed,
            );
            copied.push(Some((
                chunks
                    .into_iter()
                    .map(|chunk| OutputChunk::Copied(Box::new(chunk)))
                    .collect(),
                known,
            )));
        }
        let rows = source.group_rows(group);
        let group = OpenRowGroup::new(&self.shared, self.id, self.groups, &self.sizes, copied)?;
        self.groups += 1;
        group.rows.store(rows, Ordering::Release);
        if columns.is_empty() {
            group.complete();
        }
        while let Some((lane, arrays)) = columns.pop_first() {
            invariant!(
                arrays.iter().map(|array| array.len() as u64).sum::<u64>() == rows,
                "new values do not have the rows of their row group"
            );
            self.queue(&group, lane, arrays)?;
            group.enqueue(lane, None)?;
        }
        self.shared.memory_gauge.check()
    }

    /// Ends the row group, unless it has no rows.
    ///
    /// # Errors
    /// [`Error::Internal`] when no thread can be started.
    pub fn end_group(&mut self) -> Result<()> {
        let Some(group) = self.group.take() else {
            return Ok(());
        };
        (0..group.column_queues.len()).try_for_each(|lane| group.enqueue(lane, None))
    }

    /// Ends the file.
    ///
    /// # Errors
    /// As [`Self::end_group`].
    pub fn close(mut self) -> Result<()> {
        self.end_group()?;
        self.closed = true;
        // The receiver is gone only after a failure, which shows at the end.
        let _ = self.shared.done.send(FileWriterEvent::End {
            file: self.id,
            groups: self.groups,
        });
        Ok(())
    }

    /// Bytes of the rows in the file so far: encoded ones, and an estimate for those in queues.
    /// Without the footer.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let (encoded, done) = (
            self.sizes.encoded.load(Ordering::Relaxed),
            self.sizes.done.load(Ordering::Relaxed),
        );
        let ahead = u128::from(self.queued()) * u128::from(encoded) / u128::from(done.max(1));
        encoded.saturating_add(u64::try_from(ahead).unwrap_or(0).min(self.queued()))
    }

    /// Bytes of arrays that are not encoded yet.
    #[must_use]
    pub fn queued(&self) -> u64 {
        self.sizes.queued.load(Ordering::Relaxed)
    }

    /// Bytes of memory that ending the row group sets free.
    #[must_use]
    pub fn memory(&self) -> u64 {
        self.group
            .as_ref()
            .map_or(0, |group| group.memory.load(Ordering::Relaxed))
    }
}

fn row_count(piece: &[ArrayRef]) -> usize {
    piece.first().map_or(0, |array| array.len())
}

/// Bytes of an array's own rows, even if its buffers are shared with other arrays.
#[must_use]
pub fn array_bytes(array: &ArrayRef) -> u64 {
    array
        .to_data()
        .get_slice_memory_size()
        .unwrap_or_else(|_| array.get_array_memory_size()) as u64
}

impl Drop for FileEncoder {
    fn drop(&mut self) {
        if !self.closed {
            self.shared
                .fail(Error::internal("a data file was given up half-way"));
        }
    }
}

/// The encoders of one write, and the thread that writes their files.
pub struct ParallelFileWriter {
    shared: Arc<EncoderContext>,
    thread: Option<thread::JoinHandle<EncodedFilesOutcome>>,
    store: Arc<dyn Store>,
    cancel: CancellationToken,
    next: u64,
}

/// The result of the thread: files, and its error if it failed.
type EncodedFilesOutcome = (Vec<EncodedFile>, Result<()>);

impl ParallelFileWriter {
    /// Starts the writing thread. `progress` counts rows.
    ///
    /// # Errors
    /// [`Error::Resource`] when it cannot be started.
    pub fn start(
        format: DataFileFormat,
        store: Arc<dyn Store>,
        cancel: &CancellationToken,
        progress: &ProgressCounter,
    ) -> Result<Self> {
        let (done, events) = unbounded();
        let shared = Arc::new(EncoderContext {
            format,
            memory_gauge: MemoryGauge::default(),
            done,
            ended: AtomicBool::new(false),
        });
        let (target, of_thread, progress) =
            (Arc::clone(&store), Arc::clone(&shared), progress.clone());
        let thread = thread::Builder::new()
            .name("deltafast-files".to_owned())
            .spawn(move || {
                let mut files = FileWriterThread {
                    store: target,
                    shared: of_thread,
                    progress,
                    open: BTreeMap::new(),
                    finishing: Vec::new(),
                };
                let result = files.run(&events);
                let written = files.await_uploads(result);
                files.shared.ended.store(true, Ordering::Release);
                files.shared.memory_gauge.notify_waiters();
                written
            })
            .map_err(|e| Error::no_thread(&e))?;
        Ok(Self {
            shared,
            thread: Some(thread),
            store,
            cancel: cancel.clone(),
            next: 0,
        })
    }

    /// Begins a file.
    ///
    /// # Errors
    /// The error that made the write fail before.
    pub fn open(&mut self, path: String) -> Result<FileEncoder> {
        self.shared.memory_gauge.check()?;
        let id = self.next;
        self.next += 1;
        // The receiver is gone only after a failure.
        let _ = self.shared.done.send(FileWriterEvent::File { id, path });
        Ok(FileEncoder {
            id,
            shared: Arc::clone(&self.shared),
            sizes: Arc::default(),
            group: None,
            groups: 0,
            closed: false,
        })
    }

    /// The number of the file that [`Self::open`] gives next.
    #[must_use]
    pub fn next_id(&self) -> u64 {
        self.next
    }

    /// Bytes queued, and encoded but not written.
    #[must_use]
    pub fn memory(&self) -> u64 {
        self.shared.memory_gauge.bytes.load(Ordering::Relaxed)
    }

    /// Bytes queued.
    #[must_use]
    pub fn queued(&self) -> u64 {
        self.shared.memory_gauge.queued.load(Ordering::Relaxed)
    }

    /// Waits until `enough` is true, which is checked whenever memory was freed.
    ///
    /// # Errors
    /// The error that made the write fail; [`Error::Cancelled`].
    pub fn wait(&self, enough: impl Fn(&Self) -> bool) -> Result<()> {
        let gauge = &self.shared.memory_gauge;
        let mut guard = lock(&gauge.waiting);
        loop {
            gauge.check()?;
            self.cancel.check()?;
            if enough(self) {
                return Ok(());
            }
            guard = gauge
                .changed
                .wait_timeout(guard, TICK)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Waits until every file is written and durable. All must be closed.
    ///
    /// # Errors
    /// The first error of the write; then files are deleted as far as possible.
    pub fn finish(mut self) -> Result<Vec<EncodedFile>> {
        let _ = self.shared.done.send(FileWriterEvent::Stop);
        let ended = |encoders: &Self| {
            encoders.shared.ended.load(Ordering::Acquire)
                || encoders
                    .thread
                    .as_ref()
                    .is_none_or(thread::JoinHandle::is_finished)
        };
        let outcome = self.wait(ended);
        self.end(outcome)
    }

    /// Aborts the write and deletes the files written so far.
    fn end(&mut self, outcome: Result<()>) -> Result<Vec<EncodedFile>> {
        let Some(thread) = self.thread.take() else {
            return Err(Error::internal("a write ended twice"));
        };
        if let Err(error) = &outcome {
            self.shared.fail(error.clone());
        }
        let (files, written) = thread
            .join()
            .map_err(|panic| panic_error("the writing thread", &*panic))?;
        match outcome.and(written) {
            Ok(()) => Ok(files),
            Err(error) => {
                let paths: Vec<String> = files.into_iter().map(|file| file.meta.path).collect();
                // A file that remains is not part of a table, and vacuum will find it.
                let _ = self.store.delete_batch(&paths);
                Err(error)
            }
        }
    }
}

impl Drop for ParallelFileWriter {
    fn drop(&mut self) {
        if self.thread.is_some() {
            // A caller that drops this unfinished has an error of its own to report.
            let _ = self.end(Err(Error::Cancelled));
        }
    }
}

/// The files of a write, on the thread that writes them.
struct FileWriterThread {
    store: Arc<dyn Store>,
    shared: Arc<EncoderContext>,
    progress: ProgressCounter,
    open: BTreeMap<u64, OpenOutputFile>,
    finishing: Vec<(EncodedFileStatistics, PendingResult<ObjectMeta>)>,
}

struct OpenOutputFile {
    path: String,
    /// Created with the first row group.
    writer: Option<SerializedFileWriter<FileUploadWriter>>,
    /// Row groups that were complete before their predecessors.
    out_of_order: BTreeMap<usize, FinishedRowGroup>,
    written: usize,
    /// The number of row groups, once known.
    groups: Option<usize>,
    facts: EncodedFileStatistics,
}

struct EncodedFileStatistics {
    id: u64,
    rows: u64,
    facts: Vec<ColumnStatistics>,
}

/// The writer that the encoder uses: it collects small writes and uploads them in pieces.
struct FileUploadWriter {
    /// Present until the file is finished.
    upload: Option<Box<dyn ObjectUpload>>,
    buffered: Vec<u8>,
}

impl FileUploadWriter {
    const PIECE: usize = 128 << 10;

    /// Uploads the collected bytes and frees their memory.
    fn send(&mut self) -> Result<()> {
        let held = std::mem::take(&mut self.buffered);
        let upload = self
            .upload
            .as_mut()
            .ok_or_else(|| Error::internal("a file was written after its end"))?;
        if held.is_empty() {
            Ok(())
        } else {
            upload.write(&held)
        }
    }
}

impl io::Write for FileUploadWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffered.extend_from_slice(bytes);
        if self.buffered.len() >= Self::PIECE {
            let upload = self
                .upload
                .as_mut()
                .ok_or_else(|| io::Error::other("a file was written after its end"))?;
            upload.write(&self.buffered).map_err(io::Error::other)?;
            self.buffered.clear();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl FileWriterThread {
    /// Writes row groups until all are written, or an error occurs.
    fn run(&mut self, events: &Receiver<FileWriterEvent>) -> Result<()> {
        let mut stopping = false;
        for event in events {
            self.shared.memory_gauge.check()?;
            let id = match event {
                FileWriterEvent::Stop => {
                    stopping = true;
                    None
                }
                FileWriterEvent::File { id, path } => {
                    let facts = EncodedFileStatistics {
                        id,
                        rows: 0,
                        facts: Vec::new(),
                    };
                    self.open.insert(
                        id,
                        OpenOutputFile {
                            path,
                            writer: None,
                            out_of_order: BTreeMap::new(),
                            written: 0,
                            groups: None,
                            facts,
                        },
                    );
                    None
                }
                FileWriterEvent::Group { file, group } => {
                    if let Some(open) = self.open.get_mut(&file) {
                        open.out_of_order.insert(group.index, group);
                    }
                    Some(file)
                }
                FileWriterEvent::End { file, groups } => {
                    if let Some(open) = self.open.get_mut(&file) {
                        open.groups = Some(groups);
                    }
                    Some(file)
                }
            };
            if let Some(id) = id {
                self.advance(id)
                    .inspect_err(|error| self.shared.fail(error.clone()))?;
            }
            if stopping && self.open.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Writes the row groups of a file whose turn it is, and ends the file when they are all
    /// written.
    fn advance(&mut self, id: u64) -> Result<()> {
        let Some(file) = self.open.get_mut(&id) else {
            return Ok(());
        };
        while let Some(group) = file.out_of_order.remove(&file.written) {
            let memory = group.memory;
            let path = file.path.clone();
            let rows = group.rows;
            write_group(self.store.as_ref(), &self.shared.format, file, group).at_file(&path)?;
            file.written += 1;
            self.progress.advance(rows);
            self.shared.memory_gauge.replace_bytes(memory, 0);
        }
        if file.groups != Some(file.written) {
            return Ok(());
        }
        let Some(file) = self.open.remove(&id) else {
            return Ok(());
        };
        let Some(mut writer) = file.writer else {
            return Ok(());
        };
        // Not `into_inner`, which would lose the store's error.
        writer
            .finish()
            .map_err(|e| encode_error(&e))
            .at_file(&file.path)?;
        writer.inner_mut().send().at_file(&file.path)?;
        self.finishing.extend(
            writer
                .inner_mut()
                .upload
                .take()
                .map(|upload| (file.facts, upload.finish())),
        );
        Ok(())
    }

    /// Waits for uploads in progress; aborts those of incomplete files.
    fn await_uploads(&mut self, mut result: Result<()>) -> EncodedFilesOutcome {
        self.open.clear();
        let mut files = Vec::new();
        for (EncodedFileStatistics { id, rows, facts }, pending) in self.finishing.drain(..) {
            match pending.wait() {
                Ok(meta) => files.push(EncodedFile {
                    id,
                    meta,
                    rows,
                    facts,
                }),
                Err(error) => result = result.and(Err(error)),
            }
        }
        files.sort_unstable_by_key(|file| file.id);
        (files, result)
    }
}

fn write_group(
    store: &dyn Store,
    format: &DataFileFormat,
    file: &mut OpenOutputFile,
    group: FinishedRowGroup,
) -> Result<()> {
    let writer = match &mut file.writer {
        Some(writer) => writer,
        none => {
            let sink = FileUploadWriter {
                upload: Some(store.upload(&file.path, ObjectRole::Essential)?),
                buffered: Vec::new(),
            };
            let made = SerializedFileWriter::new(
                sink,
                Arc::clone(&format.root),
                Arc::clone(&format.properties),
            )
            .map_err(|e| encode_error(&e))?;
            none.insert(made)
        }
    };
    let mut row_group = writer.next_row_group().map_err(|e| encode_error(&e))?;
    for chunk in group.chunks {
        match chunk {
            OutputChunk::Encoded(chunk) => {
                chunk.append(&mut row_group).map_err(|e| encode_error(&e))?;
            }
            OutputChunk::Copied(chunk) => chunk.append(&mut row_group)?,
        }
    }
    row_group.close().map_err(|e| encode_error(&e))?;
    writer.inner_mut().send()?;
    let facts = &mut file.facts;
    facts.rows += group.rows;
    if facts.facts.is_empty() {
        facts.facts = group.facts;
    } else {
        facts
            .facts
            .iter_mut()
            .zip(group.facts)
            .for_each(|(all, more)| all.merge(more));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use arrow_array::{Float64Array, Int64Array};
    use arrow_schema::{DataType, Field, Schema};

    use super::*;
    use crate::expr::Scalar;
    use crate::pq::input::footer::read_footer;
    use crate::store::{StorageOptions, StoreObject, open};

    #[test]
    fn memory_that_the_codec_lacks_is_no_defect() {
        // The words of the library, so that a new release with others is found.
        let words = zstd::zstd_safe::get_error_name(usize::MAX - 63);
        let failure = |text: &str| {
            let inner = io::Error::other(text.to_owned());
            encode_error(&ParquetError::External(Box::new(inner)))
        };
        assert!(matches!(failure(words), Error::Resource { .. }), "{words}");
        assert!(matches!(failure("anything"), Error::Internal { .. }));
    }

    fn encoders(
        name: &str,
        fields: Vec<Field>,
        properties: &WriterProperties,
    ) -> ParallelFileWriter {
        encoders_with(name, fields, properties, "zstd")
    }

    fn encoders_with(
        name: &str,
        fields: Vec<Field>,
        properties: &WriterProperties,
        codec: &str,
    ) -> ParallelFileWriter {
        let wanted = vec![StatisticsLevel::Bounds; fields.len()];
        let format = DataFileFormat::new(
            Arc::new(Schema::new(fields)),
            properties,
            ParquetCompression::parse(codec).unwrap(),
            &wanted,
            |_| None,
            64,
            &[],
        )
        .unwrap();
        let store = open(&format!("memory:///{name}"), &StorageOptions::default()).unwrap();
        ParallelFileWriter::start(
            format,
            store,
            &CancellationToken::default(),
            &ProgressCounter::default(),
        )
        .unwrap()
    }

    #[test]
    fn bounds_of_a_chunk_with_nan_are_left_out_of_the_file() {
        let fields = vec![
            Field::new("a", DataType::Float64, true),
            Field::new("b", DataType::Float64, true),
        ];
        let mut encoders = encoders("nan", fields, &WriterProperties::default());
        let store = Arc::clone(&encoders.store);
        let mut file = encoders.open("x.parquet".to_owned()).unwrap();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Float64Array::from(vec![1.0, f64::NAN])),
            Arc::new(Float64Array::from(vec![1.0, 2.0])),
        ];
        file.push(&[columns]).unwrap();
        file.close().unwrap();
        let files = encoders.finish().unwrap();
        assert!(matches!(&files[0].facts[0].max, Some(Scalar::Double(max)) if max.is_nan()));
        let footer = read_footer(&StoreObject {
            store,
            path: "x.parquet".to_owned(),
            size: None,
        })
        .unwrap();
        let bounds: Vec<bool> = footer
            .metadata
            .row_group(0)
            .columns()
            .iter()
            .map(|c| c.statistics().is_some_and(|s| s.max_bytes_opt().is_some()))
            .collect();
        assert_eq!(bounds, [false, true]);
    }

    #[test]
    fn pieces_are_cut_at_row_groups_and_memory_returns_to_nothing() {
        let properties = WriterProperties {
            max_row_group_size: Some(100),
            ..WriterProperties::default()
        };
        let mut encoders = encoders(
            "groups",
            vec![Field::new("n", DataType::Int64, false)],
            &properties,
        );
        let shared = Arc::clone(&encoders.shared);
        let mut file = encoders.open("x.parquet".to_owned()).unwrap();
        let piece =
            |from: i64, to: i64| vec![Arc::new((from..to).collect::<Int64Array>()) as ArrayRef];
        file.push(&[
            piece(0, 30),
            piece(30, 250),
            piece(250, 250),
            piece(250, 260),
        ])
        .unwrap();
        file.push(&[piece(260, 300)]).unwrap();
        file.close().unwrap();
        let files = encoders.finish().unwrap();
        assert_eq!(
            (files[0].rows, &files[0].facts[0].max),
            (300, &Some(Scalar::Long(299)))
        );
        assert_eq!(
            (
                shared.memory_gauge.bytes.load(Ordering::Relaxed),
                shared.memory_gauge.queued.load(Ordering::Relaxed)
            ),
            (0, 0)
        );
    }

    #[test]
    fn every_flipped_bit_of_a_page_is_an_error_or_changes_nothing() {
        use crate::pq::FileSpec;
        use crate::pq::read;
        use crate::pq::tests::{file_of, flipped_bits};
        use crate::protocol::schema::{DataType as Delta, StructField};

        let fields = vec![
            Field::new("id", DataType::Int64, false),
            Field::new("name", DataType::Utf8, true),
            Field::new("d", DataType::Float64, true),
            Field::new_list("l", Field::new("element", DataType::Int32, true), true),
        ];
        let names: arrow_array::StringArray = (0..60)
            .map(|n| (n % 7 != 0).then(|| format!("name {}", n % 5)))
            .collect();
        let list = |n: i32| (n % 4 != 0).then(|| (0..n % 3).map(Some).collect::<Vec<_>>());
        let arrays: Vec<ArrayRef> = vec![
            Arc::new((0..60).collect::<Int64Array>()),
            Arc::new(names),
            Arc::new(
                (0..60)
                    .map(|n| (n % 9 != 0).then_some(f64::from(n) / 3.0))
                    .collect::<Float64Array>(),
            ),
            Arc::new(arrow_array::ListArray::from_iter_primitive::<
                arrow_array::types::Int32Type,
                _,
                _,
            >((0..60).map(list))),
        ];
        let list = Delta::from_json(
            &serde_json::json!({"type": "array", "elementType": "integer", "containsNull": true}),
        )
        .unwrap();
        let columns = [
            ("id", Delta::Long),
            ("name", Delta::String),
            ("d", Delta::Double),
            ("l", list),
        ];
        let columns: Vec<StructField> = columns
            .into_iter()
            .map(|(name, of)| StructField::new(name, of, true))
            .collect();
        for codec in ["none", "snappy", "zstd"] {
            let properties = WriterProperties {
                max_row_group_size: Some(25),
                ..WriterProperties::default()
            };
            let mut encoders = encoders_with(
                &format!("flipped-{codec}"),
                fields.clone(),
                &properties,
                codec,
            );
            let store = Arc::clone(&encoders.store);
            let mut file = encoders.open("x.parquet".to_owned()).unwrap();
            file.push(std::slice::from_ref(&arrays)).unwrap();
            file.close().unwrap();
            let size = encoders.finish().unwrap()[0].meta.size;
            let bytes = store
                .get_ranges("x.parquet", std::iter::once(0..size).collect())
                .wait()
                .unwrap()
                .remove(0);
            flipped_bits(&bytes, |bytes| {
                read(
                    FileSpec::new(file_of(bytes), columns.clone()),
                    &Arc::default(),
                )
                .collect()
            });
        }
    }

    #[test]
    fn a_file_that_is_dropped_half_way_fails_the_write() {
        let mut encoders = encoders(
            "dropped",
            vec![Field::new("n", DataType::Int64, true)],
            &WriterProperties::default(),
        );
        drop(encoders.open("x.parquet".to_owned()).unwrap());
        assert!(
            encoders
                .finish()
                .unwrap_err()
                .to_string()
                .contains("half-way")
        );
    }
}
