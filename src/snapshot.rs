//! A version of a table. A snapshot is immutable; protocol and metadata are loaded when it is
//! opened, files on demand.
//!
//! Opening reads the checkpoint hint, a listing of the log, and the newest protocol and metadata:
//! from the version checksum where there is one, else from the commits after the checkpoint, else
//! from two columns of the checkpoint. A newer snapshot is made from an older one by reading only
//! the commits in between.
//!
//! Checkpoints and compactions are treated as hints, too: if one turns out to be damaged while it
//! is read, the work starts over without it, in the last resort by replaying all commits. A
//! checkpoint that contradicts a version checksum or the hint is compared with the commits, see
//! `arbitration`.
//!
//! Protocol: "Delta Table Specification", "Requirements for Readers". Cost of opening: at most four
//! requests with a checkpoint and a version checksum.

mod arbitration;
mod commit_fingerprint;
mod count_check;
mod files;
mod identity;
mod log_damage;
mod segment_cell;

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use arbitration::{
    ArbitrationResult, CheckpointRulings, arbitrate, checkpoint_path, contradiction_error,
};
use commit_fingerprint::CommitFingerprint;
pub use files::SnapshotFiles;
use log_damage::{FallbackResult, checksum_warning, fallback_warning, with_fallback};
use segment_cell::SegmentCell;

use crate::error::{Error, Result, ResultExt, invariant};
use crate::exec::{self, CancellationToken, now_ms};
use crate::log::{
    CheckpointInstance, ChecksumFileContents, CommitFile, DeltaLog, LogListing, LogSegment,
    LogTail, MaintenanceOperation,
};
use crate::parse::checkpoint::FileActionKind;
use crate::parse::commit::{self, ActionSelection, NonFileAction};
use crate::parse::{FileActionProjection, FileBatch, json_lines};
use crate::process::ProcessMutex;
use crate::protocol::action::{self, CommitTimes, Metadata, Protocol};
use crate::protocol::calendar::TimeZoneSpec;
use crate::protocol::features::{self, ColumnMapping};
use crate::protocol::schema::{DataType, StructField, StructType};
use crate::protocol::{log_path, properties};
use crate::reconcile::{
    self, CommitCache, FileStream, FileStreamRequest, NonFileActions, SeenFileKeys, TableActions,
};
use crate::store::TableStores;

/// Options for opening a table, apart from the version.
#[derive(Debug, Clone, Copy)]
pub struct ReadOptions {
    /// The time zone in which timestamps without a zone are interpreted.
    pub zone: TimeZoneSpec,
    /// Whether the caller acts for the table's catalog, that is, supplied a log tail or the newest
    /// version.
    pub catalog: bool,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            zone: TimeZoneSpec::UTC,
            catalog: false,
        }
    }
}

/// A version of a table. Clones share all state.
#[derive(Debug, Clone)]
pub struct Snapshot(Arc<SnapshotState>);

#[derive(Debug)]
struct SnapshotState {
    log: DeltaLog,
    options: ReadOptions,
    segment: SegmentCell,
    commit_cache: Arc<CommitCache>,
    protocol: Protocol,
    metadata: Metadata,
    schema: StructType,
    mapping: ColumnMapping,
    checksum: Option<ChecksumFileContents>,
    /// Whether protocol and metadata come from the version checksum instead of the log.
    is_from_checksum: bool,
    warnings: ProcessMutex<SnapshotWarnings>,
    rulings: ProcessMutex<CheckpointRulings>,
    non_file_actions: OnceLock<NonFileActions>,
    timestamp_ms: OnceLock<i64>,
    /// The fingerprint of the version's own commit, if it was read.
    fingerprint: OnceLock<CommitFingerprint>,
    /// Set once the version's own commit is known to be whole.
    is_commit_checked: OnceLock<()>,
    row_id_mark: OnceLock<i64>,
    plan_cache: ProcessMutex<Option<Arc<dyn std::any::Any + Send + Sync>>>,
}

/// Warnings about a table that could be read nevertheless; each one is reported once.
#[derive(Debug, Default)]
struct SnapshotWarnings {
    all: Vec<String>,
    reported: usize,
}

impl SnapshotWarnings {
    fn add(&mut self, text: String) {
        if !self.all.contains(&text) {
            self.all.push(text);
        }
    }
}

/// Checkpoints up to this size are read completely before the first file is returned.
const READ_AT_ONCE: u64 = 4 << 20;
/// Up to this size the commits of a local log are read instead of trusting the version checksum.
const LOOKED_AT: u64 = 16 << 20;
/// Above this size the newest commit is not read to verify the version checksum.
const CHECKED_COMMIT: u64 = 1 << 20;
/// Of a longer commit this many bytes are read to verify that it does not end within a line.
const TAIL: u64 = 64 << 10;

impl Snapshot {
    /// Opens `version` (the newest if `None`).
    ///
    /// # Errors
    /// [`Error::NotFound`] for a missing table or version, [`Error::Invalid`] for an invalid
    /// setting, [`Error::Unsupported`] for a table that requires features that deltafast does not
    /// support, [`Error::Corrupt`] for a damaged log.
    pub fn open(log: DeltaLog, version: Option<i64>, options: ReadOptions) -> Result<Self> {
        // Invalid settings are reported before any work is done.
        exec::memory_limit()?;
        let (listing, segment) = log.segment(version)?;
        Self::build(log, &listing, segment, options, Arc::default())
    }

