//! Layout of rows along a curve through some columns: Z-order, or a Hilbert curve for clustered
//! tables.
//!
//! A sample of the columns determines the curve, and the bounds of the ranges in which rows are
//! collected and sorted; then all columns are read once. Files have the usual size, so the rows of
//! each are close to each other in all of the columns.
//!
//! Cost: one pass over the columns of the curve, one over all columns; memory is that of the write
//! and a fraction of the process's budget, further rows are spilled to disk.

use arrow_array::{ArrayRef, UInt32Array};
use arrow_select::concat::concat;
use arrow_select::take::take;

use crate::error::{Error, ErrorCode, Result};
use crate::exec::{CancellationToken, memory_limit};
use crate::file_writer::WriteOutput;
use crate::file_writer::external_sort::{CurveSort, column_at};
use crate::file_writer::space_filling_curve::{CurveKind, SpaceFillingCurve};
use crate::ops::rewrite::column_path::resolve_column_path;
use crate::ops::rewrite::target_table::{FileRowSelection, TargetTable};
use crate::protocol::commit_line::Add;
use crate::protocol::schema::{DataType, FieldList, StructType};
use crate::scan::{self, ScanRequest};
use crate::snapshot::Snapshot;

/// The approximate number of rows in a sample.
const SAMPLE: u64 = 200_000;
/// Bytes of files whose rows are sorted at a time.
const GATHERED: u64 = 16 << 20;
/// Ranges per file if the number of files is given: a file may end at each of their bounds.
const ENDS: u64 = 16;
/// The maximum number of ranges.
const MOST: u64 = 2048;

/// The columns of a curve: the names of the top-level columns, and the paths in them.
pub(in crate::ops) struct CurveLayout {
    names: Vec<String>,
    /// Indexes in batches of all columns.
    paths: Vec<Vec<usize>>,
    kind: CurveKind,
}

impl CurveLayout {
    /// The Z-order of these columns of the table.
    ///
    /// # Errors
    /// [`Error::Invalid`] for columns that do not exist, are named twice, cannot be ordered, or are
    /// partition columns.
    pub(in crate::ops) fn z_order(snapshot: &Snapshot, columns: &[String]) -> Result<Self> {
        let mut out = Self {
            names: Vec::new(),
            paths: Vec::new(),
            kind: CurveKind::Morton,
        };
        for name in columns {
            let (path, data_type) = find_column(snapshot.schema(), name)?;
            out.push(snapshot, name, path, data_type)?;
        }
        Ok(out)
    }

    /// The Hilbert curve through these columns of the table; rows are sorted by a single column.
    ///
    /// # Errors
    /// As [`CurveLayout::z_order`].
    pub(in crate::ops) fn hilbert(snapshot: &Snapshot, columns: &[Vec<String>]) -> Result<Self> {
        let mut out = Self {
            names: Vec::new(),
            paths: Vec::new(),
            kind: CurveKind::Hilbert,
        };
        for parts in columns {
            let name = parts.join(".");
            let (path, data_type) =
                resolve_path(snapshot.schema(), parts.iter().map(String::as_str), &name)?;
            out.push(snapshot, &name, path, data_type)?;
        }
        Ok(out)
    }

    fn push(
        &mut self,
        snapshot: &Snapshot,
        name: &str,
        path: Vec<usize>,
        data_type: &DataType,
    ) -> Result<()> {
        let Some(top) = path.first().and_then(|n| snapshot.schema().fields.get(*n)) else {
            return Ok(());
        };
        if snapshot.metadata().partition_columns.contains(&top.name) {
            // delta-spark's message, which programs match.
            return Err(Error::invalid(format!(
                "{name} is a partition column. Z-Ordering can only be performed on data columns"
            ))
            .with_code(ErrorCode::ZOrderByPartitionColumn, &[("column", &name)])
            .at_column(name));
        }
        if !data_type.is_primitive() || matches!(data_type, DataType::Void) {
            return Err(
                Error::invalid(format!("values of type {data_type} have no order")).at_column(name),
            );
        }
        check_collation(snapshot.schema(), &path)?;
        if self.paths.contains(&path) {
            return Err(Error::invalid("the column is named twice").at_column(name));
        }
        self.paths.push(path);
        if !self.names.contains(&top.name) {
            self.names.push(top.name.clone());
        }
        Ok(())
    }

    pub(in crate::ops) fn kind(&self) -> CurveKind {
        self.kind
    }

    /// The path of names of each column.
    pub(in crate::ops) fn name_paths(&self, schema: &StructType) -> Vec<Vec<String>> {
        let names = |path: &Vec<usize>| {
            let (mut fields, mut out) = (Some(schema), Vec::new());
            for n in path {
                let Some(field) = fields.and_then(|schema| schema.fields.get(*n)) else {
                    break;
                };
                out.push(field.name.clone());
                fields = if let DataType::Struct(inner) = &field.data_type {
                    Some(inner)
                } else {
                    None
                };
            }
            out
        };
        self.paths.iter().map(names).collect()
    }

