//! The source of a merge, which is read once and accessed again by row number: rows are kept in
//! memory up to a limit, and in a temporary file beyond.
//!
//! Cost: none for rows in memory, which are shared with their producer; the others are written
//! once, and a batch of them is read on each access to its rows.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions, UInt32Array};
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use arrow_select::interleave::interleave_record_batch;
use arrow_select::take::take_record_batch;

use crate::error::{CallOption, Error, Result};
use crate::file_writer::spill::{SpillFile, SpillOffset};
use crate::pq::encode::file_encoder::array_bytes;

/// Limits of the buffer.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct SpillLimits {
    /// Bytes of memory.
    pub memory: u64,
    /// Maximum size of the temporary file in bytes.
    pub file: Option<u64>,
}

/// The buffered rows.
#[derive(Debug)]
pub(in crate::ops) struct SourceBuffer {
    schema: SchemaRef,
    batches: Vec<BufferedBatch>,
    /// The number of the first row of each batch.
    starts: Vec<u32>,
    rows: u32,
    limits: SpillLimits,
    bytes_in_memory: u64,
    spill: SpillFile,
}

#[derive(Debug)]
enum BufferedBatch {
    InMemory(RecordBatch),
    Spilled(SpillOffset),
}

impl SourceBuffer {
    pub(in crate::ops) fn new(schema: SchemaRef, limits: SpillLimits) -> Self {
        Self {
            schema,
            batches: Vec::new(),
            starts: Vec::new(),
            rows: 0,
            limits,
            bytes_in_memory: 0,
            spill: SpillFile::default(),
        }
    }

    /// The number of rows.
    pub(in crate::ops) fn len(&self) -> u32 {
        self.rows
    }

    /// The number of batches.
    pub(in crate::ops) fn batches(&self) -> usize {
        self.batches.len()
    }

    /// The number of a batch's first row.
    pub(in crate::ops) fn start(&self, batch: usize) -> u32 {
        self.starts.get(batch).copied().unwrap_or(self.rows)
    }

    /// Appends rows.
    pub(in crate::ops) fn push(&mut self, batch: RecordBatch) -> Result<()> {
        let more = u32::try_from(batch.num_rows())
            .ok()
            .and_then(|more| self.rows.checked_add(more))
            .filter(|rows| *rows < u32::MAX);
        let more = more.ok_or_else(|| Error::unsupported("a source of more than 4,294,967,294 rows cannot be merged at once; merge it in parts"))?;
        let bytes: u64 = batch.columns().iter().map(array_bytes).sum();
        let slot = if self.bytes_in_memory + bytes <= self.limits.memory {
            self.bytes_in_memory += bytes;
            BufferedBatch::InMemory(batch)
        } else {
            let place = self.spill.write(&[batch])?;
            if let Some(most) = self.limits.file.filter(|most| self.spill.size() > *most) {
                return Err(Error::invalid(format!(
                    "the source needs more than the {most} bytes of temporary files that {} allows",
                    CallOption::MaxTempDirectorySize
                )));
            }
            BufferedBatch::Spilled(place)
        };
        self.batches.push(slot);
        self.starts.push(self.rows);
        self.rows = more;
        Ok(())
    }

    /// One batch of some columns, all if `None`.
    pub(in crate::ops) fn batch(&self, n: usize, columns: Option<&[usize]>) -> Result<RecordBatch> {
        let batch = match self.batches.get(n) {
            None => return Err(Error::internal("there is no such batch")),
            Some(BufferedBatch::InMemory(batch)) => batch.clone(),
            Some(BufferedBatch::Spilled(place)) => self.spill.read(*place)?,
        };
        match columns {
            Some(columns) => Ok(batch.project(columns)?),
            None => Ok(batch),
        }
    }