    fn build(
        log: DeltaLog,
        listing: &LogListing,
        segment: LogSegment,
        options: ReadOptions,
        texts: Arc<CommitCache>,
    ) -> Result<Self> {
        let checksum = segment
            .checksum
            .as_ref()
            .and_then(|file| log.checksum(file));
        if let Some(checksum) = &checksum
            && is_checksum_credible(checksum, &log, &segment, &texts)?
            && let Ok(table) = CheckedTable::new(
                TableActions {
                    protocol: checksum.protocol.clone(),
                    metadata: checksum.metadata.clone(),
                },
                &log,
                segment.version,
            )
        {
            return Self::assemble(
                log,
                segment,
                options,
                texts,
                table,
                (Some(checksum.clone()), true),
                SnapshotWarnings::default(),
            );
        }
        let mut warnings = SnapshotWarnings::default();
        let reader = TableReader {
            log: &log,
            commit_cache: &texts,
            checksum: checksum.as_ref(),
        };
        let LoggedTable {
            table,
            segment,
            contradicted,
        } = reader.read(listing, segment, &mut warnings)?;
        if !contradicted.is_empty() {
            warnings.add(checksum_warning(segment.version, &contradicted));
        }
        Self::assemble(
            log,
            segment,
            options,
            texts,
            table,
            (checksum.filter(|_| contradicted.is_empty()), false),
            warnings,
        )
    }

    fn assemble(
        log: DeltaLog,
        segment: LogSegment,
        options: ReadOptions,
        texts: Arc<CommitCache>,
        table: CheckedTable,
        (checksum, believed): (Option<ChecksumFileContents>, bool),
        warnings: SnapshotWarnings,
    ) -> Result<Self> {
        let version = segment.version;
        let known = segment
            .last_commit
            .as_ref()
            .and_then(|commit| texts.cached(commit.version));
        let CheckedTable {
            actions: TableActions { protocol, metadata },
            mapping,
            schema,
        } = table;
        if protocol.has_reader_feature("catalogManaged")
            && !options.catalog
            && log.catalog().is_none()
        {
            return Err(Error::unsupported_feature(
                "catalogManaged",
                "the table has the feature `catalogManaged`: its catalog alone knows its newest version; open it with a `committer`, or to read with the catalog's `log_tail` or `max_table_version`",
            )
            .at_version(version));
        }
        let snapshot = Self(Arc::new(SnapshotState {
            log,
            options,
            segment: SegmentCell::new(segment),
            commit_cache: texts,
            protocol,
            metadata,
            schema,
            mapping,
            checksum,
            is_from_checksum: believed,
            warnings: ProcessMutex::new(warnings),
            rulings: ProcessMutex::default(),
            non_file_actions: OnceLock::new(),
            timestamp_ms: OnceLock::new(),
            fingerprint: OnceLock::new(),
            is_commit_checked: OnceLock::new(),
            row_id_mark: OnceLock::new(),
            plan_cache: ProcessMutex::default(),
        }));
        if let Some(text) = known {
            snapshot.remember_commit(&text);
            if commit::is_blank(&text) {
                snapshot.warnings().add(format!(
                    "version {version} has no actions: its commit is empty, as after a loss of power; what it held is lost"
                ));
            }
        }
        Ok(snapshot)
    }

    /// The version.
    #[must_use]
    pub fn version(&self) -> i64 {
        self.segment().version
    }

    /// The files of the log that make up the version.
    #[must_use]
    pub fn segment(&self) -> Arc<LogSegment> {
        self.0.segment.get()
    }

    /// The log of the table.
    #[must_use]
    pub fn log(&self) -> &DeltaLog {
        &self.0.log
    }

    /// The table's stores.
    #[must_use]
    pub fn stores(&self) -> &Arc<TableStores> {
        self.0.log.stores()
    }

    /// `protocol`
    #[must_use]
    pub fn protocol(&self) -> &Protocol {
        &self.0.protocol
    }

