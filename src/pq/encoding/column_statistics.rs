//! Statistics of a file's columns, gathered while they are encoded: null count, minimum and
//! maximum.
//!
//! Columns are followed into structs, not into lists, maps and variants: each such *stop* has its
//! own [`ColumnStatistics`]. Nulls are counted on the arrays. Bounds are the encoder's own, so that
//! values are compared only once; only bounds of floating point numbers are computed here, because
//! the encoder ignores `NaN`. The file has no bounds either for a column with a `NaN`: Spark, for
//! which `NaN` is the greatest value, would skip rows with it.

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType as Arrow, Field};
use parquet::file::statistics::Statistics;

use crate::expr::Scalar;
use crate::pq::leaf_count::leaf_count;
use crate::protocol::schema::VARIANT_EXTENSION;

/// The statistics wanted of a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatisticsLevel {
    /// Nothing.
    Nothing,
    /// The number of nulls.
    Nulls,
    /// The number of nulls, minimum and maximum.
    Bounds,
}

/// The statistics of a leaf.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ColumnStatistics {
    /// Rows in which it is null, also because a struct around it is.
    pub nulls: u64,
    /// The least value, or a slightly smaller one for a very long string. `None`: there is no
    /// value, or it is not known.
    pub min: Option<Scalar>,
    /// The greatest value; `NaN` is greater than all others.
    pub max: Option<Scalar>,
    /// Whether the number of nulls is not known.
    pub nulls_unknown: bool,
    /// Whether the bounds are lost: some part of the file has values but no bounds.
    pub(in crate::pq) bounds_unknown: bool,
}

impl ColumnStatistics {
    /// Statistics of a leaf from known parts: number of rows, nulls, minimum and maximum.
    #[must_use]
    pub fn from_parts(
        rows: u64,
        nulls: Option<u64>,
        (min, max): (Option<Scalar>, Option<Scalar>),
    ) -> Self {
        let unknown = nulls.is_none_or(|nulls| nulls < rows) && (min.is_none() || max.is_none());
        let mut out = Self {
            nulls: nulls.unwrap_or(0),
            nulls_unknown: nulls.is_none(),
            bounds_unknown: unknown,
            ..Self::default()
        };
        out.widen_bounds(min, max);
        out
    }

    /// Adds the statistics of more rows.
    pub fn merge(&mut self, other: Self) {
        self.nulls += other.nulls;
        self.bounds_unknown |= other.bounds_unknown;
        self.nulls_unknown |= other.nulls_unknown;
        self.widen_bounds(other.min, other.max);
    }

    fn widen_bounds(&mut self, min: Option<Scalar>, max: Option<Scalar>) {
        self.min = preferred_bound(self.min.take(), min, is_lower_bound);
        self.max = preferred_bound(self.max.take(), max, |a, b| is_lower_bound(b, a));
        if self.bounds_unknown {
            (self.min, self.max) = (None, None);
        }
    }
}

/// Of two values the one for which `before` holds.
fn preferred_bound(
    a: Option<Scalar>,
    b: Option<Scalar>,
    before: impl Fn(&Scalar, &Scalar) -> bool,
) -> Option<Scalar> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if before(&b, &a) { b } else { a }),
        (a, b) => a.or(b),
    }
}

/// Whether `a` is less than `b`. `-0.0` is less than `0.0`, so that bounds are right for readers
/// that distinguish the two zeros and for readers that do not.
fn is_lower_bound(a: &Scalar, b: &Scalar) -> bool {
    match (a, b) {
        (Scalar::Double(x), Scalar::Double(y)) if x == y => {
            x.is_sign_negative() && y.is_sign_positive()
        }
        _ => a.compare(b).is_some_and(std::cmp::Ordering::is_lt),
    }
}

/// The interpretation of the encoder's statistics of a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pq) enum BoundsType {
    /// Not at all.
    None,
    /// As integers: also days and microseconds.
    Long,
    /// As the unscaled value.
    Decimal,
    /// As UTF-8.
    Text,
    /// As booleans, of which `false` is the lesser.
    Boolean,
    /// Computed here.
    Double,
}

/// A column's tree down to its stops.
#[derive(Debug, Clone)]
enum StatisticsNode {
    Struct(Vec<StatisticsNode>),
    /// Its index among the column's stops.
    Leaf(usize),
}

#[derive(Debug, Clone)]
struct StatisticsLeaf {
    wanted: StatisticsLevel,
    kind: BoundsType,
    /// The first of its leaves in the file, counted within the column.
    leaf: usize,
}

