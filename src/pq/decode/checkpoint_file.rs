//! Parquet files with their own schema, for checkpoints: [`StoreObject`] -> schema, row groups with
//! statistics, batches of selected leaves.
//!
//! arrow-rs decodes to views; [`StringLayout::Plain`] casts afterwards. Batches are cut so that
//! their strings (counted as if copied, since the reader will copy them) stay within
//! `max_batch_bytes`. A file whose rows expand its bytes beyond reason is refused: a checkpoint has
//! a different path in every row, so its rows cannot compress without limit. Its strings can, where
//! files have equal statistics; beyond a ratio the memory limit decides.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::file::statistics::Statistics;

use crate::error::{Error, Result, ResultExt};
use crate::exec::decode_limit;
use crate::pq::decode::batch_budget::{longest_string, split_by_bytes, string_bytes};
use crate::pq::decode::projection::{ParquetProjection, RowGroupBatches, decode, rows_per_batch};
use crate::pq::decoder_errors::catch_decoder_panic;
use crate::pq::input::column_chunks::{ChunkRequest, RowGroupFetch, fetch};
use crate::pq::input::footer::{FileTail, ParquetFooter, read_with_tail};
use crate::pq::input::header_check::renamed_column;
use crate::protocol::commit_line::LONGEST_LINE;
use crate::protocol::schema::StringLayout;
use crate::store::StoreObject;

/// Number of rows that every file may have, and the number of further rows per byte.
const ROWS: (u64, u64) = (1 << 20, 256);
/// Bytes of strings of a byte of the file, and further ones, whatever the memory limit.
const TEXT: (u64, u64) = (64 << 20, 4096);

/// A Parquet file, read with its own schema.
#[derive(Debug, Clone)]
pub struct RawFile {
    file: StoreObject,
    footer: Arc<ParquetFooter>,
    file_tail: Arc<FileTail>,
}

/// A row group.
#[derive(Debug, Clone, Copy)]
pub struct RawGroup<'a> {
    metadata: &'a parquet::file::metadata::RowGroupMetaData,
}

/// Footer statistics of a leaf column in a row group. Absent parts are unknown.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LeafStatistics {
    /// The number of values that are null or have a parent that is null.
    pub null_count: Option<u64>,
    /// A lower bound.
    pub min: Option<LeafBound>,
    /// An upper bound.
    pub max: Option<LeafBound>,
}

/// A bound of a leaf column, by its physical type.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum LeafBound {
    /// `BOOLEAN`
    Bool(bool),
    /// `INT32`, `INT64`
    Int(i64),
    /// `FLOAT`, `DOUBLE`
    Float(f64),
    /// `BYTE_ARRAY`, `FIXED_LEN_BYTE_ARRAY`
    Bytes(Vec<u8>),
}

/// Opens a file by reading its footer.
///
/// # Errors
/// [`Error::Corrupt`] names the file; [`Error::NotFound`], [`Error::Storage`].
pub fn open_raw(file: &StoreObject) -> Result<RawFile> {
    let (footer, end) = read_with_tail(file)?;
    let limit = ROWS.1.saturating_mul(footer.size).saturating_add(ROWS.0);
    if footer.num_rows() > limit {
        return Err(Error::corrupt_data(format!(
            "a file of {} bytes claims to have {} rows",
            footer.size,
            footer.num_rows()
        ))
        .at_file(&file.path));
    }
    check_consistent(&footer, end.metadata()).at_file(&file.path)?;
    Ok(RawFile {
        file: file.clone(),
        footer,
        file_tail: Arc::new(end),
    })
}

impl RawGroup<'_> {
    /// Rows in it.
    #[must_use]
    pub fn num_rows(&self) -> u64 {
        u64::try_from(self.metadata.num_rows()).unwrap_or(0)
    }

    /// Statistics of the leaf at `path`; `None` where the file has no such leaf.
    #[must_use]
    pub fn statistics(&self, path: &[&str]) -> Option<LeafStatistics> {
        let column = self.metadata.columns().iter().find(|column| {
            column
                .column_path()
                .parts()
                .iter()
                .map(String::as_str)
                .eq(path.iter().copied())
        })?;
        Some(column.statistics().map(leaf_statistics).unwrap_or_default())
    }

    /// Whether the leaf at `path` is null in every row: true where there is no such leaf, false
    /// where that is unknown.
    #[must_use]
    pub fn is_all_null(&self, path: &[&str]) -> bool {
        self.statistics(path)
            .is_none_or(|statistics| statistics.null_count == Some(self.num_rows()))
    }

    /// Whether the null counts of all columns leave at least one value per row. Where each row has
    /// one, as in a checkpoint, null counts that leave fewer are wrong or incomplete, and prove
    /// nothing.
    #[must_use]
    pub fn accounts_for_rows(&self) -> bool {
        let mut values = 0_u64;
        let mut of_column = 0;
        let mut root: Option<&str> = None;
        for column in self.metadata.columns() {
            let own = column.column_path().parts().first().map(String::as_str);
            if own != root {
                (values, of_column, root) = (values.saturating_add(of_column), 0, own);
            }
            let nulls = column
                .statistics()
                .and_then(Statistics::null_count_opt)
                .filter(|_| column.column_descr().max_rep_level() == 0);
            of_column =
                of_column.max(nulls.map_or(0, |nulls| self.num_rows().saturating_sub(nulls)));
        }
        values.saturating_add(of_column) >= self.num_rows()
    }
}

