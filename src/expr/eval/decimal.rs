//! Decimal arithmetic with the precision that Java's `BigDecimal` has in Spark, then converted to
//! the result's type.
//!
//! Spark multiplies to 38 significant digits and divides to 39 places before it rounds to the
//! result's scale; rounding twice changes the last digit, so both roundings are done here too. A
//! result that does not fit raises in ANSI mode and is null otherwise.
//!
//! Cost: 128 bits where both sides have the same scale, else 256.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::types::{Decimal128Type, Int64Type};
use arrow_buffer::i256;

use crate::error::ErrorCode;
use crate::expr::eval::decimal_scale::{rescale, round_to};
use crate::expr::eval::elementwise::{division_by_zero, map_with, zip_with};
use crate::expr::eval::error::{EvalError, EvalResult, unexpected};
use crate::expr::eval::function_call::FunctionCall;
use crate::expr::function::Function;
use crate::expr::text::number::{RoundingMode, fits, power_of_ten};
use crate::expr::tree::SqlType;
use crate::protocol::schema::DataType;

/// Significant digits of a product.
const PRODUCT_DIGITS: u32 = 38;
/// Places of a quotient.
const QUOTIENT_PLACES: i32 = 39;

fn wide(value: i128) -> i256 {
    i256::from_i128(value)
}

/// 10 to a power of at most 76.
fn wide_power(exponent: u32) -> Option<i256> {
    wide(10).checked_pow(exponent)
}

/// `value / 10^places` rounded half up.
fn divide_half_up(value: i256, places: u32) -> Option<i256> {
    let unit = wide_power(places)?;
    let (whole, rest) = (value.checked_div(unit)?, value.checked_rem(unit)?);
    let half = unit.checked_div(wide(2))?;
    let magnitude = if rest < i256::ZERO {
        rest.checked_neg()?
    } else {
        rest
    };
    if places == 0 || magnitude < half {
        return Some(whole);
    }
    if value < i256::ZERO {
        whole.checked_sub(i256::ONE)
    } else {
        whole.checked_add(i256::ONE)
    }
}

/// An unscaled value converted from one scale to another, rounded half up.
fn move_scale(value: i256, from: i32, to: i32) -> Option<i256> {
    match to.cmp(&from) {
        Ordering::Equal => Some(value),
        Ordering::Greater => value.checked_mul(wide_power((to - from).unsigned_abs())?),
        Ordering::Less if from - to > 76 => Some(i256::ZERO),
        Ordering::Less => divide_half_up(value, (from - to).unsigned_abs()),
    }
}

fn parameters(data_type: &DataType) -> EvalResult<(u8, i8)> {
    match data_type {
        DataType::Decimal(precision, scale) => Ok((*precision, *scale)),
        _ => Err(unexpected(&arrow_schema::DataType::Null)),
    }
}

/// `+ - * / % pmod div` of two decimals.
pub(crate) fn binary(call: &FunctionCall<'_>) -> EvalResult {
    let ((_, s1), (_, s2)) = (
        parameters(call.arg_type(0)?)?,
        parameters(call.arg_type(1)?)?,
    );
    let (s1, s2) = (i32::from(s1), i32::from(s2));
    let (function, ansi) = (call.function, call.settings.ansi);
    let divides = !matches!(
        function,
        Function::Add | Function::Subtract | Function::Multiply
    );
    if function == Function::IntegralDivide {
        let values = zip_with::<Decimal128Type, Decimal128Type, Int64Type>(call, |a, b| {
            if b == 0 {
                return if ansi {
                    Err(division_by_zero(function))
                } else {
                    Ok(None)
                };
            }
            let quotient = integral_quotient(a, s1, b, s2);
            // The low 64 bits, as `BigDecimal.longValue` returns them.
            match quotient
                .and_then(i256::to_i128)
                .and_then(|q| i64::try_from(q).ok())
            {
                Some(quotient) => Ok(Some(quotient)),
                None if ansi => Err(EvalError::value(
                    ErrorCode::NumericValueOutOfRange,
                    "the quotient cannot be represented as BIGINT",
                )),
                None => Ok(quotient.map(|q| q.to_parts().0 as i64)),
            }
        })?;
        return Ok(Arc::new(values));
    }
    let (precision, scale) = parameters(call.result)?;
    let to = i32::from(scale);
    let values = zip_with::<Decimal128Type, Decimal128Type, Decimal128Type>(call, |a, b| {
        if divides && b == 0 {
            return if ansi {
                Err(division_by_zero(function))
            } else {
                Ok(None)
            };
        }
        let value = match narrow(function, a, s1, b, s2, to) {
            Some(value) => Some(value),
            None => exact(function, a, s1, b, s2, to).and_then(i256::to_i128),
        };
        match value.filter(|v| fits(*v, precision)) {
            Some(value) => Ok(Some(value)),
            None if ansi => Err(out_of_range(call)),
            None => Ok(None),
        }
    })?;
    Ok(Arc::new(values.with_precision_and_scale(precision, scale)?))
}

