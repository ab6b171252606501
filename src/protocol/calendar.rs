//! Calendar and time zones: microseconds and days since the epoch <-> calendar fields, as in
//! `java.time`.
//!
//! The calendar is the proleptic Gregorian one over the whole range of 64-bit microseconds (years
//! -290308 to 294247), which chrono's own date type does not cover; so days and years are computed
//! here and chrono-tz only supplies offsets. chrono-tz's tables end in 2099 while Java applies the
//! last rule for ever, so the offset of a later year is that of an equivalent year (leap or not,
//! same weekday on 1 January).
//!
//! Cost: a handful of integer operations per value; a zone look-up is a binary search.

use chrono::{DateTime, Offset, TimeZone};
use chrono_tz::Tz;

use crate::error::{Error, Result, shown};
use crate::process::RaceOnce;

/// Microseconds in a second.
pub const MICROS_PER_SECOND: i64 = 1_000_000;
/// Seconds in a day.
pub const SECONDS_PER_DAY: i64 = 86_400;
/// Microseconds in a day.
pub const MICROS_PER_DAY: i64 = SECONDS_PER_DAY * MICROS_PER_SECOND;

/// A date of the proleptic Gregorian calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CivilDate {
    /// Astronomical year: 0 is 1 BC.
    pub year: i64,
    /// 1 to 12.
    pub month: u32,
    /// 1 to 31.
    pub day: u32,
}

/// The date of a day number.
#[must_use]
pub fn civil(days: i64) -> CivilDate {
    // Years that begin in March, in eras of 400 years, so that the leap day is the last day of a
    // year.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    CivilDate {
        year,
        month: month as u32,
        day: day as u32,
    }
}

/// The day number of a date, which must be valid.
#[must_use]
pub fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month = i64::from(month);
    let day_of_year =
        (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Whether the year has 366 days.
#[must_use]
pub fn is_leap(year: i64) -> bool {
    year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0)
}

