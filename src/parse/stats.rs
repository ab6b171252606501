//! Statistics: JSON text of a million files -> typed columns of the leaves that are needed.
//!
//! The statistics of a table's files share a template: the same keys in the same order, only values
//! differ. The JSON reader reads the first string, and the literal pieces between its values become
//! a template. The next strings are compared with it piece by piece; the text between the pieces is
//! a value, which is parsed in place. A string that differs is read by the JSON reader, and its
//! shape becomes another template. Statistics may be escaped, as they are in a commit: the template
//! is then escaped too, and no string is ever unescaped on the fast path.
//!
//! Statistics never make a table unreadable: statistics that cannot be parsed are null, as if they
//! were absent.
//!
//! Protocol: "Per-file Statistics". Cost: one pass over the text, no allocation per file.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::builder::BooleanBufferBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimestampMicrosecondType,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Int64Array, PrimitiveArray, StringArray, StringViewArray,
    StructArray, make_array, new_null_array,
};
use arrow_buffer::{Buffer, OffsetBuffer};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::DataType as Arrow;
use rustc_hash::FxHashMap;

use super::batch::{StatsColumn, validity};
use super::cursor::{JsonCursor, JsonSyntaxError, StringSpan, number_length, unescape};
use crate::error::{Error, Result};
use crate::protocol::calendar::TimeZoneSpec;
use crate::protocol::partition_value::decimal;
use crate::protocol::schema::{DataType, MOST_NESTED_TYPES, StringLayout};
use crate::protocol::time;

/// A leaf column whose statistics are wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct StatsLeafColumn {
    /// Physical names from the table's root.
    pub path: Vec<String>,
    /// Type of the column.
    pub data_type: DataType,
    /// Whether minimum and maximum are wanted, in addition to the null count.
    pub bounds: bool,
}

/// Statistics of one leaf, one value per file, null where unknown.
#[derive(Debug, Clone)]
pub struct LeafStats {
    /// Lower bound, of the column's type.
    pub min: Option<ArrayRef>,
    /// Upper bound, of the column's type.
    pub max: Option<ArrayRef>,
    /// Number of nulls.
    pub null_count: Int64Array,
}

/// Statistics of a batch of files.
#[derive(Debug, Clone)]
pub struct FileStatsBatch {
    /// Rows in the data file, deleted ones included.
    pub num_records: Int64Array,
    /// Whether bounds are tight; null counts as true.
    pub tight_bounds: BooleanArray,
    /// In the requested order.
    pub leaves: Vec<LeafStats>,
}

impl FileStatsBatch {
    /// The rows for which `keep` is true.
    ///
    /// # Errors
    /// [`Error::Internal`] for a mask of another length.
    pub fn filter(&self, keep: &BooleanArray) -> Result<Self> {
        self.map_arrays(
            |arrays| match arrays {
                [array] => Ok(arrow_select::filter::filter(array.as_ref(), keep)?),
                _ => Err(Error::internal("one column at a time")),
            },
            &[],
        )
    }

    /// Concatenates statistics of the same leaves; `None` for an empty input.
    ///
    /// # Errors
    /// [`Error::Internal`] for different leaves.
    pub fn concat(all: &[&Self]) -> Result<Option<Self>> {
        let Some((first, rest)) = all.split_first() else {
            return Ok(None);
        };
        first
            .map_arrays(
                |arrays| {
                    Ok(arrow_select::concat::concat(
                        &arrays.iter().map(AsRef::as_ref).collect::<Vec<_>>(),
                    )?)
                },
                rest,
            )
            .map(Some)
    }

    /// Builds every column from the columns at the same position.
    fn map_arrays(
        &self,
        make: impl Fn(&[ArrayRef]) -> Result<ArrayRef>,
        rest: &[&Self],
    ) -> Result<Self> {
        let column = |pick: &dyn Fn(&Self) -> Option<ArrayRef>| -> Result<Option<ArrayRef>> {
            let arrays: Vec<ArrayRef> = std::iter::once(self)
                .chain(rest.iter().copied())
                .filter_map(pick)
                .collect();
            if arrays.is_empty() {
                Ok(None)
            } else {
                make(&arrays).map(Some)
            }
        };
        let long = |array: Option<ArrayRef>| {
            array
                .and_then(|a| a.as_primitive_opt::<Int64Type>().cloned())
                .ok_or_else(|| Error::internal("a count is missing"))
        };
        Ok(Self {
            num_records: long(column(&|s| Some(Arc::new(s.num_records.clone())))?)?,
            tight_bounds: column(&|s| Some(Arc::new(s.tight_bounds.clone())))?
                .and_then(|a| a.as_boolean_opt().cloned())
                .ok_or_else(|| Error::internal("a flag is missing"))?,
            leaves: (0..self.leaves.len())
                .map(|n| {
                    Ok(LeafStats {
                        min: column(&|s| s.leaves.get(n)?.min.clone())?,
                        max: column(&|s| s.leaves.get(n)?.max.clone())?,
                        null_count: long(column(&|s| {
                            Some(Arc::new(s.leaves.get(n)?.null_count.clone()))
                        })?)?,
                    })
                })
                .collect::<Result<_>>()?,
        })
    }
}

/// Whether bounds of this type are kept in statistics at all.
#[must_use]
pub fn has_bounds(data_type: &DataType) -> bool {
    data_type.is_primitive()
        && !matches!(
            data_type,
            DataType::Binary | DataType::Void | DataType::Spark(_)
        )
}

/// Approximate bytes of a leaf's statistics per file.
#[must_use]
pub fn width(leaf: &StatsLeafColumn) -> u64 {
    let bound = match leaf.data_type {
        _ if !leaf.bounds => 0,
        DataType::Boolean | DataType::Byte => 1,
        DataType::Short => 2,
        DataType::Integer | DataType::Float | DataType::Date => 4,
        DataType::Decimal(..) => 16,
        // An offset and a string of the usual length.
        DataType::String => 20,
        _ => 8,
    };
    2 * bound + 8
}

