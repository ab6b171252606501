//! A forward-only reader of JSON text that has been checked to be UTF-8.
//!
//! A JSON library builds values; a commit of a hundred thousand lines needs spans of the text that
//! is already in memory. So this reader only finds where values begin and end, and checks the
//! grammar at the same time. Nesting costs one bit per level instead of stack, so no input can
//! overflow the stack.

use std::borrow::Cow;

/// The span of a string's content, between its quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StringSpan {
    pub(super) start: usize,
    pub(super) end: usize,
    /// Whether the content holds escapes.
    pub(super) escaped: bool,
}

/// The syntax error of a JSON text, in a few words.
pub(super) type JsonSyntaxError = &'static str;

pub(super) struct JsonCursor<'a> {
    text: &'a [u8],
    at: usize,
}

/// The greatest nesting depth that is accepted.
const DEPTH_LIMIT: usize = 1 << 20;

impl<'a> JsonCursor<'a> {
    pub(super) fn new(text: &'a [u8], at: usize) -> Self {
        Self { text, at }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn text(&self) -> &'a [u8] {
        self.text
    }

    #[inline]
    pub(super) fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    #[inline]
    pub(super) fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Consumes `byte` if it is next, after blanks.
    #[inline]
    pub(super) fn consume(&mut self, byte: u8) -> bool {
        self.skip_blanks();
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Consumes `literal` if it is next, with no blanks before it.
    #[inline]
    pub(super) fn consume_literal(&mut self, literal: &[u8]) -> bool {
        let found = self
            .text
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with(literal));
        self.at += if found { literal.len() } else { 0 };
        found
    }

    pub(super) fn consume_null(&mut self) -> bool {
        self.skip_blanks();
        self.consume_literal(b"null")
    }

