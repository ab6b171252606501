//! One data file: [`FileSpec`] -> batches of the table's logical schema.
//!
//! Lazy: nothing is read before the first batch is requested. Then the footer is read (cached),
//! columns are resolved and row groups chosen (by byte range, by deletions, by the filter). For
//! each row group the wanted chunks are fetched and decoded, deleted rows are filtered out, and the
//! remaining rows are converted to the table's types. The next row group of a remote file is
//! fetched meanwhile.
//!
//! Deletions are filtered *after* decoding: measured faster than row selections at every density.
//! With a filter that drops rows here, its columns are decoded first where the others cost more; if
//! few rows match, the other columns are decoded only around these rows, and not at all if no row
//! matches. A filter that proves unselective is applied to whole batches instead.
//!
//! Batches are cut so that their strings stay within the byte budget, see `batch_budget`.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions, UInt64Array,
};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use arrow_schema::{DataType as Arrow, Field, Schema};
use arrow_select::filter::filter_record_batch;
use arrow_select::take::take;
use parquet::arrow::arrow_reader::RowSelection;
use parquet::file::metadata::ColumnChunkMetaData;

use crate::dv::DeletionVector;
use crate::error::{Error, NotFoundKind, Result};
use crate::exec::decode_limit;
use crate::expr::BoundExpr;
use crate::pq::decode::batch_budget::{compact_batch, split_by_bytes, string_bytes};
use crate::pq::decode::column_mapping::{
    ColumnMappingMode, OutputColumn, ProjectedColumns, RequestedColumn,
};
use crate::pq::decode::projection::{ParquetProjection, RowGroupBatches, decode, rows_per_batch};
use crate::pq::decode::row_selection::RowGroupPruner;
use crate::pq::decode::to_table_types;
use crate::pq::decoder_errors::catch_decoder_panic;
use crate::pq::input::calendar_rebase::CalendarRebase;
use crate::pq::input::column_chunks::{
    ChunkRequest, RowGroupFetch, SelectedPageLocations, chunk_range, fetch,
};
use crate::pq::input::footer::{FileTail, FooterCache, ParquetFooter};
use crate::protocol::calendar::TimeZoneSpec;
use crate::protocol::schema::{DataType, StringLayout, StructField};
use crate::store::StoreObject;

/// Name of the column that [`FileSpec::row_index`] adds.
pub const ROW_INDEX: &str = "__row_index";
/// Default number of rows of a batch.
pub const BATCH_ROWS: usize = 32 << 10;
/// Bytes of values decoded at once, estimated from the footer.
const BATCH_BYTES: u64 = 64 << 20;
/// Bytes of strings of a byte of the file, and further ones, whatever the memory limit; and how many
/// times the memory limit they may be. A few bytes can repeat a string for hours.
const TEXT: (u64, u64) = (4 << 30, 1 << 20);
const TEXT_OF_LIMIT: u64 = 16;
/// Bytes of strings in a batch, counted as if copied.
const TEXT_BYTES: u64 = 128 << 20;
/// Number of rows that every file may have, and the number of further rows per byte.
const ROWS: (u64, u64) = (1 << 31, 1 << 20);

/// Batches of a filter's columns after which it is known whether few rows match.
const PROBED_BATCHES: usize = 4;
/// Few rows are less than one in this many.
const FEW: u64 = 5;
/// Unneeded rows to decode rather than to interrupt decoding.
const GAP: u64 = 128;

/// The parts of a file to read, and the options.
#[derive(Debug, Clone)]
pub struct FileSpec {
    /// The file.
    pub file: StoreObject,
    /// The table's columns to return, in this order; no partition columns.
    pub columns: Vec<StructField>,
    /// The key by which the table's columns are found in the file.
    pub mapping: ColumnMappingMode,
    /// The layout of strings in the batches.
    pub layout: StringLayout,
    /// Rows to skip.
    pub deleted: Option<Arc<DeletionVector>>,
    /// Whether to add [`ROW_INDEX`], each row's position in the file.
    pub row_index: bool,
    /// Columns to add by their names in the file; null where the file has none.
    pub raw_columns: Vec<(String, DataType)>,
    /// Rows of a batch at most.
    pub batch_rows: usize,
    /// Only row groups that begin in this range of bytes.
    pub range: Option<Range<u64>>,
    /// The session's time zone, for files of old writers that did not record theirs.
    pub zone: TimeZoneSpec,
    /// Row groups and pages that cannot hold a row for which this is true are skipped. Logical
    /// names.
    pub filter: Option<Arc<BoundExpr>>,
    /// Whether to also drop every single row for which `filter` is not true.
    pub filter_rows: bool,
    /// Columns of the file that `filter` reads and `columns` lacks.
    pub filter_columns: Vec<StructField>,
    /// Columns that `filter` reads and no file has (partition columns), each with the one value it
    /// has in this file's rows.
    pub constants: Vec<(String, ArrayRef)>,
}

