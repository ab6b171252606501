//! JSON that is nested deeper than the JSON library parses.
//!
//! The library refuses more than 127 levels, and a schema has three for each struct. Each level of
//! a deeper text is parsed for itself, with the values in it as raw text.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Levels that the JSON library parses.
const LIBRARY_LEVELS: usize = 127;

/// The levels of objects and arrays in a text; the text may be invalid.
#[must_use]
pub fn levels(text: &str) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' | b'[' => {
                open += 1;
                most = most.max(open);
            }
            b'}' | b']' => open = open.saturating_sub(1),
            b'"' => {
                while let Some(byte) = bytes.next() {
                    match byte {
                        b'\\' => _ = bytes.next(),
                        b'"' => break,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    most
}

/// Parses a text of any depth; the caller has checked its [`levels`], since values are walked by
/// recursion.
///
/// # Errors
/// Those of the JSON library.
pub fn parse(text: &str) -> serde_json::Result<Value> {
    if levels(text) <= LIBRARY_LEVELS {
        return serde_json::from_str(text);
    }
    let inner = |value: &RawValue| parse(value.get());
    if text.trim_start().starts_with('{') {
        let values: RawObject<'_> = serde_json::from_str(text)?;
        let pairs = values.0.into_iter();
        let pairs = pairs.map(|(key, value)| Ok((key, inner(value)?)));
        return pairs
            .collect::<serde_json::Result<Map<_, _>>>()
            .map(Value::Object);
    }
    let values: Vec<&RawValue> = serde_json::from_str(text)?;
    values.into_iter().map(inner).collect()
}

/// An object with its values as text, in order.
struct RawObject<'a>(Vec<(String, &'a RawValue)>);

impl<'de> serde::Deserialize<'de> for RawObject<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> serde::de::Visitor<'de> for Pairs {
            type Value = RawObject<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<RawObject<'de>, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(RawObject(pairs))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_counted_outside_of_strings() {
        for (text, expected) in [
            ("1", 0),
            (r#"{"a":[1,{"b":2}],"c":"[[[\"[["}"#, 3),
            ("[[", 2),
            ("\"[", 0),
        ] {
            assert_eq!(levels(text), expected, "{text}");
        }
    }

    #[test]
    fn texts_of_any_depth_are_parsed() {
        for depth in [1, 60, 126, 127, 128, 400] {
            let text = format!("{}1, 2.50{}", "{\"a\": [".repeat(depth), "]}".repeat(depth));
            let mut value = parse(&text).unwrap();
            for _ in 0..depth {
                value = value["a"][0].take();
            }
            assert_eq!(value, Value::from(1), "{depth}");
            assert!(parse(&text[..text.len() - 1]).is_err(), "{depth}");
            assert!(parse(&format!("{text},")).is_err(), "{depth}");
        }
    }
}
