//! VACUUM: deletes files below the table root that no version within the retention requires.
//!
//! The required files do not depend on the mode: live files, files removed after the cutoff, files
//! of versions to keep, and the deletion vectors of all these. Of the other files only those older
//! than the cutoff are deleted, so that files of running writers are kept.
//!
//! Candidates come from all folders (`full`), from the removed files in the log (the default, which
//! never deletes a file that the log does not reference), or from an inventory. Hidden files and
//! folders, other tables below the root, targets of symbolic links, and files outside of the root
//! are not deleted. The table is read again between the first commit (`VACUUM START`) and the first
//! deletion: files that were added again in the meantime are kept.
//!
//! Protocol: "Vacuum Protocol Check", "Deletion Vectors". Cost: the keys of all files, one listing
//! of each folder; memory for the path of each deleted file.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use arrow_array::Array;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::commit::OptimisticTransaction;
use crate::commit::finish::{CommitOptions, CommitResult};
use crate::dv::DvPath;
use crate::error::{CallOption, Error, ErrorCode, Result, ResultExt};
use crate::exec::{CancellationToken, RuntimeEnv, SystemEnv, map_all};
use crate::log::MaintenanceOperation;
use crate::ops::maintain::commit_command::commit_command;
use crate::ops::maintain::data_files::{
    HiddenPaths, PathHashSet, deletion_vector_path, file_name, has_iceberg_metadata, walk_folders,
};
use crate::ops::rewrite::table_paths::TablePathResolver;
use crate::parse::checkpoint::FileActionKind;
use crate::parse::commit::{self, ActionSelection};
use crate::parse::{FileActionProjection, FileBatch};
use crate::protocol::{data_path, features, iceberg, properties};
use crate::snapshot::Snapshot;
use crate::store::{FolderListing, ObjectMeta, Store};

/// The number of files deleted by one request, if the store supports that.
const CHUNK: usize = 1000;
/// The maximum number of metadata changes between a vacuum's deletions and its last commit.
const OTHERS: u32 = 100;
/// The number of commits read by one job.
const COMMITS: usize = 64;
/// Longer commits are taken to have actions.
const BLANK_BYTES: u64 = 64;
const RETENTION: &str = "delta.deletedFileRetentionDuration";

/// Options of a vacuum.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VacuumOptions {
    /// How long removed files are kept, in milliseconds; `delta.deletedFileRetentionDuration`
    /// (default: a week) if `None`.
    pub retention_ms: Option<i64>,
    /// Only plan, delete nothing.
    pub dry_run: bool,
    /// Refuse a retention shorter than the table's.
    pub enforce_retention: bool,
    /// List all files below the root instead of the removed files in the log.
    pub full: bool,
    /// Versions that remain readable regardless of their age.
    pub keep_versions: Vec<i64>,
    /// The current time, in milliseconds since the epoch; the system clock's if `None`.
    pub now_ms: Option<i64>,
    /// How its two versions are committed.
    pub commit_options: CommitOptions,
}

impl Default for VacuumOptions {
    fn default() -> Self {
        Self {
            retention_ms: None,
            dry_run: false,
            enforce_retention: true,
            full: false,
            keep_versions: Vec::new(),
            now_ms: None,
            commit_options: CommitOptions::default(),
        }
    }
}

/// The result of a vacuum or its dry run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct VacuumResult {
    /// Paths relative to the table root, sorted.
    pub files: Vec<String>,
    /// Their total size in bytes.
    pub bytes: u64,
    /// The number of folders that were listed.
    pub folders: u64,
    /// The committed version, if any.
    #[serde(skip)]
    pub done: Option<CommitResult>,
}

