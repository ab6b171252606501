//! Mapping of a file's columns to the table's columns: table fields x footer ->
//! [`ProjectedColumns`], the leaves to decode and an [`ArrayConversion`] for each column.
//!
//! Columns are resolved on the Arrow types that the file's own schema decodes to, in which lists
//! and maps of every legacy form look alike; an `ARROW:schema` in the footer is ignored. Names are
//! matched exactly first and then without case (an ambiguity is an error), ids by `field_id` at
//! every level of structs. A column that the file lacks is null, also where the table says NOT
//! NULL, as in delta-spark. Types must be equal or one of the protocol's widenings; some narrower
//! annotations that writers leave out (`INT32` for a short, bytes for a string) are read with a
//! check of every value.
//!
//! Protocol: "Column Mapping", "Delta Data Type to Parquet Type Mappings", "Type Widening",
//! "Variant Shredding".

use std::sync::Arc;

use arrow_schema::{DataType as Arrow, Field, Fields, TimeUnit};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use parquet::basic::Type as Physical;
use parquet::schema::types::SchemaDescriptor;
use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::pq::decode::projection::ParquetProjection;
use crate::pq::input::calendar_rebase::CalendarRebase;
use crate::pq::leaf_count::leaf_count;
use crate::protocol::schema::{DataType, SparkType, StringLayout, StructField};

/// The key by which the table's columns are found in its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ColumnMappingMode {
    /// Names.
    #[default]
    None,
    /// Physical names.
    Name,
    /// Field ids.
    Id,
}

/// The conversion of a decoded array to the table's type.
#[derive(Debug, Clone)]
pub(in crate::pq) enum ArrayConversion {
    /// The file has no such field.
    Absent,
    /// A primitive.
    Leaf(LeafConversion),
    /// The target's fields, each with the position of its source among the decoded fields.
    Struct(Vec<(Option<usize>, ArrayConversion)>),
    /// The elements.
    List(Box<ArrayConversion>),
    /// Keys and values.
    Map(Box<(ArrayConversion, ArrayConversion)>),
    /// `metadata`, `value` and perhaps `typed_value`.
    Variant,
}

/// The conversion of a primitive array. Parentheses contain the possible error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pq) enum LeafConversion {
    /// None, or another layout of the same strings.
    Same,
    /// A conversion of Arrow's: widenings, or narrower integers (out of range).
    Cast,
    /// Any unit of time to microseconds, rounded down (overflow).
    Micros,
    /// The same, rebased from the hybrid to the proleptic calendar.
    RebasedMicros,
    /// Days of the hybrid calendar.
    RebasedDays,
    /// Days to microseconds (overflow).
    Midnight,
    /// Bytes to strings (not UTF-8).
    Text,
}

/// A column of the output.
#[derive(Debug, Clone)]
pub(in crate::pq) struct OutputColumn {
    /// Its field, as the table has it.
    pub field: Arc<Field>,
    /// Its position among the decoded columns.
    pub source: Option<usize>,
    pub plan: ArrayConversion,
}

/// The columns to decode of a file and their conversions.
pub(in crate::pq) struct ProjectedColumns {
    pub projection: ParquetProjection,
    pub columns: Vec<OutputColumn>,
}

/// A requested column.
pub(in crate::pq) struct RequestedColumn<'a> {
    /// Its name in the output.
    pub field: &'a StructField,
    /// The key to find it by.
    pub mapping: ColumnMappingMode,
}

/// A name and an id to look for.
struct FieldKey<'a> {
    name: &'a str,
    id: Option<i32>,
}

fn field_key(field: &StructField, mapping: ColumnMappingMode) -> FieldKey<'_> {
    match mapping {
        ColumnMappingMode::None => FieldKey {
            name: &field.name,
            id: None,
        },
        ColumnMappingMode::Name => FieldKey {
            name: field.physical_name(),
            id: None,
        },
        ColumnMappingMode::Id => FieldKey {
            name: field.physical_name(),
            id: field.field_id(),
        },
    }
}

/// Finds fields among siblings.
struct SiblingFieldIndex<'a> {
    exact: FxHashMap<&'a str, usize>,
    ids: FxHashMap<i32, usize>,
    names: Vec<&'a str>,
    /// Names without case, made when one is not found with it.
    by_lowercase: Option<FxHashMap<String, Vec<usize>>>,
}

