//! Auto compaction: once a write has left a partition with many small files, these are packed at
//! once.
//!
//! It follows a version that is made and cannot undo it: what goes wrong is a warning, and where
//! another writer changes the same files meanwhile, who does the same perhaps, nothing is said.
//! Only partitions that the version added files to are looked at. A clustered table is clustered
//! instead.
//!
//! Properties: `delta.autoOptimize.autoCompact`, `delta.autoOptimize`. Figures are delta-spark's.
//! Cost: where it is on, one pass over the actions of live files after every write, and now and
//! then one over small files.

use std::collections::{BTreeMap, BTreeSet};

use arrow_array::Array;

use crate::commit::adds::matching_live_adds;
use crate::commit::finish::{CommitOptions, CommitResult};
use crate::error::{Error, Result};
use crate::exec::CancellationToken;
use crate::log::MaintenanceOperation;
use crate::ops::optimize::{OptimizeOptions, OptimizeResult, optimize_files};
use crate::ops::target::DataFileOptions;
use crate::parse::mask;
use crate::protocol::action::Metadata;
use crate::protocol::commit_line::{Add, PartitionValues};
use crate::protocol::properties;
use crate::snapshot::Snapshot;

/// Small files of a partition from which they are packed.
const FILES: usize = 50;
/// Partitions that are packed at a time.
const PARTITIONS: usize = 128;
/// Bytes of a new file.
const SIZE: u64 = 128 << 20;

/// Packs small files where that is due after a version that added files to some partitions.
pub(in crate::ops) fn compact_after_commit(
    mut done: CommitResult,
    touched: &BTreeSet<PartitionValues>,
    commit_options: &CommitOptions,
    cancel: &CancellationToken,
) -> CommitResult {
    let Some(snapshot) = done
        .snapshot
        .clone()
        .filter(|snapshot| !touched.is_empty() && is_enabled(snapshot.metadata()))
    else {
        return done;
    };
    match compact(&snapshot, touched, commit_options, cancel) {
        Ok(Some(packed)) => {
            done.warnings.extend(packed.warnings);
            done.snapshot = packed.snapshot.or(done.snapshot);
        }
        // Whoever was first has packed them, or will.
        Ok(None) | Err(Error::Cancelled | Error::CommitFailed { .. }) => {}
        Err(error) => done.warnings.push(format!(
            "version {} is committed, but its small files could not be packed: {error}",
            snapshot.version()
        )),
    }
    done
}

/// Whether the table asks for it.
fn is_enabled(metadata: &Metadata) -> bool {
    let word = properties::value(&metadata.configuration, "delta.autoOptimize.autoCompact");
    metadata.flag("delta.autoOptimize")
        || word.is_some_and(|word| {
            ["true", "auto", "legacy"]
                .iter()
                .any(|on| word.eq_ignore_ascii_case(on))
        })
}

/// Packs the small files of the partitions that have many, among those that were touched.
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
    let small = i64::try_from(SIZE / 2).unwrap_or(i64::MAX);
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
    by_partition.retain(|_, files| files.len() >= FILES);
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
            target_file_size: Some(SIZE),
            ..DataFileOptions::default()
        },
        // What the caller says of the commit is said of his own.
        commit_options: CommitOptions {
            custom_metadata: serde_json::Map::new(),
            ..commit_options.without_transactions()
        },
        automatic: Some(SIZE / 2),
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
