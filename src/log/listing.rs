//! Listing of the log, and selection of a version's files from it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::catalog::{CatalogClient, LogTail, RatifiedCommitSource, TailCommit};
use super::segment::{
    CheckpointCounts, CheckpointInstance, CheckpointKind, CommitFile, LogSegment, SegmentOptions,
};
use super::{ChecksumFileContents, LastCheckpointHint, last_checkpoint};
use crate::error::{CallOption, Error, ErrorCode, NotFoundKind, Result};
use crate::protocol::log_path::{self, LAST_CHECKPOINT, LOG_DIR, LogFile};
use crate::store::{ObjectMeta, Store, StoreObject, TableStores};

/// The log of a table.
#[derive(Debug, Clone)]
pub struct DeltaLog {
    stores: Arc<TableStores>,
    authority: RatifiedCommitSource,
    /// Whether a warning about a commit through this log, or a clone of it, was already issued.
    is_warned: Arc<AtomicBool>,
}

impl DeltaLog {
    /// The log below the table's root. `tail` takes precedence over published commits, and nothing
    /// after it exists.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a tail with gaps.
    pub fn new(stores: Arc<TableStores>, tail: Vec<TailCommit>) -> Result<Self> {
        let authority = if tail.is_empty() {
            RatifiedCommitSource::Log
        } else {
            RatifiedCommitSource::Caller(LogTail::of(tail)?)
        };
        Ok(Self {
            stores,
            authority,
            is_warned: Arc::default(),
        })
    }

    /// The log below the root of a table whose commits `catalog` manages: it names the newest ones,
    /// and ratifies new ones.
    #[must_use]
    pub fn managed(stores: Arc<TableStores>, catalog: Arc<dyn CatalogClient>) -> Self {
        Self {
            stores,
            authority: RatifiedCommitSource::Catalog(catalog),
            is_warned: Arc::default(),
        }
    }

    /// The catalog that manages the commits, if one was given.
    #[must_use]
    pub fn catalog(&self) -> Option<&Arc<dyn CatalogClient>> {
        match &self.authority {
            RatifiedCommitSource::Catalog(catalog) => Some(catalog),
            RatifiedCommitSource::Log | RatifiedCommitSource::Caller(_) => None,
        }
    }

    /// Whether no such warning was issued yet; true once for a log and its clones, which belong to
    /// one handle.
    #[must_use]
    pub fn take_first_warning(&self) -> bool {
        !self.is_warned.swap(true, Ordering::Relaxed)
    }

    /// Whether the log alone determines the existing versions, without a catalog or caller.
    #[must_use]
    pub fn is_authority(&self) -> bool {
        matches!(self.authority, RatifiedCommitSource::Log)
    }

    /// The commit that the catalog names, as a file.
    ///
    /// # Errors
    /// [`Error::Storage`] for a path that tables must not refer to.
    pub fn tail_file(&self, commit: &TailCommit) -> Result<CommitFile> {
        Ok(CommitFile {
            first: commit.version,
            version: commit.version,
            file: commit.file(&self.stores)?,
            modified_ms: 0,
        })
    }

    /// The table's stores.
    #[must_use]
    pub fn stores(&self) -> &Arc<TableStores> {
        &self.stores
    }

    fn store(&self) -> &Arc<dyn Store> {
        self.stores.root()
    }

    fn file(&self, meta: &ObjectMeta) -> StoreObject {
        StoreObject {
            store: Arc::clone(self.store()),
            path: meta.path.clone(),
            size: Some(meta.size),
        }
    }

    /// The hint, if there is one that can be read and trusted. If the store is unavailable, the
    /// following listing fails.
    #[must_use]
    pub fn hint(&self) -> Option<LastCheckpointHint> {
        self.needed_hint().ok().flatten()
    }

    /// The hint, for callers that require it.
    ///
    /// # Errors
    /// [`Error::Storage`] for an error that may be temporary.
    pub fn needed_hint(&self) -> Result<Option<LastCheckpointHint>> {
        match self
            .store()
            .get_within(LAST_CHECKPOINT, last_checkpoint::LONGEST)
        {
            Ok((bytes, _)) => Ok(LastCheckpointHint::parse(&bytes)),
            Err(
                error @ Error::Storage {
                    retryable: true, ..
                },
            ) => Err(error),
            // Anything else of that name, such as a directory, is not a hint.
            Err(_) => Ok(None),
        }
    }

