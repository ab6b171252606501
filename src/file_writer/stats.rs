//! Statistics of a new file: converts the encoder's statistics to the JSON of `add.stats`.
//!
//! Statistics are collected for the first `delta.dataSkippingNumIndexedCols` (32) leaves, or for
//! those in `delta.dataSkippingStatsColumns`, without partition and `void` columns; lists, maps and
//! variants count as leaves and have a null count only. Booleans have bounds, with which kernels and
//! Polars skip files; delta-spark writes none, and ignores them like the reader of this crate.
//! Strings are truncated to 32 characters; the upper bound then ends with a greater character.
//! Timestamps are rounded outwards to milliseconds. Bounds that cannot be represented are left out,
//! which is always correct.
//!
//! Protocol: "Per-file Statistics".

use std::collections::BTreeMap;
use std::fmt::Write;

use arrow_array::{Array, ArrayRef};
use rustc_hash::FxHashSet;

use crate::error::{Error, Result, shown};
use crate::expr::Scalar;
use crate::expr::text::{datetime, number};
use crate::parse::stats::{StatsLeafColumn, has_bounds};
use crate::parse::{self, StatsColumn};
use crate::pq::{ColumnStatistics, StatisticsLevel};
use crate::protocol::calendar::TimeZoneSpec;
use crate::protocol::properties::columns;
use crate::protocol::schema::{DataType, StructField, StructType};

/// The default number of leaves with statistics.
const INDEXED: i64 = 32;
/// The default number of characters in the bounds of strings.
const PREFIX: usize = 32;

/// A field of the file with its statistics.
#[derive(Debug, Clone)]
enum FileStatsNode {
    Struct(String, Vec<FileStatsNode>),
    Leaf(String, DataType, StatisticsLevel),
}

/// The number of rows of a file, and the statistics of its leaves.
pub type FileStatistics = (u64, Vec<ColumnStatistics>);

/// The statistics of a table's files.
#[derive(Debug, Clone)]
pub struct StatsPlan {
    nodes: Vec<FileStatsNode>,
    prefix: usize,
}

impl StatsPlan {
    /// The plan for files with the columns `written`, of which `partitions` are partition columns.
    /// `physical` gives the name of a field in the file.
    ///
    /// # Errors
    /// [`Error::Invalid`] for invalid properties.
    pub fn new(
        written: &StructType,
        partitions: &[String],
        properties: &BTreeMap<String, String>,
        physical: impl Fn(&StructField) -> String,
    ) -> Result<Self> {
        let whole = |key: &str, default: i64| match properties.get(key) {
            None => Ok(default),
            Some(text) => text.trim().parse::<i64>().map_err(|_| {
                Error::invalid(format!(
                    "the table property `{key}` is `{}`, which is not a whole number",
                    shown(text)
                ))
            }),
        };
        let named = match properties.get("delta.dataSkippingStatsColumns") {
            None => None,
            Some(text) => {
                let columns = columns(text).ok_or_else(|| {
                    Error::invalid(format!("the table property `delta.dataSkippingStatsColumns` is `{}`, which is not a list of columns", shown(text)))
                })?;
                Some(
                    columns
                        .iter()
                        .map(|path| path.iter().map(|name| name.to_lowercase()).collect())
                        .collect(),
                )
            }
        };
        let count = whole("delta.dataSkippingNumIndexedCols", INDEXED)?;
        let left = if count < 0 {
            usize::MAX
        } else {
            usize::try_from(count).unwrap_or(usize::MAX)
        };
        let prefix = usize::try_from(whole(
            "delta.dataSkippingStringPrefixLength",
            PREFIX as i64,
        )?)
        .unwrap_or(PREFIX);
        let mut planner = StatsColumnPlanner {
            named,
            left,
            physical: &physical,
        };
        let nodes = written
            .fields
            .iter()
            .map(|field| {
                let partition = partitions.contains(&field.name);
                planner.node(field, &mut Vec::new(), partition)
            })
            .collect();
        Ok(Self { nodes, prefix })
    }

