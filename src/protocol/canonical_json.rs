//! The checksum of `_last_checkpoint`: JSON text -> canonical form -> MD5.
//!
//! The parser is written by hand because the canonical form keeps numbers as they are written and
//! refuses duplicate keys, both of which the JSON library hides.
//!
//! Protocol: "JSON checksum".

use std::collections::BTreeSet;
use std::fmt::Write;

use md5::{Digest, Md5};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The MD5 (lower-case hex) of the canonical form of a JSON object without its top-level
/// `checksum`; `None` for invalid JSON or duplicate keys.
#[must_use]
pub fn checksum(json: &str) -> Option<String> {
    let canonical = canonical(json)?;
    let mut out = String::with_capacity(32);
    for byte in Md5::digest(canonical.as_bytes()) {
        // Writing to a string cannot fail.
        let _ = write!(out, "{byte:02x}");
    }
    Some(out)
}

/// The canonical form, see [`checksum`].
///
/// ```
/// use deltafast::protocol::canonical_json::{canonical, checksum};
///
/// // White space and the order of keys do not matter.
/// assert_eq!(canonical(r#"{"b": 1, "a": "x"}"#), canonical(r#"{"a":"x","b":1}"#));
/// assert_eq!(checksum(r#"{"version": 1, "checksum": "old"}"#), checksum(r#"{"version": 1}"#));
/// ```
#[must_use]
pub fn canonical(json: &str) -> Option<String> {
    let mut pairs = Vec::new();
    walk(json, "", true, 0, &mut pairs)?;
    pairs.sort_unstable_by(|a: &(String, String), b| a.0.as_bytes().cmp(b.0.as_bytes()));
    let pairs: Vec<String> = pairs
        .into_iter()
        .map(|(path, value)| format!("{path}={value}"))
        .collect();
    Some(pairs.join(","))
}

/// The deepest nesting: values are walked by recursion. Hints of deltafast have less, see
/// `checkpoint::hint`.
const DEPTH: usize = 512;

fn walk(
    text: &str,
    path: &str,
    top: bool,
    depth: usize,
    out: &mut Vec<(String, String)>,
) -> Option<()> {
    if depth > DEPTH {
        return None;
    }
    let text = text.trim();
    let join = |part: &str| {
        if path.is_empty() {
            part.to_owned()
        } else {
            format!("{path}+{part}")
        }
    };
    match text.as_bytes().first()? {
        b'{' => {
            let mut seen = BTreeSet::new();
            for (key, value) in object(text)? {
                if !seen.insert(key.clone()) {
                    return None;
                }
                if top && key == "checksum" {
                    continue;
                }
                walk(&value, &join(&encoded(&key)), false, depth + 1, out)?;
            }
        }
        b'[' => {
            for (n, value) in array(text)?.into_iter().enumerate() {
                walk(&value, &join(&n.to_string()), false, depth + 1, out)?;
            }
        }
        b'"' => out.push((
            path.to_owned(),
            encoded(&serde_json::from_str::<String>(text).ok()?),
        )),
        _ => out.push((path.to_owned(), text.to_owned())),
    }
    Some(())
}

/// `"text"` with everything but unreserved characters percent-encoded.
fn encoded(text: &str) -> String {
    let mut out = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            // Writing to a string cannot fail.
            _ => _ = write!(out, "%{byte:02X}"),
        }
    }
    out.push('"');
    out
}

/// Keys and raw values in order, duplicates included.
fn object(text: &str) -> Option<Vec<(String, String)>> {
    struct Pairs;
    impl<'de> Visitor<'de> for Pairs {
        type Value = Vec<(String, String)>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut out = Vec::new();
            while let Some((key, value)) = map.next_entry::<String, Box<RawValue>>()? {
                out.push((key, value.get().to_owned()));
            }
            Ok(out)
        }
    }
    serde_json::Deserializer::from_str(text)
        .deserialize_map(Pairs)
        .ok()
}

/// Raw values in order.
fn array(text: &str) -> Option<Vec<String>> {
    struct Items;
    impl<'de> Visitor<'de> for Items {
        type Value = Vec<String>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an array")
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut out = Vec::new();
            while let Some(value) = seq.next_element::<Box<RawValue>>()? {
                out.push(value.get().to_owned());
            }
            Ok(out)
        }
    }
    serde_json::Deserializer::from_str(text)
        .deserialize_seq(Items)
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worked_example_of_the_protocol_holds() {
        let json = r#"{"k0":"'v 0'", "checksum": "adsaskfljadfkjadfkj", "k1":{"k2": 2, "k3": ["v3", [1, 2], {"k4": "v4", "k5": ["v5", "v6", "v7"]}]}}"#;
        assert_eq!(
            canonical(json).unwrap(),
            r#""k0"="%27v%200%27","k1"+"k2"=2,"k1"+"k3"+0="v3","k1"+"k3"+1+0=1,"k1"+"k3"+1+1=2,"k1"+"k3"+2+"k4"="v4","k1"+"k3"+2+"k5"+0="v5","k1"+"k3"+2+"k5"+1="v6","k1"+"k3"+2+"k5"+2="v7""#
        );
        assert_eq!(checksum(json).unwrap(), "6a92d155a59bf2eecbd4b4ec7fd1f875");
    }

    #[test]
    fn duplicate_keys_have_no_checksum() {
        assert_eq!(checksum(r#"{"a":1,"a":2}"#), None);
        assert_eq!(checksum(r#"{"a":{"b":1,"b":2}}"#), None);
    }
}
