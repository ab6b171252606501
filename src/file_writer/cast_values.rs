//! Values of primitive types as those of a table's types, or an error with the row and the value
//! that does not survive: cast back, it would not be the same.
//!
//! Cost: an array of another type is read twice, and compared.

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Float64Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, BooleanArray, Date32Array, PrimitiveArray};
use arrow_cast::display::array_value_to_string;
use arrow_cast::{CastOptions, can_cast_types, cast, cast_with_options};
use arrow_ord::cmp::not_distinct;
use arrow_schema::{ArrowError, DataType as Arrow, TimeUnit};
use serde::Deserialize;
use std::fmt::Display;
use std::sync::Arc;

use crate::error::{Error, ErrorCode, Result, shown};
use crate::protocol::calendar::{MICROS_PER_DAY, TimeZoneSpec};
use crate::protocol::schema::{DataType, StringLayout};

/// The values that a table's columns take besides those of their own types.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoreAssignment {
    /// Numbers of other types, days for timestamps, and midnights for days.
    #[default]
    Exact,
    /// Also strings, binary values, booleans, and numbers for days and timestamps, as Arrow casts
    /// them.
    Convert,
}

/// How values are cast to a table's types.
#[derive(Debug, Clone, Copy)]
pub struct CastRule {
    /// The time zone of timestamps without one, and of days; if `None`, these are not cast to
    /// instants.
    pub zone: Option<TimeZoneSpec>,
    /// What is cast.
    pub assignment: StoreAssignment,
    /// The position in the data of the array's first row, for messages; `None` in lists and maps.
    pub first_row: Option<u64>,
}

impl Default for CastRule {
    fn default() -> Self {
        Self {
            zone: Some(TimeZoneSpec::UTC),
            assignment: StoreAssignment::Exact,
            first_row: None,
        }
    }
}

impl CastRule {
    /// The rule with the time zone of this name, UTC if `None`, no time zone if empty.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a time zone that does not exist.
    pub fn new(time_zone: Option<&str>, assignment: StoreAssignment) -> Result<Self> {
        let zone = match time_zone {
            None => Some(TimeZoneSpec::UTC),
            Some("") => None,
            Some(name) => Some(TimeZoneSpec::parse(name)?),
        };
        Ok(Self {
            zone,
            assignment,
            first_row: None,
        })
    }

    /// The rule for rows of which this is the first.
    #[must_use]
    pub fn at_row(self, first_row: u64) -> Self {
        Self {
            first_row: Some(first_row),
            ..self
        }
    }

    /// The rule for values of lists and maps, whose positions are not those of rows.
    #[must_use]
    pub(super) fn without_rows(self) -> Self {
        Self {
            first_row: None,
            ..self
        }
    }
}

/// The path of a field, for messages.
pub(super) enum FieldPath<'a> {
    Column(&'a str),
    Field(&'a FieldPath<'a>, &'a str),
}

impl FieldPath<'_> {
    pub(super) fn dotted_path(&self) -> String {
        match self {
            Self::Column(name) => (*name).to_owned(),
            Self::Field(parent, name) => format!("{}.{name}", parent.dotted_path()),
        }
    }

    pub(super) fn mismatch(&self, expected: &DataType, found: &Arrow) -> Error {
        Error::schema_mismatch(
            "the data does not have the table's type",
            expected.to_string(),
            found.to_string(),
        )
        .with_code(ErrorCode::TypeMismatch, &[])
        .at_column(self.dotted_path())
    }

    pub(super) fn value(&self, reason: impl Display, expected: &DataType, found: &Arrow) -> Error {
        Error::schema_mismatch(
            format!("a value cannot be kept without a loss: {reason}"),
            expected.to_string(),
            found.to_string(),
        )
        .with_code(ErrorCode::ValueNotRepresentable, &[("reason", &reason)])
        .at_column(self.dotted_path())
    }
}

/// Gives null for values that cannot be cast.
const NULL_IF_INVALID: CastOptions<'static> = CastOptions {
    safe: true,
    format_options: arrow_cast::display::FormatOptions::new(),
};

/// The time zone UTC as Arrow reads it without a database of time zones.
const UTC_OFFSET: &str = "+00:00";

/// Fails for values that cannot be cast, with a message of Arrow.
const STRICT: CastOptions<'static> = CastOptions {
    safe: false,
    ..NULL_IF_INVALID
};