    /// The plan without any statistics.
    #[must_use]
    pub fn without_statistics(self) -> Self {
        fn walk(nodes: Vec<FileStatsNode>) -> Vec<FileStatsNode> {
            let node = |node| match node {
                FileStatsNode::Struct(name, children) => {
                    FileStatsNode::Struct(name, walk(children))
                }
                FileStatsNode::Leaf(name, data_type, _) => {
                    FileStatsNode::Leaf(name, data_type, StatisticsLevel::Nothing)
                }
            };
            nodes.into_iter().map(node).collect()
        }
        Self {
            nodes: walk(self.nodes),
            ..self
        }
    }

    /// The statistics that the encoder must collect for each leaf, in order.
    #[must_use]
    pub fn requested_statistics(&self) -> Vec<StatisticsLevel> {
        fn walk(nodes: &[FileStatsNode], out: &mut Vec<StatisticsLevel>) {
            for node in nodes {
                match node {
                    FileStatsNode::Struct(_, children) => walk(children, out),
                    FileStatsNode::Leaf(_, _, wanted) => out.push(*wanted),
                }
            }
        }
        let mut out = Vec::new();
        walk(&self.nodes, &mut out);
        out
    }

    /// The statistics of files in the log, each with its number of rows: those of each leaf, in
    /// order; `None` for a file whose number of rows is unknown or whose bounds are not tight.
    ///
    /// # Errors
    /// Errors of reading statistics.
    pub fn parse_statistics(&self, texts: &[Option<&str>]) -> Result<Vec<Option<FileStatistics>>> {
        let mut leaves = Vec::new();
        leaves_of(&self.nodes, &mut Vec::new(), &mut leaves);
        let read = parse::stats::parse(
            &StatsColumn::Json(texts.iter().copied().collect()),
            &leaves,
            TimeZoneSpec::UTC,
        )?;
        let wanted = self.requested_statistics();
        let of_file = |row: usize| {
            let rows = read
                .num_records
                .is_valid(row)
                .then(|| u64::try_from(read.num_records.value(row)).ok())
                .flatten()?;
            if read.tight_bounds.is_valid(row) && !read.tight_bounds.value(row) {
                return None;
            }
            let fact = |(leaf, wanted): (&parse::stats::LeafStats, &StatisticsLevel)| {
                let nulls = leaf
                    .null_count
                    .is_valid(row)
                    .then(|| u64::try_from(leaf.null_count.value(row)).ok())
                    .flatten();
                let bound = |array: &Option<ArrayRef>| {
                    array
                        .as_ref()
                        .and_then(|array| Scalar::of(array, row))
                        .filter(|bound| !bound.is_null())
                };
                let bounds = if *wanted == StatisticsLevel::Bounds {
                    (bound(&leaf.min), bound(&leaf.max))
                } else {
                    (None, None)
                };
                ColumnStatistics::from_parts(rows, nulls, bounds)
            };
            Some((rows, read.leaves.iter().zip(&wanted).map(fact).collect()))
        };
        Ok((0..texts.len()).map(of_file).collect())
    }

    /// The minimum size in bytes of the encoder's string bounds from which bounds for the log can
    /// be made.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        // The greater character is searched for among as many further characters, each of at most
        // four bytes.
        self.prefix.saturating_mul(8).clamp(64, 1 << 20)
    }

    /// The JSON for a file of `rows` rows.
    #[must_use]
    pub fn json(&self, rows: u64, facts: &[ColumnStatistics]) -> String {
        let mut out = format!("{{\"numRecords\":{rows}");
        let min = |data_type: &DataType, facts: &ColumnStatistics| {
            value(data_type, facts.min.as_ref()?, StatsBound::Min, self.prefix)
        };
        let max = |data_type: &DataType, facts: &ColumnStatistics| {
            value(data_type, facts.max.as_ref()?, StatsBound::Max, self.prefix)
        };
        let bounded = |pick: &dyn Fn(&DataType, &ColumnStatistics) -> Option<String>,
                       wanted: StatisticsLevel,
                       data_type: &DataType,
                       facts: &ColumnStatistics| {
            (wanted == StatisticsLevel::Bounds)
                .then(|| pick(data_type, facts))
                .flatten()
        };
        object(
            &mut out,
            "minValues",
            &self.nodes,
            facts,
            &|data_type, wanted, facts| bounded(&min, wanted, data_type, facts),
        );
        object(
            &mut out,
            "maxValues",
            &self.nodes,
            facts,
            &|data_type, wanted, facts| bounded(&max, wanted, data_type, facts),
        );
        object(
            &mut out,
            "nullCount",
            &self.nodes,
            facts,
            &|_, wanted, facts| {
                (wanted != StatisticsLevel::Nothing && !facts.nulls_unknown)
                    .then(|| facts.nulls.to_string())
            },
        );
        out.push_str(",\"tightBounds\":true}");
        out
    }
}