    /// Rows by their numbers, in this order, of some columns.
    pub(in crate::ops) fn take(&self, rows: &[u32], columns: &[usize]) -> Result<RecordBatch> {
        if rows.is_empty() || columns.is_empty() {
            let schema = Arc::new(self.schema.project(columns)?);
            let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
            let arrays = schema
                .fields()
                .iter()
                .map(|field| arrow_array::new_empty_array(field.data_type()))
                .collect();
            return Ok(RecordBatch::try_new_with_options(schema, arrays, &options)?);
        }
        let place = |row: u32| {
            self.starts
                .partition_point(|start| *start <= row)
                .saturating_sub(1)
        };
        if self.spill.size() == 0 {
            let mut used: Vec<Option<usize>> = vec![None; self.batches.len()];
            let mut batches: Vec<RecordBatch> = Vec::new();
            let mut indices = Vec::with_capacity(rows.len());
            for row in rows {
                let batch = place(*row);
                let slot = used
                    .get_mut(batch)
                    .ok_or_else(|| Error::internal("there is no such row"))?;
                let known = match slot {
                    Some(known) => *known,
                    None => {
                        batches.push(self.batch(batch, Some(columns))?);
                        *slot = Some(batches.len() - 1);
                        batches.len() - 1
                    }
                };
                indices.push((known, (*row - self.start(batch)) as usize));
            }
            let batches: Vec<&RecordBatch> = batches.iter().collect();
            return Ok(interleave_record_batch(&batches, &indices)?);
        }
        // Batch by batch, so that only one of them is in memory at a time.
        let mut order: Vec<u32> = (0..rows.len() as u32).collect();
        order.sort_unstable_by_key(|n| rows.get(*n as usize).copied().unwrap_or(0));
        let mut pieces: Vec<RecordBatch> = Vec::new();
        let (mut current, mut wanted): (Option<usize>, Vec<u32>) = (None, Vec::new());
        let piece =
            |current: Option<usize>, wanted: &mut Vec<u32>| -> Result<Option<RecordBatch>> {
                let Some(batch) = current else {
                    return Ok(None);
                };
                let indices = UInt32Array::from(std::mem::take(wanted));
                Ok(Some(take_record_batch(
                    &self.batch(batch, Some(columns))?,
                    &indices,
                )?))
            };
        for n in &order {
            let row = rows.get(*n as usize).copied().unwrap_or(0);
            let batch = place(row);
            if current != Some(batch) {
                pieces.extend(piece(current, &mut wanted)?);
                current = Some(batch);
            }
            wanted.push(row - self.start(batch));
        }
        pieces.extend(piece(current, &mut wanted)?);
        let sorted = concat_batches(&Arc::new(self.schema.project(columns)?), &pieces)?;
        let mut back = vec![0_u32; order.len()];
        for (at, n) in order.iter().enumerate() {
            if let Some(slot) = back.get_mut(*n as usize) {
                *slot = at as u32;
            }
        }
        Ok(take_record_batch(&sorted, &UInt32Array::from(back))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use arrow_array::{ArrayRef, Int64Array, StringArray};

    fn batch(from: i64, to: i64) -> RecordBatch {
        let ids: ArrayRef = Arc::new(Int64Array::from((from..to).collect::<Vec<_>>()));
        let texts: ArrayRef = Arc::new(
            (from..to)
                .map(|n| (n % 3 != 0).then(|| format!("t{n}")))
                .collect::<StringArray>(),
        );
        RecordBatch::try_from_iter_with_nullable(vec![("id", ids, true), ("s", texts, true)])
            .unwrap()
    }

    fn spool(memory: u64) -> SourceBuffer {
        let mut spool = SourceBuffer::new(batch(0, 0).schema(), SpillLimits { memory, file: None });
        for n in 0..10 {
            spool.push(batch(n * 100, n * 100 + 100)).unwrap();
        }
        spool
    }

    #[test]
    fn rows_come_back_in_any_order_from_memory_and_from_a_file() {
        for memory in [u64::MAX, 4000, 0] {
            let spool = spool(memory);
            assert_eq!(
                (spool.len(), spool.batches(), spool.start(3)),
                (1000, 10, 300)
            );
            let rows = [999, 0, 500, 500, 101, 100, 99, 3];
            let found = spool.take(&rows, &[1, 0]).unwrap();
            assert_eq!(found.schema().field(0).name(), "s");
            let ids = found.column(1).as_primitive::<Int64Type>();
            assert_eq!(ids.values().to_vec(), rows.map(i64::from), "{memory}");
            let texts = found.column(0).as_string::<i32>();
            assert_eq!((texts.is_valid(0), texts.value(2)), (false, "t500"));
            assert_eq!(spool.take(&[5, 6], &[]).unwrap().num_rows(), 2);
            assert_eq!(spool.take(&[], &[0]).unwrap().num_columns(), 1);
        }
        use arrow_array::Array;
    }

    #[test]
    fn the_file_has_a_limit() {
        let mut small = SourceBuffer::new(
            batch(0, 0).schema(),
            SpillLimits {
                memory: 0,
                file: Some(10),
            },
        );
        assert!(
            small
                .push(batch(0, 100))
                .unwrap_err()
                .to_string()
                .contains("max_temp_directory_size")
        );
    }
}