/// `array` as the table's primitive type.
///
/// # Errors
/// [`Error::SchemaMismatch`] for types that are not cast, and for values that do not survive.
pub(super) fn cast_value(
    array: &ArrayRef,
    to: &DataType,
    path: &FieldPath<'_>,
    rule: CastRule,
) -> Result<ArrayRef> {
    ValueCast {
        to,
        wanted: to.to_arrow(StringLayout::Plain),
        path,
        rule,
    }
    .cast(array)
}

/// A cast to one column or field.
struct ValueCast<'a> {
    to: &'a DataType,
    wanted: Arrow,
    path: &'a FieldPath<'a>,
    rule: CastRule,
}

impl ValueCast<'_> {
    fn cast(&self, array: &ArrayRef) -> Result<ArrayRef> {
        let found = array.data_type();
        match (&self.wanted, found) {
            (wanted, found) if wanted == found => Ok(Arc::clone(array)),
            (Arrow::Utf8, Arrow::LargeUtf8 | Arrow::Utf8View)
            | (Arrow::Binary, Arrow::LargeBinary | Arrow::BinaryView) => Ok(Arc::clone(array)),
            (Arrow::Binary, Arrow::FixedSizeBinary(_)) => self.exact(array, &self.wanted),
            (wanted, found) if wanted.is_integer() && found.is_integer() => self.integers(array),
            (wanted, found) if wanted.is_numeric() && found.is_numeric() => {
                self.exact(array, &self.wanted)
            }
            (Arrow::Date32, Arrow::Date64) => self.exact(array, &Arrow::Date32),
            (Arrow::Date32, Arrow::Timestamp(unit, zone)) => {
                self.days(&self.micros(array, *unit)?, zone.is_some(), array)
            }
            (Arrow::Timestamp(..), Arrow::Date32) => self.midnights(array),
            (Arrow::Timestamp(..), Arrow::Date64) => {
                self.midnights(&self.exact(array, &Arrow::Date32)?)
            }
            (Arrow::Timestamp(_, to_zone), Arrow::Timestamp(unit, zone))
                if zone.is_some() || to_zone.is_none() || self.rule.zone.is_some() =>
            {
                let micros = self.micros(array, *unit)?;
                match (to_zone, zone) {
                    (Some(_), None) => self.instants(&micros, array),
                    (None, Some(_)) if self.rule.assignment == StoreAssignment::Exact => {
                        Err(self.path.mismatch(self.to, found))
                    }
                    _ => Ok(Arc::new(micros.with_timezone_opt(to_zone.clone()))),
                }
            }
            _ if self.rule.assignment == StoreAssignment::Convert => self.converted(array),
            _ => Err(self.path.mismatch(self.to, found)),
        }
    }

    /// The casts of [`StoreAssignment::Convert`].
    fn converted(&self, array: &ArrayRef) -> Result<ArrayRef> {
        let found = array.data_type();
        let is_text = matches!(found, Arrow::Utf8 | Arrow::LargeUtf8 | Arrow::Utf8View);
        match &self.wanted {
            Arrow::Boolean if found.is_numeric() => self.exact(array, &self.wanted),
            wanted if wanted.is_numeric() && *found == Arrow::Boolean => {
                self.exact(array, &self.wanted)
            }
            Arrow::Utf8 if !found.is_nested() => match found {
                Arrow::Timestamp(unit, zone) => {
                    let zone = zone.as_ref().map(|_| UTC_OFFSET);
                    let micros = self.micros(array, *unit)?.with_timezone_opt(zone);
                    self.valid(&(Arc::new(micros) as ArrayRef), &self.wanted)
                }
                Arrow::Date64 => self.valid(&self.exact(array, &Arrow::Date32)?, &self.wanted),
                Arrow::FixedSizeBinary(_) => {
                    self.valid(&cast(array, &Arrow::Binary)?, &self.wanted)
                }
                _ => self.valid(array, &self.wanted),
            },
            Arrow::Binary if is_text => Ok(cast(&cast(array, &Arrow::Utf8)?, &Arrow::Binary)?),
            Arrow::Date32 if is_text => {
                let naive = Arrow::Timestamp(TimeUnit::Microsecond, None);
                let micros = self.valid(array, &naive)?;
                self.days(micros.as_primitive(), false, array)
            }
            Arrow::Decimal128(precision, scale) if is_text => {
                // More digits than the column has would be rounded.
                let digits = Arrow::Decimal128(38, 38 - (*precision as i8 - scale));
                self.exact(&self.valid(array, &digits)?, &self.wanted)
            }
            Arrow::Timestamp(unit, Some(_)) if is_text => {
                let instants = Arrow::Timestamp(*unit, Some(UTC_OFFSET.into()));
                Ok(cast(&self.valid(array, &instants)?, &self.wanted)?)
            }
            _ if is_text => self.valid(array, &self.wanted),
            Arrow::Date32
                if matches!(
                    found,
                    Arrow::Int32 | Arrow::Int64 | Arrow::UInt32 | Arrow::UInt64
                ) =>
            {
                Ok(cast(&self.exact(array, &Arrow::Int32)?, &self.wanted)?)
            }
            Arrow::Int32 | Arrow::Int64 if matches!(found, Arrow::Date32 | Arrow::Date64) => {
                let days = self.exact(array, &Arrow::Date32)?;
                Ok(cast(&cast(&days, &Arrow::Int32)?, &self.wanted)?)
            }
            Arrow::Timestamp(..) if found.is_numeric() => {
                Ok(cast(&self.exact(array, &Arrow::Int64)?, &self.wanted)?)
            }
            Arrow::Int64 | Arrow::Float32 | Arrow::Float64 => match found {
                Arrow::Timestamp(unit, _) => {
                    let micros: ArrayRef = Arc::new(self.micros(array, *unit)?);
                    self.exact(&cast(&micros, &Arrow::Int64)?, &self.wanted)
                }
                _ => Err(self.path.mismatch(self.to, found)),
            },
            _ => Err(self.path.mismatch(self.to, found)),
        }
    }

    /// Integers of another width.
    fn integers(&self, array: &ArrayRef) -> Result<ArrayRef> {
        cast_with_options(array, &self.wanted, &STRICT).or_else(|error| {
            let reason = arrow_message(error);
            let valid = cast_with_options(array, &self.wanted, &NULL_IF_INVALID)?;
            let error = self.lost(array, first_null(array, &valid), &reason);
            Err(error.with_code(ErrorCode::IntegerOutOfRange, &[("reason", &reason)]))
        })
    }

    /// `array` as another type; every value, cast back, is the same.
    fn exact(&self, array: &ArrayRef, wanted: &Arrow) -> Result<ArrayRef> {
        let found = array.data_type();
        if !can_cast_types(found, wanted) {
            return Err(self.path.mismatch(self.to, found));
        }
        let out = cast_with_options(array, wanted, &NULL_IF_INVALID)?;
        let back = cast_with_options(&out, found, &NULL_IF_INVALID)?;
        match first_difference(array, &back)? {
            None => Ok(out),
            Some(row) => Err(self.lost(array, Some(row), "it would be another value")),
        }
    }

    /// `array` as another type that has a value for each of its values.
    fn valid(&self, array: &ArrayRef, wanted: &Arrow) -> Result<ArrayRef> {
        let found = array.data_type();
        if !can_cast_types(found, wanted) {
            return Err(self.path.mismatch(self.to, found));
        }
        cast_with_options(array, wanted, &STRICT).or_else(|error| {
            let valid = cast_with_options(array, wanted, &NULL_IF_INVALID)?;
            Err(self.lost(array, first_null(array, &valid), &arrow_message(error)))
        })
    }

    /// Microseconds of a timestamp of any unit.
    fn micros(
        &self,
        array: &ArrayRef,
        unit: TimeUnit,
    ) -> Result<PrimitiveArray<TimestampMicrosecondType>> {
        let raw = cast(array, &Arrow::Int64)?;
        let convert = |value: i64| match unit {
            TimeUnit::Second => value.checked_mul(1_000_000),
            TimeUnit::Millisecond => value.checked_mul(1000),
            TimeUnit::Microsecond => Some(value),
            TimeUnit::Nanosecond => (value % 1000 == 0).then_some(value / 1000),
        };
        let reason = if unit == TimeUnit::Nanosecond {
            "a timestamp has nanoseconds, round it to microseconds first"
        } else {
            "a timestamp is out of range"
        };
        self.each(raw.as_primitive::<Int64Type>(), array, convert, reason)
    }

    /// The instants of local times.
    fn instants(
        &self,
        wall: &PrimitiveArray<TimestampMicrosecondType>,
        array: &ArrayRef,
    ) -> Result<ArrayRef> {
        let zone = self
            .rule
            .zone
            .ok_or_else(|| self.path.mismatch(self.to, array.data_type()))?;
        let instants = if zone == TimeZoneSpec::UTC {
            wall.clone()
        } else {
            self.each(
                wall,
                array,
                |wall| zone.to_utc(wall),
                "a timestamp is out of range",
            )?
        };
        Ok(Arc::new(instants.with_timezone("UTC")))
    }

    /// The timestamps at which days begin.
    fn midnights(&self, days: &ArrayRef) -> Result<ArrayRef> {
        let whole = cast(&cast(days, &Arrow::Int32)?, &Arrow::Int64)?;
        let reason = "a date is out of the range of microseconds";
        let midnight = |day: i64| day.checked_mul(MICROS_PER_DAY);
        let wall: PrimitiveArray<TimestampMicrosecondType> =
            self.each(whole.as_primitive::<Int64Type>(), days, midnight, reason)?;
        match &self.wanted {
            Arrow::Timestamp(_, Some(_)) => self.instants(&wall, days),
            _ => Ok(Arc::new(wall)),
        }
    }

    /// The days of timestamps that are midnights.
    fn days(
        &self,
        micros: &PrimitiveArray<TimestampMicrosecondType>,
        has_zone: bool,
        array: &ArrayRef,
    ) -> Result<ArrayRef> {
        let zone = match self.rule.zone {
            _ if !has_zone => TimeZoneSpec::UTC,
            Some(zone) => zone,
            None => return Err(self.path.mismatch(self.to, array.data_type())),
        };
        let day = |micros: i64| {
            let wall = zone.to_local(micros);
            let days = i32::try_from(wall.div_euclid(MICROS_PER_DAY)).ok();
            days.filter(|_| wall.rem_euclid(MICROS_PER_DAY) == 0)
        };
        let days: Date32Array =
            self.each::<_, Date32Type>(micros, array, day, "a date has a time of day")?;
        Ok(Arc::new(days))
    }

    /// Converts each value; `array` has the values as they were given.
    fn each<F, T>(
        &self,
        values: &PrimitiveArray<F>,
        array: &ArrayRef,
        convert: impl Fn(F::Native) -> Option<T::Native>,
        reason: &str,
    ) -> Result<PrimitiveArray<T>>
    where
        F: arrow_array::ArrowPrimitiveType,
        T: arrow_array::ArrowPrimitiveType,
    {
        values
            .try_unary(|value| convert(value).ok_or(()))
            .map_err(|()| {
                let wrong = |value: Option<_>| value.is_some_and(|v| convert(v).is_none());
                self.lost(array, values.iter().position(wrong), reason)
            })
    }

    /// The error for a value that does not survive.
    fn lost(&self, array: &ArrayRef, row: Option<usize>, reason: &str) -> Error {
        let value = row.and_then(|row| array_value_to_string(array.as_ref(), row).ok());
        let shown = value.map_or_else(String::new, |value| format!(": {}", shown(&value)));
        let at = match (self.rule.first_row, row) {
            (Some(first), Some(row)) => format!(" in row {}", first + row as u64 + 1),
            _ => String::new(),
        };
        self.path
            .value(format!("{reason}{at}{shown}"), self.to, array.data_type())
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

/// The first row that is null in `out` alone.
fn first_null(array: &ArrayRef, out: &ArrayRef) -> Option<usize> {
    if out.null_count() == array.logical_null_count() {
        return None;
    }
    (0..array.len()).find(|row| array.is_valid(*row) && out.is_null(*row))
}

/// The first row in which two arrays of a type differ; `NaN` equals itself, and zeros are equal.
fn first_difference(a: &ArrayRef, b: &ArrayRef) -> Result<Option<usize>> {
    let same: BooleanArray = if a.data_type().is_floating() {
        let (a, b) = (cast(a, &Arrow::Float64)?, cast(b, &Arrow::Float64)?);
        let (a, b) = (
            a.as_primitive::<Float64Type>(),
            b.as_primitive::<Float64Type>(),
        );
        let pairs = a.iter().zip(b);
        pairs
            .map(|pair| match pair {
                (Some(a), Some(b)) => Some(a == b || (a.is_nan() && b.is_nan())),
                (a, b) => Some(a.is_none() && b.is_none()),
            })
            .collect()
    } else {
        not_distinct(a, b)?
    };
    Ok(same.values().iter().position(|same| !same))
}
