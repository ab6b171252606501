//! A snapshot's live files as actions, with everything that the actions which end them repeat; files that a failure orphans.

use std::sync::Arc;

use arrow_array::{Array, StringViewArray};

use crate::checkpoint;
use crate::error::Result;
use crate::exec::Cancel;
use crate::parse::checkpoint::FileKind;
use crate::parse::{FileBatch, StatsColumn, Wanted};
use crate::protocol::commit_line::{Add, DeletionVector};
use crate::protocol::data_path;
use crate::snapshot::Snapshot;
use crate::store::Store;
use crate::write::NewFile;

/// The live files that `choose` takes, batch by batch.
pub(super) fn live(snapshot: &Snapshot, more: Wanted, cancel: &Cancel, choose: impl Fn(&FileBatch) -> Result<Vec<usize>>) -> Result<Vec<Add>> {
    let names: Vec<String> = snapshot.partition_fields().iter().map(|field| snapshot.physical_name(field).to_owned()).collect();
    let wanted = Wanted { partition: names.clone(), stats: true, stats_text: true, tags: true, time: true, row_ids: true, clustering: true, ..more };
    snapshot.with_segment(|segment| {
        let mut out = Vec::new();
        for batch in snapshot.files_in(segment, FileKind::Adds, wanted.clone(), cancel)? {
            let batch = batch?;
            cancel.check()?;
            let rows = choose(&batch)?;
            // Of statistics that a checkpoint has as a struct, those that were wanted.
            let parsed = matches!(batch.stats, Some(StatsColumn::Parsed(_))) && !rows.is_empty();
            let parsed = parsed.then(|| checkpoint::stats_text(batch.stats.as_ref(), batch.len()));
            out.extend(rows.into_iter().map(|row| add_of(&batch, parsed.as_ref(), row, &names)));
        }
        Ok(out)
    })
}

fn add_of(batch: &FileBatch, parsed: Option<&StringViewArray>, row: usize, names: &[String]) -> Add {
    let text = |array: &StringViewArray| array.is_valid(row).then(|| array.value(row).to_owned());
    let vector = batch.dv.as_ref().filter(|dv| dv.present.value(row)).map(|dv| DeletionVector {
        storage_type: dv.storage_type.value(row).to_owned(),
        path_or_inline_dv: dv.path_or_inline.value(row).to_owned(),
        offset: dv.offset.is_valid(row).then(|| dv.offset.value(row)),
        size_in_bytes: dv.size_in_bytes.value(row),
        cardinality: dv.cardinality.value(row),
    });
    let number = |array: &Option<arrow_array::Int64Array>| array.as_ref().filter(|array| array.is_valid(row)).map(|array| array.value(row));
    Add {
        path: batch.path.value(row).to_owned(),
        partition_values: names.iter().zip(&batch.partition).map(|(name, values)| (name.clone(), text(values))).collect(),
        size: if batch.size.is_valid(row) { batch.size.value(row) } else { 0 },
        modification_time: number(&batch.time).unwrap_or(0),
        data_change: true,
        stats: match &batch.stats {
            Some(StatsColumn::Json(stats)) => text(stats),
            Some(StatsColumn::EscapedJson(stats)) => text(stats).and_then(|escaped| serde_json::from_str(&format!("\"{escaped}\"")).ok()),
            Some(StatsColumn::Parsed(_)) => parsed.and_then(text),
            None => None,
        },
        tags: batch.tags.as_ref().and_then(text).and_then(|tags| serde_json::from_str(&tags).ok()),
        deletion_vector: vector,
        base_row_id: number(&batch.base_row_id),
        default_row_commit_version: number(&batch.default_row_commit_version),
        clustering_provider: batch.clustering.as_ref().and_then(text),
    }
}

/// The action that adds a file which was just written.
pub(super) fn add_new(file: NewFile) -> Add {
    Add {
        path: file.path,
        partition_values: file.partition_values.into_iter().collect(),
        size: i64::try_from(file.size).unwrap_or(i64::MAX),
        modification_time: file.modified_ms,
        data_change: true,
        stats: file.stats,
        ..Add::default()
    }
}

/// Files that were written and that no version names yet: deleted when they are dropped, as far as that can be had.
#[derive(Debug)]
pub(super) struct Orphans {
    store: Arc<dyn Store>,
    paths: Vec<String>,
}

impl Orphans {
    pub(super) fn new(store: &Arc<dyn Store>) -> Self {
        Self { store: Arc::clone(store), paths: Vec::new() }
    }

    /// Files of ours by their paths in the log.
    pub(super) fn add<'a>(&mut self, files: impl IntoIterator<Item = &'a NewFile>) {
        self.paths.extend(files.into_iter().filter_map(|file| data_path::canonical(&file.path).ok().map(std::borrow::Cow::into_owned)));
    }

    /// A file of ours by its path below the table's root.
    pub(super) fn add_path(&mut self, path: &str) {
        self.paths.push(path.to_owned());
    }

    /// A version may name them: they stay.
    pub(super) fn keep(mut self) {
        self.paths.clear();
    }
}

impl Drop for Orphans {
    fn drop(&mut self) {
        if !self.paths.is_empty() {
            // What cannot be deleted is what vacuum is for.
            let _ = self.store.delete_batch(&self.paths);
        }
    }
}
