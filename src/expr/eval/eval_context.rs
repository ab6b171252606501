//! The rows and the settings of an evaluation.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_schema::Schema;

use super::array_layout::{canonical, child};
use super::error::{EvalError, EvalResult};
use crate::error::Error;
use crate::expr::tree::Expr;
use crate::protocol::calendar::TimeZoneSpec;
use crate::protocol::schema::DataType;

/// The rows to evaluate and the settings.
#[derive(Debug, Clone)]
pub(crate) struct EvalContext<'b> {
    /// Borrowed where it is a whole batch: a batch has as many arrays as the table columns, and
    /// each column may have an expression of its own.
    pub(super) batch: Cow<'b, RecordBatch>,
    pub(crate) ansi: bool,
    pub(crate) zone: TimeZoneSpec,
}

impl EvalContext<'_> {
    pub(crate) fn len(&self) -> usize {
        self.batch.num_rows()
    }

    /// The rows where `mask` is true, with the columns that the expressions read.
    pub(crate) fn select<'a>(
        &self,
        mask: &BooleanArray,
        exprs: impl IntoIterator<Item = &'a Expr>,
    ) -> EvalResult<EvalContext<'static>> {
        let mut paths = std::collections::BTreeSet::new();
        for expr in exprs {
            expr.collect_columns(&mut paths);
        }
        let names: std::collections::BTreeSet<&str> = paths
            .iter()
            .filter_map(|path| path.first().map(String::as_str))
            .collect();
        let schema = self.batch.schema();
        let filter = arrow_select::filter::FilterBuilder::new(mask)
            .optimize()
            .build();
        let (mut fields, mut columns) = (Vec::new(), Vec::new());
        for (field, column) in schema.fields().iter().zip(self.batch.columns()) {
            if names.contains(field.name().as_str()) {
                fields.push(field.clone());
                columns.push(filter.filter(column)?);
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(filter.count()));
        let batch =
            RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?;
        Ok(EvalContext {
            batch: Cow::Owned(batch),
            ansi: self.ansi,
            zone: self.zone,
        })
    }

    /// The column of a path in its canonical form.
    pub(super) fn column(&self, path: &[String], data_type: &DataType) -> EvalResult {
        let missing = || {
            Error::schema_mismatch(
                "a column of the expression is not in the data",
                path.join("."),
                "no such column",
            )
            .at_column(path.join("."))
        };
        let (first, rest) = path.split_first().ok_or_else(missing)?;
        let mut array = self
            .batch
            .column_by_name(first)
            .ok_or_else(missing)?
            .clone();
        for name in rest {
            let parent = array.as_struct_opt().ok_or_else(missing)?;
            array = child(parent, name).ok_or_else(missing)?;
        }
        canonical(&array, data_type).map_err(|fault| match fault {
            EvalError::Error(error) => EvalError::Error(error.at_column(path.join("."))),
            other => other,
        })
    }
}
