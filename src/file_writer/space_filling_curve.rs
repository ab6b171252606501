//! A space-filling curve through some columns: rows with close positions on it have close values in
//! every column.
//!
//! Each column's values are ranked first, by bounds that divide the rows of a sample into ranges of
//! equal size, so that neither the type nor the distribution of the values matters. The interleaved
//! bits of the ranks are a row's position on the curve (Morton or Z-order), which jumps where high
//! bits change; the Hilbert curve rotates and reflects each part so that it never jumps. The curve
//! of a single column is its order.
//!
//! Numbers are compared by 64 bits in the same order (for decimals with more than 18 digits
//! approximately), strings and binary values by bounds of up to 256 bytes. Nulls come first.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, LargeBinaryArray};
use arrow_cast::cast;
use arrow_schema::{DataType as Arrow, TimeUnit};

use crate::error::{Error, Result};

/// The maximum number of bits of a rank: more ranges than a table of a billion rows has files.
const RANK_BITS: u32 = 12;

const SIGN: u64 = 1 << 63;

/// The maximum size in bytes of a bound of strings.
const LONGEST: usize = 256;

/// The bounds between the ranks of a column's values, ascending.
#[derive(Debug, Clone)]
enum RankBounds {
    Numbers(Vec<u64>),
    Texts(Vec<Vec<u8>>),
}

/// The kind of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CurveKind {
    /// Z-order: the interleaved bits of all ranks.
    Morton,
    /// Each position is a neighbour of the previous one.
    Hilbert,
}

/// A space-filling curve.
#[derive(Debug, Clone)]
pub struct SpaceFillingCurve {
    ranks: Vec<RankBounds>,
    bits: u32,
    shape: CurveKind,
}

impl SpaceFillingCurve {
    /// The curve for columns with the given sample.
    ///
    /// # Errors
    /// [`Error::Invalid`] for no columns, too many, or types that cannot be ordered.
    pub fn new(sample: &[ArrayRef], shape: CurveKind) -> Result<Self> {
        let count = u32::try_from(sample.len()).unwrap_or(u32::MAX);
        let Some(bits) = 64_u32.checked_div(count).filter(|bits| *bits > 0) else {
            return Err(Error::invalid(format!(
                "a curve goes through one column at least and 64 at most, not through {count}"
            )));
        };
        Self::with_bits(
            sample,
            shape,
            if count == 1 {
                RANK_BITS + 4
            } else {
                bits.min(RANK_BITS)
            },
        )
    }

    /// The same with this number of bits per rank; all ranks together have at most 64.
    ///
    /// # Errors
    /// As [`SpaceFillingCurve::new`].
    pub fn with_bits(sample: &[ArrayRef], shape: CurveKind, bits: u32) -> Result<Self> {
        let ranks = sample
            .iter()
            .map(|column| RankBounds::new(column, 1 << bits))
            .collect::<Result<_>>()?;
        Ok(Self { ranks, bits, shape })
    }

    /// The bounds between the ranks of each column, of the sample's type, which is `Int64`,
    /// `Float64` or `LargeBinary`; and the number of bits of these ranks.
    #[must_use]
    pub fn bounds(&self, of: &[ArrayRef]) -> Vec<(ArrayRef, u32)> {
        self.ranks
            .iter()
            .zip(of)
            .map(|(ranks, column)| (ranks.bounds(column.data_type()), ranks.bits()))
            .collect()
    }

    /// The positions of rows.
    ///
    /// # Errors
    /// Errors of a cast.
    pub fn curve_positions(&self, columns: &[ArrayRef]) -> Result<Vec<u64>> {
        if let ([ranks], [column]) = (self.ranks.as_slice(), columns) {
            // A single column keeps its order, numbers without bounds.
            return if matches!(ranks, RankBounds::Numbers(_)) {
                values(column)
            } else {
                ranks.of(column)
            };
        }
        let rows = columns.first().map_or(0, Array::len);
        let count = self.ranks.len();
        // Row by row, the rank in each column.
        let mut all = vec![0_u64; rows * count];
        for (n, (ranks, column)) in self.ranks.iter().zip(columns).enumerate() {
            for (rank, value) in all.iter_mut().skip(n).step_by(count).zip(ranks.of(column)?) {
                *rank = value << self.bits >> ranks.bits();
            }
        }
        let place = |row: &mut [u64]| {
            if self.shape == CurveKind::Hilbert {
                hilbert_transpose(row, self.bits);
            }
            interleaved(row, self.bits)
        };
        Ok(all.chunks_exact_mut(count).map(place).collect())
    }
}