impl FileSpec {
    /// Reads `columns` with default options.
    #[must_use]
    pub fn new(file: StoreObject, columns: Vec<StructField>) -> Self {
        Self {
            file,
            columns,
            mapping: ColumnMappingMode::None,
            layout: StringLayout::View,
            deleted: None,
            row_index: false,
            raw_columns: Vec::new(),
            batch_rows: BATCH_ROWS,
            range: None,
            zone: TimeZoneSpec::UTC,
            filter: None,
            filter_rows: false,
            filter_columns: Vec::new(),
            constants: Vec::new(),
        }
    }

    /// The schema of the batches: the table's columns, [`ROW_INDEX`], the raw columns. A column
    /// that is NOT NULL in the table and has nulls in a batch is nullable in that batch's own
    /// schema.
    #[must_use]
    pub fn schema(&self) -> Schema {
        let mut fields: Vec<Field> = self
            .columns
            .iter()
            .map(|column| column.to_arrow(self.layout))
            .collect();
        if self.row_index {
            fields.push(Field::new(ROW_INDEX, Arrow::Int64, false));
        }
        fields.extend(self.raw_columns.iter().map(|(name, data_type)| {
            StructField::new(name, data_type.clone(), true).to_arrow(self.layout)
        }));
        Schema::new(fields)
    }
}

/// Batches of a file. Ends after the first error.
pub struct FileBatches {
    spec: FileSpec,
    footers: Arc<FooterCache>,
    state: FileReadState,
}

enum FileReadState {
    Unopened,
    Open(Box<OpenDataFile>),
    Done,
}

/// Reads a file; see [`FileSpec`]. Nothing is read before the first batch is requested.
#[must_use]
pub fn read(spec: FileSpec, footers: &Arc<FooterCache>) -> FileBatches {
    FileBatches {
        spec,
        footers: Arc::clone(footers),
        state: FileReadState::Unopened,
    }
}

impl Iterator for FileBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let path = self.spec.file.path.clone();
        let next = catch_decoder_panic(&path, || {
            if matches!(self.state, FileReadState::Unopened) {
                self.state =
                    FileReadState::Open(Box::new(OpenDataFile::new(&self.spec, &self.footers)?));
            }
            match &mut self.state {
                FileReadState::Open(open) => open.next(&self.spec),
                FileReadState::Unopened | FileReadState::Done => Ok(None),
            }
        });
        if !matches!(next, Ok(Some(_))) {
            self.state = FileReadState::Done;
        }
        next.map_err(missing_data_file).transpose()
    }
}

/// A missing object is a missing data file here.
pub(super) fn missing_data_file(error: Error) -> Error {
    match error {
        Error::NotFound {
            kind: NotFoundKind::Object,
            what,
            context: place,
        } => Error::NotFound {
            kind: NotFoundKind::DataFile,
            what,
            context: place,
        },
        other => other,
    }
}

/// A row group to read.
pub(super) struct SelectedRowGroup {
    pub(super) index: usize,
    first_row: u64,
    rows: u64,
    /// The rows that may match, within the group.
    pub(super) ranges: Vec<Range<u64>>,
    /// The locations of the pages, if only some are wanted.
    pages: Option<SelectedPageLocations>,
}

impl SelectedRowGroup {
    /// The rows that may match, by position in the file.
    fn positions(&self) -> VecDeque<Range<u64>> {
        self.ranges
            .iter()
            .map(|range| self.first_row + range.start..self.first_row + range.end)
            .collect()
    }

