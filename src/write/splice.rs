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
use crate::pq::{
    DataFileFormat, ParallelFileWriter, ParquetCompression, SpliceSource, WriterProperties,
};
use crate::protocol::commit_line::Add;
use crate::protocol::data_path::canonical;
use crate::protocol::schema::StructType;
use crate::store::{Store, StoreObject, TableStores};
use crate::write::constraints::WriteRules;

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
        let (large, mut others): (Vec<Add>, Vec<Add>) =
            files.into_iter().partition(|add| bytes_of(add) >= LARGE);
        let (mut out, plan) = (Vec::new(), SplicePlan::of(self)?);
        for (add, splice) in plan.splices(self, large, stores)? {
            match splice {
                Some(splice) if bytes_of(&add) / splice.source.num_groups() as u64 >= LARGE => {
                    out.push(splice);
                }
                _ => others.push(add),
            }
        }
        Ok((out, others))
    }

    /// The number of rows and the statistics, as in the log, of the file that the row groups of all
    /// of these files make; `None` if they cannot be copied, or are too small.
    ///
    /// # Errors
    /// Errors of reading footers.
    pub fn spliced_statistics(
        &self,
        files: Vec<Add>,
        stores: &TableStores,
    ) -> Result<Option<(u64, String)>> {
        let (bytes, count) = (files.iter().map(bytes_of).sum::<u64>(), files.len() as u64);
        // A file has at least one row group.
        if count == 0 || bytes / count < LARGE {
            return Ok(None);
        }
        let plan = SplicePlan::of(self)?;
        let (mut groups, mut all) = (0, None::<FileStatistics>);
        for (_, splice) in plan.splices(self, files, stores)? {
            let Some(splice) = splice else {
                return Ok(None);
            };
            groups += splice.source.num_groups() as u64;
            let rows = splice.source.num_rows();
            match &mut all {
                None => all = Some((rows, splice.statistics)),
                Some((sum, merged)) => {
                    *sum += rows;
                    for (merged, more) in merged.iter_mut().zip(splice.statistics) {
                        merged.merge(more);
                    }
                }
            }
        }
        Ok(all
            .filter(|_| bytes / groups.max(1) >= LARGE)
            .map(|(rows, statistics)| (rows, plan.stats.json(rows, &statistics))))
    }
}

/// The size of a file in bytes.
fn bytes_of(add: &Add) -> u64 {
    u64::try_from(add.size).unwrap_or(0)
}

/// What a file must equal to be copied.
struct SplicePlan {
    stats: StatsPlan,
    format: DataFileFormat,
    /// The codec that the table specifies; without one, files keep theirs.
    codec: Option<ParquetCompression>,
    /// The names of the partition columns.
    names: Vec<String>,
    /// Whether rows are written without settings or rules that copied rows would not follow.
    copies: bool,
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
            copies: request.writer_properties == WriterProperties::default()
                && request.hidden.is_empty()
                && request.rules.is_empty()
                && !request.change_data,
        })
    }

    /// Each file with its source, or with none if its row groups cannot be copied.
    fn splices(
        &self,
        request: &WriteRequest,
        files: Vec<Add>,
        stores: &TableStores,
    ) -> Result<Vec<(Add, Option<SplicedFile>)>> {
        let texts: Vec<_> = files.iter().map(|add| add.stats.as_deref()).collect();
        let facts = self.stats.parse_statistics(&texts)?;
        let mut objects = Vec::new();
        for (add, facts) in files.iter().zip(&facts) {
            let candidate = self.copies && add.deletion_vector.is_none() && facts.is_some();
            objects.push(if candidate {
                Some(stores.file(&canonical(&add.path)?, u64::try_from(add.size).ok())?)
            } else {
                None
            });
        }
        let cancel = request.cancel.clone();
        let sources = map_all(objects, move |object: Option<StoreObject>| {
            cancel.check()?;
            object.as_ref().map(SpliceSource::open).transpose()
        })?;
        let splice = |((add, facts), source): ((Add, Option<FileStatistics>), _)| {
            let splice = self.splice(&add, facts, source);
            (add, splice)
        };
        Ok(files
            .into_iter()
            .zip(facts)
            .zip(sources)
            .map(splice)
            .collect())
    }

    fn splice(
        &self,
        add: &Add,
        facts: Option<FileStatistics>,
        source: Option<SpliceSource>,
    ) -> Option<SplicedFile> {
        let ((rows, statistics), source) = facts.zip(source)?;
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