    /// `metaData`
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.0.metadata
    }

    /// The schema.
    #[must_use]
    pub fn schema(&self) -> &StructType {
        &self.0.schema
    }

    /// The column mapping mode.
    #[must_use]
    pub fn mapping(&self) -> ColumnMapping {
        self.0.mapping
    }

    /// The options with which the snapshot was opened.
    #[must_use]
    pub fn options(&self) -> ReadOptions {
        self.0.options
    }

    /// Returns and clears the warnings: files of the log that are wrong but not required.
    #[must_use]
    pub fn take_warnings(&self) -> Vec<String> {
        let mut warnings = self.warnings();
        let new = warnings
            .all
            .get(warnings.reported..)
            .unwrap_or_default()
            .to_vec();
        warnings.reported = warnings.all.len();
        new
    }

    fn warnings(&self) -> std::sync::MutexGuard<'_, SnapshotWarnings> {
        self.0.warnings.lock()
    }

    /// Compares the version checksum with other values that were found for the version.
    fn check(&self, compare: impl FnOnce(&ChecksumFileContents) -> Vec<&'static str>) {
        let wrong = self.0.checksum.as_ref().map(compare).unwrap_or_default();
        if !wrong.is_empty() {
            self.warnings()
                .add(checksum_warning(self.version(), &wrong));
        }
    }

    /// The partition columns, in the order of the metadata.
    #[must_use]
    pub fn partition_fields(&self) -> Vec<&StructField> {
        self.0
            .metadata
            .partition_columns
            .iter()
            .filter_map(|name| self.0.schema.field(name))
            .collect()
    }

    /// The name of a column in the log and in data files.
    #[must_use]
    pub fn physical_name<'a>(&self, field: &'a StructField) -> &'a str {
        if self.0.mapping == ColumnMapping::None {
            &field.name
        } else {
            field.physical_name()
        }
    }

    /// State that a plan keeps for the next one; see `scan::plan`.
    pub fn plan_cache(
        &self,
    ) -> std::sync::MutexGuard<'_, Option<Arc<dyn std::any::Any + Send + Sync>>> {
        self.0.plan_cache.lock()
    }

    /// Runs `work` on the segment, and again on fallback segments as long as checkpoints or
    /// compactions turn out to be damaged.
    ///
    /// # Errors
    /// The first error of `work` if no fallback succeeds.
    pub fn with_segment<T>(&self, work: impl Fn(&LogSegment) -> Result<T>) -> Result<T> {
        let segment = self.segment();
        let used = with_fallback(&self.0.log, None, segment.as_ref().clone(), work)?;
        if let Some(damage) = used.damage {
            self.warn_of_checkpoint(&damage);
            self.replace_segment(&used.segment);
        }
        Ok(used.value)
    }

    /// Uses a checkpoint of this version that was just written, for this snapshot and those made
    /// from it. The amount of log that a table handle holds and reads again then does not grow with
    /// the number of its commits.
    pub fn use_checkpoint(&self, checkpoint: CheckpointInstance) {
        let segment = self.segment().on_checkpoint(checkpoint);
        self.0.commit_cache.evict_before(
            segment
                .known_commits()
                .next()
                .map_or(segment.version, |first| first.version),
        );
        self.replace_segment(&segment);
    }

    /// Uses `segment` from now on.
    fn replace_segment(&self, segment: &LogSegment) {
        self.0.segment.replace(segment.clone());
    }

    /// Streams live files or tombstones with the requested columns. Use it for results that are
    /// returned immediately; results that depend on all files are computed within
    /// [`Snapshot::with_segment`] of [`Snapshot::files_in`] or of [`Snapshot::finished_files`].
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::NotFound`] name the file.
    pub fn files(
        &self,
        kind: FileActionKind,
        wanted: FileActionProjection,
        cancel: &CancellationToken,
    ) -> Result<FileStream> {
        self.with_segment(|segment| self.files_in(segment, kind, wanted.clone(), cancel))
    }

    /// Streams the files of one of the segments that can represent this version. Live files are
    /// counted, and at the end of the stream their number is compared with the version checksum and
    /// `_last_checkpoint`: the error for a checkpoint that turns out to be wrong is the last item.
    ///
    /// # Errors
    /// As [`Snapshot::files`].
    pub fn files_in(
        &self,
        segment: &LogSegment,
        kind: FileActionKind,
        wanted: FileActionProjection,
        cancel: &CancellationToken,
    ) -> Result<FileStream> {
        self.check_not_refuted(segment)?;
        let mut stream = self.uncompared_files(segment, kind, wanted, cancel)?;
        if kind == FileActionKind::Adds
            && let Some(basis) = self.comparison_basis(segment)
        {
            let (snapshot, cancel) = (self.clone(), cancel.clone());
            stream = stream
                .with_end_check(move |counts| snapshot.check_counts(&basis, &counts, &cancel));
        }
        // Files that fit in memory are read completely here, so that damage anywhere in a
        // checkpoint is found before the first file is returned.
        let commits: u64 = segment
            .replay
            .iter()
            .map(|commit| commit.file.size.unwrap_or(0))
            .sum();
        let fits = stream
            .checkpoint_bytes()
            .is_some_and(|bytes| bytes <= READ_AT_ONCE)
            && commits <= LOOKED_AT;
        if fits {
            stream.read_to_end()
        } else {
            Ok(stream)
        }
    }

    /// As `files_in`, without the comparison.
    fn uncompared_files(
        &self,
        segment: &LogSegment,
        kind: FileActionKind,
        wanted: FileActionProjection,
        cancel: &CancellationToken,
    ) -> Result<FileStream> {
        let request = FileStreamRequest {
            kind,
            wanted: Arc::new(wanted),
            cancel: cancel.clone(),
        };
        reconcile::files(segment, &self.0.commit_cache, self.stores().root(), request)
    }

    /// The live files that commits after `version` added, and all keys that these commits contain.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::NotFound`] name the file.
    pub fn files_since(
        &self,
        version: i64,
        like: &SeenFileKeys,
        wanted: FileActionProjection,
        cancel: &CancellationToken,
    ) -> Result<(Vec<FileBatch>, SeenFileKeys)> {
        let segment = self.segment();
        let commits: Vec<CommitFile> = segment
            .known_commits()
            .filter(|c| c.version > version)
            .cloned()
            .collect();
        let newer = LogSegment {
            checkpoint: None,
            replay: commits.clone(),
            commits,
            checksum: None,
            ..segment.as_ref().clone()
        };
        let request = FileStreamRequest {
            kind: FileActionKind::Adds,
            wanted: Arc::new(wanted),
            cancel: cancel.clone(),
        };
        let mut stream = reconcile::files_after(
            SeenFileKeys::with_same_seeds(like),
            &newer,
            &self.0.commit_cache,
            self.stores().root(),
            request,
        )?;
        let batches = stream.by_ref().collect::<Result<Vec<_>>>()?;
        Ok((batches, stream.into_seen()))
    }

    /// Whether every commit after `version` is in the segment.
    #[must_use]
    pub fn has_commits_since(&self, version: i64) -> bool {
        let segment = self.segment();
        version == segment.version
            || segment
                .known_commits()
                .next()
                .is_some_and(|c| c.version <= version + 1)
    }

    /// Application transactions and domains.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::NotFound`] name the file.
    pub fn non_file_actions(&self) -> Result<&NonFileActions> {
        if let Some(sets) = self.0.non_file_actions.get() {
            return Ok(sets);
        }
        let read = |segment: &LogSegment| {
            reconcile::read_non_file_actions(segment, &self.0.commit_cache, self.stores().root())
        };
        let mut sets = self.with_segment(read)?;
        let expires = self
            .0
            .metadata
            .configuration
            .contains_key("delta.setTransactionRetentionDuration");
        let against = |sets: &NonFileActions| {
            let of_domains =
                |checksum: &ChecksumFileContents| checksum.against_domains(&sets.domains);
            let of_transactions = |checksum: &ChecksumFileContents| {
                if expires {
                    Vec::new()
                } else {
                    checksum.against_transactions(&sets.transactions)
                }
            };
            self.0
                .checksum
                .as_ref()
                .map(|checksum| [of_transactions(checksum), of_domains(checksum)].concat())
                .unwrap_or_default()
        };
        let segment = self.segment();
        if !against(&sets).is_empty()
            && let Some(checkpoint) = &segment.checkpoint
            && let ArbitrationResult::Refuted(replayed, weaker) = arbitrate(
                self.log(),
                segment.version,
                (checkpoint, segment.skip),
                read,
                |other| *other == sets,
                |sets| against(sets).is_empty(),
            )?
        {
            self.warn_of_checkpoint(&contradiction_error(
                checkpoint,
                "the commits that it stands for in transactions or domains",
            ));
            self.replace_segment(&weaker);
            sets = replayed;
        }
        drop_expired_txns(&mut sets, &self.0.metadata);
        self.check(|_| against(&sets));
        Ok(self.0.non_file_actions.get_or_init(|| sets))
    }

    /// The snapshot of `version` (the newest if `None`); this snapshot if it already has that
    /// version.
    ///
    /// # Errors
    /// As [`Snapshot::open`]; [`Error::Invalid`] if the table at this location has been replaced by
    /// another one, or its version decreased.
    pub fn at(&self, version: Option<i64>) -> Result<Self> {
        let current = self.version();
        if version == Some(current) {
            return Ok(self.clone());
        }
        if version.is_none_or(|v| v > current)
            && let Some(newer) = self.advance_to(version)?
        {
            return Ok(newer);
        }
        let opened = Self::open(self.0.log.clone(), version, self.0.options)?;
        self.check_same(&opened.0.metadata)?;
        if version.is_none() {
            self.check_forward(&opened)?;
        }
        Ok(opened)
    }

    fn check_same(&self, metadata: &Metadata) -> Result<()> {
        if metadata.id == self.0.metadata.id {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "the table was replaced by another one (its id was `{}` and is `{}`); open it again",
            self.0.metadata.id, metadata.id
        )))
    }

    /// Reads the commits after this version one by one; `None` if that is not possible (too many
    /// commits, or a gap).
    fn advance_to(&self, version: Option<i64>) -> Result<Option<Self>> {
        /// For more commits than this, a new listing is made, which may find a newer checkpoint.
        const STEPS: i64 = 100;
        let segment = self.segment();
        let store = self.stores().root();
        let mut new: Vec<CommitFile> = Vec::new();
        let mut next = segment.version + 1;
        let tail = self
            .0
            .log
            .catalog()
            .map(|catalog| LogTail::from_catalog(catalog.as_ref()))
            .transpose()?;
        while version.is_none_or(|v| next <= v) {
            if next > segment.version + STEPS {
                return Ok(None);
            }
            if let Some(tail) = &tail {
                if tail.latest.is_none_or(|latest| next > latest) {
                    // A listing shows which versions exist.
                    if version.is_some() {
                        return Ok(None);
                    }
                    break;
                }
                if let Some(commit) = tail.get(next) {
                    new.push(self.0.log.tail_file(commit)?);
                    next += 1;
                    continue;
                }
            }
            let path = log_path::commit(next);
            match store.head(&path) {
                Ok(meta) => {
                    let file = crate::store::StoreObject {
                        store: Arc::clone(store),
                        path,
                        size: Some(meta.size),
                    };
                    new.push(CommitFile {
                        first: next,
                        version: next,
                        file,
                        modified_ms: meta.modified_ms,
                    });
                }
                Err(error) if error.is_not_found() && version.is_none() && tail.is_none() => break,
                Err(error) if error.is_not_found() => return Ok(None),
                Err(error) => return Err(error),
            }
            next += 1;
        }
        // The following commits may belong to another table, and missing ones may have been cleaned
        // up.
        let is_current = if self.0.log.is_authority() {
            self.is_in_log()?
        } else {
            !new.is_empty()
                || self
                    .0
                    .log
                    .hint()
                    .is_none_or(|hint| hint.version <= segment.version)
        };
        match new.is_empty() {
            _ if !is_current => Ok(None),
            true => Ok(Some(self.clone())),
            false => self.with_commits(new).map(Some),
        }
    }

    /// The snapshot with these commits applied: ascending, starting with the next version.
    ///
    /// # Errors
    /// As [`Snapshot::open`]; [`Error::Invalid`] if the table at this location has been replaced by
    /// another one.
    pub fn with_commits(&self, new: Vec<CommitFile>) -> Result<Self> {
        let segment = self.segment();
        let mut longer = segment.as_ref().clone();
        let mut table = TableActions {
            protocol: self.0.protocol.clone(),
            metadata: self.0.metadata.clone(),
        };
        let mut sets = self.0.non_file_actions.get().cloned();
        let take = ActionSelection {
            protocol_and_metadata: true,
            transactions_and_domains: sets.is_some(),
            ..ActionSelection::default()
        };
        for commit in &new {
            invariant!(
                commit.version == longer.version + 1,
                "commit {} cannot follow version {}",
                commit.version,
                longer.version
            );
            longer.version = commit.version;
            let text = self.0.commit_cache.get(commit)?;
            let singles = commit::non_file_actions(&text, &take)
                .at_file(&commit.file.path)
                .at_version(commit.version)?;
            if let Some(sets) = &mut sets {
                sets.advance(&singles);
            }
            for single in singles {
                match single {
                    NonFileAction::Protocol(protocol) => table.protocol = protocol,
                    NonFileAction::Metadata(metadata) => table.metadata = *metadata,
                    _ => {}
                }
            }
        }
        self.check_same(&table.metadata)?;
        longer.last_commit = new.last().cloned().or(longer.last_commit);
        longer.checksum = None;
        let table = CheckedTable::new(table, &self.0.log, longer.version)?;
        longer.commits.extend(new.iter().cloned());
        longer.replay.extend(new);
        let newer = Self::assemble(
            self.0.log.clone(),
            longer,
            self.0.options,
            Arc::clone(&self.0.commit_cache),
            table,
            (None, false),
            SnapshotWarnings::default(),
        )?;
        // A table that tracks rows again after the feature was dropped begins with new ids.
        if let Some(mark) = self.0.row_id_mark.get()
            && newer.0.protocol.has_writer_feature("rowTracking")
        {
            let _ = newer.0.row_id_mark.set(*mark);
        }
        if newer.0.metadata == self.0.metadata && newer.0.protocol == self.0.protocol {
            newer.plan_cache().clone_from(&self.plan_cache());
            // If the retention changed, actions that were dropped as expired would have to be read
            // again.
            if let Some(mut sets) = sets {
                drop_expired_txns(&mut sets, &newer.0.metadata);
                let _ = newer.0.non_file_actions.set(sets);
            }
        }
        Ok(newer)
    }

    /// Checks every line of the version's commit, before another one follows it.
    ///
    /// # Errors
    /// [`Error::Corrupt`] names file and line.
    pub fn check_newest_commit(&self) -> Result<()> {
        if self.0.is_commit_checked.get().is_some() {
            return Ok(());
        }
        if let Some(commit) = &self.segment().last_commit {
            let text = self.0.commit_cache.get(commit)?;
            commit::check_all(&text)
                .at_file(&commit.file.path)
                .at_version(commit.version)?;
        }
        let _ = self.0.is_commit_checked.set(());
        Ok(())
    }

    /// The high-water mark of row ids after a comparison with the files; computed once, also for
    /// the versions that follow.
    ///
    /// # Errors
    /// Errors of `compute`.
    pub fn verified_row_id_mark(&self, compute: impl FnOnce() -> Result<i64>) -> Result<i64> {
        if let Some(mark) = self.0.row_id_mark.get() {
            return Ok(*mark);
        }
        let mark = compute()?;
        Ok(*self.0.row_id_mark.get_or_init(|| mark))
    }

    /// Records that this process wrote the version's commit.
    pub fn trust_newest_commit(&self) {
        let _ = self.0.is_commit_checked.set(());
    }

    /// Adds the content of a commit that is known without reading it to the cache.
    pub fn cache_commit(&self, version: i64, text: &bytes::Bytes) {
        self.0.commit_cache.insert(version, text);
    }

    /// Returns an error for maintenance that the protocol reserves to the catalog of a
    /// catalog-managed table, unless the catalog permits it.
    ///
    /// # Errors
    /// [`Error::Unsupported`]; errors of the catalog.
    pub fn check_maintenance(&self, work: MaintenanceOperation) -> Result<()> {
        if self.permits_maintenance(work)? {
            return Ok(());
        }
        let name = work.name();
        Err(Error::unsupported_feature(
            "catalogManaged",
            format!(
                "the table has the feature `catalogManaged`, so `{name}` is up to its catalog; only a `committer` whose `permits` holds `{name}` allows it"
            ),
        ))
    }

    /// Whether maintenance that the protocol reserves to the catalog of a catalog-managed table is
    /// permitted.
    ///
    /// # Errors
    /// Errors of the catalog.
    pub fn permits_maintenance(&self, work: MaintenanceOperation) -> Result<bool> {
        if !self.protocol().has_writer_feature("catalogManaged") {
            return Ok(true);
        }
        self.log()
            .catalog()
            .map_or(Ok(false), |catalog| catalog.permits(work))
    }

    /// Whether the time of this version is an in-commit timestamp, by protocol, property and
    /// enablement version.
    fn has_in_commit_timestamp(&self, version: i64) -> bool {
        let metadata = &self.0.metadata;
        if !self.0.protocol.has_writer_feature("inCommitTimestamp")
            || !metadata.flag("delta.enableInCommitTimestamps")
        {
            return false;
        }
        let since = metadata
            .configuration
            .get("delta.inCommitTimestampEnablementVersion")
            .and_then(|v| v.parse::<i64>().ok());
        since.is_none_or(|since| version >= since)
    }

    /// The version and time from which in-commit timestamps are enabled, if they are.
    #[must_use]
    pub fn in_commit_timestamps_since(&self) -> Option<(i64, i64)> {
        if !self.has_in_commit_timestamp(self.version()) {
            return None;
        }
        let number = |key: &str| {
            self.0
                .metadata
                .configuration
                .get(key)
                .and_then(|v| v.parse::<i64>().ok())
        };
        Some((
            number("delta.inCommitTimestampEnablementVersion").unwrap_or(0),
            number("delta.inCommitTimestampEnablementTimestamp").unwrap_or(i64::MIN),
        ))
    }

    /// The time of the version in milliseconds since the epoch: its in-commit timestamp where
    /// enabled, else the time of its commit file.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where in-commit timestamps are enabled and the commit has none.
    pub fn timestamp_ms(&self) -> Result<i64> {
        if let Some(known) = self.0.timestamp_ms.get() {
            return Ok(*known);
        }
        let segment = self.segment();
        let time = match &segment.last_commit {
            Some(commit) if self.has_in_commit_timestamp(segment.version) => {
                match self
                    .0
                    .checksum
                    .as_ref()
                    .filter(|_| self.0.is_from_checksum)
                    .and_then(|c| c.in_commit_timestamp_opt)
                {
                    Some(time) => time,
                    None => {
                        let time = in_commit_timestamp(&self.0.commit_cache, commit)?;
                        self.check(|checksum| checksum.against_time(time));
                        time
                    }
                }
            }
            Some(commit) if commit.modified_ms != 0 => commit.modified_ms,
            Some(commit) => commit.file.store.head(&commit.file.path)?.modified_ms,
            None => match segment.checkpoint.as_ref().and_then(|c| c.files.first()) {
                Some(file) => file.store.head(&file.path)?.modified_ms,
                None => 0,
            },
        };
        Ok(*self.0.timestamp_ms.get_or_init(|| time))
    }

    /// The content of a commit.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Storage`] name the file.
    pub fn commit_bytes(&self, commit: &CommitFile) -> Result<bytes::Bytes> {
        self.0.commit_cache.get(commit)
    }
}

