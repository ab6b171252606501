//! Statistics in checkpoints: their leaves, as JSON and as a struct.
//!
//! Existing JSON is kept unchanged; the struct is made from it with the parser that readers use. If
//! the last checkpoint holds only the struct, the JSON is made from it.
//!
//! Protocol: "Per-file Statistics", "Checkpoints" (`stats`, `stats_parsed`).

use std::fmt::Write;
use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal32Type, Decimal64Type, Decimal128Type, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
};
use arrow_array::{Array, ArrayRef, StringViewArray, StructArray, new_null_array};
use arrow_buffer::NullBuffer;
use arrow_cast::cast;
use arrow_schema::{DataType as Arrow, Fields, TimeUnit};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::Result;
use crate::parse::StatsColumn;
use crate::parse::stats::{self, FileStatsBatch, LeafStats, StatsLeafColumn, has_bounds};
use crate::protocol::calendar::TimeZoneSpec;
use crate::protocol::properties;
use crate::protocol::schema::{DataType, StringLayout, StructField, StructType};
use crate::snapshot::Snapshot;

/// The number of leaves that are indexed by default, as in Spark.
const INDEXED: i64 = 32;

/// A tree of leaves, by physical names.
#[derive(Debug, Clone)]
enum StatsLayoutNode {
    Leaf(String, usize),
    Parent(String, Vec<StatsLayoutNode>),
}

/// The statistics that a table's checkpoints hold as a struct.
#[derive(Debug, Clone)]
pub(super) struct StatsLayout {
    nodes: Vec<StatsLayoutNode>,
    leaves: Vec<StatsLeafColumn>,
    /// Paths of all leaves of the schema, indexed or not.
    pub(super) all_leaf_paths: Vec<Vec<String>>,
    tight_bounds: bool,
    zone: TimeZoneSpec,
}

/// Walks the schema once, in its order, as delta-spark counts leaves.
struct StatsLayoutBuilder<'a> {
    snapshot: &'a Snapshot,
    /// The number of leaves that may still be taken.
    remaining_leaves: i64,
    /// Logical names in lower case of the columns to take instead.
    selected_columns: Option<FxHashSet<Vec<String>>>,
    shape: StatsLayout,
    logical: Vec<String>,
    physical: Vec<String>,
}

impl StatsLayoutBuilder<'_> {
    fn is_selected(&self) -> bool {
        self.selected_columns.as_ref().is_none_or(|chosen| {
            let path: Vec<String> = self
                .logical
                .iter()
                .map(|name| name.to_lowercase())
                .collect();
            (1..=path.len()).any(|n| path.get(..n).is_some_and(|path| chosen.contains(path)))
        })
    }

    fn fields<'f>(
        &mut self,
        fields: impl Iterator<Item = &'f StructField>,
    ) -> Vec<StatsLayoutNode> {
        let mut out = Vec::new();
        for field in fields {
            let name = self.snapshot.physical_name(field).to_owned();
            self.logical.push(field.name.clone());
            self.physical.push(name.clone());
            if let DataType::Struct(inner) = &field.data_type {
                let children = self.fields(inner.fields.iter());
                if !children.is_empty() {
                    out.push(StatsLayoutNode::Parent(name, children));
                }
            } else {
                self.shape.all_leaf_paths.push(self.physical.clone());
                if self.is_selected() && self.remaining_leaves > 0 {
                    self.remaining_leaves -= 1;
                    out.push(StatsLayoutNode::Leaf(name, self.shape.leaves.len()));
                    // Bounds of collated strings are not in the order of their bytes.
                    let bounds = has_bounds(&field.data_type) && !field.is_collated();
                    self.shape.leaves.push(StatsLeafColumn {
                        path: self.physical.clone(),
                        data_type: field.data_type.clone(),
                        bounds,
                    });
                }
            }
            self.logical.pop();
            self.physical.pop();
        }
        out
    }
}

