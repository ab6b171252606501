//! Partition values: strings of the log -> typed Arrow arrays.
//!
//! Values repeat from file to file, so the last one parsed is kept. An empty string is null for
//! every type. `__HIVE_DEFAULT_PARTITION__`, which some writers put into the log, is null for types
//! that cannot hold this text; as a string or binary value it is the text, as in delta-spark and
//! delta-rs. (Hive's layout has no such value: a write of it is refused.)
//!
//! Protocol: "Partition Value Serialization".

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, BooleanBuilder, PrimitiveBuilder};
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimestampMicrosecondType,
};
use arrow_array::{Array, ArrayRef, NullArray, StringArray, StringViewArray};

use super::calendar::{MICROS_PER_DAY, TimeZoneSpec};
use super::schema::DataType;
use super::time;
use crate::error::{Error, Result, shown};

/// The representation of null in Hive's layout.
pub const HIVE_NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// Parses a column of partition values.
///
/// Nulls and empty strings become null. `zone` is the zone of timestamps without an offset.
///
/// ```
/// use arrow_array::{Array, Int32Array, StringViewArray};
/// use deltafast::protocol::calendar::TimeZoneSpec;
/// use deltafast::protocol::partition_value;
/// use deltafast::protocol::schema::DataType;
///
/// let values = StringViewArray::from(vec![Some("7"), Some(""), None]);
/// let parsed = partition_value::parse(&values, &DataType::Integer, TimeZoneSpec::UTC)?;
/// assert_eq!(parsed.as_ref(), &Int32Array::from(vec![Some(7), None, None]) as &dyn Array);
/// # Ok::<(), deltafast::error::Error>(())
/// ```
///
/// # Errors
/// [`Error::Corrupt`] names the first value that its type cannot hold.
pub fn parse(
    values: &StringViewArray,
    data_type: &DataType,
    zone: TimeZoneSpec,
) -> Result<ArrayRef> {
    let bad = |text: &str| {
        Error::corrupt(format!(
            "the partition value `{}` is not of type {data_type}",
            shown(text)
        ))
    };
    Ok(match data_type {
        DataType::String => Arc::new(
            values
                .iter()
                .map(|v| v.filter(|v| !v.is_empty()))
                .collect::<StringArray>(),
        ),
        DataType::Binary => {
            let mut out = BinaryBuilder::with_capacity(values.len(), 0);
            for value in values {
                match value.filter(|v| !v.is_empty()) {
                    Some(text) => out.append_value(binary(text)),
                    None => out.append_null(),
                }
            }
            Arc::new(out.finish())
        }
        DataType::Boolean => {
            let mut out = BooleanBuilder::with_capacity(values.len());
            for value in values {
                match value.filter(|v| !is_null(v)) {
                    None => out.append_null(),
                    Some(text) if text.eq_ignore_ascii_case("true") => out.append_value(true),
                    Some(text) if text.eq_ignore_ascii_case("false") => out.append_value(false),
                    Some(text) => return Err(bad(text)),
                }
            }
            Arc::new(out.finish())
        }
        DataType::Byte => primitive::<Int8Type>(values, |t| t.trim().parse().ok(), bad)?,
        DataType::Short => primitive::<Int16Type>(values, |t| t.trim().parse().ok(), bad)?,
        DataType::Integer => primitive::<Int32Type>(values, |t| t.trim().parse().ok(), bad)?,
        DataType::Long => primitive::<Int64Type>(values, |t| t.trim().parse().ok(), bad)?,
        DataType::Float => primitive::<Float32Type>(values, |t| t.trim().parse().ok(), bad)?,
        DataType::Double => primitive::<Float64Type>(values, |t| t.trim().parse().ok(), bad)?,
        DataType::Date => primitive::<Date32Type>(
            values,
            |t| time::parse_date(t.as_bytes()).or_else(|| date_of_timestamp(t)),
            bad,
        )?,
        DataType::Timestamp => with_type(
            primitive::<TimestampMicrosecondType>(
                values,
                |t| time::parse_timestamp(t.as_bytes(), zone),
                bad,
            )?,
            data_type,
        )?,
        DataType::TimestampNtz => primitive::<TimestampMicrosecondType>(
            values,
            |t| time::parse_timestamp_ntz(t.as_bytes()),
            bad,
        )?,
        DataType::Decimal(_, scale) => with_type(
            primitive::<Decimal128Type>(values, |t| decimal(t.trim(), *scale), bad)?,
            data_type,
        )?,
        DataType::Void => Arc::new(NullArray::new(values.len())),
        other => {
            return Err(Error::corrupt(format!(
                "a partition column cannot be of type {other}"
            )));
        }
    })
}