/// Deletes, or with `dry_run` only finds, files that no version within the retention requires.
/// `inventory` lists the table's files if the caller knows them; paths are relative to the root or
/// absolute.
///
/// # Errors
/// [`Error::Invalid`] for a retention that is too short or cannot be read, [`Error::Unsupported`] for a table that
/// this release cannot write or whose catalog does not permit it, [`Error::Storage`]. No required
/// file is deleted, whatever the error.
pub fn vacuum(
    snapshot: &Snapshot,
    options: &VacuumOptions,
    inventory: Option<FileInventory>,
    cancel: &CancellationToken,
) -> Result<VacuumResult> {
    let root = snapshot.stores().root();
    features::check_writable(snapshot.protocol())
        .at_file(root.url())
        .at_version(snapshot.version())?;
    snapshot.check_maintenance(MaintenanceOperation::Vacuum)?;
    let of_table = properties::retention_ms(&snapshot.metadata().configuration, RETENTION)?;
    let retention = options.retention_ms.unwrap_or(of_table);
    check_retention(retention, of_table, options)?;
    let cutoff = options
        .now_ms
        .unwrap_or_else(after_all_commits)
        .saturating_sub(retention)
        .min(oldest_blank_commit_ms(snapshot)?);

    let look = VacuumPlanner {
        options,
        cutoff,
        exceeds_table_retention: retention > of_table,
        resolver: TablePathResolver::new(snapshot.stores()),
        cancel,
    };
    let needed = look.referenced_files(snapshot)?;
    let mut plan = match inventory {
        Some(inventory) => look.inventory_candidates(snapshot, inventory, &needed)?,
        None if options.full => look.full_candidates(snapshot, needed)?,
        None => look.log_candidates(snapshot, &needed)?,
    };
    if options.dry_run || plan.files.is_empty() {
        return Ok(plan.into_result());
    }
    let mut parameters = json!({"retentionCheckEnabled": options.enforce_retention, "defaultRetentionMillis": of_table});
    if let (Some(given), Some(parameters)) = (options.retention_ms, parameters.as_object_mut()) {
        parameters.insert("specifiedRetentionMillis".to_owned(), given.into());
    }
    let metrics = json!({"numFilesToDelete": plan.files.len(), "sizeOfDataToDelete": plan.bytes});
    let begun = commit_command(
        OptimisticTransaction::new(snapshot),
        "VACUUM START",
        parameters,
        metrics,
        &options.commit_options,
        cancel,
    )?;
    let after = match begun.snapshot {
        Some(after) => after,
        None => snapshot.at(begun.version)?,
    };
    if after.version() > snapshot.version() + 1 {
        let needed = look.referenced_files(&after)?;
        plan.files.retain(|file| !needed.contains(&file.path));
    }
    let deleted = delete_files(root, &plan.files, cancel);
    let status = if deleted.is_ok() {
        "COMPLETED"
    } else {
        "FAILED"
    };
    let done = deleted
        .as_ref()
        .map_or_else(|failed| failed.deleted, |()| plan.files.len());
    let metrics = json!({"numDeletedFiles": done, "numVacuumedDirectories": plan.folders});
    let ended = commit_vacuum_end(
        &after,
        &options.commit_options.without_transactions(),
        &json!({"status": status}),
        &metrics,
        &cancel.uncancelled(),
    );
    deleted.map_err(|failed| failed.error)?;
    let mut ended = ended?;
    ended.warnings.splice(0..0, begun.warnings);
    Ok(VacuumResult {
        done: Some(ended),
        ..plan.into_result()
    })
}

/// Commits the end of the vacuum on the newest version, even if the caller cancelled it or others
/// changed the table's metadata: the deletions have happened.
fn commit_vacuum_end(
    after: &Snapshot,
    commit_options: &CommitOptions,
    parameters: &Value,
    metrics: &Value,
    cancel: &CancellationToken,
) -> Result<CommitResult> {
    let (mut newest, mut left) = (after.clone(), OTHERS);
    loop {
        match commit_command(
            OptimisticTransaction::new(&newest),
            "VACUUM END",
            parameters.clone(),
            metrics.clone(),
            commit_options,
            cancel,
        ) {
            Err(Error::CommitFailed { .. }) if left > 0 => {
                newest = newest.at(None)?;
                left -= 1;
            }
            ended => return ended,
        }
    }
}

