//! Functions of dates and timestamps, in the session's zone.
//!
//! Dates are day numbers, timestamps microseconds; fields come from `protocol::calendar`. Java's
//! `ZonedDateTime` keeps the offset in force through arithmetic in an overlap; so do these
//! functions.

use std::fmt::Write;
use std::sync::Arc;

use arrow_array::Array;
use arrow_array::builder::PrimitiveBuilder;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimestampMicrosecondType,
};
use arrow_schema::DataType as Arrow;

use crate::error::{Error, ErrorCode, Result, shown};
use crate::expr::eval::elementwise::{map_with, zip_with};
use crate::expr::eval::error::{EvalError, EvalResult, unexpected};
use crate::expr::eval::function_call::FunctionCall;
use crate::expr::eval::value::{BytesBuilder, StringArg};
use crate::expr::function::Function;
use crate::expr::scalar::Scalar;
use crate::expr::text::number::power_of_ten;
use crate::expr::tree::Expr;
use crate::protocol::calendar::{
    MICROS_PER_DAY, MICROS_PER_SECOND, SECONDS_PER_DAY, TimeZoneSpec, add_months, checked_days,
    civil, day_of_year, days_from_civil, days_in_month, iso_week, iso_weekday, split_days,
};
use crate::protocol::schema::DataType;

/// Refuses calls whose literal arguments need a feature that the core does not have.
pub(crate) fn check(function: Function, args: &[Expr]) -> Result<()> {
    match (function, args) {
        (
            Function::DateFormat | Function::FromUnixtime,
            [
                _,
                Expr::Literal {
                    value: Scalar::Text(pattern),
                    ..
                },
            ],
        ) => DateTimePattern::parse(pattern).map(|_| ()),
        (
            Function::DateFormat | Function::FromUnixtime,
            [
                _,
                Expr::Literal {
                    value: Scalar::Null,
                    ..
                },
            ]
            | [_],
        ) => Ok(()),
        (Function::DateFormat | Function::FromUnixtime, _) => Err(Error::unsupported(format!(
            "`{}` with a pattern that is not a literal is not supported by the core",
            function.name()
        ))),
        _ => Ok(()),
    }
}

fn out_of_range(what: &str) -> EvalError {
    EvalError::value(
        ErrorCode::DatetimeOverflow,
        format!("{what} is out of range"),
    )
}

/// Days and microseconds within the day, by row.
type WallClocks<'a> = Box<dyn Fn(usize) -> Option<(i64, i64)> + 'a>;

/// The local time of the first argument by row, as days and microseconds within the day.
fn wall_clocks<'a>(call: &'a FunctionCall<'_>) -> EvalResult<WallClocks<'a>> {
    let operand = call.arg(0)?;
    Ok(match call.arg_type(0)? {
        DataType::Date => {
            let days = operand.primitive::<Date32Type>()?;
            Box::new(move |row| {
                let index = operand.row(row);
                days.is_valid(index)
                    .then(|| (i64::from(days.value(index)), 0))
            })
        }
        data_type => {
            let zone = if matches!(data_type, DataType::Timestamp) {
                call.settings.zone
            } else {
                TimeZoneSpec::UTC
            };
            let micros = operand.primitive::<TimestampMicrosecondType>()?;
            Box::new(move |row| {
                let index = operand.row(row);
                micros
                    .is_valid(index)
                    .then(|| split_days(zone.to_local(micros.value(index))))
            })
        }
    })
}

/// YEAR, MONTH ... SECOND.
pub(crate) fn field(call: &FunctionCall<'_>) -> EvalResult {
    let clock = wall_clocks(call)?;
    let mut out = PrimitiveBuilder::<Int32Type>::with_capacity(call.rows);
    for row in 0..call.rows {
        out.append_option(clock(row).map(|(days, micros)| {
            let seconds = micros / MICROS_PER_SECOND;
            (match call.function {
                Function::Year => civil(days).year,
                Function::Month => i64::from(civil(days).month),
                Function::Day => i64::from(civil(days).day),
                Function::Quarter => i64::from((civil(days).month - 1) / 3 + 1),
                Function::DayOfWeek => iso_weekday(days) % 7 + 1,
                Function::Weekday => iso_weekday(days) - 1,
                Function::DayOfYear => day_of_year(days),
                Function::WeekOfYear => iso_week(days).1,
                Function::Hour => seconds / 3600,
                Function::Minute => seconds / 60 % 60,
                _ => seconds % 60,
            }) as i32
        }));
    }
    Ok(Arc::new(out.finish()))
}