/// Reads protocol and metadata from the log and compares them with the version checksum.
struct TableReader<'a> {
    log: &'a DeltaLog,
    commit_cache: &'a Arc<CommitCache>,
    checksum: Option<&'a ChecksumFileContents>,
}

/// Protocol and metadata as the log has them.
struct LoggedTable {
    table: CheckedTable,
    /// The segment that could be read.
    segment: LogSegment,
    /// The fields in which the version checksum differs.
    contradicted: Vec<&'static str>,
}

impl TableReader<'_> {
    /// Reads a segment, or a weaker one if a checkpoint or compaction is damaged or wrong.
    fn read(
        &self,
        listing: &LogListing,
        segment: LogSegment,
        warnings: &mut SnapshotWarnings,
    ) -> Result<LoggedTable> {
        let refused: RefCell<Option<Error>> = RefCell::new(None);
        let used = with_fallback(self.log, Some(listing), segment, |segment: &LogSegment| {
            self.read_checked(segment, &refused)
        });
        let FallbackResult {
            value: (table, is_from_checkpoint),
            segment,
            damage,
        } = used.map_err(|error| refused.take().unwrap_or(error))?;
        if let Some(damage) = damage {
            warnings.add(fallback_warning(&damage));
        }
        let contradicted = self.contradictions(&table.actions);
        if is_from_checkpoint
            && !contradicted.is_empty()
            && let Some((replayed, weaker)) =
                self.refute_checkpoint(&table.actions, &segment, warnings)?
        {
            return Ok(LoggedTable {
                contradicted: self.contradictions(&replayed),
                table: CheckedTable::new(replayed, self.log, weaker.version)?,
                segment: weaker,
            });
        }
        Ok(LoggedTable {
            table,
            segment,
            contradicted,
        })
    }

    /// The protocol and metadata of a segment, and whether one of them comes from the checkpoint.
    fn read_actions(&self, segment: &LogSegment) -> Result<(TableActions, bool)> {
        reconcile::read_table_actions(segment, self.commit_cache, self.log.stores().root())
    }

    /// The same, checked; `refused` keeps the first error that is treated as damage.
    fn read_checked(
        &self,
        segment: &LogSegment,
        refused: &RefCell<Option<Error>>,
    ) -> Result<(CheckedTable, bool)> {
        let (actions, is_from_checkpoint) = self.read_actions(segment)?;
        match (
            CheckedTable::check(&actions, self.log, segment.version),
            &segment.checkpoint,
        ) {
            (Ok((mapping, schema)), _) => {
                let table = CheckedTable {
                    actions,
                    mapping,
                    schema,
                };
                Ok((table, is_from_checkpoint))
            }
            // Invalid values are treated as damage of the checkpoint, unless the version checksum
            // has the same values.
            (Err(error), Some(checkpoint))
                if is_from_checkpoint
                    && (self.checksum.is_none() || !self.contradictions(&actions).is_empty()) =>
            {
                let damage = Error::corrupt(format!("the checkpoint has invalid values: {error}"));
                refused.borrow_mut().get_or_insert(error);
                Err(damage
                    .at_file(checkpoint_path(checkpoint))
                    .at_version(checkpoint.version))
            }
            (Err(error), _) => Err(error),
        }
    }

    /// The fields in which the version checksum, if there is one, contradicts the log.
    fn contradictions(&self, actions: &TableActions) -> Vec<&'static str> {
        self.checksum
            .map(|checksum| checksum.against_table(&actions.protocol, &actions.metadata))
            .unwrap_or_default()
    }

    /// Reads again without a checkpoint that the version checksum contradicts; returns the result
    /// if it differs.
    fn refute_checkpoint(
        &self,
        actions: &TableActions,
        segment: &LogSegment,
        warnings: &mut SnapshotWarnings,
    ) -> Result<Option<(TableActions, LogSegment)>> {
        let Some(checkpoint) = &segment.checkpoint else {
            return Ok(None);
        };
        let ruling = arbitrate(
            self.log,
            segment.version,
            (checkpoint, segment.skip),
            |segment: &LogSegment| self.read_actions(segment).map(|(actions, _)| actions),
            |other: &TableActions| actions.differences(other).is_empty(),
            |other: &TableActions| self.contradictions(other).is_empty(),
        )?;
        let ArbitrationResult::Refuted(replayed, weaker) = ruling else {
            return Ok(None);
        };
        let fields = actions.differences(&replayed).join("`, `");
        warnings.add(fallback_warning(&contradiction_error(
            checkpoint,
            &format!("the commits that it stands for in `{fields}`"),
        )));
        Ok(Some((replayed, *weaker)))
    }
}