    /// Rewrites the files of a partition; into this number of files, if given.
    pub(in crate::ops) fn rewrite(
        &self,
        files: Vec<Add>,
        into: Option<usize>,
        snapshot: &Snapshot,
        target: &TargetTable,
        cancel: &CancellationToken,
    ) -> Result<WriteOutput> {
        let bytes: u64 = files
            .iter()
            .map(|add| u64::try_from(add.size).unwrap_or(0))
            .sum();
        let records: u64 = files
            .iter()
            .map(|add| {
                add.num_records()
                    .and_then(|rows| u64::try_from(rows).ok())
                    .unwrap_or(SAMPLE)
            })
            .sum();
        let rows = FileRowSelection {
            files: files.into_iter().map(|add| add.path).collect(),
            ..FileRowSelection::default()
        };
        let sample = self.sample(
            rows.clone(),
            snapshot,
            usize::try_from(records / SAMPLE).unwrap_or(0) + 1,
            cancel,
        )?;
        let curve = SpaceFillingCurve::new(&sample, self.kind)?;
        let ends = into
            .filter(|files| *files > 1)
            .map_or(0, |files| files as u64 * ENDS);
        let gatherings = usize::try_from((bytes / GATHERED + 1).max(ends).min(MOST)).unwrap_or(1);
        let bounds = CurveSort::bounds_of(curve.curve_positions(&sample)?, gatherings);
        let sorting = CurveSort {
            curve,
            columns: self.paths.clone(),
            bounds,
            memory: memory_limit()? / 8,
        };
        target.copy_sorted(snapshot, rows, sorting, into, cancel)
    }

    /// Every `step`th row of the curve's columns.
    fn sample(
        &self,
        rows: FileRowSelection,
        snapshot: &Snapshot,
        step: usize,
        cancel: &CancellationToken,
    ) -> Result<Vec<ArrayRef>> {
        let request = ScanRequest {
            columns: Some(self.names.clone()),
            ..rows.scan(cancel)
        };
        let of_sample = |path: &Vec<usize>| -> Result<Vec<usize>> {
            let name = path
                .first()
                .and_then(|n| snapshot.schema().fields.get(*n))
                .map(|field| &field.name);
            let place = self
                .names
                .iter()
                .position(|known| Some(known) == name)
                .ok_or_else(|| Error::internal("a column of the order is not read"))?;
            Ok(std::iter::once(place)
                .chain(path.iter().skip(1).copied())
                .collect())
        };
        let paths = self
            .paths
            .iter()
            .map(of_sample)
            .collect::<Result<Vec<_>>>()?;
        let mut parts: Vec<Vec<ArrayRef>> = vec![Vec::new(); paths.len()];
        let mut next = 0;
        for batch in scan::scan(snapshot, &request)?.batches {
            let batch = batch?;
            let chosen = UInt32Array::from_iter_values(
                (next..batch.num_rows()).step_by(step).map(|row| row as u32),
            );
            next = (next + chosen.len() * step).saturating_sub(batch.num_rows());
            for (part, path) in parts.iter_mut().zip(&paths) {
                part.push(take(&column_at(&batch, path)?, &chosen, None)?);
            }
        }
        let whole = |(part, path): (Vec<ArrayRef>, &Vec<usize>)| match part
            .iter()
            .map(AsRef::as_ref)
            .collect::<Vec<_>>()
            .as_slice()
        {
            [] => empty_column(snapshot.schema(), path),
            some => Ok(concat(some)?),
        };
        parts.into_iter().zip(&self.paths).map(whole).collect()
    }
}

/// Refuses a column that is not ordered by its bytes.
fn check_collation(schema: &StructType, path: &[usize]) -> Result<()> {
    let mut fields = schema;
    for n in path {
        let Some(field) = fields.fields.get(*n) else {
            break;
        };
        field.check_byte_order("ordering rows by the column")?;
        let DataType::Struct(inner) = &field.data_type else {
            break;
        };
        fields = inner;
    }
    Ok(())
}

/// An empty array of a column's type.
fn empty_column(schema: &StructType, path: &[usize]) -> Result<ArrayRef> {
    let mut fields = schema;
    let mut found = &DataType::Void;
    for n in path {
        found = fields
            .fields
            .get(*n)
            .map(|field| &field.data_type)
            .ok_or_else(|| Error::internal("a column of the order is not there"))?;
        if let DataType::Struct(inner) = found {
            fields = inner;
        }
    }
    Ok(arrow_array::new_empty_array(
        &found.to_arrow(crate::protocol::schema::StringLayout::Plain),
    ))
}

/// A column by the text that names it.
fn find_column<'a>(schema: &'a StructType, name: &str) -> Result<(Vec<usize>, &'a DataType)> {
    let path = resolve_column_path(schema, name)?;
    resolve_path(schema, path.iter().map(String::as_str), name)
}

/// A column by its path of names.
fn resolve_path<'a, 'b>(
    schema: &'a StructType,
    parts: impl Iterator<Item = &'b str>,
    name: &str,
) -> Result<(Vec<usize>, &'a DataType)> {
    static NONE: StructType = StructType {
        fields: FieldList::new(),
    };
    let lacking = || unknown_column_error(name);
    let (mut fields, mut out, mut found) = (schema, Vec::new(), None);
    for part in parts {
        let n = field_position(fields, part).ok_or_else(lacking)?;
        let data_type = &fields.fields.get(n).ok_or_else(lacking)?.data_type;
        out.push(n);
        fields = if let DataType::Struct(inner) = data_type {
            inner
        } else {
            &NONE
        };
        found = Some(data_type);
    }
    found.map(|found| (out, found)).ok_or_else(lacking)
}

fn field_position(schema: &StructType, name: &str) -> Option<usize> {
    schema
        .fields
        .iter()
        .position(|field| field.name.eq_ignore_ascii_case(name))
}

fn unknown_column_error(name: &str) -> Error {
    Error::invalid(format!("the table has no column `{name}`"))
        .with_code(ErrorCode::ZOrderColumnNotFound, &[("column", &name)])
        .at_column(name)
}
