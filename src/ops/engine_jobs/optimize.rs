//! OPTIMIZE and REORG whose rows another engine copies: the plan of [`crate::ops::optimize`], and a
//! commit of a folder of files.
//!
//! The engine is given the files to combine, or to lay out along one curve
//! ([`EngineOptimizeJob::requirements`]). Each new file has a number, its part, and is written
//! into a folder named after it. For a curve the engine passes a sample of the columns and is given
//! the bounds with which it computes the part of a row ([`EngineOptimizeJob::curve_bounds`]).
//! Where files equal what a copy of their rows would be, an engine that can do so copies their row
//! groups, and decodes nothing ([`EngineOptimizeJob::bins_to_copy`]).
//! [`EngineOptimizeJob::run`] commits as [`crate::ops::optimize`] does.
//!
//! Protocol: as [`crate::ops::optimize`]. Cost: the plan, a footer for each new file.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, Int32Array, Int64Array, ListArray, RecordBatch, UInt32Array};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType as Arrow, Field, Schema};
use arrow_select::concat::{concat, concat_batches};
use arrow_select::take::take;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::exec::CancellationToken;
use crate::file_writer::bound_constraints::NamedExpression;
use crate::file_writer::constraints::WriteRules;
use crate::file_writer::external_sort::CurveSort;
use crate::file_writer::space_filling_curve::{
    CurveKind, SpaceFillingCurve, ranges as range_bounds,
};
use crate::file_writer::{WriteOutput, WrittenDataFile, engine_files};
use crate::ops::engine_jobs::delete_update::TableRequirements;
use crate::ops::optimize::optimize_options::{
    OptimizeOptions, OptimizeResult, OptimizeStrategy, with_inherited_clustering,
};
use crate::ops::optimize::optimize_plan::{OptimizePlan, files_to_optimize, output_file_count};
use crate::ops::optimize::optimize_run::OptimizeRun;
use crate::ops::rewrite::file_rewrite::FileRewrite;
use crate::ops::rewrite::target_table::TargetTable;
use crate::ops::rewrite::uncommitted_files::uncommitted_in_folders;
use crate::protocol::commit_line::Add;
use crate::protocol::schema::{DataType, StructField};
use crate::scan::ScanRequest;
use crate::snapshot::Snapshot;

/// The column that names the folder of a part.
const PART: &str = "__deltafast_part";
/// The maximum number of bits of a rank.
const RANK_BITS: u32 = 12;
/// Bits of a position on the curve in addition to those that distinguish files.
const FINER: u32 = 6;

/// What an engine must know to rewrite files.
#[derive(Debug, Clone, Serialize)]
pub struct OptimizeRequirements {
    /// The requirements of the table.
    #[serde(flatten)]
    pub table: TableRequirements,
    /// The files of each bin.
    pub bins: Vec<Vec<String>>,
    /// The number of parts of each bin; parts are numbered bin after bin.
    pub parts: Vec<usize>,
    /// The total size of each bin's files in bytes.
    pub bytes: Vec<i64>,
    /// The number of rows of the files, as far as known.
    pub rows: i64,
    /// The columns of the curve, as paths of names.
    pub columns: Vec<Vec<String>>,
    /// Whether the curve is a Hilbert curve.
    pub is_hilbert: bool,
    /// The name of the column by which rows are partitioned into folders.
    pub part: &'static str,
}

/// An OPTIMIZE in progress.
pub struct EngineOptimizeJob {
    snapshot: Snapshot,
    options: OptimizeOptions,
    sql: Option<String>,
    plan: OptimizePlan,
    /// The number of rows and the statistics of each bin whose row groups are copied, by its
    /// number.
    copies: BTreeMap<usize, (u64, String)>,
}

impl EngineOptimizeJob {
    /// Plans the job.
    ///
    /// # Errors
    /// As [`crate::ops::optimize`].
    pub fn new(
        snapshot: &Snapshot,
        predicate: Option<&NamedExpression>,
        options: OptimizeOptions,
        cancel: &CancellationToken,
    ) -> Result<Self> {
        let files = files_to_optimize(snapshot, predicate, &options, cancel)?;
        let plan = OptimizePlan::of(snapshot, files, &options, cancel)?;
        Ok(Self {
            snapshot: snapshot.clone(),
            options,
            sql: predicate.map(|demand| demand.sql.clone()),
            plan,
            copies: BTreeMap::new(),
        })
    }

    fn target(&self) -> TargetTable {
        TargetTable::of(&self.snapshot, self.options.encoding.clone())
    }