fn is_null(text: &str) -> bool {
    text.is_empty() || text == HIVE_NULL
}

fn date_of_timestamp(text: &str) -> Option<i32> {
    let wall = time::parse_timestamp_ntz(text.as_bytes())?;
    i32::try_from(wall.div_euclid(MICROS_PER_DAY)).ok()
}

/// Sets the zone, precision or scale of a primitive array to those of its Delta type.
fn with_type(array: ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    let data = array
        .to_data()
        .into_builder()
        .data_type(data_type.to_arrow(super::schema::StringLayout::Plain));
    Ok(arrow_array::make_array(data.build()?))
}

fn primitive<T: ArrowPrimitiveType>(
    values: &StringViewArray,
    parse: impl Fn(&str) -> Option<T::Native>,
    bad: impl Fn(&str) -> Error,
) -> Result<ArrayRef> {
    let mut out = PrimitiveBuilder::<T>::with_capacity(values.len());
    let mut last: Option<(&str, T::Native)> = None;
    for value in values {
        let Some(text) = value.filter(|v| !is_null(v)) else {
            out.append_null();
            continue;
        };
        let parsed = match last {
            Some((same, parsed)) if same == text => parsed,
            _ => parse(text).ok_or_else(|| bad(text))?,
        };
        last = Some((text, parsed));
        out.append_value(parsed);
    }
    Ok(Arc::new(out.finish()))
}

/// The unscaled value of a decimal string at `scale`; further digits must be zero.
#[must_use]
pub fn decimal(text: &str, scale: i8) -> Option<i128> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (negative, mantissa) = match mantissa.as_bytes().first()? {
        b'-' => (true, mantissa.get(1..)?),
        b'+' => (false, mantissa.get(1..)?),
        _ => (false, mantissa),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut unscaled: i128 = 0;
    for byte in whole.bytes().chain(fraction.bytes()) {
        if !byte.is_ascii_digit() {
            return None;
        }
        unscaled = unscaled
            .checked_mul(10)?
            .checked_add(i128::from(byte - b'0'))?;
    }
    let mut shift = i32::from(scale) - i32::try_from(fraction.len()).ok()? + exponent;
    if unscaled == 0 {
        return Some(0);
    }
    if !(-80..=80).contains(&shift) {
        return None;
    }
    while shift > 0 {
        unscaled = unscaled.checked_mul(10)?;
        shift -= 1;
    }
    while shift < 0 {
        if unscaled % 10 != 0 {
            return None;
        }
        unscaled /= 10;
        shift += 1;
    }
    Some(if negative { -unscaled } else { unscaled })
}

/// Binary values are strings whose characters are the bytes; a character beyond one byte represents
/// its UTF-8 bytes.
fn binary(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;

    fn column(values: &[Option<&str>]) -> StringViewArray {
        values.iter().copied().collect()
    }

    #[test]
    fn empty_is_null_for_every_type_and_hive_null_where_it_is_no_value() {
        for (name, nulls) in [
            ("string", 2),
            ("integer", 3),
            ("date", 3),
            ("timestamp", 3),
            ("boolean", 3),
            ("decimal(5,2)", 3),
            ("binary", 2),
            ("double", 3),
        ] {
            let array = parse(
                &column(&[None, Some(""), Some(HIVE_NULL)]),
                &DataType::from_name(name).unwrap(),
                TimeZoneSpec::UTC,
            )
            .unwrap();
            assert_eq!(array.null_count(), nulls, "{name}");
        }
    }

    #[test]
    fn values_of_a_wrong_form_are_named() {
        let error = parse(
            &column(&[Some("1"), Some("x1")]),
            &DataType::Integer,
            TimeZoneSpec::UTC,
        )
        .unwrap_err();
        assert!(
            error.to_string().contains("`x1` is not of type integer"),
            "{error}"
        );
    }

    #[test]
    fn decimals_keep_their_scale() {
        let array = parse(
            &column(&[Some("1.5"), Some("-0.25"), Some("1E+2")]),
            &DataType::Decimal(10, 2),
            TimeZoneSpec::UTC,
        )
        .unwrap();
        assert_eq!(
            array.as_primitive::<Decimal128Type>().values(),
            &[150, -25, 10_000]
        );
        assert_eq!(decimal("1.234", 2), None);
    }
}
