//! The newest commits: whether they are whole, and their in-commit timestamps.

use super::commit_tail::in_commit_timestamp;
use super::snapshot_state::Snapshot;
use crate::error::{Result, ResultExt};
use crate::log::CommitFile;
use crate::parse::commit::{self};

impl Snapshot {
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

    /// Records that this process wrote the version's commit.
    pub fn trust_newest_commit(&self) {
        let _ = self.0.is_commit_checked.set(());
    }

    /// Adds the content of a commit that is known without reading it to the cache.
    pub fn cache_commit(&self, version: i64, text: &bytes::Bytes) {
        self.0.commit_cache.insert(version, text);
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
