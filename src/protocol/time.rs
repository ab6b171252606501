//! Dates and timestamps in the log's format: string -> days or microseconds since the epoch.
//!
//! The parser is written by hand because a million statistics are parsed at a time and only these
//! few forms exist: `YYYY-MM-DD`, followed by `T` or a blank and `HH:MM:SS`, a fraction of up to
//! nine digits, and `Z` or an offset. The calendar is the proleptic Gregorian one.
//!
//! Protocol: "Partition Value Serialization", "Per-file Statistics".

use super::calendar::{MICROS_PER_DAY, TimeZoneSpec, checked_days};

/// Reads digits from the front: (value, rest).
fn digits(text: &[u8], min: usize, max: usize) -> Option<(i64, &[u8])> {
    let count = text
        .iter()
        .take(max)
        .take_while(|b| b.is_ascii_digit())
        .count();
    if count < min {
        return None;
    }
    let (head, rest) = text.split_at(count);
    Some((
        head.iter().fold(0, |n, b| n * 10 + i64::from(b - b'0')),
        rest,
    ))
}

fn literal(text: &[u8], byte: u8) -> Option<&[u8]> {
    text.strip_prefix(std::slice::from_ref(&byte))
}

fn parse_date_prefix(text: &[u8]) -> Option<(i64, &[u8])> {
    let (negative, text) = match text.first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    let (year, text) = digits(text, 4, 7)?;
    let (month, text) = digits(literal(text, b'-')?, 1, 2)?;
    let (day, text) = digits(literal(text, b'-')?, 1, 2)?;
    Some((
        checked_days(if negative { -year } else { year }, month, day)?,
        text,
    ))
}

/// Days since the epoch of `YYYY-MM-DD`.
#[must_use]
pub fn parse_date(text: &[u8]) -> Option<i32> {
    let (days, rest) = parse_date_prefix(text)?;
    rest.is_empty().then(|| i32::try_from(days).ok())?
}

/// The number that two digits make.
#[inline]
fn pair(tens: u8, ones: u8) -> Option<u32> {
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    (tens < 10 && ones < 10).then(|| u32::from(tens) * 10 + u32::from(ones))
}

/// [`parse_date`] for a date of the usual form; `None` for other forms, which may be valid.
#[inline]
#[must_use]
pub fn parse_fixed_date(text: &[u8; 10]) -> Option<i32> {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = *text else {
        return None;
    };
    let year = pair(y1, y2)? * 100 + pair(y3, y4)?;
    i32::try_from(checked_days(
        year.into(),
        pair(m1, m2)?.into(),
        pair(d1, d2)?.into(),
    )?)
    .ok()
}

/// [`parse_timestamp`] of `YYYY-MM-DDTHH:MM:SS.mmmZ`, which needs no zone; `None` for other forms,
/// which may be valid.
#[inline]
#[must_use]
pub fn parse_fixed_timestamp(text: &[u8; 24]) -> Option<i64> {
    let (date, clock) = text.split_first_chunk::<10>()?;
    let [
        b'T',
        h1,
        h2,
        b':',
        m1,
        m2,
        b':',
        s1,
        s2,
        b'.',
        f1,
        f2,
        f3,
        b'Z',
    ] = *clock
    else {
        return None;
    };
    let (hour, minute, second) = (pair(h1, h2)?, pair(m1, m2)?, pair(s1, s2)?);
    let millis = pair(f1, f2)? * 10 + pair(b'0', f3)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let clock =
        i64::from((hour * 60 + minute) * 60 + second) * 1_000_000 + i64::from(millis) * 1000;
    Some(i64::from(parse_fixed_date(date)?) * MICROS_PER_DAY + clock)
}

/// A timestamp as written: microseconds of its local time, and its offset from UTC in microseconds
/// if it has one. Digits beyond microseconds are truncated.
#[must_use]
pub fn parse_wall_clock(text: &[u8]) -> Option<(i64, Option<i64>)> {
    let (days, rest) = parse_date_prefix(text)?;
    let day_us = days.checked_mul(MICROS_PER_DAY)?;
    let rest = match rest.first() {
        None => return Some((day_us, None)),
        Some(b'T' | b' ') => rest.get(1..)?,
        Some(_) => return None,
    };
    let (hour, rest) = digits(rest, 1, 2)?;
    let (minute, mut rest) = digits(literal(rest, b':')?, 1, 2)?;
    let mut second = 0;
    if let Some(after) = literal(rest, b':') {
        (second, rest) = digits(after, 1, 2)?;
    }
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut micros = 0;
    if let Some(fraction) = literal(rest, b'.') {
        let length = fraction.iter().take_while(|b| b.is_ascii_digit()).count();
        if length == 0 || length > 9 {
            return None;
        }
        let (digits, after) = fraction.split_at(length);
        micros = (0..6).fold(0, |n, i| {
            n * 10 + digits.get(i).map_or(0, |b| i64::from(b - b'0'))
        });
        rest = after;
    }
    let wall = day_us.checked_add(((hour * 60 + minute) * 60 + second) * 1_000_000 + micros)?;
    Some((wall, offset(rest)?))
}

