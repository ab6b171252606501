//! Whether the log still contains the version that a snapshot was read from.
//!
//! A table handle can outlive its table: another table may be created at the same location, or an
//! older state may be copied over it. No commit, checkpoint or checksum based on the old version
//! may be written to the new log. This is decided by the version's own commit: a commit that was
//! read is compared by length and content, a commit that was only listed by size and time. If these
//! differ, or the commit does not exist, the log is read again and the table's id and newest
//! version decide.
//!
//! The catalog of a catalog-managed table is responsible for its versions, so nothing is compared
//! there.
//!
//! Cost: one request for one object of at most [`COMPARED`] bytes; two for a larger commit.

use super::Snapshot;
use super::commit_fingerprint::CommitFingerprint;
use crate::error::{Error, NotFoundKind, Result};
use crate::log::CommitFile;
use crate::protocol::log_path;

/// The result of comparing a version's commit with the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommitMatch {
    Same,
    Other,
    /// Size or time differ, as after a copy; the content must be read.
    Unclear,
    Missing,
}

/// Whether two times of one object are equal, which some stores return in whole seconds for one
/// kind of request; 0 is unknown.
pub(super) fn is_same_time(a: i64, b: i64) -> bool {
    const SECOND: i64 = 1000;
    a != 0
        && (a == b
            || (a.div_euclid(SECOND) == b.div_euclid(SECOND)
                && (a % SECOND == 0 || b % SECOND == 0)))
}

impl Snapshot {
    /// Records the content of this version's own commit.
    pub(super) fn remember_commit(&self, text: &[u8]) {
        let _ = self.0.fingerprint.set(CommitFingerprint::of(text));
    }

    /// Whether the log contains this version's commit, as far as known without reading the log
    /// again.
    pub(super) fn is_in_log(&self) -> Result<bool> {
        Ok(self.compare_commit()? == CommitMatch::Same)
    }

    fn compare_commit(&self) -> Result<CommitMatch> {
        let segment = self.segment();
        let Some(commit) = &segment.last_commit else {
            return Ok(CommitMatch::Missing);
        };
        let (store, path) = (
            self.stores().root().as_ref(),
            log_path::commit(commit.version),
        );
        let compared = match self.0.fingerprint.get() {
            Some(known) => known.matches_object(store, &path).map(|same| {
                if same {
                    CommitMatch::Same
                } else {
                    CommitMatch::Other
                }
            }),
            None => store.head(&path).map(|found| {
                let same = commit.file.size == Some(found.size)
                    && is_same_time(commit.modified_ms, found.modified_ms);
                if same {
                    CommitMatch::Same
                } else {
                    CommitMatch::Unclear
                }
            }),
        };
        match compared {
            Err(error) if error.is_not_found() => Ok(CommitMatch::Missing),
            other => other,
        }
    }

    /// Checks that the log still contains this version, before something based on it is written.
    ///
    /// # Errors
    /// [`Error::Invalid`] if another table, or an older state of this one, has replaced it;
    /// [`Error::NotFound`] for no table, or a version that was cleaned up; [`Error::Storage`].
    pub fn check_in_log(&self) -> Result<()> {
        if !self.0.log.is_authority() {
            return Ok(());
        }
        let found = self.compare_commit()?;
        if found == CommitMatch::Same {
            return Ok(());
        }
        let (version, url) = (self.version(), self.stores().root().url());
        let newest =
            Self::open(self.0.log.clone(), None, self.0.options).map_err(|error| match error {
                Error::NotFound {
                    kind: NotFoundKind::Table,
                    ..
                } => Error::not_found(
                    NotFoundKind::Table,
                    format!(
                        "the table at {url} was deleted after it was opened; nothing was written"
                    ),
                ),
                other => other,
            })?;
        self.check_same(&newest.0.metadata)?;
        self.check_forward(&newest)?;
        match found {
            CommitMatch::Other => Err(Error::invalid(format!(
                "version {version} of the table at {url} is another commit than the one that was read, as after its log was restored from a copy; open it again"
            ))),
            CommitMatch::Missing if newest.version() > version => Err(Error::not_found(
                NotFoundKind::Version,
                format!(
                    "version {version} was cleaned up after it was read; update the handle to version {} and run the operation again",
                    newest.version()
                ),
            )),
            CommitMatch::Unclear => {
                self.update_commit_time(&newest);
                Ok(())
            }
            CommitMatch::Missing | CommitMatch::Same => Ok(()),
        }
    }

    /// Checks that the table's newest version is not older than this one.
    pub(super) fn check_forward(&self, newest: &Self) -> Result<()> {
        if newest.version() >= self.version() {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "the newest version of the table at {} went back from {} to {}, as after its log was restored from a copy; open it again",
            self.stores().root().url(),
            self.version(),
            newest.version()
        )))
    }

    /// Takes size and time of this version's commit from `newest`, so that the next comparison
    /// succeeds.
    fn update_commit_time(&self, newest: &Self) {
        let mut segment = self.segment().as_ref().clone();
        let theirs = newest.segment();
        let version = segment.version;
        let is_own = |commit: &&CommitFile| commit.version == version;
        if let Some(commit) = theirs
            .commits
            .iter()
            .chain(&theirs.last_commit)
            .find(is_own)
        {
            segment.last_commit = Some(commit.clone());
            self.replace_segment(&segment);
        }
    }
}