/// The current time, after waiting for the next millisecond, so that it is later than all previous
/// commits.
///
/// A removed file is required until it is *older* than the retention, and times of the log are in
/// milliseconds: without the wait a retention of zero would keep the files that this process just
/// removed.
fn after_all_commits() -> i64 {
    SystemEnv.sleep(Duration::from_millis(1));
    SystemEnv.now_ms()
}

fn check_retention(retention: i64, of_table: i64, options: &VacuumOptions) -> Result<()> {
    const HOUR: f64 = 3_600_000.0;
    if retention < 0 {
        return Err(
            Error::invalid("the retention of a vacuum cannot be negative")
                .with_code(ErrorCode::NegativeRetention, &[]),
        );
    }
    if options.enforce_retention && retention < of_table {
        #[allow(clippy::cast_precision_loss)]
        let hours = |ms: i64| ms as f64 / HOUR;
        return Err(Error::invalid(format!(
            "a retention of {} hours is shorter than the table's {} (`{RETENTION}`): readers and writers that are at work may need what it deletes; set {} if there are none",
            hours(retention),
            hours(of_table),
            CallOption::EnforceRetentionDurationFalse
        ))
        .with_code(
            ErrorCode::RetentionTooShort,
            &[
                ("retention_hours", &hours(retention)),
                ("table_hours", &hours(of_table)),
            ],
        ));
    }
    Ok(())
}

/// Files that exist in the table's folder, as the caller lists them.
pub type FileInventory = Box<dyn Iterator<Item = Result<ObjectMeta>>>;

/// The files to delete.
#[derive(Default)]
struct UnreferencedFiles {
    files: Vec<ObjectMeta>,
    bytes: u64,
    folders: u64,
}

impl UnreferencedFiles {
    fn of(files: Vec<ObjectMeta>, folders: u64) -> Self {
        let bytes = files.iter().map(|file| file.size).sum();
        Self {
            files,
            bytes,
            folders,
        }
    }

    fn into_result(self) -> VacuumResult {
        let mut files: Vec<String> = self.files.into_iter().map(|file| file.path).collect();
        files.sort_unstable();
        VacuumResult {
            files,
            bytes: self.bytes,
            folders: self.folders,
            done: None,
        }
    }
}

struct VacuumPlanner<'a> {
    options: &'a VacuumOptions,
    /// Files that were removed and written before this time can be deleted.
    cutoff: i64,
    /// Whether removed files are kept for longer than the tombstones of the table's checkpoints.
    exceeds_table_retention: bool,
    resolver: TablePathResolver,
    cancel: &'a CancellationToken,
}

