//! Transactions: from the first read to the committed version.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::committer::{CatalogCommitter, FileCommitter, LoadedCommit, TableCommitter};
use super::intent::{CommitOperation, IsolationLevel, canonical};
use super::prepare::{RevalidationHook, TransactionDraft, prepare};
use crate::commit::state_machine::{CommitEvent, CommitOutcome, CommitStateMachine, CommitStep};
use crate::error::{Error, Result};
use crate::exec::{CancellationToken, RuntimeEnv, SystemEnv};
use crate::expr::BoundExpr;
use crate::log::{CommitFile, DeltaLog};
use crate::protocol::action::{DomainMetadata, Metadata, SetTransaction};
use crate::protocol::commit_line::{Action, PartitionValues};
use crate::protocol::log_path;
use crate::scan::FileMatcher;
use crate::snapshot::{ReadOptions, Snapshot};
use crate::store::{StoreObject, WriterQueueLock};

/// The default number of retries after a lost race: more than any contention requires.
const RETRIES: u32 = 10_000;

/// How to commit.
#[derive(Debug, Clone)]
pub struct TransactionOptions {
    /// The maximum number of retries after another writer committed first (`max_commit_retries`).
    pub max_retries: u32,
    /// An isolation level other than the table's.
    pub isolation: Option<IsolationLevel>,
    /// Clock, sleep and randomness.
    pub env: Arc<dyn RuntimeEnv>,
    /// The committer; the table's log if `None`.
    pub committer: Option<Arc<dyn TableCommitter>>,
    /// Cancels the attempts, but never between an attempt and its response.
    pub cancel: CancellationToken,
    /// The lock of this machine's writer queue, if the caller holds it already.
    pub writer_queue_lock: Option<Arc<WriterQueueLock>>,
}

impl Default for TransactionOptions {
    fn default() -> Self {
        Self {
            max_retries: RETRIES,
            isolation: None,
            env: Arc::new(SystemEnv),
            committer: None,
            cancel: CancellationToken::default(),
            writer_queue_lock: None,
        }
    }
}

/// The state from which a transaction starts.
#[derive(Debug, Clone)]
enum TransactionBase {
    Table(Snapshot),
    Nothing(DeltaLog, ReadOptions),
}

/// Reads and actions that become one version or none. Committing consumes the transaction, so it
/// cannot be committed twice.
#[derive(Debug, Clone)]
pub struct OptimisticTransaction {
    base: TransactionBase,
    draft: TransactionDraft,
}

/// A committed version.
#[derive(Debug, Clone)]
pub struct CommittedVersion {
    /// The version.
    pub version: i64,
    /// The snapshot of this version; `None` (and a warning) if it could not be opened afterwards.
    pub snapshot: Option<Snapshot>,
    /// The number of attempts.
    pub attempts: u32,
    /// The number of concurrent commits.
    pub concurrent_commits: u32,
    /// Whether the response was lost and the commit was found by reading.
    pub found_by_lookup: bool,
    /// The time to validate the transaction.
    pub prepare_time: Duration,
    /// The time from the first attempt to the outcome.
    pub commit_time: Duration,
    /// Files added.
    pub files_added: u64,
    /// Files removed.
    pub files_removed: u64,
    /// Bytes added.
    pub bytes_added: u64,
    /// Bytes removed, as far as the removed files have a size.
    pub bytes_removed: u64,
    /// Failures after the version was committed, which cannot be undone.
    pub warnings: Vec<Error>,
}

impl OptimisticTransaction {
    /// A transaction on a snapshot of a table.
    #[must_use]
    pub fn new(snapshot: &Snapshot) -> Self {
        Self {
            base: TransactionBase::Table(snapshot.clone()),
            draft: TransactionDraft::default(),
        }
    }

    /// A transaction that creates a table.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the table exists; errors of the store.
    pub fn create(log: DeltaLog, options: ReadOptions) -> Result<Self> {
        log.check_location()?;
        if log.list(0)?.newest().is_some() {
            return Err(Error::invalid(format!(
                "there is a table at {} already",
                log.stores().root().url()
            )));
        }
        Ok(Self {
            base: TransactionBase::Nothing(log, options),
            draft: TransactionDraft::default(),
        })
    }