/// Refuses a footer whose parts contradict each other: it has the names of columns and the numbers
/// of rows twice, so one flipped bit in either copy is detected; without this check it could make a
/// column disappear.
fn check_consistent(footer: &ParquetFooter, bytes: Option<&[u8]>) -> Result<()> {
    let contradiction = |what: String| {
        Err(Error::corrupt_data(format!(
            "the Parquet footer contradicts itself: {what}"
        )))
    };
    let metadata = &footer.metadata;
    let rows = i64::try_from(footer.num_rows()).unwrap_or(i64::MAX);
    if metadata.file_metadata().num_rows() != rows {
        return contradiction(format!(
            "the file has {} rows and its row groups have {rows}",
            metadata.file_metadata().num_rows()
        ));
    }
    let schema = metadata.file_metadata().schema_descr();
    for (n, group) in metadata.row_groups().iter().enumerate() {
        for column in group.columns() {
            let is_flat = column.column_descr().max_rep_level() == 0;
            if is_flat && column.num_values() != group.num_rows() {
                let (path, values) = (column.column_path().string(), column.num_values());
                return contradiction(format!(
                    "row group {n} has {} rows and {values} values of `{path}`",
                    group.num_rows()
                ));
            }
        }
    }
    let leaves: Vec<&[String]> = schema
        .columns()
        .iter()
        .map(|column| column.path().parts())
        .collect();
    match bytes.and_then(|bytes| renamed_column(bytes, &leaves)) {
        Some(leaf) => contradiction(format!(
            "a row group has another name for the column `{}`",
            leaves.get(leaf).copied().unwrap_or_default().join(".")
        )),
        None => Ok(()),
    }
}

fn leaf_statistics(statistics: &Statistics) -> LeafStatistics {
    let bytes = |value: &[u8]| LeafBound::Bytes(value.to_vec());
    let (min, max) = match statistics {
        Statistics::Boolean(v) => (
            v.min_opt().map(|v| LeafBound::Bool(*v)),
            v.max_opt().map(|v| LeafBound::Bool(*v)),
        ),
        Statistics::Int32(v) => (
            v.min_opt().map(|v| LeafBound::Int((*v).into())),
            v.max_opt().map(|v| LeafBound::Int((*v).into())),
        ),
        Statistics::Int64(v) => (
            v.min_opt().map(|v| LeafBound::Int(*v)),
            v.max_opt().map(|v| LeafBound::Int(*v)),
        ),
        Statistics::Float(v) => (
            v.min_opt().map(|v| LeafBound::Float((*v).into())),
            v.max_opt().map(|v| LeafBound::Float((*v).into())),
        ),
        Statistics::Double(v) => (
            v.min_opt().map(|v| LeafBound::Float(*v)),
            v.max_opt().map(|v| LeafBound::Float(*v)),
        ),
        Statistics::ByteArray(v) => (
            v.min_opt().map(|v| bytes(v.data())),
            v.max_opt().map(|v| bytes(v.data())),
        ),
        Statistics::FixedLenByteArray(v) => (
            v.min_opt().map(|v| bytes(v.data())),
            v.max_opt().map(|v| bytes(v.data())),
        ),
        Statistics::Int96(_) => (None, None),
    };
    LeafStatistics {
        null_count: statistics.null_count_opt(),
        min,
        max,
    }
}

impl RawFile {
    /// Rows in the file.
    #[must_use]
    pub fn num_rows(&self) -> u64 {
        self.footer.num_rows()
    }