/// The plan for one column.
#[derive(Debug, Clone)]
pub(in crate::pq) struct StatisticsCollector {
    root: StatisticsNode,
    leaf_columns: Vec<StatisticsLeaf>,
    /// Leaves of the column in the file.
    pub(in crate::pq) leaves: usize,
}

/// Whether a field is a variant, whose parts are not columns.
fn is_variant(field: &Field) -> bool {
    field
        .metadata()
        .get("ARROW:extension:name")
        .map(String::as_str)
        == Some(VARIANT_EXTENSION)
}

impl StatisticsCollector {
    /// The plan for `field`; `wanted` yields the statistics wanted of each stop in order.
    pub(in crate::pq) fn new(
        field: &Field,
        wanted: &mut impl Iterator<Item = StatisticsLevel>,
    ) -> Self {
        let mut out = Self {
            root: StatisticsNode::Struct(Vec::new()),
            leaf_columns: Vec::new(),
            leaves: 0,
        };
        out.root = out.node(field, wanted);
        out
    }

    fn node(
        &mut self,
        field: &Field,
        wanted: &mut impl Iterator<Item = StatisticsLevel>,
    ) -> StatisticsNode {
        if let Arrow::Struct(children) = field.data_type()
            && !is_variant(field)
        {
            return StatisticsNode::Struct(
                children
                    .iter()
                    .map(|child| self.node(child, wanted))
                    .collect(),
            );
        }
        let kind = match field.data_type() {
            Arrow::Int8
            | Arrow::Int16
            | Arrow::Int32
            | Arrow::Int64
            | Arrow::Date32
            | Arrow::Timestamp(..) => BoundsType::Long,
            Arrow::Decimal128(..) => BoundsType::Decimal,
            Arrow::Utf8 => BoundsType::Text,
            Arrow::Boolean => BoundsType::Boolean,
            Arrow::Float32 | Arrow::Float64 => BoundsType::Double,
            _ => BoundsType::None,
        };
        self.leaf_columns.push(StatisticsLeaf {
            wanted: wanted.next().unwrap_or(StatisticsLevel::Nothing),
            kind,
            leaf: self.leaves,
        });
        self.leaves += leaf_count(field.data_type());
        StatisticsNode::Leaf(self.leaf_columns.len() - 1)
    }

    /// Statistics of no rows.
    pub(in crate::pq) fn empty_statistics(&self) -> Vec<ColumnStatistics> {
        vec![ColumnStatistics::default(); self.leaf_columns.len()]
    }

    /// Whether the encoder must keep bounds of a leaf of the column.
    pub(in crate::pq) fn needs_bounds(&self, leaf: usize) -> bool {
        let n = self.leaf_columns.partition_point(|stop| stop.leaf < leaf);
        self.leaf_columns.get(n).is_some_and(|stop| {
            stop.leaf == leaf
                && stop.wanted == StatisticsLevel::Bounds
                && !matches!(stop.kind, BoundsType::None | BoundsType::Double)
        })
    }

    /// Observes rows that are about to be encoded.
    pub(in crate::pq) fn observe(&self, array: &ArrayRef, facts: &mut [ColumnStatistics]) {
        self.walk(&self.root, array, None, facts);
    }

    fn walk(
        &self,
        node: &StatisticsNode,
        array: &ArrayRef,
        above: Option<&NullBuffer>,
        facts: &mut [ColumnStatistics],
    ) {
        match node {
            StatisticsNode::Struct(children) => {
                let Some(array) = array.as_struct_opt() else {
                    return;
                };
                let nulls = NullBuffer::union(above, array.nulls());
                for (child, array) in children.iter().zip(array.columns()) {
                    self.walk(child, array, nulls.as_ref(), facts);
                }
            }
            StatisticsNode::Leaf(n) => {
                let (Some(stop), Some(facts)) = (self.leaf_columns.get(*n), facts.get_mut(*n))
                else {
                    return;
                };
                if stop.wanted == StatisticsLevel::Nothing && stop.kind != BoundsType::Double {
                    return;
                }
                let nulls = NullBuffer::union(above, array.logical_nulls().as_ref());
                facts.nulls += nulls.as_ref().map_or(0, |nulls| nulls.null_count() as u64);
                if stop.kind == BoundsType::Double {
                    let bounds = match array.data_type() {
                        Arrow::Float32 => floating_point_bounds(
                            array.as_primitive::<Float32Type>(),
                            nulls.as_ref(),
                            f64::from,
                        ),
                        Arrow::Float64 => floating_point_bounds(
                            array.as_primitive::<Float64Type>(),
                            nulls.as_ref(),
                            |v| v,
                        ),
                        _ => None,
                    };
                    if let Some((min, max)) = bounds {
                        facts.widen_bounds(Some(Scalar::Double(min)), Some(Scalar::Double(max)));
                    }
                }
            }
        }
    }