    /// Lists the log from `from` on.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub fn list(&self, from: i64) -> Result<LogListing> {
        self.list_with_hint(from, None)
    }

    /// The same; `hint` describes the checkpoint at `from`.
    fn list_with_hint(&self, from: i64, hint: Option<&LastCheckpointHint>) -> Result<LogListing> {
        // Requested before the listing: a commit published in between is then in both, never in
        // neither.
        let tail = self.authority.tail()?;
        let mut listing = if self.store().can_list() {
            let after = if from <= 0 {
                String::new()
            } else {
                format!("{from:020}")
            };
            LogListing::from_objects(from, self.store().list_from(LOG_DIR, &after)?, |meta| {
                self.file(meta)
            })
        } else {
            self.probe(from, hint)?
        };
        self.store().url().clone_into(&mut listing.url);
        if let Some(tail) = tail {
            self.add_tail(&mut listing, &tail)?;
        }
        Ok(listing)
    }

    fn add_tail(&self, listing: &mut LogListing, tail: &LogTail) -> Result<()> {
        let Some(latest) = tail.latest else {
            return match listing.newest() {
                None => Ok(()),
                Some(newest) => Err(Error::invalid(format!(
                    "the committer knows of no commit of the table at {}, which has versions up to {newest}; it belongs to another table",
                    listing.url
                ))),
            };
        };
        for commit in &tail.commits {
            listing
                .commits
                .insert(commit.version, self.tail_file(commit)?);
        }
        // The catalog's latest version takes precedence over other published or remaining files.
        listing.commits.split_off(&(latest + 1));
        listing.checksums.split_off(&(latest + 1));
        listing.checkpoints.retain(|c| c.version <= latest);
        listing.compactions.retain(|c| c.version <= latest);
        match listing.newest() {
            Some(newest) if newest >= latest => Ok(()),
            // A listing that begins after it, at a hint's version, does not include it.
            _ if listing.from > latest => Ok(()),
            _ => Err(Error::corrupt(format!("version {latest}, which is the newest by the catalog, is neither in its {} nor published", CallOption::LogTail))
                .at_version(latest)
                .at_file(&listing.url)),
        }
    }

    /// For stores that cannot list: requests one version after the other.
    fn probe(&self, from: i64, hint: Option<&LastCheckpointHint>) -> Result<LogListing> {
        /// A server that answers every request with a page, such as a login, has each version:
        /// after so many in a row one is asked for that no table has.
        const COMMITS_IN_A_ROW: i64 = 64;
        let mut found = Vec::new();
        let mut ask = |path: String| match self.store().head(&path) {
            Ok(meta) => {
                found.push(meta);
                Ok(true)
            }
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        };
        let own;
        let (first, checkpointed, hint) = if from > 0 {
            (from, true, hint)
        } else if ask(log_path::commit(0))? {
            (0, false, None)
        } else {
            // The first commits were cleaned up, if this is a table at all: only the hint shows
            // where the log begins.
            own = self.needed_hint()?;
            let Some(hint) = &own else {
                return Ok(LogListing {
                    from,
                    ..LogListing::default()
                });
            };
            (hint.version, true, Some(hint))
        };
        if checkpointed {
            for name in checkpoint_names(first, hint) {
                ask(format!("{LOG_DIR}/{name}"))?;
            }
            // Its own commit may be cleaned up as well.
            ask(log_path::commit(first))?;
        }
        let mut version = first + 1;
        while ask(log_path::commit(version))? {
            version += 1;
            if version - first == COMMITS_IN_A_ROW && ask(log_path::commit(i64::MAX))? {
                return Err(Error::storage(
                    format!(
                        "the server of {} answers requests for files that no table has, as a login page does",
                        self.store().url()
                    ),
                    false,
                ));
            }
        }
        ask(log_path::checksum(version - 1))?;
        Ok(LogListing::from_objects(from, found, |meta| {
            self.file(meta)
        }))
    }

    /// The version checksum, if it can be read.
    #[must_use]
    pub fn checksum(&self, file: &StoreObject) -> Option<ChecksumFileContents> {
        /// The largest version checksum that is read.
        const LARGEST: u64 = 16 << 20;
        if file.size.is_some_and(|size| size > LARGEST) {
            return None;
        }
        let (bytes, _) = file.store.get_within(&file.path, LARGEST).ok()?;
        ChecksumFileContents::parse(&bytes)
    }

    /// The files of `version` (the newest if `None`), listing from the hint's version if that
    /// helps.
    ///
    /// # Errors
    /// [`Error::NotFound`] for no table or no such version, [`Error::Corrupt`] for a log with gaps.
    pub fn segment(&self, version: Option<i64>) -> Result<(LogListing, LogSegment)> {
        let hint = self
            .hint()
            .filter(|hint| version.is_none_or(|v| hint.version <= v));
        if let Some(hint) = hint
            && hint.version > 0
        {
            let listing = self.list_with_hint(hint.version, Some(&hint))?;
            // A hint without a usable checkpoint is wrong; the whole listing decides.
            if listing
                .checkpoints
                .iter()
                .any(|c| version.is_none_or(|v| c.version <= v))
                && let Ok(mut segment) = listing.segment(version, SegmentOptions::default())
            {
                let is_of_hint = segment
                    .checkpoint
                    .as_ref()
                    .is_some_and(|checkpoint| checkpoint.version == hint.version);
                segment.counts = is_of_hint.then_some(CheckpointCounts {
                    adds: hint.num_of_add_files,
                    actions: hint.size,
                });
                return Ok((listing, segment));
            }
        }
        let listing = self.list(0)?;
        let segment = listing.segment(version, SegmentOptions::default())?;
        Ok((listing, segment))
    }
}