/// The leaves for the reader of statistics.
fn leaves_of(nodes: &[FileStatsNode], path: &mut Vec<String>, out: &mut Vec<StatsLeafColumn>) {
    for node in nodes {
        match node {
            FileStatsNode::Struct(name, children) => {
                path.push(name.clone());
                leaves_of(children, path, out);
                path.pop();
            }
            FileStatsNode::Leaf(name, data_type, wanted) => {
                let path = path.iter().cloned().chain([name.clone()]).collect();
                out.push(StatsLeafColumn {
                    path,
                    data_type: data_type.clone(),
                    bounds: *wanted == StatisticsLevel::Bounds,
                });
            }
        }
    }
}

/// Formats one leaf's value, if it has one.
type StatsValuePicker<'a> =
    &'a dyn Fn(&DataType, StatisticsLevel, &ColumnStatistics) -> Option<String>;

fn object(
    out: &mut String,
    name: &str,
    nodes: &[FileStatsNode],
    facts: &[ColumnStatistics],
    pick: StatsValuePicker<'_>,
) {
    fn walk(
        nodes: &[FileStatsNode],
        facts: &mut std::slice::Iter<'_, ColumnStatistics>,
        pick: StatsValuePicker<'_>,
    ) -> String {
        let mut out = String::new();
        for node in nodes {
            let (name, text) = match node {
                FileStatsNode::Struct(name, children) => {
                    let inner = walk(children, facts, pick);
                    (name, (!inner.is_empty()).then(|| format!("{{{inner}}}")))
                }
                FileStatsNode::Leaf(name, data_type, wanted) => (
                    name,
                    facts
                        .next()
                        .and_then(|facts| pick(data_type, *wanted, facts)),
                ),
            };
            if let Some(text) = text {
                let comma = if out.is_empty() { "" } else { "," };
                let _ = write!(out, "{comma}{}:{text}", quoted(name));
            }
        }
        out
    }
    let inner = walk(nodes, &mut facts.iter(), pick);
    let _ = write!(out, ",{}:{{{inner}}}", quoted(name));
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

struct StatsColumnPlanner<'a> {
    named: Option<FxHashSet<Vec<String>>>,
    left: usize,
    physical: &'a dyn Fn(&StructField) -> String,
}

