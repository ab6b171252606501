//! String patterns: LIKE, RLIKE and substring searches.
//!
//! LIKE is split at its `%` once per pattern; the common shapes (`a%`, `%a`, `%a%`, no wildcard)
//! become byte searches. RLIKE takes literal patterns that mean the same in Java and in the `regex`
//! crate. A pattern with another meaning is refused by name while the tree is read, since a pattern
//! that nearly matches is worse than an error.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, Datum};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::DataType as Arrow;
use memchr::memmem;

use crate::error::{Error, ErrorCode, Result, shown};
use crate::expr::eval::columnar_value::ColumnarValue;
use crate::expr::eval::compare::joint_nulls;
use crate::expr::eval::error::{EvalError, EvalResult, unexpected};
use crate::expr::eval::function_call::FunctionCall;
use crate::expr::eval::value::{BinaryColumn, StringArg};
use crate::expr::function::Function;
use crate::expr::scalar::Scalar;
use crate::expr::tree::Expr;

/// Refuses patterns that are invalid or that the core cannot match as Spark does.
pub(crate) fn check(function: Function, args: &[Expr]) -> Result<()> {
    match (function, args) {
        (
            Function::Like,
            [
                _,
                Expr::Literal {
                    value: Scalar::Text(pattern),
                    ..
                },
                escape @ ..,
            ],
        ) => {
            let escape = match escape {
                [] => '\\',
                [
                    Expr::Literal {
                        value: Scalar::Text(escape),
                        ..
                    },
                ] => escape_char(escape).map_err(Error::invalid)?,
                _ => {
                    return Err(Error::unsupported(
                        "LIKE with an ESCAPE that is not a literal is not supported by the core",
                    ));
                }
            };
            LikePattern::new(pattern, escape)
                .map(|_| ())
                .map_err(Error::invalid)
        }
        (Function::Like, [_, _, Expr::Literal { .. }] | [_, _]) => Ok(()),
        (Function::Like, _) => Err(Error::unsupported(
            "LIKE with an ESCAPE that is not a literal is not supported by the core",
        )),
        (
            Function::RLike,
            [
                _,
                Expr::Literal {
                    value: Scalar::Null,
                    ..
                },
            ],
        ) => Ok(()),
        (
            Function::RLike,
            [
                _,
                Expr::Literal {
                    value: Scalar::Text(pattern),
                    ..
                },
            ],
        ) => translate(pattern).and_then(|p| compiles(&p, pattern)),
        (Function::RLike, _) => Err(Error::unsupported(
            "RLIKE with a pattern that is not a literal is not supported by the core",
        )),
        _ => Ok(()),
    }
}

fn escape_char(text: &str) -> std::result::Result<char, String> {
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(c), None) => Ok(c),
        _ => Err(format!(
            "the ESCAPE of LIKE must be one character, not '{}'",
            shown(text)
        )),
    }
}

/// A LIKE pattern: the pieces between its `%`.
#[derive(Debug)]
pub(crate) struct LikePattern {
    pieces: Vec<Vec<LikeToken>>,
    /// The literal string of each piece that has no `_`.
    literals: Vec<Option<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LikeToken {
    Char(char),
    Any,
}

impl LikePattern {
    pub(crate) fn new(pattern: &str, escape: char) -> std::result::Result<Self, String> {
        let mut pieces = vec![Vec::new()];
        let mut push = |token: Option<LikeToken>| match (token, pieces.last_mut()) {
            (Some(token), Some(piece)) => piece.push(token),
            _ => pieces.push(Vec::new()),
        };
        let mut chars = pattern.chars();
        while let Some(c) = chars.next() {
            if c == escape {
                match chars.next() {
                    Some(next) if next == '_' || next == '%' || next == escape => {
                        push(Some(LikeToken::Char(next)));
                    }
                    Some(next) => {
                        return Err(format!(
                            "[INVALID_FORMAT.ESC_IN_THE_MIDDLE] the escape character must not stand before '{next}' in the pattern '{}'",
                            shown(pattern)
                        ));
                    }
                    None => {
                        return Err(format!(
                            "[INVALID_FORMAT.ESC_AT_THE_END] the pattern '{}' ends with its escape character",
                            shown(pattern)
                        ));
                    }
                }
            } else {
                match c {
                    '%' => push(None),
                    '_' => push(Some(LikeToken::Any)),
                    c => push(Some(LikeToken::Char(c))),
                }
            }
        }
        let texts = pieces
            .iter()
            .map(|piece| {
                piece
                    .iter()
                    .map(|t| {
                        if let LikeToken::Char(c) = t {
                            Some(*c)
                        } else {
                            None
                        }
                    })
                    .collect::<Option<String>>()
            })
            .collect();
        Ok(Self {
            pieces,
            literals: texts,
        })
    }