/// Protocol and metadata that were checked to be readable by this release.
struct CheckedTable {
    actions: TableActions,
    mapping: ColumnMapping,
    schema: StructType,
}

impl CheckedTable {
    fn new(actions: TableActions, log: &DeltaLog, version: i64) -> Result<Self> {
        let (mapping, schema) = Self::check(&actions, log, version)?;
        Ok(Self {
            actions,
            mapping,
            schema,
        })
    }

    /// The column mapping and schema, if everything required for reading is valid.
    fn check(
        actions: &TableActions,
        log: &DeltaLog,
        version: i64,
    ) -> Result<(ColumnMapping, StructType)> {
        let TableActions { protocol, metadata } = actions;
        features::check_readable(protocol)
            .at_file(log.stores().root().url())
            .at_version(version)?;
        if !metadata.format.provider.eq_ignore_ascii_case("parquet") {
            return Err(Error::unsupported(format!(
                "the table's data files are `{}`; only parquet is supported",
                metadata.format.provider
            ))
            .at_version(version));
        }
        let mapping = features::column_mapping(protocol, metadata).at_version(version)?;
        let schema = StructType::parse(&metadata.schema_string).at_version(version)?;
        validate_mapping(&schema, mapping).at_version(version)?;
        for (n, column) in metadata.partition_columns.iter().enumerate() {
            if metadata
                .partition_columns
                .iter()
                .take(n)
                .any(|other| other == column)
            {
                return Err(Error::corrupt(format!(
                    "the partition column `{column}` is named twice"
                ))
                .at_version(version));
            }
            if schema.field(column).is_none() {
                return Err(Error::corrupt(format!(
                    "the partition column `{column}` is not in the schema"
                ))
                .at_version(version));
            }
        }
        Ok((mapping, schema))
    }
}

