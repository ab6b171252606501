//! Files of a table for the commands of this module: as paths relative to the table root.

use std::borrow::Cow;
use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashSet};
use percent_encoding::percent_decode_str;

use crate::dv::DvPath;
use crate::error::{Result, ResultExt};
use crate::exec::{CancellationToken, map_all};
use crate::parse::FileBatch;
use crate::protocol::data_path;
use crate::store::{FolderListing, Store, TablePath, TableStores};

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

/// Resolves paths of the log to paths relative to the table root.
#[derive(Debug, Clone)]
pub(super) struct TablePathResolver {
    stores: Arc<TableStores>,
    /// The root's decoded URL; on a local disk also with symbolic links resolved.
    roots: Vec<String>,
}

impl TablePathResolver {
    pub(super) fn new(stores: &Arc<TableStores>) -> Self {
        let url = percent_decoded(stores.root().url());
        let real = url
            .strip_prefix("file://")
            .and_then(|path| std::fs::canonicalize(path).ok());
        let real = real.and_then(|path| path.to_str().map(|path| format!("file://{path}/")));
        let roots = std::iter::once(url).chain(real).collect();
        Self {
            stores: Arc::clone(stores),
            roots,
        }
    }

    /// The relative path of a data file, given its path in the log; `None` for a file outside of
    /// the table root.
    pub(super) fn resolve_log_path<'a>(&self, path: &'a str) -> Option<Cow<'a, str>> {
        self.resolve_canonical(data_path::canonical(path).ok()?)
    }

    fn resolve_canonical<'a>(&self, canonical: Cow<'a, str>) -> Option<Cow<'a, str>> {
        if is_simple_relative_path(&canonical) {
            return Some(canonical);
        }
        self.resolve_in_stores(&canonical)
            .filter(|place| TablePath::is_inside(place))
            .map(Cow::Owned)
    }

    fn resolve_in_stores(&self, canonical: &str) -> Option<String> {
        let file = self.stores.file(canonical, None).ok()?;
        if Arc::ptr_eq(&file.store, self.stores.root()) {
            return Some(file.path);
        }
        let url = format!("{}{}", percent_decoded(file.store.url()), file.path);
        if let Some(place) = self.strip_root(&url) {
            return Some(place);
        }
        // An absolute path may lead here through a symbolic link.
        let real = std::fs::canonicalize(url.strip_prefix("file://")?).ok()?;
        self.strip_root(&format!("file://{}", real.to_str()?))
    }

    fn strip_root(&self, url: &str) -> Option<String> {
        self.roots
            .iter()
            .find_map(|root| url.strip_prefix(root.as_str()))
            .map(ToOwned::to_owned)
    }

    /// The relative path of a deletion vector's file; its prefix may contain any path.
    pub(super) fn resolve_deletion_vector<'a>(&self, path: &'a DvPath) -> Option<Cow<'a, str>> {
        match path {
            DvPath::InTable(path) => self.resolve_canonical(Cow::Borrowed(path)),
            DvPath::Given(path) => self.resolve_log_path(path),
        }
    }
}

fn percent_decoded(url: &str) -> String {
    percent_decode_str(url).decode_utf8_lossy().into_owned()
}

/// Whether a canonical path is relative and has no parts such as `..` to resolve. (`//` is part of
/// a URL.)
fn is_simple_relative_path(path: &str) -> bool {
    !path.starts_with(['/', '.'])
        && !path.contains("/.")
        && !path.contains("//")
        && TablePath::is_inside(path)
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

/// Hidden names, which commands ignore: those that begin with a dot or an underscore, except for
/// folders of change data, of indexes and of partition columns with such names.
#[derive(Debug, Clone)]
pub(super) struct HiddenNames {
    partitions: Vec<String>,
}

impl HiddenNames {
    /// `partitions` are all names of partition columns.
    pub(super) fn new<'a>(partitions: impl Iterator<Item = &'a str>) -> Self {
        Self {
            partitions: partitions.map(|name| format!("{name}=")).collect(),
        }
    }

    pub(super) fn is_hidden(&self, name: &str) -> bool {
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
    hashes: HashSet<u64>,
}

impl PathHashSet {
    pub(super) fn insert(&mut self, place: &str) {
        self.hashes.insert(self.seed.hash_one(place));
    }

    pub(super) fn contains(&self, place: &str) -> bool {
        self.hashes.contains(&self.seed.hash_one(place))
    }
}