/// Days of a month.
#[must_use]
pub fn days_in_month(year: i64, month: u32) -> u32 {
    match month {
        2 => 28 + u32::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The day number of a date, if the date exists.
#[must_use]
pub fn checked_days(year: i64, month: i64, day: i64) -> Option<i64> {
    let month = u32::try_from(month).ok().filter(|m| (1..=12).contains(m))?;
    let day = u32::try_from(day)
        .ok()
        .filter(|d| (1..=days_in_month(year, month)).contains(d))?;
    (-999_999_999..=999_999_999)
        .contains(&year)
        .then(|| days_from_civil(year, month, day))
}

/// Monday 1 to Sunday 7.
#[must_use]
pub fn iso_weekday(days: i64) -> i64 {
    (days + 3).rem_euclid(7) + 1
}

/// 1 to 366.
#[must_use]
pub fn day_of_year(days: i64) -> i64 {
    days - days_from_civil(civil(days).year, 1, 1) + 1
}

/// Year and week of ISO 8601.
#[must_use]
pub fn iso_week(days: i64) -> (i64, i64) {
    // The week belongs to the year of its Thursday.
    let thursday = days - iso_weekday(days) + 4;
    let year = civil(thursday).year;
    (year, (thursday - days_from_civil(year, 1, 1)) / 7 + 1)
}

/// Adds whole months to `days`; the day is limited to the length of the month.
#[must_use]
pub fn add_months(days: i64, months: i64) -> i64 {
    let CivilDate { year, month, day } = civil(days);
    let total = year * 12 + i64::from(month) - 1 + months;
    let (year, month) = (total.div_euclid(12), total.rem_euclid(12) as u32 + 1);
    days_from_civil(year, month, day.min(days_in_month(year, month)))
}

/// Whole days before `micros`, and the microseconds within the day.
#[must_use]
pub fn split_days(micros: i64) -> (i64, i64) {
    (
        micros.div_euclid(MICROS_PER_DAY),
        micros.rem_euclid(MICROS_PER_DAY),
    )
}

/// A time zone, for values without a zone of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeZoneSpec {
    /// Seconds east of UTC.
    Fixed(i32),
    /// A region of the tz database.
    Named(Tz),
}

impl Default for TimeZoneSpec {
    fn default() -> Self {
        Self::Fixed(0)
    }
}

impl TimeZoneSpec {
    /// Coordinated universal time.
    pub const UTC: Self = Self::Fixed(0);

    /// Parses a zone as Spark does: a region (`Europe/Paris`), an offset (`+01:00`, `UTC+1`, `Z`)
    /// or one of Java's short names.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the zone.
    pub fn parse(name: &str) -> Result<Self> {
        Self::of(name).ok_or_else(|| {
            Error::invalid(format!(
                "`{}` is not a time zone; use a region as `Europe/Paris` or an offset as `+01:00`",
                shown(name)
            ))
        })
    }

    /// [`TimeZoneSpec::parse`] without a message, for zones within string values.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        let short = match name {
            "EST" => "-05:00",
            "MST" => "-07:00",
            "HST" => "-10:00",
            "ACT" => "Australia/Darwin",
            "AET" => "Australia/Sydney",
            "AGT" => "America/Argentina/Buenos_Aires",
            "ART" => "Africa/Cairo",
            "AST" => "America/Anchorage",
            "BET" => "America/Sao_Paulo",
            "BST" => "Asia/Dhaka",
            "CAT" => "Africa/Harare",
            "CNT" => "America/St_Johns",
            "CST" => "America/Chicago",
            "CTT" => "Asia/Shanghai",
            "EAT" => "Africa/Addis_Ababa",
            "ECT" => "Europe/Paris",
            "IET" => "America/Indiana/Indianapolis",
            "IST" => "Asia/Kolkata",
            "JST" => "Asia/Tokyo",
            "MIT" => "Pacific/Apia",
            "NET" => "Asia/Yerevan",
            "NST" => "Pacific/Auckland",
            "PLT" => "Asia/Karachi",
            "PNT" => "America/Phoenix",
            "PRT" => "America/Puerto_Rico",
            "PST" => "America/Los_Angeles",
            "SST" => "Pacific/Guadalcanal",
            "VST" => "Asia/Ho_Chi_Minh",
            other => other,
        };
        if short == "Z" {
            return Some(Self::UTC);
        }
        if short.starts_with(['+', '-']) {
            return offset(&padded(short)).map(Self::Fixed);
        }
        for prefix in ["UTC", "GMT", "UT"] {
            if let Some(rest) = short.strip_prefix(prefix) {
                if rest.is_empty() {
                    return Some(Self::UTC);
                }
                if rest.starts_with(['+', '-']) {
                    return offset(&padded(rest)).map(Self::Fixed);
                }
            }
        }
        short.parse::<Tz>().ok().map(|tz| {
            if tz == Tz::UTC {
                Self::UTC
            } else {
                Self::Named(tz)
            }
        })
    }

    /// Seconds east of UTC at an instant.
    #[must_use]
    pub fn offset_at(&self, utc_seconds: i64) -> i64 {
        match self {
            Self::Fixed(offset) => i64::from(*offset),
            Self::Named(tz) => region_offset(*tz, utc_seconds),
        }
    }

    /// The local time at an instant, as microseconds.
    #[must_use]
    pub fn to_local(&self, micros: i64) -> i64 {
        if matches!(self, Self::Fixed(0)) {
            return micros;
        }
        micros.saturating_add(
            self.offset_at(micros.div_euclid(MICROS_PER_SECOND)) * MICROS_PER_SECOND,
        )
    }

    /// The instant of a local time: in an overlap the earlier one, in a gap later by the length of
    /// the gap. `None` if it does not fit into 64 bits.
    #[must_use]
    pub fn to_utc(&self, local: i64) -> Option<i64> {
        let tz = match self {
            Self::Fixed(offset) => {
                return local.checked_sub(i64::from(*offset) * MICROS_PER_SECOND);
            }
            Self::Named(tz) => *tz,
        };
        let seconds = local.div_euclid(MICROS_PER_SECOND);
        // The offsets in force a day before and after bracket any single change around this local
        // time.
        let before = region_offset(tz, seconds - SECONDS_PER_DAY);
        let after = region_offset(tz, seconds + SECONDS_PER_DAY);
        let offset = if region_offset(tz, seconds - before) == before {
            before
        } else if region_offset(tz, seconds - after) == after {
            after
        } else {
            // A gap, or two changes within two days: the offset before the change applies.
            let near = region_offset(tz, seconds - before.max(after));
            if region_offset(tz, seconds - near) == near {
                near
            } else {
                near.min(before)
            }
        };
        local.checked_sub(offset * MICROS_PER_SECOND)
    }
}

