//! Casts batches to exactly the table's types without loss, or returns an error with the column,
//! the expected and the actual type.
//!
//! Columns and fields are matched by name, case-insensitively and in any order. The caller adds
//! missing columns, missing fields become null, columns that the table lacks are refused. Values
//! must not change: integers and decimals must fit, floating point numbers must be equal after
//! casting back, timestamps must be whole microseconds. Strings and binary values keep their layout
//! (views, large offsets), which the encoder accepts.
//!
//! Cost: none for columns with the right type; one pass over each other column.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date64Type, Decimal128Type, Float64Type, Int32Type, Int64Type, TimestampMicrosecondType,
};
use arrow_array::{
    Array, ArrayRef, Date32Array, Decimal128Array, ListArray, MapArray, PrimitiveArray,
    RecordBatch, StructArray, new_null_array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_cast::{CastOptions, cast, cast_with_options};
use arrow_schema::{ArrowError, DataType as Arrow, Field, Fields, Schema, TimeUnit};
use rustc_hash::FxHashMap;

use crate::error::{Error, ErrorCode, Result};
use crate::file_writer::file_schema::variant_fields;
use crate::protocol::calendar::{MICROS_PER_DAY, TimeZoneSpec};
use crate::protocol::schema::{
    ArrayType, DataType, MapType, StringLayout, StructField, StructType,
};

/// The positions of the table's columns in batches of one schema.
#[derive(Debug, Clone)]
pub struct ColumnPositions {
    /// For each column of the table its position in the batch.
    pub positions: Vec<Option<usize>>,
}

impl ColumnPositions {
    /// Finds the table's columns.
    ///
    /// # Errors
    /// [`Error::SchemaMismatch`] for columns that the table does not have, and for duplicates.
    pub fn find(batch: &Schema, table: &StructType) -> Result<Self> {
        Ok(Self {
            positions: column_positions(batch.fields(), &table.fields, "")?,
        })
    }

    /// The table's columns of a batch; `None` for missing ones.
    ///
    /// # Errors
    /// [`Error::SchemaMismatch`] for types that cannot be cast, [`Error::Invalid`] for values that
    /// do not fit; both name the column.
    pub fn cast(
        &self,
        batch: &RecordBatch,
        table: &StructType,
        zone: Option<TimeZoneSpec>,
    ) -> Result<Vec<Option<ArrayRef>>> {
        let column = |(field, place): (&StructField, &Option<usize>)| {
            let Some(array) = place.and_then(|n| batch.columns().get(n)) else {
                return Ok(None);
            };
            array_of(
                array,
                &field.data_type,
                &FieldPath::Column(&field.name),
                zone,
            )
            .map(Some)
        };
        table
            .fields
            .iter()
            .zip(&self.positions)
            .map(column)
            .collect()
    }
}

/// For each field of the table its position among the given ones.
fn column_positions(
    found: &Fields,
    table: &[StructField],
    path: &str,
) -> Result<Vec<Option<usize>>> {
    let mut used = vec![false; found.len()];
    let mut out = Vec::with_capacity(table.len());
    // The first column of each name, and of each name in lower case.
    let mut exact: FxHashMap<&str, usize> = FxHashMap::default();
    let mut alike: FxHashMap<String, usize> = FxHashMap::default();
    for (n, field) in found.iter().enumerate() {
        exact.entry(field.name()).or_insert(n);
        alike.entry(field.name().to_lowercase()).or_insert(n);
    }
    for field in table {
        let place = exact
            .get(field.name.as_str())
            .or_else(|| alike.get(&field.name.to_lowercase()))
            .copied();
        if let Some(used) = place.and_then(|n| used.get_mut(n)) {
            *used = true;
        }
        out.push(place);
    }
    for (n, field) in found.iter().enumerate() {
        if used.get(n) == Some(&false) {
            let name = format!("{path}{}", field.name());
            let twice = table
                .iter()
                .any(|f| f.name.to_lowercase() == field.name().to_lowercase());
            let columns: Vec<&str> = table.iter().map(|f| f.name.as_str()).collect();
            let expected = format!("columns {}", columns.join(", "));
            let mismatch =
                |what: &str| Error::schema_mismatch(what, expected.as_str(), format!("`{name}`"));
            let parameters: [(&'static str, &dyn std::fmt::Display); 2] =
                [("expected", &expected), ("found", &name)];
            let error = if twice {
                mismatch("the data has a column twice (names are compared without case)")
                    .with_code(ErrorCode::DuplicateColumnInData, &[("column", &name)])
            } else if path.is_empty() && found.len() != table.len() {
                mismatch("Cannot cast schema, number of fields does not match: the data has a column that the table does not have")
                    .with_code(ErrorCode::FieldCountMismatch, &parameters)
            } else {
                mismatch("the data has a column that the table does not have")
                    .with_code(ErrorCode::FieldNotInTable, &parameters)
            };
            return Err(error.at_column(name));
        }
    }
    Ok(out)
}

/// The path of a field, for messages.
enum FieldPath<'a> {
    Column(&'a str),
    Field(&'a FieldPath<'a>, &'a str),
}

impl FieldPath<'_> {
    fn dotted_path(&self) -> String {
        match self {
            Self::Column(name) => (*name).to_owned(),
            Self::Field(parent, name) => format!("{}.{name}", parent.dotted_path()),
        }
    }

    fn mismatch(&self, expected: &DataType, found: &Arrow) -> Error {
        Error::schema_mismatch(
            "the data does not have the table's type",
            expected.to_string(),
            found.to_string(),
        )
        .with_code(ErrorCode::TypeMismatch, &[])
        .at_column(self.dotted_path())
    }

    fn integer_out_of_range(&self, reason: &str, expected: &DataType, found: &Arrow) -> Error {
        self.value(reason, expected, found)
            .with_code(ErrorCode::IntegerOutOfRange, &[("reason", &reason)])
    }

    fn value(&self, what: impl std::fmt::Display, expected: &DataType, found: &Arrow) -> Error {
        Error::schema_mismatch(
            format!("a value cannot be kept without a loss: {what}"),
            expected.to_string(),
            found.to_string(),
        )
        .with_code(ErrorCode::ValueNotRepresentable, &[("reason", &what)])
        .at_column(self.dotted_path())
    }
}

/// The error for data without a column or field that is NOT NULL: `what` says which of both.
pub fn missing_not_null_error(what: &str, data_type: &DataType) -> Error {
    Error::schema_mismatch(
        format!("the data lacks a {what} that is NOT NULL"),
        data_type.to_string(),
        "nothing",
    )
    .with_code(ErrorCode::NotNullColumnMissing, &[])
}

/// One column as the table's type, see [`ColumnPositions::cast`].
///
/// # Errors
/// As [`ColumnPositions::cast`].
pub fn value(
    array: &ArrayRef,
    to: &DataType,
    name: &str,
    zone: Option<TimeZoneSpec>,
) -> Result<ArrayRef> {
    array_of(array, to, &FieldPath::Column(name), zone)
}

/// `array` as the table's type.
fn array_of(
    array: &ArrayRef,
    to: &DataType,
    path: &FieldPath<'_>,
    zone: Option<TimeZoneSpec>,
) -> Result<ArrayRef> {
    let found = array.data_type();
    let packed = match found {
        Arrow::Dictionary(_, value) => Some(value.as_ref()),
        Arrow::RunEndEncoded(_, values) => Some(values.data_type()),
        _ => None,
    };
    if let Some(value) = packed {
        let plain = cast(array, value).map_err(|e| path.value(e, to, found))?;
        return array_of(&plain, to, path, zone);
    }
    if matches!(found, Arrow::Null) {
        return Ok(new_null_array(
            &to.to_arrow(StringLayout::Plain),
            array.len(),
        ));
    }
    match to {
        DataType::Void => void(array, to, path),
        DataType::Struct(to) => structure(array, to, path, zone),
        DataType::Array(to) => list(array, to, path, zone),
        DataType::Map(to) => map(array, to, path, zone),
        DataType::Variant => variant(array, path),
        _ => primitive(array, to, path, zone),
    }
}

fn void(array: &ArrayRef, to: &DataType, path: &FieldPath<'_>) -> Result<ArrayRef> {
    if array.logical_null_count() < array.len() {
        return Err(path.mismatch(to, array.data_type()));
    }
    Ok(new_null_array(&Arrow::Null, array.len()))
}

fn structure(
    array: &ArrayRef,
    to: &StructType,
    path: &FieldPath<'_>,
    zone: Option<TimeZoneSpec>,
) -> Result<ArrayRef> {
    let Some(from) = array.as_struct_opt() else {
        return Err(path.mismatch(&DataType::Struct(Arc::new(to.clone())), array.data_type()));
    };
    let places = column_positions(
        from.fields(),
        &to.fields,
        &format!("{}.", path.dotted_path()),
    )?;
    let (fields, arrays) = to
        .fields
        .iter()
        .zip(places)
        .map(|(field, place)| {
            let inner = FieldPath::Field(path, &field.name);
            let array = match place.and_then(|n| from.columns().get(n)) {
                Some(child) => array_of(child, &field.data_type, &inner, zone)?,
                None if field.nullable => {
                    new_null_array(&field.data_type.to_arrow(StringLayout::Plain), from.len())
                }
                None => {
                    return Err(missing_not_null_error("field", &field.data_type)
                        .at_column(inner.dotted_path()));
                }
            };
            Ok((field_of(&field.name, &array), array))
        })
        .collect::<Result<(Vec<Field>, Vec<ArrayRef>)>>()?;
    Ok(Arc::new(StructArray::try_new_with_length(
        fields.into(),
        arrays,
        from.nulls().cloned(),
        from.len(),
    )?))
}

/// The field for an array. Nullability is checked against the table's schema, not the array's.
fn field_of(name: &str, array: &ArrayRef) -> Field {
    Field::new(name, array.data_type().clone(), true)
}

fn list(
    array: &ArrayRef,
    to: &ArrayType,
    path: &FieldPath<'_>,
    zone: Option<TimeZoneSpec>,
) -> Result<ArrayRef> {
    let element = match array.data_type() {
        Arrow::List(field)
        | Arrow::LargeList(field)
        | Arrow::ListView(field)
        | Arrow::LargeListView(field)
        | Arrow::FixedSizeList(field, _) => field,
        found => return Err(path.mismatch(&DataType::Array(Arc::new(to.clone())), found)),
    };
    let plain = cast(array, &Arrow::List(Arc::clone(element)))
        .map_err(|e| path.value(e, &DataType::Array(Arc::new(to.clone())), array.data_type()))?;
    let from = plain
        .as_list_opt::<i32>()
        .ok_or_else(|| Error::internal("an array is not a list"))?;
    let (offsets, from_at, length) = trimmed(from.offsets());
    let values = array_of(
        &from.values().slice(from_at, length),
        &to.element,
        &FieldPath::Field(path, "element"),
        zone,
    )?;
    let field = Arc::new(field_of("element", &values));
    Ok(Arc::new(ListArray::try_new(
        field,
        offsets,
        values,
        from.nulls().cloned(),
    )?))
}

/// Offsets that begin at 0, and the range of values that they referred to: a slice of a large array
/// includes all its values.
fn trimmed(offsets: &OffsetBuffer<i32>) -> (OffsetBuffer<i32>, usize, usize) {
    let (first, last) = (offsets.first(), offsets.last());
    let from = usize::try_from(first).unwrap_or(0);
    let length = usize::try_from(last - first).unwrap_or(0);
    if first == 0 {
        return (offsets.clone(), from, length);
    }
    (
        OffsetBuffer::new(
            offsets
                .iter()
                .map(|offset| offset - first)
                .collect::<Vec<_>>()
                .into(),
        ),
        from,
        length,
    )
}

fn map(
    array: &ArrayRef,
    to: &MapType,
    path: &FieldPath<'_>,
    zone: Option<TimeZoneSpec>,
) -> Result<ArrayRef> {
    let Some(from) = array.as_map_opt() else {
        return Err(path.mismatch(&DataType::Map(Arc::new(to.clone())), array.data_type()));
    };
    let (offsets, from_at, length) = trimmed(from.offsets());
    let keys = array_of(
        &from.keys().slice(from_at, length),
        &to.key,
        &FieldPath::Field(path, "key"),
        zone,
    )?;
    let values = array_of(
        &from.values().slice(from_at, length),
        &to.value,
        &FieldPath::Field(path, "value"),
        zone,
    )?;
    // Arrow's maps never have null keys, but not every producer ensures it; entries of a null map
    // do not count.
    if keys.logical_null_count() > 0 {
        return Err(Error::invalid("a map has a null key").at_column(path.dotted_path()));
    }
    map_of(offsets, keys, values, from.nulls())
}

/// A variant is given as its two fields, in any order and layout, and returned in the protocol's
/// layout.
fn variant(array: &ArrayRef, path: &FieldPath<'_>) -> Result<ArrayRef> {
    let Some(from) = array.as_struct_opt() else {
        return Err(path.mismatch(&DataType::Variant, array.data_type()));
    };
    if from.column_by_name("typed_value").is_some() {
        return Err(Error::unsupported(
            "a shredded variant cannot be written; put it together first",
        )
        .at_column(path.dotted_path()));
    }
    let part = |name: &str| {
        let part = from.column_by_name(name).filter(|part| {
            matches!(
                part.data_type(),
                Arrow::Binary | Arrow::LargeBinary | Arrow::BinaryView | Arrow::FixedSizeBinary(_)
            )
        });
        let part = part.ok_or_else(|| path.mismatch(&DataType::Variant, array.data_type()))?;
        Ok::<ArrayRef, Error>(cast(part, &Arrow::Binary)?)
    };
    let (metadata, value) = (part("metadata")?, part("value")?);
    let missing = |part: &ArrayRef| {
        part.nulls().is_some_and(|nulls| {
            nulls.null_count() > 0 && !from.nulls().is_some_and(|above| above.contains(nulls))
        })
    };
    if missing(&metadata) || missing(&value) {
        return Err(
            Error::invalid("a variant has no metadata or no value").at_column(path.dotted_path())
        );
    }
    Ok(Arc::new(StructArray::try_new(
        variant_fields(),
        vec![metadata, value],
        from.nulls().cloned(),
    )?))
}

#[expect(
    clippy::too_many_lines,
    reason = "a table of conversions, one line a pair of types"
)]
fn primitive(
    array: &ArrayRef,
    to: &DataType,
    path: &FieldPath<'_>,
    zone: Option<TimeZoneSpec>,
) -> Result<ArrayRef> {
    let found = array.data_type();
    let wanted = to.to_arrow(StringLayout::Plain);
    if *found == wanted {
        return Ok(Arc::clone(array));
    }
    let strict = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    let checked = |array: &ArrayRef, wanted: &Arrow| {
        cast_with_options(array, wanted, &strict)
            .map_err(|e| path.value(arrow_message(e), to, found))
    };
    match (to, found) {
        (DataType::String, Arrow::LargeUtf8 | Arrow::Utf8View)
        | (DataType::Binary, Arrow::LargeBinary | Arrow::BinaryView) => Ok(Arc::clone(array)),
        (DataType::Binary, Arrow::FixedSizeBinary(_)) => checked(array, &wanted),
        (DataType::Byte | DataType::Short | DataType::Integer | DataType::Long, from)
            if from.is_integer() =>
        {
            cast_with_options(array, &wanted, &strict)
                .map_err(|e| path.integer_out_of_range(&arrow_message(e), to, found))
        }
        (DataType::Float | DataType::Double, from)
            if from.is_integer()
                || matches!(from, Arrow::Float16 | Arrow::Float32 | Arrow::Float64) =>
        {
            let out = cast(array, &wanted)?;
            let back = cast(&out, found)?;
            if same_numbers(array, &back)? {
                return Ok(out);
            }
            Err(path.value("a number is not exact in the table's type", to, found))
        }
        (DataType::Decimal(precision, scale), from) if from.is_integer() => decimal(
            &checked(array, &Arrow::Decimal128(20, 0))?,
            *precision,
            *scale,
            to,
            path,
            found,
        ),
        (
            DataType::Decimal(precision, scale),
            Arrow::Decimal32(..)
            | Arrow::Decimal64(..)
            | Arrow::Decimal128(..)
            | Arrow::Decimal256(..),
        ) => {
            let from_scale = match found {
                Arrow::Decimal32(_, s)
                | Arrow::Decimal64(_, s)
                | Arrow::Decimal128(_, s)
                | Arrow::Decimal256(_, s) => *s,
                _ => 0,
            };
            decimal(
                &checked(array, &Arrow::Decimal128(38, from_scale))?,
                *precision,
                *scale,
                to,
                path,
                found,
            )
        }
        (DataType::Date, Arrow::Date64) => {
            let whole = |ms: i64| {
                (ms % 86_400_000 == 0)
                    .then(|| i32::try_from(ms / 86_400_000).ok())
                    .flatten()
            };
            let days: Date32Array = array
                .as_primitive::<Date64Type>()
                .try_unary(|ms| whole(ms).ok_or(()))
                .map_err(|()| path.value("a date has a time of day", to, found))?;
            Ok(Arc::new(days))
        }
        (DataType::TimestampNtz, Arrow::Date32) => {
            let days = cast(array, &Arrow::Int32)?;
            let micros: PrimitiveArray<TimestampMicrosecondType> = days
                .as_primitive::<Int32Type>()
                .try_unary(|day| i64::from(day).checked_mul(MICROS_PER_DAY).ok_or(()))
                .map_err(|()| {
                    path.value("a date is out of the range of microseconds", to, found)
                })?;
            Ok(Arc::new(micros))
        }
        (DataType::Timestamp, Arrow::Timestamp(unit, Some(_))) => Ok(Arc::new(
            micros(array, *unit, to, path)?.with_timezone("UTC"),
        )),
        (DataType::TimestampNtz, Arrow::Timestamp(unit, None)) => {
            Ok(Arc::new(micros(array, *unit, to, path)?))
        }
        (DataType::Timestamp, Arrow::Timestamp(unit, None)) if zone.is_some() => {
            let wall = micros(array, *unit, to, path)?;
            let zone = zone.unwrap_or(TimeZoneSpec::UTC);
            let instants = if zone == TimeZoneSpec::UTC {
                wall
            } else {
                wall.try_unary::<_, TimestampMicrosecondType, _>(|wall| zone.to_utc(wall).ok_or(()))
                    .map_err(|()| path.value("a timestamp is out of range", to, found))?
            };
            Ok(Arc::new(instants.with_timezone("UTC")))
        }
        _ => Err(path.mismatch(to, found)),
    }
}

/// Arrow's message without its class.
fn arrow_message(error: ArrowError) -> String {
    match error {
        ArrowError::CastError(what)
        | ArrowError::ComputeError(what)
        | ArrowError::ArithmeticOverflow(what)
        | ArrowError::InvalidArgumentError(what) => what,
        other => other.to_string(),
    }
}

/// Whether numbers are unchanged after casting back; `NaN` equals itself.
fn same_numbers(a: &ArrayRef, b: &ArrayRef) -> Result<bool> {
    // The supported casts give equal bits for equal values, except for the payload of `NaN`.
    let doubles = |array: &ArrayRef| -> Result<Option<ArrayRef>> {
        Ok(match array.data_type() {
            Arrow::Float16 | Arrow::Float32 | Arrow::Float64 => Some(cast(array, &Arrow::Float64)?),
            _ => None,
        })
    };
    if let (Some(a), Some(b)) = (doubles(a)?, doubles(b)?) {
        let (a, b) = (
            a.as_primitive::<Float64Type>(),
            b.as_primitive::<Float64Type>(),
        );
        return Ok(a.iter().zip(b).all(|(a, b)| match (a, b) {
            (Some(a), Some(b)) => a == b || (a.is_nan() && b.is_nan()),
            (a, b) => a.is_none() && b.is_none(),
        }));
    }
    Ok(a.to_data() == b.to_data())
}

/// Unscaled values at another scale and precision.
fn decimal(
    array: &ArrayRef,
    precision: u8,
    scale: i8,
    to: &DataType,
    path: &FieldPath<'_>,
    found: &Arrow,
) -> Result<ArrayRef> {
    let from = array
        .as_primitive_opt::<Decimal128Type>()
        .ok_or_else(|| Error::internal("an array is not of decimals"))?;
    let shift = i32::from(scale) - i32::from(from.scale());
    let power = 10_i128
        .checked_pow(shift.unsigned_abs())
        .unwrap_or(i128::MAX);
    let limit = 10_i128
        .checked_pow(u32::from(precision))
        .unwrap_or(i128::MAX);
    let rescale = |value: i128| {
        let moved = match shift {
            0 => Some(value),
            1.. => value.checked_mul(power),
            _ => (value % power == 0).then_some(value / power),
        };
        moved
            .filter(|moved| moved.unsigned_abs() < limit.unsigned_abs())
            .ok_or(())
    };
    let out: Decimal128Array = from
        .try_unary(rescale)
        .map_err(|()| path.value("a number has more digits than the table's type", to, found))?;
    Ok(Arc::new(out.with_precision_and_scale(precision, scale)?))
}

/// Microseconds of a timestamp of any unit.
fn micros(
    array: &ArrayRef,
    unit: TimeUnit,
    to: &DataType,
    path: &FieldPath<'_>,
) -> Result<PrimitiveArray<TimestampMicrosecondType>> {
    let found = array.data_type();
    let raw = cast(array, &Arrow::Int64)?;
    let raw = raw
        .as_primitive_opt::<Int64Type>()
        .ok_or_else(|| Error::internal("a timestamp is not a number"))?;
    let convert = |value: i64| match unit {
        TimeUnit::Second => value.checked_mul(1_000_000),
        TimeUnit::Millisecond => value.checked_mul(1000),
        TimeUnit::Microsecond => Some(value),
        TimeUnit::Nanosecond => (value % 1000 == 0).then_some(value / 1000),
    };
    let what = if unit == TimeUnit::Nanosecond {
        "a timestamp has nanoseconds, round it to microseconds first"
    } else {
        "a timestamp is out of range"
    };
    raw.try_unary(|value| convert(value).ok_or(()))
        .map_err(|()| path.value(what, to, found))
}

/// `array` without the fields that files leave out because their type is `void`.
///
/// # Errors
/// [`Error::Internal`] for an array of another type.
pub(super) fn without_void_fields(array: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    if !has_void_field(data_type) {
        return Ok(Arc::clone(array));
    }
    let wrong = || Error::internal("an array is not of the type it was cast to");
    Ok(match data_type {
        DataType::Struct(of) => {
            let from = array.as_struct_opt().ok_or_else(wrong)?;
            let kept = of
                .fields
                .iter()
                .zip(from.columns())
                .filter(|(field, _)| field.data_type != DataType::Void);
            let (fields, arrays) = kept
                .map(|(field, array)| {
                    without_void_fields(array, &field.data_type)
                        .map(|array| (field_of(&field.name, &array), array))
                })
                .collect::<Result<(Vec<Field>, Vec<ArrayRef>)>>()?;
            Arc::new(StructArray::try_new_with_length(
                fields.into(),
                arrays,
                from.nulls().cloned(),
                from.len(),
            )?)
        }
        DataType::Array(of) => {
            let from = array.as_list_opt::<i32>().ok_or_else(wrong)?;
            let values = without_void_fields(from.values(), &of.element)?;
            Arc::new(ListArray::try_new(
                Arc::new(field_of("element", &values)),
                from.offsets().clone(),
                values,
                from.nulls().cloned(),
            )?)
        }
        DataType::Map(of) => {
            let from = array.as_map_opt().ok_or_else(wrong)?;
            let (keys, values) = (
                without_void_fields(from.keys(), &of.key)?,
                without_void_fields(from.values(), &of.value)?,
            );
            map_of(from.offsets().clone(), keys, values, from.nulls())?
        }
        _ => Arc::clone(array),
    })
}

fn has_void_field(data_type: &DataType) -> bool {
    match data_type {
        DataType::Void => true,
        DataType::Struct(of) => of
            .fields
            .iter()
            .any(|field| has_void_field(&field.data_type)),
        DataType::Array(of) => has_void_field(&of.element),
        DataType::Map(of) => has_void_field(&of.key) || has_void_field(&of.value),
        _ => false,
    }
}

/// A map, with its entries named as in the protocol.
fn map_of(
    offsets: OffsetBuffer<i32>,
    keys: ArrayRef,
    values: ArrayRef,
    nulls: Option<&NullBuffer>,
) -> Result<ArrayRef> {
    let fields: Fields = vec![
        Field::new("key", keys.data_type().clone(), false),
        field_of("value", &values),
    ]
    .into();
    let entries = Arc::new(Field::new(
        "key_value",
        Arrow::Struct(fields.clone()),
        false,
    ));
    let pairs = StructArray::try_new(fields, vec![keys, values], None)?;
    Ok(Arc::new(MapArray::try_new(
        entries,
        offsets,
        pairs,
        nulls.cloned(),
        false,
    )?))
}

/// `array` with copies of strings and binary values in place of views into other buffers.
///
/// # Errors
/// [`Error::Invalid`] for more than 2 GiB of strings.
pub(super) fn without_views(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        Arrow::Utf8View => cast(array, &Arrow::Utf8)?,
        Arrow::BinaryView => cast(array, &Arrow::Binary)?,
        Arrow::Struct(fields) => {
            let from = array.as_struct();
            let arrays = from
                .columns()
                .iter()
                .map(without_views)
                .collect::<Result<Vec<_>>>()?;
            let fields: Fields = fields
                .iter()
                .zip(&arrays)
                .map(|(field, array)| {
                    field
                        .as_ref()
                        .clone()
                        .with_data_type(array.data_type().clone())
                })
                .collect();
            Arc::new(StructArray::try_new_with_length(
                fields,
                arrays,
                from.nulls().cloned(),
                from.len(),
            )?)
        }
        Arrow::List(_) => {
            let from = array.as_list::<i32>();
            let values = without_views(from.values())?;
            Arc::new(ListArray::try_new(
                Arc::new(field_of("element", &values)),
                from.offsets().clone(),
                values,
                from.nulls().cloned(),
            )?)
        }
        Arrow::Map(..) => {
            let from = array.as_map();
            map_of(
                from.offsets().clone(),
                without_views(from.keys())?,
                without_views(from.values())?,
                from.nulls(),
            )?
        }
        _ => Arc::clone(array),
    })
}