/// The result at scale `to` in 128 bits, which is the usual case; `None` means that 256 bits are
/// needed.
fn narrow(function: Function, a: i128, s1: i32, b: i128, s2: i32, to: i32) -> Option<i128> {
    let scaled = |value: i128, by: i32| {
        10_i128
            .checked_pow(u32::try_from(by).ok()?)
            .and_then(|unit| value.checked_mul(unit))
    };
    let common = s1.max(s2);
    match function {
        Function::Add if common <= to => scaled(a, to - s1)?.checked_add(scaled(b, to - s2)?),
        Function::Subtract if common <= to => scaled(a, to - s1)?.checked_sub(scaled(b, to - s2)?),
        Function::Multiply => {
            let product = a
                .checked_mul(b)
                .filter(|p| fits(*p, PRODUCT_DIGITS as u8))?;
            let (from, to) = (i8::try_from(s1 + s2).ok()?, i8::try_from(to).ok()?);
            rescale(product, from, to)
        }
        Function::Divide => {
            let places = to + s2 - s1;
            let (dividend, divisor) = if places >= 0 {
                (scaled(a, places)?, b)
            } else {
                (a, scaled(b, -places)?)
            };
            let (whole, rest) = (
                dividend.checked_div(divisor)?,
                dividend.checked_rem(divisor)?.unsigned_abs(),
            );
            let (twice, divisor) = (rest.checked_mul(2)?, divisor.unsigned_abs());
            if twice < divisor {
                // Rounding to 39 places first may turn slightly less than a half into a half.
                let reach = 10_u128.checked_pow(u32::try_from(QUOTIENT_PLACES - to).ok()?);
                if reach.is_some_and(|reach| {
                    (divisor - twice)
                        .checked_mul(reach)
                        .is_some_and(|gap| gap <= divisor)
                }) {
                    return None;
                }
                return Some(whole);
            }
            whole.checked_add(if (a < 0) == (b < 0) { 1 } else { -1 })
        }
        Function::Remainder | Function::PositiveModulo if common == to => {
            let (x, y) = (scaled(a, to - s1)?, scaled(b, to - s2)?);
            let rest = x.checked_rem(y)?;
            if !fits(x / y, PRODUCT_DIGITS as u8) {
                return None;
            }
            if function == Function::PositiveModulo && rest < 0 {
                rest.checked_add(y)?.checked_rem(y)
            } else {
                Some(rest)
            }
        }
        _ => None,
    }
}

/// The result at scale `to`; `None` when it does not fit.
fn exact(function: Function, a: i128, s1: i32, b: i128, s2: i32, to: i32) -> Option<i256> {
    let common = s1.max(s2);
    let aligned = || {
        Some((
            move_scale(wide(a), s1, common)?,
            move_scale(wide(b), s2, common)?,
        ))
    };
    match function {
        Function::Add => {
            let (a, b) = aligned()?;
            move_scale(a.checked_add(b)?, common, to)
        }
        Function::Subtract => {
            let (a, b) = aligned()?;
            move_scale(a.checked_sub(b)?, common, to)
        }
        Function::Multiply => {
            let product = wide(a).checked_mul(wide(b))?;
            let digits = digits(product);
            let over = digits.saturating_sub(PRODUCT_DIGITS);
            let mut rounded = divide_half_up(product, over)?;
            let mut scale = s1 + s2 - over.cast_signed();
            if self::digits(rounded) > PRODUCT_DIGITS {
                // Rounding carried into one more digit, so the last digit is a zero.
                rounded = divide_half_up(rounded, 1)?;
                scale -= 1;
            }
            move_scale(rounded, scale, to)
        }
        Function::Divide => {
            let quotient = quotient(a, b, QUOTIENT_PLACES + s2 - s1)?;
            move_scale(quotient, QUOTIENT_PLACES, to)
        }
        _ => {
            // Java cannot compute the remainder when the quotient has more digits than the context.
            let remainder = |x: i256, y: i256| {
                let quotient = x.checked_div(y)?;
                if self::digits(quotient) > PRODUCT_DIGITS {
                    None
                } else {
                    x.checked_rem(y)
                }
            };
            let (x, y) = aligned()?;
            let rest = remainder(x, y)?;
            let rest = if function == Function::PositiveModulo && rest < i256::ZERO {
                remainder(rest.checked_add(y)?, y)?
            } else {
                rest
            };
            move_scale(rest, common, to)
        }
    }
}

