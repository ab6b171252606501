//! Decoded arrays -> the table's arrays, by [`ArrayConversion`].
//!
//! Arrays that already fit are passed through; nested arrays get the table's field names around the
//! same buffers. Nullability follows the table, but a field that is NOT NULL in the table and null
//! in the file becomes nullable in that batch: the rows are returned as they are, and an array that
//! contradicts its own type must not exist.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use arrow_array::{
    Array, ArrayRef, ListArray, MapArray, PrimitiveArray, StructArray, new_null_array,
};
use arrow_buffer::NullBuffer;
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType as Arrow, Field, Fields, TimeUnit};
use parquet::variant::{VariantArray, unshred_variant};

use crate::error::{Error, Result};
use crate::pq::decode::column_mapping::{ArrayConversion, LeafConversion, OutputColumn};
use crate::pq::decode::view_to_offset::to_offset_layout;
use crate::pq::input::calendar_rebase::CalendarRebase;

const MICROS_PER_DAY: i64 = 86_400_000_000;

/// The table's array for `column`, and its field.
pub(in crate::pq) fn to_table_column(
    column: &OutputColumn,
    source: Option<&ArrayRef>,
    rows: usize,
    legacy: &CalendarRebase,
) -> Result<(Arc<Field>, ArrayRef)> {
    let array = match source {
        Some(source) => convert_array(&column.plan, source, column.field.data_type(), legacy)
            .map_err(|e| e.at_column(column.field.name()))?,
        None => null_column(column.field.data_type(), rows),
    };
    Ok((field_for_array(&column.field, &array, None), array))
}

/// Nulls in place of a field that the file lacks.
fn null_column(data_type: &Arrow, rows: usize) -> ArrayRef {
    new_null_array(data_type, rows)
}

/// `field` with the type of `array`, nullable if the array has nulls where `parent` is valid.
fn field_for_array(
    field: &Arc<Field>,
    array: &ArrayRef,
    parent: Option<&NullBuffer>,
) -> Arc<Field> {
    let nulls = !field.is_nullable()
        && array.logical_nulls().is_some_and(|nulls| {
            nulls.null_count() > 0
                && match parent {
                    Some(parent) => !parent.contains(&nulls),
                    None => true,
                }
        });
    if !nulls && field.data_type() == array.data_type() {
        return Arc::clone(field);
    }
    Arc::new(
        field
            .as_ref()
            .clone()
            .with_data_type(array.data_type().clone())
            .with_nullable(field.is_nullable() || nulls),
    )
}

fn convert_array(
    plan: &ArrayConversion,
    array: &ArrayRef,
    to: &Arrow,
    legacy: &CalendarRebase,
) -> Result<ArrayRef> {
    match (plan, to) {
        (ArrayConversion::Absent, _) => Ok(null_column(to, array.len())),
        (ArrayConversion::Leaf(how), _) => convert_leaf(*how, array, to, legacy),
        (ArrayConversion::Struct(children), Arrow::Struct(fields)) => {
            let from = array.as_struct_opt().ok_or_else(nesting_error)?;
            let (fields, arrays) = children
                .iter()
                .zip(fields)
                .map(|((source, plan), field)| {
                    let array = match source.and_then(|n| from.columns().get(n)) {
                        Some(source) => convert_array(plan, source, field.data_type(), legacy)?,
                        None => null_column(field.data_type(), from.len()),
                    };
                    Ok((field_for_array(field, &array, from.nulls()), array))
                })
                .collect::<Result<(Vec<Arc<Field>>, Vec<ArrayRef>)>>()?;
            Ok(Arc::new(StructArray::try_new_with_length(
                fields.into(),
                arrays,
                from.nulls().cloned(),
                from.len(),
            )?))
        }
        (ArrayConversion::List(element), Arrow::List(field)) => {
            let from = array.as_list_opt::<i32>().ok_or_else(nesting_error)?;
            let values = convert_array(element, from.values(), field.data_type(), legacy)?;
            Ok(Arc::new(ListArray::try_new(
                field_for_array(field, &values, None),
                from.offsets().clone(),
                values,
                from.nulls().cloned(),
            )?))
        }
        (ArrayConversion::Map(plans), Arrow::Map(entries, sorted)) => {
            let from = array.as_map_opt().ok_or_else(nesting_error)?;
            let Arrow::Struct(fields) = entries.data_type() else {
                return Err(nesting_error());
            };
            let [key_field, value_field] = fields.as_ref() else {
                return Err(nesting_error());
            };
            let keys = convert_array(&plans.0, from.keys(), key_field.data_type(), legacy)?;
            let values = convert_array(&plans.1, from.values(), value_field.data_type(), legacy)?;
            if keys.null_count() > 0 {
                return Err(Error::corrupt_data("a map has a null key"));
            }
            let fields: Fields = vec![
                field_for_array(key_field, &keys, None),
                field_for_array(value_field, &values, None),
            ]
            .into();
            let entries = Arc::new(
                entries
                    .as_ref()
                    .clone()
                    .with_data_type(Arrow::Struct(fields.clone())),
            );
            let pairs = StructArray::try_new(fields, vec![keys, values], None)?;
            Ok(Arc::new(MapArray::try_new(
                entries,
                from.offsets().clone(),
                pairs,
                from.nulls().cloned(),
                *sorted,
            )?))
        }
        (ArrayConversion::Variant, Arrow::Struct(fields)) => convert_variant(array, fields),
        _ => Err(nesting_error()),
    }
}

