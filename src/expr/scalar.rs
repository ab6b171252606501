//! One value of a primitive type, ordered as Spark orders values.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Decimal128Array, Float64Array, Int64Array,
    StringArray, new_null_array,
};
use arrow_schema::{DataType as Arrow, TimeUnit};
use serde_json::Value;

use crate::error::{Error, Result, shown};
use crate::expr::text::number;
use crate::protocol::schema::{DataType, StringLayout};

/// A value; the tree holds its type separately.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar {
    /// Null of any type.
    Null,
    /// A boolean.
    Boolean(bool),
    /// Any integer, the days of a date, the microseconds of a timestamp.
    Long(i64),
    /// A double, or a float widened.
    Double(f64),
    /// The unscaled value of a decimal.
    Decimal(i128),
    /// A string.
    Text(Arc<str>),
    /// A binary value.
    Bytes(Arc<[u8]>),
}

/// Spark's order of doubles: `-0.0` equals `0.0`, `NaN` equals itself and is the greatest.
#[must_use]
pub fn compare_doubles(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b)
        .unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

impl Scalar {
    /// A value of an array in one of the plain layouts; `None` for types that are not scalar.
    #[must_use]
    pub fn of(array: &ArrayRef, row: usize) -> Option<Self> {
        if array.is_null(row) {
            return Some(Self::Null);
        }
        Some(match array.data_type() {
            Arrow::Boolean => Self::Boolean(array.as_boolean().value(row)),
            Arrow::Int8 => Self::Long(array.as_primitive::<Int8Type>().value(row).into()),
            Arrow::Int16 => Self::Long(array.as_primitive::<Int16Type>().value(row).into()),
            Arrow::Int32 => Self::Long(array.as_primitive::<Int32Type>().value(row).into()),
            Arrow::Int64 => Self::Long(array.as_primitive::<Int64Type>().value(row)),
            Arrow::Float32 => Self::Double(array.as_primitive::<Float32Type>().value(row).into()),
            Arrow::Float64 => Self::Double(array.as_primitive::<Float64Type>().value(row)),
            Arrow::Decimal128(..) => {
                Self::Decimal(array.as_primitive::<Decimal128Type>().value(row))
            }
            Arrow::Date32 => Self::Long(array.as_primitive::<Date32Type>().value(row).into()),
            Arrow::Timestamp(TimeUnit::Microsecond, _) => {
                Self::Long(array.as_primitive::<TimestampMicrosecondType>().value(row))
            }
            Arrow::Utf8 => Self::Text(array.as_string::<i32>().value(row).into()),
            Arrow::Binary => Self::Bytes(array.as_binary::<i32>().value(row).into()),
            _ => return None,
        })
    }