/// Parses the statistics of a batch.
///
/// # Errors
/// [`Error::Internal`] only: bad statistics are null.
pub fn parse(
    column: &StatsColumn,
    leaves: &[StatsLeafColumn],
    zone: TimeZoneSpec,
) -> Result<FileStatsBatch> {
    match column {
        StatsColumn::Json(texts) => Ok(from_json(texts, leaves, zone, false)),
        StatsColumn::EscapedJson(texts) => Ok(from_json(texts, leaves, zone, true)),
        StatsColumn::Parsed(parsed) => from_struct(parsed, leaves),
    }
}

/// Statistics of files that have none.
#[must_use]
pub fn unknown_stats(rows: usize, leaves: &[StatsLeafColumn]) -> FileStatsBatch {
    let bound = |leaf: &StatsLeafColumn| {
        leaf.bounds
            .then(|| new_null_array(&leaf.data_type.to_arrow(StringLayout::Plain), rows))
    };
    FileStatsBatch {
        num_records: Int64Array::new_null(rows),
        tight_bounds: BooleanArray::new_null(rows),
        leaves: leaves
            .iter()
            .map(|leaf| LeafStats {
                min: bound(leaf),
                max: bound(leaf),
                null_count: Int64Array::new_null(rows),
            })
            .collect(),
    }
}

fn from_struct(parsed: &StructArray, leaves: &[StatsLeafColumn]) -> Result<FileStatsBatch> {
    let rows = parsed.len();
    let child = |path: &[&str], data_type: &DataType| -> Result<ArrayRef> {
        let wanted = data_type.to_arrow(StringLayout::Plain);
        let mut array: ArrayRef = Arc::new(parsed.clone());
        for name in path {
            let Some(next) = array.as_struct_opt().and_then(|s| {
                s.column_by_name(name)
                    .map(|c| (c.clone(), s.nulls().cloned()))
            }) else {
                return Ok(new_null_array(&wanted, rows));
            };
            // A null parent hides the values of its children.
            array = match next.1 {
                Some(nulls) if nulls.null_count() > 0 => {
                    let keep = BooleanArray::new(nulls.inner().clone(), None);
                    arrow_select::nullif::nullif(&next.0, &arrow_arith_not(&keep))?
                }
                _ => next.0,
            };
        }
        // A checkpoint's column of a type that does not cast is wrong and counts as unknown.
        Ok(as_type(&array, &wanted).unwrap_or_else(|_| new_null_array(&wanted, rows)))
    };
    let leaves = leaves
        .iter()
        .map(|leaf| {
            let under = |root: &'static str, data_type: &DataType| {
                let path: Vec<&str> = std::iter::once(root)
                    .chain(leaf.path.iter().map(String::as_str))
                    .collect();
                child(&path, data_type)
            };
            let bound = |root| {
                if leaf.bounds {
                    under(root, &leaf.data_type).map(Some)
                } else {
                    Ok(None)
                }
            };
            Ok(LeafStats {
                min: bound("minValues")?,
                max: bound("maxValues")?,
                null_count: under("nullCount", &DataType::Long)?
                    .as_primitive::<Int64Type>()
                    .clone(),
            })
        })
        .collect::<Result<_>>()?;
    Ok(FileStatsBatch {
        num_records: child(&["numRecords"], &DataType::Long)?
            .as_primitive::<Int64Type>()
            .clone(),
        tight_bounds: child(&["tightBounds"], &DataType::Boolean)?
            .as_boolean()
            .clone(),
        leaves,
    })
}

/// Casts; zones of timestamps are ignored, because statistics are instants, independent of the
/// zone.
fn as_type(array: &ArrayRef, wanted: &Arrow) -> Result<ArrayRef> {
    let retyped = |array: ArrayRef, data_type: Arrow| -> Result<ArrayRef> {
        Ok(make_array(
            array
                .to_data()
                .into_builder()
                .data_type(data_type)
                .build()?,
        ))
    };
    let options = CastOptions {
        safe: true,
        ..CastOptions::default()
    };
    let array = match array.data_type() {
        Arrow::Timestamp(unit, Some(_)) => {
            retyped(Arc::clone(array), Arrow::Timestamp(*unit, None))?
        }
        _ => Arc::clone(array),
    };
    match wanted {
        Arrow::Timestamp(unit, Some(_)) => retyped(
            cast_with_options(&array, &Arrow::Timestamp(*unit, None), &options)?,
            wanted.clone(),
        ),
        _ => Ok(cast_with_options(&array, wanted, &options)?),
    }
}

fn arrow_arith_not(mask: &BooleanArray) -> BooleanArray {
    BooleanArray::new(!mask.values(), None)
}

/// The slot for a value of the string.
type StatsSlot = usize;
const NUM_RECORDS: StatsSlot = 0;
const TIGHT_BOUNDS: StatsSlot = 1;
const FIRST_LEAF: StatsSlot = 2;

/// The keys of statistics as a tree, so that a string is walked once.
#[derive(Default)]
struct StatsKeyNode {
    children: FxHashMap<Vec<u8>, StatsKeyNode>,
    slot: Option<StatsSlot>,
}

impl StatsKeyNode {
    fn insert(&mut self, path: &[&str], slot: StatsSlot) {
        let Some((name, rest)) = path.split_first() else {
            self.slot = Some(slot);
            return;
        };
        let child = self.children.entry(name.as_bytes().to_vec()).or_default();
        child.insert(rest, slot);
    }

    fn child(&self, name: &[u8]) -> Option<&Self> {
        self.children.get(name)
    }
}

/// The literal pieces between the values of a string.
struct JsonTemplate {
    /// Literal before each value, and the value's slot where it is wanted.
    pieces: Vec<(TemplateLiteral, Option<StatsSlot>)>,
    tail: Vec<u8>,
}

/// Number of templates kept: files of one table differ in the columns without any value.
const TEMPLATES: usize = 8;