impl TimeZoneSpec {
    /// [`TimeZoneSpec::to_utc`], but in an overlap the instant with this offset, as
    /// `ZonedDateTime` keeps it through arithmetic.
    #[must_use]
    pub fn to_utc_preferring(&self, local: i64, offset: i64) -> Option<i64> {
        let utc = local.checked_sub(offset * MICROS_PER_SECOND)?;
        if self.offset_at(utc.div_euclid(MICROS_PER_SECOND)) == offset {
            Some(utc)
        } else {
            self.to_utc(local)
        }
    }

    /// The first instant of a day: midnight, or the end of the gap that contains midnight.
    #[must_use]
    pub fn start_of_day(&self, days: i64) -> Option<i64> {
        let midnight = days.checked_mul(MICROS_PER_DAY)?;
        let utc = self.to_utc(midnight)?;
        if matches!(self, Self::Fixed(_)) || self.to_local(utc) == midnight {
            return Some(utc);
        }
        // In a gap: the change of the offset is between the two instants of midnight under the two
        // offsets.
        let seconds = midnight.div_euclid(MICROS_PER_SECOND);
        let (before, after) = (
            self.offset_at(seconds - SECONDS_PER_DAY),
            self.offset_at(seconds + SECONDS_PER_DAY),
        );
        let (mut low, mut high) = (seconds - after, seconds - before);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.offset_at(middle) == before {
                low = middle;
            } else {
                high = middle;
            }
        }
        high.checked_mul(MICROS_PER_SECOND)
    }
}

impl std::fmt::Display for TimeZoneSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fixed(0) => f.write_str("UTC"),
            Self::Fixed(offset) => {
                let (sign, seconds) = if *offset < 0 {
                    ('-', -offset)
                } else {
                    ('+', *offset)
                };
                write!(f, "{sign}{:02}:{:02}", seconds / 3600, seconds / 60 % 60)?;
                if seconds % 60 == 0 {
                    Ok(())
                } else {
                    write!(f, ":{:02}", seconds % 60)
                }
            }
            Self::Named(tz) => f.write_str(tz.name()),
        }
    }
}

/// First instant that is looked up at an earlier, equivalent year: 2090-01-01.
const REPEATS_FROM: i64 = 3_786_912_000;

/// The changes of a region's offset since 1970, as columns: first second, offset from then on. A
/// few hundred entries with binary search, five times as fast as a chrono-tz look-up for every
/// value.
struct OffsetTransitions {
    from: Vec<i64>,
    offsets: Vec<i64>,
}