    /// Whether it is null.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The order of two values of the same type; `None` when one is null or the types differ.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        Some(match (self, other) {
            (Self::Boolean(a), Self::Boolean(b)) => a.cmp(b),
            (Self::Long(a), Self::Long(b)) => a.cmp(b),
            (Self::Double(a), Self::Double(b)) => compare_doubles(*a, *b),
            (Self::Decimal(a), Self::Decimal(b)) => a.cmp(b),
            (Self::Text(a), Self::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Self::Bytes(a), Self::Bytes(b)) => a.cmp(b),
            _ => return None,
        })
    }

    /// Reads the value of a literal of a type.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the JSON value is not of the type.
    pub fn from_json(value: &Value, data_type: &DataType) -> Result<Self> {
        let wrong = || {
            Error::invalid(format!(
                "expression tree: {} is not a literal of type {data_type}",
                shown(&value.to_string())
            ))
        };
        if value.is_null() {
            return Ok(Self::Null);
        }
        let real = || match value {
            Value::Number(n) => n.as_f64(),
            Value::String(s) => match s.as_str() {
                "NaN" => Some(f64::NAN),
                "Infinity" => Some(f64::INFINITY),
                "-Infinity" => Some(f64::NEG_INFINITY),
                _ => None,
            },
            _ => None,
        };
        if let Some(range) = data_type.integer_range() {
            let integer = value.as_i64().filter(|integer| range.contains(integer));
            return integer.map(Self::Long).ok_or_else(wrong);
        }
        match data_type {
            DataType::Boolean => value.as_bool().map(Self::Boolean).ok_or_else(wrong),
            DataType::Float => real()
                .map(|d| Self::Double(f64::from(d as f32)))
                .ok_or_else(wrong),
            DataType::Double => real().map(Self::Double).ok_or_else(wrong),
            DataType::Decimal(precision, scale) => {
                let written = value
                    .as_str()
                    .and_then(number::DecimalDigits::parse)
                    .ok_or_else(wrong)?;
                let exact = written
                    .unscaled(*scale, number::RoundingMode::Down)
                    .filter(|v| number::fits(*v, *precision));
                exact
                    .filter(|_| written.fits_scale(*scale))
                    .map(Self::Decimal)
                    .ok_or_else(wrong)
            }
            DataType::String => value
                .as_str()
                .map(|s| Self::Text(s.into()))
                .ok_or_else(wrong),
            DataType::Binary => value
                .as_str()
                .and_then(unhex)
                .map(|b| Self::Bytes(b.into()))
                .ok_or_else(wrong),
            _ => Err(wrong()),
        }
    }

    /// The inverse of [`Scalar::from_json`].
    #[must_use]
    pub fn to_json(&self, data_type: &DataType) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Boolean(value) => Value::from(*value),
            Self::Long(value) => Value::from(*value),
            Self::Double(value) if value.is_nan() => Value::from("NaN"),
            Self::Double(value) if value.is_infinite() => Value::from(if *value > 0.0 {
                "Infinity"
            } else {
                "-Infinity"
            }),
            Self::Double(value) => Value::from(*value),
            Self::Decimal(value) => {
                let scale = match data_type {
                    DataType::Decimal(_, scale) => *scale,
                    _ => 0,
                };
                let mut digits = String::new();
                number::write_decimal(&mut digits, *value, scale);
                Value::from(digits)
            }
            Self::Text(value) => Value::from(value.as_ref()),
            Self::Bytes(bytes) => {
                let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                Value::from(digits)
            }
        }
    }

    /// The value as an array of one row, in the plain layout.
    ///
    /// # Errors
    /// [`Error::Internal`] if the value is not of the type.
    pub fn to_array(&self, data_type: &DataType) -> Result<ArrayRef> {
        array_of(std::slice::from_ref(self), data_type)
    }
}

/// The values as an array in the plain layout, nulls included.
///
/// # Errors
/// [`Error::Internal`] if a value is not of the type.
pub(crate) fn array_of(values: &[Scalar], data_type: &DataType) -> Result<ArrayRef> {
    if values.iter().all(Scalar::is_null) {
        return Ok(new_null_array(
            &data_type.to_arrow(StringLayout::Plain),
            values.len(),
        ));
    }
    PlainValues::new(values, data_type)?.into_array(data_type)
}

/// The values that are not null as an array in the plain layout, in Spark's order, each once.
///
/// Cost: one sort of plain values, so that a list of many is not an array for each of them.
///
/// # Errors
/// [`Error::Internal`] if a value is not of the type.
pub(crate) fn sorted_array(values: &[Scalar], data_type: &DataType) -> Result<ArrayRef> {
    PlainValues::new(values, data_type)?
        .sorted()
        .into_array(data_type)
}