    pub(super) fn page_selection(&self) -> Option<(&[Range<u64>], &SelectedPageLocations)> {
        self.pages
            .as_ref()
            .map(|pages| (self.ranges.as_slice(), pages))
    }
}

/// The numbers of row groups that a filter excludes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ExcludedRowGroups {
    pub(super) by_statistics: u64,
    pub(super) by_bloom_filters: u64,
    pub(super) by_page_index: u64,
}

/// A file that is being read.
pub(super) struct OpenDataFile {
    pub(super) footer: Arc<ParquetFooter>,
    file_tail: Option<FileTail>,
    legacy: CalendarRebase,
    /// The columns to return, followed by those that only the filter reads.
    pub(super) all_columns: ProjectedColumns,
    /// The columns to return.
    output: Option<ProjectedColumns>,
    /// The filter's columns, if they are to be decoded first.
    filter_projection: Option<ProjectedColumns>,
    pub(super) groups: VecDeque<SelectedRowGroup>,
    pub(super) excluded: ExcludedRowGroups,
    /// The next row group, being fetched.
    prefetched: Option<(SelectedRowGroup, RowGroupFetch)>,
    current: Option<RowGroupInDecode>,
    /// Parts of a decoded batch. Each is converted when it is taken: a part can take much more
    /// memory after its strings were copied.
    ready: VecDeque<DecodedPart>,
    /// Bytes of strings so far, counted as if copied, and the most that there may be.
    text: (u64, u64),
    /// The last batch's schema, to be shared by the next where it is the same.
    schema: Arc<Schema>,
}

/// Rows of a decoded batch.
struct DecodedPart {
    batch: RecordBatch,
    /// The positions of the rows, if they are to be returned.
    index: Option<ArrayRef>,
    /// Whether the batch has the filter's columns too.
    is_full: bool,
}

/// The most bytes of strings that a file of this size may expand to.
fn text_limit(size: u64) -> Result<u64> {
    let of_size = TEXT.1.saturating_mul(size).saturating_add(TEXT.0);
    Ok(of_size.max(decode_limit()?.saturating_mul(TEXT_OF_LIMIT)))
}

/// A row group that is being decoded.
struct RowGroupInDecode {
    batches: RowGroupSource,
    /// The position in the file of the next rows, and their number.
    rows: VecDeque<Range<u64>>,
    left: u64,
    /// The rows to return, by position from the group's first row, if known.
    matching_rows: Option<(u64, BooleanBuffer)>,
    /// Whether decoded batches have the filter's columns too.
    has_filter_columns: bool,
}

enum RowGroupSource {
    Decoded(RowGroupBatches),
    /// No column of the file is needed: only its rows count.
    Rows(usize),
}

