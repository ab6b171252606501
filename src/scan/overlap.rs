//! Overlap of files: columns -> how many files an equality lookup in each reads.
//!
//! Cost: the statistics of these columns of all live files, and a sort of their bounds.

use std::sync::Arc;

use arrow_array::Array;
use arrow_row::{RowConverter, SortField};
use serde::Serialize;

use super::columns::leaves;
use super::plan::{PlanBatch, projected_columns};
use crate::error::Result;
use crate::exec::CancellationToken;
use crate::parse::checkpoint::FileActionKind;
use crate::snapshot::Snapshot;

/// Overlap of the files' bounds in one column.
#[derive(Debug, Clone, Serialize)]
pub struct ColumnOverlap {
    /// Path of the column.
    pub column: Vec<String>,
    /// Number of files that have bounds.
    pub files_with_bounds: u64,
    /// Number of files whose bounds overlap those of a file, itself included, on average; 1 is
    /// ideal.
    pub overlapping_files: f64,
}

/// Bounds of files, in a form that compares as bytes.
type FileBounds = Vec<(Box<[u8]>, Box<[u8]>)>;

/// The overlap in those of `columns` that have bounds; a struct stands for its fields.
///
/// # Errors
/// [`crate::error::Error::Corrupt`] for damage in the log.
pub(super) fn overlaps(
    snapshot: &Snapshot,
    columns: &[Vec<String>],
    cancel: &CancellationToken,
) -> Result<Vec<ColumnOverlap>> {
    let leaves = Arc::new(leaves(snapshot).below(columns.iter().map(Vec::as_slice)));
    let mut bounds: Vec<FileBounds> = vec![Vec::new(); leaves.logical.len()];
    if bounds.is_empty() {
        return Ok(Vec::new());
    }
    let context = snapshot.clone();
    let (required, of_batches) = (
        projected_columns(snapshot, &leaves, true),
        Arc::clone(&leaves),
    );
    let batches =
        snapshot.finished_files(FileActionKind::Adds, required, cancel, move |files| {
            let batch = PlanBatch::new(&context, files, &of_batches, true)?;
            (0..of_batches.logical.len())
                .map(|leaf| bounds_of(&batch, leaf))
                .collect::<Result<Vec<_>>>()
        })?;
    for batch in batches {
        for (all, some) in bounds.iter_mut().zip(batch?) {
            all.extend(some);
        }
    }
    let measured = leaves.logical.iter().zip(bounds);
    Ok(measured
        .filter(|(_, bounds)| !bounds.is_empty())
        .map(|(path, bounds)| ColumnOverlap {
            column: path.clone(),
            files_with_bounds: bounds.len() as u64,
            overlapping_files: average_overlap(&bounds),
        })
        .collect())
}

/// The bounds of a batch's files in one leaf.
fn bounds_of(batch: &PlanBatch, leaf: usize) -> Result<FileBounds> {
    let Some((min, max)) = batch
        .stats
        .as_ref()
        .and_then(|stats| stats.leaves.get(leaf))
        .and_then(|leaf| leaf.min.as_ref().zip(leaf.max.as_ref()))
    else {
        return Ok(Vec::new());
    };
    let converter = RowConverter::new(vec![SortField::new(min.data_type().clone())])?;
    let min_rows = converter.convert_columns(&[Arc::clone(min)])?;
    let max_rows = converter.convert_columns(&[Arc::clone(max)])?;
    Ok((0..min.len())
        .filter(|row| min.is_valid(*row) && max.is_valid(*row))
        .map(|row| {
            (
                min_rows.row(row).as_ref().into(),
                max_rows.row(row).as_ref().into(),
            )
        })
        .collect())
}

/// The average number of intervals that overlap one of them, itself included.
fn average_overlap(bounds: &FileBounds) -> f64 {
    let mut mins: Vec<&[u8]> = bounds.iter().map(|(min, _)| min.as_ref()).collect();
    let mut maxs: Vec<&[u8]> = bounds.iter().map(|(_, max)| max.as_ref()).collect();
    mins.sort_unstable();
    maxs.sort_unstable();
    let pairs: usize = bounds
        .iter()
        .map(|(min, max)| {
            let begin_before_its_end = mins.partition_point(|other| *other <= max.as_ref());
            let end_before_its_begin = maxs.partition_point(|other| *other < min.as_ref());
            begin_before_its_end.saturating_sub(end_before_its_begin)
        })
        .sum();
    #[expect(clippy::cast_precision_loss, reason = "an average for people")]
    let average = pairs as f64 / bounds.len().max(1) as f64;
    average
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bounds: &[(u8, u8)]) -> f64 {
        let boxed = |value: u8| -> Box<[u8]> { vec![value].into() };
        average_overlap(&bounds.iter().map(|(a, b)| (boxed(*a), boxed(*b))).collect())
    }

    #[test]
    fn overlap_counts_pairs_of_intervals() {
        assert_eq!(of(&[(0, 4), (5, 9)]).to_string(), "1");
        assert_eq!(of(&[(0, 9), (0, 9), (0, 9)]).to_string(), "3");
        // Bounds are inclusive: the first two meet in 5, the third overlaps none.
        assert_eq!(
            of(&[(0, 5), (5, 7), (8, 9)]).to_string(),
            "1.6666666666666667"
        );
        assert_eq!(
            of(&[(0, 9), (1, 2), (3, 4)]).to_string(),
            "2.3333333333333335"
        );
    }
}
