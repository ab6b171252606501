//! Batches of the input to data files: slices prepared on the pool, encoded in order.

use super::cast::ColumnPositions;
use super::cast_values::CastRule;
use super::constraints::{WriteRules, advance};
use super::files::PartitionedFileWriter;
use super::partition::{PartitionRegistry, log_path};
use super::prepared_rows::{PreparedRows, SplicedFile};
use super::stats::StatsPlan;
use super::write_request::{WriteOutput, WriteRequest, WrittenDataFile};
use super::{cast, constraints, file_schema};
use crate::error::{Error, Result};
use crate::exec::{ItemSource, ordered_prefetch, parallelism};
use crate::pq::encode::file_encoder::array_bytes;
use crate::pq::{
    ColumnMappingMode, DataFileFormat, ParallelFileWriter, ParquetCompression, WriterProperties,
};
use crate::protocol::schema::{DataType, StructField, StructType};
use crate::store::Store;
use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::SchemaRef;
use arrow_select::take::take;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The state that is shared by the jobs of one write.
pub(super) struct WritePlan {
    pub(super) schema: StructType,
    pub(super) rules: WriteRules,
    pub(super) cast_rule: CastRule,
    /// Indexes of the partition columns in the schema.
    pub(super) partition_places: Vec<usize>,
    /// Indexes of the columns that files contain.
    pub(super) written_places: Vec<usize>,
    pub(super) partitions: PartitionRegistry,
}

/// The maximum number of rows in a slice.
const SLICE_ROWS: usize = 64 << 10;

/// The same if slices are split by partition, so that each partition gets enough rows.
const SPLIT_ROWS: usize = 256 << 10;

/// The approximate size of a slice in bytes.
const SLICE_BYTES: u64 = 16 << 20;

/// Writes `source` as data files of the table in `store`.
///
/// Must be called on a thread of its own, never on the pool: it reads the source and waits for the
/// encoders.
///
/// # Errors
/// [`Error::SchemaMismatch`] and [`Error::Invalid`] for data that does not fit,
/// [`Error::ConstraintViolated`], [`Error::Storage`], [`Error::Cancelled`], errors of the source.
/// After an error the files are deleted, as far as possible.
pub fn write(
    store: &Arc<dyn Store>,
    request: &WriteRequest,
    source: impl Iterator<Item = Result<RecordBatch>> + Send + 'static,
) -> Result<WriteOutput> {
    write_with(store, request, Vec::new(), source)
}

/// The same, and copies the row groups of files into those of their partitions, before other rows.
///
/// # Errors
/// As [`write`]; errors of reading the files.
pub fn write_with(
    store: &Arc<dyn Store>,
    request: &WriteRequest,
    splices: Vec<SplicedFile>,
    source: impl Iterator<Item = Result<RecordBatch>> + Send + 'static,
) -> Result<WriteOutput> {
    let plan = Arc::new(WritePlan::new(request)?);
    let slices = InputSlices::new(request, &plan, source);
    let marks = Arc::clone(&slices.high_water_marks);
    let mut prepared = ordered_prefetch(slices, parallelism() + 1, 1, &request.cancel);
    let first = prepared.next().transpose()?;
    let (stats, format, codec) = format(
        request,
        &plan,
        first.as_ref().map_or(&[], |first| &first.columns),
    )?;
    let encoders = ParallelFileWriter::start(
        format,
        Arc::clone(store),
        &request.cancel,
        &request.progress,
    )?;
    let mut files = PartitionedFileWriter::new(request, encoders, codec, &plan.partitions);
    let mut rows = 0;
    for splice in splices {
        request.cancel.check()?;
        rows += splice.source.num_rows();
        files.splice(&splice, |_| Ok(BTreeMap::new()))?;
    }
    for prepared in first.map(Ok).into_iter().chain(prepared) {
        let prepared = prepared?;
        rows += prepared.rows as u64;
        files.take(prepared)?;
    }
    let identities = marks.lock().map(|marks| marks.clone()).unwrap_or_default();
    finish(
        files,
        &plan,
        request,
        &stats,
        rows,
        identities.into_iter().collect(),
    )
}

/// The prepared rows, in their order.
pub(super) fn prepared<I: Iterator<Item = Result<RecordBatch>> + Send + 'static>(
    request: &WriteRequest,
    source: I,
) -> Result<impl Iterator<Item = Result<PreparedRows>> + use<I>> {
    let plan = Arc::new(WritePlan::new(request)?);
    Ok(ordered_prefetch(
        InputSlices::new(request, &plan, source),
        parallelism() + 1,
        1,
        &request.cancel,
    ))
}

/// Waits for the files and returns their values for the log.
pub(super) fn finish(
    files: PartitionedFileWriter<'_>,
    plan: &WritePlan,
    request: &WriteRequest,
    stats: &StatsPlan,
    rows: u64,
    identities: Vec<(String, i64)>,
) -> Result<WriteOutput> {
    let encoded = files.finish()?;
    let names: Vec<String> = plan.partition_names(request.mapping);
    let new_file = |(file, partition): (crate::pq::EncodedFile, usize)| WrittenDataFile {
        path: log_path(&file.meta.path),
        partition_values: names
            .iter()
            .cloned()
            .zip(plan.partitions.values(partition).iter().cloned())
            .collect(),
        size: file.meta.size,
        modified_ms: file.meta.modified_ms,
        num_records: file.rows,
        stats: (!request.change_data).then(|| stats.json(file.rows, &file.facts)),
    };
    Ok(WriteOutput {
        files: encoded.into_iter().map(new_file).collect(),
        rows,
        identities,
    })
}

