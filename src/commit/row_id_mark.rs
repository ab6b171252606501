//! The high-water mark of row ids: the highest id that was assigned.
//!
//! Protocol: "Row IDs", "Row Tracking". The domain `delta.rowTracking` holds it. A mark that is
//! missing, unreadable or too low would give ids a second time, so it is compared with the files of
//! the table before ids are assigned, once for each handle. Cost: the column of row ids of all
//! files, and the statistics or the end of one data file.

use arrow_array::Array;

use super::adds::matching_live_adds;
use super::intent::{ROW_TRACKING, parse_high_water_mark};
use crate::error::{Error, Result, ResultExt};
use crate::exec::CancellationToken;
use crate::parse::checkpoint::FileActionKind;
use crate::parse::{FileActionProjection, mask};
use crate::pq::read_footer;
use crate::protocol::commit_line::Add;
use crate::protocol::data_path;
use crate::snapshot::Snapshot;

/// With fewer ids left than this a table is refused before rows are written.
const LEAST_LEFT: i64 = 1 << 48;
/// A log of at most this many bytes is read with its statistics.
const SHORT_LOG: u64 = 4 << 20;
/// More rows than a data file has. A removed file may be gone, and its number of rows with it.
const MOST_ROWS: i64 = 1 << 32;

/// The highest row id that was assigned up to a version; -1 for none.
///
/// # Errors
/// [`Error::Corrupt`] for row ids beyond 64 bits; errors of reading the log and a data file.
pub(super) fn row_id_high_water_mark(
    snapshot: &Snapshot,
    cancel: &CancellationToken,
) -> Result<i64> {
    let Some(recorded_mark) = recorded_mark(snapshot)? else {
        // A table that gets row ids, perhaps after the feature was dropped, begins again with 0.
        let is_starting = !snapshot.metadata().flag("delta.enableRowTracking");
        return if is_starting {
            highest_live_row_id(snapshot, cancel)
        } else {
            highest_row_id(snapshot, cancel)
        };
    };
    let verified_mark = snapshot.verified_row_id_mark(|| {
        let live_mark = highest_live_row_id(snapshot, cancel)?;
        if recorded_mark >= live_mark {
            Ok(recorded_mark)
        } else {
            highest_row_id(snapshot, cancel)
        }
    })?;
    Ok(verified_mark.max(recorded_mark))
}

/// Refuses a table that has hardly any row ids left, before its rows are written.
///
/// # Errors
/// [`Error::Invalid`]; errors of reading the log.
pub(crate) fn check_row_ids_left(snapshot: &Snapshot) -> Result<()> {
    match recorded_mark(snapshot)? {
        Some(mark) if mark > i64::MAX - LEAST_LEFT => Err(Error::invalid(format!(
            "the table tracks rows and has no row ids left: the domain `{ROW_TRACKING}` has given out ids up to {mark}"
        ))
        .at_version(snapshot.version())),
        _ => Ok(()),
    }
}

fn recorded_mark(snapshot: &Snapshot) -> Result<Option<i64>> {
    Ok(snapshot
        .non_file_actions()?
        .domains
        .get(ROW_TRACKING)
        .and_then(|domain| parse_high_water_mark(&domain.configuration)))
}

/// The highest row id that any file has or had.
fn highest_row_id(snapshot: &Snapshot, cancel: &CancellationToken) -> Result<i64> {
    Ok(highest_live_row_id(snapshot, cancel)?.max(highest_removed_row_id(snapshot, cancel)?))
}

/// The highest first row id of a file, and the path of this file.
fn highest_base_row_id(
    snapshot: &Snapshot,
    kind: FileActionKind,
    cancel: &CancellationToken,
) -> Result<Option<(i64, String)>> {
    let mut highest: Option<(i64, String)> = None;
    let projection = FileActionProjection {
        row_ids: true,
        ..FileActionProjection::default()
    };
    for batch in snapshot.files(kind, projection, cancel)? {
        let batch = batch?;
        let Some(ids) = &batch.base_row_id else {
            continue;
        };
        for row in (0..batch.len()).filter(|row| ids.is_valid(*row)) {
            let id = ids.value(row);
            if highest.as_ref().is_none_or(|(known, _)| id > *known) {
                highest = Some((id, batch.path.value(row).to_owned()));
            }
        }
    }
    Ok(highest)
}

/// The last row id of the live file with the highest ones; -1 if no file has row ids.
fn highest_live_row_id(snapshot: &Snapshot, cancel: &CancellationToken) -> Result<i64> {
    let Some((first_id, path)) = highest_base_row_id(snapshot, FileActionKind::Adds, cancel)?
    else {
        return Ok(-1);
    };
    let rows = row_count(snapshot, &path, cancel)?;
    first_id
        .checked_add(rows)
        .map(|end| end - 1)
        .ok_or_else(|| {
            Error::corrupt(format!(
                "the file has {rows} rows and its row ids begin at {first_id}, beyond 64 bits"
            ))
            .at_file(&path)
        })
}

/// The number of rows of a live file: from its statistics if the log is short, else from its end.
/// In a long log the column of statistics is most of what there is to read.
fn row_count(snapshot: &Snapshot, path: &str, cancel: &CancellationToken) -> Result<i64> {
    if log_bytes(snapshot) <= SHORT_LOG
        && let Some(rows) = recorded_row_count(snapshot, path, cancel)?
    {
        return Ok(rows);
    }
    let file = snapshot.stores().file(&data_path::canonical(path)?, None)?;
    match read_footer(&file).at_file(path) {
        Ok(footer) => Ok(i64::try_from(footer.num_rows()).unwrap_or(i64::MAX)),
        Err(error) if error.is_not_found() => {
            Ok(recorded_row_count(snapshot, path, cancel)?.unwrap_or(MOST_ROWS))
        }
        Err(error) => Err(error),
    }
}

/// The number of rows in the statistics of a live file.
fn recorded_row_count(
    snapshot: &Snapshot,
    path: &str,
    cancel: &CancellationToken,
) -> Result<Option<i64>> {
    let adds = matching_live_adds(snapshot, cancel, |batch| {
        Ok(mask(
            (0..batch.len())
                .map(|row| batch.path.value(row) == path)
                .collect(),
        ))
    })?;
    Ok(adds.iter().find_map(Add::num_records))
}

/// The size of the files from which the live files are read.
fn log_bytes(snapshot: &Snapshot) -> u64 {
    let segment = snapshot.segment();
    let checkpoint_files = segment
        .checkpoint
        .iter()
        .flat_map(|checkpoint| &checkpoint.files);
    checkpoint_files
        .chain(segment.replay.iter().map(|commit| &commit.file))
        .map(|file| file.size.unwrap_or(u64::MAX))
        .fold(0, u64::saturating_add)
}

/// An id that no removed file has exceeded; -1 if none had row ids.
fn highest_removed_row_id(snapshot: &Snapshot, cancel: &CancellationToken) -> Result<i64> {
    Ok(
        highest_base_row_id(snapshot, FileActionKind::Removes, cancel)?
            .map_or(-1, |(first_id, _)| first_id.saturating_add(MOST_ROWS)),
    )
}
