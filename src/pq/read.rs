//! One data file: [`FileSpec`] -> batches of the table's logical schema.
//!
//! Lazy: nothing is read before the first batch is asked for. Then: footer (cached), columns resolved, row groups chosen (by
//! byte range, by what is not deleted), and row group by row group the wanted chunks are fetched, decoded, deletions
//! filtered out, and what is left turned into the table's types. The next row group of a remote file is on its way meanwhile.
//!
//! Deletions are filtered *after* decoding: measured faster than row selections at every density. Batches are cut so that
//! their text stays within bounds, see `text`.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType as Arrow, Field, Schema};
use arrow_select::filter::{FilterBuilder, filter_record_batch};

use super::calendar::Legacy;
use super::chunks::{Fetch, chunk_range, fetch};
use super::columns::{Columns, Mapping, Wanted};
use super::footer::{End, Footer, FooterCache};
use super::shape::{GroupBatches, decode, rows_at_once};
use super::text::{split, text_bytes};
use super::{convert, guarded};
use crate::dv::DeletionVector;
use crate::error::{Error, Missing, Result};
use crate::protocol::schema::{DataType, StructField, TextLayout};
use crate::store::File;

/// Name of the column that [`FileSpec::row_index`] adds.
pub const ROW_INDEX: &str = "__row_index";
/// Rows of a batch, unless asked otherwise.
pub const BATCH_ROWS: usize = 32 << 10;
/// Bytes of decoded values at once, a guess by the footer.
const BATCH_BYTES: u64 = 64 << 20;
/// Bytes of text in a batch, counted as if copied.
const TEXT_BYTES: u64 = 128 << 20;
/// Rows that any file may have, and rows for each of its bytes beyond that.
const ROWS: (u64, u64) = (1 << 31, 1 << 20);
/// The same for bytes of text.
const TEXT: (u64, u64) = (4 << 30, 1 << 20);

/// What to read of a file, and how.
#[derive(Debug, Clone)]
pub struct FileSpec {
    /// The file.
    pub file: File,
    /// The table's columns to give, in this order; no partition columns.
    pub columns: Vec<StructField>,
    /// How the table's columns are found in the file.
    pub mapping: Mapping,
    /// How text looks in the batches.
    pub layout: TextLayout,
    /// Rows to leave out.
    pub deleted: Option<Arc<DeletionVector>>,
    /// Whether to add [`ROW_INDEX`], each row's position in the file.
    pub row_index: bool,
    /// Columns to add by their names in the file; null where the file has none.
    pub raw_columns: Vec<(String, DataType)>,
    /// Rows of a batch at most.
    pub batch_rows: usize,
    /// Only row groups that begin in this range of bytes.
    pub range: Option<Range<u64>>,
    /// The session's time zone, for files of old writers that did not name theirs.
    pub time_zone: String,
}

impl FileSpec {
    /// A plain reading of `columns`.
    #[must_use]
    pub fn new(file: File, columns: Vec<StructField>) -> Self {
        Self {
            file,
            columns,
            mapping: Mapping::None,
            layout: TextLayout::View,
            deleted: None,
            row_index: false,
            raw_columns: Vec::new(),
            batch_rows: BATCH_ROWS,
            range: None,
            time_zone: "UTC".to_owned(),
        }
    }

    /// The schema of the batches: the table's columns, [`ROW_INDEX`], the raw columns. A column that is NOT NULL in the table
    /// and has nulls in a batch is nullable in that batch's own schema.
    #[must_use]
    pub fn schema(&self) -> Schema {
        let mut fields: Vec<Field> = self.columns.iter().map(|column| column.to_arrow(self.layout)).collect();
        if self.row_index {
            fields.push(Field::new(ROW_INDEX, Arrow::Int64, false));
        }
        fields.extend(self.raw_columns.iter().map(|(name, data_type)| StructField::new(name, data_type.clone(), true).to_arrow(self.layout)));
        Schema::new(fields)
    }
}

/// Batches of a file. Ends after the first error.
pub struct FileBatches {
    spec: FileSpec,
    footers: Arc<FooterCache>,
    state: State,
}

enum State {
    Unopened,
    Open(Box<Open>),
    Done,
}

/// Reads a file; see [`FileSpec`]. Nothing happens before the first batch is asked for.
#[must_use]
pub fn read(spec: FileSpec, footers: &Arc<FooterCache>) -> FileBatches {
    FileBatches { spec, footers: Arc::clone(footers), state: State::Unopened }
}