    /// The requirements for the engine.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for a table with contradicting metadata.
    pub fn requirements(&self, cancel: &CancellationToken) -> Result<OptimizeRequirements> {
        let all = || self.plan.bins.iter().flatten();
        let curve = match &self.plan.layout {
            OptimizeStrategy::Compaction | OptimizeStrategy::Purge => None,
            OptimizeStrategy::ZOrder(curve) | OptimizeStrategy::Clustering(curve, _) => Some(curve),
        };
        Ok(OptimizeRequirements {
            table: TableRequirements::of(&self.target(), &self.snapshot, cancel)?,
            bins: self
                .plan
                .bins
                .iter()
                .map(|bin| bin.iter().map(|add| add.path.clone()).collect())
                .collect(),
            parts: self.parts_per_bin(),
            bytes: self
                .plan
                .bins
                .iter()
                .map(|bin| bin.iter().map(|add| add.size).sum())
                .collect(),
            rows: all().map(|add| add.num_records().unwrap_or(0)).sum(),
            columns: curve
                .map(|curve| curve.name_paths(self.snapshot.schema()))
                .unwrap_or_default(),
            is_hilbert: curve.is_some_and(|curve| curve.kind() == CurveKind::Hilbert),
            part: PART,
        })
    }

    /// The numbers of the bins whose new file must be a copy of the row groups of their files, in
    /// this order. An engine that does not call this copies no row groups.
    ///
    /// Cost: a footer for each file of the bins.
    ///
    /// # Errors
    /// Errors of reading footers.
    pub fn bins_to_copy(&mut self, cancel: &CancellationToken) -> Result<Vec<usize>> {
        let target = self.target();
        // With row tracking each row needs its id, which a file without such a column does not
        // store.
        if target.tracks_rows() || !matches!(self.plan.layout, OptimizeStrategy::Compaction) {
            return Ok(Vec::new());
        }
        let request = target.write_request(WriteRules::default(), cancel)?;
        self.copies = request.spliceable_bins(&self.plan.bins, self.snapshot.stores())?;
        Ok(self.copies.keys().copied().collect())
    }

    /// The number of new files of each bin.
    fn parts_per_bin(&self) -> Vec<usize> {
        let parts = |bin: &Vec<_>| match &self.plan.layout {
            OptimizeStrategy::Compaction | OptimizeStrategy::Purge => 1,
            OptimizeStrategy::ZOrder(_) | OptimizeStrategy::Clustering(..) => {
                output_file_count(bin, self.plan.size)
            }
        };
        self.plan.bins.iter().map(parts).collect()
    }

    /// Bits of a rank of each column: enough to distinguish the ranges into which the engine
    /// divides bins, and to order the rows within a range coarsely.
    #[must_use]
    pub fn rank_bits(&self, ranges: &[usize]) -> u32 {
        let columns = match &self.plan.layout {
            OptimizeStrategy::Compaction | OptimizeStrategy::Purge => return 0,
            OptimizeStrategy::ZOrder(curve) | OptimizeStrategy::Clustering(curve, _) => {
                curve.name_paths(self.snapshot.schema()).len()
            }
        };
        let columns = u32::try_from(columns).unwrap_or(64).clamp(1, 64);
        let ranges = ranges.iter().copied().max().unwrap_or(1).max(1);
        let wanted = usize::BITS - ranges.leading_zeros() + FINER;
        wanted
            .div_ceil(columns)
            .clamp(1, RANK_BITS)
            .min(64 / columns)
            .max(1)
    }

