//! Casts: every pair of primitive types that Spark allows, in its three modes.
//!
//! ANSI raises where the target type cannot hold a value, legacy gives null or wraps around as Java
//! does, try gives null where ANSI raises. `expr::text` reads and writes strings; a cast from a
//! nested value to a string has Spark's format.
//!
//! Cost: one loop per column; widening goes through arrow's kernels.

use std::sync::Arc;

use arrow_array::builder::PrimitiveBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimestampMicrosecondType,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, Float64Array, Int64Array, ListArray, MapArray,
    PrimitiveArray, StructArray, UInt64Array,
};
use arrow_buffer::BooleanBufferBuilder;
use arrow_schema::{DataType as Arrow, Field, FieldRef};

use crate::error::{Error, ErrorCode, shown};
use crate::expr::eval::array_layout::{child, plain};
use crate::expr::eval::budget;
use crate::expr::eval::decimal_scale::{double_digits, rescale, round_to};
use crate::expr::eval::error::{EvalError, EvalResult, unexpected};
use crate::expr::eval::value::{BinaryColumn, BytesBuilder, StringColumn};
use crate::expr::signature::same;
use crate::expr::text::number::{self, LiteralParseError, RoundingMode, fits, power_of_ten};
use crate::expr::text::{datetime, number::write_decimal};
use crate::expr::tree::{CastMode, SqlType};
use crate::protocol::calendar::{MICROS_PER_SECOND, TimeZoneSpec};
use crate::protocol::schema::{DataType, StringLayout, StructField};

fn is_integral(t: &DataType) -> bool {
    matches!(
        t,
        DataType::Byte | DataType::Short | DataType::Integer | DataType::Long
    )
}

fn is_numeric(t: &DataType) -> bool {
    is_integral(t)
        || matches!(
            t,
            DataType::Float | DataType::Double | DataType::Decimal(..)
        )
}

/// Whether values of a type can be cast to strings.
fn has_text(t: &DataType) -> bool {
    match t {
        DataType::Variant => false,
        DataType::Array(a) => has_text(&a.element),
        DataType::Map(m) => has_text(&m.key) && has_text(&m.value),
        DataType::Struct(s) => s.fields.iter().all(|f| has_text(&f.data_type)),
        _ => true,
    }
}

/// Whether Spark allows the cast in the mode and the core has it.
#[must_use]
pub fn is_possible(from: &DataType, to: &DataType, mode: CastMode) -> bool {
    use DataType as T;
    if same(from, to) {
        return true;
    }
    let legacy = mode == CastMode::Legacy;
    match (from, to) {
        (T::Array(a), T::Array(b)) => is_possible(&a.element, &b.element, mode),
        (T::Map(a), T::Map(b)) => {
            is_possible(&a.key, &b.key, mode) && is_possible(&a.value, &b.value, mode)
        }
        (T::Struct(a), T::Struct(b)) => {
            a.fields.len() == b.fields.len()
                && a.fields
                    .iter()
                    .zip(&b.fields)
                    .all(|(a, b)| is_possible(&a.data_type, &b.data_type, mode))
        }
        (_, T::Variant | T::Void) => false,
        (T::Void, _) => true,
        (from, T::String) => has_text(from),
        (T::String, T::Boolean | T::Binary | T::Date | T::Timestamp | T::TimestampNtz) => true,
        (T::String, to) => is_numeric(to),
        (T::Boolean, to) => is_numeric(to) || (legacy && matches!(to, T::Timestamp)),
        (from, T::Boolean) => {
            is_numeric(from) || (legacy && matches!(from, T::Timestamp | T::Date))
        }
        (T::Date | T::Timestamp | T::TimestampNtz, T::Date | T::Timestamp | T::TimestampNtz) => {
            true
        }
        (T::Timestamp, to) => is_numeric(to),
        (T::Date, to) => legacy && is_numeric(to),
        (from, T::Timestamp) => is_numeric(from),
        (from, T::Binary) => legacy && is_integral(from),
        (from, to) => is_numeric(from) && is_numeric(to),
    }
}

/// Whether some value makes the cast raise.
#[must_use]
pub fn can_fail(from: &DataType, to: &DataType, mode: CastMode) -> bool {
    use DataType as T;
    if same(from, to) || matches!(from, T::Void) {
        return false;
    }
    match (from, to) {
        (T::Array(a), T::Array(b)) => can_fail(&a.element, &b.element, mode),
        (T::Map(_), T::Map(_)) => true,
        (T::Struct(a), T::Struct(b)) => a
            .fields
            .iter()
            .zip(&b.fields)
            .any(|(a, b)| can_fail(&a.data_type, &b.data_type, mode)),
        // Binary values may not be valid UTF-8.
        (T::Binary, T::String) => true,
        (_, T::String) => false,
        // A time without a date has no value in any mode.
        (T::String, T::Timestamp) => true,
        // Days and local times beyond the range of microseconds raise in every mode.
        (T::Date, T::Timestamp | T::TimestampNtz) | (T::TimestampNtz, T::Timestamp) => true,
        _ if mode != CastMode::Ansi => false,
        (T::Boolean, to) => matches!(to, T::Decimal(..)),
        (_, T::Boolean) => matches!(from, T::String),
        (from, T::Float | T::Double) => matches!(from, T::String),
        (T::Byte, T::Short | T::Integer | T::Long)
        | (T::Short, T::Integer | T::Long)
        | (T::Integer, T::Long) => false,
        (T::Decimal(p, s), T::Decimal(q, t)) => {
            i16::from(*q) - i16::from(*t) < i16::from(*p) - i16::from(*s) || t < s
        }
        (from, T::Decimal(q, t)) if is_integral(from) => i16::from(*q) - i16::from(*t) < 19,
        (T::Timestamp | T::TimestampNtz, T::Date) => false,
        (T::String, T::Binary) => false,
        _ => true,
    }
}

