//! Conversion of dates and timestamps to and from Spark's string formats.
//!
//! Accepted are `[+-]yyyy[yyy][-[m]m[-[d]d]]` and, for timestamps,
//! `[ |T][h]h:[m]m[:[s]s[.fraction]][zone]` after it. The output is `yyyy-MM-dd` and
//! `yyyy-MM-dd HH:mm:ss[.ffffff]` without trailing zeros.
//!
//! Cost: one pass over the bytes, no allocation except for a zone.

use std::fmt::Write;

use crate::expr::text::number::trim_blanks;
use crate::protocol::calendar::{MICROS_PER_SECOND, TimeZoneSpec, checked_days, civil, split_days};

/// Reads a date.
#[must_use]
pub fn date(text: &str) -> Option<i32> {
    let bytes = trim_blanks(text).as_bytes();
    let (sign, bytes) = match bytes {
        [] => return None,
        [b'-', rest @ ..] => (-1, rest),
        [b'+', rest @ ..] => (1, rest),
        rest => (1, rest),
    };
    let valid = |segment: usize, digits: usize| {
        if segment == 0 {
            (4..=7).contains(&digits)
        } else {
            (1..=2).contains(&digits)
        }
    };
    let (mut parts, mut segment, mut value, mut digits) = ([1_i64; 3], 0_usize, 0_i64, 0_usize);
    let mut tail = false;
    for byte in bytes {
        match byte {
            b' ' | b'T' => {
                tail = true;
                break;
            }
            b'-' if segment < 2 => {
                if !valid(segment, digits) {
                    return None;
                }
                if let Some(part) = parts.get_mut(segment) {
                    *part = value;
                }
                (segment, value, digits) = (segment + 1, 0, 0);
            }
            b'0'..=b'9' => {
                value = value
                    .saturating_mul(10)
                    .saturating_add(i64::from(byte - b'0'));
                digits += 1;
            }
            _ => return None,
        }
    }
    // Only a complete date may be followed by anything.
    if !valid(segment, digits) || (segment < 2 && tail) {
        return None;
    }
    if let Some(part) = parts.get_mut(segment) {
        *part = value;
    }
    let [year, month, day] = parts;
    i32::try_from(checked_days(sign * year, month, day)?).ok()
}

/// A timestamp that the string alone does not determine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeOnly;

/// Parts of a timestamp string.
struct TimestampFields {
    /// Year, month, day, hour, minute, second, microsecond.
    fields: [i64; 7],
    zone: Option<TimeZoneSpec>,
    has_zone: bool,
}