/// The interleaved bits of all numbers, starting with the highest bit of the first.
fn interleaved(row: &[u64], bits: u32) -> u64 {
    let mut out = 0;
    for bit in (0..bits).rev() {
        for rank in row {
            out = out << 1 | (rank >> bit & 1);
        }
    }
    out
}

/// Transforms a point into numbers whose interleaved bits are its position on the Hilbert curve (J.
/// Skilling, "Programming the Hilbert curve", 2004): each half of each side is rotated and
/// reflected according to where the curve enters it, then the Gray code is applied along the sides.
fn hilbert_transpose(row: &mut [u64], bits: u32) {
    let Some((first, others)) = row.split_first_mut() else {
        return;
    };
    for bit in (1..bits).rev() {
        let below = (1_u64 << bit) - 1;
        if *first >> bit & 1 == 1 {
            *first ^= below;
        }
        for other in others.iter_mut() {
            if *other >> bit & 1 == 1 {
                *first ^= below;
            } else {
                let differ = (*first ^ *other) & below;
                *first ^= differ;
                *other ^= differ;
            }
        }
    }
    let mut before = *first;
    for other in others.iter_mut() {
        *other ^= before;
        before = *other;
    }
    let mirrored = (1..bits)
        .filter(|bit| before >> bit & 1 == 1)
        .fold(0, |all, bit| all ^ ((1_u64 << bit) - 1));
    for rank in row {
        *rank ^= mirrored;
    }
}

/// Bounds that divide a column's values into this number of ranges of about equal size; types as in
/// [`SpaceFillingCurve::bounds`].
///
/// # Errors
/// As [`SpaceFillingCurve::new`].
pub fn ranges(column: &ArrayRef, count: usize) -> Result<ArrayRef> {
    Ok(RankBounds::new(column, count)?.bounds(column.data_type()))
}

impl RankBounds {
    fn new(sample: &ArrayRef, ranges: usize) -> Result<Self> {
        if let Some(texts) = as_bytes(sample)? {
            let mut all: Vec<Option<&[u8]>> = texts
                .as_binary::<i64>()
                .iter()
                .map(|text| text.map(|text| text.get(..LONGEST).unwrap_or(text)))
                .collect();
            all.sort_unstable();
            return Ok(Self::Texts(
                bounds(&all, ranges)
                    .into_iter()
                    .flatten()
                    .map(<[u8]>::to_vec)
                    .collect(),
            ));
        }
        let mut all = values(sample)?;
        all.sort_unstable();
        Ok(Self::Numbers(bounds(&all, ranges)))
    }

    /// The ranks of values; 0 for null.
    fn of(&self, column: &ArrayRef) -> Result<Vec<u64>> {
        match self {
            Self::Numbers(bounds) => Ok(values(column)?
                .into_iter()
                .map(|value| bounds.partition_point(|bound| *bound <= value) as u64)
                .collect()),
            Self::Texts(bounds) => {
                let texts = as_bytes(column)?
                    .ok_or_else(|| Error::internal("a column of strings has other values"))?;
                let rank =
                    |text: &[u8]| bounds.partition_point(|bound| bound.as_slice() <= text) as u64;
                Ok(texts
                    .as_binary::<i64>()
                    .iter()
                    .map(|text| text.map_or(0, rank))
                    .collect())
            }
        }
    }

