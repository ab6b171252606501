//! Files of a table for the commands of this module: folders, hidden names, sets of paths.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashSet};

use crate::dv::DvPath;
use crate::error::{Result, ResultExt};
use crate::exec::{CancellationToken, map_all};
use crate::parse::FileBatch;
use crate::store::{FolderListing, Store};

/// The file of a row's deletion vector, if it has one: as `TableStores::file` expects it.
///
/// # Errors
/// [`Error::Corrupt`] for an invalid descriptor.
pub(super) fn deletion_vector_path(batch: &FileBatch, row: usize) -> Result<Option<DvPath>> {
    let vector = batch.deletion_vector(row);
    vector.map_or(Ok(None), |vector| {
        vector.path().at_file(batch.path.value(row))
    })
}

/// Walks through the folders below the root, several at a time: `see` is called with each folder
/// and its entries, and returns whether to descend. Objects are listed if `take` selects their
/// path. Returns the number of folders.
///
/// # Errors
/// Errors of the store and of `see`.
pub(super) fn walk_folders(
    store: &Arc<dyn Store>,
    take: impl Fn(&str) -> bool + Send + Sync + 'static,
    mut see: impl FnMut(&str, FolderListing) -> Result<Vec<String>>,
    cancel: &CancellationToken,
) -> Result<u64> {
    let take = Arc::new(take);
    let (mut folders, mut level) = (0, vec![String::new()]);
    while !level.is_empty() {
        cancel.check()?;
        folders += level.len() as u64;
        let (store, take) = (Arc::clone(store), Arc::clone(&take));
        let listed = map_all(std::mem::take(&mut level), move |folder| {
            let listed = store.list_folder(&folder, &|name| {
                if folder.is_empty() {
                    take(name)
                } else {
                    take(&format!("{folder}/{name}"))
                }
            })?;
            Ok((folder, listed))
        })?;
        for (folder, listed) in listed {
            level.extend(see(&folder, listed)?);
        }
    }
    Ok(folders)
}

/// The last part of a path.
pub(super) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The folder of a table's Iceberg metadata.
const ICEBERG_FOLDER: &str = "metadata";

/// Whether the folder has metadata of an Iceberg table.
///
/// # Errors
/// Errors of the store.
pub(super) fn has_iceberg_metadata(store: &Arc<dyn Store>) -> Result<bool> {
    if !store.owns(ICEBERG_FOLDER) {
        return Ok(false);
    }
    let listed = store.list_folder(ICEBERG_FOLDER, &|name| name.ends_with(".metadata.json"))?;
    Ok(!listed.objects.is_empty())
}

/// Hidden paths, which commands ignore: those whose name begins with a dot or an underscore, except
/// for folders of change data, of indexes and of partition columns with such names; and Iceberg's
/// metadata, if the table has them.
#[derive(Debug, Clone)]
pub(super) struct HiddenPaths {
    partitions: Vec<String>,
    has_iceberg: bool,
}

impl HiddenPaths {
    /// `partitions` are all names of partition columns.
    pub(super) fn new<'a>(partitions: impl Iterator<Item = &'a str>, has_iceberg: bool) -> Self {
        Self {
            partitions: partitions.map(|name| format!("{name}=")).collect(),
            has_iceberg,
        }
    }

    /// Whether a file or folder is hidden, given that its folder is not.
    pub(super) fn is_hidden(&self, path: &str) -> bool {
        (self.has_iceberg && path == ICEBERG_FOLDER) || self.is_hidden_name(file_name(path))
    }

    /// Whether a file or one of its folders is hidden.
    pub(super) fn is_within_hidden(&self, path: &str) -> bool {
        path.match_indices('/')
            .map(|(end, _)| &path[..end])
            .chain(std::iter::once(path))
            .any(|part| self.is_hidden(part))
    }

    fn is_hidden_name(&self, name: &str) -> bool {
        // A file of deletion vectors that a killed writer left unfinished.
        let unfinished = name.starts_with(".deletion_vector_") && name.ends_with(".tmp");
        name.starts_with(['.', '_'])
            && !unfinished
            && name != "_change_data"
            && !name.starts_with("_delta_index")
            && !self
                .partitions
                .iter()
                .any(|column| name.starts_with(column.as_str()))
    }
}

/// A set of paths, stored as hashes. Two paths with the same hash both count as members: if the set
/// lists files to keep, a collision keeps one file too many.
#[derive(Debug, Clone, Default)]
pub(super) struct PathHashSet {
    seed: DefaultHashBuilder,
    paths: HashSet<u64>,
    names: HashSet<u64>,
}

impl PathHashSet {
    pub(super) fn insert(&mut self, path: &str) {
        self.paths.insert(self.seed.hash_one(path));
    }

    /// Adds every file with this name, in whatever folder.
    pub(super) fn insert_name(&mut self, name: &str) {
        self.names.insert(self.seed.hash_one(name));
    }

    pub(super) fn contains(&self, path: &str) -> bool {
        self.paths.contains(&self.seed.hash_one(path))
            || (!self.names.is_empty() && self.names.contains(&self.seed.hash_one(file_name(path))))
    }
}
