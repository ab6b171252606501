//! Distributes prepared rows to the files of their partitions, within limits of size, number and
//! memory.

use std::collections::BTreeMap;

use arrow_array::ArrayRef;
use rustc_hash::FxHashMap;

use super::partition::{PartitionRegistry, directory};
use super::prepared_rows::{PreparedRows, SplicedFile};
use super::write_request::WriteRequest;
use crate::error::Result;
use crate::exec;
use crate::file_writer::file_schema;
use crate::file_writer::partition_buffer::PartitionBuffer;
use crate::pq::encode::file_encoder::array_bytes;
use crate::pq::{
    ColumnStatistics, EncodedFile, FileEncoder, ParallelFileWriter, ParquetCompression,
};

/// The number of rows from which encoding is efficient; fewer rows are buffered.
const ROWS: usize = 8 << 10;
/// The same in bytes.
const BYTES: u64 = 1 << 20;
/// The default length of a random prefix.
const PREFIX: usize = 2;

/// The state of a partition whose file is open.
#[derive(Default)]
struct PartitionWriter {
    /// Rows that are not encoded yet.
    pieces: Vec<Vec<ArrayRef>>,
    rows: usize,
    bytes: u64,
    file: Option<FileEncoder>,
    /// The number of rows in the current file.
    in_file: usize,
    /// The number of completed files.
    full: usize,
    /// When it was last used.
    used: u64,
}

/// All files of a write.
pub(super) struct PartitionedFileWriter<'a> {
    request: &'a WriteRequest,
    encoders: ParallelFileWriter,
    codec: ParquetCompression,
    partitions: &'a PartitionRegistry,
    /// Names of the partition columns in directories.
    names: Vec<String>,
    parts: FxHashMap<usize, PartitionWriter>,
    /// The partition of each file.
    owners: FxHashMap<u64, usize>,
    open: usize,
    /// The size in bytes of the rows that are not encoded yet.
    buffered_bytes: u64,
    /// Rows of partitions that wait until other partitions are complete.
    overflow: Option<PartitionBuffer>,
    clock: u64,
}

impl<'a> PartitionedFileWriter<'a> {
    pub(super) fn new(
        request: &'a WriteRequest,
        encoders: ParallelFileWriter,
        codec: ParquetCompression,
        partitions: &'a PartitionRegistry,
    ) -> Self {
        let names = request
            .partition_columns
            .iter()
            .filter_map(|name| request.schema.field(name))
            .map(|f| file_schema::file_name(f, request.mapping).to_owned());
        Self {
            request,
            encoders,
            codec,
            partitions,
            names: names.collect(),
            parts: FxHashMap::default(),
            owners: FxHashMap::default(),
            open: 0,
            buffered_bytes: 0,
            overflow: request.gather_partitions.then(PartitionBuffer::default),
            clock: 0,
        }
    }

    /// Passes every row to its partition.
    pub(super) fn take(&mut self, prepared: PreparedRows) -> Result<()> {
        let whole = prepared.runs.len() == 1;
        for run in &prepared.runs {
            let mut piece: Vec<ArrayRef> = if whole {
                prepared.columns.clone()
            } else {
                prepared
                    .columns
                    .iter()
                    .map(|array| array.slice(run.start, run.length))
                    .collect()
            };
            if !self.parts.contains_key(&run.partition)
                && self.parts.len() >= self.request.max_open_files.max(1)
                && let Some(overflow) = &mut self.overflow
            {
                overflow.push_rows(run.partition, &piece, self.request)?;
                continue;
            }
            let mut length = run.length;
            while let Some(room) = self.room(run.partition).filter(|room| *room <= length) {
                self.buffer_rows(
                    run.partition,
                    piece.iter().map(|array| array.slice(0, room)).collect(),
                    room,
                );
                self.encode(run.partition)?;
                self.close(run.partition)?;
                if let Some(part) = self.parts.get_mut(&run.partition) {
                    part.full += 1;
                }
                piece = piece
                    .iter()
                    .map(|array| array.slice(room, length - room))
                    .collect();
                length -= room;
            }
            if length == 0 {
                continue;
            }
            self.buffer_rows(run.partition, piece, length);
            let part = self.parts.get(&run.partition);
            if part.is_some_and(|part| {
                part.rows >= ROWS || part.bytes >= BYTES.min(self.request.target_file_size)
            }) {
                self.encode(run.partition)?;
            }
        }
        self.release_memory()
    }

