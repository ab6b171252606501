//! The range of an expression's values in each file: bounds, whether it may be null, whether it may
//! have a value.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Float32Type, Float64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, PrimitiveArray};
use arrow_buffer::BooleanBuffer;
use arrow_schema::DataType as Arrow;

use crate::expr::Function;
use crate::expr::eval::compare::compare;
use crate::expr::eval::value::StringColumn;
use crate::expr::eval::{ColumnarValue, canonical};
use crate::protocol::calendar::TimeZoneSpec;
use crate::protocol::calendar::{MICROS_PER_DAY, MICROS_PER_SECOND, SECONDS_PER_DAY};
use crate::protocol::schema::{DataType, StringLayout};
use crate::prune::statistics::PruningStatistics;

/// Values of an expression in each file. Bounds that are `None` or null are unknown.
#[derive(Debug, Clone)]
pub(super) struct ValueRange {
    pub(super) low: Option<ColumnarValue>,
    pub(super) high: Option<ColumnarValue>,
    /// Rows may be null.
    pub(super) may_be_null: BooleanBuffer,
    /// Rows may have a value.
    pub(super) may_have_value: BooleanBuffer,
    /// Rows may be `NaN`, which upper bounds do not include.
    pub(super) may_be_nan: bool,
    /// The bounds are the value itself, not statistics.
    pub(super) is_exact: bool,
}

/// String statistics of at least this many bytes may be truncated.
const CUT_LENGTH: usize = 32;

/// The characters that writers append to a truncated maximum to keep it an upper bound.
const TIE_BREAKERS: [char; 3] = ['\u{fffd}', '\u{10ffff}', '\u{7fff}'];

/// Statistics of timestamps are truncated to milliseconds.
const CUT_MICROS: i64 = 1000;

fn is_float(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Float | DataType::Double)
}

impl ValueRange {
    pub(super) fn unknown(rows: usize, data_type: &DataType) -> Self {
        let all = BooleanBuffer::new_set(rows);
        Self {
            low: None,
            high: None,
            may_be_null: all.clone(),
            may_have_value: all,
            may_be_nan: is_float(data_type),
            is_exact: false,
        }
    }

    /// A value known for every file.
    pub(super) fn exact(value: ColumnarValue, rows: usize, data_type: &DataType) -> Self {
        let may_be_null = match (value.scalar, value.array.logical_nulls()) {
            (true, nulls) if nulls.as_ref().is_some_and(|n| n.is_null(0)) => {
                BooleanBuffer::new_set(rows)
            }
            (true, _) | (false, None) => BooleanBuffer::new_unset(rows),
            (false, Some(nulls)) => !nulls.inner(),
        };
        let may_have_value = !&may_be_null;
        let may_be_nan = is_float(data_type) && has_nan(&value.array);
        Self {
            low: Some(value.clone()),
            high: Some(value),
            may_be_null,
            may_have_value,
            may_be_nan,
            is_exact: true,
        }
    }

    /// A column from its statistics.
    pub(super) fn of_statistics(
        path: &[String],
        data_type: &DataType,
        facts: &dyn PruningStatistics,
    ) -> Self {
        let rows = facts.rows();
        let mut range = Self::unknown(rows, data_type);
        let bound = |array: Option<ArrayRef>| {
            let array = canonical(&array.filter(|a| a.len() == rows)?, data_type).ok()?;
            Some(without_nan(array))
        };
        if has_bounds(data_type) {
            range.low = bound(facts.min(path))
                .map(|array| ColumnarValue::column(widened(array, -CUT_MICROS)));
            range.high = bound(facts.max(path))
                .map(|array| ColumnarValue::column(widened(array, CUT_MICROS)));
        }
        if let Some(nulls) = facts.null_count(path).filter(|n| n.len() == rows) {
            let records = facts.num_records().filter(|n| n.len() == rows);
            let known =
                |counts: &Int64Array, row: usize| counts.is_valid(row).then(|| counts.value(row));
            range.may_be_null =
                BooleanBuffer::collect_bool(rows, |row| known(&nulls, row) != Some(0));
            if let Some(records) = records {
                // A file without rows gives no useful bounds, and the number may be a writer's
                // default.
                range.may_have_value = BooleanBuffer::collect_bool(rows, |row| {
                    match (known(&nulls, row), known(&records, row)) {
                        (Some(nulls), Some(records)) => records <= 0 || nulls != records,
                        _ => true,
                    }
                });
            }
        }
        range
    }

    pub(super) fn map(
        &self,
        low: impl Fn(&ColumnarValue) -> Option<ColumnarValue>,
        high: impl Fn(&ColumnarValue) -> Option<ColumnarValue>,
        may_be_nan: bool,
    ) -> Self {
        Self {
            low: self.low.as_ref().and_then(low),
            high: self.high.as_ref().and_then(high),
            may_be_nan,
            is_exact: false,
            ..self.clone()
        }
    }