impl StatsColumnPlanner<'_> {
    fn node(
        &mut self,
        field: &StructField,
        path: &mut Vec<String>,
        excluded: bool,
    ) -> FileStatsNode {
        let name = (self.physical)(field);
        path.push(field.name.to_lowercase());
        let node = if let DataType::Struct(inner) = &field.data_type {
            let written = inner
                .fields
                .iter()
                .filter(|field| !matches!(field.data_type, DataType::Void));
            FileStatsNode::Struct(
                name,
                written
                    .map(|field| self.node(field, path, excluded))
                    .collect(),
            )
        } else {
            let indexed = !excluded
                && match &self.named {
                    Some(named) => (1..=path.len())
                        .any(|n| path.get(..n).is_some_and(|path| named.contains(path))),
                    None => self.left > 0,
                };
            if !excluded {
                self.left = self.left.saturating_sub(1);
            }
            let bounds = has_bounds(&field.data_type) && !field.is_collated();
            let wanted = match (indexed, bounds) {
                (false, _) => StatisticsLevel::Nothing,
                (true, false) => StatisticsLevel::Nulls,
                (true, true) => StatisticsLevel::Bounds,
            };
            FileStatsNode::Leaf(name, field.data_type.clone(), wanted)
        };
        path.pop();
        node
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StatsBound {
    Min,
    Max,
}

/// A bound as JSON.
fn value(data_type: &DataType, value: &Scalar, side: StatsBound, prefix: usize) -> Option<String> {
    let mut out = String::new();
    match (data_type, value) {
        (
            DataType::Byte | DataType::Short | DataType::Integer | DataType::Long,
            Scalar::Long(v),
        ) => out = v.to_string(),
        (DataType::Float, Scalar::Double(v)) => {
            number::write_float(&mut out, *v as f32);
            return Some(if v.is_finite() { out } else { quoted(&out) });
        }
        (DataType::Double, Scalar::Double(v)) => {
            number::write_double(&mut out, *v);
            return Some(if v.is_finite() { out } else { quoted(&out) });
        }
        (DataType::Boolean, Scalar::Boolean(v)) => out = v.to_string(),
        (DataType::Decimal(_, scale), Scalar::Decimal(v)) => {
            number::write_decimal(&mut out, *v, *scale);
        }
        (DataType::Date, Scalar::Long(days)) => {
            // Readers differ in how they parse years with more or less than four digits.
            if !FOUR_DIGIT_DAYS.contains(days) {
                return None;
            }
            datetime::write_date(&mut out, *days);
            return Some(quoted(&out));
        }
        (DataType::Timestamp | DataType::TimestampNtz, Scalar::Long(micros)) => {
            let ms = if side == StatsBound::Min {
                micros.div_euclid(1000)
            } else {
                micros.div_euclid(1000) + i64::from(micros.rem_euclid(1000) != 0)
            };
            let (days, of_day) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000));
            if !FOUR_DIGIT_DAYS.contains(&days) {
                return None;
            }
            datetime::write_date(&mut out, days);
            let (seconds, fraction) = (of_day / 1000, of_day % 1000);
            let _ = write!(
                out,
                "T{:02}:{:02}:{:02}.{fraction:03}",
                seconds / 3600,
                seconds / 60 % 60,
                seconds % 60
            );
            if matches!(data_type, DataType::Timestamp) {
                out.push('Z');
            }
            return Some(quoted(&out));
        }
        (DataType::String, Scalar::Text(text)) => {
            return bound_text(text, side, prefix).map(|text| quoted(&text));
        }
        _ => return None,
    }
    Some(out)
}

/// From the first day of year 1 to the last day of year 9999.
const FOUR_DIGIT_DAYS: std::ops::RangeInclusive<i64> = -719_162..=2_932_896;