    fn bounds(&self, of: &Arrow) -> ArrayRef {
        match self {
            Self::Texts(bounds) => Arc::new(LargeBinaryArray::from_iter_values(bounds)),
            Self::Numbers(bounds) if *of == Arrow::Float64 => {
                Arc::new(Float64Array::from_iter_values(bounds.iter().map(|word| {
                    let bits = if word & SIGN == 0 { !word } else { word ^ SIGN };
                    f64::from_bits(bits)
                })))
            }
            Self::Numbers(bounds) => Arc::new(Int64Array::from_iter_values(
                bounds.iter().map(|word| (word ^ SIGN).cast_signed()),
            )),
        }
    }

    /// The number of bits of the ranks. A column with few values has few; its ranks are scaled, so
    /// that they have the same weight as those of other columns.
    fn bits(&self) -> u32 {
        let count = match self {
            Self::Numbers(bounds) => bounds.len(),
            Self::Texts(bounds) => bounds.len(),
        };
        usize::BITS - count.leading_zeros()
    }
}

/// Bounds that divide the sorted values `all` into ranges of about equal size.
fn bounds<T: Copy + Eq>(all: &[T], ranges: usize) -> Vec<T> {
    let mut out: Vec<T> = (1..ranges)
        .filter_map(|n| all.get(n * all.len() / ranges).copied())
        .filter(|bound| all.first() != Some(bound))
        .collect();
    out.dedup();
    out
}

fn as_bytes(column: &ArrayRef) -> Result<Option<ArrayRef>> {
    Ok(match column.data_type() {
        Arrow::Utf8 | Arrow::LargeUtf8 | Arrow::Utf8View => Some(cast(
            &cast(column, &Arrow::LargeUtf8)?,
            &Arrow::LargeBinary,
        )?),
        Arrow::Binary | Arrow::LargeBinary | Arrow::BinaryView => {
            Some(cast(column, &Arrow::LargeBinary)?)
        }
        _ => None,
    })
}

