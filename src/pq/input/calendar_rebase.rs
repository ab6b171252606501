//! Dates and timestamps that Spark 2 and 3.0 wrote in the hybrid calendar -> the proleptic
//! Gregorian one.
//!
//! Until 1582-10-15 the hybrid calendar is the Julian one: the same day number is another date.
//! Readers keep the *date* (year, month, day as the writer saw them), so the number changes.
//! Timestamps before 1900 were also made with the zone's present standard offset where the tz
//! database, and Spark since 3.0, has local mean time.
//!
//! When it applies is Spark's rule: a footer without `org.apache.spark.version` is taken as it is;
//! one of a version before 3.0.0 (INT96: 3.1.0) is rebased, and so is any with the key
//! `org.apache.spark.legacyDateTime` (`legacyINT96`). The writer's zone is the key
//! `org.apache.spark.timeZone`, else the session's.

use arrow_array::PrimitiveArray;
use arrow_array::types::{Date32Type, TimestampMicrosecondType};
use chrono::{DateTime, TimeZone};
use chrono_tz::OffsetComponents;

use crate::pq::ParquetFooter;
use crate::protocol::calendar::TimeZoneSpec;

/// The first day of the Gregorian calendar, 1582-10-15.
const GREGORIAN: i32 = -141_427;
/// 1900-01-01T00:00:00Z. Both computations agree from here on.
const AGREED: i64 = -2_208_988_800_000_000;
const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;

/// Which values of a file are of the hybrid calendar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::pq) struct CalendarRebase {
    /// Dates and 64-bit timestamps are.
    pub datetime: bool,
    /// INT96 timestamps are.
    pub int96: bool,
    zone: TimeZoneSpec,
}

impl CalendarRebase {
    /// The rebase that the footer requires; `session` is the zone for writers that did not record
    /// theirs.
    pub fn from_footer(footer: &ParquetFooter, session: TimeZoneSpec) -> Self {
        let older = |limit: &str| {
            footer
                .key_value("org.apache.spark.version")
                .map(|version| version < limit)
        };
        let marked = |key: &str| footer.key_value(key).is_some();
        // As in Spark, the marks count only together with a version, and versions are compared as
        // strings.
        Self {
            datetime: older("3.0.0")
                .is_some_and(|older| older || marked("org.apache.spark.legacyDateTime")),
            int96: older("3.1.0")
                .is_some_and(|older| older || marked("org.apache.spark.legacyINT96")),
            zone: footer
                .key_value("org.apache.spark.timeZone")
                .and_then(TimeZoneSpec::of)
                .unwrap_or(session),
        }
    }

    /// Rebases days.
    #[allow(
        clippy::unused_self,
        reason = "the calendar of days needs no zone, but reads as one of the two"
    )]
    pub fn days(&self, days: &PrimitiveArray<Date32Type>) -> PrimitiveArray<Date32Type> {
        days.unary(|day| {
            if day < GREGORIAN {
                i32::try_from(rebased_day(day.into())).unwrap_or(day)
            } else {
                day
            }
        })
    }

    /// Rebases microseconds.
    pub fn micros(
        &self,
        micros: &PrimitiveArray<TimestampMicrosecondType>,
    ) -> PrimitiveArray<TimestampMicrosecondType> {
        let standard = standard_offset(&self.zone);
        micros.unary(|micros| {
            if micros < AGREED {
                self.rebased(micros, standard).unwrap_or(micros)
            } else {
                micros
            }
        })
    }

    fn rebased(&self, micros: i64, standard: i64) -> Option<i64> {
        let local = micros.checked_add(standard * MICROS_PER_SECOND)?;
        let (day, time) = (
            local.div_euclid(MICROS_PER_DAY),
            local.rem_euclid(MICROS_PER_DAY),
        );
        let day = if day < GREGORIAN.into() {
            rebased_day(day)
        } else {
            day
        };
        local_to_utc_micros(
            &self.zone,
            day.checked_mul(MICROS_PER_DAY)?.checked_add(time)?,
        )
    }
}