/// Casts an array, which is canonical for `from`.
pub(crate) fn cast(
    array: &ArrayRef,
    from: &DataType,
    to: &DataType,
    mode: CastMode,
    zone: &TimeZoneSpec,
) -> EvalResult {
    use DataType as T;
    if same(from, to) {
        return Ok(array.clone());
    }
    let conversion = CastInput {
        array,
        from,
        to,
        mode,
        zone,
    };
    match (from, to) {
        (T::Array(a), T::Array(b)) => conversion.list(&a.element, &b.element),
        (T::Map(a), T::Map(b)) => conversion.map((&a.key, &b.key), (&a.value, &b.value)),
        (T::Struct(a), T::Struct(b)) => conversion.fields(&a.fields, &b.fields),
        (T::Void, _) => Ok(arrow_array::new_null_array(
            &to.to_arrow(StringLayout::Plain),
            array.len(),
        )),
        (_, T::String) => conversion.to_text(),
        (T::String, _) => conversion.read_text(),
        (_, T::Boolean) => conversion.to_boolean(),
        (T::Date | T::Timestamp | T::TimestampNtz, T::Date | T::Timestamp | T::TimestampNtz) => {
            conversion.between_times()
        }
        (_, T::Binary) => conversion.integers_to_bytes(),
        (T::Date, _) => Ok(arrow_array::new_null_array(
            &to.to_arrow(StringLayout::Plain),
            array.len(),
        )),
        _ => conversion.numbers(),
    }
}

struct CastInput<'a> {
    array: &'a ArrayRef,
    from: &'a DataType,
    to: &'a DataType,
    mode: CastMode,
    zone: &'a TimeZoneSpec,
}

