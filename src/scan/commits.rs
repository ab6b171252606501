//! The files that single commits added and removed, for readers that follow a table commit by
//! commit.
//!
//! One listing from a version on serves all later commits; a commit is read when it is requested.
//! Published commits, a log tail and commits that only a committer knows are treated alike.
//!
//! Protocol: "Add File and Remove File" (`dataChange`), "Add CDC File". Cost: a listing, then one
//! read per commit.

use arrow_array::Array;

use crate::error::{Error, NotFoundKind, Result, ResultExt};
use crate::log::LogListing;
use crate::parse::commit::{self, ActionSelection, NonFileAction};
use crate::parse::{FileActionProjection, FileBatch};
use crate::snapshot::Snapshot;

/// The commits of a table from a version on, up to a snapshot's.
#[derive(Debug, Clone)]
pub struct CommitRange {
    snapshot: Snapshot,
    listing: std::sync::Arc<LogListing>,
}

/// The changes of a commit that matter to a follower. Files that only rearrange existing rows do
/// not count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommitFileChanges {
    /// Path, as in the log, and size in bytes of each file with new rows.
    pub adds: Vec<(String, i64)>,
    /// Whether existing rows were removed.
    pub removes: bool,
    /// The table's id, if the commit has metadata.
    pub table_id: Option<String>,
    /// Number of files that the change data feed of this version is read from.
    pub change_data_files: u64,
    /// Their bytes.
    pub change_data_bytes: i64,
}

impl CommitRange {
    /// Lists the commits from `from` on.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub fn list(snapshot: &Snapshot, from: i64) -> Result<Self> {
        Ok(Self {
            snapshot: snapshot.clone(),
            listing: std::sync::Arc::new(snapshot.log().list(from)?),
        })
    }

    /// Reads one commit.
    ///
    /// # Errors
    /// [`Error::NotFound`] for one that is gone from the log, [`Error::Corrupt`] names the line.
    pub fn read(&self, version: i64) -> Result<CommitFileChanges> {
        let url = self.snapshot.stores().root().url();
        let gone = || {
            Error::not_found(NotFoundKind::Version, format!("the commit of version {version} is gone from the log: start again without a cursor"))
                .at_version(version)
                .at_file(url)
        };
        let commit = self.listing.commits.get(&version).ok_or_else(gone)?;
        let text = match self.snapshot.commit_bytes(commit) {
            Err(error) if error.is_not_found() => return Err(gone()),
            text => text?,
        };
        let wanted = FileActionProjection {
            data_change: true,
            ..FileActionProjection::default()
        };
        let take = ActionSelection::of_changes(&wanted);
        let parsed = commit::parse(&text, 0..text.len(), &take, &[])
            .at_file(&commit.file.path)
            .at_version(version)?;
        let table_id = parsed
            .non_file_actions
            .into_iter()
            .find_map(|single| match single {
                NonFileAction::Metadata(metadata) => Some(metadata.id),
                _ => None,
            });
        let adds: Vec<(String, i64)> = data_change_rows(&parsed.adds)
            .map(|row| {
                (
                    parsed.adds.path.value(row).to_owned(),
                    size(&parsed.adds, row),
                )
            })
            .collect();
        let removed: Vec<i64> = data_change_rows(&parsed.removes)
            .map(|row| size(&parsed.removes, row))
            .collect();
        let (feed_files, feed_bytes) = if parsed.cdc.is_empty() {
            (
                adds.len() + removed.len(),
                adds.iter().map(|(_, bytes)| bytes).chain(&removed).sum(),
            )
        } else {
            (
                parsed.cdc.len(),
                (0..parsed.cdc.len())
                    .map(|row| size(&parsed.cdc, row))
                    .sum(),
            )
        };
        Ok(CommitFileChanges {
            adds,
            removes: !removed.is_empty(),
            table_id,
            change_data_files: feed_files as u64,
            change_data_bytes: feed_bytes,
        })
    }
}

/// The rows of files with `dataChange`.
fn data_change_rows(files: &FileBatch) -> impl Iterator<Item = usize> {
    (0..files.len()).filter(|row| {
        files
            .data_change
            .as_ref()
            .is_none_or(|flags| flags.is_null(*row) || flags.value(*row))
    })
}

/// Size in bytes; 0 if the log does not have it.
fn size(files: &FileBatch, row: usize) -> i64 {
    if files.size.is_valid(row) {
        files.size.value(row)
    } else {
        0
    }
}
