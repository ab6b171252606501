//! What each stage of reading a table costs, to see where a change made a difference.
//!
//!     stages TABLE [--runs 5] [--predicate TREE] [--no-scan]
//!
//! One line a stage: milliseconds (the median of the runs), units, nanoseconds a unit. `parse`,
//! `decode` and `stats` run on one thread and touch each action once; `list`, `open`, `reconcile`,
//! `plan` and `scan` are whole calls on all cores, each with a snapshot of its own, so that nothing
//! is kept between runs. `TREE` is a typed predicate as JSON, which
//! `DeltaTable(...)._bound("id > 5")` prints.

use std::sync::Arc;
use std::time::{Duration, Instant};

use deltafast::error::{Error, Result};
use deltafast::exec::CancellationToken;
use deltafast::expr::BoundExpr;
use deltafast::log::{DeltaLog, LogSegment};
use deltafast::parse::checkpoint::{CheckpointReader, FileActionKind};
use deltafast::parse::commit::{self, ActionSelection};
use deltafast::parse::{FileActionProjection, FileBatch, stats};
use deltafast::scan::{self, LeafColumns, ScanRequest};
use deltafast::snapshot::{ReadOptions, Snapshot};
use deltafast::store::{self, ExternalPaths, StorageOptions, TableStores};

struct Table {
    uri: String,
    runs: usize,
}

impl Table {
    fn log(&self) -> Result<DeltaLog> {
        let root = store::open(&self.uri, &StorageOptions::new())?;
        DeltaLog::new(
            Arc::new(TableStores::new(
                root,
                StorageOptions::new(),
                ExternalPaths::Refused,
            )),
            Vec::new(),
        )
    }

    fn snapshot(&self) -> Result<Snapshot> {
        Snapshot::open(self.log()?, None, ReadOptions::default())
    }

    /// Times `work` on what `prepare` gives, which is not timed; `work` says how many units it did.
    fn stage<T, U>(
        &self,
        name: &str,
        unit: &str,
        prepare: impl Fn() -> Result<T>,
        work: impl Fn(T) -> Result<(u64, U)>,
    ) -> Result<U> {
        let mut times: Vec<Duration> = Vec::new();
        let mut last = None;
        for _ in 0..self.runs {
            let input = prepare()?;
            let start = Instant::now();
            let done = work(input)?;
            times.push(start.elapsed());
            last = Some(done);
        }
        times.sort_unstable();
        let median = times.get(times.len() / 2).copied().unwrap_or_default();
        let (units, out) = last.ok_or_else(|| Error::invalid("--runs must be at least 1"))?;
        let each = if units == 0 {
            String::new()
        } else {
            format!("{:.0} ns each", median.as_secs_f64() * 1e9 / units as f64)
        };
        println!(
            "{name:<10} {:>10.2} ms {units:>12} {unit:<8} {each}",
            median.as_secs_f64() * 1e3
        );
        Ok(out)
    }
}

/// Paths, sizes and the statistics of all leaves.
fn wanted(leaves: &LeafColumns, snapshot: &Snapshot) -> FileActionProjection {
    let partition = snapshot
        .partition_fields()
        .into_iter()
        .map(|f| snapshot.physical_name(f).to_owned())
        .collect();
    FileActionProjection {
        partition,
        stats: true,
        leaves: leaves
            .physical
            .iter()
            .map(|leaf| leaf.path.clone())
            .collect(),
        ..FileActionProjection::default()
    }
}

fn parse(segment: &LogSegment, wanted: &FileActionProjection) -> Result<(u64, Vec<FileBatch>)> {
    let take = ActionSelection {
        adds: Some(wanted.clone()),
        removes: Some(FileActionProjection::default()),
        ..ActionSelection::default()
    };
    let (mut batches, mut actions) = (Vec::new(), 0);
    for commit in &segment.replay {
        let (text, _) = commit.file.store.get(&commit.file.path).wait()?;
        let parsed = commit::parse(&text, 0..text.len(), &take, &[])?;
        actions += (parsed.adds.len() + parsed.removes.len()) as u64;
        batches.push(parsed.adds);
    }
    Ok((actions, batches))
}

