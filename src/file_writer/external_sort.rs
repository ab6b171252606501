//! External sort: sorts any number of batches along a curve, in bounded memory.
//!
//! Each batch is split by bounds that divide the rows into ranges of about equal size. The rows of
//! each range are collected, and spilled to disk if they exceed the memory; then the ranges are
//! sorted in memory one after the other. So the rows are never sorted as a whole.
//!
//! Cost: two copies of every row, and writing and reading the rows that are spilled.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, UInt32Array};
use arrow_select::concat::concat_batches;
use arrow_select::nullif::nullif;
use arrow_select::take::take_record_batch;

use super::spill::{SpillFile, SpillOffset};
use crate::error::{Error, Result};
use crate::exec::{CancellationToken, ItemSource, OrderedPrefetch, ordered_prefetch, parallelism};
use crate::file_writer::space_filling_curve::SpaceFillingCurve;
use crate::pq::encode::file_encoder::array_bytes;

/// The number of rows in a returned batch.
const ROWS: usize = 32 << 10;

/// The sort order.
#[derive(Debug, Clone)]
pub struct CurveSort {
    /// The curve.
    pub curve: SpaceFillingCurve,
    /// The paths of the curve's columns: the index of a column and of fields within it.
    pub columns: Vec<Vec<usize>>,
    /// The bounds of the ranges: positions on the curve, ascending.
    pub bounds: Vec<u64>,
    /// Bytes of rows that may be held in memory before they are spilled.
    pub memory: u64,
}

impl CurveSort {
    /// Bounds for `count` ranges of rows like those of a sample.
    #[must_use]
    pub fn bounds_of(mut places: Vec<u64>, count: usize) -> Vec<u64> {
        places.sort_unstable();
        let mut out: Vec<u64> = (1..count)
            .filter_map(|n| places.get(n * places.len() / count).copied())
            .collect();
        out.dedup();
        out
    }

    /// The sorted rows, and their number in each range.
    ///
    /// # Errors
    /// Errors of `source`; [`Error::Storage`] if rows cannot be spilled.
    pub fn sort(
        self,
        source: impl Iterator<Item = Result<RecordBatch>> + Send + 'static,
        cancel: &CancellationToken,
    ) -> Result<(OrderedPrefetch<RecordBatch>, Vec<usize>)> {
        let this = Arc::new(self);
        let of_cut = Arc::clone(&this);
        let cuts = source.map(move |batch| {
            let this = Arc::clone(&of_cut);
            Box::new(std::iter::once_with(move || this.cut(&batch?)))
                as ItemSource<Vec<(usize, RecordBatch)>>
        });
        let mut gathered: Vec<RangePartition> = (0..=this.bounds.len())
            .map(|_| RangePartition::default())
            .collect();
        let mut held = 0_u64;
        let spill = Arc::new(SpillFile::default());
        for cut in ordered_prefetch(cuts, parallelism() + 1, 1, cancel) {
            for (n, piece) in cut? {
                let Some(gathering) = gathered.get_mut(n) else {
                    return Err(Error::internal("a row is after the last bound"));
                };
                held += gathering.push(piece);
            }
            if held > this.memory {
                cancel.check()?;
                for gathering in &mut gathered {
                    gathering.spill(&spill)?;
                }
                held = 0;
            }
        }
        let counts = gathered.iter().map(|gathering| gathering.rows).collect();
        let sorted = gathered
            .into_iter()
            .filter(|gathering| !gathering.is_empty())
            .map(move |gathering| {
                let (this, spill) = (Arc::clone(&this), Arc::clone(&spill));
                let mut parts: Option<std::vec::IntoIter<RecordBatch>> = None;
                let mut gathering = Some(gathering);
                Box::new(std::iter::from_fn(move || {
                    if let Some(gathering) = gathering.take() {
                        match this.sorted(gathering, &spill) {
                            Ok(found) => parts = Some(found.into_iter()),
                            Err(error) => return Some(Err(error)),
                        }
                    }
                    parts.as_mut().and_then(Iterator::next).map(Ok)
                })) as ItemSource<RecordBatch>
            });
        // One range is sorted while the previous one is read.
        Ok((ordered_prefetch(sorted, 2, 4, cancel), counts))
    }

