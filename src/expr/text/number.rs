//! Conversion of numbers to and from strings in Java's forms: `Double.toString`, `BigDecimal`, and
//! Spark's own integer parser.
//!
//! Cost: one pass over the string, no allocation when reading.

use std::fmt::Write;

/// The reason that a string is not a value of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiteralParseError {
    /// It does not have the type's form.
    Malformed,
    /// It has the form but is out of the type's range.
    OutOfRange,
}

/// `Character.isWhitespace` or `isISOControl` for one byte: the bytes that Spark trims before it
/// parses a number or a time.
#[must_use]
pub fn is_blank(byte: u8) -> bool {
    byte <= b' ' || byte == 0x7f
}

/// `text` without the bytes that Spark trims.
#[must_use]
pub fn trim_blanks(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_ascii() && is_blank(c as u8))
}

/// Java's `String.trim`.
#[must_use]
pub fn java_trim(text: &str) -> &str {
    text.trim_matches(|c: char| c <= ' ')
}

/// Reads an integer. Outside ANSI a fraction is allowed and dropped.
///
/// # Errors
/// [`LiteralParseError::Malformed`]; too many digits count as malformed, as in Spark.
pub fn integer(text: &str, fraction_allowed: bool) -> Result<i64, LiteralParseError> {
    let trimmed = trim_blanks(text).as_bytes();
    let (negative, digits) = match trimmed {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    if digits.is_empty() {
        return Err(LiteralParseError::Malformed);
    }
    // Accumulated as a negative number, because the smallest value has no positive counterpart.
    let mut value: i64 = 0;
    let mut bytes = digits.iter();
    for byte in bytes.by_ref() {
        match byte {
            b'0'..=b'9' => {
                value = value
                    .checked_mul(10)
                    .and_then(|v| v.checked_sub(i64::from(byte - b'0')))
                    .ok_or(LiteralParseError::Malformed)?;
            }
            b'.' if fraction_allowed => break,
            _ => return Err(LiteralParseError::Malformed),
        }
    }
    if !bytes.all(u8::is_ascii_digit) {
        return Err(LiteralParseError::Malformed);
    }
    if negative {
        Ok(value)
    } else {
        value.checked_neg().ok_or(LiteralParseError::Malformed)
    }
}

/// Reads a double as `Double.parseDouble` does, plus Spark's words for infinities and `NaN`.
#[must_use]
pub fn double(text: &str) -> Option<f64> {
    let trimmed = java_trim(text);
    special(trimmed)
        .or_else(|| finite(trimmed, |t| t.parse::<f64>().ok()))
        .or_else(|| hexadecimal(trimmed))
}

/// [`double`] for single precision, rounded once.
#[must_use]
pub fn float(text: &str) -> Option<f32> {
    let trimmed = java_trim(text);
    special(trimmed)
        .map(|d| d as f32)
        .or_else(|| finite(trimmed, |t| t.parse::<f32>().ok()))
        .or_else(|| hexadecimal(trimmed).map(|d| d as f32))
}

fn special(trimmed: &str) -> Option<f64> {
    let is = |word: &str| trimmed.eq_ignore_ascii_case(word);
    if is("inf") || is("+inf") || is("infinity") || is("+infinity") {
        Some(f64::INFINITY)
    } else if is("-inf") || is("-infinity") {
        Some(f64::NEG_INFINITY)
    } else if is("nan") || trimmed == "+NaN" || trimmed == "-NaN" {
        Some(f64::NAN)
    } else {
        None
    }
}

/// A hexadecimal number of Java (`0x1.8p3`), if its digits fit a double exactly.
fn hexadecimal(trimmed: &str) -> Option<f64> {
    let (sign, rest) = match trimmed.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, trimmed.strip_prefix('+').unwrap_or(trimmed)),
    };
    let rest = rest
        .strip_prefix("0x")
        .or_else(|| rest.strip_prefix("0X"))?;
    let rest = rest.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(rest);
    let (digits, exponent) = rest.split_once(['p', 'P'])?;
    let exponent: i32 = exponent.parse().ok()?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let joined = format!("{whole}{fraction}");
    let value = u64::from_str_radix(&joined, 16)
        .ok()
        .filter(|v| *v < (1 << 53) && joined.bytes().all(|b| b.is_ascii_hexdigit()))?;
    let power = exponent.checked_sub(4 * i32::try_from(fraction.len()).ok()?)?;
    // Multiplication by a power of two is exact within the normal doubles.
    (-1000..=900)
        .contains(&power)
        .then(|| sign * value as f64 * 2_f64.powi(power))
}

