//! Committers: the file system of the table, or a catalog.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::exec::{CancellationToken, RuntimeEnv};
use crate::log::{CatalogClient, CommitFile, LogTail, TailCommit};
use crate::protocol::log_path::{self, LOG_DIR};
use crate::store::{
    ObjectRole, PutOutcome, Store, StoreObject, TableStores, WriterQueueLock, make_unique,
    put_with_retries,
};

/// The waiting time after a lost race: a random time up to `base`, doubled for every loss, up to
/// `cap`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackoffPolicy {
    /// The longest wait after the first loss.
    pub base: Duration,
    /// The longest wait of all.
    pub cap: Duration,
}

impl BackoffPolicy {
    /// The wait after `losses` losses (from 1), for the given random bits.
    #[must_use]
    pub fn delay(&self, losses: u32, random: u64) -> Duration {
        let limit = self
            .base
            .saturating_mul(1 << losses.saturating_sub(1).min(16))
            .min(self.cap);
        let micros = u64::try_from(limit.as_micros())
            .unwrap_or(u64::MAX)
            .saturating_add(1);
        Duration::from_micros(random % micros)
    }

    /// The policy for store errors (429, 503, broken connections), which require longer waits than
    /// a lost race.
    #[must_use]
    pub fn for_store_errors(self) -> Self {
        Self {
            base: self.base.saturating_mul(5),
            cap: self.cap.saturating_mul(8),
        }
    }
}

/// A commit that was read.
#[derive(Debug, Clone)]
pub struct LoadedCommit {
    /// Its content.
    pub bytes: Bytes,
    /// Its file and modification time.
    pub file: CommitFile,
}

/// Makes commits and reads them.
pub trait TableCommitter: Debug + Send + Sync {
    /// Tries to create the commit of `version` with the content `text`.
    ///
    /// # Errors
    /// Only if it is certain that the commit was not created; see [`Store::put_if_absent`].
    fn put(&self, version: i64, text: &Bytes) -> Result<PutOutcome>;

    /// The commit of `version`, if it exists.
    ///
    /// # Errors
    /// [`Error::Storage`] if that cannot be determined.
    fn read(&self, version: i64) -> Result<Option<LoadedCommit>>;

    /// Publishes a version after its commit. A failure does not affect the commit.
    ///
    /// # Errors
    /// Errors of the store or the catalog.
    fn publish(&self, _version: i64) -> Result<()> {
        Ok(())
    }

    /// The waiting times between attempts.
    fn backoff(&self) -> BackoffPolicy;

    /// Waits for the lock of a writer queue; correctness does not depend on it.
    fn lock_writer_queue(&self, _cancel: &CancellationToken) -> Option<WriterQueueLock> {
        None
    }

    /// Whether it commits to tables with the feature `catalogManaged`, and only to those.
    fn is_catalog(&self) -> bool {
        false
    }
}

/// Reads a commit file; a body shorter than the size that the store reports is unreadable.
fn read(store: &Arc<dyn Store>, version: i64, path: &str) -> Result<Option<LoadedCommit>> {
    let (text, meta) = match store.get(path).wait() {
        Ok(found) => found,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error),
    };
    if text.len() as u64 != meta.size || !text.ends_with(b"}") && !text.ends_with(b"\n") {
        return Err(Error::storage(
            format!(
                "the commit {path} was read in part: {} of {} bytes",
                text.len(),
                meta.size
            ),
            true,
        ));
    }
    let file = StoreObject {
        store: Arc::clone(store),
        path: path.to_owned(),
        size: Some(meta.size),
    };
    Ok(Some(LoadedCommit {
        bytes: text,
        file: CommitFile {
            first: version,
            version,
            file,
            modified_ms: meta.modified_ms,
        },
    }))
}

/// The default committer: commits are files in the log, created if absent.
#[derive(Debug, Clone)]
pub struct FileCommitter {
    store: Arc<dyn Store>,
}

impl FileCommitter {
    /// Commits to the log of the table at the root of `store`.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }
}

impl TableCommitter for FileCommitter {
    fn put(&self, version: i64, text: &Bytes) -> Result<PutOutcome> {
        self.store.put_if_absent(
            &log_path::commit(version),
            text.clone(),
            ObjectRole::Essential,
        )
    }

    fn read(&self, version: i64) -> Result<Option<LoadedCommit>> {
        read(&self.store, version, &log_path::commit(version))
    }

    fn backoff(&self) -> BackoffPolicy {
        backoff(&self.store)
    }

    fn lock_writer_queue(&self, cancel: &CancellationToken) -> Option<WriterQueueLock> {
        self.store.lock_writer_queue(LOG_DIR, cancel)
    }
}