fn decode(
    open: Option<CheckpointReader>,
    wanted: &Arc<FileActionProjection>,
) -> Result<(u64, Vec<FileBatch>)> {
    let batches = open
        .iter()
        .flat_map(|c| c.files(FileActionKind::Adds, wanted))
        .flatten()
        .collect::<Result<Vec<_>>>()?;
    Ok((
        batches.iter().map(|batch| batch.len() as u64).sum(),
        batches,
    ))
}

fn all(table: &Table, predicate: Option<&BoundExpr>, rows: bool) -> Result<()> {
    let cancel = CancellationToken::default();
    let store = store::open(&table.uri, &StorageOptions::new())?;
    let segment = table.stage(
        "list",
        "files",
        || table.log(),
        |log| {
            let (_, segment) = log.segment(None)?;
            Ok((
                (segment.replay.len() + segment.checkpoint.iter().flat_map(|c| &c.files).count())
                    as u64,
                segment,
            ))
        },
    )?;
    let snapshot = table.stage(
        "open",
        "table",
        || table.log(),
        |log| Ok((1, Snapshot::open(log, None, ReadOptions::default())?)),
    )?;
    let leaves = scan::leaves(&snapshot);
    let wanted = Arc::new(wanted(&leaves, &snapshot));
    let mut batches = table.stage("parse", "actions", || Ok(()), |()| parse(&segment, &wanted))?;
    let open = || {
        segment
            .checkpoint
            .as_ref()
            .map(|c| CheckpointReader::open(c, &store, true))
            .transpose()
    };
    batches.extend(table.stage("decode", "actions", open, |open| decode(open, &wanted))?);
    table.stage(
        "stats",
        "files",
        || Ok(()),
        |()| {
            let mut files = 0;
            for batch in &batches {
                if let Some(column) = &batch.stats {
                    files += stats::parse(column, &leaves.physical, snapshot.options().zone)?
                        .num_records
                        .len() as u64;
                }
            }
            Ok((files, ()))
        },
    )?;
    drop(batches);
    table.stage(
        "reconcile",
        "files",
        || table.snapshot(),
        |snapshot| {
            let mut files = 0;
            for batch in snapshot.files(
                FileActionKind::Adds,
                FileActionProjection::default(),
                &cancel,
            )? {
                files += batch?.len() as u64;
            }
            Ok((files, ()))
        },
    )?;
    table.stage(
        "plan",
        "files",
        || table.snapshot(),
        |snapshot| Ok((scan::plan(&snapshot, predicate, &cancel)?.files_total, ())),
    )?;
    if rows {
        table.stage(
            "scan",
            "rows",
            || table.snapshot(),
            |snapshot| {
                let request = ScanRequest {
                    predicate: predicate.cloned(),
                    ..ScanRequest::default()
                };
                let mut rows = 0;
                for batch in scan::scan(&snapshot, &request)?.batches {
                    rows += batch?.num_rows() as u64;
                }
                Ok((rows, ()))
            },
        )?;
    }
    Ok(())
}

fn main() -> Result<()> {
    let (mut table, mut predicate, mut rows) = (
        Table {
            uri: String::new(),
            runs: 5,
        },
        None,
        true,
    );
    let mut given = std::env::args().skip(1);
    while let Some(argument) = given.next() {
        match argument.as_str() {
            "--runs" => {
                table.runs = given
                    .next()
                    .and_then(|n| n.parse().ok())
                    .ok_or_else(|| Error::invalid("--runs needs a number"))?;
            }
            "--predicate" => {
                predicate = Some(BoundExpr::from_json(&given.next().unwrap_or_default())?);
            }
            "--no-scan" => rows = false,
            _ => table.uri = argument,
        }
    }
    if table.uri.is_empty() {
        return Err(Error::invalid(
            "usage: stages TABLE [--runs N] [--predicate TREE] [--no-scan]",
        ));
    }
    all(&table, predicate.as_ref(), rows)
}