fn from_json(
    texts: &StringViewArray,
    leaves: &[StatsLeafColumn],
    zone: TimeZoneSpec,
    escaped: bool,
) -> FileStatsBatch {
    let mut root = StatsKeyNode::default();
    root.insert(&["numRecords"], NUM_RECORDS);
    root.insert(&["tightBounds"], TIGHT_BOUNDS);
    let rows = texts.len();
    // Counts have no side; the argument is without effect for them.
    let counts = || StatsColumnBuilder::new(&DataType::Long, rows, zone, BoundSide::Lower);
    let mut columns = vec![
        counts(),
        StatsColumnBuilder::new(&DataType::Boolean, rows, zone, BoundSide::Lower),
    ];
    for (n, leaf) in leaves.iter().enumerate() {
        let slot = FIRST_LEAF + 3 * n;
        let mut insert = |kind: &'static str, slot| {
            let path: Vec<&str> = std::iter::once(kind)
                .chain(leaf.path.iter().map(String::as_str))
                .collect();
            root.insert(&path, slot);
        };
        if leaf.bounds {
            insert("minValues", slot);
            insert("maxValues", slot + 1);
        }
        insert("nullCount", slot + 2);
        let bound = |side| {
            if leaf.bounds {
                StatsColumnBuilder::new(&leaf.data_type, rows, zone, side)
            } else {
                StatsColumnBuilder::Absent
            }
        };
        columns.extend([bound(BoundSide::Lower), bound(BoundSide::Upper), counts()]);
    }
    let mut reader = StatsJsonReader {
        root,
        columns,
        templates: VecDeque::new(),
        escaped,
    };
    for row in 0..rows {
        if !texts.is_null(row) {
            reader.row(row, texts.value(row).as_bytes());
        }
    }
    reader.finish(rows, leaves.len())
}

struct StatsJsonReader {
    root: StatsKeyNode,
    columns: Vec<StatsColumnBuilder>,
    /// The most recently used first.
    templates: VecDeque<JsonTemplate>,
    escaped: bool,
}

impl StatsJsonReader {
    #[inline]
    fn row(&mut self, row: usize, text: &[u8]) {
        for n in 0..self.templates.len() {
            let Some(template) = self.templates.get(n) else {
                break;
            };
            if template
                .read(text, self.escaped, row, &mut self.columns)
                .is_some()
            {
                if n > 0 {
                    self.templates.swap(0, n);
                }
                return;
            }
            self.set_null(row);
        }
        if self.parse_row(row, text).is_err() {
            self.set_null(row);
        }
    }

    /// Resets all values of a row to unknown.
    #[cold]
    fn set_null(&mut self, row: usize) {
        for column in &mut self.columns {
            column.set_null(row);
        }
    }

    /// Parses a string with the JSON reader and makes a template of it.
    fn parse_row(&mut self, row: usize, text: &[u8]) -> Result<(), JsonSyntaxError> {
        let resolved;
        let json = if self.escaped {
            resolved = unescape(text)?;
            resolved.as_bytes()
        } else {
            text
        };
        let mut found: Vec<StatsJsonScalar> = Vec::new();
        let mut cursor = JsonCursor::new(json, 0);
        collect_scalars(&mut cursor, Some(&self.root), &mut found, 0)?;
        cursor.skip_blanks();
        if cursor.peek().is_some() {
            return Err("text after the statistics");
        }
        let mut filled = vec![false; self.columns.len()];
        for value in &found {
            let Some((column, filled)) = value
                .slot
                .and_then(|slot| Some((self.columns.get_mut(slot)?, filled.get_mut(slot)?)))
            else {
                continue;
            };
            // The first value of a duplicate key is used.
            if std::mem::replace(filled, true) {
                continue;
            }
            let content = json
                .get(value.span.start..value.span.end)
                .unwrap_or_default();
            if value.span.escaped {
                column.put(row, unescape(content)?.as_bytes(), value.is_string);
            } else {
                column.put(row, content, value.is_string);
            }
        }
        // A template would set a duplicate key twice.
        let mut slots: Vec<StatsSlot> = found.iter().filter_map(|value| value.slot).collect();
        slots.sort_unstable();
        if slots.windows(2).all(|pair| pair.first() != pair.last())
            && let Some(template) = JsonTemplate::new(json, &found, self.escaped)
        {
            self.templates.truncate(TEMPLATES - 1);
            self.templates.push_front(template);
        }
        Ok(())
    }

    fn finish(self, rows: usize, leaves: usize) -> FileStatsBatch {
        let mut columns = self.columns.into_iter().map(|column| column.finish(rows));
        let mut next = || columns.next().flatten();
        let long = |array: Option<ArrayRef>| {
            array.map_or_else(
                || Int64Array::new_null(rows),
                |a| a.as_primitive::<Int64Type>().clone(),
            )
        };
        let num_records = long(next());
        let tight_bounds =
            next().map_or_else(|| BooleanArray::new_null(rows), |a| a.as_boolean().clone());
        let leaves = (0..leaves)
            .map(|_| {
                let (min, max) = (next(), next());
                LeafStats {
                    min,
                    max,
                    null_count: long(next()),
                }
            })
            .collect();
        FileStatsBatch {
            num_records,
            tight_bounds,
            leaves,
        }
    }
}

/// A scalar of the JSON.
struct StatsJsonScalar {
    span: StringSpan,
    is_string: bool,
    slot: Option<StatsSlot>,
}

/// More levels than a schema has; statistics with deeper values are ignored.
const DEPTH: usize = MOST_NESTED_TYPES + 4;

/// Collects every scalar below an object: its content, whether it is a string, and its slot.
fn collect_scalars(
    cursor: &mut JsonCursor<'_>,
    node: Option<&StatsKeyNode>,
    found: &mut Vec<StatsJsonScalar>,
    depth: usize,
) -> Result<(), JsonSyntaxError> {
    if depth > DEPTH {
        return Err("the statistics are nested too deeply");
    }
    cursor.object(|c, key| {
        let child = if key.escaped {
            node.and_then(|n| {
                unescape(c.slice(key))
                    .ok()
                    .and_then(|name| n.child(name.as_bytes()))
            })
        } else {
            node.and_then(|n| n.child(c.slice(key)))
        };
        c.skip_blanks();
        match c.peek() {
            Some(b'{') => collect_scalars(c, child, found, depth + 1),
            Some(b'"') => {
                let span = c.string()?;
                found.push(StatsJsonScalar {
                    span,
                    is_string: true,
                    slot: child.and_then(|n| n.slot),
                });
                Ok(())
            }
            _ => {
                let (start, end) = c.skip_value()?;
                let span = StringSpan {
                    start,
                    end,
                    escaped: false,
                };
                found.push(StatsJsonScalar {
                    span,
                    is_string: false,
                    slot: child.and_then(|n| n.slot),
                });
                Ok(())
            }
        }
    })?;
    Ok(())
}