fn parts(text: &str) -> Option<Result<TimestampFields, TimeOnly>> {
    let trimmed = trim_blanks(text);
    let bytes = trimmed.as_bytes();
    let (sign, start) = match bytes.first()? {
        b'-' => (Some(-1), 1),
        b'+' => (Some(1), 1),
        _ => (None, 0),
    };
    let valid = |segment: usize, digits: usize| match segment {
        6 => true,
        0 => (4..=6).contains(&digits),
        7 => digits <= 2,
        _ => (1..=2).contains(&digits),
    };
    let (mut fields, mut segment, mut value, mut digits) =
        ([1_i64, 1, 1, 0, 0, 0, 0, 0, 0], 0_usize, 0_i64, 0_usize);
    let (mut fraction_digits, mut time_only, mut zone_text) = (0_u32, false, None);
    let mut at = start;
    // Closes the segment that ends here.
    macro_rules! close {
        ($as_segment:expr, $next:expr) => {{
            if !valid($as_segment, digits) {
                return None;
            }
            *fields.get_mut($as_segment)? = value;
            (segment, value, digits) = ($next, 0, 0);
        }};
    }
    while let Some(&byte) = bytes.get(at) {
        match (segment, byte) {
            (_, b'0'..=b'9') => {
                if segment == 6 {
                    fraction_digits += 1;
                }
                // Digits after the microseconds are dropped.
                if segment != 6 || digits < 6 {
                    value = value
                        .saturating_mul(10)
                        .saturating_add(i64::from(byte - b'0'));
                }
                digits += 1;
            }
            (_, b'T') if at == 0 => {
                time_only = true;
                segment += 3;
            }
            (0 | 1, b'-') => close!(segment, segment + 1),
            (0, b':') if sign.is_none() => {
                time_only = true;
                close!(3, 4);
            }
            (2, b' ' | b'T') => close!(2, 3),
            (3 | 4, b':') => close!(segment, segment + 1),
            (5, b'.') => close!(5, 6),
            (5 | 6, _) => {
                close!(segment, 7);
                zone_text = Some(trimmed.get(at..)?);
                break;
            }
            _ => return None,
        }
        at += 1;
    }
    if !valid(segment, digits) {
        return None;
    }
    *fields.get_mut(segment)? = value;
    let [year, month, day, hour, minute, second, micros, ..] = fields;
    let micros = if fraction_digits < 6 {
        micros * 10_i64.pow(6 - fraction_digits)
    } else {
        micros
    };
    let zone = match zone_text {
        Some(name) => Some(TimeZoneSpec::of(name.trim_matches(|c: char| c <= ' '))?),
        None => None,
    };
    if !((0..24).contains(&hour) && (0..60).contains(&minute) && (0..60).contains(&second)) {
        return None;
    }
    if time_only {
        return Some(Err(TimeOnly));
    }
    Some(Ok(TimestampFields {
        fields: [
            year * sign.unwrap_or(1),
            month,
            day,
            hour,
            minute,
            second,
            micros,
        ],
        zone,
        has_zone: zone_text.is_some(),
    }))
}

fn wall_clock(fields: [i64; 7]) -> Option<i64> {
    let [year, month, day, hour, minute, second, micros] = fields;
    let seconds = checked_days(year, month, day)?
        .checked_mul(86_400)?
        .checked_add(hour * 3600 + minute * 60 + second)?;
    // Computed with 128 bits, because the first second of the range only fits together with its
    // fraction.
    i64::try_from(i128::from(seconds) * i128::from(MICROS_PER_SECOND) + i128::from(micros)).ok()
}

/// Reads a timestamp; strings without a zone are in `zone`. `None` when it is not a timestamp.
///
/// # Errors
/// [`TimeOnly`] for a time without a date, whose value depends on the current day.
pub fn timestamp(text: &str, zone: &TimeZoneSpec) -> Result<Option<i64>, TimeOnly> {
    match parts(text) {
        None => Ok(None),
        Some(parts) => {
            let parts = parts?;
            Ok(wall_clock(parts.fields)
                .and_then(|local| parts.zone.as_ref().unwrap_or(zone).to_utc(local)))
        }
    }
}

/// Reads a timestamp without zone; a zone in the string is ignored, a time without a date is not
/// accepted.
#[must_use]
pub fn timestamp_ntz(text: &str) -> Option<i64> {
    match parts(text) {
        Some(Ok(parts)) => {
            let _ = parts.has_zone;
            wall_clock(parts.fields)
        }
        _ => None,
    }
}

/// Appends a date.
pub fn write_date(out: &mut String, days: i64) {
    let c = civil(days);
    write_year(out, c.year);
    let _ = write!(out, "-{:02}-{:02}", c.month, c.day);
}

fn write_year(out: &mut String, year: i64) {
    let _ = match year {
        10_000.. => write!(out, "+{year}"),
        0..10_000 => write!(out, "{year:04}"),
        _ => write!(out, "-{:04}", year.unsigned_abs()),
    };
}

