//! Files that a command writes: their actions, and their deletion unless a version references them.

use std::sync::Arc;

use crate::error::Result;
use crate::exec::CancellationToken;
use crate::file_writer::{WrittenDataFile, engine_files};
use crate::ops::rewrite::iceberg_compatibility;
use crate::protocol::action::Metadata;
use crate::protocol::commit_line::Add;
use crate::protocol::data_path;
use crate::store::Store;

/// The `add` action of a file that was just written for a table with these metadata.
pub(in crate::ops) fn add_action(file: WrittenDataFile, metadata: &Metadata) -> Add {
    Add {
        path: file.path,
        partition_values: file.partition_values.into_iter().collect(),
        size: i64::try_from(file.size).unwrap_or(i64::MAX),
        modification_time: file.modified_ms,
        data_change: true,
        stats: file.stats,
        tags: iceberg_compatibility::tags(metadata),
        ..Add::default()
    }
}

/// Files that were written and that no version references yet: deleted on drop, as far as possible.
#[derive(Debug)]
pub(in crate::ops) struct UncommittedFiles {
    store: Arc<dyn Store>,
    paths: Vec<String>,
}

impl UncommittedFiles {
    pub(in crate::ops) fn new(store: &Arc<dyn Store>) -> Self {
        Self {
            store: Arc::clone(store),
            paths: Vec::new(),
        }
    }

    /// Adds files by their paths in the log.
    pub(in crate::ops) fn add<'a>(&mut self, files: impl IntoIterator<Item = &'a WrittenDataFile>) {
        self.paths.extend(files.into_iter().filter_map(|file| {
            data_path::canonical(&file.path)
                .ok()
                .map(std::borrow::Cow::into_owned)
        }));
    }

    /// Adds a file by its path relative to the table root.
    pub(in crate::ops) fn add_path(&mut self, path: &str) {
        self.paths.push(path.to_owned());
    }

    /// Adds the files of another set.
    pub(in crate::ops) fn append(&mut self, mut other: Self) {
        self.paths.append(&mut other.paths);
    }

    /// Runs `commit`, after which a version may reference the files: they are deleted only after an
    /// error that proves that none does. They are also kept if the commit panics.
    pub(in crate::ops) fn commit<T>(mut self, commit: impl FnOnce() -> Result<T>) -> Result<T> {
        let paths = std::mem::take(&mut self.paths);
        let done = commit();
        if done.as_ref().is_err_and(|error| !error.may_be_committed()) {
            self.paths = paths;
        }
        done
    }
}

impl Drop for UncommittedFiles {
    fn drop(&mut self) {
        if !self.paths.is_empty() {
            // Files that cannot be deleted are left to vacuum.
            let _ = self.store.delete_batch(&self.paths);
        }
    }
}

/// All files in folders of another engine, to be deleted unless a version references them.
pub(in crate::ops) fn uncommitted_in_folders<'a>(
    store: &Arc<dyn Store>,
    folders: impl Iterator<Item = &'a str>,
    cancel: &CancellationToken,
) -> Result<UncommittedFiles> {
    let mut orphans = UncommittedFiles::new(store);
    for folder in folders {
        for object in engine_files::list_recursively(store, folder, cancel)? {
            orphans.add_path(&object.path);
        }
    }
    Ok(orphans)
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::error::{ConflictKind, Error};
    use crate::store::{ObjectRole, StorageOptions, open};

    #[test]
    fn files_that_a_version_may_name_are_never_deleted() {
        let store = open("memory://orphans/t", &StorageOptions::new()).unwrap();
        let is_kept = |commit: &dyn Fn() -> Result<()>| {
            store
                .put_if_absent("f", "1".into(), ObjectRole::Essential)
                .unwrap();
            let mut orphans = UncommittedFiles::new(&store);
            orphans.add_path("f");
            let _ = catch_unwind(AssertUnwindSafe(|| orphans.commit(commit)));
            let kept = store.head("f").is_ok();
            assert!(store.delete_batch(&["f".to_owned()]).unwrap().is_empty());
            kept
        };
        assert!(is_kept(&|| Ok(())));
        assert!(is_kept(&|| Err(Error::commit_unknown("lost"))));
        assert!(is_kept(&|| Err(Error::internal("a defect"))));
        assert!(is_kept(&|| panic!("a defect")));
        assert!(!is_kept(&|| Err(Error::commit_failed(
            ConflictKind::ConcurrentAppend,
            "other rows"
        ))));
        assert!(!is_kept(&|| Err(Error::storage("access denied", false))));
        assert!(!is_kept(&|| Err(Error::Cancelled)));
    }
}