/// Explanations for locations without a table.
impl DeltaLog {
    /// Refuses locations inside of a log, where no table can be.
    ///
    /// # Errors
    /// [`Error::Invalid`], naming the folder that was probably meant.
    pub fn check_location(&self) -> Result<()> {
        match self.folder_of_log() {
            Some(folder) => Err(Error::invalid(format!(
                "{} is inside of a log: give the folder of the table, {folder}",
                self.store().url()
            ))),
            None => Ok(()),
        }
    }

    /// The folder whose log the location is in.
    fn folder_of_log(&self) -> Option<&str> {
        let url = self.store().url();
        url.match_indices(LOG_DIR)
            .find(|(at, _)| {
                url.get(..*at).is_some_and(|before| before.ends_with('/'))
                    && url
                        .get(at + LOG_DIR.len()..)
                        .is_some_and(|after| after.starts_with('/'))
            })
            .and_then(|(at, _)| url.get(..at))
    }

    /// The error for a missing table, with a description of the location's content.
    #[must_use]
    pub fn with_table_diagnosis(&self, error: Error) -> Error {
        let Error::NotFound {
            kind: NotFoundKind::Table,
            what,
            context,
        } = error
        else {
            return error;
        };
        let Some(content) = self.describe_non_table() else {
            return Error::NotFound {
                kind: NotFoundKind::Table,
                what,
                context,
            };
        };
        let path = self.store().url();
        Error::NotFound {
            kind: NotFoundKind::Table,
            what: format!("no Delta table at {path}: {content}"),
            context,
        }
        .with_code(
            ErrorCode::NotADeltaTable,
            &[("path", &path), ("content", &content)],
        )
    }

    fn describe_non_table(&self) -> Option<String> {
        if let Some(folder) = self.folder_of_log() {
            return Some(format!(
                "this is inside of a log; give the folder of the table, {folder}"
            ));
        }
        let file = percent_encoding::percent_decode_str(self.store().url().trim_end_matches('/'))
            .decode_utf8_lossy();
        let folder = file
            .rsplit_once('/')
            .map_or(file.as_ref(), |(folder, _)| folder);
        if self
            .stores
            .file(&file, None)
            .is_ok_and(|file| file.store.head(&file.path).is_ok())
        {
            return Some(format!(
                "this is a file; give the folder of the table, such as {folder}/"
            ));
        }
        let found = self
            .store()
            .list_folder("", &|name| name.ends_with(".parquet"))
            .ok()?;
        let is_hive = |path: &String| !path.starts_with(['_', '.']) && path.contains('=');
        if found.objects.is_empty() && !found.folders.iter().any(is_hive) {
            return None;
        }
        Some(format!(
            "the folder has Parquet files and no `{LOG_DIR}`; `convert_to_deltalake` makes a table of them"
        ))
    }
}

