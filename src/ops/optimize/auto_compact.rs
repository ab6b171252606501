//! Auto compaction: packs the small files of a partition after a write that left many of them.
//!
//! It follows a committed version and cannot undo it: a failure is a warning, and a conflict with
//! another writer, which may be compacting the same files, is ignored. Only partitions to which the
//! version added files are considered. Clustered tables are clustered instead.
//!
//! Properties: `delta.autoOptimize.autoCompact`, `delta.autoOptimize`; [`AutoCompactOptions`]
//! override them. Metrics are those of delta-spark. Cost: if enabled, one pass over the actions of live files after every write, and
//! occasionally one over small files.

use std::collections::{BTreeMap, BTreeSet};

use arrow_array::Array;

use crate::commit::adds::matching_live_adds;
use crate::commit::finish::{AutoCompactOptions, CommitOptions, CommitResult};
use crate::error::{Error, Result};
use crate::exec::CancellationToken;
use crate::log::MaintenanceOperation;
use crate::ops::optimize::optimize_options::{OptimizeOptions, OptimizeResult};
use crate::ops::optimize::optimize_run::optimize_files;
use crate::ops::rewrite::target_table::DataFileOptions;
use crate::parse::mask;
use crate::protocol::action::Metadata;
use crate::protocol::commit_line::{Add, PartitionValues};
use crate::protocol::properties;
use crate::snapshot::Snapshot;

/// The number of small files in a partition from which they are packed, by default.
const FILES: usize = 50;
/// The maximum number of partitions that are packed at a time.
const PARTITIONS: usize = 128;
/// The size of a new file in bytes, by default.
const SIZE: u64 = 128 << 20;

/// Packs small files if that is due after a version that added files to some partitions.
pub(in crate::ops) fn compact_after_commit(
    mut done: CommitResult,
    touched: &BTreeSet<PartitionValues>,
    commit_options: &CommitOptions,
    cancel: &CancellationToken,
) -> CommitResult {
    let Some(snapshot) = done
        .snapshot
        .clone()
        .filter(|snapshot| !touched.is_empty() && is_enabled(snapshot.metadata(), commit_options))
    else {
        return done;
    };
    match compact(&snapshot, touched, commit_options, cancel) {
        Ok(Some(packed)) => {
            done.warnings.extend(packed.warnings);
            done.snapshot = packed.snapshot.or(done.snapshot);
        }
        // The other writer has packed them, or will.
        Ok(None) | Err(Error::Cancelled | Error::CommitFailed { .. }) => {}
        Err(error) => done.warnings.push(format!(
            "version {} is committed, but its small files could not be packed: {error}",
            snapshot.version()
        )),
    }
    done
}

/// Whether the options or, if they do not mention it, the table's properties enable it.
fn is_enabled(metadata: &Metadata, commit_options: &CommitOptions) -> bool {
    if let Some(enabled) = commit_options.auto_compact.enabled {
        return enabled;
    }
    let word = properties::value(&metadata.configuration, "delta.autoOptimize.autoCompact");
    metadata.flag("delta.autoOptimize")
        || word.is_some_and(|word| {
            ["true", "auto", "legacy"]
                .iter()
                .any(|on| word.eq_ignore_ascii_case(on))
        })
}

/// Packs the small files of those of the changed partitions that have many.
fn compact(
    snapshot: &Snapshot,
    touched: &BTreeSet<PartitionValues>,
    commit_options: &CommitOptions,
    cancel: &CancellationToken,
) -> Result<Option<CommitResult>> {
    // Auto compaction was not requested, so it is skipped without a warning where the catalog
    // forbids it.
    if !snapshot.permits_maintenance(MaintenanceOperation::Optimize)? {
        return Ok(None);
    }
    let AutoCompactOptions {
        min_files,
        max_file_size,
        min_file_size,
        ..
    } = commit_options.auto_compact;
    let size = max_file_size.unwrap_or(SIZE);
    let limit = min_file_size.unwrap_or(size / 2);
    let small = i64::try_from(limit).unwrap_or(i64::MAX);
    let files = matching_live_adds(snapshot, cancel, |batch| {
        Ok(mask(
            (0..batch.len())
                .map(|row| batch.size.is_valid(row) && batch.size.value(row) < small)
                .collect(),
        ))
    })?;
    let mut by_partition: BTreeMap<PartitionValues, Vec<Add>> = BTreeMap::new();
    for add in files {
        if touched.contains(&add.partition_values) {
            by_partition
                .entry(add.partition_values.clone())
                .or_default()
                .push(add);
        }
    }
    by_partition.retain(|_, files| files.len() >= min_files.unwrap_or(FILES).max(2));
    if by_partition.is_empty() {
        return Ok(None);
    }
    let chosen: Vec<(PartitionValues, Vec<Add>)> =
        by_partition.into_iter().take(PARTITIONS).collect();
    let partitions: Vec<String> = chosen
        .iter()
        .filter(|(values, _)| !values.is_empty())
        .map(|(values, _)| partition_predicate_sql(snapshot, values))
        .collect();
    let sql = (!partitions.is_empty()).then(|| partitions.join(" OR "));
    let options = OptimizeOptions {
        encoding: DataFileOptions {
            target_file_size: Some(size),
            ..DataFileOptions::default()
        },
        // The caller's options for the commit apply to the caller's commit only.
        commit_options: CommitOptions {
            custom_metadata: serde_json::Map::new(),
            ..commit_options.without_transactions()
        },
        automatic: Some(limit),
        ..OptimizeOptions::default()
    };
    let files = chosen.into_iter().flat_map(|(_, files)| files).collect();
    let OptimizeResult { done, .. } =
        optimize_files(snapshot, files, sql, &options, &cancel.without_progress())?;
    Ok(done)
}

/// A partition as a predicate, for the history.
fn partition_predicate_sql(snapshot: &Snapshot, values: &PartitionValues) -> String {
    let name = |physical: &str| {
        let field = snapshot
            .schema()
            .fields
            .iter()
            .find(|field| snapshot.physical_name(field) == physical);
        field.map_or_else(|| physical.to_owned(), |field| field.name.clone())
    };
    let one = |(column, value): (&String, &Option<String>)| match value {
        Some(value) => format!("{} <=> '{}'", name(column), value.replace('\'', "\\'")),
        None => format!("{} <=> NULL", name(column)),
    };
    format!(
        "({})",
        values.iter().map(one).collect::<Vec<_>>().join(" AND ")
    )
}
