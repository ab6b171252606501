//! Functions of strings and binary values. Positions and lengths of strings count code points.
//!
//! Cost: one pass over the values; results are built in one buffer, whose size is checked before it
//! grows.

use std::fmt::Write;
use std::sync::Arc;

use arrow_array::builder::Int32Builder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, Int32Array};
use memchr::memmem;

use crate::error::ErrorCode;
use crate::expr::eval::budget;
use crate::expr::eval::cast::range;
use crate::expr::eval::error::{EvalError, EvalResult, unexpected};
use crate::expr::eval::function_call::FunctionCall;
use crate::expr::eval::hash;
use crate::expr::eval::value::{BinaryColumn, BytesBuilder, StringArg};
use crate::expr::function::Function;
use crate::expr::scalar::hex_digit;
use crate::protocol::schema::DataType;

/// Builds strings row by row; `None` is null.
fn build_text(
    call: &FunctionCall<'_>,
    mut value: impl FnMut(usize, &mut BytesBuilder) -> EvalResult<Option<()>>,
) -> EvalResult {
    let mut out = BytesBuilder::new(call.rows);
    for row in 0..call.rows {
        if value(row, &mut out)?.is_none() {
            out.push_null()?;
        }
    }
    Ok(Arc::new(out.finish_text()?))
}

/// Maps strings to strings in which each code point takes at most `WIDEST` times its bytes.
fn map_text(call: &FunctionCall<'_>, write: impl Fn(&str, &mut Vec<u8>)) -> EvalResult {
    let texts = StringArg::new(call.arg(0)?)?;
    build_text(call, |row, out| {
        let Some(text) = texts.get(row) else {
            return Ok(None);
        };
        out.push_with(text.len().saturating_mul(WIDEST), |bytes| {
            write(text, bytes);
        })
        .map(Some)
    })
}

/// The largest growth of a string, in bytes per byte, when its case is changed: U+0390 has two
/// bytes, its upper case has six.
const WIDEST: usize = 3;

/// An integer argument by row.
struct IntArg<'a> {
    array: &'a Int32Array,
    scalar: bool,
}

impl<'a> IntArg<'a> {
    fn new(call: &'a FunctionCall<'_>, n: usize) -> EvalResult<Self> {
        let operand = call.arg(n)?;
        Ok(Self {
            array: operand.primitive::<Int32Type>()?,
            scalar: operand.scalar,
        })
    }

    fn get(&self, row: usize) -> Option<i32> {
        let index = if self.scalar { 0 } else { row };
        self.array.is_valid(index).then(|| self.array.value(index))
    }
}

fn integers(call: &FunctionCall<'_>, mut value: impl FnMut(usize) -> Option<i64>) -> ArrayRef {
    let mut out = Int32Builder::with_capacity(call.rows);
    for row in 0..call.rows {
        out.append_option(value(row).map(|v| i32::try_from(v).unwrap_or(i32::MAX)));
    }
    Arc::new(out.finish())
}

/// The number of code points of a string.
fn count(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.chars().count()
    }
}

/// The byte where the `n`th code point begins, or the end.
fn offset(text: &str, n: usize) -> usize {
    if text.is_ascii() {
        n.min(text.len())
    } else {
        text.char_indices().nth(n).map_or(text.len(), |(at, _)| at)
    }
}

/// Spark's `substring(start, until)` in code points.
fn between(text: &str, start: i64, until: i64) -> &str {
    if until <= start {
        return "";
    }
    let at = |n: i64| offset(text, usize::try_from(n).unwrap_or(0));
    text.get(at(start)..at(until)).unwrap_or_default()
}

/// LENGTH and OCTET_LENGTH.
pub(crate) fn length(call: &FunctionCall<'_>) -> EvalResult {
    let operand = call.arg(0)?;
    if call.function == Function::Length && matches!(call.arg_type(0)?, DataType::String) {
        let texts = StringArg::new(operand)?;
        return Ok(integers(call, |row| {
            texts.get(row).map(|t| count(t) as i64)
        }));
    }
    let blobs =
        BinaryColumn::new(&operand.array).ok_or_else(|| unexpected(operand.array.data_type()))?;
    Ok(integers(call, |row| {
        (!operand.is_null(row)).then(|| blobs.get(operand.row(row)).len() as i64)
    }))
}