impl<'a> SiblingFieldIndex<'a> {
    fn new(siblings: impl Iterator<Item = (&'a str, Option<i32>)>) -> Self {
        let mut out = Self {
            exact: FxHashMap::default(),
            ids: FxHashMap::default(),
            names: Vec::new(),
            by_lowercase: None,
        };
        for (n, (name, id)) in siblings.enumerate() {
            out.exact.entry(name).or_insert(n);
            if let Some(id) = id {
                out.ids.entry(id).or_insert(n);
            }
            out.names.push(name);
        }
        out
    }

    fn find(&mut self, key: &FieldKey<'_>) -> Result<Option<usize>> {
        if let Some(id) = key.id {
            return Ok(self.ids.get(&id).copied());
        }
        if let Some(n) = self.exact.get(key.name) {
            return Ok(Some(*n));
        }
        let names = &self.names;
        let folded = self.by_lowercase.get_or_insert_with(|| {
            let mut folded: FxHashMap<String, Vec<usize>> = FxHashMap::default();
            for (n, name) in names.iter().enumerate() {
                folded.entry(name.to_lowercase()).or_default().push(n);
            }
            folded
        });
        match folded.get(&key.name.to_lowercase()).map(Vec::as_slice) {
            None | Some([]) => Ok(None),
            Some([one]) => Ok(Some(*one)),
            Some(_) => Err(Error::corrupt_data(format!(
                "several columns of the file differ from `{}` only in case",
                key.name
            ))),
        }
    }
}

fn id_of(field: &Field) -> Option<i32> {
    field
        .metadata()
        .get(PARQUET_FIELD_ID_META_KEY)
        .and_then(|id| id.parse().ok())
}

impl ProjectedColumns {
    /// Resolves `wanted` in a file of this schema.
    pub fn resolve(
        schema: &SchemaDescriptor,
        wanted: &[RequestedColumn<'_>],
        layout: StringLayout,
        legacy: &CalendarRebase,
    ) -> Result<Self> {
        let roots = schema.root_schema().get_fields();
        let with_id = |node: &parquet::schema::types::TypePtr| {
            let info = node.get_basic_info();
            info.has_id().then(|| info.id())
        };
        if wanted
            .iter()
            .any(|w| w.mapping == ColumnMappingMode::Id && w.field.field_id().is_some())
            && !roots.is_empty()
            && roots.iter().all(|r| with_id(r).is_none())
        {
            return Err(Error::corrupt_data(
                "the file has no field ids, by which the table's column mapping mode `id` finds columns",
            ));
        }
        let mut siblings =
            SiblingFieldIndex::new(roots.iter().map(|root| (root.name(), with_id(root))));
        let mut root_wanted = vec![false; roots.len()];
        for wanted in wanted {
            if matches!(wanted.field.data_type, DataType::Void) {
                continue;
            }
            if let Some(n) = siblings
                .find(&field_key(wanted.field, wanted.mapping))
                .map_err(|e| e.at_column(&wanted.field.name))?
                && let Some(root) = root_wanted.get_mut(n)
            {
                *root = true;
            }
        }
        let whole = ParquetProjection::new(schema, |leaf| {
            root_wanted
                .get(schema.get_column_root_idx(leaf))
                .copied()
                .unwrap_or(false)
        })?;
        let (columns, kept) = plan(&whole, wanted, layout, legacy)?;
        if kept.iter().all(|kept| *kept) {
            return Ok(Self {
                projection: whole,
                columns,
            });
        }
        // Only parts of structs are wanted: plan again over the pruned schema.
        let leaves: Vec<usize> = whole
            .leaves
            .iter()
            .zip(&kept)
            .filter(|(_, kept)| **kept)
            .map(|(leaf, _)| *leaf)
            .collect();
        let shape = ParquetProjection::new(schema, |leaf| leaves.binary_search(&leaf).is_ok())?;
        let (columns, _) = plan(&shape, wanted, layout, legacy)?;
        Ok(Self {
            projection: shape,
            columns,
        })
    }
}

/// Plans every column over `shape`, and marks the leaves that are used.
fn plan(
    shape: &ParquetProjection,
    wanted: &[RequestedColumn<'_>],
    layout: StringLayout,
    legacy: &CalendarRebase,
) -> Result<(Vec<OutputColumn>, Vec<bool>)> {
    let mut planner = ConversionPlanner {
        projection: shape,
        layout,
        legacy,
        used_leaves: vec![false; shape.leaves.len()],
    };
    let mut siblings = SiblingFieldIndex::new(
        shape
            .fields
            .iter()
            .map(|field| (field.name().as_str(), id_of(field))),
    );
    let starts = first_leaves(&shape.fields, 0);
    let columns = wanted
        .iter()
        .map(|wanted| {
            let field = Arc::new(wanted.field.to_arrow(layout));
            let source = match wanted.field.data_type {
                DataType::Void => None,
                _ => siblings.find(&field_key(wanted.field, wanted.mapping))?,
            };
            let found = source.and_then(|n| shape.fields.get(n).zip(starts.get(n)));
            let plan = match found {
                Some((from, start)) => planner.plan(
                    &wanted.field.data_type,
                    from.data_type(),
                    *start,
                    wanted.mapping,
                    &mut ColumnNamePath::new(&wanted.field.name),
                )?,
                None => ArrayConversion::Absent,
            };
            Ok(OutputColumn {
                field,
                source,
                plan,
            })
        })
        .collect::<Result<Vec<_>>>()?;
    Ok((columns, planner.used_leaves))
}

/// The first leaf of each field.
fn first_leaves(fields: &Fields, from: usize) -> Vec<usize> {
    let mut next = from;
    fields
        .iter()
        .map(|field| {
            let start = next;
            next += leaf_count(field.data_type());
            start
        })
        .collect()
}

/// Names from the column down.
struct ColumnNamePath<'a>(Vec<&'a str>);

impl<'a> ColumnNamePath<'a> {
    fn new(name: &'a str) -> Self {
        Self(vec![name])
    }

