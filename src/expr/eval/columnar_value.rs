//! The value of an expression for a batch: one array, or one value for all rows.

use arrow_array::cast::AsArray;
use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{Array, ArrayRef, BooleanArray, Datum, PrimitiveArray, UInt64Array};

use super::budget::{reserve, size};
use super::error::{EvalResult, unexpected};

/// A column of values, or one value for all rows.
#[derive(Debug, Clone)]
pub(crate) struct ColumnarValue {
    pub(crate) array: ArrayRef,
    pub(crate) scalar: bool,
}

impl Datum for ColumnarValue {
    fn get(&self) -> (&dyn Array, bool) {
        (self.array.as_ref(), self.scalar)
    }
}

impl ColumnarValue {
    pub(crate) fn column(array: ArrayRef) -> Self {
        Self {
            array,
            scalar: false,
        }
    }

    /// The index of a row in the array.
    #[inline]
    pub(crate) fn row(&self, row: usize) -> usize {
        if self.scalar { 0 } else { row }
    }

    #[inline]
    pub(crate) fn is_null(&self, row: usize) -> bool {
        self.array.is_null(self.row(row))
    }

    /// One value for each of `rows` rows.
    pub(crate) fn into_array(self, rows: usize) -> EvalResult {
        if !self.scalar || (rows == 1 && self.array.len() == 1) {
            return Ok(self.array);
        }
        reserve_rows([&self], rows)?;
        Ok(arrow_select::take::take(
            &self.array,
            &UInt64Array::from_value(0, rows),
            None,
        )?)
    }

    /// The array as one of a primitive type.
    pub(crate) fn primitive<T: ArrowPrimitiveType>(&self) -> EvalResult<&PrimitiveArray<T>> {
        self.array
            .as_primitive_opt::<T>()
            .ok_or_else(|| unexpected(self.array.data_type()))
    }

    pub(crate) fn booleans(&self) -> EvalResult<&BooleanArray> {
        self.array
            .as_boolean_opt()
            .ok_or_else(|| unexpected(self.array.data_type()))
    }
}

/// Checks that the operands fit when each has a value for every row.
pub(crate) fn reserve_rows<'a>(
    operands: impl IntoIterator<Item = &'a ColumnarValue>,
    rows: usize,
) -> EvalResult<()> {
    let bytes = |operand: &ColumnarValue| {
        let bytes = size(operand.array.as_ref());
        if operand.scalar {
            bytes.saturating_mul(rows as u64)
        } else {
            bytes
        }
    };
    reserve(operands.into_iter().map(bytes).fold(0, u64::saturating_add))
}