    /// The files where both are the same single value, whatever the row.
    pub(super) fn are_one_value(&self, other: &Self, rows: usize) -> BooleanBuffer {
        let never = || BooleanBuffer::new_unset(rows);
        let (Some(a), Some(b)) = (self.one_value(rows), other.one_value(rows)) else {
            return never();
        };
        let (Some(x), Some(y)) = (&self.low, &other.low) else {
            return never();
        };
        match compare(Function::Equal, x, y, rows) {
            Ok(equal) => &(&a & &b) & &true_bits(&expand(equal, rows)),
            Err(_) => never(),
        }
    }

    /// The files where the value is the same in every row that is not null.
    pub(super) fn one_value(&self, rows: usize) -> Option<BooleanBuffer> {
        let (low, high) = (self.low.as_ref()?, self.high.as_ref()?);
        if self.is_exact {
            return Some(self.may_have_value.clone());
        }
        if self.may_be_nan {
            return None;
        }
        let equal = true_bits(&expand(
            compare(Function::Equal, low, high, rows).ok()?,
            rows,
        ));
        Some(match StringColumn::new(&high.array) {
            // Both may be the same truncation of different strings.
            Ok(texts) => {
                &equal
                    & &BooleanBuffer::collect_bool(rows, |row| {
                        !high.is_null(row) && texts.get(high.row(row)).len() < CUT_LENGTH
                    })
            }
            Err(_) => equal,
        })
    }
}

/// Types whose bounds are used. Bounds of booleans are ignored, as by delta-spark: it writes none,
/// and those of older writers may be wrong.
fn has_bounds(data_type: &DataType) -> bool {
    data_type.is_primitive()
        && !matches!(
            data_type,
            DataType::Void | DataType::Binary | DataType::Boolean | DataType::Spark(_)
        )
}

fn has_nan(array: &ArrayRef) -> bool {
    match array.data_type() {
        Arrow::Float64 => array
            .as_primitive::<Float64Type>()
            .iter()
            .flatten()
            .any(f64::is_nan),
        Arrow::Float32 => array
            .as_primitive::<Float32Type>()
            .iter()
            .flatten()
            .any(f32::is_nan),
        _ => false,
    }
}

/// `NaN` as a bound means unknown.
fn without_nan(array: ArrayRef) -> ArrayRef {
    match array.data_type() {
        Arrow::Float64 => Arc::new(
            array
                .as_primitive::<Float64Type>()
                .iter()
                .map(|v| v.filter(|v| !v.is_nan()))
                .collect::<PrimitiveArray<Float64Type>>(),
        ),
        Arrow::Float32 => Arc::new(
            array
                .as_primitive::<Float32Type>()
                .iter()
                .map(|v| v.filter(|v| !v.is_nan()))
                .collect::<PrimitiveArray<Float32Type>>(),
        ),
        _ => array,
    }
}

/// Timestamps widened by the possible truncation. A minimum is only widened before the epoch, where
/// truncation towards zero raises it.
fn widened(array: ArrayRef, by: i64) -> ArrayRef {
    match array.data_type() {
        Arrow::Timestamp(_, zone) => {
            let zone = zone.clone();
            let moved = array
                .as_primitive::<TimestampMicrosecondType>()
                .unary::<_, TimestampMicrosecondType>(|v| {
                    if by > 0 || v < 0 {
                        v.saturating_add(by)
                    } else {
                        v
                    }
                });
            Arc::new(moved.with_timezone_opt(zone))
        }
        _ => array,
    }
}

/// Unknown counts as true.
fn possible(array: &BooleanArray) -> BooleanBuffer {
    match array.nulls() {
        None => array.values().clone(),
        Some(nulls) => array.values() | &!nulls.inner(),
    }
}

pub(super) fn true_bits(array: &BooleanArray) -> BooleanBuffer {
    match array.nulls() {
        None => array.values().clone(),
        Some(nulls) => array.values() & nulls.inner(),
    }
}

/// A comparison of two scalars has one row.
fn expand(array: BooleanArray, rows: usize) -> BooleanArray {
    if array.len() == rows {
        return array;
    }
    match array.iter().next().flatten() {
        Some(true) => BooleanArray::new(BooleanBuffer::new_set(rows), None),
        Some(false) => BooleanArray::new(BooleanBuffer::new_unset(rows), None),
        None => BooleanArray::new_null(rows),
    }
}