/// The unit that DATE_TRUNC and TRUNC truncate to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TruncationUnit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
}

impl TruncationUnit {
    fn parse(text: &str) -> Option<Self> {
        Some(match text.to_uppercase().as_str() {
            "MICROSECOND" => Self::Microsecond,
            "MILLISECOND" => Self::Millisecond,
            "SECOND" => Self::Second,
            "MINUTE" => Self::Minute,
            "HOUR" => Self::Hour,
            "DAY" | "DD" => Self::Day,
            "WEEK" => Self::Week,
            "MON" | "MONTH" | "MM" => Self::Month,
            "QUARTER" => Self::Quarter,
            "YEAR" | "YYYY" | "YY" => Self::Year,
            _ => return None,
        })
    }

    /// The first day of the unit that contains a day.
    fn first_day(self, days: i64) -> i64 {
        let date = civil(days);
        match self {
            Self::Week => days - iso_weekday(days) + 1,
            Self::Month => days_from_civil(date.year, date.month, 1),
            Self::Quarter => days_from_civil(date.year, (date.month - 1) / 3 * 3 + 1, 1),
            Self::Year => days_from_civil(date.year, 1, 1),
            _ => days,
        }
    }
}

/// Whether TRUNC or DATE_TRUNC supports the unit; otherwise they return null.
pub(crate) fn truncates(function: Function, unit: &str) -> bool {
    TruncationUnit::parse(unit)
        .is_some_and(|unit| function == Function::DateTrunc || unit >= TruncationUnit::Week)
}

fn truncate(micros: i64, unit: TruncationUnit, zone: &TimeZoneSpec) -> Option<i64> {
    let on_clock = |size: i64| {
        let local = zone.to_local(micros);
        let offset = zone.offset_at(micros.div_euclid(MICROS_PER_SECOND));
        zone.to_utc_preferring(local.div_euclid(size).checked_mul(size)?, offset)
    };
    match unit {
        TruncationUnit::Microsecond => Some(micros),
        TruncationUnit::Millisecond => micros.checked_sub(micros.rem_euclid(1000)),
        TruncationUnit::Second => micros.checked_sub(micros.rem_euclid(MICROS_PER_SECOND)),
        TruncationUnit::Minute => on_clock(60 * MICROS_PER_SECOND),
        TruncationUnit::Hour => on_clock(3600 * MICROS_PER_SECOND),
        TruncationUnit::Day => on_clock(MICROS_PER_DAY),
        unit => zone.start_of_day(unit.first_day(split_days(zone.to_local(micros)).0)),
    }
}

/// DATE_TRUNC: null for an unknown unit.
pub(crate) fn date_trunc(call: &FunctionCall<'_>) -> EvalResult {
    let (units, operand) = (StringArg::new(call.arg(0)?)?, call.arg(1)?);
    let micros = operand.primitive::<TimestampMicrosecondType>()?;
    let zoned = matches!(call.result, DataType::Timestamp);
    let zone = if zoned {
        call.settings.zone
    } else {
        TimeZoneSpec::UTC
    };
    let constant = call
        .arg(0)?
        .scalar
        .then(|| units.get(0).and_then(TruncationUnit::parse));
    let mut out = PrimitiveBuilder::<TimestampMicrosecondType>::with_capacity(call.rows);
    for row in 0..call.rows {
        let unit = constant.unwrap_or_else(|| units.get(row).and_then(TruncationUnit::parse));
        let index = operand.row(row);
        out.append_option(match unit {
            Some(unit) if micros.is_valid(index) => Some(
                truncate(micros.value(index), unit, &zone)
                    .ok_or_else(|| out_of_range("a truncated timestamp"))?,
            ),
            _ => None,
        });
    }
    let out = out.finish();
    Ok(if zoned {
        Arc::new(out.with_timezone("UTC"))
    } else {
        Arc::new(out)
    })
}