impl OpenDataFile {
    pub(super) fn new(spec: &FileSpec, footers: &FooterCache) -> Result<Self> {
        let (footer, end) = footers.get(&spec.file)?;
        let limit = ROWS.1.saturating_mul(footer.size).saturating_add(ROWS.0);
        if footer.num_rows() > limit {
            return Err(Error::corrupt_data(format!(
                "a file of {} bytes claims to have {} rows",
                footer.size,
                footer.num_rows()
            )));
        }
        if let Some(last) = spec
            .deleted
            .as_ref()
            .and_then(|deleted| deleted.positions().last())
            && last >= footer.num_rows()
        {
            return Err(Error::corrupt_data(format!(
                "the file has {} rows and its deletion vector deletes row {last}",
                footer.num_rows()
            )));
        }
        let legacy = CalendarRebase::from_footer(&footer, spec.zone);
        let schema = footer.metadata.file_metadata().schema_descr();
        let raw: Vec<StructField> = spec
            .raw_columns
            .iter()
            .map(|(name, data_type)| StructField::new(name, data_type.clone(), true))
            .collect();
        let wanted = || {
            let of_table = spec.columns.iter().map(|field| RequestedColumn {
                field,
                mapping: spec.mapping,
            });
            of_table.chain(raw.iter().map(|field| RequestedColumn {
                field,
                mapping: ColumnMappingMode::None,
            }))
        };
        let by_filter = || {
            spec.filter_columns.iter().map(|field| RequestedColumn {
                field,
                mapping: spec.mapping,
            })
        };
        let resolve = |wanted: &[RequestedColumn<'_>]| {
            ProjectedColumns::resolve(schema, wanted, spec.layout, &legacy)
        };
        let mut full = resolve(&wanted().collect::<Vec<_>>())?;
        let (mut output, mut probe) = (None, None);
        let mut groups = select_row_groups(spec, &footer)?;
        let mut excluded = ExcludedRowGroups::default();
        if let Some(filter) = &spec.filter {
            let names = filter.column_names();
            let fields: Vec<&StructField> = spec
                .columns
                .iter()
                .chain(&spec.filter_columns)
                .filter(|field| names.contains(&field.name.as_str()))
                .collect();
            let first = resolve(
                &fields
                    .iter()
                    .map(|field| RequestedColumn {
                        field,
                        mapping: spec.mapping,
                    })
                    .collect::<Vec<_>>(),
            )?;
            if spec.filter_rows && !spec.filter_columns.is_empty() {
                output = Some(std::mem::replace(
                    &mut full,
                    resolve(&wanted().chain(by_filter()).collect::<Vec<_>>())?,
                ));
            }
            let selector =
                RowGroupPruner::new(filter, &footer, &first, &fields, &spec.constants, &legacy);
            let leaves = &output.as_ref().unwrap_or(&full).projection.leaves;
            excluded = prune_row_groups(spec, &selector, end.as_ref(), leaves, &mut groups)?;
            if spec.filter_rows
                && prefers_late_decoding(&footer, &first.projection.leaves, leaves, &groups)
            {
                probe = Some(first);
            }
        }
        let text_limit = text_limit(footer.size)?;
        Ok(Self {
            footer,
            file_tail: end,
            legacy,
            all_columns: full,
            output,
            filter_projection: probe,
            groups,
            excluded,
            prefetched: None,
            current: None,
            ready: VecDeque::new(),
            text: (0, text_limit),
            schema: Arc::new(spec.schema()),
        })
    }