fn finite<T>(trimmed: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
    let text = trimmed
        .strip_suffix(['d', 'D', 'f', 'F'])
        .unwrap_or(trimmed);
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    // Rust parses `inf` and `nan` but Java does not, so the form is checked first.
    let plain = unsigned
        .bytes()
        .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'))
        && unsigned.bytes().any(|b| b.is_ascii_digit());
    if plain { parse(text) } else { None }
}

/// The most digits at which two different decimals are never the same double, or float: the
/// shortest form is then the nearest.
const SAFE_DIGITS: (usize, usize) = (15, 6);

/// `short`, or the exact form with the same number of digits (at least two) where these may differ.
fn nearest(short: String, safe: usize, exact: impl Fn(usize) -> String) -> String {
    let digits = short
        .split('e')
        .next()
        .unwrap_or_default()
        .bytes()
        .filter(u8::is_ascii_digit)
        .count();
    if (2..=safe).contains(&digits) {
        short
    } else {
        exact(digits.max(2) - 1)
    }
}

/// The digits that `Double.toString` shows, as `[-]d[.ddd]e[-]n`: the fewest that distinguish the
/// double from its neighbours but at least two, of those the nearest, of two equally near the even
/// one (since Java 19; older versions sometimes show more).
#[must_use]
pub fn double_digits(value: f64) -> String {
    nearest(format!("{value:e}"), SAFE_DIGITS.0, |places| {
        format!("{value:.places$e}")
    })
}

/// Appends a double as `Double.toString` writes it.
pub fn write_double(out: &mut String, value: f64) {
    if value.is_finite() {
        write_java(out, &double_digits(value));
    } else {
        write_special(out, value);
    }
}

/// Appends a float as `Float.toString` writes it.
pub fn write_float(out: &mut String, value: f32) {
    if value.is_finite() {
        write_java(
            out,
            &nearest(format!("{value:e}"), SAFE_DIGITS.1, |places| {
                format!("{value:.places$e}")
            }),
        );
    } else {
        write_special(out, f64::from(value));
    }
}

fn write_special(out: &mut String, value: f64) {
    out.push_str(if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    });
}

/// Appends `[-]d[.ddd]e[-]n` in Java's layout: plain between 10^-3 and 10^7, else with an exponent.
fn write_java(out: &mut String, scientific: &str) {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = mantissa
        .strip_prefix('-')
        .map_or(("", mantissa), |rest| ("-", rest));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let digits = match digits.trim_end_matches('0') {
        "" => "0",
        trimmed => trimmed,
    };
    out.push_str(sign);
    let zero = digits == "0";
    if zero || (-3..7).contains(&exponent) {
        if zero {
            out.push_str("0.0");
        } else if exponent < 0 {
            out.push_str("0.");
            out.extend(std::iter::repeat_n(
                '0',
                exponent.unsigned_abs() as usize - 1,
            ));
            out.push_str(digits);
        } else {
            let whole = exponent as usize + 1;
            match digits.split_at_checked(whole) {
                Some((whole, fraction)) => {
                    out.push_str(whole);
                    out.push('.');
                    out.push_str(if fraction.is_empty() { "0" } else { fraction });
                }
                None => {
                    out.push_str(digits);
                    out.extend(std::iter::repeat_n('0', whole - digits.len()));
                    out.push_str(".0");
                }
            }
        }
    } else {
        let (first, rest) = digits.split_at(1);
        let _ = write!(
            out,
            "{first}.{}E{exponent}",
            if rest.is_empty() { "0" } else { rest }
        );
    }
}