/// TRUNC: null for units below a week.
pub(crate) fn trunc(call: &FunctionCall<'_>) -> EvalResult {
    let (operand, units) = (call.arg(0)?, StringArg::new(call.arg(1)?)?);
    let days = operand.primitive::<Date32Type>()?;
    let mut out = PrimitiveBuilder::<Date32Type>::with_capacity(call.rows);
    for row in 0..call.rows {
        let index = operand.row(row);
        let unit = units
            .get(row)
            .and_then(TruncationUnit::parse)
            .filter(|u| *u >= TruncationUnit::Week && days.is_valid(index));
        out.append_option(unit.map(|unit| {
            i32::try_from(unit.first_day(i64::from(days.value(index)))).unwrap_or(i32::MIN)
        }));
    }
    Ok(Arc::new(out.finish()))
}

/// DATE_ADD, DATE_SUB, ADD_MONTHS.
pub(crate) fn add(call: &FunctionCall<'_>) -> EvalResult {
    match call.arg_type(1)? {
        DataType::Byte => add_of::<Int8Type>(call),
        DataType::Short => add_of::<Int16Type>(call),
        _ => add_of::<Int32Type>(call),
    }
}

fn add_of<N: ArrowPrimitiveType>(call: &FunctionCall<'_>) -> EvalResult
where
    i32: From<N::Native>,
{
    Ok(Arc::new(zip_with::<Date32Type, N, Date32Type>(
        call,
        |days, n| {
            let n = i32::from(n);
            Ok(Some(match call.function {
                // Java's addition of days wraps around.
                Function::DateAdd => days.wrapping_add(n),
                Function::DateSub => days.wrapping_sub(n),
                _ => i32::try_from(add_months(i64::from(days), i64::from(n)))
                    .map_err(|_| out_of_range("a date"))?,
            }))
        },
    )?))
}

/// Adds months or microseconds to a timestamp (whole days by the calendar).
pub(crate) fn add_to_timestamp(call: &FunctionCall<'_>) -> EvalResult {
    let zoned = matches!(call.result, DataType::Timestamp);
    let zone = if zoned {
        call.settings.zone
    } else {
        TimeZoneSpec::UTC
    };
    let overflow = || out_of_range("a timestamp");
    let by_calendar = |micros: i64, local: &dyn Fn(i64) -> Option<i64>| {
        let offset = zone.offset_at(micros.div_euclid(MICROS_PER_SECOND));
        local(zone.to_local(micros)).and_then(|local| zone.to_utc_preferring(local, offset))
    };
    let out = if call.function == Function::TimestampAddMonths {
        zip_with::<TimestampMicrosecondType, Int32Type, TimestampMicrosecondType>(
            call,
            |micros, months| {
                let moved = by_calendar(micros, &|local| {
                    let (days, rest) = split_days(local);
                    add_months(days, i64::from(months))
                        .checked_mul(MICROS_PER_DAY)?
                        .checked_add(rest)
                });
                moved.map(Some).ok_or_else(overflow)
            },
        )?
    } else {
        zip_with::<TimestampMicrosecondType, Int64Type, TimestampMicrosecondType>(
            call,
            |micros, by| {
                let (days, rest) = (by / MICROS_PER_DAY, by % MICROS_PER_DAY);
                let moved = by_calendar(micros, &|local| {
                    local.checked_add(days.checked_mul(MICROS_PER_DAY)?)
                });
                moved
                    .and_then(|m| m.checked_add(rest))
                    .map(Some)
                    .ok_or_else(overflow)
            },
        )?
    };
    Ok(if zoned {
        Arc::new(out.with_timezone("UTC"))
    } else {
        Arc::new(out)
    })
}

/// DATEDIFF: end minus start.
pub(crate) fn date_diff(call: &FunctionCall<'_>) -> EvalResult {
    Ok(Arc::new(zip_with::<Date32Type, Date32Type, Int32Type>(
        call,
        |end, start| Ok(Some(end.wrapping_sub(start))),
    )?))
}

/// MONTHS_BETWEEN: whole months between equal days or last days of months, else a month has 31
/// days.
pub(crate) fn months_between(call: &FunctionCall<'_>) -> EvalResult {
    let zone = call.settings.zone;
    let round = match call.operands.get(2) {
        None => None,
        Some(operand) => Some((operand, operand.booleans()?)),
    };
    let mut row = 0;
    let (a, b) = (call.arg(0)?, call.arg(1)?);
    let (x, y) = (
        a.primitive::<TimestampMicrosecondType>()?,
        b.primitive::<TimestampMicrosecondType>()?,
    );
    let mut out = PrimitiveBuilder::<Float64Type>::with_capacity(call.rows);
    while row < call.rows {
        let (i, j) = (a.row(row), b.row(row));
        let rounds = match &round {
            None => Some(true),
            Some((operand, values)) => {
                let index = operand.row(row);
                values.is_valid(index).then(|| values.value(index))
            }
        };
        out.append_option(match rounds {
            Some(rounds) if x.is_valid(i) && y.is_valid(j) => Some(
                months(x.value(i), y.value(j), rounds, &zone)
                    .ok_or_else(|| out_of_range("a timestamp"))?,
            ),
            _ => None,
        });
        row += 1;
    }
    Ok(Arc::new(out.finish()))
}

fn months(a: i64, b: i64, rounds: bool, zone: &TimeZoneSpec) -> Option<f64> {
    let parts = |micros: i64| {
        let days = split_days(zone.to_local(micros)).0;
        let date = civil(days);
        let seconds = micros.checked_sub(zone.start_of_day(days)?)? / MICROS_PER_SECOND;
        Some((
            date.year * 12 + i64::from(date.month),
            i64::from(date.day),
            date.day == days_in_month(date.year, date.month),
            seconds,
        ))
    };
    let ((months_a, day_a, last_a, seconds_a), (months_b, day_b, last_b, seconds_b)) =
        (parts(a)?, parts(b)?);
    let whole = (months_a - months_b) as f64;
    if day_a == day_b || (last_a && last_b) {
        return Some(whole);
    }
    let seconds = (day_a - day_b) * SECONDS_PER_DAY + seconds_a - seconds_b;
    let exact = whole + seconds as f64 / (31 * SECONDS_PER_DAY) as f64;
    // Java rounds halves up, not away from zero.
    Some(if rounds {
        (exact * 1e8 + 0.5).floor() / 1e8
    } else {
        exact
    })
}

/// LAST_DAY of the month.
pub(crate) fn last_day(call: &FunctionCall<'_>) -> EvalResult {
    Ok(Arc::new(map_with::<Date32Type, Date32Type>(
        call.arg(0)?,
        call.rows,
        |days| {
            let date = civil(i64::from(days));
            Ok(Some(
                days_from_civil(date.year, date.month, days_in_month(date.year, date.month)) as i32,
            ))
        },
    )?))
}

/// NEXT_DAY: the first day of that name after the date.
pub(crate) fn next_day(call: &FunctionCall<'_>) -> EvalResult {
    let (operand, names) = (call.arg(0)?, StringArg::new(call.arg(1)?)?);
    let days = operand.primitive::<Date32Type>()?;
    let mut out = PrimitiveBuilder::<Date32Type>::with_capacity(call.rows);
    for row in 0..call.rows {
        let index = operand.row(row);
        out.append_option(match names.get(row) {
            Some(name) if days.is_valid(index) => {
                let start = i64::from(days.value(index));
                match weekday(name) {
                    Some(day) => Some((start + 1 + (day - start - 4 - 1).rem_euclid(7)) as i32),
                    None if call.settings.ansi => {
                        return Err(EvalError::value(
                            ErrorCode::IllegalDayOfWeek,
                            format!("'{}' is not a day of the week", shown(name)),
                        ));
                    }
                    None => None,
                }
            }
            _ => None,
        });
    }
    Ok(Arc::new(out.finish()))
}

/// Sunday 0 to Saturday 6.
fn weekday(name: &str) -> Option<i64> {
    Some(match name.to_uppercase().as_str() {
        "SU" | "SUN" | "SUNDAY" => 0,
        "MO" | "MON" | "MONDAY" => 1,
        "TU" | "TUE" | "TUESDAY" => 2,
        "WE" | "WED" | "WEDNESDAY" => 3,
        "TH" | "THU" | "THURSDAY" => 4,
        "FR" | "FRI" | "FRIDAY" => 5,
        "SA" | "SAT" | "SATURDAY" => 6,
        _ => return None,
    })
}

/// MAKE_DATE.
pub(crate) fn make_date(call: &FunctionCall<'_>) -> EvalResult {
    let parts = [call.arg(0)?, call.arg(1)?, call.arg(2)?];
    let mut out = PrimitiveBuilder::<Date32Type>::with_capacity(call.rows);
    for row in 0..call.rows {
        let mut values = [0_i64; 3];
        let mut is_null = false;
        for (value, operand) in values.iter_mut().zip(parts) {
            let array = operand.primitive::<Int32Type>()?;
            let index = operand.row(row);
            is_null |= array.is_null(index);
            *value = i64::from(array.value(index));
        }
        let [year, month, day] = values;
        out.append_option(
            match checked_days(year, month, day).and_then(|d| i32::try_from(d).ok()) {
                _ if is_null => None,
                Some(days) => Some(days),
                None if call.settings.ansi => {
                    return Err(EvalError::value(
                        ErrorCode::DatetimeFieldOutOfBounds,
                        format!("there is no date of year {year}, month {month}, day {day}"),
                    ));
                }
                None => None,
            },
        );
    }
    Ok(Arc::new(out.finish()))
}

/// UNIX_MICROS and UNIX_TIMESTAMP.
pub(crate) fn to_unix(call: &FunctionCall<'_>) -> EvalResult {
    let operand = call.arg(0)?;
    let zone = call.settings.zone;
    let seconds = |micros: i64| {
        if call.function == Function::UnixMicros {
            micros
        } else {
            micros / MICROS_PER_SECOND
        }
    };
    let out = match call.arg_type(0)? {
        DataType::Date => map_with::<Date32Type, Int64Type>(operand, call.rows, |days| {
            Ok(Some(seconds(
                zone.start_of_day(i64::from(days))
                    .ok_or_else(|| out_of_range("a date"))?,
            )))
        })?,
        _ => map_with::<TimestampMicrosecondType, Int64Type>(operand, call.rows, |micros| {
            Ok(Some(seconds(micros)))
        })?,
    };
    Ok(Arc::new(out))
}

/// TIMESTAMP_MICROS and TIMESTAMP_SECONDS.
pub(crate) fn from_unix(call: &FunctionCall<'_>) -> EvalResult {
    let operand = call.arg(0)?;
    let unit = if call.function == Function::TimestampMicros {
        1
    } else {
        MICROS_PER_SECOND
    };
    let overflow = || EvalError::value(ErrorCode::ArithmeticOverflow, "long overflow");
    type Micros = TimestampMicrosecondType;
    let whole = |value: i64| value.checked_mul(unit).map(Some).ok_or_else(overflow);
    let real = |value: f64| Ok(value.is_finite().then_some((value * unit as f64) as i64));
    let out = match call.arg_type(0)? {
        DataType::Byte => map_with::<Int8Type, Micros>(operand, call.rows, |v| whole(i64::from(v))),
        DataType::Short => {
            map_with::<Int16Type, Micros>(operand, call.rows, |v| whole(i64::from(v)))
        }
        DataType::Integer => {
            map_with::<Int32Type, Micros>(operand, call.rows, |v| whole(i64::from(v)))
        }
        DataType::Long => map_with::<Int64Type, Micros>(operand, call.rows, whole),
        DataType::Float => {
            map_with::<Float32Type, Micros>(operand, call.rows, |v| real(f64::from(v)))
        }
        DataType::Double => map_with::<Float64Type, Micros>(operand, call.rows, real),
        DataType::Decimal(_, scale) => {
            let by = power_of_ten(u32::from(scale.unsigned_abs()));
            map_with::<Decimal128Type, Micros>(operand, call.rows, |v| {
                let (whole, rest) = (v / by, v % by);
                // Fractions of a microsecond cannot be represented.
                let fraction = match i128::from(unit)
                    .checked_rem(by)
                    .filter(|r| *r == 0)
                    .and_then(|_| i128::from(unit).checked_div(by))
                {
                    Some(each) => rest * each,
                    None => {
                        let per = by / i128::from(unit);
                        if rest % per != 0 {
                            return Err(EvalError::value(
                                ErrorCode::ArithmeticOverflow,
                                "rounding necessary: a timestamp has at most six digits behind the second",
                            ));
                        }
                        rest / per
                    }
                };
                let micros = whole
                    .checked_mul(i128::from(unit))
                    .and_then(|w| w.checked_add(fraction))
                    .and_then(|m| i64::try_from(m).ok());
                micros.map(Some).ok_or_else(overflow)
            })
        }
        _ => return Err(unexpected(operand.array.data_type())),
    }?;
    Ok(Arc::new(out.with_timezone("UTC")))
}

/// DATE_FORMAT and FROM_UNIXTIME.
pub(crate) fn format(call: &FunctionCall<'_>) -> EvalResult {
    let pattern = match call.operands.get(1) {
        None => Some("yyyy-MM-dd HH:mm:ss"),
        Some(operand) => StringArg::new(operand)?.get(0),
    };
    let Some(pattern) = pattern else {
        return Ok(arrow_array::new_null_array(&Arrow::Utf8, call.rows));
    };
    let format = DateTimePattern::parse(pattern)?;
    let operand = call.arg(0)?;
    let zone = match operand.array.data_type() {
        Arrow::Timestamp(_, None) => TimeZoneSpec::UTC,
        _ => call.settings.zone,
    };
    let mut out = BytesBuilder::new(call.rows);
    let mut text = String::new();
    for row in 0..call.rows {
        let index = operand.row(row);
        if operand.array.is_null(index) {
            out.push_null()?;
            continue;
        }
        let micros = match call.arg_type(0)? {
            DataType::Long => operand
                .primitive::<Int64Type>()?
                .value(index)
                .wrapping_mul(MICROS_PER_SECOND),
            DataType::Date => zone
                .start_of_day(i64::from(operand.primitive::<Date32Type>()?.value(index)))
                .ok_or_else(|| out_of_range("a date"))?,
            _ => operand
                .primitive::<TimestampMicrosecondType>()?
                .value(index),
        };
        text.clear();
        format.write(&mut text, micros, &zone);
        out.push(text.as_bytes())?;
    }
    Ok(Arc::new(out.finish_text()?))
}

/// A `DateTimeFormatter` pattern: runs of letters, and literal text between them.
#[derive(Debug)]
pub(crate) struct DateTimePattern {
    items: Vec<PatternItem>,
}

#[derive(Debug)]
enum PatternItem {
    Field(char, usize),
    Text(String),
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

impl DateTimePattern {
    /// Parses a pattern; letters that the core does not support are refused by name.
    pub(crate) fn parse(pattern: &str) -> Result<Self> {
        let refuse = |what: &str| {
            Error::unsupported(format!(
                "the datetime pattern '{}' is not supported by the core: {what}",
                shown(pattern)
            ))
        };
        let mut items: Vec<PatternItem> = Vec::new();
        let mut chars = pattern.chars().peekable();
        let text = |items: &mut Vec<PatternItem>, c: char| match items.last_mut() {
            Some(PatternItem::Text(text)) => text.push(c),
            _ => items.push(PatternItem::Text(c.to_string())),
        };
        while let Some(c) = chars.next() {
            match c {
                '\'' => {
                    // Two quotes are one quote, also within quoted text.
                    if chars.next_if_eq(&'\'').is_some() {
                        text(&mut items, '\'');
                        continue;
                    }
                    loop {
                        match chars.next() {
                            Some('\'') => {
                                if chars.next_if_eq(&'\'').is_none() {
                                    break;
                                }
                                text(&mut items, '\'');
                            }
                            Some(c) => text(&mut items, c),
                            None => return Err(refuse("a quote is not closed")),
                        }
                    }
                }
                c if c.is_ascii_alphabetic() => {
                    let mut count = 1;
                    while chars.next_if_eq(&c).is_some() {
                        count += 1;
                    }
                    let most = match c {
                        'y' => 6,
                        'M' | 'L' | 'E' => 4,
                        'd' | 'H' | 'h' | 'k' | 'K' | 'm' | 's' | 'Q' | 'q' => 2,
                        'D' | 'X' | 'x' => 3,
                        'S' => 9,
                        'a' => 1,
                        'Z' if count == 4 => 0,
                        'Z' => 5,
                        _ => 0,
                    };
                    if count > most {
                        return Err(refuse(&format!("`{}`", c.to_string().repeat(count))));
                    }
                    items.push(PatternItem::Field(c, count));
                }
                '[' | ']' | '{' | '}' | '#' => return Err(refuse(&format!("`{c}`"))),
                c => text(&mut items, c),
            }
        }
        Ok(Self { items })
    }

    fn write(&self, out: &mut String, micros: i64, zone: &TimeZoneSpec) {
        let (days, within) = split_days(zone.to_local(micros));
        let date = civil(days);
        let (seconds, fraction) = (within / MICROS_PER_SECOND, within % MICROS_PER_SECOND);
        let hour = seconds / 3600;
        for item in &self.items {
            let (letter, count) = match item {
                PatternItem::Text(text) => {
                    out.push_str(text);
                    continue;
                }
                PatternItem::Field(letter, count) => (*letter, *count),
            };
            let number = match letter {
                'M' | 'L' => i64::from(date.month),
                'd' => i64::from(date.day),
                'D' => day_of_year(days),
                'H' => hour,
                'h' => (hour + 11) % 12 + 1,
                'k' => (hour + 23) % 24 + 1,
                'K' => hour % 12,
                'm' => seconds / 60 % 60,
                's' => seconds % 60,
                _ => i64::from((date.month - 1) / 3 + 1),
            };
            let name = |names: &[&'static str], n: i64| {
                usize::try_from(n - 1)
                    .ok()
                    .and_then(|n| names.get(n).copied())
                    .unwrap_or_default()
            };
            let short = |name: &'static str| name.get(..3).unwrap_or(name);
            match (letter, count) {
                ('y', 2) => drop(write!(out, "{:02}", date.year.unsigned_abs() % 100)),
                ('y', count) => {
                    let magnitude = date.year.unsigned_abs();
                    out.push_str(if date.year < 0 {
                        "-"
                    } else if count >= 4 && magnitude >= 10_u64.pow(count as u32) {
                        "+"
                    } else {
                        ""
                    });
                    let _ = write!(out, "{magnitude:0count$}");
                }
                ('M' | 'L', 3) => out.push_str(short(name(&MONTHS, number))),
                ('M' | 'L', 4) => out.push_str(name(&MONTHS, number)),
                ('E', 4) => out.push_str(name(&DAYS, iso_weekday(days))),
                ('E', _) => out.push_str(short(name(&DAYS, iso_weekday(days)))),
                ('a', _) => out.push_str(if hour < 12 { "AM" } else { "PM" }),
                ('S', count) => {
                    let digits = format!("{fraction:06}000");
                    out.push_str(digits.get(..count).unwrap_or(&digits));
                }
                ('X' | 'x' | 'Z', count) => write_offset(
                    out,
                    letter,
                    count,
                    zone.offset_at(micros.div_euclid(MICROS_PER_SECOND)),
                ),
                (_, count) => drop(write!(out, "{number:0count$}")),
            }
        }
    }
}

fn write_offset(out: &mut String, letter: char, count: usize, offset: i64) {
    // `Z` has a short form for UTC only with five letters.
    if offset == 0 && (letter == 'X' || (letter == 'Z' && count == 5)) {
        out.push('Z');
        return;
    }
    let magnitude = offset.unsigned_abs();
    let (hours, minutes, seconds) = (magnitude / 3600, magnitude / 60 % 60, magnitude % 60);
    let sign = if offset < 0 { '-' } else { '+' };
    let _ = match (letter, count) {
        ('Z', 5) if seconds != 0 => write!(out, "{sign}{hours:02}:{minutes:02}:{seconds:02}"),
        (_, 3 | 5) if letter != 'Z' || count == 5 => write!(out, "{sign}{hours:02}:{minutes:02}"),
        ('X' | 'x', 1) if minutes == 0 => write!(out, "{sign}{hours:02}"),
        _ => write!(out, "{sign}{hours:02}{minutes:02}"),
    };
}
