//! Schema, row count and statistics of a file from its footer, for a table that takes the file
//! over.
//!
//! Only exact values become statistics. Left out are bounds of floating point numbers (a footer
//! does not show whether there are `NaN`s), of columns in an order that old writers got wrong, and
//! of times in a legacy calendar, and null counts of lists and maps (the footer counts their
//! elements).
//!
//! Cost: one footer, in one or two reads.

use std::sync::Arc;

use arrow_schema::{DataType as Arrow, Field, TimeUnit};
use parquet::basic::{ConvertedType, Type as Physical};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;
use parquet::schema::types::{BasicTypeInfo, Type, TypePtr};
use rustc_hash::FxHashMap;

use crate::error::{Error, Result, ResultExt};
use crate::expr::Scalar;
use crate::pq::decode::projection::ParquetProjection;
use crate::pq::decoder_errors::catch_decoder_panic;
use crate::pq::encoding::column_statistics::{
    BoundsType, ColumnStatistics, StatisticsLevel, bounds,
};
use crate::pq::input::calendar_rebase::CalendarRebase;
use crate::pq::input::footer::{ParquetFooter, read_footer};
use crate::protocol::calendar::TimeZoneSpec;
use crate::protocol::schema::{
    ArrayType, DataType, MapType, StringLayout, StructField, StructType,
};
use crate::store::StoreObject;

/// A file whose footer was read.
#[derive(Debug, Clone)]
pub struct FooterSchema {
    /// Its columns, all nullable, whatever the file declares.
    pub schema: StructType,
    footer: Arc<ParquetFooter>,
    legacy: bool,
}

/// Reads a file's footer.
///
/// # Errors
/// [`Error::Corrupt`] for a file that is not Parquet, [`Error::Unsupported`] for a type that Delta
/// does not have; both name the file.
pub fn infer_schema(file: &StoreObject) -> Result<FooterSchema> {
    let footer = read_footer(file)?;
    let schema = catch_decoder_panic(&file.path, || {
        let descriptor = footer.metadata.file_metadata().schema_descr();
        let shape = ParquetProjection::new(descriptor, |_| true)?;
        let mut leaves = descriptor
            .columns()
            .iter()
            .map(|column| column.physical_type());
        let fields = shape
            .fields
            .iter()
            .map(|field| column(field, &mut leaves).map_err(|e| e.at_column(field.name())));
        Ok(StructType {
            fields: fields.collect::<Result<_>>()?,
        })
    })
    .at_file(&file.path)?;
    let legacy = CalendarRebase::from_footer(&footer, TimeZoneSpec::UTC);
    Ok(FooterSchema {
        schema,
        legacy: legacy.datetime || legacy.int96,
        footer,
    })
}

/// Whether looking up each of `fields` by its physical name and by its id finds the same column, or
/// none, at every level of structs.
///
/// # Errors
/// [`Error::Corrupt`] for a file that is not Parquet.
pub fn names_have_ids(file: &StoreObject, fields: &[StructField]) -> Result<bool> {
    let footer = read_footer(file)?;
    ids_match_names(file, &footer, fields)
}

fn ids_match_names(
    file: &StoreObject,
    footer: &ParquetFooter,
    fields: &[StructField],
) -> Result<bool> {
    catch_decoder_panic(&file.path, || {
        Ok(group_ids_match(
            footer.metadata.file_metadata().schema_descr().root_schema(),
            fields,
        ))
    })
}

fn group_ids_match(group: &Type, fields: &[StructField]) -> bool {
    let children = group.get_fields();
    let id = |node: &TypePtr| {
        Some(node.get_basic_info())
            .filter(|info| info.has_id())
            .map(BasicTypeInfo::id)
    };
    let (mut names, mut ids) = (FxHashMap::default(), FxHashMap::default());
    for child in children {
        names.entry(child.name()).or_insert(child);
        if let Some(id) = id(child) {
            ids.entry(id).or_insert(child);
        }
    }
    fields.iter().all(|field| {
        let by_name = names.get(field.physical_name()).copied();
        let by_id = field.field_id().and_then(|id| ids.get(&id).copied());
        match (by_name, by_id) {
            (None, None) => true,
            (Some(name), Some(id)) => {
                Arc::ptr_eq(name, id) && type_ids_match(name, &field.data_type)
            }
            _ => false,
        }
    })
}

/// The same for the type of a column; lists and maps with an unusual structure count as different.
fn type_ids_match(node: &Type, of: &DataType) -> bool {
    let child = |node: &Type, n: usize| {
        if node.is_group() {
            node.get_fields().get(n).cloned()
        } else {
            None
        }
    };
    match of {
        DataType::Struct(inner) => node.is_group() && group_ids_match(node, &inner.fields),
        DataType::Array(array) if !contains_no_struct(&array.element) => child(node, 0)
            .and_then(|list| child(&list, 0))
            .is_some_and(|element| type_ids_match(&element, &array.element)),
        DataType::Map(map) if !contains_no_struct(&map.key) || !contains_no_struct(&map.value) => {
            child(node, 0)
                .and_then(|entries| Some((child(&entries, 0)?, child(&entries, 1)?)))
                .is_some_and(|(key, value)| {
                    type_ids_match(&key, &map.key) && type_ids_match(&value, &map.value)
                })
        }
        _ => true,
    }
}