/// LOWER, UPPER, INITCAP, REVERSE of strings.
pub(crate) fn letters(call: &FunctionCall<'_>) -> EvalResult {
    match call.function {
        Function::Lower => map_text(call, |text, out| {
            if text.is_ascii() {
                out.extend(text.bytes().map(|b| b.to_ascii_lowercase()));
            } else {
                out.extend_from_slice(text.to_lowercase().as_bytes());
            }
        }),
        Function::Upper => map_text(call, |text, out| {
            if text.is_ascii() {
                out.extend(text.bytes().map(|b| b.to_ascii_uppercase()));
            } else {
                out.extend_from_slice(text.to_uppercase().as_bytes());
            }
        }),
        Function::InitCap => map_text(call, |text, out| {
            for (n, word) in text.split(' ').enumerate() {
                if n > 0 {
                    out.push(b' ');
                }
                let mut chars = word.chars();
                if let Some(first) = chars.next() {
                    let mut scratch = String::new();
                    push_title_case(first, &mut scratch);
                    // The rest is converted in the context of the word, for the final sigma; its
                    // first letter is replaced.
                    let lower = word.to_lowercase();
                    let skipped: usize = first.to_lowercase().map(char::len_utf8).sum();
                    scratch.push_str(lower.get(skipped..).unwrap_or_default());
                    out.extend_from_slice(scratch.as_bytes());
                }
            }
        }),
        _ => map_text(call, |text, out| {
            let mut scratch = [0; 4];
            for c in text.chars().rev() {
                out.extend_from_slice(c.encode_utf8(&mut scratch).as_bytes());
            }
        }),
    }
}

/// The title case of a letter: the upper case, except for digraphs, ligatures and scripts without
/// title case.
fn push_title_case(c: char, out: &mut String) {
    match c {
        'ŉ' => out.push_str("ʼN"),
        'Ǆ'..='ǆ' => out.push('ǅ'),
        'Ǉ'..='ǉ' => out.push('ǈ'),
        'Ǌ'..='ǌ' => out.push('ǋ'),
        'Ǳ'..='ǳ' => out.push('ǲ'),
        '\u{10d0}'..='\u{10fa}' | '\u{10fd}'..='\u{10ff}' => out.push(c),
        '\u{1f80}'..='\u{1f87}' | '\u{1f90}'..='\u{1f97}' | '\u{1fa0}'..='\u{1fa7}' => {
            out.extend(char::from_u32(c as u32 + 8));
        }
        '\u{1f88}'..='\u{1f8f}'
        | '\u{1f98}'..='\u{1f9f}'
        | '\u{1fa8}'..='\u{1faf}'
        | '\u{1fbc}'
        | '\u{1fcc}'
        | '\u{1ffc}' => out.push(c),
        '\u{1fb3}' | '\u{1fc3}' | '\u{1ff3}' => out.extend(char::from_u32(c as u32 + 9)),
        c => {
            let mut upper = c.to_uppercase();
            out.extend(upper.next());
            out.extend(upper.flat_map(char::to_lowercase));
        }
    }
}

/// TRIM, LTRIM, RTRIM; blanks are U+0020 alone.
pub(crate) fn trim(call: &FunctionCall<'_>) -> EvalResult {
    let texts = StringArg::new(call.arg(0)?)?;
    let set = if call.operands.len() > 1 {
        Some(StringArg::new(call.arg(1)?)?)
    } else {
        None
    };
    build_text(call, |row, out| {
        let Some(text) = texts.get(row) else {
            return Ok(None);
        };
        let trimmed = match &set {
            None => cut(call.function, text, |c| c == ' '),
            Some(set) => match set.get(row) {
                None => return Ok(None),
                Some(set) => cut(call.function, text, |c| set.contains(c)),
            },
        };
        out.push(trimmed.as_bytes()).map(Some)
    })
}

