//! The history of a table: commit information, and the resolution of timestamps to versions.
//!
//! The time of a version is its in-commit timestamp where in-commit timestamps are enabled. For
//! earlier versions it is the modification time of the commit file, adjusted so that times increase
//! with versions.
//!
//! Protocol: "Commit Provenance Information", "In-Commit Timestamps". Cost: one listing of the
//! whole log; a look-up by time reads only the commits with in-commit timestamps that a binary
//! search visits.

use serde_json::Value;

use crate::error::{Error, ErrorCode, NotFoundKind, Result, ResultExt};
use crate::exec::map_all;
use crate::log::{CommitFile, LogListing};
use crate::parse::commit::{self, ActionSelection, NonFileAction};
use crate::reconcile::CommitCache;
use crate::snapshot::{Snapshot, in_commit_timestamp};

/// A version and its commit information.
#[derive(Debug, Clone)]
pub struct HistoryEntry {
    /// The version.
    pub version: i64,
    /// The time that time travel uses for the version, in milliseconds since the epoch: its
    /// in-commit timestamp where enabled, else the modification time of its commit file. As in
    /// delta-spark it replaces the writer's clock in `commitInfo`.
    pub timestamp_ms: i64,
    /// `commitInfo`; an empty object where the commit has none.
    pub info: Value,
}

/// The newest `limit` versions up to the snapshot's, newest first.
///
/// # Errors
/// [`Error::Corrupt`] names the commit.
pub fn history(snapshot: &Snapshot, limit: Option<usize>) -> Result<Vec<HistoryEntry>> {
    let commits = commits(snapshot, &snapshot.log().list(0)?);
    let times = monotonic_file_times(&commits);
    let since = snapshot
        .in_commit_timestamps_since()
        .map_or(i64::MAX, |(version, _)| version);
    let newest: Vec<(CommitFile, i64)> = commits
        .into_iter()
        .zip(times)
        .rev()
        .take(limit.unwrap_or(usize::MAX))
        .collect();
    map_all(newest, move |(commit, time)| {
        let texts = CommitCache::default();
        let text = texts.get(&commit)?;
        let take = ActionSelection {
            info: true,
            ..ActionSelection::default()
        };
        let singles = commit::non_file_actions(&text, &take)
            .at_file(&commit.file.path)
            .at_version(commit.version)?;
        let info = singles.into_iter().find_map(|single| match single {
            NonFileAction::CommitInfo(info) => serde_json::from_str(&info).ok(),
            _ => None,
        });
        let info: Value = info.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
        let in_commit = info
            .get("inCommitTimestamp")
            .and_then(Value::as_i64)
            .filter(|_| commit.version >= since);
        Ok(HistoryEntry {
            version: commit.version,
            timestamp_ms: in_commit.unwrap_or(time),
            info,
        })
    })
}

/// All commits that the log still has up to the snapshot's version, ascending: the newest run
/// without gaps.
fn commits(snapshot: &Snapshot, listing: &LogListing) -> Vec<CommitFile> {
    let mut out: Vec<CommitFile> = Vec::new();
    for commit in listing
        .commits
        .range(..=snapshot.version())
        .rev()
        .map(|(_, commit)| commit)
    {
        if out
            .last()
            .is_some_and(|newer| newer.version != commit.version + 1)
        {
            break;
        }
        out.push(commit.clone());
    }
    out.reverse();
    out
}

/// Modification times of commit files, adjusted to increase by at least a millisecond per version.
fn monotonic_file_times(commits: &[CommitFile]) -> Vec<i64> {
    let mut last = i64::MIN;
    commits
        .iter()
        .map(|commit| {
            last = commit.modified_ms.max(last.saturating_add(1));
            last
        })
        .collect()
}