    fn with_child<T>(
        &mut self,
        name: &'a str,
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.0.push(name);
        let result = work(self);
        self.0.pop();
        result
    }

    fn dotted(&self) -> String {
        self.0.join(".")
    }
}

struct ConversionPlanner<'a> {
    projection: &'a ParquetProjection,
    layout: StringLayout,
    legacy: &'a CalendarRebase,
    used_leaves: Vec<bool>,
}

impl ConversionPlanner<'_> {
    fn mark_used(&mut self, from: usize, count: usize) {
        self.used_leaves
            .iter_mut()
            .skip(from)
            .take(count)
            .for_each(|kept| *kept = true);
    }

    /// `leaf` is the first leaf of the source.
    fn plan<'a>(
        &mut self,
        to: &'a DataType,
        from: &Arrow,
        leaf: usize,
        mapping: ColumnMappingMode,
        path: &mut ColumnNamePath<'a>,
    ) -> Result<ArrayConversion> {
        match (to, from) {
            (DataType::Void, _) => Ok(ArrayConversion::Absent),
            (DataType::Spark(SparkType::CalendarInterval), _) => Err(Error::unsupported(format!(
                "a column of type {to} cannot be read; read the other columns"
            ))
            .at_column(path.dotted())),
            (DataType::Struct(to), Arrow::Struct(from)) => {
                let mut siblings = SiblingFieldIndex::new(
                    from.iter()
                        .map(|field| (field.name().as_str(), id_of(field))),
                );
                let starts = first_leaves(from, leaf);
                let mut children = Vec::with_capacity(to.fields.len());
                let mut any = false;
                for field in &to.fields {
                    let source = match field.data_type {
                        DataType::Void => None,
                        _ => siblings
                            .find(&field_key(field, mapping))
                            .map_err(|e| e.at_column(path.dotted()))?,
                    };
                    let found = source.and_then(|n| from.get(n).zip(starts.get(n)));
                    let plan = match found {
                        Some((source, start)) => {
                            any = true;
                            path.with_child(&field.name, |path| {
                                self.plan(
                                    &field.data_type,
                                    source.data_type(),
                                    *start,
                                    mapping,
                                    path,
                                )
                            })?
                        }
                        None => ArrayConversion::Absent,
                    };
                    children.push((source, plan));
                }
                if !any {
                    // At least one leaf must be read to see which structs are null.
                    self.mark_used(leaf, 1);
                }
                Ok(ArrayConversion::Struct(children))
            }
            (DataType::Array(to), Arrow::List(from)) => {
                let element = path.with_child("element", |path| {
                    self.plan(&to.element, from.data_type(), leaf, mapping, path)
                })?;
                self.mark_used(
                    leaf,
                    usize::from(matches!(element, ArrayConversion::Absent)),
                );
                Ok(ArrayConversion::List(Box::new(element)))
            }
            (DataType::Map(to), Arrow::Map(entries, _)) => {
                let Arrow::Struct(entries) = entries.data_type() else {
                    return Err(Self::mismatch(&DataType::Map(Arc::clone(to)), from, path));
                };
                let [key, value] = entries.as_ref() else {
                    return Err(Self::mismatch(&DataType::Map(Arc::clone(to)), from, path));
                };
                let second = leaf + leaf_count(key.data_type());
                let key = path.with_child("key", |path| {
                    self.plan(&to.key, key.data_type(), leaf, mapping, path)
                })?;
                let values = leaf_count(value.data_type());
                let value = path.with_child("value", |path| {
                    self.plan(&to.value, value.data_type(), second, mapping, path)
                })?;
                self.mark_used(leaf, second - leaf + values);
                Ok(ArrayConversion::Map(Box::new((key, value))))
            }
            (DataType::Variant, Arrow::Struct(fields)) => {
                let has = |name: &str| {
                    fields.iter().any(|field| {
                        field.name() == name && *field.data_type() == Arrow::BinaryView
                    })
                };
                if !has("metadata")
                    || !(has("value") || fields.iter().any(|field| field.name() == "typed_value"))
                {
                    return Err(Self::mismatch(to, from, path));
                }
                self.mark_used(leaf, leaf_count(from));
                Ok(ArrayConversion::Variant)
            }
            (_, Arrow::Null) if to.is_primitive() => {
                self.mark_used(leaf, 1);
                Ok(ArrayConversion::Absent)
            }
            _ => {
                let how = self
                    .leaf(to, from, leaf)
                    .ok_or_else(|| Self::mismatch(to, from, path))?;
                self.mark_used(leaf, 1);
                Ok(ArrayConversion::Leaf(how))
            }
        }
    }

    fn mismatch(to: &DataType, from: &Arrow, path: &ColumnNamePath<'_>) -> Error {
        let found = DataType::from_arrow(from).map_or_else(
            || from.to_string().to_lowercase(),
            |found| found.to_string(),
        );
        Error::schema_mismatch(
            "a data file does not fit the table's schema",
            to.to_string(),
            found,
        )
        .at_column(path.dotted())
    }

    fn physical(&self, leaf: usize) -> Option<Physical> {
        self.projection
            .schema
            .columns()
            .get(leaf)
            .map(|column| column.physical_type())
    }

    /// The conversion of a file's primitive type to the table's, if it is allowed.
    fn leaf(&self, to: &DataType, from: &Arrow, leaf: usize) -> Option<LeafConversion> {
        use DataType as D;
        let int96 = self.physical(leaf) == Some(Physical::INT96);
        let rebased = if int96 {
            self.legacy.int96
        } else {
            self.legacy.datetime
        };
        Some(match (to, from) {
            (D::Date, Arrow::Date32) if self.legacy.datetime => LeafConversion::RebasedDays,
            (D::Date, Arrow::Int32) => LeafConversion::Cast,
            (D::Timestamp, Arrow::Timestamp(..)) if rebased => LeafConversion::RebasedMicros,
            (D::Timestamp | D::TimestampNtz, Arrow::Timestamp(TimeUnit::Microsecond, zone)) => {
                if zone.is_some() == matches!(to, D::Timestamp)
                    && zone.as_deref().is_none_or(|zone| zone == "UTC")
                {
                    LeafConversion::Same
                } else {
                    LeafConversion::Micros
                }
            }
            // Spark ignores `isAdjustedToUTC` here: a local time and an instant are the same
            // number.
            (D::Timestamp | D::TimestampNtz, Arrow::Timestamp(..)) => LeafConversion::Micros,
            (D::TimestampNtz, Arrow::Date32) => LeafConversion::Midnight,
            (D::String, Arrow::Utf8View) | (D::Binary, Arrow::BinaryView) => LeafConversion::Same,
            (D::String, Arrow::BinaryView) => LeafConversion::Text,
            (D::Binary, Arrow::Utf8View | Arrow::FixedSizeBinary(_)) => LeafConversion::Cast,
            // Integers: equal, widened, or written without the annotation of a narrower one.
            (
                D::Byte | D::Short | D::Integer | D::Long,
                Arrow::Int8 | Arrow::Int16 | Arrow::Int32 | Arrow::UInt8 | Arrow::UInt16,
            )
            | (D::Long | D::Integer, Arrow::UInt32)
            | (D::Long, Arrow::UInt64) => {
                if to.to_arrow(self.layout) == *from {
                    LeafConversion::Same
                } else {
                    LeafConversion::Cast
                }
            }
            (
                D::Double,
                Arrow::Int8
                | Arrow::Int16
                | Arrow::Int32
                | Arrow::UInt8
                | Arrow::UInt16
                | Arrow::Float32,
            ) => LeafConversion::Cast,
            (D::Decimal(precision, scale), from) => {
                let (digits, fraction) = match from {
                    Arrow::Decimal32(p, s)
                    | Arrow::Decimal64(p, s)
                    | Arrow::Decimal128(p, s)
                    | Arrow::Decimal256(p, s) => (*p, *s),
                    Arrow::Int8 | Arrow::Int16 | Arrow::Int32 | Arrow::UInt8 | Arrow::UInt16 => {
                        (10, 0)
                    }
                    Arrow::Int64 => (20, 0),
                    _ => return None,
                };
                let whole = |p: u8, s: i8| i16::from(p) - i16::from(s);
                if fraction > *scale || whole(digits, fraction) > whole(*precision, *scale) {
                    return None;
                }
                if *from == Arrow::Decimal128(*precision, *scale) {
                    LeafConversion::Same
                } else {
                    LeafConversion::Cast
                }
            }
            (D::Spark(SparkType::Time(_)), Arrow::Time64(_)) => LeafConversion::Cast,
            _ if to.to_arrow(self.layout) == *from => LeafConversion::Same,
            _ => return None,
        })
    }
}
