//! The rewrite of the chosen files and its commits.

use super::optimize_options::{
    FileSizes, OptimizeOptions, OptimizeResult, OptimizeStrategy, OptimizeTask,
    with_inherited_clustering,
};
use super::optimize_plan::{OptimizePlan, files_to_optimize, output_file_count};
use crate::commit::OptimisticTransaction;
use crate::commit::finish::{self, CommitResult, json_string_list};
use crate::error::Result;
use crate::exec::CancellationToken;
use crate::file_writer::bound_constraints::NamedExpression;
use crate::ops::rewrite::file_rewrite::{self, FileRewrite};
use crate::ops::rewrite::target_table::{DataFileOptions, TargetTable};
use crate::protocol::commit_line::Add;
use crate::snapshot::Snapshot;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Packs the files of the partitions for which `predicate` is true, of all partitions without one;
/// or lays out their rows along a curve, according to the table or `options`.
///
/// # Errors
/// [`Error::Invalid`] for a predicate on other columns, and for options that contradict the table's
/// clustering; [`Error::Unsupported`] for tables that this release cannot write; as
/// [`OptimisticTransaction::commit`]. New files are deleted after an error, unless the outcome of
/// the commit is unknown.
pub fn optimize(
    snapshot: &Snapshot,
    predicate: Option<&NamedExpression>,
    options: &OptimizeOptions,
    cancel: &CancellationToken,
) -> Result<OptimizeResult> {
    let files = files_to_optimize(snapshot, predicate, options, cancel)?;
    optimize_files(
        snapshot,
        files,
        predicate.map(|demand| demand.sql.clone()),
        options,
        cancel,
    )
}

/// The same for the selected files.
pub(in crate::ops) fn optimize_files(
    snapshot: &Snapshot,
    files: Vec<Add>,
    sql: Option<String>,
    options: &OptimizeOptions,
    cancel: &CancellationToken,
) -> Result<OptimizeResult> {
    let OptimizePlan {
        layout,
        bins,
        size,
        cluster_by,
        result: mut out,
    } = OptimizePlan::of(snapshot, files, options, cancel)?;
    let sized = |size: u64| {
        TargetTable::of(
            snapshot,
            DataFileOptions {
                target_file_size: Some(size),
                ..options.encoding.clone()
            },
        )
    };
    // A bin becomes one file, even if it is a little larger than the target.
    let target = sized(size.saturating_mul(2));
    let mut run = OptimizeRun::new(snapshot, options, sql, cluster_by, &target);
    // Progress counts bins instead of the files in them.
    let (progress, cancel) = (cancel.progress(), &cancel.without_progress());
    progress.expect(bins.len() as u64);
    for bin in bins {
        let bin = match &layout {
            OptimizeStrategy::Compaction => FileRewrite::of(bin, snapshot, &target, cancel)?,
            OptimizeStrategy::Purge => {
                with_inherited_clustering(FileRewrite::of(bin, snapshot, &target, cancel)?)
            }
            OptimizeStrategy::ZOrder(curve) => FileRewrite::new(
                bin.clone(),
                curve.rewrite(bin, None, snapshot, &sized(size), cancel)?,
                snapshot,
            ),
            OptimizeStrategy::Clustering(curve, clustering) => {
                let into = Some(output_file_count(&bin, size));
                let mut bin = FileRewrite::new(
                    bin.clone(),
                    curve.rewrite(bin, into, snapshot, &sized(size), cancel)?,
                    snapshot,
                );
                clustering.tag(&mut bin.added);
                bin
            }
        };
        run.add(bin, &mut out);
        progress.advance(1);
        if options
            .min_commit_interval_ms
            .is_some_and(|ms| run.started.elapsed() >= Duration::from_millis(ms))
        {
            out.done = run.commit(cancel)?.or(out.done);
        }
    }
    out.done = run.commit(cancel)?.or(out.done);
    Ok(out)
}

/// The state of a run: rewritten files that are not committed yet.
pub(in crate::ops) struct OptimizeRun<'a> {
    options: &'a OptimizeOptions,
    sql: Option<String>,
    cluster_by: Vec<String>,
    /// The newest version, except for `last_commit`.
    current_snapshot: Snapshot,
    /// The last commit. Its version is opened when the next commit begins, so that an error of
    /// opening does not fail this commit.
    last_commit: Option<CommitResult>,
    target: &'a TargetTable,
    bins: Vec<FileRewrite>,
    started: Instant,
}

impl<'a> OptimizeRun<'a> {
    pub(in crate::ops) fn new(
        snapshot: &Snapshot,
        options: &'a OptimizeOptions,
        sql: Option<String>,
        cluster_by: Vec<String>,
        target: &'a TargetTable,
    ) -> Self {
        Self {
            options,
            sql,
            cluster_by,
            current_snapshot: snapshot.clone(),
            last_commit: None,
            target,
            bins: Vec::new(),
            started: Instant::now(),
        }
    }

    /// Adds a rewritten bin.
    pub(in crate::ops) fn add(&mut self, bin: FileRewrite, out: &mut OptimizeResult) {
        out.added.0.extend(bin.added.iter().map(|add| add.size));
        out.removed.0.extend(bin.removed.iter().map(|add| add.size));
        self.bins.push(bin);
    }

    pub(in crate::ops) fn commit(
        &mut self,
        cancel: &CancellationToken,
    ) -> Result<Option<CommitResult>> {
        let bins = std::mem::take(&mut self.bins);
        self.started = Instant::now();
        if bins.is_empty() {
            return Ok(None);
        }
        if let Some(last) = self.last_commit.take() {
            self.current_snapshot = last.newest(&self.current_snapshot)?;
        }
        let added = FileSizes(
            bins.iter()
                .flat_map(|bin| &bin.added)
                .map(|add| add.size)
                .collect(),
        );
        let metrics = json!({
            "minFileSize": added.percentile(0),
            "p25FileSize": added.percentile(25),
            "p50FileSize": added.percentile(50),
            "p75FileSize": added.percentile(75),
            "maxFileSize": added.percentile(100),
        });
        let operation = finish::operation(
            if self.options.task.is_reorg() {
                "REORG"
            } else {
                "OPTIMIZE"
            },
            self.parameters(),
            metrics,
        );
        let done = file_rewrite::commit(
            OptimisticTransaction::new(&self.current_snapshot),
            operation,
            bins,
            self.target,
            &self.options.commit_options,
            cancel,
        )?;
        self.last_commit = Some(done.clone());
        Ok(Some(done))
    }

    fn parameters(&self) -> Value {
        let predicate = json_string_list(self.sql.as_slice());
        if self.options.task.is_reorg() {
            return json!({"predicate": predicate, "applyPurge": true});
        }
        let full =
            (!self.cluster_by.is_empty()).then_some(self.options.task == OptimizeTask::ClusterFull);
        json!({
            "predicate": predicate,
            "auto": self.options.automatic.is_some(),
            "clusterBy": json_string_list(&self.cluster_by),
            "zOrderBy": json_string_list(&self.options.z_order_by),
            "isFull": full,
        })
    }
}
