//! Primitive arrays built row by row from one or two arguments.

use arrow_array::builder::PrimitiveBuilder;
use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{Array, PrimitiveArray};

use super::columnar_value::ColumnarValue;
use super::error::{EvalError, EvalResult};
use super::function_call::FunctionCall;
use crate::error::ErrorCode;
use crate::expr::function::Function;

pub(crate) fn division_by_zero(function: Function) -> EvalError {
    let remainder = matches!(function, Function::Remainder | Function::PositiveModulo);
    if remainder {
        EvalError::value(ErrorCode::RemainderByZero, "remainder by zero")
    } else {
        EvalError::value(ErrorCode::DivideByZero, "division by zero")
    }
}

/// Builds a primitive array from two arguments row by row; null where either is.
pub(crate) fn zip_with<A: ArrowPrimitiveType, B: ArrowPrimitiveType, O: ArrowPrimitiveType>(
    call: &FunctionCall<'_>,
    mut value: impl FnMut(A::Native, B::Native) -> EvalResult<Option<O::Native>>,
) -> EvalResult<PrimitiveArray<O>> {
    let (a, b) = (call.arg(0)?, call.arg(1)?);
    let (x, y) = (a.primitive::<A>()?, b.primitive::<B>()?);
    let mut builder = PrimitiveBuilder::<O>::with_capacity(call.rows);
    for row in 0..call.rows {
        let (i, j) = (a.row(row), b.row(row));
        builder.append_option(if x.is_null(i) || y.is_null(j) {
            None
        } else {
            value(x.value(i), y.value(j))?
        });
    }
    Ok(builder.finish())
}

/// Builds a primitive array from one argument; null where it is.
pub(crate) fn map_with<A: ArrowPrimitiveType, O: ArrowPrimitiveType>(
    operand: &ColumnarValue,
    rows: usize,
    mut value: impl FnMut(A::Native) -> EvalResult<Option<O::Native>>,
) -> EvalResult<PrimitiveArray<O>> {
    let array = operand.primitive::<A>()?;
    let mut builder = PrimitiveBuilder::<O>::with_capacity(rows);
    for row in 0..rows {
        let index = operand.row(row);
        builder.append_option(if array.is_null(index) {
            None
        } else {
            value(array.value(index))?
        });
    }
    Ok(builder.finish())
}
