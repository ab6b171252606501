//! Statistics: text of a million files -> typed columns of the leaves that somebody asks for.
//!
//! The texts of a table repeat one template: the same keys in the same order, only values differ. So the first text is
//! read by the JSON reader, and the literal pieces between its values become a template against which the next ones are
//! compared, piece by piece; what lies between the pieces is a value. Any difference falls back to the reader for that
//! text, whose shape becomes the next template. Statistics may be escaped, as they stand in a commit: the template is then
//! escaped too, and no text is ever unescaped on the fast way.
//!
//! Statistics never make a table unreadable: what cannot be understood is null, as if it were not there.
//!
//! Protocol: "Per-file Statistics". Cost: one pass over the text, no allocation a file.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, PrimitiveBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, StringViewArray, StructArray, make_array, new_null_array};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::DataType as Arrow;

use super::batch::StatsColumn;
use super::cursor::{Cursor, Span, Wrong, unescape};
use crate::error::{Error, Result};
use crate::protocol::calendar::Zone;
use crate::protocol::partition_value::decimal;
use crate::protocol::schema::{DataType, TextLayout};
use crate::protocol::time;

/// A leaf column whose statistics are wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct Leaf {
    /// Physical names from the table's root.
    pub path: Vec<String>,
    /// Type of the column.
    pub data_type: DataType,
    /// Whether minimum and maximum are wanted, beside the null count.
    pub bounds: bool,
}

/// Statistics of one leaf, one value a file, null where unknown.
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
pub struct Stats {
    /// Rows in the data file, deleted ones included.
    pub num_records: Int64Array,
    /// Whether bounds are tight; null counts as true.
    pub tight_bounds: BooleanArray,
    /// In the order asked for.
    pub leaves: Vec<LeafStats>,
}

impl Stats {
    /// The rows for which `keep` is true.
    ///
    /// # Errors
    /// [`Error::Internal`] for a mask of another length.
    pub fn filter(&self, keep: &BooleanArray) -> Result<Self> {
        self.each(
            |arrays| match arrays {
                [array] => Ok(arrow_select::filter::filter(array.as_ref(), keep)?),
                _ => Err(Error::internal("one column at a time")),
            },
            &[],
        )
    }

    /// Statistics of the same leaves, one after the other; `None` of none.
    ///
    /// # Errors
    /// [`Error::Internal`] for different leaves.
    pub fn concat(all: &[&Self]) -> Result<Option<Self>> {
        let Some((first, rest)) = all.split_first() else { return Ok(None) };
        first.each(|arrays| Ok(arrow_select::concat::concat(&arrays.iter().map(AsRef::as_ref).collect::<Vec<_>>())?), rest).map(Some)
    }

    /// Makes every column of the columns in its place.
    fn each(&self, make: impl Fn(&[ArrayRef]) -> Result<ArrayRef>, rest: &[&Self]) -> Result<Self> {
        let column = |pick: &dyn Fn(&Self) -> Option<ArrayRef>| -> Result<Option<ArrayRef>> {
            let arrays: Vec<ArrayRef> = std::iter::once(self).chain(rest.iter().copied()).filter_map(pick).collect();
            if arrays.is_empty() { Ok(None) } else { make(&arrays).map(Some) }
        };
        let long =
            |array: Option<ArrayRef>| array.and_then(|a| a.as_primitive_opt::<Int64Type>().cloned()).ok_or_else(|| Error::internal("a count is missing"));
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
                        null_count: long(column(&|s| Some(Arc::new(s.leaves.get(n)?.null_count.clone())))?)?,
                    })
                })
                .collect::<Result<_>>()?,
        })
    }
}

/// Whether bounds of this type are kept in statistics at all.
#[must_use]
pub fn has_bounds(data_type: &DataType) -> bool {
    data_type.is_primitive() && !matches!(data_type, DataType::Binary | DataType::Void)
}