/// Whether a Parquet format version has data pages of version 2.
fn is_version_2(version: &str) -> bool {
    version
        .split('.')
        .next()
        .and_then(|major| major.trim().parse::<u32>().ok())
        .is_some_and(|major| major >= 2)
}

/// The encoding of files and their statistics; `sample` are the columns of the first rows.
pub(super) fn format(
    request: &WriteRequest,
    plan: &WritePlan,
    sample: &[ArrayRef],
) -> Result<(StatsPlan, DataFileFormat, ParquetCompression)> {
    let written = StructType {
        fields: plan
            .written_places
            .iter()
            .filter_map(|n| plan.schema.fields.get(*n).cloned())
            .collect(),
    };
    let file_schema = file_schema::file_schema(&written, request.mapping, &request.hidden)?;
    let mut stats = StatsPlan::new(
        &written,
        &[request.partition_columns.as_slice(), &request.hidden].concat(),
        &request.properties,
        |field| file_schema::file_name(field, request.mapping).to_owned(),
    )?;
    if request.change_data {
        stats = stats.without_statistics();
    }
    let compression = request.writer_properties.compression.as_deref().or(request
        .properties
        .get("delta.parquet.compression.codec")
        .map(String::as_str));
    let codec = ParquetCompression::parse(compression.unwrap_or("zstd"))?;
    let named = |name: &str| file_schema::find(&plan.schema, name, request.mapping);
    let has_v2_pages = request
        .properties
        .get("delta.parquet.format.version")
        .is_some_and(|version| is_version_2(version));
    let properties = WriterProperties {
        has_v2_pages,
        ..request.writer_properties.clone()
    };
    let format = DataFileFormat::new(
        file_schema,
        &properties,
        codec,
        &stats.requested_statistics(),
        named,
        stats.text_bytes(),
        sample,
    )?;
    Ok((stats, format, codec))
}

impl WritePlan {
    pub(super) fn new(request: &WriteRequest) -> Result<Self> {
        let schema = request.schema.clone();
        file_schema::check_written(&schema)?;
        let partition_places = request
            .partition_columns
            .iter()
            .map(|name| {
                let place = schema.fields.position(name);
                place.ok_or_else(|| {
                    Error::invalid("a partition column is not in the schema").at_column(name)
                })
            })
            .collect::<Result<Vec<usize>>>()?;
        let unfit = |field: &&StructField| {
            !field.data_type.is_primitive() || field.data_type == DataType::Void
        };
        if let Some(field) = partition_places
            .iter()
            .filter_map(|n| schema.fields.get(*n))
            .find(unfit)
        {
            return Err(Error::invalid(format!(
                "a column of type {} cannot be a partition column",
                field.data_type
            ))
            .at_column(&field.name));
        }
        let written_places: Vec<usize> = (0..schema.fields.len())
            .filter(|n| request.materialize_partition_columns || !partition_places.contains(n))
            .filter(|n| {
                schema
                    .fields
                    .get(*n)
                    .is_some_and(|field| field.data_type != DataType::Void)
            })
            .collect();
        Ok(Self {
            schema,
            rules: request.rules.clone(),
            cast_rule: request.cast_rule,
            partition_places,
            written_places,
            partitions: PartitionRegistry::default(),
        })
    }

    /// The names of the partition columns in the log and in directories.
    pub(super) fn partition_names(&self, mapping: ColumnMappingMode) -> Vec<String> {
        self.partition_places
            .iter()
            .filter_map(|n| self.schema.fields.get(*n))
            .map(|field| file_schema::file_name(field, mapping).to_owned())
            .collect()
    }

    /// Casts, completes, checks and splits the rows of a slice.
    pub(super) fn prepare(
        &self,
        batch: &RecordBatch,
        columns: &ColumnPositions,
        starts: &[Option<i64>],
        first_row: u64,
    ) -> Result<PreparedRows> {
        let rows = batch.num_rows();
        let rule = self.cast_rule.at_row(first_row);
        let arrays = columns.cast(batch, &self.schema, rule)?;
        let arrays = self.rules.apply(
            &self.schema,
            &self.partition_places,
            arrays,
            rows,
            starts,
            first_row,
        )?;
        let keys: Vec<_> = self
            .partition_places
            .iter()
            .filter_map(|n| Some((self.schema.fields.get(*n)?, Arc::clone(arrays.get(*n)?))))
            .collect();
        let (order, runs) = self.partitions.split(&keys, rows)?;
        let columns = self
            .written_places
            .iter()
            .filter_map(|n| Some((arrays.get(*n)?, self.schema.fields.get(*n)?)))
            .map(|(array, field)| column(array, &field.data_type, order.as_ref()))
            .collect::<Result<Vec<_>>>()?;
        Ok(PreparedRows {
            columns,
            runs,
            rows,
        })
    }
}