fn backoff(store: &Arc<dyn Store>) -> BackoffPolicy {
    if store.url().starts_with("file:") || store.url().starts_with("memory:") {
        BackoffPolicy {
            base: Duration::from_millis(1),
            cap: Duration::from_millis(100),
        }
    } else {
        BackoffPolicy {
            base: Duration::from_millis(20),
            cap: Duration::from_secs(2),
        }
    }
}

/// The committer for catalog-managed tables: a commit is staged as a file of its own, ratified by
/// the catalog, then published.
///
/// A staged file that was not ratified is kept: a catalog may reject a commit because it ratified
/// an earlier attempt of the same commit, whose response was lost.
#[derive(Debug, Clone)]
pub struct CatalogCommitter {
    stores: Arc<TableStores>,
    catalog: Arc<dyn CatalogClient>,
    env: Arc<dyn RuntimeEnv>,
}

impl CatalogCommitter {
    /// Commits to a table's log through `catalog`.
    #[must_use]
    pub fn new(
        stores: Arc<TableStores>,
        catalog: Arc<dyn CatalogClient>,
        env: Arc<dyn RuntimeEnv>,
    ) -> Self {
        Self {
            stores,
            catalog,
            env,
        }
    }

    fn tail(&self) -> Result<LogTail> {
        LogTail::from_catalog(self.catalog.as_ref())
    }

    fn read_published(&self, version: i64) -> Result<Option<LoadedCommit>> {
        read(self.stores.root(), version, &log_path::commit(version))
    }

    fn read_staged(&self, commit: &TailCommit) -> Result<Option<LoadedCommit>> {
        let file = commit.file(&self.stores)?;
        read(&file.store, commit.version, &file.path)
    }
}

impl TableCommitter for CatalogCommitter {
    fn put(&self, version: i64, text: &Bytes) -> Result<PutOutcome> {
        let commit = TailCommit {
            version,
            path: log_path::staged(version, &self.env.uuid()),
            size: Some(text.len() as u64),
        };
        let file = commit.file(&self.stores)?;
        // The file name is unique, and the catalog is called only after the file exists: after an
        // error nothing was committed.
        make_unique(file.store.as_ref(), &file.path, text)?;
        self.catalog.ratify(&commit, text)
    }

    fn read(&self, version: i64) -> Result<Option<LoadedCommit>> {
        // For a version that the catalog has, its commit takes precedence over a published file,
        // and no version after the catalog's newest one exists.
        let tail = self.tail()?;
        if tail.latest.is_none_or(|latest| version > latest) {
            return Ok(None);
        }
        let staged = tail
            .get(version)
            .map(|commit| self.read_staged(commit))
            .transpose()?
            .flatten();
        match staged {
            Some(found) => Ok(Some(found)),
            None => match self.read_published(version)? {
                Some(found) => Ok(Some(found)),
                None => Err(Error::storage(
                    format!(
                        "version {version} is ratified, but neither its staged commit nor a published one is there"
                    ),
                    true,
                )),
            },
        }
    }

    fn publish(&self, version: i64) -> Result<()> {
        let tail = self.tail()?;
        for commit in tail
            .commits
            .iter()
            .filter(|commit| commit.version <= version)
        {
            // In order: a version is published after the previous one.
            let Some(staged) = self.read_staged(commit)? else {
                match self.read_published(commit.version)? {
                    Some(_) => continue,
                    None => {
                        return Err(Error::storage(
                            format!("the staged commit `{}` is not there", commit.path),
                            false,
                        )
                        .at_version(commit.version));
                    }
                }
            };
            match put_with_retries(
                self.stores.root().as_ref(),
                &log_path::commit(commit.version),
                &staged.bytes,
                ObjectRole::Essential,
            )? {
                PutOutcome::Created => {}
                PutOutcome::Exists => {
                    if self
                        .read_published(commit.version)?
                        .is_some_and(|published| published.bytes != staged.bytes)
                    {
                        let other = format!(
                            "`{}` is not the commit that the catalog ratified: somebody wrote past it",
                            log_path::commit(commit.version)
                        );
                        return Err(Error::corrupt(other).at_version(commit.version));
                    }
                }
                PutOutcome::Unknown(error)
                | PutOutcome::Refused(error)
                | PutOutcome::Unsynced(error) => {
                    return Err(error);
                }
            }
        }
        match tail.commits.last() {
            Some(last) => self.catalog.published(version.min(last.version)),
            None => Ok(()),
        }
    }

    fn backoff(&self) -> BackoffPolicy {
        backoff(self.stores.root())
    }

    fn is_catalog(&self) -> bool {
        true
    }
}
