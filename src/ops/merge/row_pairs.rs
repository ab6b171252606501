//! Pairs of a target row and a source row: their columns in a batch, their order by file and row.

use crate::error::{Error, Result, invariant};
use crate::exec::{CancellationToken, map_all};
use crate::ops::merge::clauses::MergeRowAction;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch};
use arrow_cast::cast;
use arrow_schema::DataType as Arrow;
use std::sync::Arc;

pub(super) const FILE: &str = "file";

/// The number of pairs that are evaluated together if there are no keys to join.
pub(super) const PAIRS: usize = 128 << 10;

pub(super) const ROW: &str = "row";

pub(super) const SOURCE_ROW: &str = "source_row";

/// The last columns of a batch: the number of its file, and positions in it.
pub(super) fn row_locations(batch: &RecordBatch) -> Result<(ArrayRef, ArrayRef)> {
    let [.., file, row] = batch.columns() else {
        return Err(Error::internal("a scan gave no positions"));
    };
    invariant!(
        file.data_type() == &Arrow::Int32 && row.data_type() == &Arrow::Int64,
        "a scan gave no positions"
    );
    Ok((Arc::clone(file), Arc::clone(row)))
}

pub(super) fn position(row: i64) -> Result<u32> {
    u32::try_from(row).map_err(|_| {
        Error::unsupported("a data file of more than 4,294,967,295 rows cannot be merged into")
    })
}

/// Collects the pairs that an engine found.
pub(super) fn collect_pairs(
    pairs: impl Iterator<Item = Result<RecordBatch>>,
    entries: &mut [Vec<MergeRowAction>],
    cancel: &CancellationToken,
) -> Result<()> {
    for batch in pairs {
        cancel.check()?;
        let batch = batch?;
        let column = |name: &str| -> Result<Int64Array> {
            let array = batch
                .column_by_name(name)
                .ok_or_else(|| Error::internal(format!("the pairs of a join have no `{name}`")))?;
            let array = cast(array, &Arrow::Int64)?;
            Ok(array.as_primitive::<Int64Type>().clone())
        };
        let (files, rows, sources) = (column(FILE)?, column(ROW)?, column(SOURCE_ROW)?);
        for ((file, row), source) in files
            .values()
            .iter()
            .zip(rows.values())
            .zip(sources.values())
        {
            let slot = usize::try_from(*file)
                .ok()
                .and_then(|file| entries.get_mut(file));
            let slot = slot.ok_or_else(|| {
                Error::internal("a pair of a join is of a file that there is not")
            })?;
            let source = u32::try_from(*source)
                .map_err(|_| Error::internal("a pair of a join is of a row that there is not"))?;
            slot.push(MergeRowAction {
                row: position(*row)?,
                source,
                clause_number: 0,
            });
        }
    }
    sort_by_row(entries)
}

/// Sorts the pairs of each file by the position of the row.
pub(super) fn sort_by_row(entries: &mut [Vec<MergeRowAction>]) -> Result<()> {
    let taken: Vec<(usize, Vec<MergeRowAction>)> = entries
        .iter_mut()
        .enumerate()
        .filter(|(_, entries)| !entries.is_empty())
        .map(|(file, entries)| (file, std::mem::take(entries)))
        .collect();
    let sorted = map_all(taken, |(file, mut entries)| {
        // They arrive in long sorted runs, which the stable sort detects.
        entries.sort_by_key(|entry| (entry.row, entry.source));
        Ok((file, entries))
    })?;
    for (file, sorted) in sorted {
        if let Some(slot) = entries.get_mut(file) {
            *slot = sorted;
        }
    }
    Ok(())
}