    /// Its path in its store.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.file.path
    }

    /// Whether this is the file's schema, names and types.
    pub(in crate::pq) fn has_schema(&self, schema: &parquet::schema::types::Type) -> bool {
        let own = self.footer.metadata.file_metadata().schema_descr();
        let columns = |descriptor: &parquet::schema::types::SchemaDescriptor| -> Vec<_> {
            let shape = |column: &parquet::schema::types::ColumnDescPtr| {
                let length = if column.physical_type() == parquet::basic::Type::FIXED_LEN_BYTE_ARRAY
                {
                    column.type_length()
                } else {
                    0
                };
                (
                    column.path().clone(),
                    column.physical_type(),
                    column.logical_type_ref().cloned(),
                    column.max_def_level(),
                    column.max_rep_level(),
                    length,
                )
            };
            descriptor.columns().iter().map(shape).collect()
        };
        columns(own)
            == columns(&parquet::schema::types::SchemaDescriptor::new(
                std::sync::Arc::new(schema.clone()),
            ))
    }

    /// The file's size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.footer.size
    }

    /// The row groups, in order.
    #[must_use]
    pub fn row_groups(&self) -> impl ExactSizeIterator<Item = RawGroup<'_>> {
        self.footer
            .metadata
            .row_groups()
            .iter()
            .map(|metadata| RawGroup { metadata })
    }

    /// Paths of all leaf columns.
    pub fn leaves(&self) -> impl Iterator<Item = Vec<&str>> {
        self.footer
            .metadata
            .file_metadata()
            .schema_descr()
            .columns()
            .iter()
            .map(|column| column.path().parts().iter().map(String::as_str).collect())
    }

    /// The Arrow schema of the leaves that `leaf` accepts, as returned by [`RawFile::read`].
    ///
    /// # Errors
    /// [`Error::Corrupt`] for invalid types.
    pub fn schema(
        &self,
        leaf: impl Fn(&[&str]) -> bool,
        layout: StringLayout,
    ) -> Result<SchemaRef> {
        catch_decoder_panic(&self.file.path, || {
            Ok(with_text_layout(&self.projection(leaf)?, layout))
        })
    }

    fn projection(&self, leaf: impl Fn(&[&str]) -> bool) -> Result<ParquetProjection> {
        let schema = self.footer.metadata.file_metadata().schema_descr();
        let kept: Vec<bool> = schema
            .columns()
            .iter()
            .map(|column| {
                leaf(
                    &column
                        .path()
                        .parts()
                        .iter()
                        .map(String::as_str)
                        .collect::<Vec<_>>(),
                )
            })
            .collect();
        ParquetProjection::new(schema, |n| kept.get(n).copied().unwrap_or(false))
    }

    /// Reads row groups `groups`, only the leaves that `leaf` accepts (both of a map's), at most
    /// `batch_rows` rows and `max_batch_bytes` of strings at once (but at least one row).
    ///
    /// # Errors
    /// As [`RawFile::schema`]. The iterator returns errors of the data.
    pub fn read(
        &self,
        groups: &[usize],
        leaf: impl Fn(&[&str]) -> bool,
        layout: StringLayout,
        batch_rows: usize,
        max_batch_bytes: u64,
    ) -> Result<RawBatches> {
        catch_decoder_panic(&self.file.path, || {
            let shape = self.projection(leaf)?;
            let schema = with_text_layout(&shape, layout);
            let limit = TEXT
                .1
                .saturating_mul(self.footer.size)
                .saturating_add(TEXT.0)
                .max(decode_limit()? / 8);
            Ok(RawBatches {
                file: self.clone(),
                projection: shape,
                schema,
                groups: groups.iter().copied().collect(),
                prefetched: None,
                batches: None,
                ready: VecDeque::new(),
                batch_rows,
                // Offsets of the plain layout have 31 bits.
                max_batch_bytes: max_batch_bytes.min(1 << 30),
                text_left: limit,
            })
        })
    }
}

/// The schema of `shape` in the requested layout.
fn with_text_layout(shape: &ParquetProjection, layout: StringLayout) -> SchemaRef {
    fn plain(field: &Arc<Field>) -> Arc<Field> {
        let data_type = match field.data_type() {
            DataType::Utf8View => DataType::Utf8,
            DataType::BinaryView => DataType::Binary,
            DataType::Struct(fields) => DataType::Struct(fields.iter().map(plain).collect()),
            DataType::List(element) => DataType::List(plain(element)),
            DataType::Map(entries, sorted) => DataType::Map(plain(entries), *sorted),
            other => other.clone(),
        };
        Arc::new(field.as_ref().clone().with_data_type(data_type))
    }
    Arc::new(match layout {
        StringLayout::View => Schema::new(shape.fields.clone()),
        StringLayout::Plain => Schema::new(shape.fields.iter().map(plain).collect::<Vec<_>>()),
    })
}

