//! The part of a multi-part checkpoint that holds an action: Spark's hash of its path.
//!
//! Protocol: "Multi-part checkpoint". delta-spark hashes only the path, so all writers must do the
//! same.

use arrow_array::{StringViewArray, UInt32Array};

/// The part (from 0) of each path.
pub(super) fn parts_of(paths: &StringViewArray, parts: u32) -> UInt32Array {
    paths
        .iter()
        .map(|path| path.map(|path| part(hash(path.as_bytes()), parts)))
        .collect()
}

/// The part of actions without a path, whose hash is the seed.
pub(super) fn part_of_non_file_actions(parts: u32) -> u32 {
    part(SEED, parts)
}

const SEED: i32 = 42;

fn part(hash: i32, parts: u32) -> u32 {
    u32::try_from(i64::from(hash).rem_euclid(i64::from(parts.max(1)))).unwrap_or(0)
}

/// Murmur3 (x86, 32 bits) as implemented by Spark: bytes after the last full word are mixed in one
/// by one, as signed numbers.
fn hash(bytes: &[u8]) -> i32 {
    let mix = |hash: u32, word: u32| {
        let word = word
            .wrapping_mul(0xcc9e_2d51)
            .rotate_left(15)
            .wrapping_mul(0x1b87_3593);
        (hash ^ word)
            .rotate_left(13)
            .wrapping_mul(5)
            .wrapping_add(0xe654_6b64)
    };
    let (words, rest) = bytes.as_chunks::<4>();
    let mut hash = SEED.cast_unsigned();
    for word in words {
        hash = mix(hash, u32::from_le_bytes(*word));
    }
    for byte in rest {
        hash = mix(hash, i32::from(byte.cast_signed()).cast_unsigned());
    }
    hash ^= u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    (hash ^ (hash >> 16)).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_sparks() {
        // `SELECT hash('Spark'), hash('')`; the first is the example of Spark's documentation of
        // `hash`.
        assert_eq!(hash(b""), 142_593_372);
        assert_eq!(hash(b"Spark"), 228_093_765);
        assert_eq!((part(-1, 3), part(SEED, 10), part(5, 1)), (2, 2, 0));
    }
}