    /// The literal prefix of every match, and whether the pattern is this prefix followed by one
    /// `%`.
    pub(crate) fn prefix(&self) -> (String, bool) {
        let mut out = String::new();
        let first = self.pieces.first().map_or(&[][..], Vec::as_slice);
        for token in first {
            match token {
                LikeToken::Char(c) => out.push(*c),
                LikeToken::Any => return (out, false),
            }
        }
        let only = matches!(self.pieces.as_slice(), [_, rest] if rest.is_empty());
        (out, only)
    }

    /// The only string that matches, if there are no wildcards.
    pub(crate) fn exact(&self) -> Option<&str> {
        match self.literals.as_slice() {
            [Some(text)] => Some(text),
            _ => None,
        }
    }

    pub(crate) fn matches(&self, value: &str) -> bool {
        match (self.pieces.as_slice(), self.literals.as_slice()) {
            (_, [Some(all)]) => value == all,
            (_, [Some(start), Some(end)]) => {
                value.len() >= start.len() + end.len()
                    && value.starts_with(start.as_str())
                    && value.ends_with(end.as_str())
            }
            ([only], _) => matches_here(only, value).is_some_and(str::is_empty),
            ([first, middle @ .., last], [_, texts @ .., _]) => {
                let Some(mut rest) = matches_here(first, value) else {
                    return false;
                };
                for (piece, text) in middle.iter().zip(texts) {
                    let found = match text {
                        Some(text) => memmem::find(rest.as_bytes(), text.as_bytes())
                            .and_then(|at| rest.get(at + text.len()..)),
                        None => first_match(piece, rest),
                    };
                    match found {
                        Some(tail) => rest = tail,
                        None => return false,
                    }
                }
                // The last piece must end the string.
                let length = last.len();
                let mut starts = rest.char_indices().rev().map(|(at, _)| at);
                let start = if length == 0 {
                    Some(rest.len())
                } else {
                    starts.nth(length - 1)
                };
                start
                    .and_then(|at| rest.get(at..))
                    .and_then(|tail| matches_here(last, tail))
                    .is_some_and(str::is_empty)
            }
            _ => false,
        }
    }
}

/// The rest of the string after a piece that it starts with.
fn matches_here<'a>(piece: &[LikeToken], text: &'a str) -> Option<&'a str> {
    let mut chars = text.chars();
    for token in piece {
        let c = chars.next()?;
        if let LikeToken::Char(wanted) = token
            && *wanted != c
        {
            return None;
        }
    }
    Some(chars.as_str())
}

fn first_match<'a>(piece: &[LikeToken], text: &'a str) -> Option<&'a str> {
    text.char_indices()
        .map(|(at, _)| at)
        .chain([text.len()])
        .find_map(|at| matches_here(piece, text.get(at..)?))
}

