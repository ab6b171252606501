//! Copying files of a table into new files as encoded row groups.
//!
//! This is possible if a file equals what a write of its rows would produce: the same columns in
//! the same encoding and compression, only live rows, and statistics in the log from which those of
//! the new file can be derived. Row groups must be large, since otherwise the new file would
//! contain many small ones.
//!
//! Cost: a footer per file, several at the same time.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};

use super::data_files::{WritePlan, finish, format, prepared};
use super::files::PartitionedFileWriter;
use super::prepared_rows::{PreparedRows, SplicedFile};
use super::stats::{FileStatistics, StatsPlan};
use super::write_request::{WriteOutput, WriteRequest};
use crate::error::{Error, Result};
use crate::exec::map_all;
use crate::file_writer::constraints::WriteRules;
use crate::pq::{
    DataFileFormat, ParallelFileWriter, ParquetCompression, SpliceSource, WriterProperties,
};
use crate::protocol::commit_line::Add;
use crate::protocol::data_path::canonical;
use crate::protocol::schema::StructType;
use crate::store::{Store, StoreObject, TableStores};

/// The minimum average size of a row group in bytes for which a file is copied.
const LARGE: u64 = 4 << 20;

impl WriteRequest {
    /// Splits files of the table into those that can be copied, and the others.
    ///
    /// # Errors
    /// Errors of reading footers.
    pub fn spliceable(
        &self,
        files: Vec<Add>,
        stores: &TableStores,
    ) -> Result<(Vec<SplicedFile>, Vec<Add>)> {
        let (large, mut others): (Vec<Add>, Vec<Add>) = files
            .into_iter()
            .partition(|add| self.copies_rows() && has_all_rows(add) && bytes_of(add) >= LARGE);
        if large.is_empty() {
            return Ok((Vec::new(), others));
        }
        let mut out = Vec::new();
        let splices = SplicePlan::of(self)?.splices(self, &large, stores)?;
        for (add, splice) in large.into_iter().zip(splices) {
            match splice {
                Some(splice) if bytes_of(&add) / splice.source.num_groups() as u64 >= LARGE => {
                    out.push(splice);
                }
                _ => others.push(add),
            }
        }
        Ok((out, others))
    }

    /// The bins whose row groups can be copied into one file each, by number: the number of rows
    /// and the statistics, as in the log, of that file. A bin may have some small files.
    ///
    /// # Errors
    /// Errors of reading footers.
    pub fn spliceable_bins(
        &self,
        bins: &[Vec<Add>],
        stores: &TableStores,
    ) -> Result<BTreeMap<usize, (u64, String)>> {
        // A file has at least one row group.
        let candidate = |bin: &&Vec<Add>| {
            let bytes = bin.iter().map(bytes_of).sum::<u64>();
            bin.iter().all(has_all_rows) && bytes >= LARGE.saturating_mul(bin.len() as u64)
        };
        let mut out = BTreeMap::new();
        if !self.copies_rows() || !bins.iter().any(|bin| candidate(&bin)) {
            return Ok(out);
        }
        let plan = SplicePlan::of(self)?;
        for (n, bin) in bins.iter().enumerate().filter(|(_, bin)| candidate(bin)) {
            let splices = plan.splices(self, bin, stores)?;
            let splices: Option<Vec<SplicedFile>> = splices.into_iter().collect();
            if let Some((rows, statistics)) = splices.and_then(joined_statistics) {
                out.insert(n, (rows, plan.stats.json(rows, &statistics)));
            }
        }
        Ok(out)
    }

    /// Whether rows are written without settings or rules that copied rows would not follow.
    fn copies_rows(&self) -> bool {
        self.writer_properties == WriterProperties::default()
            && self.hidden.is_empty()
            && self.rules.is_empty()
            && !self.change_data
    }
}

