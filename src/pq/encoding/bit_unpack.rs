//! Bit-packed values -> numbers, eight at a time: eight values of so many bits fill as many bytes.
//!
//! Widths are known to the compiler, so that shifts are. With AVX2 a group takes a handful of
//! instructions, a quarter of the time of one value after the other.

/// The widest values.
pub(in crate::pq) const WIDEST: usize = 32;

/// Unpacks whole groups of eight; missing bytes count as zero.
pub(in crate::pq) fn unpack_groups(bytes: &[u8], width: usize, out: &mut [u32]) {
    macro_rules! by_width {
        ($($w:literal)*) => {
            match width {
                $($w => groups::<$w>(bytes, out),)*
                _ => out.fill(0),
            }
        };
    }
    by_width!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32);
}

fn groups<const W: usize>(bytes: &[u8], out: &mut [u32]) {
    // Values of whole bytes need no unpacking.
    match W {
        8 if bytes.len() >= out.len() => {
            return out
                .iter_mut()
                .zip(bytes)
                .for_each(|(value, byte)| *value = u32::from(*byte));
        }
        16 if bytes.len() >= out.len() * 2 => {
            return out
                .iter_mut()
                .zip(bytes.as_chunks().0)
                .for_each(|(value, bytes)| *value = u32::from(u16::from_le_bytes(*bytes)));
        }
        _ => {}
    }
    let done = unpack_vectorized::<W>(bytes, out);
    let mut at = done / 8 * W;
    for eight in out.get_mut(done..).unwrap_or_default().chunks_exact_mut(8) {
        // A value is read with the eight bytes from its first one, which reach beyond the group.
        match bytes.get(at..at + W + 8) {
            Some(window) => group::<W>(window, eight),
            None => {
                let mut window = [0; WIDEST + 8];
                let rest = bytes.get(at..).unwrap_or_default();
                let rest = rest.get(..W).unwrap_or(rest);
                if let Some(head) = window.get_mut(..rest.len()) {
                    head.copy_from_slice(rest);
                }
                group::<W>(&window, eight);
            }
        }
        at += W;
    }
}

#[inline]
fn group<const W: usize>(window: &[u8], eight: &mut [u32]) {
    let mask = u64::MAX >> (64 - W);
    for (n, value) in eight.iter_mut().enumerate() {
        let bit = n * W;
        let word = window
            .get(bit / 8..bit / 8 + 8)
            .and_then(|word| word.try_into().ok())
            .map_or(0, u64::from_le_bytes);
        #[allow(clippy::cast_possible_truncation, reason = "at most 32 bits are left")]
        {
            *value = (word >> (bit % 8) & mask) as u32;
        }
    }
}

/// Unpacks the first groups, where the processor supports it; returns the number of their values.
#[inline]
fn unpack_vectorized<const W: usize>(bytes: &[u8], out: &mut [u32]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if W <= avx2::WIDEST && std::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor supports AVX2.
        return unsafe { avx2::groups::<W>(bytes, out) };
    }
    let _ = (bytes, out);
    0
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{
        _mm_loadu_si128, _mm256_and_si256, _mm256_loadu_si256, _mm256_set_m128i, _mm256_set1_epi32,
        _mm256_shuffle_epi8, _mm256_srlv_epi32, _mm256_storeu_si256,
    };

    /// The widest values of which each is within four bytes, wherever it begins.
    pub(in crate::pq) const WIDEST: usize = 25;
    /// Bytes of half a register, which holds half of a group.
    const HALF: usize = 16;

    /// The positions of each value's four bytes in its half, and the shift to apply.
    struct Places {
        bytes: [u8; 2 * HALF],
        shifts: [u32; 8],
    }

    #[allow(
        clippy::cast_possible_truncation,
        reason = "places of a register are below 32"
    )]
    #[allow(clippy::indexing_slicing, reason = "the compiler runs it")]
    const fn places(width: usize) -> Places {
        let mut places = Places {
            bytes: [0; 2 * HALF],
            shifts: [0; 8],
        };
        let mut n = 0;
        while n < 8 {
            // The upper half of the register begins with the byte in which the fifth value does.
            let bit = if n < 4 {
                n * width
            } else {
                n * width - width / 2 * 8
            };
            places.shifts[n] = bit as u32 % 8;
            let mut byte = 0;
            while byte < 4 {
                places.bytes[4 * n + byte] = (bit / 8 + byte) as u8;
                byte += 1;
            }
            n += 1;
        }
        places
    }

    /// Unpacks groups as long as their registers are within `bytes`; returns the number of their
    /// values.
    #[target_feature(enable = "avx2")]
    pub(in crate::pq) fn groups<const W: usize>(bytes: &[u8], out: &mut [u32]) -> usize {
        let places = const { &places(W) };
        // SAFETY: both are as large as a register.
        let (take, shifts) = unsafe {
            (
                _mm256_loadu_si256(places.bytes.as_ptr().cast()),
                _mm256_loadu_si256(places.shifts.as_ptr().cast()),
            )
        };
        let mask = _mm256_set1_epi32((1 << W) - 1);
        let (mut at, mut done) = (0, 0);
        for eight in out.as_chunks_mut::<8>().0 {
            let Some(window) = bytes.get(at..at + W / 2 + HALF) else {
                break;
            };
            // SAFETY: the window has the bytes of both halves, and eight numbers fill a register.
            unsafe {
                let low = _mm_loadu_si128(window.as_ptr().cast());
                let high = _mm_loadu_si128(window.as_ptr().add(W / 2).cast());
                let words = _mm256_shuffle_epi8(_mm256_set_m128i(high, low), take);
                let values = _mm256_and_si256(_mm256_srlv_epi32(words, shifts), mask);
                _mm256_storeu_si256(eight.as_mut_ptr().cast(), values);
            }
            at += W;
            done += 8;
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 16 } else { 256 }))]

        #[test]
        fn groups_are_what_their_bits_say(width in 1..=WIDEST, bytes in prop::collection::vec(any::<u8>(), 0..400), groups in 0..20_usize) {
            let bit = |n: usize| bytes.get(n / 8).is_some_and(|byte| byte >> (n % 8) & 1 == 1);
            let value = |n: usize| (0..width).fold(0, |value, b| value | u32::from(bit(n * width + b)) << b);
            let mut out = vec![u32::MAX; groups * 8];
            unpack_groups(&bytes, width, &mut out);
            prop_assert_eq!(out, (0..groups * 8).map(value).collect::<Vec<_>>());
        }
    }
}
