//! `exp`, `ln`, `log10` and `pow`, bit for bit as Java's `StrictMath` computes them.
//!
//! Spark calls `StrictMath`, which is specified to be fdlibm (Sun Microsystems, freely
//! distributable): a set of algorithms whose results are within one unit in the last place, not the
//! nearest double. `StrictMath.exp(1)` is 2.7182818284590455, not `E`. A generated column that
//! Spark wrote must compare equal here, so the same reductions and polynomials are evaluated in the
//! same order, on every platform; the names of the coefficients are fdlibm's.
//!
//! Rejected: the platform's functions, which are more accurate but differ from Spark in one of ten
//! results, and between platforms.

// The coefficients are written as in fdlibm, with more digits than a double has.
#![allow(
    clippy::excessive_precision,
    clippy::many_single_char_names,
    clippy::unreadable_literal,
    clippy::approx_constant
)]

const LN2_HIGH: f64 = 6.93147180369123816490e-01;
const LN2_LOW: f64 = 1.90821492927058770002e-10;
const INV_LN2: f64 = 1.44269504088896338700e+00;
const TWO_54: f64 = 18_014_398_509_481_984.0;
const TWO_53: f64 = 9_007_199_254_740_992.0;

const P1: f64 = 1.66666666666666019037e-01;
const P2: f64 = -2.77777777770155933842e-03;
const P3: f64 = 6.61375632143793436117e-05;
const P4: f64 = -1.65339022054652515390e-06;
const P5: f64 = 4.13813679705723846039e-08;

/// The upper half of the bits, by which fdlibm classifies doubles.
fn high(x: f64) -> i32 {
    (x.to_bits() >> 32) as i32
}

fn low(x: f64) -> u32 {
    x.to_bits() as u32
}

fn with_high(x: f64, high: i32) -> f64 {
    f64::from_bits((x.to_bits() & 0xffff_ffff) | (u64::from(high as u32) << 32))
}

/// `x` with the lower half of its bits cleared.
fn head(x: f64) -> f64 {
    f64::from_bits(x.to_bits() & 0xffff_ffff_0000_0000)
}

/// The polynomial at the end of both `exp` and `pow`.
fn tail(t: f64) -> f64 {
    t * (P1 + t * (P2 + t * (P3 + t * (P4 + t * P5))))
}

/// `x` times 2^n, into the subnormals.
fn scale(x: f64, n: i32) -> f64 {
    let exponent = ((high(x) & 0x7ff0_0000) >> 20) + n;
    if exponent > 0 {
        with_high(x, high(x).wrapping_add(n << 20))
    } else {
        // The exponent plus 54, removed again by an exact power of two.
        with_high(x, high(x).wrapping_add((n + 54) << 20)) * (1.0 / TWO_54)
    }
}

pub(crate) fn exp(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x > 7.09782712893383973096e+02 {
        return f64::INFINITY;
    }
    if x < -7.45133219101941108420e+02 {
        return 0.0;
    }
    let bits = high(x) & 0x7fff_ffff;
    let negative = x < 0.0;
    let (reduced, hi, lo, k) = if bits > 0x3fd6_2e42 {
        let (hi, lo, k) = if bits < 0x3ff0_a2b2 {
            if negative {
                (x + LN2_HIGH, -LN2_LOW, -1)
            } else {
                (x - LN2_HIGH, LN2_LOW, 1)
            }
        } else {
            let k = (INV_LN2 * x + if negative { -0.5 } else { 0.5 }) as i32;
            let t = f64::from(k);
            (x - t * LN2_HIGH, t * LN2_LOW, k)
        };
        (hi - lo, hi, lo, k)
    } else if bits < 0x3e30_0000 {
        return 1.0 + x;
    } else {
        (x, 0.0, 0.0, 0)
    };
    let c = reduced - tail(reduced * reduced);
    if k == 0 {
        return 1.0 - ((reduced * c) / (c - 2.0) - reduced);
    }
    let y = 1.0 - ((lo - (reduced * c) / (2.0 - c)) - hi);
    if k >= -1021 {
        // 2^1024 is not a double, so 2^1023 is multiplied by two.
        if k == 1024 {
            y * 2.0 * f64::from_bits(0x7fe0_0000_0000_0000)
        } else {
            with_high(y, high(y).wrapping_add(k << 20))
        }
    } else {
        with_high(y, high(y).wrapping_add((k + 1000) << 20)) * 9.33263618503218878990e-302
    }
}