/// Checks that every field has the id or name that the mapping mode requires, and that it is
/// unique.
fn validate_mapping(schema: &StructType, mapping: ColumnMapping) -> Result<()> {
    fn fields(data_type: &DataType, visit: &dyn Fn(&StructType) -> Result<()>) -> Result<()> {
        match data_type {
            DataType::Struct(inner) => {
                visit(inner)?;
                inner
                    .fields
                    .iter()
                    .try_for_each(|field| fields(&field.data_type, visit))
            }
            DataType::Array(array) => fields(&array.element, visit),
            DataType::Map(map) => {
                fields(&map.key, visit)?;
                fields(&map.value, visit)
            }
            _ => Ok(()),
        }
    }
    if mapping == ColumnMapping::None {
        return Ok(());
    }
    fields(&DataType::Struct(Arc::new(schema.clone())), &|parent| {
        let (mut ids, mut names) = (HashSet::new(), HashSet::new());
        for field in &parent.fields {
            if !field
                .metadata
                .get("delta.columnMapping.physicalName")
                .is_some_and(serde_json::Value::is_string)
            {
                return Err(Error::corrupt(format!(
                    "the column `{}` has no `delta.columnMapping.physicalName`",
                    field.name
                ))
                .at_column(&field.name));
            }
            if !names.insert(field.physical_name()) {
                return Err(Error::corrupt(format!(
                    "two columns have the physical name `{}`",
                    field.physical_name()
                ))
                .at_column(&field.name));
            }
            match field.field_id() {
                Some(id) if !ids.insert(id) => {
                    return Err(Error::corrupt(format!(
                        "two columns have the `delta.columnMapping.id` {id}"
                    ))
                    .at_column(&field.name));
                }
                None if mapping == ColumnMapping::Id => {
                    return Err(Error::corrupt(format!(
                        "the column `{}` has no `delta.columnMapping.id` of 32 bits",
                        field.name
                    ))
                    .at_column(&field.name));
                }
                _ => {}
            }
        }
        Ok(())
    })
}

