//! Whether the values of a column are in the set of an IN list.
//!
//! Cost: one look-up per row; lists of a few numbers are compared one by one, which is faster than
//! hashing.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, BooleanArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::DataType as Arrow;

use super::error::{EvalResult, unexpected};
use super::value::{BinaryColumn, pack};
use crate::expr::in_set::{InSet, InSetValues, double_key};

/// Three-valued membership of every value of an array.
pub(crate) fn contains(set: &InSet, array: &ArrayRef) -> EvalResult<BooleanArray> {
    let rows = array.len();
    if set.is_empty {
        return Ok(BooleanArray::new(BooleanBuffer::new_unset(rows), None));
    }
    let found = match array.data_type() {
        Arrow::Null => return Ok(BooleanArray::new_null(rows)),
        Arrow::Boolean => {
            let values = array.as_boolean();
            let (no, yes) = (set.has_long(0), set.has_long(1));
            BooleanBuffer::collect_bool(rows, |row| if values.value(row) { yes } else { no })
        }
        Arrow::Int8 => search::<Int8Type>(set, array, i64::from),
        Arrow::Int16 => search::<Int16Type>(set, array, i64::from),
        Arrow::Int32 => search::<Int32Type>(set, array, i64::from),
        Arrow::Date32 => search::<Date32Type>(set, array, i64::from),
        Arrow::Int64 => search::<Int64Type>(set, array, |v| v),
        Arrow::Timestamp(..) => search::<TimestampMicrosecondType>(set, array, |v| v),
        Arrow::Float64 => search_doubles::<Float64Type>(set, array, |v| v),
        Arrow::Float32 => search_doubles::<Float32Type>(set, array, f64::from),
        Arrow::Decimal128(..) => {
            let values = array.as_primitive::<Decimal128Type>();
            match &set.members {
                InSetValues::Decimals(members) => {
                    BooleanBuffer::collect_bool(rows, |row| members.contains(&values.value(row)))
                }
                _ => BooleanBuffer::new_unset(rows),
            }
        }
        found => {
            let values = BinaryColumn::new(array).ok_or_else(|| unexpected(found))?;
            match &set.members {
                InSetValues::Bytes(members) => BooleanBuffer::collect_bool(rows, |row| {
                    !array.is_null(row) && members.contains(values.get(row))
                }),
                _ => BooleanBuffer::new_unset(rows),
            }
        }
    };
    // A value that is not found is unknown if the list has a null.
    let nulls = if set.has_null() {
        NullBuffer::union(array.nulls(), Some(&NullBuffer::new(found.clone())))
    } else {
        array.nulls().cloned()
    };
    Ok(BooleanArray::new(found, nulls))
}

fn search<T: ArrowPrimitiveType>(
    set: &InSet,
    array: &ArrayRef,
    wide: impl Fn(T::Native) -> i64,
) -> BooleanBuffer {
    let values = array.as_primitive::<T>();
    match &set.members {
        InSetValues::Few(list) => pack(values.values(), |v| list.contains(&wide(v))),
        InSetValues::Longs(members) => pack(values.values(), |v| members.contains(&wide(v))),
        _ => BooleanBuffer::new_unset(values.len()),
    }
}

fn search_doubles<T: ArrowPrimitiveType>(
    set: &InSet,
    array: &ArrayRef,
    wide: impl Fn(T::Native) -> f64,
) -> BooleanBuffer {
    let values = array.as_primitive::<T>();
    match &set.members {
        InSetValues::Doubles(members) => {
            pack(values.values(), |v| members.contains(&double_key(wide(v))))
        }
        _ => BooleanBuffer::new_unset(values.len()),
    }
}