    /// Adds the encoder's statistics of the column's leaves; `rows` is the number of rows encoded.
    pub(in crate::pq) fn add_chunk_statistics(
        &self,
        leaves: &[Option<&Statistics>],
        rows: u64,
        facts: &mut [ColumnStatistics],
    ) {
        for (stop, facts) in self.leaf_columns.iter().zip(facts) {
            if stop.wanted != StatisticsLevel::Bounds
                || matches!(stop.kind, BoundsType::None | BoundsType::Double)
            {
                continue;
            }
            let (min, max) = leaves
                .get(stop.leaf)
                .copied()
                .flatten()
                .map_or((None, None), |statistics| bounds(statistics, stop.kind));
            facts.bounds_unknown |= facts.nulls < rows && (min.is_none() || max.is_none());
            facts.widen_bounds(min, max);
        }
    }
}

impl StatisticsCollector {
    /// The leaves of the column in which a `NaN` was observed.
    pub(in crate::pq) fn leaves_with_nan<'a>(
        &'a self,
        facts: &'a [ColumnStatistics],
    ) -> impl Iterator<Item = usize> + 'a {
        let nan = |facts: &ColumnStatistics| matches!(facts.max, Some(Scalar::Double(max)) if max.is_nan());
        self.leaf_columns
            .iter()
            .zip(facts)
            .filter(move |(stop, facts)| stop.kind == BoundsType::Double && nan(facts))
            .map(|(stop, _)| stop.leaf)
    }
}

/// Least and greatest of the valid values, by Spark's order.
fn floating_point_bounds<T: ArrowPrimitiveType>(
    array: &arrow_array::PrimitiveArray<T>,
    nulls: Option<&NullBuffer>,
    wide: impl Fn(T::Native) -> f64,
) -> Option<(f64, f64)> {
    struct Seen {
        min: f64,
        max: f64,
        nan: bool,
        any: bool,
    }
    let mut seen = Seen {
        min: f64::INFINITY,
        max: f64::NEG_INFINITY,
        nan: false,
        any: false,
    };
    let mut look = |values: &[T::Native]| {
        seen.any |= !values.is_empty();
        // Plain comparisons ignore `NaN` and compile to vector instructions.
        for value in values {
            let value = wide(*value);
            seen.min = if value < seen.min { value } else { seen.min };
            seen.max = if value > seen.max { value } else { seen.max };
            seen.nan |= value.is_nan();
        }
    };
    let values: &[T::Native] = array.values();
    match nulls {
        None => look(values),
        Some(nulls) => nulls
            .valid_slices()
            .for_each(|(from, to)| look(values.get(from..to).unwrap_or_default())),
    }
    if !seen.any {
        return None;
    }
    let valid = |n: usize| nulls.is_none_or(|nulls| nulls.is_valid(n));
    let has = |wanted: f64| {
        values
            .iter()
            .enumerate()
            .any(|(n, value)| wide(*value).to_bits() == wanted.to_bits() && valid(n))
    };
    if seen.min == 0.0 {
        seen.min = if has(-0.0) { -0.0 } else { 0.0 };
    }
    if seen.max == 0.0 {
        seen.max = if has(0.0) { 0.0 } else { -0.0 };
    }
    let only_nan = seen.nan && seen.min > seen.max;
    Some((
        if only_nan { f64::NAN } else { seen.min },
        if seen.nan { f64::NAN } else { seen.max },
    ))
}

pub(in crate::pq) fn bounds(
    statistics: &Statistics,
    kind: BoundsType,
) -> (Option<Scalar>, Option<Scalar>) {
    let text = |bytes: &[u8]| {
        std::str::from_utf8(bytes)
            .ok()
            .map(|text| Scalar::Text(text.into()))
    };
    match (statistics, kind) {
        (Statistics::Int32(s), BoundsType::Long) => (
            s.min_opt().map(|v| Scalar::Long(i64::from(*v))),
            s.max_opt().map(|v| Scalar::Long(i64::from(*v))),
        ),
        (Statistics::Int64(s), BoundsType::Long) => (
            s.min_opt().map(|v| Scalar::Long(*v)),
            s.max_opt().map(|v| Scalar::Long(*v)),
        ),
        (Statistics::Int32(s), BoundsType::Decimal) => (
            s.min_opt().map(|v| Scalar::Decimal(i128::from(*v))),
            s.max_opt().map(|v| Scalar::Decimal(i128::from(*v))),
        ),
        (Statistics::Int64(s), BoundsType::Decimal) => (
            s.min_opt().map(|v| Scalar::Decimal(i128::from(*v))),
            s.max_opt().map(|v| Scalar::Decimal(i128::from(*v))),
        ),
        (Statistics::FixedLenByteArray(s), BoundsType::Decimal) => (
            s.min_bytes_opt().and_then(unscaled_decimal),
            s.max_bytes_opt().and_then(unscaled_decimal),
        ),
        (Statistics::Boolean(s), BoundsType::Boolean) => (
            s.min_opt().map(|v| Scalar::Boolean(*v)),
            s.max_opt().map(|v| Scalar::Boolean(*v)),
        ),
        (Statistics::ByteArray(s), BoundsType::Text) => (
            s.min_bytes_opt().and_then(text),
            s.max_bytes_opt().and_then(text),
        ),
        _ => (None, None),
    }
}