/// A prefix of a string that is a bound of it.
fn bound_text(text: &str, side: StatsBound, prefix: usize) -> Option<String> {
    let Some((end, _)) = text.char_indices().nth(prefix) else {
        return Some(text.to_owned());
    };
    let (head, tail) = text.split_at(end);
    if side == StatsBound::Min {
        return Some(head.to_owned());
    }
    // The character that replaces the rest must be greater than the first one that it replaces. An
    // ASCII character is used if possible; if no character is greater, more characters are kept.
    let mut out = head.to_owned();
    for (n, c) in tail.chars().enumerate() {
        if n >= prefix {
            return None;
        }
        if c < '\u{7f}' {
            out.push('\u{7f}');
            return Some(out);
        }
        if c < char::MAX {
            out.push(char::MAX);
            return Some(out);
        }
        out.push(c);
    }
    // All characters are the greatest ones: the string is its own bound.
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::stats::parse;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Date32Type, Decimal128Type, Float64Type, TimestampMicrosecondType};
    use proptest::prelude::*;

    fn field(name: &str, data_type: &str) -> StructField {
        StructField::new(name, DataType::from_name(data_type).unwrap(), true)
    }

    fn plan(fields: Vec<StructField>, properties: &[(&str, &str)]) -> StatsPlan {
        let properties = properties
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        StatsPlan::new(
            &StructType {
                fields: fields.into(),
            },
            &["p".to_owned()],
            &properties,
            |field| field.physical_name().to_owned(),
        )
        .unwrap()
    }

    fn facts(nulls: u64, min: Scalar, max: Scalar) -> ColumnStatistics {
        let mut facts = ColumnStatistics::default();
        (facts.nulls, facts.min, facts.max) = (nulls, Some(min), Some(max));
        facts
    }

    #[test]
    fn the_text_is_as_spark_writes_it_and_our_reader_reads_it() {
        let inner = StructType {
            fields: vec![
                field("d", "decimal(9,2)"),
                field("v", "void"),
                field("day", "date"),
            ]
            .into(),
        };
        let fields = vec![
            field("f", "double"),
            StructField::new("n", DataType::Struct(inner.into()), true),
            field("p", "integer"),
            field("t", "timestamp"),
            field("b", "binary"),
            field("y", "boolean"),
        ];
        let plan = plan(fields, &[]);
        assert_eq!(plan.requested_statistics().len(), 7);
        let none = ColumnStatistics::default();
        let facts = [
            facts(1, Scalar::Double(-0.0), Scalar::Double(f64::NAN)),
            facts(2, Scalar::Decimal(-150), Scalar::Decimal(12_345)),
            facts(0, Scalar::Long(0), Scalar::Long(19_000)),
            none.clone(),
            facts(0, Scalar::Long(-1), Scalar::Long(1_000_001)),
            none.clone(),
            none,
        ];
        let text = plan.json(9, &facts);
        assert_eq!(
            text,
            concat!(
                r#"{"numRecords":9,"minValues":{"f":-0.0,"n":{"d":-1.50,"day":"1970-01-01"},"t":"1969-12-31T23:59:59.999Z"},"#,
                r#""maxValues":{"f":"NaN","n":{"d":123.45,"day":"2022-01-08"},"t":"1970-01-01T00:00:01.001Z"},"#,
                r#""nullCount":{"f":1,"n":{"d":2,"day":0},"t":0,"b":0,"y":0},"tightBounds":true}"#
            )
        );
        let leaf = |path: &[&str], name: &str| StatsLeafColumn {
            path: path.iter().map(ToString::to_string).collect(),
            data_type: DataType::from_name(name).unwrap(),
            bounds: true,
        };
        let leaves = [
            leaf(&["f"], "double"),
            leaf(&["n", "d"], "decimal(9,2)"),
            leaf(&["n", "day"], "date"),
            leaf(&["t"], "timestamp"),
        ];
        let read = parse(
            &StatsColumn::Json(std::iter::once(Some(text)).collect()),
            &leaves,
            crate::protocol::calendar::TimeZoneSpec::UTC,
        )
        .unwrap();
        assert_eq!(read.num_records.value(0), 9);
        assert!(
            read.leaves[0]
                .max
                .as_ref()
                .unwrap()
                .as_primitive::<Float64Type>()
                .value(0)
                .is_nan()
        );
        assert_eq!(
            read.leaves[1]
                .min
                .as_ref()
                .unwrap()
                .as_primitive::<Decimal128Type>()
                .value(0),
            -150
        );
        assert_eq!(
            read.leaves[2]
                .max
                .as_ref()
                .unwrap()
                .as_primitive::<Date32Type>()
                .value(0),
            19_000
        );
        assert_eq!(
            read.leaves[3]
                .min
                .as_ref()
                .unwrap()
                .as_primitive::<TimestampMicrosecondType>()
                .value(0),
            -1000
        );
        assert_eq!(
            read.leaves[3]
                .max
                .as_ref()
                .unwrap()
                .as_primitive::<TimestampMicrosecondType>()
                .value(0),
            1_001_000
        );
    }

    #[test]
    fn leaves_are_counted_or_named() {
        let inner = StructType {
            fields: vec![field("x", "long"), field("y", "long")].into(),
        };
        let fields = || {
            vec![
                field("p", "long"),
                field("a", "long"),
                StructField::new("S", DataType::Struct(inner.clone().into()), true),
                field("odd, name", "long"),
            ]
        };
        let wanted = |properties: &[(&str, &str)]| {
            plan(fields(), properties)
                .requested_statistics()
                .iter()
                .map(|w| *w != StatisticsLevel::Nothing)
                .collect::<Vec<_>>()
        };
        assert_eq!(wanted(&[]), [false, true, true, true, true]);
        assert_eq!(
            wanted(&[("delta.dataSkippingNumIndexedCols", "2")]),
            [false, true, true, false, false]
        );
        assert_eq!(
            wanted(&[("delta.dataSkippingNumIndexedCols", "0")]),
            [false; 5]
        );
        assert_eq!(
            wanted(&[("delta.dataSkippingNumIndexedCols", "-1")]),
            [false, true, true, true, true]
        );
        let named = |text: &str| {
            wanted(&[
                ("delta.dataSkippingStatsColumns", text),
                ("delta.dataSkippingNumIndexedCols", "1"),
            ])
        };
        assert_eq!(named("s.y, `odd, name`"), [false, false, false, true, true]);
        assert_eq!(named("s"), [false, false, true, true, false]);
        assert_eq!(named(""), [false; 5]);
    }

    #[test]
    fn collated_columns_have_no_bounds() {
        let mut collated = field("s", "string");
        collated.metadata.insert(
            "__COLLATIONS".to_owned(),
            serde_json::json!({"s": "icu.UNICODE"}),
        );
        assert_eq!(
            plan(vec![collated, field("t", "string")], &[]).requested_statistics(),
            [StatisticsLevel::Nulls, StatisticsLevel::Bounds]
        );
    }

    #[test]
    fn years_beyond_four_digits_have_no_bounds() {
        for days in [-719_163, 2_932_897] {
            assert_eq!(
                value(&DataType::Date, &Scalar::Long(days), StatsBound::Min, 32),
                None
            );
        }
        assert_eq!(
            value(
                &DataType::Date,
                &Scalar::Long(2_932_896),
                StatsBound::Max,
                32
            )
            .unwrap(),
            "\"9999-12-31\""
        );
        assert_eq!(
            value(
                &DataType::Timestamp,
                &Scalar::Long(i64::MAX),
                StatsBound::Max,
                32
            ),
            None
        );
    }

    #[test]
    fn an_upper_bound_of_text_is_one_for_every_character() {
        let top = char::MAX.to_string();
        assert_eq!(
            bound_text(&"a".repeat(32), StatsBound::Max, 32).unwrap(),
            "a".repeat(32)
        );
        assert_eq!(
            bound_text(&"a".repeat(33), StatsBound::Max, 32).unwrap(),
            "a".repeat(32) + "\u{7f}"
        );
        assert_eq!(
            bound_text(&"é".repeat(33), StatsBound::Max, 32).unwrap(),
            "é".repeat(32) + &top
        );
        assert_eq!(
            bound_text(&("a".repeat(32) + "\u{7f}b"), StatsBound::Max, 32).unwrap(),
            "a".repeat(32) + &top
        );
        assert_eq!(
            bound_text(&("a".repeat(32) + &top + "b"), StatsBound::Max, 32).unwrap(),
            "a".repeat(32) + &top + "\u{7f}"
        );
        assert_eq!(
            bound_text(&("a".repeat(32) + &top.repeat(2)), StatsBound::Max, 32).unwrap(),
            "a".repeat(32) + &top.repeat(2)
        );
        assert_eq!(bound_text(&top.repeat(80), StatsBound::Max, 32), None);
    }

    proptest! {
        #[test]
        fn bounds_of_text_hold(text in "([ab\u{7f}é\u{fffd}\u{10000}\u{10ffff}]{0,9}|\\PC{0,80})", prefix in 0_usize..40) {
            let min = bound_text(&text, StatsBound::Min, prefix).unwrap();
            prop_assert!(min <= text && min.chars().count() <= prefix.max(text.chars().count().min(prefix)));
            if let Some(max) = bound_text(&text, StatsBound::Max, prefix) {
                prop_assert!(max >= text);
                prop_assert!(max.chars().count() <= 2 * prefix + 1);
            }
        }
    }
}