/// Whether the type contains no struct.
fn contains_no_struct(of: &DataType) -> bool {
    match of {
        DataType::Struct(_) => false,
        DataType::Array(array) => contains_no_struct(&array.element),
        DataType::Map(map) => contains_no_struct(&map.key) && contains_no_struct(&map.value),
        _ => true,
    }
}

fn column(field: &Field, leaves: &mut dyn Iterator<Item = Physical>) -> Result<StructField> {
    Ok(StructField::new(
        field.name(),
        data_type(field, leaves)?,
        true,
    ))
}

/// The Delta type of a column; `leaves` gives the physical types of its leaves.
fn data_type(field: &Field, leaves: &mut dyn Iterator<Item = Physical>) -> Result<DataType> {
    Ok(match field.data_type() {
        Arrow::Struct(fields) => DataType::Struct(Arc::new(StructType {
            fields: fields
                .iter()
                .map(|field| column(field, leaves))
                .collect::<Result<_>>()?,
        })),
        Arrow::List(element) => DataType::Array(Arc::new(ArrayType {
            element: data_type(element, leaves)?,
            contains_null: true,
        })),
        Arrow::Map(entries, _) => match entries.data_type() {
            Arrow::Struct(parts) => match parts.as_ref() {
                [key, value] => DataType::Map(Arc::new(MapType {
                    key: data_type(key, leaves)?,
                    value: data_type(value, leaves)?,
                    value_contains_null: true,
                })),
                _ => {
                    return Err(Error::corrupt_data(
                        "a map of the file has no key and value",
                    ));
                }
            },
            _ => return Err(Error::corrupt_data("a map of the file has no entries")),
        },
        primitive => {
            let physical = leaves.next();
            match primitive {
                Arrow::UInt8 => DataType::Short,
                Arrow::UInt16 => DataType::Integer,
                Arrow::UInt32 => DataType::Long,
                // Old writers mark a timestamp only by this physical type.
                Arrow::Timestamp(..) if physical == Some(Physical::INT96) => DataType::Timestamp,
                Arrow::UInt64 => return Err(unsupported_type_error(primitive)),
                other => {
                    DataType::from_arrow(other).ok_or_else(|| unsupported_type_error(other))?
                }
            }
        }
    })
}

fn unsupported_type_error(found: &Arrow) -> Error {
    Error::unsupported(format!("Delta has no type for the file's {found}"))
}

/// The leaves of a file by path.
type LeafPositions<'a> = FxHashMap<Vec<&'a str>, usize>;

impl FooterSchema {
    /// Rows in the file.
    #[must_use]
    pub fn num_rows(&self) -> u64 {
        self.footer.num_rows()
    }

    /// As [`names_have_ids`], for this file.
    ///
    /// # Errors
    /// As [`names_have_ids`].
    pub fn names_have_ids(&self, file: &StoreObject, fields: &[StructField]) -> Result<bool> {
        ids_match_names(file, &self.footer, fields)
    }

    /// The statistics of each leaf of `columns` that has any, in order, at the levels in `wanted`.
    /// Columns that the file lacks are null in every row.
    #[must_use]
    pub fn column_statistics(
        &self,
        columns: &StructType,
        wanted: &[StatisticsLevel],
    ) -> Vec<ColumnStatistics> {
        let mut out = Vec::with_capacity(wanted.len());
        let mut wanted = wanted.iter().copied();
        let schema = self.footer.metadata.file_metadata().schema_descr();
        let mut leaves = LeafPositions::default();
        for (n, column) in schema.columns().iter().enumerate() {
            let path = column.path().parts().iter().map(String::as_str).collect();
            leaves.entry(path).or_insert(n);
        }
        for field in &columns.fields {
            self.walk(
                &leaves,
                &field.data_type,
                self.schema.field(&field.name),
                &mut vec![&field.name],
                &mut wanted,
                &mut out,
            );
        }
        out
    }

