//! Digests: MD5 from its crate, SHA-2 (FIPS 180-4) implemented here, which saves a dependency for
//! two small loops.

use md5::{Digest, Md5};

use crate::process::RaceOnce;

pub(crate) fn md5(bytes: &[u8]) -> Vec<u8> {
    Md5::digest(bytes).to_vec()
}

/// The SHA-2 digest of a width in bits; 0 means 256. `None` for other widths.
pub(crate) fn sha2(bytes: &[u8], bits: i32) -> Option<Vec<u8>> {
    Some(match bits {
        224 => sha256(
            bytes,
            [
                0xc105_9ed8,
                0x367c_d507,
                0x3070_dd17,
                0xf70e_5939,
                0xffc0_0b31,
                0x6858_1511,
                0x64f9_8fa7,
                0xbefa_4fa4,
            ],
            28,
        ),
        0 | 256 => sha256(
            bytes,
            [
                0x6a09_e667,
                0xbb67_ae85,
                0x3c6e_f372,
                0xa54f_f53a,
                0x510e_527f,
                0x9b05_688c,
                0x1f83_d9ab,
                0x5be0_cd19,
            ],
            32,
        ),
        384 => sha512(
            bytes,
            [
                0xcbbb_9d5d_c105_9ed8,
                0x629a_292a_367c_d507,
                0x9159_015a_3070_dd17,
                0x152f_ecd8_f70e_5939,
                0x6733_2667_ffc0_0b31,
                0x8eb4_4a87_6858_1511,
                0xdb0c_2e0d_64f9_8fa7,
                0x47b5_481d_befa_4fa4,
            ],
            48,
        ),
        512 => sha512(
            bytes,
            [
                0x6a09_e667_f3bc_c908,
                0xbb67_ae85_84ca_a73b,
                0x3c6e_f372_fe94_f82b,
                0xa54f_f53a_5f1d_36f1,
                0x510e_527f_ade6_82d1,
                0x9b05_688c_2b3e_6c1f,
                0x1f83_d9ab_fb41_bd6b,
                0x5be0_cd19_137e_2179,
            ],
            64,
        ),
        _ => return None,
    })
}

/// The round constants: the first 64 bits of the fractions of the cube roots of the first 80
/// primes. The 32-bit variant takes the upper halves of the first 64.
fn constants() -> [u64; 80] {
    let mut out = [0; 80];
    let mut candidate: u128 = 2;
    for slot in &mut out {
        while (2..candidate)
            .take_while(|d| d * d <= candidate)
            .any(|d: u128| candidate.is_multiple_of(d))
        {
            candidate += 1;
        }
        *slot = cube_root_fraction(candidate);
        candidate += 1;
    }
    out
}

/// 64 bits of the fraction of a cube root, by bisection on whole numbers: the largest r with r^3 <=
/// n * 2^192.
fn cube_root_fraction(n: u128) -> u64 {
    let (mut low, mut high) = (0_u128, 8_u128 << 64);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if cube_is_at_most(middle, n) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low as u64
}

/// Whether r^3 <= n * 2^192 for r below 2^68, in limbs of 32 bits.
fn cube_is_at_most(r: u128, n: u128) -> bool {
    let limbs = |mut v: u128| {
        let mut out = Vec::new();
        while v > 0 {
            out.push((v & 0xffff_ffff) as u64);
            v >>= 32;
        }
        out
    };
    let product = |a: &[u64], b: &[u64]| {
        let mut out = vec![0_u64; a.len() + b.len() + 1];
        for (i, x) in a.iter().enumerate() {
            let mut carry = 0_u64;
            for (slot, y) in out
                .iter_mut()
                .skip(i)
                .zip(b.iter().chain(std::iter::repeat(&0)))
            {
                let sum = u128::from(*slot) + u128::from(*x) * u128::from(*y) + u128::from(carry);
                *slot = (sum & 0xffff_ffff) as u64;
                carry = (sum >> 32) as u64;
            }
        }
        out
    };
    let root = limbs(r);
    let cube = product(&product(&root, &root), &root);
    let mut bound = vec![0; 6];
    bound.extend(limbs(n));
    let length = cube.len().max(bound.len());
    let at = |v: &[u64], i: usize| v.get(i).copied().unwrap_or(0);
    for i in (0..length).rev() {
        match at(&cube, i).cmp(&at(&bound, i)) {
            std::cmp::Ordering::Less => return true,
            std::cmp::Ordering::Greater => return false,
            std::cmp::Ordering::Equal => {}
        }
    }
    true
}

