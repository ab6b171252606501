//! Live files of a snapshot as complete actions, with all fields of the log: for removing them, or
//! for adding them again.
//!
//! Cost: one pass over the actions of live files.

use arrow_array::{Array, Int64Array, StringViewArray};

use crate::checkpoint;
use crate::error::{Error, Result, ResultExt};
use crate::exec::CancellationToken;
use crate::parse::checkpoint::FileActionKind;
use crate::parse::{FileActionProjection, FileBatch};
use crate::protocol::commit_line::Add;
use crate::snapshot::Snapshot;

/// All columns of `add` actions, with the partition columns in the table's order.
#[must_use]
pub fn all_add_columns(snapshot: &Snapshot) -> FileActionProjection {
    checkpoint::add_columns(snapshot)
}

/// The rows of a batch as actions with `dataChange`. `partition` are the physical names of the
/// partition columns, in the order of the request.
///
/// # Errors
/// [`Error::Corrupt`] for invalid tags.
pub fn batch_to_adds(batch: &FileBatch, partition: &[String]) -> Result<Vec<Add>> {
    let stats = checkpoint::stats_json(batch.stats.as_ref(), batch.len());
    let int = |column: &Option<Int64Array>, row: usize| {
        column
            .as_ref()
            .filter(|a| a.is_valid(row))
            .map(|a| a.value(row))
    };
    let text = |column: &StringViewArray, row: usize| {
        column.is_valid(row).then(|| column.value(row).to_owned())
    };
    (0..batch.len())
        .map(|row| {
            let path = batch.path.value(row).to_owned();
            let tags = batch
                .tags
                .as_ref()
                .and_then(|tags| text(tags, row))
                .map(|text| serde_json::from_str(&text))
                .transpose();
            let tags = tags
                .map_err(|e| Error::corrupt(format!("the `tags` of a file are malformed: {e}")))
                .at_file(&path)?;
            Ok(Add {
                path,
                partition_values: partition
                    .iter()
                    .zip(&batch.partition)
                    .map(|(name, column)| (name.clone(), text(column, row)))
                    .collect(),
                size: if batch.size.is_valid(row) {
                    batch.size.value(row)
                } else {
                    0
                },
                modification_time: int(&batch.time, row).unwrap_or(0),
                data_change: true,
                stats: text(&stats, row),
                tags,
                deletion_vector: batch.deletion_vector(row),
                base_row_id: int(&batch.base_row_id, row),
                default_row_commit_version: int(&batch.default_row_commit_version, row),
                clustering_provider: batch
                    .clustering
                    .as_ref()
                    .and_then(|column| text(column, row)),
            })
        })
        .collect()
}

/// The live files that `choose` selects, batch by batch.
///
/// # Errors
/// As [`batch_to_adds`]; errors of `choose`; [`Error::Cancelled`].
pub fn matching_live_adds(
    snapshot: &Snapshot,
    cancel: &CancellationToken,
    choose: impl Fn(&FileBatch) -> Result<arrow_array::BooleanArray>,
) -> Result<Vec<Add>> {
    let wanted = all_add_columns(snapshot);
    let partition = wanted.partition.clone();
    snapshot.with_segment(|segment| {
        let mut out = Vec::new();
        for batch in snapshot.files_in(segment, FileActionKind::Adds, wanted.clone(), cancel)? {
            let batch = batch?;
            cancel.check()?;
            out.extend(batch_to_adds(&batch.filter(&choose(&batch)?)?, &partition)?);
        }
        Ok(out)
    })
}

/// All live files.
///
/// # Errors
/// As [`matching_live_adds`].
pub fn all_live_adds(snapshot: &Snapshot, cancel: &CancellationToken) -> Result<Vec<Add>> {
    matching_live_adds(snapshot, cancel, |batch| {
        Ok(crate::parse::mask(vec![true; batch.len()]))
    })
}