    /// The snapshot that is read.
    #[must_use]
    pub fn snapshot(&self) -> Option<&Snapshot> {
        match &self.base {
            TransactionBase::Table(snapshot) => Some(snapshot),
            TransactionBase::Nothing(..) => None,
        }
    }

    /// The log that it commits to.
    #[must_use]
    pub fn log(&self) -> &DeltaLog {
        match &self.base {
            TransactionBase::Table(snapshot) => snapshot.log(),
            TransactionBase::Nothing(log, _) => log,
        }
    }

    /// The metadata that the transaction sets.
    #[must_use]
    pub fn metadata(&self) -> Option<&Metadata> {
        self.draft.actions.iter().find_map(|action| {
            if let Action::MetaData(metadata) = action {
                Some(metadata.as_ref())
            } else {
                None
            }
        })
    }

    /// Records that all rows were read.
    pub fn read_whole_table(&mut self) {
        self.draft.reads.whole_table = true;
    }

    /// Records that the rows for which `predicate` is true were read; the predicate is bound to the
    /// snapshot's schema.
    pub fn read_rows(&mut self, predicate: BoundExpr) {
        self.draft.reads.predicates.push(predicate);
    }

    /// Records that files were read or considered, by their paths in the log.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an invalid path.
    pub fn read_files<'a>(&mut self, paths: impl IntoIterator<Item = &'a str>) -> Result<()> {
        for path in paths {
            self.draft.reads.files.insert(canonical(path)?);
        }
        Ok(())
    }

    /// Appends actions, and records that the files that they remove were read.
    ///
    /// # Errors
    /// As [`Self::read_files`].
    pub fn replace(&mut self, actions: Vec<Action>) -> Result<()> {
        self.read_files(actions.iter().filter_map(|action| {
            if let Action::Remove(remove) = action {
                Some(remove.path.as_str())
            } else {
                None
            }
        }))?;
        self.extend(actions);
        Ok(())
    }

    /// The last transaction of an application; records that it was read.
    ///
    /// # Errors
    /// Errors of reading the log.
    pub fn read_app(&mut self, app_id: &str) -> Result<Option<SetTransaction>> {
        self.draft.reads.apps.insert(app_id.to_owned());
        self.snapshot().map_or(Ok(None), |snapshot| {
            Ok(snapshot
                .non_file_actions()?
                .transactions
                .get(app_id)
                .cloned())
        })
    }

    /// A domain's configuration; records that it was read.
    ///
    /// # Errors
    /// Errors of reading the log.
    pub fn read_domain(&mut self, domain: &str) -> Result<Option<DomainMetadata>> {
        self.draft.reads.domains.insert(domain.to_owned());
        self.snapshot().map_or(Ok(None), |snapshot| {
            Ok(snapshot.non_file_actions()?.domains.get(domain).cloned())
        })
    }

    /// Adds an action.
    pub fn push(&mut self, action: Action) {
        self.draft.actions.push(action);
    }

    /// Adds actions.
    pub fn extend(&mut self, actions: impl IntoIterator<Item = Action>) {
        self.draft.actions.extend(actions);
    }

    /// The partitions that it adds files to.
    #[must_use]
    pub fn partitions(&self) -> BTreeSet<PartitionValues> {
        self.draft
            .actions
            .iter()
            .filter_map(|action| {
                if let Action::Add(add) = action {
                    Some(add.partition_values.clone())
                } else {
                    None
                }
            })
            .collect()
    }

    /// The partitions whose files it changes; `None` if any may change: the table's metadata
    /// changes, or a removed file lacks its partition values.
    #[must_use]
    pub fn changed_partitions(&self) -> Option<BTreeSet<PartitionValues>> {
        let mut changed = BTreeSet::new();
        for action in &self.draft.actions {
            match action {
                Action::Add(add) => _ = changed.insert(add.partition_values.clone()),
                Action::Remove(remove) => _ = changed.insert(remove.partition_values.clone()?),
                Action::MetaData(_) => return None,
                _ => {}
            }
        }
        Some(changed)
    }

    /// Calls `look` with the table before every attempt that follows concurrent commits; an error
    /// of `look` ends the transaction. With it a feature can be dropped while others write: `look`
    /// checks that none of them used the feature.
    pub fn revalidate(&mut self, look: impl Fn(&Snapshot) -> Result<()> + Send + Sync + 'static) {
        self.draft.revalidate = Some(RevalidationHook(Arc::new(look)));
    }

    /// Sets the operation for `commitInfo`.
    pub fn set_operation(&mut self, operation: CommitOperation) {
        self.draft.operation = operation;
    }

    /// Commits.
    ///
    /// # Errors
    /// [`Error::CommitFailed`] for a conflict that cannot be resolved, [`Error::CommitUnknown`] if
    /// it cannot be determined whether the version was committed. After any other error nothing was
    /// committed.
    pub fn commit(mut self, options: &TransactionOptions) -> Result<CommittedVersion> {
        let started = Instant::now();
        let env = options.env.as_ref();
        let log = match &self.base {
            TransactionBase::Table(snapshot) => snapshot.log().clone(),
            TransactionBase::Nothing(log, _) => log.clone(),
        };
        let committer: Arc<dyn TableCommitter> = match (&options.committer, log.catalog()) {
            (Some(committer), _) => Arc::clone(committer),
            (None, Some(catalog)) => Arc::new(CatalogCommitter::new(
                Arc::clone(log.stores()),
                Arc::clone(catalog),
                Arc::clone(&options.env),
            )),
            (None, None) => Arc::new(FileCommitter::new(Arc::clone(log.stores().root()))),
        };
        self.draft.isolation = self.draft.isolation.or(options.isolation);
        let lens = self
            .snapshot()
            .filter(|_| !self.draft.reads.predicates.is_empty())
            .map(|s| FileMatcher::new(s, self.draft.reads.predicates.clone()));
        let base = self.snapshot().cloned();
        if let Some(base) = &base {
            base.check_newest_commit()?;
        }
        let revalidate = self.draft.revalidate.clone();
        let (intent, view) = prepare(
            self.draft,
            base.as_ref(),
            committer.is_catalog(),
            env,
            &options.cancel,
        )?;
        let metadata = intent
            .metadata
            .as_ref()
            .or_else(|| base.as_ref().map(Snapshot::metadata));
        if let (Some(catalog), Some(metadata)) = (log.catalog(), metadata) {
            catalog.check_metadata(metadata)?;
        }
        let stats = CommitFileStats::of(&intent.actions);
        let prepare_time = started.elapsed();

        let mut machine =
            CommitStateMachine::new(intent, view, lens, options.max_retries, committer.backoff());
        let mut seen: Vec<LoadedCommit> = Vec::new();
        let look = |seen: &[LoadedCommit]| match (&base, &revalidate) {
            // With a committer of the caller the log does not determine which versions exist.
            (Some(base), _) if seen.is_empty() && options.committer.is_none() => {
                base.check_in_log()
            }
            (Some(base), Some(RevalidationHook(look))) if !seen.is_empty() => {
                look(&snapshot_with_commits(base, seen)?)
            }
            _ => Ok(()),
        };
        let outcome =
            run_state_machine(&mut machine, committer.as_ref(), options, &look, &mut seen)?;
        let commit_time = started.elapsed().saturating_sub(prepare_time);

        // From here on errors are warnings: the version is committed.
        let mut warnings = Vec::new();
        let is_published = committer
            .publish(outcome.version)
            .map_err(|error| warnings.push(error))
            .is_ok();
        let snapshot = committed_snapshot(
            &self.base,
            &log,
            committer.as_ref(),
            &outcome,
            seen,
            is_published,
        )
        .map_err(|error| warnings.push(error))
        .ok();
        Ok(CommittedVersion {
            version: outcome.version,
            snapshot,
            attempts: outcome.attempts,
            concurrent_commits: machine.losses(),
            found_by_lookup: outcome.found_by_lookup,
            prepare_time,
            commit_time,
            files_added: stats.files_added,
            files_removed: stats.files_removed,
            bytes_added: stats.bytes_added,
            bytes_removed: stats.bytes_removed,
            warnings,
        })
    }
}

