//! Z85 (ZeroMQ RFC 32): bytes <-> text, five characters for four bytes.

use crate::error::{Error, Result};

const ALPHABET: &[u8; 85] =
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

const NONE: u8 = 0xff;

#[allow(
    clippy::indexing_slicing,
    reason = "evaluated by the compiler, over constants"
)]
const DIGITS: [u8; 256] = {
    let mut digits = [NONE; 256];
    let mut n = 0;
    while n < ALPHABET.len() {
        digits[ALPHABET[n] as usize] = n as u8;
        n += 1;
    }
    digits
};

/// Decodes `text`, whose length must be a multiple of five.
///
/// ```
/// use deltafast::dv::z85;
///
/// let bytes = [0x86, 0x4f, 0xd2, 0x6f, 0xb5, 0x59, 0xf7, 0x5b];
/// assert_eq!(z85::decode("HelloWorld")?, bytes);
/// assert_eq!(z85::encode(&bytes), "HelloWorld");
/// # Ok::<(), deltafast::error::Error>(())
/// ```
///
/// # Errors
/// [`Error::Corrupt`] for other lengths, invalid characters and groups beyond 32 bits.
pub fn decode(text: &str) -> Result<Vec<u8>> {
    let (groups, rest) = text.as_bytes().as_chunks::<5>();
    if !rest.is_empty() {
        return Err(Error::corrupt(format!(
            "Z85 text of {} characters, which is not a multiple of five",
            text.len()
        )));
    }
    let mut out = Vec::with_capacity(groups.len() * 4);
    for group in groups {
        let mut value = 0_u64;
        for byte in group {
            let digit = DIGITS.get(usize::from(*byte)).copied().unwrap_or(NONE);
            if digit == NONE {
                return Err(Error::corrupt("a character that is not Z85"));
            }
            value = value * 85 + u64::from(digit);
        }
        let value =
            u32::try_from(value).map_err(|_| Error::corrupt("a Z85 group beyond 32 bits"))?;
        out.extend_from_slice(&value.to_be_bytes());
    }
    Ok(out)
}

/// Encodes `bytes`, padded with zeros to a multiple of four as delta-spark does.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(4) * 5);
    for chunk in bytes.chunks(4) {
        let mut group = [0; 4];
        group
            .iter_mut()
            .zip(chunk)
            .for_each(|(to, from)| *to = *from);
        let mut value = u32::from_be_bytes(group);
        let mut text = [0_u8; 5];
        for to in text.iter_mut().rev() {
            *to = ALPHABET.get((value % 85) as usize).copied().unwrap_or(b'0');
            value /= 85;
        }
        out.extend(text.iter().map(|byte| char::from(*byte)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_rfc() {
        let bytes = [0x86, 0x4f, 0xd2, 0x6f, 0xb5, 0x59, 0xf7, 0x5b];
        assert_eq!(encode(&bytes), "HelloWorld");
        assert_eq!(decode("HelloWorld").unwrap(), bytes);
    }

    #[test]
    fn foreign_text_is_refused() {
        for bad in ["abcd", "abc d", "#####", "ab\u{fc}d"] {
            assert!(decode(bad).is_err(), "{bad}");
        }
    }

    proptest::proptest! {
        #[test]
        fn bytes_survive_the_round_trip(bytes: Vec<u8>) {
            let decoded = decode(&encode(&bytes)).unwrap();
            proptest::prop_assert_eq!(&decoded[..bytes.len()], &bytes[..]);
            proptest::prop_assert!(decoded.len() - bytes.len() < 4);
        }
    }
}
