//! Deletion vectors as selection vectors or as bitmaps, for external readers.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::builder::{BooleanBufferBuilder, StringBuilder};
use arrow_array::{Array, BooleanArray, Int64Array, ListArray, RecordBatch};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType as Arrow, Field, Schema, SchemaRef};

use super::BatchStream;
use super::plan::{PlanBatch, plan, projected_columns};
use super::read::vector_file;
use crate::dv::{self, RoaringBitmapArray};
use crate::error::{Error, Result};
use crate::exec::{
    CancellationToken, IN_FLIGHT, ItemSource, ProgressCounter, map_all, ordered_prefetch,
    parallelism,
};
use crate::parse::checkpoint::FileActionKind;
use crate::pq::names_have_ids;
use crate::snapshot::Snapshot;

/// Vectors loaded together, so that those of one file are read at once.
const TOGETHER: usize = 32;

/// The largest row count from the log that is used: rows after the last deleted row need not be in
/// the selection vector.
const MOST_ROWS: i64 = 1 << 28;

/// The largest bitmap: a longer one would take more than half a gigabyte.
const MOST_BITS: u64 = 1 << 32;

/// Streams (`path` utf8 as in the log, `words` list<int64>: a bit for each deleted row, the lowest
/// first, up to the last that is deleted) for every file that has a deletion vector; only for those
/// at the given paths of the log, if any are given.
///
/// # Errors
/// [`Error::Corrupt`] for a damaged vector.
pub fn deletion_bitmaps(
    snapshot: &Snapshot,
    paths: Option<BTreeSet<String>>,
    cancel: &CancellationToken,
) -> Result<BatchStream> {
    let item = Arc::new(Field::new("item", Arrow::Int64, false));
    let schema = Arc::new(Schema::new(vec![
        Field::new("path", Arrow::Utf8, false),
        Field::new("words", Arrow::List(Arc::clone(&item)), false),
    ]));
    let found = with_vectors(snapshot, paths, cancel)?;
    Ok(by_chunk(
        snapshot,
        &schema,
        found,
        cancel,
        move |_, schema, chunk, vectors| {
            let mut paths = StringBuilder::new();
            let mut words: Vec<i64> = Vec::new();
            let mut offsets: Vec<i32> = vec![0];
            for ((path, _, _), vector) in chunk.iter().zip(vectors) {
                paths.append_value(path);
                push_bitmap(&mut words, vector.positions(), path)?;
                offsets.push(i32::try_from(words.len()).map_err(|_| {
                    Error::corrupt_data(format!("the deletion vector of `{path}` is too large"))
                })?);
            }
            let lists = ListArray::try_new(
                Arc::clone(&item),
                OffsetBuffer::new(ScalarBuffer::from(offsets)),
                Arc::new(Int64Array::from(words)),
                None,
            )?;
            Ok(RecordBatch::try_new(
                schema,
                vec![Arc::new(paths.finish()), Arc::new(lists)],
            )?)
        },
    ))
}

/// Appends a bitmap of positions: a bit for each, the lowest first, up to the last one.
///
/// # Errors
/// [`Error::Corrupt`] if the last position is too large for a bitmap.
pub(super) fn push_bitmap(
    words: &mut Vec<i64>,
    positions: &RoaringBitmapArray,
    path: &str,
) -> Result<()> {
    let start = words.len();
    let last = positions.last().unwrap_or(0);
    if last >= MOST_BITS {
        return Err(Error::corrupt_data(format!(
            "the deletion vector of `{path}` reaches to row {last}, too far for a bitmap"
        )));
    }
    for position in positions.iter() {
        let word = start + usize::try_from(position / 64).unwrap_or(usize::MAX);
        if word >= words.len() {
            words.resize(word + 1, 0);
        }
        if let Some(word) = words.get_mut(word) {
            *word |= 1 << (position % 64);
        }
    }
    Ok(())
}