/// The times of the versions from `from` to `to` that the log still has, up to the snapshot's
/// version: (version, milliseconds since the epoch). `listing` is a listing of the whole log.
///
/// # Errors
/// [`Error::Corrupt`] names a commit without the in-commit timestamp that it must have.
pub fn version_timestamps(
    snapshot: &Snapshot,
    listing: &LogListing,
    from: i64,
    to: i64,
) -> Result<Vec<(i64, i64)>> {
    let commits = commits(snapshot, listing);
    let times = monotonic_file_times(&commits);
    let since = snapshot
        .in_commit_timestamps_since()
        .map_or(i64::MAX, |(version, _)| version);
    let wanted: Vec<(CommitFile, i64)> = commits
        .into_iter()
        .zip(times)
        .filter(|(c, _)| (from..=to).contains(&c.version))
        .collect();
    // Only commits with an in-commit timestamp are read.
    let (told, by_file): (Vec<_>, Vec<_>) = wanted
        .into_iter()
        .partition(|(commit, _)| commit.version >= since);
    let mut out: Vec<(i64, i64)> = by_file
        .into_iter()
        .map(|(commit, time)| (commit.version, time))
        .collect();
    out.extend(map_all(told, |(commit, _)| {
        Ok((
            commit.version,
            in_commit_timestamp(&CommitCache::default(), &commit)?,
        ))
    })?);
    Ok(out)
}

/// Which version a timestamp selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimestampSearch {
    /// The newest version at or before the time.
    AtOrBefore,
    /// The oldest version at or after the time.
    AtOrAfter,
}

/// The version that a timestamp selects.
///
/// # Errors
/// [`Error::NotFound`] for a timestamp before the first available version, or after the last one.
pub fn version_at(snapshot: &Snapshot, timestamp_ms: i64, search: TimestampSearch) -> Result<i64> {
    let commits = commits(snapshot, &snapshot.log().list(0)?);
    let times = monotonic_file_times(&commits);
    let since = snapshot
        .in_commit_timestamps_since()
        .map_or(i64::MAX, |(version, _)| version);
    let texts = CommitCache::default();
    let time_of = |n: usize| -> Result<i64> {
        match (commits.get(n), times.get(n)) {
            (Some(commit), _) if commit.version >= since => in_commit_timestamp(&texts, commit),
            (_, Some(time)) => Ok(*time),
            _ => Err(Error::internal("a version without a commit")),
        }
    };
    // Times increase with versions, so a binary search finds the first version after the time.
    let (mut low, mut high) = (0, commits.len());
    while low < high {
        let middle = low + (high - low) / 2;
        if time_of(middle)? <= timestamp_ms {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    let show = |ms: i64| {
        chrono::DateTime::from_timestamp_millis(ms)
            .map_or_else(|| ms.to_string(), |t| t.to_rfc3339())
    };
    let version = |n: usize| commits.get(n).map(|c| c.version);
    match search {
        TimestampSearch::AtOrBefore => {
            let found = low.checked_sub(1).and_then(version);
            match found {
                Some(found) => Ok(found),
                None if commits.is_empty() => Err(Error::not_found(
                    NotFoundKind::Version,
                    "the log has no commits left, so no version can be found by time; ask for a version",
                )
                .with_code(ErrorCode::LogWithoutCommits, &[])),
                None => {
                    let (time, oldest, oldest_time) =
                        (show(timestamp_ms), version(0).unwrap_or(0), show(time_of(0)?));
                    Err(Error::not_found(
                        NotFoundKind::Version,
                        format!(
                            "the time {time} is before the oldest version left, {oldest} of {oldest_time}"
                        ),
                    )
                    .with_code(
                        ErrorCode::TimestampTooEarly,
                        &[
                            ("timestamp", &time),
                            ("version", &oldest),
                            ("version_timestamp", &oldest_time),
                        ],
                    ))
                }
            }
        }
        TimestampSearch::AtOrAfter => {
            if let Some(exact) = low.checked_sub(1)
                && time_of(exact)? == timestamp_ms
                && let Some(found) = version(exact)
            {
                return Ok(found);
            }
            version(low).ok_or_else(|| {
                Error::not_found(
                    NotFoundKind::Version,
                    format!(
                        "the time {} is greater than latest commit timestamp",
                        show(timestamp_ms)
                    ),
                )
            })
        }
    }
}