/// Appends a local time.
pub fn write_timestamp(out: &mut String, local: i64) {
    let (days, micros) = split_days(local);
    write_date(out, days);
    let (seconds, fraction) = (micros / MICROS_PER_SECOND, micros % MICROS_PER_SECOND);
    let _ = write!(
        out,
        " {:02}:{:02}:{:02}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    );
    if fraction != 0 {
        let text = format!(".{fraction:06}");
        out.push_str(text.trim_end_matches('0'));
    }
}

/// The date of a local time.
#[must_use]
pub fn date_of(local: i64) -> i64 {
    split_days(local).0
}

/// Midnight of a date as a local time, if it fits into 64 bits.
#[must_use]
pub fn midnight(days: i64) -> Option<i64> {
    days.checked_mul(crate::protocol::calendar::MICROS_PER_DAY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::calendar::days_from_civil;

    fn back(text: &str) -> Option<String> {
        let mut out = String::new();
        write_timestamp(&mut out, timestamp(text, &TimeZoneSpec::UTC).unwrap()?);
        Some(out)
    }

    #[test]
    fn dates_are_read_in_all_of_sparks_forms() {
        let day = |y, m, d| Some(days_from_civil(y, m, d) as i32);
        for (text, days) in [
            ("2024", day(2024, 1, 1)),
            ("2024-3", day(2024, 3, 1)),
            (" 2024-03-1 ", day(2024, 3, 1)),
            ("2024-03-10T23:59:59Z and more", day(2024, 3, 10)),
            ("2024-03-10 ", day(2024, 3, 10)),
            ("-0001-01-01", day(-1, 1, 1)),
            ("+12345-01-01", day(12_345, 1, 1)),
            ("0000-01-01", day(0, 1, 1)),
            ("2024-02-30", None),
            ("2024-13-01", None),
            ("2024-", None),
            ("2024-03 ", day(2024, 3, 1)),
            ("2024-03 x", None),
            ("202", None),
            ("2024/03/10", None),
            ("", None),
            ("-", None),
        ] {
            assert_eq!(date(text), days, "{text:?}");
        }
    }

    #[test]
    fn timestamps_are_read_in_all_of_sparks_forms() {
        for (text, shown) in [
            ("2024-03-10 12:34:56.789", Some("2024-03-10 12:34:56.789")),
            ("2024-03-10T1:2:3", Some("2024-03-10 01:02:03")),
            ("2024-03-10 12:34", Some("2024-03-10 12:34:00")),
            ("2024-03-10 12", Some("2024-03-10 12:00:00")),
            ("2024", Some("2024-01-01 00:00:00")),
            (
                "2024-03-10 12:34:56.1234567",
                Some("2024-03-10 12:34:56.123456"),
            ),
            ("2024-03-10 12:34:56Z", Some("2024-03-10 12:34:56")),
            ("2024-03-10 12:34:56.5+02:00", Some("2024-03-10 10:34:56.5")),
            (
                "2024-03-10 12:34:56 Europe/Paris",
                Some("2024-03-10 11:34:56"),
            ),
            ("2024-03-10 12:34:56 PST", Some("2024-03-10 19:34:56")),
            ("2024-03-10 12:34:56UTC+1", Some("2024-03-10 11:34:56")),
            ("2024-03-10 24:00:00", None),
            ("2024-03-10 12:34:56 Nowhere", None),
            ("2024-03-10x12:34:56", None),
            ("2024-03-10 12:", None),
            ("", None),
            ("abc", None),
        ] {
            assert_eq!(back(text).as_deref(), shown, "{text:?}");
        }
        assert_eq!(timestamp("12:30", &TimeZoneSpec::UTC), Err(TimeOnly));
        assert_eq!(timestamp("T12:30:00", &TimeZoneSpec::UTC), Err(TimeOnly));
        assert_eq!(
            timestamp_ntz("2024-03-10 12:34:56+05:00"),
            timestamp("2024-03-10 12:34:56", &TimeZoneSpec::UTC).unwrap()
        );
        assert_eq!(timestamp_ntz("12:30"), None);
    }

    #[test]
    fn years_beyond_four_digits_carry_a_sign() {
        let mut out = String::new();
        write_date(&mut out, days_from_civil(12_345, 1, 2));
        write_date(&mut out, days_from_civil(-5, 1, 2));
        write_date(&mut out, days_from_civil(5, 1, 2));
        assert_eq!(out, "+12345-01-02-0005-01-020005-01-02");
    }
}