/// Appends a bitmap of all `rows` of a file but those at the given positions.
///
/// # Errors
/// [`Error::Corrupt`] if the file has no such row, or too many rows for a bitmap.
pub(super) fn push_inverted_bitmap(
    words: &mut Vec<i64>,
    positions: &RoaringBitmapArray,
    rows: u64,
    path: &str,
) -> Result<()> {
    let last = positions.last().unwrap_or(0);
    if last >= rows || rows > MOST_BITS {
        return Err(Error::corrupt_data(format!(
            "the deletion vector of `{path}` deletes row {last}, but the file has {rows} rows"
        )));
    }
    let start = words.len();
    words.resize(start + usize::try_from(rows.div_ceil(64)).unwrap_or(0), -1);
    for position in positions.iter() {
        let word = start + usize::try_from(position / 64).unwrap_or(usize::MAX);
        if let Some(word) = words.get_mut(word) {
            *word &= !(1 << (position % 64));
        }
    }
    Ok(())
}

/// A file with a vector: its path in the log, its vector, its number of rows if the log has it.
type WithVector = (String, dv::DeletionVectorDescriptor, u64);

/// Streams (`filepath` utf8, `selection_vector` list<bool>: true keeps the row, rows beyond its end
/// are kept) for every file that has a deletion vector. It is as long as the file where the log has
/// the file's row count.
///
/// # Errors
/// [`Error::Corrupt`] for a damaged vector.
pub fn deletion_vectors(snapshot: &Snapshot, cancel: &CancellationToken) -> Result<BatchStream> {
    let item = Arc::new(Field::new("item", Arrow::Boolean, false));
    let schema = Arc::new(Schema::new(vec![
        Field::new("filepath", Arrow::Utf8, false),
        Field::new("selection_vector", Arrow::List(Arc::clone(&item)), false),
    ]));
    let found = with_vectors(snapshot, None, cancel)?;
    Ok(by_chunk(
        snapshot,
        &schema,
        found,
        cancel,
        move |snapshot, schema, chunk, vectors| {
            let root = snapshot.stores().root().url();
            let mut paths = StringBuilder::new();
            let mut bits = BooleanBufferBuilder::new(0);
            let mut offsets: Vec<i32> = vec![0];
            for ((path, _, records), vector) in chunk.iter().zip(vectors) {
                paths.append_value(uri(root, path)?);
                let least = vector.positions().last().map_or(0, |last| last + 1);
                let fits = |length: u64| {
                    i32::try_from(bits.len() as u64 + length)
                        .ok()
                        .map(|end| (length, end))
                };
                let (length, end) = fits(least.max(*records))
                .or_else(|| fits(least))
                .ok_or_else(|| Error::corrupt_data(format!("the deletion vector of `{path}` reaches to row {least}, too far for a selection vector")))?;
                match vector.live_row_mask(0..length) {
                    Some(keep) => bits.append_buffer(&keep),
                    None => bits.append_n(usize::try_from(length).unwrap_or_default(), true),
                }
                offsets.push(end);
            }
            let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
            let lists = ListArray::try_new(
                Arc::clone(&item),
                offsets,
                Arc::new(BooleanArray::new(bits.finish(), None)),
                None,
            )?;
            Ok(RecordBatch::try_new(
                schema,
                vec![Arc::new(paths.finish()), Arc::new(lists)],
            )?)
        },
    ))
}

/// The live files that have a deletion vector; only those at the given paths of the log, if any are
/// given.
fn with_vectors(
    snapshot: &Snapshot,
    paths: Option<BTreeSet<String>>,
    cancel: &CancellationToken,
) -> Result<Vec<WithVector>> {
    let leaves = super::LeafColumns::default();
    let found = snapshot.finished_files(
        FileActionKind::Adds,
        projected_columns(snapshot, &leaves, true),
        cancel,
        {
            let snapshot = snapshot.clone();
            move |files| {
                if files.dv.is_none() {
                    return Ok(Vec::new());
                }
                let batch = PlanBatch::new(&snapshot, files, &leaves, true)?;
                let records = |row: usize| {
                    let stats = batch
                        .stats
                        .as_ref()
                        .filter(|stats| stats.num_records.is_valid(row))?;
                    u64::try_from(stats.num_records.value(row).min(MOST_ROWS)).ok()
                };
                let found = |row: usize| {
                    Some((
                        batch.files.path.value(row).to_owned(),
                        batch.files.deletion_vector(row)?,
                        records(row).unwrap_or(0),
                    ))
                };
                let is_wanted = |row: &usize| {
                    paths
                        .as_ref()
                        .is_none_or(|paths| paths.contains(batch.files.path.value(*row)))
                };
                let rows = (0..batch.files.len()).filter(is_wanted).filter_map(found);
                Ok(rows.collect())
            }
        },
    )?;
    Ok(found.collect::<Result<Vec<_>>>()?.concat())
}

