//! The columns to decode: a set of leaves -> a pruned Parquet schema and the Arrow types of its
//! arrays.
//!
//! Pruning builds a new schema instead of a mask over the file's schema: columns that are not read
//! are not even converted, so an unsupported type elsewhere in the file cannot cause an error.
//! Group structure is kept where lists and maps are recognised by it.
//!
//! Strings and bytes decode to views (no copy out of pages and dictionaries), INT96 to microseconds
//! (nanoseconds overflow outside of 1677 to 2262), everything else to arrow-rs' types.
//! `flat_column` decodes flat columns, arrow-rs the others.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowGroups, RowSelection};
use parquet::arrow::{
    FieldLevels, ProjectionMask, parquet_to_arrow_field_levels, parquet_to_arrow_schema_by_columns,
};
use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::schema::types::{BasicTypeInfo, SchemaDescriptor, Type, TypePtr};
use rustc_hash::FxHashSet;

use crate::error::{Error, Result};
use crate::exec::decode_limit;
use crate::pq::decode::flat_column::{FlatColumn, is_flat};
use crate::pq::decoder_errors::{batch_error, catch_decoder_panic, decode_error};
use crate::pq::input::column_chunks::{
    DecodeMemoryUse, FetchedRowGroup, GroupFailure, decoded_value_bytes,
};
use crate::pq::leaf_count::leaf_count;

/// The leaves to decode of a file.
pub(in crate::pq) struct ParquetProjection {
    /// Indexes of the leaves in the file, in order.
    pub leaves: Vec<usize>,
    /// The decoded columns.
    pub fields: Fields,
    /// The pruned schema.
    pub schema: SchemaDescriptor,
    levels: FieldLevels,
}

impl ParquetProjection {
    /// Keeps the leaves of `schema` for which `keep` is true.
    pub fn new(schema: &SchemaDescriptor, keep: impl Fn(usize) -> bool) -> Result<Self> {
        let mut pruner = SchemaPruner {
            keep: &keep,
            next: 0,
            leaves: Vec::new(),
        };
        let mut roots = Vec::new();
        for root in schema.root_schema().get_fields() {
            roots.extend(pruner.prune(root, false)?);
        }
        let leaves = pruner.leaves;
        let root = Type::group_type_builder(schema.name())
            .with_fields(roots)
            .build()
            .map_err(decode_error)?;
        let pruned = SchemaDescriptor::new(Arc::new(root));
        let inferred = parquet_to_arrow_schema_by_columns(&pruned, ProjectionMask::all(), None)
            .map_err(decode_error)?;
        let mut leaf = 0;
        let fields: Fields = inferred
            .fields()
            .iter()
            .map(|field| decoded_field(field, &pruned, &mut leaf))
            .collect();
        let levels = parquet_to_arrow_field_levels(&pruned, ProjectionMask::all(), Some(&fields))
            .map_err(decode_error)?;
        Ok(Self {
            leaves,
            fields,
            schema: pruned,
            levels,
        })
    }
}

struct SchemaPruner<'a> {
    keep: &'a dyn Fn(usize) -> bool,
    next: usize,
    leaves: Vec<usize>,
}

impl SchemaPruner<'_> {
    /// `node` without the leaves that are not kept; `all` keeps them all.
    fn prune(&mut self, node: &TypePtr, all: bool) -> Result<Option<TypePtr>> {
        if node.is_primitive() {
            let leaf = self.next;
            self.next += 1;
            if !all && !(self.keep)(leaf) {
                return Ok(None);
            }
            self.leaves.push(leaf);
            return Ok(Some(Arc::clone(node)));
        }
        let info = node.get_basic_info();
        // A map differs from a list by the two children of its entries, and a two-level list from a
        // three-level one by the children of its repeated group: such groups are kept whole or not
        // at all.
        let whole = all
            || is_map(info)
            || (is_list(info)
                && node
                    .get_fields()
                    .iter()
                    .any(|child| is_repeated(child) && has_many_children(child)));
        if whole && !all {
            let after = self.next + leaves_below(node);
            if !(self.next..after).any(|leaf| (self.keep)(leaf)) {
                self.next = after;
                return Ok(None);
            }
        }
        let mut children = Vec::with_capacity(node.get_fields().len());
        for child in node.get_fields() {
            children.extend(self.prune(child, whole)?);
        }
        if children.is_empty() {
            return Ok(None);
        }
        let mut group = Type::group_type_builder(node.name())
            .with_converted_type(info.converted_type())
            .with_logical_type(info.logical_type_ref().cloned())
            .with_fields(children)
            .with_id(info.has_id().then(|| info.id()));
        if info.has_repetition() {
            group = group.with_repetition(info.repetition());
        }
        Ok(Some(Arc::new(group.build().map_err(decode_error)?)))
    }
}

/// The number of leaves of a field.
fn leaves_below(node: &Type) -> usize {
    if node.is_primitive() {
        return 1;
    }
    node.get_fields()
        .iter()
        .map(|child| leaves_below(child))
        .sum()
}