impl VacuumPlanner<'_> {
    /// The paths of all files to keep.
    fn referenced_files(&self, snapshot: &Snapshot) -> Result<PathHashSet> {
        let mut needed = PathHashSet::default();
        self.insert_live_files(snapshot, &mut needed)?;
        for batch in snapshot.files(
            FileActionKind::Removes,
            FileActionProjection {
                time: true,
                ..FileActionProjection::default()
            },
            self.cancel,
        )? {
            let batch = batch?;
            for row in 0..batch.len() {
                if deletion_timestamp(&batch, row) >= self.cutoff {
                    self.insert_file(&batch, row, &mut needed)?;
                }
            }
        }
        if self.exceeds_table_retention {
            for (removes, _) in &removed_by_commits(snapshot, self.cutoff)? {
                for row in 0..removes.len() {
                    if deletion_timestamp(removes, row) >= self.cutoff {
                        self.insert_file(removes, row, &mut needed)?;
                    }
                }
            }
        }
        for version in &self.options.keep_versions {
            let kept = snapshot.at(Some(*version))?;
            self.insert_live_files(&kept, &mut needed)?;
            // Change data belongs to the version's own commit.
            let segment = kept.segment();
            let Some(commit) = &segment.last_commit else {
                continue;
            };
            let text = kept.commit_bytes(commit)?;
            let take = ActionSelection {
                cdc: Some(FileActionProjection::default()),
                ..ActionSelection::default()
            };
            let changes = commit::parse(&text, 0..text.len(), &take, &[])
                .at_file(&commit.file.path)?
                .cdc;
            for row in 0..changes.len() {
                self.insert_file(&changes, row, &mut needed)?;
            }
        }
        Ok(needed)
    }

    fn insert_live_files(&self, snapshot: &Snapshot, needed: &mut PathHashSet) -> Result<()> {
        for batch in snapshot.files(
            FileActionKind::Adds,
            FileActionProjection::default(),
            self.cancel,
        )? {
            let batch = batch?;
            for row in 0..batch.len() {
                self.insert_file(&batch, row, needed)?;
            }
        }
        Ok(())
    }

    fn insert_file(&self, batch: &FileBatch, row: usize, needed: &mut PathHashSet) -> Result<()> {
        let log_path = batch.path.value(row);
        match self.resolver.resolve_log_path(log_path) {
            Some(path) => needed.insert(&path),
            None => insert_external_file(log_path, needed)?,
        }
        if let Some(vector) = deletion_vector_path(batch, row)? {
            match (self.resolver.resolve_deletion_vector(&vector), &vector) {
                (Some(path), _) => needed.insert(&path),
                (None, DvPath::InTable(path) | DvPath::Given(path)) => {
                    insert_external_file(path, needed)?;
                }
            }
        }
        Ok(())
    }

    /// Whether a file is old enough. Stores that do not report modification times return 0.
    fn is_before_cutoff(&self, file: &ObjectMeta) -> bool {
        file.modified_ms != 0 && file.modified_ms < self.cutoff
    }

    /// The files to delete among all files below the root.
    fn full_candidates(
        &self,
        snapshot: &Snapshot,
        needed: PathHashSet,
    ) -> Result<UnreferencedFiles> {
        let hidden = hidden_paths(snapshot)?;
        let hidden_files = hidden.clone();
        let mut files = Vec::new();
        let folders = walk_folders(
            snapshot.stores().root(),
            move |path| !hidden_files.is_hidden(path) && !needed.contains(path),
            |folder, listed| {
                let is_table = !folder.is_empty()
                    && listed
                        .folders
                        .iter()
                        .any(|inner| file_name(inner) == "_delta_log");
                if is_table {
                    return Ok(Vec::new());
                }
                files.extend(
                    listed
                        .objects
                        .into_iter()
                        .filter(|file| self.is_before_cutoff(file)),
                );
                Ok(listed
                    .folders
                    .into_iter()
                    .filter(|path| !hidden.is_hidden(path))
                    .collect())
            },
            self.cancel,
        )?;
        Ok(UnreferencedFiles::of(files, folders))
    }

    /// The files to delete in an inventory.
    fn inventory_candidates(
        &self,
        snapshot: &Snapshot,
        inventory: FileInventory,
        needed: &PathHashSet,
    ) -> Result<UnreferencedFiles> {
        let hidden = hidden_paths(snapshot)?;
        let mut files = Vec::new();
        let mut owned: HashMap<String, bool> = HashMap::new();
        let mut owns = |place: &str| {
            let folder = place.rsplit_once('/').map_or("", |(folder, _)| folder);
            owned.get(folder).copied().unwrap_or_else(|| {
                let owns = snapshot.stores().root().owns(folder);
                owned.insert(folder.to_owned(), owns);
                owns
            })
        };
        for file in inventory {
            let file = file?;
            let Some(place) = self
                .resolver
                .resolve_log_path(&file.path)
                .map(std::borrow::Cow::into_owned)
            else {
                continue;
            };
            if !hidden.is_within_hidden(&place)
                && !needed.contains(&place)
                && self.is_before_cutoff(&file)
                && owns(&place)
            {
                files.push(ObjectMeta {
                    path: place,
                    ..file
                });
            }
        }
        files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        files.dedup_by(|a, b| a.path == b.path);
        Ok(UnreferencedFiles::of(files, 0))
    }

    /// The files to delete among those that the log says were removed, or that held change data of
    /// commits before the cutoff.
    fn log_candidates(
        &self,
        snapshot: &Snapshot,
        needed: &PathHashSet,
    ) -> Result<UnreferencedFiles> {
        let mut by_folder: BTreeMap<String, hashbrown::HashSet<String>> = BTreeMap::new();
        let mut note = |place: &str| {
            if !needed.contains(place) {
                let (folder, name) = place.rsplit_once('/').unwrap_or(("", place));
                by_folder
                    .entry(folder.to_owned())
                    .or_default()
                    .insert(name.to_owned());
            }
        };
        let mut note_rows = |batch: &FileBatch, is_old: &dyn Fn(usize) -> bool| -> Result<()> {
            for row in (0..batch.len()).filter(|row| is_old(*row)) {
                if let Some(place) = self.resolver.resolve_log_path(batch.path.value(row)) {
                    note(&place);
                }
                if let Some(vector @ DvPath::InTable(_)) = deletion_vector_path(batch, row)?
                    && let Some(place) = self.resolver.resolve_deletion_vector(&vector)
                {
                    note(&place);
                }
            }
            Ok(())
        };
        for batch in snapshot.files(
            FileActionKind::Removes,
            FileActionProjection {
                time: true,
                ..FileActionProjection::default()
            },
            self.cancel,
        )? {
            let batch = batch?;
            note_rows(&batch, &|row| deletion_timestamp(&batch, row) < self.cutoff)?;
        }
        for (removes, changes) in &removed_by_commits(snapshot, i64::MIN)? {
            note_rows(removes, &|row| {
                deletion_timestamp(removes, row) < self.cutoff
            })?;
            // Change data files have no timestamp except their modification time.
            note_rows(changes, &|_| true)?;
        }
        self.cancel.check()?;
        let (store, folders) = (Arc::clone(snapshot.stores().root()), by_folder.len() as u64);
        let listed = map_all(by_folder, move |(folder, names)| {
            if store.owns(&folder) {
                store.list_folder(&folder, &|name| names.contains(name))
            } else {
                Ok(FolderListing::default())
            }
        })?;
        let files = listed
            .into_iter()
            .flat_map(|folder| folder.objects)
            .filter(|file| self.is_before_cutoff(file))
            .collect();
        Ok(UnreferencedFiles::of(files, folders))
    }
}