/// Parses the statistics of a batch.
///
/// # Errors
/// [`Error::Internal`] only: bad statistics are null.
pub fn parse(column: &StatsColumn, leaves: &[Leaf], zone: Zone) -> Result<Stats> {
    match column {
        StatsColumn::Json(texts) => Ok(from_text(texts, leaves, zone, false)),
        StatsColumn::EscapedJson(texts) => Ok(from_text(texts, leaves, zone, true)),
        StatsColumn::Parsed(parsed) => from_struct(parsed, leaves),
    }
}

/// Statistics of files that have none.
#[must_use]
pub fn none(rows: usize, leaves: &[Leaf]) -> Stats {
    let bound = |leaf: &Leaf| leaf.bounds.then(|| new_null_array(&leaf.data_type.to_arrow(TextLayout::Plain), rows));
    Stats {
        num_records: Int64Array::new_null(rows),
        tight_bounds: BooleanArray::new_null(rows),
        leaves: leaves.iter().map(|leaf| LeafStats { min: bound(leaf), max: bound(leaf), null_count: Int64Array::new_null(rows) }).collect(),
    }
}

fn from_struct(parsed: &StructArray, leaves: &[Leaf]) -> Result<Stats> {
    let rows = parsed.len();
    let child = |path: &[&str], data_type: &DataType| -> Result<ArrayRef> {
        let wanted = data_type.to_arrow(TextLayout::Plain);
        let mut array: ArrayRef = Arc::new(parsed.clone());
        for name in path {
            let Some(next) = array.as_struct_opt().and_then(|s| s.column_by_name(name).map(|c| (c.clone(), s.nulls().cloned()))) else {
                return Ok(new_null_array(&wanted, rows));
            };
            // A null parent hides whatever its children hold.
            array = match next.1 {
                Some(nulls) if nulls.null_count() > 0 => {
                    let keep = BooleanArray::new(nulls.inner().clone(), None);
                    arrow_select::nullif::nullif(&next.0, &arrow_arith_not(&keep))?
                }
                _ => next.0,
            };
        }
        // A type that does not cast is a lie of the checkpoint's, which counts as nothing known.
        Ok(as_type(&array, &wanted).unwrap_or_else(|_| new_null_array(&wanted, rows)))
    };
    let leaves = leaves
        .iter()
        .map(|leaf| {
            let under = |root: &'static str, data_type: &DataType| {
                let path: Vec<&str> = std::iter::once(root).chain(leaf.path.iter().map(String::as_str)).collect();
                child(&path, data_type)
            };
            let bound = |root| if leaf.bounds { under(root, &leaf.data_type).map(Some) } else { Ok(None) };
            Ok(LeafStats {
                min: bound("minValues")?,
                max: bound("maxValues")?,
                null_count: under("nullCount", &DataType::Long)?.as_primitive::<Int64Type>().clone(),
            })
        })
        .collect::<Result<_>>()?;
    Ok(Stats {
        num_records: child(&["numRecords"], &DataType::Long)?.as_primitive::<Int64Type>().clone(),
        tight_bounds: child(&["tightBounds"], &DataType::Boolean)?.as_boolean().clone(),
        leaves,
    })
}

/// Casts; zones of timestamps are put aside, for statistics are instants in any of them.
fn as_type(array: &ArrayRef, wanted: &Arrow) -> Result<ArrayRef> {
    let retyped = |array: ArrayRef, data_type: Arrow| -> Result<ArrayRef> { Ok(make_array(array.to_data().into_builder().data_type(data_type).build()?)) };
    let options = CastOptions { safe: true, ..CastOptions::default() };
    let array = match array.data_type() {
        Arrow::Timestamp(unit, Some(_)) => retyped(Arc::clone(array), Arrow::Timestamp(*unit, None))?,
        _ => Arc::clone(array),
    };
    match wanted {
        Arrow::Timestamp(unit, Some(_)) => retyped(cast_with_options(&array, &Arrow::Timestamp(*unit, None), &options)?, wanted.clone()),
        _ => Ok(cast_with_options(&array, wanted, &options)?),
    }
}

fn arrow_arith_not(mask: &BooleanArray) -> BooleanArray {
    BooleanArray::new(!mask.values(), None)
}

