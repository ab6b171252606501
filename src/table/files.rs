//! Files that a command writes: as actions, and deleted again where no version comes to name them.

use std::sync::Arc;

use super::iceberg;
use crate::protocol::action::Metadata;
use crate::protocol::commit_line::Add;
use crate::protocol::data_path;
use crate::store::Store;
use crate::write::NewFile;

/// The action that adds a file which was just written for a table of these metadata.
pub(super) fn add_new(file: NewFile, metadata: &Metadata) -> Add {
    Add {
        path: file.path,
        partition_values: file.partition_values.into_iter().collect(),
        size: i64::try_from(file.size).unwrap_or(i64::MAX),
        modification_time: file.modified_ms,
        data_change: true,
        stats: file.stats,
        tags: iceberg::tags(metadata),
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