impl StatsLayout {
    pub(super) fn new(snapshot: &Snapshot) -> Self {
        let metadata = snapshot.metadata();
        let property = |name: &str| metadata.configuration.get(name);
        let chosen =
            property("delta.dataSkippingStatsColumns").and_then(|text| properties::columns(text));
        let left = match property("delta.dataSkippingNumIndexedCols")
            .and_then(|text| text.trim().parse::<i64>().ok())
        {
            _ if chosen.is_some() => i64::MAX,
            Some(count) if count < 0 => i64::MAX,
            Some(count) => count,
            None => INDEXED,
        };
        let shape = Self {
            nodes: Vec::new(),
            leaves: Vec::new(),
            all_leaf_paths: Vec::new(),
            tight_bounds: snapshot.protocol().has_reader_feature("deletionVectors"),
            zone: snapshot.options().zone,
        };
        let mut walk = StatsLayoutBuilder {
            snapshot,
            remaining_leaves: left,
            selected_columns: chosen.map(|columns| {
                let lower =
                    |path: &Vec<String>| path.iter().map(|name| name.to_lowercase()).collect();
                columns.iter().map(lower).collect()
            }),
            shape,
            logical: Vec::new(),
            physical: Vec::new(),
        };
        let partition = &metadata.partition_columns;
        let nodes = walk.fields(
            snapshot
                .schema()
                .fields
                .iter()
                .filter(|field| !partition.contains(&field.name)),
        );
        Self {
            nodes,
            ..walk.shape
        }
    }

    /// The type of `stats_parsed`.
    pub(super) fn data_type(&self) -> StructType {
        let mut fields = vec![StructField::new("numRecords", DataType::Long, true)];
        let bounds = |leaf: &StatsLeafColumn| leaf.bounds.then(|| leaf.data_type.clone());
        let mut add = |name: &str, of: &dyn Fn(&StatsLeafColumn) -> Option<DataType>| {
            let inner = self.types(&self.nodes, of);
            // Parquet does not support structs without fields.
            if !inner.is_empty() {
                fields.push(StructField::new(
                    name,
                    DataType::Struct(Arc::new(StructType {
                        fields: inner.into(),
                    })),
                    true,
                ));
            }
        };
        add("minValues", &bounds);
        add("maxValues", &bounds);
        add("nullCount", &|_| Some(DataType::Long));
        if self.tight_bounds {
            fields.push(StructField::new("tightBounds", DataType::Boolean, true));
        }
        StructType {
            fields: fields.into(),
        }
    }

    fn types(
        &self,
        nodes: &[StatsLayoutNode],
        of: &dyn Fn(&StatsLeafColumn) -> Option<DataType>,
    ) -> Vec<StructField> {
        let field = |node: &StatsLayoutNode| match node {
            StatsLayoutNode::Leaf(name, index) => self
                .leaves
                .get(*index)
                .and_then(of)
                .map(|data_type| StructField::new(name, data_type, true)),
            StatsLayoutNode::Parent(name, children) => {
                let fields = self.types(children, of);
                (!fields.is_empty()).then(|| {
                    StructField::new(
                        name,
                        DataType::Struct(Arc::new(StructType {
                            fields: fields.into(),
                        })),
                        true,
                    )
                })
            }
        };
        nodes.iter().filter_map(field).collect()
    }

    /// `stats_parsed` of a batch, with the fields of [`StatsLayout::data_type`].
    pub(super) fn stats_parsed_column(
        &self,
        column: Option<&StatsColumn>,
        fields: &Fields,
        rows: usize,
    ) -> Result<ArrayRef> {
        let Some(column) = column else {
            return Ok(new_null_array(&Arrow::Struct(fields.clone()), rows));
        };
        let stats = stats::parse(column, &self.leaves, self.zone)?;
        let nulls = match column {
            StatsColumn::Json(text) | StatsColumn::EscapedJson(text) => text.nulls().cloned(),
            StatsColumn::Parsed(parsed) => parsed.nulls().cloned(),
        };
        let columns = fields
            .iter()
            .map(|field| self.column(field.name(), field.data_type(), &stats, nulls.as_ref()))
            .collect::<Result<_>>()?;
        Ok(Arc::new(StructArray::try_new(
            fields.clone(),
            columns,
            nulls,
        )?))
    }