    /// The number of rows in each of `files` files, given the number of rows in each range. Files
    /// end at bounds, so that similar rows stay together, unless a range is too large for a file.
    #[must_use]
    pub fn shares(counts: &[usize], files: usize) -> Vec<usize> {
        let all: usize = counts.iter().sum();
        let share = all / files.max(1);
        let ends: Vec<usize> = counts
            .iter()
            .scan(0, |end, count| {
                *end += count;
                Some(*end)
            })
            .collect();
        let (mut out, mut from) = (Vec::new(), 0);
        for n in 1..=files {
            let wanted = usize::try_from(all as u128 * n as u128 / files as u128).unwrap_or(all);
            let near = ends
                .iter()
                .copied()
                .min_by_key(|end| end.abs_diff(wanted))
                .filter(|end| end.abs_diff(wanted) <= share / 2);
            let end = if n == files {
                all
            } else {
                near.unwrap_or(wanted)
            };
            if end > from {
                out.push(end - from);
                from = end;
            }
        }
        out
    }

    /// The positions of a batch's rows on the curve.
    fn curve_positions(&self, batch: &RecordBatch) -> Result<Vec<u64>> {
        let column = |path: &Vec<usize>| column_at(batch, path);
        self.curve.curve_positions(
            &self
                .columns
                .iter()
                .map(column)
                .collect::<Result<Vec<_>>>()?,
        )
    }

    /// The rows of a batch by range.
    fn cut(&self, batch: &RecordBatch) -> Result<Vec<(usize, RecordBatch)>> {
        let numbers: Vec<usize> = self
            .curve_positions(batch)?
            .into_iter()
            .map(|place| self.bounds.partition_point(|bound| *bound <= place))
            .collect();
        let mut rows: Vec<Vec<u32>> = vec![Vec::new(); self.bounds.len() + 1];
        for (row, number) in (0_u32..).zip(numbers) {
            if let Some(rows) = rows.get_mut(number) {
                rows.push(row);
            }
        }
        rows.into_iter()
            .enumerate()
            .filter(|(_, rows)| !rows.is_empty())
            .map(|(number, rows)| Ok((number, take_record_batch(batch, &UInt32Array::from(rows))?)))
            .collect()
    }

    /// The sorted rows of a range, in batches.
    fn sorted(&self, gathering: RangePartition, spill: &SpillFile) -> Result<Vec<RecordBatch>> {
        let mut batches = Vec::new();
        for place in gathering.spilled {
            batches.push(spill.read(place)?);
        }
        batches.extend(gathering.pieces);
        let Some(first) = batches.first() else {
            return Ok(Vec::new());
        };
        let whole = concat_batches(&first.schema(), &batches)?;
        drop(batches);
        let mut order: Vec<(u64, u32)> = self
            .curve_positions(&whole)?
            .into_iter()
            .zip(0_u32..)
            .collect();
        order.sort_unstable();
        order
            .chunks(ROWS)
            .map(|some| {
                Ok(take_record_batch(
                    &whole,
                    &UInt32Array::from_iter_values(some.iter().map(|(_, row)| *row)),
                )?)
            })
            .collect()
    }
}

/// A column of a batch, or a field in it.
///
/// # Errors
/// [`Error::Internal`] if it does not exist.
pub fn column_at(batch: &RecordBatch, path: &[usize]) -> Result<ArrayRef> {
    let lacking = || Error::internal("rows lack a column of their order");
    let (first, rest) = path.split_first().ok_or_else(lacking)?;
    let mut column = batch.columns().get(*first).cloned().ok_or_else(lacking)?;
    for field in rest {
        let outer = column.as_struct_opt().ok_or_else(lacking)?;
        let inner = outer.columns().get(*field).ok_or_else(lacking)?;
        // A field of a null struct is null.
        let nulls = outer
            .nulls()
            .map(|nulls| BooleanArray::new(!nulls.inner(), None));
        column = match nulls {
            Some(nulls) => nullif(inner, &nulls)?,
            None => Arc::clone(inner),
        };
    }
    Ok(column)
}

/// The rows of a range.
#[derive(Default)]
struct RangePartition {
    pieces: Vec<RecordBatch>,
    spilled: Vec<SpillOffset>,
    rows: usize,
}

