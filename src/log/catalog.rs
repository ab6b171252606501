//! The catalog of a catalog-managed table, which decides which commits exist.

use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::{CallOption, Error, Result, shown};
use crate::protocol::action::Metadata;
use crate::protocol::log_path::{self, LOG_DIR, STAGED_DIR};
use crate::store::{PutOutcome, StoreObject, TableStores};

/// A commit that a catalog has ratified, or is requested to ratify.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TailCommit {
    /// Its version.
    pub version: i64,
    /// Its location: a name in `_delta_log/_staged_commits`, a path below the table, or a URL.
    pub path: String,
    /// Its size in bytes, where known.
    pub size: Option<u64>,
}

impl TailCommit {
    /// The commit's file.
    ///
    /// # Errors
    /// [`Error::Storage`] for a path that tables must not refer to.
    pub fn file(&self, stores: &TableStores) -> Result<StoreObject> {
        let path = match self.path.split_once('/') {
            None if self.path.ends_with(".json") && self.path.matches('.').count() > 1 => {
                format!("{STAGED_DIR}/{}", self.path)
            }
            None => format!("{LOG_DIR}/{}", self.path),
            Some(_) => self.path.clone(),
        };
        stores.file(&path, self.size)
    }

    /// Refuses a location that is not the name of a commit file of its version.
    ///
    /// Publishing copies the file to the log, where every reader of the table sees it: with a path
    /// of its choice, the server of a catalog could have any file of the caller published.
    fn check_name(&self) -> Result<()> {
        let name = [STAGED_DIR, LOG_DIR]
            .into_iter()
            .find_map(|folder| self.path.strip_prefix(folder)?.strip_prefix('/'))
            .unwrap_or(&self.path);
        let is_commit = !name.contains(['/', '\\'])
            && (log_path::staged_version(name) == Some(self.version)
                || format!("{LOG_DIR}/{name}") == log_path::commit(self.version));
        if is_commit {
            return Ok(());
        }
        Err(Error::storage(
            format!(
                "the catalog names `{}` as the commit of version {}; it must be the name of a file in `{STAGED_DIR}`, such as `{}`",
                shown(&self.path),
                self.version,
                log_path::staged(self.version, "UUID")
            ),
            false,
        ))
    }
}

/// A catalog's view of a table at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogTail {
    /// The newest version; `None` where the catalog knows of no commit.
    pub latest: Option<i64>,
    /// The newest commits, ascending to `latest`: at least those that are not published.
    pub commits: Vec<TailCommit>,
}

impl LogTail {
    /// A tail from a caller's list of commits.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a tail with gaps.
    pub fn of(mut commits: Vec<TailCommit>) -> Result<Self> {
        commits.sort_by_key(|commit| commit.version);
        let tail = Self {
            latest: commits.last().map(|last| last.version),
            commits,
        };
        tail.check()?;
        Ok(tail)
    }

    /// Whether it is contiguous and ends with the newest version.
    ///
    /// # Errors
    /// [`Error::Invalid`] describes the inconsistency.
    pub fn check(&self) -> Result<()> {
        for pair in self.commits.windows(2) {
            if let [a, b] = pair
                && a.version + 1 != b.version
            {
                return Err(Error::invalid(format!(
                    "{} is not contiguous: version {} is followed by {}",
                    CallOption::LogTail,
                    a.version,
                    b.version
                )));
            }
        }
        match (self.commits.last().map(|last| last.version), self.latest) {
            (_, Some(latest)) if latest < 0 => Err(Error::invalid(format!(
                "the newest version of {} is {latest}; where there is none it must be None",
                CallOption::LogTail
            ))),
            (Some(last), latest) if Some(last) != latest => {
                let latest = latest.map_or_else(|| "None".to_owned(), |latest| latest.to_string());
                Err(Error::invalid(format!(
                    "{} ends with version {last} and says that the newest version is {latest}",
                    CallOption::LogTail
                )))
            }
            _ => Ok(()),
        }
    }

    /// The tail that a catalog gives, whose commits are files of the log.
    ///
    /// # Errors
    /// Errors of the catalog; [`Error::Invalid`] for a tail with gaps, [`Error::Storage`] for a
    /// commit elsewhere.
    pub fn from_catalog(catalog: &dyn CatalogClient) -> Result<Self> {
        let tail = catalog.tail()?;
        tail.check()?;
        tail.commits.iter().try_for_each(TailCommit::check_name)?;
        Ok(tail)
    }

    /// The commit of a version, if it is in the tail.
    #[must_use]
    pub fn get(&self, version: i64) -> Option<&TailCommit> {
        self.commits.iter().find(|commit| commit.version == version)
    }
}

/// Work that the protocol leaves to a table's catalog unless the catalog permits it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaintenanceOperation {
    /// Deleting data files.
    Vacuum,
    /// Deleting commits and checkpoints.
    Cleanup,
    /// Rewriting data files in another layout.
    Optimize,
}

impl MaintenanceOperation {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Vacuum => "vacuum",
            Self::Cleanup => "cleanup_metadata",
            Self::Optimize => "optimize",
        }
    }
}

/// The client of a catalog that manages a table's commits.
pub trait CatalogClient: Debug + Send + Sync {
    /// The newest commits. All others up to `latest` are published. Callers use
    /// [`LogTail::from_catalog`], which checks what the catalog says.
    ///
    /// # Errors
    /// Errors of the catalog.
    fn tail(&self) -> Result<LogTail>;

    /// Ratifies the staged commit with the content `text` as its version, if the version before it
    /// is the newest. Of any number of calls for one version one succeeds.
    ///
    /// # Errors
    /// Only if the commit was certainly not ratified.
    fn ratify(&self, commit: &TailCommit, text: &Bytes) -> Result<PutOutcome>;

    /// Notifies the catalog that all commits up to this one are published.
    ///
    /// # Errors
    /// Errors of the catalog.
    fn published(&self, version: i64) -> Result<()>;

    /// Whether writers may do this to the table.
    ///
    /// # Errors
    /// Errors of the catalog.
    fn permits(&self, _work: MaintenanceOperation) -> Result<bool> {
        Ok(false)
    }

    /// Refuses commits to a table with this metadata that the client cannot send to the catalog;
    /// called before an operation writes its first file, and before each commit.
    ///
    /// # Errors
    /// [`Error::Unsupported`] names the property; errors of the catalog.
    fn check_metadata(&self, _metadata: &Metadata) -> Result<()> {
        Ok(())
    }
}

/// The source of a table's newest versions in addition to its log.
#[derive(Debug, Clone)]
pub(super) enum RatifiedCommitSource {
    /// None: the log alone is authoritative.
    Log,
    /// A caller, once.
    Caller(LogTail),
    /// A catalog, queried every time.
    Catalog(Arc<dyn CatalogClient>),
}

impl RatifiedCommitSource {
    /// The newest versions; `None` if the log alone is authoritative.
    pub(super) fn tail(&self) -> Result<Option<LogTail>> {
        match self {
            Self::Log => Ok(None),
            Self::Caller(tail) => Ok(Some(tail.clone())),
            Self::Catalog(catalog) => LogTail::from_catalog(catalog.as_ref()).map(Some),
        }
    }
}