/// Runs the steps of the state machine until it is done.
fn run_state_machine(
    machine: &mut CommitStateMachine,
    committer: &dyn TableCommitter,
    options: &TransactionOptions,
    look: &dyn Fn(&[LoadedCommit]) -> Result<()>,
    seen: &mut Vec<LoadedCommit>,
) -> Result<CommitOutcome> {
    let mut event = CommitEvent::Start;
    let mut turn = options.writer_queue_lock.clone();
    loop {
        event = match machine.next(event, options.env.as_ref())? {
            CommitStep::Done(outcome) => return Ok(outcome),
            CommitStep::Put { version, text } => {
                if turn.is_none() {
                    turn = committer.lock_writer_queue(&options.cancel).map(Arc::new);
                }
                if !machine.was_pending() {
                    options.cancel.check()?;
                    look(seen)?;
                }
                CommitEvent::Put(committer.put(version, &text))
            }
            CommitStep::Read(version) => CommitEvent::Read(committer.read(version).map(|found| {
                found.map(|found| {
                    let event = (found.bytes.clone(), found.file.modified_ms);
                    seen.retain(|known| known.file.version != version);
                    seen.push(found);
                    event
                })
            })),
            CommitStep::Sleep(time) => {
                // Writers that committed before the lock was acquired are done; any other wait is
                // for a failing store.
                if turn.is_none() || !machine.has_lost() {
                    turn.clone_from(&options.writer_queue_lock);
                    options.env.sleep(time);
                }
                CommitEvent::Slept
            }
        };
    }
}