impl CastInput<'_> {
    /// The result for a value that the target type cannot hold: null, or the error.
    fn none<T>(&self, fault: impl FnOnce() -> EvalError) -> EvalResult<Option<T>> {
        if self.mode == CastMode::Ansi {
            Err(fault())
        } else {
            Ok(None)
        }
    }

    fn invalid_input(&self, text: &str) -> EvalError {
        let (value, from, to) = (shown(text), SqlType(self.from), SqlType(self.to));
        EvalError::value_with(
            ErrorCode::CastInvalidInput,
            &[
                ("value", &value),
                ("source_type", &from),
                ("target_type", &to),
            ],
            format!(
                "the value '{value}' of type {from} cannot be cast to {to} because it is malformed"
            ),
        )
    }

    fn overflow(&self, value: impl std::fmt::Display) -> EvalError {
        let (from, to) = (SqlType(self.from), SqlType(self.to));
        EvalError::value_with(
            ErrorCode::CastOverflow,
            &[
                ("value", &value),
                ("source_type", &from),
                ("target_type", &to),
            ],
            format!("the value {value} of type {from} cannot be cast to {to} due to an overflow"),
        )
    }

    fn out_of_range(&self, value: impl std::fmt::Display) -> EvalError {
        EvalError::value(
            ErrorCode::NumericValueOutOfRange,
            format!(
                "the value {value} cannot be represented as {}",
                SqlType(self.to)
            ),
        )
    }

    /// Builds a primitive array row by row; null stays null.
    fn build<T: ArrowPrimitiveType>(
        &self,
        mut value: impl FnMut(usize) -> EvalResult<Option<T::Native>>,
    ) -> EvalResult<PrimitiveArray<T>> {
        let mut builder = PrimitiveBuilder::<T>::with_capacity(self.array.len());
        for row in 0..self.array.len() {
            builder.append_option(if self.array.is_null(row) {
                None
            } else {
                value(row)?
            });
        }
        Ok(builder.finish())
    }

    fn timestamps(&self, values: PrimitiveArray<TimestampMicrosecondType>) -> ArrayRef {
        match self.to {
            DataType::Timestamp => Arc::new(values.with_timezone("UTC")),
            _ => Arc::new(values),
        }
    }

    fn decimals(&self, values: Decimal128Array) -> EvalResult {
        match self.to {
            DataType::Decimal(p, s) => Ok(Arc::new(values.with_precision_and_scale(*p, *s)?)),
            _ => Err(unexpected(values.data_type())),
        }
    }

    /// Casts the elements of nested values. Elements under a null are removed first, so that they
    /// cannot raise.
    fn list(&self, from: &DataType, to: &DataType) -> EvalResult {
        let list = self
            .array
            .as_list_opt::<i32>()
            .ok_or_else(|| unexpected(self.array.data_type()))?;
        let list = if list.null_count() > 0 || !is_whole(list.offsets(), list.values()) {
            compacted(self.array)?
        } else {
            self.array.clone()
        };
        let list = list
            .as_list_opt::<i32>()
            .ok_or_else(|| unexpected(self.array.data_type()))?;
        let values = plain(&cast(list.values(), from, to, self.mode, self.zone)?, to)?;
        let Arrow::List(field) = self.to.to_arrow(StringLayout::Plain) else {
            return Err(unexpected(list.data_type()));
        };
        let field = nullable(&field, values.null_count() > 0);
        let array: ArrayRef = Arc::new(ListArray::try_new(
            field,
            list.offsets().clone(),
            values,
            list.nulls().cloned(),
        )?);
        plain(&array, self.to)
    }

    fn map(&self, keys: (&DataType, &DataType), values: (&DataType, &DataType)) -> EvalResult {
        let map = self
            .array
            .as_map_opt()
            .ok_or_else(|| unexpected(self.array.data_type()))?;
        let map = if map.null_count() > 0 || !is_whole(map.offsets(), map.keys()) {
            compacted(self.array)?
        } else {
            self.array.clone()
        };
        let map = map
            .as_map_opt()
            .ok_or_else(|| unexpected(self.array.data_type()))?;
        let key_array = plain(
            &cast(map.keys(), keys.0, keys.1, self.mode, self.zone)?,
            keys.1,
        )?;
        let value_array = plain(
            &cast(map.values(), values.0, values.1, self.mode, self.zone)?,
            values.1,
        )?;
        if key_array.null_count() > 0 {
            return Err(EvalError::value(
                ErrorCode::NullMapKey,
                "a key of a map has no counterpart in the type it is cast to",
            ));
        }
        let Arrow::Map(field, sorted) = self.to.to_arrow(StringLayout::Plain) else {
            return Err(unexpected(map.data_type()));
        };
        let Arrow::Struct(parts) = field.data_type() else {
            return Err(unexpected(map.data_type()));
        };
        let parts: Vec<_> = parts
            .iter()
            .zip([&key_array, &value_array])
            .map(|(f, a)| nullable(f, a.null_count() > 0))
            .collect();
        let entries = StructArray::try_new(parts.into(), vec![key_array, value_array], None)?;
        let field = Arc::new(Field::new(field.name(), entries.data_type().clone(), false));
        let array: ArrayRef = Arc::new(MapArray::try_new(
            field,
            map.offsets().clone(),
            entries,
            map.nulls().cloned(),
            sorted,
        )?);
        plain(&array, self.to)
    }

    fn fields(&self, from: &[StructField], to: &[StructField]) -> EvalResult {
        let parent = self
            .array
            .as_struct_opt()
            .ok_or_else(|| unexpected(self.array.data_type()))?;
        let (mut fields, mut columns) = (Vec::new(), Vec::new());
        for ((source, target), column) in from.iter().zip(to).zip(parent.columns()) {
            let masked = child(parent, &source.name).unwrap_or_else(|| column.clone());
            let column = plain(
                &cast(
                    &masked,
                    &source.data_type,
                    &target.data_type,
                    self.mode,
                    self.zone,
                )?,
                &target.data_type,
            )?;
            fields.push(Field::new(&target.name, column.data_type().clone(), true));
            columns.push(column);
        }
        let array: ArrayRef = Arc::new(StructArray::try_new_with_length(
            fields.into(),
            columns,
            parent.nulls().cloned(),
            parent.len(),
        )?);
        plain(&array, self.to)
    }

    fn to_text(&self) -> EvalResult {
        let rows = self.array.len();
        if let Some(bytes) = matches!(self.from, DataType::Binary)
            .then(|| BinaryColumn::new(self.array))
            .flatten()
        {
            let mut out = BytesBuilder::new(rows);
            for row in 0..rows {
                if self.array.is_null(row) {
                    out.push_null()?;
                } else {
                    let text = std::str::from_utf8(bytes.get(row));
                    out.push(
                        text.map_err(|_| {
                            EvalError::value(
                                ErrorCode::NotUtf8,
                                "bytes that are not UTF-8 text cannot be cast to STRING",
                            )
                        })?
                        .as_bytes(),
                    )?;
                }
            }
            return Ok(Arc::new(out.finish_text()?));
        }
        let writer = CastFormatter::new(self.array, self.from, self.mode, self.zone)?;
        let mut out = BytesBuilder::new(rows);
        let mut scratch = String::new();
        for row in 0..rows {
            if self.array.is_null(row) {
                out.push_null()?;
            } else {
                scratch.clear();
                writer.write(&mut scratch, row)?;
                out.push(scratch.as_bytes())?;
            }
        }
        Ok(Arc::new(out.finish_text()?))
    }

    fn read_text(&self) -> EvalResult {
        use DataType as T;
        let texts = StringColumn::new(self.array)?;
        let malformed = |row: usize| self.invalid_input(texts.get(row));
        Ok(match self.to {
            T::Binary => {
                let layout = match self.array.data_type() {
                    Arrow::Utf8View => Arrow::BinaryView,
                    Arrow::LargeUtf8 => Arrow::LargeBinary,
                    _ => Arrow::Binary,
                };
                arrow_cast::cast(self.array, &layout)?
            }
            T::Boolean => {
                let (mut values, mut nulls) = (
                    BooleanBufferBuilder::new(self.array.len()),
                    arrow_buffer::NullBufferBuilder::new(self.array.len()),
                );
                for row in 0..self.array.len() {
                    let value = if self.array.is_null(row) {
                        None
                    } else {
                        match truth(texts.get(row)) {
                            Some(value) => Some(value),
                            None => self.none(|| malformed(row))?,
                        }
                    };
                    values.append(value.unwrap_or(false));
                    nulls.append(value.is_some());
                }
                Arc::new(BooleanArray::new(values.finish(), nulls.finish()))
            }
            T::Byte => Arc::new(self.text_to_integer::<Int8Type>(&texts)?),
            T::Short => Arc::new(self.text_to_integer::<Int16Type>(&texts)?),
            T::Integer => Arc::new(self.text_to_integer::<Int32Type>(&texts)?),
            T::Long => Arc::new(self.text_to_integer::<Int64Type>(&texts)?),
            T::Double => {
                Arc::new(
                    self.build::<Float64Type>(|row| match number::double(texts.get(row)) {
                        Some(value) => Ok(Some(value)),
                        None => self.none(|| malformed(row)),
                    })?,
                )
            }
            T::Float => {
                Arc::new(
                    self.build::<Float32Type>(|row| match number::float(texts.get(row)) {
                        Some(value) => Ok(Some(value)),
                        None => self.none(|| malformed(row)),
                    })?,
                )
            }
            T::Decimal(precision, scale) => {
                let values = self.build::<Decimal128Type>(|row| {
                    match number::decimal(texts.get(row), *precision, *scale) {
                        Ok(value) => Ok(Some(value)),
                        Err(LiteralParseError::Malformed) => self.none(|| malformed(row)),
                        Err(LiteralParseError::OutOfRange) => {
                            self.none(|| self.out_of_range(shown(texts.get(row))))
                        }
                    }
                })?;
                self.decimals(values)?
            }
            T::Date => {
                Arc::new(
                    self.build::<Date32Type>(|row| match datetime::date(texts.get(row)) {
                        Some(value) => Ok(Some(value)),
                        None => self.none(|| malformed(row)),
                    })?,
                )
            }
            T::Timestamp => {
                let values = self.build::<TimestampMicrosecondType>(|row| match datetime::timestamp(texts.get(row), self.zone) {
                    Ok(Some(value)) => Ok(Some(value)),
                    Ok(None) => self.none(|| malformed(row)),
                    Err(datetime::TimeOnly) => Err(Error::unsupported(format!(
                        "the text '{}' is a time without a date, whose timestamp depends on today; add a date",
                        shown(texts.get(row))
                    ))
                    .into()),
                })?;
                self.timestamps(values)
            }
            T::TimestampNtz => {
                let values = self.build::<TimestampMicrosecondType>(|row| {
                    match datetime::timestamp_ntz(texts.get(row)) {
                        Some(value) => Ok(Some(value)),
                        None => self.none(|| malformed(row)),
                    }
                })?;
                self.timestamps(values)
            }
            _ => return Err(unexpected(self.array.data_type())),
        })
    }

    fn text_to_integer<T: ArrowPrimitiveType>(
        &self,
        texts: &StringColumn<'_>,
    ) -> EvalResult<PrimitiveArray<T>>
    where
        T::Native: TryFrom<i64>,
    {
        self.build::<T>(|row| {
            let text = texts.get(row);
            let value = number::integer(text, self.mode == CastMode::Legacy)
                .ok()
                .and_then(|v| T::Native::try_from(v).ok());
            match value {
                Some(value) => Ok(Some(value)),
                None => self.none(|| self.invalid_input(text)),
            }
        })
    }

    fn to_boolean(&self) -> EvalResult {
        use DataType as T;
        let nulls = self.array.nulls().cloned();
        let bits = match self.from {
            T::Date => {
                return Ok(arrow_array::new_null_array(
                    &Arrow::Boolean,
                    self.array.len(),
                ));
            }
            T::Float | T::Double => self.doubles()?.values().iter().map(|v| *v != 0.0).collect(),
            T::Decimal(..) => self
                .array
                .as_primitive::<Decimal128Type>()
                .values()
                .iter()
                .map(|v| *v != 0)
                .collect(),
            _ => self.longs()?.values().iter().map(|v| *v != 0).collect(),
        };
        Ok(Arc::new(BooleanArray::new(bits, nulls)))
    }

    fn between_times(&self) -> EvalResult {
        use DataType as T;
        let overflow = |micros: i64| {
            EvalError::value(
                ErrorCode::DatetimeOverflow,
                format!(
                    "{micros} microseconds are out of the range of {}",
                    SqlType(self.to)
                ),
            )
        };
        Ok(match (self.from, self.to) {
            (T::Date, to) => {
                let days = self.array.as_primitive::<Date32Type>();
                let values = self.build::<TimestampMicrosecondType>(|row| {
                    let days = i64::from(days.value(row));
                    let micros = if matches!(to, T::Timestamp) {
                        self.zone.start_of_day(days)
                    } else {
                        datetime::midnight(days)
                    };
                    // Java throws here in every mode.
                    micros.map(Some).ok_or_else(|| {
                        EvalError::value(
                            ErrorCode::DatetimeOverflow,
                            "a date is out of the range of timestamps",
                        )
                    })
                })?;
                self.timestamps(values)
            }
            (from, T::Date) => {
                let micros = self.array.as_primitive::<TimestampMicrosecondType>();
                let zoned = matches!(from, T::Timestamp);
                Arc::new(micros.unary::<_, Date32Type>(|m| {
                    datetime::date_of(if zoned { self.zone.to_local(m) } else { m }) as i32
                }))
            }
            (T::Timestamp, _) => {
                let micros = self.array.as_primitive::<TimestampMicrosecondType>();
                self.timestamps(micros.unary(|m| self.zone.to_local(m)))
            }
            _ => {
                let micros = self.array.as_primitive::<TimestampMicrosecondType>();
                let values = self.build::<TimestampMicrosecondType>(|row| {
                    let local = micros.value(row);
                    self.zone
                        .to_utc(local)
                        .map(Some)
                        .ok_or_else(|| overflow(local))
                })?;
                self.timestamps(values)
            }
        })
    }

    /// Big-endian bytes of the integer.
    fn integers_to_bytes(&self) -> EvalResult {
        let width = match self.from {
            DataType::Byte => 1,
            DataType::Short => 2,
            DataType::Integer => 4,
            _ => 8,
        };
        let values = self.longs()?;
        let mut out = BytesBuilder::new(values.len());
        for row in 0..values.len() {
            if values.is_null(row) {
                out.push_null()?;
            } else {
                out.push(
                    values
                        .value(row)
                        .to_be_bytes()
                        .get(8 - width..)
                        .unwrap_or_default(),
                )?;
            }
        }
        Ok(Arc::new(out.finish_binary()))
    }

    /// Integers, booleans or microseconds as 64-bit integers.
    fn longs(&self) -> EvalResult<Int64Array> {
        Ok(arrow_cast::cast(self.array, &Arrow::Int64)?
            .as_primitive::<Int64Type>()
            .clone())
    }

    fn doubles(&self) -> EvalResult<Float64Array> {
        Ok(arrow_cast::cast(self.array, &Arrow::Float64)?
            .as_primitive::<Float64Type>()
            .clone())
    }

    fn numbers(&self) -> EvalResult {
        use DataType as T;
        Ok(match self.to {
            T::Byte => Arc::new(self.to_integer::<Int8Type>(
                f64::from(i8::MIN),
                f64::from(i8::MAX),
                |v| v as i8,
                |v| v as i32 as i8,
            )?),
            T::Short => Arc::new(self.to_integer::<Int16Type>(
                f64::from(i16::MIN),
                f64::from(i16::MAX),
                |v| v as i16,
                |v| v as i32 as i16,
            )?),
            T::Integer => Arc::new(self.to_integer::<Int32Type>(
                f64::from(i32::MIN),
                f64::from(i32::MAX),
                |v| v as i32,
                |v| v as i32,
            )?),
            T::Long => Arc::new(self.to_integer::<Int64Type>(
                i64::MIN as f64,
                i64::MAX as f64,
                |v| v,
                |v| v as i64,
            )?),
            T::Double => Arc::new(self.to_double()?),
            T::Float => {
                // An integer is rounded once, not through a double.
                if is_integral(self.from) {
                    arrow_cast::cast(self.array, &Arrow::Float32)?
                } else if let T::Decimal(_, scale) = self.from {
                    let values = self.array.as_primitive::<Decimal128Type>();
                    Arc::new(values.unary::<_, Float32Type>(|v| decimal_to_float(v, *scale)))
                } else {
                    Arc::new(self.to_double()?.unary::<_, Float32Type>(|v| v as f32))
                }
            }
            T::Decimal(precision, scale) => self.to_decimal(*precision, *scale)?,
            T::Timestamp => self.number_to_timestamp()?,
            _ => return Err(unexpected(self.array.data_type())),
        })
    }

    fn to_integer<T: ArrowPrimitiveType>(
        &self,
        low: f64,
        high: f64,
        wrap: impl Fn(i64) -> T::Native,
        truncate: impl Fn(f64) -> T::Native,
    ) -> EvalResult<PrimitiveArray<T>>
    where
        T::Native: TryFrom<i64>,
    {
        use DataType as T_;
        let legacy = self.mode == CastMode::Legacy;
        match self.from {
            T_::Float | T_::Double => {
                let values = self.doubles()?;
                self.build::<T>(|row| {
                    let value = values.value(row);
                    if legacy || (value.floor() <= high && value.ceil() >= low) {
                        return Ok(Some(truncate(value)));
                    }
                    self.none(|| {
                        let mut text = String::new();
                        number::write_double(&mut text, value);
                        self.overflow(text)
                    })
                })
            }
            T_::Decimal(precision, scale) => {
                let values = self.array.as_primitive::<Decimal128Type>();
                let unit = power_of_ten(u32::from(scale.unsigned_abs()));
                self.build::<T>(|row| {
                    let value = values.value(row);
                    let whole = value / unit;
                    if legacy {
                        return Ok(Some(wrap(whole as i64)));
                    }
                    // Spark casts decimals of more than 18 digits to small integers through a
                    // double, which may round up.
                    let fits = if *precision > 18 && high < 1e15 {
                        let double = decimal_to_double(value, *scale);
                        (double.floor() <= high && double.ceil() >= low).then(|| truncate(double))
                    } else {
                        i64::try_from(whole)
                            .ok()
                            .and_then(|v| T::Native::try_from(v).ok())
                    };
                    match fits {
                        Some(value) => Ok(Some(value)),
                        None => self.none(|| {
                            let mut text = String::new();
                            write_decimal(&mut text, value, *scale);
                            self.overflow(text)
                        }),
                    }
                })
            }
            _ => {
                let values = self.longs()?;
                let micros = matches!(self.from, T_::Timestamp);
                self.build::<T>(|row| {
                    let value = if micros {
                        values.value(row).div_euclid(MICROS_PER_SECOND)
                    } else {
                        values.value(row)
                    };
                    if legacy && !micros {
                        return Ok(Some(wrap(value)));
                    }
                    match T::Native::try_from(value) {
                        Ok(value) => Ok(Some(value)),
                        Err(_) => self.none(|| self.overflow(value)),
                    }
                })
            }
        }
    }

    fn to_double(&self) -> EvalResult<Float64Array> {
        Ok(match self.from {
            DataType::Decimal(_, scale) => self
                .array
                .as_primitive::<Decimal128Type>()
                .unary(|v| decimal_to_double(v, *scale)),
            DataType::Timestamp => self.longs()?.unary(|v| v as f64 / MICROS_PER_SECOND as f64),
            _ => self.doubles()?,
        })
    }

    fn to_decimal(&self, precision: u8, scale: i8) -> EvalResult {
        let values = match self.from {
            DataType::Decimal(_, from) => {
                let values = self.array.as_primitive::<Decimal128Type>();
                self.build::<Decimal128Type>(|row| {
                    let value = values.value(row);
                    match rescale(value, *from, scale).filter(|v| fits(*v, precision)) {
                        Some(value) => Ok(Some(value)),
                        None => self.none(|| {
                            let mut text = String::new();
                            write_decimal(&mut text, value, *from);
                            self.out_of_range(text)
                        }),
                    }
                })?
            }
            DataType::Float | DataType::Double => {
                let values = self.to_double()?;
                self.build::<Decimal128Type>(|row| {
                    let value = values.value(row);
                    let decimal = double_digits(value)
                        .and_then(|w| w.unscaled(scale, RoundingMode::HalfUp))
                        .filter(|v| fits(*v, precision));
                    match decimal {
                        Some(value) => Ok(Some(value)),
                        // Java has no decimal for these; Spark returns null in every mode.
                        None if !value.is_finite() => Ok(None),
                        None => self.none(|| {
                            let mut text = String::new();
                            number::write_double(&mut text, value);
                            self.out_of_range(text)
                        }),
                    }
                })?
            }
            _ => {
                let values = self.longs()?;
                // A timestamp is cast to its exact seconds.
                let from = if matches!(self.from, DataType::Timestamp) {
                    6
                } else {
                    0
                };
                self.build::<Decimal128Type>(|row| {
                    let value = values.value(row);
                    match rescale(i128::from(value), from, scale).filter(|v| fits(*v, precision)) {
                        Some(value) => Ok(Some(value)),
                        None => self.none(|| self.out_of_range(value)),
                    }
                })?
            }
        };
        self.decimals(values)
    }

    fn number_to_timestamp(&self) -> EvalResult {
        let values = match self.from {
            DataType::Float | DataType::Double => {
                let values = self.doubles()?;
                self.build::<TimestampMicrosecondType>(|row| {
                    let value = values.value(row);
                    let micros = value * MICROS_PER_SECOND as f64;
                    let text = || {
                        let mut text = String::new();
                        number::write_double(&mut text, value);
                        text
                    };
                    if !value.is_finite() {
                        return self.none(|| self.invalid_input(&text()));
                    }
                    // Legacy saturates, as Java's conversion does.
                    if self.mode != CastMode::Legacy
                        && !(micros.floor() <= i64::MAX as f64 && micros.ceil() >= i64::MIN as f64)
                    {
                        return self.none(|| self.overflow(text()));
                    }
                    Ok(Some(micros as i64))
                })?
            }
            DataType::Decimal(_, scale) => {
                let values = self.array.as_primitive::<Decimal128Type>();
                self.build::<TimestampMicrosecondType>(|row| {
                    Ok(Some(decimal_micros(values.value(row), *scale)))
                })?
            }
            DataType::Boolean => self.longs()?.unary(|v| v),
            // Java's `SECONDS.toMicros` saturates.
            _ => self.longs()?.unary(|v| v.saturating_mul(MICROS_PER_SECOND)),
        };
        Ok(self.timestamps(values))
    }
}