    fn walk<'a>(
        &self,
        leaves: &LeafPositions<'_>,
        of: &'a DataType,
        found: Option<&StructField>,
        path: &mut Vec<&'a str>,
        wanted: &mut dyn Iterator<Item = StatisticsLevel>,
        out: &mut Vec<ColumnStatistics>,
    ) {
        if let DataType::Struct(inner) = of {
            for field in inner
                .fields
                .iter()
                .filter(|field| !matches!(field.data_type, DataType::Void))
            {
                let found = found.and_then(|found| match &found.data_type {
                    DataType::Struct(inner) => inner.field(&field.name),
                    _ => None,
                });
                path.push(&field.name);
                self.walk(leaves, &field.data_type, found, path, wanted, out);
                path.pop();
            }
            return;
        }
        out.push(
            match (wanted.next().unwrap_or(StatisticsLevel::Nothing), found) {
                (StatisticsLevel::Nothing, _) => ColumnStatistics::default(),
                (_, None) => ColumnStatistics {
                    nulls: self.num_rows(),
                    ..ColumnStatistics::default()
                },
                (wanted, Some(_)) => self.leaf(of, leaves.get(path.as_slice()).copied(), wanted),
            },
        );
    }

    fn leaf(&self, of: &DataType, n: Option<usize>, wanted: StatisticsLevel) -> ColumnStatistics {
        let mut facts = ColumnStatistics::default();
        for group in self.footer.metadata.row_groups() {
            let rows = u64::try_from(group.num_rows()).unwrap_or(0);
            let mut part = ColumnStatistics::default();
            let chunk = n.and_then(|n| group.columns().get(n));
            match chunk.and_then(|chunk| Some((chunk, chunk.statistics()?))) {
                Some((chunk, statistics)) => {
                    match statistics.null_count_opt() {
                        Some(nulls) => part.nulls = nulls,
                        None => part.nulls_unknown = true,
                    }
                    if part.nulls < rows || part.nulls_unknown {
                        let (min, max) = if wanted == StatisticsLevel::Bounds {
                            self.bounds(of, chunk, statistics)
                        } else {
                            (None, None)
                        };
                        part.bounds_unknown = min.is_none() || max.is_none();
                        (part.min, part.max) = (min, max);
                    }
                }
                None => (part.nulls_unknown, part.bounds_unknown) = (true, rows > 0),
            }
            facts.merge(part);
        }
        facts
    }

    fn bounds(
        &self,
        of: &DataType,
        chunk: &ColumnChunkMetaData,
        statistics: &Statistics,
    ) -> (Option<Scalar>, Option<Scalar>) {
        let is_time = of.to_arrow(StringLayout::Plain).is_temporal();
        let kind = match of {
            _ if of.integer_range().is_some() => BoundsType::Long,
            DataType::Decimal(..) => BoundsType::Decimal,
            DataType::String => BoundsType::Text,
            DataType::Boolean => BoundsType::Boolean,
            _ => return (None, None),
        };
        let unsigned = matches!(
            chunk.column_descr().converted_type(),
            ConvertedType::UINT_8
                | ConvertedType::UINT_16
                | ConvertedType::UINT_32
                | ConvertedType::UINT_64
        );
        // Old writers compared bytes as signed numbers, and recorded no order.
        let misordered = statistics.is_min_max_deprecated()
            && !matches!(
                statistics,
                Statistics::Boolean(_) | Statistics::Int32(_) | Statistics::Int64(_)
            );
        if unsigned || misordered || (is_time && self.legacy) {
            return (None, None);
        }
        let (min, max) = bounds(statistics, kind);
        match (is_time && *of != DataType::Date).then(|| timestamp_unit(chunk)) {
            None => (min, max),
            Some(Some(unit)) => (
                min.map(|min| bound_to_micros(min, unit, false)),
                max.map(|max| bound_to_micros(max, unit, true)),
            ),
            Some(None) => (None, None),
        }
    }
}

/// The unit of a column of times.
fn timestamp_unit(chunk: &ColumnChunkMetaData) -> Option<TimeUnit> {
    use parquet::basic::{LogicalType, TimeUnit as Unit};
    match (
        chunk.column_descr().logical_type_ref(),
        chunk.column_descr().converted_type(),
    ) {
        (Some(LogicalType::Timestamp(of)), _) => Some(match of.unit {
            Unit::MILLIS => TimeUnit::Millisecond,
            Unit::MICROS => TimeUnit::Microsecond,
            Unit::NANOS => TimeUnit::Nanosecond,
        }),
        (_, ConvertedType::TIMESTAMP_MILLIS) => Some(TimeUnit::Millisecond),
        (_, ConvertedType::TIMESTAMP_MICROS) => Some(TimeUnit::Microsecond),
        _ => None,
    }
}

/// A bound in microseconds, rounded outwards.
fn bound_to_micros(value: Scalar, unit: TimeUnit, up: bool) -> Scalar {
    let Scalar::Long(value) = value else {
        return value;
    };
    Scalar::Long(match unit {
        TimeUnit::Second => value.saturating_mul(1_000_000),
        TimeUnit::Millisecond => value.saturating_mul(1000),
        TimeUnit::Microsecond => value,
        TimeUnit::Nanosecond => {
            value.div_euclid(1000) + i64::from(up && value.rem_euclid(1000) != 0)
        }
    })
}