/// The snapshot of the committed version: the previous one with the concurrent commits, which were
/// all read. `is_published` states that they are all in the log by now.
fn committed_snapshot(
    base: &TransactionBase,
    log: &DeltaLog,
    committer: &dyn TableCommitter,
    outcome: &CommitOutcome,
    mut seen: Vec<LoadedCommit>,
    is_published: bool,
) -> Result<Snapshot> {
    let snapshot = match base {
        TransactionBase::Table(snapshot) => snapshot,
        TransactionBase::Nothing(_, options) => {
            return Snapshot::open(log.clone(), Some(outcome.version), *options);
        }
    };
    if is_published {
        // Staged files are deleted eventually.
        for found in &mut seen {
            found.file.file = StoreObject {
                store: Arc::clone(log.stores().root()),
                path: log_path::commit(found.file.version),
                size: Some(found.bytes.len() as u64),
            };
        }
    }
    if !seen
        .iter()
        .any(|found| found.file.version == outcome.version)
    {
        seen.push(
            match (!is_published)
                .then(|| committer.read(outcome.version))
                .transpose()?
                .flatten()
            {
                Some(found) => found,
                None => own_commit(log, outcome),
            },
        );
    }
    let committed = snapshot_with_commits(snapshot, &seen)?;
    committed.trust_newest_commit();
    Ok(committed)
}

/// The snapshot with the commits that were read.
fn snapshot_with_commits(snapshot: &Snapshot, seen: &[LoadedCommit]) -> Result<Snapshot> {
    for found in seen {
        snapshot.cache_commit(found.file.version, &found.bytes);
    }
    let mut files: Vec<CommitFile> = seen.iter().map(|found| found.file.clone()).collect();
    files.sort_by_key(|file| file.version);
    snapshot.with_commits(files)
}

/// The commit that was just written to the log.
fn own_commit(log: &DeltaLog, outcome: &CommitOutcome) -> LoadedCommit {
    let path = log_path::commit(outcome.version);
    let file = StoreObject {
        store: Arc::clone(log.stores().root()),
        path,
        size: Some(outcome.text.len() as u64),
    };
    LoadedCommit {
        bytes: outcome.text.clone(),
        file: CommitFile {
            first: outcome.version,
            version: outcome.version,
            file,
            modified_ms: 0,
        },
    }
}

struct CommitFileStats {
    files_added: u64,
    files_removed: u64,
    bytes_added: u64,
    bytes_removed: u64,
}

impl CommitFileStats {
    fn of(actions: &[Action]) -> Self {
        let mut out = Self {
            files_added: 0,
            files_removed: 0,
            bytes_added: 0,
            bytes_removed: 0,
        };
        for action in actions {
            match action {
                Action::Add(add) => {
                    out.files_added += 1;
                    out.bytes_added += u64::try_from(add.size).unwrap_or(0);
                }
                Action::Remove(remove) => {
                    out.files_removed += 1;
                    out.bytes_removed += remove
                        .size
                        .and_then(|size| u64::try_from(size).ok())
                        .unwrap_or(0);
                }
                _ => {}
            }
        }
        out
    }
}