/// 10 to a power of at most 38.
#[must_use]
pub fn power_of_ten(exponent: u32) -> i128 {
    10_i128.checked_pow(exponent).unwrap_or(i128::MAX)
}

/// Whether an unscaled value has at most `precision` digits.
#[must_use]
pub fn fits(unscaled: i128, precision: u8) -> bool {
    unscaled.unsigned_abs() < power_of_ten(u32::from(precision)).unsigned_abs()
}

/// A decimal number as written: digits without leading zeros, and the number of digits before the
/// point.
#[derive(Debug)]
pub struct DecimalDigits {
    negative: bool,
    digits: Vec<u8>,
    point: i64,
}

impl DecimalDigits {
    /// Reads `new BigDecimal(text)`: sign, digits, point, exponent.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let (negative, bytes) = match bytes {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        let (mut digits, mut point, mut any, mut fraction) = (Vec::new(), 0_i64, false, false);
        let mut rest = bytes.iter();
        let mut exponent: i64 = 0;
        while let Some(byte) = rest.next() {
            match byte {
                b'0'..=b'9' => {
                    any = true;
                    if digits.is_empty() && *byte == b'0' {
                        point -= i64::from(fraction);
                    } else {
                        digits.push(byte - b'0');
                        point += i64::from(!fraction);
                    }
                }
                b'.' if !fraction => fraction = true,
                b'e' | b'E' if any => {
                    let text = std::str::from_utf8(rest.as_slice()).ok()?;
                    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
                    if unsigned.is_empty() || !unsigned.bytes().all(|b| b.is_ascii_digit()) {
                        return None;
                    }
                    exponent = i64::from(text.parse::<i32>().ok()?);
                    break;
                }
                _ => return None,
            }
        }
        any.then_some(Self {
            negative,
            digits,
            point: point + exponent,
        })
    }

    /// The number times 10^`scale`, rounded half up (away from zero), if it has at most 38 digits.
    #[must_use]
    pub fn unscaled(&self, scale: i8, rounding: RoundingMode) -> Option<i128> {
        let wanted = self.point + i64::from(scale);
        if self.digits.is_empty() || wanted < 0 {
            return Some(0);
        }
        if wanted > 39 {
            return None;
        }
        let wanted = wanted as usize;
        let mut value: i128 = 0;
        for n in 0..wanted {
            let digit = self.digits.get(n).copied().unwrap_or(0);
            value = value.checked_mul(10)?.checked_add(i128::from(digit))?;
        }
        let next = self.digits.get(wanted).copied().unwrap_or(0);
        let more = self
            .digits
            .get(wanted + 1..)
            .is_some_and(|rest| rest.iter().any(|d| *d != 0));
        let up = match rounding {
            RoundingMode::HalfUp => next >= 5,
            RoundingMode::HalfEven => next > 5 || (next == 5 && (more || value % 2 == 1)),
            RoundingMode::Down => false,
        };
        let value = value.checked_add(i128::from(up))?;
        Some(if self.negative { -value } else { value })
    }

    /// The number rounded to a number of places (powers of ten where negative), in a form that Rust
    /// parses.
    #[must_use]
    pub fn rounded(&self, places: i64, rounding: RoundingMode) -> String {
        let wanted = self.point + places;
        let kept = usize::try_from(wanted).unwrap_or(0).min(self.digits.len());
        let next = if wanted < 0 {
            0
        } else {
            self.digits.get(kept).copied().unwrap_or(0)
        };
        let more = self
            .digits
            .get(kept + 1..)
            .is_some_and(|rest| rest.iter().any(|d| *d != 0));
        let mut digits: Vec<u8> = self.digits.get(..kept).unwrap_or_default().to_vec();
        let odd = digits.last().is_some_and(|d| d % 2 == 1);
        let up = match rounding {
            RoundingMode::HalfUp => next >= 5,
            RoundingMode::HalfEven => next > 5 || (next == 5 && (more || odd)),
            RoundingMode::Down => false,
        };
        let mut point = self.point;
        if up {
            // The carry goes through nines, with an additional leading digit if all digits are
            // nines.
            let mut at = digits.len();
            loop {
                match at.checked_sub(1) {
                    Some(below) => {
                        at = below;
                        if let Some(digit) = digits.get_mut(at) {
                            if *digit < 9 {
                                *digit += 1;
                                break;
                            }
                            *digit = 0;
                        }
                    }
                    None => {
                        digits.insert(0, 1);
                        point += 1;
                        break;
                    }
                }
            }
        }
        // Java's decimals have no negative zero.
        if digits.iter().all(|d| *d == 0) {
            return "0".to_owned();
        }
        let mut out = String::with_capacity(digits.len() + 12);
        out.push_str(if self.negative { "-0." } else { "0." });
        out.extend(digits.iter().map(|d| char::from(b'0' + d)));
        let _ = write!(out, "0e{point}");
        out
    }

    /// Whether all digits after `scale` places are zeros.
    #[must_use]
    pub fn fits_scale(&self, scale: i8) -> bool {
        let kept = usize::try_from(self.point + i64::from(scale)).unwrap_or(0);
        self.digits.iter().skip(kept).all(|d| *d == 0)
    }
}