/// `Z`, `+HH:MM`, `-HHMM`, `+HH` or nothing.
#[allow(clippy::option_option)]
fn offset(text: &[u8]) -> Option<Option<i64>> {
    let (sign, rest) = match text.first() {
        None => return Some(None),
        Some(b'Z' | b'z') => return (text.len() == 1).then_some(Some(0)),
        Some(b'+') => (1, text.get(1..)?),
        Some(b'-') => (-1, text.get(1..)?),
        Some(b' ') if text.get(1..)? == b"UTC" => return Some(Some(0)),
        Some(_) => return None,
    };
    let (hours, rest) = digits(rest, 2, 2)?;
    let rest = literal(rest, b':').unwrap_or(rest);
    let (minutes, rest) = if rest.is_empty() {
        (0, rest)
    } else {
        digits(rest, 2, 2)?
    };
    (rest.is_empty() && hours <= 18 && minutes <= 59)
        .then_some(Some(sign * (hours * 60 + minutes) * 60_000_000))
}

/// Microseconds since the epoch of an instant; a string without an offset is a local time in
/// `zone`.
#[must_use]
pub fn parse_timestamp(text: &[u8], zone: TimeZoneSpec) -> Option<i64> {
    match parse_wall_clock(text)? {
        (wall, Some(offset)) => wall.checked_sub(offset),
        (wall, None) => zone.to_utc(wall),
    }
}

/// [`parse_timestamp`], and by how much the instant may differ from it, in microseconds.
///
/// Offsets before the introduction of time zones have seconds, and delta-spark 3.2 and 3.3 cut them
/// off: Berlin's local mean time `+00:53:28` is written as `+00:53`. An offset whose minutes are no
/// multiple of 15 is therefore known to a minute only, and so is every offset before 1973 (Moscow's
/// was `+02:30:17`, Newfoundland's `-03:30:52`; Liberia was the last country to give up seconds).
#[must_use]
pub fn parse_imprecise_timestamp(text: &[u8], zone: TimeZoneSpec) -> Option<(i64, i64)> {
    const MINUTE: i64 = 60_000_000;
    /// 1973-01-01.
    const LAST_SECONDS: i64 = 1096 * MICROS_PER_DAY;
    let (wall, offset) = parse_wall_clock(text)?;
    let Some(offset) = offset else {
        return Some((zone.to_utc(wall)?, 0));
    };
    let is_exact = offset == 0 || (offset % (15 * MINUTE) == 0 && wall >= LAST_SECONDS);
    Some((wall.checked_sub(offset)?, if is_exact { 0 } else { MINUTE }))
}

/// Microseconds since the epoch of a local time; an offset in the string is ignored.
#[must_use]
pub fn parse_timestamp_ntz(text: &[u8]) -> Option<i64> {
    match parse_wall_clock(text)? {
        (wall, None | Some(0)) => Some(wall),
        (_, Some(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_written_form_is_read() {
        let utc = TimeZoneSpec::UTC;
        for (text, micros) in [
            ("1970-01-01 00:00:00", 0),
            ("1970-01-01T00:00:00.123456Z", 123_456),
            ("1970-01-01 00:00:00.1", 100_000),
            ("1970-01-01T01:00:00.000+01:00", 0),
            ("1969-12-31T16:00:00-08:00", 0),
            ("1970-01-02", MICROS_PER_DAY),
            ("1970-01-01T00:00:00.123456789Z", 123_456),
        ] {
            assert_eq!(
                parse_timestamp(text.as_bytes(), utc),
                Some(micros),
                "{text}"
            );
        }
        for text in [
            "",
            "1970",
            "1970-01-01X",
            "1970-01-01 24:00:00",
            "1970-01-01 00:00:00.",
            "1970-01-01T00:00:00Zx",
            "banana",
        ] {
            assert_eq!(parse_timestamp(text.as_bytes(), utc), None, "{text}");
        }
    }

    #[test]
    fn an_offset_that_may_have_had_seconds_is_known_to_a_minute() {
        for (text, uncertain) in [
            ("1850-01-01T01:01:01.000+00:53", true),
            ("1850-01-01T01:01:01.000-07:52", true),
            ("1900-01-01T00:00:00.000+02:30", true),
            ("1930-01-01T00:00:00.000-03:30", true),
            ("1972-01-01T00:00:00.000-00:44", true),
            ("2024-01-01T00:00:00.000+00:53", true),
            ("2024-01-01T00:00:00.000+05:45", false),
            ("2024-01-01T00:00:00.000-03:30", false),
            ("2024-01-01T00:00:00.000+01:00", false),
            ("1850-01-01T00:00:00.000Z", false),
            ("1850-01-01T00:00:00.000+00:00", false),
            ("1850-01-01 00:00:00", false),
        ] {
            let (instant, uncertainty) =
                parse_imprecise_timestamp(text.as_bytes(), TimeZoneSpec::UTC).unwrap();
            assert_eq!(
                Some(instant),
                parse_timestamp(text.as_bytes(), TimeZoneSpec::UTC),
                "{text}"
            );
            assert_eq!(uncertainty, i64::from(uncertain) * 60_000_000, "{text}");
        }
    }

    #[test]
    fn a_wall_clock_without_a_zone_is_in_the_callers() {
        let zone = TimeZoneSpec::parse("America/Los_Angeles").unwrap();
        assert_eq!(
            parse_timestamp(b"1970-01-01 00:00:00", zone),
            Some(8 * 3_600_000_000)
        );
        // 02:30 on the day the clock springs forward is 03:30 daylight time.
        assert_eq!(
            parse_timestamp(b"2024-03-10 02:30:00", zone),
            parse_timestamp(b"2024-03-10T10:30:00Z", zone)
        );
        assert_eq!(
            parse_timestamp(
                b"1970-01-01 05:30:00",
                TimeZoneSpec::parse("+05:30").unwrap()
            ),
            Some(0)
        );
        assert_eq!(parse_timestamp_ntz(b"1970-01-01 00:00:01"), Some(1_000_000));
    }
}