/// Tombstones and change data files of the commits that remain and were written at this time or
/// later. Checkpoints drop tombstones when they expire, the commits still have them.
fn removed_by_commits(snapshot: &Snapshot, since_ms: i64) -> Result<Vec<(FileBatch, FileBatch)>> {
    let commits: Vec<_> = snapshot
        .log()
        .list(0)?
        .commits
        .into_values()
        .filter(|commit| commit.version <= snapshot.version())
        // Stores that do not report modification times return 0.
        .filter(|commit| commit.modified_ms == 0 || commit.modified_ms >= since_ms)
        .collect();
    let table = snapshot.clone();
    let batches = map_all(commits.chunks(COMMITS).map(<[_]>::to_vec), move |commits| {
        let take = ActionSelection {
            removes: Some(FileActionProjection {
                time: true,
                ..FileActionProjection::default()
            }),
            cdc: Some(FileActionProjection::default()),
            ..ActionSelection::default()
        };
        let parse = |commit: &crate::log::CommitFile| {
            let text = match table.commit_bytes(commit) {
                // A log cleanup has deleted the commit. Files that only this commit referenced are
                // left to a full vacuum.
                Err(error) if error.is_not_found() => return Ok(None),
                text => text?,
            };
            let parsed =
                commit::parse(&text, 0..text.len(), &take, &[]).at_file(&commit.file.path)?;
            Ok(Some((parsed.removes, parsed.cdc)))
        };
        commits
            .iter()
            .filter_map(|commit| parse(commit).transpose())
            .collect::<Result<Vec<_>>>()
    })?;
    Ok(batches.into_iter().flatten().collect())
}