/// Whether a group is annotated as a list.
pub(in crate::pq) fn is_list(info: &BasicTypeInfo) -> bool {
    info.logical_type_ref() == Some(&LogicalType::List)
        || info.converted_type() == ConvertedType::LIST
}

/// Whether a group is annotated as a map.
pub(in crate::pq) fn is_map(info: &BasicTypeInfo) -> bool {
    info.logical_type_ref() == Some(&LogicalType::Map)
        || matches!(
            info.converted_type(),
            ConvertedType::MAP | ConvertedType::MAP_KEY_VALUE
        )
}

pub(in crate::pq) fn is_repeated(node: &Type) -> bool {
    node.get_basic_info().has_repetition()
        && node.get_basic_info().repetition() == Repetition::REPEATED
}

fn has_many_children(node: &Type) -> bool {
    node.is_group() && node.get_fields().len() > 1
}

/// The Arrow type that a field is decoded to.
fn decoded_field(field: &Field, schema: &SchemaDescriptor, leaf: &mut usize) -> Field {
    let mut child = |field: &Arc<Field>| Arc::new(decoded_field(field, schema, leaf));
    let data_type = match field.data_type() {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(&mut child).collect()),
        DataType::List(element) => DataType::List(child(element)),
        DataType::Map(entries, sorted) => DataType::Map(child(entries), *sorted),
        primitive => {
            let physical = schema
                .columns()
                .get(*leaf)
                .map(|column| column.physical_type());
            *leaf += 1;
            match primitive {
                DataType::Utf8 => DataType::Utf8View,
                DataType::Binary => DataType::BinaryView,
                DataType::Timestamp(TimeUnit::Nanosecond, None)
                    if physical == Some(Physical::INT96) =>
                {
                    DataType::Timestamp(TimeUnit::Microsecond, None)
                }
                other => other.clone(),
            }
        }
    };
    field.clone().with_data_type(data_type)
}

/// Batches of one row group, as they come from the decoder.
pub(in crate::pq) struct RowGroupBatches {
    /// Columns on the fast path, with their position among the fields, until all their rows are
    /// returned.
    flat: Vec<(usize, Option<FlatColumn>)>,
    /// The others, in order.
    rest: Option<ParquetRecordBatchReader>,
    schema: SchemaRef,
    /// Remaining rows of the row group; only counted for flat columns.
    left: usize,
    batch_rows: usize,
    memory: Arc<DecodeMemoryUse>,
    failure: GroupFailure,
    file: String,
}

/// Decodes `shape` of `group`, `batch_rows` at a time, only the rows of `selection` if there is
/// one.
pub(in crate::pq) fn decode(
    shape: &ParquetProjection,
    group: &FetchedRowGroup,
    batch_rows: usize,
    selection: Option<RowSelection>,
    file: &str,
) -> Result<RowGroupBatches> {
    let failure = group.failure();
    let memory = group.memory();
    let batch_rows = batch_rows.max(1);
    catch_decoder_panic(file, || {
        // arrow-rs' readers skip parts of a column.
        let flat = if selection.is_none() {
            flat_columns(shape, group).map_err(|e| failure.or(e))?
        } else {
            Vec::new()
        };
        let reader = |shape: &ParquetProjection, group: &FetchedRowGroup| {
            ParquetRecordBatchReader::try_new_with_row_groups(
                &shape.levels,
                group,
                batch_rows,
                selection.clone(),
            )
            .map_err(|e| failure.or(decode_error(e)))
        };
        let rest = match flat.len() {
            0 => Some(reader(shape, group)?),
            some if some == shape.fields.len() => None,
            _ => {
                let flat_leaves: FxHashSet<usize> = flat.iter().map(|(_, leaf, _)| *leaf).collect();
                let rest =
                    ParquetProjection::new(&shape.schema, |leaf| !flat_leaves.contains(&leaf))?;
                Some(reader(&rest, &group.project(&rest.leaves))?)
            }
        };
        Ok(RowGroupBatches {
            flat: flat
                .into_iter()
                .map(|(field, _, column)| (field, Some(column)))
                .collect(),
            rest,
            schema: Arc::new(Schema::new(shape.fields.clone())),
            left: group.num_rows(),
            batch_rows,
            memory,
            failure: failure.clone(),
            file: file.to_owned(),
        })
    })
}

/// The columns of `shape` on the fast path: position among the fields, leaf, column.
fn flat_columns(
    shape: &ParquetProjection,
    group: &FetchedRowGroup,
) -> Result<Vec<(usize, usize, FlatColumn)>> {
    let mut out = Vec::new();
    let mut leaf = 0;
    for (at, field) in shape.fields.iter().enumerate() {
        let first = leaf;
        leaf += leaf_count(field.data_type());
        let Some(column) = group
            .column(first)
            .filter(|column| !field.data_type().is_nested() && is_flat(column, field))
        else {
            continue;
        };
        let pages = group.flat_pages(first).map_err(decode_error)?;
        out.push((at, first, FlatColumn::new(pages, column, field)?));
    }
    Ok(out)
}