impl Iterator for FileBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let path = self.spec.file.path.clone();
        let next = guarded(&path, || {
            if matches!(self.state, State::Unopened) {
                self.state = State::Open(Box::new(Open::new(&self.spec, &self.footers)?));
            }
            match &mut self.state {
                State::Open(open) => open.next(&self.spec),
                State::Unopened | State::Done => Ok(None),
            }
        });
        if !matches!(next, Ok(Some(_))) {
            self.state = State::Done;
        }
        next.map_err(missing_data_file).transpose()
    }
}

/// A missing object is a missing data file here.
fn missing_data_file(error: Error) -> Error {
    match error {
        Error::NotFound { kind: Missing::Object, what, place } => Error::NotFound { kind: Missing::DataFile, what, place },
        other => other,
    }
}

/// A row group to read.
#[derive(Debug, Clone, Copy)]
struct Chosen {
    index: usize,
    first_row: u64,
    rows: u64,
}

/// A file under reading.
struct Open {
    footer: Arc<Footer>,
    end: Option<End>,
    columns: Columns,
    legacy: Legacy,
    groups: VecDeque<Chosen>,
    /// The next row group, on its way.
    coming: Option<(Chosen, Fetch)>,
    current: Option<Current>,
    ready: VecDeque<RecordBatch>,
    text_left: u64,
    /// The last batch's schema, to be shared by the next where it is the same.
    schema: Arc<Schema>,
}

/// A row group under decoding.
struct Current {
    batches: Source,
    /// Position in the file of the next row.
    row: u64,
    end: u64,
}

enum Source {
    Decoded(GroupBatches),
    /// No column of the file is needed: only its rows count.
    Rows(usize),
}

impl Open {
    fn new(spec: &FileSpec, footers: &FooterCache) -> Result<Self> {
        let (footer, end) = footers.get(&spec.file)?;
        let limit = ROWS.1.saturating_mul(footer.size).saturating_add(ROWS.0);
        if footer.num_rows() > limit {
            return Err(Error::corrupt_data(format!("a file of {} bytes claims to have {} rows", footer.size, footer.num_rows())));
        }
        let legacy = Legacy::of(&footer, &spec.time_zone);
        let raw: Vec<StructField> = spec.raw_columns.iter().map(|(name, data_type)| StructField::new(name, data_type.clone(), true)).collect();
        let wanted: Vec<Wanted<'_>> = spec
            .columns
            .iter()
            .map(|field| Wanted { field, mapping: spec.mapping })
            .chain(raw.iter().map(|field| Wanted { field, mapping: Mapping::None }))
            .collect();
        let columns = Columns::resolve(footer.metadata.file_metadata().schema_descr(), &wanted, spec.layout, &legacy)?;
        let text_left = TEXT.1.saturating_mul(footer.size).saturating_add(TEXT.0);
        let groups = choose(spec, &footer)?;
        Ok(Self { footer, end, columns, legacy, groups, coming: None, current: None, ready: VecDeque::new(), text_left, schema: Arc::new(spec.schema()) })
    }