    /// A string.
    #[inline]
    pub(super) fn string(&mut self) -> Result<StringSpan, JsonSyntaxError> {
        if !self.consume(b'"') {
            return Err("expected a string");
        }
        let start = self.at;
        let mut escaped = false;
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let step = memchr::memchr2(b'"', b'\\', rest).ok_or("a string does not end")?;
            if memchr::memchr(b'\n', rest.get(..step).unwrap_or_default()).is_some() {
                return Err("a string does not end on its line");
            }
            self.at += step;
            if self.peek() == Some(b'"') {
                let span = StringSpan {
                    start,
                    end: self.at,
                    escaped,
                };
                self.at += 1;
                return Ok(span);
            }
            escaped = true;
            self.at += 2;
        }
    }

    /// A string with many escaped quotes, such as JSON text inside JSON text.
    #[inline]
    pub(super) fn quoted_json(&mut self) -> Result<StringSpan, JsonSyntaxError> {
        if !self.consume(b'"') {
            return Err("expected a string");
        }
        let start = self.at;
        let rest = self.text.get(start..).unwrap_or_default();
        let length = find_unescaped_quote(rest).ok_or("a string does not end")?;
        if memchr::memchr(b'\n', rest.get(..length).unwrap_or_default()).is_some() {
            return Err("a string does not end on its line");
        }
        self.at = start + length + 1;
        Ok(StringSpan {
            start,
            end: start + length,
            escaped: true,
        })
    }

    /// `null` or a string.
    pub(super) fn opt_string(&mut self) -> Result<Option<StringSpan>, JsonSyntaxError> {
        if self.consume_null() {
            Ok(None)
        } else {
            self.string().map(Some)
        }
    }

    /// `null` or a string; numbers and booleans, which some writers put into string maps, become
    /// strings.
    #[inline]
    pub(super) fn opt_string_lossy(&mut self) -> Result<Option<StringSpan>, JsonSyntaxError> {
        self.skip_blanks();
        match self.peek() {
            Some(b'"') => self.string().map(Some),
            Some(b'n') => self.opt_string(),
            Some(b'{' | b'[') => Err("expected a string"),
            _ => self.skip_value().map(|(start, end)| {
                Some(StringSpan {
                    start,
                    end,
                    escaped: false,
                })
            }),
        }
    }

    /// `null` or an integer of 64 bits.
    #[inline]
    pub(super) fn opt_i64(&mut self) -> Result<Option<i64>, JsonSyntaxError> {
        if self.consume_null() {
            return Ok(None);
        }
        let negative = self.peek() == Some(b'-');
        self.at += usize::from(negative);
        let first = self.at;
        if self.peek() == Some(b'0') && self.text.get(first + 1).is_some_and(u8::is_ascii_digit) {
            return Err("a number begins with a zero");
        }
        let mut value: i64 = 0;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            let digit = i64::from(digit - b'0');
            value = value
                .checked_mul(10)
                .and_then(|v| {
                    if negative {
                        v.checked_sub(digit)
                    } else {
                        v.checked_add(digit)
                    }
                })
                .ok_or("an integer is beyond 64 bits")?;
            self.at += 1;
        }
        if self.at == first {
            return Err("expected an integer");
        }
        if let Some(b'.' | b'e' | b'E') = self.peek() {
            return Err("expected an integer, found a fraction");
        }
        Ok(Some(value))
    }

    /// `null`, `true` or `false`.
    pub(super) fn opt_bool(&mut self) -> Result<Option<bool>, JsonSyntaxError> {
        self.skip_blanks();
        if self.consume_literal(b"true") {
            Ok(Some(true))
        } else if self.consume_literal(b"false") {
            Ok(Some(false))
        } else if self.consume_literal(b"null") {
            Ok(None)
        } else {
            Err("expected true or false")
        }
    }

    /// Skips any value; returns the span of its text.
    pub(super) fn skip_value(&mut self) -> Result<(usize, usize), JsonSyntaxError> {
        self.skip_blanks();
        let start = self.at;
        // One entry for each open bracket: true for an object.
        let mut open: Vec<bool> = Vec::new();
        loop {
            self.skip_blanks();
            match self.peek().ok_or("the text ends early")? {
                b'{' => {
                    self.at += 1;
                    if !self.consume(b'}') {
                        open.push(true);
                        if open.len() > DEPTH_LIMIT {
                            return Err("the nesting is too deep");
                        }
                        self.key()?;
                        continue;
                    }
                }
                b'[' => {
                    self.at += 1;
                    if !self.consume(b']') {
                        open.push(false);
                        if open.len() > DEPTH_LIMIT {
                            return Err("the nesting is too deep");
                        }
                        continue;
                    }
                }
                b'"' => {
                    self.string()?;
                }
                b't' | b'f' | b'n' => {
                    if !(self.consume_literal(b"true")
                        || self.consume_literal(b"false")
                        || self.consume_literal(b"null"))
                    {
                        return Err("expected a value");
                    }
                }
                b'-' | b'0'..=b'9' => {
                    let rest = self.text.get(self.at..).unwrap_or_default();
                    self.at += number_length(rest).ok_or("a number is malformed")?;
                }
                _ => return Err("expected a value"),
            }
            // A value has ended: close the containers of which it was the last element.
            loop {
                let Some(object) = open.last().copied() else {
                    return Ok((start, self.at));
                };
                if self.consume(b',') {
                    if object {
                        self.key()?;
                    }
                    break;
                }
                if !self.consume(if object { b'}' } else { b']' }) {
                    return Err("expected `,` or a closing bracket");
                }
                open.pop();
            }
        }
    }

    /// A key and its colon.
    #[inline]
    pub(super) fn key(&mut self) -> Result<StringSpan, JsonSyntaxError> {
        let key = self.string()?;
        if self.consume(b':') {
            Ok(key)
        } else {
            Err("expected `:`")
        }
    }

    /// The members of an object, or `null`: `member` is called after each key and must consume the
    /// value.
    #[inline]
    pub(super) fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, StringSpan) -> Result<(), JsonSyntaxError>,
    ) -> Result<bool, JsonSyntaxError> {
        if !self.consume(b'{') {
            return if self.consume_null() {
                Ok(false)
            } else {
                Err("expected an object")
            };
        }
        if self.consume(b'}') {
            return Ok(true);
        }
        loop {
            let key = self.key()?;
            member(self, key)?;
            if self.consume(b',') {
                continue;
            }
            return if self.consume(b'}') {
                Ok(true)
            } else {
                Err("expected `,` or `}`")
            };
        }
    }

    /// A key with its escapes resolved.
    #[inline]
    pub(super) fn name(&self, span: StringSpan) -> Result<Cow<'a, [u8]>, JsonSyntaxError> {
        if span.escaped {
            unescape(self.slice(span)).map(|name| Cow::Owned(name.into_bytes()))
        } else {
            Ok(Cow::Borrowed(self.slice(span)))
        }
    }

    pub(super) fn slice(&self, span: StringSpan) -> &'a [u8] {
        self.text.get(span.start..span.end).unwrap_or_default()
    }
}