impl JsonTemplate {
    fn new(json: &[u8], found: &[StatsJsonScalar], escaped: bool) -> Option<Self> {
        let mut pieces = Vec::with_capacity(found.len());
        let mut at = 0;
        for value in found {
            // The quotes of a string belong to the value, so that a null in its place still
            // matches.
            let quote = usize::from(value.is_string);
            pieces.push((
                TemplateLiteral::new(&escape_json(
                    json.get(at..value.span.start - quote)?,
                    escaped,
                )),
                value.slot,
            ));
            at = value.span.end + quote;
        }
        Some(Self {
            pieces,
            tail: escape_json(json.get(at..)?, escaped),
        })
    }

    /// Sets row `row` to the values of a string that matches this template; `None`, with some of
    /// them set, for other strings.
    #[inline]
    fn read(
        &self,
        text: &[u8],
        escaped: bool,
        row: usize,
        columns: &mut [StatsColumnBuilder],
    ) -> Option<()> {
        let mut rest = text;
        for (literal, slot) in &self.pieces {
            rest = literal.strip(rest)?;
            rest = match slot.and_then(|slot| columns.get_mut(slot)) {
                Some(column) => match column.take(row, rest, escaped) {
                    Some(rest) => rest,
                    None => {
                        let (content, is_string, rest) = value(rest, escaped)?;
                        column.put(row, content, is_string);
                        rest
                    }
                },
                None => value(rest, escaped)?.2,
            };
        }
        (rest == self.tail.as_slice()).then_some(())
    }
}

/// The value at the front: its content, whether it is a string, the rest. `None` for a value that
/// is neither a string without escapes nor a number or word that the reader accepts.
#[inline]
fn value(text: &[u8], escaped: bool) -> Option<(&[u8], bool, &[u8])> {
    let quote: &[u8] = if escaped { b"\\\"" } else { b"\"" };
    if let Some(content) = text.strip_prefix(quote) {
        // The first backslash or quote must be the closing quote: a value with escapes takes the
        // slow path.
        let end = if escaped {
            memchr::memchr(b'\\', content)
        } else {
            memchr::memchr2(b'"', b'\\', content)
        }?;
        let (content, rest) = content.split_at_checked(end)?;
        return Some((content, true, rest.strip_prefix(quote)?));
    }
    let end = match text.first()? {
        b'-' | b'0'..=b'9' => number_length(text)?,
        _ => [&b"true"[..], b"false", b"null"]
            .into_iter()
            .find(|word| text.starts_with(word))?
            .len(),
    };
    let (content, rest) = text.split_at_checked(end)?;
    Some((content, false, rest))
}

#[inline]
fn is_value_end(byte: u8) -> bool {
    matches!(byte, b',' | b'}' | b'"' | b'\\' | b'{' | b'[' | b' ')
}

/// A piece of JSON, escaped as in a JSON string.
fn escape_json(piece: &[u8], escaped: bool) -> Vec<u8> {
    if !escaped {
        return piece.to_vec();
    }
    let mut out = Vec::with_capacity(piece.len() * 2);
    for byte in piece {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out
}

/// A literal to match at the front of strings; its beginning is compared in one step.
struct TemplateLiteral {
    head: u128,
    mask: u128,
    text: Vec<u8>,
}

impl TemplateLiteral {
    const HEAD: usize = 16;

    fn new(text: &[u8]) -> Self {
        let (mut head, mut mask) = ([0; Self::HEAD], [0; Self::HEAD]);
        for ((head, mask), byte) in head.iter_mut().zip(&mut mask).zip(text) {
            (*head, *mask) = (*byte, 0xff);
        }
        Self {
            head: u128::from_le_bytes(head),
            mask: u128::from_le_bytes(mask),
            text: text.to_vec(),
        }
    }

    /// The rest of `text` after the literal.
    #[inline]
    fn strip<'a>(&self, text: &'a [u8]) -> Option<&'a [u8]> {
        let Some(front) = text.first_chunk::<{ Self::HEAD }>() else {
            return text.strip_prefix(self.text.as_slice());
        };
        if (u128::from_le_bytes(*front) ^ self.head) & self.mask != 0 {
            return None;
        }
        match self.text.get(Self::HEAD..) {
            None | Some([]) => text.get(self.text.len()..),
            Some(tail) => text.get(Self::HEAD..)?.strip_prefix(tail),
        }
    }
}

/// A number without exponent: digits, possibly with a decimal point among them.
struct JsonNumber {
    negative: bool,
    /// The digits, fewer than twenty.
    digits: u64,
    /// The number of digits after the point.
    fraction: usize,
}

/// Parses a number that is followed by a delimiter; `None` for any other form.
#[inline]
fn number(text: &[u8]) -> Option<(JsonNumber, &[u8])> {
    let (negative, digits) = match text.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let mut value: u64 = 0;
    let mut point = None;
    let mut end = 0;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit < 10 {
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        } else if *byte == b'.' && point.is_none() && end > 0 {
            point = Some(end);
        } else if is_value_end(*byte) {
            break;
        } else {
            return None;
        }
        end += 1;
    }
    // No digit may follow a leading zero.
    if digits.first() == Some(&b'0') && end > 1 && point != Some(1) {
        return None;
    }
    // The point is not counted as a digit, and is neither first nor last.
    let fraction = point.map_or(0, |point| end - point - 1);
    let count = end - usize::from(point.is_some());
    if count == 0 || count > 19 || (point.is_some() && fraction == 0) {
        return None;
    }
    Some((
        JsonNumber {
            negative,
            digits: value,
            fraction,
        },
        digits.get(end..)?,
    ))
}

