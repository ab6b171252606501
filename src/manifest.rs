//! Symlink manifests, with which readers that do not support Delta (Presto, Athena) find the live
//! files of a table.
//!
//! `_symlink_format_manifest/[column=value/ ...]manifest` holds one URL per line. [`generate`]
//! writes the manifests of all partitions; [`update`] writes those of the partitions that a commit
//! changed if `delta.compatibility.symlinkFormatManifest.enabled` is set. Manifests of partitions
//! without files are deleted after the others are written. Readers of manifests apply neither
//! deletion vectors nor column mapping, so tables with either are refused.
//!
//! Cost: one file per partition; `generate` lists each folder of manifests once, `update` lists the
//! log once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_array::Array;
use serde::Serialize;

use crate::error::{Error, Result, ResultExt};
use crate::exec::{CancellationToken, map_all};
use crate::file_writer::partition::directory;
use crate::parse::FileActionProjection;
use crate::parse::checkpoint::FileActionKind;
use crate::protocol::action::Metadata;
use crate::protocol::commit_line::PartitionValues;
use crate::protocol::data_path;
use crate::protocol::features::{self, ColumnMapping};
use crate::protocol::table::SYMLINK_MANIFESTS;
use crate::snapshot::Snapshot;
use crate::store::{TableStores, replace};

const FOLDER: &str = "_symlink_format_manifest";
/// The maximum number of times that one commit writes manifests while other writers commit.
const ROUNDS: u32 = 20;

/// Manifests that were written and deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct GeneratedManifests {
    /// Manifests that were written, relative to the table root.
    pub manifests: Vec<String>,
    /// Manifests that were deleted.
    pub deleted: Vec<String>,
}

/// Whether each commit to the table updates its manifests.
#[must_use]
pub fn is_enabled(metadata: &Metadata) -> bool {
    metadata.flag(SYMLINK_MANIFESTS)
}

/// Writes the manifests of a version.
///
/// # Errors
/// [`Error::Unsupported`] for a table that readers of manifests would read incorrectly,
/// [`Error::Storage`].
pub fn generate(snapshot: &Snapshot, cancel: &CancellationToken) -> Result<GeneratedManifests> {
    let manifests = manifests(snapshot, None, cancel)?;
    let written: Vec<String> = manifests.keys().cloned().collect();
    let deleted: Vec<String> = existing_manifests(snapshot)?
        .into_iter()
        .filter(|path| written.binary_search(path).is_err())
        .collect();
    write(snapshot, manifests, cancel)?;
    delete(snapshot, &deleted, cancel)?;
    Ok(GeneratedManifests {
        manifests: written,
        deleted,
    })
}

/// Updates the manifests of the partitions that a commit changed (`None`: of all partitions) to the
/// newest version.
///
/// If several writers update manifests concurrently, the last one to finish may have read an older
/// version than another one. Therefore each writer checks for a newer version after writing, and
/// writes again if there is one.
///
/// # Errors
/// As [`generate`]; [`Error::Storage`] if other writers commit faster than manifests can be
/// written.
pub fn update(
    committed: &Snapshot,
    changed: Option<&BTreeSet<PartitionValues>>,
    cancel: &CancellationToken,
) -> Result<()> {
    let mut snapshot = committed.at(None)?;
    for _ in 0..ROUNDS {
        if !is_enabled(snapshot.metadata()) {
            return Ok(());
        }
        let columns = &snapshot.metadata().partition_columns;
        match changed.filter(|_| *columns == committed.metadata().partition_columns) {
            Some(changed) => update_partitions(&snapshot, changed, cancel)?,
            None => _ = generate(&snapshot, cancel)?,
        }
        let newest = snapshot.at(None)?;
        if newest.version() == snapshot.version() {
            return Ok(());
        }
        snapshot = newest;
    }
    Err(Error::storage(
        format!("another version was committed each of the {ROUNDS} times that they were written"),
        true,
    ))
}

fn update_partitions(
    snapshot: &Snapshot,
    changed: &BTreeSet<PartitionValues>,
    cancel: &CancellationToken,
) -> Result<()> {
    let columns = &snapshot.metadata().partition_columns;
    let paths: BTreeSet<String> = changed
        .iter()
        .map(|values| {
            let values = columns
                .iter()
                .map(|name| values.get(name).cloned().flatten())
                .collect();
            manifest_path(columns, &values)
        })
        .collect();
    if paths.is_empty() {
        return Ok(());
    }
    let manifests = manifests(snapshot, Some(&paths), cancel)?;
    let deleted: Vec<String> = paths
        .into_iter()
        .filter(|path| !manifests.contains_key(path))
        .collect();
    write(snapshot, manifests, cancel)?;
    delete(snapshot, &deleted, cancel)
}

