//! FSCK: live files that are not there -> removed from the log.
//!
//! Somebody deleted them behind the table's back; their rows are lost either way, and without this no reader can go on. Only
//! a store that says clearly that a file is not there counts, and only data files do: what a missing deletion vector deleted
//! nobody knows, so that is left for a restore.
//!
//! Cost: a listing of each folder that has live files, a request for each file elsewhere.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::BooleanArray;
use hashbrown::HashSet;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::files::Places;
use super::record;
use crate::command::{Choices, Done};
use crate::commit::Transaction;
use crate::commit::adds::{adds, whole};
use crate::error::{Result, ResultExt};
use crate::exec::{Cancel, Env, SystemEnv, map_all};
use crate::parse::Wanted;
use crate::parse::checkpoint::FileKind;
use crate::protocol::commit_line::Action;
use crate::protocol::{data_path, features};
use crate::snapshot::Snapshot;

/// What a caller decides of a repair.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RepairOptions {
    /// Only say what is missing.
    pub dry_run: bool,
    /// How it is committed.
    pub choices: Choices,
}

/// What a repair did, or would.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Repaired {
    /// Whether it only looked.
    pub dry_run: bool,
    /// Files that are gone, as they stand in the log.
    pub files_removed: Vec<String>,
    /// The version that was made, where one was.
    #[serde(skip)]
    pub done: Option<Done>,
}

/// Removes live files from the log that are not in the store.
///
/// # Errors
/// [`crate::error::Error::Storage`] when the store does not say; as [`Transaction::commit`].
pub fn repair(snapshot: &Snapshot, options: &RepairOptions, cancel: &Cancel) -> Result<Repaired> {
    features::check_writable(snapshot.protocol()).at_file(snapshot.stores().root().url()).at_version(snapshot.version())?;
    let missing = missing(snapshot, cancel)?;
    let mut out = Repaired { dry_run: options.dry_run, files_removed: missing.iter().cloned().collect(), done: None };
    out.files_removed.sort_unstable();
    if options.dry_run || missing.is_empty() {
        return Ok(out);
    }
    let mut tx = Transaction::new(snapshot);
    tx.read_files(out.files_removed.iter().map(String::as_str))?;
    let wanted = whole(snapshot);
    let (partition, now) = (wanted.partition.clone(), SystemEnv.now_ms());
    for batch in snapshot.files(FileKind::Adds, wanted, cancel)? {
        let batch = batch?;
        let gone: BooleanArray = (0..batch.len()).map(|row| Some(missing.contains(batch.path.value(row)))).collect();
        tx.extend(adds(&batch.filter(&gone)?, &partition)?.iter().map(|add| Action::Remove(add.to_remove(now, true))));
    }
    let metrics = json!({"numRemovedFiles": out.files_removed.len()});
    let done = record(tx, "FSCK", json!({"dryRun": false}), metrics, &options.choices, cancel)?;
    Ok(Repaired { done: Some(done), ..out })
}

/// Paths in the log of live files that are not there.
fn missing(snapshot: &Snapshot, cancel: &Cancel) -> Result<HashSet<String>> {
    let places = Places::new(snapshot.stores());
    let mut by_folder: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    let mut elsewhere = Vec::new();
    for batch in snapshot.files(FileKind::Adds, Wanted::default(), cancel)? {
        let batch = batch?;
        for path in batch.path.iter().flatten() {
            match places.of_log(path) {
                Some(place) => {
                    let (folder, name) = place.rsplit_once('/').unwrap_or(("", &place));
                    by_folder.entry(folder.to_owned()).or_default().push((name.to_owned(), path.to_owned()));
                }
                None => elsewhere.push(path.to_owned()),
            }
        }
    }
    cancel.check()?;
    let store = Arc::clone(snapshot.stores().root());
    cancel.progress().expect(elsewhere.len() as u64 + by_folder.values().map(|files| files.len() as u64).sum::<u64>());
    let stop = cancel.clone();
    let here = map_all(by_folder, move |(folder, files)| {
        stop.check()?;
        stop.progress().advance(files.len() as u64);
        let listed = store.list_folder(&folder, &|_| true)?;
        let there: HashSet<&str> = listed.objects.iter().filter_map(|object| object.path.rsplit('/').next()).collect();
        Ok(files.into_iter().filter(|(name, _)| !there.contains(name.as_str())).map(|(_, path)| path).collect::<Vec<_>>())
    })?;
    let stores = Arc::clone(snapshot.stores());
    let stop = cancel.clone();
    let far = map_all(elsewhere, move |path| {
        stop.check()?;
        stop.progress().advance(1);
        let file = stores.file(&data_path::canonical(&path)?, None)?;
        match file.store.head(&file.path) {
            Ok(_) => Ok(None),
            Err(error) if error.is_not_found() => Ok(Some(path)),
            Err(error) => Err(error),
        }
    })?;
    Ok(here.into_iter().flatten().chain(far.into_iter().flatten()).collect())
}