    fn column(
        &self,
        name: &str,
        data_type: &Arrow,
        stats: &FileStatsBatch,
        nulls: Option<&NullBuffer>,
    ) -> Result<ArrayRef> {
        type Pick = fn(&LeafStats) -> Option<ArrayRef>;
        let pick: Pick = match name {
            "numRecords" => return Ok(Arc::new(stats.num_records.clone())),
            "tightBounds" => return Ok(Arc::new(stats.tight_bounds.clone())),
            "minValues" => |leaf| leaf.min.clone(),
            "maxValues" => |leaf| leaf.max.clone(),
            _ => |leaf| Some(Arc::new(leaf.null_count.clone())),
        };
        build_stats_struct(&self.nodes, data_type, stats, nulls, pick)
    }
}

/// The struct of this type, from the leaves that `pick` returns.
fn build_stats_struct(
    nodes: &[StatsLayoutNode],
    data_type: &Arrow,
    stats: &FileStatsBatch,
    nulls: Option<&NullBuffer>,
    pick: fn(&LeafStats) -> Option<ArrayRef>,
) -> Result<ArrayRef> {
    let Arrow::Struct(fields) = data_type else {
        return Ok(new_null_array(data_type, stats.num_records.len()));
    };
    let mut by_name: FxHashMap<&str, &StatsLayoutNode> = FxHashMap::default();
    for node in nodes {
        let (StatsLayoutNode::Leaf(name, _) | StatsLayoutNode::Parent(name, _)) = node;
        by_name.entry(name).or_insert(node);
    }
    let child = |field: &arrow_schema::FieldRef| -> Result<ArrayRef> {
        let node = by_name.get(field.name().as_str()).copied();
        let array = match node {
            Some(StatsLayoutNode::Leaf(_, index)) => stats.leaves.get(*index).and_then(pick),
            Some(StatsLayoutNode::Parent(_, children)) => Some(build_stats_struct(
                children,
                field.data_type(),
                stats,
                nulls,
                pick,
            )?),
            None => None,
        };
        let array =
            array.unwrap_or_else(|| new_null_array(field.data_type(), stats.num_records.len()));
        if array.data_type() == field.data_type() {
            Ok(array)
        } else {
            Ok(cast(&array, field.data_type())?)
        }
    };
    let columns = fields.iter().map(child).collect::<Result<_>>()?;
    Ok(Arc::new(StructArray::try_new(
        fields.clone(),
        columns,
        nulls.cloned(),
    )?))
}

/// `stats` of a batch.
#[must_use]
pub fn stats_json(column: Option<&StatsColumn>, rows: usize) -> StringViewArray {
    match column {
        None => StringViewArray::new_null(rows),
        Some(StatsColumn::Json(text)) => text.clone(),
        Some(StatsColumn::EscapedJson(escaped)) => unescaped(escaped),
        Some(StatsColumn::Parsed(parsed)) => (0..parsed.len())
            .map(|row| parsed.is_valid(row).then(|| row_json(parsed, row)))
            .collect(),
    }
}

/// Resolves the escapes of JSON strings. A string that cannot be resolved is treated as missing
/// statistics.
fn unescaped(escaped: &StringViewArray) -> StringViewArray {
    let mut out = StringViewBuilder::with_capacity(escaped.len()).with_fixed_block_size(1 << 20);
    let mut text = String::new();
    for value in escaped {
        match value {
            Some(value) => {
                text.clear();
                if unescape(value, &mut text) {
                    out.append_value(&text);
                } else {
                    out.append_null();
                }
            }
            None => out.append_null(),
        }
    }
    out.finish()
}

/// Appends the string that this JSON content represents; false if it is invalid.
fn unescape(content: &str, out: &mut String) -> bool {
    let mut rest = content;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        let (head, tail) = rest.split_at(at);
        out.push_str(head);
        let plain = match tail.as_bytes().get(1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            // Rare in statistics: the JSON reader handles the other escapes, such as surrogate
            // pairs.
            _ => match serde_json::from_str::<String>(&format!("\"{tail}\"")) {
                Ok(resolved) => {
                    out.push_str(&resolved);
                    return true;
                }
                Err(_) => return false,
            },
        };
        out.push(plain);
        rest = tail.get(2..).unwrap_or_default();
    }
    out.push_str(rest);
    true
}