/// Batches of a [`RawFile`]. Ends after the first error.
pub struct RawBatches {
    file: RawFile,
    projection: ParquetProjection,
    schema: SchemaRef,
    groups: VecDeque<usize>,
    /// The next row group, being fetched while the current one is decoded.
    prefetched: Option<(usize, RowGroupFetch)>,
    batches: Option<RowGroupBatches>,
    ready: VecDeque<RecordBatch>,
    batch_rows: usize,
    max_batch_bytes: u64,
    text_left: u64,
}

impl RawBatches {
    /// The schema of the batches.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn fetch_next(&mut self) -> Result<()> {
        if self.prefetched.is_none()
            && let Some(group) = self.groups.pop_front()
        {
            let wish = ChunkRequest {
                group,
                leaves: &self.projection.leaves,
                part: None,
            };
            self.prefetched = Some((
                group,
                fetch(
                    &self.file.file,
                    &self.file.footer,
                    Some(&self.file.file_tail),
                    &wish,
                )?,
            ));
        }
        Ok(())
    }

    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return self.finish(batch).map(Some);
            }
            if let Some(batches) = &mut self.batches {
                match batches.next() {
                    Some(batch) => {
                        let batch = batch?;
                        let text = string_bytes(batch.columns());
                        if text > LONGEST_LINE && longest_string(batch.columns()) > LONGEST_LINE {
                            return Err(Error::corrupt_data(format!(
                                "a value is longer than the {LONGEST_LINE} bytes that an action may have"
                            )));
                        }
                        self.text_left = self.text_left.checked_sub(text).ok_or_else(|| {
                            Error::corrupt_data(format!(
                                "a file of {} bytes expands to more text than the memory limit allows; if the file is right, raise DELTAFAST_MEMORY_LIMIT to read it",
                                self.file.footer.size
                            ))
                        })?;
                        split_by_bytes(batch, text, self.max_batch_bytes, &mut self.ready);
                        continue;
                    }
                    None => self.batches = None,
                }
            }
            self.fetch_next()?;
            let Some((index, fetch)) = self.prefetched.take() else {
                return Ok(None);
            };
            self.fetch_next()?;
            let group = fetch.wait()?;
            let rows = rows_per_batch(
                &self.file.footer,
                index,
                &self.projection.leaves,
                self.batch_rows,
                self.max_batch_bytes,
            )?;
            self.batches = Some(decode(
                &self.projection,
                &group,
                rows,
                None,
                &self.file.file.path,
            )?);
        }
    }

    fn finish(&self, batch: RecordBatch) -> Result<RecordBatch> {
        let columns = batch
            .columns()
            .iter()
            .zip(self.schema.fields())
            .map(|(column, field)| {
                if column.data_type() == field.data_type() {
                    Ok(Arc::clone(column))
                } else {
                    arrow_cast::cast(column, field.data_type())
                }
            })
            .collect::<Result<Vec<ArrayRef>, _>>()?;
        Ok(RecordBatch::try_new_with_options(
            self.schema(),
            columns,
            &RecordBatchOptions::new().with_row_count(Some(batch.num_rows())),
        )?)
    }
}

