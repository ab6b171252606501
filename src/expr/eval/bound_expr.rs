//! Evaluation of a [`BoundExpr`] over a batch, in pieces that stay within the memory limits.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use arrow_schema::ArrowError;

use super::array_layout::plain;
use super::budget::{self, EvaluationLimits};
use super::error::EvalResult;
use super::eval_context::EvalContext;
use super::evaluate::{evaluate, expression_summary};
use super::mask::is_true;
use crate::error::{Error, Result};
use crate::expr::tree::BoundExpr;
use crate::protocol::schema::{DataType, StringLayout};

impl BoundExpr {
    /// The value of every row, in the plain layout of the expression's type.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the expression and the value that has no result, or exceeds the
    /// memory limit of a row; [`Error::SchemaMismatch`] names a column that is missing from the
    /// batch or has another type; [`Error::Resource`] if the values of all rows together are too
    /// large.
    pub fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        self.evaluate_within(batch, EvaluationLimits::of_process()?)
    }

    /// The same with limits that differ from those of the process.
    ///
    /// # Errors
    /// As [`BoundExpr::evaluate`].
    pub fn evaluate_within(
        &self,
        batch: &RecordBatch,
        limits: EvaluationLimits,
    ) -> Result<ArrayRef> {
        if batch.num_rows() == 0 {
            return Ok(arrow_array::new_empty_array(
                &self.data_type().to_arrow(StringLayout::Plain),
            ));
        }
        let mut total = 0;
        let pieces = budget::in_pieces(batch.num_rows(), limits, |from, length| {
            let rows = self.rows(copy_slice(batch, from, length)?);
            let array = evaluate(&self.expr, &rows)?.into_array(length)?;
            let array = plain(&array, self.data_type())?;
            total += budget::size(array.as_ref());
            if total > limits.whole && length < batch.num_rows() {
                let what = format!(
                    "`{}` over a batch of {} rows",
                    expression_summary(&self.expr),
                    batch.num_rows()
                );
                return Err(Error::over_budget(&what, total).into());
            }
            Ok(array)
        });
        let pieces = pieces.map_err(|fault| fault.at(&self.expr))?;
        match pieces.as_slice() {
            [array] => Ok(Arc::clone(array)),
            _ => Ok(arrow_select::concat::concat(
                &pieces
                    .iter()
                    .map(AsRef::as_ref)
                    .collect::<Vec<&dyn Array>>(),
            )?),
        }
    }

    /// The rows for which a predicate is true; null counts as false.
    ///
    /// # Errors
    /// As [`BoundExpr::evaluate`]; [`Error::Invalid`] if the expression is not a predicate.
    pub fn filter_mask(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        if !matches!(self.data_type(), DataType::Boolean | DataType::Void) {
            return Err(Error::invalid(format!(
                "a filter must be true or false, but `{self}` is of type {}",
                self.data_type()
            )));
        }
        if batch.num_rows() == 0 {
            return Ok(BooleanArray::new(BooleanBuffer::new_unset(0), None));
        }
        let limits = EvaluationLimits::of_process()?;
        let pieces = budget::in_pieces(batch.num_rows(), limits, |from, length| {
            self.piece_mask(copy_slice(batch, from, length)?)
        });
        let pieces = pieces.map_err(|fault| fault.at(&self.expr))?;
        if let [mask] = pieces.as_slice() {
            return Ok(mask.clone());
        }
        let mut all = BooleanBufferBuilder::new(batch.num_rows());
        for mask in pieces {
            all.append_buffer(mask.values());
        }
        Ok(BooleanArray::new(all.finish(), None))
    }

    fn piece_mask(&self, batch: Cow<'_, RecordBatch>) -> EvalResult<BooleanArray> {
        let rows = batch.num_rows();
        let operand = evaluate(&self.expr, &self.rows(batch))?;
        let Some(values) = operand.array.as_boolean_opt() else {
            return Ok(BooleanArray::new(BooleanBuffer::new_unset(rows), None));
        };
        let mask = is_true(values);
        if operand.scalar {
            let all = mask.true_count() == mask.len();
            return Ok(BooleanArray::new(
                if all {
                    BooleanBuffer::new_set(rows)
                } else {
                    BooleanBuffer::new_unset(rows)
                },
                None,
            ));
        }
        Ok(mask)
    }

    fn rows<'b>(&self, batch: Cow<'b, RecordBatch>) -> EvalContext<'b> {
        EvalContext {
            batch,
            ansi: self.ansi,
            zone: self.zone,
        }
    }
}

/// Some rows of a batch. Nested columns are copied: their evaluation reads all elements of an
/// array, not only a slice's.
fn copy_slice(batch: &RecordBatch, from: usize, length: usize) -> EvalResult<Cow<'_, RecordBatch>> {
    if length == batch.num_rows() {
        return Ok(Cow::Borrowed(batch));
    }
    let indices: UInt64Array = (from as u64..(from + length) as u64).collect();
    let column = |column: &ArrayRef| {
        if column.data_type().is_nested() {
            arrow_select::take::take(column, &indices, None)
        } else {
            Ok(column.slice(from, length))
        }
    };
    let columns = batch
        .columns()
        .iter()
        .map(column)
        .collect::<std::result::Result<Vec<_>, ArrowError>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(length));
    Ok(Cow::Owned(RecordBatch::try_new_with_options(
        batch.schema(),
        columns,
        &options,
    )?))
}
