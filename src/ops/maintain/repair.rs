//! FSCK REPAIR TABLE: removes live files from the log that are missing in the store.
//!
//! Such files were deleted without a commit; their rows are lost, and until they are removed from
//! the log the table cannot be read. A file is only removed if the store reports clearly that it
//! does not exist. Only data files are removed: the rows that a missing deletion vector deleted are
//! unknown, so it is only reported, and can be handled by a restore.
//!
//! Cost: a listing of each folder that has live files or vectors, a request for each file
//! elsewhere.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::BooleanArray;
use hashbrown::HashSet;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::commit::OptimisticTransaction;
use crate::commit::adds::{all_add_columns, batch_to_adds};
use crate::commit::finish::{CommitOptions, CommitResult};
use crate::dv::DvPath;
use crate::error::{Result, ResultExt};
use crate::exec::{CancellationToken, RuntimeEnv, SystemEnv, map_all};
use crate::ops::maintain::commit_command::commit_command;
use crate::ops::maintain::data_files::deletion_vector_path;
use crate::ops::rewrite::table_paths::TablePathResolver;
use crate::parse::FileActionProjection;
use crate::parse::checkpoint::FileActionKind;
use crate::protocol::commit_line::Action;
use crate::protocol::{data_path, features};
use crate::snapshot::Snapshot;

/// Options of a repair.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RepairOptions {
    /// Only report missing files.
    pub dry_run: bool,
    /// How it is committed.
    pub commit_options: CommitOptions,
}

/// The result of a repair or its dry run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RepairResult {
    /// Whether it was a dry run.
    pub dry_run: bool,
    /// Missing files, as in the log.
    pub files_removed: Vec<String>,
    /// Missing deletion vectors: paths relative to the table root, or as in the log.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub vectors_missing: Vec<String>,
    /// The committed version, if any.
    #[serde(skip)]
    pub done: Option<CommitResult>,
}

/// Removes live files from the log that are missing in the store.
///
/// # Errors
/// [`crate::error::Error::Storage`] if the store fails; as [`OptimisticTransaction::commit`].
pub fn repair(
    snapshot: &Snapshot,
    options: &RepairOptions,
    cancel: &CancellationToken,
) -> Result<RepairResult> {
    features::check_writable(snapshot.protocol())
        .at_file(snapshot.stores().root().url())
        .at_version(snapshot.version())?;
    let MissingFiles {
        files: missing,
        vectors,
    } = find_missing_files(snapshot, cancel)?;
    let mut out = RepairResult {
        dry_run: options.dry_run,
        files_removed: missing.iter().cloned().collect(),
        vectors_missing: vectors.into_iter().collect(),
        done: None,
    };
    out.files_removed.sort_unstable();
    out.vectors_missing.sort_unstable();
    if options.dry_run || missing.is_empty() {
        return Ok(out);
    }
    let mut tx = OptimisticTransaction::new(snapshot);
    tx.read_files(out.files_removed.iter().map(String::as_str))?;
    let wanted = all_add_columns(snapshot);
    let (partition, now) = (wanted.partition.clone(), SystemEnv.now_ms());
    for batch in snapshot.files(FileActionKind::Adds, wanted, cancel)? {
        let batch = batch?;
        let gone: BooleanArray = (0..batch.len())
            .map(|row| Some(missing.contains(batch.path.value(row))))
            .collect();
        tx.extend(
            batch_to_adds(&batch.filter(&gone)?, &partition)?
                .iter()
                .map(|add| Action::Remove(add.to_remove(now, true))),
        );
    }
    let metrics = json!({"numRemovedFiles": out.files_removed.len()});
    let done = commit_command(
        tx,
        "FSCK",
        json!({"dryRun": false}),
        metrics,
        &options.commit_options,
        cancel,
    )?;
    Ok(RepairResult {
        done: Some(done),
        ..out
    })
}