impl RowGroupBatches {
    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        self.memory.begin_batch(self.batch_rows);
        let Self {
            flat,
            rest,
            schema,
            left,
            batch_rows,
            ..
        } = self;
        if flat.is_empty() {
            return Ok(match rest {
                Some(rest) => rest.next().transpose().map_err(batch_error)?,
                None => None,
            });
        }
        let rows = (*left).min(*batch_rows);
        let others = match rest {
            Some(rest) => rest.next().transpose().map_err(batch_error)?,
            None => None,
        };
        let counted = others.as_ref().map_or(0, RecordBatch::num_rows);
        if rest.is_some() && counted != rows {
            return Err(Error::corrupt_data(format!(
                "the columns of a row group have different numbers of rows ({counted} and {rows})"
            )));
        }
        if rows == 0 && flat.iter().all(|(_, column)| column.is_none()) {
            return Ok(None);
        }
        let mut others = others
            .iter()
            .flat_map(|batch| batch.columns().iter().cloned());
        let mut flat = flat.iter_mut().peekable();
        let mut arrays = Vec::with_capacity(schema.fields().len());
        for at in 0..schema.fields().len() {
            let array = match flat.next_if(|(field, _)| *field == at) {
                Some((_, column)) => read_flat_column(column, rows, rows == *left)?,
                None => others
                    .next()
                    .ok_or_else(|| Error::internal("a column is missing"))?,
            };
            if array.len() < rows {
                return Err(Error::corrupt_data(format!(
                    "a column ends {} rows too early",
                    *left - array.len()
                )));
            }
            arrays.push(array);
        }
        *left -= rows;
        Ok((rows > 0)
            .then(|| RecordBatch::try_new(Arc::clone(schema), arrays))
            .transpose()?)
    }
}

/// The next rows of a column. After the last ones it releases its memory, before the next column
/// allocates as much.
fn read_flat_column(
    column: &mut Option<FlatColumn>,
    rows: usize,
    is_last: bool,
) -> Result<ArrayRef> {
    let open = column
        .as_mut()
        .ok_or_else(|| Error::internal("a column was read to its end"))?;
    let array = open.read(rows)?;
    if is_last {
        if open.has_more_rows()? {
            return Err(Error::corrupt_data(
                "a column has more rows than its row group claims",
            ));
        }
        *column = None;
    }
    Ok(array)
}

impl Iterator for RowGroupBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let file = self.file.clone();
        catch_decoder_panic(&file, || self.advance().map_err(|e| self.failure.or(e))).transpose()
    }
}

/// How many rows of a group to decode at once: `batch_rows`, fewer where lists are long or values
/// large.
pub(in crate::pq) fn rows_per_batch(
    footer: &crate::pq::ParquetFooter,
    group: usize,
    leaves: &[usize],
    batch_rows: usize,
    batch_bytes: u64,
) -> Result<usize> {
    let metadata = footer
        .metadata
        .row_groups()
        .get(group)
        .ok_or_else(|| Error::internal(format!("there is no row group {group}")))?;
    let rows = u64::try_from(metadata.num_rows()).unwrap_or(0).max(1);
    let columns = leaves
        .iter()
        .filter_map(|leaf| metadata.columns().get(*leaf));
    let (mut values, mut bytes, mut element_bytes) = (1_u64, 1_u64, 1_u64);
    for column in columns {
        let column_values = u64::try_from(column.num_values()).unwrap_or(0);
        values = values.max(column_values);
        bytes = bytes.saturating_add(u64::try_from(column.uncompressed_size()).unwrap_or(0));
        if column.column_descr().max_rep_level() > 0 {
            let of_value = decoded_value_bytes(column.column_descr());
            element_bytes =
                element_bytes.saturating_add(column_values.saturating_mul(LEVEL_BYTES + of_value));
        }
    }
    let by_values = VALUES_AT_ONCE.saturating_mul(rows) / values.max(rows);
    let part = |limit: u64, bytes: u64| {
        u64::try_from(u128::from(limit) * u128::from(rows) / u128::from(bytes)).unwrap_or(u64::MAX)
    };
    let by_bytes = part(batch_bytes, bytes);
    let by_elements = part(ELEMENT_BYTES.min(decode_limit()? / 8), element_bytes);
    let least = by_values.min(by_bytes).min(by_elements).max(1);
    Ok(usize::try_from(least)
        .map_or(batch_rows, |least| batch_rows.min(least))
        .max(1))
}

/// List elements of a column to decode at once.
const VALUES_AT_ONCE: u64 = 4 << 20;
/// Bytes of list elements of all columns to decode at once, with their levels.
const ELEMENT_BYTES: u64 = 128 << 20;
/// Bytes of the levels of a list element.
const LEVEL_BYTES: u64 = 4;
