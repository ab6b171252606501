//! GENERATE: what is alive, for readers without Delta: a symlink manifest for each partition, as Presto and Athena read it.
//!
//! `_symlink_format_manifest/[column=value/ ...]manifest` holds a URL a line. Manifests of partitions that are gone go too,
//! after the others are written. A reader of manifests sees no deletion vectors and no logical names, so tables with either
//! are refused.
//!
//! Cost: one file a partition, one listing of each folder of manifests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_array::Array;
use serde::Serialize;

use crate::error::{Error, Result, ResultExt};
use crate::exec::{Cancel, map_all};
use crate::parse::Wanted;
use crate::parse::checkpoint::FileKind;
use crate::protocol::data_path;
use crate::protocol::features::{self, ColumnMapping};
use crate::snapshot::Snapshot;
use crate::store::replace;
use crate::write::partition::directory;

const FOLDER: &str = "_symlink_format_manifest";

/// What was generated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Generated {
    /// Manifests that were written, below the table's root.
    pub manifests: Vec<String>,
    /// Manifests that were deleted.
    pub deleted: Vec<String>,
}

/// Writes the manifests of a version.
///
/// # Errors
/// [`Error::Unsupported`] for a table that readers of manifests would misread, [`Error::Storage`].
pub fn generate(snapshot: &Snapshot, cancel: &Cancel) -> Result<Generated> {
    let root = snapshot.stores().root();
    features::check_writable(snapshot.protocol()).at_file(root.url()).at_version(snapshot.version())?;
    if snapshot.mapping() != ColumnMapping::None {
        return Err(Error::unsupported_feature("columnMapping", "a manifest cannot tell its readers the names of columns: the table maps them"));
    }
    let columns = snapshot.metadata().partition_columns.clone();
    let mut manifests: BTreeMap<String, String> = BTreeMap::new();
    if columns.is_empty() {
        manifests.insert(format!("{FOLDER}/manifest"), String::new());
    }
    for batch in snapshot.files(FileKind::Adds, Wanted { partition: columns.clone(), ..Wanted::default() }, cancel)? {
        let batch = batch?;
        if batch.dv.is_some() {
            return Err(Error::unsupported_feature(
                "deletionVectors",
                "a manifest cannot tell its readers which rows are deleted: files of the table have deletion vectors; rewrite these files first",
            ));
        }
        for row in 0..batch.len() {
            let values = batch.partition.iter().map(|column| column.is_valid(row).then(|| column.value(row).to_owned())).collect();
            let text = manifests.entry(format!("{FOLDER}/{}manifest", directory(&columns, &values))).or_default();
            text.push_str(&url(root.url(), batch.path.value(row))?);
            text.push('\n');
        }
    }
    let old = present(snapshot)?;
    let written: Vec<String> = manifests.keys().cloned().collect();
    let (store, stop) = (Arc::clone(root), cancel.clone());
    cancel.progress().expect(manifests.len() as u64);
    map_all(manifests, move |(path, text)| {
        stop.check()?;
        replace(store.as_ref(), &path, text.as_bytes())?;
        stop.progress().advance(1);
        Ok(())
    })?;
    let deleted: Vec<String> = old.into_iter().filter(|path| written.binary_search(path).is_err()).collect();
    cancel.check()?;
    if let Some((_, error)) = root.delete_batch(&deleted)?.into_iter().next() {
        return Err(error);
    }
    Ok(Generated { manifests: written, deleted })
}

/// A file's URL, in plain text as readers of manifests take it.
fn url(root: &str, path: &str) -> Result<String> {
    let canonical = data_path::canonical(path)?;
    Ok(match canonical.strip_prefix('/') {
        Some(absolute) => format!("file:///{absolute}"),
        None if canonical.contains("://") => canonical.into_owned(),
        None => format!("{}{canonical}", percent_encoding::percent_decode_str(root).decode_utf8_lossy()),
    })
}

/// The manifests that are there.
fn present(snapshot: &Snapshot) -> Result<BTreeSet<String>> {
    let (mut out, mut level) = (BTreeSet::new(), vec![FOLDER.to_owned()]);
    level.retain(|folder| snapshot.stores().root().owns(folder));
    while !level.is_empty() {
        let store = Arc::clone(snapshot.stores().root());
        for folder in map_all(std::mem::take(&mut level), move |folder| store.list_folder(&folder, &|name| name == "manifest"))? {
            out.extend(folder.objects.into_iter().map(|object| object.path));
            level.extend(folder.folders);
        }
    }
    Ok(out)
}