fn cut(function: Function, text: &str, blank: impl Fn(char) -> bool) -> &str {
    match function {
        Function::LeftTrim => text.trim_start_matches(blank),
        Function::RightTrim => text.trim_end_matches(blank),
        _ => text.trim_matches(blank),
    }
}

/// SUBSTRING, LEFT, RIGHT of strings or binary values.
pub(crate) fn substring(call: &FunctionCall<'_>) -> EvalResult {
    let operand = call.arg(0)?;
    let first = IntArg::new(call, 1)?;
    let second = if call.operands.len() > 2 {
        Some(IntArg::new(call, 2)?)
    } else {
        None
    };
    // Position and length as in SUBSTRING.
    let window = |row: usize| -> Option<(i64, i64)> {
        let n = i64::from(first.get(row)?);
        Some(match call.function {
            Function::Left => (1, n),
            Function::Right if n <= 0 => (1, 0),
            Function::Right => (-n, n),
            _ => (
                n,
                second
                    .as_ref()
                    .map_or(Some(i64::from(i32::MAX)), |s| s.get(row).map(i64::from))?,
            ),
        })
    };
    let bounds = |(position, length): (i64, i64), total: usize| {
        let start = match position {
            1.. => position - 1,
            0 => 0,
            _ => total as i64 + position,
        };
        (start, start + length)
    };
    if matches!(call.arg_type(0)?, DataType::String) {
        let texts = StringArg::new(operand)?;
        return build_text(call, |row, out| {
            let (Some(text), Some(window)) = (texts.get(row), window(row)) else {
                return Ok(None);
            };
            // Only positions from the end need the length.
            let (start, until) = bounds(window, if window.0 < 0 { count(text) } else { 0 });
            out.push(between(text, start, until).as_bytes()).map(Some)
        });
    }
    let blobs =
        BinaryColumn::new(&operand.array).ok_or_else(|| unexpected(operand.array.data_type()))?;
    let mut out = BytesBuilder::new(call.rows);
    for row in 0..call.rows {
        match window(row).filter(|_| !operand.is_null(row)) {
            None => out.push_null()?,
            Some((position, length)) => {
                let bytes = blobs.get(operand.row(row));
                out.push(slice(bytes, position as i32, length as i32))?;
            }
        }
    }
    Ok(Arc::new(out.finish_binary()))
}

/// SUBSTRING of binary values, in Java's 32-bit arithmetic.
fn slice(bytes: &[u8], position: i32, length: i32) -> &[u8] {
    let total = i32::try_from(bytes.len()).unwrap_or(i32::MAX);
    let start = match position {
        1.. if position > total => return &[],
        1.. => position - 1,
        0 => 0,
        _ => total.wrapping_add(position),
    };
    let end = if total.wrapping_sub(start) < length {
        total
    } else {
        start.wrapping_add(length)
    };
    let at = |n: i32| usize::try_from(n).unwrap_or(0);
    bytes.get(at(start)..at(end)).unwrap_or_default()
}

/// CONCAT of strings or binary values.
pub(crate) fn concat(call: &FunctionCall<'_>) -> EvalResult {
    let blobs = call
        .operands
        .iter()
        .map(|o| BinaryColumn::new(&o.array).ok_or_else(|| unexpected(o.array.data_type())))
        .collect::<EvalResult<Vec<_>>>()?;
    let mut out = BytesBuilder::new(call.rows);
    for row in 0..call.rows {
        if call.operands.iter().any(|o| o.is_null(row)) {
            out.push_null()?;
        } else {
            let length = call
                .operands
                .iter()
                .zip(&blobs)
                .map(|(operand, blob)| blob.get(operand.row(row)).len())
                .fold(0, usize::saturating_add);
            out.push_with(length, |bytes| {
                for (operand, blob) in call.operands.iter().zip(&blobs) {
                    bytes.extend_from_slice(blob.get(operand.row(row)));
                }
            })?;
        }
    }
    Ok(if matches!(call.result, DataType::Binary) {
        Arc::new(out.finish_binary())
    } else {
        Arc::new(out.finish_text()?)
    })
}