/// Loads vectors on the pool, for several files at a time, and makes one batch for each chunk.
fn by_chunk(
    snapshot: &Snapshot,
    schema: &SchemaRef,
    found: Vec<WithVector>,
    cancel: &CancellationToken,
    batch: impl Fn(
        &Snapshot,
        SchemaRef,
        &[WithVector],
        Vec<Arc<dv::DeletionVector>>,
    ) -> Result<RecordBatch>
    + Send
    + Sync
    + 'static,
) -> BatchStream {
    let progress = ProgressCounter::default();
    progress.expect(found.len() as u64);
    let chunks: Vec<Vec<_>> = found.chunks(TOGETHER).map(<[_]>::to_vec).collect();
    let (context, out, done, batch) = (
        snapshot.clone(),
        Arc::clone(schema),
        progress.clone(),
        Arc::new(batch),
    );
    let jobs = chunks.into_iter().map(move |chunk| {
        let (snapshot, schema, done, batch) = (
            context.clone(),
            Arc::clone(&out),
            done.clone(),
            Arc::clone(&batch),
        );
        Box::new(std::iter::once_with(move || {
            let descriptors: Vec<_> = chunk
                .iter()
                .map(|(_, descriptor, _)| descriptor.clone())
                .collect();
            let vectors = dv::load_all(&descriptors, |path| vector_file(snapshot.stores(), path))?;
            let made = batch(&snapshot, schema, &chunk, vectors);
            done.advance(chunk.len() as u64);
            made
        })) as ItemSource<RecordBatch>
    });
    BatchStream {
        schema: Arc::clone(schema),
        batches: Box::new(ordered_prefetch(
            jobs,
            IN_FLIGHT.max(parallelism() + 1),
            1,
            cancel,
        )),
        progress,
    }
}

/// A path of the log, for readers that open files themselves: refused where it leads out of the
/// table's stores.
///
/// # Errors
/// As the core's own reader when it opens the file.
pub fn checked<'a>(snapshot: &Snapshot, path: &'a str) -> Result<&'a str> {
    snapshot
        .stores()
        .file(&crate::protocol::data_path::canonical(path)?, None)?;
    Ok(path)
}

/// Whether in every live file the columns' physical names and field ids identify the same columns,
/// so that a reader that only supports names finds the same data as column mapping mode `id`. Costs
/// one footer per file.
///
/// # Errors
/// Errors of reading the log and the files.
pub fn ids_agree(snapshot: &Snapshot, cancel: &CancellationToken) -> Result<bool> {
    let plan = plan(snapshot, None, cancel)?;
    let partition = &snapshot.metadata().partition_columns;
    let fields: Arc<Vec<_>> = Arc::new(
        snapshot
            .schema()
            .fields
            .iter()
            .filter(|field| !partition.contains(&field.name))
            .cloned()
            .collect(),
    );
    let mut files = Vec::new();
    for (batch, _) in &plan.batches {
        for row in 0..batch.files.len() {
            let size = batch
                .files
                .size
                .is_valid(row)
                .then(|| u64::try_from(batch.files.size.value(row)).ok())
                .flatten();
            files.push(snapshot.stores().file(
                &crate::protocol::data_path::canonical(batch.files.path.value(row))?,
                size,
            )?);
        }
    }
    let stop = cancel.clone();
    let agree = map_all(files, move |file| {
        stop.check()?;
        names_have_ids(&file, &fields)
    })?;
    Ok(agree.into_iter().all(|agrees| agrees))
}

/// The URL, or for a local file the path, of a path in the log.
///
/// # Errors
/// [`Error::Corrupt`] for a path that does not decode.
pub fn uri(root: &str, path: &str) -> Result<String> {
    let canonical = crate::protocol::data_path::canonical(path)?;
    if canonical.starts_with('/') || canonical.contains("://") {
        return Ok(canonical.into_owned());
    }
    Ok(
        match url::Url::parse(root)
            .ok()
            .filter(|url| url.scheme() == "file")
            .and_then(|url| url.to_file_path().ok())
        {
            Some(folder) => folder.join(canonical.as_ref()).display().to_string(),
            None => format!("{root}{canonical}"),
        },
    )
}