/// The files of a checkpoint of `version`, from the hint if it is about this one.
fn checkpoint_names(version: i64, hint: Option<&LastCheckpointHint>) -> Vec<String> {
    match hint.filter(|hint| hint.version == version) {
        Some(LastCheckpointHint {
            v2_checkpoint: Some(v2),
            ..
        }) if !v2.path.contains('/') => vec![v2.path.clone()],
        Some(LastCheckpointHint {
            parts: Some(parts), ..
        }) if *parts <= 100_000 => (1..=*parts)
            .map(|part| format!("{version:020}.checkpoint.{part:010}.{parts:010}.parquet"))
            .collect(),
        _ => vec![format!("{version:020}.checkpoint.parquet")],
    }
}

/// The known files of a log from some version on.
#[derive(Debug, Clone, Default)]
pub struct LogListing {
    /// Versions below this one were not listed.
    pub from: i64,
    url: String,
    /// Commits by version.
    pub commits: BTreeMap<i64, CommitFile>,
    /// Complete checkpoints, ascending by version, the preferred one last.
    pub checkpoints: Vec<CheckpointInstance>,
    /// Log compactions.
    pub compactions: Vec<CommitFile>,
    /// Names of missing parts of multi-part checkpoints that are not complete.
    incomplete: Vec<String>,
    /// Version checksums by version.
    pub checksums: BTreeMap<i64, StoreObject>,
}

impl LogListing {
    fn from_objects(
        from: i64,
        objects: Vec<ObjectMeta>,
        file: impl Fn(&ObjectMeta) -> StoreObject,
    ) -> Self {
        let mut out = Self {
            from,
            ..Self::default()
        };
        let mut parts: BTreeMap<(i64, u32), BTreeMap<u32, StoreObject>> = BTreeMap::new();
        for meta in &objects {
            let name = meta.path.rsplit('/').next().unwrap_or(&meta.path);
            let commit = |first, version| CommitFile {
                first,
                version,
                file: file(meta),
                modified_ms: meta.modified_ms,
            };
            let mut checkpoint = |version, kind| {
                out.checkpoints.push(CheckpointInstance {
                    version,
                    kind,
                    files: vec![file(meta)],
                });
            };
            match LogFile::parse(name) {
                Some(LogFile::Commit(v)) => {
                    out.commits.insert(v, commit(v, v));
                }
                Some(LogFile::Compacted(first, last)) if first < last => {
                    out.compactions.push(commit(first, last));
                }
                Some(LogFile::Checksum(v)) => {
                    out.checksums.insert(v, file(meta));
                }
                Some(LogFile::Classic(v)) => checkpoint(v, CheckpointKind::Classic),
                Some(LogFile::Uuid(v, true)) => checkpoint(v, CheckpointKind::UuidJson),
                Some(LogFile::Uuid(v, false)) => checkpoint(v, CheckpointKind::UuidParquet),
                Some(LogFile::Part(v, part, of)) => {
                    parts.entry((v, of)).or_default().insert(part, file(meta));
                }
                Some(LogFile::Compacted(..)) | None => {}
            }
        }
        for ((version, of), files) in parts {
            // An incomplete set was never finished: it does not exist.
            if usize::try_from(of) == Ok(files.len()) {
                out.checkpoints.push(CheckpointInstance {
                    version,
                    kind: CheckpointKind::MultiPart,
                    files: files.into_values().collect(),
                });
            } else if let Some(part) = (1..=of).find(|part| !files.contains_key(part)) {
                out.incomplete.push(format!(
                    "{LOG_DIR}/{version:020}.checkpoint.{part:010}.{of:010}.parquet"
                ));
            }
        }
        out.checkpoints
            .sort_by_key(|c| (c.version, std::cmp::Reverse(c.kind)));
        out
    }

