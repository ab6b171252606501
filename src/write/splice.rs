//! Copying files of a table into new files as encoded row groups.
//!
//! This is possible if a file equals what a write of its rows would produce: the same columns in
//! the same encoding and compression, only live rows, and statistics in the log from which those of
//! the new file can be derived. Row groups must be large, since otherwise the new file would
//! contain many small ones.
//!
//! Cost: a footer per file.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};

use super::data_files::{WritePlan, finish, format, prepared};
use super::files::PartitionedFileWriter;
use super::prepared_rows::{PreparedRows, SplicedFile};
use super::write_request::{WriteOutput, WriteRequest};
use crate::error::{Error, Result};
use crate::pq::{ParallelFileWriter, ParquetCompression, SpliceSource, WriterProperties};
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
        let usual = self.writer_properties == WriterProperties::default()
            && self.hidden.is_empty()
            && self.rules.is_empty()
            && !self.change_data;
        let large = |add: &Add| {
            usual
                && add.deletion_vector.is_none()
                && u64::try_from(add.size).is_ok_and(|size| size >= LARGE)
        };
        let (large, mut others): (Vec<Add>, Vec<Add>) = files.into_iter().partition(large);
        if large.is_empty() {
            return Ok((Vec::new(), others));
        }
        let plan = WritePlan::new(self)?;
        let (stats, format, _) = format(self, &plan, &[])?;
        // Files must have the codec that the table specifies; without one, they keep theirs.
        let codec = self
            .properties
            .get("delta.parquet.compression.codec")
            .map(|name| ParquetCompression::parse(name))
            .transpose()?;
        let names = plan.partition_names(self.mapping);
        let facts = stats.parse_statistics(
            &large
                .iter()
                .map(|add| add.stats.as_deref())
                .collect::<Vec<_>>(),
        )?;
        let mut out = Vec::new();
        for (add, facts) in large.into_iter().zip(facts) {
            self.cancel.check()?;
            let Some((rows, facts)) = facts else {
                others.push(add);
                continue;
            };
            let file: StoreObject =
                stores.file(&canonical(&add.path)?, u64::try_from(add.size).ok())?;
            let source = SpliceSource::open(&file)?;
            let groups = source.num_groups() as u64;
            let fits = format.can_splice(&source)
                && groups > 0
                && u64::try_from(add.size).unwrap_or(0) / groups >= LARGE
                && source.num_rows() == rows
                && codec.is_none_or(|codec| source.is_compressed_with(codec));
            if fits {
                let value = |name: &String| {
                    add.partition_values
                        .iter()
                        .find(|(known, _)| *known == name)
                        .and_then(|(_, value)| value.clone())
                };
                let partition = names
                    .iter()
                    .map(|name| value(name).filter(|text| !text.is_empty()))
                    .collect();
                out.push(SplicedFile {
                    path: add.path,
                    source,
                    statistics: facts,
                    partition,
                });
            } else {
                others.push(add);
            }
        }
        Ok((out, others))
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
