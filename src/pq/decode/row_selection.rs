//! Row groups and row ranges of a file that may match a filter: predicate x footer, bloom filters
//! and page index -> row groups and ranges of rows.
//!
//! `prune` evaluates the expression over row groups first, then over pages, exactly as over whole
//! files. Pages of different columns end at different rows, so pages are evaluated in the pieces
//! between all their ends. Bloom filters are checked for top-level `column = literal` and
//! `column IN (literals)`.
//!
//! Statistics are hints: statistics that are missing, deprecated, damaged or of a calendar that is
//! rebased mean "unknown".

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int64Array, UInt64Array};
use arrow_ord::cmp::gt;
use arrow_schema::Field;
use arrow_select::nullif::nullif;
use arrow_select::take::take;
use bytes::Bytes;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::basic::Type as Physical;
use parquet::bloom_filter::Sbbf;
use parquet::file::metadata::page_index::PageIndexBuilder;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::page_index::index_reader::{decode_column_index, decode_offset_index};
use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::expr::{BoundExpr, Expr, Function, Scalar};
use crate::pq::decode::column_mapping::{ArrayConversion, LeafConversion, ProjectedColumns};
use crate::pq::decode::to_table_types;
use crate::pq::input::bounds_check::value_size;
use crate::pq::input::calendar_rebase::CalendarRebase;
use crate::pq::input::column_chunks::{SelectedPageLocations, chunk_range};
use crate::pq::input::footer::{FileTail, ParquetFooter};
use crate::pq::input::header_check::is_valid_index;
use crate::protocol::schema::{DataType, StructField, StructType};
use crate::prune::{self, PruningStatistics};
use crate::store::StoreObject;

/// The longest index or bloom filter that is read.
const INDEX_LIMIT: u64 = 64 << 20;

/// A leaf that the filter reads.
struct PredicateLeaf {
    path: Vec<String>,
    data_type: DataType,
    /// Index in the file; `None` for a field that the file lacks.
    leaf: Option<usize>,
    /// The type that it is decoded to.
    decoded: Field,
    conversion: LeafConversion,
}

/// A filter over one file.
pub(in crate::pq) struct RowGroupPruner<'a> {
    filter: &'a BoundExpr,
    footer: &'a ParquetFooter,
    predicate_leaves: Vec<PredicateLeaf>,
    constants: &'a [(String, ArrayRef)],
    legacy: &'a CalendarRebase,
}

/// Lower bounds, upper bounds and null counts, where known.
type LeafBoundArrays = (Option<ArrayRef>, Option<ArrayRef>, Option<Int64Array>);

/// The rows of a row group that may match, and where its pages are.
pub(in crate::pq) type RowRangesAndPages = (Vec<Range<u64>>, SelectedPageLocations);

/// Statistics of row groups or of pieces of one.
struct ContainerStatistics<'a> {
    rows: usize,
    records: Int64Array,
    columns: FxHashMap<&'a [String], LeafBoundArrays>,
    constants: &'a [(String, ArrayRef)],
}

impl PruningStatistics for ContainerStatistics<'_> {
    fn rows(&self) -> usize {
        self.rows
    }

    fn min(&self, path: &[String]) -> Option<ArrayRef> {
        self.columns.get(path)?.0.clone()
    }

    fn max(&self, path: &[String]) -> Option<ArrayRef> {
        self.columns.get(path)?.1.clone()
    }

    fn null_count(&self, path: &[String]) -> Option<Int64Array> {
        self.columns.get(path)?.2.clone()
    }

    fn num_records(&self) -> Option<Int64Array> {
        Some(self.records.clone())
    }

    fn partition(&self, path: &[String]) -> Option<ArrayRef> {
        let [name] = path else { return None };
        let (_, value) = self
            .constants
            .iter()
            .find(|(constant, _)| constant == name)?;
        take(value, &UInt64Array::from_value(0, self.rows), None).ok()
    }
}