impl RangePartition {
    fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.spilled.is_empty()
    }

    /// Adds rows; returns their size in bytes.
    fn push(&mut self, piece: RecordBatch) -> u64 {
        let bytes = piece.columns().iter().map(array_bytes).sum();
        self.rows += piece.num_rows();
        self.pieces.push(piece);
        bytes
    }

    fn spill(&mut self, spill: &SpillFile) -> Result<()> {
        if !self.pieces.is_empty() {
            self.spilled
                .push(spill.write(&std::mem::take(&mut self.pieces))?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_writer::space_filling_curve::CurveKind;

    use arrow_array::types::Int64Type;
    use arrow_array::{Int64Array, StringArray};

    fn batch(from: i64) -> RecordBatch {
        let ids = (0..1000)
            .map(|n| (n * 7919 + from) % 10_007)
            .collect::<Int64Array>();
        let texts = ids
            .values()
            .iter()
            .map(|id| (id % 3 > 0).then(|| format!("t{id}")))
            .collect::<StringArray>();
        RecordBatch::try_from_iter_with_nullable([
            ("id", Arc::new(ids) as ArrayRef, false),
            ("text", Arc::new(texts), true),
        ])
        .unwrap()
    }

    fn sorted(memory: u64, bounds: usize) -> Vec<RecordBatch> {
        let sample = batch(5);
        let curve =
            SpaceFillingCurve::new(&[Arc::clone(sample.column(0))], CurveKind::Hilbert).unwrap();
        let places = curve
            .curve_positions(&[Arc::clone(sample.column(0))])
            .unwrap();
        let sorting = CurveSort {
            curve,
            columns: vec![vec![0]],
            bounds: CurveSort::bounds_of(places, bounds),
            memory,
        };
        let source = (0..20).map(|n| Ok(batch(n * 31)));
        let (rows, counts) = sorting.sort(source, &CancellationToken::default()).unwrap();
        assert_eq!(counts.iter().sum::<usize>(), 20_000);
        rows.collect::<Result<_>>().unwrap()
    }

    #[test]
    fn files_end_between_rows_that_differ() {
        assert_eq!(CurveSort::shares(&[10, 9, 11, 10], 2), [19, 21]);
        assert_eq!(CurveSort::shares(&[10; 40], 4), [100; 4]);
        assert_eq!(
            CurveSort::shares(&[0, 95, 5], 2),
            [50, 50],
            "too many are alike"
        );
        assert_eq!(CurveSort::shares(&[30, 70], 2), [30, 70]);
        assert_eq!(CurveSort::shares(&[1, 1, 1], 7).iter().sum::<usize>(), 3);
        assert_eq!(CurveSort::shares(&[], 3), Vec::<usize>::new());
        assert_eq!(CurveSort::shares(&[7], 0), Vec::<usize>::new());
    }

    #[test]
    fn rows_come_in_order_whether_they_fit_or_not() {
        for (memory, bounds) in [(u64::MAX, 7), (10_000, 7), (0, 1), (0, 40)] {
            let found = sorted(memory, bounds);
            let whole = concat_batches(&found[0].schema(), &found).unwrap();
            assert_eq!(whole.num_rows(), 20_000);
            let ids = whole.column(0).as_primitive::<Int64Type>();
            assert!(ids.values().is_sorted(), "a column alone is sorted");
            let mut all: Vec<i64> = ids.values().to_vec();
            let mut wanted: Vec<i64> = (0..20)
                .flat_map(|n| {
                    batch(n * 31)
                        .column(0)
                        .as_primitive::<Int64Type>()
                        .values()
                        .to_vec()
                })
                .collect();
            all.sort_unstable();
            wanted.sort_unstable();
            assert_eq!(all, wanted);
            let texts = whole.column(1).as_string::<i32>();
            assert!(
                ids.values()
                    .iter()
                    .zip(texts)
                    .all(|(id, text)| text == (id % 3 > 0).then(|| format!("t{id}")).as_deref())
            );
        }
    }

    #[test]
    fn an_error_of_the_source_is_the_answer() {
        let curve =
            SpaceFillingCurve::new(&[Arc::clone(batch(0).column(0))], CurveKind::Hilbert).unwrap();
        let sorting = CurveSort {
            curve,
            columns: vec![vec![0]],
            bounds: Vec::new(),
            memory: 0,
        };
        let source = [Ok(batch(0)), Err(Error::Cancelled)].into_iter();
        assert!(matches!(
            sorting.sort(source, &CancellationToken::default()).err(),
            Some(Error::Cancelled)
        ));
    }
}
