//! Dates and timestamps as the log writes them: text -> days or microseconds since the epoch.
//!
//! By hand because a million statistics are parsed at a time and only these few shapes exist: `YYYY-MM-DD`, followed by
//! `T` or a blank and `HH:MM:SS`, a fraction of up to nine digits, and `Z` or an offset. The calendar is the proleptic
//! Gregorian one.
//!
//! Protocol: "Partition Value Serialization", "Per-file Statistics".

use chrono::{DateTime, LocalResult, NaiveDateTime, TimeZone};
use chrono_tz::Tz;

/// Microseconds of a day.
pub const DAY_US: i64 = 86_400_000_000;

/// Days since the epoch of a civil date; `None` for a date that does not exist.
#[must_use]
pub fn days(year: i64, month: u32, day: u32) -> Option<i64> {
    const LENGTHS: [u32; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = *LENGTHS.get(usize::try_from(month).ok()?.checked_sub(1)?)? + u32::from(leap && month == 2);
    if day == 0 || day > length {
        return None;
    }
    // Years counted from March, so that the leap day is the last of a year.
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let year_of_era = y.rem_euclid(400);
    let month_from_march = i64::from((month + 9) % 12);
    let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

/// Reads digits from the front: (value, rest).
fn digits(text: &[u8], min: usize, max: usize) -> Option<(i64, &[u8])> {
    let count = text.iter().take(max).take_while(|b| b.is_ascii_digit()).count();
    if count < min {
        return None;
    }
    let (head, rest) = text.split_at(count);
    Some((head.iter().fold(0, |n, b| n * 10 + i64::from(b - b'0')), rest))
}

fn literal(text: &[u8], byte: u8) -> Option<&[u8]> {
    text.strip_prefix(std::slice::from_ref(&byte))
}

fn date_front(text: &[u8]) -> Option<(i64, &[u8])> {
    let (negative, text) = match text.first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    let (year, text) = digits(text, 4, 7)?;
    let (month, text) = digits(literal(text, b'-')?, 1, 2)?;
    let (day, text) = digits(literal(text, b'-')?, 1, 2)?;
    let days = days(if negative { -year } else { year }, u32::try_from(month).ok()?, u32::try_from(day).ok()?)?;
    Some((days, text))
}

/// Days since the epoch of `YYYY-MM-DD`.
#[must_use]
pub fn parse_date(text: &[u8]) -> Option<i32> {
    let (days, rest) = date_front(text)?;
    rest.is_empty().then(|| i32::try_from(days).ok())?
}

/// The number that two digits make.
#[inline]
fn pair(tens: u8, ones: u8) -> Option<u32> {
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    (tens < 10 && ones < 10).then(|| u32::from(tens) * 10 + u32::from(ones))
}

/// [`parse_date`] of a date of the usual form; `None` says nothing of others.
#[inline]
#[must_use]
pub fn usual_date(text: &[u8; 10]) -> Option<i32> {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = *text else { return None };
    let year = pair(y1, y2)? * 100 + pair(y3, y4)?;
    i32::try_from(days(year.into(), pair(m1, m2)?, pair(d1, d2)?)?).ok()
}

/// [`parse_timestamp`] of `YYYY-MM-DDTHH:MM:SS.mmmZ`, which needs no zone; `None` says nothing of other forms.
#[inline]
#[must_use]
pub fn usual_instant(text: &[u8; 24]) -> Option<i64> {
    let (date, clock) = text.split_first_chunk::<10>()?;
    let [b'T', h1, h2, b':', m1, m2, b':', s1, s2, b'.', f1, f2, f3, b'Z'] = *clock else { return None };
    let (hour, minute, second) = (pair(h1, h2)?, pair(m1, m2)?, pair(s1, s2)?);
    let millis = pair(f1, f2)? * 10 + pair(b'0', f3)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let clock = i64::from((hour * 60 + minute) * 60 + second) * 1_000_000 + i64::from(millis) * 1000;
    Some(i64::from(usual_date(date)?) * DAY_US + clock)
}

/// A timestamp as written: microseconds of its wall clock, and its offset from UTC in microseconds where it has one.
/// Digits beyond microseconds are cut off.
#[must_use]
pub fn parse_wall_clock(text: &[u8]) -> Option<(i64, Option<i64>)> {
    let (days, rest) = date_front(text)?;
    let day_us = days.checked_mul(DAY_US)?;
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
        micros = (0..6).fold(0, |n, i| n * 10 + digits.get(i).map_or(0, |b| i64::from(b - b'0')));
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
    let (minutes, rest) = if rest.is_empty() { (0, rest) } else { digits(rest, 2, 2)? };
    (rest.is_empty() && hours <= 18 && minutes <= 59).then_some(Some(sign * (hours * 60 + minutes) * 60_000_000))
}

/// Microseconds since the epoch of an instant; text without an offset is a wall clock in `zone`.
#[must_use]
pub fn parse_timestamp(text: &[u8], zone: Tz) -> Option<i64> {
    match parse_wall_clock(text)? {
        (wall, Some(offset)) => wall.checked_sub(offset),
        (wall, None) if zone == Tz::UTC => Some(wall),
        (wall, None) => local_to_utc(wall, zone),
    }
}

/// Microseconds since the epoch of a wall clock, which an offset in the text does not shift.
#[must_use]
pub fn parse_timestamp_ntz(text: &[u8]) -> Option<i64> {
    match parse_wall_clock(text)? {
        (wall, None | Some(0)) => Some(wall),
        (_, Some(_)) => None,
    }
}

/// The instant at which a wall clock in `zone` shows `wall`: the earlier of two, and for a time that a clock change
/// skips, shifted forward by the gap, as Java does.
#[must_use]
pub fn local_to_utc(wall: i64, zone: Tz) -> Option<i64> {
    let naive: NaiveDateTime = DateTime::from_timestamp_micros(wall)?.naive_utc();
    match zone.from_local_datetime(&naive) {
        LocalResult::Single(at) | LocalResult::Ambiguous(at, _) => Some(at.timestamp_micros()),
        LocalResult::None => {
            // A gap is at most a day: the offset in force the day before maps the time across it.
            let before = zone.from_local_datetime(&DateTime::from_timestamp_micros(wall.checked_sub(DAY_US)?)?.naive_utc()).earliest()?;
            let shift = before.naive_local().and_utc().timestamp_micros() - before.timestamp_micros();
            wall.checked_sub(shift)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_agree_with_the_calendar_library() {
        use chrono::{Datelike, NaiveDate};
        let mut day = NaiveDate::from_ymd_opt(-400, 1, 1).unwrap();
        let epoch = NaiveDate::from_ymd_opt(1970, 1, 1).unwrap();
        while day.year() < 2500 {
            assert_eq!(days(i64::from(day.year()), day.month(), day.day()), Some((day - epoch).num_days()), "{day}");
            day = day.checked_add_days(chrono::Days::new(13)).unwrap();
        }
        assert_eq!(days(2023, 2, 29), None);
        assert_eq!(days(2023, 13, 1), None);
    }

    #[test]
    fn every_written_form_is_read() {
        let utc = Tz::UTC;
        for (text, micros) in [
            ("1970-01-01 00:00:00", 0),
            ("1970-01-01T00:00:00.123456Z", 123_456),
            ("1970-01-01 00:00:00.1", 100_000),
            ("1970-01-01T01:00:00.000+01:00", 0),
            ("1969-12-31T16:00:00-08:00", 0),
            ("1970-01-02", DAY_US),
            ("1970-01-01T00:00:00.123456789Z", 123_456),
        ] {
            assert_eq!(parse_timestamp(text.as_bytes(), utc), Some(micros), "{text}");
        }
        for text in ["", "1970", "1970-01-01X", "1970-01-01 24:00:00", "1970-01-01 00:00:00.", "1970-01-01T00:00:00Zx", "banana"] {
            assert_eq!(parse_timestamp(text.as_bytes(), utc), None, "{text}");
        }
    }

    #[test]
    fn a_wall_clock_without_a_zone_is_in_the_callers() {
        let zone: Tz = "America/Los_Angeles".parse().unwrap();
        assert_eq!(parse_timestamp(b"1970-01-01 00:00:00", zone), Some(8 * 3_600_000_000));
        // 02:30 on the day the clock springs forward is 03:30 daylight time.
        assert_eq!(parse_timestamp(b"2024-03-10 02:30:00", zone), parse_timestamp(b"2024-03-10T10:30:00Z", zone));
        assert_eq!(parse_timestamp_ntz(b"1970-01-01 00:00:01"), Some(1_000_000));
    }
}
