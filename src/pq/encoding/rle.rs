//! Parquet's run-length and bit-packing hybrid: levels and dictionary indices.
//!
//! Format: "RLE/Bit-Packing Hybrid" of the Parquet format's encodings. Runs are returned as runs,
//! so that a repeated value is never expanded and examined again.

use bytes::Bytes;

use crate::pq::encoding::bit_unpack::{WIDEST, unpack_groups};

/// The bytes end before the values do, or are not in the hybrid encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pq) struct RleDecodeError;

/// The next run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pq) enum RleRun {
    /// A repeated value with its count; already consumed.
    Repeated(u32, usize),
    /// A number of packed values, which [`HybridRleDecoder::unpack`] or [`HybridRleDecoder::bits`]
    /// consumes.
    BitPacked(usize),
}

/// A sequence of encoded runs.
#[derive(Debug, Clone)]
pub(in crate::pq) struct HybridRleDecoder {
    bytes: Bytes,
    /// The start of the next run.
    at: usize,
    width: usize,
    /// The value and remaining count of a run of one value.
    value: u32,
    repeats_left: usize,
    /// The start of a packed run, the index of the next value in it, and the remaining count.
    begins: usize,
    next: usize,
    packed: usize,
}

impl HybridRleDecoder {
    /// Values of `width` bits.
    pub fn new(bytes: Bytes, width: u8) -> Result<Self, RleDecodeError> {
        let width = usize::from(width);
        if width > WIDEST {
            return Err(RleDecodeError);
        }
        Ok(Self {
            bytes,
            at: 0,
            width,
            value: 0,
            repeats_left: 0,
            begins: 0,
            next: 0,
            packed: 0,
        })
    }

    /// Whether the last run has been begun and nothing follows it.
    pub fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// At most `most` values of one run.
    pub fn next_run(&mut self, most: usize) -> Result<RleRun, RleDecodeError> {
        while self.repeats_left == 0 && self.packed == 0 {
            self.header()?;
        }
        if self.repeats_left > 0 {
            let count = self.repeats_left.min(most);
            self.repeats_left -= count;
            return Ok(RleRun::Repeated(self.value, count));
        }
        Ok(RleRun::BitPacked(self.packed.min(most)))
    }

    fn header(&mut self) -> Result<(), RleDecodeError> {
        let mut header = 0_u64;
        for n in 0.. {
            let byte = *self.bytes.get(self.at).ok_or(RleDecodeError)?;
            self.at += 1;
            if n == 5 {
                return Err(RleDecodeError);
            }
            header |= u64::from(byte & 0x7f) << (7 * n);
            if byte & 0x80 == 0 {
                break;
            }
        }
        let count = usize::try_from(header >> 1).map_err(|_| RleDecodeError)?;
        let left = self.bytes.len() - self.at;
        if header & 1 == 0 {
            let bytes = self
                .bytes
                .get(self.at..self.at + self.width.div_ceil(8))
                .ok_or(RleDecodeError)?;
            self.value = bytes
                .iter()
                .rev()
                .fold(0, |value, byte| value << 8 | u32::from(*byte));
            self.at += bytes.len();
            self.repeats_left = count;
        } else {
            // Some writers omit trailing bytes of the last group that no value needs.
            let bytes = count
                .checked_mul(self.width)
                .ok_or(RleDecodeError)?
                .min(left);
            self.packed = count
                .checked_mul(8)
                .ok_or(RleDecodeError)?
                .min((bytes * 8).checked_div(self.width).unwrap_or(usize::MAX));
            (self.begins, self.next) = (self.at, 0);
            self.at += bytes;
        }
        Ok(())
    }

    /// The bits of `count` one-bit values of the current packed run, and the first one's index in
    /// them.
    pub fn bits(&mut self, count: usize) -> (&[u8], usize) {
        let from = self.next;
        self.next += count;
        self.packed -= count.min(self.packed);
        (
            self.bytes.get(self.begins..self.at).unwrap_or_default(),
            from,
        )
    }