/// Follows `path` from the decoded columns down; through structs only.
fn resolve_leaf(
    columns: &ProjectedColumns,
    fields: &[&StructField],
    path: &[String],
) -> Option<PredicateLeaf> {
    let (first, rest) = path.split_first()?;
    let n = fields.iter().position(|field| field.name == *first)?;
    let column = columns.columns.get(n)?;
    let mut field = StructType {
        fields: vec![(*fields.get(n)?).clone()].into(),
    };
    let mut plan = &column.plan;
    let mut siblings = &columns.projection.fields;
    let mut source = column.source;
    let mut leaf = 0;
    let mut rest = rest.iter();
    loop {
        let to = field.fields.first()?;
        let lacking = |data_type: &DataType| PredicateLeaf {
            path: path.to_vec(),
            data_type: data_type.clone(),
            leaf: None,
            decoded: Field::new("", arrow_schema::DataType::Null, true),
            conversion: LeafConversion::Same,
        };
        let Some(n) = source else {
            // A missing field has no children.
            let mut to = &to.data_type;
            for name in rest {
                let DataType::Struct(inner) = to else {
                    return None;
                };
                to = &inner.field(name)?.data_type;
            }
            return Some(lacking(to));
        };
        leaf += siblings
            .iter()
            .take(n)
            .map(|field| crate::pq::leaf_count::leaf_count(field.data_type()))
            .sum::<usize>();
        let decoded = siblings.get(n)?;
        match (plan, rest.next()) {
            (ArrayConversion::Absent, None) => return Some(lacking(&to.data_type)),
            (ArrayConversion::Leaf(how), None) => {
                let leaf = *columns.projection.leaves.get(leaf)?;
                return Some(PredicateLeaf {
                    path: path.to_vec(),
                    data_type: to.data_type.clone(),
                    leaf: Some(leaf),
                    decoded: decoded.as_ref().clone(),
                    conversion: *how,
                });
            }
            (ArrayConversion::Struct(children), Some(name)) => {
                let (DataType::Struct(to), arrow_schema::DataType::Struct(from)) =
                    (&to.data_type, decoded.data_type())
                else {
                    return None;
                };
                let child = to.fields.iter().position(|field| field.name == *name)?;
                let (next, next_plan) = children.get(child)?;
                let next_field = to.fields.get(child)?.clone();
                (source, plan, siblings) = (*next, next_plan, from);
                field = StructType {
                    fields: vec![next_field].into(),
                };
            }
            _ => return None,
        }
    }
}

impl<'a> RowGroupPruner<'a> {
    /// `columns` are resolved from `fields`, which hold every column of the file that the filter
    /// reads.
    pub fn new(
        filter: &'a BoundExpr,
        footer: &'a ParquetFooter,
        columns: &ProjectedColumns,
        fields: &[&StructField],
        constants: &'a [(String, ArrayRef)],
        legacy: &'a CalendarRebase,
    ) -> Self {
        let watched = filter
            .columns()
            .into_iter()
            .filter(|path| {
                !constants
                    .iter()
                    .any(|(name, _)| path.len() == 1 && path.first() == Some(name))
            })
            .filter_map(|path| resolve_leaf(columns, fields, path))
            .collect();
        Self {
            filter,
            footer,
            predicate_leaves: watched,
            constants,
            legacy,
        }
    }

    /// Which of `groups` may hold a row that matches.
    pub fn row_groups(&self, groups: &[usize]) -> Result<Vec<bool>> {
        let metadata: Vec<&RowGroupMetaData> = groups
            .iter()
            .filter_map(|n| self.footer.metadata.row_groups().get(*n))
            .collect();
        let records: Int64Array = metadata
            .iter()
            .map(|group| Some(group.num_rows()))
            .collect();
        let mut known = ContainerStatistics {
            rows: metadata.len(),
            records,
            columns: FxHashMap::default(),
            constants: self.constants,
        };
        for watched in &self.predicate_leaves {
            let facts = match watched.leaf {
                None => (None, None, Some(known.records.clone())),
                Some(leaf) => self.row_group_statistics(watched, leaf, &metadata),
            };
            known.columns.insert(&watched.path, facts);
        }
        let keep = prune::may_match(self.filter, &known)?;
        Ok(keep.values().iter().collect())
    }