/// The number of rows and the statistics of all files; `None` if their row groups are small.
fn joined_statistics(splices: Vec<SplicedFile>) -> Option<FileStatistics> {
    let groups: u64 = splices
        .iter()
        .map(|one| one.source.num_groups() as u64)
        .sum();
    let bytes: u64 = splices.iter().map(|one| one.source.bytes()).sum();
    let rows = splices.iter().map(|one| one.source.num_rows()).sum();
    let statistics = splices.into_iter().map(|one| one.statistics);
    let joined = statistics.reduce(|mut all, more| {
        for (all, more) in all.iter_mut().zip(more) {
            all.merge(more);
        }
        all
    })?;
    (bytes >= LARGE.saturating_mul(groups)).then_some((rows, joined))
}

/// The size of a file in bytes.
fn bytes_of(add: &Add) -> u64 {
    u64::try_from(add.size).unwrap_or(0)
}

/// Whether no row of a file is deleted.
fn has_all_rows(add: &Add) -> bool {
    add.deletion_vector.is_none()
}

/// What a file must equal to be copied.
struct SplicePlan {
    stats: StatsPlan,
    format: DataFileFormat,
    /// The codec that the table specifies; without one, files keep theirs.
    codec: Option<ParquetCompression>,
    /// The names of the partition columns.
    names: Vec<String>,
}

impl SplicePlan {
    fn of(request: &WriteRequest) -> Result<Self> {
        let plan = WritePlan::new(request)?;
        let (stats, format, _) = format(request, &plan, &[])?;
        let codec = request.properties.get("delta.parquet.compression.codec");
        Ok(Self {
            stats,
            format,
            codec: codec
                .map(|name| ParquetCompression::parse(name))
                .transpose()?,
            names: plan.partition_names(request.mapping),
        })
    }

    /// The sources of the files; `None` for one whose row groups cannot be copied.
    fn splices(
        &self,
        request: &WriteRequest,
        files: &[Add],
        stores: &TableStores,
    ) -> Result<Vec<Option<SplicedFile>>> {
        let statistics: Vec<_> = files.iter().map(|add| add.stats.as_deref()).collect();
        let statistics = self.stats.parse_statistics(&statistics)?;
        let object = |(add, known): (&Add, &Option<FileStatistics>)| {
            known.as_ref().map(|_| {
                let path = canonical(&add.path)?;
                stores.file(&path, u64::try_from(add.size).ok())
            })
        };
        let objects = files.iter().zip(&statistics).map(object);
        let objects: Vec<Option<Result<StoreObject>>> = objects.collect();
        let cancel = request.cancel.clone();
        let sources = map_all(objects, move |object: Option<Result<StoreObject>>| {
            cancel.check()?;
            object
                .map(|object| SpliceSource::open(&object?))
                .transpose()
        })?;
        let found = files.iter().zip(statistics).zip(sources);
        Ok(found
            .map(|((add, known), source)| self.splice(add, known, source))
            .collect())
    }

    fn splice(
        &self,
        add: &Add,
        known: Option<FileStatistics>,
        source: Option<SpliceSource>,
    ) -> Option<SplicedFile> {
        let ((rows, statistics), source) = known.zip(source)?;
        let fits = self.format.can_splice(&source)
            && source.num_groups() > 0
            && source.num_rows() == rows
            && self
                .codec
                .is_none_or(|codec| source.is_compressed_with(codec));
        let value = |name: &String| {
            let mut values = add.partition_values.iter();
            values
                .find(|(known, _)| *known == name)
                .and_then(|(_, value)| value.clone())
                .filter(|text| !text.is_empty())
        };
        fits.then(|| SplicedFile {
            path: add.path.clone(),
            partition: self.names.iter().map(value).collect(),
            source,
            statistics,
        })
    }
}

impl SplicedFile {
    /// The path of the file in the log.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }
}

/// New values for few columns.
#[derive(Debug, Clone)]
pub struct ColumnRewrite {
    /// Those of the table's columns that the batches have.
    pub schema: StructType,
    /// The constraints on them.
    pub rules: WriteRules,
    /// The columns with new values; none is a partition column.
    pub changed: Vec<String>,
}