/// The length of the JSON number at the front; `None` if there is no number, or one with leading
/// zeros.
pub(super) fn number_length(text: &[u8]) -> Option<usize> {
    let digits = |from: usize| {
        text.get(from..)
            .unwrap_or_default()
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count()
    };
    let at_least_one = |from: usize| Some(digits(from)).filter(|count| *count > 0);
    let mut end = usize::from(text.first() == Some(&b'-'));
    let first = text.get(end);
    let whole = at_least_one(end)?;
    if first == Some(&b'0') && whole > 1 {
        return None;
    }
    end += whole;
    if text.get(end) == Some(&b'.') {
        end += 1 + at_least_one(end + 1)?;
    }
    if let Some(b'e' | b'E') = text.get(end) {
        let sign = usize::from(matches!(text.get(end + 1), Some(b'+' | b'-')));
        end += 1 + sign + at_least_one(end + 1 + sign)?;
    }
    Some(end)
}

/// The position of the first quote that may end a string: one after an even number of backslashes,
/// or none.
///
/// Eight bytes at a time: in the result, the high bit of a byte is set if the byte is a quote or a
/// backslash.
fn find_unescaped_quote(text: &[u8]) -> Option<usize> {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    const ONES: u64 = 0x0101_0101_0101_0101;
    // The high bit of each byte that equals `byte`, exactly.
    let equal = |word: u64, byte: u8| {
        let x = word ^ (ONES * u64::from(byte));
        !(((x & LOW) + LOW) | x | LOW)
    };
    let (words, tail) = text.as_chunks::<8>();
    let mut after_backslash = 0;
    for (n, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let quotes = equal(word, b'"');
        let backslashes = equal(word, b'\\');
        let candidates = quotes & !((backslashes << 8) | after_backslash);
        // Two backslashes in a row are rare; the quote after them is checked byte by byte.
        let doubled = backslashes & ((backslashes << 8) | after_backslash);
        if candidates | doubled != 0 {
            let from = n * 8;
            return find_quote_bytewise(text, from);
        }
        after_backslash = backslashes >> 56;
    }
    find_quote_bytewise(text, text.len() - tail.len())
}

/// The same byte by byte from `from` on, counting the backslashes before.
fn find_quote_bytewise(text: &[u8], from: usize) -> Option<usize> {
    let before = text.get(..from)?;
    let mut odd = before.iter().rev().take_while(|b| **b == b'\\').count() % 2 == 1;
    for (n, byte) in text.get(from..)?.iter().enumerate() {
        match byte {
            b'\\' => odd = !odd,
            b'"' if !odd => return Some(from + n),
            _ => odd = false,
        }
    }
    None
}