/// Missing files.
#[derive(Default)]
struct MissingFiles {
    /// Paths in the log.
    files: HashSet<String>,
    /// Paths of deletion vectors, without duplicates.
    vectors: HashSet<String>,
}

/// A file whose existence is checked.
#[derive(Clone, PartialEq, Eq, Hash)]
enum ReferencedFile {
    File(String),
    DeletionVector(DvPath),
}

impl ReferencedFile {
    fn path_below_root(&self, places: &TablePathResolver) -> Option<String> {
        match self {
            Self::File(path) => places.resolve_log_path(path),
            Self::DeletionVector(path) => places.resolve_deletion_vector(path),
        }
        .map(Cow::into_owned)
    }

    /// Its path as `TableStores::file` expects it.
    fn path(&self) -> Result<Cow<'_, str>> {
        match self {
            Self::File(path) | Self::DeletionVector(DvPath::Given(path)) => {
                data_path::canonical(path)
            }
            Self::DeletionVector(DvPath::InTable(path)) => Ok(Cow::Borrowed(path)),
        }
    }
}

fn find_missing_files(snapshot: &Snapshot, cancel: &CancellationToken) -> Result<MissingFiles> {
    let places = TablePathResolver::new(snapshot.stores());
    let mut by_folder: BTreeMap<String, Vec<(String, ReferencedFile)>> = BTreeMap::new();
    let (mut elsewhere, mut vectors) = (Vec::new(), HashSet::new());
    let mut seek = |sought: ReferencedFile| match sought.path_below_root(&places) {
        Some(place) => {
            let (folder, name) = place.rsplit_once('/').unwrap_or(("", &place));
            by_folder
                .entry(folder.to_owned())
                .or_default()
                .push((name.to_owned(), sought));
        }
        None => elsewhere.push(sought),
    };
    for batch in snapshot.files(
        FileActionKind::Adds,
        FileActionProjection::default(),
        cancel,
    )? {
        let batch = batch?;
        for row in 0..batch.len() {
            seek(ReferencedFile::File(batch.path.value(row).to_owned()));
            // Many data files may have their vectors in one file.
            if let Some(vector) = deletion_vector_path(&batch, row)?
                && vectors.insert(vector.clone())
            {
                seek(ReferencedFile::DeletionVector(vector));
            }
        }
    }
    cancel.check()?;
    let store = Arc::clone(snapshot.stores().root());
    cancel.progress().expect(
        elsewhere.len() as u64
            + by_folder
                .values()
                .map(|files| files.len() as u64)
                .sum::<u64>(),
    );
    let stop = cancel.clone();
    let here = map_all(by_folder, move |(folder, files)| {
        stop.check()?;
        stop.progress().advance(files.len() as u64);
        let listed = store.list_folder(&folder, &|_| true)?;
        let there: HashSet<&str> = listed
            .objects
            .iter()
            .filter_map(|object| object.path.rsplit('/').next())
            .collect();
        Ok(files
            .into_iter()
            .filter(|(name, _)| !there.contains(name.as_str()))
            .map(|(_, sought)| sought)
            .collect::<Vec<_>>())
    })?;
    let stores = Arc::clone(snapshot.stores());
    let stop = cancel.clone();
    let far = map_all(elsewhere, move |sought| {
        stop.check()?;
        stop.progress().advance(1);
        let file = stores.file(&sought.path()?, None)?;
        match file.store.head(&file.path) {
            Ok(_) => Ok(None),
            Err(error) if error.is_not_found() => Ok(Some(sought)),
            Err(error) => Err(error),
        }
    })?;
    let mut out = MissingFiles::default();
    for sought in here.into_iter().flatten().chain(far.into_iter().flatten()) {
        match sought {
            ReferencedFile::File(path) => out.files.insert(path),
            ReferencedFile::DeletionVector(DvPath::InTable(path) | DvPath::Given(path)) => {
                out.vectors.insert(path)
            }
        };
    }
    Ok(out)
}