/// Copies files except for some columns: `source` has these columns for all rows of all of the
/// files, in the order of the files and rows, and each batch contains rows of one row group or of
/// several row groups of one file.
///
/// # Errors
/// As [`super::write`]; errors of reading the files.
pub fn write_columns(
    store: &Arc<dyn Store>,
    request: &WriteRequest,
    narrow: &ColumnRewrite,
    splices: Vec<SplicedFile>,
    source: impl Iterator<Item = Result<RecordBatch>> + Send + 'static,
) -> Result<WriteOutput> {
    let plan = Arc::new(WritePlan::new(request)?);
    let narrow_request = WriteRequest {
        schema: narrow.schema.clone(),
        partition_columns: Vec::new(),
        rules: narrow.rules.clone(),
        ..request.clone()
    };
    let mut rows = PreparedRowIterator {
        prepared: prepared(&narrow_request, source)?,
        waiting: None,
    };
    let place = |name: &String, schema: &StructType, places: &[usize]| {
        places
            .iter()
            .position(|n| {
                schema
                    .fields
                    .get(*n)
                    .is_some_and(|field| field.name == *name)
            })
            .ok_or_else(|| Error::internal("a changed column is not written"))
    };
    let narrow_places: Vec<usize> = (0..narrow.schema.fields.len()).collect();
    // The indexes of a column in the files, and among the new arrays.
    let places: Vec<(usize, usize)> = narrow
        .changed
        .iter()
        .map(|name| {
            Ok((
                place(name, &plan.schema, &plan.written_places)?,
                place(name, &narrow.schema, &narrow_places)?,
            ))
        })
        .collect::<Result<_>>()?;
    let (stats, format, codec) = format(request, &plan, &[])?;
    let encoders = ParallelFileWriter::start(
        format,
        Arc::clone(store),
        &request.cancel,
        &request.progress,
    )?;
    let mut files = PartitionedFileWriter::new(request, encoders, codec, &plan.partitions);
    let mut written = 0;
    for splice in splices {
        written += splice.source.num_rows();
        files.splice(&splice, |group| {
            let mut arrays: BTreeMap<usize, Vec<ArrayRef>> =
                places.iter().map(|(lane, _)| (*lane, Vec::new())).collect();
            for piece in rows.take(splice.source.group_rows(group))? {
                for (lane, place) in &places {
                    let array = piece
                        .get(*place)
                        .ok_or_else(|| Error::internal("new values lack a column"))?;
                    arrays.entry(*lane).or_default().push(Arc::clone(array));
                }
            }
            Ok(arrays)
        })?;
    }
    finish(files, &plan, request, &stats, written, Vec::new())
}

/// Prepared rows, returned by number.
struct PreparedRowIterator<I> {
    prepared: I,
    waiting: Option<Vec<ArrayRef>>,
}

impl<I: Iterator<Item = Result<PreparedRows>>> PreparedRowIterator<I> {
    /// The next rows, in pieces.
    fn take(&mut self, mut rows: u64) -> Result<Vec<Vec<ArrayRef>>> {
        let mut out = Vec::new();
        while rows > 0 {
            let piece = match self.waiting.take() {
                Some(piece) => piece,
                None => {
                    self.prepared
                        .next()
                        .transpose()?
                        .ok_or_else(|| Error::internal("there are fewer new values than rows"))?
                        .columns
                }
            };
            let length = piece.first().map_or(0, |array| array.len());
            let taken = usize::try_from(rows).unwrap_or(usize::MAX).min(length);
            if taken < length {
                self.waiting = Some(
                    piece
                        .iter()
                        .map(|array| array.slice(taken, length - taken))
                        .collect(),
                );
            }
            rows -= taken as u64;
            out.push(piece.iter().map(|array| array.slice(0, taken)).collect());
        }
        Ok(out)
    }
}