/// The prefix of values that may exceed this maximum: the maximum itself if it may be truncated,
/// without the appended characters.
pub(super) fn truncated_prefix(max: &str) -> Option<&str> {
    (max.len() >= CUT_LENGTH).then(|| max.strip_suffix(TIE_BREAKERS).unwrap_or(max))
}

/// The files where some value of `a` may be less than (or equal to) some value of `b`, `NaN` aside.
fn reaches(function: Function, a: &ValueRange, b: &ValueRange, rows: usize) -> BooleanBuffer {
    let (Some(low), Some(high)) = (&a.low, &b.high) else {
        return BooleanBuffer::new_set(rows);
    };
    let Ok(order) = compare(function, low, high, rows) else {
        return BooleanBuffer::new_set(rows);
    };
    let bits = possible(&expand(order, rows));
    if b.is_exact {
        return bits;
    }
    match (
        StringColumn::new(&low.array),
        StringColumn::new(&high.array),
    ) {
        (Ok(lows), Ok(highs)) => {
            let cut = BooleanBuffer::collect_bool(rows, |row| {
                !bits.value(row)
                    && !low.is_null(row)
                    && !high.is_null(row)
                    && truncated_prefix(highs.get(high.row(row)))
                        .is_some_and(|s| lows.get(low.row(row)).starts_with(s))
            });
            &bits | &cut
        }
        _ => bits,
    }
}

/// The files where some value of `a` may be less than some value of `b`.
pub(super) fn may_be_less(a: &ValueRange, b: &ValueRange, rows: usize) -> BooleanBuffer {
    if b.may_be_nan {
        BooleanBuffer::new_set(rows)
    } else {
        reaches(Function::Less, a, b, rows)
    }
}

/// The files where some value of `a` may be less than or equal to some value of `b`.
pub(super) fn may_be_at_most(a: &ValueRange, b: &ValueRange, rows: usize) -> BooleanBuffer {
    if b.may_be_nan {
        BooleanBuffer::new_set(rows)
    } else {
        reaches(Function::LessEqual, a, b, rows)
    }
}

/// The files where some value of `a` may be equal to some value of `b`.
pub(super) fn may_be_equal(a: &ValueRange, b: &ValueRange, rows: usize) -> BooleanBuffer {
    if a.may_be_nan && b.may_be_nan {
        return BooleanBuffer::new_set(rows);
    }
    &reaches(Function::LessEqual, a, b, rows) & &reaches(Function::LessEqual, b, a, rows)
}

/// A range of instants as local times (`to_local`) or of local times as instants, then as the
/// target type.
pub(super) fn shift_zone(
    range: &ValueRange,
    zone: &TimeZoneSpec,
    to_local: bool,
    target: &DataType,
) -> ValueRange {
    let moved = |operand: &ColumnarValue, upper: bool| {
        let micros = to_micros(&operand.array)?;
        let shifted: PrimitiveArray<TimestampMicrosecondType> = micros.unary(|m| {
            // Around a change of the zone's offset local times are not monotonic: both offsets
            // bound them.
            let near = m.div_euclid(MICROS_PER_SECOND);
            let (before, after) = (
                zone.offset_at(near - SECONDS_PER_DAY - 3600),
                zone.offset_at(near + SECONDS_PER_DAY + 3600),
            );
            let here = zone.offset_at(near);
            let offset = match (to_local, upper) {
                (true, true) => here.max(before),
                (true, false) => here.min(after),
                (false, true) => -here.min(before).min(after),
                (false, false) => -here.max(before).max(after),
            };
            m.saturating_add(offset * MICROS_PER_SECOND)
        });
        Some(ColumnarValue {
            array: from_micros(shifted, target)?,
            scalar: operand.scalar,
        })
    };
    range.map(|low| moved(low, false), |high| moved(high, true), false)
}

fn to_micros(array: &ArrayRef) -> Option<PrimitiveArray<TimestampMicrosecondType>> {
    Some(match array.data_type() {
        Arrow::Date32 => array
            .as_primitive::<Date32Type>()
            .unary(|d| i64::from(d).saturating_mul(MICROS_PER_DAY)),
        Arrow::Timestamp(..) => array
            .as_primitive::<TimestampMicrosecondType>()
            .clone()
            .with_timezone_opt(None::<&str>),
        _ => return None,
    })
}

fn from_micros(
    micros: PrimitiveArray<TimestampMicrosecondType>,
    target: &DataType,
) -> Option<ArrayRef> {
    Some(match target.to_arrow(StringLayout::Plain) {
        Arrow::Date32 => {
            Arc::new(micros.unary::<_, Date32Type>(|m| m.div_euclid(MICROS_PER_DAY) as i32))
        }
        Arrow::Timestamp(_, zone) => Arc::new(micros.with_timezone_opt(zone)),
        _ => return None,
    })
}
