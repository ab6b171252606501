//! Decimal numbers moved between scales, and rounded.

use std::cmp::Ordering;

use crate::expr::text::number::{self, DecimalDigits, RoundingMode, power_of_ten};

/// The decimal number that a double is written as; `None` for infinities and `NaN`.
pub(crate) fn double_digits(value: f64) -> Option<DecimalDigits> {
    if !value.is_finite() {
        return None;
    }
    DecimalDigits::parse(&number::double_digits(value))
}

/// An unscaled value converted to another scale, rounded half up; `None` if it exceeds 128 bits.
pub(crate) fn rescale(unscaled: i128, from: i8, to: i8) -> Option<i128> {
    if to >= from {
        return unscaled.checked_mul(power_of_ten(u32::from((to - from).unsigned_abs())));
    }
    let unit = power_of_ten(u32::from((from - to).unsigned_abs()));
    let (whole, rest) = (unscaled / unit, unscaled % unit);
    let up = rest.unsigned_abs() >= unit.unsigned_abs().div_ceil(2);
    Some(if !up {
        whole
    } else if unscaled < 0 {
        whole - 1
    } else {
        whole + 1
    })
}

/// `value` rounded to a multiple of 10^`places`.
pub(crate) fn round_to(value: i128, places: u32, rounding: RoundingMode) -> i128 {
    let Some(unit) = 10_i128.checked_pow(places) else {
        return 0;
    };
    let (whole, rest) = (value / unit, (value % unit).unsigned_abs());
    let twice = rest
        .checked_mul(2)
        .map_or(Ordering::Greater, |twice| twice.cmp(&unit.unsigned_abs()));
    let up = match (twice, rounding) {
        (Ordering::Greater, RoundingMode::HalfUp | RoundingMode::HalfEven)
        | (Ordering::Equal, RoundingMode::HalfUp) => true,
        (Ordering::Equal, RoundingMode::HalfEven) => whole % 2 != 0,
        _ => false,
    };
    let whole = if !up {
        whole
    } else if value < 0 {
        whole - 1
    } else {
        whole + 1
    };
    whole.saturating_mul(unit)
}