/// Where a value of the text goes.
type Slot = usize;
const NUM_RECORDS: Slot = 0;
const TIGHT_BOUNDS: Slot = 1;
const FIRST_LEAF: Slot = 2;

/// The keys of statistics as a tree, so that a text is walked once.
#[derive(Default)]
struct Node {
    children: Vec<(String, Node)>,
    slot: Option<Slot>,
}

impl Node {
    fn insert(&mut self, path: &[&str], slot: Slot) {
        let Some((name, rest)) = path.split_first() else {
            self.slot = Some(slot);
            return;
        };
        if let Some((_, child)) = self.children.iter_mut().find(|(n, _)| n == name) {
            return child.insert(rest, slot);
        }
        let mut child = Self::default();
        child.insert(rest, slot);
        self.children.push(((*name).to_owned(), child));
    }

    fn child(&self, name: &[u8]) -> Option<&Self> {
        self.children.iter().find(|(n, _)| n.as_bytes() == name).map(|(_, node)| node)
    }
}

/// A value found in a text: the bytes of its content, without quotes.
#[derive(Clone, Copy)]
struct Value {
    start: usize,
    end: usize,
}

/// What is between the values of a text.
struct Template {
    /// Literal before each value, and the value's slot where it is wanted.
    pieces: Vec<(Vec<u8>, Option<Slot>)>,
    tail: Vec<u8>,
    /// Slots that no value of the template fills.
    unfilled: Vec<Slot>,
}

fn from_text(texts: &StringViewArray, leaves: &[Leaf], zone: Zone, escaped: bool) -> Stats {
    let mut root = Node::default();
    root.insert(&["numRecords"], NUM_RECORDS);
    root.insert(&["tightBounds"], TIGHT_BOUNDS);
    let rows = texts.len();
    let mut columns = vec![Column::new(&DataType::Long, rows, zone), Column::new(&DataType::Boolean, rows, zone)];
    for (n, leaf) in leaves.iter().enumerate() {
        let slot = FIRST_LEAF + 3 * n;
        let mut insert = |kind: &'static str, slot| {
            let path: Vec<&str> = std::iter::once(kind).chain(leaf.path.iter().map(String::as_str)).collect();
            root.insert(&path, slot);
        };
        if leaf.bounds {
            insert("minValues", slot);
            insert("maxValues", slot + 1);
        }
        insert("nullCount", slot + 2);
        let bound = || if leaf.bounds { Column::new(&leaf.data_type, rows, zone) } else { Column::Absent };
        columns.extend([bound(), bound(), Column::new(&DataType::Long, rows, zone)]);
    }
    let mut reader = Reader { root, columns, template: None, values: Vec::new(), escaped };
    for row in 0..rows {
        if texts.is_null(row) {
            reader.null_row();
        } else {
            reader.row(texts.value(row).as_bytes());
        }
    }
    reader.finish(leaves.len())
}

struct Reader {
    root: Node,
    columns: Vec<Column>,
    template: Option<Template>,
    /// Values of the current text, in the order of the template's pieces.
    values: Vec<Value>,
    escaped: bool,
}

impl Reader {
    fn null_row(&mut self) {
        for column in &mut self.columns {
            column.null();
        }
    }

    #[inline]
    fn row(&mut self, text: &[u8]) {
        if let Some(template) = &self.template
            && template.matches(text, self.escaped, &mut self.values)
        {
            for ((_, slot), value) in template.pieces.iter().zip(&self.values) {
                if let Some(column) = slot.and_then(|slot| self.columns.get_mut(slot)) {
                    column.push(text.get(value.start..value.end).unwrap_or_default());
                }
            }
            for slot in &template.unfilled {
                if let Some(column) = self.columns.get_mut(*slot) {
                    column.null();
                }
            }
            return;
        }
        if self.slow_row(text).is_err() {
            self.null_row();
        }
    }