    /// The newest version in the listing.
    #[must_use]
    pub fn newest(&self) -> Option<i64> {
        let commit = self.commits.keys().next_back().copied();
        commit.max(self.checkpoints.last().map(|c| c.version))
    }

    fn missing(&self, version: i64) -> Error {
        let parts = self
            .incomplete
            .first()
            .map(|part| format!(" (one lacks its part `{part}`)"))
            .unwrap_or_default();
        Error::corrupt(format!(
            "the log has a gap: `{}` is missing, and no complete checkpoint covers it{parts}; restore the file or, if a later checkpoint exists, ask for its version",
            log_path::commit(version)
        ))
        .at_version(version)
    }

    /// Chooses the files of `version` (the newest if `None`), without the hints that `skip`
    /// excludes.
    ///
    /// # Errors
    /// [`Error::NotFound`] for no table or no such version, [`Error::Corrupt`] for a log with gaps.
    pub fn segment(&self, version: Option<i64>, skip: SegmentOptions) -> Result<LogSegment> {
        let Some(newest) = self.newest() else {
            return Err(Error::not_found(
                NotFoundKind::Table,
                format!(
                    "no Delta table at {} (there is no `{LOG_DIR}` with commits or checkpoints in it)",
                    self.url
                ),
            )
            .with_code(ErrorCode::TableNotFound, &[("path", &self.url)]));
        };
        let version = version.unwrap_or(newest);
        if version > newest || version < 0 {
            let oldest = self
                .commits
                .keys()
                .next()
                .copied()
                .unwrap_or(newest)
                .min(newest);
            return Err(Error::not_found(
                NotFoundKind::Version,
                format!("the table has no version {version}; it has versions {oldest} to {newest}"),
            )
            .with_code(
                ErrorCode::VersionNotFound,
                &[
                    ("version", &version),
                    ("oldest", &oldest),
                    ("newest", &newest),
                ],
            )
            .at_version(version));
        }
        let checkpoint = self
            .checkpoints
            .iter()
            .rev()
            .filter(|c| c.version <= version)
            .nth(skip.checkpoints)
            .cloned();
        let first = checkpoint.as_ref().map_or(0, |c| c.version + 1);
        let mut commits = Vec::new();
        let mut expected = first;
        for commit in self
            .commits
            .range(first.min(version)..=version)
            .map(|(_, commit)| commit)
        {
            if commit.version < first {
                continue;
            }
            if commit.version != expected {
                break;
            }
            commits.push(commit.clone());
            expected += 1;
        }
        if expected <= version {
            // Without an earlier checkpoint, a log whose first versions were cleaned up no longer
            // has this version.
            let oldest = self.checkpoints.iter().map(|c| c.version).min();
            return Err(match (&checkpoint, oldest) {
                (None, Some(oldest)) if skip.checkpoints == 0 && oldest > version => {
                    Error::not_found(
                        NotFoundKind::Version,
                        format!(
                            "version {version} was cleaned up; the oldest version left is {oldest}"
                        ),
                    )
                    .at_version(version)
                }
                _ => self.missing(expected),
            });
        }
        let replay = if skip.compactions {
            commits.clone()
        } else {
            self.with_compactions(&commits, version)
        };
        Ok(LogSegment {
            version,
            checkpoint,
            replay,
            commits,
            earlier: Vec::new(),
            last_commit: self.commits.get(&version).cloned(),
            checksum: self.checksums.get(&version).cloned(),
            counts: None,
            skip,
        })
    }

    /// Replaces commits by the longest compactions that contain them.
    fn with_compactions(&self, commits: &[CommitFile], version: i64) -> Vec<CommitFile> {
        let mut out = Vec::with_capacity(commits.len());
        let mut next = commits.first().map_or(0, |c| c.version);
        for commit in commits {
            if commit.version < next {
                continue;
            }
            let longest = self
                .compactions
                .iter()
                .filter(|c| c.first == commit.version && c.version <= version)
                .max_by_key(|c| c.version);
            let taken = longest.unwrap_or(commit);
            next = taken.version + 1;
            out.push(taken.clone());
        }
        out
    }
}
