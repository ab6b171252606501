//! Values of table properties: text -> what it means.

/// Milliseconds of a calendar interval such as `interval 1 week` or `INTERVAL 2 days 12 hours`; `None` for months and
/// years, which have no fixed length, and for text that is no interval.
#[must_use]
pub fn duration_ms(text: &str) -> Option<i64> {
    let lower = text.trim().to_ascii_lowercase();
    let mut words = lower.strip_prefix("interval").unwrap_or(&lower).split_whitespace().peekable();
    words.peek()?;
    let mut total: i64 = 0;
    while let Some(number) = words.next() {
        let number: i64 = number.trim_matches('\'').parse().ok()?;
        let unit: i64 = match words.next()?.trim_end_matches('s') {
            "week" => 7 * 86_400_000,
            "day" => 86_400_000,
            "hour" => 3_600_000,
            "minute" => 60_000,
            "second" => 1000,
            "millisecond" => 1,
            _ => return None,
        };
        total = total.checked_add(number.checked_mul(unit)?)?;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_read_in_every_unit_of_fixed_length() {
        assert_eq!(duration_ms("interval 1 week"), Some(604_800_000));
        assert_eq!(duration_ms("INTERVAL 2 days 12 hours"), Some(216_000_000));
        assert_eq!(duration_ms("1 day"), Some(86_400_000));
        for text in ["interval", "interval 1 month", "interval one day", "", "interval 1"] {
            assert_eq!(duration_ms(text), None, "{text}");
        }
    }
}
