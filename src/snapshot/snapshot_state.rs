//! The state of a snapshot, and what it answers from it.

use super::arbitration::{ArbitrationResult, CheckpointRulings, arbitrate, contradiction_error};
use super::commit_fingerprint::CommitFingerprint;
use super::log_damage::{checksum_warning, with_fallback};
use super::segment_cell::SegmentCell;
use super::snapshot_warnings::SnapshotWarnings;
use super::table_reader::{
    CheckedTable, LOOKED_AT, LoggedTable, TableReader, drop_expired_txns, is_checksum_credible,
};
use crate::error::{CallOption, Error, Result};
use crate::exec::{self, CancellationToken};
use crate::log::{
    CheckpointInstance, ChecksumFileContents, DeltaLog, LogListing, LogSegment,
    MaintenanceOperation,
};
use crate::parse::FileActionProjection;
use crate::parse::checkpoint::FileActionKind;
use crate::parse::commit::{self};
use crate::process::ProcessMutex;
use crate::protocol::action::{Metadata, Protocol};
use crate::protocol::calendar::TimeZoneSpec;
use crate::protocol::features::ColumnMapping;
use crate::protocol::schema::{StructField, StructType};
use crate::reconcile::{
    self, CommitCache, FileStream, FileStreamRequest, NonFileActions, TableActions,
};
use crate::store::TableStores;
use std::sync::{Arc, OnceLock};

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
pub struct Snapshot(pub(super) Arc<SnapshotState>);

#[derive(Debug)]
pub(super) struct SnapshotState {
    pub(super) log: DeltaLog,
    pub(super) options: ReadOptions,
    pub(super) segment: SegmentCell,
    pub(super) commit_cache: Arc<CommitCache>,
    pub(super) protocol: Protocol,
    pub(super) metadata: Metadata,
    pub(super) schema: StructType,
    pub(super) mapping: ColumnMapping,
    pub(super) checksum: Option<ChecksumFileContents>,
    /// Whether protocol and metadata come from the version checksum instead of the log.
    pub(super) is_from_checksum: bool,
    pub(super) warnings: ProcessMutex<SnapshotWarnings>,
    pub(super) rulings: ProcessMutex<CheckpointRulings>,
    pub(super) non_file_actions: OnceLock<NonFileActions>,
    pub(super) timestamp_ms: OnceLock<i64>,
    /// The fingerprint of the version's own commit, if it was read.
    pub(super) fingerprint: OnceLock<CommitFingerprint>,
    /// Set once the version's own commit is known to be whole.
    pub(super) is_commit_checked: OnceLock<()>,
    pub(super) row_id_mark: OnceLock<i64>,
    pub(super) plan_cache: ProcessMutex<Option<Arc<dyn std::any::Any + Send + Sync>>>,
}

/// Checkpoints up to this size are read completely before the first file is returned.
const READ_AT_ONCE: u64 = 4 << 20;

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

    pub(super) fn assemble(
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
                format!(
                    "the table has the feature `catalogManaged`: its catalog alone knows its newest version; open it with a {}, or to read with the catalog's {} or {}",
                    CallOption::Committer,
                    CallOption::LogTail,
                    CallOption::MaxTableVersion
                ),
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

    pub(super) fn warnings(&self) -> std::sync::MutexGuard<'_, SnapshotWarnings> {
        self.0.warnings.lock()
    }

    /// Compares the version checksum with other values that were found for the version.
    pub(super) fn check(&self, compare: impl FnOnce(&ChecksumFileContents) -> Vec<&'static str>) {
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
    pub(super) fn replace_segment(&self, segment: &LogSegment) {
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
    pub(super) fn uncompared_files(
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
                "the table has the feature `catalogManaged`, so `{name}` is up to its catalog; only a {} whose `permits` holds `{name}` allows it",
                CallOption::Committer
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
}