/// Removes application transactions that are older than the table's retention. If that cannot be
/// read all are kept: without its transaction a batch would be written a second time.
fn drop_expired_txns(sets: &mut NonFileActions, metadata: &Metadata) {
    const RETENTION: &str = "delta.setTransactionRetentionDuration";
    if metadata.configuration.contains_key(RETENTION)
        && let Ok(retention) = properties::retention_ms(&metadata.configuration, RETENTION)
    {
        let oldest = now_ms().saturating_sub(retention);
        sets.transactions
            .retain(|_, txn| txn.last_updated.is_some_and(|updated| updated > oldest));
    }
}

/// The in-commit timestamp of a commit.
///
/// # Errors
/// [`Error::Corrupt`] when the commit has none.
pub fn in_commit_timestamp(texts: &CommitCache, commit: &CommitFile) -> Result<i64> {
    let text = texts.get(commit)?;
    let take = ActionSelection {
        info: true,
        ..ActionSelection::default()
    };
    let missing = || {
        Error::corrupt("the table has in-commit timestamps but the commit has no `commitInfo.inCommitTimestamp`")
            .at_file(&commit.file.path)
            .at_version(commit.version)
    };
    for single in commit::non_file_actions(&text, &take)
        .at_file(&commit.file.path)
        .at_version(commit.version)?
    {
        if let NonFileAction::CommitInfo(info) = single {
            let times: CommitTimes =
                action::from_json("commitInfo", &info).at_version(commit.version)?;
            return times.in_commit_timestamp.ok_or_else(missing);
        }
    }
    Err(missing())
}