/// Resolves the escapes of a string's content.
pub(super) fn unescape(content: &[u8]) -> Result<String, JsonSyntaxError> {
    let mut quoted = Vec::with_capacity(content.len() + 2);
    quoted.push(b'"');
    quoted.extend_from_slice(content);
    quoted.push(b'"');
    serde_json::from_slice(&quoted)
        .map_err(|_| "a string has an invalid escape or control character")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skip(text: &str) -> Result<usize, JsonSyntaxError> {
        JsonCursor::new(text.as_bytes(), 0)
            .skip_value()
            .map(|(_, end)| end)
    }

    #[test]
    fn values_are_skipped_whole_or_refused() {
        for text in [
            "1",
            "-1.5e+3",
            "\"a\\\"b\"",
            "[]",
            "{}",
            r#"{"a":[1,{"b":null}],"c":"}"}"#,
            "[ [ ] , { } ]",
            "true",
        ] {
            assert_eq!(skip(text), Ok(text.len()), "{text}");
        }
        for text in [
            "",
            "{",
            "[1",
            r#"{"a"}"#,
            r#"{"a":1,}"#,
            "[1,]",
            "nul",
            "\"a",
            r#"{"a":1]"#,
        ] {
            assert!(skip(text).is_err(), "{text}");
        }
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert_eq!(skip(&deep), Ok(deep.len()));
    }

    #[test]
    fn quoted_json_ends_at_its_own_quote() {
        let text = br#""{\"a\":\"x\\\"y\",\"b\":\"\\\\\"}","z""#;
        let mut cursor = JsonCursor::new(text, 0);
        let span = cursor.quoted_json().unwrap();
        assert_eq!(
            unescape(cursor.slice(span)).unwrap(),
            r#"{"a":"x\"y","b":"\\"}"#
        );
        assert_eq!(cursor.peek(), Some(b','));
    }

    #[test]
    fn the_first_bare_quote_is_found_wherever_it_lies() {
        let naive = |text: &[u8]| {
            let mut odd = false;
            text.iter().position(|b| {
                let found = *b == b'"' && !odd;
                odd = *b == b'\\' && !odd;
                found
            })
        };
        // Every string of ten bytes of the three relevant kinds.
        for n in 0..3_usize.pow(10) {
            let text: Vec<u8> = (0..10)
                .scan(n, |left, _| {
                    let byte = b"a\\\""[*left % 3];
                    *left /= 3;
                    Some(byte)
                })
                .collect();
            assert_eq!(
                find_unescaped_quote(&text),
                naive(&text),
                "{:?}",
                String::from_utf8_lossy(&text)
            );
        }
    }

    #[test]
    fn integers_are_exact_or_refused() {
        let int = |t: &str| JsonCursor::new(t.as_bytes(), 0).opt_i64();
        assert_eq!(int("-9223372036854775808"), Ok(Some(i64::MIN)));
        assert!(int("9223372036854775808").is_err() && int("1.5").is_err() && int("x").is_err());
    }

    #[test]
    fn numbers_outside_the_grammar_are_refused() {
        for text in [
            "0",
            "-0",
            "10",
            "-7",
            "0.5",
            "-0.0e-0",
            "1E9",
            "1e+05",
            "120.0250E-10",
        ] {
            assert_eq!(skip(text), Ok(text.len()), "{text}");
            assert!(
                serde_json::from_str::<serde_json::Value>(text).is_ok(),
                "{text}"
            );
        }
        for text in [
            "00", "01", "-01", "007", "-", "--1", "1-2", "1.", ".5", "1.e5", "1e", "1e+", "1.5.2",
            "+1", "0x1", "1e5.5", "00.5",
        ] {
            let array = format!("[{text}]");
            assert!(skip(&array).is_err(), "{text}");
            assert!(
                serde_json::from_str::<serde_json::Value>(&array).is_err(),
                "{text}"
            );
        }
        let int = |t: &str| JsonCursor::new(t.as_bytes(), 0).opt_i64();
        assert_eq!(
            (int("0"), int("-0"), int("10")),
            (Ok(Some(0)), Ok(Some(0)), Ok(Some(10)))
        );
        for text in ["00", "01", "-00", "-01", "-"] {
            assert!(int(text).is_err(), "{text}");
        }
    }
}