impl OffsetTransitions {
    /// Samples every day, and searches within those in which the offset changes.
    fn of(tz: Tz) -> Self {
        let mut out = Self {
            from: vec![0],
            offsets: vec![table_offset(tz, 0)],
        };
        let mut known = table_offset(tz, 0);
        for day in 0..REPEATS_FROM / SECONDS_PER_DAY {
            let (mut low, mut high) = (day * SECONDS_PER_DAY, (day + 1) * SECONDS_PER_DAY);
            let next = table_offset(tz, high);
            if next == known {
                continue;
            }
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                if table_offset(tz, middle) == known {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            out.from.push(high);
            out.offsets.push(next);
            known = next;
        }
        out
    }

    fn at(&self, utc_seconds: i64) -> Option<i64> {
        self.offsets
            .get(
                self.from
                    .partition_point(|from| *from <= utc_seconds)
                    .checked_sub(1)?,
            )
            .copied()
    }
}

static CHANGES: [RaceOnce<OffsetTransitions>; chrono_tz::TZ_VARIANTS.len()] =
    [const { RaceOnce::new() }; chrono_tz::TZ_VARIANTS.len()];

fn region_offset(tz: Tz, utc_seconds: i64) -> i64 {
    if (0..REPEATS_FROM).contains(&utc_seconds)
        && let Some(cell) = CHANGES.get(tz as usize)
        && let Some(offset) = cell
            .get_or_make(|| OffsetTransitions::of(tz))
            .at(utc_seconds)
    {
        return offset;
    }
    table_offset(tz, utc_seconds)
}

/// The offset from chrono-tz's tables.
fn table_offset(tz: Tz, utc_seconds: i64) -> i64 {
    let seconds = if utc_seconds < REPEATS_FROM
        || matches!(tz, Tz::Africa__Casablanca | Tz::Africa__El_Aaiun)
    {
        utc_seconds
    } else {
        let days = utc_seconds.div_euclid(SECONDS_PER_DAY);
        let year = civil(days).year;
        let first = days_from_civil(year, 1, 1);
        let (leap, weekday) = (is_leap(year), iso_weekday(first));
        // Every kind of year occurs within any 28 years without an irregular century.
        let twin = (2060..2088)
            .find(|y| is_leap(*y) == leap && iso_weekday(days_from_civil(*y, 1, 1)) == weekday)
            .unwrap_or(2060);
        utc_seconds + (days_from_civil(twin, 1, 1) - first) * SECONDS_PER_DAY
    };
    // Before the start of the table local mean time is in force, so the earliest date that chrono
    // supports is used.
    let seconds = seconds.clamp(-8_000_000_000_000, 8_000_000_000_000);
    match DateTime::from_timestamp(seconds, 0) {
        Some(utc) => i64::from(
            tz.offset_from_utc_datetime(&utc.naive_utc())
                .fix()
                .local_minus_utc(),
        ),
        None => 0,
    }
}

/// `+h:` and `+hh:m` in the form that Java parses.
fn padded(text: &str) -> String {
    let (sign, rest) = text.split_at(1);
    let (hours, tail) = rest
        .split_once(':')
        .map_or((rest, None), |(h, t)| (h, Some(t)));
    match tail {
        None => text.to_owned(),
        Some(tail) => {
            let zero = if hours.len() == 1 { "0" } else { "" };
            let minute_zero = if tail.len() == 1 { "0" } else { "" };
            format!("{sign}{zero}{hours}:{minute_zero}{tail}")
        }
    }
}

/// `+h`, `+hh`, `+hh:mm`, `+hhmm`, `+hh:mm:ss` or `+hhmmss`, within 18 hours.
fn offset(text: &str) -> Option<i32> {
    let (sign, rest) = text.split_at(1);
    let two = |part: &str| {
        (part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit()))
            .then(|| part.parse::<i32>().ok())
            .flatten()
    };
    if !rest.is_ascii() {
        return None;
    }
    let (hours, minutes, seconds) = match rest.len() {
        1 => (rest.parse::<u8>().ok().map(i32::from)?, 0, 0),
        2 => (two(rest)?, 0, 0),
        4 => (two(rest.get(..2)?)?, two(rest.get(2..)?)?, 0),
        5 if rest.get(2..3) == Some(":") => (two(rest.get(..2)?)?, two(rest.get(3..)?)?, 0),
        6 => (
            two(rest.get(..2)?)?,
            two(rest.get(2..4)?)?,
            two(rest.get(4..)?)?,
        ),
        8 if rest.get(2..3) == Some(":") && rest.get(5..6) == Some(":") => (
            two(rest.get(..2)?)?,
            two(rest.get(3..5)?)?,
            two(rest.get(6..)?)?,
        ),
        _ => return None,
    };
    let total = hours * 3600 + minutes * 60 + seconds;
    (minutes < 60 && seconds < 60 && total <= 18 * 3600).then_some(if sign == "-" {
        -total
    } else {
        total
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(text: &str) -> i64 {
        crate::protocol::time::parse_timestamp(text.as_bytes(), TimeZoneSpec::UTC).unwrap()
    }

    #[test]
    fn days_and_dates_are_inverse_over_the_whole_range() {
        for days in (-107_000_000..107_000_000)
            .step_by(99_991)
            .chain([-719_529, -719_528, -1, 0, 59, 60, 11_016])
        {
            let c = civil(days);
            assert_eq!(days_from_civil(c.year, c.month, c.day), days);
        }
        assert_eq!(
            civil(0),
            CivilDate {
                year: 1970,
                month: 1,
                day: 1
            }
        );
        assert_eq!(
            civil(-719_528),
            CivilDate {
                year: 0,
                month: 1,
                day: 1
            }
        );
        assert_eq!(iso_weekday(0), 4);
        assert_eq!(iso_week(days_from_civil(2021, 1, 3)), (2020, 53));
    }

    #[test]
    fn dates_agree_with_the_calendar_library() {
        use chrono::{Datelike, NaiveDate};
        let mut day = NaiveDate::from_ymd_opt(-400, 1, 1).unwrap();
        let epoch = NaiveDate::from_ymd_opt(1970, 1, 1).unwrap();
        while day.year() < 2500 {
            assert_eq!(
                checked_days(day.year().into(), day.month().into(), day.day().into()),
                Some((day - epoch).num_days()),
                "{day}"
            );
            day = day.checked_add_days(chrono::Days::new(13)).unwrap();
        }
        assert_eq!(checked_days(2023, 2, 29), None);
        assert_eq!(checked_days(2023, 13, 1), None);
    }

    #[test]
    fn gaps_move_forward_and_overlaps_take_the_earlier_instant() {
        let zone = TimeZoneSpec::parse("America/New_York").unwrap();
        assert_eq!(
            zone.to_utc(local("2024-03-10 02:30:00")),
            Some(local("2024-03-10 07:30:00"))
        );
        assert_eq!(
            zone.to_utc(local("2024-03-10 01:59:59")),
            Some(local("2024-03-10 06:59:59"))
        );
        assert_eq!(
            zone.to_utc(local("2024-03-10 03:00:00")),
            Some(local("2024-03-10 07:00:00"))
        );
        assert_eq!(
            zone.to_utc(local("2024-11-03 01:30:00")),
            Some(local("2024-11-03 05:30:00"))
        );
        assert_eq!(
            zone.to_utc(local("2024-11-03 02:00:00")),
            Some(local("2024-11-03 07:00:00"))
        );
        let sydney = TimeZoneSpec::parse("Australia/Sydney").unwrap();
        assert_eq!(
            sydney.to_utc(local("2024-10-06 02:30:00")),
            Some(local("2024-10-05 16:30:00"))
        );
        assert_eq!(
            sydney.to_utc(local("2024-04-07 02:30:00")),
            Some(local("2024-04-06 15:30:00"))
        );
    }

    #[test]
    fn a_day_without_midnight_starts_when_its_gap_ends() {
        let toronto = TimeZoneSpec::parse("America/Toronto").unwrap();
        let day = days_from_civil(1919, 3, 31);
        assert_eq!(
            toronto.start_of_day(day).map(|m| toronto.to_local(m)),
            Some(local("1919-03-31 00:30:00"))
        );
        let sao_paulo = TimeZoneSpec::parse("America/Sao_Paulo").unwrap();
        assert_eq!(
            sao_paulo.start_of_day(days_from_civil(2018, 11, 4)),
            Some(local("2018-11-04 03:00:00"))
        );
        assert_eq!(TimeZoneSpec::UTC.start_of_day(1), Some(MICROS_PER_DAY));
    }

    #[test]
    fn the_last_rule_holds_for_ever() {
        let sydney = TimeZoneSpec::parse("Australia/Sydney").unwrap();
        assert_eq!(
            sydney.to_utc(local("9999-12-31 12:00:00")),
            Some(local("9999-12-31 01:00:00"))
        );
        let zone = TimeZoneSpec::parse("America/New_York").unwrap();
        assert_eq!(
            zone.to_utc(local("2150-07-01 12:00:00")),
            Some(local("2150-07-01 16:00:00"))
        );
        assert_eq!(
            zone.to_utc(local("0001-01-01 00:00:00")),
            Some(local("0001-01-01 04:56:02"))
        );
    }

    #[test]
    fn the_found_changes_are_those_of_the_tables() {
        for tz in [
            Tz::America__New_York,
            Tz::Africa__Casablanca,
            Tz::Australia__Lord_Howe,
            Tz::Asia__Kathmandu,
            Tz::Antarctica__Troll,
            Tz::Africa__Cairo,
        ] {
            for seconds in (0..REPEATS_FROM).step_by(900 * 7 + 1) {
                assert_eq!(
                    region_offset(tz, seconds),
                    table_offset(tz, seconds),
                    "{tz} at {seconds}"
                );
            }
        }
    }

    #[test]
    fn zones_are_read_in_all_of_javas_forms() {
        for (text, seconds) in [
            ("+1", 3600),
            ("+01:30", 5400),
            ("-0130", -5400),
            ("UTC+1", 3600),
            ("GMT-08:00", -28800),
            ("+1:5", 3900),
            ("EST", -18000),
            ("Z", 0),
        ] {
            assert_eq!(
                TimeZoneSpec::of(text),
                Some(TimeZoneSpec::Fixed(seconds)),
                "{text}"
            );
        }
        for text in ["+19", "+01:60", "", "Mars/Olympus", "+1:", "utc+é"] {
            assert_eq!(TimeZoneSpec::of(text), None, "{text}");
        }
        assert_eq!(
            TimeZoneSpec::of("Europe/Paris").map(|z| z.to_string()),
            Some("Europe/Paris".to_owned())
        );
    }
}