/// Checks that a long commit does not end within a line, without reading all of it.
fn check_commit_tail(commit: &CommitFile, size: u64) -> Result<()> {
    let mut length = TAIL;
    while length < size {
        let tail = json_lines::read_range(&commit.file, size - length, size)?;
        if let Some(checked) = commit::check_tail(&tail) {
            return checked
                .at_file(&commit.file.path)
                .at_version(commit.version);
        }
        length = length.saturating_mul(16);
    }
    // A single line.
    Ok(())
}

/// Whether protocol and metadata of a version checksum are used: if the log is remote or long,
/// unless the version's own commit contradicts it.
fn is_checksum_credible(
    checksum: &ChecksumFileContents,
    log: &DeltaLog,
    segment: &LogSegment,
    texts: &Arc<CommitCache>,
) -> Result<bool> {
    // Reading a small local log is cheap and more reliable than a version checksum.
    if log.stores().root().url().starts_with("file:")
        && segment
            .commits
            .iter()
            .map(|c| c.file.size.unwrap_or(0))
            .sum::<u64>()
            <= LOOKED_AT
    {
        return Ok(false);
    }
    if features::check_readable(&checksum.protocol).is_err()
        || StructType::parse(&checksum.metadata.schema_string).is_err()
    {
        return Ok(false);
    }
    let Some(commit) = &segment.last_commit else {
        return Ok(true);
    };
    match commit.file.size {
        Some(size) if size <= CHECKED_COMMIT => {}
        size => {
            check_commit_tail(commit, size.unwrap_or(0))?;
            return Ok(true);
        }
    }
    let text = texts.get(commit)?;
    let take = ActionSelection {
        protocol_and_metadata: true,
        ..ActionSelection::default()
    };
    let (mut protocol, mut metadata) = (checksum.protocol.clone(), checksum.metadata.clone());
    for single in commit::non_file_actions(&text, &take)
        .at_file(&commit.file.path)
        .at_version(commit.version)?
    {
        match single {
            NonFileAction::Protocol(written) => protocol = written,
            NonFileAction::Metadata(written) => metadata = *written,
            _ => {}
        }
    }
    Ok(checksum.against_table(&protocol, &metadata).is_empty())
}