/// The number of digits of a value.
fn digits(value: i256) -> u32 {
    let magnitude = if value < i256::ZERO {
        value.wrapping_neg()
    } else {
        value
    };
    if let Some(small) = magnitude.to_i128() {
        return small.checked_ilog10().map_or(0, |n| n + 1);
    }
    (38..77)
        .find(|n| wide_power(*n).is_none_or(|p| magnitude < p))
        .unwrap_or(77)
}

/// `a / b` to a number of places, rounded half up, by long division.
fn quotient(a: i128, b: i128, places: i32) -> Option<i256> {
    let negative = (a < 0) != (b < 0);
    let (dividend, divisor) = (a.unsigned_abs(), b.unsigned_abs());
    let (mut value, mut rest) = (i256::from_parts(dividend / divisor, 0), dividend % divisor);
    if places < 0 {
        // A negative number of places: integer digits are rounded away. The remainder below only
        // decides ties.
        let unit = wide_power(places.unsigned_abs())?;
        let (whole, below) = (value.checked_div(unit)?, value.checked_rem(unit)?);
        let up = below.checked_mul(wide(2))? >= unit;
        let value = if up {
            whole.checked_add(i256::ONE)?
        } else {
            whole
        };
        return if negative {
            value.checked_neg()
        } else {
            Some(value)
        };
    }
    for _ in 0..places {
        // The divisor has at most 38 digits, so ten times the remainder nearly always fits in
        // unsigned 128 bits; otherwise in 256.
        let (digit, next) = match rest.checked_mul(10) {
            Some(ten) => (ten / divisor, ten % divisor),
            None => {
                let ten = i256::from_parts(rest, 0).checked_mul(wide(10))?;
                let by = i256::from_parts(divisor, 0);
                (
                    ten.checked_div(by)?.to_parts().0,
                    ten.checked_rem(by)?.to_parts().0,
                )
            }
        };
        value = value
            .checked_mul(wide(10))?
            .checked_add(i256::from_parts(digit, 0))?;
        rest = next;
    }
    if rest >= divisor - rest {
        value = value.checked_add(i256::ONE)?;
    }
    if negative {
        value.checked_neg()
    } else {
        Some(value)
    }
}

/// `a div b`: the integer part of the quotient.
fn integral_quotient(a: i128, s1: i32, b: i128, s2: i32) -> Option<i256> {
    let common = s1.max(s2);
    move_scale(wide(a), s1, common)?.checked_div(move_scale(wide(b), s2, common)?)
}

/// Digits that negation keeps: Scala negates in a context of 34 digits, which is visible in Spark's
/// results.
const NEGATION_DIGITS: u32 = 34;

/// NEGATIVE and ABS.
pub(crate) fn unary(call: &FunctionCall<'_>) -> EvalResult {
    let (precision, scale) = parameters(call.result)?;
    let abs = call.function == Function::Abs;
    let values = map_with::<Decimal128Type, Decimal128Type>(call.arg(0)?, call.rows, |v| {
        if abs && v >= 0 {
            return Ok(Some(v));
        }
        let over = v
            .unsigned_abs()
            .checked_ilog10()
            .map_or(0, |n| n + 1)
            .saturating_sub(NEGATION_DIGITS);
        let value = if over > 0 {
            round_to(v.wrapping_neg(), over, RoundingMode::HalfEven)
        } else {
            v.wrapping_neg()
        };
        // Raised in every mode.
        if fits(value, precision) {
            Ok(Some(value))
        } else {
            Err(out_of_range(call))
        }
    })?;
    Ok(Arc::new(values.with_precision_and_scale(precision, scale)?))
}

fn out_of_range(call: &FunctionCall<'_>) -> EvalError {
    EvalError::value(
        ErrorCode::NumericValueOutOfRange,
        format!(
            "the result cannot be represented as {}",
            SqlType(call.result)
        ),
    )
}