/// The rounding of a number to a scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoundingMode {
    /// Half away from zero.
    HalfUp,
    /// Half to the even neighbour.
    HalfEven,
    /// Towards zero.
    Down,
}

/// Reads a decimal of a precision and scale, rounded half up.
///
/// # Errors
/// [`LiteralParseError`].
pub fn decimal(text: &str, precision: u8, scale: i8) -> Result<i128, LiteralParseError> {
    let written = DecimalDigits::parse(java_trim(text)).ok_or(LiteralParseError::Malformed)?;
    written
        .unscaled(scale, RoundingMode::HalfUp)
        .filter(|value| fits(*value, precision))
        .ok_or(LiteralParseError::OutOfRange)
}

/// Appends a decimal as `BigDecimal.toPlainString` writes it.
pub fn write_decimal(out: &mut String, unscaled: i128, scale: i8) {
    let scale = usize::from(scale.unsigned_abs());
    if unscaled < 0 {
        out.push('-');
    }
    let digits = unscaled.unsigned_abs().to_string();
    if scale == 0 {
        out.push_str(&digits);
        return;
    }
    match digits
        .len()
        .checked_sub(scale)
        .filter(|whole| *whole > 0)
        .and_then(|whole| digits.split_at_checked(whole))
    {
        Some((whole, fraction)) => {
            out.push_str(whole);
            out.push('.');
            out.push_str(fraction);
        }
        None => {
            out.push_str("0.");
            out.extend(std::iter::repeat_n('0', scale.saturating_sub(digits.len())));
            out.push_str(&digits);
        }
    }
}

