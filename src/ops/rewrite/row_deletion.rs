//! Deleting rows by deletion vectors: from positions by file to vectors in shared files, and the
//! actions that replace the old vectors.
//!
//! New positions are merged with those of a file's existing vector; a file without remaining rows
//! is removed. Statistics are kept, except that `tightBounds` becomes false: the bounds still hold,
//! but rows with these values may have been deleted.
//!
//! Protocol: "Deletion Vectors", "Writer Requirement for Deletion Vectors", "Per-file Statistics".
//! Cost: one request per file with existing vectors, one for every 2 MB of new vectors.

use std::collections::{BTreeMap, HashMap};

use serde_json::value::RawValue;

use crate::dv::{self, DeletionVectorDescriptor, DeletionVectorFileWriter, RoaringBitmapArray};
use crate::error::{Error, Result, ResultExt};
use crate::exec::{CancellationToken, map_all, now_ms};
use crate::ops::rewrite::uncommitted_files::UncommittedFiles;
use crate::pq::read_footer;
use crate::protocol::commit_line::{Action, Add};
use crate::protocol::data_path;
use crate::scan::vector_file;
use crate::snapshot::Snapshot;
use crate::store::{StoreObject, make_unique};

/// The size in bytes at which the next file of vectors is begun, as in delta-spark.
const PACKED: usize = 2 << 20;

/// The changes of files and deletion vectors.
#[derive(Debug, Default)]
pub(in crate::ops) struct DeletionVectorUpdate {
    /// Adds and removes of files with their vectors.
    pub actions: Vec<Action>,
    /// The number of new vectors.
    pub added: u64,
    /// The number of vectors that are no longer used.
    pub removed: u64,
    /// Those of them that were replaced by another vector.
    pub updated: u64,
    /// The removed files, and their bytes.
    pub removed_files: u64,
    pub removed_bytes: i64,
}

impl DeletionVectorUpdate {
    /// Files that are removed as a whole, with their vectors: their rows were moved to other files,
    /// or deleted.
    pub(in crate::ops) fn of_removed_files(files: &[Add]) -> Self {
        let now = now_ms();
        Self {
            removed: files
                .iter()
                .filter(|add| add.deletion_vector.is_some())
                .count() as u64,
            removed_files: files.len() as u64,
            removed_bytes: files.iter().map(|add| add.size).sum(),
            actions: files
                .iter()
                .map(|add| Action::Remove(add.to_remove(now, true)))
                .collect(),
            ..Self::default()
        }
    }
}

/// Deletes rows of files, given by the files' paths.
pub(in crate::ops) fn write_deletion_vectors(
    snapshot: &Snapshot,
    files: Vec<Add>,
    rows: &HashMap<String, RoaringBitmapArray>,
    orphans: &mut UncommittedFiles,
    cancel: &CancellationToken,
) -> Result<DeletionVectorUpdate> {
    let known: Vec<DeletionVectorDescriptor> = files
        .iter()
        .filter_map(|add| add.deletion_vector.clone())
        .collect();
    let mut known = dv::load_all(&known, |path| vector_file(snapshot.stores(), path))?.into_iter();
    let deleted_rows = files.iter().map(|add| {
        let new = rows.get(&add.path).map_or(0, RoaringBitmapArray::len);
        (add, deleted_row_count(add).saturating_add(new))
    });
    let row_counts = row_counts_beyond(snapshot, deleted_rows)?;
    let (mut out, now) = (DeletionVectorUpdate::default(), now_ms());
    let mut packer = DeletionVectorPacker::default();
    for (add, row_count) in files.into_iter().zip(row_counts) {
        cancel.check()?;
        let new = rows
            .get(&add.path)
            .ok_or_else(|| Error::internal("a file to mark has no rows"))?;
        let before = if add.deletion_vector.is_some() {
            known.next()
        } else {
            None
        };
        let positions = before
            .as_ref()
            .map_or_else(|| new.clone(), |before| before.positions().union(new));
        out.actions.push(Action::Remove(add.to_remove(now, true)));
        if positions.len() >= row_count {
            out.removed_files += 1;
            out.removed_bytes += add.size;
            out.removed += u64::from(before.is_some());
            continue;
        }
        out.added += 1;
        out.removed += u64::from(before.is_some());
        out.updated += u64::from(before.is_some());
        let stats = Some(with_wide_bounds(add.stats.as_deref(), row_count).at_file(&add.path)?);
        let vector = packer.push(snapshot, &positions, orphans)?;
        out.actions.push(Action::Add(Add {
            stats,
            deletion_vector: Some(vector),
            data_change: true,
            ..add
        }));
    }
    packer.close_file(snapshot, orphans)?;
    Ok(out)
}

/// Rows of a file, including deleted ones; read from its footer if its statistics lack the number.
pub(in crate::ops) fn physical_row_count(snapshot: &Snapshot, add: &Add) -> Result<u64> {
    match recorded_row_count(add) {
        Some(rows) => Ok(rows),
        None => Ok(read_footer(&data_file(snapshot, add)?)?.num_rows()),
    }
}