/// Values of one type and their validity.
struct PrimitiveStatsBuilder<T: ArrowPrimitiveType> {
    values: Vec<T::Native>,
    known: BooleanBufferBuilder,
}

impl<T: ArrowPrimitiveType> PrimitiveStatsBuilder<T> {
    fn new(rows: usize) -> Self {
        Self {
            values: vec![T::Native::default(); rows],
            known: unset_bits(rows),
        }
    }

    #[inline]
    fn put(&mut self, row: usize, value: Option<T::Native>) {
        if let Some((cell, value)) = self.values.get_mut(row).zip(value) {
            *cell = value;
            self.known.set_bit(row, true);
        }
    }

    fn finish(self) -> PrimitiveArray<T> {
        PrimitiveArray::new(self.values.into(), validity(self.known.build()))
    }
}

fn unset_bits(rows: usize) -> BooleanBufferBuilder {
    let mut bits = BooleanBufferBuilder::new(rows);
    bits.append_n(rows, false);
    bits
}

/// Strings, one after the other; the end offsets of rows without a string are filled in later.
struct StringStatsBuilder {
    offsets: Vec<i32>,
    bytes: Vec<u8>,
    known: BooleanBufferBuilder,
}

impl StringStatsBuilder {
    fn new(rows: usize) -> Self {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        Self {
            offsets,
            bytes: Vec::new(),
            known: unset_bits(rows),
        }
    }

    #[inline]
    fn end(&self) -> i32 {
        i32::try_from(self.bytes.len()).unwrap_or(i32::MAX)
    }

    #[inline]
    fn put(&mut self, row: usize, rows: usize, text: &[u8]) {
        // Values beyond the range of offsets are unknown.
        if i32::try_from(self.bytes.len() + text.len()).is_err() {
            return;
        }
        if self.bytes.is_empty() {
            // The length of the first string is an estimate for the others.
            self.bytes.reserve((rows - row) * (text.len() + 1).min(64));
        }
        self.offsets.resize(row + 1, self.end());
        self.bytes.extend_from_slice(text);
        self.offsets.push(self.end());
        self.known.set_bit(row, true);
    }

    fn set_null(&mut self, row: usize) {
        self.offsets.truncate(row + 1);
        self.bytes.truncate(
            self.offsets
                .last()
                .and_then(|end| usize::try_from(*end).ok())
                .unwrap_or(0),
        );
    }

    fn finish(mut self, rows: usize) -> StringArray {
        self.offsets.resize(rows + 1, self.end());
        self.bytes.shrink_to_fit();
        let (offsets, bytes) = (
            OffsetBuffer::new(self.offsets.into()),
            Buffer::from_vec(self.bytes),
        );
        // A substring of a valid string that is cut at quotes is valid UTF-8.
        StringArray::try_new(offsets, bytes, validity(self.known.build()))
            .unwrap_or_else(|_| StringArray::new_null(rows))
    }
}

/// The values of one slot. Everything that is not a value of its type is null.
enum StatsColumnBuilder {
    Byte(PrimitiveStatsBuilder<Int8Type>),
    Short(PrimitiveStatsBuilder<Int16Type>),
    Integer(PrimitiveStatsBuilder<Int32Type>),
    Long(PrimitiveStatsBuilder<Int64Type>),
    Float(PrimitiveStatsBuilder<Float32Type>),
    Double(PrimitiveStatsBuilder<Float64Type>),
    Decimal(PrimitiveStatsBuilder<Decimal128Type>, u8, i8),
    Boolean(BooleanBufferBuilder, BooleanBufferBuilder),
    Text(StringStatsBuilder, usize),
    Date(PrimitiveStatsBuilder<Date32Type>),
    Timestamp(
        PrimitiveStatsBuilder<TimestampMicrosecondType>,
        TimeZoneSpec,
        BoundSide,
    ),
    TimestampNtz(PrimitiveStatsBuilder<TimestampMicrosecondType>),
    /// Not requested.
    Absent,
}

/// Which bound a value is: an inexact one is moved to the outside.
#[derive(Debug, Clone, Copy)]
enum BoundSide {
    Lower,
    Upper,
}

/// A bound in microseconds, so that no instant that its text may stand for is outside.
fn timestamp_bound(text: &[u8], zone: TimeZoneSpec, side: BoundSide) -> Option<i64> {
    let (instant, uncertainty) = time::parse_imprecise_timestamp(text, zone)?;
    Some(match side {
        BoundSide::Lower => instant.saturating_sub(uncertainty),
        BoundSide::Upper => instant.saturating_add(uncertainty),
    })
}

fn int(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text.first()? {
        b'-' => (true, text.get(1..)?),
        _ => (false, text),
    };
    if digits.is_empty() || digits.len() > 19 {
        return None;
    }
    let mut value: i64 = 0;
    for byte in digits {
        if !byte.is_ascii_digit() {
            return None;
        }
        let digit = i64::from(byte - b'0');
        value = value.checked_mul(10).and_then(|v| {
            if negative {
                v.checked_sub(digit)
            } else {
                v.checked_add(digit)
            }
        })?;
    }
    Some(value)
}

fn float(text: &[u8]) -> Option<f64> {
    match text {
        b"NaN" => Some(f64::NAN),
        b"Infinity" | b"INF" => Some(f64::INFINITY),
        b"-Infinity" | b"-INF" => Some(f64::NEG_INFINITY),
        _ if text
            .first()
            .is_some_and(|b| b.is_ascii_digit() || *b == b'-') =>
        {
            std::str::from_utf8(text).ok()?.parse().ok()
        }
        _ => None,
    }
}

/// Powers of ten that a double represents exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

impl JsonNumber {
    #[inline]
    fn int(&self) -> Option<i64> {
        let value = i64::try_from(self.digits)
            .ok()
            .filter(|_| self.fraction == 0)?;
        Some(if self.negative { -value } else { value })
    }

    /// The nearest double, if a single rounding of exact operands gives it.
    #[inline]
    #[allow(clippy::cast_precision_loss)]
    fn double(&self) -> Option<f64> {
        let power = POWERS.get(self.fraction)?;
        if self.digits > 1 << 53 {
            return None;
        }
        let value = self.digits as f64 / power;
        Some(if self.negative { -value } else { value })
    }