/// A row of `stats_parsed` as the JSON of `stats`. Nulls are left out.
pub(super) fn row_json(parsed: &StructArray, row: usize) -> String {
    let mut out = String::new();
    push_json_object(parsed, row, &mut out);
    out
}

fn push_json_object(of: &StructArray, row: usize, out: &mut String) {
    out.push('{');
    let mut first = true;
    for (field, column) in of.fields().iter().zip(of.columns()) {
        if column.is_null(row) {
            continue;
        }
        let before = out.len();
        if !first {
            out.push(',');
        }
        push_json_string(field.name(), out);
        out.push(':');
        if push_json_value(column, row, out) {
            first = false;
        } else {
            out.truncate(before);
        }
    }
    out.push('}');
}

fn push_json_string(text: &str, out: &mut String) {
    out.push_str(&serde_json::Value::from(text).to_string());
}

/// Appends a value in the protocol's format for statistics; false for types that are not supported
/// in statistics.
fn push_json_value(array: &ArrayRef, row: usize, out: &mut String) -> bool {
    // Writing to a string cannot fail.
    macro_rules! number {
        ($type:ty) => {
            write!(out, "{}", array.as_primitive::<$type>().value(row)).is_ok()
        };
    }
    macro_rules! float {
        ($type:ty) => {{
            let value = array.as_primitive::<$type>().value(row);
            if value.is_nan() {
                out.push_str("\"NaN\"");
            } else if value.is_infinite() {
                out.push_str(if value > 0.0 {
                    "\"Infinity\""
                } else {
                    "\"-Infinity\""
                });
            } else {
                out.push_str(&serde_json::Value::from(value).to_string());
            }
            true
        }};
    }
    match array.data_type() {
        Arrow::Int8 => number!(Int8Type),
        Arrow::Int16 => number!(Int16Type),
        Arrow::Int32 => number!(Int32Type),
        Arrow::Int64 => number!(Int64Type),
        Arrow::Float32 => float!(Float32Type),
        Arrow::Float64 => float!(Float64Type),
        Arrow::Decimal32(..) => write!(
            out,
            "{}",
            array.as_primitive::<Decimal32Type>().value_as_string(row)
        )
        .is_ok(),
        Arrow::Decimal64(..) => write!(
            out,
            "{}",
            array.as_primitive::<Decimal64Type>().value_as_string(row)
        )
        .is_ok(),
        Arrow::Decimal128(..) => write!(
            out,
            "{}",
            array.as_primitive::<Decimal128Type>().value_as_string(row)
        )
        .is_ok(),
        Arrow::Boolean => write!(out, "{}", array.as_boolean().value(row)).is_ok(),
        Arrow::Utf8View => {
            push_json_string(array.as_string_view().value(row), out);
            true
        }
        Arrow::Utf8 => {
            push_json_string(array.as_string::<i32>().value(row), out);
            true
        }
        Arrow::Date32 => match array.as_primitive::<Date32Type>().value_as_date(row) {
            Some(date) => write!(out, "\"{}\"", date.format("%Y-%m-%d")).is_ok(),
            None => false,
        },
        Arrow::Timestamp(TimeUnit::Microsecond, zone) => match array
            .as_primitive::<TimestampMicrosecondType>()
            .value_as_datetime(row)
        {
            Some(time) => write!(
                out,
                "\"{}{}\"",
                time.format("%Y-%m-%dT%H:%M:%S%.6f"),
                if zone.is_some() { "Z" } else { "" }
            )
            .is_ok(),
            None => false,
        },
        Arrow::Timestamp(..) => match cast(
            array,
            &Arrow::Timestamp(TimeUnit::Microsecond, zone_of(array.data_type())),
        ) {
            Ok(micros) => push_json_value(&micros, row, out),
            Err(_) => false,
        },
        Arrow::Struct(_) => {
            push_json_object(array.as_struct(), row, out);
            true
        }
        _ => false,
    }
}