    /// The number of rows that the partition's file can still hold, if files are limited by rows.
    fn room(&self, partition: usize) -> Option<usize> {
        let (full, held) = self
            .parts
            .get(&partition)
            .map_or((0, 0), |part| (part.full, part.rows + part.in_file));
        let share = self
            .request
            .file_rows
            .get(full)
            .copied()
            .or(self.request.most_rows)?;
        Some(share.saturating_sub(held))
    }

    /// Buffers rows.
    fn buffer_rows(&mut self, partition: usize, piece: Vec<ArrayRef>, rows: usize) {
        let bytes: u64 = piece.iter().map(array_bytes).sum();
        self.clock += 1;
        let part = self.parts.entry(partition).or_default();
        part.pieces.push(piece);
        part.rows += rows;
        part.bytes += bytes;
        part.used = self.clock;
        self.buffered_bytes += bytes;
    }

    /// Encodes the buffered rows of a partition.
    fn encode(&mut self, partition: usize) -> Result<()> {
        self.open_file(partition)?;
        let Some(part) = self.parts.get_mut(&partition) else {
            return Ok(());
        };
        let Some(file) = part.file.as_mut() else {
            return Ok(());
        };
        // The size of a file is only known once its rows are encoded.
        let ahead = self.request.target_file_size / 4;
        let in_flight = self.request.memory / 8;
        self.encoders.wait(|encoders| {
            file.queued() <= ahead && (encoders.queued() <= in_flight || file.queued() == 0)
        })?;
        file.push(&part.pieces)?;
        self.buffered_bytes -= part.bytes;
        part.pieces.clear();
        part.in_file += part.rows;
        (part.rows, part.bytes) = (0, 0);
        if file.bytes() >= self.request.target_file_size {
            self.close(partition)?;
        }
        Ok(())
    }

    /// Copies the row groups of a file into the file of its partition. `columns` returns the arrays
    /// of the columns of a row group that are encoded instead, by their index in files.
    pub(super) fn splice(
        &mut self,
        splice: &SplicedFile,
        mut columns: impl FnMut(usize) -> Result<BTreeMap<usize, Vec<ArrayRef>>>,
    ) -> Result<()> {
        let partition = self.partitions.number(splice.partition.clone());
        self.clock += 1;
        self.parts.entry(partition).or_default().used = self.clock;
        self.open_file(partition)?;
        let Some(file) = self
            .parts
            .get_mut(&partition)
            .and_then(|part| part.file.as_mut())
        else {
            return Ok(());
        };
        let nothing = vec![ColumnStatistics::default(); splice.statistics.len()];
        for group in 0..splice.source.num_groups() {
            // Statistics are known for all row groups of the file together.
            let columns = columns(group)?;
            self.encoders.wait(|encoders| {
                encoders.memory() <= self.request.memory || encoders.queued() == 0
            })?;
            file.splice(
                &splice.source,
                group,
                if group == 0 {
                    &splice.statistics
                } else {
                    &nothing
                },
                columns,
            )?;
        }
        if file.bytes() >= self.request.target_file_size {
            self.close(partition)?;
        }
        Ok(())
    }

    /// Opens a file for the partition if there is none.
    fn open_file(&mut self, partition: usize) -> Result<()> {
        if self
            .parts
            .get(&partition)
            .is_some_and(|part| part.file.is_none())
        {
            while self.open >= self.request.max_open_files.max(1) && self.end_idle()? {}
            let file = self.create(partition)?;
            if let Some(part) = self.parts.get_mut(&partition) {
                part.file = Some(file);
            }
        }
        Ok(())
    }

    fn create(&mut self, partition: usize) -> Result<FileEncoder> {
        let (id, codec) = (self.encoders.next_id(), self.codec.suffix);
        let kind = if self.request.change_data {
            "cdc"
        } else {
            "part"
        };
        let name = format!("{kind}-{id:05}-{}-c000{codec}.parquet", exec::uuid());
        let flag = self
            .request
            .properties
            .get("delta.randomizeFilePrefixes")
            .is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let directory = if flag {
            let length = self
                .request
                .properties
                .get("delta.randomPrefixLength")
                .and_then(|text| text.trim().parse().ok())
                .unwrap_or(PREFIX);
            random_directory(length)
        } else {
            directory(&self.names, &self.partitions.values(partition))
        };
        let root = if self.request.change_data {
            "_change_data/"
        } else {
            ""
        };
        let file = self.encoders.open(format!("{root}{directory}{name}"))?;
        self.owners.insert(id, partition);
        self.open += 1;
        Ok(file)
    }