/// A Java regular expression in the dialect of the `regex` crate.
///
/// Accepted are literals, `.`, anchors at the ends of the whole pattern, groups, alternatives,
/// classes of ASCII characters and ranges, the classes `\d \w \s` and their negations, and greedy
/// or lazy quantifiers. Everything else has another meaning in that crate, or is not supported by
/// it.
fn translate(pattern: &str) -> Result<String> {
    let refuse = |what: &str| {
        Error::unsupported(format!(
            "the regular expression '{}' is not supported by the core: {what}",
            shown(pattern)
        ))
    };
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut chars = pattern.chars().peekable();
    let mut in_class = false;
    let mut class_start = false;
    while let Some(c) = chars.next() {
        let at_class_start = std::mem::take(&mut class_start);
        match (in_class, c) {
            (_, '\\') => match chars.next() {
                // Java's classes are ASCII.
                Some('d') => out.push_str(if in_class { "0-9" } else { "[0-9]" }),
                Some('w') => out.push_str(if in_class {
                    "0-9A-Za-z_"
                } else {
                    "[0-9A-Za-z_]"
                }),
                Some('s') => out.push_str(if in_class {
                    r"\t\n\x0B\f\r "
                } else {
                    r"[\t\n\x0B\f\r ]"
                }),
                Some('D') if !in_class => out.push_str("[^0-9]"),
                Some('W') if !in_class => out.push_str("[^0-9A-Za-z_]"),
                Some('S') if !in_class => out.push_str(r"[^\t\n\x0B\f\r ]"),
                Some(anchor @ ('A' | 'z')) if !in_class => out.extend(['\\', anchor]),
                Some('t') => out.push_str(r"\t"),
                Some('n') => out.push_str(r"\n"),
                Some('r') => out.push_str(r"\r"),
                Some('f') => out.push_str(r"\f"),
                Some(literal) if literal.is_ascii_punctuation() => {
                    out.push('\\');
                    out.push(literal);
                }
                Some(other) => return Err(refuse(&format!("`\\{other}`"))),
                None => return Err(refuse("it ends with a backslash")),
            },
            (true, ']') => {
                if at_class_start {
                    return Err(refuse("`]` as the first character of a class"));
                }
                in_class = false;
                out.push(']');
            }
            (true, '[') => return Err(refuse("`[` within a class")),
            // Doubled, they are set operators in one of the two dialects.
            (true, '&' | '~' | '-') if chars.peek() == Some(&c) => {
                return Err(refuse(&format!("`{c}{c}` within a class")));
            }
            (true, '^') if at_class_start => {
                class_start = true;
                out.push('^');
            }
            (true, c) => out.push(c),
            (false, '[') => {
                in_class = true;
                class_start = true;
                out.push('[');
            }
            // Java's dot excludes more line terminators.
            (false, '.') => out.push_str(r"[^\n\r\x{85}\x{2028}\x{2029}]"),
            (false, '(') => {
                out.push('(');
                if chars.peek() == Some(&'?') {
                    chars.next();
                    if chars.next() != Some(':') {
                        return Err(refuse("a group that begins with `(?`"));
                    }
                    out.push_str("?:");
                }
            }
            (false, '$') => {
                if chars.peek().is_some_and(|next| !matches!(next, ')' | '|')) {
                    return Err(refuse("`$` before the end"));
                }
                // Java's `$` also matches before a final line terminator.
                out.push_str(r"(?:\r\n|[\n\r\x{85}\x{2028}\x{2029}])?\z");
            }
            (false, '^') => out.push_str(r"\A"),
            (false, '*' | '+' | '?' | '}') => {
                out.push(c);
                if chars.peek() == Some(&'+') {
                    return Err(refuse("a possessive quantifier"));
                }
            }
            (false, '{') => {
                if !chars.peek().is_some_and(char::is_ascii_digit) {
                    return Err(refuse("`{` that is not a quantifier"));
                }
                out.push('{');
            }
            (false, c) => out.push(c),
        }
    }
    Ok(out)
}

fn compiles(translated: &str, pattern: &str) -> Result<()> {
    let nothing = arrow_array::StringArray::from(Vec::<&str>::new());
    arrow_string::regexp::regexp_is_match_scalar(&nothing, translated, None)
        .map(|_| ())
        .map_err(|_| {
            Error::unsupported(format!(
                "the regular expression '{}' is not supported by the core",
                shown(pattern)
            ))
        })
}

