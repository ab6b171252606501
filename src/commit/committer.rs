//! Who makes commits: the file system of the table, or a catalog.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::exec::{Cancel, Env};
use crate::log::{CommitFile, TailCommit};
use crate::protocol::log_path::{self, LOG_DIR};
use crate::store::{File, Put, Role, Store, Turn};

/// How long to wait after a lost race: a random time up to `base` doubled for every loss, up to `cap`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The longest wait after the first loss.
    pub base: Duration,
    /// The longest wait of all.
    pub cap: Duration,
}

impl Backoff {
    /// The wait after `losses` losses (from 1), by random bits.
    #[must_use]
    pub fn wait(&self, losses: u32, random: u64) -> Duration {
        let limit = self.base.saturating_mul(1 << losses.saturating_sub(1).min(16)).min(self.cap);
        let micros = u64::try_from(limit.as_micros()).unwrap_or(u64::MAX).saturating_add(1);
        Duration::from_micros(random % micros)
    }
}

/// A commit that was looked for and is there.
#[derive(Debug, Clone)]
pub struct Found {
    /// Its text.
    pub text: Bytes,
    /// Where it is, and since when.
    pub file: CommitFile,
}

/// Makes commits and reads them.
pub trait Committer: Debug + Send + Sync {
    /// Tries to make `text` the commit of `version`.
    ///
    /// # Errors
    /// When it is certain that it was not made; see [`Store::put_if_absent`].
    fn put(&self, version: i64, text: &Bytes) -> Result<Put>;

    /// The commit of `version`, if there is one.
    ///
    /// # Errors
    /// [`Error::Storage`] when that cannot be found out.
    fn read(&self, version: i64) -> Result<Option<Found>>;

    /// Does what is due after a commit was made. A failure changes nothing about the commit.
    ///
    /// # Errors
    /// What the store or the catalog says.
    fn publish(&self, _version: i64) -> Result<()> {
        Ok(())
    }

    /// How long to wait between attempts.
    fn backoff(&self) -> Backoff;

    /// Waits for a turn among writers that queue; nothing depends on it.
    fn turn(&self, _cancel: &Cancel) -> Option<Turn> {
        None
    }

    /// Whether it commits to tables with the feature `catalogManaged`, and to no others.
    fn is_catalog(&self) -> bool {
        false
    }
}

/// Reads a commit's file; a body that is shorter than the store says counts as unreadable.
fn read(store: &Arc<dyn Store>, version: i64, path: &str) -> Result<Option<Found>> {
    let (text, meta) = match store.get(path).wait() {
        Ok(found) => found,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error),
    };
    if text.len() as u64 != meta.size || !text.ends_with(b"}") && !text.ends_with(b"\n") {
        return Err(Error::storage(format!("the commit {path} was read in part: {} of {} bytes", text.len(), meta.size), true));
    }
    let file = File { store: Arc::clone(store), path: path.to_owned(), size: Some(meta.size) };
    Ok(Some(Found { text, file: CommitFile { first: version, version, file, modified_ms: meta.modified_ms } }))
}

/// The default: commits are files in the log, made if absent.
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

impl Committer for FileCommitter {
    fn put(&self, version: i64, text: &Bytes) -> Result<Put> {
        self.store.put_if_absent(&log_path::commit(version), text.clone(), Role::Essential)
    }

    fn read(&self, version: i64) -> Result<Option<Found>> {
        read(&self.store, version, &log_path::commit(version))
    }

    fn backoff(&self) -> Backoff {
        backoff(&self.store)
    }

    fn turn(&self, cancel: &Cancel) -> Option<Turn> {
        self.store.turn(LOG_DIR, cancel)
    }
}

fn backoff(store: &Arc<dyn Store>) -> Backoff {
    if store.url().starts_with("file:") || store.url().starts_with("memory:") {
        Backoff { base: Duration::from_millis(1), cap: Duration::from_millis(100) }
    } else {
        Backoff { base: Duration::from_millis(20), cap: Duration::from_secs(2) }
    }
}

/// What a catalog that manages a table's commits must do.
pub trait Catalog: Debug + Send + Sync {
    /// Makes the staged commit the one of its version, if the version before it is the newest. Of any number of calls for
    /// one version one succeeds.
    ///
    /// # Errors
    /// When it is certain that it was not made.
    fn ratify(&self, commit: &TailCommit) -> Result<Put>;

    /// The ratified commit of a version, as long as the catalog knows it.
    ///
    /// # Errors
    /// What the catalog says.
    fn commit(&self, version: i64) -> Result<Option<TailCommit>>;

    /// Ratified commits that were not published yet, ascending.
    ///
    /// # Errors
    /// What the catalog says.
    fn unpublished(&self) -> Result<Vec<TailCommit>>;

    /// Told that commits up to this one are published.
    ///
    /// # Errors
    /// What the catalog says.
    fn published(&self, version: i64) -> Result<()>;
}

/// Commits of a catalog-managed table: staged as files of their own, ratified by the catalog, then published.
#[derive(Debug, Clone)]
pub struct CatalogCommitter {
    store: Arc<dyn Store>,
    catalog: Arc<dyn Catalog>,
    env: Arc<dyn Env>,
}

/// The folder of staged commits.
const STAGED: &str = "_staged_commits";

impl CatalogCommitter {
    /// Commits to the log of the table at the root of `store` by way of `catalog`.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, catalog: Arc<dyn Catalog>, env: Arc<dyn Env>) -> Self {
        Self { store, catalog, env }
    }

    fn staged_path(commit: &TailCommit) -> String {
        if commit.path.contains('/') { commit.path.clone() } else { format!("{LOG_DIR}/{STAGED}/{}", commit.path) }
    }
}

impl Committer for CatalogCommitter {
    fn put(&self, version: i64, text: &Bytes) -> Result<Put> {
        let name = format!("{version:020}.{}.json", self.env.uuid());
        let commit = TailCommit { version, path: name, size: Some(text.len() as u64) };
        match self.store.put_if_absent(&Self::staged_path(&commit), text.clone(), Role::Essential)? {
            Put::Created => self.catalog.ratify(&commit),
            // Nobody knows the file's name but us, and the catalog was not asked: nothing was committed.
            Put::Exists => Err(Error::internal(format!("a staged commit named {} was there already", commit.path))),
            Put::Unknown(error) | Put::Unsynced(error) => Err(error),
        }
    }

    fn read(&self, version: i64) -> Result<Option<Found>> {
        // The catalog's word for a version holds before a published file's.
        if let Some(commit) = self.catalog.commit(version)? {
            return match read(&self.store, version, &Self::staged_path(&commit))? {
                Some(found) => Ok(Some(found)),
                None => read(&self.store, version, &log_path::commit(version)),
            };
        }
        read(&self.store, version, &log_path::commit(version))
    }

    fn publish(&self, version: i64) -> Result<()> {
        for commit in self.catalog.unpublished()?.into_iter().filter(|commit| commit.version <= version) {
            let (text, _) = self.store.get(&Self::staged_path(&commit)).wait()?;
            match self.store.put_if_absent(&log_path::commit(commit.version), text, Role::Essential)? {
                Put::Created | Put::Exists => self.catalog.published(commit.version)?,
                Put::Unknown(error) | Put::Unsynced(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn backoff(&self) -> Backoff {
        backoff(&self.store)
    }

    fn is_catalog(&self) -> bool {
        true
    }
}