/// Rows of files, including deleted ones, given with the number of rows that are to be deleted.
/// Where the statistics say that none remain, the footer decides: another writer's `numRecords` may
/// be too low, and the remaining rows would be lost.
pub(in crate::ops) fn row_counts_beyond<'a>(
    snapshot: &Snapshot,
    files: impl Iterator<Item = (&'a Add, u64)>,
) -> Result<Vec<u64>> {
    let (mut row_counts, mut unsure, mut footers) = (Vec::new(), Vec::new(), Vec::new());
    for (place, (add, deleted)) in files.enumerate() {
        let recorded = recorded_row_count(add).filter(|rows| *rows > deleted);
        if recorded.is_none() {
            unsure.push(place);
            footers.push(data_file(snapshot, add)?);
        }
        row_counts.push(recorded.unwrap_or_default());
    }
    let read = map_all(footers, |file| Ok(read_footer(&file)?.num_rows()))?;
    for (place, rows) in unsure.into_iter().zip(read) {
        if let Some(row_count) = row_counts.get_mut(place) {
            *row_count = rows;
        }
    }
    Ok(row_counts)
}

/// The number of rows that a file's deletion vector deletes.
pub(in crate::ops) fn deleted_row_count(add: &Add) -> u64 {
    add.deletion_vector
        .as_ref()
        .map_or(0, |vector| u64::try_from(vector.cardinality).unwrap_or(0))
}

fn recorded_row_count(add: &Add) -> Option<u64> {
    add.num_records().and_then(|rows| u64::try_from(rows).ok())
}

fn data_file(snapshot: &Snapshot, add: &Add) -> Result<StoreObject> {
    let path = data_path::canonical(&add.path)?;
    snapshot.stores().file(&path, u64::try_from(add.size).ok())
}

/// The statistics of a file from which rows are deleted. Values are kept exactly as written.
fn with_wide_bounds(stats: Option<&str>, rows: u64) -> Result<String> {
    with_json_members(
        stats,
        &[
            ("numRecords", rows.to_string()),
            ("tightBounds", "false".to_owned()),
        ],
    )
}

/// Statistics with these members set, each given as JSON.
pub(in crate::ops) fn with_json_members(
    stats: Option<&str>,
    members: &[(&str, String)],
) -> Result<String> {
    let mut parts: BTreeMap<String, Box<RawValue>> = match stats {
        // Invalid statistics are treated as missing ones.
        Some(text) => serde_json::from_str(text).unwrap_or_default(),
        None => BTreeMap::new(),
    };
    for (name, text) in members {
        let raw = RawValue::from_string(text.clone())
            .map_err(|e| Error::internal(format!("no JSON: {e}")))?;
        parts.insert((*name).to_owned(), raw);
    }
    serde_json::to_string(&parts)
        .map_err(|e| Error::internal(format!("statistics are not JSON: {e}")))
}

/// The file of vectors that is being filled.
#[derive(Default)]
struct DeletionVectorPacker {
    open: Option<(dv::DeletionVectorFile, DeletionVectorFileWriter)>,
}

impl DeletionVectorPacker {
    fn push(
        &mut self,
        snapshot: &Snapshot,
        positions: &RoaringBitmapArray,
        orphans: &mut UncommittedFiles,
    ) -> Result<DeletionVectorDescriptor> {
        if self
            .open
            .as_ref()
            .is_some_and(|(_, writer)| writer.len() >= PACKED)
        {
            self.close_file(snapshot, orphans)?;
        }
        let (file, writer) = match &mut self.open {
            Some(open) => open,
            none => none.insert((
                dv::DeletionVectorFile::new(&crate::exec::uuid())?,
                DeletionVectorFileWriter::default(),
            )),
        };
        let written = writer.push(positions)?;
        Ok(DeletionVectorDescriptor {
            storage_type: "u".to_owned(),
            path_or_inline_dv: file.in_log.clone(),
            offset: Some(written.offset),
            size_in_bytes: written.size_in_bytes,
            cardinality: written.cardinality,
        })
    }

    fn close_file(&mut self, snapshot: &Snapshot, orphans: &mut UncommittedFiles) -> Result<()> {
        let Some((file, writer)) = self.open.take() else {
            return Ok(());
        };
        orphans.add_path(&file.path);
        make_unique(
            snapshot.stores().root().as_ref(),
            &file.path,
            &writer.finish(),
        )
        .at_file(&file.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_keep_every_digit() {
        let stats = r#"{"numRecords":3,"minValues":{"d":12345678901234567890.123456789,"tightBounds":1},"tightBounds":true}"#;
        let loose = with_wide_bounds(Some(stats), 3).unwrap();
        assert_eq!(
            loose,
            r#"{"minValues":{"d":12345678901234567890.123456789,"tightBounds":1},"numRecords":3,"tightBounds":false}"#
        );
        assert_eq!(
            with_wide_bounds(None, 7).unwrap(),
            r#"{"numRecords":7,"tightBounds":false}"#
        );
        assert_eq!(
            with_wide_bounds(Some("NaN"), 7).unwrap(),
            r#"{"numRecords":7,"tightBounds":false}"#
        );
    }
}
