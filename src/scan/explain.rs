//! Explanation of a scan: (snapshot, predicate) -> how many files and row groups are read, and what
//! excludes the others. The decisions are those of the scan itself; no rows are read.

use std::sync::Arc;

use arrow_array::BooleanArray;
use serde::Serialize;

use super::overlap::{ColumnOverlap, overlaps};
use super::plan::{PlanBatch, ScanPlan, plan};
use super::read::{ScanContext, ScanRequest, tasks};
use crate::error::Result;
use crate::exec::map_all;
use crate::pq::RowGroupPlan;
use crate::snapshot::Snapshot;

/// The files and row groups that a scan reads.
#[derive(Debug, Clone, Serialize)]
pub struct ScanExplanation {
    /// Number of files, by what excludes them.
    pub plan: ScanPlan,
    /// Bytes of all live files.
    pub bytes_total: u64,
    /// Bytes of the files that remain.
    pub bytes: u64,
    /// Row groups of the files that remain; `None` if their footers were not read.
    pub row_groups: Option<RowGroupPlan>,
    /// Overlap of all live files in the columns of the predicate that have bounds.
    pub overlaps: Vec<ColumnOverlap>,
}

/// Explains the scan of `request`; with `row_groups`, the footers of its files are read.
///
/// # Errors
/// As [`super::scan`], for the log, the footers and the indexes of the files.
pub fn explain(
    snapshot: &Snapshot,
    request: &ScanRequest,
    row_groups: bool,
) -> Result<ScanExplanation> {
    let cancel = &request.cancel;
    let everything = plan(snapshot, None, cancel)?;
    let plan = plan(snapshot, request.predicate.as_ref(), cancel)?;
    let row_groups = if row_groups {
        let context = Arc::new(ScanContext::new(snapshot, request, &[])?);
        // One task a file: the pieces of a large file share its footer.
        let tasks: Vec<_> = tasks(&plan, request)
            .into_iter()
            .filter(|task| task.range.as_ref().is_none_or(|range| range.start == 0))
            .collect();
        cancel.progress().expect(tasks.len() as u64);
        let job_cancel = cancel.clone();
        let of_files = map_all(tasks, move |mut task| {
            job_cancel.check()?;
            task.range = None;
            let plan = context.row_groups(&task)?;
            job_cancel.progress().advance(1);
            Ok(plan)
        })?;
        let mut total = RowGroupPlan::default();
        for of_file in of_files {
            total += of_file;
        }
        Some(total)
    } else {
        None
    };
    let columns: Vec<Vec<String>> = request
        .predicate
        .iter()
        .flat_map(|predicate| predicate.columns())
        .map(<[String]>::to_vec)
        .collect();
    Ok(ScanExplanation {
        bytes_total: file_bytes(&everything),
        bytes: file_bytes(&plan),
        overlaps: overlaps(snapshot, &columns, cancel)?,
        plan,
        row_groups,
    })
}

/// The bytes of a plan's files.
fn file_bytes(plan: &ScanPlan) -> u64 {
    let of_batch = |(batch, keep): &(Arc<PlanBatch>, BooleanArray)| -> u64 {
        let sizes = batch.files.size.iter().zip(keep);
        sizes
            .filter(|(_, keep)| *keep == Some(true))
            .filter_map(|(size, _)| u64::try_from(size?).ok())
            .sum()
    };
    plan.batches.iter().map(of_batch).sum()
}