/// A positive number, normalised if it is subnormal, with its exponent; the logarithm itself for
/// limiting values.
fn exponent(x: f64) -> Result<(f64, i32), f64> {
    if x == 0.0 {
        return Err(f64::NEG_INFINITY);
    }
    if x < 0.0 || x.is_nan() {
        return Err(f64::NAN);
    }
    let (x, k) = if high(x) < 0x0010_0000 {
        (x * TWO_54, -54)
    } else {
        (x, 0)
    };
    let bits = high(x);
    if bits >= 0x7ff0_0000 {
        Err(x)
    } else {
        Ok((x, k + (bits >> 20) - 1023))
    }
}

/// The natural logarithm of a number above zero.
pub(crate) fn ln(x: f64) -> f64 {
    const LG1: f64 = 6.666666666666735130e-01;
    const LG2: f64 = 3.999999999940941908e-01;
    const LG3: f64 = 2.857142874366239149e-01;
    const LG4: f64 = 2.222219843214978396e-01;
    const LG5: f64 = 1.818357216161805012e-01;
    const LG6: f64 = 1.531383769920937332e-01;
    const LG7: f64 = 1.479819860511658591e-01;
    let (mut x, mut k) = match exponent(x) {
        Ok(parts) => parts,
        Err(limit) => return limit,
    };
    let mut bits = high(x);
    bits &= 0x000f_ffff;
    let i = (bits + 0x95f64) & 0x10_0000;
    x = with_high(x, bits | (i ^ 0x3ff0_0000));
    k += i >> 20;
    let f = x - 1.0;
    let dk = f64::from(k);
    if (0x000f_ffff & (2 + bits)) < 3 {
        if f == 0.0 {
            return if k == 0 {
                0.0
            } else {
                dk * LN2_HIGH + dk * LN2_LOW
            };
        }
        let r = f * f * (0.5 - 0.33333333333333333 * f);
        return if k == 0 {
            f - r
        } else {
            dk * LN2_HIGH - ((r - dk * LN2_LOW) - f)
        };
    }
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let t1 = w * (LG2 + w * (LG4 + w * LG6));
    let t2 = z * (LG1 + w * (LG3 + w * (LG5 + w * LG7)));
    let r = t2 + t1;
    if ((bits - 0x6147a) | (0x6b851 - bits)) > 0 {
        let half = 0.5 * f * f;
        if k == 0 {
            f - (half - s * (half + r))
        } else {
            dk * LN2_HIGH - ((half - (s * (half + r) + dk * LN2_LOW)) - f)
        }
    } else if k == 0 {
        f - s * (f - r)
    } else {
        dk * LN2_HIGH - ((s * (f - r) - dk * LN2_LOW) - f)
    }
}

/// The decimal logarithm of a number above zero.
pub(crate) fn log10(x: f64) -> f64 {
    const INV_LN10: f64 = 4.34294481903251816668e-01;
    const LOG10_2_HIGH: f64 = 3.01029995663611771306e-01;
    const LOG10_2_LOW: f64 = 3.69423907715893078616e-13;
    let (x, k) = match exponent(x) {
        Ok(parts) => parts,
        Err(limit) => return limit,
    };
    let bits = high(x);
    let i = i32::from(k < 0);
    let y = f64::from(k + i);
    let x = with_high(x, (bits & 0x000f_ffff) | ((0x3ff - i) << 20));
    let z = y * LOG10_2_LOW + INV_LN10 * ln(x);
    z + y * LOG10_2_HIGH
}

/// Parity of a double: 1 for an odd integer, 2 for an even one, 0 for any other number.
fn integer_parity(y: f64) -> i32 {
    let magnitude = y.abs();
    if magnitude >= TWO_53 {
        2
    } else if magnitude.fract() == 0.0 {
        if magnitude % 2.0 == 1.0 { 1 } else { 2 }
    } else {
        0
    }
}