    /// Reads a text with the JSON reader and makes a template of it.
    fn slow_row(&mut self, text: &[u8]) -> Result<(), Wrong> {
        let resolved;
        let json = if self.escaped {
            resolved = unescape(text)?;
            resolved.as_bytes()
        } else {
            text
        };
        let mut found: Vec<(Span, bool, Option<Slot>)> = Vec::new();
        let mut cursor = Cursor::new(json, 0);
        walk(&mut cursor, Some(&self.root), &mut found, 0)?;
        cursor.skip_blanks();
        if cursor.peek().is_some() {
            return Err("text after the statistics");
        }
        // Whatever can fail does so before a column has taken anything.
        let mut values = Vec::with_capacity(found.len());
        for (span, _, slot) in &found {
            let content = json.get(span.start..span.end).unwrap_or_default();
            values.push((*slot, if span.escaped { Cow::Owned(unescape(content)?.into_bytes()) } else { Cow::Borrowed(content) }));
        }
        let mut filled = vec![false; self.columns.len()];
        for (slot, content) in values {
            let Some((column, filled)) = slot.and_then(|slot| Some((self.columns.get_mut(slot)?, filled.get_mut(slot)?))) else { continue };
            // Of a key that occurs twice the first value stands.
            if !std::mem::replace(filled, true) {
                column.push(&content);
            }
        }
        let unfilled: Vec<Slot> = filled.iter().enumerate().filter(|(_, filled)| !**filled).map(|(slot, _)| slot).collect();
        for slot in &unfilled {
            if let Some(column) = self.columns.get_mut(*slot) {
                column.null();
            }
        }
        self.template = Template::new(json, &found, unfilled, self.escaped);
        Ok(())
    }

    fn finish(self, leaves: usize) -> Stats {
        let mut columns = self.columns.into_iter().map(Column::finish);
        let mut long = || columns.next().flatten().map_or_else(|| Int64Array::new_null(0), |a| a.as_primitive::<Int64Type>().clone());
        let num_records = long();
        let tight_bounds = columns.next().flatten().map_or_else(|| BooleanArray::new_null(0), |a| a.as_boolean().clone());
        let leaves = (0..leaves)
            .map(|_| {
                let (min, max) = (columns.next().flatten(), columns.next().flatten());
                let null_count = columns.next().flatten().map_or_else(|| Int64Array::new_null(0), |a| a.as_primitive::<Int64Type>().clone());
                LeafStats { min, max, null_count }
            })
            .collect();
        Stats { num_records, tight_bounds, leaves }
    }
}

/// More levels than any schema has; what is deeper is not looked at.
const DEPTH: usize = 64;

/// Collects every scalar below an object: its content, whether it is a string, and its slot.
fn walk(cursor: &mut Cursor<'_>, node: Option<&Node>, found: &mut Vec<(Span, bool, Option<Slot>)>, depth: usize) -> Result<(), Wrong> {
    if depth > DEPTH {
        return Err("the statistics are nested too deeply");
    }
    cursor.object(|c, key| {
        let child = if key.escaped {
            node.and_then(|n| unescape(c.slice(key)).ok().and_then(|name| n.child(name.as_bytes())))
        } else {
            node.and_then(|n| n.child(c.slice(key)))
        };
        c.skip_blanks();
        match c.peek() {
            Some(b'{') => walk(c, child, found, depth + 1),
            Some(b'"') => {
                let span = c.string()?;
                found.push((span, true, child.and_then(|n| n.slot)));
                Ok(())
            }
            _ => {
                let (start, end) = c.skip_value()?;
                found.push((Span { start, end, escaped: false }, false, child.and_then(|n| n.slot)));
                Ok(())
            }
        }
    })?;
    Ok(())
}

impl Template {
    fn new(json: &[u8], found: &[(Span, bool, Option<Slot>)], unfilled: Vec<Slot>, escaped: bool) -> Option<Self> {
        let mut pieces = Vec::with_capacity(found.len());
        let mut at = 0;
        for (span, is_string, slot) in found {
            // The quotes of a string belong to the value, so that a null in its place still matches.
            let quote = usize::from(*is_string);
            pieces.push((literal(json.get(at..span.start - quote)?, escaped), *slot));
            at = span.end + quote;
        }
        Some(Self { pieces, tail: literal(json.get(at..)?, escaped), unfilled })
    }

