//! Arrays in the layouts that the evaluator computes with, and in the plain layout of a type.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, PrimitiveArray, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType as Arrow, TimeUnit};

use super::budget;
use super::error::{EvalError, EvalResult};
use crate::error::{Error, ErrorCode};
use crate::protocol::schema::{DataType, StringLayout};

/// A field of a struct array, null where the struct is null.
pub(crate) fn child(parent: &StructArray, name: &str) -> Option<ArrayRef> {
    let array = parent.column_by_name(name)?;
    match parent.nulls() {
        None => Some(array.clone()),
        Some(nulls) => {
            let data = array.to_data().into_builder().nulls(NullBuffer::union(
                Some(nulls),
                array.logical_nulls().as_ref(),
            ));
            // Arrays without a validity buffer of their own (null arrays) are null already.
            if matches!(array.data_type(), Arrow::Null) {
                Some(array.clone())
            } else {
                data.build().ok().map(arrow_array::make_array)
            }
        }
    }
}

/// Whether the arrow type is one that the evaluator computes with for this data type.
fn is_canonical(arrow: &Arrow, data_type: &DataType) -> bool {
    match data_type {
        DataType::String => matches!(arrow, Arrow::Utf8 | Arrow::LargeUtf8 | Arrow::Utf8View),
        DataType::Binary => matches!(
            arrow,
            Arrow::Binary | Arrow::LargeBinary | Arrow::BinaryView
        ),
        DataType::Timestamp => {
            matches!(arrow, Arrow::Timestamp(TimeUnit::Microsecond, Some(zone)) if zone.as_ref() == "UTC")
        }
        DataType::Variant => true,
        _ => *arrow == data_type.to_arrow(StringLayout::Plain),
    }
}

/// `array` in the form that the evaluator computes with: strings and binary values in any of the
/// three layouts, timestamps in microseconds, decimals in 128 bits, dictionaries unpacked, nested
/// values in the types of `DataType::to_arrow`.
pub(crate) fn canonical(array: &ArrayRef, data_type: &DataType) -> EvalResult {
    if is_canonical(array.data_type(), data_type) {
        return Ok(array.clone());
    }
    let mismatch = || {
        EvalError::Error(Error::schema_mismatch(
            "the data does not have the type of the expression",
            data_type.to_string(),
            array.data_type().to_string(),
        ))
    };
    if let Arrow::Dictionary(_, value) = array.data_type() {
        budget::reserve(budget::size(array.as_ref()))?;
        let plain = arrow_cast::cast(array, value)?;
        return canonical(&plain, data_type);
    }
    let wanted = data_type.to_arrow(StringLayout::Plain);
    if matches!(array.data_type(), Arrow::Null) {
        return Ok(arrow_array::new_null_array(&wanted, array.len()));
    }
    if let (Arrow::Timestamp(_, zone), Arrow::Timestamp(unit, _)) = (&wanted, array.data_type()) {
        return micros(array, *unit, zone.clone());
    }
    let fits = match (data_type, array.data_type()) {
        (DataType::Binary, Arrow::FixedSizeBinary(_)) | (DataType::Date, Arrow::Date64) => true,
        (
            DataType::Decimal(_, scale),
            Arrow::Decimal32(_, s)
            | Arrow::Decimal64(_, s)
            | Arrow::Decimal128(_, s)
            | Arrow::Decimal256(_, s),
        ) => s <= scale,
        // Older files of a table whose column was widened later.
        (DataType::Short, Arrow::Int8)
        | (DataType::Integer, Arrow::Int8 | Arrow::Int16)
        | (DataType::Long, Arrow::Int8 | Arrow::Int16 | Arrow::Int32)
        | (DataType::Double, Arrow::Float32 | Arrow::Int8 | Arrow::Int16 | Arrow::Int32) => true,
        (DataType::Struct(_) | DataType::Array(_) | DataType::Map(_), found) => {
            // Only the layout of the nested values may differ, which arrow casts without changing a
            // value.
            DataType::from_arrow(found)
                .is_some_and(|found| crate::expr::signature::same(&found, data_type))
        }
        _ => false,
    };
    if !fits {
        return Err(mismatch());
    }
    let options = arrow_cast::CastOptions {
        safe: false,
        ..Default::default()
    };
    Ok(arrow_cast::cast_with_options(array, &wanted, &options)?)
}

fn micros(array: &ArrayRef, unit: TimeUnit, zone: Option<Arc<str>>) -> EvalResult {
    use arrow_array::types::{Int64Type, TimestampMicrosecondType};
    let raw = arrow_cast::cast(array, &Arrow::Int64)?;
    let raw = raw.as_primitive::<Int64Type>();
    let too_large = || {
        EvalError::value(
            ErrorCode::DatetimeOverflow,
            "a timestamp is out of the range of microseconds",
        )
    };
    let converted: PrimitiveArray<TimestampMicrosecondType> = match unit {
        TimeUnit::Second => raw.try_unary(|v| v.checked_mul(1_000_000).ok_or_else(too_large))?,
        TimeUnit::Millisecond => raw.try_unary(|v| v.checked_mul(1000).ok_or_else(too_large))?,
        TimeUnit::Microsecond => raw.unary(|v| v),
        TimeUnit::Nanosecond => raw.unary(|v| v.div_euclid(1000)),
    };
    Ok(Arc::new(converted.with_timezone_opt(zone)))
}

/// `array` in the plain layout, which all results have.
pub(crate) fn plain(array: &ArrayRef, data_type: &DataType) -> EvalResult {
    let wanted = data_type.to_arrow(StringLayout::Plain);
    if *array.data_type() == wanted || matches!(data_type, DataType::Variant) {
        return Ok(array.clone());
    }
    if matches!(array.data_type(), Arrow::Utf8View | Arrow::BinaryView) {
        // Many views may share one string.
        budget::reserve(budget::size(array.as_ref()))?;
    }
    let options = arrow_cast::CastOptions {
        safe: false,
        ..Default::default()
    };
    Ok(arrow_cast::cast_with_options(array, &wanted, &options)?)
}