fn nullable(field: &FieldRef, needed: bool) -> FieldRef {
    Arc::new(
        field
            .as_ref()
            .clone()
            .with_nullable(field.is_nullable() || needed),
    )
}

/// Whether a list or map array uses all of its elements: those of a slice include elements of other
/// rows.
fn is_whole(offsets: &[i32], elements: &ArrayRef) -> bool {
    offsets.first() == Some(&0)
        && offsets
            .last()
            .is_some_and(|last| usize::try_from(*last) == Ok(elements.len()))
}

/// A list or map array in which nulls have no elements, and that has no elements of other rows.
fn compacted(array: &ArrayRef) -> EvalResult {
    let indices: UInt64Array = (0..array.len())
        .map(|row| array.is_valid(row).then_some(row as u64))
        .collect();
    Ok(arrow_select::take::take(array, &indices, None)?)
}

/// A string as a boolean.
fn truth(text: &str) -> Option<bool> {
    let trimmed = number::trim_blanks(text);
    let is = |words: [&str; 5]| words.iter().any(|w| trimmed.eq_ignore_ascii_case(w));
    if is(["t", "true", "y", "yes", "1"]) {
        Some(true)
    } else if is(["f", "false", "n", "no", "0"]) {
        Some(false)
    } else {
        None
    }
}

