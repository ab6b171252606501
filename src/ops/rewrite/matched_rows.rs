//! The rows of a table that a command matches: files with matching rows only, and rows of other
//! files.
//!
//! Statistics and partition values are evaluated first; the remaining files are decided by reading
//! the columns of the predicate.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::commit::adds::{all_live_adds, matching_live_adds};
use crate::dv::RoaringBitmapArray;
use crate::error::{Result, invariant};
use crate::exec::CancellationToken;
use crate::expr::BoundExpr;
use crate::ops::rewrite::replace_keys::ReplaceKeySet;
use crate::ops::rewrite::row_deletion::{deleted_row_count, row_counts_beyond};
use crate::ops::rewrite::target_table::FileRowSelection;
use crate::parse::mask;
use crate::protocol::commit_line::Add;
use crate::prune;
use crate::scan::{FileMatcher, PositionSelection};
use crate::snapshot::Snapshot;

/// The rows that a command matches.
#[derive(Debug, Clone, Default)]
pub(in crate::ops) struct MatchedRows {
    /// The files with matching rows.
    pub files: Vec<Add>,
    /// The matching rows of those files that have, or may have, other rows as well.
    pub partial: Arc<HashMap<String, RoaringBitmapArray>>,
    /// Their number, if known.
    pub rows: Option<u64>,
    /// Whether rows were read: partition values alone were not sufficient.
    pub rows_scanned: bool,
    /// True for all of them, and possibly for other rows.
    predicate: Option<BoundExpr>,
}

impl MatchedRows {
    /// The rows for which `predicate` is true, all rows without one; if keys are given, only rows
    /// with one of the keys.
    pub(in crate::ops) fn find_rows(
        snapshot: &Snapshot,
        predicate: Option<&BoundExpr>,
        keys: Option<&ReplaceKeySet>,
        cancel: &CancellationToken,
    ) -> Result<Self> {
        let Some(predicate) = predicate else {
            return Ok(Self::of_whole_files(all_live_adds(snapshot, cancel)?));
        };
        let lens = FileMatcher::new(snapshot, vec![predicate.clone()]);
        let mut files = matching_live_adds(snapshot, cancel, |batch| lens.matching(batch))?;
        let by_partition = keys.is_none() && Self::is_partition_only(snapshot, Some(predicate));
        if by_partition || files.is_empty() {
            return Ok(Self::of_whole_files(files));
        }
        let rows = FileRowSelection {
            files: files.iter().map(|add| add.path.clone()).collect(),
            predicate: Some(predicate.clone()),
            positions: None,
        };
        let partial = rows.positions(snapshot, keys, cancel)?;
        files.retain(|add| partial.contains_key(&add.path));
        Ok(Self {
            predicate: Some(predicate.clone()),
            ..Self::from_positions(snapshot, files, partial)?
        })
    }

    /// The rows that another engine found, given by the paths of their files.
    pub(in crate::ops) fn from_external_rows(
        snapshot: &Snapshot,
        rows: HashMap<String, RoaringBitmapArray>,
        cancel: &CancellationToken,
    ) -> Result<Self> {
        let files = if rows.is_empty() {
            Vec::new()
        } else {
            matching_live_adds(snapshot, cancel, |batch| {
                Ok(mask(
                    (0..batch.len())
                        .map(|row| rows.contains_key(batch.path.value(row)))
                        .collect(),
                ))
            })?
        };
        invariant!(
            files.len() == rows.len(),
            "rows were found in files that the version does not have"
        );
        Self::from_positions(snapshot, files, rows)
    }

    /// The rows at these positions; each file has at least one.
    fn from_positions(
        snapshot: &Snapshot,
        files: Vec<Add>,
        mut partial: HashMap<String, RoaringBitmapArray>,
    ) -> Result<Self> {
        let rows = partial.values().map(RoaringBitmapArray::len).sum();
        for path in fully_matched_files(snapshot, &files, &partial)? {
            partial.remove(&path);
        }
        Ok(Self {
            files,
            partial: Arc::new(partial),
            rows: Some(rows),
            rows_scanned: true,
            predicate: None,
        })
    }

    /// Whether a predicate depends on partition values only; true without a predicate.
    pub(in crate::ops) fn is_partition_only(
        snapshot: &Snapshot,
        predicate: Option<&BoundExpr>,
    ) -> bool {
        predicate.is_none_or(|predicate| {
            prune::partition_only(predicate, &snapshot.metadata().partition_columns)
                .1
                .is_none()
        })
    }

    /// All rows of these files.
    pub(in crate::ops) fn of_whole_files(files: Vec<Add>) -> Self {
        Self {
            rows: files.iter().map(live_rows_from_stats).sum(),
            files,
            ..Self::default()
        }
    }

    /// The files without remaining rows, and the other files.
    pub(in crate::ops) fn split_by_coverage(&self) -> (Vec<Add>, Vec<Add>) {
        self.files
            .iter()
            .cloned()
            .partition(|add| !self.partial.contains_key(&add.path))
    }

    /// The matching rows: of files that are removed as a whole, and of other files.
    pub(in crate::ops) fn selected_rows(&self) -> [FileRowSelection; 2] {
        let (whole, partial): (Vec<String>, Vec<String>) = self
            .files
            .iter()
            .map(|add| add.path.clone())
            .partition(|path| !self.partial.contains_key(path));
        let some = PositionSelection::Only(Arc::clone(&self.partial));
        [
            FileRowSelection {
                files: whole,
                ..FileRowSelection::default()
            },
            FileRowSelection {
                files: partial,
                predicate: self.predicate.clone(),
                positions: Some(some),
            },
        ]
    }

    /// The remaining rows of files that are not removed as a whole.
    pub(in crate::ops) fn remaining_rows(&self) -> FileRowSelection {
        FileRowSelection {
            files: self.partial.keys().cloned().collect(),
            predicate: None,
            positions: Some(PositionSelection::Without(Arc::clone(&self.partial))),
        }
    }
}

/// The files that have no live rows other than these. Statistics name the candidates, the files'
/// footers decide.
pub(in crate::ops) fn fully_matched_files(
    snapshot: &Snapshot,
    files: &[Add],
    rows: &HashMap<String, RoaringBitmapArray>,
) -> Result<HashSet<String>> {
    let candidates: Vec<(&Add, u64)> = files
        .iter()
        .filter_map(|add| {
            let matched = rows.get(&add.path)?.len();
            (matched >= live_rows_from_stats(add)?)
                .then(|| (add, deleted_row_count(add).saturating_add(matched)))
        })
        .collect();
    let row_counts = row_counts_beyond(snapshot, candidates.iter().copied())?;
    Ok(candidates
        .into_iter()
        .zip(row_counts)
        .filter(|((_, gone), rows)| gone >= rows)
        .map(|((add, _), _)| add.path.clone())
        .collect())
}

/// The number of rows of a file that are not deleted, if its statistics have it.
fn live_rows_from_stats(add: &Add) -> Option<u64> {
    let rows = add.num_records()?
        - add
            .deletion_vector
            .as_ref()
            .map_or(0, |vector| vector.cardinality);
    u64::try_from(rows).ok()
}