fn nesting_error() -> Error {
    Error::internal("a decoded column has not the type that was planned")
}

/// Assembles a shredded variant; others are passed through.
fn convert_variant(array: &ArrayRef, fields: &Fields) -> Result<ArrayRef> {
    let damaged = |error: ArrowError| Error::corrupt_data(format!("damaged variant: {error}"));
    let from = array.as_struct_opt().ok_or_else(nesting_error)?;
    let whole = if from.column_by_name("typed_value").is_some() {
        unshred_variant(&VariantArray::try_new(array).map_err(damaged)?)
            .map_err(damaged)?
            .into_inner()
    } else {
        from.clone()
    };
    let (fields, arrays) = fields
        .iter()
        .map(|field| {
            let part = whole
                .column_by_name(field.name())
                .ok_or_else(nesting_error)?;
            let part = cast(part, field.data_type())?;
            Ok((field_for_array(field, &part, whole.nulls()), part))
        })
        .collect::<Result<(Vec<Arc<Field>>, Vec<ArrayRef>)>>()?;
    Ok(Arc::new(StructArray::try_new(
        fields.into(),
        arrays,
        whole.nulls().cloned(),
    )?))
}

/// Arrow's cast with errors for values that do not fit.
fn cast(array: &ArrayRef, to: &Arrow) -> Result<ArrayRef> {
    if array.data_type() == to {
        return Ok(Arc::clone(array));
    }
    if let Some(plain) = to_offset_layout(array, to) {
        return Ok(plain);
    }
    cast_with_options(
        array,
        to,
        &CastOptions {
            safe: false,
            ..CastOptions::default()
        },
    )
    .map_err(|error| {
        Error::corrupt_data(format!(
            "a value of a data file does not fit the table's type: {error}"
        ))
    })
}

/// A primitive array converted to the table's type.
pub(in crate::pq) fn convert_leaf(
    how: LeafConversion,
    array: &ArrayRef,
    to: &Arrow,
    legacy: &CalendarRebase,
) -> Result<ArrayRef> {
    match how {
        LeafConversion::Same | LeafConversion::Cast | LeafConversion::Text => cast(array, to),
        LeafConversion::Micros => Ok(Arc::new(to_micros(array)?.with_data_type(to.clone()))),
        LeafConversion::RebasedMicros => Ok(Arc::new(
            legacy.micros(&to_micros(array)?).with_data_type(to.clone()),
        )),
        LeafConversion::RebasedDays => Ok(Arc::new(
            legacy.days(
                array
                    .as_primitive_opt::<Date32Type>()
                    .ok_or_else(nesting_error)?,
            ),
        )),
        LeafConversion::Midnight => {
            let days = array
                .as_primitive_opt::<Date32Type>()
                .ok_or_else(nesting_error)?;
            let midnight: PrimitiveArray<TimestampMicrosecondType> = days.try_unary(|day| {
                i64::from(day)
                    .checked_mul(MICROS_PER_DAY)
                    .ok_or_else(|| out_of_range("date"))
            })?;
            Ok(Arc::new(midnight.with_data_type(to.clone())))
        }
    }
}

fn out_of_range(what: &str) -> Error {
    Error::corrupt_data(format!(
        "a {what} is out of the range of microseconds since the epoch"
    ))
}

/// Microseconds of a timestamp of any unit, nanoseconds rounded down.
fn to_micros(array: &ArrayRef) -> Result<PrimitiveArray<TimestampMicrosecondType>> {
    let times = |factor: i64| {
        move |value: i64| {
            value
                .checked_mul(factor)
                .ok_or_else(|| out_of_range("timestamp"))
        }
    };
    let Arrow::Timestamp(unit, _) = array.data_type() else {
        return Err(nesting_error());
    };
    match unit {
        TimeUnit::Second => array
            .as_primitive_opt::<TimestampSecondType>()
            .ok_or_else(nesting_error)?
            .try_unary(times(1_000_000)),
        TimeUnit::Millisecond => array
            .as_primitive_opt::<TimestampMillisecondType>()
            .ok_or_else(nesting_error)?
            .try_unary(times(1000)),
        TimeUnit::Microsecond => Ok(array
            .as_primitive_opt::<TimestampMicrosecondType>()
            .ok_or_else(nesting_error)?
            .clone()),
        TimeUnit::Nanosecond => Ok(array
            .as_primitive_opt::<TimestampNanosecondType>()
            .ok_or_else(nesting_error)?
            .unary(|value| value.div_euclid(1000))),
    }
}