/// The microseconds of decimal seconds as Scala computes them: a product of 34 digits, then the low
/// 64 bits of its integer part.
fn decimal_micros(value: i128, scale: i8) -> i64 {
    let digits = value.unsigned_abs().checked_ilog10().map_or(0, |n| n + 1);
    let over = (digits + 6).saturating_sub(34);
    // The product ends in six zeros, so six digits may be dropped without loss.
    let value = if over > 6 {
        round_to(value, over - 6, RoundingMode::HalfEven)
    } else {
        value
    };
    let unit = power_of_ten(u32::from(scale.unsigned_abs()));
    let (whole, rest) = (value / unit, value % unit);
    let fraction = arrow_buffer::i256::from_i128(rest)
        .wrapping_mul(arrow_buffer::i256::from_i128(i128::from(MICROS_PER_SECOND)))
        .checked_div(arrow_buffer::i256::from_i128(unit))
        .and_then(arrow_buffer::i256::to_i128)
        .unwrap_or(0);
    (whole as i64)
        .wrapping_mul(MICROS_PER_SECOND)
        .wrapping_add(fraction as i64)
}

/// The nearest double of a decimal.
pub(crate) fn decimal_to_double(unscaled: i128, scale: i8) -> f64 {
    // Exact when both parts are exact: then one division rounds once.
    if unscaled.unsigned_abs() < (1 << 53) && (0..=22).contains(&scale) {
        return unscaled as f64 / 10_f64.powi(i32::from(scale));
    }
    format!("{unscaled}e-{scale}").parse().unwrap_or(f64::NAN)
}