    /// The bounds with which an engine computes the part of a row, one row per bin: `bin`; for each
    /// column `bounds{n}`, between which values have the same rank, and `bits{n}`, the number of
    /// bits of these ranks; `cuts`, the positions on the curve at which the next range begins, as
    /// signed numbers in the order of the curve. For a single column the cuts are values.
    ///
    /// `sample` has `bin` and the columns, each as `Int64`, `Float64` or `LargeBinary`; `ranges` is
    /// the number of ranges of each bin: the new files, or parts of them of equal size.
    ///
    /// # Errors
    /// [`Error::Internal`] for an invalid sample.
    pub fn curve_bounds(
        &self,
        sample: impl Iterator<Item = Result<RecordBatch>>,
        ranges: &[usize],
        cancel: &CancellationToken,
    ) -> Result<RecordBatch> {
        let shape = match &self.plan.layout {
            OptimizeStrategy::Compaction | OptimizeStrategy::Purge => {
                return Err(Error::internal(
                    "rows are packed, and not laid along a curve",
                ));
            }
            OptimizeStrategy::ZOrder(curve) | OptimizeStrategy::Clustering(curve, _) => {
                curve.kind()
            }
        };
        let batches = sample.collect::<Result<Vec<_>>>()?;
        let Some(first) = batches.first() else {
            return Err(Error::internal(
                "a sample has no batch, not even an empty one",
            ));
        };
        let sample = concat_batches(&first.schema(), &batches)?;
        let (bins, columns) = match sample.columns() {
            [bins, columns @ ..] if !columns.is_empty() => {
                (bins.as_primitive_opt::<Int32Type>(), columns)
            }
            _ => (None, [].as_slice()),
        };
        let bins = bins.ok_or_else(|| Error::internal("a sample has no bins"))?;
        let mut rows: BTreeMap<i32, Vec<u32>> = BTreeMap::new();
        for (row, bin) in (0_u32..).zip(bins.values()) {
            rows.entry(*bin).or_default().push(row);
        }
        let (mut bounds, mut bits, mut cuts) = (
            vec![Vec::new(); columns.len()],
            vec![Vec::new(); columns.len()],
            Vec::new(),
        );
        let width = self.rank_bits(ranges);
        for (bin, count) in (0_i32..).zip(ranges) {
            cancel.check()?;
            let rows = UInt32Array::from(rows.remove(&bin).unwrap_or_default());
            let some = columns
                .iter()
                .map(|column| Ok(take(column, &rows, None)?))
                .collect::<Result<Vec<_>>>()?;
            if let ([column], [bounds], [bits]) =
                (some.as_slice(), bounds.as_mut_slice(), bits.as_mut_slice())
            {
                bounds.push(column.slice(0, 0));
                bits.push(0);
                cuts.push(range_bounds(column, *count)?);
                continue;
            }
            let curve = SpaceFillingCurve::with_bits(&some, shape, width)?;
            for ((bounds, bits), (found, found_bits)) in
                bounds.iter_mut().zip(&mut bits).zip(curve.bounds(&some))
            {
                bounds.push(found);
                bits.push(i32::try_from(found_bits).unwrap_or(0));
            }
            let ends = CurveSort::bounds_of(curve.curve_positions(&some)?, *count);
            cuts.push(Arc::new(Int64Array::from_iter_values(
                ends.into_iter()
                    .map(|place| (place ^ 1 << 63).cast_signed()),
            )));
        }
        let mut out: Vec<(String, ArrayRef)> = vec![(
            "bin".to_owned(),
            Arc::new((0_i32..).take(ranges.len()).collect::<Int32Array>()),
        )];
        for (n, (bounds, bits)) in bounds.into_iter().zip(bits).enumerate() {
            out.push((format!("bounds{n}"), list_array(&bounds)?));
            out.push((format!("bits{n}"), Arc::new(Int32Array::from(bits))));
        }
        out.push(("cuts".to_owned(), list_array(&cuts)?));
        let fields: Vec<Field> = out
            .iter()
            .map(|(name, array)| Field::new(name, array.data_type().clone(), true))
            .collect();
        Ok(RecordBatch::try_new(
            Arc::new(Schema::new(fields)),
            out.into_iter().map(|(_, array)| array).collect(),
        )?)
    }

    /// Commits the files in the folder. After an error they are deleted, unless the outcome of the
    /// commit is unknown.
    ///
    /// # Errors
    /// As [`crate::ops::optimize`] and
    /// [`inspect_external_files`](crate::file_writer::engine_files::inspect_external_files).
    pub fn run(self, folder: Option<&str>, cancel: &CancellationToken) -> Result<OptimizeResult> {
        let orphans =
            uncommitted_in_folders(self.snapshot.stores().root(), folder.into_iter(), cancel)?;
        let target = self.target();
        let (mut written, rest) = self.written_files_by_bin(&target, folder, cancel)?;
        let Self {
            snapshot,
            options,
            sql,
            plan,
            ..
        } = self;
        let OptimizePlan {
            layout,
            bins,
            cluster_by,
            result: mut out,
            ..
        } = plan;
        let mut run = OptimizeRun::new(&snapshot, &options, sql, cluster_by, &target);
        for (n, bin) in bins.into_iter().enumerate() {
            let files: Vec<WrittenDataFile> =
                written.get_mut(n).map(std::mem::take).unwrap_or_default();
            let rows = files.iter().map(|file| file.num_records).sum();
            check_rows(&bin, rows)?;
            let mut bin = FileRewrite::new(
                bin,
                WriteOutput {
                    files,
                    rows,
                    identities: Vec::new(),
                },
                &snapshot,
            );
            match &layout {
                OptimizeStrategy::Compaction | OptimizeStrategy::ZOrder(_) => {}
                OptimizeStrategy::Purge => bin = with_inherited_clustering(bin),
                OptimizeStrategy::Clustering(_, clustering) => clustering.tag(&mut bin.added),
            }
            run.add(bin, &mut out);
        }
        out.done = orphans.commit(|| run.commit(cancel))?;
        // Files that cannot be deleted are left to vacuum.
        let _ = snapshot.stores().root().delete_batch(&rest);
        Ok(out)
    }

