//! Lengths of time in table properties: the strings that Spark's calendar intervals accept.
//!
//! Other writers set such a property without a check, so a string that is not a length of time is
//! an error wherever a length decides what is deleted.
//!
//! The grammar is that of Spark's `IntervalUtils.stringToInterval`, which delta-spark calls: an
//! optional `interval`, then pairs of a signed number and a unit. Only seconds have a fraction.

const DAY_MICROS: i64 = 86_400_000_000;

/// Milliseconds of an interval such as `interval 1 week` or `2 days 12 hours -30.5 seconds`; `None`
/// for a string that is not an interval, and for months and years, which have no fixed length.
#[must_use]
pub fn parse_duration_ms(text: &str) -> Option<i64> {
    let lower = text.trim().to_ascii_lowercase();
    let pairs = match lower.strip_prefix("interval") {
        Some(pairs) if pairs.starts_with(|c: char| c.is_ascii_whitespace()) => pairs,
        Some(_) => return None,
        None => &lower,
    };
    let mut words = pairs.split_ascii_whitespace().peekable();
    words.peek()?;
    let mut micros: i64 = 0;
    while let Some(word) = words.next() {
        // A sign may be a word of its own.
        let (negative, unsigned) = match word.as_bytes().first()? {
            b'-' => (true, &word[1..]),
            b'+' => (false, &word[1..]),
            _ => (false, word),
        };
        let number = if unsigned.is_empty() {
            words.next()?
        } else {
            unsigned
        };
        let unit = words.next()?;
        let length = pair_micros(number, unit.strip_suffix('s').unwrap_or(unit))?;
        micros = micros.checked_add(if negative { -length } else { length })?;
    }
    Some(micros / 1000)
}

/// Microseconds of an unsigned number and a unit in the singular.
fn pair_micros(number: &str, unit: &str) -> Option<i64> {
    let (whole, fraction) = match number.split_once('.') {
        None => (digits(number)?, 0),
        Some(_) if unit != "second" => return None,
        Some(("", fraction)) => (
            0,
            fraction_micros(fraction).filter(|_| !fraction.is_empty())?,
        ),
        Some((whole, fraction)) => (digits(whole)?, fraction_micros(fraction)?),
    };
    let unit_micros = match unit {
        "week" => 7 * DAY_MICROS,
        "day" => DAY_MICROS,
        "hour" => 3_600_000_000,
        "minute" => 60_000_000,
        "second" => 1_000_000,
        "millisecond" => 1000,
        "microsecond" => 1,
        _ => return None,
    };
    whole.checked_mul(unit_micros)?.checked_add(fraction)
}

fn digits(number: &str) -> Option<i64> {
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| number.parse().ok())?
}

/// Microseconds of the digits after the point of a number of seconds: at most nine digits, cut to
/// microseconds.
fn fraction_micros(fraction: &str) -> Option<i64> {
    match fraction.len() {
        0 => Some(0),
        length @ 1..=9 => {
            let exponent = u32::try_from(9 - length).ok()?;
            Some(digits(fraction)? * 10_i64.pow(exponent) / 1000)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::parse_duration_ms;

    const DAY: i64 = 86_400_000;

    #[test]
    fn every_form_of_a_calendar_interval_is_read() {
        for (text, ms) in [
            ("interval 1 week", 7 * DAY),
            ("INTERVAL 2 Days 12 hours", 5 * DAY / 2),
            ("168 hours", 7 * DAY),
            ("interval 604800000000 microseconds", 7 * DAY),
            ("interval 168 hours 0 microseconds", 7 * DAY),
            ("interval 1 week -1 day", 6 * DAY),
            ("interval - 1 day", -DAY),
            ("interval +3 minutes", 180_000),
            ("interval 1.5 seconds", 1500),
            ("interval .25 second", 250),
            ("interval 3. seconds", 3000),
            ("interval\t1\n day ", DAY),
            ("interval 999 microseconds", 0),
        ] {
            assert_eq!(parse_duration_ms(text), Some(ms), "{text}");
        }
    }

    #[test]
    fn a_string_that_spark_does_not_read_is_no_length_of_time() {
        for text in [
            "",
            " ",
            "interval",
            "interval 1 month",
            "interval 1 year 2 days",
            "P7D",
            "168h",
            "7",
            "1day",
            "interval1 day",
            "intervals 1 day",
            "interval 1 day 2",
            "interval 1.5 days",
            "interval . seconds",
            "interval 1.1234567891 seconds",
            "interval one day",
            "interval --1 day",
            "interval 1 dayss",
            "interval 1 nanosecond",
            "interval '7' days",
            "interval 9223372036854775807 weeks",
            "interval 99999999999999999999 days",
        ] {
            assert_eq!(parse_duration_ms(text), None, "{text}");
        }
    }
}