fn decimal_to_float(unscaled: i128, scale: i8) -> f32 {
    format!("{unscaled}e-{scale}").parse().unwrap_or(f32::NAN)
}

/// Formats values of one array as strings.
enum CastFormatter<'a> {
    Longs(Int64Array),
    Double(Float64Array),
    Float(PrimitiveArray<Float32Type>),
    Decimal {
        values: Decimal128Array,
        scale: i8,
        plain: bool,
    },
    Boolean(BooleanArray),
    Date(PrimitiveArray<Date32Type>),
    Timestamp {
        values: PrimitiveArray<TimestampMicrosecondType>,
        zone: Option<&'a TimeZoneSpec>,
    },
    Text(ArrayRef),
    Bytes(ArrayRef),
    Nothing,
    List {
        items: NestedFormatter<'a>,
        offsets: Vec<i32>,
    },
    Map {
        keys: NestedFormatter<'a>,
        values: NestedFormatter<'a>,
        offsets: Vec<i32>,
    },
    Struct(Vec<NestedFormatter<'a>>),
}

/// A part of a nested value; nulls are written as `null`.
struct NestedFormatter<'a> {
    array: ArrayRef,
    writer: Box<CastFormatter<'a>>,
}

impl<'a> NestedFormatter<'a> {
    fn new(
        array: &ArrayRef,
        data_type: &DataType,
        mode: CastMode,
        zone: &'a TimeZoneSpec,
    ) -> EvalResult<Self> {
        Ok(Self {
            array: array.clone(),
            writer: Box::new(CastFormatter::new(array, data_type, mode, zone)?),
        })
    }