/// The day number whose Gregorian date equals the Julian date of `day`. A 29 February that only the
/// Julian calendar has becomes 1 March.
fn rebased_day(day: i64) -> i64 {
    // Julian: eras of four years, which begin in March of a year before a leap year.
    let shifted = day + 719_470;
    let era = shifted.div_euclid(1461);
    let in_era = shifted.rem_euclid(1461);
    let year_of_era = (in_era - in_era / 1460) / 365;
    let day_of_year = in_era - year_of_era * 365;
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5;
    let year = era * 4 + year_of_era;
    // Gregorian, still with years that begin in March: the first of the month, and the days after
    // it.
    let era = year.div_euclid(400);
    let in_era = year.rem_euclid(400);
    let first =
        era * 146_097 + in_era * 365 + in_era / 4 - in_era / 100 + (153 * month + 2) / 5 - 719_468;
    first + day_of_month
}

/// The present standard offset, which Java's old calendar used for everything before 1900.
fn standard_offset(zone: &TimeZoneSpec) -> i64 {
    match zone {
        TimeZoneSpec::Fixed(seconds) => i64::from(*seconds),
        TimeZoneSpec::Named(tz) => DateTime::from_timestamp(1_700_000_000, 0).map_or(0, |now| {
            tz.offset_from_utc_datetime(&now.naive_utc())
                .base_utc_offset()
                .num_seconds()
        }),
    }
}

/// The instant of a local time: in an overlap the later one, in a gap later by the length of the
/// gap.
fn local_to_utc_micros(zone: &TimeZoneSpec, local: i64) -> Option<i64> {
    let seconds = local.div_euclid(MICROS_PER_SECOND);
    let (before, after) = (
        zone.offset_at(seconds - 86_400 * 2),
        zone.offset_at(seconds + 86_400 * 2),
    );
    let offset = if zone.offset_at(seconds - after) == after {
        after
    } else {
        before
    };
    local.checked_sub(offset * MICROS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use chrono::{NaiveDate, NaiveDateTime};

    use super::*;

    fn legacy(zone: &str) -> CalendarRebase {
        CalendarRebase {
            datetime: true,
            int96: true,
            zone: TimeZoneSpec::parse(zone).unwrap(),
        }
    }

    fn day(year: i32, month: u32, day: u32) -> i32 {
        let epoch = NaiveDate::from_ymd_opt(1970, 1, 1).unwrap();
        NaiveDate::from_ymd_opt(year, month, day)
            .unwrap()
            .signed_duration_since(epoch)
            .num_days() as i32
    }

    fn rebase(from: i32) -> i32 {
        legacy("UTC").days(&vec![from].into()).value(0)
    }

    #[test]
    fn dates_keep_year_month_and_day() {
        // The Julian calendar is ten days behind in 1582, on the same day in the third century, two
        // ahead in year 1.
        assert_eq!(rebase(-141_428), day(1582, 10, 4));
        assert_eq!(rebase(-141_427), day(1582, 10, 15));
        assert_eq!(rebase(day(1500, 3, 11)), day(1500, 3, 1));
        assert_eq!(
            rebase(day(1500, 3, 10)),
            day(1500, 3, 1),
            "29 February 1500 was Julian only"
        );
        assert_eq!(rebase(day(1000, 1, 6)), day(1000, 1, 1));
        assert_eq!(rebase(day(250, 6, 1)), day(250, 6, 1));
        assert_eq!(rebase(day(0, 12, 30)), day(1, 1, 1));
        assert_eq!(rebase(0), 0);
    }

    #[test]
    fn timestamps_keep_their_wall_clock() {
        let at = |text: &str| {
            NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f")
                .unwrap()
                .and_utc()
                .timestamp_micros()
        };
        let rebase = |zone: &str, from: i64| legacy(zone).micros(&vec![from].into()).value(0);
        assert_eq!(
            rebase("UTC", at("1900-01-01T00:00:00")),
            at("1900-01-01T00:00:00")
        );
        assert_eq!(
            rebase("UTC", at("1500-03-11T12:34:56.789")),
            at("1500-03-01T12:34:56.789")
        );
        // Los Angeles: eight hours for the old calendar, 7:52:58 of mean time before November 1883.
        assert_eq!(
            rebase("America/Los_Angeles", at("1850-01-01T08:00:00")),
            at("1850-01-01T07:52:58")
        );
        assert_eq!(
            rebase("America/Los_Angeles", at("1890-01-01T08:00:00")),
            at("1890-01-01T08:00:00")
        );
        assert_eq!(
            rebase("+01:30", at("1850-01-01T08:00:00")),
            at("1850-01-01T08:00:00")
        );
    }
}