    #[inline]
    fn decimal(&self, scale: i8) -> Option<i128> {
        let more = usize::try_from(scale).ok()?.checked_sub(self.fraction)?;
        let value =
            i128::from(self.digits).checked_mul(10_i128.checked_pow(u32::try_from(more).ok()?)?)?;
        Some(if self.negative { -value } else { value })
    }
}

impl StatsColumnBuilder {
    fn new(data_type: &DataType, rows: usize, zone: TimeZoneSpec, side: BoundSide) -> Self {
        match data_type {
            DataType::Byte => Self::Byte(PrimitiveStatsBuilder::new(rows)),
            DataType::Short => Self::Short(PrimitiveStatsBuilder::new(rows)),
            DataType::Integer => Self::Integer(PrimitiveStatsBuilder::new(rows)),
            DataType::Long => Self::Long(PrimitiveStatsBuilder::new(rows)),
            DataType::Float => Self::Float(PrimitiveStatsBuilder::new(rows)),
            DataType::Double => Self::Double(PrimitiveStatsBuilder::new(rows)),
            DataType::Decimal(precision, scale) => {
                Self::Decimal(PrimitiveStatsBuilder::new(rows), *precision, *scale)
            }
            DataType::Boolean => Self::Boolean(unset_bits(rows), unset_bits(rows)),
            DataType::String => Self::Text(StringStatsBuilder::new(rows), rows),
            DataType::Date => Self::Date(PrimitiveStatsBuilder::new(rows)),
            DataType::Timestamp => Self::Timestamp(PrimitiveStatsBuilder::new(rows), zone, side),
            DataType::TimestampNtz => Self::TimestampNtz(PrimitiveStatsBuilder::new(rows)),
            _ => Self::Absent,
        }
    }

    /// Consumes a value of the usual form at the front of `text`; returns the rest. `None`, with
    /// nothing consumed, for any other form.
    #[inline]
    fn take<'a>(&mut self, row: usize, text: &'a [u8], escaped: bool) -> Option<&'a [u8]> {
        match self {
            Self::Long(cells) => {
                let (number, rest) = number(text)?;
                cells.put(row, Some(number.int()?));
                Some(rest)
            }
            Self::Double(cells) => {
                let (number, rest) = number(text)?;
                cells.put(row, Some(number.double()?));
                Some(rest)
            }
            Self::Decimal(cells, _, scale) => {
                let (number, rest) = number(text)?;
                cells.put(row, Some(number.decimal(*scale)?));
                Some(rest)
            }
            Self::Date(cells) => {
                let (date, rest) = quoted_bytes::<10>(text, escaped)?;
                cells.put(row, Some(time::parse_fixed_date(date)?));
                Some(rest)
            }
            Self::Timestamp(cells, ..) => {
                let (instant, rest) = quoted_bytes::<24>(text, escaped)?;
                cells.put(row, Some(time::parse_fixed_timestamp(instant)?));
                Some(rest)
            }
            _ => None,
        }
    }

    /// Sets a row to the content of a value.
    #[inline]
    #[allow(clippy::cast_possible_truncation)]
    fn put(&mut self, row: usize, text: &[u8], is_string: bool) {
        match self {
            Self::Byte(cells) => cells.put(row, int(text).and_then(|v| v.try_into().ok())),
            Self::Short(cells) => cells.put(row, int(text).and_then(|v| v.try_into().ok())),
            Self::Integer(cells) => cells.put(row, int(text).and_then(|v| v.try_into().ok())),
            Self::Long(cells) => cells.put(row, int(text)),
            Self::Float(cells) => cells.put(row, float(text).map(|v| v as f32)),
            Self::Double(cells) => cells.put(row, float(text)),
            Self::Decimal(cells, _, scale) => cells.put(
                row,
                std::str::from_utf8(text)
                    .ok()
                    .and_then(|t| decimal(t, *scale)),
            ),
            Self::Boolean(values, known) => {
                let value = match text {
                    b"true" => true,
                    b"false" => false,
                    _ => return,
                };
                values.set_bit(row, value);
                known.set_bit(row, true);
            }
            Self::Text(texts, rows) if is_string => texts.put(row, *rows, text),
            Self::Date(cells) => cells.put(row, time::parse_date(text)),
            Self::Timestamp(cells, zone, side) => {
                cells.put(row, timestamp_bound(text, *zone, *side));
            }
            Self::TimestampNtz(cells) => {
                cells.put(row, time::parse_wall_clock(text).map(|(wall, _)| wall));
            }
            Self::Text(..) | Self::Absent => {}
        }
    }

    /// Sets the value of the last row to unknown.
    fn set_null(&mut self, row: usize) {
        match self {
            Self::Byte(cells) => cells.known.set_bit(row, false),
            Self::Short(cells) => cells.known.set_bit(row, false),
            Self::Integer(cells) => cells.known.set_bit(row, false),
            Self::Long(cells) => cells.known.set_bit(row, false),
            Self::Float(cells) => cells.known.set_bit(row, false),
            Self::Double(cells) => cells.known.set_bit(row, false),
            Self::Decimal(cells, ..) => cells.known.set_bit(row, false),
            Self::Boolean(_, known) => known.set_bit(row, false),
            Self::Text(texts, _) => {
                texts.known.set_bit(row, false);
                texts.set_null(row);
            }
            Self::Date(cells) => cells.known.set_bit(row, false),
            Self::Timestamp(cells, ..) | Self::TimestampNtz(cells) => {
                cells.known.set_bit(row, false);
            }
            Self::Absent => {}
        }
    }

    fn finish(self, rows: usize) -> Option<ArrayRef> {
        Some(match self {
            Self::Byte(cells) => Arc::new(cells.finish()),
            Self::Short(cells) => Arc::new(cells.finish()),
            Self::Integer(cells) => Arc::new(cells.finish()),
            Self::Long(cells) => Arc::new(cells.finish()),
            Self::Float(cells) => Arc::new(cells.finish()),
            Self::Double(cells) => Arc::new(cells.finish()),
            Self::Decimal(cells, precision, scale) => {
                match cells.finish().with_precision_and_scale(precision, scale) {
                    Ok(array) => Arc::new(array),
                    Err(_) => new_null_array(
                        &DataType::Decimal(precision, scale).to_arrow(StringLayout::Plain),
                        rows,
                    ),
                }
            }
            Self::Boolean(mut values, known) => {
                Arc::new(BooleanArray::new(values.finish(), validity(known.build())))
            }
            Self::Text(texts, _) => Arc::new(texts.finish(rows)),
            Self::Date(cells) => Arc::new(cells.finish()),
            Self::Timestamp(cells, ..) => Arc::new(cells.finish().with_timezone("UTC")),
            Self::TimestampNtz(cells) => Arc::new(cells.finish()),
            Self::Absent => return None,
        })
    }
}