    fn write(&self, out: &mut String, row: usize) -> EvalResult<()> {
        if self.array.is_null(row) || matches!(*self.writer, CastFormatter::Nothing) {
            out.push_str("null");
            return Ok(());
        }
        /// Shorter values are not checked.
        const MUCH: usize = 1 << 20;
        if out.len() > MUCH {
            budget::reserve(out.len() as u64)?;
        }
        self.writer.write(out, row)
    }
}

impl<'a> CastFormatter<'a> {
    fn new(
        array: &ArrayRef,
        data_type: &DataType,
        mode: CastMode,
        zone: &'a TimeZoneSpec,
    ) -> EvalResult<Self> {
        use DataType as T;
        Ok(match data_type {
            T::Byte | T::Short | T::Integer | T::Long => Self::Longs(
                arrow_cast::cast(array, &Arrow::Int64)?
                    .as_primitive()
                    .clone(),
            ),
            T::Float => Self::Float(array.as_primitive().clone()),
            T::Double => Self::Double(array.as_primitive().clone()),
            T::Decimal(_, scale) => Self::Decimal {
                values: array.as_primitive().clone(),
                scale: *scale,
                plain: mode != CastMode::Legacy,
            },
            T::Boolean => Self::Boolean(array.as_boolean().clone()),
            T::Date => Self::Date(array.as_primitive().clone()),
            T::Timestamp => Self::Timestamp {
                values: array.as_primitive().clone(),
                zone: Some(zone),
            },
            T::TimestampNtz => Self::Timestamp {
                values: array.as_primitive().clone(),
                zone: None,
            },
            T::String => Self::Text(array.clone()),
            T::Binary => Self::Bytes(array.clone()),
            T::Void => Self::Nothing,
            T::Array(a) => {
                let list = array
                    .as_list_opt::<i32>()
                    .ok_or_else(|| unexpected(array.data_type()))?;
                Self::List {
                    items: NestedFormatter::new(list.values(), &a.element, mode, zone)?,
                    offsets: list.value_offsets().to_vec(),
                }
            }
            T::Map(m) => {
                let map = array
                    .as_map_opt()
                    .ok_or_else(|| unexpected(array.data_type()))?;
                Self::Map {
                    keys: NestedFormatter::new(map.keys(), &m.key, mode, zone)?,
                    values: NestedFormatter::new(map.values(), &m.value, mode, zone)?,
                    offsets: map.value_offsets().to_vec(),
                }
            }
            T::Struct(s) => {
                let parts = array
                    .as_struct_opt()
                    .ok_or_else(|| unexpected(array.data_type()))?;
                let fields = s
                    .fields
                    .iter()
                    .zip(parts.columns())
                    .map(|(f, column)| NestedFormatter::new(column, &f.data_type, mode, zone));
                Self::Struct(fields.collect::<EvalResult<_>>()?)
            }
            T::Variant | T::Spark(_) => return Err(unexpected(array.data_type())),
        })
    }