fn zone_of(data_type: &Arrow) -> Option<Arc<str>> {
    match data_type {
        Arrow::Timestamp(_, zone) => zone.clone(),
        _ => None,
    }
}

/// The Arrow fields of a struct type, with strings as offsets and bytes, as the parser builds them.
pub(super) fn plain_fields(of: &StructType) -> Fields {
    of.arrow_fields(StringLayout::Plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn escapes_are_resolved_as_the_json_reader_does(text in "(\\PC|[\"\\\\/\n\t\u{1}\u{10ffff}]){0,40}") {
            let quoted = serde_json::to_string(&text).unwrap();
            let mut out = String::new();
            prop_assert!(unescape(&quoted[1..quoted.len() - 1], &mut out));
            prop_assert_eq!(out, text);
        }
    }

    #[test]
    fn surrogates_are_resolved_and_broken_escapes_are_none() {
        let resolve = |text: &str| {
            let mut out = String::new();
            unescape(text, &mut out).then_some(out)
        };
        assert_eq!(resolve(r#"a\/\ud83d\ude00\"b"#).unwrap(), "a/\u{1f600}\"b");
        assert_eq!(resolve(r"a\ud83d"), None);
        assert_eq!(resolve(r"a\x"), None);
        assert_eq!(resolve("a\\"), None);
    }

    #[test]
    fn text_made_of_the_struct_is_parsed_back_to_it() {
        let leaf = |path: &[&str], name: &str| StatsLeafColumn {
            path: path.iter().map(ToString::to_string).collect(),
            data_type: DataType::from_name(name).unwrap(),
            bounds: true,
        };
        let leaves = vec![
            leaf(&["i"], "integer"),
            leaf(&["s"], "string"),
            leaf(&["n", "d"], "decimal(9,2)"),
            leaf(&["t"], "timestamp"),
            leaf(&["u"], "timestamp_ntz"),
            leaf(&["f"], "double"),
            leaf(&["day"], "date"),
            leaf(&["b"], "boolean"),
        ];
        let nodes = vec![
            StatsLayoutNode::Leaf("i".into(), 0),
            StatsLayoutNode::Leaf("s".into(), 1),
            StatsLayoutNode::Parent("n".into(), vec![StatsLayoutNode::Leaf("d".into(), 2)]),
            StatsLayoutNode::Leaf("t".into(), 3),
            StatsLayoutNode::Leaf("u".into(), 4),
            StatsLayoutNode::Leaf("f".into(), 5),
            StatsLayoutNode::Leaf("day".into(), 6),
            StatsLayoutNode::Leaf("b".into(), 7),
        ];
        let shape = StatsLayout {
            nodes,
            leaves,
            all_leaf_paths: Vec::new(),
            tight_bounds: true,
            zone: TimeZoneSpec::UTC,
        };
        let one = r#"{"numRecords":2,"minValues":{"i":-1,"s":"a\"\\\u0001","n":{"d":-1.50},"t":"1969-12-31T23:59:59.000001Z","u":"2024-01-02T03:04:05.678000","f":"NaN","day":"0001-01-01","b":false},"maxValues":{"i":9,"s":"zz","n":{"d":12345.67},"f":1e300},"nullCount":{"i":0,"n":{"d":1}},"tightBounds":false}"#;
        let texts: StringViewArray = [Some(one), None, Some(r#"{"numRecords":0}"#)]
            .into_iter()
            .collect();
        let fields = plain_fields(&shape.data_type());
        let first = shape
            .stats_parsed_column(Some(&StatsColumn::Json(texts)), &fields, 3)
            .unwrap();
        let written = stats_json(Some(&StatsColumn::Parsed(first.as_struct().clone())), 3);
        assert!(written.is_null(1));
        assert!(
            written
                .value(0)
                .contains(r#""t":"1969-12-31T23:59:59.000001Z""#)
                && written.value(0).contains(r#""s":"a\"\\\u0001""#),
            "{}",
            written.value(0)
        );
        let again = shape
            .stats_parsed_column(Some(&StatsColumn::Json(written)), &fields, 3)
            .unwrap();
        assert_eq!(format!("{first:?}"), format!("{again:?}"));
    }
}