    fn next(&mut self, spec: &FileSpec) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(part) = self.ready.pop_front() {
                return self.convert_part(spec, part).map(Some);
            }
            match &mut self.current {
                Some(current) => match current.next()? {
                    Some((rows, batch)) => self.take(spec, &rows, batch)?,
                    None => self.current = None,
                },
                None => {
                    if !self.start(spec)? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    fn fetch(
        &self,
        spec: &FileSpec,
        chosen: &SelectedRowGroup,
        shape: &ParquetProjection,
    ) -> Result<RowGroupFetch> {
        fetch(
            &spec.file,
            &self.footer,
            self.file_tail.as_ref(),
            &ChunkRequest {
                group: chosen.index,
                leaves: &shape.leaves,
                part: chosen.page_selection(),
            },
        )
    }

    fn fetch_next(&mut self, spec: &FileSpec) -> Result<()> {
        if self.prefetched.is_none()
            && let Some(chosen) = self.groups.pop_front()
        {
            let fetch = self.fetch(
                spec,
                &chosen,
                &self
                    .filter_projection
                    .as_ref()
                    .unwrap_or(&self.all_columns)
                    .projection,
            )?;
            self.prefetched = Some((chosen, fetch));
        }
        Ok(())
    }

    /// Starts the next row group, if there is one.
    fn start(&mut self, spec: &FileSpec) -> Result<bool> {
        self.fetch_next(spec)?;
        let Some((mut chosen, fetch)) = self.prefetched.take() else {
            return Ok(false);
        };
        self.fetch_next(spec)?;
        let Some(probe) = &self.filter_projection else {
            self.current = Some(self.decode(spec, &chosen, fetch, None)?);
            return Ok(true);
        };
        match self.evaluate_filter(spec, probe, &chosen, fetch)? {
            Some(settled) => {
                if settled.has_true() {
                    chosen.ranges = merge_close_ranges(&settled);
                    let shape = &self.output.as_ref().unwrap_or(&self.all_columns).projection;
                    let fetch = self.fetch(spec, &chosen, shape)?;
                    self.current = Some(self.decode(spec, &chosen, fetch, Some(settled))?);
                }
            }
            None => {
                self.filter_projection = None;
                // Only the filter's columns of the next row group were requested.
                if let Some((next, _)) = self.prefetched.take() {
                    self.groups.push_front(next);
                }
                let fetch = self.fetch(spec, &chosen, &self.all_columns.projection)?;
                self.current = Some(self.decode(spec, &chosen, fetch, None)?);
            }
        }
        Ok(true)
    }

    fn decode(
        &self,
        spec: &FileSpec,
        chosen: &SelectedRowGroup,
        fetch: RowGroupFetch,
        settled: Option<BooleanBuffer>,
    ) -> Result<RowGroupInDecode> {
        let is_full = settled.is_none();
        let columns = if is_full {
            &self.all_columns
        } else {
            self.output.as_ref().unwrap_or(&self.all_columns)
        };
        Ok(RowGroupInDecode {
            batches: self.source(spec, &columns.projection, chosen, fetch)?,
            rows: chosen.positions(),
            left: chosen
                .ranges
                .iter()
                .map(|range| range.end - range.start)
                .sum(),
            matching_rows: settled.map(|settled| (chosen.first_row, settled)),
            has_filter_columns: is_full,
        })
    }

    fn source(
        &self,
        spec: &FileSpec,
        shape: &ParquetProjection,
        chosen: &SelectedRowGroup,
        fetch: RowGroupFetch,
    ) -> Result<RowGroupSource> {
        if shape.leaves.is_empty() {
            return Ok(RowGroupSource::Rows(spec.batch_rows.max(1)));
        }
        let rows = rows_per_batch(
            &self.footer,
            chosen.index,
            &shape.leaves,
            spec.batch_rows,
            BATCH_BYTES,
        )?;
        let selection = match chosen.ranges.as_slice() {
            [all] if *all == (0..chosen.rows) => None,
            ranges => {
                let number = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
                let ranges = ranges
                    .iter()
                    .map(|range| number(range.start)..number(range.end));
                Some(RowSelection::from_consecutive_ranges(
                    ranges,
                    number(chosen.rows),
                ))
            }
        };
        Ok(RowGroupSource::Decoded(decode(
            shape,
            &fetch.wait()?,
            rows,
            selection,
            &spec.file.path,
        )?))
    }

    /// Decodes the filter's columns of a row group and returns the rows that match and are not
    /// deleted; `None` if they are many.
    fn evaluate_filter(
        &self,
        spec: &FileSpec,
        probe: &ProjectedColumns,
        chosen: &SelectedRowGroup,
        fetch: RowGroupFetch,
    ) -> Result<Option<BooleanBuffer>> {
        let mut current = RowGroupInDecode {
            batches: self.source(spec, &probe.projection, chosen, fetch)?,
            rows: chosen.positions(),
            left: chosen
                .ranges
                .iter()
                .map(|range| range.end - range.start)
                .sum(),
            matching_rows: None,
            has_filter_columns: false,
        };
        let mut settled = BooleanBufferBuilder::new(usize::try_from(chosen.rows).unwrap_or(0));
        let (mut seen, mut matched, mut batches) = (0_u64, 0_u64, 0);
        while let Some((rows, batch)) = current.next()? {
            let kept = not_deleted(spec, &rows);
            let batch = match &kept {
                Some(kept) => filter_record_batch(&batch, &BooleanArray::new(kept.clone(), None))?,
                None => batch,
            };
            let mask = self.matching_mask(spec, probe.columns.iter(), &batch)?;
            seen += batch.num_rows() as u64;
            matched += mask.count_set_bits() as u64;
            let mask = match &kept {
                // The filter was not evaluated on deleted rows.
                Some(kept) => {
                    let mut answers = mask.iter();
                    BooleanBuffer::collect_bool(kept.len(), |n| {
                        kept.value(n) && answers.next().unwrap_or(false)
                    })
                }
                None => mask,
            };
            let mut from = 0;
            for range in rows {
                let at = usize::try_from(range.start - chosen.first_row).unwrap_or(0);
                settled.append_n(at.saturating_sub(settled.len()), false);
                let length = usize::try_from(range.end - range.start).unwrap_or(0);
                settled.append_buffer(&mask.slice(from, length));
                from += length;
            }
            batches += 1;
            if batches == PROBED_BATCHES && matched * FEW > seen {
                return Ok(None);
            }
        }
        settled.append_n(
            usize::try_from(chosen.rows)
                .unwrap_or(0)
                .saturating_sub(settled.len()),
            false,
        );
        Ok(Some(settled.build()))
    }

    /// The rows of a decoded batch for which the filter is true.
    fn matching_mask<'a>(
        &self,
        spec: &FileSpec,
        columns: impl Iterator<Item = &'a OutputColumn>,
        batch: &RecordBatch,
    ) -> Result<BooleanBuffer> {
        let rows = batch.num_rows();
        let Some(filter) = &spec.filter else {
            return Ok(BooleanBuffer::new_set(rows));
        };
        let names = filter.column_names();
        let mut fields: Vec<Arc<Field>> = Vec::with_capacity(names.len());
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(names.len());
        for column in columns.filter(|column| names.contains(&column.field.name().as_str())) {
            let source = column.source.and_then(|n| batch.columns().get(n));
            let (field, array) =
                to_table_types::to_table_column(column, source, rows, &self.legacy)?;
            fields.push(field);
            arrays.push(array);
        }
        for (name, value) in spec
            .constants
            .iter()
            .filter(|(name, _)| names.contains(&name.as_str()))
        {
            fields.push(Arc::new(Field::new(name, value.data_type().clone(), true)));
            arrays.push(take(value, &UInt64Array::from_value(0, rows), None)?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch =
            RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)?;
        Ok(filter.filter_mask(&batch)?.values().clone())
    }

    /// Drops the unwanted rows of a decoded batch and cuts it.
    fn take(&mut self, spec: &FileSpec, rows: &[Range<u64>], batch: RecordBatch) -> Result<()> {
        let Some(current) = &self.current else {
            return Ok(());
        };
        let mut index: Option<ArrayRef> = spec.row_index.then(|| {
            Arc::new(
                rows.iter()
                    .flat_map(|range| range.start.cast_signed()..range.end.cast_signed())
                    .collect::<Int64Array>(),
            ) as ArrayRef
        });
        let mut batch = batch;
        let mut filter = |batch: &RecordBatch, keep: BooleanBuffer| -> Result<RecordBatch> {
            let keep = BooleanArray::new(keep, None);
            if let Some(index) = &mut index {
                *index = arrow_select::filter::filter(index, &keep)?;
            }
            Ok(filter_record_batch(batch, &keep)?)
        };
        let kept = match &current.matching_rows {
            Some((first, settled)) => Some(slice_ranges(settled, *first, rows)),
            None => not_deleted(spec, rows),
        };
        if let Some(kept) = kept.filter(BooleanBuffer::has_false) {
            batch = filter(&batch, kept)?;
        }
        let is_full = current.has_filter_columns;
        if spec.filter_rows && is_full && spec.filter.is_some() {
            // Raw columns are in between; the filter does not use them.
            let (given, rest) = self
                .all_columns
                .columns
                .split_at(spec.columns.len().min(self.all_columns.columns.len()));
            let mask = self.matching_mask(
                spec,
                given.iter().chain(rest.iter().skip(spec.raw_columns.len())),
                &batch,
            )?;
            if mask.has_false() {
                batch = filter(&batch, mask)?;
            }
        }
        if batch.num_rows() == 0 {
            return Ok(());
        }
        if spec.filter.is_some() && spec.layout == StringLayout::View {
            batch = compact_batch(batch);
        }
        let text = string_bytes(batch.columns());
        let (total, limit) = &mut self.text;
        *total = total.saturating_add(text);
        if *total > *limit {
            return Err(Error::over_memory_limit(
                "a sixteenth of the text that the file expands to",
                *total / TEXT_OF_LIMIT,
                *limit / TEXT_OF_LIMIT,
            ));
        }
        let mut parts = VecDeque::new();
        split_by_bytes(batch, text, TEXT_BYTES, &mut parts);
        let mut from = 0;
        for part in parts {
            let index = index
                .as_ref()
                .map(|index| index.slice(from, part.num_rows()));
            from += part.num_rows();
            self.ready.push_back(DecodedPart {
                batch: part,
                index,
                is_full,
            });
        }
        Ok(())
    }

    /// Converts a part of a decoded batch to the table's types.
    fn convert_part(&mut self, spec: &FileSpec, part: DecodedPart) -> Result<RecordBatch> {
        let DecodedPart {
            batch,
            index,
            is_full,
        } = part;
        let rows = batch.num_rows();
        let columns = if is_full {
            &self.all_columns
        } else {
            self.output.as_ref().unwrap_or(&self.all_columns)
        };
        let mut fields = Vec::with_capacity(self.schema.fields().len());
        let mut arrays = Vec::with_capacity(self.schema.fields().len());
        for column in columns
            .columns
            .iter()
            .take(spec.columns.len() + spec.raw_columns.len())
        {
            let source = column.source.and_then(|n| batch.columns().get(n));
            let (field, array) =
                to_table_types::to_table_column(column, source, rows, &self.legacy)?;
            fields.push(field);
            arrays.push(array);
        }
        if let Some(index) = index {
            fields.insert(
                spec.columns.len(),
                Arc::new(Field::new(ROW_INDEX, Arrow::Int64, false)),
            );
            arrays.insert(spec.columns.len(), index);
        }
        if !self.schema.fields().iter().eq(fields.iter()) {
            self.schema = Arc::new(Schema::new(fields));
        }
        Ok(RecordBatch::try_new_with_options(
            Arc::clone(&self.schema),
            arrays,
            &RecordBatchOptions::new().with_row_count(Some(rows)),
        )?)
    }
}

impl RowGroupInDecode {
    /// The next decoded batch and the rows that it holds.
    fn next(&mut self) -> Result<Option<(Vec<Range<u64>>, RecordBatch)>> {
        let left = self.left;
        let batch = match &mut self.batches {
            RowGroupSource::Decoded(batches) => match batches.next().transpose()? {
                Some(batch) => batch,
                None if left == 0 => return Ok(None),
                // Deletions are by position: a row group that ends early would shift the positions
                // of the next one.
                None => {
                    return Err(Error::corrupt_data(format!(
                        "a row group ends {left} rows too early"
                    )));
                }
            },
            RowGroupSource::Rows(_) if left == 0 => return Ok(None),
            RowGroupSource::Rows(most) => {
                let rows = usize::try_from(left).map_or(*most, |left| left.min(*most));
                RecordBatch::try_new_with_options(
                    Arc::new(Schema::empty()),
                    Vec::new(),
                    &RecordBatchOptions::new().with_row_count(Some(rows)),
                )?
            }
        };
        let rows = batch.num_rows() as u64;
        if rows > left {
            return Err(Error::corrupt_data(format!(
                "a row group has {} rows more than it claims",
                rows - left
            )));
        }
        self.left -= rows;
        let mut wanted = rows;
        let mut ranges = Vec::with_capacity(1);
        while wanted > 0 {
            let Some(first) = self.rows.front_mut() else {
                break;
            };
            let taken = wanted.min(first.end - first.start);
            ranges.push(first.start..first.start + taken);
            first.start += taken;
            wanted -= taken;
            if first.start == first.end {
                self.rows.pop_front();
            }
        }
        Ok(Some((ranges, batch)))
    }
}

/// The rows among these that are not deleted; `None` if none is deleted.
fn not_deleted(spec: &FileSpec, rows: &[Range<u64>]) -> Option<BooleanBuffer> {
    let deleted = spec.deleted.as_ref()?;
    if let [range] = rows {
        return deleted.live_row_mask(range.clone());
    }
    let mut keep = BooleanBufferBuilder::new(0);
    for range in rows {
        match deleted.live_row_mask(range.clone()) {
            Some(part) => keep.append_buffer(&part),
            None => keep.append_n(usize::try_from(range.end - range.start).unwrap_or(0), true),
        }
    }
    Some(keep.build())
}

/// The bits of `rows`, where bit 0 is for row `first`.
fn slice_ranges(bits: &BooleanBuffer, first: u64, rows: &[Range<u64>]) -> BooleanBuffer {
    let part = |range: &Range<u64>| {
        let from = usize::try_from(range.start - first)
            .unwrap_or(0)
            .min(bits.len());
        bits.slice(
            from,
            usize::try_from(range.end - range.start)
                .unwrap_or(0)
                .min(bits.len() - from),
        )
    };
    if let [range] = rows {
        return part(range);
    }
    let mut out = BooleanBufferBuilder::new(0);
    for range in rows {
        out.append_buffer(&part(range));
    }
    out.build()
}

/// The ranges around the set bits, joined across small gaps: decoding stops and starts at a cost.
fn merge_close_ranges(bits: &BooleanBuffer) -> Vec<Range<u64>> {
    let mut out: Vec<Range<u64>> = Vec::new();
    for (from, to) in bits.set_slices() {
        let (from, to) = (from as u64, to as u64);
        match out.last_mut() {
            Some(last) if from - last.end < GAP => last.end = to,
            _ => out.push(from..to),
        }
    }
    out
}

/// The row groups in the wanted byte range that are not entirely deleted.
fn select_row_groups(
    spec: &FileSpec,
    footer: &ParquetFooter,
) -> Result<VecDeque<SelectedRowGroup>> {
    let mut next_row = 0;
    let mut out = VecDeque::new();
    for (index, group) in footer.metadata.row_groups().iter().enumerate() {
        let rows = u64::try_from(group.num_rows()).unwrap_or(0);
        let first_row = next_row;
        next_row += rows;
        if rows == 0 {
            continue;
        }
        if let Some(range) = &spec.range
            && let Some(column) = group.columns().first()
            && !range.contains(&chunk_range(column, footer.size)?.start)
        {
            continue;
        }
        if spec
            .deleted
            .as_ref()
            .is_some_and(|deleted| deleted.count(first_row..next_row) == rows)
        {
            continue;
        }
        out.push_back(SelectedRowGroup {
            index,
            first_row,
            rows,
            ranges: std::iter::once(0..rows).collect(),
            pages: None,
        });
    }
    Ok(out)
}

/// Excludes row groups by their statistics and bloom filters, and rows by the page index.
fn prune_row_groups(
    spec: &FileSpec,
    selector: &RowGroupPruner<'_>,
    end: Option<&FileTail>,
    leaves: &[usize],
    groups: &mut VecDeque<SelectedRowGroup>,
) -> Result<ExcludedRowGroups> {
    let indexes = |groups: &VecDeque<SelectedRowGroup>| {
        groups.iter().map(|chosen| chosen.index).collect::<Vec<_>>()
    };
    let retain = |groups: &mut VecDeque<SelectedRowGroup>, may: Vec<bool>| {
        let mut may = may.into_iter();
        let before = groups.len();
        groups.retain(|_| may.next().unwrap_or(true));
        (before - groups.len()) as u64
    };
    let may = selector.row_groups(&indexes(groups))?;
    let by_statistics = retain(groups, may);
    let may = selector.bloom_filters(&spec.file, end, &indexes(groups))?;
    let by_bloom_filters = retain(groups, may);
    let before = groups.len();
    let pages = selector.select_pages(&spec.file, end, &indexes(groups), leaves)?;
    for (mut chosen, pages) in std::mem::take(groups).into_iter().zip(pages) {
        if let Some((ranges, pages)) = pages {
            if ranges.is_empty() {
                continue;
            }
            chosen.ranges = ranges;
            chosen.pages = Some(pages);
        }
        groups.push_back(chosen);
    }
    Ok(ExcludedRowGroups {
        by_statistics,
        by_bloom_filters,
        by_page_index: (before - groups.len()) as u64,
    })
}

/// Whether decoding `first` before the rest of `leaves` may pay.
fn prefers_late_decoding(
    footer: &ParquetFooter,
    first: &[usize],
    leaves: &[usize],
    groups: &VecDeque<SelectedRowGroup>,
) -> bool {
    let size = |leaf: &usize| -> i64 {
        let of = |chosen: &SelectedRowGroup| {
            footer
                .metadata
                .row_groups()
                .get(chosen.index)
                .and_then(|group| group.columns().get(*leaf))
                .map_or(0, ColumnChunkMetaData::uncompressed_size)
        };
        groups.iter().map(of).sum()
    };
    let rest: i64 = leaves
        .iter()
        .filter(|leaf| !first.contains(leaf))
        .map(size)
        .sum();
    !first.is_empty() && rest > first.iter().map(size).sum::<i64>() / 2
}