    fn next(&mut self, spec: &FileSpec) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            match &mut self.current {
                Some(current) => match current.next()? {
                    Some((rows, batch)) => self.take(spec, rows, batch)?,
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

    fn fetch_next(&mut self, spec: &FileSpec) -> Result<()> {
        if self.coming.is_none()
            && let Some(chosen) = self.groups.pop_front()
        {
            self.coming = Some((chosen, fetch(&spec.file, &self.footer, self.end.as_ref(), chosen.index, &self.columns.shape.leaves)?));
        }
        Ok(())
    }

    /// Begins the next row group, if there is one.
    fn start(&mut self, spec: &FileSpec) -> Result<bool> {
        self.fetch_next(spec)?;
        let Some((chosen, fetch)) = self.coming.take() else { return Ok(false) };
        self.fetch_next(spec)?;
        let leaves = &self.columns.shape.leaves;
        let batches = if leaves.is_empty() {
            Source::Rows(spec.batch_rows.max(1))
        } else {
            let rows = rows_at_once(&self.footer, chosen.index, leaves, spec.batch_rows, BATCH_BYTES)?;
            Source::Decoded(decode(&self.columns.shape, &fetch.wait()?, rows, None, &spec.file.path)?)
        };
        self.current = Some(Current { batches, row: chosen.first_row, end: chosen.first_row + chosen.rows });
        Ok(true)
    }

    /// Drops the deleted rows of a decoded batch, cuts it and makes it the table's.
    fn take(&mut self, spec: &FileSpec, rows: Range<u64>, batch: RecordBatch) -> Result<()> {
        let keep = spec.deleted.as_ref().and_then(|deleted| deleted.keep(rows.clone())).map(|keep| BooleanArray::new(keep, None));
        let index = || (rows.start.cast_signed()..rows.end.cast_signed()).collect::<Int64Array>();
        let (batch, index): (_, Option<ArrayRef>) = match &keep {
            Some(keep) => {
                let index = if spec.row_index { Some(FilterBuilder::new(keep).build().filter(&index())?) } else { None };
                (filter_record_batch(&batch, keep)?, index)
            }
            None => (batch, spec.row_index.then(|| Arc::new(index()) as ArrayRef)),
        };
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let text = text_bytes(batch.columns());
        self.text_left = self
            .text_left
            .checked_sub(text)
            .ok_or_else(|| Error::corrupt_data(format!("a file of {} bytes expands to an implausible amount of text", self.footer.size)))?;
        let mut parts = VecDeque::new();
        split(batch, text, TEXT_BYTES, &mut parts);
        let mut from = 0;
        for part in parts {
            let index = index.as_ref().map(|index| index.slice(from, part.num_rows()));
            from += part.num_rows();
            let logical = self.logical(spec, &part, index)?;
            self.ready.push_back(logical);
        }
        Ok(())
    }

    /// The table's batch of a decoded one.
    fn logical(&mut self, spec: &FileSpec, batch: &RecordBatch, index: Option<ArrayRef>) -> Result<RecordBatch> {
        let rows = batch.num_rows();
        let mut fields = Vec::with_capacity(self.schema.fields().len());
        let mut arrays = Vec::with_capacity(self.schema.fields().len());
        let mut index = index.map(|index| (Arc::new(Field::new(ROW_INDEX, Arrow::Int64, false)), index));
        for (n, column) in self.columns.columns.iter().enumerate() {
            if n == spec.columns.len()
                && let Some((field, index)) = index.take()
            {
                fields.push(field);
                arrays.push(index);
            }
            let source = column.source.and_then(|n| batch.columns().get(n));
            let (field, array) = convert::column(column, source, rows, &self.legacy)?;
            fields.push(field);
            arrays.push(array);
        }
        if let Some((field, index)) = index {
            fields.push(field);
            arrays.push(index);
        }
        if !self.schema.fields().iter().eq(fields.iter()) {
            self.schema = Arc::new(Schema::new(fields));
        }
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &RecordBatchOptions::new().with_row_count(Some(rows)))?)
    }
}

impl Current {
    /// The next decoded batch and the rows that it holds.
    fn next(&mut self) -> Result<Option<(Range<u64>, RecordBatch)>> {
        let left = self.end - self.row;
        let batch = match &mut self.batches {
            Source::Decoded(batches) => match batches.next().transpose()? {
                Some(batch) => batch,
                None if left == 0 => return Ok(None),
                // Positions count for deletions: a row group that ends early would shift those of the next.
                None => return Err(Error::corrupt_data(format!("a row group ends {left} rows too early"))),
            },
            Source::Rows(_) if left == 0 => return Ok(None),
            Source::Rows(most) => {
                let rows = usize::try_from(left).map_or(*most, |left| left.min(*most));
                RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &RecordBatchOptions::new().with_row_count(Some(rows)))?
            }
        };
        let rows = batch.num_rows() as u64;
        if rows > left {
            return Err(Error::corrupt_data(format!("a row group has {} rows more than it claims", rows - left)));
        }
        let range = self.row..self.row + rows;
        self.row = range.end;
        Ok(Some((range, batch)))
    }
}

/// The row groups that are in the wanted range of bytes and not wholly deleted.
fn choose(spec: &FileSpec, footer: &Footer) -> Result<VecDeque<Chosen>> {
    let mut first_row = 0;
    let mut out = VecDeque::new();
    for (index, group) in footer.metadata.row_groups().iter().enumerate() {
        let rows = u64::try_from(group.num_rows()).unwrap_or(0);
        let chosen = Chosen { index, first_row, rows };
        first_row += rows;
        if rows == 0 {
            continue;
        }
        if let Some(range) = &spec.range
            && let Some(column) = group.columns().first()
            && !range.contains(&chunk_range(column, footer.size)?.start)
        {
            continue;
        }
        if spec.deleted.as_ref().is_some_and(|deleted| deleted.count(chosen.first_row..first_row) == rows) {
            continue;
        }
        out.push_back(chosen);
    }
    Ok(out)
}