/// The content of the manifests by path: all of them, or those in `wanted` that have files.
fn manifests(
    snapshot: &Snapshot,
    wanted: Option<&BTreeSet<String>>,
    cancel: &CancellationToken,
) -> Result<BTreeMap<String, String>> {
    let root = snapshot.stores().root();
    features::check_writable(snapshot.protocol())
        .at_file(root.url())
        .at_version(snapshot.version())?;
    if snapshot.mapping() != ColumnMapping::None {
        return Err(Error::unsupported_feature(
            "columnMapping",
            "a manifest cannot represent column mapping, which the table uses",
        ));
    }
    let columns = snapshot.metadata().partition_columns.clone();
    let mut manifests: BTreeMap<String, String> = BTreeMap::new();
    if columns.is_empty() {
        manifests.insert(format!("{FOLDER}/manifest"), String::new());
    }
    let request = FileActionProjection {
        partition: columns.clone(),
        ..FileActionProjection::default()
    };
    for batch in snapshot.files(FileActionKind::Adds, request, cancel)? {
        let batch = batch?;
        for row in 0..batch.len() {
            let values = batch
                .partition
                .iter()
                .map(|column| column.is_valid(row).then(|| column.value(row).to_owned()))
                .collect();
            let path = manifest_path(&columns, &values);
            if wanted.is_some_and(|wanted| !wanted.contains(&path)) {
                continue;
            }
            if batch.dv.is_some() {
                return Err(Error::unsupported_feature(
                    "deletionVectors",
                    "a manifest cannot represent deleted rows: files of the table have \
                     deletion vectors; rewrite these files first (`optimize.purge`)",
                ));
            }
            let text = manifests.entry(path).or_default();
            text.push_str(&manifest_url(snapshot.stores(), batch.path.value(row))?);
            text.push('\n');
        }
    }
    Ok(manifests)
}

fn manifest_path(columns: &[String], values: &Vec<Option<String>>) -> String {
    format!("{FOLDER}/{}manifest", directory(columns, values))
}

fn write(
    snapshot: &Snapshot,
    manifests: BTreeMap<String, String>,
    cancel: &CancellationToken,
) -> Result<()> {
    let (store, stop) = (Arc::clone(snapshot.stores().root()), cancel.clone());
    cancel.progress().expect(manifests.len() as u64);
    map_all(manifests, move |(path, text)| {
        stop.check()?;
        replace(store.as_ref(), &path, text.as_bytes())?;
        stop.progress().advance(1);
        Ok(())
    })?;
    Ok(())
}

fn delete(snapshot: &Snapshot, paths: &[String], cancel: &CancellationToken) -> Result<()> {
    cancel.check()?;
    match snapshot
        .stores()
        .root()
        .delete_batch(paths)?
        .into_iter()
        .next()
    {
        Some((_, error)) => Err(error),
        None => Ok(()),
    }
}

/// A file's URL, unescaped, as readers of manifests expect it.
///
/// # Errors
/// As the scan for a path that it refuses to open: readers of manifests open the URL without that
/// check. [`Error::Unsupported`] for a path with a line end, which would become a line of its own.
fn manifest_url(stores: &TableStores, path: &str) -> Result<String> {
    let canonical = data_path::canonical(path)?;
    stores.file(&canonical, None)?;
    if canonical.contains(['\n', '\r']) {
        return Err(Error::unsupported(
            "a manifest has one file per line, and the path of this file contains a line end; rewrite the file (`optimize.compact`)",
        )
        .at_file(path));
    }
    Ok(match canonical.strip_prefix('/') {
        Some(absolute) => format!("file:///{absolute}"),
        None if canonical.contains("://") => canonical.into_owned(),
        None => format!(
            "{}{canonical}",
            percent_encoding::percent_decode_str(stores.root().url()).decode_utf8_lossy()
        ),
    })
}

/// The manifests that exist.
fn existing_manifests(snapshot: &Snapshot) -> Result<BTreeSet<String>> {
    let (mut out, mut level) = (BTreeSet::new(), vec![FOLDER.to_owned()]);
    while !level.is_empty() {
        level.retain(|folder| snapshot.stores().root().owns(folder));
        let store = Arc::clone(snapshot.stores().root());
        for folder in map_all(std::mem::take(&mut level), move |folder| {
            store.list_folder(&folder, &|name| name == "manifest")
        })? {
            out.extend(folder.objects.into_iter().map(|object| object.path));
            level.extend(folder.folders);
        }
    }
    Ok(out)
}