    /// The new files of each bin, and other files in the folder.
    fn written_files_by_bin(
        &self,
        target: &TargetTable,
        folder: Option<&str>,
        cancel: &CancellationToken,
    ) -> Result<(Vec<Vec<WrittenDataFile>>, Vec<String>)> {
        let mut out: Vec<Vec<WrittenDataFile>> = vec![Vec::new(); self.plan.bins.len()];
        let Some(folder) = folder else {
            return Ok((out, Vec::new()));
        };
        let mut request = target.write_request(WriteRules::default(), cancel)?;
        target.preserve_row_ids(&self.snapshot, &mut request, &mut ScanRequest::default())?;
        let partition_columns = &request.partition_columns;
        let columns = request.schema.fields.iter();
        request.schema.fields = columns
            .filter(|field| !partition_columns.contains(&field.name))
            .cloned()
            .chain([StructField::new(PART, DataType::Integer, false)])
            .collect();
        request.partition_columns = vec![PART.to_owned()];
        let found = engine_files::inspect_external_files(
            self.snapshot.stores().root(),
            &request,
            folder,
            cancel,
        )?;
        let ends: Vec<usize> = self
            .parts_per_bin()
            .into_iter()
            .scan(0, |end, parts| {
                *end += parts;
                Some(*end)
            })
            .collect();
        for mut file in found.files {
            let part = file
                .partition_values
                .first()
                .and_then(|(_, part)| part.as_ref()?.parse::<usize>().ok());
            let bin = part.map(|part| ends.partition_point(|end| *end <= part));
            let place =
                bin.and_then(|bin| Some((out.get_mut(bin)?, self.plan.bins.get(bin)?.first()?)));
            let (files, old) = place.ok_or_else(|| {
                Error::internal("a file is of a part that there is not").at_file(&file.path)
            })?;
            file.partition_values = old.partition_values.clone().into_iter().collect();
            if let Some((rows, stats)) = bin.and_then(|bin| self.copies.get(&bin)) {
                if file.num_records != *rows {
                    let what = format!("a copy of {rows} rows has {} rows", file.num_records);
                    return Err(Error::internal(what).at_file(&file.path));
                }
                file.stats = Some(stats.clone());
            }
            files.push(file);
        }
        Ok((out, found.non_data_files))
    }
}

/// Checks that new files have as many rows as the log says of the old ones; it may not say it.
fn check_rows(bin: &[Add], rows: u64) -> Result<()> {
    let live = |add: &Add| {
        let deleted = add
            .deletion_vector
            .as_ref()
            .map_or(0, |vector| vector.cardinality);
        Some(add.num_records()?.saturating_sub(deleted))
    };
    let Some(expected) = bin.iter().map(live).sum::<Option<i64>>() else {
        return Ok(());
    };
    if i64::try_from(rows).is_ok_and(|rows| rows == expected) {
        return Ok(());
    }
    let paths = bin.iter().map(|add| add.path.as_str());
    Err(Error::corrupt_data(format!(
        "the log says that {} files have {expected} rows, and they have {rows}: nothing is committed",
        paths.clone().count()
    ))
    .at_file(paths.min().unwrap_or_default()))
}

/// An array of lists, one list per array.
fn list_array(all: &[ArrayRef]) -> Result<ArrayRef> {
    let parts: Vec<&dyn Array> = all.iter().map(AsRef::as_ref).collect();
    let values = if parts.is_empty() {
        arrow_array::new_empty_array(&Arrow::Int64)
    } else {
        concat(&parts)?
    };
    let field = Arc::new(Field::new("item", values.data_type().clone(), true));
    Ok(Arc::new(ListArray::try_new(
        field,
        OffsetBuffer::from_lengths(all.iter().map(Array::len)),
        values,
        None,
    )?))
}