/// The deletion timestamp of a tombstone; a missing one is older than all others.
fn deletion_timestamp(batch: &FileBatch, row: usize) -> i64 {
    batch
        .time
        .as_ref()
        .filter(|times| times.is_valid(row))
        .map_or(0, |times| times.value(row))
}

/// The time of the oldest commit without actions. A loss of power left it empty, so the files that
/// it added are in no version, and only they can bring back what was written.
fn oldest_blank_commit_ms(snapshot: &Snapshot) -> Result<i64> {
    let listing = snapshot.log().list(0)?;
    let mut oldest = i64::MAX;
    for commit in listing.commits.values() {
        if commit.file.size.is_some_and(|size| size <= BLANK_BYTES) {
            match snapshot.commit_bytes(commit) {
                Ok(text) if commit::is_blank(&text) => oldest = oldest.min(commit.modified_ms),
                Err(error) if !error.is_not_found() => return Err(error),
                _ => {}
            }
        }
    }
    Ok(oldest)
}

/// Adds a file that is not in a folder of the table as far as its path says. The path may be
/// another spelling of one that is, so all files with its name are kept.
///
/// # Errors
/// [`Error::Corrupt`] for a path that cannot be read: it may name any file.
fn insert_external_file(log_path: &str, needed: &mut PathHashSet) -> Result<()> {
    let canonical = data_path::canonical(log_path).at_file(log_path)?;
    needed.insert_name(file_name(&canonical));
    Ok(())
}

/// Hidden paths in this table.
fn hidden_paths(snapshot: &Snapshot) -> Result<HiddenPaths> {
    let fields = snapshot.partition_fields();
    // Iceberg's readers may use metadata of earlier versions, after the table's properties changed.
    let has_iceberg = iceberg::has_compat_feature(snapshot.protocol())
        || iceberg::has_metadata(snapshot.metadata())
        || has_iceberg_metadata(snapshot.stores().root())?;
    Ok(HiddenPaths::new(
        fields
            .iter()
            .flat_map(|field| [field.name.as_str(), snapshot.physical_name(field)]),
        has_iceberg,
    ))
}

/// Deletions that were not completed.
struct DeletionFailure {
    deleted: usize,
    error: Error,
}

/// Deletes files, several requests at a time.
fn delete_files(
    store: &Arc<dyn Store>,
    files: &[ObjectMeta],
    cancel: &CancellationToken,
) -> std::result::Result<(), DeletionFailure> {
    let chunks: Vec<Vec<String>> = files
        .chunks(CHUNK)
        .map(|chunk| chunk.iter().map(|file| file.path.clone()).collect())
        .collect();
    let (store, stop) = (Arc::clone(store), cancel.clone());
    cancel.progress().expect(files.len() as u64);
    // An error is a result here: the deletions of other chunks count, too.
    let results = map_all(chunks, move |chunk| {
        let done = stop.check().and_then(|()| store.delete_batch(&chunk));
        stop.progress().advance(chunk.len() as u64);
        Ok(done.map(|failed| (chunk.len() - failed.len(), failed.into_iter().next())))
    });
    let (mut deleted, mut first) = (0, None);
    for result in results.map_err(|error| DeletionFailure { deleted: 0, error })? {
        match result {
            Ok((done, failed)) => {
                deleted += done;
                first = first.or(failed.map(|(_, error)| error));
            }
            Err(error) => first = first.or(Some(error)),
        }
    }
    let Some(error) = first else { return Ok(()) };
    let all = files.len();
    Err(DeletionFailure {
        deleted,
        error: match error {
            Error::Storage {
                what,
                retryable,
                context,
            } => Error::Storage {
                what: format!(
                    "the vacuum deleted {deleted} of {all} files, then: {what}; run it again"
                ),
                retryable,
                context,
            },
            other => other,
        },
    })
}