    fn write(&self, out: &mut String, row: usize) -> EvalResult<()> {
        use std::fmt::Write;
        match self {
            Self::Longs(a) => drop(write!(out, "{}", a.value(row))),
            Self::Double(a) => number::write_double(out, a.value(row)),
            Self::Float(a) => number::write_float(out, a.value(row)),
            Self::Decimal {
                values,
                scale,
                plain: true,
            } => write_decimal(out, values.value(row), *scale),
            Self::Decimal { values, scale, .. } => {
                number::write_decimal_scientific(out, values.value(row), *scale);
            }
            Self::Boolean(a) => out.push_str(if a.value(row) { "true" } else { "false" }),
            Self::Date(a) => datetime::write_date(out, i64::from(a.value(row))),
            Self::Timestamp { values, zone } => datetime::write_timestamp(
                out,
                zone.map_or(values.value(row), |z| z.to_local(values.value(row))),
            ),
            Self::Text(a) => out.push_str(StringColumn::new(a)?.get(row)),
            Self::Bytes(a) => {
                let bytes = BinaryColumn::new(a)
                    .ok_or_else(|| unexpected(a.data_type()))?
                    .get(row);
                out.push_str(std::str::from_utf8(bytes).map_err(|_| {
                    EvalError::value(
                        ErrorCode::NotUtf8,
                        "bytes that are not UTF-8 text cannot be cast to STRING",
                    )
                })?);
            }
            Self::Nothing => out.push_str("null"),
            Self::List { items, offsets } => {
                out.push('[');
                for (n, item) in range(offsets, row).enumerate() {
                    out.push_str(if n > 0 { ", " } else { "" });
                    items.write(out, item)?;
                }
                out.push(']');
            }
            Self::Map {
                keys,
                values,
                offsets,
            } => {
                out.push('{');
                for (n, entry) in range(offsets, row).enumerate() {
                    out.push_str(if n > 0 { ", " } else { "" });
                    keys.write(out, entry)?;
                    out.push_str(" -> ");
                    values.write(out, entry)?;
                }
                out.push('}');
            }
            Self::Struct(fields) => {
                out.push('{');
                for (n, field) in fields.iter().enumerate() {
                    out.push_str(if n > 0 { ", " } else { "" });
                    field.write(out, row)?;
                }
                out.push('}');
            }
        }
        Ok(())
    }
}

/// The elements of a row.
pub(crate) fn range(offsets: &[i32], row: usize) -> std::ops::Range<usize> {
    let at = |n: usize| {
        offsets
            .get(n)
            .copied()
            .and_then(|o| usize::try_from(o).ok())
            .unwrap_or(0)
    };
    at(row)..at(row + 1)
}
