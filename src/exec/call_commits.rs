//! The versions that a call has committed so far.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value};

/// One committed version.
#[derive(Debug, Clone, PartialEq)]
pub struct CommitRecord {
    /// The URL of the table, without credentials.
    pub url: String,
    /// The operation's name, as in `commitInfo`.
    pub operation: String,
    /// The version.
    pub version: i64,
    /// The number of attempts to commit.
    pub attempts: u32,
    /// Milliseconds of the commit and of the maintenance after it.
    pub commit_ms: u64,
    /// The operation's metrics, as in `commitInfo`.
    pub metrics: Map<String, Value>,
}

/// The commits of a call, in their order. Clones share it; the caller takes them while the call
/// runs and after it, also if it fails.
#[derive(Debug, Clone, Default)]
pub struct CallCommits(Arc<Mutex<Vec<CommitRecord>>>);

impl CallCommits {
    /// Adds a commit.
    pub fn add(&self, record: CommitRecord) {
        self.records(|records| records.push(record));
    }

    /// Takes the commits since the last time.
    #[must_use]
    pub fn take(&self) -> Vec<CommitRecord> {
        self.records(std::mem::take)
    }

    fn records<T>(&self, act: impl FnOnce(&mut Vec<CommitRecord>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
