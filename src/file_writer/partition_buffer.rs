//! A buffer for rows of more partitions than can be written at a time.
//!
//! Without it a partition's file would be completed when too many others are open, and a new one
//! begun for further rows of the partition: for unsorted rows this creates many small files. The
//! rows of such partitions are buffered instead, on disk if they exceed the memory, in groups of as
//! many partitions as can be written at a time.
//!
//! Cost: one copy of these rows, and writing and reading the rows that are spilled.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{ArrayRef, RecordBatch, UInt64Array};
use arrow_schema::{Field, Schema};

use super::partition::PartitionRun;
use super::prepared_rows::PreparedRows;
use super::spill::{SpillFile, SpillOffset};
use super::write_request::WriteRequest;
use crate::error::{Error, Result};
use crate::pq::encode::file_encoder::array_bytes;

/// The buffered rows, by group of partitions.
#[derive(Default)]
pub(super) struct PartitionBuffer {
    partitions: BTreeMap<usize, PartitionRows>,
    spill: SpillFile,
    /// The size in bytes of the rows in memory.
    buffered_bytes: u64,
}

/// The rows of a group of partitions, in their original order.
#[derive(Default)]
pub(super) struct PartitionRows {
    /// Their batches on disk.
    pub(super) spilled: Vec<SpillOffset>,
    pieces: Vec<RecordBatch>,
}

impl PartitionBuffer {
    /// Adds the rows of a partition.
    pub(super) fn push_rows(
        &mut self,
        partition: usize,
        piece: &[ArrayRef],
        request: &WriteRequest,
    ) -> Result<()> {
        let piece = with_partition_number(partition, piece)?;
        let lot = self
            .partitions
            .entry(partition / request.max_open_files.max(1))
            .or_default();
        // Batches that are spilled together must have the same schema.
        if lot
            .pieces
            .last()
            .is_some_and(|last| last.schema() != piece.schema())
        {
            lot.spilled
                .push(self.spill.write(&std::mem::take(&mut lot.pieces))?);
        }
        self.buffered_bytes += piece.columns().iter().map(array_bytes).sum::<u64>();
        lot.pieces.push(piece);
        if self.buffered_bytes > request.memory / 8 {
            request.cancel.check()?;
            for lot in self
                .partitions
                .values_mut()
                .filter(|lot| !lot.pieces.is_empty())
            {
                lot.spilled
                    .push(self.spill.write(&std::mem::take(&mut lot.pieces))?);
            }
            self.buffered_bytes = 0;
        }
        Ok(())
    }

    /// The next group.
    pub(super) fn next(&mut self) -> Option<PartitionRows> {
        self.partitions.pop_first().map(|(_, lot)| lot)
    }

    /// Reads spilled rows.
    pub(super) fn read(&self, place: SpillOffset) -> Result<PreparedRows> {
        into_partition_runs(&self.spill.read(place)?)
    }
}

impl PartitionRows {
    /// The rows that are in memory.
    pub(super) fn into_buffered_rows(self) -> Result<Vec<PreparedRows>> {
        self.pieces.iter().map(into_partition_runs).collect()
    }
}

/// The rows with their partition's number as the first column.
fn with_partition_number(partition: usize, piece: &[ArrayRef]) -> Result<RecordBatch> {
    let rows = piece.first().map_or(0, |array| array.len());
    let numbers: ArrayRef = Arc::new(UInt64Array::from_value(partition as u64, rows));
    let columns: Vec<ArrayRef> = std::iter::once(numbers)
        .chain(piece.iter().cloned())
        .collect();
    let field =
        |(n, array): (usize, &ArrayRef)| Field::new(n.to_string(), array.data_type().clone(), true);
    let fields: Vec<Field> = columns.iter().enumerate().map(field).collect();
    Ok(RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        columns,
    )?)
}

/// The rows by the partition number in the first column.
fn into_partition_runs(batch: &RecordBatch) -> Result<PreparedRows> {
    let (numbers, columns) = batch
        .columns()
        .split_first()
        .ok_or_else(|| Error::internal("rows on disk lack their partition"))?;
    let numbers = numbers
        .as_primitive_opt::<UInt64Type>()
        .ok_or_else(|| Error::internal("rows on disk lack their partition"))?;
    let mut runs: Vec<PartitionRun> = Vec::new();
    for (row, number) in numbers.values().iter().enumerate() {
        let partition = usize::try_from(*number).unwrap_or(usize::MAX);
        match runs.last_mut().filter(|run| run.partition == partition) {
            Some(run) => run.length += 1,
            None => runs.push(PartitionRun {
                partition,
                start: row,
                length: 1,
            }),
        }
    }
    Ok(PreparedRows {
        columns: columns.to_vec(),
        runs,
        rows: batch.num_rows(),
    })
}