/// LIKE, RLIKE, STARTSWITH, ENDSWITH, CONTAINS.
pub(crate) fn call(call: &FunctionCall<'_>) -> EvalResult {
    let (value, pattern) = (call.arg(0)?, call.arg(1)?);
    let nulls = joint_nulls(&[value, pattern], call.rows);
    let valid = |row: usize| nulls.as_ref().is_none_or(|n| n.is_valid(row));
    let bits = match call.function {
        Function::Like => {
            let escape = match call.operands.get(2) {
                None => '\\',
                Some(escape) if escape.is_null(0) => {
                    return Ok(arrow_array::new_null_array(&Arrow::Boolean, call.rows));
                }
                Some(escape) => escape_char(StringArg::new(escape)?.get(0).unwrap_or("\\"))
                    .map_err(|what| EvalError::value(ErrorCode::InvalidArgument, what))?,
            };
            let (values, patterns) = (StringArg::new(value)?, StringArg::new(pattern)?);
            if pattern.scalar {
                let Some(text) = patterns.get(0) else {
                    return Ok(arrow_array::new_null_array(&Arrow::Boolean, call.rows));
                };
                let like = LikePattern::new(text, escape)
                    .map_err(|what| EvalError::value(ErrorCode::InvalidArgument, what))?;
                if let Some(found) = by_kernel(&like, value)? {
                    return Ok(Arc::new(found));
                }
                like_bits(&like, call.rows, &values, &valid)
            } else {
                let mut bits = arrow_buffer::BooleanBufferBuilder::new(call.rows);
                for row in 0..call.rows {
                    bits.append(match (values.get(row), patterns.get(row)) {
                        (Some(value), Some(text)) => LikePattern::new(text, escape)
                            .map_err(|what| EvalError::value(ErrorCode::InvalidArgument, what))?
                            .matches(value),
                        _ => false,
                    });
                }
                bits.finish()
            }
        }
        Function::RLike => {
            let patterns = StringArg::new(pattern)?;
            let Some(text) = patterns.get(0) else {
                return Ok(arrow_array::new_null_array(&Arrow::Boolean, call.rows));
            };
            let translated = translate(text)?;
            let array = &value.array;
            let matched = match array.data_type() {
                Arrow::Utf8 => arrow_string::regexp::regexp_is_match_scalar(
                    array.as_string::<i32>(),
                    &translated,
                    None,
                ),
                Arrow::LargeUtf8 => arrow_string::regexp::regexp_is_match_scalar(
                    array.as_string::<i64>(),
                    &translated,
                    None,
                ),
                Arrow::Utf8View => arrow_string::regexp::regexp_is_match_scalar(
                    array.as_string_view(),
                    &translated,
                    None,
                ),
                other => return Err(unexpected(other)),
            }?;
            matched.values().clone()
        }
        function => {
            let (a, b) = (
                BinaryColumn::new(&value.array),
                BinaryColumn::new(&pattern.array),
            );
            let (Some(values), Some(pieces)) = (a, b) else {
                return Err(unexpected(value.array.data_type()));
            };
            let finder = (pattern.scalar && !pattern.is_null(0) && function == Function::Contains)
                .then(|| memmem::Finder::new(pieces.get(0)));
            BooleanBuffer::collect_bool(call.rows, |row| {
                if !valid(row) {
                    return false;
                }
                let (text, piece) = (values.get(value.row(row)), pieces.get(pattern.row(row)));
                match (function, &finder) {
                    (Function::StartsWith, _) => text.starts_with(piece),
                    (Function::EndsWith, _) => text.ends_with(piece),
                    (_, Some(finder)) => finder.find(text).is_some(),
                    _ => memmem::find(text, piece).is_some(),
                }
            })
        }
    };
    Ok(Arc::new(masked(bits, nulls)))
}

/// Patterns that are a single search: kernels process whole columns, and for views mostly read only
/// the first bytes.
fn by_kernel(like: &LikePattern, value: &ColumnarValue) -> EvalResult<Option<BooleanArray>> {
    type Kernel =
        fn(&dyn Datum, &dyn Datum) -> std::result::Result<BooleanArray, arrow_schema::ArrowError>;
    let (text, kernel): (&str, Kernel) = match like.literals.as_slice() {
        _ if value.scalar => return Ok(None),
        [Some(all)] => (all, arrow_ord::cmp::eq),
        [Some(start), Some(end)] if end.is_empty() => (start, arrow_string::like::starts_with),
        [Some(start), Some(end)] if start.is_empty() => (end, arrow_string::like::ends_with),
        [Some(start), Some(middle), Some(end)] if start.is_empty() && end.is_empty() => {
            (middle, arrow_string::like::contains)
        }
        _ => return Ok(None),
    };
    let literal: ArrayRef = Arc::new(arrow_array::StringArray::from(vec![text]));
    let literal = ColumnarValue {
        array: arrow_cast::cast(&literal, value.array.data_type())?,
        scalar: true,
    };
    Ok(Some(kernel(value, &literal)?))
}

fn like_bits(
    like: &LikePattern,
    rows: usize,
    values: &StringArg<'_>,
    valid: &impl Fn(usize) -> bool,
) -> BooleanBuffer {
    BooleanBuffer::collect_bool(rows, |row| {
        valid(row) && values.get(row).is_some_and(|v| like.matches(v))
    })
}

fn masked(bits: BooleanBuffer, nulls: Option<NullBuffer>) -> BooleanArray {
    BooleanArray::new(bits, nulls)
}
