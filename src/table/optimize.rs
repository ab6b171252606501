//! OPTIMIZE: many small files -> few large ones with the same rows, or all rows of a partition along a curve (`z_order`).
//!
//! Files of a partition are packed in the order of their making, so that rows that came together stay together. Files that
//! are large enough stay, unless deletion vectors took a twentieth of their rows. No row changes: appends and changes of other
//! files go on beside it, and of two runs over the same files the second one fails.
//!
//! Protocol: "Requirements for Writers" (`dataChange`), "Writer Requirements for Row Tracking". Figures and parameters are
//! delta-spark's. Cost: one pass over the files that are packed.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};

use super::check_writable;
use super::rewrite::{self, Rewritten};
use super::target::{Encoding, Target};
use super::z_order::ZOrder;
use crate::command::{self, Choices, Done, listed};
use crate::commit::Transaction;
use crate::commit::adds::{all, live};
use crate::error::{Error, Result};
use crate::exec::{Cancel, Progress};
use crate::log::Upkeep;
use crate::protocol::commit_line::{Add, PartitionValues};
use crate::prune;
use crate::scan::Lens;
use crate::snapshot::Snapshot;
use crate::write::bindings::Demand;
use crate::write::rules::Rules;

/// How files are packed.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OptimizeOptions {
    /// How new files are made; files are packed up to its target size.
    pub encoding: Encoding,
    /// Milliseconds after which what is done is committed before the rest; all in one commit if `None`.
    pub min_commit_interval_ms: Option<u64>,
    /// How it is committed.
    pub choices: Choices,
    /// Columns, with dots before the names of fields, along whose Z-order curve all rows of a partition are laid anew.
    pub z_order_by: Vec<String>,
}

/// Bytes of some files.
#[derive(Debug, Clone, Default)]
pub struct Sizes(Vec<i64>);

impl Sizes {
    /// How many files there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// All bytes.
    #[must_use]
    pub fn sum(&self) -> i64 {
        self.0.iter().sum()
    }

    /// The size below which this share of the files is, in hundredths; 0 of none.
    #[must_use]
    pub fn percentile(&self, hundredths: usize) -> i64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len().saturating_sub(1) * hundredths / 100).copied().unwrap_or(0)
    }
}

/// What became of the files.
#[derive(Debug, Clone, Default)]
pub struct Optimized {
    /// Files that are new.
    pub added: Sizes,
    /// Files that ended.
    pub removed: Sizes,
    /// Partitions with files that ended.
    pub partitions: usize,
    /// Files that the predicate chose.
    pub considered: usize,
    /// Files that became one at most.
    pub largest_bin: usize,
    /// The last version that was made; `None` where there was nothing to do.
    pub done: Option<Done>,
}

/// Rows that deletion vectors may take of a file before it is copied for that alone, in hundredths.
const DELETED: i64 = 5;

/// Packs the files of the partitions for which `predicate` is true, of all without one.
///
/// # Errors
/// [`Error::Invalid`] for a predicate on other columns; [`Error::Unsupported`] for tables that this release cannot write; as
/// [`Transaction::commit`]. No file of it is left behind then, unless nobody knows whether it was committed.
pub fn optimize(snapshot: &Snapshot, predicate: Option<&Demand>, options: &OptimizeOptions, progress: &Progress, cancel: &Cancel) -> Result<Optimized> {
    check_writable(snapshot)?;
    snapshot.check_upkeep(Upkeep::Optimize)?;
    let usual = Target::of(snapshot, options.encoding.clone());
    let size = usual.request(Rules::default(), cancel)?.target_file_size;
    // A bin becomes one file, even where it grows a little.
    let encoding = Encoding { target_file_size: Some(size.saturating_mul(2)), ..options.encoding.clone() };
    let target = Target::of(snapshot, encoding);
    let sized = Target::of(snapshot, Encoding { target_file_size: Some(size), ..options.encoding.clone() });
    let files = match predicate {
        None => all(snapshot, cancel)?,
        Some(demand) => {
            let bound = demand.bound()?;
            if prune::partition_only(&bound, &snapshot.metadata().partition_columns).1.is_some() {
                return Err(Error::invalid(format!("files are optimized by whole partitions: `{}` must compare partition columns only", demand.sql)));
            }
            let lens = Lens::new(snapshot, vec![bound]);
            live(snapshot, cancel, |batch| lens.matching(batch))?
        }
    };
    let mut run =
        Run { options, sql: predicate.map(|demand| demand.sql.clone()), now: snapshot.clone(), target: &target, bins: Vec::new(), started: Instant::now() };
    let mut out = Optimized { considered: files.len(), ..Optimized::default() };
    let curve = if options.z_order_by.is_empty() { None } else { Some(ZOrder::new(snapshot, &options.z_order_by)?) };
    let bins = match &curve {
        None => bins(files, i64::try_from(size).unwrap_or(i64::MAX)),
        Some(_) => by_partition(files).into_values().collect(),
    };
    progress.expect(bins.len() as u64);
    let mut partitions: Vec<PartitionValues> = Vec::new();
    for bin in bins {
        out.largest_bin = out.largest_bin.max(bin.len());
        if let Some(first) = bin.first().filter(|first| partitions.last() != Some(&first.partition_values)) {
            partitions.push(first.partition_values.clone());
        }
        let bin = match &curve {
            None => Rewritten::of(bin, snapshot, &target, cancel)?,
            Some(curve) => Rewritten::new(bin.clone(), curve.lay(bin, snapshot, &sized, cancel)?, snapshot),
        };
        out.added.0.extend(bin.added.iter().map(|add| add.size));
        out.removed.0.extend(bin.removed.iter().map(|add| add.size));
        run.bins.push(bin);
        progress.advance(1);
        if options.min_commit_interval_ms.is_some_and(|ms| run.started.elapsed() >= Duration::from_millis(ms)) {
            out.done = run.commit(cancel)?.or(out.done);
        }
    }
    out.partitions = partitions.len();
    out.done = run.commit(cancel)?.or(out.done);
    Ok(out)
}