fn round_constants() -> &'static [u64; 80] {
    static CONSTANTS: RaceOnce<[u64; 80]> = RaceOnce::new();
    CONSTANTS.get_or_make(constants)
}

/// The message with its padding, in blocks of a size.
fn padded(bytes: &[u8], block: usize) -> Vec<u8> {
    let length_bytes = block / 8;
    let mut out = bytes.to_vec();
    out.push(0x80);
    while out.len() % block != block - length_bytes {
        out.push(0);
    }
    let bits = (bytes.len() as u128) << 3;
    out.extend(bits.to_be_bytes().iter().skip(16 - length_bytes));
    out
}

macro_rules! sha {
    ($name:ident, $word:ty, $block:literal, $rounds:literal, $constant:expr, $big0:expr, $big1:expr, $small0:expr, $small1:expr) => {
        fn $name(bytes: &[u8], mut state: [$word; 8], length: usize) -> Vec<u8> {
            const WORD: usize = size_of::<$word>();
            let rotations = |x: $word, [a, b, c]: [u32; 3]| {
                x.rotate_right(a) ^ x.rotate_right(b) ^ x.rotate_right(c)
            };
            let shifted =
                |x: $word, [a, b, c]: [u32; 3]| x.rotate_right(a) ^ x.rotate_right(b) ^ (x >> c);
            for block in padded(bytes, $block).chunks_exact($block) {
                let mut schedule: Vec<$word> = block
                    .chunks_exact(WORD)
                    .map(|word| {
                        word.iter()
                            .fold(0, |value, byte| (value << 8) | <$word>::from(*byte))
                    })
                    .collect();
                while schedule.len() < $rounds {
                    let back = |n: usize| {
                        schedule
                            .len()
                            .checked_sub(n)
                            .and_then(|i| schedule.get(i))
                            .copied()
                            .unwrap_or(0)
                    };
                    let next = shifted(back(2), $small1)
                        .wrapping_add(back(7))
                        .wrapping_add(shifted(back(15), $small0))
                        .wrapping_add(back(16));
                    schedule.push(next);
                }
                let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
                for (word, constant) in schedule.iter().zip(round_constants()) {
                    let choice = (e & f) ^ (!e & g);
                    let majority = (a & b) ^ (a & c) ^ (b & c);
                    let first = h
                        .wrapping_add(rotations(e, $big1))
                        .wrapping_add(choice)
                        .wrapping_add($constant(*constant))
                        .wrapping_add(*word);
                    let second = rotations(a, $big0).wrapping_add(majority);
                    (h, g, f, e, d, c, b, a) = (
                        g,
                        f,
                        e,
                        d.wrapping_add(first),
                        c,
                        b,
                        a,
                        first.wrapping_add(second),
                    );
                }
                for (slot, value) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
                    *slot = slot.wrapping_add(value);
                }
            }
            state
                .iter()
                .flat_map(|word| word.to_be_bytes())
                .take(length)
                .collect()
        }
    };
}

sha!(
    sha256,
    u32,
    64,
    64,
    |c: u64| (c >> 32) as u32,
    [2, 13, 22],
    [6, 11, 25],
    [7, 18, 3],
    [17, 19, 10]
);
sha!(
    sha512,
    u64,
    128,
    80,
    |c: u64| c,
    [28, 34, 39],
    [14, 18, 41],
    [1, 8, 7],
    [19, 61, 6]
);

#[cfg(test)]
mod tests {
    use super::*;

    fn text(digest: Option<Vec<u8>>) -> String {
        digest.unwrap().iter().map(|b| format!("{b:02x}")).collect()
    }

    #[test]
    fn digests_are_those_of_the_standards() {
        assert_eq!(constants()[0], 0x428a_2f98_d728_ae22);
        assert_eq!(constants()[79], 0x6c44_198c_4a47_5817);
        assert_eq!(text(Some(md5(b"abc"))), "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(
            text(sha2(b"abc", 224)),
            "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"
        );
        assert_eq!(
            text(sha2(b"abc", 0)),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(
            text(sha2(b"", 256)),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
        assert_eq!(
            text(sha2(b"abc", 384)),
            "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7"
        );
        assert_eq!(
            text(sha2(b"abc", 512)),
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
        );
        let long = [b'a'; 200];
        assert_eq!(
            text(sha2(&long, 256)),
            "c2a908d98f5df987ade41b5fce213067efbcc21ef2240212a41e54b5e7c28ae5"
        );
        assert_eq!(sha2(b"abc", 100), None);
    }
}