/// ROUND and BROUND of decimals.
pub(crate) fn round(call: &FunctionCall<'_>, places: i32, rounding: RoundingMode) -> EvalResult {
    let (_, from) = parameters(call.arg_type(0)?)?;
    let (precision, to) = parameters(call.result)?;
    let ansi = call.settings.ansi;
    // With places after the point, the result's scale is the rounding position.
    let kept = if places < 0 { places } else { i32::from(to) };
    let shed = u32::try_from(i32::from(from).saturating_sub(kept)).unwrap_or(0);
    let values = map_with::<Decimal128Type, Decimal128Type>(call.arg(0)?, call.rows, |v| {
        let value = rescale(round_to(v, shed, rounding), from, to).filter(|v| fits(*v, precision));
        if value.is_none() && ansi {
            return Err(out_of_range(call));
        }
        Ok(value)
    })?;
    Ok(Arc::new(values.with_precision_and_scale(precision, to)?))
}

/// FLOOR and CEIL of decimals.
pub(crate) fn floor(call: &FunctionCall<'_>) -> EvalResult {
    let (_, from) = parameters(call.arg_type(0)?)?;
    let (precision, to) = parameters(call.result)?;
    let (unit, ansi) = (
        power_of_ten(u32::from(from.unsigned_abs())),
        call.settings.ansi,
    );
    let values = map_with::<Decimal128Type, Decimal128Type>(call.arg(0)?, call.rows, |v| {
        let whole = v.div_euclid(unit);
        let whole = if call.function == Function::Ceil && v.rem_euclid(unit) != 0 {
            whole + 1
        } else {
            whole
        };
        let value = rescale(whole, 0, to).filter(|v| fits(*v, precision));
        if value.is_none() && ansi {
            return Err(out_of_range(call));
        }
        Ok(value)
    })?;
    Ok(Arc::new(values.with_precision_and_scale(precision, to)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_rounded_at_the_last_place() {
        assert_eq!(quotient(1, 3, 4), Some(wide(3333)));
        assert_eq!(quotient(2, 3, 4), Some(wide(6667)));
        assert_eq!(quotient(-1, 8, 2), Some(wide(-13)));
        assert_eq!(quotient(1250, 1, -2), Some(wide(13)));
        assert_eq!(quotient(10_i128.pow(37), 3, 39).map(digits), Some(76));
    }

    #[test]
    fn both_widths_give_the_same_result() {
        use Function as F;
        let values = [
            0,
            1,
            -1,
            3,
            7,
            -50,
            49_999,
            12_345_678_901,
            -99_999_999_999_999_999,
            10_i128.pow(30) + 1,
            10_i128.pow(37),
            -(10_i128.pow(38) - 1),
        ];
        for function in [
            F::Add,
            F::Subtract,
            F::Multiply,
            F::Divide,
            F::Remainder,
            F::PositiveModulo,
        ] {
            for (a, b) in values
                .iter()
                .flat_map(|a| values.iter().map(move |b| (*a, *b)))
                .filter(|(_, b)| *b != 0)
            {
                for (s1, s2, to) in [
                    (0, 0, 6),
                    (2, 4, 4),
                    (10, 2, 10),
                    (18, 0, 18),
                    (0, 18, 18),
                    (30, 8, 30),
                    (2, 2, 1),
                ] {
                    if let Some(narrow) =
                        narrow(function, a, s1, b, s2, to).filter(|v| fits(*v, 38))
                    {
                        assert_eq!(
                            exact(function, a, s1, b, s2, to),
                            Some(wide(narrow)),
                            "{function:?} {a} {s1} {b} {s2} {to}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn integers_round_to_tens() {
        for (value, places, up, even) in [
            (25, 1, 30, 20),
            (-25, 1, -30, -20),
            (35, 1, 40, 40),
            (24, 1, 20, 20),
            (5, 2, 0, 0),
            (50, 2, 100, 0),
            (7, 60, 0, 0),
        ] {
            assert_eq!(round_to(value, places, RoundingMode::HalfUp), up);
            assert_eq!(round_to(value, places, RoundingMode::HalfEven), even);
        }
    }

    #[test]
    fn digits_are_counted() {
        assert_eq!(
            (
                digits(wide(0)),
                digits(wide(9)),
                digits(wide(-10)),
                digits(wide(i128::MAX))
            ),
            (0, 1, 2, 39)
        );
    }
}
