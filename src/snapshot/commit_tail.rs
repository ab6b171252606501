//! The last bytes of a commit, which show whether it is whole, and its in-commit timestamp.

use crate::error::{Error, Result, ResultExt};
use crate::log::CommitFile;
use crate::parse::commit::{self, ActionSelection, NonFileAction};
use crate::parse::json_lines;
use crate::protocol::action::{self, CommitTimes};
use crate::reconcile::CommitCache;

/// Above this size the newest commit is not read to verify the version checksum.
pub(super) const CHECKED_COMMIT: u64 = 1 << 20;

/// Of a longer commit this many bytes are read to verify that it does not end within a line.
pub(super) const TAIL: u64 = 64 << 10;

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
pub(super) fn check_commit_tail(commit: &CommitFile, size: u64) -> Result<()> {
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