    fn close(&mut self, partition: usize) -> Result<()> {
        let Some(part) = self.parts.get_mut(&partition) else {
            return Ok(());
        };
        let Some(file) = part.file.take() else {
            return Ok(());
        };
        part.in_file = 0;
        self.open -= 1;
        file.close()
    }

    /// Completes the file that was idle longest.
    fn end_idle(&mut self) -> Result<bool> {
        let idle = self
            .parts
            .iter()
            .filter(|(_, part)| part.file.is_some())
            .min_by_key(|(_, part)| part.used)
            .map(|(partition, _)| *partition);
        let Some(partition) = idle else {
            return Ok(false);
        };
        self.close(partition)?;
        Ok(true)
    }

    /// Frees memory if it is exceeded: buffered rows are encoded, largest partitions first, then
    /// large row groups are completed.
    fn release_memory(&mut self) -> Result<()> {
        let memory = self.request.memory;
        while self.buffered_bytes > memory / 4 {
            let Some((partition, bytes)) = self
                .parts
                .iter()
                .map(|(n, part)| (*n, part.bytes))
                .max_by_key(|(_, bytes)| *bytes)
            else {
                break;
            };
            if bytes == 0 {
                break;
            }
            self.encode(partition)?;
        }
        if self.encoders.memory() <= memory / 2 {
            return Ok(());
        }
        self.end_large()?;
        self.encoders
            .wait(|encoders| encoders.memory() <= memory || encoders.queued() == 0)?;
        if self.encoders.memory() > memory {
            // Queued rows have become part of row groups, some of which may be too large now.
            self.end_large()?;
            self.encoders.wait(|encoders| encoders.memory() <= memory)?;
        }
        Ok(())
    }

    /// Completes the largest row groups, until the others use no more than half of the memory.
    fn end_large(&mut self) -> Result<()> {
        let mut sizes: Vec<(u64, usize)> = self
            .parts
            .iter()
            .filter_map(|(n, part)| Some((part.file.as_ref()?.memory(), *n)))
            .collect();
        sizes.sort_unstable();
        let mut held: u64 = sizes.iter().map(|(bytes, _)| bytes).sum();
        while held > self.request.memory / 2
            && let Some((bytes, partition)) = sizes.pop()
        {
            if let Some(file) = self
                .parts
                .get_mut(&partition)
                .and_then(|part| part.file.as_mut())
            {
                file.end_group()?;
            }
            held -= bytes;
        }
        Ok(())
    }

    /// Encodes the remaining rows and completes all files.
    fn end(&mut self) -> Result<()> {
        let mut left: Vec<(u64, usize)> = self
            .parts
            .iter()
            .map(|(partition, part)| (part.used, *partition))
            .collect();
        left.sort_unstable();
        for (_, partition) in left {
            if self.parts.get(&partition).is_some_and(|part| part.rows > 0) {
                self.encode(partition)?;
            }
            self.close(partition)?;
        }
        self.parts.clear();
        Ok(())
    }

    /// Encodes the remaining rows and waits for all files; returns each with its partition.
    pub(super) fn finish(mut self) -> Result<Vec<(EncodedFile, usize)>> {
        self.end()?;
        if let Some(mut overflow) = self.overflow.take() {
            while let Some(mut lot) = overflow.next() {
                for place in std::mem::take(&mut lot.spilled) {
                    self.request.cancel.check()?;
                    self.take(overflow.read(place)?)?;
                }
                for prepared in lot.into_buffered_rows()? {
                    self.take(prepared)?;
                }
                self.end()?;
            }
        }
        let Self {
            encoders, owners, ..
        } = self;
        let files = encoders.finish()?;
        Ok(files
            .into_iter()
            .map(|file| (owners.get(&file.id).copied().unwrap_or_default(), file))
            .map(|(partition, file)| (file, partition))
            .collect())
    }
}

/// A directory of random letters and digits, which distributes files over the partitions of an
/// object store.
fn random_directory(length: usize) -> String {
    const LETTERS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut out: String = (0..length.min(32))
        .filter_map(|_| LETTERS.get((exec::random() % LETTERS.len() as u64) as usize))
        .map(|letter| char::from(*letter))
        .collect();
    if !out.is_empty() {
        out.push('/');
    }
    out
}