/// Values of one type without the tag of each.
enum PlainValues<'a> {
    Booleans(Vec<Option<bool>>),
    Longs(Vec<Option<i64>>),
    Doubles(Vec<Option<f64>>),
    Decimals(Vec<Option<i128>>),
    Texts(Vec<Option<&'a str>>),
    Bytes(Vec<Option<&'a [u8]>>),
}

impl<'a> PlainValues<'a> {
    fn new(values: &'a [Scalar], data_type: &DataType) -> Result<Self> {
        macro_rules! values_of {
            ($variant:ident, $value:ident => $plain:expr) => {
                values
                    .iter()
                    .map(|value| match value {
                        Scalar::Null => Ok(None),
                        Scalar::$variant($value) => Ok(Some($plain)),
                        _ => Err(not_of_type(data_type)),
                    })
                    .collect::<Result<Vec<_>>>()
            };
        }
        Ok(match data_type {
            DataType::Boolean => Self::Booleans(values_of!(Boolean, v => *v)?),
            _ if data_type.integer_range().is_some() => Self::Longs(values_of!(Long, v => *v)?),
            DataType::Float | DataType::Double => Self::Doubles(values_of!(Double, v => *v)?),
            DataType::Decimal(..) => Self::Decimals(values_of!(Decimal, v => *v)?),
            DataType::String => Self::Texts(values_of!(Text, v => v.as_ref())?),
            DataType::Binary => Self::Bytes(values_of!(Bytes, v => v.as_ref())?),
            _ => return Err(not_of_type(data_type)),
        })
    }

    /// The values that are not null in Spark's order, each once.
    fn sorted(self) -> Self {
        match self {
            Self::Booleans(values) => Self::Booleans(ordered(values)),
            Self::Longs(values) => Self::Longs(ordered(values)),
            Self::Doubles(mut values) => {
                values.retain(Option::is_some);
                let compare = |a: &Option<f64>, b: &Option<f64>| {
                    compare_doubles(a.unwrap_or_default(), b.unwrap_or_default())
                };
                values.sort_unstable_by(compare);
                values.dedup_by(|a, b| compare(a, b).is_eq());
                Self::Doubles(values)
            }
            Self::Decimals(values) => Self::Decimals(ordered(values)),
            Self::Texts(values) => Self::Texts(ordered(values)),
            Self::Bytes(values) => Self::Bytes(ordered(values)),
        }
    }

    fn into_array(self, data_type: &DataType) -> Result<ArrayRef> {
        let values: ArrayRef = match (self, data_type) {
            (Self::Booleans(values), _) => Arc::new(BooleanArray::from(values)),
            (Self::Longs(values), _) => Arc::new(Int64Array::from(values)),
            (Self::Doubles(values), _) => Arc::new(Float64Array::from(values)),
            (Self::Decimals(values), DataType::Decimal(precision, scale)) => Arc::new(
                Decimal128Array::from(values).with_precision_and_scale(*precision, *scale)?,
            ),
            (Self::Decimals(_), _) => return Err(not_of_type(data_type)),
            (Self::Texts(values), _) => Arc::new(StringArray::from(values)),
            (Self::Bytes(values), _) => Arc::new(BinaryArray::from(values)),
        };
        let strict = arrow_cast::CastOptions {
            safe: false,
            ..Default::default()
        };
        let wanted = data_type.to_arrow(StringLayout::Plain);
        Ok(arrow_cast::cast_with_options(&values, &wanted, &strict)?)
    }
}

fn not_of_type(data_type: &DataType) -> Error {
    Error::internal(format!("a literal does not have its type {data_type}"))
}

fn ordered<T: Ord>(mut values: Vec<Option<T>>) -> Vec<Option<T>> {
    values.retain(Option::is_some);
    values.sort_unstable();
    values.dedup();
    values
}

/// Bytes of a hex string of even length.
fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits
        .chunks_exact(2)
        .map(|pair| match pair {
            [high, low] => Some((hex_digit(*high)? << 4) | hex_digit(*low)?),
            _ => None,
        })
        .collect()
}

/// Value of a hex digit.
#[must_use]
pub fn hex_digit(byte: u8) -> Option<u8> {
    (byte as char).to_digit(16).map(|d| d as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_is_greatest_and_equal_to_itself_and_zeros_are_equal() {
        assert_eq!(compare_doubles(f64::NAN, f64::INFINITY), Ordering::Greater);
        assert_eq!(compare_doubles(-f64::NAN, f64::NAN), Ordering::Equal);
        assert_eq!(
            compare_doubles(f64::NEG_INFINITY, -f64::NAN),
            Ordering::Less
        );
        assert_eq!(compare_doubles(-0.0, 0.0), Ordering::Equal);
    }

    #[test]
    fn a_literal_that_is_not_of_its_type_is_refused() {
        for (json, data_type) in [
            ("128", DataType::Byte),
            ("\"1\"", DataType::Integer),
            ("1.5", DataType::Long),
            ("\"1.234\"", DataType::Decimal(10, 2)),
            ("\"123456789.00\"", DataType::Decimal(10, 2)),
            ("\"abc\"", DataType::Binary),
            ("\"inf\"", DataType::Double),
            ("[1]", DataType::String),
        ] {
            let value: Value = serde_json::from_str(json).unwrap();
            assert!(
                matches!(
                    Scalar::from_json(&value, &data_type),
                    Err(Error::Invalid { .. })
                ),
                "{json}"
            );
        }
        let value: Value = serde_json::from_str("\"12.3\"").unwrap();
        assert_eq!(
            Scalar::from_json(&value, &DataType::Decimal(10, 2)).unwrap(),
            Scalar::Decimal(1230)
        );
    }
}