impl Iterator for RawBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let path = self.file.file.path.clone();
        let next = catch_decoder_panic(&path, || self.advance()).transpose();
        if !matches!(next, Some(Ok(_))) {
            self.groups.clear();
            self.ready.clear();
            (self.prefetched, self.batches) = (None, None);
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use arrow_array::{Int64Array, StringArray, StructArray};
    use parquet::basic::Compression;
    use parquet::file::properties::WriterProperties;

    use super::*;
    use crate::pq::tests::{file_of, ints, write};

    fn nested() -> RecordBatch {
        let fields = vec![
            Field::new("path", DataType::Utf8, true),
            Field::new("size", DataType::Int64, true),
        ];
        let add = StructArray::new(
            fields.into(),
            vec![
                Arc::new(StringArray::from(vec![Some("a"), None, Some("c")])),
                Arc::new(Int64Array::from(vec![Some(1), None, Some(3)])),
            ],
            Some(vec![true, false, true].into()),
        );
        let txn = StringArray::from(vec![None, Some("app"), None]);
        RecordBatch::try_from_iter_with_nullable([
            ("add", Arc::new(add) as ArrayRef, true),
            ("txn", Arc::new(txn), true),
        ])
        .unwrap()
    }

    #[test]
    fn chosen_leaves_come_as_a_nested_schema() {
        let raw = open_raw(&file_of(&write(&nested(), None))).unwrap();
        assert_eq!(raw.num_rows(), 3);
        assert_eq!(
            raw.leaves().collect::<Vec<_>>(),
            [vec!["add", "path"], vec!["add", "size"], vec!["txn"]]
        );
        let keep = |path: &[&str]| path == ["add", "size"];
        let batch = raw
            .read(&[0], keep, StringLayout::Plain, 100, 1 << 20)
            .unwrap()
            .next()
            .unwrap()
            .unwrap();
        assert_eq!(
            batch.schema(),
            raw.schema(keep, StringLayout::Plain).unwrap()
        );
        assert_eq!(batch.num_columns(), 1);
        let add = batch.column(0).as_struct();
        assert_eq!((add.num_columns(), add.null_count()), (1, 1));
        assert_eq!(add.column(0).as_primitive::<Int64Type>().value(2), 3);
    }

    #[test]
    fn statistics_tell_groups_that_need_not_be_read() {
        let raw = open_raw(&file_of(&write(&nested(), None))).unwrap();
        let group = raw.row_groups().next().unwrap();
        assert_eq!(group.num_rows(), 3);
        let size = group.statistics(&["add", "size"]).unwrap();
        assert_eq!(
            size,
            LeafStatistics {
                null_count: Some(1),
                min: Some(LeafBound::Int(1)),
                max: Some(LeafBound::Int(3))
            }
        );
        assert!(group.is_all_null(&["protocol", "minReaderVersion"]));
        assert!(!group.is_all_null(&["txn"]));
    }

    #[test]
    fn no_leaf_at_all_still_counts_rows() {
        let raw = open_raw(&file_of(&write(&ints(1000), None))).unwrap();
        let rows: usize = raw
            .read(&[0], |_| false, StringLayout::View, 300, 1 << 20)
            .unwrap()
            .map(|b| b.unwrap().num_rows())
            .sum();
        assert_eq!(rows, 1000);
    }

    #[test]
    fn batches_keep_to_their_bytes() {
        let text: StringArray = (0..1000).map(|n| Some("x".repeat(n % 100))).collect();
        let total: usize = text.iter().flatten().map(str::len).sum();
        let batch = RecordBatch::try_from_iter([("s", Arc::new(text) as ArrayRef)]).unwrap();
        let raw = open_raw(&file_of(&write(&batch, None))).unwrap();
        for layout in [StringLayout::Plain, StringLayout::View] {
            let batches: Vec<_> = raw
                .read(&[0], |_| true, layout, 10_000, 2000)
                .unwrap()
                .map(Result::unwrap)
                .collect();
            assert!(
                batches
                    .iter()
                    .all(|b| string_bytes(b.columns()) <= 2000 || b.num_rows() == 1)
            );
            assert_eq!(
                batches
                    .iter()
                    .map(|b| string_bytes(b.columns()))
                    .sum::<u64>(),
                total as u64
            );
            assert_eq!(
                batches.iter().map(RecordBatch::num_rows).sum::<usize>(),
                1000
            );
        }
    }

    #[test]
    fn a_dictionary_bomb_is_one_error() {
        let long = "x".repeat(1 << 20);
        let text: StringArray = (0..200).map(|_| Some(long.as_str())).collect();
        let batch = RecordBatch::try_from_iter([("s", Arc::new(text) as ArrayRef)]).unwrap();
        let properties = WriterProperties::builder()
            .set_dictionary_page_size_limit(1 << 30)
            .set_compression(Compression::ZSTD(Default::default()))
            .set_statistics_enabled(parquet::file::properties::EnabledStatistics::None)
            .build();
        let bytes = write(&batch, Some(properties));
        assert!(bytes.len() < 4096, "{}", bytes.len());
        let raw = open_raw(&file_of(&bytes)).unwrap();
        let results: Vec<_> = raw
            .read(&[0], |_| true, StringLayout::Plain, 10_000, 16 << 20)
            .unwrap()
            .collect();
        let errors: Vec<_> = results.iter().filter_map(|r| r.as_ref().err()).collect();
        assert_eq!(errors.len(), 1);
        assert!(
            errors[0].to_string().contains("DELTAFAST_MEMORY_LIMIT")
                && errors[0].to_string().contains("f.parquet"),
            "{}",
            errors[0]
        );
    }
}
