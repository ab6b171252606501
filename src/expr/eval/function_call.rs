//! A function's call as its implementation sees it.

use super::columnar_value::ColumnarValue;
use super::error::EvalResult;
use super::eval_context::EvalContext;
use crate::error::Error;
use crate::expr::function::Function;
use crate::expr::tree::Expr;
use crate::protocol::schema::DataType;

/// A function's call with its arguments evaluated. Where all arguments are constant, `rows` is 1.
pub(crate) struct FunctionCall<'a> {
    pub(crate) function: Function,
    pub(crate) args: &'a [Expr],
    pub(crate) operands: &'a [ColumnarValue],
    pub(crate) result: &'a DataType,
    pub(crate) rows: usize,
    pub(crate) settings: &'a EvalContext<'a>,
}

impl FunctionCall<'_> {
    /// An argument.
    pub(crate) fn arg(&self, n: usize) -> EvalResult<&ColumnarValue> {
        self.operands.get(n).ok_or_else(|| {
            Error::internal(format!("`{}` lacks an argument", self.function.name())).into()
        })
    }

    /// The type of an argument.
    pub(crate) fn arg_type(&self, n: usize) -> EvalResult<&DataType> {
        self.args.get(n).map(Expr::data_type).ok_or_else(|| {
            Error::internal(format!("`{}` lacks an argument", self.function.name())).into()
        })
    }
}