pub(crate) fn pow(x: f64, y: f64) -> f64 {
    if y == 0.0 {
        return 1.0;
    }
    if x.is_nan() || y.is_nan() {
        return f64::NAN;
    }
    let magnitude = x.abs();
    let whole = if x.is_sign_negative() {
        integer_parity(y)
    } else {
        0
    };
    if y.is_infinite() {
        return if magnitude == 1.0 {
            f64::NAN
        } else if (magnitude > 1.0) == (y > 0.0) {
            f64::INFINITY
        } else {
            0.0
        };
    }
    if y == 1.0 {
        return x;
    }
    if y == -1.0 {
        return 1.0 / x;
    }
    if y == 2.0 {
        return x * x;
    }
    if y == 0.5 && !x.is_sign_negative() {
        return x.sqrt();
    }
    if magnitude.is_infinite() || magnitude == 0.0 || magnitude == 1.0 {
        let z = if y < 0.0 { 1.0 / magnitude } else { magnitude };
        return match (x.is_sign_negative(), whole) {
            (true, 0) if magnitude == 1.0 => f64::NAN,
            (true, 1) => -z,
            _ => z,
        };
    }
    if x < 0.0 && whole == 0 {
        return f64::NAN;
    }
    let sign = if x < 0.0 && whole == 1 { -1.0 } else { 1.0 };
    let (overflow, underflow) = (sign * f64::INFINITY, sign * 0.0);
    let (t1, t2) = if (high(y) & 0x7fff_ffff) > 0x41e0_0000 {
        let ix = high(magnitude);
        if ix < 0x3fef_ffff {
            return if y < 0.0 { overflow } else { underflow };
        }
        if ix > 0x3ff0_0000 {
            return if y > 0.0 { overflow } else { underflow };
        }
        log2_near_one(magnitude)
    } else {
        log2(magnitude)
    };
    let y1 = head(y);
    let p_l = (y - y1) * t1 + y * t2;
    let p_h = y1 * t1;
    exp2(p_h, p_l, sign, overflow, underflow)
}

/// The binary logarithm in two parts, of a number within 2^-20 of one.
fn log2_near_one(x: f64) -> (f64, f64) {
    const INV_LN2_HIGH: f64 = 1.44269502162933349609e+00;
    const INV_LN2_LOW: f64 = 1.92596299112661746887e-08;
    let t = x - 1.0;
    let w = (t * t) * (0.5 - t * (0.3333333333333333333333 - t * 0.25));
    let u = INV_LN2_HIGH * t;
    let v = t * INV_LN2_LOW - w * INV_LN2;
    let t1 = head(u + v);
    (t1, v - (t1 - u))
}

/// The binary logarithm in two parts.
fn log2(x: f64) -> (f64, f64) {
    const L1: f64 = 5.99999999999994648725e-01;
    const L2: f64 = 4.28571428578550184252e-01;
    const L3: f64 = 3.33333329818377432918e-01;
    const L4: f64 = 2.72728123808534006489e-01;
    const L5: f64 = 2.30660745775561754067e-01;
    const L6: f64 = 2.06975017800338417784e-01;
    const CP: f64 = 9.61796693925975554329e-01;
    const CP_HIGH: f64 = 9.61796700954437255859e-01;
    const CP_LOW: f64 = -7.02846165095275826516e-09;
    let (mut x, mut n) = (x, 0_i32);
    if high(x) < 0x0010_0000 {
        x *= TWO_53;
        n -= 53;
    }
    let mut ix = high(x);
    n += (ix >> 20) - 0x3ff;
    let j = ix & 0x000f_ffff;
    ix = j | 0x3ff0_0000;
    let upper = j > 0x3988e && j < 0xbb67a;
    if j >= 0xbb67a {
        n += 1;
        ix -= 0x0010_0000;
    }
    x = with_high(x, ix);
    let (base, dp_h, dp_l) = if upper {
        (1.5, 5.84962487220764160156e-01, 1.35003920212974897128e-08)
    } else {
        (1.0, 0.0, 0.0)
    };
    let u = x - base;
    let v = 1.0 / (x + base);
    let s = u * v;
    let s_h = head(s);
    let t_h = with_high(
        0.0,
        ((ix >> 1) | 0x2000_0000) + 0x0008_0000 + (i32::from(upper) << 18),
    );
    let t_l = x - (t_h - base);
    let s_l = v * ((u - s_h * t_h) - s_h * t_l);
    let s2 = s * s;
    let mut r = s2 * s2 * (L1 + s2 * (L2 + s2 * (L3 + s2 * (L4 + s2 * (L5 + s2 * L6)))));
    r += s_l * (s_h + s);
    let s2 = s_h * s_h;
    let t_h = head(3.0 + s2 + r);
    let t_l = r - ((t_h - 3.0) - s2);
    let u = s_h * t_h;
    let v = s_l * t_h + t_l * s;
    let p_h = head(u + v);
    let p_l = v - (p_h - u);
    let z_h = CP_HIGH * p_h;
    let z_l = CP_LOW * p_h + p_l * CP + dp_l;
    let t = f64::from(n);
    let t1 = head(((z_h + z_l) + dp_h) + t);
    (t1, z_l - (((t1 - t) - dp_h) - z_h))
}