/// Each number as 64 bits in the same order; 0 for null.
fn values(column: &ArrayRef) -> Result<Vec<u64>> {
    let longs = |array: &Int64Array| {
        array
            .iter()
            .map(|value| value.map_or(0, |value| (value as u64 ^ SIGN).max(1)))
            .collect()
    };
    let doubles = |array: &Float64Array| {
        let word = |value: f64| {
            // There is one zero and one `NaN`, which is the greatest value.
            let bits = if value.is_nan() {
                f64::NAN.to_bits() & !SIGN
            } else {
                (value + 0.0).to_bits()
            };
            if bits & SIGN == 0 { bits | SIGN } else { !bits }
        };
        array
            .iter()
            .map(|value| value.map_or(0, |value| word(value).max(1)))
            .collect()
    };
    Ok(match column.data_type() {
        Arrow::Boolean | Arrow::Int8 | Arrow::Int16 | Arrow::Int32 | Arrow::Int64 => {
            longs(cast(column, &Arrow::Int64)?.as_primitive())
        }
        Arrow::Date32 => {
            longs(cast(&cast(column, &Arrow::Int32)?, &Arrow::Int64)?.as_primitive::<Int64Type>())
        }
        Arrow::Timestamp(TimeUnit::Microsecond, _) => {
            longs(cast(column, &Arrow::Int64)?.as_primitive())
        }
        Arrow::Float32 | Arrow::Float64 | Arrow::Decimal128(..) => {
            doubles(cast(column, &Arrow::Float64)?.as_primitive())
        }
        other => {
            return Err(Error::invalid(format!(
                "values of type {other} have no order"
            )));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    use arrow_array::{BinaryArray, Date32Array, Decimal128Array, StringArray};

    fn array(array: impl Array + 'static) -> ArrayRef {
        Arc::new(array)
    }

    #[test]
    fn words_keep_the_order_of_values() {
        let ascending: Vec<ArrayRef> = vec![
            array(Int64Array::from(vec![
                None,
                Some(i64::MIN),
                Some(-1),
                Some(0),
                Some(7),
                Some(i64::MAX),
            ])),
            array(Float64Array::from(vec![
                None,
                Some(f64::NEG_INFINITY),
                Some(-1.5),
                Some(0.0),
                Some(1e-300),
                Some(f64::INFINITY),
                Some(f64::NAN),
            ])),
            array(StringArray::from(vec![
                None,
                Some("user-1"),
                Some("user-10"),
                Some("user-2"),
                Some("user-é"),
            ])),
            array(BinaryArray::from(vec![
                None,
                Some(b"\x00".as_slice()),
                Some(b"\x01\x00"),
                Some(b"\xff"),
            ])),
            array(Date32Array::from(vec![
                None,
                Some(-800_000),
                Some(0),
                Some(20_000),
            ])),
            array(
                Decimal128Array::from(vec![
                    None,
                    Some(-10_i128.pow(30)),
                    Some(-1),
                    Some(0),
                    Some(1),
                    Some(10_i128.pow(30)),
                ])
                .with_precision_and_scale(38, 2)
                .unwrap(),
            ),
        ];
        for column in ascending {
            let words = SpaceFillingCurve::new(std::slice::from_ref(&column), CurveKind::Hilbert)
                .unwrap()
                .curve_positions(std::slice::from_ref(&column))
                .unwrap();
            assert!(
                words.windows(2).all(|pair| pair[0] < pair[1]),
                "{:?}: {words:?}",
                column.data_type()
            );
            assert_eq!(words[0], 0);
        }
        let zeros = values(&array(Float64Array::from(vec![-0.0, 0.0]))).unwrap();
        assert_eq!(zeros[0], zeros[1]);
        let none = array(StringArray::from(vec![None::<&str>]));
        let curve =
            SpaceFillingCurve::new(std::slice::from_ref(&none), CurveKind::Hilbert).unwrap();
        assert_eq!(curve.curve_positions(&[none]).unwrap(), [0]);
    }

    #[test]
    fn bounds_are_values_of_the_column() {
        let longs = ranges(&array((0..100).map(|n| n - 50).collect::<Int64Array>()), 4).unwrap();
        assert_eq!(longs.as_primitive::<Int64Type>().values(), &[-25, 0, 25]);
        let doubles = ranges(
            &array(Float64Array::from(vec![-2.5, -1.0, 0.5, f64::NAN])),
            4,
        )
        .unwrap();
        let doubles: Vec<f64> = doubles
            .as_primitive::<arrow_array::types::Float64Type>()
            .values()
            .to_vec();
        assert!(doubles[..2] == [-1.0, 0.5] && doubles[2].is_nan());
        let texts = ranges(&array(StringArray::from(vec!["a", "b", "c", "d"])), 2).unwrap();
        assert_eq!(
            texts
                .as_binary::<i64>()
                .iter()
                .flatten()
                .collect::<Vec<_>>(),
            [b"c"]
        );
        assert!(
            ranges(&array(Int64Array::from(Vec::<i64>::new())), 8)
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn texts_are_told_apart_wherever_they_differ() {
        let texts = || {
            array(
                (0..2000)
                    .map(|n| Some(format!("{}-{n:040}", ["north", "south"][n % 2])))
                    .collect::<StringArray>(),
            )
        };
        let places = SpaceFillingCurve::new(&[texts()], CurveKind::Hilbert)
            .unwrap()
            .curve_positions(&[texts()])
            .unwrap();
        let distinct: std::collections::BTreeSet<u64> = places.iter().copied().collect();
        assert_eq!(distinct.len(), 2000);
        assert!(
            places
                .chunks(2)
                .collect::<Vec<_>>()
                .windows(2)
                .all(|pair| pair[0][0] < pair[1][0]
                    && pair[0][1] < pair[1][1]
                    && pair[0][0] < pair[0][1])
        );
        let long = array(StringArray::from(vec![
            "x".repeat(1000),
            "x".repeat(300),
            "y".repeat(300),
        ]));
        let places = SpaceFillingCurve::new(std::slice::from_ref(&long), CurveKind::Hilbert)
            .unwrap()
            .curve_positions(&[long])
            .unwrap();
        assert!(places[0] == places[1] && places[1] < places[2]);
    }

    #[test]
    fn a_curve_keeps_near_what_is_near_in_every_column() {
        let side = 64_i64;
        let x = array((0..side * side).map(|n| n % side).collect::<Int64Array>());
        let y = array((0..side * side).map(|n| n / side).collect::<Int64Array>());
        for shape in [CurveKind::Morton, CurveKind::Hilbert] {
            let curve = SpaceFillingCurve::new(&[Arc::clone(&x), Arc::clone(&y)], shape).unwrap();
            let places = curve
                .curve_positions(&[Arc::clone(&x), Arc::clone(&y)])
                .unwrap();
            let mut order: Vec<usize> = (0..places.len()).collect();
            order.sort_by_key(|n| places[*n]);
            // Sixteen files of equal size: each covers a quarter of both sides.
            for file in order.chunks(256) {
                let span = |of: fn(i64, i64) -> i64| {
                    let all: Vec<i64> = file.iter().map(|n| of(*n as i64, side)).collect();
                    all.iter().max().unwrap() - all.iter().min().unwrap()
                };
                assert!(
                    span(|n, side| n % side) <= 16 && span(|n, side| n / side) <= 16,
                    "{shape:?}"
                );
            }
        }
    }

    #[test]
    fn hilbert_s_curve_meets_every_place_once_and_never_jumps() {
        for (count, bits) in [(2_u32, 1_u32), (2, 4), (3, 3), (4, 2), (5, 2)] {
            let all = 1_u64 << (count * bits);
            let point = |n: u64| -> Vec<u64> {
                (0..count)
                    .map(|side| n >> (side * bits) & ((1 << bits) - 1))
                    .collect()
            };
            let mut places: Vec<(u64, Vec<u64>)> = (0..all)
                .map(|n| {
                    let mut row = point(n);
                    hilbert_transpose(&mut row, bits);
                    (interleaved(&row, bits), point(n))
                })
                .collect();
            places.sort_unstable();
            assert!(
                places.iter().map(|(place, _)| *place).eq(0..all),
                "{count} columns of {bits} bits"
            );
            for pair in places.windows(2) {
                let step: u64 = pair[0]
                    .1
                    .iter()
                    .zip(&pair[1].1)
                    .map(|(a, b)| a.abs_diff(*b))
                    .sum();
                assert_eq!(step, 1, "{count} columns of {bits} bits: {pair:?}");
            }
        }
    }

    #[test]
    fn a_column_of_few_values_counts_as_much_as_others() {
        let few = array((0..4096).map(|n| n % 4).collect::<Int64Array>());
        let many = array((0..4096).map(|n| n / 4).collect::<Int64Array>());
        let curve =
            SpaceFillingCurve::new(&[Arc::clone(&many), Arc::clone(&few)], CurveKind::Morton)
                .unwrap();
        let places = curve.curve_positions(&[many, few]).unwrap();
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_by_key(|n| places[*n]);
        for file in order.chunks(256) {
            let met: std::collections::BTreeSet<usize> = file.iter().map(|n| n % 4).collect();
            assert_eq!(met.len(), 1, "a file of sixteen has one of four values");
        }
    }

    #[test]
    fn one_column_is_sorted() {
        let column = array((0..1000).rev().collect::<Int64Array>());
        let places = SpaceFillingCurve::new(std::slice::from_ref(&column), CurveKind::Hilbert)
            .unwrap()
            .curve_positions(&[column])
            .unwrap();
        assert!(places.windows(2).all(|pair| pair[0] > pair[1]));
        assert!(SpaceFillingCurve::new(&[], CurveKind::Morton).is_err());
        let list = array(
            arrow_array::ListArray::from_iter_primitive::<Int64Type, _, _>(vec![Some(vec![Some(
                1,
            )])]),
        );
        assert!(
            SpaceFillingCurve::new(&[list], CurveKind::Morton)
                .unwrap_err()
                .to_string()
                .contains("no order")
        );
    }
}