/// A quoted string of exactly `N` bytes, and the rest. The caller checks that it contains no quote.
#[inline]
fn quoted_bytes<const N: usize>(text: &[u8], escaped: bool) -> Option<(&[u8; N], &[u8])> {
    let quote: &[u8] = if escaped { b"\\\"" } else { b"\"" };
    let (content, rest) = text.strip_prefix(quote)?.split_first_chunk::<N>()?;
    Some((content, rest.strip_prefix(quote)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn leaves() -> Vec<StatsLeafColumn> {
        let leaf = |path: &[&str], name: &str| StatsLeafColumn {
            path: path.iter().map(ToString::to_string).collect(),
            data_type: DataType::from_name(name).unwrap(),
            bounds: true,
        };
        vec![
            leaf(&["i"], "integer"),
            leaf(&["s"], "string"),
            leaf(&["n", "d"], "decimal(9,2)"),
            leaf(&["t"], "timestamp"),
            leaf(&["f"], "double"),
            leaf(&["day"], "date"),
        ]
    }

    fn texts(texts: &[Option<&str>]) -> StringViewArray {
        texts.iter().copied().collect()
    }

    fn show(stats: &FileStatsBatch) -> Vec<String> {
        let mut out = vec![format!("{:?} {:?}", stats.num_records, stats.tight_bounds)];
        out.extend(
            stats
                .leaves
                .iter()
                .map(|l| format!("{:?} {:?} {:?}", l.min, l.max, l.null_count)),
        );
        out
    }

    fn slice(stats: &FileStatsBatch, row: usize) -> FileStatsBatch {
        let leaf = |l: &LeafStats| LeafStats {
            min: l.min.as_ref().map(|a| a.slice(row, 1)),
            max: l.max.as_ref().map(|a| a.slice(row, 1)),
            null_count: l.null_count.slice(row, 1),
        };
        FileStatsBatch {
            num_records: stats.num_records.slice(row, 1),
            tight_bounds: stats.tight_bounds.slice(row, 1),
            leaves: stats.leaves.iter().map(leaf).collect(),
        }
    }

    const ONE: &str = r#"{"numRecords":2,"minValues":{"i":1,"s":"a","n":{"d":1.5},"t":"2024-01-02T03:04:05.678Z","f":"NaN","day":"2024-01-01"},"maxValues":{"i":9,"s":"zz","n":{"d":2},"t":"2024-01-02T03:04:05.679Z","f":-1e3,"day":"2024-02-30"},"nullCount":{"i":0,"s":1,"n":{"d":2},"t":0}}"#;

    #[test]
    fn values_of_every_type_are_read() {
        let stats = from_json(
            &texts(&[Some(ONE), None, Some(ONE)]),
            &leaves(),
            TimeZoneSpec::UTC,
            false,
        );
        assert_eq!(
            stats.num_records.iter().collect::<Vec<_>>(),
            [Some(2), None, Some(2)]
        );
        let int = |a: &Option<ArrayRef>| {
            a.as_ref()
                .unwrap()
                .as_primitive::<Int32Type>()
                .iter()
                .collect::<Vec<_>>()
        };
        assert_eq!(
            (int(&stats.leaves[0].min), int(&stats.leaves[0].max)),
            (vec![Some(1), None, Some(1)], vec![Some(9), None, Some(9)])
        );
        assert_eq!(
            stats.leaves[2]
                .max
                .as_ref()
                .unwrap()
                .as_primitive::<Decimal128Type>()
                .value(2),
            200
        );
        assert!(
            stats.leaves[4]
                .min
                .as_ref()
                .unwrap()
                .as_primitive::<Float64Type>()
                .value(2)
                .is_nan()
        );
        assert!(
            stats.leaves[5].max.as_ref().unwrap().is_null(0),
            "a date that does not exist is unknown"
        );
        assert_eq!(stats.leaves[1].null_count.value(0), 1);
        assert!(stats.leaves[5].null_count.is_null(0));
    }

    #[test]
    fn bounds_whose_offset_was_cut_to_minutes_are_widened() {
        // Berlin, 1850: the offset is +00:53:28, so the instant is 28 seconds before the one read.
        let cut = r#"{"minValues":{"t":"1850-01-01T01:01:01.000+00:53"},"maxValues":{"t":"1850-01-01T01:01:01.000+00:53"}}"#;
        let exact = r#"{"minValues":{"t":"2024-01-01T01:01:01.000+05:45"},"maxValues":{"t":"2024-01-01T01:01:01.000+05:45"}}"#;
        let rows = [cut, exact, cut, exact].map(Some);
        let stats = from_json(&texts(&rows), &leaves(), TimeZoneSpec::UTC, false);
        let micros = |a: &Option<ArrayRef>, row| {
            a.as_ref()
                .unwrap()
                .as_primitive::<TimestampMicrosecondType>()
                .value(row)
        };
        let leaf = &stats.leaves[3];
        for row in [0, 2] {
            let read =
                time::parse_timestamp(b"1850-01-01T01:01:01.000+00:53", TimeZoneSpec::UTC).unwrap();
            assert_eq!(micros(&leaf.min, row), read - 60_000_000);
            assert_eq!(micros(&leaf.max, row), read + 60_000_000);
        }
        for row in [1, 3] {
            assert_eq!(micros(&leaf.min, row), micros(&leaf.max, row));
        }
    }

    #[test]
    fn null_is_no_text() {
        let null = r#"{"minValues":{"s":null},"maxValues":{"s":"null"}}"#;
        let stats = from_json(
            &texts(&[Some(null), Some(null)]),
            &leaves(),
            TimeZoneSpec::UTC,
            false,
        );
        let text = |a: &Option<ArrayRef>| {
            a.as_ref()
                .unwrap()
                .as_string::<i32>()
                .iter()
                .map(|t| t.map(str::to_owned))
                .collect::<Vec<_>>()
        };
        assert_eq!(text(&stats.leaves[1].min), [None, None]);
        assert_eq!(
            text(&stats.leaves[1].max),
            [Some("null".to_owned()), Some("null".to_owned())]
        );
    }

    #[test]
    fn a_repeated_key_keeps_its_first_value() {
        let twice = r#"{"numRecords":1,"numRecords":2,"minValues":{"s":"a","s":"b"}}"#;
        let stats = from_json(
            &texts(&[Some(twice), Some(twice)]),
            &leaves(),
            TimeZoneSpec::UTC,
            false,
        );
        assert_eq!(stats.num_records.values().to_vec(), [1, 1]);
        assert_eq!(
            stats.leaves[1]
                .min
                .as_ref()
                .unwrap()
                .as_string::<i32>()
                .value(1),
            "a"
        );
    }

    #[test]
    fn statistics_of_several_shapes_leave_nothing_behind() {
        let shapes = [
            r#"{"numRecords":1,"minValues":{"i":1,"s":"abc"},"nullCount":{"i":1}}"#,
            r#"{"numRecords":2,"minValues":{"i":2,"s":"d\"e"},"nullCount":{"i":2}}"#,
            r#"{"numRecords":3,"minValues":{"i":3},"nullCount":{"i":3}}"#,
            r#"{"numRecords":4,"minValues":{"i":4,"s":"gh"},"nullCount":{"i":{}}}"#,
            r#"{"numRecords":5,"minValues":{"i":5,"s":"ij"},"nullCount":{"i":"#,
        ];
        let rows: Vec<Option<&str>> = shapes.iter().cycle().take(23).copied().map(Some).collect();
        let stats = from_json(&texts(&rows), &leaves(), TimeZoneSpec::UTC, false);
        for row in 0..rows.len() {
            let alone = show(&from_json(
                &texts(&rows[row..=row]),
                &leaves(),
                TimeZoneSpec::UTC,
                false,
            ));
            assert_eq!(show(&slice(&stats, row)), alone, "{:?}", rows[row]);
        }
    }

    #[test]
    fn invalid_statistics_are_unknown_and_harm_no_neighbour() {
        for bad in [
            "",
            "{",
            "[]x",
            "null x",
            r#"{"numRecords":"x"}"#,
            r#"{"numRecords":1e400}"#,
            r#"{"minValues":7}"#,
        ] {
            let stats = from_json(
                &texts(&[Some(ONE), Some(bad), Some(ONE)]),
                &leaves(),
                TimeZoneSpec::UTC,
                false,
            );
            assert_eq!(
                stats.num_records.iter().collect::<Vec<_>>(),
                [Some(2), None, Some(2)],
                "{bad}"
            );
            assert!(stats.leaves[0].min.as_ref().unwrap().is_null(1));
        }
    }

    proptest! {
        #[test]
        fn values_read_where_they_stand_agree_with_the_reader(values in prop::collection::vec(
            ("-?[0-9]{0,21}(\\.[0-9]{0,18})?(e-?[0-9]{1,2})?|null|\"NaN\"", "[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{1,6})?(Z|\\+01:00)?)?|[0-9a-zT:.-]{0,26}"), 1..12,
        )) {
            let rows: Vec<String> = values.iter().map(|(n, t)| {
                format!(r#"{{"numRecords":{n},"minValues":{{"i":{n},"n":{{"d":{n}}},"t":"{t}","f":{n},"day":"{t}"}}}}"#)
            }).collect();
            let all = from_json(&rows.iter().map(|r| Some(r.as_str())).collect(), &leaves(), TimeZoneSpec::UTC, false);
            for (row, text) in rows.iter().enumerate() {
                prop_assert_eq!(show(&slice(&all, row)), show(&from_json(&texts(&[Some(text)]), &leaves(), TimeZoneSpec::UTC, false)), "{}", text);
            }
        }

        #[test]
        fn the_template_agrees_with_the_reader(values in prop::collection::vec((any::<i32>(), "\\PC{0,9}|[\"\\\\a]{0,4}", prop::option::of(0i64..5), any::<bool>()), 1..20)) {
            let rows: Vec<String> = values.iter().map(|(i, s, nulls, tight)| {
                let s = serde_json::to_string(s).unwrap();
                let nulls = nulls.map_or("null".to_owned(), |n| n.to_string());
                let tight = if *tight { r#","tightBounds":false"# } else { "" };
                format!(r#"{{"numRecords":3,"minValues":{{"i":{i},"s":{s},"x":{s}}},"maxValues":{{"i":{i},"s":{s}}},"nullCount":{{"i":{nulls},"s":1}}{tight}}}"#)
            }).collect();
            // A single string never meets a template of another shape, so it always takes the slow
            // path.
            let alone: Vec<Vec<String>> = rows.iter().map(|row| show(&from_json(&texts(&[Some(row)]), &leaves(), TimeZoneSpec::UTC, false))).collect();
            let escaped: Vec<String> = rows.iter().map(|row| { let q = serde_json::to_string(row).unwrap(); q[1..q.len() - 1].to_owned() }).collect();
            let all = from_json(&rows.iter().map(|r| Some(r.as_str())).collect(), &leaves(), TimeZoneSpec::UTC, false);
            let all_escaped = from_json(&escaped.iter().map(|r| Some(r.as_str())).collect(), &leaves(), TimeZoneSpec::UTC, true);
            prop_assert_eq!(show(&all), show(&all_escaped));
            for (row, alone) in alone.iter().enumerate() {
                prop_assert_eq!(&show(&slice(&all, row)), alone);
            }
        }
    }
}