/// A big-endian number of at most 16 bytes.
fn unscaled_decimal(bytes: &[u8]) -> Option<Scalar> {
    let mut wide = [if bytes.first()? & 0x80 == 0 { 0 } else { 0xff }; 16];
    let start = 16_usize.checked_sub(bytes.len())?;
    wide.get_mut(start..)?.copy_from_slice(bytes);
    Some(Scalar::Decimal(i128::from_be_bytes(wide)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Float64Array, Int64Array, StructArray};
    use std::sync::Arc;

    fn of(values: Float64Array) -> (u64, Option<Scalar>, Option<Scalar>) {
        let observer = StatisticsCollector::new(
            &Field::new("f", Arrow::Float64, true),
            &mut std::iter::once(StatisticsLevel::Bounds),
        );
        let mut facts = observer.empty_statistics();
        observer.observe(&(Arc::new(values) as ArrayRef), &mut facts);
        let facts = facts.remove(0);
        (facts.nulls, facts.min, facts.max)
    }

    #[test]
    fn nan_is_the_greatest_value_and_zeros_keep_their_sign() {
        let show = |facts: (u64, Option<Scalar>, Option<Scalar>)| format!("{facts:?}");
        assert_eq!(
            show(of(vec![1.0, f64::NAN, -2.0].into())),
            "(0, Some(Double(-2.0)), Some(Double(NaN)))"
        );
        assert_eq!(
            show(of(vec![f64::NAN].into())),
            "(0, Some(Double(NaN)), Some(Double(NaN)))"
        );
        assert_eq!(
            show(of(vec![Some(0.0), None, Some(-0.0)].into())),
            "(1, Some(Double(-0.0)), Some(Double(0.0)))"
        );
        assert_eq!(
            show(of(vec![0.0, 1.0].into())),
            "(0, Some(Double(0.0)), Some(Double(1.0)))"
        );
        assert_eq!(
            show(of(vec![f64::INFINITY, f64::NEG_INFINITY].into())),
            "(0, Some(Double(-inf)), Some(Double(inf)))"
        );
        assert_eq!(show(of(vec![None, None].into())), "(2, None, None)");
    }

    #[test]
    fn nulls_of_a_struct_are_nulls_of_its_fields() {
        let child = Arc::new(Int64Array::from(vec![Some(1), Some(2), None])) as ArrayRef;
        let fields = vec![Field::new("a", Arrow::Int64, true)];
        let array = StructArray::new(
            fields.clone().into(),
            vec![child],
            Some(vec![true, false, true].into()),
        );
        let field = Field::new("s", Arrow::Struct(fields.into()), true);
        let observer =
            StatisticsCollector::new(&field, &mut std::iter::once(StatisticsLevel::Nulls));
        let mut facts = observer.empty_statistics();
        observer.observe(&(Arc::new(array) as ArrayRef), &mut facts);
        assert_eq!(facts[0].nulls, 2);
    }

    #[test]
    fn bounds_that_a_part_of_the_file_lacks_are_lost() {
        let part = || ColumnStatistics {
            nulls: 0,
            min: Some(Scalar::Long(1)),
            max: Some(Scalar::Long(2)),
            ..ColumnStatistics::default()
        };
        let mut facts = part();
        facts.merge(ColumnStatistics {
            nulls: 3,
            ..ColumnStatistics::default()
        });
        assert_eq!(
            (facts.nulls, &facts.max),
            (3, &Some(Scalar::Long(2))),
            "a part of nulls alone takes nothing away"
        );
        facts.merge(ColumnStatistics {
            bounds_unknown: true,
            ..ColumnStatistics::default()
        });
        facts.merge(part());
        assert_eq!((facts.min, facts.max), (None, None));
    }
}