    fn row_group_statistics(
        &self,
        watched: &PredicateLeaf,
        leaf: usize,
        groups: &[&'a RowGroupMetaData],
    ) -> LeafBoundArrays {
        let schema = self.footer.metadata.file_metadata().schema_descr();
        let Ok(converter) = StatisticsConverter::from_column_index(leaf, &watched.decoded, schema)
        else {
            return (None, None, None);
        };
        let converter = converter
            .with_missing_null_counts_as_zero(false)
            .with_column_orders(
                self.footer
                    .metadata
                    .file_metadata()
                    .column_orders()
                    .map(Vec::as_slice),
            );
        let nulls = converter
            .row_group_null_counts(groups.iter().copied())
            .ok()
            .map(null_counts);
        if !watched.has_bounds(schema.column(leaf).physical_type()) {
            return (None, None, nulls);
        }
        // Old writers compared bytes as signed numbers.
        let deprecated: arrow_array::BooleanArray = groups
            .iter()
            .map(|group| {
                let statistics = group
                    .columns()
                    .get(leaf)
                    .and_then(ColumnChunkMetaData::statistics);
                let bytes = matches!(
                    schema.column(leaf).physical_type(),
                    Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY
                );
                Some(statistics.is_some_and(|s| {
                    s.is_min_max_deprecated()
                        && (bytes || watched.decoded.data_type().is_unsigned_integer())
                }))
            })
            .collect();
        let bound = |array: parquet::errors::Result<ArrayRef>| {
            self.bound(watched, &nullif(&array.ok()?, &deprecated).ok()?)
        };
        let (min, max) = without_crossed_bounds(
            bound(converter.row_group_mins(groups.iter().copied())),
            bound(converter.row_group_maxes(groups.iter().copied())),
        );
        (min, max, nulls)
    }

    /// Decoded bounds, converted to the table's type.
    fn bound(&self, watched: &PredicateLeaf, array: &ArrayRef) -> Option<ArrayRef> {
        let to = watched
            .data_type
            .to_arrow(crate::protocol::schema::StringLayout::View);
        to_table_types::convert_leaf(watched.conversion, array, &to, self.legacy).ok()
    }

    /// Which of `groups` may have a matching row according to their bloom filters.
    pub fn bloom_filters(
        &self,
        file: &StoreObject,
        end: Option<&FileTail>,
        groups: &[usize],
    ) -> Result<Vec<bool>> {
        let probes = self.bloom_probes(groups);
        let mut may = vec![true; groups.len()];
        let size: u64 = probes
            .iter()
            .map(|probe| probe.range.end - probe.range.start)
            .sum();
        if probes.is_empty() || size > INDEX_LIMIT {
            return Ok(may);
        }
        let ranges = probes.iter().map(|probe| probe.range.clone()).collect();
        let filters = read_ranges(file, end, ranges)?;
        for (probe, bytes) in probes.iter().zip(filters) {
            if !self.may_contain(file, end, probe, bytes)?
                && let Some(may) = may.get_mut(probe.n)
            {
                *may = false;
            }
        }
        Ok(may)
    }

    /// The probes of the filter's equality conjuncts in the bloom filters of `groups`.
    fn bloom_probes(&self, groups: &[usize]) -> Vec<BloomFilterProbe> {
        let mut probes = Vec::new();
        for conjunct in conjuncts(&self.filter.expr) {
            let Some((path, values)) = equality_values(conjunct) else {
                continue;
            };
            let Some(watched) = self
                .predicate_leaves
                .iter()
                .find(|watched| watched.path == path)
            else {
                continue;
            };
            let Some(leaf) = watched.leaf else {
                continue;
            };
            for (n, group) in groups.iter().enumerate() {
                let column = self
                    .footer
                    .metadata
                    .row_groups()
                    .get(*group)
                    .and_then(|group| group.columns().get(leaf));
                probes.extend(
                    column.and_then(|column| self.bloom_probe(n, watched, column, &values)),
                );
            }
        }
        probes
    }

    /// The probe of one column chunk; `None` without a bloom filter or if a value cannot be
    /// encoded as the file stores it.
    fn bloom_probe(
        &self,
        n: usize,
        watched: &PredicateLeaf,
        column: &ColumnChunkMetaData,
        values: &[&Scalar],
    ) -> Option<BloomFilterProbe> {
        let start = column
            .bloom_filter_offset()
            .and_then(|n| u64::try_from(n).ok())
            .filter(|n| *n < self.footer.size)?;
        let values = values
            .iter()
            .map(|value| watched.plain_encoded(column, value))
            .collect::<Option<Vec<_>>>()?;
        let length = column
            .bloom_filter_length()
            .and_then(|n| u64::try_from(n).ok());
        // If the length is unknown, the header, which contains it, is read first.
        let range = start..start + length.unwrap_or(HEADER).min(self.footer.size - start);
        Some(BloomFilterProbe {
            n,
            values,
            range,
            is_whole: length.is_some(),
        })
    }

    /// Whether the bloom filter may contain a value of the probe; true if it is unusable. `bytes`
    /// are those of the probe's range.
    fn may_contain(
        &self,
        file: &StoreObject,
        end: Option<&FileTail>,
        probe: &BloomFilterProbe,
        mut bytes: Bytes,
    ) -> Result<bool> {
        if !probe.is_whole {
            let start = probe.range.start;
            let Some(length) = crate::pq::input::header_check::bloom_length(&bytes)
                .filter(|length| *length <= INDEX_LIMIT.min(self.footer.size - start))
            else {
                return Ok(true);
            };
            let whole = std::iter::once(start..start + length).collect();
            bytes = read_ranges(file, end, whole)?.pop().unwrap_or_default();
        }
        let filter = Sbbf::from_bytes(&bytes)
            .ok()
            .filter(|filter| filter.num_blocks() > 0);
        Ok(filter.is_none_or(|filter| {
            probe
                .values
                .iter()
                .any(|value| filter.check(value.as_slice()))
        }))
    }

    /// The rows of each of `groups` that may match, and the locations of the pages of `leaves`;
    /// `None` for a group without a usable page index.
    pub fn select_pages(
        &self,
        file: &StoreObject,
        end: Option<&FileTail>,
        groups: &[usize],
        leaves: &[usize],
    ) -> Result<Vec<Option<RowRangesAndPages>>> {
        let watched: Vec<usize> = self
            .predicate_leaves
            .iter()
            .filter_map(|watched| watched.leaf)
            .collect();
        let all: Vec<&RowGroupMetaData> = self.footer.metadata.row_groups().iter().collect();
        let mut wanted: Vec<(usize, usize, PageIndexKind, Range<u64>)> = Vec::new();
        for group in groups {
            let Some(metadata) = all.get(*group) else {
                continue;
            };
            for (leaf, column) in metadata.columns().iter().enumerate() {
                let of_filter = watched.contains(&leaf);
                if of_filter
                    && let Some(range) =
                        self.index_range(column.column_index_offset(), column.column_index_length())
                {
                    wanted.push((*group, leaf, PageIndexKind::ColumnIndex, range));
                }
                if (of_filter || leaves.contains(&leaf))
                    && let Some(range) =
                        self.index_range(column.offset_index_offset(), column.offset_index_length())
                {
                    wanted.push((*group, leaf, PageIndexKind::OffsetIndex, range));
                }
            }
        }
        if !wanted
            .iter()
            .any(|(_, _, part, _)| *part == PageIndexKind::ColumnIndex)
            || wanted.iter().map(|w| w.3.end - w.3.start).sum::<u64>() > INDEX_LIMIT
        {
            return Ok(groups.iter().map(|_| None).collect());
        }
        let bytes = read_ranges(file, end, wanted.iter().map(|w| w.3.clone()).collect())?;
        let mut builder = PageIndexBuilder::new(
            all.len(),
            self.footer
                .metadata
                .file_metadata()
                .schema_descr()
                .num_columns(),
        );
        for ((group, leaf, part, _), bytes) in wanted.iter().zip(bytes) {
            let Some(column) = all
                .get(*group)
                .and_then(|metadata| metadata.columns().get(*leaf))
            else {
                continue;
            };
            match part {
                PageIndexKind::ColumnIndex => {
                    let fits = value_size(column.column_type())
                        .is_none_or(|size| is_valid_index(&bytes, size));
                    if fits && let Ok(index) = decode_column_index(&bytes, column.column_type()) {
                        builder.put_column_index(index, *group, *leaf);
                    }
                }
                PageIndexKind::OffsetIndex => {
                    if let Ok(index) = decode_offset_index(&bytes) {
                        builder.put_offset_index(index, *group, *leaf);
                    }
                }
            }
        }
        let index = builder.build();
        groups
            .iter()
            .map(|group| self.group_pages(&index, *group, &watched, leaves))
            .collect()
    }

    fn index_range(&self, offset: Option<i64>, length: Option<i32>) -> Option<Range<u64>> {
        let (start, length) = (u64::try_from(offset?).ok()?, u64::try_from(length?).ok()?);
        (length > 0 && start.checked_add(length)? <= self.footer.size)
            .then_some(start..start + length)
    }

    fn group_pages(
        &self,
        index: &parquet::file::metadata::page_index::PageIndex,
        group: usize,
        watched: &[usize],
        leaves: &[usize],
    ) -> Result<Option<RowRangesAndPages>> {
        use parquet::file::metadata::page_index::PageIndexProvider;
        let Some(metadata) = self.footer.metadata.row_groups().get(group) else {
            return Ok(None);
        };
        let rows = u64::try_from(metadata.num_rows()).unwrap_or(0);
        let mut pages = SelectedPageLocations::default();
        for leaf in watched.iter().chain(leaves) {
            if let (Some(locations), Some(column)) = (
                index.page_locations(group, *leaf),
                metadata.columns().get(*leaf),
            ) {
                pages.add(
                    *leaf,
                    &chunk_range(column, self.footer.size)?,
                    rows,
                    locations,
                );
            }
        }
        // The ends of all pages of the filter's columns cut the row group into pieces.
        let mut cuts: Vec<u64> = watched
            .iter()
            .filter_map(|leaf| pages.first_rows(*leaf))
            .flatten()
            .collect();
        cuts.push(0);
        cuts.sort_unstable();
        cuts.dedup();
        if cuts.len() < 2 {
            return Ok(None);
        }
        let ends: Vec<u64> = cuts.iter().skip(1).copied().chain([rows]).collect();
        let records: Int64Array = cuts
            .iter()
            .zip(&ends)
            .map(|(from, to)| i64::try_from(to - from).ok())
            .collect();
        let mut known = ContainerStatistics {
            rows: cuts.len(),
            records,
            columns: FxHashMap::default(),
            constants: self.constants,
        };
        for watched in &self.predicate_leaves {
            let facts = match watched.leaf {
                None => (None, None, Some(known.records.clone())),
                Some(leaf) => match pages.first_rows(leaf) {
                    Some(first_rows) => self.page_statistics(
                        watched,
                        leaf,
                        index,
                        group,
                        &cuts,
                        &known.records,
                        first_rows.collect(),
                    ),
                    None => (None, None, None),
                },
            };
            known.columns.insert(&watched.path, facts);
        }
        let keep = prune::may_match(self.filter, &known)?;
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for ((from, to), keep) in cuts.iter().zip(&ends).zip(keep.values().iter()) {
            match ranges.last_mut() {
                _ if !keep => {}
                Some(last) if last.end == *from => last.end = *to,
                _ => ranges.push(*from..*to),
            }
        }
        Ok(Some((ranges, pages)))
    }

    #[allow(clippy::too_many_arguments, reason = "one step of `group_pages`")]
    fn page_statistics(
        &self,
        watched: &PredicateLeaf,
        leaf: usize,
        index: &parquet::file::metadata::page_index::PageIndex,
        group: usize,
        cuts: &[u64],
        records: &Int64Array,
        first_rows: Vec<u64>,
    ) -> LeafBoundArrays {
        let schema = self.footer.metadata.file_metadata().schema_descr();
        let Ok(converter) = StatisticsConverter::from_column_index(leaf, &watched.decoded, schema)
        else {
            return (None, None, None);
        };
        let converter = converter
            .with_missing_null_counts_as_zero(false)
            .with_column_orders(
                self.footer
                    .metadata
                    .file_metadata()
                    .column_orders()
                    .map(Vec::as_slice),
            );
        // The page of each piece.
        let of: UInt64Array = cuts
            .iter()
            .map(|cut| (first_rows.partition_point(|first| first <= cut) as u64).checked_sub(1))
            .collect();
        let spread = |array: ArrayRef| {
            (array.len() == first_rows.len())
                .then(|| take(&array, &of, None).ok())
                .flatten()
        };
        let nulls = converter
            .data_page_null_counts(index, [&group])
            .ok()
            .and_then(|array| spread(Arc::new(array)));
        // A page's nulls may be in any of its pieces: "none" and "all" hold for each, other numbers
        // for none.
        let pages_rows: Vec<u64> = first_rows
            .iter()
            .zip(first_rows.iter().skip(1).copied().chain([u64::MAX]))
            .map(|(from, to)| to - from)
            .collect();
        let nulls = nulls.and_then(|array| {
            let array = array.as_any().downcast_ref::<UInt64Array>()?.clone();
            let last = records.len().checked_sub(1)?;
            Some(
                (0..array.len())
                    .map(|n| {
                        let nulls = array.is_valid(n).then(|| array.value(n))?;
                        let page = usize::try_from(of.value(n)).ok()?;
                        let page_rows = if n == last && page + 1 == first_rows.len() {
                            None
                        } else {
                            pages_rows.get(page).copied()
                        };
                        match nulls {
                            0 => Some(0),
                            nulls if Some(nulls) == page_rows => Some(records.value(n)),
                            _ => None,
                        }
                    })
                    .collect::<Int64Array>(),
            )
        });
        if !watched.has_bounds(schema.column(leaf).physical_type()) {
            return (None, None, nulls);
        }
        let bound =
            |array: parquet::errors::Result<ArrayRef>| self.bound(watched, &spread(array.ok()?)?);
        let (min, max) = without_crossed_bounds(
            bound(converter.data_page_mins(index, [&group])),
            bound(converter.data_page_maxes(index, [&group])),
        );
        (min, max, nulls)
    }
}

/// Bounds without pairs whose lower bound is above the upper one, which are invalid.
fn without_crossed_bounds(
    min: Option<ArrayRef>,
    max: Option<ArrayRef>,
) -> (Option<ArrayRef>, Option<ArrayRef>) {
    let (Some(lower), Some(upper)) = (&min, &max) else {
        return (min, max);
    };
    match gt(lower, upper) {
        Ok(crossed) if crossed.true_count() > 0 => {
            (nullif(lower, &crossed).ok(), nullif(upper, &crossed).ok())
        }
        _ => (min, max),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PageIndexKind {
    ColumnIndex,
    OffsetIndex,
}

/// A probe of the bloom filter of row group `n` for any of these values.
struct BloomFilterProbe {
    n: usize,
    values: Vec<Vec<u8>>,
    range: Range<u64>,
    is_whole: bool,
}

/// The bytes of a bloom filter's header at most.
const HEADER: u64 = 64;

fn null_counts(counts: UInt64Array) -> Int64Array {
    counts
        .iter()
        .map(|count| count.and_then(|count| i64::try_from(count).ok()))
        .collect()
}

impl PredicateLeaf {
    /// Whether stored bounds are also bounds of the table's values.
    fn has_bounds(&self, physical: Physical) -> bool {
        physical != Physical::INT96
            && !matches!(
                self.conversion,
                LeafConversion::RebasedDays | LeafConversion::RebasedMicros
            )
    }

    /// A value as the file stores it, for a bloom filter.
    fn plain_encoded(&self, column: &ColumnChunkMetaData, value: &Scalar) -> Option<Vec<u8>> {
        use arrow_schema::{DataType as A, TimeUnit};
        let physical = column.column_type();
        if !self.has_bounds(physical) {
            return None;
        }
        match (self.decoded.data_type(), value) {
            (A::Int8 | A::Int16 | A::Int32 | A::UInt8 | A::UInt16 | A::Date32, Scalar::Long(n))
                if !matches!(self.conversion, LeafConversion::Midnight) =>
            {
                i32::try_from(*n).ok().map(|n| n.to_le_bytes().to_vec())
            }
            (A::Int64 | A::Timestamp(TimeUnit::Microsecond, _), Scalar::Long(n)) => {
                Some(n.to_le_bytes().to_vec())
            }
            // Zero has two forms, and NaN many.
            (A::Float64, Scalar::Double(n)) if *n != 0.0 && !n.is_nan() => {
                Some(n.to_le_bytes().to_vec())
            }
            (A::Utf8View | A::BinaryView, Scalar::Text(text)) => Some(text.as_bytes().to_vec()),
            (A::Utf8View | A::BinaryView, Scalar::Bytes(bytes)) => Some(bytes.to_vec()),
            (A::Decimal128(precision, scale), Scalar::Decimal(n))
                if self.data_type == DataType::Decimal(*precision, *scale) =>
            {
                match physical {
                    Physical::INT32 => i32::try_from(*n).ok().map(|n| n.to_le_bytes().to_vec()),
                    Physical::INT64 => i64::try_from(*n).ok().map(|n| n.to_le_bytes().to_vec()),
                    Physical::FIXED_LEN_BYTE_ARRAY => {
                        let length = usize::try_from(column.column_descr().type_length()).ok()?;
                        n.to_be_bytes()
                            .get(16_usize.checked_sub(length)?..)
                            .map(<[u8]>::to_vec)
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// The conjuncts of a filter; the filter itself if it is not a conjunction.
fn conjuncts(filter: &Expr) -> &[Expr] {
    match filter {
        Expr::Call {
            function: Function::And,
            args,
            ..
        } => args.as_slice(),
        other => std::slice::from_ref(other),
    }
}

/// The longest list that is looked up in bloom filters, each value in that of each row group.
const MOST_PROBED: usize = 1000;

/// A column and the few values to which the conjunct restricts it, if it has this form.
fn equality_values(conjunct: &Expr) -> Option<(&[String], Vec<&Scalar>)> {
    match conjunct {
        Expr::Call {
            function: Function::Equal,
            args,
            ..
        } => match args.as_slice() {
            [Expr::Column { path, .. }, Expr::Literal { value, .. }]
            | [Expr::Literal { value, .. }, Expr::Column { path, .. }]
                if !value.is_null() =>
            {
                Some((path, vec![value]))
            }
            _ => None,
        },
        Expr::InList { arg, values, .. } => match arg.as_ref() {
            Expr::Column { path, .. } if values.len() <= MOST_PROBED => Some((
                path,
                values.iter().filter(|value| !value.is_null()).collect(),
            )),
            _ => None,
        },
        _ => None,
    }
}

fn read_ranges(
    file: &StoreObject,
    end: Option<&FileTail>,
    ranges: Vec<Range<u64>>,
) -> Result<Vec<Bytes>> {
    match end.and_then(|end| {
        ranges
            .iter()
            .map(|range| end.get(range))
            .collect::<Option<Vec<_>>>()
    }) {
        Some(bytes) => Ok(bytes),
        None => file.store.get_ranges(&file.path, ranges).wait(),
    }
}