/// 2 to the power of `p_h + p_l`.
fn exp2(p_h: f64, p_l: f64, sign: f64, overflow: f64, underflow: f64) -> f64 {
    const LG2: f64 = 6.93147180559945286227e-01;
    const LG2_HIGH: f64 = 6.93147182464599609375e-01;
    const LG2_LOW: f64 = -1.90465429995776804525e-09;
    const OVERFLOW_TAIL: f64 = 8.0085662595372944372e-17;
    let z = p_l + p_h;
    let (j, i) = (high(z), low(z));
    if j >= 0x4090_0000 {
        if j != 0x4090_0000 || i != 0 || p_l + OVERFLOW_TAIL > z - p_h {
            return overflow;
        }
    } else if (j & 0x7fff_ffff) >= 0x4090_cc00
        && (j != 0xc090_cc00_u32 as i32 || i != 0 || p_l <= z - p_h)
    {
        return underflow;
    }
    let bits = j & 0x7fff_ffff;
    let (mut n, mut p_h) = (0_i32, p_h);
    if bits > 0x3fe0_0000 {
        let k = (bits >> 20) - 0x3ff;
        n = j.wrapping_add(0x0010_0000 >> (k + 1));
        let k = ((n & 0x7fff_ffff) >> 20) - 0x3ff;
        let t = with_high(0.0, n & !(0x000f_ffff >> k));
        n = ((n & 0x000f_ffff) | 0x0010_0000) >> (20 - k);
        if j < 0 {
            n = -n;
        }
        p_h -= t;
    }
    let t = head(p_l + p_h);
    let u = t * LG2_HIGH;
    let v = (p_l - (t - p_h)) * LG2 + t * LG2_LOW;
    let z = u + v;
    let w = v - (z - u);
    let t1 = z - tail(z * z);
    let r = (z * t1) / (t1 - 2.0) - (w + z * w);
    sign * scale(1.0 - (r - z), n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_those_of_strict_math() {
        for (got, wanted) in [
            (exp(1.0), 2.7182818284590455),
            (exp(-745.0), 5e-324),
            (exp(709.7), 1.6549840276802644e308),
            (ln(3.0), 1.0986122886681096),
            (ln(1.0), 0.0),
            (log10(100.0), 2.0),
            (pow(2.0, 10.0), 1024.0),
            (pow(-2.0, 3.0), -8.0),
            (pow(2.0, -1074.0), 5e-324),
            (pow(0.0, -1.0), f64::INFINITY),
            (pow(-0.0, -3.0), f64::NEG_INFINITY),
            (pow(10.0, 400.0), f64::INFINITY),
        ] {
            assert_eq!(got, wanted);
        }
        assert!(
            pow(1.0, f64::INFINITY).is_nan()
                && pow(-8.0, 1.0 / 3.0).is_nan()
                && pow(1.0, f64::NAN).is_nan()
        );
        assert_eq!(pow(f64::NAN, 0.0), 1.0);
    }
}