    /// Unpacks values of the current packed run, which has enough of them.
    pub fn unpack(&mut self, out: &mut [u32]) {
        self.packed -= out.len().min(self.packed);
        let run = self.bytes.get(self.begins..self.at).unwrap_or_default();
        let mut out = out;
        while !out.is_empty() {
            let (group, skip) = (self.next / 8, self.next % 8);
            if skip == 0 && out.len() >= 8 {
                let whole = out.len() / 8 * 8;
                let (now, later) = out.split_at_mut(whole);
                unpack_groups(
                    run.get(group * self.width..).unwrap_or_default(),
                    self.width,
                    now,
                );
                self.next += whole;
                out = later;
                continue;
            }
            let mut eight = [0; 8];
            unpack_groups(
                run.get(group * self.width..).unwrap_or_default(),
                self.width,
                &mut eight,
            );
            let count = out.len().min(8 - skip);
            let (now, later) = out.split_at_mut(count);
            now.copy_from_slice(eight.get(skip..skip + count).unwrap_or_default());
            self.next += count;
            out = later;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Runs as they may be written: one value so many times, or groups of eight packed ones.
    fn encoded(runs: &[(bool, Vec<u32>)], width: usize) -> (Vec<u8>, Vec<u32>) {
        let (mut out, mut all) = (Vec::new(), Vec::new());
        let header = |out: &mut Vec<u8>, mut n: usize| {
            while n >= 0x80 {
                out.push(u8::try_from(n & 0x7f).unwrap() | 0x80);
                n >>= 7;
            }
            out.push(u8::try_from(n).unwrap());
        };
        for (packed, values) in runs {
            let mask = u32::try_from(u64::MAX >> (64 - width)).unwrap();
            if *packed {
                let values: Vec<u32> = values
                    .iter()
                    .cycle()
                    .take(values.len().div_ceil(8) * 8)
                    .map(|v| v & mask)
                    .collect();
                header(&mut out, ((values.len() / 8) << 1) | 1);
                let mut bits = vec![0_u8; values.len() * width / 8];
                for (n, value) in values.iter().enumerate() {
                    for bit in 0..width {
                        bits[(n * width + bit) / 8] |=
                            u8::from(value >> bit & 1 == 1) << ((n * width + bit) % 8);
                    }
                }
                out.extend(bits);
                all.extend(values);
            } else {
                let value = values[0] & mask;
                header(&mut out, values.len() << 1);
                out.extend(&value.to_le_bytes()[..width.div_ceil(8)]);
                all.extend(std::iter::repeat_n(value, values.len()));
            }
        }
        (out, all)
    }

    fn taken(
        hybrid: &mut HybridRleDecoder,
        mut count: usize,
        step: usize,
    ) -> Result<Vec<u32>, RleDecodeError> {
        let mut out = Vec::new();
        while count > 0 {
            let run = hybrid.next_run(count.min(step))?;
            let n = match run {
                RleRun::Repeated(value, n) => {
                    out.extend(std::iter::repeat_n(value, n));
                    n
                }
                RleRun::BitPacked(n) => {
                    let from = out.len();
                    out.resize(from + n, 0);
                    hybrid.unpack(&mut out[from..]);
                    n
                }
            };
            count -= n;
        }
        Ok(out)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 8 } else { 256 }))]

        #[test]
        fn every_value_comes_back_whatever_the_steps(
            width in 1..=32_usize,
            runs in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u32>(), 1..70)), 1..8),
            step in 1..40_usize,
        ) {
            let (bytes, values) = encoded(&runs, width);
            let mut hybrid = HybridRleDecoder::new(bytes.into(), u8::try_from(width).unwrap()).unwrap();
            prop_assert_eq!(taken(&mut hybrid, values.len(), step), Ok(values));
            prop_assert_eq!(hybrid.next_run(1), Err(RleDecodeError));
        }

        #[test]
        fn any_bytes_end_in_values_or_in_a_refusal(bytes in prop::collection::vec(any::<u8>(), 0..60), width in 0..=40_u8, step in 1..40_usize) {
            if let Ok(mut hybrid) = HybridRleDecoder::new(bytes.into(), width) {
                let _ = taken(&mut hybrid, 1000, step);
            }
        }
    }

    #[test]
    fn bits_are_given_as_they_stand() {
        let mut hybrid =
            HybridRleDecoder::new(Bytes::from_static(&[0b101, 0b1010_0110, 0b1111_0000]), 1)
                .unwrap();
        assert_eq!(hybrid.next_run(100), Ok(RleRun::BitPacked(16)));
        let (bits, from) = hybrid.bits(3);
        assert_eq!((bits, from), ([0b1010_0110, 0b1111_0000].as_slice(), 0));
        assert_eq!(hybrid.next_run(100), Ok(RleRun::BitPacked(13)));
        assert_eq!(hybrid.bits(13).1, 3);
        assert_eq!(hybrid.next_run(1), Err(RleDecodeError));
    }
}