/// CONCAT_WS: nulls are ignored, elements of arrays are separate arguments.
pub(crate) fn concat_ws(call: &FunctionCall<'_>) -> EvalResult {
    enum Part<'a> {
        Text(StringArg<'a>),
        List(&'a crate::expr::eval::ColumnarValue, Vec<i32>, ArrayRef),
    }
    let separator = StringArg::new(call.arg(0)?)?;
    let mut parts = Vec::new();
    for operand in call.operands.iter().skip(1) {
        parts.push(match operand.array.as_list_opt::<i32>() {
            Some(list) => Part::List(
                operand,
                list.value_offsets().to_vec(),
                list.values().clone(),
            ),
            None => Part::Text(StringArg::new(operand)?),
        });
    }
    build_text(call, |row, out| {
        let Some(separator) = separator.get(row) else {
            return Ok(None);
        };
        let mut joined: Vec<u8> = Vec::new();
        let mut any = false;
        let mut add = |text: &str| -> EvalResult<()> {
            budget::reserve(
                (joined
                    .len()
                    .saturating_add(separator.len())
                    .saturating_add(text.len())) as u64,
            )?;
            if any {
                joined.extend_from_slice(separator.as_bytes());
            }
            any = true;
            joined.extend_from_slice(text.as_bytes());
            Ok(())
        };
        for part in &parts {
            match part {
                Part::Text(text) => {
                    if let Some(text) = text.get(row) {
                        add(text)?;
                    }
                }
                Part::List(operand, offsets, values) => {
                    if !operand.is_null(row) {
                        let texts = crate::expr::eval::value::StringColumn::new(values)?;
                        for item in range(offsets, operand.row(row)) {
                            if values.is_valid(item) {
                                add(texts.get(item))?;
                            }
                        }
                    }
                }
            }
        }
        out.push(&joined).map(Some)
    })
}

/// REPLACE.
pub(crate) fn replace(call: &FunctionCall<'_>) -> EvalResult {
    let (texts, wanted) = (StringArg::new(call.arg(0)?)?, StringArg::new(call.arg(1)?)?);
    let by = if call.operands.len() > 2 {
        Some(StringArg::new(call.arg(2)?)?)
    } else {
        None
    };
    build_text(call, |row, out| {
        let (Some(text), Some(wanted)) = (texts.get(row), wanted.get(row)) else {
            return Ok(None);
        };
        let by = match &by {
            None => "",
            Some(by) => match by.get(row) {
                Some(by) => by,
                None => return Ok(None),
            },
        };
        if wanted.is_empty() {
            return out.push(text.as_bytes()).map(Some);
        }
        let found = if by.len() > wanted.len() {
            text.matches(wanted).count()
        } else {
            0
        };
        let bound = found
            .saturating_mul(by.len().saturating_sub(wanted.len()))
            .saturating_add(text.len());
        out.push_with(bound, |bytes| {
            let mut from = 0;
            for (at, _) in text.match_indices(wanted) {
                bytes.extend_from_slice(text.get(from..at).unwrap_or_default().as_bytes());
                bytes.extend_from_slice(by.as_bytes());
                from = at + wanted.len();
            }
            bytes.extend_from_slice(text.get(from..).unwrap_or_default().as_bytes());
        })
        .map(Some)
    })
}

/// LPAD and RPAD.
pub(crate) fn pad(call: &FunctionCall<'_>) -> EvalResult {
    let (texts, lengths) = (StringArg::new(call.arg(0)?)?, IntArg::new(call, 1)?);
    let with = if call.operands.len() > 2 {
        Some(StringArg::new(call.arg(2)?)?)
    } else {
        None
    };
    build_text(call, |row, out| {
        let (Some(text), Some(length)) = (texts.get(row), lengths.get(row)) else {
            return Ok(None);
        };
        let with = match &with {
            None => " ",
            Some(with) => match with.get(row) {
                Some(with) => with,
                None => return Ok(None),
            },
        };
        let missing = i64::from(length) - count(text) as i64;
        let Some(missing) = usize::try_from(missing)
            .ok()
            .filter(|m| *m > 0 && !with.is_empty())
        else {
            return out
                .push(between(text, 0, i64::from(length)).as_bytes())
                .map(Some);
        };
        let (times, left) = (missing / count(with), missing % count(with));
        let rest = between(with, 0, left as i64);
        let bound = times
            .saturating_mul(with.len())
            .saturating_add(rest.len())
            .saturating_add(text.len());
        out.push_with(bound, |bytes| {
            if call.function == Function::RightPad {
                bytes.extend_from_slice(text.as_bytes());
            }
            repeat_into(bytes, with, times);
            bytes.extend_from_slice(rest.as_bytes());
            if call.function == Function::LeftPad {
                bytes.extend_from_slice(text.as_bytes());
            }
        })
        .map(Some)
    })
}

/// REPEAT.
pub(crate) fn repeat(call: &FunctionCall<'_>) -> EvalResult {
    let (texts, times) = (StringArg::new(call.arg(0)?)?, IntArg::new(call, 1)?);
    build_text(call, |row, out| {
        let (Some(text), Some(times)) = (texts.get(row), times.get(row)) else {
            return Ok(None);
        };
        let times = usize::try_from(times).unwrap_or(0);
        out.push_with(text.len().saturating_mul(times), |bytes| {
            repeat_into(bytes, text, times);
        })
        .map(Some)
    })
}

fn repeat_into(out: &mut Vec<u8>, text: &str, times: usize) {
    let (start, length) = (out.len(), text.len() * times);
    if length > 0 {
        out.extend_from_slice(text.as_bytes());
    }
    // By doubling: a short string that is repeated often is copied in blocks.
    while out.len() - start < length {
        let made = out.len() - start;
        out.extend_from_within(start..start + made.min(length - made));
    }
}

/// The position of `wanted` from code point `start`, both from 0.
fn position(text: &str, wanted: &str, start: usize) -> Option<usize> {
    if wanted.is_empty() {
        return Some(0);
    }
    let from = offset(text, start);
    let at = from + memmem::find(text.as_bytes().get(from..)?, wanted.as_bytes())?;
    text.get(..at).map(count)
}

/// INSTR and LOCATE.
pub(crate) fn find(call: &FunctionCall<'_>) -> EvalResult {
    if call.function == Function::Instr {
        let (texts, wanted) = (StringArg::new(call.arg(0)?)?, StringArg::new(call.arg(1)?)?);
        return Ok(integers(call, |row| {
            Some(position(texts.get(row)?, wanted.get(row)?, 0).map_or(0, |n| n as i64 + 1))
        }));
    }
    let (wanted, texts) = (StringArg::new(call.arg(0)?)?, StringArg::new(call.arg(1)?)?);
    let starts = if call.operands.len() > 2 {
        Some(IntArg::new(call, 2)?)
    } else {
        None
    };
    Ok(integers(call, |row| {
        // A null start gives 0, whatever the other arguments.
        let Some(start) = starts.as_ref().map_or(Some(1), |s| s.get(row)) else {
            return Some(0);
        };
        let (wanted, text) = (wanted.get(row)?, texts.get(row)?);
        Some(
            match usize::try_from(start).ok().and_then(|s| s.checked_sub(1)) {
                None => 0,
                Some(start) => position(text, wanted, start).map_or(0, |n| n as i64 + 1),
            },
        )
    }))
}

/// SPLIT_PART.
pub(crate) fn split_part(call: &FunctionCall<'_>) -> EvalResult {
    let (texts, separators, numbers) = (
        StringArg::new(call.arg(0)?)?,
        StringArg::new(call.arg(1)?)?,
        IntArg::new(call, 2)?,
    );
    build_text(call, |row, out| {
        let (Some(text), Some(separator), Some(number)) =
            (texts.get(row), separators.get(row), numbers.get(row))
        else {
            return Ok(None);
        };
        let nth = match number {
            0 => {
                return Err(EvalError::value(
                    ErrorCode::InvalidIndexOfZero,
                    "parts are counted from 1 or from -1, not from 0",
                ));
            }
            _ => number.unsigned_abs() as usize - 1,
        };
        let part = match (separator.is_empty(), number > 0) {
            (true, _) => (nth == 0).then_some(text),
            (false, true) => text.split(separator).nth(nth),
            // Parts are cut from the left in either case, which matters when separators overlap.
            (false, false) => text
                .split(separator)
                .count()
                .checked_sub(nth + 1)
                .and_then(|n| text.split(separator).nth(n)),
        };
        out.push(part.unwrap_or_default().as_bytes()).map(Some)
    })
}

/// HEX.
pub(crate) fn hex(call: &FunctionCall<'_>) -> EvalResult {
    let operand = call.arg(0)?;
    if matches!(call.arg_type(0)?, DataType::Long) {
        let values = operand.primitive::<Int64Type>()?;
        return build_text(call, |row, out| {
            let index = operand.row(row);
            if values.is_null(index) {
                Ok(None)
            } else {
                out.push(format!("{:X}", values.value(index)).as_bytes())
                    .map(Some)
            }
        });
    }
    let blobs =
        BinaryColumn::new(&operand.array).ok_or_else(|| unexpected(operand.array.data_type()))?;
    build_text(call, |row, out| {
        if operand.is_null(row) {
            return Ok(None);
        }
        let bytes = blobs.get(operand.row(row));
        out.push_with(bytes.len().saturating_mul(2), |out| {
            hex_into(out, bytes, b"0123456789ABCDEF");
        })
        .map(Some)
    })
}

fn hex_into(out: &mut Vec<u8>, bytes: &[u8], digits: &[u8; 16]) {
    for byte in bytes {
        let digit = |n: u8| digits.get(usize::from(n)).copied().unwrap_or(b'0');
        out.push(digit(byte >> 4));
        out.push(digit(byte & 15));
    }
}

/// UNHEX: null for a string that is not hexadecimal.
pub(crate) fn unhex(call: &FunctionCall<'_>) -> EvalResult {
    let texts = StringArg::new(call.arg(0)?)?;
    let mut out = BytesBuilder::new(call.rows);
    for row in 0..call.rows {
        match texts.get(row).and_then(unhexed) {
            Some(bytes) => out.push(&bytes)?,
            None => out.push_null()?,
        }
    }
    Ok(Arc::new(out.finish_binary()))
}

fn unhexed(text: &str) -> Option<Vec<u8>> {
    let digits = text.bytes().map(hex_digit).collect::<Option<Vec<u8>>>()?;
    // With an odd number of digits the first one is a byte of its own.
    let (first, rest) = digits.split_at(digits.len() % 2);
    let mut out = first.to_vec();
    for pair in rest.chunks_exact(2) {
        if let [high, low] = pair {
            out.push((high << 4) | low);
        }
    }
    Some(out)
}

/// MD5 and SHA2.
pub(crate) fn digest(call: &FunctionCall<'_>) -> EvalResult {
    let operand = call.arg(0)?;
    let blobs =
        BinaryColumn::new(&operand.array).ok_or_else(|| unexpected(operand.array.data_type()))?;
    let widths = if call.function == Function::Sha2 {
        Some(IntArg::new(call, 1)?)
    } else {
        None
    };
    build_text(call, |row, out| {
        if operand.is_null(row) {
            return Ok(None);
        }
        let bytes = blobs.get(operand.row(row));
        let digest = match &widths {
            None => Some(hash::md5(bytes)),
            Some(widths) => widths.get(row).and_then(|bits| hash::sha2(bytes, bits)),
        };
        let Some(digest) = digest else {
            return Ok(None);
        };
        let mut text = String::with_capacity(digest.len() * 2);
        for byte in digest {
            let _ = write!(text, "{byte:02x}");
        }
        out.push(text.as_bytes()).map(Some)
    })
}