/// What is not committed yet.
struct Run<'a> {
    options: &'a OptimizeOptions,
    sql: Option<String>,
    /// The newest version.
    now: Snapshot,
    target: &'a Target,
    bins: Vec<Rewritten>,
    started: Instant,
}

impl Run<'_> {
    fn commit(&mut self, cancel: &Cancel) -> Result<Option<Done>> {
        let bins = std::mem::take(&mut self.bins);
        self.started = Instant::now();
        if bins.is_empty() {
            return Ok(None);
        }
        let added = Sizes(bins.iter().flat_map(|bin| &bin.added).map(|add| add.size).collect());
        let metrics = json!({
            "minFileSize": added.percentile(0),
            "p25FileSize": added.percentile(25),
            "p50FileSize": added.percentile(50),
            "p75FileSize": added.percentile(75),
            "maxFileSize": added.percentile(100),
        });
        let none = || Value::from("[]");
        let parameters = json!({"predicate": listed(self.sql.as_slice()), "auto": false, "clusterBy": none(), "zOrderBy": listed(&self.options.z_order_by)});
        let operation = command::operation("OPTIMIZE", parameters, metrics);
        let done = rewrite::commit(Transaction::new(&self.now), operation, bins, self.target, &self.options.choices, cancel)?;
        self.now = done.newest(&self.now)?;
        Ok(Some(done))
    }
}

/// The files that become one, partition by partition.
fn bins(files: Vec<Add>, size: i64) -> Vec<Vec<Add>> {
    let mut out: Vec<Vec<Add>> = Vec::new();
    for (_, mut files) in by_partition(files) {
        files.retain(|add| add.size < size || is_worn(add));
        files.sort_by(|a, b| (a.modification_time, &a.path).cmp(&(b.modification_time, &b.path)));
        let (mut bin, mut bytes): (Vec<Add>, i64) = (Vec::new(), 0);
        for add in files {
            if !bin.is_empty() && bytes.saturating_add(add.size) > size {
                out.push(std::mem::take(&mut bin));
                bytes = 0;
            }
            bytes = bytes.saturating_add(add.size);
            bin.push(add);
        }
        out.push(bin);
    }
    out.retain(|bin| bin.len() > 1 || bin.iter().any(is_worn));
    out
}

fn by_partition(files: Vec<Add>) -> BTreeMap<PartitionValues, Vec<Add>> {
    let mut out: BTreeMap<PartitionValues, Vec<Add>> = BTreeMap::new();
    for add in files {
        out.entry(add.partition_values.clone()).or_default().push(add);
    }
    out
}

/// Whether many of a file's rows are deleted.
fn is_worn(add: &Add) -> bool {
    let deleted = add.deletion_vector.as_ref().map_or(0, |vector| vector.cardinality);
    deleted > 0 && add.num_records().is_none_or(|rows| deleted.saturating_mul(100) > rows.saturating_mul(DELETED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dv::Descriptor;

    fn file(path: &str, partition: &str, size: i64, time: i64) -> Add {
        let partition_values = [("p".to_owned(), Some(partition.to_owned()))].into();
        Add { path: path.to_owned(), partition_values, size, modification_time: time, stats: Some(r#"{"numRecords":100}"#.to_owned()), ..Add::default() }
    }

    fn worn(add: Add, cardinality: i64) -> Add {
        let vector = Descriptor { storage_type: "u".to_owned(), path_or_inline_dv: "x".to_owned(), offset: Some(1), size_in_bytes: 1, cardinality };
        Add { deletion_vector: Some(vector), ..add }
    }

    fn packed(files: Vec<Add>) -> Vec<Vec<String>> {
        bins(files, 100).into_iter().map(|bin| bin.into_iter().map(|add| add.path).collect()).collect()
    }

    #[test]
    fn files_are_packed_by_partition_in_the_order_of_their_making() {
        let files =
            vec![file("c", "1", 50, 3), file("a", "1", 60, 1), file("b", "1", 40, 2), file("d", "1", 50, 4), file("x", "2", 10, 1), file("y", "1", 100, 0)];
        assert_eq!(packed(files), [["a", "b"], ["c", "d"]]);
    }

    #[test]
    fn a_file_alone_is_copied_only_where_many_of_its_rows_are_deleted() {
        let files = vec![worn(file("few", "1", 200, 1), 5), worn(file("many", "2", 200, 1), 6), worn(file("lone", "3", 1, 1), 50), file("small", "4", 1, 1)];
        assert_eq!(packed(files), [["many"], ["lone"]]);
    }

    #[test]
    fn sizes_are_told_by_rank() {
        let sizes = Sizes(vec![50, 10, 30, 20, 40]);
        assert_eq!([0, 25, 50, 75, 100].map(|p| sizes.percentile(p)), [10, 20, 30, 40, 50]);
        assert_eq!((sizes.count(), sizes.sum(), Sizes::default().percentile(50)), (5, 150, 0));
    }
}