/// Appends a decimal as `BigDecimal.toString` writes it: with an exponent when it is very small.
pub fn write_decimal_scientific(out: &mut String, unscaled: i128, scale: i8) {
    let digits = unscaled.unsigned_abs().to_string();
    let adjusted = digits.len() as i64 - 1 - i64::from(scale);
    if scale == 0 || adjusted >= -6 {
        return write_decimal(out, unscaled, scale);
    }
    if unscaled < 0 {
        out.push('-');
    }
    let (first, rest) = digits.split_at(1);
    out.push_str(first);
    if !rest.is_empty() {
        out.push('.');
        out.push_str(rest);
    }
    let _ = write!(out, "E{adjusted}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: f64) -> String {
        let mut out = String::new();
        write_double(&mut out, value);
        out
    }

    #[test]
    fn doubles_are_written_as_java_writes_them() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-1.5, "-1.5"),
            (100.0, "100.0"),
            (9_999_999.0, "9999999.0"),
            (1e7, "1.0E7"),
            (123_456_789.0, "1.23456789E8"),
            (0.001, "0.001"),
            (0.0001, "1.0E-4"),
            (0.012_5, "0.0125"),
            (1e23, "1.0E23"),
            (1_000_000_000_000_000.2, "1.0000000000000002E15"),
            (f64::from_bits(1), "4.9E-324"),
            (f64::MAX, "1.7976931348623157E308"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(shown(value), text);
        }
        let mut out = String::new();
        write_float(&mut out, 0.1);
        write_float(&mut out, f32::from_bits(1));
        write_float(&mut out, -16_777_216.0);
        assert_eq!(out, "0.11.4E-45-1.6777216E7");
    }

    #[test]
    fn integers_are_read_as_spark_reads_them() {
        for (text, strict, loose) in [
            (" 12\n", Ok(12), Ok(12)),
            ("+7", Ok(7), Ok(7)),
            ("1.9", Err(LiteralParseError::Malformed), Ok(1)),
            (".", Err(LiteralParseError::Malformed), Ok(0)),
            (
                "-",
                Err(LiteralParseError::Malformed),
                Err(LiteralParseError::Malformed),
            ),
            (
                "",
                Err(LiteralParseError::Malformed),
                Err(LiteralParseError::Malformed),
            ),
            (
                "1e3",
                Err(LiteralParseError::Malformed),
                Err(LiteralParseError::Malformed),
            ),
            ("-9223372036854775808", Ok(i64::MIN), Ok(i64::MIN)),
            (
                "9223372036854775808",
                Err(LiteralParseError::Malformed),
                Err(LiteralParseError::Malformed),
            ),
            (
                "1.x",
                Err(LiteralParseError::Malformed),
                Err(LiteralParseError::Malformed),
            ),
        ] {
            assert_eq!(integer(text, false), strict, "{text:?}");
            assert_eq!(integer(text, true), loose, "{text:?}");
        }
    }

    #[test]
    fn doubles_are_read_as_java_reads_them() {
        for (text, value) in [
            ("1e3", 1000.0),
            (" 1.5d ", 1.5),
            (".5", 0.5),
            ("5.", 5.0),
            ("-INF", f64::NEG_INFINITY),
            ("1e400", f64::INFINITY),
            ("-0x1.8p3", -12.0),
        ] {
            assert_eq!(double(text), Some(value), "{text:?}");
        }
        assert!(double("NaN").is_some_and(f64::is_nan));
        for text in [
            "", "abc", "1e", "0x10", "0x", "1 2", "d", ".", "infin", "1.5dd", "e5", "--1",
        ] {
            assert_eq!(double(text), None, "{text:?}");
        }
    }

    #[test]
    fn decimals_round_half_up_and_know_their_limits() {
        assert_eq!(decimal("1.005", 10, 2), Ok(101));
        assert_eq!(decimal("-1.005", 10, 2), Ok(-101));
        assert_eq!(decimal(" 1e3 ", 10, 2), Ok(100_000));
        assert_eq!(decimal("0.00049", 10, 2), Ok(0));
        assert_eq!(decimal(".5", 10, 0), Ok(1));
        assert_eq!(decimal("5e-1", 10, 0), Ok(1));
        assert_eq!(decimal("0.05", 10, 0), Ok(0));
        assert_eq!(
            decimal("100000000", 10, 2),
            Err(LiteralParseError::OutOfRange)
        );
        assert_eq!(
            decimal("99999999999999999999999999999999999999.5", 38, 0),
            Err(LiteralParseError::OutOfRange)
        );
        assert_eq!(decimal("1e400", 38, 0), Err(LiteralParseError::OutOfRange));
        assert_eq!(decimal("0e999999", 38, 0), Ok(0));
        for text in ["", ".", "1.2.3", "1e", "e1", "NaN", "1e99999999999"] {
            assert_eq!(
                decimal(text, 10, 2),
                Err(LiteralParseError::Malformed),
                "{text:?}"
            );
        }
    }

    #[test]
    fn decimals_are_written_plain_and_scientific() {
        for (unscaled, scale, plain, scientific) in [
            (12_345, 2, "123.45", "123.45"),
            (-5, 3, "-0.005", "-0.005"),
            (0, 10, "0.0000000000", "0E-10"),
            (12, 8, "0.00000012", "1.2E-7"),
            (7, 0, "7", "7"),
        ] {
            let (mut a, mut b) = (String::new(), String::new());
            write_decimal(&mut a, unscaled, scale);
            write_decimal_scientific(&mut b, unscaled, scale);
            assert_eq!((a.as_str(), b.as_str()), (plain, scientific));
        }
    }
}
