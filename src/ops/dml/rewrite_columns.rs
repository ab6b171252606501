//! New values in few columns of large files: these columns are encoded again, all others are copied
//! as encoded bytes.
//!
//! Only the columns that change, and those that their new values depend on, are read. Constraints
//! are checked if they depend on changed columns; the others were satisfied before and still are.
//!
//! Cost: one pass over these columns, one over the bytes of the others.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{BooleanArray, RecordBatch};
use rustc_hash::FxHashSet;

use crate::dv::RoaringBitmapArray;
use crate::error::{Error, Result};
use crate::exec::CancellationToken;
use crate::file_writer::constraints::WriteRules;
use crate::file_writer::{ColumnRewrite, WriteOutput, write_columns};
use crate::ops::dml::update_assignments::UpdateAssignments;
use crate::ops::rewrite::target_table::TargetTable;
use crate::protocol::commit_line::Add;
use crate::protocol::schema::{StringLayout, StructType};
use crate::scan::{self, MetadataColumn, ScanRequest, at_positions};
use crate::snapshot::Snapshot;

/// An UPDATE of columns.
pub(in crate::ops) struct ColumnUpdate<'a> {
    pub snapshot: &'a Snapshot,
    pub target: &'a TargetTable,
    pub values: &'a UpdateAssignments,
    /// All rules of the table.
    pub rules: &'a WriteRules,
    /// The rows that change in each file; all rows of files that are not listed.
    pub rows: Arc<HashMap<String, RoaringBitmapArray>>,
}

impl ColumnUpdate<'_> {
    /// Rewrites the files for which this is possible, and returns the others.
    pub(in crate::ops) fn run(
        self,
        files: Vec<Add>,
        cancel: &CancellationToken,
    ) -> Result<(WriteOutput, Vec<Add>)> {
        let Some((values, changed)) = self.values.changed_columns_only() else {
            return Ok((WriteOutput::default(), files));
        };
        let partition_columns = &self.target.metadata.partition_columns;
        let moves = changed.iter().any(|name| partition_columns.contains(name));
        // With row tracking, rows that change get a new commit version, which is stored in a
        // column.
        if moves || self.target.tracks_rows() {
            return Ok((WriteOutput::default(), files));
        }
        let rules = self.affected_rules(&changed);
        let narrow = self.read_schema(&values, &changed, &rules);
        let values = values.for_columns(&narrow)?;

        let request = self.target.write_request(WriteRules::default(), cancel)?;
        let (splices, others) = request.spliceable(files, self.snapshot.stores())?;
        if splices.is_empty() {
            return Ok((WriteOutput::default(), others));
        }
        let scanned = ScanRequest {
            columns: Some(
                narrow
                    .fields
                    .iter()
                    .map(|field| field.name.clone())
                    .collect(),
            ),
            files: Some(
                splices
                    .iter()
                    .map(|splice| splice.path().to_owned())
                    .collect(),
            ),
            metadata: vec![MetadataColumn::FilePath, MetadataColumn::RowIndex],
            layout: StringLayout::Plain,
            cancel: cancel.clone(),
            ..ScanRequest::default()
        };
        let rows = Arc::clone(&self.rows);
        let edited = scan::scan(self.snapshot, &scanned)?
            .batches
            .map(move |batch| {
                let batch = batch?;
                let mask = changed_row_mask(&batch, &rows)?;
                values.apply(
                    &batch
                        .project(&(0..batch.num_columns().saturating_sub(2)).collect::<Vec<_>>())?,
                    mask.as_ref(),
                )
            });
        let narrow = ColumnRewrite {
            schema: narrow,
            rules,
            changed,
        };
        Ok((
            write_columns(
                self.snapshot.stores().root(),
                &request,
                &narrow,
                splices,
                edited,
            )?,
            others,
        ))
    }

    /// The rules that depend on changed columns.
    fn affected_rules(&self, changed: &[String]) -> WriteRules {
        let changed: FxHashSet<&str> = changed.iter().map(String::as_str).collect();
        let concerned = |column: &str, read: Vec<&str>| {
            changed.contains(column) || read.iter().any(|name| changed.contains(name))
        };
        let mut rules = self.rules.clone();
        rules
            .checks
            .retain(|check| concerned("", check.expr.column_names()));
        rules
            .generated
            .retain(|rule| concerned(&rule.column, rule.expr.column_names()));
        rules
            .lengths
            .retain(|lengths| changed.contains(lengths.column.as_str()));
        rules.defaults.clear();
        rules.identities.clear();
        rules
    }

    /// The changed columns and those that the new values and the rules depend on.
    fn read_schema(
        &self,
        values: &UpdateAssignments,
        changed: &[String],
        rules: &WriteRules,
    ) -> StructType {
        let mut needed: FxHashSet<&str> = values.referenced_columns().into_iter().collect();
        needed.extend(changed.iter().map(String::as_str));
        needed.extend(
            rules
                .checks
                .iter()
                .flat_map(|check| check.expr.column_names()),
        );
        needed.extend(rules.generated.iter().flat_map(|rule| {
            rule.expr
                .column_names()
                .into_iter()
                .chain([rule.column.as_str()])
        }));
        StructType {
            fields: self
                .target
                .schema
                .fields
                .iter()
                .filter(|field| needed.contains(field.name.as_str()))
                .cloned()
                .collect(),
        }
    }
}

/// The rows of a batch that change, `None` for all; its last columns are the file's path and the
/// row's position.
fn changed_row_mask(
    batch: &RecordBatch,
    rows: &HashMap<String, RoaringBitmapArray>,
) -> Result<Option<BooleanArray>> {
    let [.., path, index] = batch.columns() else {
        return Err(Error::internal("a scan gave no positions"));
    };
    let path = path
        .as_string_opt::<i32>()
        .and_then(|path| path.iter().flatten().next());
    let Some((path, index)) = path.zip(index.as_primitive_opt::<Int64Type>()) else {
        return Ok(None);
    };
    Ok(rows
        .get(path)
        .map(|chosen| BooleanArray::new(at_positions(index.values(), chosen), None)))
}
