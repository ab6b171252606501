//! Deletion vectors as selection vectors, for readers of their own.

use std::sync::Arc;

use arrow_array::builder::{BooleanBufferBuilder, StringBuilder};
use arrow_array::{Array, BooleanArray, ListArray, RecordBatch};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType as Arrow, Field, Schema};

use super::Batches;
use super::plan::{PlanBatch, wanted};
use super::read::vector_file;
use crate::dv;
use crate::error::{Error, Result};
use crate::exec::{Cancel, IN_FLIGHT, Progress, Source, lanes, parallelism};
use crate::parse::checkpoint::FileKind;
use crate::snapshot::Snapshot;

/// Vectors loaded together, so that those of one file are read at once.
const TOGETHER: usize = 32;

/// A file's own word on its number of rows is believed up to here: what lies beyond its last deleted row is only courtesy.
const MOST_ROWS: i64 = 1 << 28;

/// Streams (`filepath` utf8, `selection_vector` list<bool>: true keeps the row, rows beyond its end are kept) for every
/// file that has a deletion vector. It is as long as the file where the log tells how many rows that has.
///
/// # Errors
/// [`Error::Corrupt`] for a damaged vector.
pub fn deletion_vectors(snapshot: &Snapshot, cancel: &Cancel) -> Result<Batches> {
    let item = Arc::new(Field::new("item", Arrow::Boolean, false));
    let schema = Arc::new(Schema::new(vec![Field::new("filepath", Arrow::Utf8, false), Field::new("selection_vector", Arrow::List(Arc::clone(&item)), false)]));
    let leaves = super::Leaves::default();
    let with_vectors = snapshot.finished_files(FileKind::Adds, wanted(snapshot, &leaves, true), cancel, {
        let snapshot = snapshot.clone();
        move |files| {
            if files.dv.is_none() {
                return Ok(Vec::new());
            }
            let batch = PlanBatch::new(&snapshot, files, &leaves, true)?;
            let records = |row: usize| {
                let stats = batch.stats.as_ref().filter(|stats| stats.num_records.is_valid(row))?;
                u64::try_from(stats.num_records.value(row).min(MOST_ROWS)).ok()
            };
            let found = |row: usize| Some((batch.files.path.value(row).to_owned(), batch.files.deletion_vector(row)?, records(row).unwrap_or(0)));
            let rows = (0..batch.files.len()).filter_map(found);
            Ok(rows.collect())
        }
    })?;
    let found = with_vectors.collect::<Result<Vec<_>>>()?.concat();
    let progress = Progress::default();
    progress.expect(found.len() as u64);
    let chunks: Vec<Vec<_>> = found.chunks(TOGETHER).map(<[_]>::to_vec).collect();
    let (context, out, done) = (snapshot.clone(), Arc::clone(&schema), progress.clone());
    let jobs = chunks.into_iter().map(move |chunk| {
        let (snapshot, schema, item, done) = (context.clone(), Arc::clone(&out), Arc::clone(&item), done.clone());
        Box::new(std::iter::once_with(move || {
            let descriptors: Vec<_> = chunk.iter().map(|(_, descriptor, _)| descriptor.clone()).collect();
            let vectors = dv::load_all(&descriptors, |path| vector_file(snapshot.stores(), path))?;
            let root = snapshot.stores().root().url();
            let mut paths = StringBuilder::new();
            let mut bits = BooleanBufferBuilder::new(0);
            let mut offsets: Vec<i32> = vec![0];
            for ((path, _, records), vector) in chunk.iter().zip(vectors) {
                paths.append_value(uri(root, path)?);
                let least = vector.positions().last().map_or(0, |last| last + 1);
                let fits = |length: u64| i32::try_from(bits.len() as u64 + length).ok().map(|end| (length, end));
                let (length, end) = fits(least.max(*records))
                    .or_else(|| fits(least))
                    .ok_or_else(|| Error::corrupt_data(format!("the deletion vector of `{path}` reaches to row {least}, too far for a selection vector")))?;
                match vector.keep(0..length) {
                    Some(keep) => bits.append_buffer(&keep),
                    None => bits.append_n(usize::try_from(length).unwrap_or_default(), true),
                }
                offsets.push(end);
            }
            done.advance(chunk.len() as u64);
            let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
            let lists = ListArray::try_new(item, offsets, Arc::new(BooleanArray::new(bits.finish(), None)), None)?;
            Ok(RecordBatch::try_new(schema, vec![Arc::new(paths.finish()), Arc::new(lists)])?)
        })) as Source<RecordBatch>
    });
    Ok(Batches { schema, batches: Box::new(lanes(jobs, IN_FLIGHT.max(parallelism() + 1), 1, cancel)), progress })
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
    Ok(match url::Url::parse(root).ok().filter(|url| url.scheme() == "file").and_then(|url| url.to_file_path().ok()) {
        Some(folder) => folder.join(canonical.as_ref()).display().to_string(),
        None => format!("{root}{canonical}"),
    })
}