    /// Whether `text` has the template's shape; `values` are then the contents between its pieces.
    #[inline]
    fn matches(&self, text: &[u8], escaped: bool, values: &mut Vec<Value>) -> bool {
        values.clear();
        let mut at = 0;
        for (literal, _) in &self.pieces {
            let Some(rest) = text.get(at..).and_then(|rest| rest.strip_prefix(literal.as_slice())) else { return false };
            at += literal.len();
            let quote: &[u8] = if escaped { b"\\\"" } else { b"\"" };
            if let Some(content) = rest.strip_prefix(quote) {
                // The first backslash or quote must be the closing one: a value with escapes goes the slow way.
                let end = if escaped { memchr::memchr(b'\\', content) } else { memchr::memchr2(b'"', b'\\', content) };
                let Some(end) = end else { return false };
                if !content.get(end..).is_some_and(|tail| tail.starts_with(quote)) {
                    return false;
                }
                let start = at + quote.len();
                values.push(Value { start, end: start + end });
                at = start + end + quote.len();
            } else {
                let end = rest.iter().position(|b| matches!(b, b',' | b'}' | b'"' | b'\\' | b'{' | b'[' | b' ')).unwrap_or(rest.len());
                if end == 0 {
                    return false;
                }
                values.push(Value { start: at, end: at + end });
                at += end;
            }
        }
        text.get(at..) == Some(self.tail.as_slice())
    }
}

/// A piece of JSON as it looks inside of a JSON string.
fn literal(piece: &[u8], escaped: bool) -> Vec<u8> {
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

/// The builder of one slot. Everything that is not a value of its type is null.
enum Column {
    Byte(PrimitiveBuilder<Int8Type>),
    Short(PrimitiveBuilder<Int16Type>),
    Integer(PrimitiveBuilder<Int32Type>),
    Long(PrimitiveBuilder<Int64Type>),
    Float(PrimitiveBuilder<Float32Type>),
    Double(PrimitiveBuilder<Float64Type>),
    Decimal(PrimitiveBuilder<Decimal128Type>, u8, i8),
    Boolean(BooleanBuilder),
    Text(StringBuilder),
    Date(PrimitiveBuilder<Date32Type>),
    Timestamp(PrimitiveBuilder<TimestampMicrosecondType>, Zone),
    TimestampNtz(PrimitiveBuilder<TimestampMicrosecondType>),
    /// Not asked for.
    Absent,
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
        value = value.checked_mul(10).and_then(|v| if negative { v.checked_sub(digit) } else { v.checked_add(digit) })?;
    }
    Some(value)
}