/// A column as files contain it, with the rows in `order`.
fn column(array: &ArrayRef, data_type: &DataType, order: Option<&UInt32Array>) -> Result<ArrayRef> {
    let array = cast::without_void_fields(array, data_type)?;
    match order {
        None => Ok(array),
        // Rows are buffered with others of their partition: views would keep the whole input alive.
        Some(order) => cast::without_views(&take(&array, order, None)?),
    }
}

/// The slices of the input, each with the job that prepares it. Read by the thread of the write,
/// one after the other.
struct InputSlices<I> {
    source: I,
    plan: Arc<WritePlan>,
    identities: Vec<constraints::IdentityColumn>,
    /// The schema of the last batch and the positions of the table's columns in it.
    columns: Option<(SchemaRef, Arc<ColumnPositions>)>,
    /// The rest of a batch.
    waiting: Option<RecordBatch>,
    row: u64,
    slice_rows: usize,
    slice_bytes: u64,
    /// Last generated values of identity columns.
    high_water_marks: Arc<std::sync::Mutex<BTreeMap<String, i64>>>,
}

/// The positions of the columns, first values of identity columns, the slice, the position of its
/// first row.
type InputSlice = (Arc<ColumnPositions>, Vec<Option<i64>>, RecordBatch, u64);

impl<I: Iterator<Item = Result<RecordBatch>>> InputSlices<I> {
    fn new(request: &WriteRequest, plan: &Arc<WritePlan>, source: I) -> Self {
        Self {
            source,
            plan: Arc::clone(plan),
            identities: plan.rules.identities.clone(),
            columns: None,
            waiting: None,
            row: 0,
            slice_rows: if request.partition_columns.is_empty() {
                SLICE_ROWS
            } else {
                SPLIT_ROWS
            },
            slice_bytes: SLICE_BYTES.min(request.target_file_size / 8).max(1),
            high_water_marks: Arc::default(),
        }
    }

    fn slice(&mut self) -> Result<Option<InputSlice>> {
        let batch = loop {
            match self
                .waiting
                .take()
                .map_or_else(|| self.source.next().transpose(), |batch| Ok(Some(batch)))?
            {
                Some(batch) if batch.num_rows() == 0 => {
                    self.columns(&batch)?;
                }
                Some(batch) => break batch,
                None => return Ok(None),
            }
        };
        let columns = self.columns(&batch)?;
        let mut length = batch.num_rows().min(self.slice_rows);
        // Estimated from the first rows: slices have about the requested size.
        let bytes: u64 = batch
            .slice(0, length)
            .columns()
            .iter()
            .map(array_bytes)
            .sum();
        if bytes > self.slice_bytes {
            let fits = u128::from(self.slice_bytes) * length as u128 / u128::from(bytes);
            length = usize::try_from(fits).unwrap_or(length).clamp(1, length);
        }
        let rest = batch.num_rows() - length;
        if rest > 0 {
            self.waiting = Some(batch.slice(length, rest));
        }
        let mut starts = Vec::with_capacity(self.identities.len());
        for identity in &mut self.identities {
            let place = self.plan.schema.fields.position(&identity.column);
            let given = place
                .and_then(|n| columns.positions.get(n))
                .is_some_and(Option::is_some);
            if given {
                starts.push(None);
                continue;
            }
            starts.push(Some(advance(identity, length)?));
            if let Ok(mut marks) = self.high_water_marks.lock() {
                marks.insert(
                    identity.column.clone(),
                    identity.next.wrapping_sub(identity.step),
                );
            }
        }
        let first_row = self.row;
        self.row += length as u64;
        Ok(Some((columns, starts, batch.slice(0, length), first_row)))
    }

    fn columns(&mut self, batch: &RecordBatch) -> Result<Arc<ColumnPositions>> {
        let schema = batch.schema();
        if let Some((known, columns)) = &self.columns
            && (Arc::ptr_eq(known, &schema) || *known == schema)
        {
            return Ok(Arc::clone(columns));
        }
        let columns = ColumnPositions::find(&schema, &self.plan.schema)?;
        self.plan.rules.prepare(&self.plan.schema, &columns)?;
        let columns = Arc::new(columns);
        self.columns = Some((schema, Arc::clone(&columns)));
        Ok(columns)
    }
}

impl<I: Iterator<Item = Result<RecordBatch>>> Iterator for InputSlices<I> {
    type Item = ItemSource<PreparedRows>;

    fn next(&mut self) -> Option<Self::Item> {
        let work: Box<dyn FnOnce() -> Result<PreparedRows> + Send> = match self.slice() {
            Ok(None) => return None,
            Ok(Some((columns, starts, batch, first_row))) => {
                let plan = Arc::clone(&self.plan);
                Box::new(move || plan.prepare(&batch, &columns, &starts, first_row))
            }
            Err(error) => Box::new(move || Err(error)),
        };
        Some(Box::new(std::iter::once_with(work)))
    }
}