fn float(text: &[u8]) -> Option<f64> {
    match text {
        b"NaN" => Some(f64::NAN),
        b"Infinity" | b"INF" => Some(f64::INFINITY),
        b"-Infinity" | b"-INF" => Some(f64::NEG_INFINITY),
        _ if text.first().is_some_and(|b| b.is_ascii_digit() || *b == b'-') => std::str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}

impl Column {
    fn new(data_type: &DataType, rows: usize, zone: Zone) -> Self {
        match data_type {
            DataType::Byte => Self::Byte(PrimitiveBuilder::with_capacity(rows)),
            DataType::Short => Self::Short(PrimitiveBuilder::with_capacity(rows)),
            DataType::Integer => Self::Integer(PrimitiveBuilder::with_capacity(rows)),
            DataType::Long => Self::Long(PrimitiveBuilder::with_capacity(rows)),
            DataType::Float => Self::Float(PrimitiveBuilder::with_capacity(rows)),
            DataType::Double => Self::Double(PrimitiveBuilder::with_capacity(rows)),
            DataType::Decimal(precision, scale) => Self::Decimal(PrimitiveBuilder::with_capacity(rows), *precision, *scale),
            DataType::Boolean => Self::Boolean(BooleanBuilder::with_capacity(rows)),
            DataType::String => Self::Text(StringBuilder::with_capacity(rows, rows * 8)),
            DataType::Date => Self::Date(PrimitiveBuilder::with_capacity(rows)),
            DataType::Timestamp => Self::Timestamp(PrimitiveBuilder::with_capacity(rows), zone),
            DataType::TimestampNtz => Self::TimestampNtz(PrimitiveBuilder::with_capacity(rows)),
            _ => Self::Absent,
        }
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)]
    fn push(&mut self, text: &[u8]) {
        match self {
            Self::Byte(b) => b.append_option(int(text).and_then(|v| v.try_into().ok())),
            Self::Short(b) => b.append_option(int(text).and_then(|v| v.try_into().ok())),
            Self::Integer(b) => b.append_option(int(text).and_then(|v| v.try_into().ok())),
            Self::Long(b) => b.append_option(int(text)),
            Self::Float(b) => b.append_option(float(text).map(|v| v as f32)),
            Self::Double(b) => b.append_option(float(text)),
            Self::Decimal(b, _, scale) => b.append_option(std::str::from_utf8(text).ok().filter(|t| *t != "null").and_then(|t| decimal(t, *scale))),
            Self::Boolean(b) => b.append_option(match text {
                b"true" => Some(true),
                b"false" => Some(false),
                _ => None,
            }),
            Self::Text(b) => match std::str::from_utf8(text) {
                Ok(text) => b.append_value(text),
                Err(_) => b.append_null(),
            },
            Self::Date(b) => b.append_option(time::parse_date(text)),
            Self::Timestamp(b, zone) => b.append_option(time::parse_timestamp(text, *zone)),
            Self::TimestampNtz(b) => b.append_option(time::parse_wall_clock(text).map(|(wall, _)| wall)),
            Self::Absent => {}
        }
    }

    #[inline]
    fn null(&mut self) {
        match self {
            Self::Byte(b) => b.append_null(),
            Self::Short(b) => b.append_null(),
            Self::Integer(b) => b.append_null(),
            Self::Long(b) => b.append_null(),
            Self::Float(b) => b.append_null(),
            Self::Double(b) => b.append_null(),
            Self::Decimal(b, ..) => b.append_null(),
            Self::Boolean(b) => b.append_null(),
            Self::Text(b) => b.append_null(),
            Self::Date(b) => b.append_null(),
            Self::Timestamp(b, _) | Self::TimestampNtz(b) => b.append_null(),
            Self::Absent => {}
        }
    }

    fn finish(self) -> Option<ArrayRef> {
        Some(match self {
            Self::Byte(mut b) => Arc::new(b.finish()),
            Self::Short(mut b) => Arc::new(b.finish()),
            Self::Integer(mut b) => Arc::new(b.finish()),
            Self::Long(mut b) => Arc::new(b.finish()),
            Self::Float(mut b) => Arc::new(b.finish()),
            Self::Double(mut b) => Arc::new(b.finish()),
            Self::Decimal(mut b, precision, scale) => {
                let array = b.finish();
                match array.clone().with_precision_and_scale(precision, scale) {
                    Ok(array) => Arc::new(array),
                    Err(_) => new_null_array(&DataType::Decimal(precision, scale).to_arrow(TextLayout::Plain), array.len()),
                }
            }
            Self::Boolean(mut b) => Arc::new(b.finish()),
            Self::Text(mut b) => Arc::new(b.finish()),
            Self::Date(mut b) => Arc::new(b.finish()),
            Self::Timestamp(mut b, _) => Arc::new(b.finish().with_timezone("UTC")),
            Self::TimestampNtz(mut b) => Arc::new(b.finish()),
            Self::Absent => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn leaves() -> Vec<Leaf> {
        let leaf = |path: &[&str], name: &str| Leaf {
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

    fn show(stats: &Stats) -> Vec<String> {
        let mut out = vec![format!("{:?} {:?}", stats.num_records, stats.tight_bounds)];
        out.extend(stats.leaves.iter().map(|l| format!("{:?} {:?} {:?}", l.min, l.max, l.null_count)));
        out
    }

    const ONE: &str = r#"{"numRecords":2,"minValues":{"i":1,"s":"a","n":{"d":1.5},"t":"2024-01-02T03:04:05.678Z","f":"NaN","day":"2024-01-01"},"maxValues":{"i":9,"s":"zz","n":{"d":2},"t":"2024-01-02T03:04:05.679Z","f":-1e3,"day":"2024-02-30"},"nullCount":{"i":0,"s":1,"n":{"d":2},"t":0}}"#;

    #[test]
    fn values_of_every_type_are_read() {
        let stats = from_text(&texts(&[Some(ONE), None, Some(ONE)]), &leaves(), Zone::UTC, false);
        assert_eq!(stats.num_records.iter().collect::<Vec<_>>(), [Some(2), None, Some(2)]);
        let int = |a: &Option<ArrayRef>| a.as_ref().unwrap().as_primitive::<Int32Type>().iter().collect::<Vec<_>>();
        assert_eq!((int(&stats.leaves[0].min), int(&stats.leaves[0].max)), (vec![Some(1), None, Some(1)], vec![Some(9), None, Some(9)]));
        assert_eq!(stats.leaves[2].max.as_ref().unwrap().as_primitive::<Decimal128Type>().value(2), 200);
        assert!(stats.leaves[4].min.as_ref().unwrap().as_primitive::<Float64Type>().value(2).is_nan());
        assert!(stats.leaves[5].max.as_ref().unwrap().is_null(0), "a date that does not exist is unknown");
        assert_eq!(stats.leaves[1].null_count.value(0), 1);
        assert!(stats.leaves[5].null_count.is_null(0));
    }

    #[test]
    fn invalid_statistics_are_unknown_and_harm_no_neighbour() {
        for bad in ["", "{", "[]x", "null x", r#"{"numRecords":"x"}"#, r#"{"numRecords":1e400}"#, r#"{"minValues":7}"#] {
            let stats = from_text(&texts(&[Some(ONE), Some(bad), Some(ONE)]), &leaves(), Zone::UTC, false);
            assert_eq!(stats.num_records.iter().collect::<Vec<_>>(), [Some(2), None, Some(2)], "{bad}");
            assert!(stats.leaves[0].min.as_ref().unwrap().is_null(1));
        }
    }

    proptest! {
        #[test]
        fn the_template_agrees_with_the_reader(values in prop::collection::vec((any::<i32>(), "\\PC{0,9}|[\"\\\\a]{0,4}", prop::option::of(0i64..5), any::<bool>()), 1..20)) {
            let rows: Vec<String> = values.iter().map(|(i, s, nulls, tight)| {
                let s = serde_json::to_string(s).unwrap();
                let nulls = nulls.map_or("null".to_owned(), |n| n.to_string());
                let tight = if *tight { r#","tightBounds":false"# } else { "" };
                format!(r#"{{"numRecords":3,"minValues":{{"i":{i},"s":{s},"x":{s}}},"maxValues":{{"i":{i},"s":{s}}},"nullCount":{{"i":{nulls},"s":1}}{tight}}}"#)
            }).collect();
            // One text at a time never meets a template of another shape, so it always goes the slow way.
            let alone: Vec<Vec<String>> = rows.iter().map(|row| show(&from_text(&texts(&[Some(row)]), &leaves(), Zone::UTC, false))).collect();
            let escaped: Vec<String> = rows.iter().map(|row| { let q = serde_json::to_string(row).unwrap(); q[1..q.len() - 1].to_owned() }).collect();
            let all = from_text(&rows.iter().map(|r| Some(r.as_str())).collect(), &leaves(), Zone::UTC, false);
            let all_escaped = from_text(&escaped.iter().map(|r| Some(r.as_str())).collect(), &leaves(), Zone::UTC, true);
            prop_assert_eq!(show(&all), show(&all_escaped));
            for (row, alone) in alone.iter().enumerate() {
                let one = Stats {
                    num_records: all.num_records.slice(row, 1),
                    tight_bounds: all.tight_bounds.slice(row, 1),
                    leaves: all.leaves.iter().map(|l| LeafStats { min: l.min.as_ref().map(|a| a.slice(row, 1)), max: l.max.as_ref().map(|a| a.slice(row, 1)), null_count: l.null_count.slice(row, 1) }).collect(),
                };
                prop_assert_eq!(&show(&one), alone);
            }
        }
    }
}
